//! A small market in which much happens at once. The tests of the command line use it, too.

use super::event_line;
use std::fmt::Write;
use unitape_sim::Rng;

/// Few banks, pairs and prices, so that slots are met again, prices tie and cross.
pub fn small_stream(seed: u64, events: usize) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let mut ts = 1_000_000;
    let mut next = || {
        ts += rng.pick(&[0, 0, 0, 500_000, 1_000_000, 4_000_000]);
        let event_ts = if rng.one_in(8) { ts - 2_000_000 } else { ts };
        let bank = rng.pick(&["A", "B", "C", "D", "E"]);
        let instr = rng.pick(&["EUR/USD", "EURUSD", "EUR/USD", "EUR/USD", "USD/EUR", "USD/JPY"]);
        let mut line = match rng.below(20) {
            0 => format!("{event_ts} status venue={bank} instr=- state=logout"),
            1 | 2 => format!("{event_ts} status venue={bank} instr=- state=heartbeat"),
            3 | 4 => {
                let action = rng.pick(&["disable", "enable"]);
                let instr = rng.pick(&["-", "-", instr]);
                format!("{event_ts} control venue={bank} instr={instr} action={action}")
            }
            5 => format!("{event_ts} deal bank={bank} instr={instr} side=B px=1 qty=1"),
            6 | 7 => format!("{event_ts} quote bank={bank} instr={instr} withdrawn=true"),
            _ => {
                let (px, side) = (rng.between(99, 102), rng.pick(&["B", "S"]));
                let px = if rng.one_in(9) { px - 6 } else { px };
                let qty = rng.pick(&[0, 1, 2, 3, 4, 5, 9, 9]);
                format!(
                    "{event_ts} quote bank={bank} instr={instr} side={side} px={}.{:02} qty={qty}",
                    px / 100,
                    px % 100
                )
            }
        };
        let is_quote = line.contains(" quote ");
        if is_quote {
            for (n, field) in [
                (3, "tier=1"),
                (4, "full_amount=true"),
                (12, "value_date=1970-01-06"),
                (15, "indicative=true"),
            ] {
                if rng.one_in(n) {
                    _ = write!(line, " {field}");
                }
            }
            if rng.one_in(2) {
                _ = write!(line, " quote_id={}", rng.below(4));
            }
            if line.contains("withdrawn") && rng.one_in(2) {
                _ = write!(line, " side={}", rng.pick(&["B", "S"]));
            } else if rng.one_in(2) {
                _ = write!(line, " valid_until={}", ts + rng.between(0, 12) * 1_000_000);
            }
        } else if line.contains("control") && rng.one_in(2) {
            _ = write!(line, " until={}", ts + rng.between(0, 12) * 1_000_000);
        } else if line.contains("control") && rng.one_in(6) {
            line.push_str(" dry_run=true");
        }
        if rng.one_in(30) {
            line.push_str(" flags=[\"clock_ahead\"]");
        }
        event_line(&line)
    };
    (0..events).map(|_| next()).collect()
}
