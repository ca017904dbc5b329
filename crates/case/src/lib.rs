//! Cases: alerts that people work on until two persons close them.
//!
//! ```text
//!  alert tape ──▶ ingest ──▶ alert ─┐                 an alert joins the open case of its scenario, key and session date
//!                                   ▼
//!                 actor ──▶ action ──▶ DIR/cases.db   actions, each with the hash of the action before; cases are their sum
//!                                   │
//!                                   └──▶ audit        names what was changed, removed, inserted or moved
//!  tape ─────────▶ evidence ──▶ events and books of an alert
//! ```
//!
//! ```
//! use unitape_case::{CaseFilter, CaseStore};
//!
//! let dir = tempfile::tempdir()?;
//! let store = CaseStore::open_or_create(&dir.path().join("cases"))?;
//! assert!(store.cases(&CaseFilter::default())?.cases.is_empty());
//! assert!(unitape_case::audit::verify(&store)?.is_intact());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing is printed here and nobody is asked for a password: [`unitape_run::users`] knows accounts, and the caller passes an
//! [`Actor`] and the time. Cases do not judge: an alert is a reason to look, and a decision is a person's.

#![deny(clippy::print_stdout, clippy::print_stderr)] // who prints is the caller

pub mod action;
pub mod audit;
mod error;
pub mod evidence;
pub mod export;
pub mod ingest;
mod model;
mod store;

pub use error::Error;
pub use model::{
    ActionAuthor, ActionKind, ActionRecord, Actor, AlertRecord, Case, CaseState, Disposition,
    StateTransition, TRANSITIONS, allowed_actions, names_party, next_state, parties_of,
};
pub use store::{AlertTapeRecord, CaseFilter, CasePage, CaseStore};
