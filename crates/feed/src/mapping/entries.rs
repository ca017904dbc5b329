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
    let entry = &mut entry[..plan.entry_slots[group]];
    let inherit = &plan.inherit[group];
    if !inherit.is_empty() {
        return next_heir(message, group, inherit, cursor, entry);
    }
    entry.fill(None);
    message.next_entry(group, cursor, entry)
}

/// Reads the next entry of a group whose entries inherit members of the previous entry.
fn next_heir<M: ParsedMessage>(
    message: &M,
    group: usize,
    inherit: &[u8],
    cursor: &mut EntryCursor,
    entry: &mut [Option<M::Ref>],
) -> Result<bool, MessageRefusal> {
    let mut before = [None; INHERIT_MAX];
    if cursor.position != 0 || cursor.entry_count != 0 {
        before.iter_mut().zip(inherit).for_each(|(to, slot)| *to = entry[usize::from(*slot)]);
    }
    entry.fill(None);
    let more = message.next_entry(group, cursor, entry)?;
    if more && inherit.iter().all(|slot| entry[usize::from(*slot)].is_none()) {
        before.iter().zip(inherit).for_each(|(from, slot)| entry[usize::from(*slot)] = *from);
    }
    Ok(more)
}

/// Members that an entry may inherit.
pub(super) const INHERIT_MAX: usize = 8;
