//! Sources that come while a feed runs: the files of a directory, by name.

use crate::error::Error;
use crate::sources::journal::CLOSED;
use crate::sources::known_content::{self, KnownContent, SourceName};
use crate::sources::source::{PendingSource, SourceFacts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The next source of a directory.
#[derive(Debug)]
pub enum NextFolderSource {
    /// A source: an unfinished one that the tape knows, or a new one with its facts.
    Source(PendingSource, Option<Box<SourceFacts>>),
    /// Nothing now.
    Nothing,
    /// Nothing any more.
    End,
}

/// A directory whose files are sources, in the order of their names.
///
/// A file ends when one of a greater name is there and its own end has been reached after that was seen. Hidden
/// files, `*.tmp` and `*.part` are not looked at, so a file can be written under such a name and then renamed.
#[derive(Debug)]
pub struct SourceFolder {
    feed: String,
    source_dir: PathBuf,
    kind: FolderKind,
    /// Sources that the tape knows and that have not ended.
    resume: VecDeque<PendingSource>,
    known_names: BTreeSet<String>,
    contents: Vec<KnownContent>,
    /// Files begun in this run, by the hash of their first bytes, so that no content is read under two names; `None`
    /// if that is allowed.
    files_by_hash: Option<BTreeMap<[u8; 32], Vec<PathBuf>>>,
    ready_names: BTreeSet<String>,
    /// Files read to their end lately, with their lengths: they must not grow any more.
    ended_files: VecDeque<(PathBuf, u64)>,
    scan_interval: Duration,
    last_look: Option<Instant>,
    next_index: usize,
    is_closed: bool,
    /// The greatest name that was given.
    greatest: String,
    /// Names that came after a greater one, to be reported.
    overtaken_names: Vec<String>,
}

/// The tape's knowledge of a directory.
#[derive(Debug, Default)]
pub struct KnownFolder {
    /// Its sources, in the order of the tape.
    pub files: Vec<KnownFile>,
    /// The contents of all sources of the tape.
    pub contents: Vec<KnownContent>,
    /// A file may be read although another source has the same content.
    pub allows_same_content: bool,
}

/// A source of the tape.
#[derive(Debug)]
pub struct KnownFile {
    /// The point at which reading continues.
    pub pending: PendingSource,
    /// Nothing of it is to be read any more.
    pub is_done: bool,
    /// Another file has its name now.
    pub is_fresh: bool,
}

/// The kind of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    /// Files that others write; with `follow`, more may appear.
    #[allow(missing_docs)]
    Files { follow: bool },
    /// A journal of streams.
    Streams,
    /// A journal of datagrams.
    Packets,
}

/// Files whose first bytes differ do not hold the same.
const FIRST_BYTES: u64 = 4096;

/// Ended files that are watched for growth.
const WATCHED_MAX: usize = 64;

/// Names that one look at a directory takes in, at most; the least ones, so that their order is kept.
const NAMES_MAX: usize = 100_000;

impl SourceFolder {
    /// Makes the folder of `feed` in `dir`; `folder` states which files the tape knows.
    pub fn new(
        feed: String,
        dir: PathBuf,
        kind: FolderKind,
        folder: KnownFolder,
        scan_interval: Duration,
    ) -> Self {
        let name = |p: &PendingSource| p.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known_names: BTreeSet<_> =
            folder.files.iter().filter(|f| !f.is_fresh).map(|f| name(&f.pending)).collect();
        let greatest = known_names.iter().max().cloned().unwrap_or_default();
        let next_index = folder.files.len();
        let resume = folder.files.into_iter().filter(|f| !f.is_done).map(|f| f.pending).collect();
        Self {
            feed,
            source_dir: dir,
            kind,
            resume,
            known_names,
            contents: folder.contents,
            files_by_hash: (matches!(kind, FolderKind::Files { .. }) && !folder.allows_same_content)
                .then(BTreeMap::new),
            ready_names: BTreeSet::new(),
            ended_files: VecDeque::new(),
            scan_interval,
            last_look: None,
            next_index,
            is_closed: false,
            greatest,
            overtaken_names: Vec::new(),
        }
    }

    /// Takes the names that appeared after a greater name had begun. They must wait for the next run.
    pub fn take_overtaken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.overtaken_names)
    }

    /// Makes the next call scan the directory, even if the last scan is recent.
    pub fn look_again(&mut self) {
        self.last_look = None;
    }

    /// Returns the next source.
    ///
    /// # Errors
    /// Fails if the directory cannot be read, or a file that was read to its end has grown.
    pub fn next(&mut self) -> Result<NextFolderSource, Error> {
        if let Some(pending) = self.resume.pop_front() {
            return Ok(NextFolderSource::Source(pending, None));
        }
        if self.ready_names.is_empty() {
            self.scan_names()?;
        }
        let Some(name) = self.ready_names.pop_first() else {
            let has_more = match self.kind {
                FolderKind::Files { follow } => follow,
                FolderKind::Streams | FolderKind::Packets => !self.is_closed,
            };
            return Ok(if has_more { NextFolderSource::Nothing } else { NextFolderSource::End });
        };
        let pending = PendingSource {
            index: self.next_index,
            path: self.source_dir.join(&name),
            ..PendingSource::default()
        };
        self.refuse_twice(&pending.path, &name)?;
        self.next_index += 1;
        self.known_names.insert(name.clone());
        if name > self.greatest {
            self.greatest.clone_from(&name);
        }
        Ok(NextFolderSource::Source(
            pending,
            Some(Box::new(SourceFacts { file: name, size: None, hash: None })),
        ))
    }

    /// Fails if the file begins with the whole content of another file. An empty file has no content.
    fn refuse_twice(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        let Some(files_by_hash) = &mut self.files_by_hash else { return Ok(()) };
        for content in &self.contents {
            if content.is_in(path).map_err(fail)? {
                return Err(content.error(&self.feed, name));
            }
        }
        let head_bytes = crate::sources::open::first_bytes(path, FIRST_BYTES).map_err(fail)?;
        if head_bytes.is_empty() {
            return Ok(());
        }
        let same_start = files_by_hash.entry(*blake3::hash(&head_bytes).as_bytes()).or_default();
        for other_path in same_start.iter() {
            // A file that was removed meanwhile cannot be compared.
            if other_path.exists() && known_content::begins_with(path, other_path).map_err(fail)? {
                let other_name = other_path.file_name().unwrap_or_default().to_string_lossy();
                let feed = &self.feed;
                return Err(known_content::same_content(
                    SourceName { feed, file: name },
                    SourceName { feed, file: &other_name },
                ));
            }
        }
        same_start.push(path.to_owned());
        Ok(())
    }

    /// Returns whether other files in the directory show that the file at `path` is complete. If so, its reader must
    /// look for its end once more.
    ///
    /// # Errors
    /// Fails as [`SourceFolder::next`] does.
    pub fn ends(&mut self, path: &Path) -> Result<bool, Error> {
        if self.kind == (FolderKind::Files { follow: false }) {
            return Ok(true);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let greater = |names: &BTreeSet<String>| names.last().is_some_and(|last| last.as_str() > &*name);
        if !greater(&self.ready_names) {
            self.scan_names()?;
        }
        if matches!(self.kind, FolderKind::Files { .. }) && greater(&self.known_names) {
            return Ok(true);
        }
        Ok(!self.resume.is_empty()
            || greater(&self.ready_names)
            || (self.is_closed && self.kind != FolderKind::Streams))
    }

    /// Returns whether the last scan found another source. A file that ended because of other files has a source
    /// after it.
    pub fn has_more(&self) -> bool {
        !self.resume.is_empty() || !self.ready_names.is_empty()
    }

    /// Notes that the file at `path` was read to its end, `length` bytes.
    pub fn note_ended(&mut self, path: PathBuf, length: u64) {
        if self.ended_files.len() == WATCHED_MAX {
            self.ended_files.pop_front();
        }
        self.ended_files.push_back((path, length));
    }

    fn scan_names(&mut self) -> Result<(), Error> {
        if self.last_look.is_some_and(|look_time| look_time.elapsed() < self.scan_interval) {
            return Ok(());
        }
        // The mark of a closed journal is looked for before its files: then all files are there.
        let is_closed =
            self.kind != FolderKind::Files { follow: true } && self.source_dir.join(CLOSED).exists();
        let fail = |source| Error::Read { path: self.source_dir.clone(), offset: 0, source };
        let entries = match std::fs::read_dir(&self.source_dir) {
            Ok(entries) => entries,
            // A journal is made with its first byte.
            Err(e) if e.kind() == ErrorKind::NotFound && !matches!(self.kind, FolderKind::Files { .. }) => {
                return Ok(());
            }
            Err(e) => return Err(fail(e)),
        };
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if self.wants_file(&name) && !self.known_names.contains(&name) && entry.path().is_file() {
                let follows = self.kind == FolderKind::Files { follow: true };
                if follows && name < self.greatest && !self.ready_names.contains(&name) {
                    self.overtaken_names.push(name.clone());
                }
                self.ready_names.insert(name);
                if self.ready_names.len() > NAMES_MAX {
                    self.ready_names.pop_last();
                }
            }
        }
        for (path, length) in &self.ended_files {
            if std::fs::metadata(path).is_ok_and(|m| m.len() != *length) {
                let reason = "has changed after it was read to its end; a file ends when one of a greater name is there";
                return Err(Error::Read {
                    path: path.clone(),
                    offset: *length,
                    source: std::io::Error::other(reason),
                });
            }
        }
        self.is_closed = is_closed;
        self.last_look = Some(Instant::now());
        Ok(())
    }

    fn wants_file(&self, name: &str) -> bool {
        match self.kind {
            FolderKind::Files { .. } => {
                let is_unfinished =
                    name.starts_with('.') || name.ends_with(".tmp") || name.ends_with(".part");
                !is_unfinished && !is_times_of_journal(&self.source_dir, name)
            }
            FolderKind::Streams => name.ends_with(".raw"),
            FolderKind::Packets => name.ends_with(".pcap"),
        }
    }

    /// Returns the kind of the directory.
    pub fn kind(&self) -> FolderKind {
        self.kind
    }
}

/// Returns whether a file holds the times of receipt of a stream's journal, beside its bytes: no message is in it.
fn is_times_of_journal(dir: &Path, name: &str) -> bool {
    let number = name.strip_suffix(".times").filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
    number.is_some_and(|number| number.len() == 8 && dir.join(format!("{number}.raw")).is_file())
}
