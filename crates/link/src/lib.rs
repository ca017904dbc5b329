//! A tape on another host: the protocol, and Aeron as its transport.
//!
//! ```text
//!  host A                                                     host B
//!  writer ─▶ tape ─▶ Reader ─▶ SenderSession ══ messages ══▶ ReceiverSession ─▶ Writer ─▶ the same tape
//!                                     ◀══ position, checksums, acknowledgements ══
//! ```
//!
//! A [`TapeSender`] reads a tape, a [`TapeReceiver`] writes it again in another directory: each unit once, in order, at the same
//! position. Equal units give equal files, so both directories are the same when both writers have closed. The [`session`]s are
//! state machines without I/O. [`wire`] draws their messages. A [`transport`] carries these: a network in memory with faults, or
//! with the feature `aeron` Aeron over UDP.
//!
//! ```
//! use std::time::Duration;
//! use unitape_link::transport::memory::{MemoryNetwork, NetworkFaults};
//! use unitape_link::{ReceiverOptions, SenderOptions, TapeReceiver, TapeSender};
//! use unitape_model::{EventBuilder, EventKind, Position, UnixNanos, flags};
//! use unitape_tape::{TapeId, Writer, WriterOptions};
//!
//! let dir = tempfile::tempdir()?;
//! let (a, b) = (dir.path().join("a"), dir.path().join("b"));
//! let (mut writer, _) = Writer::open(&a, TapeId(1), WriterOptions::default())?;
//! let mut unit = Vec::new();
//! EventBuilder::begin(&mut unit, EventKind::Clock, UnixNanos(1)).finish(flags::LAST)?;
//! writer.append(&unit)?;
//! writer.close()?;
//!
//! let network = MemoryNetwork::new(1, NetworkFaults::default(), 2 << 20);
//! let (here, there) = ("127.0.0.1:1".parse()?, "127.0.0.1:2".parse()?);
//! let options = SenderOptions { once: true, ..SenderOptions::default() };
//! let mut sender = TapeSender::open(&a, network.connect(here), options)?;
//! let options = ReceiverOptions { once: true, ..ReceiverOptions::new(7) };
//! let mut receiver = TapeReceiver::open(&b, here, network.connect(there), options)?;
//! let mut now = Duration::ZERO;
//! while !receiver.is_done() {
//!     now += Duration::from_millis(1);
//!     network.set_time(now);
//!     sender.poll(now)?;
//!     receiver.poll(now)?;
//! }
//! assert_eq!(receiver.end(), Some(Position(64)));
//! receiver.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The raw bytes of quarantine come before the events that name them. The link has no keys (so only loopback addresses are served),
//! takes nothing over when a sender dies, and decides nothing about retention: each end removes its own segments.

mod error;
pub mod fingerprint;
pub mod raw_log;
mod receive;
mod send;
pub mod session;
pub mod transport;
pub mod wire;

pub use error::Error;
pub use receive::{ReceiverEvent, ReceiverOptions, TapeReceiver};
pub use send::{RECEIVERS_MAX, SenderEvent, SenderFigures, SenderOptions, TapeSender};
