//! Impossible statements of events: counted by book, never a panic and never an error.

/// An impossible statement of an event about a book. Each variant says what the book does, and the book counts it. Each
/// fault except [`BookFault::Late`] shows that the book differs from the venue's book, and makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BookFault {
    /// An amend, a cancel or an execution of an order that the book does not have; left out.
    UnknownOrder,
    /// A new order under the id of a live one, which it replaces at the back of the queue.
    DuplicateOrder,
    /// An execution or reduction of more than the order's remaining quantity, or an amend to less than the executed
    /// quantity. The order is removed.
    NegativeLeft,
    /// A new order without a side, which is left out; or an amend or an execution that names the other side than
    /// the order, which keeps its own.
    WrongSide,
    /// A quantity that is missing, negative, zero where it cannot be zero, or not exactly representable. It is left
    /// out.
    BadQuantity,
    /// A level without side or price, or at a depth that its side does not reach; left out.
    BadLevel,
    /// A change or deletion of a level that is not there: a change is treated as a new level, a deletion is ignored.
    UnknownLevel,
    /// A new level at the price of an existing level, which it replaces.
    DuplicateLevel,
    /// A level by depth whose price is not between its neighbours' prices. It stays where it was put.
    UnsortedLevel,
    /// An event flagged late from before the last offset that the book has read of its source. It is left out.
    Late,
    /// No room for one more order; left out.
    OrdersFull,
    /// No room for one more level; it is left out, or the last one for it.
    LevelsFull,
    /// A message about the instrument that went into quarantine for another reason.
    Refused,
}

impl BookFault {
    /// The number of faults.
    pub const COUNT: usize = 13;

    /// All of them, by number.
    pub const ALL: [BookFault; Self::COUNT] = [
        BookFault::UnknownOrder,
        BookFault::DuplicateOrder,
        BookFault::NegativeLeft,
        BookFault::WrongSide,
        BookFault::BadQuantity,
        BookFault::BadLevel,
        BookFault::UnknownLevel,
        BookFault::DuplicateLevel,
        BookFault::UnsortedLevel,
        BookFault::Late,
        BookFault::OrdersFull,
        BookFault::LevelsFull,
        BookFault::Refused,
    ];

    /// Returns the word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            BookFault::UnknownOrder => "unknown_order",
            BookFault::DuplicateOrder => "duplicate_order",
            BookFault::NegativeLeft => "negative_left",
            BookFault::WrongSide => "wrong_side",
            BookFault::BadQuantity => "bad_quantity",
            BookFault::BadLevel => "bad_level",
            BookFault::UnknownLevel => "unknown_level",
            BookFault::DuplicateLevel => "duplicate_level",
            BookFault::UnsortedLevel => "unsorted_level",
            BookFault::Late => "late",
            BookFault::OrdersFull => "orders_full",
            BookFault::LevelsFull => "levels_full",
            BookFault::Refused => "refused",
        }
    }

    /// Returns the book fault for the reason of a quarantined message. A reason that names no fault gives
    /// [`BookFault::Refused`].
    pub fn from_reason(reason: &str) -> BookFault {
        match reason {
            "duplicate_id" => BookFault::DuplicateOrder,
            _ => Self::ALL.into_iter().find(|f| f.name() == reason).unwrap_or(BookFault::Refused),
        }
    }
}

/// The count of each fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookFaultCounts([u64; BookFault::COUNT]);

impl BookFaultCounts {
    /// Returns how often this fault occurred.
    pub fn count_of(&self, fault: BookFault) -> u64 {
        self.0[fault as usize]
    }

    /// Sums the counts of all faults.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the faults that occurred, with their counts.
    pub fn nonzero(&self) -> impl Iterator<Item = (BookFault, u64)> {
        BookFault::ALL.into_iter().map(|f| (f, self.count_of(f))).filter(|(_, n)| *n > 0)
    }

    /// Counts one.
    #[cold]
    pub fn count(&mut self, fault: BookFault) {
        self.0[fault as usize] += 1;
    }
}

crate::state::state!(BookFaultCounts { 0 });

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two faults share a counter, which would hide one fault behind the other.
    #[test]
    fn each_fault_has_a_counter_and_a_name_of_its_own() {
        let mut faults = BookFaultCounts::default();
        for (n, fault) in BookFault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, n);
            assert!(BookFault::ALL.iter().all(|f| *f == fault || f.name() != fault.name()));
            (0..=n).for_each(|_| faults.count(fault));
        }
        assert!(faults.nonzero().map(|(_, n)| n).eq(1..=BookFault::COUNT as u64));
        assert_eq!(faults.total(), (1..=BookFault::COUNT as u64).sum::<u64>());
    }
}
