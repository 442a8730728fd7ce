//! `skerry-bench medians`: what `make bench` measured last, as a report.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::machine::Machine;
use crate::report::{Cell, Column, Report, Section, column};

/// Which, and where to.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Where criterion left its results
    #[arg(long, value_name = "DIRECTORY", default_value = "target/criterion")]
    pub from: PathBuf,
    /// How they were made, for the report
    #[arg(long, value_name = "TEXT", default_value = "make bench")]
    pub command: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to PATH.json and PATH.md too
    #[arg(long, value_name = "PATH")]
    pub save: Option<PathBuf>,
}

const COLUMNS: &[Column] = &[
    column("bench", "bench"),
    column("median_ns", "median ns"),
    column("low_ns", "95 % from"),
    column("high_ns", "to"),
    column("mb_per_second", "MB/s"),
    column("elements_per_second", "elements/s"),
];

/// One bench.
#[derive(Clone, Debug, PartialEq)]
struct Median {
    name: String,
    nanos: [f64; 3],
    bytes: Option<f64>,
    elements: Option<f64>,
}

/// Reads and reports them.
///
/// Errors: there are none, or they cannot be read.
pub fn run(args: &Args) -> Result<(), String> {
    let mut medians = Vec::new();
    collect(&args.from, &mut medians)?;
    if medians.is_empty() {
        return Err(format!("no results in {}: make bench", args.from.display()));
    }
    medians.sort_by(|a, b| a.name.cmp(&b.name));
    let mut sections: Vec<Section> = Vec::new();
    for median in &medians {
        let layer = median.name.split('/').next().unwrap_or_default();
        if sections.last().is_none_or(|section| section.name != layer) {
            sections.push(Section {
                name: layer.into(),
                columns: COLUMNS,
                rows: Vec::new(),
            });
        }
        let rate = |amount: Option<f64>, unit: f64| amount.map(|amount| amount / median.nanos[0] * 1e9 / unit);
        if let Some(section) = sections.last_mut() {
            section.rows.push(vec![
                Cell::from(median.name.as_str()),
                median.nanos[0].into(),
                median.nanos[1].into(),
                median.nanos[2].into(),
                rate(median.bytes, 1e6).into(),
                rate(median.elements, 1.0).into(),
            ]);
        }
    }
    let report = Report {
        machine: Machine {
            command: args.command.clone(),
            ..Machine::here()
        },
        about: vec![("units", "wall time of one call; MB are 10^6 bytes".into())],
        sections,
    };
    report.print(args.json);
    match &args.save {
        Some(path) => report.save(path),
        None => Ok(()),
    }
}

/// Every bench below a directory: one is where `new/benchmark.json` is.
fn collect(directory: &Path, out: &mut Vec<Median>) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", directory.display());
    for entry in fs::read_dir(directory).map_err(|e| failed(&e))? {
        let path = entry.map_err(|e| failed(&e))?.path();
        if path.ends_with("new") && path.join("benchmark.json").exists() {
            let read = |name: &str| -> Result<Value, String> {
                let text = fs::read_to_string(path.join(name)).map_err(|e| failed(&e))?;
                serde_json::from_str(&text).map_err(|e| failed(&e))
            };
            let median = median(&read("benchmark.json")?, &read("estimates.json")?);
            out.push(median.ok_or_else(|| failed(&"results of another form"))?);
        } else if path.is_dir() {
            collect(&path, out)?;
        }
    }
    Ok(())
}

fn median(benchmark: &Value, estimates: &Value) -> Option<Median> {
    let estimate = |path: &str| estimates.pointer(path)?.as_f64();
    let amount = |kind: &str| benchmark.pointer(&format!("/throughput/{kind}"))?.as_f64();
    Some(Median {
        name: benchmark.get("full_id")?.as_str()?.into(),
        nanos: [
            estimate("/median/point_estimate")?,
            estimate("/median/confidence_interval/lower_bound")?,
            estimate("/median/confidence_interval/upper_bound")?,
        ],
        bytes: amount("Bytes"),
        elements: amount("Elements"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_tests::process::TempDir;

    #[test]
    fn results_are_found_wherever_they_lie() {
        let directory = TempDir::new();
        let new = directory.path().join("codec_Fetch/decode/new");
        fs::create_dir_all(&new).unwrap();
        fs::write(
            new.join("benchmark.json"),
            r#"{"full_id":"codec/Fetch/decode","throughput":{"Bytes":100}}"#,
        )
        .unwrap();
        let interval = r#""confidence_interval":{"lower_bound":49.0,"upper_bound":51.0}"#;
        fs::write(
            new.join("estimates.json"),
            format!(r#"{{"median":{{"point_estimate":50.0,{interval}}}}}"#),
        )
        .unwrap();
        let mut found = Vec::new();
        collect(directory.path(), &mut found).unwrap();
        let wanted = Median {
            name: "codec/Fetch/decode".into(),
            nanos: [50.0, 49.0, 51.0],
            bytes: Some(100.0),
            elements: None,
        };
        assert_eq!(found, [wanted]);
    }
}
