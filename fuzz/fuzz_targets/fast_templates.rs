//! Files of FAST templates of any bytes; those that load are run.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    unitape_codec::fast::check::any_templates(data);
});
