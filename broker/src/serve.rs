//! A broker on this machine, from its configuration to its graceful end.

use core::time::Duration;

use skerry_net::host::{Clock, ListenerId};
use skerry_net::linux::{LinuxConfig, LinuxHost, Listen, Ring};
use skerry_tls::crypto::arena;
use skerry_tls::crypto::system::SystemRandom;

use crate::broker::{Broker, Pass};
use crate::config::{Config, IoUring, Protocol, TlsProvider};
use crate::secure::Desk;
use crate::startup;
use crate::state::State;
use crate::tls_setup::TlsSetup;

/// Streams beyond `max.connections`, so that one too many is accepted and told so by closing instead of waiting unseen.
const STREAMS_SPARE: u32 = 16;

/// Files besides the logs' own: the metadata log and what replaces it, `meta.properties`, the data directory, checkpoints.
const FILES_SPARE: u32 = 16;

/// Connections that wait to be accepted: Kafka's default for `socket.listen.backlog.size`.
const BACKLOG: u32 = 50;

/// Syncs and loads in flight at once.
const RING_ENTRIES: u32 = 64;

/// Mbed TLS's heap when another provider serves the connections: 32 chains checked at once with keys of RSA-4096 fit.
const ARENA_BYTES: usize = 256 * 1024;

/// Runs until `SIGTERM` or `SIGINT`. Errors: why it could not start, for a person.
pub fn serve(config: Config) -> Result<(), String> {
    let limits = config.limits;
    let mut host = LinuxHost::new(LinuxConfig {
        // Metrics are the last.
        listeners: config
            .listeners
            .iter()
            .map(|l| l.bind)
            .chain(config.metrics_listener)
            .map(Listen::Bind)
            .collect(),
        backlog: BACKLOG,
        data_directory: config.data_dir.clone(),
        streams_max: limits.connections + STREAMS_SPARE,
        files_max: limits.open_files + FILES_SPARE,
        ring: match config.io_uring {
            IoUring::Auto => Ring::Auto,
            IoUring::Off => Ring::Off,
        },
        ring_entries: RING_ENTRIES,
        sync_delay: Duration::from_millis(config.test_flush_delay.0),
    })
    .map_err(|e| e.to_string())?;
    let bound: Vec<_> = (0..config.listeners.len())
        .filter_map(|i| host.local_addr(ListenerId(i as u16)))
        .collect();
    let metrics = config
        .metrics_listener
        .and_then(|_| host.local_addr(ListenerId(config.listeners.len() as u16)));
    let descriptors = host.descriptors();
    if descriptors.limit < descriptors.wanted {
        ::log::warn!(
            "{} file descriptors are allowed (ulimit -n), max.connections and skerry.limits.open.files may need {}: connections \
             wait when they run out",
            descriptors.limit,
            descriptors.wanted
        );
    }
    let state = State::open(config, &mut host).map_err(|e| e.to_string())?;
    let tls = secured(&state.config, &mut host)?;
    let mut broker = Broker::new(host, state);
    if let Some(tls) = tls {
        broker = broker.with_tls(tls);
    }
    startup::tell(&broker.state.config, &bound, &broker.budget());
    if let Some(address) = metrics {
        ::log::info!(target: "skerry", "metrics at http://{address}/metrics");
    }
    while broker.pass() == Pass::Running {}
    Ok(())
}

/// TLS, when a listener speaks it. Errors: everything that is wrong with its stores.
fn secured(config: &Config, host: &mut LinuxHost) -> Result<Option<Desk>, String> {
    if config
        .listeners
        .iter()
        .all(|listener| listener.protocol != Protocol::Ssl)
    {
        return Ok(None);
    }
    // Before anything else of Mbed TLS: what it allocates lies in this heap from here on.
    let limits = (config.limits.connections as usize, config.tls.handshakes as usize);
    let heap_bytes = match config.tls.provider {
        TlsProvider::Mbedtls => arena::bytes_for(limits.0, limits.1),
        TlsProvider::Auto | TlsProvider::Fast => ARENA_BYTES,
    };
    if arena::start(heap_bytes).is_err() {
        return Err("the heap of Mbed TLS cannot be set up".into());
    }
    let loaded = TlsSetup::load(config, host.wall(), &mut SystemRandom);
    let (setup, notices) = loaded.map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        problems.join("\nskerry: ")
    })?;
    for notice in notices {
        ::log::warn!(target: "skerry_broker::tls", "{notice}");
    }
    let desk = Desk::new(config, setup, host.wall(), &mut SystemRandom);
    desk.map(Some)
        .map_err(|error| format!("TLS ticket keys cannot be made: {error:?}"))
}
