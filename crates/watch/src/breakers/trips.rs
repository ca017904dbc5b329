//! Trips: a breaker's signals, the trips in force, and the records of both on the control tape.

use super::rules::BreakerAction;
use super::scope::{Scope, ScopeKind};
use unitape_model::{
    Dictionary, Event, EventField, EventKind, EventValue, InlineId, Position, TapePosition, UnixNanos,
};

/// The verb of a breaker's `control` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlVerb {
    /// A trip.
    Trip(BreakerAction),
    /// A reset.
    Resume,
    /// A limit that is used to the share at which it warns.
    Warn,
}

impl ControlVerb {
    /// Returns the word of the field `action`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trip(action) => action.name(),
            Self::Resume => "resume",
            Self::Warn => "warn",
        }
    }

    /// Returns the verb of a word.
    pub fn from_name(name: &str) -> Option<Self> {
        let all =
            [Self::Trip(BreakerAction::Halt), Self::Trip(BreakerAction::Kill), Self::Resume, Self::Warn];
        all.into_iter().find(|verb| verb.name() == name)
    }
}

/// A trip or a warning that an event has caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerSignal {
    /// Made of limit, scope and cause. If the event is judged again, the id is the same.
    pub id: String,
    /// The verb of the signal.
    pub verb: ControlVerb,
    /// Whose limit it is.
    pub scope: Scope,
    /// The name of the limit.
    pub limit: String,
    /// The measure of the limit, in the word of the rules.
    pub reason: &'static str,
    /// The time of the breaker at the event.
    pub ts: UnixNanos,
    /// The position of the event.
    pub cause: Position,
    /// The use of the limit.
    pub used: String,
    /// The limit.
    pub max: String,
    /// When it ends by itself.
    pub until: Option<UnixNanos>,
    /// Whether it is only a rehearsal.
    pub dry_run: bool,
}

/// A `control` event as a control tape has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedControl {
    /// Its id.
    pub id: String,
    /// The verb of the control.
    pub verb: ControlVerb,
    /// Its scope.
    pub scope: Scope,
    /// Its time.
    pub ts: UnixNanos,
    /// The event that caused it, or the end of the watched tape when a person made it.
    pub cause: TapePosition,
    /// The reason: the measure of a limit, or a person's words.
    pub reason: Option<String>,
    /// Limit, use and the like, as JSON.
    pub detail: Option<String>,
    /// The user who made it, or `None` if a limit caused it.
    pub user: Option<String>,
    /// The second user.
    pub second_user: Option<String>,
    /// When it ends by itself.
    pub until: Option<UnixNanos>,
    /// Whether it is only a rehearsal.
    pub dry_run: bool,
}

impl RecordedControl {
    /// Reads a `control` event. Returns `None` if the event is not a breaker's: without id, scope or cause, or with
    /// another action.
    pub fn read(event: &Event<'_>, names: &Dictionary) -> Option<Self> {
        if event.kind() != EventKind::Control {
            return None;
        }
        let text = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Text(text) | EventValue::Json(text)) => Some(text.to_owned()),
            _ => None,
        };
        let name = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Sym(dict, id)) => {
                Some(names.name(dict, id).map_or_else(|| format!("#{id}"), str::to_owned))
            }
            _ => None,
        };
        let kind = ScopeKind::from_name(&text(EventField::ScopeKind)?)?;
        Some(Self {
            id: match event.field(EventField::Id, &mut [0; 36])? {
                EventValue::Id(InlineId::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                _ => return None,
            },
            verb: ControlVerb::from_name(&text(EventField::Action)?)?,
            scope: Scope { kind, name: name(kind.field())? },
            ts: event.ts_event(),
            cause: match event.field(EventField::Cause, &mut [0; 36])? {
                EventValue::TapePosition(cause) => cause,
                _ => return None,
            },
            reason: text(EventField::Reason),
            detail: text(EventField::Detail),
            user: name(EventField::By),
            second_user: name(EventField::SecondBy),
            until: match event.field(EventField::Until, &mut [0; 36]) {
                Some(EventValue::Nanos(until)) => Some(until),
                _ => None,
            },
            dry_run: matches!(event.field(EventField::DryRun, &mut [0; 36]), Some(EventValue::Bool(true))),
        })
    }
}

/// A trip in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTrip {
    /// The id of its control.
    pub id: String,
    /// Its effect.
    pub action: BreakerAction,
    /// When it ends by itself.
    pub until: Option<UnixNanos>,
    /// Whether it is only a rehearsal.
    pub dry_run: bool,
    /// The number of its limit in the rules, or `None` for a person's act.
    pub(super) limit: Option<usize>,
}

/// The trips in force, by scope. A rehearsal does not hide a trip.
#[derive(Debug, Default)]
pub(super) struct TripTable {
    active: std::collections::BTreeMap<(u32, bool), ActiveTrip>,
    /// The first `until` of all.
    next_end: Option<i64>,
}

impl TripTable {
    /// Returns whether a trip of this effect would be no second trip of the scope.
    pub fn may_trip(&self, scope: u32, dry_run: bool, action: BreakerAction) -> bool {
        self.active.get(&(scope, dry_run)).is_none_or(|trip| trip.action < action)
    }

    /// Returns whether a person's act changes the trip in force for the scope: it is stronger, or as strong and lasts
    /// longer.
    pub fn may_replace(&self, scope: u32, new: &ActiveTrip) -> bool {
        let lasts_longer = |current: &ActiveTrip| {
            current.action == new.action
                && current.until.is_some_and(|end| new.until.is_none_or(|until| until > end))
        };
        self.may_trip(scope, new.dry_run, new.action)
            || self.active.get(&(scope, new.dry_run)).is_some_and(lasts_longer)
    }

    /// Puts a trip in force.
    pub fn insert(&mut self, scope: u32, trip: ActiveTrip) {
        let trip_end_ns = trip.until.map(|until| until.0);
        self.next_end = [self.next_end, trip_end_ns].into_iter().flatten().min();
        self.active.insert((scope, trip.dry_run), trip);
    }

    /// Ends the trip in force for a scope. Returns whether there was a trip.
    pub fn reset(&mut self, scope: u32) -> bool {
        let was_active = [false, true].map(|dry_run| self.active.remove(&(scope, dry_run)).is_some());
        was_active[0] || was_active[1]
    }

    /// Ends the trips that end by themselves at `now`. Returns the scopes and the limits that had tripped.
    pub fn expire(&mut self, now: i64) -> Vec<(u32, Option<usize>)> {
        if self.next_end.is_none_or(|end| now < end) {
            return Vec::new();
        }
        let mut ended_trips = Vec::new();
        self.active.retain(|(scope, _), trip| {
            let is_over = trip.until.is_some_and(|until| until.0 <= now);
            if is_over {
                ended_trips.push((*scope, trip.limit));
            }
            !is_over
        });
        self.next_end = self.active.values().filter_map(|trip| trip.until).map(|until| until.0).min();
        ended_trips
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &ActiveTrip)> {
        self.active.iter().map(|((scope, _), trip)| (*scope, trip))
    }
}
