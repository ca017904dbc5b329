//! Subscriptions: everything, products, groups of products, instruments.

use crate::engine::{ChannelRole, ReferenceTables};
use std::collections::BTreeSet;
use unitape_model::InstrumentId;

/// A subscription. Names are the venue's: of a product its id or its name, of an instrument its id or its symbol, of
/// a group the result of [`ReferenceTables::group`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subscription {
    /// Everything.
    All,
    /// All instruments of a product.
    Product(String),
    /// All instruments of a group of products.
    Group(String),
    /// One instrument.
    Instrument(String),
}

impl Subscription {
    /// Returns whether the subscription covers an instrument, as far as is known now.
    #[must_use]
    pub fn covers(&self, tables: &ReferenceTables, instrument: InstrumentId) -> bool {
        let reference = &tables.instruments[instrument.index()];
        let product = &tables.products[reference.product.index()];
        match self {
            Subscription::All => true,
            Subscription::Product(name) => product.id == *name || product.name == *name,
            Subscription::Group(name) => tables.group(instrument) == name,
            Subscription::Instrument(name) => reference.id == *name || reference.symbol == *name,
        }
    }
}

/// All subscriptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubscriptionSet {
    has_all: bool,
    products: BTreeSet<String>,
    group_names: BTreeSet<String>,
    instruments: BTreeSet<String>,
}

/// Whether an instrument is subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionMatch {
    Yes,
    No,
    /// The instrument's names are not known yet. Its book is kept until they are, so that it is then complete.
    NotYet,
}

impl SubscriptionSet {
    /// Adds a subscription; false if it was there before.
    pub fn add(&mut self, subscription: Subscription) -> bool {
        match subscription {
            Subscription::All => !std::mem::replace(&mut self.has_all, true),
            Subscription::Product(name) => self.products.insert(name),
            Subscription::Group(name) => self.group_names.insert(name),
            Subscription::Instrument(name) => self.instruments.insert(name),
        }
    }

    /// Removes a subscription. Returns false if it did not exist.
    pub fn remove(&mut self, subscription: &Subscription) -> bool {
        match subscription {
            Subscription::All => std::mem::replace(&mut self.has_all, false),
            Subscription::Product(name) => self.products.remove(name),
            Subscription::Group(name) => self.group_names.remove(name),
            Subscription::Instrument(name) => self.instruments.remove(name),
        }
    }

    /// Returns whether this instrument is subscribed, as far as is known now.
    pub fn wants(&self, tables: &ReferenceTables, instrument: InstrumentId) -> SubscriptionMatch {
        let reference = &tables.instruments[instrument.index()];
        let product = &tables.products[reference.product.index()];
        let yes = self.has_all
            || self.instruments.contains(&reference.id)
            || self.instruments.contains(&reference.symbol)
            || self.products.contains(&product.id)
            || self.products.contains(&product.name)
            || self.group_names.contains(tables.group(instrument));
        // A message with reference data of the instrument itself includes its symbol, if it has one: most have none.
        let symbol = !reference.symbol.is_empty()
            || reference.tick.is_some()
            || reference.multiplier.is_some()
            || !reference.currency.is_empty();
        let name = !product.name.is_empty();
        let group = name || !product.group.is_empty() || !reference.group.is_empty();
        let complete = (symbol || self.instruments.is_empty())
            && (name || self.products.is_empty())
            && (group || self.group_names.is_empty());
        match yes {
            true => SubscriptionMatch::Yes,
            false if complete || !tables.channels.iter().any(|c| c.role == ChannelRole::Reference) => {
                SubscriptionMatch::No
            }
            false => SubscriptionMatch::NotYet,
        }
    }
}
