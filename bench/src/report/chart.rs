//! Charts, drawn as SVG. Every series has a name in a legend and a colour that people with colour blindness can tell from the others (the palette
//! of Okabe and Ito); axes have units.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Nine colours: the last two are for what is left over and for what others are held against.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xf0, 0xe4, 0x42),
    RGBColor(0x88, 0x88, 0x88),
    BLACK,
];

/// Of words and lines.
pub const TEXT: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Of what stays in the background.
pub const FAINT: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Of every chart, in pixels.
pub const WIDTH: u32 = 980;
const ROW: u32 = 30;
const LEGEND_ROW: u32 = 24;
/// Left of the axis, for the names of rows.
const NAMES: u32 = 210;
/// Below, for the axis's numbers and its unit.
const AXIS: u32 = 52;
const FONT: &str = "sans-serif";
const SIZE: i32 = 14;

/// Where charts are drawn.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A colour by its number.
#[must_use]
pub const fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// What a colour stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its colour's number: the same in all charts of a page that have it.
    pub colour: usize,
}

/// Text with its anchor at one side.
pub fn text(h: HPos, v: VPos, colour: RGBColor) -> TextStyle<'static> {
    (FONT, SIZE).into_font().color(&colour).pos(Pos::new(h, v))
}

/// Black or white, whichever is better read on `ground`.
const fn ink(ground: RGBColor) -> RGBColor {
    let RGBColor(r, g, b) = ground;
    if r as u32 * 299 + g as u32 * 587 + b as u32 * 114 > 140_000 {
        BLACK
    } else {
        WHITE
    }
}

/// Draws on a white sheet.
///
/// Errors: the library's, as text.
pub fn draw(
    size: (u32, u32),
    with: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, String> {
    let mut svg = String::new();
    {
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = sheet.fill(&WHITE).map_err(Into::into).and_then(|()| with(&sheet));
        drawn
            .and_then(|()| sheet.present().map_err(Into::into))
            .map_err(|e: Box<dyn std::error::Error>| format!("chart: {e}"))?;
    }
    Ok(svg)
}

/// About how wide a text is.
fn width(text: &str) -> i32 {
    text.chars().count() as i32 * SIZE * 56 / 100
}

/// Where each entry of a legend goes, and how many rows that makes.
fn legend_places(series: &[Series]) -> (Vec<(i32, i32)>, u32) {
    let (mut x, mut row) = (12, 0);
    let places = series
        .iter()
        .map(|Series { name, .. }| {
            let wide = width(name) + 44;
            if x + wide > WIDTH as i32 && x > 12 {
                (x, row) = (12, row + 1);
            }
            let place = (x, row * LEGEND_ROW as i32 + 6);
            x += wide;
            place
        })
        .collect();
    (places, row as u32 + 1)
}

fn legend(sheet: &Area<'_>, all: &[Series]) -> Result<(), Box<dyn std::error::Error>> {
    for (series, (x, y)) in all.iter().zip(legend_places(all).0) {
        sheet.draw(&Rectangle::new(
            [(x, y), (x + 14, y + 14)],
            colour(series.colour).filled(),
        ))?;
        sheet.draw(&Text::new(
            series.name.clone(),
            (x + 20, y + 7),
            text(HPos::Left, VPos::Center, TEXT),
        ))?;
    }
    Ok(())
}

/// Values of one name, one for each series; none where there is none.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Of each series.
    pub values: Vec<Option<f64>>,
}

/// Rows of values of the same series.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What the axis shows, with its unit.
    pub axis: String,
    /// The series.
    pub series: Vec<Series>,
    /// The rows, top down.
    pub rows: Vec<Row>,
}

impl Chart {
    fn size(&self) -> (u32, u32, u32) {
        let head = legend_places(&self.series).1 * LEGEND_ROW + 8;
        (WIDTH, head + self.rows.len() as u32 * ROW + AXIS, head)
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().flat_map(|row| row.values.iter().flatten().copied())
    }

    /// One bar for each row, its parts side by side.
    ///
    /// Errors: as [`draw`].
    pub fn stacked(&self) -> Result<String, String> {
        let (wide, high, head) = self.size();
        let sum = |row: &Row| row.values.iter().flatten().map(|v| v.max(0.0)).sum::<f64>();
        let most = self.rows.iter().map(sum).fold(0.0, f64::max);
        draw((wide, high), |sheet| {
            legend(sheet, &self.series)?;
            let mut chart = ChartBuilder::on(sheet)
                .margin_top(head)
                .margin_right(70)
                .set_label_area_size(LabelAreaPosition::Left, NAMES)
                .set_label_area_size(LabelAreaPosition::Bottom, AXIS)
                .build_cartesian_2d(0.0..most, self.rows.len() as f64..0.0)?;
            chart
                .configure_mesh()
                .disable_y_mesh()
                .disable_y_axis()
                .light_line_style(TRANSPARENT)
                .bold_line_style(FAINT)
                .label_style((FONT, SIZE))
                .x_label_formatter(&|x| short(*x))
                .x_desc(&self.axis)
                .draw()?;
            for (at, row) in self.rows.iter().enumerate() {
                let (top, middle) = (at as f64 + 0.15, at as f64 + 0.5);
                let mut from = 0.0;
                for (series, value) in self.series.iter().zip(&row.values) {
                    let value = value.unwrap_or(0.0).max(0.0);
                    let fill = colour(series.colour);
                    chart.draw_series([Rectangle::new([(from, top), (from + value, top + 0.7)], fill.filled())])?;
                    let (left, _) = chart.backend_coord(&(from, middle));
                    let (right, y) = chart.backend_coord(&(from + value, middle));
                    let label = short(value);
                    if right - left > width(&label) + 6 {
                        let style = text(HPos::Center, VPos::Center, ink(fill));
                        sheet.draw(&Text::new(label, (i32::midpoint(left, right), y), style))?;
                    }
                    from += value;
                }
                let (left, y) = chart.backend_coord(&(0.0, middle));
                let (right, _) = chart.backend_coord(&(from, middle));
                sheet.draw(&Text::new(
                    row.name.clone(),
                    (left - 8, y),
                    text(HPos::Right, VPos::Center, TEXT),
                ))?;
                sheet.draw(&Text::new(
                    short(from),
                    (right + 8, y),
                    text(HPos::Left, VPos::Center, TEXT),
                ))?;
            }
            Ok(())
        })
    }

    /// A dot for each value, on a logarithmic axis, with a line at `at` where there is one.
    ///
    /// Errors: as [`draw`].
    pub fn dots(&self, at: Option<f64>) -> Result<String, String> {
        let (wide, high, head) = self.size();
        let least = self
            .values()
            .chain(at)
            .filter(|v| *v > 0.0)
            .fold(f64::INFINITY, f64::min);
        let most = self.values().chain(at).fold(0.0, f64::max);
        if !least.is_finite() {
            return Err("chart: no values".into());
        }
        draw((wide, high), |sheet| {
            legend(sheet, &self.series)?;
            let mut chart = ChartBuilder::on(sheet)
                .margin_top(head)
                .margin_right(40)
                .set_label_area_size(LabelAreaPosition::Left, NAMES)
                .set_label_area_size(LabelAreaPosition::Bottom, AXIS)
                .build_cartesian_2d((least / 1.3..most * 1.3).log_scale(), self.rows.len() as f64..0.0)?;
            chart
                .configure_mesh()
                .disable_y_mesh()
                .disable_y_axis()
                .light_line_style(TRANSPARENT)
                .bold_line_style(FAINT)
                .label_style((FONT, SIZE))
                .x_label_formatter(&|x| short(*x))
                .x_desc(&self.axis)
                .draw()?;
            if let Some(at) = at {
                let line = [(at, 0.0), (at, self.rows.len() as f64)];
                chart.draw_series([PathElement::new(line, TEXT.stroke_width(1))])?;
            }
            for (number, row) in self.rows.iter().enumerate() {
                let y = number as f64 + 0.5;
                chart.draw_series([PathElement::new([(least / 1.3, y), (most * 1.3, y)], FAINT)])?;
                let dots = self.series.iter().zip(&row.values);
                chart.draw_series(dots.filter_map(|(series, value)| {
                    Some(Circle::new(((*value)?, y), 7, colour(series.colour).filled()))
                }))?;
                let (left, y) = chart.backend_coord(&(least / 1.3, y));
                sheet.draw(&Text::new(
                    row.name.clone(),
                    (left - 8, y),
                    text(HPos::Right, VPos::Center, TEXT),
                ))?;
            }
            Ok(())
        })
    }
}

/// A curve's points.
pub type Curve = (Series, Vec<(f64, f64)>);

/// Curves over one pair of axes, the horizontal one logarithmic where `log` says so.
///
/// Errors: as [`draw`].
pub fn curves(x_axis: &str, y_axis: &str, log: bool, curves: &[Curve]) -> Result<String, String> {
    let points = || curves.iter().flat_map(|(_, points)| points.iter().copied());
    let least = points().map(|(x, _)| x).fold(f64::INFINITY, f64::min);
    let most = points().map(|(x, _)| x).fold(0.0, f64::max);
    let high = points().map(|(_, y)| y).fold(0.0, f64::max);
    if !least.is_finite() {
        return Err("chart: no values".into());
    }
    let names: Vec<Series> = curves.iter().map(|(series, _)| series.clone()).collect();
    let head = legend_places(&names).1 * LEGEND_ROW + 12;
    draw((WIDTH, head + 280 + AXIS), |sheet| {
        legend(sheet, &names)?;
        let mut builder = ChartBuilder::on(sheet);
        builder
            .margin_top(head)
            .margin_right(40)
            .set_label_area_size(LabelAreaPosition::Left, 70)
            .set_label_area_size(LabelAreaPosition::Bottom, AXIS);
        macro_rules! plot {
            ($range:expr) => {{
                let mut chart = builder.build_cartesian_2d($range, 0.0..high)?;
                chart
                    .configure_mesh()
                    .light_line_style(TRANSPARENT)
                    .bold_line_style(FAINT)
                    .label_style((FONT, SIZE))
                    .x_labels(7)
                    .x_label_formatter(&|x| short(*x))
                    .y_label_formatter(&|y| short(*y))
                    .x_desc(x_axis)
                    .y_desc(y_axis)
                    .draw()?;
                for (series, points) in curves {
                    let style = colour(series.colour).stroke_width(3);
                    chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
                }
            }};
        }
        if log {
            plot!((least / 1.1..most * 1.1).log_scale());
        } else {
            plot!(0.0..most);
        }
        Ok(())
    })
}

/// A number for an axis or a bar.
#[must_use]
pub fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 10.0 || n == 0.0 => format!("{number:.0}"),
        n if n >= 1.0 => format!("{:.1}", number).trim_end_matches(".0").to_owned(),
        _ => format!("{:.2}", number).trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            axis: "CPU, µs".into(),
            series: [("one & only", 0), ("two", 1)]
                .map(|(name, colour)| Series {
                    name: name.into(),
                    colour,
                })
                .into(),
            rows: vec![Row {
                name: "1.3/full".into(),
                values: vec![Some(30.0), None],
            }],
        }
    }

    #[test]
    fn everything_has_its_name() {
        for svg in [chart().stacked(), chart().dots(Some(1.0))] {
            let svg = svg.unwrap();
            for name in ["one &amp; only", "two", "1.3/full", "CPU, µs", "#0072B2"] {
                assert!(svg.contains(name), "{name} in {svg}");
            }
        }
    }

    #[test]
    fn what_is_empty_is_an_error_and_no_panic() {
        let mut empty = chart();
        empty.rows.clear();
        assert!(empty.dots(None).is_err());
        assert!(curves("x", "y", true, &[]).is_err());
    }

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 0.05, 0.5, 1.0, 1.54, 12.3, 1234.0].map(short);
        assert_eq!(all, ["0", "0.05", "0.5", "1", "1.5", "12", "1234"]);
    }
}
