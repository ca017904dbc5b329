//! Insider dealing: somebody buys before news that raises the price, or sells before news that lowers it.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{S, Scenario};

const MOVE: &str = "the price moves by a tick less than min_move_pct";
const PROFIT: &str = "the profit is a share short of min_profit";
const LATE: &str = "the trade has the time of the news";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::InsiderNews,
    key: &[KeyPart::Owner, KeyPart::Instr, KeyPart::News],
    misses: &[MOVE, PROFIT, LATE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

/// The reaction to news.
const REACTION_NS: u64 = 3_600 * S;
/// Longest duration of a scene.
pub(super) const LONGEST_NS: u64 = REACTION_NS + 30 * S;
/// `min_profit` in billionths of a unit of the currency.
const PROFIT_NANO: i128 = 10_000 * 1_000_000_000;

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let least = (terms.middle + 19) / 20;
    let ticks = match script.miss {
        Some(MOVE) => least - 1,
        Some(_) => least,
        None if terms.edge => least,
        None => least + terms.rng.between(1, 20),
    };
    let gain_nano = i128::from(terms.listed.nano(ticks));
    let least_qty = ((PROFIT_NANO + gain_nano - 1) / gain_nano) as i64;
    let qty = match script.miss {
        Some(PROFIT) => least_qty - 1,
        Some(_) => least_qty,
        None if terms.edge => least_qty,
        None => least_qty * terms.rng.between(10, 30) / 10,
    };
    script.walls = [6, ticks + 5];
    // A trade may set off stops, which trade in their turn. So each price is made twice.
    trade(script, Role::Other, 0, 100);
    script.pause(terms.millis(2_000, 5_000));
    trade(script, Role::Other, 0, 100);
    script.pause(if script.miss.is_none() && !terms.edge { terms.millis(100, 9_000) } else { 1 });
    if script.misses(LATE) {
        script.pause(1);
    }
    trade(script, Role::Lead, 0, qty);
    if !script.misses(LATE) {
        script.pause(1);
    }
    let news_ns = script.clock();
    script.news(ticks);
    script.wait_until(news_ns + REACTION_NS - 5 * S);
    trade(script, Role::Other, ticks, 100);
    script.wait_until(news_ns + REACTION_NS - 1);
    trade(script, Role::Other, ticks, 100);
    script.wait_until(news_ns + REACTION_NS);
    let order = script.rest(Role::Other, Direction::With, ticks - 3, 100);
    script.fires(Completion::Entry);
    script.pause(terms.millis(300, 3_000));
    script.cancel(order);
}

/// Makes one trade: the taker meets an order that rests on the other side.
fn trade(script: &mut Script, taker: Role, px: i64, qty: i64) {
    script.rest(Role::Other, Direction::Against, px, qty);
    script.take(taker, Direction::With, px, qty);
}
