//! The life of orders, and the fields that executions and cancels inherit from them.
//!
//! An order is known by venue and id. Its quantity is the total, also after an amend; a reduction is subtracted from
//! it. Its entry is its `order_new`, and amends do not move it. It is *live* if it was seen new, is not cancelled, and
//! has remaining quantity. An order known only from amends has no entry and is never live, but still has an owner.

use crate::exact::{QuantitySum, reduced};
use crate::ids::IdKey;
use crate::kept::{OptionalPosition, OptionalSequence};
use crate::state::{state_value, watch_state};
use crate::table::{BoundedTable, EntryRank};
use unitape_model::records::OrderRecord;
use unitape_model::schema::EXP_NONE;
use unitape_model::{
    Decimal, Event, EventField, EventKind, EventValue, InstrumentId, Position, Price, UnixNanos, flags,
};

/// Orders kept at most: a busy day of one firm. Orders that are not live are forgotten first, then the oldest.
pub(crate) const ORDERS_MAX: usize = 1 << 20;
/// Orders kept at most that are not live any more, for executions and cancels that come late.
pub(crate) const SPENT_MAX: usize = 1 << 14;

/// An order according to the events up to now.
#[derive(Clone, Copy, Debug)]
pub struct OrderState {
    /// The event time of its entry.
    pub entry_ts: UnixNanos,
    /// Ordinal of its `order_new`, if there was one.
    entry_seq: OptionalSequence,
    /// The position of its `order_new` on the tape, if it is on one.
    entry_position: OptionalPosition,
    /// The price it was entered with, or [`Price::NONE`].
    pub entry_px: Price,
    /// The price of now, or [`Price::NONE`].
    pub px: Price,
    qty: Decimal,
    /// The executed quantity.
    pub executed: QuantitySum,
    /// Instrument; 0 none.
    pub instr: InstrumentId,
    /// Venue; 0 none.
    pub venue: u16,
    /// 0 none, 1 buy, 2 sell.
    pub side: u8,
    /// Whether the order was cancelled.
    pub cancelled: bool,
    /// The beneficial owner that the first event with an owner names, or 0.
    pub owner: u32,
    /// Trader, likewise.
    pub trader: u32,
    /// Algorithm, likewise.
    pub algo: u32,
    parent: IdKey,
}

/// Three lines with its key and its links in the queues. A busy day reads them in random order.
const _: () = assert!(size_of::<OrderState>() <= 152);

impl OrderState {
    /// Returns whether the order was seen new, is not cancelled and has remaining quantity.
    #[inline]
    pub fn is_live(&self) -> bool {
        let qty_left =
            || self.executed == QuantitySum::ZERO || self.executed < QuantitySum::from_decimal(self.qty);
        self.entry_seq != OptionalSequence::NONE && !self.cancelled && self.qty.mantissa() > 0 && qty_left()
    }

    /// Returns the current total quantity.
    #[inline]
    pub fn qty(&self) -> Option<Decimal> {
        (self.qty.exponent() != EXP_NONE).then_some(self.qty)
    }

    /// Returns the ordinal of the order's `order_new`, or `None` if the order was never seen new.
    #[inline]
    pub fn entry_seq(&self) -> Option<u64> {
        self.entry_seq.get()
    }

    /// Returns the position of the order's `order_new` on the tape, if the order is on a tape.
    #[inline]
    pub fn entry_position(&self) -> Option<Position> {
        self.entry_position.get()
    }

    /// Returns the position of the order's `order_new` as scenarios keep it.
    #[inline]
    pub(crate) fn kept_entry_position(&self) -> OptionalPosition {
        self.entry_position
    }

    /// Returns the parent order that the first event with a parent names.
    #[inline]
    pub fn parent(&self) -> Option<IdKey> {
        self.parent.as_option()
    }
}

state_value!(OrderState {
    entry_ts,
    entry_seq,
    entry_position,
    entry_px,
    px,
    qty,
    executed,
    instr,
    venue,
    side,
    cancelled,
    owner,
    trader,
    algo,
    parent,
});

/// The effect of an event on an order.
#[derive(Clone, Copy, Debug)]
pub struct OrderUpdate<'a> {
    /// Number of the order's place; another order may have it later, but never while this one is known.
    pub slot: u32,
    /// The order, the event included.
    pub order: &'a OrderState,
    /// Whether it was live before the event.
    pub was_live: bool,
    /// Whether the event is an amend that is the first to name the order's owner.
    pub names_owner: bool,
}

/// The order that an event touched, by its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TouchedOrder {
    pub slot: u32,
    pub was_live: bool,
    pub names_owner: bool,
}

/// All orders that are known.
pub struct OrderTable {
    table: BoundedTable<(u16, IdKey), OrderState>,
}

watch_state!(OrderTable { table });

impl OrderTable {
    pub(crate) fn new() -> Self {
        Self::bounded(ORDERS_MAX, SPENT_MAX)
    }

    pub(crate) fn bounded(max: usize, spent_max: usize) -> Self {
        Self { table: BoundedTable::new(max, spent_max) }
    }

    /// Takes an event of the order family or an execution that counts at `ts`. Returns the order's slot and whether the order
    /// was live before.
    #[inline]
    pub(crate) fn apply(
        &mut self,
        event: &Event<'_>,
        record: &OrderRecord,
        seq: u64,
        position: Option<Position>,
        ts: UnixNanos,
    ) -> Option<TouchedOrder> {
        let oid = IdKey::from_slot(event, EventField::Oid, &record.oid)?;
        let key = (record.common.venue.get(), oid);
        let kind = event.kind();
        if kind == EventKind::OrderNew {
            let state = entered_order(event, record, seq, position, ts);
            let rank = if state.is_live() { EntryRank::Kept } else { EntryRank::Spent };
            let slot = self.table.insert(key, state, rank);
            return Some(TouchedOrder { slot, was_live: false, names_owner: false });
        }
        let Some(slot) = self.table.find(&key) else {
            if kind != EventKind::OrderAmend {
                return None;
            }
            let state = OrderState {
                entry_seq: OptionalSequence::NONE,
                entry_px: Price::NONE,
                ..entered_order(event, record, seq, position, ts)
            };
            let slot = self.table.insert(key, state, EntryRank::Spent);
            return Some(TouchedOrder { slot, was_live: false, names_owner: false });
        };
        let state = self.table.get_mut(slot);
        let (was_live, had_owner) = (state.is_live(), state.owner != 0);
        match kind {
            EventKind::OrderAmend => amend_order(state, event, record),
            EventKind::OrderCancel => state.cancelled = true,
            _ => quantity(record).into_iter().for_each(|qty| state.executed.add(qty)),
        }
        let (is_live, names_owner) = (state.is_live(), !had_owner && state.owner != 0);
        if is_live != was_live {
            self.table.set_rank(slot, if is_live { EntryRank::Kept } else { EntryRank::Spent });
        }
        Some(TouchedOrder { slot, was_live, names_owner })
    }

    /// Returns the order in `slot`.
    #[inline]
    pub fn get(&self, slot: u32) -> &OrderState {
        self.table.get(slot)
    }

    /// Returns the order in `slot` if it is live and entered as the event `entry_seq`. The slot may come from a snapshot.
    #[inline]
    pub(crate) fn find_live(&self, slot: u32, entry_seq: u64) -> Option<&OrderState> {
        let is_same = |order: &&OrderState| order.entry_seq() == Some(entry_seq) && order.is_live();
        self.table.get_checked(slot).filter(is_same)
    }

    pub(crate) fn reset(&mut self) {
        self.table.clear();
    }

    /// Orders that were forgotten for want of room: live ones, and such as were not.
    pub(crate) fn forgotten(&self) -> (u64, u64) {
        (
            self.table.forgotten_entries[EntryRank::Kept as usize],
            self.table.forgotten_entries[EntryRank::Spent as usize],
        )
    }
}

/// Returns the quantity of an order or execution, if it has one.
#[inline]
pub(crate) fn quantity(record: &OrderRecord) -> Option<Decimal> {
    let exponent = record.common.kind_b as i8;
    (exponent != EXP_NONE).then(|| Decimal::from_canonical(record.qty.get(), exponent))
}

/// Not above zero, so an order of it is never live.
const NO_QUANTITY: Decimal = Decimal::from_canonical(0, EXP_NONE);

fn entered_order(
    event: &Event<'_>,
    record: &OrderRecord,
    seq: u64,
    position: Option<Position>,
    ts: UnixNanos,
) -> OrderState {
    let px = Price(record.px.get());
    OrderState {
        entry_ts: ts,
        entry_seq: OptionalSequence::new(seq),
        entry_position: OptionalPosition::new(position),
        entry_px: px,
        px,
        qty: quantity(record).unwrap_or(NO_QUANTITY),
        executed: QuantitySum::ZERO,
        instr: InstrumentId(record.common.instrument.get()),
        venue: record.common.venue.get(),
        side: record.side(),
        cancelled: false,
        owner: record.owner.get(),
        trader: record.trader.get(),
        algo: record.algo.get(),
        parent: parent_of(event, record).unwrap_or(IdKey::NONE),
    }
}

fn amend_order(state: &mut OrderState, event: &Event<'_>, record: &OrderRecord) {
    state.px = Price(record.px.get()).as_option().unwrap_or(state.px);
    state.qty = match (quantity(record), event.qty_reduced()) {
        (Some(qty), _) => qty,
        (None, Some(reduction)) => reduced(state.qty, reduction),
        (None, None) => state.qty,
    };
    if let Some(left) = stated_left(event).filter(|_| state.qty.exponent() != EXP_NONE) {
        state.executed = QuantitySum::from_decimal(reduced(state.qty, left));
    }
    let first_nonzero = |old_id: u32, new_id: u32| if old_id == 0 { new_id } else { old_id };
    state.owner = first_nonzero(state.owner, record.owner.get());
    state.trader = first_nonzero(state.trader, record.trader.get());
    state.algo = first_nonzero(state.algo, record.algo.get());
    state.parent = state.parent.as_option().or_else(|| parent_of(event, record)).unwrap_or(IdKey::NONE);
}

/// Returns the remaining quantity that an amend of the venue states, for example after it has cancelled a trade. The executed
/// quantity follows it.
#[inline]
fn stated_left(event: &Event<'_>) -> Option<Decimal> {
    if !is_made_by_venue(event) {
        return None;
    }
    match event.field(EventField::Left, &mut [0; 36]) {
        Some(EventValue::Decimal(left)) if left.mantissa() >= 0 => Some(left),
        _ => None,
    }
}

/// Returns whether a venue, and not the trader, cancelled or amended the order.
#[inline]
pub(crate) fn is_made_by_venue(event: &Event<'_>) -> bool {
    let reasons: &[&str] = match event.kind() {
        EventKind::OrderCancel => &["expired", "done_for_day", "rejected"],
        EventKind::OrderAmend => &["restated", "suspended", "trade_cancel", "trade_correct"],
        _ => return false,
    };
    event.header().flags() & flags::EXT != 0 && has_reason(event, reasons)
}

#[cold]
fn has_reason(event: &Event<'_>, reasons: &[&str]) -> bool {
    let mut scratch = [0; 36];
    let reason = event.field(EventField::Reason, &mut scratch);
    matches!(reason, Some(EventValue::Text(reason)) if reasons.contains(&reason))
}

/// Reads the parent of an order. Its field has 16 bytes; zero there means no parent, unless there is an extension.
#[inline]
fn parent_of(event: &Event<'_>, record: &OrderRecord) -> Option<IdKey> {
    let has_extension = event.header().flags() & flags::EXT != 0;
    if record.id2[0] == 0 && !has_extension {
        return None;
    }
    IdKey::read(event, EventField::Parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::naive::stream::{Op, SILENT, arena};
    use proptest::prelude::*;
    use unitape_model::frames;

    fn apply(orders: &mut OrderTable, op: &Op, seq: u64) -> Option<(u32, bool)> {
        let arena = arena(std::slice::from_ref(op));
        let (_, _, frame) = frames(&arena).next()?;
        let event = Event::new(frame)?;
        let record = OrderRecord::from_event(&event)?;
        let touched = orders.apply(&event, record, seq, None, event.ts_event())?;
        Some((touched.slot, touched.was_live))
    }

    fn op() -> impl Strategy<Value = Op> {
        let kinds = [
            EventKind::OrderNew,
            EventKind::OrderNew,
            EventKind::OrderAmend,
            EventKind::OrderCancel,
            EventKind::Exec,
        ];
        let qty = prop::sample::select(&[None, Some((1, 0)), Some((2, 0)), Some((0, 0)), Some((-1, 0))][..]);
        let operation = (prop::sample::select(kinds.to_vec()), 0u8..9, qty.clone(), qty, 0u32..3);
        operation.prop_map(|(kind, oid, qty, reduction, owner)| Op {
            qty_reduced: reduction.filter(|_| kind == EventKind::OrderAmend),
            kind,
            oid,
            qty,
            owner,
            side: 1,
            instr: 1,
            venue: 1,
            ..SILENT
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Fails if the store keeps more orders than its bound or does not count each forgotten order. It may forget a
        /// live order only if nothing else is left to forget.
        #[test]
        fn orders_are_bounded_and_live_ones_stay_longest(ops in proptest::collection::vec(op(), 0..60)) {
            let mut orders = OrderTable::bounded(4, 2);
            let mut oids = std::collections::HashSet::new();
            for (op, seq) in ops.iter().zip(1..) {
                let (live_before, _) = orders.forgotten();
                let touched = apply(&mut orders, op, seq);
                if touched.is_some() {
                    oids.insert(op.oid);
                }
                prop_assert!(orders.table.len() <= 4);
                let (live, spent) = orders.forgotten();
                let is_kept = |oid: &&u8| {
                    let probe = Op { kind: EventKind::OrderCancel, oid: **oid, venue: 1, ..SILENT };
                    let arena = arena(&[probe]);
                    let (_, _, frame) = frames(&arena).next().unwrap();
                    let event = Event::new(frame).unwrap();
                    let record = OrderRecord::from_event(&event).unwrap();
                    let oid = IdKey::from_slot(&event, EventField::Oid, &record.oid).unwrap();
                    orders.table.find(&(1, oid)).is_some()
                };
                let kept_count = oids.iter().filter(is_kept).count();
                prop_assert_eq!(kept_count, orders.table.len());
                prop_assert!(oids.len() - kept_count <= (live + spent) as usize, "each that went is counted");
                if live > live_before {
                    let all_live = oids.iter().filter(is_kept).count() == 4;
                    prop_assert!(all_live, "a live order went although there was room");
                }
            }
        }
    }

    /// Fails if a reduction is read as the total: a cancel of 2 of 5 once left an order of 2.
    #[test]
    fn a_reduction_leaves_the_rest_of_the_order() {
        let op = |kind, qty: Option<i64>, reduction: Option<i64>| Op {
            kind,
            oid: 1,
            qty: qty.map(|qty| (qty, 0)),
            qty_reduced: reduction.map(|mantissa| (mantissa, 0)),
            px: Some(7),
            instr: 1,
            venue: 1,
            side: 1,
            ..SILENT
        };
        let mut orders = OrderTable::new();
        let mut seq = 0;
        let mut step = |kind, qty, reduction| {
            seq += 1;
            let (slot, _) = apply(&mut orders, &op(kind, qty, reduction), seq).unwrap();
            let order = orders.get(slot);
            (order.qty().map(|qty| qty.to_string()), order.is_live())
        };
        let is = |qty: &str, is_live| (Some(qty.to_owned()), is_live);
        assert_eq!(step(EventKind::OrderAmend, None, Some(1)), (None, false), "nobody knows the order");
        assert_eq!(step(EventKind::OrderNew, Some(9), None), is("9", true));
        assert_eq!(step(EventKind::OrderAmend, None, Some(2)), is("7", true));
        assert_eq!(step(EventKind::OrderAmend, Some(8), Some(2)), is("8", true), "the total counts");
        assert_eq!(step(EventKind::OrderAmend, None, Some(0)), is("8", true));
        assert_eq!(step(EventKind::OrderAmend, None, Some(-1)), is("8", true));
        assert_eq!(step(EventKind::Exec, Some(3), None), is("8", true));
        assert_eq!(step(EventKind::OrderAmend, None, Some(5)), is("3", false), "all that was left");
        assert_eq!(step(EventKind::OrderAmend, None, Some(50)), is("0", false), "more than there was");
        assert_eq!(step(EventKind::OrderAmend, Some(4), None), is("4", true));
    }

    /// Checks each step of an order's life: whether it is live, and its quantities.
    #[test]
    fn an_order_lives_as_the_words_say() {
        let op = |kind, qty: Option<i64>| Op {
            kind,
            oid: 1,
            qty: qty.map(|q| (q, 0)),
            px: Some(7),
            instr: 1,
            venue: 1,
            side: 1,
            ..SILENT
        };
        let mut orders = OrderTable::new();
        let mut seq = 0;
        let mut step = |op: Op| {
            seq += 1;
            apply(&mut orders, &op, seq).map(|(slot, was)| {
                let order = orders.get(slot);
                (was, order.is_live(), order.entry_seq(), order.executed.to_string())
            })
        };
        let is = |was, now, entry, executed: &str| Some((was, now, entry, executed.to_owned()));
        assert_eq!(step(op(EventKind::OrderCancel, None)), None, "nobody knows it");
        assert_eq!(step(op(EventKind::Exec, Some(1))), None);
        assert_eq!(step(op(EventKind::OrderAmend, Some(9))), is(false, false, None, "0"), "never live");
        assert_eq!(step(op(EventKind::OrderNew, Some(5))), is(false, true, Some(4), "0"));
        assert_eq!(step(op(EventKind::Exec, Some(3))), is(true, true, Some(4), "3"));
        assert_eq!(
            step(op(EventKind::OrderAmend, Some(3))),
            is(true, false, Some(4), "3"),
            "nothing is left"
        );
        assert_eq!(step(op(EventKind::OrderAmend, Some(4))), is(false, true, Some(4), "3"), "one is");
        assert_eq!(
            step(op(EventKind::Exec, Some(-3))),
            is(true, true, Some(4), "3"),
            "less than nothing is nothing"
        );
        assert_eq!(step(op(EventKind::OrderAmend, Some(0))), is(true, false, Some(4), "3"));
        assert_eq!(step(op(EventKind::OrderAmend, Some(8))), is(false, true, Some(4), "3"));
        assert_eq!(step(op(EventKind::OrderCancel, None)), is(true, false, Some(4), "3"));
        assert_eq!(
            step(op(EventKind::OrderAmend, Some(9))),
            is(false, false, Some(4), "3"),
            "cancelled is for good"
        );
        assert_eq!(
            step(op(EventKind::OrderNew, Some(5))),
            is(false, true, Some(13), "0"),
            "the id is used again"
        );
    }
}
