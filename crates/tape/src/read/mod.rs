//! From the tape: readers, subscriptions with a name, how far they are behind, and the pages ahead of them.

pub(crate) mod ahead;
pub(crate) mod lag;
mod pace;
pub(crate) mod reader;
pub(crate) mod subscribe;

pub use lag::{Lag, Skipped};
pub use reader::{Frame, Reader, Run, Start};
pub use subscribe::Subscription;
