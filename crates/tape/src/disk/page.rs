//! The words of the state page that are about the tape's end and what is kept of it.
//!
//! ```text
//!  word   0 recorded │ 1 bytes kept │ 4 end │ 5 its ordinal │ 6 oldest │ 7 announced
//!         9 age kept │ 10 days kept │ 11 notice │ 12 held for cursors │ 16 epoch │ 17, 18, 19 whose page it is
//! ```
//!
//! Each is a number of its own. The limits are those of the writer, for whoever records the tape.

use std::fs::File;
use std::sync::atomic::Ordering;
use std::time::Duration;

use memmap2::MmapOptions;

use crate::disk::identity::TapeIdentity;
use crate::disk::layout::Paths;
use crate::disk::run::{FAILED, FAILED_FILE, FAILURES, State};
use crate::error::{At, Result};
use crate::keep::retention::Retention;

const BYTES: usize = 1;
const END: usize = 4;
const ORDINAL: usize = 5;
const OLDEST: usize = 6;
const ANNOUNCED: usize = 7;
const AGE_NS: usize = 9;
const DAYS: usize = 10;
const NOTICE_NS: usize = 11;
const HOLD: usize = 12;
/// Identity of the tape's directory, three words; zero in a page of an earlier version.
const HOME: usize = 17;

impl State {
    /// The page as a reader maps it; none where there is none that is used.
    pub fn look(paths: &Paths) -> Option<Self> {
        let file = File::open(paths.run().join(Self::NAME)).ok()?;
        // What is mapped and not in the file is a signal; it is written whole before anything is in it.
        if file.metadata().ok()?.len() < Self::BYTES {
            return None;
        }
        let map = MmapOptions::new().len(Self::BYTES as usize).map_raw_read_only(&file).ok()?;
        Some(Self { map, writable: false }).filter(|page| !page.is_retired() && page.is_of(paths))
    }

    /// Whether the page is of the tape in `paths.dir`, and not copied with its directory from another one.
    pub fn is_of(&self, paths: &Paths) -> bool {
        let home = self.home();
        home == [0; 3] || TapeIdentity(home).is_at(&paths.dir)
    }

    fn home(&self) -> [u64; 3] {
        // Relaxed: set once, before anybody looks; who sees a part takes the page for another tape's and looks again.
        std::array::from_fn(|i| self.word(HOME + i).load(Ordering::Relaxed))
    }

    /// Makes the page this tape's. One that was copied from another tape is cleared before; `file` is the page's.
    pub fn bind(&self, file: &File, paths: &Paths) -> Result<()> {
        let TapeIdentity(home) = TapeIdentity::of(&paths.dir).at("look at", &paths.dir)?;
        if self.home() == home {
            return Ok(());
        }
        // The writer and a recorder may come at the same time. It fails where there are no locks.
        let _ = file.lock();
        let now = self.home();
        if now != home {
            if now != [0; 3] {
                self.renounce();
            }
            for (i, word) in home.into_iter().enumerate() {
                self.word(HOME + i).store(word, Ordering::Relaxed);
            }
        }
        let _ = file.unlock();
        Ok(())
    }

    /// Forgets what the page says of another tape: all but that a flush has failed, for the files were copied with it.
    pub fn renounce(&self) {
        for index in (0..HOME).filter(|index| ![FAILED, FAILED_FILE, FAILURES].contains(index)) {
            self.word(index).store(0, Ordering::Relaxed);
        }
    }

    /// What the writer wants kept, for whoever records the tape.
    pub fn retention(&self) -> Retention {
        let word = |index| Some(self.word(index).load(Ordering::Relaxed)).filter(|&n| n > 0);
        Retention {
            bytes: word(BYTES),
            age: word(AGE_NS).map(Duration::from_nanos),
            days: word(DAYS).and_then(|n| n.try_into().ok()),
            notice: Duration::from_nanos(word(NOTICE_NS).unwrap_or(0)),
            hold_for_cursors: word(HOLD),
        }
    }

    /// Sets what is to be kept. Nothing is zero, and zero is one.
    pub fn set_retention(&self, limits: &Retention) {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let words = [
            (BYTES, limits.bytes.map_or(0, |n| n.max(1))),
            (AGE_NS, limits.age.map_or(0, |age| ns(age).max(1))),
            (DAYS, limits.days.map_or(0, u64::from)),
            (NOTICE_NS, ns(limits.notice)),
            (HOLD, limits.hold_for_cursors.map_or(0, |n| n.max(1))),
        ];
        for (index, value) in words {
            self.word(index).store(value, Ordering::Relaxed);
        }
    }

    /// The tape's end and its ordinal as published last.
    pub fn end(&self) -> (u64, u64) {
        // Acquire: pairs with the Release in `set_end`; the ordinal is of that end or a later one.
        let end = self.word(END).load(Ordering::Acquire);
        (end, self.word(ORDINAL).load(Ordering::Relaxed))
    }

    pub fn set_end(&self, end: u64, ordinal: u64) {
        self.word(ORDINAL).store(ordinal, Ordering::Relaxed);
        // Release: pairs with the Acquire in `end`.
        self.word(END).store(end, Ordering::Release);
    }

    /// Everything before this position is gone, or will be soon.
    #[inline]
    pub fn announced(&self) -> u64 {
        self.word(ANNOUNCED).load(Ordering::Relaxed)
    }

    /// Says what the oldest position is, and up to where removal is announced.
    pub fn announce(&self, oldest: u64, announced: u64) {
        self.word(OLDEST).store(oldest, Ordering::Relaxed);
        self.word(ANNOUNCED).store(announced, Ordering::Relaxed);
    }
}
