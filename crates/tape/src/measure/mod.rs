//! Measuring the tape between two pinned processes: round trips, streams, and a raw control beside them.
//!
//! ```text
//!   core 0                                   core 1
//!   measuring process ──── tape `there` ───▶ second process ([`peer`])
//!          ▲   └── tape `batch` ───────────▶   │   (only under load)
//!          └─────────────── tape `back` ───────┘
//! ```
//!
//! The second half runs in a process of its own: the caller gives a function that makes the command for it, and
//! the program started so calls [`peer`] with the arguments it was given. All numbers are those of one run; how
//! often to repeat, and what to take of the repeats, is the caller's business. Messages carry their number, and
//! both sides check it: what was lost, doubled or overtaken is an error and no figure.

pub mod disk;
mod message;
mod process;
mod stream;
mod trips;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

pub use message::{BenchFrameGenerator, payload_of};
pub use stream::{StreamMeasurement, one_way, sustained};
pub use trips::{SendSchedule, raw_round_trips, raw_round_trips_at, round_trips, round_trips_at};

/// Makes the command that runs [`peer`] with these arguments in a process of its own.
pub type PeerCommand<'a> = &'a dyn Fn(&[String]) -> Command;

/// Pins the calling thread to processor `cpu`; false where that cannot be done, or is switched off.
pub fn pin(cpu: usize) -> bool {
    // Relaxed: set once, before anything is measured.
    PINNING.load(Ordering::Relaxed) && crate::write::placement::pin_to(&[cpu])
}

/// Switches [`pin`] off or on in this process: to see what pinning gives.
pub fn set_pinning(on: bool) {
    PINNING.store(on, Ordering::Relaxed);
}

/// Waits until the helper threads of tapes just opened have made what they make ahead, as they have in a tape that
/// has been open for a moment: the beginning is not what is measured.
pub fn settle(options: &crate::WriterOptions) {
    std::thread::sleep(std::time::Duration::from_millis(200 + 4 * (options.segment_bytes >> 20)));
}

static PINNING: AtomicBool = AtomicBool::new(true);

/// Value at the given share (0 to 1) of an ascending list; zero of an empty one.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * share) as usize).copied().unwrap_or(0)
}

/// The second process: call it with the arguments that [`PeerCommand`] was given.
///
/// # Errors
/// Arguments that are none of ours, or the tape.
pub fn peer(arguments: &[String]) -> Result<()> {
    let arguments = process::PeerArguments(arguments);
    match arguments.text(0)? {
        "raw" => trips::answer_raw(Path::new(arguments.text(1)?), arguments.number(2)?),
        "echo" => trips::echo(&arguments),
        "drain" => stream::drain(&arguments),
        _ => Err(Error::Option("the peer does not know this measurement")),
    }
}
