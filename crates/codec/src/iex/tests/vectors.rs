//! The vectors, written from the specifications' tables, and what the table of fields says of itself.

use crate::iex::{
    AddOrder, AuctionInformation, IexFieldType, IexFramer, IexMessage, IexPacketPart, IexProtocol,
    NextIexPacket, decode_json, spec_of, specs,
};
use crate::twin::iex::check::fast;
use crate::twin::iex::{naive, sample};
use serde_json::{Value, json};

/// A file of the vectors.
struct SampleFile {
    protocol: String,
    bytes: Vec<u8>,
    /// Hex and expected line of each message, in the order of the file, with its number.
    messages: Vec<(u64, Vec<u8>, Value)>,
}

fn sample_files() -> Vec<SampleFile> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/iex/");
    let text = std::fs::read_to_string(format!("{root}messages.txt")).unwrap();
    let mut files: Vec<SampleFile> = Vec::new();
    let (mut sequence, mut packet_start) = (1, 0);
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("= ") {
            let (protocol, file) = name.split_once(' ').unwrap();
            let bytes = std::fs::read(format!("{root}{file}")).unwrap();
            files.push(SampleFile { protocol: protocol.to_owned(), bytes, messages: Vec::new() });
            (sequence, packet_start) = (1, 0);
            continue;
        }
        let messages = &mut files.last_mut().unwrap().messages;
        match line {
            "-" => packet_start = messages.len(),
            "2" => {
                messages.extend_from_within(packet_start..);
                packet_start = messages.len();
            }
            line if line.starts_with('{') => {
                messages.last_mut().unwrap().2 = serde_json::from_str(line).unwrap();
            }
            hex => {
                let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
                messages.push((sequence, digits.chunks(2).map(byte).collect(), Value::Null));
                sequence += 1;
            }
        }
    }
    files
}

/// A field read a byte too early gives plausible prices; the tables of the specifications are the judge, not our code.
#[test]
fn every_type_of_iex_says_what_the_specification_says() {
    let mut letters = std::collections::BTreeSet::new();
    for SampleFile { protocol, bytes, messages } in sample_files() {
        let mut out = Vec::new();
        let summary = decode_json(&mut &bytes[..], "v", &mut out).unwrap();
        assert_eq!((summary.messages, summary.errors), (messages.len() as u64, 0), "{protocol}");
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for ((n, line), (sequence, hex, expected)) in lines.enumerate().zip(&messages) {
            let line: Value = serde_json::from_slice(line).unwrap();
            let mut said = line.clone();
            let offset = said.as_object_mut().unwrap().remove("offset").unwrap().as_u64().unwrap() as usize;
            assert_eq!(bytes[offset + 2..offset + 2 + hex.len()], hex[..], "{protocol} {n}");
            let wanted = json!({
                "file": "v", "n": n, "protocol": protocol, "channel": 1, "session": 1285, "sequence": sequence,
                "type": expected["type"], "fields": expected["fields"],
            });
            assert_eq!(said, wanted, "{protocol} {n}");
            letters.insert(hex[0]);
        }
    }
    assert_eq!(letters.len(), 19, "each type is there");
}

/// The readers and the table come from one list; a gap or an overlap in it would go unseen in either.
#[test]
fn the_fields_of_an_iex_type_tile_it() {
    for spec in specs() {
        // Behind the field of the second byte is the timestamp.
        let mut offset = 1;
        for field in spec.fields {
            assert_eq!(field.offset, offset, "{} of {}", field.name, spec.name);
            offset += field.field_type.bytes() + if offset == 1 { 8 } else { 0 };
        }
        assert_eq!(offset, spec.bytes, "{}", spec.name);
        assert!(spec.fields.iter().all(|field| field.field_type != IexFieldType::Number(0)));
        assert!(!spec.protocols.is_empty() && spec_of(spec.protocols[0], spec.letter) == Some(spec));
    }
    assert_eq!(spec_of(IexProtocol::Tops, b'8'), None, "of DEEP only");
    assert_eq!(spec_of(IexProtocol::DeepPlus, b'A'), None, "not of DEEP+");
}

#[test]
fn readers_of_the_iex_types() {
    let files = sample_files();
    let find = |file: usize, letter| {
        let found = files[file].messages.iter().find(|message| message.1[0] == letter);
        found.unwrap().1.clone()
    };
    let bytes = find(2, b'a');
    let message = IexMessage::read(IexProtocol::DeepPlus, &bytes).unwrap();
    let IexMessage::AddOrder(add) = message else { panic!("{message:?}") };
    assert_eq!((add.order(), add.side(), add.size(), add.price()), (1001, b'8', 300, 990_500));
    assert_eq!((&add.symbol(), message.symbol()), (b"ZIEXT   ", Some(b"ZIEXT   ")));
    assert_eq!((AddOrder::LETTER, AddOrder::BYTES, message.bytes().len()), (b'a', 38, 38));
    let bytes = find(0, b'A');
    let message = IexMessage::read(IexProtocol::Tops, &bytes).unwrap();
    let IexMessage::AuctionInformation(auction) = message else { panic!("{message:?}") };
    assert_eq!((AuctionInformation::BYTES, auction.upper_auction_collar()), (80, 1_039_500));
    assert_eq!((auction.imbalance_side(), auction.scheduled_auction_time()), (b'B', 1_772_461_800));
    assert_eq!(IexMessage::read(IexProtocol::Tops, &find(0, b'S')).unwrap().symbol(), None);
}

/// The writer that tests and benches use must not share the readers' mistakes unseen.
#[test]
fn iex_packets_that_are_written_are_read() {
    for protocol in IexProtocol::ALL {
        let payload = sample::one_of_each(protocol);
        let NextIexPacket::Message(packet) = IexFramer.frame(&payload, 0, true) else { panic!() };
        let mut count = 0;
        for part in packet.parts(&payload) {
            let IexPacketPart::Message { span, sequence } = part else { panic!("{part:?}") };
            let message = IexMessage::read(protocol, &payload[span.start + 2..span.end]).unwrap();
            assert_eq!((message.check(), sequence), (Ok(()), 1 + count));
            count += 1;
        }
        assert_eq!(count, u64::from(packet.header.messages));
        let config = sample::IexSampleConfig { protocol, messages: 3_000, symbols: 5, seed: 1 };
        let packets = sample::sample_packets(config);
        let found = fast(&sample::capture(&packets), usize::MAX);
        assert!(found.len() > 3_000 && found.iter().all(|message| message.outcome.is_ok()));
        assert_eq!(naive::decode(&packets.concat()).len(), found.len());
    }
}
