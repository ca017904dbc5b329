//! Ids of venues as words: what instruments, products and states are known by, without a text to compare.

use rustc_hash::FxHashMap;
use unitape_fast::{DecodedValue, FieldValue};

/// An id of the venue: a number, or a text of up to eight bytes, or the place of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NativeId {
    pub bits: u64,
    pub kind: u8,
}

impl NativeId {
    pub const NONE: NativeId = NativeId { bits: 0, kind: 255 };
    pub const NUMBER: u8 = 254;
    /// In [`LongIdTable`].
    pub const LONG: u8 = 253;

    /// Returns whether the id is [`NativeId::NONE`]. No other id has its kind.
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.kind == Self::NONE.kind
    }

    pub const fn number(bits: u64) -> Self {
        NativeId { bits, kind: Self::NUMBER }
    }
}

/// Ids that are texts of more than eight bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct LongIdTable {
    number_by_text: FxHashMap<Box<[u8]>, u32>,
    texts: Vec<Box<[u8]>>,
}

/// Long ids kept, at most.
const IDS_MAX: usize = 1 << 20;

impl LongIdTable {
    #[inline(always)]
    pub fn intern(&mut self, value: DecodedValue<'_>) -> Option<NativeId> {
        match value.uint() {
            Some(n) => Some(NativeId::number(n)),
            None => self.intern_value(value.get()),
        }
    }

    #[inline(never)]
    fn intern_value(&mut self, value: FieldValue<'_>) -> Option<NativeId> {
        match value {
            FieldValue::UInt(n) => Some(NativeId::number(n)),
            FieldValue::Int(n) => Some(NativeId::number(n as u64)),
            FieldValue::Text(text) | FieldValue::Bytes(text) if text.len() <= 8 => {
                let mut word = [0; 8];
                word[..text.len()].copy_from_slice(text);
                Some(NativeId { bits: u64::from_le_bytes(word), kind: text.len() as u8 })
            }
            FieldValue::Text(text) | FieldValue::Bytes(text) => self.intern_long(text),
            FieldValue::Decimal { .. } => None,
        }
    }

    #[cold]
    fn intern_long(&mut self, text: &[u8]) -> Option<NativeId> {
        let bits = match self.number_by_text.get(text) {
            Some(index) => u64::from(*index),
            // An id that is no text is shown in two digits a byte.
            None if text.len() > ID_BYTES_MAX / 2 && std::str::from_utf8(text).is_err() => return None,
            None if self.texts.len() >= IDS_MAX || text.len() > ID_BYTES_MAX => return None,
            None => {
                let index = self.texts.len() as u32;
                self.texts.push(text.into());
                self.number_by_text.insert(text.into(), index);
                u64::from(index)
            }
        };
        Some(NativeId { bits, kind: NativeId::LONG })
    }

    /// Returns the bytes of a text id, or `None` for a number.
    pub fn id_text<'a>(&'a self, id: NativeId, short: &'a mut [u8; 8]) -> Option<&'a [u8]> {
        match id.kind {
            NativeId::NUMBER => None,
            NativeId::LONG => self.texts.get(id.bits as usize).map(|text| &text[..]),
            len => {
                *short = id.bits.to_le_bytes();
                short.get(..usize::from(len))
            }
        }
    }

    /// Formats an id for display. Bytes that are not UTF-8 become hexadecimal digits, so that no two ids look alike.
    pub fn display_text(&self, id: NativeId) -> String {
        match self.id_text(id, &mut [0; 8]) {
            Some(text) => match std::str::from_utf8(text) {
                Ok(text) => text.to_owned(),
                Err(_) => text.iter().map(|byte| format!("{byte:02x}")).collect(),
            },
            None => id.bits.to_string(),
        }
    }
}

/// Bytes of an id, at most: as of a name in events.
pub(super) const ID_BYTES_MAX: usize = 255;
