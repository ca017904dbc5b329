//! The slow twin: a document read by another parser, event by event, into paths and texts.

use crate::charset::{Charset, push_ascii};
use quick_xml::Reader;
use quick_xml::events::Event;

/// Collects the attributes and the text elements without children of `AppHdr` and `Document`, in order. `text` must
/// hold one message.
///
/// # Errors
/// Fails if the other parser refuses the text; returns that parser's message.
pub fn leaves(text: &[u8]) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    match declared(text) {
        Some(label) => read(decoded(text, &label)?.as_bytes(), &mut found)?,
        None if std::str::from_utf8(text).is_err() => {
            read(encoding_rs::WINDOWS_1252.decode_without_bom_handling(text).0.as_bytes(), &mut found)?;
        }
        None => read(text, &mut found)?,
    }
    Ok(found)
}

/// Returns the character set that the first declaration names, in small letters.
fn declared(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let (_, rest) = text.split_once("<?xml")?;
    let (declaration, _) = rest.split_once("?>")?;
    let (_, rest) = declaration.split_once("encoding")?;
    let quoted = rest.trim_start_matches([' ', '\t', '\r', '\n', '=']);
    let label = quoted.get(1..)?.split(['"', '\'']).next()?.to_ascii_lowercase();
    Some(label).filter(|label| {
        !label.starts_with("utf-16") && !["utf-8", "utf8", "us-ascii", "ascii"].contains(&label.as_str())
    })
}

/// Decodes text in the set `label`; of an unknown set, only the ASCII characters.
fn decoded(text: &[u8], label: &str) -> Result<String, String> {
    let mut out = String::new();
    match Charset::by_name(label) {
        Some(charset) => charset.decode(text, &mut out).map_err(|at| format!("no character at {at}"))?,
        None => push_ascii(text, &mut out),
    }
    Ok(out)
}

struct Element {
    path: Option<String>,
    text: String,
    /// Text up to here came from CDATA and stays unchanged.
    kept: usize,
    parent: bool,
}

fn read(text: &[u8], found: &mut Vec<(String, String)>) -> Result<(), String> {
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut stack: Vec<Element> = Vec::new();
    loop {
        let event = reader.read_event().map_err(|e| e.to_string())?;
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                if let Some(parent) = stack.last_mut() {
                    parent.parent = true;
                }
                let local = tag.local_name();
                let name: &str = local.as_ref();
                let path = match stack.last().and_then(|e| e.path.as_deref()) {
                    Some(parent) => Some(format!("{parent}/{name}")),
                    None if matches!(name, "AppHdr" | "Document") => Some(name.to_owned()),
                    None => None,
                };
                for attribute in tag.attributes() {
                    let attribute = attribute.map_err(|e| e.to_string())?;
                    let key = attribute.key;
                    if key.as_ref() == "xmlns" || key.prefix().is_some_and(|p| p.as_ref() == "xmlns") {
                        continue;
                    }
                    // XML 1.0, 2.11 and 3.3.3.
                    let value = line_ends(&attribute.value).replace(['\n', '\t'], " ");
                    let value = quick_xml::escape::unescape(&value).map_err(|e| e.to_string())?;
                    let name = key.local_name();
                    let name: &str = name.as_ref();
                    if let Some(path) = &path {
                        found.push((format!("{path}@{name}"), value.into_owned()));
                    }
                }
                let element = Element { path, text: String::new(), kept: 0, parent: false };
                match event {
                    Event::Start(_) => stack.push(element),
                    _ => found.extend(element.path.map(|path| (path, String::new()))),
                }
            }
            Event::End(_) => {
                let element = stack.pop().ok_or("an end too many")?;
                if let (Some(path), false) = (element.path, element.parent) {
                    let (kept, rest) = element.text.split_at(element.kept);
                    let white = [' ', '\t', '\n', '\r'];
                    let text = if kept.is_empty() {
                        rest.trim_matches(white).to_owned()
                    } else {
                        format!("{kept}{}", rest.trim_end_matches(white))
                    };
                    found.push((path, text));
                }
            }
            Event::Text(text) => {
                let text: &str = &text;
                if let Some(top) = stack.last_mut() {
                    top.text.push_str(&line_ends(text));
                    if top.kept == 0 {
                        top.text = top.text.trim_start_matches([' ', '\t', '\n', '\r']).to_owned();
                    }
                }
            }
            Event::GeneralRef(reference) => {
                let name: &str = &reference;
                let text = quick_xml::escape::unescape(&format!("&{name};"))
                    .map_err(|e| e.to_string())?
                    .into_owned();
                if let Some(top) = stack.last_mut() {
                    top.text.push_str(&text);
                }
            }
            Event::CData(cdata) => {
                let text: &str = &cdata;
                let holds_message =
                    ["<Document", ":Document", "<AppHdr", ":AppHdr"].iter().any(|w| text.contains(w));
                match stack.last_mut() {
                    Some(top) if top.path.is_some() => {
                        top.text.push_str(&line_ends(text));
                        top.kept = top.text.len();
                    }
                    _ if holds_message => read(text.trim_start().as_bytes(), found)?,
                    _ => {}
                }
            }
            Event::DocType(_) => return Err("a document type".to_owned()),
            Event::Eof if stack.is_empty() => return Ok(()),
            Event::Eof => return Err("not over".to_owned()),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
        }
    }
}

fn line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
