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
    /// Messages with events whose sequence number had come before, kept and flagged.
    #[serde(default)]
    pub repeats: u64,
    /// Repeats that nobody can confirm, because a bound was met.
    #[serde(default)]
    pub unsure: u64,
}

impl MessageTally {
    /// Whether every message is accounted for.
    pub fn is_balanced(&self) -> bool {
        let parts = [self.with_events, self.quarantined, self.duplicates, self.ignored];
        parts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) == Some(self.messages)
    }

    /// The sum of two accounts. They may come from a damaged tape, so a sum ends at the greatest number.
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
        }
    }
}
