//! The reader's side of a gate.

use std::path::Path;
use std::sync::atomic::Ordering;

use unitape_model::Position;

use super::GateDrops;
use super::file::{GateFile, check_name, folder};
use crate::disk::layout::{TapeManifest, TapePaths};
use crate::disk::lock::lock_exclusive;
use crate::error::{Error, FileContext, Result};
use crate::lockfree::{SharedMemory, flaw, gate};

/// A reader's hold on its gate. Dropping it, or dying, lets the writer continue.
///
/// ```
/// use std::time::Duration;
/// use unitape_tape::{Error, Gate, GateHandle, GatePolicy, WriterOptions, Publication, Reader, StartPosition};
///
/// let dir = tempfile::tempdir()?;
/// let gate = Gate {
///     reader: "risk".into(),
///     ahead_bytes: 128, // two messages
///     policy: GatePolicy::Wait { timeout: Duration::from_millis(1) },
///     holds_when_absent: false,
/// };
/// let options = WriterOptions { segment_bytes: 1 << 20, gates: vec![gate], ..WriterOptions::default() };
/// let mut orders = Publication::open(dir.path(), options)?;
///
/// let mut reader = Reader::open(dir.path(), StartPosition::End)?;
/// let mut risk = GateHandle::attach(dir.path(), "risk", reader.position())?;
/// orders.offer(1, b"buy")?;
/// orders.offer(1, b"sell")?;
/// assert!(matches!(orders.offer(1, b"buy"), Err(Error::Gated { alive: true, .. })));
/// while reader.next()?.is_some() {} // dealt with, then reported:
/// risk.advance(reader.position());
/// orders.offer(1, b"buy")?;
/// orders.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GateHandle {
    gate: GateFile,
    attachment: u64,
    position: Position,
    /// The process that attached; a child that was forked has the same lock, and is not the reader.
    pid: u32,
}

impl GateHandle {
    /// Attaches to the gate `name` of the tape in `dir`, as a reader that has processed everything before `position`.
    ///
    /// # Errors
    /// Fails if there is no such gate, if another reader has it, if its file is damaged or belongs to another tape, or
    /// if the system refuses. The tape's writer makes the gates with which it is opened.
    pub fn attach(dir: &Path, name: &str, position: Position) -> Result<Self> {
        check_name(name)?;
        let meta = TapeManifest::load(dir)?;
        let path = folder(&TapePaths { tape_dir: dir.into() }).join(name);
        loop {
            let gate = GateFile::open(&path, meta.id)?.ok_or_else(|| Error::NoGate { path: path.clone() })?;
            if !lock_exclusive(&gate.file).with_context("lock", &path)? {
                // Relaxed: for the message only.
                let holder = gate.load(gate::place::PID, Ordering::Relaxed);
                return Err(Error::Locked { path, holder });
            }
            use std::os::unix::fs::MetadataExt;
            // A writer that closed may have removed it between our open and our lock.
            if gate.file.metadata().with_context("look at", &path)?.nlink() > 0 {
                gate.store(gate::place::PID, u64::from(std::process::id()), Ordering::Relaxed);
                let attachment = gate::attach_reader::<{ flaw::NONE }>(&gate, position);
                return Ok(Self { gate, attachment, position, pid: std::process::id() });
            }
        }
    }

    /// Reports that the reader has processed everything before `position`. It costs one store; a position that was
    /// reported already changes nothing.
    #[inline]
    pub fn advance(&mut self, position: Position) {
        if position > self.position {
            self.position = position;
            gate::advance::<{ flaw::NONE }>(&self.gate, position);
        }
    }

    /// Goes back to `position`, after [`crate::Error::Rewound`]: the tape was cut back there, and later frames are no
    /// longer on the tape. Until then the writer takes the reader to be at the cut.
    pub fn rewind(&mut self, position: Position) {
        self.position = position;
        // As one that comes: the writer knows by the number that this position is of the tape as it is now.
        self.attachment = gate::attach_reader::<{ flaw::NONE }>(&self.gate, position);
    }

    /// Returns the last reported position.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns whether the writer has seen this reader. It is false until the writer looks (at the latest after
    /// `ahead_bytes`), and while no writer has the tape open with this gate.
    pub fn is_heeded(&self) -> bool {
        // Acquire: pairs with the Release in `GateSet`; nothing else is read under it.
        self.gate.load(gate::place::HEEDED, Ordering::Acquire) == self.attachment
    }

    /// Units and bytes that the writer has dropped for this gate since its file was made.
    pub fn dropped(&self) -> GateDrops {
        self.gate.dropped()
    }
}

impl Drop for GateHandle {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        gate::detach_reader(&self.gate, self.attachment);
        // Not left to closing the file: a process that is being started by another thread of ours has a copy of the
        // descriptor for a moment, and would keep the lock.
        let _ = self.gate.file.unlock();
    }
}
