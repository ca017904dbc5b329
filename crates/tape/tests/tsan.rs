//! The tape under ThreadSanitizer (`cargo xtask test --only tsan`), and as a plain test without.
//!
//! A program with its own `main` and plain threads, because the test harness is not instrumented. TSan distinguishes
//! places by their address, so a reader with a mapping of its own never meets the writer's in its eyes. `one_mapping`
//! therefore runs the segment's own code, compiled in here, with writers and a reader on one mapping. `whole_tape`
//! runs all of it with its helper threads. `gate_on_one_memory` runs the core of gates, `gated_tape` the same through
//! its file.

#[allow(dead_code, unused_imports)]
#[path = "../src/error.rs"]
mod error;
#[allow(dead_code, unused_imports)]
#[path = "../src/lockfree/mod.rs"]
mod lockfree;

#[allow(dead_code, unused_imports)]
#[path = "../src/disk"]
mod disk {
    #[cfg(feature = "faults")]
    pub mod faults;
    pub mod filler;
    pub mod layout;
    pub mod map;
    pub mod memory;
    pub mod prefault;
    pub mod sys;
}

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use disk::layout::{SegmentHeader, TapeId, TapeManifest};
use disk::map::{HeaderWordState, MappedSegment, SegmentAllocation};
use lockfree::{SharedMemory, gate};
use unitape_model::{FrameHeader, LINE, Position, flags, frames};
use unitape_tape::{
    Error, Gate, GateHandle, GatePolicy, HotNotice, Reader, StartPosition, Writer, WriterOptions, verify,
};

/// Possible error: a first word stored before the rest of its claim is in place. TSan ends the process with an error
/// when it sees the race.
fn main() {
    // A test runner that runs each test in a process of its own asks for their names first.
    let asks = |word: &str| std::env::args().any(|arg| arg == word);
    if asks("--list") {
        if !asks("--ignored") {
            println!("tsan: test");
        }
        return;
    }
    for writers in [1, 2, 4] {
        one_mapping(writers);
    }
    for threads in [2, 3, 4] {
        whole_tape(threads);
    }
    for ahead in [1, 3, 64] {
        gate_on_one_memory(ahead);
    }
    for policy in [GatePolicy::Wait { timeout: Duration::from_secs(300) }, GatePolicy::Drop] {
        gated_tape(policy);
    }
    println!("test result: ok. 11 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// `Arc` frees with a fence, which TSan does not know, unless the standard library was built for it. Only what
/// happens while an `Arc` frees is left out.
// SAFETY: the name is TSan's, which reads a string that ends with zero and lives for ever; no one else has it.
#[unsafe(no_mangle)]
extern "C" fn __tsan_default_suppressions() -> *const std::ffi::c_char {
    c"race:alloc::sync::Arc*drop_slow".as_ptr()
}

/// Appends a claim of `count` frames, of one to three lines, that carry `number` in every word.
fn fill(number: u64, count: u64, run: &mut Vec<u8>) {
    for i in 0..count {
        let lines = 1 + (number + i) % 3;
        let from = run.len();
        run.resize(from + lines as usize * LINE, 0);
        for word in run[from..].chunks_exact_mut(8) {
            word.copy_from_slice(&number.to_le_bytes());
        }
        let last = if i + 1 == count { flags::LAST } else { 0 };
        FrameHeader::new_unstamped(20, last, lines as u16).write(&mut run[from..]);
    }
}

fn check(frame: &[u8], number: u64) {
    assert!(frame[8..].chunks_exact(8).all(|word| word == number.to_le_bytes()), "claim {number} is torn");
}

/// Claims of one segment go around between `writers` threads; a reader follows on the same mapping.
fn one_mapping(writers: u64) {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = TapeManifest { id: TapeId(1), segment_bytes: 1 << 20 };
    let header = SegmentHeader { meta, index: 0, first_ordinal: 0 };
    let segment = Arc::new(
        MappedSegment::create(&dir.path().join("segment"), &header, SegmentAllocation::Ready)
            .expect("a segment"),
    );
    let mut claims = Vec::new();
    let mut at = 0;
    loop {
        let mut run = Vec::new();
        fill(claims.len() as u64, 1 + claims.len() as u64 % 4, &mut run);
        if at + run.len() as u64 > meta.segment_bytes {
            break;
        }
        let length = run.len() as u64;
        claims.push((at, run));
        at += length;
    }
    let (total, claims) = (claims.len() as u64, Arc::new(claims));
    let threads: Vec<JoinHandle<()>> = (0..writers)
        .map(|writer| {
            let (segment, claims) = (segment.clone(), claims.clone());
            spawn(move || {
                for (at, run) in claims.iter().skip(writer as usize).step_by(writers as usize) {
                    // SAFETY: the claims are whole frames in disjoint ranges of the segment, one thread each.
                    unsafe { segment.write_frames(*at, run, true) };
                    segment.commit(*at, FrameHeader::read(run));
                }
            })
        })
        .collect();
    let (mut at, mut next) = (0, 0);
    while next < total {
        match segment.header_state(at) {
            HeaderWordState::Frame(header) => {
                // SAFETY: `look` saw the frame committed.
                check(unsafe { segment.bytes(at, header.len_bytes()) }, next);
                at += header.len_bytes() as u64;
                next += u64::from(header.is_last());
            }
            HeaderWordState::Nothing => std::hint::spin_loop(),
            other => panic!("{other:?} at {at}"),
        }
    }
    threads.into_iter().for_each(|t| t.join().expect("a writer"));
}

/// A writer whose claims are filled by `threads` threads over many segments, its helpers, and a reader.
fn whole_tape(threads: u64) {
    const CLAIMS: u64 = 3_000;
    let dir = tempfile::tempdir().expect("a directory");
    let options =
        WriterOptions { segment_bytes: 32 << 10, prefault_bytes: 8 << 10, ..WriterOptions::default() };
    let id = unitape_tape::TapeId(1);
    let (mut writer, _) = Writer::open(dir.path(), id, options).expect("a tape");
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).expect("a reader");
    let reading = spawn(move || {
        let mut next = 0;
        while next < CLAIMS {
            match reader.next().expect("no damage") {
                Some(frame) => {
                    assert!(frame.header.is_at(frame.position));
                    check(frame.bytes, next);
                    next += u64::from(frame.header.is_last());
                }
                None => std::thread::yield_now(),
            }
        }
        (reader.position(), reader.ordinal())
    });
    let mut number = 0;
    while number < CLAIMS {
        let mut filling = Vec::new();
        for _ in 0..threads.min(CLAIMS - number) {
            let mut run = Vec::new();
            let count = 1 + number % 4;
            fill(number, count, &mut run);
            number += 1;
            let mut claim = writer.claim(run.len() as u64, |limit| cut(&run, limit), count).expect("a claim");
            filling.push(spawn(move || {
                claim.write_frames(&run).expect("whole frames");
                claim.publish();
            }));
        }
        filling.into_iter().for_each(|t| t.join().expect("a claim"));
    }
    let end = (writer.end(), writer.ordinal());
    assert_eq!(reading.join().expect("the reader"), end);
    writer.close().expect("a clean end");
    let report = verify(dir.path()).expect("a tape");
    assert!(report.is_intact(), "{:?}", report.problems);
    assert_eq!((report.unit_count, report.intact_to), (CLAIMS, end.0));
}

/// The memory that the threads of a gate share.
#[derive(Clone)]
struct Heap(Arc<Vec<AtomicU64>>);

impl SharedMemory for Heap {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.0[at as usize / 8].load(order)
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.0[at as usize / 8].store(value, order);
    }

    unsafe fn fill(&self, _: u64, _: &[u8]) {
        unreachable!("a gate fills nothing but by words");
    }
}

/// Places that are not atomic: the reader of a gate and its writer use them in turn, and the gate alone says whose
/// turn it is.
struct Places(Vec<UnsafeCell<u64>>);

// SAFETY: that the two threads never use one place at once is what TSan looks for.
unsafe impl Sync for Places {}

/// A writer that may be `prefault` places before a reader which comes, deals with them, and goes, again and again.
/// The writer that uses a place next must see what the reader did with it. The drops reported to the reader must be
/// those of that number or a later one.
fn gate_on_one_memory(ahead: u64) {
    const UNITS: u64 = 20_000;
    const LINES: u64 = LINE as u64;
    let heap = Heap(Arc::new((0..512).map(|_| AtomicU64::new(0)).collect()));
    let places = Arc::new(Places((0..ahead).map(|_| UnsafeCell::new(0)).collect()));
    let end = Arc::new(AtomicU64::new(0));
    // The writer waits for the first coming: the places are the reader's and its own, of nobody else.
    let first = gate::attach_reader::<{ lockfree::flaw::NONE }>(&heap, Position(0));
    let reader = {
        let (heap, places, end) = (heap.clone(), places.clone(), end.clone());
        spawn(move || {
            let mut earlier = gate::dropped(&heap);
            for number in 0..UNITS {
                while end.load(Ordering::Acquire) <= number * LINES {
                    std::thread::yield_now();
                }
                let place = places.0[(number % ahead) as usize].get();
                // SAFETY: the writer has put `number` here and comes back when the gate says it was dealt with.
                unsafe {
                    assert_eq!(*place, number);
                    *place = u64::MAX - number;
                }
                gate::advance::<{ lockfree::flaw::NONE }>(&heap, Position((number + 1) * LINES));
                let now = gate::dropped(&heap);
                assert!(now.count >= earlier.count && now.bytes >= now.count * LINES, "{earlier:?} {now:?}");
                assert!(now.count == 0 || now.first_position <= now.last_position, "{now:?}");
                earlier = now;
            }
            gate::detach_reader(&heap, first);
        })
    };
    let mut dropped = 0;
    for number in 0..UNITS {
        let at = Position(number * LINES);
        while gate::writer_limit(gate::reader_state(&heap).1, at, LINES, ahead * LINES) < at.plus(LINES) {
            if number % 3 == 0 && dropped < UNITS {
                gate::drop_at::<{ lockfree::flaw::NONE }>(&heap, at, LINES);
                dropped += 1;
            }
            std::thread::yield_now();
        }
        let place = places.0[(number % ahead) as usize].get();
        // SAFETY: the limit says that the reader has dealt with what was here.
        unsafe {
            assert_eq!(*place, number.checked_sub(ahead).map_or(0, |before| u64::MAX - before));
            *place = number;
        }
        end.store(at.0 + LINES, Ordering::Release);
    }
    reader.join().expect("the reader");
    assert!(gate::reader_state(&heap).0.is_multiple_of(2) && gate::dropped(&heap).count == dropped);
}

/// A writer that is held up, or drops, for a reader with a gate, which comes and goes.
fn gated_tape(policy: GatePolicy) {
    const UNITS: u64 = 3_000;
    let dir = tempfile::tempdir().expect("a directory");
    let gates = vec![Gate { reader: "risk".into(), ahead_bytes: 1 << 10, policy, holds_when_absent: false }];
    let options =
        WriterOptions { segment_bytes: 32 << 10, prefault_bytes: 8 << 10, gates, ..WriterOptions::default() };
    let (mut writer, _) = Writer::open(dir.path(), unitape_tape::TapeId(1), options).expect("a tape");
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).expect("a reader");
    let place = dir.path().to_owned();
    let reading = spawn(move || {
        let mut gate = GateHandle::attach(&place, "risk", Position(0)).expect("a gate");
        let mut seen = 0;
        while seen + gate.dropped().count < UNITS {
            while let Some(frame) = reader.next().expect("no damage") {
                check(frame.bytes, reader_number(frame.bytes));
                seen += u64::from(frame.header.is_last());
                if seen % 500 == 0 {
                    break;
                }
            }
            gate.advance(reader.position());
            if seen % 500 == 499 {
                drop(gate);
                gate = GateHandle::attach(&place, "risk", reader.position()).expect("a gate");
            }
            std::thread::yield_now();
        }
        seen
    });
    let (mut unit, mut dropped) = (Vec::new(), 0);
    for number in 0..UNITS {
        unit.clear();
        fill(number, 1, &mut unit);
        match writer.append(&unit) {
            Ok(_) => {}
            Err(Error::Dropped { .. }) => dropped += 1,
            Err(e) => panic!("{e}"),
        }
    }
    assert_eq!(reading.join().expect("the reader") + dropped, UNITS);
    assert_eq!(writer.gates()[0].drops.count, dropped);
    writer.close().expect("a clean end");
    assert!(verify(dir.path()).expect("a tape").is_intact());
}

/// The number that every word of a frame carries.
fn reader_number(frame: &[u8]) -> u64 {
    u64::from_le_bytes(frame[8..16].try_into().expect("eight bytes"))
}

fn cut(run: &[u8], limit: u64) -> (u64, u64) {
    let behind = frames(run).map(|(offset, _, frame)| (offset + frame.len()) as u64);
    behind.zip(1..).take_while(|(at, _)| *at <= limit).last().unwrap_or((0, 0))
}
