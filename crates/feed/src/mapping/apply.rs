//! Messages to events, by a compiled plan.
//!
//! A message is all or nothing: if one field of one event is refused, the whole message goes into quarantine
//! with the field named.

use super::entries::next_entry;
use super::explain::MappingExplainer;
use super::format_adapter::{EntryCursor, EntryStep, MessageRefusal, ParsedMessage};
use super::instruments::{LookupTarget, TimedLookup, is_looked_up, set_looked_up, set_venue_and_time};
use super::odd::{ODD_NAME, OddValue, may_be_odd};
use super::partial_quote::PartialQuotePlan;
use super::plan::{
    BestPicks, CompiledRule, EventPlan, FieldPlan, MappingPlan, RuleCondition, SetOp, SlotSource, TypeRules,
    ValueSource,
};
use super::undeclared::{NOTE_NAME, set_text_in_fallback_charset, write_kept};
use super::{UnmatchedPolicy, plan};
use crate::block::json::write_json;
use crate::block::numbers::{REPEAT, SequenceEffect};
use crate::block::{
    Block, BlockMessageKind, BlockNameResolver, EntryTally, MessageOrigin, MessageSpan, SessionNameKey,
};
use crate::reference::{InstrumentLookup, PlainInstruments, ReferenceLookup};
use std::cell::{Cell, RefCell};
use unitape_model::event::EventValue;
use unitape_model::{Dictionary, EventBuilder, FrameHeader, Price, Refusal, UnixNanos, flags, words};

/// Makes events of messages; one per worker and feed. `R` finds a value of a message.
#[derive(Debug)]
pub struct MessageMapper<R> {
    pub(super) plan: MappingPlan,
    /// The current group entry.
    entry_values: Vec<Option<R>>,
    picked_values: Vec<Option<R>>,
    pub(super) scratch: TextScratch,
    session: Vec<u8>,
    /// Entries of the current message.
    entries: EntryTally,
    /// Parts that few feeds need.
    extras: Option<Box<MapperExtras>>,
}

/// Parts that few feeds need. They are boxed, so that a feed without them makes one check for each message.
#[derive(Debug, Default)]
struct MapperExtras {
    /// Notes actions and reasons, if a caller asks for explanations.
    explainer: Option<Box<MappingExplainer>>,
    /// Looks names of instruments up.
    instrument_lookup: Option<ReferenceLookup>,
}

/// Buffers in which texts are put together.
#[derive(Debug, Default)]
pub(super) struct TextScratch {
    /// A value as its format's plain text.
    pub value_text: Vec<u8>,
    /// A value with its suffix.
    pub suffixed_text: Vec<u8>,
    /// Whether the current event has text with a guessed character set.
    pub was_guessed: Cell<bool>,
    /// The event's optional values that do not have the form of their field, each with its fault.
    pub odd_values: RefCell<Vec<OddValue>>,
}

/// The outcome of a message.
#[derive(Debug)]
pub(super) enum MappingOutcome {
    Ignored,
    #[allow(missing_docs)]
    Events {
        ts: UnixNanos,
        count: u32,
    },
}

impl<R: Copy> MessageMapper<R> {
    /// Makes a mapper for this plan.
    pub fn new(plan: MappingPlan) -> Self {
        let lookup = plan.instrument_master.clone().map(ReferenceLookup::new);
        Self {
            entry_values: vec![None; plan.entry_slot_counts.iter().copied().max().unwrap_or(0)],
            picked_values: vec![None; plan.picks.len()],
            plan,
            scratch: TextScratch::default(),
            session: Vec::new(),
            entries: EntryTally::default(),
            extras: lookup.map(|reference_lookup| {
                Box::new(MapperExtras { instrument_lookup: Some(reference_lookup), explainer: None })
            }),
        }
    }

    /// Returns the slot of the explainer that notes actions and reasons; empty until a caller asks for explanations.
    pub(crate) fn explainer(&mut self) -> &mut Option<Box<MappingExplainer>> {
        &mut self.extras.get_or_insert_default().explainer
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> &MappingPlan {
        &self.plan
    }

    /// Makes of one message what its rule says: events, nothing, or an entry of the quarantine.
    #[inline]
    pub fn message<M: ParsedMessage<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        origin: MessageOrigin,
        dictionary: &Dictionary,
    ) {
        let mark = block.mark();
        self.entries = EntryTally::default();
        let possdup = self.plan.possdup.and_then(|slot| message.slot(slot));
        let may_be_repeat = possdup.is_some_and(|v| message.text(v, &mut self.scratch.value_text) == b"Y");
        let outcome = match self.extras {
            None => self.map_message(block, message, origin, dictionary, PlainInstruments),
            Some(_) => self.apply_with_extras(block, message, origin, dictionary),
        };
        match outcome {
            Ok(MappingOutcome::Ignored) => {
                self.note_sequence(block, message, may_be_repeat, true);
                block.tally.entries = block.tally.entries.plus(self.entries);
                block.end_ignored();
            }
            Ok(MappingOutcome::Events { ts, count }) => {
                let kind = match self.note_sequence(block, message, may_be_repeat, true) {
                    Some(run) => BlockMessageKind::Numbered { run, may_be_repeat },
                    None => BlockMessageKind::Events,
                };
                let span = MessageSpan { offset: origin.offset, length: message.raw().len() };
                if !self.entries.is_empty() {
                    block.note_entries(self.entries);
                }
                block.end_message(span, ts, count, kind, dictionary);
            }
            Err(refused) => {
                block.roll_back(mark);
                self.note_sequence(block, message, may_be_repeat, !refused.is_garbled());
                let concern = self.affected_books(message);
                self.entries.total = self.count_entries(message);
                block.tally.entries = block.tally.entries.plus(self.entries.in_quarantine());
                block.quarantine_message(origin, message.raw(), refused.code, &refused.detail, &concern);
            }
        }
    }

    /// Counts the entries of a refused message from which its rule would make events. Reading them ends at the fault.
    #[cold]
    fn count_entries<M: ParsedMessage<Ref = R>>(&mut self, message: &M) -> u64 {
        let Self { plan, entry_values: entry, scratch, .. } = self;
        let view = MappingInput { message, picked_values: &[], entry_values: &[] };
        let Some(rule) = rule_of(plan, &view, scratch) else { return 0 };
        let mut count = 0;
        for events in rule.events.chunk_by(|a, b| a.each.is_some() && a.each == b.each) {
            let Some(group) = events[0].each else { continue };
            let mut cursor = EntryCursor::default();
            // Where the entries themselves are wrong, those before the fault count.
            while next_entry(plan, message, group, &mut cursor, entry).is_ok_and(|has_entry| has_entry) {
                count += 1;
            }
        }
        count
    }

    /// Applies the mapping with the parts that few feeds need.
    #[inline(never)]
    fn apply_with_extras<M: ParsedMessage<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        origin: MessageOrigin,
        dictionary: &Dictionary,
    ) -> Result<MappingOutcome, MessageRefusal> {
        let Some(mut extras) = self.extras.take() else { unreachable!("asked for it") };
        let outcome = match &mut extras.instrument_lookup {
            None => self.map_message(block, message, origin, dictionary, PlainInstruments),
            Some(lookup) => {
                let outcome = self.map_message(block, message, origin, dictionary, &mut *lookup);
                if lookup.take_missed() && matches!(outcome, Ok(MappingOutcome::Events { .. })) {
                    block.note_unresolved();
                }
                outcome
            }
        };
        if let Some(explainer) = &mut extras.explainer {
            explainer.note_message(&self.plan, message, origin, block.units.len(), &outcome);
        }
        self.extras = Some(extras);
        outcome
    }

    /// Notes the message's number. If the message is not `is_complete`, it may restart its session and has no number.
    /// Returns the run to which it belongs.
    fn note_sequence<M: ParsedMessage<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        may_be_repeat: bool,
        is_complete: bool,
    ) -> Option<u32> {
        let slot = self.plan.possdup.and(self.plan.sequence)?;
        let sequence = message.slot(slot).and_then(|v| message.number(v))?;
        let mut numbering =
            message.sequence_effect(message.slot(self.plan.message_type), sequence, may_be_repeat);
        if !is_complete {
            match &mut numbering {
                SequenceEffect::Counts | SequenceEffect::Fills => return None,
                SequenceEffect::Restarts { counts, .. } => *counts = false,
            }
        }
        // Two short names, as they mostly are, are looked up as they are.
        let mut key = SessionNameKey::default();
        let short = match &self.plan.session[..] {
            slots @ ([_] | [_, _]) => slots.iter().enumerate().all(|(i, slot)| match message.slot(*slot) {
                Some(value) => key.set_name(i, message.text(value, &mut self.scratch.value_text)),
                None => true,
            }),
            _ => false,
        };
        if let Some(id) = short.then(|| block.find_session(&key)).flatten() {
            return Some(block.note_sequence(id, sequence, numbering));
        }
        let mut session = std::mem::take(&mut self.session);
        session.clear();
        for (i, slot) in self.plan.session.iter().enumerate() {
            if i > 0 {
                // The byte that ends a field on the wire is in no value, so A and B>C differ from A>B and C.
                session.push(1);
            }
            if let Some(value) = message.slot(*slot) {
                session.extend_from_slice(message.text(value, &mut self.scratch.value_text));
            }
        }
        let id = block.session_by_name(&session, short.then_some(&key));
        self.session = session;
        Some(block.note_sequence(id, sequence, numbering))
    }

    #[inline]
    fn map_message<M: ParsedMessage<Ref = R>>(
        &mut self,
        block: &mut Block,
        message: &M,
        origin: MessageOrigin,
        dictionary: &Dictionary,
        lookup: impl InstrumentLookup,
    ) -> Result<MappingOutcome, MessageRefusal> {
        let Self { plan, entry_values: entry, picked_values: picks, scratch, entries, .. } = self;
        let plan = &*plan;
        let view = MappingInput { message, picked_values: &[], entry_values: &[] };
        let Some(rule) = rule_of(plan, &view, scratch) else {
            let type_value = message.slot(plan.message_type);
            let message_type = type_value.map_or(&b""[..], |v| message.text(v, &mut scratch.suffixed_text));
            return Err(MessageRefusal {
                code: "no_rule",
                detail: format!(
                    "no rule of the mapping is for {} {}",
                    M::TYPE,
                    String::from_utf8_lossy(message_type)
                ),
            });
        };
        if rule.ignore {
            return Ok(MappingOutcome::Ignored);
        }
        let ts = event_time(plan, message, &mut scratch.value_text)?;
        fill_picks(plan, rule, message, PickBuffers { entry, picks }, &mut scratch.value_text)?;
        let view = MappingInput { picked_values: picks, ..view };
        let sequence = plan.sequence.and_then(|s| message.slot(s)).and_then(|v| message.number(v));
        let mut writer = MappedEventWriter {
            block,
            plan,
            origin,
            ts,
            sequence,
            dictionary,
            scratch,
            groups: &rule.event_groups,
            entry_step: None,
            count: 0,
            without_change: 0,
            last_start: 0,
            instrument_lookup: lookup,
        };
        // Events of the same group stay together, entry by entry, because the order of entries is feed order.
        for events in rule.events.chunk_by(|a, b| a.each.is_some() && a.each == b.each) {
            let Some(group) = events[0].each else {
                writer.entry_step = None;
                if view.is_wanted(&events[0], &mut writer.scratch.value_text) {
                    writer.event(&events[0], &view)?;
                }
                continue;
            };
            let mut cursor = EntryCursor::default();
            loop {
                let cursor_before = cursor;
                if !next_entry(plan, message, group, &mut cursor, entry)? {
                    break;
                }
                writer.entry_step =
                    plan.keeps.then_some(EntryStep { group, before: cursor_before, after: cursor });
                let view = MappingInput { entry_values: entry, ..view };
                entries.total += 1;
                let (count, without_change) = (writer.count, writer.without_change);
                for event in events {
                    if view.is_wanted(event, &mut writer.scratch.value_text) {
                        writer.event(event, &view)?;
                    }
                }
                if writer.count > count {
                    entries.with_events += 1;
                } else if writer.without_change > without_change
                    || view.is_ignored(rule, group, &mut writer.scratch.value_text)
                {
                    entries.ignored += 1;
                } else {
                    return Err(unused_entry(
                        events,
                        &view,
                        cursor.entry_count,
                        &mut writer.scratch.value_text,
                    ));
                }
            }
        }
        match writer.count {
            // All its entries are known and not wanted, or its quote states nothing.
            0 if entries.ignored > 0 || writer.without_change > 0 => Ok(MappingOutcome::Ignored),
            0 => {
                Err(MessageRefusal { code: "no_event", detail: "no condition of the rule holds".to_owned() })
            }
            count => {
                let last_start = writer.last_start;
                mark_last(&mut block.arena[last_start..]);
                Ok(MappingOutcome::Events { ts, count })
            }
        }
    }
}

/// Finds the rule for a message, if there is one.
#[inline(always)]
fn rule_of<'p, M: ParsedMessage>(
    plan: &'p MappingPlan,
    view: &MappingInput<'_, M>,
    scratch: &mut TextScratch,
) -> Option<&'p CompiledRule> {
    let type_value = view.message.slot(plan.message_type);
    let message_type = type_value.map_or(&b""[..], |v| view.message.text(v, &mut scratch.suffixed_text));
    let rule_indices = match plan.of_type(message_type) {
        Some(TypeRules { codes: Some(codes), .. }) => {
            let code_value = view.message.slot(codes.slot());
            codes.get(code_value.map(|v| view.message.text(v, &mut scratch.value_text)))
        }
        Some(of_type) => &of_type.rules,
        None => &plan.untyped,
    };
    let mut rules = rule_indices.iter().map(|&i| &plan.rules[i]);
    rules.find(|r| view.holds(&r.conditions, &mut scratch.value_text))
}

/// The current message, with the values picked from its groups and the current entry (empty outside an entry).
pub(super) struct MappingInput<'m, M: ParsedMessage> {
    pub message: &'m M,
    pub picked_values: &'m [Option<M::Ref>],
    pub entry_values: &'m [Option<M::Ref>],
}

impl<M: ParsedMessage> Clone for MappingInput<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: ParsedMessage> Copy for MappingInput<'_, M> {}

type EntrySlots<'s, M> = &'s mut [Option<<M as ParsedMessage>::Ref>];

/// A value: of the message, or the mapping's own.
pub(super) enum MappedValue<'p, R> {
    Value(R),
    Const(&'p [u8]),
}

impl<'m, M: ParsedMessage> MappingInput<'m, M> {
    /// Returns the message's value; `None` if it is absent, or if the value is the mapping's own.
    #[inline]
    fn value(&self, from: SlotSource) -> Option<M::Ref> {
        match from {
            SlotSource::Message(slot) => self.message.slot(slot),
            SlotSource::Entry(slot) => *self.entry_values.get(usize::from(slot))?,
            SlotSource::Pick(i) => *self.picked_values.get(usize::from(i))?,
            SlotSource::Const => None,
        }
    }

    #[inline]
    pub(super) fn get<'p>(&self, from: &'p ValueSource) -> Option<MappedValue<'p, M::Ref>> {
        match from {
            ValueSource::Message(slot) => self.message.slot(*slot).map(MappedValue::Value),
            ValueSource::Entry(slot) => (*self.entry_values.get(usize::from(*slot))?).map(MappedValue::Value),
            ValueSource::Pick(i) => self.picked_values[usize::from(*i)].map(MappedValue::Value),
            ValueSource::Const(value) => Some(MappedValue::Const(value)),
        }
    }

    #[inline]
    pub(super) fn text<'v>(&self, mapped_value: MappedValue<'v, M::Ref>, scratch: &'v mut Vec<u8>) -> &'v [u8]
    where
        'm: 'v,
    {
        match mapped_value {
            MappedValue::Value(value) => self.message.text(value, scratch),
            MappedValue::Const(value) => value,
        }
    }

    /// Returns whether no message of the source has any of these values.
    #[inline]
    fn is_absent(&self, sources: &[ValueSource]) -> bool {
        sources.iter().all(|from| match from {
            ValueSource::Message(slot) => self.message.is_absent(*slot),
            _ => false,
        })
    }

    /// Returns whether this message or entry makes the event.
    #[inline]
    pub(super) fn is_wanted(&self, event: &EventPlan, scratch: &mut Vec<u8>) -> bool {
        self.holds(&event.conditions, scratch)
            && (event.some_of.is_empty() || event.some_of.iter().any(|from| self.get(from).is_some()))
    }

    /// Returns whether the mapping says that the current entry becomes nothing.
    #[cold]
    pub(super) fn is_ignored(&self, rule: &CompiledRule, group: usize, scratch: &mut Vec<u8>) -> bool {
        rule.ignored.iter().any(|entries| entries.each == group && self.holds(&entries.conditions, scratch))
    }

    #[inline]
    pub(super) fn holds(&self, conditions: &[RuleCondition], scratch: &mut Vec<u8>) -> bool {
        conditions.iter().all(|c| match self.get(&c.from) {
            Some(v) => c.value.matches(self.text(v, scratch)),
            None => c.value.is_absent(),
        })
    }
}

/// Writes the events of one message.
struct MappedEventWriter<'w, I> {
    block: &'w mut Block,
    plan: &'w MappingPlan,
    origin: MessageOrigin,
    ts: UnixNanos,
    sequence: Option<u64>,
    dictionary: &'w Dictionary,
    scratch: &'w mut TextScratch,
    /// Groups whose entries become events.
    groups: &'w [usize],
    /// The current entry, until its first event is written.
    entry_step: Option<EntryStep>,
    count: u32,
    /// The number of quotes that were not written because they state nothing.
    without_change: u32,
    /// Start of the last event in the arena.
    last_start: usize,
    /// The lookup of instrument ids; empty type if names stay unchanged.
    instrument_lookup: I,
}

impl<I: InstrumentLookup> MappedEventWriter<'_, I> {
    fn event<M: ParsedMessage>(
        &mut self,
        plan: &EventPlan,
        view: &MappingInput<'_, M>,
    ) -> Result<(), MessageRefusal> {
        let scratch = &mut *self.scratch;
        if plan.partial.is_some() && !view.states_side(self.plan, plan, scratch) {
            self.without_change += 1;
            return Ok(());
        }
        if M::HAS_HEADER && plan.prices.iter().any(|sources| view.is_absent(sources)) {
            return Err(absent_price(plan, view));
        }
        scratch.was_guessed.set(false);
        scratch.odd_values.get_mut().clear();
        let (arena, mut names) = self.block.builder(self.dictionary);
        let mut e = EventBuilder::begin(arena, plan.kind, self.ts);
        e.source(self.origin.source, self.origin.offset as u32);
        if let Some(sequence) = self.sequence {
            e.sequence(sequence);
        }
        let time = TimedLookup { instrument_lookup: &mut self.instrument_lookup, ts: self.ts };
        set_venue_and_time(self.plan, plan, view, time, scratch);
        for (i, op) in plan.ops.iter().enumerate() {
            if is_looked_up::<I>(op) {
                let target = EventTarget { event: &mut e, names: &mut names };
                let target = LookupTarget { target, instrument_lookup: &mut self.instrument_lookup };
                set_looked_up(self.plan, &plan.fields[i], view, target, scratch)?;
                continue;
            }
            if let SetOp::Ready(ready) = op.kind {
                e.set_ready(ready);
                continue;
            }
            let value = view.value(op.from).or_else(|| op.or.and_then(|from| view.value(from)));
            let Some(value) = value else {
                if op.from == SlotSource::Const {
                    let target = EventTarget { event: &mut e, names: &mut names };
                    set_long(self.plan, &plan.fields[i], view, target, scratch)?;
                } else if op.required {
                    return Err(missing_value(&plan.fields[i], view.message));
                }
                continue;
            };
            let set = match op.kind {
                SetOp::AsItIs => {
                    view.message.set_field(value, &mut e, op.spec, &mut names, &mut scratch.value_text)
                }
                SetOp::Coded(codes) => {
                    match plan.codes[usize::from(codes)]
                        .get(view.message.text(value, &mut scratch.value_text))
                    {
                        Some(ready) => e.set_ready(ready),
                        None => {
                            let target = EventTarget { event: &mut e, names: &mut names };
                            set_long(self.plan, &plan.fields[i], view, target, scratch)?
                        }
                    }
                    continue;
                }
                SetOp::Time => match view.message.time(value) {
                    Some(ts) => e.set(op.spec, EventValue::Nanos(ts)),
                    None => Err(Refusal::BadTime),
                },
                SetOp::Text | SetOp::Ready(_) => {
                    let target = EventTarget { event: &mut e, names: &mut names };
                    set_long(self.plan, &plan.fields[i], view, target, scratch)?;
                    continue;
                }
            };
            if let Err(refusal) = set {
                let field = &plan.fields[i];
                if !view.message.is_of_form(value) {
                    let alternative = op.or.and_then(|from| view.value(from));
                    let valid_alternative =
                        alternative.filter(|candidate| view.message.is_of_form(*candidate));
                    let set = valid_alternative.map(|alternative_value| {
                        view.message.set_field(
                            alternative_value,
                            &mut e,
                            op.spec,
                            &mut names,
                            &mut scratch.value_text,
                        )
                    });
                    let odd = OddValue::new(view.message, value, &field.path, &mut scratch.value_text);
                    if set != Some(Ok(())) && !(may_be_odd(field) && view.message.is_dispensable(value)) {
                        return Err(odd.refusal(field.spec.field.name()));
                    }
                    scratch.odd_values.borrow_mut().push(odd);
                    continue;
                }
                if M::UNDECLARED_TEXT && refusal == Refusal::NotUtf8 {
                    let text = view.message.text(value, &mut scratch.value_text);
                    if set_text_in_fallback_charset(self.plan, &mut e, op.spec, text, &mut names).is_ok() {
                        scratch.was_guessed.set(true);
                        continue;
                    }
                }
                if refusal == Refusal::BadValue && view.message.describe_flaw(value).is_some() {
                    let odd = OddValue::new(view.message, value, &field.path, &mut scratch.value_text);
                    return Err(odd.refusal(field.spec.field.name()));
                }
                let refused =
                    field_refusal::<M>(refusal, field, view.message.text(value, &mut scratch.value_text));
                return Err(with_flaw(refused, view.message, value));
            }
        }
        if plan.partial.as_ref().is_some_and(|partial| !partial.is_whole(&e)) {
            PartialQuotePlan::mark_partial(&mut e);
        }
        let (fallback, guessed) = (M::UNDECLARED_TEXT.then_some(self.plan.fallback), &scratch.was_guessed);
        let mut keep = |name: &str, value: &[u8]| {
            let keep_outcome = e.keep_unmapped_with(name, |out| match fallback {
                Some(fallback) => write_kept(out, value, fallback, guessed),
                None => write_json(out, value),
            });
            keep_outcome.map_err(|r| MessageRefusal { code: r.code(), detail: format!("{name}: {r}") })
        };
        for (name, from) in &plan.keep {
            if let Some(kept_value) = view.get(from) {
                if let MappedValue::Value(value) = kept_value
                    && !view.message.is_of_form(value)
                {
                    let odd = OddValue::new(view.message, value, name, &mut scratch.value_text);
                    if !view.message.is_dispensable(value) {
                        return Err(odd.refusal(name));
                    }
                    scratch.odd_values.borrow_mut().push(odd);
                    continue;
                }
                keep(name, view.text(kept_value, &mut scratch.value_text))?;
            }
        }
        for (name, slot) in &plan.keep_entry {
            if let Some(entry_value) = view.get(&ValueSource::Entry(*slot)) {
                keep(name, view.text(entry_value, &mut scratch.value_text))?;
            }
        }
        // Unlisted values are kept with the first event of the message or of the entry that they are in.
        if self.plan.keeps {
            if self.count == 0 {
                view.message.visit_unlisted(self.groups, &mut keep)?;
            }
            if let Some(step) = self.entry_step.take() {
                view.message.unlisted_in_entry(step, &mut keep)?;
            }
        }
        let odd = scratch.odd_values.get_mut();
        if !odd.is_empty() {
            for value in odd.iter() {
                keep(value.name(), &value.text)?;
            }
            let flaws: Vec<_> = odd.iter().map(|value| value.flaw.as_str()).collect();
            keep(ODD_NAME, flaws.join("; ").as_bytes())?;
        }
        let note = if guessed.get() { self.plan.fallback.note() } else { view.message.charset_note() };
        if let Some(note) = note {
            keep(NOTE_NAME, note.as_bytes())?;
        }
        let is_repeat = plan.repeats.iter().any(|conditions| view.holds(conditions, &mut scratch.value_text));
        if is_repeat {
            let repeat_outcome = e.keep_unmapped(REPEAT, "\"Y\"");
            repeat_outcome
                .map_err(|r| MessageRefusal { code: r.code(), detail: format!("{REPEAT}: {r}") })?;
        }
        if !plan.kind.one_of().is_empty()
            && let Some(missing) = e.missing_field()
        {
            let detail = format!("{}: {}", missing.field.name(), Refusal::Missing);
            return Err(MessageRefusal { code: Refusal::Missing.code(), detail });
        }
        self.last_start = e
            .finish(plan.frame_flags)
            .map_err(|r| MessageRefusal { code: r.code(), detail: r.to_string() })?;
        self.count += 1;
        Ok(())
    }
}

/// Returns the refusal of an event whose prices are in no row of the file.
#[cold]
fn absent_price<M: ParsedMessage>(plan: &EventPlan, view: &MappingInput<'_, M>) -> MessageRefusal {
    let absent = |field: &&FieldPlan| {
        plan.prices.iter().any(|sources| sources.contains(&field.from) && view.is_absent(sources))
    };
    let absent_fields = plan.fields.iter().filter(absent);
    let names: Vec<_> =
        absent_fields.map(|field| format!("{} ({})", field.spec.field.name(), field.path)).collect();
    let detail = format!("{}: the header has no such {}", names.join(", "), M::FIELD);
    MessageRefusal { code: Refusal::Missing.code(), detail }
}

/// Returns the refusal of a message with an entry that no event of its rule takes, and that the rule does not ignore.
#[cold]
pub(super) fn unused_entry<M: ParsedMessage>(
    events: &[EventPlan],
    view: &MappingInput<'_, M>,
    number: u64,
    scratch: &mut Vec<u8>,
) -> MessageRefusal {
    let mut values: Vec<String> = Vec::new();
    for (condition, path) in
        events.iter().flat_map(|event| event.conditions.iter().zip(&event.condition_paths))
    {
        let value = match view.get(&condition.from) {
            Some(mapped_value) => format!("{path} is {}", printable(view.text(mapped_value, scratch))),
            None => format!("{path} is not there"),
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let detail = format!(
        "entry {number}: no event of the rule is for it, and the rule does not ignore it: {}",
        values.join(", ")
    );
    MessageRefusal { code: "unused_entry", detail }
}

/// An event that is being built, and the names that its fields get ids by.
pub(super) struct EventTarget<'e, 'b> {
    pub event: &'e mut EventBuilder<'b>,
    pub names: &'e mut BlockNameResolver<'b>,
}

/// Sets a field by way of its text, through its table and with its suffix.
#[inline(never)]
fn set_long<M: ParsedMessage>(
    plan: &MappingPlan,
    field: &FieldPlan,
    view: &MappingInput<'_, M>,
    target: EventTarget<'_, '_>,
    scratch: &mut TextScratch,
) -> Result<(), MessageRefusal> {
    let EventTarget { event, names } = target;
    let TextScratch { value_text, suffixed_text, was_guessed: guessed, odd_values: odd } = scratch;
    let candidate = view.get(&field.from).or_else(|| field.or.as_ref().and_then(|f| view.get(f)));
    let Some(field_value) = candidate else { return Ok(()) };
    if let MappedValue::Value(value) = field_value
        && !view.message.is_of_form(value)
    {
        let is_dispensable = may_be_odd(field) && view.message.is_dispensable(value);
        let value = OddValue::new(view.message, value, &field.path, value_text);
        if !is_dispensable {
            return Err(value.refusal(field.spec.field.name()));
        }
        odd.borrow_mut().push(value);
        return Ok(());
    }
    let value = view.text(field_value, value_text);
    match translate::<M>(plan, field, value, suffixed_text)? {
        Some(value) => {
            let mut set = event.set_text(field.spec, value, names);
            if M::UNDECLARED_TEXT && set == Err(Refusal::NotUtf8) {
                set = set_text_in_fallback_charset(plan, event, field.spec, value, names);
                guessed.set(guessed.get() || set.is_ok());
            }
            set.map_err(|r| field_refusal::<M>(r, field, value))
        }
        None => Ok(()),
    }
}

pub(super) fn event_time<M: ParsedMessage>(
    plan: &MappingPlan,
    message: &M,
    scratch: &mut Vec<u8>,
) -> Result<UnixNanos, MessageRefusal> {
    let Some(value) = plan.ts.iter().find_map(|s| message.slot(*s)) else {
        return Err(MessageRefusal { code: Refusal::BadTime.code(), detail: "no event time".to_owned() });
    };
    message.time(value).ok_or_else(|| {
        let detail = format!("event time: {} is no {}", printable(message.text(value, scratch)), M::TIME);
        with_flaw(MessageRefusal { code: Refusal::BadTime.code(), detail }, message, value)
    })
}

/// Adds the flaw in the value to the refusal, if the format knows it.
#[cold]
fn with_flaw<M: ParsedMessage>(mut refused: MessageRefusal, message: &M, value: M::Ref) -> MessageRefusal {
    if let Some(flaw) = message.describe_flaw(value) {
        refused.detail.push_str("; ");
        refused.detail.push_str(&flaw);
    }
    refused
}

/// Two buffers of a message's values: each entry overwrites `entry`, and `picks` keeps the values that the rule
/// picks.
pub(super) struct PickBuffers<'s, M: ParsedMessage> {
    pub entry: EntrySlots<'s, M>,
    pub picks: EntrySlots<'s, M>,
}

pub(super) fn fill_picks<M: ParsedMessage>(
    plan: &MappingPlan,
    rule: &plan::CompiledRule,
    message: &M,
    buffers: PickBuffers<'_, M>,
    scratch: &mut Vec<u8>,
) -> Result<(), MessageRefusal> {
    let PickBuffers { entry, picks } = buffers;
    picks.fill(None);
    for &group in &rule.pick_groups {
        let mut cursor = EntryCursor::default();
        while next_entry(plan, message, group, &mut cursor, entry)? {
            for keys in &plan.group_picks[group] {
                let Some(key) = entry[usize::from(keys.key)] else { continue };
                let key = message.text(key, scratch);
                let word = words::word(key);
                for (is, value, i) in &keys.firsts {
                    if is.matches_word(word, key) {
                        let pick = &mut picks[usize::from(*i)];
                        *pick = pick.or(entry[usize::from(*value)]);
                    }
                }
                for best in keys.bests.iter().filter(|best| best.is.matches_word(word, key)) {
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

/// Returns whether an entry is better than the entry whose values were picked so far. An entry with a number is
/// better than an entry without a number.
///
/// # Errors
/// Fails if the entry's number is invalid: the best entry cannot be known.
fn is_better<M: ParsedMessage>(
    best: &BestPicks,
    message: &M,
    entry: &[Option<M::Ref>],
    picks: &[Option<M::Ref>],
) -> Result<bool, MessageRefusal> {
    let number = |value: M::Ref| {
        let mut scratch = Vec::new();
        let text = message.text(value, &mut scratch);
        Price::parse(text).map_err(|error| {
            let refusal = Refusal::from(error);
            let detail =
                format!("the number by which the best entry is found: {}: {refusal}", printable(text));
            MessageRefusal { code: refusal.code(), detail }
        })
    };
    let Some(new_value) = entry[usize::from(best.best.slot)] else {
        return Ok(best.values.iter().all(|(_, i)| picks[usize::from(*i)].is_none()));
    };
    let new_number = number(new_value)?;
    let Some(picked_value) = picks[usize::from(best.number)] else { return Ok(true) };
    Ok(new_number.cmp(&number(picked_value)?) == best.best.wanted_order)
}

/// Translates a value by its table and suffix; `None` if it is left out.
pub(super) fn translate<'v, M: ParsedMessage>(
    plan: &'v MappingPlan,
    field: &FieldPlan,
    value: &'v [u8],
    text: &'v mut Vec<u8>,
) -> Result<Option<&'v [u8]>, MessageRefusal> {
    let value = match &field.table {
        None => value,
        Some((table, otherwise)) => match (plan.tables[*table].get(value), otherwise) {
            (Some(v), _) => v,
            (None, Some(UnmatchedPolicy::Keep)) => value,
            (None, Some(UnmatchedPolicy::Omit)) => return Ok(None),
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

/// Translates a value by its table, without a suffix; `None` if it is left out or refused.
pub(crate) fn translate_const<'v>(
    plan: &'v MappingPlan,
    field: &FieldPlan,
    value: &'v [u8],
) -> Option<&'v [u8]> {
    let Some((table, otherwise)) = &field.table else { return Some(value) };
    plan.tables[*table].get(value).or(match otherwise {
        Some(UnmatchedPolicy::Keep) => Some(value),
        _ => None,
    })
}

pub(super) fn field_refusal<M: ParsedMessage>(r: Refusal, field: &FieldPlan, value: &[u8]) -> MessageRefusal {
    refused_as::<M>(r.code(), r, field, value)
}

/// Returns the refusal of a message without a required value.
#[cold]
fn missing_value<M: ParsedMessage>(field: &FieldPlan, message: &M) -> MessageRefusal {
    let mut refusal = field_refusal::<M>(Refusal::Missing, field, b"");
    if let Some(note) = message.missing_note(&field.path) {
        refusal.detail.push_str("; ");
        refusal.detail.push_str(&note);
    }
    refusal
}

#[cold]
fn refused_as<M: ParsedMessage>(
    code: &'static str,
    r: Refusal,
    field: &FieldPlan,
    value: &[u8],
) -> MessageRefusal {
    let name = field.spec.field.name();
    // An instrument that a symbol table does not know is what users look for first.
    let code =
        if code == "unknown_value" && matches!(name, "instr" | "index") { "unknown_symbol" } else { code };
    MessageRefusal {
        code,
        detail: format!("{name} ({} {}): {r}: {}", M::FIELD, field.path, printable(value)),
    }
}

/// Quotes outside text in a message for people: at most 60 bytes, unprintable bytes escaped.
pub fn printable(value: &[u8]) -> String {
    let cut = &value[..value.len().min(60)];
    format!("\"{}\"{}", cut.escape_ascii(), if cut.len() < value.len() { "…" } else { "" })
}

fn mark_last(frame: &mut [u8]) {
    FrameHeader::read(frame).with_flags(flags::LAST).write(frame);
}
