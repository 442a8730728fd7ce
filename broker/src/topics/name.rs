//! Which names a topic may have: Kafka's rules (`org.apache.kafka.common.internals.Topic`).

/// Longest topic name: with a partition number it must fit a directory's name of 255 bytes.
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// A topic's name, held inline.
pub type TopicName = heapless::String<TOPIC_NAME_BYTES_MAX>;

/// Why a name is refused: always INVALID_TOPIC_EXCEPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Nothing.
    Empty,
    /// `.` or `..`, which name directories.
    Dots,
    /// More than 249 bytes.
    TooLong,
    /// Something else than ASCII letters, digits, `.`, `_` and `-`.
    Character,
}

impl NameError {
    /// One sentence for a person.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Empty => "A topic name must not be empty.",
            Self::Dots => "A topic may not be named \".\" or \"..\".",
            Self::TooLong => "A topic name may have at most 249 characters.",
            Self::Character => "A topic name may only have ASCII letters, digits, '.', '_' and '-'.",
        }
    }
}

/// Takes `text` as a topic's name.
pub fn topic_name(text: &str) -> Result<TopicName, NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text == "." || text == ".." {
        return Err(NameError::Dots);
    }
    if !text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    {
        return Err(NameError::Character);
    }
    TopicName::try_from(text).map_err(|_| NameError::TooLong)
}

/// Whether two names are the same in metrics, where `.` becomes `_`: Kafka refuses a topic that would collide so.
#[must_use]
pub fn collide(a: &str, b: &str) -> bool {
    let metric = |byte: u8| if byte == b'.' { b'_' } else { byte };
    a.bytes().map(metric).eq(b.bytes().map(metric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_kafka_takes_them() {
        let longest = "a".repeat(249);
        for good in ["a", "...", "-", "_x", "A.b_c-9", &longest] {
            assert_eq!(topic_name(good).as_deref(), Ok(good));
        }
        let cases = [
            ("", NameError::Empty),
            (".", NameError::Dots),
            ("..", NameError::Dots),
            ("a b", NameError::Character),
            ("a/b", NameError::Character),
            ("ä", NameError::Character),
            ("a\0", NameError::Character),
            ("a:b", NameError::Character),
        ];
        for (bad, why) in cases {
            assert_eq!(topic_name(bad), Err(why), "{bad:?}");
        }
        assert_eq!(topic_name(&"a".repeat(250)), Err(NameError::TooLong));
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert!(collide("a.b", "a_b"));
        assert!(collide("a.b", "a.b"));
        assert!(!collide("a.b", "a-b"));
        assert!(!collide("a.b", "a.bc"));
    }
}
