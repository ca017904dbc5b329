//! The result of the FIX cases for a message: a record of plain typed values, the same for us, for the slow twin and
//! for the peers. So all can be compared byte by byte.
//!
//! This file knows nothing of the rest of the bench: `bench/peers` compiles it too.

/// Entries of a repeating group that a record has room for.
pub const PARTS: usize = 4;

/// Bytes of a record in the order-independent form that is hashed.
pub const TYPED_BYTES: usize = 120 + PARTS * PART_BYTES;

/// Bytes of a part in it.
const PART_BYTES: usize = 52;

/// The typed values of one message; the first of a repeated tag counts. Fields of the group of parties (453) or of
/// market data entries (268) are in the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TypedMessage {
    pub msg_type: [u8; 8],
    pub sequence: i64,
    pub sent_ns: i64,
    pub transacted_ns: i64,
    pub price: i64,
    pub price_exponent: i8,
    pub quantity: i64,
    pub quantity_exponent: i8,
    pub side: u8,
    pub id: [u8; 16],
    pub symbol: [u8; 16],
    pub account: [u8; 16],
    /// All fields of the message, header and trailer included.
    pub fields: u32,
    /// The stated count of the group.
    pub stated: u32,
    /// Entries of the group.
    pub entries: u32,
    pub parts: [TypedGroupEntry; PARTS],
    /// The tags that were seen, a bit each, so that the first of a repeated tag counts.
    seen_tags: u16,
}

/// One entry of a group: a party, or a market data entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TypedGroupEntry {
    /// PartyID or Symbol.
    pub id: [u8; 16],
    /// PartyRole or RptSeq.
    pub number: i64,
    pub price: i64,
    pub change: i64,
    pub time_ns: i64,
    pub price_exponent: i8,
    pub change_exponent: i8,
    /// PartyIDSource or MDEntryType.
    pub kind: u8,
    /// MDUpdateAction.
    pub action: u8,
}

/// The functions that read values; one for the product's functions, one for the slow twin.
pub trait ValueReader {
    /// Digits and at most one point: mantissa and exponent.
    fn decimal(text: &[u8]) -> Option<(i64, i8)>;
    /// Digits, maybe with a sign.
    fn int(text: &[u8]) -> Option<i64>;
    /// Parses a UTCTimestamp to nanoseconds since 1970.
    fn timestamp(text: &[u8]) -> Option<i64>;
    /// Parses a UTCTimeOnly to nanoseconds since midnight.
    fn time(text: &[u8]) -> Option<i64>;
}

impl TypedMessage {
    /// Makes it empty; parts are as they were, until one is counted again.
    #[inline(always)]
    pub fn clear(&mut self) {
        (self.sequence, self.sent_ns, self.transacted_ns) = (0, 0, 0);
        (self.price, self.price_exponent, self.quantity, self.quantity_exponent) = (0, 0, 0, 0);
        (self.id, self.symbol, self.account) = ([0; 16], [0; 16], [0; 16]);
        (self.msg_type, self.side, self.fields) = ([0; 8], 0, 0);
        (self.stated, self.entries, self.seen_tags) = (0, 0, 0);
    }

    /// Takes one field after another from a list of fields. Returns false if a value is not of its field's type.
    #[inline(always)]
    pub fn field<V: ValueReader>(&mut self, tag: u32, value: &[u8]) -> bool {
        self.fields += 1;
        if matches!(tag, 453 | 268) {
            return V::int(value).map(|v| self.stated = v as u32).is_some();
        }
        if self.stated > 0 && matches!(tag, 448 | 279) {
            self.entries += 1;
        }
        if self.entries > 0 && matches!(tag, 448 | 447 | 452 | 279 | 55 | 269 | 270 | 451 | 273 | 83) {
            let part = self.parts.get_mut(self.entries as usize - 1);
            return part.is_some_and(|part| part.field::<V>(tag, value));
        }
        let bit = match tag {
            35 => 0,
            34 => 1,
            52 => 2,
            60 => 3,
            44 => 4,
            38 => 5,
            54 => 6,
            11 => 7,
            55 => 8,
            1 => 9,
            1181 => 10,
            _ => return true,
        };
        if self.seen_tags & 1 << bit != 0 {
            return true;
        }
        self.seen_tags |= 1 << bit;
        match bit {
            0 => copy_text(&mut self.msg_type, value),
            1 | 10 => V::int(value).map(|v| self.sequence = v).is_some(),
            2 => V::timestamp(value).map(|v| self.sent_ns = v).is_some(),
            3 => V::timestamp(value).map(|v| self.transacted_ns = v).is_some(),
            4 => V::decimal(value).map(|v| (self.price, self.price_exponent) = v).is_some(),
            5 => V::decimal(value).map(|v| (self.quantity, self.quantity_exponent) = v).is_some(),
            6 => value.first().map(|v| self.side = *v).is_some(),
            7 => copy_text(&mut self.id, value),
            8 => copy_text(&mut self.symbol, value),
            _ => copy_text(&mut self.account, value),
        }
    }

    /// Computes a cheap sum over the record, so that the compiler cannot remove a part of it from the timed loop.
    #[inline(always)]
    pub fn sum(&self) -> u64 {
        let mut sum = u64::from_le_bytes(self.msg_type)
            .wrapping_add(self.sequence as u64)
            .wrapping_add(self.sent_ns as u64)
            .wrapping_add(self.transacted_ns as u64)
            .wrapping_add(self.price as u64)
            .wrapping_add(self.quantity as u64)
            .wrapping_add(words(&self.id))
            .wrapping_add(words(&self.symbol))
            .wrapping_add(words(&self.account))
            .wrapping_add(u64::from(self.fields) << 32)
            .wrapping_add(u64::from(self.stated) << 40)
            .wrapping_add(u64::from(self.side) << 16)
            .wrapping_add((self.price_exponent as u8 as u64) << 8)
            .wrapping_add(self.quantity_exponent as u8 as u64);
        for part in self.parts.iter().take(self.entries as usize) {
            sum = sum.rotate_left(1).wrapping_add(part.sum());
        }
        sum
    }

    /// Writes the record as little-endian bytes for hashing.
    pub fn bytes(&self) -> [u8; TYPED_BYTES] {
        let mut out = [0; TYPED_BYTES];
        let parts: [&[u8]; 15] = [
            &self.msg_type,
            &self.sequence.to_le_bytes(),
            &self.sent_ns.to_le_bytes(),
            &self.transacted_ns.to_le_bytes(),
            &self.price.to_le_bytes(),
            &self.quantity.to_le_bytes(),
            &self.id,
            &self.symbol,
            &self.account,
            &self.fields.to_le_bytes(),
            &self.stated.to_le_bytes(),
            &self.entries.to_le_bytes(),
            &[self.side],
            &self.price_exponent.to_le_bytes(),
            &self.quantity_exponent.to_le_bytes(),
        ];
        let mut offset = 0;
        let mut write_bytes = |bytes: &[u8]| {
            out[offset..offset + bytes.len()].copy_from_slice(bytes);
            offset += bytes.len();
        };
        parts.into_iter().for_each(&mut write_bytes);
        for part in self.parts.iter().take(self.entries as usize) {
            [part.number, part.price, part.change, part.time_ns]
                .iter()
                .for_each(|v| write_bytes(&v.to_le_bytes()));
            write_bytes(&part.id);
            write_bytes(&[part.price_exponent as u8, part.change_exponent as u8, part.kind, part.action]);
        }
        out
    }
}

impl TypedGroupEntry {
    /// Takes one field; false where its value is not of its type.
    #[inline(always)]
    pub fn field<V: ValueReader>(&mut self, tag: u32, value: &[u8]) -> bool {
        match tag {
            448 | 55 => copy_text(&mut self.id, value),
            447 | 269 => value.first().map(|v| self.kind = *v).is_some(),
            279 => value.first().map(|v| self.action = *v).is_some(),
            452 | 83 => V::int(value).map(|v| self.number = v).is_some(),
            270 => V::decimal(value).map(|v| (self.price, self.price_exponent) = v).is_some(),
            451 => V::decimal(value).map(|v| (self.change, self.change_exponent) = v).is_some(),
            273 => V::time(value).map(|v| self.time_ns = v).is_some(),
            _ => true,
        }
    }

    #[inline(always)]
    fn sum(&self) -> u64 {
        let small = [self.price_exponent as u8, self.change_exponent as u8, self.kind, self.action];
        words(&self.id)
            .wrapping_add(self.number as u64)
            .wrapping_add(self.price as u64)
            .wrapping_add((self.change as u64) << 1)
            .wrapping_add(self.time_ns as u64)
            .wrapping_add(u64::from(u32::from_le_bytes(small)) << 8)
    }
}

#[inline(always)]
fn words(text: &[u8; 16]) -> u64 {
    let bits = u128::from_le_bytes(*text);
    bits as u64 ^ (bits >> 64) as u64
}

/// Copies text that fits.
#[inline(always)]
fn copy_text<const N: usize>(to: &mut [u8; N], value: &[u8]) -> bool {
    match to.get_mut(..value.len()) {
        Some(part) => {
            part.copy_from_slice(value);
            true
        }
        None => false,
    }
}
