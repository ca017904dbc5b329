//! Round trips and one way over the tape, both backings, beside the raw control; needs a directory on a disk.
//!
//! ```text
//! cargo run --release -p unitape-tape --example measure_tape DIR [COUNT] [REPEATS] [HOT_DIR]
//! ```

use std::path::Path;
use std::process::Command;

use unitape_tape::measure::percentile;
use unitape_tape::twin::measure::{one_way, peer, raw_round_trips, round_trips};
use unitape_tape::{Backing, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "peer") {
        return Ok(peer(&args[1..])?);
    }
    let base = Path::new(args.first().ok_or("give a directory")?);
    let number = |i: usize, or: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    let (count, repeats) = (number(1, 100_000), number(2, 5));
    let own = std::env::current_exe()?;
    let spawn = |a: &[String]| {
        let mut command = Command::new(&own);
        command.arg("peer").args(a);
        command
    };
    let place = args.get(3).map(|dir| Path::new(dir).join("hot"));
    let hot = WriterOptions {
        backing: Backing::Hot { dir: place, window_segments: 64 },
        ..WriterOptions::default()
    };
    let cases = [("hot", hot), ("file", WriterOptions::default())];
    for repeat in 0..repeats {
        let fresh = |name: &str| {
            let dir = base.join(format!("{name}-{repeat}"));
            std::fs::create_dir_all(&dir).map(|()| dir)
        };
        for (name, options) in &cases {
            let shared = Path::new("/dev/shm");
            let raw = raw_round_trips(if shared.is_dir() { shared } else { base }, count, &spawn)?;
            println!("raw        p50 {} p99 {}", percentile(&raw, 0.5), percentile(&raw, 0.99));
            for lines in [1, 2] {
                let dir = fresh(&format!("{name}-rtt-{lines}"))?;
                let times = round_trips(&dir, options, lines, count, &spawn)?;
                let p = |s| percentile(&times, s);
                let ratio = p(0.5) as f64 / percentile(&raw, 0.5) as f64;
                println!(
                    "rtt {name:<5} lines {lines} p50 {} p99 {} p99.9 {} ratio {ratio:.2}",
                    p(0.5),
                    p(0.99),
                    p(0.999)
                );
                std::fs::remove_dir_all(dir)?;
            }
            for (ahead, prefault_bytes) in [("far", 128 << 20), ("default", 8 << 20), ("none", 0)] {
                // A number of frames that fits into the segments made ahead, and one that does not.
                for frames in [count * 5, count * 50] {
                    let dir = fresh(&format!("{name}-one-{ahead}-{frames}"))?;
                    let options = WriterOptions { prefault_bytes, ..options.clone() };
                    let way = one_way(&dir, &options, 1, frames, &spawn)?;
                    let rate = |ns: u64| way.frames as f64 * 1e3 / ns as f64;
                    println!(
                        "one way {name:<5} {:>4} MB prefault {ahead:<7} written {:.1} M/s read {:.1} M/s",
                        way.bytes / 1_000_000,
                        rate(way.written_ns),
                        rate(way.read_ns)
                    );
                    std::fs::remove_dir_all(dir)?;
                }
            }
        }
    }
    Ok(())
}
