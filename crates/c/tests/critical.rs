//! Gates and named places as C calls them: who holds whom up, what is dropped or skipped, and that it
//! is counted.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

use tempfile::TempDir;
use unitape_c::*;

type Publication = *mut Handle<OpenPublication>;
type Subscription = *mut Handle<OpenSubscription>;
type Hold = *mut Handle<OpenGateHold>;

const OLDEST: u32 = 0;
const END: u32 = 1;
const AT: u32 = 2;
const OR_OLDEST: u32 = 256;

fn directory(name: &str) -> (TempDir, CString) {
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().join(name).as_os_str().as_bytes()).unwrap();
    (dir, path)
}

fn last() -> String {
    // SAFETY: a C string of this thread, copied at once.
    unsafe { CStr::from_ptr(unitape_last_error()) }.to_str().unwrap().to_owned()
}

#[track_caller]
fn ok(given: i32) {
    assert_eq!(given, code::OK, "{}", last());
}

fn small() -> Options {
    let mut options = std::mem::MaybeUninit::uninit();
    // SAFETY: as many bytes are there, and all of them are set.
    let mut options: Options = unsafe {
        ok(unitape_options_init(options.as_mut_ptr(), size_of::<Options>()));
        options.assume_init()
    };
    options.segment_bytes = 4096;
    options
}

fn open(dir: &CString, options: &Options) -> Publication {
    let mut publication = null_mut();
    // SAFETY: all pointers are good.
    unsafe { ok(unitape_publication_open(dir.as_ptr(), options, &raw mut publication)) };
    publication
}

/// Offers an empty message, a line long.
fn offer(publication: Publication, topic: u32) -> i32 {
    // SAFETY: alive; there are no bytes.
    unsafe { unitape_publication_offer(publication, topic, null(), 0, null_mut()) }
}

fn standing(publication: Publication) -> GateStanding {
    let mut standing = GateStanding::default();
    // SAFETY: alive.
    unsafe { ok(unitape_publication_gate(publication, c"risk".as_ptr(), &raw mut standing)) };
    standing
}

fn gate(policy: u32, required: u32) -> Gate {
    let timeout_ns = if policy == 0 { 1_000_000 } else { 0 };
    Gate { reader: c"risk".as_ptr(), ahead_bytes: 256, timeout_ns, policy, required, reserved: 0 }
}

fn gated(gate: &Gate) -> Options {
    Options { gates: gate, gate_count: 1, ..small() }
}

/// A reader that is there holds the publication up, or makes it drop; one that has gone does not.
#[test]
fn a_gate_holds_the_publication_for_its_reader() {
    for policy in [0, 1] {
        let (_dir, tape) = directory("tape");
        let publication = open(&tape, &gated(&gate(policy, 0)));
        let mut hold: Hold = null_mut();
        // SAFETY: the pointers are good, and the handles alive until they are closed.
        unsafe {
            (0..20).for_each(|topic| ok(offer(publication, topic)));
            assert_eq!(
                unitape_gate_attach(tape.as_ptr(), c"audit".as_ptr(), 0, &raw mut hold),
                code::NO_GATE
            );
            assert!(hold.is_null() && last().contains("audit"), "{}", last());
            ok(unitape_gate_attach(tape.as_ptr(), c"risk".as_ptr(), 20 * 64, &raw mut hold));
            let mut second: Hold = null_mut();
            assert_eq!(
                unitape_gate_attach(tape.as_ptr(), c"risk".as_ptr(), 0, &raw mut second),
                code::LOCKED
            );
            let refused = (0..100).map(|topic| offer(publication, topic)).find(|&given| given != code::OK);
            assert_eq!(refused, Some([code::GATED, code::DROPPED][policy as usize]), "{}", last());
            assert!(last().contains("risk"), "{}", last());
            assert_eq!(unitape_gate_is_heeded(hold), 1);
            let mut end = 0;
            ok(unitape_publication_end(publication, &raw mut end, null_mut()));
            let before = standing(publication);
            assert_eq!((before.position, before.alive, before.reserved), (20 * 64, 1, 0));
            let mut dropped = Dropped::default();
            ok(unitape_gate_dropped(hold, &raw mut dropped));
            assert_eq!(dropped, before.dropped);
            if policy == 0 {
                assert!(before.waits > 0 && dropped == Dropped::default());
            } else {
                assert!(dropped.count > 0 && dropped.bytes == 64 * dropped.count && dropped.last == end);
            }
            // Claims and batches go through the gate as well, and what is refused leaves nothing open.
            let refusal = refused.unwrap();
            assert_eq!(unitape_publication_claim(publication, 1, 8, &mut null_mut()), refusal);
            ok(unitape_publication_batch(publication));
            assert_eq!(unitape_publication_push(publication, 1, null(), 0), refusal);
            ok(unitape_publication_abort(publication));
            // Dealt with, it continues.
            ok(unitape_gate_advance(hold, end));
            ok(offer(publication, 1));
            ok(unitape_gate_detach(hold));
            (0..20).for_each(|topic| ok(offer(publication, topic)));
            assert_eq!(standing(publication).alive, 0);
            let mut none = GateStanding::default();
            let audit = unitape_publication_gate(publication, c"audit".as_ptr(), &raw mut none);
            assert_eq!(audit, code::NO_GATE);
            ok(unitape_publication_close(publication));
        }
    }
}

/// A required reader is waited for from the first message, and over restarts of the publication.
#[test]
fn a_required_gate_waits_for_who_is_not_there() {
    let (_dir, tape) = directory("tape");
    let required = gate(0, 1);
    let publication = open(&tape, &gated(&required));
    (0..4).for_each(|topic| ok(offer(publication, topic)));
    assert_eq!(offer(publication, 4), code::GATED);
    // SAFETY: alive, and closed once.
    unsafe { ok(unitape_publication_close(publication)) };
    let publication = open(&tape, &gated(&required));
    assert_eq!(offer(publication, 4), code::GATED);
    let mut hold: Hold = null_mut();
    // SAFETY: the pointers are good, and the handles alive until they are closed.
    unsafe {
        ok(unitape_gate_attach(tape.as_ptr(), c"risk".as_ptr(), 4 * 64, &raw mut hold));
        ok(offer(publication, 4));
        ok(unitape_gate_detach(hold));
        ok(unitape_publication_close(publication));
    }
}

/// Opens a subscription, or gives the code.
fn subscribe(dir: &CString, name: Option<&CStr>, start: u32, position: u64) -> Result<Subscription, i32> {
    let mut subscription = null_mut();
    let name = name.map_or(null(), CStr::as_ptr);
    // SAFETY: all pointers are good.
    let given =
        unsafe { unitape_subscription_open(dir.as_ptr(), name, start, position, &raw mut subscription) };
    if given == code::OK { Ok(subscription) } else { Err(given) }
}

/// A named place is looked at, set back, given up. If retention has removed it, the call says so, or skips it.
#[test]
fn named_places_are_kept_and_may_be_gone() {
    let (_dir, tape) = directory("tape");
    let mut options = small();
    (options.retain_bytes, options.retain_notice_ns) = (8192, 1);
    let publication = open(&tape, &options);
    let name = c"report";
    let load = || {
        let mut position = 7;
        // SAFETY: the pointers are good.
        let found = unsafe { unitape_cursor_load(tape.as_ptr(), name.as_ptr(), &raw mut position) };
        (found, position)
    };
    assert_eq!(load(), (0, 7));
    (0..10).for_each(|topic| ok(offer(publication, topic)));
    // SAFETY: the pointers are good, and the handles alive until they are closed.
    unsafe {
        let report = subscribe(&tape, Some(name), OLDEST, 0).unwrap();
        assert_eq!(load().0, 0, "nothing is acknowledged yet");
        ok(unitape_subscription_seek(report, 5 * 64));
        ok(unitape_subscription_acknowledge(report));
        ok(unitape_subscription_close(report));
        assert_eq!(load(), (1, 5 * 64));
        (10..1000).for_each(|topic| ok(offer(publication, topic)));
        ok(unitape_publication_close(publication));

        assert_eq!(subscribe(&tape, Some(name), OLDEST, 0).unwrap_err(), code::RETAINED);
        let said = last();
        assert!(said.contains("position 320 is gone"), "{said}");
        assert_eq!(subscribe(&tape, None, AT, 64).unwrap_err(), code::RETAINED);
        let (mut bytes, mut events, mut position, mut ordinal) = (0, 0, 0, 0);
        for (name, start, from) in [(Some(name), OLDEST, 5), (None, AT, 1)] {
            let report = subscribe(&tape, name, start | OR_OLDEST, 64).unwrap();
            ok(unitape_subscription_position(report, &raw mut position, &raw mut ordinal));
            assert!(position > from * 64 && position == ordinal * 64, "{position}");
            assert!(said.contains(&position.to_string()), "{said}");
            ok(unitape_subscription_skipped(report, &raw mut bytes, &raw mut events));
            // A position alone does not say how many frames were before it.
            let known = if name.is_some() { ordinal - from } else { 0 };
            assert_eq!((bytes, events), (position - from * 64, known));
            ok(unitape_subscription_close(report));
        }
        assert_eq!(subscribe(&tape, None, 3 | OR_OLDEST, 0).unwrap_err(), code::ARGUMENT);
        ok(unitape_cursor_store(tape.as_ptr(), name.as_ptr(), position + 64));
        let report = subscribe(&tape, Some(name), END, 0).unwrap();
        ok(unitape_subscription_position(report, &raw mut bytes, null_mut()));
        assert_eq!(bytes, position + 64);
        ok(unitape_subscription_skipped(report, &raw mut bytes, null_mut()));
        assert_eq!(bytes, 0);
        ok(unitape_subscription_close(report));
        ok(unitape_cursor_delete(tape.as_ptr(), name.as_ptr()));
        ok(unitape_cursor_delete(tape.as_ptr(), name.as_ptr()));
        assert_eq!(load().0, 0);
        assert_eq!(unitape_cursor_store(tape.as_ptr(), c"../x".as_ptr(), 0), code::OPTION);
    }
}

/// Null is what a C program has when it has not looked at an earlier error.
#[test]
fn null_is_refused_and_not_followed() {
    let (_dir, tape) = directory("tape");
    let publication = open(&tape, &gated(&gate(1, 0)));
    let hold: Hold = null_mut();
    let risk = c"risk".as_ptr();
    // SAFETY: null, which every function must bear, and handles that are alive.
    unsafe {
        for given in [
            unitape_publication_gate(null_mut(), risk, &mut GateStanding::default()),
            unitape_publication_gate(publication, null(), &mut GateStanding::default()),
            unitape_publication_gate(publication, risk, null_mut()),
            unitape_subscription_skipped(null_mut(), null_mut(), null_mut()),
            unitape_cursor_load(tape.as_ptr(), risk, null_mut()),
            unitape_cursor_load(null(), risk, &mut 0),
            unitape_cursor_store(tape.as_ptr(), null(), 0),
            unitape_cursor_delete(null(), risk),
            unitape_gate_attach(null(), risk, 0, &mut { hold }),
            unitape_gate_attach(tape.as_ptr(), null(), 0, &mut { hold }),
            unitape_gate_attach(tape.as_ptr(), risk, 0, null_mut()),
            unitape_gate_advance(hold, 0),
            unitape_gate_is_heeded(hold),
            unitape_gate_dropped(hold, &mut Dropped::default()),
        ] {
            assert_eq!(given, code::NULL, "{}", last());
        }
        ok(unitape_gate_detach(hold));
        let mut attached = null_mut();
        ok(unitape_gate_attach(tape.as_ptr(), risk, 0, &raw mut attached));
        assert_eq!(unitape_gate_dropped(attached, null_mut()), code::NULL);
        ok(unitape_gate_detach(attached));
        ok(unitape_publication_close(publication));
    }
}
