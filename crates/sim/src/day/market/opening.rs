//! What a day begins with: reference data of the index, lists, links and positions.

use unitape_model::{InstrumentId, NameKind, Side};

use super::super::config::S;
use super::super::scenes::Scenario;
use super::event::{ListEntry, ListedParty, MarketEventBody, OwnerLink};
use super::{AgendaItem, Market};

/// Instruments that an owner may hold from the first day on.
const HELD_MAX: u64 = 8;
/// Times a day at which there are composite prices.
const REFERENCE_TIMES: u64 = 16;
const MONTH_NS: u64 = 30 * 86_400 * S;

impl Market {
    /// Sets the holdings of the background's owners at the start of the first day: some of the quantity that they will
    /// sell.
    pub(super) fn endow(&mut self) {
        let world = &self.sim.x.world;
        let instruments = world.instruments.len() as u64;
        for member in (0..world.crowd).step_by(2) {
            let owner = world.members[member as usize].owner;
            for _ in 0..HELD_MAX {
                let instr = InstrumentId(self.rng.below(instruments) as u32);
                let qty = self.rng.between(1, 200) * 100;
                if world.side_of(member, instr) == Side::Sell {
                    self.holdings.insert((owner, instr), qty);
                }
            }
        }
        self.sim.x.initial_holdings = self.holdings.clone();
        self.sim.x.index_base = self.index.base().to_vec();
    }

    /// Opens a day: its reference data have been given.
    pub(super) fn open_day(&mut self) {
        self.now = self.sim.x.now;
        let prev_close = self.index.published();
        self.sim.x.index_close = prev_close;
        self.bodies.push(MarketEventBody::IndexRef { prev_close });
        self.list();
        if self.totals.is_empty() {
            self.link();
        }
        let mut open_interest = vec![0; self.sim.x.world.instruments.len()];
        for (&(_, instr), &qty) in &self.holdings {
            open_interest[instr.index()] += qty.max(0);
        }
        self.holdings.retain(|_, qty| *qty != 0);
        let position = |(&(owner, instr), &qty): (&(u32, InstrumentId), &i64)| MarketEventBody::Position {
            owner,
            instr,
            qty,
            open_interest: open_interest[instr.index()],
        };
        self.bodies.extend(self.holdings.iter().map(position));
        self.put_bodies();
        let times = self.sim.times;
        for n in 1..=REFERENCE_TIMES {
            let ts = times.open + (times.closing_call - times.open) * n / (REFERENCE_TIMES + 1);
            self.plan(ts, AgendaItem::ReferencePrices);
        }
        for _ in 0..self.config.comms {
            let ts = times.open + self.rng.below(times.closing_call - times.open);
            self.plan(ts, AgendaItem::Comm);
        }
        for n in 0..self.messages.len() {
            let ts = times.open + self.rng.below(times.closing_call - times.open);
            self.plan(ts, AgendaItem::Message(n as u32));
        }
    }

    /// Lists a restriction, an insider and a watch.
    fn list(&mut self) {
        let world = &mut self.sim.x.world;
        let some = |rng: &mut crate::rng::Rng| InstrumentId(rng.below(world.instruments.len() as u64) as u32);
        let [restricted, insider_instr, watched] = std::array::from_fn(|_| some(&mut self.rng));
        let span = (self.now, self.sim.times.close);
        let desk = self.rng.below(world.desks().into()) as u32;
        let owner = self.rng.below(u64::from(world.crowd) / 2) as u32;
        let (director, firm) = (self.rng.one_in(2), self.rng.below(world.firms().into()) as u32);
        let from = self.now.saturating_sub(MONTH_NS);
        let issuer = super::frames::issuer(&world.instruments[insider_instr.index()].symbol);
        world.name(NameKind::Name, &issuer);
        let restricted = self.unscripted(restricted);
        let restricted =
            restricted.map(|instr| ListEntry::Restricted { instr, party: ListedParty::Desk(desk), span });
        let insider = ListEntry::Insider { instr: insider_instr, owner, director, from };
        let watched = self.unscripted(watched).map(|instr| ListEntry::Watch { instr, firm, span });
        let entries = restricted.into_iter().chain([insider]).chain(watched);
        self.bodies.extend(entries.map(MarketEventBody::List));
    }

    /// Returns an instrument without a scene of `restricted_list` today: the given one or the next.
    fn unscripted(&self, instr: InstrumentId) -> Option<InstrumentId> {
        let (sim, count) = (&self.sim, self.closing.len() as u32);
        let is_free = |instr: &InstrumentId| {
            let is_there = |book: u32| sim.x.world.instr_of(book) == *instr;
            !sim.scenes.iter().any(|s| s.scenario == Scenario::RestrictedList && is_there(s.books[0]))
        };
        (0..count).map(|n| InstrumentId((instr.0 + n) % count)).find(is_free)
    }

    /// Links some owners of different groups that share an address or a desk.
    fn link(&mut self) {
        let world = &self.sim.x.world;
        let owners = (world.crowd / 2).min(40);
        for owner in (0..owners.saturating_sub(1)).step_by(4) {
            let linked = owner + 1;
            if world.groups[owner as usize] == world.groups[linked as usize] {
                continue;
            }
            let desk = self.rng.one_in(2).then(|| world.desk_of(owner * 2));
            let score = self.rng.between(50, 95);
            self.bodies.push(MarketEventBody::Link(OwnerLink { owner, linked, desk, score }));
        }
    }
}
