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

/// The next frame of the input.
/// A stretch that is neither is a control packet of the framing: the end of a session, a heartbeat.
pub type NextItchFrame = NextFrame<FramedItchMessage, ItchFault, Span>;

/// A message in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramedItchMessage {
    /// The message with what is before it.
    pub span: Span,
    /// Its type byte.
    pub at: usize,
}

impl FramedItchMessage {
    /// The message, from its type on.
    #[inline]
    #[must_use]
    pub fn body(self, buf: &[u8]) -> &[u8] {
        buf.get(self.at..self.span.end).unwrap_or_default()
    }
}

/// Bytes that are no message are reported in pieces of this size, at most.
pub const GARBAGE_BYTES_MAX: usize = 64 << 10;

/// A length that its type denies is believed up to here: the messages that later versions add are short too.
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
    /// A message, or what the framing says for itself, that ends there.
    Good { end: usize, at: usize, control: bool },
    /// Nothing that may be.
    Bad,
    /// A decision needs a buffer of this length.
    Need(usize),
}

impl ItchFramer {
    /// A framer for this framing.
    #[must_use]
    pub fn new(framing: ItchTransport) -> Self {
        Self { framing }
    }

    /// Finds the frame at `at`; `eof` says that no more bytes come.
    #[inline]
    #[must_use]
    pub fn frame(&self, buf: &[u8], at: usize, eof: bool) -> NextItchFrame {
        match self.head(buf, at) {
            FrameProbeOutcome::Good { end, at: body, control: false } if end <= buf.len() => {
                NextItchFrame::Message(FramedItchMessage { span: Span { start: at, end }, at: body })
            }
            head => self.other(buf, at, eof, head),
        }
    }

    /// Where to cut `buf`, which begins at a message, so that, as far as one can guess, only whole messages precede
    /// the cut. A chain of messages near the end shows the place; without one the search starts at the beginning.
    #[must_use]
    pub fn cut(&self, buf: &[u8]) -> usize {
        let from = buf.len().saturating_sub(TAIL_BYTES);
        if from > 0 {
            for start in from..(from + LOOK_BYTES).min(buf.len()) {
                let (mut at, mut chain) = (start, 0);
                loop {
                    match self.head(buf, at) {
                        FrameProbeOutcome::Good { end, .. } if end <= buf.len() => {
                            (at, chain) = (end, chain + 1)
                        }
                        FrameProbeOutcome::Bad => break,
                        _ if chain >= CHAIN => return at,
                        _ => break,
                    }
                }
            }
        }
        let mut at = 0;
        loop {
            at = match self.frame(buf, at, false) {
                NextItchFrame::Message(found) => found.span.end,
                NextItchFrame::Skipped(span) | NextItchFrame::Bad { span, .. } => span.end,
                NextItchFrame::Incomplete { from, .. } => return from,
                NextItchFrame::End => return buf.len(),
            };
        }
    }

    /// Walks the messages from `at` until `upto` is passed, and gives `each` the order references that they name. The
    /// caller can prefetch the orders by then. Returns the place where it ended: the next call continues from there.
    #[inline]
    pub fn look_ahead(&self, buf: &[u8], mut at: usize, upto: usize, mut each: impl FnMut(u64)) -> usize {
        while at < upto {
            match self.head(buf, at) {
                FrameProbeOutcome::Good { end, at: body, control: false } if end <= buf.len() => {
                    let message = &buf[body..end];
                    if matches!(message[0], b'A' | b'D' | b'E' | b'F' | b'C' | b'U' | b'X')
                        && let Some(order) = message[11..].first_chunk()
                    {
                        each(u64::from_be_bytes(*order));
                    }
                    at = end;
                }
                _ => break,
            }
        }
        at
    }

    #[inline]
    fn head(&self, buf: &[u8], at: usize) -> FrameProbeOutcome {
        match self.framing {
            ItchTransport::Length => match buf.get(at..at + 3) {
                Some(&[high, low, letter]) => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    match length == size_of_type(letter) && length > 0 {
                        true => FrameProbeOutcome::Good { end: at + 2 + length, at: at + 2, control: false },
                        false => FrameProbeOutcome::Bad,
                    }
                }
                _ => FrameProbeOutcome::Need(at + 3),
            },
            ItchTransport::Soup => soup(buf, at),
        }
    }

    #[cold]
    fn other(&self, buf: &[u8], at: usize, eof: bool, head: FrameProbeOutcome) -> NextItchFrame {
        let rest = buf.len() - at.min(buf.len());
        let truncated = || {
            let fault = ItchFault {
                stated: stated(buf, at),
                ..ItchFault::from_code(ItchFaultCode::Truncated, 0, "")
            };
            NextItchFrame::Bad { span: Span { start: at, end: buf.len() }, fault }
        };
        match head {
            FrameProbeOutcome::Good { end, at: body, control } if end <= buf.len() => {
                let span = Span { start: at, end };
                if control {
                    NextItchFrame::Skipped(span)
                } else {
                    NextItchFrame::Message(FramedItchMessage { span, at: body })
                }
            }
            FrameProbeOutcome::Good { end, .. } => match eof {
                true => truncated(),
                false => NextItchFrame::Incomplete { from: at, need: end },
            },
            FrameProbeOutcome::Need(_) if rest == 0 && eof => NextItchFrame::End,
            FrameProbeOutcome::Need(need) if !eof => NextItchFrame::Incomplete { from: at, need },
            FrameProbeOutcome::Need(_) if self.framing == ItchTransport::Length && buf[at..] == [0, 0] => {
                NextItchFrame::Skipped(Span { start: at, end: buf.len() })
            }
            FrameProbeOutcome::Need(_) => truncated(),
            FrameProbeOutcome::Bad => self.resync(buf, at, eof),
        }
    }

    /// The way back: what follows the bad bytes at `at`.
    fn resync(&self, buf: &[u8], at: usize, eof: bool) -> NextItchFrame {
        let stated = stated(buf, at);
        let letter = match self.framing {
            ItchTransport::Length => buf[at + 2],
            ItchTransport::Soup => buf.get(at + 3).copied().unwrap_or(0),
        };
        let bad = |end, code| {
            let fault = ItchFault { stated, ..ItchFault::from_code(code, letter, "") };
            NextItchFrame::Bad { span: Span { start: at, end }, fault }
        };
        let behind = at + 2 + usize::from(stated);
        let code =
            if size_of_type(letter) > 0 { ItchFaultCode::BadLength } else { ItchFaultCode::UnknownType };
        let ends_session = self.framing == ItchTransport::Length && stated == 0;
        if ends_session || (HEAD_BYTES..=BELIEVED_BYTES_MAX).contains(&usize::from(stated)) {
            match self.begins(buf, behind, eof) {
                Ok(true) if ends_session => return NextItchFrame::Skipped(Span { start: at, end: behind }),
                Ok(true) => return bad(behind, code),
                Ok(false) => {}
                Err(need) => return NextItchFrame::Incomplete { from: at, need },
            }
        }
        for place in at + 1.. {
            if place - at >= GARBAGE_BYTES_MAX {
                return bad(place, ItchFaultCode::Garbage);
            }
            let end = match self.head(buf, place) {
                FrameProbeOutcome::Good { end, .. } => end,
                FrameProbeOutcome::Bad => continue,
                FrameProbeOutcome::Need(need) if !eof => return NextItchFrame::Incomplete { from: at, need },
                FrameProbeOutcome::Need(_) => break,
            };
            match self.begins(buf, end, eof) {
                Ok(true) => {
                    return bad(
                        place,
                        if code == ItchFaultCode::BadLength { code } else { ItchFaultCode::Garbage },
                    );
                }
                Ok(false) => {}
                Err(need) => return NextItchFrame::Incomplete { from: at, need },
            }
        }
        bad(buf.len(), if code == ItchFaultCode::BadLength { code } else { ItchFaultCode::Garbage })
    }

    /// Whether a message begins at `at`, or the input ends there; how much more input says it.
    fn begins(&self, buf: &[u8], at: usize, eof: bool) -> Result<bool, usize> {
        match self.head(buf, at) {
            FrameProbeOutcome::Good { .. } => Ok(true),
            FrameProbeOutcome::Bad => Ok(false),
            FrameProbeOutcome::Need(need) if !eof => Err(need),
            FrameProbeOutcome::Need(_) => Ok(at == buf.len()),
        }
    }
}

/// The length that is at `at`.
fn stated(buf: &[u8], at: usize) -> u16 {
    buf.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

/// The head of a SoupBinTCP packet.
fn soup(buf: &[u8], at: usize) -> FrameProbeOutcome {
    let Some(&[high, low, packet]) = buf.get(at..at + 3) else { return FrameProbeOutcome::Need(at + 3) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let good = match packet {
        b'S' => match buf.get(at + 3) {
            None if length > 1 => return FrameProbeOutcome::Need(at + 4),
            None => false,
            Some(letter) => {
                return match length > 1 && length - 1 == size_of_type(*letter) {
                    true => FrameProbeOutcome::Good { end: at + 2 + length, at: at + 3, control: false },
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
        FrameProbeOutcome::Good { end: at + 2 + length, at: at + 3, control: true }
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
