//! Round trips: back to back, and at a fixed rate from the time at which each was due.

use std::hint::spin_loop;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::message::BenchFrameGenerator;
use super::process::{NONE, PeerArguments, PeerProcess, SharedWords, encode_options, text, with_hot_suffix};
use super::{PeerCommand, pin, wait_for_helpers};
use crate::error::{Error, Result};
use crate::{Reader, StartPosition, TapeId, Writer, WriterOptions};

/// Measures round trips of one `u64` in shared memory, in ns, ascending: the control for all other figures.
///
/// `dir` is the directory of the shared file (shared memory for a fair control).
///
/// # Errors
/// Fails at an error of the file or of the second process.
pub fn raw_round_trips(dir: &Path, count: u64, spawn: PeerCommand<'_>) -> Result<Vec<u64>> {
    let path = dir.join(format!("unitape-raw-{}", std::process::id()));
    let words = SharedWords::create(&path)?;
    let mut child = PeerProcess::start(spawn, &["raw".into(), text(&path)?, count.to_string()])?;
    pin(0);
    child.spin_until(|| words.word(2).load(Ordering::Acquire) == 1)?; // pairs with the Release in `answer_raw`
    crate::disk::layout::remove(&path)?;
    let mut times = Vec::with_capacity(count as usize);
    for i in 1..=count {
        let since = Instant::now();
        words.word(0).store(i, Ordering::Release); // pairs with the Acquire in `answer_raw`
        // Acquire: pairs with the Release in `answer_raw`.
        child.spin_until(|| words.word(1).load(Ordering::Acquire) == i)?;
        times.push(since.elapsed().as_nanos() as u64);
    }
    child.finish()?;
    times.sort_unstable();
    Ok(times)
}

/// Measures the control for [`round_trips_at`]: a counter goes there and back in shared memory. The sender counts up
/// when the next trip is due, also while earlier trips are under way. `out` gets the time in ns from the due time to
/// the return.
///
/// The times include interruptions of both processes by the machine (its ticks, other guests), as all such times do.
///
/// # Errors
/// Fails at an error of the file or of the second process.
pub fn raw_round_trips_at(
    dir: &Path,
    count: u64,
    every: Duration,
    spawn: PeerCommand<'_>,
    mut out: impl FnMut(u64),
) -> Result<()> {
    let path = dir.join(format!("unitape-raw-{}", std::process::id()));
    let words = SharedWords::create(&path)?;
    let mut child = PeerProcess::start(spawn, &["raw".into(), text(&path)?, count.to_string()])?;
    pin(0);
    child.spin_until(|| words.word(2).load(Ordering::Acquire) == 1)?; // pairs with the Release in `answer_raw`
    crate::disk::layout::remove(&path)?;
    let every = every.as_nanos() as u64;
    let (mut sent, mut back) = (0, 0);
    let since = Instant::now();
    child.spin_until(|| {
        if sent < count && since.elapsed().as_nanos() as u64 >= sent * every {
            sent += 1;
            words.word(0).store(sent, Ordering::Release); // pairs with the Acquire in `answer_raw`
        }
        let answer_count = words.word(1).load(Ordering::Acquire); // pairs with the Release in `answer_raw`
        if answer_count > back {
            let now = since.elapsed().as_nanos() as u64;
            (back..answer_count).for_each(|i| out(now.saturating_sub(i * every)));
            back = answer_count;
        }
        back == count
    })?;
    child.finish()
}

/// Runs the other process of [`raw_round_trips`] and [`raw_round_trips_at`].
pub(super) fn answer_raw(path: &Path, count: u64) -> Result<()> {
    pin(1);
    let words = SharedWords::open(path)?;
    words.word(2).store(1, Ordering::Release); // pairs with the Acquire in the first
    let mut answered = 0;
    while answered < count {
        // Acquire and Release: pair with those of the first process.
        let asked = words.word(0).load(Ordering::Acquire);
        if asked == answered {
            spin_loop();
            continue;
        }
        words.word(1).store(asked, Ordering::Release);
        answered = asked;
    }
    Ok(())
}

/// Measures round trips of frames of `lines` lines over two tapes below `dir`, back to back, in ns, ascending.
///
/// `options` are those of the outward tape. The return tape has the same options, so unitape appends `-there` and
/// `-back` to a given hot directory.
///
/// # Errors
/// Fails at an error of the tapes or of the second process.
pub fn round_trips(
    dir: &Path,
    options: &WriterOptions,
    lines: u16,
    count: u64,
    spawn: PeerCommand<'_>,
) -> Result<Vec<u64>> {
    let mut ends = PingSide::open(dir, options, lines, count, false, spawn)?;
    let PingSide { writer, reader, child, .. } = &mut ends;
    let mut messages = BenchFrameGenerator::new(lines);
    let mut times = Vec::with_capacity(count as usize);
    for i in 0..count {
        let unit = messages.next();
        let since = Instant::now();
        writer.append(unit)?;
        child.try_spin_until(|| arrived(reader, i + 1))?;
        times.push(since.elapsed().as_nanos() as u64);
    }
    ends.close()?;
    times.sort_unstable();
    Ok(times)
}

/// How [`round_trips_at`] sends.
#[derive(Clone, Copy, Debug)]
pub struct SendSchedule {
    /// Messages that go there and back.
    pub count: u64,
    /// Time from one to the next.
    pub every: Duration,
    /// Messages of the same size that are put on a second tape, read by the same process, in each of these times.
    pub batch: u64,
}

/// Measures round trips of frames of `lines` lines. Each frame is sent when it is due, also while earlier frames are
/// under way. `out` gets the time in ns from the due time to the return.
///
/// The sender sends the batch of a period in small parts when it has nothing else to do: it prefers messages that are
/// due or back. The second process prefers the messages that it must return. Returns the time of the whole run in ns.
///
/// # Errors
/// Fails at an error of the tapes or of the second process.
pub fn round_trips_at(
    dir: &Path,
    options: &WriterOptions,
    lines: u16,
    pace: SendSchedule,
    spawn: PeerCommand<'_>,
    mut out: impl FnMut(u64),
) -> Result<u64> {
    let mut ends = PingSide::open(dir, options, lines, pace.count, pace.batch > 0, spawn)?;
    let PingSide { writer, reader, batch, child } = &mut ends;
    let (mut messages, mut load) = (BenchFrameGenerator::new(lines), BenchFrameGenerator::new(lines));
    let every = pace.every.as_nanos() as u64;
    let (mut sent, mut back, mut loaded, mut turns) = (0, 0, 0, 0u32);
    let since = Instant::now();
    while back < pace.count {
        let now = since.elapsed().as_nanos() as u64;
        if sent < pace.count && now >= sent * every {
            writer.append(messages.next())?;
            sent += 1;
        }
        if arrived(reader, back + 1)? {
            out((since.elapsed().as_nanos() as u64).saturating_sub(back * every));
            back += 1;
        } else if let Some(batch) = batch
            && sent == back
            && loaded < sent * pace.batch
        {
            for _ in 0..PART.min(sent * pace.batch - loaded) {
                batch.append(load.next())?;
                loaded += 1;
            }
        }
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(1 << 22) {
            child.check()?;
        }
    }
    let took = since.elapsed().as_nanos() as u64;
    ends.close()?;
    Ok(took)
}

/// Messages of a batch between two looks at more urgent work.
const PART: u64 = 4;

/// This side of the tapes of a round trip.
struct PingSide {
    writer: Writer,
    reader: Reader,
    batch: Option<Writer>,
    child: PeerProcess,
}

impl PingSide {
    fn open(
        dir: &Path,
        options: &WriterOptions,
        lines: u16,
        count: u64,
        with_batch: bool,
        spawn: PeerCommand<'_>,
    ) -> Result<Self> {
        let (outward_dir, return_dir, batch) = (dir.join("there"), dir.join("back"), dir.join("batch"));
        let (writer, _) = Writer::open(&outward_dir, TapeId(1), with_hot_suffix(options, "-there"))?;
        let (load, batch) = if with_batch {
            (Some(Writer::open(&batch, TapeId(3), with_hot_suffix(options, "-batch"))?.0), text(&batch)?)
        } else {
            (None, NONE.to_owned())
        };
        let mut arguments = vec!["echo".into(), text(&outward_dir)?, text(&return_dir)?, batch];
        arguments.extend([count.to_string(), lines.to_string()]);
        arguments.extend(encode_options(&with_hot_suffix(options, "-back"))?);
        let mut child = PeerProcess::start(spawn, &arguments)?;
        pin(0);
        let mut reader = None;
        // The second process makes the tape back; until then there is nothing to open.
        child.spin_until(|| {
            reader = reader.take().or_else(|| Reader::open(&return_dir, StartPosition::Oldest).ok());
            reader.is_some()
        })?;
        let mut reader = reader.expect("opened above");
        child.try_spin_until(|| arrived(&mut reader, 0))?;
        wait_for_helpers(options);
        Ok(Self { writer, reader, batch: load, child })
    }

    fn close(mut self) -> Result<()> {
        self.child.finish()?;
        self.writer.close()?;
        self.batch.map_or(Ok(()), Writer::close)
    }
}

/// Returns whether the next frame has arrived; it must carry this number.
#[inline]
fn arrived(reader: &mut Reader, number: u64) -> Result<bool> {
    match reader.next()? {
        None => Ok(false),
        Some(frame) if BenchFrameGenerator::number(frame.bytes) == number => Ok(true),
        Some(_) => Err(Error::Option("a message of the measurement was lost, doubled or overtaken")),
    }
}

/// Runs the other process of round trips: `echo THERE BACK BATCH COUNT LINES` and the options of the return tape.
pub(super) fn echo(arguments: &PeerArguments<'_>) -> Result<()> {
    let (outward_dir, return_dir) = (Path::new(arguments.text(1)?), Path::new(arguments.text(2)?));
    let (count, lines) = (arguments.number(4)?, arguments.number(5)? as u16);
    // Before pinning: the helper threads run where they would in a program of its own.
    let (mut writer, _) = Writer::open(return_dir, TapeId(2), arguments.options(6)?)?;
    pin(1);
    let mut reader = Reader::open(outward_dir, StartPosition::Oldest)?;
    let mut batch = match arguments.text(3)? {
        NONE => None,
        tape => Some(Reader::open(Path::new(tape), StartPosition::Oldest)?),
    };
    let mut messages = BenchFrameGenerator::new(lines);
    let mut loaded = 0;
    // The first one says that we are there, so those that come back are numbered from 1.
    writer.append(messages.next())?;
    for i in 0..count {
        while !arrived(&mut reader, i)? {
            match &mut batch {
                Some(batch) => loaded += u64::from(arrived(batch, loaded)?),
                None => spin_loop(),
            }
        }
        writer.append(messages.next())?;
    }
    writer.close()
}
