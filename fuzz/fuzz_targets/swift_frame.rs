//! SWIFT framing, fields and components: the fast path against the slow twin, on any bytes, at every cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| unitape_codec::swift_mt::check::any_bytes(data));
