//! Captured datagrams as IP fragments, for tests of several crates.

const RECORD_HEAD: usize = 16;
const IP_HEAD: usize = 20;

/// Returns the fragments of a record's datagram, each a record, of `bytes` bytes but for the last.
pub fn cut(record: &[u8], id: u16, bytes: usize) -> Vec<Vec<u8>> {
    let (head, body) = record.split_at(RECORD_HEAD + IP_HEAD);
    let parts: Vec<_> = body.chunks(bytes).enumerate().collect();
    let fragment = |(n, part): &(usize, &[u8])| {
        let mut out = head.to_vec();
        let length = (IP_HEAD + part.len()) as u32;
        out[8..16].copy_from_slice(&[length.to_le_bytes(); 2].concat());
        out[RECORD_HEAD + 2..RECORD_HEAD + 4].copy_from_slice(&(length as u16).to_be_bytes());
        out[RECORD_HEAD + 4..RECORD_HEAD + 6].copy_from_slice(&id.to_be_bytes());
        let more = if n + 1 < parts.len() { 0x2000 } else { 0 };
        let place = more | (n * bytes / 8) as u16;
        out[RECORD_HEAD + 6..RECORD_HEAD + 8].copy_from_slice(&place.to_be_bytes());
        out.extend_from_slice(part);
        out
    };
    parts.iter().map(fragment).collect()
}

/// Returns a record with the UDP checksum of its datagram.
pub fn with_checksum(record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    let (head, datagram) = record.split_at_mut(RECORD_HEAD + IP_HEAD);
    let length = datagram.len() as u16;
    let pseudo_header = [&head[RECORD_HEAD + 12..], &[0, 17], &length.to_be_bytes()].concat();
    let words = [&pseudo_header[..], datagram].map(|bytes| {
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        bytes.chunks(2).map(word).sum::<u32>()
    });
    let sum = words[0] + words[1];
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    record
}
