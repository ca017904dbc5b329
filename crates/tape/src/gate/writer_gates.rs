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

/// The gates of a writer, and the position up to which it may go without a look at them.
#[derive(Debug)]
pub(crate) struct GateSet {
    /// The end may go up to here without another look.
    checked_limit: Position,
    gates: Vec<HeldGate>,
    /// The process of the writer; a child that was forked shares the files and must leave them.
    pid: u32,
}

#[derive(Debug)]
struct HeldGate {
    gate: Gate,
    file: GateFile,
    /// The attachment that the writer last confirmed to its reader.
    heeded_attachment: u64,
    /// The coming whose reader was found dead.
    dead: Option<u64>,
    /// A reader that attached before the tape was cut back, and the position of the cut: later frames are no longer on
    /// the tape. The reader counts as being at the cut until it attaches again.
    rewound: Option<(u64, Position)>,
}

impl GateSet {
    /// Opens or makes the gates of a tape that ends at `end`, and removes gates that are no longer declared.
    pub fn open(paths: &TapePaths, tape: TapeId, end: Position, gates: &[Gate]) -> Result<Self> {
        for (i, gate) in gates.iter().enumerate() {
            check_name(&gate.reader)?;
            if gates[..i].iter().any(|earlier_gate| earlier_gate.reader == gate.reader) {
                return Err(Error::Option("two gates have the same name"));
            }
            if gate.ahead_bytes < LINE as u64 {
                return Err(Error::Option("ahead_bytes of a gate is at least a line, 64"));
            }
        }
        let folder = folder(paths);
        remove_stale_gates(paths, tape, |name| gates.iter().any(|gate| gate.reader == name))?;
        let mut held_gates = Vec::new();
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
            held_gates.push(HeldGate { gate: gate.clone(), file, heeded_attachment: 0, dead: None, rewound });
        }
        let limit = Position(if held_gates.is_empty() { u64::MAX } else { 0 });
        Ok(Self { checked_limit: limit, gates: held_gates, pid: std::process::id() })
    }

    /// Returns the position up to which a writer may go without looking at the gates.
    pub fn allowed_end(&self) -> Position {
        self.checked_limit
    }

    /// Lets a writer at `end` append `bytes`, including `open` bytes that already wait in a batch. Fails if a gate
    /// forbids it.
    #[inline]
    pub fn admit_append(&mut self, end: Position, bytes: u64, open: u64) -> Result<()> {
        if end.plus(bytes) <= self.checked_limit { Ok(()) } else { self.wait_for_gates(end, bytes, open) }
    }

    #[cold]
    fn wait_for_gates(&mut self, end: Position, bytes: u64, open: u64) -> Result<()> {
        let mut patience: Option<DeadlineWaiter> = None;
        for round in 0u32.. {
            let mut limit = Position(u64::MAX);
            let mut closed = None;
            for (i, held_gate) in self.gates.iter_mut().enumerate() {
                let gate_limit = match held_gate.limit(end, bytes, round.is_multiple_of(PROBE)) {
                    Ok(position_limit) => position_limit,
                    Err(alive) => match held_gate.gate.policy {
                        GatePolicy::Drop => {
                            gate::drop_at::<{ flaw::NONE }>(&held_gate.file, end, bytes - open);
                            let dropped = held_gate.file.dropped().count;
                            let reader = held_gate.gate.reader.clone();
                            return Err(Error::Dropped { reader, position: end, dropped });
                        }
                        GatePolicy::Wait { timeout } => {
                            closed = closed.or(Some((i, alive, timeout)));
                            continue;
                        }
                    },
                };
                limit = limit.min(gate_limit);
            }
            let Some((i, alive, timeout)) = closed else {
                self.checked_limit = limit;
                return Ok(());
            };
            let closed_gate = &self.gates[i];
            let patience = patience.get_or_insert_with(|| {
                // Relaxed: a counter that only the writer writes.
                let waits = closed_gate.file.load(gate::place::WAITS, Ordering::Relaxed);
                closed_gate.file.store(gate::place::WAITS, waits + 1, Ordering::Relaxed);
                DeadlineWaiter::new(WaitStrategy::Balanced, timeout)
            });
            if !patience.wait_once() {
                let position = closed_gate.reader_state().1;
                return Err(Error::Gated { reader: closed_gate.gate.reader.clone(), position, alive });
            }
        }
        unreachable!("a wait ends with its timeout")
    }

    /// Removes the gate files that are no longer needed.
    pub fn close(&self, paths: &TapePaths, tape: TapeId) -> Result<()> {
        // A required reader's place outlives the writer; the others start afresh.
        remove_stale_gates(paths, tape, |name| {
            self.gates
                .iter()
                .any(|held_gate| held_gate.gate.holds_when_absent && held_gate.gate.reader == name)
        })
    }

    /// Returns the state of each gate, in the order in which the gates were declared.
    pub fn statuses(&self) -> Vec<GateStatus> {
        let standing = |held_gate: &HeldGate| GateStatus {
            reader: held_gate.gate.reader.clone(),
            position: held_gate.reader_state().1,
            alive: held_gate.file.is_alive(),
            drops: held_gate.file.dropped(),
            wait_count: held_gate.file.load(gate::place::WAITS, Ordering::Relaxed),
        };
        self.gates.iter().map(standing).collect()
    }
}

impl Drop for GateSet {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        for held_gate in &self.gates {
            // Release: pairs with the Acquire in `GateHandle::is_heeded`.
            held_gate.file.store(gate::place::HEEDED, 0, Ordering::Release);
        }
    }
}

/// Rounds of waiting between two looks whether the reader is alive, which ask the system.
const PROBE: u32 = 256;

impl HeldGate {
    /// Returns the number of the reader's last attachment or detachment, and its position on this tape.
    fn reader_state(&self) -> (u64, Position) {
        let (came, position) = gate::reader_state(&self.file);
        match self.rewound {
            Some((before, end)) if before == came => (came, position.min(end)),
            _ => (came, position),
        }
    }

    /// Returns the position up to which the writer may go. If the gate is closed, the error says whether its reader is
    /// alive.
    fn limit(
        &mut self,
        end: Position,
        bytes: u64,
        probes_reader: bool,
    ) -> std::result::Result<Position, bool> {
        let (came, position) = self.reader_state();
        // A look at the latest after as much as it may be ahead, to find a reader that has come.
        let unheld = Position(end.0.saturating_add(self.gate.ahead_bytes.max(bytes)));
        let is_here = came % 2 == 1 && self.dead != Some(came);
        if !is_here && !self.gate.holds_when_absent {
            return Ok(unheld);
        }
        if is_here && self.heeded_attachment != came {
            self.heeded_attachment = came;
            // Release: pairs with the Acquire in `GateHandle::is_heeded`.
            self.file.store(gate::place::HEEDED, came, Ordering::Release);
        }
        let limit = gate::writer_limit(position, end, bytes, self.gate.ahead_bytes);
        if end.plus(bytes) <= limit {
            return Ok(limit);
        }
        if is_here && probes_reader && !self.file.is_alive() {
            self.dead = Some(came);
            if !self.gate.holds_when_absent {
                return Ok(unheld);
            }
        }
        Err(is_here && self.dead != Some(came))
    }
}

/// Sets a gate back to the tape's `end` if its reader was beyond it. Sets the reader's word if no reader is attached.
/// An attached reader owns the word: then returns its attachment number and the end.
fn rewind(file: &GateFile, end: Position) -> Option<(u64, Position)> {
    let (came, position) = gate::reader_state(file);
    if position <= end {
        return None;
    }
    if !lock_exclusive(&file.file).unwrap_or(false) {
        return Some((came, end));
    }
    // The reader's lock is held: no reader is attached, and none can attach meanwhile.
    gate::advance::<{ flaw::NONE }>(file, end);
    let _ = file.file.unlock();
    None
}

/// Removes the files of gates that are not to be kept and that no reader holds.
fn remove_stale_gates(paths: &TapePaths, tape: TapeId, keep: impl Fn(&str) -> bool) -> Result<()> {
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
    // A folder that is not empty is in use and stays.
    let _ = fs::remove_dir(&folder);
    Ok(())
}
