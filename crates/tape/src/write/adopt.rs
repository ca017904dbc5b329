//! Hot segments that have lost their tape: found, brought onto the tape that was moved or copied, or forgotten.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::hot::{
    HotDirectoryLookup, HotMark, HotNotice, MARK, SHARED_MEMORY, check_writable, directory_owner,
    find_hot_directory, holds_tape, is_in_use, named_directory,
};
use crate::disk::layout::{TapeId, TapeManifest, TapePaths, write_whole};
use crate::disk::lock::FileLock;
use crate::disk::state_page::StatePage;
use crate::error::{Error, Result};
use crate::write::hot::{forget_link, write_mark};

/// Assigns the named hot segments to the tape in `dir`. The tape was moved to another file system, or copied from a
/// tape that no longer exists, before it was closed. The next writer finds the hot segments.
///
/// # Errors
/// Fails if the tape names no hot segments, if the tape that owns them exists or is in use, or if the directory is not
/// theirs. Also fails if this tape is in use, or if the system refuses. Then nothing was changed.
pub fn adopt_hot(dir: &Path) -> Result<PathBuf> {
    let meta = TapeManifest::load(dir)?;
    let paths = TapePaths { tape_dir: dir.into() };
    let refuse = |path: &Path, reason: String| Err(Error::UnsafeHot { path: path.into(), reason });
    with_writer_lock(&paths, || {
        let link = find_hot_directory(&paths, meta.id)?;
        let doubted = match &link {
            HotDirectoryLookup::Other { notice: HotNotice::Doubtful { hot, .. }, .. } => Some(hot.clone()),
            _ => None,
        };
        let hot = match doubted.clone() {
            Some(Some(hot)) => hot,
            Some(None) => {
                let message = "names no hot directory any more; write the full path of that directory and a line end into it";
                return refuse(&paths.hot(), message.into());
            }
            None => named_directory(&paths)?.ok_or(Error::Option("the tape names no hot directory"))?,
        };
        let Some(owner) = directory_owner(&hot)? else { return refuse(&hot, "is not there any more".into()) };
        check_writable(&hot, owner)?;
        let own_mark = HotMark::decode(&std::fs::read(paths.hot_mark()).unwrap_or_default());
        let hot_mark = HotMark::load(&hot)?;
        let lock = match &hot_mark {
            Some(mark) if mark.tape != meta.id => {
                return Err(Error::ForeignTape { path: hot, tape_id: mark.tape, expected_id: meta.id });
            }
            Some(mark) if own_mark.as_ref().is_some_and(|tape_mark| tape_mark.random != mark.random) => {
                return refuse(
                    &hot,
                    "was made again since this tape was copied; its segments do not follow".into(),
                );
            }
            Some(mark)
                if mark.is_of(dir, meta.id) && own_mark.as_ref() == Some(mark) && doubted.is_none() =>
            {
                return Ok(hot);
            }
            Some(mark) if mark.tape_identity.is_at(&mark.path_when_made) && !mark.is_of(dir, meta.id) => {
                let path = mark.path_when_made.display();
                return refuse(&hot, format!("belongs to the tape at {path}, which is there: open that one"));
            }
            Some(_) => Some(FileLock::acquire(&hot.join(MARK))?),
            None if matches!(link, HotDirectoryLookup::Early(_)) => return Ok(hot),
            // The mark is lost or damaged, so the segments in the directory say to which tape it belongs.
            None => match &link {
                HotDirectoryLookup::Other { notice, .. }
                    if notice.may_miss_part() && holds_tape(&paths, &hot)? =>
                {
                    let mark = hot.join(MARK);
                    mark.exists().then(|| FileLock::acquire(&mark)).transpose()?
                }
                _ => return refuse(&hot, "is no hot directory of this tape".into()),
            },
        };
        let random = match hot_mark {
            Some(mark) => mark.random,
            None => TapeId::random()?.0,
        };
        let bytes = HotMark::with_random(dir, meta.id, random)?.encode();
        let text = hot.to_str().ok_or(Error::Option("the hot directory's name must be UTF-8"))?;
        write_mark(&hot, &bytes)?;
        write_whole(&paths.hot(), format!("{text}\n").as_bytes())?;
        write_whole(&paths.hot_mark(), &bytes)?;
        drop(lock);
        Ok(hot)
    })
}

/// Makes the tape in `dir` forget hot segments that are not its own: it is then opened from its own files. Returns the
/// hot directory, which stays unchanged.
///
/// # Errors
/// Fails if the tape names no hot segments, if they are its own (open the tape, and unitape records them), if the tape
/// is in use, or if the system refuses.
pub fn forget_hot(dir: &Path) -> Result<PathBuf> {
    let meta = TapeManifest::load(dir)?;
    let paths = TapePaths { tape_dir: dir.into() };
    with_writer_lock(&paths, || match find_hot_directory(&paths, meta.id) {
        Ok(HotDirectoryLookup::None) => Err(Error::Option("the tape names no hot directory")),
        Ok(HotDirectoryLookup::Own(_) | HotDirectoryLookup::Early(_)) => Err(Error::Option(
            "the hot segments are this tape's own: open it for writing, and they are recorded",
        )),
        Err(e @ Error::Io { .. }) => Err(e),
        Ok(HotDirectoryLookup::Gone(hot)) => remove_hot(&paths, hot),
        Ok(HotDirectoryLookup::Other { notice: HotNotice::Doubtful { hot, .. }, .. }) => {
            remove_hot(&paths, hot.unwrap_or_else(|| paths.hot_mark()))
        }
        Ok(HotDirectoryLookup::Other { .. }) | Err(_) => {
            let hot = named_directory(&paths).ok().flatten().unwrap_or_default();
            remove_hot(&paths, hot)
        }
    })
}

fn remove_hot(paths: &TapePaths, hot: PathBuf) -> Result<PathBuf> {
    // The tape's end on this page is that of the hot segments.
    StatePage::open(paths)?.renounce();
    forget_link(paths)?;
    Ok(hot)
}

/// Runs `act` while no process writes or records the tape.
fn with_writer_lock<T>(paths: &TapePaths, act: impl FnOnce() -> Result<T>) -> Result<T> {
    if [paths.hot(), paths.hot_mark()].iter().all(|path| path.symlink_metadata().is_err()) {
        return Err(Error::Option("the tape names no hot directory"));
    }
    let lock = FileLock::acquire(&paths.writer_lock())?;
    let recorder = FileLock::acquire(&paths.recorder_lock())?;
    let outcome = act();
    // The text that a dead writer has left in its lock file is for the next writer.
    for lock in [lock, recorder] {
        if lock.stale_holder.is_empty() {
            lock.remove()?;
        }
    }
    outcome
}

/// A hot directory under `/dev/shm` whose tape does not exist at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanHotDirectory {
    /// The directory.
    pub hot_dir: PathBuf,
    /// Where its tape was.
    pub tape: PathBuf,
    /// Bytes of memory that it occupies.
    pub bytes: u64,
}

/// Lists this user's hot directories under `/dev/shm` that have no writer and whose tape is not at its path. Such a
/// tape was removed without a close, or moved. unitape removes none of these directories, because a moved tape still
/// needs its own.
pub fn hot_leftovers() -> Vec<OrphanHotDirectory> {
    let Ok(entries) = std::fs::read_dir(SHARED_MEMORY) else { return Vec::new() };
    let mut leftovers = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let ours = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"unitape-"));
        let is_mine =
            || matches!(directory_owner(&path), Ok(Some(owner)) if check_writable(&path, owner).is_ok());
        if !ours || !is_mine() {
            continue;
        }
        let Ok(Some(mark)) = HotMark::load(&path) else { continue };
        if mark.tape_identity.is_at(&mark.path_when_made) || is_in_use(&path) {
            continue;
        }
        let files = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| Some(file.metadata().ok()?.blocks() * 512)).sum();
        leftovers.push(OrphanHotDirectory { hot_dir: path, tape: mark.path_when_made, bytes });
    }
    leftovers.sort_by(|a, b| a.hot_dir.cmp(&b.hot_dir));
    leftovers
}
