//! The two state machines of the protocol. They do no I/O and read no clock: messages, time and parts of the tape go in, messages
//! and appends come out.
//!
//! ```text
//!  receiver                                   sender
//!     │ ── Hello: tape, position, checksums ──▶ │  compares
//!     │ ◀─ Welcome ───────────────────────────  │  (or Refuse)
//!     │ ◀─ Raw, Data, Data, Data … ───────────  │  up to a window of bytes that are not acknowledged
//!     │ ── Acknowledge: committed, durable ───▶ │
//!     │ ◀─ Announce: end, closed ─────────────  │
//!     │ ── Acknowledge: all durable, leaving ─▶ │
//!     │ ◀─ Finish ────────────────────────────  │
//!
//!     │ ◀─ Refuse: reason ────────────────────  │  in answer to a hello, or later
//!     │ ── Acknowledge: leaving ──────────────▶ │  now the sender may end
//! ```
//!
//! The transport may lose, double, delay and reorder messages. The receiver alone repairs that: if a part is missing, or it
//! hears nothing for [`SessionOptions::silence`], it asks again from the end of its tape, as a new session. Messages of an older
//! session are dropped, so neither end has to be told that the other one has died.

mod receiver;
mod sender;

pub use receiver::{HeldTape, ReceiverFigures, ReceiverSession, ReceiverStep, UnitSink};
pub use sender::SenderSession;

use std::time::Duration;

/// Limits and times of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Bytes that a sender sends beyond what the receiver has acknowledged.
    pub window_bytes: u64,
    /// Bytes of frames in a data message, at most; less if the transport carries less.
    pub data_bytes: usize,
    /// A receiver repeats a hello that is not answered after this time.
    pub hello_interval: Duration,
    /// A receiver acknowledges what it has received after this time at the latest.
    pub acknowledge_interval: Duration,
    /// Both ends give a sign of life after this time.
    pub alive_interval: Duration,
    /// A receiver that hears nothing for this time asks again.
    pub silence: Duration,
    /// A sender forgets a receiver from which it hears nothing for this time.
    pub receiver_silence: Duration,
    /// A receiver that leaves waits for the answer of the sender for this time at most.
    pub leave_wait: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            window_bytes: 8 << 20,
            data_bytes: 64 << 10,
            hello_interval: Duration::from_millis(250),
            acknowledge_interval: Duration::from_millis(5),
            alive_interval: Duration::from_millis(200),
            silence: Duration::from_secs(2),
            receiver_silence: Duration::from_secs(10),
            leave_wait: Duration::from_secs(5),
        }
    }
}

/// The most bytes of a unit that a link carries: the receiver holds a unit in memory until it is whole.
pub const UNIT_BYTES_MAX: u64 = 1 << 30;
