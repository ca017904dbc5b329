//! The check of the files whose names the tape knows.
//!
//! | the file | what follows |
//! |---|---|
//! | is as it was | what was not read of it is |
//! | has grown | it is read on, from the start of a message that was cut at its end |
//! | has other content | an error, or with `new_source` another source of this name |
//! | has what another source has | an error, or with `again` it is read again |
//! | is not there | nothing where it was read to its end, otherwise an error |

use crate::account::{SourceAccount, TapeAccount};
use crate::error::Error;
use crate::pipeline::consolidate::PipelineConfig;
use crate::pipeline::run::RunFeed;
use crate::sources::content::{self, ContentHash};
use crate::sources::hash;
use crate::sources::known_content::{KnownContent, SourceName, same_content};
use crate::sources::open::{FIRST, is_first_message};
use crate::sources::source::{FileGrowth, SourceFacts};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The plan for a file of a feed.
#[derive(Debug)]
pub enum SourcePlan {
    /// The source at this index of the account: done, or to be read further.
    Known(usize),
    /// The source at this index, and its file has grown.
    Grown(usize, FileGrowth),
    /// A source that the tape does not have.
    New,
}

/// The likeness of a file to a source of its name.
#[derive(Debug)]
pub enum FileComparison {
    /// The file has the content that the tape recorded. With the hash of the bytes read, if it was computed on the
    /// way.
    Same(Option<ContentHash>),
    /// It holds that and more.
    Grown(Option<ContentHash>),
    /// It does not, and how that is seen.
    Other(String),
}

impl SourceAccount {
    /// Returns length and hash of the source's file, if the tape has the hash of the whole file.
    fn size_and_hash(&self) -> Option<(u64, &str)> {
        let hash = self.hash.as_deref().filter(|hash| !hash.starts_with(FIRST))?;
        Some((self.size?, hash))
    }

    /// Compares a file with this source.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn compare(&self, path: &Path, threads: usize) -> Result<FileComparison, Error> {
        let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        if let Some((bytes, hash)) = self.size_and_hash() {
            let file = File::open(path).map_err(fail)?;
            let now = file.metadata().map_err(fail)?.len();
            if now < bytes {
                return Ok(shorter_file(now, bytes));
            }
            return Ok(match hash::hash_prefix(&file, bytes, threads).map_err(fail)? == hash {
                true if now == bytes => FileComparison::Same(None),
                true => FileComparison::Grown(None),
                false => differing_start(bytes),
            });
        }
        let (bytes, hash) = match &self.marked_content {
            Some((bytes, hash)) => (*bytes, Some(hash)),
            None => (self.through, None),
        };
        if hash.is_none()
            && let Some(first) = &self.hash
            && !is_first_message(path, first).map_err(fail)?
        {
            return Ok(FileComparison::Other(
                "it does not begin with the message that it began with".to_owned(),
            ));
        }
        let prefix = content::prefix(path, bytes).map_err(fail)?;
        // For the part after the last hash, only its place is known.
        let least = self.last_offset.map_or(0, |last| last.saturating_add(1));
        let length = match prefix.more && least > bytes {
            true => content::length(path, least).map_err(fail)?,
            false => prefix.hash.bytes(),
        };
        Ok(match hash {
            _ if prefix.hash.bytes() < bytes => shorter_file(prefix.hash.bytes(), bytes),
            Some(hash) if *hash != prefix.hash.hex() => differing_start(bytes),
            _ if length < least => shorter_file(length, least),
            _ if prefix.more => FileComparison::Grown(Some(prefix.hash)),
            _ => FileComparison::Same(Some(prefix.hash)),
        })
    }

    /// Returns how many bytes of the file were read, if known; otherwise 0.
    pub fn read_bytes(&self) -> u64 {
        let content_bytes = self.marked_content.as_ref().map_or(0, |(bytes, _)| *bytes);
        self.through.max(content_bytes).max(self.last_offset.map_or(0, |last| last.saturating_add(1)))
    }

    /// Finds where reading of a grown file continues: at the start of the message that was cut, if there is one.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn growth(&self, path: &Path, facts: Option<&SourceFacts>) -> Result<FileGrowth, Error> {
        let has_hash = self.size_and_hash().is_some();
        let source_end = match self.size_and_hash() {
            Some((bytes, _)) if !self.end => Some(bytes),
            _ => self.end.then_some(self.through),
        };
        let cut = self
            .quarantined_tail
            .filter(|(offset, length)| *length > 0 && Some(offset + length) == source_end);
        let cut = match cut {
            Some((_, _)) if self.format_id.format == "fix" && ends_whole(path, source_end)? => None,
            cut => cut,
        };
        Ok(FileGrowth {
            from: cut.map_or(self.through, |(offset, _)| offset),
            superseded: cut.is_some(),
            facts: facts.filter(|_| has_hash).cloned(),
        })
    }

    /// Returns the known content: all bytes read if the source has ended, otherwise the part up to the last hash.
    fn content_read(&self) -> Option<(u64, String, Option<String>)> {
        match self.size_and_hash() {
            Some((bytes, hash)) => Some((bytes, hash.to_owned(), None)),
            None => {
                let (bytes, hash) = self.marked_content.clone()?;
                Some((bytes, hash, self.hash.clone()))
            }
        }
    }
}

/// Compares files with sources, on this number of threads; `None` for a missing file.
pub fn compare_all(
    sources: &[(&SourceAccount, PathBuf)],
    threads: usize,
) -> Vec<Option<Result<FileComparison, Error>>> {
    let compare_one =
        |(source, path): &(&SourceAccount, PathBuf)| path.exists().then(|| source.compare(path, 1));
    let lane = |lane: usize| sources.iter().skip(lane).step_by(threads).map(compare_one).collect::<Vec<_>>();
    let lanes = std::thread::scope(|scope| {
        let lane = &lane;
        let handles: Vec<_> =
            (1..threads).map(|t| std::thread::Builder::new().spawn_scoped(scope, move || lane(t))).collect();
        let mut lanes = vec![lane(0)];
        for (t, spawn_outcome) in (1..threads).zip(handles) {
            // A thread that could not be had costs time only.
            lanes.push(match spawn_outcome {
                Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => lane(t),
            });
        }
        lanes
    });
    let mut lanes: Vec<_> = lanes.into_iter().map(Vec::into_iter).collect();
    (0..sources.len()).map(|i| lanes[i % threads].next().expect("one for each")).collect()
}

/// Returns whether the FIX message that ends at `end` has its trailer: then it is bad, but not cut.
fn ends_whole(path: &Path, end: Option<u64>) -> Result<bool, Error> {
    let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
    let file = File::open(path).map_err(fail)?;
    let Some(trailer_start) = end.and_then(|end| end.checked_sub(TRAILER_BYTES as u64)) else {
        return Ok(false);
    };
    let mut trailer = [0; TRAILER_BYTES];
    // A file that is packed ends otherwise; a message that seems cut then is read once more.
    let n = file.read_at(&mut trailer, trailer_start).map_err(fail)?;
    Ok(n == TRAILER_BYTES && trailer.starts_with(b"10=") && trailer[3..6].iter().all(u8::is_ascii_digit))
}

/// `10=123` and the separator.
const TRAILER_BYTES: usize = 7;

fn shorter_file(now: u64, bytes: u64) -> FileComparison {
    FileComparison::Other(format!("it has {now} bytes, but {bytes} were read of it before"))
}

fn differing_start(bytes: u64) -> FileComparison {
    FileComparison::Other(format!("its first {bytes} bytes are others than those that were read before"))
}

/// Finds files of the command with equal content, by feed: returns the error for each later one. Empty files never
/// count.
pub fn find_same_content(setup: &PipelineConfig<'_>, facts: &[Vec<SourceFacts>]) -> Vec<Option<Error>> {
    let mut feeds_before: Vec<(&RunFeed, &SourceFacts)> = Vec::new();
    let mut errors = Vec::new();
    for (feed, facts) in setup.feeds.iter().zip(facts) {
        let mut error = None;
        for f in facts.iter().filter(|f| f.hash.is_some() && f.size != Some(0)) {
            let is_same = |(earlier_feed, g): &&(&RunFeed, &SourceFacts)| {
                (g.size, &g.hash) == (f.size, &f.hash)
                    && !reads_otherwise(feed, &f.file, earlier_feed, &g.file)
            };
            if let Some((earlier_feed, g)) = feeds_before.iter().find(is_same)
                && !feed.rules.allows_same_content
            {
                let this = SourceName { feed: &feed.name, file: &f.file };
                error.get_or_insert(same_content(
                    this,
                    SourceName { feed: &earlier_feed.name, file: &g.file },
                ));
            }
            feeds_before.push((feed, f));
        }
        errors.push(error);
    }
    errors
}

/// Returns whether one file in two feeds has different mappings: it is the same file, and becomes different events.
fn reads_otherwise(feed: &RunFeed, file: &str, other_feed: &RunFeed, other_file: &str) -> bool {
    let decoding_of = |f: &RunFeed| (f.format.name(), f.format.mapping_identity());
    feed.name != other_feed.name && file == other_file && decoding_of(feed) != decoding_of(other_feed)
}

/// Plans for the files of a feed, and the notes to report.
///
/// # Errors
/// Fails if a file is not what the tape says, and nothing says what to do.
pub fn plan_files(
    feed: &RunFeed,
    facts: &[SourceFacts],
    account: &TapeAccount,
    threads: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<SourcePlan>, Error> {
    let format_and_mapping = (feed.format.name(), feed.format.mapping_identity());
    let rules = feed.rules;
    let mut plans = Vec::new();
    let mut used_indices: Vec<usize> = Vec::new();
    for (path, f) in feed.files().iter().zip(facts) {
        if f.hash.is_none() {
            // A stream without a hash (stdin, a pipe) is another one each time.
            plans.push(SourcePlan::New);
            continue;
        }
        let has_same_name = |i: &usize| {
            let s = &account.sources[*i];
            s.feed == feed.name && s.file == f.file && !used_indices.contains(i)
        };
        let mut best_match: Option<(usize, FileComparison)> = None;
        // The last one of this name first: it is what the file was when it was read last.
        for i in (0..account.sources.len()).rev().filter(has_same_name) {
            let s = &account.sources[i];
            let likeness = match s.size_and_hash() {
                Some((size, hash)) if f.size == Some(size) && f.hash.as_deref() == Some(hash) => {
                    FileComparison::Same(None)
                }
                _ => s.compare(path, threads)?,
            };
            let is_other = matches!(likeness, FileComparison::Other(_));
            if best_match.is_none() || !is_other {
                best_match = Some((i, likeness));
            }
            if !is_other {
                break;
            }
        }
        let plan = match best_match {
            None => SourcePlan::New,
            Some((i, likeness)) => {
                let s = &account.sources[i];
                let has_same_mapping =
                    (s.format_id.format.as_str(), s.format_id.mapping.clone()) == format_and_mapping;
                match likeness {
                    FileComparison::Other(_) if rules.new_source => SourcePlan::New,
                    FileComparison::Other(difference) => return Err(other_content(s, &difference)),
                    _ if !s.end && !has_same_mapping => return Err(another_mapping(s, feed)),
                    FileComparison::Same(_) => {
                        if !has_same_mapping {
                            notes.push(read_otherwise(s, feed));
                        }
                        SourcePlan::Known(i)
                    }
                    FileComparison::Grown(_) => SourcePlan::Grown(i, s.growth(path, Some(f))?),
                }
            }
        };
        match &plan {
            SourcePlan::Known(i) | SourcePlan::Grown(i, _) => used_indices.push(*i),
            SourcePlan::New if !rules.allows_same_content && f.size != Some(0) => {
                let same_source = account.sources.iter().find(|s| {
                    let reads_differently =
                        (s.format_id.format.as_str(), s.format_id.mapping.clone()) != format_and_mapping;
                    s.size_and_hash() == f.size.zip(f.hash.as_deref())
                        && !(s.feed != feed.name && s.file == f.file && reads_differently)
                });
                if let Some(s) = same_source {
                    let this = SourceName { feed: &feed.name, file: &f.file };
                    return Err(same_content(this, SourceName { feed: &s.feed, file: &s.file }));
                }
            }
            SourcePlan::New => {}
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Lists the known contents of all sources.
pub fn contents(account: &TapeAccount) -> Vec<KnownContent> {
    let content = |s: &SourceAccount| {
        let (bytes, hash, first) = s.content_read().filter(|(bytes, ..)| *bytes > 0)?;
        Some(KnownContent { feed: s.feed.clone(), file: s.file.clone(), bytes, hash, first })
    };
    account.sources.iter().filter_map(content).collect()
}

/// Makes the error for other content under a known name.
pub fn other_content(source: &SourceAccount, difference: &str) -> Error {
    let message = format!(
        "{difference}; nothing of it was read. If it is another file of the same name, read it with --new-source \
         (new_source = true) or under another feed name"
    );
    changed_source(source, message)
}

/// Makes the error for a source that is gone before it was read to its end.
pub fn removed_source(source: &SourceAccount) -> Error {
    let message = format!(
        "it is not there any more, and {} bytes were read of it, not all; put it back, or continue without it with \
         --new-source (new_source = true) or under another feed name",
        source.read_bytes()
    );
    changed_source(source, message)
}

/// Makes the error for a file of a resumed stream that is gone before it was read to its end.
pub fn removed_stream_file(source: &SourceAccount) -> Error {
    let message = format!(
        "it is not there any more, and {} bytes were read of it, not all; put it back, or give the feed another name and have \
         the sender start over",
        source.read_bytes()
    );
    changed_source(source, message)
}

/// Makes the error for a journal's current file that is shorter than the part that the tape has read.
pub fn older_copy(source: &SourceAccount, bytes: u64) -> Error {
    let message = format!(
        "it has {bytes} bytes, and {} were read of it: it is an older copy; put back the newer one, or remove it and continue \
         without it with --new-source (new_source = true)",
        source.read_bytes()
    );
    changed_source(source, message)
}

fn another_mapping(source: &SourceAccount, feed: &RunFeed) -> Error {
    let message = format!(
        "it was begun with {} and is to be continued with {}; name the one that it was begun with. When it is read to its \
         end, `unitape quarantine retry DIR --mapping MAPPING` tries what is in quarantine with the other",
        mapping_name(source.format_id.mapping.as_deref(), &source.format_id.format),
        mapping_name(feed.format.mapping_identity().as_deref(), feed.format.name()),
    );
    changed_source(source, message)
}

/// Describes that a source was read with another mapping than the present mapping.
fn read_otherwise(source: &SourceAccount, feed: &RunFeed) -> String {
    format!(
        "{}/{} was read with {}, not with {}: what is on the tape stays as it is; `unitape quarantine retry DIR --mapping \
         MAPPING` tries what is in quarantine with another mapping",
        source.feed,
        source.file,
        mapping_name(source.format_id.mapping.as_deref(), &source.format_id.format),
        mapping_name(feed.format.mapping_identity().as_deref(), feed.format.name()),
    )
}

fn mapping_name(mapping: Option<&str>, format: &str) -> String {
    match mapping {
        Some(mapping) => format!("mapping {mapping}"),
        None => format!("format {format}"),
    }
}

fn changed_source(source: &SourceAccount, difference: String) -> Error {
    Error::SourceChanged { feed: source.feed.clone(), file: source.file.clone(), difference }
}
