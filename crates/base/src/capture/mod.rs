//! Captures: packets out of pcap and pcapng, and UDP payloads out of packets, sans I/O.
//!
//! ```text
//!  pcap     │ file header 24 │ record: time, captured, original │ packet │ record │ packet │ …
//!  pcapng   │ section │ interface │ enhanced packet │ … each block with its length before and behind
//!  packet   │ Ethernet, cooked, raw IP │ VLAN … │ IPv4 or IPv6 │ UDP │ payload │
//! ```
//!
//! A [`CaptureWalker`] knows the file's byte order, the unit of its times and its interfaces; it can be cloned at any
//! record and continue from there in another thread. It copies nothing: all it gives are places in the buffer.
//!
//! ```
//! use unitape_base::capture::{NextCaptureRecord, UdpParseOutcome, CaptureWalker, udp, write};
//! let mut file = Vec::new();
//! write::file_header(&mut file);
//! write::datagram(&mut file, 1_700_000_000_000_000_001, "10.0.0.1:9".parse().unwrap(), "239.1.1.1:5000".parse().unwrap(), b"hello");
//! let (mut walker, mut at) = (CaptureWalker::default(), 0);
//! let NextCaptureRecord::Skip { end } = walker.next(&file, at) else { panic!() };
//! at = end;
//! let NextCaptureRecord::Packet(p) = walker.next(&file, at) else { panic!() };
//! assert_eq!(p.ts_ns, Some(1_700_000_000_000_000_001));
//! let UdpParseOutcome::Datagram(d) = udp(p.link, &file[p.bytes.clone()], p.is_cut()) else { panic!() };
//! assert_eq!((d.to.port(), &file[p.bytes][d.payload]), (5000, &b"hello"[..]));
//! ```
//!
//! A [`IpReassembler`] puts the fragments of IP together.
//!
//! It does not check sums that network cards fill in after the capture, or decode TCP.

mod packet;
mod reassembly;
mod walk;
pub mod write;

pub use packet::{IpFragment, UdpDatagram, UdpParseOutcome, udp};
pub use reassembly::{IpReassembler, ReassembledDatagram, ReassemblyCounts};
pub use walk::{BLOCK_BYTES_MAX, CaptureWalker, CapturedPacket, NextCaptureRecord, is_capture};

#[cfg(test)]
mod tests;
