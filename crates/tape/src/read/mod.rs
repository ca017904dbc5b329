//! From the tape: readers, subscriptions with a name, how far they are behind, and the pages ahead of them.

pub(crate) mod ahead;
pub(crate) mod damage;
pub(crate) mod lag;
mod lost_definitions;
mod pace;
pub(crate) mod reader;
pub(crate) mod rewind;
mod seek;
pub(crate) mod span_checks;
pub(crate) mod subscribe;

pub use damage::{DamagedPart, DamagedParts, ReadOptions, Unverified};
pub use lag::{Lag, Skipped};
pub use lost_definitions::LostDefinitions;
pub use reader::{Frame, Reader, Run, Start};
pub use rewind::Rewinds;
pub use subscribe::Subscription;
