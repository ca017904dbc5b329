//! A good tape with its files changed by the input: everything that opens it gives a result or an error, and what
//! the verification calls intact can be read. The input is changes of 16 bytes each.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use unitape_model::{FrameHeader, LINE, flags};
use unitape_tape::{
    DefinitionReader, WriterOptions, ReadOptions, Reader, RemovalOptions, RetentionLimits, StartPosition, TapeId, Writer, info, retention_status,
    retain, verify,
};

const ID: TapeId = TapeId(0xf022);
const SEGMENT_BYTES: u64 = 4096;

pub fn run(data: &[u8]) {
    let Some((&first, changes)) = data.split_first() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let mut names = Vec::new();
    for (name, bytes) in good(first & 1 == 0) {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("a directory");
        fs::write(&path, bytes).expect("a file");
        names.push(path);
    }
    for change in changes.chunks_exact(16).take(64) {
        apply(dir.path(), &names, change.try_into().expect("16 bytes"));
    }
    let report = verify(dir.path());
    read(dir.path(), StartPosition::Oldest);
    // A checksum that is damaged takes a span from a reader, and nothing from who does not look at it.
    let unchecked = ReadOptions { verify: false, ..ReadOptions::default() };
    let end = read_with(dir.path(), StartPosition::Oldest, unchecked);
    if let (Ok(report), Some(end)) = (report, end) {
        assert!(end >= report.intact_to.0, "intact to {}, read to {end}", report.intact_to);
    }
    read(dir.path(), StartPosition::End);
    // Only panics, endless loops and memory without bound are findings here.
    let _ = info(dir.path());
    if let Ok(mut log) = DefinitionReader::open(dir.path()) {
        while let Ok(Some(_)) = log.next() {}
    }
    let limits = RetentionLimits { bytes: Some(2 * SEGMENT_BYTES), ..RetentionLimits::default() };
    let _ = retain(dir.path(), &limits, &RemovalOptions::default(), false);
    let _ = retention_status(dir.path());
    // A changed size of segments is a wish for that much room on the disk, which is granted.
    let text = fs::read_to_string(dir.path().join("tape.toml")).unwrap_or_default();
    if text.contains("segment_bytes = 4096\n") {
        let options = WriterOptions { truncate_damage: first & 2 == 0, ..options() };
        if let Ok((mut writer, recovery)) = Writer::open(dir.path(), ID, options) {
            let appended = writer.append(&line(20)).is_ok();
            if writer.close().is_ok() && appended {
                assert!(read(dir.path(), StartPosition::At(recovery.end_position)) > Some(recovery.end_position.0), "{recovery:?}");
            }
        }
    }
}

fn options() -> WriterOptions {
    WriterOptions { segment_bytes: SEGMENT_BYTES, prefault_bytes: 0, ..WriterOptions::default() }
}

fn line(kind: u8) -> [u8; LINE] {
    let mut frame = [0x5a; LINE];
    FrameHeader::new_unstamped(kind, flags::LAST, 1).write(&mut frame);
    frame
}

/// Files by name.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Files of a small tape, closed or left behind.
fn good(clean: bool) -> &'static Files {
    static TAPES: [OnceLock<Files>; 2] = [OnceLock::new(), OnceLock::new()];
    TAPES[usize::from(clean)].get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut writer, _) = Writer::open(dir.path(), ID, options()).expect("a tape");
        for i in 0..150 {
            writer.append(&line(if i % 9 == 0 { 3 } else { 20 })).expect("room");
        }
        if clean {
            writer.close().expect("a clean end");
        } else {
            // As after a kill, and no thread of the writer renames or removes files while they are read.
            drop(writer);
        }
        let (mut files, mut open) = (Vec::new(), vec![dir.path().to_path_buf()]);
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(&next).expect("ours").map(|e| e.expect("ours").path()) {
                if entry.is_dir() {
                    open.push(entry);
                } else {
                    let name = entry.strip_prefix(dir.path()).expect("below").to_path_buf();
                    files.push((name, fs::read(&entry).expect("ours")));
                }
            }
        }
        files.sort();
        files
    })
}

/// One change: which file, what is done, where, and eight bytes.
fn apply(dir: &Path, names: &[PathBuf], change: &[u8; 16]) {
    let path = &names[usize::from(change[0]) % names.len()];
    let offset = u64::from(u32::from_le_bytes([change[4], change[5], change[6], change[7]]));
    let Ok(file) = fs::OpenOptions::new().read(true).write(true).open(path) else { return };
    let length = file.metadata().map_or(0, |m| m.len()).max(1);
    // What cannot be changed any more is left as it is.
    let _ = match change[1] % 6 {
        0 => file.write_all_at(&change[8..9], offset % length),
        1 => file.write_all_at(&change[8..], (offset % length) & !7),
        2 => file.write_all_at(&[0; 512], offset % length),
        3 => file.set_len(offset % (2 * length)),
        4 => fs::remove_file(path),
        _ => {
            let index = u64::from_le_bytes(change[8..].try_into().expect("eight bytes"));
            let index = if change[2] & 1 == 0 { index % 8 } else { index };
            fs::copy(path, dir.join(format!("segments/{index:016x}.seg"))).map(drop)
        }
    };
}

/// Reads until the end or an error; gives the position reached.
fn read(dir: &Path, start: StartPosition) -> Option<u64> {
    read_with(dir, start, ReadOptions::default())
}

fn read_with(dir: &Path, start: StartPosition, options: ReadOptions) -> Option<u64> {
    let mut reader = Reader::open_with(dir, start, options).ok()?;
    for _ in 0..100_000 {
        if !matches!(reader.next(), Ok(Some(_))) {
            return Some(reader.position().0);
        }
    }
    panic!("the reader does not come to an end");
}
