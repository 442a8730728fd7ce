//! The table that declares a message once.
//!
//! ```text
//! message! {
//!     /// What it is.
//!     MetadataRequest<'a>: versions [0..=13], flexible [9..] {
//!         /// What the field says.
//!         topics: Array<'a, MetadataRequestTopic<'a>> [0..] null [1..];
//!         allow_auto_topic_creation: bool [4..] = true;
//!     }
//! }
//! ```
//!
//! One line is one field: name, type, versions that have it, then, where they apply, the versions in which it may be null,
//! its tag, and its default. A table without `versions` is a struct inside a message and takes its version from there.
//! Tables without borrowed fields leave out the lifetime. From the table come the struct, `Default` (Kafka's defaults), and
//! [`Value`](super::Value), [`Table`](super::Table) and [`Message`](super::Message): decode, skim, encode, length, versions
//! and schema. A field that a version does not have is not written and reads as its default.

macro_rules! message {
    // With borrowed fields, and without.
    ($(#[$meta:meta])* $name:ident<$a:lifetime> $(: versions $versions:tt, flexible $flexible:tt)? { $($fields:tt)* }) => {
        $crate::wire::message! { @table [$(#[$meta])*] $a $name [<$a>] { $($fields)* } }
        $($crate::wire::message! { @message $a $name [<$a>] $versions $flexible })?
    };
    ($(#[$meta:meta])* $name:ident $(: versions $versions:tt, flexible $flexible:tt)? { $($fields:tt)* }) => {
        $crate::wire::message! { @table [$(#[$meta])*] 'a $name [] { $($fields)* } }
        $($crate::wire::message! { @message 'a $name [] $versions $flexible })?
    };

    (@message $a:lifetime $name:ident [$($generics:tt)*] $versions:tt $flexible:tt) => {
        impl<$a> $crate::wire::Message<$a> for $name $($generics)* {
            const VERSIONS: $crate::wire::Versions = $crate::wire::message!(@versions $versions);
            const FLEXIBLE: $crate::wire::Versions = $crate::wire::message!(@versions $flexible);
        }
    };

    (@table [$(#[$meta:meta])*] $a:lifetime $name:ident [$($generics:tt)*] {
        $(
            $(#[$doc:meta])*
            $field:ident: $ty:ty [$($versions:tt)+] $(null $null:tt)? $(tag $tag:literal)? $(= $default:expr)?;
        )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $name $($generics)* {
            $($(#[$doc])* pub $field: $ty,)*
        }

        impl $($generics)* Default for $name $($generics)* {
            fn default() -> Self {
                Self { $($field: $crate::wire::message!(@default $($default)?),)* }
            }
        }

        // Each line of the table under its field's name, so that the code below asks the line what to do.
        #[allow(non_upper_case_globals)]
        impl<$a> $name $($generics)* {
            $(const $field: $crate::wire::Field = $crate::wire::Field {
                name: stringify!($field),
                ty: <$ty as $crate::wire::Value<$a>>::TYPE,
                versions: $crate::wire::message!(@versions [$($versions)+]),
                nullable: $crate::wire::message!(@versions $($null)?),
                tag: $crate::wire::message!(@option $($tag)?),
                default: $crate::wire::message!(@option $(stringify!($default))?),
            };)*
        }

        impl<$a> $crate::wire::Table<$a> for $name $($generics)* {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::wire::Field] = &[$(Self::$field),*];
        }

        impl<$a> $crate::wire::Value<$a> for $name $($generics)* {
            const TYPE: &'static $crate::wire::Type =
                &$crate::wire::Type::Struct(stringify!($name), <Self as $crate::wire::Table<$a>>::FIELDS);

            fn take(
                r: &mut $crate::wire::Reader<$a>,
                form: $crate::wire::Form,
            ) -> Result<Self, $crate::wire::DecodeError> {
                let mut this = Self {
                    $($field: match Self::$field.in_line(form) {
                        Some(form) => $crate::wire::Value::take(r, form)?,
                        None => $crate::wire::message!(@default $($default)?),
                    },)*
                };
                if form.is_flexible() {
                    $crate::wire::take_tags(r, |tag, r| {
                        $(if let Some(form) = Self::$field.tagged(tag, form) {
                            this.$field = $crate::wire::Value::take(r, form)?;
                            return Ok(true);
                        })*
                        Ok(false)
                    })?;
                }
                Ok(this)
            }

            fn skim(
                r: &mut $crate::wire::Reader<$a>,
                form: $crate::wire::Form,
            ) -> Result<(), $crate::wire::DecodeError> {
                $(if let Some(form) = Self::$field.in_line(form) {
                    <$ty as $crate::wire::Value<$a>>::skim(r, form)?;
                })*
                if form.is_flexible() {
                    $crate::wire::take_tags(r, |tag, r| {
                        $(if let Some(form) = Self::$field.tagged(tag, form) {
                            <$ty as $crate::wire::Value<$a>>::skim(r, form)?;
                            return Ok(true);
                        })*
                        Ok(false)
                    })?;
                }
                Ok(())
            }

            fn put<S: $crate::wire::Sink>(
                &self,
                out: &mut S,
                form: $crate::wire::Form,
            ) -> Result<(), $crate::wire::Full> {
                $(if let Some(form) = Self::$field.in_line(form) {
                    $crate::wire::Value::put(&self.$field, out, form)?;
                })*
                if form.is_flexible() {
                    let default = Self::default();
                    let count = 0_u32 $(+ u32::from(Self::$field.is_written(&self.$field, &default.$field, form)))*;
                    out.put_unsigned_varint(count)?;
                    if count > 0 {
                        $(Self::$field.put_tagged(&self.$field, &default.$field, out, form)?;)*
                    }
                }
                Ok(())
            }

            fn is_default(&self, default: &Self) -> bool {
                true $(&& $crate::wire::Value::is_default(&self.$field, &default.$field))*
            }
        }
    };

    (@versions) => { $crate::wire::Versions::NONE };
    (@versions [none]) => { $crate::wire::Versions::NONE };
    (@versions [$min:literal..]) => { $crate::wire::Versions { min: $min, max: $crate::wire::Version::MAX } };
    (@versions [$min:literal..=$max:literal]) => { $crate::wire::Versions { min: $min, max: $max } };

    (@default) => { Default::default() };
    (@default $default:expr) => { $default };

    (@option) => { None };
    (@option $value:expr) => { Some($value) };
}

pub(crate) use message;

#[cfg(test)]
mod tests {
    use crate::wire::{Array, DecodeError, Full, Items, Message, Reader, Records, Sink, SliceWriter, Table, Versions};

    message! {
        /// A little of everything.
        Everything<'a>: versions [0..=2], flexible [2..] {
            /// Always there.
            id: i32 [0..] = -1;
            /// Null from 1.
            name: Option<&'a str> [0..] null [1..] = None;
            /// Only in 1.
            passing: bool [1..=1];
            /// With elements of its own.
            parts: Array<'a, Part<'a>> [0..] null [2..];
            /// Tagged.
            extra: i64 [2..] tag 0 = 7;
            /// Tagged, and a struct.
            point: Point [2..] tag 3;
            /// Last.
            records: Records<'a> [0..] null [0..];
        }
    }

    message! {
        /// An element.
        Part<'a> {
            /// Its number.
            index: i32 [0..];
            /// Its strings.
            words: Array<'a, &'a str> [1..];
        }
    }

    message! {
        /// Nothing borrowed.
        Point {
            /// A number.
            x: i8 [2..] = -1;
        }
    }

    const WORDS: &[&str] = &["ab", ""];
    const PARTS: &[Part<'static>] = &[Part {
        index: 5,
        words: Array::Slice(WORDS),
    }];

    fn sample() -> Everything<'static> {
        Everything {
            id: 1,
            name: Some("n"),
            passing: true,
            parts: Array::Slice(PARTS),
            extra: 8,
            point: Point { x: 2 },
            records: Records::Bytes(&[9]),
        }
    }

    fn encoded<'b>(message: &Everything<'_>, version: i16, buf: &'b mut [u8]) -> &'b [u8] {
        let mut out = SliceWriter::new(buf);
        message.encode(&mut out, version).unwrap();
        assert_eq!(message.encoded_len(version), out.len());
        out.finish()
    }

    #[test]
    fn each_version_has_its_own_bytes() {
        let mut buf = [0; 64];
        assert_eq!(
            encoded(&sample(), 0, &mut buf),
            [0, 0, 0, 1, 0, 1, b'n', 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 9]
        );
        assert_eq!(
            encoded(&sample(), 1, &mut buf)[..26],
            [
                0, 0, 0, 1, 0, 1, b'n', 1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 2, b'a', b'b', 0, 0
            ]
        );
        assert_eq!(
            encoded(&sample(), 2, &mut buf),
            [
                0, 0, 0, 1, 2, b'n', // id, name
                2, 0, 0, 0, 5, 3, 3, b'a', b'b', 1, 0, // parts: one, its words, its tags
                2, 9, // records
                2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 3, 2, 2, 0, // tags 0 and 3
            ]
        );
    }

    #[test]
    fn decoding_gives_back_what_the_version_carries() {
        let mut buf = [0; 64];
        for version in 0..=2 {
            let bytes = encoded(&sample(), version, &mut buf);
            let mut r = Reader::new(bytes);
            let back = Everything::decode(&mut r, version).unwrap();
            assert!(r.is_empty());
            assert_eq!((back.id, back.name, back.passing), (1, Some("n"), version == 1));
            assert_eq!((back.extra, back.point.x), if version == 2 { (8, 2) } else { (7, -1) });
            assert_eq!(back.records, Records::Bytes(&[9]));
            let part = back.parts.iter().next().unwrap();
            assert_eq!((back.parts.len(), part.index), (1, 5));
            assert!(
                part.words
                    .iter()
                    .eq(if version == 0 { [].iter() } else { WORDS.iter() }.copied())
            );
            let mut again = [0; 64];
            assert_eq!(encoded(&back, version, &mut again), bytes);
            for cut in 0..bytes.len() {
                let error = Everything::decode(&mut Reader::new(&bytes[..cut]), version).unwrap_err();
                assert_eq!(error, DecodeError::Short, "version {version} cut at {cut}");
            }
        }
    }

    #[test]
    fn null_is_written_as_empty_where_there_is_no_null() {
        let mut buf = [0; 64];
        let message = Everything {
            parts: Array::Null,
            ..Everything::default()
        };
        assert_eq!(encoded(&message, 0, &mut buf)[4..10], [0, 0, 0, 0, 0, 0]);
        assert_eq!(encoded(&message, 1, &mut buf)[4..11], [0xff, 0xff, 0, 0, 0, 0, 0]);
        assert_eq!(encoded(&message, 2, &mut buf)[4..], [0, 0, 0, 0]);
        let back = Everything::decode(&mut Reader::new(&[0, 0, 0, 0, 0, 0, 0, 0]), 2).unwrap();
        assert!(back.parts.is_null() && back.name.is_none());
    }

    #[test]
    fn broken_bytes_say_which_rule_they_broke() {
        let error = |bytes: &[u8], version| Everything::decode(&mut Reader::new(bytes), version).unwrap_err();
        assert_eq!(error(&[], 3), DecodeError::Version);
        assert_eq!(error(&[0, 0, 0, 0, 0xff, 0xff], 0), DecodeError::UnexpectedNull);
        assert_eq!(error(&[0, 0, 0, 0, 0xff, 0xfe], 0), DecodeError::NegativeLength);
        assert_eq!(error(&[0, 0, 0, 0, 0, 1, 0xc0], 0), DecodeError::Utf8);
        // A compact string of 32,768 bytes, and one of 32,767 that is not all there.
        assert_eq!(error(&[0, 0, 0, 0, 0x81, 0x80, 2], 2), DecodeError::StringLength);
        assert_eq!(error(&[0, 0, 0, 0, 0x80, 0x80, 2], 2), DecodeError::Short);
        // A count that the bytes cannot hold.
        assert_eq!(
            error(&[0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff], 0),
            DecodeError::Short
        );
        // Broken text inside an array is found when the array is, not when it is iterated.
        let inside = [0, 0, 0, 0, 1, 2, 0, 0, 0, 5, 2, 2, 0xff, 0, 0, 0];
        assert_eq!(error(&inside, 2), DecodeError::Utf8);
        // A tagged value that is longer or shorter than announced.
        assert_eq!(
            error(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8, 0], 2),
            DecodeError::TagSize
        );
        assert_eq!(
            error(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 8], 2),
            DecodeError::TagSize
        );
    }

    #[test]
    fn an_unknown_tag_is_stepped_over() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 2, 3, 2, 4, 0, 99, 2, 1, 2];
        let mut r = Reader::new(&bytes);
        assert_eq!(Everything::decode(&mut r, 2).unwrap().point.x, 4);
        assert!(r.is_empty());
    }

    #[test]
    fn the_table_describes_itself() {
        let names: std::vec::Vec<_> = Everything::FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(names, ["id", "name", "passing", "parts", "extra", "point", "records"]);
        assert_eq!(Everything::FIELDS[4].tag, Some(0));
        assert_eq!(Everything::FIELDS[4].default, Some("7"));
        assert_eq!(Everything::FIELDS[2].versions, Versions { min: 1, max: 1 });
    }

    /// An owner of numbers, as a handler's context is of partitions.
    struct Owner {
        words: [&'static str; 2],
    }

    impl<'a> Items<'a, Part<'a>> for Owner {
        fn count(&'a self, key: usize) -> usize {
            key
        }

        fn each(&'a self, key: usize, emit: &mut dyn FnMut(&Part<'a>) -> Result<(), Full>) -> Result<(), Full> {
            (0_i32..).take(key).try_for_each(|index| {
                emit(&Part {
                    index,
                    words: Array::Slice(&self.words),
                })
            })
        }
    }

    #[test]
    fn made_elements_are_written_like_those_in_memory() {
        let owner = Owner { words: ["x", "y"] };
        let made = Everything {
            parts: Array::Items(&owner, 2),
            ..Everything::default()
        };
        let parts = [0, 1].map(|index| Part {
            index,
            words: Array::Slice(&owner.words),
        });
        let in_memory = Everything {
            parts: Array::Slice(&parts),
            ..Everything::default()
        };
        let (mut one, mut other) = ([0; 64], [0; 64]);
        for version in 0..=2 {
            assert_eq!(
                encoded(&made, version, &mut one),
                encoded(&in_memory, version, &mut other)
            );
        }
        assert_eq!(std::format!("{:?}", made.parts), std::format!("{:?}", in_memory.parts));
    }

    #[test]
    fn records_elsewhere_leave_a_gap() {
        let mut buf = [0; 64];
        let message = Everything {
            records: Records::Elsewhere(1000),
            ..Everything::default()
        };
        let mut out = SliceWriter::new(&mut buf);
        message.encode(&mut out, 0).unwrap();
        assert_eq!(out.written()[out.len() - 4..], 1000_i32.to_be_bytes());
        assert_eq!(message.encoded_len(0), out.len() + 1000);
        assert_eq!(out.gap_bytes(), 1000);
    }

    #[test]
    fn a_sink_that_is_too_small_is_full_at_every_size() {
        let mut buf = [0; 64];
        for version in 0..=2 {
            for room in 0..sample().encoded_len(version) {
                assert_eq!(
                    sample().encode(&mut SliceWriter::new(&mut buf[..room]), version),
                    Err(Full)
                );
            }
        }
        let long = std::string::String::from_utf8(std::vec![b'a'; 40_000]).unwrap();
        let message = Everything {
            name: Some(&long),
            ..Everything::default()
        };
        let mut big = std::vec![0; 50_000];
        assert_eq!(
            message.encode(&mut SliceWriter::new(&mut big), 0),
            Err(Full),
            "two bytes cannot say 40,000"
        );
        assert_eq!(message.encode(&mut SliceWriter::new(&mut big), 2), Ok(()));
        assert_eq!(SliceWriter::new(&mut []).put(&[]), Ok(()));
    }
}
