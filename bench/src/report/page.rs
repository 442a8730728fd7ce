//! A report as one page that needs nothing but itself: charts, then tables.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Report;

/// A chart with its words.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What it shows and how to read it.
    pub caption: String,
    /// The chart.
    pub svg: String,
}

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>skerry-bench</title><style>
body { font: 15px/1.45 sans-serif; color: #222; background: #fff; max-width: 1000px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin-top: 2.2em }
svg { max-width: 100%; height: auto; display: block } figure { margin: 0 } figcaption { color: #555 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1em } dt { color: #555 } dd { margin: 0 }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; text-align: left } td.n { text-align: right } th { background: #f3f3f3 }
</style></head><body>
"#;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The page.
#[must_use]
pub fn page(title: &str, report: &Report, figures: &[Figure]) -> String {
    let mut out = HEAD.to_owned();
    let _ = writeln!(out, "<h1>{}</h1>\n<dl>", escaped(title));
    for (name, value) in report.lines() {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
    }
    out.push_str("</dl>\n");
    for Figure { title, caption, svg } in figures {
        let (title, caption) = (escaped(title), escaped(caption));
        let _ = writeln!(
            out,
            "<h2>{title}</h2>\n<figure>{svg}<figcaption>{caption}</figcaption></figure>"
        );
    }
    for section in &report.sections {
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<div class=\"wide\"><table><tr>",
            escaped(&section.name)
        );
        for column in section.columns {
            let _ = write!(out, "<th>{}</th>", escaped(column.head));
        }
        out.push_str("</tr>\n");
        for row in &section.rows {
            out.push_str("<tr>");
            for cell in row {
                let class = if cell.is_number() { " class=\"n\"" } else { "" };
                let _ = write!(out, "<td{class}>{}</td>", escaped(&cell.text()));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div>\n");
    }
    out.push_str("</body></html>\n");
    out
}

/// Writes a text to a file.
///
/// Errors: the file system's.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
