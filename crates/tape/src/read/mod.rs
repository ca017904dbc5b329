//! From the tape: readers, subscriptions with a name, and how far they are behind.

pub(crate) mod damage;
pub(crate) mod figures;
mod lost_definitions;
pub(crate) mod pace;
pub(crate) mod reader;
pub(crate) mod span_checks;
pub(crate) mod subscribe;

pub use damage::{DamagedPart, DamagedParts, ReadOptions, UnverifiedBytes};
pub use figures::{ReaderLag, RetentionLoss, RewindTotals};
pub use lost_definitions::LostDefinitions;
pub use reader::{Frame, FrameSlice, Reader, SeekOutcome, StartPosition, TimeRange};
pub use subscribe::Subscription;
