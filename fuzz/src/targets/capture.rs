//! Any bytes as a capture, and as the tail of a journal: the walker ends, every place lies within the bytes, and as a
//! source the account closes.

use unitape_base::capture::{NextCaptureRecord, UdpParseOutcome, CaptureWalker, udp, write};

pub fn run(bytes: &[u8]) {
    let Some((sort, bytes)) = bytes.split_first() else { return };
    let mut file = Vec::new();
    if sort & 1 == 1 {
        write::file_header(&mut file);
        write::datagram(&mut file, 1, "10.0.0.1:1".parse().unwrap(), "239.1.1.1:2".parse().unwrap(), b"{}\n");
    }
    file.extend_from_slice(bytes);
    let (mut walker, mut at) = (CaptureWalker::default(), 0);
    loop {
        let end = match walker.next(&file, at) {
            NextCaptureRecord::Packet(p) => {
                assert!(p.bytes.start >= at && p.bytes.end <= p.end);
                let packet = &file[p.bytes.clone()];
                if let UdpParseOutcome::Datagram(d) = udp(p.link, packet, p.is_cut()) {
                    assert!(d.payload.end <= packet.len());
                }
                p.end
            }
            NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => end,
            NextCaptureRecord::More | NextCaptureRecord::Lost { .. } => break,
        };
        assert!(end > at && end <= file.len());
        at = end;
    }
    unitape_feed::try_capture(&unitape_feed::Format::events(), &file).expect("events need no mapping");
}
