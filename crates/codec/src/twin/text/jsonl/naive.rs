//! The slow twin: a line split by another parser, object by object.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Paths and values of a line that is an object or a list.
///
/// # Errors
/// Fails if the other parser refuses the text; returns that parser's message.
pub fn leaves(line: &[u8]) -> Result<Vec<(String, String)>, String> {
    let mut guessed = String::new();
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(_) => {
            guessed.extend(encoding_rs::WINDOWS_1252.decode_without_bom_handling(line).0.chars());
            &guessed
        }
    };
    if !text.starts_with(['{', '[']) {
        return Err("neither an object nor a list".to_owned());
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    value("", raw, 0, &mut found)?;
    Ok(found)
}

fn value(path: &str, raw: &RawValue, depth: usize, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let json = raw.get();
    let fail = |e: serde_json::Error| e.to_string();
    let here = found.len();
    match json.as_bytes()[0] {
        b'{' | b'[' if depth == crate::text::jsonl::DEPTH_MAX => return Err("too deep".to_owned()),
        b'{' => {
            let Members(members) =
                serde_json::Deserializer::from_str(json).deserialize_map(Collect).map_err(fail)?;
            for (n, (name, raw)) in members.iter().enumerate() {
                if members[..n].iter().any(|(other, _)| other == name) {
                    return Err("twice".to_owned());
                }
                let mut path = path.to_owned();
                crate::text::jsonl::path::push(&mut path, name);
                value(&path, raw, depth + 1, found)?;
            }
        }
        b'[' => {
            // A list in a list, and a message that is a list.
            let (is_inner, is_message) = (path.ends_with(']'), depth == 0);
            for (n, raw) in
                serde_json::from_str::<Vec<&RawValue>>(json).map_err(fail)?.into_iter().enumerate()
            {
                let has_position = is_message || (is_inner && !raw.get().starts_with('['));
                let entry = if has_position { format!("{path}[{n}]") } else { format!("{path}[]") };
                value(&entry, raw, depth + 1, found)?;
            }
        }
        b'"' => found.push((path.to_owned(), serde_json::from_str(json).map_err(fail)?)),
        _ => found.push((path.to_owned(), if json == "null" { String::new() } else { json.to_owned() })),
    }
    if found.len() == here && depth > 0 {
        found.push((path.to_owned(), String::new()));
    }
    if found.len() > 16_384 || found.iter().any(|(path, _)| path.len() > 512) {
        return Err("too much".to_owned());
    }
    Ok(())
}

struct Members<'m>(Vec<(String, &'m RawValue)>);

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
