//! Messages that declare another encoding than UTF-8: decoded, and read once more.

use super::charset::DocumentCharset;
use super::frame::{FramedIsoMessage, Iso20022Decoder, MessagePortion, NextIsoMessage, bad_stretch};
use super::parse::{ElementVisitor, ParseOutcome};
use super::{IsoFault, IsoFaultKind};
use unitape_base::Span;

impl<M: Copy + Default> Iso20022Decoder<M> {
    /// Decodes and reparses a message, or a part of one, that declares another encoding. `scratch` must hold the
    /// context, of `live` bytes.
    #[cold]
    pub(super) fn decode_and_reparse<V: ElementVisitor<Mark = M>>(
        &mut self,
        buf: &[u8],
        span: Span,
        part: MessagePortion,
        live: usize,
        visit: &mut V,
    ) -> NextIsoMessage {
        let mut text = std::mem::take(&mut self.scratch);
        text.truncate(live);
        let Some(charset) = self.parser.charset else {
            unreachable!("bytes are coded in a set that is known")
        };
        self.charset_note.clear();
        match charset {
            DocumentCharset::Declared { .. } => {}
            DocumentCharset::Unknown => {
                self.charset_note.push_str("unknown ");
                self.charset_note.push_str(&self.parser.unknown_charset);
            }
            DocumentCharset::Undeclared(fallback) => {
                self.charset_note.push_str(fallback.note().unwrap_or_default())
            }
        }
        if let Err(fault) = charset.decode(&buf[span.start..span.end], &mut text) {
            return bad_stretch(span.start, span.end, fault.kind, span.start + fault.offset as usize);
        }
        let end = text.len();
        // The next message ended this one, or nothing did.
        if part != MessagePortion::GoesOn {
            text.extend_from_slice(b"<AppHdr/>");
        }
        self.parser.is_recoded = true;
        let outcome = self.parser.parse(&text, 0, live, part != MessagePortion::GoesOn, visit);
        let fault = match outcome {
            ParseOutcome::Need if part == MessagePortion::GoesOn => {
                self.parser.characters(&text, live, end).err()
            }
            ParseOutcome::Message { end: message_end, .. } if message_end == end => None,
            ParseOutcome::Bad(fault) | ParseOutcome::Refused { fault, .. } => Some(fault),
            _ => Some(IsoFault { kind: IsoFaultKind::Truncated, offset: end as u32 }),
        };
        self.parser.is_recoded = false;
        text.truncate(end);
        self.scratch = text;
        match (fault, self.message(span, part, live)) {
            // A place in decoded text is none in the bytes.
            (Some(fault), _) => bad_stretch(span.start, span.end, fault.kind, span.start),
            (None, NextIsoMessage::Message(message)) => {
                NextIsoMessage::Message(FramedIsoMessage { is_recoded: true, ..message })
            }
            (None, next) => next,
        }
    }
}
