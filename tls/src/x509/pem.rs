//! PEM (RFC 7468): DER between lines that say what it is.

use alloc::string::String;
use alloc::vec::Vec;

use zeroize::Zeroizing;

/// One block.
pub struct Block {
    /// What it is, such as `CERTIFICATE` or `PRIVATE KEY`.
    pub label: String,
    /// What is in it. It may be a key.
    pub der: Zeroizing<Vec<u8>>,
}

/// Something between the two lines of a block that is not base64, or a block without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Every block of `text`, whatever stands between them. Spaces and line ends lie where they like.
pub fn read(text: &str) -> Result<Vec<Block>, Broken> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, begun)) = rest.split_once("-----BEGIN ") {
        let (label, inner) = begun.split_once("-----").ok_or(Broken)?;
        let mut end = String::from("-----END ");
        end.push_str(label);
        end.push_str("-----");
        let (base64, after) = inner.split_once(&*end).ok_or(Broken)?;
        blocks.push(Block {
            label: label.into(),
            der: decode(base64)?,
        });
        rest = after;
    }
    Ok(blocks)
}

/// `der` as one block, in lines of 64 characters.
#[must_use]
pub fn write(label: &str, der: &[u8]) -> Zeroizing<String> {
    // Sized at once, so that no part of a key stays behind in memory that was grown out of.
    let mut text = Zeroizing::new(String::with_capacity(64 + 2 * label.len() + der.len() * 3 / 2));
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                text.push(if place <= group.len() {
                    digit(bits >> (18 - 6 * place) & 63)
                } else {
                    '='
                });
            }
        }
        text.push('\n');
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

const fn digit(value: u32) -> char {
    (match value as u8 {
        value @ 0..=25 => b'A' + value,
        value @ 26..=51 => b'a' + value - 26,
        value @ 52..=61 => b'0' + value - 52,
        62 => b'+',
        _ => b'/',
    }) as char
}

fn decode(base64: &str) -> Result<Zeroizing<Vec<u8>>, Broken> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(base64.len() * 3 / 4));
    let mut digits = base64.bytes().filter(|byte| !byte.is_ascii_whitespace());
    loop {
        let Some(first) = digits.next() else { return Ok(bytes) };
        let group = [Some(first), digits.next(), digits.next(), digits.next()];
        let mut bits = 0;
        let mut padding = 0;
        for digit in group {
            let value = match digit.ok_or(Broken)? {
                b'=' => {
                    padding += 1;
                    0
                }
                _ if padding > 0 => return Err(Broken),
                byte @ b'A'..=b'Z' => byte - b'A',
                byte @ b'a'..=b'z' => byte - b'a' + 26,
                byte @ b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return Err(Broken),
            };
            bits = bits << 6 | u32::from(value);
        }
        let [_, high, middle, low] = bits.to_be_bytes();
        match padding {
            0 => bytes.extend([high, middle, low]),
            1 if low == 0 => bytes.extend([high, middle]),
            2 if low == 0 && middle == 0 => bytes.push(high),
            _ => return Err(Broken),
        }
        // What pads ends.
        if padding > 0 && digits.next().is_some() {
            return Err(Broken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for count in 0..200_u8 {
            let der: Vec<u8> = (0..count).collect();
            let text = write("PRIVATE KEY", &der);
            assert!(text.lines().all(|line| line.len() <= 64));
            let text = format!("Bag Attributes\n{}# comment\n{}", text.replace('\n', "\r\n"), *text);
            let blocks = read(&text).unwrap();
            assert_eq!(blocks.len(), 2);
            assert!(
                blocks
                    .iter()
                    .all(|block| block.label == "PRIVATE KEY" && *block.der == der)
            );
        }
    }

    #[test]
    fn broken_blocks_are_refused() {
        let block = |inner: &str| read(&format!("-----BEGIN X-----\n{inner}\n-----END X-----\n"));
        assert_eq!(&**block("AQID").ok().unwrap()[0].der, &[1, 2, 3]);
        assert_eq!(&**block("AQ==").ok().unwrap()[0].der, &[1]);
        for inner in ["AQI", "AQ=D", "A===", "AR==", "AQ==AQID", "AQ*D", "===="] {
            assert!(block(inner).is_err(), "{inner}");
        }
        assert!(read("-----BEGIN X-----\nAQID\n-----END Y-----\n").is_err());
        assert!(read("-----BEGIN X").is_err());
        assert!(read("no block").is_ok_and(|blocks| blocks.is_empty()));
    }
}
