//! What a scenario tells of itself.

use unitape_model::Kind;

/// Sort of conduct a scenario looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Market manipulation.
    Manipulation,
}

impl Class {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manipulation => "manipulation",
        }
    }
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A whole number from 0 to this.
    UpTo(u64),
    /// A decimal from 0 to 1,000,000,000 with at most nine places: an integer, or a string.
    Tolerance,
}

impl Sort {
    /// In words, for messages.
    pub const fn wanted(self) -> &'static str {
        match self {
            Self::UpTo(_) => "a whole number in range",
            Self::Tolerance => "a whole number or a decimal as a string, from 0 to 1000000000",
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its default, as JSON.
    pub default: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What it may be.
    pub sort: Sort,
    /// What it does.
    pub about: &'static str,
}

/// The definition of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Def {
    /// Its name on the command line and in alerts.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What sort of conduct it looks for.
    pub class: Class,
    /// The events it looks at.
    pub inputs: &'static [Kind],
    /// Whether it needs what executions inherit from their orders.
    pub uses_orders: bool,
    /// Names of the parts of an alert's key.
    pub key: &'static [&'static str],
    /// Its parameters.
    pub params: &'static [Param],
    /// When it fires, in words.
    pub trigger: &'static str,
    /// The rules behind it.
    pub regulation: &'static [&'static str],
}

impl Def {
    /// The parameter of this name.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|p| p.name == name)
    }
}
