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
    ($(#[$meta:meta])* $name:ident<$a:lifetime> $(: versions [$($v:tt)+], flexible [$($f:tt)+])? { $($fields:tt)* }) => {
        $crate::wire::message! { @table [$(#[$meta])*] $a $name [<$a>] { $($fields)* } }
        $($crate::wire::message! { @message $a $name [<$a>] [$($v)+] [$($f)+] })?
    };
    ($(#[$meta:meta])* $name:ident $(: versions [$($v:tt)+], flexible [$($f:tt)+])? { $($fields:tt)* }) => {
        $crate::wire::message! { @table [$(#[$meta])*] 'a $name [] { $($fields)* } }
        $($crate::wire::message! { @message 'a $name [] [$($v)+] [$($f)+] })?
    };

    (@message $a:lifetime $name:ident [$($generics:tt)*] [$($versions:tt)+] [$($flexible:tt)+]) => {
        impl<$a> $crate::wire::Message<$a> for $name $($generics)* {
            const VERSIONS: $crate::wire::Versions = $crate::wire::message!(@versions $($versions)+);
            const FLEXIBLE: $crate::wire::Versions = $crate::wire::message!(@versions $($flexible)+);
        }
    };

    (@table [$(#[$meta:meta])*] $a:lifetime $name:ident [$($generics:tt)*] {
        $(
            $(#[$doc:meta])*
            $field:ident: $ty:ty [$($versions:tt)+] $(null [$($null:tt)+])? $(tag $tag:literal)? $(= $default:expr)?;
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

        impl<$a> $crate::wire::Table<$a> for $name $($generics)* {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::wire::Field] = &[$(
                $crate::wire::Field {
                    name: stringify!($field),
                    ty: <$ty as $crate::wire::Value<$a>>::TYPE,
                    versions: $crate::wire::message!(@versions $($versions)+),
                    nullable: $crate::wire::message!(@versions $($($null)+)?),
                    tag: $crate::wire::message!(@option $($tag)?),
                    default: $crate::wire::message!(@option $(stringify!($default))?),
                },
            )*];
        }

        #[allow(unused_mut, unused_variables, clippy::match_single_binding)]
        impl<$a> $crate::wire::Value<$a> for $name $($generics)* {
            const TYPE: &'static $crate::wire::Type =
                &$crate::wire::Type::Struct(stringify!($name), <Self as $crate::wire::Table<$a>>::FIELDS);

            fn take(
                r: &mut $crate::wire::Reader<$a>,
                form: $crate::wire::Form,
            ) -> Result<Self, $crate::wire::DecodeError> {
                let mut this = Self {
                    $($field: $crate::wire::message!(
                        @unless_tagged [$($tag)?]
                        if $crate::wire::message!(@versions $($versions)+).contains(form.version()) {
                            $crate::wire::Value::take(r, $crate::wire::message!(@form form $($($null)+)?))?
                        } else {
                            $crate::wire::message!(@default $($default)?)
                        };
                        else $crate::wire::message!(@default $($default)?)
                    ),)*
                };
                if form.is_flexible() {
                    $crate::wire::take_tags(r, |tag, r| {
                        match (tag, form.version()) {
                            $($(($tag, version) if $crate::wire::message!(@versions $($versions)+).contains(version) => {
                                this.$field =
                                    $crate::wire::Value::take(r, $crate::wire::message!(@form form $($($null)+)?))?;
                            })?)*
                            _ => return Ok(false),
                        }
                        #[allow(unreachable_code)]
                        Ok(true)
                    })?;
                }
                Ok(this)
            }

            fn skim(
                r: &mut $crate::wire::Reader<$a>,
                form: $crate::wire::Form,
            ) -> Result<(), $crate::wire::DecodeError> {
                $($crate::wire::message!(
                    @unless_tagged [$($tag)?]
                    if $crate::wire::message!(@versions $($versions)+).contains(form.version()) {
                        <$ty as $crate::wire::Value<$a>>::skim(r, $crate::wire::message!(@form form $($($null)+)?))?;
                    };
                    else ()
                );)*
                if form.is_flexible() {
                    $crate::wire::take_tags(r, |tag, r| {
                        match (tag, form.version()) {
                            $($(($tag, version) if $crate::wire::message!(@versions $($versions)+).contains(version) => {
                                <$ty as $crate::wire::Value<$a>>::skim(
                                    r,
                                    $crate::wire::message!(@form form $($($null)+)?),
                                )?;
                            })?)*
                            _ => return Ok(false),
                        }
                        #[allow(unreachable_code)]
                        Ok(true)
                    })?;
                }
                Ok(())
            }

            fn put<S: $crate::wire::Sink>(
                &self,
                out: &mut S,
                form: $crate::wire::Form,
            ) -> Result<(), $crate::wire::Full> {
                $($crate::wire::message!(
                    @unless_tagged [$($tag)?]
                    if $crate::wire::message!(@versions $($versions)+).contains(form.version()) {
                        $crate::wire::Value::put(&self.$field, out, $crate::wire::message!(@form form $($($null)+)?))?;
                    };
                    else ()
                );)*
                if form.is_flexible() {
                    let mut tags = 0;
                    $($(
                        let $field = $crate::wire::message!(@versions $($versions)+).contains(form.version())
                            && !$crate::wire::Value::is_default(
                                &self.$field,
                                &$crate::wire::message!(@default $($default)?),
                            );
                        tags += $crate::wire::message!(@first u32::from($field), $tag);
                    )?)*
                    out.put_unsigned_varint(tags)?;
                    $($(
                        if $field {
                            $crate::wire::put_tag(
                                out,
                                $tag,
                                &self.$field,
                                $crate::wire::message!(@form form $($($null)+)?),
                            )?;
                        }
                    )?)*
                }
                Ok(())
            }

            fn is_default(&self, default: &Self) -> bool {
                true $(&& $crate::wire::Value::is_default(&self.$field, &default.$field))*
            }
        }
    };

    (@first $first:expr, $second:literal) => { $first };

    (@versions) => { $crate::wire::Versions::NONE };
    (@versions none) => { $crate::wire::Versions::NONE };
    (@versions $min:literal..) => { $crate::wire::Versions { min: $min, max: $crate::wire::Version::MAX } };
    (@versions $min:literal..=$max:literal) => { $crate::wire::Versions { min: $min, max: $max } };

    (@form $form:ident) => { $form.nullable(false) };
    (@form $form:ident $($null:tt)+) => {
        $form.nullable($crate::wire::message!(@versions $($null)+).contains($form.version()))
    };

    (@default) => { Default::default() };
    (@default $default:expr) => { $default };

    (@option) => { None };
    (@option $value:expr) => { Some($value) };

    (@unless_tagged [] $plain:expr; else $tagged:expr) => { $plain };
    (@unless_tagged [$tag:literal] $plain:expr; else $tagged:expr) => { $tagged };
}

pub(crate) use message;
