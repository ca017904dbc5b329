//! Feeds that run until they are stopped: in this process, or each in one of its own.
//!
//! ```text
//!  Config ──▶ PreparedRun ──▶ run ──┬──▶ RunReport
//!                   RunControl ─────┴──▶ RunEvent, RunEvent …   to the caller, as they happen
//! ```

mod apart;
mod event;
mod reload;
mod report;
mod together;
mod watch;

pub use apart::{SegmentProcesses, run_apart};
pub use event::{EventSink, RunControl, RunEvent};
pub use report::{FailedFeed, RunReport};
pub use together::{PreparedRun, run};
