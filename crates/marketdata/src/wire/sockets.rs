//! Sockets for datagrams: one for each address, bound to its group and joined on the configured interface. One call
//! waits for all of them.
//!
//! The two lines of a venue often arrive on two network cards, so each address names its interface.

use super::datagram::{self, DatagramBatch, ask_for_times};
use crate::error::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The address of datagrams, and the interface that receives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpEndpoint {
    /// Group or local address, and port.
    pub address: SocketAddr,
    /// By which a group is joined; the system's choice without.
    pub interface: Option<NetworkInterface>,
}

/// An interface of this host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum NetworkInterface {
    /// The interface with this address.
    Address(IpAddr),
    /// By its name: `eth1`.
    Name(String),
}

/// The sockets of several addresses.
#[derive(Debug)]
pub struct UdpSockets {
    /// In the order of `all`, and `end` last; their descriptors are open as long as those are.
    poll_descriptors: Vec<PollFd<'static>>,
    socket_list: Vec<(UdpSocket, SocketAddr)>,
    wake_descriptor: Option<Arc<OwnedFd>>,
}

impl UdpSockets {
    /// Opens a socket for each line, with this many bytes of buffer, as far as the system grants them.
    ///
    /// # Errors
    /// Fails if the system refuses a socket.
    pub fn open(lines: &[UdpEndpoint], buffer_bytes: usize) -> Result<Self, Error> {
        let open_socket = |line: &UdpEndpoint| Ok((line.open(buffer_bytes)?, line.address));
        let socket_list = lines.iter().map(open_socket).collect::<Result<Vec<_>, Error>>()?;
        let asked = socket_list.iter().map(|(socket, _)| poll_fd(socket.as_fd())).collect();
        Ok(Self { poll_descriptors: asked, socket_list, wake_descriptor: None })
    }

    /// Ends every wait of these sockets when `end` can be read.
    #[must_use]
    pub fn ended_by(mut self, end: Arc<OwnedFd>) -> Self {
        if self.wake_descriptor.is_none() {
            self.poll_descriptors.push(poll_fd(end.as_fd()));
            self.wake_descriptor = Some(end);
        }
        self
    }

    /// Counts the sockets.
    #[must_use]
    pub fn count(&self) -> usize {
        self.socket_list.len()
    }

    /// Returns the address to which a socket's datagrams are sent.
    #[must_use]
    pub fn address(&self, n: usize) -> SocketAddr {
        self.socket_list[n].1
    }

    /// Waits until one of them has something, the end can be read, or at most so long; whether one has.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn wait(&mut self, timeout: Duration) -> std::io::Result<bool> {
        let wait_max = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut self.poll_descriptors, Some(&wait_max)) {
            Ok(_) => Ok((0..self.count()).any(|n| self.is_ready(n))),
            Err(rustix::io::Errno::INTR) => {
                self.poll_descriptors.iter_mut().for_each(PollFd::clear_revents);
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Returns whether the last wait found a datagram at this socket.
    #[must_use]
    pub fn is_ready(&self, n: usize) -> bool {
        !self.poll_descriptors[n].revents().is_empty()
    }

    /// Receives the waiting datagrams, up to a batch, and returns their number. It does not wait.
    ///
    /// # Errors
    /// Fails if the system refuses.
    #[inline]
    pub fn receive(&self, n: usize, batch: &mut DatagramBatch) -> std::io::Result<usize> {
        batch.receive(&self.socket_list[n].0)
    }

    /// Asks the kernel how many datagrams it has dropped for this socket so far (the count wraps). Returns `None` if
    /// the system tells only with a datagram. Datagrams still unread may be older than the drops.
    #[must_use]
    pub fn dropped(&self, n: usize) -> Option<u32> {
        datagram::dropped(&self.socket_list[n].0)
    }
}

impl UdpEndpoint {
    fn open(&self, buffer_bytes: usize) -> Result<UdpSocket, Error> {
        let fail = |operation| move |source| Error::Socket { address: self.to_string(), operation, source };
        let group = self.address.ip().is_multicast();
        let domain = if self.address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket =
            Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(fail("open a socket for"))?;
        if group {
            // Several readers of one group on one host are usual.
            socket.set_reuse_address(true).map_err(fail("share"))?;
        }
        socket.set_recv_buffer_size(buffer_bytes).map_err(fail("give a buffer to"))?;
        ask_for_times(&socket).map_err(fail("ask for receive times of"))?;
        // Bound to the group itself, so that datagrams to other groups on this port do not arrive.
        socket.bind(&self.address.into()).map_err(fail("bind to"))?;
        if group {
            self.join_groups(&socket).map_err(fail("join"))?;
        }
        socket.set_nonblocking(true).map_err(fail("read"))?;
        Ok(socket.into())
    }

    fn join_groups(&self, socket: &Socket) -> std::io::Result<()> {
        let index = match &self.interface {
            Some(NetworkInterface::Name(name)) => Some(index(name)?),
            _ => None,
        };
        match (self.address.ip(), &self.interface) {
            (IpAddr::V4(group), interface) => {
                let on = match (interface, index) {
                    (_, Some(index)) => InterfaceIndexOrAddress::Index(index),
                    (Some(NetworkInterface::Address(IpAddr::V4(ip))), _) => {
                        InterfaceIndexOrAddress::Address(*ip)
                    }
                    (None, _) => InterfaceIndexOrAddress::Address(std::net::Ipv4Addr::UNSPECIFIED),
                    (Some(_), _) => {
                        return Err(invalid_input("an interface by its IPv4 address or its name is needed"));
                    }
                };
                // Another program on this host that has joined it by another interface gets those datagrams, not we.
                #[cfg(target_os = "linux")]
                socket.set_multicast_all_v4(interface.is_none())?;
                socket.join_multicast_v4_n(&group, &on)
            }
            (IpAddr::V6(group), Some(NetworkInterface::Name(_)) | None) => {
                socket.join_multicast_v6(&group, index.unwrap_or(0))
            }
            (IpAddr::V6(_), Some(_)) => {
                Err(invalid_input("an IPv6 group is joined by the name of an interface"))
            }
        }
    }
}

impl NetworkInterface {
    /// Checks that this host has the interface.
    ///
    /// # Errors
    /// Fails with the system's error if the host does not have it.
    pub fn look(&self) -> std::io::Result<()> {
        match self {
            NetworkInterface::Name(name) => index(name).map(drop),
            NetworkInterface::Address(ip) => UdpSocket::bind((*ip, 0)).map(drop),
        }
    }
}

impl fmt::Display for UdpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "{} by {interface}", self.address),
            None => self.address.fmt(f),
        }
    }
}

impl fmt::Display for NetworkInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkInterface::Address(ip) => ip.fmt(f),
            NetworkInterface::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for NetworkInterface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse() {
            return Ok(NetworkInterface::Address(ip));
        }
        let is_name_byte = |b: u8| b.is_ascii_graphic() && b != b'/';
        match !text.is_empty() && text.len() < libc::IFNAMSIZ && text.bytes().all(is_name_byte) {
            true => Ok(NetworkInterface::Name(text.to_owned())),
            false => Err(format!("`{text}` is neither an interface's address nor its name")),
        }
    }
}

impl TryFrom<String> for NetworkInterface {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<NetworkInterface> for String {
    fn from(interface: NetworkInterface) -> String {
        interface.to_string()
    }
}

/// Asks of a descriptor whether it can be read.
fn poll_fd(fd: BorrowedFd<'_>) -> PollFd<'static> {
    // SAFETY: `UdpSockets` alone calls this, for its sockets and its `end`, which are fields beside what asks; it closes them
    // only when it goes itself, and what asks goes with it and is never given away.
    let fd: BorrowedFd<'static> = unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) };
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}

/// Returns the number of the interface with this name.
fn index(name: &str) -> std::io::Result<u32> {
    let text = std::ffi::CString::new(name)?;
    // SAFETY: the text ends with a zero and outlives the call.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(std::io::Error::last_os_error()),
        index => Ok(index),
    }
}

fn invalid_input(reason: &'static str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidInput, reason)
}
