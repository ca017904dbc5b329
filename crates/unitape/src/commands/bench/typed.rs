//! What the FIX cases make of a message: a record of plain typed values, the same for us, for the slow twin and
//! for the peers, so that all can be held against each other byte by byte.
//!
//! This file knows nothing of the rest of the bench: `bench/peers` compiles it too.

/// Bytes of a record in the order-independent form that is hashed.
pub const TYPED_BYTES: usize = 112;

/// The typed values of one message; the first of a repeated tag counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Typed {
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
    /// Which tags were there, a bit each, so that the first of a repeated tag counts.
    seen: u16,
}

/// How values are read; one for the product's functions, one for the slow twin.
pub trait Values {
    /// Digits and at most one point: mantissa and exponent.
    fn decimal(text: &[u8]) -> Option<(i64, i8)>;
    /// Digits, maybe with a sign.
    fn int(text: &[u8]) -> Option<i64>;
    /// UTCTimestamp in nanoseconds since 1970.
    fn timestamp(text: &[u8]) -> Option<i64>;
}

impl Typed {
    /// Takes one field; false where its value is not of its type.
    #[inline(always)]
    pub fn field<V: Values>(&mut self, tag: u32, value: &[u8]) -> bool {
        self.fields += 1;
        let bit = match tag {
            35 => 0,
            34 => 1,
            52 => 2,
            60 => 3,
            44 | 270 => 4,
            38 => 5,
            54 => 6,
            11 => 7,
            55 => 8,
            1 => 9,
            1181 => 10,
            _ => return true,
        };
        if self.seen & 1 << bit != 0 {
            return true;
        }
        self.seen |= 1 << bit;
        match bit {
            0 => put(&mut self.msg_type, value),
            1 | 10 => V::int(value).map(|v| self.sequence = v).is_some(),
            2 => V::timestamp(value).map(|v| self.sent_ns = v).is_some(),
            3 => V::timestamp(value).map(|v| self.transacted_ns = v).is_some(),
            4 => V::decimal(value).map(|v| (self.price, self.price_exponent) = v).is_some(),
            5 => V::decimal(value).map(|v| (self.quantity, self.quantity_exponent) = v).is_some(),
            6 => value.first().map(|v| self.side = *v).is_some(),
            7 => put(&mut self.id, value),
            8 => put(&mut self.symbol, value),
            _ => put(&mut self.account, value),
        }
    }

    /// A cheap sum over the record, so that the timed loop cannot leave any of it out.
    #[inline(always)]
    pub fn sum(&self) -> u64 {
        let words = |b: &[u8; 16]| u128::from_le_bytes(*b) as u64 ^ (u128::from_le_bytes(*b) >> 64) as u64;
        u64::from_le_bytes(self.msg_type)
            .wrapping_add(self.sequence as u64)
            .wrapping_add(self.sent_ns as u64)
            .wrapping_add(self.transacted_ns as u64)
            .wrapping_add(self.price as u64)
            .wrapping_add(self.quantity as u64)
            .wrapping_add(words(&self.id))
            .wrapping_add(words(&self.symbol))
            .wrapping_add(words(&self.account))
            .wrapping_add(u64::from(self.fields) << 32)
            .wrapping_add(u64::from(self.side) << 16)
            .wrapping_add((self.price_exponent as u8 as u64) << 8)
            .wrapping_add(self.quantity_exponent as u8 as u64)
    }

    /// The record as bytes, little-endian, for hashing.
    pub fn bytes(&self) -> [u8; TYPED_BYTES] {
        let mut out = [0; TYPED_BYTES];
        let parts: [&[u8]; 13] = [
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
            &[self.side],
            &self.price_exponent.to_le_bytes(),
            &self.quantity_exponent.to_le_bytes(),
        ];
        let mut at = 0;
        for part in parts {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        out
    }
}

/// Copies text that fits.
#[inline(always)]
fn put<const N: usize>(to: &mut [u8; N], value: &[u8]) -> bool {
    match to.get_mut(..value.len()) {
        Some(part) => {
            part.copy_from_slice(value);
            true
        }
        None => false,
    }
}
