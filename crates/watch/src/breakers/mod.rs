//! Circuit breakers: limits per scope over the orders of a tape, and the trips of exceeded limits.
//!
//! ```text
//!  rules.toml ─▶ BreakerRules ─┬─▶ limits   by scope: messages, repeats, notional in a window; overfill
//!                              └─▶ scopes   firm > desk > trader > algo, owner, acct, venue, instr
//!
//!  frame ─▶ Breaker::on_frame ─▶ limits of its scopes ─▶ trips ─▶ BreakerSignal …    the caller puts them on a tape
//!  what persons did ─▶ Breaker::apply ────────────────────┘
//! ```
//!
//! A breaker is a pure function of the events and of persons' acts between them: no clock, no chance. Its time is the
//! latest event time so far. A late event counts at the time of its arrival. An event whose clock is ahead (the flag
//! `clock_ahead`) does not move the time.
//!
//! ```
//! use unitape_watch::breakers::{Breaker, BreakerRules};
//!
//! let rules = BreakerRules::parse("
//! [[limit]]
//! name = 'flood'
//! scope = 'trader'
//! messages = 100
//! window = '1s'
//! ", "rules.toml")?;
//! assert!(Breaker::new(rules).tripped().is_empty());
//! # Ok::<(), unitape_watch::Error>(())
//! ```

mod limits;
pub(crate) mod orders;
mod rules;
mod scope;
mod trips;

pub use limits::{Breaker, LimitCounters, LimitUse};
pub use rules::{BreakerAction, BreakerRules, Limit, LimitMeasure, UnknownPrice};
pub use scope::{Scope, ScopeKind};
pub use trips::{ActiveTrip, BreakerSignal, ControlVerb, RecordedControl};
