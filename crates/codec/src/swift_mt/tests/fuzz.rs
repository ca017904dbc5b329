//! The fuzzer's checks over its corpus and seeds, so that they run without a fuzzer.

use crate::twin::swift_mt::{check, sample};
use std::path::PathBuf;

// An input that once broke something stays in the corpus; it must not break it again.
#[test]
fn the_corpus_under_every_option() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/swift_frame");
    let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut count = 0;
    for entry in entries {
        let mut input = std::fs::read(entry.expect("a directory entry").path()).expect("a corpus file");
        if input.is_empty() {
            continue;
        }
        for pick in 0..2 {
            input[0] = pick;
            check::any_bytes(&input);
        }
        count += 1;
    }
    assert!(count >= 20, "the corpus has lost files: {count}");
}

// Messages with one byte changed at a time, all over.
#[test]
fn messages_with_every_byte_changed() {
    let mut input = vec![0];
    input.extend(sample::sample_messages(4, 1));
    for at in 1..input.len() {
        let before = input[at];
        for byte in [b'{', b'}', b'\n', before ^ 1] {
            input[at] = byte;
            check::any_bytes(&input);
        }
        input[at] = before;
    }
}
