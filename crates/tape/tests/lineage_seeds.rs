//! Appends, acknowledgements, crashes, power losses that cut, cursors that go back, clean closes and retention, drawn
//! from a seed. A name and a reader that lives on see what the tape has in the end, or get an error that says where
//! it was cut.
//!
//! Errors are read as text, so that this says of an older library what it does wrong.

mod common;
#[path = "common/lines.rs"]
mod lines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{directory, mix, options};
use lines::{Lines, machine_restarts, number, power_fails};
use unitape_tape::{
    DurabilityHandle, Publication, Reader, RetentionLimits, StartPosition, Subscription, WriterOptions,
};

const SEGMENT: u64 = 4096;
const LINE: u64 = 64;

/// Numbers that a seed gives, one after the other.
struct Draw {
    seed: u64,
    index: u64,
}

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.index += 1;
        mix(self.seed, self.index) % limit
    }
}

/// The lines that a subscriber has: the number at each line that no rewind has cut.
#[derive(Clone)]
struct Seen {
    dir: PathBuf,
    lines: BTreeMap<u64, u64>,
    rewinds: u64,
}

impl Seen {
    fn of(dir: &Path) -> Self {
        Self { dir: dir.into(), lines: BTreeMap::new(), rewinds: 0 }
    }

    /// Reads up to the line with the number `last`, or at most `count` lines.
    fn read(&mut self, subscription: &mut Subscription, last: Option<u64>, count: usize, at: &str) {
        let (mut idle, mut read) = (0, 0);
        while idle < 200_000 && read < count {
            match subscription.next() {
                Ok(Some(frame)) => {
                    let line = frame.position.0 / LINE;
                    let n = number(frame.message().unwrap().bytes);
                    (idle, read) = (0, read + 1);
                    let before = self.lines.insert(line, n);
                    assert!(
                        before.is_none_or(|before| before == n),
                        "{at}: line {line} was {before:?}, is {n}"
                    );
                    if Some(n) == last {
                        return;
                    }
                }
                Ok(None) if last.is_none() => return,
                Ok(None) => idle += 1,
                Err(e) => self.meet(subscription, &e.to_string(), at),
            }
        }
        assert!(last.is_none() || read == count, "{at}: number {last:?} did not come");
    }

    fn meet(&mut self, subscription: &mut Subscription, error: &str, at: &str) {
        if error.starts_with("retained away") {
            // A writer that opened the tape meanwhile may have cut it.
            if let Err(e) = subscription.reader().skip_to_oldest() {
                self.meet(subscription, &e.to_string(), at);
            }
            return;
        }
        let to = error.strip_prefix("rewound: the tape was cut back to position ");
        let to = to.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let to = to.unwrap_or_else(|| panic!("{at}: {error}")) / LINE;
        // Cuts before the oldest position become one, which may rewind further than it must: into what is gone.
        let oldest = Reader::open(&self.dir, StartPosition::Oldest).unwrap().position().0 / LINE;
        let read = self.lines.range(to..).next().is_some();
        assert!(read || to < oldest, "{at}: nothing was read after line {to}, the oldest is {oldest}");
        self.lines.retain(|line, _| *line < to);
        self.rewinds += 1;
    }

    /// Lines at which this differs from the tape, from `from` on.
    fn check(&self, tape: &[u64], from: u64, at: &str) {
        for (line, n) in &self.lines {
            assert_eq!(tape.get(*line as usize), Some(n), "{at}: line {line} is not what the tape has");
        }
        for line in from..tape.len() as u64 {
            assert!(self.lines.contains_key(&line), "{at}: line {line} was skipped");
        }
    }
}

/// A name: what it has read, and each place that was stored, with what it had read then.
struct Name {
    seen: Seen,
    stored: Vec<(Vec<u8>, Seen)>,
}

fn run(seed: u64) -> u64 {
    let mut draw = Draw { seed, index: 0 };
    let (dir, other) = (directory(), directory());
    let hot = draw.below(3) == 0;
    let retains = draw.below(3) == 0;
    let place = other.path().join("hot");
    let options = || WriterOptions {
        retention: RetentionLimits {
            bytes: retains.then_some(6 * SEGMENT),
            notice_period: std::time::Duration::ZERO,
            ..RetentionLimits::default()
        },
        ..options(SEGMENT, hot.then_some(place.as_path()))
    };
    let dir = dir.path();
    let open = |at: &str| {
        Publication::open(dir, options()).unwrap_or_else(|e| panic!("{at}: the tape cannot be opened: {e}"))
    };
    let mut publication = Some(open("at the start"));
    // The tape as it is, by line, and the number that comes next.
    let (mut tape, mut next): (Vec<u64>, u64) = (Vec::new(), 1);
    // The lines that each name had read when it was acknowledged last.
    let mut names: BTreeMap<&str, Name> = BTreeMap::new();
    let mut live: Vec<(Subscription, Seen)> = Vec::new();
    let mut rewinds = 0;
    for step in 0..60 {
        let at = format!("seed {seed} step {step} hot {hot} retains {retains}");
        match draw.below(10) {
            0..=3 => {
                let publication = publication.as_mut().unwrap();
                let count = 1 + draw.below(90);
                publication.put(next..next + count);
                tape.extend(next..next + count);
                next += count;
                assert_eq!(publication.end().0, tape.len() as u64 * LINE, "{at}");
                if draw.below(2) == 0 {
                    publication.make_durable();
                }
            }
            4 | 5 => {
                let name = ["a", "b", "c"][draw.below(3) as usize];
                let mut subscription = Subscription::open_named_or_oldest(dir, name, StartPosition::Oldest)
                    .unwrap_or_else(|e| panic!("{at}: {name} cannot be opened: {e}"));
                let name_of =
                    names.entry(name).or_insert_with(|| Name { seen: Seen::of(dir), stored: Vec::new() });
                let count = 1 + draw.below(200) as usize;
                name_of.seen.read(&mut subscription, None, count, &at);
                subscription.acknowledge().unwrap();
                let bytes = std::fs::read(dir.join("run/cursors").join(name)).unwrap();
                name_of.stored.push((bytes, name_of.seen.clone()));
            }
            6 if live.len() < 3 => {
                let subscription = Subscription::open(dir, StartPosition::Oldest).unwrap();
                live.push((subscription, Seen::of(dir)));
            }
            6 | 7 if !live.is_empty() => {
                let n = draw.below(live.len() as u64) as usize;
                let count = 1 + draw.below(150) as usize;
                let (subscription, seen) = &mut live[n];
                seen.read(subscription, None, count, &at);
            }
            8 => {
                let publication_open = publication.take().unwrap();
                if draw.below(2) == 0 {
                    publication_open.close().unwrap();
                } else {
                    drop(publication_open);
                }
                publication = Some(open(&at));
                assert_eq!(publication.as_ref().unwrap().end().0, tape.len() as u64 * LINE, "{at}");
            }
            _ => {
                drop(publication.take());
                // Retention flushes by itself.
                let durable = DurabilityHandle::open(dir).unwrap().position().unwrap().0 / LINE;
                let keep = durable + draw.below(tape.len() as u64 - durable + 1);
                if draw.below(2) == 0 {
                    power_fails(dir, keep * LINE);
                } else {
                    machine_restarts(dir, keep * LINE);
                }
                // The disk may have an older place of the names, too.
                for (name, Name { seen, stored }) in &mut names {
                    if draw.below(3) == 0 {
                        stored.truncate(draw.below(stored.len() as u64) as usize + 1);
                        let (bytes, then) = stored.last().unwrap();
                        std::fs::write(dir.join("run/cursors").join(name), bytes).unwrap();
                        rewinds += seen.rewinds - then.rewinds;
                        *seen = then.clone();
                    }
                }
                publication = Some(open(&at));
                let end = publication.as_ref().unwrap().end().0 / LINE;
                assert!(end >= durable && end <= tape.len() as u64, "{at}");
                tape.truncate(end as usize);
            }
        }
    }
    let mut publication = publication.unwrap();
    publication.put(next..next + 20);
    tape.extend(next..next + 20);
    let last = Some(next + 19);
    let at = format!("seed {seed} at the end, hot {hot} retains {retains}");
    for (subscription, seen) in &mut live {
        seen.read(subscription, last, usize::MAX, &at);
        check(seen, &tape, dir, &at);
        rewinds += seen.rewinds;
    }
    for (name, Name { seen, .. }) in &mut names {
        let mut subscription = Subscription::open_named_or_oldest(dir, name, StartPosition::Oldest)
            .unwrap_or_else(|e| panic!("{at}: {name} cannot be opened: {e}"));
        seen.read(&mut subscription, last, usize::MAX, &at);
        check(seen, &tape, dir, &format!("{at}, name {name}"));
        rewinds += seen.rewinds;
    }
    publication.close().unwrap();
    assert!(unitape_tape::verify(dir).unwrap().is_intact(), "{at}");
    rewinds
}

/// Compares with a tape whose beginning retention removed: lines removed before they were read are no loss of ours.
fn check(seen: &Seen, tape: &[u64], dir: &Path, at: &str) {
    let oldest = Reader::open(dir, StartPosition::Oldest).unwrap().position().0 / LINE;
    seen.check(tape, oldest, at);
}

#[test]
fn nothing_is_skipped_silently() {
    let seeds: u64 = std::env::var("UNITAPE_LINEAGE_SEEDS").map_or(60, |n| n.parse().unwrap());
    let from: u64 = std::env::var("UNITAPE_LINEAGE_FROM").map_or(1, |n| n.parse().unwrap());
    let rewinds: u64 = (from..from + seeds).map(run).sum();
    assert!(rewinds > seeds / 4, "the tape was cut back {rewinds} times only");
}
