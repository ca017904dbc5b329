//! The vectors, written by hand from the specification's tables, and what the table of fields says of itself.

use crate::itch::{
    AddOrderMpid, CrossTrade, DirectListing, Imbalance, ItchFieldType, ItchFramer, ItchMessage,
    MESSAGE_BYTES_MAX, NextItchFrame, StockDirectory, decode_json, size_of_type, specs,
};
use crate::twin::itch::{naive, sample};
use serde_json::Value;

/// Hex and expected line of each message in the file.
fn vectors() -> Vec<(Vec<u8>, Value)> {
    let text = include_str!("../../../../../vectors/itch/itch50.txt");
    let lines: Vec<&str> = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let hex = |line: &str| {
        let digits: Vec<u8> = line.bytes().filter(|b| *b != b' ').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    };
    lines.chunks(2).map(|pair| (hex(pair[0]), serde_json::from_str(pair[1]).unwrap())).collect()
}

/// A field read a byte too early gives plausible prices; the tables of the specification are the judge, not our code.
#[test]
fn every_type_says_what_the_specification_says() {
    let vectors = vectors();
    let mut input = Vec::new();
    for (bytes, _) in &vectors {
        input.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        input.extend_from_slice(bytes);
    }
    let file = include_bytes!("../../../../../vectors/itch/20200130.itch50");
    assert!(input == file, "the file of the vectors is made of their text");
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], "v", ItchFramer::default(), &mut out).unwrap();
    assert_eq!((summary.messages, summary.errors), (23, 0));
    let lines: Vec<Value> =
        out.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
    assert_eq!(lines.len(), 23);
    let mut offset = 0;
    for (n, (line, (bytes, expected))) in lines.iter().zip(&vectors).enumerate() {
        assert_eq!((line["n"].as_u64(), line["offset"].as_u64()), (Some(n as u64), Some(offset)));
        assert_eq!((&line["type"], &line["fields"]), (&expected["type"], &expected["fields"]));
        offset += 2 + bytes.len() as u64;
    }
    let mut letters: Vec<u8> = vectors.iter().map(|(bytes, _)| bytes[0]).collect();
    letters.sort_unstable();
    letters.dedup();
    assert_eq!(letters.len(), 23, "one of each type");
    let twin = naive::decode(super::super::ItchTransport::Length, &input);
    assert!(twin.iter().all(|f| matches!(f.outcome, Some(Ok(_)))), "{twin:?}");
}

/// The readers and the table come from one list; a gap or an overlap in it would go unseen in either.
#[test]
fn the_fields_of_a_type_tile_it() {
    let mut longest = 0;
    for spec in specs() {
        let mut at = 11;
        for field in spec.fields {
            assert_eq!(field.at, at, "{} of {}", field.name, spec.name);
            at += field.sort.bytes();
        }
        assert_eq!((at, size_of_type(spec.letter)), (spec.bytes, spec.bytes), "{}", spec.name);
        longest = longest.max(at);
    }
    assert_eq!(longest, MESSAGE_BYTES_MAX);
    assert_eq!(size_of_type(b'Z'), 0);
}

#[test]
fn readers_of_the_types() {
    let vectors = vectors();
    let find = |letter| vectors.iter().map(|v| &v.0[..]).find(|b| b[0] == letter).unwrap();
    let message = ItchMessage::of(find(b'F')).unwrap();
    let ItchMessage::AddOrderMpid(add) = message else { panic!("{message:?}") };
    assert_eq!((add.order(), add.side(), add.shares()), (123_456_790, b'S', 1));
    assert_eq!((&add.stock(), add.price(), &add.attribution()), (b"ZVZZT   ", 123_001, b"NITE"));
    assert_eq!((add.stock_locate(), add.tracking_number(), add.timestamp()), (8000, 2, 34_200_000_000_123));
    assert_eq!((AddOrderMpid::LETTER, AddOrderMpid::BYTES, message.bytes().len()), (b'F', 40, 40));
    let directory = StockDirectory::new(find(b'R').try_into().unwrap());
    assert_eq!((directory.round_lot_size(), &directory.issue_sub_type()), (100, b"Z "));
    assert_eq!(CrossTrade::new(find(b'Q').try_into().unwrap()).shares(), 5_000_000_000);
    assert_eq!(Imbalance::new(find(b'I').try_into().unwrap()).near_price(), 122_960);
    assert_eq!(DirectListing::new(find(b'O').try_into().unwrap()).upper_price(), 153_600);
    assert!(ItchMessage::of(&find(b'F')[..39]).is_none() && ItchMessage::of(b"").is_none());
}

/// The writer that benches and the simulator use must not share the readers' mistakes unseen.
#[test]
fn what_is_written_is_read() {
    let each = sample::one_of_each();
    let mut at = 0;
    for (n, spec) in specs().iter().enumerate() {
        let NextItchFrame::Message(found) = ItchFramer::default().frame(&each, at, true) else {
            panic!("{}", spec.name)
        };
        let message = ItchMessage::of(found.body(&each)).unwrap();
        assert_eq!((message.spec(), message.check()), (spec, Ok(())));
        assert_eq!(message.stock_locate(), n as u16 + 1);
        assert!(spec.fields.iter().all(|f| f.sort.bytes() > 0 && f.sort != ItchFieldType::Number(0)));
        at = found.span.end;
    }
    assert_eq!(at, each.len());
    let day =
        sample::sample_messages(sample::SampleConfig { messages: 5_000, ..sample::SampleConfig::default() });
    let mut out = Vec::new();
    let summary = decode_json(&mut &day[..], "d", ItchFramer::default(), &mut out).unwrap();
    assert!(summary.errors == 0 && summary.messages > 12_000, "{summary:?}");
}
