//! What is kept of a tape: retention and who applies it, and the clocks it believes.

pub(crate) mod clock;
pub(crate) mod clock_monitor;
pub(crate) mod eligibility;
pub(crate) mod enforce;

pub use clock::{ClockReading, ClockSource};
pub use eligibility::{RemovalHook, RemovalOptions};
pub use enforce::{RemovalReport, retain, retention_warning};
