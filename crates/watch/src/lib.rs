//! Surveillance: scenarios over the tape, alerts.
//!
//! ```text
//!            Define ─▶ names          party ─▶ Parties (owner → group)      who belongs together
//!   frames ─▶ event ─▶ Watch ─┬─────▶ order ─▶ Orders, Market           what all of them see
//!   lines  ─▶                 └─ by kind ─▶ Scenario ─▶ Alert …             one folder each in `scenarios/`
//! ```
//!
//! A scenario is a pure function of the events so far: it sees no clock, and the same events give the same
//! alerts, live or replayed. It works on ids, keeps bounded state and allocates nothing while events pass;
//! each bound has a counter in [`ScenarioMetrics`].
//!
//! ```
//! use unitape_watch::{ScenarioSelection, replay_jsonl};
//!
//! let lines = br#"
//! {"seq":1,"ts":1000,"kind":"exec","oid":"B1","match_id":"M1","side":"B","px":"10","qty":"5","venue":"XLON","instr":"VOD","owner":"ACME"}
//! {"seq":2,"ts":1000,"kind":"exec","oid":"S1","match_id":"M1","side":"S","px":"10","qty":"5","venue":"XLON","instr":"VOD","owner":"ACME"}
//! "#;
//! let mut out = Vec::new();
//! replay_jsonl(&lines[..], "example", &ScenarioSelection::default(), |alert, case| {
//!     alert.write_json(&mut out, case);
//!     Ok(())
//! })
//! .unwrap();
//! assert_eq!(
//!     String::from_utf8(out).unwrap(),
//!     r#"{"scenario":"wash_trade","ts":1000,"trigger_seq":2,"key":{"group":"ACME","instr":"VOD"},"detail":{"arm":"self_match","seqs":[1,2]}}"#
//! );
//! ```
//!
//! It does not read tapes (the caller feeds [`TapeWatch`] frame by frame), keep cases, or judge people; an alert is a
//! reason to look.

mod alert;
pub mod breakers;
mod cooldown;
mod def;
mod error;
mod exact;
mod fields;
mod ids;
mod jsonl;
mod kept;
mod keyed;
mod market;
mod missing;
mod number;
mod orders;
mod params;
mod parties;
mod past_prices;
mod prints;
pub mod scenarios;
mod sessions;
mod state;
mod table;
mod tape;
mod time_logs;
mod timers;
mod transfers;
#[cfg(any(test, feature = "twin"))]
pub mod twin;
mod watch;
mod windows;

pub use alert::{Alert, EvidenceEvent, RecordedAlert};
pub use def::{COUNT_MAX, ConductClass, ParamDef, ParamType, ScenarioDef};
pub use error::Error;
pub use exact::QuantitySum;
pub use ids::IdKey;
pub use jsonl::{ReplayObserver, ReplaySummary, replay_cases, replay_jsonl};
pub use market::{InstrumentTerms, MarketState, VenueBbo};
pub use missing::{MissingCounts, MissingKey, MissingValue};
pub use orders::{OrderState, OrderTable, OrderUpdate};
pub use params::{ParamOverlay, ScenarioParams, ScenarioRules, ScenarioSelection, WatchRules};
pub use parties::OwnerGroups;
pub use prints::{Print, PrintChange, PrintTable};
pub use sessions::WatchCalendar;
pub use state::{StateFault, StateReader, WatchState};
pub use tape::TapeWatch;
pub use timers::DueTimer;
pub use watch::{
    ENGINE_VERSION, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedMetrics,
    SharedStateKind, Watch,
};
