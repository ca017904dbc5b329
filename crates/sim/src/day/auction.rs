//! The price of an auction.

use crate::book::MatchingBook;
use unitape_model::Side;

/// Finds the price and volume at which the auction matches the book. The price must give the most volume, then the
/// least surplus, then be nearest to `reference`, then lowest. `limits` bound the price, as a venue's collar does.
/// Returns `None` if nothing can trade.
pub fn clearing(book: &MatchingBook, reference: i64, limits: Option<(i64, i64)>) -> Option<(i64, i64)> {
    let (bid, ask) = (book.best(Side::Buy)?.px, book.best(Side::Sell)?.px);
    let (low, high) = limits.unwrap_or((ask, bid));
    let (low, high) = (low.max(ask), high.min(bid));
    if low > high {
        return None;
    }
    // Between two neighbouring limits of the book neither demand nor supply changes. So the limits, their neighbours, the
    // bounds and the reference are all the prices that can be best.
    let levels = [Side::Buy, Side::Sell].into_iter().flat_map(|side| book.levels(side).map(|level| level.px));
    let candidates = levels.flat_map(|px| px - 1..=px + 1).chain([low, high, reference.clamp(low, high)]);
    let worth = |px: i64| {
        let (demand, supply) = (book.quantity_within(Side::Buy, px), book.quantity_within(Side::Sell, px));
        let volume = demand.min(supply);
        (volume, -(demand - supply).abs(), -(px - reference).abs(), -px)
    };
    let best = candidates.filter(|px| (low..=high).contains(px)).map(worth).max()?;
    (best.0 > 0).then_some((-best.3, best.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// A price between the levels that is never looked at would trade less than the market wanted.
        #[test]
        fn no_price_is_better(
            orders in prop::collection::vec((prop::bool::ANY, 90i64..110, 1i64..40), 0..30),
            reference in 85i64..115,
            limits in prop::option::of((92i64..100, 0i64..8)),
        ) {
            let mut book = MatchingBook::default();
            for (n, &(buy, px, qty)) in orders.iter().enumerate() {
                book.queue(if buy { Side::Buy } else { Side::Sell }, px, qty, n as u32);
            }
            let limits = limits.map(|(low, room)| (low, low + room));
            let (low, high) = limits.unwrap_or((0, 200));
            let volume = |px: i64| {
                let demand: i64 = orders.iter().filter(|o| o.0 && o.1 >= px).map(|o| o.2).sum();
                let supply: i64 = orders.iter().filter(|o| !o.0 && o.1 <= px).map(|o| o.2).sum();
                (demand.min(supply), (demand - supply).abs())
            };
            let best = (low..=high).map(|px| (px, volume(px))).filter(|(_, (traded, _))| *traded > 0)
                .min_by_key(|&(px, (traded, left))| (-traded, left, (px - reference).abs(), px));
            let outcome = clearing(&book, reference, limits);
            prop_assert_eq!(outcome, best.map(|(px, (traded, _))| (px, traded)));

            if let Some((px, traded)) = outcome {
                let (mut bought, mut sold) = (Vec::new(), Vec::new());
                book.uncross(px, traded, &mut bought, &mut sold);
                for fills in [&bought, &sold] {
                    prop_assert_eq!(fills.iter().map(|f| f.qty).sum::<i64>(), traded);
                    prop_assert!(fills.iter().all(|f| f.px == px));
                }
                for fill in &bought { prop_assert!(orders[fill.tag as usize].1 >= px); }
                for fill in &sold { prop_assert!(orders[fill.tag as usize].1 <= px); }
                if limits.is_none() && let (Some(bid), Some(ask)) = (book.best(Side::Buy), book.best(Side::Sell)) {
                    prop_assert!(bid.px < ask.px, "still crossed");
                }
            }
        }
    }
}
