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
        match RowSchema::for_kind(kind) {
            Some(rows) => Some(Self::ALL[rows as usize]),
            None => None,
        }
    }

    /// Returns the word for the schema. The command line, the manifest and the name of the directory use it.
    pub const fn name(self) -> &'static str {
        self.row_schema().name()
    }

    /// Finds the schema with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Returns the schema of its rows, which has the same number.
    pub const fn row_schema(self) -> RowSchema {
        RowSchema::ALL[self as usize]
    }

    /// Returns the event kinds that the schema keeps.
    pub fn kinds(self) -> impl Iterator<Item = EventKind> {
        self.row_schema().kinds().iter().copied()
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

    /// Numbers are on disk: another order of the schemas of rows would give a store's files other names.
    #[test]
    fn each_schema_has_rows_of_its_own_number() {
        for schema in TickSchema::ALL {
            assert_eq!(schema.row_schema() as usize, schema as usize);
        }
        let names = TickSchema::ALL.map(TickSchema::name).join(" ");
        assert_eq!(
            names,
            "mbo mbp bbo trades quotes definition status statistics orders reference news comms payments alerts \
             quarantine clock"
        );
    }
}
