//! One handshake along time: which state the server was in, what each took of its CPU, and what came and went.

use std::time::{Duration, Instant};

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use skerry_net::host::Clock as _;
use skerry_net::linux::LinuxClock;

use super::Kind;
use super::memory::{Call, Meeting};
use super::server::Peer;
use crate::report::chart::{self, FAINT, TEXT, colour, short, text};

/// Handshakes of which the middle one is drawn.
const TRIED: usize = 201;

/// A piece of a lane, in microseconds.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    lane: &'static str,
    from: f64,
    to: f64,
}

/// A call of the server: when, and the bytes that it took and gave.
#[derive(Clone, Debug, PartialEq)]
struct Visit {
    from: f64,
    to: f64,
    call: Call,
}

/// One handshake.
#[derive(Clone, Debug, Default)]
struct Timeline {
    pieces: Vec<Piece>,
    visits: Vec<Visit>,
}

/// The lane of records that are opened before their state is asked, and of whatever else is done in a call.
const RECORDS: &str = "records and the rest";

impl Timeline {
    /// From the calls of one handshake, each with the ticks at which it began and ended, and the steps noted. All of it took `whole`.
    fn of(meeting: &Meeting, times: &[(u64, u64)], whole: Duration) -> Option<Self> {
        let steps = meeting.notes()?.trail.steps();
        let origin = times.first()?.0;
        let all = times.last()?.1.saturating_sub(origin);
        let scale = whole.as_secs_f64() * 1e6 / all.max(1) as f64;
        let micros = |ticks: u64| ticks.saturating_sub(origin) as f64 * scale;
        let mut line = Self::default();
        let mut taken = 0;
        for (call, (began, ended)) in meeting.calls().iter().zip(times) {
            let (from, to) = (micros(*began), micros(*ended));
            let now = steps.get(taken..call.steps).unwrap_or_default();
            taken = call.steps;
            let stepped: f64 = now.iter().map(|step| step.ticks.0 as f64 * scale).sum();
            let mut at = (to - stepped).max(from);
            line.pieces.push(Piece {
                lane: RECORDS,
                from,
                to: at,
            });
            for step in now {
                let end = (at + step.ticks.0 as f64 * scale).min(to);
                line.pieces.push(Piece {
                    lane: step.from.name(),
                    from: at,
                    to: end,
                });
                at = end;
            }
            line.visits.push(Visit { from, to, call: *call });
        }
        Some(line)
    }

    fn spent(&self) -> f64 {
        self.visits.iter().map(|visit| visit.to - visit.from).sum()
    }
}

/// Draws the middle one of many handshakes of that kind with our engine. The client's own work is the gap between the calls.
///
/// Errors: the handshake's, or the drawing's.
pub fn timeline(kind: Kind, peer: Peer) -> Result<String, String> {
    let mut meeting = Meeting::new(peer, kind)?;
    let mut lines = Vec::new();
    for _ in 0..TRIED {
        let mut times = Vec::new();
        let mut clock = LinuxClock::new();
        let mut first = None;
        let mut whole = Duration::ZERO;
        meeting.shake(|server| {
            let start = *first.get_or_insert_with(Instant::now);
            let began = clock.ticks().0;
            let served = server();
            times.push((began, clock.ticks().0));
            whole = start.elapsed();
            served
        })?;
        lines.extend(Timeline::of(&meeting, &times, whole));
    }
    lines.sort_by(|a, b| a.spent().total_cmp(&b.spent()));
    let line = lines
        .get(lines.len() / 2)
        .ok_or("a timeline is there of Skerry's engine only")?;
    line.draw()
}

/// Pixels: of the bytes above, of a lane, of the axis below, of the names on the left.
const BYTES: u32 = 74;
const LANE: u32 = 40;
const AXIS: u32 = 52;
const NAMES: u32 = 230;

impl Timeline {
    fn draw(&self) -> Result<String, String> {
        let mut lanes: Vec<&str> = Vec::new();
        for piece in &self.pieces {
            if !lanes.contains(&piece.lane) {
                lanes.push(piece.lane);
            }
        }
        let end = self.visits.last().map_or(0.0, |visit| visit.to);
        let size = (chart::WIDTH, BYTES + lanes.len() as u32 * LANE + AXIS);
        chart::draw(size, |sheet| {
            let mut axes = ChartBuilder::on(sheet)
                .margin_top(BYTES)
                .margin_right(80)
                .set_label_area_size(LabelAreaPosition::Left, NAMES)
                .set_label_area_size(LabelAreaPosition::Bottom, AXIS)
                .build_cartesian_2d(0.0..end, lanes.len() as f64..0.0)?;
            axes.configure_mesh()
                .disable_y_mesh()
                .disable_y_axis()
                .light_line_style(TRANSPARENT)
                .bold_line_style(FAINT)
                .label_style(("sans-serif", 14))
                .x_label_formatter(&|x| short(*x))
                .x_desc("µs since the ClientHello came; between the server's calls the client works")
                .draw()?;
            for visit in &self.visits {
                let area = [(visit.from, 0.0), (visit.to, lanes.len() as f64)];
                axes.draw_series([Rectangle::new(area, colour(4).mix(0.15).filled())])?;
            }
            for (number, lane) in lanes.iter().enumerate() {
                let mut spent = 0.0;
                for piece in self.pieces.iter().filter(|piece| piece.lane == *lane) {
                    let (top, bottom) = (number as f64 + 0.2, number as f64 + 0.8);
                    let fill = if *lane == RECORDS { colour(7) } else { colour(0) };
                    axes.draw_series([Rectangle::new([(piece.from, top), (piece.to, bottom)], fill.filled())])?;
                    spent += piece.to - piece.from;
                }
                let last = self.pieces.iter().rfind(|piece| piece.lane == *lane);
                let (x, y) = axes.backend_coord(&(last.map_or(0.0, |piece| piece.to), number as f64 + 0.5));
                let (left, _) = axes.backend_coord(&(0.0, 0.0));
                let name = Text::new(
                    lane.replace('_', " "),
                    (left - 8, y),
                    text(HPos::Right, VPos::Center, TEXT),
                );
                sheet.draw(&name)?;
                let value = format!("{} µs", short(spent));
                sheet.draw(&Text::new(value, (x + 6, y), text(HPos::Left, VPos::Center, TEXT)))?;
            }
            let (left, top) = axes.backend_coord(&(0.0, 0.0));
            for (name, y) in [("bytes in", top - 52), ("bytes out", top - 22)] {
                sheet.draw(&Text::new(name, (left - 8, y), text(HPos::Right, VPos::Center, TEXT)))?;
            }
            for visit in &self.visits {
                let (x, _) = axes.backend_coord(&(visit.from, 0.0));
                let came = format!("↓ {}", visit.call.came);
                sheet.draw(&Text::new(came, (x, top - 52), text(HPos::Left, VPos::Center, TEXT)))?;
                sheet.draw(&PathElement::new([(x, top - 42), (x, top)], TEXT))?;
                if visit.call.went > 0 {
                    let (x, _) = axes.backend_coord(&(visit.to, 0.0));
                    let went = format!("↑ {}", visit.call.went);
                    sheet.draw(&Text::new(went, (x, top - 22), text(HPos::Left, VPos::Center, TEXT)))?;
                    sheet.draw(&PathElement::new([(x, top - 12), (x, top)], TEXT))?;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_tls::crypto::either::Choice;

    #[test]
    fn a_handshake_has_its_states_and_its_bytes() {
        let svg = timeline(Kind::MAIN[0], Peer::Skerry(Choice::Fast)).unwrap();
        for words in ["await client hello", "await client finished", "bytes in", "↓", "↑"] {
            assert!(svg.contains(words), "{words} in {svg}");
        }
    }
}
