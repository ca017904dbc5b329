//! The entries of a repeating group, one after the other.

use super::format_adapter::{EntryCursor, MessageRefusal, ParsedMessage};
use super::plan::MappingPlan;

// Called for every entry of every group, and from two forms of `apply`: more callers must not make it a call.
#[inline(always)]
pub(super) fn next_entry<M: ParsedMessage>(
    plan: &MappingPlan,
    message: &M,
    group: usize,
    cursor: &mut EntryCursor,
    entry: &mut [Option<M::Ref>],
) -> Result<bool, MessageRefusal> {
    let entry = &mut entry[..plan.entry_slot_counts[group]];
    let inherited_slots = &plan.inherited_slots[group];
    if !inherited_slots.is_empty() {
        return next_heir(message, group, inherited_slots, cursor, entry);
    }
    entry.fill(None);
    message.next_entry(group, cursor, entry)
}

/// Reads the next entry of a group whose entries inherit members of the previous entry.
fn next_heir<M: ParsedMessage>(
    message: &M,
    group: usize,
    inherited_slots: &[u8],
    cursor: &mut EntryCursor,
    entry: &mut [Option<M::Ref>],
) -> Result<bool, MessageRefusal> {
    let mut previous_members = [None; INHERIT_MAX];
    if cursor.position != 0 || cursor.entry_count != 0 {
        previous_members
            .iter_mut()
            .zip(inherited_slots)
            .for_each(|(to, slot)| *to = entry[usize::from(*slot)]);
    }
    entry.fill(None);
    let has_entry = message.next_entry(group, cursor, entry)?;
    if has_entry && inherited_slots.iter().all(|slot| entry[usize::from(*slot)].is_none()) {
        previous_members
            .iter()
            .zip(inherited_slots)
            .for_each(|(from, slot)| entry[usize::from(*slot)] = *from);
    }
    Ok(has_entry)
}

/// Members that an entry may inherit.
pub(super) const INHERIT_MAX: usize = 8;
