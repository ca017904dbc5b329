//! Separators: SOH on the wire, what logs show instead.

/// How fields are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldSeparator {
    /// The byte 0x01, as on the wire.
    #[default]
    Soh,
    /// `|`, as in many logs.
    Pipe,
    /// `;`, as in some logs.
    Semicolon,
    /// The two characters `^A`.
    CaretA,
}

/// Whether a separator is somewhere.
pub(crate) enum SeparatorOutcome {
    Yes,
    No,
    Need,
}

impl FieldSeparator {
    /// Reads a separator as users write it: `SOH`, `\x01`, `|`, `;` or `^A`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "SOH" | "soh" | "\u{1}" | "\\x01" | "" => Some(FieldSeparator::Soh),
            "|" => Some(FieldSeparator::Pipe),
            ";" => Some(FieldSeparator::Semicolon),
            "^A" => Some(FieldSeparator::CaretA),
            _ => None,
        }
    }

    /// Returns the separator if it is one byte; `None` for `^A`.
    #[inline]
    #[must_use]
    pub const fn byte(self) -> Option<u8> {
        // By its number in a table: this is asked for each message.
        const BYTES: [u8; 4] = [1, b'|', b';', 0];
        match BYTES[self as usize] {
            0 => None,
            byte => Some(byte),
        }
    }

    /// Returns the separator's bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            FieldSeparator::Soh => b"\x01",
            FieldSeparator::Pipe => b"|",
            FieldSeparator::Semicolon => b";",
            FieldSeparator::CaretA => b"^A",
        }
    }

    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.bytes().len()
    }

    #[inline]
    pub(crate) fn is_at(self, buf: &[u8], offset: usize) -> bool {
        match self.byte() {
            Some(sep) => buf.get(offset) == Some(&sep),
            None => buf.get(offset..offset + 2) == Some(b"^A"),
        }
    }

    #[inline]
    pub(crate) fn check_at(self, buf: &[u8], offset: usize) -> SeparatorOutcome {
        if self.is_at(buf, offset) {
            return SeparatorOutcome::Yes;
        }
        match buf.get(offset) {
            None => SeparatorOutcome::Need,
            Some(b'^') if self == FieldSeparator::CaretA && offset + 1 == buf.len() => SeparatorOutcome::Need,
            Some(_) => SeparatorOutcome::No,
        }
    }

    /// Finds the next separator at or after `offset`.
    #[inline]
    pub(crate) fn find(self, buf: &[u8], offset: usize) -> Option<usize> {
        let bytes_after = buf.get(offset..)?;
        match self.byte() {
            Some(sep) => memchr::memchr(sep, bytes_after),
            None => memchr::memmem::find(bytes_after, b"^A"),
        }
        .map(|distance| offset + distance)
    }
}
