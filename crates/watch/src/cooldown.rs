//! Cooldowns hold an alert back if an alert of the same key was given shortly before.

use crate::state::{StateFault, StateReader, StateValue, WatchState};
use crate::table::{BoundedTable, EntryRank};
use std::hash::Hash;
use unitape_model::UnixNanos;

/// Keys with an alert that are kept at most. A forgotten one may be given its next alert early, never late.
const KEYS_MAX: usize = 1 << 18;

/// The time of the last alert by key.
pub(crate) struct AlertCooldowns<K> {
    cooldown_ns: i128,
    last_alert_by_key: BoundedTable<K, UnixNanos>,
    /// Alerts held back.
    pub held_back: u64,
}

impl<K: StateValue + Copy + Eq + Hash> WatchState for AlertCooldowns<K> {
    fn save(&self, out: &mut Vec<u8>) {
        self.last_alert_by_key.save(out);
        self.held_back.write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.last_alert_by_key.load(input)?;
        self.held_back.load(input)
    }
}

impl<K: Copy + Eq + Hash> AlertCooldowns<K> {
    /// Makes cooldowns of `cooldown_ns` nanoseconds after each alert.
    pub fn new(cooldown_ns: i128) -> Self {
        Self { cooldown_ns, last_alert_by_key: BoundedTable::new(KEYS_MAX, 0), held_back: 0 }
    }

    /// Returns whether an alert of `key` may be given at `ts`, and if so records the alert. It may be given if there
    /// was no alert yet or the last alert is at least the cooldown ago.
    pub fn may_fire(&mut self, key: K, ts: UnixNanos) -> bool {
        let last_alert = self.last_alert_by_key.find(&key).map(|slot| *self.last_alert_by_key.get(slot));
        if last_alert.is_some_and(|last| i128::from(ts.0) < i128::from(last.0) + self.cooldown_ns) {
            self.held_back += 1;
            return false;
        }
        self.last_alert_by_key.insert(key, ts, EntryRank::Kept);
        true
    }

    /// Keys forgotten because there was no room.
    pub fn bound_hit(&self) -> u64 {
        self.last_alert_by_key.forgotten_entries[EntryRank::Kept as usize]
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.last_alert_by_key.clear();
    }
}
