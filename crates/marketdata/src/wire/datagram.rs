//! Datagrams: many with one system call, with the kernel's receive times and its count of drops.

use socket2::Socket;
use std::net::{SocketAddr, UdpSocket};
use unitape_model::UnixNanos;

/// Buffers for the datagrams of a system call, reused for the next one; see [`UdpSockets`](super::sockets::UdpSockets).
pub struct DatagramBatch(system::RecvmmsgBatch);

impl DatagramBatch {
    /// Datagrams of one call, at most.
    pub const MOST: usize = system::BATCH;

    /// Makes an empty batch with its buffers.
    #[must_use]
    pub fn new() -> Self {
        Self(system::RecvmmsgBatch::new())
    }

    /// Receives the datagrams that have arrived, up to a batch. Returns how many.
    ///
    /// # Errors
    /// Fails if the system refuses.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket) -> std::io::Result<usize> {
        self.0.receive(socket)
    }

    /// Returns datagram `i`: its sender, payload, receive time in the kernel, and the kernel's count of drops for this
    /// socket so far.
    #[inline]
    pub fn get(&self, i: usize) -> (SocketAddr, &[u8], Option<UnixNanos>, Option<u32>) {
        self.0.get(i)
    }
}

impl Default for DatagramBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for DatagramBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Batch")
    }
}

/// Asks for receive times, and for the counter of drops.
///
/// # Errors
/// Fails if the system refuses.
pub fn ask_for_times(socket: &Socket) -> std::io::Result<()> {
    system::ask_for_times(socket)
}

/// Asks the kernel how many datagrams it has dropped for this socket so far. Returns `None` if the system tells only
/// with a datagram.
pub fn dropped(socket: &UdpSocket) -> Option<u32> {
    system::dropped(socket)
}

/// The system's own parts: many datagrams with one call, the kernel's receive times, its counter of drops.
#[cfg(target_os = "linux")]
mod system {
    use std::io::ErrorKind;
    use std::mem::{size_of, zeroed};
    use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
    use std::os::fd::{AsRawFd, RawFd};
    use unitape_model::UnixNanos;

    /// Datagrams of one call.
    pub const BATCH: usize = 32;
    /// Room for one datagram, bytes: more than the longest.
    const ROOM: usize = 1 << 16;
    /// Space for the kernel's control messages of a datagram, in words, for alignment.
    const SAID: usize = 16;

    pub fn ask_for_times(socket: &impl AsRawFd) -> std::io::Result<()> {
        for option in [libc::SO_TIMESTAMPNS, libc::SO_RXQ_OVFL] {
            let on: libc::c_int = 1;
            // SAFETY: the value is a c_int that outlives the call, and its size is given.
            let status = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const on).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
            if status != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    }

    pub fn dropped(socket: &UdpSocket) -> Option<u32> {
        const DROPS: usize = 8; // SK_MEMINFO_DROPS
        let mut memory_info = [0u32; DROPS + 1];
        let mut length = size_of_val(&memory_info) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which are those of the array, and says how many.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                memory_info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        (status == 0 && length as usize == size_of_val(&memory_info)).then_some(memory_info[DROPS])
    }

    /// Room for the datagrams of one call, used again for the next.
    pub struct RecvmmsgBatch {
        rooms: Vec<u8>,
        names: Vec<libc::sockaddr_storage>,
        control_buffers: Vec<[u64; SAID]>,
        parts: Vec<libc::iovec>,
        heads: Vec<libc::mmsghdr>,
    }

    impl RecvmmsgBatch {
        pub fn new() -> Self {
            // SAFETY: all of these are plain C structures, for which all zeros is a value.
            let (name, part, head) = unsafe { (zeroed(), zeroed(), zeroed()) };
            Self {
                rooms: vec![0; BATCH * ROOM],
                names: vec![name; BATCH],
                control_buffers: vec![[0; SAID]; BATCH],
                parts: vec![part; BATCH],
                heads: vec![head; BATCH],
            }
        }

        /// Receives the datagrams that have arrived, up to a batch. Returns how many.
        pub fn receive(&mut self, socket: &UdpSocket) -> std::io::Result<usize> {
            for i in 0..BATCH {
                let room = &mut self.rooms[i * ROOM..(i + 1) * ROOM];
                self.parts[i] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: ROOM };
                let head = &mut self.heads[i].msg_hdr;
                head.msg_name = (&raw mut self.names[i]).cast();
                head.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
                head.msg_iov = &raw mut self.parts[i];
                head.msg_iovlen = 1;
                head.msg_control = self.control_buffers[i].as_mut_ptr().cast();
                head.msg_controllen = (SAID * 8) as _;
                head.msg_flags = 0;
            }
            let fd: RawFd = socket.as_raw_fd();
            // SAFETY: each head points to a name, a part and a control buffer of the stated sizes; they live in
            // vectors of `self` that are not touched before the call returns.
            let n = unsafe {
                libc::recvmmsg(
                    fd,
                    self.heads.as_mut_ptr(),
                    BATCH as u32,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            };
            if n >= 0 {
                return Ok(n as usize);
            }
            let error = std::io::Error::last_os_error();
            match error.kind() {
                // A refusal of an earlier send comes back on the socket of a receiver too; it is not about us.
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused => Ok(0),
                _ => Err(error),
            }
        }

        /// Returns datagram `i`: its sender, payload, receive time, and the kernel's count of drops.
        pub fn get(&self, i: usize) -> (SocketAddr, &[u8], Option<UnixNanos>, Option<u32>) {
            let head = &self.heads[i];
            let payload = &self.rooms[i * ROOM..i * ROOM + (head.msg_len as usize).min(ROOM)];
            let (mut ts_recv, mut drops) = (None, None);
            // SAFETY: the kernel has filled `msg_control` up to `msg_controllen` with whole control messages, and
            // the buffer is aligned for their headers.
            let mut control_message = unsafe { libc::CMSG_FIRSTHDR(&head.msg_hdr) };
            while !control_message.is_null() {
                // SAFETY: not null, so a header lies wholly in the buffer; what follows it is as long as it says,
                // and is read without asking for alignment.
                unsafe {
                    let data = libc::CMSG_DATA(control_message);
                    match ((*control_message).cmsg_level, (*control_message).cmsg_type) {
                        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                            let ts: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                            let ns = ts.tv_sec as i64 * 1_000_000_000 + ts.tv_nsec as i64;
                            ts_recv = Some(UnixNanos(ns));
                        }
                        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                            drops = Some(data.cast::<u32>().read_unaligned());
                        }
                        _ => {}
                    }
                    control_message = libc::CMSG_NXTHDR(&head.msg_hdr, control_message);
                }
            }
            (address(&self.names[i]), payload, ts_recv, drops)
        }
    }

    fn address(name: &libc::sockaddr_storage) -> SocketAddr {
        match libc::c_int::from(name.ss_family) {
            libc::AF_INET6 => {
                // SAFETY: the family says which structure it is, and the storage is large enough for each.
                let v6 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
                (Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port)).into()
            }
            _ => {
                // SAFETY: as above; a name that the kernel left out is zeros, which is an address too.
                let v4 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
                (v4.sin_addr.s_addr.to_ne_bytes(), u16::from_be(v4.sin_port)).into()
            }
        }
    }

    // SAFETY: the pointers in `parts` and `heads` are set again before each call and point into the same `Batch`.
    unsafe impl Send for RecvmmsgBatch {}
}

/// The portable twin: one datagram a call, our own clock, no counter of drops.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::io::ErrorKind;
    use std::net::{SocketAddr, UdpSocket};
    use unitape_model::UnixNanos;

    pub const BATCH: usize = 1;

    pub fn ask_for_times<T>(_: &T) -> std::io::Result<()> {
        Ok(())
    }

    pub fn dropped(_: &UdpSocket) -> Option<u32> {
        None
    }

    pub struct Batch {
        room: Vec<u8>,
        got: Option<(SocketAddr, usize)>,
    }

    impl RecvmmsgBatch {
        pub fn new() -> Self {
            Self { room: vec![0; 1 << 16], got: None }
        }

        pub fn receive(&mut self, socket: &UdpSocket) -> std::io::Result<usize> {
            match socket.recv_from(&mut self.room) {
                Ok((n, from)) => {
                    self.got = Some((from, n));
                    Ok(1)
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
                Err(e) => Err(e),
            }
        }

        pub fn get(&self, _: usize) -> (SocketAddr, &[u8], Option<UnixNanos>, Option<u32>) {
            let (from, n) = self.got.expect("one was received");
            (from, &self.room[..n], None, None)
        }
    }
}
