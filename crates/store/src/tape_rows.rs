//! The rows of a tape, with the store's tokens instead of its ids.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use unitape_model::schema::at;
use unitape_model::{DefinitionTable, Event, FrameFault, NameKind, Position, TopicMessage, frames};
use unitape_tape::{LostDefinitions, ReadOptions, Reader, StartPosition, TapeId, TapeStatus};

use crate::cells::EventKindLayout;
use crate::day::{Day, DayRule};
use crate::dictionary::TokenDictionary;
use crate::error::{Error, Result};
use crate::frames::SealRow;
use crate::gather::{GroupKey, RowGatherer};
use crate::manifest::TapeSealProgress;
use crate::schema::TickSchema;
use crate::seal::SealOptions;

/// Where reading came to.
pub(crate) struct SealEnd {
    /// Position after the last frame.
    pub position: Position,
    pub last_position: Position,
    pub last_crc: u32,
}

/// A tape that is being read, with the meaning of its ids.
pub(crate) struct TapeSealer<'a> {
    pub reader: Reader,
    tape: TapeId,
    options: &'a SealOptions<'a>,
    /// Sealed without regard to days.
    pub from_position: Position,
    /// Days that are further.
    days: BTreeMap<Day, Position>,
    /// Nothing from here on is read.
    limit_position: Option<Position>,
    pub gap: Option<(Position, Position)>,
    pub definitions: DefinitionTable,
    tokens: [Vec<u32>; NameKind::COUNT],
    source_tokens: Vec<u32>,
    day_rule: DayRule,
}

impl<'a> TapeSealer<'a> {
    pub fn new(
        dir: &Path,
        standing: &TapeStatus,
        state: Option<&TapeSealProgress>,
        day_rule: DayRule,
        options: &'a SealOptions<'a>,
    ) -> Result<Self> {
        let (tape, days) = (standing.id, state.map_or_else(BTreeMap::new, |s| s.days.clone()));
        let of_day = options.date.and_then(|d| days.get(&d)).copied().unwrap_or_default();
        let sealed_end = state.map_or(Position(0), |s| s.sealed).max(of_day);
        let gap = (standing.oldest_position > sealed_end).then_some((sealed_end, standing.oldest_position));
        // The log has at least all definitions up to the durable position. The tape has the others.
        let read_from = sealed_end.min(standing.durable);
        let start = if read_from <= standing.oldest_position {
            StartPosition::Oldest
        } else {
            StartPosition::At(read_from)
        };
        let read_options = ReadOptions { skip_damage: options.skip_damage, ..ReadOptions::default() };
        let open_reader = |start| {
            Reader::open_with(dir, start, read_options).map_err(|e| shorter_tape(e, tape, sealed_end))
        };
        let mut reader = open_reader(start)?;
        if let Some(state) = state {
            check_last(&mut reader, state, dir, options.skip_damage)?;
        }
        let table = || {
            let mut definitions = DefinitionTable::default();
            if options.skip_damage {
                definitions.set_log(LostDefinitions::names(dir));
            }
            definitions
        };
        let (mut names, mut lost_definitions) = (table(), LostDefinitions::new(dir, options.skip_damage));
        match lost_definitions.learn_before(reader.position(), |_, frame| names.admit_frame(frame).map(drop))
        {
            // All that the log has can be met on the tape once more.
            Err(_) if standing.oldest_position.0 == 0 => {
                (reader, names) = (open_reader(StartPosition::Oldest)?, table())
            }
            other => other?,
        }
        let limit = standing.live.then_some(standing.durable);
        if let Some(p) = options.progress {
            p.bytes_total.store(standing.durable.0.saturating_sub(sealed_end.0), Ordering::Relaxed);
        }
        Ok(Self {
            reader,
            tape,
            options,
            from_position: sealed_end,
            days,
            limit_position: limit,
            gap,
            definitions: names,
            tokens: Default::default(),
            source_tokens: Vec::new(),
            day_rule,
        })
    }

    /// Reads to the end, or as far as it may seal.
    pub fn run(&mut self, store: &mut TokenDictionary, gatherer: &mut RowGatherer<'_>) -> Result<SealEnd> {
        let mut seal_end = SealEnd { position: Position(0), last_position: Position(0), last_crc: 0 };
        let mut scratch = Vec::new();
        // The run borrows the reader, so the other fields are borrowed apart.
        let Self {
            reader,
            tape,
            options,
            from_position: from,
            days,
            limit_position: limit,
            definitions: names,
            tokens,
            source_tokens,
            day_rule,
            ..
        } = self;
        'tape: while let Some(run) = reader.next_run(RUN_BYTES)? {
            if options.stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
                return Err(Error::Stopped);
            }
            // Bytes without a checksum are sealed later, when they are durable.
            if !run.is_checked {
                break;
            }
            let mut ordinal = run.ordinal;
            let mut rows = 0;
            let (read_bytes, mut refused) = (run.bytes.len() as u64, None);
            for (offset, header, frame) in frames(run.bytes) {
                let position = run.position.plus(offset as u64);
                if limit.is_some_and(|limit| position >= limit) {
                    break 'tape;
                }
                let event = match Event::new(frame) {
                    // A user's bytes: no tick, and of no day.
                    None if TopicMessage::from_frame(frame).is_some() => {
                        (seal_end.position, seal_end.last_position) =
                            (position.plus(frame.len() as u64), position);
                        ordinal += 1;
                        continue;
                    }
                    Some(event) if !header.is_meta() => event,
                    _ => {
                        if let Err(flaw) = names.admit_frame(frame) {
                            refused = Some((position, flaw.to_string()));
                            break;
                        }
                        (seal_end.position, seal_end.last_position) =
                            (position.plus(frame.len() as u64), position);
                        continue;
                    }
                };
                if options.skip_damage {
                    // For names from the log. A name without a definition is refused below.
                    _ = names.admit_event(&event);
                }
                let (kind, ts) = (event.kind(), event.ts_event());
                let day = day_rule.day_of(&event, |venue| names.name(NameKind::Venue, venue));
                let sealed = days.get(&day).map_or(*from, |through| (*through).max(*from));
                if position >= sealed && options.date.is_none_or(|wanted| wanted == day) {
                    scratch.clear();
                    scratch.extend_from_slice(frame);
                    scratch[..4].fill(0);
                    let plan = EventKindLayout::for_schema(event.schema());
                    let change = |dict: NameKind, id: u32| -> std::result::Result<u32, IdRefusal> {
                        let known_token = tokens[dict as usize].get(id as usize).copied().unwrap_or(0);
                        if known_token != 0 {
                            return Ok(known_token);
                        }
                        let name = names.name(dict, id).ok_or(FrameFault::Undefined { dict, id })?;
                        let token = store.intern(dict, name)?;
                        record_token(&mut tokens[dict as usize], id, token);
                        Ok(token)
                    };
                    let source = event.source();
                    let source_token = source_tokens.get(source as usize).copied().unwrap_or(0);
                    let change_result = plan.change_ids(&mut scratch, change).and_then(|()| {
                        if source != 0 && source_token == 0 {
                            let defined = names.source(source).ok_or(FrameFault::UndefinedSource(source))?;
                            let token = store.intern_source(*tape, source, &defined.frame)?;
                            record_token(source_tokens, source, token);
                        }
                        TickSchema::for_kind(kind).ok_or(IdRefusal::Frame("bookkeeping among events"))
                    });
                    let schema = match change_result {
                        Ok(schema) => schema,
                        Err(IdRefusal::Store(e)) => return Err(e),
                        Err(IdRefusal::Frame(reason)) => {
                            refused = Some((position, reason.to_owned()));
                            break;
                        }
                        Err(IdRefusal::Flaw(flaw)) => {
                            refused = Some((position, flaw.to_string()));
                            break;
                        }
                    };
                    if source != 0 {
                        let token = source_tokens[source as usize];
                        scratch[at::SOURCE..at::SOURCE + 4].copy_from_slice(&token.to_le_bytes());
                    }
                    let key = GroupKey { day, schema, instrument: plan.instrument(&scratch) };
                    let row = SealRow { frame: &scratch, ts, tape_index: 0, ordinal, position };
                    gatherer.push(key, &row)?;
                    rows += 1;
                }
                (seal_end.position, seal_end.last_position) = (position.plus(frame.len() as u64), position);
                ordinal += 1;
            }
            if let Some((position, refusal_reason)) = refused {
                reader.refuse(position, &refusal_reason)?;
            }
            if let Some(p) = options.progress {
                p.bytes.fetch_add(read_bytes, Ordering::Relaxed);
                p.rows.fetch_add(rows, Ordering::Relaxed);
            }
        }
        if reader.unverified().bytes > 0
            && let (Some(from), Some((path, unchecked_reason))) =
                (reader.unverified().first_position, &reader.unverified().first_file)
        {
            return Err(Error::Unchecked { path: path.clone(), from, reason: unchecked_reason.clone() });
        }
        if seal_end.position > Position(0) {
            let frame = reader.frame_at(seal_end.last_position)?;
            seal_end.last_crc = crc32c::crc32c(frame.bytes);
        }
        Ok(seal_end)
    }
}

/// Bytes of tape between two looks at whether to stop.
const RUN_BYTES: usize = 1 << 20;

/// Why an id was not accepted.
enum IdRefusal {
    Store(Error),
    Frame(&'static str),
    Flaw(FrameFault),
}

impl From<FrameFault> for IdRefusal {
    fn from(flaw: FrameFault) -> Self {
        Self::Flaw(flaw)
    }
}

impl From<Error> for IdRefusal {
    fn from(e: Error) -> Self {
        Self::Store(e)
    }
}

impl From<&'static str> for IdRefusal {
    fn from(reason: &'static str) -> Self {
        Self::Frame(reason)
    }
}

/// Records the token of an id. The ids of a tape are consecutive, so a table of them is dense. An id far beyond all
/// defined names never gets here.
fn record_token(tokens: &mut Vec<u32>, id: u32, token: u32) {
    let index = id as usize;
    if tokens.len() <= index {
        tokens.resize(index + 1, 0);
    }
    tokens[index] = token;
}

/// Fails if the tape no longer reads as it did when it was sealed.
fn check_last(reader: &mut Reader, state: &TapeSealProgress, dir: &Path, skip_damage: bool) -> Result<()> {
    let other_tape = |difference| Error::OtherTape { tape: state.tape, sealed: state.sealed, difference };
    match reader.frame_at(state.last_position) {
        Ok(frame) if crc32c::crc32c(frame.bytes) == state.last_crc => Ok(()),
        Ok(_) => Err(other_tape("its last frame that was sealed is another one now")),
        Err(unitape_tape::Error::Retained { .. }) => Ok(()),
        Err(unitape_tape::Error::Damage { .. }) if skip_damage => Ok(()),
        // Within a frame of another tape no sum matches. A walk from the segment's start finds that no frame starts there.
        Err(unitape_tape::Error::Damage { .. })
            if matches!(
                Reader::open(dir, StartPosition::At(state.last_position)),
                Err(unitape_tape::Error::NoFrame(_))
            ) =>
        {
            Err(other_tape("its last frame that was sealed is not there now"))
        }
        Err(unitape_tape::Error::NoFrame(_)) => Err(other_tape("it ends before that now")),
        Err(e) => Err(e.into()),
    }
}

fn shorter_tape(error: unitape_tape::Error, tape: TapeId, sealed: Position) -> Error {
    match error {
        unitape_tape::Error::NoFrame(_) => {
            let difference = "no frame starts or ends there now";
            Error::OtherTape { tape, sealed, difference }
        }
        other => other.into(),
    }
}
