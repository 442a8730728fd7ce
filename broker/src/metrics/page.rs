//! The page itself, in the OpenMetrics text format.

use core::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::Tls;

/// The numbers of one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Connections open now.
    pub connections: u64,
    /// Deadlines that are set.
    pub deadlines: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed for no fault of the peer's.
    pub closed: u64,
    /// Connections closed for a fault of the peer's.
    pub faults: u64,
    /// CPU seconds of the broker's thread.
    pub cpu_seconds: f64,
    /// CPU seconds that are in one of the accounts below.
    pub claimed_seconds: f64,
    /// CPU seconds that connections are charged with, by phase.
    pub phases: Vec<(&'static str, f64)>,
    /// CPU seconds that the loop took beside them, by chore.
    pub chores: Vec<(&'static str, f64)>,
    /// TLS, when a listener speaks it.
    pub tls: Option<Tls>,
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
        gauge(
            e,
            "deadlines",
            "Deadlines that are set: of connections, groups and the broker itself.",
            &[(&[], self.deadlines as f64)],
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
        by(
            e,
            seconds,
            "connection_cpu",
            "CPU time that connections are charged with, by phase.",
            "phase",
            self.phases.iter().copied(),
        )?;
        by(
            e,
            seconds,
            "overhead_cpu",
            "CPU time that no connection is charged with, by what the loop did.",
            "chore",
            self.chores.iter().copied(),
        )?;
        // A clock that is read twice tells a little more the second time.
        let unclaimed = (self.cpu_seconds - self.claimed_seconds).max(0.0);
        seconds(
            e,
            "unclaimed_cpu",
            "CPU time of the broker's thread that is in neither account.",
            &[(&[], unclaimed)],
        )?;
        match &self.tls {
            Some(tls) => tls.encode(e),
            None => Ok(()),
        }
    }
}

/// A metric's values with their labels.
pub type Values<'a> = [(&'a [(&'a str, &'a str)], f64)];

/// Encodes one metric: its name, its help, its values.
pub type Encode = fn(&mut DescriptorEncoder<'_>, &str, &str, &Values<'_>) -> Result<(), Error>;

/// One label's values.
pub fn by<'a>(
    e: &mut DescriptorEncoder<'_>,
    encode: Encode,
    name: &str,
    help: &str,
    label: &str,
    values: impl Iterator<Item = (&'a str, f64)>,
) -> Result<(), Error> {
    let values: Vec<_> = values.map(|(of, value)| ([(label, of)], value)).collect();
    let values: Vec<_> = values
        .iter()
        .map(|(labels, value)| (labels.as_slice(), *value))
        .collect();
    encode(e, name, help, &values)
}

pub fn counter(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, None, values, &|n| ConstCounter::new(n))
}

pub fn seconds(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, Some(&Unit::Seconds), values, &|n| ConstCounter::new(n))
}

pub fn gauge(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, None, values, &|n| ConstGauge::new(n))
}

/// Bytes of the moment.
pub fn bytes(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, Some(&Unit::Bytes), values, &|n| ConstGauge::new(n))
}

/// Moments, as seconds since 1970.
pub fn moments(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, values: &Values<'_>) -> Result<(), Error> {
    family(e, name, help, Some(&Unit::Seconds), values, &|n| ConstGauge::new(n))
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
            ..Snapshot::default()
        });
        for line in [
            "skerry_connections 3",
            "skerry_connections_accepted_total 7",
            "skerry_connection_cpu_seconds_total{phase=\"read\"} 0.5",
            "# EOF",
        ] {
            assert!(
                page.lines().any(|l| l == line || l == format!("{line}.0")),
                "{line} is not in\n{page}"
            );
        }
    }
}
