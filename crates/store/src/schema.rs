//! Which schema of the store each kind of event is kept under.

use std::fmt;

use unitape_model::{EventKind, RowSchema};

/// A schema of the store: a directory of its own in each day. Names follow the Databento convention where it has
/// one; every kind of event has exactly one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TickSchema {
    /// Orders by id, and their changes: `order_new`, `order_amend`, `order_cancel`, `exec`.
    Mbo = 0,
    /// Levels of a book by price: `level`.
    Mbp = 1,
    /// Best bid and offer: `bbo`.
    Bbo = 2,
    /// Public prints: `trade`.
    Trades = 3,
    /// Quotes of venues and banks: `quote`.
    Quotes = 4,
    /// Definitions of instruments: `ref`.
    Definition = 5,
    /// Trading status and phases: `status`, `session`.
    Status = 6,
    /// Levels and prices without trades: `index`, `ref_px`.
    Statistics = 7,
    /// Client orders before they are in the market, and the results of quotes: `order_recv`, `parent`, `quote_reject`,
    /// `deal`, `decision`.
    Orders = 8,
    /// Parties, their holdings and lists: `party`, `position`, `list`.
    Reference = 9,
    /// `news`.
    News = 10,
    /// Messages between people: `comm`.
    Comms = 11,
    /// Money: `payment`, `statement`.
    Payments = 12,
    /// Events that the watch, the breakers and analysts wrote: `alert`, `control`, `case`.
    Alerts = 13,
    /// Messages that could not become events: `quarantine`.
    Quarantine = 14,
    /// `clock`.
    Clock = 15,
}

impl TickSchema {
    /// All of them, by number.
    pub const ALL: [Self; 16] = [
        Self::Mbo,
        Self::Mbp,
        Self::Bbo,
        Self::Trades,
        Self::Quotes,
        Self::Definition,
        Self::Status,
        Self::Statistics,
        Self::Orders,
        Self::Reference,
        Self::News,
        Self::Comms,
        Self::Payments,
        Self::Alerts,
        Self::Quarantine,
        Self::Clock,
    ];

    /// Returns the schema that keeps events of this kind. Returns `None` for bookkeeping, which is no event.
    pub const fn for_kind(kind: EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec => {
                Self::Mbo
            }
            EventKind::Level => Self::Mbp,
            EventKind::Bbo => Self::Bbo,
            EventKind::Trade => Self::Trades,
            EventKind::Quote => Self::Quotes,
            EventKind::Ref => Self::Definition,
            EventKind::Status | EventKind::Session => Self::Status,
            EventKind::Index | EventKind::RefPx => Self::Statistics,
            EventKind::OrderRecv
            | EventKind::Parent
            | EventKind::QuoteReject
            | EventKind::Deal
            | EventKind::Decision => Self::Orders,
            EventKind::Party | EventKind::Position | EventKind::List => Self::Reference,
            EventKind::News => Self::News,
            EventKind::Comm => Self::Comms,
            EventKind::Payment | EventKind::Statement => Self::Payments,
            EventKind::Alert | EventKind::Control | EventKind::Case => Self::Alerts,
            EventKind::Quarantine => Self::Quarantine,
            EventKind::Clock => Self::Clock,
            EventKind::Define | EventKind::Source | EventKind::Progress => return None,
        })
    }

    /// Returns the word for the schema. The command line, the manifest and the name of the directory use it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mbo => "mbo",
            Self::Mbp => "mbp",
            Self::Bbo => "bbo",
            Self::Trades => "trades",
            Self::Quotes => "quotes",
            Self::Definition => "definition",
            Self::Status => "status",
            Self::Statistics => "statistics",
            Self::Orders => "orders",
            Self::Reference => "reference",
            Self::News => "news",
            Self::Comms => "comms",
            Self::Payments => "payments",
            Self::Alerts => "alerts",
            Self::Quarantine => "quarantine",
            Self::Clock => "clock",
        }
    }

    /// Finds the schema with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Returns the columns of its rows, or `None` if it has only events so far.
    pub const fn row_schema(self) -> Option<RowSchema> {
        match self {
            Self::Bbo => Some(RowSchema::Bbo),
            Self::Trades => Some(RowSchema::Trades),
            _ => None,
        }
    }

    /// Returns the event kinds that the schema keeps.
    pub fn kinds(self) -> impl Iterator<Item = EventKind> {
        EventKind::EVENTS.into_iter().filter(move |k| Self::for_kind(*k) == Some(self))
    }
}

impl fmt::Display for TickSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a kind has no schema, because every seal would drop it unnoticed.
    #[test]
    fn every_kind_has_one_home_and_every_home_has_a_kind() {
        for kind in EventKind::EVENTS {
            let homes = TickSchema::ALL.into_iter().filter(|s| s.kinds().any(|k| k == kind)).count();
            assert_eq!(homes, 1, "{kind:?}");
        }
        for (n, schema) in TickSchema::ALL.into_iter().enumerate() {
            assert_eq!(schema as usize, n);
            assert!(schema.kinds().count() > 0, "{schema}");
            assert_eq!(TickSchema::from_name(schema.name()), Some(schema));
        }
        assert!(EventKind::META.into_iter().all(|k| TickSchema::for_kind(k).is_none()));
    }

    /// Fails if a schema with rows keeps another kind, because such an event would panic at its first column.
    #[test]
    fn a_schema_with_rows_has_the_name_and_the_one_kind_of_them() {
        for rows in RowSchema::ALL {
            let schema = TickSchema::from_name(rows.name()).unwrap();
            assert_eq!(schema.row_schema(), Some(rows));
            assert_eq!(schema.kinds().collect::<Vec<_>>(), [rows.kind()]);
        }
        let with_rows = TickSchema::ALL.into_iter().filter(|schema| schema.row_schema().is_some());
        assert_eq!(with_rows.count(), RowSchema::ALL.len());
    }
}
