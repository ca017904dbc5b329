//! Files on the disk and in shared memory: names and formats, mapped segments, the state page, locks and cursors, the
//! dictionary log, the durable mark, and every system call that changes something. It imports nothing of the folders
//! above it.

pub(crate) mod cursor;
pub(crate) mod definitions;
pub(crate) mod directory_identity;
pub(crate) mod durable;
pub(crate) mod end;
pub(crate) mod failure;
#[cfg(feature = "faults")]
pub mod faults;
pub(crate) mod filler;
pub(crate) mod frames;
pub(crate) mod hot;
pub(crate) mod hot_notice;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod lineage;
pub(crate) mod lock;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod origin;
pub(crate) mod pending_cut;
pub(crate) mod prefault;
pub(crate) mod seal;
pub(crate) mod segment_index;
pub(crate) mod segment_locator;
pub(crate) mod segment_pool;
pub(crate) mod state_page;
pub(crate) mod sys;

pub use cursor::Cursor;
pub use definitions::{DEFINITION_KINDS, DefinitionReader};
pub use failure::DurabilityFailure;
pub use hot::{HotNotice, hot_notice, hot_place};
pub use layout::{
    CHECKSUM_SPAN, FORMAT_VERSION, HEADER_PAGE, SEGMENT_BYTES_MIN, TapeId, TapeManifest, open_regular,
    open_regular_with,
};
pub use limits::RetentionLimits;
pub use lineage::{LineagePoint, ReaderRewind};
