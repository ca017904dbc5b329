//! What a framer finds: the same answers for every format.

use crate::Span;
use std::convert::Infallible;
use std::fmt::Display;

/// The next item of a buffer, from an offset on: a message of type `M`, bytes with a fault of type `F`, or, in some
/// formats, other bytes of type `S`.
///
/// A framer does no I/O: the caller owns the buffer, asks at an offset, and continues at the end of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextFrame<M, F, S = Infallible> {
    /// A whole message.
    Message(M),
    /// Bytes that are no good message: a message with a fault, or garbage.
    Bad {
        /// All of them, up to where the next item may begin.
        span: Span,
        /// The fault.
        fault: F,
    },
    /// Bytes between messages that are no fault.
    Skipped(S),
    /// More input decides. The caller is done with the bytes before `from`, and asks again when the buffer has `need` bytes or
    /// the input has ended.
    Incomplete {
        /// The first byte that is still needed.
        from: usize,
        /// The shortest buffer that could decide, in bytes from its start.
        need: usize,
    },
    /// The input has ended, and all of it is framed.
    End,
}

/// The result of a step of a loop: the bytes of an item that was decoded or skipped, or a fault for the loop to report.
pub type FrameStep<F> = NextFrame<Span, F, Span>;

/// The reason why bytes are no good message; `Display` describes it in a sentence.
pub trait FrameFault: Display {
    /// Returns the code: one word, the same in JSON, quarantine and the docs.
    fn code_word(&self) -> &'static str;
}

impl FrameFault for Infallible {
    fn code_word(&self) -> &'static str {
        match *self {}
    }
}

impl<M, F, S: Into<Span>> NextFrame<M, F, S> {
    /// Replaces a message by the result of `decode`.
    #[inline(always)]
    pub fn map<T>(self, decode: impl FnOnce(M) -> T) -> NextFrame<T, F, Span> {
        match self {
            Self::Message(message) => NextFrame::Message(decode(message)),
            Self::Bad { span, fault } => NextFrame::Bad { span, fault },
            Self::Skipped(skipped) => NextFrame::Skipped(skipped.into()),
            Self::Incomplete { from, need } => NextFrame::Incomplete { from, need },
            Self::End => NextFrame::End,
        }
    }
}

/// A line, and what it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramedLine<T = ()> {
    /// The line without its terminator.
    pub span: Span,
    /// The offset behind its terminator, where the next line begins.
    pub end: usize,
    /// The content.
    pub content: T,
}

impl<T> FramedLine<T> {
    /// Returns the line with its terminator.
    #[inline]
    #[must_use]
    pub const fn with_terminator(&self) -> Span {
        Span { start: self.span.start, end: self.end }
    }
}
