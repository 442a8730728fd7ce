//! The types a setting can have: how each is read from text and what it says is allowed.

use std::fmt;
use std::net::SocketAddr;

use skerry_core::time::Millis;
use zeroize::Zeroizing;

/// A type that a setting's text is read into. Reading allocates for `String` alone.
pub trait Value: Sized {
    /// What the listing calls it.
    const TYPE: &'static str;

    /// Reads trimmed text. `range` bounds the number, for types that have one. `None`: not [`allowed`](Value::allowed).
    fn parse(text: &str, range: Range) -> Option<Self>;

    /// What may be written, in words.
    fn allowed(range: Range) -> String;

    /// What the setting is when it has neither text nor a default. `None`: it must have one.
    fn absent() -> Option<Self> {
        None
    }
}

/// The numbers a setting may have, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Least.
    pub min: i64,
    /// Greatest.
    pub max: i64,
}

impl Range {
    /// For settings that are not numbers.
    pub const NONE: Self = Self {
        min: i64::MIN,
        max: i64::MAX,
    };

    /// The range in words.
    #[must_use]
    pub fn words(self) -> String {
        match (self.min, self.max) {
            (i64::MIN, i64::MAX) => "any whole number".into(),
            (min, i64::MAX) => format!("a whole number, {min} or more"),
            (min, max) => format!("a whole number from {min} to {max}"),
        }
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Value for $ty {
            const TYPE: &'static str = "number";
            fn parse(text: &str, range: Range) -> Option<Self> {
                let n = text.parse::<i64>().ok()?;
                if n < range.min || n > range.max { return None; }
                Self::try_from(n).ok()
            }
            fn allowed(range: Range) -> String {
                range.words()
            }
        }
    )*};
}
numbers!(i32, i64, u32);

impl Value for Millis {
    const TYPE: &'static str = "milliseconds";
    fn parse(text: &str, range: Range) -> Option<Self> {
        u64::try_from(i64::parse(text, range)?).ok().map(Millis)
    }
    fn allowed(range: Range) -> String {
        range.words()
    }
}

impl Value for bool {
    const TYPE: &'static str = "boolean";
    fn parse(text: &str, _: Range) -> Option<Self> {
        if text.eq_ignore_ascii_case("true") {
            return Some(true);
        }
        text.eq_ignore_ascii_case("false").then_some(false)
    }
    fn allowed(_: Range) -> String {
        "true | false".into()
    }
}

impl Value for String {
    const TYPE: &'static str = "text";
    fn parse(text: &str, _: Range) -> Option<Self> {
        (!text.is_empty()).then(|| text.to_owned())
    }
    fn allowed(_: Range) -> String {
        "text that is not empty".into()
    }
}

/// A text that nobody is shown: a password or a private key. Wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// What is shown instead.
    pub const SHOWN: &'static str = "[hidden]";

    /// `secret` and, on a line of its own, `rest`.
    pub(super) fn join(secret: &Self, rest: &str) -> Self {
        let mut text = Zeroizing::new(String::with_capacity(secret.0.len() + rest.len() + 1));
        text.push_str(&secret.0);
        text.push('\n');
        text.push_str(rest);
        Self(text)
    }

    /// The text, for what opens with it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::SHOWN)
    }
}

impl Value for Password {
    const TYPE: &'static str = "password";
    fn parse(text: &str, _: Range) -> Option<Self> {
        Some(Self(Zeroizing::new(text.to_owned())))
    }
    fn allowed(_: Range) -> String {
        "any text, which is not shown".into()
    }
}

/// Parts separated by commas; none of them empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List(pub Vec<String>);

impl Value for List {
    const TYPE: &'static str = "list";
    fn parse(text: &str, _: Range) -> Option<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        Some(Self(parts.map(str::to_owned).collect()))
    }
    fn allowed(_: Range) -> String {
        "names separated by commas".into()
    }
}

impl Value for SocketAddr {
    const TYPE: &'static str = "address";
    fn parse(text: &str, _: Range) -> Option<Self> {
        text.parse().ok()
    }
    fn allowed(_: Range) -> String {
        "an IP address and a port, such as 127.0.0.1:9404 or [::1]:9404".into()
    }
}

/// A setting that may be left out; it has no default text.
impl<T: Value> Value for Option<T> {
    const TYPE: &'static str = T::TYPE;
    fn parse(text: &str, range: Range) -> Option<Self> {
        T::parse(text, range).map(Some)
    }
    fn allowed(range: Range) -> String {
        T::allowed(range)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// Declares an enum whose variants have names in the configuration.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every name, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// The name in the configuration and on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl Value for $name {
            const TYPE: &'static str = "choice";
            fn parse(text: &str, _: Range) -> Option<Self> {
                $(if text.eq_ignore_ascii_case($text) { return Some(Self::$variant); })*
                None
            }
            fn allowed(_: Range) -> String {
                Self::NAMES.join(" | ")
            }
        }
    };
}

choices! {
    /// Which acknowledgement waits for the disk (`skerry.flush`).
    Flush {
        /// `acks=all` waits for the disk, `acks=1` for the write.
        AcksAll = "acks-all",
        /// `acks=1` and offset commits wait for the disk too.
        Every = "every",
        /// Nothing waits; files are flushed every `log.flush.interval.ms`.
        Interval = "interval",
        /// Nothing waits and nothing is flushed but at a clean stop.
        Never = "never",
    }
}

choices! {
    /// How far consumers may read (`skerry.read`).
    Read {
        /// Up to what is on the disk.
        Durable = "durable",
        /// Up to what is written.
        Written = "written",
    }
}

choices! {
    /// Whether flushes and cold reads go through io_uring (`skerry.io_uring`).
    IoUring {
        /// Where the kernel has it.
        Auto = "auto",
        /// Never: blocking calls at the end of a turn.
        Off = "off",
    }
}

choices! {
    /// Whose time a record bears (`message.timestamp.type`).
    TimestampType {
        /// The producer's.
        CreateTime = "CreateTime",
        /// The broker's at the append.
        LogAppendTime = "LogAppendTime",
    }
}

choices! {
    /// What happens to old records (`cleanup.policy`).
    CleanupPolicy {
        /// Segments past the retention are removed.
        Delete = "delete",
        /// The last record of each key is kept.
        Compact = "compact",
        /// Both.
        CompactDelete = "compact,delete",
    }
}

choices! {
    /// How a topic's records are compressed (`compression.type`).
    CompressionType {
        /// As the producer sent them.
        Producer = "producer",
        /// Not at all.
        Uncompressed = "uncompressed",
        /// gzip.
        Gzip = "gzip",
        /// Snappy.
        Snappy = "snappy",
        /// LZ4.
        Lz4 = "lz4",
        /// Zstandard.
        Zstd = "zstd",
    }
}

choices! {
    /// Whether clients show a certificate (`ssl.client.auth`).
    ClientAuth {
        /// They are not asked.
        None = "none",
        /// They are asked, and served without.
        Requested = "requested",
        /// They are asked, and refused without.
        Required = "required",
    }
}

choices! {
    /// Whose primitives TLS is made of (`skerry.tls.provider`).
    TlsProvider {
        /// The fast one where the processor has it.
        Auto = "auto",
        /// Mbed TLS, which is portable.
        Mbedtls = "mbedtls",
        /// AWS-LC.
        Fast = "fast",
    }
}
