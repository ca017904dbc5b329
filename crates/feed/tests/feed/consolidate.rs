//! The same input must give the same tape, whatever the number of workers, wherever blocks are cut, and however
//! often the run was interrupted. Each of these once depended on timing in systems that we know.

use crate::common::{self, assert_same, feed, fix, jse, run};
use proptest::prelude::*;
use std::path::Path;
use unitape_feed::{FileFeed, TapeAccount};

/// All messages of the real feed are accounted for: heartbeats ignored, everything else events.
#[test]
fn the_jse_feed_is_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(dir.path(), &[feed(&jse())], 2, 64 << 10);
    let s = &outcome.summary;
    assert_eq!((s.messages, s.ignored, s.quarantined, s.duplicates), (11110, 2523, 0, 0));
    assert_eq!(s.events, 10850);
    assert_eq!(s.by_kind["index"], 8587 + 2183);
    assert_eq!(s.by_kind["status"], 80);
    let account = TapeAccount::load(dir.path()).unwrap();
    assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()));
    // The run's report of itself equals the tape's account afterwards.
    assert_eq!(serde_json::to_value(s).unwrap(), serde_json::to_value(account.summary()).unwrap());
    let report = unitape_tape::verify(dir.path()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn any_number_of_workers_and_any_cut_gives_the_same_tape() {
    let reference = tempfile::tempdir().unwrap();
    run(reference.path(), &[feed(&jse())], 1, 1 << 20);
    for (workers, block_bytes) in [(1, 700), (2, 64 << 10), (2, 5000), (3, 1000), (4, 17_000)] {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), &[feed(&jse())], workers, block_bytes);
        assert_same(reference.path(), dir.path(), &format!("{workers} workers, blocks of {block_bytes}"));
    }
}

/// A rerun finds everything done and changes nothing.
#[test]
fn a_rerun_of_a_complete_tape_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let first = run(dir.path(), &[feed(&jse())], 2, 64 << 10);
    let before = common::files(dir.path());
    let again = run(dir.path(), &[feed(&jse())], 2, 64 << 10);
    assert_eq!(before, common::files(dir.path()));
    assert_eq!(again.fresh_messages, 0);
    assert_eq!(again.summary.messages, first.summary.messages);
}

/// Orders whose every block brings new symbols, bodies that hold what looks like the start of a message (so that
/// cuts fall inside messages), bad messages and garbage between the good ones.
fn adversarial(seed: u64, messages: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut random = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut out = Vec::new();
    let mut ts = 0u64;
    for i in 0..messages {
        // The clock goes back now and then; feed order wins.
        ts = (ts + random(5_000)).saturating_sub(if random(50) == 0 { 100_000 } else { 0 });
        let time = format!(
            "20240311-{:02}:{:02}:{:02}.{:06}",
            9 + ts / 3_600_000_000,
            ts / 60_000_000 % 60,
            ts / 1_000_000 % 60,
            ts % 1_000_000
        );
        let symbol = if random(3) == 0 { format!("NEW{i}") } else { format!("S{}", random(20)) };
        let inner = fix("FIX.4.4", "35=8|150=F|34=1|49=A|52=20240311-09:00:00|");
        let inner = String::from_utf8(inner).unwrap();
        let text = match random(6) {
            0 => format!("96={inner}|").replace('\x01', "|"),
            _ => String::new(),
        };
        let length = if text.is_empty() { String::new() } else { format!("95={}|", inner.len()) };
        let body = format!(
            "35=8|49=XLON|56=U|34={i}|52={time}|60={time}|37=O{i}|150=0|54=1|38={}|44={}.{:02}|207=V{}|48={symbol}|22=4|1=A{}|{length}{text}",
            1 + random(900),
            10 + random(90),
            random(100),
            random(3),
            random(200),
        );
        let mut message = fix("FIX.4.4", &body);
        match random(40) {
            0 => {
                let at = 30 + random(20) as usize;
                message[at] ^= 1;
            }
            1 => out.extend_from_slice(b"some garbage in between"),
            2 => message.truncate(message.len() / 2),
            3 => message = fix("FIX.4.4", &body.replace("|44=", "|44=0.0000000001|45=")),
            4 => message = fix("FIX.4.4", &format!("35=0|49=XLON|56=U|34={i}|52={time}|")),
            5 => message = fix("FIX.4.4", &format!("35=zz|49=XLON|56=U|34={i}|52={time}|")),
            6 => {
                message = fix(
                    "FIX.4.4",
                    &body
                        .replacen("|34=", "|43=Y|34=", 1)
                        .replace(&format!("|34={i}|"), &format!("|34={}|", random(i as u64 + 20))),
                )
            }
            _ => {}
        }
        out.extend_from_slice(&message);
        if random(30) == 0 {
            out.push(b'\n');
        }
    }
    out
}

fn orders(dir: &Path, name: &str, bytes: &[u8]) -> FileFeed {
    let path = dir.join(format!("{name}.fix"));
    std::fs::write(&path, bytes).unwrap();
    unitape_feed::feed_of_option(&format!("{name}=fix:fix44-orders:{}", path.display())).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn new_symbols_and_cuts_inside_messages(seed in any::<u64>(), workers in 2usize..5, block in 300usize..4000) {
        let dir = tempfile::tempdir().unwrap();
        let feeds = [orders(dir.path(), "a", &adversarial(seed, 600))];
        let (one, many) = (dir.path().join("one"), dir.path().join("many"));
        let outcome = run(&one, &feeds, 1, 1 << 20);
        run(&many, &feeds, workers, block);
        assert_same(&one, &many, &format!("seed {seed}, {workers} workers, blocks of {block}"));
        prop_assert!(outcome.summary.quarantined > 0);
        prop_assert!(TapeAccount::load(&one).unwrap().sources.iter().all(|s| s.tally.is_balanced() && s.end));
    }

    #[test]
    fn merged_feeds_too(seed in any::<u64>(), workers in 1usize..4, block in 300usize..4000) {
        let dir = tempfile::tempdir().unwrap();
        let feeds = [
            orders(dir.path(), "a", &adversarial(seed, 200)),
            orders(dir.path(), "b", &adversarial(seed ^ 7, 300)),
            orders(dir.path(), "c", &adversarial(seed ^ 9, 5)),
        ];
        let (one, many) = (dir.path().join("one"), dir.path().join("many"));
        run(&one, &feeds, 1, 1 << 20);
        run(&many, &feeds, workers, block);
        assert_same(&one, &many, &format!("seed {seed}, {workers} workers, blocks of {block}"));
    }

    #[test]
    fn stopped_and_started_again(seed in any::<u64>(), workers in 1usize..4) {
        let dir = tempfile::tempdir().unwrap();
        let feeds = [
            orders(dir.path(), "a", &adversarial(seed, 400)),
            orders(dir.path(), "b", &adversarial(seed ^ 3, 300)),
        ];
        let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
        run(&whole, &feeds, 1, 1 << 20);
        common::run_in_parts(&parts, &feeds, workers, 20_000, 60);
        assert_same(&whole, &parts, &format!("seed {seed}, {workers} workers"));
    }
}

/// A message that was sent again, with a sequence that its session has passed, is counted and not repeated.
#[test]
fn what_was_sent_before_is_a_duplicate() {
    let dir = tempfile::tempdir().unwrap();
    let exec = |seq: u32, extra: &str| {
        fix(
            "FIX.4.4",
            &format!(
                "35=8|49=X|56=U|34={seq}|52=20240311-09:00:00|{extra}60=20240311-09:00:00|37=O{seq}|150=0|54=1|38=5|44=1|48=I|"
            ),
        )
    };
    let bytes = [exec(1, ""), exec(2, ""), exec(2, "43=Y|"), exec(1, "43=Y|"), exec(4, "43=Y|"), exec(3, "")]
        .concat();
    let outcome = run(&dir.path().join("t"), &[orders(dir.path(), "a", &bytes)], 2, 200);
    let s = outcome.summary;
    assert_eq!((s.messages, s.events, s.duplicates), (6, 4, 2));
}

/// A to B>C once shared its sequences with A>B to C, whose messages then counted as duplicates.
#[test]
fn sessions_are_told_apart_whatever_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let exec = |ids: &str, seq: u32, extra: &str| {
        let rest = "60=20240311-09:00:00|37=O1|150=0|54=1|38=5|44=1|48=I|";
        fix("FIX.4.4", &format!("35=8|{ids}|34={seq}|52=20240311-09:00:00|{extra}{rest}"))
    };
    let bytes = [exec("49=A|56=B>C", 9, ""), exec("49=A>B|56=C", 1, "43=Y|")].concat();
    let outcome = run(&dir.path().join("t"), &[orders(dir.path(), "a", &bytes)], 1, 2000);
    assert_eq!((outcome.summary.events, outcome.summary.duplicates), (2, 0));
}

/// Venue ids are 16 bits. Messages beyond the bound go into quarantine. Which messages these are must not depend on a
/// worker's knowledge when it decoded them: a worker's guess once did, and another place ended the run.
#[test]
fn a_full_dictionary_quarantines_the_same_messages_wherever_blocks_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (distinct, places) = (40_000_u64, 32_767);
    let line = |i: u64| {
        format!(
            "{{\"seq\":{i},\"ts\":{i},\"kind\":\"status\",\"venue\":\"V{i}\",\"instr\":\"I\",\"state\":\"open\"}}\n"
        )
    };
    // Behind the new venues an old one: it has its place.
    let bytes: String = (1..=distinct).chain([7]).map(line).collect();
    let path = dir.path().join("venues.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let feeds = [unitape_feed::feed_of_option(&format!("v=events:{}", path.display())).unwrap()];
    let one = dir.path().join("one");
    let s = run(&one, &feeds, 1, 8 << 20).summary;
    assert_eq!((s.messages, s.events, s.quarantined), (distinct + 1, places + 1, distinct - places));
    for (workers, block) in [(1, 10_000), (4, 300_000)] {
        let other = dir.path().join(format!("{workers}-{block}"));
        run(&other, &feeds, workers, block);
        assert_same(&one, &other, &format!("{workers} workers, blocks of {block}"));
    }
    let entries = unitape_feed::quarantine::list(&one).unwrap();
    assert!(entries.iter().all(|e| e.reason == "dict_full"), "{}", entries[0].reason);
    let (entry, raw) = unitape_feed::quarantine::show(&one, entries[1].position).unwrap();
    assert_eq!(raw, line(32_769).trim_end().as_bytes());
    assert_eq!(entry.length, raw.len() as u64);
    let retried = unitape_feed::quarantine::retry(&one, None, None).unwrap();
    assert_eq!((retried.recovered, retried.left), (0, 7233), "there is still no place");
}

/// A message that was sent again is on no tape. Its time moved the feed's time until the next start, and from then on it did
/// not: the second part of the tape was another one. Here the tape is cut after each message, as a kill leaves it.
#[test]
fn a_run_that_is_cut_after_any_message_ends_in_the_same_tape() {
    let mut cuts = 0;
    for seed in [1_229_658_117_993_602_523, 2, 3] {
        let dir = tempfile::tempdir().unwrap();
        let feeds = [
            orders(dir.path(), "a", &adversarial(seed, 120)),
            orders(dir.path(), "b", &adversarial(seed ^ 3, 60)),
        ];
        let whole = dir.path().join("whole");
        run(&whole, &feeds, 1, 1 << 20);
        let units = common::units(&whole);
        let part = dir.path().join("part");
        for end in (0..units.len()).filter(|end| end % 3 == seed as usize % 3) {
            common::tape_of(&part, &whole, &units[..end]);
            run(&part, &feeds, 1, 1 << 20);
            assert_same(&whole, &part, &format!("seed {seed}, cut after {end} units"));
            std::fs::remove_dir_all(&part).unwrap();
            cuts += 1;
        }
    }
    assert!(cuts > 150, "{cuts} cuts");
}
