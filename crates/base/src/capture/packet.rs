//! From a captured packet to the payload of its UDP datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// The content of a packet, as a reader of UDP sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UdpParseOutcome {
    /// A whole datagram.
    Datagram(UdpDatagram),
    /// A datagram that the capture holds only in part; its ports if they can be seen.
    Cut(Option<SocketAddr>),
    /// A part of a datagram that IP has cut into fragments.
    Fragment(IpFragment),
    /// A packet of something else.
    Other,
    /// A packet that contradicts itself.
    Bad(&'static str),
}

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpDatagram {
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's address, a group or a host, and port.
    pub to: SocketAddr,
    /// Its payload, as a range of the packet.
    pub payload: Range<usize>,
}

/// A part of a datagram of UDP; see [`super::IpReassembler`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpFragment {
    /// The sender's address.
    pub from: IpAddr,
    /// The receiver's address.
    pub to: IpAddr,
    /// The IP identification, the same in all fragments of a datagram.
    pub id: u32,
    /// Where in the datagram it belongs, in bytes; the header of UDP is at 0.
    pub offset: usize,
    /// Whether more fragments follow.
    pub more: bool,
    /// Its bytes, as a range of the packet.
    pub bytes: Range<usize>,
}

/// Takes a packet of this link type apart; `is_cut` says that the capture has only a part of it.
#[inline]
pub fn udp(link: u16, packet: &[u8], is_cut: bool) -> UdpParseOutcome {
    match parse_simple_udp(link, packet) {
        Some(datagram) => UdpParseOutcome::Datagram(datagram),
        None => udp_any(link, packet, is_cut),
    }
}

/// Reads the usual packet of market data: a whole datagram of IPv4 without options, right after the header of
/// Ethernet or by itself. None for all others.
#[inline]
fn parse_simple_udp(link: u16, packet: &[u8]) -> Option<UdpDatagram> {
    let ip_offset = match link {
        1 if packet.get(12..14)? == [8, 0] => 14,
        101 => 0,
        _ => return None,
    };
    let head = packet.get(ip_offset..)?.first_chunk::<28>()?;
    let number = |offset: usize| u16::from_be_bytes([head[offset], head[offset + 1]]);
    let (total, length) = (usize::from(number(2)), usize::from(number(24)));
    let payload = ip_offset + 28..ip_offset + 20 + length;
    if head[0] != 0x45
        || head[9] != UDP
        || number(6) & 0x3fff != 0
        || length < 8
        || length + 20 > total
        || payload.end > packet.len()
    {
        return None;
    }
    let address =
        |start: usize| Ipv4Addr::new(head[start], head[start + 1], head[start + 2], head[start + 3]).into();
    let sender = SocketAddr::new(address(12), number(20));
    Some(UdpDatagram { from: sender, to: SocketAddr::new(address(16), number(22)), payload })
}

/// Reads any packet, those too that `plain` does not read.
#[inline(never)]
pub(super) fn udp_any(link: u16, packet: &[u8], is_cut: bool) -> UdpParseOutcome {
    let short = if is_cut {
        UdpParseOutcome::Cut(None)
    } else {
        UdpParseOutcome::Bad("the packet ends in its headers")
    };
    let Some((ether, ip_offset)) = network(link, packet) else { return short };
    match ether {
        IPV4 => ipv4(packet, ip_offset, is_cut).unwrap_or(short),
        IPV6 => ipv6(packet, ip_offset, is_cut).unwrap_or(short),
        _ => UdpParseOutcome::Other,
    }
}

/// Returns the EtherType and where the network header begins.
fn network(link: u16, packet: &[u8]) -> Option<(u16, usize)> {
    let bare_ip_at = |offset: usize| match packet.get(offset)? >> 4 {
        4 => Some((IPV4, offset)),
        6 => Some((IPV6, offset)),
        _ => Some((0, offset)),
    };
    match link {
        1 => vlan(packet, be16(packet, 12)?, 14),
        // Loopback: the family in the byte order of the host, then IP, which carries its own version.
        0 | 108 => bare_ip_at(4),
        12 | 14 | 101 | 228 | 229 => bare_ip_at(0),
        113 => vlan(packet, be16(packet, 14)?, 16),
        276 => vlan(packet, be16(packet, 0)?, 20),
        _ => Some((0, 0)),
    }
}

fn vlan(packet: &[u8], mut ether: u16, mut offset: usize) -> Option<(u16, usize)> {
    // 802.1Q, 802.1ad and the older number of stacked tags; deeper than three is nothing that we know.
    for _ in 0..3 {
        if !matches!(ether, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        ether = be16(packet, offset + 2)?;
        offset += 4;
    }
    Some((ether, offset))
}

fn ipv4(packet: &[u8], start: usize, is_cut: bool) -> Option<UdpParseOutcome> {
    let head = packet.get(start..start + 20)?;
    let header = usize::from(head[0] & 15) * 4;
    if head[0] >> 4 != 4 || header < 20 {
        return Some(UdpParseOutcome::Bad("an IPv4 header that is none"));
    }
    if head[9] != UDP {
        return Some(UdpParseOutcome::Other);
    }
    let address = |i: usize| IpAddr::V4(Ipv4Addr::new(head[i], head[i + 1], head[i + 2], head[i + 3]));
    let addresses = IpAddressPair { from: address(12), to: address(16) };
    let (fragment, total) = (be16(head, 6)?, usize::from(be16(head, 2)?));
    // More fragments, or an offset.
    if fragment & 0x3fff != 0 {
        let (offset, more) = (usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 != 0);
        let bytes = start + header..start + total.max(header);
        let id = be16(head, 4)?.into();
        let IpAddressPair { from, to } = addresses;
        return Some(part(packet, IpFragment { from, to, id, offset, more, bytes }, is_cut));
    }
    if total < header + 8 {
        return Some(UdpParseOutcome::Bad("an IPv4 packet shorter than its headers"));
    }
    transport(packet, start + header, total - header, addresses, is_cut)
}

fn ipv6(packet: &[u8], start: usize, is_cut: bool) -> Option<UdpParseOutcome> {
    let head = packet.get(start..start + 40)?;
    let address =
        |i: usize| IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&head[i..i + 16]).expect("sixteen bytes")));
    let addresses = IpAddressPair { from: address(8), to: address(24) };
    let mut remaining = usize::from(be16(head, 4)?);
    let (mut next, mut header_offset) = (head[6], start + 40);
    // Hop-by-hop, routing, destination options; a chain longer than this is nothing that we know.
    for _ in 0..8 {
        let length = match next {
            UDP => return transport(packet, header_offset, remaining, addresses, is_cut),
            44 => {
                let head = packet.get(header_offset..header_offset + 8)?;
                if head[0] != UDP {
                    return Some(UdpParseOutcome::Other);
                }
                let fragment = be16(head, 2)?;
                let (offset, more) = (usize::from(fragment & !7), fragment & 1 != 0);
                let id = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
                let bytes = header_offset + 8..header_offset + remaining.max(8);
                let IpAddressPair { from, to } = addresses;
                return Some(part(packet, IpFragment { from, to, id, offset, more, bytes }, is_cut));
            }
            0 | 43 | 60 => (usize::from(*packet.get(header_offset + 1)?) + 1) * 8,
            _ => return Some(UdpParseOutcome::Other),
        };
        next = *packet.get(header_offset)?;
        header_offset += length;
        remaining = match remaining.checked_sub(length) {
            Some(left) => left,
            None => return Some(UdpParseOutcome::Bad("an IPv6 packet shorter than its headers")),
        };
    }
    Some(UdpParseOutcome::Other)
}

/// Checks a fragment: all of it must be there, and its lengths must be valid.
fn part(packet: &[u8], fragment: IpFragment, is_cut: bool) -> UdpParseOutcome {
    let length = fragment.bytes.len();
    if fragment.bytes.end > packet.len() {
        return if is_cut {
            UdpParseOutcome::Cut(None)
        } else {
            UdpParseOutcome::Bad("a fragment longer than its packet")
        };
    }
    // Only the last may end anywhere.
    if length == 0 || fragment.more && !length.is_multiple_of(8) || fragment.offset + length > 65_535 {
        return UdpParseOutcome::Bad("a fragment that can be none of a datagram");
    }
    UdpParseOutcome::Fragment(fragment)
}

/// The addresses of one IP header, without the ports of UDP.
#[derive(Clone, Copy)]
struct IpAddressPair {
    from: IpAddr,
    to: IpAddr,
}

fn transport(
    packet: &[u8],
    offset: usize,
    left: usize,
    addresses: IpAddressPair,
    is_cut: bool,
) -> Option<UdpParseOutcome> {
    let (source, port) = (be16(packet, offset)?, be16(packet, offset + 2)?);
    let receiver = SocketAddr::new(addresses.to, port);
    let Some(length) = be16(packet, offset + 4) else {
        return is_cut.then_some(UdpParseOutcome::Cut(Some(receiver)));
    };
    let length = usize::from(length);
    if length < 8 || length > left {
        return Some(UdpParseOutcome::Bad("a UDP length that does not fit its packet"));
    }
    let payload = offset + 8..offset + length;
    if payload.end > packet.len() {
        return Some(if is_cut {
            UdpParseOutcome::Cut(Some(receiver))
        } else {
            UdpParseOutcome::Bad("a UDP datagram longer than its packet")
        });
    }
    Some(UdpParseOutcome::Datagram(UdpDatagram {
        from: SocketAddr::new(addresses.from, source),
        to: receiver,
        payload,
    }))
}

fn be16(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(offset..offset + 2)?.try_into().expect("two bytes")))
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;
