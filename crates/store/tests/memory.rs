//! A seal keeps its budget of memory.

mod common;

use common::{NOON, Rng, key, open, seal, writer};
use peak_alloc::PeakAlloc;
use unitape_model::{EventBuilder, EventField, EventKind, EventValue, NameKind, Price, UnixNanos, flags};
use unitape_store::{ScanFilter, SealOptions, VerifyKey, VerifyOptions, verify};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// 5,000 instruments on a tape that is three times as large as the budget. Fails if memory grows with the tape, or with
/// the instruments that are open at once.
#[test]
fn many_instruments_fit_a_small_budget() {
    const ROWS: u64 = 1_000_000;
    const BUDGET: usize = 64 << 20;
    let dir = tempfile::tempdir().unwrap();
    let (tape, path) = (dir.path().join("tape"), dir.path().join("store"));
    let (mut tape_writer, mut rng, mut unit) = (writer(&tape, 9), Rng::new(7), Vec::new());
    for n in 0..ROWS as i64 {
        unit.clear();
        // Each instrument once, before its first event.
        let instrument = if n < 5_000 { 1 + n as u32 } else { 1 + rng.below(5_000) as u32 };
        if n < 5_000 {
            EventBuilder::define(&mut unit, NameKind::Instrument, instrument, &format!("I{n}")).unwrap();
        }
        let mut event = EventBuilder::begin(&mut unit, EventKind::Trade, UnixNanos(NOON + n * 20_000));
        event.set_field(EventField::Instr, EventValue::Sym(NameKind::Instrument, instrument)).unwrap();
        event.set_field(EventField::Px, EventValue::Price(Price(n % 100 * 10_000))).unwrap();
        event.finish(flags::LAST).unwrap();
        tape_writer.append(&unit).unwrap();
    }
    tape_writer.close().unwrap();
    let peak = |what: &str, work: &mut dyn FnMut()| {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        work();
        let bytes = MEMORY.peak_usage() - before;
        assert!(bytes < BUDGET + BUDGET / 4, "{what} took {bytes} bytes");
    };
    peak("the seal", &mut || {
        let options = SealOptions { memory_bytes: BUDGET, ..SealOptions::default() };
        let sealed = seal(&tape, &path, &options).unwrap();
        assert_eq!((sealed.rows, sealed.blocks), (ROWS, 5_000));
    });
    peak("the check", &mut || {
        let report = verify(&path, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
        assert_eq!(report.problems, 0);
    });
    let store = open(&path).unwrap();
    peak("the scan", &mut || {
        let mut scan = store.scan(&ScanFilter::default()).unwrap().with_window_bytes(BUDGET as u64 / 2);
        let mut rows = 0;
        while scan.next().is_some() {
            rows += 1;
        }
        assert_eq!((rows, scan.problem_count()), (ROWS, 0));
    });
}
