//! One of the two processes of a messaging measurement: what all peers have in common.
//!
//! ```text
//!  first (core 0)                                second (core 1)
//!  open, say "up" ───────▶ the driver starts ──▶ open, word 0 := 1
//!  connect ◀──────────────── at the same time ──▶ connect, word 0 := 2
//!  rtt:      send, wait for the answer, read the clock         answer each message with one
//!  one-way:  send all, wait until word 1 says that all is read    read, word 1 := how many
//!  a line of JSON with times and sums            a line of JSON with its sum
//! ```
//!
//! A peer implements [`Link`] and calls [`main`]; loops, clock, checks and output are the same for all, and the
//! Java peers follow them line by line (`bench/java`). Both processes check that messages come whole and in
//! order, and add up every word of them; the process that started them compares the sums with arithmetic.
//!
//! What it does not do: start processes, repeat, compare. That is `bench/peers`.

mod words;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use words::Words;

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 100;

/// What a message has behind its number.
pub const TEMPLATE: [u8; MESSAGE_BYTES] = {
    let mut template = [0; MESSAGE_BYTES];
    let mut at = 8;
    while at < MESSAGE_BYTES {
        template[at] = at as u8;
        at += 1;
    }
    template
};

/// A way to the other process and back.
pub trait Link {
    /// Called when the other process has opened its side as well; until then only `open` has run.
    fn connect(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Sends the message with this number; waits where there is no room.
    fn send(&mut self, number: u64) -> Result<(), String>;

    /// Takes what is there, if anything: one message or more, each shown to `seen`.
    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String>;

    /// Between two looks that found nothing.
    #[inline]
    fn idle(&mut self) -> Result<(), String> {
        std::hint::spin_loop();
        Ok(())
    }

    /// Ends it in good order, after the last message.
    fn close(self) -> Result<(), String>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// There and back, one at a time.
    RoundTrip,
    /// One way, as fast as it goes.
    OneWay,
}

impl Case {
    /// Its name in the records.
    pub fn name(self) -> &'static str {
        match self {
            Case::RoundTrip => "rtt",
            Case::OneWay => "one-way",
        }
    }
}

/// What a process is to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// The one that measures, on core 0; otherwise the one that answers, on core 1.
    pub first: bool,
    /// What is measured.
    pub case: Case,
    /// A fresh directory in shared memory, where the words are.
    pub shared: PathBuf,
    /// A fresh directory for the peer's files.
    pub dir: PathBuf,
    /// Messages that are measured.
    pub count: u64,
    /// Messages before that.
    pub warm: u64,
    /// Other arguments of the peer.
    pub flavour: String,
}

impl Task {
    /// From `first|second rtt|one-way SHARED DIR COUNT WARM FLAVOUR`.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let [side, case, shared, dir, count, warm, flavour] = arguments else {
            return Err("first|second rtt|one-way SHARED DIR COUNT WARM FLAVOUR".to_owned());
        };
        let number = |text: &String| text.parse().map_err(|e| format!("{text}: {e}"));
        Ok(Self {
            first: match side.as_str() {
                "first" => true,
                "second" => false,
                _ => return Err(format!("{side} is neither first nor second")),
            },
            case: match case.as_str() {
                "rtt" => Case::RoundTrip,
                "one-way" => Case::OneWay,
                _ => return Err(format!("{case} is neither rtt nor one-way")),
            },
            shared: shared.into(),
            dir: dir.into(),
            count: number(count)?,
            warm: number(warm)?,
            flavour: flavour.clone(),
        })
    }

    /// The arguments that [`Task::parse`] takes.
    pub fn arguments(&self) -> Result<Vec<String>, String> {
        let text =
            |path: &PathBuf| path.to_str().map(str::to_owned).ok_or("a directory is not UTF-8".to_owned());
        Ok(vec![
            if self.first { "first" } else { "second" }.to_owned(),
            self.case.name().to_owned(),
            text(&self.shared)?,
            text(&self.dir)?,
            self.count.to_string(),
            self.warm.to_string(),
            self.flavour.clone(),
        ])
    }
}

/// The result of a process; it prints this as its last line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessResult {
    /// Messages that came in.
    pub seen: u64,
    /// Sum of all words of them.
    pub sum: u64,
    /// Wall clock of the measured part; of the first process only.
    #[serde(default)]
    pub wall_ns: u64,
    /// Processor time of this process in the measured part, all threads.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Round trips in ns and how often each; three significant digits.
    #[serde(default)]
    pub latencies: Vec<(u64, u64)>,
}

/// Runs a process of a peer: `open` makes its side of the link.
pub fn main<L: Link>(
    arguments: &[String],
    open: impl FnOnce(&Task) -> Result<L, String>,
) -> Result<(), String> {
    end_with_parent();
    let task = Task::parse(arguments)?;
    let words = Words::open(&task.shared)?;
    let link = open(&task)?;
    let found = if task.first { first(&task, &words, link)? } else { second(&task, &words, link)? };
    say(&serde_json::to_string(&found).map_err(|e| e.to_string())?)
}

fn first<L: Link>(task: &Task, words: &Words, mut link: L) -> Result<ProcessResult, String> {
    say("up")?;
    wait(words, 0, 1, &mut link, false)?;
    link.connect()?;
    wait(words, 0, 2, &mut link, true)?;
    // Threads of the peer were started before this and may run on either core.
    pin(0);
    let mut seen = Seen::default();
    let found = match task.case {
        Case::RoundTrip => {
            let mut times = vec![1; task.count as usize];
            for number in 0..task.warm {
                round(&mut link, number, &mut seen)?;
            }
            let cpu = cpu_ns();
            let since = Instant::now();
            let mut last = since;
            for (time, number) in times.iter_mut().zip(task.warm..) {
                round(&mut link, number, &mut seen)?;
                let now = Instant::now();
                *time = (now - last).as_nanos() as u64;
                last = now;
            }
            let wall_ns = since.elapsed().as_nanos() as u64;
            let cpu_ns = cpu_ns() - cpu;
            ProcessResult { seen: seen.count, sum: seen.sum, wall_ns, cpu_ns, latencies: buckets(&times)? }
        }
        Case::OneWay => {
            for number in 0..task.warm {
                link.send(number)?;
            }
            wait(words, 1, task.warm, &mut link, true)?;
            // Helpers of the peer make ahead what they make ahead, as they do when nothing is sent for a moment.
            std::thread::sleep(Duration::from_millis(300));
            let cpu = cpu_ns();
            let since = Instant::now();
            for number in task.warm..task.warm + task.count {
                link.send(number)?;
            }
            wait(words, 1, task.warm + task.count, &mut link, true)?;
            let wall_ns = since.elapsed().as_nanos() as u64;
            ProcessResult { wall_ns, cpu_ns: cpu_ns() - cpu, ..ProcessResult::default() }
        }
    };
    seen.check()?;
    link.close()?;
    Ok(found)
}

#[inline]
fn round<L: Link>(link: &mut L, number: u64, seen: &mut Seen) -> Result<(), String> {
    link.send(number)?;
    while !link.poll(seen)? {
        link.idle()?;
    }
    Ok(())
}

fn second<L: Link>(task: &Task, words: &Words, mut link: L) -> Result<ProcessResult, String> {
    words.set(0, 1);
    link.connect()?;
    pin(1);
    words.set(0, 2);
    let mut seen = Seen::default();
    let all = task.warm + task.count;
    match task.case {
        Case::RoundTrip => {
            for number in 0..all {
                while !link.poll(&mut seen)? {
                    link.idle()?;
                }
                link.send(number)?;
            }
        }
        Case::OneWay => {
            for until in [task.warm, all] {
                while seen.count < until {
                    if !link.poll(&mut seen)? {
                        link.idle()?;
                    }
                }
                words.set(1, seen.count);
            }
        }
    }
    seen.check()?;
    link.close()?;
    Ok(ProcessResult { seen: seen.count, sum: seen.sum, ..ProcessResult::default() })
}

/// Waits until a word has reached `value`; a connected link may continue its work meanwhile.
fn wait<L: Link>(words: &Words, word: usize, value: u64, link: &mut L, work: bool) -> Result<(), String> {
    while words.get(word) < value {
        match work {
            true => link.idle()?,
            false => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(())
}

/// Ends this process when the one that started it is gone: it holds the other end of stdin, and the loops here would
/// spin for ever.
fn end_with_parent() {
    std::thread::spawn(|| {
        // Nothing is ever written there, so that this returns at its end, or cannot be read at all.
        _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| format!("stdout: {e}"))
}

fn buckets(times: &[u64]) -> Result<Vec<(u64, u64)>, String> {
    let mut histogram = histogram()?;
    for &time in times {
        histogram.saturating_record(time);
    }
    Ok(histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect())
}

/// From 1 ns to a minute, three significant digits.
pub fn histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(|e| e.to_string())
}

/// Pins the calling thread, where the system lets it.
fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    // A container may forbid it; the figures then say nothing of pairs of cores, as the raw control beside them shows.
    _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Processor time of this process so far, all threads.
fn cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Numbered messages, each made a little before it is sent, as one that stands ready in its sender's buffer is: the
/// store of a number is done when the message is copied, for all peers alike.
#[derive(Clone, Debug)]
pub struct Messages(Box<[[u8; MESSAGE_BYTES]; AHEAD]>);

/// Messages made ahead.
const AHEAD: usize = 32;

impl Messages {
    /// Messages from number 0 on.
    pub fn new() -> Self {
        let mut messages = Self(Box::new([TEMPLATE; AHEAD]));
        (0..AHEAD as u64).for_each(|number| messages.make(number));
        messages
    }

    /// The message of this number; to be asked for in order.
    #[inline]
    pub fn next(&mut self, number: u64) -> &[u8; MESSAGE_BYTES] {
        if let Some(last) = number.checked_sub(1) {
            self.make(last + AHEAD as u64);
        }
        &self.0[number as usize % AHEAD]
    }

    #[inline]
    fn make(&mut self, number: u64) {
        self.0[number as usize % AHEAD][..8].copy_from_slice(&number.to_le_bytes());
    }
}

impl Default for Messages {
    fn default() -> Self {
        Self::new()
    }
}

/// What came in so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Messages.
    pub count: u64,
    sum: u64,
    wrong: u64,
}

impl Seen {
    /// A message that came in.
    #[inline]
    pub fn take(&mut self, message: &[u8]) {
        let Ok(message): Result<&[u8; MESSAGE_BYTES], _> = message.try_into() else {
            self.wrong += 1;
            self.count += 1;
            return;
        };
        let number = u64::from_le_bytes(message[..8].try_into().expect("eight bytes"));
        self.wrong += u64::from(number != self.count);
        self.count += 1;
        self.sum = self.sum.wrapping_add(words_of(message));
    }

    /// A number that came alone.
    #[inline]
    pub fn take_number(&mut self, number: u64) {
        self.wrong += u64::from(number != self.count);
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
    }

    /// Of all words that came.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    fn check(&self) -> Result<(), String> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} of {} messages came out of order or not whole", self.count)),
        }
    }
}

/// The sum of a message's words, the last one of half the size.
#[inline]
fn words_of(message: &[u8; MESSAGE_BYTES]) -> u64 {
    let mut words = message.chunks_exact(8);
    let sum = words
        .by_ref()
        .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
        .fold(0, u64::wrapping_add);
    let rest = words.remainder().try_into().expect("four bytes are left of a hundred");
    sum.wrapping_add(u64::from(u32::from_le_bytes(rest)))
}

/// The sum of `count` messages as [`Seen::take`] adds them up, or of their numbers alone.
pub fn expected_sum(count: u64, whole: bool) -> u64 {
    let n = u128::from(count);
    let numbers = (n * n.saturating_sub(1) / 2) as u64;
    let rest = if whole { words_of(&TEMPLATE).wrapping_mul(count) } else { 0 };
    numbers.wrapping_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64) -> [u8; MESSAGE_BYTES] {
        let mut message = TEMPLATE;
        message[..8].copy_from_slice(&number.to_le_bytes());
        message
    }

    /// A check that does not look at the last bytes, or takes any order, would let a broken peer pass.
    #[test]
    fn what_came_is_checked_whole_and_in_order() {
        let (mut seen, mut messages) = (Seen::default(), Messages::new());
        (0..100).for_each(|n| seen.take(messages.next(n)));
        assert_eq!((seen.sum, seen.check()), (expected_sum(100, true), Ok(())));
        for at in 8..MESSAGE_BYTES {
            let mut broken = Seen::default();
            let mut bytes = message(0);
            bytes[at] ^= 1;
            broken.take(&bytes);
            assert_ne!(broken.sum, expected_sum(1, true), "byte {at}");
        }
        let mut swapped = Seen::default();
        [1, 0].iter().for_each(|&n| swapped.take(&message(n)));
        assert!(swapped.check().is_err());
        let mut short = Seen::default();
        short.take(&message(0)[..99]);
        assert!(short.check().is_err());
    }

    /// The driver gives the arguments as text; a mix-up of two of them would measure something else.
    #[test]
    fn a_task_comes_back_from_its_arguments() {
        let task = Task {
            first: true,
            case: Case::OneWay,
            shared: "/s".into(),
            dir: "/d".into(),
            count: 3,
            warm: 2,
            flavour: "f".into(),
        };
        let back = Task::parse(&task.arguments().unwrap()).unwrap();
        assert_eq!(format!("{task:?}"), format!("{back:?}"));
        assert!(Task::parse(&["first".to_owned()]).is_err());
    }
}
