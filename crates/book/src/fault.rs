//! What an event can say that cannot be: counted by book, never a panic and never an error.

/// Something that an event told of a book and that cannot be. The book does what is said here, and counts. Each
/// but [`Fault::Late`] shows that the book is not what the venue has, and makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fault {
    /// An amend, a cancel or an execution of an order that the book does not have; left out.
    UnknownOrder,
    /// A new order under the id of a live one, which it replaces at the back of the queue.
    DuplicateOrder,
    /// An execution of more than an order had left, or an amend to less than was executed; the order goes.
    NegativeLeft,
    /// A new order without a side, which is left out; or an amend or an execution that names the other side than
    /// the order, which keeps its own.
    WrongSide,
    /// A quantity that is missing, negative, zero where it cannot be, or that cannot be held exactly; left out.
    BadQuantity,
    /// A level without side or price, or at a depth that its side does not reach; left out.
    BadLevel,
    /// A change or deletion of a level that is not there: a change is taken as a new level, a deletion is left out.
    UnknownLevel,
    /// A new level where there is one; it replaces it.
    DuplicateLevel,
    /// A level by depth whose price is not between those of its neighbours; it stands where it was put.
    UnsortedLevel,
    /// An event flagged late that comes from before what the book has seen of its source; left out.
    Late,
    /// No room for one more order; left out.
    OrdersFull,
    /// No room for one more level; it is left out, or the last one for it.
    LevelsFull,
    /// A message about the instrument that went into quarantine for another reason.
    Refused,
}

impl Fault {
    /// How many there are.
    pub const COUNT: usize = 13;

    /// All of them, by number.
    pub const ALL: [Fault; Self::COUNT] = [
        Fault::UnknownOrder,
        Fault::DuplicateOrder,
        Fault::NegativeLeft,
        Fault::WrongSide,
        Fault::BadQuantity,
        Fault::BadLevel,
        Fault::UnknownLevel,
        Fault::DuplicateLevel,
        Fault::UnsortedLevel,
        Fault::Late,
        Fault::OrdersFull,
        Fault::LevelsFull,
        Fault::Refused,
    ];

    /// The word users see.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::UnknownOrder => "unknown_order",
            Fault::DuplicateOrder => "duplicate_order",
            Fault::NegativeLeft => "negative_left",
            Fault::WrongSide => "wrong_side",
            Fault::BadQuantity => "bad_quantity",
            Fault::BadLevel => "bad_level",
            Fault::UnknownLevel => "unknown_level",
            Fault::DuplicateLevel => "duplicate_level",
            Fault::UnsortedLevel => "unsorted_level",
            Fault::Late => "late",
            Fault::OrdersFull => "orders_full",
            Fault::LevelsFull => "levels_full",
            Fault::Refused => "refused",
        }
    }

    /// The fault of a message that went into quarantine for this reason.
    pub fn of_reason(reason: &str) -> Fault {
        match reason {
            "duplicate_id" => Fault::DuplicateOrder,
            _ => Self::ALL.into_iter().find(|f| f.name() == reason).unwrap_or(Fault::Refused),
        }
    }
}

/// How often each fault was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u64; Fault::COUNT]);

impl Faults {
    /// How often this one was met.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that were met, with how often.
    pub fn met(&self) -> impl Iterator<Item = (Fault, u64)> {
        Fault::ALL.into_iter().map(|f| (f, self.of(f))).filter(|(_, n)| *n > 0)
    }

    /// Counts one.
    #[cold]
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two faults in one counter would hide one behind the other.
    #[test]
    fn each_fault_has_a_counter_and_a_name_of_its_own() {
        let mut faults = Faults::default();
        for (n, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, n);
            assert!(Fault::ALL.iter().all(|f| *f == fault || f.name() != fault.name()));
            (0..=n).for_each(|_| faults.count(fault));
        }
        assert!(faults.met().map(|(_, n)| n).eq(1..=Fault::COUNT as u64));
        assert_eq!(faults.total(), (1..=Fault::COUNT as u64).sum::<u64>());
    }
}
