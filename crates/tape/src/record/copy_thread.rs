//! The thread that writes to the disk's copy, so that the disk has the next piece while the recorder does all else.
//!
//! ```text
//!  recorder   look at 1, give │ look at 2, give │ sum 1, 2 │ 1 is written: look at 3, give │ 2 is written: …
//!  copier                     └────── write 1 ────────┘└────── write 2 ─────────┘└────── write 3 ───
//! ```
//!
//! The thread writes the pieces in their order and answers in that order. A piece that fails does not stop those
//! after it: they cannot be reached on the copy before it is whole, and the process that gave them writes them again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::disk::map::MappedSegment;
use crate::error::Result;
use crate::record::copy::SegmentCopy;

/// Pieces that may be on the way. The disk needs the next one; more of them are for the time that the recorder itself
/// waits for the file system.
pub(crate) const ON_THE_WAY_MAX: usize = 6;

/// A piece to write: the committed bytes of `source` from data offset `from` to `to`.
#[derive(Debug)]
pub(crate) struct CopyJob {
    pub copy: Arc<SegmentCopy>,
    pub source: MappedSegment,
    pub from_offset: u64,
    pub to_offset: u64,
}

/// The recorder's side of the thread.
#[derive(Debug)]
pub(crate) struct CopyThread {
    loads: Option<SyncSender<CopyJob>>,
    write_results: Receiver<Result<()>>,
    on_the_way: usize,
    thread: Option<JoinHandle<()>>,
}

impl CopyThread {
    /// Starts the thread. It has the processors and the niceness of the calling thread.
    pub fn start_thread() -> std::io::Result<Self> {
        let (loads, jobs) = sync_channel::<CopyJob>(ON_THE_WAY_MAX);
        let (back, written) = sync_channel(ON_THE_WAY_MAX);
        let body = move || {
            while let Ok(CopyJob { copy, source, from_offset: from, to_offset: to }) = jobs.recv() {
                let result = copy.copy_range(&source, from, to);
                // Before the answer: a caller that has it may drop the segment.
                drop((copy, source));
                if back.send(result).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("tape-copier".into()).spawn(body)?;
        Ok(Self { loads: Some(loads), write_results: written, on_the_way: 0, thread: Some(thread) })
    }

    /// Submits a write; at most [`ON_THE_WAY_MAX`] may be under way.
    pub fn submit(&mut self, load: CopyJob) {
        let is_sent = self.loads.as_ref().is_some_and(|loads| loads.send(load).is_ok());
        if !is_sent {
            self.panicked();
        }
        self.on_the_way += 1;
    }

    /// Waits for the oldest write under way and returns its result.
    pub fn wait_oldest(&mut self) -> Result<()> {
        let Ok(result) = self.write_results.recv() else { self.panicked() };
        self.on_the_way -= 1;
        result
    }

    /// Waits for all writes under way, whatever their results.
    pub fn wait_all(&mut self) {
        while self.on_the_way > 0 {
            _ = self.wait_oldest();
        }
    }

    /// Continues the panic of the copy thread, which ends before its channel only by a panic.
    fn panicked(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => unreachable!("the thread ends when its channel does"),
        }
    }
}

impl Drop for CopyThread {
    fn drop(&mut self) {
        self.loads = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its own has reached the thread that waited for it.
            _ = thread.join();
        }
    }
}
