//! Input of any framing to lines of JSON.

#[path = "../../../feed/tests/common/fragments.rs"]
mod fragments;

use super::{made, root, templates};
use crate::{Decoder, JsonDecodeOptions, StreamFraming, Templates, decode_json};
use fragments::{cut, with_checksum};
use std::sync::Arc;

fn decoded(templates: &Arc<Templates>, framing: StreamFraming, input: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    let mut decoder = Decoder::new(templates.clone());
    let options = JsonDecodeOptions { framing, ..JsonDecodeOptions::default() };
    decode_json(&mut &input[..], "f", &mut decoder, options, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    lines.lines().map(|line| line.strip_prefix("{\"file\":\"f\",").unwrap().to_owned()).collect()
}

/// Each way to separate messages: whole messages are decoded, others are reported as incomplete.
#[test]
fn framings() {
    let t = made("<uInt32 name=\"A\"/>");
    let good = |n: u64, offset: u64, value: u64| {
        format!(
            "\"n\":{n},\"offset\":{offset},\"type\":{{\"id\":1,\"name\":\"T\"}},\"fields\":{{\"A\":{value}}}}}"
        )
    };
    assert_eq!(decoded(&t, StreamFraming::Raw, b"\xc0\x81\x85\x80\x86"), [good(0, 0, 5), good(1, 3, 6)]);
    assert_eq!(
        decoded(&t, StreamFraming::Moex, b"\x01\0\0\0\xc0\x81\x85\x02\0\0\0\x80\x86"),
        [good(0, 4, 5), good(1, 11, 6)]
    );
    assert_eq!(
        decoded(&t, StreamFraming::LengthPrefix, b"\x85\xc0\x81\x85\x80\x86"),
        [good(0, 1, 5), good(1, 4, 6)]
    );
    assert_eq!(
        decoded(&t, StreamFraming::Emdi, b"\x05\0\0\0\xc0\x81\x85\x80\x86"),
        [good(0, 4, 5), good(1, 7, 6)]
    );
    let rest = good(0, 4, 5).replace("}}", "},\"rest_bytes\":2}");
    assert_eq!(decoded(&t, StreamFraming::Frames, b"\x05\0\0\0\xc0\x81\x85\x80\x86"), [rest]);
    let frame = b"\x08\0\0\0\0\0\0\x07\x01\xc0\x81\x85";
    assert_eq!(decoded(&t, StreamFraming::Cme, frame), [good(0, 9, 5)]);
    let log = b"20:51:30.660 [info]  [s#1] [t#83]  00 00 00 07 01 C0 81 85\n\n20:51:31.000 [info] 00 00 00 08 01 c08186";
    assert_eq!(decoded(&t, StreamFraming::Cme, log), [good(0, 0, 5), good(1, 2, 6)]);
    let mut pcap = Vec::new();
    unitape_base::capture::write::file_header(&mut pcap);
    let (from, to) = ("10.0.0.1:9".parse().unwrap(), "239.1.1.1:5000".parse().unwrap());
    for byte in [0x85, 0x86] {
        unitape_base::capture::write::datagram(&mut pcap, 1, from, to, &[0xc0, 0x81, byte]);
    }
    let lines = decoded(&t, StreamFraming::Frames, &pcap);
    assert!(lines.len() == 2 && lines[1].contains("\"A\":6"), "{lines:?}");
    for (framing, input, n, code) in [
        (StreamFraming::Frames, &b"\x05\0"[..], 0, "truncated"),
        (StreamFraming::Frames, b"\x05\0\0\0\xc0\x81", 0, "truncated"),
        (StreamFraming::Frames, b"\xff\xff\xff\xff\xc0\x81", 0, "too_large"),
        (StreamFraming::Frames, b"\0\0\0\0", 0, "truncated"),
        (StreamFraming::Raw, b"\xc0\x81\x85\xc0\x82\x80\x80", 1, "D9"),
        (StreamFraming::Raw, b"\x80", 0, "D5"),
        (StreamFraming::Raw, b"\xc0\x81\x00\x00", 0, "truncated"),
        (StreamFraming::LengthPrefix, b"\x80", 0, "D12"),
        (StreamFraming::LengthPrefix, b"\x01\x01\x01\x01\x01", 0, "D2"),
        (StreamFraming::LengthPrefix, b"\x01", 0, "truncated"),
        (StreamFraming::LengthPrefix, b"\x83\xc0\x81\x85\x01\x01", 1, "truncated"),
        (StreamFraming::HexLines, b"c08", 0, "garbage"),
        (StreamFraming::HexLines, b"c0 81 85\nx", 1, "garbage"),
        (StreamFraming::Cme, b"\x02\0\0\0\0\0", 0, "truncated"),
    ] {
        let lines = decoded(&t, framing, input);
        let code = format!("\"error\":{{\"code\":\"{code}\"");
        assert!(lines.len() == n + 1 && lines[n].contains(&code), "{framing:?} {input:?}: {lines:?}");
    }
    let lines = decoded(&t, StreamFraming::Raw, b"\xc0\x81\x85\xc0\x82\x80\x80");
    assert!(lines[1].ends_with(",\"rest_bytes\":4}"), "{lines:?}");
}

/// A reader that gives a byte at a time must not change what is decoded.
#[test]
fn a_message_may_come_in_pieces() {
    struct Drops<'d>(&'d [u8]);
    impl std::io::Read for Drops<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(buf.len()).min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let bytes = std::fs::read(root("moex/olr_5020.dat")).unwrap();
    let options = JsonDecodeOptions { framing: StreamFraming::Moex, ..JsonDecodeOptions::default() };
    let decode = |input: &mut dyn std::io::Read| {
        let (mut out, mut decoder) = (Vec::new(), Decoder::new(templates("moex/test.xml")));
        decode_json(input, "f", &mut decoder, options, &mut out).unwrap();
        out
    };
    assert_eq!(decode(&mut Drops(&bytes[..20_000])), decode(&mut &bytes[..20_000]));
}

/// The elements of a vector were once printed with two commas between them, which is no JSON.
#[test]
fn vectors_are_arrays_of_values() {
    let templates = made("<int32Vector name=\"V\"/><sequence name=\"S\"><uInt32/></sequence>");
    let lines = decoded(&templates, StreamFraming::Raw, b"\xc0\x81\x83\x81\xfe\x83\x82\x84\x85");
    assert!(lines[0].ends_with("\"fields\":{\"V\":[1,-2,3],\"S\":[4,5]}}"), "{lines:?}");
}

/// A user who piped a live feed in saw nothing until a quarter of a mebibyte had come.
#[test]
fn what_has_come_is_shown_before_more_is_waited_for() {
    struct Live<'l>(std::array::IntoIter<&'l [u8], 2>, &'l std::cell::RefCell<Vec<u8>>, usize);
    impl std::io::Read for Live<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let shown = self.1.borrow().iter().filter(|b| **b == b'\n').count();
            assert_eq!(shown, self.2, "lines shown before the next bytes are waited for");
            let Some(part) = self.0.next() else { return Ok(0) };
            self.2 += 1;
            buf[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }
    struct Shown<'s>(&'s std::cell::RefCell<Vec<u8>>);
    impl std::io::Write for Shown<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let templates = made("<uInt32 name=\"A\"/><uInt32 name=\"B\"/>");
    for (framing, parts) in [
        (StreamFraming::Raw, [&b"\xc0\x81\x85\x86"[..], b"\x80\x86\x81"]),
        (StreamFraming::Frames, [b"\x04\0\0\0\xc0\x81\x85\x86", b"\x03\0\0\0\x80\x86\x81"]),
        (StreamFraming::HexLines, [b"c0818586\n", b"808681\n"]),
        (StreamFraming::LengthPrefix, [b"\x84\xc0\x81\x85\x86", b"\x83\x80\x86\x81"]),
    ] {
        let shown = std::cell::RefCell::new(Vec::new());
        let mut input = Live(parts.into_iter(), &shown, 0);
        let options = JsonDecodeOptions { framing, ..JsonDecodeOptions::default() };
        let mut decoder = Decoder::new(templates.clone());
        let summary = decode_json(&mut input, "f", &mut decoder, options, &mut Shown(&shown)).unwrap();
        assert_eq!((summary.messages, summary.errors), (2, 0), "{framing:?}");
    }
}

/// A message that is small on the wire was gathered as text of any size before any of it was written.
#[test]
fn a_large_message_is_written_in_parts() {
    struct Parts(Vec<u8>, usize);
    impl std::io::Write for Parts {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1 = self.1.max(bytes.len());
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let name = "n".repeat(200);
    let templates = made(&format!(
        "<sequence name=\"S\"><uInt32 name=\"{name}\"/><sequence name=\"V\"><uInt32/></sequence></sequence>"
    ));
    let mut message = b"\xc0\x81\x27\x90".to_vec();
    message.extend([0x85, 0x82, 0x86, 0x87].repeat(5_008));
    let options = JsonDecodeOptions { framing: StreamFraming::Raw, ..JsonDecodeOptions::default() };
    let (mut out, mut decoder) = (Parts(Vec::new(), 0), Decoder::new(templates));
    decode_json(&mut &message[..], "f", &mut decoder, options, &mut out).unwrap();
    let line: serde_json::Value = serde_json::from_slice(&out.0).unwrap();
    let elements = line["fields"]["S"].as_array().unwrap();
    assert!(
        elements.len() == 5_008 && elements.iter().all(|e| *e == serde_json::json!({&*name: 5, "V": [6, 7]}))
    );
    assert!(out.1 < 66 << 10, "{}", out.1);
}

/// The first fragment of one datagram and the last one of another, with the same identification, made a message that nobody sent.
#[test]
fn fragments_of_two_datagrams_are_no_message() {
    let templates = made("<uInt32 name=\"A\"/>");
    let (from, to) = ("10.0.0.1:9".parse().unwrap(), "239.1.1.1:5000".parse().unwrap());
    let [one, other] = [0x85, 0x86].map(|byte| {
        let mut record = Vec::new();
        unitape_base::capture::write::datagram(&mut record, 1, from, to, &[0xc0, 0x81, byte]);
        // The first fragment has the UDP header, and the last one the message.
        cut(&with_checksum(&record), 7, 8)
    });
    let lines = |records: &[&Vec<u8>]| {
        let mut pcap = Vec::new();
        unitape_base::capture::write::file_header(&mut pcap);
        records.iter().for_each(|record| pcap.extend_from_slice(record));
        decoded(&templates, StreamFraming::Frames, &pcap)
    };
    let good = lines(&[&one[0], &one[1], &other[0], &other[1]]);
    assert!(good.len() == 2 && good[0].contains("\"A\":5") && good[1].contains("\"A\":6"), "{good:?}");
    for records in [[&one[0], &other[1]], [&other[1], &one[0]]] {
        let bad = lines(&records);
        assert!(bad.len() == 1 && bad[0].contains("fragments whose checksum differs"), "{bad:?}");
    }
}
