//! Processors, clock and kernel.

use super::{DoctorFinding, FindingRemedy, bad, ok, warn};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use unitape_tape::HelperThreadAffinity;
use unitape_tape::measure::{percentile, pin};

/// Writer, trading reader, and the writer's helpers: preallocator and recorder.
const THREADS: usize = 4;

fn usable_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub fn cores() -> DoctorFinding {
    let usable = usable_cpus();
    let detail =
        format!("{usable} usable, a live tape has {THREADS} threads: writer, reader, preallocator, recorder");
    if usable >= THREADS {
        return ok("cores", detail);
    }
    let mend = match usable {
        1 => "give the process a second core",
        _ => "give the process more cores, or keep the helpers off the writer's: Options::helpers",
    };
    warn(
        "cores",
        detail,
        FindingRemedy("4 or more", "helper threads then do not take the cores of writer and reader", mend),
    )
}

pub fn kernel() -> DoctorFinding {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let detail =
        format!("{} {release} on {}", uname.sysname().to_string_lossy(), uname.machine().to_string_lossy());
    let cure = |gives| FindingRemedy("Linux 5.14 or newer", gives, "install a newer kernel");
    if uname.sysname().to_bytes() != b"Linux" {
        return warn("kernel", detail, cure("hot tapes and pinning are made for Linux"));
    }
    // Locks that belong to the open file came with 3.15, claiming pages ahead of the writer with 5.14.
    match parse_release(&release) {
        Some(v) if v < (3, 15) => bad("kernel", detail, cure("tapes are locked by open file, since 3.15")),
        Some(v) if v >= (5, 14) => ok("kernel", detail),
        _ => warn("kernel", detail, cure("memory is faulted in ahead of the writer in one call")),
    }
}

/// Parses the major and the minor number of `6.12.9-cloud`.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(target_arch = "x86_64")]
pub fn cpu() -> DoctorFinding {
    let have = |names: &[(&'static str, bool)]| {
        let present_names: Vec<&str> =
            names.iter().filter(|(_, is_present)| *is_present).map(|(name, _)| *name).collect();
        if present_names.is_empty() {
            "none of the wide instructions".to_owned()
        } else {
            present_names.join(", ")
        }
    };
    let avx2 = is_x86_feature_detected!("avx2");
    let detail = have(&[
        ("AVX2", avx2),
        ("AVX-512 BW", is_x86_feature_detected!("avx512bw")),
        ("AVX-512 VBMI2", is_x86_feature_detected!("avx512vbmi2")),
        ("BMI2", is_x86_feature_detected!("bmi2")),
        ("SSE 4.2", is_x86_feature_detected!("sse4.2")),
        ("AES", is_x86_feature_detected!("aes")),
    ]);
    if avx2 {
        return ok("cpu", detail);
    }
    let mend = "choose a processor (or a type of virtual machine) with AVX2";
    warn("cpu", detail, FindingRemedy("AVX2", "decoding need not take the portable way", mend))
}

#[cfg(not(target_arch = "x86_64"))]
pub fn cpu() -> DoctorFinding {
    ok("cpu", std::env::consts::ARCH)
}

pub fn governor() -> DoctorFinding {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    match fs::read_to_string(path).as_deref().map(str::trim) {
        Err(_) => ok("governor", "the clock rate is not ours to choose here (virtual machine)"),
        Ok("performance") => ok("governor", "performance"),
        Ok(governor_name) => warn(
            "governor",
            governor_name,
            FindingRemedy(
                "performance",
                "a core that was idle answers at once and not after its clock has gone up",
                "cpupower frequency-set -g performance",
            ),
        ),
    }
}

pub fn isolation() -> DoctorFinding {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    let isolated = isolated.trim();
    let (nohz, rcu) = (kernel_parameter(&line, "nohz_full"), kernel_parameter(&line, "rcu_nocbs"));
    let text_or_none = |cpus: &str| if cpus.is_empty() { "none".to_owned() } else { cpus.to_owned() };
    let detail = format!(
        "isolated cores: {}, nohz_full: {}, rcu_nocbs: {}",
        text_or_none(isolated),
        text_or_none(nohz),
        text_or_none(rcu)
    );
    let spare = usable_cpus() > 2 || !isolated.is_empty();
    if !spare {
        return ok("isolation", format!("{detail}; with {} cores there is none to spare", usable_cpus()));
    }
    if !isolated.is_empty() && !nohz.is_empty() && !rcu.is_empty() {
        return ok("isolation", detail);
    }
    warn(
        "isolation",
        detail,
        FindingRemedy(
            "the cores of writer and trading reader named in all three",
            "no other thread, no timer tick and no RCU work comes between",
            "boot with isolcpus=2,3 nohz_full=2,3 rcu_nocbs=2,3 and run the two under taskset",
        ),
    )
}

/// Returns the value of a parameter of the kernel's command line, or an empty text if it is not given.
fn kernel_parameter<'a>(line: &'a str, name: &str) -> &'a str {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
}

pub fn clock() -> DoctorFinding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Ok(text) = fs::read_to_string(path) else {
        return ok("clock", "this system does not report the source");
    };
    let source = text.trim().to_owned();
    match source.as_str() {
        "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" => ok("clock", source),
        _ => warn(
            "clock",
            source,
            FindingRemedy(
                "tsc",
                "a look at the clock takes 20 ns and no system call; it only matters for live feeds",
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        ),
    }
}

pub fn priority() -> DoctorFinding {
    match (HelperThreadAffinity { nice_value: Some(-1), ..HelperThreadAffinity::default() }).check() {
        Ok(()) => ok("priority", "threads may be raised above others (nice below 0)"),
        Err(_) => warn(
            "priority",
            "threads may not be raised above others",
            FindingRemedy(
                "nice below 0 allowed",
                "Options::helpers can put the preallocator before other programs on a busy machine",
                "ulimit -e 40 (or LimitNICE=-20, or the capability CAP_SYS_NICE)",
            ),
        ),
    }
}

pub fn pinning() -> DoctorFinding {
    let usable = usable_cpus();
    // In a thread of its own, which ends with its pinning.
    let try_pin = || (0..usable).all(pin);
    let works = std::thread::scope(|scope| scope.spawn(try_pin).join().unwrap_or(false));
    if works {
        return ok("pinning", format!("threads can be pinned to each of the {usable} cores"));
    }
    warn(
        "pinning",
        "threads cannot be pinned to cores 0 and up",
        FindingRemedy(
            "sched_setaffinity allowed, cores numbered from 0",
            "threads in a hurry stay where their cache is; only latencies depend on it",
            "docker run --cpuset-cpus=0-1 (the cpuset of the container)",
        ),
    )
}

/// Measures the distance between cores 0 and 1: the time for a word there and back between two threads.
pub fn pair() -> DoctorFinding {
    if usable_cpus() < 2 {
        return ok("pair", "one core, so there is no pair");
    }
    let p50 = percentile(&round_trips(20_000), 0.5);
    let detail = format!("cores 0 and 1: {p50} ns there and back");
    if p50 <= 250 {
        return ok("pair", format!("{detail}, a near pair"));
    }
    warn(
        "pair",
        format!("{detail}, a far pair"),
        FindingRemedy(
            "100 to 200 ns",
            "every latency between the two is a multiple of this",
            "pin writer and reader to cores that share a cache (see lscpu -e); virtual cores may move by themselves",
        ),
    )
}

fn round_trips(count: u64) -> Vec<u64> {
    let (ping_word, pong_word) = (PaddedWord(AtomicU64::new(0)), PaddedWord(AtomicU64::new(0)));
    let mut times = Vec::with_capacity(count as usize);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            for i in 1..=count {
                // Acquire and Release: pair with those of the other thread.
                while ping_word.0.load(Ordering::Acquire) != i {
                    std::hint::spin_loop();
                }
                pong_word.0.store(i, Ordering::Release);
            }
        });
        let pinger = scope.spawn(|| {
            pin(0);
            for i in 1..=count {
                let since = Instant::now();
                ping_word.0.store(i, Ordering::Release);
                while pong_word.0.load(Ordering::Acquire) != i {
                    std::hint::spin_loop();
                }
                times.push(since.elapsed().as_nanos() as u64);
            }
        });
        // A panic of a loop of loads and stores is not worth a report; there are no times then.
        _ = pinger.join();
    });
    times.sort_unstable();
    times
}

/// Alone on its cache lines.
#[repr(align(128))]
struct PaddedWord(AtomicU64);

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
            assert_eq!(parse_release(release), expected, "{release}");
        }
    }

    /// Fails if `nohz_full_something=` is taken for `nohz_full`. A parameter without a value counts as absent.
    #[test]
    fn parameters_of_the_kernel_are_found_by_their_whole_name() {
        let line = "quiet isolcpus=2,3 nohz_fully=9 nohz_full=2-3 rcu_nocbs\n";
        assert_eq!((kernel_parameter(line, "nohz_full"), kernel_parameter(line, "rcu_nocbs")), ("2-3", ""));
    }

    /// Fails if a round trip is lost or the times are not sorted.
    #[test]
    fn a_word_comes_back_as_often_as_it_was_sent() {
        let times = round_trips(100);
        assert!(times.len() == 100 && times.is_sorted());
    }
}
