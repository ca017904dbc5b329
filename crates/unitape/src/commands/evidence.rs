//! The evidence of an alert for people and as JSON: its events, and the books before and after.

use super::book::ladder;
use super::tape::readable;
use crate::output::{CommandFailure, say_to};
use serde_json::{Value, json};
use std::io::Write;
use unitape_book::PriceLevel;
use unitape_case::evidence::{AlertEvidence, BookDepthRecord, EvidenceLine};

/// Prints an event that an alert names, or why it cannot be shown.
pub fn print_evidence_line(out: &mut impl Write, line: &EvidenceLine) -> Result<(), CommandFailure> {
    match &line.event {
        Ok(event) => {
            // Escaped already.
            out.write_all(&readable(event.json.as_bytes()))?;
            out.write_all(b"\n")?;
        }
        Err(reason) => say_to!(*out, "{:>9}  {reason}", line.seq),
    }
    Ok(())
}

/// Prints the books before and after the event that completed an alert, or why there are none.
pub fn print_books(
    out: &mut impl Write,
    trigger_seq: u64,
    evidence: &AlertEvidence,
) -> Result<(), CommandFailure> {
    for (moment, books) in [("before", &evidence.before), ("after", &evidence.after)] {
        for book in books {
            let BookDepthRecord { venue, instr, basis, bids, asks } = book;
            say_to!(*out, "book {moment} event {trigger_seq}: {instr} at {venue}, from {basis}");
            let orders = |_, level: &PriceLevel| level.orders.map(|n| n.to_string()).unwrap_or_default();
            ladder::print(out, [bids, asks], [bids.len(), asks.len()], orders)?;
        }
    }
    if let Some(no_book_reason) = &evidence.without_books {
        say_to!(*out, "no book: {no_book_reason}");
    }
    Ok(())
}

/// Writes an event that an alert names as JSON.
pub fn evidence_line_json(line: &EvidenceLine) -> Value {
    let mut value = json!({ "seq": line.seq, "position": line.position.map(|position| position.0) });
    match &line.event {
        // A line that is not JSON becomes a string.
        Ok(event) => {
            value["event"] = serde_json::from_str(&event.json).unwrap_or_else(|_| event.json.as_str().into());
        }
        Err(reason) => value["missing"] = reason.as_str().into(),
    }
    value
}

/// Writes the books before and after as JSON.
pub fn books_json(evidence: &AlertEvidence) -> Value {
    let books = |books: &[BookDepthRecord]| books.iter().map(book_json).collect::<Vec<_>>();
    json!({ "before": books(&evidence.before), "after": books(&evidence.after) })
}

fn book_json(book: &BookDepthRecord) -> Value {
    let level = |level: &PriceLevel| {
        let mut value = json!({ "px": level.px.to_string(), "qty": level.qty.to_string() });
        if let Some(orders) = level.orders {
            value["orders"] = orders.into();
        }
        value
    };
    let side = |levels: &[PriceLevel]| levels.iter().map(level).collect::<Vec<_>>();
    json!({
        "venue": book.venue, "instr": book.instr, "basis": book.basis, "bids": side(&book.bids), "asks": side(&book.asks),
    })
}
