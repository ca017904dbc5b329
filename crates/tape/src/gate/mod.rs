//! Gates: a critical reader that the writer must not leave behind. Never by default.
//!
//! ```text
//!             position (the reader's word)      end            limit = position + ahead_bytes
//!   ──────────────┼──────────────────────────────┼───────────────────────┼──────────▶
//!                 └──────── not dealt with ──────┘   may be appended     └ wait, or drop and count
//! ```
//!
//! The writer declares its gates when it opens ([`crate::WriterOptions::gates`]) and makes a file for each, `run/gates/NAME`.
//! A reader attaches to one by name, says how far it has come as it goes, and holds a lock on the file, so that its
//! death is seen. The writer compares its end with one number; only when it reaches that does it look at the gates.
//!
//! When the reader is not there:
//! - It never came, or has detached: the gate holds nobody up, unless it is `required`.
//! - It died: as above, as soon as the writer would be held up.
//! - It is alive and does not move: the policy, wait or drop.
//! - It comes (again): the writer heeds it at the latest after `ahead_bytes` more ([`GateHandle::is_heeded`]).
//! - It has dealt with more than the tape has, because the tape was cut back: it counts as being at the cut until it
//!   says that it went back ([`GateHandle::rewind`]) or attaches again.
//! - The gate's file is of another tape, or damaged: opening, or attaching, is refused and says so.

mod file;
mod handle;
mod writer_gates;

use std::time::Duration;

use unitape_model::Position;

pub use handle::GateHandle;
pub(crate) use writer_gates::GateSet;

/// A gate as the writer declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Name of the reader: 1 to 64 letters, digits, `-` or `_`.
    pub reader: String,
    /// How far the writer may be ahead of what the reader has dealt with. A unit that is longer than this is
    /// appended when the reader has dealt with everything before it.
    pub ahead_bytes: u64,
    /// The writer's action when it would be further ahead.
    pub policy: GatePolicy,
    /// Whether the gate holds the writer up also while the reader is not there, from where the reader was last
    /// (from the tape's end when the gate is made).
    pub required: bool,
}

/// The action of a writer when a gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatePolicy {
    /// Waits so long for the reader, then gives [`crate::Error::Gated`]; nothing was appended then.
    Wait {
        /// How long.
        timeout: Duration,
    },
    /// Gives [`crate::Error::Dropped`] at once: the unit is not appended, for nobody, and counted in the writer and
    /// in the gate's file.
    Drop,
}

/// Units and bytes dropped at a gate since its file was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateDrops {
    /// How many appends, messages or claims were refused.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Where the first of them would have stood.
    pub first: Position,
    /// Where the last of them would have stood.
    pub last: Position,
}

/// The present state of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateStatus {
    /// Name of the reader.
    pub reader: String,
    /// The reader has dealt with everything before this.
    pub position: Position,
    /// Whether a live reader is attached.
    pub alive: bool,
    /// The drops at this gate.
    pub dropped: GateDrops,
    /// How often the writer waited.
    pub waits: u64,
}
