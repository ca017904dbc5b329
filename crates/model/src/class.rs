//! The class of each field, which decides who may read it.
//!
//! A class follows the field's name and not its place: a size is market data in the fixed part and in the extension.
//! The exceptions are payments, statements and messages between people: only their times are market data.

use crate::kind::{EventField, EventKind};

/// A class of fields. The store seals each class with a key of its own. Numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum FieldClass {
    /// The data that a market publishes: prices, sizes, sides, instruments, venues, times, sequences, and ids of orders
    /// and matches. The receive time and the ordinal also belong to it.
    Market = 1,
    /// Parties and their text: free text, and fields of a feed's own.
    Identity = 2,
    /// Where it came from: source, offset, position on the tape, flags.
    Provenance = 3,
}

/// The classes that a reader opens: market data, and any of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassSet(u8);

impl ClassSet {
    /// Market data alone.
    pub const MARKET: Self = Self(1 << FieldClass::Market.index());
    /// All classes.
    pub const ALL: Self = Self::MARKET.with(FieldClass::Identity).with(FieldClass::Provenance);

    /// Adds a class.
    #[must_use]
    pub const fn with(self, class: FieldClass) -> Self {
        Self(self.0 | 1 << class.index())
    }

    /// Returns whether the class is one of them.
    #[must_use]
    pub const fn contains(self, class: FieldClass) -> bool {
        self.0 >> class.index() & 1 != 0
    }

    /// Iterates over the classes, in the order of [`FieldClass::ALL`].
    pub fn iter(self) -> impl Iterator<Item = FieldClass> {
        FieldClass::ALL.into_iter().filter(move |class| self.contains(*class))
    }
}

impl Default for ClassSet {
    fn default() -> Self {
        Self::MARKET
    }
}

impl FieldClass {
    /// All classes, in the order of their chunks in a block.
    pub const ALL: [Self; 3] = [Self::Market, Self::Identity, Self::Provenance];

    /// Returns the index in [`FieldClass::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize - 1
    }

    /// Returns the class of a field of an event of this kind.
    pub fn for_event_field(kind: EventKind, field: EventField) -> Self {
        let is_private = matches!(kind, EventKind::Payment | EventKind::Statement | EventKind::Comm);
        if is_private && field != EventField::TsRecv { Self::Identity } else { Self::of_field(field) }
    }

    /// Returns the class of a field by its name alone. No rule covers other fields: a new field must get a class here.
    fn of_field(field: EventField) -> Self {
        use EventField as F;
        match field {
            F::TsRecv | F::SrcSeq | F::Venue | F::Bank | F::Mic | F::Instr | F::Instrs | F::Index => {
                Self::Market
            }
            F::BidVenue | F::AskVenue => Self::Market,
            F::Symbol | F::Figi | F::Class | F::Underlying | F::Ccy | F::Venues => Self::Market,
            F::Bid
            | F::BidQty
            | F::Ask
            | F::AskQty
            | F::Px
            | F::Qty
            | F::StopPx
            | F::Left
            | F::DisplayQty
            | F::QtyReduced => Self::Market,
            F::Side | F::Action | F::Orders | F::Depth | F::Tier | F::Oid | F::MatchId | F::QuoteId => {
                Self::Market
            }
            F::ValidUntil
            | F::Indicative
            | F::FullAmount
            | F::Withdrawn
            | F::ValueDate
            | F::LastLook
            | F::Partial => Self::Market,
            F::Cond | F::TradeFlags | F::Liq | F::Tif | F::Type | F::Capacity | F::Short => Self::Market,
            F::Tick | F::PrevClose | F::Adv | F::Multiplier | F::Lot | F::LiquidityBand | F::Float => {
                Self::Market
            }
            F::Expiry | F::Strike | F::Right | F::Barrier | F::Delta | F::PriceType | F::ValidFrom => {
                Self::Market
            }
            F::Phase | F::State | F::OpenInterest | F::Day | F::From | F::To | F::Until | F::Source => {
                Self::Market
            }
            F::NewsId | F::Revises | F::Language | F::ScopeKind | F::DryRun | F::Ref => Self::Market,

            F::Owner | F::Firm | F::Trader | F::Acct | F::Desk | F::Algo | F::Cpty | F::Entry => {
                Self::Identity
            }
            F::Group | F::Linked | F::LinkScore | F::How | F::AccountClass | F::Party | F::Issuer => {
                Self::Identity
            }
            F::Name | F::Role | F::By | F::SecondBy | F::Assigned => Self::Identity,
            F::Coid | F::Parent | F::Channel | F::Reason | F::Headline | F::Text => Self::Identity,
            F::MsgId | F::Msg | F::ReplyTo | F::Changed => Self::Identity,
            F::DrAcct | F::CrAcct | F::DrName | F::CrName | F::Amt | F::CrBic | F::DrBic => Self::Identity,
            F::Opening | F::Closing | F::Entries | F::Uetr | F::Stage => Self::Identity,
            F::DrUltimate | F::CrUltimate | F::DrCountry | F::CrCountry => Self::Identity,
            F::Scenario | F::Key | F::Detail | F::RuleVersion | F::ParamsHash | F::Score => Self::Identity,
            F::CaseId | F::Id | F::PolicyHash | F::Chosen | F::ConsideredHash => Self::Identity,

            F::Feed | F::File | F::Format | F::Mapping | F::Hash | F::Base | F::Size | F::Of => {
                Self::Provenance
            }
            F::Dict | F::Through | F::Messages | F::Ignored | F::Duplicates | F::Quarantined => {
                Self::Provenance
            }
            F::Events
            | F::End
            | F::Unresolved
            | F::Repeats
            | F::Unsure
            | F::EntriesUsed
            | F::EntriesQuarantined
            | F::EntriesIgnored => Self::Provenance,
            F::Length | F::RawAt | F::TriggerSeq | F::TriggerPosition | F::SourceTape => Self::Provenance,
            F::Cause | F::Considered | F::Read => Self::Provenance,
        }
    }

    /// Returns the word for this class.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Market => "market",
            Self::Identity => "identity",
            Self::Provenance => "provenance",
        }
    }

    /// Finds the class with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NameKind;
    use crate::schema::{EventSchema, FieldLayout};

    /// Fails if a party counts as market data, because everybody who buys prices would see it.
    #[test]
    fn parties_are_identity_and_markets_are_not() {
        for schema in EventSchema::all().filter(|schema| !schema.kind.is_meta()) {
            for spec in schema.fields {
                let dict = match spec.slot {
                    FieldLayout::Syms { dict } => Some(dict),
                    slot => slot.dict(),
                };
                let class = FieldClass::for_event_field(schema.kind, spec.field);
                match dict {
                    Some(NameKind::Instrument | NameKind::Venue) if schema.kind != EventKind::Comm => {
                        assert_eq!(class, FieldClass::Market, "{:?} {:?}", schema.kind, spec.field);
                    }
                    Some(_) => assert_eq!(class, FieldClass::Identity, "{:?} {:?}", schema.kind, spec.field),
                    None => {}
                }
                if spec.slot == FieldLayout::Json {
                    assert_eq!(class, FieldClass::Identity, "{:?} {:?}", schema.kind, spec.field);
                }
            }
        }
    }

    #[test]
    fn of_payments_and_messages_only_times_are_market_data() {
        for kind in [EventKind::Payment, EventKind::Statement, EventKind::Comm] {
            for spec in EventSchema::for_kind(kind).fields {
                assert_eq!(
                    FieldClass::for_event_field(kind, spec.field),
                    FieldClass::Identity,
                    "{:?}",
                    spec.field
                );
            }
            assert_eq!(FieldClass::for_event_field(kind, EventField::TsRecv), FieldClass::Market);
            assert_eq!(FieldClass::for_event_field(kind, EventField::SrcSeq), FieldClass::Identity);
        }
    }

    #[test]
    fn a_set_has_its_classes_and_always_market_data() {
        let classes = |set: ClassSet| set.iter().map(FieldClass::name).collect::<Vec<_>>();
        assert_eq!(classes(ClassSet::default()), ["market"]);
        assert_eq!(classes(ClassSet::MARKET.with(FieldClass::Provenance)), ["market", "provenance"]);
        assert_eq!(classes(ClassSet::ALL), ["market", "identity", "provenance"]);
        assert!(FieldClass::ALL.into_iter().all(|class| FieldClass::from_name(class.name()) == Some(class)));
    }

    #[test]
    fn rows_of_trades_and_best_quotes_are_market_data() {
        for kind in [EventKind::Trade, EventKind::Bbo] {
            for spec in EventSchema::for_kind(kind).fields.iter().filter(|s| s.field != EventField::Cause) {
                assert_eq!(
                    FieldClass::for_event_field(kind, spec.field),
                    FieldClass::Market,
                    "{:?}",
                    spec.field
                );
            }
        }
    }
}
