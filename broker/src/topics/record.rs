//! What the metadata log says, one record per change. Replaying them in order gives the state.
//!
//! Shape: kind u8, then the fields in order; numbers big-endian, texts a u16 length and UTF-8. A topic's settings are a count u8, then
//! name and i64 each: all that is set, so that a change of several is one record.

use skerry_core::wire::Uuid;

use super::config::{ConfigKey, TopicConfig};

/// Longest encoded record: two texts of 32,767 bytes (Kafka's longest string) and the numbers beside them.
pub const RECORD_BYTES_MAX: usize = 66 * 1024;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataRecord<'a> {
    /// A topic came to be.
    TopicCreated {
        /// Its id.
        id: Uuid,
        /// Its name.
        name: &'a str,
        /// How many partitions it has.
        partitions: i32,
        /// What was set on it.
        config: TopicConfig,
    },
    /// A topic is gone, its partitions with it.
    TopicDeleted {
        /// Its id.
        id: Uuid,
    },
    /// A topic got more partitions.
    PartitionsAdded {
        /// The topic's id.
        id: Uuid,
        /// How many it has now.
        partitions: i32,
    },
    /// What is set on a topic changed.
    TopicConfigured {
        /// The topic's id.
        id: Uuid,
        /// All that is set now.
        config: TopicConfig,
    },
    /// A broker started, with this leader epoch.
    BrokerStarted {
        /// The epoch, higher than any before.
        leader_epoch: i32,
    },
    /// Producer ids below `end` may have been given out.
    ProducerIdsReserved {
        /// The first id that has not.
        end: i64,
    },
    /// A group committed an offset.
    OffsetCommitted(OffsetCommitted<'a>),
    /// A committed offset is gone.
    OffsetDeleted {
        /// The group.
        group: &'a str,
        /// The topic's id.
        topic: Uuid,
        /// The partition.
        partition: i32,
    },
    /// A group is gone, and every offset that it committed.
    GroupDeleted {
        /// The group.
        group: &'a str,
    },
}

/// A committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetCommitted<'a> {
    /// The group.
    pub group: &'a str,
    /// The topic's id: a topic made again under the same name begins without offsets.
    pub topic: Uuid,
    /// The partition.
    pub partition: i32,
    /// The next offset that the group reads.
    pub offset: i64,
    /// Leader epoch of the last record read; −1 unknown.
    pub leader_epoch: i32,
    /// The client's own note.
    pub metadata: &'a str,
    /// When, in milliseconds since 1970.
    pub committed_at: i64,
}

/// The record is longer than the room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl<'a> MetadataRecord<'a> {
    /// Writes the record to the front of `out`; how many bytes.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, TooLong> {
        let mut out = Cursor { free: out, used: 0 };
        match self {
            Self::TopicCreated {
                id,
                name,
                partitions,
                config,
            } => {
                out.put(&[1])?;
                out.put(&id.0)?;
                out.text(name)?;
                out.put(&partitions.to_be_bytes())?;
                out.config(config)?;
            }
            Self::TopicDeleted { id } => {
                out.put(&[2])?;
                out.put(&id.0)?;
            }
            Self::PartitionsAdded { id, partitions } => {
                out.put(&[3])?;
                out.put(&id.0)?;
                out.put(&partitions.to_be_bytes())?;
            }
            Self::TopicConfigured { id, config } => {
                out.put(&[4])?;
                out.put(&id.0)?;
                out.config(config)?;
            }
            Self::BrokerStarted { leader_epoch } => {
                out.put(&[5])?;
                out.put(&leader_epoch.to_be_bytes())?;
            }
            Self::ProducerIdsReserved { end } => {
                out.put(&[6])?;
                out.put(&end.to_be_bytes())?;
            }
            Self::OffsetCommitted(commit) => {
                out.put(&[7])?;
                out.text(commit.group)?;
                out.put(&commit.topic.0)?;
                out.put(&commit.partition.to_be_bytes())?;
                out.put(&commit.offset.to_be_bytes())?;
                out.put(&commit.leader_epoch.to_be_bytes())?;
                out.text(commit.metadata)?;
                out.put(&commit.committed_at.to_be_bytes())?;
            }
            Self::OffsetDeleted {
                group,
                topic,
                partition,
            } => {
                out.put(&[8])?;
                out.text(group)?;
                out.put(&topic.0)?;
                out.put(&partition.to_be_bytes())?;
            }
            Self::GroupDeleted { group } => {
                out.put(&[9])?;
                out.text(group)?;
            }
        }
        Ok(out.used)
    }

    /// Reads a record that fills `bytes`; `None` when they are none that this version writes. A setting without a name here is left
    /// out.
    #[must_use]
    pub fn decode(mut bytes: &'a [u8]) -> Option<Self> {
        let from = &mut bytes;
        let [kind] = take(from)?;
        let record = match kind {
            1 => Self::TopicCreated {
                id: Uuid(take(from)?),
                name: take_text(from)?,
                partitions: i32::from_be_bytes(take(from)?),
                config: take_config(from)?,
            },
            2 => Self::TopicDeleted { id: Uuid(take(from)?) },
            3 => Self::PartitionsAdded {
                id: Uuid(take(from)?),
                partitions: i32::from_be_bytes(take(from)?),
            },
            4 => Self::TopicConfigured {
                id: Uuid(take(from)?),
                config: take_config(from)?,
            },
            5 => Self::BrokerStarted {
                leader_epoch: i32::from_be_bytes(take(from)?),
            },
            6 => Self::ProducerIdsReserved {
                end: i64::from_be_bytes(take(from)?),
            },
            7 => Self::OffsetCommitted(OffsetCommitted {
                group: take_text(from)?,
                topic: Uuid(take(from)?),
                partition: i32::from_be_bytes(take(from)?),
                offset: i64::from_be_bytes(take(from)?),
                leader_epoch: i32::from_be_bytes(take(from)?),
                metadata: take_text(from)?,
                committed_at: i64::from_be_bytes(take(from)?),
            }),
            8 => Self::OffsetDeleted {
                group: take_text(from)?,
                topic: Uuid(take(from)?),
                partition: i32::from_be_bytes(take(from)?),
            },
            9 => Self::GroupDeleted {
                group: take_text(from)?,
            },
            _ => return None,
        };
        bytes.is_empty().then_some(record)
    }
}

struct Cursor<'a> {
    free: &'a mut [u8],
    used: usize,
}

impl Cursor<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let (head, rest) = core::mem::take(&mut self.free)
            .split_at_mut_checked(bytes.len())
            .ok_or(TooLong)?;
        head.copy_from_slice(bytes);
        self.free = rest;
        self.used += bytes.len();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), TooLong> {
        let bytes = u16::try_from(text.len()).map_err(|_| TooLong)?;
        self.put(&bytes.to_be_bytes())?;
        self.put(text.as_bytes())
    }

    fn config(&mut self, config: &TopicConfig) -> Result<(), TooLong> {
        let count = u8::try_from(config.kept().count()).map_err(|_| TooLong)?;
        self.put(&[count])?;
        config.kept().try_for_each(|(key, value)| {
            self.text(key.name())?;
            self.put(&value.to_be_bytes())
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = u16::from_be_bytes(take(bytes)?);
    let (text, rest) = bytes.split_at_checked(usize::from(length))?;
    *bytes = rest;
    str::from_utf8(text).ok()
}

fn take_config(bytes: &mut &[u8]) -> Option<TopicConfig> {
    let [count] = take(bytes)?;
    let mut config = TopicConfig::default();
    for _ in 0..count {
        let name = take_text(bytes)?;
        let value = i64::from_be_bytes(take(bytes)?);
        if let Ok(key) = ConfigKey::named(name)
            && let Some(value) = key.admit(value)
        {
            config.set(key, value);
        }
    }
    Some(config)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One of each kind.
    pub(crate) fn samples() -> Vec<MetadataRecord<'static>> {
        let mut config = TopicConfig::default();
        let retention = ConfigKey::RetentionMs;
        config.set(retention, retention.parse("55").unwrap());
        config.set(
            ConfigKey::CleanupPolicy,
            ConfigKey::CleanupPolicy.parse("compact").unwrap(),
        );
        let id = Uuid([7; 16]);
        vec![
            MetadataRecord::TopicCreated {
                id,
                name: "orders",
                partitions: 12,
                config: config.clone(),
            },
            MetadataRecord::TopicDeleted { id },
            MetadataRecord::PartitionsAdded { id, partitions: 13 },
            MetadataRecord::TopicConfigured { id, config },
            MetadataRecord::BrokerStarted { leader_epoch: 3 },
            MetadataRecord::ProducerIdsReserved { end: 2000 },
            MetadataRecord::OffsetCommitted(OffsetCommitted {
                group: "billing",
                topic: id,
                partition: 4,
                offset: 1 << 40,
                leader_epoch: -1,
                metadata: "nöte",
                committed_at: 1_700_000_000_000,
            }),
            MetadataRecord::OffsetDeleted {
                group: "billing",
                topic: id,
                partition: 4,
            },
            MetadataRecord::GroupDeleted { group: "" },
        ]
    }

    #[test]
    fn every_kind_goes_round_and_no_cut_is_a_record() {
        for record in samples() {
            let mut out = [0; 500];
            let bytes = record.encode(&mut out).unwrap();
            assert_eq!(MetadataRecord::decode(&out[..bytes]).as_ref(), Some(&record));
            assert_eq!(MetadataRecord::decode(&out[..bytes + 1]), None);
            for cut in 0..bytes {
                assert_eq!(MetadataRecord::decode(&out[..cut]), None, "{record:?} cut at {cut}");
                assert_eq!(record.encode(&mut vec![0; cut]), Err(TooLong));
            }
        }
    }

    #[test]
    fn a_setting_of_another_version_is_left_out() {
        let mut bytes = vec![4];
        bytes.extend_from_slice(&[7; 16]);
        bytes.push(2);
        for (name, value) in [("retention.mss", 5i64), ("retention.ms", 9)] {
            bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        let Some(MetadataRecord::TopicConfigured { config, .. }) = MetadataRecord::decode(&bytes) else {
            panic!("a record");
        };
        assert_eq!(config.kept().collect::<Vec<_>>(), [(ConfigKey::RetentionMs, 9)]);
    }

    #[test]
    fn the_longest_strings_fit() {
        let long = "g".repeat(32_767);
        let record = MetadataRecord::OffsetCommitted(OffsetCommitted {
            group: &long,
            topic: Uuid([1; 16]),
            partition: 0,
            offset: 0,
            leader_epoch: 0,
            metadata: &long,
            committed_at: 0,
        });
        let mut out = vec![0; RECORD_BYTES_MAX];
        let bytes = record.encode(&mut out).unwrap();
        assert_eq!(MetadataRecord::decode(&out[..bytes]), Some(record));
    }
}
