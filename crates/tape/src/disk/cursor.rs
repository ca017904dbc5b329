//! Named cursors: places on a tape that survive their readers.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use unitape_model::Position;

use crate::disk::layout::{FORMAT_VERSION, TapeId, TapeManifest, TapePaths, read_start, remove, sync_dir};
use crate::disk::lineage::{Lineage, LineagePoint, current_epoch};
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// A named place on a tape that survives its reader: `run/cursors/NAME`.
#[derive(Debug)]
pub struct Cursor {
    file: File,
    path: PathBuf,
    paths: TapePaths,
    tape: TapeId,
    /// Epoch of the tape when this cursor was opened.
    epoch: u64,
    /// The file has been flushed since it was made, and so has its name.
    is_there: bool,
}

const CURSOR_MAGIC: &[u8; 8] = b"UNITCURS";

/// Bytes of a cursor's file: one sector holds them, so they are written whole or not at all.
const CURSOR_BYTES: usize = 64;

/// Where a cursor says that it and its name have been flushed to the disk once.
const FLUSHED_AT: usize = 56;
const FLUSHED: [u8; 4] = [1, 0, 0, 0];

impl Cursor {
    /// Opens or makes the cursor `name` (letters, digits, `-` and `_`) of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the name is no cursor name, if there is no tape, or if the system refuses.
    pub fn open(dir: &Path, name: &str) -> Result<Self> {
        let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name_byte) {
            return Err(Error::Option("a cursor's name is 1 to 64 letters, digits, - or _"));
        }
        let tape = TapeManifest::load(dir)?.id;
        let folder = dir.join("run/cursors");
        sys::make_dir(&folder).with_context("make", &folder)?;
        let path = folder.join(name);
        let file = sys::open_or_make(&path).with_context("open", &path)?;
        let paths = TapePaths { tape_dir: dir.into() };
        let epoch = current_epoch(&paths, tape, StatePage::attach_reader(&paths)?.as_ref())?;
        let mut mark = [0; 4];
        let is_there = file.read_exact_at(&mut mark, FLUSHED_AT as u64).is_ok() && mark == FLUSHED;
        Ok(Self { file, path, paths, tape, epoch, is_there })
    }

    /// Returns the position where reading continues, or `None` for a new cursor. It is the stored position, or the
    /// start of a later cut if the tape was cut back before that position. [`Cursor::load_point`] returns the stored
    /// point itself.
    ///
    /// # Errors
    /// Fails if the file is no cursor, or belongs to another tape or version, or if the system refuses to read it.
    /// Delete the file to start over.
    pub fn load(&self) -> Result<Option<Position>> {
        let Some(point) = self.load_point()? else { return Ok(None) };
        let lineage = Lineage::load(&self.paths, self.tape)?;
        Ok(Some(lineage.map_or(point.position, |lineage| lineage.resume(point))))
    }

    /// Returns the stored position with the epoch in which it was read, or `None` for a new cursor.
    ///
    /// # Errors
    /// Fails as [`Cursor::load`] does.
    pub fn load_point(&self) -> Result<Option<LineagePoint>> {
        Ok(self.load_place()?.map(|(point, _)| point))
    }

    /// Returns the last stored point, with the number of events before it if the cursor recorded that number.
    pub(crate) fn load_place(&self) -> Result<Option<(LineagePoint, Option<u64>)>> {
        let text = read_start(&self.path, CURSOR_BYTES as u64 + 1).with_context("read", &self.path)?;
        if text.is_empty() {
            return Ok(None);
        }
        let word =
            |offset: usize| u64::from_le_bytes(text[offset..offset + 8].try_into().expect("eight bytes"));
        if text.len() != CURSOR_BYTES || text[..8] != *CURSOR_MAGIC {
            return Err(Error::damage(
                &self.path,
                0,
                "this is no cursor, or one of an older format; delete it",
            ));
        }
        if word(8) != FORMAT_VERSION {
            let path = self.path.clone();
            return Err(Error::ForeignVersion { path, version: word(8), supported_version: FORMAT_VERSION });
        }
        if text[60..] != crc32c::crc32c(&text[..60]).to_le_bytes() {
            return Err(Error::damage(&self.path, 60, "the cursor's checksum does not match; delete it"));
        }
        let tape_id = TapeId(u128::from_le_bytes(text[16..32].try_into().expect("sixteen bytes")));
        if tape_id != self.tape {
            return Err(Error::ForeignTape { path: self.path.clone(), tape_id, expected_id: self.tape });
        }
        let point = LineagePoint { epoch: word(48), position: Position(word(32)) };
        Ok(Some((point, word(40).checked_sub(1))))
    }

    /// Stores a position: the holder has processed everything before it. The position belongs to the epoch that the
    /// tape had when this cursor was opened.
    ///
    /// The first store of a name is flushed to the disk, with the name. A later one is a single system call: a power
    /// loss may bring an earlier place back, and never a later one.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn store(&mut self, position: Position) -> Result<()> {
        self.store_place(LineagePoint { epoch: self.epoch, position }, None)
    }

    /// Stores a place with the epoch in which it was read.
    ///
    /// # Errors
    /// Fails as [`Cursor::store`] does.
    pub fn store_point(&mut self, point: LineagePoint) -> Result<()> {
        self.store_place(point, None)
    }

    /// Stores a place with its epoch, and with the number of events before it where that is known.
    pub(crate) fn store_place(&mut self, point: LineagePoint, ordinal: Option<u64>) -> Result<()> {
        let mut text = [0; CURSOR_BYTES];
        text[..8].copy_from_slice(CURSOR_MAGIC);
        text[8..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        text[16..32].copy_from_slice(&self.tape.0.to_le_bytes());
        text[32..40].copy_from_slice(&point.position.0.to_le_bytes());
        text[40..48].copy_from_slice(&ordinal.map_or(0, |n| n.saturating_add(1)).to_le_bytes());
        text[48..56].copy_from_slice(&point.epoch.to_le_bytes());
        if self.is_there {
            return self.write_text(&mut text);
        }
        // A name that a power loss took away would begin at its start again, perhaps at the end of the tape.
        let stored_text = read_start(&self.path, CURSOR_BYTES as u64).with_context("read", &self.path)?;
        self.write_text(&mut text)?;
        let run = self.paths.run();
        let flushed = sys::sync_data(&self.file).with_context("flush", &self.path).and_then(|()| {
            [&run.join("cursors"), &run, &self.paths.tape_dir].iter().try_for_each(|folder| sync_dir(folder))
        });
        if flushed.is_err() {
            // A place that was not stored must not be found either. If this fails as well, the place comes again, which
            // does no harm.
            _ = sys::set_len(&self.file, 0).and_then(|()| sys::overwrite_at(&self.file, &stored_text, 0));
            return flushed;
        }
        self.is_there = true;
        // The mark alone: without it the next one flushes once more.
        let _ = self.write_text(&mut text);
        Ok(())
    }

    fn write_text(&self, text: &mut [u8; CURSOR_BYTES]) -> Result<()> {
        text[FLUSHED_AT..60].copy_from_slice(if self.is_there { &FLUSHED } else { &[0; 4] });
        let crc = crc32c::crc32c(&text[..60]);
        text[60..].copy_from_slice(&crc.to_le_bytes());
        sys::overwrite_at(&self.file, text, 0).with_context("write", &self.path)
    }

    /// Returns the sorted names of the cursors of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the system refuses to list the directory.
    pub fn names(dir: &Path) -> Result<Vec<String>> {
        let folder = dir.join("run/cursors");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).with_context("list", &folder),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.with_context("list", &folder)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Deletes the cursor.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn delete(self) -> Result<()> {
        remove(&self.path)
    }
}
