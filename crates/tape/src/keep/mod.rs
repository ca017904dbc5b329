//! What is kept of a tape: retention and who applies it, and the clocks it believes.

pub(crate) mod clock;
pub(crate) mod retention;
pub(crate) mod retire;
pub(crate) mod ruler;

pub use clock::{Clock, Now};
pub use retention::{BeforeRemoval, Removal};
pub use retire::{Removed, retain, retention_warning};
