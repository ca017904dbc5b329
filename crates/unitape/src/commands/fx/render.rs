//! Best prices and books of quotes, for people and as JSON.

use crate::output::{CommandFailure, escape_line, say_lines, say_to};
use std::io::{self, Write};
use unitape_book::fx::{BestPrice, BestQuote, FxBookView, FxQuoteView, SweepView};
use unitape_model::{InlineId, Side, UnixNanos};
use unitape_run::address::utc;

/// Appends a best price as a line of JSON, in the form of rule 2.
pub fn price_json(out: &mut Vec<u8>, price: &BestPrice<'_>) {
    write_price(out, price).expect("memory takes all");
}

fn write_price(out: &mut Vec<u8>, price: &BestPrice<'_>) -> io::Result<()> {
    let BestPrice { ts, pair, value_date, size, .. } = price;
    write!(
        out,
        r#"{{"ts":{},"instr":"{pair}","value_date":"{value_date}","size":"{size}","state":"{}""#,
        ts.0,
        price.state().name()
    )?;
    for (name, side) in ["bid", "ask"].into_iter().zip(Side::BOTH) {
        write!(out, r#","{name}":"#)?;
        let Some(quote) = price.best(side) else {
            out.write_all(b"null")?;
            continue;
        };
        write!(out, r#"{{"px":"{}""#, quote.px)?;
        write_origin(out, quote.bank, quote.tier, quote.quote_id)?;
        write_flags(out, quote.full_amount, quote.inverted)?;
        out.write_all(b"}")?;
    }
    for (name, side) in ["bid_sweep", "ask_sweep"].into_iter().zip(Side::BOTH) {
        write!(out, r#","{name}":"#)?;
        let Some(sweep) = price.sweep(side) else {
            out.write_all(b"null")?;
            continue;
        };
        write!(out, r#"{{"notional":"{}","qty":"{size}","legs":["#, sweep.notional())?;
        for (n, leg) in sweep.legs().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(out, r#"{comma}{{"px":"{}","qty":"{}""#, leg.quote.px, leg.qty)?;
            write_origin(out, leg.quote.bank, leg.quote.tier, leg.quote.quote_id)?;
            out.write_all(b"}")?;
        }
        out.write_all(b"]}")?;
    }
    out.write_all(b"}\n")
}

/// Prints the books of a pair and date as a line of JSON.
pub fn book_json(out: &mut impl Write, ts: UnixNanos, book: &FxBookView<'_>) -> Result<(), CommandFailure> {
    write!(out, r#"{{"ts":{},"instr":"{}","value_date":"{}""#, ts.0, book.pair(), book.value_date())?;
    for (name, side) in ["bids", "asks"].into_iter().zip(Side::BOTH) {
        write!(out, r#","{name}":["#)?;
        for (n, quote) in book.quotes(side).enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(out, r#"{comma}{{"px":"{}","qty":"{}""#, quote.px, quote.qty)?;
            write_origin(out, quote.bank, quote.tier, quote.quote_id)?;
            write!(out, r#","placed":{}"#, quote.placed.0)?;
            if let Some(expiry_time) = quote.valid_until {
                write!(out, r#","valid_until":{}"#, expiry_time.0)?;
            }
            write_flags(out, quote.full_amount, quote.inverted)?;
            if let Some(off) = quote.off {
                write!(out, r#","off":"{}""#, off.name())?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"]")?;
    }
    Ok(out.write_all(b"}\n")?)
}

fn write_origin(
    out: &mut impl Write,
    bank: &str,
    tier: u64,
    quote_id: Option<InlineId<'_>>,
) -> io::Result<()> {
    out.write_all(br#","bank":"#)?;
    serde_json::to_writer(&mut *out, bank)?;
    write!(out, r#","tier":{tier}"#)?;
    match quote_id {
        Some(InlineId::Number(number)) => write!(out, r#","quote_id":{number}"#),
        Some(InlineId::Text(text)) => {
            out.write_all(br#","quote_id":"#)?;
            Ok(serde_json::to_writer(&mut *out, &String::from_utf8_lossy(text))?)
        }
        None => Ok(()),
    }
}

fn write_flags(out: &mut impl Write, full_amount: bool, inverted: bool) -> io::Result<()> {
    if full_amount {
        out.write_all(br#","full_amount":true"#)?;
    }
    if inverted {
        out.write_all(br#","inverted":true"#)?;
    }
    Ok(())
}

/// Prints the heading of the table of best prices.
pub fn price_heading(out: &mut impl Write) -> Result<(), CommandFailure> {
    say_to!(
        *out,
        "{:29}  {:7}  {:10}  {:>12}  {:22}  {:22}  {:22}  {:22}  state",
        "time, UTC",
        "pair",
        "value date",
        "size",
        "bid",
        "ask",
        "bid sweep",
        "ask sweep"
    );
    Ok(())
}

/// Appends a best price as a row of the table.
pub fn price_row(out: &mut Vec<u8>, price: &BestPrice<'_>) {
    let [bid, ask] =
        Side::BOTH.map(|side| price.best(side).as_ref().map_or_else(|| "-".to_owned(), best_cell));
    let [bids, asks] =
        Side::BOTH.map(|side| price.sweep(side).as_ref().map_or_else(|| "-".to_owned(), sweep_cell));
    let row = format!(
        "{:29}  {:7}  {:10}  {:>12}  {bid:22}  {ask:22}  {bids:22}  {asks:22}  {}",
        utc(price.ts.0),
        price.pair,
        price.value_date.to_string(),
        price.size.to_string(),
        price.state().name()
    );
    out.extend_from_slice(escape_line(&row).as_bytes());
    out.push(b'\n');
}

fn best_cell(quote: &BestQuote<'_>) -> String {
    let words = quote_words(quote.full_amount, quote.inverted, None);
    format!("{} {}/{}{words}", quote.px, quote.bank, quote.tier)
}

fn sweep_cell(sweep: &SweepView<'_>) -> String {
    format!("{} in {}", sweep.notional(), sweep.legs().len())
}

fn quote_words(full_amount: bool, inverted: bool, off: Option<&'static str>) -> String {
    let words = [full_amount.then_some("full"), inverted.then_some("inverted"), off];
    words.into_iter().flatten().map(|word| format!(" {word}")).collect()
}

/// Prints a book as a table: bids and asks beside each other, the best on top.
pub fn book_table(out: &mut impl Write, ts: UnixNanos, book: &FxBookView<'_>) -> Result<(), CommandFailure> {
    let sides = Side::BOTH.map(|side| book.quotes(side).collect::<Vec<_>>());
    let [bids, asks] = [0, 1].map(|side: usize| sides[side].len());
    say_to!(*out, "{} for {}, {bids} bids and {asks} asks, {}", book.pair(), book.value_date(), utc(ts.0));
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["bank", "qty", "bid", "ask", "qty", "bank"]);
    for n in 0..bids.max(asks) {
        let cells = |quote: Option<&FxQuoteView<'_>>| match quote {
            Some(quote) => {
                let off = quote.off.map(|off| off.name());
                let words = quote_words(quote.full_amount, quote.inverted, off);
                let bank = format!("{}/{}{words}", quote.bank, quote.tier);
                [escape_line(&bank).into_owned(), quote.qty.to_string(), quote.px.to_string()]
            }
            None => Default::default(),
        };
        let ([a, b, c], [f, e, d]) = (cells(sides[0].get(n)), cells(sides[1].get(n)));
        table.add_row([a, b, c, d, e, f]);
    }
    for column in 0..3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    say_lines(out, &table)?;
    Ok(writeln!(out)?)
}
