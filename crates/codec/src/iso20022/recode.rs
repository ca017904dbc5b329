//! Messages that declare another encoding than UTF-8: decoded, and read once more.

use super::frame::{Decoder, Message, Next, Part, told};
use super::parse::{Outcome, Visit};
use super::{Fault, What};

impl<M: Copy + Default> Decoder<M> {
    /// A message, or a part of one, that declares another encoding: its bytes are decoded and read again. `scratch` holds
    /// the context, of `live` bytes.
    #[cold]
    pub(super) fn recoded<V: Visit<Mark = M>>(
        &mut self,
        (raw, at): (&[u8], usize),
        part: Part,
        live: usize,
        visit: &mut V,
    ) -> Next {
        let span = (at, at + raw.len());
        let mut text = std::mem::take(&mut self.scratch);
        text.truncate(live);
        let Some(charset) = self.parser.charset else {
            unreachable!("bytes are coded in a set that is known")
        };
        if let Err(fault) = charset.decode(raw, &mut text) {
            return told(span.0, span.1, fault.what, at + fault.at as usize);
        }
        let end = text.len();
        // What ended the message is the next one, or nothing.
        if part != Part::GoesOn {
            text.extend_from_slice(b"<AppHdr/>");
        }
        self.parser.recoded = true;
        let outcome = self.parser.parse(&text, 0, live, part != Part::GoesOn, visit);
        let fault = match outcome {
            Outcome::Need if part == Part::GoesOn => self.parser.characters(&text, live, end).err(),
            Outcome::Message { end: over, .. } if over == end => None,
            Outcome::Bad(fault) | Outcome::Refused { fault, .. } => Some(fault),
            _ => Some(Fault { what: What::Truncated, at: end as u32 }),
        };
        self.parser.recoded = false;
        text.truncate(end);
        self.scratch = text;
        match (fault, self.message(span, part, live)) {
            // A place in decoded text is none in the bytes.
            (Some(fault), _) => told(span.0, span.1, fault.what, at),
            (None, Next::Message(message)) => Next::Message(Message { recoded: true, ..message }),
            (None, next) => next,
        }
    }
}
