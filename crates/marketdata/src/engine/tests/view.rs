//! Extraction of a message's fields, and the fields in it that are not its own.

use super::*;

/// The templates with this at the end of each entry of a depth message, and this after its entries.
fn with(entry: &str, behind: &str) -> String {
    let end = "<uInt32 name=\"Level\"/></sequence></template>\n  <template name=\"Snapshot\"";
    let level = "<uInt32 name=\"Level\"/>";
    let other = format!("{level}{entry}</sequence>{behind}</template>\n  <template name=\"Snapshot\"");
    let other = TEMPLATES.replacen(end, &other, 1);
    assert_ne!(other, TEMPLATES);
    other
}

const BEGINS: &str = "market_depth = 100\nrecovery = { first = 1 }";

/// Messages inside a message, also of its own template, say nothing for it: no product, no number, no entry.
#[test]
fn what_a_message_inside_says_is_not_said_by_the_message() {
    let mut rig = Rig::with(BEGINS, &with("<templateRef/>", "<templateRef/>"));
    let nested = |n: u64| {
        let mut out = message(2, &[n, 9, 2]);
        for px in [5, 4] {
            [50, 0, 0].iter().for_each(|n| put(&mut out, *n));
            put_signed(&mut out, px);
            [1, 6 - px as u64].iter().for_each(|n| put(&mut out, *n));
            out.extend(message(6, &[8, 77]));
        }
        // A message without entries, with a beacon in it.
        out.extend(message(2, &[99, 8, 0]));
        out.extend(message(4, &[8, 99]));
        out
    };
    rig.send(0, INC, &packet(1, 10, false, &[nested(1), depth(2, 9, &[])]));
    assert_eq!(rig.said(), "refused truncated", "the second has none inside");
    rig.send(1, INC, &packet(1, 10, false, &[nested(1), nested(2)]));
    assert_eq!((rig.said(), rig.bids("50")), ("whole 9, recovered 50".to_owned(), vec![5, 4, 5, 4]));
    assert_eq!(rig.handler.tables().products.len(), 1);
    assert_eq!(rig.handler.tables().instruments.len(), 1);
}

/// Fields and sequences are named by the whole way to them; what has the same name elsewhere is another.
#[test]
fn the_same_name_elsewhere_is_another_field() {
    let more = "<group name=\"More\"><uInt32 name=\"Seq\"/><sequence name=\"Entries\"><uInt64 name=\"Id\"/></sequence></group>";
    let mut rig = Rig::with(BEGINS, &with("<group name=\"Of\"><int64 name=\"Px\"/></group>", more));
    let one = |n: u64| {
        let mut out = message(2, &[n, 9, 1, 50, 0, 0]);
        put_signed(&mut out, 7);
        [1, 1].iter().for_each(|n| put(&mut out, *n));
        put_signed(&mut out, -3);
        [77, 2, 60, 61].iter().for_each(|n| put(&mut out, *n));
        out
    };
    rig.send(0, INC, &packet(1, 10, false, &[one(1), one(2)]));
    assert_eq!((rig.said(), rig.bids("50")), ("whole 9, recovered 50".to_owned(), vec![7, 7]));
    assert_eq!(rig.handler.tables().instruments.len(), 1);
}

/// An id of a trade that is no number is left out, and counted.
#[test]
fn what_is_left_out_of_a_trade_is_counted() {
    let table = TABLE.replacen("depth = \"Entries.Level\" }", "trade_id = \"Entries.Trade\" }", 1);
    let templates = with("<string name=\"Trade\"/>", "");
    let config = Arc::new(config_from(&table, BEGINS, "", &templates).unwrap());
    let mut rig = Rig { handler: Engine::new(config), ..Rig::with_table_text("") };
    let trade = |n: u64, id: &[u8]| {
        let mut out = depth(n, 9, &[(50, 0, 2, 7, 1, 1)]);
        out.extend(id);
        packet(n, n * 10, false, &[out])
    };
    rig.send(0, INC, &trade(1, b"1\xb2"));
    assert_eq!(rig.handler.stats().products.unknown, 0);
    rig.send(0, INC, &trade(2, b"T\xb2"));
    assert_eq!((rig.handler.stats().products.unknown, rig.seen.trades.len()), (1, 2));
}
