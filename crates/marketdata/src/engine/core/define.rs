//! Reference data of products and instruments. Venues repeat them all the time: only a change becomes an event.

use super::{InstrumentKey, MessageProcessor, SnapshotBook};
use crate::engine::context::MessageContext;
use crate::engine::ids::{ID_BYTES_MAX, NativeId};
use crate::engine::levels;
use crate::engine::market_event::{MarketEvent, MarketEventSink, MessageOutcome};
use crate::engine::message_fields::{DefinitionFields, NO_TIME, PacketMessages};
use unitape_model::{InstrumentId, ProductId};

impl MessageProcessor {
    pub fn define_product(
        &mut self,
        id: ProductId,
        definition: &DefinitionFields,
        batch: &PacketMessages,
        around: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> MessageOutcome {
        let product = &mut self.tables.products[id.index()];
        let mut changed = put(&mut product.name, batch.text(definition.name));
        changed |= put(&mut product.group, batch.text(definition.group));
        changed |= put(&mut product.currency, batch.text(definition.currency));
        changed |= put_some(&mut product.tick, definition.tick);
        if put_some(&mut product.depth, definition.market_depth) {
            changed = true;
            for instrument in &self.products.list[id.index()].instruments {
                if self.tables.instruments[instrument.index()].depth.is_none() {
                    self.products.instruments[instrument.index()].depth =
                        definition.market_depth.unwrap_or(0);
                }
            }
        }
        self.products.list[id.index()].deep = true;
        if changed {
            out.emit(&around.event_context(&self.tables, NO_TIME), MarketEvent::Product(id));
            for n in 0..self.products.list[id.index()].instruments.len() {
                self.trim(self.products.list[id.index()].instruments[n], around, out);
            }
        }
        if changed { MessageOutcome::Used } else { MessageOutcome::Ignored }
    }

    /// Levels beyond a depth that was not known when they came.
    fn trim(&mut self, id: InstrumentId, around: &MessageContext<'_>, out: &mut impl MarketEventSink) {
        let instrument = &mut self.products.instruments[id.index()];
        if instrument.live {
            let at = around.event_context(&self.tables, NO_TIME);
            levels::trim(id, instrument, |step| out.emit(&at, step));
        }
    }

    pub fn define_instrument(
        &mut self,
        key: InstrumentKey,
        definition: &DefinitionFields,
        batch: &PacketMessages,
        around: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> MessageOutcome {
        let InstrumentKey { product, instrument: id } = key;
        let instrument = &mut self.tables.instruments[id.index()];
        let mut changed = put(&mut instrument.symbol, batch.text(definition.symbol));
        changed |= put(&mut instrument.group, batch.text(definition.group));
        changed |= put(&mut instrument.currency, batch.text(definition.currency));
        changed |= put_some(&mut instrument.tick, definition.tick);
        changed |= put_some(&mut instrument.multiplier, definition.multiplier);
        if put_some(&mut instrument.depth, definition.market_depth) {
            changed = true;
            self.products.instruments[id.index()].depth = definition.market_depth.unwrap_or(0);
        }
        if changed {
            out.emit(&around.event_context(&self.tables, NO_TIME), MarketEvent::Instrument(id));
            self.trim(id, around, out);
        }
        if self.products.becomes_deep(id) {
            let nothing = SnapshotBook { last: 0, entries: &[], state: NativeId::NONE };
            self.replace_book(key, &nothing, *around, out);
        }
        match definition.deleted {
            true => self.products.set_delisted(id),
            false => self.products.set_listed(id),
        }
        self.products.list[product.index()].defined = true;
        self.emit_if_whole(product, around, out);
        if changed { MessageOutcome::Used } else { MessageOutcome::Ignored }
    }
}

/// A text as names of events have it: with a limited number of bytes.
fn display_text(text: &[u8]) -> String {
    let mut shown = String::from_utf8_lossy(text).into_owned();
    shown.truncate(shown.floor_char_boundary(ID_BYTES_MAX));
    shown
}

/// Stores a text if the message has one. Returns whether it differs from the stored one.
fn put(place: &mut String, text: &[u8]) -> bool {
    if text.is_empty() || place.as_bytes() == text {
        return false;
    }
    let shown = display_text(text);
    let another = *place != shown;
    *place = shown;
    another
}

fn put_some<T: PartialEq>(place: &mut Option<T>, value: Option<T>) -> bool {
    let another = value.is_some() && *place != value;
    if another {
        *place = value;
    }
    another
}
