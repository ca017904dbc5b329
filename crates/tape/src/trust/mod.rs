//! What of a tape may be believed: its frames and checksums are compared, and frames are never changed.
//!
//! ```text
//!  span ◀── segment_sums ◀── marks ◀── beyond
//!                 survey ◀───┘
//! ```

pub(crate) mod beyond;
pub(crate) mod marks;
pub(crate) mod segment_sums;
pub(crate) mod span;
pub(crate) mod survey;
