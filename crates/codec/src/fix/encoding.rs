//! Text that is not ASCII: MessageEncoding (347) and the fields that it is for.
//!
//! ```text
//! 347=Shift_JIS | 354=4 | 355=<83 65 83 58> | …      355 is EncodedText: "テス"
//! ```
//!
//! Only fields that the standard calls Encoded… are in the encoding that 347 names; all others are
//! ASCII, or whatever the sender made of it.

use std::borrow::Cow;

use super::token::TokenSlice;

/// The tag of MessageEncoding.
pub const MESSAGE_ENCODING: u32 = 347;

/// Returns whether the standard puts text in the message's encoding into the field `tag`.
#[must_use]
pub fn is_encoded(tag: u32) -> bool {
    ENCODED.binary_search(&tag).is_ok()
}

/// Returns the encoding that a message names, as the message spells it.
#[must_use]
pub fn message_encoding<'m>(message: &'m [u8], tokens: TokenSlice<'_>) -> Option<&'m [u8]> {
    let index = tokens.tags().iter().position(|&tag| tag == MESSAGE_ENCODING)?;
    tokens.get(index).map(|token| message.get(token.start as usize..token.end as usize).unwrap_or_default())
}

/// Decodes `value` with the encoding `name`, in any case. Names are those of the standard (`ISO-2022-JP`, `EUC-JP`,
/// `SHIFT_JIS`, `UTF-8`) and of browsers (`GB18030`, `Big5`, `ISO-8859-1`). Returns `None` for an unknown name or a
/// byte without meaning in the encoding: it never guesses.
///
/// ```
/// use unitape_codec::fix::encoding;
///
/// assert_eq!(encoding::text(b"SHIFT_JIS", &[0x83, 0x65, 0x83, 0x58]).as_deref(), Some("テス"));
/// assert_eq!(encoding::text(b"SHIFT_JIS", &[0x83]), None);
/// assert_eq!(encoding::text(b"KLINGON", b"Qapla'"), None);
/// ```
#[must_use]
pub fn text<'v>(name: &[u8], value: &'v [u8]) -> Option<Cow<'v, str>> {
    let encoding = encoding_rs::Encoding::for_label_no_replacement(name)?;
    // FIX is made of bytes: an encoding in which SOH is two bytes cannot be meant.
    if encoding == encoding_rs::UTF_16BE || encoding == encoding_rs::UTF_16LE {
        return None;
    }
    encoding.decode_without_bom_handling_and_without_replacement(value)
}

/// The fields of type DATA called Encoded… in FIX 4.2 to 5.0 SP2, sorted.
const ENCODED: &[u32] = &[
    349, 351, 353, 355, 357, 359, 361, 363, 365, 446, 619, 622, 1278, 1281, 1398, 1469, 1527, 1579, 1621,
    1665, 1697, 1734, 2073, 2075, 2112, 2180, 2288, 2352, 2371, 2482, 2493, 2521, 2638, 2652, 2666, 2716,
    2719, 2722, 2798, 2801, 2808, 2814, 40005, 40009, 40979, 40981, 40983, 40985, 40987, 40989, 41084, 41102,
    41108, 41257, 41321, 41325, 41459, 41477, 41483, 41654, 41711, 41807, 41812, 41874, 41970, 42026, 42172,
];

#[cfg(test)]
mod tests {
    use super::super::RawFieldTags;
    use super::*;

    // A tag out of order is never found; one that is no data field could not hold what it must.
    #[test]
    fn encoded_fields_are_data_fields_in_order() {
        assert!(ENCODED.is_sorted());
        let data = RawFieldTags::standard();
        assert!(ENCODED.iter().all(|&tag| data.is_data(tag)));
        assert!(is_encoded(355) && !is_encoded(96) && !is_encoded(58));
    }

    // Each encoding that the standard names, and what must not pass for text.
    #[test]
    fn encodings_of_the_standard() {
        for (name, bytes) in [
            ("ISO-2022-JP", &b"\x1b$B%F%9\x1b(B"[..]),
            ("EUC-JP", b"\xa5\xc6\xa5\xb9"),
            ("Shift_JIS", b"\x83\x65\x83\x58"),
            ("SHIFT_JIS", b"\x83\x65\x83\x58"),
            ("UTF-8", "テス".as_bytes()),
        ] {
            assert_eq!(text(name.as_bytes(), bytes).as_deref(), Some("テス"), "{name}");
        }
        assert_eq!(text(b"UTF-8", b"\xff"), None);
        assert_eq!(text(b"EUC-JP", b"\xa5"), None);
        assert_eq!(text(b"UTF-16", b"ab"), None);
        assert_eq!(text(b"", b"ab"), None);
        // An encoding that browsers replace as a whole.
        assert_eq!(text(b"ISO-2022-KR", b"ab"), None);
    }
}
