//! Ticks in a store, from what is not a tape yet.

pub mod seal_files;
