//! The hot directory of a writer: made, locked, inherited after a death, removed.
//!
//! unitape removes files only in a directory that has the mark of this tape, and only those of its own names. The
//! owner of a directory is determined in [`crate::disk::hot`].

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::hot::{
    HotDirectoryLookup, HotMark, HotNotice, MARK, MARK_UNFINISHED, check_writable, directory_owner,
    find_hot_directory,
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
    pub hot_dir: PathBuf,
    /// Held while the writer exists, so that no process with a copy of the tape adopts the directory.
    dir_lock: FileLock,
}

/// The hot directory that a writer finds when it opens a tape.
#[derive(Debug, Default)]
pub(crate) struct HotDiscovery {
    /// The hot directory of the last writer, which did not close.
    pub own_dir: Option<HotDirectory>,
    /// The hot directory of a version that made no marks: it is read and left unchanged.
    pub unmarked_dir: Option<PathBuf>,
    /// The notice about it.
    pub hot_notice: Option<HotNotice>,
    /// The tape is a copy of a tape that exists and has everything.
    pub is_copy: bool,
}

impl HotDiscovery {
    /// Finds the hot directory of a tape whose writer's lock is held. After a restart of the machine its content is no
    /// longer the shared memory's, and is removed.
    ///
    /// # Errors
    /// Fails if the hot segments belong to a tape that no longer exists, if the directory belongs to another user, or
    /// if the system refuses.
    pub fn find_hot_directory(paths: &TapePaths, tape: TapeId, rebooted: bool) -> Result<Self> {
        let mut start = Self::default();
        match find_hot_directory(paths, tape)? {
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
                let own_dir = HotDirectory::lock_directory(path)?;
                remove_unfinished(&own_dir.hot_dir)?;
                match rebooted {
                    true => own_dir.remove(paths)?,
                    false => start.own_dir = Some(own_dir),
                }
            }
            HotDirectoryLookup::Early(path) => {
                check_owner_now(&path)?;
                start.hot_notice = Some(HotNotice::Early { hot: path.clone() });
                match rebooted {
                    true => forget_link(paths)?,
                    false => start.unmarked_dir = Some(path),
                }
            }
            HotDirectoryLookup::Other { notice, .. } if notice.may_miss_part() && !rebooted => {
                return Err(Error::HotElsewhere { path: paths.tape_dir.clone(), notice: Box::new(notice) });
            }
            HotDirectoryLookup::Other { notice, is_whole } => {
                (start.hot_notice, start.is_copy) = (Some(notice), is_whole);
            }
        }
        Ok(start)
    }
}

impl HotDirectory {
    /// Locks the hot directory at `path`, which has the mark of this tape.
    pub fn lock_directory(path: PathBuf) -> Result<Self> {
        check_owner_now(&path)?;
        let lock = FileLock::acquire(&path.join(MARK))?;
        Ok(Self { hot_dir: path, dir_lock: lock })
    }

    /// Makes one for the tape in `paths.dir`: in `wanted`, or one of its own under `/dev/shm`.
    ///
    /// In this order: the name, the tape's own mark, the directory, its mark. A writer that dies in between leaves a
    /// name of something that is nobody's, or a directory with its mark. A mark without a name is a name that was lost.
    ///
    /// # Errors
    /// Fails if other users may write to the directory, if it has segments, or if the system refuses.
    pub fn make_directory(paths: &TapePaths, meta: &TapeManifest, wanted: Option<&Path>) -> Result<Self> {
        let mark = HotMark::new(&paths.tape_dir, meta.id)?;
        let wanted_dir = wanted.map_or_else(|| mark.usual_place(), Path::to_path_buf);
        let (path, is_there) = resolve_path(&wanted_dir)?;
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
            // Users who may read the tape's directory may read here too; no other user may write.
            let mode = reachable_mode(&mark.path_when_made, &path);
            sys::set_mode(&path, mode).with_context("change the mode of", &path)?;
        }
        write_mark(&path, &bytes)?;
        Self::lock_directory(path)
    }

    /// Removes unitape's files, then the directory if it is empty, then the name that the tape has for it.
    ///
    /// Only files with unitape's names are removed: a user may have named the directory.
    pub fn remove(self, paths: &TapePaths) -> Result<()> {
        remove_unfinished(&self.hot_dir)?;
        for index in list_segments(&self.hot_dir)? {
            remove(&segment_path(&self.hot_dir, index))?;
        }
        // Last, so that the remaining files are still known after a death.
        self.dir_lock.remove()?;
        // A directory that holds other things is not ours and stays.
        let _ = sys::remove_dir(&self.hot_dir);
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

/// Resolves the full path of a hot directory, and returns whether the directory exists.
fn resolve_path(wanted: &Path) -> Result<(PathBuf, bool)> {
    let name = wanted.file_name().ok_or(Error::Option("the hot directory must have a name of its own"))?;
    let parent = match wanted.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    sys::make_dir(parent).with_context("make", parent)?;
    let parent = std::fs::canonicalize(parent).with_context("resolve", parent)?;
    let meta = std::fs::metadata(&parent).with_context("look at", &parent)?;
    // If any user may rename, the checked path may be another directory a moment later.
    if meta.mode() & 0o1002 == 0o002 {
        let reason =
            "may be written to by everybody and has no sticky bit: a hot directory in it is not safe".into();
        return Err(Error::UnsafeHot { path: parent, reason });
    }
    let path = parent.join(name);
    let present_owner = directory_owner(&path)?;
    if let Some(owner) = present_owner {
        check_writable(&path, owner)?;
    }
    Ok((path, present_owner.is_some()))
}

/// Makes sure that no hot segments are in a directory that a writer is about to use.
fn check_free(path: &Path, paths: &TapePaths, meta: &TapeManifest) -> Result<()> {
    let unsafe_hot = |reason| Err(Error::UnsafeHot { path: path.into(), reason });
    match HotMark::load(path)? {
        // Its name was lost, or forgotten.
        Some(mark) if mark.is_of(&paths.tape_dir, meta.id) => {
            let old_directory = HotDirectory::lock_directory(path.into())?;
            remove_unfinished(&old_directory.hot_dir)?;
            for index in list_segments(&old_directory.hot_dir)? {
                remove(&segment_path(&old_directory.hot_dir, index))?;
            }
            remove(&path.join(MARK))
        }
        Some(mark) => unsafe_hot(format!(
            "holds the hot segments of the tape at {}; name another directory, or remove this one if that tape is gone",
            mark.path_when_made.display()
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

/// Returns the mode that opens a hot directory to the readers of the tape's directory `dir`, and to no other writer.
///
/// The hot segments of a tape in a private directory must stay private too.
fn reachable_mode(dir: &Path, hot: &Path) -> u32 {
    let Ok(tape) = std::fs::metadata(dir) else { return 0o700 };
    let group = || {
        let is_same_group = std::fs::metadata(hot).is_ok_and(|hot| hot.gid() == tape.gid());
        is_same_group || std::os::unix::fs::chown(hot, None, Some(tape.gid())).is_ok()
    };
    let mut mode = 0o700 | tape.mode() & 0o055;
    for ancestor in dir.ancestors().skip(1) {
        let Ok(meta) = std::fs::metadata(ancestor) else { return 0o700 };
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
