//! Sets of characters: their names, and bytes as text in them. All codecs for text share this one rule:
//!
//! 1. the set that the input itself **declares** (a mail's `charset`, the declaration of XML, a layout);
//! 2. without one, **UTF-8** if the bytes are UTF-8;
//! 3. else the set that the **mapping** names (`encoding`);
//! 4. else **windows-1252**, of which every byte is a character. This is a guess, which is noted beside the text.
//!
//! Names are those of the WHATWG Encoding standard, the code pages of DOS (`IBM850`, `cp850`), and some more that mails
//! have. Of a set that nobody knows ([`push_ascii`]) the ASCII characters are kept.

mod pages;
mod utf7;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::fmt;

/// A set of characters with its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset(Table);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// ASCII; other bytes are no characters.
    Ascii,
    /// One of the WHATWG Encoding standard.
    Web(&'static Encoding),
    /// Index of a code page of DOS.
    Page(usize),
    /// UTF-7, RFC 2152.
    Utf7,
}

/// Names that the standard does not list, and its names for the same sets.
const ALIASES: [(&str, &str); 17] = [
    ("cp932", "shift_jis"),
    ("cp936", "gbk"),
    ("ms936", "gbk"),
    ("windows-936", "gbk"),
    ("cp949", "euc-kr"),
    ("ms949", "euc-kr"),
    ("cp950", "big5"),
    ("ms950", "big5"),
    ("cp51932", "euc-jp"),
    ("euc_kr", "euc-kr"),
    ("latin9", "iso-8859-15"),
    ("latin-9", "iso-8859-15"),
    ("latin10", "iso-8859-16"),
    ("cp10000", "macintosh"),
    ("macroman", "macintosh"),
    ("tis620", "tis-620"),
    ("cp65001", "utf-8"),
];

/// Names of ASCII.
const ASCII: [&str; 11] = [
    "us-ascii",
    "ascii",
    "us",
    "ansi_x3.4-1968",
    "ansi_x3.4-1986",
    "iso646-us",
    "iso_646.irv:1991",
    "cp367",
    "ibm367",
    "csascii",
    "646",
];

impl Charset {
    /// UTF-8.
    pub const UTF_8: Self = Self(Table::Web(UTF_8));
    /// ASCII.
    pub const ASCII: Self = Self(Table::Ascii);
    /// windows-1252, as browsers read it and ISO 8859-1 with it: every byte is a character.
    pub const WINDOWS_1252: Self = Self(Table::Web(WINDOWS_1252));

    /// Looks up a character set by its name, in any case. Returns `None` for an unknown name and for a name without a
    /// set, such as `unknown-8bit` or `x-unknown`.
    ///
    /// ```
    /// use unitape_codec::charset::Charset;
    ///
    /// assert_eq!(Charset::by_name("CP850").map(Charset::name), Some("IBM850"));
    /// assert_eq!(Charset::by_name("unknown-8bit"), None);
    /// ```
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        if ASCII.contains(&name.as_str()) {
            return Some(Self::ASCII);
        }
        if matches!(name.as_str(), "utf-7" | "unicode-1-1-utf-7" | "csunicode11utf7") {
            return Some(Self(Table::Utf7));
        }
        let listed = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name.as_str(), |(_, name)| name);
        // The standard has a set for pages that bring their own font: its characters are private ones.
        if let Some(encoding) =
            Encoding::for_label_no_replacement(listed.as_bytes()).filter(|e| e.name() != "x-user-defined")
        {
            return Some(Self(Table::Web(encoding)));
        }
        let number = ["cspc", "ibm", "cp", "dos-", "oem"]
            .iter()
            .find_map(|start| name.strip_prefix(start))
            .unwrap_or(&name)
            .trim_start_matches(['-', '_', '0']);
        pages::PAGES.iter().position(|(_, page, _)| *page == number).map(|n| Self(Table::Page(n)))
    }

    /// Returns the name of the character set.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Table::Ascii => "us-ascii",
            Table::Web(encoding) if encoding == WINDOWS_1252 => "windows-1252",
            Table::Web(encoding) => encoding.name(),
            Table::Page(n) => pages::PAGES[n].0,
            Table::Utf7 => "utf-7",
        }
    }

    /// Returns whether ASCII bytes always stand for themselves, unless they are part of a longer character. If so,
    /// markup can be found before the text is decoded.
    #[must_use]
    pub fn keeps_ascii(self) -> bool {
        match self.0 {
            Table::Web(encoding) => encoding.is_ascii_compatible(),
            Table::Utf7 => false,
            Table::Ascii | Table::Page(_) => true,
        }
    }

    /// Returns whether each character is one byte.
    #[must_use]
    pub fn is_single_byte(self) -> bool {
        match self.0 {
            Table::Web(encoding) => encoding.is_single_byte(),
            Table::Utf7 => false,
            Table::Ascii | Table::Page(_) => true,
        }
    }

    /// Appends `bytes` as UTF-8.
    ///
    /// # Errors
    /// Fails with the offset of the first byte that is no character or begins an incomplete character. Then nothing
    /// is appended.
    pub fn decode(self, bytes: &[u8], out: &mut String) -> Result<(), usize> {
        match self.0 {
            Table::Ascii => match bytes.iter().position(|b| !b.is_ascii()) {
                Some(offset) => Err(offset),
                None => self.push_page(bytes, "", out),
            },
            Table::Page(n) => self.push_page(bytes, pages::PAGES[n].2, out),
            Table::Utf7 => utf7::decode(bytes, out),
            Table::Web(encoding) => {
                // A mark says more than the name, which is often just `utf-16`.
                let (encoding, bytes) = match bytes {
                    [0xff, 0xfe, rest @ ..] if encoding == UTF_16BE || encoding == UTF_16LE => {
                        (UTF_16LE, rest)
                    }
                    [0xfe, 0xff, rest @ ..] if encoding == UTF_16BE || encoding == UTF_16LE => {
                        (UTF_16BE, rest)
                    }
                    _ => (encoding, bytes),
                };
                match encoding.decode_without_bom_handling_and_without_replacement(bytes) {
                    Some(text) => {
                        out.push_str(&text);
                        Ok(())
                    }
                    None => Err(first_fault(encoding, bytes)),
                }
            }
        }
    }

    fn push_page(self, bytes: &[u8], upper: &str, out: &mut String) -> Result<(), usize> {
        let old_length = out.len();
        let upper: Vec<char> = upper.chars().collect();
        for (offset, byte) in bytes.iter().enumerate() {
            let c = match byte.checked_sub(0x80) {
                None => char::from(*byte),
                Some(n) => upper.get(usize::from(n)).copied().unwrap_or(NO_CHARACTER),
            };
            if c == NO_CHARACTER {
                out.truncate(old_length);
                return Err(offset);
            }
            out.push(c);
        }
        Ok(())
    }
}

impl fmt::Display for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The character that replaces an invalid byte.
const NO_CHARACTER: char = '\u{fffd}';

/// Finds the first byte that is no character of the encoding. The decoder states only how far it has read, so this
/// searches for the length up to which the bytes can be decoded.
#[cold]
fn first_fault(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut out = String::with_capacity(64);
    let mut offset = 0;
    loop {
        out.clear();
        let (result, read) = decoder.decode_to_string_without_replacement(&bytes[offset..], &mut out, true);
        offset += read;
        match result {
            encoding_rs::DecoderResult::Malformed(bad_length, trailing_length) => {
                return offset.saturating_sub(usize::from(bad_length) + usize::from(trailing_length));
            }
            encoding_rs::DecoderResult::OutputFull => {}
            encoding_rs::DecoderResult::InputEmpty => return bytes.len().saturating_sub(1),
        }
    }
}

/// Appends the ASCII characters of text whose set is unknown; every other byte becomes U+FFFD.
pub fn push_ascii(bytes: &[u8], out: &mut String) {
    out.extend(bytes.iter().map(|b| if b.is_ascii() { char::from(*b) } else { NO_CHARACTER }));
}

/// Detects UTF-16 by the first bytes of an input: a byte order mark or an ASCII character.
#[must_use]
pub fn utf_16(head: &[u8]) -> Option<Charset> {
    match head {
        [0xff, 0xfe, ..] | [0x09..=0x7e, 0, _, ..] => Some(Charset(Table::Web(UTF_16LE))),
        [0xfe, 0xff, ..] | [0, 0x09..=0x7e, ..] => Some(Charset(Table::Web(UTF_16BE))),
        _ => None,
    }
}

/// The reading of text that declares no set and is not UTF-8: the set of the mapping, or a guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackCharset(Option<Charset>);

impl FallbackCharset {
    /// Reads by the set of this name.
    ///
    /// # Errors
    /// Fails if there is no such set, or if it is no superset of ASCII; the text says why.
    pub fn by_name(name: &str) -> Result<Self, String> {
        match Charset::by_name(name) {
            Some(charset) if charset.keeps_ascii() => Ok(Self(Some(charset))),
            Some(charset) => Err(format!("`{charset}` is no superset of ASCII: convert the file to UTF-8")),
            None => Err(format!(
                "the set of characters `{name}` is not known; there is what the WHATWG Encoding standard lists, and IBM437 to IBM869"
            )),
        }
    }

    /// Returns whether the charset is a guess.
    #[must_use]
    pub fn is_guess(self) -> bool {
        self.0.is_none()
    }

    /// Returns the charset to read with: windows-1252 if it is a guess.
    #[must_use]
    pub fn charset(self) -> Charset {
        self.0.unwrap_or(Charset::WINDOWS_1252)
    }

    /// Appends `bytes`, which are not UTF-8.
    ///
    /// # Errors
    /// Fails with the offset of the first byte that is no character of the mapping's set.
    pub fn decode(self, bytes: &[u8], out: &mut String) -> Result<(), usize> {
        self.charset().decode(bytes, out)
    }

    /// Returns the note for events whose text was read with a guessed charset; `None` if the charset is no guess.
    #[must_use]
    pub fn note(self) -> Option<&'static str> {
        self.is_guess().then_some(GUESS)
    }
}

/// The note on an event whose text was read with a guessed character set.
pub const GUESS: &str = "guessed windows-1252";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(name: &str, bytes: &[u8]) -> Result<String, usize> {
        let mut out = String::new();
        Charset::by_name(name).ok_or(usize::MAX)?.decode(bytes, &mut out)?;
        Ok(out)
    }

    /// Guards against a name in capitals whose accent became two characters, or a question mark.
    #[test]
    fn every_byte_is_one_character() {
        let mut text = String::new();
        Charset::WINDOWS_1252.decode(&(0..=255).collect::<Vec<u8>>(), &mut text).unwrap();
        assert_eq!(text.chars().count(), 256);
        assert_eq!((text.chars().nth(0x80), text.chars().nth(0xc9)), (Some('€'), Some('É')));
        let mut distinct_chars: Vec<char> = text.chars().collect();
        distinct_chars.sort_unstable();
        distinct_chars.dedup();
        assert_eq!(distinct_chars.len(), 256);
    }

    // Each of these names was in a mail that was refused for it.
    #[test]
    fn names_that_mails_have_are_known() {
        for (names, bytes, want) in [
            (&["cp850", "IBM850", "850", "csPC850", "ibm-850"][..], &b"Gr\x81\xe1e"[..], "Grüße"),
            (&["cp437", "IBM437", "437"], b"na\x8bve \xe3", "naïve π"),
            (&["IBM00858", "cp858", "cp00858"], b"5 \xd5", "5 €"),
            (&["cp852", "IBM852"], b"\x9d\xa2d\xab", "Łódź"),
            (&["cp866", "IBM866"], b"\x81\xa0\xad\xaa", "Банк"),
            (&["ks_c_5601-1987", "cp949", "windows-949"], b"\xbe\xc8\xb3\xe7", "안녕"),
            (&["cp936", "gb2312", "GBK"], b"\xc4\xe3", "你"),
            (&["cp932", "Shift_JIS", "windows-31j"], b"\x83\x65\x83\x58", "テス"),
            (&["big5", "cp950"], b"\xa7\x41", "你"),
            (&["latin1", "iso-8859-1", "windows-1252", " ISO_8859-1 "], b"\xe9", "é"),
            (&["latin9", "iso-8859-15"], b"\xa4", "€"),
            (&["utf-7", "UNICODE-1-1-UTF-7"], b"Gr+APwA3w-e 1+-1 +2D3eAA", "Grüße 1+1 😀"),
            (&["utf-16", "utf-16le"], b"\xfe\xff\0a\0\xe9", "aé"),
            (&["koi8-r"], b"\xc2\xc1\xce\xcb", "банк"),
            (&["macintosh", "x-mac-roman"], b"\x8e", "é"),
        ] {
            for name in names {
                assert_eq!(text(name, bytes).as_deref(), Ok(want), "{name}");
            }
        }
        for name in [
            "unknown-8bit",
            "x-unknown",
            "klingon",
            "",
            "binary",
            "x-user-defined",
            "ibm",
            "cp9999",
            "iso-2022-kr",
        ] {
            assert_eq!(Charset::by_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_byte_that_is_no_character_is_named_by_its_place() {
        for (name, bytes, offset) in [
            ("utf-8", &b"abc\xff"[..], 3),
            ("utf-8", b"ab\xe2\x82", 2),
            ("us-ascii", b"ab\xe9", 2),
            ("shift_jis", b"abc\x83", 3),
            ("big5", b"a\xa7\x41b\xff", 4),
            ("euc-kr", b"\xbe\xc8\xff", 2),
            ("cp857", b"x\xe7", 1),
            ("utf-7", b"ab+2D0-c", 2),
            ("utf-7", b"a\xe9", 1),
        ] {
            assert_eq!(text(name, bytes), Err(offset), "{name} {bytes:x?}");
        }
        let long = [&b"x".repeat(10_000)[..], b"\xff"].concat();
        assert_eq!(text("utf-8", &long), Err(10_000));
    }

    #[test]
    fn what_is_unknown_keeps_its_ascii() {
        let mut out = String::new();
        push_ascii(b"sell 100 VOD, na\xefve", &mut out);
        assert_eq!(out, "sell 100 VOD, na\u{fffd}ve");
    }

    #[test]
    fn utf_16_is_recognised() {
        for (head, name) in [
            (&b"\xff\xfe{\0"[..], Some("UTF-16LE")),
            (b"\xfe\xff\0{", Some("UTF-16BE")),
            (b"{\0\"\0", Some("UTF-16LE")),
            (b"\0<\0r", Some("UTF-16BE")),
            (b"{\"a\"", None),
            (b"", None),
            (b"\0\0", None),
        ] {
            assert_eq!(utf_16(head).map(Charset::name), name, "{head:x?}");
        }
    }

    #[test]
    fn a_mapping_names_a_superset_of_ascii() {
        assert_eq!(FallbackCharset::by_name("cp850").unwrap().note(), None);
        assert_eq!(FallbackCharset::default().note(), Some("guessed windows-1252"));
        assert!(FallbackCharset::by_name("utf-16").unwrap_err().contains("superset of ASCII"));
        assert!(FallbackCharset::by_name("klingon").unwrap_err().contains("`klingon`"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_text_or_have_a_place(
            name in prop::sample::select(&["utf-8", "big5", "gb18030", "euc-jp", "iso-2022-jp", "cp850", "windows-1252", "us-ascii"][..]),
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            match text(name, &bytes) {
                Ok(_) => {}
                Err(offset) => prop_assert!(offset < bytes.len(), "{offset}"),
            }
            if name == "windows-1252" {
                prop_assert!(text(name, &bytes).is_ok());
            }
        }
    }
}
