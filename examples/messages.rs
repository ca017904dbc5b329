//! The messages between the three services. The tape carries bytes; what they mean is agreed here.

use std::fmt;

use unitape::model::Position;

/// The topic of all messages of the example.
pub const EURUSD: u32 = 1;

/// A price, 24 bytes. Numbers are in 1e-9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// From 0.
    pub number: u64,
    pub bid: i64,
    pub ask: i64,
}

impl Price {
    pub const BYTES: usize = 24;

    /// The price of this number: anybody can compute it, so that the example can be checked.
    pub fn of(number: u64) -> Self {
        let bid = 1_085_000_000 + (number * 7919 % 1000) as i64 * 10_000;
        Self { number, bid, ask: bid + 20_000 }
    }

    pub fn write(self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bid.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.ask.to_le_bytes());
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Self { number: word(0)?, bid: word(8)? as i64, ask: word(16)? as i64 })
    }
}

/// An order, as text: there are fewer of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// From 0.
    pub number: u64,
    pub limit: i64,
    /// Prices before this position were decided upon when it was made.
    pub seen: Position,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, rest) = (self.limit / 1_000_000_000, self.limit % 1_000_000_000);
        write!(f, "{} buy EURUSD {units}.{rest:09} @{}", self.number, self.seen)
    }
}

impl Order {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        let number = words.next()?.parse().ok()?;
        let (units, rest) = words.nth(2)?.split_once('.')?;
        let limit = units.parse::<i64>().ok()? * 1_000_000_000 + rest.parse::<i64>().ok()?;
        let seen = Position(words.next()?.strip_prefix('@')?.parse().ok()?);
        Some(Self { number, limit, seen })
    }
}

/// The directory and the count that each service is started with.
pub fn arguments() -> Result<(std::path::PathBuf, u64), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next().map(|count| count.parse()), arguments.next()) {
        (Some(dir), Some(Ok(count)), None) => Ok((dir.into(), count)),
        _ => Err("give a directory and a count".into()),
    }
}
