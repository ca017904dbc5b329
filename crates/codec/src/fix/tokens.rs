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
//! The fast path finds all separators with one wide pass and reads each tag from one 8-byte load;
//! a message with a length field is finished by the walk, field by field.

use super::fault::{Fault, FieldFault};
use super::frame::{Frame, Framer};
use super::simd::{Kernel, Places, STEP};

/// One field: its tag and where its value lies in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Token {
    /// The tag.
    pub tag: u32,
    /// First byte of the value, counted from the start of the message.
    pub start: u32,
    /// One past the last byte of the value.
    pub end: u32,
}

/// The fields of one message at a time, in a buffer that is used again for the next.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Grows to the largest message seen and stays; the first `used` are the current message.
    table: Vec<Token>,
    used: usize,
    /// Where the separators of the message are; grows like `table`.
    places: Places,
    kernel: Kernel,
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
        Tokens { table: Vec::new(), used: 0, places: Places::default(), kernel }
    }

    /// The fields in message order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Token] {
        &self.table[..self.used]
    }

    /// The first field with this tag.
    #[inline]
    #[must_use]
    pub fn find(&self, tag: u32) -> Option<Token> {
        self.as_slice().iter().find(|token| token.tag == tag).copied()
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
        self.used = 0;
        if u32::try_from(message.len()).is_err() {
            // Tokens have 32-bit offsets; framing never makes so long a message.
            return Err(Fault::NoEnd { limit: u32::MAX });
        }
        match framer.sep().byte() {
            Some(sep) => {
                self.kernel.scan(message, sep, &mut self.places);
                self.resolve(message, framer)
            }
            None => self.walk(message, 0, framer),
        }
    }

    /// Frames the next message like [`Framer::frame`] and reads its fields, with one pass over
    /// the bytes for checksum and separators. A message with a field that is not `tag=value`
    /// comes back as [`Frame::Bad`].
    pub fn frame(&mut self, framer: &Framer, buf: &[u8], at: usize, eof: bool) -> Frame {
        self.used = 0;
        // Set to the range whose separators are in `places`.
        let mut scanned = (0, 0);
        let (kernel, places) = (self.kernel, &mut self.places);
        let frame = framer.frame_with(buf, at, eof, &mut |start, body_end, end, sep| {
            let sum = kernel.scan(&buf[start..end], sep, places);
            scanned = (start, end);
            let tail = &buf[body_end..end];
            let sum = sum - tail.iter().map(|&byte| u64::from(byte)).sum::<u64>();
            (sum, places.ends().len() - tail.iter().filter(|&&byte| byte == sep).count())
        });
        let Frame::Message(message) = frame else { return frame };
        let span = message.span;
        let bytes = &buf[span.start..span.end];
        let read = if scanned == (span.start, span.end) {
            self.resolve(bytes, framer)
        } else {
            self.index(bytes, framer)
        };
        match read {
            Ok(()) => frame,
            Err(fault) => Frame::Bad { span, fault },
        }
    }

    /// Turns `places` into fields.
    fn resolve(&mut self, message: &[u8], framer: &Framer) -> Result<(), Fault> {
        let room = self.places.ends().len() + STEP;
        if self.table.len() < room {
            self.table.resize(room, Token::default());
        }
        let (places, table) = (&self.places, &mut self.table[..room]);
        let read = self.kernel.fields(message, places, framer.lenient(), framer.data_tags(), table);
        self.used = read.fields;
        if read.stopped < message.len() { self.walk(message, read.stopped, framer) } else { Ok(()) }
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
            self.push(Token { tag, start: value as u32, end: end as u32 });
            if let Some(data_tag) = framer.data_tags().data_of(tag) {
                expected = Some((data_tag, plain_length(&message[value..end])));
            }
            at = (end + sep.len()).min(message.len());
        }
        Ok(())
    }

    fn push(&mut self, token: Token) {
        match self.table.get_mut(self.used) {
            Some(slot) => *slot = token,
            None => self.table.push(token),
        }
        self.used += 1;
    }
}

impl Token {
    /// The value in the message this token was read from.
    #[inline]
    #[must_use]
    pub fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
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
