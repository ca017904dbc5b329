//! Answers: the part of a store that a query selects, for a reader who has no key of the store.
//!
//! ```text
//!  Store ──answer(query, may read?)──▶ Answer
//!                                        ├─ AnswerIndex    private: heads of blocks, leaf keys, names      ──▶ AnswerReader
//!                                        └─ SealedBlock…   where the sealed bytes lie, for anybody's eyes  ──▶ rows, events
//! ```
//!
//! The index holds the leaf keys and the names that the answer needs, and nothing of other instruments, schemas or days. A leaf
//! opens all of a class in the blocks of one instrument, schema and day, also when an hour was asked for.

mod giving;
mod reading;

pub use giving::{Answer, LeafAccess, SealedBlock};
pub use reading::{AnswerReader, BlockFetch};

use serde::{Deserialize, Serialize};
use unitape_model::{FieldClass, NameKind};

use crate::day::Day;
use crate::schema::TickSchema;

/// How much of a block is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadDepth {
    /// Market data, which rows are made of.
    Rows,
    /// All classes, which events are made of.
    Events,
}

impl ReadDepth {
    /// Returns the classes that are opened, in the order of their chunks.
    pub const fn classes(self) -> &'static [FieldClass] {
        match self {
            Self::Rows => &[FieldClass::Market],
            Self::Events => &FieldClass::ALL,
        }
    }
}

/// The private part of an answer: where its blocks belong, the keys that open them, and the names that are in them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerIndex {
    /// The generation of the store.
    pub generation: u64,
    /// The problems of the files that the answer needed.
    pub problems: Vec<String>,
    depth: ReadDepth,
    store: String,
    /// Tapes, in the order of their first seal.
    tapes: Vec<String>,
    files: Vec<AnswerFile>,
    blocks: Vec<AnswerBlock>,
    leaves: Vec<AnswerLeaf>,
    names: Vec<AnswerName>,
    /// Definitions of sources, as frames.
    sources: Vec<String>,
}

/// A file of blocks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerFile {
    day: Day,
    schema: TickSchema,
    generation: u64,
    revision: u64,
    commit: String,
    /// The tapes of its part, by their index.
    tapes: Vec<String>,
}

/// A block, in the order in which blocks are read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBlock {
    file: u32,
    offset: u64,
    /// Its header, opened.
    head: String,
}

/// A leaf and its key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLeaf {
    day: Day,
    schema: TickSchema,
    instrument: u32,
    class: u8,
    key: String,
}

impl std::fmt::Debug for AnswerLeaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AnswerLeaf({} {} {} {})", self.day, self.schema, self.instrument, self.class)
    }
}

/// A name and its token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerName {
    kind: u8,
    token: u32,
    name: String,
}

impl AnswerName {
    fn kind(&self) -> Option<NameKind> {
        NameKind::from_u8(self.kind)
    }
}
