//! From bytes to the tape, on any number of workers.
//!
//! | module | |
//! |---|---|
//! | `intake` | cuts sources into blocks |
//! | `capture`, `stamp` | payloads out of packets, receive times into events |
//! | `sequence`, `feed_state`, `lead`, `open_sources`, `durability` | ids, definitions, merge, place on the tape |
//! | `begin` | what the tape knows of the sources |
//! | `consolidate`, `run` | all of it, once or until it is stopped |
//! | `merge` | tapes of one feed each become one tape |
//! | `walk`, `explain` | a file decoded by itself; what a mapping does with each message of a sample, and why |

pub mod begin;
pub mod capture;
pub mod consolidate;
pub mod durability;
pub mod explain;
pub mod feed_state;
pub mod intake;
pub mod lead;
pub mod merge;
pub mod open_sources;
pub mod run;
pub mod sequence;
pub mod stamp;
pub mod walk;
