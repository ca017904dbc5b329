//! One way: as much as goes through, for a number of messages or for a time.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use unitape_ring::WaitStrategy;

use super::message::BenchFrameGenerator;
use super::process::{PeerArguments, PeerProcess, SharedWords, text, with_hot_suffix};
use super::{PeerCommand, pin, wait_for_helpers};
use crate::error::{Error, Result};
use crate::{Reader, StartPosition, TapeId, Writer, WriterOptions};

/// The frames, bytes and times of one way.
#[derive(Clone, Copy, Debug)]
pub struct StreamMeasurement {
    /// Frames written and read.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Until the last one was written, in ns.
    pub written_ns: u64,
    /// Until the other process had read the last one, in ns.
    pub read_ns: u64,
    /// Until the last one was on the disk as the options want it, in ns.
    pub closed_ns: u64,
}

/// Writes `count` frames of `lines` lines to the tape `one-way` in `dir` while another process reads them.
///
/// Begins when the tape has settled ([`wait_for_helpers`]); what fits into that is measured without page faults of the writer.
///
/// # Errors
/// Fails at an error of the tape or of the second process.
pub fn one_way(
    dir: &Path,
    options: &WriterOptions,
    lines: u16,
    count: u64,
    spawn: PeerCommand<'_>,
) -> Result<StreamMeasurement> {
    stream(dir, options, lines, StreamLimit::Count(count), u64::MAX, spawn)
}

/// Measures as [`one_way`] does, at full rate for a time. The sender waits while the reader is `lag_bytes_max` behind,
/// so that retention removes no unread data.
///
/// # Errors
/// Fails at an error of the tape or of the second process.
pub fn sustained(
    dir: &Path,
    options: &WriterOptions,
    lines: u16,
    time: Duration,
    lag_bytes_max: u64,
    spawn: PeerCommand<'_>,
) -> Result<StreamMeasurement> {
    stream(dir, options, lines, StreamLimit::Time(time), lag_bytes_max, spawn)
}

#[derive(Clone, Copy)]
enum StreamLimit {
    Count(u64),
    Time(Duration),
}

/// Words of the page that both processes share.
const READY: usize = 0;
const READ: usize = 1;
/// Frames in all and one more, once that is known.
const TOTAL: usize = 2;
/// Frames read so far, now and then.
const SEEN: usize = 3;

fn stream(
    dir: &Path,
    options: &WriterOptions,
    lines: u16,
    until: StreamLimit,
    lag_bytes_max: u64,
    spawn: PeerCommand<'_>,
) -> Result<StreamMeasurement> {
    let frame_bytes = u64::from(lines.max(1)) * unitape_model::LINE as u64;
    let lag_max = (lag_bytes_max / frame_bytes).max(PART);
    let (tape, shared) = (dir.join("one-way"), dir.join("done"));
    let words = SharedWords::create(&shared)?;
    let (mut writer, _) = Writer::open(&tape, TapeId(1), with_hot_suffix(options, "-one-way"))?;
    let mut child = PeerProcess::start(spawn, &["drain".into(), text(&tape)?, text(&shared)?])?;
    pin(0);
    child.spin_until(|| words.word(READY).load(Ordering::Acquire) == 1)?; // pairs with the Release in `drain`
    wait_for_helpers(options);
    let mut messages = BenchFrameGenerator::new(lines);
    let mut frames = 0;
    let since = Instant::now();
    loop {
        let part = match until {
            StreamLimit::Count(count) => (count - frames).min(PART),
            StreamLimit::Time(time) if since.elapsed() < time => PART,
            StreamLimit::Time(_) => 0,
        };
        if part == 0 {
            break;
        }
        for _ in 0..part {
            writer.append(messages.next())?;
        }
        frames += part;
        // Relaxed: how far the reader is, nothing is read under it.
        child.spin_until(|| frames - words.word(SEEN).load(Ordering::Relaxed) <= lag_max)?;
    }
    let written_ns = since.elapsed().as_nanos() as u64;
    words.word(TOTAL).store(frames + 1, Ordering::Release); // pairs with the Acquire in `drain`
    child.spin_until(|| words.word(READ).load(Ordering::Acquire) == frames + 1)?; // pairs with the Release in `drain`
    let read_ns = since.elapsed().as_nanos() as u64;
    child.finish()?;
    writer.close()?;
    let closed_ns = since.elapsed().as_nanos() as u64;
    Ok(StreamMeasurement { frames, bytes: frames * frame_bytes, written_ns, read_ns, closed_ns })
}

/// Messages between two looks at the clock.
const PART: u64 = 1024;

/// Runs the other process: `drain TAPE PAGE`.
pub(super) fn drain(arguments: &PeerArguments<'_>) -> Result<()> {
    let mut reader = Reader::open(Path::new(arguments.text(1)?), StartPosition::Oldest)?;
    let words = SharedWords::open(Path::new(arguments.text(2)?))?;
    pin(1);
    words.word(READY).store(1, Ordering::Release); // pairs with the Acquire in `stream`
    let mut message_count = 0;
    loop {
        match reader.next()? {
            Some(frame) if BenchFrameGenerator::number(frame.bytes) == message_count => {
                message_count += 1;
                if message_count % PART == 0 {
                    // Relaxed: a number of its own.
                    words.word(SEEN).store(message_count, Ordering::Relaxed);
                }
            }
            Some(_) => return Err(Error::Option("a message of the measurement was lost or doubled")),
            // Acquire: pairs with the Release in `stream`.
            None if words.word(TOTAL).load(Ordering::Acquire) == message_count + 1 => break,
            None => {
                words.word(SEEN).store(message_count, Ordering::Relaxed);
                // As readers do: one that only spins takes a processor from the threads that make its pages.
                reader.wait_as(WaitStrategy::Balanced, Duration::from_micros(200))?;
            }
        }
    }
    words.word(READ).store(message_count + 1, Ordering::Release); // pairs with the Acquire in `stream`
    Ok(())
}
