//! FIX bytes to typed records: ours, `ironfix-tagvalue`, `rustyfix`.

use crate::passes::{Fast, Pass, fast_pass, slow_pass};
use crate::record::{Hash, Record, Repeats, sha256};
use crate::typed::Typed;
use ironfix_tagvalue::{Decoder as IronDecoder, FieldIndex};
use rustyfix::tagvalue::Decoder as RustyDecoder;
use rustyfix::{Dictionary, FieldMap, RepeatingGroup};
use unitape_codec::fix::sample::sample_orders;
use unitape_codec::fix::{Frame, Framer, Tokens};

static JSE: &[u8] = include_bytes!("../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix");

/// Tags of which `Typed` takes the values, outside of groups.
const TAGS: [u32; 11] = [35, 34, 1181, 52, 60, 44, 38, 54, 11, 55, 1];

/// The group of parties: its count, and what is taken of an entry.
const PARTIES: (u32, [u32; 3]) = (453, [448, 447, 452]);

/// A pass over an input that hands out each record.
trait Way: FnMut(&[u8], &mut dyn FnMut(&Typed)) -> Pass {}
impl<T: FnMut(&[u8], &mut dyn FnMut(&Typed)) -> Pass> Way for T {}

type Subject<'a> = (&'static str, &'static str, Box<dyn Way + 'a>);

/// Runs both cases.
pub fn run(quick: bool) -> Result<Vec<Record>, String> {
    let orders = sample_orders(if quick { 2_000 } else { 1_000_000 }, 42);
    let mut records = case("orders", &orders, quick)?;
    drop(orders);
    records.extend(case("jse", &JSE.repeat(if quick { 1 } else { 91 }), quick)?);
    Ok(records)
}

fn case(name: &str, input: &[u8], quick: bool) -> Result<Vec<Record>, String> {
    let mut slow = Hash::default();
    let expected = slow_pass(input, |typed| slow.add(&typed.bytes()));
    let slow = slow.hex();
    let spans = spans(input);
    let mut tokens = Tokens::new();
    let mut subjects: Vec<Subject<'_>> = vec![
        (
            "unitape",
            "frame, checksum, fields, groups checked against their counts, typed values",
            Box::new(|input: &[u8], each: &mut dyn FnMut(&Typed)| fast_pass(&mut tokens, input, each)),
        ),
        (
            "ironfix-tagvalue 0.5.1",
            "frame, checksum, fields into a reused index; groups by a few lines of ours; typed values by our functions",
            Box::new(iron()),
        ),
    ];
    // It cannot read a message without the dictionary of its version; 4.4 is the one it brings.
    if name == "orders" {
        let pass = rusty(&spans)?;
        subjects.push((
            "rustyfix 0.7.4",
            "message boundaries given; checksum, fields and groups by dictionary; typed values by our functions",
            Box::new(pass),
        ));
    }
    for (subject, _, pass) in &mut subjects {
        let mut hash = Hash::default();
        let found = pass(input, &mut |typed| hash.add(&typed.bytes()));
        let hash = hash.hex();
        if (found, &hash) != (expected, &slow) {
            return Err(format!("fix {name}: {subject} found {found:?}, the slow twin {expected:?}"));
        }
    }
    let mut repeats: Vec<Repeats> = subjects.iter().map(|_| Repeats::default()).collect();
    for _ in 0..if quick { 2 } else { 5 } {
        for ((subject, _, pass), times) in subjects.iter_mut().zip(&mut repeats) {
            let found = times.time(|| pass(input, &mut |_| {}));
            if found != expected {
                return Err(format!("fix {name}: {subject} found {found:?} in a repeat"));
            }
        }
    }
    let input_sha256 = sha256(input);
    let record = |((subject, what, _), times): (&Subject<'_>, &Repeats)| {
        let record = times.record(
            "fix",
            name,
            expected.messages,
            input.len() as u64,
            format!("{what}; from memory, in turn with the others; values equal to the slow twin's"),
        );
        Record {
            subject: (*subject).to_owned(),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: Some(slow.clone()),
            ..record
        }
    };
    Ok(subjects.iter().zip(&repeats).map(record).collect())
}

fn iron() -> impl Way {
    |input: &[u8], each: &mut dyn FnMut(&Typed)| {
        let mut index = FieldIndex::with_capacity(256);
        let (mut pass, mut at) = (Pass::default(), 0);
        while at < input.len() {
            // Line ends between messages are none of its business.
            if matches!(input[at], b'\r' | b'\n') {
                at += 1;
                continue;
            }
            let mut decoder = IronDecoder::new(&input[at..]);
            let Ok(message) = decoder.decode_into(&mut index) else {
                pass.faults += 1;
                break;
            };
            let mut typed = Typed::default();
            for field in message.fields() {
                pass.faults += u64::from(!typed.field::<Fast>(field.tag, field.value));
            }
            // Its index leaves CheckSum out.
            typed.fields += 1;
            pass.messages += 1;
            pass.sum = pass.sum.wrapping_add(typed.sum());
            each(&typed);
            at += decoder.offset();
        }
        pass
    }
}

/// Its decoder takes one message at a time.
fn rusty(spans: &[(usize, usize)]) -> Result<impl Way, String> {
    let dictionary = Dictionary::fix44().map_err(|e| format!("rustyfix: {e:?}"))?;
    let mut decoder = RustyDecoder::new(dictionary);
    Ok(move |input: &[u8], each: &mut dyn FnMut(&Typed)| {
        let mut pass = Pass::default();
        for &(start, end) in spans {
            let Ok(message) = decoder.decode(&input[start..end]) else {
                pass.faults += 1;
                continue;
            };
            let mut typed = Typed::default();
            for tag in TAGS {
                if let Some(value) = message.get_raw(tag) {
                    pass.faults += u64::from(!typed.field::<Fast>(tag, value));
                }
            }
            if let Ok(parties) = message.group(PARTIES.0) {
                typed.stated = parties.len() as u32;
                for party in parties.entries() {
                    let part = typed.parts.get_mut(typed.entries as usize);
                    typed.entries += 1;
                    let good = part.is_some_and(|part| {
                        let mut values = PARTIES.1.iter().map(|&tag| (tag, party.get_raw(tag)));
                        values.all(|(tag, value)| value.is_none_or(|value| part.field::<Fast>(tag, value)))
                    });
                    pass.faults += u64::from(!good);
                }
            }
            // Its list leaves two of the three framing fields out.
            typed.fields = message.len() as u32 + 2;
            pass.messages += 1;
            pass.sum = pass.sum.wrapping_add(typed.sum());
            each(&typed);
        }
        pass
    })
}

fn spans(input: &[u8]) -> Vec<(usize, usize)> {
    let (framer, mut at, mut spans) = (Framer::default(), 0, Vec::new());
    loop {
        match framer.frame(input, at, true) {
            Frame::Message(message) => {
                spans.push((message.span.start, message.span.end));
                at = message.span.end;
            }
            Frame::Bad { span, .. } | Frame::Text { span } => at = span.end,
            Frame::Incomplete { .. } | Frame::End => return spans,
        }
    }
}
