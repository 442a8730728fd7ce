//! What goes to standard output: aligned tables for a person, one JSON object per line for a program.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table};
use serde_json::Value;

/// Prints `rows` under `columns`, blanks between; columns whose name begins with `#` are numbers and align right.
///
/// Errors: standard output's.
pub fn table(out: &mut dyn Write, columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(columns.iter().map(|name| name.trim_start_matches('#')));
    for row in rows {
        table.add_row(row);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if columns.get(at).is_some_and(|name| name.starts_with('#')) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints one object on one line.
pub fn json(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")
}

/// Bytes as RFC 4648 base64.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = (group >> (18 - 6 * at) & 63) as usize;
            let padding = at > chunk.len();
            out.push(if padding {
                '='
            } else {
                DIGITS.get(digit).copied().map_or('=', char::from)
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_lines_have_no_blanks_at_their_ends() {
        let mut out = Vec::new();
        let rows = [
            vec!["a".into(), "10".into(), "x".into()],
            vec!["long".into(), "9".into(), String::new()],
        ];
        table(&mut out, &["NAME", "#N", "NOTE"], rows).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "NAME   N  NOTE\na     10  x\nlong   9\n"
        );
    }

    #[test]
    fn base64_of_the_rfc() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xff, 0xef]), "/+8=");
    }
}
