//! The slow twin: another parser reads an item into a tree, and the values are collected from the tree.

use crate::text::xml::walk::{BLOCKS, BREAK, SILENT, collapse_white_space};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    content: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Element(Element),
    Text(String),
}

const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Paths and values of `item`, the bytes of an item and nothing else.
///
/// # Errors
/// Fails if the other parser refuses the text; returns that parser's message.
pub fn leaves(item: &[u8]) -> Result<Vec<(String, String)>, String> {
    let text = std::str::from_utf8(item).map_err(|e| e.to_string())?;
    let mut reader = Reader::from_str(text);
    let mut stack = vec![Element::default()];
    loop {
        let event = reader.read_event().map_err(|e| e.to_string())?;
        let node = match event {
            Event::Start(ref tag) => {
                stack.push(element(tag)?);
                continue;
            }
            Event::Empty(ref tag) => Node::Element(element(tag)?),
            Event::End(_) => Node::Element(stack.pop().ok_or("an end too many")?),
            Event::Text(text) => Node::Text(line_ends(&text)),
            Event::CData(text) => Node::Text(line_ends(&text)),
            Event::GeneralRef(reference) => {
                let name: &str = &reference;
                let written = format!("&{name};");
                Node::Text(quick_xml::escape::unescape(&written).map_err(|e| e.to_string())?.into_owned())
            }
            Event::DocType(_) => return Err("a document type".to_owned()),
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => continue,
        };
        stack.last_mut().ok_or("nothing open")?.content.push(node);
    }
    let [root] = &stack[..] else { return Err("not over".to_owned()) };
    let [Node::Element(item)] = &root.content[..] else { return Err("not one element".to_owned()) };
    let prefix = item.name.find(':').map_or("", |n| &item.name[..=n]);
    let mut found = Vec::new();
    for (name, value) in &item.attributes {
        found.push((format!("@{name}"), value.clone()));
    }
    for node in &item.content {
        if let Node::Element(child) = node {
            collect(child, "", prefix, &mut found);
        }
    }
    Ok(found)
}

fn element(tag: &BytesStart<'_>) -> Result<Element, String> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|e| e.to_string())?;
        let key: &str = attribute.key.as_ref();
        let value = quick_xml::escape::unescape(&attribute.value).map_err(|e| e.to_string())?;
        if key != "xmlns" && !key.starts_with("xmlns:") {
            attributes.push((key.to_owned(), line_ends(&value).trim_matches(WHITE).to_owned()));
        }
    }
    let name = tag.name();
    let name: &str = name.as_ref();
    Ok(Element { name: name.to_owned(), attributes, content: Vec::new() })
}

fn local(name: &str) -> &str {
    name.find(':').map_or(name, |n| &name[n + 1..])
}

fn collect(element: &Element, above: &str, prefix: &str, found: &mut Vec<(String, String)>) {
    let plain = !prefix.is_empty() && element.name.starts_with(prefix);
    let name = if plain { local(&element.name) } else { &element.name };
    let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
    for (name, value) in &element.attributes {
        found.push((format!("{path}@{name}"), value.clone()));
    }
    let children = || element.content.iter().filter(|node| matches!(node, Node::Element(_)));
    let said =
        element.content.iter().any(|node| matches!(node, Node::Text(t) if !t.trim_matches(WHITE).is_empty()));
    let xhtml = element.attributes.iter().any(|(name, value)| name == "type" && value == "xhtml");
    let markup = xhtml || local(&element.name) == "inlineXML";
    let mut flow = String::new();
    if children().next().is_none() {
        text(element, false, &mut flow);
        found.push((path, flow.trim_matches(WHITE).to_owned()));
    } else if said || markup {
        text(element, markup, &mut flow);
        found.push((path, collapse_white_space(&flow)));
    } else {
        for node in children() {
            if let Node::Element(child) = node {
                collect(child, &path, prefix, found);
            }
        }
    }
}

/// Collects all text in an element. If `markup`, the text is markup, and its silent elements are left out.
fn text(element: &Element, markup: bool, out: &mut String) {
    for node in &element.content {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Element(child) => {
                let name = local(&child.name);
                if markup && SILENT.contains(&name) {
                    continue;
                }
                let markup = markup
                    || name == "inlineXML"
                    || child.attributes.iter().any(|(name, value)| name == "type" && value == "xhtml");
                let block = BLOCKS.contains(&name);
                if block {
                    out.push(BREAK);
                }
                text(child, markup, out);
                if block {
                    out.push(BREAK);
                }
            }
        }
    }
}

fn line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
