//! How many messages became what.

/// The account of messages: `messages = with_events + quarantined + duplicates + ignored`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[allow(missing_docs)] // told above
pub struct Tally {
    pub messages: u64,
    pub with_events: u64,
    pub events: u64,
    pub quarantined: u64,
    pub duplicates: u64,
    pub ignored: u64,
    /// Of those with events: messages that name an instrument that the reference data does not have.
    #[serde(default)]
    pub unresolved: u64,
}

impl Tally {
    /// Whether every message is accounted for.
    pub fn closes(&self) -> bool {
        self.messages == self.with_events + self.quarantined + self.duplicates + self.ignored
    }

    /// The sum of two accounts.
    pub fn plus(self, o: Tally) -> Tally {
        Tally {
            messages: self.messages + o.messages,
            with_events: self.with_events + o.with_events,
            events: self.events + o.events,
            quarantined: self.quarantined + o.quarantined,
            duplicates: self.duplicates + o.duplicates,
            ignored: self.ignored + o.ignored,
            unresolved: self.unresolved + o.unresolved,
        }
    }
}
