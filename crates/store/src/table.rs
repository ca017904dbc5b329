//! The table of a class of a block: what each column is, and where its values are.
//!
//! ```text
//! length of the table │ entry │ entry │ … │ short columns │ zeros
//!
//! column     how u8 │ [number] │ value if constant, else bytes
//! predicted  6 u8 │ other │ slope                               a prefix of a column: 0 the ordinals, else 1 + cell
//! tuples     14 u8 │ count │ column of numbers                  the cells after it have one value for each number
//! templates  22 u8 │ their definitions                          after the columns beside cells; the words of their values follow
//! layout     7 u8 │ kind u8 │ layout u8 │ rows                  the cells after it are those of this layout
//! how        bits 0–2 encoding │ 3–5 width - 1 │ 6 some none │ 7 bytes swapped
//! ```
//!
//! Columns beside cells come first and in a fixed order. The parties of an order go together: rows have the number of a tuple, and
//! a cell of the tuples has as many values as there are tuples. A cell has as its number how many bytes of the frame lie between the
//! cell before it and itself. All lengths and numbers are varints.

use std::ops::Range;

use unitape_model::schema::at;

use crate::bits::{put_varint, take_varint, unzigzag, zigzag};
use crate::column::{CONSTANT, ColumnReader, ENCODING_BITS, EncodedColumn};
use crate::header::{ClassSize, chunk_bytes};
use crate::keys::SEAL_BYTES;
use crate::templates::{Piece, Templates};

/// A column of no more bytes stays with the table. A chunk of its own would cost some forty.
const SHORT_BYTES: usize = 256;
/// The encoding of an entry that is a layout.
const LAYOUT: u8 = 7;
/// The next column is predicted from another one.
const PREDICTED: u8 = 6;
const TUPLES: u8 = 14;
/// Definitions of templates. A column for each word of the values of each piece follows.
const TEMPLATES: u8 = 22;
/// Bytes of the number of a tuple.
const TUPLE_BYTES: u8 = 2;
const WIDTH_SHIFT: u32 = 3;

/// The columns of a class while they are made.
#[derive(Debug, Default)]
pub(crate) struct TableWriter {
    table: Vec<u8>,
    /// The table's length and the table.
    start: Vec<u8>,
    entries: u16,
    /// Where the cell before the next one ends in the frame.
    cell_end: u16,
    values: Vec<u8>,
    /// Where the columns are in `values`, if they are not constant.
    columns: Vec<Range<usize>>,
}

impl TableWriter {
    pub fn clear(&mut self) {
        self.table.clear();
        self.values.clear();
        self.columns.clear();
        (self.entries, self.cell_end) = (0, 0);
    }

    /// Appends a column beside cells. `write` appends its values. If it is predicted, then from the ordinals.
    pub fn push_special(&mut self, width: u8, write: impl FnOnce(&mut Vec<u8>) -> EncodedColumn) {
        self.push(width, None, None, write);
    }

    /// Appends the column of the cell at this offset of the frame. If it is predicted, then from the cell `predictor`, or from the
    /// ordinals.
    pub fn push_cell(
        &mut self,
        offset: u16,
        width: u8,
        predictor: Option<u16>,
        write: impl FnOnce(&mut Vec<u8>) -> EncodedColumn,
    ) {
        let distance = offset - self.cell_end;
        self.cell_end = offset + u16::from(width);
        self.push(width, Some(distance), predictor, write);
    }

    /// Appends the definitions of templates. The columns of their words must follow, as those beside cells.
    pub fn begin_templates(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.table.push(TEMPLATES);
        write(&mut self.table);
        self.entries += 1;
    }

    /// Begins the cells of tuples, which are `count`. `write` appends the number of the tuple of each row.
    pub fn begin_tuples(&mut self, count: usize, write: impl FnOnce(&mut Vec<u8>) -> EncodedColumn) {
        self.table.push(TUPLES);
        put_varint(&mut self.table, count as u64);
        self.cell_end = at::INSTRUMENT as u16;
        self.push(TUPLE_BYTES, None, None, write);
    }

    fn push(
        &mut self,
        width: u8,
        distance: Option<u16>,
        predictor: Option<u16>,
        write: impl FnOnce(&mut Vec<u8>) -> EncodedColumn,
    ) {
        let values_start = self.values.len();
        let EncodedColumn { encoding, slope } = write(&mut self.values);
        if let Some(slope) = slope {
            self.table.push(PREDICTED);
            put_varint(&mut self.table, predictor.map_or(0, |cell| u64::from(cell) + 1));
            put_varint(&mut self.table, zigzag(slope));
        }
        self.table.push(encoding | (width - 1) << WIDTH_SHIFT);
        if let Some(distance) = distance {
            put_varint(&mut self.table, distance.into());
        }
        if encoding == CONSTANT {
            self.table.extend(self.values.drain(values_start..));
        } else {
            put_varint(&mut self.table, (self.values.len() - values_start) as u64);
            self.columns.push(values_start..self.values.len());
        }
        self.entries += 1;
    }

    /// Begins the cells of a layout that `rows` rows have.
    pub fn begin_layout(&mut self, kind: u8, layout: u8, rows: usize) {
        self.table.extend_from_slice(&[LAYOUT, kind, layout]);
        put_varint(&mut self.table, rows as u64);
        self.entries += 1;
        self.cell_end = at::INSTRUMENT as u16;
    }

    /// Ends the table. Returns the sizes of its chunks; with `splits`, long columns have chunks of their own.
    pub fn finish(&mut self, splits: bool) -> ClassSize {
        self.start.clear();
        put_varint(&mut self.start, self.table.len() as u64);
        self.start.extend_from_slice(&self.table);
        let is_long = |column: &&Range<usize>| splits && column.len() > SHORT_BYTES;
        let long_bytes: usize = self.columns.iter().filter(is_long).map(|c| chunk_bytes(c.len())).sum();
        let short = self.columns.iter().filter(|column| !is_long(column)).map(|c| c.len()).sum::<usize>();
        let first_bytes = chunk_bytes(self.start.len() + short);
        ClassSize {
            columns: self.entries,
            first_bytes: first_bytes as u32,
            bytes: (first_bytes + long_bytes) as u32,
        }
    }

    /// Passes what each chunk seals to `chunk`, the table first, with zeros at its end, in parts that follow one another. They
    /// are those of the last [`TableWriter::finish`], with these sizes.
    pub fn for_each_chunk<E>(
        &self,
        sizes: ClassSize,
        plaintext: &mut Vec<u8>,
        mut chunk: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_long = |column: &&Range<usize>| sizes.is_split() && column.len() > SHORT_BYTES;
        plaintext.clear();
        plaintext.extend_from_slice(&self.start);
        for column in self.columns.iter().filter(|column| !is_long(column)) {
            plaintext.extend_from_slice(&self.values[column.clone()]);
        }
        plaintext.resize(sizes.first_bytes as usize - SEAL_BYTES, 0);
        chunk(plaintext)?;
        for column in self.columns.iter().filter(is_long) {
            plaintext.clear();
            plaintext.extend_from_slice(&self.values[column.clone()]);
            plaintext.resize(chunk_bytes(column.len()) - SEAL_BYTES, 0);
            chunk(plaintext)?;
        }
        Ok(())
    }
}

const CUT: &str = "a table that is cut short";

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableEntry {
    Layout {
        kind: u8,
        layout: u8,
        rows: usize,
    },
    /// Numbers of tuples, of which there are `count`. The cells after it are those of the tuples.
    Tuples {
        count: usize,
        numbers: TableColumn,
    },
    /// Definitions of templates. The columns after it are the words of their values.
    Templates(Templates),
    Column(TableColumn),
}

/// A column in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumn {
    /// The offset in the frame; `None` for a column beside cells.
    pub offset: Option<u16>,
    pub width: u8,
    pub encoding: u8,
    pub prediction: Option<Prediction>,
    pub values: ColumnValues,
}

/// The column is predicted from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prediction {
    /// The other one is this cell; `None` for the ordinals.
    pub cell: Option<u16>,
    pub slope: i64,
}

impl TableColumn {
    /// Opens the column, which has `rows` values. `bytes` has what the table was read from, and [`PAD`](crate::bits::PAD) bytes
    /// more; `memory` is used for a dictionary.
    pub fn open<'b>(
        &self,
        bytes: &'b [u8],
        rows: usize,
        memory: Vec<u64>,
    ) -> Result<ColumnReader<'b>, &'static str> {
        let reader = match &self.values {
            ColumnValues::Constant(value) => ColumnReader::from_constant(*value, self.width, memory),
            ColumnValues::Encoded { range, .. } => {
                ColumnReader::open(bytes, range.clone(), self.encoding, self.width, rows, memory)?
            }
        };
        Ok(reader.with_slope(self.prediction.map(|prediction| prediction.slope)))
    }
}

impl TableEntry {
    /// Returns where the values are, if they have a chunk of their own.
    pub fn long_values(self) -> Option<Range<usize>> {
        match self {
            Self::Column(column) | Self::Tuples { numbers: column, .. } => match column.values {
                ColumnValues::Encoded { range, is_long: true } => Some(range),
                _ => None,
            },
            Self::Layout { .. } | Self::Templates(_) => None,
        }
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnValues {
    /// All rows have this one.
    Constant(u64),
    /// In these bytes of the block. `is_long`: they have a chunk of their own, of which these are the first.
    Encoded { range: Range<usize>, is_long: bool },
}

/// Reads the table of a class.
#[derive(Debug)]
pub(crate) struct TableReader<'a> {
    /// The block up to the end of the table.
    bytes: &'a [u8],
    offset: usize,
    class_start: usize,
    sizes: ClassSize,
    entries: u16,
    /// Columns beside cells, or words of templates, that follow.
    specials_left: usize,
    /// Rows of the block.
    rows: usize,
    cell_end: u16,
    /// Where the next short column begins, and where the first chunk ends.
    short_at: usize,
    first_end: usize,
    /// Where the next chunk of a column begins, and where the class ends.
    long_at: usize,
    class_end: usize,
}

impl<'a> TableReader<'a> {
    /// Reads the table of the class whose chunks begin at `class_start` of the block, with `specials` columns beside cells. The
    /// first chunk is open, and lies at the beginning of the sealed one.
    pub fn open(
        block: &'a [u8],
        class_start: usize,
        sizes: ClassSize,
        specials: usize,
        rows: usize,
    ) -> Result<Self, &'static str> {
        let first_end = class_start + (sizes.first_bytes as usize).saturating_sub(SEAL_BYTES);
        let first = block.get(..first_end).ok_or(CUT)?;
        let mut offset = class_start;
        let table_bytes = take_varint(first, &mut offset).ok_or(CUT)?;
        let table_bytes = usize::try_from(table_bytes).ok().filter(|bytes| *bytes <= first_end - offset);
        let table_end = offset + table_bytes.ok_or("a table that leaves its chunk")?;
        Ok(Self {
            bytes: &block[..table_end],
            offset,
            class_start,
            sizes,
            entries: 0,
            specials_left: specials,
            rows,
            cell_end: 0,
            short_at: table_end,
            first_end,
            long_at: class_start + sizes.first_bytes as usize,
            class_end: class_start + sizes.bytes as usize,
        })
    }

    /// Returns where the next entry begins, for errors.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Reads the next entry.
    ///
    /// # Errors
    /// Fails if no table has the entry, or if the table does not cover its chunks.
    pub fn next(&mut self) -> Result<Option<TableEntry>, &'static str> {
        if self.offset == self.bytes.len() {
            return self.check_end().map(|()| None);
        }
        if self.entries == self.sizes.columns {
            return Err("more columns than the header says");
        }
        self.entries += 1;
        let how = self.bytes[self.offset];
        if how & ENCODING_BITS == LAYOUT {
            let [_, kind, layout] = *self.bytes[self.offset..].first_chunk().ok_or(CUT)?;
            self.offset += 3;
            let rows = self.size()?;
            if how != LAYOUT || self.specials_left > 0 {
                return Err("a layout that no table has");
            }
            self.cell_end = at::INSTRUMENT as u16;
            return Ok(Some(TableEntry::Layout { kind, layout, rows }));
        }
        if how == TUPLES && self.specials_left == 0 {
            self.offset += 1;
            let count = self.size()?;
            let numbers = self.column(false)?;
            self.cell_end = at::INSTRUMENT as u16;
            return Ok(Some(TableEntry::Tuples { count, numbers }));
        }
        if how == TEMPLATES && self.specials_left == 0 {
            let mut offset = self.offset + 1;
            let templates = Templates::decode(self.bytes, &mut offset, self.rows);
            let templates = templates.ok_or("templates that no block has")?;
            self.offset = offset;
            self.specials_left = templates.pieces.iter().map(Piece::columns).sum();
            return Ok(Some(TableEntry::Templates(templates)));
        }
        let is_cell = self.specials_left == 0;
        self.specials_left = self.specials_left.saturating_sub(1);
        self.column(is_cell).map(TableEntry::Column).map(Some)
    }

    /// Reads a column: of a cell, or of something beside cells.
    fn column(&mut self, is_cell: bool) -> Result<TableColumn, &'static str> {
        let mut prediction = None;
        let mut how = self.byte()?;
        if how == PREDICTED {
            let cell = self.size()?.checked_sub(1).map(u16::try_from).transpose();
            let cell = cell.map_err(|_| "a column that is predicted from none")?;
            prediction = Some(Prediction { cell, slope: unzigzag(self.varint()?) });
            how = self.byte()?;
        }
        let width = (how >> WIDTH_SHIFT & 7) + 1;
        let encoding = how & !(7 << WIDTH_SHIFT);
        let mut offset = None;
        if is_cell {
            let distance = u16::try_from(self.varint()?).ok();
            let cell = distance.and_then(|distance| self.cell_end.checked_add(distance));
            let cell = cell.ok_or("a column behind every frame")?;
            self.cell_end = cell.checked_add(width.into()).ok_or("a column behind every frame")?;
            offset = Some(cell);
        }
        let values = match encoding {
            CONSTANT => ColumnValues::Constant(self.varint()?),
            _ => {
                let bytes = self.size()?;
                self.place(bytes)?
            }
        };
        Ok(TableColumn { offset, width, encoding, prediction, values })
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        let byte = *self.bytes.get(self.offset).ok_or(CUT)?;
        self.offset += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        take_varint(self.bytes, &mut self.offset).ok_or(CUT)
    }

    fn size(&mut self) -> Result<usize, &'static str> {
        usize::try_from(self.varint()?).map_err(|_| CUT)
    }

    /// Finds the place of the next column, of this many bytes.
    fn place(&mut self, bytes: usize) -> Result<ColumnValues, &'static str> {
        let is_long = self.sizes.is_split() && bytes > SHORT_BYTES;
        let (start, limit) =
            if is_long { (self.long_at, self.class_end) } else { (self.short_at, self.first_end) };
        let taken = if is_long { chunk_bytes(bytes.min(limit)) } else { bytes };
        let end =
            start.checked_add(taken).filter(|end| *end <= limit).ok_or("a column that leaves its chunk")?;
        *(if is_long { &mut self.long_at } else { &mut self.short_at }) = end;
        Ok(ColumnValues::Encoded { range: start..start + bytes, is_long })
    }

    /// Checks that the table has all entries and covers all bytes.
    fn check_end(&self) -> Result<(), &'static str> {
        let is_whole = self.entries == self.sizes.columns
            && self.specials_left == 0
            && self.long_at == self.class_end
            && chunk_bytes(self.short_at - self.class_start) == self.sizes.first_bytes as usize;
        if is_whole { Ok(()) } else { Err("a table that does not cover its chunks") }
    }
}
