//! Bad input: each fault is reported with its code at its place, and the neighbours are kept.

use crate::itch::{GARBAGE_BYTES_MAX, ItchFramer, ItchTransport, MoldPacketHeader, NextItchFrame};
use crate::twin::itch::{check::fast, naive, sample};

/// Codes, and letters of good messages, in order; `-` is the framing's own.
fn decoded(framing: ItchTransport, input: &[u8]) -> String {
    let found = naive::decode(framing, input);
    for piece in [1, 3, 50, usize::MAX / 2] {
        assert_eq!(fast(framing, input, piece), found, "in pieces of {piece}");
    }
    let word = |what: &Option<Result<(u8, _), &str>>| match what {
        None => "-".to_owned(),
        Some(Ok((letter, _))) => (*letter as char).to_string(),
        Some(Err(code)) => (*code).to_owned(),
    };
    let words: Vec<String> = found.iter().map(|f| word(&f.outcome)).collect();
    words.join(" ")
}

/// A delete, an add and an execution.
fn three() -> [Vec<u8>; 3] {
    let each = sample::one_of_each();
    let mut at = 0;
    let mut find = |letter| {
        at = 0;
        loop {
            let NextItchFrame::Message(found) = ItchFramer::default().frame(&each, at, true) else {
                panic!("no {letter}")
            };
            if each[found.type_offset] == letter {
                return found.span.slice(&each).to_vec();
            }
            at = found.span.end;
        }
    };
    [b'D', b'A', b'E'].map(&mut find)
}

#[test]
fn lengths_and_types_that_are_wrong() {
    let [d, a, e] = three();
    let with = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut bad = a.clone();
        f(&mut bad);
        decoded(ItchTransport::Length, &[&d[..], &bad, &e, &d].concat())
    };
    assert_eq!(with(&|_| {}), "D A E D");
    assert_eq!(with(&|m| m[1] += 1), "D bad_length E D");
    assert_eq!(with(&|m| m[1] = 3), "D bad_length E D");
    assert_eq!(with(&|m| m[0] = 0xff), "D bad_length E D");
    assert_eq!(with(&|m| m[2] = b'z'), "D unknown_type E D");
    assert_eq!(with(&|m| (m[1], m[2]) = (200, b'z')), "D garbage E D");
    assert_eq!(with(&|m| m.truncate(20)), "D bad_side garbage D", "what was cut off is taken from the next");
    assert_eq!(with(&|m| m.push(b'x')), "D A garbage E D");
    assert_eq!(with(&|m| m.splice(0..0, *b"junk before it").for_each(drop)), "D garbage A E D");
    // A type of a later version: its length is believed.
    let later = [&[0, 60, b'q'][..], &[0x41; 59]].concat();
    assert_eq!(decoded(ItchTransport::Length, &[&d[..], &later, &e].concat()), "D unknown_type E");
}

#[test]
fn values_that_cannot_be() {
    let [d, a, e] = three();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = a.clone();
        bad[2 + at..2 + at + bytes.len()].copy_from_slice(bytes);
        decoded(ItchTransport::Length, &[&d[..], &bad, &e].concat())
    };
    assert_eq!(with(19, b"X"), "D bad_side E");
    assert_eq!(with(19, b"b"), "D bad_side E");
    assert_eq!(with(24, b"Z\xc3\x84T    "), "D bad_stock E");
    assert_eq!(with(24, b"        "), "D bad_stock E");
    assert_eq!(with(24, b"Z T     "), "D bad_stock E");
    assert_eq!(with(24, b"ZVZZT\0\0\0"), "D bad_stock E");
    assert_eq!(with(5, &[0x4e, 0x94, 0x91, 0x4f, 0, 0]), "D bad_time E", "24:00:00");
    assert_eq!(with(5, &[0x4e, 0x94, 0x91, 0x4e, 0xff, 0xff]), "D A E", "the last instant");
    let each = sample::one_of_each();
    let at = each.windows(3).position(|w| w == [0, 12, b'S']).unwrap();
    let mut bad = each[at..at + 14].to_vec();
    bad[13] = 0x80;
    assert_eq!(decoded(ItchTransport::Length, &[&bad[..], &e].concat()), "bad_text E");
}

#[test]
fn ends_of_files_and_of_sessions() {
    let [d, a, e] = three();
    for cut in 1..a.len() {
        assert_eq!(
            decoded(ItchTransport::Length, &[&d[..], &a[..cut]].concat()),
            "D truncated",
            "{cut} bytes"
        );
    }
    assert_eq!(decoded(ItchTransport::Length, b""), "");
    assert_eq!(decoded(ItchTransport::Length, &[&d[..], &[0, 0]].concat()), "D -");
    assert_eq!(
        decoded(ItchTransport::Length, &[&d[..], &[0, 0], &a, &[0, 0]].concat()),
        "D - A -",
        "two days in one file"
    );
    assert_eq!(decoded(ItchTransport::Length, &[&d[..], &[0, 0, 0], &e].concat()), "D garbage E");
}

/// A file of zeros, as a disk that lost power leaves it, must end, in pieces that fit the quarantine.
#[test]
fn zeros_are_told_in_pieces() {
    let [d, _, e] = three();
    let zeros = vec![0; GARBAGE_BYTES_MAX * 2 + 100];
    let input = [&d[..], &zeros, &e].concat();
    let found = naive::decode(ItchTransport::Length, &input);
    assert_eq!(fast(ItchTransport::Length, &input, usize::MAX / 2), found);
    assert_eq!(fast(ItchTransport::Length, &input, 300_000), found);
    let lengths: Vec<usize> = found.iter().map(|f| f.length).collect();
    assert_eq!(lengths, [d.len(), GARBAGE_BYTES_MAX, GARBAGE_BYTES_MAX, 100, e.len()]);
}

#[test]
fn packets_of_soup_bin_tcp() {
    let [d, a, e] = three();
    let soup = |message: &[u8]| {
        let length = message.len() as u16 - 1;
        [&length.to_be_bytes()[..], b"S", &message[2..]].concat()
    };
    let login = [&[0, 31, b'A'][..], b"    000001", b"                   1"].concat();
    let heartbeat = [0, 1, b'H'];
    let debug = b"\0\x06+hello";
    let parts = [&login[..], &soup(&d), &heartbeat, &soup(&a), debug, &soup(&e), &[0, 1, b'Z']];
    assert_eq!(decoded(ItchTransport::Soup, &parts.concat()), "- D - A - E -");
    let mut bad = soup(&a);
    bad[3] = b'z';
    assert_eq!(decoded(ItchTransport::Soup, &[&soup(&d)[..], &bad, &soup(&e)].concat()), "D unknown_type E");
    assert_eq!(
        decoded(ItchTransport::Soup, &[&soup(&d)[..], &[0, 9, b'H'], &soup(&e)].concat()),
        "D garbage E"
    );
    assert_eq!(decoded(ItchTransport::Soup, &[&soup(&d)[..], &[0, 37, b'S']].concat()), "D truncated");
}

#[test]
fn heads_of_mold_packets() {
    let head = MoldPacketHeader { session: *b"000000001A", sequence: 0x0102_0304_0506_0708, count: 3 };
    let mut packet = Vec::new();
    head.write(&mut packet);
    assert_eq!((MoldPacketHeader::read(&packet), head.messages()), (Some(head), 3));
    assert_eq!(packet[10..], [1, 2, 3, 4, 5, 6, 7, 8, 0, 3]);
    assert_eq!(MoldPacketHeader::read(&packet[..19]), None);
    assert_eq!(MoldPacketHeader { count: u16::MAX, ..head }.messages(), 0, "end of session");
}

/// A cut in the middle of a message costs a second decoding of the block; it must be rare in good input.
#[test]
fn cuts_stand_between_messages() {
    let day =
        sample::sample_messages(sample::SampleConfig { messages: 3_000, ..sample::SampleConfig::default() });
    let mut ends = std::collections::BTreeSet::from([0]);
    let mut at = 0;
    while let NextItchFrame::Message(found) = ItchFramer::default().frame(&day, at, true) {
        at = found.span.end;
        ends.insert(at);
    }
    for end in (0..day.len()).step_by(97) {
        let cut = ItchFramer::default().cut(&day[..end]);
        assert!(ends.contains(&cut) && end - cut < 60, "{cut} of {end}");
    }
}
