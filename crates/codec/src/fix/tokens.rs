//! The fields of one message: a reusable table of (tag, where its value is).
//!
//! ```text
//! 8=FIX.4.4|9=…|35=D|38=100|…
//!                    │  ╰┬╯
//!   Token { tag: 38, start, end }     offsets from the start of the message
//! ```
//!
//! A field is `tag=value` and a separator. A tag is 1 to 9 digits without a leading zero; a value
//! is one byte or more up to the next separator, and may hold `=`. The value of a data field
//! ([`DataTags`](super::DataTags)) that follows directly on its length field is exactly as long as that says, with
//! separators inside.
//!
//! The fast path makes one wide pass over a message; what is unusual in one, a length field for
//! instance, is read by the walk, field by field.

use super::fault::{Fault, FieldFault};
use super::frame::{Frame, Framer, Message};
use super::head::Heads;
use super::shapes::Shapes;
use super::simd::{Columns, Kernel, Pass};
use super::value::{self, Decimal};

/// One field: its tag and where its value lies in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Token {
    /// The tag.
    pub tag: u32,
    /// First byte of the value, counted from the start of the message.
    pub start: u32,
    /// One past the last byte of the value.
    pub end: u32,
}

/// The fields of one message at a time, in buffers that are used again for the next.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Grows to the largest message seen and stays; the first `used` are the current message.
    columns: Columns,
    used: usize,
    kernel: Kernel,
    heads: Heads,
    shapes: Shapes,
    /// The shape that has the tags of the current message; if none, the columns have.
    shape: Option<usize>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokens {
    /// An empty table, with the fastest kernel of this processor.
    #[must_use]
    pub fn new() -> Self {
        Self::with_kernel(Kernel::best())
    }

    pub(crate) fn with_kernel(kernel: Kernel) -> Self {
        Tokens {
            columns: Columns::default(),
            used: 0,
            kernel,
            heads: Heads::default(),
            shapes: Shapes::default(),
            shape: None,
        }
    }

    /// One table for each kernel that this processor can run, for tests that compare them.
    #[cfg(any(test, feature = "naive"))]
    #[doc(hidden)]
    #[must_use]
    pub fn each_kernel() -> Vec<Self> {
        Kernel::all().into_iter().map(Self::with_kernel).collect()
    }

    /// The fields in message order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> TokenSlice<'_> {
        let (tags, shape) = match self.shape {
            Some(place) => {
                let shape = self.shapes.at(place);
                (&shape.tags[..], shape.id)
            }
            None => (&self.columns.tags[..self.used], 0),
        };
        TokenSlice {
            tags,
            starts: &self.columns.starts[..tags.len()],
            ends: &self.columns.ends[..tags.len()],
            shape,
        }
    }

    /// The first field with this tag.
    #[inline]
    #[must_use]
    pub fn find(&self, tag: u32) -> Option<Token> {
        let tokens = self.as_slice();
        tokens.tags.iter().position(|&t| t == tag).and_then(|at| tokens.get(at))
    }

    /// The value of the first field with this tag, in the message these tokens were read from.
    #[inline]
    #[must_use]
    pub fn value<'m>(&self, message: &'m [u8], tag: u32) -> Option<&'m [u8]> {
        self.find(tag).map(|token| token.of(message))
    }

    /// Reads the fields of `message`, from `8=` to the end of field 10.
    ///
    /// # Errors
    /// The first field that is not `tag=value`; the fields before it stay readable.
    pub fn index(&mut self, message: &[u8], framer: &Framer) -> Result<(), Fault> {
        (self.used, self.shape) = (0, None);
        if u32::try_from(message.len()).is_err() {
            // Tokens have 32-bit offsets; framing never makes so long a message.
            return Err(Fault::NoEnd { limit: u32::MAX });
        }
        match framer.sep().byte() {
            Some(sep) => {
                let pass = self.kernel.read(message, sep, framer.data_tags(), &mut self.columns);
                self.finish(message, pass, framer)
            }
            None => self.walk(message, 0, framer),
        }
    }

    /// Frames the next message like [`Framer::frame`] and reads its fields, with one pass over
    /// the bytes for checksum, separators and tags. A message with a field that is not `tag=value`
    /// comes back as [`Frame::Bad`].
    pub fn frame(&mut self, framer: &Framer, buf: &[u8], at: usize, eof: bool) -> Frame {
        (self.used, self.shape) = (0, None);
        let first = after_line_ends(buf, at);
        if let Some(sep) = framer.sep().byte()
            && let Some(message) = self.frame_expected(framer, buf, first, sep)
        {
            return Frame::Message(message);
        }
        // Nothing of the above is handed on: it stays in registers, so that the next message need not
        // wait until this one is written.
        self.frame_anew(framer, buf, at, eof)
    }

    /// The message at `first`, if it begins and has tags as expected.
    #[inline(always)]
    fn frame_expected(&mut self, framer: &Framer, buf: &[u8], first: usize, sep: u8) -> Option<Message> {
        let claim = self.heads.used.claim(framer, buf, first, sep)?;
        let place = self.shapes.expected(claim.key)?;
        let shape = self.shapes.at(place);
        let sum = self.kernel.expected(claim.bytes(buf), sep, shape, &mut self.columns)?;
        if !claim.sums_to(sum, shape.tags.len(), sep) {
            return None;
        }
        (self.used, self.shape) = (shape.tags.len(), Some(place));
        Some(claim.message())
    }

    /// The same for a message that begins otherwise, or whose tags are not those expected.
    #[inline(never)]
    fn frame_anew(&mut self, framer: &Framer, buf: &[u8], at: usize, eof: bool) -> Frame {
        let first = after_line_ends(buf, at);
        if let Some(sep) = framer.sep().byte() {
            if self.heads.turn(buf.get(first..).unwrap_or_default())
                && let Some(message) = self.frame_expected(framer, buf, first, sep)
            {
                return Frame::Message(message);
            }
            if let Some(claim) = self.heads.used.claim(framer, buf, first, sep) {
                let (bytes, message) = (claim.bytes(buf), claim.message());
                let pass = self.kernel.read(bytes, sep, framer.data_tags(), &mut self.columns);
                if claim.sums_to(pass.sum, pass.seps, sep) {
                    if let Err(fault) = self.finish(bytes, pass, framer) {
                        return Frame::Bad { span: message.span, fault };
                    }
                    let tags = &self.columns.tags[..self.used];
                    self.shape = self.shapes.learn(claim.key, tags, framer.data_tags());
                    return Frame::Message(message);
                }
            }
        }
        self.frame_slowly(framer, buf, at, eof)
    }

    /// The same for what is not the usual good message.
    #[cold]
    fn frame_slowly(&mut self, framer: &Framer, buf: &[u8], at: usize, eof: bool) -> Frame {
        let frame = framer.frame(buf, at, eof);
        let Frame::Message(message) = frame else { return frame };
        self.heads.learn(message.span.of(buf));
        match self.index(message.span.of(buf), framer) {
            Ok(()) => frame,
            Err(fault) => Frame::Bad { span: message.span, fault },
        }
    }

    /// Takes what a pass has read, and walks on where it has stopped.
    #[inline]
    fn finish(&mut self, message: &[u8], pass: Pass, framer: &Framer) -> Result<(), Fault> {
        self.used = pass.fields;
        if pass.stopped < message.len() { self.walk(message, pass.stopped, framer) } else { Ok(()) }
    }

    /// Reads fields one after the other from `at`, appending to those already read.
    #[cold]
    fn walk(&mut self, message: &[u8], mut at: usize, framer: &Framer) -> Result<(), Fault> {
        let sep = framer.sep();
        let lenient = framer.lenient();
        // The data field expected next, and its length.
        let mut expected = None;
        while at < message.len() {
            let fault = |kind| Fault::Field { offset: at as u32, kind };
            let mut end = sep.find(message, at).unwrap_or(message.len());
            if end == at {
                if lenient {
                    at = end + sep.len();
                    continue;
                }
                return Err(fault(FieldFault::Empty));
            }
            let Some(equals) = message[at..end].iter().position(|&byte| byte == b'=') else {
                return Err(fault(FieldFault::NoEquals));
            };
            let value = at + equals + 1;
            let tag = plain_tag(&message[at..value - 1]).ok_or(fault(FieldFault::Tag))?;
            if let Some((data_tag, length)) = expected.take()
                && tag == data_tag
            {
                match length {
                    Some(length)
                        if message.len() - value >= length
                            && (sep.is_at(message, value + length)
                                || value + length == message.len() && lenient) =>
                    {
                        end = value + length;
                    }
                    _ if lenient => {}
                    _ => return Err(fault(FieldFault::DataLength)),
                }
            }
            if end == value && !lenient {
                return Err(fault(FieldFault::NoValue));
            }
            self.columns.put(self.used, tag, value as u32, end as u32);
            self.used += 1;
            if let Some(data_tag) = framer.data_tags().data_of(tag) {
                expected = Some((data_tag, plain_length(&message[value..end])));
            }
            at = (end + sep.len()).min(message.len());
        }
        Ok(())
    }
}

impl Token {
    /// The value in the message this token was read from.
    #[inline]
    #[must_use]
    pub fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The value as [`value::int`] reads it, in the message this token was read from.
    #[inline(always)]
    #[must_use]
    pub fn int(self, message: &[u8]) -> Option<i64> {
        value::int_in(message, self)
    }

    /// The value as [`value::decimal`] reads it, in the message this token was read from.
    #[inline(always)]
    #[must_use]
    pub fn decimal(self, message: &[u8]) -> Option<Decimal> {
        value::decimal_in(message, self)
    }

    /// The first byte of the value in the message this token was read from.
    #[inline(always)]
    #[must_use]
    pub fn first(self, message: &[u8]) -> Option<u8> {
        if self.start < self.end { message.get(self.start as usize).copied() } else { None }
    }

    /// A copy of a value of at most `N` bytes (32 at most) in the message this token was read from, zeros
    /// behind it. `None` for a longer one.
    #[inline]
    #[must_use]
    pub fn padded<const N: usize>(self, message: &[u8]) -> Option<[u8; N]> {
        let start = self.start as usize;
        let len = (self.end as usize).wrapping_sub(start);
        if len > N {
            return None;
        }
        // What stands behind the value is copied too and cleared again: no call, no loop.
        const { assert!(N <= ONES_ZEROS.len() / 2) };
        let mask = ONES_ZEROS[ONES_ZEROS.len() / 2 - len..].first_chunk::<N>()?;
        if let Some(bytes) = message.get(start..start + N).and_then(|bytes| bytes.first_chunk::<N>()) {
            let mut out = [0; N];
            if let (Ok(bytes), Some(mask)) = (<[u8; 8]>::try_from(&bytes[..]), mask.first_chunk::<8>()) {
                // The same in one word, which the compiler does not see.
                let word = u64::from_le_bytes(bytes) & u64::from_le_bytes(*mask);
                out.copy_from_slice(&word.to_le_bytes());
                return Some(out);
            }
            for ((out, byte), mask) in out.iter_mut().zip(bytes).zip(mask) {
                *out = byte & mask;
            }
            return Some(out);
        }
        let mut out = [0; N];
        out.get_mut(..self.of(message).len())?.copy_from_slice(self.of(message));
        Some(out)
    }
}

static ONES_ZEROS: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 32 {
        bytes[at] = u8::MAX;
        at += 1;
    }
    bytes
};

/// Fields of one message, or of a part of it: a view, as cheap to copy as a slice.
///
/// Invariant: the three columns are of one length. All makers slice all three alike.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenSlice<'t> {
    tags: &'t [u32],
    starts: &'t [u32],
    ends: &'t [u32],
    /// The number of the shape that has just these tags; 0 if not known.
    shape: u64,
}

impl<'t> TokenSlice<'t> {
    /// How many fields.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.tags.len()
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.tags.is_empty()
    }

    /// A number that only fields with the same tags have; 0 if none is known.
    #[inline]
    pub(crate) const fn shape(self) -> u64 {
        self.shape
    }

    /// The tags alone.
    #[inline]
    #[must_use]
    pub const fn tags(self) -> &'t [u32] {
        self.tags
    }

    /// The field at `index`.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> Option<Token> {
        let tag = *self.tags.get(index)?;
        // SAFETY: `index` is in the tags, and the columns are of one length by the invariant.
        let (start, end) = unsafe { (*self.starts.get_unchecked(index), *self.ends.get_unchecked(index)) };
        Some(Token { tag, start, end })
    }

    /// The field at `index`.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    #[must_use]
    pub fn at(self, index: usize) -> Token {
        self.get(index).expect("an index of a field")
    }

    /// The fields from `start` up to, not including, `end`.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    #[must_use]
    pub fn range(self, start: usize, end: usize) -> Self {
        TokenSlice {
            tags: &self.tags[start..end],
            starts: &self.starts[start..end],
            ends: &self.ends[start..end],
            shape: 0,
        }
    }

    /// The fields, one after the other.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Token> + 't {
        let values = self.starts.iter().zip(self.ends);
        self.tags.iter().zip(values).map(|(&tag, (&start, &end))| Token { tag, start, end })
    }
}

#[inline(always)]
fn after_line_ends(buf: &[u8], mut at: usize) -> usize {
    while matches!(buf.get(at), Some(b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// 1 to 9 digits without a leading zero.
fn plain_tag(digits: &[u8]) -> Option<u32> {
    if digits.first() == Some(&b'0') || digits.len() > 9 {
        return None;
    }
    plain_length(digits).map(|tag| tag as u32)
}

/// 1 to 9 digits.
pub(crate) fn plain_length(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, &digit| sum * 10 + usize::from(digit - b'0')))
}
