//! What the page tells of TLS.

use core::fmt::Error;

use prometheus_client::encoding::DescriptorEncoder;
use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::meter::Phase;
use skerry_tls::state::StateId;

use super::page::{by, bytes, counter, gauge, moments, seconds};
use crate::secure;
use crate::tls_setup::{Facts, Loaded};

/// The numbers of one moment.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Counters since start.
    pub counters: secure::Counters,
    /// The provider of primitives.
    pub provider: &'static str,
    /// Handshakes under way.
    pub handshakes: u64,
    /// Pairs of record buffers that are lent.
    pub records: u64,
    /// Seconds of one tick.
    pub tick_seconds: f64,
    /// Mbed TLS's fixed heap.
    pub heap: Heap,
    /// The listeners that speak it.
    pub listeners: Vec<Listener>,
}

/// Mbed TLS's fixed heap, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    /// All of it.
    pub capacity: u64,
    /// In use.
    pub used: u64,
    /// The most that ever was.
    pub peak: u64,
    /// Allocations that were refused.
    pub refused: u64,
}

/// One listener.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// What its certificates say, leaf by leaf.
    pub facts: Vec<Facts>,
    /// When they were loaded.
    pub loaded_at: Timestamp,
    /// Clients' chains that were verified before, where it asks for certificates.
    pub chains: Option<Chains>,
}

/// Clients' chains that are remembered, since the trust store was loaded.
#[derive(Clone, Copy, Debug)]
pub struct Chains {
    /// Asked for and found.
    pub hits: u64,
    /// Asked for and verified.
    pub misses: u64,
    /// Remembered now.
    pub entries: usize,
    /// The most that can be.
    pub capacity: usize,
}

impl Listener {
    /// What a listener of that name is set up with.
    #[must_use]
    pub fn of((name, loaded): (&str, &Loaded)) -> Self {
        let chains = loaded.settings.verifier.as_ref().map(|trust| {
            let ((hits, misses), (entries, capacity)) = (trust.hits_and_misses(), trust.entries());
            Chains {
                hits,
                misses,
                entries,
                capacity,
            }
        });
        Self {
            name: name.into(),
            facts: loaded.facts.clone(),
            loaded_at: loaded.loaded_at,
            chains,
        }
    }
}

impl Tls {
    /// Writes all of it.
    pub fn encode(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        gauge(
            e,
            "tls_provider_info",
            "The provider of primitives in use.",
            &[(&[("provider", self.provider)], 1.0)],
        )?;
        self.handshakes(e)?;
        self.costs(e)?;
        self.heap.encode(e)?;
        self.certificates(e)?;
        self.chains(e)
    }

    fn handshakes(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let counters = &self.counters;
        gauge(
            e,
            "tls_handshakes_under_way",
            "Handshakes under way.",
            &[(&[], self.handshakes as f64)],
        )?;
        gauge(
            e,
            "tls_record_buffers_lent",
            "Pairs of record buffers that connections hold.",
            &[(&[], self.records as f64)],
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
        let causes = |counts: [u64; Cause::IDS.len()]| Cause::IDS.iter().copied().zip(counts.map(|n| n as f64));
        by(
            e,
            counter,
            "tls_handshake_failures",
            "Handshakes failed, by cause.",
            "cause",
            causes(counters.failed),
        )?;
        by(
            e,
            counter,
            "tls_connection_failures",
            "Connections whose TLS failed after the handshake, by cause.",
            "cause",
            causes(counters.broken),
        )?;
        counter(
            e,
            "tls_probes",
            "Connections closed before their first byte.",
            &[(&[], counters.probes as f64)],
        )?;
        by(
            e,
            counter,
            "tls_closes",
            "Ends of established connections, by how the peer closed.",
            "how",
            [
                ("close_notify", counters.closes_clean as f64),
                ("truncated", counters.closes_truncated as f64),
                ("reset", counters.closes_reset as f64),
            ]
            .into_iter(),
        )?;
        counter(
            e,
            "tls_tickets_given",
            "Tickets given to clients, to resume their session by.",
            &[(&[], counters.tickets_given as f64)],
        )?;
        by(
            e,
            counter,
            "tls_resumptions",
            "Handshakes of clients that offered an earlier session, by whether it was resumed.",
            "result",
            [
                ("accepted", counters.resumptions_accepted as f64),
                ("refused", counters.resumptions_refused as f64),
            ]
            .into_iter(),
        )
    }

    fn costs(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let counters = &self.counters;
        let of = |ticks: u64| ticks as f64 * self.tick_seconds;
        by(
            e,
            seconds,
            "tls_handshake_cpu",
            "CPU time of handshakes that have ended, by phase.",
            "phase",
            Phase::ALL
                .iter()
                .map(|phase| (phase.name(), of(counters.cost.of(*phase).0))),
        )?;
        by(
            e,
            seconds,
            "tls_handshake_state_cpu",
            "CPU time of handshakes that have ended, by the state that a step began in.",
            "state",
            StateId::ALL
                .iter()
                .zip(counters.states)
                .filter(|(state, _)| state.is_servers())
                .map(|(state, ticks)| (state.name(), of(ticks))),
        )
    }

    fn certificates(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        /// Name, help, and which of its dates it is.
        type Date = (&'static str, &'static str, fn(&Listener, &Facts) -> Timestamp);
        type Row<'a, const N: usize> = ([(&'static str, &'a str); N], f64);
        fn slices<'a, const N: usize>(rows: &'a [Row<'a, N>]) -> Vec<(&'a [(&'a str, &'a str)], f64)> {
            rows.iter().map(|(labels, value)| (labels.as_slice(), *value)).collect()
        }
        let all = || {
            self.listeners
                .iter()
                .flat_map(|listener| listener.facts.iter().map(move |facts| (listener, facts)))
        };
        let info: Vec<Row<'_, 4>> = all()
            .map(|(listener, facts)| {
                let labels = [
                    ("listener", listener.name.as_str()),
                    ("serial", facts.serial.as_str()),
                    ("subject", facts.details.subject.as_str()),
                    ("issuer", facts.details.issuer.as_str()),
                ];
                (labels, 1.0)
            })
            .collect();
        gauge(e, "tls_certificate_info", "The certificates in use.", &slices(&info))?;
        let dates: [Date; 3] = [
            (
                "tls_certificate_not_before_timestamp",
                "Begin of the certificate's validity.",
                |_, facts| facts.details.not_before,
            ),
            (
                "tls_certificate_not_after_timestamp",
                "End of the certificate's validity, or of the first of its chain.",
                |_, facts| facts.not_after,
            ),
            (
                "tls_certificate_loaded_timestamp",
                "When the certificate was loaded.",
                |listener, _| listener.loaded_at,
            ),
        ];
        for (name, help, of) in dates {
            let rows: Vec<Row<'_, 2>> = all()
                .map(|(listener, facts)| {
                    let labels = [("listener", listener.name.as_str()), ("serial", facts.serial.as_str())];
                    (labels, of(listener, facts).0 as f64 / 1000.0)
                })
                .collect();
            moments(e, name, help, &slices(&rows))?;
        }
        Ok(())
    }

    fn chains(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let all = || {
            self.listeners
                .iter()
                .filter_map(|listener| Some((listener.name.as_str(), listener.chains?)))
        };
        let lookups: Vec<_> = all()
            .flat_map(|(name, chains)| {
                [("hit", chains.hits), ("miss", chains.misses)]
                    .map(|(result, count)| ([("listener", name), ("result", result)], count as f64))
            })
            .collect();
        let lookups: Vec<_> = lookups.iter().map(|(labels, n)| (labels.as_slice(), *n)).collect();
        counter(
            e,
            "tls_chain_cache_lookups",
            "Client certificates' chains, by whether they had been verified before; since the trust store was loaded.",
            &lookups,
        )?;
        by(
            e,
            gauge,
            "tls_chain_cache_entries",
            "Client certificates' chains that are remembered.",
            "listener",
            all().map(|(name, chains)| (name, chains.entries as f64)),
        )?;
        by(
            e,
            gauge,
            "tls_chain_cache_entries_max",
            "The most that are remembered.",
            "listener",
            all().map(|(name, chains)| (name, chains.capacity as f64)),
        )
    }
}

impl Heap {
    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, value) in [
            ("tls_heap_capacity", "Mbed TLS's fixed heap.", self.capacity),
            ("tls_heap_used", "What is in use of Mbed TLS's fixed heap.", self.used),
            (
                "tls_heap_peak",
                "The most that ever was in use of Mbed TLS's fixed heap.",
                self.peak,
            ),
        ] {
            bytes(e, name, help, &[(&[], value as f64)])?;
        }
        counter(
            e,
            "tls_heap_refusals",
            "Allocations that Mbed TLS's fixed heap refused; each failed a handshake.",
            &[(&[], self.refused as f64)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Snapshot, page};

    #[test]
    fn numbers_come_with_their_names_and_labels() {
        let mut counters = secure::Counters {
            done: [[1, 2], [3, 4]],
            tickets_given: 5,
            resumptions_refused: 6,
            ..secure::Counters::default()
        };
        counters.states[StateId::AwaitClientFinished as usize] = 2_000_000;
        let chains = Chains {
            hits: 7,
            misses: 8,
            entries: 9,
            capacity: 16,
        };
        let page = page(Snapshot {
            tls: Some(Tls {
                counters,
                provider: "fast",
                handshakes: 0,
                records: 0,
                tick_seconds: 1e-6,
                heap: Heap {
                    peak: 4096,
                    ..Heap::default()
                },
                listeners: vec![Listener {
                    name: "SSL".into(),
                    facts: Vec::new(),
                    loaded_at: Timestamp(0),
                    chains: Some(chains),
                }],
            }),
            ..Snapshot::default()
        });
        for line in [
            "skerry_tls_handshakes_total{version=\"TLSv1.3\",kind=\"resumed\"} 4",
            "skerry_tls_handshake_failures_total{cause=\"unknown_ca\"} 0",
            "skerry_tls_connection_failures_total{cause=\"bad_record_mac\"} 0",
            "skerry_tls_tickets_given_total 5",
            "skerry_tls_resumptions_total{result=\"refused\"} 6",
            "skerry_tls_handshake_state_cpu_seconds_total{state=\"await_client_finished\"} 2",
            "skerry_tls_chain_cache_lookups_total{listener=\"SSL\",result=\"miss\"} 8",
            "skerry_tls_chain_cache_entries{listener=\"SSL\"} 9",
            "skerry_tls_heap_peak_bytes 4096",
        ] {
            assert!(
                page.lines().any(|l| l == line || l == format!("{line}.0")),
                "{line} is not in\n{page}"
            );
        }
        assert!(!page.contains("await_server_hello"), "a server's states only");
    }
}
