//! The usual good message, recognised with a few loads: where it claims to start and end, before
//! any pass over its bytes.
//!
//! ```text
//! 8=FIX.4.4|9=128|35=D|…                    …|10=203|
//! ╰──seen───╯ ╰8 bytes╯                      ╰8 bytes┘
//! ```
//!
//! The first field and `9=` are compared with those of a message before. A message that
//! differs is left to [`FixFramer`], which knows all the rules; this knows only rules 4 and 7.

use super::frame::{FixFramer, FramedFixMessage};
use unitape_base::Span;
use unitape_base::digits::{self, HIGH, ONES};

/// How messages begin, of the last few beginnings seen the one in use and the others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrefixCache {
    pub last_prefix: MessagePrefix,
    spare_prefixes: [MessagePrefix; 3],
}

/// The first bytes of a message that was framed slowly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessagePrefix {
    /// `8=FIX.4.4|9=`, at most 16 bytes, the rest zero.
    bytes: u128,
    mask: u128,
    len: usize,
}

impl PrefixCache {
    /// Remembers how `message`, framed well, begins.
    pub(crate) fn add_prefix(&mut self, message: &[u8]) {
        let Some(length_at) = message.iter().take(20).skip(2).position(|&byte| byte == b'=') else { return };
        let len = length_at + 3;
        let Some(head) = message.get(..len).filter(|head| len <= 16 && head.ends_with(b"9=")) else { return };
        if self.switch_prefix(message) || self.last_prefix.is_at(message) {
            return;
        }
        let mut bytes = [0; 16];
        bytes[..len].copy_from_slice(head);
        self.spare_prefixes.rotate_right(1);
        self.spare_prefixes[0] = self.last_prefix;
        self.last_prefix =
            MessagePrefix { bytes: u128::from_le_bytes(bytes), mask: u128::MAX >> (128 - 8 * len), len };
    }

    /// Takes another beginning into use if `rest` begins so; whether it does.
    pub(crate) fn switch_prefix(&mut self, rest: &[u8]) -> bool {
        let prefix = self.spare_prefixes.iter_mut().find(|candidate| candidate.is_at(rest));
        let Some(prefix) = prefix else { return false };
        std::mem::swap(&mut self.last_prefix, prefix);
        true
    }
}

/// Bytes of `10=ddd` and a separator.
const TRAILER: usize = 7;

/// The bounds that a message claims for itself, if its BodyLength is right. All offsets are into the buffer framed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnverifiedMessage {
    message_start: usize,
    body: Span,
    /// Bytes of MsgType.
    type_len: usize,
    /// The value of CheckSum (10), three bytes.
    checksum: u32,
    /// Messages of one key often have one shape.
    pub shape_key: u32,
}

impl MessagePrefix {
    fn is_at(&self, rest: &[u8]) -> bool {
        rest.first_chunk::<16>().is_some_and(|first| self.begins_like(*first))
    }

    #[inline(always)]
    fn begins_like(&self, first: [u8; 16]) -> bool {
        self.len != 0 && u128::from_le_bytes(first) & self.mask == self.bytes
    }

    /// Reads the claim of a message at `buf[start..]`, if that begins like the message remembered and BodyLength,
    /// MsgType and CheckSum are where and as they should be.
    #[inline(always)]
    pub(crate) fn read_claim(
        &self,
        framer: &FixFramer,
        buf: &[u8],
        start: usize,
        sep: u8,
    ) -> Option<UnverifiedMessage> {
        // All that is looked at before the body lies within this; shorter is only the end of the buffer.
        let message_bytes = buf.get(start..)?;
        let window = message_bytes.first_chunk::<48>()?;
        let load = |from: usize| u64::from_le_bytes(*window[from..].first_chunk::<8>().expect("eight"));
        if !self.begins_like(*window.first_chunk().expect("sixteen")) {
            return None;
        }
        let seps = u64::from(sep) * ONES;
        // At most 16: the bits spare the comparison.
        let digits_at = self.len & 31;
        let word = load(digits_at);
        let x = word ^ seps;
        // The lowest bit set marks the first separator; bits above it may be false.
        let separator_bits = x.wrapping_sub(ONES) & !x & HIGH;
        let digits = (separator_bits.trailing_zeros() as usize / 8) & 7;
        // One to seven digits.
        if separator_bits == 0 || digits == 0 {
            return None;
        }
        let claimed = parse_digits(word, digits)?;
        let body_start = digits_at + digits + 1;
        if claimed < 4 || claimed + TRAILER + body_start > framer.max_message() {
            return None;
        }
        let body_end = body_start + claimed;
        // The separator before the trailer, and the trailer.
        let tail = u64::from_le_bytes(*message_bytes.get(body_end - 1..)?.first_chunk::<8>()?);
        let frame = u64::from_le_bytes([0, b'1', b'0', b'=', 0, 0, 0, 0]) | seps & 0xff00_0000_0000_00ff;
        if tail & 0xff00_0000_ffff_ffff != frame {
            return None;
        }
        // `35=`, a separator right after is no type.
        let msg_type = load(body_start);
        if msg_type & 0x00ff_ffff != u64::from_le_bytes([b'3', b'5', b'=', 0, 0, 0, 0, 0]) {
            return None;
        }
        let x = (msg_type ^ seps) >> 24;
        let type_end_bits = x.wrapping_sub(ONES >> 24) & !x & (HIGH >> 24);
        let type_len = type_end_bits.trailing_zeros() as usize / 8;
        if type_end_bits == 0 || type_len == 0 || 3 + type_len >= claimed {
            return None;
        }
        let key =
            (claimed as u32).wrapping_add((msg_type >> 24) as u32 & 0xff ^ (msg_type >> 26) as u32 & 0x3ff);
        let body = Span { start: start + body_start, end: start + body_end };
        Some(UnverifiedMessage {
            message_start: start,
            body,
            type_len,
            checksum: (tail >> 32) as u32 & 0x00ff_ffff,
            shape_key: key,
        })
    }
}

impl UnverifiedMessage {
    /// Returns the parts of the message.
    #[inline(always)]
    pub(crate) fn message(&self) -> FramedFixMessage {
        let type_at = self.body.start + 3;
        FramedFixMessage {
            span: Span { start: self.message_start, end: self.body.end + TRAILER },
            body: self.body,
            msg_type: Span { start: type_at, end: type_at + self.type_len },
            checksum_ok: true,
            length_ok: true,
        }
    }

    /// Returns the message's bytes.
    #[inline(always)]
    pub(crate) fn bytes<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(self.message_start..self.body.end + TRAILER).unwrap_or_default()
    }

    /// Returns whether CheckSum (10) is right, given the sum of all bytes and the number of separators.
    #[inline(always)]
    pub(crate) fn sums_to(&self, sum: u64, seps: usize, sep: u8) -> bool {
        // A separator counts as the byte 1, whichever byte the log uses; one is in the trailer.
        let separator_excess = (seps as u8).wrapping_sub(1).wrapping_mul(sep.wrapping_sub(1));
        let trailer = b'1' + b'0' + b'='; // and a separator and three digits, summed in the third byte
        let digits = (self.checksum.wrapping_mul(0x0001_0101) >> 16) as u8;
        let sum = (sum as u8)
            .wrapping_sub(trailer)
            .wrapping_sub(sep)
            .wrapping_sub(digits)
            .wrapping_sub(separator_excess);
        CHECKSUMS[usize::from(sum)] == self.checksum
    }
}

/// The value of CheckSum (10) for each sum: three digits, the first one lowest.
static CHECKSUMS: [u32; 256] = {
    let mut texts = [0; 256];
    let mut sum = 0;
    while sum < 256 {
        let (hundreds, tens, ones) = (sum / 100, sum / 10 % 10, sum % 10);
        texts[sum as usize] = 0x0030_3030 | hundreds | tens << 8 | ones << 16;
        sum += 1;
    }
    texts
};

/// Parses the lowest `digits` bytes of `word` as a number; 1 to 8 bytes.
#[inline(always)]
fn parse_digits(word: u64, digits: usize) -> Option<usize> {
    let shift = 64 - 8 * digits as u32;
    // Digits become 0 to 9 at the top, below is nothing.
    let d = (word << shift) ^ ((ONES * b'0' as u64) << shift);
    digits::all_digits(d).then(|| digits::number(d) as usize)
}
