//! One case of the tape with fixed work, for `cargo xtask instructions` to count under callgrind.
//!
//! ```text
//! instructions CASE DIR [MESSAGES]   runs it in DIR, an empty directory; prints {"case":…,"count":…} at the end
//! instructions list                  the cases
//! instructions cpu                   the instruction sets that dispatch at run time would find here
//! ```
//!
//! The work between two calls of [`mark`] is one repeat; there are two, the first of which warms up. Callgrind counts
//! only the calling thread: the recorder and the preallocator run in threads of their own. The program uses nothing
//! but the public interface, and as little of it as it can, because it is also built against older commits.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use unitape_model::{FrameHeader, LINE, flags, frames};
use unitape_tape::twin::measure::BenchFrameGenerator;
use unitape_tape::{
    Backing, Publication, Reader, RecorderLocation, RemovalOptions, StartPosition, Subscription, SyncPolicy,
    TapeId, Writer, WriterOptions, record, verify,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
type Case = fn(&Run) -> Result<()>;

const CASES: [(&str, Case); 15] = [
    ("append-file", |run| append(run, file())),
    ("append-hot", |run| append(run, hot(run))),
    ("claim-file", |run| claim(run, file())),
    ("claim-bulk", |run| claim(run, WriterOptions { in_bulk: true, ..file() })),
    ("claim-hot", |run| claim(run, hot(run))),
    ("read-file", read_closed),
    ("read-runs-file", read_runs),
    ("read-live-file", |run| read_live(run, file())),
    ("read-live-hot", |run| read_live(run, hot(run))),
    ("one-by-one-file", |run| one_by_one(run, file())),
    ("one-by-one-hot", |run| one_by_one(run, hot(run))),
    ("offer-hot", |run| offer(run, hot(run))),
    ("poll-hot", |run| poll(run, hot(run))),
    ("record", recorder),
    ("verify", verify_closed),
];

/// Lines of the frame of a message of 100 bytes, as in `unitape bench tape`.
const LINES: u16 = 2;

/// Messages of a repeat.
const MESSAGES: u64 = 20_000;

/// Room for both repeats and more, so that no segment is made on the way.
const SEGMENT_BYTES: u64 = 16 << 20;

/// Messages of a claim.
const PER_CLAIM: u64 = 100;

const TOPIC: u32 = 7;

const ID: TapeId = TapeId(1);

struct Run {
    dir: PathBuf,
    messages: u64,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().ok_or("give a case and a directory")?;
    match name.as_str() {
        "list" => CASES.iter().for_each(|(name, _)| println!("{name}")),
        "cpu" => println!("{}", instruction_sets()),
        name => {
            let case = CASES.iter().find(|(known, _)| *known == name);
            let (_, work) = case.ok_or_else(|| format!("no case is called {name}"))?;
            let dir = PathBuf::from(args.get(1).ok_or("give a directory")?);
            let messages = args.get(2).map_or(Ok(MESSAGES), |text| text.parse())?;
            work(&Run { dir, messages })?;
            println!("{{\"case\":\"{name}\",\"count\":{messages}}}");
        }
    }
    Ok(())
}

/// Where a repeat begins and ends. Callgrind looks for calls of this function, so it must be one.
#[inline(never)]
fn mark() {
    black_box(());
}

impl Run {
    fn tape(&self) -> PathBuf {
        self.dir.join("tape")
    }

    /// Does `work` twice between marks: each time with the number of the repeat.
    fn twice(&self, mut work: impl FnMut(u64) -> Result<()>) -> Result<()> {
        for repeat in 0..2 {
            mark();
            work(repeat)?;
            mark();
        }
        Ok(())
    }
}

fn file() -> WriterOptions {
    WriterOptions { segment_bytes: SEGMENT_BYTES, prefault_bytes: SEGMENT_BYTES, ..WriterOptions::default() }
}

/// Its recorder does nothing meanwhile: the case `record` counts that.
fn hot(run: &Run) -> WriterOptions {
    let backing = Backing::Hot { dir: Some(run.dir.join("hot")), window_segments: 8 };
    WriterOptions { backing, recorder: RecorderLocation::External, ..file() }
}

fn append(run: &Run, options: WriterOptions) -> Result<()> {
    let (mut writer, _) = Writer::open(&run.tape(), ID, options)?;
    let mut messages = BenchFrameGenerator::new(LINES);
    run.twice(|_| {
        for _ in 0..run.messages {
            writer.append(messages.next())?;
        }
        Ok(())
    })
}

fn claim(run: &Run, options: WriterOptions) -> Result<()> {
    let (mut writer, _) = Writer::open(&run.tape(), ID, options)?;
    let block = block();
    run.twice(|_| {
        for _ in 0..run.messages / PER_CLAIM {
            let mut claim = writer.claim(block.len() as u64, |limit| cut(&block, limit), PER_CLAIM)?;
            claim.write_frames(&block)?;
            claim.publish();
        }
        Ok(())
    })
}

/// The messages of a claim.
fn block() -> Vec<u8> {
    let mut messages = BenchFrameGenerator::new(LINES);
    (0..PER_CLAIM).flat_map(|_| messages.next().to_vec()).collect()
}

/// Where a block may be cut that does not fit as a whole.
fn cut(block: &[u8], limit: u64) -> (u64, u64) {
    let frame = u64::from(LINES) * LINE as u64;
    let whole = limit.min(block.len() as u64) / frame;
    (whole * frame, whole)
}

/// A tape with the messages of one repeat, closed.
fn closed(run: &Run) -> Result<PathBuf> {
    let (mut writer, _) = Writer::open(&run.tape(), ID, file())?;
    let mut messages = BenchFrameGenerator::new(LINES);
    for _ in 0..run.messages {
        writer.append(messages.next())?;
    }
    writer.close()?;
    Ok(run.tape())
}

fn read_closed(run: &Run) -> Result<()> {
    let tape = closed(run)?;
    run.twice(|_| {
        let mut reader = Reader::open(&tape, StartPosition::Oldest)?;
        expect(drain(&mut reader)?, run.messages)
    })
}

/// Reads to the end, every word of every message.
fn drain(reader: &mut Reader) -> Result<u64> {
    let mut read = 0;
    while let Some(frame) = reader.next()? {
        read += u64::from(BenchFrameGenerator::number(frame.bytes) == read);
    }
    Ok(read)
}

fn expect(read: u64, messages: u64) -> Result<()> {
    if read == messages { Ok(()) } else { Err(format!("{read} messages, not {messages}").into()) }
}

fn read_runs(run: &Run) -> Result<()> {
    let tape = closed(run)?;
    run.twice(|_| {
        let (mut reader, mut read) = (Reader::open(&tape, StartPosition::Oldest)?, 0);
        while let Some(run) = reader.next_run(1 << 20)? {
            for (_, header, frame) in frames(run.bytes) {
                read += u64::from(header.is_last() && BenchFrameGenerator::number(frame) == read);
            }
        }
        expect(read, run.messages)
    })
}

/// The writer has written and is still there: the reader reads what is not sealed.
fn read_live(run: &Run, options: WriterOptions) -> Result<()> {
    let (mut writer, _) = Writer::open(&run.tape(), ID, options)?;
    let mut messages = BenchFrameGenerator::new(LINES);
    for _ in 0..run.messages {
        writer.append(messages.next())?;
    }
    run.twice(|_| {
        let mut reader = Reader::open(&run.tape(), StartPosition::Oldest)?;
        expect(drain(&mut reader)?, run.messages)
    })
}

/// The cost of one message from writer to reader, without waiting: the reader finds nothing, one message is appended,
/// the reader reads it.
fn one_by_one(run: &Run, options: WriterOptions) -> Result<()> {
    let (mut writer, _) = Writer::open(&run.tape(), ID, options)?;
    let mut reader = Reader::open(&run.tape(), StartPosition::Oldest)?;
    let mut messages = BenchFrameGenerator::new(LINES);
    run.twice(|repeat| {
        for n in 0..run.messages {
            if reader.next()?.is_some() {
                return Err("a message before it was written".into());
            }
            writer.append(messages.next())?;
            let frame = reader.next()?.ok_or("a message that was written is not there")?;
            if BenchFrameGenerator::number(frame.bytes) != repeat * run.messages + n {
                return Err("another message".into());
            }
        }
        Ok(())
    })
}

/// As a publisher has it: a payload of 100 bytes under a topic.
fn offer(run: &Run, options: WriterOptions) -> Result<()> {
    let mut publication = Publication::open(&run.tape(), options)?;
    let payload = [0x5a; 100];
    run.twice(|_| {
        for _ in 0..run.messages {
            publication.offer(TOPIC, &payload)?;
        }
        Ok(())
    })
}

/// As a subscriber has it: messages in batches, by a call for each.
fn poll(run: &Run, options: WriterOptions) -> Result<()> {
    let mut publication = Publication::open(&run.tape(), options)?;
    let payload = [0x5a; 100];
    for _ in 0..run.messages {
        publication.offer(TOPIC, &payload)?;
    }
    run.twice(|_| {
        let mut subscription = Subscription::open(&run.tape(), StartPosition::Oldest)?;
        let mut read = 0;
        loop {
            let got = subscription.poll(64, |frame| read += u64::from(black_box(frame.bytes)[8] < 255))?;
            if got == 0 {
                return expect(read, run.messages);
            }
        }
    })
}

/// The recorder of a hot tape as a process of its own: sums, definitions, and the order of its copy, which a thread of
/// its own writes. Each repeat has a tape of its own: a recorder that comes back looks at what is there.
fn recorder(run: &Run) -> Result<()> {
    for repeat in ["first", "second"] {
        let place = Run { dir: run.dir.join(repeat), messages: run.messages };
        let (mut writer, _) = Writer::open(&place.tape(), ID, hot(&place))?;
        let (mut unit, mut messages) = (vec![0; LINE], BenchFrameGenerator::new(LINES));
        for n in 0..run.messages {
            if n % 100 == 0 {
                FrameHeader::new_unstamped(2, flags::META | flags::LAST, 1).write(&mut unit);
                unit[8..16].copy_from_slice(&n.to_le_bytes());
                writer.append(&unit)?;
            }
            writer.append(messages.next())?;
        }
        mark();
        record(&place.tape(), SyncPolicy::OnClose, RemovalOptions::default(), &AtomicBool::new(true))?;
        mark();
    }
    Ok(())
}

fn verify_closed(run: &Run) -> Result<()> {
    let tape = closed(run)?;
    run.twice(|_| {
        let report = verify(Path::new(&tape))?;
        if report.is_intact() { Ok(()) } else { Err(format!("{:?}", report.problems).into()) }
    })
}

/// The instruction sets that the codecs choose by.
fn instruction_sets() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! found {
            ($($name:tt)*) => {
                [$(($name, std::arch::is_x86_feature_detected!($name)),)*]
            };
        }
        let sets = found!("avx512bw" "avx512vbmi2" "avx2" "bmi1" "bmi2" "lzcnt" "popcnt" "sse4.2");
        let names: Vec<&str> = sets.into_iter().filter_map(|(name, there)| there.then_some(name)).collect();
        names.join(" ")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH.to_owned()
    }
}
