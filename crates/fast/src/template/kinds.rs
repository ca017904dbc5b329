//! Types: the type and the meaning of a template's element.

use super::error::{TemplateError, TemplateErrorCode};
use super::xml::{FileLocation, XmlElement};
use super::{IntegerMeaning, WireType};
use TemplateErrorCode::S1;
use std::sync::Arc;

/// Elements of an enumeration, at most.
const ELEMENTS_MAX: usize = 4096;

/// Returns the type of an element and the meaning of its numbers.
pub(super) fn kind(
    location: &FileLocation<'_>,
    type_element: &XmlElement,
) -> Result<(WireType, IntegerMeaning), TemplateError> {
    let plain_kind = |kind| Ok((kind, IntegerMeaning::Number));
    match type_element.name.as_str() {
        "int32" => plain_kind(WireType::Int32),
        "uInt32" => plain_kind(WireType::UInt32),
        "int64" => plain_kind(WireType::Int64),
        "uInt64" => plain_kind(WireType::UInt64),
        "decimal" => plain_kind(WireType::Decimal),
        "byteVector" => plain_kind(WireType::Bytes),
        "string" => match type_element.get("charset") {
            None | Some("ascii") => plain_kind(WireType::Ascii),
            Some("unicode") => plain_kind(WireType::Unicode),
            Some(charset) => {
                Err(location.error(S1, format!("charset=\"{charset}\"; there are ascii and unicode")))
            }
        },
        "boolean" => Ok((WireType::UInt32, IntegerMeaning::Boolean)),
        "enum" => {
            let elements = elements(location, type_element)?;
            let numbered = elements.iter().enumerate().map(|(index, element)| {
                let number = match element.get("value") {
                    Some(text) => text.trim().parse().map_err(|_| {
                        location
                            .line(element.line)
                            .error(S1, format!("value=\"{text}\" is no number of an enumeration"))
                    })?,
                    None => index as u64,
                };
                Ok((number, name(location, element)?))
            });
            Ok((WireType::UInt32, IntegerMeaning::Enum(numbered.collect::<Result<Arc<[_]>, _>>()?)))
        }
        "set" => {
            let names: Result<Arc<[String]>, _> =
                elements(location, type_element)?.iter().map(|element| name(location, element)).collect();
            let names = names?;
            if names.len() > 64 {
                return Err(location.error(S1, "a set of more than 64 elements"));
            }
            Ok((WireType::UInt64, IntegerMeaning::Set(names)))
        }
        "timestamp" => {
            let unit_ns = match type_element.get("unit").unwrap_or("second") {
                "day" => 86_400_000_000_000,
                "second" => 1_000_000_000,
                "millisecond" => 1_000_000,
                "microsecond" => 1_000,
                "nanosecond" => 1,
                unit => {
                    let reason = format!(
                        "unit=\"{unit}\"; there are day, second, millisecond, microsecond, nanosecond"
                    );
                    return Err(location.error(S1, reason));
                }
            };
            Ok((WireType::UInt64, IntegerMeaning::Timestamp { unit_ns }))
        }
        element_name => Err(location.error(S1, format!("<{element_name}> is nothing that a template has"))),
    }
}

fn elements<'e>(
    location: &FileLocation<'_>,
    type_element: &'e XmlElement,
) -> Result<Vec<&'e XmlElement>, TemplateError> {
    let elements: Vec<&XmlElement> =
        type_element.children.iter().filter(|child| child.name == "element").collect();
    if elements.is_empty() {
        return Err(location.error(S1, format!("<{}> without elements", type_element.name)));
    }
    if elements.len() > ELEMENTS_MAX {
        return Err(
            location.error(S1, format!("<{}> of more than {ELEMENTS_MAX} elements", type_element.name))
        );
    }
    Ok(elements)
}

fn name(location: &FileLocation<'_>, element: &XmlElement) -> Result<String, TemplateError> {
    match element.get("name").filter(|name| !name.is_empty()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(location.line(element.line).error(S1, "<element> without a name")),
    }
}

/// Returns the type of the elements of a vector.
pub(super) fn vector(word: &str) -> Option<WireType> {
    match word {
        "int32Vector" => Some(WireType::Int32),
        "uInt32Vector" => Some(WireType::UInt32),
        "int64Vector" => Some(WireType::Int64),
        "uInt64Vector" => Some(WireType::UInt64),
        _ => None,
    }
}

/// Replaces a name in an initial value by its number. A number stays.
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
