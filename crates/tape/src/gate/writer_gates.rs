//! The writer's side of gates.

use std::fs;
use std::sync::atomic::Ordering;

use unitape_model::{LINE, Position};
use unitape_ring::WaitStrategy;

use super::file::{GateFile, check_name, folder};
use super::{Gate, GatePolicy, GateStatus};
use crate::disk::layout::{TapeId, TapePaths, UNFINISHED, remove};
use crate::disk::lock::lock_exclusive;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::lockfree::{SharedMemory, flaw, gate};
use crate::read::pace::DeadlineWaiter;

/// The gates of a writer, and the one number that its way is held against.
#[derive(Debug)]
pub(crate) struct GateSet {
    /// The end may go up to here without another look.
    limit: Position,
    held: Vec<HeldGate>,
    /// The process of the writer; a child that was forked shares the files and must leave them.
    pid: u32,
}

#[derive(Debug)]
struct HeldGate {
    gate: Gate,
    file: GateFile,
    /// The attachment that the writer last confirmed to its reader.
    heeded: u64,
    /// The coming whose reader was found dead.
    dead: Option<u64>,
    /// A reader that came before the tape was cut back, and where: what it dealt with beyond is not on the tape any more.
    /// It counts as being there until it comes again.
    rewound: Option<(u64, Position)>,
}

impl GateSet {
    /// Opens or makes the gates of a tape that ends at `end`; removes those that are not declared any more.
    pub fn open(paths: &TapePaths, tape: TapeId, end: Position, gates: &[Gate]) -> Result<Self> {
        for (i, gate) in gates.iter().enumerate() {
            check_name(&gate.reader)?;
            if gates[..i].iter().any(|other| other.reader == gate.reader) {
                return Err(Error::Option("two gates have the same name"));
            }
            if gate.ahead_bytes < LINE as u64 {
                return Err(Error::Option("ahead_bytes of a gate is at least a line, 64"));
            }
        }
        let folder = folder(paths);
        tidy(paths, tape, |name| gates.iter().any(|gate| gate.reader == name))?;
        let mut held = Vec::new();
        for gate in gates {
            sys::make_dir(&folder).with_context("make", &folder)?;
            let path = folder.join(&gate.reader);
            let file = match GateFile::open(&path, tape)? {
                Some(file) => file,
                None => {
                    GateFile::create(&path, tape, end)?;
                    GateFile::open(&path, tape)?.ok_or(Error::NoGate { path })?
                }
            };
            let rewound = rewind(&file, end);
            held.push(HeldGate { gate: gate.clone(), file, heeded: 0, dead: None, rewound });
        }
        let limit = Position(if held.is_empty() { u64::MAX } else { 0 });
        Ok(Self { limit, held, pid: std::process::id() })
    }

    /// Up to here a writer may go without asking.
    pub fn limit(&self) -> Position {
        self.limit
    }

    /// Lets a writer at `end` append `bytes`, of which `open` wait in a batch already, or says why not.
    #[inline]
    pub fn admit(&mut self, end: Position, bytes: u64, open: u64) -> Result<()> {
        if end.plus(bytes) <= self.limit { Ok(()) } else { self.look(end, bytes, open) }
    }

    #[cold]
    fn look(&mut self, end: Position, bytes: u64, open: u64) -> Result<()> {
        let mut patience: Option<DeadlineWaiter> = None;
        for round in 0u32.. {
            let mut limit = Position(u64::MAX);
            let mut closed = None;
            for (i, held) in self.held.iter_mut().enumerate() {
                let own = match held.limit(end, bytes, round.is_multiple_of(PROBE)) {
                    Ok(own) => own,
                    Err(alive) => match held.gate.policy {
                        GatePolicy::Drop => {
                            gate::drop_at::<{ flaw::NONE }>(&held.file, end, bytes - open);
                            let dropped = held.file.dropped().count;
                            let reader = held.gate.reader.clone();
                            return Err(Error::Dropped { reader, position: end, dropped });
                        }
                        GatePolicy::Wait { timeout } => {
                            closed = closed.or(Some((i, alive, timeout)));
                            continue;
                        }
                    },
                };
                limit = limit.min(own);
            }
            let Some((i, alive, timeout)) = closed else {
                self.limit = limit;
                return Ok(());
            };
            let held = &self.held[i];
            let patience = patience.get_or_insert_with(|| {
                // Relaxed: a counter that only the writer writes.
                let waits = held.file.load(gate::place::WAITS, Ordering::Relaxed);
                held.file.store(gate::place::WAITS, waits + 1, Ordering::Relaxed);
                DeadlineWaiter::new(WaitStrategy::Balanced, timeout)
            });
            if !patience.wait() {
                let position = held.reader_state().1;
                return Err(Error::Gated { reader: held.gate.reader.clone(), position, alive });
            }
        }
        unreachable!("a wait ends with its timeout")
    }

    /// Takes away the files that nobody needs.
    pub fn close(&self, paths: &TapePaths, tape: TapeId) -> Result<()> {
        // A required reader's place outlives the writer; the others start afresh.
        tidy(paths, tape, |name| self.held.iter().any(|held| held.gate.required && held.gate.reader == name))
    }

    /// How they are, in the order in which they were declared.
    pub fn statuses(&self) -> Vec<GateStatus> {
        let standing = |held: &HeldGate| GateStatus {
            reader: held.gate.reader.clone(),
            position: held.reader_state().1,
            alive: held.file.is_alive(),
            dropped: held.file.dropped(),
            waits: held.file.load(gate::place::WAITS, Ordering::Relaxed),
        };
        self.held.iter().map(standing).collect()
    }
}

impl Drop for GateSet {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        for held in &self.held {
            // Release: pairs with the Acquire in `GateHandle::is_heeded`.
            held.file.store(gate::place::HEEDED, 0, Ordering::Release);
        }
    }
}

/// Rounds of waiting between two looks whether the reader is alive, which ask the system.
const PROBE: u32 = 256;

impl HeldGate {
    /// The number of the reader's coming or going, and where it is on this tape.
    fn reader_state(&self) -> (u64, Position) {
        let (came, position) = gate::reader_state(&self.file);
        match self.rewound {
            Some((before, end)) if before == came => (came, position.min(end)),
            _ => (came, position),
        }
    }

    /// Up to where the writer may go; or that the gate is closed, and whether its reader is alive.
    fn limit(&mut self, end: Position, bytes: u64, probe: bool) -> std::result::Result<Position, bool> {
        let (came, position) = self.reader_state();
        // A look at the latest after as much as it may be ahead, to find a reader that has come.
        let unheld = Position(end.0.saturating_add(self.gate.ahead_bytes.max(bytes)));
        let here = came % 2 == 1 && self.dead != Some(came);
        if !here && !self.gate.required {
            return Ok(unheld);
        }
        if here && self.heeded != came {
            self.heeded = came;
            // Release: pairs with the Acquire in `GateHandle::is_heeded`.
            self.file.store(gate::place::HEEDED, came, Ordering::Release);
        }
        let limit = gate::limit(position, end, bytes, self.gate.ahead_bytes);
        if end.plus(bytes) <= limit {
            return Ok(limit);
        }
        if here && probe && !self.file.is_alive() {
            self.dead = Some(came);
            if !self.gate.required {
                return Ok(unheld);
            }
        }
        Err(here && self.dead != Some(came))
    }
}

/// Takes a gate back to the tape's `end` where its reader has been beyond it. Nobody there: its word is set. A reader that
/// is there owns the word, and gives its coming and the end.
fn rewind(file: &GateFile, end: Position) -> Option<(u64, Position)> {
    let (came, position) = gate::reader_state(file);
    if position <= end {
        return None;
    }
    if !lock_exclusive(&file.file).unwrap_or(false) {
        return Some((came, end));
    }
    // Under the lock of a reader: none is there, and none comes meanwhile.
    gate::advance::<{ flaw::NONE }>(file, end);
    let _ = file.file.unlock();
    None
}

/// Removes the files of gates that are not to be kept and that no reader holds.
fn tidy(paths: &TapePaths, tape: TapeId, keep: impl Fn(&str) -> bool) -> Result<()> {
    let folder = folder(paths);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).with_context("list", &folder),
    };
    for entry in entries {
        let entry = entry.with_context("list", &folder)?;
        let name = entry.file_name();
        if name.to_str().is_some_and(&keep) {
            continue;
        }
        // Left by a writer that died while it made a gate; only the holder of the writer's lock makes them.
        if entry.path().extension().is_some_and(|extension| extension == UNFINISHED) {
            remove(&entry.path())?;
            continue;
        }
        // A file that is no gate of this tape stays.
        if let Ok(Some(file)) = GateFile::open(&entry.path(), tape) {
            file.store(gate::place::HEEDED, 0, Ordering::Release);
            // Removed under the lock: a reader that attaches meanwhile finds a file without a name, and tries again.
            if lock_exclusive(&file.file).unwrap_or(false) {
                remove(&file.path)?;
                let _ = file.file.unlock();
            }
        }
    }
    // A folder that is not empty belongs to somebody and stays.
    let _ = fs::remove_dir(&folder);
    Ok(())
}
