//! Units without a source on the tape of a segment: a run refused them, so that its merge ended.
#![cfg(unix)]

use crate::common::{self, cat, file, files};
use common::run::Bench;
use std::path::Path;
use unitape_model::{EventBuilder, EventKind, TopicMessage, UnixNanos, flags};
use unitape_tape::{TapeManifest, Writer, WriterOptions};

/// Appends an event without a source and a user's message, as a program does while no run writes the tape.
fn append_own(tape: &Path, text: &str) {
    let id = TapeManifest::load(tape).unwrap().id;
    let (mut writer, _) = Writer::open(tape, id, WriterOptions::default()).unwrap();
    let mut unit = Vec::new();
    EventBuilder::begin(&mut unit, EventKind::Clock, UnixNanos(1_772_434_800_000_000_000))
        .finish(flags::LAST)
        .unwrap();
    writer.append(&unit).unwrap();
    let (header, word) = TopicMessage::header_words(1, text.len()).unwrap();
    let mut frame = vec![0; header.len_bytes()];
    header.write(&mut frame);
    frame[8..16].copy_from_slice(&word.to_le_bytes());
    frame[16..16 + text.len()].copy_from_slice(text.as_bytes());
    writer.append(&frame).unwrap();
    writer.close().unwrap();
}

#[test]
fn units_without_a_source_are_merged_once() {
    let feeds = [("a", "files = [\"a\"]"), ("b", "files = [\"b\"]")];
    let bench = Bench::new("wait = \"unbounded\"\nsegments = \"apart\"", &feeds);
    for (seed, name) in [(1, "a"), (2, "b")] {
        file(bench.dir.path(), name, common::flow(seed, 300, false).0);
    }
    let (code, said) = bench.start().ends();
    assert_eq!(code, Some(0), "{said}");
    let orders = cat(&bench.tape(), &["--full"]).len();
    for round in 1..3 {
        append_own(&bench.path("tape.segments/a"), &format!("a {round}"));
        append_own(&bench.path("tape.segments/b"), &format!("b {round}"));
        let (code, said) = bench.start().ends();
        assert_eq!(code, Some(0), "{said}");
        let events = cat(&bench.tape(), &["--full"]);
        assert_eq!(events.len(), orders + 4 * round);
        let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
        assert_eq!((count("clock"), count("message")), (2 * round, 2 * round));
        let before = files(&bench.tape());
        assert_eq!(bench.start().ends().0, Some(0));
        assert!(before == files(&bench.tape()), "a rerun changed the tape");
    }
    common::run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
}
