//! The index of a file: the header of each block, in sealed pages behind the blocks.
//!
//! ```text
//! page │ page │ … │ root: of each page its blocks, its bytes and where its first block is
//!
//! a page, opened: a table as a class of a block has it, each field of the headers a column
//! ```
//!
//! Blocks follow one another without a gap, so a page needs no offsets. If a page is damaged, the headers of its blocks are read
//! from the blocks.

use unitape_model::{InstrumentId, Position, UnixNanos};

use crate::bits::PAD;
use crate::column::{ColumnEncoder, ColumnSpec, Predictor, VECTOR};
use crate::error::Result;
use crate::file::FileId;
use crate::header::{BlockHeader, ClassSize, KindSet};
use crate::keys::{Binding, Piece, Randomness, SEAL_BYTES, StoreKeys};
use crate::table::{TableEntry, TableReader, TableWriter};

/// The most blocks of a page: a vector of each column.
pub(crate) const PAGE_BLOCKS: usize = VECTOR;
/// Bytes of a page's entry in the root.
const ENTRY: usize = 16;
/// Fields of a header in a page.
const FIELDS: usize = 21;

/// A page of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageEntry {
    pub blocks: u32,
    /// The bytes of the sealed page.
    pub bytes: u32,
    /// Where its first block is in the file.
    pub first_offset: u64,
}

/// Returns the bytes of the sealed root of a file of so many blocks.
pub(crate) fn root_bytes(blocks: u32) -> u64 {
    u64::from(blocks.div_ceil(PAGE_BLOCKS as u32)) * ENTRY as u64 + SEAL_BYTES as u64
}

fn root_binding(keys: &StoreKeys, id: &FileId, blocks: u32) -> Binding {
    Binding::new(Piece::Index, keys.store).file(id).bind_number(blocks.into())
}

fn page_binding(keys: &StoreKeys, id: &FileId, page: usize) -> Binding {
    Binding::new(Piece::IndexPage, keys.store).file(id).bind_number(page as u64)
}

/// Appends the index of a file to `out`: its blocks begin at `first_offset` and have these headers. Returns where the root begins
/// in `out`.
pub(crate) fn append_index(
    keys: &StoreKeys,
    random: &dyn Randomness,
    id: &FileId,
    headers: &[BlockHeader],
    first_offset: u64,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let (mut offset, mut root) = (first_offset, Vec::new());
    let (mut writer, mut plaintext) = (PageWriter::default(), Vec::new());
    for (page, headers) in headers.chunks(PAGE_BLOCKS).enumerate() {
        let page_start = out.len();
        writer.write(headers, &mut plaintext);
        keys.index.seal(random, page_binding(keys, id, page).bytes(), &plaintext, out)?;
        root.extend_from_slice(&(headers.len() as u32).to_le_bytes());
        root.extend_from_slice(&((out.len() - page_start) as u32).to_le_bytes());
        root.extend_from_slice(&offset.to_le_bytes());
        offset += headers.iter().map(|header| u64::from(header.bytes)).sum::<u64>();
    }
    let root_start = out.len();
    keys.index.seal(random, root_binding(keys, id, headers.len() as u32).bytes(), &root, out)?;
    Ok(root_start)
}

/// Opens the root of a file of so many blocks. `None` if it is not as it was sealed.
pub(crate) fn open_root(
    keys: &StoreKeys,
    id: &FileId,
    blocks: u32,
    sealed: &mut [u8],
) -> Option<Vec<PageEntry>> {
    let root = keys.index.open(root_binding(keys, id, blocks).bytes(), sealed)?;
    let four = |entry: &[u8], offset: usize| {
        u32::from_le_bytes(entry[offset..offset + 4].try_into().expect("four bytes"))
    };
    let page_of = |entry: &[u8]| PageEntry {
        blocks: four(entry, 0),
        bytes: four(entry, 4),
        first_offset: u64::from_le_bytes(entry[8..].try_into().expect("eight bytes")),
    };
    let pages: Vec<PageEntry> = root.chunks_exact(ENTRY).map(page_of).collect();
    let all_blocks = pages.iter().try_fold(0u32, |sum, page| sum.checked_add(page.blocks));
    let is_sound = all_blocks == Some(blocks)
        && pages.iter().all(|page| (1..=PAGE_BLOCKS as u32).contains(&page.blocks))
        && pages.iter().all(|page| page.bytes as usize >= SEAL_BYTES);
    is_sound.then_some(pages)
}

/// Opens a page, and appends its headers to `out`. `first_number` is the number of its first block.
///
/// # Errors
/// Fails if it is not as it was sealed, or if a header is none that a seal has written.
pub(crate) fn open_page(
    keys: &StoreKeys,
    id: &FileId,
    (page, entry): (usize, &PageEntry),
    first_number: u32,
    mut sealed: Vec<u8>,
    out: &mut Vec<BlockHeader>,
) -> std::result::Result<(), &'static str> {
    let opened = keys.index.open(page_binding(keys, id, page).bytes(), &mut sealed);
    let plain_bytes = opened.map(|plain| plain.len()).ok_or("a page of the index is not as it was sealed")?;
    sealed.truncate(plain_bytes);
    read_page(sealed, entry.blocks as usize, first_number, out)
}

fn read_page(
    mut page: Vec<u8>,
    blocks: usize,
    first_number: u32,
    out: &mut Vec<BlockHeader>,
) -> std::result::Result<(), &'static str> {
    let bytes = (page.len() + SEAL_BYTES) as u32;
    let sizes = ClassSize { columns: FIELDS as u16, first_bytes: bytes, bytes };
    page.resize(page.len() + PAD, 0);
    let mut table = TableReader::open(&page, 0, sizes, FIELDS, blocks)?;
    let mut fields: Vec<Vec<u64>> = Vec::with_capacity(FIELDS);
    while let Some(entry) = table.next()? {
        let TableEntry::Column(column) = entry else { return Err("a page of the index with a layout") };
        let mut values = vec![0; blocks];
        let predictor = PREDICTORS.get(fields.len()).copied().flatten().map(|(field, _)| &fields[field][..]);
        column.open(&page, blocks, Vec::new())?.next(&mut values, predictor)?;
        fields.push(values);
    }
    let header_of = |block: usize| {
        let field = |number: usize| fields[number][block];
        let part = |first: usize| ClassSize {
            bytes: field(first) as u32,
            first_bytes: field(first + 1) as u32,
            columns: field(first + 2) as u16,
        };
        let header = BlockHeader {
            bytes: 0,
            corrections: field(20) as u32,
            number: first_number + block as u32,
            rows: field(0) as u32,
            instrument: InstrumentId(field(1) as u32),
            kinds: KindSet(field(2)),
            ts_min: UnixNanos(field(3) as i64),
            ts_max: UnixNanos(field(4) as i64),
            ordinal_min: field(5),
            ordinal_max: field(6),
            position_min: Position(field(7)),
            position_max: Position(field(8)),
            raw_bytes: field(9) as u32,
            parts: [part(10), part(13), part(16)],
            tape_index: field(19) as u16,
        };
        header.with_bytes()?.checked()
    };
    for block in 0..blocks {
        out.push(header_of(block)?);
    }
    Ok(())
}

/// The field from which each field is predicted, and whether with a slope.
const PREDICTORS: [Option<(usize, bool)>; FIELDS] = {
    let mut predictors = [None; FIELDS];
    // The greatest event time and ordinal from the least, positions from ordinals, bytes of frames from rows.
    predictors[4] = Some((3, false));
    predictors[6] = Some((5, false));
    predictors[7] = Some((5, true));
    predictors[8] = Some((7, false));
    predictors[9] = Some((0, true));
    predictors
};

/// Writes pages; keeps its memory.
#[derive(Debug, Default)]
struct PageWriter {
    encoder: ColumnEncoder,
    table: TableWriter,
}

impl PageWriter {
    /// Makes `plaintext` the page of these blocks.
    fn write(&mut self, headers: &[BlockHeader], plaintext: &mut Vec<u8>) {
        self.table.clear();
        let mut fields: Vec<Vec<u64>> = vec![Vec::new(); FIELDS];
        for header in headers {
            let [market, identity, provenance] = header
                .parts
                .map(|part| [u64::from(part.bytes), u64::from(part.first_bytes), u64::from(part.columns)]);
            let values = [
                u64::from(header.rows),
                header.instrument.0.into(),
                header.kinds.0,
                header.ts_min.0 as u64,
                header.ts_max.0 as u64,
                header.ordinal_min,
                header.ordinal_max,
                header.position_min.0,
                header.position_max.0,
                header.raw_bytes.into(),
            ];
            let values = values.into_iter().chain(market).chain(identity).chain(provenance);
            let values = values.chain([header.tape_index.into(), header.corrections.into()]);
            fields.iter_mut().zip(values).for_each(|(field, value)| field.push(value));
        }
        let spec = ColumnSpec { width: 8, null_value: None, is_text: false };
        for (values, predictor) in fields.iter().zip(PREDICTORS) {
            let predictor =
                predictor.map(|(field, has_slope)| Predictor { values: &fields[field], has_slope });
            self.table.push_special(spec.width, |out| self.encoder.encode(values, spec, predictor, out));
        }
        let sizes = self.table.finish(false);
        let Ok(()) = self.table.for_each_chunk(sizes, &mut Vec::new(), |chunk| {
            plaintext.clear();
            plaintext.extend_from_slice(chunk);
            Ok::<(), std::convert::Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{CHUNK_ALIGNMENT, START};
    use proptest::prelude::*;

    proptest! {
        /// Fails if a header comes back from a page otherwise, or if a changed page gives anything but headers or an error.
        #[test]
        fn headers_come_back_from_pages(
            seed in any::<u64>(), n in prop_oneof![1usize..20, Just(PAGE_BLOCKS)], wild in any::<bool>(),
            hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut headers: Vec<BlockHeader> = Vec::new();
            let mut ordinal = 5;
            for i in 0..n as u64 {
                let random = seed.wrapping_mul(i | 1).rotate_left(i as u32 % 60);
                let rows = if wild { 1 + random % 65_536 } else { 1 };
                let part = |salt: u64| {
                    let first_bytes = 64 + (random.rotate_left(salt as u32) % 40) as u32 * CHUNK_ALIGNMENT as u32;
                    ClassSize { columns: (random % 9) as u16, first_bytes, bytes: first_bytes + (salt as u32 % 2) * 160 }
                };
                let parts = [part(1), part(2), part(3)];
                let bytes = START as u32 + parts.iter().map(|part| part.bytes).sum::<u32>();
                let ts = if wild { random as i64 } else { 1_700_000_000_000_000_000 + (random % 1_000_000_000) as i64 };
                ordinal += 1 + random % 7;
                headers.push(BlockHeader {
                    bytes,
                    corrections: (random % 3) as u32,
                    rows: rows as u32,
                    instrument: InstrumentId(i as u32 + 1),
                    number: 7 + i as u32,
                    kinds: KindSet(1 << unitape_model::EventKind::Trade as u8),
                    ts_min: UnixNanos(ts),
                    ts_max: UnixNanos(ts.saturating_add((rows - 1) as i64)),
                    ordinal_min: ordinal,
                    ordinal_max: ordinal + rows - 1,
                    position_min: Position(ordinal * 128),
                    position_max: Position((ordinal + rows - 1) * 128),
                    raw_bytes: rows as u32 * 128,
                    parts,
                    tape_index: 0,
                });
            }
            headers.retain(|header| header.checked().is_ok());
            prop_assume!(!headers.is_empty());
            let first_number = headers[0].number;
            for (header, number) in headers.iter_mut().zip(first_number..) {
                header.number = number;
            }
            let mut page = Vec::new();
            PageWriter::default().write(&headers, &mut page);
            let mut read = Vec::new();
            read_page(page.clone(), headers.len(), first_number, &mut read).unwrap();
            prop_assert_eq!(&read, &headers);
            if !wild && n == PAGE_BLOCKS {
                prop_assert!(page.len() < 40 * n, "{} bytes", page.len());
            }
            for (index, byte) in hits {
                let offset = index.index(page.len());
                page[offset] ^= byte;
            }
            read.clear();
            if read_page(page, headers.len(), first_number, &mut read).is_ok() {
                prop_assert!(read.iter().all(|header| header.checked().is_ok()));
            }
        }
    }
}
