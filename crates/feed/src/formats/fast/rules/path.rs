//! The paths by which mappings name the values of a FAST message.
//!
//! | path | is |
//! |---|---|
//! | `MDEntryPx` | the field of this name |
//! | `Trailer.Flags` | the field `Flags` of the group `Trailer` |
//! | `GroupEntries.Px` | outside of `[group.GroupEntries]`: `Px` of the first element of the sequence `GroupEntries` |
//! | `GroupEntries` | how many elements the sequence has |
//! | `SendingTime@ns` | an integer as a time: `@s`, `@ms`, `@us`, `@ns` since 1970 |
//! | `SendingTime@YYYYMMDDhhmmssfff` | an integer as a time: its digits; `YY` is a year from 2000 on, `f` parts of a second |
//! | `@template` | the name of the message's template |
//! | `@number`, `@channel` | what framing has before a message |
//!
//! A group of a mapping is a sequence: `[group.GroupEntries]`, or of sequences in sequences `[group."GroupEntries.Legs"]`. Its
//! members are named from the element on (`Px`, `TradeGrp.Type`); what an element does not have is taken from what came
//! before it in the elements that it is in.

use crate::mapping::Dialect;
use std::collections::BTreeSet;
use unitape_codec::fix::value;
use unitape_fast::template::Instruction;
use unitape_fast::{Templates, template};

/// Fields are named by templates.
#[derive(Debug)]
pub struct FastDialect {
    name_paths: BTreeSet<String>,
}

/// A path, and how its value is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // documented at the head of the module
pub enum FastFieldPath {
    Template,
    Number,
    Channel,
    Value { path: String, reading: FastValueConversion },
}

/// The reading of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FastValueConversion {
    /// As it is.
    AsItIs,
    /// As a count since 1970 of units of this many nanoseconds.
    Count(i64),
    /// As digits of a date and a time.
    Digits(DateDigitLayout),
}

/// The parts of a number's digits: their lengths, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DateDigitLayout {
    year: u8,
    /// The number of pairs of digits that follow: month and day, then hour, minute and second.
    pairs: u8,
    fraction: u8,
}

const TYPE_PATH: &str = "@template";

const UNITS: [(&str, i64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)];

/// More parts than any venue's templates have; beyond, names are not looked at.
const NAMES_MAX: usize = 1 << 16;

impl FastDialect {
    /// Collects the names in these templates.
    pub fn new(templates: &Templates) -> Self {
        let mut used_names = BTreeSet::new();
        for template in templates.list() {
            gather_names(&template.body, &mut used_names);
        }
        Self { name_paths: used_names }
    }
}

fn gather_names(body: &[Instruction], names: &mut BTreeSet<String>) {
    for part in body {
        let name: &template::QualifiedName = match part {
            Instruction::Field(field) => &field.name,
            Instruction::Group(group) => &group.name,
            Instruction::Sequence(sequence) => &sequence.name,
            Instruction::Static(..) | Instruction::Dynamic => continue,
        };
        if names.len() <= NAMES_MAX {
            names.insert(name.local.clone());
        }
        match part {
            Instruction::Group(group) => gather_names(&group.body, names),
            Instruction::Sequence(sequence) => gather_names(&sequence.body, names),
            _ => {}
        }
    }
}

impl Dialect for FastDialect {
    type Path = FastFieldPath;
    const TYPE_PATH: &'static str = TYPE_PATH;
    // A sequence is its own count.
    const COUNTED_GROUPS: bool = true;
    const DELIMITED_GROUPS: bool = false;

    fn path(&self, text: &str) -> Result<FastFieldPath, String> {
        match text {
            TYPE_PATH => return Ok(FastFieldPath::Template),
            "@number" => return Ok(FastFieldPath::Number),
            "@channel" => return Ok(FastFieldPath::Channel),
            _ => {}
        }
        let (path, reading) = match text.split_once('@') {
            Some((path, form)) => (path, parse_conversion(form)?),
            None => (text, FastValueConversion::AsItIs),
        };
        let unknown = path.split('.').find(|name| !self.name_paths.contains(*name));
        match unknown {
            Some(name) if self.name_paths.len() <= NAMES_MAX => {
                Err(format!("`{name}` is no field, group or sequence of the templates"))
            }
            _ => Ok(FastFieldPath::Value { path: path.to_owned(), reading }),
        }
    }

    fn framing(&self) -> Vec<FastFieldPath> {
        vec![FastFieldPath::Template, FastFieldPath::Number, FastFieldPath::Channel]
    }

    fn container(&self, path: &FastFieldPath) -> Option<FastFieldPath> {
        match path {
            FastFieldPath::Value { path, reading } if *reading != FastValueConversion::AsItIs => {
                Some(FastFieldPath::Value { path: path.clone(), reading: FastValueConversion::AsItIs })
            }
            _ => None,
        }
    }
}

fn parse_conversion(form: &str) -> Result<FastValueConversion, String> {
    if let Some((_, nanos)) = UNITS.iter().find(|(unit, _)| *unit == form) {
        return Ok(FastValueConversion::Count(*nanos));
    }
    let mut form_left = form;
    let mut count_letter = |letter: char, wanted: &[usize]| {
        let n = form_left.len() - form_left.trim_start_matches(letter).len();
        form_left = &form_left[n..];
        wanted.contains(&n).then_some(n as u8)
    };
    let picture = (|| {
        let year = count_letter('Y', &[2, 4])?;
        let mut pairs = 0;
        for letter in ['M', 'D', 'h', 'm', 's'] {
            let n = count_letter(letter, &[0, 2])?;
            // None may be left out before one that is there.
            if n == 2 && pairs == 2 * (['M', 'D', 'h', 'm', 's'].iter().position(|l| *l == letter)? as u8) {
                pairs += 2;
            } else if n > 0 {
                return None;
            }
        }
        let fraction = count_letter('f', &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])?;
        (pairs >= 4 && (fraction == 0 || pairs == 10)).then_some(DateDigitLayout {
            year,
            pairs: pairs / 2,
            fraction,
        })
    })();
    match (picture, form_left) {
        (Some(picture), "") => Ok(FastValueConversion::Digits(picture)),
        _ => Err(format!(
            "`@{form}` is neither a unit (@s, @ms, @us, @ns) nor the digits of a time, as @YYYYMMDDhhmmssfff"
        )),
    }
}

impl DateDigitLayout {
    /// Converts the digits of `number` to a time in nanoseconds since 1970.
    pub fn to_unix_nanos(self, mut number: u64) -> Option<i64> {
        let mut take_digits = |digits: u8| {
            let power = 10u64.pow(digits.into());
            let part = number % power;
            number /= power;
            part
        };
        let fraction = take_digits(self.fraction);
        let mut pairs = [0; 5];
        for pair in pairs[..usize::from(self.pairs)].iter_mut().rev() {
            *pair = take_digits(2);
        }
        let year = take_digits(self.year) + if self.year == 2 { 2000 } else { 0 };
        if number > 0 {
            return None;
        }
        let [month, day, hour, minute, second] = pairs;
        let mut date = year * 10_000 + month * 100 + day;
        let mut text = [b'0'; 8];
        for digit in text.iter_mut().rev() {
            *digit += (date % 10) as u8;
            date /= 10;
        }
        let midnight = value::date(&text)?;
        let second =
            (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3600 + minute * 60 + second)?;
        let nanos = second * 1_000_000_000 + fraction * 10u64.pow(9 - u32::from(self.fraction));
        midnight.checked_add(nanos as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a wrong year: MOEX writes years with two digits and CME with four, which the number alone does
    /// not show.
    #[test]
    fn times_of_digits() {
        for (form, number, nanos) in [
            ("YYMMDDhhmmssffffff", 190_404_083_636_274_670, Some(1_554_366_996_274_670_000)),
            ("YYYYMMDDhhmmssfff", 20_190_404_083_636_274, Some(1_554_366_996_274_000_000)),
            ("YYYYMMDD", 20_190_404, Some(1_554_336_000_000_000_000)),
            ("YYYYMMDDhh", 2_019_040_408, Some(1_554_364_800_000_000_000)),
            ("YYYYMMDD", 20_190_431, None),
            ("YYYYMMDD", 120_190_404, None),
            ("YYYYMMDDhhmm", 201_904_040_860, None),
        ] {
            match parse_conversion(form) {
                Ok(FastValueConversion::Digits(picture)) => {
                    assert_eq!(picture.to_unix_nanos(number), nanos, "{form} {number}")
                }
                other => panic!("{form}: {other:?}"),
            }
        }
        assert_eq!(parse_conversion("us"), Ok(FastValueConversion::Count(1000)));
        for wrong in ["", "m", "YYYY", "YYYYMM", "hhmmss", "YYYYMMDDmm", "YYYYMMDDhhfff", "YYYYMMDDhhmmssx"] {
            assert!(parse_conversion(wrong).is_err(), "{wrong}");
        }
    }
}
