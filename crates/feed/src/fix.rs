//! FIX messages to events, by a compiled mapping.
//!
//! One pass over the fields of a message notes, slot by slot, which field stands where; rules, conditions and
//! events then look at slots only. A message is all or nothing: if one field of one event is refused, the
//! whole message goes into quarantine with the field named.

use crate::block::Block;
use crate::error::Error;
use crate::mapping::{Cond, EventPlan, FieldPlan, From, GroupPlan, KEEP, Mapping, Plan, Rule, Unlisted};
use std::fmt::Write;
use unitape_codec::fix::{Frame, Framer, Token, Tokens, value};
use unitape_model::{Dictionary, EventBuilder, Refusal, UnixNanos, flags};

/// Decodes blocks of FIX; one per worker and feed.
#[derive(Debug)]
pub struct FixDecoder {
    framer: Framer,
    plan: Plan,
    keeps: bool,
    tokens: Tokens,
    /// Index + 1 of the token in each slot of the message, 0 none.
    slots: Vec<u16>,
    /// The same for the group entry in hand.
    entry: Vec<u16>,
    /// The same for the picks.
    picks: Vec<u16>,
    /// Tokens that nothing names and that are kept.
    unlisted: Vec<u16>,
    session: Vec<u8>,
    text: Vec<u8>,
    detail: String,
}

/// Fields of a message; slots hold their index and one more in 16 bits.
const FIELDS_MAX: usize = u16::MAX as usize - 1;

/// The name of a session as it came, in bytes; a longer one is told by its hash.
const SESSION_BYTES_MAX: usize = 128;

/// Why a message was refused; the words go into quarantine.
struct Refused {
    code: &'static str,
    detail: String,
}

enum Outcome {
    Ignored,
    Events { ts: i64, count: u32 },
}

/// The message in hand.
#[derive(Clone, Copy)]
struct Message<'m> {
    bytes: &'m [u8],
    tokens: &'m [Token],
    slots: &'m [u16],
    picks: &'m [u16],
    /// Slots of the group entry in hand; empty outside one.
    entry: &'m [u16],
}

impl FixDecoder {
    /// A decoder for messages of `framer` by `mapping`.
    ///
    /// # Errors
    /// When the mapping cannot be compiled.
    pub fn new(framer: Framer, mapping: &Mapping) -> Result<Self, Error> {
        let plan = Plan::compile(mapping)?;
        Ok(Self {
            framer,
            keeps: mapping.message.unlisted == Unlisted::Keep,
            slots: vec![0; plan.slot_count],
            entry: vec![0; plan.groups.iter().map(|g| g.slot_count).max().unwrap_or(0)],
            picks: vec![0; plan.picks.len()],
            plan,
            tokens: Tokens::new(),
            unlisted: Vec::new(),
            session: Vec::new(),
            text: Vec::new(),
            detail: String::new(),
        })
    }

    /// Where to cut `buf` so that only whole messages stand before the cut; a guess.
    pub fn cut(&self, buf: &[u8]) -> usize {
        self.framer.cut(buf)
    }

    /// Decodes all whole messages of `block`.
    pub fn decode(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let mut at = 0;
        loop {
            let frame = self.tokens.frame(&self.framer, &bytes, at, block.eof);
            let span = match frame {
                Frame::Message(message) => {
                    let raw = message.span.of(&bytes);
                    let offset = block.base + message.span.start as u64;
                    self.message(block, raw, source, offset, known);
                    message.span
                }
                Frame::Bad { span, fault } => {
                    let offset = block.base + span.start as u64;
                    self.detail.clear();
                    _ = write!(self.detail, "{fault}");
                    block.quarantine(source, offset, span.of(&bytes), fault.code().as_str(), &self.detail);
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

    fn message(&mut self, block: &mut Block, raw: &[u8], source: u32, offset: u64, known: &Dictionary) {
        let mark = block.mark();
        let fields = self.tokens.as_slice().len();
        if fields > FIELDS_MAX {
            let detail = format!("{fields} fields, more than {FIELDS_MAX}");
            block.quarantine(source, offset, raw, Refusal::TooLarge.code(), &detail);
            return;
        }
        self.fill_slots(raw);
        match self.apply(block, raw, source, offset, known) {
            Ok(Outcome::Ignored) => {
                self.note_sequence(block, raw, false);
                block.end_ignored();
            }
            Ok(Outcome::Events { ts, count }) => {
                let maybe = self.plan.possdup.is_some_and(|slot| self.value(raw, slot) == Some(b"Y"));
                let noted = self.note_sequence(block, raw, maybe);
                block.end_message((offset, raw.len()), ts, count, maybe && noted);
            }
            Err(refused) => {
                block.back_to(mark);
                self.note_sequence(block, raw, false);
                block.quarantine(source, offset, raw, refused.code, &refused.detail);
            }
        }
    }

    fn fill_slots(&mut self, raw: &[u8]) {
        self.slots.fill(0);
        self.unlisted.clear();
        for (i, token) in self.tokens.as_slice().iter().enumerate() {
            match self.plan.slot(token.tag) {
                0 => {}
                KEEP => self.unlisted.push(i as u16),
                slot => {
                    let s = &mut self.slots[usize::from(slot)];
                    if *s == 0 {
                        *s = i as u16 + 1;
                    }
                }
            }
        }
        debug_assert!(!raw.is_empty());
    }

    fn value<'m>(&self, raw: &'m [u8], slot: u8) -> Option<&'m [u8]> {
        let i = self.slots[usize::from(slot)];
        (i != 0).then(|| self.tokens.as_slice()[usize::from(i) - 1].of(raw))
    }

    fn note_sequence(&mut self, block: &mut Block, raw: &[u8], maybe: bool) -> bool {
        let Some(slot) = self.plan.possdup.and(self.plan.sequence) else { return false };
        let Some(sequence) = self.value(raw, slot).and_then(parse_u64) else { return false };
        let mut session = std::mem::take(&mut self.session);
        session.clear();
        for (i, slot) in self.plan.session.iter().enumerate() {
            if i > 0 {
                session.push(b'>');
            }
            session.extend_from_slice(self.value(raw, *slot).unwrap_or_default());
        }
        // The name stands in every mark of progress: it must be short, and come back from there as it was.
        if session.len() > SESSION_BYTES_MAX || std::str::from_utf8(&session).is_err() {
            let hash = blake3::hash(&session).to_hex();
            session.clear();
            session.extend_from_slice(b"blake3:");
            session.extend_from_slice(hash.as_bytes());
        }
        block.note_sequence(&session, sequence, maybe);
        self.session = session;
        true
    }

    fn apply(
        &mut self,
        block: &mut Block,
        raw: &[u8],
        source: u32,
        offset: u64,
        known: &Dictionary,
    ) -> Result<Outcome, Refused> {
        let Self { plan, tokens, slots, picks, entry, unlisted, text, .. } = self;
        let tokens = tokens.as_slice();
        picks.fill(0);
        let message = Message { bytes: raw, tokens, slots, picks: &[], entry: &[] };
        let msg_type = message.slot(plan.msg_type).unwrap_or_default();
        let rules = plan.rules_for(msg_type).iter().map(|&i| &plan.rules[i]);
        let Some(rule) = rules.into_iter().find(|r| message.holds(&r.when)) else {
            return Err(Refused {
                code: "no_rule",
                detail: format!(
                    "no rule of the mapping is for MsgType {}",
                    String::from_utf8_lossy(msg_type)
                ),
            });
        };
        if rule.ignore {
            return Ok(Outcome::Ignored);
        }
        let ts = event_time(plan, &message)?;
        fill_picks(plan, rule, &message, entry, picks)?;
        let message = Message { picks, ..message };
        let sequence = plan.sequence.and_then(|s| message.slot(s)).and_then(parse_u64);
        let mut writer = Writer {
            block,
            plan,
            source,
            offset,
            ts,
            sequence,
            known,
            text,
            unlisted,
            keeps: self.keeps,
            count: 0,
            last: 0,
        };
        // Events of the same group stay together, entry by entry, because the order of entries is feed order.
        for events in rule.events.chunk_by(|a, b| a.each.is_some() && a.each == b.each) {
            let Some(group) = events[0].each.map(|g| &plan.groups[g]) else {
                if message.holds(&events[0].when) {
                    writer.event(&events[0], &message)?;
                }
                continue;
            };
            each_entry(group, &message, |range| {
                fill_entry(group, tokens, range, entry);
                let message = Message { entry, ..message };
                let mut wanted = events.iter().filter(|e| message.holds(&e.when));
                wanted.try_for_each(|event| writer.event(event, &message))
            })?;
        }
        match writer.count {
            0 => Err(Refused { code: "no_event", detail: "no condition of the rule holds".to_owned() }),
            count => {
                let last = writer.last;
                mark_last(&mut block.arena[last..]);
                Ok(Outcome::Events { ts: ts.0, count })
            }
        }
    }
}

/// Writes the events of one message.
struct Writer<'w> {
    block: &'w mut Block,
    plan: &'w Plan,
    source: u32,
    offset: u64,
    ts: UnixNanos,
    sequence: Option<u64>,
    known: &'w Dictionary,
    text: &'w mut Vec<u8>,
    unlisted: &'w [u16],
    keeps: bool,
    count: u32,
    /// Where the last event starts in the arena.
    last: usize,
}

impl Writer<'_> {
    fn event(&mut self, plan: &EventPlan, message: &Message<'_>) -> Result<(), Refused> {
        let (arena, mut names) = self.block.builder(self.known);
        let mut e = EventBuilder::begin(arena, plan.kind, self.ts);
        e.source(self.source, self.offset as u32);
        if let Some(sequence) = self.sequence {
            e.sequence(sequence);
        }
        for field in &plan.fields {
            let value = message.get(&field.from).or_else(|| field.or.as_ref().and_then(|f| message.get(f)));
            let Some(value) = value else {
                if field.spec.required {
                    return Err(refused(Refusal::Missing, field, b""));
                }
                continue;
            };
            let Some(value) = translate(self.plan, field, value, self.text)? else { continue };
            e.set_text(field.spec, value, &mut names).map_err(|r| refused(r, field, value))?;
        }
        let mut keep = |name: &str, value: &[u8]| {
            let json = json_string(value);
            e.unmapped(name, &json).map_err(|r| Refused { code: r.code(), detail: format!("{name}: {r}") })
        };
        for (name, from) in &plan.keep {
            if let Some(value) = message.get(from) {
                keep(name, value)?;
            }
        }
        for (name, slot) in &plan.keep_entry {
            if let Some(value) = message.get(&From::Entry(*slot)) {
                keep(name, value)?;
            }
        }
        // What nothing names is the message's, not the entry's: it stands once, in the first event.
        if self.keeps && self.count == 0 {
            for &i in self.unlisted {
                let token = message.tokens[usize::from(i)];
                keep(&token.tag.to_string(), token.of(message.bytes))?;
            }
        }
        self.last = e.finish(0).map_err(|r| Refused { code: r.code(), detail: r.to_string() })?;
        self.count += 1;
        Ok(())
    }
}

impl<'m> Message<'m> {
    #[inline]
    fn slot(&self, slot: u8) -> Option<&'m [u8]> {
        self.token(self.slots[usize::from(slot)])
    }

    #[inline]
    fn token(&self, index_and_one: u16) -> Option<&'m [u8]> {
        (index_and_one != 0).then(|| self.tokens[usize::from(index_and_one) - 1].of(self.bytes))
    }

    #[inline]
    fn get<'a>(&self, from: &'a From) -> Option<&'a [u8]>
    where
        'm: 'a,
    {
        match from {
            From::Message(slot) => self.slot(*slot),
            From::Entry(slot) => self.token(*self.entry.get(usize::from(*slot))?),
            From::Pick(i) => self.token(self.picks[*i]),
            From::Const(value) => Some(value),
        }
    }

    fn holds(&self, when: &[Cond]) -> bool {
        when.iter().all(|c| self.get(&c.from) == Some(&c.value))
    }
}

fn event_time(plan: &Plan, message: &Message<'_>) -> Result<UnixNanos, Refused> {
    let Some(text) = plan.ts.iter().find_map(|s| message.slot(*s)) else {
        return Err(Refused { code: Refusal::BadTime.code(), detail: "no event time".to_owned() });
    };
    value::timestamp(text).map(UnixNanos).ok_or_else(|| Refused {
        code: Refusal::BadTime.code(),
        detail: format!("event time: {} is no UTCTimestamp", shown(text)),
    })
}

/// Passes each entry of `group` to `f`, as a range of tokens.
fn each_entry(
    group: &GroupPlan,
    message: &Message<'_>,
    mut f: impl FnMut(std::ops::Range<usize>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let tokens = message.tokens;
    let Some(at) = usize::from(message.slots[usize::from(group.count)]).checked_sub(1) else { return Ok(()) };
    let stated = parse_u64(tokens[at].of(message.bytes));
    let (mut found, mut start) = (0u64, at + 1);
    while tokens.get(start).is_some_and(|t| t.tag == group.delimiter) {
        let more = tokens[start + 1..]
            .iter()
            .take_while(|t| t.tag != group.delimiter && group.members.get(t.tag) != 0)
            .count();
        let end = start + 1 + more;
        f(start..end)?;
        found += 1;
        start = end;
    }
    if stated != Some(found) {
        return Err(Refused {
            code: "group_count",
            detail: format!(
                "group {}: {} stated, {found} entries found",
                group.count_tag,
                shown(tokens[at].of(message.bytes))
            ),
        });
    }
    Ok(())
}

fn fill_entry(group: &GroupPlan, tokens: &[Token], range: std::ops::Range<usize>, entry: &mut [u16]) {
    entry.fill(0);
    for i in range {
        let slot = &mut entry[usize::from(group.members.get(tokens[i].tag))];
        if *slot == 0 {
            *slot = i as u16 + 1;
        }
    }
}

fn fill_picks(
    plan: &Plan,
    rule: &Rule,
    message: &Message<'_>,
    entry: &mut [u16],
    picks: &mut [u16],
) -> Result<(), Refused> {
    for &g in &rule.pick_groups {
        let group = &plan.groups[g];
        each_entry(group, message, |range| {
            fill_entry(group, message.tokens, range, entry);
            for (p, found) in plan.picks.iter().zip(picks.iter_mut()).filter(|(p, _)| p.group == g) {
                if *found == 0 && message.token(entry[usize::from(p.key)]) == Some(&p.is[..]) {
                    *found = entry[usize::from(p.value)];
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The value after its table and suffix; `None` when it is to be left out.
fn translate<'v>(
    plan: &'v Plan,
    field: &FieldPlan,
    value: &'v [u8],
    text: &'v mut Vec<u8>,
) -> Result<Option<&'v [u8]>, Refused> {
    let value = match &field.table {
        None => value,
        Some((table, otherwise)) => match (plan.tables[*table].get(value), otherwise) {
            (Some(v), _) => v,
            (None, Some(crate::mapping::Otherwise::Keep)) => value,
            (None, Some(crate::mapping::Otherwise::Omit)) => return Ok(None),
            (None, None) => return Err(refused_as("unknown_value", Refusal::BadValue, field, value)),
        },
    };
    let Some(suffix) = &field.suffix else { return Ok(Some(value)) };
    text.clear();
    text.extend_from_slice(value);
    text.extend_from_slice(suffix);
    Ok(Some(text))
}

fn refused(r: Refusal, field: &FieldPlan, value: &[u8]) -> Refused {
    refused_as(r.code(), r, field, value)
}

#[cold]
fn refused_as(code: &'static str, r: Refusal, field: &FieldPlan, value: &[u8]) -> Refused {
    let name = field.spec.field.name();
    // An instrument that a symbol table does not know is what users look for first.
    let code =
        if code == "unknown_value" && matches!(name, "instr" | "index") { "unknown_symbol" } else { code };
    Refused { code, detail: format!("{name} (tag {}): {r}: {}", field.tag, shown(value)) }
}

/// Outside text in a message for people: at most 60 bytes, nothing unprintable.
fn shown(value: &[u8]) -> String {
    let cut = &value[..value.len().min(60)];
    format!("\"{}\"{}", cut.escape_ascii(), if cut.len() < value.len() { "…" } else { "" })
}

fn json_string(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => serde_json::Value::from(text).to_string(),
        Err(_) => {
            let hex: String = value.iter().map(|b| format!("{b:02x}")).collect();
            format!("{{\"hex\":\"{hex}\"}}")
        }
    }
}

#[inline]
fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')))
}

fn mark_last(frame: &mut [u8]) {
    unitape_model::Header::read(frame).with_flags(flags::LAST).write(frame);
}
