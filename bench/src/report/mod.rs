//! What was measured, as a table for a person or as JSON for a program.

pub mod chart;
mod page;
mod progress;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub use page::{Figure, page, write};
pub use progress::Progress;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use crate::machine::Machine;

/// A column of a section.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in JSON, unit last.
    pub name: &'static str,
    /// Its head in a table.
    pub head: &'static str,
}

/// Makes a column.
#[must_use]
pub const fn column(name: &'static str, head: &'static str) -> Column {
    Column { name, head }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// Not measured.
    None,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::None, Self::Number)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Cell {
    /// For a table: three significant digits are what these measurements are good for.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(n) => grouped(*n as f64),
            Self::Number(n) if n.abs() >= 100.0 || *n == 0.0 => grouped(*n),
            Self::Number(n) if n.abs() >= 10.0 => format!("{n:.1}"),
            Self::Number(n) if n.abs() >= 1.0 => format!("{n:.2}"),
            Self::Number(n) => format!("{n:.3}"),
            Self::None => "–".into(),
        }
    }

    const fn is_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Count(_) | Self::None)
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(n) => json!(n),
            Self::Number(n) => json!((n * 1000.0).round() / 1000.0),
            Self::None => Value::Null,
        }
    }
}

/// A whole number with commas between its thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let rest = digits.len() - at;
        if at > 0 && rest.is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A table of one kind of measurement.
#[derive(Clone, Debug)]
pub struct Section {
    /// What was measured.
    pub name: String,
    /// Its columns.
    pub columns: &'static [Column],
    /// Its rows, a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Section {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(self.columns.iter().map(|c| c.head));
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::text));
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            let is_number = self
                .rows
                .iter()
                .any(|row| matches!(row.get(at), Some(Cell::Number(_) | Cell::Count(_))));
            if is_number {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row);
            Value::Object(cells.map(|(c, cell)| (c.name.to_owned(), cell.json())).collect())
        });
        json!({ "name": self.name, "rows": rows.collect::<Vec<_>>() })
    }
}

/// Everything that one command measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// On what.
    pub machine: Machine,
    /// What else must be known to read it.
    pub about: Vec<(&'static str, String)>,
    /// What.
    pub sections: Vec<Section>,
}

impl Report {
    fn lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let about = self.about.iter().map(|(name, value)| (*name, value.as_str()));
        self.machine.lines().into_iter().chain(about)
    }

    /// For a person, and for a page: the tables are Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for (name, value) in self.lines() {
            let _ = writeln!(out, "- {name}: {value}");
        }
        for section in &self.sections {
            let _ = writeln!(out, "\n## {}\n\n{}", section.name, section.table());
        }
        out
    }

    /// For a program.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut out: Map<String, Value> = self
            .lines()
            .map(|(name, value)| (name.replace(' ', "_"), json!(value)))
            .collect();
        let sections: Vec<_> = self.sections.iter().map(Section::json).collect();
        out.insert("sections".into(), json!(sections));
        Value::Object(out)
    }

    /// Writes it to `path` with `.json`, and with `.md`.
    ///
    /// Errors: the file system's.
    pub fn save(&self, path: &Path) -> Result<(), String> {
        for (extension, text) in [("json", format!("{:#}\n", self.json())), ("md", self.markdown())] {
            let path = format!("{}.{extension}", path.display());
            fs::write(&path, text).map_err(|e| format!("{path}: {e}"))?;
        }
        Ok(())
    }

    /// Prints it: JSON, or tables.
    pub fn print(&self, json: bool) {
        if json {
            println!("{:#}", self.json());
        } else {
            print!("{}", self.markdown());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.239, "1.24"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.4, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-123.0, "-123"),
        ] {
            assert_eq!(Cell::Number(number).text(), text);
        }
    }
}
