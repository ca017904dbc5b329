//! The two helper threads of a writer: the preallocator makes and pre-faults segments ahead of it, the recorder
//! follows behind it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use unitape_model::Position;

use crate::disk::layout::{SegmentHeader, TapeManifest, TapePaths, remove};
use crate::disk::map::{MappedSegment, SegmentAllocation};
use crate::disk::segment_pool;
use crate::disk::state_page::StatePage;
use crate::error::{Error, Result};
use crate::record::follow::{IDLE, MENDING, TapeRecorder};
use crate::write::options::{Backing, WriterOptions};
use crate::write::placement::HelperThreadAffinity;
use crate::write::shared::SharedWriterState;

/// Segments that wait for the writer, made ahead.
const AHEAD: usize = 1;

/// The thread `tape-prealloc`.
#[derive(Debug)]
pub(crate) struct SegmentPreallocator {
    thread: Option<JoinHandle<()>>,
    pub prepared: Receiver<MappedSegment>,
}

/// The inputs of the preallocator's thread.
pub(crate) struct PreallocatorTask {
    pub shared_state: Arc<SharedWriterState>,
    /// Where the end is published for readers.
    pub state_page: StatePage,
    pub paths: TapePaths,
    /// The writer's epoch.
    pub epoch: u64,
    pub meta: TapeManifest,
    /// Where prepared segments are made; on the file system they will stay on.
    pub making_dir: PathBuf,
    pub prefault_bytes: u64,
    /// Nothing is faulted in: pages are written by calls.
    pub by_call: bool,
    pub first_segment: u64,
    pub helpers: HelperThreadAffinity,
}

impl SegmentPreallocator {
    pub fn spawn(task: PreallocatorTask) -> Result<Self> {
        let (sender, prepared) = sync_channel(AHEAD);
        let thread =
            std::thread::Builder::new().name("tape-prealloc".into()).spawn(move || task.run(&sender));
        let thread =
            thread.map_err(|source| Error::Io { doing: "start", path: "tape-prealloc".into(), source })?;
        Ok(Self { thread: Some(thread), prepared })
    }

    /// Ends the preallocator's pause: there is a segment to be made, or one to be handed over.
    pub fn wake_thread(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Lets go of the thread without a word to it: it is not in this process.
    pub fn forget_thread(&mut self) {
        std::mem::forget(self.thread.take());
        // Its end of the channel may have stopped in the middle of a step, which dropping this one would wait for.
        std::mem::forget(std::mem::replace(&mut self.prepared, sync_channel(0).1));
    }

    /// Stops the thread; the segments that it had prepared wait in the channel.
    pub fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the preallocator cost pre-faulting only; the writer made its segments itself.
            let _ = thread.join();
        }
    }
}

impl PreallocatorTask {
    fn run(self, sender: &SyncSender<MappedSegment>) {
        self.helpers.apply_placement();
        let mut next_index = self.first_segment;
        let mut waiting: Option<MappedSegment> = None;
        let (mut faulted_index, mut faulted) = (u64::MAX, 0);
        // How far ahead; grows when the writer was faster, because then this thread wakes too rarely.
        let mut ahead_bytes = self.prefault_bytes;
        // A tape that is closed does not wait for a segment that it will not have.
        let is_stopped = || self.shared_state.stop_preallocator.load(Ordering::Relaxed);
        let ahead_max = self.prefault_bytes.max(self.meta.segment_bytes);
        let (mut end, mut pause) = (Position(0), PAUSE);
        while !is_stopped() {
            if self.is_fenced() {
                self.stop_writer();
                break;
            }
            let old_end = end;
            end = self.publish_end();
            // The writer wakes it at the end of a segment.
            pause = if end == old_end { (pause * 2).min(PAUSE_IDLE) } else { PAUSE };
            next_index = next_index.max(end.0 / self.meta.segment_bytes + 1);
            if waiting.is_none() && self.is_due(next_index, end) {
                let path = self.making_dir.join(format!("prepared-{next_index:016x}"));
                let header = SegmentHeader { meta: self.meta, index: next_index, first_ordinal: 0 };
                self.shared_state.making.store(next_index, Ordering::Relaxed);
                // The writer reports a full disk when it gets there and tries for itself.
                let spare = segment_pool::recycle(
                    &self.making_dir,
                    &path,
                    &header,
                    &self.shared_state.released_mappings,
                );
                let allocation =
                    if self.by_call { SegmentAllocation::ByAndBy } else { SegmentAllocation::Ready };
                let make = || MappedSegment::create_unless(&path, &header, allocation, &is_stopped).ok();
                if let Some(segment) = spare.or_else(make) {
                    if !self.by_call {
                        segment.prefault(0, ahead_bytes);
                    }
                    waiting = Some(segment);
                    next_index += 1;
                }
            }
            if let Some(segment) = waiting.take()
                && let Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) =
                    sender.try_send(segment)
            {
                waiting = Some(back);
            }
            if waiting.is_none() {
                // Handed over, or not to be had.
                self.shared_state.making.store(0, Ordering::Relaxed);
            }
            let current = self.shared_state.current.lock().clone();
            if let Some(segment) = current {
                let offset = end.0.saturating_sub(segment.base_position.0).min(segment.data_bytes);
                if self.by_call {
                    segment.reserve_ahead(offset);
                    std::thread::park_timeout(pause.max(PAUSE_BULK));
                    continue;
                }
                if segment.segment_index != faulted_index {
                    (faulted_index, faulted) = (segment.segment_index, ahead_bytes.min(segment.data_bytes));
                }
                if offset > faulted && ahead_bytes > 0 {
                    ahead_bytes = (ahead_bytes * 2).min(ahead_max);
                }
                let want = offset.saturating_add(ahead_bytes).min(segment.data_bytes);
                let fault_start = faulted.max(offset);
                if want > fault_start && (want - fault_start >= ahead_bytes / 4 || want == segment.data_bytes)
                {
                    segment.prefault(fault_start, want - fault_start);
                    faulted = want;
                }
            }
            std::thread::park_timeout(pause);
        }
        if self.is_fenced() {
            return;
        }
        self.publish_end();
        if let Some(segment) = waiting {
            // Left behind it would be removed by the next open.
            let _ = remove(&segment.path);
        }
    }

    /// Returns whether it is time to make segment `next`. A segment without ready pages is due near the end of the
    /// segment before, so that a tape which ends earlier never makes it.
    fn is_due(&self, next: u64, end: Position) -> bool {
        !self.by_call || end.0 + self.meta.segment_bytes / 4 >= next * self.meta.segment_bytes
    }

    /// Returns whether a later writer has opened the tape. Loads the epoch from the page that all processes of the tape
    /// share.
    fn is_fenced(&self) -> bool {
        self.state_page.epoch() > self.epoch
    }

    /// Makes the writer's next call an error, and the end of the tape the later writer's to say.
    #[cold]
    fn stop_writer(&self) {
        let (path, newest) = (self.paths.tape_dir.clone(), self.state_page.epoch());
        self.shared_state.raise(Error::Fenced { path, epoch: self.epoch, newest }, true);
    }

    /// Publishes where the tape ends, so that readers learn it at no cost to the writer.
    fn publish_end(&self) -> Position {
        let ordinal = self.shared_state.ordinal.load(Ordering::Relaxed);
        let claimed_end = Position(self.shared_state.end.load(Ordering::Relaxed));
        self.state_page.set_end(claimed_end, ordinal);
        claimed_end
    }
}

/// Between two looks at where the writer is.
const PAUSE: Duration = Duration::from_micros(500);

/// The longest pause where the writer writes nothing: each is twice the one before.
const PAUSE_IDLE: Duration = Duration::from_millis(64);

/// The longest pause where nothing is faulted in: this is often enough for a writer of a gigabyte a second.
const PAUSE_BULK: Duration = Duration::from_millis(2);

/// A step of this many bytes says that there is more to do at once.
const FAR_BEHIND: u64 = 1 << 19;

/// The thread `tape-recorder`, when it is not a process of its own.
#[derive(Debug)]
pub(crate) struct RecorderThread {
    thread: Option<JoinHandle<Result<()>>>,
}

impl RecorderThread {
    pub fn spawn(
        core: Arc<SharedWriterState>,
        mut recorder: TapeRecorder,
        helpers: HelperThreadAffinity,
    ) -> Result<Self> {
        let body = move || {
            helpers.apply_placement();
            follow_recorder(&core, &mut recorder)
        };
        let thread = std::thread::Builder::new().name("tape-recorder".into()).spawn(body);
        let thread =
            thread.map_err(|source| Error::Io { doing: "start", path: "tape-recorder".into(), source })?;
        Ok(Self { thread: Some(thread) })
    }

    /// Ends the recorder's pause: somebody waits for it.
    pub fn wake_thread(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Waits for the thread, which drains the tape if the writer asked for it.
    pub fn join(&mut self) -> Result<()> {
        match self.thread.take().map(|t| (t.thread().unpark(), t.join())) {
            Some(((), Ok(result))) => result,
            Some(((), Err(panic))) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

fn follow_recorder(core: &SharedWriterState, recorder: &mut TapeRecorder) -> Result<()> {
    let mut pause = IDLE;
    loop {
        let abandon = core.abandon.load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `Writer::close`; all claims are published then.
        let drain = core.drain.load(Ordering::Acquire);
        if abandon {
            return Ok(());
        }
        let old_position = recorder.position;
        let has_moved = recorder.step().and_then(|moved| recorder.housekeep().map(|()| moved));
        match has_moved {
            Err(e) if recorder.is_mending(&e) => std::thread::park_timeout(MENDING),
            Err(e) if drain => return Err(e),
            // Nothing of what this writer has is the tape's any more.
            Err(e @ Error::Fenced { .. }) => {
                core.raise(e, true);
                core.stop_preallocator.store(true, Ordering::Relaxed);
                return Ok(());
            }
            Err(e) => {
                core.raise(e, false);
                std::thread::park_timeout(Duration::from_millis(50));
            }
            Ok(false) if drain && recorder.position.0 >= core.end.load(Ordering::Relaxed) => {
                return recorder.finish();
            }
            Ok(true) if drain || recorder.position.0.saturating_sub(old_position.0) >= FAR_BEHIND => {}
            Ok(moved) => {
                pause = if moved { IDLE } else { (pause * 2).min(PAUSE_IDLE) };
                std::thread::park_timeout(pause);
            }
        }
    }
}

/// Segments by which the recorder may be behind, and which it leaves in shared memory behind itself.
pub(crate) fn half_window(options: &WriterOptions) -> u64 {
    match options.backing {
        Backing::Hot { window_segments, .. } => (u64::from(window_segments) / 2).max(1),
        Backing::File => 1,
    }
}
