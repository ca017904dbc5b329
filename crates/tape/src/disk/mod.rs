//! What stands on the disk and in shared memory, and how it is touched: names and formats, mapped segments, the
//! state page, locks and cursors, the dictionary log, the durable mark, and every system call that changes something.
//! It imports nothing of the folders above it.

pub(crate) mod again;
pub(crate) mod ahead;
pub(crate) mod cursor;
pub(crate) mod definitions;
pub(crate) mod durable;
pub(crate) mod end;
pub(crate) mod failure;
#[cfg(feature = "faults")]
pub mod faults;
pub(crate) mod frames;
pub(crate) mod hot;
pub(crate) mod hot_notice;
pub(crate) mod identity;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod lineage;
pub(crate) mod live;
pub(crate) mod lock;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod page;
pub(crate) mod pending_cut;
pub(crate) mod seal;
pub(crate) mod sys;

pub use cursor::Cursor;
pub use definitions::{DEFINITION_KINDS, Definitions};
pub use failure::DurabilityFailure;
pub use hot::{HotNotice, hot_notice, hot_place};
pub use layout::{CHECKSUM_SPAN, FORMAT_VERSION, HEADER_PAGE, Meta, SEGMENT_BYTES_MIN, TapeId};
pub use limits::Retention;
pub use lineage::{LineagePoint, Rewound};
