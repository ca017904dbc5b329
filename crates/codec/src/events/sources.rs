//! Where events came from, by the id that they carry.

use unitape_model::NameTable;

/// A source definition, as far as lines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceName<'a> {
    /// Name of the feed.
    pub feed: &'a str,
    /// Name of the file, without its directory.
    pub file: &'a str,
    /// Bytes that are added to an event's offset.
    pub base: u64,
}

/// Looks sources up.
pub trait SourceNames {
    /// The source of this id, if it is known.
    fn source(&self, id: u32) -> Option<SourceName<'_>>;
}

/// Knows no source.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl SourceNames for NoSources {
    fn source(&self, _id: u32) -> Option<SourceName<'_>> {
        None
    }
}

impl SourceNames for NameTable {
    fn source(&self, id: u32) -> Option<SourceName<'_>> {
        NameTable::source(self, id).map(|s| SourceName { feed: &s.feed, file: &s.file, base: s.base })
    }
}
