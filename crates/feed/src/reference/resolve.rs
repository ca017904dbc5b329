//! Names of instruments on their way to the tape: by reference data, or as they are.
//!
//! A type chooses between the two at compile time: a decoder of a feed without reference data has no instruction for
//! it.

use super::{DayNumber, InstrumentMaster, day_of};
use crate::block::names::BlockNameResolver;
use std::sync::Arc;
use unitape_model::{NameKind, NameResolver, Refusal, UnixNanos};

/// The lookup that assigns ids to the names of instruments.
pub trait InstrumentLookup {
    /// Whether venue and time of an event have a say in it.
    const BY_REFERENCE: bool;

    /// Sets the time of the event whose names follow; `venue` is where its symbols are valid.
    fn set_event(&mut self, venue: Option<&[u8]>, ts: UnixNanos);

    /// Returns the resolver that assigns the ids.
    fn resolver<'n>(&'n mut self, names: &'n mut BlockNameResolver<'_>) -> impl NameResolver + 'n;

    /// Returns whether a name was not found since the last call.
    fn take_missed(&mut self) -> bool;
}

/// Looks up no reference data: names stay as the feed gives them.
#[derive(Clone, Copy, Debug)]
pub struct PlainInstruments;

/// Names are looked up in reference data.
#[derive(Debug)]
pub struct ReferenceLookup {
    reference: Arc<InstrumentMaster>,
    /// The venue of the current event; empty without one.
    venue: Vec<u8>,
    day: DayNumber,
    has_missed: bool,
}

impl ReferenceLookup {
    /// Makes a lookup in this reference data.
    pub fn new(reference: Arc<InstrumentMaster>) -> Self {
        Self { reference, venue: Vec::new(), day: 0, has_missed: false }
    }
}

impl InstrumentLookup for PlainInstruments {
    const BY_REFERENCE: bool = false;

    #[inline(always)]
    fn set_event(&mut self, _venue: Option<&[u8]>, _ts: UnixNanos) {}

    #[inline(always)]
    fn resolver<'n>(&'n mut self, names: &'n mut BlockNameResolver<'_>) -> impl NameResolver + 'n {
        PlainNameResolver(names)
    }

    #[inline(always)]
    fn take_missed(&mut self) -> bool {
        false
    }
}

impl InstrumentLookup for ReferenceLookup {
    const BY_REFERENCE: bool = true;

    fn set_event(&mut self, venue: Option<&[u8]>, ts: UnixNanos) {
        self.venue.clear();
        self.venue.extend_from_slice(venue.unwrap_or_default());
        self.day = day_of(ts);
    }

    fn resolver<'n>(&'n mut self, names: &'n mut BlockNameResolver<'_>) -> impl NameResolver + 'n {
        ReferenceResolver { lookup: self, names }
    }

    fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.has_missed)
    }
}

impl<T: InstrumentLookup> InstrumentLookup for &mut T {
    const BY_REFERENCE: bool = T::BY_REFERENCE;

    fn set_event(&mut self, venue: Option<&[u8]>, ts: UnixNanos) {
        (**self).set_event(venue, ts);
    }

    fn resolver<'n>(&'n mut self, names: &'n mut BlockNameResolver<'_>) -> impl NameResolver + 'n {
        (**self).resolver(names)
    }

    fn take_missed(&mut self) -> bool {
        (**self).take_missed()
    }
}

struct PlainNameResolver<'n, 'b>(&'n mut BlockNameResolver<'b>);

impl NameResolver for PlainNameResolver<'_, '_> {
    #[inline(always)]
    fn resolve(&mut self, dict: NameKind, name: &[u8], id_offset: usize) -> Result<u32, Refusal> {
        self.0.resolve(dict, name, id_offset)
    }

    fn take_back(
        &mut self,
        dict: NameKind,
        id: u32,
        id_offset: usize,
        name: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        self.0.take_back(dict, id, id_offset, name)
    }
}

struct ReferenceResolver<'n, 'b> {
    lookup: &'n mut ReferenceLookup,
    names: &'n mut BlockNameResolver<'b>,
}

impl NameResolver for ReferenceResolver<'_, '_> {
    fn resolve(&mut self, dict: NameKind, name: &[u8], id_offset: usize) -> Result<u32, Refusal> {
        if dict != NameKind::Instrument {
            return self.names.resolve(dict, name, id_offset);
        }
        let ReferenceLookup { reference, venue, day, has_missed: missed } = &mut *self.lookup;
        let venue = Some(&venue[..]).filter(|v| !v.is_empty());
        match reference.find(venue, name, *day) {
            Some(instrument) => self.names.resolve(dict, instrument.as_bytes(), id_offset),
            None if reference.is_strict() => Err(Refusal::UnknownInstrument),
            None => {
                *missed = true;
                self.names.resolve(dict, name, id_offset)
            }
        }
    }

    fn take_back(
        &mut self,
        dict: NameKind,
        id: u32,
        id_offset: usize,
        name: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        self.names.take_back(dict, id, id_offset, name)
    }
}
