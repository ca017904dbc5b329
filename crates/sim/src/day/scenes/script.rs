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

mod player;

pub(super) use super::super::instrument_prints::InstrumentPrints;
pub(crate) use player::ScriptedScene;

use super::super::event::TimeInForce;
use super::super::world::{ListedInstrument, SimulatedMarket};
use super::restricted_list::ScriptRestriction;
use super::stage::{SceneParticipants, sign};
use super::{MS, Scenario};
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
    /// The order of the execution that completes the label, else the last order that the lead entered.
    Oid,
    /// The match of that execution, else the last match of the lead.
    MatchId,
    Firm,
    /// The client order.
    Coid,
    /// The last news of the scene.
    News,
    /// The firm of the partner, as `cpty`.
    Cpty,
    /// The instrument, as `underlying`.
    Underlying,
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
    /// The report of a position.
    Position,
    /// The next national best, which begins a limit state, and the end of that.
    LimitState,
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
    /// The middle of the second book in ticks of its own.
    pub other_middle: i64,
    /// The price of the last trade in the first book in ticks.
    pub last_px: Option<i64>,
    /// The present time, nanoseconds since the epoch.
    pub now_ts: u64,
    /// The prints of the instrument, if the scenario must know them.
    pub prints: Option<&'a InstrumentPrints>,
    /// Days from the present UTC date to the expiry of the instrument, if it expires.
    pub days_left: Option<i32>,
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
    /// The partner's firm receives the client's order.
    Receive {
        qty: i64,
    },
    /// The market publishes a reference price.
    Reference {
        px: i64,
    },
    Restrict(ScriptRestriction),
    /// News by its ticks, on the lead's side.
    News(i64),
    /// The lead buys the least part of all long holdings that is dominant, and a surplus.
    Corner {
        px: i64,
        surplus: i64,
    },
    /// The lead sells that back to the same member.
    Unwind {
        px: i64,
    },
    /// The market reports the position of the lead's owner.
    ReportPosition,
}

#[derive(Debug, Clone, Copy)]
struct OrderEntry {
    role: Role,
    direction: Direction,
    px: i64,
    qty: i64,
    tif: TimeInForce,
    kind: EntryKind,
    /// Whether the venue's order number must make a short sale exempt from the price test, or not exempt.
    is_exempt: Option<bool>,
}

/// The kind of an order of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Limit,
    /// A limit order that executes part of the client's order.
    Child,
    /// A stop order; its price is the trigger price.
    Stop,
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
        self.enter(OrderEntry { role, direction, px, qty, ..OrderEntry::RESTS })
    }

    /// Enters a stop order. It waits while the scene acts, and the script must cancel it.
    pub fn stop(&mut self, role: Role, direction: Direction, px: i64, qty: i64) -> ScriptOrder {
        self.enter(OrderEntry { role, direction, px, qty, kind: EntryKind::Stop, ..OrderEntry::RESTS })
    }

    /// Enters an order that executes at once or ends.
    pub fn take(&mut self, role: Role, direction: Direction, px: i64, qty: i64) {
        self.enter(OrderEntry { role, direction, px, qty, tif: TimeInForce::Ioc, ..OrderEntry::RESTS });
    }

    /// Lets the partner's firm receive a client's order on the lead's side.
    pub fn receive(&mut self, qty: i64) {
        self.push(Action::Receive { qty });
    }

    /// Lets the partner execute a part of the received order at once.
    pub fn take_for_client(&mut self, px: i64, qty: i64) {
        let (role, direction, tif) = (Role::Partner, Direction::With, TimeInForce::Ioc);
        self.enter(OrderEntry { role, direction, px, qty, tif, kind: EntryKind::Child, ..OrderEntry::RESTS });
    }

    /// Publishes a reference price of the instrument. It is the last one for the next step if no time passes before.
    pub fn publish_reference(&mut self, px: i64) {
        self.push(Action::Reference { px });
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

    /// Lets the lead buy the least quantity that is dominant among all long holdings, and a surplus.
    pub fn corner(&mut self, px: i64, surplus: i64) {
        self.push(Action::Corner { px, surplus });
    }

    /// Lets the lead sell what it bought so back, or no later part would be large enough.
    pub fn unwind(&mut self, px: i64) {
        self.push(Action::Unwind { px });
    }

    /// Reports the position of the lead's owner.
    pub fn report_position(&mut self) {
        self.push(Action::ReportPosition);
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

impl OrderEntry {
    /// A limit order that rests, without its party and terms.
    const RESTS: OrderEntry = OrderEntry {
        role: Role::Lead,
        direction: Direction::With,
        px: 0,
        qty: 0,
        tif: TimeInForce::Day,
        kind: EntryKind::Limit,
        is_exempt: None,
    };
}

/// Makes a cast without a partner.
pub(crate) fn solo(world: &mut SimulatedMarket, _miss: Option<&'static str>) -> ScriptCast {
    ScriptCast { participants: SceneParticipants::new(world, false), partner: None }
}

/// Makes a cast whose lead deals for its firm's own account. The partner deals for the clients of that firm, in which
/// nobody else is a member.
pub(crate) fn house(world: &mut SimulatedMarket, _miss: Option<&'static str>) -> ScriptCast {
    let [lead, partner] = world.cast_house();
    let participants = SceneParticipants { lead, buyer: world.cast(false), seller: world.cast(false) };
    ScriptCast { participants, partner: Some(partner) }
}

/// Either side.
pub(crate) const BOTH_SIDES: &[Side] = &[Side::Buy, Side::Sell];
