//! A seeded stream of FIX 4.4 orders for benches, and the digest that fast and slow path must
//! agree on.

use crate::fix::{FieldToken, FixFramer, MessageTokenizer, NextFixFrame};

/// Makes `count` valid NewOrderSingle (35=D) messages of FIX 4.4, back to back. Each has about 270 bytes and three
/// parties. Equal seeds give equal bytes.
#[must_use]
pub fn sample_orders(count: usize, seed: u64) -> Vec<u8> {
    let mut rng = seed;
    let mut out = Vec::with_capacity(count * 280);
    let mut body = String::with_capacity(300);
    let mut millis = 9 * 3_600_000;
    for n in 0..count {
        let mut next = |bound: u64| {
            // SplitMix64.
            rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = rng;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) % bound
        };
        millis = (millis + next(20)) % 86_400_000;
        let (ms, s) = (millis % 1000, millis / 1000);
        let time = format!("20260302-{:02}:{:02}:{:02}.{ms:03}", s / 3600, s / 60 % 60, s % 60);
        let (symbol, isin, ccy, price) = INSTRUMENTS[next(INSTRUMENTS.len() as u64) as usize];
        let cents = price + next(400) - 200;
        let (side, qty) = (1 + next(2), 100 * (1 + next(99)));
        let (firm, trader, account) = (next(40), next(400), next(90_000) + 10_000);
        let (tif, text) = (next(2) * 3, if next(8) == 0 { "58=day order\x01" } else { "" });
        body.clear();
        // Writing to a String cannot fail.
        let _ = std::fmt::Write::write_fmt(
            &mut body,
            format_args!(
                "35=D\x0134={}\x0149=BRK{firm:02}\x0152={time}\x0156=VENUE\x01\
                 1=A{account}\x0111=O{n:07}\x0121=1\x0138={qty}\x0140=2\x0144={}.{:02}\x01\
                 54={side}\x0155={symbol}\x0148={isin}\x0122=4\x0115={ccy}\x0159={tif}\x01\
                 60={time}\x01207=XLON\x01453=3\x01\
                 448=F{firm:02}\x01447=D\x01452=1\x01\
                 448=T{trader:03}\x01447=D\x01452=12\x01\
                 448=C{:04}\x01447=D\x01452=3\x01{text}",
                n + 1,
                cents / 100,
                cents % 100,
                next(5000),
            ),
        );
        let start = out.len();
        out.extend_from_slice(format!("8=FIX.4.4\x019={}\x01", body.len()).as_bytes());
        out.extend_from_slice(body.as_bytes());
        let sum: u32 = out[start..].iter().map(|&byte| u32::from(byte)).sum();
        out.extend_from_slice(format!("10={:03}\x01", sum % 256).as_bytes());
    }
    out
}

/// The results of a pass over a buffer. Two passes that agree give equal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamDigest {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and garbage.
    pub faults: u64,
    /// Fields of good messages.
    pub fields: u64,
    /// A mix of every tag, value position and fault, in order.
    pub mix: u64,
}

impl StreamDigest {
    #[inline]
    fn add(&mut self, value: u64) {
        self.mix = (self.mix.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    #[inline]
    fn message(&mut self, start: usize, tokens: impl ExactSizeIterator<Item = FieldToken>) {
        self.messages += 1;
        self.fields += tokens.len() as u64;
        self.add(start as u64);
        for token in tokens {
            self.add(u64::from(token.tag) << 40 ^ u64::from(token.start) << 20 ^ u64::from(token.end));
        }
    }

    fn fault(&mut self, start: usize, end: usize) {
        self.faults += 1;
        self.add(start as u64);
        self.add(!(end as u64));
    }
}

/// Frames, sums and reads the fields of all of `buf`: the loop that the bench times.
#[must_use]
pub fn digest(framer: &FixFramer, tokens: &mut MessageTokenizer, buf: &[u8]) -> StreamDigest {
    let mut digest = StreamDigest::default();
    let mut offset = 0;
    loop {
        match tokens.frame(framer, buf, offset, true) {
            NextFixFrame::Message(message) => {
                digest.message(message.span.start, tokens.as_slice().iter());
                offset = message.span.end;
            }
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => {
                digest.fault(span.start, span.end);
                offset = span.end;
            }
            // At the end of the input nothing is incomplete.
            NextFixFrame::Incomplete { .. } | NextFixFrame::End => return digest,
        }
    }
}

/// Computes the digest by the slow twin.
#[must_use]
pub fn digest_naive(framer: &FixFramer, buf: &[u8]) -> StreamDigest {
    let mut digest = StreamDigest::default();
    let mut offset = 0;
    loop {
        let (span, fields) = match super::naive::frame(framer, buf, offset) {
            NextFixFrame::Message(message) => {
                (message.span, super::naive::tokens(framer, message.span.slice(buf)).ok())
            }
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => (span, None),
            NextFixFrame::Incomplete { .. } | NextFixFrame::End => return digest,
        };
        match fields {
            Some(fields) => digest.message(span.start, fields.into_iter()),
            None => digest.fault(span.start, span.end),
        }
        offset = span.end;
    }
}

/// Symbol, ISIN, currency, price in hundredths.
const INSTRUMENTS: [(&str, &str, &str, u64); 8] = [
    ("VOD", "GB00BH4HKS39", "GBX", 7_150),
    ("BARC", "GB0031348658", "GBX", 28_240),
    ("HSBA", "GB0005405286", "GBX", 84_410),
    ("BP", "GB0007980591", "GBX", 43_615),
    ("GSK", "GB00BN7SWP63", "GBX", 150_350),
    ("RIO", "GB0007188757", "GBX", 512_800),
    ("ULVR", "GB00B10RZP78", "GBX", 453_050),
    ("AZN", "GB0009895292", "GBX", 1_189_400),
];
