//! All fuzz targets in one binary for libFuzzer, so that it is built and linked once. `UNITAPE_FUZZ_TARGET` names the one
//! that runs.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod fuzzer {
    use std::sync::LazyLock;

    use unitape_fuzz::{Target, target};

    static CHOSEN: LazyLock<Target> =
        LazyLock::new(|| target(&std::env::var("UNITAPE_FUZZ_TARGET").unwrap_or_default()));

    libfuzzer_sys::fuzz_target!(|data: &[u8]| CHOSEN(data));
}

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("This binary needs libFuzzer: `cargo xtask deep --only fuzz` builds it and runs it.");
    std::process::exit(2);
}
