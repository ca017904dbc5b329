//! The compiled form of a mapping: paths have become numbered slots, so that rules, conditions and events look
//! at small numbers only. Nothing here knows a format.
//!
//! The operations on each field of each message are [`FieldOp`]s of 24 bytes, one after the other. The parts that
//! only errors need are apart from them ([`FieldPlan`]). Values that a table or the mapping itself gives are
//! [`PreparedValue`] where they can be: the code on the wire is an index, and what it finds is laid over the event.

use super::UnmatchedPolicy;
use super::partial_quote::PartialQuotePlan;
use crate::reference::InstrumentMaster;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use unitape_codec::charset::FallbackCharset;
use unitape_model::schema::EventFieldSpec;
use unitape_model::{EventKind, PreparedValue, words};

/// The most slots that a message or an entry may have, slot 0 included.
pub(super) const SLOTS_MAX: usize = 200;

/// A compiled mapping.
#[derive(Clone, Debug)]
pub struct MappingPlan {
    /// The number of slots of a message, including the empty slot 0.
    pub slot_count: usize,
    /// Slot of the message's type, which selects among the rules first.
    pub message_type: u8,
    /// Slots of the event time, in the order in which they are tried.
    pub ts: Vec<u8>,
    /// Slot of the sequence.
    pub sequence: Option<u8>,
    /// Slots that name the session.
    pub session: Vec<u8>,
    /// Slot of the possible-duplicate mark.
    pub possdup: Option<u8>,
    /// Whether fields that nothing names are kept.
    pub keeps: bool,
    /// The reading of text whose set of characters nothing declares and that is not UTF-8.
    pub fallback: FallbackCharset,
    /// By which names of instruments are looked up, if by any.
    pub instrument_master: Option<Arc<InstrumentMaster>>,
    /// The number of slots of an entry of each group, including the empty slot 0.
    pub entry_slot_counts: Vec<usize>,
    /// For each group: the slots that an entry without any of them inherits from the entry before.
    pub inherited_slots: Vec<Vec<u8>>,
    /// Values picked out of groups by a key.
    pub picks: Vec<GroupPick>,
    /// The picks from each group's entries, by the slot of the key.
    pub group_picks: Vec<Vec<KeyPicks>>,
    /// Value tables.
    pub tables: Vec<ValueTable>,
    /// Rules in their order.
    pub rules: Vec<CompiledRule>,
    /// Types of message that have rules of their own.
    pub(super) types: Vec<TypeRules>,
    // Its keys come from the mapping, so that messages cannot make it slow.
    pub(super) by_type: FxHashMap<Vec<u8>, usize>,
    pub(super) untyped: Vec<usize>,
}

/// The rules for a type, in order, including the rules without a type.
#[derive(Clone, Debug)]
pub(super) struct TypeRules {
    pub name: WantedValue,
    pub rules: Vec<usize>,
    /// The field that distinguishes many of them, with the rules by its value.
    pub codes: Option<RulesByCode>,
}

/// Rules by the value of a field of one byte, as an execution report has its type in one: most need not be looked at.
#[derive(Clone, Debug)]
pub(super) struct RulesByCode {
    /// The field.
    slot: u8,
    /// The index in `lists` for each byte.
    list_by_byte: Box<[u8; 256]>,
    /// Rules in order; the first list is for values other than the bytes that rules name.
    lists: Vec<Vec<usize>>,
}

/// With fewer rules for a field, they are tried one after the other.
const CODES_FEW: usize = 3;

impl RulesByCode {
    /// Makes an index by the field that most of these rules test for a value. Returns `None` if only a few rules test
    /// it.
    pub fn new(of_type: &[usize], rules: &[CompiledRule]) -> Option<Self> {
        let reads_slot = |rule: usize, slot: u8| {
            let of_slot = |cond: &&RuleCondition| matches!(cond.from, ValueSource::Message(of) if of == slot);
            rules[rule].conditions.iter().filter(of_slot).find_map(|cond| match &cond.value {
                ValueTest::Is(wanted) => Some(std::slice::from_ref(wanted)),
                ValueTest::OneOf(all) => Some(&all[..]),
                ValueTest::Sign(_) | ValueTest::Present(_) => None,
            })
        };
        let rules_on = |slot: u8| of_type.iter().filter(|rule| reads_slot(**rule, slot).is_some()).count();
        let (count, slot) =
            (0..=u8::MAX).map(|slot| (rules_on(slot), slot)).max_by_key(|(count, _)| *count)?;
        if count < CODES_FEW {
            return None;
        }
        let list = |may: &dyn Fn(&WantedValue) -> bool| -> Vec<usize> {
            let may = |rule: &&usize| reads_slot(**rule, slot).is_none_or(|all| all.iter().any(may));
            of_type.iter().filter(may).copied().collect()
        };
        let mut this =
            Self { slot, list_by_byte: Box::new([0; 256]), lists: vec![list(&|w| w.text().len() != 1)] };
        // A text of one byte is ASCII, so that the lists have numbers of one byte.
        for byte in 0..0x80 {
            if of_type.iter().filter_map(|rule| reads_slot(*rule, slot)).flatten().any(|w| w.matches(&[byte]))
            {
                this.list_by_byte[usize::from(byte)] = this.lists.len() as u8;
                this.lists.push(list(&|w| w.matches(&[byte])));
            }
        }
        Some(this)
    }

    /// Returns the slot of the tested field.
    pub fn slot(&self) -> u8 {
        self.slot
    }

    /// Returns the rules that may hold if the field has this value, or no value.
    #[inline]
    pub fn get(&self, value: Option<&[u8]>) -> &[usize] {
        let Some([byte]) = value else { return &self.lists[0] };
        &self.lists[usize::from(self.list_by_byte[usize::from(*byte)])]
    }
}

/// A value that others are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedValue {
    /// The value, if it has at most eight bytes.
    first_word: u64,
    value_text: Vec<u8>,
}

impl WantedValue {
    /// Makes a wanted value from its text.
    pub fn new(text: &[u8]) -> Self {
        Self { first_word: words::word(text), value_text: text.to_vec() }
    }

    /// Returns whether `value` equals the wanted value.
    #[inline]
    pub fn matches(&self, value: &[u8]) -> bool {
        value.len() == self.value_text.len() && self.matches_word(words::word(value), value)
    }

    /// Returns whether `value` equals the wanted value; `word` must be the word of `value`.
    #[inline]
    pub fn matches_word(&self, word: u64, value: &[u8]) -> bool {
        word == self.first_word
            && value.len() == self.value_text.len()
            && (value.len() <= 8 || value == &self.value_text[..])
    }

    /// Returns the value.
    pub fn text(&self) -> &[u8] {
        &self.value_text
    }
}

/// The test of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueTest {
    /// This.
    Is(WantedValue),
    /// One of these values.
    OneOf(Vec<WantedValue>),
    /// A number with this sign.
    Sign(NumberSign),
    /// There, or not there.
    Present(bool),
}

/// The sign of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberSign {
    /// Less than zero.
    Negative,
    /// Zero.
    Zero,
    /// More than zero.
    Positive,
}

impl NumberSign {
    /// Returns the sign of a number in plain text; `None` if the text is no number.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let (is_negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let digits = match digits.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(exponent_start) => {
                let exponent = &digits[exponent_start + 1..];
                let exponent =
                    exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
                if exponent.is_empty() || !exponent.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                &digits[..exponent_start]
            }
            None => digits,
        };
        let points = digits.iter().filter(|b| **b == b'.').count();
        let is_number = digits.len() > points && points < 2;
        if !is_number || !digits.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
            return None;
        }
        Some(match digits.iter().any(|b| (b'1'..=b'9').contains(b)) {
            false => NumberSign::Zero,
            true if is_negative => NumberSign::Negative,
            true => NumberSign::Positive,
        })
    }
}

impl ValueTest {
    /// Returns whether `value` passes the test.
    #[inline]
    pub fn matches(&self, value: &[u8]) -> bool {
        match self {
            ValueTest::Is(wanted) => wanted.matches(value),
            ValueTest::OneOf(all) => all.iter().any(|wanted| wanted.matches(value)),
            ValueTest::Sign(sign) => NumberSign::from_text(value) == Some(*sign),
            ValueTest::Present(is) => *is,
        }
    }

    /// Returns whether the test passes without a value.
    #[cold]
    pub fn is_absent(&self) -> bool {
        *self == ValueTest::Present(false)
    }

    /// Returns the wanted value, if the test allows only one value.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            ValueTest::Is(wanted) => Some(wanted.text()),
            _ => None,
        }
    }

    /// Describes the wanted value for people.
    pub fn describe(&self) -> Vec<u8> {
        match self {
            ValueTest::Is(wanted) => wanted.text().to_vec(),
            ValueTest::OneOf(all) => all.iter().map(WantedValue::text).collect::<Vec<_>>().join(&b" or "[..]),
            ValueTest::Present(true) => b"there".to_vec(),
            ValueTest::Present(false) => b"not there".to_vec(),
            ValueTest::Sign(sign) => format!("a {sign:?} number").to_lowercase().into_bytes(),
        }
    }
}

/// A condition: the slot's value is this.
#[derive(Clone, Debug)]
pub struct RuleCondition {
    /// The source of the value.
    pub from: ValueSource,
    /// The test of its value.
    pub value: ValueTest,
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    /// All must hold, besides the type by which the rule was found.
    pub conditions: Vec<RuleCondition>,
    /// Their paths as the mapping spells them, for people.
    pub condition_paths: Vec<String>,
    /// Known and not wanted.
    pub ignore: bool,
    /// Groups from which its events pick values.
    pub pick_groups: Vec<usize>,
    /// Groups whose entries become events.
    pub event_groups: Vec<usize>,
    /// The events that the message becomes.
    pub events: Vec<EventPlan>,
    /// Entries that become nothing.
    pub ignored: Vec<IgnoredEntries>,
}

/// Entries of a group that become nothing.
#[derive(Clone, Debug)]
pub struct IgnoredEntries {
    /// The group.
    pub each: usize,
    /// All must hold.
    pub conditions: Vec<RuleCondition>,
}

/// A compiled event of a rule.
#[derive(Clone, Debug)]
pub struct EventPlan {
    /// Its kind.
    pub kind: EventKind,
    /// The group whose entries each make an event.
    pub each: Option<usize>,
    /// The flags of its frame.
    pub frame_flags: u8,
    /// All must hold.
    pub conditions: Vec<RuleCondition>,
    /// Their paths as the mapping spells them, for people.
    pub condition_paths: Vec<String>,
    /// One of these must have a value, if the list is not empty.
    pub some_of: Vec<ValueSource>,
    /// If all conditions of one of these hold, it may have been sent before.
    pub repeats: Vec<Vec<RuleCondition>>,
    /// The plan of a quote whose empty sides are unchanged.
    pub partial: Option<PartialQuotePlan>,
    /// The operation for each of its fields.
    pub ops: Vec<FieldOp>,
    /// Its fields, in the order of `ops`.
    pub fields: Vec<FieldPlan>,
    /// Codes of one byte and the values that they put into their field.
    pub codes: Vec<CodeTable>,
    /// The sources of its prices. Of each list one must be there in messages of this form.
    pub prices: Vec<Vec<ValueSource>>,
    /// Kept beside them.
    pub keep: Vec<(String, ValueSource)>,
    /// Fields of the entry that nothing names and that are kept, by path.
    pub keep_entry: Vec<(String, u8)>,
}

/// The operation for a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldOp {
    /// The field.
    pub spec: &'static EventFieldSpec,
    /// The source of its value.
    pub from: SlotSource,
    /// The second source, if the first has no value.
    pub or: Option<SlotSource>,
    /// The operation that sets its value.
    pub kind: SetOp,
    /// Without a value the message is refused.
    pub required: bool,
}

/// The source of a value, for the look at every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotSource {
    /// A field of the message.
    Message(u8),
    /// A field of the group entry.
    Entry(u8),
    /// A value picked out of a group.
    Pick(u8),
    /// The mapping's own.
    Const,
}

/// The replacements of codes of one byte, ready for their field.
#[derive(Clone, Debug)]
pub struct CodeTable {
    /// Index and one more in `ready`; 0 for the long path.
    index: Box<[u8; 256]>,
    ready: Vec<PreparedValue>,
}

impl CodeTable {
    /// Makes the table of `pick` for each byte; `None` if `pick` returns no value for any byte.
    pub(super) fn new(pick: impl Fn(u8) -> Option<PreparedValue>) -> Option<Self> {
        let mut this = Self { index: Box::new([0; 256]), ready: Vec::new() };
        for byte in 0..=255u8 {
            let Some(ready) = pick(byte).filter(|_| this.ready.len() < 255) else { continue };
            this.ready.push(ready);
            this.index[usize::from(byte)] = this.ready.len() as u8;
        }
        (!this.ready.is_empty()).then_some(this)
    }

    /// Looks up the replacement of `value`.
    #[inline]
    pub fn get(&self, value: &[u8]) -> Option<PreparedValue> {
        let [byte] = value else { return None };
        self.ready.get(usize::from(self.index[usize::from(*byte)]).wrapping_sub(1)).copied()
    }
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// A field of the message.
    Message(u8),
    /// A field of the group entry.
    Entry(u8),
    /// A value picked out of a group.
    Pick(u8),
    /// Always this.
    Const(Vec<u8>),
}

impl ValueSource {
    /// Converts the source to the form that the check of every message uses.
    pub(super) fn to_slot_source(&self) -> SlotSource {
        match self {
            ValueSource::Message(slot) => SlotSource::Message(*slot),
            ValueSource::Entry(slot) => SlotSource::Entry(*slot),
            ValueSource::Pick(i) => SlotSource::Pick(*i),
            ValueSource::Const(_) => SlotSource::Const,
        }
    }
}

/// A compiled field.
#[derive(Clone, Debug)]
pub struct FieldPlan {
    /// The field.
    pub spec: &'static EventFieldSpec,
    /// Without a value the message is refused.
    pub required: bool,
    /// The source of its value.
    pub from: ValueSource,
    /// The second source, if the first has no value.
    pub or: Option<ValueSource>,
    /// Table its values go through, and what becomes of others.
    pub table: Option<(usize, Option<UnmatchedPolicy>)>,
    /// The suffix appended to the value.
    pub suffix: Option<Vec<u8>>,
    /// Without its sign.
    pub absolute: bool,
    /// The path, for error messages.
    pub path: String,
}

/// The operation that sets a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// As the format sets it; most do.
    AsItIs,
    /// As a time.
    Time,
    /// As text, through a table or with a suffix, or the mapping's own.
    Text,
    /// By the codes at this index; other values as text.
    Coded(u8),
    /// The mapping's own, ready.
    Ready(PreparedValue),
}

/// A value picked out of a group: of the first or the best entry in which `key` is `is`, the field `value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPick {
    /// The group.
    pub group: usize,
    /// Slot of the value in an entry.
    pub value: u8,
    /// Slot of the key in an entry.
    pub key: u8,
    /// The key looked for.
    pub is: WantedValue,
    /// The rule that picks one of several such entries; without it, the first entry.
    pub best: Option<BestEntryRule>,
}

/// The best of several entries, by a number of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEntryRule {
    /// Slot of the number in an entry.
    pub slot: u8,
    /// The highest number, or the lowest.
    pub wanted_order: Ordering,
}

/// Keys looked for in one slot of a group's entries.
#[derive(Clone, Debug)]
pub struct KeyPicks {
    /// The slot.
    pub key: u8,
    /// Each key, with the slot of the value beside it and the index of the pick.
    pub firsts: Vec<(WantedValue, u8, u8)>,
    /// The keys by which the best entry is chosen.
    pub bests: Vec<BestPicks>,
}

/// Values that are all of the same entry: the best in which the key is `is`.
#[derive(Clone, Debug)]
pub struct BestPicks {
    /// The key looked for.
    pub is: WantedValue,
    /// The rule that picks the best entry.
    pub best: BestEntryRule,
    /// The index of the pick that holds the best entry's number.
    pub number: u8,
    /// Slot of a value, and the index of its pick; the number is one of them.
    pub values: Vec<(u8, u8)>,
}

/// Value → value. Codes of one byte, which most are, are found without hashing.
#[derive(Clone, Debug)]
pub struct ValueTable {
    /// The index in `values` plus 1, by first byte; 0 means no value.
    index_by_byte: Box<[u16; 256]>,
    index_by_text: FxHashMap<Vec<u8>, usize>,
    values: Vec<Vec<u8>>,
}

impl ValueTable {
    pub(super) fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let mut this = Self {
            index_by_byte: Box::new([0; 256]),
            index_by_text: FxHashMap::default(),
            values: Vec::new(),
        };
        for (key, value) in pairs {
            match key[..] {
                [byte] => this.index_by_byte[usize::from(byte)] = this.values.len() as u16 + 1,
                _ => _ = this.index_by_text.insert(key, this.values.len()),
            }
            this.values.push(value);
        }
        this
    }

    /// Looks up the replacement of `value`.
    #[inline]
    pub fn get(&self, value: &[u8]) -> Option<&[u8]> {
        let i = match value {
            [byte] => usize::from(self.index_by_byte[usize::from(*byte)]).checked_sub(1)?,
            _ => *self.index_by_text.get(value)?,
        };
        Some(&self.values[i])
    }
}

impl MappingPlan {
    /// Returns the rules that may hold for messages of this type, in order.
    pub fn rules_for(&self, message_type: &[u8]) -> &[usize] {
        self.of_type(message_type).map_or(&self.untyped, |t| &t.rules)
    }

    #[inline]
    pub(super) fn of_type(&self, message_type: &[u8]) -> Option<&TypeRules> {
        // A few are compared one after the other sooner than hashed.
        if self.types.len() <= TYPES_FEW {
            self.types.iter().find(|t| t.name.matches(message_type))
        } else {
            self.by_type.get(message_type).map(|i| &self.types[*i])
        }
    }

    /// Returns the message types whose rules read a group; the empty name means types that have no rule of their own.
    pub fn types_of_group(&self, group: usize) -> BTreeSet<&[u8]> {
        let reads = |rule: &usize| {
            let rule = &self.rules[*rule];
            rule.pick_groups.contains(&group) || rule.events.iter().any(|event| event.each == Some(group))
        };
        let named = self.by_type.iter().filter(|(_, i)| self.types[**i].rules.iter().any(reads));
        let untyped_name = self.untyped.iter().any(reads).then_some(&b""[..]);
        named.map(|(name, _)| &name[..]).chain(untyped_name).collect()
    }

    /// Lists the message types that have rules of their own.
    pub fn message_types(&self) -> impl Iterator<Item = &[u8]> {
        self.types.iter().map(|t| t.name.text())
    }

    /// Collects what the rules read in messages of this type: the slots, and the groups whose entries they read.
    pub fn slot_usage(&self, message_type: &[u8]) -> SlotUsage {
        let mut usage = SlotUsage {
            message_slots: [false; SLOTS_MAX],
            used_groups: vec![false; self.entry_slot_counts.len()],
        };
        let of_message = [self.message_type].into_iter().chain(self.ts.iter().copied());
        let of_sequence = self.sequence.iter().chain(&self.session).chain(&self.possdup).copied();
        for slot in of_message.chain(of_sequence) {
            usage.message_slots[usize::from(slot)] = true;
        }
        for rule in self.rules_for(message_type).iter().map(|&i| &self.rules[i]) {
            let ignored = rule.ignored.iter().flat_map(|entries| &entries.conditions);
            rule.conditions.iter().chain(ignored).for_each(|cond| usage.note_usage(&cond.from, &self.picks));
            for event in &rule.events {
                if let Some(group) = event.each {
                    usage.used_groups[group] = true;
                }
                let fields = event.fields.iter().flat_map(|f| [Some(&f.from), f.or.as_ref()]).flatten();
                let kept_sources = event.keep.iter().map(|(_, from)| from);
                let conditions = event.conditions.iter().chain(event.repeats.iter().flatten());
                let conditions = conditions.map(|cond| &cond.from);
                fields
                    .chain(kept_sources)
                    .chain(conditions)
                    .for_each(|from| usage.note_usage(from, &self.picks));
            }
        }
        usage
    }
}

/// The parts that the rules for a type of message look at.
#[derive(Clone, Debug)]
pub struct SlotUsage {
    /// Slots of the message.
    pub message_slots: [bool; SLOTS_MAX],
    /// Groups.
    pub used_groups: Vec<bool>,
}

impl SlotUsage {
    /// Adds the usage of the rules for another type.
    pub fn add(&mut self, usage: &SlotUsage) {
        self.message_slots.iter_mut().zip(&usage.message_slots).for_each(|(a, b)| *a |= b);
        self.used_groups.iter_mut().zip(&usage.used_groups).for_each(|(a, b)| *a |= b);
    }

    fn note_usage(&mut self, from: &ValueSource, picks: &[GroupPick]) {
        match from {
            ValueSource::Message(slot) => self.message_slots[usize::from(*slot)] = true,
            ValueSource::Pick(i) => self.used_groups[picks[usize::from(*i)].group] = true,
            // The event's own group, noted already.
            ValueSource::Entry(_) | ValueSource::Const(_) => {}
        }
    }
}

const TYPES_FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(slot: u8, value: ValueTest) -> CompiledRule {
        let conditions = vec![RuleCondition { from: ValueSource::Message(slot), value }];
        CompiledRule {
            conditions,
            condition_paths: Vec::new(),
            ignore: true,
            pick_groups: Vec::new(),
            event_groups: Vec::new(),
            events: Vec::new(),
            ignored: Vec::new(),
        }
    }

    fn is(text: &str) -> ValueTest {
        ValueTest::Is(WantedValue::new(text.as_bytes()))
    }

    /// Guards against a rule that is left out although it may hold: a later rule would get the message.
    #[test]
    fn a_code_leaves_out_rules_that_cannot_hold() {
        let one_of = ValueTest::OneOf(["1", "10"].map(|text| WantedValue::new(text.as_bytes())).to_vec());
        let rules = [
            rule(1, is("0")),
            rule(1, one_of),
            rule(2, is("x")),
            rule(1, is("F")),
            rule(1, ValueTest::Present(true)),
        ];
        let codes = RulesByCode::new(&[0, 1, 2, 3, 4], &rules).expect("three rules want a value of field 1");
        assert_eq!(codes.slot(), 1);
        for (value, may_hold) in [
            (Some("0"), &[0, 2, 4][..]),
            (Some("1"), &[1, 2, 4]),
            (Some("10"), &[1, 2, 4]),
            (Some("F"), &[2, 3, 4]),
            // No rule wants it; the one that wants a longer value is looked at as well.
            (Some("Z"), &[1, 2, 4]),
            (None, &[1, 2, 4]),
        ] {
            assert_eq!(codes.get(value.map(str::as_bytes)), may_hold, "{value:?}");
        }
        assert!(RulesByCode::new(&[0, 1, 2], &rules).is_none(), "two are compared as fast");
    }
}
