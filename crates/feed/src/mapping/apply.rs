//! Messages to events, by a compiled plan.
//!
//! A message is all or nothing: if one field of one event is refused, the whole message goes into quarantine
//! with the field named.

use super::entries::next_entry;
use super::explain::Explainer;
use super::instruments::{by_venue, is_looked_up, set_looked_up};
use super::plan::{BestPicks, Cond, EventPlan, FieldPlan, From, Plan, Src, TypeRules, Way};
use super::seam::{Cursor, Message, Refused};
use super::{Otherwise, plan};
use crate::block::json::write_json;
use crate::block::numbers::Numbering;
use crate::block::{Block, Names, SessionKey, What};
use crate::reference::{AsTheyAre, ByReference, Instruments};
use unitape_model::event::EventValue;
use unitape_model::{Dictionary, EventBuilder, FrameHeader, Price, Refusal, UnixNanos, flags, words};

/// Makes events of messages; one per worker and feed. `R` finds a value of a message.
#[derive(Debug)]
pub struct Mapper<R> {
    pub(super) plan: Plan,
    /// The group entry in hand.
    entry: Vec<Option<R>>,
    picks: Vec<Option<R>>,
    pub(super) scratch: Scratch,
    session: Vec<u8>,
    /// What few feeds need.
    aside: Option<Box<Aside>>,
}

/// What few feeds need: one look at every message tells those that need none of it.
#[derive(Debug, Default)]
struct Aside {
    /// Notes what was done and why, where somebody asks.
    explainer: Option<Box<Explainer>>,
    /// Looks names of instruments up.
    by: Option<ByReference>,
}

/// Where texts are put together.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// A value as its format's plain text.
    pub plain: Vec<u8>,
    /// A value with its suffix.
    pub whole: Vec<u8>,
}

/// Where a message came from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Id of the source's definition.
    pub source: u32,
    /// Offset of the message in the source.
    pub offset: u64,
}

/// What a message became.
#[derive(Debug)]
pub(super) enum Outcome {
    Ignored,
    #[allow(missing_docs)]
    Events {
        ts: UnixNanos,
        count: u32,
    },
}

impl<R: Copy> Mapper<R> {
    /// A mapper by this plan.
    pub fn new(plan: Plan) -> Self {
        let by = plan.reference.clone().map(ByReference::new);
        Self {
            entry: vec![None; plan.entry_slots.iter().copied().max().unwrap_or(0)],
            picks: vec![None; plan.picks.len()],
            plan,
            scratch: Scratch::default(),
            session: Vec::new(),
            aside: by.map(|by| Box::new(Aside { by: Some(by), explainer: None })),
        }
    }

    /// What notes what was done and why; empty until somebody asks.
    pub(crate) fn explainer(&mut self) -> &mut Option<Box<Explainer>> {
        &mut self.aside.get_or_insert_default().explainer
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Makes of one message what its rule says: events, nothing, or an entry of the quarantine.
    #[inline]
    pub fn message<M: Message<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        origin: Origin,
        known: &Dictionary,
    ) {
        let mark = block.mark();
        let possdup = self.plan.possdup.and_then(|slot| message.slot(slot));
        let maybe = possdup.is_some_and(|v| message.text(v, &mut self.scratch.plain) == b"Y");
        let outcome = match self.aside {
            None => self.apply(block, message, origin, known, AsTheyAre),
            Some(_) => self.apply_aside(block, message, origin, known),
        };
        match outcome {
            Ok(Outcome::Ignored) => {
                self.note_sequence(block, message, maybe, true);
                block.end_ignored();
            }
            Ok(Outcome::Events { ts, count }) => {
                let what = match self.note_sequence(block, message, maybe, true) {
                    Some(run) => What::Numbered { run, maybe },
                    None => What::Events,
                };
                block.end_message((origin.offset, message.raw().len()), ts, count, what, known);
            }
            Err(refused) => {
                block.back_to(mark);
                self.note_sequence(block, message, maybe, !refused.is_garbled());
                let concern = self.concern(message);
                let place = (origin.source, origin.offset);
                block.quarantine_about(place, message.raw(), refused.code, &refused.detail, &concern);
            }
        }
    }

    /// The same with what few feeds need.
    #[inline(never)]
    fn apply_aside<M: Message<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        origin: Origin,
        known: &Dictionary,
    ) -> Result<Outcome, Refused> {
        let Some(mut aside) = self.aside.take() else { unreachable!("asked for it") };
        let outcome = match &mut aside.by {
            None => self.apply(block, message, origin, known, AsTheyAre),
            Some(by) => {
                let outcome = self.apply(block, message, origin, known, &mut *by);
                if by.missed() && matches!(outcome, Ok(Outcome::Events { .. })) {
                    block.note_unresolved();
                }
                outcome
            }
        };
        if let Some(explainer) = &mut aside.explainer {
            explainer.note(&self.plan, message, (origin, block.units.len()), &outcome);
        }
        self.aside = Some(aside);
        outcome
    }

    /// Notes the message's number; one that is not `whole` may restart its session and has no number. Gives the run that
    /// it is in.
    fn note_sequence<M: Message<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        maybe: bool,
        whole: bool,
    ) -> Option<u32> {
        let slot = self.plan.possdup.and(self.plan.sequence)?;
        let sequence = message.slot(slot).and_then(|v| message.number(v))?;
        let mut numbering = message.numbering(message.slot(self.plan.message_type), sequence, maybe);
        if !whole {
            match &mut numbering {
                Numbering::Counts | Numbering::Fills => return None,
                Numbering::Restarts { counts, .. } => *counts = false,
            }
        }
        // Two short names, as they mostly are, are looked up as they stand.
        let mut key = SessionKey::default();
        let short = match &self.plan.session[..] {
            slots @ ([_] | [_, _]) => slots.iter().enumerate().all(|(i, slot)| match message.slot(*slot) {
                Some(value) => key.put(i, message.text(value, &mut self.scratch.plain)),
                None => true,
            }),
            _ => false,
        };
        if let Some(id) = short.then(|| block.session(&key)).flatten() {
            return Some(block.note_sequence(id, sequence, numbering));
        }
        let mut session = std::mem::take(&mut self.session);
        session.clear();
        for (i, slot) in self.plan.session.iter().enumerate() {
            if i > 0 {
                // What ends a field on the wire stands in no value, so that A and B>C are not A>B and C.
                session.push(1);
            }
            if let Some(value) = message.slot(*slot) {
                session.extend_from_slice(message.text(value, &mut self.scratch.plain));
            }
        }
        let id = block.session_named(&session, short.then_some(&key));
        self.session = session;
        Some(block.note_sequence(id, sequence, numbering))
    }

    #[inline]
    fn apply<M: Message<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        origin: Origin,
        known: &Dictionary,
        by: impl Instruments,
    ) -> Result<Outcome, Refused> {
        let Self { plan, entry, picks, scratch, .. } = self;
        let plan = &*plan;
        let view = View { message, picks: &[], entry: &[] };
        let found = message.slot(plan.message_type);
        let message_type = found.map_or(&b""[..], |v| message.text(v, &mut scratch.whole));
        let rules = match plan.of_type(message_type) {
            Some(TypeRules { codes: Some(codes), .. }) => {
                let found = message.slot(codes.slot());
                codes.get(found.map(|v| message.text(v, &mut scratch.plain)))
            }
            Some(of_type) => &of_type.rules,
            None => &plan.untyped,
        };
        let mut rules = rules.iter().map(|&i| &plan.rules[i]);
        let Some(rule) = rules.find(|r| view.holds(&r.when, &mut scratch.plain)) else {
            return Err(Refused {
                code: "no_rule",
                detail: format!(
                    "no rule of the mapping is for {} {}",
                    M::TYPE,
                    String::from_utf8_lossy(message_type)
                ),
            });
        };
        if rule.ignore {
            return Ok(Outcome::Ignored);
        }
        let ts = event_time(plan, message, &mut scratch.plain)?;
        fill_picks(plan, rule, message, (entry, picks), &mut scratch.plain)?;
        let view = View { picks, ..view };
        let sequence = plan.sequence.and_then(|s| message.slot(s)).and_then(|v| message.number(v));
        let mut writer = Writer { block, plan, origin, ts, sequence, known, scratch, count: 0, last: 0, by };
        // Events of the same group stay together, entry by entry, because the order of entries is feed order.
        for events in rule.events.chunk_by(|a, b| a.each.is_some() && a.each == b.each) {
            let Some(group) = events[0].each else {
                if view.is_wanted(&events[0], &mut writer.scratch.plain) {
                    writer.event(&events[0], &view)?;
                }
                continue;
            };
            let mut cursor = Cursor::default();
            while next_entry(plan, message, group, &mut cursor, entry)? {
                let view = View { entry, ..view };
                for event in events {
                    if view.is_wanted(event, &mut writer.scratch.plain) {
                        writer.event(event, &view)?;
                    }
                }
            }
        }
        match writer.count {
            0 => Err(Refused { code: "no_event", detail: "no condition of the rule holds".to_owned() }),
            count => {
                let last = writer.last;
                mark_last(&mut block.arena[last..]);
                Ok(Outcome::Events { ts, count })
            }
        }
    }
}

/// The message in hand, with what was picked out of its groups and the entry in hand (empty outside one).
pub(super) struct View<'m, M: Message> {
    pub message: &'m M,
    pub picks: &'m [Option<M::Ref>],
    pub entry: &'m [Option<M::Ref>],
}

impl<M: Message> Clone for View<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Message> Copy for View<'_, M> {}

type Slots<'s, M> = &'s mut [Option<<M as Message>::Ref>];

/// A value: of the message, or the mapping's own.
pub(super) enum Found<'p, R> {
    Value(R),
    Const(&'p [u8]),
}

impl<'m, M: Message> View<'m, M> {
    /// The value of the message; none where it is not there, or is the mapping's own.
    #[inline]
    fn value(&self, from: Src) -> Option<M::Ref> {
        match from {
            Src::Message(slot) => self.message.slot(slot),
            Src::Entry(slot) => *self.entry.get(usize::from(slot))?,
            Src::Pick(i) => *self.picks.get(usize::from(i))?,
            Src::Const => None,
        }
    }

    #[inline]
    pub(super) fn get<'p>(&self, from: &'p From) -> Option<Found<'p, M::Ref>> {
        match from {
            From::Message(slot) => self.message.slot(*slot).map(Found::Value),
            From::Entry(slot) => (*self.entry.get(usize::from(*slot))?).map(Found::Value),
            From::Pick(i) => self.picks[usize::from(*i)].map(Found::Value),
            From::Const(value) => Some(Found::Const(value)),
        }
    }

    #[inline]
    pub(super) fn text<'v>(&self, found: Found<'v, M::Ref>, scratch: &'v mut Vec<u8>) -> &'v [u8]
    where
        'm: 'v,
    {
        match found {
            Found::Value(value) => self.message.text(value, scratch),
            Found::Const(value) => value,
        }
    }

    /// Whether the event is one of this message or entry.
    #[inline]
    pub(super) fn is_wanted(&self, event: &EventPlan, scratch: &mut Vec<u8>) -> bool {
        self.holds(&event.when, scratch)
            && (event.some_of.is_empty() || event.some_of.iter().any(|from| self.get(from).is_some()))
    }

    #[inline]
    pub(super) fn holds(&self, when: &[Cond], scratch: &mut Vec<u8>) -> bool {
        when.iter().all(|c| match self.get(&c.from) {
            Some(v) => c.value.is(self.text(v, scratch)),
            None => c.value.is_absent(),
        })
    }
}

/// Writes the events of one message.
struct Writer<'w, I> {
    block: &'w mut Block,
    plan: &'w Plan,
    origin: Origin,
    ts: UnixNanos,
    sequence: Option<u64>,
    known: &'w Dictionary,
    scratch: &'w mut Scratch,
    count: u32,
    /// Where the last event starts in the arena.
    last: usize,
    /// What instruments get their ids by; nothing at all where names are as they are.
    by: I,
}

impl<I: Instruments> Writer<'_, I> {
    fn event<M: Message>(&mut self, plan: &EventPlan, view: &View<'_, M>) -> Result<(), Refused> {
        let Scratch { plain, whole } = &mut *self.scratch;
        let (arena, mut names) = self.block.builder(self.known);
        let mut e = EventBuilder::begin(arena, plan.kind, self.ts);
        e.source(self.origin.source, self.origin.offset as u32);
        if let Some(sequence) = self.sequence {
            e.sequence(sequence);
        }
        by_venue(self.plan, plan, view, (&mut self.by, self.ts), (plain, whole));
        for (i, op) in plan.ops.iter().enumerate() {
            if is_looked_up::<I>(op) {
                let to = (&mut e, &mut names, &mut self.by);
                set_looked_up(self.plan, &plan.fields[i], view, to, (plain, whole))?;
                continue;
            }
            if let Way::Ready(ready) = op.way {
                e.set_ready(ready);
                continue;
            }
            let value = view.value(op.from).or_else(|| op.or.and_then(|from| view.value(from)));
            let Some(value) = value else {
                if op.from == Src::Const {
                    set_long(self.plan, &plan.fields[i], view, (&mut e, &mut names), (plain, whole))?;
                } else if op.required {
                    return Err(refused::<M>(Refusal::Missing, &plan.fields[i], b""));
                }
                continue;
            };
            let set = match op.way {
                Way::AsItIs => view.message.set(value, &mut e, op.spec, &mut names, plain),
                Way::Coded(codes) => {
                    match plan.codes[usize::from(codes)].get(view.message.text(value, plain)) {
                        Some(ready) => e.set_ready(ready),
                        None => {
                            set_long(self.plan, &plan.fields[i], view, (&mut e, &mut names), (plain, whole))?
                        }
                    }
                    continue;
                }
                Way::Time => match view.message.time(value) {
                    Some(ts) => e.set(op.spec, EventValue::Nanos(ts)),
                    None => Err(Refusal::BadTime),
                },
                Way::Text | Way::Ready(_) => {
                    set_long(self.plan, &plan.fields[i], view, (&mut e, &mut names), (plain, whole))?;
                    continue;
                }
            };
            if let Err(refusal) = set {
                let field = &plan.fields[i];
                let refused = refused::<M>(refusal, field, view.message.text(value, plain));
                return Err(with_flaw(refused, view.message, value));
            }
        }
        let mut keep = |name: &str, value: &[u8]| {
            let kept = e.keep_unmapped_with(name, |out| write_json(out, value));
            kept.map_err(|r| Refused { code: r.code(), detail: format!("{name}: {r}") })
        };
        for (name, from) in &plan.keep {
            if let Some(found) = view.get(from) {
                if let Found::Value(value) = found
                    && !view.message.is_of_form(value)
                {
                    let (refusal, shown) = (Refusal::BadValue, shown(view.message.text(value, plain)));
                    let detail = format!("{name}: {refusal}: {shown}");
                    return Err(with_flaw(Refused { code: refusal.code(), detail }, view.message, value));
                }
                keep(name, view.text(found, plain))?;
            }
        }
        for (name, slot) in &plan.keep_entry {
            if let Some(found) = view.get(&From::Entry(*slot)) {
                keep(name, view.text(found, plain))?;
            }
        }
        // What nothing names is the message's, not the entry's: it stands once, in the first event.
        if self.plan.keeps && self.count == 0 {
            view.message.unlisted(keep)?;
        }
        self.last = e.finish(0).map_err(|r| Refused { code: r.code(), detail: r.to_string() })?;
        self.count += 1;
        Ok(())
    }
}

/// Sets a field by way of its text, through its table and with its suffix.
#[inline(never)]
fn set_long<M: Message>(
    plan: &Plan,
    field: &FieldPlan,
    view: &View<'_, M>,
    (event, names): (&mut EventBuilder<'_>, &mut Names<'_>),
    (plain, whole): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<(), Refused> {
    let found = view.get(&field.from).or_else(|| field.or.as_ref().and_then(|f| view.get(f)));
    let Some(found) = found else { return Ok(()) };
    if let Found::Value(value) = found
        && !view.message.is_of_form(value)
    {
        let refused = refused::<M>(Refusal::BadValue, field, view.message.text(value, plain));
        return Err(with_flaw(refused, view.message, value));
    }
    let value = view.text(found, plain);
    match translate::<M>(plan, field, value, whole)? {
        Some(value) => event.set_text(field.spec, value, names).map_err(|r| refused::<M>(r, field, value)),
        None => Ok(()),
    }
}

pub(super) fn event_time<M: Message>(
    plan: &Plan,
    message: &M,
    scratch: &mut Vec<u8>,
) -> Result<UnixNanos, Refused> {
    let Some(value) = plan.ts.iter().find_map(|s| message.slot(*s)) else {
        return Err(Refused { code: Refusal::BadTime.code(), detail: "no event time".to_owned() });
    };
    message.time(value).ok_or_else(|| {
        let detail = format!("event time: {} is no {}", shown(message.text(value, scratch)), M::TIME);
        with_flaw(Refused { code: Refusal::BadTime.code(), detail }, message, value)
    })
}

/// The same with what is wrong in the value, where the format knows.
#[cold]
fn with_flaw<M: Message>(mut refused: Refused, message: &M, value: M::Ref) -> Refused {
    if let Some(flaw) = message.flaw(value) {
        refused.detail.push_str("; ");
        refused.detail.push_str(&flaw);
    }
    refused
}

pub(super) fn fill_picks<M: Message>(
    plan: &Plan,
    rule: &plan::Rule,
    message: &M,
    (entry, picks): (Slots<'_, M>, Slots<'_, M>),
    scratch: &mut Vec<u8>,
) -> Result<(), Refused> {
    picks.fill(None);
    for &group in &rule.pick_groups {
        let mut cursor = Cursor::default();
        while next_entry(plan, message, group, &mut cursor, entry)? {
            for keys in &plan.group_picks[group] {
                let Some(key) = entry[usize::from(keys.key)] else { continue };
                let key = message.text(key, scratch);
                let word = words::word(key);
                for (is, value, i) in &keys.firsts {
                    if is.is_word(word, key) {
                        let found = &mut picks[usize::from(*i)];
                        *found = found.or(entry[usize::from(*value)]);
                    }
                }
                for best in keys.bests.iter().filter(|best| best.is.is_word(word, key)) {
                    if is_better(best, message, entry, picks)? {
                        for (value, i) in &best.values {
                            picks[usize::from(*i)] = entry[usize::from(*value)];
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether an entry is better than the one whose values were picked so far. One with a number is better than one without.
///
/// # Errors
/// The entry's number is none: which entry is the best cannot be known.
fn is_better<M: Message>(
    best: &BestPicks,
    message: &M,
    entry: &[Option<M::Ref>],
    picks: &[Option<M::Ref>],
) -> Result<bool, Refused> {
    let number = |value: M::Ref| {
        let mut scratch = Vec::new();
        let text = message.text(value, &mut scratch);
        Price::parse(text).map_err(|error| {
            let refusal = Refusal::from(error);
            let detail = format!("the number by which the best entry is found: {}: {refusal}", shown(text));
            Refused { code: refusal.code(), detail }
        })
    };
    let Some(new) = entry[usize::from(best.best.by)] else {
        return Ok(best.values.iter().all(|(_, i)| picks[usize::from(*i)].is_none()));
    };
    let new = number(new)?;
    let Some(known) = picks[usize::from(best.number)] else { return Ok(true) };
    Ok(new.cmp(&number(known)?) == best.best.wanted)
}

/// The value after its table and suffix; `None` when it is to be left out.
pub(super) fn translate<'v, M: Message>(
    plan: &'v Plan,
    field: &FieldPlan,
    value: &'v [u8],
    text: &'v mut Vec<u8>,
) -> Result<Option<&'v [u8]>, Refused> {
    let value = match &field.table {
        None => value,
        Some((table, otherwise)) => match (plan.tables[*table].get(value), otherwise) {
            (Some(v), _) => v,
            (None, Some(Otherwise::Keep)) => value,
            (None, Some(Otherwise::Omit)) => return Ok(None),
            (None, None) => return Err(refused_as::<M>("unknown_value", Refusal::BadValue, field, value)),
        },
    };
    let value = if field.absolute { value.strip_prefix(b"-").unwrap_or(value) } else { value };
    let Some(suffix) = &field.suffix else { return Ok(Some(value)) };
    text.clear();
    text.extend_from_slice(value);
    text.extend_from_slice(suffix);
    Ok(Some(text))
}

/// A value behind its table, without a suffix; `None` where it is left out or refused.
pub(crate) fn translate_const<'v>(plan: &'v Plan, field: &FieldPlan, value: &'v [u8]) -> Option<&'v [u8]> {
    let Some((table, otherwise)) = &field.table else { return Some(value) };
    plan.tables[*table].get(value).or(match otherwise {
        Some(Otherwise::Keep) => Some(value),
        _ => None,
    })
}

pub(super) fn refused<M: Message>(r: Refusal, field: &FieldPlan, value: &[u8]) -> Refused {
    refused_as::<M>(r.code(), r, field, value)
}

#[cold]
fn refused_as<M: Message>(code: &'static str, r: Refusal, field: &FieldPlan, value: &[u8]) -> Refused {
    let name = field.spec.field.name();
    // An instrument that a symbol table does not know is what users look for first.
    let code =
        if code == "unknown_value" && matches!(name, "instr" | "index") { "unknown_symbol" } else { code };
    Refused { code, detail: format!("{name} ({} {}): {r}: {}", M::FIELD, field.path, shown(value)) }
}

/// Outside text in a message for people: at most 60 bytes, nothing unprintable.
pub fn shown(value: &[u8]) -> String {
    let cut = &value[..value.len().min(60)];
    format!("\"{}\"{}", cut.escape_ascii(), if cut.len() < value.len() { "…" } else { "" })
}

fn mark_last(frame: &mut [u8]) {
    FrameHeader::read(frame).with_flags(flags::LAST).write(frame);
}
