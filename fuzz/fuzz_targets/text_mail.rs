//! E-mail and mbox: every byte accounted for, at every cut the same, on any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| unitape_codec::text::mail::check::any_bytes(data));
