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
//! each bound has a counter in [`Metrics`].
//!
//! ```
//! use unitape_watch::{Selection, replay_jsonl};
//!
//! let lines = br#"
//! {"seq":1,"ts":1000,"kind":"exec","oid":"B1","match_id":"M1","side":"B","px":"10","qty":"5","venue":"XLON","instr":"VOD","owner":"ACME"}
//! {"seq":2,"ts":1000,"kind":"exec","oid":"S1","match_id":"M1","side":"S","px":"10","qty":"5","venue":"XLON","instr":"VOD","owner":"ACME"}
//! "#;
//! let mut out = Vec::new();
//! replay_jsonl(&lines[..], "example", &Selection::default(), |alert, case| {
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
//! What it does not do: read tapes (the caller feeds [`TapeWatch`] frame by frame), keep cases, or judge
//! people; an alert is a reason to look.

mod alert;
mod cooldown;
mod def;
mod error;
mod exact;
mod ids;
mod jsonl;
mod kept;
mod market;
#[cfg(any(test, feature = "naive"))]
pub mod naive;
mod orders;
mod params;
mod parties;
#[cfg(feature = "naive")]
pub mod sample;
pub mod scenarios;
mod table;
mod tape;
mod timers;
mod watch;
mod windows;

pub use alert::Alert;
pub use def::{Class, Def, Need, Param, Sort};
pub use error::Error;
pub use exact::Total;
pub use ids::IdKey;
pub use jsonl::{Replayed, replay_jsonl};
pub use market::{Best, Market, Reference};
pub use orders::{OrderState, Orders, Touched};
pub use params::{Overlay, Params, Selection};
pub use parties::Parties;
pub use tape::TapeWatch;
pub use timers::Due;
pub use watch::{Context, Input, Metrics, Output, Scenario, SharedMetrics, Watch};
