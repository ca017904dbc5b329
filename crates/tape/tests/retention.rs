//! Which parts of a tape retention removes, when, and what its readers see. The tests set the clock that ages come
//! from.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{ID, append, directory, options};
use unitape_model::Position;
use unitape_tape::{
    Backing, ClockReading, ClockSource, Cursor, Error, Reader, RemovalHook, RemovalOptions, RetentionLimits,
    RetentionLoss, StartPosition, Subscription, SyncPolicy, Writer, WriterOptions, info, retain,
    retention_status, verify,
};

const SEGMENT: u64 = 4096;
const S: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Clocks that stand still until a test moves them. The wall begins at noon of a day.
#[derive(Clone)]
struct Hands(Arc<(AtomicI64, AtomicU64)>);

impl Hands {
    fn new() -> Self {
        Self(Arc::new(((20_000 * DAY * S + DAY * S / 2).into(), 1_000_000.into())))
    }

    /// Time passes.
    fn pass(&self, seconds: i64) {
        self.set(seconds);
        self.0.1.fetch_add((seconds * S) as u64, Ordering::SeqCst);
    }

    /// Somebody sets the wall clock.
    fn set(&self, seconds: i64) {
        self.0.0.fetch_add(seconds * S, Ordering::SeqCst);
    }

    fn clock(&self) -> ClockSource {
        let hands = self.0.clone();
        ClockSource::new(move || ClockReading {
            wall_ns: hands.0.load(Ordering::SeqCst),
            boot_ns: hands.1.load(Ordering::SeqCst),
        })
    }

    fn removal(&self) -> RemovalOptions {
        RemovalOptions { clock: self.clock(), before_removal: None }
    }
}

fn with(retention: RetentionLimits, hands: &Hands) -> WriterOptions {
    WriterOptions { retention, removal_options: hands.removal(), ..options(SEGMENT, None) }
}

/// Appends until `segments` more are finished and the recorder has them.
fn fill(writer: &mut Writer, seed: &mut u64, segments: u64) {
    let until = (writer.end().0 / SEGMENT + segments) * SEGMENT;
    while writer.end().0 < until {
        append(writer, 1, *seed, *seed + 1);
        *seed += 1;
    }
    wait(|| writer.recorded() >= writer.end(), "the recorder never came to the end");
}

fn wait(mut done: impl FnMut() -> bool, what: &str) {
    // Waiting has a bound so that a defect is a failure and not a stop; no time is asserted.
    let met = (0..60_000).any(|_| {
        let done = done();
        if !done {
            std::thread::sleep(Duration::from_millis(1));
        }
        done
    });
    assert!(met, "{what}");
}

fn oldest(dir: &Path) -> u64 {
    retention_status(dir).unwrap().oldest.0 / SEGMENT
}

/// Lets the recorder make a few passes: the clocks advance by moments that no limit feels.
fn passes(hands: &Hands) {
    for _ in 0..5 {
        hands.pass(1);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A limit of age once had to be faked with a limit of bytes, which on a slow day kept last month.
#[test]
fn age_and_days_count_from_when_a_segment_was_finished() {
    for (age_s, days, goes_after) in [(Some(3600), None, 3700), (None, Some(2), DAY * 3 / 2 + 100)] {
        let (dir, hands) = (directory(), Hands::new());
        let retention = RetentionLimits {
            age: age_s.map(Duration::from_secs),
            days,
            notice_period: Duration::ZERO,
            ..RetentionLimits::default()
        };
        let (mut writer, _) = Writer::open(dir.path(), ID, with(retention, &hands)).unwrap();
        let mut seed = 0;
        fill(&mut writer, &mut seed, 3);
        passes(&hands);
        assert_eq!(oldest(dir.path()), 0);
        hands.pass(goes_after / 2);
        fill(&mut writer, &mut seed, 2);
        passes(&hands);
        assert_eq!(oldest(dir.path()), 0, "age {age_s:?} days {days:?}");
        let finished = writer.end().0 / SEGMENT;
        hands.pass(goes_after / 2);
        wait(|| oldest(dir.path()) == 3, "what is old never went");
        hands.pass(goes_after);
        wait(|| oldest(dir.path()) == finished, "what is old never went");
        hands.pass(100 * DAY);
        passes(&hands);
        assert_eq!(oldest(dir.path()), finished, "the segment of the end went");
        writer.close().unwrap();
        assert!(verify(dir.path()).unwrap().is_intact());
    }
}

/// Somebody types a wrong year. The tape must be there when he types it again; and size still counts meanwhile.
#[test]
fn a_clock_that_jumps_wipes_nothing() {
    for jump in [400 * DAY, -400 * DAY] {
        let (dir, hands) = (directory(), Hands::new());
        let limit = RetentionLimits {
            age: Some(Duration::from_secs(3600)),
            notice_period: Duration::ZERO,
            ..RetentionLimits::default()
        };
        let (mut writer, _) = Writer::open(dir.path(), ID, with(limit, &hands)).unwrap();
        let mut seed = 0;
        fill(&mut writer, &mut seed, 3);
        passes(&hands);
        hands.set(jump);
        wait(
            || {
                passes(&hands);
                retention_status(dir.path()).unwrap().clock_jump_ns.is_some()
            },
            "the jump was not seen",
        );
        // Finished while the clock is wrong: dated by the time that was right.
        fill(&mut writer, &mut seed, 2);
        hands.pass(3700);
        passes(&hands);
        assert_eq!(oldest(dir.path()), 0, "jump {jump}");
        let seen = retention_status(dir.path()).unwrap();
        assert_eq!(seen.clock_jumps, 1);
        assert!((seen.clock_jump_ns.unwrap() - jump * S).abs() < 60 * S, "{seen:?}");
        // A writer that comes meanwhile knows of it.
        drop(writer);
        let bytes = RetentionLimits { bytes: Some(3 * SEGMENT), ..limit_of(3600) };
        let (mut writer, _) = Writer::open(dir.path(), ID, with(bytes, &hands)).unwrap();
        passes(&hands);
        assert_eq!(retention_status(dir.path()).unwrap().clock_jumps, 1);
        fill(&mut writer, &mut seed, 2);
        let by_bytes = writer.end().0.saturating_sub(3 * SEGMENT) / SEGMENT;
        wait(|| oldest(dir.path()) == by_bytes, "size counts, whatever the clock says");
        hands.set(-jump);
        hands.pass(3700);
        let finished = writer.end().0 / SEGMENT;
        wait(|| oldest(dir.path()) == finished, "the clock is right again, and nothing goes");
        assert_eq!(retention_status(dir.path()).unwrap().clock_jump_ns, None);
        writer.close().unwrap();
        assert!(verify(dir.path()).unwrap().is_intact());
    }
}

fn limit_of(age_s: u64) -> RetentionLimits {
    RetentionLimits {
        age: Some(Duration::from_secs(age_s)),
        notice_period: Duration::ZERO,
        ..RetentionLimits::default()
    }
}

/// A report once learned of retention by the error. It is warned before; if it is late, the error says where to
/// continue.
#[test]
fn readers_are_warned_and_told_where_to_go_on() {
    let (dir, hands) = (directory(), Hands::new());
    let limit = RetentionLimits {
        bytes: Some(2 * SEGMENT),
        notice_period: Duration::from_secs(30),
        ..RetentionLimits::default()
    };
    let (mut writer, _) = Writer::open(dir.path(), ID, with(limit, &hands)).unwrap();
    let mut seed = 0;
    fill(&mut writer, &mut seed, 1);
    let mut late = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    late.next().unwrap().unwrap();
    assert!(!late.is_removal_announced());
    fill(&mut writer, &mut seed, 6);
    wait(|| late.is_removal_announced(), "removal was not announced");
    let (end, ordinal) = (writer.end().0, writer.ordinal());
    wait(|| late.lag().unwrap().bytes == end - late.position().0, "the end was not published");
    let lag = late.lag().unwrap();
    assert_eq!(lag.events, ordinal - late.ordinal());
    assert_eq!(lag.until_removal_bytes, 0);
    let announced = retention_status(dir.path()).unwrap().announced_to;
    assert_eq!(announced.0, end.saturating_sub(2 * SEGMENT) / SEGMENT * SEGMENT);
    let mut near = Reader::open(dir.path(), StartPosition::End).unwrap();
    assert!(!near.is_removal_announced());
    assert_eq!(near.lag().unwrap().until_removal_bytes, end - announced.0);
    passes(&hands);
    assert_eq!(oldest(dir.path()), 0, "it went before its notice had passed");
    hands.pass(31);
    wait(|| retention_status(dir.path()).unwrap().oldest == announced, "it never went");
    // It reads the mapped segment to the end.
    let mut read = 0;
    let gone = loop {
        match late.next() {
            Ok(Some(_)) => read += 1,
            Ok(None) => panic!("it waits for what is gone"),
            Err(e) => break e,
        }
    };
    assert!(read > 5, "the rest of the mapped segment was {read} frames");
    assert!(matches!(gone, Error::Retained { oldest, .. } if oldest == announced), "{gone}");
    let (at, before) = (late.position().0, late.ordinal());
    let skipped = late.skip_to_oldest().unwrap();
    assert_eq!(skipped.bytes, announced.0 - at);
    assert_eq!((late.position(), late.ordinal()), (announced, before + skipped.events));
    assert_eq!((late.skipped(), late.skip_to_oldest().unwrap().bytes), (skipped, 0));
    while late.next().unwrap().is_some() {}
    assert_eq!((late.position().0, late.ordinal()), (end, ordinal));
    writer.close().unwrap();
    assert_eq!(late.lag().unwrap().bytes, 0, "of a closed tape it is exact");
    let mut first = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let lag = first.lag().unwrap();
    assert_eq!((lag.bytes, lag.events), (end - announced.0, ordinal - first.ordinal()));
    // A writer that comes back publishes to readers that were there before.
    let (mut writer, _) = Writer::open(dir.path(), ID, with(RetentionLimits::default(), &hands)).unwrap();
    fill(&mut writer, &mut seed, 1);
    let end = writer.end().0;
    wait(|| late.lag().unwrap().bytes == end - late.position().0, "the new end was not published");
    writer.close().unwrap();
}

/// A report that was away for longer than the tape is kept did not know how to come back: its name led to a place that
/// is gone, and the error did not go away.
#[test]
fn a_named_place_that_is_gone_is_told_and_can_be_given_up() {
    let (dir, hands) = (directory(), Hands::new());
    let limit = RetentionLimits {
        bytes: Some(2 * SEGMENT),
        notice_period: Duration::ZERO,
        ..RetentionLimits::default()
    };
    let (mut writer, _) = Writer::open(dir.path(), ID, with(limit, &hands)).unwrap();
    let mut seed = 0;
    fill(&mut writer, &mut seed, 1);
    let named = |name: &str| Subscription::open_named(dir.path(), name, StartPosition::Oldest);
    let or_oldest = |name: &str| Subscription::open_named_or_oldest(dir.path(), name, StartPosition::Oldest);
    let mut report = named("report").unwrap();
    assert_eq!(report.poll(3, |_| ()).unwrap(), 3);
    report.acknowledge().unwrap();
    let (place, before) = (report.position(), report.reader().ordinal());
    // Nothing is gone: both ways begin at the place, and nothing was lost.
    let mut same = or_oldest("report").unwrap();
    assert_eq!(
        (same.position(), same.reader().ordinal(), same.reader().skipped()),
        (place, before, RetentionLoss::default())
    );
    // A place that was stored by position alone has no number of events before it.
    Cursor::open(dir.path(), "plain").unwrap().store(place).unwrap();
    fill(&mut writer, &mut seed, 6);
    wait(|| oldest(dir.path()) > 2, "nothing was removed");
    writer.close().unwrap();
    let begins = retention_status(dir.path()).unwrap().oldest;
    for name in ["report", "plain"] {
        let error = named(name).map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Retained { position, oldest } if position == place && oldest == begins),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(&format!("position {place} is gone")) && text.contains(&begins.to_string()),
            "{text}"
        );
        let mut report = or_oldest(name).unwrap();
        assert_eq!(report.position(), begins);
        let skipped = report.reader().skipped();
        assert_eq!(skipped.bytes, begins.0 - place.0);
        let events = if name == "report" { report.reader().ordinal() - before } else { 0 };
        assert_eq!(skipped.events, events);
        assert!(report.next().unwrap().is_some());
        // Until it acknowledges, the name stays where it was.
        assert!(matches!(named(name), Err(Error::Retained { .. })));
        report.acknowledge().unwrap();
        assert_eq!(named(name).unwrap().position(), report.position());
    }
    // A start that is gone is given up as well, and a new name needs none of it.
    let at = Subscription::open_named_or_oldest(dir.path(), "new", StartPosition::At(place)).unwrap();
    assert_eq!(at.position(), begins);
    assert_eq!(or_oldest("newer").unwrap().reader().skipped(), RetentionLoss::default());
}

/// A cursor holds what it has not read, but a forgotten one must not fill the disk.
#[test]
fn named_cursors_hold_up_to_their_bound() {
    let (dir, hands) = (directory(), Hands::new());
    let limit = RetentionLimits {
        bytes: Some(SEGMENT),
        notice_period: Duration::ZERO,
        hold_for_cursors: Some(6 * SEGMENT),
        ..RetentionLimits::default()
    };
    let (mut writer, _) = Writer::open(dir.path(), ID, with(limit, &hands)).unwrap();
    let mut seed = 0;
    fill(&mut writer, &mut seed, 1);
    let mut cursor = Cursor::open(dir.path(), "report").unwrap();
    cursor.store(Position(0)).unwrap();
    fill(&mut writer, &mut seed, 4);
    passes(&hands);
    assert_eq!(oldest(dir.path()), 0, "the cursor holds");
    let seen = retention_status(dir.path()).unwrap();
    assert_eq!(seen.held_segments, (writer.end().0 - SEGMENT) / SEGMENT);
    assert_eq!(seen.cursors[0].name, "report");
    assert_eq!(seen.cursors[0].lag_bytes, writer.end().0);
    assert_eq!(seen.cursors[0].lag_events, Some(writer.ordinal()));
    fill(&mut writer, &mut seed, 6);
    let bound = (writer.end().0 - 6 * SEGMENT) / SEGMENT;
    wait(|| oldest(dir.path()) == bound, "a forgotten cursor holds for ever");
    assert!(retention_status(dir.path()).unwrap().cursors[0].error.is_some(), "its place is gone");
    cursor.store(writer.end()).unwrap();
    let free = (writer.end().0 - SEGMENT) / SEGMENT;
    wait(
        || {
            hands.pass(1);
            oldest(dir.path()) == free
        },
        "the cursor has moved on",
    );
    cursor.delete().unwrap();
    writer.close().unwrap();
}

/// Recovery begins at the durable position: its segment once went with the others, and the tape could not be opened.
#[test]
fn what_recovery_needs_is_kept_and_the_dead_are_recovered() {
    for hot in [false, true] {
        let (dir, hot_dir, hands) = (directory(), directory(), Hands::new());
        let place = hot_dir.path().join("hot");
        // More than the window keeps in shared memory, so that the oldest segment is one of the disk.
        let limit = RetentionLimits {
            bytes: Some(6 * SEGMENT),
            notice_period: Duration::ZERO,
            ..RetentionLimits::default()
        };
        let mut seed = 0;
        for round in 0..6 {
            let backing = match hot {
                true => Backing::Hot { dir: Some(place.clone()), window_segments: 8 },
                false => Backing::File,
            };
            let options =
                WriterOptions { backing, sync_policy: SyncPolicy::OnClose, ..with(limit.clone(), &hands) };
            let (mut writer, recovery) = Writer::open(dir.path(), ID, options).unwrap();
            assert_eq!(recovery.ordinal, writer.ordinal());
            fill(&mut writer, &mut seed, 8);
            let keep = (writer.end().0 - 6 * SEGMENT) / SEGMENT;
            wait(|| oldest(dir.path()) == keep, "nothing went");
            let durable = info(dir.path()).unwrap().durable.0;
            assert!(durable >= keep * SEGMENT, "durable to {durable}, kept from {keep}");
            // Dropped is as killed, every other time.
            if round % 2 == 0 { drop(writer) } else { writer.close().unwrap() }
        }
        let (writer, _) = Writer::open(dir.path(), ID, options(SEGMENT, None)).unwrap();
        writer.close().unwrap();
        let report = verify(dir.path()).unwrap();
        assert!(report.is_intact(), "hot {hot}: {:?}", report.problems);
    }
}

/// A process that keeps an account of removals must see each segment while it is there, and may refuse.
#[test]
fn nothing_goes_before_it_was_told() {
    let (dir, hands) = (directory(), Hands::new());
    let removals = Arc::new(Mutex::new((Vec::new(), true)));
    let seen = removals.clone();
    let before = RemovalHook::new(move |dir: &Path, oldest| {
        let mut seen = seen.lock().unwrap();
        let first = Reader::open(dir, StartPosition::Oldest).map_err(|e| e.to_string())?.position();
        if seen.1 {
            return Err("not yet".into());
        }
        seen.0.push((first, oldest));
        Ok(())
    });
    let limit =
        RetentionLimits { bytes: Some(SEGMENT), notice_period: Duration::ZERO, ..RetentionLimits::default() };
    let mut options = with(limit.clone(), &hands);
    options.removal_options.before_removal = Some(before.clone());
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    let mut seed = 0;
    fill(&mut writer, &mut seed, 5);
    let trouble = || {
        passes(&hands);
        retention_status(dir.path()).unwrap().trouble
    };
    wait(|| trouble().is_some_and(|t| t.contains("not yet")), "the refusal is reported");
    assert_eq!(oldest(dir.path()), 0);
    removals.lock().unwrap().1 = false;
    wait(|| trouble().is_none(), "it went at last");
    writer.close().unwrap();
    let removals = removals.lock().unwrap().0.clone();
    assert!(!removals.is_empty() && removals.iter().all(|(first, oldest)| first < oldest), "{removals:?}");
    assert_eq!(removals.last().unwrap().1.0 / SEGMENT, self::oldest(dir.path()));
}

/// A finished segment was as easily overwritten by a wrong script as any file.
#[test]
fn what_is_finished_and_durable_is_read_only() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, 1, 0, 300);
    let last = writer.end().0 / SEGMENT;
    writer.close().unwrap();
    let sealed = |index: u64, ending: &str| {
        let path = dir.path().join(format!("segments/{index:016x}.{ending}"));
        std::fs::metadata(path).unwrap().permissions().mode() & 0o222 == 0
    };
    for index in 0..last {
        assert!(sealed(index, "seg") && sealed(index, "crc"), "segment {index}");
    }
    assert!(!sealed(last, "seg") && !sealed(last, "crc"));
    let seen = retention_status(dir.path()).unwrap();
    assert_eq!((seen.sealed_count, seen.open_count), (last, 1));
    // Sealed files are in nobody's way: not in a writer's, not in retention's.
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, 1, 300, 600);
    writer.close().unwrap();
    let limits = RetentionLimits { bytes: Some(SEGMENT), ..RetentionLimits::default() };
    assert!(retain(dir.path(), &limits, &RemovalOptions::default(), false).unwrap().segments > last);
    assert!(verify(dir.path()).unwrap().is_intact());
    assert_eq!(common::left_in_run(dir.path()), ["lineage"]);
}

/// By hand, for a tape that nobody writes.
#[test]
fn a_tape_at_rest_is_retained_by_hand() {
    let (dir, hands) = (directory(), Hands::new());
    let mut seed = 0;
    for _ in 0..3 {
        let (mut writer, _) = Writer::open(dir.path(), ID, with(RetentionLimits::default(), &hands)).unwrap();
        fill(&mut writer, &mut seed, 2);
        let busy = retain(dir.path(), &limit_of(0), &hands.removal(), false).unwrap_err();
        assert!(matches!(busy, Error::Locked { .. }), "{busy}");
        writer.close().unwrap();
        hands.pass(DAY);
    }
    let of = |limits: &RetentionLimits, dry| retain(dir.path(), limits, &hands.removal(), dry);
    let days = |n| RetentionLimits { days: Some(n), ..RetentionLimits::default() };
    assert!(matches!(of(&days(0), false), Err(Error::Option(_))));
    assert_eq!(of(&days(4), false).unwrap().segments, 0);
    let dry = of(&days(3), true).unwrap();
    assert_eq!((dry.segments, oldest(dir.path())), (2, 0));
    assert!(dry.bytes >= 2 * SEGMENT);
    assert_eq!(of(&days(3), false).unwrap(), dry);
    hands.set(-30 * DAY);
    assert!(matches!(of(&days(3), false), Err(Error::Clock { .. })));
    assert_eq!(
        of(&RetentionLimits { bytes: Some(1 << 40), ..RetentionLimits::default() }, false).unwrap().segments,
        0
    );
    hands.set(60 * DAY);
    let all = of(&limit_of(60), false).unwrap();
    let end = info(dir.path()).unwrap().end_position.0;
    assert_eq!(all.oldest.0, (end - 1) / SEGMENT * SEGMENT);
    assert!(verify(dir.path()).unwrap().is_intact());
}
