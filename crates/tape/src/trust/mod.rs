//! The part of a tape that can be trusted: frames and checksums are compared, and frames are never changed.
//!
//! ```text
//!  span ◀── segment_sums ◀── marks ◀── beyond
//!                 survey ◀───┘
//! ```

pub(crate) mod durable_rebuild;
pub(crate) mod segment_prefix;
pub(crate) mod segment_sums;
pub(crate) mod span;
pub(crate) mod survey;
pub(crate) mod unsynced_tail;
