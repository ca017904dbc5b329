//! Events of a market as frames of the tape, and as lines.

use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_model::{
    Amount, Decimal, Event as Frame, EventField, EventKind, EventValue, InlineId, InstrumentId, NameKind,
    UnixNanos, flags,
};

use super::super::event::{DayEvent, DayEventBody};
use super::super::frames::{FrameFieldSetter, set_fields};
use super::super::names;
use super::super::world::SimulatedMarket;
use super::config::date_of;
use super::event::{
    CashStatement, CommMessage, ListEntry, ListedParty, MarketEvent, MarketEventBody, NewsRevision, ShortMark,
};
use super::lexicon::{FIRING, MISSING};
use super::{ControlRequest, Market};

/// Appends the frame of an event to `out`, unstamped. Names are by the ids of [`SimulatedMarket::names`]; the ordinal is
/// in place of the feed's own sequence. `last` marks the last event of a step.
pub fn write_market_frame(market: &Market, event: &MarketEvent, last: bool, out: &mut Vec<u8>) {
    let kind = EventKind::from_name(event.body.kind()).expect("a word of the schema");
    let mut e = FrameFieldSetter::begin(kind, event.seq, event.ts, out);
    body(market, event, &mut e);
    e.finish(if last { flags::LAST } else { 0 });
}

/// Appends an event as a line of JSON. `scratch` is kept between calls so that nothing is allocated.
pub fn write_market_line(market: &Market, event: &MarketEvent, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    write_market_frame(market, event, true, scratch);
    let frame = Frame::new(scratch).expect("a frame of ours");
    let names = market.world().names();
    write_event(out, &frame, event.seq, names, &EmptySourceLookup, EventLineDetail::Plain);
    out.push(b'\n');
}

fn body(market: &Market, event: &MarketEvent, e: &mut FrameFieldSetter<'_>) {
    let (world, ids) = (market.world(), &market.ids);
    match &event.body {
        MarketEventBody::Day { body, short } => {
            set_fields(world, &DayEvent { seq: event.seq, ts: event.ts, body: *body }, e);
            extra(market, body, *short, e);
        }
        MarketEventBody::Level { book, side, action, level } => {
            e.set_listing(world, *book);
            e.text(EventField::Side, side.letter());
            e.text(EventField::Action, action.letter());
            e.price(EventField::Px, world.listed(*book).nano(level.px));
            if action.letter() != "D" {
                e.qty(EventField::Qty, level.qty);
                e.set(EventField::Orders, EventValue::UInt(level.orders.into()));
            }
        }
        MarketEventBody::NationalBest { instr, bid, ask } => {
            e.sym(EventField::Venue, ids.national);
            e.instrument(*instr);
            let listed = &world.instruments[instr.index()];
            for (best, px, qty) in
                [(bid, EventField::Bid, EventField::BidQty), (ask, EventField::Ask, EventField::AskQty)]
            {
                if let Some(best) = best {
                    e.price(px, listed.nano(best.px));
                    e.qty(qty, best.qty);
                }
            }
        }
        MarketEventBody::IndexRef { prev_close } => {
            e.sym(EventField::Instr, ids.index);
            e.price(EventField::Tick, 10_000_000);
            e.price(EventField::PrevClose, prev_close * 10_000_000);
            e.text(EventField::Symbol, "UTIX");
            e.text(EventField::Class, "TIEXXX"); // ISO 10962: an equity index
        }
        MarketEventBody::Index { px } => {
            e.sym(EventField::Index, ids.index);
            e.set(
                EventField::Px,
                EventValue::Decimal(Decimal::new(*px, -2).expect("a value of ours is small")),
            );
        }
        MarketEventBody::ReferencePrice { instr, half_ticks } => {
            e.instrument(*instr);
            e.price(EventField::Px, world.instruments[instr.index()].nano(*half_ticks) / 2);
            e.text(EventField::Source, "composite");
        }
        MarketEventBody::Revision(revision) => revise(world, revision, e),
        MarketEventBody::Comm(message) => comm(market, message, e),
        MarketEventBody::List(entry) => list(market, entry, e),
        MarketEventBody::Link(link) => {
            e.sym(EventField::Owner, link.owner + 1);
            e.sym(EventField::Group, world.groups[link.owner as usize]);
            e.sym(EventField::Linked, link.linked + 1);
            e.text(EventField::How, if link.desk.is_some() { "desk" } else { "address" });
            link.desk.into_iter().for_each(|desk| e.sym(EventField::Desk, desk + 1));
            let score = Decimal::new(link.score, -2).expect("a score of ours is small");
            e.set(EventField::LinkScore, EventValue::Decimal(score));
        }
        MarketEventBody::Position { owner, instr, qty, open_interest } => {
            e.sym(EventField::Owner, owner + 1);
            e.instrument(*instr);
            e.qty(EventField::Qty, *qty);
            e.qty(EventField::OpenInterest, *open_interest);
            e.set(EventField::Day, EventValue::Date(date_of(event.ts)));
            let is_first = event.ts == market.sim.x.start_ns;
            e.text(EventField::Source, if is_first { "start_of_day" } else { "intraday" });
        }
        MarketEventBody::Statement(statement) => cash(world, statement, event.ts, e),
        MarketEventBody::Control(request) => control(world, request, e),
    }
}

/// Sets the fields that a market of several days adds to an event of a day.
fn extra(market: &Market, body: &DayEventBody, short: Option<ShortMark>, e: &mut FrameFieldSetter<'_>) {
    let world = market.world();
    let ticket = match body {
        DayEventBody::New(t) | DayEventBody::Amend(t) | DayEventBody::Cancel(t) | DayEventBody::Reject(t) => {
            t
        }
        DayEventBody::Exec { order, liq, .. } => {
            if liq.letter() == "X" {
                e.set(EventField::TradeFlags, AUCTION);
            }
            order
        }
        DayEventBody::Trade { auction: true, .. } => return e.set(EventField::TradeFlags, AUCTION),
        DayEventBody::News { id, .. } => {
            e.text(EventField::Class, class(*id));
            return e.text(EventField::Language, "en");
        }
        _ => return,
    };
    let m = &world.members[ticket.member as usize];
    e.sym(EventField::Desk, world.desk_of(ticket.member) + 1);
    let entry = if m.algo != 0 {
        0
    } else if m.agency {
        1
    } else {
        2
    };
    e.sym(EventField::Entry, market.ids.entries[entry]);
    short.into_iter().for_each(|short| e.text(EventField::Short, short.letter()));
}

fn revise(world: &SimulatedMarket, revision: &NewsRevision, e: &mut FrameFieldSetter<'_>) {
    let symbol = &world.instruments[revision.instr.index()].symbol;
    let (language, headline) = match revision.id % 3 {
        0 => ("en", format!("Correction: {symbol} restates its forecast")),
        1 => ("de", format!("Berichtigung: {symbol} nennt eine andere Prognose")),
        _ => ("fr", format!("Rectificatif : {symbol} corrige ses prévisions")),
    };
    e.id(EventField::NewsId, &names::news_bytes(revision.id));
    e.set(EventField::Revises, EventValue::Id(InlineId::Text(&names::news_bytes(revision.revises))));
    instruments(revision.instr, e);
    e.text(EventField::Headline, &headline);
    e.text(EventField::Source, "wire");
    e.text(EventField::Class, class(revision.revises));
    e.text(EventField::Language, language);
}

fn comm(market: &Market, message: &CommMessage, e: &mut FrameFieldSetter<'_>) {
    let senders = market.ids.senders;
    let [first, second] = message.to.map(|member| (senders + member).to_le_bytes());
    let to = [first, second].concat();
    e.id(EventField::MsgId, &names::comm_bytes(message.number));
    e.text(EventField::Channel, if message.number.is_multiple_of(3) { "email" } else { "chat" });
    e.sym(EventField::From, senders + message.from);
    let to = if first == second { &to[..4] } else { &to[..] };
    e.set(EventField::To, EventValue::Syms(NameKind::Name, to));
    let symbol = message.instr.map(|instr| market.world().instruments[instr.index()].symbol.as_str());
    let number = usize::from(message.text);
    let text = match number.checked_sub(COMM_TEXTS.len()) {
        None => COMM_TEXTS[number],
        Some(number) => FIRING.get(number).copied().unwrap_or_else(|| MISSING[number - FIRING.len()].0),
    };
    match symbol {
        Some(symbol) => e.text(EventField::Text, &format!("{symbol}: {text}")),
        None => e.text(EventField::Text, text),
    }
    message.instr.into_iter().for_each(|instr| instruments(instr, e));
    if let Some(number) = message.reply_to {
        e.id(EventField::ReplyTo, &names::comm_bytes(number));
    }
    if message.changed {
        e.set(EventField::Changed, EventValue::Bool(true));
    }
}

fn list(market: &Market, entry: &ListEntry, e: &mut FrameFieldSetter<'_>) {
    let [restricted, insider, watch] = market.ids.lists;
    let (name, instr, from, to) = match *entry {
        ListEntry::Restricted { instr, span, .. } => (restricted, Some(instr), span.0, Some(span.1)),
        ListEntry::Insider { instr, from, .. } => (insider, Some(instr), from, None),
        ListEntry::Watch { instr, span, .. } => (watch, Some(instr), span.0, Some(span.1)),
        ListEntry::Sanctioned { from, to, .. } => {
            let names = market.world().names();
            (names.get(NameKind::Name, b"sanctions").expect("the name was added"), None, from, to)
        }
    };
    e.sym(EventField::Name, name);
    instr.into_iter().for_each(|instr| e.instrument(instr));
    let nanos = |ts: u64| EventValue::Nanos(UnixNanos(ts as i64));
    e.set(EventField::From, nanos(from));
    to.into_iter().for_each(|to| e.set(EventField::To, nanos(to)));
    match *entry {
        ListEntry::Restricted { party: ListedParty::Desk(desk), .. } => e.sym(EventField::Desk, desk + 1),
        ListEntry::Restricted { party: ListedParty::Account(member), .. } => {
            e.sym(EventField::Acct, member + 1)
        }
        ListEntry::Restricted { party: ListedParty::Trader(member), .. } => {
            e.sym(EventField::Trader, member + 1)
        }
        ListEntry::Watch { firm, .. } => e.sym(EventField::Firm, firm + 1),
        ListEntry::Sanctioned { party, .. } => e.sym(EventField::Party, party),
        ListEntry::Insider { instr, owner, director, .. } => {
            e.sym(EventField::Party, owner + 1);
            e.text(EventField::Role, if director { "director" } else { "adviser" });
            let issuer = issuer(&market.world().instruments[instr.index()].symbol);
            named(market.world(), EventField::Issuer, Some((NameKind::Name, &issuer)), e);
        }
    }
}

fn cash(world: &SimulatedMarket, statement: &CashStatement, ts: u64, e: &mut FrameFieldSetter<'_>) {
    let amount = |nano: i128| Amount::new(nano, -9).expect("an amount of ours is small");
    e.sym(EventField::Acct, statement.member + 1);
    e.text(EventField::Ccy, statement.ccy);
    e.id(EventField::Ref, &names::lettered::<10>(b'S', statement.number, 10));
    e.set(EventField::Opening, EventValue::Amount(amount(statement.opening)));
    e.set(EventField::Closing, EventValue::Amount(amount(statement.closing)));
    let entries = statement.entries.iter().map(|entry| {
        let (instr, amount) = (&world.instruments[entry.instr.index()].isin, amount(entry.amount));
        format!(
            "{{\"instr\":\"{instr}\",\"qty\":\"{}\",\"amt\":\"{amount}\",\"value_date\":\"{}\"}}",
            entry.qty,
            date_of(ts)
        )
    });
    let entries = format!("[{}]", entries.collect::<Vec<_>>().join(","));
    e.set(EventField::Entries, EventValue::Json(&entries));
}

fn control(world: &SimulatedMarket, request: &ControlRequest, e: &mut FrameFieldSetter<'_>) {
    const FIELDS: [EventField; 8] = [
        EventField::Venue,
        EventField::Instr,
        EventField::Firm,
        EventField::Trader,
        EventField::Owner,
        EventField::Acct,
        EventField::Desk,
        EventField::Algo,
    ];
    e.text(EventField::Action, request.action.word());
    for (field, (_, dict, name)) in FIELDS.into_iter().zip(request.scope_names()) {
        named(world, field, name.map(|name| (dict, name)), e);
    }
    named(world, EventField::By, request.requester.as_deref().map(|by| (NameKind::Name, by)), e);
    request.scope_kind.iter().for_each(|kind| e.text(EventField::ScopeKind, kind));
    request.reason.iter().for_each(|reason| e.text(EventField::Reason, reason));
    request.id.iter().for_each(|id| e.id(EventField::Id, id.as_bytes()));
    if let Some(until) = request.until {
        e.set(EventField::Until, EventValue::Nanos(UnixNanos(until as i64)));
    }
    if request.dry_run {
        e.set(EventField::DryRun, EventValue::Bool(true));
    }
    e.text(EventField::State, if request.dry_run { "rehearsed" } else { "obeyed" });
}

/// Sets a name that the world has.
fn named(
    world: &SimulatedMarket,
    field: EventField,
    name: Option<(NameKind, &str)>,
    e: &mut FrameFieldSetter<'_>,
) {
    if let Some((dict, name)) = name {
        e.sym(field, world.names().get(dict, name.as_bytes()).expect("the name was added"));
    }
}

fn instruments(instr: InstrumentId, e: &mut FrameFieldSetter<'_>) {
    let id = SimulatedMarket::tape_id(instr).0.to_le_bytes();
    e.set(EventField::Instrs, EventValue::Syms(NameKind::Instrument, &id));
}

/// Returns the name of an instrument's issuer.
pub(super) fn issuer(symbol: &str) -> String {
    format!("{symbol} plc")
}

fn class(id: u64) -> &'static str {
    ["earnings", "guidance", "analyst"][(id % 3) as usize]
}

/// The number of texts that a message of the background may have. The texts of scenes follow them.
pub(super) const TEXTS: u64 = COMM_TEXTS.len() as u64;
const COMM_TEXTS: [&str; 8] = [
    "where are you on this one?",
    "client is still working the order, more to come",
    "all done, thanks",
    "what size is left on the offer?",
    "please send the confirmation before the close",
    "spread looks wide today",
    "lunch at one?",
    "call me when it is through",
];
const AUCTION: EventValue<'static> = EventValue::Flags(&["auction", "iso", "exempt", "no_last"], 1);
