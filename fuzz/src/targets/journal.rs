//! Any bytes as what a kill left of a journal: it is mended or refused, and what is read of it has times that go up.

use unitape_feed::journal::{StreamContinuity, LastFile, PacketJournal, StreamJournal, ReceiveTimeReader};
use unitape_model::UnixNanos;

pub fn run(bytes: &[u8]) {
    let Some((split, bytes)) = bytes.split_first() else { return };
    let (raw, times) = bytes.split_at(usize::from(*split).min(bytes.len()));
    let dir = tempfile::tempdir().unwrap();
    let stream = dir.path().join("s");
    std::fs::create_dir(&stream).unwrap();
    std::fs::write(stream.join("00000001.raw"), raw).unwrap();
    std::fs::write(stream.join("00000001.times"), times).unwrap();
    let continuity = match split % 3 {
        0 => StreamContinuity::Connection,
        1 => StreamContinuity::Pipe,
        _ => StreamContinuity::Resumed,
    };
    let known = LastFile { number: u64::from(split / 100), read_bytes: u64::from(split % 100) };
    if let Ok(mut journal) = StreamJournal::open(&stream, continuity, known) {
        journal.begin().unwrap();
        journal.append(b"more", UnixNanos(7)).unwrap();
        journal.end().unwrap();
    }
    if let Ok(mut read) = ReceiveTimeReader::open(&stream.join("00000001.raw"), 0) {
        let mut of_block = Vec::new();
        if read.poll().is_ok() {
            read.set_block_times(u64::MAX, &mut of_block);
            assert!(of_block.is_sorted_by_key(|(end, _)| *end));
        }
    }
    let packets = dir.path().join("p");
    std::fs::create_dir(&packets).unwrap();
    std::fs::write(packets.join("00000001.pcap"), bytes).unwrap();
    // What was noted of a place in it may be anything, too.
    std::fs::write(packets.join(".at"), raw).unwrap();
    let day_begins = (split % 2 == 0).then(|| std::time::Duration::from_secs(u64::from(*split) * 300));
    if let Ok(mut journal) = PacketJournal::open(&packets, 1 << 20, day_begins, known) {
        journal.flush().unwrap();
    }
}
