//! Any bytes as the body of any request: an error, or a request that can be walked, written, and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_core::api::Request;
use skerry_core::wire::{BufSink, Reader};
use skerry_fuzz::{choose, walk};

fuzz_target!(|data: &[u8]| {
    let Some((api, version, body)) = choose(data) else {
        return;
    };
    let written = |bytes: &[u8]| {
        let request = Request::decode(api.key as i16, version, &mut Reader::new(bytes)).ok()?;
        walk(&request);
        let mut written = Vec::new();
        request
            .encode(&mut BufSink::new(&mut written), version)
            .expect("what was read can be written");
        Some(written)
    };
    let Some(once) = written(body) else { return };
    assert_eq!(written(&once), Some(once.clone()), "{} v{version}", api.name);
});
