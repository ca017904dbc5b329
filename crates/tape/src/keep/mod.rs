//! What is kept of a tape: sealing, retention and who applies it, the clocks it believes, and those it keeps it for.

pub(crate) mod clock;
pub(crate) mod keeping;
pub(crate) mod retention;
pub(crate) mod retire;
pub(crate) mod ruler;
pub(crate) mod seal;

pub use clock::{Clock, Now};
pub use keeping::{CursorStanding, Keeping, keeping};
pub use retention::{BeforeRemoval, Removal, Retention};
pub use retire::{Removed, retain, retention_warning};
