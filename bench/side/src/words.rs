//! A page of words in shared memory, in which the two processes show each other how far they are.

use memmap2::MmapRaw;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words, each with two cache lines of its own.
///
/// 0: how far the second process is in its beginnings; 1: messages that it has read; 2 and 3: the raw control.
#[derive(Debug)]
pub struct Words(MmapRaw);

const PAGE: u64 = 4096;
const APART: usize = 16;
const WORDS: usize = PAGE as usize / 8 / APART;

impl Words {
    /// Makes the page in a directory.
    pub fn make(dir: &Path) -> Result<(), String> {
        let path = dir.join("words");
        std::fs::write(&path, [0; PAGE as usize]).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Opens the page in a directory.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let path = dir.join("words");
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).map_err(fail)?;
        if file.metadata().map_err(fail)?.len() < PAGE {
            return Err(format!("{}: shorter than a page", path.display()));
        }
        Ok(Self(MmapRaw::map_raw(&file).map_err(fail)?))
    }

    /// Everything that the other process did before it set the word has been done.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        // Acquire: pairs with the Release in `set`, in the other process.
        self.word(index).load(Ordering::Acquire)
    }

    /// Sets a word that only this process sets.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        // Release: pairs with the Acquire in `get`, in the other process.
        self.word(index).store(value, Ordering::Release);
    }

    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < WORDS);
        // SAFETY: the mapping has a page at least (`open`), the index lies in it (checked), it is aligned because
        // a page is, and both processes use atomics only.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index * APART)) }
    }
}
