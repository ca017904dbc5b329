//! What a case is: its states, its alerts, the actions on it and who may act.

mod actor;
mod alert;
mod case;
mod states;

pub use actor::Actor;
pub use alert::{AlertRecord, names_party, parties_of};
pub(crate) use alert::{StoredAlert, alert_identity, group_of, key_json};
pub use case::{ActionAuthor, ActionRecord, Case, Disposition};
pub use states::{ActionKind, CaseState, StateTransition, TRANSITIONS, allowed_actions, next_state};
