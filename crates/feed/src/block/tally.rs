//! Counts messages by outcome.

/// The account of messages: `messages = with_events + quarantined + duplicates + ignored`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[allow(missing_docs)] // documented above
pub struct MessageTally {
    pub messages: u64,
    pub with_events: u64,
    pub events: u64,
    pub quarantined: u64,
    pub duplicates: u64,
    pub ignored: u64,
    /// Messages with events that name an instrument missing from the reference data.
    #[serde(default)]
    pub unresolved: u64,
    /// Messages with events whose sequence number had arrived before, kept and flagged.
    #[serde(default)]
    pub repeats: u64,
    /// Repeats that cannot be confirmed, because a bound was met.
    #[serde(default)]
    pub unsure: u64,
    /// Entries of the groups that these messages have.
    #[serde(default)]
    pub entries: EntryTally,
}

/// The account of entries of repeating groups that each make an event: `total = with_events + quarantined + ignored`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[allow(missing_docs)] // documented above
pub struct EntryTally {
    pub total: u64,
    pub with_events: u64,
    /// In a message that is in quarantine, as far as they were read.
    pub quarantined: u64,
    /// The mapping says that they become nothing.
    pub ignored: u64,
}

impl EntryTally {
    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether every entry is accounted for.
    pub fn is_balanced(&self) -> bool {
        let parts = [self.with_events, self.quarantined, self.ignored];
        parts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) == Some(self.total)
    }

    /// Returns the sum of two accounts; it ends at the greatest number.
    pub fn plus(self, o: EntryTally) -> EntryTally {
        EntryTally {
            total: self.total.saturating_add(o.total),
            with_events: self.with_events.saturating_add(o.with_events),
            quarantined: self.quarantined.saturating_add(o.quarantined),
            ignored: self.ignored.saturating_add(o.ignored),
        }
    }

    /// Subtracts an account that is part of this account.
    pub fn minus(self, o: EntryTally) -> EntryTally {
        EntryTally {
            total: self.total.saturating_sub(o.total),
            with_events: self.with_events.saturating_sub(o.with_events),
            quarantined: self.quarantined.saturating_sub(o.quarantined),
            ignored: self.ignored.saturating_sub(o.ignored),
        }
    }

    /// Returns the account of the same entries when their message is in quarantine.
    pub fn in_quarantine(self) -> EntryTally {
        EntryTally { total: self.total, quarantined: self.total, ..EntryTally::default() }
    }
}

impl MessageTally {
    /// Returns whether every message and every entry is accounted for.
    pub fn is_balanced(&self) -> bool {
        let parts = [self.with_events, self.quarantined, self.duplicates, self.ignored];
        let is_sum = parts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) == Some(self.messages);
        is_sum && self.entries.is_balanced()
    }

    /// Adds two accounts. They may be from a damaged tape, so each sum saturates.
    pub fn plus(self, o: MessageTally) -> MessageTally {
        MessageTally {
            messages: self.messages.saturating_add(o.messages),
            with_events: self.with_events.saturating_add(o.with_events),
            events: self.events.saturating_add(o.events),
            quarantined: self.quarantined.saturating_add(o.quarantined),
            duplicates: self.duplicates.saturating_add(o.duplicates),
            ignored: self.ignored.saturating_add(o.ignored),
            unresolved: self.unresolved.saturating_add(o.unresolved),
            repeats: self.repeats.saturating_add(o.repeats),
            unsure: self.unsure.saturating_add(o.unsure),
            entries: self.entries.plus(o.entries),
        }
    }
}
