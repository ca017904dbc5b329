//! For fuzzing: what decoders do with any bytes.

use std::path::Path;

use crate::bits::PAD;
use crate::block::{BlockHeader, ENTRY, HEADER};
use crate::decode::{Batch, Decoder, Wanted};
use crate::manifest::Manifest;

/// Decodes `data` as a block, once as it is and once with all checksums made right, so that what stands behind them is
/// reached too. Only panics, endless loops and memory without bound are findings.
///
/// # Panics
/// If a decoded batch is not whole frames within what the block says it holds.
pub fn any_block(data: &[u8]) {
    let mut block = data.to_vec();
    for mend in [false, true] {
        if mend {
            mend_checksums(&mut block);
        }
        let Ok(head) = BlockHeader::decode(&block) else { continue };
        let length = block.len();
        block.resize(length + PAD, 0);
        for venue in [None, Some(1)] {
            let wanted = Wanted { from: i64::MIN, to: i64::MAX, venue, listed: None };
            let mut batch = Batch::default();
            if Decoder::default().decode(&block, &head, &wanted, &mut batch).is_ok() {
                assert!(batch.arena.len() <= head.raw_bytes as usize);
                batch.sort();
                for key in &batch.keys {
                    assert!(unitape_model::Event::new(batch.frame(key)).is_some());
                }
            }
        }
        block.truncate(length);
    }
}

/// Reads `data` as a manifest.
pub fn any_manifest(data: &[u8]) {
    _ = Manifest::parse(data, Path::new("manifest"));
}

/// Puts the right checksums into what may be a block.
fn mend_checksums(block: &mut [u8]) {
    if block.len() < HEADER {
        return;
    }
    let columns = usize::from(u16::from_le_bytes([block[18], block[19]]));
    let length = block.len() as u32;
    block[4..8].copy_from_slice(&length.to_le_bytes());
    let table_end = (HEADER + columns * ENTRY).min(block.len());
    let mut at = table_end;
    for entry in (HEADER..table_end).step_by(ENTRY).filter(|e| e + ENTRY <= table_end) {
        let bytes = u32::from_le_bytes(block[entry + 4..entry + 8].try_into().expect("four bytes"));
        let end = at.saturating_add(bytes as usize).min(block.len());
        let crc = crc32c::crc32c(&block[at..end]);
        block[entry + 8..entry + 12].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
    let crc = crc32c::crc32c(&block[HEADER..table_end]);
    block[88..92].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&block[..92]);
    block[92..96].copy_from_slice(&crc.to_le_bytes());
}
