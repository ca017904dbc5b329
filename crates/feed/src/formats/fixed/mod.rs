//! Fixed-width records for the mapper.
//!
//! A path is the name of a column, the same in every record that has it, or `@record` for the record's name. A
//! blank column is not there.

mod batch;
#[cfg(test)]
mod tests;

use crate::block::{Block, BlockNameResolver, DeclaredMessageCount};
use crate::error::Error;
use crate::formats::file_name::FileNamePart;
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry, Statefulness};
use crate::mapping::{
    Dialect, Mapping, MappingExplainer, MessageMapper, MessageOrigin, MessageRefusal, ParsedMessage,
    PathSlots, compile, printable,
};
use batch::{FixedBatchDecoder, RecordTypeProgram};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use unitape_codec::csv;
use unitape_codec::fixed::{
    ColumnLayout, ColumnValue, FixedWidthDecoder, FixedWidthLayout, NextRecord, RecordFault, RecordLayout,
    with_exponent,
};
use unitape_model::event::EventValue as Field;
use unitape_model::schema::{EventFieldSpec, FieldLayout};
use unitape_model::{Amount, Decimal, Dictionary, EventBuilder, Price, Refusal, UnixNanos};

/// Decodes blocks of fixed-width records; one per worker and feed.
#[derive(Debug)]
pub struct FixedRecordsDecoder {
    decoder: FixedWidthDecoder,
    mapper: MessageMapper<u16>,
    kinds: Vec<RecordSlots>,
    /// The fast path, for records that can use it.
    fast: Option<FixedBatchDecoder>,
}

/// The places of the mapping's columns in a type of record.
#[derive(Debug)]
pub(crate) struct RecordSlots {
    /// Column by slot, or [`NONE`], or [`RECORD`].
    slots: Vec<u16>,
    /// Columns that nothing names and that are kept.
    unlisted: Vec<u16>,
    /// Whether such are kept.
    keeps: bool,
    /// The parts of file names that the mapping reads.
    pub(crate) file_parts: Vec<FileNamePart>,
}

/// Fixed-width columns are named by their layout.
#[derive(Debug)]
pub struct FixedDialect {
    layout: Arc<FixedWidthLayout>,
    /// Columns that the mapping reads as times: by path, the layout's column and the form.
    times: RefCell<BTreeMap<String, TimePath>>,
}

/// A path such as `time@ms`.
#[derive(Debug, Clone)]
struct TimePath {
    column: String,
    form: String,
}

/// No column.
const NONE: u16 = u16::MAX;

/// The record's name.
const RECORD: u16 = u16::MAX - 1;

/// The day of the file.
const DAY: u16 = u16::MAX - 2;

/// The first part of the file's name; the others are below it.
const FILE_PART: u16 = u16::MAX - 3;

/// Parts of file names in a mapping, at most: each has a slot.
const FILE_PARTS_MAX: u16 = 256;

/// The path of the day of a file, where its format has one.
pub(crate) const DAY_PATH: &str = "@day";

const RECORD_PATH: &str = "@record";

impl Dialect for FixedDialect {
    type Path = String;
    const TYPE_PATH: &'static str = RECORD_PATH;
    const COUNTED_GROUPS: bool = false;

    fn path(&self, text: &str) -> Result<String, String> {
        let has_column = |r: &RecordLayout| r.find(text).is_some_and(|i| r.columns()[i].is_output());
        if text == RECORD_PATH || self.layout.records().iter().any(has_column) {
            return Ok(text.to_owned());
        }
        if let Some((column, form)) = text.split_once('@')
            && self
                .layout
                .records()
                .iter()
                .any(|r| r.find(column).is_some_and(|i| r.columns()[i].is_output()))
        {
            self.layout.with_time_column(text, column, form)?;
            let path = TimePath { column: column.to_owned(), form: form.to_owned() };
            self.times.borrow_mut().insert(text.to_owned(), path);
            return Ok(text.to_owned());
        }
        Err(format!("`{text}` is no column of the layout {}", self.layout.name()))
    }

    fn container(&self, path: &String) -> Option<String> {
        self.times.borrow().get(path).map(|time| time.column.clone())
    }

    fn framing(&self) -> Vec<String> {
        vec![RECORD_PATH.to_owned()]
    }
}

/// Fixed-width records, by the layout that a mapping names.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "fixed",
    load: |mapping| {
        mapping.needs_rules()?;
        mapping.load_layout(FixedWidthLayout::built_in, FixedWidthLayout::all_built_in())
    },
    build: |mapping| Ok(Arc::new(FixedWidthFormat { layout: layout(mapping)? })),
};

#[derive(Debug)]
struct FixedWidthFormat {
    layout: Arc<FixedWidthLayout>,
}

impl ByteFormat for FixedWidthFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(FixedRecordsDecoder::new(mapping, self.layout.clone())?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        FixedWidthDecoder::cut_offset(&self.layout, buf)
    }

    fn head_bytes(&self) -> usize {
        self.layout.head_bytes()
    }

    fn statefulness(&self) -> Statefulness {
        match self.layout.needs_order() {
            true => Statefulness::Stream,
            false => Statefulness::Stateless,
        }
    }

    fn source_head(&self, _: &Path, bytes: &[u8]) -> Arc<[u8]> {
        FixedWidthDecoder::head(&self.layout, bytes).into()
    }
}

/// Parses the layout of a loaded mapping.
///
/// # Errors
/// Fails if the layout's text is invalid.
pub fn layout(mapping: &Mapping) -> Result<Arc<FixedWidthLayout>, Error> {
    let (text, origin) = mapping.layout_text.as_ref().expect("the layout is loaded with the mapping");
    let layout = FixedWidthLayout::parse(text, origin)?;
    Ok(Arc::new(match mapping.ambiguous_times()? {
        Some(ambiguous) => layout.with_ambiguous(ambiguous),
        None => layout,
    }))
}

impl FixedRecordsDecoder {
    /// Makes a decoder for this mapping and layout.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn new(mapping: &Mapping, layout: Arc<FixedWidthLayout>) -> Result<Self, Error> {
        let dialect = FixedDialect { layout, times: RefCell::default() };
        let (plan, places) = compile(mapping, &dialect)?;
        let mut layout = dialect.layout;
        for (name, TimePath { column, form }) in &dialect.times.into_inner() {
            let mapping_error = |reason| Error::Mapping { origin: name.clone(), reason };
            layout = Arc::new(layout.with_time_column(name, column, form).map_err(mapping_error)?);
        }
        let kinds: Vec<RecordSlots> =
            layout.records().iter().map(|r| RecordSlots::new(r, plan.slot_count, &places)).collect();
        let programs = kinds.iter().zip(0..).map(|(kind, i)| RecordTypeProgram::new(&plan, kind, &layout, i));
        // It keeps ids by the bytes of a name; with reference data an id is of a venue and a day as well.
        let fast =
            FixedBatchDecoder::new(programs.collect(), &layout).filter(|_| mapping.reference.is_none());
        Ok(Self { decoder: FixedWidthDecoder::new(layout), mapper: MessageMapper::new(plan), kinds, fast })
    }

    /// Decodes the record at `start` by the general path and returns its end; `None` if no record follows.
    fn one(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        start: usize,
        source: u32,
        dictionary: &Dictionary,
        before: Option<u64>,
    ) -> Option<usize> {
        let layout = self.decoder.layout().clone();
        let headers = u64::from(layout.head_bytes() > 0);
        let line = match self.decoder.next(bytes, start, block.base, block.eof) {
            NextRecord::Message(line) => line,
            NextRecord::Incomplete { from, .. } => {
                block.decoded = from;
                return None;
            }
            NextRecord::End => {
                block.decoded = bytes.len();
                if let Some(stated) = self.decoder.header_count()
                    && let Some(actual_count) = block.claim(stated, headers, before)
                {
                    let origin = MessageOrigin { source, offset: block.base + bytes.len() as u64 };
                    refuse(block, origin, &[], RecordFault::count(stated, actual_count), &layout);
                }
                return None;
            }
        };
        let (raw, origin) = (line.span.slice(bytes), block.origin(source, line.span));
        match line.content {
            Ok(kind) => {
                let stated = self.decoder.trailer_count(kind);
                match stated.and_then(|n| block.claim(n, headers, before)) {
                    Some(actual_count) => {
                        let fault = RecordFault::count(stated.unwrap_or(0), actual_count);
                        refuse(block, origin, raw, fault, &layout);
                    }
                    None => {
                        let fields = FixedRecordView {
                            raw,
                            record: self.decoder.record(raw),
                            layout: &layout.records()[usize::from(kind)],
                            values: self.decoder.values(),
                            kind: &self.kinds[usize::from(kind)],
                            row_decoder: None,
                            day: ColumnValue::None,
                            file_name: "",
                            file_parts: &[],
                        };
                        self.mapper.message(block, &fields, origin, dictionary);
                    }
                }
            }
            Err(fault) => refuse(block, origin, raw, fault, &layout),
        }
        block.mark_crossed_progress(origin.offset, block.base + line.end as u64);
        Some(line.end)
    }
}

impl FormatDecoder for FixedRecordsDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let before = block.before.take();
        // The first block has its header in itself.
        let head = std::mem::take(&mut block.head);
        self.decoder.read_header(if block.base == 0 { &[] } else { &head });
        block.head = head;
        if let Some(fast) = &mut self.fast {
            fast.begin_block(dictionary);
        }
        let mut start = 0;
        loop {
            start = self.decode_batches(block, &bytes, start, source, dictionary, before);
            match self.one(block, &bytes, start, source, dictionary, before) {
                Some(end) => start = end,
                None => break,
            }
        }
        block.bytes = bytes;
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }

    fn use_general_path(&mut self) {
        self.fast = None;
    }

    fn begin_source(&mut self) {
        self.decoder.begin_source();
    }

    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        if let Some(before) = (before as &mut dyn std::any::Any).downcast_mut::<Self>() {
            self.decoder.resume_from(&before.decoder);
        }
    }
}

#[cold]
fn refuse(
    block: &mut Block,
    origin: MessageOrigin,
    raw: &[u8],
    fault: RecordFault,
    layout: &FixedWidthLayout,
) {
    let detail = fault.text(layout, raw);
    block.quarantine(origin.source, origin.offset, raw, fault.code.as_str(), &detail);
}

impl Block {
    /// Checks the `stated` number of records between header and trailer; returns the actual number if it differs.
    /// Without `before`, only notes the claim for the sequencer.
    pub(crate) fn claim(&mut self, stated: u64, headers: u64, before: Option<u64>) -> Option<u64> {
        let messages_in_block = self.tally.messages;
        match before {
            None => {
                self.claims.push(DeclaredMessageCount {
                    messages: stated.saturating_add(headers),
                    messages_in_block,
                });
                None
            }
            Some(before) => {
                let actual_count = (before + messages_in_block).saturating_sub(headers);
                (actual_count != stated).then_some(actual_count)
            }
        }
    }
}

impl RecordSlots {
    pub(crate) fn new(record: &RecordLayout, slot_count: usize, places: &PathSlots<String>) -> Self {
        let (mut slots, mut file_parts) = (vec![NONE; slot_count], Vec::new());
        for (path, slot) in places.message.iter().filter(|(_, slot)| **slot != 0) {
            let column = record.find(path).filter(|i| record.columns()[*i].is_output());
            slots[usize::from(*slot)] = match column {
                _ if path == RECORD_PATH => RECORD,
                _ if path == DAY_PATH => DAY,
                None if let Some(part) = FileNamePart::parse(path) => {
                    file_parts.push(part);
                    FILE_PART - (file_parts.len() - 1) as u16
                }
                Some(i) => i as u16,
                None => NONE,
            };
        }
        let unlisted = |c: &ColumnLayout| {
            places.keeps && c.is_output() && !c.redefines() && !places.message.contains_key(c.name())
        };
        let columns = record.columns().iter().enumerate();
        let unlisted = columns.filter(|(_, c)| unlisted(c)).map(|(i, _)| i as u16).collect();
        Self { slots, unlisted, keeps: places.keeps, file_parts }
    }
}

/// The current record.
pub(crate) struct FixedRecordView<'m> {
    pub raw: &'m [u8],
    /// The bytes that the values are offsets into.
    pub record: &'m [u8],
    pub layout: &'m RecordLayout,
    pub values: &'m [ColumnValue],
    pub kind: &'m RecordSlots,
    /// The decoder that has the columns missing from the layout.
    pub row_decoder: Option<&'m csv::CsvRowDecoder>,
    /// The day of the file, where it is not a column's.
    pub day: ColumnValue,
    /// The name of the file, where paths read parts of it.
    pub file_name: &'m str,
    /// The parts of the file's name, in the order of [`RecordSlots::file_parts`].
    pub file_parts: &'m [Option<&'m str>],
}

impl FixedRecordView<'_> {
    /// Returns the column if it has a value.
    fn column(&self, column: u16) -> Option<u16> {
        (self.value(column) != ColumnValue::None || self.file_part(column).is_some()).then_some(column)
    }

    /// Returns the part of the file's name that stands in for this column.
    fn file_part(&self, column: u16) -> Option<&[u8]> {
        let part = *self.file_parts.get(usize::from(FILE_PART.checked_sub(column)?))?;
        part.map(str::as_bytes)
    }

    /// Writes the value as text, in canonical form.
    fn written<'v>(&self, column: u16, squeeze: bool, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        scratch.clear();
        self.value(column).write(self.record, squeeze, scratch);
        scratch
    }

    #[inline]
    fn value(&self, column: u16) -> ColumnValue {
        match self.values.get(usize::from(column)) {
            Some(value) => *value,
            None if column == DAY => self.day,
            None => ColumnValue::None,
        }
    }
}

impl ParsedMessage for FixedRecordView<'_> {
    type Ref = u16;
    const FIELD: &'static str = "column";
    const TYPE: &'static str = "record";
    const TIME: &'static str = "date, timestamp, or time with a date";
    const HAS_HEADER: bool = true;

    #[cold]
    fn missing_note(&self, path: &str) -> Option<String> {
        FileNamePart::parse(path)
            .map(|_| format!("the file's name is {}", printable(self.file_name.as_bytes())))
    }

    #[inline]
    fn is_absent(&self, slot: u8) -> bool {
        let column = self.kind.slots[usize::from(slot)];
        self.row_decoder.is_some_and(|decoder| !decoder.has_column(column))
    }

    fn raw(&self) -> &[u8] {
        self.raw
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<u16> {
        match self.kind.slots[usize::from(slot)] {
            NONE => None,
            RECORD => Some(RECORD),
            column => self.column(column),
        }
    }

    #[inline]
    fn text<'v>(&'v self, column: u16, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        if column > FILE_PART - FILE_PARTS_MAX {
            return match self.file_part(column) {
                Some(part) => part,
                None if column == RECORD => self.layout.name().as_bytes(),
                None => self.written(column, false, scratch),
            };
        }
        let squeeze =
            self.layout.columns().get(usize::from(column)).is_some_and(ColumnLayout::collapses_blanks);
        match self.value(column) {
            ColumnValue::Text { start, end } if !squeeze => &self.record[start as usize..end as usize],
            _ => self.written(column, squeeze, scratch),
        }
    }

    #[inline]
    fn number(&self, column: u16) -> Option<u64> {
        match self.value(column) {
            ColumnValue::Int(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }

    #[inline]
    fn time(&self, column: u16) -> Option<UnixNanos> {
        match self.value(column) {
            ColumnValue::Instant(ts) => Some(UnixNanos(ts)),
            ColumnValue::Date(days) => Some(UnixNanos(i64::from(days) * 86_400_000_000_000)),
            _ => None,
        }
    }

    #[inline]
    fn set_field(
        &self,
        column: u16,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let value = self.value(column);
        let (mantissa, exponent) = match value {
            ColumnValue::Decimal { mantissa, exponent } => (mantissa, exponent),
            ColumnValue::Int(n) => (n, 0),
            ColumnValue::Flag(yes) if matches!(spec.slot, FieldLayout::Bool { .. }) => {
                return event.set(spec, Field::Bool(yes));
            }
            _ => {
                let text = self.text(column, scratch);
                match scientific(spec, text) {
                    Some(Ok(number)) => number,
                    Some(Err(fault)) => return Err(fault),
                    None => return event.set_text(spec, text, names),
                }
            }
        };
        match spec.slot {
            FieldLayout::UInt { .. } if exponent == 0 => {
                let n = u64::try_from(mantissa).map_err(|_| Refusal::BadInteger)?;
                event.set(spec, Field::UInt(n))
            }
            _ => match set_number(event, spec, mantissa, exponent) {
                Some(set) => set,
                None => event.set_text(spec, self.text(column, scratch), names),
            },
        }
    }

    fn visit_unlisted(
        &self,
        _: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let mut scratch = Vec::new();
        for &i in &self.kind.unlisted {
            if self.values[usize::from(i)] != ColumnValue::None {
                keep(self.layout.columns()[usize::from(i)].name(), self.text(i, &mut scratch))?;
            }
        }
        if self.kind.keeps
            && let Some(decoder) = self.row_decoder
        {
            decoder.extra_values(self.record).try_for_each(|(name, text)| keep(name, text))?;
        }
        Ok(())
    }
}

/// Sets a price, decimal or amount; `None` if the field is of another type.
#[inline]
pub(crate) fn set_number(
    event: &mut EventBuilder<'_>,
    spec: &EventFieldSpec,
    mantissa: i64,
    exponent: i8,
) -> Option<Result<(), Refusal>> {
    let number = match spec.slot {
        FieldLayout::Price { .. } => price(mantissa, exponent).map(Field::Price),
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            Decimal::new(mantissa, exponent).map(Field::Decimal).map_err(Refusal::from)
        }
        FieldLayout::Amount { .. } => {
            Amount::new(mantissa.into(), exponent).map(Field::Amount).map_err(Refusal::from)
        }
        _ => return None,
    };
    Some(number.and_then(|number| event.set(spec, number)))
}

/// Parses a text such as `7.25e-05` to mantissa and exponent, for a field that holds a number.
pub(crate) fn scientific(spec: &EventFieldSpec, text: &[u8]) -> Option<Result<(i64, i8), Refusal>> {
    let is_number = matches!(
        spec.slot,
        FieldLayout::Price { .. }
            | FieldLayout::Decimal { .. }
            | FieldLayout::DecimalNarrow { .. }
            | FieldLayout::DecimalExt
            | FieldLayout::Amount { .. }
    );
    if !is_number || !text.iter().any(|b| matches!(b, b'e' | b'E')) {
        return None;
    }
    let number = with_exponent(text).map(|d| (d.mantissa(), d.exponent()));
    Some(number.map_err(Refusal::from))
}

/// Makes a price without removing zeros that must be added again.
#[inline]
pub(crate) fn price(mantissa: i64, exponent: i8) -> Result<Price, Refusal> {
    let scale = u32::try_from(i32::from(exponent) + Price::PLACES as i32).ok();
    match scale.and_then(|s| 10i64.checked_pow(s)).and_then(|s| mantissa.checked_mul(s)) {
        Some(p) if Price(p) != Price::NONE => Ok(Price(p)),
        // Either it does not fit, or it has more places than a price and they may be zeros.
        _ => Ok(Price::from_decimal(Decimal::new(mantissa, exponent)?)?),
    }
}
