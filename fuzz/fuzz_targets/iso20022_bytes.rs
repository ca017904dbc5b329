//! ISO 20022 framing and parsing: what is taken is what another parser reads, at every cut the same, on any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| unitape_codec::iso20022::check::any_bytes(data));
