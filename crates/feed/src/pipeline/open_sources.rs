//! Notes on files that may still grow, for the next run: between two marks of progress the tape has no hash of them.
//!
//! ```text
//!   file  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■□□□□
//!                 │ last mark          │ what is noted here
//!   DIR/run/sources, two lines:
//!     {"format":1,"tape":…,"sources":[{"id":3,"feed":"log","file":"a.fix","bytes":1234,"hash":…}]}
//!     blake3 of the first line
//! ```
//!
//! The next run compares the file with the note before it reads further. So it finds a file that was replaced, and
//! the same file under another name. A kill leaves a note that is [`NOTE_EVERY_NS`] old, or newer. Notes describe
//! files and nothing of the tape. The next run drops the notes on a source that a repair cut off.

use crate::account::TapeAccount;
use crate::pipeline::feed_state::FeedState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The interval at which it is written while files are read, ns.
const NOTE_EVERY_NS: i64 = 100_000_000;

const NAME: &str = "run/sources";
const FORMAT: u32 = 1;
/// No file is longer: a hundred thousand sources.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Deserialize, Serialize)]
struct SourcesFile {
    format: u32,
    tape: String,
    sources: Vec<SourceFingerprint>,
}

/// The length of the part read of a source, and its hash.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct SourceFingerprint {
    id: u32,
    feed: String,
    file: String,
    /// Bytes, unpacked.
    bytes: u64,
    /// Their BLAKE3 in hex.
    hash: String,
}

/// The file of a tape that a run writes.
#[derive(Debug)]
pub struct SourceNotesWriter {
    notes_path: PathBuf,
    tape: String,
    fingerprints: BTreeMap<u32, SourceFingerprint>,
    /// The file does not say what `field_table` does.
    is_stale: bool,
    /// When it was written, on the intake's clock.
    written_ns: Option<i64>,
}

impl SourceNotesWriter {
    /// Loads the notes of an earlier run on the sources of the tape in `dir`; the account gets the parts beyond its
    /// marks. Also returns the error in the notes, if they cannot be used.
    pub fn load(dir: &Path, tape: &str, account: &mut TapeAccount) -> (Self, Option<String>) {
        let path = dir.join(NAME);
        let (notes, note_error) = match read_notes(&path, tape) {
            Ok(notes) => (notes, None),
            Err(reason) => {
                let message = format!(
                    "{}: {reason}; files that were open when the last run ended are compared up to their last mark of progress",
                    path.display()
                );
                (Vec::new(), Some(message))
            }
        };
        let mut fingerprints = BTreeMap::new();
        let count = notes.len();
        for note in notes {
            let is_meant = |s: &&mut crate::account::SourceAccount| {
                s.id == note.id && !s.end && (&s.feed, &s.file) == (&note.feed, &note.file)
            };
            let Some(source) = account.sources.iter_mut().find(is_meant) else { continue };
            if source.marked_content.as_ref().is_none_or(|(bytes, _)| *bytes < note.bytes) {
                source.marked_content = Some((note.bytes, note.hash.clone()));
                fingerprints.insert(note.id, note);
            }
        }
        // A note on a source that the tape lacks is removed, before a source gets its id.
        let is_stale = fingerprints.len() < count || note_error.is_some();
        (
            Self { notes_path: path, tape: tape.to_owned(), fingerprints, is_stale, written_ns: None },
            note_error,
        )
    }

    /// Returns whether the note is due because it was not written for a while.
    pub fn is_due(&self, now_ns: i64) -> bool {
        self.written_ns.is_none_or(|written| now_ns.saturating_sub(written) >= NOTE_EVERY_NS)
    }

    /// Notes how far the unfinished sources of these feeds were read.
    ///
    /// # Errors
    /// Fails if the disk refuses; what was noted before stays, and the next call writes again.
    pub fn write(&mut self, feeds: &[FeedState], now_ns: i64) -> std::io::Result<()> {
        self.written_ns = Some(now_ns);
        for source in feeds.iter().filter(|feed| feed.hashes).flat_map(|feed| &feed.sources) {
            if source.end {
                self.is_stale |= self.fingerprints.remove(&source.first_id).is_some();
                continue;
            }
            // One without an id is not on the tape yet.
            let Some(content) = source.content.as_ref().filter(|_| source.first_id != 0) else { continue };
            // The part that an earlier run read is read once more, from its last mark.
            if self.fingerprints.get(&source.first_id).is_none_or(|note| note.bytes < content.bytes()) {
                let (id, feed, file) = (source.first_id, source.feed.clone(), source.file.clone());
                let note = SourceFingerprint { id, feed, file, bytes: content.bytes(), hash: content.hex() };
                self.fingerprints.insert(id, note);
                self.is_stale = true;
            }
        }
        if !self.is_stale {
            return Ok(());
        }
        let sources = self.fingerprints.values().cloned().collect();
        let line = serde_json::to_string(&SourcesFile { format: FORMAT, tape: self.tape.clone(), sources })?;
        let sum = blake3::hash(line.as_bytes()).to_hex();
        let temp = self.notes_path.with_extension("new");
        std::fs::write(&temp, format!("{line}\n{sum}\n"))?;
        std::fs::rename(&temp, &self.notes_path)?;
        self.is_stale = false;
        Ok(())
    }
}

fn read_notes(path: &Path, tape: &str) -> Result<Vec<SourceFingerprint>, String> {
    let mut text = String::new();
    match std::fs::File::open(path).and_then(|f| f.take(BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e.to_string()),
    }
    let (line, sum) = text.split_once('\n').ok_or("it is cut short")?;
    if sum.trim_end() != blake3::hash(line.as_bytes()).to_hex().as_str() {
        return Err("its checksum does not match".to_owned());
    }
    let notes: SourcesFile = serde_json::from_str(line).map_err(|e| e.to_string())?;
    match notes {
        SourcesFile { format, .. } if format != FORMAT => {
            Err(format!("it is of format {format}, this build knows {FORMAT}"))
        }
        SourcesFile { tape: of, .. } if of != tape => Err(format!("it is of tape {of}")),
        notes => Ok(notes.sources),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a lost note: if the disk was full, the note must be written later, though nothing else was
    /// read.
    #[test]
    fn what_could_not_be_written_is_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(dir.path().join(NAME), "{}\n").unwrap();
        let (mut open, wrong) = SourceNotesWriter::load(dir.path(), "1", &mut TapeAccount::default());
        assert!(wrong.is_some_and(|message| message.contains("checksum")));
        std::fs::remove_dir_all(&run).unwrap();
        assert!(open.write(&[], 0).is_err());
        std::fs::create_dir(&run).unwrap();
        open.write(&[], 1).unwrap();
        assert_eq!(read_notes(&dir.path().join(NAME), "1").unwrap().len(), 0);
        assert!(read_notes(&dir.path().join(NAME), "2").is_err());
    }
}
