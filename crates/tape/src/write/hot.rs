//! The hot directory of a writer: made, locked, inherited after a death, removed.
//!
//! unitape removes files only in a directory that has the mark of this tape, and only those of its own names. The
//! owner of a directory is determined in [`crate::disk::hot`].

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::hot::{
    HotDirectoryLookup, HotMark, HotNotice, MARK, MARK_UNFINISHED, check_writable, directory_owner, find,
};
use crate::disk::layout::{
    TapeId, TapeManifest, TapePaths, is_unfinished, list_segments, remove, remove_unfinished, segment_path,
    write_whole,
};
use crate::disk::lock::FileLock;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// The hot directory of a tape that is open for writing; its mark is locked.
#[derive(Debug)]
pub(crate) struct HotDirectory {
    pub path: PathBuf,
    /// Held as long as the writer is there, so that nobody who has a copy of the tape adopts the directory.
    lock: FileLock,
}

/// The hot directory that a writer finds when it opens a tape.
#[derive(Debug, Default)]
pub(crate) struct HotDiscovery {
    /// The hot directory of the last writer, which did not close.
    pub own: Option<HotDirectory>,
    /// The hot directory of a version that made no marks: it is read and left unchanged.
    pub early: Option<PathBuf>,
    /// The notice about it.
    pub notice: Option<HotNotice>,
    /// The tape is a copy of one that is there and has everything.
    pub is_copy: bool,
}

impl HotDiscovery {
    /// Finds the hot directory of a tape whose writer's lock is held. After a restart of the machine what it holds is
    /// not what shared memory was, and goes.
    ///
    /// # Errors
    /// Hot segments that belong to a tape which is not there any more, a directory of another user, or the system's
    /// refusal.
    pub fn find(paths: &TapePaths, tape: TapeId, rebooted: bool) -> Result<Self> {
        let mut start = Self::default();
        match find(paths, tape)? {
            HotDirectoryLookup::None => {}
            HotDirectoryLookup::Gone(path) => {
                // A writer died after it had made the directory, with nothing in it.
                if directory_owner(&path)?.is_some_and(|owner| check_writable(&path, owner).is_ok()) {
                    remove(&path.join(MARK_UNFINISHED))?;
                    let _ = sys::remove_dir(&path);
                }
                forget_link(paths)?;
            }
            HotDirectoryLookup::Own(path) => {
                let own = HotDirectory::lock(path)?;
                remove_unfinished(&own.path)?;
                match rebooted {
                    true => own.remove(paths)?,
                    false => start.own = Some(own),
                }
            }
            HotDirectoryLookup::Early(path) => {
                check_owner_now(&path)?;
                start.notice = Some(HotNotice::Early { hot: path.clone() });
                match rebooted {
                    true => forget_link(paths)?,
                    false => start.early = Some(path),
                }
            }
            HotDirectoryLookup::Other { notice, .. } if notice.may_miss_part() && !rebooted => {
                return Err(Error::HotElsewhere { path: paths.dir.clone(), notice: Box::new(notice) });
            }
            HotDirectoryLookup::Other { notice, is_whole } => {
                (start.notice, start.is_copy) = (Some(notice), is_whole);
            }
        }
        Ok(start)
    }
}

impl HotDirectory {
    /// Locks the hot directory at `path`, which has the mark of this tape.
    pub fn lock(path: PathBuf) -> Result<Self> {
        check_owner_now(&path)?;
        let lock = FileLock::take(&path.join(MARK))?;
        Ok(Self { path, lock })
    }

    /// Makes one for the tape in `paths.dir`: in `wanted`, or one of its own under `/dev/shm`.
    ///
    /// In this order: the name, the tape's own mark, the directory, its mark. A writer that dies in between leaves a
    /// name of something that is nobody's, or a directory with its mark. A mark without a name is a name that was lost.
    ///
    /// # Errors
    /// A directory that others may write to or that is not empty of segments, or the system's refusal.
    pub fn make(paths: &TapePaths, meta: &TapeManifest, wanted: Option<&Path>) -> Result<Self> {
        let mark = HotMark::new(&paths.dir, meta.id)?;
        let wanted = wanted.map_or_else(|| mark.usual_place(), Path::to_path_buf);
        let (path, is_there) = settle_path(&wanted)?;
        if is_there {
            check_free(&path, paths, meta)?;
        }
        let text = path.to_str().ok_or(Error::Option("the hot directory's name must be UTF-8"))?;
        let bytes = mark.encode();
        // The old mark is of an earlier directory, and does not belong to the new name.
        remove(&paths.hot_mark())?;
        write_whole(&paths.hot(), format!("{text}\n").as_bytes())?;
        write_whole(&paths.hot_mark(), &bytes)?;
        if !is_there {
            sys::make_own_dir(&path).with_context("make", &path)?;
            // Users whom the tape's directory lets in may read here too; nobody else may write.
            let mode = reachable_mode(&mark.path, &path);
            sys::set_mode(&path, mode).with_context("change the mode of", &path)?;
        }
        write_mark(&path, &bytes)?;
        Self::lock(path)
    }

    /// Removes our files, and the directory when nothing else is in it; then the name that the tape has of it.
    ///
    /// Only what has our names: the directory may be one that the user named.
    pub fn remove(self, paths: &TapePaths) -> Result<()> {
        remove_unfinished(&self.path)?;
        for index in list_segments(&self.path)? {
            remove(&segment_path(&self.path, index))?;
        }
        // Last of all, so that what is left after a death is still known.
        self.lock.remove()?;
        // A directory that holds other things is not ours and stays.
        let _ = sys::remove_dir(&self.path);
        forget_link(paths)
    }
}

/// Writes the mark of a hot directory, whole or not at all.
pub(crate) fn write_mark(hot: &Path, bytes: &[u8]) -> Result<()> {
    match write_whole(&hot.join(MARK), bytes) {
        // A file system of huge pages accepts no bytes by calls.
        Err(Error::Io { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => {
            let (temp, path) = (hot.join(MARK_UNFINISHED), hot.join(MARK));
            let file = sys::make_file(&temp).with_context("create", &temp)?;
            sys::allocate(&file, 0, bytes.len() as u64).with_context("reserve", &temp)?;
            let map = sys::map(&file).with_context("map", &temp)?;
            assert!(map.len() >= bytes.len());
            // SAFETY: within the mapping (asserted) of a file that was made just now; nobody else has it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), map.as_mut_ptr(), bytes.len()) };
            sys::rename(&temp, &path).with_context("rename", &path)
        }
        other => other,
    }
}

/// Forgets which hot directory the tape had; the name last, for a mark without one means that the name was lost.
pub(crate) fn forget_link(paths: &TapePaths) -> Result<()> {
    remove(&paths.hot_mark())?;
    remove(&paths.hot())
}

/// The full path of a hot directory, and whether it is there.
fn settle_path(wanted: &Path) -> Result<(PathBuf, bool)> {
    let name = wanted.file_name().ok_or(Error::Option("the hot directory must have a name of its own"))?;
    let parent = match wanted.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    sys::make_dir(parent).with_context("make", parent)?;
    let parent = std::fs::canonicalize(parent).with_context("resolve", parent)?;
    let meta = std::fs::metadata(&parent).with_context("look at", &parent)?;
    // Where anybody may rename, what was checked may be another directory a moment later.
    if meta.mode() & 0o1002 == 0o002 {
        let what =
            "may be written to by everybody and has no sticky bit: a hot directory in it is not safe".into();
        return Err(Error::UnsafeHot { path: parent, what });
    }
    let path = parent.join(name);
    let there = directory_owner(&path)?;
    if let Some(owner) = there {
        check_writable(&path, owner)?;
    }
    Ok((path, there.is_some()))
}

/// Makes sure that no hot segments are in a directory that a writer is about to use.
fn check_free(path: &Path, paths: &TapePaths, meta: &TapeManifest) -> Result<()> {
    let unsafe_hot = |what| Err(Error::UnsafeHot { path: path.into(), what });
    match HotMark::load(path)? {
        // Its name was lost, or forgotten.
        Some(mark) if mark.is_of(&paths.dir, meta.id) => {
            let old = HotDirectory::lock(path.into())?;
            remove_unfinished(&old.path)?;
            for index in list_segments(&old.path)? {
                remove(&segment_path(&old.path, index))?;
            }
            remove(&path.join(MARK))
        }
        Some(mark) => unsafe_hot(format!(
            "holds the hot segments of the tape at {}; name another directory, or remove this one if that tape is gone",
            mark.path.display()
        )),
        None => {
            for entry in std::fs::read_dir(path).with_context("list", path)? {
                let name = entry.with_context("list", path)?.file_name();
                let name = name.to_str().unwrap_or_default();
                if name == MARK || is_unfinished(name) || name.ends_with(".seg") {
                    return unsafe_hot(format!(
                        "holds {name}, and no mark says of which tape; name another directory"
                    ));
                }
            }
            Ok(())
        }
    }
}

fn check_owner_now(path: &Path) -> Result<()> {
    match directory_owner(path)? {
        Some(owner) => check_writable(path, owner),
        None => Err(std::io::Error::from(std::io::ErrorKind::NotFound)).with_context("look at", path),
    }
}

/// The mode with which a hot directory lets in whom the tape's directory `dir` lets in, and nobody to write.
///
/// A tape in a private directory is not read by others because its hot segments are elsewhere.
fn reachable_mode(dir: &Path, hot: &Path) -> u32 {
    let Ok(tape) = std::fs::metadata(dir) else { return 0o700 };
    let group = || {
        let same = std::fs::metadata(hot).is_ok_and(|hot| hot.gid() == tape.gid());
        same || std::os::unix::fs::chown(hot, None, Some(tape.gid())).is_ok()
    };
    let mut mode = 0o700 | tape.mode() & 0o055;
    for above in dir.ancestors().skip(1) {
        let Ok(meta) = std::fs::metadata(above) else { return 0o700 };
        if meta.mode() & 0o001 == 0 {
            mode &= !0o005;
            if meta.mode() & 0o010 == 0 || meta.gid() != tape.gid() {
                mode &= !0o050;
            }
        }
    }
    if mode & 0o050 != 0 && !group() {
        mode &= !0o050;
    }
    mode
}
