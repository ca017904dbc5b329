//! Framing: where the messages of a stream of bytes start and end, and what lies between them.
//!
//! ```text
//! {1:F01BANKBEBBAXXX…}{2:I103BANKDEFFXXXXN}{3:{108:REF}}{4:⏎:20:…⏎-}{5:{CHK:…}}$⏎{1:…
//! ╰── block 1 ───────╯╰── block 2 ────────╯╰─ block 3 ─╯╰─ the text ──╯╰─ block 5 ─╯ separator
//!
//! ABNANL2A⏎940⏎ABNANL2A⏎:20:…⏎:25:…⏎:62F:…⏎-⏎:20:…
//! ╰── preface ─────────╯╰── a bare body ────╯ ╰── the next
//! ```
//!
//! The answer for a position depends only on the bytes from there on, never on where the buffer happens to
//! end: if bytes not yet there could change it, it is [`NextSwiftFrame::Incomplete`]. At most
//! [`SwiftFramer::max_message`] bytes (and a few more) are waited for.
//!
//! # The rules
//!
//! 1. **Between messages** line ends, blanks, `$` (files of the type RJE), the bytes 1 and 3 (DOS-PCC) and a
//!    byte order mark are skipped.
//! 2. A **message with an envelope** starts with `{1:`. Its blocks follow in any order, each once, blocks `1`
//!    to `5` and `S`; line ends may be between them up to the text, block 4. Blocks 5 and S
//!    follow right after the text, each on one line, or the message is over: its text is there, and the rest of
//!    a broken trailer is garbage.
//! 3. The **text** ends with the first `-}`. A text that starts with `{` is blocks in blocks, as service and
//!    system messages have it, maybe after line ends: it ends with its closing brace; a text inside it ends with `-}`
//!    again.
//! 4. An **acknowledgement** (`{1:F21…}{4:{177:…}{451:0}}`) with a message right after it is the head of that
//!    message, [`FramedSwiftMessage::ack`]; alone it is a message.
//! 5. If a message starts inside another's text or blocks, the outer one is bad (`truncated`) and ends there. If
//!    its blocks are wrong it is bad (`bad_block`) and ends before the next `{1:`, or at the end of the input.
//! 6. A **bare body** starts with a line `:tag:…`. It ends with a line `-` (or `-XXX`), the byte 3 after it or not,
//!    after `-}`, before a line `$`, before `{1:`, before the next `:20:` if it has one already or has fields of a
//!    statement, and at the end of the input.
//! 7. Up to [`PREFACE_LINES`] other lines, without braces and not more than [`PREFACE_BYTES`], right before a
//!    bare body are its **preface**: banks write their name and the type there.
//! 8. Everything else is **garbage** up to the next start, and not beyond `-}`. If it has braces it is the rest
//!    of a message with an envelope: then its fields start nothing before `-}`, a line `-` or `{1:`.

use super::bare;
use super::blocks::{self, EnvelopeScanOutcome};
use super::fault::SwiftFault;
use super::tokens::{SwiftFieldTokenizer, SwiftTag, sub_blocks};
use super::usual_shape;
use unitape_base::{NextFrame, Span};

/// The next frame of the input. Bytes between the position asked for and the start of a span are separators; the next
/// position to ask for is the end of the span.
pub type NextSwiftFrame = NextFrame<FramedSwiftMessage, SwiftFault>;

/// How a message is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnvelopeForm {
    /// In blocks.
    #[default]
    Envelope,
    /// The fields of block 4 alone.
    Bare,
}

/// Where a message and its parts are. All offsets are into the framed buffer. The span of a block is the part between
/// `{4:` and `}`; a span that starts at 0 is of an absent block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FramedSwiftMessage {
    /// All of it, acknowledgement, preface and terminator included.
    pub span: Span,
    /// With or without envelope.
    pub form: EnvelopeForm,
    /// The acknowledgement in front, all its blocks.
    pub ack: Span,
    /// Lines in front of a bare body.
    pub preface: Span,
    /// Blocks 1, 2, 3, 4, 5 and S; for a bare body 4 alone: all fields, without the terminator.
    pub blocks: [Span; 6],
}

impl FramedSwiftMessage {
    /// Returns the content of a block, 1 to 5, or 6 for S; `None` if the message lacks the block.
    #[inline]
    #[must_use]
    pub fn block(&self, number: usize) -> Option<Span> {
        let span = *self.blocks.get(number.checked_sub(1)?)?;
        let bare = self.form == EnvelopeForm::Bare && number == 4;
        (span.start > 0 || bare).then_some(span)
    }

    /// Returns whether the acknowledgement in front of the message refuses it (`451:1`, NAK); `None` without an
    /// acknowledgement.
    #[must_use]
    pub fn is_refused(&self, buf: &[u8]) -> Option<bool> {
        if self.ack.is_empty() {
            return None;
        }
        let blocks = self.ack.slice(buf);
        let block4 = sub_blocks(blocks).find(|token| token.tag == SwiftTag::new(b"4"));
        let content = block4.map_or(&[][..], |token| token.slice(blocks));
        Some(sub_blocks(content).any(|t| t.tag == SwiftTag::new(b"451") && t.slice(content) != b"0"))
    }

    /// Finds day and time in an acknowledgement, in front of the message or alone (`177`, `YYMMDDHHMM`).
    #[must_use]
    pub fn acknowledged(&self, buf: &[u8]) -> Option<Span> {
        let (from, content) = if self.ack.is_empty() {
            let text = self.text();
            // Fields of an ordinary text may hold braces.
            (text.start, Some(text.slice(buf)).filter(|t| t.trim_ascii_start().starts_with(b"{"))?)
        } else {
            let blocks = self.ack.slice(buf);
            let block4 = sub_blocks(blocks).find(|token| token.tag == SwiftTag::new(b"4"))?;
            (self.ack.start + block4.start as usize, block4.slice(blocks))
        };
        let time = sub_blocks(content).find(|token| token.tag == SwiftTag::new(b"177"))?;
        Some(Span { start: from + time.start as usize, end: from + time.end as usize })
    }

    /// Returns the text, which is the content of block 4.
    #[inline]
    #[must_use]
    pub fn text(&self) -> Span {
        self.blocks[3]
    }
}

/// Lines of a preface, at most.
pub const PREFACE_LINES: usize = 8;

/// Bytes of a preface, at most.
pub const PREFACE_BYTES: usize = 1024;

/// Bytes after a place that may decide what starts there: `{4:{`, a tag line's head.
pub(super) const LOOKAHEAD: usize = 24;

/// Finds messages. Holds no state of a stream: every call is independent.
///
/// ```
/// use unitape_codec::swift_mt::{NextSwiftFrame, SwiftFramer};
///
/// let framer = SwiftFramer::default();
/// let file = b"{1:F01AAAABEBBAXXX0000000000}{2:I103BBBBDEFFXXXXN}{4:\r\n:20:REF\r\n-}$junk";
/// let NextSwiftFrame::Message(message) = framer.frame(file, 0, true) else { panic!() };
/// assert_eq!(message.text().slice(file), b"\r\n:20:REF\r\n");
/// let NextSwiftFrame::Bad { span, .. } = framer.frame(file, message.span.end, true) else { panic!() };
/// assert_eq!(span.slice(file), b"junk");
/// ```
#[derive(Debug, Clone)]
pub struct SwiftFramer {
    max_message: usize,
}

impl Default for SwiftFramer {
    /// Messages up to 1 MiB.
    fn default() -> Self {
        SwiftFramer { max_message: 1 << 20 }
    }
}

impl SwiftFramer {
    /// Sets the maximum length of a message in bytes, clamped to 64 bytes at least and 256 MiB at most.
    #[must_use]
    pub fn with_max_message(self, max_message: usize) -> Self {
        SwiftFramer { max_message: max_message.clamp(64, 256 << 20) }
    }

    /// Returns the maximum length of a message, in bytes.
    #[must_use]
    pub const fn max_message(&self) -> usize {
        self.max_message
    }

    /// Finds the frame at `buf[offset..]`. `eof`: the input ends where `buf` ends.
    #[inline]
    #[must_use]
    pub fn frame(&self, buf: &[u8], offset: usize, eof: bool) -> NextSwiftFrame {
        let Some(message_start) = skip_separators(buf, offset, eof) else {
            let message_start = skip_separators(buf, offset, true).unwrap_or(buf.len());
            return NextSwiftFrame::Incomplete { from: message_start, need: buf.len() + 1 };
        };
        let Some(&first) = buf.get(message_start) else {
            return if eof {
                NextSwiftFrame::End
            } else {
                NextSwiftFrame::Incomplete { from: message_start, need: message_start + 1 }
            };
        };
        let window = self.frame_window(buf, message_start, eof);
        let view = window.view;
        match first {
            b'{' => match starts_message(view, message_start) {
                Some(true) => self.frame_envelope(&window),
                Some(false) => self.frame_loose(&window),
                None if window.is_final => self.frame_loose(&window),
                None => self.frame_undecided(&window),
            },
            b':' => match bare::starts(view, message_start) {
                Some(true) => self.frame_bare(&window, message_start),
                Some(false) => self.frame_loose(&window),
                None if window.is_final => self.frame_loose(&window),
                None => self.frame_undecided(&window),
            },
            _ => self.frame_loose(&window),
        }
    }

    /// Frames a message like [`SwiftFramer::frame`] and reads its fields; `None` if it does not have the usual shape.
    #[inline]
    pub(super) fn frame_usual_shape(
        &self,
        buf: &[u8],
        offset: usize,
        eof: bool,
        fields: &mut SwiftFieldTokenizer,
    ) -> Option<FramedSwiftMessage> {
        let SwiftFieldTokenizer { tokens, delimiter_offsets: places, kernel } = fields;
        let w = self.frame_window(buf, skip_separators(buf, offset, eof)?, eof);
        let message = usual_shape::message(*kernel, w.view, w.message_start, w.is_final, places, tokens)?;
        (message.span.end <= w.message_limit).then_some(message)
    }

    /// Returns the bytes that a message starting at `from` may have.
    #[inline]
    fn frame_window<'w>(&self, buf: &'w [u8], from: usize, eof: bool) -> FrameWindow<'w> {
        // Bytes beyond the limit may be looked at, so that a start at the limit is seen, but are not waited for.
        let limit = from.saturating_add(self.max_message);
        let view = &buf[..buf.len().min(limit.saturating_add(LOOKAHEAD))];
        // An input that ends where the view does is not known to end before it: a longer one looks the same.
        let is_final = eof && buf.len() < limit.saturating_add(LOOKAHEAD);
        FrameWindow { message_start: from, message_limit: limit, is_final, view }
    }

    /// Returns where the last message in `buf` starts, so that a stream can be cut into blocks there; 0 if no message
    /// starts in `buf`. It is a guess: bytes inside a text may look like a start.
    #[must_use]
    pub fn cut(&self, buf: &[u8]) -> usize {
        blocks::last_start(buf).or_else(|| bare::last_start(buf)).unwrap_or(0)
    }

    fn frame_envelope(&self, w: &FrameWindow<'_>) -> NextSwiftFrame {
        match blocks::scan(w.view, w.message_start, w.is_final) {
            EnvelopeScanOutcome::Done(message) if message.span.end <= w.message_limit => {
                match fields_start(&message, w.view) {
                    Ok(()) => NextSwiftFrame::Message(message),
                    Err(fault) => NextSwiftFrame::Bad { span: message.span, fault },
                }
            }
            EnvelopeScanOutcome::Next(next) if next <= w.message_limit => NextSwiftFrame::Bad {
                span: Span { start: w.message_start, end: next },
                fault: SwiftFault::Truncated,
            },
            EnvelopeScanOutcome::Bad { fault, offset } if offset < w.message_limit => {
                self.resync(w, fault, offset)
            }
            EnvelopeScanOutcome::Need => self.frame_undecided(w),
            EnvelopeScanOutcome::Done(_) | EnvelopeScanOutcome::Next(_) | EnvelopeScanOutcome::Bad { .. } => {
                self.no_end(w)
            }
        }
    }

    fn frame_bare(&self, w: &FrameWindow<'_>, first: usize) -> NextSwiftFrame {
        match bare::scan(w.view, w.message_start, first, w.is_final) {
            Some(message) if message.span.end <= w.message_limit => NextSwiftFrame::Message(message),
            Some(_) => self.no_end(w),
            // A body without an end before the limit is cut off there, as it is if more is to come.
            None => self.frame_undecided(w),
        }
    }

    /// Handles bytes that start neither a message nor a body: a preface, or garbage.
    #[cold]
    fn frame_loose(&self, w: &FrameWindow<'_>) -> NextSwiftFrame {
        match bare::check_preface(w.view, w.message_start, w.is_final) {
            bare::PrefaceVerdict::Preface(first) if first < w.message_limit => self.frame_bare(w, first),
            bare::PrefaceVerdict::Garbage(end) if end <= w.message_limit => {
                NextSwiftFrame::Bad { span: Span { start: w.message_start, end }, fault: SwiftFault::Garbage }
            }
            bare::PrefaceVerdict::Need if !w.is_final && w.view.len() < w.message_limit + LOOKAHEAD => {
                NextSwiftFrame::Incomplete { from: w.message_start, need: w.view.len() + 1 }
            }
            _ => {
                let end = w.view.len().min(w.message_limit);
                NextSwiftFrame::Bad { span: Span { start: w.message_start, end }, fault: SwiftFault::Garbage }
            }
        }
    }

    /// Applies rule 5: the message is bad from `offset` on, so this finds the start of the next message.
    #[cold]
    fn resync(&self, w: &FrameWindow<'_>, fault: SwiftFault, offset: usize) -> NextSwiftFrame {
        let next_start = memchr::memmem::find(&w.view[offset..], b"{1:").map(|n| offset + n);
        match next_start {
            Some(end) if end <= w.message_limit => {
                NextSwiftFrame::Bad { span: Span { start: w.message_start, end }, fault }
            }
            None if !w.is_final && w.view.len() < w.message_limit + LOOKAHEAD => {
                NextSwiftFrame::Incomplete { from: w.message_start, need: w.view.len() + 1 }
            }
            _ => {
                let end = w.view.len().min(w.message_limit);
                NextSwiftFrame::Bad { span: Span { start: w.message_start, end }, fault }
            }
        }
    }

    /// Handles bytes that do not decide yet.
    #[cold]
    fn frame_undecided(&self, w: &FrameWindow<'_>) -> NextSwiftFrame {
        if w.view.len() >= w.message_limit + LOOKAHEAD || (w.is_final && w.view.len() > w.message_limit) {
            return self.no_end(w);
        }
        if w.is_final {
            return NextSwiftFrame::Bad {
                span: Span { start: w.message_start, end: w.view.len() },
                fault: SwiftFault::Truncated,
            };
        }
        NextSwiftFrame::Incomplete { from: w.message_start, need: w.view.len() + 1 }
    }

    #[cold]
    fn no_end(&self, w: &FrameWindow<'_>) -> NextSwiftFrame {
        let fault = SwiftFault::NoEnd { limit: self.max_message as u32 };
        NextSwiftFrame::Bad {
            span: Span { start: w.message_start, end: w.message_limit.min(w.view.len()) },
            fault,
        }
    }
}

/// The part of the buffer that a message may take.
struct FrameWindow<'w> {
    view: &'w [u8],
    message_start: usize,
    /// No message reaches beyond.
    message_limit: usize,
    /// The input ends where `view` ends.
    is_final: bool,
}

/// Returns whether `{1:` is at `offset`; `None` if the buffer ends before that is known.
#[inline]
pub(super) fn starts_message(buf: &[u8], offset: usize) -> Option<bool> {
    let head_bytes = &buf[offset..buf.len().min(offset + 3)];
    match head_bytes == &b"{1:"[..head_bytes.len()] {
        true if head_bytes.len() < 3 => None,
        equal => Some(equal),
    }
}

/// Finds the first byte at or after `offset` that is no separator; `None` if a byte order mark may be incomplete.
#[inline]
fn skip_separators(buf: &[u8], mut offset: usize, eof: bool) -> Option<usize> {
    loop {
        match buf.get(offset) {
            Some(b'\r' | b'\n' | b' ' | b'\t' | b'$' | 1 | 3) => offset += 1,
            Some(0xef) => {
                let mark = &buf[offset..buf.len().min(offset + 3)];
                if mark == b"\xef\xbb\xbf" {
                    offset += 3;
                } else if !eof && mark == &b"\xef\xbb\xbf"[..mark.len()] {
                    return None;
                } else {
                    return Some(offset);
                }
            }
            _ => return Some(offset),
        }
    }
}

/// Checks that the text of a message with an envelope is empty, starts with a field, or consists of sub-blocks.
#[inline]
fn fields_start(message: &FramedSwiftMessage, buf: &[u8]) -> Result<(), SwiftFault> {
    let text = message.text();
    let blank = text.slice(buf).iter().take_while(|b| matches!(b, b'\r' | b'\n' | b' ' | b'\t')).count();
    let content_start = text.start + blank;
    if content_start >= text.end
        || buf[content_start] == b'{'
        || bare::tag_at(&buf[..text.end], content_start).is_some()
    {
        return Ok(());
    }
    Err(SwiftFault::TextBeforeTag { offset: (content_start - message.span.start) as u32 })
}
