//! Bytes of a network are anything. A decoder that panics, or takes a damaged message for a good one, spoils a tape on another host.

use proptest::collection::vec;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};
use unitape_link::fingerprint::TapeFingerprint;
use unitape_link::raw_log::RawState;
use unitape_link::wire::{
    Acknowledge, Announce, Data, Hello, HelloTape, Message, Raw, Refusal, RefusalReason, SessionId, Welcome,
    WireFault,
};
use unitape_model::{LINE, Position};
use unitape_tape::TapeId;

fn position() -> impl Strategy<Value = Position> {
    (0u64..1 << 50).prop_map(|line| Position(line * LINE as u64))
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let v4 = any::<[u8; 4]>().prop_map(IpAddr::from);
    let v6 = any::<[u8; 16]>().prop_map(|octets| IpAddr::from(octets).to_canonical());
    (prop_oneof![v4, v6], any::<u16>()).prop_map(SocketAddr::from)
}

fn hello() -> impl Strategy<Value = Hello> {
    let fingerprint = (0u64..1 << 40, vec(any::<u32>(), 0..40), any::<u32>());
    let raw = (any::<u64>(), any::<u32>()).prop_map(|(bytes, crc)| RawState { bytes, crc });
    let tape = (any::<u128>(), any::<u64>(), position(), position(), fingerprint, raw).prop_map(
        |(id, segment_bytes, one, other, (first_segment, segment_crcs, tail_crc), raw)| {
            let (tail, position) = (one.min(other), one.max(other));
            let fingerprint = TapeFingerprint { first_segment, segment_crcs, tail, tail_crc };
            HelloTape { id: TapeId(id), segment_bytes, position, fingerprint, raw }
        },
    );
    (address(), proptest::option::of(tape)).prop_map(|(reply_to, tape)| Hello { reply_to, tape })
}

/// A message, with its frames apart because it borrows them.
fn message() -> impl Strategy<Value = (Message<'static>, Vec<u8>)> {
    let acknowledge = (position(), position(), any::<u64>(), any::<u64>(), any::<bool>());
    let acknowledge = acknowledge.prop_map(|(committed, durable, pending, raw_bytes, is_leaving)| {
        Message::Acknowledge(Acknowledge { committed, durable, pending, raw_bytes, is_leaving })
    });
    let welcome = (any::<u128>(), any::<u64>(), position(), position());
    let welcome = welcome.prop_map(|(tape, segment_bytes, position, end)| {
        Message::Welcome(Welcome { tape: TapeId(tape), segment_bytes, position, end })
    });
    let announce = (position(), any::<u64>(), any::<u64>(), any::<bool>());
    let announce = announce.prop_map(|(end, offset, raw_bytes, is_closed)| {
        Message::Announce(Announce { end, offset, raw_bytes, is_closed })
    });
    let reason = prop_oneof![
        Just(RefusalReason::Version),
        Just(RefusalReason::OtherTape),
        Just(RefusalReason::OtherSegmentSize),
        Just(RefusalReason::OtherBytes),
        Just(RefusalReason::Behind),
        Just(RefusalReason::Retained),
        Just(RefusalReason::Damage),
        Just(RefusalReason::Failed),
        Just(RefusalReason::Busy),
    ];
    let refuse = (reason, "\\PC{0,80}");
    let refuse = refuse.prop_map(|(reason, text)| Message::Refuse(Refusal { reason, text }));
    let data = (position(), 0u64..1 << 30, vec(any::<u8>(), LINE), 1usize..20);
    let data = data.prop_map(|(position, lines, line, count)| {
        let offset = lines * LINE as u64;
        (Message::Data(Data { position, offset, raw_bytes: lines, frames: &[] }), line.repeat(count))
    });
    let bare = prop_oneof![
        hello().prop_map(Message::Hello),
        acknowledge,
        welcome,
        announce,
        refuse,
        Just(Message::Finish)
    ];
    let raw = (any::<u64>(), vec(any::<u8>(), 1..200));
    let raw = raw.prop_map(|(offset, bytes)| (Message::Raw(Raw { offset, bytes: &[] }), bytes));
    prop_oneof![3 => bare.prop_map(|message| (message, Vec::new())), 1 => data, 1 => raw]
}

fn with_frames<'a>(message: &'a Message<'static>, bytes: &'a [u8]) -> Message<'a> {
    match message {
        Message::Data(data) => Message::Data(Data { frames: bytes, ..*data }),
        Message::Raw(raw) => Message::Raw(Raw { bytes, ..*raw }),
        other => other.clone(),
    }
}

fn session() -> impl Strategy<Value = SessionId> {
    (any::<u64>(), any::<u64>()).prop_map(|(receiver, number)| SessionId { receiver, number })
}

proptest! {
    #[test]
    fn a_message_comes_back(session in session(), (message, bytes) in message()) {
        let message = with_frames(&message, &bytes);
        let mut encoded = Vec::new();
        message.encode(session, &mut encoded);
        prop_assert_eq!(Message::decode(&encoded), Ok((session, message)));
    }

    #[test]
    fn a_cut_or_flipped_message_is_refused(
        session in session(), (message, bytes) in message(), bit in any::<prop::sample::Index>(), more in 1usize..70,
    ) {
        let message = with_frames(&message, &bytes);
        let mut encoded = Vec::new();
        message.encode(session, &mut encoded);
        for length in 0..encoded.len() {
            prop_assert_eq!(Message::decode(&encoded[..length]), Err(WireFault::NoMessage));
        }
        let bit = bit.index(encoded.len() * 8);
        encoded[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Message::decode(&encoded).is_err());
        encoded[bit / 8] ^= 1 << (bit % 8);
        encoded.resize(encoded.len() + more, 0);
        prop_assert_eq!(Message::decode(&encoded), Err(WireFault::NoMessage));
    }

    /// A stranger can compute the checksum as well, so what is under it may be anything.
    #[test]
    fn a_sealed_message_of_any_bytes_does_no_harm(kind in 0u8..10, mut body in vec(any::<u8>(), 0..400)) {
        let mut message = b"utlk".to_vec();
        message.extend([1, kind, 0, 0]);
        message.extend((32 + body.len() as u32).to_le_bytes());
        message.extend([0; 4]);
        message.extend([7; 16]);
        message.append(&mut body);
        let crc = crc32c::crc32c(&message);
        message[12..16].copy_from_slice(&crc.to_le_bytes());
        let decoded = Message::decode(&message);
        let is_refused = matches!(decoded, Err(WireFault::Kind(_) | WireFault::Body(_)));
        prop_assert!(is_refused || decoded.is_ok(), "{decoded:?}");
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(Message::decode(&bytes).is_err());
    }
}

/// The drawing in the module is a promise to other programs.
#[test]
fn the_bytes_are_those_of_the_drawing() {
    let session = SessionId { receiver: 0x1122_3344_5566_7788, number: 5 };
    let mut bytes = Vec::new();
    let data = Data { position: Position(0x1000), offset: 0x40, raw_bytes: 7, frames: &[0xab; 64] };
    Message::Data(data).encode(session, &mut bytes);
    assert_eq!(bytes[..12], *b"utlk\x01\x04\0\0\x78\0\0\0");
    assert_eq!(bytes[16..32], *b"\x88\x77\x66\x55\x44\x33\x22\x11\x05\0\0\0\0\0\0\0");
    assert_eq!(bytes[32..48], *b"\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0");
    assert_eq!(bytes[48..56], *b"\x07\0\0\0\0\0\0\0");
    assert_eq!(bytes[56..], [0xab; 64]);
    let fingerprint = TapeFingerprint {
        first_segment: 3,
        segment_crcs: vec![0x0102_0304, 5],
        tail: Position(0x800),
        tail_crc: 0x0a0b_0c0d,
    };
    let raw = RawState { bytes: 6, crc: 0x2122_2324 };
    let tape = HelloTape { id: TapeId(9), segment_bytes: 4096, position: Position(0x840), fingerprint, raw };
    let hello = Hello { reply_to: "127.0.0.1:7401".parse().unwrap(), tape: Some(tape) };
    Message::Hello(hello).encode(session, &mut bytes);
    assert_eq!(bytes.len(), 128);
    assert_eq!(bytes[32..48], *b"\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01");
    assert_eq!(bytes[48..56], *b"\xe9\x1c\x01\0\x0d\x0c\x0b\x0a");
    assert_eq!((bytes[56], bytes[57..72].iter().sum::<u8>()), (9, 0));
    let numbers: Vec<u64> = bytes[72..104].as_chunks().0.iter().map(|n| u64::from_le_bytes(*n)).collect();
    assert_eq!(numbers, [4096, 0x840, 0x800, 3]);
    assert_eq!(bytes[104..], *b"\x02\0\0\0\x24\x23\x22\x21\x06\0\0\0\0\0\0\0\x04\x03\x02\x01\x05\0\0\0");
}
