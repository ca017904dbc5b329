//! The system calls with which a tape changes something, all of them, and where tests make them fail.
//!
//! ```text
//!  writer, preallocator, recorder, recovery ──▶ sys::{open, write_at, sync_data, …} ──▶ the system
//!                                               └─ feature `faults`: the n-th call of a kind fails
//! ```
//!
//! Without the feature these are the calls themselves. The caller adds the operation and the file to the error.
//! Reading files and asking the file system are not here: they change nothing.

use std::fs::{self, File, OpenOptions};
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
#[cfg(target_os = "linux")]
use rustix::mm::Advice;

#[cfg(feature = "faults")]
use crate::disk::faults::SystemCall;

/// Kinds of calls; without the feature they name nothing that could fail.
#[cfg(not(feature = "faults"))]
#[allow(dead_code)]
enum SystemCall {
    Open,
    MakeDir,
    Allocate,
    Punch,
    SetLen,
    Write,
    Rename,
    Unlink,
    Sync,
    SyncDir,
    Map,
    Advise,
}

/// Opens a file for writing as `how` says.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<File> {
    check_fault(SystemCall::Open)?;
    options.open(path)
}

/// Opens a file for reading and writing, and makes it if it does not exist.
pub(crate) fn open_or_make(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

/// Makes a new file for reading and writing. Removes anything with its name, even a link.
pub(crate) fn make_file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    match open(path, &options) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            unlink(path)?;
            open(path, &options)
        }
        other => other,
    }
}

/// Opens a file for writing around the page cache; its offsets, lengths and memory are then whole pages.
pub(crate) fn open_direct(path: &Path) -> Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        open(path, OpenOptions::new().write(true).custom_flags(direct))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Makes a directory and those above it.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    check_fault(SystemCall::MakeDir)?;
    fs::create_dir_all(path)
}

/// Makes a directory that was not there, for its owner alone; those above it are there.
pub(crate) fn make_own_dir(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    check_fault(SystemCall::MakeDir)?;
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Removes a directory in which nothing is.
pub(crate) fn remove_dir(path: &Path) -> Result<()> {
    check_fault(SystemCall::Unlink)?;
    fs::remove_dir(path)
}

/// Allocates blocks for `length` bytes of a file from `offset`; their content is undefined.
pub(crate) fn allocate(file: &File, offset: u64, length: u64) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    check_fault(SystemCall::Allocate)?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, length) {
        Ok(()) => Ok(()),
        // A file system without reservation: writing zeros has the same effect, only slower.
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeros = [0u8; 65536];
            let mut write_offset = offset;
            while write_offset < offset + length {
                let part = (offset + length - write_offset).min(zeros.len() as u64);
                write_at(file, &zeros[..part as usize], write_offset)?;
                write_offset += part;
            }
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

/// Makes a hole in a file. Where that is refused the blocks stay, which costs space and nothing else.
pub(crate) fn punch(file: &File, offset: u64, length: u64) {
    #[cfg(target_os = "linux")]
    if check_fault(SystemCall::Punch).is_ok() {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(file, flags, offset, length);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, offset, length);
}

/// Sets a file's length.
pub(crate) fn set_len(file: &File, length: u64) -> Result<()> {
    check_fault(SystemCall::SetLen)?;
    file.set_len(length)
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> Result<()> {
    #[cfg(feature = "faults")]
    if let Some(fault) = crate::disk::faults::take_fault(SystemCall::Write) {
        if fault.writes_half_first {
            file.write_all_at(&bytes[..bytes.len() / 2], offset)?;
        }
        return Err(std::io::Error::from_raw_os_error(fault.errno));
    }
    file.write_all_at(bytes, offset)
}

/// Writes bytes over others, few enough that they are written whole or not at all.
pub(crate) fn overwrite_at(file: &File, bytes: &[u8], offset: u64) -> Result<()> {
    check_fault(SystemCall::Write)?;
    file.write_all_at(bytes, offset)
}

/// Renames a file.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    check_fault(SystemCall::Rename)?;
    fs::rename(from, to)
}

/// Removes a file's name.
pub(crate) fn unlink(path: &Path) -> Result<()> {
    check_fault(SystemCall::Unlink)?;
    fs::remove_file(path)
}

/// Sets a file's permissions. No test makes it fail: a file that cannot be sealed stays unchanged.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Dates a file. No test makes it fail either.
pub(crate) fn set_modified(file: &File, time: SystemTime) -> Result<()> {
    file.set_modified(time)
}

/// Flushes the data of a file.
pub(crate) fn sync_data(file: &File) -> Result<()> {
    check_fault(SystemCall::Sync)?;
    file.sync_data()
}

/// Flushes the names in a directory.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    check_fault(SystemCall::SyncDir)?;
    File::open(path).and_then(|f| f.sync_all())
}

/// Asks the system to begin writing a file's pages to the disk; a hint, the flush does the rest.
pub(crate) fn begin_write_back(file: &File) {
    #[cfg(target_os = "linux")]
    // SAFETY: the descriptor is open as long as `file`; the call touches no memory.
    unsafe {
        let _ =
            libc::sync_file_range(std::os::fd::AsRawFd::as_raw_fd(file), 0, 0, libc::SYNC_FILE_RANGE_WRITE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// Maps a whole file for reading and writing.
pub(crate) fn map(file: &File) -> Result<MmapRaw> {
    check_fault(SystemCall::Map)?;
    MmapRaw::map_raw(file)
}

/// Maps the first `length` bytes of a file.
pub(crate) fn map_part(file: &File, length: usize, writable: bool) -> Result<MmapRaw> {
    check_fault(SystemCall::Map)?;
    let mut options = MmapOptions::new();
    options.len(length);
    if writable { options.map_raw(file) } else { options.map_raw_read_only(file) }
}

/// Advises the system about `length` bytes from byte `from` of a mapping, as a hint.
#[cfg(target_os = "linux")]
pub(crate) fn advise(map: &MmapRaw, from: u64, length: u64, advice: Advice) {
    assert!(from.is_multiple_of(4096) && from + length <= map.len() as u64);
    assert!(matches!(
        advice,
        Advice::LinuxPopulateRead | Advice::LinuxPopulateWrite | Advice::LinuxHugepage | Advice::Sequential
    ));
    if check_fault(SystemCall::Advise).is_ok() {
        // SAFETY: the range lies in the mapping, and each advice makes pages present and changes no byte
        // (both asserted).
        unsafe {
            let page_start = map.as_mut_ptr().add(from as usize).cast();
            let _ = rustix::mm::madvise(page_start, length as usize, advice);
        }
    }
}

/// Lets a call through, or fails it when a test wants that.
#[cfg(feature = "faults")]
fn check_fault(call: SystemCall) -> Result<()> {
    match crate::disk::faults::take_fault(call) {
        Some(fault) => Err(std::io::Error::from_raw_os_error(fault.errno)),
        None => Ok(()),
    }
}

#[cfg(not(feature = "faults"))]
#[inline(always)]
#[allow(clippy::unnecessary_wraps)] // the other one can fail
fn check_fault(_: SystemCall) -> Result<()> {
    Ok(())
}
