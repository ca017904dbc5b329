//! Feeds that run until they are stopped: in this process, or each in a process of its own.
//!
//! ```text
//!  Config ──▶ PreparedRun ──▶ run ──┬──▶ RunReport
//!                   RunControl ─────┴──▶ RunEvent, RunEvent …   to the caller, as they happen
//! ```

mod event;
mod reload;
mod report;
mod segment_processes;
mod single_process;
mod watch;

pub use event::{EventSink, RunControl, RunEvent};
pub use report::{FailedFeed, RunReport};
pub use segment_processes::{SegmentProcesses, run_apart};
pub use single_process::{PreparedRun, run};
