//! Sockets for packets: all lines of all channels, many datagrams with one system call, with the kernel's receive times.

mod datagram;
mod live;
mod sockets;

pub use datagram::DatagramBatch;
pub(crate) use live::now;
pub use live::{LiveOptions, LiveReceiver};
pub use sockets::{NetworkInterface, UdpEndpoint, UdpSockets};
