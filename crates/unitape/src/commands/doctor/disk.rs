//! The directory of the tapes: room, locks, flushes, speed; and how many files and mappings there may be.

use super::{DoctorFinding, FindingRemedy, GIB, bad, ok, warn};
use crate::output::bytes;
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use unitape_tape::measure::disk;

const FLUSHES: usize = 9;
const SPEED_TIME: Duration = Duration::from_secs(2);

pub fn maps() -> DoctorFinding {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let Ok(governed_max) = text.trim().parse::<u64>() else {
        return ok("maps", "this system does not report the bound");
    };
    let detail = format!("{governed_max} mappings a process");
    if governed_max >= 65_530 {
        return ok("maps", detail);
    }
    let mend = "sysctl vm.max_map_count=65530";
    warn("maps", detail, FindingRemedy("65530", "each segment that a process uses is a mapping", mend))
}

pub fn files() -> DoctorFinding {
    let limit = getrlimit(Resource::Nofile).current;
    let detail = limit.map_or("no bound".to_owned(), |l| format!("{l} open files a process"));
    match limit {
        Some(l) if l < 1024 => warn(
            "files",
            detail,
            FindingRemedy(
                "1024 or more",
                "each reader has a segment open, each socket of a run another file",
                "ulimit -n 4096",
            ),
        ),
        _ => ok("files", detail),
    }
}

pub fn disk(dir: &Path) -> DoctorFinding {
    let dir_text = dir.display();
    let cure = || {
        FindingRemedy(
            "a directory that this user can write to",
            "tapes are written there",
            "mkdir -p DIR && chown $USER DIR, or say --dir with another directory",
        )
    };
    let fs = match rustix::fs::statvfs(dir) {
        Ok(fs) => fs,
        Err(e) => return bad("disk", format!("{dir_text}: {e}"), cure()),
    };
    let free = fs.f_bavail * fs.f_frsize;
    let (median, worst) = match try_file(dir).and_then(|()| flush_times(dir)) {
        Err(e) => return bad("disk", format!("{dir_text}: {e}"), cure()),
        Ok(times) => times,
    };
    let detail = format!(
        "{dir_text}: {} free, fdatasync {:.1} ms, at worst {:.1} ms",
        bytes(free),
        median.as_secs_f64() * 1e3,
        worst.as_secs_f64() * 1e3
    );
    if free < 2 * GIB {
        let mend = "free some space, or keep less of the tape (retention)";
        return warn("disk", detail, FindingRemedy("2 GiB free", "a tape grows by segments of 64 MiB", mend));
    }
    if median > Duration::from_millis(20) {
        let mend = "another disk for the tape, or a longer time between flushes (Options::sync)";
        return warn(
            "disk",
            detail,
            FindingRemedy("fdatasync in 20 ms or less", "frames are durable sooner", mend),
        );
    }
    ok("disk", detail)
}

/// Checks that a lock on one open file excludes another open file.
pub fn locks(dir: &Path) -> DoctorFinding {
    let cure = || {
        FindingRemedy(
            "a local file system with flock",
            "two writers on one tape are kept apart by it",
            "mount a local disk (ext4, xfs, tmpfs) and say --dir",
        )
    };
    let probe = ScratchFile(dir.join(format!(".unitape-doctor-lock-{}", std::process::id())));
    let tried = || -> std::io::Result<bool> {
        let probe_file = File::create(&probe.0)?;
        probe_file.try_lock().map_err(|e| match e {
            TryLockError::Error(e) => e,
            TryLockError::WouldBlock => std::io::ErrorKind::WouldBlock.into(),
        })?;
        let kept_out = matches!(File::open(&probe.0)?.try_lock(), Err(TryLockError::WouldBlock));
        drop(probe_file);
        Ok(kept_out && File::open(&probe.0)?.try_lock().is_ok())
    };
    match tried() {
        Ok(true) => ok("locks", "a lock of one open file keeps another out"),
        Ok(false) => bad("locks", "locks are granted twice, or not given back, in this directory", cure()),
        Err(e) => bad("locks", format!("{}: {e}", dir.display()), cure()),
    }
}

/// Measures how fast the disk writes when it is flushed as a tape is.
pub fn speed(dir: &Path) -> DoctorFinding {
    let measured = ProbeDirectory::make_directory(dir)
        .and_then(|probe_dir| disk::mb_per_s(&probe_dir.0, 256 << 20, SPEED_TIME));
    match measured {
        Err(e) => bad(
            "disk_speed",
            format!("{}: {e}", dir.display()),
            FindingRemedy(
                "320 MiB free, and writable",
                "the speed can be measured",
                "say --dir with another directory",
            ),
        ),
        Ok(mb) => {
            let detail = format!(
                "{mb:.0} MB/s, written in files of 64 MiB with a flush of each: {:.1} M messages of 100 bytes a second",
                mb / 128.0
            );
            if mb >= 200.0 {
                return ok("disk_speed", detail);
            }
            let mend = "another disk for the tape";
            warn(
                "disk_speed",
                detail,
                FindingRemedy("200 MB/s", "what a recorder takes for long; bursts go to the window", mend),
            )
        }
    }
}

/// Makes and removes a small file.
pub fn try_file(dir: &Path) -> std::io::Result<()> {
    let probe = ScratchFile(dir.join(format!(".unitape-doctor-{}", std::process::id())));
    fs::write(&probe.0, b"can this be written?")
}

/// Measures the median and the worst time of a few flushed writes of 64 KiB.
fn flush_times(dir: &Path) -> std::io::Result<(Duration, Duration)> {
    let probe = ScratchFile(dir.join(format!(".unitape-doctor-sync-{}", std::process::id())));
    let mut file = File::create(&probe.0)?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        file.write_all(&[0x5a; 64 << 10])?;
        let since = Instant::now();
        file.sync_data()?;
        times.push(since.elapsed());
    }
    times.sort_unstable();
    Ok((times[FLUSHES / 2], times[FLUSHES - 1]))
}

/// A file that goes with its owner.
struct ScratchFile(PathBuf);

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // It was only a trial; what cannot be removed was most likely never made.
        _ = fs::remove_file(&self.0);
    }
}

/// A directory that goes with its owner.
struct ProbeDirectory(PathBuf);

impl ProbeDirectory {
    fn make_directory(dir: &Path) -> std::io::Result<Self> {
        let probe_dir = dir.join(format!(".unitape-doctor-speed-{}", std::process::id()));
        fs::create_dir(&probe_dir).map(|()| Self(probe_dir))
    }
}

impl Drop for ProbeDirectory {
    fn drop(&mut self) {
        // As a probe.
        _ = fs::remove_dir_all(&self.0);
    }
}
