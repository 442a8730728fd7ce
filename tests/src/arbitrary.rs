//! Random messages as bytes, made from a message's table by a writer of its own.
//!
//! It knows Kafka's format a second time, in the plainest way, so that a mistake in the codec and the same mistake here would
//! have to be made twice.

use skerry_core::wire::{Field, Type, Version};

use crate::rng::Rng;

/// A random message in canonical form: tagged fields in order, none at its default, booleans 0 or 1.
#[must_use]
pub fn message(fields: &[Field], version: Version, flexible: bool, random: &mut Rng) -> Vec<u8> {
    let mut writer = Writer {
        version,
        flexible,
        random,
    };
    let mut out = Vec::new();
    writer.fields(fields, &mut out);
    out
}

struct Writer<'r> {
    version: Version,
    flexible: bool,
    random: &'r mut Rng,
}

impl Writer<'_> {
    fn fields(&mut self, fields: &[Field], out: &mut Vec<u8>) {
        let version = self.version;
        let present = || fields.iter().filter(|field| field.versions.contains(version));
        for field in present().filter(|field| field.tag.is_none()) {
            self.value(field.ty, field.nullable.contains(version), out);
        }
        if !self.flexible {
            return;
        }
        let mut tagged = Vec::new();
        for field in present() {
            if let Some(tag) = field.tag.filter(|_| self.random.percent(50)) {
                tagged.push((tag, self.not_default(field)));
            }
        }
        varint(tagged.len(), out);
        for (tag, value) in tagged {
            varint(tag as usize, out);
            varint(value.len(), out);
            out.extend(value);
        }
    }

    /// A value of a tagged field, of which a default would be left out.
    fn not_default(&mut self, field: &Field) -> Vec<u8> {
        let bytes = |field: &Field, this: &mut Self| {
            let mut bytes = Vec::new();
            // Null is the default of every nullable tagged field that Kafka has.
            this.value(field.ty, false, &mut bytes);
            bytes
        };
        loop {
            let value = bytes(field, self);
            let is_default = match field.ty {
                Type::Bool | Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 | Type::Uuid => {
                    value.iter().all(|byte| *byte == 0) || value.iter().all(|byte| *byte == 0xff)
                }
                // A struct whose fields are all −1, as every tagged struct's defaults are; then its own tags.
                Type::Struct(..) => value.iter().rev().skip(1).all(|byte| *byte == 0xff),
                Type::Array(_) => value == [1],
                _ => false,
            };
            if !is_default {
                return value;
            }
        }
    }

    fn value(&mut self, ty: &Type, nullable: bool, out: &mut Vec<u8>) {
        let null = nullable && self.random.percent(33);
        match ty {
            Type::Bool => out.push(self.random.below(2) as u8),
            Type::Int8 => out.extend((self.number() as i8).to_be_bytes()),
            Type::Int16 => out.extend((self.number() as i16).to_be_bytes()),
            Type::Int32 => out.extend((self.number() as i32).to_be_bytes()),
            Type::Int64 => out.extend(self.number().to_be_bytes()),
            Type::Uuid => {
                out.extend(self.random.next_u64().to_be_bytes());
                out.extend(self.random.next_u64().to_be_bytes());
            }
            Type::String => {
                if null {
                    return self.length(None, true, out);
                }
                let letters = ["a", "B", "-", "ö", "鮭", "🐟", "\0", " "];
                let text: String = (0..self.size()).map(|_| *self.random.pick(&letters)).collect();
                self.length(Some(text.len()), true, out);
                out.extend(text.as_bytes());
            }
            Type::Bytes | Type::Records => {
                if null {
                    return self.length(None, false, out);
                }
                let bytes: Vec<u8> = (0..self.size()).map(|_| self.random.next_u64() as u8).collect();
                self.length(Some(bytes.len()), false, out);
                out.extend(bytes);
            }
            Type::Array(item) => {
                if null {
                    return self.length(None, false, out);
                }
                let count = self.random.index(4);
                self.length(Some(count), false, out);
                for _ in 0..count {
                    self.value(item, false, out);
                }
            }
            Type::Struct(_, fields) => {
                if nullable {
                    out.push(if null { 0xff } else { 1 });
                }
                if !null {
                    self.fields(fields, out);
                }
            }
        }
    }

    /// Small numbers, negative ones, the ends of every width, and anything.
    fn number(&mut self) -> i64 {
        let any = self.random.next_u64() as i64;
        match self.random.below(4) {
            0 => any % 4,
            1 => *self
                .random
                .pick(&[i64::MIN, i64::MAX, i32::MIN.into(), i32::MAX.into(), -1, 0]),
            2 => any % 100_000,
            _ => any,
        }
    }

    /// Mostly short; now and then longer than one byte of a compact length can say.
    fn size(&mut self) -> usize {
        match self.random.below(16) {
            0 => 126 + self.random.index(4),
            1 => self.random.index(400),
            _ => self.random.index(12),
        }
    }

    fn length(&mut self, length: Option<usize>, is_string: bool, out: &mut Vec<u8>) {
        if self.flexible {
            return varint(length.map_or(0, |length| length + 1), out);
        }
        let length = length.map_or(-1, |length| length as i32);
        if is_string {
            out.extend((length as i16).to_be_bytes());
        } else {
            out.extend(length.to_be_bytes());
        }
    }
}

fn varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
