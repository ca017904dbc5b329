//! The scenarios, one file each: definition, code, and its cases beside it.

pub mod wash_trade;

use crate::def::Def;
use crate::error::Error;
use crate::params::Params;
use crate::watch::Scenario;

/// A scenario that can be run.
pub struct Entry {
    /// What it is.
    pub def: &'static Def,
    /// Makes one with empty state.
    pub make: fn(&Params) -> Box<dyn Scenario>,
}

/// All of them, in the order of their names.
pub const ALL: &[Entry] =
    &[Entry { def: &wash_trade::DEF, make: |p| Box::new(wash_trade::WashTrade::new(p)) }];

/// The definition of this name.
pub fn find(id: &str) -> Result<&'static Def, Error> {
    ALL.iter().map(|e| e.def).find(|d| d.id == id).ok_or_else(|| Error::UnknownScenario {
        name: id.to_owned(),
        known: ALL.iter().map(|e| e.def.id).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_whole() {
        for (entry, next) in ALL.iter().zip(ALL.iter().skip(1)) {
            assert!(entry.def.id < next.def.id);
        }
        for Entry { def, make } in ALL {
            assert!(!def.inputs.is_empty() && !def.key.is_empty() && !def.regulation.is_empty());
            let params = Params::resolve(def, &[]);
            assert_eq!(params.values().count(), def.params.len());
            assert_eq!(make(&params).def().id, def.id);
        }
    }
}
