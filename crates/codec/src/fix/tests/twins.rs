//! Mutated real messages and random bytes: fast and slow path must agree to the byte.

use proptest::prelude::*;

use std::sync::Arc;

use super::super::simd::FixKernel;
use super::super::{
    ExtractedFields, FieldExtractor, FieldSelection, GroupSelection, MessageTokenizer, NextFixFrame,
};
use super::*;
use crate::twin::fix::{check, sample};

/// Fragments that bad streams are made of.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let good = prop_oneof![
        (0u64..50).prop_map(|seed| sample::sample_orders(1, seed)),
        Just(wrap("FIX.4.2", "35=0|")),
        Just(wrap("FIXT.1.1", "35=X|52=20111124-07:42:11.197|268=1|279=0|55=JA30|270=62.09|")),
        Just(wrap("FIX.4.4", "35=B|95=9|96=a|10=000||354=3|355=x=y|58=8=FIX.4.4|")),
        Just(wrap("FIX.4.4", "35=n|212=23|213=8=FIX.4.4|9=5|35=0|10=1|58=see 58=FIX|")),
        Just(wrap("FIX.4.4", "35=0|12345678=x|123456789=y|")),
    ];
    let odd = prop::sample::select(vec![
        &b"8=FIX"[..],
        b"8=FIX.4.4\x019=5\x0135=0\x0110=",
        b"8=FIX.4.4\x01",
        b"\x0110=123\x01",
        b"9=12\x01",
        b"10=",
        b"\r\n",
        b"\n",
        b"junk",
        b"=",
        b"\x01",
        b"0",
        b"96=8=FIX.4.4\x01",
        b"95=3\x0196=",
        b"\x01\x01",
        b"8=FIX.4.4\x019=70\x0135=0\x01",
        b"8=FI",
        b"\x0110=12345678\x01",
        b"\x0158=",
        b"\x01010=1\x01",
        b"8=FIX.4.4\x019=999999999\x01",
        b"8=FIX.4.4\x019=0\x01",
        b"\x01035=7\x01",
        b"^",
        b"|",
        b"10=0\n",
    ])
    .prop_map(<[u8]>::to_vec);
    prop_oneof![4 => good, 3 => odd, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Cut(usize, usize),
    Insert(usize, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let byte = prop_oneof![prop::sample::select(b"\x01=0189\n^A|8FIX.".to_vec()), any::<u8>()];
    prop_oneof![
        (any::<usize>(), byte).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<usize>(), 1usize..60).prop_map(|(at, len)| Change::Cut(at, len)),
        (any::<usize>(), fragment()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
    ]
}

prop_compose! {
    fn stream()(
        parts in prop::collection::vec(fragment(), 0..6),
        changes in prop::collection::vec(change(), 0..4),
    ) -> Vec<u8> {
        let mut bytes = parts.concat();
        for change in changes {
            let len = bytes.len();
            match change {
                Change::Set(at, byte) if len > 0 => bytes[at % len] = byte,
                Change::Cut(at, n) if len > 0 => {
                    let at = at % len;
                    bytes.drain(at..len.min(at + n));
                }
                Change::Insert(at, more) => {
                    let at = at % (len + 1);
                    bytes.splice(at..at, more);
                }
                _ => {}
            }
        }
        bytes
    }
}

prop_compose! {
    fn framer()(
        sep in prop::sample::select(vec![FieldSeparator::Soh, FieldSeparator::Soh, FieldSeparator::Pipe, FieldSeparator::CaretA, FieldSeparator::Semicolon]),
        lenient in any::<bool>(),
        log in any::<bool>(),
        max in prop::sample::select(vec![64, 100, 300, 1 << 20]),
    ) -> FixFramer {
        FixFramer::default().with_sep(sep).with_lenient(lenient).with_log(log).with_max_message(max)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn fast_and_slow_agree(bytes in stream(), framer in framer()) {
        let bytes = shown(&bytes, framer.sep());
        for kernel in FixKernel::all() {
            if let Err(message) = check::agree(&framer, &mut MessageTokenizer::with_kernel(kernel), &bytes) {
                prop_assert!(false, "{}", message);
            }
        }
    }

    // A block of a stream ends anywhere. A decision at a cut must be the decision about the whole.
    #[test]
    fn a_cut_changes_no_answer(bytes in stream(), framer in framer()) {
        let bytes = shown(&bytes, framer.sep());
        if let Err(message) = check::cuts(&framer, &bytes) {
            prop_assert!(false, "{}", message);
        }
    }
}

// The stream that the bench times must be what it says: valid, and about 270 bytes a message.
#[test]
fn sample_orders_are_good_and_agree() {
    let orders = sample::sample_orders(2_000, 7);
    let framer = FixFramer::default();
    let digest = sample::digest(&framer, &mut MessageTokenizer::new(), &orders);
    assert_eq!((digest.messages, digest.faults), (2_000, 0));
    assert_eq!(digest, sample::digest_naive(&framer, &orders));
    let mean = orders.len() / 2_000;
    assert!((260..=280).contains(&mean), "{mean} bytes a message");
    assert_ne!(orders, sample::sample_orders(2_000, 8));
}

// Remembered shapes are replaced, found again by their tags, and shared by the slots of two streams. A place that
// another shape occupies now must never answer for the old one.
#[test]
fn more_shapes_than_are_remembered() {
    let mut stream = Vec::new();
    for n in (0..1_200u32).chain(0..1_200).chain(300..1_200).chain([5; 9]) {
        let optional: String =
            (0..11).filter(|bit| n >> bit & 1 == 1).map(|bit| format!("{}=x{n}|", 100 + bit)).collect();
        let parties = "448=A|452=1|".repeat(1 + n as usize % 2);
        let begin = if n % 3 == 0 { "FIX.4.2" } else { "FIX.4.4" };
        stream.extend(wrap(begin, &format!("35=D|{optional}453={}|{parties}55=VOD|", 1 + n % 2)));
    }
    let framer = FixFramer::default();
    for mut tokens in MessageTokenizer::each_kernel() {
        check::agree(&framer, &mut tokens, &stream).unwrap();
    }
    let parties = || GroupSelection::new(453, &[448, 452], &[447]);
    let wanted = Arc::new(FieldSelection::new(&[35, 100, 105, 110, 55], vec![parties()]).unwrap());
    let mut slots = FieldExtractor::new(Arc::clone(&wanted));
    let mut streams = [MessageTokenizer::new(), MessageTokenizer::new()];
    // The second reads the same from another place on, so that its shapes are at other places.
    let mut at = [0, stream.len() / 2];
    for n in [0, 1].into_iter().cycle() {
        let message = match streams[n].frame(&framer, &stream, at[n], true) {
            NextFixFrame::Message(message) => message,
            NextFixFrame::Bad { span, .. } if n == 1 && at[1] == stream.len() / 2 => {
                at[1] = span.end;
                continue;
            }
            NextFixFrame::End if n == 1 => continue,
            NextFixFrame::End => break,
            other => panic!("{other:?}"),
        };
        let bytes = message.span.slice(&stream);
        let fields = streams[n].as_slice();
        let values = |filled: ExtractedFields<'_>| {
            let fields: Vec<_> = (0..5).map(|slot| filled.get(slot)).collect();
            let entries: Vec<_> = filled.entries(0).map(|entry| [entry.get(0), entry.get(1)]).collect();
            (fields, entries)
        };
        let mut fresh = FieldExtractor::new(Arc::clone(&wanted));
        let expected = fresh.fill(bytes, fields).map(values);
        assert_eq!(slots.fill(bytes, fields).map(values), expected);
        assert!(expected.is_ok_and(|(_, entries)| !entries.is_empty()));
        at[n] = message.span.end;
    }
}
