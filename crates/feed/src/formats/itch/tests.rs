//! The two ways of writing events against each other, the orders against a plain map, and what every type becomes.

use super::{ItchConfig, ItchDecoder, ItchFramingConfig};
use crate::block::Block;
use crate::formats::format::FormatDecoder;
use crate::mapping::Mapping;
use proptest::prelude::*;
use std::collections::HashMap;
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_codec::itch::MoldPacketHeader;
use unitape_codec::itch::{ItchMessageHeader, ItchSampleValue, write};
use unitape_codec::twin::itch::sample::{SampleConfig, one_of_each, sample_messages};
use unitape_model::{Dictionary, Event, NameKind, frames};

const DAY: &[u8] = b"2026-03-02";
const MIDNIGHT: i64 = 1_772_427_600_000_000_000;

fn decoder(name: &str) -> ItchDecoder {
    let mapping = Mapping::built_in(name).unwrap();
    ItchDecoder::new(mapping, &ItchConfig::from_mapping(mapping).unwrap()).unwrap()
}

/// A dictionary in which all names of the samples have their ids.
fn names(stocks: u16) -> Dictionary {
    let mut names = Dictionary::default();
    names.intern(NameKind::Venue, b"XNAS").unwrap();
    for firm in [&b"NITE"[..], b"GSCO", b"JPMS"] {
        names.intern(NameKind::Firm, firm).unwrap();
    }
    let input = sample_messages(SampleConfig { messages: 0, stocks, ..SampleConfig::default() });
    for at in 0..input.len() - 41 {
        if input[at..].starts_with(&[0, 39, b'R']) {
            names.intern(NameKind::Instrument, input[at + 13..at + 21].trim_ascii_end()).unwrap();
        }
    }
    names
}

/// Frames are written into memory of the arena that nothing was put into before. It is not zeros here, so that a byte
/// that was forgotten is not what the other way of writing put there.
fn decode(decoder: &mut ItchDecoder, bytes: &[u8], known: &Dictionary) -> Block {
    let mut arena = vec![0xa5; 16 * bytes.len() + (1 << 16)];
    arena.clear();
    let room = arena.capacity();
    let mut block =
        Block { bytes: bytes.to_vec(), eof: true, head: DAY.into(), base: 7, arena, ..Block::default() };
    decoder.begin_source();
    decoder.decode_block(&mut block, 3, known);
    assert!(block.tally.is_balanced(), "{:?}", block.tally);
    assert_eq!(block.arena.capacity(), room, "a larger arena would be of other memory");
    block
}

/// The events as lines.
fn lines(block: &Block, known: &Dictionary) -> Vec<String> {
    let mut out = Vec::new();
    for (seq, (_, _, frame)) in frames(&block.arena).enumerate() {
        let mut line = Vec::new();
        write_event(
            &mut line,
            &Event::new(frame).unwrap(),
            seq as u64,
            known,
            &EmptySourceLookup,
            EventLineDetail::Plain,
        );
        let line = String::from_utf8(line).unwrap();
        // Values that are equal in all lines are left out.
        out.push(
            line.split_once(",\"kind\":").map_or(line.clone(), |(_, rest)| format!("{{\"kind\":{rest}")),
        );
    }
    out
}

/// The messages written by hand, with their lengths.
fn vectors() -> Vec<u8> {
    let mut out = Vec::new();
    for line in include_str!("../../../../../vectors/itch/itch50.txt").lines() {
        if line.is_empty() || line.starts_with(['#', '{']) {
            continue;
        }
        let digits: Vec<u8> = line.bytes().filter(|b| *b != b' ').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        out.extend_from_slice(&(digits.len() as u16 / 2).to_be_bytes());
        out.extend(digits.chunks(2).map(byte));
    }
    out
}

fn check(mapping: &str, expected: expect_test::Expect) {
    let mut known = names(0);
    known.intern(NameKind::Instrument, b"ZVZZT").unwrap();
    let block = decode(&mut decoder(mapping), &vectors(), &known);
    assert_eq!((block.tally.messages, block.tally.with_events), (23, 23));
    assert!(block.fixups.is_empty());
    let first = Event::new(frames(&block.arena).next().unwrap().2).unwrap();
    assert_eq!(first.ts_event().0, MIDNIGHT + 11_192_499_503_104);
    expected.assert_eq(&format!("{}\n", lines(&block, &known).join("\n")));
}

/// The events of each type are a promise to the readers of the tape.
#[test]
fn every_type_with_orders() {
    check(
        "nasdaq-itch50",
        expect_test::expect![[r#"
        {"kind":"status","venue":"XNAS","state":"system","reason":"O"}
        {"kind":"ref","instr":"ZVZZT","ccy":"USD","tier":1,"lot":"100","mic":"XNAS","symbol":"ZVZZT","market_category":"G","financial_status":"N","round_lots_only":"N","issue_classification":"C","authenticity":"P","short_sale_threshold":"N","etp_flag":"N","inverse":"N","issue_sub_type":"Z"}
        {"kind":"session","venue":"XNAS","instr":"ZVZZT","phase":"halt"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"halted","reason":"LUDP"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"reg_sho","reason":"1"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"participant","reason":"NITE","primary":"Y","mode":"N","participant_state":"A"}
        {"kind":"status","venue":"XNAS","state":"mwcb_levels","level_1":"4044.8","level_2":"3805.0472","level_3":"3458.2152"}
        {"kind":"status","venue":"XNAS","state":"mwcb","reason":"2"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"ipo_quoting","reason":"A","release_time":38400,"ipo_price":"16"}
        {"kind":"ref_px","instr":"ZVZZT","px":"10","source":"luld","upper":"10.5","lower":"9.5","extension":2}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"op_halt","reason":"Q"}
        {"kind":"order_new","oid":123456789,"side":"B","px":"12.3","qty":"1000","venue":"XNAS","instr":"ZVZZT","type":"limit"}
        {"kind":"order_new","oid":123456790,"side":"S","px":"12.3001","qty":"1","venue":"XNAS","instr":"ZVZZT","firm":"NITE","type":"limit"}
        {"kind":"exec","oid":123456789,"match_id":20000,"side":"B","px":"12.3","qty":"100","liq":"A","venue":"XNAS","instr":"ZVZZT","left":900}
        {"kind":"trade","venue":"XNAS","instr":"ZVZZT","px":"12.3","qty":"100","match_id":20000,"side":"S"}
        {"kind":"exec","oid":123456789,"match_id":20001,"side":"B","px":"200000","qty":"100","liq":"X","venue":"XNAS","instr":"ZVZZT","left":800}
        {"kind":"order_amend","oid":123456789,"side":"B","px":"12.3","qty":"800","venue":"XNAS","instr":"ZVZZT"}
        {"kind":"order_cancel","oid":123456789,"side":"B","px":"12.3","qty":"600","venue":"XNAS","instr":"ZVZZT"}
        {"kind":"order_cancel","oid":123456790,"side":"S","px":"12.3001","qty":"1","venue":"XNAS","instr":"ZVZZT","firm":"NITE"}
        {"kind":"order_new","oid":123456791,"side":"S","px":"0.0001","qty":"50","venue":"XNAS","instr":"ZVZZT","firm":"NITE","type":"limit","replaces":123456790}
        {"kind":"trade","venue":"XNAS","instr":"ZVZZT","px":"12.3","qty":"25","match_id":20002}
        {"kind":"trade","venue":"XNAS","instr":"ZVZZT","px":"12.3","qty":"5000000000","match_id":20003,"cond":"O"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"trade_broken","reason":"20002"}
        {"kind":"ref_px","instr":"ZVZZT","px":"12.3","source":"noii","paired":10000,"imbalance":3000,"direction":"S","far":"12.288","near":"12.296","cross_type":"C","variation":"L"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"retail","reason":"A"}
        {"kind":"ref_px","instr":"ZVZZT","px":"14.8","source":"dlcr","eligible":"Y","min":"10","max":"36","near_time":34200000000123,"lower":"14.2336","upper":"15.36"}
    "#]],
    );
}

/// Every type without orders: an event about an order names it, and nothing that is not in the message.
#[test]
fn every_type_by_itself() {
    check(
        "nasdaq-itch50-stateless",
        expect_test::expect![[r#"
        {"kind":"status","venue":"XNAS","state":"system","reason":"O"}
        {"kind":"ref","instr":"ZVZZT","ccy":"USD","tier":1,"lot":"100","mic":"XNAS","symbol":"ZVZZT","market_category":"G","financial_status":"N","round_lots_only":"N","issue_classification":"C","authenticity":"P","short_sale_threshold":"N","etp_flag":"N","inverse":"N","issue_sub_type":"Z"}
        {"kind":"session","venue":"XNAS","instr":"ZVZZT","phase":"halt"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"halted","reason":"LUDP"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"reg_sho","reason":"1"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"participant","reason":"NITE","primary":"Y","mode":"N","participant_state":"A"}
        {"kind":"status","venue":"XNAS","state":"mwcb_levels","level_1":"4044.8","level_2":"3805.0472","level_3":"3458.2152"}
        {"kind":"status","venue":"XNAS","state":"mwcb","reason":"2"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"ipo_quoting","reason":"A","release_time":38400,"ipo_price":"16"}
        {"kind":"ref_px","instr":"ZVZZT","px":"10","source":"luld","upper":"10.5","lower":"9.5","extension":2}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"op_halt","reason":"Q"}
        {"kind":"order_new","oid":123456789,"side":"B","px":"12.3","qty":"1000","venue":"XNAS","instr":"ZVZZT","type":"limit"}
        {"kind":"order_new","oid":123456790,"side":"S","px":"12.3001","qty":"1","venue":"XNAS","instr":"ZVZZT","firm":"NITE","type":"limit"}
        {"kind":"exec","oid":123456789,"match_id":20000,"qty":"100","liq":"A","venue":"XNAS"}
        {"kind":"exec","oid":123456789,"match_id":20001,"px":"200000","qty":"100","liq":"X","venue":"XNAS"}
        {"kind":"order_amend","oid":123456789,"venue":"XNAS","qty_reduced":"200"}
        {"kind":"order_cancel","oid":123456789,"venue":"XNAS"}
        {"kind":"order_cancel","oid":123456790,"venue":"XNAS"}
        {"kind":"order_new","oid":123456791,"px":"0.0001","qty":"50","venue":"XNAS","type":"limit","replaces":123456790}
        {"kind":"trade","venue":"XNAS","instr":"ZVZZT","px":"12.3","qty":"25","match_id":20002}
        {"kind":"trade","venue":"XNAS","instr":"ZVZZT","px":"12.3","qty":"5000000000","match_id":20003,"cond":"O"}
        {"kind":"status","venue":"XNAS","state":"trade_broken","reason":"20002"}
        {"kind":"ref_px","instr":"ZVZZT","px":"12.3","source":"noii","paired":10000,"imbalance":3000,"direction":"S","far":"12.288","near":"12.296","cross_type":"C","variation":"L"}
        {"kind":"status","venue":"XNAS","instr":"ZVZZT","state":"retail","reason":"A"}
        {"kind":"ref_px","instr":"ZVZZT","px":"14.8","source":"dlcr","eligible":"Y","min":"10","max":"36","near_time":34200000000123,"lower":"14.2336","upper":"15.36"}
    "#]],
    );
}

/// The two ways must not differ by a byte, or a tape would depend on which block first brought a name.
#[test]
fn images_are_what_fields_make() {
    for mapping in ["nasdaq-itch50", "nasdaq-itch50-stateless"] {
        let config = SampleConfig { messages: 20_000, stocks: 50, live: 700, seed: 5 };
        let input = [sample_messages(config), one_of_each()].concat();
        let known = names(50);
        let (mut fast, mut slow) = (decoder(mapping), decoder(mapping));
        slow.use_general_path();
        // The names of the first pass have their ids in the second.
        for round in 0..2 {
            let (fast, slow) = (decode(&mut fast, &input, &known), decode(&mut slow, &input, &known));
            assert_eq!(fast.arena.len(), slow.arena.len(), "{mapping}, round {round}");
            for ((at, _, f), (_, _, s)) in frames(&fast.arena).zip(frames(&slow.arena)) {
                assert_eq!(f, s, "{mapping}, round {round}, frame at {at}");
            }
            assert_eq!(format!("{:?}", fast.units), format!("{:?}", slow.units));
            assert_eq!(fast.tally, slow.tally);
        }
    }
}

/// A message in the middle of many that is not as plain as they are must not change what becomes of them.
fn damaged(mapping: &str, config: SampleConfig, before_mark: u64, damage: &[(u16, u8, u8)]) {
    let mut input = sample_messages(config);
    let (mut starts, mut at) = (Vec::new(), 0);
    while at < input.len() {
        starts.push(at);
        at += 2 + usize::from(u16::from_be_bytes([input[at], input[at + 1]]));
    }
    for (message, place, bits) in damage {
        let start = starts[usize::from(*message) % starts.len()];
        let length = usize::from(u16::from_be_bytes([input[start], input[start + 1]]));
        // Its length and type stay.
        input[start + 3 + usize::from(*place) % (length - 1)] ^= bits;
    }
    let known = names(config.stocks);
    let (mut fast, mut slow) = (decoder(mapping), decoder(mapping));
    slow.use_general_path();
    for round in 0..2 {
        let [fast, slow] = [&mut fast, &mut slow].map(|decoder| {
            let (bytes, base) = (input.clone(), crate::block::PROGRESS_BYTES - before_mark);
            let mut block = Block { bytes, base, eof: true, head: DAY.into(), ..Block::default() };
            decoder.begin_source();
            decoder.decode_block(&mut block, 3, &known);
            block
        });
        assert!(fast.arena == slow.arena, "{mapping}, round {round}");
        assert_eq!(format!("{:?}", fast.units), format!("{:?}", slow.units));
        assert_eq!((fast.tally, &fast.tallies), (slow.tally, &slow.tallies));
        assert!(fast.tally.is_balanced() && fast.raw == slow.raw);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn batches_are_what_fields_make(
        seed in any::<u64>(), orders in any::<bool>(), before_mark in 1u64..40_000,
        damage in prop::collection::vec((any::<u16>(), any::<u8>(), 1u8..), 0..8),
    ) {
        let config = SampleConfig { messages: 1_000, stocks: 20, live: 300, seed };
        damaged(["nasdaq-itch50-stateless", "nasdaq-itch50"][usize::from(orders)], config, before_mark, &damage);
    }
}

/// The book as a plain map: side, price, shares left and executed, locate code.
type Plain = HashMap<u64, (u8, u32, u32, u32, u16)>;

/// The fields of an event of the order family: oid, side, px, qty, instrument.
fn order_fields(event: &Event<'_>) -> (u64, u8, i64, u64, u32) {
    let order = unitape_model::records::OrderRecord::from_event(event).expect("of the order family");
    let qty = order.qty.get() as u64 * 10u64.pow(u32::from(order.common.kind_b));
    let oid = u64::from_le_bytes(order.oid[..8].try_into().unwrap()) >> 8;
    (oid, order.side(), order.px.get() / 100_000, qty, event.instrument().0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A delete that carries the side of another order is worse than one that carries none.
    #[test]
    fn orders_like_a_plain_map(seed in any::<u64>(), live in 1usize..400) {
        let input = sample_messages(SampleConfig { messages: 3_000, stocks: 9, live, seed });
        let known = names(9);
        let block = decode(&mut decoder("nasdaq-itch50"), &input, &known);
        prop_assert_eq!(block.tally.quarantined, 0);
        let (mut map, mut at) = (Plain::new(), 0);
        let mut events = frames(&block.arena).map(|(_, _, f)| Event::new(f).unwrap());
        let be = |m: &[u8]| m.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        while at < input.len() {
            let m = &input[at + 2..at + 2 + be(&input[at..at + 2]) as usize];
            at += 2 + m.len();
            let order = be(&m[11..19.min(m.len())]);
            let locate = be(&m[1..3]) as u16;
            let mut next = || events.next().unwrap();
            let id = |locate: u16| u32::from(locate);
            match m[0] {
                b'A' | b'F' => {
                    let side = if m[19] == b'B' { 1 } else { 2 };
                    let (shares, px) = (be(&m[20..24]) as u32, be(&m[32..36]) as u32);
                    map.insert(order, (side, px, shares, 0, locate));
                    prop_assert_eq!(order_fields(&next()), (order, side, px.into(), shares.into(), id(locate)));
                }
                b'E' | b'C' => {
                    let shares = be(&m[19..23]) as u32;
                    let (side, px, left, done, locate) = map[&order];
                    let px = if m[0] == b'C' { be(&m[32..36]) as u32 } else { px };
                    let event = next();
                    prop_assert_eq!(order_fields(&event), (order, side, px.into(), shares.into(), id(locate)));
                    let kept: Vec<_> = event.unmapped_fields().map(|(n, v)| format!("{n}={v}")).collect();
                    prop_assert_eq!(kept, vec![format!("left={}", left - shares)]);
                    if m[0] == b'E' || m[31] == b'Y' {
                        prop_assert_eq!(next().kind(), unitape_model::EventKind::Trade);
                    }
                    map.insert(order, (side, map[&order].1, left - shares, done + shares, locate));
                }
                b'X' => {
                    let shares = be(&m[19..23]) as u32;
                    let (side, px, left, done, locate) = map[&order];
                    let whole = if left == shares { shares } else { done + left - shares };
                    prop_assert_eq!(order_fields(&next()), (order, side, px.into(), whole.into(), id(locate)));
                    map.insert(order, (side, px, left - shares, done, locate));
                }
                b'D' | b'U' => {
                    let (side, px, left, _, locate) = map.remove(&order).unwrap();
                    prop_assert_eq!(order_fields(&next()), (order, side, px.into(), left.into(), id(locate)));
                    if m[0] == b'U' {
                        let (new, shares, px) = (be(&m[19..27]), be(&m[27..31]) as u32, be(&m[31..35]) as u32);
                        prop_assert_eq!(order_fields(&next()), (new, side, px.into(), shares.into(), id(locate)));
                        map.insert(new, (side, px, shares, 0, locate));
                    }
                }
                b'S' if matches!(m[11], b'S' | b'E') => _ = (next(), next()),
                _ => _ = next(),
            }
        }
        prop_assert!(events.next().is_none());
    }
}

const ADD: [ItchSampleValue<'_>; 5] = [
    ItchSampleValue::Number(77),
    ItchSampleValue::Text(b"B"),
    ItchSampleValue::Number(500),
    ItchSampleValue::Text(b"ZVZZT"),
    ItchSampleValue::Number(100_000),
];

fn header(stock_locate: u16, timestamp_ns: u64) -> ItchMessageHeader {
    ItchMessageHeader { stock_locate, tracking_number: 0, timestamp_ns }
}

/// An add of 500 shares, then this message; the code and sentence of the quarantine, if it went there.
fn after_add(letter: u8, locate: u16, values: &[ItchSampleValue<'_>]) -> String {
    let mut input = Vec::new();
    write(&mut input, b'A', header(5, 1_000), &ADD);
    write(&mut input, letter, header(locate, 2_000), values);
    write(&mut input, b'D', header(5, 3_000), &[ItchSampleValue::Number(77)]);
    let mut out = String::new();
    // With the names known and unknown: the path of a message must not show.
    for known in [Dictionary::default(), {
        let mut k = names(0);
        k.intern(NameKind::Instrument, b"ZVZZT").unwrap();
        k
    }] {
        let block = decode(&mut decoder("nasdaq-itch50"), &input, &known);
        let refusals = lines(&block, &known)
            .iter()
            .filter(|l| l.contains("quarantine"))
            .map(|l| {
                let v: serde_json::Value = serde_json::from_str(l).unwrap();
                format!("{}: {}", v["reason"].as_str().unwrap(), v["detail"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
            .join("; ");
        assert!(out.is_empty() || out == refusals);
        out = refusals;
    }
    out
}

#[test]
fn what_orders_cannot_be_is_told() {
    use ItchSampleValue::{Number as N, Text as T};
    for (letter, locate, values, says) in [
        (b'E', 5, &[N(78), N(100), N(1)][..], "unknown_order: no order 78 lives"),
        (b'E', 5, &[N(77), N(501), N(1)], "bad_quantity: 501 shares of order 77, which has 500"),
        (b'E', 5, &[N(77), N(0), N(1)], "bad_quantity: no shares"),
        (b'E', 6, &[N(77), N(1), N(1)], "bad_locate: order 77 is of locate code 5, not 6"),
        (b'X', 5, &[N(78), N(1)], "unknown_order: no order 78 lives"),
        (b'X', 5, &[N(77), N(501)], "bad_quantity: 501 shares of order 77, which has 500"),
        (b'D', 6, &[N(77)], "bad_locate: order 77 is of locate code 5, not 6"),
        (b'D', 5, &[N(0)], "unknown_order: no order 0 lives"),
        (b'U', 5, &[N(78), N(79), N(1), N(1)], "unknown_order: no order 78 lives"),
        (b'A', 5, &ADD, "duplicate_id: an order 77 lives already"),
        (
            b'A',
            5,
            &[N(78), T(b"B"), N(1), T(b"OTHER"), N(1)],
            "bad_locate: locate code 5 names ZVZZT in this source",
        ),
        (b'A', 6, &[N(78), T(b"X"), N(1), T(b"OTHER"), N(1)], "bad_side: side: neither B nor S"),
        (b'A', 6, &[N(78), T(b"B"), N(0), T(b"OTHER"), N(1)], "bad_quantity: no shares"),
        (
            b'A',
            6,
            &[N(78), T(b"B"), N(1), T(b"\xc3\x84"), N(1)],
            "bad_stock: stock: no symbol of printable ASCII",
        ),
    ] {
        assert_eq!(after_add(letter, locate, values), says);
    }
    // A refused message has no effect: the order is deleted all the same.
    assert_eq!(after_add(b'E', 5, &[N(77), N(499), N(1)]), "");
    // References of more than 56 bits are exact, too.
    assert_eq!(after_add(b'A', 5, &[N(u64::MAX), T(b"S"), N(7), T(b"ZVZZT"), N(u32::MAX.into())]), "");
}

/// Without a date every time would be wrong by years.
#[test]
fn without_a_date_nothing_is_told() {
    let mut block = Block { bytes: one_of_each(), eof: true, ..Block::default() };
    decoder("nasdaq-itch50").decode_block(&mut block, 3, &names(0));
    assert_eq!((block.tally.messages, block.tally.quarantined), (23, 23));
}

#[test]
fn mappings_that_are_wrong() {
    let says = |table: &str| {
        let text = format!("name='m'\nformat='itch'\n[itch]\n{table}");
        Mapping::parse(&text, "m.toml").map(|_| "ok".to_owned()).unwrap_or_else(|e| e.to_string())
    };
    for (table, expected) in [
        ("venue='XNAS'\n", "ok"),
        ("venue='XNAS'\nsession_date='2026-03-02'\n", "ok"),
        ("venue=''\n", "itch.venue: a name of 1 to 255 bytes"),
        ("venue='X'\nsession_date='2026-02-30'\n", "itch.session_date: `2026-02-30` is no date"),
        ("venue='X'\nzone='America/Gotham'\n", "itch.zone: no time zone `America/Gotham`"),
        ("venue='X'\nframing='udp'\n", "unknown variant `udp`"),
        ("venue='X'\n[itch.system_event]\nS='begin'\n", "itch.system_event.S: no phase `begin`"),
        ("venue='X'\n[itch.trading_state]\nHALT='halt'\n", "itch.trading_state.HALT: a code is one letter"),
        ("venue='X'\nnope=1\n", "unknown field `nope`"),
        ("venue='X'\n[[rule]]\nignore=true\n", "format itch has no rules"),
    ] {
        let got = says(table);
        assert!(got.contains(expected), "{got}\nshould say: {expected}");
    }
    let other = "name='m'\nformat='fix'\nmessage={ts='52'}\n[itch]\nvenue='X'\n[[rule]]\nignore=true\n";
    assert!(
        Mapping::parse(other, "m").unwrap_err().to_string().contains("a table [itch] is for format itch")
    );
}

/// Datagrams come twice, in two lines, and not at all.
#[test]
fn packets_that_repeat_and_packets_that_are_missing() {
    let mut decoder = decoder("nasdaq-itch50");
    decoder.config.framing = ItchFramingConfig::Mold;
    let mut known = names(0);
    known.intern(NameKind::Instrument, b"ZVZZT").unwrap();
    let message = |n: u64| {
        let mut out = Vec::new();
        let mut values = ADD;
        values[0] = ItchSampleValue::Number(n);
        write(&mut out, b'A', header(5, n), &values);
        out
    };
    let packet = |sequence: u64, messages: &[u64]| {
        let mut out = Vec::new();
        MoldPacketHeader { session: *b"S000000001", sequence, count: messages.len() as u16 }.write(&mut out);
        messages.iter().for_each(|n| out.extend_from_slice(&message(*n)));
        out
    };
    decoder.begin_source();
    let mut outcomes = Vec::new();
    for bytes in [
        packet(1, &[1, 2]),
        packet(1, &[1, 2]),
        packet(2, &[2, 3]),
        packet(4, &[]),
        packet(6, &[6]),
        packet(4, &[4]),
        packet(7, &[7])[..40].to_vec(),
        [packet(8, &[8]), vec![9]].concat(),
        b"short".to_vec(),
    ] {
        let mut block = Block { bytes, eof: true, head: DAY.into(), in_packet: true, ..Block::default() };
        decoder.decode_block(&mut block, 3, &known);
        assert!(block.tally.is_balanced());
        let mut one = Vec::new();
        for (_, _, frame) in frames(&block.arena) {
            let event = Event::new(frame).unwrap();
            match event.sequence() {
                Some(n) => one.push(n.to_string()),
                None => {
                    let line = lines(&block, &known).concat();
                    one.push(
                        line.split("\"detail\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned(),
                    );
                }
            }
        }
        let t = block.tally;
        outcomes.push(format!("{} ({} twice, {} ignored)", one.join(", "), t.duplicates, t.ignored));
    }
    expect_test::expect![[r#"
        1, 2 (0 twice, 0 ignored)
         (2 twice, 0 ignored)
        3 (1 twice, 0 ignored)
         (0 twice, 1 ignored)
        2 messages did not come: 4 to 5 of the session, 6 (0 twice, 0 ignored)
        message 4 came when later ones had been taken (0 twice, 0 ignored)
        the input ends inside a message (0 twice, 0 ignored)
        8, behind the last message (0 twice, 0 ignored)
        shorter than the head of a MoldUDP64 packet (0 twice, 0 ignored)
    "#]]
    .assert_eq(&format!("{}\n", outcomes.join("\n")));
}
