//! Where log lines go: standard error, one line per event, written by one call.
//!
//! The line is made on the stack, so logging allocates nothing. What a peer may have put into a message cannot break the line:
//! control characters are written as escapes. Own code, as `env_logger` allocates for each line and brings a time library for
//! the timestamp.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use log::{LevelFilter, Log, Metadata, Record};
use skerry_core::time::{Instant, Millis};

/// Bytes of the longest line. When full: the line ends in `…`.
const LINE_BYTES: usize = 2048;

/// Sends log lines to standard error from now on; only the first call counts.
///
/// `directives` is what `RUST_LOG` may say: a level, or `target=level`, separated by commas; the longest target that fits
/// decides.
///
/// Errors: the directive that cannot be read.
pub fn start(directives: &str) -> Result<(), String> {
    static SINK: OnceLock<Sink> = OnceLock::new();
    let filters = Filters::read(directives)?;
    log::set_max_level(filters.most());
    let sink = SINK.get_or_init(|| Sink { filters });
    // A second start finds the first sink in place and leaves it.
    let _ = log::set_logger(sink);
    Ok(())
}

struct Sink {
    filters: Filters,
}

impl Log for Sink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.filters.of(metadata.target())
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = Line::new();
        // A line that is full takes no more, which is no error.
        let _ = write!(
            line,
            "{} {:<5} {}: ",
            Utc(since.as_millis()),
            record.level(),
            record.target()
        );
        let _ = write!(line, "{}", record.args());
        // There is nowhere to tell that standard error is gone.
        let _ = std::io::stderr().write_all(line.ended());
    }

    fn flush(&self) {}
}

/// Which levels pass, by target.
struct Filters {
    /// Target prefix and level; the empty prefix fits all.
    by_target: Vec<(String, LevelFilter)>,
}

impl Filters {
    fn read(directives: &str) -> Result<Self, String> {
        let mut by_target = vec![(String::new(), LevelFilter::Info)];
        for directive in directives.split(',').map(str::trim).filter(|d| !d.is_empty()) {
            let (target, level) = directive.split_once('=').unwrap_or(("", directive));
            let Ok(level) = level.trim().parse() else {
                return Err(format!(
                    "log level {directive}: allowed: off, error, warn, info, debug or trace, or target=level"
                ));
            };
            by_target.push((target.trim().into(), level));
        }
        Ok(Self { by_target })
    }

    fn of(&self, target: &str) -> LevelFilter {
        let fits = self
            .by_target
            .iter()
            .filter(|(prefix, _)| target.starts_with(prefix.as_str()));
        fits.max_by_key(|(prefix, _)| prefix.len())
            .map_or(LevelFilter::Info, |(_, level)| *level)
    }

    fn most(&self) -> LevelFilter {
        self.by_target
            .iter()
            .map(|(_, level)| *level)
            .max()
            .unwrap_or(LevelFilter::Info)
    }
}

/// One line under way.
struct Line {
    bytes: heapless::Vec<u8, LINE_BYTES>,
    full: bool,
}

impl Line {
    /// Room kept for the end: `…` and the line feed.
    const END: usize = 4;

    const fn new() -> Self {
        Self {
            bytes: heapless::Vec::new(),
            full: false,
        }
    }

    fn add(&mut self, piece: &str) {
        if self.full || self.bytes.len() + piece.len() + Self::END > LINE_BYTES {
            self.full = true;
        } else {
            let _ = self.bytes.extend_from_slice(piece.as_bytes());
        }
    }

    fn ended(&mut self) -> &[u8] {
        let end: &[u8] = if self.full { "…\n".as_bytes() } else { b"\n" };
        let _ = self.bytes.extend_from_slice(end);
        &self.bytes
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if c.is_control() {
                for escaped in c.escape_default() {
                    self.add(escaped.encode_utf8(&mut [0; 4]));
                }
            } else {
                self.add(c.encode_utf8(&mut [0; 4]));
            }
        }
        Ok(())
    }
}

/// Milliseconds since 1970 as `2026-11-30T18:35:50.123Z`.
pub struct Utc(pub u128);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, day_ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        // Days counted from 0000-03-01, so that a leap day is the last of its year (Hinnant, `civil_from_days`).
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (year, month) = (era * 400 + year + month / 10, (month + 2) % 12 + 1);
        let (hour, minute) = (day_ms / 3_600_000, day_ms / 60_000 % 60);
        let (second, ms) = (day_ms / 1000 % 60, day_ms % 1000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        )
    }
}

/// Keeps a line that a peer can cause from flooding the log: at most `burst` lines in each `per`.
///
/// When full: the line is counted instead, and the next that passes tells how many were not written.
///
/// ```
/// # use skerry_broker::logging::RateLimited;
/// # use skerry_core::time::{Instant, Millis};
/// # let (now, peer) = (Instant::from_micros(0), "10.0.0.7:4711");
/// let mut garbage = RateLimited::new(5, Millis(1000));
/// if let Some(missed) = garbage.admit(now) {
///     log::warn!("{peer} sent no Kafka frame; closed{missed}");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct RateLimited {
    burst: u32,
    per: Millis,
    since: Instant,
    written: u32,
    missed: u32,
}

/// How many lines were not written since the last that was; shown as nothing when there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed(pub u32);

impl RateLimited {
    /// At most `burst` lines in each `per`.
    #[must_use]
    pub const fn new(burst: u32, per: Millis) -> Self {
        Self {
            burst,
            per,
            since: Instant::from_micros(0),
            written: 0,
            missed: 0,
        }
    }

    /// Whether a line may be written now; if so, how many were not before it.
    pub fn admit(&mut self, now: Instant) -> Option<Missed> {
        if now.since(self.since) >= self.per {
            self.since = now;
            self.written = 0;
        }
        if self.written >= self.burst {
            self.missed = self.missed.saturating_add(1);
            return None;
        }
        self.written += 1;
        Some(Missed(std::mem::take(&mut self.missed)))
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            n => write!(f, " ({n} more like this not written)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_utc() {
        assert_eq!(Utc(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Utc(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Utc(1_709_251_199_999).to_string(), "2024-02-29T23:59:59.999Z");
        assert_eq!(Utc(1_796_064_950_123).to_string(), "2026-11-30T18:55:50.123Z");
        assert_eq!(Utc(4_102_444_800_000).to_string(), "2100-01-01T00:00:00.000Z");
    }

    #[test]
    fn the_longest_target_that_fits_decides() {
        let filters = Filters::read("warn, skerry_broker=debug ,skerry_broker::log=off").unwrap();
        assert_eq!(filters.of("other"), LevelFilter::Warn);
        assert_eq!(filters.of("skerry_broker::conn"), LevelFilter::Debug);
        assert_eq!(filters.of("skerry_broker::log::segment"), LevelFilter::Off);
        assert_eq!(filters.most(), LevelFilter::Debug);
        assert_eq!(Filters::read("").unwrap().of("any"), LevelFilter::Info);
        assert_eq!(
            Filters::read("loud").err().as_deref(),
            Some("log level loud: allowed: off, error, warn, info, debug or trace, or target=level")
        );
    }

    #[test]
    fn a_message_cannot_break_its_line_or_outgrow_it() {
        let mut line = Line::new();
        write!(line, "client \"a\nb\x1b[31m\u{85}\"").unwrap();
        assert_eq!(line.ended(), b"client \"a\\nb\\u{1b}[31m\\u{85}\"\n");

        let mut line = Line::new();
        write!(line, "{}", "é".repeat(LINE_BYTES)).unwrap();
        let text = std::str::from_utf8(line.ended()).unwrap();
        assert!(text.ends_with("é…\n") && text.len() <= LINE_BYTES);
    }

    #[test]
    fn a_flood_is_counted_not_written() {
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        let mut limited = RateLimited::new(2, Millis(1000));
        assert_eq!(limited.admit(at(5)), Some(Missed(0)));
        assert_eq!(limited.admit(at(6)), Some(Missed(0)));
        assert_eq!(limited.admit(at(7)), None);
        assert_eq!(limited.admit(at(900)), None);
        assert_eq!(limited.admit(at(1005)), Some(Missed(2)));
        assert_eq!(limited.admit(at(1006)), Some(Missed(0)));
        assert_eq!(limited.admit(at(1007)), None);
        assert_eq!(Missed(2).to_string(), " (2 more like this not written)");
        assert_eq!(Missed(0).to_string(), "");
    }
}
