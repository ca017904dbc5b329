//! Tapes with damage, for the tests of what is said and done about it.
#![allow(dead_code)] // each test file uses its part

use crate::common::{Ran, file, flow, orders_option, run};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub const HEADER_PAGE: u64 = 4096;
pub const SEGMENT: u64 = 128 << 10;
pub const SPAN: u64 = 64 << 10;

/// A closed tape of many small segments, and what it was made from.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub tape: PathBuf,
    feed: PathBuf,
}

impl Bench {
    pub fn new() -> Self {
        Self::of(9000, SEGMENT)
    }

    pub fn of(messages: u64, segment: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let feed = file(dir.path(), "orders.fix", flow(7, messages, false).0);
        let bench = Self { tape: dir.path().join("tape"), dir, feed };
        run(bench.consolidation(segment)).code(0);
        bench
    }

    pub fn consolidation(&self, segment: u64) -> Vec<OsString> {
        let feed = orders_option("orders", &self.feed);
        let segment = segment.to_string();
        let tape = self.tape.to_str().unwrap();
        let args = ["consolidate", "--feed", &feed, "--tape", tape, "--segment-bytes", &segment];
        args.into_iter().map(OsString::from).collect()
    }

    /// The same command again: it opens the tape for writing.
    pub fn write(&self) -> Ran {
        run(self.consolidation(SEGMENT))
    }

    pub fn verify(&self) -> Ran {
        self.tape_command("verify", &[])
    }

    pub fn repair(&self, options: &[&str]) -> Ran {
        self.tape_command("repair", options)
    }

    pub fn tape_command(&self, name: &str, options: &[&str]) -> Ran {
        let tape = self.tape.to_str().unwrap();
        run(["tape", name, tape].into_iter().chain(options.iter().copied()))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.tape.join(name)
    }

    pub fn segments(&self) -> u64 {
        (0..).take_while(|i| self.segment(*i).exists()).count() as u64
    }

    pub fn segment(&self, index: u64) -> PathBuf {
        self.path(&format!("segments/{index:016x}.seg"))
    }

    pub fn crc(&self, index: u64) -> PathBuf {
        self.path(&format!("segments/{index:016x}.crc"))
    }

    pub fn last(&self) -> u64 {
        self.segments() - 1
    }

    /// Its files, without those that repairs kept.
    pub fn content(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = crate::common::files(&self.tape);
        all.retain(|name, _| !name.starts_with("repair") && !name.starts_with("run/"));
        all
    }
}

/// Changes one bit of a file, also of one that is read-only, and leaves its permissions and its date as they were.
pub fn flip(path: &Path, offset: u64) {
    change(path, offset, |byte| byte ^ 4);
}

pub fn change(path: &Path, offset: u64, how: impl Fn(u8) -> u8) {
    let before = std::fs::metadata(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(&[how(byte[0])]).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    std::fs::set_permissions(path, before.permissions()).unwrap();
}

/// Cuts a file, or removes it where nothing is to be left.
pub fn shorten(path: &Path, length: u64) {
    if length == 0 {
        std::fs::remove_file(path).unwrap();
        return;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

/// Writes some bytes after a file's end.
pub fn lengthen(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(&[7; 40]).unwrap();
}

/// A byte of a price of the last segment: in the middle of its last but one frame.
pub fn a_price(bench: &Bench) -> (PathBuf, u64) {
    let durable = std::fs::read(bench.path("durable")).unwrap();
    let end = u64::from_le_bytes(durable[16..24].try_into().unwrap());
    let last = bench.segment(end / SEGMENT);
    (last, HEADER_PAGE + end % SEGMENT - 64 + 20)
}

/// CRC-32C, bit by bit.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}
