//! For fuzzing: what decoders do with any bytes.

use std::path::Path;

use crate::bits::PAD;
use unitape_model::{
    EventBuilder, EventKind, EventSchema, EventValue, InstrumentId, Position, Price, UnixNanos,
    schema::FieldLayout,
};

use crate::block::{BlockEncoder, BlockHeader, BlockRows, ENTRY, HEADER};
use crate::decode::{BlockDecoder, FrameBatch, RowFilter};
use crate::manifest::Manifest;

/// Decodes `data` as a block, once unchanged and once with all checksums corrected, to reach the code after them too.
/// Only panics, endless loops and memory without bound are findings.
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
            let wanted =
                RowFilter { from: UnixNanos(i64::MIN), to: UnixNanos(i64::MAX), venue, listed: None };
            let mut batch = FrameBatch::default();
            if BlockDecoder::default().decode(&block, &head, &wanted, &mut batch).is_ok() {
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

/// A block of quotes as markets make them, some with an extension: a place to begin changing bytes.
pub fn sample_block(rows: u64) -> Vec<u8> {
    let (mut all, mut frame, mut position) = (BlockRows::default(), Vec::new(), Position(0));
    for n in 0..rows.max(1) {
        frame.clear();
        let mut e = EventBuilder::begin(
            &mut frame,
            EventKind::Quote,
            UnixNanos(1_710_167_400_000_000_000 + n as i64 * 1013),
        );
        for spec in e.schema().fields {
            let set = match spec.slot {
                FieldLayout::Price { .. } if n % 9 != 0 => {
                    e.set(spec, EventValue::Price(Price(1_100_000_000 + (n * n % 31) as i64 * 10_000)))
                }
                FieldLayout::UInt { .. } => e.set(spec, EventValue::UInt(n % 400)),
                _ => Ok(()),
            };
            set.expect("values of the slot's sort");
        }
        if n % 7 == 0 {
            e.keep_unmapped("note", "1").expect("a short name");
        }
        e.finish(1).expect("a short event");
        all.push(&frame, n, position);
        position = position.plus(frame.len() as u64);
    }
    let mut out = Vec::new();
    BlockEncoder::default().encode(
        EventSchema::for_kind(EventKind::Quote),
        InstrumentId(3),
        0,
        0,
        &all,
        &mut out,
    );
    out
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
