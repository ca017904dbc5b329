//! A writer of messages and packets, and seeded sessions of them, for tests and benches.

use crate::iex::{IexFieldType, IexMessageSpec, IexPacketHeader, IexProtocol, specs};
use unitape_base::capture::write;

/// A value to write.
#[derive(Debug, Clone, Copy)]
pub enum IexSampleValue<'p> {
    /// A number.
    Number(u64),
    /// A price in 1/10,000.
    Price(i64),
    /// Letters; the sample adds trailing blanks.
    Text(&'p [u8]),
}

/// Makes a message without its length; `values` must be the values of its fields in order.
///
/// # Panics
/// Panics if the values do not fit the type.
#[must_use]
pub fn message(letter: u8, timestamp_ns: i64, values: &[IexSampleValue<'_>]) -> Vec<u8> {
    let spec = specs().iter().find(|spec| spec.letter == letter).expect("a type of IEX");
    assert_eq!(values.len(), spec.fields.len(), "values of {}", spec.name);
    let mut out = vec![0; spec.bytes];
    out[0] = letter;
    out[2..10].copy_from_slice(&timestamp_ns.to_le_bytes());
    for (field, value) in spec.fields.iter().zip(values) {
        let bytes = &mut out[field.offset..field.offset + field.field_type.bytes()];
        match *value {
            IexSampleValue::Number(number) => bytes.copy_from_slice(&number.to_le_bytes()[..bytes.len()]),
            IexSampleValue::Price(units) => bytes.copy_from_slice(&units.to_le_bytes()),
            IexSampleValue::Text(text) => {
                assert!(text.len() <= bytes.len(), "{} of {}", field.name, spec.name);
                bytes.fill(b' ');
                bytes[..text.len()].copy_from_slice(text);
            }
        }
    }
    out
}

/// Puts messages into packets of one session of a channel.
#[derive(Debug, Clone, Copy)]
pub struct IexPacketWriter {
    /// The head of the next packet; its lengths are set when it is written.
    pub next: IexPacketHeader,
}

impl IexPacketWriter {
    /// Makes the writer of a session of channel 1, before its first packet.
    #[must_use]
    pub fn new(protocol: IexProtocol, session: u32, send_time_ns: i64) -> Self {
        let next = IexPacketHeader {
            protocol,
            channel: 1,
            session,
            payload_bytes: 0,
            messages: 0,
            stream_offset: 0,
            sequence: 1,
            send_time_ns,
        };
        Self { next }
    }

    /// Makes a packet of these messages; without messages, a heartbeat.
    ///
    /// # Panics
    /// Panics if the messages do not fit into a packet.
    pub fn packet(&mut self, messages: &[Vec<u8>]) -> Vec<u8> {
        let payload_bytes: usize = messages.iter().map(|message| 2 + message.len()).sum();
        self.next.payload_bytes = u16::try_from(payload_bytes).expect("no more than a packet holds");
        self.next.messages = messages.len() as u16;
        let mut out = Vec::new();
        self.next.write(&mut out);
        for message in messages {
            out.extend_from_slice(&(message.len() as u16).to_le_bytes());
            out.extend_from_slice(message);
        }
        self.next.stream_offset += payload_bytes as u64;
        self.next.sequence += messages.len() as u64;
        self.next.send_time_ns += 1_000;
        out
    }
}

/// The size of a sample.
#[derive(Debug, Clone, Copy)]
pub struct IexSampleConfig {
    /// The protocol.
    pub protocol: IexProtocol,
    /// Messages, about.
    pub messages: usize,
    /// Securities, 26 at most.
    pub symbols: usize,
    /// Equal seeds give equal bytes.
    pub seed: u64,
}

/// Makes the packets of a session: its beginning, the security's directory and trading status, quotes, levels or
/// orders with their trades, heartbeats, and its end. Every order that a message names is live.
#[must_use]
pub fn sample_packets(config: IexSampleConfig) -> Vec<Vec<u8>> {
    let mut session = SampleSession {
        config,
        rng: config.seed,
        now_ns: SESSION_START_NS,
        orders: Vec::new(),
        next_order: 1,
        next_trade: 1,
    };
    let mut writer = IexPacketWriter::new(config.protocol, 7, SESSION_START_NS);
    let mut packets = vec![writer.packet(&[])];
    packets.push(writer.packet(&session.begin()));
    let mut written = 0;
    while written < config.messages {
        let mut messages = Vec::new();
        for _ in 0..1 + session.random_below(6) {
            session.trading(&mut messages);
        }
        written += messages.len();
        packets.push(writer.packet(&messages));
        if session.random_below(20) == 0 {
            packets.push(writer.packet(&[]));
        }
    }
    packets.push(writer.packet(&[session.event(b"E"), session.event(b"C")]));
    packets
}

/// Packets as datagrams of a capture, as the journal of received datagrams is written.
#[must_use]
pub fn capture(packets: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::file_header(&mut out);
    let from = "10.0.0.1:10378".parse().expect("an address");
    let to = "233.252.0.8:10378".parse().expect("an address");
    for (n, packet) in packets.iter().enumerate() {
        write::datagram(&mut out, SESSION_START_NS + n as i64 * 1_000_000, from, to, packet.as_ref());
    }
    out
}

/// Makes a packet with one valid message of each type of `protocol`. All fields of a message differ.
#[must_use]
pub fn one_of_each(protocol: IexProtocol) -> Vec<u8> {
    let types = specs().iter().filter(|spec| spec.protocols.contains(&protocol));
    let messages: Vec<Vec<u8>> = types.enumerate().map(|(n, spec)| each(n, spec)).collect();
    IexPacketWriter::new(protocol, 7, SESSION_START_NS).packet(&messages)
}

/// Half past nine in New York on 2 March 2026.
const SESSION_START_NS: i64 = 1_772_461_800_000_000_000;

fn each(n: usize, spec: &IexMessageSpec) -> Vec<u8> {
    let texts: Vec<[u8; 8]> = (0..spec.fields.len()).map(|i| [b'A' + i as u8; 8]).collect();
    let values: Vec<IexSampleValue<'_>> = spec
        .fields
        .iter()
        .zip(&texts)
        .enumerate()
        .map(|(i, (field, text))| match field.field_type {
            IexFieldType::Side => IexSampleValue::Text(b"5"),
            IexFieldType::Symbol => IexSampleValue::Text(b"ZIEXT"),
            IexFieldType::Letter | IexFieldType::Text(_) => {
                IexSampleValue::Text(&text[..field.field_type.bytes()])
            }
            IexFieldType::Number(_) => IexSampleValue::Number(0x0102_0304 + 7 * i as u64),
            IexFieldType::Price => IexSampleValue::Price(990_500 + 7 * i as i64),
        })
        .collect();
    message(spec.letter, SESSION_START_NS + n as i64, &values)
}

/// An order that lives.
#[derive(Clone, Copy)]
struct SampleOrder {
    id: u64,
    symbol: usize,
    left: u64,
    price: i64,
}

struct SampleSession {
    config: IexSampleConfig,
    rng: u64,
    now_ns: i64,
    orders: Vec<SampleOrder>,
    next_order: u64,
    next_trade: u64,
}

impl SampleSession {
    fn begin(&mut self) -> Vec<Vec<u8>> {
        let mut out = vec![self.event(b"O"), self.event(b"S")];
        for n in 0..self.config.symbols {
            let symbol = symbol(n);
            let (text, number) = (IexSampleValue::Text(&symbol), IexSampleValue::Number);
            let directory = [number(0), text, number(100), IexSampleValue::Price(990_500), number(1)];
            out.push(message(b'D', self.tick(), &directory));
            out.push(message(
                b'H',
                self.tick(),
                &[IexSampleValue::Text(b"T"), text, IexSampleValue::Text(b"")],
            ));
            out.push(message(b'O', self.tick(), &[IexSampleValue::Text(b"N"), text]));
            out.push(message(b'P', self.tick(), &[number(0), text, IexSampleValue::Text(b"N")]));
        }
        out.push(self.event(b"R"));
        out
    }

    fn event(&mut self, letter: &[u8]) -> Vec<u8> {
        message(b'S', self.tick(), &[IexSampleValue::Text(letter)])
    }

    /// Appends what happens next: a quote, a few levels, or an order's fate.
    fn trading(&mut self, out: &mut Vec<Vec<u8>>) {
        let n = self.random_below(self.config.symbols as u64) as usize;
        let name = symbol(n);
        let (text, number) = (IexSampleValue::Text(&name), IexSampleValue::Number);
        let price = 990_000 + 100 * self.random_below(40) as i64;
        let size = 100 * self.random_below(10);
        if self.random_below(12) == 0 {
            return out.push(self.trade(&name, size + 1, price));
        }
        match self.config.protocol {
            IexProtocol::Tops => {
                let bid = [number(size), IexSampleValue::Price(if size == 0 { 0 } else { price })];
                let ask = [IexSampleValue::Price(price + 100), number(100 + size)];
                out.push(message(b'Q', self.tick(), &[number(0), text, bid[0], bid[1], ask[0], ask[1]]));
            }
            IexProtocol::Deep => {
                let levels = 1 + self.random_below(3);
                let now_ns = self.tick();
                for level in 0..levels {
                    let letter = if self.random_below(2) == 0 { b'8' } else { b'5' };
                    let is_last = number(u64::from(level + 1 == levels));
                    let price = IexSampleValue::Price(price + 100 * level as i64);
                    out.push(message(letter, now_ns, &[is_last, text, number(size), price]));
                }
            }
            IexProtocol::DeepPlus => self.order(out, n, price),
        }
    }

    fn order(&mut self, out: &mut Vec<Vec<u8>>, n: usize, price: i64) {
        let number = IexSampleValue::Number;
        let size = 100 * (1 + self.random_below(9));
        if self.orders.is_empty() || self.random_below(100) < 45 && self.orders.len() < 500 {
            let side = IexSampleValue::Text(if self.random_below(2) == 0 { b"8" } else { b"5" });
            let order = SampleOrder { id: self.next_order, symbol: n, left: size, price };
            self.next_order += 1;
            self.orders.push(order);
            let name = symbol(n);
            let values = [
                side,
                IexSampleValue::Text(&name),
                number(order.id),
                number(size),
                IexSampleValue::Price(price),
            ];
            return out.push(message(b'a', self.tick(), &values));
        }
        let index = self.random_below(self.orders.len() as u64) as usize;
        let order = self.orders[index];
        let name = symbol(order.symbol);
        let (text, id) = (IexSampleValue::Text(&name), number(order.id));
        match self.random_below(100) {
            0..20 => {
                let flags = number(self.random_below(2));
                (self.orders[index].left, self.orders[index].price) = (size, price);
                let values = [flags, text, id, number(size), IexSampleValue::Price(price)];
                out.push(message(b'M', self.tick(), &values));
            }
            20..40 => {
                let fill_size =
                    if self.random_below(2) == 0 { order.left } else { 1 + self.random_below(order.left) };
                self.orders[index].left -= fill_size;
                if self.orders[index].left == 0 {
                    self.orders.swap_remove(index);
                }
                let trade = number(self.next_trade);
                self.next_trade += 1;
                let price = IexSampleValue::Price(order.price);
                out.push(message(b'L', self.tick(), &[number(0), text, id, number(fill_size), price, trade]));
            }
            40..41 => {
                self.orders.retain(|open_order| open_order.symbol != order.symbol);
                out.push(message(b'C', self.tick(), &[number(0), text]));
            }
            _ => {
                self.orders.swap_remove(index);
                out.push(message(b'R', self.tick(), &[number(0), text, id]));
            }
        }
    }

    fn trade(&mut self, name: &[u8], size: u64, price: i64) -> Vec<u8> {
        let number = IexSampleValue::Number;
        let trade = self.next_trade;
        self.next_trade += 1;
        // Now and then the trade before it is void.
        let letter = if self.random_below(50) == 0 { b'B' } else { b'T' };
        let values = [
            number(0),
            IexSampleValue::Text(name),
            number(size),
            IexSampleValue::Price(price),
            number(trade),
        ];
        message(letter, self.tick(), &values)
    }

    fn tick(&mut self) -> i64 {
        self.now_ns += 1 + self.random_below(2_000) as i64;
        self.now_ns
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.rng;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }
}

fn symbol(n: usize) -> [u8; 4] {
    [b'Z', b'I', b'X', b'A' + (n % 26) as u8]
}
