//! The audit of cases: whether the actions are those that were stored, and the cases are what the actions give.
//!
//! ```text
//!   action 1        action 2        action 3
//!   prev = 0   ┌──▶ prev       ┌──▶ prev        ┌── store.head: number and hash of the last action
//!   hash ──────┘    hash ──────┘    hash ◀──────┘
//! ```
//!
//! `hash` is BLAKE3 of the number of the row and of BLAKE3 of all its other fields, the hash of the row before included. So a
//! row cannot be changed, removed, inserted or moved unless all rows after it and the head are replaced. Somebody who may write
//! the database can do that: only a head that was signed elsewhere would show it.

pub(crate) mod chain;
mod links;
mod verify;

pub use verify::{AuditFinding, AuditProblem, AuditReport, verify};
