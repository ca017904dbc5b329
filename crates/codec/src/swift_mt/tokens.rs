//! The fields of a message: `:tag:value` by `:tag:value`, and the parts of blocks in braces.

use super::bare::tag_here;
use super::frame::{Frame, Framer, Message};
use super::quick;
use super::simd::{Kernel, Places};
use memchr::{memchr, memmem};
use std::fmt;

/// A field's tag, up to four bytes; a longer one (banks invent some) is [`Tag::OTHER`], its text is in the
/// token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tag(u32);

impl Tag {
    /// What has no tag of four bytes or fewer.
    pub const OTHER: Tag = Tag(0);

    /// The tag of this text: `Tag::new(b"32A")`.
    #[inline]
    #[must_use]
    pub const fn new(text: &[u8]) -> Tag {
        // A NUL in front would pack to the tag without it: `\051` is not `51`.
        if text.len() > 4 || !text.is_empty() && text[0] == 0 {
            return Tag::OTHER;
        }
        let (mut packed, mut i) = (0, 0);
        while i < text.len() {
            packed = packed << 8 | text[i] as u32;
            i += 1;
        }
        Tag(packed)
    }

    /// The tag of the first three of these, or of the first two.
    #[inline(always)]
    pub(super) const fn packed([a, b, c]: [u8; 3], two: bool) -> Tag {
        Tag(u32::from_be_bytes([0, a, b, c]) >> (if two { 8 } else { 0 }))
    }

    /// Its two digits as a number, and the letter behind them, 0 if none: `32A` is `(32, b'A')`.
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

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.to_be_bytes();
        bytes.iter().filter(|b| **b != 0).try_for_each(|b| write!(f, "{}", char::from(*b)))
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({self})")
    }
}

/// Where a field is, in bytes from the start of the text it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its tag.
    pub tag: Tag,
    /// Where the tag's text starts.
    pub name: u32,
    /// Where the value starts.
    pub start: u32,
    /// One past the first line of the value, its line end left out.
    pub line: u32,
    /// One past the value, which ends before the line ends and the next `:tag:`.
    pub end: u32,
}

impl Token {
    /// The value, as it stands in `text`: lines may end with CR LF or LF.
    #[inline]
    #[must_use]
    pub fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The tag as it stands in `text`.
    #[inline]
    #[must_use]
    pub fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.name as usize..self.start as usize - 1).unwrap_or_default()
    }
}

/// The fields of the message at hand; keeps its table for the next one.
///
/// ```
/// use unitape_codec::swift_mt::{Fields, Frame, Framer, Tag};
///
/// let file = b":20:REF\r\n:86:two\r\nlines\r\n-\r\n";
/// let mut fields = Fields::new();
/// let Frame::Message(message) = fields.frame(&Framer::default(), file, 0, true) else { panic!() };
/// let text = message.text().of(file);
/// assert_eq!(fields.value(text, Tag::new(b"86")), Some(&b"two\r\nlines"[..]));
/// assert_eq!(fields.as_slice().len(), 2);
/// ```
#[derive(Debug)]
pub struct Fields {
    tokens: Vec<Token>,
    places: Places,
    kernel: Kernel,
}

impl Default for Fields {
    fn default() -> Self {
        Fields { tokens: Vec::new(), places: Places::default(), kernel: Kernel::best() }
    }
}

impl Fields {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same as `new`, on the kernel that every processor runs.
    #[cfg(any(test, feature = "naive"))]
    #[doc(hidden)]
    #[must_use]
    pub fn portable() -> Self {
        Fields { kernel: Kernel::PORTABLE, ..Self::default() }
    }

    /// Frames what stands at `buf[at..]` and, if it is a message, reads the fields of its text.
    #[inline]
    pub fn frame(&mut self, framer: &Framer, buf: &[u8], at: usize, eof: bool) -> Frame {
        let Self { tokens, places, kernel } = self;
        if let Some(message) = framer.quick(*kernel, (buf, at, eof), places, tokens) {
            return Frame::Message(message);
        }
        let frame = framer.frame(buf, at, eof);
        match &frame {
            Frame::Message(message) => self.read(message.text().slice(buf)),
            _ => self.tokens.clear(),
        }
        frame
    }

    /// Reads the fields of a text. Offsets in them are from its start.
    #[inline]
    pub fn read(&mut self, text: &[u8]) {
        self.tokens.clear();
        let mut at = text.iter().take_while(|b| matches!(b, b'\r' | b'\n' | b' ' | b'\t')).count();
        if text.get(at) == Some(&b'{') {
            self.tokens.extend(sub_blocks(text));
            return;
        }
        let Some((mut tag, mut colon)) = tag_here(text, at) else { return };
        loop {
            let start = colon + 1;
            let (mut from, mut line) = (start, None);
            // The next line that starts with a tag ends the value.
            let next = loop {
                match line_end(&text[from..]) {
                    None => break None,
                    Some(n) => {
                        from += n + 1;
                        line = line.or(Some(from - 1 - usize::from(n > 0 && text[from - 2] == b'\r')));
                        if text.get(from) == Some(&b':')
                            && let Some(next) = tag_here(text, from)
                        {
                            break Some(next);
                        }
                    }
                }
            };
            let end = if next.is_some() { from } else { text.len() };
            self.tokens.push(quick::token(text, tag, at, (start, line.unwrap_or(end), end)));
            match next {
                Some(next) => (at, (tag, colon)) = (from, next),
                None => return,
            }
        }
    }

    /// All fields, in order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Token] {
        &self.tokens
    }

    /// The first field of a tag.
    #[inline]
    #[must_use]
    pub fn value<'t>(&self, text: &'t [u8], tag: Tag) -> Option<&'t [u8]> {
        self.tokens.iter().find(|token| token.tag == tag).map(|token| token.of(text))
    }
}

/// The length of the first line of a value.
#[inline]
pub(super) fn first_line(value: &[u8]) -> usize {
    match line_end(value) {
        Some(n) => n - usize::from(n > 0 && value[n - 1] == b'\r'),
        None => value.len(),
    }
}

/// The first `\n`, a word at a time: lines are short, and a call for each would cost more than it finds.
#[inline]
fn line_end(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = text.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let differs = u64::from_le_bytes(*word) ^ (ONES * 0x0a);
        // The lowest bit that this sets is that of the first byte equal; those above may be wrong.
        let equal = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        if equal != 0 {
            return Some(n * 8 + equal.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|b| *b == b'\n').map(|n| words.len() * 8 + n)
}

/// The parts of a block in braces: `{108:REF}{119:STP}`. Whatever stands between them is passed over.
pub fn sub_blocks(content: &[u8]) -> impl Iterator<Item = Token> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += memchr(b'{', &content[at..])?;
            let name = at + 1;
            let end = sub_block_end(content, name);
            at = (end + 1).min(content.len());
            let Some(n) = memchr(b':', &content[name..end]) else { continue };
            let (start, tag) = (name + n + 1, Tag::new(&content[name..name + n]));
            let line = first_line(&content[start..end]) + start;
            return Some(Token {
                tag,
                name: name as u32,
                start: start as u32,
                line: line as u32,
                end: end as u32,
            });
        }
    })
}

/// Where a part ends: at its closing brace, or with the content. The text of a message in a message ends
/// with `-}`.
fn sub_block_end(content: &[u8], start: usize) -> usize {
    let rest = &content[start..];
    if rest.starts_with(b"4:") && rest.get(2) != Some(&b'{') {
        return memmem::find(rest, b"-}").map_or(content.len(), |n| start + n + 1);
    }
    let mut depth = 1;
    for (n, byte) in rest.iter().enumerate() {
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

/// What sort of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum MsgType {
    /// A number: 103. Of a bare body, what its preface or fields tell.
    Mt(u16),
    /// An acknowledgement (service message 21) that stands alone, with `451:0`.
    Ack,
    /// The same with `451:1`: refused.
    Nak,
    /// Another service message (`{1:F05…}`): its number.
    Service(u8),
    /// Nothing tells.
    #[default]
    Unknown,
}

impl MsgType {
    /// What `message` in `buf` is; `fields` are those of its text.
    #[inline]
    #[must_use]
    pub fn of(message: &Message, buf: &[u8], fields: &[Token]) -> MsgType {
        match message.block(2) {
            Some(block) => match *block.slice(buf) {
                [b'I' | b'O', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] => {
                    MsgType::Mt(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
                }
                _ => MsgType::Unknown,
            },
            None => told(message, buf, fields),
        }
    }
}

impl fmt::Display for MsgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MsgType::Mt(number) => write!(f, "MT{number:03}"),
            MsgType::Ack => f.write_str("ACK"),
            MsgType::Nak => f.write_str("NAK"),
            MsgType::Service(number) => write!(f, "F{number:02}"),
            MsgType::Unknown => Ok(()),
        }
    }
}

/// The type of a message without block 2.
#[cold]
fn told(message: &Message, buf: &[u8], fields: &[Token]) -> MsgType {
    if let Some(block) = message.block(1) {
        return match *block.slice(buf) {
            [_, b'2', b'1', ..] => {
                let text = message.text().slice(buf);
                let refused = |t: &Token| t.tag == Tag::new(b"451") && t.of(text) != b"0";
                if fields.iter().any(refused) { MsgType::Nak } else { MsgType::Ack }
            }
            [_, a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => MsgType::Service((a - b'0') * 10 + (b - b'0')),
            _ => MsgType::Unknown,
        };
    }
    // Banks write the type on a line of its own: `940`, `940 00`, `:940:`.
    for line in message.preface.slice(buf).split(|b| *b == b'\n') {
        if let [b'9', tens, ones, rest @ ..] = line
            && tens.is_ascii_digit()
            && ones.is_ascii_digit()
            && !rest.first().is_some_and(u8::is_ascii_alphanumeric)
        {
            return MsgType::Mt(900 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0'));
        }
    }
    let has = |tags: &[&[u8]]| tags.iter().any(|tag| fields.iter().any(|t| t.tag == Tag::new(tag)));
    let first = fields.first().map_or(Tag::OTHER, |token| token.tag);
    for number in [940, 941, 942, 950] {
        if first == Tag::new(&[b'9', b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]) {
            return MsgType::Mt(number);
        }
    }
    if has(&[b"34F", b"90D", b"90C", b"13", b"13D"]) && !has(&[b"60F", b"60M", b"62F", b"62M"]) {
        MsgType::Mt(942)
    } else if has(&[b"60F", b"60M", b"61", b"62F", b"62M", b"64", b"65", b"86", b"25", b"28C", b"28"]) {
        MsgType::Mt(940)
    } else if has(&[b"23B"]) && has(&[b"32A"]) {
        MsgType::Mt(103)
    } else if has(&[b"32A"]) && has(&[b"58A", b"58D"]) {
        MsgType::Mt(202)
    } else {
        MsgType::Unknown
    }
}
