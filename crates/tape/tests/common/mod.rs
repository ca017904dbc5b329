//! Units whose content follows from a seed and an index, so that any reader can check them.
#![allow(dead_code)] // each test target uses its part

pub mod mount;
pub mod process;
pub mod served;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use unitape_model::{FrameHeader, LINE, Position, flags, frames};
use unitape_tape::{Backing, Reader, StartPosition, TapeId, WriterOptions};

/// Identity of all test tapes.
pub const ID: TapeId = TapeId(0x7e57);

/// A directory in memory where there is such: most tests are not about the disk, whose flushes take their time.
pub fn directory() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap()
}

/// A small, seeded generator; the tests need spread, not quality.
pub fn mix(seed: u64, index: u64) -> u64 {
    let mut x = seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Appends unit `index` to `out`: one to four frames of one to five lines, some of them definitions.
pub fn unit(seed: u64, index: u64, out: &mut Vec<u8>) {
    let r = mix(seed, index);
    let count = 1 + r % 4;
    for f in 0..count {
        let r = mix(r, f);
        let lines = 1 + (r % 5) as u16;
        let (kind, meta) = if r.is_multiple_of(11) { (2 + (r % 3) as u8, flags::META) } else { (20, 0) };
        let last = if f + 1 == count { flags::LAST } else { 0 };
        let from = out.len();
        out.resize(from + lines as usize * LINE, 0);
        FrameHeader::new_unstamped(kind, meta | last, lines).write(&mut out[from..]);
        out[from + 8..from + 16].copy_from_slice(&index.to_le_bytes());
        for (i, b) in out[from + 16..].iter_mut().enumerate() {
            *b = (r >> (8 * (i % 8))) as u8 ^ i as u8;
        }
    }
}

/// Frames of a run that count as events.
pub fn events(run: &[u8]) -> u64 {
    frames(run).filter(|(_, h, _)| !h.is_meta()).count() as u64
}

/// Greatest boundary not beyond `limit`, slow and obvious.
pub fn cut(run: &[u8], limit: u64) -> (u64, u64) {
    let mut best = (0, 0);
    for (offset, header, frame) in frames(run) {
        let behind = (offset + frame.len()) as u64;
        if behind <= limit {
            best = (behind, best.1 + u64::from(!header.is_meta()));
        }
    }
    best
}

/// Options for small tapes.
pub fn options(segment_bytes: u64, hot: Option<&Path>) -> WriterOptions {
    let backing = match hot {
        None => Backing::File,
        Some(dir) => Backing::Hot { dir: Some(dir.into()), window_segments: 8 },
    };
    // A recorder waits for the disk, which others use as well.
    let recorder_wait = Duration::from_secs(300);
    WriterOptions {
        segment_bytes,
        backing,
        prefault_bytes: 64 << 10,
        recorder_wait,
        ..WriterOptions::default()
    }
}

/// Reads whole units on and checks each; the index of the next one.
pub struct Checker {
    pub reader: Reader,
    pub seed: u64,
    pub next: u64,
    unit: Vec<u8>,
}

impl Checker {
    pub fn new(dir: &Path, seed: u64) -> Self {
        Self { reader: Reader::open(dir, StartPosition::Oldest).unwrap(), seed, next: 0, unit: Vec::new() }
    }

    /// Reads what is there.
    pub fn catch_up(&mut self) -> u64 {
        while self.step() {}
        self.next
    }

    /// Reads a frame; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(frame) = self.reader.next().unwrap() else { return false };
        let from = self.unit.len();
        self.unit.extend_from_slice(frame.bytes);
        assert!(frame.header.is_at(frame.position));
        frame.header.unstamp().write(&mut self.unit[from..]);
        if frame.header.is_last() {
            let mut want = Vec::new();
            unit(self.seed, self.next, &mut want);
            assert!(self.unit == want, "seed {} unit {} is not as it was written", self.seed, self.next);
            self.unit.clear();
            self.next += 1;
        }
        true
    }
}

/// A header without its stamp.
pub trait Unstamp {
    fn unstamp(self) -> Self;
}

impl Unstamp for FrameHeader {
    fn unstamp(self) -> Self {
        FrameHeader(self.0 & !0xffff_ffff)
    }
}

/// The file at `path` for damaging it: that of a sealed segment, too.
pub fn writable(path: &Path) -> std::fs::File {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// Names of what is below `run/` of the tape in `dir`, in order.
pub fn left_in_run(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("run")).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// All files of the tape in `dir` with their content; `run/` is not of the tape.
pub fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path != dir.join("run") {
                    open.push(path);
                }
            } else {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                out.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    out
}

/// Appends units `from..to`, one call each.
pub fn append(writer: &mut unitape_tape::Writer, seed: u64, from: u64, to: u64) -> Vec<Position> {
    let mut bytes = Vec::new();
    (from..to)
        .map(|i| {
            bytes.clear();
            unit(seed, i, &mut bytes);
            writer.append(&bytes).unwrap()
        })
        .collect()
}
