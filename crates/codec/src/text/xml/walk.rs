//! A message that is framed to its leaves.

use super::lex::{LexStop, XmlAttributeIter, XmlToken, local, token};
use crate::text::path_values::RollbackPoint;
use crate::text::{PathValueKind, PathValues, TextFault, TextFaultCode};
use unitape_base::Span;
use unitape_base::xml::reference;
use unitape_base::xml::{control, is_white};

/// Attributes of an element, at most.
const ATTRIBUTES_MAX: usize = 64;

/// Where a line of a text that is markup begins or ends; no character of XML.
pub(crate) const BREAK: char = '\u{1}';

/// Elements of markup that are on lines of their own.
pub(crate) const BLOCKS: [&str; 25] = [
    "p",
    "div",
    "br",
    "li",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "table",
    "tr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hl1",
    "hl2",
    "block",
    "blockquote",
    "pre",
    "section",
    "hr",
    "byline",
];

/// Elements of markup that are no text.
pub(crate) const SILENT: [&str; 3] = ["head", "style", "script"];

/// Puts the values of `message` into `path_values`. `is_item`: its first element is one.
pub(super) fn read(text: &str, is_item: bool, leaves: &mut PathValues) -> Result<(), TextFault> {
    if let Some(offset) = control(text.as_bytes()) {
        return Err(TextFault::new(TextFaultCode::BadXml, offset, "a character that XML does not have"));
    }
    let walk = XmlItemWalker {
        file_text: text,
        is_item,
        item_prefix: b"",
        current_path: String::new(),
        flow: String::new(),
        open_elements: Vec::new(),
        silent_depth: 0,
        path_values: leaves,
    };
    walk.walk_all()
}

struct XmlItemWalker<'w> {
    file_text: &'w str,
    is_item: bool,
    /// The prefix of the item, with its colon.
    item_prefix: &'w [u8],
    current_path: String,
    /// The text of all elements, in order.
    flow: String,
    open_elements: Vec<OpenItemElement>,
    /// Open elements of markup that are no text.
    silent_depth: usize,
    path_values: &'w mut PathValues,
}

struct OpenItemElement {
    /// Bytes of the path without it.
    path_length: usize,
    /// Where its text begins in the flow.
    flow_start: usize,
    /// The values and entries noted before its content began.
    rollback_point: RollbackPoint,
    entry: Option<usize>,
    start_offset: usize,
    has_children: bool,
    has_text: bool,
    /// Whether it is read as text, whatever is in it.
    is_markup: bool,
    is_silent: bool,
    is_block: bool,
}

impl<'w> XmlItemWalker<'w> {
    fn walk_all(mut self) -> Result<(), TextFault> {
        let bytes = self.file_text.as_bytes();
        let mut offset = 0;
        while offset < bytes.len() {
            // Framed before; what stops here would have stopped there.
            let piece = token(bytes, offset).map_err(|stop| fault(stop, offset))?;
            offset = match piece {
                XmlToken::Text { end } => {
                    self.add_characters(offset, end)?;
                    end
                }
                XmlToken::Section { inside, end } => {
                    self.add_section(inside);
                    end
                }
                XmlToken::Start { name, attributes, empty, end } => {
                    self.start_element(offset, name, attributes)?;
                    if empty {
                        self.end_element()?;
                    }
                    end
                }
                XmlToken::End { end, .. } => {
                    self.end_element()?;
                    end
                }
                XmlToken::Nothing { end } | XmlToken::Declaration { end, .. } | XmlToken::Doctype { end } => {
                    end
                }
            };
        }
        Ok(())
    }

    fn start_element(&mut self, offset: usize, name: Span, attributes: Span) -> Result<(), TextFault> {
        let text = self.file_text;
        let bytes = text.as_bytes();
        let path = self.current_path.len();
        let (word, prefix) = local(name.slice(bytes));
        let is_root = self.is_item && self.open_elements.is_empty();
        if is_root {
            self.item_prefix = prefix;
        } else {
            if path > 0 {
                self.current_path.push('/');
            }
            let name_start = if prefix == self.item_prefix { name.start + prefix.len() } else { name.start };
            self.current_path.push_str(&text[name_start..name.end]);
        }
        if let Some(parent) = self.open_elements.last_mut() {
            parent.has_children = true;
        }
        let entry =
            if is_root { None } else { Some(self.path_values.begin_entry(&self.current_path, offset)?) };
        let word_is_in = |list: &[&str]| list.iter().any(|w| w.as_bytes() == word);
        let xhtml = self.read_attributes(attributes)?;
        let is_block = word_is_in(&BLOCKS);
        if is_block && self.silent_depth == 0 {
            self.flow.push(BREAK);
        }
        let is_silent = word_is_in(&SILENT) && self.open_elements.iter().any(|open| open.is_markup);
        self.silent_depth += usize::from(is_silent);
        let mark = self.path_values.rollback_point();
        let is_markup = !is_root && (xhtml || word == b"inlineXML");
        let flow_start = self.flow.len();
        self.open_elements.push(OpenItemElement {
            path_length: path,
            flow_start,
            rollback_point: mark,
            entry,
            start_offset: offset,
            has_children: false,
            has_text: false,
            is_markup,
            is_silent,
            is_block,
        });
        Ok(())
    }

    /// Puts the attributes of a tag; whether they say that the element is XHTML.
    fn read_attributes(&mut self, all: Span) -> Result<bool, TextFault> {
        let text = self.file_text;
        let bytes = text.as_bytes();
        let mut attribute_names: Vec<Span> = Vec::new();
        let mut xhtml = false;
        for attribute in (XmlAttributeIter { buf: bytes, offset: all.start, tag_end: all.end }) {
            let (name, value) = attribute.map_err(|stop| fault(stop, all.start))?;
            if attribute_names.iter().any(|previous| previous.slice(bytes) == name.slice(bytes)) {
                return Err(TextFault::new(
                    TextFaultCode::Duplicate,
                    name.start,
                    "an element with two attributes of one name",
                ));
            }
            if attribute_names.len() >= ATTRIBUTES_MAX {
                return Err(TextFault::new(
                    TextFaultCode::TooDeep,
                    name.start,
                    "an element with more than 64 attributes",
                ));
            }
            attribute_names.push(name);
            let mark = self.path_values.mark();
            unescape_text(&text[value.start..value.end], value.start, self.path_values.text_mut())?;
            let word = name.slice(bytes);
            if word == b"xmlns" || word.starts_with(b"xmlns:") {
                self.path_values.text_mut().truncate(mark);
                continue;
            }
            let raw = self.path_values.text_mut().split_off(mark);
            let raw = raw.trim_matches(WHITE);
            xhtml |= word == b"type" && raw == "xhtml";
            let path = self.current_path.len();
            self.current_path.push('@');
            self.current_path.push_str(&text[name.start..name.end]);
            self.path_values.put_text(&self.current_path, raw, name.start)?;
            self.current_path.truncate(path);
        }
        Ok(xhtml)
    }

    fn add_characters(&mut self, offset: usize, end: usize) -> Result<(), TextFault> {
        let Some(open_element) = self.open_elements.last_mut() else { return Ok(()) };
        let text_start = self.flow.len();
        unescape_text(&self.file_text[offset..end], offset, &mut self.flow)?;
        open_element.has_text |= !self.flow[text_start..].bytes().all(is_white);
        if self.silent_depth > 0 {
            self.flow.truncate(text_start);
        }
        Ok(())
    }

    fn add_section(&mut self, inside: Span) {
        let Some(open_element) = self.open_elements.last_mut() else { return };
        let text = &self.file_text[inside.start..inside.end];
        open_element.has_text |= !text.bytes().all(is_white);
        if self.silent_depth == 0 {
            line_ends(text, &mut self.flow);
        }
    }

    fn end_element(&mut self) -> Result<(), TextFault> {
        // The end tag is of an element around.
        let Some(open_element) = self.open_elements.pop() else { return Ok(()) };
        self.silent_depth -= usize::from(open_element.is_silent);
        if !open_element.has_children {
            let text = self.flow[open_element.flow_start..].trim_matches(WHITE);
            let mark = self.path_values.mark();
            self.path_values.text_mut().push_str(text);
            let kind = if text.is_empty() { PathValueKind::Nothing } else { PathValueKind::Text };
            // An item without anything in it has its attributes.
            if open_element.entry.is_some() {
                self.path_values.push_value(&self.current_path, mark, kind, open_element.start_offset)?;
            }
        } else if (open_element.has_text || open_element.is_markup) && open_element.entry.is_some() {
            self.path_values.roll_back(open_element.rollback_point);
            let text = collapse_white_space(&self.flow[open_element.flow_start..]);
            let mark = self.path_values.mark();
            self.path_values.text_mut().push_str(&text);
            let kind = if text.is_empty() { PathValueKind::Nothing } else { PathValueKind::Text };
            self.path_values.push_value(&self.current_path, mark, kind, open_element.start_offset)?;
        }
        if let Some(entry) = open_element.entry {
            self.path_values.end_entry(entry);
        }
        if open_element.is_block && self.silent_depth == 0 {
            self.flow.push(BREAK);
        }
        self.current_path.truncate(open_element.path_length);
        Ok(())
    }
}

const WHITE: [char; 5] = [' ', '\t', '\n', '\r', BREAK];

/// Lines between breaks, white space within drawn together; without empty ones.
pub(crate) fn collapse_white_space(flow: &str) -> String {
    let mut out = String::with_capacity(flow.len());
    for line in flow.split(BREAK) {
        let mut words = line.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
        let Some(first_word) = words.next() else { continue };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(first_word);
        for word in words {
            out.push(' ');
            out.push_str(word);
        }
    }
    out
}

/// Appends `text`, which is at `offset`, with its references resolved and its line ends as `\n`.
fn unescape_text(text: &str, offset: usize, out: &mut String) -> Result<(), TextFault> {
    let mut copied_end = 0;
    while let Some(n) = memchr::memchr(b'&', &text.as_bytes()[copied_end..]) {
        line_ends(&text[copied_end..copied_end + n], out);
        match reference::read(text.as_bytes(), copied_end + n) {
            reference::XmlReferenceOutcome::Is(c, end) => {
                out.push(c);
                copied_end = end;
            }
            _ => {
                return Err(TextFault::new(
                    TextFaultCode::BadEntity,
                    offset + copied_end + n,
                    "a reference to none of the five, and to no character",
                ));
            }
        }
    }
    line_ends(&text[copied_end..], out);
    Ok(())
}

fn line_ends(text: &str, out: &mut String) {
    if !text.contains('\r') {
        return out.push_str(text);
    }
    let mut unread_text = text;
    while let Some(n) = unread_text.find('\r') {
        out.push_str(&unread_text[..n]);
        out.push('\n');
        unread_text = &unread_text[n + 1..];
        unread_text = unread_text.strip_prefix('\n').unwrap_or(unread_text);
    }
    out.push_str(unread_text);
}

fn fault(stop: LexStop, offset: usize) -> TextFault {
    match stop {
        LexStop::Bad { offset, detail } => TextFault::new(TextFaultCode::BadXml, offset, detail),
        LexStop::Need | LexStop::Open => {
            TextFault::new(TextFaultCode::Truncated, offset, "what begins here is not over")
        }
    }
}
