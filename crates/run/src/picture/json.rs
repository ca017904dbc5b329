//! A picture as JSON. Prices, quantities, ids and times are text, because JSON readers lose digits above 2^53.

use super::{Lifeline, Picture, PictureColumn, PictureTrade};
use serde_json::{Map, Value, json};
use unitape_book::PriceLevel;
use unitape_model::Price;

impl Picture {
    /// Returns the picture as one JSON object.
    pub fn json(&self) -> Value {
        json!({
            "instr": self.instrument,
            "venue": self.venue,
            "since": self.since.0.to_string(),
            "until": self.until.0.to_string(),
            "basis": self.basis.map(|basis| basis.name()),
            "columns": self.columns.iter().map(column_json).collect::<Vec<_>>(),
            "best": self.best.iter().map(|step| json!({
                "ts": step.ts.0.to_string(), "bid": price(step.bid), "ask": price(step.ask),
            })).collect::<Vec<_>>(),
            "trades": self.trades.iter().map(trade_json).collect::<Vec<_>>(),
            "orders": self.lifelines.iter().map(lifeline_json).collect::<Vec<_>>(),
            "left_out": {
                "book_changes": self.left_out.book_changes, "best_steps": self.left_out.best_steps,
                "trades": self.left_out.trades, "lifelines": self.left_out.lifelines,
            },
            "lacks_beginning": self.lacks_beginning,
            "lacks_part": self.lacks_part,
        })
    }
}

fn price(px: Option<Price>) -> Value {
    px.map_or(Value::Null, |px| px.to_string().into())
}

fn column_json(column: &PictureColumn) -> Value {
    let side = |levels: &[PriceLevel]| -> Vec<Value> {
        levels.iter().map(|level| json!([level.px.to_string(), level.qty.to_string()])).collect()
    };
    json!({ "ts": column.ts.0.to_string(), "bids": side(&column.bids), "asks": side(&column.asks) })
}

fn trade_json(trade: &PictureTrade) -> Value {
    json!({
        "seq": trade.seq.to_string(), "position": trade.position.0.to_string(), "ts": trade.ts.0.to_string(),
        "px": trade.px.to_string(), "qty": trade.qty, "aggressor": trade.aggressor.map(|side| side.letter()),
    })
}

fn lifeline_json(line: &Lifeline) -> Value {
    let steps = line.steps.iter().map(|step| {
        let mut object = Map::new();
        object.insert("kind".into(), step.kind.name().into());
        object.insert("seq".into(), step.seq.to_string().into());
        object.insert("position".into(), step.position.0.to_string().into());
        object.insert("ts".into(), step.ts.0.to_string().into());
        if let Some(px) = step.px {
            object.insert("px".into(), px.to_string().into());
        }
        if let Some(qty) = &step.qty {
            object.insert("qty".into(), qty.clone().into());
        }
        if let Some(reduction) = &step.qty_reduced {
            object.insert("qty_reduced".into(), reduction.clone().into());
        }
        Value::Object(object)
    });
    json!({
        "oid": line.oid, "side": line.side.map(|side| side.letter()), "owner": line.owner, "trader": line.trader,
        "steps": steps.collect::<Vec<_>>(),
    })
}
