//! How a receiver waits: in the kernel, until something comes or the run stops; or busily, where that is asked for.

use super::ReceiverContext;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ends the waits of all receivers of a run: its one end can be read once it is raised.
#[derive(Debug)]
pub struct HaltSignal {
    halt_fd: Arc<OwnedFd>,
    write: OwnedFd,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitReadiness {
    /// The first descriptor is ready.
    pub is_first_ready: bool,
    /// The second descriptor is ready.
    pub is_second_ready: bool,
}

impl HaltSignal {
    /// Makes a signal that is not raised.
    ///
    /// # Errors
    /// Fails if the system has no descriptors for it.
    pub fn new() -> std::io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Self { halt_fd: Arc::new(read), write })
    }

    /// Returns the descriptor that becomes readable when the signal is raised.
    pub fn wait_fd(&self) -> Arc<OwnedFd> {
        self.halt_fd.clone()
    }

    /// Ends all waits, now and later.
    pub fn raise(&self) {
        // A pipe has room for the few bytes that are ever written, and nobody reads them.
        _ = rustix::io::write(&self.write, b"!");
    }
}

impl AsFd for HaltSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.halt_fd.as_fd()
    }
}

impl ReceiverContext {
    /// Waits until `fd` or `beside` can be read, the run stops, or `most` is over.
    pub fn wait(
        &self,
        fd: &impl AsFd,
        second_fd: Option<BorrowedFd<'_>>,
        most: Option<Duration>,
    ) -> WaitReadiness {
        let second = second_fd.unwrap_or(self.halt.as_fd());
        let mut fds = [
            PollFd::new(fd, PollFlags::IN),
            PollFd::from_borrowed_fd(self.halt.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(second, PollFlags::IN),
        ];
        match self.poll(&mut fds, most) {
            true => WaitReadiness {
                is_first_ready: !fds[0].revents().is_empty(),
                is_second_ready: second_fd.is_some() && !fds[2].revents().is_empty(),
            },
            false => WaitReadiness::default(),
        }
    }

    /// Waits until one of `fds` is ready or `most` is over; returns whether one is ready. A busy receiver polls again
    /// and again.
    pub fn poll(&self, fds: &mut [PollFd<'_>], most: Option<Duration>) -> bool {
        let since = Instant::now();
        loop {
            let timeout = if self.spin { Some(Duration::ZERO) } else { most };
            let timeout = timeout.map(|most| Timespec {
                tv_sec: most.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: most.subsec_nanos().into(),
            });
            match poll(fds, timeout.as_ref()) {
                Ok(0)
                    if self.spin && !self.is_stopped() && most.is_none_or(|most| since.elapsed() < most) =>
                {
                    std::hint::spin_loop();
                }
                Ok(n) => return n > 0,
                // An interruption is looked at by the caller.
                Err(_) => return false,
            }
        }
    }

    /// Sleeps, until the run stops at the latest.
    pub fn sleep(&self, duration: Duration) {
        let since = Instant::now();
        while let Some(time_left) = duration.checked_sub(since.elapsed())
            && !time_left.is_zero()
            && !self.is_stopped()
        {
            let timeout = Timespec {
                tv_sec: time_left.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: time_left.subsec_nanos().into(),
            };
            _ = poll(&mut [PollFd::new(&*self.halt, PollFlags::IN)], Some(&timeout));
        }
    }
}
