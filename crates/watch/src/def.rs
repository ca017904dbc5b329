//! The definitions of the scenarios, as the agreed list has them.
//!
//! | file | has |
//! |---|---|
//! | `vectors/watch/scenarios.json` | the agreed list: words, key, names and defaults of parameters |
//! | `scenarios/parameters.toml` | type, unit and effect of each parameter |

use crate::params::hex_digits;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The kind of conduct that a scenario looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the words of the definitions
pub enum ConductClass {
    Manipulation,
    Messaging,
    PreTrade,
    Market,
    Compliance,
    Payments,
    Comms,
}

impl ConductClass {
    /// Returns the word for this family.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manipulation => "manipulation",
            Self::Messaging => "messaging",
            Self::PreTrade => "pre-trade",
            Self::Market => "market",
            Self::Compliance => "compliance",
            Self::Payments => "payments",
            Self::Comms => "comms",
        }
    }
}

/// The type and range of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A whole number from 0 to [`COUNT_MAX`].
    Count,
    /// A decimal from 0 to 1,000,000,000 with at most nine places: an integer, or a string.
    Ratio,
    /// An amount from 0: an integer, or a decimal as a string.
    Amount,
    /// Yes or no.
    Flag,
    /// Seconds east of UTC.
    Offset,
    /// The name of a zone of the IANA database, or nothing.
    Zone,
    /// One of a scenario's own words.
    Word,
    /// A list of texts.
    Texts,
    /// A list of whole numbers.
    Counts,
    /// A table, which is replaced as a whole.
    Table,
}

/// The greatest value of a parameter that is a whole number. In milliseconds it is 31 years.
pub const COUNT_MAX: u64 = 1_000_000_000_000;

impl ParamType {
    /// Describes the wanted value for error messages.
    pub const fn wanted(self) -> &'static str {
        match self {
            Self::Count => "a whole number in range",
            Self::Ratio => "a whole number or a decimal as a string, from 0 to 1000000000",
            Self::Amount => "a whole number or a decimal as a string, from 0",
            Self::Flag => "true or false",
            Self::Offset => "seconds east of UTC, from -93600 to 93600,",
            Self::Zone => "the name of a time zone, such as America/New_York,",
            Self::Word => "a text",
            Self::Texts => "a list of texts",
            Self::Counts => "a list of whole numbers",
            Self::Table => "a table",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "count" => Some(Self::Count),
            "ratio" => Some(Self::Ratio),
            "amount" => Some(Self::Amount),
            "flag" => Some(Self::Flag),
            "offset" => Some(Self::Offset),
            "zone" => Some(Self::Zone),
            "word" => Some(Self::Word),
            "texts" => Some(Self::Texts),
            "counts" => Some(Self::Counts),
            "table" => Some(Self::Table),
            _ => None,
        }
    }
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct ParamDef {
    /// Its name.
    pub name: &'static str,
    /// Its default. A decimal is a string.
    pub default: Value,
    /// Its unit.
    pub unit: &'static str,
    /// Its type and range.
    pub param_type: ParamType,
    /// Its effect.
    pub description: &'static str,
}

impl ParamDef {
    /// Writes the default as `--params` accepts it, a text without its quotation marks.
    pub fn default_text(&self) -> String {
        self.default.as_str().map_or_else(|| self.default.to_string(), str::to_owned)
    }
}

/// The definition of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioDef {
    /// Its name on the command line and in alerts.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The kind of conduct that it looks for.
    pub class: ConductClass,
    /// The events it looks at, as the list writes them: a kind, perhaps with a part of it.
    pub inputs: Vec<&'static str>,
    /// Names of the parts of an alert's key. A scenario with two kinds of alerts has a form for each.
    pub key_forms: Vec<Vec<&'static str>>,
    /// Its parameters.
    pub params: Vec<ParamDef>,
    /// When it fires: the words that the code and its twin are held to.
    pub trigger: &'static str,
    /// Clarifications of open points in the definition; empty if there are none.
    pub clarified: &'static str,
    /// The rules behind it.
    pub regulation: Vec<&'static str>,
}

impl ScenarioDef {
    /// Returns the version of the definition: 16 hexadecimal digits of BLAKE3 over its key, its inputs and its words.
    pub fn version(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let keys: Vec<String> = self.key_forms.iter().map(|form| form.join(",")).collect();
        for text in [&keys.join(";"), &self.inputs.join(","), self.trigger, self.clarified] {
            hasher.update(text.as_bytes());
            hasher.update(b"\n");
        }
        hex_digits(&hasher.finalize())
    }

    /// Returns the parts of the key of its first kind of alerts.
    pub fn key(&self) -> &[&'static str] {
        &self.key_forms[0]
    }

    /// Finds the parameter with this name.
    pub fn param(&self, name: &str) -> Option<&ParamDef> {
        self.params.iter().find(|p| p.name == name)
    }
}

/// Returns the definition of a scenario of the agreed list whose parameters have types; `None` of another one.
pub(crate) fn definition(id: &str) -> Option<&'static ScenarioDef> {
    static DEFINITIONS: OnceLock<Vec<ScenarioDef>> = OnceLock::new();
    DEFINITIONS.get_or_init(read_definitions).iter().find(|def| def.id == id)
}

/// An entry of the agreed list.
#[derive(Deserialize)]
struct ListEntry {
    id: String,
    title: String,
    cls: ConductClass,
    inputs: Vec<String>,
    key: String,
    params: Map<String, Value>,
    trigger: String,
    #[serde(default)]
    clarified: String,
    regulation: Vec<String>,
}

#[derive(Deserialize)]
struct AgreedList {
    scenarios: Vec<ListEntry>,
}

const LIST: &str = include_str!("../../../vectors/watch/scenarios.json");
const PARAMETERS: &str = include_str!("scenarios/parameters.toml");
/// The parameter that names the scenario whose defaults apply under the own ones.
const INHERIT: &str = "inherit";

/// The parameters of a local day.
pub(crate) const TZ_OFFSET: &str = "tz_offset_s";
pub(crate) const ZONE: &str = "zone";

/// Reads the two files. Their texts live as long as the process.
fn read_definitions() -> Vec<ScenarioDef> {
    let list: AgreedList = serde_json::from_str(LIST).expect("the agreed list is JSON");
    let mut types: BTreeMap<String, BTreeMap<String, (String, String, String)>> =
        toml::from_str(PARAMETERS).expect("the parameters are TOML");
    let defaults: BTreeMap<String, Map<String, Value>> =
        list.scenarios.iter().map(|entry| (entry.id.clone(), entry.params.clone())).collect();
    let entries = list.scenarios.into_iter();
    entries
        .filter_map(|entry| {
            let types = types.remove(&entry.id)?;
            Some(ScenarioDef {
                params: typed_params(&entry, types, &defaults),
                id: entry.id.leak(),
                title: entry.title.leak(),
                class: entry.cls,
                inputs: leak_all(entry.inputs),
                key_forms: key_forms(entry.key.leak()),
                trigger: entry.trigger.leak(),
                clarified: entry.clarified.leak(),
                regulation: leak_all(entry.regulation),
            })
        })
        .collect()
}

/// Returns the parameters of an entry in the order of its list: the inherited ones, then its own.
///
/// # Panics
/// Panics if a parameter has no type, or a type no parameter.
fn typed_params(
    entry: &ListEntry,
    mut types: BTreeMap<String, (String, String, String)>,
    defaults: &BTreeMap<String, Map<String, Value>>,
) -> Vec<ParamDef> {
    let mut values: Vec<(String, Value)> = Vec::new();
    let inherited = entry.params.get(INHERIT).and_then(Value::as_str).map(|id| &defaults[id]);
    for (name, value) in inherited.into_iter().flatten().chain(&entry.params) {
        match values.iter_mut().find(|(known, _)| known == name) {
            _ if name == INHERIT => {}
            Some((_, default)) => *default = value.clone(),
            None => values.push((name.clone(), value.clone())),
        }
    }
    // "zone (an IANA name) may replace tz_offset_s": the list has no default for it.
    if values.iter().any(|(name, _)| name == TZ_OFFSET) {
        values.push((ZONE.to_owned(), Value::String(String::new())));
        types.entry(ZONE.to_owned()).or_insert_with(|| {
            let description = "time zone of the local day, in place of tz_offset_s";
            ("zone".to_owned(), "IANA name".to_owned(), description.to_owned())
        });
    }
    let params = values.into_iter().map(|(name, value)| {
        let (word, unit, description) = types
            .remove(&name)
            .unwrap_or_else(|| panic!("{}.{name} has no line in parameters.toml", entry.id));
        ParamDef {
            param_type: ParamType::from_word(&word)
                .unwrap_or_else(|| panic!("{}.{name}: no type {word}", entry.id)),
            name: name.leak(),
            default: as_given(value),
            unit: unit.leak(),
            description: description.leak(),
        }
    });
    let params = params.collect();
    assert!(types.is_empty(), "{}: the list has no parameter {:?}", entry.id, types.keys());
    params
}

/// Writes a number with a fraction as the string that a user gives.
fn as_given(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => Value::String(number.to_string()),
        other => other,
    }
}

/// Reads the forms of a key: `instr (trigger); instr,trader (violation)` has two.
fn key_forms(text: &'static str) -> Vec<Vec<&'static str>> {
    let without_word = |form: &'static str| form.split('(').next().unwrap_or_default();
    text.split(';').map(|form| without_word(form).split(',').map(str::trim).collect()).collect()
}

fn leak_all(texts: Vec<String>) -> Vec<&'static str> {
    texts.into_iter().map(|text| &*text.leak()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_have_two_forms() {
        assert_eq!(key_forms("owner,venue, instr"), [["owner", "venue", "instr"]]);
        let two = key_forms("instr (trigger); instr,trader (violation)");
        assert_eq!(two, [vec!["instr"], vec!["instr", "trader"]]);
    }

    /// Fails if inherited defaults are lost, or win over the own ones.
    #[test]
    fn defaults_are_inherited_one_by_one() {
        let list: AgreedList = serde_json::from_str(
            r#"{"scenarios":[
                {"id":"a","title":"","cls":"pre-trade","inputs":[],"key":"x","params":{"n":1,"m":"2"},"trigger":"","regulation":[]},
                {"id":"b","title":"","cls":"market","inputs":[],"key":"x","params":{"inherit":"a","m":0.8},"trigger":"","regulation":[]}]}"#,
        )
        .unwrap();
        let defaults = list.scenarios.iter().map(|entry| (entry.id.clone(), entry.params.clone())).collect();
        let line = |word: &str| (word.to_owned(), String::new(), String::new());
        let types = [("n".to_owned(), line("count")), ("m".to_owned(), line("ratio"))].into();
        let params = typed_params(&list.scenarios[1], types, &defaults);
        let mut values: Vec<_> = params.iter().map(|p| (p.name, p.default.clone())).collect();
        values.sort_by_key(|(name, _)| *name);
        assert_eq!(values, [("m", Value::from("0.8")), ("n", Value::from(1))]);
    }
}
