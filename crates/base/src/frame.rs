//! What a framer finds: the same answers for every format.

use crate::Span;
use std::convert::Infallible;

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
