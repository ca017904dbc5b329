//! What the disk takes: files written one after the other in the plainest way, flushed as the tape's are.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes between two flushes, here and in `sustained`.
pub const FLUSH_BYTES: u64 = 64 << 20;

/// Bytes of a file, as of a segment.
const FILE_BYTES: u64 = 64 << 20;
const WRITE_BYTES: u64 = 1 << 20;

/// Megabytes (10^6) a second, over at least `time`, keeping the last `retain` bytes.
pub fn mb_per_s(dir: &Path, retain: u64, time: Duration) -> std::io::Result<f64> {
    let place = dir.join("disk-alone");
    std::fs::create_dir(&place)?;
    let block = vec![0x5a; WRITE_BYTES as usize];
    let keep = (retain / FILE_BYTES).max(1);
    let mut written = 0;
    let since = Instant::now();
    for n in 0u64.. {
        let file = make(&place.join(n.to_string()))?;
        for at in (0..FILE_BYTES).step_by(WRITE_BYTES as usize) {
            file.write_all_at(&block, at)?;
            written += WRITE_BYTES;
            if written % FLUSH_BYTES == 0 {
                file.sync_data()?;
            }
        }
        if n >= keep {
            std::fs::remove_file(place.join((n - keep).to_string()))?;
        }
        if since.elapsed() >= time {
            break;
        }
    }
    let seconds = since.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&place)?;
    Ok(written as f64 / 1e6 / seconds)
}

/// A file with its blocks reserved, as a segment has them.
fn make(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    // Where the file system cannot reserve, writing takes the blocks.
    _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, FILE_BYTES);
    Ok(file)
}
