//! Measuring the tape between two pinned threads of control: round trips and one way, beside a raw control.
//!
//! The second half runs in a process of its own: the caller gives a function that makes the command for it, and
//! the program started so calls [`peer`] with the arguments it was given. All numbers are those of one run; how
//! often to repeat, and what to take of the repeats, is the caller's business.

use std::hint::spin_loop;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use memmap2::MmapRaw;
use unitape_model::{Header, LINE, flags};

use crate::error::{At, Error, Result};
use crate::{Options, Reader, Start, TapeId, Writer};

/// Makes the command that runs [`peer`] with these arguments in a process of its own.
pub type Spawn<'a> = &'a dyn Fn(&[String]) -> Command;

/// Pins the calling thread to processor `cpu`; false where that cannot be done.
pub fn pin(cpu: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut set = rustix::thread::CpuSet::new();
        if cpu >= rustix::thread::CpuSet::MAX_CPU {
            return false;
        }
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cpu;
        false
    }
}

/// Round trips of one `u64` each way in shared memory, in ns, ascending: the control to all other figures.
///
/// `dir` is where the shared file is made (shared memory for a fair control).
///
/// # Errors
/// The file, or the second process.
pub fn raw_round_trips(dir: &Path, count: u64, spawn: Spawn<'_>) -> Result<Vec<u64>> {
    let path = dir.join(format!("unitape-raw-{}", std::process::id()));
    std::fs::write(&path, [0; 4096]).at("write", &path)?;
    let words = Words::open(&path)?;
    let child = start(spawn, &["raw", &text(&path)?, &count.to_string()])?;
    pin(0);
    let mut child = Reaper(child);
    child.until(|| words.at(2).load(Ordering::Acquire) == 1)?; // pairs with the Release in `peer`
    let mut times = Vec::with_capacity(count as usize);
    let mut last = Instant::now();
    for i in 1..=count {
        words.at(0).store(i, Ordering::Release); // pairs with the Acquire in `peer`
        // Acquire: pairs with the Release in `peer`.
        child.until(|| words.at(1).load(Ordering::Acquire) == i)?;
        let now = Instant::now();
        times.push((now - last).as_nanos() as u64);
        last = now;
    }
    crate::layout::remove(&path)?;
    child.finish()?;
    times.sort_unstable();
    Ok(times)
}

/// Round trips of frames of `lines` lines over two tapes below `dir`, in ns, ascending.
///
/// `options` are those of the tape from here to there; the one back has the same, so a hot directory given
/// there gets `-there` and `-back` appended.
///
/// # Errors
/// The tapes, or the second process.
pub fn round_trips(
    dir: &Path,
    options: &Options,
    lines: u16,
    count: u64,
    spawn: Spawn<'_>,
) -> Result<Vec<u64>> {
    let (there, back) = (dir.join("there"), dir.join("back"));
    let (mut writer, _) = Writer::open(&there, TapeId(1), at_place(options, "-there"))?;
    let hot = matches!(options.backing, crate::Backing::Hot { .. });
    let arguments = ["echo", &text(&there)?, &text(&back)?, &count.to_string(), &lines.to_string()];
    let size = options.segment_bytes.to_string();
    let backing = if hot { "hot" } else { "file" };
    let mut child = Reaper(start(spawn, &[&arguments[..], &[backing, &size]].concat())?);
    pin(0);
    let mut reader = None;
    // The second process makes the tape back; until then there is nothing to open.
    child.until(|| {
        reader = reader.take().or_else(|| Reader::open(&back, Start::Oldest).ok());
        reader.is_some()
    })?;
    let mut reader = reader.expect("opened above");
    child.until_some(|| reader.next().map(|f| f.is_some()))?;
    let unit = frame(lines);
    let mut times = Vec::with_capacity(count as usize);
    let mut last = Instant::now();
    for _ in 0..count {
        writer.append(&unit)?;
        child
            .until_some(|| reader.next().map(|f| f.map(|f| std::hint::black_box(sum(f.bytes))).is_some()))?;
        let now = Instant::now();
        times.push((now - last).as_nanos() as u64);
        last = now;
    }
    child.finish()?;
    writer.close()?;
    times.sort_unstable();
    Ok(times)
}

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
}

/// Writes `count` frames of `lines` lines to a tape in `dir` while another process reads them.
///
/// Begins when the helper threads have made what they make ahead, as they have in a tape that has been open for a
/// moment; what fits into that is measured without page faults of the writer.
///
/// # Errors
/// The tape, or the second process.
pub fn one_way(dir: &Path, options: &Options, lines: u16, count: u64, spawn: Spawn<'_>) -> Result<OneWay> {
    let (tape, shared) = (dir.join("one-way"), dir.join("done"));
    std::fs::write(&shared, [0; 4096]).at("write", &shared)?;
    let words = Words::open(&shared)?;
    let (mut writer, _) = Writer::open(&tape, TapeId(1), at_place(options, "-one-way"))?;
    let mut child = Reaper(start(spawn, &["drain", &text(&tape)?, &text(&shared)?, &count.to_string()])?);
    pin(0);
    child.until(|| words.at(0).load(Ordering::Acquire) == 1)?; // pairs with the Release in `peer`
    std::thread::sleep(std::time::Duration::from_millis(300));
    let unit = frame(lines);
    let since = Instant::now();
    for _ in 0..count {
        writer.append(&unit)?;
    }
    let written_ns = since.elapsed().as_nanos() as u64;
    child.until(|| words.at(1).load(Ordering::Acquire) == count)?; // pairs with the Release in `peer`
    let read_ns = since.elapsed().as_nanos() as u64;
    child.finish()?;
    writer.close()?;
    Ok(OneWay { frames: count, bytes: count * unit.len() as u64, written_ns, read_ns })
}

/// The second process: call it with the arguments that [`Spawn`] was given.
///
/// # Errors
/// Arguments that are none of ours, or the tape.
pub fn peer(arguments: &[String]) -> Result<()> {
    let argument = |i: usize| {
        arguments.get(i).map(String::as_str).ok_or(Error::Option("an argument of the peer is missing"))
    };
    let number = |i: usize| {
        argument(i)?.parse::<u64>().map_err(|_| Error::Option("an argument of the peer is no number"))
    };
    pin(1);
    match argument(0)? {
        "raw" => {
            let words = Words::open(Path::new(argument(1)?))?;
            words.at(2).store(1, Ordering::Release); // pairs with the Acquire in `raw_round_trips`
            for i in 1..=number(2)? {
                // Acquire and Release: pair with those in `raw_round_trips`.
                while words.at(0).load(Ordering::Acquire) != i {
                    spin_loop();
                }
                words.at(1).store(i, Ordering::Release);
            }
        }
        "echo" => {
            let (there, back) = (Path::new(argument(1)?), Path::new(argument(2)?));
            let (count, lines) = (number(3)?, number(4)? as u16);
            let mut options = Options { segment_bytes: number(6)?, ..Options::default() };
            if argument(5)? == "hot" {
                options.backing = crate::Backing::Hot { dir: None, window_segments: 8 };
            }
            let (mut writer, _) = Writer::open(back, TapeId(2), options)?;
            let mut reader = Reader::open(there, Start::Oldest)?;
            let unit = frame(lines);
            writer.append(&unit)?;
            for _ in 0..count {
                while reader.next()?.map(|f| std::hint::black_box(sum(f.bytes))).is_none() {
                    spin_loop();
                }
                writer.append(&unit)?;
            }
            // Closing at once would take the hot segment from under the other's last look.
            writer.close()?;
        }
        "drain" => {
            let words = Words::open(Path::new(argument(2)?))?;
            let mut reader = Reader::open(Path::new(argument(1)?), Start::Oldest)?;
            let count = number(3)?;
            words.at(0).store(1, Ordering::Release); // pairs with the Acquire in `one_way`
            let mut seen = 0;
            let mut total = 0u64;
            // Waits as readers do: one that only spins takes a processor from the threads that make its pages.
            let mut backoff = unitape_ring::Waiter::new(unitape_ring::Wait::Balanced);
            while seen < count {
                match reader.next()? {
                    Some(frame) => {
                        total = total.wrapping_add(sum(frame.bytes));
                        seen += 1;
                        backoff.reset();
                    }
                    None => backoff.wait(),
                }
            }
            std::hint::black_box(total);
            words.at(1).store(seen, Ordering::Release); // pairs with the Acquire in `one_way`
        }
        _ => return Err(Error::Option("the peer does not know this measurement")),
    }
    Ok(())
}

/// Value at the given share (0 to 1) of an ascending list; zero of an empty one.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * share) as usize).copied().unwrap_or(0)
}

fn at_place(options: &Options, suffix: &str) -> Options {
    let mut options = options.clone();
    if let crate::Backing::Hot { dir: Some(dir), .. } = &mut options.backing {
        let mut name = dir.clone().into_os_string();
        name.push(suffix);
        *dir = name.into();
    }
    options
}

fn frame(lines: u16) -> Vec<u8> {
    let mut unit = vec![0x5a; usize::from(lines.max(1)) * LINE];
    Header::unstamped(20, flags::LAST, lines.max(1)).write(&mut unit);
    unit
}

/// Touches every word, as a user of the frame would.
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(8)
        .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
        .fold(0, u64::wrapping_add)
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(Into::into).ok_or(Error::Option("the directory's name must be UTF-8"))
}

fn start(spawn: Spawn<'_>, arguments: &[&str]) -> Result<Child> {
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_string()).collect();
    spawn(&arguments).spawn().at("start", Path::new("the second process"))
}

/// The second process; ends with us.
struct Reaper(Child);

impl Reaper {
    /// Spins until `done`, or fails if the second process has ended badly.
    fn until(&mut self, mut done: impl FnMut() -> bool) -> Result<()> {
        self.until_some(|| Ok(done()))
    }

    fn until_some(&mut self, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
        let mut spins = 0u32;
        while !done()? {
            spin_loop();
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 22)
                && self.0.try_wait().is_ok_and(|s| s.is_some_and(|s| !s.success()))
            {
                return Err(Error::Option("the second process of the measurement failed"));
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let status = self.0.wait().at("wait for", Path::new("the second process"))?;
        if status.success() {
            Ok(())
        } else {
            Err(Error::Option("the second process of the measurement failed"))
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // After `finish` both do nothing; before it the process would spin for ever.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shared page of words, 128 bytes apart.
struct Words(MmapRaw);

impl Words {
    fn open(path: &Path) -> Result<Self> {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).at("open", path)?;
        if file.metadata().at("look at", path)?.len() < 4096 {
            return Err(Error::damage(path, 0, "the shared page is too short"));
        }
        Ok(Self(MmapRaw::map_raw(&file).at("map", path)?))
    }

    fn at(&self, index: usize) -> &AtomicU64 {
        assert!(index < 32);
        // SAFETY: 32 * 128 bytes are the page that `open` found, aligned; both processes use atomics only.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index * 16)) }
    }
}
