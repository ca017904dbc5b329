//! The fields that the rules for a message type ask for, found by tag.

use super::path::{SwiftFieldPath, SwiftPath};
use crate::mapping::{PathSlots, SlotUsage};

/// A field of the text that the mapping names.
#[derive(Debug)]
pub(super) struct SwiftFieldTarget {
    /// A bit for each option that is meant, see [`option_bit`].
    options: u32,
    sequence: Option<Box<[u8]>>,
    /// The word that [`qualifier_word`] returns; 0 for any qualifier.
    qualifier: u32,
    /// The part of the field.
    pub(super) part: SwiftFieldSelector,
    /// Its slot; 0 for a field that is known and not wanted.
    pub(super) slot: u8,
    /// The group whose entries it is a member of, and whether it begins one.
    pub(super) group: Option<(u8, bool)>,
}

/// The part of a field that the mapping wants.
#[derive(Debug)]
pub(super) enum SwiftFieldSelector {
    Whole,
    Named(Box<str>),
    Signed,
    Moment,
    Country,
}

/// A part of a block, and its slot.
#[derive(Debug)]
pub(super) struct SwiftBlockTarget {
    pub(super) block: u8,
    pub(super) part: Box<str>,
    pub(super) slot: u8,
}

/// All that the rules for a type of message ask for.
#[derive(Debug)]
pub(super) struct SwiftFieldSelection {
    /// By the tag's number.
    fields: Vec<Vec<SwiftFieldTarget>>,
    pub(super) blocks: Vec<SwiftBlockTarget>,
    /// Slots of values that are not fields; 0 if the mapping does not use them.
    pub(super) kind: u8,
    pub(super) mt: u8,
    pub(super) category: u8,
    pub(super) ack: u8,
    pub(super) repeat_slot: u8,
    pub(super) uetr: u8,
    pub(super) return_slot: u8,
    pub(super) variant: u8,
    pub(super) time_slot: u8,
    pub(super) entries: u8,
    pub(super) sum_differs: u8,
    pub(super) sum_unchecked: u8,
    /// Unlisted fields are kept.
    pub(super) keeps_unlisted: bool,
    /// For each group, the sequence that bounds an entry; without one, an entry has no gaps.
    pub(super) entry_bounds: Vec<Option<Box<[u8]>>>,
}

/// The current sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwiftSequenceContext<'p> {
    /// The innermost `16R`.
    pub(super) innermost: &'p [u8],
    /// The letter, where sequences have letters.
    pub(super) letter: u8,
    /// Sequence B of a cover payment.
    pub(super) is_cover: bool,
}

impl SwiftFieldSelection {
    pub(super) fn new(places: &PathSlots<SwiftPath>, usage: &SlotUsage) -> Self {
        let looked_at = |slot: u8| if usage.message_slots[usize::from(slot)] { slot } else { 0 };
        let slot = |path: &SwiftPath| looked_at(places.message.get(path).copied().unwrap_or(0));
        let lasts = places.groups.iter().map(|group| match &group.delimiter {
            SwiftPath::Field(SwiftFieldPath { sequence: Some(name), .. }, _) if name.len() > 1 => {
                Some(name.as_bytes().into())
            }
            _ => None,
        });
        let mut this = Self {
            fields: (0..100).map(|_| Vec::new()).collect(),
            blocks: Vec::new(),
            kind: slot(&SwiftPath::Type),
            mt: slot(&SwiftPath::Mt),
            category: slot(&SwiftPath::Category),
            ack: slot(&SwiftPath::Ack),
            repeat_slot: slot(&SwiftPath::Repeat),
            uetr: slot(&SwiftPath::Uetr),
            return_slot: slot(&SwiftPath::Return),
            variant: slot(&SwiftPath::Variant),
            time_slot: slot(&SwiftPath::Time),
            entries: slot(&SwiftPath::Entries),
            sum_differs: slot(&SwiftPath::SumDiffers),
            sum_unchecked: slot(&SwiftPath::SumUnchecked),
            keeps_unlisted: places.keeps,
            entry_bounds: lasts.collect(),
        };
        for (path, &slot) in &places.message {
            match (path, looked_at(slot)) {
                (_, 0) => {}
                (SwiftPath::Block(block, part), slot) => {
                    this.blocks.push(SwiftBlockTarget { block: *block, part: part.as_str().into(), slot });
                }
                (SwiftPath::Field(field, part), slot) => this.add_target(field, part.as_deref(), slot, None),
                _ => {}
            }
        }
        for (g, group) in places.groups.iter().enumerate().filter(|(g, _)| usage.used_groups[*g]) {
            for (path, &slot) in &group.members {
                if let SwiftPath::Field(field, part) = path {
                    let begins_entry = *path == group.delimiter;
                    this.add_target(field, part.as_deref(), slot, Some((g as u8, begins_entry)));
                }
            }
        }
        for path in &places.dropped {
            if let SwiftPath::Field(field, None) = path {
                this.add_target(field, None, 0, None);
            }
        }
        this
    }

    fn add_target(
        &mut self,
        field: &SwiftFieldPath,
        part: Option<&str>,
        slot: u8,
        group: Option<(u8, bool)>,
    ) {
        let bytes = |text: &Option<String>| text.as_ref().map(|t| t.as_bytes().into());
        // Only option F of a party has a line for the country.
        let is_party_country = matches!(field.number, 50..=59) && part == Some("country");
        self.fields[usize::from(field.number)].push(SwiftFieldTarget {
            options: match field.options.as_deref() {
                None => u32::MAX,
                Some("") => option_bit(0),
                Some(letters) => letters.bytes().map(option_bit).fold(0, |all, bit| all | bit),
            } & if is_party_country { option_bit(b'F') } else { u32::MAX },
            sequence: bytes(&field.sequence),
            qualifier: field.qualifier.as_ref().and_then(|q| q.as_bytes().first_chunk()).map_or(0, pack_word),
            part: match part {
                None => SwiftFieldSelector::Whole,
                Some("signed") => SwiftFieldSelector::Signed,
                Some(_) if is_party_country => SwiftFieldSelector::Country,
                Some("moment") => SwiftFieldSelector::Moment,
                Some(name) => SwiftFieldSelector::Named(name.into()),
            },
            slot,
            group,
        });
    }

    /// Returns the selections for fields with this number.
    #[inline]
    pub(super) fn for_number(&self, number: u8) -> &[SwiftFieldTarget] {
        &self.fields[usize::from(number)]
    }
}

impl SwiftFieldTarget {
    /// Returns whether this field is selected: by the bit of its option, the word of its qualifier and its sequence.
    #[inline]
    pub(super) fn matches(&self, option: u32, qualifier: u32, context: SwiftSequenceContext<'_>) -> bool {
        self.options & option != 0
            && (self.qualifier == 0 || self.qualifier == qualifier)
            && match self.sequence.as_deref() {
                None => !context.is_cover,
                Some(sequence) if context.innermost.is_empty() => sequence == [context.letter],
                Some(sequence) => sequence == context.innermost,
            }
    }
}

/// Returns the bit of an option's letter; 0 means no letter.
#[inline]
pub(super) fn option_bit(letter: u8) -> u32 {
    match letter {
        0 => 1,
        letter => 2u32.wrapping_shl(letter.wrapping_sub(b'A').into()),
    }
}

/// Returns the qualifier at the start of a value (`:SETR/…`) as a word; 0 without a qualifier. It does not check the
/// four bytes.
#[inline]
pub(super) fn qualifier_word(value: &[u8]) -> u32 {
    match value.first_chunk::<5>() {
        Some([b':', rest @ ..]) => pack_word(rest),
        _ => 0,
    }
}

fn pack_word(four: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*four)
}
