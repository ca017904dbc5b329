//! Columns of which a header must have some: those that a mapping takes by alternative names, and the prices of its
//! events.

use super::decode::column_of;

/// Columns, of which a header must have at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnChoice {
    /// What the mapping takes from them, in a word for errors: `bid`.
    pub purpose: String,
    /// The names of the columns, as files have them.
    pub columns: Vec<String>,
}

/// What a header must have for a mapping to make anything of its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnNeeds {
    /// Of each of these one column must be there.
    pub always: Vec<ColumnChoice>,
    /// All choices of one of these cases must be met, unless there is no case.
    pub cases: Vec<Vec<ColumnChoice>>,
}

impl ColumnChoice {
    /// Returns whether one of its columns is among these names.
    fn is_met(&self, names: &[String]) -> bool {
        self.columns.iter().any(|column| column_of(names, column).is_some())
    }
}

impl ColumnNeeds {
    /// Returns whether there are no choices to check.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.always.is_empty() && self.cases.is_empty()
    }

    /// Returns the choices of which a header with these names has no column.
    pub(crate) fn unmet<'n>(&'n self, names: &[String]) -> Vec<&'n ColumnChoice> {
        let always = self.always.iter().filter(|choice| !choice.is_met(names));
        let mut unmet: Vec<&ColumnChoice> = always.collect();
        if !self.cases.is_empty() && !self.cases.iter().any(|case| case.iter().all(|c| c.is_met(names))) {
            for choice in self.cases.iter().flatten().filter(|choice| !choice.is_met(names)) {
                if !unmet.contains(&choice) {
                    unmet.push(choice);
                }
            }
        }
        unmet
    }
}
