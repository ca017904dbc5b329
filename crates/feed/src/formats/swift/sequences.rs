//! Sequences with letters, which no field names: recognised by the fields that begin them.
//!
//! | type | B begins | C begins |
//! |---|---|---|
//! | 202 COV, 205 COV | with the first `50a` | |
//! | 101, 110, 207, 210 | with each `21` | |
//! | 102 | with each `21` | with `32A` |
//! | 104, 107 | with each `21` | with the second `32B` behind a `21` |
//! | 201, 203 | with each `20` | |
//! | 204 | with each `20` but the first | |
//! | category 3 | with `15B` | with `15C`, and so on |
//!
//! Fields before them are in A. All other messages have no sequences, or name theirs with `16R`.

use unitape_codec::swift_mt::SwiftMessageType;

/// Follows the sequences of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwiftSequenceTracker {
    rule: SwiftSequenceRule,
    /// The current sequence; 0 outside sequences.
    letter: u8,
    /// `20` of a 204, and `32B` after a `21`.
    tag_count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SwiftSequenceRule {
    Nothing,
    Cover,
    Related { amounts_end_it: bool },
    Settlement,
    Reference { passed: u32 },
    Field15,
}

impl SwiftSequenceTracker {
    /// Makes the sequence state for a message of this type; `is_cover` must be true if its variant is COV.
    pub(super) fn for_type(kind: SwiftMessageType, is_cover: bool) -> Self {
        let rule = match kind {
            SwiftMessageType::Mt(202 | 205) if is_cover => SwiftSequenceRule::Cover,
            SwiftMessageType::Mt(101 | 110 | 207 | 210) => {
                SwiftSequenceRule::Related { amounts_end_it: false }
            }
            SwiftMessageType::Mt(104 | 107) => SwiftSequenceRule::Related { amounts_end_it: true },
            SwiftMessageType::Mt(102) => SwiftSequenceRule::Settlement,
            SwiftMessageType::Mt(201 | 203) => SwiftSequenceRule::Reference { passed: 0 },
            SwiftMessageType::Mt(204) => SwiftSequenceRule::Reference { passed: 1 },
            SwiftMessageType::Mt(300..=399) => SwiftSequenceRule::Field15,
            _ => SwiftSequenceRule::Nothing,
        };
        let letter =
            if matches!(rule, SwiftSequenceRule::Nothing | SwiftSequenceRule::Field15) { 0 } else { b'A' };
        Self { rule, letter, tag_count: 0 }
    }

    /// Advances to the next field and returns its sequence.
    #[inline]
    pub(super) fn next_sequence(&mut self, number: u8, option: u8) -> u8 {
        match (self.rule, number, option) {
            (SwiftSequenceRule::Nothing, ..) => {}
            (SwiftSequenceRule::Cover, 50, _) => self.letter = b'B',
            (SwiftSequenceRule::Related { .. } | SwiftSequenceRule::Settlement, 21, 0) => {
                (self.letter, self.tag_count) = (b'B', 0)
            }
            (SwiftSequenceRule::Settlement, 32, b'A') if self.letter == b'B' => self.letter = b'C',
            (SwiftSequenceRule::Related { amounts_end_it: true }, 32, b'B') if self.letter == b'B' => {
                self.tag_count += 1;
                if self.tag_count > 1 {
                    self.letter = b'C';
                }
            }
            (SwiftSequenceRule::Reference { passed }, 20, 0) => {
                self.tag_count += 1;
                if self.tag_count > passed {
                    self.letter = b'B';
                }
            }
            (SwiftSequenceRule::Field15, 15, b'A'..=b'Z') => self.letter = option,
            _ => {}
        }
        self.letter
    }

    /// Returns whether the message is a cover payment and the customers' sequence is current.
    #[inline]
    pub(super) fn in_cover(&self) -> bool {
        self.rule == SwiftSequenceRule::Cover && self.letter == b'B'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A creditor from the next transaction is paid by the wrong payer, and nothing looks wrong.
    #[test]
    fn each_type_has_its_sequences() {
        let letters = |kind, cover, fields: &str| -> String {
            let mut letters = SwiftSequenceTracker::for_type(SwiftMessageType::Mt(kind), cover);
            let split_tag =
                |tag: &str| (tag[..2].parse().unwrap(), tag.as_bytes().get(2).copied().unwrap_or(0));
            let each = fields.split(' ').map(|tag| {
                let (number, option) = split_tag(tag);
                match letters.next_sequence(number, option) {
                    0 => '-',
                    letter => char::from(letter),
                }
            });
            each.collect()
        };
        for (kind, cover, fields, expected) in [
            (103, false, "20 23B 32A 50K 59", "-----"),
            (202, false, "20 21 32A 50K 58A", "-----"),
            (202, true, "20 21 32A 58A 50K 59", "AAAABB"),
            (205, true, "20 21 32A 58A 50K 59", "AAAABB"),
            (101, false, "20 21R 28D 50H 30 21 32B 50C 59 21 32B 59", "AAAAABBBBBBB"),
            (102, false, "20 50K 21 32B 59 71G 21 32B 59 32A 19 71G", "AABBBBBBBCCC"),
            (104, false, "20 50K 30 21 32B 59 21 32B 59 32B 19 71F", "AAABBBBBBCCC"),
            (104, false, "20 30 21 32B 59 33B 32B", "AABBBBC"),
            (201, false, "19 30 53B 20 32B 57A 20 32B 57A", "AAABBBBBB"),
            (204, false, "20 19 30 58A 20 21 32B 53A 20 32B", "AAAABBBBBB"),
            (210, false, "20 25 30 21 32B 50K 21 32B", "AAABBBBB"),
            (300, false, "15A 20 22A 15B 30T 32B 33B 15C", "AAABBBBC"),
        ] {
            assert_eq!(letters(kind, cover, fields), expected, "{kind} {fields}");
        }
    }
}
