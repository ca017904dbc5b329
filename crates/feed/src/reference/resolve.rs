//! Names of instruments on their way to the tape: by reference data, or as they are.
//!
//! Which of both is a type and not a question: what decodes a feed without reference data has no instruction for it.

use super::{Day, Reference, day_of};
use crate::block::names::Names;
use std::sync::Arc;
use unitape_model::{NameKind, NameResolver, Refusal, UnixNanos};

/// How the names of instruments get their ids.
pub trait Instruments {
    /// Whether venue and time of an event have a say in it.
    const BY_REFERENCE: bool;

    /// The names that follow are of an event of this time; `venue` is where its symbols hold.
    fn at(&mut self, venue: Option<&[u8]>, ts: UnixNanos);

    /// What gives the ids.
    fn over<'n>(&'n mut self, names: &'n mut Names<'_>) -> impl NameResolver + 'n;

    /// Whether a name was not found since this was asked last.
    fn missed(&mut self) -> bool;
}

/// Names are those of the tape.
#[derive(Clone, Copy, Debug)]
pub struct AsTheyAre;

/// Names are looked up in reference data.
#[derive(Debug)]
pub struct ByReference {
    reference: Arc<Reference>,
    /// The venue of the event in hand; empty for none.
    venue: Vec<u8>,
    day: Day,
    missed: bool,
}

impl ByReference {
    /// By these data.
    pub fn new(reference: Arc<Reference>) -> Self {
        Self { reference, venue: Vec::new(), day: 0, missed: false }
    }
}

impl Instruments for AsTheyAre {
    const BY_REFERENCE: bool = false;

    #[inline(always)]
    fn at(&mut self, _venue: Option<&[u8]>, _ts: UnixNanos) {}

    #[inline(always)]
    fn over<'n>(&'n mut self, names: &'n mut Names<'_>) -> impl NameResolver + 'n {
        Plain(names)
    }

    #[inline(always)]
    fn missed(&mut self) -> bool {
        false
    }
}

impl Instruments for ByReference {
    const BY_REFERENCE: bool = true;

    fn at(&mut self, venue: Option<&[u8]>, ts: UnixNanos) {
        self.venue.clear();
        self.venue.extend_from_slice(venue.unwrap_or_default());
        self.day = day_of(ts);
    }

    fn over<'n>(&'n mut self, names: &'n mut Names<'_>) -> impl NameResolver + 'n {
        Resolving { by: self, names }
    }

    fn missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }
}

impl<T: Instruments> Instruments for &mut T {
    const BY_REFERENCE: bool = T::BY_REFERENCE;

    fn at(&mut self, venue: Option<&[u8]>, ts: UnixNanos) {
        (**self).at(venue, ts);
    }

    fn over<'n>(&'n mut self, names: &'n mut Names<'_>) -> impl NameResolver + 'n {
        (**self).over(names)
    }

    fn missed(&mut self) -> bool {
        (**self).missed()
    }
}

struct Plain<'n, 'b>(&'n mut Names<'b>);

impl NameResolver for Plain<'_, '_> {
    #[inline(always)]
    fn resolve(&mut self, dict: NameKind, name: &[u8], at: usize) -> Result<u32, Refusal> {
        self.0.resolve(dict, name, at)
    }
}

struct Resolving<'n, 'b> {
    by: &'n mut ByReference,
    names: &'n mut Names<'b>,
}

impl NameResolver for Resolving<'_, '_> {
    fn resolve(&mut self, dict: NameKind, name: &[u8], at: usize) -> Result<u32, Refusal> {
        if dict != NameKind::Instrument {
            return self.names.resolve(dict, name, at);
        }
        let ByReference { reference, venue, day, missed } = &mut *self.by;
        let venue = Some(&venue[..]).filter(|v| !v.is_empty());
        match reference.find(venue, name, *day) {
            Some(instrument) => self.names.resolve(dict, instrument.as_bytes(), at),
            None if reference.is_strict() => Err(Refusal::UnknownInstrument),
            None => {
                *missed = true;
                self.names.resolve(dict, name, at)
            }
        }
    }
}
