//! Sockets for packets: all lines of all channels, many datagrams with one system call, with the kernel's receive times.

mod datagram;
mod live;
mod sockets;

pub use datagram::Batch;
pub(crate) use live::now;
pub use live::{Live, LiveOptions};
pub use sockets::{Interface, Sockets, UdpLine};
