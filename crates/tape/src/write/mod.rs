//! Onto the tape: the one writer with its claims and helper threads, publications, and recovery, with which each
//! writer begins.

pub(crate) mod claim;
pub(crate) mod keeper;
pub(crate) mod options;
pub(crate) mod place;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod shared;
pub(crate) mod writer;

pub use claim::Claim;
pub use options::{Backing, Options, RecorderPlace, Sync};
pub use place::Helpers;
pub use publish::{Batch, Draft, Publication};
pub use recover::Recovery;
pub use writer::Writer;
