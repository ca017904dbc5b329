//! Opening for writing: make the tape, or find its end and cut what lies behind it.
//!
//! A killed process leaves whole claims, then a header word that is zero; whatever stands behind that was never
//! reachable and is zeroed, so that it cannot come back. After a reboot without a clean close, pages may be
//! missing anywhere behind the durable position, so there only spans whose checksum matches are believed.

use std::fs;
use std::path::{Path, PathBuf};

use unitape_model::{LINE, Position};

use crate::disk::definitions::DefinitionLog;
use crate::disk::layout::{
    HEADER_PAGE, Meta, Paths, SegmentHeader, TapeId, check_segment_bytes, list_segments, read_start, remove,
    remove_hot, remove_unfinished, segment_path,
};
use crate::disk::live::Live;
use crate::disk::map::{Making, Seen, Segment};
use crate::disk::run::{Lock, State, boot_id, field, write_whole};
use crate::disk::sys;
use crate::error::{At, Error, Result, committed};
use crate::keep::seal::unseal;
use crate::record::durable::load_durable;
use crate::record::follow::Follower;
use crate::record::sums::padded;
use crate::write::options::{Backing, Options, Sync};

/// What opening found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The tape was made just now.
    pub created: bool,
    /// The last writer closed the tape (also true for a new one).
    pub clean: bool,
    /// The machine was restarted since the last writer, which had not closed.
    pub rebooted: bool,
    /// Position behind the last complete unit: the writer goes on here.
    pub end: Position,
    /// Non-META frames before it.
    pub ordinal: u64,
    /// Committed bytes behind the last complete unit that were cut.
    pub cut_bytes: u64,
    /// Openings since the last clean close, this one included.
    pub epoch: u64,
}

pub(crate) struct Opened {
    pub paths: Paths,
    pub meta: Meta,
    pub lock: Lock,
    pub recovery: Recovery,
    /// Directory of the live segments.
    pub place: PathBuf,
    /// Where new ones are made before they get their name.
    pub making: PathBuf,
    pub current: Option<Segment>,
}

pub(crate) fn open(dir: &Path, id: TapeId, options: &Options) -> Result<Opened> {
    check_segment_bytes(options.segment_bytes)?;
    options.retention.check()?;
    sys::make_dir(dir).at("make", dir)?;
    let paths = Paths { dir: dir.into() };
    let created = !dir.join("tape.toml").exists();
    if created {
        for entry in fs::read_dir(dir).at("list", dir)? {
            if entry.at("list", dir)?.file_name() != "run" {
                return Err(Error::NotATape {
                    path: dir.into(),
                    what: "it holds other things and no tape.toml",
                });
            }
        }
    } else {
        // Before anything is touched: a foreign tape or version stays as it is.
        check_id(dir, id)?;
    }
    sys::make_dir(&paths.run().join("cursors")).at("make", &paths.run())?;
    let mut lock = Lock::take(&paths.writer_lock())?;
    if !dir.join("tape.toml").exists() {
        Meta { id, segment_bytes: options.segment_bytes }.store(&paths)?;
    }
    let meta = check_id(dir, id)?;
    sys::make_dir(&paths.segments()).at("make", &paths.segments())?;

    let (before, boot) = (lock.before.clone(), boot_id());
    let clean = before.is_empty();
    let rebooted = !clean && field(&before, "boot").unwrap_or_default() != boot;
    let epoch = field(&before, "epoch").and_then(|e| e.parse().ok()).unwrap_or(0u64) + 1;
    lock.sign(&format!("pid {}\nepoch {epoch}\nboot {boot}\n", std::process::id()))?;
    let state = State::open(&paths)?;
    if rebooted {
        state.reset();
    }
    state.set_retention(&options.retention);
    remove_unfinished(&paths.run())?;
    if let Some(hot) = paths.hot_place() {
        remove_unfinished(&hot)?;
        if rebooted {
            // Whatever survives a restart is not what shared memory was.
            remove_hot(&hot)?;
        }
    }
    if paths.hot_place().is_none() {
        remove(&paths.hot())?;
    }

    let live = Live::of(paths.clone(), meta);
    match load_durable(&paths) {
        Err(Error::Damage { .. }) if options.truncate_damage => remove(&paths.durable())?,
        // A recorder that came before the writer has told it, and may have nothing to tell again.
        Ok(durable) if rebooted => state.set_durable(durable.position),
        other => drop(other?),
    }
    let failed = state.failure(&paths).is_some();
    let doubt = Doubt { rebooted, failed, truncate_damage: options.truncate_damage, reached: state.end().0 };
    let end = find_end(&live, &doubt)?;
    // Before anything behind it goes: a reader that misses a segment asks whether the tape reaches into it.
    state.set_end(end.position, end.ordinal);
    truncate(&live, &end)?;
    if failed {
        write_again(&live, &end)?;
        state.mending();
    }
    let (place, making) = settle_backing(&live, &end, options)?;
    let current = take_current(&place, &making, &meta, &end, options.making())?;
    let recovery = Recovery {
        created,
        clean,
        rebooted,
        end: Position(end.position),
        ordinal: end.ordinal,
        cut_bytes: end.cut_bytes,
        epoch,
    };
    Ok(Opened { paths, meta, lock, recovery, place, making, current })
}

fn check_id(dir: &Path, wanted: TapeId) -> Result<Meta> {
    let meta = Meta::load(dir)?;
    if meta.id != wanted {
        return Err(Error::ForeignTape { path: dir.into(), found: meta.id, wanted });
    }
    Ok(meta)
}

struct End {
    position: u64,
    ordinal: u64,
    cut_bytes: u64,
}

/// What the walk to the end must not believe, or must.
struct Doubt {
    rebooted: bool,
    /// A flush has failed.
    failed: bool,
    truncate_damage: bool,
    /// The tape came this far, as its last writer told; a claim of it may not have been published.
    reached: u64,
}

/// Walks from the durable segment to the last complete unit.
fn find_end(live: &Live, doubt: &Doubt) -> Result<End> {
    let &Doubt { rebooted, failed, truncate_damage, reached } = doubt;
    let size = live.meta.segment_bytes;
    let durable = load_durable(&live.paths)?.position;
    let mut lost = None;
    let limit = if rebooted {
        trusted_end(live, durable)?
    } else if failed {
        lost = first_lost(live, durable)?;
        lost.as_ref().map_or(u64::MAX, |(position, _)| *position)
    } else {
        u64::MAX
    };
    let all = live.indices()?;
    let mut index = durable / size;
    if !all.contains(&index) && index > 0 && durable.is_multiple_of(size) {
        index -= 1;
    }
    if durable == 0 {
        index = all.first().copied().unwrap_or(0);
    }
    let mut end = End { position: index * size, ordinal: 0, cut_bytes: 0 };
    let (mut at, mut ordinal) = (end.position, 0);
    let mut first = true;
    let mut broken = None;
    'segments: loop {
        let segment = match live.segment(index) {
            Ok(Some((segment, first_ordinal))) => {
                if first {
                    (ordinal, end.ordinal, first) = (first_ordinal, first_ordinal, false);
                } else if first_ordinal != ordinal && segment.look(0) != Seen::Nothing {
                    broken =
                        Some(Error::damage(&segment.path, 56, "the segment's first ordinal does not go on"));
                    break;
                }
                segment
            }
            Ok(None) => {
                let begun = reached > index * size;
                let path = || segment_path(&live.paths.segments(), index);
                let what = "the segment is missing, the tape went on in it";
                let removed = || begun.then(|| Error::damage(&path(), 0, what));
                broken = live.explain_missing(index).err().or_else(removed);
                break;
            }
            Err(e) => {
                broken = Some(e);
                break;
            }
        };
        let mut offset = 0;
        while offset < size {
            match segment.look(offset) {
                Seen::Frame(header) if at + header.len_bytes() as u64 <= limit => {
                    offset += header.len_bytes() as u64;
                    at += header.len_bytes() as u64;
                    ordinal += u64::from(!header.is_meta());
                    if header.is_last() {
                        (end.position, end.ordinal) = (at, ordinal);
                    }
                }
                Seen::Pad if at + 8 <= limit => {
                    // The recorder may have been here and no further: the durable position is behind the pad then.
                    if end.position == at && segment.end() <= limit {
                        end.position = segment.end();
                    }
                    break;
                }
                Seen::Damage(header) => {
                    let what = format!("no frame can start with {header:?}");
                    broken = Some(Error::damage(&segment.path, HEADER_PAGE + offset, what));
                    break 'segments;
                }
                _ => break 'segments,
            }
        }
        index += 1;
        at = index * size;
    }
    if broken.is_none() {
        broken = lost.map(|(_, error)| error);
    }
    if end.position < durable {
        let path = segment_path(&live.paths.segments(), end.position / size);
        let offset = HEADER_PAGE + end.position % size;
        let what =
            format!("the tape ends at position {}, before its durable position {durable}", end.position);
        return Err(broken.unwrap_or_else(|| Error::damage(&path, offset, what)));
    }
    if let Some(error) = broken
        && !rebooted
        && !truncate_damage
    {
        return Err(error);
    }
    end.cut_bytes = at.saturating_sub(end.position);
    Ok(end)
}

/// After a restart: how far beyond the durable position the checksums vouch for what is on the disk.
fn trusted_end(live: &Live, durable: u64) -> Result<u64> {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    let mut trusted = durable;
    for index in durable / size.. {
        let path = segment_path(&live.paths.segments(), index);
        let Ok(sums) = read_start(&live.paths.crc(index), size / span * 4) else { break };
        let Ok(Some((segment, _))) = Segment::open(&path, &live.meta, index, false) else { break };
        for (i, sum) in sums.chunks_exact(4).enumerate() {
            let from = i as u64 * span;
            if from >= size {
                break;
            }
            // SAFETY: within the segment; the lock is ours and no writer lives.
            let bytes = unsafe { segment.bytes(from, span as usize) };
            if crc32c::crc32c(bytes).to_le_bytes() != *sum {
                return Ok(trusted.max(durable));
            }
            trusted = trusted.max(segment.base + from + span);
        }
        if trusted < segment.end() {
            break;
        }
    }
    Ok(trusted)
}

/// After a flush that failed: the first span beyond the durable position that is not what its checksum, made when
/// it was written, says. The kernel may have dropped pages that it could not write.
fn first_lost(live: &Live, durable: u64) -> Result<Option<(u64, Error)>> {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    for index in list_segments(&live.paths.segments())?.into_iter().filter(|&i| i >= durable / size) {
        let path = segment_path(&live.paths.segments(), index);
        if live.paths.hot_place().is_some_and(|hot| segment_path(&hot, index).exists()) {
            continue;
        }
        let Ok(sums) = read_start(&live.paths.crc(index), size / span * 4) else { continue };
        let Some((segment, _)) = Segment::open(&path, &live.meta, index, false)? else { continue };
        for (i, sum) in sums.chunks_exact(4).take((size / span) as usize).enumerate() {
            let from = i as u64 * span;
            // SAFETY: within the segment; the lock is ours and no writer lives.
            let bytes = unsafe { segment.bytes(from, span as usize) };
            let last = (i + 1) * 4 + 4 > sums.len();
            let same = crc32c::crc32c(bytes).to_le_bytes() == *sum;
            if !(same || last && is_of_a_start(bytes, sum)) {
                let what = format!("a flush has failed and the {span} bytes from here were lost");
                let error = Error::damage(&path, HEADER_PAGE + from, what);
                return Ok(Some((segment.base + from, error)));
            }
        }
    }
    Ok(None)
}

/// Whether a checksum is that of the first lines of a span that was filled further since.
fn is_of_a_start(span: &[u8], sum: &[u8]) -> bool {
    let mut running = 0;
    let mut rest = span.len() as u64;
    span.chunks(LINE).any(|line| {
        running = crc32c::crc32c_append(running, line);
        rest -= line.len() as u64;
        padded(running, rest).to_le_bytes() == sum
    })
}

/// Writes what is not durable again, so that the next flush is one.
fn write_again(live: &Live, end: &End) -> Result<()> {
    let size = live.meta.segment_bytes;
    let durable = load_durable(&live.paths)?.position;
    for index in list_segments(&live.paths.segments())?.into_iter().filter(|&i| i >= durable / size) {
        let path = segment_path(&live.paths.segments(), index);
        unseal(&path)?;
        if let Some((segment, _)) = Segment::open(&path, &live.meta, index, true)? {
            segment.write_again(end.position.saturating_sub(segment.base).min(size));
        }
    }
    Ok(())
}

/// Zeroes what lies behind the end and removes later segments, wherever they are.
fn truncate(live: &Live, end: &End) -> Result<()> {
    let size = live.meta.segment_bytes;
    let last = end.position / size;
    let hot = live.paths.hot_place();
    for dir in hot.iter().chain([&live.paths.segments()]) {
        // From the end, so that nobody who looks meanwhile takes one for missing among others.
        for index in list_segments(dir)?.into_iter().rev().filter(|&i| i >= last) {
            let path = segment_path(dir, index);
            if index > last {
                remove(&path)?;
                remove(&live.paths.crc(index))?;
                continue;
            }
            unseal(&path)?;
            if let Some((segment, _)) = match Segment::open(&path, &live.meta, index, true) {
                // Nothing of it is on the tape: one that is broken is made anew.
                Err(Error::Damage { .. }) if end.position.is_multiple_of(size) => {
                    remove(&path)?;
                    Ok(None)
                }
                other => other,
            }? {
                segment.zero_from(end.position - segment.base);
            }
        }
    }
    if live.paths.definitions().exists() {
        DefinitionLog::open(&live.paths, &live.meta, end.position, end.position)?;
    }
    Ok(())
}

/// Brings the live segments where the options want them.
fn settle_backing(live: &Live, end: &End, options: &Options) -> Result<(PathBuf, PathBuf)> {
    let paths = &live.paths;
    let Backing::Hot { dir, window_segments } = &options.backing else {
        if let Some(hot) = paths.hot_place() {
            // Hot before, a file now: the disk must have all of it first.
            let live = Live::of(paths.clone(), live.meta);
            let mut follower = Follower::open(live, Sync::OnClose, u64::MAX / 2)?;
            while follower.step()? || follower.position < end.position {}
            follower.sync_last()?;
            drop(follower);
            remove(&paths.hot())?;
            remove_hot(&hot)?;
        }
        return Ok((paths.segments(), paths.run()));
    };
    if *window_segments < 2 {
        return Err(Error::Option("window_segments must be at least 2"));
    }
    let known = paths.hot_place();
    let hot = match (&known, dir) {
        (Some(hot), _) => hot.clone(),
        (None, Some(dir)) => dir.clone(),
        (None, None) => {
            let full = fs::canonicalize(&paths.dir).at("resolve", &paths.dir)?;
            let name = full.as_os_str().as_encoded_bytes();
            Path::new("/dev/shm").join(format!("unitape-{}-{:08x}", live.meta.id, crc32c::crc32c(name)))
        }
    };
    if known.is_none() {
        if hot.exists() {
            // Left by a tape that stood here and was removed.
            remove_hot(&hot)?;
        }
        sys::make_dir(&hot).at("make", &hot)?;
    }
    let (size, index) = (live.meta.segment_bytes, end.position / live.meta.segment_bytes);
    let disk = segment_path(&paths.segments(), index);
    // Also where the directory is there and the segment is not: somebody has removed it.
    if !end.position.is_multiple_of(size)
        && !segment_path(&hot, index).exists()
        && let Some((from, first_ordinal)) = Segment::open(&disk, &live.meta, index, false)?
    {
        let header = SegmentHeader { meta: live.meta, index, first_ordinal };
        let temp = hot.join(format!("making-{index:016x}"));
        let to = Segment::create(&temp, &header, Making::Ready)?;
        // SAFETY: the range was found committed, or zero, by `find_end` and `truncate`; the new file is ours.
        unsafe { to.copy_in(0, from.bytes(0, (end.position - from.base) as usize)) };
        let path = segment_path(&hot, index);
        sys::rename(&temp, &path).at("rename", &path)?;
    }
    if known.is_some() {
        return Ok((hot.clone(), hot));
    }
    let full = fs::canonicalize(&hot).at("resolve", &hot)?;
    let text = full.to_str().ok_or(Error::Option("the hot directory's name must be UTF-8"))?;
    write_whole(&paths.hot(), format!("{text}\n").as_bytes())?;
    Ok((full.clone(), full))
}

/// The segment that holds the end, if it is there; the first one of a new tape is made.
fn take_current(place: &Path, making: &Path, meta: &Meta, end: &End, how: Making) -> Result<Option<Segment>> {
    let index = end.position / meta.segment_bytes;
    let path = segment_path(place, index);
    let header = SegmentHeader { meta: *meta, index, first_ordinal: end.ordinal };
    if let Some((segment, _)) = Segment::open(&path, meta, index, true)? {
        // Before the first write: a full disk is an error here, and a signal in the middle of an append.
        committed(segment.reserve(end.position - segment.base, how), end.position)?;
        if end.position == segment.base {
            segment.write_header(&header);
        }
        return Ok(Some(segment));
    }
    if end.position > 0 {
        return Ok(None);
    }
    let mut segment = Segment::create(&making.join("making-first"), &header, how)?;
    sys::rename(&segment.path, &path).at("rename", &path)?;
    segment.path = path;
    Ok(Some(segment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::durable::{Durable, load_durable, store_durable};
    use crate::{Reader, Start, Writer};
    use unitape_model::flags;

    /// Power fails when the recorder has just flushed the first segment of a unit that lies in two: the position that
    /// was told durable is the start of the unit, so that the tape reaches it without the rest.
    #[test]
    fn a_tape_that_is_durable_into_a_unit_is_cut_before_it() {
        const SEGMENT: u64 = 16 << 10;
        let dir = tempfile::tempdir().unwrap();
        let options = || Options { segment_bytes: SEGMENT, sync: crate::Sync::OnClose, ..Options::default() };
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        let mut single = vec![0; LINE];
        unitape_model::Header::unstamped(40, flags::LAST, 1).write(&mut single);
        // Two definitions, one of them in the first half of the unit, and then an event.
        let mut unit = vec![0; 3 * LINE];
        unitape_model::Header::unstamped(*crate::DEFINITION_KINDS.start(), 0, 1).write(&mut unit);
        unitape_model::Header::unstamped(40, flags::LAST, 2).write(&mut unit[LINE..]);
        let mut definition = vec![0; LINE];
        unitape_model::Header::unstamped(*crate::DEFINITION_KINDS.start(), flags::LAST, 1)
            .write(&mut definition);
        writer.append(&definition).unwrap();
        while writer.end().0 < SEGMENT - LINE as u64 {
            writer.append(&single).unwrap();
        }
        let begin = writer.end().0;
        writer.append(&unit).unwrap();
        assert_eq!(
            (begin, writer.end().0),
            (SEGMENT - LINE as u64, SEGMENT + 2 * LINE as u64),
            "it lies in two"
        );
        drop(writer);

        let paths = Paths { dir: dir.path().into() };
        let meta = Meta::load(dir.path()).unwrap();
        let mut follower = Follower::open(Live::of(paths.clone(), meta), Sync::OnClose, 1).unwrap();
        while follower.position < SEGMENT {
            follower.step().unwrap();
        }
        assert_eq!(follower.position, SEGMENT);
        follower.sync().unwrap();
        drop(follower);
        let durable = load_durable(&paths).unwrap();
        assert_eq!(durable.position, begin);
        // The power fails: what was not flushed is gone.
        remove(&segment_path(&paths.segments(), 1)).unwrap();
        let text = fs::read_to_string(paths.writer_lock()).unwrap();
        fs::write(paths.writer_lock(), text.replace("boot ", "boot another-")).unwrap();

        let (mut writer, recovery) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        assert_eq!((recovery.rebooted, recovery.end.0, recovery.cut_bytes), (true, begin, LINE as u64));
        writer.append(&unit).unwrap();
        writer.close().unwrap();
        assert!(crate::verify(dir.path()).unwrap().is_intact());
        let mut definitions = crate::Definitions::open(dir.path()).unwrap();
        let mut at = Vec::new();
        while let Some((position, _)) = definitions.next().unwrap() {
            at.push(position.0);
        }
        assert_eq!(at, [0, begin]);
    }

    /// A recorder has written the file that says how far the tape is durable, and its flush is still under way or has
    /// failed: a writer that closes was told that all is well.
    #[test]
    fn what_only_the_file_says_is_not_durable() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = Options {
            segment_bytes: 16 << 10,
            backing: crate::Backing::Hot { dir: Some(other.path().join("hot")), window_segments: 2 },
            recorder: crate::RecorderPlace::External,
            recorder_wait: std::time::Duration::from_millis(20),
            ..Options::default()
        };
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options).unwrap();
        let mut unit = vec![0; LINE];
        unitape_model::Header::unstamped(40, flags::LAST, 1).write(&mut unit);
        writer.append(&unit).unwrap();
        let paths = Paths { dir: dir.path().into() };
        let live = Live::of(paths.clone(), Meta::load(dir.path()).unwrap());
        let recorder = Follower::open(live, Sync::OnClose, 1).unwrap();
        let position = writer.end().0;
        store_durable(&paths, &Durable { position, definitions_bytes: 0 }).unwrap();
        let error = writer.close().unwrap_err();
        assert!(matches!(error, Error::RecorderBehind { .. }), "{error}");
        drop(recorder);
    }

    /// Power fails when the recorder has just come to the padded end of a segment: the last unit lies before the durable
    /// position, and the tape was refused as shorter than that.
    #[test]
    fn a_tape_that_is_durable_up_to_behind_a_pad_is_opened() {
        const SEGMENT: u64 = 16 << 10;
        let dir = tempfile::tempdir().unwrap();
        let options = || Options { segment_bytes: SEGMENT, ..Options::default() };
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        let mut unit = vec![0; 5 * LINE];
        unitape_model::Header::unstamped(40, flags::LAST, 5).write(&mut unit);
        let whole = SEGMENT / unit.len() as u64;
        assert!(!SEGMENT.is_multiple_of(unit.len() as u64), "the segment ends with a pad");
        for _ in 0..=whole {
            writer.append(&unit).unwrap();
        }
        writer.close().unwrap();
        let paths = Paths { dir: dir.path().into() };
        let durable = load_durable(&paths).unwrap();
        store_durable(&paths, &Durable { position: SEGMENT, ..durable }).unwrap();
        std::fs::remove_file(segment_path(&paths.segments(), 1)).unwrap();

        let (mut writer, recovery) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        assert_eq!((recovery.end.0, recovery.ordinal, recovery.cut_bytes), (SEGMENT, whole, 0));
        writer.append(&unit).unwrap();
        writer.close().unwrap();
        let mut reader = Reader::open(dir.path(), Start::Oldest).unwrap();
        let mut frames = 0;
        while reader.next().unwrap().is_some() {
            frames += 1;
        }
        assert_eq!((frames, reader.position().0), (whole + 1, SEGMENT + unit.len() as u64));
        assert!(crate::verify(dir.path()).unwrap().is_intact());
    }
}
