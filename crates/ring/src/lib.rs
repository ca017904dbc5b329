//! Bounded SPSC rings, the ordered parallel farm, and how to wait.

mod error;
pub mod farm;
mod floor;
pub mod spsc;
mod sync;
mod turnstile;
pub mod wait;

pub use error::Error;
pub use farm::{Claim, Done, Ending, Farm, Options, Stage, Stats, run};
pub use spsc::{Consumer, PopError, Producer, PushError, ring};
pub use wait::{Wait, Waiter};

/// The farm's floor, for loom, which must make the threads itself.
#[cfg(loom)]
#[doc(hidden)]
pub mod loom_parts {
    pub use crate::{
        farm::conclude,
        floor::{Floor, Lane},
    };
}
