//! FIX messages for the mapper: framed, their fields noted slot by slot in one pass.

mod groups;

use crate::block::numbers::SequenceEffect;
use crate::block::{Block, BlockMessageKind};
use crate::error::Error;
use crate::formats::block_items::{decode_items, refuse_item};
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry};
use crate::mapping::{
    Dialect, EntryCursor, EntryStep, LeniencyConfig, Mapping, MappingExplainer, MappingPlan, MessageMapper,
    MessageOrigin, MessageRefusal, ParsedMessage, PathSlots, compile,
};
use groups::{END, GroupFields, GroupTags};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use unitape_base::FrameStep;
use unitape_base::digits::parse_u64;
use unitape_base::toml::suggest_word;
use unitape_codec::fix::{
    FieldSeparator, FieldToken, FixFault, FixFramer, FixLeniency, MessageTokenizer, NextFixFrame, Span,
    TokenSlice, encoding, value,
};
use unitape_model::{Dictionary, Refusal, UnixNanos};

/// Decodes blocks of FIX; one per worker and feed.
#[derive(Debug)]
pub struct FixDecoder {
    framer: FixFramer,
    mapper: MessageMapper<TokenIndex>,
    tags: SlotsByTag,
    tokens: MessageTokenizer,
    /// The token in each slot of the message.
    token_slots: Box<TokenSlots>,
    slot_count: usize,
    /// Tokens that nothing names and that are kept, the last one first.
    unlisted_tokens: Vec<u16>,
    /// The day that was read last, and its midnight.
    day: Cell<Option<([u8; 8], i64)>>,
}

/// One entry for every possible slot number, so that no slot must be checked.
type TokenSlots = [Option<TokenIndex>; 256];

/// FIX names its fields by tag.
#[derive(Clone, Copy, Debug)]
pub struct FixDialect;

/// Index of a token and one more; slots are many and mostly empty, so they are two bytes each.
type TokenIndex = std::num::NonZeroU16;

/// Fields of a message; an index and one more are 16 bits.
const FIELDS_MAX: usize = u16::MAX as usize - 1;

/// Slot number of a tag that nothing names and that is to be kept.
const KEEP: u8 = 255;

/// Tags below this are found in a table.
const DENSE: usize = 2048;

impl Dialect for FixDialect {
    type Path = u32;
    const TYPE_PATH: &'static str = "35";
    const COUNTED_GROUPS: bool = true;

    fn path(&self, text: &str) -> Result<u32, String> {
        text.parse().ok().filter(|t| *t > 0).ok_or_else(|| format!("`{text}` is no tag"))
    }

    fn framing(&self) -> Vec<u32> {
        vec![8, 9, 10]
    }
}

/// FIX tag=value.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "fix",
    load: |mapping| mapping.needs_rules(),
    build: |mapping| Ok(Arc::new(FixFormat { framer: make_framer(mapping)? })),
};

#[derive(Debug)]
struct FixFormat {
    framer: FixFramer,
}

impl ByteFormat for FixFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(FixDecoder::new(self.framer.clone(), mapping)?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        self.framer.last_message_start(buf)
    }
}

/// Makes the framer that a mapping asks for.
///
/// # Errors
/// Fails if the mapping names an unknown separator or an unknown kind of leniency.
fn make_framer(mapping: &Mapping) -> Result<FixFramer, Error> {
    let Some(framing) = &mapping.framing else { return Ok(FixFramer::default()) };
    let Some(sep) = FieldSeparator::parse(&framing.sep) else {
        let message = format!("framing.sep: `{}` is none of SOH, |, ; and ^A", framing.sep);
        return Err(mapping.refuse_key("framing", message));
    };
    let words = match &framing.lenient {
        LeniencyConfig::All(all) => {
            return Ok(FixFramer::default().with_sep(sep).with_lenient(*all).with_log(framing.log));
        }
        LeniencyConfig::One(word) => std::slice::from_ref(word),
        LeniencyConfig::Some(words) => words,
    };
    let mut lenient = FixLeniency::NONE;
    for word in words {
        let kind = FixLeniency::parse(word).ok_or_else(|| {
            let names = FixLeniency::WORDS.map(|(name, _)| name);
            let detail = format!("framing.lenient: `{word}` is none of {}", names.join(", "));
            mapping.refuse_key("framing", detail + &suggest_word(word, names))
        })?;
        lenient = lenient | kind;
    }
    Ok(FixFramer::default().with_sep(sep).with_lenient(lenient).with_log(framing.log))
}

impl FixDecoder {
    /// Makes a decoder for messages of `framer` by `mapping`.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn new(framer: FixFramer, mapping: &Mapping) -> Result<Self, Error> {
        let (plan, places) = compile(mapping, &FixDialect)?;
        let tags = SlotsByTag::new(&places, &plan);
        Ok(Self {
            framer,
            token_slots: Box::new([None; 256]),
            slot_count: plan.slot_count,
            mapper: MessageMapper::new(plan),
            tags,
            tokens: MessageTokenizer::new(),
            unlisted_tokens: Vec::new(),
            day: Cell::default(),
        })
    }

    /// Returns the part of a large message that these bytes are: bytes that end at the framer's limit are its first
    /// part, and garbage may follow.
    fn large_part(&self, fault: &FixFault, span: Span) -> Option<BlockMessageKind> {
        let is_last_part = span.end - span.start < self.framer.max_message();
        match fault {
            FixFault::NoEnd { .. } => Some(BlockMessageKind::QuarantinePart { first: true, last: false }),
            FixFault::Garbage => Some(BlockMessageKind::QuarantinePart { first: false, last: is_last_part }),
            _ => None,
        }
    }

    fn message(&mut self, block: &mut Block, raw: &[u8], origin: MessageOrigin, dictionary: &Dictionary) {
        if self.framer.accepts(FixLeniency::EMPTY) {
            // A field without a value says nothing.
            self.tokens.remove_empty();
        }
        let tokens = self.tokens.as_slice();
        if tokens.len() > FIELDS_MAX {
            let detail = format!("{} fields, more than {FIELDS_MAX}", tokens.len());
            block.quarantine(origin.source, origin.offset, raw, Refusal::TooLarge.code(), &detail);
            return;
        }
        self.token_slots[..self.slot_count].fill(None);
        self.unlisted_tokens.clear();
        // Backwards, so that the first of equal tags is what stays, without a look at what was there.
        for (i, &tag) in tokens.tags().iter().enumerate().rev() {
            let slot = self.tags.message.get(tag);
            self.token_slots[usize::from(slot)] = TokenIndex::new(i as u16 + 1);
            if slot == KEEP {
                self.unlisted_tokens.push(i as u16);
            }
        }
        // Slot 0 is none; known and not wanted fields have gone there.
        self.token_slots[0] = None;
        let fields = FixMessageView {
            raw,
            tokens,
            slots: &self.token_slots,
            unlisted_tokens: &self.unlisted_tokens,
            tags: &self.tags,
            day: &self.day,
        };
        self.mapper.message(block, &fields, origin, dictionary);
    }
}

impl FormatDecoder for FixDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        decode_items(block, source, |block, bytes, offset| {
            match self.tokens.frame(&self.framer, bytes, offset, block.eof) {
                NextFixFrame::Bad { span, fault } => {
                    refuse_item(block, block.origin(source, span), span.slice(bytes), &fault);
                    if let (Some(kind), Some(unit)) = (self.large_part(&fault, span), block.units.last_mut())
                    {
                        unit.kind = kind;
                    }
                    FrameStep::Message(span)
                }
                next => next.map(|message| {
                    let origin = block.origin(source, message.span);
                    self.message(block, message.span.slice(bytes), origin, dictionary);
                    message.span
                }),
            }
        });
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }
}

/// The current message.
struct FixMessageView<'m> {
    raw: &'m [u8],
    tokens: TokenSlice<'m>,
    slots: &'m TokenSlots,
    unlisted_tokens: &'m [u16],
    tags: &'m SlotsByTag,
    day: &'m Cell<Option<([u8; 8], i64)>>,
}

impl ParsedMessage for FixMessageView<'_> {
    type Ref = TokenIndex;
    const FIELD: &'static str = "tag";
    const TYPE: &'static str = "MsgType";
    const TIME: &'static str = "UTCTimestamp";

    fn raw(&self) -> &[u8] {
        self.raw
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<TokenIndex> {
        self.slots[usize::from(slot)]
    }

    #[inline]
    fn text<'v>(&'v self, index: TokenIndex, _: &'v mut Vec<u8>) -> &'v [u8] {
        self.tokens.token_at(usize::from(index.get()) - 1).slice(self.raw)
    }

    #[inline]
    fn time(&self, index: TokenIndex) -> Option<UnixNanos> {
        let text = self.tokens.token_at(usize::from(index.get()) - 1).slice(self.raw);
        // Most times of a feed are of the day of the one before.
        let (day, rest) = text.split_first_chunk::<8>()?;
        let midnight = match self.day.get() {
            Some((cached_day, midnight)) if cached_day == *day => midnight,
            _ => {
                let midnight = value::date(day)?;
                self.day.set(Some((*day, midnight)));
                midnight
            }
        };
        midnight.checked_add(value::time(rest.strip_prefix(b"-")?)?).map(UnixNanos)
    }

    #[inline]
    fn sequence_effect(
        &self,
        kind: Option<TokenIndex>,
        sequence: u64,
        may_be_repeat: bool,
    ) -> SequenceEffect {
        let kind = kind.map(|index| self.tokens.token_at(usize::from(index.get()) - 1).slice(self.raw));
        match kind {
            Some(b"A") => self.logon_effect(sequence, may_be_repeat),
            Some(b"4") => self.sequence_reset(),
            _ => SequenceEffect::Counts,
        }
    }

    #[inline]
    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<TokenIndex>],
    ) -> Result<bool, MessageRefusal> {
        let group = &self.tags.group_tags[group];
        let Some(count) = self.slots[usize::from(group.count)] else { return Ok(false) };
        let tokens = self.tokens;
        // The token after the count, whose index and one more this is.
        let first_token = if cursor.entry_count == 0 { usize::from(count.get()) } else { cursor.position };
        if tokens.get(first_token).is_none_or(|t| t.tag != group.delimiter) {
            return self.unusual_entry(group, cursor, first_token, entry);
        }
        let mut index = first_token + 1;
        if let Some(first_member) = entry.get_mut(usize::from(group.first)) {
            *first_member = TokenIndex::new(index as u16);
        }
        while let Some(token) = tokens.get(index)
            && token.tag != group.delimiter
        {
            let class = group.members.get(token.tag);
            if class == END {
                break;
            }
            let Some(slot) = entry.get_mut(usize::from(class)) else {
                index = self.rest_of_entry(group, index, cursor.entry_count + 1, entry);
                break;
            };
            index += 1;
            if slot.is_none() {
                *slot = TokenIndex::new(index as u16);
            }
        }
        *cursor = EntryCursor { position: index, entry_count: cursor.entry_count + 1 };
        Ok(true)
    }

    fn visit_unlisted(
        &self,
        groups: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let mut digits = [0; 10];
        if !self.unlisted_tokens.is_empty() {
            self.keep_outside(groups, &mut keep)?;
        }
        // A time finer than the event's is kept in full.
        for index in self.tags.time_slots.iter().filter_map(|&slot| self.slot(slot)) {
            let token = self.tokens.token_at(usize::from(index.get()) - 1);
            if token.end - token.start > TIMESTAMP_NANOS_LEN && value::picoseconds(token.slice(self.raw)) > 0
            {
                keep(write_decimal(token.tag, &mut digits), token.slice(self.raw))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn unlisted_in_entry(
        &self,
        step: EntryStep,
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        if self.unlisted_tokens.is_empty() {
            return Ok(());
        }
        let first_token = match step.before.entry_count {
            0 => self.entries_start(step.group),
            _ => step.before.position,
        };
        self.keep_tokens(self.unlisted_between(first_token, step.after.position), &mut keep)
    }
}

const NEW_SEQ_NO: u32 = 36;
const GAP_FILL_FLAG: u32 = 123;
const RESET_SEQ_NUM_FLAG: u32 = 141;

/// Bytes of a UTCTimestamp with nine decimals.
const TIMESTAMP_NANOS_LEN: u32 = 27;

impl<'m> FixMessageView<'m> {
    /// Returns the index of the first token behind the count of a group. `usize::MAX`, which is beyond all tokens, if the
    /// message has no count.
    fn entries_start(&self, group: usize) -> usize {
        let count = self.slots[usize::from(self.tags.group_tags[group].count)];
        count.map_or(usize::MAX, |count| usize::from(count.get()))
    }

    /// Returns the unlisted tokens with an index from `start` to before `end`.
    fn unlisted_between(&self, start: usize, end: usize) -> &'m [u16] {
        // They are in falling order.
        let first_unlisted = self.unlisted_tokens.partition_point(|i| usize::from(*i) >= end);
        let last_unlisted = self.unlisted_tokens.partition_point(|i| usize::from(*i) >= start);
        &self.unlisted_tokens[first_unlisted..last_unlisted.max(first_unlisted)]
    }

    /// Keeps these tokens, the last one first, under their tags.
    fn keep_tokens(
        &self,
        tokens: &[u16],
        keep: &mut impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let mut digits = [0; 10];
        for &i in tokens.iter().rev() {
            let token = self.tokens.token_at(usize::from(i));
            let value = token.slice(self.raw);
            match self.decode_encoded(token) {
                Some(text) => keep(write_decimal(token.tag, &mut digits), text.as_bytes())?,
                None => keep(write_decimal(token.tag, &mut digits), value)?,
            }
        }
        Ok(())
    }

    /// Keeps the unlisted tokens that are in no entry of these groups.
    #[cold]
    #[inline(never)]
    fn keep_outside(
        &self,
        groups: &[usize],
        keep: &mut impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let mut spans = Vec::new();
        for &group in groups {
            let (start, mut cursor) = (self.entries_start(group), EntryCursor::default());
            // A count that is wrong refuses the message where its entries are read.
            while self.next_entry(group, &mut cursor, &mut []).is_ok_and(|has_entry| has_entry) {}
            spans.push((start, cursor.position));
        }
        spans.sort_unstable();
        let mut token_index = 0;
        for (from, to) in spans.into_iter().chain([(usize::MAX, usize::MAX)]) {
            self.keep_tokens(self.unlisted_between(token_index, from), keep)?;
            token_index = token_index.max(to);
        }
        Ok(())
    }

    fn group_fields(&self, group: &'m GroupTags) -> Option<GroupFields<'m>> {
        let value = |slot: u8| {
            let index = usize::from(self.slots[usize::from(slot)]?.get());
            Some((index, self.tokens.token_at(index - 1).slice(self.raw)))
        };
        let (start, stated) = value(group.count)?;
        let msg_type = value(self.tags.message_type).map_or(&b""[..], |(_, value)| value);
        Some(GroupFields { group, tokens: self.tokens, first_token: start, msg_type, stated_count: stated })
    }

    /// Reads on from a tag of an entry that has no slot. Returns the index of the first token behind the entry.
    #[cold]
    #[inline(never)]
    fn rest_of_entry(
        &self,
        group: &'m GroupTags,
        index: usize,
        number: u64,
        entry: &mut [Option<TokenIndex>],
    ) -> usize {
        let Some(fields) = self.group_fields(group) else { return index };
        fields.entry_end(index, group.delimiter, number, |slot, token_index| {
            fill_slot(entry, slot, token_index)
        })
    }

    /// Reads an entry that does not start with the mapping's delimiter, or finds that no entry follows.
    #[cold]
    #[inline(never)]
    fn unusual_entry(
        &self,
        group: &'m GroupTags,
        cursor: &mut EntryCursor,
        start: usize,
        entry: &mut [Option<TokenIndex>],
    ) -> Result<bool, MessageRefusal> {
        let Some(fields) = self.group_fields(group) else { return Ok(false) };
        let entry_count = cursor.entry_count;
        let Some((first, delimiter)) = fields.unusual_start(start, entry_count) else {
            return if fields.is_stated(entry_count) {
                Ok(false)
            } else {
                Err(fields.count_refusal(entry_count, start))
            };
        };
        fill_slot(entry, group.members.get(delimiter), first);
        let end_index = fields.entry_end(first + 1, delimiter, entry_count + 1, |slot, token_index| {
            fill_slot(entry, slot, token_index)
        });
        *cursor = EntryCursor { position: end_index, entry_count: entry_count + 1 };
        Ok(true)
    }

    /// Returns the effect of a Logon. It restarts the numbers if it says so (141), or if it is number 1 and new: so a
    /// session begins (FIX Session Layer, "Establishing a FIX session").
    #[cold]
    fn logon_effect(&self, sequence: u64, may_be_repeat: bool) -> SequenceEffect {
        match self.first_value(RESET_SEQ_NUM_FLAG) == Some(b"Y") || (sequence == 1 && !may_be_repeat) {
            true => SequenceEffect::Restarts { next: 0, counts: true },
            false => SequenceEffect::Counts,
        }
    }

    /// Returns the effect of a SequenceReset. It fills a gap (123=Y), or continues the numbers at another number, and
    /// its own number then has no meaning (FIX Session Layer, "SequenceReset(35=4)").
    #[cold]
    fn sequence_reset(&self) -> SequenceEffect {
        if self.first_value(GAP_FILL_FLAG) == Some(b"Y") {
            return SequenceEffect::Fills;
        }
        match self.first_value(NEW_SEQ_NO).and_then(parse_u64) {
            Some(next) => SequenceEffect::Restarts { next, counts: false },
            None => SequenceEffect::Fills,
        }
    }

    /// Returns the first value of a tag.
    fn first_value(&self, tag: u32) -> Option<&'m [u8]> {
        let index = self.tokens.tags().iter().position(|t| *t == tag)?;
        Some(self.tokens.token_at(index).slice(self.raw))
    }

    /// Decodes the value of a field in the message's own encoding.
    #[inline]
    fn decode_encoded(&self, token: FieldToken) -> Option<Cow<'m, str>> {
        if !encoding::is_encoded(token.tag) {
            return None;
        }
        let value = self.raw.get(token.start as usize..token.end as usize)?;
        encoding::text(encoding::message_encoding(self.raw, self.tokens)?, value)
    }
}

/// Puts the token at `token_index` into an entry, unless the slot is unused or already has a token.
fn fill_slot(entry: &mut [Option<TokenIndex>], slot: u8, token_index: usize) {
    if slot != END
        && let Some(target) = entry.get_mut(usize::from(slot))
        && target.is_none()
    {
        *target = TokenIndex::new(token_index as u16 + 1);
    }
}

/// Writes the number as text.
fn write_decimal(mut n: u32, digits: &mut [u8; 10]) -> &str {
    let mut digit_index = digits.len();
    loop {
        digit_index -= 1;
        digits[digit_index] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[digit_index..]).unwrap_or_default()
}

/// Slots by tag.
#[derive(Debug)]
struct SlotsByTag {
    /// Slot of the message type.
    message_type: u8,
    /// The slots that may hold the event time.
    time_slots: Vec<u8>,
    message: TagMap,
    group_tags: Vec<GroupTags>,
}

impl SlotsByTag {
    fn new(places: &PathSlots<u32>, plan: &MappingPlan) -> Self {
        let default_slot = if places.keeps { KEEP } else { 0 };
        let groups = places.groups.iter().enumerate();
        Self {
            message_type: plan.message_type,
            time_slots: plan.ts.clone(),
            message: TagMap::new(default_slot, &places.message),
            group_tags: groups.map(|(i, group)| GroupTags::new(i, group, places, plan)).collect(),
        }
    }
}

/// Tag → slot, dense for the tags in use.
#[derive(Debug)]
struct TagMap {
    dense: Box<[u8; DENSE]>,
    sparse: FxHashMap<u32, u8>,
    default_slot: u8,
}

impl TagMap {
    fn new(default_slot: u8, slots: &BTreeMap<u32, u8>) -> Self {
        let mut this =
            Self { dense: Box::new([default_slot; DENSE]), sparse: FxHashMap::default(), default_slot };
        for (&tag, &slot) in slots {
            match this.dense.get_mut(tag as usize) {
                Some(s) => *s = slot,
                None => _ = this.sparse.insert(tag, slot),
            }
        }
        this
    }

    #[inline]
    fn get(&self, tag: u32) -> u8 {
        match self.dense.get(tag as usize) {
            Some(slot) => *slot,
            None => self.sparse.get(&tag).copied().unwrap_or(self.default_slot),
        }
    }
}
