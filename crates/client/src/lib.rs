//! The client of a data server: logs in, asks, and reads answers as a store is read.

mod blocks;
mod connection;
mod error;
mod trust;
pub mod wire;

pub use connection::{Client, DatasetAddress, keep_known_names};
pub use error::Error;
pub use trust::{Fingerprint, ServerTrust};
