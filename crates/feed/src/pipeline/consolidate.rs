//! Consolidation: many ordered streams become one tape.
//!
//! ```text
//!  intake turnstile          parallel                 sequencing turnstile        parallel
//!  read 256 KiB, cut  ──▶  frame, decode, map  ──▶  skip, ids, merge, place  ──▶  copy, publish
//! ```
//!
//! The stages are those of [`unitape_ring::farm`]; block *i* is worker *i mod W*'s all the way.

use crate::account::retention_checkpoint;
use crate::account::{AccountSummary, TapeAccount};
use crate::error::Error;
use crate::formats::decoder::{DecodeOptions, FeedDecoder};
use crate::formats::format::Format;
use crate::pipeline::begin::{FolderPlan, FolderSettings, feed_state, open_feed, open_folder, plan_folder};
use crate::pipeline::feed_state::FeedState;
use crate::pipeline::intake::{BlockIntake, FeedIntake, LiveRun, SourceDiscovery};
use crate::pipeline::job::{BlockJob, BlockKind, VersionedFormat};
use crate::pipeline::lead::ClockLeadLimits;
use crate::pipeline::open_sources::SourceNotesWriter;
use crate::pipeline::run::{FeedInput, RunFeed};
use crate::pipeline::sequence::{
    BlockSequencer, ClockMerge, InitialSequencerState, KindCounts, MergeTimer, PieceBuffer, RunCounters,
    TapePlacement,
};
use crate::pipeline::source_check::{self, SourcePlan, plan_files};
use crate::quarantine::RawLog;
use crate::sources::receive::TickRequest;
use crate::sources::source::ChangedSourcePolicy;
use crate::sources::source::{FileFeed, SourceFacts, is_stdin};
use crate::sources::stats::RunMonitor;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use unitape_model::{Dictionary, UnixNanos};
use unitape_ring::WaitStrategy;
use unitape_ring::farm::{self, BlockClaim, Farm, FarmEnding};
use unitape_tape::{TapeId, TapeManifest, Writer, WriterOptions as TapeOptions};

/// The options of a consolidation.
#[derive(Debug)]
pub struct ConsolidateOptions<'a> {
    /// The feeds; ties in time go to the earlier one.
    pub feeds: Vec<FileFeed>,
    /// Worker threads, 1 or more; the result does not depend on it.
    pub workers: usize,
    /// Bytes of a block, 64 KiB to 1 MiB in use and less in tests; the result does not depend on it.
    pub block_bytes: usize,
    /// The writer's options.
    pub tape: TapeOptions,
    /// When up, the run ends after the blocks under way; a later run resumes from there.
    pub stop: Option<&'a AtomicBool>,
    /// Progress so far, for progress bars.
    pub progress: Arc<RunProgress>,
    /// Rules for files that differ from the tape.
    pub rules: ChangedSourcePolicy,
    /// Rules for files of feeds with these names.
    pub feed_rules: BTreeMap<String, ChangedSourcePolicy>,
    /// The bound on the lead of an event's time.
    pub lead: ClockLeadLimits,
}

impl Default for ConsolidateOptions<'_> {
    fn default() -> Self {
        Self {
            feeds: Vec::new(),
            workers: 1,
            block_bytes: BLOCK_BYTES,
            tape: TapeOptions::default(),
            stop: None,
            progress: Arc::default(),
            rules: ChangedSourcePolicy::default(),
            feed_rules: BTreeMap::new(),
            lead: ClockLeadLimits::default(),
        }
    }
}

/// Bytes of a block by default.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Bytes of a block, at most.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;

/// The progress of a run.
#[derive(Debug, Default)]
pub struct RunProgress {
    /// Bytes of input read.
    pub bytes: Arc<AtomicU64>,
    /// Bytes of input in all, as far as it is known.
    pub bytes_total: AtomicU64,
    /// Messages and events.
    pub counters: Arc<RunCounters>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The account of the whole tape.
    pub summary: AccountSummary,
    /// Whether all input was consumed, or the run was stopped before.
    pub ending: FarmEnding,
    /// Messages that this run read (those that were on the tape already not counted).
    pub fresh_messages: u64,
    /// The times of its workers in their turns.
    pub turns: StageTimings,
    /// Whether somebody stopped the run.
    pub stopped: bool,
    /// Notes on the sources for people, a sentence each.
    pub notes: Vec<String>,
}

/// The time that workers spent in each stage that only one of them may enter, for all blocks together. In a run that
/// waits for its sources, the intake's time is mostly waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimings {
    /// Reading and cutting, in nanoseconds.
    pub intake_ns: u64,
    /// Ids, merge and places; and the copy where several feeds are merged.
    pub sequence_ns: u64,
    /// From the first block to the last, by the clock.
    pub farm_ns: u64,
}

/// Consolidates the feeds onto the tape in `dir`: makes it, or resumes where an earlier run ended.
///
/// # Errors
/// Fails if an input cannot be read, is not what the tape says it was, or the tape refuses. Committed events stay, and
/// the next run continues after them.
pub fn consolidate(dir: &Path, options: ConsolidateOptions<'_>) -> Result<RunOutcome, Error> {
    if options.feeds.iter().flat_map(|f| &f.files).filter(|path| is_stdin(path)).count() > 1 {
        return Err(Error::Config {
            origin: "-".to_owned(),
            reason: "stdin can be one source only".to_owned(),
        });
    }
    let feeds = options.feeds.into_iter();
    let feeds = feeds.map(|f| {
        let rules = options.feed_rules.get(&f.name).copied().unwrap_or(options.rules);
        let decode_options = DecodeOptions { sets_receive_times: true, ..DecodeOptions::default() };
        RunFeed { decode_options, rules, ..RunFeed::new(f.name, f.format, FeedInput::Files(f.files)) }
    });
    let setup = PipelineConfig {
        feeds: feeds.collect(),
        workers: options.workers,
        block_bytes: options.block_bytes,
        tape: options.tape,
        stop: options.stop,
        progress: options.progress,
        scan: Duration::ZERO,
        wait: None,
        lead: options.lead,
        live: None,
        ticks: None,
    };
    run_feeds(dir, setup)
}

/// The configuration of a run, the same for every caller.
pub struct PipelineConfig<'a> {
    /// The feeds; ties in time go to the earlier one.
    pub feeds: Vec<RunFeed>,
    /// Worker threads.
    pub workers: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The writer's options.
    pub tape: TapeOptions,
    /// When up, no block is claimed any more.
    pub stop: Option<&'a AtomicBool>,
    /// Progress so far.
    pub progress: Arc<RunProgress>,
    /// The interval between looks at a directory.
    pub scan: Duration,
    /// The time that a merge waits for an idle feed.
    pub wait: Option<Duration>,
    /// The bound on the lead of an event's time.
    pub lead: ClockLeadLimits,
    /// For a run that continues until it is stopped.
    pub live: Option<LiveRun>,
    /// Writes the ticks of a run's clock.
    pub ticks: Option<TickRequest>,
}

impl PipelineConfig<'_> {
    /// Returns the index of the feed that has the ticks of a clock.
    fn clock_feed(&self) -> Option<usize> {
        self.feeds.iter().position(|feed| feed.format.is_clock())
    }

    /// Ends a feed that cannot be read: in a live run the others continue.
    ///
    /// # Errors
    /// Returns `error` if the run is not live.
    fn fail_feed(&self, index: usize, error: Error) -> Result<(), Error> {
        let Some(live_run) = &self.live else { return Err(error) };
        live_run.stats.feeds[index].fail(error.to_string(), error.cause());
        Ok(())
    }
}

/// Runs feeds onto the tape in `dir`.
///
/// # Errors
/// Fails as [`consolidate`] does.
pub fn run_feeds(dir: &Path, config: PipelineConfig<'_>) -> Result<RunOutcome, Error> {
    check_config(&config)?;
    crate::account::refuse_merge(dir)?;
    let facts = source_facts(&config)?;
    let is_usable = find_usable_feeds(&config, &facts)?;
    let mut output = TapeOutput::open(dir, &config, &facts)?;
    // All sources are compared with the tape before anything is written.
    let plans = plan_feeds(&config, &facts, &is_usable, &mut output)?;
    let feeds = open_feeds(&config, &facts, plans, &mut output)?;
    run_farm(config, feeds, output)?.finish_run(dir)
}

/// Fails if the configuration contradicts itself or exceeds a bound.
fn check_config(config: &PipelineConfig<'_>) -> Result<(), Error> {
    if let Some(second) = config.feeds.iter().filter(|feed| feed.format.is_clock()).nth(1) {
        let reason = "another feed has the ticks of a clock; there can be one such feed".to_owned();
        return Err(Error::Config { origin: format!("feed {}", second.name), reason });
    }
    if config.workers == 0 {
        return Err(Error::Config { origin: "--workers".to_owned(), reason: "at least 1".to_owned() });
    }
    // Offsets in a block are 32 bits wide, and events are larger than the bytes that they are made of.
    if !(64..=BLOCK_BYTES_MAX).contains(&config.block_bytes) {
        let reason = format!("64 to {BLOCK_BYTES_MAX}");
        return Err(Error::Config { origin: "--block-bytes".to_owned(), reason });
    }
    Ok(())
}

/// Reads the facts of all files, by feed and file.
fn source_facts(config: &PipelineConfig<'_>) -> Result<Vec<Vec<SourceFacts>>, Error> {
    let of_feed = |feed: &RunFeed| {
        feed.files().iter().map(|path| SourceFacts::from_file(path, config.workers)).collect()
    };
    config.feeds.iter().map(of_feed).collect()
}

/// Returns which feeds may run. In a live run a feed whose file another feed has too ends, and the others continue.
fn find_usable_feeds(config: &PipelineConfig<'_>, facts: &[Vec<SourceFacts>]) -> Result<Vec<bool>, Error> {
    let mut is_usable = vec![true; config.feeds.len()];
    for (index, error) in source_check::find_same_content(config, facts).into_iter().enumerate() {
        if let Some(error) = error {
            config.fail_feed(index, error)?;
            is_usable[index] = false;
        }
    }
    Ok(is_usable)
}

/// The tape that a run writes, with what its account says before the run.
struct TapeOutput {
    writer: Writer,
    account: TapeAccount,
    raw_log: RawLog,
    /// The notes on sources that are open, of a live run.
    open_sources: Option<SourceNotesWriter>,
    /// Notes for people.
    notes: Vec<String>,
    /// Messages on the tape before the run.
    messages_before: u64,
}

impl TapeOutput {
    /// Opens or creates the tape in `dir`, and fails if its account does not match it.
    fn open(dir: &Path, config: &PipelineConfig<'_>, facts: &[Vec<SourceFacts>]) -> Result<Self, Error> {
        let id = id_of(dir)?.unwrap_or_else(|| tape_id(&config.feeds, facts));
        // Whole blocks go onto the tape, and nobody waits for a single frame unless it is a live one.
        let options = TapeOptions { in_bulk: config.live.is_none(), ..config.tape.clone() };
        let (writer, _) = Writer::open(dir, id, options)?;
        let mut account = TapeAccount::load(dir)?;
        let (open_sources, notes) = match &config.live {
            Some(_) => {
                let (open, fault) = SourceNotesWriter::load(dir, &id.to_string(), &mut account);
                (Some(open), Vec::from_iter(fault))
            }
            None => (None, Vec::new()),
        };
        if let Some(live_run) = &config.live {
            report_journals(&live_run.stats, &account);
        }
        retention_checkpoint::refuse_partial(&account)?;
        account.refuse_mismatch()?;
        let raw = RawLog::open(dir, account.raw_bytes)?;
        let messages_before = account.summary().messages;
        Ok(Self { writer, account, raw_log: raw, open_sources, notes, messages_before })
    }
}

/// Plans each feed: which of its sources are new, which continue, and from where. A feed of a live run that cannot be planned
/// ends alone.
fn plan_feeds(
    config: &PipelineConfig<'_>,
    facts: &[Vec<SourceFacts>],
    is_usable: &[bool],
    output: &mut TapeOutput,
) -> Result<Vec<FeedPlan>, Error> {
    let TapeOutput { account, notes, .. } = output;
    let mut plans = Vec::new();
    for (index, (feed, facts)) in config.feeds.iter().zip(facts).enumerate() {
        let plan = match feed.folder() {
            _ if !is_usable[index] => Ok(FeedPlan::Failed),
            None => plan_files(feed, facts, account, config.workers, notes).map(FeedPlan::Files),
            Some((folder, _)) => {
                let stats = config.live.as_ref().map(|live| &live.stats);
                let journal_start = stats.and_then(|stats| stats.feeds[index].journal_start.get());
                plan_folder(feed, folder, journal_start, account, config.workers, notes).map(FeedPlan::Folder)
            }
        };
        plans.push(match plan {
            Ok(plan) => plan,
            Err(error) => {
                config.fail_feed(index, error)?;
                FeedPlan::Failed
            }
        });
    }
    if let Some(live_run) = &config.live {
        live_run.stats.add_notes(notes);
    }
    Ok(plans)
}

/// The open feeds of a run: the state that the workers share, the inputs, and the states of the sequencer.
struct OpenFeeds {
    farm: FeedFarm,
    intake: Vec<FeedIntake>,
    states: Vec<FeedState>,
}

/// Opens the planned sources and writes the definitions of new ones.
fn open_feeds(
    config: &PipelineConfig<'_>,
    facts: &[Vec<SourceFacts>],
    plans: Vec<FeedPlan>,
    output: &mut TapeOutput,
) -> Result<OpenFeeds, Error> {
    let TapeOutput { account, writer, .. } = output;
    let stats = config.live.as_ref().map(|live| live.stats.clone());
    let mut open_feeds = OpenFeeds {
        farm: FeedFarm { source_ids: Vec::new(), decode_options: Vec::new(), stats },
        intake: Vec::new(),
        states: Vec::new(),
    };
    for ((feed, facts), plan) in config.feeds.iter().zip(facts).zip(plans) {
        let (mut state, supply) = match (plan, feed.folder()) {
            (FeedPlan::Files(plan), _) => open_feed(feed, facts, plan, account, writer)?,
            (FeedPlan::Folder(plan), Some((dir, kind))) => {
                let settings = FolderSettings { dir, kind, scan: config.scan };
                open_folder(feed, settings, plan, account, writer)?
            }
            _ => (feed_state(feed, account, Vec::new(), false, 0), SourceDiscovery::Static(VecDeque::new())),
        };
        if let SourceDiscovery::Static(pending) = &supply {
            let blocks_left: u64 =
                pending.iter().filter_map(|p| Some(facts[p.index].size?.saturating_sub(p.from))).sum();
            config.progress.bytes_total.fetch_add(blocks_left, Ordering::Relaxed);
        }
        let format = VersionedFormat::new(feed.format.clone(), 0);
        open_feeds.intake.push(FeedIntake::new(format, supply, state.outstanding(), config.scan));
        state.rotates = feed.rotates();
        state.received = feed.decode_options.sets_receive_times;
        state.is_clock = Some(open_feeds.states.len()) == config.clock_feed();
        state.wait = feed.wait.unwrap_or(config.wait.into());
        open_feeds.farm.source_ids.push(state.sources.iter().map(|s| s.id).collect());
        open_feeds.farm.decode_options.push(feed.decode_options.clone());
        open_feeds.states.push(state);
    }
    if let Some(live_run) = &config.live {
        report_positions(&live_run.stats, &open_feeds.states);
    }
    Ok(open_feeds)
}

/// A run whose workers have ended.
struct EndedRun {
    sequencer: BlockSequencer,
    workers: Vec<FeedWorker>,
    ending: FarmEnding,
    farm_ns: u64,
    is_live: bool,
    account: TapeAccount,
    notes: Vec<String>,
    messages_before: u64,
}

/// Runs the stages until the sources end, somebody stops the run, or a stage fails.
fn run_farm(mut config: PipelineConfig<'_>, feeds: OpenFeeds, output: TapeOutput) -> Result<EndedRun, Error> {
    let OpenFeeds { farm, intake, states } = feeds;
    let TapeOutput { writer, account, raw_log: raw, open_sources, notes, messages_before } = output;
    let is_by_receive_time = config.feeds.iter().any(|f| f.decode_options.by_receive_time);
    let (placed_by_event, placed_by_receive) = account.placed_max;
    let mut sequencer = BlockSequencer::new(InitialSequencerState {
        writer,
        raw_log: raw,
        dictionary: account.names.dictionary().clone(),
        next_source: account.next_source,
        feeds: states,
        counters: config.progress.counters.clone(),
        patience: MergeTimer::new(config.live.as_ref().map(|live| live.due_ns.clone()).unwrap_or_default()),
        placed_max: UnixNanos(if is_by_receive_time { placed_by_receive } else { placed_by_event }),
        stats: farm.stats.clone(),
    });
    if !is_by_receive_time {
        sequencer.bound_lead(config.lead);
    }
    let workers: Vec<FeedWorker> = (0..config.workers)
        .map(|_| FeedWorker::new(&config.feeds, sequencer.dictionary()))
        .collect::<Result<_, Error>>()?;
    if let Some(live_run) = &config.live {
        sequencer.survive_flush_failures(live_run.stop.clone());
    }
    if let Some(open_sources) = open_sources {
        sequencer.note_sources(open_sources);
    }
    if let Some(index) = config.clock_feed() {
        let ticks = config.ticks.take().zip(farm.stats.as_ref());
        let ticks = ticks.map(|(ticks, stats)| ticks.open(stats)).transpose();
        let ticks = ticks.or_else(|error| config.fail_feed(index, error).map(|()| None))?;
        sequencer.follow_clock(ClockMerge::new(index, ticks));
    }
    let is_live = config.live.is_some();
    let is_spinning = config.live.as_ref().is_some_and(|live| live.spin);
    let wait = if is_spinning { WaitStrategy::Spin } else { WaitStrategy::default() };
    let options = farm::FarmOptions { stop: config.stop, name: "decode", wait };
    let intake = BlockIntake::new(intake, config.block_bytes, config.progress.bytes.clone(), config.live);
    let started_at = Instant::now();
    let farm_outcome = farm::run(&farm, workers, intake, sequencer, &options).map_err(|e| match e {
        unitape_ring::Error::Stage { error, .. } => error,
        unitape_ring::Error::Spawn { worker, source } => Error::Spawn { worker, source },
        other => Error::Config { origin: "--workers".to_owned(), reason: other.to_string() },
    })?;
    let farm_ns = started_at.elapsed().as_nanos() as u64;
    let (sequencer, workers, ending) = (farm_outcome.sequencer, farm_outcome.workers, farm_outcome.ending);
    Ok(EndedRun { sequencer, workers, ending, farm_ns, is_live, account, notes, messages_before })
}

impl EndedRun {
    /// Places all units that the merge still holds, closes the tape, and returns the account.
    fn finish_run(self, dir: &Path) -> Result<RunOutcome, Error> {
        let Self { mut sequencer, workers, mut account, ending, .. } = self;
        if self.is_live
            && let Some(plan) = sequencer.flush()?
        {
            // The units that the merge still held complete what was received.
            plan.copy_to_tape(&mut sequencer.by_kind)?;
        }
        let mut turns = StageTimings { farm_ns: self.farm_ns, ..StageTimings::default() };
        for worker in &workers {
            turns.intake_ns += worker.stage_timings.intake_ns;
            turns.sequence_ns += worker.stage_timings.sequence_ns;
            sequencer.by_kind.iter_mut().zip(worker.by_kind).for_each(|(sum, n)| *sum += n);
        }
        let has_left = self.is_live && sequencer.note_left();
        sequencer.add_counts(&mut account);
        let has_findings = sequencer.has_findings;
        sequencer.close()?;
        if has_left || has_findings || ending == FarmEnding::Stopped {
            // Blocks may be on the tape in part; the account must be that of the tape.
            account = TapeAccount::load(dir)?;
        }
        let summary = account.summary();
        Ok(RunOutcome {
            fresh_messages: summary.messages.saturating_sub(self.messages_before),
            summary,
            ending,
            turns,
            stopped: ending == FarmEnding::Stopped,
            notes: self.notes,
        })
    }
}

/// Reports to receivers which files of their journals the tape knows.
fn report_journals(stats: &RunMonitor, account: &TapeAccount) {
    for feed in &stats.feeds {
        // Once is enough: a run has one account.
        _ = feed.journal_read.set(account.last_journal_file(&feed.name));
    }
}

/// Returns the identity of the tape in `dir`; `None` if there is no tape yet.
pub(crate) fn id_of(dir: &Path) -> Result<Option<TapeId>, Error> {
    match TapeManifest::load(dir) {
        Ok(meta) => Ok(Some(meta.id)),
        Err(unitape_tape::Error::NotATape { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// The plan for the sources of a feed.
enum FeedPlan {
    Files(Vec<SourcePlan>),
    Folder(FolderPlan),
    /// Nothing: it has failed.
    Failed,
}

/// Reports how far the feeds were when the run began.
fn report_positions(stats: &RunMonitor, states: &[FeedState]) {
    for (stats, state) in stats.feeds.iter().zip(states) {
        let bytes_read: u64 = state.sources.iter().map(|s| s.through).sum();
        stats.read_bytes.store(bytes_read, Ordering::Relaxed);
    }
}

/// The parts that all workers share.
struct FeedFarm {
    /// Ids of the source definitions, by feed and source, of those known when the run began.
    source_ids: Vec<Vec<u32>>,
    /// The decoding options, by feed.
    decode_options: Vec<DecodeOptions>,
    /// Statistics of a live run, whose events others wait for.
    stats: Option<Arc<RunMonitor>>,
}

impl FeedFarm {
    /// Decodes a block by the mapping that it came with.
    fn decode(&self, worker: &mut FeedWorker, job: &mut BlockJob) -> Result<(), Error> {
        let BlockJob { block, kind, format: job_format, .. } = job;
        if *kind != BlockKind::Bytes {
            block.reset();
            return Ok(());
        }
        // A source that was found meanwhile gets its id when its first message is placed.
        let source = self.source_ids[block.feed].get(block.source).copied().unwrap_or(0);
        block.decoded_as = source;
        let (generation, decoder) = &mut worker.decoders[block.feed];
        if let Some(block_format) = job_format.as_ref().filter(|s| s.generation != *generation) {
            *decoder = block_format.format.decoder()?;
            *generation = block_format.generation;
        }
        decoder.decode(block, source, &worker.dictionary, &self.decode_options[block.feed]);
        Ok(())
    }
}

impl FeedFarm {
    /// Decodes a block of a stream by the one decoder that its feed has.
    fn decode_in_turn(
        &self,
        feed: &mut FeedState,
        dictionary: &Dictionary,
        job: &mut BlockJob,
    ) -> Result<(), Error> {
        let BlockJob { block, format: job_format, .. } = job;
        let source = self.source_ids[block.feed].get(block.source).copied().unwrap_or(0);
        block.decoded_as = source;
        let Some(block_format) = job_format else { return Ok(()) };
        if feed.in_turn.as_ref().is_none_or(|(generation, _)| *generation != block_format.generation) {
            let mut decoder = block_format.format.decoder()?;
            if let Some((_, before)) = &mut feed.in_turn {
                decoder.resume_from(before);
            }
            feed.in_turn = Some((block_format.generation, decoder));
        }
        if let Some((_, decoder)) = &mut feed.in_turn {
            decoder.decode(block, source, dictionary, &self.decode_options[block.feed]);
        }
        Ok(())
    }
}

/// The parts that one thread owns.
struct FeedWorker {
    /// One per feed, with the generation of its mapping.
    decoders: Vec<(u64, FeedDecoder)>,
    /// Its snapshot of the names.
    dictionary: Dictionary,
    /// The number of definitions in the snapshot.
    definition_count: usize,
    #[expect(clippy::vec_box, reason = "blocks travel by pointer; unboxing them here would move them")]
    spares: Vec<Box<BlockJob>>,
    piece_buffer: Option<PieceBuffer>,
    /// Events that it has put on the tape.
    by_kind: KindCounts,
    stage_timings: StageTimings,
}

impl FeedWorker {
    /// Returns a worker with a decoder for each feed, which knows these names.
    fn new(feeds: &[RunFeed], names: &Dictionary) -> Result<Self, Error> {
        let decoder = |feed: &RunFeed| Ok((0, feed.format.decoder()?));
        Ok(Self {
            decoders: feeds.iter().map(decoder).collect::<Result<_, Error>>()?,
            dictionary: names.clone(),
            definition_count: 0,
            spares: Vec::new(),
            piece_buffer: None,
            by_kind: [0; 64],
            stage_timings: StageTimings::default(),
        })
    }
}

impl Farm for FeedFarm {
    type Worker = FeedWorker;
    type Intake = BlockIntake;
    type Input = Box<BlockJob>;
    type Block = Box<BlockJob>;
    type Sequencer = BlockSequencer;
    type Plan = Option<TapePlacement>;
    type Error = Error;

    fn intake(
        &self,
        intake: &mut BlockIntake,
        worker: &mut FeedWorker,
        claim: BlockClaim<'_>,
    ) -> Result<Option<Box<BlockJob>>, Error> {
        let mut job = worker.spares.pop().unwrap_or_default();
        let since = Instant::now();
        let has_block = intake.fill(&mut job, claim)?;
        worker.stage_timings.intake_ns += since.elapsed().as_nanos() as u64;
        Ok(has_block.then_some(job))
    }

    fn work(&self, worker: &mut FeedWorker, mut job: Box<BlockJob>) -> Result<Box<BlockJob>, Error> {
        // A stream waits for its turn: what a block means is known when the one before it has been decoded.
        if !job.is_stream() {
            self.decode(worker, &mut job)?;
        }
        Ok(job)
    }

    fn sequence(
        &self,
        sequencer: &mut BlockSequencer,
        worker: &mut FeedWorker,
        mut job: Box<BlockJob>,
    ) -> Result<Option<TapePlacement>, Error> {
        let since = Instant::now();
        if let Some(buffer) = worker.piece_buffer.take() {
            sequencer.recycle(buffer);
        }
        sequencer.begin(&mut job);
        let stream = job.is_stream();
        let feed = sequencer.feed(job.block.feed);
        if job.kind == BlockKind::Bytes && feed.has_gap_before(&job.block) {
            // The cut was wrong: what the block before left over belongs here.
            feed.join_leftover(&mut job.block);
            if !stream {
                self.decode(worker, &mut job)?;
            }
        }
        if stream {
            sequencer.publish(&mut worker.dictionary, &mut worker.definition_count);
            self.decode_in_turn(sequencer.feed(job.block.feed), &worker.dictionary, &mut job)?;
        }
        if job.kind == BlockKind::Bytes && sequencer.feed(job.block.feed).miscounts(&mut job.block) {
            self.decode(worker, &mut job)?;
        }
        let plan = sequencer.sequence_block(job)?;
        sequencer.publish(&mut worker.dictionary, &mut worker.definition_count);
        worker.spares.extend(sequencer.spare());
        worker.stage_timings.sequence_ns += since.elapsed().as_nanos() as u64;
        Ok(plan)
    }

    fn finish(&self, worker: &mut FeedWorker, plan: Option<TapePlacement>) -> Result<(), Error> {
        if let Some(plan) = plan {
            let (job, pieces) = plan.copy_to_tape(&mut worker.by_kind)?;
            worker.spares.push(job);
            worker.piece_buffer = Some(pieces);
            if let Some(stats) = &self.stats {
                stats.placed.notify();
            }
        }
        Ok(())
    }
}

/// Computes the identity of a tape; equal input gives equal identities.
fn tape_id(feeds: &[RunFeed], facts: &[Vec<SourceFacts>]) -> TapeId {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for (feed, facts) in feeds.iter().zip(facts) {
        add(&feed.name);
        add(feed.format.name());
        add(&feed.format.mapping_identity().unwrap_or_default());
        for f in facts {
            add(&f.file);
            add(f.hash.as_deref().unwrap_or_default());
        }
    }
    let bytes = hasher.finalize();
    TapeId(u128::from_le_bytes(bytes.as_bytes()[..16].try_into().expect("sixteen of 32 bytes")))
}

/// Makes a feed of a bare file: detects its format by content and names it after the file.
///
/// # Errors
/// Fails if the file cannot be read, or if its format is unknown.
pub fn feed_of_file(path: &Path) -> Result<FileFeed, Error> {
    let format = crate::sources::detect::detect(path)?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(FileFeed { name, format, files: vec![path.to_owned()] })
}

/// Parses `name=format:mapping:path` as a feed; the mapping may be left out if the format needs no mapping.
///
/// # Errors
/// Fails if the option has another form, or if there is no such format or mapping.
pub fn feed_of_option(option: &str) -> Result<FileFeed, Error> {
    let config = || Error::Config {
        origin: format!("--feed {option}"),
        reason: "not of the form name=format:mapping:path".to_owned(),
    };
    let (name, rest) = option.split_once('=').ok_or_else(config)?;
    let (format, rest) = rest.split_once(':').ok_or_else(config)?;
    let (mapping, path) = rest.split_once(':').unwrap_or(("", rest));
    if name.is_empty() || path.is_empty() {
        return Err(config());
    }
    Ok(FileFeed {
        name: name.to_owned(),
        format: Format::from_names(format, mapping)?,
        files: vec![path.into()],
    })
}
