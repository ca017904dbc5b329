//! ISO 20022 messages for the mapper: found in their wrappings, what the mapping names noted in one pass.
//!
//! [`path`] documents how mappings name what is in a message. Values are the text of elements; `signed` amounts have
//! their sign. A time without an offset is read as UTC, a day is its midnight.
//!
//! **Entries.** An entry's values are its own, and those that precede it in the elements around it. They end where
//! the first entry of another group in it begins, or else with the entry. ISO 20022 puts headers first. The line of a
//! statement (`@entry`) has values from all of its element. [`totals`] says how sums are compared.
//!
//! **Large messages.** A message above 1 MiB is decoded in parts where its rule makes events of entries only. Each
//! part has as many entries as fit and counts as one message. Values from before the entries are carried to the next
//! part (at most 512 KiB, also from block to block). Elements that hold nothing but entries and their values
//! (`PmtInf`) are not carried once they are over. All others above that are refused. Within 1 MiB a message is all or
//! nothing.
//!
//! **Unlisted** fields are kept under their path, with `#2`, `#3`, … when they repeat.

mod bookings;
mod entry;
mod field_table;
mod path;
mod single_elements;
mod totals;
mod tree;

pub use path::IsoPathSyntax;

use crate::block::{Block, CarriedMessage};
use crate::error::Error;
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry};
use crate::mapping::{
    EntryCursor, Mapping, MappingExplainer, MappingPlan, MessageMapper, MessageOrigin, MessageRefusal,
    ParsedMessage, compile, is_free_text,
};
use entry::LineFault;
use field_table::{ElementRegisters, MESSAGE, NodeOccurrence, RepeatedElementFault};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use totals::NoteKind;
use unitape_codec::iso20022::{
    self, ElementCollector, ElementValueSpan, Iso20022Decoder, IsoFault, IsoFaultKind, NextIsoMessage, Span,
    value,
};
use unitape_model::event::EventValue;
use unitape_model::schema::{EventFieldSpec, FieldLayout};
use unitape_model::{Dictionary, EventBuilder, Refusal, UnixNanos};

/// Decodes blocks of ISO 20022 messages; one per worker and feed.
#[derive(Debug)]
pub struct IsoFeedDecoder {
    decoder: Iso20022Decoder<NodeOccurrence>,
    mapper: MessageMapper<IsoFieldValue>,
    element_registers: ElementRegisters,
    detail: String,
    /// The current message is a retry: the sums of its earlier parts are unknown.
    is_retry: bool,
    /// The head of a message with no earlier messages, and without the end of the elements around it.
    blank: Arc<[u8]>,
}

/// A value that was found.
#[derive(Clone, Copy, Debug)]
struct IsoFieldValue {
    value: ElementValueSpan,
    kind: IsoFieldKind,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsoFieldKind {
    /// Unchanged text.
    Text,
    /// An amount, and whether it is less than zero.
    Signed(bool),
    /// An amount whose sign should be beside it, and is not.
    WithoutSign,
    /// The line of a statement: where its values begin.
    Line(u32),
    /// A number that was counted.
    Count(u32),
    /// What is to say about the sums around the entry of this index.
    Note(NoteKind, u32),
}

impl IsoFieldValue {
    fn from_count(count: u64) -> Self {
        Self::from_kind(IsoFieldKind::Count(u32::try_from(count).unwrap_or(u32::MAX)))
    }

    /// Makes a value that is not in the message.
    fn from_kind(kind: IsoFieldKind) -> Self {
        Self { value: ElementValueSpan::default(), kind }
    }

    /// Returns the value as text: from the message, or a counted number.
    fn text(&self, buf: &[u8]) -> Vec<u8> {
        match self.kind {
            IsoFieldKind::Count(count) => count.to_string().into_bytes(),
            _ => self.value.text(buf, &mut Vec::new()).to_vec(),
        }
    }
}

/// ISO 20022. A message larger than its bound continues from block to block, and those blocks are decoded in order.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "iso20022",
    load: |mapping| mapping.needs_rules(),
    build: |_| Ok(Arc::new(IsoFormat)),
};

#[derive(Debug)]
struct IsoFormat;

impl ByteFormat for IsoFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(IsoFeedDecoder::new(mapping)?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        Iso20022Decoder::<()>::default().cut(buf)
    }
}

impl IsoFeedDecoder {
    /// Makes a decoder for `mapping`.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn new(mapping: &Mapping) -> Result<Self, Error> {
        let (plan, places) = compile(mapping, &IsoPathSyntax)?;
        let mapping_error = |reason| Error::Mapping { origin: mapping.origin.clone(), reason };
        let mut tree = tree::ElementTree::new(&places, plan.slot_count).map_err(mapping_error)?;
        tree.part(&parting_groups(&plan, places.groups.len()), plan.slot_count);
        Ok(Self {
            decoder: Iso20022Decoder::default().with_fallback(plan.fallback),
            element_registers: ElementRegisters::new(tree),
            mapper: MessageMapper::new(plan),
            detail: String::new(),
            is_retry: false,
            blank: b" "[..].into(),
        })
    }

    /// Retries a quarantined message, or a part of one, with its context as the block's head.
    #[cold]
    fn retry_message(&mut self, block: &mut Block, bytes: &[u8], source: u32, dictionary: &Dictionary) {
        block.decoded = bytes.len();
        self.element_registers.message_totals.carried_totals.clear();
        // The surrounding elements are still open at its end; the decoder sees the next message begin there.
        let followed = [bytes, b"<AppHdr/>"].concat();
        for bytes in [bytes, &followed] {
            self.decoder.set_context(&block.head);
            match self.decoder.next(bytes, 0, true, &mut self.element_registers) {
                NextIsoMessage::Message(message) if message.span.end == block.decoded => {
                    self.message(block, bytes, &message, source, dictionary);
                    return;
                }
                NextIsoMessage::Bad { span, fault } if bytes.len() > block.decoded => {
                    let message_end = span.end.min(block.decoded);
                    self.quarantine_message(block, bytes, Span { end: message_end, ..span }, fault, source);
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn message(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        message: &iso20022::FramedIsoMessage,
        source: u32,
        dictionary: &Dictionary,
    ) {
        if let Some(repeat) = self.element_registers.repeated {
            let kind = message.kind.name.slice(self.decoder.text(message, bytes));
            if let Some(fault) = Self::repeat_fault(repeat, kind) {
                return self.quarantine_message(block, bytes, message.span, fault, source);
            }
        }
        self.element_registers.set_message_slots(message);
        let view = IsoMessageView {
            raw: message.span.slice(bytes),
            text: self.decoder.text(message, bytes),
            all: self.decoder.with_context(message, bytes),
            note: self.decoder.charset_note(message),
            element_registers: &self.element_registers,
        };
        let origin = MessageOrigin { source, offset: block.base + message.span.start as u64 };
        let totals_differ = self.element_registers.message_totals.differs();
        if message.is_part && self.element_registers.entries.is_empty() {
            // The rest of a message in parts, after its last entry.
            if totals_differ || self.is_retry && self.element_registers.message_totals.has_begun() {
                let detail = match totals_differ {
                    true => self.element_registers.message_totals.all_differences(),
                    false => "no entry is left that could say what the sum differs from".to_owned(),
                };
                block.quarantine(source, origin.offset, view.raw, "sum_differs", &detail);
            } else {
                block.end_ignored();
            }
            return;
        }
        self.mapper.message(block, &view, origin, dictionary);
        block.has_findings |= totals_differ;
    }

    /// Makes the fault of an element that occurs twice and may occur once: nobody knows which of them counts. The
    /// table covers payments and statements.
    #[cold]
    fn repeat_fault(repeat: RepeatedElementFault, kind: &[u8]) -> Option<IsoFault> {
        let listed = [&b"pacs."[..], b"pain.", b"camt."].iter().any(|area| kind.starts_with(area));
        (listed || repeat.name == MESSAGE)
            .then_some(IsoFault { kind: IsoFaultKind::Twice(repeat.name), offset: 0 })
    }

    #[cold]
    fn quarantine_message(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        span: Span,
        fault: IsoFault,
        source: u32,
    ) {
        self.element_registers.message_totals.carried_totals.clear();
        self.detail.clear();
        // Writing to a String cannot fail.
        _ = write!(self.detail, "{fault}");
        let (offset, code) = (block.base + span.start as u64, fault.code().as_str());
        block.quarantine(source, offset, span.slice(bytes), code, &self.detail);
    }
}

impl FormatDecoder for IsoFeedDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        if !block.head.is_empty() {
            self.is_retry = true;
            self.retry_message(block, &bytes, source, dictionary);
            self.is_retry = false;
            block.bytes = bytes;
            return;
        }
        let CarriedMessage { context, mut start, totals } =
            block.carried.take().map(|c| *c).unwrap_or_default();
        self.element_registers.message_totals.carried_totals = totals;
        self.decoder.set_context(&context);
        let mut head: Arc<[u8]> = context.into();
        let mut offset = 0;
        loop {
            let has_no_context = head.is_empty();
            let span = match self.decoder.next(&bytes, offset, block.eof, &mut self.element_registers) {
                NextIsoMessage::Message(message) => {
                    let in_context = !self.decoder.context().is_empty();
                    block.head = if has_no_context && in_context { self.blank.clone() } else { head.clone() };
                    self.message(block, &bytes, &message, source, dictionary);
                    message.span
                }
                NextIsoMessage::Bad { span, fault } => {
                    block.head = head.clone();
                    self.quarantine_message(block, &bytes, span, fault, source);
                    span
                }
                NextIsoMessage::Incomplete { from, .. } => {
                    block.decoded = from;
                    break;
                }
                NextIsoMessage::End => {
                    block.decoded = bytes.len();
                    break;
                }
            };
            if has_no_context {
                start = block.base + span.start as u64;
            }
            let context = self.decoder.context();
            // A restart begins at a mark, and knows nothing of what came before it.
            if context.is_empty() {
                block.mark_crossed_progress(start, block.base + span.end as u64);
            }
            if *context != *head {
                head = context.into();
            }
            offset = span.end;
        }
        let context = self.decoder.context();
        if !context.is_empty() && !block.eof {
            let totals = self.element_registers.message_totals.carried_totals.clone();
            block.leaves = Some(Box::new(CarriedMessage { context: context.to_vec(), start, totals }));
        }
        block.head = Arc::default();
        block.bytes = bytes;
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }
}

/// Returns for each group whether messages may be split after its entries: all events must come from entries.
fn parting_groups(plan: &MappingPlan, groups: usize) -> Vec<bool> {
    let mut parts = vec![true; groups];
    let mut used_groups = vec![false; groups];
    for rule in &plan.rules {
        let only_entries = rule.events.iter().all(|e| e.each.is_some()) && rule.pick_groups.is_empty();
        for group in rule.events.iter().filter_map(|e| e.each).chain(rule.pick_groups.iter().copied()) {
            used_groups[group] = true;
            parts[group] &= only_entries;
        }
    }
    parts.iter().zip(used_groups).map(|(parts, used)| *parts && used).collect()
}

impl ElementRegisters {
    /// Fills the slots of values that are not elements.
    fn set_message_slots(&mut self, message: &iso20022::FramedIsoMessage) {
        if message.goes_on {
            // Entries after the place where it is parted belong to the next part.
            self.entries.truncate(self.entries_parted);
        }
        self.message_totals.carry_over(message.goes_on);
        if message.goes_on {
            self.settle_parted();
        }
        let kind = message.kind;
        let value_of = |span: Span| {
            let value = ElementValueSpan {
                start: span.start as u32,
                end: span.end as u32,
                ..ElementValueSpan::default()
            };
            (!span.is_empty()).then_some(IsoFieldValue { value, kind: IsoFieldKind::Text })
        };
        // Business area and number: `pacs.008`.
        let short = Span { end: kind.name.end.min(kind.name.start + 8), ..kind.name };
        let slots = [
            (self.element_tree.message, short),
            (self.element_tree.kind, kind.name),
            (self.element_tree.variant, kind.variant),
        ];
        for (slot, span) in slots {
            if slot != 0 {
                self.registers[usize::from(slot)] = value_of(span);
            }
        }
    }
}

/// The current message.
struct IsoMessageView<'m> {
    raw: &'m [u8],
    /// The text that contains the values.
    text: &'m [u8],
    /// The message with its context.
    all: &'m [u8],
    /// What was guessed of its set of characters.
    note: Option<&'m str>,
    element_registers: &'m ElementRegisters,
}

impl IsoMessageView<'_> {
    /// Returns the values of the statement line that begins at `start`.
    fn line_values(&self, start: u32) -> &[Option<IsoFieldValue>] {
        &self.element_registers.register_values[start as usize..][..tree::LINE.len()]
    }

    fn write_line(&self, start: u32, out: &mut Vec<u8>) -> Result<(), LineFault> {
        out.clear();
        entry::append_line(self.line_values(start), self.text, out)
    }
}

impl ParsedMessage for IsoMessageView<'_> {
    type Ref = IsoFieldValue;
    const FIELD: &'static str = "path";
    const TYPE: &'static str = "message";
    const TIME: &'static str = "day or time of XML";

    fn charset_note(&self) -> Option<&str> {
        self.note
    }

    fn raw(&self) -> &[u8] {
        self.raw
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<IsoFieldValue> {
        self.element_registers.registers[usize::from(slot)]
    }

    #[inline]
    fn text<'v>(&'v self, field: IsoFieldValue, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        match field.kind {
            IsoFieldKind::Text | IsoFieldKind::WithoutSign => field.value.text(self.text, scratch),
            IsoFieldKind::Signed(less) => {
                let mut cooked = Vec::new();
                let text = value::decimal(field.value.text(self.text, &mut cooked));
                scratch.clear();
                // Nothing is not less than nothing.
                if less && text.iter().any(|b| (b'1'..=b'9').contains(b)) {
                    scratch.push(b'-');
                }
                scratch.extend_from_slice(text);
                scratch
            }
            IsoFieldKind::Count(_) => {
                *scratch = field.text(self.text);
                scratch
            }
            IsoFieldKind::Note(kind, entry) => {
                *scratch = self.element_registers.message_totals.text(kind, entry as usize).into_bytes();
                scratch
            }
            // For people: the element at fault, because the line cannot be written as JSON.
            IsoFieldKind::Line(start) => match self.write_line(start, scratch) {
                Ok(()) => scratch,
                Err(fault) => self.line_values(start)[fault.element]
                    .map_or(&[], |element_value| element_value.value.raw(self.text)),
            },
        }
    }

    #[inline]
    fn is_of_form(&self, field: IsoFieldValue) -> bool {
        field.kind != IsoFieldKind::WithoutSign
    }

    fn is_dispensable(&self, _: IsoFieldValue) -> bool {
        true
    }

    fn describe_flaw(&self, field: IsoFieldValue) -> Option<String> {
        match field.kind {
            IsoFieldKind::WithoutSign => Some("CdtDbtInd beside it is neither CRDT nor DBIT".to_owned()),
            IsoFieldKind::Line(start) => {
                let fault = self.write_line(start, &mut Vec::new()).err()?;
                Some(fault.text(self.line_values(start)[fault.element].is_some()))
            }
            _ => None,
        }
    }

    fn time(&self, field: IsoFieldValue) -> Option<UnixNanos> {
        value::time(field.value.text(self.text, &mut Vec::new())).map(UnixNanos)
    }

    #[inline]
    fn set_field(
        &self,
        field: IsoFieldValue,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut crate::block::BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if self.note.is_some() && !is_free_text(spec.field) && !self.text(field, scratch).is_ascii() {
            return Err(Refusal::NotUtf8);
        }
        match (field.kind, spec.slot) {
            (IsoFieldKind::Line(start), FieldLayout::Json) => {
                self.write_line(start, scratch).map_err(|fault| fault.refusal)?;
                let json = std::str::from_utf8(scratch).map_err(|_| Refusal::NotUtf8)?;
                event.set(spec, EventValue::Json(json))
            }
            (IsoFieldKind::Line(_), _) => Err(Refusal::WrongSort),
            (IsoFieldKind::WithoutSign, _) => Err(Refusal::BadValue),
            (
                _,
                FieldLayout::Amount { .. }
                | FieldLayout::Price { .. }
                | FieldLayout::Decimal { .. }
                | FieldLayout::DecimalNarrow { .. }
                | FieldLayout::DecimalExt,
            ) => event.set_text(spec, value::decimal(self.text(field, scratch)), names),
            _ => event.set_text(spec, self.text(field, scratch), names),
        }
    }

    #[inline]
    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<IsoFieldValue>],
    ) -> Result<bool, MessageRefusal> {
        let later_entries = self.element_registers.entries.get(cursor.position..).unwrap_or_default();
        let Some(n) = later_entries.iter().position(|(g, _)| usize::from(*g) == group) else {
            return Ok(false);
        };
        let plan = &self.element_registers.element_tree.group_plans[group];
        let first_value = later_entries[n].1 as usize;
        for ((slot, _), member_value) in
            plan.members.iter().zip(&self.element_registers.register_values[first_value..])
        {
            entry[usize::from(*slot)] = *member_value;
        }
        if let Some((slot, _)) = plan.line {
            let line = (first_value + plan.members.len()) as u32;
            entry[usize::from(slot)] =
                Some(IsoFieldValue { value: ElementValueSpan::default(), kind: IsoFieldKind::Line(line) });
        }
        let index = cursor.position + n;
        for (slot, kind) in [(plan.differs, NoteKind::Differs), (plan.unchecked, NoteKind::Unchecked)] {
            if slot != 0 && self.element_registers.message_totals.has(kind, index) {
                let note = IsoFieldKind::Note(kind, index as u32);
                entry[usize::from(slot)] = Some(IsoFieldValue::from_kind(note));
            }
        }
        *cursor = EntryCursor { position: cursor.position + n + 1, entry_count: cursor.entry_count + 1 };
        Ok(true)
    }

    fn visit_unlisted(
        &self,
        _: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let (mut leaves, mut scratch) = (ElementCollector::default(), Vec::new());
        // Read once more, for the paths; what it comes to is known.
        Iso20022Decoder::default().next(self.all, 0, true, &mut leaves);
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (path, value) in leaves.iter() {
            let path = String::from_utf8_lossy(path);
            if self.element_registers.element_tree.listed_paths.contains(&*path) || value.is_empty() {
                continue;
            }
            let count = counts.entry(path.clone().into_owned()).or_default();
            *count += 1;
            let name = if *count > 1 { format!("{path}#{count}") } else { path.into_owned() };
            keep(&name, value.text(self.all, &mut scratch))?;
        }
        Ok(())
    }
}
