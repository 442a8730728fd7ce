//! How brokers are reached: where to begin, and by which protocol, as the command line and `--command-config` say.

use std::rc::Rc;

use skerry_core::time::Timestamp;
use skerry_net::host::Clock as _;
use skerry_net::linux::LinuxClock;
use skerry_tls::crypto::system::SystemRandom;

use super::Failure;
use super::args::ClientArgs;
use crate::config;
use crate::tls_setup::ClientSetup;

/// Where to begin when nobody says.
const BOOTSTRAP: &str = "127.0.0.1:9092";
/// What the broker may know us by.
const CLIENT_ID: &str = "skerry-cli";

/// How brokers are reached.
pub struct Access {
    /// Where to begin: `host:port`, at least one.
    pub bootstrap: Vec<String>,
    /// What the broker may know us by.
    pub client_id: Rc<str>,
    /// TLS; without it connections are in plain.
    pub tls: Option<Rc<ClientSetup>>,
}

impl Access {
    /// In plain, beginning with the brokers of `bootstrap`: `host:port`, separated by commas.
    pub fn plain(bootstrap: &str) -> Result<Self, Failure> {
        let addresses = bootstrap.split(',').map(str::trim).filter(|a| !a.is_empty());
        let bootstrap: Vec<String> = addresses.map(with_port).collect();
        if bootstrap.is_empty() {
            return Err("--bootstrap-server names no broker".to_owned().into());
        }
        Ok(Self {
            bootstrap,
            client_id: CLIENT_ID.into(),
            tls: None,
        })
    }

    /// As the command line says. What is worth a warning is logged.
    ///
    /// Errors: the file, or a store that it names, cannot be used.
    pub fn of(args: &ClientArgs) -> Result<Self, Failure> {
        let config = match &args.command_config {
            Some(file) => {
                let (config, notices) = config::client_from_file(file).map_err(Failure::Config)?;
                warn(&notices);
                config
            }
            None => config::client::ClientConfig::default(),
        };
        let bootstrap = args.bootstrap_server.as_ref().or(config.bootstrap.as_ref());
        let mut access = Self::plain(bootstrap.map_or(BOOTSTRAP, String::as_str))?;
        if let Some(id) = config.client_id {
            access.client_id = id.into();
        }
        if let Some(tls) = &config.tls {
            let mut notices = Vec::new();
            let setup = ClientSetup::load(tls, now(), &mut SystemRandom, &mut notices);
            warn(&notices);
            access.tls = Some(Rc::new(setup.map_err(|problem| problem.to_string())?));
        }
        Ok(access)
    }
}

fn warn(notices: &[String]) {
    for notice in notices {
        log::warn!(target: "skerry", "{notice}");
    }
}

/// What the wall clock shows.
pub fn now() -> Timestamp {
    LinuxClock::new().wall()
}

/// The address with Kafka's port when it names none.
fn with_port(address: &str) -> String {
    let after_host = address.rsplit_once(']').map_or(address, |(_, rest)| rest);
    if after_host.contains(':') {
        address.into()
    } else {
        format!("{address}:9092")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_kafkas_port() {
        for (text, whole) in [
            ("host", "host:9092"),
            ("host:1", "host:1"),
            ("[::1]", "[::1]:9092"),
            ("[::1]:5", "[::1]:5"),
        ] {
            assert_eq!(with_port(text), whole);
        }
        let access = Access::plain("a, ,b:1").ok().unwrap();
        assert_eq!(access.bootstrap, ["a:9092", "b:1"]);
        assert!(Access::plain(" ,").is_err());
    }
}
