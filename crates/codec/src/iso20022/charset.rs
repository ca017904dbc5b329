//! Sets of characters of one byte that a document may declare in place of UTF-8.

use super::{IsoFault, IsoFaultKind};
use encoding_rs::Encoding;

/// A set of characters of one byte. All of them begin with ASCII, so that markup is found before they are decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleByteCharset {
    encoding: &'static Encoding,
    /// The set is of ISO 8859, where the bytes 0x80 to 0x9f are control characters. Text has none of them; text with
    /// a wrong declaration has.
    is_iso: bool,
}

impl SingleByteCharset {
    /// The set of this name in small letters.
    pub(super) fn by_name(name: &[u8]) -> Option<Self> {
        let encoding = Encoding::for_label_no_replacement(name).filter(|e| e.is_single_byte())?;
        Some(Self { encoding, is_iso: !name.starts_with(b"windows-") })
    }

    /// Appends `bytes` as UTF-8.
    ///
    /// # Errors
    /// The first byte that is no character of the set.
    pub(super) fn decode(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), IsoFault> {
        let is_control = |b: &u8| self.is_iso && (0x80..0xa0).contains(b);
        let fault = |n: usize| IsoFault { what: IsoFaultKind::Uncoded(bytes[n]), at: n as u32 };
        if let Some(n) = bytes.iter().position(is_control) {
            return Err(fault(n));
        }
        match self.encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            None => {
                let alone = |b: &u8| {
                    self.encoding.decode_without_bom_handling_and_without_replacement(&[*b]).is_none()
                };
                Err(fault(bytes.iter().position(alone).unwrap_or(0)))
            }
        }
    }
}
