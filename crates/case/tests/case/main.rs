//! Cases as a program uses them: ingest, actions, audit. The database is looked at and changed with SQLite itself.

mod actions;
mod audit;
mod ingest;
mod sample;
