//! Header and document: which message they make, and where it starts and ends.

use super::super::kind;
use super::super::value::Value;
use super::super::{Span, What};
use super::{Open, Outcome, Parser, Root, RootScope, Step, Stop, Zone, bad};

impl<M: Copy + Default> Parser<M> {
    /// Where the tag of header or document stands decides what becomes of what came before it.
    pub(super) fn before_root(&mut self, root: Root, zone: Zone, lt: usize) -> Step<()> {
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

    /// Whether the element that starts here is of another namespace than its root.
    pub(super) fn is_foreign(&self, buf: &[u8], name: usize, local: usize) -> bool {
        let uri = self.uri(buf, name, local).map(|b| b.uri).unwrap_or_default();
        uri.slice(buf) != self.root.uri.slice(buf)
    }

    /// Whether the element that starts here is of a namespace of its own that names a message.
    pub(super) fn names_message(&self, buf: &[u8], name: usize, local: usize) -> bool {
        let depth = self.stack.len();
        let uri = self.uri(buf, name, local).filter(|b| b.depth == depth);
        uri.is_some_and(|b| kind::of_namespace(buf, b.uri).is_some())
    }

    pub(super) fn begin_root(
        &mut self,
        buf: &[u8],
        root: Root,
        (name, local): (usize, usize),
        lt: usize,
    ) -> Step<()> {
        let uri = self.uri(buf, name, local).map(|b| b.uri).filter(|uri| !uri.is_empty());
        let prefix = Span { start: name, end: local.saturating_sub(1).max(name) };
        self.root = RootScope { prefix, uri: uri.unwrap_or_default(), bound: self.bound.len() };
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
    pub(super) fn root_ends(&mut self, root: Root, end: usize) -> Step<()> {
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
    pub(super) fn root_over(&self, end: usize, in_context: bool, lt: usize) -> Outcome {
        if self.document.is_some() || self.header_end.is_some() {
            Outcome::Message { end, open: false }
        } else if in_context {
            Outcome::Tail { end }
        } else {
            bad(What::NoDocument, lt)
        }
    }

    /// The message a header tells.
    pub(super) fn header_field(&mut self, buf: &[u8], open: &Open<M>, text: Option<Value>) {
        let local = (open.name + u32::from(open.prefix_bytes)) as usize;
        if open.name_bytes - open.prefix_bytes == 9 && buf[local..].starts_with(b"MsgDefIdr") {
            self.named = text;
        }
    }
}
