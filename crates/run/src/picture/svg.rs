//! A picture as SVG: one file, without script, style or anything from outside.
//!
//! Colours suit the colour-blind (blue bids, orange asks), and no meaning rests on colour alone: bids lie below, asks above, and
//! each kind of mark has a shape of its own. All text is escaped.

use super::{Lifeline, Picture, PictureColumn, StepKind};
use std::collections::BTreeMap;
use std::fmt::Write;
use unitape_book::PriceLevel;
use unitape_model::{Price, Side, UnixNanos, UtcMoment};

impl Picture {
    /// Returns the picture as an SVG document, `width` × `height` pixels, at least 320 × 240.
    pub fn svg(&self, width: u32, height: u32) -> String {
        let scale = PictureScale::new(self, f64::from(width.max(320)), f64::from(height.max(240)));
        let mut out = String::new();
        scale.write_head(self, &mut out);
        scale.draw_grid(self, &mut out);
        scale.best_prices(self, &mut out);
        for line in &self.lifelines {
            scale.draw_lifeline(line, self.until, &mut out);
        }
        scale.draw_trades(self, &mut out);
        scale.draw_axes(self, &mut out);
        scale.draw_legend(self, &mut out);
        out += "</svg>\n";
        out
    }
}

/// Returns text as XML text: the five characters with a meaning are escaped, and characters that XML forbids are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Control characters, and marks that change the direction of text, could make the text look different.
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fffe}'..='\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Where times and prices are on the page.
struct PictureScale {
    width: f64,
    height: f64,
    start_ns: i64,
    end_ns: i64,
    lowest_ticks: i64,
    high: i64,
    /// Half the height of a cell, as a price.
    half_cell: f64,
}

impl PictureScale {
    fn new(picture: &Picture, width: f64, height: f64) -> Self {
        let (low, high, cell) = price_range(picture);
        Self {
            width,
            height,
            start_ns: picture.since.0,
            end_ns: picture.until.0,
            lowest_ticks: low,
            high,
            half_cell: cell as f64 / 2.0,
        }
    }

    fn x(&self, ts: UnixNanos) -> f64 {
        let past = |ts: i64| (i128::from(ts) - i128::from(self.start_ns)) as f64;
        let part = past(ts.0.clamp(self.start_ns, self.end_ns)) / past(self.end_ns);
        LEFT + part * (self.width - LEFT - RIGHT)
    }

    fn y(&self, px: f64) -> f64 {
        let part = (px - self.lowest_ticks as f64) / (self.high as f64 - self.lowest_ticks as f64);
        self.height - BOTTOM - part.clamp(0.0, 1.0) * (self.height - TOP - BOTTOM)
    }

    fn y_of(&self, px: Price) -> f64 {
        self.y(px.0 as f64)
    }

    fn write_head(&self, picture: &Picture, out: &mut String) {
        let (width, height) = (self.width, self.height);
        let title = escape(&format!("{} at {}", picture.instrument, picture.venue));
        let (since, until) = (UtcMoment(picture.since), UtcMoment(picture.until));
        _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <title>{title}, {since} to {until} UTC</title>\n\
             <desc>{} columns of the book, {} trades, {} orders</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"16\" font-size=\"13\">{title}</text>\n",
            picture.columns.len(),
            picture.trades.len(),
            picture.lifelines.len(),
        );
    }

    /// Draws the levels. Equal levels of columns side by side are one cell.
    fn draw_grid(&self, picture: &Picture, out: &mut String) {
        let size_max = picture
            .columns
            .iter()
            .flat_map(column_levels)
            .map(|(_, level)| shade_size(level))
            .fold(0.0, f64::max);
        // Open cells by side and price: since when, and of which size.
        let mut open_cells: BTreeMap<(bool, i64), (UnixNanos, f64)> = BTreeMap::new();
        let mut draw = |(is_bid, px): (bool, i64), from: UnixNanos, to: UnixNanos, size: f64| {
            let (left, right) = (self.x(from), self.x(to));
            let (top, bottom) = (self.y(px as f64 + self.half_cell), self.y(px as f64 - self.half_cell));
            let share = if size_max > 0.0 { (size.ln_1p() / size_max.ln_1p()).clamp(0.08, 1.0) } else { 0.5 };
            let fill = if is_bid { BID } else { ASK };
            _ = writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" fill-opacity=\"{:.2}\"/>",
                (right - left).max(0.3),
                (bottom - top).max(0.5),
                share * 0.75,
            );
        };
        for column in &picture.columns {
            let now: BTreeMap<(bool, i64), f64> = column_levels(column)
                .filter(|(_, level)| (self.lowest_ticks..=self.high).contains(&level.px.0))
                .map(|(is_bid, level)| ((is_bid, level.px.0), shade_size(level)))
                .collect();
            open_cells.retain(|key, (from, size)| {
                let holds = now.get(key) == Some(size);
                if !holds {
                    draw(*key, *from, column.ts, *size);
                }
                holds
            });
            for (key, size) in now {
                open_cells.entry(key).or_insert((column.ts, size));
            }
        }
        for (key, (from, size)) in open_cells {
            draw(key, from, picture.until, size);
        }
    }

    fn best_prices(&self, picture: &Picture, out: &mut String) {
        for (is_bid, colour) in [(true, BID_LINE), (false, ASK_LINE)] {
            let mut path = String::new();
            let mut is_drawn = false;
            for (n, step) in picture.best.iter().enumerate() {
                let Some(px) = (if is_bid { step.bid } else { step.ask }) else {
                    is_drawn = false;
                    continue;
                };
                let price_end = picture.best.get(n + 1).map_or(picture.until, |next| next.ts);
                let y = self.y_of(px);
                let command = if is_drawn { 'L' } else { 'M' };
                _ = write!(path, "{command}{:.1} {y:.1}H{:.1}", self.x(step.ts), self.x(price_end));
                is_drawn = true;
            }
            if !path.is_empty() {
                _ = writeln!(
                    out,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>"
                );
            }
        }
    }

    fn draw_trades(&self, picture: &Picture, out: &mut String) {
        for trade in &picture.trades {
            let (x, y) = (self.x(trade.ts), self.y_of(trade.px));
            let (shape, word) = match trade.aggressor {
                Some(Side::Buy) => (format!("M{:.1} {:.1}l5 8h-10z", x, y + 4.0), "buyer"),
                Some(Side::Sell) => (format!("M{:.1} {:.1}l5 -8h-10z", x, y - 4.0), "seller"),
                None => (format!("M{:.1} {:.1}h5v5h-5z", x - 2.5, y - 2.5), "nobody named"),
            };
            _ = writeln!(
                out,
                "<path d=\"{shape}\" fill=\"#111111\" stroke=\"#ffffff\" stroke-width=\"0.7\"><title>trade {} at {}, {} UTC, \
                 aggressor: {word}, event {}</title></path>",
                escape(&trade.qty),
                trade.px,
                UtcMoment(trade.ts),
                trade.seq
            );
        }
    }

    fn draw_lifeline(&self, line: &Lifeline, until: UnixNanos, out: &mut String) {
        let Some(mut px) = line.px else { return };
        let Some(first_step) = line.steps.first() else { return };
        let begins_before = first_step.kind != StepKind::New;
        let segment_start = if begins_before { UnixNanos(self.start_ns) } else { first_step.ts };
        let mut path = format!("M{:.1} {:.1}", self.x(segment_start), self.y_of(px));
        let mut marks = String::new();
        let mut is_gone = false;
        for step in &line.steps {
            _ = write!(path, "H{:.1}", self.x(step.ts));
            if let (StepKind::Amend | StepKind::New, Some(next)) = (step.kind, step.px) {
                px = next;
                _ = write!(path, "V{:.1}", self.y_of(px));
            }
            let (x, y) = (self.x(step.ts), self.y_of(px));
            let shape = match step.kind {
                StepKind::New => {
                    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"#ffffff\" {STROKE}>")
                }
                StepKind::Amend => format!(
                    "<path d=\"M{x:.1} {:.1}l3.5 3.5l-3.5 3.5l-3.5 -3.5z\" fill=\"#ffffff\" {STROKE}>",
                    y - 3.5
                ),
                StepKind::Fill => {
                    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{ORDER}\" {STROKE}>")
                }
                StepKind::Cancel => format!(
                    "<path d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\" fill=\"none\" {STROKE}>",
                    x - 3.5,
                    y - 3.5
                ),
            };
            let tag = if shape.starts_with("<circle") { "circle" } else { "path" };
            let qty = match (&step.qty, &step.qty_reduced) {
                (Some(qty), _) => format!(" {qty}"),
                (None, Some(reduction)) => format!(" by -{reduction}"),
                (None, None) => String::new(),
            };
            let price_text = step.px.map(|px| format!(" at {px}")).unwrap_or_default();
            let owner = line.owner.as_deref().map(|owner| format!(", {owner}")).unwrap_or_default();
            let words = format!(
                "order {}{owner}: {}{qty}{price_text}, {} UTC, event {}",
                line.oid,
                step.kind.name(),
                UtcMoment(step.ts),
                step.seq
            );
            _ = writeln!(marks, "{shape}<title>{}</title></{tag}>", escape(&words));
            is_gone = step.kind == StepKind::Cancel;
        }
        if !is_gone && line.steps.last().is_none_or(|step| step.kind != StepKind::Fill) {
            _ = write!(path, "H{:.1}", self.x(until));
        }
        let dash = match line.side {
            Some(Side::Sell) => " stroke-dasharray=\"5 2\"",
            _ => "",
        };
        _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"#ffffff\" stroke-width=\"3.4\"/>");
        _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{ORDER}\" stroke-width=\"1.6\"{dash}/>");
        *out += &marks;
    }

    fn draw_axes(&self, picture: &Picture, out: &mut String) {
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        _ = writeln!(
            out,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#444444\" stroke-width=\"1\"/>"
        );
        // Marks are at whole multiples of the distance of two levels.
        let (low, high) = (i128::from(self.lowest_ticks), i128::from(self.high));
        let cell = ((self.half_cell * 2.0) as i128).max(1);
        let step = cell * ((high - low) / cell / PRICE_MARKS).max(1);
        let first_line = low.div_euclid(step) + 1;
        for px in (first_line..).map(|n| n * step).take_while(|px| *px <= high) {
            let px = Price(px as i64);
            let y = self.y_of(px);
            _ = writeln!(
                out,
                "<path d=\"M{:.1} {y:.1}h4\" stroke=\"#444444\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 4.0,
                LEFT - 7.0,
                y + 4.0,
                short_price(px)
            );
        }
        let span = picture.until.0.saturating_sub(picture.since.0);
        for n in 0..=TIME_MARKS {
            let ts = UnixNanos(interpolate(picture.since.0, picture.until.0, n, TIME_MARKS));
            let x = self.x(ts);
            let anchor = match n {
                0 => "start",
                n if n == TIME_MARKS => "end",
                _ => "middle",
            };
            _ = writeln!(
                out,
                "<path d=\"M{x:.1} {bottom:.1}v4\" stroke=\"#444444\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                bottom + 16.0,
                clock_label(ts, span)
            );
        }
        let day = UtcMoment(picture.since).to_string();
        _ = writeln!(
            out,
            "<text x=\"{right}\" y=\"16\" text-anchor=\"end\">{} UTC</text>",
            day.split(' ').next().unwrap_or_default()
        );
    }

    fn draw_legend(&self, picture: &Picture, out: &mut String) {
        let y = self.height - 8.0;
        let mut words = vec![
            "blue: bids, orange: asks (darker: larger)".to_owned(),
            "▲ ▼ trades by aggressor".to_owned(),
            "○ new ◇ amend ● fill ✕ cancel (dashed: sell)".to_owned(),
        ];
        if picture.lacks_beginning {
            words.push("the tape has lost its beginning: orders of before are missing".to_owned());
        } else if picture.lacks_part {
            words.push("a part of the tape is missing: orders may be missing".to_owned());
        }
        let left_out = &picture.left_out;
        for (count, label) in [
            (left_out.book_changes, "changes of the book lie between columns"),
            (left_out.trades, "trades are not drawn"),
            (left_out.lifelines, "orders or steps are not drawn"),
        ] {
            if count > 0 {
                words.push(format!("{count} {label}"));
            }
        }
        _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{y:.1}\" fill=\"#333333\">{}</text>",
            escape(&words.join("; "))
        );
    }
}

/// Returns the levels of a column, and whether each is a bid.
fn column_levels(column: &PictureColumn) -> impl Iterator<Item = (bool, &PriceLevel)> {
    let bids = column.bids.iter().map(|level| (true, level));
    bids.chain(column.asks.iter().map(|level| (false, level)))
}

/// Returns a size for the level's shade. An unknown quantity counts as small.
fn shade_size(level: &PriceLevel) -> f64 {
    let qty = level.qty.mantissa() as f64 * 10f64.powi(level.qty.exponent().into());
    if qty > 0.0 { qty } else { 1.0 }
}

/// Returns the lowest and the highest price of the page, and the height of a cell. The page shows best prices, trades
/// and orders, and the part of the book near them.
fn price_range(picture: &Picture) -> (i64, i64, i64) {
    let best = picture.best.iter().flat_map(|step| [step.bid, step.ask]).flatten();
    let touches = picture.columns.iter().flat_map(|column| [column.bids.first(), column.asks.first()]);
    let orders =
        picture.lifelines.iter().flat_map(|line| line.steps.iter().filter_map(|step| step.px).chain(line.px));
    let prices: Vec<i64> = best
        .chain(touches.flatten().map(|level| level.px))
        .chain(picture.trades.iter().map(|trade| trade.px))
        .chain(orders)
        .map(|px| px.0)
        .collect();
    let mut level_prices: Vec<i64> =
        picture.columns.iter().flat_map(column_levels).map(|(_, level)| level.px.0).collect();
    level_prices.sort_unstable();
    level_prices.dedup();
    let gap =
        level_prices.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).filter(|gap| *gap > 0).min();
    let (Some(low), Some(high)) = (prices.iter().min(), prices.iter().max()) else {
        return (0, 1_000_000_000, 1_000_000_000);
    };
    let spread = high.saturating_sub(*low);
    let cell = gap.unwrap_or((spread / 20).max(1));
    let margin = (spread / 8).max(cell.saturating_mul(4));
    let (low, high) = (low.saturating_sub(margin), high.saturating_add(margin));
    // A cell is at least a two-hundredth of the page, so that it can be seen.
    (low, high, cell.max(high.saturating_sub(low) / 200))
}

/// Returns the number that lies `part` parts of `parts` between two others.
fn interpolate(low: i64, high: i64, part: u8, parts: u8) -> i64 {
    let span = i128::from(high) - i128::from(low);
    (i128::from(low) + span * i128::from(part) / i128::from(parts)) as i64
}

/// Returns a price with at most six decimals, for the axis.
fn short_price(px: Price) -> String {
    let text = px.to_string();
    match text.split_once('.') {
        Some((integer_digits, digits)) if digits.len() > 6 => format!("{integer_digits}.{}", &digits[..6]),
        _ => text,
    }
}

/// Returns the time of day, as exact as the span of the page needs.
fn clock_label(ts: UnixNanos, span_ns: i64) -> String {
    let text = UtcMoment(ts).to_string();
    let time = text.split(' ').nth(1).unwrap_or_default();
    let digits = match span_ns {
        0..10_000_000 => 18,
        10_000_000..10_000_000_000 => 12,
        10_000_000_000..3_600_000_000_000 => 8,
        _ => 5,
    };
    time.chars().take(digits).collect()
}

const LEFT: f64 = 74.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;
const PRICE_MARKS: i128 = 8;
const TIME_MARKS: u8 = 6;
/// Blue and orange of the palette of Okabe and Ito, which the colour-blind can tell apart.
const BID: &str = "#0072b2";
const ASK: &str = "#e69f00";
const BID_LINE: &str = "#003f66";
const ASK_LINE: &str = "#8a5a00";
const ORDER: &str = "#b3005e";
const STROKE: &str = "stroke=\"#b3005e\" stroke-width=\"1.6\"";
