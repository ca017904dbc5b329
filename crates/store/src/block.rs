//! A block: rows of one schema and one instrument in the order of event time, by column. Drawn byte by byte in
//! `docs/formats-store.md`.
//!
//! ```text
//! "UBLK" bytes │ sealed header │ market │ identity │ provenance
//!
//! a class:     one sealed chunk: table │ columns │ zeros
//!              or, of a block of many rows: sealed table and short columns │ sealed column │ sealed column │ …
//! a table:     columns of all rows │ a layout, its columns │ a layout, its columns │ …
//! ```
//!
//! All kinds of the schema are mixed. A column numbers the layout of each row; the cells of a layout have values for its
//! own rows alone.

use unitape_model::event::extension_entry;
use unitape_model::frame::LINE;
use unitape_model::schema::at;
use unitape_model::{
    Event, EventField, EventKind, EventValue, FieldClass, FrameHeader, InstrumentId, UnixNanos, flags,
};

use crate::bits::{PAD, put_varint};
use crate::cells::{EventKindLayout, FrameCell};
use crate::column::{ColumnEncoder, ColumnSpec, Predictor, ROWS_MAX};
use crate::error::Result;
use crate::file::FileId;
use crate::frames::BlockRows;
use crate::header::{BlockHeader, CLEAR, KindSet, MAGIC, SEVERAL_TAPES, START};
use crate::keys::{Binding, DayKeys, Leaf, LeafKeys, Piece, Randomness, SEAL_BYTES, StoreKeys};
use crate::stream::StreamEncoder;
use crate::table::TableWriter;
use crate::templates::{RowTail, TemplateFinder};
use crate::tuples::TupleFinder;

/// The keys and the randomness with which a seal seals its blocks.
#[derive(Debug)]
pub(crate) struct BlockSealer<'a> {
    pub keys: &'a StoreKeys,
    pub leaf_keys: LeafKeys<'a>,
    /// Keys of days, those included that this seal has drawn.
    pub days: DayKeys,
    pub random: &'a dyn Randomness,
}

/// Where a block stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    pub file_id: FileId,
    pub instrument: InstrumentId,
    pub number: u32,
}

/// A block of so many rows has chunks of single columns, at forty bytes each. A smaller one is opened as fast whole.
const SPLIT_ROWS: usize = 4096;
/// Rows taken together while the frames are still in the cache.
const TILE: usize = 256;

/// Encodes blocks; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockEncoder {
    encoder: ColumnEncoder,
    streams: StreamEncoder,
    /// Cells by column.
    matrix: Vec<u64>,
    ordinals: Vec<u64>,
    tuples: TupleFinder,
    values: Vec<u64>,
    /// Market and identity data behind the fixed part: their bytes, those of each row, and those that no template has.
    tails: [Vec<u8>; 2],
    row_tails: [Vec<RowTail>; 2],
    templates: [TemplateFinder; 2],
    stream: Vec<u8>,
    tables: [TableWriter; 3],
    plaintext: Vec<u8>,
}

impl BlockEncoder {
    /// Appends the block of `rows` to `out`.
    ///
    /// # Errors
    /// Fails if there are no random bytes.
    ///
    /// # Panics
    /// Panics if there are no rows, or more rows than a block holds.
    pub fn encode(
        &mut self,
        block_place: &BlockPlace,
        rows: BlockRows<'_>,
        sealer: &mut BlockSealer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<BlockHeader> {
        let header = self.fill_chunks(block_place, rows);
        let block_start = out.len();
        out.resize(block_start + START, 0);
        for class in FieldClass::ALL {
            let leaf = Leaf {
                day: block_place.file_id.day,
                schema: block_place.file_id.schema,
                instrument: block_place.instrument,
                class,
            };
            let cipher = sealer.leaf_keys.open_or_draw(leaf, &mut sealer.days, sealer.random)?;
            let binding = Binding::new(Piece::Chunk, sealer.keys.store).file(&block_place.file_id);
            let mut column = 0;
            self.tables[class.index()].for_each_chunk(
                header.class_size(class),
                &mut self.plaintext,
                |chunk| {
                    let binding = binding.chunk(&header, class, column);
                    column += 1;
                    cipher.seal(sealer.random, binding.bytes(), chunk, out)
                },
            )?;
        }
        self.plaintext.clear();
        let binding = BlockHeader::binding(sealer.keys, &block_place.file_id, block_place.number);
        sealer.keys.index.seal(sealer.random, binding.bytes(), &header.encode(), &mut self.plaintext)?;
        out[block_start..block_start + 4].copy_from_slice(&MAGIC);
        out[block_start + 4..block_start + CLEAR].copy_from_slice(&header.bytes.to_le_bytes());
        out[block_start + CLEAR..block_start + START].copy_from_slice(&self.plaintext);
        Ok(header)
    }

    /// Makes `out` the latest block as it is when all of its chunks are open: the header, and each chunk where it is sealed.
    pub fn write_plain(&mut self, header: &BlockHeader, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&header.encode());
        out.resize(START, 0);
        for class in FieldClass::ALL {
            let table = &self.tables[class.index()];
            let result = table.for_each_chunk(header.class_size(class), &mut self.plaintext, |chunk| {
                out.extend_from_slice(chunk);
                // What is left of nonce and tag. No error can be made.
                out.resize(out.len() + SEAL_BYTES, 0);
                Ok::<(), std::convert::Infallible>(())
            });
            let Ok(()) = result;
        }
        out.resize(out.len() + PAD, 0);
    }

    /// Makes `out` the block of `rows` as it is when all of its chunks are open.
    #[cfg(any(test, feature = "twin"))]
    pub fn encode_plain(
        &mut self,
        block_place: &BlockPlace,
        rows: BlockRows<'_>,
        out: &mut Vec<u8>,
    ) -> BlockHeader {
        let header = self.fill_chunks(block_place, rows);
        self.write_plain(&header, out);
        header
    }

    /// Makes the plain chunks of the block, and its header.
    fn fill_chunks(&mut self, block_place: &BlockPlace, rows: BlockRows<'_>) -> BlockHeader {
        assert!((1..=ROWS_MAX).contains(&rows.len()), "1 to 65,536 rows are a block");
        self.tables.iter_mut().for_each(TableWriter::clear);
        let frames: Vec<&[u8]> = rows.frames().collect();
        let (layouts, layout_indexes) = layouts_of(&frames);
        self.write_tails(&frames, &layouts, &layout_indexes, rows);
        // Cells that all rows have, then those of each layout for its own rows.
        self.write_cells(&frames, layouts[0].shared_cells(), true);
        let times = || self.matrix[..frames.len()].iter().map(|ts| UnixNanos(*ts as i64));
        let (ts_min, ts_max) = (times().min().expect("a row"), times().max().expect("a row"));
        let (mut own_frames, mut kinds) = (Vec::new(), KindSet::default());
        for (index, layout) in layouts.iter().enumerate() {
            kinds.insert(layout.kind);
            own_frames.clear();
            let is_own = |(_, other): &(&&[u8], &u64)| **other == index as u64;
            own_frames.extend(frames.iter().zip(&layout_indexes).filter(is_own).map(|(frame, _)| *frame));
            for table in &mut self.tables {
                table.begin_layout(layout.kind as u8, layout.layout, own_frames.len());
            }
            self.write_cells(&own_frames, layout.own_cells(), false);
        }
        let splits = frames.len() >= SPLIT_ROWS;
        let parts = self.tables.each_mut().map(|table| table.finish(splits));
        let ordinals = || rows.rows().map(|row| row.ordinal);
        let positions = || rows.rows().map(|row| row.position);
        let tape_index = single_tape(rows).unwrap_or(SEVERAL_TAPES);
        let header = BlockHeader {
            bytes: 0,
            corrections: frames.iter().filter(|frame| is_correction(frame)).count() as u32,
            rows: frames.len() as u32,
            instrument: block_place.instrument,
            number: block_place.number,
            kinds,
            ts_min,
            ts_max,
            ordinal_min: ordinals().min().expect("a row"),
            ordinal_max: ordinals().max().expect("a row"),
            position_min: positions().min().expect("a row"),
            position_max: positions().max().expect("a row"),
            raw_bytes: frames.iter().map(|frame| frame.len() as u32).sum(),
            parts,
            tape_index,
        };
        header.with_bytes().expect("a block has at most twice the bytes of its frames")
    }

    /// Writes the columns beside cells.
    fn write_tails(
        &mut self,
        frames: &[&[u8]],
        layouts: &[&EventKindLayout],
        layout_indexes: &[u64],
        rows: BlockRows<'_>,
    ) {
        self.tails.iter_mut().for_each(Vec::clear);
        self.row_tails.iter_mut().for_each(Vec::clear);
        let layout_of = |index: &u64| layouts[*index as usize];
        for (frame, index) in frames.iter().zip(layout_indexes) {
            let [market, identity] = &mut self.tails;
            let starts = [market.len(), identity.len()];
            let prefix_bytes = split_tail(frame, layout_of(index), market, identity);
            self.row_tails[0].push(RowTail { range: starts[0]..market.len(), prefix_bytes: 0 });
            self.row_tails[1].push(RowTail { range: starts[1]..identity.len(), prefix_bytes });
        }
        for class in 0..2 {
            self.templates[class].find(&self.tails[class], &self.row_tails[class]);
        }
        let number = |width| ColumnSpec { width, null_value: None, is_text: false };
        self.ordinals.clear();
        self.ordinals.extend(rows.rows().map(|row| row.ordinal));
        let Self { encoder, streams, values, tails, row_tails, templates, stream, ordinals, .. } = self;
        let mut write = |table: &mut TableWriter, width, column_values: &mut dyn Iterator<Item = u64>| {
            values.clear();
            values.extend(column_values);
            table.push_special(width, |out| encoder.encode(values, number(width), None, out));
        };
        // In the order of `special::of_class`.
        let [market, identity, provenance] = &mut self.tables;
        write(market, 8, &mut ordinals.iter().copied());
        write(market, 1, &mut layout_indexes.iter().copied());
        let [market_templates, identity_templates] = templates;
        let [market_tails, identity_tails] = row_tails;
        write(market, 4, &mut stream_lengths(market_tails, market_templates));
        fill_stream(&tails[0], market_tails, market_templates, stream);
        market.push_special(1, |out| streams.encode(stream, out));
        write(market, 1, &mut market_templates.row_templates.iter().copied());
        if single_tape(rows).is_none() {
            write(market, 2, &mut rows.rows().map(|row| row.tape_index.into()));
        }
        let lines = frames.iter().zip(layout_indexes);
        let mut lines = lines.map(|(frame, index)| ((frame.len() - layout_of(index).fixed) / LINE) as u64);
        write(identity, 2, &mut lines);
        write(identity, 4, &mut stream_lengths(identity_tails, identity_templates));
        fill_stream(&tails[1], identity_tails, identity_templates, stream);
        identity.push_special(1, |out| streams.encode(stream, out));
        write(identity, 1, &mut identity_templates.row_templates.iter().copied());
        values.clear();
        values.extend(rows.rows().map(|row| (row.position.0 / LINE as u64).wrapping_sub(row.ordinal)));
        let predictor = Some(Predictor { values: ordinals, has_slope: true });
        provenance.push_special(8, |out| encoder.encode(values, number(8), predictor, out));
        values.clear();
        values.extend(frames.iter().map(|frame| u64::from(FrameHeader::read(frame).flags())));
        provenance.push_special(1, |out| encoder.encode(values, number(1), None, out));
        market_templates.write(encoder, market);
        identity_templates.write(encoder, identity);
    }

    /// Writes the columns of these cells: those that all rows of the block have, or those of a layout. Leaves the values of the
    /// first one at the beginning of `self.matrix`.
    fn write_cells(&mut self, frames: &[&[u8]], cells: &[FrameCell], are_shared: bool) {
        let n = frames.len();
        self.matrix.clear();
        self.matrix.resize(cells.len() * n, 0);
        for (tile, tile_frames) in frames.chunks(TILE).enumerate() {
            for (column, cell) in self.matrix.chunks_exact_mut(n).zip(cells) {
                for (value, frame) in column[tile * TILE..].iter_mut().zip(tile_frames) {
                    *value = cell.read_value(frame);
                }
            }
        }
        let Self { encoder, matrix, ordinals, tuples, tables, values, .. } = self;
        let column_of = |index: usize| &matrix[index * n..][..n];
        match are_shared {
            true => tuples.clear(),
            false => tuples.find(cells, matrix, n),
        }
        let members = tuples.members();
        for (index, cell) in cells.iter().enumerate().filter(|(index, _)| !members.contains(index)) {
            let before = index.checked_sub(1).map(|index| &cells[index]);
            let (mut other_cell, mut predictor) = (None, None);
            if are_shared {
                let grows_with_rows = [at::OFFSET, at::SEQUENCE].contains(&usize::from(cell.offset));
                predictor = grows_with_rows.then_some(Predictor { values: ordinals, has_slope: true });
            } else if let Some(before) = before.filter(|before| are_prices_of_two_sides(before, cell)) {
                other_cell = Some(before.offset);
                predictor = Some(Predictor { values: column_of(index - 1), has_slope: false });
            }
            let column = column_of(index);
            tables[cell.class.index()].push_cell(cell.offset, cell.nature.width, other_cell, |out| {
                encoder.encode(column, cell.nature, predictor, out)
            });
        }
        let Some(first) = members.first() else { return };
        let table = &mut tables[cells[*first].class.index()];
        let number = ColumnSpec { width: 2, null_value: None, is_text: false };
        table.begin_tuples(tuples.first_rows().len(), |out| {
            encoder.encode(tuples.numbers(), number, None, out)
        });
        for index in members {
            let (cell, column) = (&cells[*index], column_of(*index));
            values.clear();
            values.extend(tuples.first_rows().iter().map(|row| column[*row as usize]));
            table.push_cell(cell.offset, cell.nature.width, None, |out| {
                encoder.encode(values, cell.nature, None, out)
            });
        }
    }
}

/// Returns whether the event is a trade that cancels or corrects another one.
fn is_correction(frame: &[u8]) -> bool {
    let Some(event) = Event::new(frame).filter(|event| event.kind() == EventKind::Trade) else {
        return false;
    };
    let mut fields = event.schema().fields.iter();
    let mut text = [0; 36];
    fields.find(|spec| spec.field == EventField::Action).is_some_and(|spec| {
        matches!(event.value(spec, &mut text), Some(EventValue::Text("cancel" | "correct")))
    })
}

/// Returns whether the two cells are prices that follow one another in the frame, as bid and ask do.
fn are_prices_of_two_sides(before: &FrameCell, cell: &FrameCell) -> bool {
    let is_price = |cell: &FrameCell| {
        cell.nature == ColumnSpec { width: 8, null_value: Some(i64::MAX as u64), is_text: false }
            && cell.class == FieldClass::Market
    };
    is_price(before) && is_price(cell) && before.offset + 8 == cell.offset
}

/// Returns the bytes that each row has in the stream: those of no template.
fn stream_lengths<'t>(tails: &'t [RowTail], templates: &'t TemplateFinder) -> impl Iterator<Item = u64> + 't {
    let rows = tails.iter().zip(&templates.row_templates);
    rows.map(|(tail, template)| if *template == 0 { tail.range.len() as u64 } else { 0 })
}

/// Makes `stream` the bytes of the rows of no template.
fn fill_stream(bytes: &[u8], tails: &[RowTail], templates: &TemplateFinder, stream: &mut Vec<u8>) {
    stream.clear();
    for (tail, _) in tails.iter().zip(&templates.row_templates).filter(|(_, template)| **template == 0) {
        stream.extend_from_slice(&bytes[tail.range.clone()]);
    }
}

/// Returns the index of the tape of the rows, if all are of one tape.
fn single_tape(rows: BlockRows<'_>) -> Option<u16> {
    let mut indexes = rows.rows().map(|row| row.tape_index);
    let first = indexes.next()?;
    indexes.all(|index| index == first).then_some(first)
}

/// Returns the layouts of the frames, by kind and number, and the index of each frame's layout among them.
fn layouts_of(frames: &[&[u8]]) -> (Vec<&'static EventKindLayout>, Vec<u64>) {
    let mut layouts: Vec<&'static EventKindLayout> = Vec::new();
    let place = |layout: &EventKindLayout| (layout.kind as u8, layout.layout);
    let mut of_frames = Vec::with_capacity(frames.len());
    for frame in frames {
        let layout = EventKindLayout::for_frame(frame);
        if !layouts.iter().any(|known| std::ptr::eq(*known, layout)) {
            layouts.push(layout);
        }
        of_frames.push(layout);
    }
    layouts.sort_unstable_by_key(|layout| place(layout));
    let index_of = |layout: &EventKindLayout| layouts.iter().position(|known| std::ptr::eq(*known, layout));
    let indexes = of_frames.into_iter().map(|layout| index_of(layout).expect("just found") as u64).collect();
    (layouts, indexes)
}

/// Appends the market data in a frame's extension to `market`, and the other bytes after the fixed part to `identity`.
/// If both have bytes, `identity` begins with their order: the number of runs, then the bytes of each run, market and
/// identity in turn. After the runs comes the end of the frame, without its zeros. Returns how many bytes say this order.
fn split_tail(frame: &[u8], plan: &EventKindLayout, market: &mut Vec<u8>, identity: &mut Vec<u8>) -> usize {
    let identity_start = identity.len();
    let tail = &frame[plan.fixed..];
    if tail.is_empty() {
        return 0;
    }
    // Runs of entries of one class: the class, and where they end.
    let (mut runs, mut end) = (Vec::<(FieldClass, usize)>::new(), plan.fixed);
    if FrameHeader::read(frame).flags() & flags::EXT != 0 {
        while let Some((tag, payload)) = extension_entry(frame, end) {
            end = payload.end;
            let class = plan.class_of_tag(tag);
            match runs.last_mut() {
                Some(last) if last.0 == class => last.1 = end,
                _ => runs.push((class, end)),
            }
        }
    }
    if !runs.iter().any(|(class, _)| *class == FieldClass::Market) {
        identity.extend_from_slice(trim_zeros(tail));
        return 0;
    }
    let tail_bytes = trim_zeros(&frame[end..]);
    if let [(_, end)] = runs[..]
        && tail_bytes.is_empty()
    {
        market.extend_from_slice(&frame[plan.fixed..end]);
        return 0;
    }
    let begins_with_market = runs[0].0 == FieldClass::Market;
    put_varint(identity, (runs.len() + usize::from(!begins_with_market)) as u64);
    if !begins_with_market {
        put_varint(identity, 0);
    }
    let mut tail_start = plan.fixed;
    for (_, end) in &runs {
        put_varint(identity, (end - tail_start) as u64);
        tail_start = *end;
    }
    let prefix_bytes = identity.len() - identity_start;
    tail_start = plan.fixed;
    for (class, end) in runs {
        let out = if class == FieldClass::Market { &mut *market } else { &mut *identity };
        out.extend_from_slice(&frame[tail_start..end]);
        tail_start = end;
    }
    identity.extend_from_slice(tail_bytes);
    prefix_bytes
}

/// Cuts the zeros at the end.
fn trim_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1)]
}
