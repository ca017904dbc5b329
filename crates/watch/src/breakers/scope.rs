//! Scopes: the firm, desk, trader, algorithm or other subject of a limit, and the tree of the first four.

use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::fmt;
use unitape_model::{Dictionary, Event, EventField, EventValue, NameKind};

/// The kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeKind {
    /// A firm.
    Firm,
    /// A desk.
    Desk,
    /// A trader.
    Trader,
    /// An algorithm.
    Algo,
    /// A beneficial owner.
    Owner,
    /// An account.
    Acct,
    /// A venue.
    Venue,
    /// An instrument.
    Instr,
}

impl ScopeKind {
    /// All kinds; the first four are the levels of the tree, from the top.
    pub const ALL: [Self; 8] =
        [Self::Firm, Self::Desk, Self::Trader, Self::Algo, Self::Owner, Self::Acct, Self::Venue, Self::Instr];

    /// Returns the word of events and rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firm => "firm",
            Self::Desk => "desk",
            Self::Trader => "trader",
            Self::Algo => "algo",
            Self::Owner => "owner",
            Self::Acct => "acct",
            Self::Venue => "venue",
            Self::Instr => "instr",
        }
    }

    /// Returns the kind of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the dictionary of its names.
    pub const fn dict(self) -> NameKind {
        match self {
            Self::Firm => NameKind::Firm,
            Self::Desk => NameKind::Desk,
            Self::Trader => NameKind::Trader,
            Self::Algo => NameKind::Algo,
            Self::Owner => NameKind::Owner,
            Self::Acct => NameKind::Account,
            Self::Venue => NameKind::Venue,
            Self::Instr => NameKind::Instrument,
        }
    }

    /// Returns the field of events that has its name.
    pub const fn field(self) -> EventField {
        match self {
            Self::Firm => EventField::Firm,
            Self::Desk => EventField::Desk,
            Self::Trader => EventField::Trader,
            Self::Algo => EventField::Algo,
            Self::Owner => EventField::Owner,
            Self::Acct => EventField::Acct,
            Self::Venue => EventField::Venue,
            Self::Instr => EventField::Instr,
        }
    }
}

/// A firm, a trader, an instrument: its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// Its kind.
    pub kind: ScopeKind,
    /// Its name.
    pub name: String,
}

impl Scope {
    /// Reads `trader=T1`.
    ///
    /// # Errors
    /// Fails with a description of the mistake in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let scope_names = || ScopeKind::ALL.map(ScopeKind::name);
        let (kind, name) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is no scope; write KIND=NAME, such as trader=T1"))?;
        let kind_there = ScopeKind::from_name(kind).ok_or_else(|| {
            let near = unitape_base::toml::suggest_word(kind, scope_names());
            format!("there is no scope `{kind}`{near}; there are {}", scope_names().join(", "))
        })?;
        if !Self::is_name(name) {
            return Err(format!("the name of a {kind} has 1 to 255 bytes"));
        }
        Ok(Self { kind: kind_there, name: name.to_owned() })
    }

    /// Returns whether a dictionary takes this text as a name.
    pub fn is_name(name: &str) -> bool {
        (1..=255).contains(&name.len())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind.name(), self.name)
    }
}

/// The levels of the tree.
const LEVELS: usize = 4;

/// The members: which desk is in which firm, which trader in which desk, and so on.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeTree {
    /// By level and name: the names above, by level.
    parents: BTreeMap<(usize, String), [Option<String>; LEVELS]>,
}

impl ScopeTree {
    /// Adds a member: its names by level, from the firm down.
    ///
    /// # Errors
    /// Fails with the level of the mistake and a description.
    pub fn add(&mut self, names: [Option<&str>; LEVELS]) -> Result<(), (&'static str, String)> {
        let mut given_names = names.iter().flatten();
        if given_names.next().is_none() || given_names.next().is_none() {
            let first_level = (0..LEVELS).find(|level| names[*level].is_some()).unwrap_or(0);
            let message = "a member has two names at least: of firm, desk, trader, algo".to_owned();
            return Err((ScopeKind::ALL[first_level].name(), message));
        }
        for level in 0..LEVELS {
            let Some(name) = names[level] else { continue };
            let word = ScopeKind::ALL[level].name();
            if !Scope::is_name(name) {
                return Err((word, format!("the name of a {word} has 1 to 255 bytes")));
            }
            let parents = self.parents.entry((level, name.to_owned())).or_default();
            for (upper, parent) in names.iter().enumerate().take(level) {
                set_parent(parents, level, name, upper, *parent).map_err(|message| (word, message))?;
            }
        }
        Ok(())
    }

    /// Adds the upper levels of its parents to each member.
    ///
    /// # Errors
    /// Fails with a description of the contradiction.
    pub fn close(&mut self) -> Result<(), String> {
        let keys: Vec<(usize, String)> = self.parents.keys().cloned().collect();
        // From the top down: the upper levels are closed already.
        for (level, name) in keys {
            for upper in (0..level).rev() {
                let Some(parent) = self.parents[&(level, name.clone())][upper].clone() else { continue };
                let of_parent = self.parents.get(&(upper, parent)).cloned().unwrap_or_default();
                let mine = self.parents.get_mut(&(level, name.clone())).expect("a key of the map");
                for (top, grandparent) in of_parent.iter().enumerate() {
                    set_parent(mine, level, &name, top, grandparent.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// Returns the names above a member, by level.
    pub fn parents_of(&self, level: usize, name: &str) -> Option<&[Option<String>; LEVELS]> {
        self.parents.get(&(level, name.to_owned()))
    }
}

fn set_parent(
    parents: &mut [Option<String>; LEVELS],
    level: usize,
    name: &str,
    upper: usize,
    parent: Option<&str>,
) -> Result<(), String> {
    let Some(parent) = parent else { return Ok(()) };
    match &parents[upper] {
        Some(current_parent) if current_parent != parent => {
            let (word, top) = (ScopeKind::ALL[level].name(), ScopeKind::ALL[upper].name());
            Err(format!("the {word} `{name}` is in the {top} `{current_parent}` already, not in `{parent}`"))
        }
        _ => {
            parents[upper] = Some(parent.to_owned());
            Ok(())
        }
    }
}

/// The scopes of an event, by kind: numbers of a [`ScopeTable`], or [`NO_SCOPE`].
pub(super) type EventScopes = [u32; ScopeKind::ALL.len()];

/// No scope of this kind.
pub(super) const NO_SCOPE: u32 = u32::MAX;

/// All scopes that were seen, by number. Bounded by the names of the tape and of the rules.
#[derive(Default)]
pub(super) struct ScopeTable {
    scopes: Vec<Scope>,
    numbers: HashMap<Scope, u32>,
    /// By kind: the number of the scope of an id of the tape's dictionary.
    by_id: [Vec<u32>; ScopeKind::ALL.len()],
    /// By number: the scopes above, by level.
    parents: Vec<[u32; LEVELS]>,
    tree: ScopeTree,
}

impl ScopeTable {
    pub fn new(tree: ScopeTree) -> Self {
        Self { tree, ..Self::default() }
    }

    pub fn scope(&self, number: u32) -> &Scope {
        &self.scopes[number as usize]
    }

    pub fn len(&self) -> u32 {
        self.scopes.len() as u32
    }

    /// Returns the number of a scope, which it has from now on.
    pub fn number(&mut self, scope: Scope) -> u32 {
        if let Some(number) = self.numbers.get(&scope) {
            return *number;
        }
        let level = scope.kind as usize;
        let upper = (level < LEVELS).then(|| self.tree.parents_of(level, &scope.name).cloned()).flatten();
        let upper = upper.unwrap_or_default();
        let mut parents = [NO_SCOPE; LEVELS];
        for (level, name) in upper.into_iter().enumerate() {
            if let Some(name) = name {
                parents[level] = self.number(Scope { kind: ScopeKind::ALL[level], name });
            }
        }
        let number = self.len();
        self.numbers.insert(scope.clone(), number);
        self.scopes.push(scope);
        self.parents.push(parents);
        number
    }

    /// Returns the scopes that the event names itself.
    pub fn named(&mut self, event: &Event<'_>, names: &Dictionary) -> EventScopes {
        ScopeKind::ALL.map(|kind| match event.field(kind.field(), &mut [0; 36]) {
            Some(EventValue::Sym(dict, id)) => self.of_id(kind, dict, id, names),
            _ => NO_SCOPE,
        })
    }

    /// Fills in the members from the tree: the firm and the desk of a trader.
    pub fn fill_from_tree(&self, scopes: &mut EventScopes) {
        for level in (0..LEVELS - 1).rev() {
            if scopes[level] == NO_SCOPE {
                let lower_scopes = scopes[level + 1..LEVELS].iter().filter(|number| **number != NO_SCOPE);
                let mut candidates = lower_scopes.map(|number| self.parents[*number as usize][level]);
                scopes[level] = candidates.find(|number| *number != NO_SCOPE).unwrap_or(NO_SCOPE);
            }
        }
    }

    fn of_id(&mut self, kind: ScopeKind, dict: NameKind, id: u32, names: &Dictionary) -> u32 {
        let known_number = self.by_id[kind as usize].get(id as usize).copied();
        if let Some(number) = known_number.filter(|number| *number != NO_SCOPE) {
            return number;
        }
        // An id whose name is lost is a scope all the same.
        let Some(name) = names.name(dict, id).map(str::to_owned) else {
            return self.number(Scope { kind, name: format!("#{id}") });
        };
        let number = self.number(Scope { kind, name });
        let numbers = &mut self.by_id[kind as usize];
        if numbers.len() <= id as usize {
            numbers.resize(id as usize + 1, NO_SCOPE);
        }
        numbers[id as usize] = number;
        number
    }
}
