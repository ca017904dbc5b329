//! A batch on its way into the block.

use super::super::{FixedRecordView, FixedRecordsDecoder};
use super::names::short_id;
use super::program::{EventProgram, NO_VARIANT, RecordDisposition, RecordTypeProgram};
use super::{FixedBatchDecoder, LaneRecord, SLOW};
use crate::block::{Block, BlockMessageKind, MessageSpan};
use crate::formats::format::SourceContext;
use crate::mapping::MappingPlan;
use unitape_base::FramedLine;
use unitape_codec::fixed::{
    ColumnValue, FixedWidthDecoder, LANES, NextRecord, ScatteredRecords, StridedRecords,
};
use unitape_model::schema::{SEQ_EXT, SEQ_NONE, at};
use unitape_model::{Dictionary, FrameHeader, LINE, UnixNanos, flags};

/// Starts of the records of each type.
#[derive(Debug)]
pub(super) struct RecordStartLists {
    pub(super) starts: Vec<Vec<u32>>,
}

impl RecordStartLists {
    pub(super) fn new(kinds: usize) -> Self {
        Self { starts: (0..kinds).map(|_| Vec::with_capacity(LANES)).collect() }
    }

    pub(super) fn clear(&mut self) {
        self.starts.iter_mut().for_each(Vec::clear);
    }

    /// Adds a record; returns its index among the records of its type.
    #[inline]
    pub(super) fn add_record(&mut self, kind: Option<u16>, start: usize) -> u8 {
        let Some(kind) = kind else { return 0 };
        let list = &mut self.starts[usize::from(kind)];
        list.push(start as u32);
        list.len() as u8 - 1
    }
}

/// Records of a batch, one after the other.
#[derive(Clone, Copy)]
pub(super) struct LaneSlice<'l> {
    pub(super) lanes: &'l [LaneRecord],
    /// All records on the fast path are of one type, whose program has read them already.
    pub(super) is_read: bool,
}

/// The inputs of decoding a batch besides its bytes.
#[derive(Clone, Copy)]
pub(super) struct BlockContext<'k> {
    pub(super) source: SourceContext<'k>,
    /// The number of messages of the source before the block; `None` the first time.
    pub(super) before: Option<u64>,
}

impl FixedRecordsDecoder {
    /// Decodes the records of a batch; returns the end of the last decoded record.
    pub(super) fn decode_batch(
        &mut self,
        fast: &mut FixedBatchDecoder,
        block: &mut Block,
        bytes: &[u8],
        run: LaneSlice<'_>,
        context: BlockContext<'_>,
    ) -> usize {
        let LaneSlice { lanes, is_read } = run;
        let BlockContext { source: source_context, before } = context;
        let FixedBatchDecoder { programs_by_type: kinds, start_lists: lists, decoded_records, .. } = fast;
        for (program, starts) in kinds.iter_mut().zip(&lists.starts) {
            if let Some(program) = program.as_mut().filter(|_| !starts.is_empty()) {
                if !is_read {
                    program.good = program.columns.read_batch(&mut self.decoder, bytes, starts);
                }
                program.prepare_fields(ScatteredRecords { bytes, starts });
            }
        }
        let mut segment = block.arena.len();
        for lane in lanes {
            let is_decoded = match kinds.get_mut(usize::from(lane.kind)) {
                Some(Some(program)) if lane.kind != SLOW => {
                    self.begin_lane(program, block, bytes, *lane, source_context)
                }
                _ => false,
            };
            *decoded_records += u64::from(is_decoded);
            if !is_decoded {
                store_values(kinds, lists, block, bytes, segment);
                let record_end = self.one(
                    block,
                    bytes,
                    lane.record_start as usize,
                    source_context.source,
                    source_context.dictionary,
                    before,
                );
                block.resolve_names(source_context.dictionary);
                segment = block.arena.len();
                if record_end != Some(lane.record_end as usize) {
                    return record_end.unwrap_or(lane.record_start as usize);
                }
            }
        }
        store_values(kinds, lists, block, bytes, segment);
        lanes.last().map_or(0, |l| l.record_end as usize)
    }

    /// Begins the frame of one record; false if it needs the general path.
    #[inline]
    fn begin_lane(
        &mut self,
        program: &mut RecordTypeProgram,
        block: &mut Block,
        bytes: &[u8],
        lane: LaneRecord,
        context: SourceContext<'_>,
    ) -> bool {
        let SourceContext { source, dictionary } = context;
        let index = usize::from(lane.type_ordinal) % LANES;
        let variant = program.variant_of[index];
        let offset = block.base + u64::from(lane.record_start);
        match program.variants.get_mut(usize::from(variant)) {
            Some(RecordDisposition::Ignored) => block.end_ignored(),
            Some(RecordDisposition::Event(event)) => {
                let ts = program.columns.lane_values(program.ts)[index];
                let sequence = match program.sequence {
                    Some(column_index) if program.columns.empty_lanes(column_index) >> index & 1 == 0 => {
                        match u64::try_from(program.columns.lane_values(column_index)[index]) {
                            Ok(n) if n < u64::from(SEQ_EXT) => n as u32,
                            // A value that is no number is no sequence; a value that is too great is in the
                            // extension.
                            Ok(_) => return false,
                            Err(_) => SEQ_NONE,
                        }
                    }
                    _ => SEQ_NONE,
                };
                let mark = block.mark();
                let head = FrameCommonValues { ts, source, offset: offset as u32, sequence };
                let slow = GeneralRecordReader {
                    decoder: &mut self.decoder,
                    kinds: &self.kinds,
                    plan: self.mapper.plan(),
                    dictionary,
                };
                if !event.append_frame(block, bytes, lane, head, slow) {
                    block.roll_back(mark);
                    return false;
                }
                let span = MessageSpan { offset, length: lane.length as usize };
                block.end_message(span, UnixNanos(ts), 1, BlockMessageKind::Events, dictionary);
            }
            None => return false,
        }
        block.mark_crossed_progress(offset, block.base + u64::from(lane.record_end));
        true
    }
}

/// The common parts of every frame.
#[derive(Clone, Copy, Debug)]
struct FrameCommonValues {
    ts: i64,
    source: u32,
    offset: u32,
    sequence: u32,
}

/// The general path of reading a record.
struct GeneralRecordReader<'d> {
    decoder: &'d mut FixedWidthDecoder,
    kinds: &'d [super::super::RecordSlots],
    plan: &'d MappingPlan,
    dictionary: &'d Dictionary,
}

impl GeneralRecordReader<'_> {
    /// Decodes a record in the general way; `None` if it is no valid record after all.
    fn fields<'m>(
        &'m mut self,
        bytes: &'m [u8],
        lane: LaneRecord,
    ) -> Option<(FixedRecordView<'m>, &'m MappingPlan)> {
        // Not the first record of a file: that one is never in a batch.
        let next_record = self.decoder.next(bytes, lane.record_start as usize, 1, true);
        let NextRecord::Message(FramedLine { span, content: Ok(kind), .. }) = next_record else {
            return None;
        };
        let raw = span.slice(bytes);
        let fields = FixedRecordView {
            raw,
            record: self.decoder.record(raw),
            layout: &self.decoder.layout().records()[usize::from(kind)],
            values: self.decoder.values(),
            kind: self.kinds.get(usize::from(kind))?,
            row_decoder: None,
            day: ColumnValue::None,
            file_name: "",
            file_parts: &[],
        };
        Some((fields, self.plan))
    }
}

impl EventProgram {
    /// Appends the frame of a record to the arena, without the parts that [`store_values`] adds.
    #[inline]
    fn append_frame(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        lane: LaneRecord,
        head: FrameCommonValues,
        mut slow: GeneralRecordReader<'_>,
    ) -> bool {
        let dictionary = slow.dictionary;
        let record = &bytes[lane.record_start as usize..];
        let frame = block.arena.len();
        let mut ids = [0; NAMES_MAX];
        for (name, id) in self.names.iter_mut().zip(&mut ids) {
            *id = match name.find_id(record) {
                Some(id) => {
                    name.note_provisional(block, id, frame);
                    id
                }
                None => {
                    let Some((fields, plan)) = slow.fields(bytes, lane) else { return false };
                    let (_, mut names) = block.builder(dictionary);
                    match name.resolve_name(plan, record, &fields, &mut names, frame) {
                        Some(id) => id,
                        None => return false,
                    }
                }
            };
        }
        let mut extension: &[u8] = &[];
        if let Some(cache) = &mut self.extension_cache {
            let mut cached_span = cache.find_extension(record);
            if cached_span.is_none() {
                let Some((fields, _)) = slow.fields(bytes, lane) else { return false };
                if !cache.add_extension(record, &fields) {
                    return false;
                }
                cached_span = cache.find_extension(record);
            }
            let Some(span) = cached_span else { return false };
            extension = cache.extension_text(span);
        }
        let fixed = self.template.len();
        let arena = &mut block.arena;
        arena.extend_from_slice(&self.template);
        let header = FrameHeader::read(&self.template);
        let image = &mut arena[frame..frame + fixed];
        if !extension.is_empty() {
            let Ok(lines) = u16::try_from((fixed + extension.len()) / LINE) else { return false };
            FrameHeader::new_unstamped(header.kind(), header.flags() | flags::EXT, lines).write(image);
        }
        image[at::TS_EVENT..at::TS_EVENT + 8].copy_from_slice(&head.ts.to_le_bytes());
        image[at::SOURCE..at::SOURCE + 4].copy_from_slice(&head.source.to_le_bytes());
        image[at::OFFSET..at::OFFSET + 4].copy_from_slice(&head.offset.to_le_bytes());
        image[at::SEQUENCE..at::SEQUENCE + 4].copy_from_slice(&head.sequence.to_le_bytes());
        for (name, id) in self.names.iter().zip(ids) {
            if name.has_short_id {
                image[name.frame_offset..name.frame_offset + 2].copy_from_slice(&short_id(id).to_le_bytes());
            } else {
                image[name.frame_offset..name.frame_offset + 4].copy_from_slice(&id.to_le_bytes());
            }
        }
        arena.extend_from_slice(extension);
        self.frames.push((lane.type_ordinal, frame as u32));
        true
    }
}

/// Maximum variants of a record type.
pub(super) const VARIANTS_MAX: usize = 32;

/// Maximum names of an event.
pub(super) const NAMES_MAX: usize = 12;

impl RecordTypeProgram {
    /// Reads the columns of records at equal distances; `following_bytes` are the bytes that are read next.
    pub(super) fn read_even(
        &mut self,
        decoder: &mut FixedWidthDecoder,
        rows: StridedRecords<'_>,
        following_bytes: &[u8],
    ) {
        self.good = self.columns.read_strided(decoder, rows, following_bytes);
        self.good &= !self.columns.empty_lanes(self.ts);
    }

    /// Makes the fields of these records' events ready, whose columns have been read.
    fn prepare_fields(&mut self, records: ScatteredRecords<'_>) {
        let ScatteredRecords { bytes, starts } = records;
        let mut good = self.good & !self.columns.empty_lanes(self.ts);
        let Self { columns, by_byte, variants, variant_of, .. } = self;
        if by_byte.is_none() {
            // All are of one variant.
            if let Some(RecordDisposition::Event(program)) = variants.first_mut() {
                program.frames.clear();
                good = program
                    .batch_fields
                    .iter_mut()
                    .fold(good, |good, p| good & !p.prepare_values(columns, records));
            }
            for (index, variant) in variant_of.iter_mut().enumerate().take(starts.len()) {
                *variant = if good >> index & 1 == 1 { 0 } else { NO_VARIANT };
            }
            self.good = good;
            return;
        }
        let mut lanes_by_variant = [0u64; VARIANTS_MAX];
        for (index, start) in starts.iter().enumerate() {
            let variant = match by_byte {
                None => NO_VARIANT,
                Some((column, by_byte)) => by_byte[usize::from(bytes[*start as usize + *column])],
            };
            variant_of[index] = variant;
            if let Some(lanes) = lanes_by_variant.get_mut(usize::from(variant)) {
                *lanes |= 1 << index;
            }
        }
        for (variant, variant_lanes) in variants.iter_mut().zip(lanes_by_variant) {
            let RecordDisposition::Event(program) = variant else { continue };
            program.frames.clear();
            for field in &mut program.batch_fields {
                good &= !(field.prepare_values(columns, records) & variant_lanes);
            }
        }
        for (index, variant) in variant_of.iter_mut().enumerate().take(starts.len()) {
            if good >> index & 1 == 0 {
                *variant = NO_VARIANT;
            }
        }
        self.good = good;
    }
}

/// Stores the prepared values into the frames of a segment.
fn store_values(
    kinds: &mut [Option<RecordTypeProgram>],
    lists: &RecordStartLists,
    block: &mut Block,
    bytes: &[u8],
    segment: usize,
) {
    if block.arena.len() == segment {
        return;
    }
    for (program, starts) in kinds.iter_mut().zip(&lists.starts) {
        for variant in program.iter_mut().filter(|_| !starts.is_empty()).flat_map(|p| &mut p.variants) {
            if let RecordDisposition::Event(program) = variant {
                for field in &program.batch_fields {
                    let frames = program
                        .frames
                        .iter()
                        .map(|(lane, frame_start)| (usize::from(*lane), *frame_start as usize));
                    field.store_values(&mut block.arena, frames, ScatteredRecords { bytes, starts });
                }
                program.frames.clear();
            }
        }
    }
}
