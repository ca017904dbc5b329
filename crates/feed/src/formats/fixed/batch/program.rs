//! Compiles the mapping's plan into the fast path's program for a type of record, if that path can do all of it.
//!
//! The fast path handles a record if its type alone, or one column of one byte, selects the rule. The record must
//! become one event, whose fields come from columns unchanged. Numbers become prices and quantities; text of up to 16
//! bytes becomes names, with a table or without; text becomes identities, words and codes; constants are allowed.
//! Columns of texts in the extension, and those that are kept beside the fields, must be text. Everything else is left to the general path.

use super::super::{FixedRecordView, NONE, RECORD, RecordSlots};
use super::batch_field::BatchField;
use super::emit::{NAMES_MAX, VARIANTS_MAX};
use super::extension_cache::{ExtensionCache, ExtensionColumn, ExtensionTarget, is_extension_text};
use super::names::NameColumn;
use crate::mapping::{
    CompiledRule, EventPlan, FieldPlan, MappingPlan, RuleCondition, SetOp, ValueSource, translate_const,
};
use unitape_codec::fixed::{BatchReader, FixedWidthLayout, LANES, NumberKind};
use unitape_model::schema::FieldLayout;
use unitape_model::{Dictionary, EventBuilder, FrameHeader, UnixNanos, flags};

/// A type of record.
#[derive(Debug)]
pub(in crate::formats::fixed) struct RecordTypeProgram {
    /// Bytes that must be there from the start of a record on.
    pub(super) reach: usize,
    pub(super) columns: BatchReader,
    /// Place of the event time.
    pub(super) ts: usize,
    /// Place of the sequence.
    pub(super) sequence: Option<usize>,
    /// The column whose byte selects the variant, and the variant by byte.
    pub(super) by_byte: Option<(usize, Box<[u8; 256]>)>,
    pub(super) variants: Vec<RecordDisposition>,
    /// Variant by lane, [`NO_VARIANT`] for records of the general path; of the current batch.
    pub(super) variant_of: [u8; LANES],
    /// Lanes of the current batch that are good.
    pub(super) good: u64,
}

/// The outcome of a rule for a record.
#[derive(Debug)]
pub(super) enum RecordDisposition {
    /// Nothing.
    Ignored,
    /// An event.
    Event(Box<EventProgram>),
}

/// No rule, or a rule that the batch path cannot express.
pub(super) const NO_VARIANT: u8 = u8::MAX;

/// The program that makes an event.
#[derive(Debug)]
pub(super) struct EventProgram {
    /// The fixed part with its constants and header, whole lines.
    pub template: Vec<u8>,
    /// The template, [`LANES`] times.
    pub templates: Vec<u8>,
    pub names: Vec<NameColumn>,
    pub batch_fields: Vec<BatchField>,
    pub extension_cache: Option<ExtensionCache>,
    /// Frames of the current segment: lane index and place in the arena.
    pub frames: Vec<(u8, u32)>,
}

impl RecordTypeProgram {
    /// Makes the program of a record type; `None` if the batch path cannot express it.
    pub(in crate::formats::fixed) fn new(
        plan: &MappingPlan,
        kind: &RecordSlots,
        layout: &FixedWidthLayout,
        index: u16,
    ) -> Option<Self> {
        let record = &layout.records()[usize::from(index)];
        let columns = BatchReader::new(layout, index)?;
        let marks_repeats = plan.rules.iter().flat_map(|rule| &rule.events).any(|e| !e.repeats.is_empty());
        if plan.possdup.is_some() || marks_repeats {
            return None;
        }
        let place_of = |slot: u8| match kind.slots[usize::from(slot)] {
            NONE | RECORD => None,
            column => columns.find(column),
        };
        let ts = match plan.ts[..] {
            [slot] => place_of(slot).filter(|(_, n)| *n == NumberKind::Instant)?.0,
            _ => return None,
        };
        let sequence = match plan.sequence {
            None => None,
            Some(slot) if kind.slots[usize::from(slot)] == NONE => None,
            // Other numbers are no sequence.
            Some(slot) => Some(place_of(slot).filter(|(_, n)| *n == NumberKind::Int)?.0),
        };
        // The rules that may hold for this record, with the conditions that are not known beforehand.
        let mut rules: Vec<(&CompiledRule, OpenConditions<'_>)> = Vec::new();
        for &i in plan.rules_for(record.name().as_bytes()) {
            let rule = &plan.rules[i];
            if let Some(open_conditions) = rule_conditions(&rule.conditions, kind, record.name())? {
                let always = open_conditions.is_empty();
                rules.push((rule, open_conditions));
                if always {
                    break;
                }
            }
        }
        let selector = rules.iter().flat_map(|(_, open)| open).map(|(column, _)| *column).next();
        let by_byte = match selector {
            None => None,
            Some(column) => {
                let column_layout = &record.columns()[usize::from(column)];
                if rules.iter().flat_map(|(_, open)| open).any(|(other_column, _)| *other_column != column)
                    || !column_layout.is_one_character()
                {
                    return None;
                }
                let variant = |byte: usize| {
                    let text = [byte as u8];
                    let fits = |open: &OpenConditions<'_>| {
                        open.is_empty()
                            || byte as u8 != column_layout.pad() && open.iter().all(|(_, is)| **is == text)
                    };
                    rules.iter().position(|(_, open)| fits(open)).map_or(NO_VARIANT, |i| i as u8)
                };
                Some((column_layout.start(), Box::new(std::array::from_fn(variant))))
            }
        };
        if rules.len() > VARIANTS_MAX {
            return None;
        }
        let mut reach = columns.bytes_needed();
        let mut variants = Vec::new();
        for (rule, _) in rules {
            variants.push(match &rule.events[..] {
                [] if rule.ignore => RecordDisposition::Ignored,
                [event] => {
                    let program = EventProgram::new(plan, event, kind, layout, index, &columns)?;
                    let names = program.names.iter().map(|n| n.bytes_needed());
                    reach = names
                        .chain(program.extension_cache.iter().map(|k| k.bytes_needed()))
                        .fold(reach, usize::max);
                    RecordDisposition::Event(Box::new(program))
                }
                _ => return None,
            });
        }
        if variants.is_empty() {
            return None;
        }
        let variant_of = [NO_VARIANT; LANES];
        Some(Self { reach, columns, ts, sequence, by_byte, variants, variant_of, good: 0 })
    }

    pub(super) fn begin_block(&mut self, dictionary: &Dictionary) {
        for variant in &mut self.variants {
            if let RecordDisposition::Event(program) = variant {
                program.names.iter_mut().for_each(|name| name.begin_block(dictionary));
            }
        }
    }
}

/// Conditions that are not known beforehand: columns and the values they must have.
type OpenConditions<'p> = Vec<(u16, &'p [u8])>;

/// Returns the conditions that must be checked in each record, as columns and values. Returns `Some(None)` if the
/// rule is for other records, `None` if it cannot be decided.
fn rule_conditions<'p>(
    rule_conditions: &'p [RuleCondition],
    kind: &RecordSlots,
    name: &str,
) -> Option<Option<OpenConditions<'p>>> {
    let mut open_conditions = Vec::new();
    for cond in rule_conditions {
        let ValueSource::Message(slot) = cond.from else { return None };
        let text = cond.value.text()?;
        match kind.slots[usize::from(slot)] {
            NONE => return Some(None),
            RECORD if text == name.as_bytes() => {}
            RECORD => return Some(None),
            column => open_conditions.push((column, text)),
        }
    }
    Some(Some(open_conditions))
}

impl EventProgram {
    fn new(
        plan: &MappingPlan,
        event: &EventPlan,
        kind: &RecordSlots,
        layout: &FixedWidthLayout,
        index: u16,
        columns: &BatchReader,
    ) -> Option<Self> {
        if event.partial.is_some()
            || event.each.is_some()
            || !event.conditions.is_empty()
            || !event.keep_entry.is_empty()
        {
            return None;
        }
        let record = &layout.records()[usize::from(index)];
        let (mut names, mut puts) = (Vec::new(), Vec::new());
        // As the general path does it: fields first, then what is kept.
        let mut extension_columns: Vec<ExtensionColumn> = Vec::new();
        let mut template = Vec::new();
        let mut builder = EventBuilder::begin(&mut template, event.kind, UnixNanos(0));
        for (field, op) in event.fields.iter().zip(&event.ops) {
            if field.or.is_some() || field.suffix.is_some() || field.absolute || op.kind == SetOp::Time {
                return None;
            }
            let column = match &field.from {
                ValueSource::Const(value) => {
                    let value = translate_const(plan, field, value)?;
                    // Names have other ids in another block.
                    if field.spec.slot.dict().is_some() {
                        return None;
                    }
                    builder.set_text(field.spec, value, &mut Dictionary::default()).ok()?;
                    continue;
                }
                ValueSource::Message(slot) => match kind.slots[usize::from(*slot)] {
                    NONE if field.required => return None,
                    NONE => continue,
                    RECORD => return None,
                    column => column,
                },
                _ => return None,
            };
            let column_layout = &record.columns()[usize::from(column)];
            match (field.spec.slot, columns.find(column)) {
                (FieldLayout::Sym { dict, offset: frame_offset }, None) if column_layout.is_text() => {
                    names.push(NameColumn::new(field, column, column_layout, dict, frame_offset)?);
                }
                (slot, Some((column_index, numbers))) if field.table.is_none() => {
                    puts.push(BatchField::number_field(field, slot, column_index, numbers)?);
                }
                (slot, None) if column_layout.is_text() && is_extension_text(slot) => {
                    if field.table.is_some() || !may_be_absent(field) {
                        return None;
                    }
                    extension_columns
                        .push(ExtensionColumn { target: ExtensionTarget::Field(field.spec), column });
                }
                (slot, None) if column_layout.is_text() => {
                    puts.push(BatchField::text_field(plan, field, slot, column_layout, event.kind)?)
                }
                _ => return None,
            }
        }
        // A constant in an extension would be before what is kept; few mappings have one.
        let constant_start = builder.finish(flags::LAST).ok()?;
        let header = FrameHeader::read(&template[constant_start..]);
        if header.flags() & flags::EXT != 0 || template.len() != header.len_bytes() {
            return None;
        }
        let kept_column = |name: &str, column| {
            let target = ExtensionTarget::Kept(name.to_owned());
            ExtensionColumn { target, column }
        };
        for (name, from) in &event.keep {
            let ValueSource::Message(slot) = from else { return None };
            match kind.slots[usize::from(*slot)] {
                NONE => {}
                RECORD => return None,
                column => extension_columns.push(kept_column(name, column)),
            }
        }
        if plan.keeps {
            let unlisted = kind.unlisted.iter();
            extension_columns
                .extend(unlisted.map(|c| kept_column(record.columns()[usize::from(*c)].name(), *c)));
        }
        if names.len() > NAMES_MAX {
            return None;
        }
        let extension_cache = match &extension_columns[..] {
            [] => None,
            _ => Some(ExtensionCache::new(extension_columns, record, event.kind)?),
        };
        debug_assert_eq!(FrameHeader::read(&template).kind(), event.kind as u8);
        let templates = template.repeat(LANES);
        Some(Self {
            template,
            templates,
            names,
            batch_fields: puts,
            extension_cache,
            frames: Vec::with_capacity(LANES),
        })
    }
}

/// Returns whether the field may be left out of a record.
pub(super) fn may_be_absent(field: &FieldPlan) -> bool {
    !field.required
}

/// The record of a lane, read by the general path.
pub(super) type GeneralRecordView<'m> = FixedRecordView<'m>;
