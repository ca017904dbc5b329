//! The owner of the hot directory that a tape names.
//!
//! ```text
//!  DIR/run/hot       /dev/shm/unitape-…            the name of the directory, one line
//!  DIR/run/hot.mark  tape id, random, identity of DIR ─┐ equal bytes
//!  /dev/shm/unitape-…/hot.mark  ───────────────────────┘ and locked by the writer
//! ```
//!
//! Invariant: a hot directory belongs to one directory of a tape. The mark names that directory by its identity, so a
//! copy of the tape finds a mark that names another directory. The hot directory has the same mark, so another
//! directory at the same path does not pass for it. It belongs to the user who made the mark, and no other user may
//! write to it.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::disk::directory_identity::DirectoryIdentity;
pub use crate::disk::hot_notice::HotNotice;
use crate::disk::layout::{
    FORMAT_VERSION, HEADER_PAGE, SegmentHeader, TapeId, TapeManifest, TapePaths, list_segments, read_small,
    segment_path,
};
use crate::error::{Error, FileContext, Result};

/// The hot directory that a tape names, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HotDirectoryLookup {
    /// The tape names no hot directory.
    None,
    /// The named directory does not exist, or is still empty.
    Gone(PathBuf),
    /// The tape's own directory.
    Own(PathBuf),
    /// The tape's own directory, from a version that made no marks.
    Early(PathBuf),
    /// A directory of another tape. `is_whole`: the tape from which this one was copied exists and has all of it.
    Other { notice: HotNotice, is_whole: bool },
}

/// Where hot directories are made unless a directory is named.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Name of the mark, in the hot directory and in `run/`.
pub(crate) const MARK: &str = "hot.mark";

const MAGIC: &[u8; 8] = b"UNITHOTS";

/// Offsets in a mark.
mod offset {
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const RANDOM: usize = 32;
    pub const HOME: usize = 48;
    pub const LENGTH: usize = 120;
    pub const CRC: usize = 124;
    pub const PATH: usize = 128;
}

const _: () = {
    assert!(offset::VERSION == 8 && offset::TAPE == 16 && offset::RANDOM == offset::TAPE + 16);
    assert!(offset::HOME == offset::RANDOM + 16 && offset::HOME + 3 * 8 <= offset::LENGTH);
    assert!(offset::CRC == offset::LENGTH + 4 && offset::PATH == offset::CRC + 4);
};

/// Longest path in a mark; a longer path is left out.
const PATH_MAX: usize = 4096;

/// A mark that binds a hot directory to the directory of its tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HotMark {
    pub tape: TapeId,
    /// A random number that no other hot directory has.
    pub random: u128,
    /// The tape's directory.
    pub tape_identity: DirectoryIdentity,
    /// Where that was when the mark was made, for people and to look whether it is still there.
    pub path_when_made: PathBuf,
}

impl HotMark {
    /// Makes a mark for the tape in `dir`, with a random number for its hot directory.
    pub fn new(dir: &Path, tape: TapeId) -> Result<Self> {
        Self::with_random(dir, tape, TapeId::random()?.0)
    }

    /// Makes a mark for the tape in `dir`, with the given random number for its hot directory.
    pub fn with_random(dir: &Path, tape: TapeId, random: u128) -> Result<Self> {
        let home = DirectoryIdentity::from_dir(dir).with_context("look at", dir)?;
        let path = std::fs::canonicalize(dir).with_context("resolve", dir)?;
        Ok(Self { tape, random, tape_identity: home, path_when_made: path })
    }

    /// Returns the default path of the hot directory.
    pub fn usual_place(&self) -> PathBuf {
        // No other user can guess this name, so no other user has made it before.
        Path::new(SHARED_MEMORY).join(format!("unitape-{}-{:016x}", self.tape, self.random as u64))
    }

    /// Returns whether the mark belongs to `tape` and to the directory at `dir`.
    pub fn is_of(&self, dir: &Path, tape: TapeId) -> bool {
        self.tape == tape && self.tape_identity.is_at(dir)
    }

    pub fn encode(&self) -> Vec<u8> {
        let path = self.path_when_made.as_os_str().as_bytes();
        let path = if path.len() > PATH_MAX { &[] } else { path };
        let mut out = vec![0; offset::PATH];
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, MAGIC);
        write_field(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
        write_field(offset::TAPE, &self.tape.0.to_le_bytes());
        write_field(offset::RANDOM, &self.random.to_le_bytes());
        for (i, word) in self.tape_identity.0.iter().enumerate() {
            write_field(offset::HOME + 8 * i, &word.to_le_bytes());
        }
        write_field(offset::LENGTH, &(path.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&out[..offset::CRC]), path);
        out[offset::CRC..offset::PATH].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(path);
        out
    }

    /// Decodes a mark. Returns `None` if the bytes are no complete mark of this version. A file system of huge pages
    /// leaves zeros after it.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |offset: usize| Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?));
        let wide = |start: usize| Some(u128::from_le_bytes(bytes.get(start..start + 16)?.try_into().ok()?));
        if bytes.get(..8)? != MAGIC || word(offset::VERSION)? != FORMAT_VERSION {
            return None;
        }
        let length = (word(offset::LENGTH)? & 0xffff_ffff) as usize;
        let path = bytes.get(offset::PATH..)?.get(..length)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..offset::CRC]), path);
        (bytes[offset::CRC..offset::PATH] == crc.to_le_bytes()).then_some(())?;
        let home = [word(offset::HOME)?, word(offset::HOME + 8)?, word(offset::HOME + 16)?];
        Some(Self {
            tape: TapeId(wide(offset::TAPE)?),
            random: wide(offset::RANDOM)?,
            tape_identity: DirectoryIdentity(home),
            path_when_made: PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())),
        })
    }

    /// Reads the mark in a hot directory. Returns `None` if the file is absent or is no mark.
    ///
    /// # Errors
    /// Fails if the system refuses to read the file.
    pub fn load(hot: &Path) -> Result<Option<Self>> {
        let path = hot.join(MARK);
        let mut bytes = Vec::new();
        let mut read_mark = || open_no_follow(&path)?.take(1 << 16).read_to_end(&mut bytes);
        match read_mark() {
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(e).with_context("read", &path),
            Ok(_) => Ok(Self::decode(&bytes)),
        }
    }
}

/// Opens a file for reading, unless its name is a link.
pub(crate) fn open_no_follow(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Finds the hot directory of the tape in `paths.dir`, as far as it has one.
///
/// # Errors
/// Fails if other users may write to the tape's own hot directory ([`Error::UnsafeHot`]), if the name is damaged and
/// there is no mark, or if the system refuses.
pub(crate) fn find_hot_directory(paths: &TapePaths, tape: TapeId) -> Result<HotDirectoryLookup> {
    let named_hot_dir = named_directory(paths);
    let mark = mark_bytes(paths)?;
    let hot = match (named_hot_dir, &mark) {
        (Ok(Some(hot)), _) => hot,
        (Ok(None), None) => return Ok(HotDirectoryLookup::None),
        // The writer makes the name before the mark, so a name that came meanwhile is there now.
        (Ok(None), Some(mark)) => match named_directory(paths)? {
            Some(hot) => hot,
            None => return find_nameless(paths, tape, mark, "`run/hot`, which names them, is missing"),
        },
        (Err(Error::Damage { .. }), Some(mark)) => {
            return find_nameless(paths, tape, mark, "`run/hot` is damaged and names no directory");
        }
        (Err(e), _) => return Err(e),
    };
    let Some(bytes) = mark else { return find_early(paths, tape, hot) };
    let Some(mark) = HotMark::decode(&bytes) else {
        return find_unmarked(paths, tape, hot, "`run/hot.mark` is damaged");
    };
    if mark.is_of(&paths.tape_dir, tape) {
        return find_own(&paths.hot_mark(), &mark, hot);
    }
    let is_whole = mark.tape_identity.is_at(&mark.path_when_made);
    let is_there = match HotMark::load(&hot) {
        // A directory of another user that this user may not read: it is unknown whether it is still the same.
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => true,
        other => match other? {
            Some(hot_mark) => hot_mark.random == mark.random,
            // The mark is lost or damaged, so the content of the directory decides.
            None => has_segments(&hot)?,
        },
    };
    let notice = if is_whole || !is_there || is_in_use(&hot) {
        HotNotice::Copy { hot, tape: mark.path_when_made }
    } else {
        HotNotice::Orphan { hot, tape: Some(mark.path_when_made) }
    };
    Ok(HotDirectoryLookup::Other { notice, is_whole })
}

/// Reads the bytes of `run/hot.mark`, or returns `None` if there is no such file.
fn mark_bytes(paths: &TapePaths) -> Result<Option<Vec<u8>>> {
    let path = paths.hot_mark();
    match read_small(&path) {
        Err(e) if is_absent(&e) => Ok(None),
        other => other.map(Some).with_context("read", &path),
    }
}

fn doubtful_hot(hot: Option<PathBuf>, reason: &'static str) -> HotDirectoryLookup {
    HotDirectoryLookup::Other { notice: HotNotice::Doubtful { hot, reason }, is_whole: false }
}

fn has_segments(hot: &Path) -> Result<bool> {
    match directory_owner(hot)? {
        Some(_) => Ok(!list_segments(hot)?.is_empty()),
        None => Ok(false),
    }
}

/// Judges the hot directory of a tape whose own mark names the tape's directory.
fn find_own(path: &Path, mark: &HotMark, hot: PathBuf) -> Result<HotDirectoryLookup> {
    let owner = directory_owner(&hot)?;
    let hot_mark = match owner {
        Some(_) => HotMark::load(&hot)?,
        None => None,
    };
    if let (Some(owner), true) = (owner, hot_mark.as_ref() == Some(mark)) {
        let Some(tape_user) = owner_of(path)? else { return Ok(HotDirectoryLookup::Gone(hot)) };
        check_owner(&hot, owner, tape_user)?;
        return Ok(HotDirectoryLookup::Own(hot));
    }
    // The mark says under which name the directory was made, unless a user had named it.
    let usual_dir = mark.usual_place();
    if usual_dir != hot && HotMark::load(&usual_dir).is_ok_and(|usual_mark| usual_mark.as_ref() == Some(mark))
    {
        return Ok(doubtful_hot(Some(usual_dir), "`run/hot` names another directory"));
    }
    if owner.is_none() || hot_mark.is_none() && is_empty(&hot)? {
        return Ok(HotDirectoryLookup::Gone(hot));
    }
    Ok(match hot_mark {
        None if has_segments(&hot)? => doubtful_hot(Some(hot), "the mark in it is lost or damaged"),
        // Its writer had made the mark, and died before it made anything there.
        None => HotDirectoryLookup::Other { notice: HotNotice::Foreign { hot }, is_whole: false },
        Some(_) => doubtful_hot(Some(hot), "the mark in it is not that of this tape"),
    })
}

/// Judges the hot directory of a tape without a mark: an earlier version made it, or a user has removed the mark.
fn find_early(paths: &TapePaths, tape: TapeId, hot: PathBuf) -> Result<HotDirectoryLookup> {
    let Some(owner) = directory_owner(&hot)? else { return Ok(HotDirectoryLookup::Gone(hot)) };
    if is_empty(&hot)? {
        return Ok(HotDirectoryLookup::Gone(hot));
    }
    let foreign = |hot| Ok(HotDirectoryLookup::Other { notice: HotNotice::Foreign { hot }, is_whole: false });
    let orphan = |hot| {
        Ok(HotDirectoryLookup::Other { notice: HotNotice::Orphan { hot, tape: None }, is_whole: false })
    };
    if hot.join(MARK).symlink_metadata().is_ok() {
        let is_ours = match HotMark::load(&hot)? {
            Some(mark) => mark.tape == tape,
            None => {
                let meta = TapeManifest::load(&paths.tape_dir)?;
                list_segments(&hot)?.iter().any(|&index| is_segment(&hot, &meta, index))
            }
        };
        return match is_ours {
            true => find_unmarked(paths, tape, hot, "`run/hot.mark` is missing"),
            false => foreign(hot),
        };
    }
    if !holds_tape(paths, &hot)? {
        return foreign(hot);
    }
    let Some(tape_user) = owner_of(&paths.hot())? else { return Ok(HotDirectoryLookup::Gone(hot)) };
    check_owner(&hot, owner, tape_user)?;
    // Its default name says for which path it was made.
    let name = hot.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(of_path) = name.strip_prefix(&format!("unitape-{tape}-")) {
        let full = std::fs::canonicalize(&paths.tape_dir).with_context("resolve", &paths.tape_dir)?;
        if of_path != format!("{:08x}", crc32c::crc32c(full.as_os_str().as_bytes())) {
            return orphan(hot);
        }
    }
    Ok(HotDirectoryLookup::Early(hot))
}

/// Returns whether a directory has segments, all of them of this tape.
pub(crate) fn holds_tape(paths: &TapePaths, hot: &Path) -> Result<bool> {
    let (segments, meta) = (list_segments(hot)?, TapeManifest::load(&paths.tape_dir)?);
    Ok(!segments.is_empty() && segments.iter().all(|&index| is_segment(hot, &meta, index)))
}

/// Judges the hot directory of a tape whose own mark is lost or damaged: the mark in that directory names its tape.
fn find_unmarked(
    paths: &TapePaths,
    tape: TapeId,
    hot: PathBuf,
    reason: &'static str,
) -> Result<HotDirectoryLookup> {
    let hot_mark = match HotMark::load(&hot) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => None,
        other => other?,
    };
    match hot_mark {
        Some(mark) if mark.tape == tape && !mark.is_of(&paths.tape_dir, tape) => Ok(of_other(mark, hot)),
        _ => Ok(doubtful_hot(Some(hot), reason)),
    }
}

/// Finds the hot directory of a tape that has a mark and no name: it is looked for where unitape makes hot
/// directories.
fn find_nameless(
    paths: &TapePaths,
    tape: TapeId,
    mark: &[u8],
    reason: &'static str,
) -> Result<HotDirectoryLookup> {
    let Some(mark) = HotMark::decode(mark) else {
        return Ok(doubtful_hot(None, reason));
    };
    let usual_dir = mark.usual_place();
    let is_there = HotMark::load(&usual_dir)?.is_some_and(|hot_mark| hot_mark.random == mark.random);
    if mark.is_of(&paths.tape_dir, tape) || !is_there && !mark.tape_identity.is_at(&mark.path_when_made) {
        return Ok(doubtful_hot(is_there.then_some(usual_dir), reason));
    }
    Ok(of_other(mark, usual_dir))
}

/// Describes hot segments in `hot` that belong to the directory in the mark.
fn of_other(mark: HotMark, hot: PathBuf) -> HotDirectoryLookup {
    let is_whole = mark.tape_identity.is_at(&mark.path_when_made);
    let notice = match is_whole || is_in_use(&hot) {
        true => HotNotice::Copy { hot, tape: mark.path_when_made },
        false => HotNotice::Orphan { hot, tape: Some(mark.path_when_made) },
    };
    HotDirectoryLookup::Other { notice, is_whole }
}

/// Returns the user who owns a file of the tape, or `None` if a closing writer has removed the file meanwhile.
fn owner_of(path: &Path) -> Result<Option<u32>> {
    match std::fs::metadata(path) {
        Err(e) if is_absent(&e) => Ok(None),
        other => Ok(Some(other.with_context("look at", path)?.uid())),
    }
}

/// Returns whether the file is that segment of the tape, and not a link to it.
fn is_segment(hot: &Path, meta: &TapeManifest, index: u64) -> bool {
    let path = segment_path(hot, index);
    let mut page = vec![0; HEADER_PAGE as usize];
    let read_result = open_no_follow(&path).and_then(|mut file| file.read_exact(&mut page));
    read_result.is_ok() && SegmentHeader::check(&page, meta, index, &path).is_ok()
}

/// Reads the directory that `run/hot` names.
pub(crate) fn named_directory(paths: &TapePaths) -> Result<Option<PathBuf>> {
    let path = paths.hot();
    let text = match read_small(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.with_context("read", &path)?,
    };
    named_in(&text).map(Some).ok_or_else(|| {
        Error::damage(&path, 0, "it names no directory; remove it to open the tape without hot segments")
    })
}

/// Parses the directory in the text of `run/hot`.
fn named_in(text: &[u8]) -> Option<PathBuf> {
    let name = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    Path::new(name).is_absolute().then(|| PathBuf::from(name))
}

/// The owner and the permissions of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryOwner {
    pub user: u32,
    /// Type and permissions, as `stat` returns them.
    pub mode: u32,
}

/// Returns the owner and mode of a directory, or `None` if there is no directory.
///
/// # Errors
/// Fails if the name is a link or no directory, or if the system refuses.
pub(crate) fn directory_owner(hot: &Path) -> Result<Option<DirectoryOwner>> {
    let meta = match std::fs::symlink_metadata(hot) {
        Err(e) if is_absent(&e) => return Ok(None),
        other => other.with_context("look at", hot)?,
    };
    let kind = meta.file_type();
    if !kind.is_dir() {
        let reason = if kind.is_symlink() {
            "is a link; a hot directory is named by its own path"
        } else if kind.is_file() || kind.is_fifo() || kind.is_socket() {
            "is a file; a hot directory is a directory"
        } else {
            "is a device; a hot directory is a directory"
        };
        return Err(Error::UnsafeHot { path: hot.into(), reason: reason.into() });
    }
    Ok(Some(DirectoryOwner { user: meta.uid(), mode: meta.mode() }))
}

/// Checks that only `owner`, this user or the system's user may write to a hot directory.
pub(crate) fn check_owner(hot: &Path, owner: DirectoryOwner, tape_user: u32) -> Result<()> {
    let DirectoryOwner { user, mode } = owner;
    let unsafe_hot = |reason| Err(Error::UnsafeHot { path: hot.into(), reason });
    if ![tape_user, 0, rustix::process::geteuid().as_raw()].contains(&user) {
        return unsafe_hot(format!("belongs to user {user}, the tape to user {tape_user}"));
    }
    if mode & 0o022 != 0 {
        return unsafe_hot(format!("has mode {:o}: others may write to it; `chmod go-w` it", mode & 0o7777));
    }
    Ok(())
}

/// Checks that the directory belongs to the user of this process, who will write to it.
pub(crate) fn check_writable(hot: &Path, owner: DirectoryOwner) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    let user = owner.user;
    if user != me {
        let reason =
            format!("belongs to user {user}, this process runs as user {me}; open the tape as user {user}");
        return Err(Error::UnsafeHot { path: hot.into(), reason });
    }
    check_owner(hot, owner, me)
}

/// Returns whether a writer has the hot directory in use.
pub(crate) fn is_in_use(hot: &Path) -> bool {
    let probe = open_no_follow(&hot.join(MARK)).map(|file| file.try_lock_shared());
    matches!(probe, Ok(Err(std::fs::TryLockError::WouldBlock)))
}

/// Returns whether a directory has nothing but an unfinished mark.
pub(crate) fn is_empty(hot: &Path) -> Result<bool> {
    let entries = match std::fs::read_dir(hot) {
        Err(e) if is_absent(&e) => return Ok(true),
        other => other.with_context("list", hot)?,
    };
    for entry in entries {
        if entry.with_context("list", hot)?.file_name().to_str() != Some(MARK_UNFINISHED) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Name under which a mark is written before it gets its own.
pub(crate) const MARK_UNFINISHED: &str = "hot.new";

/// Returns whether the error says that the file or a directory above it does not exist.
pub(crate) fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The hot directory that [`find_hot_directory`] found last, for readers that ask often.
#[derive(Debug)]
pub(crate) struct HotPathCache {
    mark_text: Vec<u8>,
    mark_stamp: [u64; 2],
    hot_dir: PathBuf,
}

impl HotPathCache {
    /// Finds the hot directory of the tape, of this or of an earlier version. Uses `cache` to ask the file system as
    /// little as possible.
    pub fn locate(cache: &mut Option<Self>, paths: &TapePaths, tape: TapeId) -> Result<Option<PathBuf>> {
        let path = paths.hot();
        let text = match read_small(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("read", &path)?,
        };
        let mark_of =
            |hot: &Path| std::fs::symlink_metadata(hot.join(MARK)).ok().map(|meta| [meta.dev(), meta.ino()]);
        if let Some(entry) = cache
            && entry.mark_text == text
            && mark_of(&entry.hot_dir) == Some(entry.mark_stamp)
        {
            return Ok(Some(entry.hot_dir.clone()));
        }
        *cache = None;
        match find_hot_directory(paths, tape)? {
            HotDirectoryLookup::Own(hot) => {
                *cache = mark_of(&hot).map(|mark| Self {
                    mark_text: text,
                    mark_stamp: mark,
                    hot_dir: hot.clone(),
                });
                Ok(Some(hot))
            }
            HotDirectoryLookup::Early(hot) => Ok(Some(hot)),
            HotDirectoryLookup::None | HotDirectoryLookup::Gone(_) | HotDirectoryLookup::Other { .. } => {
                Ok(None)
            }
        }
    }
}

/// Returns the directory of the hot segments of the tape in `dir`, of this or of an earlier version, if there is such a
/// directory.
///
/// # Errors
/// Fails as [`hot_notice`] does.
pub fn hot_place(dir: &Path) -> Result<Option<PathBuf>> {
    let paths = TapePaths { tape_dir: dir.into() };
    HotPathCache::locate(&mut None, &paths, TapeManifest::load(dir)?.id)
}

/// Returns a notice about the hot segments that the tape in `dir` names: the tape is a copy, or the hot directory
/// belongs to another tape. Commands print the notice before they read or write a tape.
///
/// # Errors
/// Fails if `dir` is no tape, if the hot directory cannot be trusted, or if the system refuses.
pub fn hot_notice(dir: &Path) -> Result<Option<HotNotice>> {
    let paths = TapePaths { tape_dir: dir.into() };
    if [paths.hot(), paths.hot_mark()].iter().all(|path| path.symlink_metadata().is_err()) {
        return Ok(None);
    }
    Ok(match find_hot_directory(&paths, TapeManifest::load(dir)?.id)? {
        HotDirectoryLookup::Other { notice, .. } => Some(notice),
        HotDirectoryLookup::Early(hot) => Some(HotNotice::Early { hot }),
        HotDirectoryLookup::None | HotDirectoryLookup::Gone(_) | HotDirectoryLookup::Own(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_and_any_other_bit_does_not() {
        let home = DirectoryIdentity([1, u64::MAX, 3]);
        let mark = HotMark {
            tape: TapeId(7),
            random: 8 << 100,
            tape_identity: home,
            path_when_made: "/srv/tape".into(),
        };
        let bytes = mark.encode();
        assert_eq!(HotMark::decode(&bytes), Some(mark.clone()));
        let with_zeros = [&bytes[..], &[0; 100]].concat();
        assert_eq!(HotMark::decode(&with_zeros), Some(mark));
        for bit in 0..bytes.len() * 8 {
            let mut altered_bytes = bytes.clone();
            altered_bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(HotMark::decode(&altered_bytes), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(HotMark::decode(&bytes[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn only_an_absolute_path_is_a_name() {
        assert_eq!(named_in(b"/dev/shm/x\n"), Some(PathBuf::from("/dev/shm/x")));
        for text in [&b""[..], b"\n", b"/dev/shm/x", b"x\n", b"../x\n", b"/\xff\n"] {
            assert_eq!(named_in(text), None, "{text:?}");
        }
    }
}
