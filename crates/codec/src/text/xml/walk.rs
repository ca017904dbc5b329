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

/// Puts the values of `message` into `path_values`. `item`: its first element is one.
pub(super) fn read(text: &str, item: bool, leaves: &mut PathValues) -> Result<(), TextFault> {
    if let Some(offset) = control(text.as_bytes()) {
        return Err(TextFault::new(TextFaultCode::BadXml, offset, "a character that XML does not have"));
    }
    let walk = XmlItemWalker {
        text,
        item,
        prefix: b"",
        path: String::new(),
        flow: String::new(),
        open: Vec::new(),
        silent: 0,
        leaves,
    };
    walk.all()
}

struct XmlItemWalker<'w> {
    text: &'w str,
    item: bool,
    /// The prefix of the item, with its colon.
    prefix: &'w [u8],
    path: String,
    /// The text of all elements, in order.
    flow: String,
    open: Vec<OpenItemElement>,
    /// Open elements of markup that are no text.
    silent: usize,
    leaves: &'w mut PathValues,
}

struct OpenItemElement {
    /// Bytes of the path without it.
    path: usize,
    /// Where its text begins in the flow.
    flow: usize,
    /// The values and entries noted before its content began.
    mark: RollbackPoint,
    entry: Option<usize>,
    offset: usize,
    parent: bool,
    text: bool,
    /// Whether it is read as text, whatever is in it.
    markup: bool,
    silent: bool,
    block: bool,
}

impl<'w> XmlItemWalker<'w> {
    fn all(mut self) -> Result<(), TextFault> {
        let bytes = self.text.as_bytes();
        let mut offset = 0;
        while offset < bytes.len() {
            // Framed before; what stops here would have stopped there.
            let piece = token(bytes, offset).map_err(|stop| fault(stop, offset))?;
            offset = match piece {
                XmlToken::Text { end } => {
                    self.characters(offset, end)?;
                    end
                }
                XmlToken::Section { inside, end } => {
                    self.section(inside);
                    end
                }
                XmlToken::Start { name, attributes, empty, end } => {
                    self.start(offset, name, attributes)?;
                    if empty {
                        self.end()?;
                    }
                    end
                }
                XmlToken::End { end, .. } => {
                    self.end()?;
                    end
                }
                XmlToken::Nothing { end } | XmlToken::Declaration { end, .. } | XmlToken::Doctype { end } => {
                    end
                }
            };
        }
        Ok(())
    }

    fn start(&mut self, offset: usize, name: Span, attributes: Span) -> Result<(), TextFault> {
        let text = self.text;
        let bytes = text.as_bytes();
        let path = self.path.len();
        let (word, prefix) = local(name.slice(bytes));
        let root = self.item && self.open.is_empty();
        if root {
            self.prefix = prefix;
        } else {
            if path > 0 {
                self.path.push('/');
            }
            let start = if prefix == self.prefix { name.start + prefix.len() } else { name.start };
            self.path.push_str(&text[start..name.end]);
        }
        if let Some(parent) = self.open.last_mut() {
            parent.parent = true;
        }
        let entry = if root { None } else { Some(self.leaves.begin_entry(&self.path, offset)?) };
        let is = |list: &[&str]| list.iter().any(|w| w.as_bytes() == word);
        let xhtml = self.attributes(attributes)?;
        let block = is(&BLOCKS);
        if block && self.silent == 0 {
            self.flow.push(BREAK);
        }
        let silent = is(&SILENT) && self.open.iter().any(|open| open.markup);
        self.silent += usize::from(silent);
        let mark = self.leaves.rollback_point();
        let markup = !root && (xhtml || word == b"inlineXML");
        let flow = self.flow.len();
        self.open.push(OpenItemElement {
            path,
            flow,
            mark,
            entry,
            offset,
            parent: false,
            text: false,
            markup,
            silent,
            block,
        });
        Ok(())
    }

    /// Puts the attributes of a tag; whether they say that the element is XHTML.
    fn attributes(&mut self, all: Span) -> Result<bool, TextFault> {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut names: Vec<Span> = Vec::new();
        let mut xhtml = false;
        for attribute in (XmlAttributeIter { buf: bytes, offset: all.start, end: all.end }) {
            let (name, value) = attribute.map_err(|stop| fault(stop, all.start))?;
            if names.iter().any(|previous| previous.slice(bytes) == name.slice(bytes)) {
                return Err(TextFault::new(
                    TextFaultCode::Duplicate,
                    name.start,
                    "an element with two attributes of one name",
                ));
            }
            if names.len() >= ATTRIBUTES_MAX {
                return Err(TextFault::new(
                    TextFaultCode::TooDeep,
                    name.start,
                    "an element with more than 64 attributes",
                ));
            }
            names.push(name);
            let mark = self.leaves.mark();
            unescape(&text[value.start..value.end], value.start, self.leaves.text_mut())?;
            let word = name.slice(bytes);
            if word == b"xmlns" || word.starts_with(b"xmlns:") {
                self.leaves.text_mut().truncate(mark);
                continue;
            }
            let raw = self.leaves.text_mut().split_off(mark);
            let raw = raw.trim_matches(WHITE);
            xhtml |= word == b"type" && raw == "xhtml";
            let path = self.path.len();
            self.path.push('@');
            self.path.push_str(&text[name.start..name.end]);
            self.leaves.put_text(&self.path, raw, name.start)?;
            self.path.truncate(path);
        }
        Ok(xhtml)
    }

    fn characters(&mut self, offset: usize, end: usize) -> Result<(), TextFault> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let from = self.flow.len();
        unescape(&self.text[offset..end], offset, &mut self.flow)?;
        open.text |= !self.flow[from..].bytes().all(is_white);
        if self.silent > 0 {
            self.flow.truncate(from);
        }
        Ok(())
    }

    fn section(&mut self, inside: Span) {
        let Some(open) = self.open.last_mut() else { return };
        let text = &self.text[inside.start..inside.end];
        open.text |= !text.bytes().all(is_white);
        if self.silent == 0 {
            line_ends(text, &mut self.flow);
        }
    }

    fn end(&mut self) -> Result<(), TextFault> {
        // The end tag is of an element around.
        let Some(open) = self.open.pop() else { return Ok(()) };
        self.silent -= usize::from(open.silent);
        if !open.parent {
            let text = self.flow[open.flow..].trim_matches(WHITE);
            let mark = self.leaves.mark();
            self.leaves.text_mut().push_str(text);
            let kind = if text.is_empty() { PathValueKind::Nothing } else { PathValueKind::Text };
            // An item without anything in it has its attributes.
            if open.entry.is_some() {
                self.leaves.push_value(&self.path, mark, kind, open.offset)?;
            }
        } else if (open.text || open.markup) && open.entry.is_some() {
            self.leaves.roll_back(open.mark);
            let text = collapse_white_space(&self.flow[open.flow..]);
            let mark = self.leaves.mark();
            self.leaves.text_mut().push_str(&text);
            let kind = if text.is_empty() { PathValueKind::Nothing } else { PathValueKind::Text };
            self.leaves.push_value(&self.path, mark, kind, open.offset)?;
        }
        if let Some(entry) = open.entry {
            self.leaves.end_entry(entry);
        }
        if open.block && self.silent == 0 {
            self.flow.push(BREAK);
        }
        self.path.truncate(open.path);
        Ok(())
    }
}

const WHITE: [char; 5] = [' ', '\t', '\n', '\r', BREAK];

/// Lines between breaks, white space within drawn together; without empty ones.
pub(crate) fn collapse_white_space(flow: &str) -> String {
    let mut out = String::with_capacity(flow.len());
    for line in flow.split(BREAK) {
        let mut words = line.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { continue };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(first);
        for word in words {
            out.push(' ');
            out.push_str(word);
        }
    }
    out
}

/// Appends `text`, which is at `offset`, with its references resolved and its line ends as `\n`.
fn unescape(text: &str, offset: usize, out: &mut String) -> Result<(), TextFault> {
    let mut from = 0;
    while let Some(n) = memchr::memchr(b'&', &text.as_bytes()[from..]) {
        line_ends(&text[from..from + n], out);
        match reference::read(text.as_bytes(), from + n) {
            reference::XmlReferenceOutcome::Is(c, end) => {
                out.push(c);
                from = end;
            }
            _ => {
                return Err(TextFault::new(
                    TextFaultCode::BadEntity,
                    offset + from + n,
                    "a reference to none of the five, and to no character",
                ));
            }
        }
    }
    line_ends(&text[from..], out);
    Ok(())
}

fn line_ends(text: &str, out: &mut String) {
    if !text.contains('\r') {
        return out.push_str(text);
    }
    let mut rest = text;
    while let Some(n) = rest.find('\r') {
        out.push_str(&rest[..n]);
        out.push('\n');
        rest = &rest[n + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

fn fault(stop: LexStop, offset: usize) -> TextFault {
    match stop {
        LexStop::Bad { offset, detail } => TextFault::new(TextFaultCode::BadXml, offset, detail),
        LexStop::Need | LexStop::Open => {
            TextFault::new(TextFaultCode::Truncated, offset, "what begins here is not over")
        }
    }
}
