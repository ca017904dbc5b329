//! `unitape doctor`: what is missing or misconfigured here, and how to mend it.

use crate::output::{self, Done, Failure, bytes};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape doctor
  unitape doctor --dir tape --json

Exit code 1 when something is bad, 0 when all is well or only slower than it could be.")]
pub struct Args {
    /// Where tapes will be written [default: the current directory]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// Print as JSON, one object a finding
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Works, but slower or with less room than it could.
    Warn,
    /// Something will not work.
    Bad,
}

/// What was looked at, and what to do about it.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    what: String,
    /// Empty when all is well.
    mend: String,
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    let findings = [
        cores(),
        memory(),
        kernel(),
        shared_memory(),
        huge_pages(),
        cpu(),
        clock(),
        maps(),
        locked_memory(),
        disk(&args.dir),
        pinning(),
    ];
    let mut out = output::stdout();
    for finding in &findings {
        if args.json {
            serde_json::to_writer(&mut out, finding).map_err(std::io::Error::from)?;
            writeln!(out)?;
            continue;
        }
        let mark = match finding.state {
            State::Ok => "ok  ",
            State::Warn => "warn",
            State::Bad => "BAD ",
        };
        writeln!(out, "{mark} {:<14} {}", finding.name, finding.what)?;
        if !finding.mend.is_empty() {
            writeln!(out, "     {:<14} → {}", "", finding.mend)?;
        }
    }
    out.flush()?;
    let bad = findings.iter().filter(|f| f.state == State::Bad).count();
    match bad {
        0 => Ok(Done::Clean),
        n => Err(Failure::Error(format!("{n} of {} findings are bad", findings.len()))),
    }
}

fn ok(name: &'static str, what: String) -> Finding {
    Finding { name, state: State::Ok, what, mend: String::new() }
}

fn warn(name: &'static str, what: String, mend: &str) -> Finding {
    Finding { name, state: State::Warn, what, mend: mend.to_owned() }
}

fn bad(name: &'static str, what: String, mend: &str) -> Finding {
    Finding { name, state: State::Bad, what, mend: mend.to_owned() }
}

fn cores() -> Finding {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let what = format!("{usable} usable");
    if usable == 1 {
        let mend =
            "give the process a second core: a live feed wants one for the writer and one for a reader";
        return warn("cores", what, mend);
    }
    ok("cores", what)
}

fn memory() -> Finding {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    let (Some(total), Some(free)) = (field("MemTotal"), field("MemAvailable")) else {
        return warn("memory", "cannot be told here".to_owned(), "mount /proc");
    };
    let what = format!("{} available of {}", bytes(free), bytes(total));
    match free {
        0..GIB => {
            warn("memory", what, "have at least 1 GiB available, or use smaller segments (--segment-bytes)")
        }
        _ => ok("memory", what),
    }
}

fn kernel() -> Finding {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let what =
        format!("{} {release} on {}", uname.sysname().to_string_lossy(), uname.machine().to_string_lossy());
    if uname.sysname().to_bytes() != b"Linux" {
        return warn("kernel", what, "hot tapes and pinning are made for Linux; expect less here");
    }
    // Locks that belong to the open file came with 3.15, claiming pages ahead of the writer with 5.14.
    match version(&release) {
        Some(v) if v < (3, 15) => bad("kernel", what, "Linux 3.15 or newer: tapes are locked by open file"),
        Some(v) if v < (5, 14) => {
            warn("kernel", what, "Linux 5.14 or newer can fault memory in ahead of the writer in one call")
        }
        Some(_) => ok("kernel", what),
        None => warn("kernel", what, "Linux 5.14 or newer is what this was tried on"),
    }
}

/// Major and minor number of `6.12.9-cloud`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn shared_memory() -> Finding {
    let mend =
        "mount a tmpfs of at least 1 GiB on /dev/shm (in a container: --shm-size=1g); hot tapes live there";
    let path = Path::new("/dev/shm");
    let Ok(fs) = rustix::fs::statvfs(path) else {
        return bad("shared_memory", "/dev/shm is not there".to_owned(), mend);
    };
    let (size, free) = (fs.f_blocks * fs.f_frsize, fs.f_bavail * fs.f_frsize);
    let what = format!("/dev/shm {} free of {}", bytes(free), bytes(size));
    if let Err(e) = try_file(path) {
        return bad("shared_memory", format!("{what}, {e}"), "make /dev/shm writable for this user");
    }
    // The default window of a hot tape is several segments of 64 MiB, each beside its successor.
    match free {
        0..MIN_SHARED => bad("shared_memory", what, mend),
        MIN_SHARED..GIB => warn("shared_memory", what, mend),
        _ => ok("shared_memory", what),
    }
}

fn huge_pages() -> Finding {
    let mode = |file: &str| {
        let text = fs::read_to_string(Path::new("/sys/kernel/mm/transparent_hugepage").join(file)).ok()?;
        let chosen = text.split_once('[')?.1.split_once(']')?.0;
        Some(chosen.to_owned())
    };
    let (enabled, shared) = (mode("enabled"), mode("shmem_enabled"));
    let shown = |m: &Option<String>| m.clone().unwrap_or_else(|| "not told".to_owned());
    let what = format!("transparent: {}, in shared memory: {}", shown(&enabled), shown(&shared));
    match (enabled.as_deref(), shared.as_deref()) {
        (Some("always" | "madvise"), Some("always" | "advise" | "within_size" | "force")) => {
            ok("huge_pages", what)
        }
        _ => warn(
            "huge_pages",
            what,
            "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled and madvise > …/enabled: fewer page \
             faults in fresh memory",
        ),
    }
}

#[cfg(target_arch = "x86_64")]
fn cpu() -> Finding {
    let have = |names: &[(&'static str, bool)]| {
        let found: Vec<&str> = names.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
        if found.is_empty() { "none of the wide instructions".to_owned() } else { found.join(", ") }
    };
    let avx2 = is_x86_feature_detected!("avx2");
    let what = have(&[
        ("AVX2", avx2),
        ("AVX-512 BW", is_x86_feature_detected!("avx512bw")),
        ("AVX-512 VBMI2", is_x86_feature_detected!("avx512vbmi2")),
        ("BMI2", is_x86_feature_detected!("bmi2")),
        ("SSE 4.2", is_x86_feature_detected!("sse4.2")),
        ("AES", is_x86_feature_detected!("aes")),
    ]);
    if avx2 {
        ok("cpu", what)
    } else {
        warn(
            "cpu",
            what,
            "decoding takes the portable way; a processor (or virtual machine type) with AVX2 is faster",
        )
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu() -> Finding {
    ok("cpu", std::env::consts::ARCH.to_owned())
}

fn clock() -> Finding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Ok(text) = fs::read_to_string(path) else {
        return ok("clock", "the source is not told here".to_owned());
    };
    let source = text.trim().to_owned();
    match source.as_str() {
        "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" => ok("clock", source),
        _ => warn(
            "clock",
            format!("{source}: every look at it is a system call"),
            "boot with clocksource=tsc where the processor's counter is stable; it only matters for live feeds",
        ),
    }
}

fn maps() -> Finding {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let Ok(most) = text.trim().parse::<u64>() else {
        return ok("maps", "the bound is not told here".to_owned());
    };
    let what = format!("{most} mappings a process");
    if most < 65_530 {
        return warn("maps", what, "sysctl vm.max_map_count=65530: each segment that is read is a mapping");
    }
    ok("maps", what)
}

fn locked_memory() -> Finding {
    let limit = getrlimit(Resource::Memlock).current;
    let what = limit.map_or("no bound".to_owned(), |l| format!("at most {}", bytes(l)));
    match limit {
        Some(l) if l < 64 << 20 => warn(
            "locked_memory",
            what,
            "ulimit -l unlimited (or LimitMEMLOCK=infinity): hot segments then cannot be swapped out",
        ),
        _ => ok("locked_memory", what),
    }
}

fn disk(dir: &Path) -> Finding {
    let shown = dir.display();
    let fs = match rustix::fs::statvfs(dir) {
        Ok(fs) => fs,
        Err(e) => return bad("disk", format!("{shown}: {e}"), "make the directory, or say --dir"),
    };
    let free = fs.f_bavail * fs.f_frsize;
    match try_file(dir).and_then(|()| flush_times(dir)) {
        Err(e) => bad(
            "disk",
            format!("{shown}: {e}"),
            "give this user the right to write there, free some space, or say --dir with another directory",
        ),
        Ok((median, worst)) => {
            let what = format!(
                "{shown}: {} free, fdatasync {:.1} ms, at worst {:.1} ms",
                bytes(free),
                median.as_secs_f64() * 1e3,
                worst.as_secs_f64() * 1e3
            );
            if free < 2 * GIB {
                return warn("disk", what, "free some space: a tape grows by segments of 64 MiB");
            }
            if median > Duration::from_millis(20) {
                return warn("disk", what, "a faster disk for the tape, or a longer time between flushes");
            }
            ok("disk", what)
        }
    }
}

/// Makes and removes a small file.
fn try_file(dir: &Path) -> std::io::Result<()> {
    let probe = Probe(dir.join(format!(".unitape-doctor-{}", std::process::id())));
    fs::write(&probe.0, b"can this be written?")
}

/// Median and worst time of a few writes of 64 KiB that are flushed.
fn flush_times(dir: &Path) -> std::io::Result<(Duration, Duration)> {
    let probe = Probe(dir.join(format!(".unitape-doctor-sync-{}", std::process::id())));
    let mut file = fs::File::create(&probe.0)?;
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
struct Probe(PathBuf);

impl Drop for Probe {
    fn drop(&mut self) {
        // It was only a trial; what cannot be removed was most likely never made.
        _ = fs::remove_file(&self.0);
    }
}

fn pinning() -> Finding {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    // In a thread of its own, which ends with its pinning.
    let try_pin = || (0..usable).all(unitape_tape::measure::pin);
    let works = std::thread::scope(|scope| scope.spawn(try_pin).join().unwrap_or(false));
    if works {
        return ok("pinning", format!("threads can be pinned to each of the {usable} cores"));
    }
    warn(
        "pinning",
        "threads cannot be pinned to cores 0 and up".to_owned(),
        "allow sched_setaffinity and cores numbered from 0 (cpuset of the container); only latencies depend on it",
    )
}

const GIB: u64 = 1 << 30;
/// Two segments of 64 MiB and their successors.
const MIN_SHARED: u64 = 256 << 20;
const FLUSHES: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Distributions append what they like to a version.
    #[test]
    fn kernel_versions_are_read_whatever_follows() {
        for (release, expected) in [
            ("6.12.9-cloud-amd64", Some((6, 12))),
            ("5.4.0", Some((5, 4))),
            ("6.1+deb", Some((6, 1))),
            ("custom", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }
}
