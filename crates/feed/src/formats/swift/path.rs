//! The paths by which mappings name the fields of a SWIFT message.
//!
//! | path | is |
//! |---|---|
//! | `type`, `category` | `103` and `1`, `ACK`, `NAK`; absent if nothing shows it |
//! | `mt` | `MT103`; absent if nothing shows it |
//! | `ack` | `ACK` or `NAK` where an acknowledgement precedes the message |
//! | `repeat` | `Y` where a trailer `PDE` or `PDM` says that the message may have been sent before |
//! | `uetr` | field 121 of block 3; absent where the message has several transactions, each begun by a `21` |
//! | `return` | `RETN` or `REJT` where the first field 72 begins with that code; 72 stays unlisted |
//! | `variant` | field 119 of block 3: `COV`, `STP`, `REMIT` |
//! | `time` | the event time, see [`super`] |
//! | `sum_differs` | what the sum of the transactions differs from, in words, see `totals.rs`; else absent |
//! | `sum_unchecked` | why the sum was not compared, in words |
//! | `entries` | the lines of a statement (`61`, `86`), for fields that are lists |
//! | `1.terminal`, `2.sender`, `2.receiver`, … | parts of blocks 1 and 2; `2.moment`: output day and time |
//! | `3.108`, `5.CHK` | a field of block 3 or 5 |
//! | `32A`, `32A.amount` | a field, a component of it; the first of its tag that the message has |
//! | `50a.name`, `50F\|K.name` | the same with any option (`50A`, `50F`, `50K`, …), with one of these |
//! | `50a.country` | of a party with numbered lines (50F, 59F): the country code of line `3/`; no other option has one |
//! | `98A:SETT.date` | the one with this qualifier |
//! | `FIAC/97A:SAFE.account` | the one in this sequence, innermost |
//! | `B/50a.name` | the one in sequence B of a message whose sequences have letters, see `sequences.rs` |
//! | `60a.signed`, `19A:SETT.signed` | the amount with its sign: less than zero for mark `D` and sign `N` |
//! | `98C:PREP.moment`, `13D.moment` | day and time as a moment |

use crate::mapping::Dialect;
use unitape_codec::swift_mt::parts;

/// SWIFT names its fields by tag.
#[derive(Clone, Copy, Debug)]
pub struct SwiftDialect;

/// A place in a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwiftPath {
    /// `type`.
    Type,
    /// `mt`.
    Mt,
    /// `category`.
    Category,
    /// `ack`.
    Ack,
    /// `repeat`.
    Repeat,
    /// `uetr`.
    Uetr,
    /// `return`.
    Return,
    /// `variant`.
    Variant,
    /// `time`.
    Time,
    /// `entries`.
    Entries,
    /// `sum_differs`.
    SumDiffers,
    /// `sum_unchecked`.
    SumUnchecked,
    /// Block and part.
    Block(u8, String),
    /// A field of the text, whole or a part of it.
    Field(SwiftFieldPath, Option<String>),
}

/// A field of the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwiftFieldPath {
    /// The sequence it must be in.
    pub sequence: Option<String>,
    /// The tag's number.
    pub number: u8,
    /// The option letters that the tag may have; empty means no letter, `None` any letter.
    pub options: Option<String>,
    /// Its qualifier.
    pub qualifier: Option<String>,
}

impl Dialect for SwiftDialect {
    type Path = SwiftPath;
    const TYPE_PATH: &'static str = "type";
    const COUNTED_GROUPS: bool = false;

    fn path(&self, text: &str) -> Result<SwiftPath, String> {
        match text {
            "type" => return Ok(SwiftPath::Type),
            "mt" => return Ok(SwiftPath::Mt),
            "category" => return Ok(SwiftPath::Category),
            "ack" => return Ok(SwiftPath::Ack),
            "repeat" => return Ok(SwiftPath::Repeat),
            "uetr" => return Ok(SwiftPath::Uetr),
            "return" => return Ok(SwiftPath::Return),
            "variant" => return Ok(SwiftPath::Variant),
            "time" => return Ok(SwiftPath::Time),
            "entries" => return Ok(SwiftPath::Entries),
            "sum_differs" => return Ok(SwiftPath::SumDiffers),
            "sum_unchecked" => return Ok(SwiftPath::SumUnchecked),
            _ => {}
        }
        if let Some((block @ ("1" | "2" | "3" | "5"), part)) = text.split_once('.') {
            return block_part(block, part).ok_or_else(|| format!("block {block} has no part `{part}`"));
        }
        let (sequence, rest) = match text.split_once('/') {
            Some((sequence, rest)) if is_plain(sequence, 16) => (Some(sequence.to_owned()), rest),
            Some((sequence, _)) => return Err(format!("`{sequence}` is no sequence")),
            None => (None, text),
        };
        let (rest, part) = match rest.split_once('.') {
            Some((rest, part)) => (rest, Some(part)),
            None => (rest, None),
        };
        let (tag, qualifier) = match rest.split_once(':') {
            Some((tag, qualifier)) if qualifier.len() == 4 && is_plain(qualifier, 4) => {
                (tag, Some(qualifier))
            }
            Some((_, qualifier)) => return Err(format!("`{qualifier}` is no qualifier of four letters")),
            None => (rest, None),
        };
        let (number, options) = match *tag.as_bytes() {
            [a @ b'0'..=b'9', b @ b'0'..=b'9', ref rest @ ..] => {
                let mut letters = rest.split(|b| *b == b'|');
                let options = match rest {
                    [] => Some(String::new()),
                    [b'a'] => None,
                    _ if letters.clone().all(|one| matches!(one, [b'A'..=b'Z'])) => {
                        Some(letters.by_ref().map(|one| char::from(one[0])).collect())
                    }
                    _ => return Err(format!("`{tag}` is no tag")),
                };
                ((a - b'0') * 10 + b - b'0', options)
            }
            _ => return Err(format!("`{tag}` is no tag")),
        };
        if let Some(part) = part
            && !matches!(part, "signed" | "moment")
            && parts::NAMES.binary_search(&part).is_err()
        {
            return Err(format!("no field has a part `{part}`"));
        }
        let field = SwiftFieldPath { sequence, number, options, qualifier: qualifier.map(str::to_owned) };
        Ok(SwiftPath::Field(field, part.map(str::to_owned)))
    }

    fn framing(&self) -> Vec<SwiftPath> {
        let options = Some("RS".to_owned());
        vec![SwiftPath::Field(SwiftFieldPath { sequence: None, number: 16, options, qualifier: None }, None)]
    }

    fn container(&self, path: &SwiftPath) -> Option<SwiftPath> {
        match path {
            SwiftPath::Field(field, Some(_)) => Some(SwiftPath::Field(field.clone(), None)),
            // The list has the statement lines, but not the fields after the balances.
            _ => None,
        }
    }
}

/// Parts of blocks 1 and 2 by name, of 3 and 5 by tag.
fn block_part(block: &str, part: &str) -> Option<SwiftPath> {
    let is_known = match block {
        "1" => matches!(part, "application" | "service" | "terminal" | "session" | "sequence"),
        "2" => matches!(
            part,
            "direction"
                | "type"
                | "receiver"
                | "priority"
                | "monitoring"
                | "obsolescence"
                | "input_time"
                | "input_date"
                | "sender"
                | "session"
                | "sequence"
                | "output_date"
                | "output_time"
                | "moment"
        ),
        _ => is_plain(part, 4),
    };
    is_known.then(|| SwiftPath::Block(block.as_bytes()[0] - b'0', part.to_owned()))
}

fn is_plain(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    // A misspelled path that is accepted is a field that never has a value.
    #[test]
    fn paths_are_read_or_refused() {
        for good in [
            "type",
            "ack",
            "entries",
            "sum_differs",
            "32A",
            "32A.amount",
            "50a.name",
            "98A:SETT.date",
            "FIAC/97A:SAFE.account",
            "B/50a.name",
            "60a.signed",
            "2.sender",
            "2.moment",
            "3.108",
            "5.CHK",
            "25a",
            "mt",
            "uetr",
            "return",
            "59a.country",
            "A/50F|G|H.account",
        ] {
            assert!(SwiftDialect.path(good).is_ok(), "{good}: {:?}", SwiftDialect.path(good));
        }
        for (bad, says) in [
            ("", "no tag"),
            ("3A", "no tag"),
            ("32AB", "no tag"),
            ("32b", "no tag"),
            ("50F|", "no tag"),
            ("50F|a", "no tag"),
            ("32A.amt", "no field has a part `amt`"),
            ("98A:SET.date", "no qualifier"),
            ("fiac/97A", "no sequence"),
            ("2.name", "block 2 has no part `name`"),
            ("4.20", "no tag"),
        ] {
            let error = SwiftDialect.path(bad).expect_err(bad);
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
