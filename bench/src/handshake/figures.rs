//! The charts of the report on handshakes.

use skerry_tls::state::StateId;

use super::loopback;
use super::memory::Measured;
use super::server::Peer;
use super::table::in_memory_phases;
use super::timeline::timeline;
use super::{Kind, OURS};
use crate::report::Figure;
use crate::report::chart::{Chart, Row, Series, curves};

/// What was measured of one kind.
pub struct Results {
    pub kind: Kind,
    pub memory: Vec<Measured>,
    pub loopback: Vec<loopback::Measured>,
}

/// Every chart for which something was measured.
///
/// Errors: the drawing's.
pub fn figures(results: &[Results]) -> Result<Vec<Figure>, String> {
    let mut all = Vec::new();
    let main: Vec<&Results> = results.iter().filter(|one| one.kind.is_main()).collect();
    let failing: Vec<&Results> = results.iter().filter(|one| one.kind.fault.is_some()).collect();
    let hellos: Vec<&Results> = results.iter().filter(|one| one.kind.hello_bytes > 0).collect();
    let mut push = |title: &str, caption: &str, svg: String| {
        all.push(Figure {
            title: title.into(),
            caption: caption.into(),
            svg,
        });
    };
    let medians = |one: &Results| values(one.memory.iter().map(|m| (m.name.as_str(), m.times.median())));
    let nets = |one: &Results| values(one.loopback.iter().map(|m| (m.name.as_str(), m.net())));

    if let Some(chart) = compared(&main, "CPU of one handshake ÷ Skerry's", &medians, true) {
        let caption = "In memory, medians; Skerry is the line at 1, right of it is dearer. The floor is the handshake's bare primitives.";
        push("Ratios to Skerry", caption, chart.dots(Some(1.0))?);
    }
    if let Some(chart) = compared(&main, "CPU of the server for one handshake, µs", &nets, false) {
        let caption = "A process each, over loopback, less what a connection without a byte costs; medians.";
        push("Over loopback", caption, chart.dots(None)?);
    }
    for name in [OURS, "skerry-mbedtls"] {
        let splits = main.iter().filter_map(|one| {
            let found = one.memory.iter().find(|m| m.name == name)?;
            Some((one.kind, found.split.as_ref()?))
        });
        let splits: Vec<_> = splits.collect();
        if splits.is_empty() {
            continue;
        }
        let phases = in_memory_phases().map(|phase| spelled(phase.name()));
        let series = numbered(phases, &["caller", "unclaimed"]);
        let rows = splits.iter().map(|(kind, split)| Row {
            name: kind.to_string(),
            values: in_memory_phases()
                .map(|phase| Some(split.phases[phase as usize]))
                .chain([Some(split.caller), Some(split.unclaimed)])
                .collect(),
        });
        let chart = Chart {
            axis: "CPU of the server for one handshake, µs".into(),
            rows: rows.collect(),
            series,
        };
        push(
            &format!("{name}, by phase"),
            "In memory, means of the middle half.",
            chart.stacked()?,
        );

        // TLS 1.2 has states of its own for what 1.3 has, too.
        let plain = |state: StateId| spelled(state.name().trim_end_matches("_12"));
        let mut states = Vec::new();
        for (state, _) in splits.iter().flat_map(|(_, split)| &split.states) {
            if !states.contains(&plain(*state)) {
                states.push(plain(*state));
            }
        }
        let rows = splits.iter().map(|(kind, split)| {
            let spent = |wanted: &String| {
                let found = split.states.iter().filter(|(state, _)| plain(*state) == *wanted);
                found.map(|(_, spent)| spent).sum()
            };
            Row {
                name: kind.to_string(),
                values: states
                    .iter()
                    .map(|state| Some(spent(state)))
                    .chain([split.opening, split.caller + split.unclaimed].map(Some))
                    .collect(),
            }
        });
        let chart = Chart {
            axis: "CPU of the server for one handshake, µs".into(),
            rows: rows.collect(),
            series: numbered(states.iter().cloned(), &["records", "caller and unclaimed"]),
        };
        push(
            &format!("{name}, by state"),
            "In memory, by the state that a message found; records: opened before their state is asked.",
            chart.stacked()?,
        );
    }
    if let Some(chart) = compared(&failing, "CPU of the server until it fails, µs", &medians, false) {
        push(
            "Handshakes that fail",
            "In memory, medians, from the earliest failure to the latest.",
            chart.dots(None)?,
        );
    }
    if let Some(chart) = compared(&hellos, "CPU of the server for one handshake, µs", &medians, false) {
        push("Longer ClientHellos", "In memory, medians.", chart.dots(None)?);
    }
    for one in &main {
        let lines: Vec<_> = one.memory.iter().map(|m| (server(&m.name), distribution(m))).collect();
        if lines.iter().any(|(_, points)| !points.is_empty()) {
            let svg = curves(
                "CPU of the server for one handshake, µs",
                "% of handshakes",
                true,
                &lines,
            )?;
            push(
                &format!("{}: distribution", one.kind),
                "In memory: so many handshakes cost at most so much.",
                svg,
            );
        }
    }
    for kind in [Kind::MAIN[0], Kind::MAIN[1]] {
        if main.iter().any(|one| one.kind == kind) {
            let caption = "In memory; each blue bar is the CPU that a message took in the state that it found.";
            push(
                &format!("{kind}: one handshake along time"),
                caption,
                timeline(kind, OUR_PEER)?,
            );
        }
    }
    Ok(all)
}

/// A server's name, in the colour that it has in every chart.
fn server(name: &str) -> Series {
    let all = [
        OURS,
        "rustls",
        "skerry-mbedtls",
        "openssl",
        "mbedtls",
        "rustls-ring",
        loopback::BROKER,
        "floor",
        "floor-mbedtls",
    ];
    Series {
        name: name.into(),
        colour: all.iter().position(|one| *one == name).unwrap_or(0),
    }
}

/// The name of a phase or state, in words.
fn spelled(name: &str) -> String {
    name.replace('_', " ")
}

/// Series in the colours as they come, and such as are the rest: grey and black.
fn numbered(names: impl Iterator<Item = String>, rest: &[&str]) -> Vec<Series> {
    let rest = rest.iter().rev().zip([GREY, GREY + 1]).map(|(name, colour)| Series {
        name: (*name).into(),
        colour,
    });
    let rest: Vec<Series> = rest.collect();
    names
        .enumerate()
        .map(|(colour, name)| Series { name, colour })
        .chain(rest.into_iter().rev())
        .collect()
}

/// The number of grey; black comes after it.
const GREY: usize = 7;

/// Whose timeline is drawn.
pub const OUR_PEER: Peer = Peer::Skerry(skerry_tls::crypto::either::Choice::Fast);

type Values = Vec<(String, f64)>;

fn values<'a>(found: impl Iterator<Item = (&'a str, Option<f64>)>) -> Values {
    found
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Kinds in rows, servers in series; in multiples of ours where that is asked for.
fn compared(results: &[&Results], axis: &str, of: &dyn Fn(&Results) -> Values, as_ratios: bool) -> Option<Chart> {
    let found: Vec<(Kind, Values)> = results.iter().map(|one| (one.kind, of(one))).collect();
    let mut series: Vec<Series> = Vec::new();
    for (name, _) in found.iter().flat_map(|(_, values)| values) {
        if !series.contains(&server(name)) {
            series.push(server(name));
        }
    }
    let rows = found.iter().filter_map(|(kind, values)| {
        let value = |wanted: &str| values.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
        let unit = if as_ratios { value(OURS)? } else { 1.0 };
        Some(Row {
            name: kind.to_string(),
            values: series.iter().map(|series| Some(value(&series.name)? / unit)).collect(),
        })
    });
    let rows: Vec<Row> = rows.collect();
    (!series.is_empty() && rows.iter().any(|row| row.values.iter().any(Option::is_some))).then(|| Chart {
        axis: axis.into(),
        series,
        rows,
    })
}

/// Percents of handshakes over what they cost at most.
fn distribution(measured: &Measured) -> Vec<(f64, f64)> {
    (0..=99)
        .filter_map(|percent| Some((measured.times.quantile(f64::from(percent) / 100.0)?, f64::from(percent))))
        .collect()
}
