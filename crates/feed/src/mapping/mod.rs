//! Mappings: how a message becomes events, written in TOML and compiled once.
//!
//! ```toml
//! name = "jse-fix50-indices"
//! format = "fix"
//! detect = { begin_string = ["FIXT.1.1"], contains = ["1180=JSEFTSEP"] }
//!
//! [message]                 # what holds for every message
//! ts = "52"                 # event time; `ts_or = "60"`, or a list, where it is not there
//! sequence = "1181"
//! unlisted = "keep"         # fields that nothing below names: "keep" in the event, or "drop"
//! encoding = "cp850"        # of text formats: text that declares no set of characters and is not UTF-8
//! drop = ["1180"]           # fields that are known and not wanted
//! keep = { resent = "97" }  # kept in every event, as `keep` of an event
//!
//! [group.268]               # a repeating group: its entries begin with the delimiter
//! delimiter = "279"
//! members = ["279", "55", "269", "270"]
//!
//! [table.side]              # values on the wire → values of the field
//! "1" = "B"
//!
//! [[rule]]                  # the first rule whose `when` holds decides; no rule: quarantine
//! when = { "35" = "0" }
//! ignore = true
//!
//! [[rule]]
//! when = { "35" = "X" }
//! [[rule.event]]
//! kind = "index"
//! each = "268"              # one event per entry of this group …
//! when = { "269" = "3" }    # … for which this holds
//! fields = { index = "55", px = "270" }
//! keep = { entry_time = "273" }   # kept beside the fields, under this name
//! ```
//!
//! A condition names a value, several, or the sign of a number: `when = { "35" = ["D", "G"], "6" = { sign = "positive" } }`
//! (`negative`, `zero`), or whether a field is there: `{ present = false }`. Where the value is not there, or no number, no
//! other condition holds.
//!
//! A field is a path, or a table: `{ from = "44", or = "31", table = "side", else = "keep", suffix = "/y" }`, `{
//! const = "XJSE" }`, `{ from = "amount", absolute = true }` (a number without its sign). It may also be the value of
//! a group entry that a key picks: `{ group = "453", key = "452", is = "3", value = "448" }`. If there are several
//! such entries, the mapper reads the first. With `highest = "270"` or `lowest = "270"` it reads the one whose member
//! has that number. If a group looks different in different messages, declare it once for each form, under names of
//! its own with `count = "268"`. With `required = true` a message without the value is refused, also where the event
//! could do without it.
//!
//! An event with `snapshot = true` has the flag `snapshot`: it is part of a whole state, and not a change.
//!
//! A `bbo` event with `empty_side = "unchanged"` takes what it has no value for, a side or a part of one, as unchanged: it
//! gets the field `partial` then, and is not written if it has no value of any side. The default, `"withdrawn"`, takes a
//! side without a price as empty.
//!
//! An event with `some_of = ["bid", "ask"]` is written only if one of these of its fields has a value. A group with
//! `inherit = ["55", "48"]` gives an entry that has none of these members those of the entry before it.
//!
//! The example is FIX, whose paths are tags; for a log, `framing = { sep = "|", log = true, lenient = false }` says
//! how its bytes are framed. `lenient` may also be a kind of faults that are accepted, or several: `["empty", "data"]`.
//! With `repeat = [{ "97" = "Y" }]` events of a message that may have been sent before under another number get `repeat`. A mapping for fixed-width records names its layout (`layout = "name or file"`); its
//! paths are names of columns, and `@record` the name of the record. A mapping for FAST has its templates and framing
//! in a table `[fast_messages]`; its paths are names of fields. All else is the same for all formats:
//!
//! | module | holds |
//! |---|---|
//! | `format_adapter` | what a format adds: [`Dialect`] when a mapping is compiled, [`ParsedMessage`] for each message |
//! | `compile` | the text to a [`MappingPlan`], with every path a numbered slot |
//! | `plan` | rules, conditions, events, tables over slots |
//! | `apply` | the [`MessageMapper`]: a message and a plan to events, or to quarantine |
//! | `instruments` | names of instruments by way of reference data |
//! | `partial_quote` | quotes whose empty sides are unchanged |
//! | `prices` | the fields without which an event says nothing |
//! | `explain` | what the mapper did with a message and why, slowly and in words, for `mapping check` |
//! | `field_hints` | kept values whose name is that of a field |
//! | `built_in` | the shipped ones |

mod affected_books;
mod apply;
mod built_in;
mod compile;
mod entries;
mod explain;
mod field_hints;
mod format_adapter;
mod instruments;
mod odd;
mod partial_quote;
mod plan;
mod prices;
mod suggest;
mod undeclared;

pub use crate::block::MessageOrigin;
pub(crate) use apply::translate_const;
pub use apply::{MessageMapper, printable};
pub(crate) use built_in::ShippedMapping;
pub use compile::compile;
pub(crate) use explain::MappingExplainer;
pub use explain::{
    EventExplanation, ExplainedOutcome, FailedCondition, FieldExplanation, KeptValue, MessageExplanation,
    QuarantineCause, RejectedRule, RuleLocation, SkippedEvent, TimeExplanation,
};
pub use field_hints::FieldHint;
pub use format_adapter::{
    Dialect, EntryCursor, EntryStep, GroupSlots, MessageRefusal, ParsedMessage, PathSlots,
};
pub(crate) use plan::{CompiledRule, EventPlan, FieldPlan, RuleCondition, SetOp, SlotUsage, ValueSource};
pub use plan::{MappingPlan, NumberSign};
pub(crate) use prices::price_choices;
pub(crate) use suggest::{FormPlace, suggestion};
pub(crate) use undeclared::is_free_text;

use crate::error::Error;
use crate::reference::InstrumentMaster;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use unitape_base::toml;
use unitape_codec::times::AmbiguousTimes;

/// A mapping as its file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Name, by which `--feed` and source definitions refer to it.
    pub name: String,
    /// Format of the bytes: `fix`, … as [`crate::Format::from_names`] knows them.
    pub format: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// For fixed-width records and rows: the name of a shipped layout, or a file beside the mapping.
    pub layout: Option<String>,
    /// For FIX: how its bytes are framed, where not as on the wire.
    pub framing: Option<FixFramingConfig>,
    /// The signs by which detection knows a file of this format.
    #[serde(default)]
    pub detect: DetectConfig,
    /// For ITCH: all there is to say, in place of messages and rules.
    pub itch: Option<IgnoredAny>,
    /// For IEX: all there is to say, in place of messages and rules.
    pub iex: Option<IgnoredAny>,
    /// For FAST with a handler: all settings, in place of messages and rules. Its format reads them.
    pub fast: Option<IgnoredAny>,
    /// For FAST: templates and framing.
    pub fast_messages: Option<IgnoredAny>,
    /// Settings that hold for every message.
    #[serde(default)]
    pub message: MessageConfig,
    /// Repeating groups by the path of their count, or by name.
    #[serde(default)]
    pub group: BTreeMap<String, GroupConfig>,
    /// Tables of values.
    #[serde(default)]
    pub table: BTreeMap<String, BTreeMap<String, String>>,
    /// The rules: conditions on a message, and its events.
    #[serde(default)]
    pub rule: Vec<RuleConfig>,
    /// The file's own text, for its hash.
    #[serde(skip)]
    pub text: String,
    /// The origin of the text, for errors: a file name or `built in`.
    #[serde(skip)]
    pub origin: String,
    /// Text and origin of the layout.
    #[serde(skip)]
    pub layout_text: Option<(String, String)>,
    /// The table `[fast]` with all that it names.
    #[serde(skip)]
    pub fast_table: Option<unitape_marketdata::engine::FastMappingTable>,
    /// Name and text of each file of templates.
    #[serde(skip)]
    pub template_texts: Vec<(String, String)>,
    /// By which names of instruments are looked up, if by any.
    #[serde(skip)]
    pub reference: Option<Arc<InstrumentMaster>>,
}

/// The framing of FIX, if it is not that of the wire.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixFramingConfig {
    /// The separator of fields: `SOH`, `|`, `;` or `^A`.
    pub sep: String,
    /// The kinds of faults that are accepted: `true` for all, one word or several.
    pub lenient: LeniencyConfig,
    /// The lines of a log, which may have text around the message; it counts as ignored.
    pub log: bool,
}

/// The kinds of faults that the framing accepts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum LeniencyConfig {
    /// All kinds, or no kind.
    All(bool),
    /// One, by its word.
    One(String),
    /// Several.
    Some(Vec<String>),
}

impl Default for LeniencyConfig {
    fn default() -> Self {
        LeniencyConfig::All(false)
    }
}

/// The first bytes by which detection knows a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectConfig {
    /// BeginString (8) is one of these.
    #[serde(default)]
    pub begin_string: Vec<String>,
    /// Each of these fields occurs near the start; of text, has a value in the first message.
    #[serde(default)]
    pub contains: Vec<String>,
    /// The first records read well by the layout, its header among them.
    #[serde(default)]
    pub layout: bool,
}

/// Settings that hold for every message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageConfig {
    /// Field of the event time.
    #[serde(default)]
    pub ts: String,
    /// Used if `ts` is absent: one field, or several in the order in which they are tried.
    pub ts_or: Option<TimeAlternatives>,
    /// For text: zone of times without an offset, an IANA name or UTC.
    pub zone: Option<String>,
    /// For text, rows and fixed-width records: what to do with local times that occur twice or never.
    pub ambiguous: Option<String>,
    /// Field of the feed's own sequence number.
    pub sequence: Option<String>,
    /// Fields that name the session whose sequence it is.
    #[serde(default)]
    pub session: Vec<String>,
    /// Field that says `Y` when the message may have been sent before; with a sequence that its session has
    /// already passed it is a duplicate.
    pub possdup: Option<String>,
    /// Conditions; if one holds, the message may have been sent before, and its events get the field `repeat`.
    #[serde(default)]
    pub repeat: Vec<BTreeMap<String, ConditionConfig>>,
    /// The character set of text that declares no set and is not UTF-8; without it, windows-1252 is guessed.
    pub encoding: Option<String>,
    /// For JSON and XML: the paths of a message's words, which the path `@words` reads; see `formats::text`.
    #[serde(default)]
    pub words: Vec<String>,
    /// Treatment of unlisted fields.
    #[serde(default)]
    pub unlisted: UnlistedFields,
    /// Fields that are known and not wanted.
    #[serde(default)]
    pub drop: Vec<String>,
    /// Fields kept in every event: name and path.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
}

/// The fields of the event time to try if the first field is absent.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum TimeAlternatives {
    /// This.
    One(String),
    /// Each of these in turn.
    Several(Vec<String>),
}

impl TimeAlternatives {
    /// Returns all paths.
    pub fn all(&self) -> &[String] {
        match self {
            TimeAlternatives::One(path) => std::slice::from_ref(path),
            TimeAlternatives::Several(paths) => paths,
        }
    }
}

/// Treatment of unlisted fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnlistedFields {
    /// Kept in the event, under their path.
    #[default]
    Keep,
    /// Not kept.
    Drop,
}

/// A repeating group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Path of its count, where the group's name is not that path.
    pub count: Option<String>,
    /// First field of every entry, where the format separates entries by it.
    pub delimiter: Option<String>,
    /// All fields an entry may have.
    pub members: Vec<String>,
    /// Members that an entry inherits from the previous entry if it lacks them.
    #[serde(default)]
    pub inherit: Vec<String>,
}

/// A rule as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Fields and their required values.
    #[serde(default)]
    pub when: BTreeMap<String, ConditionConfig>,
    /// The message is known and becomes nothing.
    #[serde(default)]
    pub ignore: bool,
    /// The events it becomes.
    #[serde(default)]
    pub event: Vec<EventConfig>,
    /// Entries of groups that become nothing.
    #[serde(default)]
    pub ignored: Vec<IgnoredEntriesConfig>,
}

/// Entries of a group that are known and not wanted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoredEntriesConfig {
    /// The group.
    pub each: String,
    /// Fields and the values they must have, of the entry where it has them, else of the message.
    #[serde(default)]
    pub when: BTreeMap<String, ConditionConfig>,
}

/// The required value of a field: this, or one of these.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum ConditionConfig {
    /// This.
    One(String),
    /// One of these values.
    Any(Vec<String>),
    /// Something else than a value.
    Else(SignOrPresence),
}

/// The required state of a field, if it is not a value: one of the two.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignOrPresence {
    /// A number with this sign.
    pub sign: Option<NumberSign>,
    /// There, or not there.
    pub present: Option<bool>,
}

impl ConditionConfig {
    /// Returns all values.
    pub fn all(&self) -> &[String] {
        match self {
            ConditionConfig::One(value) => std::slice::from_ref(value),
            ConditionConfig::Any(values) => values,
            ConditionConfig::Else(_) => &[],
        }
    }
}

/// An event of a rule as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventConfig {
    /// Kind of the event.
    pub kind: String,
    /// One event per entry of this group.
    pub each: Option<String>,
    /// Fields and the values they must have, of the entry where it has them, else of the message.
    #[serde(default)]
    pub when: BTreeMap<String, ConditionConfig>,
    /// The event is written only if one of these of its fields has a value.
    #[serde(default)]
    pub some_of: Vec<String>,
    /// It is part of a snapshot, a whole state, and not a change: it has the flag.
    #[serde(default)]
    pub snapshot: bool,
    /// Conditions; if one holds, it may have been sent before. They apply besides the conditions of the message.
    #[serde(default)]
    pub repeat: Vec<BTreeMap<String, ConditionConfig>>,
    /// For `bbo`: the meaning of a side without a value.
    pub empty_side: Option<EmptySide>,
    /// The event's fields.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldConfig>,
    /// Fields kept beside them: name and path.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
}

/// The meaning of a side of a quote without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptySide {
    /// Nobody quotes on this side any more.
    #[default]
    Withdrawn,
    /// The side is as the last quote stated it.
    Unchanged,
}

/// The source of a field's value.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum FieldConfig {
    /// A path.
    Path(String),
    /// Anything more.
    Table(Box<FieldOptions>),
}

/// The long form of a field.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented at the head of the module
pub struct FieldOptions {
    pub from: Option<String>,
    pub or: Option<String>,
    pub r#const: Option<String>,
    pub table: Option<String>,
    pub r#else: Option<UnmatchedPolicy>,
    pub suffix: Option<String>,
    #[serde(default)]
    pub absolute: bool,
    #[serde(default)]
    pub required: bool,
    pub group: Option<String>,
    pub key: Option<String>,
    pub is: Option<String>,
    pub value: Option<String>,
    /// The member whose highest number selects one of several entries that `is` picks.
    pub highest: Option<String>,
    /// The member whose lowest number selects one of them.
    pub lowest: Option<String>,
}

/// Treatment of a value that the table does not have; by default the message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnmatchedPolicy {
    /// The value is kept unchanged.
    Keep,
    /// The field is left out.
    Omit,
}

impl Mapping {
    /// Reads the text of a mapping; `origin` names it in errors. The files that it names are its format's to read.
    ///
    /// # Errors
    /// Fails if the text is invalid; the error has the line if TOML knows it.
    pub(crate) fn from_text(text: &str, origin: &str) -> Result<Self, Error> {
        let parsed = toml::parse(text, origin);
        let mut mapping: Mapping =
            parsed.map_err(|(origin, message)| Error::Mapping { origin, reason: message })?;
        mapping.text = text.to_owned();
        mapping.origin = origin.to_owned();
        mapping.refuse_tables_of_others()?;
        Ok(mapping)
    }

    /// Parses a table that only this format has, as a `T` that holds it under its key. The rest of the file is not
    /// read.
    ///
    /// # Errors
    /// Fails if the table is invalid; the error has the line.
    pub(crate) fn own_table<T: DeserializeOwned>(&self) -> Result<T, Error> {
        toml::parse(&self.text, &self.origin)
            .map_err(|(origin, message)| Error::Mapping { origin, reason: message })
    }

    /// Returns name and hash of the mapping and of the reference data, as source definitions record them. The hash
    /// includes the layout.
    pub fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.text.as_bytes());
        if let Some((text, _)) = &self.layout_text {
            hasher.update(text.as_bytes());
        }
        let files = self.fast_table.iter().flat_map(unitape_marketdata::engine::FastMappingTable::files);
        files.for_each(|bytes| _ = hasher.update(bytes));
        for (_, text) in &self.template_texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let reference = self.reference.as_ref().map_or_else(String::new, |r| r.identity());
        format!("{}@{}{reference}", self.name, &hasher.finalize().to_hex()[..16])
    }

    /// Fails if the mapping has a table or key of another format.
    fn refuse_tables_of_others(&self) -> Result<(), Error> {
        let format = &self.format;
        let (key, message) = match format.as_str() {
            format_name if format_name != "fast" && self.fast.is_some() => {
                ("fast", "a table [fast] is for format fast".to_owned())
            }
            format_name if format_name != "fast" && self.fast_messages.is_some() => {
                ("fast_messages", "a table [fast_messages] is for format fast".to_owned())
            }
            format_name if format_name != "itch" && self.itch.is_some() => {
                ("itch", "a table [itch] is for format itch".to_owned())
            }
            format_name if format_name != "iex" && self.iex.is_some() => {
                ("iex", "a table [iex] is for format iex".to_owned())
            }
            format_name if format_name != "fix" && self.framing.is_some() => {
                ("framing", format!("framing: format {format} has none to choose"))
            }
            format_name if !matches!(format_name, "fixed" | "csv") && self.layout.is_some() => {
                ("layout", format!("format {format} has no layout"))
            }
            _ => return Ok(()),
        };
        Err(self.refuse_key(key, message))
    }

    /// Fails if the mapping has no rules; its format must need them.
    pub(crate) fn needs_rules(&self) -> Result<(), Error> {
        let (key, message) = match () {
            () if self.message.ts.is_empty() => {
                ("message", "missing field `message`: say message.ts, the field of the event time")
            }
            () if self.rule.is_empty() => {
                ("rule", "missing field `rule`: nothing says what becomes of a message")
            }
            () => return Ok(()),
        };
        Err(self.refuse_key(key, message.to_owned()))
    }

    /// Returns the choice for local times that occur twice or never, if it makes one.
    ///
    /// # Errors
    /// Fails if the word is unknown.
    pub(crate) fn ambiguous_times(&self) -> Result<Option<AmbiguousTimes>, Error> {
        let Some(word) = &self.message.ambiguous else { return Ok(None) };
        let refuse = || {
            let message = "message.ambiguous: refuse, first, second or by-order; see docs/time-forms.md";
            self.refuse_key("message", message.to_owned())
        };
        AmbiguousTimes::by_name(word).map(Some).ok_or_else(refuse)
    }

    /// Makes the error for the value of this key.
    pub(crate) fn refuse_key(&self, key: &str, message: String) -> Error {
        self.refuse_at(&[key], message)
    }

    /// Makes the error for a place in the file: keys from the top, with indexes into arrays.
    pub(crate) fn refuse_at(&self, keys: &[&str], message: String) -> Error {
        Error::Mapping { origin: toml::origin(&self.origin, &self.text, keys), reason: message }
    }

    /// Reads the layout that the mapping names: a shipped one, or a file beside the mapping.
    ///
    /// # Errors
    /// Fails if the mapping names no layout, or one that is neither shipped nor readable.
    pub(crate) fn load_layout(
        &mut self,
        shipped: fn(&str) -> Option<&'static str>,
        names: impl Iterator<Item = &'static str>,
    ) -> Result<(), Error> {
        let Some(name) = &self.layout else {
            let message = format!("format {} needs a layout: layout = \"NAME or FILE\"", self.format);
            return Err(self.refuse_key("format", message));
        };
        if let Some(text) = shipped(name) {
            self.layout_text = Some((text.to_owned(), name.clone()));
            return Ok(());
        }
        let path = Path::new(&self.origin).parent().unwrap_or(Path::new("")).join(name);
        match toml::text_of(&path) {
            Ok(text) => self.layout_text = Some((text, path.display().to_string())),
            Err(e) => {
                let (path, shipped) = (path.display(), names.collect::<Vec<_>>().join(", "));
                let message =
                    format!("layout: neither a shipped one ({shipped}) nor a readable file: {path}: {e}");
                return Err(self.refuse_key("layout", message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
