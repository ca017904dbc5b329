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

mod message;
mod process;
mod stream;
mod trips;

use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::measure::pin;

pub use message::{BenchFrameGenerator, payload_of};
pub use stream::{StreamMeasurement, one_way, sustained};
pub use trips::{SendSchedule, raw_round_trips, raw_round_trips_at, round_trips, round_trips_at};

/// Makes the command that runs [`peer`] with these arguments in a process of its own.
pub type PeerCommand<'a> = &'a dyn Fn(&[String]) -> Command;

/// Waits until the helper threads of tapes just opened have done their work ahead, as in a tape that has been open for
/// a moment. The measurement does not include the start.
pub fn wait_for_helpers(options: &crate::WriterOptions) {
    std::thread::sleep(std::time::Duration::from_millis(200 + 4 * (options.segment_bytes >> 20)));
}

/// Runs the second process. Call it with the arguments that [`PeerCommand`] was given.
///
/// # Errors
/// Fails if the arguments are unknown, or at an error of the tape.
pub fn peer(arguments: &[String]) -> Result<()> {
    let arguments = process::PeerArguments(arguments);
    match arguments.text(0)? {
        "raw" => trips::answer_raw(Path::new(arguments.text(1)?), arguments.number(2)?),
        "echo" => trips::echo(&arguments),
        "drain" => stream::drain(&arguments),
        _ => Err(Error::Option("the peer does not know this measurement")),
    }
}
