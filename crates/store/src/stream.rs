//! Streams of bytes in a block: as they are, or compressed by Zstandard (RFC 8878).
//!
//! ```text
//! raw         the bytes
//! zstd        length of the bytes (varint) │ a frame of Zstandard
//! ```

use std::fmt;

use zstd::bulk::{Compressor, Decompressor};

use crate::bits::{put_varint, take_varint};
use crate::column::EncodedColumn;

/// The numbers of the encodings, beside those of columns.
pub(crate) const RAW: u8 = 4;
const ZSTD: u8 = 5;
/// Fewer bytes are not compressed: a frame has a dozen of its own.
const COMPRESSED_MIN: usize = 64;
/// The level that the library takes if none is asked for.
const LEVEL: i32 = 3;

/// Compresses streams; keeps its memory.
#[derive(Default)]
pub(crate) struct StreamEncoder {
    compressor: Option<Compressor<'static>>,
    compressed: Vec<u8>,
}

impl StreamEncoder {
    /// Appends `bytes` to `out` in the smaller encoding.
    pub fn encode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> EncodedColumn {
        EncodedColumn { encoding: self.write(bytes, out), slope: None }
    }

    /// Appends `bytes` to `out`. Returns the number of the encoding.
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
        if bytes.len() >= COMPRESSED_MIN && self.compress(bytes).is_some() {
            let start = out.len();
            put_varint(out, bytes.len() as u64);
            out.extend_from_slice(&self.compressed);
            if out.len() - start < bytes.len() {
                return ZSTD;
            }
            out.truncate(start);
        }
        out.extend_from_slice(bytes);
        RAW
    }

    /// Compresses into `self.compressed`. `None` if there is no memory for it.
    fn compress(&mut self, bytes: &[u8]) -> Option<()> {
        if self.compressor.is_none() {
            self.compressor = Some(Compressor::new(LEVEL).ok()?);
        }
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.compressor.as_mut()?.compress_to_buffer(bytes, &mut self.compressed).ok().map(drop)
    }
}

impl fmt::Debug for StreamEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamEncoder(..)")
    }
}

/// Opens streams; keeps its memory.
#[derive(Default)]
pub(crate) struct StreamDecoder(Option<Decompressor<'static>>);

impl StreamDecoder {
    /// Returns the bytes of a stream: those of `encoded`, or those that it puts into `out`. A stream of more than `bytes_max`
    /// bytes is refused.
    pub fn decode<'b>(
        &mut self,
        encoding: u8,
        encoded: &'b [u8],
        bytes_max: usize,
        out: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], &'static str> {
        const BAD: &str = "a stream that cannot be decompressed";
        match encoding {
            RAW => return Ok(encoded),
            ZSTD => {}
            _ => return Err("a stream of no encoding that there is"),
        }
        let mut offset = 0;
        let bytes = take_varint(encoded, &mut offset).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes =
            bytes.filter(|bytes| *bytes <= bytes_max).ok_or("a stream that is longer than its rows")?;
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().map_err(|_| BAD)?),
        };
        out.clear();
        out.reserve_exact(bytes);
        let written = decompressor.decompress_to_buffer(&encoded[offset..], out).map_err(|_| BAD)?;
        if written == bytes { Ok(out) } else { Err(BAD) }
    }
}

impl fmt::Debug for StreamDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamDecoder(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fails if a stream comes back otherwise, or if a changed one gives more bytes than it may.
        #[test]
        fn streams_come_back_or_are_refused(
            bytes in proptest::collection::vec(0u8..4, 0..3000), hit in any::<prop::sample::Index>(), change in 1u8..,
        ) {
            let (mut encoded, mut out) = (Vec::new(), Vec::new());
            let encoding = StreamEncoder::default().write(&bytes, &mut encoded);
            prop_assert!(encoded.len() <= bytes.len().max(1));
            let mut decoder = StreamDecoder::default();
            prop_assert_eq!(decoder.decode(encoding, &encoded, bytes.len(), &mut out), Ok(&bytes[..]));
            if encoding == ZSTD {
                prop_assert!(decoder.decode(encoding, &encoded, bytes.len() - 1, &mut out).is_err());
                let byte = hit.index(encoded.len());
                encoded[byte] ^= change;
                if let Ok(read) = decoder.decode(encoding, &encoded, bytes.len(), &mut out) {
                    prop_assert!(read.len() <= bytes.len());
                }
            }
        }
    }
}
