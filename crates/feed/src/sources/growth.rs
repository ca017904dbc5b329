//! Growth of files and new ones, as the kernel reports them: a run that waits for it costs nothing meanwhile.
//!
//! ```text
//!  a writer ──▶ kernel ──▶ this thread ──▶ the feed is marked, the intake wakes
//! ```
//!
//! A directory that cannot be watched is looked at every `idle`. The kernel reports nothing of what another host writes, of
//! what is written through a mapping, and of files that a link in the directory names: the intake sees them when it looks
//! at the directory.

use crate::sources::receive::HaltSignal;
use crate::sources::stats::RunMonitor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Directories of feeds that are watched.
#[derive(Debug)]
pub struct DirectoryWatcher {
    inotify_fd: OwnedFd,
    /// The feeds by number of their watch; two may have one directory.
    feeds: Vec<(i32, usize)>,
    stats: Arc<RunMonitor>,
}

impl DirectoryWatcher {
    /// Watches the directories of these feeds as far as the system lets it; `None` where it does not.
    pub fn new<'a>(dirs: impl Iterator<Item = (usize, &'a Path)>, stats: Arc<RunMonitor>) -> Option<Self> {
        let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let mut feeds = Vec::new();
        for (feed, dir) in dirs {
            if let Ok(watch) = inotify::add_watch(
                &kernel,
                dir,
                WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO,
            ) {
                feeds.push((watch, feed));
                stats.feeds[feed].watched.store(true, Ordering::Relaxed);
            }
        }
        (!feeds.is_empty()).then_some(Self { inotify_fd: kernel, feeds, stats })
    }

    /// Reports growth until `halt`. A file that keeps growing is reported every `idle`.
    pub fn report(self, halt: &HaltSignal, idle: Duration) {
        let mut buf = [MaybeUninit::uninit(); EVENTS_BYTES];
        loop {
            let mut fds = [PollFd::new(&self.inotify_fd, PollFlags::IN), PollFd::new(halt, PollFlags::IN)];
            let waited = poll(&mut fds, None);
            if !fds[1].revents().is_empty() {
                return;
            }
            if waited.is_err() {
                continue;
            }
            let mut reader = inotify::Reader::new(&self.inotify_fd, &mut buf);
            loop {
                match reader.next() {
                    Ok(event) => self.note_watch(event.wd(), event.events()),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => break,
                }
            }
            self.stats.wake.notify();
            let pause = Timespec {
                tv_sec: idle.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: idle.subsec_nanos().into(),
            };
            _ = poll(&mut [PollFd::new(halt, PollFlags::IN)], Some(&pause));
        }
    }

    fn note_watch(&self, watch: i32, flags: ReadFlags) {
        // More has come than the kernel keeps: anything may have grown.
        let any = flags.contains(ReadFlags::QUEUE_OVERFLOW);
        for (_, feed) in self.feeds.iter().filter(|(w, _)| any || *w == watch) {
            let stats = &self.stats.feeds[*feed];
            if flags.contains(ReadFlags::IGNORED) {
                // The directory is gone, and another one of its name is not watched.
                stats.watched.store(false, Ordering::Relaxed);
            }
            // Release: pairs with the Acquire of the intake, which reads the file after it.
            stats.came.store(true, Ordering::Release);
        }
    }
}

/// Room for events, of up to 272 bytes each.
const EVENTS_BYTES: usize = 8 << 10;
