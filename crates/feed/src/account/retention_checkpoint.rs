//! The account of what retention removed: what a restart must know of segments that are no longer there.
//!
//! ```text
//!   gone          │ kept                    DIR/account.gone, two lines:
//!   ■ ■ ■ ■ ■ ■ ■ │ ■ ■ ■ ■ ■ ■ …             {"format":1,"tape":…,"position":P,…,"sources":[…]}
//!                 P                           blake3 of the first line
//! ```
//!
//! Before segments are removed they are read once more, and the account is carried on to the position that will be
//! the oldest; it is on the disk before the first of them goes. The account of a tape begins with it, so that a
//! restart after retention knows what one before it knew: how far each source was read, which messages are on the
//! tape, how long the raw log is, what has been placed. Names and sources are not in it: the tape's dictionary log
//! has them all.

use crate::account::{FeedAccount, TapeAccount, TapeGapAccount};
use crate::block::MessageTally;
use crate::block::numbers::{FeedSessions, SequenceNumberSet};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use unitape_model::Position;
use unitape_tape::{
    ForeignDamage, LostDefinitions, ReadOptions, Reader, RemovalHook, StartPosition, TapeManifest,
    oldest_position,
};

const NAME: &str = "account.gone";
const FORMAT: u32 = 1;
/// No account is longer: a million sources and their sessions.
const BYTES_MAX: u64 = 1 << 30;
/// Tries to begin at an oldest position that retention is moving meanwhile.
const TRIES: u32 = 100;

/// An account as it is kept, without names and definitions.
#[derive(Debug, Deserialize, Serialize)]
struct RetentionCheckpoint {
    format: u32,
    tape: String,
    position: u64,
    by_kind: BTreeMap<u8, u64>,
    feeds: BTreeMap<String, CheckpointFeed>,
    raw_bytes: u64,
    recovered: u64,
    placed_max: (i64, i64),
    late: u64,
    #[serde(default)]
    ahead: u64,
    #[serde(default)]
    gaps: u64,
    #[serde(default)]
    sums_differ: u64,
    /// A unit lies across the position, and an event of it says that a sum differs.
    #[serde(default)]
    differs: bool,
    #[serde(default)]
    lines_down: BTreeMap<String, BTreeSet<(String, String)>>,
    tape_gaps: TapeGapAccount,
    /// Whether a unit lies across the position, and if so, whether it was recovered from quarantine.
    within: Option<bool>,
    sources: Vec<CheckpointSource>,
}

#[derive(Debug, Deserialize, Serialize)]
struct CheckpointFeed {
    running_max: Option<i64>,
    /// Greatest number of each.
    sessions: BTreeMap<String, u64>,
    /// The numbers seen; older accounts have the greatest alone.
    #[serde(default)]
    seen: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, Serialize)]
struct CheckpointSource {
    id: u32,
    tally: MessageTally,
    since: MessageTally,
    through: u64,
    end: bool,
    last_offset: Option<u64>,
    #[serde(default)]
    ahead: Vec<u64>,
    units: u64,
    #[serde(default)]
    content: Option<(u64, String)>,
    #[serde(default)]
    tail: Option<(u64, u64)>,
}

/// Has the account carried on before segments of a tape are removed; for [`unitape_tape::RemovalOptions`].
pub fn update_checkpoint() -> RemovalHook {
    let last_account: Mutex<Option<(PathBuf, TapeAccount, Position)>> = Mutex::new(None);
    RemovalHook::new(move |dir, oldest| {
        let mut last_account = last_account.lock().unwrap_or_else(PoisonError::into_inner);
        let saved_account = last_account.take().filter(|(account_dir, ..)| account_dir == dir);
        let account =
            advance_account(dir, oldest, saved_account.map(|(_, account, position)| (account, position)));
        *last_account = Some((dir.to_owned(), account.map_err(|e| e.to_string())?, oldest));
        Ok(())
    })
}

/// Advances the account kept in `dir` to `oldest`.
fn advance_account(
    dir: &Path,
    oldest: Position,
    saved_account: Option<(TapeAccount, Position)>,
) -> Result<TapeAccount, Error> {
    let (mut account, mut reader) = match saved_account {
        Some((account, start)) => (account, Reader::open(dir, StartPosition::At(start))?),
        None => open_at_checkpoint(dir, ReadOptions::default())?,
    };
    refuse_partial(&account)?;
    while reader.position() < oldest {
        let Some(run) = reader.next_run(1 << 20)? else { break };
        // A run lies within a segment, and the oldest position is the start of one.
        if run.position >= oldest {
            break;
        }
        if let Err((position, reason)) = account.add_run(run.position, run.bytes) {
            return Err(reader.damage_at(position, &reason).into());
        }
    }
    if reader.position() < oldest {
        let reason = format!("the tape ends here, and everything before {oldest} is to go");
        return Err(Error::Inconsistent { position: reader.position(), reason });
    }
    store_checkpoint(dir, &account, &reader.id().to_string(), oldest)?;
    Ok(account)
}

/// Opens a tape at its oldest frame: returns the account of the removed frames and a reader after them.
///
/// If no account was kept, the returned account has only names and sources and is marked as partial.
pub fn open_at_checkpoint(dir: &Path, options: ReadOptions) -> Result<(TapeAccount, Reader), Error> {
    let mut tries = 0;
    loop {
        match try_begin(dir, options) {
            // Retention removed more between two looks.
            Err(Error::Tape(unitape_tape::Error::Retained { .. })) if tries < TRIES => tries += 1,
            other => return other,
        }
    }
}

fn try_begin(dir: &Path, options: ReadOptions) -> Result<(TapeAccount, Reader), Error> {
    let mut reader = Reader::open_with(dir, StartPosition::Oldest, options)?;
    let oldest_position = reader.position();
    let checkpoint = load(dir, &reader.id().to_string())?
        .filter(|checkpoint| Position(checkpoint.position) >= oldest_position);
    let mut account = TapeAccount::default();
    if options.skip_damage {
        account.names.set_log(LostDefinitions::names(dir));
    }
    let read_from = match &checkpoint {
        Some(checkpoint) => Position(checkpoint.position),
        None if oldest_position == Position(0) => return Ok((account, reader)),
        None => oldest_position,
    };
    LostDefinitions::new(dir, options.skip_damage).learn_before(read_from, |_, frame| account.add(frame))?;
    match checkpoint {
        Some(checkpoint) => checkpoint.restore_account(&mut account)?,
        None => account.partial_from = Some(oldest_position),
    }
    if read_from > oldest_position {
        reader.seek(read_from)?;
    }
    Ok((account, reader))
}

/// Encodes the account up to `position`, without names and sources, as a value that [`load_up_to`] restores.
pub fn kept_account(
    account: &TapeAccount,
    tape: &str,
    position: Position,
) -> Result<serde_json::Value, Error> {
    let checkpoint = serde_json::to_value(RetentionCheckpoint::from_account(account, tape, position));
    checkpoint.map_err(|e| Error::Gone { path: NAME.into(), source: e.into() })
}

/// Loads the account of the tape in `dir` up to `end`. Continues from `checkpoint_json` if the tape still has the
/// frames after it.
pub fn load_up_to(
    dir: &Path,
    checkpoint_json: Option<serde_json::Value>,
    end: Position,
) -> Result<TapeAccount, Error> {
    let oldest = oldest_position(dir)?;
    let checkpoint =
        checkpoint_json.and_then(|json| serde_json::from_value::<RetentionCheckpoint>(json).ok());
    let checkpoint = checkpoint
        .filter(|checkpoint| Position(checkpoint.position) >= oldest && Position(checkpoint.position) <= end);
    let (mut account, mut reader) = match checkpoint {
        Some(checkpoint) => {
            let (mut account, from) = (TapeAccount::default(), Position(checkpoint.position));
            LostDefinitions::new(dir, false).learn_before(from, |_, frame| account.add(frame))?;
            checkpoint.restore_account(&mut account)?;
            (account, Reader::open(dir, StartPosition::At(from))?)
        }
        None => open_at_checkpoint(dir, ReadOptions::default())?,
    };
    if reader.position() > end {
        let reason = format!("the account of what came before is wanted at {end}, and retention removed it");
        return Err(Error::Inconsistent { position: reader.position(), reason });
    }
    while reader.position() < end {
        let Some(run) = reader.next_run(1 << 20)? else { break };
        if run.position >= end {
            break;
        }
        let bytes = run.bytes.len().min((end.0 - run.position.0) as usize);
        if let Err((position, reason)) = account.add_run(run.position, &run.bytes[..bytes]) {
            return Err(reader.damage_at(position, &reason).into());
        }
    }
    Ok(account)
}

/// Checks the account that retention keeps, for [`unitape_tape::repair`]. Returns `None` if the account is sound or
/// absent.
///
/// # Errors
/// Fails if the tape cannot be read.
pub fn checkpoint_damage(dir: &Path) -> Result<Option<ForeignDamage>, Error> {
    // A tape without an identity cannot be judged; the next repair knows its identity.
    let Ok(meta) = TapeManifest::load(dir) else { return Ok(None) };
    let reason = match load(dir, &meta.id.to_string()) {
        Err(Error::Gone { source, .. }) if source.kind() == std::io::ErrorKind::InvalidData => {
            source.to_string()
        }
        other => return other.map(|_| None),
    };
    let spare = oldest_position(dir)? == Position(0);
    let action = match spare {
        true => "moved away: nothing was removed, the tape has it all",
        false => {
            "moved away: the account of what retention removed is lost; the tape can be read, and nothing can be consolidated \
             onto it any more"
        }
    };
    let (file, action) = (dir.join(NAME), action.to_owned());
    Ok(Some(ForeignDamage { file_path: file, offset: 0, reason, is_harmless: spare, stays: false, action }))
}

/// Fails if the account is partial: a run cannot continue a tape without a complete account.
pub fn refuse_partial(account: &TapeAccount) -> Result<(), Error> {
    let Some(position) = account.partial_from else { return Ok(()) };
    let reason = "what was before it was removed without keeping its account (account.gone), so it is not known what \
                is on the tape; use a new tape";
    Err(Error::Inconsistent { position, reason: reason.to_owned() })
}

impl RetentionCheckpoint {
    fn from_account(account: &TapeAccount, tape: &str, position: Position) -> Self {
        let by_kind = account.by_kind.iter().enumerate().filter(|(_, n)| **n > 0);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Self {
            format: FORMAT,
            tape: tape.to_owned(),
            position: position.0,
            by_kind: by_kind.map(|(kind, n)| (kind as u8, *n)).collect(),
            feeds: account
                .feeds
                .iter()
                .map(|(name, feed)| {
                    let each = || feed.sessions.iter();
                    let sessions =
                        each().map(|(session, numbers)| (text(session), numbers.greatest_number())).collect();
                    let number_texts =
                        each().map(|(session, numbers)| (text(session), numbers.to_string())).collect();
                    (
                        name.clone(),
                        CheckpointFeed { running_max: feed.running_max, sessions, seen: number_texts },
                    )
                })
                .collect(),
            raw_bytes: account.raw_bytes,
            recovered: account.recovered,
            placed_max: account.placed_max,
            late: account.late,
            ahead: account.clock_ahead,
            gaps: account.gaps,
            sums_differ: account.sums_differ,
            differs: account.differs,
            lines_down: account.lines_down.clone(),
            tape_gaps: account.tape_gaps.clone(),
            within: account.open_unit_recovered,
            sources: account
                .sources
                .iter()
                .map(|s| CheckpointSource {
                    id: s.id,
                    tally: s.tally,
                    since: s.since,
                    through: s.through,
                    end: s.end,
                    last_offset: s.last_offset,
                    ahead: s.ahead_offsets.clone(),
                    units: s.units,
                    content: s.marked_content.clone(),
                    tail: s.quarantined_tail,
                })
                .collect(),
        }
    }

    /// Puts it into an account that has the names and sources.
    fn restore_account(self, account: &mut TapeAccount) -> Result<(), Error> {
        account.by_kind = [0; 64];
        for (kind, n) in self.by_kind {
            account.by_kind[usize::from(kind & 63)] = n;
        }
        account.feeds = self
            .feeds
            .into_iter()
            .map(|(name, feed)| {
                let mut sessions = FeedSessions::default();
                for (session, greatest) in feed.sessions {
                    let set = match feed.seen.get(&session) {
                        Some(text) => SequenceNumberSet::parse(text).ok_or_else(|| {
                            let reason = format!(
                                "{NAME} says {text:?} of session {session:?}: these are no sequence numbers"
                            );
                            Error::Inconsistent { position: Position(self.position), reason }
                        })?,
                        None => SequenceNumberSet::from_greatest(greatest),
                    };
                    sessions.insert_session(session.into_bytes(), set);
                }
                Ok((name, FeedAccount { running_max: feed.running_max, sessions }))
            })
            .collect::<Result<_, Error>>()?;
        account.raw_bytes = self.raw_bytes;
        account.recovered = self.recovered;
        account.placed_max = self.placed_max;
        account.late = self.late;
        account.clock_ahead = self.ahead;
        account.gaps = self.gaps;
        account.sums_differ = self.sums_differ;
        account.differs = self.differs;
        account.lines_down = self.lines_down;
        account.tape_gaps = self.tape_gaps;
        account.open_unit_recovered = self.within;
        if account.sources.len() != self.sources.len() {
            let (account_count, checkpoint_count) = (account.sources.len(), self.sources.len());
            let reason =
                format!("{NAME} has {checkpoint_count} sources, the dictionary log has {account_count}");
            return Err(Error::Inconsistent { position: Position(self.position), reason });
        }
        for (source, checkpoint_source) in account.sources.iter_mut().zip(self.sources) {
            if source.id != checkpoint_source.id {
                let reason = format!(
                    "{NAME} has source {}, the dictionary log has {}",
                    checkpoint_source.id, source.id
                );
                return Err(Error::Inconsistent { position: Position(self.position), reason });
            }
            source.tally = checkpoint_source.tally;
            source.since = checkpoint_source.since;
            source.through = checkpoint_source.through;
            source.end = checkpoint_source.end;
            source.last_offset = checkpoint_source.last_offset;
            source.ahead_offsets = checkpoint_source.ahead;
            source.units = checkpoint_source.units;
            source.marked_content = checkpoint_source.content;
            source.quarantined_tail = checkpoint_source.tail;
        }
        Ok(())
    }
}

fn load(dir: &Path, tape: &str) -> Result<Option<RetentionCheckpoint>, Error> {
    let path = dir.join(NAME);
    let checkpoint_error = |reason: &str| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, reason.to_owned());
        Error::Gone { path: path.clone(), source }
    };
    let mut text = String::new();
    match std::fs::File::open(&path).and_then(|f| f.take(BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Gone { path, source }),
    }
    let (line, sum) = text.split_once('\n').ok_or_else(|| checkpoint_error("it is cut short"))?;
    if sum.trim_end() != blake3::hash(line.as_bytes()).to_hex().as_str() {
        return Err(checkpoint_error("its checksum does not match"));
    }
    let checkpoint: RetentionCheckpoint =
        serde_json::from_str(line).map_err(|e| checkpoint_error(&e.to_string()))?;
    if checkpoint.format != FORMAT {
        return Err(checkpoint_error(&format!(
            "it is of format {}, this build knows {FORMAT}",
            checkpoint.format
        )));
    }
    if checkpoint.tape != tape {
        return Err(checkpoint_error(&format!("it is of tape {}", checkpoint.tape)));
    }
    Ok(Some(checkpoint))
}

/// Puts the account on the disk, whole or not at all.
fn store_checkpoint(dir: &Path, account: &TapeAccount, tape: &str, position: Position) -> Result<(), Error> {
    let path = dir.join(NAME);
    let fail = |source: std::io::Error| Error::Gone { path: path.clone(), source };
    let line = serde_json::to_string(&RetentionCheckpoint::from_account(account, tape, position))
        .map_err(|e| fail(e.into()))?;
    let temp = dir.join("account.new");
    let mut file = std::fs::File::create(&temp).map_err(fail)?;
    let sum = blake3::hash(line.as_bytes()).to_hex();
    file.write_all(format!("{line}\n{sum}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(fail)?;
    std::fs::rename(&temp, &path).map_err(fail)?;
    std::fs::File::open(dir).and_then(|d| d.sync_all()).map_err(fail)
}
