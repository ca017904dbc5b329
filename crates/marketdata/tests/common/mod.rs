//! A small venue by the templates of the exchange in a box: packets of its channels, made by hand, and its configuration.
#![allow(dead_code)] // each test uses some of it

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_base::capture::write::{datagram, file_header};
use unitape_fast::encode::MessageDraft;
use unitape_fast::{Encoder, FieldValue, TemplateFile, Templates};

/// Makes a message.
type Drafts<'d> = dyn Fn(&Encoder) -> MessageDraft + 'd;

/// Channels of the venue.
pub const DEPTH: usize = 0;
pub const SNAPSHOTS: usize = 1;
pub const REFERENCE: usize = 2;

/// An entry of a message: instrument, action, type, place, price, quantity.
pub type Entry = (u64, u64, u64, u64, i64, u64);

pub struct Venue {
    encoders: [Encoder; 3],
    headers: [&'static str; 3],
    /// The number of the next packet of each channel.
    packets: [u64; 3],
    /// Addresses of each channel, line A and line B.
    pub addresses: [[SocketAddr; 2]; 3],
    pub capture: Vec<u8>,
    pub now: i64,
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fast/box")
}

impl Venue {
    /// At these ports of the host, from this one on.
    pub fn new(ip: [u8; 4], port: u16) -> Self {
        let load = |name: &str| {
            let content = std::fs::read(vectors().join(name)).unwrap();
            Encoder::new(Arc::new(Templates::load(&[TemplateFile { name, content: &content }]).unwrap()))
                .with_neutral(true)
        };
        let mut capture = Vec::new();
        file_header(&mut capture);
        Self {
            encoders: [load("incremental.xml"), load("snapshot.xml"), load("reference.xml")],
            headers: ["EMDPacketHeader", "EMDPacketHeader", "RDPacketHeader"],
            packets: [1; 3],
            addresses: std::array::from_fn(|c| {
                std::array::from_fn(|l| (ip, port + (2 * c + l) as u16).into())
            }),
            capture,
            now: 1_700_000_000_000_000_000,
        }
    }

    /// Its configuration, in a directory with its templates.
    pub fn config(&self, dir: &Path) -> PathBuf {
        for name in ["incremental.xml", "snapshot.xml", "reference.xml"] {
            std::fs::copy(vectors().join(name), dir.join(name)).unwrap();
        }
        let mut text = include_str!("box.toml").to_owned();
        for (name, lines) in ["DEPTH", "SNAPSHOTS", "REFERENCE"].iter().zip(self.addresses) {
            for (line, address) in ["A", "B"].iter().zip(lines) {
                text = text.replace(&format!("{line}_{name}\""), &format!("{address}\""));
            }
        }
        let path = dir.join("box.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A packet of a channel with messages that `fill` drafts.
    pub fn packet(&mut self, channel: usize, messages: &[&Drafts<'_>]) -> Vec<u8> {
        let number = self.packets[channel];
        self.packets[channel] += 1;
        let now = self.now;
        let encoder = &mut self.encoders[channel];
        encoder.reset();
        let header = encoder.template(self.headers[channel]).unwrap();
        let mut draft = encoder.draft(header);
        set(encoder, &mut draft, "SenderCompID", FieldValue::UInt(7));
        set(encoder, &mut draft, "PartitionID", FieldValue::UInt(1));
        set(encoder, &mut draft, "PacketSeqNum", FieldValue::Bytes(&(number as u32).to_be_bytes()));
        set(encoder, &mut draft, "SendingTime", FieldValue::Bytes(&(now as u64).to_be_bytes()));
        let mut bytes = Vec::new();
        encoder.encode(&draft, &mut bytes).unwrap();
        for message in messages {
            let draft = message(encoder);
            encoder.encode(&draft, &mut bytes).unwrap();
        }
        bytes
    }

    /// A packet with one message of levels and trades of a product.
    pub fn depth(&mut self, product: u64, sequence: u64, entries: &[Entry]) -> Vec<u8> {
        self.packet(DEPTH, &[&|encoder| depth(encoder, product, sequence, entries)])
    }

    /// A packet with the book of an instrument, that has all up to message `last` in it.
    pub fn snapshot(&mut self, product: u64, last: u64, instrument: u64, entries: &[Entry]) -> Vec<u8> {
        self.packet(SNAPSHOTS, &[&|encoder| snapshot(encoder, product, last, instrument, entries)])
    }

    /// A packet that names a product and its instruments.
    pub fn reference(&mut self, product: u64, name: &str, depth: u64, instruments: &[u64]) -> Vec<u8> {
        let of_product = |encoder: &Encoder| {
            let mut draft = encoder.draft(encoder.template("ProductSnapshot").unwrap());
            set(encoder, &mut draft, "MsgSeqNum", FieldValue::UInt(1));
            set(encoder, &mut draft, "MarketSegmentID", FieldValue::UInt(product));
            set(encoder, &mut draft, "MarketSegment", FieldValue::Text(name.as_bytes()));
            draft.element(encoder.sequence(draft.template(), "Feeds").unwrap());
            set(encoder, &mut draft, "Feeds/MarketDepth", FieldValue::UInt(depth));
            draft
        };
        let mut messages: Vec<Box<Drafts<'_>>> = vec![Box::new(of_product)];
        for instrument in instruments {
            messages.push(Box::new(move |encoder| {
                let mut draft = encoder.draft(encoder.template("InstrumentSnapshot").unwrap());
                set(encoder, &mut draft, "SecurityID", FieldValue::UInt(*instrument));
                let tick = FieldValue::Decimal { mantissa: 1, exponent: -2 };
                set(encoder, &mut draft, "MinPriceIncrement", tick);
                draft.element(encoder.sequence(draft.template(), "MarketSegmentGrp").unwrap());
                set(encoder, &mut draft, "MarketSegmentGrp/MarketSegmentID", FieldValue::UInt(product));
                draft
            }));
        }
        let messages: Vec<&Drafts<'_>> = messages.iter().map(|m| &**m).collect();
        self.packet(REFERENCE, &messages)
    }

    /// A packet that says that an instrument is deleted.
    pub fn deleted(&mut self, product: u64, instrument: u64) -> Vec<u8> {
        let of_instrument = |encoder: &Encoder| {
            let mut draft = encoder.draft(encoder.template("InstrumentIncremental").unwrap());
            set(encoder, &mut draft, "SecurityUpdateAction", FieldValue::UInt(1));
            set(encoder, &mut draft, "SecurityID", FieldValue::UInt(instrument));
            draft.element(encoder.sequence(draft.template(), "MarketSegmentGrp").unwrap());
            set(encoder, &mut draft, "MarketSegmentGrp/MarketSegmentID", FieldValue::UInt(product));
            draft
        };
        self.packet(REFERENCE, &[&of_instrument])
    }

    /// A packet with the state of a product, in the venue's code.
    pub fn state(&mut self, product: u64, sequence: u64, code: u64) -> Vec<u8> {
        let of_product = |encoder: &Encoder| {
            let mut draft = encoder.draft(encoder.template("ProductStateChange").unwrap());
            set(encoder, &mut draft, "MsgSeqNum", FieldValue::UInt(sequence));
            set(encoder, &mut draft, "MarketSegmentID", FieldValue::UInt(product));
            set(encoder, &mut draft, "TradingSessionSubID", FieldValue::UInt(code));
            draft
        };
        self.packet(DEPTH, &[&of_product])
    }

    /// Puts a packet into the capture: of line A, of line B, or of both.
    pub fn send(&mut self, channel: usize, packet: &[u8], lines: &[usize]) {
        for line in lines {
            self.now += 1000;
            let from = "10.0.0.1:9".parse().unwrap();
            datagram(&mut self.capture, self.now, from, self.addresses[channel][*line], packet);
        }
    }

    /// Levels on both lines.
    pub fn trade(&mut self, product: u64, sequence: u64, entries: &[Entry]) {
        let packet = self.depth(product, sequence, entries);
        self.send(DEPTH, &packet, &[0, 1]);
    }
}

pub fn depth(encoder: &Encoder, product: u64, sequence: u64, entries: &[Entry]) -> MessageDraft {
    let mut draft = encoder.draft(encoder.template("DepthIncremental").unwrap());
    set(encoder, &mut draft, "MsgSeqNum", FieldValue::UInt(sequence));
    set(encoder, &mut draft, "SenderCompID", FieldValue::UInt(7));
    set(encoder, &mut draft, "MarketSegmentID", FieldValue::UInt(product));
    let sequence = encoder.sequence(draft.template(), "MDIncGrp").unwrap();
    draft.sequence(sequence);
    for (instrument, action, sort, place, px, qty) in entries {
        draft.element(sequence);
        set(encoder, &mut draft, "MDIncGrp/SecurityID", FieldValue::UInt(*instrument));
        set(encoder, &mut draft, "MDIncGrp/MDUpdateAction", FieldValue::UInt(*action));
        set(encoder, &mut draft, "MDIncGrp/MDEntryType", FieldValue::UInt(*sort));
        level(encoder, &mut draft, "MDIncGrp", (*place, *px, *qty));
    }
    draft
}

pub fn snapshot(
    encoder: &Encoder,
    product: u64,
    last: u64,
    instrument: u64,
    entries: &[Entry],
) -> MessageDraft {
    let mut draft = encoder.draft(encoder.template("DepthSnapshot").unwrap());
    set(encoder, &mut draft, "SenderCompID", FieldValue::UInt(7));
    set(encoder, &mut draft, "MarketSegmentID", FieldValue::UInt(product));
    set(encoder, &mut draft, "LastMsgSeqNumProcessed", FieldValue::UInt(last));
    set(encoder, &mut draft, "SecurityID", FieldValue::UInt(instrument));
    let sequence = encoder.sequence(draft.template(), "MDSshGrp").unwrap();
    draft.sequence(sequence);
    if entries.is_empty() {
        draft.element(sequence);
        set(encoder, &mut draft, "MDSshGrp/MDEntryType", FieldValue::UInt(10));
    }
    for (_, _, sort, place, px, qty) in entries {
        draft.element(sequence);
        set(encoder, &mut draft, "MDSshGrp/MDEntryType", FieldValue::UInt(*sort));
        level(encoder, &mut draft, "MDSshGrp", (*place, *px, *qty));
    }
    draft
}

fn level(encoder: &Encoder, draft: &mut MessageDraft, group: &str, (place, px, qty): (u64, i64, u64)) {
    if place > 0 {
        set(encoder, draft, &format!("{group}/MDPriceLevel"), FieldValue::UInt(place));
    }
    set(encoder, draft, &format!("{group}/MDEntryPx"), FieldValue::Decimal { mantissa: px, exponent: -2 });
    set(encoder, draft, &format!("{group}/MDEntrySize"), FieldValue::UInt(qty));
}

fn set(encoder: &Encoder, draft: &mut MessageDraft, path: &str, value: FieldValue<'_>) {
    if let Some(field) = encoder.field(draft.template(), path) {
        draft.set(field, value);
    }
}
