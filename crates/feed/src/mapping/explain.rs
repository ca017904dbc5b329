//! The mapper's actions on a message and their reasons, in words: the slow twin of [`apply`](super::apply), for
//! people who write mappings.
//!
//! ```text
//!  message ─▶ rules of its type, one after the other: the condition that failed, with the value it met
//!          ─▶ the rule that holds ─▶ each event: each field with where its value came from, what it went through
//!                                 └▶ events whose own condition failed
//! ```
//!
//! It walks the same plan by the plain path only (no ready values, no tables of codes). Unlike the mapper, it
//! continues after a refused value, so it reports all faults of a message at once. The mapper alone decides the
//! outcome of the message.

use super::apply::{
    EventTarget, MappedValue, MappingInput, MappingOutcome as Applied, PickBuffers, TextScratch, event_time,
    fill_picks, translate,
};
use super::entries::next_entry;
use super::format_adapter::{EntryCursor, EntryStep, MessageRefusal, ParsedMessage};
use super::plan::{EventPlan, FieldPlan, MappingPlan, RuleCondition, ValueSource};
use super::undeclared::set_text_in_fallback_charset;
use super::{FieldConfig, FieldOptions, Mapping, MessageOrigin, TimeAlternatives};
use crate::block::json::json_string;
use crate::block::{ArenaRollbackPoint, Block};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use unitape_base::toml::TomlLineIndex;
use unitape_model::event::EventValue;
use unitape_model::schema::FieldLayout;
use unitape_model::{Dictionary, EventBuilder, EventField, Refusal, UnixNanos};

/// The outcome of a message and its reason.
#[derive(Clone, Debug, Serialize)]
pub struct MessageExplanation {
    /// The message's number in the sample, from 0; headers and text between messages have no number.
    pub n: u64,
    /// Its start.
    pub offset: u64,
    /// Its bytes.
    pub length: usize,
    /// The message's type, and the format's word for a type.
    #[serde(rename = "type")]
    pub message_type: Json,
    /// The format's word for a type: `MsgType`, `record`.
    #[serde(rename = "type_is")]
    pub type_label: &'static str,
    /// The outcome.
    pub outcome: ExplainedOutcome,
    /// Why it would go into quarantine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<QuarantineCause>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleLocation>,
    /// Rules for its type that were asked before and did not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<RejectedRule>,
    /// The event time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeExplanation>,
    /// The events of the rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventExplanation>,
    /// Events of the rule that were not made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedEvent>,
    /// The number of units that its block had before it.
    #[serde(skip)]
    pub(crate) unit: usize,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ExplainedOutcome {
    Events,
    Ignored,
    Quarantined,
}

/// Why a message would go into quarantine.
#[derive(Clone, Debug, Serialize)]
pub struct QuarantineCause {
    /// In one word.
    pub reason: String,
    /// For people.
    pub detail: String,
    /// What the mapping or its layout may say so that the value is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// A rule or an event of it: its number in the file, from 1, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[allow(missing_docs)]
pub struct RuleLocation {
    pub number: usize,
    pub line: usize,
}

/// A rule that did not hold.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct RejectedRule {
    pub rule: RuleLocation,
    pub failed: FailedCondition,
}

/// A condition that did not hold.
#[derive(Clone, Debug, Serialize)]
pub struct FailedCondition {
    /// The path of the condition.
    pub path: String,
    /// The value that the condition wants.
    pub wanted: Json,
    /// The value found, if there was one.
    pub value: Option<Json>,
    /// The condition's line.
    pub line: usize,
}

/// An event that was not made, because its condition failed.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedEvent {
    /// The event's place in the mapping.
    pub event: RuleLocation,
    /// The entry of its group, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// Why.
    pub failed: FailedCondition,
}

/// The source of the event time.
#[derive(Clone, Debug, Serialize)]
pub struct TimeExplanation {
    /// The path.
    pub from: String,
    /// The value found, if there was one.
    pub source: Option<Json>,
    /// The problem with the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// An event and the parts of the message that it is made of.
#[derive(Clone, Debug, Serialize)]
pub struct EventExplanation {
    /// The event's place in its rule.
    pub event: RuleLocation,
    /// Its kind.
    pub kind: &'static str,
    /// The entry of its group, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// Its fields, as far as the mapping names them.
    pub fields: Vec<FieldExplanation>,
    /// Values that are kept beside the fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptValue>,
    /// The event as it is on the tape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub becomes: Option<Json>,
}

/// A field and where its value came from.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FieldExplanation {
    /// The field.
    pub field: &'static str,
    /// Its line in the mapping.
    pub line: usize,
    /// The value's source, as the mapping spells it.
    pub from: String,
    /// The value found, if there was one.
    pub source: Option<Json>,
    /// The table it went through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The suffix appended to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// The type that it was read as.
    #[serde(rename = "as")]
    pub value_type: String,
    /// Why it is not simply there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why it cannot be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A value that is kept beside the fields.
#[derive(Clone, Debug, Serialize)]
pub struct KeptValue {
    /// Its name in the event.
    pub name: String,
    /// The value.
    pub value: Json,
    /// `keep`: the mapping keeps it; `entry`, `unlisted`: no rule names it, in the entry or in the message.
    pub why: &'static str,
}

/// Notes the actions of a mapper.
#[derive(Debug)]
pub struct MappingExplainer {
    mapping: Mapping,
    rule_lines: Vec<RuleLineNumbers>,
    /// The explanations since the last call that took them.
    pub explanations: Vec<MessageExplanation>,
    scratch: Block,
}

#[derive(Debug, Default)]
struct RuleLineNumbers {
    line: usize,
    condition_lines: BTreeMap<String, usize>,
    events: Vec<EventLineNumbers>,
}

#[derive(Debug, Default)]
struct EventLineNumbers {
    line: usize,
    empty_side: usize,
    condition_lines: BTreeMap<String, usize>,
    fields: BTreeMap<String, usize>,
}

/// An event of a rule; both count from 0.
#[derive(Clone, Copy)]
struct RuleEventIndex {
    rule_index: usize,
    event: usize,
}

impl MappingExplainer {
    /// Makes an explainer for the mapper of this mapping.
    pub fn new(mapping: &Mapping) -> Self {
        let lines = TomlLineIndex::new(&mapping.text);
        let rules = mapping.rule.iter().enumerate().map(|(i, rule)| {
            let i = i.to_string();
            let events = rule.event.iter().enumerate().map(|(j, event)| {
                let j = j.to_string();
                let line_of_key =
                    |key: &str, name: &String| lines.line_of(&["rule", &i, "event", &j, key, name.as_str()]);
                EventLineNumbers {
                    line: lines.line_of(&["rule", &i, "event", &j]),
                    empty_side: lines.line_of(&["rule", &i, "event", &j, "empty_side"]),
                    condition_lines: event.when.keys().map(|p| (p.clone(), line_of_key("when", p))).collect(),
                    fields: event.fields.keys().map(|f| (f.clone(), line_of_key("fields", f))).collect(),
                }
            });
            RuleLineNumbers {
                line: lines.line_of(&["rule", &i]),
                condition_lines: rule
                    .when
                    .keys()
                    .map(|p| (p.clone(), lines.line_of(&["rule", &i, "when", p])))
                    .collect(),
                events: events.collect(),
            }
        });
        let rules = rules.collect();
        Self {
            mapping: mapping.clone(),
            rule_lines: rules,
            explanations: Vec::new(),
            scratch: Block::default(),
        }
    }

    /// Lists the place of each rule: its number and line.
    pub fn places(&self) -> impl Iterator<Item = RuleLocation> + '_ {
        self.rule_lines.iter().zip(1..).map(|(r, number)| RuleLocation { number, line: r.line })
    }

    /// Notes what became of a message.
    pub(super) fn note_message<M: ParsedMessage>(
        &mut self,
        plan: &MappingPlan,
        message: &M,
        origin: MessageOrigin,
        unit: usize,
        outcome: &Result<Applied, MessageRefusal>,
    ) {
        let view = MappingInput { message, picked_values: &[], entry_values: &[] };
        let mut scratch = Vec::new();
        let type_value = message.slot(plan.message_type);
        let message_type = type_value.map_or(Vec::new(), |v| message.text(v, &mut scratch).to_vec());
        let mut explanation = MessageExplanation {
            n: 0,
            offset: origin.offset,
            length: message.raw().len(),
            message_type: to_json(&message_type),
            type_label: M::TYPE,
            outcome: match outcome {
                Ok(Applied::Events { .. }) => ExplainedOutcome::Events,
                Ok(Applied::Ignored) => ExplainedOutcome::Ignored,
                Err(_) => ExplainedOutcome::Quarantined,
            },
            quarantined: outcome.as_ref().err().map(|r| QuarantineCause {
                reason: r.code.into(),
                detail: r.detail.clone(),
                suggestion: None,
            }),
            rule: None,
            passed_over: Vec::new(),
            time: None,
            events: Vec::new(),
            skipped: Vec::new(),
            unit,
        };
        for &i in plan.rules_for(&message_type) {
            let (rule, lines) = (&plan.rules[i], &self.rule_lines[i]);
            let location = RuleLocation { number: i + 1, line: lines.line };
            match failed_condition(&view, &rule.conditions, &rule.condition_paths, &lines.condition_lines) {
                Some(failed) => explanation.passed_over.push(RejectedRule { rule: location, failed }),
                None => {
                    explanation.rule = Some(location);
                    break;
                }
            }
        }
        if let Some(rule) = explanation.rule.filter(|r| !plan.rules[r.number - 1].ignore) {
            explanation.time = Some(self.explain_time(plan, message));
            // The mapper's own word reports a problem with a group.
            _ = self.explain_events(plan, message, rule.number - 1, &mut explanation);
        }
        if explanation.outcome == ExplainedOutcome::Events {
            // Of a message that became events no value was refused: it is kept beside them as it came.
            for field in explanation.events.iter_mut().flat_map(|event| &mut event.fields) {
                if let Some(refused) = field.refused.take() {
                    field.note = Some(format!("kept as it came: {refused}"));
                }
            }
        }
        self.explanations.push(explanation);
    }

    fn explain_time<M: ParsedMessage>(&self, plan: &MappingPlan, message: &M) -> TimeExplanation {
        let alternatives = self.mapping.message.ts_or.iter().flat_map(TimeAlternatives::all);
        let mut scratch = Vec::new();
        let used_time = plan.ts.iter().zip(std::iter::once(&self.mapping.message.ts).chain(alternatives));
        let time_value = used_time.filter_map(|(slot, path)| Some((message.slot(*slot)?, path))).next();
        TimeExplanation {
            from: time_value.map_or(&self.mapping.message.ts, |(_, path)| path).clone(),
            source: time_value.map(|(v, _)| to_json(message.text(v, &mut scratch))),
            refused: event_time(plan, message, &mut Vec::new()).err().map(|r| r.detail),
        }
    }

    fn explain_events<M: ParsedMessage>(
        &mut self,
        plan: &MappingPlan,
        message: &M,
        rule: usize,
        explanation: &mut MessageExplanation,
    ) -> Result<(), MessageRefusal> {
        let mut entry = vec![None; plan.entry_slot_counts.iter().copied().max().unwrap_or(0)];
        let mut picks = vec![None; plan.picks.len()];
        let buffers = PickBuffers::<M> { entry: &mut entry, picks: &mut picks };
        fill_picks(plan, &plan.rules[rule], message, buffers, &mut Vec::new())?;
        let events = &plan.rules[rule].events;
        let mut j = 0;
        for group_events in events.chunk_by(|a, b| a.each.is_some() && a.each == b.each) {
            let range = j..j + group_events.len();
            j = range.end;
            let Some(group) = group_events[0].each else {
                let view = MappingInput { message, picked_values: &picks, entry_values: &[] };
                let event_index = RuleEventIndex { rule_index: rule, event: range.start };
                self.event(plan, event_index, view, None, explanation);
                continue;
            };
            let (mut cursor, mut number) = (EntryCursor::default(), 0);
            loop {
                let cursor_before = cursor;
                if !next_entry(plan, message, group, &mut cursor, &mut entry)? {
                    break;
                }
                number += 1;
                let mut step = Some(EntryStep { group, before: cursor_before, after: cursor });
                for j in range.clone() {
                    let view = MappingInput { message, picked_values: &picks, entry_values: &entry };
                    let event_index = RuleEventIndex { rule_index: rule, event: j };
                    let events = explanation.events.len();
                    self.event(
                        plan,
                        event_index,
                        view,
                        Some(ExplainedEntry { entry_number: number, entry_step: step }),
                        explanation,
                    );
                    if explanation.events.len() > events {
                        step = None;
                    }
                }
            }
        }
        Ok(())
    }

    fn event<M: ParsedMessage>(
        &mut self,
        plan: &MappingPlan,
        event_index: RuleEventIndex,
        view: MappingInput<'_, M>,
        in_entry: Option<ExplainedEntry>,
        explanation: &mut MessageExplanation,
    ) {
        let RuleEventIndex { rule_index: rule, event: j } = event_index;
        let entry = in_entry.map(|entry| entry.entry_number);
        let (event, text) = (&plan.rules[rule].events[j], &self.mapping.rule[rule].event[j]);
        let lines = &self.rule_lines[rule].events[j];
        let location = RuleLocation { number: j + 1, line: lines.line };
        if let Some(failed_condition) =
            failed_condition(&view, &event.conditions, &event.condition_paths, &lines.condition_lines)
        {
            explanation.skipped.push(SkippedEvent { event: location, entry, failed: failed_condition });
            return;
        }
        if !view.is_wanted(event, &mut Vec::new()) {
            let path = format!("some_of {}", text.some_of.join(", "));
            let failed = FailedCondition { path, wanted: "a value".into(), value: None, line: location.line };
            explanation.skipped.push(SkippedEvent { event: location, entry, failed });
            return;
        }
        if event.partial.is_some() && !view.states_side(plan, event, &mut TextScratch::default()) {
            let failed = FailedCondition {
                path: "a side of the quote".into(),
                wanted: "a price or size".into(),
                value: None,
                line: lines.empty_side,
            };
            explanation.skipped.push(SkippedEvent { event: location, entry, failed });
            return;
        }
        self.scratch.reset();
        let dictionary = Dictionary::default();
        let (arena, mut names) = self.scratch.builder(&dictionary);
        let mut builder = EventBuilder::begin(arena, event.kind, UnixNanos(0));
        let mut fields = Vec::new();
        for field in &event.fields {
            let name = field.spec.field.name();
            let Some(text) = text.fields.get(name) else { continue };
            let mut field_explanation = FieldExplanation {
                field: name,
                line: lines.fields.get(name).copied().unwrap_or(lines.line),
                value_type: value_type_name(field.spec.slot),
                ..FieldExplanation::default()
            };
            let field = ExplainedField { plan: field, config: text };
            let target = EventTarget { event: &mut builder, names: &mut names };
            one_field(plan, field, &view, target, &mut field_explanation);
            fields.push(field_explanation);
        }
        if event.partial.as_ref().is_some_and(|partial| !partial.is_whole(&builder)) {
            fields.push(FieldExplanation {
                field: EventField::Partial.name(),
                line: lines.empty_side,
                from: "empty_side".to_owned(),
                source: Some("unchanged".into()),
                ..FieldExplanation::default()
            });
        }
        self.scratch.roll_back(ArenaRollbackPoint::default());
        let mut kept_values = collect_kept(event, &view);
        if plan.keeps {
            let mut keep = |name: &str, value: &[u8]| {
                kept_values.push(KeptValue { name: name.to_owned(), value: to_json(value), why: "unlisted" });
                Ok(())
            };
            // The closure refuses nothing.
            if explanation.events.is_empty() {
                _ = view.message.visit_unlisted(&plan.rules[rule].event_groups, &mut keep);
            }
            if let Some(step) = in_entry.and_then(|entry| entry.entry_step) {
                _ = view.message.unlisted_in_entry(step, &mut keep);
            }
        }
        let kind = event.kind.name();
        explanation.events.push(EventExplanation {
            event: location,
            kind,
            entry,
            fields,
            kept: kept_values,
            becomes: None,
        });
    }
}

/// The entry that an event is of: its number, and where it is as long as no event of it is explained.
#[derive(Clone, Copy)]
struct ExplainedEntry {
    entry_number: u64,
    entry_step: Option<EntryStep>,
}

/// A field of an event as compiled, and as the mapping's text has it.
struct ExplainedField<'f> {
    plan: &'f FieldPlan,
    config: &'f FieldConfig,
}

/// Sets a field of an event as the mapper would, and records what happened.
fn one_field<M: ParsedMessage>(
    plan: &MappingPlan,
    field: ExplainedField<'_>,
    view: &MappingInput<'_, M>,
    target: EventTarget<'_, '_>,
    explanation: &mut FieldExplanation,
) {
    let ExplainedField { plan: field, config: text } = field;
    let EventTarget { event, names } = target;
    let long = match text {
        FieldConfig::Path(path) => FieldOptions { from: Some(path.clone()), ..FieldOptions::default() },
        FieldConfig::Table(table) => (**table).clone(),
    };
    explanation.from = match (&long, &field.from) {
        (
            FieldOptions { group: Some(g), key: Some(k), is: Some(is), value: Some(v), .. },
            ValueSource::Pick(_),
        ) => {
            let best = [("highest", &long.highest), ("lowest", &long.lowest)];
            let best = best.iter().find_map(|(word, member)| {
                member.as_ref().map(|member_path| format!(" and {member_path} is {word}"))
            });
            format!("{v} of the entry of group {g} where {k} is {is}{}", best.unwrap_or_default())
        }
        (_, ValueSource::Const(_)) => "const".to_owned(),
        (FieldOptions { from: Some(path), .. }, _) => path.clone(),
        _ => field.path.clone(),
    };
    (explanation.table, explanation.suffix) = (long.table.clone(), long.suffix.clone());
    let first_value = view.get(&field.from);
    let field_value = match (first_value, &field.or, &long.or) {
        (None, Some(or), Some(path)) => {
            explanation.from = format!("{path}, because {} is not there", explanation.from);
            view.get(or)
        }
        (first_value, ..) => first_value,
    };
    let Some(mapped_value) = field_value else {
        explanation.note = Some("not in the message".to_owned());
        explanation.refused = field.required.then(|| Refusal::Missing.to_string());
        return;
    };
    let mut scratch = Vec::new();
    let value = match &mapped_value {
        MappedValue::Value(value) => Some(*value),
        MappedValue::Const(_) => None,
    };
    let source = view.text(mapped_value, &mut scratch).to_vec();
    explanation.source = Some(to_json(&source));
    let set = match (value, field.spec.slot) {
        (Some(v), slot) if field.table.is_none() && field.suffix.is_none() => match slot {
            FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => match view.message.time(v) {
                Some(ts) => event.set(field.spec, EventValue::Nanos(ts)),
                None => Err(Refusal::BadTime),
            },
            _ => {
                let set = view.message.set_field(v, event, field.spec, names, &mut Vec::new());
                let target = EventTarget { event: &mut *event, names: &mut *names };
                explain_text_in_fallback_charset::<M>(plan, field, set, &source, target, explanation)
            }
        },
        _ => {
            let is_in_table =
                field.table.as_ref().is_none_or(|(t, _)| plan.tables[*t].get(&source).is_some());
            let table = long.table.as_deref().unwrap_or_default();
            match translate::<M>(plan, field, &source, &mut scratch) {
                Ok(Some(value)) => {
                    explanation.note = (!is_in_table).then(|| format!("not in table {table}: kept as it is"));
                    let set = event.set_text(field.spec, value, names);
                    let target = EventTarget { event: &mut *event, names: &mut *names };
                    explain_text_in_fallback_charset::<M>(plan, field, set, value, target, explanation)
                }
                Ok(None) => {
                    explanation.note = Some(format!("not in table {table}: left out"));
                    explanation.refused = field.spec.required.then(|| Refusal::Missing.to_string());
                    Ok(())
                }
                Err(_) => {
                    explanation.refused = Some(format!("not in table {table}, and the field says no `else`"));
                    return;
                }
            }
        }
    };
    if let Err(refusal) = set {
        explanation.refused = Some(refusal.to_string());
    }
}

/// Sets a field of free text whose value is not UTF-8 as the mapper would; any other result of setting it stays.
fn explain_text_in_fallback_charset<M: ParsedMessage>(
    plan: &MappingPlan,
    field: &FieldPlan,
    set: Result<(), Refusal>,
    value: &[u8],
    target: EventTarget<'_, '_>,
    explanation: &mut FieldExplanation,
) -> Result<(), Refusal> {
    let EventTarget { event, names } = target;
    if !M::UNDECLARED_TEXT || set != Err(Refusal::NotUtf8) {
        return set;
    }
    set_text_in_fallback_charset(plan, event, field.spec, value, names)?;
    let charset = plan.fallback.charset().name();
    let guessed = if plan.fallback.is_guess() { ", which is a guess" } else { "" };
    explanation.note = Some(format!("not UTF-8: read as {charset}{guessed}"));
    Ok(())
}

/// Finds the first condition that does not hold.
fn failed_condition<M: ParsedMessage>(
    view: &MappingInput<'_, M>,
    conditions: &[RuleCondition],
    paths: &[String],
    lines: &BTreeMap<String, usize>,
) -> Option<FailedCondition> {
    let mut scratch = Vec::new();
    let (cond, path) =
        conditions.iter().zip(paths).find(|(c, _)| !view.holds(std::slice::from_ref(*c), &mut scratch))?;
    Some(FailedCondition {
        path: path.clone(),
        wanted: to_json(&cond.value.describe()),
        value: view.get(&cond.from).map(|v| to_json(view.text(v, &mut scratch))),
        line: lines.get(path).copied().unwrap_or(0),
    })
}

fn collect_kept<M: ParsedMessage>(event: &EventPlan, view: &MappingInput<'_, M>) -> Vec<KeptValue> {
    let mut scratch = Vec::new();
    let mut values = Vec::new();
    let entry: Vec<_> = event.keep_entry.iter().map(|(n, slot)| (n, ValueSource::Entry(*slot))).collect();
    let kept_fields = event.keep.iter().map(|(n, from)| (n, from, "keep"));
    for (name, from, origin) in kept_fields.chain(entry.iter().map(|(n, from)| (*n, from, "entry"))) {
        if let Some(mapped_value) = view.get(from) {
            values.push(KeptValue {
                name: name.clone(),
                value: to_json(view.text(mapped_value, &mut scratch)),
                why: origin,
            });
        }
    }
    values
}

/// Converts a value to JSON: a text, or `{"hex":…}`.
fn to_json(value: &[u8]) -> Json {
    serde_json::from_str(&json_string(value)).expect("JSON of ours")
}

/// Describes for people the type as which values of a slot are read.
fn value_type_name(slot: FieldLayout) -> String {
    match slot {
        FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } | FieldLayout::Publisher { .. } => {
            "name".to_owned()
        }
        FieldLayout::Syms { .. } => "names".to_owned(),
        FieldLayout::Price { .. } => "price, exact to 1e-9".to_owned(),
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            "exact decimal".to_owned()
        }
        FieldLayout::Amount { .. } => "exact amount".to_owned(),
        FieldLayout::Id { n, .. } => format!("id of at most {n} bytes"),
        FieldLayout::Text { .. } => "text".to_owned(),
        FieldLayout::Code { values, .. } => format!("one of {}", values.join(", ")),
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => "Y or N".to_owned(),
        FieldLayout::FlagSet { values, .. } => format!("some of {}, joined by +", values.join(", ")),
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => "date".to_owned(),
        FieldLayout::Tape { .. } => "id of a tape".to_owned(),
        FieldLayout::TapePosition { .. } | FieldLayout::TapePositions => "position on a tape".to_owned(),
        FieldLayout::UInt { .. } => "whole number".to_owned(),
        FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => "time".to_owned(),
        FieldLayout::Json => "JSON".to_owned(),
    }
}
