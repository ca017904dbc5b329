//! The twin's handling of events about whole listings.

use super::fields::Fields;
use super::{Listing, NOWHERE, Naive, Said};
use crate::fault::BookFault;
use crate::value::{Basis, SessionPhase};
use unitape_model::{Event, EventField, InstrumentId, flags};

impl Naive {
    pub(super) fn listing(&mut self, venue: u16, instrument: InstrumentId) -> &mut Listing {
        let found = self.listings.iter().position(|l| (l.venue, l.instrument) == (venue, instrument));
        let at = found.unwrap_or_else(|| {
            let about = |t: &&(u16, InstrumentId, Said)| {
                (t.0 == 0 || t.0 == venue) && (t.1 == InstrumentId::NONE || t.1 == instrument)
            };
            let mut new = Listing { venue, instrument, ..Listing::default() };
            // As if it had been there.
            for (_, _, said) in self.statements.iter().filter(about) {
                match *said {
                    Said::Phase(phase) => {
                        new.phase = phase;
                        new.halted &= phase == SessionPhase::Halt;
                    }
                    Said::Stale => new.lost = [Some(NOWHERE); 3],
                    Said::Recovered | Said::Restarted => new.lost = [None; 3],
                    Said::Halted(halted) => new.halted = halted,
                }
            }
            self.listings.push(new);
            self.listings.len() - 1
        });
        &mut self.listings[at]
    }

    pub(super) fn on_session(&mut self, event: &Event<'_>) {
        self.now = self.now.max(event.ts_event().0);
        let Some(phase) = Fields(event).text(EventField::Phase).and_then(|p| SessionPhase::from_name(&p))
        else {
            return;
        };
        let (venue, instrument) = (event.venue(), event.instrument());
        if venue != 0 && instrument != InstrumentId::NONE {
            let late = event.header().flags() & flags::LATE != 0;
            let (source, offset) = (event.source(), event.offset());
            let listing = self.listing(venue, instrument);
            if late && source == listing.source.0 && offset < listing.source.1 {
                return;
            }
            if !late {
                listing.source = (source, offset);
            }
        } else {
            let of = |t: &&(u16, InstrumentId, Said)| (t.0, t.1) == (venue, instrument);
            let before = self.statements.iter().rev().filter(of).find_map(|t| match t.2 {
                Said::Phase(phase) => Some(phase),
                _ => None,
            });
            let reopens = before == Some(SessionPhase::Close) && phase != SessionPhase::Close;
            if reopens {
                self.statements.push((venue, instrument, Said::Recovered));
                if instrument == InstrumentId::NONE {
                    self.unnamed = 0;
                    self.listings.iter_mut().for_each(|l| l.cleared = 0);
                }
            }
            self.statements.push((venue, instrument, Said::Phase(phase)));
        }
        let unnamed = self.unnamed;
        for l in self.about(venue, instrument) {
            l.end_matching();
            l.halted &= phase == SessionPhase::Halt;
            if std::mem::replace(&mut l.phase, phase) == SessionPhase::Close && phase != SessionPhase::Close {
                l.clear();
                l.cleared = unnamed;
            }
        }
    }

    fn about(&mut self, venue: u16, instrument: InstrumentId) -> impl Iterator<Item = &mut Listing> {
        let of = move |l: &&mut Listing| {
            (venue == 0 || venue == l.venue)
                && (instrument == InstrumentId::NONE || instrument == l.instrument)
        };
        self.listings.iter_mut().filter(of)
    }

    pub(super) fn on_status(&mut self, event: &Event<'_>) {
        let said = match Fields(event).text(EventField::State).as_deref() {
            Some("stale") => Said::Stale,
            Some("recovered") => Said::Recovered,
            Some("restarted") => Said::Restarted,
            Some("halted" | "paused" | "opening_delay" | "no_open" | "closed") => Said::Halted(true),
            Some("trading" | "resumed") => Said::Halted(false),
            _ => return,
        };
        self.now = self.now.max(event.ts_event().0);
        let (venue, instrument) = (event.venue(), event.instrument());
        let known = |l: &Listing| (l.venue, l.instrument) == (venue, instrument);
        let (place, number) = ((event.source(), event.offset()), self.number);
        if venue != 0 && instrument != InstrumentId::NONE && self.listings.iter().any(known) {
            let late = event.header().flags() & flags::LATE != 0;
            let listing = self.listing(venue, instrument);
            if late && place.0 == listing.source.0 && place.1 < listing.source.1 {
                listing.faults.count(BookFault::Late);
                return;
            }
            if !late {
                listing.source = place;
            }
        } else {
            self.statements.push((venue, instrument, said));
            if instrument == InstrumentId::NONE && matches!(said, Said::Recovered | Said::Restarted) {
                self.unnamed = 0;
                self.listings.iter_mut().for_each(|l| l.cleared = 0);
            }
        }
        let unnamed = self.unnamed;
        for l in self.about(venue, instrument) {
            match said {
                Said::Stale => (l.lost, l.bbo_lost) = ([Some(place); 3], number),
                Said::Recovered | Said::Restarted => {
                    if said == Said::Restarted {
                        l.clear();
                    }
                    (l.lost, l.cleared) = ([None; 3], unnamed);
                    l.stale[Basis::Orders as usize] = false;
                }
                Said::Halted(halted) => {
                    l.halted = halted;
                    l.end_matching();
                }
                Said::Phase(_) => {}
            }
        }
    }
}
