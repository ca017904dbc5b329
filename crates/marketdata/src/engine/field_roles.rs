//! The roles of fields. A mapping names fields by their paths. Here the paths become the selection for the decoder:
//! it delivers only these fields, each under the number of its [`FieldRole`]. From there on nothing is looked up by
//! name or path.

/// Tags and their numbers, both ways.
macro_rules! field_roles {
    ($($(#[$about:meta])* $tag:ident = $number:literal,)*) => {
        /// The role of a field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        #[allow(missing_docs)] // documented by their names in `config`
        pub(super) enum FieldRole {
            $($(#[$about])* $tag = $number,)*
        }

        impl FieldRole {
            /// Returns the role with this number, or `None` for a field that the handler does not use.
            #[inline(always)]
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(FieldRole::$tag),)*
                    _ => None,
                }
            }
        }
    };
}

field_roles! {
    // Roles of entries come first: one comparison then separates them from all others.
    Instrument = 0,
    Action = 1,
    Type = 2,
    Px = 3,
    Qty = 4,
    Orders = 5,
    Depth = 6,
    EntryTime = 7,
    TradeId = 8,
    Aggressor = 9,
    InstrumentState = 10,
    Product = 11,
    Sequence = 12,
    Last = 13,
    Time = 14,
    ProductState = 15,
    Name = 16,
    Group = 17,
    Symbol = 18,
    MarketDepth = 19,
    Tick = 20,
    Multiplier = 21,
    Currency = 22,
    Deleted = 23,
    /// The sequence of entries.
    Entries = 24,
    HeadSequence = 25,
    HeadSender = 26,
    HeadPartition = 27,
    HeadTime = 28,
    HeadReset = 29,
}

/// Names of fields in messages, and their roles.
pub(super) const FIELDS: [(&str, FieldRole); 24] = [
    ("product", FieldRole::Product),
    ("sequence", FieldRole::Sequence),
    ("last", FieldRole::Last),
    ("time", FieldRole::Time),
    ("instrument", FieldRole::Instrument),
    ("action", FieldRole::Action),
    ("type", FieldRole::Type),
    ("px", FieldRole::Px),
    ("qty", FieldRole::Qty),
    ("orders", FieldRole::Orders),
    ("depth", FieldRole::Depth),
    ("entry_time", FieldRole::EntryTime),
    ("trade_id", FieldRole::TradeId),
    ("aggressor", FieldRole::Aggressor),
    ("product_state", FieldRole::ProductState),
    ("instrument_state", FieldRole::InstrumentState),
    ("name", FieldRole::Name),
    ("group", FieldRole::Group),
    ("symbol", FieldRole::Symbol),
    ("market_depth", FieldRole::MarketDepth),
    ("tick", FieldRole::Tick),
    ("multiplier", FieldRole::Multiplier),
    ("currency", FieldRole::Currency),
    ("deleted", FieldRole::Deleted),
];

impl std::fmt::Display for FieldRole {
    /// Writes the name that mappings use.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = FIELDS.iter().find(|(_, tag)| tag == self).map(|(name, _)| *name);
        f.write_str(field.unwrap_or(match self {
            Self::Entries => "entries",
            Self::HeadSequence => "sequence of the header",
            Self::HeadSender => "sender of the header",
            Self::HeadPartition => "partition of the header",
            Self::HeadTime => "time of the header",
            Self::HeadReset => "reset of the header",
            _ => "a field",
        }))
    }
}
