//! Orders, executions, prints and best prices as fixed-width records, for the layout and the mapping `sim-day`.
//!
//! ```text
//! HUNITAPE SIM DAY 20260302
//! N000000000007 20260302080000000000123 XLONGB00S0000019 O0000000001B…   an order: N new, A amended, C cancelled
//! X…                                                                     an execution
//! P…                                                                     a print
//! Q…                                                                     best bid and offer
//! S… U…                                                                  a phase of a book, its status
//! R000000000001 20260302075000000000000 GB00S0000019…                    reference data of an instrument
//! G000000000060 20260302075000000000000 OWN01     …                      an owner and its group
//! T000000020000 000000004100 …                                           records in all, and of each sort
//! ```
//!
//! (The blanks are for the eye: columns follow each other without any.) The first byte gives the type of the record,
//! and every record of a type has the same length; a line feed ends it. Prices have nine decimal places without a
//! point, and times are UTC to the nanosecond. A missing value is blank. Records are numbered from 1 without a gap.
//!
//! The header has the day on which the simulated day begins; the trailer must be asked for with [`FixedDayWriter::end`].

use super::config::DAY_NS;
use super::event::{DayEvent, DayEventBody, OrderTicket};
use super::names;
use super::world::SimulatedMarket;
use crate::book::BestLevel;
use crate::wire::{civil, put_digits};

/// Writes the records of one day. Nothing is allocated for a record once `out` is large enough.
#[derive(Debug)]
pub struct FixedDayWriter {
    /// Venue and instrument of each book.
    books: Vec<[u8; 16]>,
    /// Trader, account, owner, firm, capacity and algorithm of each member.
    members: Vec<[u8; 43]>,
    /// Records so far: orders, executions, prints, best prices, others.
    written: [u64; 5],
    has_begun: bool,
    day: u64,
    day_text: [u8; 8],
}

impl FixedDayWriter {
    /// Makes a writer for a day with this world that begins at `start_ns`, nanoseconds since the epoch.
    pub fn new(world: &SimulatedMarket, start_ns: u64) -> FixedDayWriter {
        let book = |book: u32| {
            let mut room = [b' '; 16];
            fill(&mut room, &[(4, world.venue_name(book)), (12, world.isin(book))]);
            room
        };
        let member = |m: u32| {
            let capacity = if world.members[m as usize].agency { "A" } else { "P" };
            let mut room = [b' '; 43];
            let columns = [
                (10, world.trader_name(m)),
                (10, world.account_name(m)),
                (10, world.owner_name(m)),
                (4, world.firm_name(m)),
                (1, capacity),
                (8, world.algo_name(m).unwrap_or_default()),
            ];
            fill(&mut room, &columns);
            room
        };
        let day = start_ns / DAY_NS;
        FixedDayWriter {
            books: (0..world.books() as u32).map(book).collect(),
            members: (0..world.members.len() as u32).map(member).collect(),
            written: [0; 5],
            has_begun: false,
            day,
            day_text: day_text(day),
        }
    }

    /// Appends the record of an event, after the header if it is the first. Returns false if the event has no record.
    pub fn write(&mut self, world: &SimulatedMarket, event: &DayEvent, out: &mut Vec<u8>) -> bool {
        match event.body {
            DayEventBody::New(ref t) => self.order(b'N', world, event, t, out),
            DayEventBody::Amend(ref t) => self.order(b'A', world, event, t, out),
            DayEventBody::Cancel(ref t) => self.order(b'C', world, event, t, out),
            DayEventBody::Reject(_) => return false,
            DayEventBody::Exec { ref order, px, qty, match_id, liq, .. } => {
                self.begin(b'X', EXEC, event, order.book, out);
                self.identity(order, out);
                out.extend_from_slice(&names::match_bytes(match_id));
                out.extend_from_slice(liq.letter().as_bytes());
                price(world, order.book, Some(px), out);
                quantity(Some(qty), out);
            }
            DayEventBody::Trade { book, px, qty, match_id, auction } => {
                self.begin(b'P', PRINT, event, book, out);
                out.extend_from_slice(&names::match_bytes(match_id));
                price(world, book, Some(px), out);
                quantity(Some(qty), out);
                out.extend_from_slice(if auction { b"AUC " } else { b"    " });
            }
            DayEventBody::Bbo { book, bid, ask } => {
                self.begin(b'Q', BEST, event, book, out);
                for best in [bid, ask] {
                    price(world, book, best.map(|b: BestLevel| b.px), out);
                    quantity(best.map(|b| b.qty), out);
                }
            }
            DayEventBody::Session { book, phase, px } => {
                self.begin(b'S', OTHER, event, book, out);
                out.extend_from_slice(&word::<8>(phase.word()));
                price(world, book, px, out);
            }
            DayEventBody::Status { book, halted } => {
                self.begin(b'U', OTHER, event, book, out);
                out.extend_from_slice(&word::<8>(if halted { "halted" } else { "trading" }));
                out.extend_from_slice(&word::<12>(if halted { "regulatory" } else { "resumed" }));
            }
            DayEventBody::Ref { instr } => {
                self.begin_record(b'R', OTHER, event, out);
                let listed = &world.instruments[instr.index()];
                out.extend_from_slice(&word::<12>(&listed.isin));
                out.extend_from_slice(&word::<12>(&listed.symbol));
                out.extend_from_slice(&word::<3>(listed.ccy));
                nano(Some(listed.tick_nano), out);
                nano(Some(listed.nano(listed.reference)), out);
                quantity(Some(listed.adv), out);
                quantity(Some(1), out);
                out.extend_from_slice(&[b'0' + listed.tier]);
            }
            DayEventBody::Party { owner } => {
                self.begin_record(b'G', OTHER, event, out);
                out.extend_from_slice(&word::<10>(world.owner_of(owner)));
                out.extend_from_slice(&word::<10>(world.group_of(owner)));
            }
            DayEventBody::OrderRecv { .. }
            | DayEventBody::Parent { .. }
            | DayEventBody::News { .. }
            | DayEventBody::List(_)
            | DayEventBody::Position { .. }
            | DayEventBody::Payment(_) => {
                return false;
            }
        }
        out.push(b'\n');
        true
    }

    /// Appends the trailer, and the header before it if there was no record.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.header(out);
        out.push(b'T');
        number(self.written.iter().sum(), out);
        self.written.iter().for_each(|n| number(*n, out));
        out.push(b'\n');
    }

    fn order(
        &mut self,
        record_type: u8,
        world: &SimulatedMarket,
        event: &DayEvent,
        t: &OrderTicket,
        out: &mut Vec<u8>,
    ) {
        self.begin(record_type, ORDER, event, t.book, out);
        self.identity(t, out);
        // A cancel says whose order it was, not its terms; an order that a price elected does not wait for one.
        let stands = record_type != b'C';
        out.extend_from_slice(&word::<7>(t.kind.word()));
        out.extend_from_slice(&word::<3>(t.tif.word()));
        price(world, t.book, t.px.filter(|_| stands), out);
        price(world, t.book, t.stop_px.filter(|_| t.kind != super::OrderKind::Market), out);
        quantity(Some(t.qty).filter(|_| stands), out);
        match t.parent {
            0 => out.extend_from_slice(&[b' '; 10]),
            parent => out.extend_from_slice(&names::parent_bytes(parent)),
        }
    }

    /// Begins every record of a book.
    fn begin(&mut self, record_type: u8, count: usize, event: &DayEvent, book: u32, out: &mut Vec<u8>) {
        self.begin_record(record_type, count, event, out);
        out.extend_from_slice(&self.books[book as usize]);
    }

    /// Begins every record.
    fn begin_record(&mut self, record_type: u8, count: usize, event: &DayEvent, out: &mut Vec<u8>) {
        self.header(out);
        self.written[count] += 1;
        out.push(record_type);
        number(self.written.iter().sum(), out);
        if event.ts / DAY_NS != self.day {
            self.day = event.ts / DAY_NS;
            self.day_text = day_text(self.day);
        }
        out.extend_from_slice(&self.day_text);
        let (second, mut clock) = (event.ts / 1_000_000_000, [0; 15]);
        put_digits(&mut clock[..2], second / 3600 % 24);
        put_digits(&mut clock[2..4], second / 60 % 60);
        put_digits(&mut clock[4..6], second % 60);
        put_digits(&mut clock[6..], event.ts % 1_000_000_000);
        out.extend_from_slice(&clock);
    }

    fn header(&mut self, out: &mut Vec<u8>) {
        if !self.has_begun {
            self.has_begun = true;
            out.extend_from_slice(b"HUNITAPE SIM DAY ");
            out.extend_from_slice(&self.day_text);
            out.push(b'\n');
        }
    }

    fn identity(&self, t: &OrderTicket, out: &mut Vec<u8>) {
        out.extend_from_slice(&names::oid_bytes(t.oid));
        out.extend_from_slice(t.side.letter().as_bytes());
        out.extend_from_slice(&self.members[t.member as usize]);
    }
}

/// Places in `written`.
const ORDER: usize = 0;
const EXEC: usize = 1;
const PRINT: usize = 2;
const BEST: usize = 3;
const OTHER: usize = 4;

fn price(world: &SimulatedMarket, book: u32, ticks: Option<i64>, out: &mut Vec<u8>) {
    nano(ticks.map(|ticks| world.listed(book).nano(ticks)), out);
}

/// Writes a price in units of 1e-9.
fn nano(px: Option<i64>, out: &mut Vec<u8>) {
    let Some(px) = px else { return out.extend_from_slice(&[b' '; 19]) };
    let mut room = [0; 19];
    put_digits(&mut room, px as u64);
    out.extend_from_slice(&room);
}

fn quantity(qty: Option<i64>, out: &mut Vec<u8>) {
    match qty {
        None => out.extend_from_slice(&[b' '; 12]),
        Some(qty) => number(qty as u64, out),
    }
}

fn number(n: u64, out: &mut Vec<u8>) {
    assert!(n < 1_000_000_000_000, "{n} has more than twelve digits");
    let mut room = [0; 12];
    put_digits(&mut room, n);
    out.extend_from_slice(&room);
}

fn day_text(day: u64) -> [u8; 8] {
    let (year, month, day) = civil(day);
    let mut room = [0; 8];
    put_digits(&mut room[..4], year);
    put_digits(&mut room[4..6], month);
    put_digits(&mut room[6..], day);
    room
}

fn word<const N: usize>(text: &str) -> [u8; N] {
    let mut room = [b' '; N];
    room[..text.len()].copy_from_slice(text.as_bytes());
    room
}

/// Puts texts into columns of these widths, one after the other.
fn fill(mut room: &mut [u8], columns: &[(usize, &str)]) {
    for (width, text) in columns {
        let (column, rest) = room.split_at_mut(*width);
        column[..text.len()].copy_from_slice(text.as_bytes());
        room = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sim, SimConfig};
    use super::*;

    fn day(start_ns: u64) -> Vec<u8> {
        let config = SimConfig {
            seed: 3,
            events: 6_000,
            instruments: 12,
            span_ns: 3_600_000_000_000,
            start_ns,
            ..SimConfig::default()
        };
        let mut sim = Sim::new(config).expect("a good config");
        let (mut fixed, mut out) = (FixedDayWriter::new(sim.world(), start_ns), Vec::new());
        while sim.step().is_some() {
            sim.last_events().iter().for_each(|e| _ = fixed.write(sim.world(), e, &mut out));
        }
        fixed.end(&mut out);
        out
    }

    /// One record a byte longer than its type shifts every later column; a trailer that counts wrongly makes a whole
    /// file look cut.
    #[test]
    fn records_of_a_sort_have_one_length_and_the_trailer_counts_them() {
        let text = String::from_utf8(day(1_772_438_400_000_000_000)).expect("ascii");
        let (mut counts, mut last) = ([0u64; 5], 0);
        let mut sorts = std::collections::BTreeSet::new();
        for line in text.lines() {
            let record_type = line.as_bytes()[0];
            sorts.insert(record_type as char);
            let (counter, length) = match record_type {
                b'H' => (None, 25),
                b'T' => (None, 73),
                b'N' | b'A' | b'C' => (Some(ORDER), 177),
                b'X' => (Some(EXEC), 147),
                b'P' => (Some(PRINT), 95),
                b'Q' => (Some(BEST), 114),
                b'S' => (Some(OTHER), 79),
                b'U' => (Some(OTHER), 72),
                b'R' => (Some(OTHER), 126),
                b'G' => (Some(OTHER), 56),
                _ => panic!("{line}"),
            };
            assert_eq!(line.len(), length, "{line}");
            if let Some(counter) = counter {
                counts[counter] += 1;
                last += 1;
                assert_eq!(line[1..13].parse(), Ok(last), "{line}");
            }
        }
        assert_eq!(sorts.into_iter().collect::<String>(), "ACGHNPQRSTUX");
        assert!(text.starts_with("HUNITAPE SIM DAY 20260302\n"));
        let trailer: String = counts.iter().map(|n| format!("{n:012}")).collect();
        assert!(text.ends_with(&format!("\nT{last:012}{trailer}\n")), "{counts:?}");
    }

    /// A day that passes midnight must not write the times of its second half a day too early.
    #[test]
    fn midnight_changes_the_date() {
        let text =
            String::from_utf8(day(1_772_438_400_000_000_000 + 15 * 3_600_000_000_000 + 1_800_000_000_000));
        let text = text.expect("ascii");
        let dates: Vec<&str> = text.lines().filter(|l| l.starts_with('N')).map(|l| &l[13..21]).collect();
        assert!(dates.contains(&"20260302") && dates.contains(&"20260303") && dates.is_sorted());
        assert!(text.starts_with("HUNITAPE SIM DAY 20260302\n"));
    }

    /// A file without a trailer is a file that was cut, also on a day on which nothing happens.
    #[test]
    fn a_day_without_records_has_header_and_trailer() {
        let sim = Sim::new(SimConfig { instruments: 40, ..SimConfig::default() }).expect("a good config");
        let mut out = Vec::new();
        FixedDayWriter::new(sim.world(), 0).end(&mut out);
        let zeros = "0".repeat(72);
        assert_eq!(String::from_utf8(out).expect("ascii"), format!("HUNITAPE SIM DAY 19700101\nT{zeros}\n"));
    }
}
