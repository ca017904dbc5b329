//! Kinds of frames and the fields they carry.

/// Kind of a frame. Numbers are on disk and never change; 1 is the pad of [`crate::frame::KIND_PAD`].
///
/// 2 to 7 are definitions (copied to the definitions log), 8 to 15 other bookkeeping, 16 and up events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the words of `docs/events.md`
pub enum EventKind {
    /// Definition: an id and its name.
    Define = 2,
    /// Definition: where bytes came from.
    Source = 3,
    /// The consumed part of a source, and the account of its messages.
    Progress = 8,
    Ref = 16,
    Session = 17,
    Status = 18,
    Bbo = 19,
    Level = 20,
    Quote = 21,
    Trade = 22,
    OrderRecv = 23,
    Parent = 24,
    OrderNew = 25,
    OrderAmend = 26,
    OrderCancel = 27,
    Exec = 28,
    Party = 29,
    Position = 30,
    List = 31,
    Index = 32,
    RefPx = 33,
    News = 34,
    Comm = 35,
    Payment = 36,
    Statement = 37,
    Alert = 38,
    Control = 39,
    Quarantine = 40,
    Clock = 41,
    QuoteReject = 42,
    Deal = 43,
    Decision = 44,
    Case = 45,
}

impl EventKind {
    /// Kinds of events, in the order of `docs/events.md`.
    pub const EVENTS: [EventKind; 30] = [
        EventKind::Ref,
        EventKind::Session,
        EventKind::Status,
        EventKind::Bbo,
        EventKind::Level,
        EventKind::Quote,
        EventKind::Trade,
        EventKind::OrderRecv,
        EventKind::Parent,
        EventKind::OrderNew,
        EventKind::OrderAmend,
        EventKind::OrderCancel,
        EventKind::Exec,
        EventKind::Party,
        EventKind::Position,
        EventKind::List,
        EventKind::Index,
        EventKind::RefPx,
        EventKind::News,
        EventKind::Comm,
        EventKind::Payment,
        EventKind::Statement,
        EventKind::Alert,
        EventKind::Control,
        EventKind::Quarantine,
        EventKind::Clock,
        EventKind::QuoteReject,
        EventKind::Deal,
        EventKind::Decision,
        EventKind::Case,
    ];
    /// The greatest number of a kind.
    pub const NUMBER_MAX: u8 = EventKind::Case as u8;
    /// Bookkeeping kinds.
    pub const META: [EventKind; 3] = [EventKind::Define, EventKind::Source, EventKind::Progress];

    /// Returns the kind with this number.
    #[inline]
    pub fn from_u8(n: u8) -> Option<Self> {
        match n {
            2 => Some(EventKind::Define),
            3 => Some(EventKind::Source),
            8 => Some(EventKind::Progress),
            16..=Self::NUMBER_MAX => Some(Self::EVENTS[usize::from(n - 16)]),
            _ => None,
        }
    }

    /// Returns the kind's name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Define => "define",
            EventKind::Source => "source",
            EventKind::Progress => "progress",
            EventKind::Ref => "ref",
            EventKind::Session => "session",
            EventKind::Status => "status",
            EventKind::Bbo => "bbo",
            EventKind::Level => "level",
            EventKind::Quote => "quote",
            EventKind::Trade => "trade",
            EventKind::OrderRecv => "order_recv",
            EventKind::Parent => "parent",
            EventKind::OrderNew => "order_new",
            EventKind::OrderAmend => "order_amend",
            EventKind::OrderCancel => "order_cancel",
            EventKind::Exec => "exec",
            EventKind::Party => "party",
            EventKind::Position => "position",
            EventKind::List => "list",
            EventKind::Index => "index",
            EventKind::RefPx => "ref_px",
            EventKind::News => "news",
            EventKind::Comm => "comm",
            EventKind::Payment => "payment",
            EventKind::Statement => "statement",
            EventKind::Alert => "alert",
            EventKind::Control => "control",
            EventKind::Quarantine => "quarantine",
            EventKind::Clock => "clock",
            EventKind::QuoteReject => "quote_reject",
            EventKind::Deal => "deal",
            EventKind::Decision => "decision",
            EventKind::Case => "case",
        }
    }

    /// Looks up an event kind by name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::EVENTS.into_iter().find(|k| k.name() == name)
    }

    /// Returns whether frames of this kind are bookkeeping.
    pub const fn is_meta(self) -> bool {
        (self as u8) < 16
    }

    /// Returns the fields of which an event of the kind must have at least one; empty for most kinds. A `list` entry
    /// without an instrument and without a party would concern nothing.
    pub const fn one_of(self) -> &'static [EventField] {
        match self {
            EventKind::List => &[
                EventField::Instr,
                EventField::Issuer,
                EventField::Party,
                EventField::Acct,
                EventField::Desk,
                EventField::Trader,
                EventField::Firm,
            ],
            _ => &[],
        }
    }

    /// Returns whether the kind has had more than one layout. Frames of such a kind carry their layout number.
    #[inline]
    pub const fn has_layouts(self) -> bool {
        matches!(self, EventKind::Alert | EventKind::Control)
    }

    /// Returns whether input (a line, a mapping) may name this kind. unitape itself writes definitions, progress marks
    /// and quarantine events; input that names them would forge its account.
    pub const fn is_input(self) -> bool {
        !self.is_meta() && !matches!(self, EventKind::Quarantine)
    }

    /// Looks up a kind that input must not name.
    pub fn reserved_from_name(name: &str) -> Option<Self> {
        Self::META.into_iter().chain([EventKind::Quarantine]).find(|k| k.name() == name)
    }
}

macro_rules! fields {
    ($($number:literal $variant:ident $name:literal,)*) => {
        /// A field of an event. Numbers are on disk (they tag extension entries) and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        #[allow(missing_docs)] // the words of `docs/events.md`
        pub enum EventField { $($variant = $number,)* }

        impl EventField {
            /// All fields, by number.
            pub const ALL: &[EventField] = &[$(EventField::$variant,)*];

            /// Returns the field's name in JSON and in mappings.
            pub const fn name(self) -> &'static str {
                match self { $(EventField::$variant => $name,)* }
            }

            /// Returns the field with this number.
            pub fn from_u16(n: u16) -> Option<Self> {
                match n { $($number => Some(EventField::$variant),)* _ => None }
            }
        }
    };
}

fields! {
    1 TsRecv "ts_recv", 2 SrcSeq "src_seq", 3 Venue "venue", 4 Instr "instr", 5 Bid "bid",
    6 BidQty "bid_qty", 7 Ask "ask", 8 AskQty "ask_qty", 9 Side "side", 10 Action "action", 11 Px "px",
    12 Qty "qty", 13 Orders "orders", 14 Depth "depth", 15 QuoteId "quote_id", 16 Tier "tier",
    17 ValidUntil "valid_until", 18 Indicative "indicative", 19 FullAmount "full_amount",
    20 MatchId "match_id", 21 Cond "cond", 22 Coid "coid", 23 Owner "owner", 24 Firm "firm",
    25 Channel "channel", 26 Parent "parent", 27 Oid "oid", 28 Trader "trader", 29 Acct "acct",
    30 Capacity "capacity", 31 Tif "tif", 32 Algo "algo", 33 Type "type", 34 StopPx "stop_px",
    35 Liq "liq", 36 Short "short", 37 Cpty "cpty", 38 Tick "tick", 39 PrevClose "prev_close",
    40 Adv "adv", 41 Ccy "ccy", 42 Underlying "underlying", 43 Multiplier "multiplier", 44 Lot "lot",
    45 Mic "mic", 46 Symbol "symbol", 47 Figi "figi", 48 Phase "phase", 49 State "state",
    50 Reason "reason", 51 Group "group", 52 Desk "desk", 53 LinkScore "link_score",
    54 OpenInterest "open_interest", 55 Name "name", 56 Party "party", 57 From "from", 58 To "to",
    59 Index "index", 60 Source "source", 61 NewsId "news_id", 62 Instrs "instrs",
    63 Headline "headline", 64 MsgId "msg_id", 65 Text "text", 66 Msg "msg", 67 Ref "ref",
    68 DrAcct "dr_acct", 69 CrAcct "cr_acct", 70 DrName "dr_name", 71 CrName "cr_name", 72 Amt "amt",
    73 CrBic "cr_bic", 74 DrBic "dr_bic", 75 Opening "opening", 76 Closing "closing",
    77 Entries "entries", 78 Scenario "scenario", 79 TriggerSeq "trigger_seq", 80 Key "key",
    81 Detail "detail", 82 Length "length", 83 RawAt "raw_at", 84 Feed "feed", 85 File "file",
    86 Format "format", 87 Mapping "mapping", 88 Hash "hash", 89 Base "base", 90 Size "size",
    91 Dict "dict", 92 Through "through", 93 Messages "messages", 94 Ignored "ignored",
    95 Duplicates "duplicates", 96 Quarantined "quarantined", 97 Events "events", 98 End "end",
    99 TriggerPosition "trigger_position", 100 Venues "venues", 101 Bank "bank",
    102 Of "of", 103 Unresolved "unresolved", 104 Repeats "repeats", 105 Unsure "unsure",
    112 Left "left", 113 DisplayQty "display_qty", 114 Entry "entry", 115 TradeFlags "trade_flags",
    116 Role "role", 117 Issuer "issuer", 118 Linked "linked", 119 How "how",
    120 AccountClass "account_class", 121 Class "class", 122 LiquidityBand "liquidity_band",
    123 Expiry "expiry", 124 Strike "strike", 125 Right "right", 126 Barrier "barrier",
    127 Delta "delta", 128 Float "float", 129 PriceType "price_type", 130 ValidFrom "valid_from",
    131 Language "language", 132 Revises "revises", 133 ReplyTo "reply_to", 134 Changed "changed",
    135 Day "day", 136 Uetr "uetr", 137 Stage "stage", 138 DrUltimate "dr_ultimate",
    139 CrUltimate "cr_ultimate", 140 DrCountry "dr_country", 141 CrCountry "cr_country",
    142 Withdrawn "withdrawn", 143 ValueDate "value_date", 144 LastLook "last_look",
    145 Considered "considered", 146 Read "read", 147 PolicyHash "policy_hash", 148 Chosen "chosen",
    149 ConsideredHash "considered_hash", 150 CaseId "case_id", 151 Id "id", 152 ScopeKind "scope_kind",
    153 By "by", 154 SecondBy "second_by", 155 Until "until", 156 DryRun "dry_run", 157 Cause "cause",
    158 SourceTape "source_tape", 159 RuleVersion "rule_version", 160 ParamsHash "params_hash",
    161 Score "score", 162 Assigned "assigned", 163 EntriesUsed "entries_used",
    164 EntriesQuarantined "entries_quarantined", 165 EntriesIgnored "entries_ignored",
    166 Partial "partial", 167 QtyReduced "qty_reduced", 168 BidVenue "bid_venue",
    169 AskVenue "ask_venue",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_come_back() {
        for k in EventKind::EVENTS.into_iter().chain(EventKind::META) {
            assert_eq!(EventKind::from_u8(k as u8), Some(k));
            assert_eq!(EventKind::from_name(k.name()).is_some(), !k.is_meta());
            assert_eq!(EventKind::reserved_from_name(k.name()), (!k.is_input()).then_some(k));
        }
        for &f in EventField::ALL {
            assert_eq!(EventField::from_u16(f as u16), Some(f));
        }
    }
}
