//! A book to look at.

use unitape_book::{LevelBook, StoredLevel};
use unitape_model::Side;

/// The whole depth of an instrument, and whether it is to be trusted.
#[derive(Clone, Copy, Debug)]
pub struct BookView<'b> {
    pub(crate) book: &'b LevelBook,
    pub(crate) is_stale: bool,
}

impl<'b> BookView<'b> {
    /// Returns whether the book cannot be trusted: see [`Listener::on_stale`](crate::Listener::on_stale).
    #[must_use]
    pub fn is_stale(self) -> bool {
        self.is_stale
    }

    /// Returns the best level of a side.
    #[must_use]
    pub fn best(self, side: Side) -> Option<&'b StoredLevel> {
        self.book.best(side)
    }

    /// Returns the level at `depth` from the best, which is 1.
    #[must_use]
    pub fn level(self, side: Side, depth: usize) -> Option<&'b StoredLevel> {
        self.book.level_at(side, depth)
    }

    /// Counts the levels of a side.
    #[must_use]
    pub fn depth(self, side: Side) -> usize {
        self.book.levels(side)
    }

    /// Iterates over all levels of a side, the best first.
    pub fn levels(self, side: Side) -> impl ExactSizeIterator<Item = &'b StoredLevel> + Clone {
        self.book.iter(side)
    }
}
