//! Entities on the wire, which end with a stop bit; they are read in place.

use super::fault::MessageFaultCode;
use super::template::WireType;

/// The largest exponent of a decimal, and without its sign the smallest.
pub(super) const EXPONENT_MAX: i64 = 63;

/// The code of a fault and the offset of its byte.
pub(super) type WireFault = (MessageFaultCode, usize);

/// A message and how far it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireCursor<'b> {
    pub bytes: &'b [u8],
    pub offset: usize,
}

impl<'b> WireCursor<'b> {
    /// Reads the bytes up to the byte with the stop bit.
    #[cold]
    pub fn entity(&mut self) -> Result<&'b [u8], WireFault> {
        let start = self.offset;
        let bytes_after = &self.bytes[start..];
        let stop = bytes_after.iter().position(|b| *b >= 0x80).ok_or((MessageFaultCode::Truncated, start))?;
        self.offset += stop + 1;
        Ok(&bytes_after[..=stop])
    }

    /// Reads an integer of up to nine bytes. Leaves a longer or overlong integer where it is and returns `None`.
    #[inline(always)]
    fn short<const SIGNED: bool, const STRICT: bool>(&mut self) -> Option<i64> {
        let first_byte = *self.bytes.get(self.offset)?;
        let mut value =
            if SIGNED { i64::from((first_byte << 1) as i8) >> 1 } else { i64::from(first_byte & 0x7f) };
        if first_byte >= 0x80 {
            self.offset += 1;
            return Some(value);
        }
        // Overlong ones are for the general way.
        let bytes_after = self.bytes.get(self.offset + 1..)?;
        if STRICT {
            let next_bit = bytes_after.first()? & 0x40 != 0;
            let overlong = if SIGNED {
                first_byte == 0 && !next_bit || first_byte == 0x7f && next_bit
            } else {
                first_byte == 0
            };
            if overlong {
                return None;
            }
        }
        for (n, byte) in bytes_after.iter().take(8).enumerate() {
            value = value << 7 | i64::from(byte & 0x7f);
            if *byte >= 0x80 {
                self.offset += n + 2;
                return Some(value);
            }
        }
        None
    }

    /// Reads an integer of any size that fits into ten bytes.
    #[cold]
    fn long(&mut self, signed: bool, strict: bool) -> Result<i128, WireFault> {
        let start = self.offset;
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

    /// Reads a difference, an integer without a type. Reports `overflow_code` for a difference that no value can take.
    #[inline(always)]
    pub fn difference<const STRICT: bool>(
        &mut self,
        nullable: bool,
        overflow_code: MessageFaultCode,
    ) -> Result<Option<i128>, WireFault> {
        let difference_fault =
            |(code, offset)| (if code == MessageFaultCode::D2 { overflow_code } else { code }, offset);
        let value = match self.short::<true, STRICT>() {
            Some(value) => i128::from(value),
            None => self.long(true, STRICT).map_err(difference_fault)?,
        };
        Ok(match (nullable, value) {
            (true, 0) => None,
            (true, 1..) => Some(value - 1),
            _ => Some(value),
        })
    }

    /// Reads an integer of this type, in two's complement.
    #[inline(always)]
    pub fn int<const STRICT: bool>(
        &mut self,
        kind: WireType,
        nullable: bool,
    ) -> Result<Option<u64>, WireFault> {
        let start = self.offset;
        let signed = matches!(kind, WireType::Int32 | WireType::Int64);
        let short = if signed { self.short::<true, STRICT>() } else { self.short::<false, STRICT>() };
        let Some(mut value) = short else { return self.long_int::<STRICT>(kind, nullable) };
        if nullable {
            if value == 0 {
                return Ok(None);
            }
            value -= i64::from(value > 0);
        }
        let fits_type = match kind {
            WireType::Int32 => i32::try_from(value).is_ok(),
            WireType::UInt32 => u32::try_from(value).is_ok(),
            _ => true,
        };
        if fits_type { Ok(Some(value as u64)) } else { Err((MessageFaultCode::D2, start)) }
    }

    #[cold]
    fn long_int<const STRICT: bool>(
        &mut self,
        kind: WireType,
        nullable: bool,
    ) -> Result<Option<u64>, WireFault> {
        let start = self.offset;
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

    /// Reads the characters of a string. The last character keeps its stop bit; zeros that only mark empty or null are
    /// left out.
    #[inline(always)]
    pub fn ascii<const STRICT: bool>(&mut self, nullable: bool) -> Result<Option<&'b [u8]>, WireFault> {
        let start = self.offset;
        let bytes_after = self.bytes.get(start..).unwrap_or_default();
        let stop = match bytes_after.first_chunk() {
            Some(eight) if u64::from_le_bytes(*eight) & STOPS != 0 => {
                (u64::from_le_bytes(*eight) & STOPS).trailing_zeros() as usize / 8
            }
            _ => bytes_after.iter().position(|b| *b >= 0x80).ok_or((MessageFaultCode::Truncated, start))?,
        };
        self.offset = start + stop + 1;
        let characters = &bytes_after[..=stop];
        if characters[0] & 0x7f != 0 {
            return Ok(Some(characters));
        }
        marked::<STRICT>(characters, nullable).map_err(|code| (code, start))
    }

    /// Reads a byte vector after its length.
    pub fn vector<const STRICT: bool>(&mut self, nullable: bool) -> Result<Option<&'b [u8]>, WireFault> {
        let start = self.offset;
        let Some(length) = self.int::<STRICT>(WireType::UInt32, nullable)? else { return Ok(None) };
        let bytes_after = &self.bytes[self.offset..];
        let bytes = bytes_after.get(..length as usize).ok_or((MessageFaultCode::Truncated, start))?;
        self.offset += bytes.len();
        Ok(Some(bytes))
    }
}

/// The stop bit of each of eight bytes.
const STOPS: u64 = 0x8080_8080_8080_8080;

/// Reads strings that begin with a zero. One zero marks an empty (or absent) string. One more zero marks a string that
/// begins with a zero; an optional field needs yet one more.
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
        match cursor.bytes.get(cursor.offset) {
            Some(first @ 0x80..) => {
                cursor.offset += 1;
                // After the last byte, the map continues with zeros without end.
                Ok(PresenceMap { word: u64::from(*first) << 57, left: u32::MAX, rest: &[] })
            }
            _ => Self::read_more::<STRICT>(cursor),
        }
    }

    fn read_more<const STRICT: bool>(cursor: &mut WireCursor<'b>) -> Result<Self, WireFault> {
        let start = cursor.offset;
        let groups = cursor.entity()?;
        if STRICT && groups.len() > 1 && groups.last() == Some(&0x80) {
            return Err((MessageFaultCode::R7, start));
        }
        let mut bits = PresenceMap { word: 0, left: 0, rest: groups };
        bits.refill();
        Ok(bits)
    }

    /// Loads the next nine bytes of the map, or fewer at its end.
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

    /// Returns whether any remaining bit is set.
    #[inline(always)]
    pub fn any_left(&self) -> bool {
        self.word != 0 || self.rest.iter().any(|b| b & 0x7f != 0)
    }
}
