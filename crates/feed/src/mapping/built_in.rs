//! The shipped mappings.

use super::Mapping;
use std::sync::OnceLock;

/// A shipped mapping.
#[derive(Debug)]
pub(crate) struct ShippedMapping {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Read when it is first used: reading all mappings takes longer than consolidating a small file.
    mapping: OnceLock<Mapping>,
}

impl ShippedMapping {
    /// Looks up a shipped mapping by name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|shipped| shipped.name == name)
    }

    /// Lists all shipped mappings.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.iter()
    }

    /// Returns the mapping; the first call parses the text with `read`.
    pub fn mapping(&self, read: impl FnOnce(&str) -> Mapping) -> &Mapping {
        self.mapping.get_or_init(|| read(self.text))
    }
}

macro_rules! shipped {
    ($($name:literal,)*) => {
        [$(ShippedMapping {
            name: $name,
            text: include_str!(concat!("../../../../mappings/", $name, ".toml")),
            mapping: OnceLock::new(),
        }),*]
    };
}

/// If two mappings suit a file equally well, detection picks the later one.
static ALL: [ShippedMapping; 38] = shipped![
    "jse-fix50-indices",
    "fix44-orders",
    "swift-mt",
    "nyse-taq-bbo-98",
    "sim-day",
    "nasdaq-itch50",
    "nasdaq-itch50-stateless",
    "iex",
    "iso20022",
    "nyse-taq-trades",
    "nyse-taq-quotes",
    "nyse-taq-nbbo",
    "nyse-taq-master",
    "dukascopy-ticks",
    "histdata-ticks",
    "histdata-bars",
    "truefx-ticks",
    "mt5-ticks",
    "mt5-bars",
    "binance-trades",
    "binance-futures-trades",
    "binance-agg-trades",
    "binance-klines",
    "lobster",
    "ninjs",
    "slack-messages",
    "symphony-messages",
    "binance-depth",
    "okx-books",
    "coinbase-level2",
    "kraken-book",
    "mail",
    "rss-news",
    "atom-news",
    "newsml-g2",
    "t7-emdi",
    "cme-mdp2",
    "moex-trades",
];
