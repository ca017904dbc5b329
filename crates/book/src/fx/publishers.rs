//! The banks and venues that quote: when each was last heard, and which controls apply to it.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A bank, a venue, or a bank at a venue.
#[derive(Clone, Debug, Default)]
pub(super) struct Publisher {
    /// Its name, or `None` if its definition is lost.
    pub name: Option<Box<str>>,
    /// Rule 7: `now` when it was last heard.
    pub heard_ns: i64,
    /// The time of its timer of silence, which may be too early: a bank that was heard since gets another one then.
    pub silence_due: Option<i64>,
    /// The books that have quotes of it, each with their number.
    pub books: HashMap<u32, u32, FxBuildHasher>,
    /// The switches of it that are off.
    pub switches_off: u32,
}

/// All publishers, by the id of the tape.
#[derive(Clone, Debug, Default)]
pub(super) struct Publishers(Vec<Publisher>);

impl Publishers {
    /// Defines the name of an id.
    pub(super) fn define_publisher(&mut self, id: u16, name: &str) {
        let index = usize::from(id);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Publisher::default);
        }
        self.0[index].name = Some(name.into());
    }

    /// Returns whether an id has a name.
    pub(super) fn is_named(&self, id: u16) -> bool {
        self.0.get(usize::from(id)).is_some_and(|publisher| publisher.name.is_some())
    }

    /// Returns the name of a publisher that is in a book.
    pub(super) fn name(&self, id: u16) -> &str {
        self.0[usize::from(id)].name.as_deref().expect("a quote without a bank is refused")
    }

    pub(super) fn get(&self, id: u16) -> &Publisher {
        &self.0[usize::from(id)]
    }

    pub(super) fn get_mut(&mut self, id: u16) -> &mut Publisher {
        &mut self.0[usize::from(id)]
    }
}

impl Publisher {
    /// Counts a quote of it that a book has now.
    pub(super) fn add_quote(&mut self, book: u32) {
        *self.books.entry(book).or_default() += 1;
    }

    /// Counts a quote of it that a book no longer has.
    pub(super) fn remove_quote(&mut self, book: u32) {
        let count = self.books.get_mut(&book).expect("the quote was counted");
        *count -= 1;
        if *count == 0 {
            self.books.remove(&book);
        }
    }
}
