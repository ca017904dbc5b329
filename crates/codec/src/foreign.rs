//! Inputs that are not text of the format at all, by their first bytes, and what programs leave at the end of a text.

/// An input that no format of text reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignInput {
    /// Text in UTF-16, with a byte order mark or without one.
    Utf16,
    /// A ZIP archive.
    ZipArchive,
}

/// What the first bytes of an input say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignCheck {
    Is(ForeignInput),
    No,
    /// This many bytes decide.
    Needs(usize),
}

impl ForeignInput {
    /// Looks at the first bytes of an input; `eof` says that there are no more.
    pub(crate) fn check(head: &[u8], eof: bool) -> ForeignCheck {
        let head_sample = &head[..head.len().min(CHECKED_BYTES)];
        let is_whole = head_sample.len() == CHECKED_BYTES;
        let zeros_at =
            |odd: usize| head_sample.iter().enumerate().all(|(i, byte)| (*byte == 0) == (i % 2 == odd));
        let is_wide = zeros_at(1) || zeros_at(0);
        let may_be_archive = ZIP_SIGNS.iter().any(|sign| sign.starts_with(head_sample));
        let may_be_mark = MARKS.iter().any(|mark| mark.starts_with(head_sample));
        match () {
            () if MARKS.iter().any(|mark| head_sample.starts_with(mark)) => ForeignCheck::Is(Self::Utf16),
            () if is_whole && is_wide => ForeignCheck::Is(Self::Utf16),
            () if is_whole && may_be_archive => ForeignCheck::Is(Self::ZipArchive),
            () if !is_whole && !eof && (is_wide || may_be_archive || may_be_mark) => {
                ForeignCheck::Needs(head.len() + 1)
            }
            () => ForeignCheck::No,
        }
    }

    /// Describes the kind of the file, and what to do with it.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            ForeignInput::Utf16 => {
                "the file is in UTF-16, which is not read: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
            }
            ForeignInput::ZipArchive => {
                "the file is a ZIP archive: unpack it and name the files in it (unzip)"
            }
        }
    }
}

/// What a text may have behind its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndPadding {
    /// Nothing else follows: the text is over.
    Is,
    No,
    /// More bytes decide.
    Undecided,
}

impl EndPadding {
    /// Checks the bytes after the last line that was read. DOS programs write a Ctrl-Z there, others fill the last
    /// block with NUL bytes.
    #[inline]
    pub(crate) fn check(rest: &[u8], eof: bool) -> Self {
        match rest.first().copied() {
            Some(0 | CTRL_Z) => Self::check_all(rest, eof),
            _ => Self::No,
        }
    }

    #[cold]
    fn check_all(rest: &[u8], eof: bool) -> Self {
        let is_padding =
            rest.len() <= PADDING_BYTES_MAX && rest.iter().all(|b| matches!(*b, 0 | CTRL_Z | b'\r' | b'\n'));
        match is_padding {
            true if eof => Self::Is,
            true => Self::Undecided,
            false => Self::No,
        }
    }
}

const CTRL_Z: u8 = 0x1a;

/// Bytes of padding, at most.
const PADDING_BYTES_MAX: usize = 4096;

/// Bytes that decide.
const CHECKED_BYTES: usize = 4;

/// Byte order marks of UTF-16.
const MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The starts of a ZIP archive, of one without files the second.
const ZIP_SIGNS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against thousands of bad rows without a cause: once from an export in UTF-16, once from a packed file.
    #[test]
    fn inputs_are_known_by_their_first_bytes() {
        let utf_16 = ForeignCheck::Is(ForeignInput::Utf16);
        for (head, check) in [
            (&b"\xff\xfea\0"[..], utf_16),
            (b"\xfe\xff", utf_16),
            (b"a\0,\0b\0", utf_16),
            (b"\0a\0,", utf_16),
            (b"PK\x03\x04\x14", ForeignCheck::Is(ForeignInput::ZipArchive)),
            (b"PK\x05\x06", ForeignCheck::Is(ForeignInput::ZipArchive)),
            (b"PK", ForeignCheck::Needs(3)),
            (b"a", ForeignCheck::Needs(2)),
            (b"\xff", ForeignCheck::Needs(2)),
            (b"", ForeignCheck::Needs(1)),
            (b"PK,", ForeignCheck::No),
            (b"a,", ForeignCheck::No),
            (b"a\0\0\0", ForeignCheck::No),
            (b"\0\0\0\0", ForeignCheck::No),
        ] {
            assert_eq!(ForeignInput::check(head, false), check, "{head:x?}");
        }
        assert_eq!(ForeignInput::check(b"PK", true), ForeignCheck::No);
        for (rest, eof, padding) in [
            (&b"\x1a"[..], true, EndPadding::Is),
            (b"\0\0\r\n\x1a", true, EndPadding::Is),
            (b"\x1a", false, EndPadding::Undecided),
            (b"\x1a1,2", true, EndPadding::No),
            (b"1\x1a", true, EndPadding::No),
            (&[0; PADDING_BYTES_MAX + 1], true, EndPadding::No),
        ] {
            assert_eq!(EndPadding::check(rest, eof), padding, "{rest:x?}");
        }
    }
}
