//! Header and document: which message they make, and where it starts and ends.

use super::super::identifier;
use super::super::value::ElementValueSpan;
use super::super::{IsoFaultKind, Span};
use super::{
    DocumentParser, MessageRoot, OpenElement, ParseOutcome, ParseResult, ParseStop, ParserLocation,
    RootNamespace, bad_outcome,
};

impl<M: Copy + Default> DocumentParser<M> {
    /// Decides, at the tag of a header or document, what happens to the bytes before it.
    pub(super) fn before_root(
        &mut self,
        root: MessageRoot,
        zone: ParserLocation,
        lt: usize,
    ) -> ParseResult<()> {
        match (zone, root) {
            // A header in a document, or a document in a header, is that of the next message.
            (ParserLocation::In(MessageRoot::Document, _), MessageRoot::Header)
            | (ParserLocation::In(MessageRoot::Header, _), _) => {
                Err(ParseStop::Bad(IsoFaultKind::Truncated, lt))
            }
            (ParserLocation::In(MessageRoot::Document, _), MessageRoot::Document) => Ok(()),
            (ParserLocation::Wrapper, _) if self.document.is_some() => self.next_begins(lt),
            (ParserLocation::Wrapper, MessageRoot::Header) if self.header_end.is_some() => {
                self.next_begins(lt)
            }
            (ParserLocation::Wrapper, _) => Ok(()),
        }
    }

    fn next_begins(&self, lt: usize) -> ParseResult<()> {
        Err(ParseStop::Done(ParseOutcome::Message { end: lt, open: !self.stack.is_empty() }))
    }

    /// Returns whether the element that starts here has another namespace than its root.
    pub(super) fn is_foreign(&self, buf: &[u8], name: usize, local: usize) -> bool {
        let uri = self.uri(buf, name, local).map(|b| b.uri).unwrap_or_default();
        uri.slice(buf) != self.root.uri.slice(buf)
    }

    /// Returns whether the element that starts here declares a namespace that names a message.
    pub(super) fn names_message(&self, buf: &[u8], name: usize, local: usize) -> bool {
        let depth = self.stack.len();
        let uri = self.uri(buf, name, local).filter(|b| b.depth == depth);
        uri.is_some_and(|b| identifier::from_namespace(buf, b.uri).is_some())
    }

    pub(super) fn begin_root(
        &mut self,
        buf: &[u8],
        root: MessageRoot,
        name: usize,
        local: usize,
        lt: usize,
    ) -> ParseResult<()> {
        let uri = self.uri(buf, name, local).map(|b| b.uri).filter(|uri| !uri.is_empty());
        let prefix = Span { start: name, end: local.saturating_sub(1).max(name) };
        self.root =
            RootNamespace { prefix, uri: uri.unwrap_or_default(), bound: self.bound_namespaces.len() };
        match root {
            MessageRoot::Header => {
                self.kind = uri.map(|uri| identifier::from_header(buf, uri)).unwrap_or_default()
            }
            MessageRoot::Document => {
                self.document = Some(lt);
                self.kind = match (uri, self.header_identifier) {
                    (Some(uri), _) => identifier::from_namespace(buf, uri)
                        .ok_or(ParseStop::Bad(IsoFaultKind::Namespace, lt))?,
                    (None, Some(named)) => {
                        let span = Span { start: named.start as usize, end: named.end as usize };
                        identifier::from_identifier(buf, span)
                            .ok_or(ParseStop::Bad(IsoFaultKind::NoNamespace, lt))?
                    }
                    (None, None) => return Err(ParseStop::Bad(IsoFaultKind::NoNamespace, lt)),
                };
            }
        }
        Ok(())
    }

    /// Ends a header or document.
    pub(super) fn root_ends(&mut self, root: MessageRoot, end: usize) -> ParseResult<()> {
        match root {
            MessageRoot::Header => self.header_end = Some(end),
            MessageRoot::Document if self.stack.is_empty() => {
                return Err(ParseStop::Done(ParseOutcome::Message { end, open: false }));
            }
            MessageRoot::Document => {}
        }
        Ok(())
    }

    /// Handles the end of the outermost element, which is no document.
    pub(super) fn root_over(&self, end: usize, in_context: bool, lt: usize) -> ParseOutcome {
        if self.document.is_some() || self.header_end.is_some() {
            ParseOutcome::Message { end, open: false }
        } else if in_context {
            ParseOutcome::Tail { end }
        } else {
            bad_outcome(IsoFaultKind::NoDocument, lt)
        }
    }

    /// Notes the message that a header names.
    pub(super) fn header_field(&mut self, buf: &[u8], open: &OpenElement<M>, text: Option<ElementValueSpan>) {
        let local = (open.name + u32::from(open.prefix_bytes)) as usize;
        if open.name_bytes - open.prefix_bytes == 9 && buf[local..].starts_with(b"MsgDefIdr") {
            self.header_identifier = text;
        }
    }
}
