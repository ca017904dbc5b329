//! One book by price level, deeper than the exchange publishes, and the messages about each change.

use crate::rng::Rng;
use std::sync::Arc;
use unitape_model::Side;

/// A price level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLevel {
    /// The price, in units of the product's exponent.
    pub px: i64,
    /// The quantity.
    pub qty: u32,
    /// The number of orders.
    pub orders: u32,
}

/// `MDUpdateAction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MdUpdateAction {
    /// A level is added; the levels at it or after it move back.
    New = 0,
    /// Quantity and orders of a level change.
    Change = 1,
    /// A level is removed; the levels after it move up.
    Delete = 2,
    /// All levels from the best to this one go.
    DeleteThru = 3,
    /// All levels from this one to the last go.
    DeleteFrom = 4,
    /// This level has another price.
    Overlay = 5,
}

/// A published change of a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedUpdate {
    /// The action.
    pub action: MdUpdateAction,
    /// On which side.
    pub side: Side,
    /// At which level, from 1.
    pub depth: u32,
    /// The level at this depth then; `None` if levels are removed.
    pub level: Option<ExchangeLevel>,
}

/// A published trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedTrade {
    /// The price, in units of the product's exponent.
    pub px: i64,
    /// The quantity.
    pub qty: u32,
    /// The side of the aggressor.
    pub aggressor: Side,
    /// The trade's id, by day and product.
    pub id: u32,
}

/// Greatest number of unpublished levels after the published ones.
const HIDDEN: usize = 4;

/// A book of an instrument.
#[derive(Debug, Clone)]
pub(super) struct ExchangeBook {
    /// Best first.
    sides: [Vec<ExchangeLevel>; 2],
    /// The published depth.
    depth: usize,
    tick: i64,
    /// The price that prices gather around, in ticks.
    fair: i64,
}

impl ExchangeBook {
    pub fn new(depth: u32, tick: i64, fair: i64) -> Self {
        Self { sides: [Vec::new(), Vec::new()], depth: depth as usize, tick, fair }
    }

    /// Returns the published levels of a side.
    pub fn top(&self, side: Side) -> &[ExchangeLevel] {
        let levels = &self.sides[side as usize];
        &levels[..levels.len().min(self.depth)]
    }

    pub fn level_snapshot(&self, side: Side) -> Arc<[ExchangeLevel]> {
        self.top(side).into()
    }

    /// Removes all levels.
    pub fn clear(&mut self) {
        self.sides = [Vec::new(), Vec::new()];
    }

    /// Applies random changes and returns the published ones. A hidden change is not published.
    pub fn act(
        &mut self,
        rng: &mut Rng,
        updates: &mut Vec<PublishedUpdate>,
        trades: &mut Vec<PublishedTrade>,
    ) {
        let side = rng.pick(&[Side::Buy, Side::Sell]);
        if rng.one_in(16) {
            self.fair += rng.between(-1, 1);
        }
        let len = self.sides[side as usize].len();
        match rng.below(100) {
            _ if len < 2 => self.insert(side, rng, updates),
            0..30 => self.insert(side, rng, updates),
            30..62 => self.change(side, rng, updates),
            62..80 => self.delete(side, rng, updates),
            80..86 => self.overlay(side, rng, updates),
            86..97 => self.trade(side, rng, updates, trades),
            97 | 98 if len > 2 => {
                let count = 1 + rng.below(len as u64 / 2) as usize;
                self.delete_thru(side, count, updates);
            }
            _ => self.delete_from(side, 1 + rng.below(len as u64 - 1) as usize, updates),
        }
    }

    fn level(rng: &mut Rng, px: i64) -> ExchangeLevel {
        let orders = 1 + rng.halving() as u32;
        ExchangeLevel { px, qty: orders * (1 + rng.below(40) as u32), orders }
    }

    /// Inserts a new price near the best.
    fn insert(&mut self, side: Side, rng: &mut Rng, updates: &mut Vec<PublishedUpdate>) {
        let away = if side == Side::Buy { -self.tick } else { self.tick };
        let best_other = self.sides[1 - side as usize].first().map(|level| level.px);
        let mut px = self.fair * self.tick + away * (1 + rng.halving() + rng.below(3) as i64);
        let levels = &mut self.sides[side as usize];
        let is_worse = |px: i64, other_px: i64| if side == Side::Buy { px < other_px } else { px > other_px };
        if let Some(best_px) = best_other
            && !is_worse(px, best_px)
        {
            px = best_px + away;
        }
        while levels.iter().any(|level| level.px == px) {
            px += away;
        }
        let index = levels.iter().take_while(|level| is_worse(px, level.px)).count();
        levels.insert(index, Self::level(rng, px));
        levels.truncate(self.depth + HIDDEN);
        if index < self.depth {
            updates.push(PublishedUpdate {
                action: MdUpdateAction::New,
                side,
                depth: index as u32 + 1,
                level: Some(levels[index]),
            });
        }
    }

    fn change(&mut self, side: Side, rng: &mut Rng, updates: &mut Vec<PublishedUpdate>) {
        let levels = &mut self.sides[side as usize];
        let index = (rng.halving() as usize).min(levels.len() - 1);
        levels[index] = Self::level(rng, levels[index].px);
        if index < self.depth {
            let level = Some(levels[index]);
            updates.push(PublishedUpdate {
                action: MdUpdateAction::Change,
                side,
                depth: index as u32 + 1,
                level,
            });
        }
    }

    fn delete(&mut self, side: Side, rng: &mut Rng, updates: &mut Vec<PublishedUpdate>) {
        let levels = &mut self.sides[side as usize];
        let index = rng.below(levels.len() as u64) as usize;
        levels.remove(index);
        if index < self.depth {
            updates.push(PublishedUpdate {
                action: MdUpdateAction::Delete,
                side,
                depth: index as u32 + 1,
                level: None,
            });
            self.come_up(side, 1, updates);
        }
    }

    /// Changes a level's price to another one between its neighbours.
    fn overlay(&mut self, side: Side, rng: &mut Rng, updates: &mut Vec<PublishedUpdate>) {
        let best_other = self.sides[1 - side as usize].first().map(|level| level.px);
        let levels = &mut self.sides[side as usize];
        let index = rng.below(levels.len().min(self.depth) as u64) as usize;
        let away = if side == Side::Buy { -self.tick } else { self.tick };
        // Away from the best, as far as there is room.
        let px = levels[index].px + away;
        let free = levels.get(index + 1).is_none_or(|next| next.px != px) && best_other != Some(px);
        if free {
            levels[index] = Self::level(rng, px);
            let level = Some(levels[index]);
            updates.push(PublishedUpdate {
                action: MdUpdateAction::Overlay,
                side,
                depth: index as u32 + 1,
                level,
            });
        }
    }

    /// Executes an incoming order against a side, level by level.
    fn trade(
        &mut self,
        side: Side,
        rng: &mut Rng,
        updates: &mut Vec<PublishedUpdate>,
        trades: &mut Vec<PublishedTrade>,
    ) {
        let aggressor = if side == Side::Buy { Side::Sell } else { Side::Buy };
        let levels = &mut self.sides[side as usize];
        let swept = if rng.one_in(4) { (1 + rng.halving() as usize).min(levels.len() - 1) } else { 0 };
        for level in &levels[..swept] {
            trades.push(PublishedTrade { px: level.px, qty: level.qty, aggressor, id: 0 });
        }
        match swept {
            0 => {}
            1 => {
                levels.remove(0);
                updates.push(PublishedUpdate { action: MdUpdateAction::Delete, side, depth: 1, level: None });
                self.come_up(side, 1, updates);
            }
            _ => self.delete_thru(side, swept, updates),
        }
        let best = &mut self.sides[side as usize][0];
        if best.qty > 1 {
            let qty = 1 + rng.below(u64::from(best.qty) - 1) as u32;
            trades.push(PublishedTrade { px: best.px, qty, aggressor, id: 0 });
            best.qty -= qty;
            best.orders = best.orders.min(best.qty);
            updates.push(PublishedUpdate {
                action: MdUpdateAction::Change,
                side,
                depth: 1,
                level: Some(*best),
            });
        }
    }

    fn delete_thru(&mut self, side: Side, count: usize, updates: &mut Vec<PublishedUpdate>) {
        self.sides[side as usize].drain(..count);
        let depth = count.min(self.depth);
        updates.push(PublishedUpdate {
            action: MdUpdateAction::DeleteThru,
            side,
            depth: depth as u32,
            level: None,
        });
        self.come_up(side, depth, updates);
    }

    fn delete_from(&mut self, side: Side, index: usize, updates: &mut Vec<PublishedUpdate>) {
        self.sides[side as usize].truncate(index);
        if index < self.depth {
            updates.push(PublishedUpdate {
                action: MdUpdateAction::DeleteFrom,
                side,
                depth: index as u32 + 1,
                level: None,
            });
        }
    }

    /// Publishes the levels that become visible after `count` published levels were removed.
    fn come_up(&mut self, side: Side, count: usize, updates: &mut Vec<PublishedUpdate>) {
        let top = self.top(side);
        for (index, level) in top.iter().enumerate().skip(self.depth - count) {
            let depth = index as u32 + 1;
            updates.push(PublishedUpdate { action: MdUpdateAction::New, side, depth, level: Some(*level) });
        }
    }
}
