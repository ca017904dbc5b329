//! `unitape tape`: look at a tape, check it, play it again.

mod keep;

pub use keep::removal;

use crate::output::{self, Done, Failure, bytes, grouped, say};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use unitape_codec::events::{Form, Sources, write_event};
use unitape_model::{Dict, Dictionary, Event, Field, Kind, Message, Position, Value};
use unitape_tape::{Definitions, Reader, Start};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print events
    #[command(after_help = "Examples:
  unitape tape cat tape --json | head
  unitape tape cat tape --kind bbo --kind trade --from 1000 --to 2000
  unitape tape cat tape --json --full --all     # everything a frame holds, definitions too
  unitape tape cat tape --json --follow         # go on as the tape grows

--from and --to are ordinals of events (`seq`), or tape positions with an @ before them.")]
    Cat(Cat),
    /// Sizes, positions, what it was made from
    #[command(after_help = "Example:\n  unitape tape info tape --json")]
    Info {
        /// Directory of the tape
        dir: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check every frame, checksum and account
    #[command(
        after_help = "Example:\n  unitape tape verify tape\n\nExit code 3 when something is damaged; what is intact stays usable."
    )]
    Verify {
        /// Directory of the tape
        dir: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove the oldest segments of a tape that nobody writes
    #[command(after_help = "Examples:
  unitape tape retain tape --age 30d --dry-run
  unitape tape retain tape --bytes 10000000000 --json
  unitape tape retain tape --days 7 --hold-bytes 1000000000   # what cursors have not read stays, up to 1 GB

A segment goes when any limit says so; the one of the end, and what is not durable, never does. A tape that is being
written is retained by its writer: see [tape] in the configuration of `unitape run`.")]
    Retain(keep::Retain),
    /// Read the tape as its readers do, as fast as it goes or in its own time
    #[command(
        after_help = "Examples:\n  unitape tape replay tape\n  unitape tape replay tape --speed 10 --json | consumer"
    )]
    Replay {
        /// Directory of the tape
        dir: PathBuf,
        /// In event time: 1 is as it was, 10 ten times faster; 0 as fast as it goes
        #[arg(long, default_value_t = 0.0)]
        speed: f64,
        /// Print the events as JSON
        #[arg(long)]
        json: bool,
    },
    /// Record a hot tape from a process of its own, until stopped
    #[command(hide = true)]
    Record {
        /// Directory of the tape
        dir: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Cat {
    /// Directory of the tape
    dir: PathBuf,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
    /// With all that an event holds: ids, source, receive time, flags, position
    #[arg(long)]
    full: bool,
    /// Definitions and progress marks too
    #[arg(long)]
    all: bool,
    /// First event: an ordinal, or @position
    #[arg(long)]
    from: Option<String>,
    /// Last event: an ordinal, or @position
    #[arg(long)]
    to: Option<String>,
    /// Only events of this kind (repeatable)
    #[arg(long)]
    kind: Vec<String>,
    /// Go on as the tape grows, until stopped
    #[arg(long, short)]
    follow: bool,
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    match args.command {
        Command::Cat(args) => cat(&args),
        Command::Info { dir, json } => info(&dir, json),
        Command::Verify { dir, json } => verify(&dir, json),
        Command::Retain(args) => keep::retain(&args),
        Command::Replay { dir, speed, json } => replay(&dir, speed, json),
        Command::Record { dir } => {
            let stop = output::stop_flag()?;
            let sync = unitape_tape::Options::default().sync;
            unitape_tape::record(&dir, sync, removal(), &stop)?;
            Ok(Done::Clean)
        }
    }
}

/// Names and sources met on a tape so far.
#[derive(Default)]
pub struct TapeNames {
    /// Names of ids.
    pub names: Dictionary,
    /// Sources by id.
    pub sources: Sources,
}

impl TapeNames {
    /// What the definitions log of the tape in `dir` knows: the names of segments that retention has removed.
    pub fn from_log(dir: &Path) -> Result<Self, Failure> {
        let mut this = Self::default();
        // A tape that is being made may have no log yet; its definitions are then all on it.
        let Ok(mut log) = Definitions::open(dir) else { return Ok(this) };
        while let Ok(Some((_, frame))) = log.next() {
            if let Some(event) = Event::new(frame) {
                this.learn(&event);
            }
        }
        Ok(this)
    }

    /// Takes a definition.
    pub fn learn(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::Define => {
                let uint = |field| match event.field(field, &mut [0; 36]) {
                    Some(Value::UInt(v)) => v,
                    _ => 0,
                };
                let mut scratch = [0; 36];
                if let (Some(dict), Some(Value::Text(name))) =
                    (Dict::from_u8(uint(Field::Dict) as u8), event.field(Field::Name, &mut scratch))
                {
                    self.names.define(dict, uint(Field::Index) as u32, name.as_bytes());
                }
            }
            Kind::Source => _ = self.sources.define(event),
            _ => {}
        }
    }
}

/// A bound of what is printed.
#[derive(Clone, Copy)]
enum Bound {
    Ordinal(u64),
    Position(u64),
}

impl Bound {
    fn parse(text: &str) -> Result<Self, Failure> {
        let bad = || Failure::Usage(format!("`{text}` is neither an ordinal nor an @position"));
        match text.strip_prefix('@') {
            Some(position) => position.parse().map(Bound::Position).map_err(|_| bad()),
            None => text.parse().map(Bound::Ordinal).map_err(|_| bad()),
        }
    }

    fn is_before(self, seq: u64, position: u64) -> bool {
        match self {
            Bound::Ordinal(n) => seq < n,
            Bound::Position(p) => position < p,
        }
    }

    fn is_after(self, seq: u64, position: u64) -> bool {
        match self {
            Bound::Ordinal(n) => seq > n,
            Bound::Position(p) => position > p,
        }
    }
}

fn cat(args: &Cat) -> output::Result {
    let from = args.from.as_deref().map(Bound::parse).transpose()?;
    let to = args.to.as_deref().map(Bound::parse).transpose()?;
    let mut kinds = Vec::new();
    let messages = args.kind.iter().any(|name| name == "message");
    for name in args.kind.iter().filter(|name| *name != "message") {
        let known = || Kind::EVENTS.map(Kind::name).join(", ");
        let kind = Kind::from_name(name)
            .ok_or_else(|| Failure::Usage(format!("no kind `{name}`; kinds: {}, message", known())))?;
        kinds.push(kind);
    }
    let stop = output::stop_flag()?;
    let mut reader = Reader::open(&args.dir, Start::Oldest)?;
    let mut tape = TapeNames::from_log(&args.dir)?;
    let mut out = output::stdout();
    let mut line = Vec::new();
    loop {
        // Ordinals count from 1, as people do and as the vectors of events do.
        let seq = reader.ordinal() + 1;
        let Some(frame) = reader.next()? else {
            out.flush()?;
            if !args.follow || stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(Done::Clean);
            }
            reader.wait(Duration::from_millis(200))?;
            continue;
        };
        let position = frame.position;
        if to.is_some_and(|b| b.is_after(seq, position.0)) {
            out.flush()?;
            return Ok(Done::Clean);
        }
        let within = from.is_none_or(|b| !b.is_before(seq, position.0));
        line.clear();
        if let Some(message) = frame.message() {
            if within && (args.kind.is_empty() || messages) {
                write_message(&mut line, &message, seq, args.full.then_some(position));
            }
        } else if let Some(event) = Event::new(frame.bytes) {
            let meta = frame.header.is_meta();
            if meta {
                tape.learn(&event);
            }
            if within && (!meta || args.all) && (args.kind.is_empty() || kinds.contains(&event.kind())) {
                let form = if args.full { Form::FullAt(position) } else { Form::Plain };
                write_event(&mut line, &event, seq, &tape.names, &tape.sources, form);
            }
        } else {
            return Err(Failure::Error(format!("position {position}: a frame of a kind we do not know")));
        }
        if !line.is_empty() {
            if !args.json {
                line = readable(&line);
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
    }
}

/// A user's message: text where it is such, else hexadecimal.
fn write_message(line: &mut Vec<u8>, message: &Message<'_>, seq: u64, position: Option<Position>) {
    let mut object = serde_json::json!({ "seq": seq, "kind": "message", "topic": message.topic });
    object["bytes"] = match std::str::from_utf8(message.bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let hex: String = message.bytes.iter().map(|b| format!("{b:02x}")).collect();
            serde_json::json!({ "hex": hex })
        }
    };
    if let Some(position) = position {
        object["position"] = position.0.into();
    }
    line.extend_from_slice(object.to_string().as_bytes());
}

/// The same for eyes: time of day, kind, and the fields without their quotes.
pub fn readable(json: &[u8]) -> Vec<u8> {
    let Ok(serde_json::Value::Object(map)) = serde_json::from_slice(json) else { return json.to_vec() };
    let number = |key: &str| map.get(key).and_then(serde_json::Value::as_i64).unwrap_or(0);
    let kind = map.get("kind").and_then(serde_json::Value::as_str).unwrap_or("");
    // A user's message has no time of its own.
    let time = if map.contains_key("ts") { utc(number("ts")) } else { " ".repeat(29) };
    let mut out = format!("{:>9}  {time}  {kind:12}", number("seq"));
    for (key, value) in map.iter().filter(|(k, _)| !matches!(k.as_str(), "seq" | "ts" | "kind")) {
        match value {
            serde_json::Value::String(s) => out.push_str(&format!(" {key}={s}")),
            other => out.push_str(&format!(" {key}={other}")),
        }
    }
    out.into_bytes()
}

/// `2011-11-24 06:28:56.151000000`, of nanoseconds since 1970.
pub fn utc(ns: i64) -> String {
    let (days, of_day) = (ns.div_euclid(86_400_000_000_000), ns.rem_euclid(86_400_000_000_000));
    let (s, n) = (of_day / 1_000_000_000, of_day % 1_000_000_000);
    // Days to a date of the Gregorian calendar, counted in eras of 400 years that begin on 1 March.
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (d, m) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let y = yoe + era * 400 + i64::from(m <= 2);
    format!("{y:04}-{m:02}-{d:02} {:02}:{:02}:{:02}.{n:09}", s / 3600, s / 60 % 60, s % 60)
}

fn info(dir: &Path, json: bool) -> output::Result {
    let info = unitape_tape::info(dir)?;
    let account = unitape_feed::Account::of(dir)?;
    let kept = unitape_tape::keeping(dir)?;
    let sources: Vec<_> = account
        .sources
        .iter()
        .map(|s| {
            serde_json::json!({
                "id": s.id, "feed": s.feed, "file": s.file, "size": s.size, "blake3": s.hash,
                "format": s.sort.format, "mapping": s.sort.mapping, "through": s.through, "complete": s.end,
            })
        })
        .collect();
    if json {
        let names: serde_json::Map<_, _> = Dict::ALL
            .iter()
            .filter(|d| account.dictionary.len(**d) > 0)
            .map(|d| (d.name().to_owned(), account.dictionary.len(*d).into()))
            .collect();
        output::print_json(&serde_json::json!({
            "tape": info.id.to_string(), "format": info.format, "segment_bytes": info.segment_bytes,
            "segments": info.segments, "first": info.first.0, "end": info.end.0, "durable": info.durable.0,
            "frames": info.frames, "events": info.ordinals, "disk_bytes": info.disk_bytes,
            "writer": info.writer, "backing": if info.hot.is_some() { "hot" } else { "file" },
            "kept": keep::fields(&kept),
            "names": names, "sources": sources, "account": account.summary(),
        }))?;
        return Ok(Done::Clean);
    }
    say!("tape      {}, format {}", info.id, info.format);
    say!("segments  {} of {}, {} on disk", info.segments, bytes(info.segment_bytes), bytes(info.disk_bytes));
    say!("positions {} to {}, durable to {}", info.first, info.end, info.durable);
    say!("frames    {}, of them {} events", grouped(info.frames), grouped(info.ordinals));
    match info.writer {
        Some(pid) => say!("writer    process {pid}"),
        None => say!("writer    none"),
    }
    keep::tell(&kept)?;
    for d in Dict::ALL.iter().filter(|d| account.dictionary.len(**d) > 0) {
        say!("names     {} {}", grouped(account.dictionary.len(*d).into()), d.name());
    }
    for s in &account.sources {
        let state = if s.end { "complete".to_owned() } else { format!("through byte {}", s.through) };
        say!("source    {}/{}: {} messages, {state}", s.feed, s.file, grouped(s.tally.messages));
    }
    Ok(Done::Clean)
}

fn verify(dir: &Path, json: bool) -> output::Result {
    let report = unitape_tape::verify(dir)?;
    let account = unitape_feed::Account::of(dir);
    let mut problems: Vec<String> = report
        .problems
        .iter()
        .map(|p| {
            let positions = p.positions.map(|(from, to)| format!(" (positions {from} to {to})"));
            let positions = positions.unwrap_or_default();
            format!("{} at offset {}: {}{positions}", p.file.display(), p.offset, p.what)
        })
        .collect();
    match &account {
        Ok(account) => {
            for s in account.sources.iter().filter(|s| !s.tally.closes()) {
                problems.push(format!("account of {}/{} does not close", s.feed, s.file));
            }
        }
        Err(e) => problems.push(e.to_string()),
    }
    if json {
        output::print_json(&serde_json::json!({
            "frames": report.frames, "units": report.units, "events": report.events,
            "checksums": report.spans, "definitions": report.definitions, "intact_to": report.intact_to,
            "problems": problems,
        }))?;
    } else {
        say!(
            "{} frames, {} messages, {} events, {} checksums, {} definitions",
            grouped(report.frames),
            grouped(report.units),
            grouped(report.events),
            grouped(report.spans),
            grouped(report.definitions)
        );
        for p in &problems {
            say!("{p}");
        }
        if problems.is_empty() {
            say!("intact to position {}", report.intact_to);
        } else {
            say!("intact only to position {}", report.intact_to);
        }
    }
    Ok(if problems.is_empty() { Done::Clean } else { Done::Flawed })
}

fn replay(dir: &Path, speed: f64, json: bool) -> output::Result {
    if !speed.is_finite() || speed < 0.0 {
        return Err(Failure::Usage("--speed is 0 or more".to_owned()));
    }
    let stop = output::stop_flag()?;
    let mut reader = Reader::open(dir, Start::Oldest)?;
    let mut tape = TapeNames::from_log(dir)?;
    let mut out = output::stdout();
    let mut line = Vec::new();
    let started = Instant::now();
    let (mut events, mut read_bytes, mut first_ts) = (0u64, 0u64, None);
    loop {
        let seq = reader.ordinal() + 1;
        let Some(frame) = reader.next()? else { break };
        read_bytes += frame.bytes.len() as u64;
        let Some(event) = Event::new(frame.bytes) else { continue };
        if frame.header.is_meta() {
            tape.learn(&event);
            continue;
        }
        events += 1;
        if speed > 0.0 {
            let ts = event.ts_event().0;
            let due = (ts - *first_ts.get_or_insert(ts)).max(0) as f64 / speed / 1e9;
            while started.elapsed().as_secs_f64() < due {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    out.flush()?;
                    return Ok(Done::Clean);
                }
                let left = due - started.elapsed().as_secs_f64();
                out.flush()?;
                std::thread::sleep(Duration::from_secs_f64(left.clamp(0.0, 0.05)));
            }
        }
        if json {
            line.clear();
            write_event(&mut line, &event, seq, &tape.names, &tape.sources, Form::Plain);
            line.push(b'\n');
            out.write_all(&line)?;
        }
    }
    out.flush()?;
    let s = started.elapsed().as_secs_f64();
    let rate = (events as f64 / s) as u64;
    let summary =
        format!("{} events, {} in {s:.3} s: {} events/s", grouped(events), bytes(read_bytes), grouped(rate));
    if json {
        eprintln!("{summary}");
    } else {
        say!("{summary}");
    }
    Ok(Done::Clean)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_told_in_utc() {
        for (ns, text) in [
            (0, "1970-01-01 00:00:00.000000000"),
            (1_322_116_136_151_000_000, "2011-11-24 06:28:56.151000000"),
            (1_709_164_800_000_000_001, "2024-02-29 00:00:00.000000001"),
            (-1, "1969-12-31 23:59:59.999999999"),
        ] {
            assert_eq!(super::utc(ns), text);
        }
    }
}
