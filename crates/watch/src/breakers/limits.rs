//! The engine: counts each event for the limits of its scopes.

use super::orders::{KnownOrder, KnownParent, OrderBookkeeping, price, quantity, value_of};
use super::rules::{BreakerRules, Limit, LimitMeasure, UnknownPrice};
use super::scope::{EventScopes, NO_SCOPE, Scope, ScopeKind, ScopeTable};
use super::trips::{ActiveTrip, BreakerSignal, ControlVerb, RecordedControl, TripTable};
use crate::error::Error;
use crate::exact::{QuantitySum, reduced};
use crate::ids::IdKey;
use crate::table::EntryRank;
use hashbrown::HashMap;
use std::collections::VecDeque;
use unitape_model::{
    Decimal, DefinitionTable, Event, EventField, EventKind, EventValue, FrameHeader, Position, Price,
    UnixNanos, flags,
};

/// The reasons why a limit did not count an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounters {
    /// Orders without a price that anybody knows.
    pub unpriced: u64,
    /// Entries of windows that were put together for want of room; they count a little longer than they should.
    pub merged: u64,
    /// Orders that were forgotten before they were over.
    pub forgotten: u64,
}

/// The use of a limit by a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// The name of the limit.
    pub limit: String,
    /// The scope.
    pub scope: Scope,
    /// Percent of the limit, rounded down.
    pub percent: u64,
}

/// Limits over the events of a tape.
pub struct Breaker {
    /// The names of the tape.
    pub names: DefinitionTable,
    limits: Vec<LimitState>,
    scopes: ScopeTable,
    books: OrderBookkeeping,
    trip_table: TripTable,
    now: i64,
    events: u64,
    unpriced: u64,
}

struct LimitState {
    limit_rule: Limit,
    window_by_key: HashMap<WindowKey, Window>,
    /// Windows after the last sweep.
    swept_windows: usize,
    merged_entries: u64,
}

/// The group that a window counts: alike orders, or all orders of a currency. Fields that do not matter are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WindowKey {
    scope: u32,
    instr: u32,
    side: u8,
    px: i64,
    qty: (i64, i8),
    ccy: u32,
}

#[derive(Default)]
struct Window {
    entries: VecDeque<(i64, i128)>,
    window_sum: i128,
    has_warned: bool,
}

/// The amounts that an event adds to limits.
struct Request {
    scopes: EventScopes,
    position: Position,
    is_message: bool,
    /// A new order: instrument, side, price and quantity.
    repeat_key: Option<(u32, u8, i64, (i64, i8))>,
    value: RequestValue,
    ccy: u32,
    /// The executed quantity and the total quantity of each order.
    filled_orders: Vec<(QuantitySum, Decimal)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestValue {
    None,
    Unknown,
    Nano(i128),
}

impl Breaker {
    /// Begins at the start of a tape.
    pub fn new(rules: BreakerRules) -> Self {
        let BreakerRules { limits, tree } = rules;
        let state = |rule| LimitState {
            limit_rule: rule,
            window_by_key: HashMap::new(),
            swept_windows: 0,
            merged_entries: 0,
        };
        Self {
            names: DefinitionTable::default(),
            limits: limits.into_iter().map(state).collect(),
            scopes: ScopeTable::new(tree),
            books: OrderBookkeeping::new(),
            trip_table: TripTable::default(),
            now: 0,
            events: 0,
            unpriced: 0,
        }
    }

    /// Takes the next frame of the tape, bookkeeping as well. Adds the signals that it causes to `out`.
    ///
    /// # Errors
    /// Fails as [`DefinitionTable::admit_frame`] does: the tape is foreign or damaged.
    pub fn on_frame(
        &mut self,
        position: Position,
        frame: &[u8],
        out: &mut Vec<BreakerSignal>,
    ) -> Result<(), Error> {
        let event = self.names.admit_frame(frame);
        let event = event.map_err(|flaw| Error::Frame { position, message: flaw.to_string() })?;
        if let Some(event) = event.filter(|_| !FrameHeader::read(frame).is_meta()) {
            self.on_event(&event, position, out);
        }
        Ok(())
    }

    fn on_event(&mut self, event: &Event<'_>, position: Position, out: &mut Vec<BreakerSignal>) {
        self.events += 1;
        if event.header().flags() & flags::CLOCK_AHEAD == 0 {
            self.now = self.now.max(event.ts_event().0);
        }
        for (scope, limit) in self.trip_table.expire(self.now) {
            if let Some(limit) = limit {
                self.limits[limit].forget_scope(scope);
            }
        }
        if event.is_repeat() {
            // Its message may have been counted already.
            return;
        }
        // An order counts at the price of before it: an execution is no price for the order that it fills.
        if let Some(request) = self.request_of(event, position) {
            for limit in 0..self.limits.len() {
                self.count(limit, &request, out);
            }
        }
        self.books.update_from_event(event);
    }

    /// Applies a control of the control tape: a person's act, or a trip of an earlier run. Warnings are ignored.
    pub fn apply(&mut self, control: &RecordedControl) {
        let scope = self.scopes.number(control.scope.clone());
        match control.verb {
            ControlVerb::Trip(action) => {
                let control_end = control.until;
                let is_over = control_end.is_some_and(|until| until.0 <= self.now);
                let (id, dry_run) = (control.id.clone(), control.dry_run);
                let trip = ActiveTrip { id, action, until: control_end, dry_run, limit: None };
                if !is_over && self.trip_table.may_replace(scope, &trip) {
                    self.trip_table.insert(scope, trip);
                }
            }
            ControlVerb::Resume => {
                self.trip_table.reset(scope);
                self.limits.iter_mut().for_each(|limit| limit.forget_scope(scope));
            }
            ControlVerb::Warn => {}
        }
    }

    /// Returns the trips in force, by scope.
    pub fn tripped(&self) -> Vec<(Scope, ActiveTrip)> {
        let mut limit_uses: Vec<_> = self
            .trip_table
            .iter()
            .map(|(scope, trip)| (self.scopes.scope(scope).clone(), trip.clone()))
            .collect();
        limit_uses.sort_by(|a, b| (&a.0, a.1.dry_run).cmp(&(&b.0, b.1.dry_run)));
        limit_uses
    }

    /// Returns the use of each limit with a window, by limit and scope; of several windows of a scope the most.
    pub fn uses(&self) -> Vec<LimitUse> {
        let mut uses = Vec::new();
        for limit in &self.limits {
            let mut of_scope = std::collections::BTreeMap::<&Scope, u64>::new();
            for (key, window) in &limit.window_by_key {
                let used_amount = window.used_at(self.now.saturating_sub(limit.window_ns()));
                let percent =
                    u64::try_from(used_amount.saturating_mul(100) / limit.limit_max()).unwrap_or(u64::MAX);
                let use_max = of_scope.entry(self.scopes.scope(key.scope)).or_default();
                *use_max = percent.max(*use_max);
            }
            let used_percents = of_scope.into_iter().filter(|(_, percent)| *percent > 0);
            uses.extend(used_percents.map(|(scope, percent)| LimitUse {
                limit: limit.limit_rule.name.clone(),
                scope: scope.clone(),
                percent,
            }));
        }
        uses
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the latest event time so far, or `None` before the first event.
    pub fn now(&self) -> Option<UnixNanos> {
        (self.events > 0).then_some(UnixNanos(self.now))
    }

    /// Returns the reasons why limits did not count orders.
    pub fn counters(&self) -> LimitCounters {
        LimitCounters {
            unpriced: self.unpriced,
            merged: self.limits.iter().map(|limit| limit.merged_entries).sum(),
            forgotten: self.books.forgotten(),
        }
    }

    /// Reads the amounts that an event adds to limits, and keeps the data that later events need.
    fn request_of(&mut self, event: &Event<'_>, position: Position) -> Option<Request> {
        let kind = event.kind();
        match kind {
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec => {}
            EventKind::Parent => {
                if let Some(parent) = IdKey::read(event, EventField::Parent) {
                    let known_parent = KnownParent { qty: quantity(event), executed: QuantitySum::ZERO };
                    self.books.parents.insert(parent, known_parent, EntryRank::Kept);
                }
                return None;
            }
            _ => return None,
        }
        let key = IdKey::read(event, EventField::Oid).map(|oid| (event.venue(), oid));
        let stored_order =
            key.and_then(|key| self.books.orders.find(&key)).map(|slot| *self.books.orders.get(slot));
        let known_order = stored_order.filter(|_| kind != EventKind::OrderNew).unwrap_or(KnownOrder::UNKNOWN);
        let mut scopes = self.scopes.named(event, self.names.dictionary());
        for (mine, of_order) in scopes.iter_mut().zip(known_order.scopes) {
            if *mine == NO_SCOPE {
                *mine = of_order;
            }
        }
        self.scopes.fill_from_tree(&mut scopes);
        let is_named_reason = match event.field(EventField::Reason, &mut [0; 36]) {
            Some(EventValue::Text(reason)) => reason != "rejected",
            _ => false,
        };
        let mut request = Request {
            scopes,
            position,
            is_message: kind != EventKind::Exec && !(kind == EventKind::OrderCancel && is_named_reason),
            repeat_key: None,
            value: RequestValue::None,
            ccy: known_order.ccy,
            filled_orders: Vec::new(),
        };
        let mut order = KnownOrder { scopes, ..known_order };
        order.parent = IdKey::read(event, EventField::Parent).or(known_order.parent);
        let mut is_over = kind == EventKind::OrderCancel;
        match kind {
            EventKind::OrderNew | EventKind::OrderAmend => {
                order.px = price(event, EventField::Px).or(known_order.px);
                let reduction =
                    event.qty_reduced().map(|amount| known_order.qty.map(|qty| reduced(qty, amount)));
                order.qty = quantity(event).or(reduction.unwrap_or(known_order.qty));
                if kind == EventKind::OrderNew || known_order.ccy == 0 {
                    order.ccy = self.books.currency_of(event);
                }
                request.ccy = order.ccy;
                request.value = self.value(event, &mut order);
                if kind == EventKind::OrderNew {
                    let side = match event.field(EventField::Side, &mut [0; 36]) {
                        Some(EventValue::Text("B")) => 1,
                        Some(EventValue::Text("S")) => 2,
                        _ => 0,
                    };
                    let qty = order.qty.map_or((0, i8::MIN), |qty| (qty.mantissa(), qty.exponent()));
                    let px = order.px.unwrap_or(Price::NONE).0;
                    request.repeat_key = Some((event.instrument().0, side, px, qty));
                }
            }
            EventKind::Exec => {
                let qty = quantity(event)?;
                order.executed.add(qty);
                request.filled_orders.extend(known_order.qty.map(|total| (order.executed, total)));
                if let Some(slot) = order.parent.and_then(|parent| self.books.parents.find(&parent)) {
                    let parent = self.books.parents.get_mut(slot);
                    parent.executed.add(qty);
                    request.filled_orders.extend(parent.qty.map(|total| (parent.executed, total)));
                }
                is_over =
                    known_order.qty.is_some_and(|total| order.executed >= QuantitySum::from_decimal(total));
            }
            _ => {}
        }
        // An order that is known only from an execution or a cancel is not kept.
        if let Some(key) = key
            && (matches!(kind, EventKind::OrderNew | EventKind::OrderAmend) || known_order.qty.is_some())
        {
            self.books.keep(key, order, is_over);
        }
        Some(request)
    }

    /// Returns the value that an order or amend adds. An amend adds only the part above its former value.
    fn value(&mut self, event: &Event<'_>, order: &mut KnownOrder) -> RequestValue {
        let Some(qty) = order.qty else { return RequestValue::None };
        let px = order.px.or_else(|| self.books.last_price(event.instrument()));
        let Some(px) = px else {
            self.unpriced += 1;
            return RequestValue::Unknown;
        };
        let old_value = std::mem::replace(&mut order.value, value_of(px, qty));
        match order.value - old_value {
            more if more > 0 => RequestValue::Nano(more),
            _ => RequestValue::None,
        }
    }

    /// Counts a request for a limit of the scope of its kind.
    fn count(&mut self, limit: usize, request: &Request, out: &mut Vec<BreakerSignal>) {
        let state = &mut self.limits[limit];
        let scope = request.scopes[state.limit_rule.scope as usize];
        if scope == NO_SCOPE || !state.limit_rule.has(&self.scopes.scope(scope).name) {
            return;
        }
        let mut key = WindowKey { scope, instr: 0, side: 0, px: 0, qty: (0, 0), ccy: 0 };
        let added = match state.limit_rule.measure {
            LimitMeasure::Messages { .. } if request.is_message => 1,
            LimitMeasure::Repeats { .. } if let Some((instr, side, px, qty)) = request.repeat_key => {
                key = WindowKey { instr, side, px, qty, ..key };
                1
            }
            LimitMeasure::GrossNotional { unknown_price, .. } => {
                key.ccy = request.ccy;
                match request.value {
                    RequestValue::Nano(value) => value,
                    RequestValue::Unknown if unknown_price == UnknownPrice::Trip => {
                        let (used, max) = (
                            "an order without a known price".to_owned(),
                            state.limit_rule.measure.max_text(),
                        );
                        return self.trip_limit(limit, scope, request.position, used, max, out);
                    }
                    _ => return,
                }
            }
            LimitMeasure::Overfill { max_percent } => {
                let hundred_times = |sum: &QuantitySum, total: &Decimal| {
                    sum.times(100) > QuantitySum::from_decimal(*total).times(max_percent)
                };
                if let Some((sum, total)) =
                    request.filled_orders.iter().find(|(sum, total)| hundred_times(sum, total))
                {
                    let (used, max) = (format!("{sum} of {total}"), state.limit_rule.measure.max_text());
                    self.trip_limit(limit, scope, request.position, used, max, out);
                }
                return;
            }
            _ => return,
        };
        let (used, is_warning) = state.add_to_window(key, self.now, added);
        let (max, measure) = (state.limit_max(), state.limit_rule.measure);
        if used > max {
            self.trip_limit(limit, scope, request.position, measure.used_text(used), measure.max_text(), out);
        } else if is_warning {
            let (used, max) = (measure.used_text(used), measure.max_text());
            let signal = self.trip_signal(limit, scope, request.position, used, max);
            out.push(BreakerSignal { id: signal.id + "!", verb: ControlVerb::Warn, until: None, ..signal });
        }
    }

    fn trip_limit(
        &mut self,
        limit: usize,
        scope: u32,
        position: Position,
        used: String,
        max: String,
        out: &mut Vec<BreakerSignal>,
    ) {
        let (action, dry_run) = (self.limits[limit].limit_rule.action, self.limits[limit].limit_rule.dry_run);
        if !self.trip_table.may_trip(scope, dry_run, action) {
            return;
        }
        let signal = self.trip_signal(limit, scope, position, used, max);
        let (id, until) = (signal.id.clone(), signal.until);
        self.trip_table.insert(scope, ActiveTrip { id, action, until, dry_run, limit: Some(limit) });
        out.push(signal);
    }

    fn trip_signal(
        &self,
        limit: usize,
        scope: u32,
        cause: Position,
        used: String,
        max: String,
    ) -> BreakerSignal {
        let rule = &self.limits[limit].limit_rule;
        let scope = self.scopes.scope(scope).clone();
        BreakerSignal {
            id: format!("{}:{scope}@{}", rule.name, cause.0),
            verb: ControlVerb::Trip(rule.action),
            scope,
            limit: rule.name.clone(),
            reason: rule.measure.name(),
            ts: UnixNanos(self.now),
            cause,
            used,
            max,
            until: rule.until_ns.map(|long| UnixNanos(self.now.saturating_add(long))),
            dry_run: rule.dry_run,
        }
    }
}

impl LimitMeasure {
    /// Returns a count or an amount in words.
    fn used_text(self, used: i128) -> String {
        match self {
            Self::GrossNotional { .. } => {
                let (units, part) = (used / NANO, used % NANO);
                let places = format!("{part:09}");
                match places.trim_end_matches('0') {
                    "" => units.to_string(),
                    places => format!("{units}.{places}"),
                }
            }
            _ => used.to_string(),
        }
    }

    pub(super) fn max_text(self) -> String {
        match self {
            Self::Messages { max, .. } | Self::Repeats { max, .. } => max.to_string(),
            Self::GrossNotional { max_nano, .. } => self.used_text(max_nano),
            Self::Overfill { max_percent } => format!("{max_percent}%"),
        }
    }
}

impl LimitState {
    fn window_ns(&self) -> i64 {
        match self.limit_rule.measure {
            LimitMeasure::Messages { window_ns, .. }
            | LimitMeasure::Repeats { window_ns, .. }
            | LimitMeasure::GrossNotional { window_ns, .. } => window_ns,
            LimitMeasure::Overfill { .. } => 0,
        }
    }

    fn limit_max(&self) -> i128 {
        match self.limit_rule.measure {
            LimitMeasure::Messages { max, .. } | LimitMeasure::Repeats { max, .. } => max.into(),
            LimitMeasure::GrossNotional { max_nano, .. } => max_nano,
            LimitMeasure::Overfill { max_percent } => max_percent.into(),
        }
    }

    /// Adds to a window. Returns its use, and whether it is to warn.
    fn add_to_window(&mut self, key: WindowKey, now: i64, added: i128) -> (i128, bool) {
        let (from, max) = (now.saturating_sub(self.window_ns()), self.limit_max());
        let is_count = !matches!(self.limit_rule.measure, LimitMeasure::GrossNotional { .. });
        self.sweep_windows(from);
        let window = self.window_by_key.entry(key).or_default();
        window.expire_entries(from);
        window.entries.push_back((now, added));
        window.window_sum = window.window_sum.saturating_add(added);
        if is_count {
            // Of a count that is passed, the last ones alone decide whether it still is.
            while window.window_sum > max + 1 {
                window.pop();
            }
        } else if window.entries.len() > ENTRIES_MAX {
            let (_, oldest) = window.entries.pop_front().expect("there are many");
            window.entries.front_mut().expect("there are many").1 += oldest;
            self.merged_entries += 1;
        }
        let share = self.limit_rule.warn.map(|thousandths| max * i128::from(thousandths));
        let is_used = share.is_some_and(|share| window.window_sum.saturating_mul(1000) >= share);
        let has_warned = std::mem::replace(&mut window.has_warned, is_used);
        (window.window_sum, is_used && !has_warned)
    }

    /// Forgets the used amounts of a scope.
    fn forget_scope(&mut self, scope: u32) {
        self.window_by_key.retain(|key, _| key.scope != scope);
    }

    /// Forgets windows that nothing is in, once there are twice as many as after the last time.
    fn sweep_windows(&mut self, from: i64) {
        if self.window_by_key.len() < 2 * self.swept_windows + SWEEP_LEAST {
            return;
        }
        self.window_by_key.retain(|_, window| window.entries.back().is_some_and(|(ts, _)| *ts > from));
        self.swept_windows = self.window_by_key.len();
    }
}

impl Window {
    fn expire_entries(&mut self, from: i64) {
        while self.entries.front().is_some_and(|(ts, _)| *ts <= from) {
            self.pop();
        }
        if self.entries.is_empty() {
            self.has_warned = false;
        }
    }

    fn pop(&mut self) {
        if let Some((_, value)) = self.entries.pop_front() {
            self.window_sum -= value;
        }
    }

    fn used_at(&self, from: i64) -> i128 {
        self.entries.iter().filter(|(ts, _)| *ts > from).map(|(_, value)| value).sum()
    }
}

const NANO: i128 = 1_000_000_000;
/// Entries of a window of amounts at most.
const ENTRIES_MAX: usize = 1 << 16;
const SWEEP_LEAST: usize = 1 << 10;
const _: () = assert!(ScopeKind::ALL.len() == 8);
