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

/// The kind of what is around items.
pub const SURROUNDINGS: &str = "feed";

/// The kind of what is around nothing that is known here.
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
    /// Of the document in hand.
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
    /// This decoder with another bound on a message, in bytes; 64 at least.
    #[must_use]
    pub fn with_max_message(self, max_message: usize) -> Self {
        Self { max_message: max_message.max(64), ..self }
    }

    /// This decoder with another reading of documents that declare no set of characters and are not UTF-8.
    #[must_use]
    pub fn with_fallback(self, fallback: FallbackCharset) -> Self {
        Self { fallback, ..self }
    }

    /// Where the last item of `buf` starts: a place to cut a stream into blocks.
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

    /// Finds the item at `view[from]`, which is not white. `whole`: the input ends where `view` does.
    fn step(&mut self, view: &[u8], from: usize, whole: bool) -> XmlScanOutcome {
        self.open.clear();
        let (mut at, mut item, mut end) = (from, None, from);
        // Whether it is something, and not just what is skipped.
        let mut kind = None;
        let bad = |code, at, what| XmlScanOutcome::Bad { fault: (code, at, what), end: None };
        loop {
            let found = match view.get(at) {
                Some(_) => token(view, at),
                None => Err(LexStop::Need),
            };
            let found = match found {
                Ok(XmlToken::Text { end }) if end == view.len() && !whole => Err(LexStop::Need),
                found => found,
            };
            let found = match (found, kind) {
                (Ok(found), _) => found,
                (Err(LexStop::Need), Some(kind)) if whole && at == view.len() && self.open.is_empty() => {
                    return XmlScanOutcome::Message { end, kind };
                }
                (Err(LexStop::Need), None) if whole && at == view.len() => return XmlScanOutcome::Skip(at),
                (Err(LexStop::Need), _) if whole => {
                    return bad(TextFaultCode::Truncated, view.len(), "what begins here is not over");
                }
                (Err(LexStop::Need), _) => return XmlScanOutcome::Need { open: false },
                (Err(LexStop::Open), _) if whole => {
                    let fault = (
                        TextFaultCode::Truncated,
                        at,
                        "a comment, section, instruction or document type that is not over",
                    );
                    return XmlScanOutcome::Bad { fault, end: Some(view.len()) };
                }
                (Err(LexStop::Open), _) => return XmlScanOutcome::Need { open: true },
                (Err(LexStop::Bad { at, what }), _) => return bad(TextFaultCode::BadXml, at, what),
            };
            let outside = self.open.is_empty() && item.is_none();
            match found {
                XmlToken::Text { end: next } | XmlToken::Section { end: next, .. } => {
                    let section = matches!(found, XmlToken::Section { .. });
                    if outside && (section || skip_white(&view[..next], at) < next) {
                        return match kind {
                            Some(kind) => XmlScanOutcome::Message { end, kind },
                            None => XmlScanOutcome::Bad {
                                fault: (TextFaultCode::Garbage, at, "text outside of elements"),
                                end: Some(next),
                            },
                        };
                    }
                    at = next;
                    if section {
                        end = next;
                    }
                    continue;
                }
                XmlToken::Nothing { end: next } if kind.is_none() => return XmlScanOutcome::Skip(next),
                XmlToken::Nothing { end: next } => at = next,
                XmlToken::Declaration { inside, end: next } => match kind {
                    Some(kind) if outside => return XmlScanOutcome::Message { end, kind },
                    Some(_) => {
                        return bad(
                            TextFaultCode::Truncated,
                            at,
                            "another document begins before this one is over",
                        );
                    }
                    None => {
                        self.encoding = XmlEncoding::of_declaration(inside.slice(view));
                        if let XmlEncoding::Unread(_) = self.encoding {
                            let what =
                                "an encoding that is not read is declared; convert the file to UTF-8 from";
                            return XmlScanOutcome::Bad {
                                fault: (TextFaultCode::BadEncoding, at, what),
                                end: Some(next),
                            };
                        }
                        return XmlScanOutcome::Skip(next);
                    }
                },
                XmlToken::Doctype { end: next } => {
                    return match kind {
                        Some(kind) if outside => XmlScanOutcome::Message { end, kind },
                        _ => {
                            let what = "a document type: it and its entities are not read";
                            let end = kind.is_none().then_some(next);
                            XmlScanOutcome::Bad { fault: (TextFaultCode::Doctype, at, what), end }
                        }
                    };
                }
                XmlToken::Start { name, empty, end: next, .. } => {
                    let word = local(name.slice(view)).0;
                    let begun = ITEMS.into_iter().find(|i| i.as_bytes() == word);
                    match (item, begun, kind) {
                        (None, Some(_), Some(kind)) => return XmlScanOutcome::Message { end, kind },
                        (None, Some(_), None) => (item, kind) = (begun, begun),
                        (Some(of), Some(_), _) if self.open.len() == 1 && begun == Some(of) => {
                            return bad(
                                TextFaultCode::Truncated,
                                at,
                                "an item that is not over where the next one begins",
                            );
                        }
                        (None, None, None) => {
                            let known = |words: &[&str]| words.iter().any(|w| w.as_bytes() == word);
                            let feed = known(&ROOTS) || known(&BESIDE) || word.len() < name.len();
                            kind = Some(if feed { SURROUNDINGS } else { OTHER });
                        }
                        _ => {}
                    }
                    if !empty {
                        if self.open.len() >= DEPTH_MAX {
                            return bad(TextFaultCode::TooDeep, at, "more than 64 elements in each other");
                        }
                        self.open.push(name);
                    } else if let (Some(kind), true) = (item, self.open.is_empty()) {
                        return XmlScanOutcome::Message { end: next, kind };
                    }
                    at = next;
                }
                XmlToken::End { name, end: next } => match self.open.pop() {
                    None if kind.is_none() => return XmlScanOutcome::Skip(next),
                    // The end tag is of an element around.
                    None => at = next,
                    Some(open) if open.slice(view) != name.slice(view) => {
                        return bad(
                            TextFaultCode::BadXml,
                            at,
                            "an end tag that is not that of the open element",
                        );
                    }
                    Some(_) => {
                        at = next;
                        if let (Some(kind), true) = (item, self.open.is_empty()) {
                            return XmlScanOutcome::Message { end: next, kind };
                        }
                    }
                },
            }
            end = at;
        }
    }
}

impl XmlDecoder {
    /// Puts the values of a message into `leaves`.
    fn read(&self, message: &[u8], item: bool, leaves: &mut PathValues) -> Result<(), TextFault> {
        match self.encoding.text(message, self.fallback, leaves)? {
            Cow::Borrowed(text) => walk::read(text, item, leaves),
            Cow::Owned(text) => walk::read(&text, item, leaves).map_err(without_place),
        }
    }
}

impl TextMessageDecoder for XmlDecoder {
    fn begin<'h>(&mut self, head: &'h [u8]) -> &'h [u8] {
        let (encoding, declaration) = XmlEncoding::of_head(head, skip(head, 0, true).unwrap_or(0));
        self.encoding = encoding;
        if encoding == XmlEncoding::Undeclared { b"" } else { declaration }
    }

    fn next(&mut self, buf: &[u8], at: usize, eof: bool, leaves: &mut PathValues) -> NextTextMessage {
        let mut at = at;
        loop {
            let from = match skip(buf, at, eof) {
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
            let (full, whole) = (buf.len() >= limit, eof && buf.len() < limit);
            // The set that a fault is about.
            let encoding = Cell::new(None);
            let bad = |end: usize, (code, at, what): (TextFaultCode, usize, &'static str)| {
                let span = Span { start: from, end };
                let mut fault = TextFault::new(code, at.min(end) - from, what);
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
            let step = self.step(view, from, whole);
            if let XmlEncoding::Unread(label) = self.encoding {
                encoding.set(Some(label));
            }
            return match step {
                XmlScanOutcome::Skip(end) => {
                    at = end;
                    continue;
                }
                XmlScanOutcome::Message { end, kind } => {
                    leaves.clear();
                    let item = kind != SURROUNDINGS && kind != OTHER;
                    match self.read(&buf[from..end], item, leaves) {
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

/// Whether `head`, the start of a file, is that of a feed; its root's name, if so.
#[must_use]
pub fn root(head: &[u8]) -> Option<&'static str> {
    let mut at = skip(head, 0, true).ok()?;
    loop {
        at = skip_white(head, at);
        match head.get(at).map(|_| token(head, at))?.ok()? {
            XmlToken::Nothing { end } | XmlToken::Declaration { end, .. } | XmlToken::Doctype { end } => {
                at = end
            }
            XmlToken::Start { name, .. } => {
                let word = local(name.slice(head)).0;
                return ROOTS.into_iter().chain(ITEMS).find(|known| known.as_bytes() == word);
            }
            _ => return None,
        }
    }
}

/// Where the next item or declaration begins, from `at` on.
fn resync(view: &[u8], at: usize) -> Option<usize> {
    memchr::memchr_iter(b'<', &view[at.min(view.len())..])
        .map(|n| at + n)
        .find(|n| begins(view, *n) == Some(true))
}

/// Whether the tag at `at` is that of an item, or a declaration; `None` where more bytes decide.
fn begins(buf: &[u8], at: usize) -> Option<bool> {
    let rest = &buf[at + 1..buf.len().min(at + 1 + lex::NAME_BYTES_MAX)];
    if rest.starts_with(b"?xml") {
        return rest.get(4).map(|b| is_white(*b));
    }
    let end = rest.iter().position(|b| is_white(*b) || matches!(b, b'>' | b'/'))?;
    let word = local(&rest[..end]).0;
    Some(ITEMS.iter().any(|item| item.as_bytes() == word))
}

/// Behind white space and byte order marks; `Err` where more bytes say whether one is there.
fn skip(buf: &[u8], mut at: usize, eof: bool) -> Result<usize, usize> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    loop {
        at = skip_white(buf, at);
        let rest = buf.get(at..).unwrap_or_default();
        if rest.starts_with(MARK) {
            at += MARK.len();
        } else if !eof
            && !rest.is_empty()
            && (rest.len() < MARK.len() && MARK.starts_with(rest) || rest.len() < 2)
        {
            return Err(at);
        } else {
            return Ok(at.min(buf.len()));
        }
    }
}
