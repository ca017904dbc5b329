//! States of products and instruments, from messages and snapshots.

use super::MessageProcessor;
use crate::engine::codes::{CodeMeanings, NOTHING};
use crate::engine::context::MessageContext;
use crate::engine::ids::NativeId;
use crate::engine::market_event::{MarketEvent, MarketEventSink, StateCode, TradingPhase, TradingState};
use crate::engine::message_fields::NO_TIME;
use unitape_model::{InstrumentId, ProductId};

impl MessageProcessor {
    pub fn state(
        &mut self,
        product: ProductId,
        instrument: Option<InstrumentId>,
        code: NativeId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        if code == NativeId::NONE {
            return;
        }
        let codes = &self.config.codes;
        let table = if instrument.is_some() { &codes.instrument_state } else { &codes.product_state };
        self.state_by(table, StateSubject { product, instrument }, code, context, out);
    }

    /// Emits a state for all instruments of a product, in the codes of instruments.
    pub fn mass_state(
        &self,
        product: ProductId,
        code: NativeId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let subject = StateSubject { product, instrument: None };
        self.state_by(&self.config.codes.instrument_state, subject, code, context, out);
    }

    fn state_by(
        &self,
        table: &CodeMeanings,
        subject: StateSubject,
        code: NativeId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let mut short = [0; 8];
        let (code, meaning) = match self.long_ids.id_text(code, &mut short) {
            None => (
                StateCode::Number(code.bits),
                usize::try_from(code.bits).ok().and_then(|n| table.numbers.get(n)),
            ),
            Some(text @ [letter]) => (StateCode::Text(text), table.letters.get(usize::from(*letter))),
            Some(text) => (StateCode::Text(text), None),
        };
        let phase = meaning.filter(|n| **n != NOTHING).map(|n| PHASES[usize::from(*n)]);
        let StateSubject { product, instrument } = subject;
        let state = TradingState { product, instrument, code, phase };
        out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::State(state));
    }

    /// Takes the state of a product from a snapshot. Every snapshot repeats the state; only a change becomes an event.
    pub fn snapshot_state(
        &mut self,
        product: ProductId,
        code: NativeId,
        last: u64,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let (current_code, state_sequence) = self.products.list[product.index()].product_state;
        if code != NativeId::NONE && code != current_code && last >= state_sequence {
            self.products.list[product.index()].product_state = (code, last);
            self.state(product, None, code, context, out);
        }
    }
}

/// The product that has a state, and its instrument; `None` for all instruments.
#[derive(Clone, Copy)]
struct StateSubject {
    product: ProductId,
    instrument: Option<InstrumentId>,
}

const PHASES: [TradingPhase; 6] = [
    TradingPhase::Pre,
    TradingPhase::Open,
    TradingPhase::Auction,
    TradingPhase::Fixing,
    TradingPhase::Halt,
    TradingPhase::Close,
];
