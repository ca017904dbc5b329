//! Rules by hand that the twin alone can be asked for: no command takes a calendar yet, and no quote on a tape lacks an
//! instrument.

use super::{apply, check, sizes};
use expect_test::expect;
use std::sync::Arc;
use unitape_model::Calendar;
use unitape_sim::banks::{BestPriceConfig, ValueDates};

/// A day on which one of the currencies does not settle would be quoted as one on which it does.
#[test]
fn rule_11_a_calendar_has_holidays() {
    let calendar =
        Calendar::parse("what,key,date,time,zone,value\nholiday,EUR,1970-01-02,,,\n").expect("a calendar");
    let dates = ValueDates { calendar: Some(Arc::new(calendar)) };
    check(
        BestPriceConfig { dates, ..sizes(["1"]) },
        "1 quote bank=A side=B px=1.1 qty=1
         2 quote bank=A side=B px=1.1 qty=1 value_date=1970-01-02
         3 quote bank=A side=B px=1.1 qty=1 instr=GBP/USD
         4 quote bank=A side=B px=1.1 qty=1 instr=GBP/USD value_date=1970-01-02",
        expect![[r#"
            1 1970-01-06 1 normal 1.1/A - | 1.1:1@1.1/A | -
            3 GBP/USD 1 normal 1.1/A - | 1.1:1@1.1/A | -
            4 GBP/USD 1970-01-02 1 normal 1.1/A - | 1.1:1@1.1/A | -
        "#]],
    );
}

/// A quote of nothing is no price of anything.
#[test]
fn rule_9_a_quote_without_an_instrument_has_no_pair() {
    let events = "1 quote bank=A side=B px=1.1 qty=1\n2 quote bank=A side=B px=1.2 qty=1 instr=-";
    let (lines, truth) = apply(sizes(["1"]), events);
    assert_eq!(lines.lines().count(), 1);
    assert_eq!(truth.refused().clone(), [("no_pair", 1)].into());
}
