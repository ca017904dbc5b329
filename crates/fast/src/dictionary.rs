//! Which entries of the dictionaries each template has, and what they are while the dictionaries are empty.
//!
//! ```text
//!  entries:  │ of T1 alone │ of T1 and T2 │ of T2 alone │     shares, one behind the other
//!                └ each knows when it was emptied last; those of a template are looked at where its message begins
//! ```
//!
//! So a reset is a number counted up, and no field looks whether there was one. Shares of few entries that mostly the same
//! templates have are one: to look at each would take longer than to empty some that a message does not need.

use super::engine::HEAD;
use super::program::{NONE, Op, OpCode, Program, Role};
use super::slot::{Entries, Share, Slot, State};
use super::template::Type;
use std::collections::BTreeMap;

/// To look at a share takes as long as to copy so many entries.
const LOOK: usize = 64;

/// More shares than these, or with more templates in all, are left as they are: to try each with each takes long.
const JOINED_MAX: usize = 64;
const TEMPLATES_MAX: usize = 1024;

/// Puts the entries of a compiled program in order, so that those of a template stand together.
pub(super) fn arrange(program: &mut Program, slots: usize) {
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
    let together = joined(together.into_iter().collect());
    let mut entries = Entries { empty: vec![Slot::UNDEFINED; HEAD + slots], ..Entries::default() };
    let (mut places, mut next) = (vec![0u32; slots], HEAD as u32);
    let mut shares_of = vec![Vec::new(); program.templates.len()];
    for (templates, slots) in together {
        for template in templates {
            shares_of[template as usize].push(entries.shares.len() as u32);
        }
        let from = next;
        for slot in slots {
            places[slot] = next;
            next += 1;
        }
        entries.shares.push(Share { from, to: next });
    }
    for (compiled, shares) in program.templates.iter_mut().zip(shares_of) {
        let from = entries.of.len() as u32;
        entries.of.extend(shares);
        compiled.shares = Share { from, to: entries.of.len() as u32 };
    }
    let mut uses = vec![Vec::<Op>::new(); HEAD + slots];
    for op in program.ops.iter_mut().filter(|op| op.slot != NONE) {
        op.slot = places[op.slot as usize];
        uses[op.slot as usize].push(*op);
    }
    for (slot, uses) in entries.empty.iter_mut().zip(&uses) {
        *slot = when_empty(program, uses);
    }
    // What only copies look at is of no interest where none of them is delivered.
    let of_interest = |op: &Op| op.deliver || op.code != OpCode::Copy || op.role != Role::Value;
    for op in program.ops.iter_mut().filter(|op| op.slot != NONE) {
        op.idle = !uses[op.slot as usize].iter().any(of_interest);
    }
    program.entries = entries;
}

/// The shares, with their templates, and those together that are better one.
fn joined(mut shares: Vec<(Vec<u32>, Vec<usize>)>) -> Vec<(Vec<u32>, Vec<usize>)> {
    let templates = shares.iter().map(|(of, _)| of.len()).sum::<usize>();
    if shares.len() > JOINED_MAX || templates > TEMPLATES_MAX {
        return shares;
    }
    loop {
        let mut best = None;
        for (a, (of_a, in_a)) in shares.iter().enumerate() {
            for (b, (of_b, in_b)) in shares.iter().enumerate().skip(a + 1) {
                let both = of_a.iter().filter(|template| of_b.binary_search(template).is_ok()).count();
                let costs = (of_a.len() - both) * in_b.len() + (of_b.len() - both) * in_a.len();
                let gain = (both * LOOK).saturating_sub(costs);
                if gain > best.map_or(0, |(gain, _, _)| gain) {
                    best = Some((gain, a, b));
                }
            }
        }
        let Some((_, a, b)) = best else { return shares };
        let (of_b, in_b) = shares.remove(b);
        let (of_a, in_a) = &mut shares[a];
        of_a.extend(of_b);
        of_a.sort_unstable();
        of_a.dedup();
        in_a.extend(in_b);
    }
}

fn each_op(program: &Program, block: u32, each: &mut impl FnMut(&Op)) {
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

/// What an entry is before anything was put there: undefined, or what comes to the same for all ops that look at it.
fn when_empty(program: &Program, uses: &[Op]) -> Slot {
    let Some(first) = uses.first() else { return Slot::UNDEFINED };
    let initial = |op: &Op| program.initials.get(op.initial as usize);
    let same = |op: &Op| {
        let equal = match (initial(op), initial(first)) {
            (None, None) => true,
            // Long ones are equal where they are the same.
            (Some(a), Some(b)) => (a.bits, a.exponent, a.len, a.long) == (b.bits, b.exponent, b.len, b.long),
            _ => false,
        };
        equal && op.kind == first.kind && op.code != OpCode::Increment
    };
    if !uses.iter().all(same) {
        return Slot::UNDEFINED;
    }
    let is_text = matches!(first.kind, Type::Ascii | Type::Unicode | Type::Bytes);
    if let Some(found) = initial(first) {
        let state = if found.long { State::Long } else { State::Assigned };
        let extra = if found.long { 0 } else { found.extra(first.kind) };
        Slot { bits: found.bits, meta: Slot::meta(state, first.kind, extra) }
    } else if uses.iter().all(|op| op.code == OpCode::Delta) && !is_text {
        // A difference is to nought then.
        Slot { bits: 0, meta: Slot::meta(State::Assigned, first.kind, 0) }
    } else if uses.iter().all(|op| op.code == OpCode::Copy && op.optional) {
        Slot { bits: 0, meta: Slot::meta(State::Empty, first.kind, 0) }
    } else {
        Slot::UNDEFINED
    }
}
