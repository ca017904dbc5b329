//! The compiled form of a mapping: paths have become numbered slots, so that rules, conditions and events look
//! at small numbers only. Nothing here knows a format.

use super::Otherwise;
use rustc_hash::FxHashMap;
use unitape_model::Kind;
use unitape_model::schema::Spec;

/// How many slots a message or an entry may have, slot 0 included.
pub(super) const SLOTS_MAX: usize = 200;

/// A compiled mapping.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many slots a message has, slot 0 (none) included.
    pub slot_count: usize,
    /// Slot of the message's type, by which rules are first told apart.
    pub message_type: u8,
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
    /// How many slots an entry of each group has, slot 0 (none) included.
    pub entry_slots: Vec<usize>,
    /// Values picked out of groups by a key.
    pub picks: Vec<Pick>,
    /// Value tables.
    pub tables: Vec<ValueTable>,
    /// Rules in their order.
    pub rules: Vec<Rule>,
    // What is in it comes from the mapping, so that messages cannot make it slow.
    pub(super) by_type: FxHashMap<Vec<u8>, Vec<usize>>,
    pub(super) untyped: Vec<usize>,
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
    /// Fields of the entry that nothing names and that are kept, by path.
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
    /// Without a value the message is refused.
    pub required: bool,
    /// Where its value comes from.
    pub from: From,
    /// Where else, if it is not there.
    pub or: Option<From>,
    /// How its value gets there.
    pub way: Way,
    /// Table its values go through, and what becomes of others.
    pub table: Option<(usize, Option<Otherwise>)>,
    /// Put behind the value.
    pub suffix: Option<Vec<u8>>,
    /// The path, for error messages.
    pub path: String,
}

/// How a field gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As the format sets it; most do.
    AsItIs,
    /// As a time.
    Time,
    /// As text, through a table or with a suffix, or the mapping's own.
    Text,
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
    pub(super) fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
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

impl Plan {
    /// The rules that may hold for messages of this type, in order.
    #[inline]
    pub fn rules_for(&self, message_type: &[u8]) -> &[usize] {
        self.by_type.get(message_type).unwrap_or(&self.untyped)
    }
}
