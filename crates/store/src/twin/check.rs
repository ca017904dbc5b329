//! For fuzzing: decoders must handle any bytes behind matching tags.

use std::path::Path;

use crate::bits::PAD;
use unitape_model::{
    EventBuilder, EventKind, EventValue, InstrumentId, Position, Price, UnixNanos, schema::FieldLayout,
};

use crate::block::{BlockEncoder, BlockPlace};
use crate::day::Day;
use crate::decode::{BlockDecoder, FrameBatch, OpenBlock, RowFilter};
use crate::file::FileId;
use crate::frames::RowBuffer;
use crate::header::{BlockHeader, CHUNK_ALIGNMENT, START};
use crate::manifest::{Manifest, ManifestFile};
use crate::schema::TickSchema;

/// Decodes `data` as a block that has been opened, once unchanged and once with its lengths corrected, to reach the code after
/// them too: all of it, and its market data alone. Only panics, endless loops and memory without bound are findings.
///
/// # Panics
/// Panics if a decoded batch is not complete frames within the limits that the block states.
pub fn any_block(data: &[u8]) {
    let mut block = data.to_vec();
    for mend in [false, true] {
        if mend {
            mend_lengths(&mut block);
        }
        let Ok(head) = BlockHeader::decode(&block) else { continue };
        let length = block.len();
        block.resize(length + PAD, 0);
        if let Some(whole_block) = OpenBlock::from_plain(&block, &head) {
            for (venue, open) in [
                (None, whole_block.clone()),
                (Some(1), whole_block.clone()),
                (None, whole_block.market_alone()),
            ] {
                let wanted = RowFilter { venue, ..RowFilter::all() };
                let mut batch = FrameBatch::default();
                if BlockDecoder::default().decode(&open, &head, &wanted, &mut batch).is_ok() {
                    assert!(batch.arena.len() <= head.raw_bytes as usize);
                    for key in &batch.keys {
                        assert!(unitape_model::Event::new(batch.frame(key)).is_some());
                    }
                }
            }
        }
        block.truncate(length);
    }
}

/// Makes an unsealed block of realistic quotes, some with an extension. Tests change its bytes.
pub fn sample_block(rows: u64) -> Vec<u8> {
    let (mut all, mut frame, mut position) = (RowBuffer::default(), Vec::new(), Position(0));
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
            e.sequence(u64::MAX - n);
            e.keep_unmapped("note", "1").expect("a short name");
        }
        e.finish(1).expect("a short event");
        all.push(&frame, n, position);
        position = position.plus(frame.len() as u64);
    }
    let file = FileId { day: Day(0), schema: TickSchema::Quotes, generation: 1, revision: 0, commit: 0 };
    let block_place = BlockPlace { file_id: file, instrument: InstrumentId(3), number: 0 };
    let mut out = Vec::new();
    BlockEncoder::default().encode_plain(&block_place, all.block_rows(), &mut out);
    out.truncate(out.len() - PAD);
    out
}

/// Reads `data` as a manifest file, and as the sealed part of a manifest.
pub fn any_manifest(data: &[u8]) {
    _ = ManifestFile::parse(data.to_vec(), Path::new("manifest"));
    _ = Manifest::from_body(data);
}

/// Corrects the lengths of a possible block so that they add up: the last class takes the rest.
fn mend_lengths(block: &mut [u8]) {
    if block.len() < START {
        return;
    }
    let part = |offset: usize| {
        u32::from_le_bytes(block[offset..offset + 4].try_into().expect("four bytes")) as usize
    };
    let last = block.len().saturating_sub(START + part(76) + part(86)) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
    let last_first = part(100).min(last);
    block[96..100].copy_from_slice(&(last as u32).to_le_bytes());
    block[100..104].copy_from_slice(&(last_first as u32).to_le_bytes());
}
