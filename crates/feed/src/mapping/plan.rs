//! The compiled form of a mapping: tags become numbered slots, so that one pass over a message's fields
//! gathers all that its rules will look at.

use super::{FieldTable, FieldText, Mapping, Otherwise, Unlisted};
use crate::error::Error;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use unitape_model::{Kind, Schema, Spec};

/// Slot number of a tag that nothing names and that is to be kept.
pub const KEEP: u8 = 255;
const SLOTS_MAX: usize = 200;
const DENSE: usize = 2048;

/// A compiled mapping.
#[derive(Clone, Debug)]
pub struct Plan {
    slots: TagMap,
    /// How many slots a message has, slot 0 (none) included.
    pub slot_count: usize,
    /// Slot of MsgType, by which rules are first told apart.
    pub msg_type: u8,
    /// Slots of the event time, in the order they are tried.
    pub ts: Vec<u8>,
    /// Slot of the sequence.
    pub sequence: Option<u8>,
    /// Slots that name the session.
    pub session: Vec<u8>,
    /// Slot of the possible-duplicate mark.
    pub possdup: Option<u8>,
    /// Whether fields that nothing names are kept.
    pub keeps: bool,
    /// Repeating groups.
    pub groups: Vec<GroupPlan>,
    /// Values picked out of groups by a key.
    pub picks: Vec<Pick>,
    /// Value tables.
    pub tables: Vec<ValueTable>,
    /// Rules in their order.
    pub rules: Vec<Rule>,
    // What is in it comes from the mapping, so that messages cannot make it slow.
    by_type: FxHashMap<Vec<u8>, Vec<usize>>,
    untyped: Vec<usize>,
}

/// A condition: the slot's value is this.
#[derive(Clone, Debug)]
pub struct Cond {
    /// Where to look.
    pub from: From,
    /// What must stand there.
    pub value: Vec<u8>,
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// All must hold.
    pub when: Vec<Cond>,
    /// Known and not wanted.
    pub ignore: bool,
    /// Groups out of which its events pick values.
    pub pick_groups: Vec<usize>,
    /// What it becomes.
    pub events: Vec<EventPlan>,
}

/// A compiled event of a rule.
#[derive(Clone, Debug)]
pub struct EventPlan {
    /// Its kind.
    pub kind: Kind,
    /// Group of which each entry makes an event.
    pub each: Option<usize>,
    /// All must hold.
    pub when: Vec<Cond>,
    /// Its fields.
    pub fields: Vec<FieldPlan>,
    /// Kept beside them.
    pub keep: Vec<(String, From)>,
    /// Fields of the entry that nothing names and that are kept, by tag.
    pub keep_entry: Vec<(String, u8)>,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum From {
    /// A field of the message.
    Message(u8),
    /// A field of the group entry.
    Entry(u8),
    /// A value picked out of a group.
    Pick(usize),
    /// Always this.
    Const(Vec<u8>),
}

/// A compiled field.
#[derive(Clone, Debug)]
pub struct FieldPlan {
    /// The field.
    pub spec: &'static Spec,
    /// Where its value comes from.
    pub from: From,
    /// Where else, if it is not there.
    pub or: Option<From>,
    /// Table its values go through, and what becomes of others.
    pub table: Option<(usize, Option<Otherwise>)>,
    /// Put behind the value.
    pub suffix: Option<Vec<u8>>,
    /// The tag, for error messages.
    pub tag: String,
}

/// A repeating group.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Tag of its count.
    pub count_tag: u32,
    /// Slot of its count in the message.
    pub count: u8,
    /// First tag of every entry.
    pub delimiter: u32,
    /// Slots of its members inside an entry; 0 for a tag that is none of its members.
    pub members: TagMap,
    /// How many slots an entry has, slot 0 (none) included.
    pub slot_count: usize,
}

/// A value picked out of a group: of the first entry in which `key` is `is`, the field `value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The group.
    pub group: usize,
    /// Slot of the value in an entry.
    pub value: u8,
    /// Slot of the key in an entry.
    pub key: u8,
    /// The key looked for.
    pub is: Vec<u8>,
}

/// Value → value. Codes of one byte, which most are, are found without hashing.
#[derive(Clone, Debug)]
pub struct ValueTable {
    /// Index + 1 in `values` by first byte, 0 none.
    short: Box<[u16; 256]>,
    long: FxHashMap<Vec<u8>, usize>,
    values: Vec<Vec<u8>>,
}

impl ValueTable {
    fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let mut this = Self { short: Box::new([0; 256]), long: FxHashMap::default(), values: Vec::new() };
        for (key, value) in pairs {
            match key[..] {
                [byte] => this.short[usize::from(byte)] = this.values.len() as u16 + 1,
                _ => _ = this.long.insert(key, this.values.len()),
            }
            this.values.push(value);
        }
        this
    }

    /// What stands for `value`.
    #[inline]
    pub fn get(&self, value: &[u8]) -> Option<&[u8]> {
        let i = match value {
            [byte] => usize::from(self.short[usize::from(*byte)]).checked_sub(1)?,
            _ => *self.long.get(value)?,
        };
        Some(&self.values[i])
    }
}

/// Tag → slot, dense for the tags in use.
#[derive(Clone, Debug)]
pub struct TagMap {
    dense: Box<[u8]>,
    sparse: BTreeMap<u32, u8>,
    other: u8,
}

impl TagMap {
    fn new(other: u8) -> Self {
        Self { dense: vec![other; DENSE].into(), sparse: BTreeMap::new(), other }
    }

    /// The slot of `tag`.
    #[inline]
    pub fn get(&self, tag: u32) -> u8 {
        match self.dense.get(tag as usize) {
            Some(slot) => *slot,
            None => self.sparse.get(&tag).copied().unwrap_or(self.other),
        }
    }

    fn set(&mut self, tag: u32, slot: u8) {
        match self.dense.get_mut(tag as usize) {
            Some(s) => *s = slot,
            None => _ = self.sparse.insert(tag, slot),
        }
    }
}

impl Plan {
    /// Compiles a mapping.
    ///
    /// # Errors
    /// What in it cannot be: unknown kinds, fields, tables, groups, or a required field left out.
    pub fn compile(mapping: &Mapping) -> Result<Self, Error> {
        Compiler::new(mapping)
            .compile()
            .map_err(|what| Error::Mapping { origin: mapping.origin.clone(), what })
    }

    /// The slot of a message-level tag: 0 is not wanted, [`KEEP`] unlisted and to be kept.
    #[inline]
    pub fn slot(&self, tag: u32) -> u8 {
        self.slots.get(tag)
    }

    /// The rules that may hold for messages of this type, in order.
    #[inline]
    pub fn rules_for(&self, msg_type: &[u8]) -> &[usize] {
        self.by_type.get(msg_type).unwrap_or(&self.untyped)
    }
}

struct Compiler<'m> {
    mapping: &'m Mapping,
    slots: TagMap,
    next: usize,
    groups: Vec<GroupPlan>,
    group_names: Vec<String>,
    picks: Vec<Pick>,
    tables: Vec<ValueTable>,
    table_names: Vec<String>,
}

type Step<T> = Result<T, String>;

impl<'m> Compiler<'m> {
    fn new(mapping: &'m Mapping) -> Self {
        let other = if mapping.message.unlisted == Unlisted::Keep { KEEP } else { 0 };
        Self {
            mapping,
            slots: TagMap::new(other),
            next: 1,
            groups: Vec::new(),
            group_names: Vec::new(),
            picks: Vec::new(),
            tables: Vec::new(),
            table_names: Vec::new(),
        }
    }

    fn compile(mut self) -> Step<Plan> {
        let m = self.mapping;
        if m.format != "fix" {
            return Err(format!("format `{}` has no mapping; formats with one: fix", m.format));
        }
        // Framing knows these; they say nothing about the market.
        for tag in [8, 9, 10] {
            self.slots.set(tag, 0);
        }
        for tag in &m.message.drop {
            let tag = parse_tag(tag).map_err(|e| format!("message.drop: {e}"))?;
            self.slots.set(tag, 0);
        }
        for (name, table) in &m.table {
            self.table_names.push(name.clone());
            let pairs = table.iter().map(|(k, v)| (k.clone().into_bytes(), v.clone().into_bytes()));
            self.tables.push(ValueTable::new(pairs.collect()));
        }
        for (count, group) in &m.group {
            let at = |e| format!("group.{count}: {e}");
            let mut members = TagMap::new(0);
            for (i, tag) in group.members.iter().enumerate() {
                if i + 1 >= SLOTS_MAX {
                    return Err(at("too many members".to_owned()));
                }
                members.set(parse_tag(tag).map_err(at)?, i as u8 + 1);
                // The entries are read as entries; at the level of the message they are nothing.
                self.slots.set(parse_tag(tag)?, 0);
            }
            let count_tag = parse_tag(group.count.as_ref().unwrap_or(count)).map_err(at)?;
            let delimiter = parse_tag(&group.delimiter).map_err(at)?;
            if members.get(delimiter) == 0 {
                return Err(at("the delimiter must be one of the members".to_owned()));
            }
            self.slots.set(count_tag, 0);
            let slot_count = group.members.len() + 1;
            self.groups.push(GroupPlan { count_tag, count: 0, delimiter, members, slot_count });
            self.group_names.push(count.clone());
        }
        // A count may be a member of another group, so all of these come behind all of those.
        for i in 0..self.groups.len() {
            self.groups[i].count = self.tag_slot(self.groups[i].count_tag)?;
        }
        let msg_type = self.message_slot("35")?;
        let ts = std::iter::once(&m.message.ts)
            .chain(&m.message.ts_or)
            .map(|t| self.message_slot(t).map_err(|e| format!("message.ts: {e}")))
            .collect::<Step<_>>()?;
        let sequence = m.message.sequence.as_ref().map(|t| self.message_slot(t)).transpose()?;
        let session = m.message.session.iter().map(|t| self.message_slot(t)).collect::<Step<_>>()?;
        let possdup = m.message.possdup.as_ref().map(|t| self.message_slot(t)).transpose()?;
        let mut rules = Vec::new();
        let mut by_type: FxHashMap<Vec<u8>, Vec<usize>> = FxHashMap::default();
        let mut untyped = Vec::new();
        for (i, rule) in m.rule.iter().enumerate() {
            let at = |e: String| format!("rule {}{e}", i + 1);
            if rule.ignore != rule.event.is_empty() {
                return Err(at(if rule.ignore {
                    ": `ignore` and events at once".to_owned()
                } else {
                    ": neither `ignore` nor an event".to_owned()
                }));
            }
            let when = self.conditions(&rule.when, None).map_err(|e| at(format!(": {e}")))?;
            let mut events = Vec::new();
            for (j, event) in rule.event.iter().enumerate() {
                events.push(self.event(event).map_err(|e| at(format!(", event {}{e}", j + 1)))?);
            }
            match rule.when.get("35") {
                Some(t) => by_type.entry(t.clone().into_bytes()).or_insert_with(|| untyped.clone()).push(i),
                None => {
                    untyped.push(i);
                    by_type.values_mut().for_each(|list| list.push(i));
                }
            }
            let mut pick_groups: Vec<usize> = events.iter().flat_map(|e| self.groups_picked(e)).collect();
            pick_groups.sort_unstable();
            pick_groups.dedup();
            rules.push(Rule { when, ignore: rule.ignore, pick_groups, events });
        }
        if rules.is_empty() {
            return Err("no rule".to_owned());
        }
        Ok(Plan {
            slots: self.slots,
            slot_count: self.next,
            msg_type,
            ts,
            sequence,
            session,
            possdup,
            keeps: m.message.unlisted == Unlisted::Keep,
            groups: self.groups,
            picks: self.picks,
            tables: self.tables,
            rules,
            by_type,
            untyped,
        })
    }

    fn event(&mut self, text: &super::EventText) -> Step<EventPlan> {
        let kind = Kind::from_name(&text.kind).ok_or_else(|| format!(": no kind `{}`", text.kind))?;
        let schema = Schema::of(kind);
        if let Some(name) = text.fields.keys().find(|n| schema.find(n).is_none()) {
            return Err(format!(": `{}` has no field `{name}`", text.kind));
        }
        let each = match &text.each {
            Some(g) => Some(
                self.group_names.iter().position(|n| n == g).ok_or_else(|| format!(": no group `{g}`"))?,
            ),
            None => None,
        };
        let when = self.conditions(&text.when, each).map_err(|e| format!(": {e}"))?;
        let mut fields = Vec::new();
        // In the order of the schema, so that the same mapping always writes the same bytes.
        for spec in schema.fields {
            if let Some(f) = text.fields.get(spec.field.name()) {
                fields.push(self.field(spec, f, each).map_err(|e| format!(", {}: {e}", spec.field.name()))?);
            } else if spec.required {
                return Err(format!(": `{}` needs the field `{}`", text.kind, spec.field.name()));
            }
        }
        let keep = text
            .keep
            .iter()
            .map(|(name, tag)| Ok((name.clone(), self.tag(tag, each)?)))
            .collect::<Step<_>>()
            .map_err(|e| format!(", keep: {e}"))?;
        let keep_entry = match &text.each {
            Some(g) if self.mapping.message.unlisted == Unlisted::Keep => {
                let named = |tag: &String| {
                    let from_field = |f: &FieldText| match f {
                        FieldText::Tag(t) => t == tag,
                        FieldText::Table(t) => t.from.as_ref() == Some(tag) || t.or.as_ref() == Some(tag),
                    };
                    text.when.contains_key(tag)
                        || text.keep.values().any(|t| t == tag)
                        || text.fields.values().any(from_field)
                        || self.mapping.message.drop.contains(tag)
                };
                let members = &self.mapping.group[g].members;
                let unnamed = members.iter().enumerate().filter(|(_, tag)| !named(tag));
                unnamed.map(|(i, tag)| (tag.clone(), i as u8 + 1)).collect()
            }
            _ => Vec::new(),
        };
        Ok(EventPlan { kind, each, when, fields, keep, keep_entry })
    }

    fn groups_picked<'e>(&'e self, event: &'e EventPlan) -> impl Iterator<Item = usize> + 'e {
        event.fields.iter().filter_map(|f| match f.from {
            From::Pick(p) => Some(self.picks[p].group),
            _ => None,
        })
    }

    fn field(&mut self, spec: &'static Spec, text: &FieldText, each: Option<usize>) -> Step<FieldPlan> {
        let long = match text {
            FieldText::Tag(t) => FieldTable { from: Some(t.clone()), ..FieldTable::default() },
            FieldText::Table(t) => t.clone(),
        };
        let table = match &long.table {
            Some(t) => {
                let i =
                    self.table_names.iter().position(|n| n == t).ok_or_else(|| format!("no table `{t}`"))?;
                Some((i, long.r#else))
            }
            None => None,
        };
        let (from, tag) = match &long {
            FieldTable { r#const: Some(c), from: None, group: None, .. } => {
                (From::Const(c.clone().into_bytes()), "const".to_owned())
            }
            FieldTable {
                group: Some(g),
                key: Some(key),
                is: Some(is),
                value: Some(value),
                from: None,
                ..
            } => {
                let group =
                    self.group_names.iter().position(|n| n == g).ok_or_else(|| format!("no group `{g}`"))?;
                let member = |text: &str| match self.groups[group].members.get(parse_tag(text)?) {
                    0 => Err(format!("`{text}` is no member of group `{g}`")),
                    slot => Ok(slot),
                };
                let pick =
                    Pick { group, value: member(value)?, key: member(key)?, is: is.clone().into_bytes() };
                let i = self.picks.iter().position(|p| *p == pick).unwrap_or_else(|| {
                    self.picks.push(pick);
                    self.picks.len() - 1
                });
                (From::Pick(i), value.clone())
            }
            FieldTable { from: Some(t), group: None, r#const: None, .. } => (self.tag(t, each)?, t.clone()),
            _ => return Err("one of `from`, `const`, or `group` with `key`, `is` and `value`".to_owned()),
        };
        let or = long.or.as_ref().map(|t| self.tag(t, each)).transpose()?;
        let suffix = long.suffix.clone().map(String::into_bytes);
        Ok(FieldPlan { spec, from, or, table, suffix, tag })
    }

    fn conditions(&mut self, when: &BTreeMap<String, String>, each: Option<usize>) -> Step<Vec<Cond>> {
        when.iter()
            .map(|(tag, value)| Ok(Cond { from: self.tag(tag, each)?, value: value.clone().into_bytes() }))
            .collect()
    }

    fn tag(&mut self, text: &str, each: Option<usize>) -> Step<From> {
        if let Some(g) = each {
            let slot = self.groups[g].members.get(parse_tag(text)?);
            if slot != 0 {
                return Ok(From::Entry(slot));
            }
        }
        self.message_slot(text).map(From::Message)
    }

    fn message_slot(&mut self, text: &str) -> Step<u8> {
        self.tag_slot(parse_tag(text)?)
    }

    fn tag_slot(&mut self, tag: u32) -> Step<u8> {
        let slot = self.slots.get(tag);
        if slot != 0 && slot != KEEP {
            return Ok(slot);
        }
        if self.next >= SLOTS_MAX {
            return Err(format!("more than {SLOTS_MAX} different fields"));
        }
        self.slots.set(tag, self.next as u8);
        self.next += 1;
        Ok((self.next - 1) as u8)
    }
}

fn parse_tag(text: &str) -> Step<u32> {
    text.parse().ok().filter(|t| *t > 0).ok_or_else(|| format!("`{text}` is no tag"))
}
