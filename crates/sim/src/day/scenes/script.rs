//! Scripted scenes: a table of steps that one scene plays in a book of its own.
//!
//! A script is written as the scene begins, when the prices are known. It gives each step a time and marks the steps whose
//! events complete a label. A near miss is the same script with one value or one step changed.
//!
//! Prices are in ticks from the middle of the book, on the lead's side of the market: for a lead that buys, 3 is three
//! ticks above the middle; for a lead that sells, three ticks below. So one script serves both sides. Before the first
//! step the orders between two walls leave the book:
//!
//! ```text
//!   other orders │ wall of the lead's side ── free ── middle ── free ── wall of the other side │ other orders
//!                        -6                              0                        +6
//! ```

use super::super::event::{DayEventBody, TimeInForce};
use super::super::exchange::OrderRef;
use super::super::truth::AlertLabelKey;
use super::super::world::{ListedInstrument, SimulatedMarket};
use super::restricted_list::ScriptRestriction;
use super::stage::{SceneContext, SceneParticipants, sign};
use super::{MS, S, Scenario, Scene, ScenePlacement};
use crate::rng::Rng;
use unitape_model::Side;

/// The scenes of a scenario.
pub(crate) struct SceneDefinition {
    pub scenario: Scenario,
    /// The key of the alert, unless a step names another.
    pub key: &'static [KeyPart],
    /// The near misses, each by its reason.
    pub misses: &'static [&'static str],
    /// The sides that the lead may take.
    pub sides: &'static [Side],
    /// Makes the cast; the second argument is the reason of a near miss.
    pub cast: fn(&mut SimulatedMarket, Option<&'static str>) -> ScriptCast,
    /// Writes the script.
    pub write: fn(&mut SceneTerms<'_>, &mut Script),
}

/// A name in the key of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPart {
    Owner,
    /// The owners of the lead and of the partner in ascending order.
    Owners,
    Group,
    Trader,
    Venue,
    Instr,
    Side,
    /// The last order that the lead entered.
    Oid,
    /// The last news of the scene.
    News,
}

/// The members of a scripted scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptCast {
    pub participants: SceneParticipants,
    /// The second actor, if the scene has one.
    pub partner: Option<u32>,
}

/// Who acts in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Lead,
    Partner,
    /// The member of the cast that trades on the order's side and on no other.
    Other,
}

/// The side of an order, as seen by the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    With,
    Against,
}

/// The event of a step that completes a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    Entry,
    Cancel,
    /// The public print.
    Trade,
    /// The only execution of an actor in the step.
    Exec(Role),
    /// The later of the two executions.
    LastExec,
}

/// An order of a script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptOrder(usize);

/// The values from which a script is written.
pub(crate) struct SceneTerms<'a> {
    pub rng: &'a mut Rng,
    pub listed: &'a ListedInstrument,
    pub side: Side,
    /// The middle of the first book in ticks.
    pub middle: i64,
    /// The number of the scene among those of its kind.
    pub n: usize,
    /// Whether the scene fires at the threshold itself and not inside. Never in a near miss.
    pub edge: bool,
}

impl SceneTerms<'_> {
    /// Converts a distance from the middle to a price in ticks.
    pub fn px(&self, offset: i64) -> i64 {
        self.middle + sign(self.side) * offset
    }

    /// Returns the least quantity whose value at a distance from the middle reaches `money` (whole units of the
    /// currency).
    pub fn qty_worth(&self, offset: i64, money: i64) -> i64 {
        let nano = i128::from(self.listed.nano(self.px(offset)));
        ((i128::from(money) * 1_000_000_000 + nano - 1) / nano) as i64
    }

    /// Draws a duration.
    pub fn millis(&mut self, low: i64, high: i64) -> u64 {
        self.rng.between(low, high) as u64 * MS
    }
}

/// A table of steps.
#[derive(Debug)]
pub(crate) struct Script {
    /// The reason of a near miss.
    pub miss: Option<&'static str>,
    /// The key of the near miss and of the labels that name no other.
    pub key: &'static [KeyPart],
    /// Distances of the walls from the middle: that of the lead's side, that of the other side.
    pub walls: [i64; 2],
    /// The scene cannot be played here.
    pub is_abandoned: bool,
    steps: Vec<Step>,
    orders: usize,
    clock_ns: u64,
    book: usize,
    is_in_both: bool,
}

#[derive(Debug)]
struct Step {
    /// Time since the first step.
    after_ns: u64,
    book: usize,
    action: Action,
    labels: Vec<LabelMark>,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Enter(OrderEntry),
    Amend {
        order: ScriptOrder,
        px: i64,
    },
    Cancel(ScriptOrder),
    Restrict(ScriptRestriction),
    /// News by its ticks, on the lead's side.
    News(i64),
}

#[derive(Debug, Clone, Copy)]
struct OrderEntry {
    role: Role,
    direction: Direction,
    px: i64,
    qty: i64,
    tif: TimeInForce,
    /// Whether the venue's order number must make a short sale exempt from the price test, or not exempt.
    is_exempt: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
struct LabelMark {
    completion: Completion,
    key: &'static [KeyPart],
    reason: Option<&'static str>,
}

impl Script {
    fn new(key: &'static [KeyPart], miss: Option<&'static str>) -> Script {
        Script {
            miss,
            key,
            walls: [6, 6],
            is_abandoned: false,
            steps: Vec::new(),
            orders: 0,
            clock_ns: 0,
            book: 0,
            is_in_both: false,
        }
    }

    /// Returns whether the scene is the near miss with this reason.
    pub fn misses(&self, reason: &str) -> bool {
        self.miss == Some(reason)
    }

    /// Sends the following steps to the scene's first book or to its other one.
    pub fn on_book(&mut self, book: usize) {
        self.book = book;
        self.is_in_both |= book > 0;
    }

    /// Lets time pass before the next step.
    pub fn pause(&mut self, ns: u64) {
        self.clock_ns += ns;
    }

    /// Returns the time of the next step since the first step.
    pub fn clock(&self) -> u64 {
        self.clock_ns
    }

    /// Returns the time of the last step since the first step.
    pub fn last_step_ns(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.after_ns)
    }

    /// Moves the next step to a time since the first step, if that is later.
    pub fn wait_until(&mut self, after_ns: u64) {
        self.clock_ns = self.clock_ns.max(after_ns);
    }

    /// Enters an order that rests.
    pub fn rest(&mut self, role: Role, direction: Direction, px: i64, qty: i64) -> ScriptOrder {
        self.enter(OrderEntry { role, direction, px, qty, tif: TimeInForce::Day, is_exempt: None })
    }

    /// Enters an order that executes at once or ends.
    pub fn take(&mut self, role: Role, direction: Direction, px: i64, qty: i64) {
        self.enter(OrderEntry { role, direction, px, qty, tif: TimeInForce::Ioc, is_exempt: None });
    }

    /// Makes the last order, a short sale, exempt from the price test or not.
    pub fn set_exempt(&mut self, is_exempt: bool) {
        if let Some(Action::Enter(entry)) = self.steps.last_mut().map(|step| &mut step.action) {
            entry.is_exempt = Some(is_exempt);
        }
    }

    /// Amends an order to another price.
    pub fn amend(&mut self, order: ScriptOrder, px: i64) {
        self.push(Action::Amend { order, px });
    }

    /// Cancels an order, which must still rest.
    pub fn cancel(&mut self, order: ScriptOrder) {
        self.push(Action::Cancel(order));
    }

    /// Forbids the scene's instrument to a party.
    pub fn restrict(&mut self, restriction: ScriptRestriction) {
        self.push(Action::Restrict(restriction));
    }

    /// Brings news that is good for the lead's side by this many ticks.
    pub fn news(&mut self, ticks: i64) {
        self.push(Action::News(ticks));
    }

    /// Trades once at the middle, so that the last price is near the others again.
    pub fn settle(&mut self) {
        self.pause(1_500 * MS);
        self.rest(Role::Other, Direction::With, 0, 100);
        self.pause(1_200 * MS);
        self.take(Role::Other, Direction::Against, 0, 100);
    }

    /// Marks the last step: it completes the label, unless the scene is a near miss.
    pub fn fires(&mut self, completion: Completion) {
        self.fires_for(completion, None);
    }

    /// Marks the last step as [`Script::fires`] does, with the reason of the alert.
    pub fn fires_for(&mut self, completion: Completion, reason: Option<&'static str>) {
        if self.miss.is_none() {
            self.mark(LabelMark { completion, key: self.key, reason });
        }
    }

    /// Marks the last step: it completes a label with a key of its own, also in a near miss.
    pub fn fires_always(
        &mut self,
        completion: Completion,
        key: &'static [KeyPart],
        reason: Option<&'static str>,
    ) {
        self.mark(LabelMark { completion, key, reason });
    }

    fn mark(&mut self, mark: LabelMark) {
        self.steps.last_mut().expect("a mark follows its step").labels.push(mark);
    }

    fn enter(&mut self, entry: OrderEntry) -> ScriptOrder {
        self.push(Action::Enter(entry));
        self.orders += 1;
        ScriptOrder(self.orders - 1)
    }

    fn push(&mut self, action: Action) {
        let (after_ns, book) = (self.clock_ns, self.book);
        self.steps.push(Step { after_ns, book, action, labels: Vec::new() });
    }
}

/// A scene that plays a script.
pub(crate) struct ScriptedScene {
    definition: &'static SceneDefinition,
    cast: ScriptCast,
    books: [u32; 2],
    side: Side,
    n: usize,
    edge: bool,
    script: Script,
    stage: ScriptStage,
    middles: [i64; 2],
    orders: Vec<OrderRef>,
    last_lead_oid: u64,
    last_news: u64,
    first_seq: u64,
}

/// How far a script is.
#[derive(Debug, Clone, Copy)]
enum ScriptStage {
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
            books: [placement.book, placement.other_book],
            side: rng.pick(definition.sides),
            n,
            edge: rng.one_in(3) && miss.is_none(),
            script: Script::new(definition.key, miss),
            stage: ScriptStage::Unwritten,
            middles: [0; 2],
            orders: Vec::new(),
            last_lead_oid: 0,
            last_news: 0,
            first_seq: 0,
        }
    }

    fn books(&self) -> &[u32] {
        &self.books[..1 + usize::from(self.script.is_in_both)]
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

    fn write(&mut self, stage: &mut SceneContext<'_>) {
        self.middles = self.books.map(|book| stage.fair_of(book));
        let listed = stage.x.world.listed(self.books[0]);
        let (side, middle, n, edge) = (self.side, self.middles[0], self.n, self.edge);
        let mut terms = SceneTerms { rng: stage.rng, listed, side, middle, n, edge };
        (self.definition.write)(&mut terms, &mut self.script);
        for &book in self.books() {
            stage.quiet(book, true);
        }
    }

    /// Clears the books between the walls. Returns false while orders remain.
    fn clear(&mut self, stage: &mut SceneContext<'_>, tries: u8) -> bool {
        let mut is_clear = true;
        for (n, &book) in self.books().iter().enumerate() {
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
        for (n, &book) in self.books().iter().enumerate() {
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
                let order = stage.submit(member, venue_book, side, px, entry.qty, entry.tif, 0);
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
        }
        for LabelMark { completion, key, reason } in labels {
            let seq = self.find_completion(stage, before, completion);
            let key = self.alert_key(stage, key);
            stage.label(self.definition.scenario, key, reason, self.first_seq, seq);
        }
    }

    /// Returns the ordinal of the event that completes a label, among the events of the present step.
    fn find_completion(&self, stage: &SceneContext<'_>, before: usize, completion: Completion) -> u64 {
        let is_of = |member: u32, role: Role| match role {
            Role::Lead => member == self.cast.participants.lead,
            Role::Partner => Some(member) == self.cast.partner,
            Role::Other => [self.cast.participants.buyer, self.cast.participants.seller].contains(&member),
        };
        let matches = |body: &DayEventBody| match (completion, body) {
            (Completion::Entry, DayEventBody::New(_))
            | (Completion::Cancel, DayEventBody::Cancel(_))
            | (Completion::Trade, DayEventBody::Trade { .. })
            | (Completion::LastExec, DayEventBody::Exec { .. }) => true,
            (Completion::Exec(role), DayEventBody::Exec { order, .. }) => is_of(order.member, role),
            _ => false,
        };
        let mut events =
            stage.x.out[before..].iter().filter(|event| matches(&event.body)).map(|event| event.seq);
        let first = events.next().expect("the step has the event that completes the label");
        let last = events.next_back();
        assert!(
            last.is_none() || completion == Completion::LastExec,
            "a step of {self:?} has several events that may complete the label"
        );
        last.unwrap_or(first)
    }

    fn alert_key(&self, stage: &SceneContext<'_>, parts: &[KeyPart]) -> AlertLabelKey {
        let (world, lead, book) = (&stage.x.world, self.cast.participants.lead, self.books[0]);
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
            KeyPart::Instr => ("instr", world.isin(book).to_owned()),
            KeyPart::Side => ("side", self.side.letter().to_owned()),
            KeyPart::News => ("news_id", super::super::names::news_text(self.last_news)),
            KeyPart::Oid => ("oid", super::super::names::oid_text(self.last_lead_oid)),
        };
        AlertLabelKey(parts.iter().map(part).collect())
    }

    fn end(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        if let (Some(reason), false) = (self.script.miss, self.script.is_abandoned) {
            let key = self.alert_key(stage, self.script.key);
            stage.near_miss(self.definition.scenario, key, reason, self.first_seq);
        }
        for &book in self.books() {
            stage.quiet(book, false);
        }
        None
    }
}

impl Scene for ScriptedScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        match self.stage {
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

/// Makes a cast without a partner.
pub(crate) fn solo(world: &mut SimulatedMarket, _miss: Option<&'static str>) -> ScriptCast {
    ScriptCast { participants: SceneParticipants::new(world, false), partner: None }
}

/// Either side.
pub(crate) const BOTH_SIDES: &[Side] = &[Side::Buy, Side::Sell];
