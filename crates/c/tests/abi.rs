//! The functions as C calls them: what is committed is there and nothing else, and what must not be called is
//! refused.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use tempfile::TempDir;
use unitape_c::*;

type Publication = *mut Handle<OpenPublication>;
type Subscription = *mut Handle<OpenSubscription>;

const MINUTE: u64 = 60_000_000_000;

fn directory() -> (TempDir, CString) {
    let dir = tempfile::tempdir().unwrap();
    let path = c_path(&dir.path().join("tape"));
    (dir, path)
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn small(backing: u32, hot: Option<&CString>) -> Options {
    let mut options = std::mem::MaybeUninit::uninit();
    // SAFETY: as many bytes are there, and all of them are set.
    let mut options: Options = unsafe {
        assert_eq!(unitape_options_init(options.as_mut_ptr(), size_of::<Options>()), code::OK);
        options.assume_init()
    };
    options.backing = backing;
    options.segment_bytes = 4096;
    options.hot_dir = hot.map_or(null(), |dir| dir.as_ptr());
    options
}

fn open(dir: &CString, options: &Options) -> Publication {
    let mut publication = null_mut();
    // SAFETY: all pointers are good.
    unsafe { ok(unitape_publication_open(dir.as_ptr(), options, &raw mut publication)) };
    publication
}

fn subscribe(dir: &CString, name: Option<&CStr>) -> Subscription {
    let mut subscription = null_mut();
    let name = name.map_or(null(), CStr::as_ptr);
    // SAFETY: all pointers are good.
    unsafe { ok(unitape_subscription_open(dir.as_ptr(), name, 0, 0, &raw mut subscription)) };
    subscription
}

#[track_caller]
fn ok(given: i32) {
    assert_eq!(given, code::OK, "{}", last());
}

fn last() -> String {
    // SAFETY: a C string of this thread, copied at once.
    unsafe { CStr::from_ptr(unitape_last_error()) }.to_str().unwrap().to_owned()
}

fn empty() -> Frame {
    // SAFETY: numbers and pointers.
    unsafe { std::mem::zeroed() }
}

/// Reads all that is there.
fn read(subscription: Subscription) -> Vec<(u32, Vec<u8>)> {
    let mut seen = Vec::new();
    let mut frame = empty();
    // SAFETY: the subscription is alive, and the frame's bytes stay until the next call.
    unsafe {
        loop {
            match unitape_subscription_next(subscription, &raw mut frame) {
                0 => return seen,
                given => assert_eq!(given, 1, "{}", last()),
            }
            let bytes = std::slice::from_raw_parts(frame.bytes.cast::<u8>(), frame.length).to_vec();
            if frame.kind == 64 {
                assert_eq!((frame.frame as usize + 16, frame.flags), (frame.bytes as usize, 1));
                assert!(frame.frame_length >= frame.length + 16 && frame.frame_length.is_multiple_of(64));
            } else {
                assert_eq!((frame.frame, frame.frame_length, frame.topic), (frame.bytes, frame.length, 0));
            }
            seen.push((frame.topic, if frame.kind == 64 { bytes } else { bytes[8..].to_vec() }));
        }
    }
}

/// A source of steps that anybody can repeat.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// In whatever order messages are offered, claimed, pushed, given up, and across the ends of segments: what was
/// committed is there, in order, and nothing else.
#[test]
fn what_is_committed_is_there_and_nothing_else() {
    for seed in 0..12u64 {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let (dir, tape) = directory();
        let hot = c_path(&dir.path().join("hot"));
        let options = if seed % 2 == 0 { small(0, None) } else { small(1, Some(&hot)) };
        let mut publication = open(&tape, &options);
        let subscription = subscribe(&tape, None);
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        for topic in 0..60u32 {
            let bytes: Vec<u8> = (0..dice.roll(900)).map(|_| dice.roll(256) as u8).collect();
            let (at, length) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
            let keep = dice.roll(3) > 0;
            // SAFETY: handles and bytes are alive, and what a claim gave out is written before it is ended.
            unsafe {
                match dice.roll(5) {
                    0 => {
                        ok(unitape_publication_offer(publication, topic, at, length, null_mut()));
                        expected.push((topic, bytes));
                    }
                    1 => {
                        let mut place = null_mut();
                        ok(unitape_publication_claim(publication, topic, length, &raw mut place));
                        assert!(length == 0 || (place as usize).is_multiple_of(16));
                        place.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length);
                        if keep {
                            ok(unitape_publication_commit(publication, null_mut()));
                            expected.push((topic, bytes));
                        } else {
                            ok(unitape_publication_abort(publication));
                        }
                    }
                    2 => {
                        ok(unitape_publication_batch(publication));
                        let count = dice.roll(8) as usize;
                        for _ in 0..count {
                            ok(unitape_publication_push(publication, topic, at, length));
                        }
                        if keep {
                            ok(unitape_publication_commit(publication, null_mut()));
                            expected.extend(std::iter::repeat_n((topic, bytes), count));
                        } else {
                            ok(unitape_publication_abort(publication));
                        }
                    }
                    3 => {
                        let lines = 1 + dice.roll(4) as u16;
                        let mut unit = vec![topic as u8; usize::from(lines) * 64];
                        unit[16..20].fill(0); // of no source
                        unit[..8].copy_from_slice(&unitape_frame_header(20, 1, lines).to_ne_bytes());
                        ok(unitape_publication_append(
                            publication,
                            unit.as_ptr().cast(),
                            unit.len(),
                            null_mut(),
                        ));
                        expected.push((0, unit[8..].to_vec()));
                    }
                    _ => {
                        if dice.roll(2) == 0 {
                            // A claim that is open when the publication closes was never there.
                            let mut place = null_mut();
                            ok(unitape_publication_claim(publication, topic, length, &raw mut place));
                            place.cast::<u8>().write_bytes(1, length);
                        }
                        ok(unitape_publication_close(publication));
                        publication = open(&tape, &options);
                    }
                }
            }
            seen.extend(read(subscription));
        }
        // SAFETY: alive, and closed once.
        unsafe {
            ok(unitape_publication_close(publication));
            while seen.len() < expected.len() {
                assert_eq!(unitape_subscription_wait(subscription, 0, MINUTE), 1);
                seen.extend(read(subscription));
            }
            ok(unitape_subscription_close(subscription));
        }
        assert!(seen == expected, "seed {seed}: {} of {}", seen.len(), expected.len());
        assert!(unitape_tape::verify(&dir.path().join("tape")).unwrap().is_intact());
    }
}

/// Null is what a C program has when it has not looked at an earlier error.
#[test]
fn null_is_refused_and_not_followed() {
    let (_dir, tape) = directory();
    let (none, nothing): (Publication, Subscription) = (null_mut(), null_mut());
    let mut frame = empty();
    let publication = open(&tape, &small(0, None));
    let subscription = subscribe(&tape, None);
    // SAFETY: null, which every function must bear, and handles that are alive.
    unsafe {
        for given in [
            unitape_options_init(null_mut(), 8),
            unitape_publication_open(null(), null(), &mut { none }),
            unitape_publication_open(tape.as_ptr(), null(), null_mut()),
            unitape_publication_offer(none, 0, null(), 0, null_mut()),
            unitape_publication_offer(publication, 0, null(), 1, null_mut()),
            unitape_publication_append(none, null(), 0, null_mut()),
            unitape_publication_claim(none, 0, 0, &mut { null_mut() }),
            unitape_publication_claim(publication, 0, 0, null_mut()),
            unitape_publication_batch(none),
            unitape_publication_push(none, 0, null(), 0),
            unitape_publication_commit(none, null_mut()),
            unitape_publication_abort(none),
            unitape_publication_end(none, null_mut(), null_mut()),
            unitape_publication_recorded(none, &mut { 0 }),
            unitape_publication_recorded(publication, null_mut()),
            unitape_publication_durable(none, null_mut()),
            unitape_publication_wait_durable(none, 0, 0),
            unitape_await_tape(null(), 0),
            unitape_subscription_open(null(), null(), 0, 0, &mut { nothing }),
            unitape_subscription_open(tape.as_ptr(), null(), 0, 0, null_mut()),
            unitape_subscription_next(nothing, &raw mut frame),
            unitape_subscription_next(subscription, null_mut()),
            unitape_subscription_poll(subscription, 1, None, null_mut()) as i32,
            unitape_subscription_poll(nothing, 1, Some(stop), null_mut()) as i32,
            unitape_subscription_wait(nothing, 0, 0),
            unitape_subscription_acknowledge(nothing),
            unitape_subscription_position(nothing, null_mut(), null_mut()),
            unitape_subscription_seek(nothing, 0),
            unitape_subscription_at(nothing, 0, &raw mut frame),
            unitape_subscription_at(subscription, 0, null_mut()),
            unitape_subscription_durable(nothing, null_mut()),
            unitape_subscription_wait_durable(nothing, 0, 0),
            unitape_subscription_lag(nothing, null_mut()),
            unitape_subscription_lag(subscription, null_mut()),
            unitape_subscription_skip_to_oldest(nothing, null_mut(), null_mut()),
        ] {
            assert_eq!(given, code::NULL, "{}", last());
            assert!(last().starts_with("null: "), "{}", last());
        }
        ok(unitape_publication_close(none));
        ok(unitape_subscription_close(nothing));
        // And both are as good as before.
        ok(unitape_publication_offer(publication, 3, null(), 0, null_mut()));
        assert_eq!(read(subscription), [(3, Vec::new())]);
        ok(unitape_publication_close(publication));
        ok(unitape_subscription_close(subscription));
    }
}

/// Two claims at once, or a message in the middle of a batch, would be two owners of one place on the tape.
#[test]
fn one_thing_at_a_time_is_open() {
    let (_dir, tape) = directory();
    let publication = open(&tape, &small(0, None));
    let mut place = null_mut();
    // SAFETY: alive; the unit is not read.
    let others = |besides: &str| unsafe {
        for given in [
            unitape_publication_offer(publication, 0, null(), 0, null_mut()),
            unitape_publication_append(publication, null(), 0, null_mut()),
            unitape_publication_claim(publication, 0, 8, &mut { null_mut() }),
            unitape_publication_batch(publication),
            unitape_publication_end(publication, null_mut(), null_mut()),
            unitape_publication_wait_durable(publication, 0, 0),
        ] {
            assert_eq!(given, code::MISUSE);
            assert!(last().contains(besides), "{}", last());
        }
    };
    // SAFETY: alive.
    unsafe {
        assert_eq!(unitape_publication_commit(publication, null_mut()), code::MISUSE);
        assert_eq!(unitape_publication_push(publication, 0, null(), 0), code::MISUSE);
        ok(unitape_publication_abort(publication));
        ok(unitape_publication_claim(publication, 0, 8, &raw mut place));
        others("a claim is open");
        assert_eq!(unitape_publication_push(publication, 0, null(), 0), code::MISUSE);
        ok(unitape_publication_commit(publication, null_mut()));
        ok(unitape_publication_batch(publication));
        others("a batch is open");
        ok(unitape_publication_push(publication, 0, null(), 0));
        let long = vec![1u8; 5000];
        assert_eq!(
            unitape_publication_push(publication, 0, long.as_ptr().cast(), long.len()),
            code::BAD_UNIT
        );
        let mut at = 0;
        ok(unitape_publication_commit(publication, &raw mut at));
        let (mut end, mut ordinal) = (0, 0);
        ok(unitape_publication_end(publication, &raw mut end, &raw mut ordinal));
        assert_eq!((at, end, ordinal), (64, 128, 2));
        ok(unitape_publication_close(publication));
    }
}

/// A forged mark of progress made a later consolidation leave out what it had never read; a forged quarantine event made
/// the account of the tape fail.
#[test]
fn frames_of_the_account_are_refused() {
    let (_dir, tape) = directory();
    let publication = open(&tape, &small(0, None));
    // SAFETY: alive; the unit is not read after the call.
    let append = |kind: u8, flags: u8, source: u8| unsafe {
        let mut unit = [0u8; 64];
        unit[..8].copy_from_slice(&unitape_frame_header(kind, flags, 1).to_ne_bytes());
        unit[16] = source;
        unitape_publication_append(publication, unit.as_ptr().cast(), unit.len(), null_mut())
    };
    for (kind, flags, source, said) in [
        (3, 5, 0, "account"),
        (8, 5, 1, "account"),
        (15, 5, 0, "account"),
        (40, 1, 0, "account"),
        (2, 1, 0, "flag 4"),
        (22, 5, 0, "flag 4"),
        (64, 5, 0, "flag 4"),
        (22, 1, 1, "a source"),
        (41, 1, 200, "a source"),
        (45, 1, 1, "a source"),
    ] {
        assert_eq!(append(kind, flags, source), code::BAD_UNIT, "kind {kind}");
        assert!(last().contains(said), "kind {kind}: {}", last());
    }
    for (kind, flags, source) in [(2, 5, 0), (22, 1, 0), (39, 1, 0), (45, 1, 0), (64, 1, 0), (200, 1, 9)] {
        ok(append(kind, flags, source));
    }
    // SAFETY: alive, and closed once.
    unsafe { ok(unitape_publication_close(publication)) };
}

unsafe extern "C" fn stop(_: *mut c_void, _: *const Frame) -> i32 {
    1
}

/// Uses the subscription that it is called for, in every way.
unsafe extern "C" fn meddle(context: *mut c_void, frame: *const Frame) -> i32 {
    let subscription: Subscription = context.cast();
    // SAFETY: alive; all of these must be refused, closing too.
    unsafe {
        assert_eq!(unitape_subscription_next(subscription, &mut { empty() }), code::MISUSE);
        assert_eq!(
            unitape_subscription_poll(subscription, 1, Some(stop), null_mut()),
            i64::from(code::MISUSE)
        );
        assert_eq!(unitape_subscription_seek(subscription, 0), code::MISUSE);
        assert_eq!(unitape_subscription_close(subscription), code::MISUSE);
        i32::from((*frame).topic == 4)
    }
}

/// A callback that calls back, one that wants no more, and a name that continues.
#[test]
fn frames_are_handed_to_a_callback() {
    let (_dir, tape) = directory();
    let publication = open(&tape, &small(0, None));
    let name = c"books";
    let subscription = subscribe(&tape, Some(name));
    // SAFETY: alive.
    unsafe {
        for topic in 0..10 {
            ok(unitape_publication_offer(publication, topic, null(), 0, null_mut()));
        }
        let poll = |limit| unitape_subscription_poll(subscription, limit, Some(meddle), subscription.cast());
        assert_eq!(poll(0), 0);
        assert_eq!(poll(2), 2);
        assert_eq!(poll(u64::MAX), 3, "topic 4 was enough");
        ok(unitape_subscription_acknowledge(subscription));
        assert_eq!(poll(100), 5);
        assert_eq!(poll(100), 0);
        assert_eq!(unitape_subscription_wait(subscription, 2, 1000), 0);
        ok(unitape_subscription_close(subscription));

        let again = subscribe(&tape, Some(name));
        assert_eq!(read(again).iter().map(|(topic, _)| *topic).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
        let (mut at, mut ordinal) = (0, 0);
        ok(unitape_subscription_position(again, &raw mut at, &raw mut ordinal));
        assert_eq!((at, ordinal), (640, 10));
        let mut frame = empty();
        ok(unitape_subscription_at(again, 192, &raw mut frame));
        assert_eq!((frame.topic, frame.position), (3, 192));
        ok(unitape_subscription_seek(again, 576));
        assert_eq!(read(again), [(9, Vec::new())]);
        assert_eq!(unitape_subscription_seek(again, 100), code::NO_FRAME);
        assert_eq!(unitape_subscription_at(again, 6400, &raw mut frame), code::NO_FRAME);
        ok(unitape_subscription_close(again));
        ok(unitape_publication_close(publication));
    }
}

/// Durable is more than published, and a caller that asks gets an answer.
#[test]
fn durability_is_waited_for() {
    let (_dir, tape) = directory();
    let publication = open(&tape, &small(0, None));
    let subscription = subscribe(&tape, None);
    let (mut end, mut durable) = (0, 0);
    // SAFETY: alive.
    unsafe {
        ok(unitape_publication_offer(publication, 1, c"x".as_ptr().cast(), 1, null_mut()));
        ok(unitape_publication_end(publication, &raw mut end, null_mut()));
        assert_eq!(unitape_publication_wait_durable(publication, end + 64, MINUTE), code::BEYOND_END);
        ok(unitape_publication_wait_durable(publication, end, MINUTE));
        ok(unitape_publication_durable(publication, &raw mut durable));
        assert!(durable >= end);
        assert_eq!(read(subscription).len(), 1);
        ok(unitape_subscription_wait_durable(subscription, end, MINUTE));
        ok(unitape_subscription_durable(subscription, &raw mut durable));
        assert!(durable >= end);
        ok(unitape_publication_recorded(publication, &raw mut durable));
        assert!(durable >= end);
        ok(unitape_publication_close(publication));
        ok(unitape_subscription_close(subscription));
    }
}

/// A reader that is too slow for the retention limits must get a warning before and an error after.
#[test]
fn a_reader_that_retention_outran_goes_on() {
    let (_dir, tape) = directory();
    let mut options = small(0, None);
    options.retain_bytes = 8192;
    options.retain_notice_ns = 1;
    let publication = open(&tape, &options);
    let subscription = subscribe(&tape, None);
    let mut lag = Lag::default();
    let (mut bytes, mut events) = (0, 0);
    // SAFETY: alive.
    unsafe {
        ok(unitape_subscription_skip_to_oldest(subscription, &raw mut bytes, &raw mut events));
        assert_eq!((bytes, events), (0, 0));
        for topic in 0..1000 {
            ok(unitape_publication_offer(publication, topic, null(), 0, null_mut()));
        }
        ok(unitape_publication_close(publication));
        ok(unitape_subscription_lag(subscription, &raw mut lag));
        assert_eq!((lag.bytes, lag.events, lag.until_removal_bytes), (64_000, 1000, 0));
        let mut frame = empty();
        let mut read = 0;
        let code = loop {
            match unitape_subscription_next(subscription, &raw mut frame) {
                1 => read += 1,
                other => break other,
            }
        };
        assert_eq!(code, code::RETAINED, "{}", last());
        ok(unitape_subscription_skip_to_oldest(subscription, &raw mut bytes, &raw mut events));
        assert_eq!(bytes, events * 64);
        let mut next = u64::from(frame.topic) + u64::from(read > 0) + events;
        while unitape_subscription_next(subscription, &raw mut frame) == 1 {
            assert_eq!(u64::from(frame.topic), next);
            next += 1;
        }
        assert_eq!(next, 1000);
        ok(unitape_subscription_close(subscription));
    }
}

/// Each kind of trouble has its code, and the message says where.
#[test]
fn trouble_has_a_code_and_a_place() {
    let (dir, tape) = directory();
    let mut subscription = null_mut();
    let subscribe_to = |dir: &CString, name: *const c_char, start, out: *mut Subscription| {
        // SAFETY: the pointers are good or null.
        unsafe { unitape_subscription_open(dir.as_ptr(), name, start, 0, out) }
    };
    let missing = c_path(&dir.path().join("missing"));
    assert_eq!(subscribe_to(&missing, null(), 0, &raw mut subscription), code::NOT_A_TAPE);
    assert!(last().contains("missing"), "{}", last());
    // SAFETY: the pointers are good.
    unsafe {
        assert_eq!(unitape_await_tape(missing.as_ptr(), 1000), 0);
        let publication = open(&tape, &small(0, None));
        assert_eq!(unitape_await_tape(tape.as_ptr(), 1000), 1);
        let mut second = null_mut();
        assert_eq!(unitape_publication_open(tape.as_ptr(), null(), &raw mut second), code::LOCKED);
        assert!(second.is_null());
        assert_eq!(subscribe_to(&tape, null(), 3, &raw mut subscription), code::ARGUMENT);
        assert_eq!(subscribe_to(&tape, c"no/name".as_ptr(), 0, &raw mut subscription), code::OPTION);
        assert_eq!(subscribe_to(&tape, c"\xff".as_ptr(), 0, &raw mut subscription), code::ARGUMENT);
        assert_eq!(subscribe_to(&CString::default(), null(), 0, &raw mut subscription), code::ARGUMENT);
        assert!(subscription.is_null());
        ok(subscribe_to(&tape, null(), 1, &raw mut subscription));
        assert_eq!(unitape_subscription_wait(subscription, 3, 0), code::ARGUMENT);
        assert_eq!(unitape_subscription_acknowledge(subscription), code::OPTION);
        ok(unitape_subscription_close(subscription));
        let mut bad = small(0, None);
        bad.segment_bytes = 5000;
        let odd = c_path(&dir.path().join("odd"));
        assert_eq!(unitape_publication_open(odd.as_ptr(), &raw const bad, &raw mut second), code::OPTION);
        let said = last();
        // Another thread's error is its own.
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        ok(unitape_publication_close(publication));
        assert_eq!(last(), said, "a call that succeeds leaves the message");
        assert_eq!(CStr::from_ptr(unitape_code_name(code::LOCKED)), c"LOCKED");
        assert_eq!(CStr::from_ptr(unitape_code_name(-999)), c"?");
    }
}
