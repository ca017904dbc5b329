//! The definition of a scenario.

use crate::params::hex_digits;
use serde_json::Value;
use unitape_model::EventKind;

/// The kind of conduct that a scenario looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// State that is kept for all scenarios if a running scenario needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedStateKind {
    /// The life of orders, and the fields that cancels and executions inherit from them.
    Orders,
    /// Best bid and offer by venue and instrument, and reference data.
    Market,
}

/// The type and range of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParamType {
    /// A whole number from 0 to this.
    UpTo(u64),
    /// A decimal from 0 to 1,000,000,000 with at most nine places: an integer, or a string.
    Tolerance,
    /// An amount from 0: an integer, or a decimal as a string.
    Amount,
    /// A value that the function accepts; the text describes it. For lists and tables, which are replaced as a whole.
    Other(&'static str, fn(&Value) -> bool),
}

impl ParamType {
    /// Describes the wanted value for error messages.
    pub const fn wanted(self) -> &'static str {
        match self {
            Self::UpTo(_) => "a whole number in range",
            Self::Tolerance => "a whole number or a decimal as a string, from 0 to 1000000000",
            Self::Amount => "a whole number or a decimal as a string, from 0",
            Self::Other(wanted, _) => wanted,
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamDef {
    /// Its name.
    pub name: &'static str,
    /// Its default, as JSON.
    pub default: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its type and range.
    pub param_type: ParamType,
    /// Its effect.
    pub description: &'static str,
}

/// The definition of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioDef {
    /// Its name on the command line and in alerts.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The kind of conduct that it looks for.
    pub class: ConductClass,
    /// The events it looks at.
    pub inputs: &'static [EventKind],
    /// The shared state that it needs.
    pub needs: &'static [SharedStateKind],
    /// Names of the parts of an alert's key.
    pub key: &'static [&'static str],
    /// Its parameters.
    pub params: &'static [ParamDef],
    /// When it fires: the words that the code and its twin are held to.
    pub trigger: &'static str,
    /// Clarifications of open points in the definition; empty if there are none.
    pub clarified: &'static str,
    /// The rules behind it.
    pub regulation: &'static [&'static str],
}

impl ScenarioDef {
    /// Returns the version of the definition: 16 hexadecimal digits of BLAKE3 over its key, its inputs and its words.
    pub fn version(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let kinds: Vec<&str> = self.inputs.iter().map(|kind| kind.name()).collect();
        for text in [&self.key.join(","), &kinds.join(","), self.trigger, self.clarified] {
            hasher.update(text.as_bytes());
            hasher.update(b"\n");
        }
        hex_digits(&hasher.finalize())
    }

    /// Finds the parameter with this name.
    pub fn param(&self, name: &str) -> Option<&'static ParamDef> {
        self.params.iter().find(|p| p.name == name)
    }
}
