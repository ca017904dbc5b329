//! A word that a forked child finds cleared, so that a writer notices that it belongs to another process.
//!
//! A forked child has a copy of the writer: the same open files with their locks, the same shared memory, and none of
//! the helper threads. Its parent would write over the frames that it appends. Asking for the process id costs a
//! system call, so the writer looks at a word instead that it looks at anyway. The kernel clears the word's page in
//! the child (`MADV_WIPEONFORK`). Where the kernel knows no such pages, only closing and dropping notice.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The word of a writer: 0 in a forked child, otherwise the value that the writer stores.
#[derive(Debug)]
pub(crate) struct ForkDetector {
    fork_word: &'static AtomicU64,
    pid: u32,
}

/// The writer can continue.
pub(crate) const WELL: u64 = 1;
/// An error waits for the writer's next call.
pub(crate) const TROUBLED: u64 = 2;

/// Words that no writer has; as many as there were writers at once.
static FREE: Mutex<Vec<&'static AtomicU64>> = Mutex::new(Vec::new());

impl Default for ForkDetector {
    fn default() -> Self {
        // Not waited for: a child that was forked while it was locked finds it locked for ever.
        let free = FREE.try_lock().and_then(|mut free| free.pop());
        let word = free.unwrap_or_else(make_fork_word);
        // Relaxed: no other thread has it yet.
        word.store(WELL, Ordering::Relaxed);
        Self { fork_word: word, pid: std::process::id() }
    }
}

impl ForkDetector {
    /// Returns the word, for callers that read it often. It is valid only while this value lives.
    pub fn fork_word(&self) -> &'static AtomicU64 {
        self.fork_word
    }

    /// Returns whether this process opened the writer. Reads the word and makes no system call.
    #[inline]
    pub fn is_ours(&self) -> bool {
        // Relaxed: the kernel cleared it before the child ran.
        self.fork_word.load(Ordering::Relaxed) != 0
    }

    /// Asks the system whether this process opened the writer; an error if not.
    pub fn check_process(&self) -> Result<()> {
        if self.pid == std::process::id() { Ok(()) } else { Err(Error::Forked { opened_by: self.pid }) }
    }
}

impl Drop for ForkDetector {
    fn drop(&mut self) {
        // A child leaves it: it may not wait for the lock, and the page is small.
        if self.check_process().is_ok() {
            FREE.lock().push(self.fork_word);
        }
    }
}

/// Makes a word in its own page that a forked child sees cleared, or an ordinary word if the system cannot do that.
fn make_fork_word() -> &'static AtomicU64 {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
        // SAFETY: a mapping of its own, of which nobody else knows: private and without a file, as the advice needs.
        // A page that takes the advice is never unmapped, so the word lives as long as the process; its 4096 bytes
        // are zero, aligned, and accessed as that atomic alone.
        unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            if let Ok(page) = mmap_anonymous(std::ptr::null_mut(), PAGE, flags, MapFlags::PRIVATE) {
                if madvise(page, PAGE, Advice::LinuxWipeOnFork).is_ok() {
                    return AtomicU64::from_ptr(page.cast());
                }
                let _ = munmap(page, PAGE);
            }
        }
    }
    Box::leak(Box::new(AtomicU64::new(0)))
}

#[cfg(target_os = "linux")]
const PAGE: usize = 4096;
