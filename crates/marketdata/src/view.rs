//! A book to look at.

use unitape_book::{LevelBook, StoredLevel};
use unitape_model::Side;

/// The whole depth of an instrument, and whether it is to be trusted.
#[derive(Clone, Copy, Debug)]
pub struct BookView<'b> {
    pub(crate) book: &'b LevelBook,
    pub(crate) stale: bool,
}

impl<'b> BookView<'b> {
    /// Not to be trusted: see [`Listener::on_stale`](crate::Listener::on_stale).
    #[must_use]
    pub fn is_stale(self) -> bool {
        self.stale
    }

    /// The best level of a side.
    #[must_use]
    pub fn best(self, side: Side) -> Option<&'b StoredLevel> {
        self.book.best(side)
    }

    /// The level at a place from the best, from 1.
    #[must_use]
    pub fn level(self, side: Side, depth: usize) -> Option<&'b StoredLevel> {
        self.book.level_at(side, depth)
    }

    /// The number of levels of a side.
    #[must_use]
    pub fn depth(self, side: Side) -> usize {
        self.book.levels(side)
    }

    /// All levels of a side, the best first.
    pub fn levels(self, side: Side) -> impl ExactSizeIterator<Item = &'b StoredLevel> + Clone {
        self.book.iter(side)
    }
}
