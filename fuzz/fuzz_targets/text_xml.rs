//! News in XML: every byte accounted for, items as the slow twin reads them, at every cut the same, on any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| unitape_codec::text::xml::check::any_bytes(data));
