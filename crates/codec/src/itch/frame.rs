//! Messages out of a stream of bytes, and the way back into it after bytes that are none.
//!
//! Three bytes say where a message ends: its length, and its type, which has that length or is wrong. Where they
//! disagree the length is believed when a message begins after it; otherwise the next place is looked for from
//! which two messages follow each other.

use super::fault::{ItchFault, ItchFaultCode};
use super::message::size_of_type;
use unitape_base::{NextFrame, Span};

/// How messages are separated in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ItchTransport {
    /// A length of two bytes before each, as in NASDAQ's files; a length of 0 ends a session.
    #[default]
    Length,
    /// Packets of SoupBinTCP: length, packet type, and in those of type `S` one message.
    Soup,
}

/// The next frame of the input. Skipped bytes are a control packet of the framing: the end of a session, a heartbeat.
pub type NextItchFrame = NextFrame<FramedItchMessage, ItchFault, Span>;

/// A message in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramedItchMessage {
    /// The message with its length and packet type.
    pub span: Span,
    /// Its type byte.
    pub type_offset: usize,
}

impl FramedItchMessage {
    /// Returns the message, from its type byte on.
    #[inline]
    #[must_use]
    pub fn body(self, buf: &[u8]) -> &[u8] {
        buf.get(self.type_offset..self.span.end).unwrap_or_default()
    }
}

/// Bytes that are no message are reported in pieces of this size, at most.
pub const GARBAGE_BYTES_MAX: usize = 64 << 10;

/// The maximum length that is believed if the type contradicts it: the messages that later versions add are short
/// too.
const BELIEVED_BYTES_MAX: usize = 512;

/// Bytes of the head that all messages have.
const HEAD_BYTES: usize = 11;

/// Finds messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct ItchFramer {
    /// How they are separated.
    pub framing: ItchTransport,
}

/// The meaning of the first bytes at a place.
enum FrameProbeOutcome {
    /// A message, or a control packet of the framing, that ends there.
    Good { end: usize, type_offset: usize, control: bool },
    /// Nothing that may be.
    Bad,
    /// A decision needs a buffer of this length.
    Need(usize),
}

impl ItchFramer {
    /// Makes a framer for this framing.
    #[must_use]
    pub fn new(framing: ItchTransport) -> Self {
        Self { framing }
    }

    /// Finds the frame at `offset`; `eof` must be true if no more bytes follow `buf`.
    #[inline]
    #[must_use]
    pub fn frame(&self, buf: &[u8], offset: usize, eof: bool) -> NextItchFrame {
        match self.check_head(buf, offset) {
            FrameProbeOutcome::Good { end, type_offset: body, control: false } if end <= buf.len() => {
                NextItchFrame::Message(FramedItchMessage {
                    span: Span { start: offset, end },
                    type_offset: body,
                })
            }
            head => self.frame_unusual(buf, offset, eof, head),
        }
    }

    /// Guesses an offset in `buf` with only whole messages before it; `buf` must begin at a message. A chain of
    /// messages near the end shows the offset; without one, the search starts at the beginning.
    #[must_use]
    pub fn cut(&self, buf: &[u8]) -> usize {
        let tail_start = buf.len().saturating_sub(TAIL_BYTES);
        if tail_start > 0 {
            for start in tail_start..(tail_start + LOOK_BYTES).min(buf.len()) {
                let (mut offset, mut chain) = (start, 0);
                loop {
                    match self.check_head(buf, offset) {
                        FrameProbeOutcome::Good { end, .. } if end <= buf.len() => {
                            (offset, chain) = (end, chain + 1)
                        }
                        FrameProbeOutcome::Bad => break,
                        _ if chain >= CHAIN => return offset,
                        _ => break,
                    }
                }
            }
        }
        let mut offset = 0;
        loop {
            offset = match self.frame(buf, offset, false) {
                NextItchFrame::Message(message) => message.span.end,
                NextItchFrame::Skipped(span) | NextItchFrame::Bad { span, .. } => span.end,
                NextItchFrame::Incomplete { from, .. } => return from,
                NextItchFrame::End => return buf.len(),
            };
        }
    }

    /// Walks the messages from `offset` until `upto` is passed, and gives `each` the order references that they name.
    /// The caller can thus prefetch the orders. Returns the offset where it ended: the next call must continue there.
    #[inline]
    pub fn look_ahead(&self, buf: &[u8], mut offset: usize, upto: usize, mut each: impl FnMut(u64)) -> usize {
        while offset < upto {
            match self.check_head(buf, offset) {
                FrameProbeOutcome::Good { end, type_offset: body, control: false } if end <= buf.len() => {
                    let message = &buf[body..end];
                    if matches!(message[0], b'A' | b'D' | b'E' | b'F' | b'C' | b'U' | b'X')
                        && let Some(order) = message[11..].first_chunk()
                    {
                        each(u64::from_be_bytes(*order));
                    }
                    offset = end;
                }
                _ => break,
            }
        }
        offset
    }

    #[inline]
    fn check_head(&self, buf: &[u8], offset: usize) -> FrameProbeOutcome {
        match self.framing {
            ItchTransport::Length => match buf.get(offset..offset + 3) {
                Some(&[high, low, letter]) => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    match length == size_of_type(letter) && length > 0 {
                        true => FrameProbeOutcome::Good {
                            end: offset + 2 + length,
                            type_offset: offset + 2,
                            control: false,
                        },
                        false => FrameProbeOutcome::Bad,
                    }
                }
                _ => FrameProbeOutcome::Need(offset + 3),
            },
            ItchTransport::Soup => check_soup_head(buf, offset),
        }
    }

    #[cold]
    fn frame_unusual(&self, buf: &[u8], offset: usize, eof: bool, head: FrameProbeOutcome) -> NextItchFrame {
        let bytes_left = buf.len() - offset.min(buf.len());
        let truncated = || {
            let fault = ItchFault {
                stated_length: stated_length(buf, offset),
                ..ItchFault::from_code(ItchFaultCode::Truncated, 0, "")
            };
            NextItchFrame::Bad { span: Span { start: offset, end: buf.len() }, fault }
        };
        match head {
            FrameProbeOutcome::Good { end, type_offset: body, control } if end <= buf.len() => {
                let span = Span { start: offset, end };
                if control {
                    NextItchFrame::Skipped(span)
                } else {
                    NextItchFrame::Message(FramedItchMessage { span, type_offset: body })
                }
            }
            FrameProbeOutcome::Good { end, .. } => match eof {
                true => truncated(),
                false => NextItchFrame::Incomplete { from: offset, need: end },
            },
            FrameProbeOutcome::Need(_) if bytes_left == 0 && eof => NextItchFrame::End,
            FrameProbeOutcome::Need(need) if !eof => NextItchFrame::Incomplete { from: offset, need },
            FrameProbeOutcome::Need(_)
                if self.framing == ItchTransport::Length && buf[offset..] == [0, 0] =>
            {
                NextItchFrame::Skipped(Span { start: offset, end: buf.len() })
            }
            FrameProbeOutcome::Need(_) => truncated(),
            FrameProbeOutcome::Bad => self.resync(buf, offset, eof),
        }
    }

    /// Finds the next message after the bad bytes at `offset`.
    fn resync(&self, buf: &[u8], offset: usize, eof: bool) -> NextItchFrame {
        let stated = stated_length(buf, offset);
        let letter = match self.framing {
            ItchTransport::Length => buf[offset + 2],
            ItchTransport::Soup => buf.get(offset + 3).copied().unwrap_or(0),
        };
        let bad_frame = |end, code| {
            let fault = ItchFault { stated_length: stated, ..ItchFault::from_code(code, letter, "") };
            NextItchFrame::Bad { span: Span { start: offset, end }, fault }
        };
        let stated_end = offset + 2 + usize::from(stated);
        let code =
            if size_of_type(letter) > 0 { ItchFaultCode::BadLength } else { ItchFaultCode::UnknownType };
        let ends_session = self.framing == ItchTransport::Length && stated == 0;
        if ends_session || (HEAD_BYTES..=BELIEVED_BYTES_MAX).contains(&usize::from(stated)) {
            match self.message_begins(buf, stated_end, eof) {
                Ok(true) if ends_session => {
                    return NextItchFrame::Skipped(Span { start: offset, end: stated_end });
                }
                Ok(true) => return bad_frame(stated_end, code),
                Ok(false) => {}
                Err(need) => return NextItchFrame::Incomplete { from: offset, need },
            }
        }
        for candidate in offset + 1.. {
            if candidate - offset >= GARBAGE_BYTES_MAX {
                return bad_frame(candidate, ItchFaultCode::Garbage);
            }
            let message_end = match self.check_head(buf, candidate) {
                FrameProbeOutcome::Good { end, .. } => end,
                FrameProbeOutcome::Bad => continue,
                FrameProbeOutcome::Need(need) if !eof => {
                    return NextItchFrame::Incomplete { from: offset, need };
                }
                FrameProbeOutcome::Need(_) => break,
            };
            match self.message_begins(buf, message_end, eof) {
                Ok(true) => {
                    return bad_frame(
                        candidate,
                        if code == ItchFaultCode::BadLength { code } else { ItchFaultCode::Garbage },
                    );
                }
                Ok(false) => {}
                Err(need) => return NextItchFrame::Incomplete { from: offset, need },
            }
        }
        bad_frame(buf.len(), if code == ItchFaultCode::BadLength { code } else { ItchFaultCode::Garbage })
    }

    /// Returns whether a message begins or the input ends at `offset`. `Err` has the end of the input that is needed
    /// to decide.
    fn message_begins(&self, buf: &[u8], offset: usize, eof: bool) -> Result<bool, usize> {
        match self.check_head(buf, offset) {
            FrameProbeOutcome::Good { .. } => Ok(true),
            FrameProbeOutcome::Bad => Ok(false),
            FrameProbeOutcome::Need(need) if !eof => Err(need),
            FrameProbeOutcome::Need(_) => Ok(offset == buf.len()),
        }
    }
}

/// Reads the length at `offset`.
fn stated_length(buf: &[u8], offset: usize) -> u16 {
    buf.get(offset..offset + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

/// Checks the head of a SoupBinTCP packet.
fn check_soup_head(buf: &[u8], offset: usize) -> FrameProbeOutcome {
    let Some(&[high, low, packet]) = buf.get(offset..offset + 3) else {
        return FrameProbeOutcome::Need(offset + 3);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let good = match packet {
        b'S' => match buf.get(offset + 3) {
            None if length > 1 => return FrameProbeOutcome::Need(offset + 4),
            None => false,
            Some(letter) => {
                return match length > 1 && length - 1 == size_of_type(*letter) {
                    true => FrameProbeOutcome::Good {
                        end: offset + 2 + length,
                        type_offset: offset + 3,
                        control: false,
                    },
                    false => FrameProbeOutcome::Bad,
                };
            }
        },
        // Heartbeats of server and client, end of session, logout.
        b'H' | b'R' | b'Z' | b'O' => length == 1,
        // Login accepted: session and next number.
        b'A' => length == 31,
        b'J' => length == 2,
        b'L' => length == 47,
        b'+' => (1..=BELIEVED_BYTES_MAX).contains(&length),
        _ => false,
    };
    if good {
        FrameProbeOutcome::Good { end: offset + 2 + length, type_offset: offset + 3, control: true }
    } else {
        FrameProbeOutcome::Bad
    }
}

/// Bytes at the end of a buffer in which we look for a chain of messages …
const TAIL_BYTES: usize = 1024;
/// … from each place in its first bytes, more than the longest message …
const LOOK_BYTES: usize = 64;
/// … until a chain of this many messages is found.
const CHAIN: usize = 8;
