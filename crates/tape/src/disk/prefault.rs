//! Pages ahead of readers: a thread of the process enters the pages of segments in memory into its page table, so
//! that the reader does not fault at each.
//!
//! ```text
//!   segment  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░░░░░░░░   ▓ in the page table   ░ not yet
//!                 ▲ reader    ▲ this thread, a mebibyte at a time
//! ```
//!
//! A fault is a few microseconds in every 64 KiB read. The thread only helps: without it, or where it is late, the
//! reader faults as ever. It serves only segments in memory, all of whose pages are there from the start.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};

use memmap2::MmapRaw;

/// Segments that may wait for the thread; more than that are left to their readers.
const WAITING_MAX: usize = 64;

/// Bytes between two looks whether the reader still has the segment.
const STEP_BYTES: u64 = 1 << 20;

/// Enters the pages of `map` from byte `from` on, soon.
pub(crate) fn request(map: &Arc<MmapRaw>, from: u64) {
    static THREAD: OnceLock<Option<SyncSender<PrefaultRequest>>> = OnceLock::new();
    if let Some(thread) = THREAD.get_or_init(start) {
        _ = thread.try_send((Arc::downgrade(map), from));
    }
}

/// A segment's mapping, and from which byte on.
type PrefaultRequest = (Weak<MmapRaw>, u64);

fn start() -> Option<SyncSender<PrefaultRequest>> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let thread = std::thread::Builder::new().name("tape-ahead".into());
    thread.spawn(move || run(&receiver)).ok().map(|_| sender)
}

fn run(segments: &Receiver<PrefaultRequest>) {
    leave_the_readers_core();
    while let Ok((map, from)) = segments.recv() {
        let mut offset = from & !4095;
        // A reader that has moved on has dropped it.
        while let Some(map) = map.upgrade().filter(|map| offset < map.len() as u64) {
            let length = STEP_BYTES.min(map.len() as u64 - offset);
            #[cfg(target_os = "linux")]
            crate::disk::sys::advise(&map, offset, length, rustix::mm::Advice::LinuxPopulateRead);
            offset += length;
        }
    }
}

/// Runs where the process's first thread may: the reader that started this one may have a core of its own.
fn leave_the_readers_core() {
    #[cfg(target_os = "linux")]
    if let Ok(cpus) = rustix::thread::sched_getaffinity(Some(rustix::process::getpid())) {
        _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}
