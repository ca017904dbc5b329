//! FIX framing and fields: the fast path against the slow twin, on any bytes, at every cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| unitape_codec::fix::check::any_bytes(data));
