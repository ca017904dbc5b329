//! The origins of a configuration's values.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    /// File and line, from 1; line 0 is the file as a whole.
    File {
        /// The path of the file.
        file: String,
        /// From 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// An option of the command line.
    Flag(&'static str),
    /// Nobody gave it.
    Default,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line: 0 } => f.write_str(file),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One step down a configuration.
#[derive(Clone, Debug)]
pub enum KeyPathStep {
    /// Into a table.
    Key(String),
    /// Into an array: index, and the entry's `name`, or its index as text where it has none.
    Entry(usize, String),
}

impl KeyPathStep {
    /// Makes the step to an entry of `array`. The step has the entry's name, or its index if the entry has no name.
    pub fn entry(index: usize, array: Option<&Value>) -> Self {
        let name = array.and_then(|a| a.get(index)?.get("name")?.as_str()).map(str::to_owned);
        Self::Entry(index, name.unwrap_or_else(|| index.to_string()))
    }

    /// Finds the value in `value` to which this step leads.
    pub fn find_in<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Key(k) => value.get(k),
            Self::Entry(i, _) => value.get(i),
        }
    }
}

/// Joins the steps of a path into a key: `feed.jse.source`.
pub fn key_of(steps: &[KeyPathStep]) -> String {
    let key_names = steps.iter().map(|s| match s {
        KeyPathStep::Key(name) | KeyPathStep::Entry(_, name) => name.as_str(),
    });
    key_names.collect::<Vec<_>>().join(".")
}

/// Key → origin.
#[derive(Clone, Debug)]
pub struct OriginTable {
    file_name: String,
    by_key: BTreeMap<String, ValueOrigin>,
}

impl OriginTable {
    /// Looks up the origin of the value of `key`. For a value that was not given, returns the origin of the nearest
    /// table around it.
    pub fn origin_of_key(&self, key: &str) -> ValueOrigin {
        let mut key = key;
        loop {
            if let Some(origin) = self.by_key.get(key) {
                return origin.clone();
            }
            match key.rsplit_once('.') {
                Some((parent_key, _)) => key = parent_key,
                None => return ValueOrigin::File { file: self.file_name.clone(), line: 0 },
            }
        }
    }

    /// Records an origin. It replaces the origins of all values beneath.
    pub fn set_origin(&mut self, steps: &[KeyPathStep], origin: ValueOrigin) {
        let key = key_of(steps);
        let beneath = format!("{key}.");
        self.by_key.retain(|k, _| !k.starts_with(&beneath));
        self.by_key.insert(key, origin);
    }

    fn exactly(&self, key: &str) -> ValueOrigin {
        self.by_key.get(key).cloned().unwrap_or(ValueOrigin::Default)
    }
}

/// Finds the line of every key in a file's text.
pub fn lines(file: &str, text: &str) -> OriginTable {
    let mut origins = OriginTable { file_name: file.to_owned(), by_key: BTreeMap::new() };
    if let Ok(top) = DeTable::parse(text) {
        let mut walk = TomlOriginWalk { file_name: file, file_text: text, origins: &mut origins };
        walk.walk_table(String::new(), top.get_ref());
    }
    origins
}

struct TomlOriginWalk<'a> {
    file_name: &'a str,
    file_text: &'a str,
    origins: &'a mut OriginTable,
}

impl TomlOriginWalk<'_> {
    fn walk_table(&mut self, prefix: String, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            self.value(key, name.span().start, value);
        }
    }

    fn value(&mut self, key: String, offset: usize, value: &Spanned<DeValue<'_>>) {
        let line = 1 + self.file_text.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count();
        match value.get_ref() {
            DeValue::Table(t) => self.walk_table(format!("{key}."), t),
            DeValue::Array(entries) => {
                for (i, entry) in entries.iter().enumerate() {
                    let DeValue::Table(t) = entry.get_ref() else { continue };
                    let name =
                        t.iter().find(|(k, _)| k.get_ref() == "name").and_then(|(_, v)| match v.get_ref() {
                            DeValue::String(s) => Some(s.to_string()),
                            _ => None,
                        });
                    let name = name.unwrap_or_else(|| i.to_string());
                    self.value(format!("{key}.{name}"), entry.span().start, entry);
                }
            }
            _ => {}
        }
        self.origins.by_key.insert(key, ValueOrigin::File { file: self.file_name.to_owned(), line });
    }
}

/// A value in force.
#[derive(Clone, Debug, Serialize)]
pub struct EffectiveValue {
    /// Its key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Its origin.
    pub origin: ValueOrigin,
}

/// Lists every value of `config` by key, with the defaults.
pub fn list_effective(config: &impl Serialize, origins: &OriginTable) -> Vec<EffectiveValue> {
    let mut all = Vec::new();
    // A configuration is read from TOML, so it can be written as TOML.
    let value = Value::try_from(config).expect("a configuration is TOML");
    flatten_value(&mut Vec::new(), &value, origins, &mut all);
    all
}

fn flatten_value(
    steps: &mut Vec<KeyPathStep>,
    value: &Value,
    origins: &OriginTable,
    all: &mut Vec<EffectiveValue>,
) {
    let of_tables = |entries: &[Value]| !entries.is_empty() && entries.iter().all(Value::is_table);
    match value {
        Value::Table(t) => {
            for (name, v) in t {
                steps.push(KeyPathStep::Key(name.clone()));
                flatten_value(steps, v, origins, all);
                steps.pop();
            }
        }
        Value::Array(entries) if of_tables(entries) => {
            for (i, v) in entries.iter().enumerate() {
                steps.push(KeyPathStep::entry(i, Some(value)));
                flatten_value(steps, v, origins, all);
                steps.pop();
            }
        }
        _ => {
            let key = key_of(steps);
            // A value inside a table that a variable or a flag gave as a whole came with it.
            let exact = origins.exactly(&key);
            let origin = match (exact, origins.origin_of_key(&key)) {
                (ValueOrigin::Default, outer_origin @ (ValueOrigin::Variable(_) | ValueOrigin::Flag(_))) => {
                    outer_origin
                }
                (exact, _) => exact,
            };
            all.push(EffectiveValue { key, value: value.clone(), origin });
        }
    }
}
