//! From bytes to the tape, on any number of workers.
//!
//! | module | |
//! |---|---|
//! | `job` | a block on its way, with what the pipeline knows of it |
//! | `intake` | cuts sources into blocks |
//! | `sequence`, `feed_state`, `lead`, `open_sources`, `durability` | ids, definitions, merge, place on the tape |
//! | `begin`, `source_check` | what the tape knows of the sources, and what is there now |
//! | `consolidate`, `run` | all of it, once or until it is stopped |
//! | `masters` | reference data out of master files |
//! | `merge` | tapes become one tape: finished ones, or segments while they are written |
//! | `walk`, `explain` | a file decoded by itself; what a mapping does with each message of a sample, and why |
//! | `source_decoder` | one worker's part, for benches and tests |

pub mod begin;
pub mod consolidate;
pub mod durability;
pub mod explain;
pub mod feed_state;
pub mod intake;
pub mod job;
pub mod lead;
pub mod masters;
pub mod merge;
pub mod open_sources;
pub mod run;
pub mod sequence;
pub mod source_check;
pub mod source_decoder;
pub mod walk;
