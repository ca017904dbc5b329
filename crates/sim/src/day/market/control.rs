//! What a market obeys: requests that are refused from a control on, until another one resumes them.
//!
//! ```text
//!   control halt scope=trader T00012 ──▶ gate ──▶ his next order: order_cancel, reason rejected
//!                                         │       his next amend: no event, the order keeps its terms
//!                                         │       his next cancel: accepted
//!   control resume, the same scope ───────┘  or the time `until` comes
//! ```

use unitape_model::NameKind;

use super::super::Sim;
use super::super::event::{MarketPhase, OrderTicket};
use super::super::plan::SceneStage;
use super::super::world::SimulatedMarket;
use crate::error::Error;
use crate::rng::Rng;

/// A control, with the fields of the event of this name. The names together define its scope; without a name the scope
/// is the whole market.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct ControlRequest {
    /// Time from which on it is obeyed, nanoseconds since the epoch.
    pub ts: u64,
    /// The action of the control.
    pub action: ControlAction,
    /// The id of the control.
    pub id: Option<String>,
    /// The word for the scope; the name that it calls for must be there.
    pub scope_kind: Option<String>,
    /// MIC of a venue.
    pub venue: Option<String>,
    /// ISIN of an instrument.
    pub instr: Option<String>,
    /// Name of a firm.
    pub firm: Option<String>,
    /// Name of a trader.
    pub trader: Option<String>,
    /// Name of a beneficial owner.
    pub owner: Option<String>,
    /// Name of an account.
    pub acct: Option<String>,
    /// Name of a desk.
    pub desk: Option<String>,
    /// Name of an algorithm.
    pub algo: Option<String>,
    /// The reason, in a word.
    pub reason: Option<String>,
    /// The name of the requester.
    #[serde(rename = "by")]
    pub requester: Option<String>,
    /// When it ends by itself, nanoseconds since the epoch.
    pub until: Option<u64>,
    /// Only a rehearsal: nothing changes.
    pub dry_run: bool,
}

/// The action of a control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAction {
    /// Requests of the scope are refused.
    #[default]
    Halt,
    /// The same.
    Reject,
    /// The same.
    Block,
    /// The same, and what rests is cancelled.
    Kill,
    /// The controls of the same scope end; of the whole market, all do.
    Resume,
}

impl ControlAction {
    /// Returns the word in events.
    pub const fn word(self) -> &'static str {
        match self {
            ControlAction::Halt => "halt",
            ControlAction::Reject => "reject",
            ControlAction::Block => "block",
            ControlAction::Kill => "kill",
            ControlAction::Resume => "resume",
        }
    }
}

/// The fields of a JSON object, each once: two values for one field would be ambiguous.
struct UniqueFields(serde_json::Map<String, serde_json::Value>);

impl<'de> serde::Deserialize<'de> for UniqueFields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;

        impl<'de> serde::de::Visitor<'de> for FieldVisitor {
            type Value = UniqueFields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut input: A) -> Result<UniqueFields, A::Error> {
                let mut fields = serde_json::Map::new();
                while let Some((name, value)) = input.next_entry::<String, serde_json::Value>()? {
                    if fields.contains_key(&name) {
                        return Err(serde::de::Error::custom(format_args!("duplicate field `{name}`")));
                    }
                    fields.insert(name, value);
                }
                Ok(UniqueFields(fields))
            }
        }

        deserializer.deserialize_map(FieldVisitor)
    }
}

impl ControlRequest {
    /// Reads a line of the kind `control` as `docs/events.md` describes it.
    pub fn from_line(line: &str) -> Result<ControlRequest, Error> {
        #[derive(serde::Deserialize)]
        struct ControlLine {
            kind: String,
            ts: u64,
            #[serde(flatten)]
            rest: serde_json::Map<String, serde_json::Value>,
        }
        let fault = |e: serde_json::Error| Error::Control(e.to_string());
        let UniqueFields(fields) = serde_json::from_str(line).map_err(fault)?;
        let line: ControlLine = serde_json::from_value(serde_json::Value::Object(fields)).map_err(fault)?;
        if line.kind != "control" {
            return Err(Error::Control(format!("the kind is {:?}, not \"control\"", line.kind)));
        }
        if !line.rest.contains_key("action") {
            return Err(Error::Control("there is no action".to_owned()));
        }
        let non_null_fields = line.rest.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let request: ControlRequest =
            serde_json::from_value(serde_json::Value::Object(non_null_fields)).map_err(fault)?;
        let request = ControlRequest { ts: line.ts, ..request };
        request.check()?;
        Ok(request)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if [Some(self.ts), self.until].into_iter().flatten().any(|ts| i64::try_from(ts).is_err()) {
            return Err(Error::Control("a time is after the year 2262".to_owned()));
        }
        for (_, _, name) in self.scope_names() {
            if name.is_some_and(|name| name.is_empty() || name.len() > 255) {
                return Err(Error::Control("a name has 1 to 255 bytes".to_owned()));
            }
        }
        let Some(kind) = &self.scope_kind else { return Ok(()) };
        let mut names = self.scope_names().into_iter();
        match names.find(|(word, ..)| word == kind) {
            None => Err(Error::Control(format!("there is no scope_kind {kind:?}"))),
            Some((_, _, None)) => {
                Err(Error::Control(format!("the scope is a {kind}, and no {kind} is named")))
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns the names of the scope: the word of each, its kind, and the name, if it is set.
    pub(super) fn scope_names(&self) -> [(&'static str, NameKind, Option<&str>); 8] {
        [
            ("venue", NameKind::Venue, self.venue.as_deref()),
            ("instr", NameKind::Instrument, self.instr.as_deref()),
            ("firm", NameKind::Firm, self.firm.as_deref()),
            ("trader", NameKind::Trader, self.trader.as_deref()),
            ("owner", NameKind::Owner, self.owner.as_deref()),
            ("acct", NameKind::Account, self.acct.as_deref()),
            ("desk", NameKind::Desk, self.desk.as_deref()),
            ("algo", NameKind::Algo, self.algo.as_deref()),
        ]
    }
}

/// The scope of a control: the ids of its names, in the order of [`ControlRequest::scope_names`]; `None` matches any
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ControlScope([Option<u32>; 8]);

impl ControlScope {
    /// Makes the scope of a control. The world must have the control's names.
    pub fn new(world: &SimulatedMarket, request: &ControlRequest) -> ControlScope {
        let id = |dict, name: &str| world.names().get(dict, name.as_bytes()).expect("the names were added");
        ControlScope(request.scope_names().map(|(_, dict, name)| name.map(|name| id(dict, name))))
    }

    fn covers_book(&self, world: &SimulatedMarket, book: u32) -> bool {
        let ids = [world.venue_of(book) as u32 + 1, SimulatedMarket::tape_id(world.instr_of(book)).0];
        self.0.iter().zip(ids).all(|(wanted, id)| wanted.is_none_or(|wanted| wanted == id))
    }

    fn covers_member(&self, world: &SimulatedMarket, member: u32) -> bool {
        let m = &world.members[member as usize];
        let ids = [m.firm + 1, member + 1, m.owner + 1, member + 1, world.desk_of(member) + 1, m.algo];
        self.0[2..].iter().zip(ids).all(|(wanted, id)| wanted.is_none_or(|wanted| wanted == id))
    }

    fn covers(&self, world: &SimulatedMarket, terms: &OrderTicket) -> bool {
        self.covers_book(world, terms.book) && self.covers_member(world, terms.member)
    }
}

#[derive(Debug, Clone, Copy)]
struct ActiveControl {
    scope: ControlScope,
    until: Option<u64>,
}

/// The requests that controls have refused. What a venue refuses by chance is not among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct RefusedRequests {
    /// New orders.
    pub orders: u64,
    /// Amends.
    pub amends: u64,
    /// The orders of scenes that continued to send, which are among `orders`.
    pub of_runaways: u64,
}

/// Refuses requests that a control covers, and now and then a random order.
#[derive(Debug)]
pub(crate) struct RequestGate {
    active: Vec<ActiveControl>,
    pub refused: RefusedRequests,
    reject_one_in: u64,
    rng: Rng,
}

impl RequestGate {
    pub fn new(reject_one_in: u64, rng: Rng) -> RequestGate {
        RequestGate { active: Vec::new(), refused: RefusedRequests::default(), reject_one_in, rng }
    }

    /// Returns whether a control covers the request at `now`.
    fn blocks(&self, world: &SimulatedMarket, terms: &OrderTicket, now: u64) -> bool {
        self.in_force(now).any(|control| control.scope.covers(world, terms))
    }

    /// Returns whether a new order is refused, by a control or at random.
    pub fn refuses_order(&mut self, world: &SimulatedMarket, terms: &OrderTicket, now: u64) -> bool {
        self.blocks_order(world, terms, now) || self.reject_one_in > 0 && self.rng.one_in(self.reject_one_in)
    }

    /// Returns whether a control refuses a new order, and counts the refusal.
    pub fn blocks_order(&mut self, world: &SimulatedMarket, terms: &OrderTicket, now: u64) -> bool {
        let is_blocked = self.blocks(world, terms, now);
        self.refused.orders += u64::from(is_blocked);
        is_blocked
    }

    /// Returns whether a control refuses an amend, and counts the refusal.
    pub fn blocks_amend(&mut self, world: &SimulatedMarket, terms: &OrderTicket, now: u64) -> bool {
        let is_blocked = self.blocks(world, terms, now);
        self.refused.amends += u64::from(is_blocked);
        is_blocked
    }

    fn in_force(&self, now: u64) -> impl Iterator<Item = &ActiveControl> {
        self.active.iter().filter(move |control| control.until.is_none_or(|until| now < until))
    }

    fn obey(&mut self, request: &ControlRequest, scope: ControlScope, now: u64) {
        self.active.retain(|control| control.until.is_none_or(|until| now < until));
        if request.action != ControlAction::Resume {
            self.active.push(ActiveControl { scope, until: request.until });
        } else if scope == ControlScope([None; 8]) {
            self.active.clear();
        } else {
            self.active.retain(|control| control.scope != scope);
        }
    }
}

impl Sim {
    /// Obeys a control. Its events, if any, are then the last ones.
    pub(super) fn obey(&mut self, request: &ControlRequest) {
        self.x.out.clear();
        if request.dry_run {
            return;
        }
        let scope = ControlScope::new(&self.x.world, request);
        let now = self.x.now;
        let gate = self.x.gate.as_deref_mut().expect("a market of several days has a gate");
        gate.obey(request, scope, now);
        for n in 0..self.scenes.len() as u32 {
            if self.scenes[n as usize].stage == SceneStage::Acts {
                self.breaks_off(n);
            }
        }
        if request.action == ControlAction::Kill {
            self.cancel_all(scope);
        }
    }

    /// Breaks off a scene that a control covers and that therefore could not act as it must. Returns false if no
    /// control covers it. A scene whose lead is covered may continue to send; its requests are refused.
    pub(in super::super) fn breaks_off(&mut self, n: u32) -> bool {
        let (planned, world) = (&self.scenes[n as usize], &self.x.world);
        let gate = self.x.gate.as_deref().expect("a market with controls has a gate");
        let mut books = planned.books.to_vec();
        if planned.scenario.is_on_all_venues() {
            books = planned.books_of_all_venues(world);
        }
        let covered = gate.in_force(self.x.now).any(|control| {
            books.iter().any(|&book| control.scope.covers_book(world, book))
                && planned.cast.clone().any(|member| control.scope.covers_member(world, member))
        });
        if covered {
            let lead = planned.cast.start;
            let is_refused = gate.in_force(self.x.now).any(|control| {
                control.scope.covers_member(world, lead) && control.scope.covers_book(world, planned.books[0])
            });
            if is_refused && planned.stage == SceneStage::Acts {
                self.release_books(n);
                self.scenes[n as usize].stage = SceneStage::Refused;
            } else if !is_refused || planned.stage != SceneStage::Refused {
                self.end_scene(n);
            }
        }
        covered
    }

    fn end_scene(&mut self, n: u32) {
        self.scenes[n as usize].stage = SceneStage::Over;
        self.release_books(n);
    }

    /// Lets the background into the books of a scene again.
    fn release_books(&mut self, n: u32) {
        for book in self.scenes[n as usize].books_of_all_venues(&self.x.world) {
            self.x.desk_mut(book).quiet = false;
        }
        // A quote may leave the band before the pause is due.
        let number = self.scenes[n as usize].number;
        self.labels.timed.retain(|label| label.scene != number || label.reason.is_none());
    }

    /// Cancels the resting orders of a scope. Orders that remain after the close expire anyway.
    fn cancel_all(&mut self, scope: ControlScope) {
        for book in 0..self.x.world.books() as u32 {
            if self.x.desk(book).phase == MarketPhase::Close || !scope.covers_book(&self.x.world, book) {
                continue;
            }
            let mut slots = self.x.all_of(book);
            slots.retain(|&slot| scope.covers(&self.x.world, &self.x.order(slot).terms));
            slots.iter().for_each(|&slot| self.x.cancel_slot(slot));
            if slots.is_empty() {
                continue;
            }
            // A scene in the book relied on the orders that it found there.
            for n in 0..self.scenes.len() as u32 {
                let planned = &self.scenes[n as usize];
                if planned.stage == SceneStage::Acts && planned.books.contains(&book) {
                    self.end_scene(n);
                }
            }
        }
    }
}
