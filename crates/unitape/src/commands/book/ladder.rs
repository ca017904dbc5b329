//! The levels of a book as a table: bids and asks beside each other, the best on top.

use crate::output::{CommandFailure, say_lines, say_to};
use std::io::Write;
use unitape_book::PriceLevel;
use unitape_model::Side;

/// Prints the levels of each side, best first, and counts the other levels up to `depths`. `orders` returns
/// the text in the column next to a level.
pub fn print(
    out: &mut impl Write,
    [bids, asks]: [&[PriceLevel]; 2],
    depths: [usize; 2],
    orders: impl Fn(Side, &PriceLevel) -> String,
) -> Result<(), CommandFailure> {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["orders", "qty", "bid", "ask", "qty", "orders"]);
    for n in 0..bids.len().max(asks.len()) {
        let cells = |side, levels: &[PriceLevel]| match levels.get(n) {
            Some(level) => [orders(side, level), level.qty.to_string(), level.px.to_string()],
            None => Default::default(),
        };
        let ([a, b, c], [f, e, d]) = (cells(Side::Buy, bids), cells(Side::Sell, asks));
        table.add_row([a, b, c, d, e, f]);
    }
    for column in 0..3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    say_lines(out, &table)?;
    let hidden_levels = [depths[0] - bids.len(), depths[1] - asks.len()];
    if hidden_levels != [0, 0] {
        say_to!(*out, "and {} more levels of bids, {} of asks", hidden_levels[0], hidden_levels[1]);
    }
    Ok(())
}
