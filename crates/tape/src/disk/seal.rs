//! Sealing: a segment that is finished, checksummed and durable loses its write permission.
//!
//! The mark is the file's mode and nothing in its bytes, so tapes with the same frames stay equal byte for byte.
//! It keeps other hands off; who may remove a segment is the directory's business. A segment that is written again
//! all the same (the dictionary log was lost, the tape is cut at damage) is unsealed first.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::disk::layout::{TapePaths, segment_path};
use crate::disk::sys;
use crate::error::{FileContext, Result};

const WRITE: u32 = 0o222;

/// Seals those of the segments `from..to` that exist on the disk.
pub(crate) fn seal_segments(paths: &TapePaths, from: u64, to: u64) -> Result<()> {
    for index in from..to {
        for path in [segment_path(&paths.segments(), index), paths.crc(index), paths.index(index)] {
            seal_file(&path)?;
        }
    }
    Ok(())
}

/// Seals one file.
pub(crate) fn seal_file(path: &Path) -> Result<()> {
    match mode(path) {
        Some(mode) if mode & WRITE != 0 => set_mode(path, mode & !WRITE),
        _ => Ok(()),
    }
}

/// Restores the owner's permission to write, if the file exists and is sealed.
pub(crate) fn unseal(path: &Path) -> Result<()> {
    match mode(path) {
        Some(mode) if mode & WRITE == 0 => set_mode(path, mode | 0o200),
        _ => Ok(()),
    }
}

/// Returns whether the file exists and no user may write to it.
pub(crate) fn is_sealed(path: &Path) -> bool {
    mode(path).is_some_and(|mode| mode & WRITE == 0)
}

fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|m| m.permissions().mode())
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    match sys::set_mode(path, mode) {
        // Removed in between.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        // A file of another owner, or a file system without modes: the file stays unchanged, which is harmless.
        Err(e)
            if matches!(e.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        other => other.with_context("change the mode of", path),
    }
}
