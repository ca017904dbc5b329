//! Hints for people who write mappings: what works, and would work better otherwise.

use super::Mapping;
use serde::Serialize;
use unitape_base::toml::TomlLineIndex;
use unitape_model::{EventKind, EventSchema};

/// A kept value whose name is that of a field of the event's kind. It stays a field of the user's own: a scenario reads the
/// field, and finds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldHint {
    /// The name.
    pub name: String,
    /// The kind that has such a field.
    pub kind: &'static str,
    /// The path that the mapping keeps under the name.
    pub path: String,
    /// The line of the mapping.
    pub line: usize,
}

impl Mapping {
    /// Lists the kept values that could be fields, in the order of the rules.
    pub fn field_hints(&self) -> Vec<FieldHint> {
        let lines = TomlLineIndex::new(&self.text);
        let mut hints = Vec::new();
        for (i, rule) in self.rule.iter().enumerate() {
            for (j, event) in rule.event.iter().enumerate() {
                let Some(kind) = EventKind::from_name(&event.kind) else { continue };
                let schema = EventSchema::for_kind(kind);
                for (name, path) in event.keep.iter().filter(|(name, _)| schema.find(name).is_some()) {
                    let (rule, event) = (i.to_string(), j.to_string());
                    let line = lines.line_of(&["rule", &rule, "event", &event, "keep", name]);
                    let (name, path) = (name.clone(), path.clone());
                    hints.push(FieldHint { name, kind: kind.name(), path, line });
                }
            }
        }
        hints
    }
}
