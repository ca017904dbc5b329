//! Each rule of docs/best-price-rules.md by hand: the expected lines were written from the rule, not from the code. The slow
//! twin and the engine behind the command line must both give them.

use super::{apply, check, is_refused, orient, sizes};
use expect_test::expect;
use unitape_sim::banks::BestPriceConfig;

/// A consumer that gets a line for nothing, or none for a price that went, shows an old price.
#[test]
fn rule_1_lines_are_printed_for_what_changed() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=B px=1.1 qty=0.5
         2 quote bank=A side=B px=1.1 qty=2
         3 quote bank=A side=B px=1.1 qty=3
         4 quote bank=A withdrawn=true
         5 quote bank=A withdrawn=true",
        expect![[r#"
            2 1 normal 1.1/A - | 1.1:1@1.1/A | -
            4 1 normal - - | - | -
        "#]],
    );
}

/// Two engines are compared by their bytes, so an order or a zero of ours would be a difference.
#[test]
fn rule_2_lines_have_one_form() {
    let events = r#"{"ts":1,"kind":"quote","bank":"A","venue":"X","instr":"EURUSD","quote_id":7,"tier":2,"side":"B","px":"1.0850","qty":"2000000"}
{"ts":2,"kind":"quote","bank":"B\"q","instr":"EUR/USD","quote_id":"7","side":"S","px":"1.0852","qty":1500000,"full_amount":true,"indicative":null}
{"ts":3,"kind":"quote","bank":"C","instr":"USD/EUR","side":"B","px":"0.925","qty":"2000000","withdrawn":false}"#;
    let expected = expect![[r#"
        {"ts":1,"instr":"EUR/USD","value_date":"1970-01-05","size":"1000000","state":"normal","bid":{"px":"1.085","bank":"A@X","tier":2,"quote_id":7},"ask":null,"bid_sweep":{"notional":"1085000","qty":"1000000","legs":[{"px":"1.085","qty":"1000000","bank":"A@X","tier":2,"quote_id":7}]},"ask_sweep":null}
        {"ts":2,"instr":"EUR/USD","value_date":"1970-01-05","size":"1000000","state":"normal","bid":{"px":"1.085","bank":"A@X","tier":2,"quote_id":7},"ask":{"px":"1.0852","bank":"B\"q","tier":0,"quote_id":"7","full_amount":true},"bid_sweep":{"notional":"1085000","qty":"1000000","legs":[{"px":"1.085","qty":"1000000","bank":"A@X","tier":2,"quote_id":7}]},"ask_sweep":null}
        {"ts":3,"instr":"EUR/USD","value_date":"1970-01-05","size":"1000000","state":"crossed","bid":{"px":"1.085","bank":"A@X","tier":2,"quote_id":7},"ask":{"px":"0.925","bank":"C","tier":0,"inverted":true},"bid_sweep":{"notional":"1085000","qty":"1000000","legs":[{"px":"1.085","qty":"1000000","bank":"A@X","tier":2,"quote_id":7}]},"ask_sweep":null}
    "#]];
    expected.assert_eq(&apply(sizes(["1000000"]), events).0);
}

/// Lines of one instant in the order of a hash map would differ from run to run.
#[test]
fn rule_3_lines_of_one_instant_are_ordered() {
    check(
        sizes(["10", "9", "9.0"]),
        "1 quote bank=A side=B px=1 qty=10 value_date=1970-01-06
         2 quote bank=A side=B px=1 qty=10
         3 quote bank=A side=B px=1 qty=10 instr=AUD/USD
         9 status venue=A state=logout instr=-",
        expect![[r#"
            1 1970-01-06 9 normal 1/A - | 9:9@1/A | -
            1 1970-01-06 10 normal 1/A - | 10:10@1/A | -
            2 9 normal 1/A - | 9:9@1/A | -
            2 10 normal 1/A - | 10:10@1/A | -
            3 AUD/USD 9 normal 1/A - | 9:9@1/A | -
            3 AUD/USD 10 normal 1/A - | 10:10@1/A | -
            9 AUD/USD 9 normal - - | - | -
            9 AUD/USD 10 normal - - | - | -
            9 9 normal - - | - | -
            9 10 normal - - | - | -
            9 1970-01-06 9 normal - - | - | -
            9 1970-01-06 10 normal - - | - | -
        "#]],
    );
}

/// One clock that is ahead would end all quotes; one that is behind would bring time back.
#[test]
fn rule_4_now_never_goes_back_and_believes_no_clock_ahead() {
    check(
        sizes(["1"]),
        r#"10 quote bank=A side=B px=1.1 qty=1
           4 quote bank=B side=B px=1.2 qty=1
           900 quote bank=C side=B px=1.3 qty=1 flags=["clock_ahead"]
           11 quote bank=A side=S px=1.4 qty=1"#,
        expect![[r#"
            10 1 normal 1.1/A - | 1.1:1@1.1/A | -
            10 1 normal 1.2/B - | 1.2:1@1.2/B | -
            10 1 normal 1.3/C - | 1.3:1@1.3/C | -
            11 1 normal 1.3/C 1.4/A | 1.3:1@1.3/C | 1.4:1@1.4/A
        "#]],
    );
}

/// Timers out of order, or one by one, would print prices that nobody could deal at.
#[test]
fn rule_4_timers_fire_in_order_and_together() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=B px=1.1 qty=1 valid_until=30
         1 quote bank=B side=B px=1.05 qty=1 valid_until=20
         1 quote bank=C side=B px=1.0 qty=1 valid_until=30
         2 quote bank=B side=S px=1.2 qty=1 valid_until=40
         50 quote bank=Z side=B px=1 qty=1",
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            2 1 normal 1.1/A 1.2/B | 1.1:1@1.1/A | 1.2:1@1.2/B
            30 1 normal - 1.2/B | - | 1.2:1@1.2/B
            40 1 normal - - | - | -
            50 1 normal 1/Z - | 1:1@1/Z | -
        "#]],
    );
}

/// At the nanosecond of its end a quote is gone: a deal on it would be refused.
#[test]
fn rule_5_expiry_comes_before_an_event_of_its_time() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=B px=1.1 qty=1 valid_until=5
         4 quote bank=A side=S px=1.2 qty=1 valid_until=9
         5 quote bank=B side=B px=1 qty=1
         6 quote bank=A side=S px=1.3 qty=1 valid_until=6
         7 quote bank=A side=S px=1.3 qty=1 valid_until=8
         7 quote bank=A side=S px=1.3 qty=1
         10 status venue=A state=up",
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            4 1 normal 1.1/A 1.2/A | 1.1:1@1.1/A | 1.2:1@1.2/A
            5 1 normal - 1.2/A | - | 1.2:1@1.2/A
            5 1 normal 1/B 1.2/A | 1:1@1/B | 1.2:1@1.2/A
            6 1 normal 1/B - | 1:1@1/B | -
            7 1 normal 1/B 1.3/A | 1:1@1/B | 1.3:1@1.3/A
        "#]],
    );
}

/// A bank whose clock is slow would be first in every tie.
#[test]
fn rule_6_age_is_by_arrival() {
    check(
        sizes(["1"]),
        "10 quote bank=B side=B px=1.1 qty=1
         11 status venue=Z state=up
         3 quote bank=A side=B px=1.1 qty=1
         12 quote bank=B side=B px=1.1 qty=1
         2 quote bank=A side=B px=1.0 qty=1",
        expect![[r#"
            10 1 normal 1.1/B - | 1.1:1@1.1/B | -
            12 1 normal 1.1/A - | 1.1:1@1.1/A | -
            12 1 normal 1.1/B - | 1.1:1@1.1/B | -
        "#]],
    );
}

/// Quotes of a session that died would be on offer for ever; a refused quote shows that it lives.
#[test]
fn rule_7_silence_withdraws_what_a_bank_quoted() {
    check(
        BestPriceConfig { stale_ms: 1, ..sizes(["1"]) },
        "1 quote bank=A side=B px=1.1 qty=1
         500001 status venue=A state=heartbeat
         1500000 quote bank=B side=B px=1 qty=1
         1500001 status venue=A state=heartbeat
         1500002 quote bank=A side=S px=1.2 qty=1
         2000000 quote bank=A instr=XX
         2600000 status venue=Z state=up
         4000000 status venue=Z state=up",
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            1500001 1 normal 1/B - | 1:1@1/B | -
            1500002 1 normal 1/B 1.2/A | 1:1@1/B | 1.2:1@1.2/A
            2500000 1 normal - 1.2/A | - | 1.2:1@1.2/A
            3000000 1 normal - - | - | -
        "#]],
    );
}

/// With 0 nothing is ever too old, and deals of a bank are no sign of life.
#[test]
fn rules_7_and_13_never_stale_and_deals_are_not_heard() {
    let events = "1 quote bank=A side=B px=1.1 qty=1 last_look=true
                  1000000 deal bank=A px=1.1 qty=1 side=B
                  1000000 quote_reject bank=A side=B quote_id=1
                  9000000000 status venue=Z state=up";
    check(
        BestPriceConfig { stale_ms: 0, ..sizes(["1"]) },
        events,
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
        "#]],
    );
    check(
        sizes(["1"]),
        events,
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            5000000001 1 normal - - | - | -
        "#]],
    );
}

/// A forward that replaced spot, or a full-amount quote that replaced a sweepable one, would lose a price.
#[test]
fn rule_8_each_slot_has_one_quote() {
    check(
        sizes(["1"]),
        "1 quote venue=X side=B px=1.1 qty=1
         2 quote venue=X bank=A side=B px=1.2 qty=1
         3 quote bank=A@X side=B px=1.0 qty=1
         4 quote venue=X side=B px=1.3 qty=1 full_amount=true
         5 quote venue=X side=B px=1.4 qty=1 tier=1
         6 quote venue=X side=B px=2 qty=1 value_date=1970-01-06
         7 quote venue=X side=B px=1 qty=1 tier=1 full_amount=false
         8 quote venue=X side=B px=1.2 qty=1 tier=0 value_date=19700105",
        expect![[r#"
            1 1 normal 1.1/X - | 1.1:1@1.1/X | -
            2 1 normal 1.2/A@X - | 1.2:1@1.2/A@X | -
            3 1 normal 1.1/X - | 1.1:1@1.1/X | -
            4 1 normal 1.3/X/full - | 1.1:1@1.1/X | -
            5 1 normal 1.4/X/t1 - | 1.4:1@1.4/X/t1 | -
            6 1970-01-06 1 normal 2/X - | 2:1@2/X | -
            7 1 normal 1.3/X/full - | 1.1:1@1.1/X | -
            8 1 normal 1.3/X/full - | 1.2:1@1.2/X | -
        "#]],
    );
}

/// The price before a bad quote is no longer offered: who deals at it is refused.
#[test]
fn rule_9_bad_quotes_empty_their_slot() {
    for (bad, reason) in [
        ("side=B qty=1", "price"),
        ("side=B px=0 qty=1", "price"),
        ("side=B px=-1.5 qty=1 indicative=true", "price"),
        ("side=B px=1.1", "quantity"),
        ("side=B px=1.1 qty=0", "quantity"),
        ("side=B px=1.1 qty=-1", "quantity"),
        ("side=B px=1.1 qty=1 indicative=true", "indicative"),
        ("side=B px=1.1 qty=1 valid_until=2", "expired"),
    ] {
        let events = format!("1 quote bank=A side=B px=1.1 qty=1\n2 quote bank=A {bad}");
        check(
            sizes(["1"]),
            &events,
            expect![[r#"
                1 1 normal 1.1/A - | 1.1:1@1.1/A | -
                2 1 normal - - | - | -
            "#]],
        );
        let refused = apply(sizes(["1"]), &events).1.refused().clone();
        assert_eq!(refused, [(reason, 1)].into(), "{bad}");
    }
    for (bad, reason) in [
        ("2 quote side=B px=1.2 qty=1", "no_bank"),
        ("2 quote bank=A side=B px=1.2 qty=1 instr=EUR-USD", "no_pair"),
        ("2 quote bank=A px=1.2 qty=1", "no_side"),
        ("2 quote bank=A side=B px=1.2 qty=1 value_date=1970-01-03", "value_date"),
    ] {
        let events = format!("1 quote bank=A side=B px=1.1 qty=1\n{bad}");
        check(
            sizes(["1"]),
            &events,
            expect![[r#"
                1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            "#]],
        );
        assert_eq!(apply(sizes(["1"]), &events).1.refused().clone(), [(reason, 1)].into(), "{bad}");
    }
}

/// A cancel that is late must not take the new quote, and one without an id takes all that it names.
#[test]
fn rule_10_withdrawals_match_what_they_give() {
    check(
        sizes(["1"]),
        r#"1 quote bank=A side=B px=1.3 qty=1 quote_id=7
           2 quote bank=A withdrawn=true quote_id="7"
           3 quote bank=A side=B px=1.2 qty=1 quote_id=8
           4 quote bank=A withdrawn=true quote_id=7
           5 quote bank=A side=S px=1.4 qty=1 quote_id=8
           6 quote bank=A withdrawn=true quote_id=8 side=B
           7 quote bank=A side=B px=1.1 qty=1 tier=2 full_amount=true
           8 quote bank=A withdrawn=true full_amount=false
           9 quote bank=A withdrawn=true tier=0
           10 quote bank=A withdrawn=true value_date=1970-01-06
           11 quote bank=B withdrawn=true
           12 quote bank=A withdrawn=true instr=GBP/USD
           13 quote bank=A withdrawn=true"#,
        expect![[r#"
            1 1 normal 1.3/A/#7 - | 1.3:1@1.3/A/#7 | -
            3 1 normal 1.2/A/#8 - | 1.2:1@1.2/A/#8 | -
            5 1 normal 1.2/A/#8 1.4/A/#8 | 1.2:1@1.2/A/#8 | 1.4:1@1.4/A/#8
            6 1 normal - 1.4/A/#8 | - | 1.4:1@1.4/A/#8
            7 1 normal 1.1/A/t2/full 1.4/A/#8 | - | 1.4:1@1.4/A/#8
            8 1 normal 1.1/A/t2/full - | - | -
            13 1 normal - - | - | -
        "#]],
    );
}

/// 1970 began on a Thursday. A wrong spot date mixes the prices of two settlements.
#[test]
fn rule_11_spot_is_the_second_weekday_without_a_calendar() {
    const SATURDAY: u64 = 172_800_000_000_000;
    check(
        BestPriceConfig { stale_ms: 0, ..sizes(["1"]) },
        &format!(
            "1 quote bank=A side=B px=1.1 qty=1
             2 quote bank=B side=B px=1.2 qty=1 value_date=1970-01-05
             3 quote bank=A side=B px=1.3 qty=1 instr=CADUSD
             4 quote bank=A side=B px=1.3 qty=1 value_date=1970-01-01
             {SATURDAY} quote bank=A side=B px=1.1 qty=1
             {SATURDAY} quote bank=A side=B px=1.3 qty=1 instr=USD/CAD
             {SATURDAY} quote bank=A side=B px=1.3 qty=1 value_date=1970-01-02
             5 quote bank=A side=B px=1.3 qty=1"
        ),
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            2 1 normal 1.2/B - | 1.2:1@1.2/B | -
            3 USD/CAD 1970-01-02 1 normal - 1.3/A/inverted | - | -
            4 1970-01-01 1 normal 1.3/A - | 1.3:1@1.3/A | -
            172800000000000 1970-01-06 1 normal 1.1/A - | 1.1:1@1.1/A | -
            172800000000000 USD/CAD 1 normal 1.3/A - | 1.3:1@1.3/A | -
            172800000000000 1 normal 1.3/A - | 1.3:1@1.3/A | -
        "#]],
    );
}

/// A pair that is taken for another one, or the wrong way round, turns bids into asks.
#[test]
fn rule_12_pairs_have_a_right_way_round() {
    for (written, name, inverted) in [
        ("EURUSD", "EUR/USD", false),
        ("USD/EUR", "EUR/USD", true),
        ("JPYUSD", "USD/JPY", true),
        ("JPY/ZAR", "ZAR/JPY", true),
        ("ZAR/MXN", "MXN/ZAR", true),
        ("CHF/SEK", "CHF/SEK", false),
        ("USD/XAU", "XAU/USD", true),
        ("XAU/XAG", "XAU/XAG", false),
        ("EUR/GBP", "EUR/GBP", false),
        ("CHF/CAD", "CAD/CHF", true),
    ] {
        assert_eq!(orient(written), Some((name.to_owned(), inverted)), "{written}");
    }
    for wrong in ["EUR", "EUR-USD", "eurusd", "EUR/USDT", "EUR/EUR", "EURUSD.X", "EU/RUSD", "ÄURUSD", ""] {
        assert_eq!(orient(wrong), None, "{wrong}");
    }
}

/// A quote of the pair the other way is a price of the other side, and its quantity is of the other currency.
#[test]
fn rule_12_a_quote_the_other_way_swaps_its_side() {
    check(
        sizes(["4"]),
        "1 quote bank=A side=B px=0.8 qty=5 instr=USD/EUR
         2 quote bank=B side=S px=1.2501 qty=4
         3 quote bank=B side=S px=1.2499 qty=4
         4 quote bank=B withdrawn=true side=B instr=USD/EUR
         5 quote bank=A side=B px=0.8 qty=4.99 instr=USD/EUR
         6 quote bank=A side=B px=0.8 qty=5 instr=USDEUR
         7 quote bank=A side=S px=1.3 qty=4",
        expect![[r#"
            1 4 normal - 0.8/A/inverted | - | -
            2 4 normal - 0.8/A/inverted | - | 5.0004:4@1.2501/B
            3 4 normal - 1.2499/B | - | 4.9996:4@1.2499/B
            4 4 normal - 0.8/A/inverted | - | -
            5 4 normal - - | - | -
            6 4 normal - 0.8/A/inverted | - | -
            7 4 normal - 1.3/A | - | 5.2:4@1.3/A
        "#]],
    );
}

/// A tie that is broken another way gives another bank the deal.
#[test]
fn rule_14_ties_go_to_age_bank_tier_and_sweepable() {
    check(
        sizes(["1"]),
        "1 quote bank=B side=B px=1.1 qty=1 tier=2
         1 quote bank=B side=B px=1.1 qty=1 tier=1
         1 quote bank=B side=B px=1.1 qty=1 tier=1 full_amount=true
         1 quote bank=A side=B px=1.1 qty=1 tier=9
         1 quote bank=a side=B px=1.1 qty=1
         2 quote bank=C side=B px=1.102 qty=0.9
         3 quote bank=D side=B px=1.101 qty=1 full_amount=true",
        expect![[r#"
            1 1 normal 1.1/B/t2 - | 1.1:1@1.1/B/t2 | -
            1 1 normal 1.1/B/t1 - | 1.1:1@1.1/B/t1 | -
            1 1 normal 1.1/A/t9 - | 1.1:1@1.1/A/t9 | -
            2 1 normal 1.1/A/t9 - | 1.1018:0.9@1.102/C+0.1@1.1/A/t9 | -
            3 1 normal 1.101/D/full - | 1.1018:0.9@1.102/C+0.1@1.1/A/t9 | -
        "#]],
    );
}

/// A sweep is dealt leg by leg; its sum is compared with a bank's price, and a rounded one would pick the wrong.
#[test]
fn rule_15_sweeps_add_up_exactly() {
    check(
        sizes(["5"]),
        "1 quote bank=A side=B px=1.1 qty=2 tier=1
         2 quote bank=A side=B px=1.09 qty=3 tier=2
         3 quote bank=A side=B px=1.2 qty=5 full_amount=true
         4 quote bank=C side=B px=1.123456789 qty=0.0000000001
         5 quote bank=A withdrawn=true tier=2
         6 quote bank=D side=S px=0.5 qty=100 instr=USD/EUR",
        expect![[r#"
            2 5 normal - - | 5.47:2@1.1/A/t1+3@1.09/A/t2 | -
            3 5 normal 1.2/A/full - | 5.47:2@1.1/A/t1+3@1.09/A/t2 | -
            4 5 normal 1.2/A/full - | 5.4700000000033456789:0.0000000001@1.123456789/C+2@1.1/A/t1+2.9999999999@1.09/A/t2 | -
            5 5 normal 1.2/A/full - | - | -
            6 5 normal 0.5/D/inverted - | - | -
        "#]],
    );
}

/// A crossed market is shown, never repaired; also that of one bank.
#[test]
fn rule_16_state_is_of_bid_and_ask() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=B px=1.25 qty=1
         2 quote bank=B side=S px=1.26 qty=1
         3 quote bank=B side=S px=1.25 qty=1
         4 quote bank=A side=S px=1.24 qty=1
         5 quote bank=A withdrawn=true side=S
         6 quote bank=B withdrawn=true
         7 quote bank=C side=B px=0.8 qty=2 instr=USD/EUR",
        expect![[r#"
            1 1 normal 1.25/A - | 1.25:1@1.25/A | -
            2 1 normal 1.25/A 1.26/B | 1.25:1@1.25/A | 1.26:1@1.26/B
            3 1 locked 1.25/A 1.25/B | 1.25:1@1.25/A | 1.25:1@1.25/B
            4 1 crossed 1.25/A 1.24/A | 1.25:1@1.25/A | 1.24:1@1.24/A
            5 1 locked 1.25/A 1.25/B | 1.25:1@1.25/A | 1.25:1@1.25/B
            6 1 normal 1.25/A - | 1.25:1@1.25/A | -
            7 1 locked 1.25/A 0.8/C/inverted | 1.25:1@1.25/A | -
        "#]],
    );
}

/// A finger that slipped would be the best price; a quote that the market follows must come back.
#[test]
fn rule_17_spikes_are_far_from_the_median_of_the_others() {
    let events = "1 quote bank=A side=B px=1.1 qty=1
         2 quote bank=B side=B px=1.1002 qty=1
         3 quote bank=C side=B px=1.1004 qty=0.5
         4 quote bank=D side=B px=1.1052 qty=1
         5 quote bank=D side=B px=1.10521 qty=1
         6 quote bank=D side=B px=1.2 qty=9 tier=1
         7 quote bank=E side=B px=1.1006 qty=1 full_amount=true";
    check(
        sizes(["1"]),
        events,
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            2 1 normal 1.1002/B - | 1.1002:1@1.1002/B | -
            3 1 normal 1.1002/B - | 1.1003:0.5@1.1004/C+0.5@1.1002/B | -
            4 1 normal 1.1052/D - | 1.1052:1@1.1052/D | -
            5 1 normal 1.1002/B - | 1.1003:0.5@1.1004/C+0.5@1.1002/B | -
            7 1 normal 1.10521/D - | 1.10521:1@1.10521/D | -
        "#]],
    );
    assert_eq!(apply(sizes(["1"]), events).1.spikes(), 2, "each quote once");
    let off = BestPriceConfig { spike_pips: 0, ..sizes(["1"]) };
    assert_eq!(apply(off, events).1.spikes(), 0);
    let more = BestPriceConfig { spike_banks: 5, ..sizes(["1"]) };
    assert_eq!(apply(more, events).1.spikes(), 0);
}

/// A pip of yen is a hundred times one of dollars; an inverted quote has no vote and no privilege.
#[test]
fn rule_17_pips_and_inverted_quotes() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=S px=150 qty=1 instr=USD/JPY
         1 quote bank=B side=S px=150 qty=1 instr=USD/JPY
         1 quote bank=C side=S px=150 qty=1 instr=USD/JPY
         2 quote bank=D side=S px=149.5 qty=1 instr=USD/JPY
         3 quote bank=D side=S px=149.499 qty=1 instr=USD/JPY",
        expect![[r#"
            1 USD/JPY 1 normal - 150/A | - | 150:1@150/A
            2 USD/JPY 1 normal - 149.5/D | - | 149.5:1@149.5/D
            3 USD/JPY 1 normal - 150/A | - | 150:1@150/A
        "#]],
    );
    check(
        sizes(["1"]),
        "1 quote bank=A side=S px=1.25 qty=1
         1 quote bank=B side=S px=1.25 qty=1
         1 quote bank=C side=S px=1.25 qty=1
         2 quote bank=D side=B px=0.803 qty=2 instr=USD/EUR
         3 quote bank=D side=B px=0.81 qty=2 instr=USD/EUR
         4 quote bank=C side=B px=0.8 qty=2 instr=USD/EUR",
        expect![[r#"
            1 1 normal - 1.25/A | - | 1.25:1@1.25/A
            2 1 normal - 0.803/D/inverted | - | 1.25:1@1.25/A
            3 1 normal - 1.25/A | - | 1.25:1@1.25/A
            4 1 normal - 0.81/D/inverted | - | 1.25:1@1.25/A
        "#]],
    );
}

/// A bank that was switched off for one pair and then in all must stay off in that pair when it is switched on again.
#[test]
fn rule_18_controls_are_two_switches() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=B px=1.1 qty=1
         2 quote bank=B side=B px=1 qty=1
         3 control venue=A action=disable instr=-
         4 control venue=A action=enable instr=- dry_run=true
         5 control venue=A action=enable instr=EURUSD
         6 control venue=A action=disable instr=USD/EUR until=20
         7 control venue=A action=enable instr=-
         25 control venue=Z action=disable instr=-
         26 control venue=A action=disable instr=- until=40
         27 control venue=A action=disable instr=- until=30
         28 control venue=A action=halt instr=-
         50 quote bank=C side=B px=1.1 qty=1
         51 control venue=A action=disable
         52 control venue=A action=enable",
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            3 1 normal 1/B - | 1:1@1/B | -
            20 1 normal 1.1/A - | 1.1:1@1.1/A | -
            26 1 normal 1/B - | 1:1@1/B | -
            30 1 normal 1.1/A - | 1.1:1@1.1/A | -
            51 1 normal 1.1/C - | 1.1:1@1.1/C | -
            52 1 normal 1.1/A - | 1.1:1@1.1/A | -
        "#]],
    );
}

/// A bank that is switched off must not say what a spike is.
#[test]
fn rule_18_disabled_quotes_are_in_no_median() {
    check(
        sizes(["1"]),
        "1 quote bank=A side=B px=1.1 qty=1
         1 quote bank=B side=B px=1.1 qty=1
         1 quote bank=C side=B px=1.1 qty=1
         2 quote bank=D side=B px=1.2 qty=1
         3 control venue=C action=disable",
        expect![[r#"
            1 1 normal 1.1/A - | 1.1:1@1.1/A | -
            3 1 normal 1.2/D - | 1.2:1@1.2/D | -
        "#]],
    );
}

/// A control that is over when it comes, an end of `enable`, a logout of one pair: rules that were open and are decided.
#[test]
fn decisions_hold() {
    check(
        sizes(["1"]),
        r#"900 quote bank=A side=B px=1.1 qty=1 flags=["clock_ahead"]
           10 control venue=A action=disable
           11 control venue=A action=disable until=11
           12 control venue=A action=disable
           13 control venue=A action=enable until=14
           15 status venue=A state=logout instr=GBP/USD
           16 quote bank=A side=B px=1.1 qty=1 valid_until=20"#,
        expect![[r#"
            0 1 normal 1.1/A - | 1.1:1@1.1/A | -
            10 1 normal - - | - | -
            11 1 normal 1.1/A - | 1.1:1@1.1/A | -
            12 1 normal - - | - | -
            13 1 normal 1.1/A - | 1.1:1@1.1/A | -
            15 1 normal - - | - | -
            16 1 normal 1.1/A - | 1.1:1@1.1/A | -
        "#]],
    );
    assert!(is_refused(sizes([])));
    assert!(is_refused(sizes(["0"])));
    assert!(is_refused(BestPriceConfig { spike_banks: 0, ..sizes(["1"]) }));
}
