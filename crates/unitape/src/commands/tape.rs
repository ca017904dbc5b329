//! `unitape tape`: look at a tape, check it, play it again.

mod filter;
mod hot;
mod keep;
mod repair;
mod rows;
mod verify;

pub use unitape_run::address::utc;

use super::range_args::{self, OutputArgs, SelectionArgs};
use super::read_args::{self, ReadArgs};
use crate::output::{
    self, CommandFailure, CommandOutcome, Destination, bytes, escape_line, grouped, note, say,
};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::{EventKind, NameKind, Position, TopicMessage};
use unitape_query::address::EventAddress;
use unitape_query::{CursorOutcome, EventCursor, Selected};
use unitape_run::removal;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TapeArgs {
    #[command(subcommand)]
    command: TapeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TapeCommand {
    /// Print events
    #[command(after_help = "Examples:
  unitape tape cat tape --json | head
  unitape tape cat tape --kind bbo --kind trade --from 1000 --to 2000
  unitape tape cat tape --symbols GB00B03MLX29,VOD --venue XLON --limit 10
  unitape tape cat tape --since 2026-03-02T14:30 --until '2026-03-02 14:30:00.5' --kind trade
  unitape tape cat tape --json --full --all     # everything a frame holds, definitions too
  unitape tape cat tape --json --follow         # follow the tape as it grows
  unitape tape cat tape --schema bbo --csv -o bbo.csv
  unitape tape cat tape --schema trades --symbols VOD --arrow -o trades.arrows

--schema prints the events of one kind as rows, in the order of the tape. Rows are a table, with --json one object a line, with --csv a header and lines, with --arrow an Arrow IPC stream. A file of -o gets its name when it is complete.

--from and --to are ordinals of events (`seq`), or tape positions with an @ before them; both are included. --since and --until keep the events with since <= ts < until, wherever they are on the tape. Messages of users have no time. An event must match every option; one value of a repeated option is enough.

Exit code 3 when retention has removed --from, or when the tape is damaged or cannot be checked. Events after the damage are printed with --skip-damage alone. Durable events are compared with their checksums before they are printed.

If a power loss cuts the tape back while cat follows it, cat reports the cut on stderr and, with --json, as an object of kind rewound. It then prints the events after the cut, and ends with exit code 3.")]
    Cat(Box<CatArgs>),
    /// Print sizes, positions and sources
    #[command(
        after_help = "Example:\n  unitape tape info tape --json\n\nThe command reads the whole tape and compares it with its checksums. Exit code 3 when something is damaged or cannot be checked."
    )]
    Info {
        /// Directory of the tape
        dir: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Verify every frame, checksum and account
    #[command(after_help = "Examples:
  unitape tape verify tape
  unitape tape verify tape --json

Exit code 3 when the tape is damaged or unverified. A tape is unverified if nobody writes it and it lacks checksums or its durable position. Bytes that no checksum covers yet are reported, and are no damage. The intact part stays usable. See: unitape tape repair --help")]
    Verify {
        /// Directory of the tape
        dir: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Repair a damaged tape that nobody writes, or say what can be repaired
    #[command(after_help = "Examples:
  unitape tape repair tape                                # say what is wrong and what would be done
  unitape tape repair tape --apply                        # make again what something else vouches for
  unitape tape repair tape --apply --accept-unverified    # and take data without a checksum as they are
  unitape tape repair tape --apply --truncate             # and cut the tape before what is damaged

A repair first copies old files to repair-N in the directory of the tape. A repair that was killed resumes with the same command. It accepts data that do not match their checksum with --accept-unverified alone. Exit code 0: the tape is intact. Exit code 3: a part is still damaged, or lost.")]
    Repair(repair::RepairArgs),
    /// Remove the oldest segments of a tape that nobody writes
    #[command(after_help = "Examples:
  unitape tape retain tape --age 30d --dry-run
  unitape tape retain tape --bytes 10000000000 --json
  unitape tape retain tape --days 7 --hold-bytes 1000000000   # what cursors have not read stays, up to 1 GB

A segment is removed when it is beyond any limit. The last segment, and segments that are not durable, are never removed. The writer of a tape applies its own limits: see [tape] in the configuration of `unitape run`.")]
    Retain(keep::RetainArgs),
    /// Replay the tape, as fast as possible or in event time
    #[command(
        after_help = "Examples:\n  unitape tape replay tape\n  unitape tape replay tape --speed 10 --json | consumer\n\nExit code 3 when something is damaged or cannot be checked, as with `unitape tape cat`."
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
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Show the hot segments of a tape and their owner; adopt or forget foreign ones
    #[command(after_help = "Examples:
  unitape tape hot tape
  unitape tape hot moved --adopt     # the tape was moved to another file system before it was closed
  unitape tape hot backup --forget   # open it from its own files

The hot segments of a tape are in shared memory and belong to its directory, also after its writer has died. A copy of the tape is opened from its own files. Exit code 3 when the newest part may be in hot segments of a tape that does not exist any more.")]
    Hot(hot::HotArgs),
    /// Record a hot tape from a process of its own, until stopped
    #[command(hide = true)]
    Record {
        /// Directory of the tape
        dir: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("schema", |arg| arg.conflicts_with_all(["kind", "full", "all"])), mut_arg("csv", |arg| arg.requires("schema")))]
struct CatArgs {
    /// Directory of the tape
    dir: PathBuf,
    #[command(flatten)]
    select: SelectionArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Print all that an event holds: ids, source, receive time, flags, position
    #[arg(long)]
    full: bool,
    /// Print definitions and progress marks, too
    #[arg(long)]
    all: bool,
    /// Follow the tape as it grows, until stopped
    #[arg(long, short, conflicts_with_all = ["arrow", "output"])]
    follow: bool,
    /// Write rows as an Arrow IPC stream
    #[arg(long, requires = "schema", conflicts_with_all = ["json", "csv"])]
    arrow: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: TapeArgs) -> output::Result {
    match args.command {
        TapeCommand::Cat(args) => cat_tape(&args),
        TapeCommand::Info { dir, json, read } => print_info(&dir, json, read),
        TapeCommand::Verify { dir, json } => verify::verify(&dir, json),
        TapeCommand::Repair(args) => repair::repair(&args),
        TapeCommand::Retain(args) => keep::retain(&args),
        TapeCommand::Hot(args) => hot::run(&args),
        TapeCommand::Replay { dir, speed, json, read } => replay_tape(&dir, speed, json, read),
        TapeCommand::Record { dir } => {
            let stop = output::stop_flag()?;
            output::print_hot_notice(&dir);
            let sync = unitape_tape::WriterOptions::default().sync_policy;
            unitape_tape::record(&dir, sync, removal(), &stop)?;
            Ok(CommandOutcome::Clean)
        }
    }
}

fn cat_tape(args: &CatArgs) -> output::Result {
    let selection = filter::selection(args)?;
    rows::check_terminal(args)?;
    let stop = output::stop_flag()?;
    output::print_hot_notice(&args.dir);
    let cursor = EventCursor::open(&args.dir, selection, args.read.options())?;
    let out = Destination::open(args.output.file.as_deref())?;
    match rows::schema(args)? {
        Some(schema) if args.arrow => cat_into(args, cursor, &stop, rows::RowStream::new(schema, out)?),
        Some(schema) => cat_into(args, cursor, &stop, rows::RowText::new(args, schema, out)),
        None => cat_into(
            args,
            cursor,
            &stop,
            EventLines { json: args.output.json, full: args.full, line_bytes: Vec::new(), destination: out },
        ),
    }
}

/// The form in which `tape cat` writes what was selected.
trait CatOutput {
    /// Adds an event or a message.
    fn add(&mut self, address: EventAddress, selected: Selected<'_>);
    /// Writes what was added, as far as it must not wait.
    fn write(&mut self) -> Result<(), CommandFailure>;
    /// Writes all that was added.
    fn flush(&mut self) -> Result<(), CommandFailure>;
    /// Prints that the tape was cut.
    fn rewound(&mut self, from: Position, to: Position) -> Result<(), CommandFailure>;
    /// Ends the output; gives whether all of it could be written as it is.
    fn finish(self) -> Result<bool, CommandFailure>;
}

fn cat_into(
    args: &CatArgs,
    mut cursor: EventCursor,
    stop: &AtomicBool,
    mut output: impl CatOutput,
) -> output::Result {
    if !cursor.is_complete() {
        range_args::print_removed(&cursor.filter().range(), cursor.follower());
    }
    loop {
        let outcome = match cursor.next(|address, selected| output.add(address, selected)) {
            Ok(CursorOutcome::Given) => {
                output.write()?;
                continue;
            }
            Ok(CursorOutcome::AtEnd) => {
                output.flush()?;
                if !args.follow || stop.load(Ordering::Relaxed) {
                    break;
                }
                cursor.wait()
            }
            other => other,
        };
        // Whatever ends or interrupts the output, the lines before it are printed.
        output.flush()?;
        match outcome? {
            CursorOutcome::Rewound { from, to } => output.rewound(from, to)?,
            CursorOutcome::Done => break,
            CursorOutcome::Given | CursorOutcome::AtEnd | CursorOutcome::Paused => {}
        }
    }
    let is_exact = output.finish()?;
    if !args.follow {
        filter::explain(args, &cursor, &args.dir);
        filter::explain_end(&cursor);
    }
    let end_outcome = output::outcome_after_rewinds(cursor.follower().rewind_count());
    let end_outcome = if cursor.is_complete() && is_exact { end_outcome } else { CommandOutcome::Flawed };
    read_args::finish(cursor.reader(), cursor.names().lost_names(), end_outcome)
}

/// Events as lines.
struct EventLines {
    json: bool,
    full: bool,
    line_bytes: Vec<u8>,
    destination: Destination,
}

impl CatOutput for EventLines {
    fn add(&mut self, address: EventAddress, selected: Selected<'_>) {
        self.line_bytes.clear();
        match selected {
            Selected::Event(event, names) => {
                let detail = match self.full {
                    true => EventLineDetail::FullAt(address.position),
                    false => EventLineDetail::Plain,
                };
                write_event(&mut self.line_bytes, &event, address.seq, names.dictionary(), names, detail);
            }
            Selected::Message(message) => {
                write_message(
                    &mut self.line_bytes,
                    &message,
                    address.seq,
                    self.full.then_some(address.position),
                );
            }
        }
    }

    fn write(&mut self) -> Result<(), CommandFailure> {
        if !self.json {
            self.line_bytes = readable(&self.line_bytes);
        }
        self.line_bytes.push(b'\n');
        Ok(self.destination.write_all(&self.line_bytes)?)
    }

    fn flush(&mut self) -> Result<(), CommandFailure> {
        Ok(self.destination.flush()?)
    }

    fn rewound(&mut self, from: Position, to: Position) -> Result<(), CommandFailure> {
        print_rewind(self.json, from, to, &mut self.destination)
    }

    fn finish(self) -> Result<bool, CommandFailure> {
        self.destination.finish()?;
        Ok(true)
    }
}

/// Prints that the tape was cut.
fn print_rewind(
    json: bool,
    from: Position,
    to: Position,
    out: &mut impl Write,
) -> Result<(), CommandFailure> {
    output::print_rewound(from, to);
    if json {
        let (from, to) = (from.0, to.0);
        writeln!(out, "{}", serde_json::json!({ "kind": "rewound", "from": from, "to": to }))?;
    }
    Ok(())
}

/// Writes a user's message as text, or in hexadecimal if it is not UTF-8.
fn write_message(line: &mut Vec<u8>, message: &TopicMessage<'_>, seq: u64, position: Option<Position>) {
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

/// Writes the event for people: the time of day, the kind, and the fields without their quotes.
pub fn readable(json: &[u8]) -> Vec<u8> {
    let Ok(serde_json::Value::Object(map)) = serde_json::from_slice(json) else { return json.to_vec() };
    let number = |key: &str| map.get(key).and_then(serde_json::Value::as_i64).unwrap_or(0);
    let kind = map.get("kind").and_then(serde_json::Value::as_str).unwrap_or("");
    let time = match map.get("ts").and_then(serde_json::Value::as_i64) {
        Some(ts) if !(ts == 0 && is_timeless(kind)) && ts != i64::MIN => utc(ts),
        Some(_) => format!("{:29}", "-"),
        // A user's message has no time of its own.
        None => " ".repeat(29),
    };
    let mut out = format!("{:>9}  {time}  {kind:12}", number("seq"));
    for (key, value) in map.iter().filter(|(k, _)| !matches!(k.as_str(), "seq" | "ts" | "kind")) {
        match value {
            serde_json::Value::String(s) => out.push_str(&format!(" {key}={s}")),
            other => out.push_str(&format!(" {key}={other}")),
        }
    }
    escape_line(&out).into_owned().into_bytes()
}

/// Returns whether the time 0 of this kind means that it has no time. Definitions have no time. A progress mark or a
/// quarantine event has none before the first time of its feed.
fn is_timeless(kind: &str) -> bool {
    EventKind::reserved_from_name(kind).is_some()
}

fn print_info(dir: &Path, json: bool, read: ReadArgs) -> output::Result {
    let info = unitape_tape::info_with(dir, read.options())?;
    let notice = unitape_tape::hot_notice(dir)?;
    let outcome = match notice.as_ref().is_some_and(unitape_tape::HotNotice::may_miss_part) {
        true => CommandOutcome::Flawed,
        false => CommandOutcome::Clean,
    };
    let account = unitape_feed::TapeAccount::load_with(dir, read.options())?;
    let retention = unitape_tape::retention_status(dir)?;
    let sources: Vec<_> = account
        .sources
        .iter()
        .map(|s| {
            serde_json::json!({
                "id": s.id, "feed": s.feed, "file": s.file, "size": s.size, "blake3": s.hash,
                "format": s.format_id.format, "mapping": s.format_id.mapping, "through": s.through, "complete": s.end,
            })
        })
        .collect();
    if json {
        let names: serde_json::Map<_, _> = NameKind::ALL
            .iter()
            .filter(|d| account.names.len(**d) > 0)
            .map(|d| (d.name().to_owned(), account.names.len(*d).into()))
            .collect();
        output::print_json(&serde_json::json!({
            "tape": info.id.to_string(), "format": info.format, "segment_bytes": info.segment_bytes,
            "segments": info.segments, "first": info.oldest_position.0, "end": info.end_position.0, "durable": info.durable.0,
            "frames": info.frames, "events": info.ordinals, "disk_bytes": info.disk_bytes,
            "retained": { "frames": info.frames, "events": info.ordinals - info.first_ordinal },
            "ever": { "events": info.ordinals },
            "writer": info.writer, "backing": if info.hot_dir.is_some() { "hot" } else { "file" },
            "hot": info.hot_dir, "hot_notice": notice.map(|notice| notice.to_string()),
            "kept": keep::fields(&retention),
            "names": names, "sources": sources, "account": account.summary(),
            "checks": read_args::fields(&info.damaged, &info.unverified_bytes),
        }))?;
        return read_args::finish_with(
            &info.damaged,
            &info.unverified_bytes,
            account.names.lost_names(),
            outcome,
        );
    }
    say!("tape      {}, format {}", info.id, info.format);
    say!("segments  {} of {}, {} on disk", info.segments, bytes(info.segment_bytes), bytes(info.disk_bytes));
    say!("positions {} to {}, durable to {}", info.oldest_position, info.end_position, info.durable);
    let retained = info.ordinals - info.first_ordinal;
    say!("frames    {} retained, of them {} events", grouped(info.frames), grouped(retained));
    say!("events    {} ever", grouped(info.ordinals));
    match info.writer {
        Some(pid) => say!("writer    process {pid}"),
        None => say!("writer    none"),
    }
    if let Some(hot) = &info.hot_dir {
        say!("hot       {}", hot.display());
    }
    if let Some(notice) = &notice {
        say!("notice    {notice}");
    }
    keep::print_retention(&retention)?;
    for d in NameKind::ALL.iter().filter(|d| account.names.len(**d) > 0) {
        say!("names     {} {}", grouped(account.names.len(*d).into()), d.name());
    }
    for s in &account.sources {
        let state = if s.end { "complete".to_owned() } else { format!("through byte {}", s.through) };
        say!("source    {}/{}: {} messages, {state}", s.feed, s.file, grouped(s.tally.messages));
    }
    read_args::finish_with(&info.damaged, &info.unverified_bytes, account.names.lost_names(), outcome)
}

fn replay_tape(dir: &Path, speed: f64, json: bool, read: ReadArgs) -> output::Result {
    if !speed.is_finite() || speed < 0.0 {
        return Err(CommandFailure::Usage("--speed is 0 or more".to_owned()));
    }
    let stop = output::stop_flag()?;
    output::print_hot_notice(dir);
    let (mut reader, mut names) = read.open(dir)?;
    let mut out = output::stdout();
    let mut line = Vec::new();
    let started_at = Instant::now();
    let (mut events, mut read_bytes, mut first_ts) = (0u64, 0u64, None);
    while let Some((ordinal, frame)) = reader.next_counted()? {
        let seq = ordinal + 1;
        read_bytes += frame.bytes.len() as u64;
        let (position, meta) = (frame.position, frame.header.is_meta());
        let event = match names.admit_frame(frame.bytes) {
            Ok(Some(event)) if !meta => event,
            Ok(_) => continue,
            Err(flaw) => {
                out.flush()?;
                reader.refuse(position, &flaw)?;
                continue;
            }
        };
        events += 1;
        if speed > 0.0 {
            let ts = event.ts_event().0;
            let due = (ts - *first_ts.get_or_insert(ts)).max(0) as f64 / speed / 1e9;
            while started_at.elapsed().as_secs_f64() < due {
                if stop.load(Ordering::Relaxed) {
                    out.flush()?;
                    return read_args::finish(&reader, names.lost_names(), CommandOutcome::Clean);
                }
                let seconds_left = due - started_at.elapsed().as_secs_f64();
                out.flush()?;
                std::thread::sleep(Duration::from_secs_f64(seconds_left.clamp(0.0, 0.05)));
            }
        }
        if json {
            line.clear();
            write_event(&mut line, &event, seq, names.dictionary(), &names, EventLineDetail::Plain);
            line.push(b'\n');
            out.write_all(&line)?;
        }
    }
    out.flush()?;
    let s = started_at.elapsed().as_secs_f64();
    let rate = (events as f64 / s) as u64;
    let summary =
        format!("{} events, {} in {s:.3} s: {} events/s", grouped(events), bytes(read_bytes), grouped(rate));
    if json {
        note!("{summary}");
    } else {
        say!("{summary}");
    }
    read_args::finish(&reader, names.lost_names(), CommandOutcome::Clean)
}
