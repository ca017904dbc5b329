//! Faults of real captures: VLANs in front of IP, packets cut by the snap length, fragments, other byte orders, and
//! files that are damaged at the end or in the middle. None may panic or lose the packets before it.

use super::*;
use proptest::prelude::*;
use std::net::SocketAddr;

fn to() -> SocketAddr {
    "239.9.9.9:5000".parse().unwrap()
}

fn from() -> SocketAddr {
    "10.0.0.1:7".parse().unwrap()
}

/// A payload and when it was captured.
type Got = (Option<i64>, Vec<u8>);

/// All payloads and what else was met.
fn walk(file: &[u8]) -> (Vec<Got>, Vec<String>) {
    let (mut walker, mut at, mut got, mut other) = (CaptureWalker::default(), 0, Vec::new(), Vec::new());
    loop {
        match walker.next(file, at) {
            NextCaptureRecord::Skip { end } => at = end,
            NextCaptureRecord::Dropped { count, end, .. } => {
                other.push(format!("dropped {count}"));
                at = end;
            }
            NextCaptureRecord::Packet(p) => {
                let packet = &file[p.bytes.clone()];
                match udp(p.link, packet, p.is_cut()) {
                    UdpParseOutcome::Datagram(d) => got.push((p.ts_ns, packet[d.payload].to_vec())),
                    what => other.push(format!("{what:?}")),
                }
                assert!(p.end > at, "it goes forward");
                at = p.end;
            }
            NextCaptureRecord::More => return (got, other),
            NextCaptureRecord::Lost { reason: what } => {
                other.push(what.to_owned());
                return (got, other);
            }
        }
    }
}

/// An Ethernet packet around the raw IP packet of our own writer.
fn ethernet(tags: &[u16], ip: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 12];
    for tag in tags {
        out.extend_from_slice(&tag.to_be_bytes());
        out.extend_from_slice(&[0, 5]);
    }
    out.extend_from_slice(if ip[0] >> 4 == 4 { &[8, 0] } else { &[0x86, 0xdd] });
    out.extend_from_slice(ip);
    out
}

fn raw_ip(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::datagram(&mut out, 0, from(), to(), payload);
    out.split_off(16)
}

#[test]
fn a_journal_comes_back() {
    let mut file = Vec::new();
    write::file_header(&mut file);
    write::datagram(&mut file, 1, from(), to(), b"a");
    write::drop_note(&mut file, 2, 17);
    let (six_from, six_to) = ("[fe80::1]:1".parse().unwrap(), "[ff02::2]:5000".parse().unwrap());
    write::datagram(&mut file, 1_700_000_000_123_456_789, six_from, six_to, b"");
    let (got, other) = walk(&file);
    assert_eq!(got, [(Some(1), b"a".to_vec()), (Some(1_700_000_000_123_456_789), Vec::new())]);
    assert_eq!(other, ["dropped 17"]);
}

#[test]
fn links_and_tags_in_front_of_ip() {
    let ip = raw_ip(b"x");
    let payload = |link, packet: &[u8]| match udp(link, packet, false) {
        UdpParseOutcome::Datagram(d) => packet[d.payload].to_vec(),
        other => panic!("{other:?}"),
    };
    for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100]] {
        assert_eq!(payload(1, &ethernet(tags, &ip)), b"x");
    }
    let cooked: Vec<u8> = [&[0; 14][..], &[8, 0], &ip].concat();
    assert_eq!(payload(113, &cooked), b"x");
    let cooked2: Vec<u8> = [&[8, 0][..], &[0; 18], &ip].concat();
    assert_eq!(payload(276, &cooked2), b"x");
    assert_eq!(payload(0, &[&[2, 0, 0, 0][..], &ip].concat()), b"x");
    assert_eq!(udp(1, &ethernet(&[], &ip)[..20], true), UdpParseOutcome::Cut(None));
    assert_eq!(udp(101, &ip[..24], true), UdpParseOutcome::Cut(Some(to())));
    assert_eq!(udp(101, &ip[..24], false), UdpParseOutcome::Bad("the packet ends in its headers"));
    let mut fragment = ip.clone();
    (fragment[5], fragment[7]) = (7, 2);
    let UdpParseOutcome::Fragment(part) = udp(101, &fragment, false) else { panic!("a fragment") };
    assert_eq!((part.to, part.id, part.offset, part.more), (to().ip(), 7, 16, false));
    assert_eq!(part.bytes, 20..29);
    // Only the last one may end anywhere.
    fragment[6] = 0x20;
    assert!(matches!(udp(101, &fragment, false), UdpParseOutcome::Bad(_)));
    assert_eq!(udp(101, &fragment[..24], true), UdpParseOutcome::Cut(None));
    let mut tcp = ip.clone();
    tcp[9] = 6;
    assert_eq!(udp(101, &tcp, false), UdpParseOutcome::Other);
    let mut long = ip;
    long[24] = 200;
    assert_eq!(udp(101, &long, false), UdpParseOutcome::Bad("a UDP length that does not fit its packet"));
}

proptest! {
    /// A header that is a little otherwise must not pass for a plain one: the quick way gives what the slow one does.
    #[test]
    fn the_quick_way_agrees(
        payload in prop::collection::vec(any::<u8>(), 0..40),
        ether in any::<bool>(),
        changes in prop::collection::vec((0usize..44, any::<u8>()), 0..3),
        length in 0usize..90,
        cut in any::<bool>(),
    ) {
        let ip = raw_ip(&payload);
        let (link, mut packet) = if ether { (1, ethernet(&[], &ip)) } else { (101, ip) };
        for (at, byte) in changes {
            if let Some(place) = packet.get_mut(at) {
                *place = byte;
            }
        }
        packet.truncate(length);
        prop_assert_eq!(udp(link, &packet, cut), super::packet::udp_any(link, &packet, cut));
    }
}

/// A pcapng file with two interfaces of different units, in either byte order.
fn ng(big: bool) -> Vec<u8> {
    let w = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let h = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let block = |kind: u32, body: Vec<u8>| {
        let mut body = body;
        body.resize(body.len().next_multiple_of(4), 0);
        let length = w(body.len() as u32 + 12);
        [&w(kind)[..], &length, &body, &length].concat()
    };
    let ip = raw_ip(b"ng");
    let packet = |interface: u32, ts: u64, captured: u32| {
        let head = [interface, (ts >> 32) as u32, ts as u32, captured, ip.len() as u32];
        [&head.map(w).concat()[..], &ip[..captured as usize]].concat()
    };
    let nanos = [&h(9)[..], &h(1), &[9, 0, 0, 0], &h(0), &h(0)].concat();
    [
        block(0x0a0d_0d0a, [&w(0x1a2b_3c4d)[..], &h(1), &h(0), &[0xff; 8]].concat()),
        block(1, [&h(101)[..], &h(0), &w(0)].concat()),
        block(1, [&h(101)[..], &h(0), &w(0), &nanos].concat()),
        block(5, vec![0; 12]),
        block(6, packet(0, 1_700_000_000_000_001, ip.len() as u32)),
        block(6, packet(1, 1_700_000_000_000_000_007, ip.len() as u32)),
        block(3, [&w(ip.len() as u32)[..], &ip].concat()),
        block(6, packet(1, 5, 25)),
    ]
    .concat()
}

#[test]
fn pcapng_in_both_byte_orders() {
    for big in [false, true] {
        let file = ng(big);
        assert!(is_capture(&file));
        let (got, other) = walk(&file);
        let times: Vec<_> = got.iter().map(|(ts, _)| *ts).collect();
        assert_eq!(times, [Some(1_700_000_000_000_001_000), Some(1_700_000_000_000_000_007), None]);
        assert!(got.iter().all(|(_, payload)| payload == b"ng"));
        assert_eq!(other.len(), 1, "{other:?}");
        assert!(other[0].starts_with("Cut"), "{other:?}");
    }
}

/// Classic pcap with microseconds, big-endian, as old tools on old machines wrote it.
#[test]
fn classic_pcap_with_microseconds() {
    let packet = ethernet(&[], &raw_ip(b"old"));
    let mut file = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 1].map(u32::to_be_bytes).concat();
    let n = packet.len() as u32;
    file.extend([1_700_000_000, 5, n, n].map(u32::to_be_bytes).concat());
    file.extend(&packet);
    // Only in our journals does an empty record note drops.
    file.extend([1_700_000_000, 6, 0, n].map(u32::to_be_bytes).concat());
    let (got, other) = walk(&file);
    assert_eq!(got, [(Some(1_700_000_000_000_005_000), b"old".to_vec())]);
    assert_eq!(other, ["Cut(None)"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Damage anywhere: what is before it comes out as it was, and nothing panics.
    #[test]
    fn damage_spares_what_is_before_it(at in 0usize..2000, bit in 0u8..8, big: bool, kind in 0..2, end in 0usize..2000) {
        let mut file = Vec::new();
        if kind == 0 {
            write::file_header(&mut file);
            for i in 0..20 {
                write::datagram(&mut file, i, from(), to(), format!("payload {i}").as_bytes());
            }
        } else {
            file = ng(big);
        }
        let whole = walk(&file).0;
        let at = at % file.len();
        file[at] ^= 1 << bit;
        file.truncate(file.len() - end % file.len() / 4);
        let (mut walker, mut place) = (CaptureWalker::default(), 0);
        loop {
            let end = match walker.next(&file, place) {
                NextCaptureRecord::Packet(p) => {
                    _ = udp(p.link, &file[p.bytes.clone()], p.is_cut());
                    p.end
                }
                NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => end,
                _ => break,
            };
            prop_assert!(end > place && end <= file.len());
            place = end;
        }
        let damaged = walk(&file).0;
        let same = damaged.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        // Headers aside, packets whose record ends before the damage are untouched.
        if kind == 0 && at > 24 {
            let mut before = 24;
            let mut n = 0;
            for (_, payload) in &whole {
                before += 16 + 28 + payload.len();
                n += usize::from(before <= at.min(file.len()));
            }
            prop_assert!(same >= n, "{same} of {n}");
        }
    }

    /// Any bytes end in `More` or `Lost`, in places that lie within them.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), magic in 0..3) {
        let head: &[u8] = match magic { 0 => &[0x4d, 0x3c, 0xb2, 0xa1], 1 => &[0x0a, 0x0d, 0x0d, 0x0a], _ => &[] };
        let file = [head, &bytes].concat();
        walk(&file);
    }
}
