//! `unitape bench`: the figures of the docs, measured here.
//!
//! Every measurement checks itself: what came out must equal what the slow way gives, or the run ends with an
//! error. `docs/bench.md` tells the method.

mod book;
mod csv;
mod farm;
mod fast;
mod fast_handler;
mod fast_passes;
mod fix;
mod fixed;
mod iso20022;
mod itch;
mod passes;
mod record;
mod render;
mod scaling;
mod sim;
mod store;
mod swift;
mod swift_passes;
mod tape;
mod typed;
mod watch;

pub use tape::disk::mb_per_s as disk_mb_per_s;

use crate::output::{self, Done, Failure, note};
use record::{MarkedRecord, Record};
use std::path::{Path, PathBuf};

/// What can be measured, and the cases of each.
const BENCHES: [(&str, &[&str], Bench); 13] = [
    ("tape", &tape::CASES, tape::run),
    ("farm", &["empty"], farm::run),
    ("fix", &["orders", "jse", "orders-to-tape"], fix::run),
    ("fast", &fast::CASES, fast::run),
    ("fixed", &["taq", "taq-events", "taq-to-tape"], fixed::run),
    ("csv", &["taq", "taq-events"], csv::run),
    ("swift", &["typed", "to-tape"], swift::run),
    ("itch", &["events", "with-orders"], itch::run),
    ("iso20022", &["pacs008"], iso20022::run),
    ("store", &["ingest", "scan", "size"], store::run),
    ("watch", &["otr", "wash", "spoofing", "three"], watch::run),
    ("book", &["flow", "deep"], book::run),
    ("sim", &["events", "frames"], sim::run),
];

type Bench = fn(&Context, &mut dyn FnMut(Record) -> Result<(), Failure>) -> Result<(), Failure>;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape bench
  unitape bench fix/orders tape/rtt --json > figures.jsonl
  unitape bench tape/sustained --seconds 60 --dir DISK
  unitape bench tape/rtt --tune helper_cpus=1 --tune segment_bytes=16MiB
  unitape bench --render figures.jsonl

Benches: tape (raw rtt rtt-64 rtt-rate rtt-load one-way sustained recorder-behind readers1 readers4 readers20
isolation), farm (empty), fix (orders jse orders-to-tape), fast (cme complex30000 moex2521, each with -half; handler
book-latency; cme reads fast/cme in the directory that UNITAPE_SAMPLES names),
fixed (taq taq-events taq-to-tape), csv (taq taq-events), swift (typed to-tape), itch (events with-orders),
iso20022 (pacs008), store (ingest scan size),
watch (otr wash spoofing three), book (flow deep), sim (events frames).
Leave the machine alone while it measures. Exit code 1 when a measurement does not come out right.")]
pub struct Args {
    /// Benches, or single cases as bench/case [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print as JSON, one object a measurement
    #[arg(long)]
    json: bool,
    /// Small counts and few repeats: checks that everything works, the figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Directory for files and tapes [default: one in shared memory, so that no disk is measured]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How long the tape is written at full rate in tape/sustained [default: 60, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Print with each measurement which calls of the mark are around its last repeat: for `cargo xtask instructions`
    #[arg(long, hide = true, requires = "json")]
    marks: bool,
    /// Change how the tapes of `tape` are opened: segment_bytes, window_segments, prefault_bytes, helper_cpus,
    /// helper_nice, pin (repeatable; see docs/tuning.md)
    #[arg(long, value_name = "NAME=VALUE")]
    tune: Vec<String>,
    /// Measure nothing; print a recorded run (`-` is stdin) as a Markdown table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "quick", "dir", "seconds", "tune"])]
    render: Option<PathBuf>,
}

/// Arguments of the second process of a measurement.
#[derive(Debug, clap::Args)]
pub struct PeerArgs {
    /// Leave the threads where the system puts them
    #[arg(long)]
    unpinned: bool,
    #[arg(required = true)]
    arguments: Vec<String>,
}

/// What the measurements share.
#[derive(Debug)]
struct Context {
    /// Which to run; all when empty.
    wanted: Vec<(String, Option<String>)>,
    quick: bool,
    /// Where files go.
    dir: PathBuf,
    /// `tmpfs` or `disk`, of `dir`.
    place: String,
    /// For how long `sustained` writes.
    seconds: u64,
    tune: tape::Tune,
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    if let Some(file) = &args.render {
        return render::print_markdown(file);
    }
    let wanted = args.names.iter().map(|name| wanted(name)).collect::<Result<_, _>>()?;
    let dir = args.dir.clone().unwrap_or_else(|| {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
    });
    std::fs::create_dir_all(&dir).map_err(|e| Failure::Error(format!("{}: {e}", dir.display())))?;
    let place = place_of(&dir);
    let seconds = args.seconds.unwrap_or(if args.quick { 1 } else { 60 });
    let tune = tape::Tune::parse(&args.tune)?;
    let context = Context { wanted, quick: args.quick, dir, place, seconds, tune };
    let mut records = Vec::new();
    for (bench, _, measure) in BENCHES {
        if !context.wants_any_of(bench) {
            continue;
        }
        measure(&context, &mut |record| {
            if args.marks {
                return output::print_json(&MarkedRecord { record: &record, marks: record.marks });
            }
            if args.json {
                return output::print_json(&record);
            }
            note!("{} {}: {} ns", record.bench, record.case, record.ns_per_op);
            records.push(record);
            Ok(())
        })?;
    }
    if !args.json {
        output::say_lines(&mut output::unbuffered(), &render::table(&records))?;
    }
    Ok(Done::Clean)
}

/// Runs the second process of a measurement.
pub fn run_peer(args: PeerArgs) -> output::Result {
    tape::peer(args.unpinned, &args.arguments)
}

fn wanted(name: &str) -> Result<(String, Option<String>), Failure> {
    let (bench, case) = name.split_once('/').map_or((name, None), |(b, c)| (b, Some(c)));
    let Some((_, cases, _)) = BENCHES.iter().find(|(n, ..)| *n == bench) else {
        let names: Vec<&str> = BENCHES.iter().map(|(n, ..)| *n).collect();
        return Err(Failure::Usage(format!("no bench is called {bench}; there are: {}", names.join(", "))));
    };
    match case {
        Some(case) if !cases.contains(&case) => {
            Err(Failure::Usage(format!("{bench} has no case {case}; there are: {}", cases.join(", "))))
        }
        case => Ok((bench.to_owned(), case.map(str::to_owned))),
    }
}

impl Context {
    fn wants_any_of(&self, bench: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|(b, _)| b == bench)
    }

    fn wants(&self, bench: &str, case: &str) -> bool {
        let named = |(b, c): &(String, Option<String>)| b == bench && c.as_ref().is_none_or(|c| c == case);
        self.wanted.is_empty() || self.wanted.iter().any(named)
    }

    /// Whether one of these cases was asked for by its own name.
    fn names(&self, bench: &str, cases: &[&str]) -> bool {
        self.wanted.iter().any(|(b, c)| b == bench && c.as_deref().is_some_and(|c| cases.contains(&c)))
    }

    /// The small number with `--quick`, the full one without.
    fn pick(&self, quick: u64, full: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    fn repeats(&self, full: usize) -> usize {
        if self.quick { 2 } else { full }
    }

    /// A new directory, gone when dropped.
    fn fresh(&self, case: &str) -> Result<Fresh, Failure> {
        for n in 0..1000 {
            let dir = self.dir.join(format!("unitape-bench-{}-{case}-{n}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Ok(()) => return Ok(Fresh(dir)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Failure::Error(format!("{}: {e}", dir.display()))),
            }
        }
        Err(Failure::Error(format!("{}: full of directories of earlier runs", self.dir.display())))
    }

    /// Where live segments of a backing lie.
    fn place_of(&self, backing: &str) -> String {
        if backing == "hot" { "tmpfs".to_owned() } else { self.place.clone() }
    }
}

/// A directory that goes with its owner.
struct Fresh(PathBuf);

impl Fresh {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // A directory left behind is no reason to fail a measurement that is done.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether files in `dir` are memory.
fn place_of(dir: &Path) -> String {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    match rustix::fs::statfs(dir) {
        #[allow(clippy::unnecessary_cast, reason = "the width differs between platforms")]
        Ok(fs) if fs.f_type as i64 == TMPFS_MAGIC => "tmpfs".to_owned(),
        _ => "disk".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A typing error that measures nothing and exits 0 would go unnoticed in a script.
    #[test]
    fn unknown_names_are_usage_errors_that_list_what_there_is() {
        for (name, says) in [
            ("tapes", "tape, farm, fix, fast, fixed, csv, swift, itch, iso20022, store, watch, book, sim"),
            ("fix/order", "orders, jse, orders-to-tape"),
        ] {
            match wanted(name) {
                Err(Failure::Usage(what)) => assert!(what.contains(says), "{what}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(wanted("fix/orders").is_ok() && wanted("tape").is_ok());
    }
}
