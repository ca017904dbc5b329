//! Configuration: one TOML file, environment variables over it, the command line over both; and for every value
//! where it came from.
//!
//! ```text
//!  defaults of T ◀ CONFIG.toml ◀ UNITAPE_* ◀ flags      each overlays the one before
//!                     │
//!                     └─▶ T, and Origins: key → file:line, variable, flag or default
//! ```
//!
//! A key is a path: `tape.dir`. An entry of an array of tables is called by its `name`: `feed.jse.source`. A variable
//! has the same path in capitals: two underscores stand for a dot, and one underscore stands for a dash in a name:
//! `UNITAPE_FEED__JSE__SOURCE`. Its value is read as TOML if it is TOML, else as text.
//!
//! It does not know the meaning of values. The code that checks them asks [`OriginTable::origin_of_key`] for the place
//! of a mistake.

mod origin;

pub use origin::{OriginTable, ValueOrigin, list_effective};

use crate::Error;
use crate::files::read_text;
use origin::{KeyPathStep, key_of, lines};
use serde::de::DeserializeOwned;
use std::path::Path;
use toml::{Table, Value};

/// A configuration and where its values came from.
#[derive(Debug)]
pub struct LayeredConfig<T> {
    /// The values.
    pub value: T,
    /// The origin of each value.
    pub origins: OriginTable,
}

/// A value given on the command line.
#[derive(Clone, Debug)]
pub struct FlagValue {
    /// As the user wrote it: `--workers`.
    pub flag: &'static str,
    /// The key it sets: `workers`.
    pub key: &'static str,
    /// The value.
    pub value: Value,
}

/// The prefix of variables.
pub const PREFIX: &str = "UNITAPE_";

/// Reads `file`, lays `vars` over it where their names begin with [`PREFIX`], and `flags` over both.
///
/// # Errors
/// Fails with a message that begins with the place: `unitape.toml:7: feed.jse.format: …`.
pub fn load<T: DeserializeOwned>(
    file: &Path,
    vars: impl IntoIterator<Item = (String, String)>,
    flags: &[FlagValue],
) -> Result<LayeredConfig<T>, Error> {
    let file_name = file.display().to_string();
    let text = read_text(file)?;
    let mut layers = ConfigLayers::from_text(&file_name, &text)?;
    let mut vars: Vec<_> = vars.into_iter().filter(|(name, _)| is_ours(name)).collect();
    vars.sort();
    for (name, text) in &vars {
        layers.overlay_variable(name, text)?;
    }
    for flag in flags {
        let steps = flag.key.split('.').map(|s| KeyPathStep::Key(s.to_owned())).collect::<Vec<_>>();
        layers.set_value(&steps, flag.value.clone(), ValueOrigin::Flag(flag.flag))?;
    }
    layers.finish_layers()
}

/// Returns the environment variables whose name and value are Unicode. No other variable is a setting of unitape.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Variables that cannot be a key (they have no two underscores) are for something else.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.contains("__"))
}

/// The values so far, with their origins.
struct ConfigLayers {
    table: Table,
    origins: OriginTable,
    /// Variables that were read as TOML, with their text.
    guessed_values: Vec<(Vec<KeyPathStep>, String)>,
}

impl ConfigLayers {
    fn from_text(file: &str, text: &str) -> Result<Self, Error> {
        let table = text.parse::<Table>().map_err(|e| {
            let offset = e.span().map_or(0, |s| s.start);
            let line = 1 + text.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count();
            let origin = ValueOrigin::File { file: file.to_owned(), line };
            Error::Origin { origin, reason: e.message().to_owned() }
        })?;
        Ok(Self { origins: lines(file, text), table, guessed_values: Vec::new() })
    }

    fn overlay_variable(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let key: Vec<&str> = name[PREFIX.len()..].split("__").collect();
        let steps = self.steps_of(name, &key)?;
        let value = format!("v = {text}").parse::<Table>().ok().and_then(|mut t| t.remove("v"));
        if value.as_ref().is_some_and(|v| !v.is_str()) {
            self.guessed_values.push((steps.clone(), text.to_owned()));
        }
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        self.set_value(&steps, value, ValueOrigin::Variable(name.to_owned()))
    }

    /// Finds the key that a variable names. Names of entries match without regard to case and dashes.
    fn steps_of(&self, variable: &str, key: &[&str]) -> Result<Vec<KeyPathStep>, Error> {
        let mut steps: Vec<KeyPathStep> = Vec::new();
        let root = Value::Table(self.table.clone());
        let mut current = Some(&root);
        for part in key {
            let is_same_name = |name: &str| name.replace('-', "_").eq_ignore_ascii_case(part);
            let step = match current {
                Some(Value::Array(entries)) => {
                    let names = || entries.iter().filter_map(|e| e.get("name")?.as_str());
                    let index = entries
                        .iter()
                        .position(|e| e.get("name").and_then(Value::as_str).is_some_and(is_same_name));
                    let Some(index) = index else {
                        let names_text = names().collect::<Vec<_>>().join(", ");
                        let reason = format!("`{}` has no `{part}`; there are: {names_text}", key_of(&steps));
                        return Err(Error::Origin {
                            origin: ValueOrigin::Variable(variable.to_owned()),
                            reason,
                        });
                    };
                    let name = entries[index].get("name").and_then(Value::as_str).unwrap_or_default();
                    KeyPathStep::Entry(index, name.to_owned())
                }
                Some(Value::Table(t)) => {
                    let table_key = t.keys().find(|k| is_same_name(k)).cloned();
                    KeyPathStep::Key(table_key.unwrap_or_else(|| part.to_ascii_lowercase()))
                }
                _ => KeyPathStep::Key(part.to_ascii_lowercase()),
            };
            current = current.and_then(|v| step.find_in(v));
            steps.push(step);
        }
        Ok(steps)
    }

    fn set_value(&mut self, steps: &[KeyPathStep], value: Value, origin: ValueOrigin) -> Result<(), Error> {
        let mut root = Value::Table(std::mem::take(&mut self.table));
        let mut target = &mut root;
        for (depth, step) in steps.iter().enumerate() {
            target = match (step, target) {
                (KeyPathStep::Key(k), Value::Table(t)) => {
                    if !t.contains_key(k) {
                        // Tables on the way came with the value, should they turn out to be wrong.
                        self.origins.set_origin(&steps[..=depth], origin.clone());
                    }
                    t.entry(k.clone()).or_insert_with(|| Value::Table(Table::new()))
                }
                (KeyPathStep::Entry(i, _), Value::Array(a)) => &mut a[*i],
                _ => {
                    let reason = format!("`{}` is not a table", key_of(&steps[..depth]));
                    return Err(Error::Origin { origin, reason });
                }
            };
        }
        *target = value;
        if let Value::Table(t) = root {
            self.table = t;
        }
        self.origins.set_origin(steps, origin);
        Ok(())
    }

    fn finish_layers<T: DeserializeOwned>(mut self) -> Result<LayeredConfig<T>, Error> {
        loop {
            let (steps, message) = match read_config::<T>(&self.table) {
                Ok(value) => return Ok(LayeredConfig { value, origins: self.origins }),
                Err(e) => e,
            };
            // A variable that looks like a number is text if the key needs a text.
            let guessed = self.guessed_values.iter().position(|(s, _)| key_of(s) == key_of(&steps));
            if let Some(i) = guessed {
                let (steps, text) = self.guessed_values.swap_remove(i);
                let origin = self.origins.origin_of_key(&key_of(&steps));
                self.set_value(&steps, Value::String(text), origin)?;
                continue;
            }
            let key = key_of(&steps);
            let origin = self.origins.origin_of_key(&key);
            return Err(Error::Value { origin, key, reason: message });
        }
    }
}

/// Reads the values as `T`. Fails with the path to the wrong value and the reason.
fn read_config<T: DeserializeOwned>(table: &Table) -> Result<T, (Vec<KeyPathStep>, String)> {
    use serde_path_to_error::Segment;
    serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|e| {
        let root = Value::Table(table.clone());
        let mut steps: Vec<KeyPathStep> = Vec::new();
        let mut current = Some(&root);
        for segment in e.path() {
            let step = match segment {
                Segment::Map { key } => KeyPathStep::Key(key.clone()),
                Segment::Seq { index } => KeyPathStep::entry(*index, current),
                Segment::Enum { .. } | Segment::Unknown => continue,
            };
            current = current.and_then(|v| step.find_in(v));
            steps.push(step);
        }
        let message = e.inner().message().to_owned();
        // The error names an unknown key only in its text; the line of the key helps more.
        let unknown = message.strip_prefix("unknown field `").and_then(|m| m.split_once('`')).map(|(k, _)| k);
        let unknown = unknown.filter(|k| current.and_then(|v| v.get(k)).is_some());
        steps.extend(unknown.map(|k| KeyPathStep::Key(k.to_owned())));
        (steps, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use unitape_model::ErrorCause;

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct LayerTestConfig {
        tape: SampleTapeSection,
        #[serde(default = "four")]
        workers: u64,
        #[serde(default)]
        feed: Vec<LayerTestFeed>,
    }

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct SampleTapeSection {
        dir: String,
    }

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct LayerTestFeed {
        name: String,
        #[serde(default)]
        wait_ms: Option<u64>,
    }

    fn four() -> u64 {
        4
    }

    const TEXT: &str = "\
[tape]
dir = \"day\"

[[feed]]
name = \"jse-a\"
wait_ms = 5

[[feed]]
name = \"b\"
";

    fn loaded(
        text: &str,
        vars: &[(&str, &str)],
        flags: &[FlagValue],
    ) -> Result<LayeredConfig<LayerTestConfig>, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, text).unwrap();
        let vars = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        load(&file, vars, flags).map_err(|e| {
            assert_eq!(e.cause(), ErrorCause::Outside, "{e}");
            e.to_string().replace(&format!("{}/", dir.path().display()), "")
        })
    }

    #[test]
    fn later_layers_win_and_each_value_knows_its_place() {
        let vars = [
            ("UNITAPE_FEED__JSE_A__WAIT_MS", "7"),
            ("UNITAPE_TAPE__DIR", "2011"),
            ("UNITAPE_ROUNDS", "not for us"),
        ];
        let flags = [FlagValue { flag: "--workers", key: "workers", value: Value::Integer(2) }];
        let got = loaded(TEXT, &vars, &flags).unwrap();
        assert_eq!((got.value.workers, got.value.feed[0].wait_ms), (2, Some(7)));
        assert_eq!(got.value.tape.dir, "2011", "text is wanted, and given back as text");
        let origin = |key| got.origins.origin_of_key(key).to_string();
        assert_eq!(origin("workers"), "--workers");
        assert_eq!(origin("feed.jse-a.wait_ms"), "UNITAPE_FEED__JSE_A__WAIT_MS");
        assert!(origin("feed.b.name").ends_with("c.toml:9"), "{}", origin("feed.b.name"));
        assert!(origin("feed.b.wait_ms").ends_with("c.toml:8"), "what is not there: its table");
    }

    /// Fails if a message has no line or names the wrong line. Each of these messages once did.
    #[test]
    fn mistakes_name_their_place() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
        let cases: [Case<'_>; 6] = [
            ("[tape]\ndir = 5\n", &[], "c.toml:2: tape.dir: invalid type: integer `5`, expected a string"),
            (
                "[tape]\ndir = \"d\"\ndirr = 1\n",
                &[],
                "c.toml:3: tape.dirr: unknown field `dirr`, expected `dir`",
            ),
            ("workers = 1\n", &[], "c.toml: missing field `tape`"),
            ("[tape\n", &[], "c.toml:1: "),
            (
                TEXT,
                &[("UNITAPE_FEED__C__WAIT_MS", "1")],
                "UNITAPE_FEED__C__WAIT_MS: `feed` has no `C`; there are: jse-a, b",
            ),
            (TEXT, &[("UNITAPE_WORKERS__N", "1")], "UNITAPE_WORKERS__N: workers: invalid type"),
        ];
        for (text, vars, want) in cases {
            let got = loaded(text, vars, &[]).unwrap_err();
            assert!(got.starts_with(want), "{got}\nshould begin with {want}");
        }
    }

    #[test]
    fn all_of_it_can_be_shown() {
        let got = loaded(TEXT, &[("UNITAPE_FEED__B__WAIT_MS", "9")], &[]).unwrap();
        let entries = list_effective(&got.value, &got.origins);
        let text: Vec<String> =
            entries.iter().map(|s| format!("{} = {}  {}", s.key, s.value, s.origin)).collect();
        let ends = [
            ("tape.dir = \"day\"", "c.toml:2"),
            ("workers = 4", "default"),
            ("feed.jse-a.name = \"jse-a\"", "c.toml:5"),
            ("feed.jse-a.wait_ms = 5", "c.toml:6"),
            ("feed.b.name = \"b\"", "c.toml:9"),
            ("feed.b.wait_ms = 9", "UNITAPE_FEED__B__WAIT_MS"),
        ];
        for (start, end) in ends {
            assert!(
                text.iter().any(|t| t.starts_with(start) && t.ends_with(end)),
                "{start} … {end} in {text:#?}"
            );
        }
        assert_eq!(entries.len(), ends.len());
    }
}
