//! Entities on the wire, in as few bytes as possible.

/// Spreads the lower 56 bits to seven bits in each byte, with the lowest seven bits in the lowest byte.
fn spread(value: u64) -> u64 {
    let value = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let value = value & 0x3fff_0000_3fff | (value & 0x0fff_c000_0fff_c000) << 2;
    value & 0x007f_007f_007f_007f | (value & 0x3f80_3f80_3f80_3f80) << 1
}

/// Writes the lowest `7 * groups` bits, up to 56.
fn groups(out: &mut Vec<u8>, value: u64, groups: usize) {
    let word = (spread(value) | 0x80) << (64 - 8 * groups);
    // All eight in one store.
    out.extend_from_slice(&word.to_be_bytes());
    out.truncate(out.len() + groups - 8);
}

/// Writes an integer of more than eight groups.
#[cold]
fn long(out: &mut Vec<u8>, value: i128, groups: usize) {
    for n in (0..groups).rev() {
        out.push((value >> (7 * n)) as u8 & 0x7f | if n == 0 { 0x80 } else { 0 });
    }
}

/// Writes an unsigned integer.
#[inline(always)]
pub(super) fn unsigned(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8 | 0x80);
    } else if value >> 56 == 0 {
        groups(out, value, (70 - value.leading_zeros() as usize) / 7);
    } else {
        long(out, value.into(), (70 - value.leading_zeros() as usize) / 7);
    }
}

/// Returns the number of bytes of a signed integer. The sign takes a bit.
#[inline(always)]
pub(super) fn signed_len(value: i64) -> usize {
    (65 - (value ^ value >> 63).leading_zeros() as usize).div_ceil(7)
}

/// Returns the number of bytes of a vector with its length.
pub(super) fn vector_len(bytes: &[u8]) -> usize {
    (70 - (bytes.len() as u64 | 1).leading_zeros() as usize) / 7 + bytes.len()
}

/// Writes a signed integer.
#[inline(always)]
pub(super) fn signed(out: &mut Vec<u8>, value: i64) {
    match signed_len(value) {
        1 => out.push(value as u8 & 0x7f | 0x80),
        n @ ..=8 => groups(out, value as u64, n),
        n => long(out, value.into(), n),
    }
}

/// Writes a difference of up to 66 bits.
#[inline(always)]
pub(super) fn difference(out: &mut Vec<u8>, value: i128, nullable: bool) {
    let value = if nullable && value >= 0 { value + 1 } else { value };
    match i64::try_from(value) {
        Ok(value) => signed(out, value),
        Err(_) => long(out, value, 10),
    }
}

/// Writes an integer in two's complement.
#[inline(always)]
pub(super) fn int(out: &mut Vec<u8>, bits: u64, sign: bool, nullable: bool) {
    match (sign, nullable) {
        (false, false) => unsigned(out, bits),
        (true, false) => signed(out, bits as i64),
        (false, true) => match bits.checked_add(1) {
            Some(value) => unsigned(out, value),
            None => long(out, 1 << 64, 10),
        },
        (true, true) => difference(out, i128::from(bits as i64), true),
    }
}

/// Writes an absent value, where that can be.
#[inline(always)]
pub(super) fn null(out: &mut Vec<u8>) {
    out.push(0x80);
}

/// Characters of seven bits. Noughts in front say that the string is empty, or that it begins with one.
#[inline(always)]
pub(super) fn ascii(out: &mut Vec<u8>, text: &[u8], nullable: bool) {
    if text.first().is_none_or(|first| *first == 0) {
        out.extend_from_slice(&[0, 0][usize::from(!nullable)..]);
    }
    out.extend_from_slice(text);
    if let Some(last_byte) = out.last_mut() {
        *last_byte |= 0x80;
    }
}

/// Writes a byte vector after its length.
#[inline(always)]
pub(super) fn vector(out: &mut Vec<u8>, bytes: &[u8], nullable: bool) {
    int(out, bytes.len() as u64, false, nullable);
    out.extend_from_slice(bytes);
}

/// A presence map that is being written. It holds the greatest possible number of bytes, which are zero so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct PresenceMapWriter {
    map_start: usize,
    /// After the last that is reserved.
    map_end: usize,
    /// Place of the next bit.
    byte: usize,
    next_bit: u8,
}

impl PresenceMapWriter {
    /// The writer of a block without a presence map. It accepts bits and writes nothing.
    pub const NONE: Self = PresenceMapWriter { map_start: 0, map_end: 0, byte: 0, next_bit: 0x40 };

    #[inline(always)]
    pub fn begin(out: &mut Vec<u8>, bits: u32) -> Self {
        let group_start = out.len();
        if bits <= 7 {
            out.push(0);
        } else {
            out.resize(group_start + (bits as usize).div_ceil(7), 0);
        }
        PresenceMapWriter { map_start: group_start, map_end: out.len(), byte: group_start, next_bit: 0x40 }
    }

    #[inline(always)]
    pub fn push_bit(&mut self, out: &mut [u8], bit: bool) {
        if bit {
            out[self.byte] |= self.next_bit;
        }
        self.next_bit >>= 1;
        if self.next_bit == 0 {
            (self.next_bit, self.byte) = (0x40, self.byte + 1);
        }
    }

    /// Ends the presence map: sets the stop bit and removes trailing bytes without a set bit.
    #[inline(always)]
    pub fn end(self, out: &mut Vec<u8>) {
        let mut last_group = self.map_end - 1;
        while last_group > self.map_start && out[last_group] == 0 {
            last_group -= 1;
        }
        out[last_group] |= 0x80;
        if last_group + 1 < self.map_end {
            let value_end = out.len();
            out.copy_within(self.map_end..value_end, last_group + 1);
            out.truncate(value_end - (self.map_end - last_group - 1));
        }
    }
}
