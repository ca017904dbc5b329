//! Behind the writer: the recorder, its copy of hot segments, its flushes, and the durable position.

pub(crate) mod copy;
mod copy_thread;
pub(crate) mod durable;
pub(crate) mod flush;
pub(crate) mod follow;
mod recorder_run;
pub(crate) mod sums;

pub use durable::{DurabilityHandle, durability_warning};
pub use flush::SyncPolicy;
pub use follow::record;
