//! Memory: how much, shared, in huge pages, kept from the swap, and what of it waits for the disk.

use super::disk::try_file;
use super::{Cure, Finding, GIB, bad, ok, warn};
use crate::output::bytes;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::Path;

/// Two segments of 64 MiB and their successors.
const MIN_SHARED: u64 = 256 << 20;

/// A field of `/proc/meminfo` in bytes.
fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// A number in a file of `/proc/sys/vm`.
fn vm(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys/vm").join(name)).ok()?.trim().parse().ok()
}

pub fn memory() -> Finding {
    let (Some(total), Some(free)) = (meminfo("MemTotal"), meminfo("MemAvailable")) else {
        let cure = Cure("/proc mounted", "memory can be looked at", "mount -t proc proc /proc");
        return warn("memory", "cannot be told here", cure);
    };
    let what = format!("{} available of {}", bytes(free), bytes(total));
    if free >= GIB {
        return ok("memory", what);
    }
    let mend = "end something, or use smaller segments (--segment-bytes)";
    warn("memory", what, Cure("1 GiB available", "room for segments that are made ahead", mend))
}

pub fn shared_memory() -> Finding {
    let cure = || {
        Cure(
            "1 GiB free or more",
            "hot tapes live there: window_segments × segment_bytes of each, and one segment more",
            "mount -o remount,size=8g /dev/shm (in a container: --shm-size=8g)",
        )
    };
    let path = Path::new("/dev/shm");
    let Ok(fs) = rustix::fs::statvfs(path) else {
        return bad("shared_memory", "/dev/shm is not there", cure());
    };
    let (size, free) = (fs.f_blocks * fs.f_frsize, fs.f_bavail * fs.f_frsize);
    let what = format!("/dev/shm {} free of {}", bytes(free), bytes(size));
    if let Err(e) = try_file(path) {
        let cure = Cure("writable for this user", "hot tapes live there", "chmod 1777 /dev/shm");
        return bad("shared_memory", format!("{what}, {e}"), cure);
    }
    // The default window of a hot tape is several segments of 64 MiB, each beside its successor.
    match free {
        0..MIN_SHARED => bad("shared_memory", what, cure()),
        MIN_SHARED..GIB => warn("shared_memory", what, cure()),
        _ => ok("shared_memory", what),
    }
}

pub fn huge_pages() -> Finding {
    let mode = |file: &str| {
        let text = fs::read_to_string(Path::new("/sys/kernel/mm/transparent_hugepage").join(file)).ok()?;
        let chosen = text.split_once('[')?.1.split_once(']')?.0;
        Some(chosen.to_owned())
    };
    let shared = mode("shmem_enabled");
    let shown = |m: &Option<String>| m.clone().unwrap_or_else(|| "not told".to_owned());
    let what = format!("transparent: {}, in shared memory: {}", shown(&mode("enabled")), shown(&shared));
    match shared.as_deref() {
        Some("always" | "advise" | "within_size" | "force") => ok("huge_pages", what),
        _ => warn(
            "huge_pages",
            what,
            Cure(
                "in shared memory: advise",
                "segments in shared memory are made several times faster, with fewer faults of their readers",
                "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
            ),
        ),
    }
}

/// Those of hugetlbfs are for whoever mounts it and names it as the directory of the hot segments.
pub fn reserved_huge_pages() -> Finding {
    let pages = vm("nr_hugepages").unwrap_or(0);
    let size = meminfo("Hugepagesize").unwrap_or(0);
    ok("hugetlb", format!("{pages} pages of {} reserved; tapes do without", bytes(size)))
}

pub fn swap() -> Finding {
    let (Some(total), Some(swappiness)) = (meminfo("SwapTotal"), vm("swappiness")) else {
        return ok("swap", "not told here");
    };
    if total == 0 {
        return ok("swap", format!("none, so hot segments stay in memory (swappiness {swappiness})"));
    }
    let what = format!("{} of swap, swappiness {swappiness}", bytes(total));
    if swappiness <= 10 {
        return ok("swap", what);
    }
    warn(
        "swap",
        what,
        Cure(
            "swappiness of 10 or less",
            "segments in shared memory are not the first to be swapped out",
            "sysctl vm.swappiness=1",
        ),
    )
}

pub fn dirty() -> Finding {
    let Some(total) = meminfo("MemTotal") else { return ok("dirty_pages", "not told here") };
    let amount = |fixed: &str, share: &str| match vm(fixed) {
        Some(fixed) if fixed > 0 => fixed,
        _ => vm(share).unwrap_or(0) * (total / 100),
    };
    let background = amount("dirty_background_bytes", "dirty_background_ratio");
    let limit = amount("dirty_bytes", "dirty_ratio");
    let what = format!(
        "written in the background beyond {}, writers stopped beyond {}",
        bytes(background),
        bytes(limit)
    );
    if background <= GIB {
        return ok("dirty_pages", what);
    }
    warn(
        "dirty_pages",
        what,
        Cure(
            "background writing beyond 256 MiB",
            "the disk works all along, and a flush finds little to do",
            "sysctl vm.dirty_background_bytes=268435456",
        ),
    )
}

pub fn locked_memory() -> Finding {
    let limit = getrlimit(Resource::Memlock).current;
    let what = limit.map_or("no bound".to_owned(), |l| format!("at most {}", bytes(l)));
    match limit {
        Some(l) if l < 64 << 20 && meminfo("SwapTotal").is_some_and(|swap| swap > 0) => warn(
            "locked_memory",
            what,
            Cure(
                "no bound where there is swap",
                "segments can be kept from being swapped out",
                "ulimit -l unlimited (or LimitMEMLOCK=infinity)",
            ),
        ),
        _ => ok("locked_memory", what),
    }
}
