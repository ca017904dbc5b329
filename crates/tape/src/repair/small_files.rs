//! The small files under `run/`: the state page of a tape that was not closed, named cursors, what retention keeps in
//! mind, and where the hot segments are.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use unitape_model::LINE;

use crate::disk::cursor::Cursor;
use crate::disk::failure::FlushedFile;
use crate::disk::hot::{HotDirectoryLookup, find_hot_directory};
use crate::disk::hot_notice::HOT_WAYS;
use crate::disk::layout::{PLACE_MAX, TapeManifest, read_small, remove, write_whole};
use crate::disk::origin::OriginRecord;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::error::{Error, Result};
use crate::repair::RepairSession;

impl RepairSession<'_> {
    /// Checks all small files. A file that cannot be mended is moved away.
    pub(super) fn small_files(&mut self, meta: &TapeManifest) -> Result<()> {
        self.state_page()?;
        self.check_cursors()?;
        self.check_retention()?;
        self.origin()?;
        self.hot_name(meta)
    }

    fn state_page(&mut self) -> Result<()> {
        let path = self.paths.run().join(StatePage::NAME);
        let Ok(metadata) = std::fs::metadata(&path) else { return Ok(()) };
        let problem = match StatePage::attach_reader(self.paths)? {
            Some(state) => {
                let impossible =
                    |position: u64| !position.is_multiple_of(LINE as u64) || position > PLACE_MAX;
                // Relaxed: no process writes to it.
                let word = |word: &usize| impossible(state.word(*word).load(Ordering::Relaxed));
                match [0, 2, 4].into_iter().find(word).filter(|_| !self.has_rebooted) {
                    Some(word) => format!("word {word} is no position of a tape"),
                    None => return Ok(()),
                }
            }
            None if metadata.len() < StatePage::BYTES => "the page is cut short".to_owned(),
            None => return Ok(()),
        };
        let action = "a new one is made; the next writer compares and writes again all that is not durable";
        self.add_mended(&path, 0, problem, action);
        if self.options.apply {
            self.backup.keep_copy(&path)?;
            remove(&path)?;
            // It said whether a flush had failed.
            StatePage::open(self.paths)?.fail(libc::EIO, FlushedFile::Durable, false);
        }
        Ok(())
    }

    fn check_cursors(&mut self) -> Result<()> {
        for name in Cursor::names(&self.paths.tape_dir)? {
            let path = self.paths.run().join("cursors").join(&name);
            let (offset, problem) = match Cursor::open(&self.paths.tape_dir, &name).and_then(|c| c.load()) {
                Ok(_) => continue,
                Err(Error::Damage { offset, reason, .. }) => (offset, reason),
                Err(e @ (Error::ForeignTape { .. } | Error::ForeignVersion { .. })) => (0, e.to_string()),
                // Not a cursor's name, or one that may not be opened: nothing of ours.
                Err(_) => continue,
            };
            let action = "moved away: its place is lost, and its reader begins where it is opened";
            self.move_away(&path, offset, &problem, action)?;
        }
        Ok(())
    }

    fn check_retention(&mut self) -> Result<()> {
        let path = self.paths.retention();
        let Ok(bytes) = read_small(&path) else { return Ok(()) };
        if std::str::from_utf8(&bytes).is_ok_and(|text| text.lines().all(|line| line.contains(' '))) {
            return Ok(());
        }
        let action = "moved away: the next recorder announces again, and learns the clock from the tape";
        self.move_away(&path, 0, "it is not lines of names and values", action)
    }

    /// Repairs the record of the tape's origin. The tape itself shows where it begins.
    fn origin(&mut self) -> Result<()> {
        let Err(Error::Damage { path, offset, reason }) = OriginRecord::load(self.paths) else {
            return Ok(());
        };
        let action = "moved away: the next opening at an origin compares it with the oldest position";
        self.move_away(&path, offset, &reason, action)
    }

    /// Repairs the file that names the hot directory. Without that file the next writer would not find the data that
    /// only the hot segments have.
    fn hot_name(&mut self, meta: &TapeManifest) -> Result<()> {
        let path = self.paths.hot();
        if !self.has_rebooted
            && let Ok(HotDirectoryLookup::Other { notice, .. }) = find_hot_directory(self.paths, meta.id)
        {
            // A copy misses nothing, nor does a tape that names another's directory.
            if notice.may_miss_part() {
                self.add_unmended(&path, 0, notice.fault(), HOT_WAYS);
            }
            return Ok(());
        }
        let Ok(bytes) = read_small(&path) else { return Ok(()) };
        if self.has_rebooted
            || SegmentLocator::from_manifest(self.paths.clone(), *meta).hot_place()?.is_some()
        {
            return Ok(());
        }
        let sound = |bytes: Vec<u8>| {
            String::from_utf8(bytes).ok().filter(|t| t.starts_with('/') && t.ends_with('\n'))
        };
        if let Some(text) = sound(bytes) {
            let problem = format!("the directory {} that it names is not there", text.trim_end());
            let action =
                "data that were only in shared memory are lost; the next writer resumes from the disk";
            if !self.was_closed {
                self.add_unmended(&path, 0, problem, action);
            }
            return Ok(());
        }
        let usual = default_hot(&self.paths.tape_dir, meta);
        match usual.filter(|dir| dir.is_dir()) {
            Some(dir) => {
                let action = format!("made again: {}", dir.display());
                self.add_mended(&path, 0, "it names no directory", action);
                if self.options.apply {
                    self.backup.keep_copy(&path)?;
                    write_whole(&path, format!("{}\n", dir.display()).as_bytes())?;
                }
            }
            None => self.add_unmended(
                &path,
                0,
                "it names no directory",
                "write the directory of the hot segments into it, or remove it: what only they have is then lost",
            ),
        }
        Ok(())
    }

    fn move_away(&mut self, path: &Path, offset: u64, problem: &str, action: &str) -> Result<()> {
        self.add_mended(path, offset, problem, action);
        if self.options.apply {
            self.backup.move_away(path)?;
        }
        Ok(())
    }
}

/// Returns the default hot directory of a tape.
pub(crate) fn default_hot(dir: &Path, meta: &TapeManifest) -> Option<PathBuf> {
    let full = std::fs::canonicalize(dir).ok()?;
    let name = full.as_os_str().as_encoded_bytes();
    Some(Path::new("/dev/shm").join(format!("unitape-{}-{:08x}", meta.id, crc32c::crc32c(name))))
}
