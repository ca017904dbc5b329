//! The parser: one pass over a document, tag by tag, with a message's header and document found in whatever is
//! wrapped around them.
//!
//! ```text
//!  <?xml …?><Envelope>…<AppHdr xmlns="…head.001.001.02">…</AppHdr><Document xmlns="…pacs.008.001.08">…</Document></Envelope>
//!  ╰prolog─╯╰─wrapper──╯╰────────────── header ───────────────────╯╰───────────── document ──────────╯╰─wrapper─╯
//! ```
//!
//! Of a wrapper only the tags are looked at; what is in header and document goes to a [`Visit`], element by element,
//! with values as places in the buffer. Nothing is copied. A wrapper may hold the message in a CDATA section.

use super::kind::{self, MsgType};
use super::scan::{self, is_white, same, skip_white, starts_name};
use super::value::{Form, Value};
use super::{ATTRIBUTES_MAX, DEPTH_MAX, NAME_BYTES_MAX};
use super::{Fault, What, reference};
use crate::fix::Span;
use memchr::memmem;

/// What is told of header and document.
pub trait Visit {
    /// What the visitor wants to know of an element when something is told of it.
    type Mark: Copy + Default;

    /// A message, or the part of one, begins; it may begin again when more bytes have come. What lies before
    /// `live` was told before and is told again for what it says of the rest.
    fn begin(&mut self, live: usize);

    /// Header or document begins; `name` is the root's.
    fn root(&mut self, name: Root) -> Self::Mark;

    /// An element begins in `parent`. `at` is where its tag starts.
    fn open(&mut self, parent: Self::Mark, name: &[u8], at: usize) -> Self::Mark;

    /// An attribute of the element that began last, without those of namespaces.
    fn attribute(&mut self, mark: Self::Mark, name: &[u8], value: Value);

    /// The element that is in `at` of `buf` ends; with its text if no element is in it. True where a message that is too
    /// large may be parted.
    fn close(&mut self, buf: &[u8], mark: Self::Mark, text: Option<Value>, at: Span) -> bool;
}

/// The two sorts of trees that make a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// `AppHdr`.
    Header,
    /// `Document`.
    Document,
}

/// What a pass found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A message that ends at `end`. `open`: elements around it are not over.
    Message { end: usize, open: bool },
    /// The rest of what was around messages, or of a prolog; nothing of a message.
    Tail { end: usize },
    /// Not good.
    Bad(Fault),
    /// Not good up to `end`, where it is over.
    Refused { fault: Fault, end: usize },
    /// More bytes decide.
    Need,
}

/// Parses documents; keeps its tables for the next one.
#[derive(Debug, Default)]
pub(super) struct Parser<M> {
    stack: Vec<Open<M>>,
    /// Namespaces in scope, innermost last.
    bound: Vec<Bound>,
    attributes: Vec<Attribute>,
    /// Where the message may be parted: behind the last element of which the visitor said so.
    pub(super) part_at: Option<usize>,
    /// Such elements that are over, outermost, in order.
    pub(super) parted: Vec<Span>,
    /// Which message the document, or else the header, is.
    pub(super) kind: MsgType,
    /// Where `Document` starts, once it has.
    document: Option<usize>,
    /// Where the header ends, once it has.
    header_end: Option<usize>,
    /// The header's MsgDefIdr.
    named: Option<Value>,
    /// An encoding other than UTF-8 was declared, here.
    encoding: Option<usize>,
    /// A document type was declared.
    doctype: bool,
}

/// An element that is not over.
#[derive(Debug, Clone, Copy, Default)]
struct Open<M> {
    /// Where its name starts, behind `<`.
    name: u32,
    /// Where its content starts.
    content: u32,
    /// Bytes of its name; 0 is a CDATA section that holds elements.
    name_bytes: u16,
    /// Of them, those of the prefix with its colon.
    prefix_bytes: u16,
    flags: u8,
    mark: M,
}

/// An element is in it.
const PARENT: u8 = 1;
/// Text is in it that is not white, and something else behind that.
const TEXT: u8 = 2;
/// Comments, CDATA or processing instructions are in it.
const MARKED: u8 = 4;
/// References are in it.
const REFERENCES: u8 = 8;
/// It has namespaces of its own.
const BINDS: u8 = 16;

/// A prefix and its namespace.
#[derive(Debug, Clone, Copy)]
struct Bound {
    prefix: Span,
    uri: Span,
    depth: usize,
}

#[derive(Debug, Clone, Copy)]
struct Attribute {
    name: Span,
    /// Bytes of the prefix with its colon.
    prefix_bytes: usize,
    value: Value,
}

/// Where in a message the parser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    Wrapper,
    /// In a root at this depth.
    In(Root, usize),
}

/// Why a step goes no further.
enum Stop {
    Need,
    Bad(What, usize),
    Done(Outcome),
}

type Step<T> = Result<T, Stop>;

impl<M: Copy + Default> Parser<M> {
    /// Parses `buf` from `from`. What lies between that and `live` is context. `whole`: the input ends where `buf`
    /// does.
    pub(super) fn parse<V: Visit<Mark = M>>(
        &mut self,
        buf: &[u8],
        from: usize,
        live: usize,
        whole: bool,
        visit: &mut V,
    ) -> Outcome {
        self.stack.clear();
        self.bound.clear();
        self.parted.clear();
        self.part_at = None;
        self.kind = MsgType::default();
        (self.document, self.header_end, self.named, self.encoding) = (None, None, None, None);
        self.doctype = false;
        visit.begin(live);
        let outcome = match self.run(buf, from, live, whole, visit) {
            Err(Stop::Done(outcome)) => outcome,
            Err(Stop::Bad(what, at)) => bad(what, at),
            Err(Stop::Need) | Ok(()) if whole => self.at_end(buf),
            Err(Stop::Need) | Ok(()) => Outcome::Need,
        };
        let refused = |at: usize| Fault { what: What::Doctype, at: at as u32 };
        match outcome {
            Outcome::Message { end, .. } if self.doctype => Outcome::Refused { fault: refused(end), end },
            Outcome::Bad(fault) if self.doctype => Outcome::Bad(refused(fault.at as usize)),
            Outcome::Message { end, .. } => match self.characters(buf, live, end) {
                Ok(()) => outcome,
                Err(fault) => Outcome::Bad(fault),
            },
            _ => outcome,
        }
    }

    /// The start tags of what is around the message, for the next message in it.
    pub(super) fn wrapper(&self, buf: &[u8], out: &mut Vec<u8>) {
        for open in &self.stack {
            out.extend_from_slice(&buf[open.name as usize - 1..open.content as usize]);
        }
    }

    /// The header is over and no document came: a message of its own if nothing more comes.
    pub(super) fn header_alone(&self) -> Option<Outcome> {
        let end = self.header_end.filter(|_| self.document.is_none() && self.stack.is_empty())?;
        Some(Outcome::Message { end, open: false })
    }

    /// Where `Document` starts.
    pub(super) fn document_at(&self) -> Option<usize> {
        self.document
    }

    fn at_end(&self, buf: &[u8]) -> Outcome {
        if let Some(alone) = self.header_alone() {
            return alone;
        }
        if self.stack.is_empty() && self.document.is_none() {
            return Outcome::Tail { end: buf.len() };
        }
        bad(What::Truncated, buf.len())
    }

    /// Encoding and characters of a message.
    pub(super) fn characters(&self, buf: &[u8], live: usize, end: usize) -> Result<(), Fault> {
        let bytes = &buf[live..end];
        let fault = |what, at: usize| Fault { what, at: at as u32 };
        if let Some(at) = self.encoding
            && !bytes.is_ascii()
        {
            return Err(fault(What::Encoding, at));
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(fault(What::Utf8, live + error.valid_up_to()));
        }
        match scan::control(bytes) {
            Some(n) => Err(fault(What::Char(bytes[n]), live + n)),
            None => Ok(()),
        }
    }

    fn run<V: Visit<Mark = M>>(
        &mut self,
        buf: &[u8],
        from: usize,
        live: usize,
        whole: bool,
        visit: &mut V,
    ) -> Step<()> {
        let mut zone = Zone::Wrapper;
        let mut at = from;
        loop {
            let (mut lt, mut white) = scan::text(buf, at);
            while buf.get(lt) == Some(&b'&') {
                white = false;
                if self.stack.is_empty() {
                    break;
                }
                lt = self.reference(buf, lt)?;
            }
            if zone == Zone::Wrapper {
                if let Some(end) = self.wrapped_end(buf, at, lt) {
                    at = end;
                    continue;
                }
                if self.stack.is_empty() && !white {
                    let end = self.header_alone();
                    return Err(end.map_or(Stop::Bad(What::Expected("an element"), at), Stop::Done));
                }
            }
            let Some(&next) = buf.get(lt + 1) else { return Err(Stop::Need) };
            match next {
                b'/' => {
                    let Some(open) = self.stack.last().copied() else {
                        let end = self.header_alone();
                        return Err(end.map_or(Stop::Bad(What::Mismatch, lt), Stop::Done));
                    };
                    let (name, bytes) = (open.name as usize, usize::from(open.name_bytes));
                    at = lt + 2 + bytes;
                    if !same(buf, lt + 2, name, bytes) || buf.get(at) != Some(&b'>') || bytes == 0 {
                        at = end_tag(buf, lt, (name, bytes))?;
                    }
                    at += 1;
                    self.stack.pop();
                    if open.flags & BINDS != 0 {
                        let depth = self.stack.len();
                        self.bound.retain(|b| b.depth < depth);
                    }
                    let Zone::In(root, depth) = zone else {
                        if self.stack.is_empty() {
                            return Err(Stop::Done(self.root_over(at, live > from, lt)));
                        }
                        continue;
                    };
                    if open.flags & PARENT != 0 && (!white || open.flags & TEXT != 0) {
                        return Err(Stop::Bad(What::Mixed, lt));
                    }
                    let text = (open.flags & PARENT == 0).then(|| leaf(buf, &open, lt));
                    let span = Span { start: name - 1, end: at };
                    if visit.close(buf, open.mark, text, span) {
                        self.part(span);
                    }
                    if self.stack.len() == depth {
                        zone = Zone::Wrapper;
                        self.root_ends(root, at)?;
                    } else if root == Root::Header && self.stack.len() == depth + 1 {
                        self.header_field(buf, &open, text);
                    }
                }
                b'!' | b'?' => {
                    if matches!(zone, Zone::In(..))
                        && let Some(open) = self.stack.last_mut()
                    {
                        open.flags |= MARKED | if white { 0 } else { TEXT };
                    }
                    at = self.markup(buf, lt, (next == b'?', zone == Zone::Wrapper), whole)?;
                }
                _ if starts_name(next) => {
                    if zone != Zone::Wrapper
                        && let Some(parent) = self.stack.last_mut()
                    {
                        if !white || parent.flags & TEXT != 0 {
                            return Err(Stop::Bad(What::Mixed, lt));
                        }
                        parent.flags |= PARENT;
                    }
                    at = self.start_tag(buf, lt, &mut zone, visit)?;
                }
                _ => return Err(Stop::Bad(What::Expected("a name"), lt + 1)),
            }
        }
    }

    /// Takes the start tag at `lt`; gives where its content starts.
    #[inline]
    fn start_tag<V: Visit<Mark = M>>(
        &mut self,
        buf: &[u8],
        lt: usize,
        zone: &mut Zone,
        visit: &mut V,
    ) -> Step<usize> {
        let name = lt + 1;
        let mut end = scan::name(buf, name);
        let mut local = name;
        if buf.get(end) == Some(&b':') {
            local = end + 1;
            end = scan::name(buf, local);
        }
        if end - name > NAME_BYTES_MAX {
            return Err(Stop::Bad(What::Long, lt));
        }
        let Some(&behind) = buf.get(end) else { return Err(Stop::Need) };
        if local > name && !buf.get(local).is_some_and(|b| starts_name(*b)) {
            return Err(Stop::Bad(What::Expected("a name"), local));
        }
        let word = &buf[local..end];
        let root = match word {
            b"Document" => Some(Root::Document),
            b"AppHdr" => Some(Root::Header),
            _ => None,
        };
        if let Some(root) = root {
            self.before_root(root, *zone, lt)?;
        } else if self.stack.is_empty()
            && let Some(alone) = self.header_alone()
        {
            return Err(Stop::Done(alone));
        }
        self.attributes.clear();
        let depth = self.stack.len();
        let mut flags = 0;
        let (gt, empty) = match behind {
            b'>' => (end, false),
            _ => self.attributes(buf, lt, end)?,
        };
        if gt > end {
            for attribute in &self.attributes {
                let (span, prefix) = (attribute.name, attribute.prefix_bytes);
                let word = span.of(buf);
                let prefix = match word {
                    b"xmlns" => Span { start: span.end, end: span.end },
                    _ if prefix > 0 && word.starts_with(b"xmlns:") => {
                        Span { start: span.start + prefix, end: span.end }
                    }
                    _ => continue,
                };
                flags |= BINDS;
                let uri = Span { start: attribute.value.start as usize, end: attribute.value.end as usize };
                self.bound.push(Bound { prefix, uri, depth });
            }
        }
        if local > name && !self.is_bound(buf, &buf[name..local - 1]) {
            return Err(Stop::Bad(What::Prefix, name));
        }
        let mark = match (*zone, root) {
            (Zone::In(Root::Document, _), Some(Root::Document)) if self.names_message(buf, name, local) => {
                // The end of the one before is missing.
                return Err(Stop::Bad(What::Truncated, lt));
            }
            (Zone::In(..), _) => {
                let parent = self.stack.last().map(|open| open.mark).unwrap_or_default();
                visit.open(parent, word, lt)
            }
            (Zone::Wrapper, Some(root)) => {
                *zone = Zone::In(root, depth);
                self.begin_root(buf, root, (name, local), lt)?;
                visit.root(root)
            }
            (Zone::Wrapper, None) => M::default(),
        };
        if let Zone::In(..) = *zone {
            for attribute in &self.attributes {
                let word = attribute.name.of(buf);
                if word == b"xmlns" || attribute.prefix_bytes > 0 && word.starts_with(b"xmlns:") {
                    continue;
                }
                if attribute.prefix_bytes > 0 {
                    let prefix = &word[..attribute.prefix_bytes - 1];
                    if prefix != b"xml" && !self.is_bound(buf, prefix) {
                        return Err(Stop::Bad(What::Prefix, attribute.name.start));
                    }
                }
                visit.attribute(mark, &word[attribute.prefix_bytes..], attribute.value);
            }
        }
        if depth >= DEPTH_MAX {
            return Err(Stop::Bad(What::Depth, lt));
        }
        let open = Open {
            name: name as u32,
            content: (gt + 1) as u32,
            name_bytes: (end - name) as u16,
            prefix_bytes: (local - name) as u16,
            flags,
            mark,
        };
        if !empty {
            self.stack.push(open);
            return Ok(gt + 1);
        }
        if flags & BINDS != 0 {
            self.bound.retain(|b| b.depth < depth);
        }
        let Zone::In(root, top) = *zone else {
            if depth == 0 {
                return Err(Stop::Done(self.root_over(gt + 1, false, lt)));
            }
            return Ok(gt + 1);
        };
        let at = (gt + 1) as u32;
        let text = Value { start: at, end: at, form: Form::Plain };
        let span = Span { start: lt, end: gt + 1 };
        if visit.close(buf, mark, Some(text), span) {
            self.part(span);
        }
        if depth == top {
            *zone = Zone::Wrapper;
            self.root_ends(root, gt + 1)?;
        }
        Ok(gt + 1)
    }

    /// Where the tag of header or document stands decides what becomes of what came before it.
    fn before_root(&mut self, root: Root, zone: Zone, lt: usize) -> Step<()> {
        match (zone, root) {
            // A header in a document, or a document in a header, is that of the next message.
            (Zone::In(Root::Document, _), Root::Header) | (Zone::In(Root::Header, _), _) => {
                Err(Stop::Bad(What::Truncated, lt))
            }
            (Zone::In(Root::Document, _), Root::Document) => Ok(()),
            (Zone::Wrapper, _) if self.document.is_some() => self.next_begins(lt),
            (Zone::Wrapper, Root::Header) if self.header_end.is_some() => self.next_begins(lt),
            (Zone::Wrapper, _) => Ok(()),
        }
    }

    fn next_begins(&self, lt: usize) -> Step<()> {
        Err(Stop::Done(Outcome::Message { end: lt, open: !self.stack.is_empty() }))
    }

    /// Whether the element that starts here is of a namespace of its own that names a message.
    fn names_message(&self, buf: &[u8], name: usize, local: usize) -> bool {
        let depth = self.stack.len();
        let uri = self.uri(buf, name, local).filter(|b| b.depth == depth);
        uri.is_some_and(|b| kind::of_namespace(buf, b.uri).is_some())
    }

    fn begin_root(&mut self, buf: &[u8], root: Root, (name, local): (usize, usize), lt: usize) -> Step<()> {
        let uri = self.uri(buf, name, local).map(|b| b.uri).filter(|uri| !uri.is_empty());
        match root {
            Root::Header => self.kind = uri.map(|uri| kind::of_header(buf, uri)).unwrap_or_default(),
            Root::Document => {
                self.document = Some(lt);
                self.kind = match (uri, self.named) {
                    (Some(uri), _) => kind::of_namespace(buf, uri).ok_or(Stop::Bad(What::Namespace, lt))?,
                    (None, Some(named)) => {
                        let span = Span { start: named.start as usize, end: named.end as usize };
                        kind::of_identifier(buf, span).ok_or(Stop::Bad(What::NoNamespace, lt))?
                    }
                    (None, None) => return Err(Stop::Bad(What::NoNamespace, lt)),
                };
            }
        }
        Ok(())
    }

    /// Header or document is over.
    fn root_ends(&mut self, root: Root, end: usize) -> Step<()> {
        match root {
            Root::Header => self.header_end = Some(end),
            Root::Document if self.stack.is_empty() => {
                return Err(Stop::Done(Outcome::Message { end, open: false }));
            }
            Root::Document => {}
        }
        Ok(())
    }

    /// The outermost element is over, and it was no document.
    fn root_over(&self, end: usize, in_context: bool, lt: usize) -> Outcome {
        if self.document.is_some() || self.header_end.is_some() {
            Outcome::Message { end, open: false }
        } else if in_context {
            Outcome::Tail { end }
        } else {
            bad(What::NoDocument, lt)
        }
    }

    /// The message a header tells.
    fn header_field(&mut self, buf: &[u8], open: &Open<M>, text: Option<Value>) {
        let local = (open.name + u32::from(open.prefix_bytes)) as usize;
        if open.name_bytes - open.prefix_bytes == 9 && buf[local..].starts_with(b"MsgDefIdr") {
            self.named = text;
        }
    }

    fn part(&mut self, span: Span) {
        while self.parted.pop_if(|p| p.start >= span.start).is_some() {}
        self.parted.push(span);
        self.part_at = Some(span.end);
    }

    #[inline]
    fn is_bound(&self, buf: &[u8], prefix: &[u8]) -> bool {
        self.bound.iter().rev().any(|b| b.prefix.of(buf) == prefix)
    }

    fn uri(&self, buf: &[u8], name: usize, local: usize) -> Option<&Bound> {
        let prefix = if local > name { &buf[name..local - 1] } else { &[] };
        self.bound.iter().rev().find(|b| b.prefix.of(buf) == prefix)
    }

    /// In a CDATA section that holds elements: where it ends, if it does so before `lt`.
    #[inline]
    fn wrapped_end(&mut self, buf: &[u8], at: usize, lt: usize) -> Option<usize> {
        let top = self.stack.last()?;
        if top.name_bytes != 0 {
            return None;
        }
        let n = memmem::find(&buf[at..lt], b"]]>")?;
        self.stack.pop();
        Some(at + n + 3)
    }

    /// Takes a reference in text; gives where text goes on to.
    #[cold]
    fn reference(&mut self, buf: &[u8], at: usize) -> Step<usize> {
        if let Some(open) = self.stack.last_mut() {
            open.flags |= REFERENCES;
        }
        match reference::read(buf, at) {
            reference::Read::Is(_, end) => Ok(scan::text(buf, end).0),
            reference::Read::Bad => Err(Stop::Bad(What::Entity, at)),
            reference::Read::Short => Err(Stop::Need),
        }
    }

    /// Takes the attributes behind a name; gives where the tag's `>` stands and whether the element is empty.
    fn attributes(&mut self, buf: &[u8], lt: usize, mut at: usize) -> Step<(usize, bool)> {
        loop {
            let from = skip_white(buf, at);
            match buf.get(from) {
                None => return Err(Stop::Need),
                Some(b'>') => return Ok((from, false)),
                Some(b'/') => {
                    return match buf.get(from + 1) {
                        None => Err(Stop::Need),
                        Some(b'>') => Ok((from + 1, true)),
                        Some(_) => Err(Stop::Bad(What::Expected(">"), from + 1)),
                    };
                }
                Some(&byte) if from > at && starts_name(byte) => {}
                Some(_) => return Err(Stop::Bad(What::Expected("an attribute, > or />"), from)),
            }
            if self.attributes.len() >= ATTRIBUTES_MAX {
                return Err(Stop::Bad(What::Attributes, lt));
            }
            let mut end = scan::name(buf, from);
            let mut prefix_bytes = 0;
            if buf.get(end) == Some(&b':') {
                prefix_bytes = end + 1 - from;
                end = scan::name(buf, end + 1);
            }
            if end - from > NAME_BYTES_MAX {
                return Err(Stop::Bad(What::Long, from));
            }
            let name = Span { start: from, end };
            if prefix_bytes > 0 && name.len() > prefix_bytes && !starts_name(buf[from + prefix_bytes]) {
                return Err(Stop::Bad(What::Expected("a name"), from + prefix_bytes));
            }
            let equals = skip_white(buf, end);
            match buf.get(equals) {
                None => return Err(Stop::Need),
                Some(b'=') if name.len() > prefix_bytes => {}
                Some(_) => return Err(Stop::Bad(What::Expected("="), equals)),
            }
            let start = skip_white(buf, equals + 1);
            let quote = match buf.get(start) {
                None => return Err(Stop::Need),
                Some(&quote @ (b'"' | b'\'')) => quote,
                Some(_) => return Err(Stop::Bad(What::Expected("a quote"), start)),
            };
            let value = attribute_value(buf, start + 1, quote)?;
            if self.attributes.iter().any(|a| a.name.of(buf) == name.of(buf)) {
                return Err(Stop::Bad(What::Expected("another attribute"), from));
            }
            self.attributes.push(Attribute { name, prefix_bytes, value });
            at = value.end as usize + 1;
        }
    }

    /// Takes a comment, CDATA section or processing instruction; gives where it ends.
    #[cold]
    fn markup(&mut self, buf: &[u8], lt: usize, (pi, wrapper): (bool, bool), whole: bool) -> Step<usize> {
        let rest = &buf[lt..];
        if pi {
            return self.instruction(buf, lt);
        }
        for (head, known) in [(&b"<!--"[..], 0), (b"<![CDATA[", 1), (b"<!DOCTYPE", 2)] {
            if rest.starts_with(head) {
                return match known {
                    0 => comment(buf, lt),
                    1 => self.cdata(buf, lt, wrapper, whole),
                    _ => self.doctype(buf, lt),
                };
            }
            if head.starts_with(rest) {
                return Err(Stop::Need);
            }
        }
        Err(Stop::Bad(What::Expected("a comment or CDATA"), lt))
    }

    /// A document type is passed over, so that its document is known to be refused whole.
    fn doctype(&mut self, buf: &[u8], lt: usize) -> Step<usize> {
        if let Some(alone) = self.header_alone() {
            return Err(Stop::Done(alone));
        }
        if !self.stack.is_empty() {
            return Err(Stop::Bad(What::Doctype, lt));
        }
        self.doctype = true;
        let (mut depth, mut quote) = (0, 0);
        for (n, &byte) in buf.iter().enumerate().skip(lt) {
            match byte {
                b'"' | b'\'' if quote == 0 => quote = byte,
                _ if quote != 0 => quote = if byte == quote { 0 } else { quote },
                b'[' => depth += 1,
                b']' => depth -= 1,
                b'>' if depth <= 0 => return Ok(n + 1),
                _ => {}
            }
        }
        Err(Stop::Need)
    }

    /// Whether a document type was declared.
    pub(super) fn has_doctype(&self) -> bool {
        self.doctype
    }

    fn cdata(&mut self, buf: &[u8], lt: usize, wrapper: bool, whole: bool) -> Step<usize> {
        let from = lt + 9;
        if self.stack.is_empty() {
            return Err(Stop::Bad(What::Expected("an element"), lt));
        }
        let end = memmem::find(&buf[from..], b"]]>").map(|n| from + n);
        if wrapper && buf.get(skip_white(buf, from)).is_none_or(|b| *b == b'<') {
            let view = &buf[from..end.unwrap_or(buf.len())];
            if holds_message(view) {
                if self.stack.len() >= DEPTH_MAX {
                    return Err(Stop::Bad(What::Depth, lt));
                }
                let (name, content) = ((lt + 1) as u32, from as u32);
                self.stack.push(Open { name, content, ..Open::default() });
                return Ok(from);
            }
        }
        if let Some(open) = self.stack.last_mut() {
            open.flags |= TEXT;
        }
        match end {
            Some(end) => Ok(end + 3),
            None if whole => Err(Stop::Bad(What::Truncated, buf.len())),
            None => Err(Stop::Need),
        }
    }

    fn instruction(&mut self, buf: &[u8], lt: usize) -> Step<usize> {
        let target = lt + 2;
        let name_end = scan::name(buf, target);
        if name_end == buf.len() {
            return Err(Stop::Need);
        }
        if !buf[target..name_end].eq_ignore_ascii_case(b"xml") {
            if !starts_name(buf[target]) {
                return Err(Stop::Bad(What::Expected("a name"), target));
            }
            return memmem::find(&buf[name_end..], b"?>").map(|n| name_end + n + 2).ok_or(Stop::Need);
        }
        // A declaration starts a document.
        match self.stack.last() {
            None => {
                if let Some(alone) = self.header_alone() {
                    return Err(Stop::Done(alone));
                }
            }
            // In CDATA it is that of the document in there.
            Some(top) if top.name_bytes == 0 && skip_white(buf, top.content as usize) == lt => {}
            Some(_) => return Err(Stop::Bad(What::Truncated, lt)),
        }
        let Some(n) = memmem::find(&buf[name_end..], b"?>") else { return Err(Stop::Need) };
        self.attributes.clear();
        let end = name_end + n;
        // Read as if it were a tag, for its two attributes.
        match self.attributes(&buf[..end], lt, name_end) {
            Err(Stop::Need) => {}
            Err(Stop::Bad(what, at)) => return Err(Stop::Bad(what, at)),
            Ok(_) | Err(Stop::Done(_)) => return Err(Stop::Bad(What::Expected("?>"), end)),
        }
        if let Some(encoding) = self.attributes.iter().find(|a| a.name.of(buf) == b"encoding") {
            let name = encoding.value.raw(buf).to_ascii_lowercase();
            let at = encoding.value.start as usize;
            match &name[..] {
                b"utf-8" | b"utf8" => {}
                // Where only ASCII is used they all are the same.
                b"us-ascii" | b"ascii" | b"latin1" => self.encoding = Some(at),
                n if n.starts_with(b"iso-8859-") || n.starts_with(b"windows-125") => {
                    self.encoding = Some(at);
                }
                _ => return Err(Stop::Bad(What::Encoding, at)),
            }
        }
        Ok(end + 2)
    }
}

#[cold]
fn bad(what: What, at: usize) -> Outcome {
    Outcome::Bad(Fault { what, at: at as u32 })
}

/// The text of an element that has no element in it and ends at `lt`.
#[inline]
fn leaf<M>(buf: &[u8], open: &Open<M>, lt: usize) -> Value {
    let (mut start, mut end) = (open.content as usize, lt);
    // White space around it is not part of it; a section at its end keeps its own.
    while start < end && is_white(buf[start]) {
        start += 1;
    }
    while start < end && is_white(buf[end - 1]) {
        end -= 1;
    }
    let form = match open.flags {
        flags if flags & MARKED != 0 => Form::Marked,
        flags if flags & REFERENCES != 0 => Form::References,
        _ => Form::Plain,
    };
    Value { start: start as u32, end: end as u32, form }
}

/// An end tag that is not written in the plainest way; gives where its `>` stands.
#[cold]
fn end_tag(buf: &[u8], lt: usize, (name, bytes): (usize, usize)) -> Step<usize> {
    let rest = &buf[lt + 2..];
    let want = &buf[name..name + bytes];
    if rest.len() < bytes {
        return Err(if want.starts_with(rest) { Stop::Need } else { Stop::Bad(What::Mismatch, lt) });
    }
    if bytes == 0 || !rest.starts_with(want) {
        return Err(Stop::Bad(What::Mismatch, lt));
    }
    let at = skip_white(buf, lt + 2 + bytes);
    match buf.get(at) {
        None => Err(Stop::Need),
        Some(b'>') => Ok(at),
        Some(_) => Err(Stop::Bad(What::Mismatch, lt)),
    }
}

fn comment(buf: &[u8], lt: usize) -> Step<usize> {
    let from = lt + 4;
    let Some(n) = memmem::find(&buf[from..], b"--") else { return Err(Stop::Need) };
    match buf.get(from + n + 2) {
        None => Err(Stop::Need),
        Some(b'>') => Ok(from + n + 3),
        Some(_) => Err(Stop::Bad(What::Expected("-->"), from + n)),
    }
}

/// A value up to its quote.
fn attribute_value(buf: &[u8], start: usize, quote: u8) -> Step<Value> {
    let rest = &buf[start..];
    let Some(n) = rest.iter().position(|b| *b == quote || *b == b'<') else { return Err(Stop::Need) };
    if rest[n] == b'<' {
        return Err(Stop::Bad(What::Expected("no <"), start + n));
    }
    let end = start + n;
    let mut form = Form::Plain;
    let mut at = start;
    while let Some(n) = memchr::memchr(b'&', &buf[at..end]) {
        form = Form::References;
        at = match reference::read(&buf[..end], at + n) {
            reference::Read::Is(_, end) => end,
            _ => return Err(Stop::Bad(What::Entity, at + n)),
        };
    }
    Ok(Value { start: start as u32, end: end as u32, form })
}

/// Whether header or document starts in the text of a CDATA section.
fn holds_message(text: &[u8]) -> bool {
    [&b"Document"[..], b"AppHdr"]
        .iter()
        .any(|word| memmem::find_iter(text, word).any(|n| n > 0 && matches!(text[n - 1], b'<' | b':')))
}
