//! How far a long measurement is: a bar on a terminal, lines elsewhere, both on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Columns of the longest bar.
const BAR_COLUMNS: f64 = 40.0;

/// The progress of one measurement of several steps.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of so many steps.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}, {eta} left") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// A step begins; the one before it is done.
    pub fn begin(&self, name: &str) {
        if !self.0.message().is_empty() {
            self.0.inc(1);
        }
        self.0.set_message(name.to_owned());
    }

    /// Shows what came out, as bars of one scale. What was not measured is left out.
    pub fn tell<'a>(&self, title: &str, unit: &str, values: impl Iterator<Item = (&'a str, Option<f64>)>) {
        let values: Vec<(&str, f64)> = values.filter_map(|(name, value)| Some((name, value?))).collect();
        let most = values.iter().fold(0.0, |most: f64, (_, value)| most.max(*value));
        self.say(title);
        for (name, value) in values {
            let bar = "█".repeat((BAR_COLUMNS * value / most).round() as usize);
            self.say(&format!("  {name:<20} {value:>9.1} {unit} {bar}"));
        }
    }

    fn say(&self, line: &str) {
        if self.0.is_hidden() {
            eprintln!("{line}");
        } else {
            self.0.println(line);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
