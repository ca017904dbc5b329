//! Gates: a critical reader that the writer must not leave behind. Never by default.
//!
//! ```text
//!             position (the reader's word)      end            limit = position + ahead_bytes
//!   ──────────────┼──────────────────────────────┼───────────────────────┼──────────▶
//!                 └──────── not dealt with ──────┘   may be appended     └ wait, or drop and count
//! ```
//!
//! The writer declares its gates when it opens ([`crate::WriterOptions::gates`]) and makes a file for each,
//! `run/gates/NAME`. A reader attaches to a gate by name, reports its position, and holds a lock on the file, so that
//! the writer can see its death. The writer compares its end with one number. It looks at the gates only when it
//! reaches that number.
//!
//! The state of the reader decides:
//! - It never attached, or has detached: the gate stops no writer, unless it is `holds_when_absent`.
//! - It died: as above, as soon as the gate would stop the writer.
//! - It is alive and does not move: the policy decides, wait or drop.
//! - It attaches (again): the writer heeds it at the latest after `ahead_bytes` more ([`GateHandle::is_heeded`]).
//! - It has processed more than the tape has, because the tape was cut back: it counts as being at the cut until it
//!   reports that it went back ([`GateHandle::rewind`]) or attaches again.
//! - The gate's file is damaged or belongs to another tape: opening, or attaching, fails and says so.

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
    /// Greatest distance of the writer before the position that the reader has reported. A longer unit is appended when
    /// the reader has processed everything before it.
    pub ahead_bytes: u64,
    /// The writer's action when it would be further ahead.
    pub policy: GatePolicy,
    /// Whether the gate holds the writer up also while the reader is not there, from where the reader was last
    /// (from the tape's end when the gate is made).
    pub holds_when_absent: bool,
}

/// The action of a writer when a gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatePolicy {
    /// Waits at most this long for the reader, then returns [`crate::Error::Gated`]; then nothing was appended.
    Wait {
        /// How long.
        timeout: Duration,
    },
    /// Returns [`crate::Error::Dropped`] at once. The unit is not appended for any reader; the writer and the gate's
    /// file count it.
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
    pub first_position: Position,
    /// Where the last of them would have stood.
    pub last_position: Position,
}

/// The present state of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateStatus {
    /// Name of the reader.
    pub reader: String,
    /// The reader has processed everything before this.
    pub position: Position,
    /// Whether a live reader is attached.
    pub alive: bool,
    /// The drops at this gate.
    pub drops: GateDrops,
    /// How often the writer waited.
    pub wait_count: u64,
}
