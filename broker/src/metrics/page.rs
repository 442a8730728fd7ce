//! The page itself, in the OpenMetrics text format.

use core::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use skerry_tls::cause::Cause;
use skerry_tls::meter::Phase as TlsPhase;

use crate::secure;

/// The numbers of one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Connections open now.
    pub connections: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed for no fault of the peer's.
    pub closed: u64,
    /// Connections closed for a fault of the peer's.
    pub faults: u64,
    /// CPU seconds of the broker's thread.
    pub cpu_seconds: f64,
    /// CPU seconds that connections are charged with, by phase.
    pub phases: Vec<(&'static str, f64)>,
    /// TLS, when a listener speaks it.
    pub tls: Option<Tls>,
}

/// What TLS adds.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Counters since start.
    pub counters: secure::Counters,
    /// The provider of primitives.
    pub provider: &'static str,
    /// Handshakes under way.
    pub handshakes: u64,
    /// Seconds of one tick.
    pub tick_seconds: f64,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let e = &mut encoder;
        gauge(
            e,
            "connections",
            "Connections open now.",
            &[(&[], self.connections as f64)],
        )?;
        counter(
            e,
            "connections_accepted",
            "Connections accepted.",
            &[(&[], self.accepted as f64)],
        )?;
        counter(
            e,
            "connections_closed",
            "Connections closed, by whether the peer was at fault.",
            &[
                (&[("fault", "no")], self.closed as f64),
                (&[("fault", "yes")], self.faults as f64),
            ],
        )?;
        seconds(
            e,
            "thread_cpu",
            "CPU time of the broker's thread.",
            &[(&[], self.cpu_seconds)],
        )?;
        let phases: Vec<_> = self.phases.iter().map(|(name, s)| ([("phase", *name)], *s)).collect();
        let phases: Vec<_> = phases.iter().map(|(labels, s)| (labels.as_slice(), *s)).collect();
        seconds(
            e,
            "connection_cpu",
            "CPU time that connections are charged with.",
            &phases,
        )?;
        match &self.tls {
            Some(tls) => tls.encode(e),
            None => Ok(()),
        }
    }
}

/// A metric's values with their labels.
type Values<'a> = [(&'a [(&'a str, &'a str)], f64)];

impl Tls {
    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let counters = &self.counters;
        gauge(
            e,
            "tls_provider",
            "The provider of primitives in use.",
            &[(&[("provider", self.provider)], 1.0)],
        )?;
        gauge(
            e,
            "tls_handshakes_under_way",
            "Handshakes under way.",
            &[(&[], self.handshakes as f64)],
        )?;
        let [[full_12, resumed_12], [full_13, resumed_13]] = counters.done;
        counter(
            e,
            "tls_handshakes",
            "Handshakes done.",
            &[
                (&[("version", "TLSv1.2"), ("kind", "full")], full_12 as f64),
                (&[("version", "TLSv1.2"), ("kind", "resumed")], resumed_12 as f64),
                (&[("version", "TLSv1.3"), ("kind", "full")], full_13 as f64),
                (&[("version", "TLSv1.3"), ("kind", "resumed")], resumed_13 as f64),
            ],
        )?;
        let failed: Vec<_> = Cause::IDS
            .iter()
            .zip(counters.failed)
            .map(|(id, count)| ([("cause", *id)], count as f64))
            .collect();
        let failed: Vec<_> = failed.iter().map(|(labels, n)| (labels.as_slice(), *n)).collect();
        counter(e, "tls_handshake_failures", "Handshakes failed, by cause.", &failed)?;
        counter(
            e,
            "tls_probes",
            "Connections closed before their first byte.",
            &[(&[], counters.probes as f64)],
        )?;
        counter(
            e,
            "tls_closes",
            "Ends of established connections, by how the peer closed.",
            &[
                (&[("how", "close_notify")], counters.closes_clean as f64),
                (&[("how", "truncated")], counters.closes_truncated as f64),
                (&[("how", "reset")], counters.closes_reset as f64),
            ],
        )?;
        let phases = TlsPhase::ALL.map(|phase| {
            let ticks = counters.cost.of(phase).0 as f64;
            ([("phase", phase.name())], ticks * self.tick_seconds)
        });
        let phases = phases.each_ref().map(|(labels, s)| (labels.as_slice(), *s));
        seconds(
            e,
            "tls_handshake_cpu",
            "CPU time of handshakes that have ended.",
            &phases,
        )
    }
}

fn counter(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, None, values, &|n| ConstCounter::new(n))
}

fn seconds(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, Some(&Unit::Seconds), values, &|n| ConstCounter::new(n))
}

fn gauge(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, None, values, &|n| ConstGauge::new(n))
}

fn family<M: EncodeMetric>(
    e: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: &Values<'_>,
    metric: &dyn Fn(f64) -> M,
) -> Result<(), Error> {
    let Some((_, first)) = values.first() else {
        return Ok(());
    };
    let mut family = e.encode_descriptor(name, help, unit, metric(*first).metric_type())?;
    if let [([], value)] = values {
        return metric(*value).encode(family);
    }
    for (labels, value) in values {
        metric(*value).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

/// The page of a moment.
#[must_use]
pub fn page(snapshot: Snapshot) -> String {
    let mut registry = Registry::with_prefix("skerry");
    registry.register_collector(Box::new(snapshot));
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode(&mut out, &registry);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_with_their_names_and_labels() {
        let page = page(Snapshot {
            connections: 3,
            accepted: 7,
            phases: vec![("read", 0.5)],
            tls: Some(Tls {
                counters: secure::Counters {
                    done: [[1, 2], [3, 4]],
                    ..secure::Counters::default()
                },
                provider: "fast",
                handshakes: 0,
                tick_seconds: 1e-9,
            }),
            ..Snapshot::default()
        });
        for line in [
            "skerry_connections 3",
            "skerry_connections_accepted_total 7",
            "skerry_connection_cpu_seconds_total{phase=\"read\"} 0.5",
            "skerry_tls_handshakes_total{version=\"TLSv1.3\",kind=\"resumed\"} 4",
            "skerry_tls_handshake_failures_total{cause=\"unknown_ca\"} 0",
            "# EOF",
        ] {
            assert!(
                page.lines().any(|l| l == line || l == format!("{line}.0")),
                "{line} is not in\n{page}"
            );
        }
    }
}
