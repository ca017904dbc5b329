//! SWIFT MT to typed components: ours, and in a JVM of its own Prowide Core.
//!
//! Prowide divides some fields in other places than we do (name and address by lines, the type of a statement line in
//! two), so what is compared is what both have found in all: amounts, days, times and numbers one by one, and between
//! them the text of all components one behind the other, without line ends.

use crate::Asked;
use crate::apart::Worker;
use crate::messaging::pair::{fresh, shared_memory};
use unitape_bench::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use unitape_bench::swift_passes::{MeasuredComponent, SwiftPassResult, fast_pass, slow_pass};
use unitape_codec::swift_mt::parts::SubfieldFormat;
use unitape_codec::twin::swift_mt::sample::sample_messages;
use unitape_codec::swift_mt::{SwiftFieldTokenizer, SwiftTag};

/// How the subjects are asked for.
pub const IDS: [&str; 2] = ["unitape", "prowide"];

/// Which fields are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Every,
    Amounts,
}

/// Runs both conditions of the case.
pub fn run(asked: &Asked) -> Result<Vec<BenchRecord>, String> {
    let input = sample_messages(if asked.quick { 400 } else { 400_000 }, 42);
    let mut records = case(Condition::Every, &input, asked)?;
    records.extend(case(Condition::Amounts, &input, asked)?);
    Ok(records)
}

fn case(condition: Condition, input: &[u8], asked: &Asked) -> Result<Vec<BenchRecord>, String> {
    let name = condition.name();
    let wanted = |tag| condition.wants(tag);
    let mut hash = HexSha256::default();
    let expected = slow_pass(input, wanted, |value| condition.compare(&value, &mut hash));
    let expected_hash = hash.hex();
    let (mut fields, mut hash) = (SwiftFieldTokenizer::new(), HexSha256::default());
    let found = fast_pass(&mut fields, input, wanted, |value| condition.compare(&value, &mut hash));
    if expected.faults > 0 || found != expected || hash.hex() != expected_hash {
        return Err(format!("swift typed, {name}: fast path {found:?}, slow twin {expected:?}"));
    }
    let dir = fresh(&shared_memory())?;
    let file = dir.path().join("input.rje");
    std::fs::write(&file, input).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut prowide = asked.had("prowide", || Worker::java(&["prowide", condition.word(), "-"], &file));
    let mut checked = None;
    if let Some(worker) = &mut prowide {
        let (found, found_hash) = worker.values(dir.path())?;
        if (found.messages, found.faults, &found_hash) != (expected.messages, 0, &expected_hash) {
            let title = worker.name();
            return Err(format!(
                "swift typed, {name}: {title} found {found:?}, or other values than the slow twin"
            ));
        }
        checked = Some(found);
    }
    let (mut ours, mut theirs) = (RepeatTimes::default(), RepeatTimes::default());
    for _ in 0..asked.repeats {
        if asked.takes("unitape") {
            // Every field without a question which, as in the house's own bench.
            let again = ours.time(|| match condition {
                Condition::Every => fast_pass(&mut fields, input, |_| true, |_| {}),
                Condition::Amounts => fast_pass(&mut fields, input, has_amount_or_day, |_| {}),
            });
            if again != expected {
                return Err(format!("swift typed, {name}: {again:?} in a repeat, {expected:?} before"));
            }
        }
        if let Some(worker) = &mut prowide {
            let again = Some(worker.pass(&mut theirs)?);
            if again != checked {
                return Err(format!("swift typed, {name}: {} found {again:?} in a repeat", worker.name()));
            }
        }
    }
    let input_sha256 = sha256(input);
    let record = |(times, subject, what): (&RepeatTimes, &str, &str)| {
        let method = format!(
            "MT103, MT202, MT541, MT940 in turn from memory, in turn with the others; {what}; {} equal to the slow \
             twin's",
            condition.equal()
        );
        BenchRecord {
            subject: subject.to_owned(),
            condition: Some(name.to_owned()),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: Some(expected_hash.clone()),
            ..times.record("swift", "typed", expected.messages, input.len() as u64, method)
        }
    };
    let title = prowide.as_ref().map_or("", |worker| worker.name());
    let subjects = [(&ours, "unitape", condition.ours(&expected)), (&theirs, title, condition.theirs())];
    let subjects = subjects.iter().filter(|(times, _, _)| !times.is_empty());
    Ok(subjects.map(|(times, subject, what)| record((times, subject, what))).collect())
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Condition::Every => "every field",
            Condition::Amounts => "amounts and dates",
        }
    }

    /// The arguments of the peer.
    fn word(self) -> &'static str {
        match self {
            Condition::Every => "every",
            Condition::Amounts => "amounts",
        }
    }

    fn wants(self, tag: SwiftTag) -> bool {
        self == Condition::Every || has_amount_or_day(tag)
    }

    fn ours(self, found: &SwiftPassResult) -> String {
        match self {
            Condition::Every => {
                format!("frame, all {} fields, all {} components as typed values", found.fields, found.parts)
            }
            Condition::Amounts => {
                format!(
                    "frame, all fields, the {} components of those with an amount or a day as typed values",
                    found.parts
                )
            }
        }
    }

    fn equal(self) -> &'static str {
        match self {
            Condition::Every => {
                "amounts, days, times and numbers, and the text of all other components one behind the other,"
            }
            Condition::Amounts => "amounts and days",
        }
    }

    fn theirs(self) -> String {
        let how = match self {
            Condition::Every => {
                "asField of every tag, every component by its getter: BigDecimal, Calendar, Long, else text"
            }
            Condition::Amounts => {
                "of those tags the field's class, its amount as BigDecimal and its days as Calendar, no other component"
            }
        };
        format!(
            "in a process of its own, by its clock, JVM warmed up by four passes; RJEReader, SwiftParser, all tags of block \
             4; {how}; the day of an entry has no year there, and its month and day are compared"
        )
    }

    /// What is hashed of a value: `Prowide.java` writes the same.
    fn compare(self, value: &MeasuredComponent<'_>, hash: &mut HexSha256) {
        let mut number = |kind: u8, number: u64| {
            let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
            hash.add(&[kind, a, b, c, d, e, f, g, h]);
        };
        let digits =
            || value.text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0')));
        match value.kind {
            SubfieldFormat::Amount => number(b'A', value.number),
            SubfieldFormat::Date | SubfieldFormat::ValueDate | SubfieldFormat::DateLong => {
                number(b'D', value.number / DAY_NS)
            }
            SubfieldFormat::EntryDate => number(b'D', digits()),
            _ if self == Condition::Amounts => {}
            SubfieldFormat::Time => number(b'T', value.number),
            _ if value.tag == SwiftTag::new(b"28C") => number(b'N', digits()),
            _ => value.text.split(|byte| b"\r\n".contains(byte)).for_each(|line| hash.add(line)),
        }
    }
}

fn has_amount_or_day(tag: SwiftTag) -> bool {
    const TAGS: [SwiftTag; 10] = [
        SwiftTag::new(b"32A"),
        SwiftTag::new(b"33B"),
        SwiftTag::new(b"98A"),
        SwiftTag::new(b"90B"),
        SwiftTag::new(b"36B"),
        SwiftTag::new(b"19A"),
        SwiftTag::new(b"60F"),
        SwiftTag::new(b"61"),
        SwiftTag::new(b"62F"),
        SwiftTag::new(b"64"),
    ];
    TAGS.contains(&tag)
}

const DAY_NS: u64 = 86_400_000_000_000;
