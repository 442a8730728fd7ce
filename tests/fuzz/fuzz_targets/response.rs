//! Any bytes as the body of any reply: an error, or a reply that can be walked, written, and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_core::api::Response;
use skerry_core::wire::{BufSink, Reader};
use skerry_fuzz::{choose, walk};

fuzz_target!(|data: &[u8]| {
    let Some((api, version, body)) = choose(data) else {
        return;
    };
    let written = |bytes: &[u8]| {
        let response = Response::decode(api.key, version, &mut Reader::new(bytes)).ok()?;
        walk(&response);
        let mut written = Vec::new();
        response
            .encode(&mut BufSink::new(&mut written), version)
            .expect("what was read can be written");
        Some(written)
    };
    let Some(once) = written(body) else { return };
    assert_eq!(written(&once), Some(once.clone()), "{} v{version}", api.name);
});
