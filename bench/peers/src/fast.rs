//! FAST messages by templates that are loaded at run time: ours, `fastlib` where it can load them, and in a JVM of its own
//! OpenFAST.

use crate::Asked;
use crate::apart::Worker;
use crate::messaging::pair::{fresh, shared_memory};
use fastlib::{MessageFactory, Value};
use unitape_bench::fast_passes::{
    FastMessageSet, FastMessageStream, FastPassResult, SETS, pass, slow_values, values,
};
use unitape_bench::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use unitape_fast::Decoder;

/// How the subjects are asked for.
pub const IDS: [&str; 3] = ["unitape", "fastlib", "openfast"];

/// Runs the cases whose messages are here.
pub fn run(asked: &Asked) -> Result<Vec<BenchRecord>, String> {
    let mut records = Vec::new();
    for set in SETS {
        match FastMessageSet::load(set) {
            Ok(set) => records.extend(case(asked, &set)?),
            Err(what) => eprintln!("fast/{set} is passed over: {what}"),
        }
    }
    Ok(records)
}

fn case(asked: &Asked, set: &FastMessageSet) -> Result<Vec<BenchRecord>, String> {
    let wrong = |what: &dyn std::fmt::Display| format!("fast {}: {what}", set.name);
    let (mut ours, mut hash, mut slow) =
        (Decoder::new(set.templates.clone()), HexSha256::default(), HexSha256::default());
    ours = ours.with_strict(true);
    slow_values(set, |bytes| slow.add(bytes))?;
    let count = values(&mut ours, set, |bytes| hash.add(bytes))?;
    let expected = slow.hex();
    if hash.hex() != expected {
        return Err(wrong(&"other values than the slow twin's"));
    }
    let good = FastPassResult { messages: set.messages.len() as u64, faults: 0, bytes: set.bytes() };
    let rounds = if asked.quick { 1 } else { 120_000 / good.messages + 1 };

    let mut fastlib = asked.had("fastlib", || Fastlib::load(set, &expected));
    let dir = fresh(&shared_memory())?;
    let (xml, frames) = (dir.path().join("templates.xml"), dir.path().join("messages.frames"));
    let written = std::fs::write(&xml, &set.xml).and_then(|()| std::fs::write(&frames, framed(set)));
    written.map_err(|e| format!("{}: {e}", dir.path().display()))?;
    let arguments = [xml.display().to_string(), rounds.to_string()];
    let arguments = ["openfast", &arguments[0], &arguments[1]];
    let mut openfast = asked.had("openfast", || Worker::java(&arguments, &frames));
    if let Some(worker) = &mut openfast {
        let (found, found_hash) = worker.values(dir.path())?;
        let right = (good.messages * rounds, 0, good.bytes * rounds);
        if (found.messages, found.faults, found.sum) != right || found_hash != expected {
            return Err(wrong(&format!("{} found {found:?}, or other values", worker.name())));
        }
    }

    let mut seed = 42;
    let (mut times, mut times_fastlib, mut times_openfast) =
        (RepeatTimes::default(), RepeatTimes::default(), RepeatTimes::default());
    for repeat in 0..=asked.repeats {
        let stream = set.permuted(&mut seed);
        // Of the first nothing is kept: it warms up.
        let mut warm = [RepeatTimes::default(), RepeatTimes::default()];
        let [first, second] = &mut warm;
        let (times, times_fastlib) =
            if repeat == 0 { (first, second) } else { (&mut times, &mut times_fastlib) };
        if asked.takes("unitape") {
            let mut round = || pass(&mut ours, &stream);
            if !times.time(|| (0..rounds).map(|_| round()).all(|found| found == good)) {
                return Err(wrong(&"another result in a repeat"));
            }
        }
        if let Some(fastlib) = &mut fastlib {
            let mut round = || fastlib.pass(&stream);
            if !times_fastlib.time(|| (0..rounds).map(|_| round()).all(|found| found == Some(count))) {
                return Err(wrong(&"another result of fastlib in a repeat"));
            }
        }
        if let Some(worker) = openfast.as_mut().filter(|_| repeat > 0) {
            let found = worker.pass(&mut times_openfast)?;
            if (found.messages, found.faults) != (good.messages * rounds, 0) {
                return Err(wrong(&format!("{} found {found:?} in a repeat", worker.name())));
            }
        }
    }

    let title = openfast.as_ref().map_or("", |worker| worker.name());
    let subjects = [
        (&times, "unitape", "all values in the decoder's list"),
        (&times_fastlib, "fastlib 0.3.8", "all values handed to a factory that counts them"),
        (
            &times_openfast,
            title,
            "in a process of its own, JVM warmed up by four passes, all values as its objects",
        ),
    ];
    let subjects = subjects.iter().filter(|(times, ..)| !times.is_empty());
    Ok(subjects
        .map(|(times, subject, what)| BenchRecord {
            subject: (*subject).to_owned(),
            input_sha256: Some(sha256(&set.input)),
            output_sha256: Some(expected.clone()),
            ..times.record(
                "fast",
                set.name,
                good.messages * rounds,
                good.bytes * rounds,
                format!(
                    "{}; decoded one by one from memory in an order that is new in each repeat, dictionaries emptied before \
                     each, in turn with the others; {what}; values of all messages equal to the slow twin's",
                    set.description
                ),
            )
        })
        .collect())
}

/// Each message with its length before it.
fn framed(set: &FastMessageSet) -> Vec<u8> {
    let mut out = Vec::with_capacity(set.input.len() + 4 * set.messages.len());
    for message in &set.messages {
        out.extend_from_slice(&(message.len() as u32).to_le_bytes());
        out.extend_from_slice(&set.input[message.clone()]);
    }
    out
}

struct Fastlib(fastlib::Decoder);

impl Fastlib {
    /// It, unless it cannot load the templates or finds other values.
    fn load(set: &FastMessageSet, expected: &str) -> Result<Self, String> {
        let xml = std::str::from_utf8(&set.xml).map_err(|e| e.to_string())?;
        let mut found = Self(fastlib::Decoder::new_from_xml(xml).map_err(|e| e.to_string())?);
        let mut hash = HexSha256::default();
        for message in &set.messages {
            let mut values = Values::default();
            found.0.reset();
            found.0.decode_slice(&set.input[message.clone()], &mut values).map_err(|e| e.to_string())?;
            hash.add(&values.0);
        }
        if hash.hex() == expected { Ok(found) } else { Err("it finds other values".to_owned()) }
    }

    /// How many values there are.
    fn pass(&mut self, stream: &FastMessageStream) -> Option<u64> {
        let mut count = Count(0);
        for message in stream.messages() {
            self.0.reset();
            self.0.decode_slice(message, &mut count).ok()?;
        }
        Some(count.0)
    }
}

struct Count(u64);

impl MessageFactory for Count {
    fn start_template(&mut self, _: u32, _: &str) {}
    fn stop_template(&mut self) {}
    fn set_value(&mut self, _: u32, _: &str, value: Option<Value>) {
        self.0 += u64::from(std::hint::black_box(value).is_some());
    }
    fn start_sequence(&mut self, _: u32, _: &str, _: u32) {}
    fn start_sequence_item(&mut self, _: u32) {}
    fn stop_sequence_item(&mut self) {}
    fn stop_sequence(&mut self) {}
    fn start_group(&mut self, _: &str) {}
    fn stop_group(&mut self) {}
    fn start_template_ref(&mut self, _: &str, _: bool) {}
    fn stop_template_ref(&mut self) {}
}

/// The bytes that `fast_passes` has for these values.
#[derive(Default)]
struct Values(Vec<u8>);

impl Values {
    fn number(&mut self, number: u64) {
        self.0.push(b'I');
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, kind: u8, text: &[u8]) {
        self.0.push(kind);
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text);
    }
}

impl MessageFactory for Values {
    fn start_template(&mut self, id: u32, _: &str) {
        self.0.push(b'M');
        self.0.extend_from_slice(&id.to_le_bytes());
    }
    fn stop_template(&mut self) {}
    fn set_value(&mut self, _: u32, _: &str, value: Option<Value>) {
        match value {
            None => {}
            Some(Value::UInt32(value)) => self.number(value.into()),
            Some(Value::Int32(value)) => self.number(i64::from(value) as u64),
            Some(Value::UInt64(value)) => self.number(value),
            Some(Value::Int64(value)) => self.number(value as u64),
            Some(Value::Decimal(value)) => {
                self.0.push(b'D');
                self.0.extend_from_slice(&value.mantissa.to_le_bytes());
                self.0.push(value.exponent as u8);
            }
            Some(Value::ASCIIString(text) | Value::UnicodeString(text)) => self.text(b'S', text.as_bytes()),
            Some(Value::Bytes(bytes)) => self.text(b'B', &bytes),
        }
    }
    fn start_sequence(&mut self, _: u32, _: &str, length: u32) {
        self.0.push(b'[');
        self.0.extend_from_slice(&length.to_le_bytes());
    }
    fn start_sequence_item(&mut self, _: u32) {
        self.0.push(b'(');
    }
    fn stop_sequence_item(&mut self) {
        self.0.push(b')');
    }
    fn stop_sequence(&mut self) {
        self.0.push(b']');
    }
    fn start_group(&mut self, _: &str) {
        self.0.push(b'{');
    }
    fn stop_group(&mut self) {
        self.0.push(b'}');
    }
    fn start_template_ref(&mut self, _: &str, _: bool) {}
    fn stop_template_ref(&mut self) {}
}
