//! Helpers that the tests of several crates share: vectors, messages made by hand, tapes compared byte for byte.
//!
//! Only dev-dependencies name this crate. Its functions panic where a test must fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use unitape_model::FrameHeader;
use unitape_tape::{Reader, StartPosition, TapeManifest, Writer, WriterOptions};

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of the real JSE index feed.
pub fn jse() -> PathBuf {
    root().join("vectors/fix/jse/jse_fix50_marketdata_head80.fix")
}

/// Returns the path of the real NYSE TAQ quotes.
pub fn taq() -> PathBuf {
    root().join("vectors/fixed/taq/nyse_taq_bbo_20140206.txt")
}

/// Makes a FIX message with right length and checksum; `|` separates the fields of `body`.
pub fn fix(begin: &str, body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut message = format!("8={begin}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = message.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    message.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    message
}

/// Reads every file under a directory, by name. Files under `run/` do not belong to a tape: its writers, and how far names
/// are.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                all.insert(name, fs::read(&path).unwrap());
            } else if !(path.ends_with("run") && folder.join("tape.toml").exists()) {
                todo.push(path);
            }
        }
    }
    all
}

/// Asserts that two tapes are the same, byte for byte, and names the first difference.
#[track_caller]
pub fn assert_same(a: &Path, b: &Path, context: &str) {
    let (a, b) = (files(a), files(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{context}");
    for (name, bytes) in &a {
        let other = &b[name];
        let difference = bytes.iter().zip(other).position(|(x, y)| x != y);
        let is_same = bytes.len() == other.len() && difference.is_none();
        assert!(is_same, "{context}: {name} differs at {difference:?}");
    }
}

/// Reads the units of a tape, each as it was given to the writer, without the writer's stamps.
pub fn units(tape: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(tape, StartPosition::Oldest).unwrap();
    let (mut units, mut unit) = (Vec::new(), Vec::new());
    while let Some(frame) = reader.next().unwrap() {
        let start = unit.len();
        unit.extend_from_slice(frame.bytes);
        FrameHeader(frame.header.0 & !0xffff_ffff).write(&mut unit[start..]);
        if frame.header.is_last() {
            units.push(std::mem::take(&mut unit));
        }
    }
    units
}

/// Makes a tape of these units of another tape, with the other tape's id and its messages in quarantine.
pub fn tape_of_units(dir: &Path, whole: &Path, units: &[Vec<u8>], options: WriterOptions) {
    let id = TapeManifest::load(whole).unwrap().id;
    let (mut writer, _) = Writer::open(dir, id, options).unwrap();
    for unit in units {
        writer.append(unit).unwrap();
    }
    writer.close().unwrap();
    let raw = "quarantine.raw";
    if whole.join(raw).exists() {
        fs::copy(whole.join(raw), dir.join(raw)).unwrap();
    }
}
