//! ITCH onto the tape. Risks beyond FIX: the meaning of a message depends on all before it. A block that is decoded
//! twice, not at all or out of turn spoils all later ones, and so does a run that resumes in the middle of a day.

use crate::common::{self, assert_same, run};
use proptest::prelude::*;
use std::path::Path;
use unitape_codec::twin::itch::sample::{SampleConfig, one_of_each, sample_messages};
use unitape_feed::{
    ConsolidateOptions, FileFeed, TapeAccount, consolidate, detect, feed_of_file, feed_of_option, quarantine,
};

/// Orders, and between them bytes that are changed, missing, too many.
fn adversarial(seed: u64, messages: usize) -> Vec<u8> {
    let config = SampleConfig { messages, stocks: 40, live: 150, seed };
    let day = sample_messages(config);
    let (mut out, mut at, mut state) = (Vec::new(), 0, seed | 1);
    let mut random = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    while at < day.len() {
        let length = 2 + usize::from(u16::from_be_bytes([day[at], day[at + 1]]));
        let mut message = day[at..at + length].to_vec();
        at += length;
        match random(120) {
            0 => message[1] ^= 1,
            1 => message[2] = b'z',
            2 => out.extend_from_slice(b"noise"),
            3 => message.clear(),
            4 => message[length - 1] ^= 0x40,
            5 => message.truncate(length - 3),
            6 => message[4] ^= 1,
            7 => message[7] = 0xff,
            8 => out.extend_from_slice(&one_of_each()),
            _ => {}
        }
        out.extend_from_slice(&message);
    }
    out
}

fn named(dir: &Path, mapping: &str, bytes: &[u8]) -> FileFeed {
    let path = dir.join("day-20260302.itch");
    std::fs::write(&path, bytes).unwrap();
    feed_of_option(&format!("itch=itch:{mapping}:{}", path.display())).unwrap()
}

const BOTH: [&str; 2] = ["nasdaq-itch50", "nasdaq-itch50-stateless"];

/// All of a good day becomes events, and the file is known by its content and its date by its name.
#[test]
fn a_day_is_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    let day = sample_messages(SampleConfig { messages: 20_000, stocks: 200, ..SampleConfig::default() });
    let path = dir.path().join("01302020.NASDAQ_ITCH50");
    std::fs::write(&path, &day).unwrap();
    assert_eq!(detect(&path).unwrap().name(), "itch");
    let tape = dir.path().join("tape");
    let outcome = run(&tape, &[feed_of_file(&path).unwrap()], 2, 64 << 10);
    let s = &outcome.summary;
    assert!(s.messages > 20_000 && s.events > s.messages, "{s:?}");
    assert_eq!((s.ignored, s.quarantined, s.duplicates), (0, 0, 0));
    assert_eq!(s.by_kind["ref"], 200);
    let account = TapeAccount::load(&tape).unwrap();
    assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()));
    let report = unitape_tape::verify(&tape).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn a_file_without_a_date_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("day.itch");
    std::fs::write(&path, sample_messages(SampleConfig { messages: 10, ..SampleConfig::default() })).unwrap();
    let feeds = vec![feed_of_file(&path).unwrap()];
    let error =
        consolidate(&dir.path().join("tape"), ConsolidateOptions { feeds, ..ConsolidateOptions::default() })
            .unwrap_err();
    assert!(error.to_string().contains("say session_date"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_workers_and_any_cut_gives_the_same_tape(
        seed in any::<u64>(), which in 0usize..2, workers in 2usize..5, block in 64usize..6000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let feeds = [named(dir.path(), BOTH[which], &adversarial(seed, 1_500))];
        let (one, many) = (dir.path().join("one"), dir.path().join("many"));
        let outcome = run(&one, &feeds, 1, 1 << 20);
        run(&many, &feeds, workers, block);
        assert_same(&one, &many, &format!("seed {seed}, {workers} workers, blocks of {block}"));
        prop_assert!(outcome.summary.quarantined > 0);
        prop_assert!(TapeAccount::load(&one).unwrap().sources.iter().all(|s| s.tally.is_balanced() && s.end));
    }

    /// Two days at once: the orders of one must not be looked for in the other.
    #[test]
    fn two_feeds_with_orders(seed in any::<u64>(), workers in 1usize..4, block in 300usize..6000) {
        let dir = tempfile::tempdir().unwrap();
        let feeds: Vec<FileFeed> = [seed, seed ^ 1]
            .iter()
            .enumerate()
            .map(|(n, seed)| {
                let path = dir.path().join(format!("day{n}-20260302.itch"));
                std::fs::write(&path, adversarial(*seed, 800)).unwrap();
                feed_of_option(&format!("f{n}=itch:nasdaq-itch50:{}", path.display())).unwrap()
            })
            .collect();
        let (one, many) = (dir.path().join("one"), dir.path().join("many"));
        run(&one, &feeds, 1, 1 << 20);
        run(&many, &feeds, workers, block);
        assert_same(&one, &many, &format!("seed {seed}, {workers} workers, blocks of {block}"));
    }
}

/// Stops at many places; each run must find the orders as the one before it left them.
fn stopped_and_started_again(seed: u64, mapping: &str, workers: usize, messages: usize) -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let feeds = [named(dir.path(), mapping, &adversarial(seed, messages))];
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    run(&whole, &feeds, 1, 1 << 20);
    let runs = common::run_in_parts(&parts, &feeds, workers, 20_000, 12_000);
    let (a, b) = (TapeAccount::load(&whole).unwrap(), TapeAccount::load(&parts).unwrap());
    assert_eq!(
        serde_json::to_value(a.summary()).unwrap(),
        serde_json::to_value(b.summary()).unwrap(),
        "seed {seed}"
    );
    assert_same(&whole, &parts, &format!("seed {seed}, {workers} workers, {runs} runs"));
    runs
}

#[test]
fn a_day_in_many_runs_is_the_day_in_one() {
    let mut runs = 0;
    for seed in 0..3 {
        // More than two mebibytes, so that there are marks of progress in between.
        runs += stopped_and_started_again(seed, BOTH[usize::from(seed == 2)], 1 + seed as usize % 3, 75_000);
    }
    assert!(runs > 6, "{runs} runs");
}

/// A message that was refused for what it says itself can be tried again by itself, with the day it was of.
#[test]
fn the_quarantine_knows_the_day() {
    let dir = tempfile::tempdir().unwrap();
    let mut day = sample_messages(SampleConfig { messages: 300, stocks: 3, ..SampleConfig::default() });
    let at = day.windows(3).position(|w| w == [0, 36, b'A']).unwrap();
    day[at + 2 + 19] = b'?';
    let tape = dir.path().join("tape");
    let outcome = run(&tape, &[named(dir.path(), "nasdaq-itch50-stateless", &day)], 1, 1 << 20);
    assert_eq!(outcome.summary.quarantined, 1);
    let entries = quarantine::list(&tape).unwrap();
    assert_eq!((entries.len(), entries[0].reason.as_str()), (1, "bad_side"));
}
