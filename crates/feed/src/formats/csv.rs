//! Rows of separated values for the mapper.
//!
//! A path is the name of a column, `@record`: `row`, `@day`: the day of the file, or `@file[2, "_"]`: the third part
//! of its name. A column that the layout does not
//! name is text; one that the mapping names must be in the header. Columns that only the file has are kept
//! under their names where the mapping keeps what is not listed. `time@ms` is the column `time` read as a time of the
//! form behind the `@`. Header and trailer are messages that become
//! nothing; that the trailer's count is right is checked.

mod needs;

use crate::block::Block;
use crate::error::Error;
use crate::formats::block_items::decode_items;
use crate::formats::file_name::FileNamePart;
use crate::formats::fixed::{DAY_PATH, FixedRecordView, RecordSlots};
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry, Statefulness};
use crate::mapping::{Dialect, Mapping, MappingExplainer, MessageMapper, MessageOrigin, compile};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use unitape_codec::csv::{CsvFault, CsvLayout, CsvRowDecoder, CsvRowKind};
use unitape_model::Dictionary;

/// Decodes blocks of rows; one per worker and feed.
#[derive(Debug)]
pub struct CsvDecoder {
    decoder: CsvRowDecoder,
    mapper: MessageMapper<u16>,
    kind: RecordSlots,
}

/// Columns are named by their layout.
#[derive(Debug)]
pub struct CsvDialect {
    layout: Arc<CsvLayout>,
    /// Columns that the mapping names and the layout does not: text, which the header must have.
    unlisted: RefCell<BTreeSet<String>>,
    /// Columns that the mapping reads as times, with the layout's columns and their forms.
    times: RefCell<BTreeMap<String, TimePath>>,
}

/// A path such as `time@ms`.
#[derive(Debug, Clone)]
struct TimePath {
    column: String,
    form: String,
}

const RECORD_PATH: &str = "@record";

impl Dialect for CsvDialect {
    type Path = String;
    const TYPE_PATH: &'static str = RECORD_PATH;
    const COUNTED_GROUPS: bool = false;

    fn path(&self, text: &str) -> Result<String, String> {
        let row = self.layout.row();
        if matches!(text, RECORD_PATH | DAY_PATH)
            || FileNamePart::parse(text).is_some()
            || row.find(text).is_some_and(|i| row.columns()[i].is_output())
        {
            return Ok(text.to_owned());
        }
        let is_column = |name: &str| match row.find(name) {
            Some(i) => row.columns()[i].is_output(),
            None => self.layout.has_header() && !name.is_empty() && !name.starts_with('@'),
        };
        let mut refusal = None;
        for (separator, _) in text.match_indices('@').filter(|(index, _)| is_column(&text[..*index])) {
            // A unit is written with its mark: `time@ms`; any other form without.
            let (column, form) = (&text[..separator], &text[separator + 1..]);
            match self.layout.with_time_column(text, column, form) {
                Ok(_) => {
                    let path = TimePath { column: column.to_owned(), form: form.to_owned() };
                    self.times.borrow_mut().insert(text.to_owned(), path);
                    return Ok(text.to_owned());
                }
                Err(reason) if row.find(column).is_some() => refusal = Some(reason),
                Err(_) => {}
            }
        }
        if let Some(message) = refusal {
            return Err(message);
        }
        if self.layout.has_header() && row.find(text).is_none() && !text.is_empty() && !text.starts_with('@')
        {
            self.unlisted.borrow_mut().insert(text.to_owned());
            return Ok(text.to_owned());
        }
        let hint = match FileNamePart::is_file_name_path(text) {
            true => {
                "; a part of the file's name has its separator: '@file[0, \"-\"]', or all parts but the last two: '@file[:-2, \"_\"]'"
            }
            false => "",
        };
        Err(format!("`{text}` is no column of the layout {}{hint}", self.layout.name()))
    }

    fn framing(&self) -> Vec<String> {
        vec![RECORD_PATH.to_owned(), DAY_PATH.to_owned()]
    }

    fn container(&self, path: &String) -> Option<String> {
        self.times.borrow().get(path).map(|time| time.column.clone())
    }
}

impl CsvDialect {
    fn new(layout: Arc<CsvLayout>) -> Self {
        Self { layout, unlisted: RefCell::default(), times: RefCell::default() }
    }

    /// Returns the header's name for the column of a path; `None` if the path is no column.
    fn header_column(&self, path: &str) -> Option<String> {
        let times = self.times.borrow();
        let column = times.get(path).map_or(path, |time| time.column.as_str());
        match self.layout.header_name(column) {
            Some(name) => Some(name.to_owned()),
            None => self.unlisted.borrow().contains(column).then(|| column.to_owned()),
        }
    }

    /// Adds to the layout the columns that the mapping adds, and those of which its header must have some.
    fn into_layout(self, mapping: &Mapping) -> Result<Arc<CsvLayout>, Error> {
        let needs = needs::column_needs(mapping, &self);
        let (unlisted, times) = (self.unlisted.into_inner(), self.times.into_inner());
        if unlisted.is_empty() && times.is_empty() && needs.is_empty() {
            return Ok(self.layout);
        }
        let mut layout = self.layout.with_text_columns(unlisted.iter().map(String::as_str));
        for (name, TimePath { column, form }) in &times {
            let mapping_error = |reason| Error::Mapping { origin: name.clone(), reason };
            layout = layout.with_time_column(name, column, form).map_err(mapping_error)?;
        }
        Ok(Arc::new(layout.with_needs(needs)))
    }
}

/// Rows of separated values, by the layout that a mapping names.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "csv",
    load: |mapping| {
        mapping.needs_rules()?;
        mapping.load_layout(CsvLayout::built_in, CsvLayout::all_built_in())
    },
    build: |mapping| {
        // The header is looked for by all columns, also those that only the mapping names.
        Ok(Arc::new(CsvFormat { layout: mapped_layout(mapping)? }))
    },
};

#[derive(Debug)]
struct CsvFormat {
    layout: Arc<CsvLayout>,
}

impl ByteFormat for CsvFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(CsvDecoder::new(mapping, self.layout.clone())?))
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

    /// Returns the name of the file, which may contain its day, followed by the header.
    fn source_head(&self, path: &Path, bytes: &[u8]) -> Arc<[u8]> {
        let name = path.file_name().map(|n| n.to_string_lossy().replace('\n', " "));
        let mut head = name.unwrap_or_default().into_bytes();
        head.push(b'\n');
        head.extend_from_slice(CsvRowDecoder::head(&self.layout, bytes));
        head.into()
    }
}

/// Parses the layout of a loaded mapping.
///
/// # Errors
/// Fails if the layout's text is invalid.
pub fn layout(mapping: &Mapping) -> Result<Arc<CsvLayout>, Error> {
    let (text, origin) = mapping.layout_text.as_ref().expect("the layout is loaded with the mapping");
    let layout = CsvLayout::parse(text, origin)?;
    Ok(Arc::new(match mapping.ambiguous_times()? {
        Some(ambiguous) => layout.with_ambiguous(ambiguous),
        None => layout,
    }))
}

/// Parses the layout of a loaded mapping and adds the columns that the mapping adds and needs.
///
/// # Errors
/// Fails if the layout's text is invalid, or if the mapping cannot be compiled.
pub fn mapped_layout(mapping: &Mapping) -> Result<Arc<CsvLayout>, Error> {
    let dialect = CsvDialect::new(layout(mapping)?);
    compile(mapping, &dialect)?;
    dialect.into_layout(mapping)
}

impl CsvDecoder {
    /// Makes a decoder for this mapping and layout.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn new(mapping: &Mapping, layout: Arc<CsvLayout>) -> Result<Self, Error> {
        let dialect = CsvDialect::new(layout);
        let (plan, places) = compile(mapping, &dialect)?;
        let layout = dialect.into_layout(mapping)?;
        let kind = RecordSlots::new(layout.row(), plan.slot_count, &places);
        Ok(Self { decoder: CsvRowDecoder::new(layout), mapper: MessageMapper::new(plan), kind })
    }

    #[cold]
    fn quarantine_row(&self, block: &mut Block, origin: MessageOrigin, raw: &[u8], fault: CsvFault) {
        let detail = self.decoder.explain(&fault, raw);
        block.quarantine(origin.source, origin.offset, raw, fault.code.as_str(), &detail);
    }
}

impl FormatDecoder for CsvDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        let message_count = block.before.take();
        let head = block.head.clone();
        let (name, header) = match head.iter().position(|b| *b == b'\n') {
            Some(name_end) => (&head[..name_end], &head[name_end + 1..]),
            None => (&[][..], &head[..]),
        };
        let name = String::from_utf8_lossy(name);
        self.decoder.set_name(&name);
        let file_parts: Vec<_> = self.kind.file_parts.iter().map(|part| part.find(&name)).collect();
        // The first block has its header in itself.
        if block.base == 0 {
            self.decoder.begin_file();
        } else {
            self.decoder.read_header(header);
        }
        decode_items(block, source, |block, bytes, offset| {
            let next_row = self.decoder.next(bytes, offset, block.base, block.eof);
            next_row.map(|row| {
                let (raw, origin) = (row.span.slice(bytes), block.origin(source, row.span));
                match row.content {
                    Ok(CsvRowKind::Header) => block.end_ignored(),
                    Ok(CsvRowKind::Row) => {
                        let fields = FixedRecordView {
                            raw,
                            record: self.decoder.record(raw),
                            layout: self.decoder.layout().row(),
                            values: self.decoder.values(),
                            kind: &self.kind,
                            row_decoder: Some(&self.decoder),
                            day: self.decoder.day(),
                            file_name: &name,
                            file_parts: &file_parts,
                        };
                        self.mapper.message(block, &fields, origin, dictionary);
                    }
                    Ok(CsvRowKind::Trailer(count)) => {
                        let headers = self.decoder.header_rows();
                        match count.and_then(|n| block.claim(n, headers, message_count)) {
                            Some(actual_count) => {
                                let fault = CsvFault::count(count.unwrap_or(0), actual_count);
                                self.quarantine_row(block, origin, raw, fault);
                            }
                            None => block.end_ignored(),
                        }
                    }
                    Err(fault) => self.quarantine_row(block, origin, raw, fault),
                }
                row.with_terminator()
            })
        });
    }

    fn begin_source(&mut self) {
        self.decoder.begin_source();
    }

    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        if let Some(other_decoder) = (before as &mut dyn std::any::Any).downcast_mut::<Self>() {
            self.decoder.resume_from(&other_decoder.decoder);
        }
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }
}
