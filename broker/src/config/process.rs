//! What this process is told: the one place where files, the environment and name resolution are asked.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};

use super::client::ClientConfig;
use super::{Config, Inputs, Loaded, load};

/// Reads `file`, when one is named, the environment and `overrides` (`key=value`).
///
/// Errors: one line for each thing that is wrong.
pub fn from_process(file: Option<&Path>, overrides: &[String]) -> Result<Loaded, Vec<String>> {
    let text = match file {
        Some(path) => Some(read(path).map_err(|problem| vec![problem])?),
        None => None,
    };
    let name = file.map(|path| path.display().to_string());
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect();
    load(&Inputs {
        file: name.as_deref().zip(text.as_deref()),
        environment: &environment,
        overrides,
        data_dir: state_dir(),
        ipv6: UdpSocket::bind("[::]:0").is_ok(),
        resolve: &resolve,
    })
}

/// Reads a tool's `client.properties`. Beside the result stands what is worth telling, one line each.
///
/// Errors: one line for each thing that is wrong.
pub fn client_from_file(file: &Path) -> Result<(ClientConfig, Vec<String>), Vec<String>> {
    let text = read(file).map_err(|problem| vec![problem])?;
    super::client::read(&file.display().to_string(), &text)
}

impl Config {
    /// The defaults with `settings` (name and text) over them and the data under `data_dir`: for tests and tools.
    ///
    /// Errors: one line for each thing that is wrong.
    pub fn with(data_dir: &Path, settings: &[(&str, &str)]) -> Result<Self, Vec<String>> {
        let overrides: Vec<String> = settings.iter().map(|(name, text)| format!("{name}={text}")).collect();
        load(&Inputs {
            file: None,
            environment: &[],
            overrides: &overrides,
            data_dir: Some(data_dir.into()),
            ipv6: false,
            resolve: &resolve,
        })
        .map(|loaded| loaded.config)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        format!(
            "{}:{line}: not UTF-8; write other characters as \\uXXXX",
            path.display()
        )
    })
}

/// `$XDG_STATE_HOME/skerry`, else `~/.local/state/skerry`.
fn state_dir() -> Option<PathBuf> {
    let var = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = var("XDG_STATE_HOME").or_else(|| var("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("skerry"))
}

fn resolve(host: &str) -> Result<IpAddr, String> {
    let mut found = (host, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    found
        .next()
        .map(|address| address.ip())
        .ok_or_else(|| "the name has none".into())
}
