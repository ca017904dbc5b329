//! Which entries of the dictionaries each template has, and their values while the dictionaries are empty.
//!
//! ```text
//!  entries:  │ of T1 alone │ of T1 and T2 │ of T2 alone │     shares, one behind the other
//!                └ each knows when it was emptied last; those of a template are looked at where its message begins
//! ```
//!
//! So a reset is a number counted up, and no field looks whether there was one. Shares of few entries that mostly the same
//! templates have are one: to look at each would take longer than to empty some that a message does not need.

use super::engine::HEAD;
use super::program::{DecodeOp, DecodeProgram, NONE, OpCode, OpRole};
use super::slot::{DictionaryLayout, DictionarySlot, SharedSlotRange, SlotState};
use std::collections::BTreeMap;

/// To look at a share takes as long as to copy this many entries.
const LOOK: usize = 64;

/// More shares than these, or with more templates in all, are left as they are: to try each with each takes long.
const JOINED_MAX: usize = 64;
const TEMPLATES_MAX: usize = 1024;

/// Orders the entries of a compiled program so that the entries of a template are adjacent.
pub(super) fn arrange(program: &mut DecodeProgram, slots: usize) {
    let mut users = vec![Vec::<u32>::new(); slots];
    for template in 0..program.templates.len() {
        let block = program.templates[template].block;
        each_op(program, block, &mut |op| {
            let templates = &mut users[op.slot as usize];
            if templates.last() != Some(&(template as u32)) {
                templates.push(template as u32);
            }
        });
    }
    let mut together = BTreeMap::<Vec<u32>, Vec<usize>>::new();
    for (slot, templates) in users.into_iter().enumerate() {
        together.entry(templates).or_default().push(slot);
    }
    let together = join_shares(together.into_iter().collect());
    let mut entries = DictionaryLayout {
        empty: vec![DictionarySlot::UNDEFINED; HEAD + slots],
        ..DictionaryLayout::default()
    };
    let (mut places, mut next) = (vec![0u32; slots], HEAD as u32);
    let mut shares_of = vec![Vec::new(); program.templates.len()];
    for (templates, slots) in together {
        for template in templates {
            shares_of[template as usize].push(entries.shares.len() as u32);
        }
        let first_slot = next;
        for slot in slots {
            places[slot] = next;
            next += 1;
        }
        entries.shares.push(SharedSlotRange { from: first_slot, to: next });
    }
    for (compiled, shares) in program.templates.iter_mut().zip(shares_of) {
        let shares_start = entries.template_shares.len() as u32;
        entries.template_shares.extend(shares);
        compiled.shared_slots =
            SharedSlotRange { from: shares_start, to: entries.template_shares.len() as u32 };
    }
    let mut uses = vec![Vec::<DecodeOp>::new(); HEAD + slots];
    for op in program.ops.iter_mut().filter(|op| op.slot != NONE) {
        op.slot = places[op.slot as usize];
        uses[op.slot as usize].push(*op);
    }
    for (slot, uses) in entries.empty.iter_mut().zip(&uses) {
        *slot = empty_state(program, uses);
    }
    // A slot that only copies read plays no part if none of them is delivered.
    let of_interest = |op: &DecodeOp| op.deliver || op.code != OpCode::Copy || op.role != OpRole::Value;
    for op in program.ops.iter_mut().filter(|op| op.slot != NONE) {
        op.is_unread = !uses[op.slot as usize].iter().any(of_interest);
    }
    program.entries = entries;
}

/// Joins shares that are better kept together. Returns all shares with their templates.
fn join_shares(mut shares: Vec<(Vec<u32>, Vec<usize>)>) -> Vec<(Vec<u32>, Vec<usize>)> {
    let templates = shares.iter().map(|(users, _)| users.len()).sum::<usize>();
    if shares.len() > JOINED_MAX || templates > TEMPLATES_MAX {
        return shares;
    }
    loop {
        let mut best = None;
        for (a, (templates_a, slots_a)) in shares.iter().enumerate() {
            for (b, (templates_b, slots_b)) in shares.iter().enumerate().skip(a + 1) {
                let common_count =
                    templates_a.iter().filter(|template| templates_b.binary_search(template).is_ok()).count();
                let costs = (templates_a.len() - common_count) * slots_b.len()
                    + (templates_b.len() - common_count) * slots_a.len();
                let gain = (common_count * LOOK).saturating_sub(costs);
                if gain > best.map_or(0, |(gain, _, _)| gain) {
                    best = Some((gain, a, b));
                }
            }
        }
        let Some((_, a, b)) = best else { return shares };
        let (templates_b, slots_b) = shares.remove(b);
        let (templates_a, slots_a) = &mut shares[a];
        templates_a.extend(templates_b);
        templates_a.sort_unstable();
        templates_a.dedup();
        slots_a.extend(slots_b);
    }
}

fn each_op(program: &DecodeProgram, block: u32, each: &mut impl FnMut(&DecodeOp)) {
    let block = program.blocks[block as usize];
    for op in &program.ops[block.from as usize..block.to as usize] {
        if op.slot != NONE {
            each(op);
        }
        if op.block != NONE {
            each_op(program, op.block, each);
        }
    }
}

/// Returns the state of an entry before its first value: undefined, or an initial value that is the same for all ops
/// that read the entry.
fn empty_state(program: &DecodeProgram, uses: &[DecodeOp]) -> DictionarySlot {
    let Some(first_use) = uses.first() else { return DictionarySlot::UNDEFINED };
    let initial = |op: &DecodeOp| program.initials.get(op.initial as usize);
    let is_same = |op: &DecodeOp| {
        let equal = match (initial(op), initial(first_use)) {
            (None, None) => true,
            // Long texts are equal if they are the same text.
            (Some(a), Some(b)) => (a.bits, a.exponent, a.len, a.long) == (b.bits, b.exponent, b.len, b.long),
            _ => false,
        };
        equal && op.kind == first_use.kind && op.code != OpCode::Increment
    };
    if !uses.iter().all(is_same) {
        return DictionarySlot::UNDEFINED;
    }
    if let Some(first_initial) = initial(first_use) {
        let state = if first_initial.long { SlotState::Long } else { SlotState::Assigned };
        let extra = if first_initial.long { 0 } else { first_initial.extra(first_use.kind) };
        DictionarySlot { bits: first_initial.bits, meta: DictionarySlot::meta(state, first_use.kind, extra) }
    } else if uses.iter().all(|op| op.code == OpCode::Delta) && !first_use.kind.is_string_or_bytes() {
        // A difference then has the base zero.
        DictionarySlot { bits: 0, meta: DictionarySlot::meta(SlotState::Assigned, first_use.kind, 0) }
    } else if uses.iter().all(|op| op.code == OpCode::Copy && op.optional) {
        DictionarySlot { bits: 0, meta: DictionarySlot::meta(SlotState::Empty, first_use.kind, 0) }
    } else {
        DictionarySlot::UNDEFINED
    }
}
