//! A seeded stream of messages for tests and benches, in the proportions of a trading day.

use crate::itch::{ItchFieldType, ItchMessageHeader, ItchMessageSpec, ItchSampleValue, specs, write};

/// The size of a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleConfig {
    /// Messages, about.
    pub messages: usize,
    /// Securities.
    pub stocks: u16,
    /// Orders that live at the same time, at most.
    pub live: usize,
    /// Equal seeds give equal bytes.
    pub seed: u64,
}

impl Default for SampleConfig {
    fn default() -> Self {
        Self { messages: 100_000, stocks: 8_000, live: 50_000, seed: 1 }
    }
}

/// Makes a valid stream with length prefixes: the start of the day, the directory, then orders. The orders are added,
/// executed, cancelled, replaced and deleted in about the proportions of a day. Of 100 messages, 43 add, 41 delete, 8
/// replace, 4 execute and 2 cancel an order; 2 are others. Every order that a message names is live.
#[must_use]
pub fn sample_messages(config: SampleConfig) -> Vec<u8> {
    let mut day = ItchSampleGenerator {
        rng: config.seed,
        out: Vec::with_capacity(config.messages * 34),
        nanos: 14_400_000_000_000,
    };
    let symbols: Vec<Vec<u8>> = (1..=config.stocks).map(symbol).collect();
    let mut live: Vec<(u64, u16, u32)> = Vec::with_capacity(config.live);
    let (mut next_order, mut next_match) = (10_000u64, 1u64);
    day.write_message(b'S', 0, &[ItchSampleValue::Text(b"O")]);
    for (n, symbol) in symbols.iter().enumerate() {
        directory(&mut day, n as u16 + 1, symbol);
    }
    day.write_message(b'S', 0, &[ItchSampleValue::Text(b"S")]);
    day.write_message(b'S', 0, &[ItchSampleValue::Text(b"Q")]);
    for n in 0..config.messages {
        // Some securities are busy, most are not.
        let locate = 1 + (day.random_below(u64::from(config.stocks)) * day.random_below(1000) / 1000) as u16;
        let stock = ItchSampleValue::Text(&symbols[usize::from(locate) - 1]);
        let side = ItchSampleValue::Text(if day.random_below(2) == 0 { b"B" } else { b"S" });
        let shares = shares(&mut day);
        let price = ItchSampleValue::Number(100 * (1_000 + u64::from(locate) + day.random_below(200)));
        let choice =
            if live.len() >= config.live { 45 + day.random_below(55) } else { day.random_below(100) };
        let pick = if live.is_empty() { 0 } else { day.random_below(live.len() as u64) as usize };
        match choice {
            45.. if live.is_empty() => {}
            0..45 => {
                next_order += 1 + day.random_below(8);
                let order = ItchSampleValue::Number(next_order);
                let shares_part = ItchSampleValue::Number(u64::from(shares));
                if choice < 2 {
                    let mpid = ItchSampleValue::Text(
                        [&b"NITE"[..], b"GSCO", b"JPMS", b"VIRT"][day.random_below(4) as usize],
                    );
                    day.write_message(b'F', locate, &[order, side, shares_part, stock, price, mpid]);
                } else {
                    day.write_message(b'A', locate, &[order, side, shares_part, stock, price]);
                }
                live.push((next_order, locate, shares));
            }
            45..85 => {
                let (order, locate, _) = live.swap_remove(pick);
                day.write_message(b'D', locate, &[ItchSampleValue::Number(order)]);
            }
            85..93 => {
                next_order += 1 + day.random_below(8);
                let (order, locate, _) = live[pick];
                let parts = [
                    order,
                    next_order,
                    u64::from(shares),
                    100 * (1_000 + u64::from(locate) + day.random_below(200)),
                ];
                day.write_message(b'U', locate, &parts.map(ItchSampleValue::Number));
                live[pick] = (next_order, locate, shares);
            }
            93..97 => {
                let (order, locate, left) = live[pick];
                let part = if left > 1 && day.random_below(2) == 0 { left / 2 } else { left };
                next_match += 1;
                let parts = [order, u64::from(part), next_match].map(ItchSampleValue::Number);
                if choice == 96 && n % 4 == 0 {
                    let printable = ItchSampleValue::Text(if n % 8 == 0 { b"Y" } else { b"N" });
                    day.write_message(
                        b'C',
                        locate,
                        &[parts[0], parts[1], parts[2], printable, ItchSampleValue::Number(1_234_500)],
                    );
                } else {
                    day.write_message(b'E', locate, &parts);
                }
                reduce_order(&mut live, pick, part);
            }
            97..99 => {
                let (order, locate, left) = live[pick];
                let part = 1.max(left / 3);
                day.write_message(
                    b'X',
                    locate,
                    &[ItchSampleValue::Number(order), ItchSampleValue::Number(u64::from(part))],
                );
                reduce_order(&mut live, pick, part);
            }
            _ => {
                next_match += 1;
                let (zero, shares, number) = (
                    ItchSampleValue::Number(0),
                    ItchSampleValue::Number(u64::from(shares)),
                    ItchSampleValue::Number(next_match),
                );
                day.write_message(
                    b'P',
                    locate,
                    &[zero, ItchSampleValue::Text(b"B"), shares, stock, price, number],
                );
            }
        }
    }
    day.write_message(b'S', 0, &[ItchSampleValue::Text(b"C")]);
    day.out
}

/// Makes one valid message of each of the 23 types with values in every field. All fields of a message differ.
#[must_use]
pub fn one_of_each() -> Vec<u8> {
    let mut out = Vec::new();
    for (n, spec) in specs().iter().enumerate() {
        each(&mut out, n as u16, spec);
    }
    out
}

fn each(out: &mut Vec<u8>, n: u16, spec: &ItchMessageSpec) {
    let texts: Vec<[u8; 8]> = (0..spec.fields.len()).map(|i| [b'A' + (i % 26) as u8; 8]).collect();
    let parts: Vec<ItchSampleValue<'_>> = spec
        .fields
        .iter()
        .zip(&texts)
        .enumerate()
        .map(|(i, (field, text))| match field.sort {
            ItchFieldType::Side => ItchSampleValue::Text(b"S"),
            ItchFieldType::Stock => ItchSampleValue::Text(b"ZVZZT"),
            ItchFieldType::Letter | ItchFieldType::Text(_) => {
                ItchSampleValue::Text(&text[..field.sort.bytes()])
            }
            ItchFieldType::Number(_) | ItchFieldType::Price4 | ItchFieldType::Price8 => {
                ItchSampleValue::Number(0x0102_0304 + 7 * i as u64)
            }
        })
        .collect();
    let header = ItchMessageHeader {
        stock_locate: n + 1,
        tracking_number: 2 * n,
        timestamp_ns: 34_200_000_000_000 + u64::from(n),
    };
    write(out, spec.letter, header, &parts);
}

fn directory(day: &mut ItchSampleGenerator, locate: u16, symbol: &[u8]) {
    let t = ItchSampleValue::Text;
    let values = [
        t(symbol),
        t(b"Q"),
        t(b"N"),
        ItchSampleValue::Number(100),
        t(b"N"),
        t(b"C"),
        t(b"Z"),
        t(b"P"),
        t(b"N"),
        t(b"N"),
        t(b"1"),
        t(b"N"),
        ItchSampleValue::Number(0),
        t(b"N"),
    ];
    day.write_message(b'R', locate, &values);
}

fn reduce_order(live: &mut Vec<(u64, u16, u32)>, pick: usize, part: u32) {
    live[pick].2 -= part;
    if live[pick].2 == 0 {
        live.swap_remove(pick);
    }
}

/// Returns a random quantity, mostly in round lots.
fn shares(day: &mut ItchSampleGenerator) -> u32 {
    match day.random_below(10) {
        0..6 => 100,
        6..8 => 100 * (1 + day.random_below(20) as u32),
        _ => 1 + day.random_below(999) as u32,
    }
}

fn symbol(n: u16) -> Vec<u8> {
    let n = u32::from(n);
    [n / 17_576, n / 676, n / 26, n].map(|l| b'A' + (l % 26) as u8).to_vec()
}

struct ItchSampleGenerator {
    rng: u64,
    out: Vec<u8>,
    nanos: u64,
}

impl ItchSampleGenerator {
    fn random_below(&mut self, n: u64) -> u64 {
        // SplitMix64.
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.rng;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }

    fn write_message(&mut self, letter: u8, locate: u16, values: &[ItchSampleValue<'_>]) {
        self.nanos += 1 + self.random_below(2_000);
        let header = ItchMessageHeader { stock_locate: locate, tracking_number: 0, timestamp_ns: self.nanos };
        write(&mut self.out, letter, header, values);
    }
}
