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
use super::simd::Kernel;

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

/// The fields of one message at a time, in a buffer that is used again for the next.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Grows to the largest message seen and stays; the first `used` are the current message.
    table: Vec<Token>,
    used: usize,
    masks: Vec<u64>,
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
        Tokens { table: Vec::new(), used: 0, masks: Vec::new(), kernel }
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
        match framer.sep().byte() {
            Some(sep) => {
                self.kernel.scan(message, sep, &mut self.masks);
                self.resolve(message, framer)
            }
            None => {
                self.used = 0;
                self.walk(message, 0, framer)
            }
        }
    }

    /// Frames the next message like [`Framer::frame`] and reads its fields, with one pass over
    /// the bytes for checksum and separators. A message with a field that is not `tag=value`
    /// comes back as [`Frame::Bad`].
    pub fn frame(&mut self, framer: &Framer, buf: &[u8], at: usize, eof: bool) -> Frame {
        self.used = 0;
        // Set to the range whose separators are in `masks`.
        let mut scanned = (0, 0);
        let kernel = self.kernel;
        let masks = &mut self.masks;
        let frame = framer.frame_with(buf, at, eof, &mut |start, body_end, end, sep| {
            let sum = kernel.scan(&buf[start..end], sep, masks);
            scanned = (start, end);
            let tail: u64 = buf[body_end..end].iter().map(|&byte| u64::from(byte)).sum();
            let seps = match sep {
                1 => 0,
                _ => {
                    let words = &masks[..(end - start).div_ceil(64)];
                    let all: u32 = words.iter().map(|mask| mask.count_ones()).sum();
                    all - buf[body_end..end].iter().filter(|&&byte| byte == sep).count() as u32
                }
            };
            (sum - tail, seps)
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

    /// Turns the separator masks of `message` into fields.
    fn resolve(&mut self, message: &[u8], framer: &Framer) -> Result<(), Fault> {
        let lenient = framer.lenient();
        let data = framer.data_tags();
        let masks = &self.masks[..message.len().div_ceil(64)];
        let seps: usize = masks.iter().map(|m| m.count_ones() as usize).sum();
        // The text after the last separator, where there is any, is walked below.
        if self.table.len() < seps + 1 {
            self.table.resize(seps + 1, Token::default());
        }
        let table = &mut self.table[..seps];
        let mut slots = table.iter_mut();
        let mut start = 0;
        self.used = 0;
        for (block, &mask) in masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                let end = block * 64 + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                let Some(slot) = slots.next() else { break };
                let (tag, digits) = match tag_at(message, start) {
                    // One byte of value at least, unless lenient.
                    Some((tag, digits)) if start + digits + usize::from(!lenient) < end => (tag, digits),
                    // Long tags, lenient empty fields and what is wrong: the walk knows.
                    _ => return self.walk(message, start, framer),
                };
                if data.data_of(tag).is_some() {
                    // The next field may hold separators.
                    return self.walk(message, start, framer);
                }
                *slot = Token { tag, start: (start + digits + 1) as u32, end: end as u32 };
                self.used += 1;
                start = end + 1;
            }
        }
        if start < message.len() { self.walk(message, start, framer) } else { Ok(()) }
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

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The tag of the field at `start` and its digits, if it is 1 to 7 digits and `=`.
#[inline(always)]
fn tag_at(message: &[u8], start: usize) -> Option<(u32, usize)> {
    let word = match message.get(start..start + 8) {
        Some(eight) => u64::from_le_bytes(eight.try_into().ok()?),
        None => {
            let mut padded = [0; 8];
            let rest = message.get(start..)?;
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(padded)
        }
    };
    let x = word ^ (ONES * b'=' as u64);
    // The lowest set bit marks the first '='; bits above it may be false, which nobody reads.
    let equals = x.wrapping_sub(ONES) & !x & HIGH;
    let digits = equals.trailing_zeros() as usize / 8;
    // No '=' in eight bytes, no digit before it, or a leading zero.
    if equals == 0 || digits == 0 || word & 0xff == u64::from(b'0') {
        return None;
    }
    // Digits to the top, so that the last one is in the highest byte and missing ones are zero.
    let shift = 64 - 8 * digits as u32;
    let d = (word << shift).wrapping_sub((ONES * b'0' as u64) << shift);
    // A byte that is no digit is above 9 here: the lowest such byte is seen without borrow or
    // carry from below, so nothing wrong passes.
    if (d.wrapping_add(ONES * 0x76) | d) & HIGH != 0 {
        return None;
    }
    // Pairs, then fours, then eights.
    let pairs = d.wrapping_mul(10).wrapping_add(d >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    Some(((low.wrapping_add(high) >> 32) as u32, digits))
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
