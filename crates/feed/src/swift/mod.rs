//! SWIFT MT messages for the mapper: framed, the fields that the mapping names noted in one pass.
//!
//! [`path`] tells how mappings name fields. Values are as `decode swift` shows them: amounts with a point, days as
//! `2019-04-25`, lines joined by line ends; `signed` amounts have their sign.
//!
//! **Event time** (`time`), UTC, is the first of these that the message has:
//!
//! 1. the moment it was made: `13D` (with its distance to UTC), `98C` or `98A` with the qualifier `PREP`;
//! 2. for statements the day of the closing balance, `62a`, or else of the opening one, `60a`;
//! 3. the output day and time of block 2. The network writes the receiver's local time and does not say
//!    which; it is taken as UTC;
//! 4. the value date, `32A`, or the settlement day, `98A:SETT`, or that of the first line, `61`.
//!
//! Days are their midnight. What stands there and is no day is an error, not passed over.
//!
//! **A value that is not of its tag's form** is refused where the mapping asks for a component of it; whole
//! values and fields that nothing names may be of any form. **Unlisted** fields are kept under their tag, with
//! the qualifier if they have one (`22F:SETR`), and with `#2`, `#3`, … when they repeat.

mod path;
mod values;
mod wants;

pub use path::SwiftDialect;

use crate::block::Block;
use crate::error::Error;
use crate::mapping::{Cursor, Explainer, Mapper, Mapping, Message, Origin, Refused, compile};
use std::fmt::Write as _;
use std::num::NonZeroU32;
use unitape_codec::swift_mt::parts::{self, Kind, Parts};
use unitape_codec::swift_mt::{
    Fields, Frame, Framer, MsgType, Span, Tag, Token, entries, header, sub_blocks,
};
use unitape_model::event::Value;
use unitape_model::schema::{Slot, Spec};
use unitape_model::{Dictionary, EventBuilder, Refusal, UnixNanos};
use values::{Found, Is};
use wants::{PartOf, Place, Wants};

/// Decodes blocks of SWIFT messages; one per worker and feed.
#[derive(Debug)]
pub struct SwiftDecoder {
    framer: Framer,
    mapper: Mapper<Index>,
    wants: Wants,
    fields: Fields,
    noted: Noted,
}

/// Index of a value found and one more.
type Index = NonZeroU32;

/// What was found in the message in hand.
#[derive(Debug, Default)]
struct Noted {
    found: Vec<Found>,
    /// The value in each slot of the message.
    slots: Vec<Option<Index>>,
    /// Values of group entries, in order.
    hits: Vec<Hit>,
    /// Fields that nothing names and that are kept: a number for the name, the token, and how often the
    /// name was there before.
    unlisted: Vec<(u64, u32, u32)>,
    parts: Parts,
    /// The last field of each group's entry in hand.
    open: Vec<Option<u32>>,
    /// The sequences open, innermost last.
    sequences: Vec<Span>,
    kind: String,
}

/// A value of a group entry.
#[derive(Clone, Copy, Debug)]
struct Hit {
    group: u8,
    /// It begins an entry.
    first: bool,
    slot: u8,
    token: u32,
    found: Option<Index>,
}

impl SwiftDecoder {
    /// A decoder for messages of `framer` by `mapping`.
    ///
    /// # Errors
    /// When the mapping cannot be compiled.
    pub fn new(framer: Framer, mapping: &Mapping) -> Result<Self, Error> {
        let (plan, places) = compile(mapping, &SwiftDialect)?;
        let noted = Noted { slots: vec![None; plan.slot_count], ..Noted::default() };
        Ok(Self {
            framer,
            mapper: Mapper::new(plan),
            wants: Wants::new(&places),
            fields: Fields::new(),
            noted,
        })
    }

    /// What notes what the mapping does, for people.
    pub fn explainer(&mut self) -> &mut Option<Box<Explainer>> {
        self.mapper.explainer()
    }

    /// Decodes all whole messages of `block`.
    pub fn decode(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let mut at = 0;
        let mut detail = String::new();
        loop {
            let span = match self.fields.frame(&self.framer, &bytes, at, block.eof) {
                Frame::Message(message) => {
                    let origin = Origin { source, offset: block.base + message.span.start as u64 };
                    let text = message.text().of(&bytes);
                    let tokens = self.fields.as_slice();
                    self.noted.read(&self.wants, &message, &bytes, tokens);
                    let taken =
                        Taken { raw: message.span.of(&bytes), buf: &bytes, text, tokens, noted: &self.noted };
                    self.mapper.message(block, &taken, origin, known);
                    message.span
                }
                Frame::Bad { span, fault } => {
                    let offset = block.base + span.start as u64;
                    detail.clear();
                    _ = write!(detail, "{fault}");
                    block.quarantine(source, offset, span.of(&bytes), fault.code().as_str(), &detail);
                    span
                }
                Frame::Incomplete { from, .. } => {
                    block.decoded = from;
                    break;
                }
                Frame::End => {
                    block.decoded = bytes.len();
                    break;
                }
            };
            block.progress(block.base + span.start as u64, block.base + span.end as u64);
            at = span.end;
        }
        block.bytes = bytes;
    }
}

impl Noted {
    /// Notes all that the mapping names, and what it does not.
    fn read(
        &mut self,
        wants: &Wants,
        message: &unitape_codec::swift_mt::Message,
        buf: &[u8],
        tokens: &[Token],
    ) {
        self.found.clear();
        self.slots.fill(None);
        self.hits.clear();
        self.unlisted.clear();
        self.sequences.clear();
        self.open.clear();
        self.open.resize(wants.groups, None);
        let kind = MsgType::of(message, buf, tokens);
        let variant = self.blocks(wants, message, buf, kind);
        let cover = kind == MsgType::Mt(202) && variant.is_some_and(|span| span.of(buf) == b"COV");
        let base = message.text().start;
        let text = message.text().of(buf);
        // Blocks in block 4 are no fields.
        let plain = !text.trim_ascii_start().starts_with(b"{");
        let (mut in_cover, mut in_entry) = (false, false);
        let mut time = TimeSeen::default();
        for (i, token) in tokens.iter().enumerate() {
            let value = token.of(text);
            let Some((number, letter)) = token.tag.split().filter(|_| plain) else {
                in_entry = false;
                if wants.keeps {
                    self.unlisted.push((name_key(token, text), i as u32, 0));
                }
                continue;
            };
            in_cover |= cover && number == 50 && self.sequences.is_empty();
            in_entry = letter == 0 && (number == 61 || in_entry && number == 86);
            let innermost = self.sequences.last().map_or(&b""[..], |span| span.of(text));
            let place = Place { innermost, cover: in_cover };
            let (mut listed, mut split) = (in_entry && wants.entries != 0, None);
            for want in wants.of(number) {
                if !want.is(letter, value, place) {
                    continue;
                }
                if let Some((group, first)) = want.group {
                    // Entries are without gaps: what stands behind one is none of its fields.
                    let open = &mut self.open[usize::from(group)];
                    if !first && open.is_none_or(|last| last + 1 < i as u32) {
                        continue;
                    }
                    *open = Some(i as u32);
                }
                listed = true;
                let open =
                    want.slot != 0 && (want.group.is_some() || self.slots[usize::from(want.slot)].is_none());
                if !open {
                    continue;
                }
                let whole = (base + token.start as usize, base + token.end as usize);
                let found = match &want.part {
                    PartOf::Whole => Some(Found::at(whole, Is::Part(Kind::Lines))),
                    part => {
                        let result =
                            *split.get_or_insert_with(|| parts::split_field(token, text, &mut self.parts));
                        values::part(part, result, &self.parts, value, whole)
                    }
                };
                let index = found.map(|found| push(&mut self.found, found));
                match want.group {
                    None => self.slots[usize::from(want.slot)] = index,
                    Some((group, first)) => {
                        let hit = Hit { group, first, slot: want.slot, token: i as u32, found: index };
                        self.hits.push(hit);
                    }
                }
            }
            if wants.time != 0 {
                time.see(number, letter, i, value);
            }
            match (number, letter) {
                (16, b'R') => {
                    self.sequences.push(Span { start: token.start as usize, end: token.end as usize })
                }
                (16, b'S') => {
                    self.sequences.pop_if(|span| span.of(text) == value);
                }
                _ if !listed && wants.keeps => self.unlisted.push((name_key(token, text), i as u32, 0)),
                _ => {}
            }
        }
        if wants.time != 0 {
            let at = |i: usize| &tokens[i];
            let found = time.best(text, base, at, message, buf, &mut self.parts);
            self.slots[usize::from(wants.time)] = found.map(|found| push(&mut self.found, found));
        }
        if wants.entries != 0 && tokens.iter().any(|token| token.tag == Tag::new(b"61")) {
            let span = (base, message.text().end);
            self.slots[usize::from(wants.entries)] =
                Some(push(&mut self.found, Found::at(span, Is::Entries)));
        }
        number_repeats(&mut self.unlisted);
    }

    /// What is told outside the text: type, and blocks 1, 2, 3 and 5. Gives the variant.
    fn blocks(
        &mut self,
        wants: &Wants,
        message: &unitape_codec::swift_mt::Message,
        buf: &[u8],
        kind: MsgType,
    ) -> Option<Span> {
        self.kind.clear();
        let category = match kind {
            MsgType::Mt(number) => {
                _ = write!(self.kind, "{number:03}");
                Some(b'0' + (number / 100) as u8)
            }
            MsgType::Unknown => None,
            other => {
                _ = write!(self.kind, "{other}");
                None
            }
        };
        if wants.kind != 0 && !self.kind.is_empty() {
            self.slots[usize::from(wants.kind)] = Some(push(&mut self.found, Found::at((0, 0), Is::Kind)));
        }
        if wants.category != 0
            && let Some(category) = category
        {
            let found = Found::at((0, 0), Is::Letter(category));
            self.slots[usize::from(wants.category)] = Some(push(&mut self.found, found));
        }
        if wants.ack != 0
            && let Some(refused) = message.refused(buf)
        {
            let found = Found::at((0, 0), Is::Ack(refused));
            self.slots[usize::from(wants.ack)] = Some(push(&mut self.found, found));
        }
        let in_block = |block: usize, tag: &[u8]| {
            let span = message.block(block)?;
            let token = sub_blocks(span.of(buf)).find(|token| token.name(span.of(buf)) == tag)?;
            Some(Span { start: span.start + token.start as usize, end: span.start + token.end as usize })
        };
        let variant = in_block(3, b"119");
        if wants.variant != 0
            && let Some(span) = variant
        {
            let found = Found::at((span.start, span.end), Is::Part(Kind::Text));
            self.slots[usize::from(wants.variant)] = Some(push(&mut self.found, found));
        }
        for want in &wants.blocks {
            let found = match want.block {
                1 | 2 => message.block(usize::from(want.block)).and_then(|span| {
                    let content = span.of(buf);
                    let known = header(usize::from(want.block), content, &mut self.parts);
                    values::of_header(&want.part, known, &self.parts, content, span)
                }),
                block => in_block(usize::from(block), want.part.as_bytes())
                    .map(|span| Found::at((span.start, span.end), Is::Part(Kind::Text))),
            };
            self.slots[usize::from(want.slot)] = found.map(|found| push(&mut self.found, found));
        }
        variant
    }
}

fn push(found: &mut Vec<Found>, one: Found) -> Index {
    found.push(one);
    Index::new(found.len() as u32).expect("one at least, and fewer than bytes in a message")
}

/// A number that tells names of unlisted fields apart; two names of one number count as one when they repeat.
fn name_key(token: &Token, text: &[u8]) -> u64 {
    let mut key = 0xcbf2_9ce4_8422_2325u64;
    for byte in token.name(text).iter().chain(qualifier(token.of(text)).unwrap_or_default()) {
        key = (key ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    key
}

/// `SETR` of `:SETR//TRAD`.
fn qualifier(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b':', a, b, c, d, b'/', ..] if [a, b, c, d].iter().all(|x| x.is_ascii_alphanumeric()) => {
            Some(&value[1..5])
        }
        _ => None,
    }
}

/// Counts how often each name was there before, and leaves them in order.
fn number_repeats(unlisted: &mut [(u64, u32, u32)]) {
    unlisted.sort_unstable();
    for i in 1..unlisted.len() {
        if unlisted[i].0 == unlisted[i - 1].0 {
            unlisted[i].2 = unlisted[i - 1].2 + 1;
        }
    }
    unlisted.sort_unstable_by_key(|u| u.1);
}

/// Fields that may tell the event time, as far as they have been seen: index and one more.
#[derive(Default)]
struct TimeSeen {
    made: Option<usize>,
    closing: Option<usize>,
    opening: Option<usize>,
    value: Option<usize>,
    settled: Option<usize>,
    line: Option<usize>,
}

impl TimeSeen {
    #[inline]
    fn see(&mut self, number: u8, letter: u8, i: usize, value: &[u8]) {
        let place = match (number, letter) {
            (13, b'D') => &mut self.made,
            (98, b'A' | b'C' | b'E') if value.starts_with(b":PREP/") => &mut self.made,
            (62, _) => &mut self.closing,
            (60, _) => &mut self.opening,
            (32, b'A') => &mut self.value,
            (98, b'A' | b'C') if value.starts_with(b":SETT/") => &mut self.settled,
            (61, 0) => &mut self.line,
            _ => return,
        };
        *place = place.or(Some(i));
    }

    fn best<'t>(
        &self,
        text: &[u8],
        base: usize,
        at: impl Fn(usize) -> &'t Token,
        message: &unitape_codec::swift_mt::Message,
        buf: &[u8],
        parts: &mut Parts,
    ) -> Option<Found> {
        let of_token = |i: usize, parts: &mut Parts| {
            let token = at(i);
            let whole = (base + token.start as usize, base + token.end as usize);
            let known = parts::split_field(token, text, parts);
            values::part(&PartOf::Moment, known, parts, token.of(text), whole)
        };
        if let Some(i) = self.made.or(self.closing).or(self.opening) {
            return of_token(i, parts);
        }
        let sent = message.block(2).and_then(|span| {
            let known = header(2, span.of(buf), parts);
            // A block 2 without a time, or of no known form, tells none.
            values::of_header("moment", known, parts, span.of(buf), span).filter(Found::is_moment)
        });
        sent.or_else(|| self.value.or(self.settled).or(self.line).and_then(|i| of_token(i, parts)))
    }
}

/// The message in hand.
struct Taken<'m> {
    raw: &'m [u8],
    /// What offsets are into.
    buf: &'m [u8],
    text: &'m [u8],
    tokens: &'m [Token],
    noted: &'m Noted,
}

impl Taken<'_> {
    #[inline]
    fn found(&self, index: Index) -> &Found {
        &self.noted.found[index.get() as usize - 1]
    }
}

impl Message for Taken<'_> {
    type Ref = Index;
    const FIELD: &'static str = "field";
    const TYPE: &'static str = "message type";
    const TIME: &'static str = "day or time of its tag's form";

    fn raw(&self) -> &[u8] {
        self.raw
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<Index> {
        self.noted.slots[usize::from(slot)]
    }

    fn text<'v>(&'v self, index: Index, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        let found = self.found(index);
        match found.is {
            Is::Kind => self.noted.kind.as_bytes(),
            Is::Letter(_) => found.letter(),
            Is::Ack(true) => b"NAK",
            Is::Ack(false) => b"ACK",
            // For people: the line that is not of its form.
            Is::Entries => match entries(self.text, self.tokens, scratch) {
                Ok(_) => scratch,
                Err((i, _)) => self.tokens[i].of(self.text),
            },
            _ => found.text(self.buf, scratch),
        }
    }

    fn time(&self, index: Index) -> Option<UnixNanos> {
        self.found(index).nanos(self.buf).map(UnixNanos)
    }

    fn set(
        &self,
        index: Index,
        event: &mut EventBuilder<'_>,
        spec: &Spec,
        names: &mut crate::block::Names<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let found = self.found(index);
        match (found.is, spec.slot) {
            (Is::Invalid, _) => Err(Refusal::BadValue),
            (Is::Entries, Slot::Json) => {
                scratch.clear();
                let told = entries(self.text, self.tokens, scratch).map_err(|_| Refusal::BadValue)?;
                let json = std::str::from_utf8(scratch).map_err(|_| Refusal::BadValue)?;
                if told { event.set(spec, Value::Json(json)) } else { Ok(()) }
            }
            _ => event.set_text(spec, self.text(index, scratch), names),
        }
    }

    fn next_entry(
        &self,
        group: usize,
        cursor: &mut Cursor,
        entry: &mut [Option<Index>],
    ) -> Result<bool, Refused> {
        let hits = &self.noted.hits;
        let of_group = |hit: &Hit| usize::from(hit.group) == group;
        let Some(start) = (cursor.at..hits.len()).find(|&i| of_group(&hits[i]) && hits[i].first) else {
            return Ok(false);
        };
        let mut at = start;
        while let Some(hit) = hits.get(at) {
            if of_group(hit) {
                // The next entry begins.
                if hit.first && hit.token != hits[start].token {
                    break;
                }
                let slot = &mut entry[usize::from(hit.slot)];
                *slot = slot.or(hit.found);
            }
            at += 1;
        }
        *cursor = Cursor { at, found: cursor.found + 1 };
        Ok(true)
    }

    fn unlisted(&self, mut keep: impl FnMut(&str, &[u8]) -> Result<(), Refused>) -> Result<(), Refused> {
        let mut name = String::new();
        let mut scratch = Vec::new();
        for &(_, i, nth) in &self.noted.unlisted {
            let token = &self.tokens[i as usize];
            let value = token.of(self.text);
            name.clear();
            name.push_str(&String::from_utf8_lossy(token.name(self.text)));
            if let Some(qualifier) = qualifier(value) {
                _ = write!(name, ":{}", String::from_utf8_lossy(qualifier));
            }
            if nth > 0 {
                _ = write!(name, "#{}", nth + 1);
            }
            let whole = Found::at((token.start as usize, token.end as usize), Is::Part(Kind::Lines));
            keep(&name, whole.text(self.text, &mut scratch))?;
        }
        Ok(())
    }
}
