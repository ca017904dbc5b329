//! The throughput of the disk: files written one after the other in the plainest way, flushed as the tape's are.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes between two flushes, here and in `sustained`.
pub const FLUSH_BYTES: u64 = 64 << 20;

/// Bytes of a file, as of a segment.
const FILE_BYTES: u64 = 64 << 20;
const WRITE_BYTES: u64 = 4 << 20;
const PAGE_BYTES: usize = 4096;

/// Megabytes (10^6) a second that the disk writes at best, over at least `time`, keeping the last `retain` bytes:
/// through the page cache or around it, whichever is faster here.
pub fn mb_per_s(dir: &Path, retain: u64, time: Duration) -> std::io::Result<f64> {
    let through = one_way(dir, retain, time / 2, false)?;
    // Some file systems have no way around their cache.
    let direct_rate = one_way(dir, retain, time / 2, true).unwrap_or(0.0);
    Ok(through.max(direct_rate))
}

fn one_way(dir: &Path, retain: u64, time: Duration, direct: bool) -> std::io::Result<f64> {
    let scratch_dir = dir.join("disk-alone");
    std::fs::create_dir(&scratch_dir)?;
    let result = measure_writes(&scratch_dir, retain, time, direct);
    std::fs::remove_dir_all(&scratch_dir)?;
    result
}

fn measure_writes(dir: &Path, retain: u64, time: Duration, direct: bool) -> std::io::Result<f64> {
    // Around the cache, memory must begin with a page.
    let block = vec![0x5a; WRITE_BYTES as usize + PAGE_BYTES];
    let block = &block[block.as_ptr().align_offset(PAGE_BYTES)..][..WRITE_BYTES as usize];
    let keep = (retain / FILE_BYTES).max(1);
    let mut written_bytes = 0;
    let since = Instant::now();
    for n in 0u64.. {
        let file = make_segment(&dir.join(n.to_string()), direct)?;
        for offset in (0..FILE_BYTES).step_by(WRITE_BYTES as usize) {
            file.write_all_at(block, offset)?;
            written_bytes += WRITE_BYTES;
            if written_bytes % FLUSH_BYTES == 0 {
                file.sync_data()?;
            }
        }
        if n >= keep {
            std::fs::remove_file(dir.join((n - keep).to_string()))?;
        }
        if since.elapsed() >= time {
            break;
        }
    }
    Ok(written_bytes as f64 / 1e6 / since.elapsed().as_secs_f64())
}

/// Makes a file with reserved blocks, as a segment has them.
fn make_segment(path: &Path, direct: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if direct {
        #[cfg(target_os = "linux")]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            rustix::fs::OFlags::DIRECT.bits() as i32,
        );
        #[cfg(not(target_os = "linux"))]
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    let file = options.open(path)?;
    // Where the file system cannot reserve, writing takes the blocks.
    _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, FILE_BYTES);
    Ok(file)
}
