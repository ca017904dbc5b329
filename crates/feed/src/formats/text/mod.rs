//! Messages of text for the mapper: what the decoders of [`unitape_codec::text`] find, by path.
//!
//! [`path`] documents how mappings name values. A value that is empty, or `null`, is not there. Where a path leads to
//! several values, a list of names reads all of them, every other field the first one.
//!
//! **Unlisted** values are kept under their path, with `#2`, `#3`, … when they repeat.

mod path;
mod words;

pub use path::{TextDialect, TextPath};

use crate::block::json::json_string;
use crate::block::{Block, BlockNameResolver};
use crate::error::Error;
use crate::formats::block_items::decode_items;
use crate::formats::fixed::{scientific, set_number};
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry};
use crate::mapping::{
    Dialect, EntryCursor, EntryStep, Mapping, MappingExplainer, MessageMapper, MessageRefusal, ParsedMessage,
    PathSlots, compile, is_free_text,
};
use path::TextValueConversion;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroU16;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use unitape_codec::charset::FallbackCharset;
use unitape_codec::text::{self, NextTextMessage, PathValues, TextMessageDecoder, jsonl, mail, time, xml};
use unitape_codec::times::{self, WrittenTime};
use unitape_model::event::EventValue;
use unitape_model::schema::{EventFieldSpec, FieldLayout};
use unitape_model::{Dictionary, EventBuilder, Refusal, UnixNanos};
use words::WordPaths;

/// A format of text: what decodes it, and how its paths are written.
#[derive(Clone, Copy, Debug)]
pub struct TextFormat {
    /// Makes a decoder.
    pub decoder: fn(FallbackCharset) -> Box<dyn TextCodec>,
    /// Guesses an offset with only whole messages before it.
    pub cut: fn(&[u8]) -> usize,
    /// Bytes at the start of an input that each decoder must know, at most.
    pub head_bytes: usize,
    /// Reads the path of a value.
    pub read_path: fn(&str) -> Result<String, String>,
    /// Whether a path may have the form of a time behind it.
    pub has_time_forms: bool,
    /// Whether a path may count the entries of a list.
    pub has_lists: bool,
}

impl TextFormat {
    /// JSON Lines of any make.
    pub const JSONL: Self = Self {
        decoder: |fallback| Box::new(jsonl::JsonlDecoder::default().with_fallback(fallback)),
        cut: jsonl::JsonlDecoder::cut,
        head_bytes: text::HEAD_BYTES,
        read_path: jsonl::path::read,
        has_time_forms: true,
        has_lists: true,
    };

    /// E-mail, alone or in an mbox.
    pub const MAIL: Self = Self {
        decoder: |fallback| Box::new(mail::MailDecoder::default().with_fallback(fallback)),
        cut: mail::MailDecoder::cut,
        head_bytes: 0,
        read_path: |path| mail::known_path(&jsonl::path::read(path)?),
        has_lists: false,
        ..Self::JSONL
    };

    /// News in XML.
    const NEWSXML: Self = Self {
        decoder: |fallback| Box::new(xml::XmlDecoder::default().with_fallback(fallback)),
        cut: xml::XmlDecoder::cut,
        read_path: xml::path::read,
        has_time_forms: false,
        has_lists: false,
        ..Self::JSONL
    };

    /// Makes the registry's entry of a format; `build` makes the format.
    pub const fn entry(
        name: &'static str,
        build: fn(&Mapping) -> Result<Arc<dyn ByteFormat>, Error>,
    ) -> FormatEntry {
        FormatEntry { name, load: |mapping| mapping.needs_rules(), build }
    }
}

/// JSON Lines of any make.
pub const JSONL: FormatEntry = TextFormat::entry("jsonl", |_| Ok(Arc::new(TextFormat::JSONL)));

/// E-mail.
pub const MAIL: FormatEntry = TextFormat::entry("mail", |_| Ok(Arc::new(TextFormat::MAIL)));

/// News in XML.
pub const NEWSXML: FormatEntry = TextFormat::entry("newsxml", |_| Ok(Arc::new(TextFormat::NEWSXML)));

impl ByteFormat for TextFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(TextDecoder::new(*self, mapping)?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        (self.cut)(buf)
    }

    fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Returns the declaration of a character set, or the bracket of a list that is the whole file.
    fn source_head(&self, _: &Path, bytes: &[u8]) -> Arc<[u8]> {
        let head = &bytes[..bytes.len().min(text::HEAD_BYTES)];
        (self.decoder)(FallbackCharset::default()).inspect_head(head).into()
    }
}

/// A decoder of text that a worker can hold.
pub trait TextCodec: TextMessageDecoder + std::fmt::Debug + Send {}

impl<D: TextMessageDecoder + std::fmt::Debug + Send> TextCodec for D {}

/// Decodes blocks of text; one per worker and feed.
#[derive(Debug)]
pub struct TextDecoder {
    codec: Box<dyn TextCodec>,
    mapper: MessageMapper<TextFieldValue>,
    path_values: PathValues,
    field_selection: TextFieldSelection,
    table: TextFieldTable,
}

/// A value that was found, or several of one path.
#[derive(Clone, Copy, Debug)]
struct TextFieldValue {
    /// Index of the first; [`KIND`] for the message's kind.
    first_value: u32,
    /// Index after the last that may belong to it.
    value_end: u32,
    reading: TextValueConversion,
    /// The pattern that led to it, where values of other paths may belong to it, too.
    pattern: Option<PatternId>,
}

/// The number of a mapping's path that covers several paths of a message: `bids[][]` covers `bids[][0]` and `bids[][1]`.
type PatternId = NonZeroU16;

const KIND: u32 = u32::MAX;

/// Subject and text of a mail: the `TextFieldValue::first` of a composed value.
const WORDS: u32 = u32::MAX - 1;

/// `TextFieldValue::first` of a number of entries, which is in `to`.
const ENTRIES: u32 = u32::MAX - 2;

/// The mapping's targets of values, by path.
#[derive(Debug)]
struct TextFieldSelection {
    by_path: FxHashMap<String, TextValueTarget>,
    /// The paths of `by_path` that may cover others, by the number of their pattern less one.
    patterns: Vec<String>,
    /// Slots of the kind of the message.
    kind: Vec<u8>,
    /// Slots of a mail's subject and text.
    mail_text_slots: Vec<u8>,
    /// Slots of the numbers of entries, by the paths of their lists.
    count_slots: Vec<(String, u8)>,
    /// Paths of a message's words, but of a mail.
    word_paths: WordPaths,
    /// For each group, the members that belong to the entries around its own entries.
    outer_members: Vec<OuterMembers>,
    /// Of each group, the number of slots of an entry.
    entry_slot_counts: Vec<usize>,
    slots: usize,
    keeps_unlisted: bool,
    time_paths: TextTimes,
}

/// The members of a group that are values of an entry around its own: `events[].product_id` in a group of
/// `events[].updates[]`.
#[derive(Debug, Default)]
struct OuterMembers {
    /// The list of the entry around it, and the slot.
    slots: Vec<(String, u8)>,
    /// The values of the entries around the current entry.
    values: RefCell<Vec<Option<TextFieldValue>>>,
}

/// The forms of a mapping's times.
#[derive(Debug)]
struct TextTimes {
    /// Those that paths name.
    forms: Vec<WrittenTime>,
    /// ISO 8601 in the zone of the mapping.
    local: WrittenTime,
    /// The mapping names a zone: times without an offset are of it.
    has_zone: bool,
}

impl TextTimes {
    /// Converts a value to UTC nanoseconds. Fails if it is no time, and says why.
    fn parse_nanos(&self, text: &[u8], reading: TextValueConversion) -> Result<i64, &'static str> {
        let written_text = || std::str::from_utf8(text).unwrap_or_default();
        match reading {
            TextValueConversion::Count(power) => times::since_1970(text, power).map_err(|f| f.description()),
            TextValueConversion::Form(form) => self.forms[usize::from(form)].nanos(text),
            TextValueConversion::AsItIs if self.has_zone => match self.local.nanos(text) {
                Ok(nanos) => Ok(nanos),
                Err(reason) => time::rfc5322(written_text()).ok_or(reason),
            },
            TextValueConversion::AsItIs => {
                let absolute_time = time::iso(text).or_else(|| time::rfc5322(written_text()));
                absolute_time.map_or_else(|| self.local.nanos(text), Ok)
            }
        }
    }
}

/// The mapping's targets for the values of a path.
#[derive(Clone, Debug, Default)]
struct TextValueTarget {
    message: Vec<SlotTarget>,
    members: Vec<(usize, SlotTarget)>,
    /// The groups of whose list each entry of this path is one.
    list_groups: Vec<usize>,
    /// The groups that have members of each entry of this path, in which the entries of their own list are.
    outer_groups: Vec<usize>,
    /// The patterns that cover this path.
    patterns: Vec<PatternId>,
}

/// A slot that takes a value.
#[derive(Clone, Copy, Debug)]
struct SlotTarget {
    slot: u8,
    reading: TextValueConversion,
    pattern: Option<PatternId>,
}

impl SlotTarget {
    fn new(slot: u8, reading: TextValueConversion) -> Self {
        Self { slot, reading, pattern: None }
    }

    /// Returns the value whose first part is at `first`, and whose last one is before `to`.
    fn value(&self, first: u32, to: u32) -> TextFieldValue {
        TextFieldValue { first_value: first, value_end: to, reading: self.reading, pattern: self.pattern }
    }
}

/// The values found in the current message.
#[derive(Debug, Default)]
struct TextFieldTable {
    message_slots: Vec<Option<TextFieldValue>>,
    /// The targets of each path, by its number in the leaves.
    paths: Vec<Option<TextValueTarget>>,
    /// By the number of a path, the counted lists in whose place a value of this path is.
    list_positions: Vec<Vec<ListPosition>>,
    generation: u64,
}

impl TextDecoder {
    /// Makes a decoder for text of this format by `mapping`.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn new(format: TextFormat, mapping: &Mapping) -> Result<Self, Error> {
        let (zone, ambiguous) = (mapping.message.zone.as_deref(), mapping.message.ambiguous.as_deref());
        let local = times::time_form("iso", zone.unwrap_or("UTC"), ambiguous);
        let local = local.map_err(|reason| mapping.refuse_key("message", reason))?;
        let dialect = TextDialect::new(format, zone, ambiguous);
        let (plan, places) = compile(mapping, &dialect)?;
        let read = |path: &str| match dialect.path(path)? {
            TextPath::Value { path, .. } => Ok(path),
            TextPath::Kind | TextPath::Words | TextPath::Entries { .. } => {
                Err(format!("`{path}` is no path of words"))
            }
        };
        let word_paths = WordPaths::new(&mapping.message.words, read).map_err(|reason| Error::Mapping {
            origin: mapping.origin.clone(),
            reason: format!("message.words: {reason}"),
        })?;
        let times = TextTimes { forms: dialect.into_forms(), local, has_zone: zone.is_some() };
        Ok(Self {
            codec: (format.decoder)(plan.fallback),
            field_selection: TextFieldSelection::new(&places, word_paths, plan.slot_count, times),
            mapper: MessageMapper::new(plan),
            path_values: PathValues::default(),
            table: TextFieldTable::default(),
        })
    }
}

impl FormatDecoder for TextDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        match &block.head[..] {
            [] if block.base == 0 => {
                self.codec.inspect_head(&block.bytes[..block.bytes.len().min(text::HEAD_BYTES)])
            }
            head => self.codec.inspect_head(head),
        };
        decode_items(block, source, |block, bytes, offset| {
            self.codec.next(bytes, offset, block.eof, &mut self.path_values).map(|message| {
                self.table.read_values(&self.field_selection, &self.path_values);
                let view = TextMessageView {
                    raw: message.span.slice(bytes),
                    kind: message.kind,
                    leaves: &self.path_values,
                    field_selection: &self.field_selection,
                    table: &self.table,
                };
                self.mapper.message(block, &view, block.origin(source, message.span), dictionary);
                message.span
            })
        });
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }
}

impl TextFieldSelection {
    fn new(places: &PathSlots<TextPath>, word_paths: WordPaths, slots: usize, times: TextTimes) -> Self {
        let mut this = Self {
            by_path: FxHashMap::default(),
            patterns: Vec::new(),
            kind: Vec::new(),
            mail_text_slots: Vec::new(),
            count_slots: Vec::new(),
            word_paths,
            outer_members: Vec::new(),
            entry_slot_counts: Vec::new(),
            slots,
            keeps_unlisted: places.keeps,
            time_paths: times,
        };
        for (path, slot) in &places.message {
            match path {
                TextPath::Kind => this.kind.extend(Some(*slot).filter(|s| *s != 0)),
                TextPath::Words => this.mail_text_slots.extend(Some(*slot).filter(|s| *s != 0)),
                TextPath::Entries { path } if *slot != 0 => this.count_slots.push((path.clone(), *slot)),
                TextPath::Entries { .. } => {}
                TextPath::Value { path, reading } => {
                    let want = this.by_path.entry(path.clone()).or_default();
                    want.message.extend((*slot != 0).then(|| SlotTarget::new(*slot, *reading)));
                }
            }
        }
        for (group, places) in places.groups.iter().enumerate() {
            for (path, slot) in &places.members {
                if let TextPath::Value { path, reading } = path {
                    let target = SlotTarget::new(*slot, *reading);
                    this.by_path.entry(path.clone()).or_default().members.push((group, target));
                }
            }
            let mut outer = OuterMembers::default();
            if let TextPath::Value { path: delimiter, .. } = &places.delimiter {
                this.by_path.entry(delimiter.clone()).or_default().list_groups.push(group);
                for (path, slot) in &places.members {
                    let TextPath::Value { path, .. } = path else { continue };
                    let Some(list) = outer_list(delimiter, path) else { continue };
                    outer.slots.push((list.to_owned(), *slot));
                    let target = this.by_path.entry(list.to_owned()).or_default();
                    if !target.outer_groups.contains(&group) {
                        target.outer_groups.push(group);
                    }
                }
            }
            this.outer_members.push(outer);
            this.entry_slot_counts.push(1 + usize::from(places.members.values().copied().max().unwrap_or(0)));
        }
        let mut patterns: Vec<_> = this.by_path.keys().filter(|path| path.contains("[]")).cloned().collect();
        patterns.sort_unstable();
        this.patterns = patterns;
        this
    }

    /// Returns the counted lists in whose place a value at a path of a message is.
    fn list_positions(&self, path: &str) -> Vec<ListPosition> {
        let position = |(index, (list, _)): (usize, &(String, u8))| {
            let list = list.strip_suffix("[]")?;
            let is_list = path == list || jsonl::path::has_positions(path) && jsonl::path::covers(list, path);
            let is_member = path.strip_prefix(list).is_some_and(|member| member.starts_with('.'));
            (is_list || is_member).then_some(ListPosition { index, is_member })
        };
        self.count_slots.iter().enumerate().filter_map(position).collect()
    }

    /// Returns the targets of the values at a path of a message.
    fn targets_at(&self, path: &str) -> Option<TextValueTarget> {
        let exact = self.by_path.get(path);
        if !jsonl::path::has_positions(path) {
            return exact.cloned();
        }
        let mut target = exact.cloned();
        for (i, pattern) in self.patterns.iter().enumerate() {
            if pattern == path || !jsonl::path::covers(pattern, path) {
                continue;
            }
            let id = u16::try_from(i + 1).ok().and_then(PatternId::new);
            let (all, covering) = (target.get_or_insert_default(), &self.by_path[pattern]);
            let with_pattern = |target: &SlotTarget| SlotTarget { pattern: id, ..*target };
            all.message.extend(covering.message.iter().map(with_pattern));
            all.members.extend(covering.members.iter().map(|(group, member)| (*group, with_pattern(member))));
            all.list_groups.extend(&covering.list_groups);
            all.outer_groups.extend(&covering.outer_groups);
            all.patterns.extend(id);
        }
        target
    }
}

/// A counted list in whose place there is another value.
#[derive(Clone, Copy, Debug)]
struct ListPosition {
    /// Index of the list in [`TextFieldSelection::count_slots`].
    index: usize,
    /// The value is a member of the object that is in place of the list.
    is_member: bool,
}

impl TextFieldTable {
    fn read_values(&mut self, wants: &TextFieldSelection, leaves: &PathValues) {
        if self.generation != leaves.generation() {
            self.generation = leaves.generation();
            self.paths.clear();
            self.list_positions.clear();
        }
        self.message_slots.clear();
        self.message_slots.resize(wants.slots, None);
        let path_values = leaves.as_slice();
        let value_for = |first| TextFieldValue {
            first_value: first,
            value_end: 0,
            reading: TextValueConversion::AsItIs,
            pattern: None,
        };
        for slot in &wants.kind {
            self.message_slots[usize::from(*slot)] = Some(value_for(KIND));
        }
        for slot in &wants.mail_text_slots {
            self.message_slots[usize::from(*slot)] = Some(value_for(WORDS));
        }
        while self.paths.len() < leaves.path_count() {
            let path = leaves.path(self.paths.len() as u32);
            self.paths.push(wants.targets_at(path));
            self.list_positions.push(wants.list_positions(path));
        }
        for (index, (list, slot)) in wants.count_slots.iter().enumerate() {
            let count = self.count_entries(index, list, leaves);
            self.message_slots[usize::from(*slot)] =
                count.map(|to| TextFieldValue { value_end: to, ..value_for(ENTRIES) });
        }
        for (i, leaf) in path_values.iter().enumerate() {
            let Some(want) = &self.paths[leaf.path as usize] else { continue };
            if leaves.text(leaf).is_empty() {
                continue;
            }
            for target in &want.message {
                let slot = &mut self.message_slots[usize::from(target.slot)];
                if slot.is_none() {
                    *slot = Some(target.value(i as u32, path_values.len() as u32));
                }
            }
        }
    }

    /// Returns the number of entries of a counted list. `None` if the message has no such list, or has a value other
    /// than `null` in its place.
    fn count_entries(&self, index: usize, list: &str, leaves: &PathValues) -> Option<u32> {
        let count = leaves.entries().iter().filter(|entry| leaves.path(entry.path) == list).count();
        let mut is_list = count > 0;
        for value in leaves.as_slice() {
            for position in self.list_positions[value.path as usize].iter().filter(|p| p.index == index) {
                match value.kind {
                    text::PathValueKind::EmptyList if !position.is_member => is_list = true,
                    text::PathValueKind::Nothing if !position.is_member => {}
                    _ => return None,
                }
            }
        }
        is_list.then_some(count as u32)
    }

    /// Returns the targets of a path by its number.
    fn targets_of_path(&self, path: u32) -> Option<&TextValueTarget> {
        self.paths.get(path as usize)?.as_ref()
    }
}

/// Returns the innermost list around that of a group of whose entries `member` is a value, if it is no value of the group's
/// own entries.
fn outer_list<'d>(delimiter: &'d str, member: &str) -> Option<&'d str> {
    if member.starts_with(delimiter) {
        return None;
    }
    let lists = delimiter.match_indices("[]").map(|(i, _)| &delimiter[..i + 2]);
    lists.filter(|list| *list != delimiter && member.starts_with(*list)).last()
}

/// The current message.
struct TextMessageView<'m> {
    raw: &'m [u8],
    kind: &'static str,
    leaves: &'m PathValues,
    field_selection: &'m TextFieldSelection,
    table: &'m TextFieldTable,
}

impl TextMessageView<'_> {
    fn value_str(&self, field: TextFieldValue) -> &str {
        match self.leaves.as_slice().get(field.first_value as usize) {
            Some(leaf) => self.leaves.text(leaf),
            None => self.kind,
        }
    }

    /// Writes subject, text, markup without a plain alternative, and each forwarded message under its head, with
    /// blank lines between.
    fn write_words(&self, out: &mut Vec<u8>) {
        if !self.field_selection.word_paths.is_empty() {
            return self.field_selection.word_paths.append_words(self.leaves, out);
        }
        let get = |name: &str| self.leaves.iter().find(|(path, _)| *path == name).map(|(_, text)| text);
        let parts = [get("subject"), get("text"), get("html")];
        parts.into_iter().flatten().for_each(|part| append_paragraph(out, part));
        let forwarded = self.leaves.entries().iter().filter(|e| self.leaves.path(e.path) == "forwarded[]");
        for entry in forwarded {
            let mut head = String::new();
            let values = self.leaves.as_slice().get(entry.first_value as usize..entry.value_end as usize);
            for leaf in values.unwrap_or_default() {
                let text = self.leaves.text(leaf);
                let name = match self.leaves.path(leaf.path) {
                    "forwarded[].from" => "From",
                    "forwarded[].date" => "Date",
                    "forwarded[].subject" => "Subject",
                    _ => {
                        append_paragraph(out, &std::mem::take(&mut head));
                        append_paragraph(out, text);
                        continue;
                    }
                };
                head.push_str(if head.is_empty() { "" } else { "\n" });
                // Writing to a String cannot fail.
                _ = write!(head, "{name}: {text}");
            }
            append_paragraph(out, &head);
        }
    }

    /// Iterates over all values of the path that are not empty.
    fn values_of_path(&self, field: TextFieldValue) -> impl Iterator<Item = &str> {
        let leaves = self
            .leaves
            .as_slice()
            .get(field.first_value as usize..field.value_end as usize)
            .unwrap_or_default();
        let path = leaves.first().map_or(0, |leaf| leaf.path);
        let is_one = move |leaf: &&text::PathValue| match field.pattern {
            None => leaf.path == path,
            Some(pattern) => {
                self.table.targets_of_path(leaf.path).is_some_and(|t| t.patterns.contains(&pattern))
            }
        };
        leaves.iter().filter(is_one).map(|leaf| self.leaves.text(leaf)).filter(|text| !text.is_empty())
    }

    /// Fills the slots of a group with the values of an entry, where they have none yet.
    fn fill_entry(&self, group: usize, values: text::ListEntry, entry: &mut [Option<TextFieldValue>]) {
        for i in values.first_value..values.value_end {
            let leaf = &self.leaves.as_slice()[i as usize];
            let Some(want) = self.table.targets_of_path(leaf.path) else { continue };
            if self.leaves.text(leaf).is_empty() {
                continue;
            }
            for (_, target) in want.members.iter().filter(|(g, _)| *g == group) {
                let slot = &mut entry[usize::from(target.slot)];
                if slot.is_none() {
                    *slot = Some(target.value(i, values.value_end));
                }
            }
        }
    }

    /// Returns the index of the group's first entry among `entries[from..]`. Notes the values of the entries around it
    /// on the way.
    fn next_in_lists(&self, group: usize, from: usize, outer: &OuterMembers) -> Option<usize> {
        let mut values = outer.values.borrow_mut();
        if from == 0 {
            values.clear();
            values.resize(outer.slots.len(), None);
        }
        for (index, entry) in self.leaves.entries().iter().enumerate().skip(from) {
            let Some(target) = self.table.targets_of_path(entry.path) else { continue };
            if target.outer_groups.contains(&group) {
                let path = self.leaves.path(entry.path);
                let mut entry_slots = vec![None; self.field_selection.entry_slot_counts[group]];
                self.fill_entry(group, *entry, &mut entry_slots);
                for ((list, slot), value) in outer.slots.iter().zip(values.iter_mut()) {
                    if jsonl::path::covers(list, path) {
                        *value = entry_slots[usize::from(*slot)];
                    }
                }
            }
            if target.list_groups.contains(&group) {
                return Some(index);
            }
        }
        None
    }
}

/// Puts a text after a blank line, if there is any.
fn append_paragraph(out: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.extend_from_slice(b"\n\n");
    }
    out.extend_from_slice(text.as_bytes());
}

impl ParsedMessage for TextMessageView<'_> {
    type Ref = TextFieldValue;
    const FIELD: &'static str = "path";
    const TYPE: &'static str = "kind";
    const TIME: &'static str = "time (ISO 8601, RFC 5322, or a count since 1970 with its unit: path@s, @ms, @us, @ns; see docs/time-forms.md)";

    fn charset_note(&self) -> Option<&str> {
        self.leaves.charset_note()
    }

    fn raw(&self) -> &[u8] {
        self.raw
    }

    fn slot(&self, slot: u8) -> Option<TextFieldValue> {
        self.table.message_slots[usize::from(slot)]
    }

    fn text<'v>(&'v self, field: TextFieldValue, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        if field.first_value == WORDS {
            scratch.clear();
            self.write_words(scratch);
            return scratch;
        }
        if field.first_value == ENTRIES {
            scratch.clear();
            // Writing to a Vec cannot fail.
            _ = write!(scratch, "{}", field.value_end);
            return scratch;
        }
        let text = self.value_str(field);
        let number = self
            .leaves
            .as_slice()
            .get(field.first_value as usize)
            .is_some_and(|l| l.kind == text::PathValueKind::Number);
        match number.then(|| time::without_exponent(text)).flatten() {
            Some(decimal) => {
                scratch.clear();
                scratch.extend_from_slice(decimal.as_bytes());
                scratch
            }
            None => text.as_bytes(),
        }
    }

    fn describe_flaw(&self, field: TextFieldValue) -> Option<String> {
        let mut scratch = Vec::new();
        let value = self.text(field, &mut scratch);
        let leaf = self.leaves.as_slice().get(field.first_value as usize);
        let is_number = leaf.is_some_and(|leaf| leaf.kind == text::PathValueKind::Number);
        if is_number && value.iter().any(|b| matches!(b, b'e' | b'E')) {
            return Some("its exponent is beyond 400".to_owned());
        }
        // A number of another field has no flaw as a time.
        let is_date =
            matches!(value, [a, b, c, d, b'-', ..] if [a, b, c, d].iter().all(|b| b.is_ascii_digit()));
        if field.reading == TextValueConversion::AsItIs && !is_date {
            return None;
        }
        self.field_selection
            .time_paths
            .parse_nanos(value, field.reading)
            .err()
            .map(|reason| format!("it {reason}"))
    }

    fn time(&self, field: TextFieldValue) -> Option<UnixNanos> {
        let mut scratch = Vec::new();
        let text = self.text(field, &mut scratch);
        self.field_selection.time_paths.parse_nanos(text, field.reading).ok().map(UnixNanos)
    }

    fn set_field(
        &self,
        field: TextFieldValue,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if self.leaves.charset_note().is_some()
            && !is_free_text(spec.field)
            && !self.text(field, scratch).is_ascii()
        {
            return Err(Refusal::NotUtf8);
        }
        match spec.slot {
            FieldLayout::Syms { .. } => {
                event.set_names(spec, self.values_of_path(field).map(str::as_bytes), names)
            }
            FieldLayout::Json => {
                let json_values: Vec<_> =
                    self.values_of_path(field).map(|text| json_string(text.as_bytes())).collect();
                event.set(spec, EventValue::Json(&format!("[{}]", json_values.join(","))))
            }
            _ => {
                let text = self.text(field, scratch);
                let set = event.set_text(spec, text, names);
                // A number in quotes may have an exponent, too.
                if set == Err(Refusal::BadDecimal)
                    && let Some(Ok((mantissa, exponent))) = scientific(spec, text)
                    && let Some(set) = set_number(event, spec, mantissa, exponent)
                {
                    return set;
                }
                set
            }
        }
    }

    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<TextFieldValue>],
    ) -> Result<bool, MessageRefusal> {
        let outer = &self.field_selection.outer_members[group];
        let index = if outer.slots.is_empty() {
            let later_entries = self.leaves.entries().get(cursor.position..).unwrap_or_default();
            let is_of_group = |e: &text::ListEntry| {
                self.table.targets_of_path(e.path).is_some_and(|target| target.list_groups.contains(&group))
            };
            later_entries.iter().position(is_of_group).map(|n| cursor.position + n)
        } else {
            self.next_in_lists(group, cursor.position, outer)
        };
        let Some(index) = index else { return Ok(false) };
        self.fill_entry(group, self.leaves.entries()[index], entry);
        for ((_, slot), value) in outer.slots.iter().zip(outer.values.borrow().iter()) {
            entry[usize::from(*slot)] = *value;
        }
        *cursor = EntryCursor { position: index + 1, entry_count: cursor.entry_count + 1 };
        Ok(true)
    }

    fn visit_unlisted(
        &self,
        groups: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        if !self.field_selection.keeps_unlisted {
            return Ok(());
        }
        let is_of_groups = |entry: &&text::ListEntry| {
            let target = self.table.targets_of_path(entry.path);
            target.is_some_and(|target| target.list_groups.iter().any(|group| groups.contains(group)))
        };
        let mut entries: Vec<_> = match groups {
            [] => Vec::new(),
            _ => self
                .leaves
                .entries()
                .iter()
                .filter(is_of_groups)
                .map(|e| e.first_value..e.value_end)
                .collect(),
        };
        entries.sort_unstable_by_key(|entry| entry.start);
        let value_count = self.leaves.as_slice().len() as u32;
        let (mut start, mut counts) = (0, FxHashMap::default());
        for entry in entries.into_iter().chain(std::iter::once(value_count..value_count)) {
            self.keep_values(start..entry.start, &mut counts, &mut keep)?;
            start = start.max(entry.end);
        }
        Ok(())
    }

    fn unlisted_in_entry(
        &self,
        step: EntryStep,
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let entry = self.leaves.entries().get(step.after.position.wrapping_sub(1));
        match entry.filter(|_| self.field_selection.keeps_unlisted) {
            Some(entry) => {
                self.keep_values(entry.first_value..entry.value_end, &mut FxHashMap::default(), &mut keep)
            }
            None => Ok(()),
        }
    }
}

impl TextMessageView<'_> {
    /// Keeps the unlisted ones of these values; `counts` has how many there were so far of each path.
    fn keep_values(
        &self,
        values: Range<u32>,
        counts: &mut FxHashMap<u32, u32>,
        keep: &mut impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let values = values.start as usize..values.end as usize;
        for leaf in self.leaves.as_slice().get(values).unwrap_or_default() {
            let text = self.leaves.text(leaf);
            let listed = self.table.targets_of_path(leaf.path).is_some();
            if listed || text.is_empty() {
                continue;
            }
            let count = counts.entry(leaf.path).or_default();
            *count += 1;
            let path = self.leaves.path(leaf.path);
            match count {
                1 => keep(path, text.as_bytes())?,
                n => keep(&format!("{path}#{n}"), text.as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Returns whether the first message of `head` has a value at each of `paths` and no value at any of `not`.
pub fn has_paths(format: TextFormat, head: &[u8], paths: &[String], not: &[&str]) -> bool {
    let (mut leaves, mut codec) = (PathValues::default(), (format.decoder)(FallbackCharset::default()));
    codec.inspect_head(&head[..head.len().min(text::HEAD_BYTES)]);
    let next_message = codec.next(head, 0, true, &mut leaves);
    let present: FxHashSet<&str> = leaves.iter().map(|(path, _)| path).collect();
    matches!(next_message, NextTextMessage::Message(_))
        && paths.iter().all(|path| present.contains(path.as_str()))
        && !not.iter().any(|path| present.contains(path))
}
