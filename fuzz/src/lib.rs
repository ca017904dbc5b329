//! Fuzz targets: functions that take any bytes, and panic where our code breaks a promise about bytes from outside.
//!
//! ```text
//! corpus/TARGET/* ──tests/inputs.rs──▶ seeds, and inputs made from them ──▶ target     (cargo test)
//!                 ──main.rs──▶ libFuzzer with AddressSanitizer          ──▶ target     (cargo xtask deep)
//! ```

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

macro_rules! targets {
    ($($name:ident)*) => {
        mod targets {
            $(pub mod $name;)*
        }

        /// Every target by name: each is a file of `targets`.
        pub const TARGETS: &[(&str, Target)] = &[$((stringify!($name), targets::$name::run)),*];
    };
}

targets! {
    book_events
    book_state
    capture
    csv_rows
    data_blocks
    data_messages
    data_request
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
    iex_packet
    iso20022_bytes
    itch_frame
    journal
    link_messages
    mapping_text
    store_block
    swift_frame
    tape_open
    text_jsonl
    text_mail
    text_xml
}

/// The target of a name.
///
/// # Panics
///
/// If there is none: the message names all.
pub fn target(name: &str) -> Target {
    match TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => *run,
        None => {
            let known: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            panic!("`{name}` is no fuzz target; there are: {}", known.join(", "));
        }
    }
}
