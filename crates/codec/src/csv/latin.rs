//! Text of which each byte is a character: windows-1252, as browsers read it and ISO 8859-1 with it. Every byte is
//! one, so nothing can be wrong with such text.

/// Appends the characters of `text` as UTF-8.
pub(super) fn push_utf8(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        let c = match *byte {
            byte @ 0x80..=0x9f => HIGH_CONTROLS[usize::from(byte - 0x80)],
            byte => char::from(byte),
        };
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// The characters that are where ISO 8859-1 has controls; those that are none stay controls.
#[rustfmt::skip]
const HIGH_CONTROLS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A name in capitals with an accent became two characters, or a question mark.
    #[test]
    fn every_byte_is_one_character() {
        let mut out = Vec::new();
        push_utf8(&(0..=255).collect::<Vec<u8>>(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.chars().count(), 256);
        assert_eq!(text.chars().nth(0x80), Some('€'));
        assert_eq!(text.chars().nth(0xc9), Some('É'));
        let mut sorted: Vec<char> = text.chars().collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 256);
    }
}
