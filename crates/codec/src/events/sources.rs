//! Where events came from, by the id that they carry.

use unitape_model::DefinitionTable;

/// A source definition, as far as lines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLabel<'a> {
    /// Name of the feed.
    pub feed: &'a str,
    /// Name of the file, without its directory.
    pub file: &'a str,
    /// Bytes that are added to an event's offset.
    pub base: u64,
}

/// Looks sources up.
pub trait SourceNameLookup {
    /// Looks up a source by its id.
    fn source(&self, id: u32) -> Option<SourceLabel<'_>>;
}

/// Knows no source.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptySourceLookup;

impl SourceNameLookup for EmptySourceLookup {
    fn source(&self, _id: u32) -> Option<SourceLabel<'_>> {
        None
    }
}

impl SourceNameLookup for DefinitionTable {
    fn source(&self, id: u32) -> Option<SourceLabel<'_>> {
        DefinitionTable::source(self, id).map(|s| SourceLabel { feed: &s.feed, file: &s.file, base: s.base })
    }
}
