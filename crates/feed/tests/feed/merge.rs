//! The merge of segments and the merge of tapes are one: the same units in the same order, however often a merge begins
//! again. A merge of segments refused users' messages and events without a source, because a restart did not know how many
//! of them it had placed.

use crate::common::{files, fix, small_tape, tape_of, units};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use unitape_feed::{
    ClockLeadLimits, ConsolidateOptions, Error, InputTape, Mapping, MergeOptions, MergeSegment, RunMonitor,
    RunOutcome, RunProgress, TapeAccount, TapeMergeOptions, consolidate, feed_of_option, merge, merge_tapes,
    quarantine,
};
use unitape_model::message::KIND_MESSAGE;
use unitape_model::{
    Dictionary, EventBuilder, EventKind, EventSchema, FrameHeader, NameKind, TopicMessage, UnixNanos, flags,
    frames,
};
use unitape_tape::{ReadOptions, TapeId, TapeManifest, Writer};

/// 2024-03-11 09:00:00 UTC, the time of the first order.
const START: i64 = 1_710_147_600_000_000_000;

/// A time in 2262: of a wrong clock.
const WRONG: i64 = 9_222_000_000_000_000_000;

/// Consolidates orders of these seconds, one of them damaged, as a further file of a feed.
fn add_orders(tape: &Path, feed: &str, file: &str, seconds: std::ops::Range<u32>) {
    let mut bytes = Vec::new();
    for second in seconds {
        let time = format!("20240311-09:{:02}:{:02}", second / 60, second % 60);
        let body = format!(
            "35=8|150=F|49=XLON|56=U|34={second}|52={time}|60={time}|37={feed}{second}|150=0|54=1|38=5|44=10.5|48=S{}|22=4|1=A|",
            second % 5
        );
        let mut message = fix("FIX.4.4", &body);
        if second % 7 == 3 {
            message[40] ^= 1;
        }
        bytes.extend_from_slice(&message);
    }
    let path = tape.with_file_name(format!("{feed}-{file}.fix"));
    std::fs::write(&path, bytes).unwrap();
    let feeds = vec![feed_of_option(&format!("{feed}=fix:fix44-orders:{}", path.display())).unwrap()];
    consolidate(
        tape,
        ConsolidateOptions { feeds, workers: 1, tape: small_tape(), ..ConsolidateOptions::default() },
    )
    .unwrap();
}

/// Appends units without a source, as a program does: a trade at each of these seconds, and after it two messages.
fn add_own(tape: &Path, seconds: impl Iterator<Item = i64>) {
    let id = TapeManifest::load(tape).map_or(TapeId(7), |manifest| manifest.id);
    let (mut writer, _) = Writer::open(tape, id, small_tape()).unwrap();
    let mut names = TapeAccount::load(tape).unwrap().names.dictionary().clone();
    for second in seconds {
        let time = if second % 10 == 5 { WRONG } else { START + second * 1_000_000_000 };
        writer.append(&own_trade(time, &format!("OWN{}", second % 3), &mut names)).unwrap();
        (0..2).for_each(|n| _ = writer.append(&message(&format!("{n} after {second}"))).unwrap());
    }
    writer.close().unwrap();
}

fn own_trade(ts: i64, instrument: &str, names: &mut Dictionary) -> Vec<u8> {
    let mut unit = Vec::new();
    if names.get(NameKind::Instrument, instrument.as_bytes()).is_none() {
        let (id, _) = names.intern(NameKind::Instrument, instrument.as_bytes()).unwrap();
        EventBuilder::define(&mut unit, NameKind::Instrument, id, instrument).unwrap();
    }
    let mut trade = EventBuilder::begin(&mut unit, EventKind::Trade, UnixNanos(ts));
    for (field, value) in [("instr", instrument), ("px", "10.5"), ("qty", "3")] {
        let field = EventSchema::for_kind(EventKind::Trade).find(field).unwrap();
        trade.set_text(field, value.as_bytes(), names).unwrap();
    }
    trade.finish(flags::LAST).unwrap();
    unit
}

fn message(text: &str) -> Vec<u8> {
    let (header, word) = TopicMessage::header_words(3, text.len()).unwrap();
    let mut frame = vec![0; header.len_bytes()];
    header.write(&mut frame);
    frame[8..16].copy_from_slice(&word.to_le_bytes());
    frame[16..16 + text.len()].copy_from_slice(text.as_bytes());
    frame
}

/// Tapes of two feeds with a program's units between their files, and the tape of a program alone.
fn tapes(dir: &Path) -> Vec<PathBuf> {
    let tapes: Vec<_> = ["a", "b", "own"].map(|name| dir.join(name)).into();
    add_orders(&tapes[0], "a", "1", 0..20);
    add_own(&tapes[0], 12..26);
    add_orders(&tapes[0], "a", "2", 24..40);
    add_orders(&tapes[1], "b", "1", 10..30);
    add_own(&tapes[1], 31..36);
    add_own(&tapes[2], 0..45);
    tapes
}

fn merge_segments(tape: &Path, inputs: &[PathBuf]) -> Result<RunOutcome, Error> {
    let name = |dir: &PathBuf| dir.file_name().unwrap().to_str().unwrap().to_owned();
    let segments = inputs.iter().map(|dir| MergeSegment {
        name: name(dir),
        dir: dir.clone(),
        ended: Arc::new(AtomicBool::new(true)),
        stopped: Arc::default(),
        wait: None,
    });
    let options = MergeOptions {
        segments: segments.collect(),
        tape: small_tape(),
        wait: None,
        lead: ClockLeadLimits::default(),
        by_receive_time: false,
        stats: Arc::new(RunMonitor::new(inputs.iter().map(name))),
        spin: false,
    };
    merge(tape, options)
}

fn merge_finished(tape: &Path, inputs: &[PathBuf]) {
    let input = |dir: &PathBuf| InputTape::parse(dir.to_str().unwrap()).unwrap();
    let options = TapeMergeOptions {
        inputs: inputs.iter().map(input).collect(),
        tape: small_tape(),
        read: ReadOptions { verify: true, skip_damage: false },
        lead: ClockLeadLimits::default(),
        stop: None,
        progress: Arc::new(RunProgress::default()),
    };
    merge_tapes(tape, options).unwrap();
}

/// The messages on a tape.
fn messages(units: &[Vec<u8>]) -> usize {
    let of_unit =
        |unit: &Vec<u8>| frames(unit).filter(|(_, header, _)| header.kind() == KIND_MESSAGE).count();
    units.iter().map(of_unit).sum()
}

/// Each merge once refused what the other one places, and two wrong clocks confirmed each other in one of them.
#[test]
fn segments_and_finished_tapes_become_the_same_tape() {
    let dir = tempfile::tempdir().unwrap();
    let tapes = tapes(dir.path());
    let (live, finished) = (dir.path().join("live"), dir.path().join("finished"));
    let outcome = merge_segments(&live, &tapes).unwrap();
    merge_finished(&finished, &tapes);
    let (live_units, finished_units) = (units(&live), units(&finished));
    let differs = live_units.iter().zip(&finished_units).position(|(a, b)| a != b);
    assert_eq!((differs, live_units.len()), (None, finished_units.len()));
    assert_eq!(messages(&live_units), 2 * (14 + 5 + 45));
    let summary = &outcome.summary;
    assert_eq!((summary.by_kind["trade"], summary.clock_ahead), (14 + 5 + 45, 2 + 1 + 4));
    assert!(summary.quarantined > 0 && summary.messages == 56, "{summary:?}");
    let raw = |tape: &Path| std::fs::read(tape.join("quarantine.raw")).unwrap();
    assert!(raw(&live) == raw(&finished));
    // A trade and the messages after it need one record, which is written through to the disk.
    let records = std::fs::read_to_string(live.join("merge.units")).unwrap().lines().count();
    assert!(records <= 1 + 14 + 5 + 45, "{records} records");
}

/// Wherever a merge of segments was killed, it places each unit once, also where its last record is of units that are not
/// on the tape, or not all of them.
#[test]
fn a_merge_of_segments_resumes_after_any_unit() {
    let dir = tempfile::tempdir().unwrap();
    let tapes = tapes(dir.path());
    let whole = dir.path().join("whole");
    merge_segments(&whole, &tapes).unwrap();
    let wanted = units(&whole);
    let before = files(&whole);
    merge_segments(&whole, &tapes).unwrap();
    assert!(before == files(&whole), "a rerun changed the tape");
    // A record is of three units: the cuts are before, within and after them.
    for cut in (0..wanted.len()).step_by(4) {
        let tape = dir.path().join(format!("cut-{cut}"));
        tape_of(&tape, &whole, &wanted[..cut]);
        std::fs::copy(whole.join("merge.units"), tape.join("merge.units")).unwrap();
        merge_segments(&tape, &tapes).unwrap();
        assert!(units(&tape) == wanted, "cut after {cut} units");
        std::fs::remove_dir_all(&tape).unwrap();
    }
}

/// What a program appends to a segment between two runs is placed by the second.
#[test]
fn segments_that_grew_are_continued() {
    let dir = tempfile::tempdir().unwrap();
    let tapes = tapes(dir.path());
    let tape = dir.path().join("tape");
    merge_segments(&tape, &tapes).unwrap();
    let before = units(&tape);
    for n in 1..4 {
        add_own(&tapes[0], 100 * n..100 * n + 3);
        add_own(&tapes[2], 100 * n + 1..100 * n + 2);
        merge_segments(&tape, &tapes).unwrap();
        let now = units(&tape);
        assert!(now.starts_with(&before));
        assert_eq!(now.len(), before.len() + n as usize * 3 * 4);
    }
    let last_flags = FrameHeader::read(units(&tape).last().unwrap()).flags();
    assert!(last_flags & flags::LATE == 0);
}

/// Another tape in the place of a segment, or records that are damaged, were read as far as they went.
#[test]
fn other_segments_and_damaged_records_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let tapes = tapes(dir.path());
    let tape = dir.path().join("tape");
    merge_segments(&tape, &tapes).unwrap();
    let refusal = |inputs: &[PathBuf]| merge_segments(&tape, inputs).unwrap_err().to_string();
    let moved = dir.path().join("moved");
    std::fs::rename(&tapes[2], &moved).unwrap();
    add_orders(&tapes[2], "own", "1", 0..3);
    assert!(refusal(&tapes).contains("not the one that was merged before"), "{}", refusal(&tapes));
    std::fs::remove_dir_all(&tapes[2]).unwrap();
    std::fs::rename(&moved, &tapes[2]).unwrap();
    merge_segments(&tape, &tapes).unwrap();
    std::fs::write(tape.join("merge.units"), "{}\n").unwrap();
    assert!(refusal(&tapes).contains("merge.units"), "{}", refusal(&tapes));
}

/// A message of a segment that a retry recovered has a source definition of its own, which a restart did not count: the
/// segment was another tape then.
#[test]
fn a_segment_with_recovered_messages_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (segment, tape) = (dir.path().join("a"), dir.path().join("tape"));
    let path = dir.path().join("unknown.fix");
    let body = |n| format!("35=ZZ|49=XLON|56=U|34={n}|52=20240311-09:00:0{n}|37=N{n}|");
    std::fs::write(&path, [fix("FIX.4.4", &body(1)), fix("FIX.4.4", &body(2))].concat()).unwrap();
    let feeds = vec![feed_of_option(&format!("a=fix:fix44-orders:{}", path.display())).unwrap()];
    let options =
        ConsolidateOptions { feeds, workers: 1, tape: small_tape(), ..ConsolidateOptions::default() };
    consolidate(&segment, options).unwrap();
    let inputs = [segment.clone()];
    merge_segments(&tape, &inputs).unwrap();

    let rule = "\n[[rule]]\nwhen = { \"35\" = \"ZZ\" }\n[[rule.event]]\nkind = \"news\"\n[rule.event.fields]\nnews_id = \"37\"\n";
    let mended = include_str!("../../../../mappings/fix44-orders.toml").to_owned() + rule;
    let mended = Mapping::parse(&mended, "mended.toml").unwrap();
    assert_eq!(quarantine::retry(&segment, Some(&mended), None).unwrap().recovered, 2);
    merge_segments(&tape, &inputs).unwrap();
    add_own(&segment, 1..3);
    add_orders(&segment, "a", "2", 20..30);
    let summary = merge_segments(&tape, &inputs).unwrap().summary;
    assert_eq!((summary.by_kind["news"], summary.recovered, summary.by_kind["trade"]), (2, 2, 2));
    assert_eq!(units(&tape).len(), units(&segment).len());
    let before = files(&tape);
    merge_segments(&tape, &inputs).unwrap();
    assert!(before == files(&tape), "a rerun changed the tape");
}
