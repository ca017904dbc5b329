//! Restricted list: a trader enters an order in an instrument while an entry of the list forbids it.

use super::super::market::{ListEntry, ListedParty};
use super::super::world::SimulatedMarket;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{S, Scenario};

const ENDED: &str = "the entry ends as the order comes";
const EARLY: &str = "the entry begins a nanosecond after the order";
const STRANGER: &str = "the entry names another trader";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::RestrictedList,
    key: &[KeyPart::Trader, KeyPart::Instr],
    misses: &[ENDED, EARLY, STRANGER],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

/// An entry of the list in a script.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptRestriction {
    pub role: Role,
    kind: PartyKind,
    /// The bounds of the entry since the first step.
    from_ns: u64,
    to_ns: u64,
}

/// The name of the party that an entry has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartyKind {
    Account,
    Trader,
    Desk,
}

impl ScriptRestriction {
    /// Makes the entry for a member in the instrument of a book. The first step is at `start_ts`.
    pub fn entry(&self, world: &SimulatedMarket, book: u32, member: u32, start_ts: u64) -> ListEntry {
        let party = match self.kind {
            PartyKind::Account => ListedParty::Account(member),
            PartyKind::Trader => ListedParty::Trader(member),
            PartyKind::Desk => ListedParty::Desk(world.desk_of(member)),
        };
        let span = (start_ts + self.from_ns, start_ts + self.to_ns);
        ListEntry::Restricted { instr: world.instr_of(book), party, span }
    }
}

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let order_ns = terms.millis(500, 5_000);
    let (from_ns, to_ns) = match script.miss {
        Some(ENDED) => (0, order_ns),
        Some(EARLY) => (order_ns + 1, order_ns + S),
        _ if terms.edge => (order_ns, order_ns + 1),
        _ => (0, order_ns + S),
    };
    const KINDS: [PartyKind; 3] = [PartyKind::Account, PartyKind::Trader, PartyKind::Desk];
    let (kind, role) = match script.miss {
        Some(STRANGER) => (PartyKind::Trader, Role::Other),
        Some(_) => (terms.rng.pick(&KINDS), Role::Lead),
        None => (KINDS[terms.n % KINDS.len()], Role::Lead),
    };
    script.restrict(ScriptRestriction { role, kind, from_ns, to_ns });
    script.wait_until(order_ns);
    let qty = terms.rng.between(1, 9) * 100;
    let px = terms.rng.between(-4, 0);
    let order = script.rest(Role::Lead, Direction::With, px, qty);
    script.fires(Completion::Entry);
    script.pause(terms.millis(1_500, 9_000));
    script.cancel(order);
}
