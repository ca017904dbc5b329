//! Types: what an element of a template means.

use super::error::{TemplateError, TemplateErrorCode};
use super::xml::{FileLocation, XmlElement};
use super::{IntegerMeaning, WireType};
use TemplateErrorCode::S1;
use std::sync::Arc;

/// Elements of an enumeration, at most.
const ELEMENTS_MAX: usize = 4096;

/// The type that an element says, and what its numbers mean.
pub(super) fn kind(
    at: &FileLocation<'_>,
    of: &XmlElement,
) -> Result<(WireType, IntegerMeaning), TemplateError> {
    let plain = |kind| Ok((kind, IntegerMeaning::Number));
    match of.name.as_str() {
        "int32" => plain(WireType::Int32),
        "uInt32" => plain(WireType::UInt32),
        "int64" => plain(WireType::Int64),
        "uInt64" => plain(WireType::UInt64),
        "decimal" => plain(WireType::Decimal),
        "byteVector" => plain(WireType::Bytes),
        "string" => match of.get("charset") {
            None | Some("ascii") => plain(WireType::Ascii),
            Some("unicode") => plain(WireType::Unicode),
            Some(other) => Err(at.error(S1, format!("charset=\"{other}\"; there are ascii and unicode"))),
        },
        "boolean" => Ok((WireType::UInt32, IntegerMeaning::Boolean)),
        "enum" => {
            let elements = elements(at, of)?;
            let numbered = elements.iter().enumerate().map(|(index, element)| {
                let number = match element.get("value") {
                    Some(text) => text.trim().parse().map_err(|_| {
                        at.line(element.line)
                            .error(S1, format!("value=\"{text}\" is no number of an enumeration"))
                    })?,
                    None => index as u64,
                };
                Ok((number, name(at, element)?))
            });
            Ok((WireType::UInt32, IntegerMeaning::Enum(numbered.collect::<Result<Arc<[_]>, _>>()?)))
        }
        "set" => {
            let names: Result<Arc<[String]>, _> =
                elements(at, of)?.iter().map(|element| name(at, element)).collect();
            let names = names?;
            if names.len() > 64 {
                return Err(at.error(S1, "a set of more than 64 elements"));
            }
            Ok((WireType::UInt64, IntegerMeaning::Set(names)))
        }
        "timestamp" => {
            let unit_ns = match of.get("unit").unwrap_or("second") {
                "day" => 86_400_000_000_000,
                "second" => 1_000_000_000,
                "millisecond" => 1_000_000,
                "microsecond" => 1_000,
                "nanosecond" => 1,
                other => {
                    let what = format!(
                        "unit=\"{other}\"; there are day, second, millisecond, microsecond, nanosecond"
                    );
                    return Err(at.error(S1, what));
                }
            };
            Ok((WireType::UInt64, IntegerMeaning::Timestamp { unit_ns }))
        }
        other => Err(at.error(S1, format!("<{other}> is nothing that a template has"))),
    }
}

fn elements<'e>(at: &FileLocation<'_>, of: &'e XmlElement) -> Result<Vec<&'e XmlElement>, TemplateError> {
    let elements: Vec<&XmlElement> = of.children.iter().filter(|child| child.name == "element").collect();
    if elements.is_empty() {
        return Err(at.error(S1, format!("<{}> without elements", of.name)));
    }
    if elements.len() > ELEMENTS_MAX {
        return Err(at.error(S1, format!("<{}> of more than {ELEMENTS_MAX} elements", of.name)));
    }
    Ok(elements)
}

fn name(at: &FileLocation<'_>, element: &XmlElement) -> Result<String, TemplateError> {
    match element.get("name").filter(|name| !name.is_empty()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(at.line(element.line).error(S1, "<element> without a name")),
    }
}

/// The type of the elements of a vector.
pub(super) fn vector(word: &str) -> Option<WireType> {
    match word {
        "int32Vector" => Some(WireType::Int32),
        "uInt32Vector" => Some(WireType::UInt32),
        "int64Vector" => Some(WireType::Int64),
        "uInt64Vector" => Some(WireType::UInt64),
        _ => None,
    }
}

/// An initial value by the name of what it means, as a number; a number stays.
pub(super) fn of_name(text: &str, meaning: &IntegerMeaning) -> String {
    let number = match meaning {
        IntegerMeaning::Enum(elements) => {
            elements.iter().find(|(_, name)| name == text).map(|(number, _)| *number)
        }
        IntegerMeaning::Boolean => ["false", "true"].iter().position(|word| *word == text).map(|n| n as u64),
        IntegerMeaning::Set(names) => text
            .split_whitespace()
            .try_fold(0u64, |bits, word| Some(bits | 1 << names.iter().position(|name| name == word)?)),
        IntegerMeaning::Number | IntegerMeaning::Timestamp { .. } => None,
    };
    match number {
        Some(number) if text.trim().parse::<u64>().is_err() => number.to_string(),
        _ => text.to_owned(),
    }
}
