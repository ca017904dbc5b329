//! `unitape decode`: bytes to fields, without a mapping.

use crate::output::{
    self, CommandFailure, CommandOutcome, escape_line, grouped, note, open_file, read_bytes,
};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_base::toml;
use unitape_codec::fix::{
    FieldSeparator, FixDecodeOptions, FixDictionary, FixFramer, FixLeniency, decode_json,
};
use unitape_codec::fixed::{self, FixedWidthLayout};
use unitape_codec::text::{self, jsonl, mail, xml};
use unitape_codec::{csv, iex, iso20022, itch, swift_mt};
use unitape_fast as fast;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct DecodeArgs {
    #[command(subcommand)]
    format: FormatArgs,
}

#[derive(Debug, clap::Subcommand)]
enum FormatArgs {
    /// Decode FAST by the templates of its venue
    #[command(after_help = "Examples:
  unitape decode fast --templates templates.xml day.frames --json | head -n 3
  unitape decode fast --templates EMDI.xml --framing emdi --reset-per-packet eurex.pcap --json
  unitape decode fast --templates cme.xml --framing cme --reset-per-message packets.pcap --json
  echo 'c0 81 85' | unitape decode fast --templates T.xml --framing hexlines - --json

One decoder reads all files and carries its dictionaries from message to message. A bad message leaves the dictionaries unchanged. Exit code 3 when messages were bad: each is printed with its error of the specification (D2, R6, …). Exit code 1 when a template file is wrong: the error (S1 to S5) names the file and the line. docs/formats-fast.md has the details.")]
    Fast(FastArgs),
    /// Decode FIX tag=value
    #[command(after_help = "Examples:
  unitape decode fix market.fix --json | head -n 3
  unitape decode fix orders.log --sep '|' --dictionary FIX44.xml --json
  unitape decode fix gateway.log --log --sep '^A' --json
  cat orders.fix | unitape decode fix - --json

Exit code 3 when messages were bad: each is printed with its error, and all others are decoded. The content of a dictionary, and what unitape left out of it and why, goes to stderr. docs/formats-fix.md has the details.")]
    Fix(FixArgs),
    /// Decode fixed-width records by a layout
    #[command(after_help = "Examples:
  unitape decode fixed --layout nyse-taq-bbo-98 quotes.txt --json | head -n 3
  unitape decode fixed --layout mine.toml records.dat --json

The layout is a shipped one or a file; docs/formats-fixed.md describes layouts. Exit code 3 when records were bad: each is printed with its error, and all others are decoded.")]
    Fixed(FixedArgs),
    /// Decode rows of separated values (CSV, TSV, pipes) by a layout
    #[command(after_help = "Examples:
  unitape decode csv --layout nyse-taq-trades EQY_US_ALL_TRADE_20161024.txt --json | head -n 3
  unitape decode csv --layout mine.toml prices.csv --json

The layout is a shipped one or a file; docs/formats-csv.md describes layouts. If the layout takes the day from the name of the file, stdin has no day. Exit code 3 when rows were bad: each is printed with its error, and all others are decoded.")]
    Csv(FixedArgs),
    /// Decode SWIFT MT: messages in blocks, RJE files, statements without blocks
    #[command(after_help = "Examples:
  unitape decode swift payments.rje --json | head -n 3
  unitape decode swift statement.sta --json
  cat payments.fin | unitape decode swift - --json

Exit code 3 when messages were bad: each is printed with its error, and all others are decoded. A value that breaks the format of its tag is printed as an error; the rest of its message is decoded.")]
    Swift(PlainArgs),
    /// Decode NASDAQ TotalView-ITCH 5.0, each message with two bytes of length before it
    #[command(after_help = "Examples:
  unitape decode itch 01302020.NASDAQ_ITCH50 --json | head -n 3
  gzip -dc 01302020.NASDAQ_ITCH50.gz | unitape decode itch - --json | grep '\"type\":\"Q\"'
  unitape decode itch session.soup --framing soup --json

Exit code 3 when messages were bad: each is printed with its error, and all others are decoded.")]
    Itch(ItchArgs),
    /// Decode IEX TOPS, DEEP and DEEP+: packets of IEX-TP, in a capture or back to back
    #[command(after_help = "Examples:
  unitape decode iex capture.pcap --json | head -n 3
  gzip -dc 20260302_IEXTP1_DEEP1.0.pcap.gz | unitape decode iex - --json | grep '\"type\":\"T\"'

Exit code 3 when messages were bad: each is printed with its error, and all others are decoded. docs/formats-iex.md has the fields.")]
    Iex(PlainArgs),
    /// Decode ISO 20022 messages in XML, bare or wrapped
    #[command(after_help = "Examples:
  unitape decode iso20022 payments.xml --json | head -n 3
  unitape decode iso20022 statement.xml
  cat batch.xml | unitape decode iso20022 - --json

A file may have any number of documents, with or without envelopes. Exit code 3 when messages were bad: each is printed with its error, and all others are decoded.")]
    Iso20022(PlainArgs),
    /// Decode JSON Lines, one object a line, into values by path
    #[command(after_help = "Examples:
  unitape decode jsonl news.jsonl --json | head -n 3
  jq -c '.[]' export/general/2026-03-02.json | unitape decode jsonl - --json

Numbers are printed as they were written. Exit code 3 when lines were bad: each is printed with its error, and all others are decoded. docs/formats-text.md has the details.")]
    Jsonl(PlainArgs),
    /// Decode e-mail: RFC 5322 messages with MIME, alone or in an mbox
    #[command(after_help = "Examples:
  unitape decode mail message.eml --json
  unitape decode mail archive.mbox --json | head -n 3

Text is decoded to UTF-8. Attachments are printed by name alone. Exit code 3 when messages were bad: each is printed with its error, and all others are decoded. docs/formats-text.md has the details.")]
    Mail(PlainArgs),
    /// Decode news in XML (RSS, Atom, NewsML-G2) item by item
    #[command(after_help = "Examples:
  unitape decode newsxml feed.xml --json | head -n 3
  curl -s https://wire.example/feed.xml | unitape decode newsxml - --json

Elements and attributes are printed by their path below the item. Markup is printed as text. Exit code 3 when messages were bad: each is printed with its error, and all others are decoded. docs/formats-text.md has the details.")]
    Newsxml(PlainArgs),
}

#[derive(Debug, clap::Args)]
struct FastArgs {
    /// Files; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file of templates, FAST 1.1 or 1.2 (repeatable; references go from any to any other)
    #[arg(long, required = true, value_name = "T.xml")]
    templates: Vec<PathBuf>,
    /// The template of messages that come without a template's id, until one names another
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// How messages are separated
    #[arg(long, value_enum, default_value = "frames")]
    framing: FastFraming,
    /// Empty the dictionaries before each message
    #[arg(long, conflicts_with = "reset_per_packet")]
    reset_per_message: bool,
    /// Empty the dictionaries before each packet, however many messages it has
    #[arg(long)]
    reset_per_packet: bool,
    /// Raise the reportable errors too: values longer than they have to be, bits without a meaning (R6, R7, R8, R9)
    #[arg(long)]
    strict: bool,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FastFraming {
    /// Four bytes of length (lowest first) before each message, or one in each datagram of a pcap
    Frames,
    /// The same, with CME's number and channel before each message; or a log with packets in hexadecimal
    Cme,
    /// Four bytes of number before each message, back to back
    Moex,
    /// Packets as with `frames`, each with its header and any number of messages
    Emdi,
    /// Blocks of messages, each after its length as a FAST integer
    LengthPrefix,
    /// Messages back to back
    Raw,
    /// A message in hexadecimal a line; the offset is that of the line
    #[value(name = "hexlines")]
    HexLines,
}

#[derive(Debug, clap::Args)]
struct ItchArgs {
    /// Files; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How messages are separated
    #[arg(long, value_enum, default_value = "length")]
    framing: ItchFraming,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ItchFraming {
    /// Two bytes of length before each, as in NASDAQ's files
    Length,
    /// Packets of SoupBinTCP
    Soup,
}

#[derive(Debug, clap::Args)]
struct PlainArgs {
    /// Files; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct FixArgs {
    /// Files; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A dictionary for repeating groups: QuickFIX XML or FIX Orchestra (repeatable)
    #[arg(long, value_name = "D.xml")]
    dictionary: Vec<PathBuf>,
    /// What separates fields: SOH, |, ; or ^A
    #[arg(long, default_value = "SOH")]
    sep: String,
    /// The lines of a log: text around the messages is its own and no fault
    #[arg(long)]
    log: bool,
    /// Accept faults: all, or those named here: length, checksum, empty, data, type
    #[arg(
        long,
        value_name = "KINDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
        value_delimiter = ','
    )]
    lenient: Vec<String>,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct FixedArgs {
    /// Files; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The layout: a file, or the name of a shipped one
    #[arg(long, value_name = "L.toml")]
    layout: PathBuf,
    /// Print as JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: DecodeArgs) -> output::Result {
    match args.format {
        FormatArgs::Fast(args) => decode_fast(&args),
        FormatArgs::Fix(args) => decode_fix(&args),
        FormatArgs::Fixed(args) => decode_fixed(&args),
        FormatArgs::Csv(args) => decode_csv(&args),
        FormatArgs::Swift(args) => decode_swift(&args),
        FormatArgs::Itch(args) => decode_itch(&args),
        FormatArgs::Iex(args) => decode_iex(&args),
        FormatArgs::Iso20022(args) => decode_iso(&args),
        FormatArgs::Jsonl(args) => decode_text(&args, jsonl::JsonlDecoder::default),
        FormatArgs::Mail(args) => decode_text(&args, mail::MailDecoder::default),
        FormatArgs::Newsxml(args) => decode_text(&args, xml::XmlDecoder::default),
    }
}

fn decode_fast(args: &FastArgs) -> output::Result {
    let framing = match args.framing {
        FastFraming::Frames => fast::StreamFraming::Frames,
        FastFraming::Cme => fast::StreamFraming::Cme,
        FastFraming::Moex => fast::StreamFraming::Moex,
        FastFraming::Emdi => fast::StreamFraming::Emdi,
        FastFraming::LengthPrefix => fast::StreamFraming::LengthPrefix,
        FastFraming::Raw => fast::StreamFraming::Raw,
        FastFraming::HexLines => fast::StreamFraming::HexLines,
    };
    let files = read_contents(&args.templates)?;
    let sources: Vec<fast::TemplateFile<'_>> =
        files.iter().map(|(name, content)| fast::TemplateFile { name, content }).collect();
    let templates = fast::Templates::load(&sources)?;
    for note in templates.notes() {
        note!("{note}");
    }
    let templates = Arc::new(templates);
    let decoder = match &args.template {
        None => fast::Decoder::new(templates),
        Some(name) => fast::Decoder::with_template(templates.clone(), name)
            .ok_or_else(|| CommandFailure::Usage(no_template(name, &templates)))?,
    };
    let mut decoder = decoder.with_strict(args.strict);
    let reset = match (args.reset_per_message, args.reset_per_packet) {
        (true, _) => fast::DictionaryResetPolicy::Message,
        (_, true) => fast::DictionaryResetPolicy::Packet,
        _ => fast::DictionaryResetPolicy::Never,
    };
    let options = fast::JsonDecodeOptions { framing, reset };
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = fast::decode_json(input, label, &mut decoder, options, out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

/// Explains why no single template has this name.
fn no_template(name: &str, templates: &fast::Templates) -> String {
    let template_names = || templates.list().iter().map(|template| template.name.local.as_str());
    match template_names().any(|template_name| template_name == name) {
        true => format!("--template {name}: several templates have this name"),
        false => format!(
            "--template {name}: no template has this name; {}",
            output::list_known_names(name, "templates", template_names())
        ),
    }
}

fn decode_fixed(args: &FixedArgs) -> output::Result {
    let (text, origin) =
        layout(&args.layout, FixedWidthLayout::built_in, FixedWidthLayout::all_built_in().collect())?;
    let layout = Arc::new(FixedWidthLayout::parse(&text, &origin)?);
    let (mut records, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = fixed::decode_json(input, label, &layout, out)?;
        records += summary.records;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "records", [records, errors])
}

fn decode_csv(args: &FixedArgs) -> output::Result {
    let (text, origin) =
        layout(&args.layout, csv::CsvLayout::built_in, csv::CsvLayout::all_built_in().collect())?;
    let layout = Arc::new(csv::CsvLayout::parse(&text, &origin)?);
    let (mut rows, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = csv::decode_json(input, label, &layout, out)?;
        rows += summary.records;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "rows", [rows, errors])
}

/// Reads the text and the origin of a layout file, or of the shipped layout with this name.
fn layout(
    name: &Path,
    shipped: impl Fn(&str) -> Option<&'static str>,
    names: Vec<&str>,
) -> Result<(String, String), CommandFailure> {
    let shipped = name.to_str().and_then(shipped);
    let text = match shipped {
        Some(text) => text.to_owned(),
        None => toml::text_of(name).map_err(|e| {
            let suggestion = toml::suggest_word(&name.to_string_lossy(), names.iter().copied());
            let kind_names = names.join(", ");
            let message =
                format!("neither a shipped layout ({kind_names}) nor a readable file: {e}{suggestion}");
            CommandFailure::Error(format!("--layout {}: {message}", name.display()))
        })?,
    };
    Ok((text, name.display().to_string()))
}

/// Passes each file, open and with its name, to `decode`, with what it writes to.
fn each_file(
    files: &[PathBuf],
    json: bool,
    mut decode: impl FnMut(&mut dyn Read, &str, &mut dyn Write) -> Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    let mut out = output::stdout();
    for path in files {
        let mut input = open_input(path)?;
        let label = path.display().to_string();
        if json {
            decode(&mut input, &label, &mut out)?;
        } else {
            decode(&mut input, &label, &mut ReadableWriter::new(&mut out))?;
        }
    }
    out.flush()?;
    Ok(())
}

fn decode_fix(args: &FixArgs) -> output::Result {
    let sep = FieldSeparator::parse(&args.sep)
        .ok_or_else(|| CommandFailure::Usage(format!("--sep {}: SOH, |, ; or ^A", args.sep)))?;
    let dictionary = match &args.dictionary[..] {
        [] => None,
        paths => Some(Arc::new(dictionary(paths)?)),
    };
    let mut lenient = FixLeniency::NONE;
    for word in &args.lenient {
        let Some(kind) = FixLeniency::parse(word) else {
            let words = FixLeniency::WORDS.map(|(name, _)| name).join(", ");
            return Err(CommandFailure::Usage(format!("--lenient={word}: one or several of {words}")));
        };
        lenient = lenient | kind;
    }
    let framer = FixFramer::default().with_sep(sep).with_lenient(lenient).with_log(args.log);
    let options = FixDecodeOptions { framer, dictionary };
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = decode_json(input, label, &options, out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

fn decode_swift(args: &PlainArgs) -> output::Result {
    let framer = swift_mt::SwiftFramer::default();
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = swift_mt::decode_json(input, label, &framer, out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

fn decode_itch(args: &ItchArgs) -> output::Result {
    let framer = itch::ItchFramer::new(match args.framing {
        ItchFraming::Length => itch::ItchTransport::Length,
        ItchFraming::Soup => itch::ItchTransport::Soup,
    });
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = itch::decode_json(input, label, framer, out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

fn decode_iex(args: &PlainArgs) -> output::Result {
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = iex::decode_json(input, label, out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

fn decode_iso(args: &PlainArgs) -> output::Result {
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = iso20022::decode_json(input, label, iso20022::MESSAGE_BYTES_MAX, out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

fn decode_text<D: text::TextMessageDecoder>(args: &PlainArgs, decoder: impl Fn() -> D) -> output::Result {
    let (mut messages, mut errors) = (0, 0);
    each_file(&args.files, args.json, |input, label, out| {
        let summary = text::decode_json(input, label, &mut decoder(), out)?;
        messages += summary.messages;
        errors += summary.errors;
        Ok(())
    })?;
    print_counts(args.json, &args.files, "messages", [messages, errors])
}

fn dictionary(paths: &[PathBuf]) -> Result<FixDictionary, CommandFailure> {
    let files = read_contents(paths)?;
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let dictionary = FixDictionary::parse(&files)?;
    for file in dictionary.files() {
        note!("{file}");
    }
    for note in dictionary.notes() {
        note!("{note}");
    }
    Ok(dictionary)
}

/// Reads the files and returns their names and contents.
fn read_contents(paths: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, CommandFailure> {
    let mut files = Vec::new();
    for path in paths {
        files.push((path.display().to_string(), read_bytes(path)?));
    }
    Ok(files)
}

fn open_input(path: &Path) -> Result<Box<dyn Read>, CommandFailure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(open_file(path)?))
}

/// Says how many `things` there were and how many of them were bad. None at all is explained, also beside JSON.
fn print_counts(json: bool, files: &[PathBuf], things: &str, [all, bad]: [u64; 2]) -> output::Result {
    if all + bad == 0 {
        let name = |path: &PathBuf| match path.as_os_str() == "-" {
            true => "stdin".to_owned(),
            false => path.display().to_string(),
        };
        let file_names: Vec<_> = files.iter().map(name).collect();
        note!("unitape: nothing was decoded: there are no {things} in {}", file_names.join(", "));
    } else if !json {
        note!("{} {things}, {} bad", grouped(all), grouped(bad));
    }
    Ok(if bad > 0 { CommandOutcome::Flawed } else { CommandOutcome::Clean })
}

/// Takes JSON lines and writes them for eyes: number, offset, type, then `tag=value`.
struct ReadableWriter<'w, W: Write> {
    out: &'w mut W,
    line_bytes: Vec<u8>,
}

impl<'w, W: Write> ReadableWriter<'w, W> {
    fn new(out: &'w mut W) -> Self {
        Self { out, line_bytes: Vec::new() }
    }

    fn flush_line(&mut self) -> std::io::Result<()> {
        let value: serde_json::Value = serde_json::from_slice(&self.line_bytes)?;
        self.line_bytes.clear();
        self.line_bytes.extend_from_slice(escape_line(&readable_text(&value)).as_bytes());
        self.line_bytes.push(b'\n');
        self.out.write_all(&self.line_bytes)?;
        self.line_bytes.clear();
        Ok(())
    }
}

fn readable_text(value: &serde_json::Value) -> String {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    let mut out = format!("{} @{}", value["n"], value["offset"]);
    // Writing to a String cannot fail, here and below.
    if let Some(e) = value.get("error") {
        let word = |key: &str| e[key].as_str().unwrap_or("");
        _ = write!(out, " ! {}: {}", word("code"), word("message"));
        return out;
    }
    if !value["text"].is_null() {
        _ = write!(out, " # {}", text(&value["text"]));
        return out;
    }
    // The name of a template is part of its type.
    let kind = value["type"].as_str().or(value["type"]["name"].as_str());
    _ = write!(out, " {}", kind.unwrap_or(""));
    for (tag, v) in value["fields"].as_object().into_iter().flatten() {
        _ = write!(out, " {tag}={}", text(v));
    }
    // Fields in order with their tags inside; a value of several lines stays on this one.
    for field in value["fields"].as_array().into_iter().flatten() {
        let tag = field["tag"].as_str().unwrap_or("");
        _ = write!(out, " {tag}={}", text(&field["value"]).replace('\n', "⏎"));
    }
    out
}

impl<W: Write> Write for ReadableWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            self.line_bytes.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.flush_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
