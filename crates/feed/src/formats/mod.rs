//! Bytes to events, by format.
//!
//! | module | |
//! |---|---|
//! | `format` | what a format is: [`format::ByteFormat`] cuts bytes, [`format::FormatDecoder`] decodes them |
//! | `csv`, `events`, `fast`, `fix`, `fixed`, `iex`, `iso20022`, `itch`, `swift`, `text` | one format each, or a family |
//! | `clock` | ticks that a run writes itself |
//! | `block_items` | the loops over the messages and the lines of a block |
//! | `registry` | all of them by name, and how their mappings are loaded |
//! | `decoder` | a block of bytes becomes a block of events, whatever the format |
//! | `datagram_session` | numbers of messages in datagrams: gaps, duplicates |
//! | `capture`, `fragments`, `stamp` | payloads out of packets and fragments of IP, receive times into events |
//!
//! A new format is a module of its own and a line in `registry`: `examples/formats/ltsv.patch` adds one.

mod block_items;
pub mod capture;
pub mod clock;
pub mod csv;
pub(crate) mod datagram_session;
pub mod decoder;
pub mod events;
pub mod fast;
mod file_name;
pub mod fix;
pub mod fixed;
pub mod format;
pub mod fragments;
pub mod iex;
pub mod iso20022;
pub mod itch;
pub mod registry;
pub mod stamp;
pub mod swift;
pub mod text;
pub mod zeros;
