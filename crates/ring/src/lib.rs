//! Bounded SPSC rings, the ordered parallel farm, and how to wait.

mod error;
pub mod farm;
mod floor;
mod sync;
mod turnstile;
pub mod wait;

pub use error::Error;
pub use farm::{Claim, Done, Ending, Farm, Options, Stage, Stats, run};
pub use wait::{Wait, Waiter};
