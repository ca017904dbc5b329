//! The experiment behind `docs/decisions/0001-frame.md`: one commit word, or a stamp in every line?
//!
//! ```text
//! cargo run --release -p unitape-tape --example frame_experiment [ROUNDS] [REPEATS]
//! ```
//!
//! Two pinned processes share a mapped file. For each design and frame length they play ping-pong over
//! fresh, pre-faulted lines (as a tape has them), and then one writes while the other reads. The raw control
//! (one `u64` there, one back) runs in the same repeat, and the table gives medians of repeats as ratios to
//! it, because absolute times on a shared machine drift.

use std::hint::spin_loop;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const LINE_WORDS: usize = 8;
const PING: usize = 4096 / 8;
const PONG: usize = PING + (1 << 20);
const WORDS: usize = PONG + (1 << 20) * 5;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Design {
    Raw,
    Commit,
    Stamps,
}

/// The shared words. All of them are atomics, so a race is a value and never undefined.
#[derive(Clone, Copy)]
struct Shared<'a>(&'a [AtomicU64]);

impl Shared<'_> {
    /// Control words, each in a line of its own: 0 stage, 1 raw ping, 2 raw pong.
    fn control(&self, index: usize) -> &AtomicU64 {
        &self.0[index * LINE_WORDS]
    }

    fn write(&self, design: Design, at: usize, lines: usize, value: u64) {
        let frame = &self.0[at..at + lines * LINE_WORDS];
        let stamp = at as u64 | 1 << 31;
        for (line, words) in frame.chunks_exact(LINE_WORDS).enumerate() {
            for word in &words[1..] {
                word.store(value, Ordering::Relaxed);
            }
            if design == Design::Stamps {
                // Release: pairs with the Acquire of this line's stamp in `read`.
                words[0].store(stamp, Ordering::Release);
            } else if line > 0 {
                words[0].store(value, Ordering::Relaxed);
            }
        }
        if design == Design::Commit {
            // Release: pairs with the Acquire of the header in `read`.
            frame[0].store(stamp, Ordering::Release);
        }
    }

    fn read(&self, design: Design, at: usize, lines: usize) -> u64 {
        let frame = &self.0[at..at + lines * LINE_WORDS];
        let stamp = at as u64 | 1 << 31;
        let mut sum = 0u64;
        if design == Design::Commit {
            // Acquire: pairs with the Release of the header in `write`.
            while frame[0].load(Ordering::Acquire) != stamp {
                for line in 1..lines {
                    prefetch(&frame[line * LINE_WORDS]);
                }
                spin_loop();
            }
        }
        for words in frame.chunks_exact(LINE_WORDS) {
            // Acquire: pairs with the Release of this line's stamp in `write`.
            while design == Design::Stamps && words[0].load(Ordering::Acquire) != stamp {
                spin_loop();
            }
            for word in &words[1..] {
                sum = sum.wrapping_add(word.load(Ordering::Relaxed));
            }
        }
        sum
    }
}

fn prefetch(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(word).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

/// The second process: echoes, then consumes. The first one's half is in `measure`.
fn echo(shared: Shared<'_>, design: Design, lines: usize, rounds: usize) {
    let step = lines * LINE_WORDS;
    shared.control(0).store(1, Ordering::Release); // pairs with the Acquire in `measure`
    for i in 0..rounds {
        if design == Design::Raw {
            while shared.control(1).load(Ordering::Acquire) != i as u64 + 1 {
                spin_loop();
            }
            shared.control(2).store(i as u64 + 1, Ordering::Release);
        } else {
            let value = shared.read(design, PING + i * step, lines);
            shared.write(design, PONG + i * step, lines, value);
        }
    }
    if design == Design::Raw {
        return;
    }
    let base = PONG + rounds * step;
    let count = (WORDS - base) / step;
    let mut sum = 0u64;
    for i in 0..count {
        sum = sum.wrapping_add(shared.read(design, base + i * step, lines));
    }
    shared.control(0).store(sum | 2, Ordering::Release); // pairs with the Acquire in `measure`
}

/// Round trips in ns, sorted, and ns per frame one way.
fn measure(shared: Shared<'_>, design: Design, lines: usize, rounds: usize) -> (Vec<u32>, f64) {
    let step = lines * LINE_WORDS;
    while shared.control(0).load(Ordering::Acquire) != 1 {
        spin_loop();
    }
    let mut times = Vec::with_capacity(rounds);
    let mut last = Instant::now();
    for i in 0..rounds {
        if design == Design::Raw {
            shared.control(1).store(i as u64 + 1, Ordering::Release);
            while shared.control(2).load(Ordering::Acquire) != i as u64 + 1 {
                spin_loop();
            }
        } else {
            shared.write(design, PING + i * step, lines, i as u64);
            std::hint::black_box(shared.read(design, PONG + i * step, lines));
        }
        let now = Instant::now();
        times.push((now - last).as_nanos() as u32);
        last = now;
    }
    times.sort_unstable();
    if design == Design::Raw {
        return (times, 0.0);
    }
    let base = PONG + rounds * step;
    let count = (WORDS - base) / step;
    let start = Instant::now();
    for i in 0..count {
        shared.write(design, base + i * step, lines, i as u64);
    }
    while shared.control(0).load(Ordering::Acquire) & 2 == 0 {
        spin_loop();
    }
    (times, start.elapsed().as_nanos() as f64 / count as f64)
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("pinning to a processor");
}

fn with_shared<R>(path: &str, f: impl FnOnce(Shared<'_>) -> R) -> R {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("shared file");
    let map = memmap2::MmapRaw::map_raw(&file).expect("mapping the shared file");
    // SAFETY: the mapping is page-aligned, WORDS * 8 bytes long (set_len in `main`), outlives `f`, and both
    // processes touch it through atomics only.
    let words = unsafe { std::slice::from_raw_parts(map.as_mut_ptr().cast::<AtomicU64>(), WORDS) };
    f(Shared(words))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize, or: usize| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    if args.get(1).is_some_and(|a| a == "echo") {
        let design = [Design::Raw, Design::Commit, Design::Stamps][number(3, 0)];
        pin(1);
        return with_shared(&args[2], |s| echo(s, design, number(4, 1), number(5, 0)));
    }
    let (rounds, repeats) = (number(1, 20_000).min(30_000), number(2, 9));
    let dir =
        if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let path = dir.join(format!("frame-experiment-{}", std::process::id())).to_string_lossy().into_owned();
    pin(0);
    let run = |design: Design, lines: usize| {
        let file = std::fs::File::create(&path).expect("shared file");
        file.set_len(WORDS as u64 * 8).expect("shared file");
        with_shared(&path, |s| {
            s.0.iter().step_by(512).for_each(|w| w.store(0, Ordering::Relaxed));
            let words = [design as usize, lines, rounds].map(|n| n.to_string());
            let mut child: Child = Command::new(std::env::current_exe().expect("own path"))
                .args(["echo", &path])
                .args(words)
                .spawn()
                .expect("second process");
            let result = measure(s, design, lines, rounds);
            assert!(child.wait().expect("second process").success());
            result
        })
    };
    let cases: Vec<(Design, usize)> =
        [1, 2, 4].iter().flat_map(|&l| [(Design::Commit, l), (Design::Stamps, l)]).collect();
    let mut raws = (Vec::new(), Vec::new());
    let mut results = vec![(Vec::new(), Vec::new(), Vec::new(), Vec::new()); cases.len()];
    for _ in 0..repeats {
        for (&(design, lines), out) in cases.iter().zip(&mut results) {
            let (raw, _) = run(Design::Raw, 1);
            let (times, one_way) = run(design, lines);
            let (mid, high) = (rounds / 2, rounds * 99 / 100);
            raws.0.push(f64::from(raw[mid]));
            raws.1.push(f64::from(raw[high]));
            out.0.push(f64::from(times[mid]));
            out.1.push(f64::from(times[high]));
            out.2.push(f64::from(times[mid]) / f64::from(raw[mid]));
            out.3.push(one_way);
        }
    }
    std::fs::remove_file(&path).expect("shared file");
    println!("| design | lines | p50 ns | p99 ns | p50 / raw | one way ns | one way M frames/s |");
    println!("|---|---|---|---|---|---|---|");
    println!("| raw u64 | – | {:.0} | {:.0} | 1.00 | – | – |", median(raws.0), median(raws.1));
    for ((design, lines), (p50, p99, ratio, one_way)) in cases.into_iter().zip(results) {
        let one_way = median(one_way);
        println!(
            "| {design:?} | {lines} | {:.0} | {:.0} | {:.2} | {one_way:.1} | {:.0} |",
            median(p50),
            median(p99),
            median(ratio),
            1e3 / one_way
        );
    }
}
