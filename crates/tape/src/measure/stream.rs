//! One way: as much as goes through, for a number of messages or for a time.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use unitape_ring::Wait;

use super::message::Messages;
use super::process::{Arguments, Second, Words, at_place, text};
use super::{Spawn, pin, settle};
use crate::error::{Error, Result};
use crate::{Options, Reader, Start, TapeId, Writer};

/// What went one way.
#[derive(Clone, Copy, Debug)]
pub struct OneWay {
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
/// Begins when the tape has settled ([`settle`]); what fits into that is measured without page faults of the writer.
///
/// # Errors
/// The tape, or the second process.
pub fn one_way(dir: &Path, options: &Options, lines: u16, count: u64, spawn: Spawn<'_>) -> Result<OneWay> {
    stream(dir, options, lines, Until::Count(count), u64::MAX, spawn)
}

/// As [`one_way`], at full rate for a time; the sender waits while the reader is `lag_bytes_max` behind, so that
/// retention takes nothing away that was not read.
///
/// # Errors
/// The tape, or the second process.
pub fn sustained(
    dir: &Path,
    options: &Options,
    lines: u16,
    time: Duration,
    lag_bytes_max: u64,
    spawn: Spawn<'_>,
) -> Result<OneWay> {
    stream(dir, options, lines, Until::Time(time), lag_bytes_max, spawn)
}

#[derive(Clone, Copy)]
enum Until {
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
    options: &Options,
    lines: u16,
    until: Until,
    lag_bytes_max: u64,
    spawn: Spawn<'_>,
) -> Result<OneWay> {
    let frame_bytes = u64::from(lines.max(1)) * unitape_model::LINE as u64;
    let lag_max = (lag_bytes_max / frame_bytes).max(PART);
    let (tape, shared) = (dir.join("one-way"), dir.join("done"));
    let words = Words::create(&shared)?;
    let (mut writer, _) = Writer::open(&tape, TapeId(1), at_place(options, "-one-way"))?;
    let mut child = Second::start(spawn, &["drain".into(), text(&tape)?, text(&shared)?])?;
    pin(0);
    child.until(|| words.at(READY).load(Ordering::Acquire) == 1)?; // pairs with the Release in `drain`
    settle(options);
    let mut messages = Messages::new(lines);
    let mut frames = 0;
    let since = Instant::now();
    loop {
        let part = match until {
            Until::Count(count) => (count - frames).min(PART),
            Until::Time(time) if since.elapsed() < time => PART,
            Until::Time(_) => 0,
        };
        if part == 0 {
            break;
        }
        for _ in 0..part {
            writer.append(messages.next())?;
        }
        frames += part;
        // Relaxed: how far the reader is, nothing is read under it.
        child.until(|| frames - words.at(SEEN).load(Ordering::Relaxed) <= lag_max)?;
    }
    let written_ns = since.elapsed().as_nanos() as u64;
    words.at(TOTAL).store(frames + 1, Ordering::Release); // pairs with the Acquire in `drain`
    child.until(|| words.at(READ).load(Ordering::Acquire) == frames + 1)?; // pairs with the Release in `drain`
    let read_ns = since.elapsed().as_nanos() as u64;
    child.finish()?;
    writer.close()?;
    let closed_ns = since.elapsed().as_nanos() as u64;
    Ok(OneWay { frames, bytes: frames * frame_bytes, written_ns, read_ns, closed_ns })
}

/// Messages between two looks at the clock.
const PART: u64 = 1024;

/// The other side: `drain TAPE PAGE`.
pub(super) fn drain(arguments: &Arguments<'_>) -> Result<()> {
    let mut reader = Reader::open(Path::new(arguments.text(1)?), Start::Oldest)?;
    let words = Words::open(Path::new(arguments.text(2)?))?;
    pin(1);
    words.at(READY).store(1, Ordering::Release); // pairs with the Acquire in `stream`
    let mut seen = 0;
    loop {
        match reader.next()? {
            Some(frame) if Messages::number(frame.bytes) == seen => {
                seen += 1;
                if seen % PART == 0 {
                    // Relaxed: a number of its own.
                    words.at(SEEN).store(seen, Ordering::Relaxed);
                }
            }
            Some(_) => return Err(Error::Option("a message of the measurement was lost or doubled")),
            // Acquire: pairs with the Release in `stream`.
            None if words.at(TOTAL).load(Ordering::Acquire) == seen + 1 => break,
            None => {
                words.at(SEEN).store(seen, Ordering::Relaxed);
                // As readers do: one that only spins takes a processor from the threads that make its pages.
                reader.wait_as(Wait::Balanced, Duration::from_micros(200))?;
            }
        }
    }
    words.at(READ).store(seen + 1, Ordering::Release); // pairs with the Acquire in `stream`
    Ok(())
}
