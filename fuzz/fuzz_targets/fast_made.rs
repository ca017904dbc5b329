//! FAST by made-up templates: the engine against the slow twin, values and errors.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    unitape_codec::fast::check::from_bytes(data);
});
