//! Events and lines of best prices in a short form. The tests of the command line use it, too.

use serde_json::{Map, Value};
use std::fmt::Write;
use unitape_model::Decimal;
use unitape_sim::banks::BestPriceConfig;

/// Best prices for these sizes, with the usual bounds.
pub fn sizes<const N: usize>(sizes: [&str; N]) -> BestPriceConfig {
    let decimal = |size: &str| Decimal::parse(size.as_bytes()).expect("a size");
    BestPriceConfig { sizes: sizes.iter().map(|size| decimal(size)).collect(), ..BestPriceConfig::default() }
}

/// `5 quote bank=A side=B px=1.1` as an event. Unless it says otherwise its instrument is EUR/USD; `instr=-` is none.
pub fn event_line(short: &str) -> String {
    if short.starts_with('{') {
        return short.to_owned();
    }
    let mut words = short.split_whitespace();
    let mut fields = Map::new();
    fields.insert("ts".into(), words.next().expect("a time").parse::<i64>().expect("a time").into());
    fields.insert("kind".into(), words.next().expect("a kind").into());
    fields.insert("instr".into(), "EUR/USD".into());
    for word in words {
        let (name, value) = word.split_once('=').expect("name=value");
        let plain = !value.contains('.') && name != "bank" && name != "venue";
        let json = serde_json::from_str(value).ok().filter(|_| plain);
        fields.insert(name.into(), json.unwrap_or_else(|| Value::from(value)));
    }
    if fields["instr"] == "-" {
        fields.remove("instr");
    }
    Value::Object(fields).to_string()
}

/// `TIME [PAIR] [DATE] SIZE STATE BID ASK | BID SWEEP | ASK SWEEP`. A quote is `PX/BANK` with `/tN` and its id if it has
/// them, a sweep `NOTIONAL:QTY@QUOTE+QTY@QUOTE`. The pair EUR/USD and its spot date at time 0 are left out.
pub fn short(lines: &str) -> String {
    let mut out = String::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| line[name].as_str().expect("a text");
        _ = write!(out, "{} ", line["ts"]);
        for (name, usual) in [("instr", "EUR/USD"), ("value_date", "1970-01-05")] {
            if line[name] != usual {
                _ = write!(out, "{} ", text(name));
            }
        }
        let [bid, ask] = ["bid", "ask"].map(|side| short_quote(&line[side]));
        let [bids, asks] = ["bid_sweep", "ask_sweep"].map(|side| short_sweep(&line[side]));
        _ = writeln!(out, "{} {} {bid} {ask} | {bids} | {asks}", text("size"), text("state"));
    }
    out
}

fn short_quote(quote: &Value) -> String {
    if quote.is_null() {
        return "-".to_owned();
    }
    let mut out =
        format!("{}/{}", quote["px"].as_str().expect("a price"), quote["bank"].as_str().expect("a bank"));
    if quote["tier"] != 0 {
        _ = write!(out, "/t{}", quote["tier"]);
    }
    if let Some(id) = quote.get("quote_id") {
        _ = write!(out, "/#{id}");
    }
    for (flag, word) in [("full_amount", "/full"), ("inverted", "/inverted")] {
        out.push_str(if quote.get(flag).is_some() { word } else { "" });
    }
    out
}

fn short_sweep(sweep: &Value) -> String {
    if sweep.is_null() {
        return "-".to_owned();
    }
    let leg = |leg: &Value| format!("{}@{}", leg["qty"].as_str().expect("a quantity"), short_quote(leg));
    let legs: Vec<String> = sweep["legs"].as_array().expect("legs").iter().map(leg).collect();
    format!("{}:{}", sweep["notional"].as_str().expect("a sum"), legs.join("+"))
}
