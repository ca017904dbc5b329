//! Entities on the wire, which end with a stop bit; they are read in place.

use super::fault::MessageFaultCode;
use super::template::WireType;

/// The largest exponent of a decimal, and without its sign the smallest.
pub(super) const EXPONENT_MAX: i64 = 63;

/// The code of a fault, and the byte where it is.
pub(super) type WireFault = (MessageFaultCode, usize);

/// A message and how far it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireCursor<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
}

impl<'b> WireCursor<'b> {
    /// The bytes up to the one with the stop bit.
    #[cold]
    pub fn entity(&mut self) -> Result<&'b [u8], WireFault> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let stop = rest.iter().position(|b| *b >= 0x80).ok_or((MessageFaultCode::Truncated, start))?;
        self.at += stop + 1;
        Ok(&rest[..=stop])
    }

    /// An integer of up to nine bytes, in the first of the two cases; a longer one is left where it is.
    #[inline(always)]
    fn short<const SIGNED: bool, const STRICT: bool>(&mut self) -> Option<i64> {
        let first = *self.bytes.get(self.at)?;
        let mut value = if SIGNED { i64::from((first << 1) as i8) >> 1 } else { i64::from(first & 0x7f) };
        if first >= 0x80 {
            self.at += 1;
            return Some(value);
        }
        // Overlong ones are for the general way.
        let rest = self.bytes.get(self.at + 1..)?;
        if STRICT {
            let next = rest.first()? & 0x40 != 0;
            let overlong = if SIGNED { first == 0 && !next || first == 0x7f && next } else { first == 0 };
            if overlong {
                return None;
            }
        }
        for (n, byte) in rest.iter().take(8).enumerate() {
            value = value << 7 | i64::from(byte & 0x7f);
            if *byte >= 0x80 {
                self.at += n + 2;
                return Some(value);
            }
        }
        None
    }

    /// An integer of any size that fits into ten bytes.
    #[cold]
    fn long(&mut self, signed: bool, strict: bool) -> Result<i128, WireFault> {
        let start = self.at;
        let mut groups = self.entity()?;
        let overlong = |groups: &[u8]| match groups {
            [0, next, ..] => !signed || next & 0x40 == 0,
            [0x7f, next, ..] => signed && next & 0x40 != 0,
            _ => false,
        };
        if strict && overlong(groups) {
            return Err((MessageFaultCode::R6, start));
        }
        while overlong(groups) {
            groups = &groups[1..];
        }
        if groups.len() > 10 {
            return Err((MessageFaultCode::D2, start));
        }
        let negative = signed && groups[0] & 0x40 != 0;
        Ok(groups.iter().fold(if negative { -1 } else { 0 }, |v: i128, b| v << 7 | i128::from(b & 0x7f)))
    }

    /// An integer of no type: a difference; `beyond` is what is wrong with one that nothing can be added to.
    #[inline(always)]
    pub fn difference<const STRICT: bool>(
        &mut self,
        nullable: bool,
        beyond: MessageFaultCode,
    ) -> Result<Option<i128>, WireFault> {
        let of_long = |(code, at)| (if code == MessageFaultCode::D2 { beyond } else { code }, at);
        let value = match self.short::<true, STRICT>() {
            Some(value) => i128::from(value),
            None => self.long(true, STRICT).map_err(of_long)?,
        };
        Ok(match (nullable, value) {
            (true, 0) => None,
            (true, 1..) => Some(value - 1),
            _ => Some(value),
        })
    }

    /// An integer of this type, in two's complement.
    #[inline(always)]
    pub fn int<const STRICT: bool>(
        &mut self,
        kind: WireType,
        nullable: bool,
    ) -> Result<Option<u64>, WireFault> {
        let start = self.at;
        let signed = matches!(kind, WireType::Int32 | WireType::Int64);
        let short = if signed { self.short::<true, STRICT>() } else { self.short::<false, STRICT>() };
        let Some(mut value) = short else { return self.long_int::<STRICT>(kind, nullable) };
        if nullable {
            if value == 0 {
                return Ok(None);
            }
            value -= i64::from(value > 0);
        }
        let fits = match kind {
            WireType::Int32 => i32::try_from(value).is_ok(),
            WireType::UInt32 => u32::try_from(value).is_ok(),
            _ => true,
        };
        if fits { Ok(Some(value as u64)) } else { Err((MessageFaultCode::D2, start)) }
    }

    #[cold]
    fn long_int<const STRICT: bool>(
        &mut self,
        kind: WireType,
        nullable: bool,
    ) -> Result<Option<u64>, WireFault> {
        let start = self.at;
        let (least, most) = kind.bounds().expect("an integer");
        let value = match (nullable, self.long(least < 0, STRICT)?) {
            (true, 0) => return Ok(None),
            (true, value @ 1..) => value - 1,
            (_, value) => value,
        };
        if (least..=most).contains(&value) {
            Ok(Some(value as u64))
        } else {
            Err((MessageFaultCode::D2, start))
        }
    }

    /// The characters of a string, the last with its stop bit, without the noughts that are only marks.
    #[inline(always)]
    pub fn ascii<const STRICT: bool>(&mut self, nullable: bool) -> Result<Option<&'b [u8]>, WireFault> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let stop = match rest.first_chunk() {
            Some(eight) if u64::from_le_bytes(*eight) & STOPS != 0 => {
                (u64::from_le_bytes(*eight) & STOPS).trailing_zeros() as usize / 8
            }
            _ => rest.iter().position(|b| *b >= 0x80).ok_or((MessageFaultCode::Truncated, start))?,
        };
        self.at = start + stop + 1;
        let characters = &rest[..=stop];
        if characters[0] & 0x7f != 0 {
            return Ok(Some(characters));
        }
        marked::<STRICT>(characters, nullable).map_err(|code| (code, start))
    }

    /// Bytes with their number before them.
    pub fn vector<const STRICT: bool>(&mut self, nullable: bool) -> Result<Option<&'b [u8]>, WireFault> {
        let start = self.at;
        let Some(length) = self.int::<STRICT>(WireType::UInt32, nullable)? else { return Ok(None) };
        let rest = &self.bytes[self.at..];
        let bytes = rest.get(..length as usize).ok_or((MessageFaultCode::Truncated, start))?;
        self.at += bytes.len();
        Ok(Some(bytes))
    }
}

/// The stop bit of each of eight bytes.
const STOPS: u64 = 0x8080_8080_8080_8080;

/// Strings that begin with a nought. One nought marks an empty (or absent) string, one more a string that begins with
/// a nought, and where it may be absent yet one more.
#[cold]
fn marked<const STRICT: bool>(characters: &[u8], nullable: bool) -> Result<Option<&[u8]>, MessageFaultCode> {
    let nought = |n: usize| characters.get(n).is_some_and(|b| b & 0x7f == 0);
    if nullable && characters.len() == 1 {
        return Ok(None);
    }
    let rest = &characters[if nullable && nought(1) { 2 } else { 1 }..];
    if STRICT && rest.first().is_some_and(|b| b & 0x7f != 0) {
        return Err(MessageFaultCode::R9);
    }
    Ok(Some(rest))
}

/// The bits of a presence map, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct PresenceMap<'b> {
    /// The next one is the highest.
    word: u64,
    /// Bits of the word that are not read yet.
    left: u32,
    /// The bytes after the word.
    rest: &'b [u8],
}

impl<'b> PresenceMap<'b> {
    pub const EMPTY: Self = PresenceMap { word: 0, left: u32::MAX, rest: &[] };

    pub fn one(bit: bool) -> Self {
        PresenceMap { word: u64::from(bit) << 63, ..Self::EMPTY }
    }

    #[inline(always)]
    pub fn read<const STRICT: bool>(cursor: &mut WireCursor<'b>) -> Result<Self, WireFault> {
        match cursor.bytes.get(cursor.at) {
            Some(first @ 0x80..) => {
                cursor.at += 1;
                // After the last byte there are noughts without end.
                Ok(PresenceMap { word: u64::from(*first) << 57, left: u32::MAX, rest: &[] })
            }
            _ => Self::read_more::<STRICT>(cursor),
        }
    }

    fn read_more<const STRICT: bool>(cursor: &mut WireCursor<'b>) -> Result<Self, WireFault> {
        let start = cursor.at;
        let groups = cursor.entity()?;
        if STRICT && groups.len() > 1 && groups.last() == Some(&0x80) {
            return Err((MessageFaultCode::R7, start));
        }
        let mut bits = PresenceMap { word: 0, left: 0, rest: groups };
        bits.refill();
        Ok(bits)
    }

    /// The next nine bytes of the map, if there are.
    fn refill(&mut self) {
        let (now, rest) = self.rest.split_at(self.rest.len().min(9));
        self.word = 0;
        for (n, byte) in now.iter().enumerate() {
            self.word |= u64::from(byte & 0x7f) << (57 - 7 * n);
        }
        (self.left, self.rest) = (if rest.is_empty() { u32::MAX } else { 63 }, rest);
    }

    #[inline(always)]
    pub fn next_bit(&mut self) -> bool {
        if self.left == 0 {
            self.refill();
        }
        let bit = self.word >> 63 != 0;
        self.word <<= 1;
        self.left -= 1;
        bit
    }

    /// Whether a bit is left that says something.
    #[inline(always)]
    pub fn any_left(&self) -> bool {
        self.word != 0 || self.rest.iter().any(|b| b & 0x7f != 0)
    }
}
