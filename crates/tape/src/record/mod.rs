//! Behind the writer: the recorder, its copy of hot segments, its flushes, and what is durable by them.

pub(crate) mod copy;
pub(crate) mod durable;
pub(crate) mod flush;
pub(crate) mod follow;
mod piece;
mod porter;
pub(crate) mod sums;

pub use durable::{Durability, durability_warning};
pub use flush::Sync;
pub use follow::record;
