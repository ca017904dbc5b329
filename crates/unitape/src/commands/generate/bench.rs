//! `unitape generate bench`: a stream of orders for measuring surveillance, as lines or on a tape.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_model::{Event, frames};
use unitape_sim::{SurveillanceConfig, SurveillanceStream};
use unitape_tape::{TapeId, Writer, WriterOptions};

use crate::output::{self, CommandFailure, CommandOutcome, file_failure, say};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape generate bench --tape orders
  unitape generate bench --events 100000 --out - | head
  unitape generate bench --events 1000000 --tape orders --json
  unitape generate bench --events 1000000 --instruments 50 --open-orders 2000 --names-all --tape few

Orders, amends, cancels, executions, prints and best prices of 2,000 traders in 100,000 instruments over four hours, with 1,000,000 orders open. One cancel in five and one execution in five names only its order id. Wash trades, layers and floods are planted. With fewer events, the numbers of instruments, traders and open orders, and the time, shrink in proportion. The same options give the same bytes.")]
pub struct BenchStreamArgs {
    /// Tape to write, in a directory that does not exist yet
    #[arg(long, value_name = "DIR", required_unless_present = "out")]
    tape: Option<PathBuf>,
    /// File to write events into, one JSON object a line; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "tape")]
    out: Option<PathBuf>,
    /// The same seed makes the same stream
    #[arg(long, default_value_t = SurveillanceConfig::default().seed)]
    seed: u64,
    /// How many events
    #[arg(long, default_value_t = SurveillanceConfig::default().events, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    events: u64,
    /// Instruments, as many as fit --events by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    instruments: Option<u32>,
    /// Traders, as many as fit --events by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(SurveillanceConfig::TRADERS_MAX)))]
    traders: Option<u32>,
    /// Orders that rest from 40 % of the events on
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    open_orders: Option<u32>,
    /// Seconds from the first event to the last
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    seconds: Option<u32>,
    /// Every cancel and execution names all it has, as the books of `unitape book` need it
    #[arg(long)]
    names_all: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

impl BenchStreamArgs {
    fn config(&self) -> SurveillanceConfig {
        let usual = SurveillanceConfig::with_events(self.events);
        SurveillanceConfig {
            seed: self.seed,
            instruments: self.instruments.unwrap_or(usual.instruments),
            traders: self.traders.unwrap_or(usual.traders),
            open_orders: self.open_orders.unwrap_or(usual.open_orders),
            seconds: self.seconds.unwrap_or(usual.seconds),
            names_all: self.names_all,
            ..usual
        }
    }
}

/// Runs the command.
pub fn run(args: BenchStreamArgs) -> output::Result {
    let written_bytes = AtomicU64::new(0);
    let mut stream = SurveillanceStream::new(args.config());
    let mut hash = Sha256::new();
    let to_stdout = args.out.as_deref() == Some(Path::new("-"));
    // In bytes of frames: two lines an event, more or less.
    let position = || (written_bytes.load(Ordering::Relaxed), 100 * args.events);
    output::with_progress("generate", position, String::new, || match (&args.tape, &args.out) {
        (Some(dir), _) => to_tape(dir, &mut stream, &mut hash, &written_bytes),
        (None, Some(path)) if !to_stdout => {
            let file = fs::File::create(path).map_err(|e| file_failure(path, e))?;
            let write_failure = |e: CommandFailure| match e {
                CommandFailure::Error(message) => {
                    CommandFailure::Error(format!("{}: {message}", path.display()))
                }
                other => other,
            };
            let mut out = std::io::BufWriter::with_capacity(1 << 16, file);
            to_lines(&mut out, &mut stream, &mut hash, &written_bytes).map_err(write_failure)
        }
        _ => to_lines(&mut output::stdout(), &mut stream, &mut hash, &written_bytes),
    })?;
    if !to_stdout {
        summary(&args, &stream, &hash.finalize())?;
    }
    Ok(CommandOutcome::Clean)
}

/// Units are put onto the tape together up to about this size.
const BATCH_BYTES: usize = 1 << 18;

fn to_tape(
    dir: &Path,
    stream: &mut SurveillanceStream,
    hash: &mut Sha256,
    written_bytes: &AtomicU64,
) -> Result<(), CommandFailure> {
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        let message = format!("{}: there is something in it already; give another directory", dir.display());
        return Err(CommandFailure::Error(message));
    }
    let mut units = Vec::new();
    stream.write_definitions(&mut units);
    let id = Sha256::digest(&units);
    let id = TapeId(u128::from_le_bytes(id[..16].try_into().expect("16 of 32 bytes")));
    let mut writer = Writer::open(dir, id, WriterOptions::default())?.0;
    writer.append(&units)?;
    loop {
        units.clear();
        while units.len() < BATCH_BYTES && stream.next_unit(&mut units) {}
        if units.is_empty() {
            break;
        }
        hash.update(&units);
        written_bytes.fetch_add(units.len() as u64, Ordering::Relaxed);
        writer.append(&units)?;
    }
    writer.close()?;
    Ok(())
}

fn to_lines(
    out: &mut dyn Write,
    stream: &mut SurveillanceStream,
    hash: &mut Sha256,
    written_bytes: &AtomicU64,
) -> Result<(), CommandFailure> {
    let (mut unit, mut lines, mut number) = (Vec::new(), Vec::new(), 0);
    while stream.next_unit(&mut unit) {
        for (_, _, frame) in frames(&unit) {
            let event = Event::new(frame).expect("a frame of ours");
            number += 1;
            write_event(
                &mut lines,
                &event,
                number,
                stream.names(),
                &EmptySourceLookup,
                EventLineDetail::Plain,
            );
            lines.push(b'\n');
        }
        hash.update(&unit);
        written_bytes.fetch_add(unit.len() as u64, Ordering::Relaxed);
        out.write_all(&lines)?;
        unit.clear();
        lines.clear();
    }
    out.flush()?;
    Ok(())
}

fn summary(args: &BenchStreamArgs, stream: &SurveillanceStream, hash: &[u8]) -> Result<(), CommandFailure> {
    let counts = stream.counts();
    let frames_sha256: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    if args.json {
        return output::print_json(&serde_json::json!({
            "seed": args.seed,
            "events": counts.events,
            "by_kind": {
                "ref": counts.references,
                "party": counts.parties,
                "order_new": counts.orders,
                "order_amend": counts.amends,
                "order_cancel": counts.cancels,
                "exec": counts.executions,
                "trade": counts.trades,
                "bbo": counts.best_prices,
            },
            "bare": { "order_cancel": counts.bare_cancels, "exec": counts.bare_executions },
            "planted": {
                "wash_trade": counts.wash_trades,
                "layering": counts.layerings,
                "flood": counts.floods,
            },
            "open_orders": counts.open_orders,
            "open_orders_max": counts.open_orders_max,
            "frames_sha256": frames_sha256,
        }));
    }
    let destination = args.tape.as_deref().or(args.out.as_deref()).unwrap_or(Path::new("-"));
    say!("{} events in {}", output::grouped(counts.events), destination.display());
    for (kind, count) in [
        ("ref", counts.references),
        ("party", counts.parties),
        ("order_new", counts.orders),
        ("order_amend", counts.amends),
        ("order_cancel", counts.cancels),
        ("exec", counts.executions),
        ("trade", counts.trades),
        ("bbo", counts.best_prices),
    ] {
        say!("  {kind:<13} {:>12}  {:>5.1} %", output::grouped(count), percent_of(count, counts.events));
    }
    let (cancels, executions) = (
        percent_of(counts.bare_cancels, counts.cancels),
        percent_of(counts.bare_executions, counts.executions),
    );
    say!("  only the order id: {cancels:.1} % of the cancels, {executions:.1} % of the executions");
    say!("  open orders: {} at most", output::grouped(counts.open_orders_max));
    say!(
        "  planted: {} wash trades, {} layers, {} floods",
        counts.wash_trades,
        counts.layerings,
        counts.floods
    );
    say!("  SHA-256 of the frames: {frames_sha256}");
    Ok(())
}

fn percent_of(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}
