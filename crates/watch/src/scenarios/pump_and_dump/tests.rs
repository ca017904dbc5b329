use super::{HIGHS_MAX, HighPrint, HighPrints, ID};
use crate::kept::OptionalPosition;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use crate::watch::EvidencePlace;
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind, Price};

const PARAMS: &str =
    r#"{"accum_days":2,"pump_pct":"20","pump_volume_mult":"2","dump_pct":"70","dump_days":1}"#;

const DAY: i64 = 86_400_000_000_000;
/// Steps around midnight and on the ends of the windows of one and three days.
const STEPS: &[i64] = &[0, 0, 0, 0, 1, 1, DAY / 8, DAY / 8, DAY / 4, DAY / 2, DAY - 1, DAY, -1, -DAY / 4];

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Trade,
            EventKind::Trade,
            EventKind::Trade,
            EventKind::Trade,
            EventKind::News,
            EventKind::News,
            EventKind::Comm,
        ][..],
    );
    // 120 is 20 % above 100. Most purchases are cheaper than most sales and trades.
    let px = prop_oneof![8 => Just(120), 2 => Just(100), 1 => prop::sample::select(&[130, 0, -100][..])];
    let off = prop::sample::select(&[0, 0, 0, 0, -1, 1][..]);
    // 7 of 10 are 70 %.
    let qty = prop::sample::select(
        &[(10, 0), (10, 0), (10, 0), (7, 0), (7, 0), (7, 0), (1, 0), (6_999_999_999, -9), (0, 0), (-7, 0)][..],
    );
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    let names = (mostly(2), mostly(2), mostly(2));
    // A few steps leave the baseline of 30 days behind.
    let step = prop_oneof![60 => prop::sample::select(STEPS), 1 => Just(31 * DAY), 1 => Just(-DAY)];
    ((kind, step), names, (px, off, qty), (1u8..4, any::<u8>(), 1u8..5)).prop_map(
        |((kind, by), (owner, instr, venue), (px, off, qty), (oid, odd, id))| {
            let mut more =
                vec![(EventField::Instrs, OpValue::Names(NameKind::Instrument, vec![2, instr.max(1)]))];
            more.extend((odd % 16 == 1).then_some((EventField::TradeFlags, OpValue::Flag("no_last"))));
            let action = ["cancel", "correct"].get(usize::from(odd % 16).wrapping_sub(2));
            more.extend(action.map(|action| (EventField::Action, OpValue::Text(action))));
            let is_cheap = kind == EventKind::Exec && odd % 2 == 0 && odd % 16 != 4;
            Op {
                kind,
                by,
                owner,
                instr: instr.max(1),
                venue,
                side: if odd == 0 { 0 } else { 1 + odd % 2 },
                oid,
                id,
                px: Some(if is_cheap { 100_000_000_000 } else { px * 1_000_000_000 + off }),
                qty: Some(qty),
                more,
                ..SILENT
            }
        },
    )
}

/// Sums of windows, the volume of a day and the news between could be off by one event at any of their ends.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}

proptest! {
    /// Prints that are dropped for want of room could have been the highest since a purchase.
    #[test]
    fn thinned_prints_have_the_same_highest(prices in proptest::collection::vec(0i64..40, 0..HIGHS_MAX)) {
        let mut highs = HighPrints::default();
        for (seq, px) in (1..).zip(prices) {
            let place = EvidencePlace { seq, position: OptionalPosition::new(None) };
            highs.prints.push_back(HighPrint { px: Price(px), place });
        }
        let since = |highs: &HighPrints| -> Vec<Option<Price>> {
            (0..=HIGHS_MAX as u64).map(|seq| highs.since(seq).map(|print| print.px)).collect()
        };
        let before = since(&highs);
        prop_assert_eq!(highs.thin(), 0);
        prop_assert_eq!(since(&highs), before);
        prop_assert!(highs.prints.len() <= 40);
    }
}
