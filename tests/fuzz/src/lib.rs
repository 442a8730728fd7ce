//! What the targets share.

use std::fmt::{self, Debug, Write as _};

use skerry_core::api::{APIS, Api};
use skerry_core::wire::Version;

/// An API and one of its versions from the first two bytes, and what follows them.
#[must_use]
pub fn choose(data: &[u8]) -> Option<(&'static Api, Version, &[u8])> {
    let ([api, version], body) = data.split_first_chunk()?;
    let api = &APIS[usize::from(*api) % APIS.len()];
    let count = api.versions.max - api.versions.min + 1;
    Some((api, api.versions.min + Version::from(*version) % count, body))
}

/// Looks at everything in `value`, down to the last element of the last array.
pub fn walk(value: &impl Debug) {
    struct Nowhere;
    impl fmt::Write for Nowhere {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            Ok(())
        }
    }
    write!(Nowhere, "{value:?}").expect("nowhere has room");
}
