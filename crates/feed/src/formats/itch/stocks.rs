//! Securities by their locate code: the symbol that it names, and the id of the symbol.
//!
//! With orders the code is part of the state: it names the first symbol that comes with it. Another symbol is
//! refused, for one of the two messages is then wrong. Without orders, the table only saves looking names up.

use super::config::CheckedItchConfig;
use super::prefetch::prefetch;
use unitape_model::{Dictionary, InstrumentId, NameKind};

/// The security that a code names.
#[derive(Clone, Copy, Debug, Default)]
struct StockEntry {
    /// The eight bytes of the symbol; 0 without one.
    symbol: u64,
    /// The id on the tape; [`InstrumentId::NONE`] until it has one.
    id: InstrumentId,
}

/// Number of possible codes.
const CODES: usize = 1 << 16;

/// All codes.
#[derive(Debug)]
pub struct StockLocateTable {
    by_locate: Box<[StockEntry; CODES]>,
    /// The number of names in the dictionary at the last check; ids belong to one tape.
    name_count: u32,
}

impl Default for StockLocateTable {
    fn default() -> Self {
        let by_locate = vec![StockEntry::default(); CODES].into_boxed_slice();
        Self { by_locate: by_locate.try_into().expect("as many"), name_count: 0 }
    }
}

impl StockLocateTable {
    /// Forgets the ids if `dictionary` is not a later state of the last dictionary.
    pub fn match_dictionary(&mut self, dictionary: &Dictionary) {
        let instrument_count = dictionary.len(NameKind::Instrument);
        if instrument_count < self.name_count {
            self.forget_ids();
        }
        self.name_count = instrument_count;
    }

    /// Forgets all ids, so that each must be looked up again.
    pub fn forget_ids(&mut self) {
        self.by_locate.iter_mut().for_each(|s| s.id = InstrumentId::NONE);
    }

    /// Removes the symbols of all codes.
    pub fn clear(&mut self) {
        self.by_locate.fill(StockEntry::default());
    }

    /// Returns the cached id of this symbol under this code; [`InstrumentId::NONE`] if it must be looked up.
    #[inline]
    pub fn id(&self, locate: u16, symbol: &[u8; 8]) -> InstrumentId {
        let stock = &self.by_locate[usize::from(locate)];
        if stock.symbol == u64::from_le_bytes(*symbol) { stock.id } else { InstrumentId::NONE }
    }

    /// Prefetches the security of this code.
    #[inline]
    pub fn prefetch(&self, locate: u16) {
        prefetch(&self.by_locate[usize::from(locate)]);
    }

    /// Returns the cached id of the security with this code; [`InstrumentId::NONE`] if it must be looked up.
    #[inline]
    pub fn id_of(&self, locate: u16) -> InstrumentId {
        self.by_locate[usize::from(locate)].id
    }

    /// Returns the symbol of this code.
    pub fn symbol(&self, locate: u16) -> Option<[u8; 8]> {
        let symbol = self.by_locate[usize::from(locate)].symbol;
        (symbol != 0).then(|| symbol.to_le_bytes())
    }

    /// Binds the code to this symbol.
    pub fn bind(&mut self, locate: u16, symbol: &[u8; 8]) {
        let stock = &mut self.by_locate[usize::from(locate)];
        let symbol = u64::from_le_bytes(*symbol);
        if stock.symbol != symbol {
            *stock = StockEntry { symbol, id: InstrumentId::NONE };
        }
    }

    /// Looks the id up, if the name has one.
    pub fn resolve_id(&mut self, locate: u16, dictionary: &Dictionary, config: &CheckedItchConfig) {
        let Some(symbol) = self.symbol(locate) else { return };
        let mut name = symbol.trim_ascii_end().to_vec();
        name.extend_from_slice(config.symbol_suffix.as_bytes());
        if let Some(id) = dictionary.get(NameKind::Instrument, &name) {
            self.by_locate[usize::from(locate)].id = InstrumentId(id);
        }
    }
}
