//! SWIFT MT messages for the mapper: framed, the fields that the mapping names noted in one pass.
//!
//! [`path`] documents how mappings name fields. Values are as `decode swift` shows them: amounts with a point, days
//! as `2019-04-25`, lines joined by line ends; `signed` amounts have their sign.
//!
//! **Event time** (`time`), UTC, is the first of these that the message has:
//!
//! 1. the moment it was made: `13D` (with its distance to UTC), `98C` or `98A` with the qualifier `PREP`;
//! 2. for statements the day of the closing balance, `62a`, or else of the opening one, `60a`;
//! 3. the output day and time of block 2. The network writes the receiver's local time and does not say
//!    which; it is taken as UTC;
//! 4. the value date, `32A`, `32C` or `32D`; the day of execution, `30`; the settlement day, `98a:SETT` or
//!    `98a:ESET`; the day of the deal, `98a:TRAD` or `30T`; that of a statement, `98a:STAT`; that of the first line, `61`;
//! 5. when the network acknowledged it: `177` of the acknowledgement in front, taken as UTC.
//!
//! Days are their midnight. A value that is no day is an error and is not skipped.
//!
//! **A value that is not of its tag's form** is refused where the rule asks for a component of it; whole
//! values and fields that nothing names may be of any form. **Unlisted** fields are kept under their tag, with
//! the qualifier if they have one (`22F:SETR`), and with `#2`, `#3`, … when they repeat. A field is listed where a rule
//! for the message's type names it and took its value: what rules for other types name, and what comes again, is not.

mod lines;
mod path;
mod selection;
mod sequences;
mod time;
mod totals;
mod unlisted;
mod values;

pub use path::SwiftDialect;

use crate::block::Block;
use crate::error::Error;
use crate::formats::block_items::decode_items;
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry};
use crate::mapping::{
    EntryCursor, Mapping, MappingExplainer, MappingPlan, MessageMapper, MessageRefusal, ParsedMessage,
    PathSlots, compile,
};
use selection::{SwiftFieldSelection, SwiftFieldSelector, SwiftSequenceContext, option_bit, qualifier_word};
use sequences::SwiftSequenceTracker;
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use time::SwiftTimeCandidates;
use totals::SwiftSumNotes;
use unitape_codec::charset::FallbackCharset;
use unitape_codec::swift_mt::parts::{self, SubfieldFormat, SwiftComponents};
use unitape_codec::swift_mt::{
    Span, SwiftField, SwiftFieldTokenizer, SwiftFramer, SwiftMessageType, SwiftTag, entries, header,
    sub_blocks,
};
use unitape_model::event::EventValue;
use unitape_model::schema::{EventFieldSpec, FieldLayout};
use unitape_model::{Dictionary, EventBuilder, Refusal, UnixNanos};
use unlisted::{name_key, number_repeats, push_lossy, qualifier};
use values::{SwiftFieldValue, SwiftValueKind};

/// Decodes blocks of SWIFT messages; one per worker and feed.
#[derive(Debug)]
pub struct SwiftDecoder {
    framer: SwiftFramer,
    mapper: MessageMapper<ValueIndex>,
    selections: SwiftSelectionTable,
    fields: SwiftFieldTokenizer,
    table: SwiftFieldTable,
}

/// Index of a value found and one more.
type ValueIndex = NonZeroU32;

/// The values found in the current message.
#[derive(Debug, Default)]
struct SwiftFieldTable {
    field_values: Vec<SwiftFieldValue>,
    /// The value in each slot of the message.
    message_slots: Vec<Option<ValueIndex>>,
    /// The slots that were asked of a field.
    requested_slots: [u64; 4],
    /// Values of group entries, in order.
    group_values: Vec<SwiftGroupValue>,
    /// Fields that nothing names and that are kept: a number for the name, the token, and how often the
    /// name was there before.
    unlisted_fields: Vec<(u64, u32, u32)>,
    components: SwiftComponents,
    /// The last field of each group's current entry, and which of its slots have been seen.
    open_entries: Vec<(Option<u32>, [u64; 4])>,
    /// The sequences open, innermost last.
    sequences: Vec<Span>,
    kind: String,
    /// What is to say about the sum of its transactions.
    sum_notes: SwiftSumNotes,
    /// For names and values of unlisted fields.
    texts: RefCell<(String, Vec<u8>)>,
}

/// The fields asked for, by the number of the type.
#[derive(Debug)]
struct SwiftSelectionTable {
    /// The selections for types that have no rules of their own: for fields without a number, then for the others.
    default_selections: Vec<SwiftFieldSelection>,
    index_by_type: Box<[u16; 1000]>,
}

impl SwiftSelectionTable {
    fn new(plan: &MappingPlan, places: &PathSlots<path::SwiftPath>) -> Self {
        let mut usage = plan.slot_usage(b"");
        let mut selections = vec![SwiftFieldSelection::new(places, &usage)];
        plan.message_types().for_each(|name| usage.add(&plan.slot_usage(name)));
        selections.push(SwiftFieldSelection::new(places, &usage));
        let mut index_by_type = Box::new([0; 1000]);
        for name in plan.message_types() {
            if let [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] = name {
                let number = name.iter().fold(0, |n, digit| n * 10 + usize::from(digit - b'0'));
                index_by_type[number] = selections.len() as u16;
                selections.push(SwiftFieldSelection::new(places, &plan.slot_usage(name)));
            }
        }
        Self { default_selections: selections, index_by_type }
    }

    #[inline]
    fn for_type(&self, kind: SwiftMessageType) -> &SwiftFieldSelection {
        match kind {
            SwiftMessageType::Mt(number) => {
                &self.default_selections
                    [usize::from(self.index_by_type.get(usize::from(number)).copied().unwrap_or(0))]
            }
            _ => &self.default_selections[1],
        }
    }
}

/// A value of a group entry.
#[derive(Clone, Copy, Debug)]
struct SwiftGroupValue {
    group_index: u8,
    /// It begins an entry.
    begins_entry: bool,
    slot: u8,
    token: u32,
    value_number: Option<ValueIndex>,
}

/// SWIFT MT.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "swift",
    load: |mapping| mapping.needs_rules(),
    build: |_| Ok(Arc::new(SwiftFormat)),
};

#[derive(Debug)]
struct SwiftFormat;

impl ByteFormat for SwiftFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(SwiftDecoder::new(SwiftFramer::default(), mapping)?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        SwiftFramer::default().cut(buf)
    }
}

impl SwiftDecoder {
    /// Makes a decoder for messages of `framer` by `mapping`.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn new(framer: SwiftFramer, mapping: &Mapping) -> Result<Self, Error> {
        let (plan, places) = compile(mapping, &SwiftDialect)?;
        let table =
            SwiftFieldTable { message_slots: vec![None; plan.slot_count], ..SwiftFieldTable::default() };
        Ok(Self {
            framer,
            selections: SwiftSelectionTable::new(&plan, &places),
            mapper: MessageMapper::new(plan),
            fields: SwiftFieldTokenizer::new(),
            table,
        })
    }
}

impl FormatDecoder for SwiftDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        decode_items(block, source, |block, bytes, offset| {
            self.fields.frame(&self.framer, bytes, offset, block.eof).map(|message| {
                let text = message.text().slice(bytes);
                let tokens = self.fields.as_slice();
                self.table.read_fields(&self.selections, &message, bytes, tokens);
                let view = SwiftMessageView {
                    message: &message,
                    buf: bytes,
                    text,
                    tokens,
                    table: &self.table,
                    fallback: self.mapper.plan().fallback,
                    was_guessed: Cell::new(false),
                };
                self.mapper.message(block, &view, block.origin(source, message.span), dictionary);
                block.has_findings |= !self.table.sum_notes.differs.is_empty();
                message.span
            })
        });
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }
}

impl SwiftFieldTable {
    /// Notes all fields that the mapping names, and the unlisted fields.
    fn read_fields(
        &mut self,
        wants: &SwiftSelectionTable,
        message: &unitape_codec::swift_mt::FramedSwiftMessage,
        buf: &[u8],
        tokens: &[SwiftField],
    ) {
        let kind = SwiftMessageType::from_message(message, buf, tokens);
        let wants = wants.for_type(kind);
        self.field_values.clear();
        self.message_slots.fill(None);
        self.requested_slots = [0; 4];
        self.group_values.clear();
        self.unlisted_fields.clear();
        self.sequences.clear();
        self.open_entries.clear();
        self.open_entries.resize(wants.entry_bounds.len(), (None, [0; 4]));
        let variant = self.note_block_values(wants, message, buf, kind);
        self.sum_notes = SwiftSumNotes::default();
        let mut letters =
            SwiftSequenceTracker::for_type(kind, variant.is_some_and(|span| span.slice(buf) == b"COV"));
        let base = message.text().start;
        let text = message.text().slice(buf);
        // Blocks in block 4 are no fields.
        let has_no_blocks = !text.trim_ascii_start().starts_with(b"{");
        if wants.sum_differs | wants.sum_unchecked != 0 && has_no_blocks {
            self.sum_notes = totals::compare_sums(letters, text, tokens);
            for (slot, note) in [
                (wants.sum_differs, &self.sum_notes.differs),
                (wants.sum_unchecked, &self.sum_notes.unchecked_sums),
            ] {
                if slot != 0 && !note.is_empty() {
                    let note_value = SwiftFieldValue::from_span(Span::default(), SwiftValueKind::SumNote);
                    self.message_slots[usize::from(slot)] = Some(push(&mut self.field_values, note_value));
                }
            }
        }
        let mut in_entry = false;
        let mut time = SwiftTimeCandidates::default();
        // Transactions begun, and whether the first field 72 is still to come.
        let (mut transactions, mut before_72) = (0u32, true);
        for (i, token) in tokens.iter().enumerate() {
            let value = token.slice(text);
            let Some((number, letter)) = token.tag.split().filter(|_| has_no_blocks) else {
                in_entry = false;
                if wants.keeps_unlisted {
                    self.unlisted_fields.push((name_key(token, text), i as u32, 0));
                }
                continue;
            };
            let sequence = letters.next_sequence(number, letter);
            in_entry = letter == 0 && (number == 61 || in_entry && number == 86);
            let innermost = self.sequences.last().map_or(&b""[..], |span| span.slice(text));
            let context = SwiftSequenceContext { innermost, letter: sequence, is_cover: letters.in_cover() };
            let (mut listed, mut split) = (in_entry && wants.entries != 0, None);
            let (option, qualified) = (option_bit(letter), qualifier_word(value));
            for want in wants.for_number(number) {
                if !want.matches(option, qualified, context) {
                    continue;
                }
                if want.slot == 0 {
                    listed = true;
                    continue;
                }
                let is_filled = match want.group {
                    Some((group, first)) => {
                        // Entries are without gaps, or last as long as a sequence: fields after one are none of its
                        // fields.
                        let lasts = wants.entry_bounds[usize::from(group)].is_some();
                        let (last, entry_slots) = &mut self.open_entries[usize::from(group)];
                        match last {
                            _ if first => *entry_slots = [0; 4],
                            Some(last) if lasts || *last + 1 >= i as u32 => {}
                            _ => continue,
                        }
                        *last = Some(i as u32);
                        let (word, bit) =
                            (&mut entry_slots[usize::from(want.slot) / 64], 1 << (want.slot % 64));
                        std::mem::replace(word, *word | bit) & bit != 0
                    }
                    None => self.message_slots[usize::from(want.slot)].is_some(),
                };
                if is_filled {
                    continue;
                }
                let token_span = Span { start: base + token.start as usize, end: base + token.end as usize };
                let field_value = match &want.part {
                    SwiftFieldSelector::Whole => Some(SwiftFieldValue::from_span(
                        token_span,
                        SwiftValueKind::Part(SubfieldFormat::Lines),
                    )),
                    part => {
                        let result = *split
                            .get_or_insert_with(|| parts::split_field(token, text, &mut self.components));
                        values::select_part(part, result, &self.components, value, token_span)
                    }
                };
                let index = field_value.map(|new_value| push(&mut self.field_values, new_value));
                match want.group {
                    None => {
                        // A component that was not there may be in the next one, and else that one is not listed.
                        let (word, bit) = (usize::from(want.slot) / 64, 1u64 << (want.slot % 64));
                        listed |= index.is_some() || self.requested_slots[word] & bit == 0;
                        self.requested_slots[word] |= bit;
                        self.message_slots[usize::from(want.slot)] = index;
                    }
                    Some((group, first)) => {
                        let group_value = SwiftGroupValue {
                            group_index: group,
                            begins_entry: first,
                            slot: want.slot,
                            token: i as u32,
                            value_number: index,
                        };
                        self.group_values.push(group_value);
                        listed = true;
                    }
                }
            }
            transactions += u32::from(sequence == b'B' && (number, letter) == (21, 0));
            if number == 72 && wants.return_slot != 0 && !context.is_cover && std::mem::take(&mut before_72) {
                let code = values::return_code(value).map(|code| {
                    let value_start = base + token.start as usize;
                    let span = Span { start: value_start + code.start, end: value_start + code.end };
                    SwiftFieldValue::from_span(span, SwiftValueKind::Part(SubfieldFormat::Text))
                });
                self.message_slots[usize::from(wants.return_slot)] =
                    code.map(|code| push(&mut self.field_values, code));
            }
            if wants.time_slot != 0 {
                time.note_field(number, letter, i, value);
            }
            match (number, letter) {
                (16, b'R') => {
                    self.sequences.push(Span { start: token.start as usize, end: token.end as usize })
                }
                (16, b'S') => {
                    self.sequences.pop_if(|span| span.slice(text) == value);
                    for (lasts, (last, _)) in wants.entry_bounds.iter().zip(&mut self.open_entries) {
                        last.take_if(|_| lasts.as_deref() == Some(value));
                    }
                }
                (15, b'A'..=b'Z') if value.is_empty() => {}
                _ if !listed && wants.keeps_unlisted => {
                    self.unlisted_fields.push((name_key(token, text), i as u32, 0))
                }
                _ => {}
            }
        }
        if wants.time_slot != 0 {
            let token_at = |i: usize| &tokens[i];
            let best_time = time.best_time(text, base, token_at, message, buf, &mut self.components);
            self.message_slots[usize::from(wants.time_slot)] =
                best_time.map(|time_value| push(&mut self.field_values, time_value));
        }
        if transactions > 1 && wants.uetr != 0 {
            self.message_slots[usize::from(wants.uetr)] = None;
        }
        if wants.entries != 0 && tokens.iter().any(|token| token.tag == SwiftTag::new(b"61")) {
            let span = Span { start: base, end: message.text().end };
            self.message_slots[usize::from(wants.entries)] =
                Some(push(&mut self.field_values, SwiftFieldValue::from_span(span, SwiftValueKind::Entries)));
        }
        number_repeats(&mut self.unlisted_fields);
    }

    /// Notes the values outside the text: type, and blocks 1, 2, 3 and 5. Returns the variant.
    fn note_block_values(
        &mut self,
        wants: &SwiftFieldSelection,
        message: &unitape_codec::swift_mt::FramedSwiftMessage,
        buf: &[u8],
        kind: SwiftMessageType,
    ) -> Option<Span> {
        self.kind.clear();
        let category = match kind {
            SwiftMessageType::Mt(number) => {
                self.kind.push_str("MT");
                let digits = [number / 100, number / 10 % 10, number % 10];
                self.kind.extend(digits.map(|n| char::from(b'0' + n as u8)));
                Some(b'0' + (number / 100) as u8)
            }
            SwiftMessageType::Unknown => None,
            other => {
                _ = write!(self.kind, "{other}");
                None
            }
        };
        if wants.kind != 0 && !self.kind.is_empty() {
            self.message_slots[usize::from(wants.kind)] = Some(push(
                &mut self.field_values,
                SwiftFieldValue::from_span(Span::default(), SwiftValueKind::Kind),
            ));
        }
        if wants.mt != 0 && category.is_some() {
            self.message_slots[usize::from(wants.mt)] = Some(push(
                &mut self.field_values,
                SwiftFieldValue::from_span(Span::default(), SwiftValueKind::Mt),
            ));
        }
        if wants.category != 0
            && let Some(category) = category
        {
            let category_value =
                SwiftFieldValue::from_span(Span::default(), SwiftValueKind::Letter(category));
            self.message_slots[usize::from(wants.category)] =
                Some(push(&mut self.field_values, category_value));
        }
        if wants.ack != 0
            && let Some(refused) = message.is_refused(buf)
        {
            let ack_value = SwiftFieldValue::from_span(Span::default(), SwiftValueKind::Ack(refused));
            self.message_slots[usize::from(wants.ack)] = Some(push(&mut self.field_values, ack_value));
        }
        let in_block = |block: usize, tag: &[u8]| {
            let span = message.block(block)?;
            let token = sub_blocks(span.slice(buf)).find(|token| token.name(span.slice(buf)) == tag)?;
            Some(Span { start: span.start + token.start as usize, end: span.start + token.end as usize })
        };
        let variant = in_block(3, b"119");
        if wants.variant != 0
            && let Some(span) = variant
        {
            let variant_value = SwiftFieldValue::from_span(span, SwiftValueKind::Part(SubfieldFormat::Text));
            self.message_slots[usize::from(wants.variant)] =
                Some(push(&mut self.field_values, variant_value));
        }
        if wants.uetr != 0 {
            let uetr_value = in_block(3, b"121")
                .filter(|span| !span.is_empty())
                .map(|span| SwiftFieldValue::from_span(span, SwiftValueKind::Part(SubfieldFormat::Text)));
            self.message_slots[usize::from(wants.uetr)] =
                uetr_value.map(|field_value| push(&mut self.field_values, field_value));
        }
        let repeated = message.block(5).is_some_and(|span| has_repeat(span.slice(buf)));
        if wants.repeat_slot != 0 && repeated {
            self.message_slots[usize::from(wants.repeat_slot)] = Some(push(
                &mut self.field_values,
                SwiftFieldValue::from_span(Span::default(), SwiftValueKind::Repeat),
            ));
        }
        // The parts of a block are together, and the decoder splits it once.
        let mut split_header = (0, Ok(false));
        for want in &wants.blocks {
            let block_value = match want.block {
                1 | 2 => message.block(usize::from(want.block)).and_then(|span| {
                    let content = span.slice(buf);
                    if split_header.0 != want.block {
                        split_header =
                            (want.block, header(usize::from(want.block), content, &mut self.components));
                    }
                    let split_outcome = split_header.1;
                    values::from_header(&want.part, split_outcome, &self.components, content, span)
                }),
                5 if !repeated && want.part.starts_with("PD") => None,
                block => in_block(usize::from(block), want.part.as_bytes())
                    .map(|span| SwiftFieldValue::from_span(span, SwiftValueKind::Part(SubfieldFormat::Text))),
            };
            self.message_slots[usize::from(want.slot)] =
                block_value.map(|header_value| push(&mut self.field_values, header_value));
        }
        variant
    }
}

/// Returns whether a message needs this field: messages are found by it, or it is the amount, rate or party that the
/// message is about.
fn is_indispensable(tag: &[u8]) -> bool {
    let listed = [
        b"19", b"20", b"21", b"25", b"32", b"33", b"35", b"36", b"37", b"50", b"51", b"52", b"53", b"54",
        b"55", b"56", b"57", b"58", b"59", b"60", b"61", b"62", b"71", b"82", b"87", b"92", b"93", b"95",
        b"97",
    ];
    matches!(tag, b"90A" | b"90B") || listed.iter().any(|number| tag.starts_with(*number))
}

/// How JSON has bytes that are not text; in text the quotes have a backslash.
const BYTES_IN_JSON: &[u8] = b"{\"hex\":\"";

fn push(values: &mut Vec<SwiftFieldValue>, one: SwiftFieldValue) -> ValueIndex {
    values.push(one);
    ValueIndex::new(values.len() as u32).expect("one at least, and fewer than bytes in a message")
}

/// Returns whether block 5 has a trailer `PDE` or `PDM`: a possible duplicate by the sender, or by the network.
#[inline]
fn has_repeat(trailers: &[u8]) -> bool {
    trailers.windows(5).any(|w| matches!(w, [b'{', b'P', b'D', b'E' | b'M', b':' | b'}']))
}

/// The current message.
struct SwiftMessageView<'m> {
    message: &'m unitape_codec::swift_mt::FramedSwiftMessage,
    /// The buffer that offsets point into.
    buf: &'m [u8],
    text: &'m [u8],
    tokens: &'m [SwiftField],
    table: &'m SwiftFieldTable,
    /// The reading of text that is not UTF-8, and whether it was a guess.
    fallback: FallbackCharset,
    was_guessed: Cell<bool>,
}

impl SwiftMessageView<'_> {
    #[inline]
    fn value_at(&self, index: ValueIndex) -> &SwiftFieldValue {
        &self.table.field_values[index.get() as usize - 1]
    }
}

impl ParsedMessage for SwiftMessageView<'_> {
    type Ref = ValueIndex;
    const FIELD: &'static str = "field";
    const TYPE: &'static str = "message type";
    const TIME: &'static str = "day or time of its tag's form";
    const UNDECLARED_TEXT: bool = true;

    #[inline]
    fn charset_note(&self) -> Option<&str> {
        self.fallback.note().filter(|_| self.was_guessed.get())
    }

    fn raw(&self) -> &[u8] {
        self.message.span.slice(self.buf)
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<ValueIndex> {
        self.table.message_slots[usize::from(slot)]
    }

    fn text<'v>(&'v self, index: ValueIndex, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        let field_value = self.value_at(index);
        match field_value.kind {
            SwiftValueKind::Kind => self.table.kind.strip_prefix("MT").unwrap_or(&self.table.kind).as_bytes(),
            SwiftValueKind::Mt => self.table.kind.as_bytes(),
            SwiftValueKind::Letter(_) => field_value.letter(),
            SwiftValueKind::Repeat => b"Y",
            // There is one of the two.
            SwiftValueKind::SumNote if self.table.sum_notes.differs.is_empty() => {
                self.table.sum_notes.unchecked_sums.as_bytes()
            }
            SwiftValueKind::SumNote => self.table.sum_notes.differs.as_bytes(),
            SwiftValueKind::Ack(true) => b"NAK",
            SwiftValueKind::Ack(false) => b"ACK",
            // For people: the line that is not of its form.
            SwiftValueKind::Entries => match entries(self.text, self.tokens, scratch) {
                Ok(_) => scratch,
                Err((i, _)) => self.tokens[i].slice(self.text),
            },
            _ => field_value.text(self.buf, scratch),
        }
    }

    fn is_of_form(&self, index: ValueIndex) -> bool {
        self.value_at(index).kind != SwiftValueKind::Invalid
    }

    fn describe_flaw(&self, index: ValueIndex) -> Option<String> {
        let field_value = self.value_at(index);
        let mut parts = SwiftComponents::default();
        match field_value.kind {
            SwiftValueKind::Entries => {
                let (i, fault) = entries(self.text, self.tokens, &mut Vec::new()).err()?;
                Some(format!("field {} {fault}", self.tokens[i].tag))
            }
            SwiftValueKind::Invalid => {
                for block in [1, 2] {
                    if let Some(span) =
                        self.message.block(block).filter(|span| field_value.is_at(span.start, span.end))
                    {
                        let fault = header(block, span.slice(self.buf), &mut parts).err()?;
                        return Some(format!("block {block} {fault}"));
                    }
                }
                let base = self.message.text().start;
                let is_field =
                    |t: &&SwiftField| field_value.is_at(base + t.start as usize, base + t.end as usize);
                let token = self.tokens.iter().find(is_field)?;
                let fault = parts::split_field(token, self.text, &mut parts).err()?;
                // For a value that is too long: the component that ends where more follows.
                let (start, end) = (token.start, token.start + fault.offset);
                let shorter = SwiftField { end, line: token.line.min(end), ..*token };
                let cut = parts::split_field(&shorter, self.text, &mut parts);
                let last_part = parts.as_slice().last().filter(|part| cut.is_ok() && start + part.end == end);
                Some(match last_part {
                    Some(part) => {
                        let (tag, name, offset) = (token.tag, part.name, fault.offset);
                        format!("field {tag} at byte {offset} of the value: {name} is too long")
                    }
                    None => format!("field {} {fault}", token.tag),
                })
            }
            _ => None,
        }
    }

    fn is_dispensable(&self, index: ValueIndex) -> bool {
        let base = self.message.text().start;
        let field_value = self.value_at(index);
        let is_field = |t: &&SwiftField| field_value.is_at(base + t.start as usize, base + t.end as usize);
        self.tokens.iter().find(is_field).is_some_and(|token| !is_indispensable(token.name(self.text)))
    }

    fn time(&self, index: ValueIndex) -> Option<UnixNanos> {
        self.value_at(index).to_unix_nanos(self.buf).map(UnixNanos)
    }

    fn set_field(
        &self,
        index: ValueIndex,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut crate::block::BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let field_value = self.value_at(index);
        match (field_value.kind, spec.slot) {
            (SwiftValueKind::Invalid, _) => Err(Refusal::BadValue),
            (SwiftValueKind::Entries, FieldLayout::Json) => {
                scratch.clear();
                let has_entries = entries(self.text, self.tokens, scratch).map_err(|_| Refusal::BadValue)?;
                if memchr::memmem::find(scratch, BYTES_IN_JSON).is_some() {
                    let (decoded, guessed) = lines::decoded_entries(self.text, self.fallback)?;
                    self.was_guessed.set(guessed);
                    *scratch = decoded;
                }
                let json = std::str::from_utf8(scratch).map_err(|_| Refusal::BadValue)?;
                if has_entries { event.set(spec, EventValue::Json(json)) } else { Ok(()) }
            }
            (_, FieldLayout::Syms { .. }) => {
                event.set_names(spec, std::iter::once(self.text(index, scratch)), names)
            }
            _ => event.set_text(spec, self.text(index, scratch), names),
        }
    }

    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<ValueIndex>],
    ) -> Result<bool, MessageRefusal> {
        let group_values = &self.table.group_values;
        let of_group = |group_value: &SwiftGroupValue| usize::from(group_value.group_index) == group;
        let Some(first_index) = (cursor.position..group_values.len())
            .find(|&i| of_group(&group_values[i]) && group_values[i].begins_entry)
        else {
            return Ok(false);
        };
        let mut next_index = first_index;
        while let Some(group_value) = group_values.get(next_index) {
            if of_group(group_value) {
                // The next entry begins.
                if group_value.begins_entry && group_value.token != group_values[first_index].token {
                    break;
                }
                let slot = &mut entry[usize::from(group_value.slot)];
                *slot = slot.or(group_value.value_number);
            }
            next_index += 1;
        }
        *cursor = EntryCursor { position: next_index, entry_count: cursor.entry_count + 1 };
        Ok(true)
    }

    fn visit_unlisted(
        &self,
        _: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let mut texts = self.table.texts.borrow_mut();
        let (name, scratch) = &mut *texts;
        for &(_, i, nth) in &self.table.unlisted_fields {
            let token = &self.tokens[i as usize];
            let value = token.slice(self.text);
            name.clear();
            push_lossy(name, token.name(self.text));
            if let Some(qualifier) = qualifier(value) {
                name.push(':');
                push_lossy(name, qualifier);
            }
            if nth > 0 {
                _ = write!(name, "#{}", nth + 1);
            }
            let token_value = SwiftFieldValue::from_span(
                Span { start: token.start as usize, end: token.end as usize },
                SwiftValueKind::Part(SubfieldFormat::Lines),
            );
            keep(name, token_value.text(self.text, scratch))?;
        }
        Ok(())
    }
}
