//! The slow, obvious answer to "which of these execs are wash trades": `wash_trade` of the scenarios, written again
//! from its text and from nothing else, so that it can judge both what was planted here and what a fast detector says.

use std::collections::HashMap;
use unitape_model::Side;

/// Tolerances of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Length of the window in nanoseconds; an exec exactly this old is out.
    pub window_ns: u64,
    /// Largest difference of price, in basis points of the first.
    pub px_tol_bps: i128,
    /// Largest difference of quantity, in per cent of the first.
    pub qty_tol_pct: i128,
}

impl Default for Params {
    fn default() -> Params {
        Params { window_ns: 60_000_000_000, px_tol_bps: 5, qty_tol_pct: 10 }
    }
}

/// One side of a trade. Beneficial group is the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Event time, nanoseconds since the epoch; must not go back from one exec to the next.
    pub ts: u64,
    /// Venue; a match id is unique per venue and instrument.
    pub venue: String,
    /// Instrument.
    pub instr: String,
    /// Match id, the same on both sides.
    pub match_id: String,
    /// Beneficial owner.
    pub owner: String,
    /// Side.
    pub side: Side,
    /// Price in any one unit.
    pub px: i64,
    /// Quantity in any one unit.
    pub qty: i64,
}

/// Which arm of the scenario fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Both sides of one match.
    SelfMatch,
    /// Opposite execs of two matches.
    RoundTrip,
}

/// A wash trade: positions of its two legs among the execs, the later one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// Arm.
    pub arm: Arm,
    /// First and second leg.
    pub legs: [usize; 2],
}

/// All wash trades among `execs`, in order of their second leg.
///
/// Each exec is compared with every earlier one that is still inside the window, oldest first; a leg serves once.
pub fn wash_trades(execs: &[Exec], params: &Params) -> Vec<Finding> {
    let mut consumed = vec![false; execs.len()];
    let mut first_of_match: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut oldest = 0;
    let mut found = Vec::new();
    for (n, e) in execs.iter().enumerate() {
        while execs[oldest].ts + params.window_ns <= e.ts {
            oldest += 1;
        }
        let first = *first_of_match.entry((&e.venue, &e.instr, &e.match_id)).or_insert(n);
        let f = &execs[first];
        if first != n && f.owner == e.owner && f.side != e.side && !consumed[first] {
            consumed[first] = true;
            consumed[n] = true;
            found.push(Finding { arm: Arm::SelfMatch, legs: [first, n] });
            continue;
        }
        let meets = |f: &Exec| {
            let (px_off, qty_off) = (i128::from(e.px.abs_diff(f.px)), i128::from(e.qty.abs_diff(f.qty)));
            f.owner == e.owner
                && f.instr == e.instr
                && f.side != e.side
                && (f.venue != e.venue || f.match_id != e.match_id)
                && px_off * 10_000 <= params.px_tol_bps * i128::from(f.px)
                && qty_off * 100 <= params.qty_tol_pct * i128::from(f.qty)
        };
        if let Some(first) = (oldest..n).find(|&m| !consumed[m] && meets(&execs[m])) {
            consumed[first] = true;
            consumed[n] = true;
            found.push(Finding { arm: Arm::RoundTrip, legs: [first, n] });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: u64 = 60_000_000_000;

    fn check(execs: &[(u64, &str, &str, &str, Side, i64, i64)], expected: &[(Arm, [usize; 2])]) {
        let exec =
            |&(ts, venue, match_id, owner, side, px, qty): &(u64, &str, &str, &str, Side, i64, i64)| Exec {
                ts,
                venue: venue.into(),
                instr: "I".into(),
                match_id: match_id.into(),
                owner: owner.into(),
                side,
                px,
                qty,
            };
        let found = wash_trades(&execs.iter().map(exec).collect::<Vec<_>>(), &Params::default());
        assert_eq!(found.iter().map(|f| (f.arm, f.legs)).collect::<Vec<_>>(), expected);
    }

    /// An oracle that is wrong at an edge would bless a detector that is wrong at the same edge.
    #[test]
    fn edges_are_those_of_the_text() {
        use {Arm::*, Side::*};
        check(&[(0, "X", "1", "A", Buy, 10, 5), (0, "X", "1", "A", Sell, 10, 5)], &[(SelfMatch, [0, 1])]);
        check(&[(0, "X", "1", "A", Buy, 10, 5), (0, "X", "1", "B", Sell, 10, 5)], &[]);
        let trip = |dt, owner, side, px, qty, hit: bool| {
            let first = (0, "X", "1", "A", Buy, 2000, 1000);
            let second = (dt, "Y", "1", owner, side, px, qty);
            check(&[first, second], if hit { &[(RoundTrip, [0, 1])] } else { &[] });
        };
        trip(W - 1, "A", Sell, 2001, 900, true);
        trip(W, "A", Sell, 2001, 900, false);
        trip(1, "A", Sell, 2002, 1000, false);
        trip(1, "A", Sell, 2000, 899, false);
        trip(1, "A", Buy, 2000, 1000, false);
        trip(1, "B", Sell, 2000, 1000, false);
        check(
            &[
                (0, "X", "1", "A", Buy, 2000, 1000),
                (1, "X", "2", "A", Sell, 2001, 900),
                (2, "X", "3", "A", Sell, 2001, 900),
            ],
            &[(RoundTrip, [0, 1])],
        );
    }
}
