//! Ids of orders, matches and parents as keys.

use crate::state::wrapped;
use std::hash::Hasher as _;
use unitape_model::id::{pack_id, unpack_id};
use unitape_model::{Event, EventField, EventValue, InlineId};

/// An id as a key of fixed size: as in a place of 24 bytes or, when it does not fit one, a mark that
/// no id in place begins with, its length and a 128-bit hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdKey([u8; 24]);

const MARK_HASHED: u8 = 0x1f;

wrapped!(IdKey, [u8; 24], |key| key.0, |bytes| Some(IdKey(bytes)));

impl std::hash::Hash for IdKey {
    /// Hashes the id as three words, which costs a third of hashing bytes.
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let (words, _) = self.0.as_chunks::<8>();
        words.iter().for_each(|word| state.write_u64(u64::from_le_bytes(*word)));
    }
}

impl IdKey {
    /// No id; no id has this key.
    pub(crate) const NONE: Self = Self([0; 24]);

    /// Returns the key, or `None` for [`IdKey::NONE`].
    #[inline]
    pub(crate) fn as_option(self) -> Option<Self> {
        (self.0[0] != 0).then_some(self)
    }

    /// Reads the key of `field`, whose 24 bytes in the fixed part are `slot`.
    #[inline]
    pub(crate) fn from_slot(event: &Event<'_>, field: EventField, slot: &[u8; 24]) -> Option<Self> {
        if slot[0] != 0 {
            return Some(Self(*slot));
        }
        Self::read(event, field)
    }

    /// Reads the key of `field` from the fixed part or the extension.
    #[cold]
    pub(crate) fn read(event: &Event<'_>, field: EventField) -> Option<Self> {
        match event.field(field, &mut [0; 36]) {
            Some(EventValue::Id(id)) => Some(Self::new(id)),
            _ => None,
        }
    }

    /// Makes the key of a text.
    pub(crate) fn of_text(text: &str) -> Self {
        Self::new(InlineId::Text(text.as_bytes()))
    }

    fn new(id: InlineId<'_>) -> Self {
        let mut key = [0; 24];
        if pack_id(id, &mut key) {
            return Self(key);
        }
        let number;
        let bytes = match id {
            InlineId::Text(t) => t,
            InlineId::Number(n) => {
                number = n.to_le_bytes();
                &number
            }
        };
        key[0] = MARK_HASHED;
        key[1] = u8::from(matches!(id, InlineId::Number(_)));
        key[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        for half in 0..2u8 {
            // Its keys are fixed, so the key is the same on every run.
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write_u8(half);
            hasher.write(bytes);
            let offset = 8 + usize::from(half) * 8;
            key[offset..offset + 8].copy_from_slice(&hasher.finish().to_le_bytes());
        }
        Self(key)
    }

    /// Returns whether the key is the hash of an id that is too long for it. [`id_text`] reads the text from the
    /// current event.
    pub(crate) fn is_hashed(&self) -> bool {
        self.0[0] == MARK_HASHED
    }

    /// Writes the id for people. Of an id that did not fit, writes only its length in bytes.
    pub fn text(&self) -> String {
        if self.0[0] == MARK_HASHED {
            return format!(
                "(of {} bytes)",
                u32::from_le_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
            );
        }
        match unpack_id(&self.0, &mut [0; 36]) {
            Some(InlineId::Text(t)) => String::from_utf8_lossy(t).into_owned(),
            Some(InlineId::Number(n)) => n.to_string(),
            None => String::new(),
        }
    }
}

/// Reads the complete id in a field of the event.
pub(crate) fn id_text(event: &Event<'_>, field: EventField) -> Option<String> {
    match event.field(field, &mut [0; 36])? {
        EventValue::Id(InlineId::Text(t)) => Some(String::from_utf8_lossy(t).into_owned()),
        EventValue::Id(InlineId::Number(n)) => Some(n.to_string()),
        _ => None,
    }
}

/// Reads the id of the name in a field of the event; 0 if it has none.
pub(crate) fn name_id(event: &Event<'_>, field: EventField) -> u32 {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Sym(_, id)) => id,
        _ => 0,
    }
}

/// Reads the text or the code word in a field of the event.
pub(crate) fn field_text<'s>(
    event: &'s Event<'_>,
    field: EventField,
    scratch: &'s mut [u8; 36],
) -> Option<&'s str> {
    match event.field(field, scratch)? {
        EventValue::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an id has different keys in different places. A parent of 20 bytes is in the extension of an order and
    /// of an execution; a parent of 10 bytes is in a field of the order.
    #[test]
    fn an_id_has_one_key_wherever_it_stands() {
        let long = [b'x'; 40];
        let keys = [
            InlineId::Text(b"P1"),
            InlineId::Text(b"25ecf178-55e3-4914-90d6-53db38ff46c5"),
            InlineId::Text(&long),
            InlineId::Text(&long[..39]),
            InlineId::Number(1),
            InlineId::Number(u64::MAX),
        ]
        .map(IdKey::new);
        for (i, a) in keys.iter().enumerate() {
            assert!(keys.iter().skip(i + 1).all(|b| a != b));
        }
        let texts = keys.map(|k| k.text());
        let uuid = "25ecf178-55e3-4914-90d6-53db38ff46c5";
        assert_eq!(texts, ["P1", uuid, "(of 40 bytes)", "(of 39 bytes)", "1", "(of 8 bytes)"]);
        let mut slot = [0; 24];
        assert!(pack_id(InlineId::Text(b"P1"), &mut slot));
        assert_eq!(IdKey(slot), keys[0]);
    }
}
