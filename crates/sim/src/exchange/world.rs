//! The traded world: products, each with its instruments and the depth of its books. Everything is invented.

use crate::rng::Rng;

/// A product: what FIX calls a market segment. Messages are numbered by product.
#[derive(Debug, Clone)]
pub struct ExchangeProduct {
    /// `MarketSegmentID`.
    pub id: u32,
    /// Short name.
    pub name: String,
    /// `PartitionID`, from 1: which channels it is published on.
    pub partition: u32,
    /// Levels of a side that are published.
    pub depth: u32,
    /// The exponent of its prices.
    pub exponent: i8,
    /// Price steps, in units of the exponent.
    pub tick: i64,
    /// The product's instruments, as indices into [`ListedProducts::instruments`].
    pub instruments: Vec<usize>,
}

/// The kind of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstrumentKind {
    /// A future.
    Future,
    /// An option, with its strike in units of the product's exponent.
    Option {
        /// The price at which it is exercised.
        strike: i64,
        /// Whether it is a call.
        call: bool,
    },
    /// One instrument bought and one sold, by their indices. Its prices may be below zero.
    Spread([usize; 2]),
}

/// An instrument.
#[derive(Debug, Clone)]
pub struct ExchangeInstrument {
    /// `SecurityID`.
    pub id: u64,
    /// The instrument's product, as an index into [`ListedProducts::products`].
    pub product: usize,
    /// The instrument's kind.
    pub kind: InstrumentKind,
    /// Year, month and day of its end; of a complex instrument nought.
    pub maturity: u32,
    /// The instrument is deleted: the exchange publishes nothing more about it.
    pub is_deleted: bool,
    /// The price that its prices gather around at the start, in ticks.
    pub(super) fair: i64,
}

/// All products and instruments; complex instruments are added during the day.
#[derive(Debug, Clone, Default)]
pub struct ListedProducts {
    /// The products.
    pub products: Vec<ExchangeProduct>,
    /// The instruments of all of them.
    pub instruments: Vec<ExchangeInstrument>,
}

/// The first instrument id: beyond 32 bits, as real ids are.
const FIRST_ID: u64 = 1 << 56;

impl ListedProducts {
    /// Products of futures and of options in turn.
    pub(super) fn new(config: &super::ExchangeConfig, rng: &mut Rng) -> Self {
        let mut world = ListedProducts::default();
        for n in 0..config.products {
            let options = n % 2 == 1;
            let product = ExchangeProduct {
                id: 1001 + 7 * n,
                name: format!("{}{:02}", if options { "OBX" } else { "FBX" }, n + 1),
                partition: 1 + n % config.partitions,
                depth: config.depth.unwrap_or([10, 5, 20, 3][n as usize % 4]),
                exponent: [-2, -3, 0, -4][n as usize % 4],
                tick: [1, 5, 1, 25][n as usize % 4],
                instruments: Vec::new(),
            };
            world.products.push(product);
            let product = n as usize;
            let base_price = rng.between(2_000, 9_000);
            if !options {
                for expiry in 0..config.futures {
                    let fair = base_price + i64::from(expiry) * 3;
                    world.add(product, InstrumentKind::Future, maturity(expiry), fair);
                }
                continue;
            }
            for option in 0..config.options {
                let (strike, call) = (i64::from(option / 2) - i64::from(config.options / 4), option % 2 == 0);
                let worth = if call { -strike } else { strike };
                let fair = 120 + worth.clamp(-60, 600) * 2 + rng.between(0, 9);
                let strike = (base_price + strike * 20) * world.products[product].tick;
                world.add(product, InstrumentKind::Option { strike, call }, maturity(option / 64), fair);
            }
        }
        world
    }

    /// Adds an instrument and returns its index.
    pub(super) fn add(&mut self, product: usize, kind: InstrumentKind, maturity: u32, fair: i64) -> usize {
        let index = self.instruments.len();
        let listed_product = &mut self.products[product];
        let id = FIRST_ID + u64::from(listed_product.id) * 65_536 + listed_product.instruments.len() as u64;
        listed_product.instruments.push(index);
        self.instruments.push(ExchangeInstrument { id, product, kind, maturity, is_deleted: false, fair });
        index
    }

    /// Returns the product of an instrument.
    #[must_use]
    pub fn product_of(&self, instrument: usize) -> &ExchangeProduct {
        &self.products[self.instruments[instrument].product]
    }
}

/// Returns roughly the third Friday of the quarter's last month.
fn maturity(n: u32) -> u32 {
    (2026 + n / 4) * 10_000 + (3 + 3 * (n % 4)) * 100 + 20
}
