//! Lifelines of orders: entered, amended, filled, cancelled.

use std::collections::HashMap;
use unitape_model::{
    Dictionary, Event, EventField, EventKind, EventValue, InlineId, NameKind, Position, Price, Side,
    UnixNanos,
};

/// The kind of an order's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// It is entered.
    New,
    /// Its price or quantity changes.
    Amend,
    /// It trades.
    Fill,
    /// It is cancelled.
    Cancel,
}

impl StepKind {
    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Amend => "amend",
            Self::Fill => "fill",
            Self::Cancel => "cancel",
        }
    }

    const fn from_event_kind(kind: EventKind) -> Option<Self> {
        match kind {
            EventKind::OrderNew => Some(Self::New),
            EventKind::OrderAmend => Some(Self::Amend),
            EventKind::Exec => Some(Self::Fill),
            EventKind::OrderCancel => Some(Self::Cancel),
            _ => None,
        }
    }
}

/// A step of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifelineStep {
    /// The kind of step.
    pub kind: StepKind,
    /// Ordinal of the event.
    pub seq: u64,
    /// Its position.
    pub position: Position,
    /// Its time.
    pub ts: UnixNanos,
    /// The price that the event names.
    pub px: Option<Price>,
    /// The quantity that the event names, in its exact form: of the order, or of the fill.
    pub qty: Option<String>,
    /// The quantity that an amend takes off the order.
    pub qty_reduced: Option<String>,
}

/// An order over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifeline {
    /// The order id.
    pub oid: String,
    /// The side, if an event of the order names it.
    pub side: Option<Side>,
    /// The owner, if an event of the order names it.
    pub owner: Option<String>,
    /// The trader, if an event of the order names one.
    pub trader: Option<String>,
    /// The price at which it stands after the first step that names one; the price before is not known.
    pub px: Option<Price>,
    /// Its steps, in the order of the tape. An order that was entered before the picture begins with another step than `New`.
    pub steps: Vec<LifelineStep>,
}

/// Collects the lifelines of a picture.
pub(super) struct LifelineLog {
    /// Owners and traders; all if it is empty.
    parties: Vec<String>,
    lifelines_max: usize,
    lifelines: Vec<Lifeline>,
    /// The last order of an id: ids may be used again.
    by_oid: HashMap<String, usize>,
    left_out: u64,
}

impl LifelineLog {
    pub fn new(parties: Vec<String>, max: usize) -> Self {
        Self { parties, lifelines_max: max, lifelines: Vec::new(), by_oid: HashMap::new(), left_out: 0 }
    }

    /// Takes an event of an order. An event that names another listing than the picture's belongs to another order,
    /// even if the ids are the same. An event without a listing belongs to the order with its id.
    pub fn on_event(
        &mut self,
        event: &Event<'_>,
        seq: u64,
        position: Position,
        is_here: bool,
        names: &Dictionary,
    ) {
        let is_bare = event.venue() == 0 && event.instrument().0 == 0;
        let (true, Some(kind)) = (is_here || is_bare, StepKind::from_event_kind(event.kind())) else {
            return;
        };
        let Some(oid) = id_of(event, EventField::Oid) else { return };
        let name = |field, dict| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Sym(_, id)) => names.name(dict, id).map(str::to_owned),
            _ => None,
        };
        let (owner, trader) =
            (name(EventField::Owner, NameKind::Owner), name(EventField::Trader, NameKind::Trader));
        let index = match self.by_oid.get(&oid).copied().filter(|_| kind != StepKind::New) {
            Some(index) => index,
            None if is_bare => return,
            None => {
                let is_wanted = self.parties.is_empty()
                    || [&owner, &trader].into_iter().flatten().any(|name| self.parties.contains(name));
                if !is_wanted {
                    return;
                }
                if self.lifelines.len() >= self.lifelines_max {
                    self.left_out += 1;
                    return;
                }
                self.by_oid.insert(oid.clone(), self.lifelines.len());
                self.lifelines.push(Lifeline {
                    oid,
                    side: None,
                    owner: None,
                    trader: None,
                    px: None,
                    steps: Vec::new(),
                });
                self.lifelines.len() - 1
            }
        };
        let px = match event.field(EventField::Px, &mut [0; 36]) {
            Some(EventValue::Price(px)) => Some(px),
            _ => None,
        };
        let qty = match event.field(EventField::Qty, &mut [0; 36]) {
            Some(EventValue::Decimal(qty)) => Some(qty.to_string()),
            _ => None,
        };
        let line = &mut self.lifelines[index];
        line.side = line.side.or_else(|| side_of(event));
        line.owner = line.owner.take().or(owner);
        line.trader = line.trader.take().or(trader);
        // A fill may be at a better price than the order's.
        if kind != StepKind::Fill {
            line.px = line.px.or(px);
        }
        if line.steps.len() < self.lifelines_max {
            let qty_reduced = event.qty_reduced().map(|reduction| reduction.to_string());
            let ts = event.ts_event();
            line.steps.push(LifelineStep { kind, seq, position, ts, px, qty, qty_reduced });
        } else {
            self.left_out += 1;
        }
    }

    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub fn finish(self) -> Vec<Lifeline> {
        self.lifelines
    }
}

/// Returns the side of an event, if it names one.
pub(super) fn side_of(event: &Event<'_>) -> Option<Side> {
    match event.field(EventField::Side, &mut [0; 36]) {
        Some(EventValue::Text("B")) => Some(Side::Buy),
        Some(EventValue::Text("S")) => Some(Side::Sell),
        _ => None,
    }
}

fn id_of(event: &Event<'_>, field: EventField) -> Option<String> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Id(InlineId::Text(text))) => Some(String::from_utf8_lossy(text).into_owned()),
        Some(EventValue::Id(InlineId::Number(number))) => Some(number.to_string()),
        _ => None,
    }
}
