//! Onto the tape: the one writer with its claims and helper threads, publications, and recovery, with which each
//! writer begins.

pub(crate) mod adopt;
pub(crate) mod backing;
pub(crate) mod claim;
mod cut;
pub(crate) mod fork;
pub(crate) mod hot;
pub(crate) mod options;
pub(crate) mod origin;
pub(crate) mod placement;
pub(crate) mod preallocator;
mod prior_state;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod shared;
pub(crate) mod writer;

pub use adopt::{OrphanHotDirectory, adopt_hot, forget_hot, hot_leftovers};
pub use claim::Claim;
pub use options::{Backing, RecorderLocation, WriterOptions};
pub use origin::{DefinitionRecord, TapeOrigin};
pub use placement::HelperThreadAffinity;
pub use publish::{FrameDraft, MessageBatch, Publication};
pub use recover::RecoveryReport;
pub use writer::Writer;
