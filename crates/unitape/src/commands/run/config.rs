//! The configuration of `unitape run`: the types are the reference, the checks say what is allowed.

use super::udp::{Full, TimeOfDay, Udp};
use crate::config::{Flag, Loaded, Origins, load};
use crate::output::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use unitape_feed::{Error, Format, How, Input, Interface, Loader, Receive, Reference, RunFeed, Select};

/// The configuration of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The tape.
    pub tape: Tape,
    /// The run as a whole.
    #[serde(default)]
    pub run: Run,
    /// The feeds. Ties in time go to the one that stands first.
    #[serde(default)]
    pub feed: Vec<Feed>,
    /// Reference data, all files together: one instrument in several notations gets one name.
    #[serde(default)]
    pub reference: Vec<Master>,
}

/// A file of reference data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Master {
    /// The file.
    pub file: PathBuf,
    /// What reads it: a shipped mapping, a file, or `events`.
    pub mapping: String,
}

/// The tape.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tape {
    /// Its directory; made if it does not exist. Relative paths begin at the configuration file.
    pub dir: PathBuf,
    /// `file`, or `hot`: written in shared memory, with a recorder that copies it to the directory.
    #[serde(default)]
    pub backing: Backing,
    /// Bytes of a segment of a new tape, a power of two.
    #[serde(default = "segment_bytes")]
    pub segment_bytes: u64,
    /// How long what is committed may wait until it is durable.
    #[serde(default = "sync")]
    pub sync: Span,
    /// Keep about so many bytes of the tape's end.
    pub retain_bytes: Option<u64>,
    /// Keep what was finished so long ago or less.
    pub retain_age: Option<Span>,
    /// Keep what was finished on the last so many days of UTC.
    pub retain_days: Option<u32>,
    /// How long removal is announced to readers.
    #[serde(default = "notice")]
    pub retain_notice: Span,
    /// Named cursors hold what they have not read, but no more than so many bytes of the tape's end.
    pub retain_hold_bytes: Option<u64>,
}

impl Tape {
    /// What is kept of it.
    pub fn retention(&self) -> unitape_tape::Retention {
        unitape_tape::Retention {
            bytes: self.retain_bytes,
            age: self.retain_age.map(|span| span.0),
            days: self.retain_days,
            notice: self.retain_notice.0,
            hold_for_cursors: self.retain_hold_bytes,
        }
    }
}

/// Where live segments are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Backing {
    /// In the tape's directory.
    #[default]
    File,
    /// In shared memory.
    Hot,
}

/// The run as a whole.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Threads that decode; the tape does not depend on it. 0: one per core.
    pub workers: u16,
    /// `event` or `receive`: the time by which feeds are merged.
    pub merge: Merge,
    /// How long the merge waits for a feed that has nothing at hand, or `unbounded`.
    pub wait: Wait,
    /// How often directories are looked at.
    pub scan: Span,
    /// How soon the growth of a file is seen.
    pub idle: Span,
    /// How often figures are told; `0s`: never.
    pub stats: Span,
    /// Directory of the journals; by default the tape's with `.journal` behind it.
    pub journal: Option<PathBuf>,
    /// Bytes of a file of a datagram journal; the next one begins behind them.
    pub journal_file_bytes: u64,
    /// Bytes that a receiver may be ahead of the decoders.
    pub lag_bytes: u64,
    /// `together`: all feeds straight onto the tape. `apart`: each feed is a process of its own with its own tape, in
    /// the directory of the tape with `.segments` behind it, and a merge reads them.
    pub segments: Segments,
    /// An instrument that the reference data does not have puts its message into quarantine.
    pub reference_strict: bool,
}

/// How feeds and processes go together.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Segments {
    /// One process.
    #[default]
    Together,
    /// One process a feed, and the merge.
    Apart,
}

/// The time by which feeds are merged.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// Event time.
    #[default]
    Event,
    /// Receive time, where there is one.
    Receive,
}

/// A feed: exactly one of `files`, `directory`, `stdin`, `fifo`, `listen`, `connect`, `udp` says where it is from.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// Its name; no two feeds have the same.
    pub name: String,
    /// What its bytes are, by the word that `consolidate --feed` takes.
    pub format: String,
    /// A shipped mapping, or a file.
    #[serde(default)]
    pub mapping: String,
    /// Files, one after the other; plain, gz or zst, streams or captures.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// A directory whose files are read by name.
    pub directory: Option<PathBuf>,
    /// With `directory`: more files may come, and the last one may grow.
    #[serde(default = "yes")]
    pub follow: bool,
    /// Standard input.
    #[serde(default)]
    pub stdin: bool,
    /// A named pipe.
    pub fifo: Option<PathBuf>,
    /// TCP: address to listen on.
    pub listen: Option<String>,
    /// TCP: address to connect to.
    pub connect: Option<String>,
    /// With `listen` or `connect`: connections are pieces of one stream, and we say `unitape-resume N` on each.
    #[serde(default)]
    pub resume: bool,
    /// With `listen` or `connect`: the feed ends after so many connections; 0: never.
    #[serde(default)]
    pub connections: u64,
    /// UDP: a group or a local address with its port, a list of them, or `channels`: all that the mapping names.
    pub udp: Option<Udp>,
    /// With `udp`: address or name of the interface by which groups are joined.
    pub interface: Option<Interface>,
    /// With `udp = "channels"`: the same for line B, if it comes by another one.
    pub interface_b: Option<Interface>,
    /// With `udp`: at this time of UTC the journal begins a new file, and decoders that know of what came before anew.
    pub day_begins: Option<TimeOfDay>,
    /// With `udp`: bytes of the buffer of each socket.
    #[serde(default = "buffer_bytes")]
    pub buffer_bytes: usize,
    /// With `udp`: `drop` or `wait` when the decoders are too far behind; what is dropped is counted either way.
    #[serde(default)]
    pub when_full: Full,
    /// Of a capture: only datagrams to these ports.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Of a capture: only datagrams to these groups or hosts.
    #[serde(default)]
    pub groups: Vec<IpAddr>,
    /// Receive times go into the events.
    #[serde(default = "yes")]
    pub receive_times: bool,
}

/// A span of time, as text: `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// A span of time, or without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Wait(pub Option<Duration>);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no span of time; write 50us, 250ms, 10s, 5min, 12h or 30d");
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let n: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let unit_ns: u64 = match text[digits..].trim() {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return Err(wrong()),
        };
        n.checked_mul(unit_ns).map(|ns| Self(Duration::from_nanos(ns))).ok_or_else(wrong)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_micros();
        match us {
            _ if us.is_multiple_of(1_000_000) => write!(f, "{}s", us / 1_000_000),
            _ if us.is_multiple_of(1_000) => write!(f, "{}ms", us / 1_000),
            _ => write!(f, "{us}us"),
        }
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.to_string()
    }
}

impl TryFrom<String> for Wait {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "unbounded" => Ok(Self(None)),
            text => {
                text.parse().map(|Span(s)| Self(Some(s))).map_err(|e: String| format!("{e}, or unbounded"))
            }
        }
    }
}

impl From<Wait> for String {
    fn from(wait: Wait) -> String {
        wait.0.map_or_else(|| "unbounded".to_owned(), |s| Span(s).to_string())
    }
}

impl Default for Run {
    fn default() -> Self {
        let ms = |ms| Span(Duration::from_millis(ms));
        Self {
            workers: 0,
            merge: Merge::Event,
            wait: Wait(Some(Duration::from_millis(250))),
            scan: ms(100),
            idle: ms(1),
            stats: ms(10_000),
            journal: None,
            journal_file_bytes: 1 << 30,
            lag_bytes: 64 << 20,
            segments: Segments::Together,
            reference_strict: false,
        }
    }
}

fn segment_bytes() -> u64 {
    64 << 20
}

fn buffer_bytes() -> usize {
    8 << 20
}

fn sync() -> Span {
    Span(Duration::from_secs(1))
}

fn notice() -> Span {
    Span(Duration::from_secs(1))
}

fn yes() -> bool {
    true
}

/// Reads a configuration and checks what its types do not say.
pub fn read(file: &Path, flags: &[Flag]) -> Result<Loaded<Config>, Failure> {
    let mut loaded: Loaded<Config> = load(file, std::env::vars(), flags)?;
    check(&loaded.value, &loaded.origins)?;
    let base = file.parent().unwrap_or(Path::new("")).to_owned();
    loaded.value.place_at(&base);
    Ok(loaded)
}

fn check(config: &Config, origins: &Origins) -> Result<(), Failure> {
    let wrong = |key: &str, what: String| Failure::Error(format!("{}: {key}: {what}", origins.of(key)));
    let mut names = BTreeSet::new();
    if config.feed.is_empty() {
        return Err(wrong("feed", "no feed; each is a table [[feed]]".to_owned()));
    }
    if !config.tape.segment_bytes.is_power_of_two() {
        return Err(wrong("tape.segment_bytes", "a power of two is needed".to_owned()));
    }
    if config.tape.retain_days == Some(0) {
        return Err(wrong("tape.retain_days", "at least 1: today is one".to_owned()));
    }
    if config.tape.retain_hold_bytes.is_some() && !config.tape.retention().is_limited() {
        let what = "goes with retain_bytes, retain_age or retain_days: without them everything is kept";
        return Err(wrong("tape.retain_hold_bytes", what.to_owned()));
    }
    if config.run.reference_strict && config.reference.is_empty() {
        return Err(wrong("run.reference_strict", "goes with [[reference]]: there is none".to_owned()));
    }
    for feed in &config.feed {
        let key = |k: &str| format!("feed.{}.{k}", feed.name);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if feed.name.is_empty() || !feed.name.chars().all(plain) || feed.name.starts_with('.') {
            let what = format!("`{}` is no name; letters, digits, `-`, `_` and `.` are", feed.name);
            return Err(wrong(&key("name"), what));
        }
        if !names.insert(&feed.name) {
            let what = "two feeds have this name; each is a segment of its own, with its journal and its place on the tape";
            return Err(wrong(&key("name"), what.to_owned()));
        }
        let given = feed.inputs();
        if given.len() != 1 {
            let have = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            let what = format!("one of {} is needed, there is {have}", INPUTS.join(", "));
            return Err(wrong(&format!("feed.{}", feed.name), what));
        }
        let only = |k: &str, set: bool, inputs: &[&str]| match set && !inputs.contains(&given[0]) {
            true => Err(wrong(&key(k), format!("goes with {}, not with {}", inputs.join(" or "), given[0]))),
            false => Ok(()),
        };
        only("follow", !feed.follow, &["directory"])?;
        only("resume", feed.resume, &["listen", "connect"])?;
        only("connections", feed.connections > 0, &["listen", "connect"])?;
        only("interface", feed.interface.is_some(), &["udp"])?;
        only("interface_b", feed.interface_b.is_some(), &["udp"])?;
        if feed.interface_b.is_some() && feed.udp != Some(Udp::Channels) {
            let what = "goes with udp = \"channels\": other addresses have no line B";
            return Err(wrong(&key("interface_b"), what.to_owned()));
        }
        only("day_begins", feed.day_begins.is_some(), &["udp"])?;
        only("when_full", feed.when_full != Full::Drop, &["udp"])?;
        only("ports", !feed.ports.is_empty(), &["files", "directory"])?;
        only("groups", !feed.groups.is_empty(), &["files", "directory"])?;
    }
    if let Some(second) = config.feed.iter().filter(|f| f.stdin).nth(1) {
        return Err(wrong(
            &format!("feed.{}.stdin", second.name),
            "another feed reads it already".to_owned(),
        ));
    }
    if config.run.merge == Merge::Receive
        && let Some(feed) = config.feed.iter().find(|f| !f.receive_times)
    {
        let key = format!("feed.{}.receive_times", feed.name);
        return Err(wrong(&key, "a merge by receive time needs them".to_owned()));
    }
    Ok(())
}

const INPUTS: [&str; 7] = ["files", "directory", "stdin", "fifo", "listen", "connect", "udp"];

impl Config {
    /// Makes relative paths begin at the configuration file.
    fn place_at(&mut self, base: &Path) {
        let place = |path: &mut PathBuf| *path = base.join(&*path);
        place(&mut self.tape.dir);
        self.run.journal.iter_mut().for_each(place);
        // A shipped mapping is a word, a file has a path or an ending.
        let place_mapping = |mapping: &mut String| {
            if mapping.contains('/') || mapping.ends_with(".toml") {
                *mapping = base.join(&*mapping).display().to_string();
            }
        };
        for master in &mut self.reference {
            place(&mut master.file);
            place_mapping(&mut master.mapping);
        }
        for feed in &mut self.feed {
            feed.files.iter_mut().chain(&mut feed.directory).chain(&mut feed.fifo).for_each(place);
            place_mapping(&mut feed.mapping);
        }
    }

    /// Where the journals are.
    pub fn journal(&self) -> PathBuf {
        self.run.journal.clone().unwrap_or_else(|| self.beside(".journal"))
    }

    /// Where the tape of a feed is whose process is its own.
    pub fn segment_dir(&self, feed: &str) -> PathBuf {
        self.beside(".segments").join(feed)
    }

    /// Makes it the configuration of one of its feeds alone.
    pub fn only(&mut self, feed: &str, origins: &Origins) -> Result<(), Failure> {
        (self.run.journal, self.tape.dir) = (Some(self.journal()), self.segment_dir(feed));
        // A merge that begins again reads the tapes of its segments from their start.
        (self.tape.retain_bytes, self.tape.retain_age, self.tape.retain_days) = (None, None, None);
        let names = self.feed.iter().map(|f| f.name.clone()).collect::<Vec<_>>().join(", ");
        self.feed.retain(|f| f.name == feed);
        match self.feed.is_empty() {
            true => Err(Failure::Error(format!("{}: no feed `{feed}`; feeds: {names}", origins.of("feed")))),
            false => Ok(()),
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.tape.dir.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        self.tape.dir.with_file_name(name)
    }

    /// The reference data, read; none where there is none.
    pub fn reference(&self, origins: &Origins) -> Result<Option<Arc<Reference>>, Failure> {
        let wrong = |i: usize, key: &str, e: Error| {
            let key = format!("reference.{i}.{key}");
            Failure::Error(format!("{}: {key}: {e}", origins.of(&key)))
        };
        let mut loader = Loader::default();
        for (i, master) in self.reference.iter().enumerate() {
            let format = Loader::format(&master.mapping).map_err(|e| wrong(i, "mapping", e))?;
            loader.add(&master.file, &format).map_err(|e| wrong(i, "file", e))?;
        }
        if loader.is_empty() {
            return Ok(None);
        }
        // Two entries that cannot both be: the file is named where the later one stands.
        let whose = |e: &Error| match e {
            Error::Reference { path, .. } => self.reference.iter().position(|m| m.file == *path),
            _ => None,
        };
        let reference = loader.finish().map_err(|e| wrong(whose(&e).unwrap_or(0), "file", e))?;
        Ok(Some(Arc::new(reference.strictly(self.run.reference_strict))))
    }

    /// The feeds, ready to run.
    pub fn feeds(
        &self,
        origins: &Origins,
        reference: Option<&Arc<Reference>>,
    ) -> Result<Vec<RunFeed>, Failure> {
        let feed = |f: &Feed| {
            let wrong = |key: &str, e: String| {
                let key = format!("feed.{}.{key}", f.name);
                Failure::Error(format!("{}: {key}: {e}", origins.of(&key)))
            };
            let format = f
                .format(reference)
                .map_err(|e| wrong(if f.mapping.is_empty() { "format" } else { "mapping" }, e.to_string()))?;
            let input = f.input(&self.journal(), &format).map_err(|e| wrong("udp", e))?;
            Ok(RunFeed {
                name: f.name.clone(),
                format,
                input,
                how: How {
                    select: Select { ports: f.ports.clone(), groups: f.groups.clone() },
                    receive_times: f.receive_times,
                    by_receive_time: self.run.merge == Merge::Receive,
                },
            })
        };
        self.feed.iter().map(feed).collect()
    }
}

impl Feed {
    /// Its format with its mapping, as it is now, and the reference data.
    pub fn format(&self, reference: Option<&Arc<Reference>>) -> Result<Format, Error> {
        let format = Format::named(&self.format, &self.mapping)?;
        let format = match reference {
            Some(reference) => format.with_reference(reference),
            None => format,
        };
        // What cannot be compiled is to be told now, not by a worker.
        format.decoder().map(|_| format)
    }

    fn inputs(&self) -> Vec<&'static str> {
        let given = [
            !self.files.is_empty(),
            self.directory.is_some(),
            self.stdin,
            self.fifo.is_some(),
            self.listen.is_some(),
            self.connect.is_some(),
            self.udp.is_some(),
        ];
        INPUTS.iter().zip(given).filter(|(_, given)| *given).map(|(name, _)| *name).collect()
    }

    fn input(&self, journal: &Path, format: &Format) -> Result<Input, String> {
        let (resume, connections) = (self.resume, self.connections);
        let receive = if let Some(path) = &self.directory {
            return Ok(Input::Directory { path: path.clone(), follow: self.follow });
        } else if let Some(path) = &self.fifo {
            Receive::Fifo(path.clone())
        } else if let Some(address) = self.listen.clone() {
            Receive::Listen { address, resume, connections }
        } else if let Some(address) = self.connect.clone() {
            Receive::Connect { address, resume, connections }
        } else if self.udp.is_some() {
            self.receive(self.listens(format)?)
        } else if self.stdin {
            Receive::Stdin
        } else {
            return Ok(Input::Files(self.files.clone()));
        };
        Ok(Input::Journal { path: journal.join(&self.name), receive })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide once told of a key that had been renamed. Each line of its table is a key here, and the other way
    /// round, with the default that is in force.
    #[test]
    fn the_guide_tells_every_key() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide-engineer.md"));
        let guide = guide.unwrap();
        let row = |l: &str| {
            let cells: Vec<_> = l.strip_prefix("| `")?.split(" | ").map(str::to_owned).collect();
            let key = cells[0].trim_end_matches('`').to_owned();
            let known = ["tape.", "run.", "feed.", "reference."].iter().any(|s| key.starts_with(s));
            known.then(|| (key, cells[1].clone()))
        };
        let told: std::collections::BTreeMap<_, _> = guide.lines().filter_map(row).collect();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let text = "[tape]\ndir = \"t\"\nretain_bytes = 1\nretain_age = \"1h\"\nretain_days = 1\nretain_hold_bytes = 1\n[run]\njournal = \"j\"\n[[feed]]\nname = \"n\"\nformat = \"events\"\n\
                    mapping = \"m\"\nfiles = [\"f\"]\ndirectory = \"d\"\nfifo = \"p\"\nlisten = \"l\"\nconnect = \"c\"\n\
                    udp = \"239.0.0.1:1\"\ninterface = \"127.0.0.1\"\n\
                    interface_b = \"lo\"\nday_begins = \"01:00\"\n\
                    [[reference]]\nfile = \"m\"\nmapping = \"events\"\n";
        std::fs::write(&file, text).unwrap();
        let loaded: Loaded<Config> = load(&file, [], &[]).unwrap();
        let shown = crate::config::show(&loaded.value, &loaded.origins);
        let keys: std::collections::BTreeMap<_, _> = shown
            .into_iter()
            .map(|s| {
                let default = matches!(s.origin, crate::config::Origin::Default);
                let value = if default { format!("`{}`", s.value) } else { "–".to_owned() };
                (s.key.replace("feed.n.", "feed.").replace("reference.0.", "reference."), value)
            })
            .collect();
        assert_eq!(told, keys);
    }

    #[test]
    fn spans_come_back() {
        for text in ["50us", "250ms", "10s", "300s", "0s"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("5min".parse::<Span>().unwrap().to_string(), "300s");
        assert_eq!("2h".parse::<Span>().unwrap(), "120min".parse().unwrap());
        assert_eq!("3d".parse::<Span>().unwrap(), "72h".parse().unwrap());
        for text in ["", "5", "ms", "-1s", "1w", "99999999999999999999s", "99999999999999min"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
