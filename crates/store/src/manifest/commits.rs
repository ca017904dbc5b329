//! What each generation added, and what a reader of an earlier generation may see.
//!
//! Within a day and a tape, each generation adds events behind those of the generation before. The last ordinal of each
//! generation is therefore enough to leave later events out, also after a compaction has mixed generations in one block.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use unitape_model::{NameKind, UnixNanos};
use unitape_tape::TapeId;

use super::text::tape_text;
use crate::day::Day;
use crate::error::{Error, Result};

/// A state of a store: all generations up to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// Up to this generation. 0 is the store before its first seal.
    Generation(u64),
    /// Up to the last generation that was committed at this time or before.
    Time(UnixNanos),
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generation(generation) => write!(f, "{generation}"),
            Self::Time(time) => write!(f, "{} ns", time.0),
        }
    }
}

/// A generation: when it was committed, and how much it added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationSummary {
    /// Its number, from 1.
    pub generation: u64,
    /// When its seal ended, by the clock of its machine; later than the generation before, also if the clock went back.
    pub committed: UnixNanos,
    /// The events that it added.
    pub rows: u64,
}

/// What a generation added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Commit {
    pub generation: u64,
    /// Nanoseconds since 1970.
    pub committed: i64,
    pub rows: u64,
    /// How many names of each kind the store had then, in the order of [`NameKind::ALL`].
    pub names: Vec<u32>,
    pub ends: Vec<CommitEnd>,
}

/// The last event that a generation added to a day, of one tape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommitEnd {
    pub date: Day,
    #[serde(with = "tape_text")]
    pub tape: TapeId,
    pub ordinal_last: u64,
}

impl Commit {
    pub fn summary(&self) -> GenerationSummary {
        let Self { generation, committed, rows, .. } = *self;
        GenerationSummary { generation, committed: UnixNanos(committed), rows }
    }
}

/// Returns the commits that a state has.
///
/// # Errors
/// Fails if there is no such generation yet.
pub(crate) fn commits_of(commits: &[Commit], as_of: AsOf) -> Result<&[Commit]> {
    let newest = commits.last().map_or(0, |commit| commit.generation);
    let count = match as_of {
        AsOf::Generation(generation) if generation > newest => {
            return Err(Error::FutureGeneration { generation, newest });
        }
        AsOf::Generation(generation) => commits.partition_point(|c| c.generation <= generation),
        AsOf::Time(time) => commits.partition_point(|c| c.committed <= time.0),
    };
    Ok(&commits[..count])
}

/// The end of each tape in each day, as an earlier generation had it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GenerationBounds {
    ends: BTreeMap<(Day, u128), u64>,
    names: Vec<u32>,
}

impl GenerationBounds {
    /// Returns the bounds of a state, or `None` if it is the newest one.
    ///
    /// # Errors
    /// Fails if there is no such generation yet.
    pub fn new(commits: &[Commit], as_of: AsOf) -> Result<Option<Self>> {
        let seen_commits = commits_of(commits, as_of)?;
        if seen_commits.len() == commits.len() && !commits.is_empty() {
            return Ok(None);
        }
        let mut bounds = Self::default();
        for commit in seen_commits {
            for end in &commit.ends {
                bounds.ends.insert((end.date, end.tape.0), end.ordinal_last);
            }
            bounds.names.clone_from(&commit.names);
        }
        Ok(Some(bounds))
    }

    /// Returns the last ordinal of a tape in a day, or `None` if the day had no event of the tape.
    pub fn ordinal_last(&self, day: Day, tape: TapeId) -> Option<u64> {
        self.ends.get(&(day, tape.0)).copied()
    }

    /// Counts the names of a kind that the store had then.
    pub fn name_count(&self, kind: NameKind) -> u32 {
        let kind_index = NameKind::ALL.iter().position(|other| *other == kind);
        kind_index.and_then(|index| self.names.get(index)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(generation: u64, committed: i64, ends: &[(i32, u128, u64)]) -> Commit {
        let end = |&(day, tape, ordinal_last)| CommitEnd { date: Day(day), tape: TapeId(tape), ordinal_last };
        let names = vec![generation as u32 * 10; NameKind::ALL.len()];
        Commit { generation, committed, rows: 1, names, ends: ends.iter().map(end).collect() }
    }

    #[test]
    fn a_state_has_the_ends_of_the_generations_up_to_it() {
        let commits = [
            commit(1, 100, &[(5, 7, 10)]),
            commit(2, 200, &[(5, 7, 20), (6, 7, 25)]),
            commit(3, 300, &[(5, 8, 4)]),
        ];
        let bounds = |as_of| GenerationBounds::new(&commits, as_of);
        assert_eq!(bounds(AsOf::Generation(3)).unwrap(), None);
        assert_eq!(bounds(AsOf::Time(UnixNanos(300))).unwrap(), None);
        assert!(matches!(
            bounds(AsOf::Generation(4)),
            Err(Error::FutureGeneration { generation: 4, newest: 3 })
        ));
        let second = bounds(AsOf::Time(UnixNanos(299))).unwrap().unwrap();
        assert_eq!(Some(&second), bounds(AsOf::Generation(2)).unwrap().as_ref());
        let last = |day, tape| second.ordinal_last(Day(day), TapeId(tape));
        assert_eq!((last(5, 7), last(6, 7), last(5, 8)), (Some(20), Some(25), None));
        assert_eq!(second.name_count(NameKind::Venue), 20);
        for before_all in [AsOf::Generation(0), AsOf::Time(UnixNanos(99))] {
            assert_eq!(bounds(before_all).unwrap(), Some(GenerationBounds::default()));
        }
        assert_eq!(
            GenerationBounds::new(&[], AsOf::Generation(0)).unwrap(),
            Some(GenerationBounds::default())
        );
    }
}
