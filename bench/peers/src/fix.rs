//! FIX bytes to typed records: ours, `ironfix-tagvalue`, `rustyfix`, and in processes of their own QuickFIX and
//! QuickFIX/J.

use crate::Asked;
use crate::apart::{PassTotals, Worker};
use crate::messaging::pair::{fresh, shared_memory};
use crate::programs::{cpp, dictionaries};
use ironfix_tagvalue::{Decoder as IronDecoder, FieldIndex};
use rustyfix::tagvalue::Decoder as RustyDecoder;
use rustyfix::{Dictionary, FieldMap, RepeatingGroup};
use std::path::Path;
use std::process::Command;
use unitape_bench::passes::{FixPassResult, ProductValueReader, fast_pass, slow_pass};
use unitape_bench::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use unitape_bench::typed::TypedMessage;
use unitape_codec::twin::fix::sample::sample_orders;
use unitape_codec::fix::{FixFramer, MessageTokenizer, NextFixFrame};

static JSE: &[u8] = include_bytes!("../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix");

/// Tags of which `TypedMessage` takes the values, outside of groups.
const TAGS: [u32; 11] = [35, 34, 1181, 52, 60, 44, 38, 54, 11, 55, 1];

/// The group of parties: its count, and what is taken of an entry.
const PARTIES: (u32, [u32; 3]) = (453, [448, 447, 452]);

/// How the subjects are asked for.
pub const IDS: [&str; 7] = [
    "unitape",
    "ironfix",
    "rustyfix",
    "quickfix",
    "quickfix-validating",
    "quickfixj",
    "quickfixj-validating",
];

/// A pass over an input that hands out each record.
trait FixPass: FnMut(&[u8], &mut dyn FnMut(&TypedMessage)) -> FixPassResult {}
impl<T: FnMut(&[u8], &mut dyn FnMut(&TypedMessage)) -> FixPassResult> FixPass for T {}

struct Subject<'a> {
    title: String,
    what: &'static str,
    place: SubjectProcess<'a>,
}

/// The process in which a subject works.
enum SubjectProcess<'a> {
    Here(Box<dyn FixPass + 'a>),
    Apart(Worker, Form),
}

/// In which form the values of a peer apart are: as ours, or with floats for decimals.
#[derive(Clone, Copy)]
enum Form {
    Exact,
    Floats,
}

/// What must be found: the pass, and for each form the hash of all values.
struct Expected {
    pass: FixPassResult,
    exact: String,
    floats: String,
    /// The sums of what peers apart find: they count the fields of a message in the pass that is compared alone.
    exact_sum: u64,
    floats_sum: u64,
}

/// Runs both cases.
pub fn run(asked: &Asked) -> Result<Vec<BenchRecord>, String> {
    let orders = sample_orders(if asked.quick { 2_000 } else { 1_000_000 }, 42);
    let mut records = case("orders", &orders, asked)?;
    drop(orders);
    records.extend(case("jse", &JSE.repeat(if asked.quick { 1 } else { 91 }), asked)?);
    Ok(records)
}

fn case(name: &str, input: &[u8], asked: &Asked) -> Result<Vec<BenchRecord>, String> {
    let expected = Expected::of(input);
    let spans = spans(input);
    let mut tokens = MessageTokenizer::new();
    let dir = fresh(&shared_memory())?;
    let mut subjects = subjects_here(name, &mut tokens, &spans, asked)?;
    subjects.extend(subjects_apart(name, input, dir.path(), asked)?);
    for Subject { title, place, .. } in &mut subjects {
        let good = match place {
            SubjectProcess::Here(pass) => {
                let mut hash = HexSha256::default();
                let found = pass(input, &mut |typed| hash.add(&typed.bytes()));
                (found, hash.hex().as_str()) == (expected.pass, expected.exact.as_str())
            }
            SubjectProcess::Apart(worker, form) => {
                let (found, hash) = worker.values(dir.path())?;
                (found, hash.as_str()) == (expected.apart(*form), expected.hash(*form))
            }
        };
        if !good {
            return Err(format!("fix {name}: {title} found other values than the slow twin"));
        }
    }
    let mut repeats: Vec<RepeatTimes> = subjects.iter().map(|_| RepeatTimes::default()).collect();
    for _ in 0..asked.repeats {
        for (Subject { title, place, .. }, times) in subjects.iter_mut().zip(&mut repeats) {
            let good = match place {
                SubjectProcess::Here(pass) => times.time(|| pass(input, &mut |_| {})) == expected.pass,
                SubjectProcess::Apart(worker, form) => worker.pass(times)? == expected.apart(*form),
            };
            if !good {
                return Err(format!("fix {name}: {title} found something else in a repeat"));
            }
        }
    }
    let input_sha256 = sha256(input);
    let record = |(Subject { title, what, place }, times): (&Subject<'_>, &RepeatTimes)| {
        let (messages, bytes) = (expected.pass.messages, input.len() as u64);
        let (form, equal) = match place {
            SubjectProcess::Here(_) => (Form::Exact, "values equal to the slow twin's"),
            SubjectProcess::Apart(_, Form::Exact) if name == "jse" => (Form::Exact, APART_EXACT_ANY_ORDER),
            SubjectProcess::Apart(_, Form::Exact) => (Form::Exact, APART_EXACT),
            SubjectProcess::Apart(_, Form::Floats) => (Form::Floats, APART_FLOATS),
        };
        let method = format!("{what}; from memory, in turn with the others; {equal}");
        BenchRecord {
            subject: title.clone(),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: Some(expected.hash(form).to_owned()),
            ..times.record("fix", name, messages, bytes, method)
        }
    };
    Ok(subjects.iter().zip(&repeats).map(record).collect())
}

const APART_EXACT: &str = "in a process of its own, by its clock; values equal to the slow twin's";

const APART_EXACT_ANY_ORDER: &str = "in a process of its own, by its clock, fields of a group taken in any order; values \
                                     equal to the slow twin's";

const APART_FLOATS: &str = "in a process of its own, by its clock; prices and quantities are floats there, equal to those \
                            nearest to the slow twin's, all other values are equal to the slow twin's";

fn subjects_here<'a>(
    name: &str,
    tokens: &'a mut MessageTokenizer,
    spans: &'a [(usize, usize)],
    asked: &Asked,
) -> Result<Vec<Subject<'a>>, String> {
    let mut subjects = Vec::new();
    let mut add = |id: &str, title: &str, what, pass: Box<dyn FixPass + 'a>| {
        if asked.takes(id) {
            subjects.push(Subject { title: title.to_owned(), what, place: SubjectProcess::Here(pass) });
        }
    };
    add(
        "unitape",
        "unitape",
        "frame, checksum, fields, groups checked against their counts, typed values",
        Box::new(|input: &[u8], each: &mut dyn FnMut(&TypedMessage)| fast_pass(tokens, input, each)),
    );
    add(
        "ironfix",
        "ironfix-tagvalue 0.5.1",
        "frame, checksum, fields into a reused index; groups by a few lines of ours; typed values by our functions",
        Box::new(iron()),
    );
    // It cannot read a message without the dictionary of its version; 4.4 is the one it brings.
    if name == "orders" {
        add(
            "rustyfix",
            "rustyfix 0.7.4",
            "message boundaries given; checksum, fields and groups by dictionary; typed values by our functions",
            Box::new(rusty(spans)?),
        );
    }
    Ok(subjects)
}

/// Those in processes of their own. Messages of the second case lack fields that the standard requires (the sequence
/// number, who sent it), so no dictionary would let them pass, and they are not held to one.
fn subjects_apart(
    name: &str,
    input: &[u8],
    dir: &Path,
    asked: &Asked,
) -> Result<Vec<Subject<'static>>, String> {
    let file = dir.join("input.fix");
    std::fs::write(&file, input).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut subjects = Vec::new();
    for (ids, form) in [
        (["quickfix", "quickfix-validating"], Form::Floats),
        (["quickfixj", "quickfixj-validating"], Form::Exact),
    ] {
        for (id, how) in ids.into_iter().zip(["plain", "validating"]) {
            let validating = how == "validating";
            if validating && name == "jse" {
                continue;
            }
            let what = match (form, validating) {
                (Form::Floats, false) => QUICKFIX,
                (Form::Floats, true) => QUICKFIX_VALIDATING,
                (Form::Exact, false) => QUICKFIXJ,
                (Form::Exact, true) => QUICKFIXJ_VALIDATING,
            };
            let started = asked.had(id, || match form {
                Form::Floats => {
                    let mut command = Command::new(cpp("quickfix", "quickfix", "libquickfix-dev")?);
                    command.args([name, how]).arg(dictionaries()?).arg(&file);
                    Worker::start(command)
                }
                Form::Exact => Worker::java(&["quickfixj", name, how], &file),
            });
            if let Some(worker) = started {
                let title = format!("{}{}", worker.name(), if validating { ", validating" } else { "" });
                subjects.push(Subject { title, what, place: SubjectProcess::Apart(worker, form) });
            }
        }
    }
    Ok(subjects)
}

const QUICKFIX: &str = "Debian's library, its parser fed with 8 KiB at a time as by its sockets, one message object used \
                        again; length, checksum, order of the first fields, groups by the data dictionary, typed values \
                        by its field classes";

const QUICKFIX_VALIDATING: &str = "Debian's library, its parser fed with 8 KiB at a time as by its sockets, one message \
                                   object used again; length, checksum, order of the first fields, groups by the data \
                                   dictionary, the message validated by it (required and known fields, types, values, \
                                   counts of groups), typed values by its field classes";

const QUICKFIXJ: &str = "JVM warmed up by four passes; its decoder over the whole input, a new message each; length, \
                         checksum, order of header, body and trailer, groups by the data dictionary, typed values by its \
                         getters, decimals as BigDecimal";

const QUICKFIXJ_VALIDATING: &str = "JVM warmed up by four passes; its decoder over the whole input, a new message each; \
                                    length, checksum, order of header, body and trailer, groups by the data dictionary, \
                                    the message validated by it (required and known fields, types, values, counts of \
                                    groups), typed values by its getters, decimals as BigDecimal";

impl Expected {
    fn of(input: &[u8]) -> Self {
        let (mut exact, mut floats) = (HexSha256::default(), HexSha256::default());
        let (mut exact_sum, mut floats_sum) = (0u64, 0u64);
        let pass = slow_pass(input, |typed| {
            exact.add(&typed.bytes());
            let as_floats = with_floats(typed);
            floats.add(&as_floats.bytes());
            exact_sum = exact_sum.wrapping_add(sum_without_count(*typed));
            floats_sum = floats_sum.wrapping_add(sum_without_count(as_floats));
        });
        Self { pass, exact: exact.hex(), floats: floats.hex(), exact_sum, floats_sum }
    }

    fn hash(&self, form: Form) -> &str {
        match form {
            Form::Exact => &self.exact,
            Form::Floats => &self.floats,
        }
    }

    fn apart(&self, form: Form) -> PassTotals {
        let sum = match form {
            Form::Exact => self.exact_sum,
            Form::Floats => self.floats_sum,
        };
        PassTotals { messages: self.pass.messages, faults: self.pass.faults, sum }
    }
}

fn sum_without_count(mut typed: TypedMessage) -> u64 {
    typed.fields = 0;
    typed.sum()
}

/// Decimals as the bits of the nearest float, as a peer has them that knows no decimals.
fn with_floats(typed: &TypedMessage) -> TypedMessage {
    // The standard library gives the float that is nearest to a text.
    let float = |value: &mut i64, exponent: &mut i8| {
        let nearest = format!("{value}e{exponent}").parse::<f64>().unwrap_or(f64::NAN);
        *value = nearest.to_bits() as i64;
        *exponent = 0;
    };
    let mut typed = *typed;
    float(&mut typed.price, &mut typed.price_exponent);
    float(&mut typed.quantity, &mut typed.quantity_exponent);
    for part in &mut typed.parts {
        float(&mut part.price, &mut part.price_exponent);
        float(&mut part.change, &mut part.change_exponent);
    }
    typed
}

fn iron() -> impl FixPass {
    |input: &[u8], each: &mut dyn FnMut(&TypedMessage)| {
        let mut index = FieldIndex::with_capacity(256);
        let (mut pass, mut at) = (FixPassResult::default(), 0);
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
            let mut typed = TypedMessage::default();
            for field in message.fields() {
                pass.faults += u64::from(!typed.field::<ProductValueReader>(field.tag, field.value));
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
fn rusty(spans: &[(usize, usize)]) -> Result<impl FixPass, String> {
    let dictionary = Dictionary::fix44().map_err(|e| format!("rustyfix: {e:?}"))?;
    let mut decoder = RustyDecoder::new(dictionary);
    Ok(move |input: &[u8], each: &mut dyn FnMut(&TypedMessage)| {
        let mut pass = FixPassResult::default();
        for &(start, end) in spans {
            let Ok(message) = decoder.decode(&input[start..end]) else {
                pass.faults += 1;
                continue;
            };
            let mut typed = TypedMessage::default();
            for tag in TAGS {
                if let Some(value) = message.get_raw(tag) {
                    pass.faults += u64::from(!typed.field::<ProductValueReader>(tag, value));
                }
            }
            if let Ok(parties) = message.group(PARTIES.0) {
                typed.stated = parties.len() as u32;
                for party in parties.entries() {
                    let part = typed.parts.get_mut(typed.entries as usize);
                    typed.entries += 1;
                    let good = part.is_some_and(|part| {
                        let mut values = PARTIES.1.iter().map(|&tag| (tag, party.get_raw(tag)));
                        values.all(|(tag, value)| {
                            value.is_none_or(|value| part.field::<ProductValueReader>(tag, value))
                        })
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
    let (framer, mut at, mut spans) = (FixFramer::default(), 0, Vec::new());
    loop {
        match framer.frame(input, at, true) {
            NextFixFrame::Message(message) => {
                spans.push((message.span.start, message.span.end));
                at = message.span.end;
            }
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => at = span.end,
            NextFixFrame::Incomplete { .. } | NextFixFrame::End => return spans,
        }
    }
}
