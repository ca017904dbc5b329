//! How messages reach the other end.

#[cfg(feature = "aeron")]
pub mod aeron;
#[cfg(any(test, feature = "aeron"))]
mod driver_directory;
pub mod memory;

use std::net::SocketAddr;

use crate::error::Error;

/// A carrier of messages. It may lose, double, delay and reorder them; it never mixes their bytes.
pub trait Transport {
    /// Returns the address at which others reach this end.
    fn address(&self) -> SocketAddr;

    /// Returns the length of the longest message, in bytes.
    fn message_bytes_max(&self) -> usize;

    /// Sends a message. Returns false if the transport takes nothing for this address now.
    ///
    /// # Errors
    /// Fails if the transport cannot work any more.
    fn send(&mut self, to: SocketAddr, message: &[u8]) -> Result<bool, Error>;

    /// Gives `each` the messages that have come, and returns their number. There may be more.
    ///
    /// # Errors
    /// Fails if the transport cannot work any more.
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<usize, Error>;

    /// Frees what is kept for this address.
    fn forget(&mut self, to: SocketAddr);
}
