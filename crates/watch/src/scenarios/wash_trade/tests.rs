use super::*;
use crate::orders::OrderTable;
use crate::params::ParamOverlay;
use crate::scenarios;
use crate::sessions::SessionDates;
use crate::twin::naive::stream::{Op, SILENT, arena, hold, hold_reset, names, step};
use crate::watch::input_of;
use proptest::prelude::*;
use std::sync::Arc;
use unitape_model::records::OrderRecord;
use unitape_model::{Event, frames};

const PARAMS: &str = r#"{"window_ms":10}"#;

fn op() -> impl Strategy<Value = Op> {
    let px = prop::sample::select(
        &[0, 19_990, 19_991, 20_000, 20_010, 20_011, -20_000, 2_000_000, 20_000, 20_000][..],
    );
    let qty = prop::sample::select(
        &[
            (1, 3),
            (1, 3),
            (1, 3),
            (9, 2),
            (899, 0),
            (11, 2),
            (1101, 0),
            (1, 30),
            (1, -30),
            (i64::MAX, 30),
            (8, 4),
            (0, 0),
        ][..],
    );
    let exec = ((step(), 0u32..5, 0u8..3, 1u32..3, 1u32..3), (1u8..3, px, qty, 0u8..6)).prop_map(
        |((by, owner, oid, instr, venue), (side, px, qty, id))| Op {
            kind: EventKind::Exec,
            by,
            owner,
            oid,
            instr,
            venue,
            side,
            px: Some(px),
            qty: Some(qty),
            id,
            ..SILENT
        },
    );
    prop_oneof![
        10 => exec,
        1 => (1u32..5, 1u32..4).prop_map(|(owner, group)| Op { kind: EventKind::Party, owner, group, ..SILENT }),
        1 => (0u8..3, 0u32..5).prop_map(|(oid, owner)| Op { kind: EventKind::OrderNew, oid, owner, venue: 1, ..SILENT }),
    ]
}

/// Cells, chains and legs removed from their middle against plain search; a broken chain loses or doubles alerts.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 4_000, 60, op);
}

/// Tolerances of nothing and of everything put all into cells of one number, or of all.
#[test]
fn agrees_with_its_slow_twin_at_any_tolerance() {
    for (px, qty) in
        [("0", "0"), ("0.000000001", "29.9"), ("2500", "30"), ("5000", "50"), ("10000", "1000000000")]
    {
        let params = format!(r#"{{"window_ms":10,"px_tol_bps":"{px}","qty_tol_pct":"{qty}"}}"#);
        hold(ID, &params, 500, 60, op);
    }
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// However many executions come, what is kept stays within its bound and in order.
    #[test]
    fn bounds_hold(ops in proptest::collection::vec(op(), 0..80)) {
        let overlay = ParamOverlay::parse(PARAMS, Some(ID)).unwrap();
        let params = ScenarioParams::resolve(scenarios::find(ID).unwrap(), &[&overlay]);
        let mut small = WashTradeScenario::bounded(WashTradeLimits::new(&params), 3, 2);
        let (arena, names, mut parties) = (arena(&ops), names(), OwnerGroups::default());
        for ((_, _, frame), seq) in frames(&arena).zip(1..) {
            let event = Event::new(frame).unwrap();
            match event.kind() {
                EventKind::Party => parties.on_party(&event),
                EventKind::Exec => {
                    let market = crate::MarketState::default();
                    let orders = OrderTable::new();
                    let prints = crate::PrintTable::new(0);
                    let session_dates = SessionDates::new(Arc::default());
                    let context = crate::ScenarioContext {
                        seq,
                        position: None,
                        ts: event.ts_event(),
                        expiry_ts: event.ts_event(),
                        names: &names,
                        parties: &parties,
                        orders: &orders,
                        market: &market,
                        prints: &prints,
                        session_dates: &session_dates,
                    };
                    let record = OrderRecord::from_event(&event);
                    let input = input_of(&event, event.ts_event(), record, None, None, &context);
                    if let Ok(e) = leg(&input) {
                        small.find_alert_leg(&e, &parties, context.expiry_ts);
                    }
                }
                _ => {}
            }
            prop_assert!(small.legs.len() <= 3 && small.matches.len() <= 2);
            small.legs.check();
        }
    }
}

/// A market maker's book of legs that all just miss was once searched from end to end for each execution.
#[test]
fn legs_that_cannot_meet_are_not_looked_at() {
    let params = ScenarioParams::resolve(scenarios::find(ID).unwrap(), &[]);
    let mut fast = WashTradeScenario::new(&params);
    let leg = |n: u64, side: u8, px: i64| ExecutionLeg {
        ts: UnixNanos(n as i64),
        px,
        qty: Decimal::from_int(100),
        seq: n,
        position: OptionalPosition::NONE,
        owner: 1,
        instr: InstrumentId(1),
        side,
        match_key: None,
    };
    let parties = OwnerGroups::default();
    let count = 200_000;
    for n in 0..count {
        // Buys around 100 and sells around 101: in a plain queue each would pass all of the other side, 10^10 looks.
        let px = if n % 2 == 0 { 100_000_000_000 } else { 101_000_000_000 };
        assert!(fast.find_alert_leg(&leg(n, (n % 2) as u8, px), &parties, UnixNanos(n as i64)).is_none());
    }
    assert_eq!(fast.legs.len(), count as usize);
    assert_eq!(
        fast.find_alert_leg(&leg(count, 1, 100_000_000_000), &parties, UnixNanos(count as i64))
            .map(|(f, arm)| (f.seq, arm)),
        Some((0, "round_trip"))
    );
}

/// Pairs whose products pass 128 bits, against the rule by hand.
#[test]
fn quantities_are_compared_exactly() {
    let near = |tol: &str, e: &str, f: &str| {
        let overlay =
            ParamOverlay::parse(&format!(r#"{{"qty_tol_pct":"{tol}"}}"#), Some("wash_trade")).unwrap();
        let d = |t: &str| Decimal::parse(t.as_bytes()).unwrap();
        WashTradeLimits::new(&ScenarioParams::resolve(scenarios::find(ID).unwrap(), &[&overlay]))
            .qty_near(d(e), d(f))
    };
    let (huge, tiny) =
        ("9223372036854775807000000000000000000000000000000", "0.000000000000000000000000000001");
    for (tol, e, f, want) in [
        ("10", "900", "1000", true),
        ("10", "899.999999999", "1000", false),
        ("10", "1100", "1000", true),
        ("10", "1100.000000000000001", "1000", false),
        ("0", "1000", "1000", true),
        ("0", huge, huge, true),
        ("10", huge, tiny, false),
        ("10", tiny, huge, false),
        ("99.999999999", tiny, huge, false),
        ("100", tiny, huge, true),
        ("1000000000", huge, tiny, false),
        ("1000000000", "10000001", "1", true),
        ("1000000000", "10000001.000000001", "1", false),
    ] {
        assert_eq!(near(tol, e, f), want, "{tol} {e} {f}");
    }
}
