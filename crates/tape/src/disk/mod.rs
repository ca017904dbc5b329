//! What stands on the disk and in shared memory, and how it is touched: names and formats, mapped segments, the
//! state page, locks and cursors, the dictionary log, and every system call that changes something.

pub(crate) mod again;
pub(crate) mod definitions;
#[cfg(feature = "faults")]
pub mod faults;
pub(crate) mod frames;
pub(crate) mod layout;
pub(crate) mod live;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod page;
pub(crate) mod run;
pub(crate) mod sys;

pub use definitions::Definitions;
pub use layout::{CHECKSUM_SPAN, FORMAT_VERSION, HEADER_PAGE, Meta, SEGMENT_BYTES_MIN, TapeId};
pub use run::Cursor;
