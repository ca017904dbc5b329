//! Memory: how much, shared, in huge pages, kept from the swap, and what of it waits for the disk.

use super::disk::try_file;
use super::{DoctorFinding, FindingRemedy, GIB, bad, ok, warn};
use crate::output::bytes;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::Path;

/// Two segments of 64 MiB and their successors.
const MIN_SHARED: u64 = 256 << 20;

/// Reads a field of `/proc/meminfo` in bytes.
fn meminfo_bytes(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Reads a number from a file of `/proc/sys/vm`.
fn vm_number(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys/vm").join(name)).ok()?.trim().parse().ok()
}

pub fn memory() -> DoctorFinding {
    let (Some(total), Some(free)) = (meminfo_bytes("MemTotal"), meminfo_bytes("MemAvailable")) else {
        let cure = FindingRemedy("/proc mounted", "memory can be looked at", "mount -t proc proc /proc");
        return warn("memory", "this system does not report it", cure);
    };
    let detail = format!("{} available of {}", bytes(free), bytes(total));
    if free >= GIB {
        return ok("memory", detail);
    }
    let mend = "end something, or use smaller segments (--segment-bytes)";
    warn("memory", detail, FindingRemedy("1 GiB available", "room for segments that are made ahead", mend))
}

pub fn shared_memory() -> DoctorFinding {
    let cure = || {
        FindingRemedy(
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
    let detail = format!("/dev/shm {} free of {}", bytes(free), bytes(size));
    if let Err(e) = try_file(path) {
        let cure = FindingRemedy("writable for this user", "hot tapes live there", "chmod 1777 /dev/shm");
        return bad("shared_memory", format!("{detail}, {e}"), cure);
    }
    // The default window of a hot tape is several segments of 64 MiB, each beside its successor.
    match free {
        0..MIN_SHARED => bad("shared_memory", detail, cure()),
        MIN_SHARED..GIB => warn("shared_memory", detail, cure()),
        _ => ok("shared_memory", detail),
    }
}

/// Reports hot segments whose tapes were removed or moved before they were closed. Only the user knows which of the two
/// happened.
pub fn hot_leftovers() -> DoctorFinding {
    let leftovers = unitape_tape::hot_leftovers();
    let Some(first_leftover) = leftovers.first() else { return ok("hot_leftovers", "none under /dev/shm") };
    let held_bytes = leftovers.iter().map(|left| left.bytes).sum();
    let detail = format!(
        "{} hot directories without their tapes, {}: {} of the tape that was at {}",
        leftovers.len(),
        bytes(held_bytes),
        first_leftover.hot_dir.display(),
        first_leftover.tape.display()
    );
    let cure = FindingRemedy(
        "none",
        "they hold memory until the machine restarts",
        "tape moved or restored: unitape tape hot DIR --adopt; tape gone for good: rm -r the directory",
    );
    warn("hot_leftovers", detail, cure)
}

/// Finds the option `huge=` of the file system mounted at `mount_point`, as the kernel reports it.
fn huge_of(mounts: &str, mount_point: &str) -> Option<String> {
    let options = mounts.lines().rev().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        (fields.next() == Some(mount_point)).then(|| fields.nth(1))?
    })?;
    let mode = options.split(',').find_map(|option| option.strip_prefix("huge="));
    Some(mode.unwrap_or("never").to_owned()) // the kernel does not list the default
}

/// Checks the huge page settings. For a mounted file system, the option of the mount counts; `shmem_enabled` is for
/// memory without a mount.
pub fn huge_pages() -> DoctorFinding {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let private = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(mode, _)| mode);
    let mounted = huge_of(&fs::read_to_string("/proc/self/mounts").unwrap_or_default(), "/dev/shm");
    let mode_text = |mode: Option<&str>| mode.unwrap_or("not reported").to_owned();
    let detail = format!("transparent: {}, /dev/shm: {}", mode_text(private), mode_text(mounted.as_deref()));
    match mounted.as_deref() {
        Some("always" | "advise" | "within_size") => ok("huge_pages", detail),
        _ => warn(
            "huge_pages",
            detail,
            FindingRemedy(
                "/dev/shm mounted with huge=advise",
                "segments in shared memory take a quarter of the processor time to make, and their readers fault less",
                "mount -o remount,huge=advise /dev/shm",
            ),
        ),
    }
}

/// Reports the reserved pages of hugetlbfs. They are for users who mount hugetlbfs and name it as the directory of the
/// hot segments.
pub fn reserved_huge_pages() -> DoctorFinding {
    let pages = vm_number("nr_hugepages").unwrap_or(0);
    let size = meminfo_bytes("Hugepagesize").unwrap_or(0);
    ok("hugetlb", format!("{pages} pages of {} reserved; tapes do without", bytes(size)))
}

pub fn swap() -> DoctorFinding {
    let (Some(total), Some(swappiness)) = (meminfo_bytes("SwapTotal"), vm_number("swappiness")) else {
        return ok("swap", "this system does not report it");
    };
    if total == 0 {
        return ok("swap", format!("none, so hot segments stay in memory (swappiness {swappiness})"));
    }
    let detail = format!("{} of swap, swappiness {swappiness}", bytes(total));
    if swappiness <= 10 {
        return ok("swap", detail);
    }
    warn(
        "swap",
        detail,
        FindingRemedy(
            "swappiness of 10 or less",
            "segments in shared memory are not the first to be swapped out",
            "sysctl vm.swappiness=1",
        ),
    )
}

pub fn dirty() -> DoctorFinding {
    let Some(total) = meminfo_bytes("MemTotal") else {
        return ok("dirty_pages", "this system does not report it");
    };
    let amount = |fixed: &str, share: &str| match vm_number(fixed) {
        Some(fixed) if fixed > 0 => fixed,
        _ => vm_number(share).unwrap_or(0) * (total / 100),
    };
    let background = amount("dirty_background_bytes", "dirty_background_ratio");
    let limit = amount("dirty_bytes", "dirty_ratio");
    let detail = format!(
        "written in the background beyond {}, writers stopped beyond {}",
        bytes(background),
        bytes(limit)
    );
    if background <= GIB {
        return ok("dirty_pages", detail);
    }
    warn(
        "dirty_pages",
        detail,
        FindingRemedy(
            "background writing beyond 256 MiB",
            "the disk works all along, and a flush finds little to do",
            "sysctl vm.dirty_background_bytes=268435456",
        ),
    )
}

pub fn locked_memory() -> DoctorFinding {
    let limit = getrlimit(Resource::Memlock).current;
    let detail = limit.map_or("no bound".to_owned(), |l| format!("at most {}", bytes(l)));
    match limit {
        Some(l) if l < 64 << 20 && meminfo_bytes("SwapTotal").is_some_and(|swap| swap > 0) => warn(
            "locked_memory",
            detail,
            FindingRemedy(
                "no bound where there is swap",
                "segments can be kept from being swapped out",
                "ulimit -l unlimited (or LimitMEMLOCK=infinity)",
            ),
        ),
        _ => ok("locked_memory", detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the global switch is used for a mounted file system, because advice to set it would change nothing.
    #[test]
    fn the_option_of_the_mount_counts_and_the_last_mount_of_a_place() {
        let mounts = "tmpfs /dev/shm tmpfs rw,size=8g 0 0\ntmpfs /run tmpfs rw,huge=always 0 0\n";
        assert_eq!(huge_of(mounts, "/dev/shm").as_deref(), Some("never"));
        let remounted_mounts = format!("{mounts}tmpfs /dev/shm tmpfs rw,huge=advise,size=8g 0 0\n");
        assert_eq!(huge_of(&remounted_mounts, "/dev/shm").as_deref(), Some("advise"));
        assert_eq!(huge_of(mounts, "/elsewhere"), None);
    }
}
