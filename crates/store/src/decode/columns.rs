//! Opens the columns of a block: the tables of its classes, and a reader for each column.

use unitape_model::schema::at;
use unitape_model::{EventKind, FieldClass};

use super::templates::OpenTemplates;
use super::{BlockFault, OpenBlock};
use crate::cells::EventKindLayout;
use crate::column::{ColumnReader, ROWS_MAX, VECTOR};
use crate::header::{BlockHeader, START, special};
use crate::stream::StreamDecoder;
use crate::table::{ColumnValues, TableColumn, TableEntry, TableReader};
use crate::templates::{Piece, Templates};

pub(super) const TS_EVENT: u16 = at::TS_EVENT as u16;
pub(super) const VENUE: u16 = at::VENUE as u16;

/// A column of a block that is being read.
pub(super) struct BlockColumn<'a> {
    pub column_number: u16,
    pub value_bytes: u8,
    pub chunk: ColumnReader<'a>,
    /// Where its values begin, for errors.
    values_start: usize,
    /// Values that are not read yet.
    values_left: usize,
    /// Values of a vector of which a part has been given: a layout has no whole vector of rows in each of the block.
    buffer: Vec<u64>,
    buffer_at: usize,
    /// The cell from which it is predicted, if it is and not from the ordinals.
    predictor: Option<u16>,
}

/// The values of the column from which another one is predicted: those of the same rows, and those of the vector in its buffer.
#[derive(Clone, Copy, Default)]
pub(super) struct PredictorValues<'v> {
    pub values: &'v [u64],
    pub buffer: &'v [u64],
}

impl<'v> PredictorValues<'v> {
    /// Takes the values of these rows, for columns that are read vector by vector.
    pub fn of_vector(values: &'v [u64]) -> Self {
        Self { values, buffer: &[] }
    }
}

impl BlockColumn<'_> {
    pub fn fault(&self, reason: &'static str) -> BlockFault {
        BlockFault { offset: self.values_start, reason }
    }

    /// Reads the next values into `out`.
    pub fn next(&mut self, out: &mut [u64], predictor: PredictorValues<'_>) -> Result<(), BlockFault> {
        let mut at = 0;
        while at < out.len() {
            if self.buffer_at < self.buffer.len() {
                let n = (self.buffer.len() - self.buffer_at).min(out.len() - at);
                out[at..at + n].copy_from_slice(&self.buffer[self.buffer_at..][..n]);
                (self.buffer_at, at) = (self.buffer_at + n, at + n);
                continue;
            }
            let n = self.next_vector()?;
            if n <= out.len() - at {
                let values = predictor.values.get(at..at + n);
                self.chunk.next(&mut out[at..at + n], values).map_err(|reason| self.fault(reason))?;
                at += n;
            } else {
                self.fill_buffer(n, predictor.buffer)?;
            }
        }
        Ok(())
    }

    /// Passes over the next `n` values. `buffer` is that of the column from which it is predicted.
    pub fn skip_values(&mut self, n: usize, buffer: &[u64]) -> Result<(), BlockFault> {
        let mut left = n;
        while left > 0 {
            let buffered = (self.buffer.len() - self.buffer_at).min(left);
            (self.buffer_at, left) = (self.buffer_at + buffered, left - buffered);
            if left == 0 {
                break;
            }
            let n = self.next_vector()?;
            if n <= left {
                self.chunk.skip_vector(n).map_err(|reason| self.fault(reason))?;
                left -= n;
            } else {
                self.fill_buffer(n, buffer)?;
            }
        }
        Ok(())
    }

    /// Takes the next vector from the values that are left. Returns how many it has.
    fn next_vector(&mut self) -> Result<usize, BlockFault> {
        let n = self.values_left.min(VECTOR);
        self.values_left -= n;
        if n == 0 { Err(self.fault("more rows of a layout than the block says")) } else { Ok(n) }
    }

    /// Returns the values of the vector of which a part has been given.
    pub fn buffer(&self) -> &[u64] {
        &self.buffer
    }

    fn fill_buffer(&mut self, n: usize, predictor: &[u64]) -> Result<(), BlockFault> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(n, 0);
        self.chunk.next(&mut buffer, Some(predictor)).map_err(|reason| self.fault(reason))?;
        (self.buffer, self.buffer_at) = (buffer, 0);
        Ok(())
    }

    pub fn is_at_end(&self) -> bool {
        self.values_left == 0 && self.buffer_at == self.buffer.len() && self.chunk.is_at_end()
    }
}

/// The open cells of one layout.
pub(super) struct LayoutColumns<'a> {
    pub plan: &'static EventKindLayout,
    pub columns: Vec<BlockColumn<'a>>,
    pub rows: usize,
    /// Rows that are not read yet.
    pub rows_left: usize,
}

impl<'a> LayoutColumns<'a> {
    /// Returns the column of venues, if a row of the layout has one.
    pub fn venues(&mut self) -> Option<&mut BlockColumn<'a>> {
        self.columns.iter_mut().find(|column| self.plan.has_venue && column.column_number == VENUE)
    }
}

/// The columns of a block that are open.
#[derive(Default)]
pub(super) struct OpenColumns<'a> {
    pub special_columns: Vec<BlockColumn<'a>>,
    /// Of a block with rows of several tapes.
    pub tape_column: Option<BlockColumn<'a>>,
    pub shared_columns: Vec<BlockColumn<'a>>,
    pub layouts: Vec<LayoutColumns<'a>>,
    /// The streams of all rows, decompressed.
    pub market_tail: &'a [u8],
    pub identity_tail: &'a [u8],
    pub market_templates: OpenTemplates<'a>,
    pub identity_templates: OpenTemplates<'a>,
}

impl<'a> OpenColumns<'a> {
    pub fn into_columns(self) -> impl Iterator<Item = BlockColumn<'a>> {
        let own = self.layouts.into_iter().flat_map(|layout| layout.columns);
        let words = self.market_templates.columns.into_iter().chain(self.identity_templates.columns);
        let own = own.chain(words);
        self.special_columns.into_iter().chain(self.tape_column).chain(self.shared_columns).chain(own)
    }

    pub fn columns(&self) -> impl Iterator<Item = &BlockColumn<'a>> {
        let own = self.layouts.iter().flat_map(|layout| &layout.columns);
        let words = self.market_templates.columns.iter().chain(&self.identity_templates.columns);
        let own = own.chain(words);
        self.special_columns.iter().chain(&self.tape_column).chain(&self.shared_columns).chain(own)
    }
}

/// Memory that a decoder keeps: tables of dictionaries, and the bytes of compressed streams.
pub(super) type DecoderMemory<'m, 'a> = (&'m mut Vec<Vec<u64>>, &'m mut StreamDecoder, &'a mut [Vec<u8>; 2]);

/// Opens the columns of the classes that are open.
pub(super) fn open<'a>(
    block: &OpenBlock<'a>,
    head: &BlockHeader,
    (tables, streams, buffers): DecoderMemory<'_, 'a>,
    columns: &mut OpenColumns<'a>,
) -> Result<(), BlockFault> {
    let [market_buffer, identity_buffer] = buffers;
    let (mut market_buffer, mut identity_buffer) = (Some(market_buffer), Some(identity_buffer));
    // A stream may have the lengths of its runs as well.
    let stream_max = 2 * head.raw_bytes as usize + 64;
    for class in FieldClass::ALL {
        let Some(class_start) = block.parts[class.index()] else { continue };
        let specials = special::of_class(class, head.single_tape().is_none());
        let (mut specials_left, mut begun) = (specials.iter(), 0);
        let table = TableReader::open(
            block.bytes,
            class_start,
            head.class_size(class),
            specials.len(),
            head.rows as usize,
        );
        let mut table = table.map_err(|reason| BlockFault { offset: class_start, reason })?;
        // The numbers of the tuples of the layout, and how many tuples there are.
        let mut tuples: Option<(usize, TableColumn)> = None;
        // The templates, their columns so far, and the values of each column that is still to come.
        let mut templates: Option<(Templates, Vec<BlockColumn<'a>>)> = None;
        let mut word_counts = Vec::new().into_iter();
        loop {
            let entry_at = table.offset();
            let fault = |reason| BlockFault { offset: entry_at, reason };
            let Some(entry) = table.next().map_err(fault)? else { break };
            let column = match entry {
                TableEntry::Layout { kind, layout, rows } => {
                    begin_layout(head, class, columns, begun, (kind, layout, rows)).map_err(fault)?;
                    begun += 1;
                    tuples = None;
                    continue;
                }
                TableEntry::Tuples { count, numbers } => {
                    if begun == 0 || !(1..=ROWS_MAX).contains(&count) {
                        return Err(fault("tuples that no layout has"));
                    }
                    tuples = Some((count, numbers));
                    continue;
                }
                TableEntry::Templates(definitions) => {
                    if templates.is_some() || begun > 0 || class == FieldClass::Provenance {
                        return Err(fault("templates where a block has none"));
                    }
                    let counts = |piece: &Piece| std::iter::repeat_n(piece.count, piece.columns());
                    word_counts =
                        definitions.pieces.iter().flat_map(counts).collect::<Vec<usize>>().into_iter();
                    templates = Some((definitions, Vec::new()));
                    continue;
                }
                TableEntry::Column(column) => column,
            };
            if let (Some((_, words)), Some(count)) = (&mut templates, word_counts.next()) {
                let opened = column.open(block.bytes, count, tables.pop().unwrap_or_default());
                words.push(BlockColumn {
                    column_number: special::LAYOUT_INDEX,
                    value_bytes: column.width,
                    chunk: opened.map_err(fault)?,
                    values_start: entry_at,
                    values_left: count,
                    buffer: Vec::new(),
                    buffer_at: 0,
                    predictor: None,
                });
                continue;
            }
            let number = column.offset.or_else(|| specials_left.next().copied()).ok_or(fault(NOT_COVERED))?;
            let buffer = match number {
                special::MARKET_TAIL => market_buffer.take(),
                special::IDENTITY_TAIL => identity_buffer.take(),
                _ => None,
            };
            if let Some(buffer) = buffer {
                let ColumnValues::Encoded { range, .. } = column.values else {
                    return Err(fault("a stream that is a number"));
                };
                let encoded = block.bytes.get(range).ok_or(fault("a stream that leaves its block"))?;
                let bytes = streams.decode(column.encoding, encoded, stream_max, buffer).map_err(fault)?;
                *(if number == special::MARKET_TAIL {
                    &mut columns.market_tail
                } else {
                    &mut columns.identity_tail
                }) = bytes;
                continue;
            }
            let (list, rows) = match number {
                special::ORDINAL.. => (&mut columns.special_columns, head.rows as usize),
                _ if begun == 0 => (&mut columns.shared_columns, head.rows as usize),
                _ => {
                    let layout = &mut columns.layouts[begun - 1];
                    (&mut layout.columns, layout.rows)
                }
            };
            let mut memory = || tables.pop().unwrap_or_default();
            let chunk = match &tuples {
                None => column.open(block.bytes, rows, memory()),
                Some((count, numbers)) => column
                    .open(block.bytes, *count, memory())
                    .and_then(|members| read_members(members, *count))
                    .and_then(|members| numbers.open(block.bytes, rows, memory())?.into_member(members)),
            };
            let column = BlockColumn {
                column_number: number,
                value_bytes: column.width,
                chunk: chunk.map_err(fault)?,
                values_start: entry_at,
                values_left: rows,
                buffer: Vec::new(),
                buffer_at: 0,
                predictor: column.prediction.and_then(|prediction| prediction.cell),
            };
            match number {
                special::TAPE_INDEX => columns.tape_column = Some(column),
                _ => list.push(column),
            }
        }
        if let Some((templates, words)) = templates {
            let open_templates = OpenTemplates::new(templates, words);
            open_templates.check()?;
            *(if class == FieldClass::Market {
                &mut columns.market_templates
            } else {
                &mut columns.identity_templates
            }) = open_templates;
        }
        if begun != columns.layouts.len() {
            return Err(BlockFault { offset: class_start, reason: "a layout that is missing" });
        }
    }
    let layouts = &columns.layouts;
    let layout_rows = layouts.iter().try_fold(0usize, |sum, layout| sum.checked_add(layout.rows));
    let kinds = layouts.iter().fold(0, |all, layout| all | 1 << layout.plan.kind as u8);
    if layout_rows != Some(head.rows as usize) || kinds != head.kinds.0 {
        return Err(BlockFault { offset: START, reason: "layouts of other rows than the block has" });
    }
    let is_whole = block.is_whole();
    check_predictors(&columns.special_columns, true)?;
    check_cells(&mut columns.shared_columns, at::TS_EVENT, at::INSTRUMENT, is_whole)?;
    check_predictors(&columns.shared_columns, true)?;
    let has_cell = |columns: &[BlockColumn<'_>], offset: u16, width| {
        columns.iter().any(|column| (column.column_number, column.value_bytes) == (offset, width))
    };
    let mut is_sound = has_cell(&columns.shared_columns, TS_EVENT, 8);
    for layout in &mut columns.layouts {
        check_cells(&mut layout.columns, at::INSTRUMENT, layout.plan.fixed, is_whole)?;
        check_predictors(&layout.columns, false)?;
        is_sound &= !layout.plan.has_venue || has_cell(&layout.columns, VENUE, 2);
    }
    if is_sound { Ok(()) } else { Err(BlockFault { offset: START, reason: NOT_COVERED }) }
}

/// Reads the values of a cell of the tuples.
fn read_members(mut column: ColumnReader<'_>, count: usize) -> Result<Vec<u64>, &'static str> {
    let mut values = vec![0; count];
    values.chunks_mut(VECTOR).try_for_each(|vector| column.next(vector, None))?;
    if column.is_at_end() { Ok(values) } else { Err("values of more tuples than there are") }
}

/// Fails if a column is predicted from a cell that is not the one before it, or from ordinals that it does not have.
fn check_predictors(columns: &[BlockColumn<'_>], are_shared: bool) -> Result<(), BlockFault> {
    let mut before = None;
    for column in columns {
        let is_from_cell = column.predictor.is_some();
        let is_sound = match column.chunk.is_predicted() {
            true if is_from_cell => !are_shared && column.predictor == before,
            is_predicted => are_shared || !is_predicted,
        };
        if !is_sound {
            return Err(column.fault("a column that is predicted from one that is not before it"));
        }
        before = Some(column.column_number);
    }
    Ok(())
}

const NOT_COVERED: &str = "columns that do not cover the frame";

/// Begins the layout with this index: in the table of market data as a new one, in another table as the same one again.
fn begin_layout(
    head: &BlockHeader,
    class: FieldClass,
    columns: &mut OpenColumns<'_>,
    index: usize,
    (kind, layout, rows): (u8, u8, usize),
) -> Result<(), &'static str> {
    let kind = EventKind::from_u8(kind).filter(|kind| !kind.is_meta());
    let plan = kind.and_then(|kind| EventKindLayout::find_layout(kind, layout));
    let plan = plan.ok_or("a layout that there is not")?;
    if class == FieldClass::Market {
        let is_new = !columns.layouts.iter().any(|known| std::ptr::eq(known.plan, plan));
        if !is_new || !(1..=head.rows as usize).contains(&rows) {
            return Err("a layout that no block has");
        }
        columns.layouts.push(LayoutColumns { plan, columns: Vec::new(), rows, rows_left: rows });
        return Ok(());
    }
    let is_same =
        columns.layouts.get(index).is_some_and(|known| std::ptr::eq(known.plan, plan) && known.rows == rows);
    if is_same { Ok(()) } else { Err("a layout that the market data do not have there") }
}

/// Puts cells into the order of the frame. Fails if two overlap, or if they do not lie between `start` and `end`; if all
/// classes are open, also if they leave a gap. Then no byte is written twice or left out.
fn check_cells(
    columns: &mut [BlockColumn<'_>],
    start: usize,
    end: usize,
    is_whole: bool,
) -> Result<(), BlockFault> {
    columns.sort_unstable_by_key(|column| column.column_number);
    let (mut next, mut is_tiled) = (start, true);
    for column in columns.iter() {
        let offset = usize::from(column.column_number);
        is_tiled &= offset == next;
        if offset < next {
            return Err(column.fault("a column that does not follow"));
        }
        next = offset + usize::from(column.value_bytes);
    }
    let is_sound = next <= end && (!is_whole || (is_tiled && next == end));
    if is_sound { Ok(()) } else { Err(BlockFault { offset: START, reason: NOT_COVERED }) }
}
