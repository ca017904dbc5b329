//! Packets that repeat, are missing or lie; orders that cannot be; settings that are wrong.

use super::{IexConfig, IexDecoder};
use crate::block::Block;
use crate::formats::format::FormatDecoder;
use crate::mapping::Mapping;
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_codec::iex::IexProtocol;
use unitape_codec::twin::iex::sample::{IexPacketWriter, IexSampleValue, message};
use unitape_model::{Dictionary, Event, NameKind, frames};

fn decoder() -> IexDecoder {
    let mapping = Mapping::built_in("iex").unwrap();
    let mut decoder = IexDecoder::new(mapping, &IexConfig::from_mapping(mapping).unwrap()).unwrap();
    decoder.begin_source();
    decoder
}

fn names() -> Dictionary {
    let mut names = Dictionary::default();
    names.intern(NameKind::Venue, b"IEXG").unwrap();
    names.intern(NameKind::Instrument, b"ZIEXT").unwrap();
    names
}

/// A datagram as the decoder gets it.
fn decode(decoder: &mut IexDecoder, payload: &[u8], known: &Dictionary) -> Block {
    let bytes = payload.to_vec();
    let mut block = Block { bytes, eof: true, in_packet: true, base: 100, ..Block::default() };
    decoder.decode_block(&mut block, 3, known);
    assert!(block.tally.is_balanced(), "{:?}", block.tally);
    assert_eq!(block.decoded, block.bytes.len());
    block
}

/// The events as lines, without what is equal in all.
fn lines(block: &Block, known: &Dictionary) -> Vec<String> {
    let as_line = |(seq, frame): (usize, &[u8])| {
        let mut line = Vec::new();
        let event = Event::new(frame).unwrap();
        write_event(&mut line, &event, seq as u64, known, &EmptySourceLookup, EventLineDetail::Plain);
        let line = String::from_utf8(line).unwrap();
        line.split_once(",\"kind\":").map_or(line.clone(), |(_, rest)| format!("{{\"kind\":{rest}"))
    };
    frames(&block.arena).map(|(_, _, frame)| frame).enumerate().map(as_line).collect()
}

/// Sequences of events, reasons and details of the quarantine, and the counts of a datagram.
fn outcome(block: &Block, known: &Dictionary) -> String {
    let mut words = Vec::new();
    for (_, _, frame) in frames(&block.arena) {
        if let Some(sequence) = Event::new(frame).unwrap().sequence() {
            words.push(sequence.to_string());
        }
    }
    for line in lines(block, known).iter().filter(|line| line.contains("\"quarantine\"")) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        words.push(format!("{} ({})", line["reason"].as_str().unwrap(), line["detail"].as_str().unwrap()));
    }
    let tally = block.tally;
    format!("[{}] {} twice, {} ignored", words.join(", "), tally.duplicates, tally.ignored)
}

/// A quote of this bid; its time is its size.
fn quote(size: u64) -> Vec<u8> {
    let number = IexSampleValue::Number;
    let price = IexSampleValue::Price;
    let values =
        [number(0), IexSampleValue::Text(b"ZIEXT"), number(size), price(990_500), price(990_600), number(7)];
    message(b'Q', size as i64, &values)
}

/// Datagrams come twice, in two lines that cut the messages otherwise, and not at all.
#[test]
fn iex_packets_that_repeat_and_packets_that_are_missing() {
    let known = names();
    let mut decoder = decoder();
    let packet = |session: u32, sequence: u64, messages: &[u64]| {
        let mut writer = IexPacketWriter::new(IexProtocol::Tops, session, 0);
        writer.next.sequence = sequence;
        writer.packet(&messages.iter().map(|size| quote(*size)).collect::<Vec<_>>())
    };
    let cut = |payload: Vec<u8>, bytes: usize| payload[..payload.len() - bytes].to_vec();
    let mut outcomes = Vec::new();
    for payload in [
        packet(7, 1, &[]),
        packet(7, 1, &[1, 2]),
        packet(7, 1, &[1, 2]),
        packet(7, 2, &[2, 3]),
        packet(7, 4, &[]),
        packet(7, 6, &[6]),
        packet(7, 4, &[4]),
        packet(7, 9, &[]),
        // The end is missing here; the other line has it.
        cut(packet(7, 9, &[9, 10]), 5),
        packet(7, 9, &[9, 10]),
        cut(packet(7, 11, &[11, 12]), 5),
        packet(7, 13, &[13]),
        packet(8, 1, &[1]),
        packet(8, 2, &[]),
        [packet(8, 2, &[2]), vec![9]].concat(),
        b"short".to_vec(),
    ] {
        outcomes.push(outcome(&decode(&mut decoder, &payload, &known), &known));
    }
    expect_test::expect![[r#"
        [] 0 twice, 1 ignored
        [1, 2] 0 twice, 0 ignored
        [] 2 twice, 0 ignored
        [3] 1 twice, 0 ignored
        [] 0 twice, 1 ignored
        [6, gap (2 messages did not come: 4 to 5 of the session)] 0 twice, 0 ignored
        [late (message 4 came when later ones had been taken)] 0 twice, 0 ignored
        [gap (2 messages did not come: 7 to 8 of the session)] 0 twice, 1 ignored
        [9, truncated (2 messages in 88 bytes are stated, 1 in 83 bytes are there)] 0 twice, 0 ignored
        [10] 1 twice, 0 ignored
        [11, truncated (2 messages in 88 bytes are stated, 1 in 83 bytes are there)] 0 twice, 0 ignored
        [13, gap (1 messages did not come: 12 to 12 of the session)] 0 twice, 0 ignored
        [1, 1] 0 twice, 0 ignored
        [] 0 twice, 1 ignored
        [2, truncated (the input ends inside the head of a packet)] 0 twice, 0 ignored
        [truncated (the input ends inside the head of a packet)] 0 twice, 0 ignored
    "#]]
    .assert_eq(&format!("{}\n", outcomes.join("\n")));
}

/// Two protocols, or two channels of one, have numbers of their own.
#[test]
fn iex_channels_count_by_themselves() {
    let known = names();
    let mut decoder = decoder();
    for channel in [1, 2] {
        for protocol in [IexProtocol::Tops, IexProtocol::Deep] {
            let mut writer = IexPacketWriter::new(protocol, 7, 0);
            writer.next.channel = channel;
            let event = message(b'S', 5, &[IexSampleValue::Text(b"R")]);
            let block = decode(&mut decoder, &writer.packet(&[event]), &known);
            assert_eq!(outcome(&block, &known), "[1] 0 twice, 0 ignored");
        }
    }
    let mut refused = 0;
    for channel in 0..2 * super::CHANNELS_MAX as u32 {
        let mut writer = IexPacketWriter::new(IexProtocol::DeepPlus, 7, 0);
        writer.next.channel = channel;
        refused += decode(&mut decoder, &writer.packet(&[]), &known).tally.quarantined;
    }
    assert_eq!(refused as usize, super::CHANNELS_MAX + 4, "channels that are made up take no memory");
    assert_eq!(decoder.channels.len(), super::CHANNELS_MAX);
}

/// Order 77 buys 500 shares; then this message.
fn after_add(letter: u8, values: &[IexSampleValue<'_>]) -> String {
    let known = names();
    let mut decoder = decoder();
    let mut writer = IexPacketWriter::new(IexProtocol::DeepPlus, 7, 0);
    let delete = message(b'R', 3, &[IexSampleValue::Number(0), ADD[1], ADD[2]]);
    let payload = writer.packet(&[message(b'a', 1, &ADD), message(letter, 2, values), delete]);
    let block = decode(&mut decoder, &payload, &known);
    assert!(letter == b'C' || block.tally.quarantined <= 1, "what is refused leaves the orders as they were");
    lines(&block, &known)[1..]
        .iter()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            match line["kind"] == "quarantine" {
                true => format!("{}: {}", line["reason"].as_str().unwrap(), line["detail"].as_str().unwrap()),
                false => {
                    let words = ["kind", "side", "px", "qty", "reason"].map(|name| &line[name]);
                    let words: Vec<&str> = words.iter().filter_map(|value| value.as_str()).collect();
                    words.join(" ")
                }
            }
        })
        .collect::<Vec<_>>()
        .join("; ")
}

const ADD: [IexSampleValue<'_>; 5] = [
    IexSampleValue::Text(b"8"),
    IexSampleValue::Text(b"ZIEXT"),
    IexSampleValue::Number(77),
    IexSampleValue::Number(500),
    IexSampleValue::Price(990_500),
];

#[test]
fn iex_orders_that_change_and_that_cannot() {
    use IexSampleValue::{Number as N, Price as P, Text as T};
    let text = T(b"ZIEXT");
    let other = T(b"OTHER");
    for (letter, values, expected) in [
        (
            b'M',
            &[N(1), text, N(77), N(300), P(990_500)][..],
            "order_amend B 99.05 300; order_cancel B 99.05 300",
        ),
        (
            b'M',
            &[N(0), text, N(77), N(300), P(990_600)],
            "order_cancel B 99.05 500 priority_reset; order_new B 99.06 300 priority_reset; order_cancel B 99.06 300",
        ),
        (b'M', &[N(1), text, N(77), N(0), P(990_500)], "bad_quantity: no shares; order_cancel B 99.05 500"),
        (
            b'M',
            &[N(1), text, N(78), N(9), P(1)],
            "unknown_order: no order 78 of ZIEXT lives; order_cancel B 99.05 500",
        ),
        (
            b'M',
            &[N(1), text, N(77), N(9), P(i64::MAX)],
            "decimal_fit: px: decimal does not fit the field exactly; order_cancel B 99.05 500",
        ),
        (
            b'L',
            &[N(0x28), text, N(77), N(200), P(990_400), N(9)],
            "exec B 99.04 200; trade S 99.04 200; order_cancel B 99.05 300",
        ),
        (
            b'L',
            &[N(0), text, N(77), N(500), P(990_500), N(9)],
            "exec B 99.05 500; trade S 99.05 500; unknown_order: no order 77 of ZIEXT lives",
        ),
        (
            b'L',
            &[N(0), text, N(77), N(501), P(990_500), N(9)],
            "bad_quantity: 501 shares of order 77, which has 500; order_cancel B 99.05 500",
        ),
        (b'R', &[N(0), other, N(77)], "unknown_order: no order 77 of OTHER lives; order_cancel B 99.05 500"),
        (b'a', &ADD, "duplicate_id: an order 77 lives already; order_cancel B 99.05 500"),
        (b'a', &[T(b"5"), other, N(77), N(1), P(-1)], "order_new S -0.0001 1; order_cancel B 99.05 500"),
        (b'C', &[N(0), text], "status clear_book; unknown_order: no order 77 of ZIEXT lives"),
        (b'C', &[N(0), other], "status clear_book; order_cancel B 99.05 500"),
        (
            b'R',
            &[N(0), text, N(u64::MAX)],
            "unknown_order: no order 18446744073709551615 of ZIEXT lives; order_cancel B 99.05 500",
        ),
    ] {
        assert_eq!(after_add(letter, values), expected, "{}", letter as char);
    }
}

#[test]
fn iex_mappings_that_are_wrong() {
    let says = |table: &str| {
        let text = format!("name='m'\nformat='iex'\n[iex]\n{table}");
        Mapping::parse(&text, "m.toml").map(|_| "ok".to_owned()).unwrap_or_else(|error| error.to_string())
    };
    for (table, expected) in [
        ("venue='IEXG'\n", "ok"),
        ("venue=''\n", "iex.venue: a name of 1 to 255 bytes"),
        ("venue='X'\n[iex.system_event]\nS='begin'\n", "iex.system_event.S: no phase `begin`"),
        ("venue='X'\n[iex.trading_status]\nHALT='halt'\n", "iex.trading_status.HALT: a code is one letter"),
        ("venue='X'\nframing='mold'\n", "unknown field `framing`"),
        ("venue='X'\n[[rule]]\nignore=true\n", "format iex has no rules"),
    ] {
        let said = says(table);
        assert!(said.contains(expected), "{said}\nshould say: {expected}");
    }
    let other = "name='m'\nformat='fix'\nmessage={ts='52'}\n[iex]\nvenue='X'\n[[rule]]\nignore=true\n";
    let said = Mapping::parse(other, "m").unwrap_err().to_string();
    assert!(said.contains("a table [iex] is for format iex"), "{said}");
    let said = Mapping::parse("name='m'\nformat='iex'\n", "m").unwrap_err().to_string();
    assert!(said.contains("format iex needs a table [iex]"), "{said}");
}
