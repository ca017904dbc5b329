//! Messages of one line each, so that a position is a number of lines, and a machine that loses its power.
#![allow(dead_code)] // each test target uses its part

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{Publication, Subscription};

/// Messages of one line each that hold a number: position and number of lines are one.
pub trait Lines {
    fn put(&mut self, numbers: Range<u64>);
    fn try_put(&mut self, number: u64) -> unitape_tape::Result<Position>;
    fn make_durable(&mut self);
}

impl Lines for Publication {
    fn put(&mut self, numbers: Range<u64>) {
        numbers.for_each(|n| _ = self.try_put(n).unwrap());
    }

    fn try_put(&mut self, number: u64) -> unitape_tape::Result<Position> {
        self.offer(1, &number.to_le_bytes())
    }

    fn make_durable(&mut self) {
        let end = self.end();
        self.writer().wait_durable(end, Duration::from_secs(300)).unwrap();
    }
}

/// The number in a message of [`Lines`].
pub fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Reads the whole tape, or up to the line with the number `last` while a writer appends. Returns the numbers, and
/// the errors as text.
pub fn ask(subscription: &mut Subscription, last: Option<u64>) -> (Vec<u64>, Vec<String>) {
    let (mut numbers, mut errors) = (Vec::new(), Vec::new());
    for _ in 0..400_000 {
        match subscription.next() {
            Ok(Some(frame)) => numbers.push(number(frame.message().unwrap().bytes)),
            Ok(None) if last.is_none() => break,
            Ok(None) => {}
            Err(e) => errors.push(e.to_string()),
        }
        if last.is_some_and(|last| numbers.last() == Some(&last)) || errors.len() > 5 {
            break;
        }
    }
    (numbers, errors)
}

/// The error of a reader that was at line `from` when the tape was cut back to line `to`.
pub fn rewound(from: u64, to: u64) -> String {
    let (from, to) = (from * 64, to * 64);
    format!(
        "rewound: the tape was cut back to position {to} and the reader was at {from}; read on, what follows {to} is new"
    )
}

/// As after a restart of the machine: the boot that the lock names is another one. A closed tape has no lock.
pub fn other_boot(dir: &Path) {
    let path = dir.join("run/writer.lock");
    if !path.exists() {
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace("boot ", "boot another-")).unwrap();
}

/// The machine restarts, of a tape that no writer has open: all that was written is there, and no checksum vouches for
/// what comes from position `keep` on, so that the next writer cuts it.
pub fn machine_restarts(dir: &Path, keep: u64) {
    let size = unitape_tape::TapeManifest::load(dir).unwrap().segment_bytes;
    for entry in std::fs::read_dir(dir.join("segments")).unwrap() {
        let path = entry.unwrap().path();
        let base = u64::from_str_radix(path.file_stem().unwrap().to_str().unwrap(), 16).unwrap() * size;
        if path.extension().unwrap() == "crc" && base + size > keep {
            let data = std::fs::read(path.with_extension("seg")).unwrap().split_off(4096);
            let kept = keep.saturating_sub(base) as usize;
            let span = size.min(64 << 10) as usize;
            let sums = data[..kept.next_multiple_of(span)].chunks(span).enumerate().flat_map(|(i, bytes)| {
                let mut bytes = bytes.to_vec();
                bytes[kept.saturating_sub(i * span).min(span)..].fill(0);
                crc32c::crc32c(&bytes).to_le_bytes()
            });
            std::fs::write(&path, sums.collect::<Vec<_>>()).unwrap();
        }
    }
    other_boot(dir);
}

/// The power fails, of a tape that no writer has open: what the disk had not got is gone, from position `keep` on.
///
/// Readers that live on, as none does in earnest, keep what they have mapped.
pub fn power_fails(dir: &Path, keep: u64) {
    let size = unitape_tape::TapeManifest::load(dir).unwrap().segment_bytes;
    for entry in std::fs::read_dir(dir.join("segments")).unwrap() {
        let path = entry.unwrap().path();
        let (stem, extension) = (path.file_stem().unwrap(), path.extension().unwrap());
        let base = u64::from_str_radix(stem.to_str().unwrap(), 16).unwrap() * size;
        if base >= keep && base > 0 {
            std::fs::remove_file(&path).unwrap();
        } else if extension == "seg" && base + size > keep {
            // Another file, as the disk's is another memory.
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[(4096 + keep - base) as usize..].fill(0);
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
    }
    other_boot(dir);
}
