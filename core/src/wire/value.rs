//! The types that fields are made of, and how each is read, skimmed and written.

use core::fmt::{self, Debug};

use super::{Counter, DecodeError, Field, Full, Reader, Sink, Type, Version, Versions};

/// In which form a value is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Form {
    version: Version,
    compact: bool,
    nullable: bool,
    checked: bool,
}

impl Form {
    /// The form of a message in `version`, `flexible` (compact lengths, tagged fields) or not.
    #[must_use]
    pub const fn new(version: Version, flexible: bool) -> Self {
        Self {
            version,
            compact: flexible,
            nullable: false,
            checked: false,
        }
    }

    /// The message's version.
    #[inline]
    #[must_use]
    pub const fn version(self) -> Version {
        self.version
    }

    /// Whether lengths are compact and structs end in tagged fields.
    #[inline]
    #[must_use]
    pub const fn is_flexible(self) -> bool {
        self.compact
    }

    /// Whether the value at hand may be null.
    #[inline]
    #[must_use]
    pub const fn is_nullable(self) -> bool {
        self.nullable
    }

    /// The same for a value that may, or may not, be null.
    #[inline]
    #[must_use]
    pub const fn nullable(self, nullable: bool) -> Self {
        Self { nullable, ..self }
    }

    /// The same for bytes that were skimmed before: their strings need not be looked at again.
    #[inline]
    #[must_use]
    pub const fn checked(self) -> Self {
        Self { checked: true, ..self }
    }
}

/// Something that a field can hold. Values are views: copying one copies no bytes of the frame.
pub trait Value<'a>: Copy + Debug + 'a {
    /// Kafka's name for it.
    const TYPE: &'static Type;

    /// Reads one.
    fn take(r: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError>;

    /// Steps over one, with every check of [`take`](Self::take).
    fn skim(r: &mut Reader<'a>, form: Form) -> Result<(), DecodeError>;

    /// Steps over `count` of them. Cost: one multiplication for those of fixed size.
    #[inline]
    fn skim_many(r: &mut Reader<'a>, count: u32, form: Form) -> Result<(), DecodeError> {
        (0..count).try_for_each(|_| Self::skim(r, form))
    }

    /// Writes it.
    fn put<S: Sink>(&self, out: &mut S, form: Form) -> Result<(), Full>;

    /// Whether it is as good as its field's default, so that a tagged field need not be written.
    fn is_default(&self, default: &Self) -> bool;
}

/// A struct declared by a `message!` table.
pub trait Table<'a>: Value<'a> + Default {
    /// Kafka's name of the struct.
    const NAME: &'static str;
    /// Its fields in wire order; tagged ones by rising tag.
    const FIELDS: &'static [Field];
}

/// A table that is a whole message: it has versions of its own.
pub trait Message<'a>: Table<'a> {
    /// Versions that are declared.
    const VERSIONS: Versions;
    /// Versions with compact lengths and tagged fields.
    const FLEXIBLE: Versions;

    /// Reads a message. What follows it in `r` is left there.
    ///
    /// Errors: [`DecodeError::Version`] when `version` is not declared; else what the bytes broke.
    /// Cost: one pass over the bytes, no copy; arrays are skimmed here and decoded when iterated.
    fn decode(r: &mut Reader<'a>, version: Version) -> Result<Self, DecodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(DecodeError::Version);
        }
        Self::take(r, Form::new(version, Self::FLEXIBLE.contains(version)))
    }

    /// Writes a message; fields that `version` does not have are left out. `version` must be a declared one.
    ///
    /// When full: [`Full`]; `out` then holds a part that is good for nothing.
    fn encode<S: Sink>(&self, out: &mut S, version: Version) -> Result<(), Full> {
        debug_assert!(Self::VERSIONS.contains(version), "version is not declared");
        self.put(out, Form::new(version, Self::FLEXIBLE.contains(version)))
    }

    /// Bytes that [`encode`](Self::encode) writes, gaps included: the same code run on a [`Counter`].
    fn encoded_len(&self, version: Version) -> usize {
        let mut counter = Counter::default();
        // A counter is never full; an overlong string is, and shows itself again when it is written.
        let _ = self.encode(&mut counter, version);
        counter.bytes()
    }
}

/// Values of fixed size: read by one cursor verb, written by one sink verb.
macro_rules! fixed {
    ($($ty:ty, $kind:ident, $bytes:literal, $take:expr, $put:expr;)*) => {$(
        impl<'a> Value<'a> for $ty {
            const TYPE: &'static Type = &Type::$kind;

            #[inline]
            fn take(r: &mut Reader<'a>, _: Form) -> Result<Self, DecodeError> {
                ($take)(r)
            }

            #[inline]
            fn skim(r: &mut Reader<'a>, _: Form) -> Result<(), DecodeError> {
                r.take($bytes).map(drop)
            }

            #[inline]
            fn skim_many(r: &mut Reader<'a>, count: u32, _: Form) -> Result<(), DecodeError> {
                let bytes = (count as usize).checked_mul($bytes).ok_or(DecodeError::Short)?;
                r.take(bytes).map(drop)
            }

            #[inline]
            fn put<S: Sink>(&self, out: &mut S, _: Form) -> Result<(), Full> {
                ($put)(out, *self)
            }

            #[inline]
            fn is_default(&self, default: &Self) -> bool {
                self == default
            }
        }
    )*};
}

fixed! {
    bool, Bool, 1, |r: &mut Reader<'a>| r.u8().map(|byte| byte != 0), |out: &mut S, v| out.put_u8(u8::from(v));
    i8, Int8, 1, Reader::i8, S::put_i8;
    i16, Int16, 2, Reader::i16, S::put_i16;
    i32, Int32, 4, Reader::i32, S::put_i32;
    i64, Int64, 8, Reader::i64, S::put_i64;
    Uuid, Uuid, 16, |r: &mut Reader<'a>| r.bytes_16().map(Uuid), |out: &mut S, v: Uuid| out.put(&v.0);
    crate::error_code::ErrorCode, Int16, 2,
        |r: &mut Reader<'a>| r.i16().map(crate::error_code::ErrorCode),
        |out: &mut S, v: crate::error_code::ErrorCode| out.put_i16(v.0);
}

/// Values with a length in front that may be null: strings and bytes.
macro_rules! counted {
    ($($ty:ty, $kind:ident, $take:ident, $skim:ident, $put:ident;)*) => {$(
        impl<'a> Value<'a> for $ty {
            const TYPE: &'static Type = &Type::$kind;

            #[inline]
            fn take(r: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
                $take(r, form)?.ok_or(DecodeError::UnexpectedNull)
            }

            #[inline]
            fn skim(r: &mut Reader<'a>, form: Form) -> Result<(), DecodeError> {
                $skim(r, form)?.ok_or(DecodeError::UnexpectedNull)
            }

            #[inline]
            fn put<S: Sink>(&self, out: &mut S, form: Form) -> Result<(), Full> {
                $put(out, form, Some(self))
            }

            #[inline]
            fn is_default(&self, default: &Self) -> bool {
                self == default
            }
        }

        /// Null where the version has none is written as empty.
        impl<'a> Value<'a> for Option<$ty> {
            const TYPE: &'static Type = &Type::$kind;

            #[inline]
            fn take(r: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
                let value = $take(r, form)?;
                if value.is_none() && !form.nullable {
                    return Err(DecodeError::UnexpectedNull);
                }
                Ok(value)
            }

            #[inline]
            fn skim(r: &mut Reader<'a>, form: Form) -> Result<(), DecodeError> {
                if $skim(r, form)?.is_none() && !form.nullable {
                    return Err(DecodeError::UnexpectedNull);
                }
                Ok(())
            }

            #[inline]
            fn put<S: Sink>(&self, out: &mut S, form: Form) -> Result<(), Full> {
                match self {
                    None if form.nullable => $put(out, form, None),
                    value => $put(out, form, Some(value.unwrap_or_default())),
                }
            }

            #[inline]
            fn is_default(&self, default: &Self) -> bool {
                self == default
            }
        }
    )*};
}

counted! {
    &'a str, String, take_str, skim_str, put_str;
    &'a [u8], Bytes, take_bytes, skim_bytes, put_bytes;
}

/// A struct that may be null: a byte says whether it is there, in versions where it may be absent.
impl<'a, T: Table<'a>> Value<'a> for Option<T> {
    const TYPE: &'static Type = T::TYPE;

    fn take(r: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        if form.nullable && r.i8()? < 0 {
            return Ok(None);
        }
        T::take(r, form.nullable(false)).map(Some)
    }

    fn skim(r: &mut Reader<'a>, form: Form) -> Result<(), DecodeError> {
        if form.nullable && r.i8()? < 0 {
            return Ok(());
        }
        T::skim(r, form.nullable(false))
    }

    fn put<S: Sink>(&self, out: &mut S, form: Form) -> Result<(), Full> {
        if form.nullable {
            out.put_i8(if self.is_some() { 1 } else { -1 })?;
            if self.is_none() {
                return Ok(());
            }
        }
        self.unwrap_or_default().put(out, form.nullable(false))
    }

    fn is_default(&self, default: &Self) -> bool {
        match (self, default) {
            (None, None) => true,
            (Some(value), Some(default)) => value.is_default(default),
            _ => false,
        }
    }
}

/// A records field: record batches one after the other, or where they are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Records<'a> {
    /// None.
    #[default]
    Null,
    /// In memory: a view of the frame when decoded.
    Bytes(&'a [u8]),
    /// So many bytes that are sent from elsewhere: the length is written, then a [`Sink::gap`].
    Elsewhere(u32),
}

impl<'a> Records<'a> {
    /// The bytes at hand: empty for null and for what lies elsewhere.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Null | Self::Elsewhere(_) => &[],
        }
    }
}

impl Debug for Records<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Elsewhere(bytes) => write!(f, "{bytes} bytes elsewhere"),
        }
    }
}

impl<'a> Value<'a> for Records<'a> {
    const TYPE: &'static Type = &Type::Records;

    #[inline]
    fn take(r: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        Ok(<Option<&'a [u8]> as Value>::take(r, form)?.map_or(Self::Null, Self::Bytes))
    }

    #[inline]
    fn skim(r: &mut Reader<'a>, form: Form) -> Result<(), DecodeError> {
        Option::<&'a [u8]>::skim(r, form)
    }

    #[inline]
    fn put<S: Sink>(&self, out: &mut S, form: Form) -> Result<(), Full> {
        match *self {
            Self::Null => Option::<&[u8]>::None.put(out, form),
            Self::Bytes(bytes) => put_bytes(out, form, Some(bytes)),
            Self::Elsewhere(bytes) => {
                put_length(out, form, Some(bytes as usize))?;
                out.gap(bytes)
            }
        }
    }

    fn is_default(&self, default: &Self) -> bool {
        self == default
    }
}

/// A 16-byte identifier. Kafka prints it as URL-safe base64 without padding.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zero: no identifier.
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is no identifier.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        for group in self.0.chunks(3) {
            let bits = group
                .iter()
                .zip([16, 8, 0])
                .fold(0_usize, |sum, (byte, shift)| sum | usize::from(*byte) << shift);
            for shift in [18, 12, 6, 0].into_iter().take(group.len() + 1) {
                let letter = ALPHABET.get(bits >> shift & 63).copied().unwrap_or_default();
                fmt::Write::write_char(f, char::from(letter))?;
            }
        }
        Ok(())
    }
}

impl Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A length or count of four bytes, or compact: `None` is null.
#[inline]
pub(super) fn take_length(r: &mut Reader<'_>, form: Form) -> Result<Option<usize>, DecodeError> {
    if form.compact {
        return compact_length(r);
    }
    plain_length(r.i32()?)
}

#[inline]
fn compact_length(r: &mut Reader<'_>) -> Result<Option<usize>, DecodeError> {
    Ok((r.unsigned_varint()? as usize).checked_sub(1))
}

#[inline]
fn plain_length(length: i32) -> Result<Option<usize>, DecodeError> {
    if length == -1 {
        return Ok(None);
    }
    usize::try_from(length)
        .map(Some)
        .map_err(|_| DecodeError::NegativeLength)
}

/// Writes a length or count of four bytes, or compact.
#[inline]
pub(super) fn put_length<S: Sink>(out: &mut S, form: Form, length: Option<usize>) -> Result<(), Full> {
    let length = match length {
        Some(length) => i32::try_from(length).map_err(|_| Full)?,
        None => -1,
    };
    if form.compact {
        // From −1 up: one more than that is never negative, and fits.
        out.put_unsigned_varint(length.wrapping_add(1) as u32)
    } else {
        out.put_i32(length)
    }
}

#[inline]
fn take_bytes<'a>(r: &mut Reader<'a>, form: Form) -> Result<Option<&'a [u8]>, DecodeError> {
    take_length(r, form)?.map(|length| r.take(length)).transpose()
}

#[inline]
fn skim_bytes(r: &mut Reader<'_>, form: Form) -> Result<Option<()>, DecodeError> {
    Ok(take_bytes(r, form)?.map(drop))
}

#[inline]
fn put_bytes<S: Sink>(out: &mut S, form: Form, bytes: Option<&[u8]>) -> Result<(), Full> {
    put_length(out, form, bytes.map(<[u8]>::len))?;
    out.put(bytes.unwrap_or_default())
}

/// Bytes of the longest string, compact ones too: as in Kafka.
const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// A string's bytes: its plain length has two bytes where all others have four.
#[inline]
fn take_str_bytes<'a>(r: &mut Reader<'a>, form: Form) -> Result<Option<&'a [u8]>, DecodeError> {
    let length = if form.compact {
        compact_length(r)?
    } else {
        plain_length(i32::from(r.i16()?))?
    };
    if length.is_some_and(|length| length > STRING_BYTES_MAX) {
        return Err(DecodeError::StringLength);
    }
    length.map(|length| r.take(length)).transpose()
}

#[inline]
fn take_str<'a>(r: &mut Reader<'a>, form: Form) -> Result<Option<&'a str>, DecodeError> {
    take_str_bytes(r, form)?
        .map(|bytes| str::from_utf8(bytes).map_err(|_| DecodeError::Utf8))
        .transpose()
}

#[inline]
fn skim_str(r: &mut Reader<'_>, form: Form) -> Result<Option<()>, DecodeError> {
    if form.checked {
        return Ok(take_str_bytes(r, form)?.map(drop));
    }
    Ok(take_str(r, form)?.map(drop))
}

#[inline]
fn put_str<S: Sink>(out: &mut S, form: Form, text: Option<&str>) -> Result<(), Full> {
    if form.compact {
        return put_bytes(out, form, text.map(str::as_bytes));
    }
    let length = match text {
        Some(text) => i16::try_from(text.len()).map_err(|_| Full)?,
        None => -1,
    };
    out.put_i16(length)?;
    out.put(text.unwrap_or_default().as_bytes())
}

/// Reads the tagged fields at the end of a struct. `known` reads the value of a tag that it knows and says so; others are
/// stepped over.
#[inline]
pub(crate) fn take_tags<'a>(
    r: &mut Reader<'a>,
    mut known: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, DecodeError>,
) -> Result<(), DecodeError> {
    for _ in 0..r.unsigned_varint()? {
        let tag = r.unsigned_varint()?;
        let size = r.unsigned_varint()? as usize;
        let mut value = Reader::new(r.take(size)?);
        // The value is all there, so one that wants more bytes than its size says is wrong, not short.
        let was_known = known(tag, &mut value).map_err(|error| match error {
            DecodeError::Short => DecodeError::TagSize,
            error => error,
        })?;
        if was_known && !value.is_empty() {
            return Err(DecodeError::TagSize);
        }
    }
    Ok(())
}
