//! FAST with a handler as the format of a feed: its mapping's table `[fast]`, and the engine's steps as events.

mod described;
mod events;

pub(crate) use events::{ALONE, FastDecoder, SENT_AGAIN};
