//! Identities.
//!
//! Instruments, venues and parties are *interned*: an event holds a small id and a definition on the tape,
//! ahead of its first use, holds the name. Ids are given in tape order by the writer of the tape, start at
//! 1 and 0 is none. Orders, matches, quotes and messages are *inline*: see [`InlineId`].

use crate::words;
use std::fmt;

/// The kind of thing that a name denotes; each has ids of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum NameKind {
    /// Instrument or index: an ISIN or a symbol.
    Instrument = 0,
    /// Venue, or a quoting bank; ids fit 16 bits, so that a quote stays one line.
    Venue = 1,
    /// A person or machine that trades.
    Trader = 2,
    /// Account, in trading and in payments.
    Account = 3,
    /// Beneficial owner, and group of linked owners (one name space, because a group defaults to its owner).
    Owner = 4,
    /// Member firm.
    Firm = 5,
    /// Algorithm.
    Algo = 6,
    /// Desk.
    Desk = 7,
    /// Other recurring names: lists, scenarios, senders.
    Name = 8,
}

impl NameKind {
    /// The number of kinds.
    pub const COUNT: usize = 9;
    /// All of them, by number.
    pub const ALL: [NameKind; Self::COUNT] = [
        NameKind::Instrument,
        NameKind::Venue,
        NameKind::Trader,
        NameKind::Account,
        NameKind::Owner,
        NameKind::Firm,
        NameKind::Algo,
        NameKind::Desk,
        NameKind::Name,
    ];

    /// Returns the dictionary with this number.
    pub fn from_u8(n: u8) -> Option<Self> {
        Self::ALL.get(usize::from(n)).copied()
    }

    /// Returns the word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            NameKind::Instrument => "instrument",
            NameKind::Venue => "venue",
            NameKind::Trader => "trader",
            NameKind::Account => "account",
            NameKind::Owner => "owner",
            NameKind::Firm => "firm",
            NameKind::Algo => "algo",
            NameKind::Desk => "desk",
            NameKind::Name => "name",
        }
    }

    /// Returns the greatest id that may be assigned.
    pub const fn id_max(self) -> u32 {
        match self {
            NameKind::Venue => VENUE_PROVISIONAL as u32 - 1,
            _ => PROVISIONAL - 1,
        }
    }
}

/// Ids with this bit are a worker's own, good inside one block until the sequencer replaces them.
pub const PROVISIONAL: u32 = 1 << 31;
/// The same bit in the 16 bits of a venue.
pub const VENUE_PROVISIONAL: u16 = 1 << 15;
/// Longest name that can be interned, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// An instrument, by its number in one dictionary or table. The dictionary of a tape counts from 1
/// ([`InstrumentId::NONE`] is none). A table of instruments (of a handler, of reference data, of a simulated day)
/// counts from 0. Numbers of two of them are unrelated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct InstrumentId(pub u32);

/// A product of a venue: instruments whose messages share one sequence, by the number that a handler's tables give it, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ProductId(pub u32);

/// A channel of a venue, by its place among the channels of a mapping, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ChannelId(pub u16);

impl InstrumentId {
    /// No instrument, as the events of a tape say it; the first one of a table has the same number.
    pub const NONE: Self = Self(0);

    /// Converts the id to a table index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ProductId {
    /// Converts the id to a table index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ChannelId {
    /// Converts the id to a table index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for InstrumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Their number of a message or packet; ours is [`crate::Position`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

/// An order, match, quote or message id, kept inside the event and never interned.
///
/// In a slot of `n` bytes it is stored as text of up to `n` bytes, zero-padded; as `01` and a 56-bit number; or as
/// `02`/`03` and the 16 bytes of a lower- or upper-case UUID. All zero is none. An id that does not fit the slot is
/// in the extension.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum InlineId<'a> {
    /// As text on the wire.
    Text(&'a [u8]),
    /// As a number on the wire.
    Number(u64),
}

impl fmt::Debug for InlineId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(t) => write!(f, "{:?}", String::from_utf8_lossy(t)),
            Self::Number(n) => n.fmt(f),
        }
    }
}

const MARK_NUMBER: u8 = 1;
const MARK_UUID_LOWER: u8 = 2;
const MARK_UUID_UPPER: u8 = 3;

/// Writes `id` into `slot` (all zero before); false when it does not fit and must go to the extension.
#[inline]
pub fn pack_id(id: InlineId<'_>, slot: &mut [u8]) -> bool {
    match id {
        InlineId::Number(n) => {
            if n >> 56 != 0 {
                return false;
            }
            slot[..8].copy_from_slice(&(n << 8 | u64::from(MARK_NUMBER)).to_le_bytes());
            true
        }
        InlineId::Text(t) => {
            if pack_plain(t, slot) {
                return true;
            }
            // A first byte under a space would pass for a mark, and a zero inside for padding.
            if t.len() <= slot.len() {
                if t.is_empty() || t[0] < b' ' || t.contains(&0) {
                    return false;
                }
                slot[..t.len()].copy_from_slice(t);
                return true;
            }
            if t.len() == 36 && slot.len() >= 17 {
                for (mark, upper) in [(MARK_UUID_LOWER, false), (MARK_UUID_UPPER, true)] {
                    if let Some(bytes) = uuid_bytes(t, upper) {
                        slot[0] = mark;
                        slot[1..17].copy_from_slice(&bytes);
                        return true;
                    }
                }
            }
            false
        }
    }
}

/// Writes a text of ASCII into `slot` (all zero before), as most ids are; false when it is another or does not fit.
#[inline]
pub(crate) fn pack_plain(t: &[u8], slot: &mut [u8]) -> bool {
    let fits = t.len() <= slot.len() && slot.len().is_multiple_of(8);
    let Some(words) = words::three_words(t).filter(|w| fits && words::is_plain(*w, t.len())) else {
        return false;
    };
    // A first byte below a space would pass for a mark; zero bytes alone for none.
    if words[0] & 0xff < u64::from(b' ') {
        return false;
    }
    for (chunk, word) in slot.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    true
}

/// Reads a slot written by [`pack_id`]; `scratch` takes the text of a UUID. `None` when the slot is empty.
#[inline]
pub fn unpack_id<'a>(slot: &'a [u8], scratch: &'a mut [u8; 36]) -> Option<InlineId<'a>> {
    match slot[0] {
        0 => None,
        MARK_NUMBER => {
            Some(InlineId::Number(u64::from_le_bytes(slot[..8].try_into().expect("eight bytes")) >> 8))
        }
        // A slot too short for one holds the mark only when its tape is damaged; it then reads as text.
        mark @ (MARK_UUID_LOWER | MARK_UUID_UPPER) if slot.len() >= 17 => {
            uuid_text(slot[1..17].try_into().expect("a slot of 17 bytes"), mark == MARK_UUID_UPPER, scratch);
            Some(InlineId::Text(scratch))
        }
        _ => Some(InlineId::Text(&slot[..slot.iter().position(|&b| b == 0).unwrap_or(slot.len())])),
    }
}

fn uuid_bytes(t: &[u8], upper: bool) -> Option<[u8; 16]> {
    let mut out = [0u8; 16];
    let mut nibbles = 0;
    for (i, &b) in t.iter().enumerate() {
        if matches!(i, 8 | 13 | 18 | 23) {
            if b != b'-' {
                return None;
            }
            continue;
        }
        let v = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' if !upper => b - b'a' + 10,
            b'A'..=b'F' if upper => b - b'A' + 10,
            _ => return None,
        };
        out[nibbles / 2] |= if nibbles % 2 == 0 { v << 4 } else { v };
        nibbles += 1;
    }
    Some(out)
}

fn uuid_text(bytes: &[u8; 16], upper: bool, out: &mut [u8; 36]) {
    let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let mut nibbles = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    for (i, slot) in out.iter_mut().enumerate() {
        *slot = if matches!(i, 8 | 13 | 18 | 23) {
            b'-'
        } else {
            digits[usize::from(nibbles.next().expect("32 nibbles"))]
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(id: InlineId<'_>, n: usize) -> bool {
        let mut slot = vec![0; n];
        let mut scratch = [0; 36];
        pack_id(id, &mut slot) && {
            assert_eq!(unpack_id(&slot, &mut scratch), Some(id));
            true
        }
    }

    #[test]
    fn uuids_fit_twenty_four_bytes_and_keep_their_case() {
        assert!(round_trip(InlineId::Text(b"25ecf178-55e3-4914-90d6-53db38ff46c5"), 24));
        assert!(round_trip(InlineId::Text(b"25ECF178-55E3-4914-90D6-53DB38FF46C5"), 24));
        assert!(!round_trip(InlineId::Text(b"25ECf178-55E3-4914-90D6-53DB38FF46C5"), 24), "mixed case");
        assert!(!round_trip(InlineId::Text(b"25ecf178-55e3-4914-90d6-53db38ff46c5"), 16));
    }

    /// A flipped bit on a tape once made a reader panic here.
    #[test]
    fn damaged_slots_are_read_as_something() {
        for n in [8, 16, 24] {
            for mark in 0..=255 {
                let mut slot = vec![mark; n];
                unpack_id(&slot, &mut [0; 36]);
                slot[0] = mark;
                slot[1..].fill(0);
                unpack_id(&slot, &mut [0; 36]);
            }
        }
    }

    proptest! {
        #[test]
        fn what_fits_comes_back(n in any::<u64>(), t in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(round_trip(InlineId::Number(n), 8), n < 1 << 56);
            prop_assert_eq!(round_trip(InlineId::Number(n), 24), n < 1 << 56);
            let fits = round_trip(InlineId::Text(&t), 24);
            let is_inline_text = !t.is_empty() && t.len() <= 24 && t[0] >= b' ' && !t.contains(&0);
            prop_assert_eq!(fits, is_inline_text);
        }
    }
}
