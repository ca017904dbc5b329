//! Plays a script: clears the books, builds the walls, takes the steps and labels their events.

use super::super::super::config::DAY_NS;
use super::super::super::event::{DayEvent, DayEventBody, OrderKind};
use super::super::super::exchange::{NewOrder, OrderRef};
use super::super::super::names;
use super::super::super::truth::{AlertLabel, AlertLabelKey};
use super::super::luld::LIMIT_STATE_NS;
use super::super::stage::{SceneContext, sign};
use super::super::{MS, S, Scene, ScenePlacement};
use super::{
    Action, Completion, Direction, EntryKind, KeyPart, LabelMark, Role, SceneDefinition, SceneTerms, Script,
    ScriptCast, Step,
};
use crate::rng::Rng;
use unitape_model::{InstrumentId, Side};

/// A scene that plays a script.
pub(crate) struct ScriptedScene {
    definition: &'static SceneDefinition,
    cast: ScriptCast,
    books: Vec<u32>,
    side: Side,
    n: usize,
    edge: bool,
    script: Script,
    stage: ScriptStage,
    middles: Vec<i64>,
    orders: Vec<OrderRef>,
    /// The number of the client's order.
    client: u64,
    last_lead_oid: u64,
    last_lead_match: u64,
    last_news: u64,
    first_seq: u64,
}

/// How far a script is.
#[derive(Debug, Clone, Copy)]
enum ScriptStage {
    /// The opening call; the cast makes sure that the auction has a price. Holds the start of the scene.
    Call(u64),
    Unwritten,
    /// The books are being cleared between the walls; counts the tries.
    Clears(u8),
    /// The number of the next step, and the time of the first.
    Acts(usize, u64),
}

/// After this many tries to have orders cancelled, the cast trades with the remaining orders.
const CLEAR_TRIES: u8 = 3;

impl std::fmt::Debug for ScriptedScene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ScriptedScene({}, {:?})", self.definition.scenario.id(), self.stage)
    }
}

impl ScriptedScene {
    pub fn new(
        definition: &'static SceneDefinition,
        miss: Option<&'static str>,
        n: usize,
        placement: &ScenePlacement,
        cast: ScriptCast,
        rng: &mut Rng,
    ) -> ScriptedScene {
        ScriptedScene {
            definition,
            cast,
            books: vec![placement.book, placement.other_book],
            side: rng.pick(definition.sides),
            n,
            edge: rng.one_in(3) && miss.is_none(),
            script: Script::new(definition.key, miss),
            stage: match definition.scenario.joins_auction() {
                true => ScriptStage::Call(placement.start_ts),
                false => ScriptStage::Unwritten,
            },
            middles: Vec::new(),
            orders: Vec::new(),
            client: 0,
            last_lead_oid: 0,
            last_lead_match: 0,
            last_news: 0,
            first_seq: 0,
        }
    }

    fn px(&self, book: usize, offset: i64) -> i64 {
        self.middles[book] + sign(self.side) * offset
    }

    fn member(&self, role: Role, side: Side) -> u32 {
        match role {
            Role::Lead => self.cast.participants.lead,
            Role::Partner => self.cast.partner.expect("the cast has a partner"),
            Role::Other => self.cast.participants.member_on(side),
        }
    }

    fn order_side(&self, direction: Direction) -> Side {
        if direction == Direction::With { self.side } else { self.side.opposite() }
    }

    /// Returns the values from which the script is written.
    fn terms<'a>(&self, stage: &'a mut SceneContext<'_>) -> SceneTerms<'a> {
        let (x, book) = (&*stage.x, self.books[0]);
        let (instr, desk) = (x.world.instr_of(book), x.desk(book));
        let expiry_days = x.world.contract(instr).and_then(|contract| contract.expiry_days);
        let date = |ts: u64| (ts / DAY_NS) as i32;
        SceneTerms {
            rng: stage.rng,
            listed: x.world.listed(book),
            side: self.side,
            middle: self.middles[0],
            other_middle: self.middles[1],
            last_px: desk.last_trade.or(desk.earlier_trade),
            now_ts: x.now,
            prints: x.prints.get(&instr),
            days_left: expiry_days.map(|days| date(x.start_ns) + days - date(x.now)),
            n: self.n,
            edge: self.edge,
        }
    }

    fn write(&mut self, stage: &mut SceneContext<'_>) {
        self.middles = self.books.iter().map(|&book| stage.fair_of(book)).collect();
        let [middle, other_middle] = [self.middles[0], self.middles[1]];
        let mut terms = self.terms(stage);
        (self.definition.write)(&mut terms, &mut self.script);
        if self.definition.scenario.is_on_all_venues() {
            let world = &stage.x.world;
            let mut instruments = vec![world.instr_of(self.books[0]), world.instr_of(self.books[1])];
            instruments.dedup();
            self.books.dedup();
            for (venue, &instr) in
                (0..world.venues.len()).flat_map(|v| instruments.iter().map(move |i| (v, i)))
            {
                let book = world.book(venue, instr);
                if !self.books.contains(&book) {
                    self.books.push(book);
                }
            }
            let is_first = |book: &u32| world.instr_of(*book) == instruments[0];
            let middle_of = |book| if is_first(book) { middle } else { other_middle };
            self.middles = self.books.iter().map(middle_of).collect();
        } else if !self.script.is_in_both {
            self.books.truncate(1);
        }
        for &book in &self.books {
            stage.quiet(book, true);
        }
    }

    /// Clears the books between the walls. Returns false while orders remain.
    fn clear(&mut self, stage: &mut SceneContext<'_>, tries: u8) -> bool {
        let mut is_clear = true;
        for (n, &book) in self.books.iter().enumerate() {
            for (direction, wall) in
                [(Direction::With, -self.script.walls[0]), (Direction::Against, self.script.walls[1])]
            {
                let (side, limit) = (self.order_side(direction), self.px(n, wall));
                if stage.pull(book, side, limit) {
                    continue;
                }
                is_clear = tries >= CLEAR_TRIES;
                if is_clear {
                    let qty = stage.x.desk(book).book.quantity_within(side, limit);
                    let member = self.cast.participants.member_on(side.opposite());
                    stage.take_liquidity(member, book, side.opposite(), limit, qty);
                }
            }
        }
        is_clear
    }

    fn build_walls(&self, stage: &mut SceneContext<'_>) {
        for (n, &book) in self.books.iter().enumerate() {
            for (direction, wall) in
                [(Direction::With, -self.script.walls[0]), (Direction::Against, self.script.walls[1])]
            {
                let (side, px) = (self.order_side(direction), self.px(n, wall));
                let qty = stage.rng.between(3, 9) * 100;
                stage.rest(self.member(Role::Other, side), book, side, px, qty);
            }
        }
    }

    fn act(&mut self, stage: &mut SceneContext<'_>, number: usize, start_ts: u64) {
        let Step { book, action, ref labels, .. } = self.script.steps[number];
        let (labels, venue_book) = (labels.clone(), self.books[book]);
        let mut before = stage.x.out.len();
        match action {
            Action::Enter(entry) => {
                let side = self.order_side(entry.direction);
                let (member, px) = (self.member(entry.role, side), self.px(book, entry.px));
                // Order numbers are the venue's: others pass until the next one has the wanted mark.
                while entry.is_exempt.is_some_and(|wanted| wanted != stage.x.next_oid().is_multiple_of(8)) {
                    let wall = self.px(book, -self.script.walls[0]);
                    let passing =
                        stage.rest(self.member(Role::Other, self.side), venue_book, self.side, wall, 100);
                    stage.cancel(passing);
                }
                before = stage.x.out.len();
                let (kind, px, stop_px) = match entry.kind {
                    EntryKind::Stop => (OrderKind::Stop, None, Some(px)),
                    _ => (OrderKind::Limit, Some(px), None),
                };
                let parent =
                    if entry.kind == EntryKind::Child { names::client_parent(self.client) } else { 0 };
                let (book, tif, qty, crowd) = (venue_book, entry.tif, entry.qty, false);
                let new = NewOrder { member, book, side, kind, tif, px, stop_px, qty, parent, crowd };
                let order = stage.x.submit(new);
                self.orders.push(order);
                if entry.role == Role::Lead {
                    self.last_lead_oid = order.oid;
                }
            }
            Action::Amend { order, px } => {
                let order = self.orders[order.0];
                assert!(stage.x.leaves(order) > 0, "a scene amends an order that has gone");
                let qty = stage.x.order(order.slot).terms.qty;
                stage.x.amend(order.slot, self.px(book, px), qty);
            }
            Action::Cancel(order) => _ = stage.cancel(self.orders[order.0]),
            Action::Restrict(restriction) => {
                let member = self.member(restriction.role, self.side);
                let entry = restriction.entry(&stage.x.world, venue_book, member, start_ts);
                stage.x.emit(DayEventBody::List(entry));
            }
            Action::News(ticks) => {
                let instr = stage.x.world.instr_of(venue_book);
                let ticks = sign(self.side) * ticks;
                *stage.news += 1;
                self.last_news = *stage.news;
                stage.drift[instr.index()] += ticks;
                stage.x.emit(DayEventBody::News { id: self.last_news, instr, good: ticks > 0, ticks });
            }
            Action::Receive { qty } => {
                *stage.next_parent += 1;
                self.client = *stage.next_parent;
                let (client, side) = (self.client, self.side);
                let member = self.cast.partner.expect("the cast has a partner");
                let instr = stage.x.world.instr_of(venue_book);
                stage.x.emit(DayEventBody::OrderRecv { client, member, instr, side, qty });
            }
            Action::Corner { px, surplus } => {
                // Forty hundredths of all long holdings, the lead's among them.
                let qty = (2 * stage.x.long_holdings(stage.x.world.instr_of(venue_book)) + 2) / 3 + surplus;
                let (seller, px) = (self.member(Role::Other, self.side.opposite()), self.px(book, px));
                stage.rest(seller, venue_book, self.side.opposite(), px, qty);
                stage.take_liquidity(self.cast.participants.lead, venue_book, self.side, px, qty);
            }
            Action::Unwind { px } => {
                let (seller, px) = (self.member(Role::Other, self.side.opposite()), self.px(book, px));
                let (_, _, qty) = self.lead_position(stage, venue_book);
                stage.rest(seller, venue_book, self.side, px, qty);
                let lead = self.cast.participants.lead;
                stage.take_liquidity(lead, venue_book, self.side.opposite(), px, qty);
            }
            Action::ReportPosition => {
                let (owner, instr, qty) = self.lead_position(stage, venue_book);
                let open_interest = stage.x.long_holdings(instr);
                stage.x.emit(DayEventBody::Position { owner, instr, qty, open_interest });
            }
            Action::Reference { px } => {
                let instr = stage.x.world.instr_of(venue_book);
                stage.x.reference_half_ticks = Some((instr, 2 * self.px(book, px)));
            }
        }
        let matches = stage.x.out[before..].iter().filter_map(|event| match event.body {
            DayEventBody::Exec { order, match_id, .. } => Some((order.member, match_id)),
            _ => None,
        });
        for (_, match_id) in matches.filter(|(member, _)| *member == self.cast.participants.lead) {
            self.last_lead_match = match_id;
        }
        for LabelMark { completion, key, reason } in labels {
            if completion == Completion::LimitState {
                self.label_limit_state(stage, venue_book);
                continue;
            }
            let event = self.find_completion(stage, before, completion);
            let key = self.alert_key(stage, key, Some(event.body));
            stage.label(self.definition.scenario, key, reason, self.first_seq, event.seq);
        }
    }

    /// Returns the owner of the lead, the instrument of a book, and the quantity that the owner holds of it: a member of the
    /// cast has traded in the scene alone.
    fn lead_position(&self, stage: &SceneContext<'_>, book: u32) -> (u32, InstrumentId, i64) {
        let owner = stage.x.world.members[self.cast.participants.lead as usize].owner;
        let instr = stage.x.world.instr_of(book);
        (owner, instr, stage.x.positions.get(&(owner, instr)).map_or(0, |net| net.0))
    }

    /// Leaves the labels of a limit state to the market: the next national best begins it, and the first event after its
    /// time ends it.
    fn label_limit_state(&self, stage: &mut SceneContext<'_>, book: u32) {
        let label = |ts: u64, reason| AlertLabel {
            scene: stage.scene,
            scenario: self.definition.scenario.id(),
            key: self.alert_key(stage, self.script.key, None),
            reason: Some(reason),
            ts,
            first_seq: self.first_seq,
            trigger_seq: 0,
        };
        let now = stage.now();
        let [entry, pause] = [label(now, "limit_state"), label(now + LIMIT_STATE_NS, "pause")];
        stage.labels.quote_labels.insert(stage.x.world.instr_of(book), entry);
        stage.labels.timed.push(pause);
    }

    /// Returns the event that completes a label, among the events of the present step.
    fn find_completion(&self, stage: &SceneContext<'_>, before: usize, completion: Completion) -> DayEvent {
        let is_of = |member: u32, role: Role| match role {
            Role::Lead => member == self.cast.participants.lead,
            Role::Partner => Some(member) == self.cast.partner,
            Role::Other => [self.cast.participants.buyer, self.cast.participants.seller].contains(&member),
        };
        let matches = |body: &DayEventBody| match (completion, body) {
            (Completion::Entry, DayEventBody::New(_))
            | (Completion::Cancel, DayEventBody::Cancel(_))
            | (Completion::Trade, DayEventBody::Trade { .. })
            | (Completion::Position, DayEventBody::Position { .. })
            | (Completion::LastExec, DayEventBody::Exec { .. }) => true,
            (Completion::Exec(role), DayEventBody::Exec { order, .. }) => is_of(order.member, role),
            _ => false,
        };
        let mut events = stage.x.out[before..].iter().copied().filter(|event| matches(&event.body));
        let first = events.next().expect("the step has the event that completes the label");
        let last = events.next_back();
        assert!(
            last.is_none() || completion == Completion::LastExec,
            "a step of {self:?} has several events that may complete the label"
        );
        last.unwrap_or(first)
    }

    /// Makes a key. Without a completing event the lead's last order and match stand for those of the event.
    fn alert_key(
        &self,
        stage: &SceneContext<'_>,
        parts: &[KeyPart],
        completion: Option<DayEventBody>,
    ) -> AlertLabelKey {
        let (world, lead, book) = (&stage.x.world, self.cast.participants.lead, self.books[0]);
        let (oid, match_id) = match completion {
            Some(DayEventBody::Exec { order, match_id, .. }) => (order.oid, match_id),
            _ => (self.last_lead_oid, self.last_lead_match),
        };
        let part = |part: &KeyPart| match part {
            KeyPart::Owner => ("owner", world.owner_name(lead).to_owned()),
            KeyPart::Owners => {
                let partner = self.cast.partner.expect("the cast has a partner");
                let mut owners = [lead, partner].map(|member| world.owner_name(member));
                owners.sort_unstable();
                ("owners", format!("[\"{}\",\"{}\"]", owners[0], owners[1]))
            }
            KeyPart::Group => ("group", world.group_name(lead).to_owned()),
            KeyPart::Trader => ("trader", world.trader_name(lead).to_owned()),
            KeyPart::Venue => ("venue", world.venue_name(book).to_owned()),
            KeyPart::Underlying => ("underlying", world.isin(book).to_owned()),
            KeyPart::Instr => ("instr", world.isin(book).to_owned()),
            KeyPart::Side => ("side", self.side.letter().to_owned()),
            KeyPart::News => ("news_id", names::news_text(self.last_news)),
            KeyPart::Oid => ("oid", names::oid_text(oid)),
            KeyPart::MatchId => ("match_id", names::match_text(match_id)),
            KeyPart::Cpty => {
                let partner = self.cast.partner.expect("the cast has a partner");
                ("cpty", world.firm_name(partner).to_owned())
            }
            KeyPart::Firm => ("firm", world.firm_name(lead).to_owned()),
            KeyPart::Coid => ("coid", names::client_text(self.client)),
        };
        AlertLabelKey(parts.iter().map(part).collect())
    }

    fn end(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        if let (Some(reason), false) = (self.script.miss, self.script.is_abandoned) {
            let key = self.alert_key(stage, self.script.key, None);
            stage.near_miss(self.definition.scenario, key, reason, self.first_seq);
        }
        for &book in &self.books {
            stage.quiet(book, false);
        }
        None
    }
}

impl Scene for ScriptedScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        match self.stage {
            ScriptStage::Call(start_ts) => {
                let px = stage.x.world.listed(self.books[0]).reference;
                for side in [Side::Buy, Side::Sell] {
                    stage.rest(self.cast.participants.member_on(side), self.books[0], side, px, 100);
                }
                self.stage = ScriptStage::Unwritten;
                Some(start_ts)
            }
            ScriptStage::Unwritten => {
                self.write(stage);
                if self.script.is_abandoned {
                    return self.end(stage);
                }
                self.stage = ScriptStage::Clears(0);
                self.play(stage)
            }
            ScriptStage::Clears(tries) => {
                if !self.clear(stage, tries) {
                    self.stage = ScriptStage::Clears(tries + 1);
                    return Some(stage.now() + S);
                }
                self.build_walls(stage);
                let start = stage.now() + stage.rng.between(50, 500) as u64 * MS;
                self.stage = ScriptStage::Acts(0, start);
                Some(start)
            }
            ScriptStage::Acts(number, start) => {
                if number == 0 {
                    self.first_seq = stage.next_seq();
                }
                self.act(stage, number, start);
                self.stage = ScriptStage::Acts(number + 1, start);
                match self.script.steps.get(number + 1) {
                    Some(step) => Some(start + step.after_ns),
                    None => self.end(stage),
                }
            }
        }
    }
}
