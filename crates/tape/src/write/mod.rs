//! Onto the tape: the one writer with its claims and helper threads, publications, and recovery, with which each
//! writer begins.

pub(crate) mod adopt;
pub(crate) mod backing;
pub(crate) mod claim;
mod cut;
pub(crate) mod fork;
pub(crate) mod hot;
pub(crate) mod keeper;
pub(crate) mod options;
mod past;
pub(crate) mod place;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod shared;
pub(crate) mod writer;

pub use adopt::{HotLeftover, adopt_hot, forget_hot, hot_leftovers};
pub use claim::Claim;
pub use options::{Backing, Options, RecorderPlace};
pub use place::Helpers;
pub use publish::{Batch, Draft, Publication};
pub use recover::Recovery;
pub use writer::Writer;
