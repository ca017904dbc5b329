//! Framing: where the messages of a stream of bytes start and end, and what lies between them.
//!
//! ```text
//! <?xml…?><Document>…</Document>⏎<AppHdr>…</AppHdr><Document>…</Document>⏎<Envelope><AppHdr/><Document/></Envelope>
//! ╰── a message ──────────────╯  ╰── a message ───────────────────────╯  ╰── a message ───────────────────────╯
//! ```
//!
//! The answer for a position depends only on the bytes from there on (and the context carried to it), never on where
//! the buffer happens to end: if bytes not yet there could change it, it is [`NextIsoMessage::Incomplete`]. At most
//! [`Iso20022Decoder::max_message`] bytes (and a few more) are waited for.
//!
//! # The rules
//!
//! 1. **Between messages** white space and a byte order mark are skipped, and so are comments and processing
//!    instructions at the end of the input.
//! 2. A **message** is one document: `Document`, with the `AppHdr` before it if there is one, and everything around
//!    them, under any name. Both are found by local name. An `AppHdr` alone is a message too.
//! 3. A wrapper with **several messages** is several: each starts with its header or document and goes up to the next
//!    one. The open tags around them are carried from one to the next as *context*.
//! 4. A message **larger than the limit** is reported in parts where the visitor says that it may be parted (the
//!    entries of a statement): a part ends after the last such element within the limit. The context carried to the
//!    next part is the message so far without those elements. Where it may not be parted it is bad (`too_large`).
//! 5. A **bad** message goes up to the next place that starts a message for certain: an XML declaration, a tag
//!    `Document` or `AppHdr`; or to the end of the input, or the limit.
//!    What follows has no wrapper any more. Only a declaration of a set of characters that is not read still holds for it,
//!    up to the next declaration: the rest of the wrapper is in that set.
//! 6. **Garbage** is bytes where no tag starts, and end tags of nothing.

use super::identifier::MessageIdentifier;
use super::parse::{DocumentParser, ElementVisitor, ParseOutcome};
use super::{IsoFault, IsoFaultKind};
use crate::charset::FallbackCharset;
use unitape_base::xml::{self, is_white, skip_white, starts_name};
use unitape_base::{NextFrame, Span};

/// The next message of the input. Bytes between the position asked for and the start of a span are separators; the
/// next position to ask for is the end of the span.
pub type NextIsoMessage = NextFrame<FramedIsoMessage, IsoFault>;

/// A message, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramedIsoMessage {
    /// The whole message in the buffer, with the elements around it.
    pub span: Span,
    /// Which message it is: places in [`Iso20022Decoder::text`].
    pub kind: MessageIdentifier,
    /// Not all of the message.
    pub is_part: bool,
    /// More of the message follows.
    pub goes_on: bool,
    /// Bytes of context; with any, the text is the decoder's own copy.
    pub(super) context_bytes: usize,
    /// It was decoded from the encoding that it declares, and the text is the decoder's own copy.
    pub(super) is_recoded: bool,
}

/// Finds messages and reports their content to a visitor.
#[derive(Debug)]
pub struct Iso20022Decoder<M> {
    pub(super) parser: DocumentParser<M>,
    max_message: usize,
    /// The tags that came before and are still open; empty between messages that are independent.
    context: Vec<u8>,
    /// The context and the bytes after it.
    pub(super) scratch: Vec<u8>,
    /// The note on the guess for the last message that was decoded from another character set.
    pub(super) charset_note: String,
}

impl<M: Copy + Default> Default for Iso20022Decoder<M> {
    /// Messages up to 1 MiB.
    fn default() -> Self {
        Self {
            parser: DocumentParser::default(),
            max_message: 1 << 20,
            context: Vec::new(),
            scratch: Vec::new(),
            charset_note: String::new(),
        }
    }
}

impl<M: Copy + Default> Iso20022Decoder<M> {
    /// Sets the maximum length of a message or of a message part in bytes, clamped to 64 bytes at least and 256 MiB
    /// at most.
    #[must_use]
    pub fn with_max_message(self, max_message: usize) -> Self {
        Self { max_message: max_message.clamp(64, 256 << 20), ..self }
    }

    /// Sets how the decoder reads documents that declare no character set and are not UTF-8.
    #[must_use]
    pub fn with_fallback(mut self, fallback: FallbackCharset) -> Self {
        self.parser.fallback_charset = fallback;
        self
    }

    /// Returns a note in words if the character set of `message` was guessed or is unknown.
    #[must_use]
    pub fn charset_note(&self, message: &FramedIsoMessage) -> Option<&str> {
        (message.is_recoded && !self.charset_note.is_empty()).then_some(&self.charset_note)
    }

    /// Returns the maximum length of a message, in bytes.
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    /// Returns the context that applies at the next position; empty if that position needs no context.
    #[must_use]
    pub fn context(&self) -> &[u8] {
        &self.context
    }

    /// Sets the context that applies at the next position.
    pub fn set_context(&mut self, context: &[u8]) {
        self.context.clear();
        self.context.extend_from_slice(context);
    }

    /// Returns the text that the offsets reported for `message` refer to.
    #[inline]
    #[must_use]
    pub fn text<'t>(&'t self, message: &FramedIsoMessage, buf: &'t [u8]) -> &'t [u8] {
        if message.context_bytes > 0 || message.is_recoded { &self.scratch } else { buf }
    }

    /// Returns the bytes of `message` after the context in which it stands.
    #[must_use]
    pub fn with_context<'t>(&'t self, message: &FramedIsoMessage, buf: &'t [u8]) -> &'t [u8] {
        match message.context_bytes {
            _ if message.is_recoded => &self.scratch,
            0 => message.span.slice(buf),
            n => &self.scratch[..n + message.span.len()],
        }
    }

    /// Reads the message at the start of `buf[offset..]`. `eof`: the input ends where `buf` ends. If it is a message,
    /// `visit` has been given its content; if not, discard what `visit` was given.
    pub fn next<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        offset: usize,
        eof: bool,
        visit: &mut V,
    ) -> NextIsoMessage {
        let mut offset = offset;
        loop {
            let step = if self.context.is_empty() {
                self.next_standalone(buf, offset, eof, visit)
            } else {
                self.in_context(buf, offset, eof, visit)
            };
            match step {
                Ok(next) => return next,
                Err(end) => offset = end,
            }
        }
    }

    /// Guesses where the last message of `buf` starts, from the first bytes of `buf`, so that a stream can be cut
    /// into blocks there. Returns the length of `buf` if it is longer than a message and holds no start.
    #[must_use]
    pub fn cut(&self, buf: &[u8]) -> usize {
        let document_start = skip_white(buf, 0);
        let head = match buf.get(document_start..) {
            Some(rest) if rest.starts_with(b"<") => {
                let name_end = rest[1..].iter().position(|b| is_white(*b) || matches!(b, b'>' | b'/'));
                &rest[..name_end.map_or(1, |n| n + 1)]
            }
            _ => &[][..],
        };
        let last_head = if head.len() > 1 {
            memchr::memmem::rfind(buf, head).filter(|n| *n > document_start)
        } else {
            None
        };
        let cut = last_head.or_else(|| memchr::memmem::rfind(buf, b"<?xml ")).unwrap_or(0);
        if cut == 0 && buf.len() > self.max_message { buf.len() } else { cut }
    }

    /// Reads a message that needs no context. `Err` has the offset to continue from.
    #[inline]
    fn next_standalone<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        offset: usize,
        eof: bool,
        visit: &mut V,
    ) -> Result<NextIsoMessage, usize> {
        let Some(message_start) = skip_to_message(buf, offset, eof) else {
            let message_start = skip_to_message(buf, offset, true).unwrap_or(buf.len()).min(buf.len());
            return Ok(NextIsoMessage::Incomplete { from: message_start, need: buf.len() + 1 });
        };
        let Some(&first) = buf.get(message_start) else {
            return Ok(if eof {
                NextIsoMessage::End
            } else {
                NextIsoMessage::Incomplete { from: message_start, need: message_start + 1 }
            });
        };
        let second = match buf.get(message_start + 1) {
            Some(second) => *second,
            None if eof => 0,
            None => return Ok(NextIsoMessage::Incomplete { from: message_start, need: message_start + 2 }),
        };
        let first_byte = Span { start: message_start, end: message_start + 1 };
        match (first, second) {
            (0xff, 0xfe) | (0xfe, 0xff) | (b'<', 0) | (0, b'<') => {
                return Ok(self.resync(buf, first_byte, eof, IsoFaultKind::Encoding("UTF-16")));
            }
            (b'<', b'/') => return Ok(self.resync(buf, first_byte, eof, IsoFaultKind::Garbage)),
            (b'<', _) => {}
            _ => return Ok(self.frame_garbage(buf, message_start, eof)),
        }
        let limit = message_start.saturating_add(self.max_message);
        let view = &buf[..buf.len().min(limit)];
        let is_final = eof && buf.len() < limit;
        let outcome = self.parser.parse(view, message_start, message_start, is_final, visit);
        match outcome {
            ParseOutcome::Message { end, open } => {
                if open {
                    self.parser.wrapper(buf, &mut self.context);
                }
                Ok(self.message(Span { start: message_start, end }, MessagePortion::All, 0))
            }
            ParseOutcome::Coded { end, open } => {
                let mut context = Vec::new();
                if open {
                    self.parser.wrapper(buf, &mut context);
                }
                self.context = context;
                self.scratch.clear();
                let span = Span { start: message_start, end };
                Ok(self.decode_and_reparse(buf, span, MessagePortion::All, 0, visit))
            }
            // A prolog of which the document is missing.
            ParseOutcome::Tail { end } if buf[message_start..].starts_with(b"<?xml") => {
                let fault = IsoFault { kind: IsoFaultKind::Truncated, offset: (end - message_start) as u32 };
                Ok(NextIsoMessage::Bad { span: Span { start: message_start, end }, fault })
            }
            ParseOutcome::Tail { end } => Err(end),
            ParseOutcome::Refused { fault, end, open } => {
                if open {
                    self.parser.wrapper(buf, &mut self.context);
                }
                Ok(bad_stretch(message_start, end, fault.kind, fault.offset as usize))
            }
            ParseOutcome::Bad(fault) => {
                let declaration = match self.parser.is_wrapped(buf) {
                    true => self.parser.unread_declaration(buf).to_vec(),
                    false => Vec::new(),
                };
                let next_message = self.refuse_message(buf, message_start, fault, eof);
                Ok(self.with_declaration(declaration, next_message))
            }
            ParseOutcome::Need if view.len() < limit => {
                Ok(NextIsoMessage::Incomplete { from: message_start, need: buf.len() + 1 })
            }
            ParseOutcome::Need => {
                let is_followed = self.parser.is_wrapped(buf) || self.parser.header_alone().is_some();
                let declaration = match is_followed {
                    true => self.parser.unread_declaration(buf).to_vec(),
                    false => Vec::new(),
                };
                let next_message =
                    self.at_limit(buf, Span { start: message_start, end: view.len() }, eof, visit);
                Ok(if declaration.is_empty() {
                    next_message
                } else {
                    self.with_declaration(declaration, next_message)
                })
            }
        }
    }

    /// Makes a declaration the context of the bytes after `next`, which is bad or waits for more bytes.
    fn with_declaration(&mut self, declaration: Vec<u8>, next: NextIsoMessage) -> NextIsoMessage {
        if !matches!(next, NextIsoMessage::Incomplete { .. }) {
            self.context = declaration;
        }
        next
    }

    /// Returns whether the context is a declaration without a wrapper.
    fn is_declaration_alone(&self) -> bool {
        self.context.starts_with(b"<?") && self.context.ends_with(b"?>")
    }

    /// Handles the input after a declaration that holds for the rest of a wrapper, if no element begins there.
    /// Returns `Ok(None)` if an element begins. `Err` has the offset to continue from without the declaration.
    fn behind_declaration(
        &mut self,
        buf: &[u8],
        offset: usize,
        eof: bool,
    ) -> Result<Option<NextIsoMessage>, usize> {
        const NEXT: &[u8] = b"<?xml";
        let Some(message_start) = skip_to_message(buf, offset, eof) else {
            return Ok(Some(NextIsoMessage::Incomplete { from: offset, need: buf.len() + 1 }));
        };
        let message_bytes = buf.get(message_start..).unwrap_or_default();
        let is_undecided =
            message_bytes.len() < 2 || message_bytes.len() <= NEXT.len() && NEXT.starts_with(message_bytes);
        if is_undecided && !eof {
            return Ok(Some(NextIsoMessage::Incomplete {
                from: message_start.min(buf.len()),
                need: buf.len() + 1,
            }));
        }
        if message_bytes.is_empty()
            || message_bytes.starts_with(NEXT) && message_bytes.get(NEXT.len()).is_none_or(|b| is_white(*b))
        {
            self.context.clear();
            return Err(message_start);
        }
        Ok(match message_bytes {
            [b'<', b'/', ..] => {
                let first_byte = Span { start: message_start, end: message_start + 1 };
                Some(self.resync(buf, first_byte, eof, IsoFaultKind::Garbage))
            }
            [b'<', ..] => None,
            _ => Some(self.frame_garbage(buf, message_start, eof)),
        })
    }

    /// Handles a message that does not end in the window, which has the maximum length of a message.
    #[cold]
    fn at_limit<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        window: Span,
        eof: bool,
        visit: &mut V,
    ) -> NextIsoMessage {
        let Span { start: from, end: limit } = window;
        if let Some(ParseOutcome::Message { end, .. }) = self.parser.header_alone() {
            return match (self.parser.characters(buf, from, end), self.parser.refusal()) {
                (_, Some(kind)) => bad_stretch(from, end, kind, end),
                (Ok(()), None) => self.message(Span { start: from, end }, MessagePortion::All, 0),
                (Err(fault), None) => bad_stretch(from, end, fault.kind, fault.offset as usize),
            };
        }
        let refusal = self.parser.refusal();
        let is_refused = refusal.is_some();
        let no_end = refusal.unwrap_or(IsoFaultKind::NoEnd { limit: self.max_message as u32 });
        match (self.parser.part_at, self.parser.unclosed) {
            (Some(end), _) if !is_refused && self.parser.is_coded(&buf[from..end]) => {
                if let Err(kind) = self.continue_part(&buf[from..end], from) {
                    return bad_stretch(from, limit, kind, from);
                }
                self.scratch.clear();
                let span = Span { start: from, end };
                self.decode_and_reparse(buf, span, MessagePortion::GoesOn, 0, visit)
            }
            (Some(end), _) if !is_refused => {
                let fault = self.parser.characters(buf, from, end).err();
                if fault.as_ref().is_some_and(|fault| self.parser.takes_fallback(fault)) {
                    if let Err(kind) = self.continue_part(&buf[from..end], from) {
                        return bad_stretch(from, limit, kind, from);
                    }
                    self.scratch.clear();
                    let span = Span { start: from, end };
                    return self.decode_and_reparse(buf, span, MessagePortion::GoesOn, 0, visit);
                }
                match (self.continue_part(&buf[from..end], from), fault) {
                    (Ok(()), None) => self.message(Span { start: from, end }, MessagePortion::GoesOn, 0),
                    (Ok(()), Some(fault)) => bad_stretch(from, end, fault.kind, fault.offset as usize),
                    (Err(kind), _) => bad_stretch(from, limit, kind, from),
                }
            }
            // The part that begins there may have swallowed its neighbours.
            (_, Some(unclosed)) => self.resync(buf, Span { start: from, end: unclosed + 1 }, eof, no_end),
            _ => bad_stretch(from, limit, no_end, from),
        }
    }

    pub(super) fn message(&self, span: Span, part: MessagePortion, context_bytes: usize) -> NextIsoMessage {
        let (part, goes_on) = (part != MessagePortion::All, part == MessagePortion::GoesOn);
        NextIsoMessage::Message(FramedIsoMessage {
            span,
            kind: self.parser.kind,
            is_part: part,
            goes_on,
            context_bytes,
            is_recoded: false,
        })
    }

    /// Reads a message inside a context, or a part of a message.
    #[cold]
    fn in_context<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        offset: usize,
        eof: bool,
        visit: &mut V,
    ) -> Result<NextIsoMessage, usize> {
        let has_wrapper = !self.is_declaration_alone();
        if !has_wrapper && let Some(next) = self.behind_declaration(buf, offset, eof)? {
            return Ok(next);
        }
        if offset >= buf.len() {
            if !eof {
                return Ok(NextIsoMessage::Incomplete { from: buf.len(), need: buf.len() + 1 });
            }
            self.context.clear();
            return Ok(bad_stretch(buf.len(), buf.len(), IsoFaultKind::Truncated, buf.len()));
        }
        let context_bytes = self.context.len();
        let view_length = self.max_message.min(buf.len() - offset);
        let mut chunk = CHUNK_BYTES.min(view_length);
        loop {
            self.scratch.clear();
            self.scratch.extend_from_slice(&self.context);
            self.scratch.extend_from_slice(&buf[offset..offset + chunk]);
            let is_final = eof && offset + chunk == buf.len() && chunk < self.max_message;
            let outcome = self.parser.parse(&self.scratch, 0, context_bytes, is_final, visit);
            let buffer_offset = |n: usize| offset + n.saturating_sub(context_bytes);
            match outcome {
                ParseOutcome::Message { end, open } => {
                    let is_last_part = self
                        .parser
                        .document_at()
                        .is_some_and(|document_offset| document_offset < context_bytes);
                    let part = if is_last_part { MessagePortion::Last } else { MessagePortion::All };
                    let end = buffer_offset(end);
                    self.context.clear();
                    if open {
                        self.parser.wrapper(&self.scratch, &mut self.context);
                    }
                    return Ok(self.message(Span { start: offset, end }, part, context_bytes));
                }
                ParseOutcome::Coded { end, open } => {
                    let is_last_part = self
                        .parser
                        .document_at()
                        .is_some_and(|document_offset| document_offset < context_bytes);
                    let part = if is_last_part { MessagePortion::Last } else { MessagePortion::All };
                    self.context.clear();
                    if open {
                        self.parser.wrapper(&self.scratch, &mut self.context);
                    }
                    let span = Span { start: offset, end: buffer_offset(end) };
                    return Ok(self.decode_and_reparse(buf, span, part, context_bytes, visit));
                }
                ParseOutcome::Tail { end } => {
                    self.context.clear();
                    return Err(buffer_offset(end));
                }
                ParseOutcome::Refused { fault, end, open } => {
                    if open || has_wrapper {
                        self.context.clear();
                    }
                    if open {
                        self.parser.wrapper(&self.scratch, &mut self.context);
                    }
                    return Ok(bad_stretch(
                        offset,
                        buffer_offset(end),
                        fault.kind,
                        buffer_offset(fault.offset as usize),
                    ));
                }
                ParseOutcome::Need if chunk < view_length => {
                    chunk = (chunk * 4).min(view_length);
                    continue;
                }
                ParseOutcome::Need if view_length < self.max_message => {
                    return Ok(NextIsoMessage::Incomplete { from: offset, need: buf.len() + 1 });
                }
                ParseOutcome::Bad(fault)
                    if fault.kind != IsoFaultKind::Truncated || !self.parts_at_end(is_final) =>
                {
                    let declaration = self.parser.unread_declaration(&self.scratch).to_vec();
                    let fault = IsoFault { offset: buffer_offset(fault.offset as usize) as u32, ..fault };
                    let next_message = self.refuse_message(buf, offset, fault, eof);
                    return Ok(self.with_declaration(declaration, next_message));
                }
                // It is not over at the limit; or the input ends where it may be parted, as a part does that is
                // tried again.
                ParseOutcome::Need | ParseOutcome::Bad(_) => {}
            }
            let part_end = self.parser.part_at.filter(|end| *end > context_bytes);
            let limit = offset + chunk;
            if let Some(kind) = self.parser.refusal() {
                self.context = self.parser.unread_declaration(&self.scratch).to_vec();
                return Ok(bad_stretch(offset, limit, kind, offset));
            }
            let Some(end) = part_end else {
                self.context.clear();
                let no_end = IsoFaultKind::NoEnd { limit: self.max_message as u32 };
                return Ok(
                    match self.parser.unclosed.filter(|unclosed_offset| *unclosed_offset >= context_bytes) {
                        Some(unclosed) => {
                            let bad_span = Span { start: offset, end: buffer_offset(unclosed) + 1 };
                            self.resync(buf, bad_span, eof, no_end)
                        }
                        None => bad_stretch(offset, limit, no_end, offset),
                    },
                );
            };
            let scratch = std::mem::take(&mut self.scratch);
            let mut coded = self.parser.is_coded(&scratch[context_bytes..end]);
            let fault = if coded { None } else { self.parser.characters(&scratch, context_bytes, end).err() };
            coded |= fault.as_ref().is_some_and(|fault| self.parser.takes_fallback(fault));
            let parted = self.continue_part(&scratch[..end], 0);
            self.scratch = scratch;
            let span = Span { start: offset, end: buffer_offset(end) };
            if coded && parted.is_ok() {
                return Ok(self.decode_and_reparse(buf, span, MessagePortion::GoesOn, context_bytes, visit));
            }
            return Ok(match (parted, fault) {
                (Ok(()), None) => self.message(span, MessagePortion::GoesOn, context_bytes),
                // The fault does not affect the parts after it.
                (Ok(()), Some(fault)) => {
                    bad_stretch(offset, buffer_offset(end), fault.kind, buffer_offset(fault.offset as usize))
                }
                (Err(kind), _) => {
                    self.context.clear();
                    bad_stretch(offset, limit, kind, offset)
                }
            });
        }
    }

    fn parts_at_end(&self, is_final: bool) -> bool {
        is_final && self.parser.part_at == Some(self.scratch.len())
    }

    /// Continues with a message of which a part was reported. It keeps the message's bytes without the reported
    /// elements and without the white space before them, or a million indented lines would be a context of megabytes.
    /// `text` is the message from its start, which was reported as being at `base`.
    fn continue_part(&mut self, text: &[u8], base: usize) -> Result<(), IsoFaultKind> {
        let mut context = Vec::new();
        let mut from = 0;
        let parted = &self.parser.closed_elements;
        for (n, span) in parted.iter().enumerate() {
            let (start, end) = (span.start - base, span.end - base);
            if end > text.len() {
                break;
            }
            context.extend_from_slice(text[from..start].trim_ascii_end());
            if n + 1 == parted.len() {
                // An empty one says that the first has been there.
                context.extend_from_slice(strip_tag_end(&text[start..end]));
                context.extend_from_slice(b"/>");
            }
            from = end;
        }
        if context.len() > self.max_message / 2 {
            return Err(IsoFaultKind::NoEnd { limit: self.max_message as u32 });
        }
        self.context = context;
        Ok(())
    }

    /// Applies rule 5: refuses a bad message.
    #[cold]
    fn refuse_message(&self, buf: &[u8], from: usize, fault: IsoFault, eof: bool) -> NextIsoMessage {
        let offset = fault.offset as usize;
        // The next message starts at the fault where it starts in one that is not over, or in place of the expected
        // one. After every other fault it starts later.
        let after =
            offset + usize::from(!matches!(fault.kind, IsoFaultKind::Truncated | IsoFaultKind::Expected(_)));
        let bad_span = Span { start: from, end: after.max(from + 1) };
        match self.resync(buf, bad_span, eof, fault.kind) {
            NextIsoMessage::Bad { span, .. } => {
                let fault = IsoFault { offset: offset.saturating_sub(from) as u32, ..fault };
                NextIsoMessage::Bad { span, fault }
            }
            next => next,
        }
    }

    /// Refuses the bytes of `bad` and the bytes after it, up to the start of the next message.
    #[cold]
    fn resync(&self, buf: &[u8], bad: Span, eof: bool, kind: IsoFaultKind) -> NextIsoMessage {
        let bad_start = bad.start;
        let limit = bad_start.saturating_add(self.max_message);
        let view = &buf[..buf.len().min(limit.saturating_add(LOOKAHEAD))];
        let is_final = eof && view.len() == buf.len();
        let garbage_end = match start_of_message(view, bad.end, limit, is_final) {
            DocumentStartOutcome::At(n) => n,
            DocumentStartOutcome::None if view.len() > limit || is_final => view.len().min(limit),
            DocumentStartOutcome::None | DocumentStartOutcome::Undecided => {
                if view.len() >= limit.saturating_add(LOOKAHEAD) {
                    limit
                } else {
                    return NextIsoMessage::Incomplete { from: bad_start, need: buf.len() + 1 };
                }
            }
        };
        NextIsoMessage::Bad {
            span: Span { start: bad_start, end: garbage_end },
            fault: IsoFault { kind, offset: 0 },
        }
    }

    /// Applies rule 6: refuses text where a tag must be.
    #[cold]
    fn frame_garbage(&self, buf: &[u8], from: usize, eof: bool) -> NextIsoMessage {
        let limit = from.saturating_add(self.max_message);
        let view = &buf[..buf.len().min(limit)];
        match memchr::memchr(b'<', &view[from..]).map(|n| from + n) {
            Some(n) => match buf.get(n + 1) {
                None if !eof => NextIsoMessage::Incomplete { from, need: buf.len() + 1 },
                Some(&b) if starts_name(b) || b == b'?' || b == b'!' => {
                    bad_stretch(from, n, IsoFaultKind::Garbage, from)
                }
                _ => self.resync(buf, Span { start: from, end: n }, eof, IsoFaultKind::Garbage),
            },
            None if view.len() == limit || eof => bad_stretch(from, view.len(), IsoFaultKind::Garbage, from),
            None => NextIsoMessage::Incomplete { from, need: buf.len() + 1 },
        }
    }
}

/// How much of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MessagePortion {
    All,
    GoesOn,
    Last,
}

pub(super) fn bad_stretch(start: usize, end: usize, kind: IsoFaultKind, offset: usize) -> NextIsoMessage {
    let fault = IsoFault { kind, offset: (offset - start) as u32 };
    NextIsoMessage::Bad { span: Span { start, end }, fault }
}

/// Returns a start tag up to, not including, its `>` or `/>`.
fn strip_tag_end(element: &[u8]) -> &[u8] {
    let mut quote = 0;
    for (n, &byte) in element.iter().enumerate() {
        match byte {
            b'"' | b'\'' if quote == 0 => quote = byte,
            _ if byte == quote => quote = 0,
            b'>' if quote == 0 => {
                let tag = &element[..n];
                return tag.strip_suffix(b"/").unwrap_or(tag);
            }
            _ => {}
        }
    }
    element
}

/// Finds the first byte that belongs to a message. Returns `None` if a byte order mark may be incomplete.
#[inline]
fn skip_to_message(buf: &[u8], mut offset: usize, eof: bool) -> Option<usize> {
    const MARK: &[u8] = &[0xef, 0xbb, 0xbf];
    loop {
        offset = skip_white(buf, offset);
        let bytes_after = buf.get(offset..).unwrap_or_default();
        if bytes_after.starts_with(MARK) {
            offset += MARK.len();
        } else if !eof && !bytes_after.is_empty() && MARK.starts_with(bytes_after) {
            return None;
        } else {
            return Some(offset);
        }
    }
}

enum DocumentStartOutcome {
    At(usize),
    None,
    Undecided,
}

/// Finds the first offset from `offset` on, before `limit`, that certainly starts a message.
#[cold]
fn start_of_message(view: &[u8], offset: usize, limit: usize, is_final: bool) -> DocumentStartOutcome {
    let view_end = view.len().min(limit);
    for n in memchr::memchr_iter(b'<', view.get(offset..view_end).unwrap_or_default()) {
        let tag_start = offset + n;
        match starts_message(&view[tag_start..]) {
            Some(true) => return DocumentStartOutcome::At(tag_start),
            Some(false) => {}
            None if is_final => {}
            None => return DocumentStartOutcome::Undecided,
        }
    }
    DocumentStartOutcome::None
}

/// Returns whether these bytes are an XML declaration or the tag of a header or document; `None` if more bytes
/// decide.
pub(super) fn starts_message(rest: &[u8]) -> Option<bool> {
    if rest.get(1)? == &b'?' {
        let declaration = b"<?xml";
        let n = rest.len().min(declaration.len());
        return if rest[..n] != declaration[..n] { Some(false) } else { Some(is_white(*rest.get(5)?)) };
    }
    let bytes_after = &rest[..rest.len().min(LOOKAHEAD)];
    let mut name_start = 1;
    let mut name_end = xml::name(bytes_after, name_start);
    if bytes_after.get(name_end) == Some(&b':') {
        name_start = name_end + 1;
        name_end = xml::name(bytes_after, name_start);
    }
    let next_byte = match bytes_after.get(name_end) {
        Some(byte) => *byte,
        None if bytes_after.len() == LOOKAHEAD => return Some(false),
        None => return None,
    };
    let word = &bytes_after[name_start..name_end];
    Some(matches!(word, b"Document" | b"AppHdr") && (is_white(next_byte) || matches!(next_byte, b'>' | b'/')))
}

/// Bytes after the limit that may decide whether a message starts before it.
const LOOKAHEAD: usize = 128;

/// How much of a context is read at first.
const CHUNK_BYTES: usize = 16 << 10;
