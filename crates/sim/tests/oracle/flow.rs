//! Scenarios of trades, algorithms and payments.

use std::collections::{HashMap, HashSet};

use super::{Alert, Event, MS, ONE, key};

pub fn wash_trade(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut group: HashMap<&str, &str> = HashMap::new();
    let mut execs: HashMap<(&str, &str), Vec<(&Event, bool)>> = HashMap::new();
    let mut matches: HashMap<[&str; 3], (usize, (&str, &str))> = HashMap::new();
    for e in events {
        if e.kind == "party" {
            group.insert(e.get("owner"), e.get("group"));
        }
        if e.kind != "exec" {
            continue;
        }
        let of = group.get(e.get("owner")).copied().unwrap_or(e.get("owner"));
        let at = (of, e.get("instr"));
        let id = [e.get("venue"), e.get("instr"), e.get("match_id")];
        let seen = execs.entry(at).or_default();
        let alert = ("wash_trade", key(&[("group", of), ("instr", at.1)]), e.seq);
        let first_leg = matches.get(&id).copied();
        if let Some((n, first_at)) = first_leg
            && first_at == at
            && seen[n].0.get("side") != e.get("side")
            && !seen[n].1
        {
            seen[n].1 = true;
            seen.push((e, true));
            found.push(alert);
            continue;
        }
        let meets = |f: &Event| {
            f.get("side") != e.get("side")
                && (f.get("match_id") != e.get("match_id") || f.get("venue") != e.get("venue"))
                && f.ts > e.ts - 60_000 * MS
                && f.ts <= e.ts
                && (e.num("px") - f.num("px")).abs() * 10_000 <= 5 * f.num("px")
                && (e.num("qty") - f.num("qty")).abs() * 100 <= 10 * f.num("qty")
        };
        let from = seen.partition_point(|(f, _)| f.ts <= e.ts - 60_000 * MS);
        let first = seen[from..].iter_mut().find(|(f, used)| !used && meets(f));
        let hit = first.is_some_and(|f| {
            f.1 = true;
            true
        });
        matches.entry(id).or_insert((seen.len(), at));
        seen.push((e, hit));
        if hit {
            found.push(alert);
        }
    }
    found
}

pub fn marking_close(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let place = |e: &Event| (e.get("venue").to_owned(), e.get("instr").to_owned());
    let mut by_place: HashMap<(String, String), Vec<&Event>> = HashMap::new();
    for e in events.iter().filter(|e| matches!(e.kind.as_str(), "trade" | "exec" | "session")) {
        let before = by_place.entry(place(e)).or_default();
        before.push(e);
        let (Some("close"), Some(close)) = (e.find("phase"), e.nano("px")) else { continue };
        let start = e.ts - 600_000 * MS;
        let last = before.iter().rev().find(|t| t.kind == "trade" && t.ts <= start);
        let Some(reference) = last.map(|t| t.num("px")) else { continue };
        if (close - reference).abs() * 10_000 < 50 * reference || close == reference {
            continue;
        }
        let towards = if close > reference { "B" } else { "S" };
        let inside = || before.iter().filter(|t| t.ts > start && t.ts <= e.ts);
        let volume: i128 = inside().filter(|t| t.kind == "trade").map(|t| t.num("qty")).sum();
        let mut owners: Vec<&str> = inside().filter(|t| t.kind == "exec").map(|t| t.get("owner")).collect();
        owners.sort_unstable();
        owners.dedup();
        for owner in owners {
            let execs = || inside().filter(|t| t.kind == "exec" && t.get("owner") == owner);
            let dq = || execs().filter(|t| t.get("side") == towards && matches!(t.get("liq"), "R" | "X"));
            let oq: i128 = execs().filter(|t| t.get("side") != towards).map(|t| t.num("qty")).sum();
            let notional: i128 = dq().map(|t| t.num("qty") * t.num("px")).sum();
            let net = dq().map(|t| t.num("qty")).sum::<i128>() - oq;
            if notional >= 100_000 * ONE * ONE && volume > 0 && net * 100 >= 25 * volume {
                let key = key(&[("owner", owner), ("venue", e.get("venue")), ("instr", e.get("instr"))]);
                found.push(("marking_close", key, e.seq));
            }
        }
    }
    found
}

pub fn runaway_algo(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut fired: HashSet<(&str, &str)> = HashSet::new();
    let mut history: HashMap<&str, Vec<&Event>> = HashMap::new();
    let mut order: HashMap<(&str, &str), &Event> = HashMap::new();
    let mut parents: HashMap<&str, (i128, i128)> = HashMap::new();
    for e in events {
        if e.kind == "parent" {
            parents.insert(e.get("parent"), (e.num("qty"), 0));
        }
        if !(e.is_message() || e.kind == "exec") {
            continue;
        }
        let id = (e.get("venue"), e.get("oid"));
        let entry = *order.entry(id).or_insert(e);
        let Some(algo) = e.find("algo").or(entry.find("algo")) else { continue };
        let seen = history.entry(algo).or_default();
        seen.push(e);
        let mut reasons = Vec::new();
        let within = |ns: i64| seen.iter().rev().take_while(move |w| w.ts > e.ts - ns);
        if e.is_message() && within(1000 * MS).filter(|w| w.is_message()).count() > 100 {
            reasons.push("message_rate");
        }
        if e.kind == "order_new" {
            let like = |w: &&&Event| {
                w.kind == "order_new"
                    && ["venue", "instr", "side", "px", "qty"].iter().all(|n| w.find(n) == e.find(n))
            };
            if within(10_000 * MS).filter(like).count() > 20 {
                reasons.push("repeat");
            }
        }
        if e.kind == "exec" {
            let gross: i128 =
                within(60_000 * MS).filter(|w| w.kind == "exec").map(|w| w.num("px") * w.num("qty")).sum();
            if gross > 10_000_000 * ONE * ONE {
                reasons.push("notional");
            }
            if let Some((qty, done)) =
                e.find("parent").or(entry.find("parent")).and_then(|p| parents.get_mut(p))
            {
                *done += e.num("qty");
                if *done * 100 > 100 * *qty {
                    reasons.push("overfill");
                }
            }
        }
        for reason in reasons {
            if fired.insert((algo, reason)) {
                found.push(("runaway_algo", key(&[("algo", algo)]), e.seq));
            }
        }
    }
    found
}

pub fn structuring(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let hours = |n: i64| n * 3_600_000 * MS;
    let mut last_alert: HashMap<(&str, &str), i64> = HashMap::new();
    let payments: Vec<&Event> = events.iter().filter(|e| e.kind == "payment").collect();
    for (n, e) in payments.iter().enumerate() {
        let at = |p: &Event| (p.get("dr_acct").to_owned(), p.get("ccy").to_owned());
        let in_band = |p: &&&Event| {
            let amt = p.num("amt");
            at(p) == at(e) && p.ts > e.ts - hours(24) && (8_000 * ONE..10_000 * ONE).contains(&amt)
        };
        let those: Vec<_> = payments[..=n].iter().filter(in_band).collect();
        let sum: i128 = those.iter().map(|p| p.num("amt")).sum();
        let key_of = (e.get("dr_acct"), e.get("ccy"));
        let armed = last_alert.get(&key_of).is_none_or(|&last| e.ts >= last + hours(24));
        if those.len() >= 3 && sum >= 10_000 * ONE && armed {
            last_alert.insert(key_of, e.ts);
            found.push(("payments_structuring", e.key(&["dr_acct", "ccy"]), e.seq));
        }
    }
    found
}
