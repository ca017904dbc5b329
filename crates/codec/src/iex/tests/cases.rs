//! Bad input: each fault is reported with its code at its place, and the neighbours are kept.

use crate::iex::{
    GARBAGE_BYTES_MAX, IexFramer, IexMessage, IexPacketHeader, IexPacketPart, IexProtocol, NextIexPacket,
};
use crate::twin::iex::check::fast;
use crate::twin::iex::naive;
use crate::twin::iex::sample::{self, IexPacketWriter, IexSampleValue, message};

/// Codes, and letters and numbers of good messages, in order; `+2` behind one is bytes behind its fields.
fn decoded(input: &[u8]) -> String {
    let found = naive::decode(input);
    for piece in [1, 3, 50, usize::MAX] {
        assert_eq!(fast(input, piece), found, "in pieces of {piece}");
    }
    let words = found.iter().map(|message| match &message.outcome {
        Ok(fields) => {
            let extra = if fields.extra > 0 { format!("+{}", fields.extra) } else { String::new() };
            format!("{}{}{extra}", fields.letter as char, fields.sequence)
        }
        Err(code) => (*code).to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A level, a trade and a level.
fn three() -> [Vec<u8>; 3] {
    let (text, number) = (IexSampleValue::Text(b"ZIEXT"), IexSampleValue::Number);
    let level = |letter, size| {
        message(letter, 1_000, &[number(1), text, number(size), IexSampleValue::Price(990_500)])
    };
    let trade =
        message(b'T', 2_000, &[number(0), text, number(30), IexSampleValue::Price(990_500), number(7)]);
    [level(b'8', 100), trade, level(b'5', 200)]
}

/// The three in one packet, the middle one changed.
fn packet(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let [first, mut middle, last] = three();
    change(&mut middle);
    IexPacketWriter::new(IexProtocol::Deep, 7, 0).packet(&[first, middle, last])
}

/// The first byte of the middle message's length.
const MIDDLE: usize = 40 + 2 + 30;

#[test]
fn types_and_lengths_of_messages_that_are_wrong() {
    assert_eq!(decoded(&packet(|_| {})), "81 T2 53");
    assert_eq!(decoded(&packet(|m| m[0] = b'z')), "81 unknown_type 53");
    assert_eq!(decoded(&packet(|m| m[0] = b'Q')), "81 unknown_type 53", "a type of TOPS in DEEP");
    assert_eq!(decoded(&packet(|m| m.truncate(37))), "81 bad_length 53");
    assert_eq!(decoded(&packet(Vec::clear)), "81 bad_length 53");
    // A later version has more fields.
    assert_eq!(decoded(&packet(|m| m.extend_from_slice(b"later"))), "81 T2+5 53");
}

/// A length that lies takes the bytes of its neighbours, and no others than those of its packet.
#[test]
fn lengths_that_lie() {
    let next = packet(|_| {});
    let with = |place: usize, value: u8| {
        let mut bytes = packet(|_| {});
        bytes[place] = value;
        decoded(&[bytes, next.clone()].concat())
    };
    assert_eq!(with(MIDDLE, 255), "81 truncated 81 T2 53", "further than the packet");
    assert_eq!(with(MIDDLE, 70), "81 T2+32 truncated 81 T2 53", "as far as the packet");
    assert_eq!(with(MIDDLE, 37), "81 bad_length truncated 81 T2 53", "a byte short");
    assert_eq!(with(14, 4), "81 T2 53 truncated 81 T2 53", "more messages than are there");
    assert_eq!(with(14, 2), "81 T2 garbage 81 T2 53", "fewer messages than are there");
    assert_eq!(with(14, 0), "garbage 81 T2 53", "a heartbeat with a payload");
    assert_eq!(with(12, 90), "81 T2 truncated garbage 81 T2 53", "a payload that is shorter than stated");
}

#[test]
fn values_of_messages_that_cannot_be() {
    let with = |offset: usize, bytes: &[u8]| {
        decoded(&packet(|m| m[offset..offset + bytes.len()].copy_from_slice(bytes)))
    };
    assert_eq!(with(10, b"Z\xc3\x84T    "), "81 bad_symbol 53");
    assert_eq!(with(10, b"        "), "81 bad_symbol 53");
    assert_eq!(with(10, b"Z T     "), "81 bad_symbol 53");
    assert_eq!(with(10, b"ZIEXT\0\0\0"), "81 bad_symbol 53");
    assert_eq!(with(9, &[0x80]), "81 bad_time 53", "before 1970");
    let number = IexSampleValue::Number;
    let text = IexSampleValue::Text(b"ZIEXT");
    let price = IexSampleValue::Price(-1);
    let add = |side: &[u8]| {
        let values = [IexSampleValue::Text(side), text, number(1), number(100), price];
        IexPacketWriter::new(IexProtocol::DeepPlus, 7, 0).packet(&[message(b'a', 1, &values)])
    };
    assert_eq!(decoded(&add(b"8")), "a1", "a price may be negative");
    assert_eq!(decoded(&add(b"B")), "bad_side");
    let status = message(b'S', 1, &[IexSampleValue::Text(&[0x80])]);
    assert_eq!(decoded(&IexPacketWriter::new(IexProtocol::Tops, 7, 0).packet(&[status])), "bad_text");
}

#[test]
fn packets_that_are_cut_or_of_another_version() {
    let one = packet(|_| {});
    for length in 1..40 {
        assert_eq!(decoded(&[&one[..], &one[..length]].concat()), "81 T2 53 truncated", "{length} bytes");
    }
    assert_eq!(decoded(&one[..MIDDLE]), "81 truncated", "the packet ends between two messages");
    assert_eq!(decoded(&one[..MIDDLE + 30]), "81 truncated");
    assert_eq!(decoded(b""), "");
    let with = |place: usize, value: u8| {
        let mut bytes = one.clone();
        bytes[place] = value;
        decoded(&[&one[..], &bytes, &one].concat())
    };
    assert_eq!(with(0, 2), "81 T2 53 garbage 81 T2 53", "version 2");
    assert_eq!(with(2, 2), "81 T2 53 unknown_protocol 81 T2 53", "TOPS 1.5");
    assert_eq!(with(1, 9), "81 T2 53 81 T2 53 81 T2 53", "a reserved byte says nothing");
    let noise = [&b"junk"[..], &one, b"more of it", &one].concat();
    assert_eq!(decoded(&noise), "garbage 81 T2 53 garbage 81 T2 53");
}

/// A file of zeros, as a disk that lost power leaves it, must end, in pieces that fit the quarantine.
#[test]
fn zeros_between_packets_come_in_pieces() {
    let one = packet(|_| {});
    let input = [&one[..], &vec![0; GARBAGE_BYTES_MAX * 2 + 100], &one].concat();
    let found = naive::decode(&input);
    assert_eq!(fast(&input, usize::MAX), found);
    assert_eq!(fast(&input, 30_000), found);
    let lengths: Vec<usize> = found.iter().map(|message| message.length).collect();
    assert_eq!(lengths, [32, 40, 32, GARBAGE_BYTES_MAX, GARBAGE_BYTES_MAX, 100, 32, 40, 32]);
}

/// A packet of a capture that gives no datagram costs itself only; other traffic is no fault.
#[test]
fn captures_with_damage() {
    let one = packet(|_| {});
    let good = sample::capture(&[&one, &one]);
    assert_eq!(fast(&good, 7).len(), 6);
    let record = (good.len() - 24) / 2;
    let codes = |bytes: &[u8]| {
        let found = fast(bytes, 11);
        assert_eq!(fast(bytes, usize::MAX), found);
        found.iter().map(|message| message.outcome.as_ref().err().copied().unwrap_or("-")).collect::<Vec<_>>()
    };
    assert_eq!(codes(&good[..good.len() - 5]), ["-", "-", "-", "bad_capture"]);
    // IP of another protocol than UDP.
    let mut other = good.clone();
    other[24 + 16 + 9] = 6;
    assert_eq!(codes(&other), ["-", "-", "-"]);
    let mut lost = good.clone();
    lost[24 + record + 8..24 + record + 12].copy_from_slice(&[0xff; 4]);
    assert_eq!(codes(&lost), ["-", "-", "-", "bad_capture"]);
    assert_eq!(
        codes(&sample::capture(&[b"no packet of IEX-TP at all, but forty bytes".as_slice(), &one])),
        ["garbage", "-", "-", "-"]
    );
}

#[test]
fn heads_of_iex_packets() {
    let header = IexPacketHeader {
        protocol: IexProtocol::DeepPlus,
        channel: 0x0102_0304,
        session: 0x0506_0708,
        payload_bytes: 0,
        messages: 0,
        stream_offset: 0x1112_1314_1516_1718,
        sequence: 0x2122_2324_2526_2728,
        send_time_ns: 1_772_461_800_000_000_000,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    assert_eq!(bytes[..16], [1, 0, 5, 0x80, 4, 3, 2, 1, 8, 7, 6, 5, 0, 0, 0, 0]);
    assert_eq!((IexPacketHeader::read(&bytes), bytes.len()), (Some(header), 40));
    assert_eq!(IexPacketHeader::read(&bytes[..39]), None);
    let NextIexPacket::Message(heartbeat) = IexFramer.frame(&bytes, 0, true) else { panic!() };
    assert_eq!(heartbeat.parts(&bytes).next(), None);
    for protocol in IexProtocol::ALL {
        assert_eq!(IexProtocol::from_id(protocol.id()), Some(protocol));
    }
}

/// The fault names the type and both lengths, so that somebody who reads the quarantine needs no debugger.
#[test]
fn iex_faults_in_words() {
    let [level, ..] = three();
    let said = |protocol, bytes: &[u8]| IexMessage::read(protocol, bytes).unwrap_err().to_string();
    assert_eq!(said(IexProtocol::Tops, &level), "no message of TOPS 1.6 has the type 8, 30 bytes are stated");
    assert_eq!(
        said(IexProtocol::Deep, &level[..29]),
        "a message of type 8 has 30 bytes or more, 29 are stated"
    );
    let cut = &packet(|_| {})[..MIDDLE + 9];
    let NextIexPacket::Message(found) = IexFramer.frame(cut, 0, true) else { panic!() };
    let Some(IexPacketPart::Truncated { fault, sequence, .. }) = found.parts(cut).last() else { panic!() };
    assert_eq!(
        (fault.to_string().as_str(), sequence),
        ("3 messages in 104 bytes are stated, 1 in 41 bytes are there", 2)
    );
}

/// Cuts of a stream stand between packets.
#[test]
fn cuts_stand_between_packets() {
    let config = sample::IexSampleConfig { protocol: IexProtocol::Tops, messages: 300, symbols: 3, seed: 3 };
    let packets = sample::sample_packets(config);
    let ends: Vec<usize> = packets
        .iter()
        .scan(0, |end, packet| {
            *end += packet.len();
            Some(*end)
        })
        .collect();
    let stream = packets.concat();
    for end in (0..stream.len()).step_by(31) {
        let cut = IexFramer.cut(&stream[..end]);
        assert!(cut == 0 || ends.contains(&cut));
        assert!(end - cut < 2_000, "{cut} of {end}");
    }
}
