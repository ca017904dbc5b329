//! All fuzz targets in one binary, so that it is built and linked once. `UNITAPE_FUZZ_TARGET` names the one that runs.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

macro_rules! targets {
    ($($name:ident)*) => {
        $(mod $name;)*
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
    };
}

targets! {
    book_events
    capture
    csv_rows
    events_line
    fast_encode
    fast_handler
    fast_made
    fast_message
    fast_rules
    fast_templates
    feed_bytes
    fix_frame
    fixed_records
    iso20022_bytes
    itch_frame
    journal
    mapping_text
    store_block
    swift_frame
    tape_open
    text_jsonl
    text_mail
    text_xml
}

const VARIABLE: &str = "UNITAPE_FUZZ_TARGET";

static CHOSEN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    match TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => *run,
        None => {
            let known: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            panic!("{VARIABLE}={name} is no target; there are: {}", known.join(", "));
        }
    }
});

fuzz_target!(|data: &[u8]| CHOSEN(data));
