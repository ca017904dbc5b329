//! Groups of owners that belong together.

use crate::state::watch_state;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use unitape_model::{Event, EventField, EventValue};

/// The beneficial group of each owner, from `party` events. An owner that no event names is its own group. There is at
/// most one entry for each owner in the dictionary.
#[derive(Debug, Default)]
pub struct OwnerGroups {
    group_by_account: HashMap<u32, u32, FxBuildHasher>,
    changes: u64,
}

watch_state!(OwnerGroups { group_by_account, changes });

impl OwnerGroups {
    /// Returns the group of `owner`. An owner without a group is a group alone.
    #[inline]
    pub fn group(&self, owner: u32) -> u32 {
        if self.group_by_account.is_empty() {
            return owner;
        }
        self.group_by_account.get(&owner).copied().unwrap_or(owner)
    }

    /// Counts the changes of groups. Code that files things under groups must file them again after a change.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn on_party(&mut self, event: &Event<'_>) {
        let id = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Sym(_, id)) => Some(id),
            _ => None,
        };
        let Some(owner) = id(EventField::Owner) else { return };
        let group = id(EventField::Group).unwrap_or(owner);
        if self.group(owner) != group {
            self.changes += 1;
            self.group_by_account.insert(owner, group);
        }
    }

    pub(crate) fn reset(&mut self) {
        self.changes += u64::from(!self.group_by_account.is_empty());
        self.group_by_account.clear();
    }
}
