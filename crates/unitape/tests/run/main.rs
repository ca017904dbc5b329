//! `unitape run`: live feeds, waits, faults, kills, peers.

#[path = "../common/mod.rs"]
mod common;

mod channels;
mod clocks;
mod command;
mod exposition;
mod faults;
mod flush;
mod idle;
mod kill;
mod monitor;
mod peers;
mod retain;
mod rounds;
mod segments;
mod ticks;
mod waits;
