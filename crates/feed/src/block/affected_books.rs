//! The books that a message in quarantine may concern, if known.
//!
//! ```text
//!  bytes that cannot be read ───────────────────────────▶ Feed        any book of the feed
//!  a message that was read and cannot be an event ──────▶ Instrument  its instrument, at its venue where it names one
//!  a message that becomes no event of orders or prices ─▶ Nothing     no book
//! ```
//!
//! The quarantine event keeps this beside its fields: `instr` and `venue`, or `books` with the value `false`.

use unitape_model::EventKind;

/// The books that a message concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AffectedBooks {
    /// Not known: it may concern each book of the feed.
    #[default]
    Feed,
    /// This instrument.
    Instrument(String),
    /// This instrument at this venue.
    Listing(String, String),
    /// No book.
    Nothing,
}

impl AffectedBooks {
    /// Returns the book that a message with these names affects; an invalid name counts as no name.
    pub fn from_names(instrument: Option<&[u8]>, venue: Option<&[u8]>) -> Self {
        let name = |bytes: &[u8]| {
            let fits = (1..=255).contains(&bytes.len());
            fits.then(|| std::str::from_utf8(bytes).ok().map(str::to_owned)).flatten()
        };
        match (instrument.and_then(name), venue.map(name)) {
            (Some(instrument), Some(Some(venue))) => Self::Listing(instrument, venue),
            (Some(instrument), None) => Self::Instrument(instrument),
            _ => Self::Feed,
        }
    }
}

/// Returns whether events of this kind change books.
pub fn changes_books(kind: EventKind) -> bool {
    use EventKind::{Bbo, Exec, Level, OrderAmend, OrderCancel, OrderNew, Session, Status};
    matches!(kind, OrderNew | OrderAmend | OrderCancel | Exec | Bbo | Level | Session | Status)
}
