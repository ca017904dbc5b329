//! `unitape watch run`: alerts on a tape, live. A watch that was killed once could lose an alert, or give it twice.

use crate::common::{self, Ran, assert_same, cat, file, run, tape_of_units, unitape, units};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use unitape_sim::Rng;
use unitape_tape::{TapeManifest, Writer, WriterOptions};

fn watch(tape: &Path, alerts: &Path, options: &[&str]) -> Ran {
    common::finish(unitape().args(arguments(tape, alerts)).args(options))
}

fn arguments(tape: &Path, alerts: &Path) -> Vec<String> {
    let words = [
        "watch",
        "run",
        tape.to_str().unwrap(),
        "--alerts",
        alerts.to_str().unwrap(),
        "--until-end",
        "--json",
    ];
    words.map(str::to_owned).to_vec()
}

/// The alerts of `watch replay`, without the counters.
fn replayed(tape: &Path, options: &[&str]) -> Vec<Value> {
    let mut lines =
        run(["watch", "replay", tape.to_str().unwrap(), "--json"].iter().chain(options)).code(0).lines();
    lines.retain(|line| line["counters"].is_null());
    lines
}

/// The alerts of an alert tape in the form of `watch replay`.
fn recorded(alerts: &Path) -> Vec<Value> {
    let form = |event: &Value| {
        json!({
            "scenario": event["scenario"], "ts": event["ts"], "trigger_seq": event["trigger_seq"],
            "key": event["key"], "detail": event["detail"],
        })
    };
    cat(alerts, &["--kind", "alert"]).iter().map(form).collect()
}

/// A flow of orders with planted wash trades, and the same as a file for a feed.
fn orders(dir: &Path, seed: u64, messages: u64) -> PathBuf {
    file(dir, "orders.fix", common::flow(seed, messages, false).0)
}

/// What the tape has must be what a replay gives: scenario, time, number, key and evidence.
#[test]
fn an_alert_tape_has_the_alerts_of_a_replay() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    common::consolidate_orders(&orders(dir.path(), 21, 6_000), &tape, 0);
    let ran = watch(&tape, &alerts, &[]).code(0).lines();
    let (last, printed) = ran.split_last().unwrap();
    let want = replayed(&tape, &[]);
    assert!(want.len() >= 3, "{} alerts", want.len());
    assert_eq!(printed, want);
    assert_eq!(recorded(&alerts), want);
    assert_eq!(last["totals"]["alerts"], want.len());
    assert_eq!(last["totals"]["appended"], want.len());

    // Each alert names the tape, the position of its event and the rules; the ids of its key are fields.
    let source = run(["tape", "info", tape.to_str().unwrap(), "--json"]).code(0).json()["tape"].clone();
    let events = cat(&tape, &["--full"]);
    for alert in cat(&alerts, &["--kind", "alert"]) {
        assert_eq!(alert["source_tape"], source);
        let seq = alert["trigger_seq"].as_u64().unwrap();
        let trigger = events.iter().find(|event| event["seq"] == seq).unwrap();
        assert_eq!(alert["trigger_position"], trigger["position"]);
        // The end of a bucket is before the event that shows it.
        match alert["scenario"].as_str() {
            Some("volume_spike") => assert!(alert["ts"].as_i64() <= trigger["ts"].as_i64(), "{alert}"),
            _ => assert_eq!(alert["ts"], trigger["ts"], "{alert}"),
        }
        assert_eq!(alert["rule_version"].as_str().unwrap().len(), 16);
        assert_eq!(alert["params_hash"].as_str().unwrap().len(), 16);
        assert_eq!(alert["instr"], alert["key"]["instr"]);
    }

    // A second call has nothing to add, and says so.
    let again = watch(&tape, &alerts, &[]).code(0).lines();
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(again[0]["totals"]["appended"], 0);
    assert_eq!(again[0]["totals"]["alerts"], want.len());
    let human =
        run(["watch", "run", tape.to_str().unwrap(), "--alerts", alerts.to_str().unwrap(), "--until-end"]);
    assert!(human.code(0).text().contains("alerts, 0 of them new"));
    run(["tape", "verify", alerts.to_str().unwrap()]).code(0);
    // The cursor shows that the watch has read everything.
    let info = run(["tape", "info", tape.to_str().unwrap(), "--json"]).code(0).json();
    let cursor = &info["kept"]["cursors"].as_array().unwrap()[0];
    assert!(cursor["name"].as_str().unwrap().starts_with("watch-"), "{cursor}");
    assert_eq!(cursor["lag_bytes"], 0);
}

fn start(tape: &Path, alerts: &Path) -> Child {
    let mut command = unitape();
    command.args(arguments(tape, alerts)).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Beside the writer, killed ten times, and on the closed tape: the same bytes. A kill may come at any moment; what is compared
/// does not depend on when it came.
#[test]
fn a_watch_that_is_killed_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, live, closed) = (dir.path().join("t"), dir.path().join("live"), dir.path().join("closed"));
    let feed = common::orders_option("orders", &orders(dir.path(), 7, 30_000));
    let mut rng = Rng::new(11);
    // The first watch waits for the tape.
    let mut watching = start(&tape, &live);
    let mut writer = unitape()
        .args(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_micros(rng.below(150_000)));
        watching.kill().unwrap();
        watching.wait().unwrap();
        watching = start(&tape, &live);
    }
    assert!(writer.wait().unwrap().success());
    assert!(watching.wait().unwrap().success());
    // It ended when nobody wrote, perhaps before the writer had begun: one more call has the rest, or nothing to do.
    watch(&tape, &live, &[]).code(0);
    watch(&tape, &closed, &[]).code(0);
    assert!(recorded(&closed).len() >= 5, "{} alerts", recorded(&closed).len());
    assert_same(&live, &closed, "a watch that was killed, and one that was not");
    assert_eq!(recorded(&live), replayed(&tape, &[]));
}

/// A tape that grows between two calls, and an alert tape that ends anywhere, give the bytes of one call.
#[test]
fn an_alert_tape_that_ends_anywhere_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, whole) = (dir.path().join("t"), dir.path().join("whole"));
    common::consolidate_orders(&orders(dir.path(), 21, 6_000), &tape, 0);
    // Each watch takes its time: these give an alert in each of a few units.
    let rules = ["--scenario", "wash_trade", "--scenario", "spoofing", "--scenario", "order_to_trade_ratio"];
    watch(&tape, &whole, &rules).code(0);
    let all = units(&whole);
    for cut in 0..=all.len() {
        let alerts = dir.path().join(format!("cut-{cut}"));
        tape_of_units(&alerts, &whole, &all[..cut]);
        let totals = watch(&tape, &alerts, &rules).code(0).lines().pop().unwrap();
        assert_eq!(totals["totals"]["alerts"], recorded(&whole).len(), "after {cut} units");
        assert_same(&whole, &alerts, &format!("after {cut} units"));
    }
    let (input, alerts) = (units(&tape), dir.path().join("grown"));
    for (n, cut) in [40, input.len() / 3, input.len() / 2, input.len()].into_iter().enumerate() {
        let grown = dir.path().join(format!("grown-{n}"));
        tape_of_units(&grown, &tape, &input[..cut]);
        watch(&grown, &alerts, &rules).code(0);
    }
    assert_same(&whole, &alerts, "a tape that grew");

    // The source lost its end: the alerts that rest on it are not taken back, and a control says so.
    let before = units(&whole);
    watch(&dir.path().join("grown-1"), &whole, &rules).code(3).says(&["control `source_cut`"]);
    let after = units(&whole);
    assert_eq!((&after[..before.len()], after.len()), (&before[..], before.len() + 1));
}

/// Alerts of other rules or of another tape in one directory could not be told apart.
#[test]
fn other_rules_and_other_tapes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    common::consolidate_orders(&orders(dir.path(), 21, 6_000), &tape, 0);
    let two = ["--scenario", "wash_trade", "--scenario", "spoofing"];
    watch(&tape, &alerts, &two).code(0);
    assert_eq!(recorded(&alerts), replayed(&tape, &two));
    // The order of the names has no meaning, nor has the form of a value.
    let turned = ["--scenario", "spoofing", "--scenario", "wash_trade"];
    let same = ["--params", r#"{"wash_trade":{"window_ms":60000},"spoofing":{"min_notional":"50000.0"}}"#];
    watch(&tape, &alerts, &[&turned[..], &same].concat()).code(0);
    let says = [
        "does not have the alerts of this tape",
        "other scenarios, parameters or calendar",
        "another directory",
    ];
    let before = units(&alerts);
    watch(&tape, &alerts, &[]).code(3).says(&says);
    watch(&tape, &alerts, &two[..2]).code(3).says(&says);
    let other = ["--params", r#"{"wash_trade":{"window_ms":5000}}"#];
    watch(&tape, &alerts, &[&two[..], &other].concat()).code(3).says(&says);
    let other = dir.path().join("other");
    let input = file(dir.path(), "other.jsonl", "{\"ts\":1,\"kind\":\"clock\"}\n");
    run(["consolidate", input.to_str().unwrap(), "--tape", other.to_str().unwrap()]).code(0);
    watch(&other, &alerts, &two).code(3).says(&says);
    assert_eq!(units(&alerts), before, "a refused watch has changed the alert tape");

    watch(&tape, &dir.path().join("b"), &["--scenario", "wash"]).code(2).says(&["wash", "wash_trade"]);
    watch(&input, &dir.path().join("b"), &[]).code(2).says(&["is a file", "watch replay"]);
    assert!(!dir.path().join("b").exists());
}

/// Two watches on one directory would write each alert twice.
#[test]
fn a_second_watch_on_one_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    common::consolidate_orders(&orders(dir.path(), 21, 2_000), &tape, 0);
    watch(&tape, &alerts, &[]).code(0);
    let id = TapeManifest::load(&alerts).unwrap().id;
    let (writer, _) = Writer::open(&alerts, id, WriterOptions::default()).unwrap();
    watch(&tape, &alerts, &[]).code(1).says(&["locked"]);
    writer.close().unwrap();
    watch(&tape, &alerts, &[]).code(0);
}

/// The directory of the snapshots of an alert tape.
fn state_of(alerts: &Path) -> PathBuf {
    alerts.with_file_name(format!("{}.state", alerts.file_name().unwrap().display()))
}

/// The snapshots of an alert tape, the oldest first.
fn snapshots(alerts: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state_of(alerts)).into_iter().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// Puts a flow of orders onto a tape of small segments.
fn consolidate_in_small_segments(dir: &Path, tape: &Path, messages: u64) {
    let feed = common::orders_option("orders", &orders(dir, 21, messages));
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--segment-bytes", "65536"])
        .code(0);
}

/// Appends units to a tape of small segments.
fn grow(tape: &Path, whole: &Path, units: &[Vec<u8>]) {
    let options = WriterOptions { segment_bytes: 1 << 16, prefault_bytes: 0, ..WriterOptions::default() };
    unitape_testkit::tape_of_units(tape, whole, units, options);
}

/// Without the past and without a snapshot a watch says what it could not see, once, and gives no alert twice.
#[test]
fn a_watch_that_cannot_see_the_beginning_says_so_once() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    let feed = common::orders_option("orders", &orders(dir.path(), 21, 6_000));
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--segment-bytes", "65536"])
        .code(0);
    // Alone it needs no mean of the past, so that each alert is one of the whole.
    let wash = ["--scenario", "wash_trade"];
    let all = replayed(&tape, &wash);
    run(["tape", "retain", tape.to_str().unwrap(), "--bytes", "524288"]).code(0);
    let ran = watch(&tape, &alerts, &wash).code(3).says(&["retention has removed", "control `blind`"]);
    let part = ran.lines().pop().unwrap()["blind"].clone();
    assert!(part["from"] == 0 && part["to"].as_u64().unwrap() > 0, "{part}");
    let controls = cat(&alerts, &["--kind", "control"]);
    assert_eq!(controls.len(), 1);
    assert_eq!((&controls[0]["action"], &controls[0]["detail"]), (&json!("blind"), &part));
    let seen = recorded(&alerts);
    assert!(!seen.is_empty() && seen.len() < all.len(), "{} of {}", seen.len(), all.len());
    assert!(seen.iter().all(|alert| all.contains(alert)));

    // With its snapshot the next call is blind for nothing; without, it notes the same part, once.
    let before = units(&alerts);
    watch(&tape, &alerts, &wash).code(0);
    for path in snapshots(&alerts) {
        std::fs::remove_file(path).unwrap();
    }
    watch(&tape, &alerts, &wash).code(3).says(&["retention has removed"]);
    assert_eq!(units(&alerts), before, "an alert or a control was written twice");
}

/// The state has names of people, and serves its owner alone.
#[test]
fn snapshots_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    common::consolidate_orders(&orders(dir.path(), 21, 2_000), &tape, 0);
    watch(&tape, &alerts, &[]).code(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state_of(&alerts)), 0o700);
    assert!(!snapshots(&alerts).is_empty());
    assert!(snapshots(&alerts).iter().all(|path| mode(path) == 0o600));
}

/// A disk that takes no snapshot does not end the watch: it says so once and gives all alerts.
#[test]
fn a_refused_snapshot_is_said_and_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    common::consolidate_orders(&orders(dir.path(), 21, 2_000), &tape, 0);
    std::fs::write(state_of(&alerts), "in the way").unwrap();
    let ran = watch(&tape, &alerts, &["--snapshot-every", "100"]).code(0).says(&["no snapshot: ", "goes on"]);
    assert_eq!(ran.stderr.matches("no snapshot").count(), 1, "{}", ran.stderr);
    assert_eq!(recorded(&alerts), replayed(&tape, &[]));
}

/// A snapshot that is too large is not read into memory. The watch says so and judges the past again.
#[test]
fn a_snapshot_that_is_too_large_is_said_and_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    common::consolidate_orders(&orders(dir.path(), 21, 2_000), &tape, 0);
    watch(&tape, &alerts, &[]).code(0);
    let before = units(&alerts);
    for path in snapshots(&alerts) {
        // Without blocks on the disk.
        std::fs::File::create(path).unwrap().set_len((4 << 30) + 1).unwrap();
    }
    watch(&tape, &alerts, &[]).code(0).says(&["a snapshot has at most", "from an earlier point"]);
    assert_eq!(units(&alerts), before);
    let again = watch(&tape, &alerts, &[]).code(0);
    assert_eq!(again.stderr, "", "the new snapshot is used");
}

/// Snapshots of events that the source has lost make room for those of the events it has.
#[test]
fn snapshots_ahead_of_a_cut_source_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (source, alerts) = (dir.path().join("source"), dir.path().join("a"));
    consolidate_in_small_segments(dir.path(), &source, 6_000);
    let input = units(&source);
    let tape = dir.path().join("whole");
    let part = input.len() / 5;
    for begin in [1, 2, 3, 4].map(|n| n * part) {
        grow(&tape, &source, &input[begin - part..begin]);
        watch(&tape, &alerts, &[]).code(0);
    }
    let ahead = snapshots(&alerts);
    assert_eq!(ahead.len(), 3);
    // A tape with the same id that has less, and an alert tape that has nothing.
    let cut = dir.path().join("cut");
    grow(&cut, &source, &input[..part / 2]);
    std::fs::remove_dir_all(&alerts).unwrap();
    watch(&cut, &alerts, &[]).code(0);
    let reached = snapshots(&alerts);
    assert_eq!(reached.len(), 1);
    assert!(!ahead.contains(&reached[0]), "{reached:?}");
}

/// Alerts whose events the source has lost stay, a control says so once, and the watch goes on with what the source got since. No
/// alert is written twice, with a snapshot or without.
#[test]
fn a_source_cut_behind_an_alert_is_noted_and_the_watch_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (source, alerts) = (dir.path().join("source"), dir.path().join("a"));
    consolidate_in_small_segments(dir.path(), &source, 6_000);
    let input = units(&source);
    let part = input.len() / 4;
    let first = dir.path().join("first");
    grow(&first, &source, &input[..3 * part]);
    watch(&first, &alerts, &[]).code(0);
    let before = recorded(&alerts);
    // The same tape after a power loss: it has lost its end, and gets other events.
    let cut = dir.path().join("cut");
    grow(&cut, &source, &input[..part]);
    let is_lost = |alert: &Value| alert["trigger_seq"].as_u64().unwrap() > cat(&cut, &[]).len() as u64;
    let lost = before.iter().filter(|alert| is_lost(alert)).count();
    assert!(lost > 2 && lost < before.len(), "{lost} of {}", before.len());
    let ran =
        watch(&cut, &alerts, &[]).code(3).says(&["was cut back to the position", "control `source_cut`"]);
    assert!(ran.lines().pop().unwrap()["source_cut"]["to"].as_u64() > Some(0));
    let has_name = |unit: &[u8]| unitape_model::frames(unit).any(|(_, header, _)| header.is_meta());
    let others: Vec<Vec<u8>> = (input[part..].iter().enumerate())
        .filter(|(n, unit)| n % 5 != 0 || has_name(unit))
        .map(|(_, unit)| unit.clone())
        .collect();
    grow(&cut, &source, &others);
    for with_snapshot in [true, false, false] {
        if !with_snapshot {
            std::fs::remove_dir_all(state_of(&alerts)).unwrap();
        }
        let code = if with_snapshot { 0 } else { 3 };
        watch(&cut, &alerts, &[]).code(code);
        let controls = cat(&alerts, &["--kind", "control"]);
        assert_eq!(controls.len(), 1, "{controls:?}");
        assert_eq!(controls[0]["action"], "source_cut");
        let all = recorded(&alerts);
        assert_eq!(all[..before.len()], before, "an alert was taken back");
        let mut want = replayed(&cut, &[]);
        want.retain(|alert| !before.contains(alert));
        assert!(want.len() > 2);
        assert_eq!(all[before.len()..], want);
    }
}

/// A watch that goes on at a snapshot while retention removes the past gives the bytes of one that never stopped. Snapshots that
/// are damaged, older, or ahead of a tape change nothing.
#[test]
fn a_watch_with_snapshots_equals_one_that_never_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (source, want) = (dir.path().join("source"), dir.path().join("want"));
    consolidate_in_small_segments(dir.path(), &source, 6_000);
    watch(&source, &want, &[]).code(0);
    let input = units(&source);
    let mut rng = Rng::new(5);
    for round in 0..6 {
        let (tape, alerts) = (dir.path().join(format!("t{round}")), dir.path().join(format!("a{round}")));
        let mut done = 0;
        while done < input.len() {
            let next = (done + 1 + rng.below(input.len() as u64 / 3) as usize).min(input.len());
            grow(&tape, &source, &input[done..next]);
            done = next;
            match rng.below(4) {
                // The newest snapshot is damaged: an older one serves, or the tape from its beginning.
                0 => {
                    if let Some(newest) = snapshots(&alerts).pop() {
                        let mut bytes = std::fs::read(&newest).unwrap();
                        let at = rng.below(bytes.len() as u64) as usize;
                        bytes[at] ^= 1 << rng.below(8);
                        std::fs::write(&newest, bytes).unwrap();
                    }
                }
                // The alert tape lost its end in a power loss, and the newest snapshot is ahead of it.
                1 if alerts.exists() => {
                    let kept = units(&alerts);
                    let kept = &kept[..rng.below(kept.len() as u64 + 1) as usize];
                    let shorter = dir.path().join(format!("shorter{round}-{done}"));
                    tape_of_units(&shorter, &want, kept);
                    std::fs::remove_dir_all(&alerts).unwrap();
                    std::fs::rename(&shorter, &alerts).unwrap();
                }
                _ => {}
            }
            let options = ["--snapshot-every", "500"];
            watch(&tape, &alerts, &options).code(0);
        }
        assert_same(&alerts, &want, &format!("round {round}"));
    }
}

/// With a snapshot, a watch needs no event that retention has removed.
#[test]
fn a_snapshot_serves_where_the_past_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (source, want) = (dir.path().join("source"), dir.path().join("want"));
    consolidate_in_small_segments(dir.path(), &source, 6_000);
    watch(&source, &want, &[]).code(0);
    let input = units(&source);
    for (round, part) in [2, 4, 5, 7].into_iter().enumerate() {
        let (tape, alerts) = (dir.path().join(format!("t{round}")), dir.path().join(format!("a{round}")));
        let cut = input.len() * part / 8;
        grow(&tape, &source, &input[..cut]);
        watch(&tape, &alerts, &[]).code(0);
        // All but the last segments of the part that was judged.
        run(["tape", "retain", tape.to_str().unwrap(), "--bytes", "65536"]).code(0);
        grow(&tape, &source, &input[cut..]);
        replay_is_refused(&tape);
        watch(&tape, &alerts, &[]).code(0);
        assert_same(&alerts, &want, &format!("after {cut} units"));
    }
}

/// Kills at any moment, while the tape grows and retention removes its past up to the cursor of the watch. 20 seeds, and 200
/// where `UNITAPE_DEEP` is set.
#[test]
fn kills_and_retention_change_no_byte_of_an_alert_tape() {
    let seeds = if std::env::var_os("UNITAPE_DEEP").is_some() { 200 } else { 20 };
    let dir = tempfile::tempdir().unwrap();
    let (source, want) = (dir.path().join("source"), dir.path().join("want"));
    consolidate_in_small_segments(dir.path(), &source, 2_500);
    watch(&source, &want, &[]).code(0);
    assert!(recorded(&want).len() >= 5);
    let input = units(&source);
    let options = ["--snapshot-every", "200"];
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let (tape, alerts) = (dir.path().join(format!("t{seed}")), dir.path().join(format!("a{seed}")));
        // The cursor of the watch must be there before anything is removed.
        let mut written = 1 + rng.below(300) as usize;
        grow(&tape, &source, &input[..written]);
        watch(&tape, &alerts, &options).code(0);
        let mut oldest = json!(0);
        while written < input.len() {
            let part = written..(written + 1 + rng.below(2_000) as usize).min(input.len());
            written = part.end;
            let mut watching = unitape()
                .args(arguments(&tape, &alerts))
                .args(options)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            grow(&tape, &source, &input[part]);
            std::thread::sleep(Duration::from_micros(rng.below(50_000)));
            watching.kill().unwrap();
            watching.wait().unwrap();
            let limits = ["--bytes", "65536", "--hold-bytes", "1000000000", "--json"];
            let retained = run(["tape", "retain", tape.to_str().unwrap()].iter().chain(&limits)).code(0);
            oldest = retained.json()["oldest"].clone();
        }
        watch(&tape, &alerts, &options).code(0);
        assert_same(&alerts, &want, &format!("seed {seed}, the tape begins at {oldest}"));
        // Now everything was read, and all but the end may go.
        run(["tape", "retain", tape.to_str().unwrap(), "--bytes", "65536", "--hold-bytes", "1000000000"])
            .code(0);
        replay_is_refused(&tape);
        watch(&tape, &alerts, &options).code(0);
        assert_same(&alerts, &want, &format!("seed {seed} without its past"));
        std::fs::remove_dir_all(&tape).unwrap();
        std::fs::remove_dir_all(&alerts).unwrap();
    }
}

/// A replay of a tape whose beginning is gone ends with 3.
fn replay_is_refused(tape: &Path) {
    run(["watch", "replay", tape.to_str().unwrap(), "--json"]).code(3);
}

/// Damage of the source ends the watch with its alerts kept; what comes after is not guessed.
#[test]
fn damage_of_the_source_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, alerts) = (dir.path().join("t"), dir.path().join("a"));
    let feed = common::orders_option("orders", &orders(dir.path(), 21, 6_000));
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--segment-bytes", "65536"])
        .code(0);
    let want = replayed(&tape, &[]);
    let segment = tape.join("segments/0000000000000006.seg");
    common::damage::flip(&segment, 20_000);
    watch(&tape, &alerts, &[]).code(3).says(&["damage"]);
    let kept = recorded(&alerts);
    assert_eq!(kept, want[..kept.len()]);
    assert!(kept.len() < want.len());
    // Repaired by putting the right byte back, the tape gives the rest.
    common::damage::flip(&segment, 20_000);
    watch(&tape, &alerts, &[]).code(0);
    assert_eq!(recorded(&alerts), want);
}
