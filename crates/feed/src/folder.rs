//! Sources that come while a feed runs: the files of a directory, by name.

use crate::error::Error;
use crate::source::{Pending, SourceFacts};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a directory has next.
#[derive(Debug)]
pub enum Found {
    /// A source: one that the tape knows and that has not ended, or a new one with its facts.
    Source(Pending, Option<Box<SourceFacts>>),
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
pub struct Folder {
    dir: PathBuf,
    sort: Sort,
    /// What the tape knows and what has not ended.
    resume: VecDeque<Pending>,
    taken: HashSet<String>,
    ready: BTreeSet<String>,
    /// Files read to their end lately, with their lengths: they must not grow any more.
    ended: VecDeque<(PathBuf, u64)>,
    every: Duration,
    looked: Option<Instant>,
    next_index: usize,
    closed: bool,
}

/// What sort of directory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Files that others write; `follow`: more may come.
    #[allow(missing_docs)]
    Files { follow: bool },
    /// A journal of streams.
    Streams,
    /// A journal of datagrams.
    Packets,
}

/// Present in a journal to which nothing will be added.
pub const CLOSED: &str = "closed";

/// Ended files that are watched for growth.
const WATCHED_MAX: usize = 64;

/// Names that one look at a directory takes in, at most; the least ones, so that their order is kept.
const NAMES_MAX: usize = 100_000;

impl Folder {
    /// The sources in `dir`; `known` are those on the tape, in their order, each with whether it has ended.
    pub fn new(dir: PathBuf, sort: Sort, known: Vec<(Pending, bool)>, every: Duration) -> Self {
        let name = |p: &Pending| p.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let taken = known.iter().map(|(p, _)| name(p)).collect();
        let next_index = known.len();
        let resume = known.into_iter().filter(|(_, end)| !end).map(|(p, _)| p).collect();
        Self {
            dir,
            sort,
            resume,
            taken,
            ready: BTreeSet::new(),
            ended: VecDeque::new(),
            every,
            looked: None,
            next_index,
            closed: false,
        }
    }

    /// The next source.
    ///
    /// # Errors
    /// When the directory cannot be read, or a file that was read to its end has grown.
    pub fn next(&mut self) -> Result<Found, Error> {
        if let Some(pending) = self.resume.pop_front() {
            return Ok(Found::Source(pending, None));
        }
        if self.ready.is_empty() {
            self.look()?;
        }
        let Some(name) = self.ready.pop_first() else {
            let more = match self.sort {
                Sort::Files { follow } => follow,
                Sort::Streams | Sort::Packets => !self.closed,
            };
            return Ok(if more { Found::Nothing } else { Found::End });
        };
        let pending = Pending { index: self.next_index, path: self.dir.join(&name), ..Pending::default() };
        self.next_index += 1;
        self.taken.insert(name.clone());
        Ok(Found::Source(pending, Some(Box::new(SourceFacts { file: name, size: None, hash: None }))))
    }

    /// Whether the file at `path` is ended by what else is there; its reader then looks for its end once more.
    ///
    /// # Errors
    /// As [`Folder::next`].
    pub fn ends(&mut self, path: &Path) -> Result<bool, Error> {
        if self.sort == (Sort::Files { follow: false }) {
            return Ok(true);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let greater = |names: &BTreeSet<String>| names.last().is_some_and(|last| last.as_str() > &*name);
        if !greater(&self.ready) {
            self.look()?;
        }
        Ok(!self.resume.is_empty() || greater(&self.ready) || (self.closed && self.sort != Sort::Streams))
    }

    /// Whether there is another source, as far as was looked; a file that was ended by what else is there has one behind it.
    pub fn has_more(&self) -> bool {
        !self.resume.is_empty() || !self.ready.is_empty()
    }

    /// Notes that the file at `path` was read to its end, `length` bytes.
    pub fn ended(&mut self, path: PathBuf, length: u64) {
        if self.ended.len() == WATCHED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((path, length));
    }

    fn look(&mut self) -> Result<(), Error> {
        if self.looked.is_some_and(|at| at.elapsed() < self.every) {
            return Ok(());
        }
        // What says that a journal is closed is looked for before its files: then they are all there.
        let closed = self.sort != Sort::Files { follow: true } && self.dir.join(CLOSED).exists();
        let fail = |source| Error::Read { path: self.dir.clone(), offset: 0, source };
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            // A journal is made with its first byte.
            Err(e) if e.kind() == ErrorKind::NotFound && !matches!(self.sort, Sort::Files { .. }) => {
                return Ok(());
            }
            Err(e) => return Err(fail(e)),
        };
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if self.wants(&name) && !self.taken.contains(&name) && entry.path().is_file() {
                self.ready.insert(name);
                if self.ready.len() > NAMES_MAX {
                    self.ready.pop_last();
                }
            }
        }
        for (path, length) in &self.ended {
            if std::fs::metadata(path).is_ok_and(|m| m.len() != *length) {
                let what = "has changed after it was read to its end; a file ends when one of a greater name is there";
                return Err(Error::Read {
                    path: path.clone(),
                    offset: *length,
                    source: std::io::Error::other(what),
                });
            }
        }
        self.closed = closed;
        self.looked = Some(Instant::now());
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        match self.sort {
            Sort::Files { .. } => {
                !name.starts_with('.') && !name.ends_with(".tmp") && !name.ends_with(".part")
            }
            Sort::Streams => name.ends_with(".raw"),
            Sort::Packets => name.ends_with(".pcap"),
        }
    }

    /// What sort of directory it is.
    pub fn sort(&self) -> Sort {
        self.sort
    }
}
