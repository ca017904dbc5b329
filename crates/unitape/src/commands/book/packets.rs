//! `unitape book CAPTURE --handler CONFIG`: the books that a handler makes of packets.

use super::Args;
use crate::output::{self, Done, Failure, grouped};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use unitape_handler::{At, BookView, Gap, Handler, Listener, Refusal, Rung, Side, Subscription};

/// Counts what is wrong; books are looked at when all has been read.
#[derive(Debug, Default)]
struct Wrong {
    refused: u64,
    first: Option<String>,
    gaps: u64,
}

impl Listener for Wrong {
    fn gap(&mut self, _: &At<'_>, _: Gap) {
        self.gaps += 1;
    }

    fn refused(&mut self, at: &At<'_>, refusal: &Refusal<'_>) {
        self.refused += 1;
        self.first.get_or_insert_with(|| {
            format!("the first at byte {}: {}: {}", at.place, refusal.code, refusal.detail)
        });
    }
}

/// Reads the packets and prints the books.
pub fn run(args: &Args, config: &Path) -> output::Result {
    let fail = |e: unitape_handler::Error| Failure::Error(e.to_string());
    let mut handler = Handler::open(config).map_err(fail)?;
    let instr = args.instr.clone().map(Subscription::Instrument);
    let asked = instr.into_iter().chain(args.group.clone().map(Subscription::Group));
    let mut some = false;
    for subscription in asked {
        handler.subscribe(subscription);
        some = true;
    }
    if !some {
        handler.subscribe(Subscription::All);
    }
    let mut wrong = Wrong::default();
    let counts = handler.replay(&args.dir, args.channel.as_deref(), &mut wrong).map_err(fail)?;
    if let Some(name) = &args.instr
        && handler.find(name).is_none()
    {
        let all = &handler.tables().instruments;
        let first: Vec<&str> = all.iter().take(10).map(|i| i.id.as_str()).collect();
        let more = if all.len() > 10 { ", …" } else { "" };
        let what = format!("no instrument {name} in these packets; there are: {}{more}", first.join(", "));
        return Err(Failure::Error(what));
    }
    let mut out = output::stdout();
    let mut stale = 0;
    for instrument in 0..handler.tables().instruments.len() as u32 {
        let Some(book) = handler.book(instrument) else { continue };
        stale += u64::from(book.is_stale());
        match args.json {
            true => line(&mut out, &handler, instrument, book, args.depth)?,
            false => table(&mut out, &handler, instrument, book, args.depth)?,
        }
    }
    out.flush()?;
    let lost = counts.unusable + counts.dropped + counts.lost_bytes;
    for (n, what) in [
        (stale, "books are stale at the end"),
        (wrong.gaps, "times something was missing on both lines"),
        (wrong.refused, "packets or messages could not be used"),
        (counts.unusable, "datagrams of which the capture has only a part, or fragments"),
        (counts.dropped, "datagrams were dropped when the capture was made"),
        (counts.lost_bytes, "bytes at the end that are no whole packet"),
    ] {
        if n > 0 {
            eprintln!("{} {what}", grouped(n));
        }
    }
    if let Some(first) = &wrong.first {
        eprintln!("{first}");
    }
    let flawed = stale + wrong.gaps + wrong.refused + lost > 0;
    Ok(if flawed { Done::Flawed } else { Done::Clean })
}

/// A book as a line of JSON.
fn line(
    out: &mut impl Write,
    handler: &Handler,
    instrument: u32,
    book: BookView<'_>,
    depth: usize,
) -> Result<(), Failure> {
    let tables = handler.tables();
    let of = &tables.instruments[instrument as usize];
    let side = |side| -> Vec<_> {
        let one = |rung: &Rung| {
            let level = rung.level();
            let mut value = json!({"px": level.px.to_string(), "qty": level.qty.to_string()});
            if let Some(orders) = level.orders {
                value["orders"] = orders.into();
            }
            value
        };
        book.levels(side).take(depth).map(one).collect()
    };
    let value = json!({
        "instr": of.id, "symbol": of.symbol, "product": tables.products[of.product as usize].id,
        "group": tables.group(instrument), "stale": book.is_stale(),
        "levels": [book.depth(Side::Buy), book.depth(Side::Sell)],
        "bids": side(Side::Buy), "asks": side(Side::Sell),
    });
    serde_json::to_writer(&mut *out, &value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// A book as a table.
fn table(
    out: &mut impl Write,
    handler: &Handler,
    instrument: u32,
    book: BookView<'_>,
    depth: usize,
) -> Result<(), Failure> {
    let tables = handler.tables();
    let of = &tables.instruments[instrument as usize];
    let mut head = of.id.clone();
    if !of.symbol.is_empty() {
        head += &format!(" {}", of.symbol);
    }
    head += &format!(" of {}", tables.group(instrument));
    if book.is_stale() {
        head += ", stale";
    }
    writeln!(out, "{head}")?;
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["orders", "qty", "bid", "ask", "qty", "orders"]);
    let rows = book.depth(Side::Buy).max(book.depth(Side::Sell)).min(depth);
    for n in 1..=rows {
        let cells = |side| match book.level(side, n).map(Rung::level) {
            Some(level) => {
                let orders = level.orders.map(|n| n.to_string()).unwrap_or_default();
                [orders, level.qty.to_string(), level.px.to_string()]
            }
            None => Default::default(),
        };
        let ([a, b, c], [f, e, d]) = (cells(Side::Buy), cells(Side::Sell));
        table.add_row([a, b, c, d, e, f]);
    }
    for column in 0..3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    Ok(writeln!(out, "{table}\n")?)
}
