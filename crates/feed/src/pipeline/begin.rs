//! The sources of a feed when a run begins: what the tape has of them, which have grown, and which are to be read.

use crate::account::bookkeeping::{SourceDefinitionFields, growth_frame, source_frame};
use crate::account::{SourceAccount, TapeAccount};
use crate::error::Error;
use crate::formats::format::FormatId;
use crate::formats::format::Statefulness;
use crate::pipeline::feed_state::{FeedResumeState, FeedState, SourceState};
use crate::pipeline::intake::SourceDiscovery;
use crate::pipeline::run::{FeedInput, RunFeed};
use crate::pipeline::source_check::{self, FileComparison, SourcePlan};
use crate::sources::content::{self, ContentHash};
use crate::sources::folder::{self, KnownFile, KnownFolder, SourceFolder};
use crate::sources::journal::{InitialJournalState, StreamContinuity, number_of_file};
use crate::sources::known_content::KnownContent;
use crate::sources::open::FIRST;
use crate::sources::source::FileGrowth;
use crate::sources::source::{PendingSource, SourceFacts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use unitape_model::{FrameHeader, UnixNanos, flags};
use unitape_tape::Writer;

/// Defines those sources of a feed that the tape does not have, notes which have grown, and says which are to be read.
pub fn open_feed(
    feed: &RunFeed,
    facts: &[SourceFacts],
    plans: Vec<SourcePlan>,
    account: &mut TapeAccount,
    writer: &mut Writer,
) -> Result<(FeedState, SourceDiscovery), Error> {
    let format_id = FormatId::from_format(&feed.format);
    let is_stream = feed.format.statefulness() == Statefulness::Stream;
    let mut states = Vec::new();
    let mut pending = VecDeque::new();
    for (index, ((path, facts), plan)) in feed.files().iter().zip(facts).zip(plans).enumerate() {
        let i = match plan {
            SourcePlan::Known(i) => i,
            SourcePlan::Grown(i, growth) => {
                note_growth(account, i, &format_id, &growth, writer)?;
                i
            }
            SourcePlan::New => {
                let id = account.next_source;
                let mut frame = Vec::new();
                let parts = SourceDefinitionFields { id, first_id: 0, format_id: &format_id, base: 0 };
                source_frame(&mut frame, &feed.name, facts, parts);
                FrameHeader::read(&frame).with_flags(flags::LAST).write(&mut frame);
                writer.append(&frame)?;
                account.next_source += 1;
                account.sources.push(SourceAccount {
                    id,
                    mapping_start_id: id,
                    feed: feed.name.clone(),
                    file: facts.file.clone(),
                    size: facts.size,
                    hash: facts.hash.clone(),
                    format_id: format_id.clone(),
                    ..SourceAccount::default()
                });
                account.sources.len() - 1
            }
        };
        let source = &account.sources[i];
        if !source.end {
            let read_offset = if is_stream { 0 } else { source.through };
            let first_message_hash = source.hash.clone().filter(|hash| hash.starts_with(FIRST));
            pending.push_back(PendingSource {
                index,
                path: path.clone(),
                from: read_offset,
                size: facts.size,
                first: first_message_hash,
            });
        }
        let state = SourceState::from_account(source);
        states.push(if is_stream && !source.end { state.read_again() } else { state });
    }
    let open_count = pending.len();
    Ok((feed_state(feed, account, states, false, open_count), SourceDiscovery::Static(pending)))
}

/// Puts onto the tape, and into its account, that the source at this index has grown.
fn note_growth(
    account: &mut TapeAccount,
    i: usize,
    format_id: &FormatId,
    growth: &FileGrowth,
    writer: &mut Writer,
) -> Result<(), Error> {
    let mut frame = Vec::new();
    growth_frame(&mut frame, account.next_source, &account.sources[i], format_id, growth);
    let position = writer.append(&frame)?;
    account.add(&frame).map_err(|reason| Error::Inconsistent { position, reason })
}

/// The plan for a directory's files that the tape knows.
pub struct FolderPlan {
    /// By source of the feed, in the order of the tape: its index in the account, and how its file has grown.
    growths: Vec<(usize, Option<FileGrowth>)>,
    /// The id of the last of these sources.
    last_id: Option<u32>,
    /// The hash of the part that was read, if it is to be read further.
    hashes: Vec<Option<Box<ContentHash>>>,
    /// Names that the tape knows and that are other files now.
    fresh: BTreeSet<String>,
    /// The contents on the tape, so that no content is read again under another name.
    contents: Vec<KnownContent>,
    /// Ids of unfinished sources that are not read on: another file has their name, or a file with a greater number
    /// was read.
    abandoned_ids: BTreeSet<u32>,
    /// Files of a journal that a power loss made shorter than the part that was read: they get no more data.
    cut_files: BTreeSet<String>,
}

/// The directory of a journal, and how its stream continues after a restart of the receiver.
#[derive(Clone, Copy)]
struct JournalFolder<'j> {
    journal_dir: &'j Path,
    continuity: StreamContinuity,
    /// The start of its receiver in this run, if it has one.
    receiver_start: Option<&'j InitialJournalState>,
}

/// Compares a directory's files with the tape's account of them.
pub fn plan_folder(
    feed: &RunFeed,
    dir: &Path,
    start: Option<&InitialJournalState>,
    account: &TapeAccount,
    threads: usize,
    notes: &mut Vec<String>,
) -> Result<FolderPlan, Error> {
    let of_feed = |s: &SourceAccount| s.feed == feed.name;
    let mut plan = FolderPlan {
        growths: account
            .sources
            .iter()
            .enumerate()
            .filter(|(_, s)| of_feed(s))
            .map(|(i, _)| (i, None))
            .collect(),
        last_id: account.sources.iter().filter(|s| of_feed(s)).map(|s| s.id).max(),
        hashes: Vec::new(),
        fresh: BTreeSet::new(),
        contents: Vec::new(),
        abandoned_ids: BTreeSet::new(),
        cut_files: BTreeSet::new(),
    };
    plan.hashes.resize(plan.growths.len(), None);
    if let FeedInput::Journal { receive, .. } = &feed.input {
        let journal =
            JournalFolder { journal_dir: dir, continuity: receive.continuity(), receiver_start: start };
        plan.of_journal(feed, journal, account, notes)?;
        return Ok(plan);
    }
    let is_stream = feed.format.statefulness() == Statefulness::Stream;
    let mut growth_by_file = BTreeMap::new();
    for (n, (i, _)) in plan.growths.iter().enumerate() {
        let previous_growth = growth_by_file.insert(account.sources[*i].file.clone(), n);
        let before = previous_growth.map(|n| &account.sources[plan.growths[n].0]);
        plan.abandoned_ids.extend(before.filter(|source| !source.end).map(|source| source.id));
    }
    let mut removed = Vec::new();
    let sources: Vec<_> = growth_by_file
        .iter()
        .map(|(file, n)| (&account.sources[plan.growths[*n].0], dir.join(file)))
        .collect();
    let likenesses = source_check::compare_all(&sources, threads);
    for (((file, n), (source, path)), likeness) in growth_by_file.into_iter().zip(sources).zip(likenesses) {
        let Some(likeness) = likeness else {
            match source.end {
                true => removed.push(file),
                false if plan.is_given_up(source) => _ = plan.abandoned_ids.insert(source.id),
                false if feed.rules.new_source => _ = plan.fresh.insert(file),
                false => return Err(source_check::removed_source(source)),
            }
            continue;
        };
        let hash = match likeness? {
            FileComparison::Other(_) if feed.rules.new_source => {
                plan.fresh.insert(file);
                continue;
            }
            FileComparison::Other(difference) => {
                return Err(source_check::other_content(source, &difference));
            }
            FileComparison::Same(_) if source.end => continue,
            FileComparison::Grown(hash) if source.end => {
                plan.growths[n].1 = Some(source.growth(&path, None)?);
                hash
            }
            FileComparison::Same(hash) | FileComparison::Grown(hash) => hash,
        };
        let read_offset = match &plan.growths[n].1 {
            _ if is_stream => 0,
            Some(growth) => growth.from,
            None => source.through,
        };
        let hash = match hash.filter(|hash| hash.bytes() == read_offset) {
            Some(hash) => hash,
            None => {
                let fail = |source| Error::Read { path: path.clone(), offset: read_offset, source };
                content::prefix(&path, read_offset).map_err(fail)?.hash
            }
        };
        plan.hashes[n] = Some(Box::new(hash));
    }
    if !removed.is_empty() {
        let first_names: Vec<_> = removed.iter().take(3).map(String::as_str).collect();
        let ellipsis = if removed.len() > first_names.len() { ", …" } else { "" };
        notes.push(format!(
            "{}: {} files were read to their end and are not in {} any more: {}{ellipsis}",
            feed.name,
            removed.len(),
            dir.display(),
            first_names.join(", ")
        ));
    }
    if !feed.rules.allows_same_content {
        plan.contents = source_check::contents(account);
    }
    Ok(plan)
}

impl FolderPlan {
    /// Returns whether a later source of the same feed has begun: sources are read one after the other, so this one
    /// is given up.
    fn is_given_up(&self, source: &SourceAccount) -> bool {
        let last_id = source.further.keys().copied().chain([source.id]).max();
        self.last_id > last_id
    }

    /// Adds the sources of a journal. The journal is ours, and its files may be removed once they are read. The
    /// remaining part holds the bytes that were read, or their beginning.
    fn of_journal(
        &mut self,
        feed: &RunFeed,
        journal: JournalFolder<'_>,
        account: &TapeAccount,
        notes: &mut Vec<String>,
    ) -> Result<(), Error> {
        let JournalFolder { journal_dir: dir, continuity, receiver_start: start } = journal;
        for (i, _) in &self.growths {
            let source = &account.sources[*i];
            let Ok(metadata) = dir.join(&source.file).metadata() else {
                match source.end {
                    true => {}
                    // The user let an earlier run continue without it.
                    false if self.is_given_up(source) => _ = self.abandoned_ids.insert(source.id),
                    false if continuity == StreamContinuity::Resumed => {
                        return Err(source_check::removed_stream_file(source));
                    }
                    false if feed.rules.new_source => {
                        self.fresh.insert(source.file.clone());
                        notes.push(format!(
                            "{}: {} of the journal is not there any more, and {} bytes were read of it: what came after them \
                             is lost, and what comes is in the next file",
                            feed.name,
                            source.file,
                            source.read_bytes()
                        ));
                    }
                    false => return Err(source_check::removed_source(source)),
                }
                continue;
            };
            // The receiver may have written, since it began, at an offset where the tape had read other bytes.
            let in_hand = start.filter(|start| number_of_file(&source.file) == Some(start.number));
            let bytes = in_hand.map_or(metadata.len(), |start| start.bytes);
            if bytes >= source.read_bytes() {
                continue;
            }
            match continuity {
                // Its sender is asked for what is missing.
                StreamContinuity::Resumed if in_hand.is_some() => continue,
                StreamContinuity::Packets | StreamContinuity::Pipe
                    if in_hand.is_some_and(|start| start.is_of_this_boot) =>
                {
                    return Err(source_check::older_copy(source, bytes));
                }
                _ => {}
            }
            if !source.end {
                notes.push(format!(
                    "{}: {} of the journal has {bytes} bytes, and {} were read of it; the tape has them, and what comes is in \
                     the next file",
                    feed.name,
                    source.file,
                    source.read_bytes()
                ));
                self.cut_files.insert(source.file.clone());
            }
        }
        Ok(())
    }
}

/// The directory that a feed reads, and how often.
#[derive(Clone, Copy)]
pub struct FolderSettings<'f> {
    pub dir: &'f Path,
    pub kind: folder::FolderKind,
    /// Time between two looks for new files.
    pub scan: Duration,
}

/// Finds the tape's account of a directory's sources.
pub fn open_folder(
    feed: &RunFeed,
    settings: FolderSettings<'_>,
    mut plan: FolderPlan,
    account: &mut TapeAccount,
    writer: &mut Writer,
) -> Result<(FeedState, SourceDiscovery), Error> {
    let FolderSettings { dir, kind, scan } = settings;
    let format_id = FormatId::from_format(&feed.format);
    let is_stream = feed.format.statefulness() == Statefulness::Stream;
    let (mut states, mut known_files) = (Vec::new(), Vec::new());
    let mut ended_files = Vec::new();
    for (index, (i, growth)) in plan.growths.into_iter().enumerate() {
        let has_grown = growth.is_some();
        if let Some(growth) = growth {
            note_growth(account, i, &format_id, &growth, writer)?;
        }
        let source = &account.sources[i];
        let is_fresh = plan.fresh.contains(&source.file);
        let mut state = SourceState::from_account(source);
        if !source.end && source.format_id != format_id {
            // The mapping was changed while nothing ran: it holds from where the tape ends.
            state.switch_format(format_id.clone());
        }
        let read_offset = if is_stream { 0 } else { source.through };
        let is_done = source.end
            || is_fresh
            || plan.cut_files.contains(&source.file)
            || plan.abandoned_ids.contains(&source.id);
        if is_stream && !is_done {
            state = state.read_again();
        }
        if is_done && !source.end {
            // Messages after its last mark are not counted again.
            state.tally = source.tally.plus(source.since);
        }
        state.content = plan.hashes[index].take();
        let pending = PendingSource {
            index,
            path: dir.join(&source.file),
            from: read_offset,
            size: None,
            first: source.hash.clone(),
        };
        if source.end && !has_grown && !is_fresh {
            ended_files.push(pending.path.clone());
        }
        known_files.push(KnownFile { pending, is_done, is_fresh });
        states.push(state);
    }
    let known_folder = KnownFolder {
        files: known_files,
        contents: plan.contents,
        allows_same_content: feed.rules.allows_same_content,
    };
    let mut folder = SourceFolder::new(feed.name.clone(), dir.to_owned(), kind, known_folder, scan);
    if matches!(kind, folder::FolderKind::Files { .. }) {
        // As those that end in this run.
        for path in ended_files {
            if let Ok(metadata) = path.metadata() {
                folder.note_ended(path, metadata.len());
            }
        }
    }
    let mut state = feed_state(feed, account, states, true, 1);
    state.hashes = matches!(kind, folder::FolderKind::Files { .. });
    Ok((state, SourceDiscovery::Folder(Box::new(folder))))
}

pub fn feed_state(
    feed: &RunFeed,
    account: &TapeAccount,
    states: Vec<SourceState>,
    grows: bool,
    open: usize,
) -> FeedState {
    let order = account.feeds.get(&feed.name).cloned().unwrap_or_default();
    let running_max = order.running_max.map_or(crate::block::NO_TS, UnixNanos);
    FeedState::new(FeedResumeState {
        name: feed.name.clone(),
        grows,
        sources: states,
        running_max,
        sessions: order.sessions,
        open_sources: open,
        outstanding: Arc::default(),
    })
}
