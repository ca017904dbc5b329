//! News in XML: RSS, Atom and NewsML-G2, item by item.
//!
//! ```text
//! <?xml version="1.0"?><rss version="2.0"><channel><title>Wire</title>   ◀ surroundings: rss@version = 2.0, rss/channel/title = Wire
//!   <item><title>A &amp; B</title><link>…</link></item>                  ◀ item: title = A & B, link = …
//!   <item>…</item>                                                       ◀ item
//! </channel></rss>
//! ```
//!
//! # The rules
//!
//! 1. **Between messages** white space, byte order marks, declarations, comments, instructions and end tags are skipped.
//! 2. An **item** is an element `item`, `entry`, `newsItem`, `packageItem`, `conceptItem`, `knowledgeItem`, `planningItem`
//!    or `catalogItem` with any prefix, inside any elements. It is independent: it uses nothing of the elements around
//!    it. So a feed without end flows item by item, and a bad item costs only itself.
//! 3. **Surroundings** are the bytes between: start tags and elements up to the next item or declaration, or to the end
//!    of the input. They are a message too, of kind `feed`, or `other` where their first element is none that these
//!    formats have there.
//! 4. **XML** is read as in [`crate::iso20022`], with its tables and its references: the five entities and characters by
//!    number. Its set of characters is the one that the declaration names, or else by the rule of [`crate::charset`]; of a
//!    name that nobody knows the ASCII characters are read. A **document type** is refused, so that there is nothing to expand; the items after it are
//!    read.
//! 5. A **bad** message with an end is bad up to its end. Without one it is bad up to the next item or declaration, or
//!    to the end of the input or the limit. Where a comment or section has no end, only those two end it.
//! 6. A message **longer than the limit** is refused, in pieces where no item begins within.
//!
//! # Paths and values
//!
//! `contentMeta/headline` is an element, from the item on; `link@href` an attribute, `@guid` one of the item's own.
//! Prefixes stay (`dc:creator`); the item's own is left out, and so are attributes that declare namespaces. Values are
//! trimmed. Each element is an entry of its path, so that mappings can take the elements of a path one by one.
//!
//! **Markup** is read as text: an element that has text beside elements, one with `type="xhtml"` and `inlineXML` are
//! one value, the text of all that is in them, white space drawn together, a line for each paragraph. The contents of
//! `head`, `style` and `script` are left out. Markup in disguise (`type="html"`, a `description` with `&lt;p>`) is
//! text and stays unchanged.

mod encoding;
pub(crate) mod lex;
pub mod path;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

use super::undeclared::without_place;
use super::{NextTextMessage, PathValues, Span, TextFault, TextFaultCode, TextMessage, TextMessageDecoder};
use crate::charset::FallbackCharset;
use encoding::XmlEncoding;
use lex::{LexStop, XmlToken, local, token};
use std::borrow::Cow;
use std::cell::Cell;
use unitape_base::xml::{is_white, skip_white};

/// The largest message that is read, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Elements in each other, at most.
pub const DEPTH_MAX: usize = 64;

/// The kind of the elements around items.
pub const SURROUNDINGS: &str = "feed";

/// The kind of the elements around no known item.
pub const OTHER: &str = "other";

/// Elements that are items, and the kinds of messages that they are.
const ITEMS: [&str; 8] = [
    "item",
    "entry",
    "newsItem",
    "packageItem",
    "conceptItem",
    "knowledgeItem",
    "planningItem",
    "catalogItem",
];

/// The roots of feeds.
const ROOTS: [&str; 4] = ["rss", "RDF", "feed", "newsMessage"];

/// Elements that feeds have beside items.
const BESIDE: [&str; 34] = [
    "author",
    "category",
    "channel",
    "cloud",
    "contributor",
    "copyright",
    "description",
    "docs",
    "generator",
    "header",
    "icon",
    "id",
    "image",
    "itemSet",
    "language",
    "lastBuildDate",
    "link",
    "logo",
    "managingEditor",
    "pubDate",
    "rating",
    "rights",
    "skipDays",
    "skipHours",
    "subtitle",
    "textInput",
    "textinput",
    "title",
    "ttl",
    "updated",
    "webMaster",
    "items",
    "name",
    "url",
];

/// Finds items and takes them apart.
#[derive(Debug, Clone)]
pub struct XmlDecoder {
    max_message: usize,
    /// Of the current document.
    pub(crate) encoding: XmlEncoding,
    pub(crate) fallback: FallbackCharset,
    /// Names of the elements that are not over.
    open: Vec<Span>,
}

impl Default for XmlDecoder {
    /// Messages up to [`MESSAGE_BYTES_MAX`].
    fn default() -> Self {
        Self {
            max_message: MESSAGE_BYTES_MAX,
            encoding: XmlEncoding::Undeclared,
            fallback: FallbackCharset::default(),
            open: Vec::new(),
        }
    }
}

/// The result of a step through the input.
enum XmlScanOutcome {
    /// Nothing of a message up to here.
    Skip(usize),
    Message {
        end: usize,
        kind: &'static str,
    },
    /// Bad up to `end`, or to where the next message begins.
    Bad {
        fault: (TextFaultCode, usize, &'static str),
        end: Option<usize>,
    },
    /// More bytes decide. `open`: what begins there holds whatever follows.
    Need {
        open: bool,
    },
}

impl XmlDecoder {
    /// Sets the maximum length of a message in bytes, 64 at least.
    #[must_use]
    pub fn with_max_message(self, max_message: usize) -> Self {
        Self { max_message: max_message.max(64), ..self }
    }

    /// Sets how the decoder reads documents that declare no character set and are not UTF-8.
    #[must_use]
    pub fn with_fallback(self, fallback: FallbackCharset) -> Self {
        Self { fallback, ..self }
    }

    /// Returns where the last item of `buf` starts, so that a stream can be cut into blocks there.
    #[must_use]
    pub fn cut(buf: &[u8]) -> usize {
        let mut end = buf.len();
        while let Some(n) = memchr::memrchr(b'<', &buf[..end]).filter(|n| *n > 0) {
            if begins(buf, n) == Some(true) {
                return n;
            }
            end = n;
        }
        if buf.len() > MESSAGE_BYTES_MAX { buf.len() } else { 0 }
    }

    /// Finds the item at `view[from]`, which must not be white. `is_final` must be true if the input ends where
    /// `view` ends.
    fn step(&mut self, view: &[u8], from: usize, is_final: bool) -> XmlScanOutcome {
        self.open.clear();
        let (mut offset, mut item, mut end) = (from, None, from);
        // Whether it is something, and not just what is skipped.
        let mut kind = None;
        let bad = |code, offset, detail| XmlScanOutcome::Bad { fault: (code, offset, detail), end: None };
        loop {
            let outcome = match view.get(offset) {
                Some(_) => token(view, offset),
                None => Err(LexStop::Need),
            };
            let outcome = match outcome {
                Ok(XmlToken::Text { end }) if end == view.len() && !is_final => Err(LexStop::Need),
                other => other,
            };
            let piece = match (outcome, kind) {
                (Ok(piece), _) => piece,
                (Err(LexStop::Need), Some(kind))
                    if is_final && offset == view.len() && self.open.is_empty() =>
                {
                    return XmlScanOutcome::Message { end, kind };
                }
                (Err(LexStop::Need), None) if is_final && offset == view.len() => {
                    return XmlScanOutcome::Skip(offset);
                }
                (Err(LexStop::Need), _) if is_final => {
                    return bad(TextFaultCode::Truncated, view.len(), "what begins here is not over");
                }
                (Err(LexStop::Need), _) => return XmlScanOutcome::Need { open: false },
                (Err(LexStop::Open), _) if is_final => {
                    let fault = (
                        TextFaultCode::Truncated,
                        offset,
                        "a comment, section, instruction or document type that is not over",
                    );
                    return XmlScanOutcome::Bad { fault, end: Some(view.len()) };
                }
                (Err(LexStop::Open), _) => return XmlScanOutcome::Need { open: true },
                (Err(LexStop::Bad { offset, detail }), _) => {
                    return bad(TextFaultCode::BadXml, offset, detail);
                }
            };
            let is_outside = self.open.is_empty() && item.is_none();
            match piece {
                XmlToken::Text { end: next } | XmlToken::Section { end: next, .. } => {
                    let is_section = matches!(piece, XmlToken::Section { .. });
                    if is_outside && (is_section || skip_white(&view[..next], offset) < next) {
                        return match kind {
                            Some(kind) => XmlScanOutcome::Message { end, kind },
                            None => XmlScanOutcome::Bad {
                                fault: (TextFaultCode::Garbage, offset, "text outside of elements"),
                                end: Some(next),
                            },
                        };
                    }
                    offset = next;
                    if is_section {
                        end = next;
                    }
                    continue;
                }
                XmlToken::Nothing { end: next } if kind.is_none() => return XmlScanOutcome::Skip(next),
                XmlToken::Nothing { end: next } => offset = next,
                XmlToken::Declaration { inside, end: next } => match kind {
                    Some(kind) if is_outside => return XmlScanOutcome::Message { end, kind },
                    Some(_) => {
                        return bad(
                            TextFaultCode::Truncated,
                            offset,
                            "another document begins before this one is over",
                        );
                    }
                    None => {
                        self.encoding = XmlEncoding::from_declaration(inside.slice(view));
                        if let XmlEncoding::Unread(_) = self.encoding {
                            let detail =
                                "an encoding that is not read is declared; convert the file to UTF-8 from";
                            return XmlScanOutcome::Bad {
                                fault: (TextFaultCode::BadEncoding, offset, detail),
                                end: Some(next),
                            };
                        }
                        return XmlScanOutcome::Skip(next);
                    }
                },
                XmlToken::Doctype { end: next } => {
                    return match kind {
                        Some(kind) if is_outside => XmlScanOutcome::Message { end, kind },
                        _ => {
                            let detail = "a document type: it and its entities are not read";
                            let end = kind.is_none().then_some(next);
                            XmlScanOutcome::Bad { fault: (TextFaultCode::Doctype, offset, detail), end }
                        }
                    };
                }
                XmlToken::Start { name, empty, end: next, .. } => {
                    let word = local(name.slice(view)).0;
                    let item_kind = ITEMS.into_iter().find(|i| i.as_bytes() == word);
                    match (item, item_kind, kind) {
                        (None, Some(_), Some(kind)) => return XmlScanOutcome::Message { end, kind },
                        (None, Some(_), None) => (item, kind) = (item_kind, item_kind),
                        (Some(open_item), Some(_), _)
                            if self.open.len() == 1 && item_kind == Some(open_item) =>
                        {
                            return bad(
                                TextFaultCode::Truncated,
                                offset,
                                "an item that is not over where the next one begins",
                            );
                        }
                        (None, None, None) => {
                            let is_one_of = |words: &[&str]| words.iter().any(|w| w.as_bytes() == word);
                            let is_feed = is_one_of(&ROOTS) || is_one_of(&BESIDE) || word.len() < name.len();
                            kind = Some(if is_feed { SURROUNDINGS } else { OTHER });
                        }
                        _ => {}
                    }
                    if !empty {
                        if self.open.len() >= DEPTH_MAX {
                            return bad(
                                TextFaultCode::TooDeep,
                                offset,
                                "more than 64 elements in each other",
                            );
                        }
                        self.open.push(name);
                    } else if let (Some(kind), true) = (item, self.open.is_empty()) {
                        return XmlScanOutcome::Message { end: next, kind };
                    }
                    offset = next;
                }
                XmlToken::End { name, end: next } => match self.open.pop() {
                    None if kind.is_none() => return XmlScanOutcome::Skip(next),
                    // The end tag is of an element around.
                    None => offset = next,
                    Some(open) if open.slice(view) != name.slice(view) => {
                        return bad(
                            TextFaultCode::BadXml,
                            offset,
                            "an end tag that is not that of the open element",
                        );
                    }
                    Some(_) => {
                        offset = next;
                        if let (Some(kind), true) = (item, self.open.is_empty()) {
                            return XmlScanOutcome::Message { end: next, kind };
                        }
                    }
                },
            }
            end = offset;
        }
    }
}

impl XmlDecoder {
    /// Puts the values of a message into `leaves`.
    fn read(&self, message: &[u8], is_item: bool, leaves: &mut PathValues) -> Result<(), TextFault> {
        match self.encoding.text(message, self.fallback, leaves)? {
            Cow::Borrowed(text) => walk::read(text, is_item, leaves),
            Cow::Owned(text) => walk::read(&text, is_item, leaves).map_err(without_place),
        }
    }
}

impl TextMessageDecoder for XmlDecoder {
    fn inspect_head<'h>(&mut self, head: &'h [u8]) -> &'h [u8] {
        let (encoding, declaration) = XmlEncoding::from_head(head, skip(head, 0, true).unwrap_or(0));
        self.encoding = encoding;
        if encoding == XmlEncoding::Undeclared { b"" } else { declaration }
    }

    fn next(&mut self, buf: &[u8], offset: usize, eof: bool, leaves: &mut PathValues) -> NextTextMessage {
        let mut offset = offset;
        loop {
            let from = match skip(buf, offset, eof) {
                Ok(from) => from,
                Err(from) => return NextTextMessage::Incomplete { from, need: buf.len() + 1 },
            };
            if from >= buf.len() {
                let from = buf.len();
                return if eof {
                    NextTextMessage::End
                } else {
                    NextTextMessage::Incomplete { from, need: from + 1 }
                };
            }
            let limit = from.saturating_add(self.max_message);
            let view = &buf[..buf.len().min(limit)];
            let (full, is_final) = (buf.len() >= limit, eof && buf.len() < limit);
            // The set that a fault is about.
            let encoding = Cell::new(None);
            let bad = |end: usize, (code, offset, detail): (TextFaultCode, usize, &'static str)| {
                let span = Span { start: from, end };
                let mut fault = TextFault::new(code, offset.min(end) - from, detail);
                if code == TextFaultCode::BadEncoding {
                    fault.charset = encoding.get();
                }
                NextTextMessage::Bad { span, fault }
            };
            // UTF-16, recognised by a mark or by the first tag.
            if matches!(view[from..], [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'<', 0, ..] | [0, b'<', ..]) {
                if !full && !eof {
                    return NextTextMessage::Incomplete { from, need: buf.len() + 1 };
                }
                return bad(
                    view.len(),
                    (TextFaultCode::BadEncoding, from, "UTF-16 is not read; convert the file to UTF-8"),
                );
            }
            let step = self.step(view, from, is_final);
            if let XmlEncoding::Unread(label) = self.encoding {
                encoding.set(Some(label));
            }
            return match step {
                XmlScanOutcome::Skip(end) => {
                    offset = end;
                    continue;
                }
                XmlScanOutcome::Message { end, kind } => {
                    leaves.clear();
                    let is_item = kind != SURROUNDINGS && kind != OTHER;
                    match self.read(&buf[from..end], is_item, leaves) {
                        Ok(()) => {
                            NextTextMessage::Message(TextMessage { span: Span { start: from, end }, kind })
                        }
                        Err(fault) => NextTextMessage::Bad { span: Span { start: from, end }, fault },
                    }
                }
                XmlScanOutcome::Bad { fault, end: Some(end) } => bad(end, fault),
                XmlScanOutcome::Bad { fault, end: None } => match resync(view, from + 1) {
                    Some(end) => bad(end, fault),
                    None if full || eof => bad(view.len(), fault),
                    None => NextTextMessage::Incomplete { from, need: buf.len() + 1 },
                },
                XmlScanOutcome::Need { open } if full => {
                    let end = if open { None } else { resync(view, from + 1) };
                    bad(
                        end.unwrap_or(limit),
                        (TextFaultCode::TooLarge, from, "no end within the largest message that is taken"),
                    )
                }
                XmlScanOutcome::Need { .. } => NextTextMessage::Incomplete { from, need: buf.len() + 1 },
            };
        }
    }
}

/// Returns the root's name if `head`, the start of a file, is the start of a feed.
#[must_use]
pub fn root(head: &[u8]) -> Option<&'static str> {
    let mut offset = skip(head, 0, true).ok()?;
    loop {
        offset = skip_white(head, offset);
        match head.get(offset).map(|_| token(head, offset))?.ok()? {
            XmlToken::Nothing { end } | XmlToken::Declaration { end, .. } | XmlToken::Doctype { end } => {
                offset = end
            }
            XmlToken::Start { name, .. } => {
                let word = local(name.slice(head)).0;
                return ROOTS.into_iter().chain(ITEMS).find(|root_name| root_name.as_bytes() == word);
            }
            _ => return None,
        }
    }
}

/// Finds the next item or declaration from `offset` on.
fn resync(view: &[u8], offset: usize) -> Option<usize> {
    memchr::memchr_iter(b'<', &view[offset.min(view.len())..])
        .map(|n| offset + n)
        .find(|n| begins(view, *n) == Some(true))
}

/// Returns whether the tag at `offset` begins an item or a declaration; `None` if more bytes decide.
fn begins(buf: &[u8], offset: usize) -> Option<bool> {
    let rest = &buf[offset + 1..buf.len().min(offset + 1 + lex::NAME_BYTES_MAX)];
    if rest.starts_with(b"?xml") {
        return rest.get(4).map(|b| is_white(*b));
    }
    let end = rest.iter().position(|b| is_white(*b) || matches!(b, b'>' | b'/'))?;
    let word = local(&rest[..end]).0;
    Some(ITEMS.iter().any(|item| item.as_bytes() == word))
}

/// Skips white space and byte order marks. `Err` means that more bytes must show whether a mark is there.
fn skip(buf: &[u8], mut offset: usize, eof: bool) -> Result<usize, usize> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    loop {
        offset = skip_white(buf, offset);
        let rest = buf.get(offset..).unwrap_or_default();
        if rest.starts_with(MARK) {
            offset += MARK.len();
        } else if !eof
            && !rest.is_empty()
            && (rest.len() < MARK.len() && MARK.starts_with(rest) || rest.len() < 2)
        {
            return Err(offset);
        } else {
            return Ok(offset.min(buf.len()));
        }
    }
}
