//! Makes a baseline of what gungraun's runner tells as JSON on standard input: `make guard-baseline`.
//!
//! An example, since a binary would be built, with all that it needs, whenever the benches are.
#![forbid(unsafe_code)]

use std::io::{self, BufRead};
use std::process::{Command, ExitCode};

use serde_json::Value;
use skerry_bench::machine::Machine;
use skerry_guard::{COMPILER, Count, TOLERANCE_PERCENT, table};

fn main() -> ExitCode {
    match baseline() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("baseline: {why}");
            ExitCode::FAILURE
        }
    }
}

fn baseline() -> Result<String, String> {
    let mut counts = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let summary: Value = serde_json::from_str(&line).map_err(|e| format!("{line}: {e}"))?;
        counts.push(count(&summary).ok_or_else(|| format!("no instructions in {line}"))?);
    }
    if counts.is_empty() {
        return Err("no counts".into());
    }
    let valgrind = Command::new("valgrind").arg("--version").output();
    let valgrind = valgrind.map_or_else(
        |_| String::new(),
        |out| String::from_utf8_lossy(&out.stdout).trim().into(),
    );
    let machine = Machine::here();
    Ok(format!(
        "# Instructions of the hot paths\n\n- machine: {}\n- commit: {}\n- compiler: {COMPILER}\n- valgrind: {valgrind}\n- command: make guard-baseline\n\
         - tolerance: {TOLERANCE_PERCENT} %\n\n{}",
        machine.machine,
        machine.commit,
        table(&counts)
    ))
}

/// Name and instructions of one summary.
fn count(summary: &Value) -> Option<Count> {
    let name = format!(
        "{}/{}",
        summary.get("function_name")?.as_str()?,
        summary.get("id")?.as_str()?
    );
    let profiles = summary.get("profiles")?.as_array()?;
    let instructions = profiles
        .iter()
        .find_map(|profile| profile.pointer("/data/total/metrics/Ir/values/new"))?;
    Some(Count {
        name,
        instructions: instructions.as_u64()?,
    })
}
