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
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> MessageOutcome {
        let product = &mut self.tables.products[id.index()];
        let mut has_changed = update_text(&mut product.name, batch.text_bytes(definition.name));
        has_changed |= update_text(&mut product.group, batch.text_bytes(definition.group));
        has_changed |= update_text(&mut product.currency, batch.text_bytes(definition.currency));
        has_changed |= update_some(&mut product.tick, definition.tick);
        if update_some(&mut product.depth, definition.market_depth) {
            has_changed = true;
            for instrument in &self.products.list[id.index()].instruments {
                if self.tables.instruments[instrument.index()].depth.is_none() {
                    self.products.instruments[instrument.index()].depth_max =
                        definition.market_depth.unwrap_or(0);
                }
            }
        }
        self.products.list[id.index()].deep = true;
        if has_changed {
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Product(id));
            for n in 0..self.products.list[id.index()].instruments.len() {
                self.trim_levels(self.products.list[id.index()].instruments[n], context, out);
            }
        }
        if has_changed { MessageOutcome::Used } else { MessageOutcome::Ignored }
    }

    /// Removes levels beyond a depth that was unknown when they arrived.
    fn trim_levels(
        &mut self,
        id: InstrumentId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let instrument = &mut self.products.instruments[id.index()];
        if instrument.is_live {
            let event_context = context.event_context(&self.tables, NO_TIME);
            levels::trim(id, instrument, |step| out.emit(&event_context, step));
        }
    }

    pub fn define_instrument(
        &mut self,
        key: InstrumentKey,
        definition: &DefinitionFields,
        batch: &PacketMessages,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> MessageOutcome {
        let InstrumentKey { product, instrument: id } = key;
        let instrument = &mut self.tables.instruments[id.index()];
        let mut has_changed = update_text(&mut instrument.symbol, batch.text_bytes(definition.symbol));
        has_changed |= update_text(&mut instrument.group, batch.text_bytes(definition.group));
        has_changed |= update_text(&mut instrument.currency, batch.text_bytes(definition.currency));
        has_changed |= update_some(&mut instrument.tick, definition.tick);
        has_changed |= update_some(&mut instrument.multiplier, definition.multiplier);
        if update_some(&mut instrument.depth, definition.market_depth) {
            has_changed = true;
            self.products.instruments[id.index()].depth_max = definition.market_depth.unwrap_or(0);
        }
        if has_changed {
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Instrument(id));
            self.trim_levels(id, context, out);
        }
        if self.products.becomes_deep(id) {
            let nothing = SnapshotBook { last_message: 0, entries: &[], instrument_state: NativeId::NONE };
            self.replace_book(key, &nothing, *context, out);
        }
        match definition.is_deleted {
            true => self.products.set_delisted(id),
            false => self.products.set_listed(id),
        }
        self.products.list[product.index()].is_defined = true;
        self.emit_if_whole(product, context, out);
        if has_changed { MessageOutcome::Used } else { MessageOutcome::Ignored }
    }
}

/// Converts a text to a name in events, with a limited number of bytes.
fn display_text(text: &[u8]) -> String {
    let mut name = String::from_utf8_lossy(text).into_owned();
    name.truncate(name.floor_char_boundary(ID_BYTES_MAX));
    name
}

/// Stores a text if the message has one. Returns whether it differs from the stored one.
fn update_text(field: &mut String, text: &[u8]) -> bool {
    if text.is_empty() || field.as_bytes() == text {
        return false;
    }
    let new_text = display_text(text);
    let is_changed = *field != new_text;
    *field = new_text;
    is_changed
}

fn update_some<T: PartialEq>(field: &mut Option<T>, value: Option<T>) -> bool {
    let is_changed = value.is_some() && *field != value;
    if is_changed {
        *field = value;
    }
    is_changed
}
