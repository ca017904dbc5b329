use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, W, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{}"#;

/// The names `restricted` and `watch` in the dictionary of names.
const LISTS: [u32; 2] = [6, 7];

fn op() -> impl Strategy<Value = Op> {
    let time =
        || proptest::option::weighted(0.4, prop::sample::select(&[0, 1, W / 2, W, W + 1, 3 * W, -W][..]));
    let kind = prop::sample::select(&[0, 0, 1, 1, 1, 2][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    // Which of its parties an entry or an order names, one bit each.
    let named = prop_oneof![2 => Just(0u8), 3 => any::<u8>()];
    (step(), kind, (time(), time()), named, (mostly(2), mostly(2), mostly(2), mostly(2)), 0u8..20).prop_map(
        |(by, kind, (from, to), named, (instr, trader, owner, other), odd)| {
            let op = Op { by, instr, trader, owner, venue: 1, ..SILENT };
            let has = |bit: u8| named >> bit & 1 == 1;
            let parties = [
                (EventField::Acct, NameKind::Account, 0),
                (EventField::Desk, NameKind::Desk, 1),
                (EventField::Firm, NameKind::Firm, 2),
            ];
            let mut more: Vec<_> = parties
                .into_iter()
                .filter(|(.., bit)| has(*bit) && other > 0)
                .map(|(field, dict, _)| (field, OpValue::Name(dict, other)))
                .collect();
            match kind {
                0 => {
                    let list = if odd < 18 { LISTS[usize::from(odd % 2)] } else { 1 };
                    more.push((EventField::Name, OpValue::Name(NameKind::Name, list)));
                    if has(3) && owner > 0 {
                        more.push((EventField::Party, OpValue::Name(NameKind::Owner, owner)));
                    }
                    from.into_iter().for_each(|from| more.push((EventField::From, OpValue::Time(from))));
                    to.into_iter().for_each(|to| more.push((EventField::To, OpValue::Time(to))));
                    Op { kind: EventKind::List, trader: if has(4) { trader } else { 0 }, more, ..op }
                }
                1 => Op { kind: EventKind::OrderNew, side: 1, more, ..op },
                _ => Op { kind: EventKind::Party, owner: owner.max(1), more, ..op },
            }
        },
    )
}

/// An entry at the first or last nanosecond, a party that only one of both names and a desk that comes from the owner could be compared wrongly.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// An entry from before a reset must not apply after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
