//! Feeds onto tapes: the same tape at any number of workers, after any stop and any kill; each format by its documents.

#[path = "../common/mod.rs"]
mod common;

mod clock;
mod consolidate;
mod csv;
mod depth;
mod drop_copy_books;
mod fast;
mod fast_rules;
mod fixed;
mod fragments;
mod iex;
mod iso20022;
mod itch;
mod itch_books;
mod merge;
mod partial_quotes;
mod restarts;
mod sums;
mod swift;
mod text;
mod times;
