//! What became of each item of a request that changes several: kept between the changes and the reply.

use skerry_core::error_code::ErrorCode;
use skerry_net::host::Host;

use super::Context;
use crate::state::State;
use crate::topics::ChangeError;
use crate::topics::config::ConfigError;

/// Longest [`Answer::message`].
const MESSAGE_BYTES_MAX: usize = 160;

/// What became of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What went wrong, if anything.
    pub error: ErrorCode,
    /// In words, where something did.
    pub message: Option<&'static str>,
    /// The handler's own: an offset, a key.
    pub value: i64,
}

impl Answer {
    /// It was done.
    pub const DONE: Self = Self {
        error: ErrorCode::NONE,
        message: None,
        value: -1,
    };

    /// As long as an answer can be, to make room before anything is changed.
    pub const LONGEST: Self = Self {
        message: str_of(&[b'x'; MESSAGE_BYTES_MAX]),
        ..Self::DONE
    };

    /// It was not done, for the reason that the code itself gives.
    #[must_use]
    pub const fn refused(error: ErrorCode) -> Self {
        Self::because(error, error.message())
    }

    /// It was not done, for a reason of its own.
    #[must_use]
    pub const fn because(error: ErrorCode, message: &'static str) -> Self {
        assert!(message.len() <= MESSAGE_BYTES_MAX, "room is made for shorter ones");
        Self {
            error,
            message: Some(message),
            value: -1,
        }
    }

    /// Whether it was done.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.error.is_none()
    }
}

const fn str_of(bytes: &'static [u8]) -> Option<&'static str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) => None,
    }
}

impl From<ChangeError> for Answer {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Exists => Self::because(ErrorCode::TOPIC_ALREADY_EXISTS, "A topic of this name exists."),
            ChangeError::Unknown => Self::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            ChangeError::Full => Self::because(
                ErrorCode::POLICY_VIOLATION,
                "There is no room for it: see skerry.limits.topics and skerry.limits.partitions.",
            ),
            ChangeError::Storage => Self::refused(ErrorCode::KAFKA_STORAGE_ERROR),
        }
    }
}

impl From<ConfigError> for Answer {
    fn from(error: ConfigError) -> Self {
        Self::because(
            ErrorCode::INVALID_CONFIG,
            match error {
                ConfigError::Unknown => "Topics have no setting of this name.",
                ConfigError::Invalid(key) => key.refusal(),
            },
        )
    }
}

/// Makes what was changed durable; where that fails, every change is answered so.
pub fn sync<H: Host>(cx: &mut Context<'_, H>, answers: &mut [Answer]) {
    let State { topics, logs, .. } = &mut *cx.state;
    if answers.iter().any(Answer::is_done)
        && let Err(error) = topics.sync(cx.host, logs)
    {
        answers
            .iter_mut()
            .filter(|a| a.is_done())
            .for_each(|a| *a = error.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::config::ConfigKey;

    #[test]
    fn every_code_explains_itself_in_the_room_there_is() {
        for code in ErrorCode::ALL {
            assert!(
                Answer::refused(*code)
                    .message
                    .is_some_and(|m| m.len() <= MESSAGE_BYTES_MAX)
            );
        }
        for key in ConfigKey::ALL {
            assert!(
                Answer::from(ConfigError::Invalid(*key))
                    .message
                    .is_some_and(|m| m.starts_with(key.name()))
            );
        }
        assert_eq!(Answer::LONGEST.message.map(str::len), Some(MESSAGE_BYTES_MAX));
    }
}
