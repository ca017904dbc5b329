//! FAST messages that are told by made-up templates, and told again: both decoders read what was told.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    unitape_codec::fast::encode::check::from_bytes(data);
});
