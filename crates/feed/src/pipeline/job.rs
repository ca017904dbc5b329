//! What the pipeline knows of a block beside what is in it.

use crate::formats::format::{Format, Sort};

/// A format with its mapping, and which one of those that a feed has had in this run.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// What the bytes are.
    pub format: Format,
    /// The same, as source definitions tell it.
    pub sort: Sort,
    /// 0 for the one that the run began with.
    pub generation: u64,
}

impl Sorted {
    /// A format as the first one of a run, or a later one.
    pub fn new(format: Format, generation: u64) -> Self {
        let sort = Sort::of(&format);
        Self { format, sort, generation }
    }
}
