//! FAST messages in every framing: the engine against the slow twin, and JSON of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    unitape_codec::fast::check::any_bytes(data);
});
