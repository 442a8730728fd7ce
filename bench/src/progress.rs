//! What a long measurement is at: a bar on a terminal, a line for each step elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over steps that take about as long as each other. On standard error: standard output has the report.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// So many steps, none begun.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed}, about {eta} left  {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_secs(1));
        Self(bar)
    }

    /// The next step begins; those before it are done.
    pub fn begin(&self, name: &str) {
        if self.0.is_hidden() {
            eprintln!("{name}");
        } else if !self.0.message().is_empty() {
            self.0.inc(1);
        }
        self.0.set_message(name.to_owned());
    }

    /// All are done: nothing is left on the terminal.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
