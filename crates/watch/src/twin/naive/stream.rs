//! Random streams, few values and many of them right on a limit, on which the fast code must agree with its twin.

use super::Twins;
use crate::alert::Alert;
use crate::params::{ParamOverlay, ScenarioSelection};
use crate::state::{StateReader, WatchState};
use crate::watch::Watch;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use unitape_model::{
    Amount, CivilDate, Decimal, Dictionary, Event, EventBuilder, EventField, EventKind, EventSchema,
    EventValue, InlineId, NameKind, Price, UnixNanos, flags, frames,
};

/// The window that streams are made for, in nanoseconds: 10 ms.
pub(crate) const W: i64 = 10_000_000;

/// One event; zero and `None` are "does not say".
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub kind: EventKind,
    /// Time since the one before.
    pub by: i64,
    pub owner: u32,
    pub group: u32,
    pub trader: u32,
    pub instr: u32,
    pub venue: u32,
    /// 0 none, 1 buy, 2 sell.
    pub side: u8,
    pub oid: u8,
    /// Match id; 0 none.
    pub id: u8,
    pub px: Option<i64>,
    pub qty: Option<(i64, i8)>,
    /// The amount by which an amend reduces its order.
    pub qty_reduced: Option<(i64, i8)>,
    pub bid: Option<i64>,
    /// The quantity of the bid, and whether a quote is partial.
    pub bid_qty: Option<i64>,
    pub partial: bool,
    pub ask: Option<i64>,
    pub tick: Option<i64>,
    /// The remaining quantity of an order.
    pub left: Option<i64>,
    pub reason: Option<&'static str>,
    /// Its time is not believed.
    pub clock_ahead: bool,
    /// Further fields. A field that the kind does not have is left out.
    pub more: Vec<(EventField, OpValue)>,
}

/// The value of a further field.
#[derive(Clone, Debug)]
#[allow(dead_code)] // each scenario uses its part
pub(crate) enum OpValue {
    /// One of the five names of a dictionary, 1 to 5, or one of its own names from 6 on (see [`names`]).
    Name(NameKind, u32),
    Names(NameKind, Vec<u32>),
    Price(i64),
    Decimal(i64, i8),
    Amount(i64, i8),
    Id(u8),
    Text(&'static str),
    Bool(bool),
    UInt(u64),
    Time(i64),
    Date(i32),
    /// A flag of a field of flags.
    Flag(&'static str),
}

impl OpValue {
    /// Sets the field, if the kind has it.
    fn set(&self, b: &mut EventBuilder<'_>, schema: &EventSchema, field: EventField) {
        let Some(spec) = schema.get(field) else { return };
        let (mut bytes, mut ids) = (Vec::new(), Vec::new());
        let value = match self {
            Self::Name(dict, id) => EventValue::Sym(*dict, *id),
            Self::Names(dict, names) => {
                names.iter().for_each(|id| ids.extend_from_slice(&id.to_le_bytes()));
                EventValue::Syms(*dict, &ids)
            }
            Self::Price(px) => EventValue::Price(Price(*px)),
            Self::Decimal(mantissa, exponent) => {
                EventValue::Decimal(Decimal::new(*mantissa, *exponent).unwrap())
            }
            Self::Amount(mantissa, exponent) => {
                EventValue::Amount(Amount::new((*mantissa).into(), *exponent).unwrap())
            }
            Self::Id(n) => EventValue::Id(match_id(*n, &mut bytes)),
            Self::Text(text) => EventValue::Text(text),
            Self::Bool(value) => EventValue::Bool(*value),
            Self::UInt(number) => EventValue::UInt(*number),
            Self::Time(ts) => EventValue::Nanos(UnixNanos(*ts)),
            Self::Date(days) => EventValue::Date(CivilDate::from_days(*days)),
            Self::Flag(flag) => {
                let names = unitape_model::schema::TRADE_FLAGS;
                let bit = names.iter().position(|name| name == flag).expect("a flag of trades");
                EventValue::Flags(names, 1 << bit)
            }
        };
        b.set(spec, value).unwrap();
    }
}

/// An event without any field.
pub(crate) const SILENT: Op = Op {
    kind: EventKind::Clock,
    by: 0,
    owner: 0,
    group: 0,
    trader: 0,
    instr: 0,
    venue: 0,
    side: 0,
    oid: 0,
    id: 0,
    px: None,
    qty: None,
    qty_reduced: None,
    bid: None,
    bid_qty: None,
    partial: false,
    ask: None,
    tick: None,
    left: None,
    reason: None,
    clock_ahead: false,
    more: Vec::new(),
};

/// Steps of time that end on and beside the edges of windows, some of them backwards.
pub(crate) fn step() -> impl Strategy<Value = i64> {
    let on = prop::sample::select(&[0, 0, 0, 1, W / 5, W / 2, W - 1, W, W + 1][..]);
    let back = prop::sample::select(&[-1, -W / 2, -W, 3 * W, -3 * W][..]);
    prop_oneof![12 => on, 1 => back]
}

/// Writes the stream as frames.
pub(crate) fn arena(ops: &[Op]) -> Vec<u8> {
    let (mut arena, mut ts) = (Vec::new(), 0);
    for op in ops {
        ts += op.by;
        let schema = EventSchema::for_kind(op.kind);
        let mut b = EventBuilder::begin(&mut arena, op.kind, UnixNanos(ts));
        let mut set = |field, value: EventValue<'_>| {
            if let Some(spec) = schema.get(field) {
                b.set(spec, value).unwrap();
            }
        };
        for (field, dict, id) in [
            (EventField::Owner, NameKind::Owner, op.owner),
            (EventField::Group, NameKind::Owner, op.group),
            (EventField::Trader, NameKind::Trader, op.trader),
            (EventField::Instr, NameKind::Instrument, op.instr),
            (EventField::Venue, NameKind::Venue, op.venue),
        ] {
            if id != 0 {
                set(field, EventValue::Sym(dict, id));
            }
        }
        let prices = [
            (EventField::Px, op.px),
            (EventField::Bid, op.bid),
            (EventField::Ask, op.ask),
            (EventField::Tick, op.tick),
        ];
        for (field, px) in prices {
            px.into_iter().for_each(|px| set(field, EventValue::Price(Price(px))));
        }
        if let Some(qty) = op.bid_qty {
            set(EventField::BidQty, EventValue::Decimal(Decimal::from_int(qty)));
        }
        if op.partial {
            set(EventField::Partial, EventValue::Bool(true));
        }
        if op.side != 0 {
            set(EventField::Side, EventValue::Text(["B", "S"][usize::from(op.side - 1)]));
        }
        if let Some((mantissa, exponent)) = op.qty {
            set(EventField::Qty, EventValue::Decimal(Decimal::new(mantissa, exponent).unwrap()));
        }
        if let Some((mantissa, exponent)) = op.qty_reduced {
            set(EventField::QtyReduced, EventValue::Decimal(Decimal::new(mantissa, exponent).unwrap()));
        }
        set(EventField::Oid, EventValue::Id(InlineId::Text(&oid(op.oid))));
        if op.id != 0 {
            set(EventField::MatchId, EventValue::Id(match_id(op.id, &mut Vec::new())));
        }
        op.more.iter().for_each(|(field, value)| value.set(&mut b, schema, *field));
        let mut set = |field, value: EventValue<'_>| {
            if let Some(spec) = schema.get(field) {
                b.set(spec, value).unwrap();
            }
        };
        if let Some(left) = op.left {
            set(EventField::Left, EventValue::Decimal(Decimal::from_int(left)));
        }
        if let Some(reason) = op.reason {
            set(EventField::Reason, EventValue::Text(reason));
        }
        b.finish(if op.clock_ahead { flags::CLOCK_AHEAD } else { 0 }).unwrap();
    }
    arena
}

fn oid(n: u8) -> Vec<u8> {
    // A name that is too long for its field in the frame.
    if n == 0 { vec![b'x'; 40] } else { vec![b'o', b'0' + n] }
}

fn match_id(n: u8, bytes: &mut Vec<u8>) -> InlineId<'_> {
    match n {
        1 => InlineId::Number(1),
        2 => InlineId::Number(u64::MAX),
        3 => {
            bytes.resize(30, b'm');
            InlineId::Text(bytes)
        }
        _ => {
            *bytes = vec![b'M', n];
            InlineId::Text(bytes)
        }
    }
}

/// Makes names of ids 1 to 5, the venue NBBO with id 6, and the names of lists, `restricted` with id 6 and `watch` with 7.
pub(crate) fn names() -> Dictionary {
    let mut names = Dictionary::default();
    for dict in NameKind::ALL {
        for n in 1..6 {
            names.intern(dict, format!("N{n}").as_bytes()).unwrap();
        }
    }
    names.intern(NameKind::Venue, b"NBBO").unwrap();
    for list in ["restricted", "watch"] {
        names.intern(NameKind::Name, list.as_bytes()).unwrap();
    }
    names
}

/// Selects one scenario with these parameters.
pub(crate) fn selection(id: &str, params: &str) -> ScenarioSelection {
    let command_line = ParamOverlay::parse(params, Some(id)).unwrap();
    ScenarioSelection { scenarios: vec![id.to_owned()], command_line, ..ScenarioSelection::default() }
}

/// Runs the fast code and returns its alerts.
pub(crate) fn run(watch: &mut Watch, arena: &[u8]) -> Vec<Alert> {
    let (names, mut out) = (names(), Vec::new());
    for ((_, _, frame), seq) in frames(arena).zip(1..) {
        watch.on_event(&Event::new(frame).unwrap(), seq, None, &names, &mut out);
    }
    out
}

/// Saves a watch and loads it into a new one. What is loaded saves itself as the same bytes.
fn reload(watch: &Watch, selection: &ScenarioSelection) -> Watch {
    let mut saved = Vec::new();
    watch.save(&mut saved);
    let mut loaded = Watch::new(selection).unwrap();
    let mut input = StateReader::new(&saved);
    loaded.load(&mut input).unwrap();
    input.finish().unwrap();
    let mut again = Vec::new();
    loaded.save(&mut again);
    assert_eq!(saved, again, "a state that was loaded");
    loaded
}

/// Compares the alerts of the fast code and the twins on this stream and counts them. Panics if they differ. They may
/// differ after the fast code has reported that its data is incomplete.
pub(crate) fn agree(selection: &ScenarioSelection, ops: &[Op]) -> usize {
    let (arena, names) = (arena(ops), names());
    let (mut watch, mut twins) = (Watch::new(selection).unwrap(), Twins::new(selection).unwrap());
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for ((_, _, frame), seq) in frames(&arena).zip(1..) {
        let event = Event::new(frame).unwrap();
        if seq as usize == ops.len() / 2 {
            watch = reload(&watch, selection);
        }
        watch.on_event(&event, seq, None, &names, &mut fast);
        if watch.metrics().any(|(_, m)| m.late > 0 || m.bound_hit > 0) {
            fast.retain(|a| a.trigger_seq < seq);
            break;
        }
        twins.on_event(&event, seq, &names, &mut slow);
        let said = |alerts: &[Alert]| -> Vec<_> {
            alerts.iter().map(|a| (a.scenario.clone(), a.ts, a.trigger_seq, a.key.clone())).collect()
        };
        assert_eq!(said(&fast), said(&slow), "fast and slow");
    }
    fast.len()
}

/// Makes streams in which a few events are flagged `clock_ahead`, and a few cancels and amends are those of the venue.
fn stream<S: Strategy<Value = Op>>(op: fn() -> S, length: usize) -> impl Strategy<Value = Vec<Op>> {
    let marked = (op(), 0u8..40, -1i64..4).prop_map(|(op, mark, left)| Op {
        clock_ahead: mark == 0,
        reason: match (mark, op.kind) {
            (1..4, EventKind::OrderCancel) => {
                Some(["expired", "done_for_day", "rejected"][usize::from(mark - 1)])
            }
            (1..5, EventKind::OrderAmend) => {
                Some(["restated", "suspended", "trade_cancel", "trade_correct"][usize::from(mark - 1)])
            }
            (5, _) => Some("unsolicited"),
            _ => None,
        },
        left: (1..6).contains(&mark).then_some(left),
        ..op
    });
    proptest::collection::vec(marked, 0..length)
}

/// Holds the fast code against its twin on `cases` streams of up to `len` events, which must raise alerts.
pub(crate) fn hold<S: Strategy<Value = Op>>(id: &str, params: &str, cases: u32, len: usize, op: fn() -> S) {
    let selection = selection(id, params);
    let alerts = Cell::new(0);
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    let streams = stream(op, len);
    let outcome = TestRunner::new(config).run(&streams, |ops| {
        alerts.set(alerts.get() + agree(&selection, &ops));
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    assert!(alerts.get() > cases as usize / 25, "{} alerts in {cases} streams", alerts.get());
}

/// Checks that a reset scenario behaves as a new scenario.
pub(crate) fn hold_reset<S: Strategy<Value = Op>>(id: &str, params: &str, op: fn() -> S) {
    let selection = selection(id, params);
    let stream = || stream(op, 30);
    let config = ProptestConfig { cases: 500, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&(stream(), stream()), |(before, after)| {
        let mut used = Watch::new(&selection).unwrap();
        run(&mut used, &arena(&before));
        used.reset();
        let mut fresh = Watch::new(&selection).unwrap();
        let after = arena(&after);
        prop_assert_eq!(run(&mut used, &after), run(&mut fresh, &after));
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
}

/// Makes payments between two accounts in two currencies, with the steps of time and the amounts of a scenario. A few are a
/// stage of the same transfer, and a few lack a field.
pub(crate) fn payment(
    steps: &'static [i64],
    amounts: &'static [(i64, i8)],
) -> impl Strategy<Value = Op> + use<> {
    let mostly = |max: u32| prop_oneof![8 => Just(1), 3 => 0..=max];
    let id = || prop_oneof![3 => Just(0), 2 => 3u8..6];
    let stages =
        [None, None, None, None, Some("initiation"), Some("interbank"), Some("interbank"), Some("return")];
    let facts =
        (prop::sample::select(steps), prop::sample::select(amounts), prop::sample::select(stages.to_vec()));
    (facts, mostly(2), mostly(2), mostly(2), id(), id()).prop_map(
        |((by, (mantissa, exponent), stage), dr_acct, cr_acct, ccy, reference, uetr)| {
            let mut more = vec![(EventField::Amt, OpValue::Amount(mantissa, exponent))];
            let account = |field, id| (id != 0).then_some((field, OpValue::Name(NameKind::Account, id)));
            more.extend(account(EventField::DrAcct, dr_acct));
            more.extend(account(EventField::CrAcct, (3 - cr_acct) % 3));
            more.extend(
                (ccy != 0).then(|| (EventField::Ccy, OpValue::Text(["USD", "EUR"][ccy as usize - 1]))),
            );
            more.extend((reference != 0).then_some((EventField::Ref, OpValue::Id(reference))));
            more.extend((uetr != 0).then_some((EventField::Uetr, OpValue::Id(uetr))));
            more.extend(stage.map(|stage| (EventField::Stage, OpValue::Text(stage))));
            Op { kind: EventKind::Payment, by, more, ..SILENT }
        },
    )
}
