//! The parser: one pass over a document, tag by tag, with a message's header and document found in whatever is
//! wrapped around them.
//!
//! ```text
//!  <?xml …?><Envelope>…<AppHdr xmlns="…head.001.001.02">…</AppHdr><Document xmlns="…pacs.008.001.08">…</Document></Envelope>
//!  ╰prolog─╯╰─wrapper──╯╰────────────── header ───────────────────╯╰───────────── document ──────────╯╰─wrapper─╯
//! ```
//!
//! In a wrapper only the tags are looked at. The contents of header and document go to a [`ElementVisitor`], element
//! by element, with values as places in the buffer. Nothing is copied. A wrapper may hold the message in a CDATA
//! section.

mod markup;
mod roots;
mod tag;

use super::charset::DocumentCharset;
use super::identifier::MessageIdentifier;
use super::value::{ElementValueForm, ElementValueSpan};
use super::{DEPTH_MAX, NAME_BYTES_MAX};
use super::{IsoFault, IsoFaultKind};
use crate::charset::FallbackCharset;
use tag::end_tag;
use unitape_base::Span;
use unitape_base::xml::reference;
use unitape_base::xml::{self, is_white, ranges_equal, starts_name};

/// Receives the content of header and document.
pub trait ElementVisitor {
    /// The visitor's own mark of an element, which it gets back when its content is reported.
    type Mark: Copy + Default;

    /// Begins a message, or a part of one; may be called again for it after more bytes arrive. Content before `live`
    /// was reported before. It is reported again because the rest depends on it.
    fn begin(&mut self, live: usize);

    /// Begins a header or document; `name` is the root's name.
    fn root(&mut self, name: MessageRoot) -> Self::Mark;

    /// Begins an element in `parent`; its tag starts at `offset`.
    fn open(&mut self, parent: Self::Mark, name: &[u8], offset: usize) -> Self::Mark;

    /// Begins an element in `parent` whose namespace is not the root's.
    fn open_foreign(&mut self, parent: Self::Mark, name: &[u8], offset: usize) -> Self::Mark {
        self.open(parent, name, offset)
    }

    /// Visits an attribute of the element that began last; attributes that declare namespaces are left out.
    fn attribute(&mut self, mark: Self::Mark, name: &[u8], value: ElementValueSpan);

    /// Ends the element in `span` of `buf`; `text` is its text if it contains no element. Returns true if a message
    /// that is too large may be split there.
    fn close(&mut self, buf: &[u8], mark: Self::Mark, text: Option<ElementValueSpan>, span: Span) -> bool;
}

/// The two kinds of trees that make a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRoot {
    /// `AppHdr`.
    Header,
    /// `Document`.
    Document,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseOutcome {
    /// A message that ends at `end`. `open`: elements around it are not over.
    Message { end: usize, open: bool },
    /// A message as above, whose bytes are to be decoded from the encoding declared.
    Coded { end: usize, open: bool },
    /// The rest of the elements around messages, or of a prolog; it holds no message.
    Tail { end: usize },
    /// Not good.
    Bad(IsoFault),
    /// Not good up to `end`, where it is over. `open`: elements around it are not over.
    Refused { fault: IsoFault, end: usize, open: bool },
    /// More bytes decide.
    Need,
}

/// Parses documents; keeps its tables for the next one.
#[derive(Debug, Default)]
pub(super) struct DocumentParser<M> {
    stack: Vec<OpenElement<M>>,
    /// Namespaces in scope, innermost last.
    bound_namespaces: Vec<NamespaceBinding>,
    attributes: Vec<ElementAttribute>,
    /// Where the message may be parted: after the last element that the visitor named for it.
    pub(super) part_at: Option<usize>,
    /// Such elements that are over, outermost, in order.
    pub(super) closed_elements: Vec<Span>,
    /// Which message the document, or else the header, is.
    pub(super) kind: MessageIdentifier,
    /// Where `Document` starts, once it has.
    document: Option<usize>,
    /// Where the header ends, once it has.
    header_end: Option<usize>,
    /// The root: its prefix, its namespace, and how many namespaces are in scope in it.
    root: RootNamespace,
    /// The header's MsgDefIdr.
    header_identifier: Option<ElementValueSpan>,
    /// An encoding other than UTF-8 was declared, here.
    encoding: Option<usize>,
    /// The set of characters that it is, if it is read, and the declaration.
    pub(super) charset: Option<DocumentCharset>,
    /// The declaration names UTF-8.
    pub(super) is_utf8: bool,
    /// The declared name of a set that is not known.
    pub(super) unknown_charset: String,
    /// The reading of a document that declares nothing and is not UTF-8.
    pub(super) fallback_charset: FallbackCharset,
    declaration: Span,
    /// The text was decoded from that set, and is UTF-8.
    pub(super) is_recoded: bool,
    /// A document type was declared.
    has_doctype: bool,
    /// The declaration names a set of characters in which markup cannot be found, here.
    unread_charset: Option<(&'static str, usize)>,
    /// Nothing had begun where the bytes ended.
    is_tail: bool,
    /// A comment, section or instruction that begins here has no end in the bytes there are.
    pub(super) unclosed: Option<usize>,
}

/// An element that is not over.
#[derive(Debug, Clone, Copy, Default)]
struct OpenElement<M> {
    /// Where its name starts, after `<`.
    name: u32,
    /// Where its content starts.
    content_start: u32,
    /// Bytes of its name; 0 is a CDATA section that holds elements.
    name_bytes: u16,
    /// Bytes of the name's prefix with its colon.
    prefix_bytes: u16,
    flags: u8,
    visitor_mark: M,
}

/// An element is in it.
const PARENT: u8 = 1;
/// Text is in it that is not white, and something else after that.
const TEXT: u8 = 2;
/// Comments, CDATA or processing instructions are in it.
const MARKED: u8 = 4;
/// References are in it.
const REFERENCES: u8 = 8;
/// The element declares its own namespaces.
const BINDS: u8 = 16;

/// The properties that distinguish the elements of a root from others.
#[derive(Debug, Clone, Copy, Default)]
struct RootNamespace {
    prefix: Span,
    uri: Span,
    bound: usize,
}

/// A prefix and its namespace.
#[derive(Debug, Clone, Copy)]
struct NamespaceBinding {
    prefix: Span,
    uri: Span,
    depth: usize,
}

#[derive(Debug, Clone, Copy)]
struct ElementAttribute {
    name: Span,
    /// Bytes of the prefix with its colon.
    prefix_bytes: usize,
    value: ElementValueSpan,
}

/// Where in a message the parser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserLocation {
    Wrapper,
    /// In a root at this depth.
    In(MessageRoot, usize),
}

/// The reason why a step stops.
enum ParseStop {
    Need,
    Bad(IsoFaultKind, usize),
    Done(ParseOutcome),
}

type ParseResult<T> = Result<T, ParseStop>;

impl<M: Copy + Default> DocumentParser<M> {
    /// Parses `buf` from `from`. Bytes between that and `live` are context. `is_final`: the input ends where `buf` does.
    pub(super) fn parse<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        from: usize,
        live: usize,
        is_final: bool,
        visit: &mut V,
    ) -> ParseOutcome {
        self.stack.clear();
        self.bound_namespaces.clear();
        self.closed_elements.clear();
        self.part_at = None;
        self.kind = MessageIdentifier::default();
        (self.document, self.header_end, self.header_identifier, self.encoding) = (None, None, None, None);
        (self.charset, self.is_utf8, self.unread_charset) = (None, false, None);
        self.declaration = Span::default();
        (self.has_doctype, self.is_tail, self.unclosed) = (false, false, None);
        visit.begin(live);
        let outcome = match self.run(buf, from, live, visit) {
            Err(ParseStop::Done(outcome)) => outcome,
            Err(ParseStop::Bad(kind, offset)) => bad_outcome(kind, offset),
            Err(ParseStop::Need) | Ok(()) if is_final => self.at_end(buf),
            Err(ParseStop::Need) | Ok(()) => ParseOutcome::Need,
        };
        if let Some(kind) = self.refusal() {
            let charset_offset = self.unread_charset.map(|(_, offset)| offset);
            let fault = |end: usize| IsoFault { kind, offset: charset_offset.unwrap_or(end) as u32 };
            return match outcome {
                ParseOutcome::Message { end, open } => ParseOutcome::Refused { fault: fault(end), end, open },
                ParseOutcome::Bad(bad) => ParseOutcome::Bad(IsoFault { offset: bad.offset, ..fault(0) }),
                ParseOutcome::Tail { end } => {
                    ParseOutcome::Bad(IsoFault { offset: end as u32, ..fault(end) })
                }
                other => other,
            };
        }
        match outcome {
            ParseOutcome::Message { end, open } if self.is_coded(&buf[live..end]) => {
                ParseOutcome::Coded { end, open }
            }
            // A byte that passed for white space may be a control character.
            ParseOutcome::Tail { end } => match xml::control(&buf[live..end]) {
                Some(n) => bad_outcome(IsoFaultKind::Char(buf[live + n]), live + n),
                None => outcome,
            },
            ParseOutcome::Message { end, open } => match self.characters(buf, live, end) {
                Ok(()) => outcome,
                // Without its declaration the message would be read once more, in another set.
                Err(fault) if matches!(fault.kind, IsoFaultKind::Encoding(_)) => {
                    ParseOutcome::Refused { fault, end, open }
                }
                Err(fault) if self.takes_fallback(&fault) => match outcome {
                    ParseOutcome::Message { end, open } => ParseOutcome::Coded { end, open },
                    other => other,
                },
                Err(fault) => ParseOutcome::Bad(fault),
            },
            _ => outcome,
        }
    }

    /// Writes the start tags around the message, for the next message in them.
    pub(super) fn wrapper(&self, buf: &[u8], out: &mut Vec<u8>) {
        if !self.declaration.is_empty() && !self.stack.is_empty() {
            out.extend_from_slice(self.declaration.slice(buf));
        }
        for open in &self.stack {
            out.extend_from_slice(&buf[open.name as usize - 1..open.content_start as usize]);
        }
    }

    /// Returns the declaration of an unsupported character set; empty if there is no such declaration.
    pub(super) fn unread_declaration<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        match self.unread_charset {
            Some(_) => self.declaration.slice(buf),
            None => &[],
        }
    }

    /// Returns whether the open elements begin with one around header and document.
    pub(super) fn is_wrapped(&self, buf: &[u8]) -> bool {
        self.stack.first().is_some_and(|open| {
            let name = open.name as usize;
            let local = name + usize::from(open.prefix_bytes)..name + usize::from(open.name_bytes);
            !matches!(&buf[local], b"Document" | b"AppHdr")
        })
    }

    /// Returns the message of a header without a document: a message of its own if no document follows.
    pub(super) fn header_alone(&self) -> Option<ParseOutcome> {
        let header_end = self.header_end.filter(|_| self.document.is_none() && self.stack.is_empty())?;
        Some(ParseOutcome::Message { end: header_end, open: false })
    }

    /// Returns the offset at which `Document` starts.
    pub(super) fn document_at(&self) -> Option<usize> {
        self.document
    }

    fn at_end(&self, buf: &[u8]) -> ParseOutcome {
        if let Some(outcome) = self.header_alone() {
            return outcome;
        }
        if self.stack.is_empty() && self.document.is_none() && self.is_tail {
            return ParseOutcome::Tail { end: buf.len() };
        }
        match self.unclosed {
            Some(offset) => bad_outcome(IsoFaultKind::Unclosed, offset),
            None => bad_outcome(IsoFaultKind::Truncated, buf.len()),
        }
    }

    /// Returns whether these bytes of a message must be decoded before they are read.
    pub(super) fn is_coded(&self, bytes: &[u8]) -> bool {
        self.charset.is_some() && !self.is_recoded && !bytes.is_ascii()
    }

    /// Returns whether the fallback must decode a message with this fault, and notes it.
    #[cold]
    pub(super) fn takes_fallback(&mut self, fault: &IsoFault) -> bool {
        let takes = fault.kind == IsoFaultKind::Utf8
            && !self.is_recoded
            && !self.is_utf8
            && self.charset.is_none()
            && self.encoding.is_none();
        if takes {
            self.charset = Some(DocumentCharset::Undeclared(self.fallback_charset));
            self.declaration = Span::default();
        }
        takes
    }

    /// Checks encoding and characters of a message.
    pub(super) fn characters(&self, buf: &[u8], live: usize, end: usize) -> Result<(), IsoFault> {
        let bytes = &buf[live..end];
        let fault = |kind, offset: usize| IsoFault { kind, offset: offset as u32 };
        if let Some(encoding_offset) = self.encoding
            && !self.is_recoded
            && !bytes.is_ascii()
        {
            return Err(fault(IsoFaultKind::Encoding("us-ascii"), encoding_offset));
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(fault(IsoFaultKind::Utf8, live + error.valid_up_to()));
        }
        match xml::control(bytes) {
            Some(n) => Err(fault(IsoFaultKind::Char(bytes[n]), live + n)),
            None => Ok(()),
        }
    }

    fn run<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        from: usize,
        live: usize,
        visit: &mut V,
    ) -> ParseResult<()> {
        let mut zone = ParserLocation::Wrapper;
        let mut offset = from;
        loop {
            let (mut lt, mut white) = xml::text(buf, offset);
            while buf.get(lt) == Some(&b'&') {
                white = false;
                if self.stack.is_empty() {
                    break;
                }
                lt = self.read_reference(buf, lt)?;
            }
            if zone == ParserLocation::Wrapper {
                if let Some(end) = self.wrapped_end(buf, offset, lt) {
                    offset = end;
                    continue;
                }
                if self.stack.is_empty() && !white {
                    let end = self.header_alone();
                    return Err(end.map_or(
                        ParseStop::Bad(IsoFaultKind::Expected("an element"), offset),
                        ParseStop::Done,
                    ));
                }
            }
            let Some(&next) = buf.get(lt + 1) else {
                self.is_tail = lt == buf.len();
                return Err(ParseStop::Need);
            };
            match next {
                b'/' => {
                    let Some(open_element) = self.stack.last().copied() else {
                        let end = self.header_alone();
                        return Err(end.map_or(ParseStop::Bad(IsoFaultKind::Mismatch, lt), ParseStop::Done));
                    };
                    let (name, bytes) = (open_element.name as usize, usize::from(open_element.name_bytes));
                    offset = lt + 2 + bytes;
                    if !ranges_equal(buf, lt + 2, name, bytes) || buf.get(offset) != Some(&b'>') || bytes == 0
                    {
                        offset = end_tag(buf, lt, Span { start: name, end: name + bytes })?;
                    }
                    offset += 1;
                    self.stack.pop();
                    if open_element.flags & BINDS != 0 {
                        let depth = self.stack.len();
                        self.bound_namespaces.retain(|b| b.depth < depth);
                    }
                    let ParserLocation::In(root, depth) = zone else {
                        if self.stack.is_empty() {
                            return Err(ParseStop::Done(self.root_over(offset, live > from, lt)));
                        }
                        continue;
                    };
                    if open_element.flags & PARENT != 0 && (!white || open_element.flags & TEXT != 0) {
                        return Err(ParseStop::Bad(IsoFaultKind::Mixed, lt));
                    }
                    let text = (open_element.flags & PARENT == 0).then(|| leaf_text(buf, &open_element, lt));
                    let span = Span { start: name - 1, end: offset };
                    if visit.close(buf, open_element.visitor_mark, text, span) {
                        self.add_part(span);
                    }
                    if self.stack.len() == depth {
                        zone = ParserLocation::Wrapper;
                        self.root_ends(root, offset)?;
                    } else if root == MessageRoot::Header && self.stack.len() == depth + 1 {
                        self.header_field(buf, &open_element, text);
                    }
                }
                b'!' | b'?' => {
                    if matches!(zone, ParserLocation::In(..))
                        && let Some(open) = self.stack.last_mut()
                    {
                        open.flags |= MARKED | if white { 0 } else { TEXT };
                    }
                    self.unclosed = Some(lt);
                    offset = self.markup(buf, lt, zone)?;
                    self.unclosed = None;
                }
                _ if starts_name(next) => {
                    let mut is_mixed = false;
                    if zone != ParserLocation::Wrapper
                        && let Some(parent) = self.stack.last_mut()
                    {
                        is_mixed = !white || parent.flags & TEXT != 0;
                        parent.flags |= PARENT;
                    }
                    offset = self.start_tag(buf, lt, is_mixed, &mut zone, visit)?;
                }
                _ => return Err(ParseStop::Bad(IsoFaultKind::Expected("a name"), lt + 1)),
            }
        }
    }

    /// Takes the start tag at `lt`; returns where its content starts.
    #[inline]
    fn start_tag<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        lt: usize,
        is_mixed: bool,
        zone: &mut ParserLocation,
        visit: &mut V,
    ) -> ParseResult<usize> {
        let name = lt + 1;
        let mut name_end = xml::name(buf, name);
        let mut local = name;
        if buf.get(name_end) == Some(&b':') {
            local = name_end + 1;
            name_end = xml::name(buf, local);
        }
        if name_end - name > NAME_BYTES_MAX {
            return Err(ParseStop::Bad(IsoFaultKind::Long, lt));
        }
        let Some(&next_byte) = buf.get(name_end) else { return Err(ParseStop::Need) };
        if local > name && !buf.get(local).is_some_and(|b| starts_name(*b)) {
            return Err(ParseStop::Bad(IsoFaultKind::Expected("a name"), local));
        }
        let word = &buf[local..name_end];
        let root = match word {
            b"Document" => Some(MessageRoot::Document),
            b"AppHdr" => Some(MessageRoot::Header),
            _ => None,
        };
        if let Some(root) = root {
            self.before_root(root, *zone, lt)?;
        } else if is_mixed {
            return Err(ParseStop::Bad(IsoFaultKind::Mixed, lt));
        } else if self.stack.is_empty()
            && let Some(outcome) = self.header_alone()
        {
            return Err(ParseStop::Done(outcome));
        }
        self.attributes.clear();
        let depth = self.stack.len();
        let mut flags = 0;
        let (gt, empty) = match next_byte {
            b'>' => (name_end, false),
            _ => self.attributes(buf, lt, name_end)?,
        };
        if gt > name_end {
            for attribute in &self.attributes {
                let (span, prefix) = (attribute.name, attribute.prefix_bytes);
                let word = span.slice(buf);
                let prefix = match word {
                    b"xmlns" => Span { start: span.end, end: span.end },
                    _ if prefix > 0 && word.starts_with(b"xmlns:") => {
                        Span { start: span.start + prefix, end: span.end }
                    }
                    _ => continue,
                };
                flags |= BINDS;
                let uri = Span { start: attribute.value.start as usize, end: attribute.value.end as usize };
                self.bound_namespaces.push(NamespaceBinding { prefix, uri, depth });
            }
        }
        if local > name && !self.is_bound(buf, &buf[name..local - 1]) {
            return Err(ParseStop::Bad(IsoFaultKind::Prefix, name));
        }
        let mark = match (*zone, root) {
            (ParserLocation::In(MessageRoot::Document, _), Some(MessageRoot::Document))
                if self.names_message(buf, name, local) =>
            {
                // The end of the one before is missing.
                return Err(ParseStop::Bad(IsoFaultKind::Truncated, lt));
            }
            (ParserLocation::In(..), _) if is_mixed => return Err(ParseStop::Bad(IsoFaultKind::Mixed, lt)),
            (ParserLocation::In(..), _) => {
                let parent = self.stack.last().map(|open| open.visitor_mark).unwrap_or_default();
                let has_root_namespace = self.bound_namespaces.len() == self.root.bound
                    && local == name
                    && self.root.prefix.is_empty();
                if has_root_namespace || !self.is_foreign(buf, name, local) {
                    visit.open(parent, word, lt)
                } else {
                    visit.open_foreign(parent, word, lt)
                }
            }
            (ParserLocation::Wrapper, Some(root)) => {
                *zone = ParserLocation::In(root, depth);
                self.begin_root(buf, root, name, local, lt)?;
                visit.root(root)
            }
            (ParserLocation::Wrapper, None) => M::default(),
        };
        if let ParserLocation::In(..) = *zone {
            for attribute in &self.attributes {
                let word = attribute.name.slice(buf);
                if word == b"xmlns" || attribute.prefix_bytes > 0 && word.starts_with(b"xmlns:") {
                    continue;
                }
                if attribute.prefix_bytes > 0 {
                    let prefix = &word[..attribute.prefix_bytes - 1];
                    if prefix != b"xml" && !self.is_bound(buf, prefix) {
                        return Err(ParseStop::Bad(IsoFaultKind::Prefix, attribute.name.start));
                    }
                }
                visit.attribute(mark, &word[attribute.prefix_bytes..], attribute.value);
            }
        }
        if depth >= DEPTH_MAX {
            return Err(ParseStop::Bad(IsoFaultKind::Depth, lt));
        }
        let open_element = OpenElement {
            name: name as u32,
            content_start: (gt + 1) as u32,
            name_bytes: (name_end - name) as u16,
            prefix_bytes: (local - name) as u16,
            flags,
            visitor_mark: mark,
        };
        if !empty {
            self.stack.push(open_element);
            return Ok(gt + 1);
        }
        if flags & BINDS != 0 {
            self.bound_namespaces.retain(|b| b.depth < depth);
        }
        let ParserLocation::In(root, top) = *zone else {
            if depth == 0 {
                return Err(ParseStop::Done(self.root_over(gt + 1, false, lt)));
            }
            return Ok(gt + 1);
        };
        let end_offset = (gt + 1) as u32;
        let text = ElementValueSpan { start: end_offset, end: end_offset, form: ElementValueForm::Plain };
        let span = Span { start: lt, end: gt + 1 };
        if visit.close(buf, mark, Some(text), span) {
            self.add_part(span);
        }
        if depth == top {
            *zone = ParserLocation::Wrapper;
            self.root_ends(root, gt + 1)?;
        }
        Ok(gt + 1)
    }

    fn add_part(&mut self, span: Span) {
        while self.closed_elements.pop_if(|p| p.start >= span.start).is_some() {}
        self.closed_elements.push(span);
        self.part_at = Some(span.end);
    }

    /// Reads a reference in text; returns where the text continues.
    #[cold]
    fn read_reference(&mut self, buf: &[u8], offset: usize) -> ParseResult<usize> {
        if let Some(open_element) = self.stack.last_mut() {
            open_element.flags |= REFERENCES;
        }
        match reference::read(buf, offset) {
            reference::XmlReferenceOutcome::Is(_, end) => Ok(xml::text(buf, end).0),
            reference::XmlReferenceOutcome::Bad => Err(ParseStop::Bad(IsoFaultKind::Entity, offset)),
            reference::XmlReferenceOutcome::Short => Err(ParseStop::Need),
        }
    }

    /// Returns why the message is refused whatever its content: a document type, or an unsupported character set.
    pub(super) fn refusal(&self) -> Option<IsoFaultKind> {
        match self.unread_charset {
            _ if self.has_doctype => Some(IsoFaultKind::Doctype),
            Some((name, _)) => Some(IsoFaultKind::Encoding(name)),
            None => None,
        }
    }
}

#[cold]
fn bad_outcome(kind: IsoFaultKind, offset: usize) -> ParseOutcome {
    ParseOutcome::Bad(IsoFault { kind, offset: offset as u32 })
}

/// Returns the text of an element without child elements that ends at `lt`.
#[inline]
fn leaf_text<M>(buf: &[u8], open: &OpenElement<M>, lt: usize) -> ElementValueSpan {
    let (mut start, mut end) = (open.content_start as usize, lt);
    // White space around it is not part of it; a section at its end keeps its own.
    while start < end && is_white(buf[start]) {
        start += 1;
    }
    while start < end && is_white(buf[end - 1]) {
        end -= 1;
    }
    let form = match open.flags {
        flags if flags & MARKED != 0 => ElementValueForm::Marked,
        flags if flags & REFERENCES != 0 => ElementValueForm::References,
        _ => ElementValueForm::Plain,
    };
    ElementValueSpan { start: start as u32, end: end as u32, form }
}
