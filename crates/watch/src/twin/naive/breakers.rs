//! The slow twin: keeps all that ever happened and looks through it again for each event.

use crate::breakers::orders::{price, quantity, value_of};
use crate::breakers::{
    BreakerAction, BreakerRules, ControlVerb, LimitMeasure, RecordedControl, ScopeKind, UnknownPrice,
};
use crate::exact::QuantitySum;
use crate::ids::id_text;
use crate::twin::naive::after_reduction;
use std::collections::BTreeMap;
use unitape_model::{
    Decimal, Dictionary, Event, EventField, EventKind, EventValue, Position, Price, UnixNanos, flags,
};

/// The names of the scopes of an event, by kind.
type ScopeNames = [Option<String>; 8];

/// The signals of a breaker at an event, in short: id, action, and the end of a trip.
pub type NaiveSignal = (String, ControlVerb, Option<UnixNanos>);

/// A breaker that is slow and simple.
pub struct NaiveBreaker {
    rules: BreakerRules,
    now: i64,
    facts: Vec<Fact>,
    /// Number of facts, limit and scope of each forgetting.
    forgotten: Vec<(usize, usize, String)>,
    active: Vec<(ScopeKind, String, NaiveTrip)>,
    orders: BTreeMap<(u16, String), NaiveOrder>,
    parents: BTreeMap<String, (Option<Decimal>, QuantitySum)>,
    prices: BTreeMap<u32, Price>,
    currencies: BTreeMap<u32, String>,
}

#[derive(Clone)]
struct NaiveTrip {
    action: BreakerAction,
    until: Option<i64>,
    dry_run: bool,
    limit: Option<usize>,
}

#[derive(Clone, Default)]
struct NaiveOrder {
    scopes: ScopeNames,
    qty: Option<Decimal>,
    px: Option<Price>,
    executed: QuantitySum,
    parent: Option<String>,
    value: i128,
    ccy: Option<String>,
}

struct Fact {
    now: i64,
    scopes: ScopeNames,
    is_message: bool,
    repeat: Option<String>,
    value: i128,
    is_unpriced: bool,
    ccy: Option<String>,
    is_overfilled: Vec<(QuantitySum, Decimal)>,
}

impl NaiveBreaker {
    /// Begins at the start of a tape.
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            now: 0,
            facts: Vec::new(),
            forgotten: Vec::new(),
            active: Vec::new(),
            orders: BTreeMap::new(),
            parents: BTreeMap::new(),
            prices: BTreeMap::new(),
            currencies: BTreeMap::new(),
        }
    }

    /// Returns the scopes that are tripped, with the effect, and whether it is a rehearsal.
    pub fn tripped(&self) -> Vec<(String, BreakerAction, bool)> {
        let text = |(kind, name, trip): &(ScopeKind, String, NaiveTrip)| {
            (format!("{}={name}", kind.name()), trip.action, trip.dry_run)
        };
        let mut all: Vec<_> = self.active.iter().map(text).collect();
        all.sort();
        all
    }

    /// Takes an act of a person.
    pub fn apply(&mut self, control: &RecordedControl) {
        let (kind, name) = (control.scope.kind, control.scope.name.clone());
        match control.verb {
            ControlVerb::Trip(action) => {
                let until = control.until.map(|until| until.0);
                if until.is_none_or(|until| until > self.now) {
                    let trip = NaiveTrip { action, until, dry_run: control.dry_run, limit: None };
                    let there = self.active.iter().find(|(k, n, t)| {
                        (*k, n) == (kind, &name) && t.dry_run == control.dry_run && t.action == action
                    });
                    let end = |until: Option<i64>| until.unwrap_or(i64::MAX);
                    if there.is_some_and(|(_, _, there)| end(until) > end(there.until)) {
                        self.active
                            .retain(|(k, n, t)| (*k, n) != (kind, &name) || t.dry_run != control.dry_run);
                    }
                    self.put(kind, name, trip);
                }
            }
            ControlVerb::Resume => {
                self.active.retain(|(k, n, _)| (*k, n) != (kind, &name));
                for limit in 0..self.rules.limits.len() {
                    if self.rules.limits[limit].scope == kind {
                        self.forgotten.push((self.facts.len(), limit, name.clone()));
                    }
                }
            }
            ControlVerb::Warn => {}
        }
    }

    /// Takes an event and returns the signals that it causes.
    pub fn on_event(
        &mut self,
        event: &Event<'_>,
        position: Position,
        names: &Dictionary,
    ) -> Vec<NaiveSignal> {
        if event.header().flags() & flags::CLOCK_AHEAD == 0 && event.ts_event().0 > self.now {
            self.now = event.ts_event().0;
        }
        let now = self.now;
        let (over, active) = std::mem::take(&mut self.active)
            .into_iter()
            .partition(|(_, _, trip): &(_, _, NaiveTrip)| trip.until.is_some_and(|until| until <= now));
        self.active = active;
        for (_, name, trip) in over {
            self.forgotten.extend(trip.limit.map(|limit| (self.facts.len(), limit, name)));
        }
        if event.unmapped_fields().any(|(name, json)| name == "repeat" && json == "\"Y\"") {
            return Vec::new();
        }
        let mut out = Vec::new();
        if let Some(fact) = self.fact(event, names) {
            self.facts.push(fact);
            for limit in 0..self.rules.limits.len() {
                out.extend(self.judge(limit, position));
            }
        }
        self.learn(event);
        out
    }

    fn judge(&mut self, number: usize, position: Position) -> Option<NaiveSignal> {
        let limit = self.rules.limits[number].clone();
        let last = self.facts.len() - 1;
        let fact = &self.facts[last];
        let name = fact.scopes[limit.scope as usize].clone()?;
        if !limit.has(&name) {
            return None;
        }
        let id = format!("{}:{}={name}@{}", limit.name, limit.scope.name(), position.0);
        let until = limit.until_ns.map(|long| self.now + long);
        let (added, max) = match limit.measure {
            LimitMeasure::Messages { max, .. } => (i128::from(fact.is_message), i128::from(max)),
            LimitMeasure::Repeats { max, .. } => (i128::from(fact.repeat.is_some()), i128::from(max)),
            LimitMeasure::GrossNotional { max_nano, unknown_price, .. } => {
                let is_trip = fact.is_unpriced && unknown_price == UnknownPrice::Trip;
                (if is_trip { max_nano + 1 } else { fact.value }, max_nano)
            }
            LimitMeasure::Overfill { max_percent } => {
                let is_over = fact
                    .is_overfilled
                    .iter()
                    .any(|(sum, of)| sum.times(100) > QuantitySum::from_decimal(*of).times(max_percent));
                (if is_over { 2 } else { 0 }, 1)
            }
        };
        if added == 0 {
            return None;
        }
        let used = match limit.measure {
            LimitMeasure::Overfill { .. } => added,
            _ if fact.is_unpriced && matches!(limit.measure, LimitMeasure::GrossNotional { .. }) => added,
            _ => self.used(number, &name, last, self.now, last),
        };
        if used > max {
            let trip = NaiveTrip { action: limit.action, until, dry_run: limit.dry_run, limit: Some(number) };
            return self
                .put(limit.scope, name, trip)
                .then(|| (id, ControlVerb::Trip(limit.action), until.map(UnixNanos)));
        }
        let share = max * i128::from(limit.warn?);
        let is_used = used * 1000 >= share;
        // Warned already: the event before of this kind was over the share as well, and something of then is still in the window.
        let earlier = (self.since(number, &name)..last).rev().find(|n| self.is_alike(number, *n, last));
        let has_warned = earlier.is_some_and(|earlier| {
            let then = self.facts[earlier].now;
            self.used(number, &name, earlier, then, earlier) * 1000 >= share
                && self.used(number, &name, last, self.now, last) > added
        });
        (is_used && !has_warned).then(|| (id + "!", ControlVerb::Warn, None))
    }

    /// Sums the facts alike `like`, up to the fact `to`, in the window that ends at `now`.
    fn used(&self, number: usize, name: &str, like: usize, now: i64, to: usize) -> i128 {
        let window = match self.rules.limits[number].measure {
            LimitMeasure::Messages { window_ns, .. }
            | LimitMeasure::Repeats { window_ns, .. }
            | LimitMeasure::GrossNotional { window_ns, .. } => window_ns,
            LimitMeasure::Overfill { .. } => 0,
        };
        let is_notional = matches!(self.rules.limits[number].measure, LimitMeasure::GrossNotional { .. });
        (self.since(number, name)..=to)
            .filter(|n| self.facts[*n].now > now.saturating_sub(window) && self.is_alike(number, *n, like))
            .map(|n| if is_notional { self.facts[n].value } else { 1 })
            .sum()
    }

    /// Returns the first fact that the limit has not forgotten of the scope.
    fn since(&self, number: usize, name: &str) -> usize {
        let mine = self.forgotten.iter().filter(|(_, limit, scope)| *limit == number && scope == name);
        mine.map(|(facts, ..)| *facts).max().unwrap_or(0)
    }

    fn is_alike(&self, number: usize, a: usize, b: usize) -> bool {
        let limit = &self.rules.limits[number];
        let (a, b) = (&self.facts[a], &self.facts[b]);
        let is_of_scope = a.scopes[limit.scope as usize] == b.scopes[limit.scope as usize];
        is_of_scope
            && match limit.measure {
                LimitMeasure::Messages { .. } => a.is_message,
                LimitMeasure::Repeats { .. } => a.repeat.is_some() && a.repeat == b.repeat,
                LimitMeasure::GrossNotional { .. } => a.value > 0 && a.ccy == b.ccy,
                LimitMeasure::Overfill { .. } => false,
            }
    }

    fn put(&mut self, kind: ScopeKind, name: String, trip: NaiveTrip) -> bool {
        let is_same = |(k, n, t): &(ScopeKind, String, NaiveTrip)| {
            (*k, n) == (kind, &name) && t.dry_run == trip.dry_run
        };
        if self.active.iter().any(|other| is_same(other) && other.2.action >= trip.action) {
            return false;
        }
        self.active.retain(|other| !is_same(other));
        self.active.push((kind, name, trip));
        true
    }

    fn fact(&mut self, event: &Event<'_>, names: &Dictionary) -> Option<Fact> {
        let kind = event.kind();
        let text = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Text(text)) => Some(text.to_owned()),
            _ => None,
        };
        if kind == EventKind::Parent {
            let parent = id_text(event, EventField::Parent)?;
            self.parents.insert(parent, (quantity(event), QuantitySum::ZERO));
            return None;
        }
        let family = [EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel, EventKind::Exec];
        if !family.contains(&kind) {
            return None;
        }
        let key = id_text(event, EventField::Oid).map(|oid| (event.venue(), oid));
        let known = key.as_ref().and_then(|key| self.orders.get(key)).cloned();
        let known = known.filter(|_| kind != EventKind::OrderNew).unwrap_or_default();
        let mut order = known.clone();
        for scope in ScopeKind::ALL {
            if let Some(EventValue::Sym(dict, id)) = event.field(scope.field(), &mut [0; 36]) {
                order.scopes[scope as usize] = names.name(dict, id).map(str::to_owned);
            }
        }
        for level in [2, 1, 0] {
            for below in level + 1..4 {
                if order.scopes[level].is_none()
                    && let Some(name) = &order.scopes[below]
                {
                    order.scopes[level] =
                        self.rules.tree.parents_of(below, name).and_then(|above| above[level].clone());
                }
            }
        }
        order.parent = id_text(event, EventField::Parent).or(known.parent.clone());
        let reason = text(EventField::Reason);
        let is_venues_own = kind == EventKind::OrderCancel && reason.is_some_and(|word| word != "rejected");
        let mut fact = Fact {
            now: self.now,
            scopes: order.scopes.clone(),
            is_message: kind != EventKind::Exec && !is_venues_own,
            repeat: None,
            value: 0,
            is_unpriced: false,
            ccy: known.ccy.clone(),
            is_overfilled: Vec::new(),
        };
        if matches!(kind, EventKind::OrderNew | EventKind::OrderAmend) {
            order.px = price(event, EventField::Px).or(known.px);
            order.qty = quantity(event).or(known.qty);
            let decimal = |field| match event.field(field, &mut [0; 36]) {
                Some(EventValue::Decimal(decimal)) => Some(decimal),
                _ => None,
            };
            if kind == EventKind::OrderAmend
                && quantity(event).or(decimal(EventField::Left)).is_none()
                && let (Some(qty), Some(by)) = (known.qty, decimal(EventField::QtyReduced))
            {
                order.qty = Some(after_reduction(qty, by));
            }
            let of_instr = self.currencies.get(&event.instrument().0).cloned();
            order.ccy = known.ccy.clone().or_else(|| text(EventField::Ccy).or(of_instr));
            fact.ccy = order.ccy.clone();
            let px = order.px.or_else(|| self.prices.get(&event.instrument().0).copied());
            match (px, order.qty) {
                (Some(px), Some(qty)) => {
                    order.value = value_of(px, qty);
                    fact.value = (order.value - known.value).max(0);
                }
                (None, Some(_)) => fact.is_unpriced = true,
                _ => {}
            }
            if kind == EventKind::OrderNew {
                let (side, instr) = (text(EventField::Side), event.instrument());
                fact.repeat = Some(format!("{instr} {side:?} {:?} {:?}", order.px, order.qty));
            }
        }
        if kind == EventKind::Exec {
            let qty = quantity(event)?;
            order.executed.add(qty);
            fact.is_overfilled.extend(order.qty.map(|of| (order.executed, of)));
            if let Some((of, sum)) = order.parent.as_ref().and_then(|parent| self.parents.get_mut(parent)) {
                sum.add(qty);
                fact.is_overfilled.extend(of.map(|of| (*sum, of)));
            }
        }
        let is_order = matches!(kind, EventKind::OrderNew | EventKind::OrderAmend) || known.qty.is_some();
        self.orders.extend(key.filter(|_| is_order).map(|key| (key, order)));
        Some(fact)
    }

    fn learn(&mut self, event: &Event<'_>) {
        let instr = event.instrument().0;
        let is_cancelled =
            matches!(event.field(EventField::Action, &mut [0; 36]), Some(EventValue::Text("cancel")));
        match event.kind() {
            EventKind::Trade | EventKind::Exec | EventKind::RefPx if !is_cancelled => {
                self.prices.extend(price(event, EventField::Px).map(|px| (instr, px)));
            }
            EventKind::Ref => {
                if let Some(px) = price(event, EventField::PrevClose) {
                    self.prices.entry(instr).or_insert(px);
                }
                if let Some(EventValue::Text(ccy)) = event.field(EventField::Ccy, &mut [0; 36]) {
                    self.currencies.insert(instr, ccy.to_owned());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakers::{Breaker, Scope};
    use proptest::prelude::*;
    use unitape_model::{EventBuilder, InlineId, NameKind, TapePosition, frames};

    const RULES: &str = "
[[member]]
firm = 'F1'
desk = 'D1'
trader = 'T1'
algo = 'A1'
[[member]]
firm = 'F1'
desk = 'D2'
trader = 'T2'
[[limit]]
name = 'messages'
scope = 'trader'
messages = 3
window = '10us'
warn = 0.6
until = '20us'
[[limit]]
name = 'firm'
scope = 'firm'
messages = 6
window = '20us'
action = 'kill'
[[limit]]
name = 'repeats'
scope = 'desk'
repeats = 2
window = '15us'
warn = 0.5
[[limit]]
name = 'notional'
scope = 'desk'
names = ['D1']
gross_notional = 30
window = '25us'
warn = 0.7
action = 'kill'
until = '10us'
[[limit]]
name = 'rehearsal'
scope = 'instr'
gross_notional = 20
window = '25us'
dry_run = true
unknown_price = 'trip'
[[limit]]
name = 'overfill'
scope = 'algo'
overfill = 100
until = '5us'
[[limit]]
name = 'half'
scope = 'owner'
overfill = 50
";

    #[derive(Clone, Debug)]
    struct Step {
        kind: u8,
        by: i64,
        trader: u8,
        instr: u8,
        oid: u8,
        parent: u8,
        px: u8,
        qty: u8,
        flags: u8,
        act: u8,
    }

    fn step() -> impl Strategy<Value = Step> {
        let times = prop::sample::select(vec![0i64, 0, 1, 2, 5, 9, 10, 11, -3, -30, 26, 1_000]);
        let many = (0u8..12, times, 0u8..4, 0u8..3, 0u8..6, 0u8..3);
        (many, 0u8..4, 0u8..5, 0u8..16, 0u8..40).prop_map(|(many, px, qty, flags, act)| {
            let (kind, by, trader, instr, oid, parent) = many;
            Step { kind, by, trader, instr, oid, parent, px, qty, flags, act }
        })
    }

    /// Appends the event of a step.
    fn write(step: &Step, ts: i64, arena: &mut Vec<u8>) {
        let kind = match step.kind {
            0..=3 => EventKind::OrderNew,
            4 => EventKind::OrderAmend,
            5 | 6 => EventKind::OrderCancel,
            7 | 8 => EventKind::Exec,
            9 => EventKind::Trade,
            10 => EventKind::Parent,
            _ => EventKind::Ref,
        };
        let mut event = EventBuilder::begin(arena, kind, UnixNanos(ts));
        let mut set = |field, value: EventValue<'_>| _ = event.set_field(field, value);
        let sym = |dict, id: u8| EventValue::Sym(dict, id.into());
        let oid = [b'O', step.oid];
        let parent = [b'P', step.parent];
        if step.instr > 0 || matches!(kind, EventKind::Trade | EventKind::Ref) {
            set(EventField::Instr, sym(NameKind::Instrument, step.instr.max(1)));
        }
        match kind {
            EventKind::Ref => {
                if step.flags & 1 > 0 {
                    set(EventField::PrevClose, EventValue::Price(Price(i64::from(step.px) * 1_000_000_000)));
                }
                set(EventField::Ccy, EventValue::Text(["GBP", "EUR"][usize::from(step.flags & 1)]));
            }
            EventKind::Parent => set(EventField::Parent, EventValue::Id(InlineId::Text(&parent))),
            EventKind::Trade => {}
            _ => {
                set(EventField::Oid, EventValue::Id(InlineId::Text(&oid)));
                if step.trader > 0 {
                    set(EventField::Trader, sym(NameKind::Trader, step.trader));
                }
                if step.flags & 4 > 0 {
                    set(EventField::Algo, sym(NameKind::Algo, 1));
                }
                if step.flags & 8 > 0 {
                    set(EventField::Owner, sym(NameKind::Owner, 1));
                }
                if step.parent > 0 {
                    set(EventField::Parent, EventValue::Id(InlineId::Text(&parent)));
                }
                set(EventField::Side, EventValue::Text(["B", "S"][usize::from(step.flags & 1)]));
                if kind == EventKind::OrderCancel && step.flags & 2 > 0 {
                    set(
                        EventField::Reason,
                        EventValue::Text(["rejected", "expired"][usize::from(step.flags & 1)]),
                    );
                }
            }
        }
        if kind != EventKind::Ref && kind != EventKind::Parent && step.px > 0 {
            set(EventField::Px, EventValue::Price(Price(i64::from(step.px) * 1_500_000_000)));
        }
        if kind != EventKind::Ref && kind != EventKind::OrderCancel && step.qty > 0 {
            let qty = Decimal::new(i64::from(step.qty), if step.qty == 3 { -1 } else { 0 }).unwrap();
            let is_reduction = kind == EventKind::OrderAmend && step.flags & 1 > 0;
            let field = if is_reduction { EventField::QtyReduced } else { EventField::Qty };
            set(field, EventValue::Decimal(qty));
            if is_reduction && step.flags & 2 > 0 {
                let field = if step.flags & 4 > 0 { EventField::Qty } else { EventField::Left };
                set(field, EventValue::Decimal(Decimal::from_int(2)));
            }
        }
        if event.missing_field().is_some() {
            event.abandon();
        } else {
            let ahead = if step.act == 39 { flags::CLOCK_AHEAD } else { 0 };
            event.finish(flags::LAST | ahead).unwrap();
        }
    }

    fn names() -> Vec<u8> {
        let mut arena = Vec::new();
        let all = [
            (NameKind::Trader, ["T1", "T2", "T3"]),
            (NameKind::Instrument, ["I1", "I2", "I3"]),
            (NameKind::Algo, ["A1", "A2", "A3"]),
            (NameKind::Owner, ["O1", "O2", "O3"]),
        ];
        for (dict, names) in all {
            for (n, name) in names.iter().enumerate() {
                EventBuilder::define(&mut arena, dict, n as u32 + 1, name).unwrap();
            }
        }
        arena
    }

    fn act(step: &Step, ts: i64) -> Option<RecordedControl> {
        let verb = match step.act {
            0 => ControlVerb::Trip(BreakerAction::Halt),
            1 => ControlVerb::Trip(BreakerAction::Kill),
            2 | 3 => ControlVerb::Resume,
            _ => return None,
        };
        let scopes = ["trader=T1", "desk=D1", "firm=F1", "instr=I1"];
        Some(RecordedControl {
            id: format!("act-{ts}"),
            verb,
            scope: Scope::parse(scopes[usize::from(step.px)]).unwrap(),
            ts: UnixNanos(ts),
            cause: TapePosition { tape: 1, position: Position(0) },
            reason: None,
            detail: None,
            user: Some("anna".to_owned()),
            second_user: None,
            until: (step.qty == 1).then_some(UnixNanos(ts + 7_000)),
            dry_run: step.qty == 2,
        })
    }

    /// Plays steps to both; returns how many signals there were of trips and of warnings.
    fn agree(steps: &[Step]) -> Result<[u64; 2], TestCaseError> {
        let rules = BreakerRules::parse(RULES, "rules").unwrap();
        let (mut fast, mut slow) = (Breaker::new(rules.clone()), NaiveBreaker::new(rules));
        let (mut out, mut counts, mut ts, mut position) = (Vec::new(), [0; 2], 1_000_000i64, 0u64);
        for (_, _, frame) in frames(&names()) {
            fast.on_frame(Position(0), frame, &mut out).unwrap();
        }
        for step in steps {
            ts += step.by * 1_000;
            if let Some(act) = act(step, ts) {
                fast.apply(&act);
                slow.apply(&act);
            }
            let mut arena = Vec::new();
            write(step, ts, &mut arena);
            for (_, _, frame) in frames(&arena) {
                position += 64;
                out.clear();
                fast.on_frame(Position(position), frame, &mut out).unwrap();
                let event = Event::new(frame).unwrap();
                let wanted = slow.on_event(&event, Position(position), fast.names.dictionary());
                let found: Vec<_> = out.iter().map(|s| (s.id.clone(), s.verb, s.until)).collect();
                prop_assert_eq!(&found, &wanted);
                for (_, verb, _) in found {
                    counts[usize::from(verb == ControlVerb::Warn)] += 1;
                }
                let mut tripped: Vec<_> =
                    fast.tripped().iter().map(|(s, t)| (s.to_string(), t.action, t.dry_run)).collect();
                tripped.sort();
                prop_assert_eq!(tripped, slow.tripped());
            }
        }
        Ok(counts)
    }

    #[test]
    fn the_breaker_agrees_with_its_twin() {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(600));
        let counts = std::cell::Cell::new([0u64; 2]);
        let steps = prop::collection::vec(step(), 1..60);
        runner
            .run(&steps, |steps| {
                let [trips, warnings] = agree(&steps)?;
                let [a, b] = counts.get();
                counts.set([a + trips, b + warnings]);
                Ok(())
            })
            .unwrap();
        let [trips, warnings] = counts.get();
        assert!(trips > 1_000 && warnings > 200, "{trips} trips, {warnings} warnings");
    }
}
