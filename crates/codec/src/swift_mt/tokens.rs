//! The fields of a message: `:tag:value` by `:tag:value`, and the parts of blocks in braces.

use super::bare::parse_tag_at;
use super::frame::{FramedSwiftMessage, NextSwiftFrame, SwiftFramer};
use super::simd::{DelimiterOffsets, SwiftKernel};
use super::usual_shape::{self, ValueExtent};
use memchr::{memchr, memmem};
use std::fmt;

/// A field's tag, up to four bytes; a longer one (banks invent some) is [`SwiftTag::OTHER`], its text is in the
/// token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SwiftTag(u32);

impl SwiftTag {
    /// The tag of a field whose tag is longer than four bytes.
    pub const OTHER: SwiftTag = SwiftTag(0);

    /// Packs the text of a tag: `SwiftTag::new(b"32A")`.
    #[inline]
    #[must_use]
    pub const fn new(text: &[u8]) -> SwiftTag {
        // A NUL in front would pack to the tag without it: `\051` is not `51`.
        if text.len() > 4 || !text.is_empty() && text[0] == 0 {
            return SwiftTag::OTHER;
        }
        let (mut packed, mut i) = (0, 0);
        while i < text.len() {
            packed = packed << 8 | text[i] as u32;
            i += 1;
        }
        SwiftTag(packed)
    }

    /// Packs the first three bytes of a tag, or the first two.
    #[inline(always)]
    pub(super) const fn packed([a, b, c]: [u8; 3], has_two_bytes: bool) -> SwiftTag {
        SwiftTag(u32::from_be_bytes([0, a, b, c]) >> (if has_two_bytes { 8 } else { 0 }))
    }

    /// Splits the tag into its two digits as a number and the letter after them, 0 without a letter: `32A` is `(32,
    /// b'A')`.
    #[inline]
    #[must_use]
    pub const fn split(self) -> Option<(u8, u8)> {
        let (tens, ones, letter) = match self.0 {
            n @ 0x100..0x1_0000 => (n >> 8, n & 255, 0),
            n @ 0x1_0000..0x100_0000 => (n >> 16, n >> 8 & 255, n & 255),
            _ => return None,
        };
        let (tens, ones) = ((tens as u8).wrapping_sub(b'0'), (ones as u8).wrapping_sub(b'0'));
        let has_letter = self.0 > 0xffff;
        if tens > 9 || ones > 9 || has_letter && !(letter as u8).is_ascii_uppercase() {
            return None;
        }
        Some((tens * 10 + ones, letter as u8))
    }
}

impl fmt::Display for SwiftTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.to_be_bytes();
        bytes.iter().filter(|b| **b != 0).try_for_each(|b| write!(f, "{}", char::from(*b)))
    }
}

impl fmt::Debug for SwiftTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({self})")
    }
}

/// Where a field is, in bytes from the start of the text it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwiftField {
    /// Its tag.
    pub tag: SwiftTag,
    /// Where the tag's text starts.
    pub name: u32,
    /// Where the value starts.
    pub start: u32,
    /// One past the first line of the value, its line end left out.
    pub line: u32,
    /// One past the value, which ends before the line ends and the next `:tag:`.
    pub end: u32,
}

impl SwiftField {
    /// Returns the value as it stands in `text`: lines may end with CR LF or LF.
    #[inline]
    #[must_use]
    pub fn slice<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns the tag as it stands in `text`.
    #[inline]
    #[must_use]
    pub fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.name as usize..self.start as usize - 1).unwrap_or_default()
    }
}

/// The fields of the message at hand; keeps its table for the next one.
///
/// ```
/// use unitape_codec::swift_mt::{SwiftFieldTokenizer, NextSwiftFrame, SwiftFramer, SwiftTag};
///
/// let file = b":20:REF\r\n:86:two\r\nlines\r\n-\r\n";
/// let mut fields = SwiftFieldTokenizer::new();
/// let NextSwiftFrame::Message(message) = fields.frame(&SwiftFramer::default(), file, 0, true) else { panic!() };
/// let text = message.text().slice(file);
/// assert_eq!(fields.value(text, SwiftTag::new(b"86")), Some(&b"two\r\nlines"[..]));
/// assert_eq!(fields.as_slice().len(), 2);
/// ```
#[derive(Debug)]
pub struct SwiftFieldTokenizer {
    pub(super) tokens: Vec<SwiftField>,
    pub(super) delimiter_offsets: DelimiterOffsets,
    pub(super) kernel: SwiftKernel,
}

impl Default for SwiftFieldTokenizer {
    fn default() -> Self {
        SwiftFieldTokenizer {
            tokens: Vec::new(),
            delimiter_offsets: DelimiterOffsets::default(),
            kernel: SwiftKernel::best(),
        }
    }
}

impl SwiftFieldTokenizer {
    /// Makes an empty field list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty field list with the portable kernel, which every processor runs.
    #[cfg(any(test, feature = "twin"))]
    #[doc(hidden)]
    #[must_use]
    pub fn portable() -> Self {
        SwiftFieldTokenizer { kernel: SwiftKernel::PORTABLE, ..Self::default() }
    }

    /// Frames the item at `buf[offset..]` and, if it is a message, reads the fields of its text.
    #[inline]
    pub fn frame(&mut self, framer: &SwiftFramer, buf: &[u8], offset: usize, eof: bool) -> NextSwiftFrame {
        if let Some(message) = framer.frame_usual_shape(buf, offset, eof, self) {
            return NextSwiftFrame::Message(message);
        }
        let frame = framer.frame(buf, offset, eof);
        match &frame {
            NextSwiftFrame::Message(message) => self.read(message.text().slice(buf)),
            _ => self.tokens.clear(),
        }
        frame
    }

    /// Reads the fields of a text. Offsets in them are from its start.
    #[inline]
    pub fn read(&mut self, text: &[u8]) {
        self.tokens.clear();
        let mut offset = text.iter().take_while(|b| matches!(b, b'\r' | b'\n' | b' ' | b'\t')).count();
        if text.get(offset) == Some(&b'{') {
            self.tokens.extend(sub_blocks(text));
            return;
        }
        let Some((mut tag, mut colon)) = parse_tag_at(text, offset) else { return };
        loop {
            let content_start = colon + 1;
            let (mut from, mut line) = (content_start, None);
            // The next line that starts with a tag ends the value.
            let next_tag = loop {
                match line_end(&text[from..]) {
                    None => break None,
                    Some(n) => {
                        from += n + 1;
                        line = line.or(Some(from - 1 - usize::from(n > 0 && text[from - 2] == b'\r')));
                        if text.get(from) == Some(&b':')
                            && let Some(next) = parse_tag_at(text, from)
                        {
                            break Some(next);
                        }
                    }
                }
            };
            let content_end = if next_tag.is_some() { from } else { text.len() };
            let value =
                ValueExtent { start: content_start, line: line.unwrap_or(content_end), end: content_end };
            self.tokens.push(usual_shape::token(text, tag, offset, value));
            match next_tag {
                Some(next) => (offset, (tag, colon)) = (from, next),
                None => return,
            }
        }
    }

    /// Returns all fields, in order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[SwiftField] {
        &self.tokens
    }

    /// Finds the first field with this tag and returns its value.
    #[inline]
    #[must_use]
    pub fn value<'t>(&self, text: &'t [u8], tag: SwiftTag) -> Option<&'t [u8]> {
        self.tokens.iter().find(|token| token.tag == tag).map(|token| token.slice(text))
    }
}

/// Returns the length of a value's first line.
#[inline]
pub(super) fn first_line(value: &[u8]) -> usize {
    match line_end(value) {
        Some(n) => n - usize::from(n > 0 && value[n - 1] == b'\r'),
        None => value.len(),
    }
}

/// Finds the first `\n`, one word at a time: lines are short, so a call for each would cost more than it saves.
#[inline]
fn line_end(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = text.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let difference_bits = u64::from_le_bytes(*word) ^ (ONES * 0x0a);
        // The lowest bit that this sets is that of the first byte equal; those above may be wrong.
        let equal = difference_bits.wrapping_sub(ONES) & !difference_bits & (ONES << 7);
        if equal != 0 {
            return Some(n * 8 + equal.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|b| *b == b'\n').map(|n| words.len() * 8 + n)
}

/// Iterates over the sub-blocks of a block in braces: `{108:REF}{119:STP}`. Passes over bytes between them.
pub fn sub_blocks(content: &[u8]) -> impl Iterator<Item = SwiftField> + '_ {
    let mut offset = 0;
    std::iter::from_fn(move || {
        loop {
            offset += memchr(b'{', &content[offset..])?;
            let name = offset + 1;
            let sub_block_length = sub_block_end(content, name);
            offset = (sub_block_length + 1).min(content.len());
            let Some(n) = memchr(b':', &content[name..sub_block_length]) else { continue };
            let (start, tag) = (name + n + 1, SwiftTag::new(&content[name..name + n]));
            let line = first_line(&content[start..sub_block_length]) + start;
            return Some(SwiftField {
                tag,
                name: name as u32,
                start: start as u32,
                line: line as u32,
                end: sub_block_length as u32,
            });
        }
    })
}

/// Finds where a sub-block ends: at its closing brace, or with the content. The text of a message in a message ends
/// with `-}`.
fn sub_block_end(content: &[u8], start: usize) -> usize {
    let content_left = &content[start..];
    if content_left.starts_with(b"4:") && content_left.get(2) != Some(&b'{') {
        return memmem::find(content_left, b"-}").map_or(content.len(), |n| start + n + 1);
    }
    let mut depth = 1;
    for (n, byte) in content_left.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return start + n;
        }
    }
    content.len()
}

/// The type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum SwiftMessageType {
    /// The message type's number: 103. For a bare body, the number that its preface or fields show.
    Mt(u16),
    /// An acknowledgement (service message 21) that is alone, with `451:0`.
    Ack,
    /// An acknowledgement with `451:1`: refused.
    Nak,
    /// Another service message (`{1:F05…}`): its number.
    Service(u8),
    /// Nothing shows the type.
    #[default]
    Unknown,
}

impl SwiftMessageType {
    /// Finds the type of `message` in `buf`; `fields` must be the fields of its text.
    #[inline]
    #[must_use]
    pub fn from_message(message: &FramedSwiftMessage, buf: &[u8], fields: &[SwiftField]) -> SwiftMessageType {
        match message.block(2) {
            Some(block) => match *block.slice(buf) {
                [b'I' | b'O', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] => SwiftMessageType::Mt(
                    u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'),
                ),
                _ => SwiftMessageType::Unknown,
            },
            None => without_block_2(message, buf, fields),
        }
    }
}

impl fmt::Display for SwiftMessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwiftMessageType::Mt(number) => write!(f, "MT{number:03}"),
            SwiftMessageType::Ack => f.write_str("ACK"),
            SwiftMessageType::Nak => f.write_str("NAK"),
            SwiftMessageType::Service(number) => write!(f, "F{number:02}"),
            SwiftMessageType::Unknown => Ok(()),
        }
    }
}

/// Finds the type of a message without block 2.
#[cold]
fn without_block_2(message: &FramedSwiftMessage, buf: &[u8], fields: &[SwiftField]) -> SwiftMessageType {
    if let Some(block) = message.block(1) {
        return match *block.slice(buf) {
            [_, b'2', b'1', ..] => {
                let text = message.text().slice(buf);
                let refused = |t: &SwiftField| t.tag == SwiftTag::new(b"451") && t.slice(text) != b"0";
                if fields.iter().any(refused) { SwiftMessageType::Nak } else { SwiftMessageType::Ack }
            }
            [_, a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => {
                SwiftMessageType::Service((a - b'0') * 10 + (b - b'0'))
            }
            _ => SwiftMessageType::Unknown,
        };
    }
    // Banks write the type on a line of its own: `940`, `940 00`, `:940:`.
    for line in message.preface.slice(buf).split(|b| *b == b'\n') {
        if let [b'9', tens, ones, rest @ ..] = line
            && tens.is_ascii_digit()
            && ones.is_ascii_digit()
            && !rest.first().is_some_and(u8::is_ascii_alphanumeric)
        {
            return SwiftMessageType::Mt(900 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0'));
        }
    }
    let has_tag = |tags: &[&[u8]]| tags.iter().any(|tag| fields.iter().any(|t| t.tag == SwiftTag::new(tag)));
    let first_tag = fields.first().map_or(SwiftTag::OTHER, |token| token.tag);
    for number in [940, 941, 942, 950] {
        if first_tag == SwiftTag::new(&[b'9', b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]) {
            return SwiftMessageType::Mt(number);
        }
    }
    if has_tag(&[b"34F", b"90D", b"90C", b"13", b"13D"]) && !has_tag(&[b"60F", b"60M", b"62F", b"62M"]) {
        SwiftMessageType::Mt(942)
    } else if has_tag(&[b"60F", b"60M", b"61", b"62F", b"62M", b"64", b"65", b"86", b"25", b"28C", b"28"]) {
        SwiftMessageType::Mt(940)
    } else if has_tag(&[b"23B"]) && has_tag(&[b"32A"]) {
        SwiftMessageType::Mt(103)
    } else if has_tag(&[b"32A"]) && has_tag(&[b"58A", b"58D"]) {
        SwiftMessageType::Mt(202)
    } else {
        SwiftMessageType::Unknown
    }
}
