//! The configuration of `unitape run`: the types are the reference, and the checks state the rules.

mod checks;
mod span;
mod udp;

pub use span::{TimeSpan, TimeSpanRefusal, WaitLimit};
pub use udp::{BacklogPolicy, MinuteOfDay, UdpListenTarget, UdpTargets};

use crate::Error;
use crate::files::read_text;
use crate::layered::{FlagValue, LayeredConfig, OriginTable, load, variables};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use unitape_feed::{
    ChangedSourcePolicy, DatagramFilter, DecodeOptions, FeedInput, Format, InstrumentMaster, MasterLoader,
    ReceiveSource, RunFeed,
};
use unitape_feed::{ClockLeadLimits, ClockSource, MergeWait, RestartMode, RestartPolicy, TcpFeed};
use unitape_marketdata::wire::NetworkInterface;
use unitape_model::Calendar;

/// The configuration of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The tape.
    pub tape: TapeConfig,
    /// The run as a whole.
    #[serde(default)]
    pub run: RunSettings,
    /// The feeds. The feed that is listed first wins a tie in time.
    #[serde(default)]
    pub feed: Vec<FeedConfig>,
    /// Reference data, all files together: one instrument in several notations gets one name.
    #[serde(default)]
    pub reference: Vec<ReferenceFileConfig>,
    /// The page of figures and health.
    #[serde(default)]
    pub monitor: MonitorConfig,
}

/// The page of figures and health of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MonitorConfig {
    /// The address to listen on. Without it there is no page. Everybody who reaches the address can read the figures
    /// and the names of feeds.
    pub listen: Option<SocketAddr>,
    /// A feed that has given no event for so long makes the run not ready; never without it.
    pub silent: Option<TimeSpan>,
    /// Bytes of the tape that may wait until they are durable.
    pub recorder_lag_bytes: u64,
    /// Bytes that the disk of the tape must have left.
    pub disk_free_bytes: u64,
}

impl Default for MonitorConfig {
    fn default() -> Self {
        Self { listen: None, silent: None, recorder_lag_bytes: 256 << 20, disk_free_bytes: 1 << 30 }
    }
}

/// A file of reference data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceFileConfig {
    /// The file.
    pub file: PathBuf,
    /// The mapping that reads it: a shipped mapping, a file, or `events`.
    pub mapping: String,
}

/// The tape.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TapeConfig {
    /// Its directory; made if it does not exist. Relative paths begin at the configuration file.
    pub dir: PathBuf,
    /// `file`, or `hot`: written in shared memory, with a recorder that copies it to the directory.
    #[serde(default)]
    pub backing: BackingKind,
    /// Bytes of a segment of a new tape, a power of two.
    #[serde(default = "segment_bytes")]
    pub segment_bytes: u64,
    /// The longest time until committed events are durable.
    #[serde(default = "sync")]
    pub sync: TimeSpan,
    /// Keep about this many bytes of the tape's end.
    pub retain_bytes: Option<u64>,
    /// Keep segments finished within this time.
    pub retain_age: Option<TimeSpan>,
    /// Keep segments finished on this many last days of UTC.
    pub retain_days: Option<u32>,
    /// The time for which a removal is announced to readers.
    #[serde(default = "notice")]
    pub retain_notice: TimeSpan,
    /// Retention keeps the unread part of named cursors, up to this many bytes before the tape's end.
    pub retain_hold_bytes: Option<u64>,
}

impl TapeConfig {
    /// Makes the writer's options.
    pub fn options(&self) -> unitape_tape::WriterOptions {
        let backing = match self.backing {
            BackingKind::File => unitape_tape::Backing::File,
            BackingKind::Hot => unitape_tape::Backing::Hot { dir: None, window_segments: 4 },
        };
        unitape_tape::WriterOptions {
            segment_bytes: self.segment_bytes,
            backing,
            sync_policy: unitape_tape::SyncPolicy::Every { bytes: 64 << 20, interval: self.sync.0 },
            retention: self.retention(),
            removal_options: crate::removal(),
            // Receivers write to their journals meanwhile, so that a slow disk costs a run nothing but time.
            recorder_wait: Duration::from_secs(60),
            ..unitape_tape::WriterOptions::default()
        }
    }

    /// Makes the retention limits of the tape.
    pub fn retention(&self) -> unitape_tape::RetentionLimits {
        unitape_tape::RetentionLimits {
            bytes: self.retain_bytes,
            age: self.retain_age.map(|span| span.0),
            days: self.retain_days,
            notice_period: self.retain_notice.0,
            hold_for_cursors: self.retain_hold_bytes,
        }
    }
}

/// The place of live segments.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum BackingKind {
    /// In the tape's directory.
    #[default]
    File,
    /// In shared memory.
    Hot,
}

/// The run as a whole.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Threads that decode; the tape does not depend on it. 0: one per core.
    pub workers: u16,
    /// `event` or `receive`: the time by which feeds are merged.
    pub merge: MergeTime,
    /// The time after its receipt that an event waits for connected idle feeds, or `unbounded`.
    pub wait: WaitLimit,
    /// The bound on an event's lead over its receipt, or `unbounded`; an event that leads by more is flagged
    /// `clock_ahead`.
    pub clock_lead: WaitLimit,
    /// The bound on an event's lead over the latest time of all other feeds, if no receipt is recorded.
    pub clock_lead_feeds: WaitLimit,
    /// The interval between looks at directories.
    pub scan: TimeSpan,
    /// The delay after which the growth of a file is seen.
    pub idle: TimeSpan,
    /// Threads ask again and again instead of waiting in the kernel: for the least latency, and a core for each of them.
    pub spin: bool,
    /// The interval of statistics reports; `0s`: never.
    pub stats: TimeSpan,
    /// Directory of the journals; by default the tape's with `.journal` appended.
    pub journal: Option<PathBuf>,
    /// Bytes of a file of a datagram journal; the next one begins after them.
    pub journal_file_bytes: u64,
    /// Bytes that a receiver may be ahead of the decoders.
    pub lag_bytes: u64,
    /// `together`: all feeds in this process, straight onto the tape. `apart`: each feed is a process with a tape of its own,
    /// in the tape's directory with `.segments` after it, and a merge puts these tapes onto one.
    pub segments: FeedProcessMode,
    /// An instrument that the reference data does not have puts its message into quarantine.
    pub reference_strict: bool,
    /// A file of session dates, holidays and currency pairs. It is checked when a run begins; no output depends on it yet.
    pub calendar: Option<PathBuf>,
    /// After so long without an event a live run writes a `clock` event: wall time, rounded down to a multiple.
    pub clock: Option<TimeSpan>,
}

/// The assignment of feeds to processes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FeedProcessMode {
    /// One process.
    #[default]
    Together,
    /// One process a feed, and the merge.
    Apart,
}

/// The time by which feeds are merged.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum MergeTime {
    /// Event time.
    #[default]
    Event,
    /// Receive time, where there is one.
    Receive,
}

/// A feed. Exactly one of `files`, `directory`, `stdin`, `fifo`, `listen`, `connect` and `udp` names its input.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FeedConfig {
    /// Its name; no two feeds have the same.
    pub name: String,
    /// The format of its bytes, by the word that `consolidate --feed` accepts.
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
    /// With `listen` or `connect`: the feed ends after this many connections; 0: never.
    #[serde(default)]
    pub connections: u64,
    /// With `listen` or `connect`: the kernel asks a silent peer after so long whether it is there; `0s`: never.
    #[serde(default = "keepalive")]
    pub keepalive: TimeSpan,
    /// With `listen` or `connect`: a connection that brings nothing for so long is closed; `0s`: never.
    #[serde(default = "never")]
    pub idle_limit: TimeSpan,
    /// UDP: a group or a local address with its port, a list of them, or `channels`: all that the mapping names.
    pub udp: Option<UdpTargets>,
    /// With `udp`: address or name of the interface by which groups are joined.
    pub interface: Option<NetworkInterface>,
    /// With `udp = "channels"`: the same for line B, if it comes by another one.
    pub interface_b: Option<NetworkInterface>,
    /// With `udp`: at this time of UTC the journal begins a new file, and decoders with state start afresh.
    pub day_begins: Option<MinuteOfDay>,
    /// With `udp`: bytes of the buffer of each socket.
    #[serde(default = "buffer_bytes")]
    pub buffer_bytes: usize,
    /// With `udp`: `drop` or `wait` if the decoders fall too far behind. Dropped datagrams are counted either way.
    #[serde(default)]
    pub when_full: BacklogPolicy,
    /// For a capture: only datagrams to these ports.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// For a capture: only datagrams to these groups or hosts.
    #[serde(default)]
    pub groups: Vec<IpAddr>,
    /// Receive times go into the events.
    #[serde(default = "yes")]
    pub receive_times: bool,
    /// With `files` or `directory`: other content under a name that the tape has is another source of this name.
    #[serde(default)]
    pub new_source: bool,
    /// With `files` or `directory`: a file with the same content as another file is read again.
    #[serde(default)]
    pub again: bool,
    /// `on-failure`: a failed feed is tried again until it succeeds; `never`: the feed ends.
    #[serde(default)]
    pub restart: FeedRestart,
    /// The longest wait between two tries; the first is 50 ms, and each is twice the one before.
    #[serde(default = "backoff")]
    pub backoff: TimeSpan,
    /// The time that events of other feeds wait for this one, if it differs from `run.wait`.
    pub wait: Option<WaitLimit>,
}

/// The treatment of a feed that fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FeedRestart {
    /// It ends, and the others continue.
    Never,
    /// It is tried again, as long as the cause lies outside the data.
    #[default]
    OnFailure,
}

impl Default for RunSettings {
    fn default() -> Self {
        let ms = |ms| TimeSpan(Duration::from_millis(ms));
        Self {
            workers: 0,
            merge: MergeTime::Event,
            wait: WaitLimit(Some(Duration::from_millis(250))),
            clock_lead: WaitLimit(ClockLeadLimits::default().receipt),
            clock_lead_feeds: WaitLimit(ClockLeadLimits::default().feeds),
            scan: ms(100),
            idle: ms(1),
            spin: false,
            stats: ms(10_000),
            journal: None,
            journal_file_bytes: 1 << 30,
            lag_bytes: 64 << 20,
            segments: FeedProcessMode::Together,
            reference_strict: false,
            calendar: None,
            clock: None,
        }
    }
}

fn segment_bytes() -> u64 {
    64 << 20
}

fn buffer_bytes() -> usize {
    8 << 20
}

fn sync() -> TimeSpan {
    TimeSpan(Duration::from_secs(1))
}

fn backoff() -> TimeSpan {
    TimeSpan(Duration::from_secs(5))
}

fn keepalive() -> TimeSpan {
    TimeSpan(Duration::from_secs(30))
}

fn never() -> TimeSpan {
    TimeSpan(Duration::ZERO)
}

fn notice() -> TimeSpan {
    TimeSpan(Duration::from_secs(1))
}

fn yes() -> bool {
    true
}

/// Reads a configuration and checks the rules that its types do not enforce.
///
/// # Errors
/// Fails if the file cannot be read or has an impossible value.
pub fn read(file: &Path, flags: &[FlagValue]) -> Result<LayeredConfig<RunConfig>, Error> {
    let mut loaded: LayeredConfig<RunConfig> = load(file, variables(), flags)?;
    checks::check_config(&loaded.value, &loaded.origins)?;
    let base = file.parent().unwrap_or(Path::new("")).to_owned();
    loaded.value.rebase_paths(&base);
    Ok(loaded)
}

/// The feed of the ticks that `run.clock` asks for.
pub const CLOCK_FEED: &str = "clock";

/// The keys of which each feed has one.
pub const INPUTS: [&str; 7] = ["files", "directory", "stdin", "fifo", "listen", "connect", "udp"];

impl RunConfig {
    /// Files, directories, interfaces and hosts that are to be there before a run.
    ///
    /// # Errors
    /// Fails at the first that does not exist.
    pub fn check_places(&self, origins: &OriginTable) -> Result<(), Error> {
        checks::check_places(self, origins)
    }

    /// Makes relative paths begin at the configuration file.
    fn rebase_paths(&mut self, base: &Path) {
        let rebase = |path: &mut PathBuf| *path = base.join(&*path);
        rebase(&mut self.tape.dir);
        self.run.journal.iter_mut().chain(&mut self.run.calendar).for_each(rebase);
        // A shipped mapping is a word, a file has a path or an ending.
        let rebase_mapping = |mapping: &mut String| {
            if mapping.contains('/') || mapping.ends_with(".toml") {
                *mapping = base.join(&*mapping).display().to_string();
            }
        };
        for master in &mut self.reference {
            rebase(&mut master.file);
            rebase_mapping(&mut master.mapping);
        }
        for feed in &mut self.feed {
            feed.files.iter_mut().chain(&mut feed.directory).chain(&mut feed.fifo).for_each(rebase);
            rebase_mapping(&mut feed.mapping);
        }
    }

    /// Describes the delay that waiting adds to the merge. Returns `None` for a single feed.
    pub fn delay_of_merge(&self) -> Option<String> {
        let describe_wait = |f: &FeedConfig| f.wait.map(|w| format!("{} for {}", String::from(w), f.name));
        let own_waits: Vec<_> = self.feed.iter().filter_map(describe_wait).collect();
        let own_text =
            if own_waits.is_empty() { String::new() } else { format!(", {}", own_waits.join(", ")) };
        (self.feed.len() > 1).then(|| {
            let wait = String::from(self.run.wait);
            format!(
                "merge: after its receipt an event waits for a connected feed that is quiet: {wait}{own_text}"
            )
        })
    }

    /// Returns the bounds on how far the time of an event may lead.
    pub fn lead(&self) -> ClockLeadLimits {
        ClockLeadLimits { receipt: self.run.clock_lead.0, feeds: self.run.clock_lead_feeds.0 }
    }

    /// Returns the directory of the journals.
    pub fn journal(&self) -> PathBuf {
        self.run.journal.clone().unwrap_or_else(|| self.sibling_path(".journal"))
    }

    /// Returns the directory of the tape of a feed with a process of its own.
    pub fn segment_dir(&self, feed: &str) -> PathBuf {
        self.sibling_path(".segments").join(feed)
    }

    /// Restricts the configuration to a single feed.
    ///
    /// # Errors
    /// Fails if the configuration has no such feed.
    pub fn restrict_to_feed(&mut self, feed: &str, origins: &OriginTable) -> Result<(), Error> {
        (self.run.journal, self.tape.dir) = (Some(self.journal()), self.segment_dir(feed));
        // A merge that begins again reads the tapes of its segments from their start.
        (self.tape.retain_bytes, self.tape.retain_age, self.tape.retain_days) = (None, None, None);
        let feed_names = self.feed.iter().map(|f| f.name.clone()).collect::<Vec<_>>().join(", ");
        self.feed.retain(|f| f.name == feed);
        match self.feed.is_empty() {
            true => Err(Error::NoFeed {
                origin: origins.origin_of_key("feed"),
                feed: feed.to_owned(),
                feeds: feed_names,
            }),
            false => Ok(()),
        }
    }

    fn sibling_path(&self, ending: &str) -> PathBuf {
        let mut name = self.tape.dir.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        self.tape.dir.with_file_name(name)
    }

    /// Reads the reference data. Returns `None` if the configuration has none. `note` receives remarks for people.
    ///
    /// # Errors
    /// Fails if a file or its mapping cannot be used.
    pub fn reference(
        &self,
        origins: &OriginTable,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Arc<InstrumentMaster>>, Error> {
        let wrong = |i: usize, key: &str, source: unitape_feed::Error| {
            let key = format!("reference.{i}.{key}");
            Error::Reference { origin: origins.origin_of_key(&key), key, source: Box::new(source) }
        };
        let mut loader = MasterLoader::default();
        for (i, master) in self.reference.iter().enumerate() {
            let format = MasterLoader::format(&master.mapping).map_err(|e| wrong(i, "mapping", e))?;
            loader.add(&master.file, &format).map_err(|e| wrong(i, "file", e))?;
        }
        if loader.is_empty() {
            return Ok(None);
        }
        loader.notes().for_each(|text| note(&text));
        // Two entries that cannot both be: the error points to the later one.
        let master_index = |e: &unitape_feed::Error| match e {
            unitape_feed::Error::Reference { path, .. } => {
                self.reference.iter().position(|m| m.file == *path)
            }
            _ => None,
        };
        let reference = loader.finish().map_err(|e| wrong(master_index(&e).unwrap_or(0), "file", e))?;
        Ok(Some(Arc::new(reference.with_strictness(self.run.reference_strict))))
    }

    /// Reads the calendar. Returns `None` if the configuration names none.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has a mistake.
    pub fn calendar(&self, origins: &OriginTable) -> Result<Option<Arc<Calendar>>, Error> {
        let Some(path) = &self.run.calendar else { return Ok(None) };
        let (key, origin) = ("run.calendar", || origins.origin_of_key("run.calendar"));
        let text = read_text(path).map_err(|e| Error::Value {
            origin: origin(),
            key: key.to_owned(),
            reason: e.to_string(),
        })?;
        let calendar = Calendar::parse(&text).map_err(|source| Error::Calendar {
            origin: origin(),
            key: key.to_owned(),
            path: path.clone(),
            source: Box::new(source),
        })?;
        Ok(Some(Arc::new(calendar)))
    }

    /// Makes the feeds, ready to run.
    ///
    /// # Errors
    /// Fails if the format, the mapping or an address of a feed cannot be used.
    pub fn feeds(
        &self,
        origins: &OriginTable,
        reference: Option<&Arc<InstrumentMaster>>,
    ) -> Result<Vec<RunFeed>, Error> {
        let feed = |f: &FeedConfig| {
            let wrong = |key: &str, e: String| {
                let key = format!("feed.{}.{key}", f.name);
                Error::Value { origin: origins.origin_of_key(&key), key, reason: e }
            };
            let format = f
                .format(reference)
                .map_err(|e| wrong(if f.mapping.is_empty() { "format" } else { "mapping" }, e.to_string()))?;
            let input = f.feed_input(&self.journal(), &format).map_err(|e| wrong("udp", e))?;
            Ok(RunFeed {
                name: f.name.clone(),
                format,
                input,
                decode_options: DecodeOptions {
                    select: DatagramFilter { ports: f.ports.clone(), groups: f.groups.clone() },
                    sets_receive_times: f.receive_times,
                    by_receive_time: self.run.merge == MergeTime::Receive,
                },
                rules: ChangedSourcePolicy { new_source: f.new_source, allows_same_content: f.again },
                restart: f.restart_policy(),
                wait: f.merge_wait(),
            })
        };
        let mut feeds: Vec<RunFeed> = self.feed.iter().map(feed).collect::<Result<_, Error>>()?;
        if let Some(TimeSpan(interval)) = self.run.clock.filter(|_| self.is_live()) {
            let path = self.journal().join(CLOCK_FEED);
            feeds.push(RunFeed::clock(CLOCK_FEED.to_owned(), path, ClockSource::new(interval)));
        }
        Ok(feeds)
    }

    /// Returns whether a feed may deliver data at any time. A feed of fixed files cannot.
    pub fn is_live(&self) -> bool {
        let is_live_feed = |f: &FeedConfig| f.files.is_empty() && (f.directory.is_none() || f.follow);
        self.feed.iter().any(is_live_feed)
    }
}

impl FeedConfig {
    /// Makes the format of the feed with its current mapping and the reference data.
    ///
    /// # Errors
    /// Fails if the mapping cannot be used.
    pub fn format(&self, reference: Option<&Arc<InstrumentMaster>>) -> Result<Format, unitape_feed::Error> {
        let format = Format::from_names(&self.format, &self.mapping)?;
        let format = match reference {
            Some(reference) => format.with_reference(reference),
            None => format,
        };
        // A mapping that cannot be compiled must be reported now, not by a worker.
        format.decoder().map(|_| format)
    }

    /// Returns how long the merge waits for the feed if the time differs from the run's.
    pub fn merge_wait(&self) -> Option<MergeWait> {
        self.wait.map(|WaitLimit(wait)| wait.into())
    }

    /// Makes the restart policy for a feed that fails.
    pub fn restart_policy(&self) -> RestartPolicy {
        let restart = match self.restart {
            FeedRestart::Never => RestartMode::Never,
            FeedRestart::OnFailure => RestartMode::OnFailure,
        };
        RestartPolicy { restart, backoff_max: self.backoff.0 }
    }

    /// Returns the keys of [`INPUTS`] that the feed has.
    pub fn inputs(&self) -> Vec<&'static str> {
        let presence = [
            !self.files.is_empty(),
            self.directory.is_some(),
            self.stdin,
            self.fifo.is_some(),
            self.listen.is_some(),
            self.connect.is_some(),
            self.udp.is_some(),
        ];
        INPUTS.iter().zip(presence).filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect()
    }

    fn feed_input(&self, journal: &Path, format: &Format) -> Result<FeedInput, String> {
        let tcp = |address: &String| TcpFeed {
            address: address.clone(),
            resume: self.resume,
            connections: self.connections,
            keepalive: Some(self.keepalive.0).filter(|span| !span.is_zero()),
            idle_limit: Some(self.idle_limit.0).filter(|span| !span.is_zero()),
        };
        let receive = if let Some(path) = &self.directory {
            return Ok(FeedInput::Directory { path: path.clone(), follow: self.follow });
        } else if let Some(path) = &self.fifo {
            ReceiveSource::Fifo(path.clone())
        } else if let Some(address) = &self.listen {
            ReceiveSource::Listen(tcp(address))
        } else if let Some(address) = &self.connect {
            ReceiveSource::Connect(tcp(address))
        } else if self.udp.is_some() {
            self.receive_source(self.listens(format)?)
        } else if self.stdin {
            ReceiveSource::Stdin
        } else {
            return Ok(FeedInput::Files(self.files.clone()));
        };
        Ok(FeedInput::Journal { path: journal.join(&self.name), receive })
    }
}

#[cfg(test)]
mod tests;
