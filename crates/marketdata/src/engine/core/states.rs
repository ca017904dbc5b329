//! States of products and instruments, as messages and snapshots tell them.

use super::Core;
use crate::engine::around::Around;
use crate::engine::codes::{NOTHING, Table};
use crate::engine::ids::Id;
use crate::engine::step::{Code, Phase, State, Step, Steps};
use crate::engine::view::NO_TIME;
use unitape_model::{InstrumentId, ProductId};

impl Core {
    pub fn state(
        &mut self,
        product: ProductId,
        instrument: Option<InstrumentId>,
        code: Id,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) {
        if code == Id::NONE {
            return;
        }
        let codes = &self.config.codes;
        let table = if instrument.is_some() { &codes.instrument_state } else { &codes.product_state };
        self.state_by(table, (product, instrument), code, around, out);
    }

    /// A state of all instruments of a product, told in the codes of instruments.
    pub fn mass_state(&self, product: ProductId, code: Id, around: &Around<'_>, out: &mut impl Steps) {
        self.state_by(&self.config.codes.instrument_state, (product, None), code, around, out);
    }

    fn state_by(
        &self,
        table: &Table,
        (product, instrument): (ProductId, Option<InstrumentId>),
        code: Id,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) {
        let mut short = [0; 8];
        let (code, meaning) = match self.ids.text(code, &mut short) {
            None => {
                (Code::Number(code.bits), usize::try_from(code.bits).ok().and_then(|n| table.numbers.get(n)))
            }
            Some(text @ [letter]) => (Code::Text(text), table.letters.get(usize::from(*letter))),
            Some(text) => (Code::Text(text), None),
        };
        let phase = meaning.filter(|n| **n != NOTHING).map(|n| PHASES[usize::from(*n)]);
        let state = State { product, instrument, code, phase };
        out.step(&around.at(&self.tables, NO_TIME), Step::State(state));
    }

    /// The state of a product, as a snapshot tells it: it comes with each, and is a step where it is another.
    pub fn snapshot_state(
        &mut self,
        product: ProductId,
        code: Id,
        last: u64,
        around: &Around<'_>,
        out: &mut impl Steps,
    ) {
        let (had, at) = self.products.list[product.index()].state;
        if code != Id::NONE && code != had && last >= at {
            self.products.list[product.index()].state = (code, last);
            self.state(product, None, code, around, out);
        }
    }
}

const PHASES: [Phase; 6] =
    [Phase::Pre, Phase::Open, Phase::Auction, Phase::Fixing, Phase::Halt, Phase::Close];
