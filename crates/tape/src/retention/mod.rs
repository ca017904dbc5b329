//! Retention of a tape: its limits, who applies them, and the clocks they rely on.

pub(crate) mod clock;
pub(crate) mod clock_monitor;
pub(crate) mod eligibility;
pub(crate) mod enforce;

pub use clock::{ClockReading, ClockSource};
pub use eligibility::{RemovalHook, RemovalOptions};
pub use enforce::{RemovalReport, retain, retention_warning};
