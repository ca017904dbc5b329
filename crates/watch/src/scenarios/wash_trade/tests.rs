use super::*;
use crate::params::{Overlay, Selection};
use crate::watch::Watch;
use crate::{TapeWatch, replay_jsonl};
use proptest::prelude::*;
use unitape_codec::events::{Line, LineOptions, parse_line};
use unitape_model::{Event, EventBuilder, InlineId, Position, Schema, UnixNanos, Value, frames};

/// One line of a random stream. Few values, many of them right on a limit.
#[derive(Clone, Debug)]
enum Op {
    Party { owner: u32, group: u32 },
    Order { oid: u8, owner: u32 },
    Exec(Exec),
}

#[derive(Clone, Debug)]
struct Exec {
    ts: i64,
    /// 0: to be inherited.
    owner: u32,
    oid: u8,
    instr: u32,
    venue: u32,
    side: u8,
    px: i64,
    qty: (i64, i8),
    /// 0: none.
    id: u8,
}

const W: i64 = 10_000_000;

fn op() -> impl Strategy<Value = Op> {
    let exec = (
        (
            prop::sample::select(&[0, 1, W - 1, W, W + 1, 2 * W, 3 * W - 1, 3 * W][..]),
            0u32..5,
            0u8..3,
            1u32..3,
            1u32..3,
        ),
        (
            0u8..2,
            prop::sample::select(&[0, 19_990, 19_991, 20_000, 20_010, 20_011, -20_000, 2_000_000][..]),
            prop::sample::select(
                &[
                    (1, 3),
                    (9, 2),
                    (899, 0),
                    (11, 2),
                    (1101, 0),
                    (1, 30),
                    (1, -30),
                    (i64::MAX, 30),
                    (8, 4),
                    (0, 0),
                ][..],
            ),
            0u8..6,
        ),
    )
        .prop_map(|((ts, owner, oid, instr, venue), (side, px, qty, id))| {
            Op::Exec(Exec { ts, owner, oid, instr, venue, side, px, qty, id })
        });
    prop_oneof![
        10 => exec,
        1 => (1u32..5, 1u32..4).prop_map(|(owner, group)| Op::Party { owner, group }),
        1 => (0u8..3, 0u32..5).prop_map(|(oid, owner)| Op::Order { oid, owner }),
    ]
}

fn oid(n: u8) -> Vec<u8> {
    // One in three is too long for its place in the frame.
    if n == 0 { vec![b'x'; 40] } else { vec![b'o', b'0' + n] }
}

fn match_id(n: u8, bytes: &mut Vec<u8>) -> InlineId<'_> {
    match n {
        1 => InlineId::Number(1),
        2 => InlineId::Number(u64::MAX),
        3 => {
            bytes.resize(30, b'm');
            InlineId::Text(bytes)
        }
        _ => {
            *bytes = vec![b'M', n];
            InlineId::Text(bytes)
        }
    }
}

/// The stream as frames.
fn arena(ops: &[Op]) -> Vec<u8> {
    let mut arena = Vec::new();
    for op in ops {
        let (kind, ts) = match op {
            Op::Party { .. } => (Kind::Party, 0),
            Op::Order { .. } => (Kind::OrderNew, 0),
            Op::Exec(e) => (Kind::Exec, e.ts),
        };
        let schema = Schema::of(kind);
        let mut b = EventBuilder::begin(&mut arena, kind, UnixNanos(ts));
        let mut set = |field, value: Value<'_>| b.set(schema.get(field).unwrap(), value).unwrap();
        match op {
            Op::Party { owner, group } => {
                set(Field::Owner, Value::Sym(Dict::Owner, *owner));
                set(Field::Group, Value::Sym(Dict::Owner, *group));
            }
            Op::Order { oid: n, owner } => {
                set(Field::Oid, Value::Id(InlineId::Text(&oid(*n))));
                set(Field::Owner, Value::Sym(Dict::Owner, *owner));
                set(Field::Venue, Value::Sym(Dict::Venue, 1));
            }
            Op::Exec(e) => {
                set(Field::Oid, Value::Id(InlineId::Text(&oid(e.oid))));
                set(Field::Owner, Value::Sym(Dict::Owner, e.owner));
                set(Field::Instr, Value::Sym(Dict::Instrument, e.instr));
                set(Field::Venue, Value::Sym(Dict::Venue, e.venue));
                set(Field::Side, Value::Text(["B", "S"][usize::from(e.side)]));
                set(Field::Px, Value::Price(Price(e.px)));
                set(Field::Qty, Value::Decimal(Decimal::new(e.qty.0, e.qty.1).unwrap()));
                if e.id != 0 {
                    set(Field::MatchId, Value::Id(match_id(e.id, &mut Vec::new())));
                }
            }
        }
        b.finish(0).unwrap();
    }
    arena
}

/// The definition, word by word, with everything kept and everything searched: (execution, seq, consumed,
/// waiting for the other leg of its match).
#[derive(Default)]
struct Twin {
    groups: Vec<(u32, u32)>,
    orders: Vec<(u8, u32)>,
    legs: Vec<(Exec, u64, bool, bool)>,
    forgotten: usize,
}

impl Twin {
    fn group(&self, owner: u32) -> u32 {
        self.groups.iter().rev().find(|(o, _)| *o == owner).map_or(owner, |(_, g)| *g)
    }

    fn on(&mut self, op: &Op, seq: u64) -> Option<(&'static str, u64, u32)> {
        let e = match op {
            Op::Party { owner, group } => {
                self.groups.push((*owner, *group));
                return None;
            }
            Op::Order { oid, owner } => {
                self.orders.push((*oid, *owner));
                return None;
            }
            Op::Exec(e) => e,
        };
        let mut e = e.clone();
        if e.owner == 0 && e.venue == 1 {
            e.owner = self.orders.iter().rev().find(|(o, _)| *o == e.oid).map_or(0, |(_, w)| *w);
        }
        if e.owner == 0 || e.qty.0 <= 0 {
            return None;
        }
        while self.legs.get(self.forgotten).is_some_and(|(f, ..)| e.ts - f.ts >= 2 * W) {
            self.forgotten += 1;
        }
        let group = self.group(e.owner);
        let same_match = |f: &Exec| e.id != 0 && (f.id, f.venue, f.instr) == (e.id, e.venue, e.instr);
        let first = self.legs.iter().position(|(f, _, _, waiting)| *waiting && same_match(f));
        if let Some(i) = first.filter(|&i| self.legs[i].0.side != e.side) {
            self.legs[i].3 = false;
            if !self.legs[i].2 && self.group(self.legs[i].0.owner) == group {
                self.legs[i].2 = true;
                let at = self.legs[i].1;
                return Some(("self_match", at, group));
            }
        }
        let found = (self.forgotten..self.legs.len()).find(|&i| {
            let (f, _, consumed, _) = &self.legs[i];
            let unit = f.qty.1.min(e.qty.1);
            let whole = |q: (i64, i8)| i128::from(q.0).checked_mul(10i128.checked_pow((q.1 - unit) as u32)?);
            let qty_near = match (whole(e.qty), whole(f.qty)) {
                (Some(a), Some(b)) if a < 1 << 100 && b < 1 << 100 => (a - b).abs() * 100 <= 10 * b,
                // One is a hundred times the other and more.
                _ => false,
            };
            !consumed
                && self.group(f.owner) == group
                && f.instr == e.instr
                && f.side != e.side
                && !same_match(f)
                && f.ts > e.ts - W
                && f.ts <= e.ts
                && i128::from(e.px - f.px).abs() * 10_000 <= 5 * i128::from(f.px)
                && qty_near
        });
        if let Some(i) = found {
            (self.legs[i].2, self.legs[i].3) = (true, false);
            let at = self.legs[i].1;
            return Some(("round_trip", at, group));
        }
        let waits = e.id != 0 && first.is_none();
        self.legs.push((e, seq, false, waits));
        None
    }
}

fn names() -> Dictionary {
    let mut names = Dictionary::default();
    for dict in [Dict::Owner, Dict::Instrument, Dict::Venue] {
        for n in 1..6 {
            names.intern(dict, format!("N{n}").as_bytes()).unwrap();
        }
    }
    names
}

fn selection() -> Selection {
    Selection {
        command_line: Overlay::parse(r#"{"wash_trade":{"window_ms":10}}"#, None).unwrap(),
        ..Selection::default()
    }
}

fn run(watch: &mut Watch, arena: &[u8]) -> Vec<Alert> {
    let (names, mut out) = (names(), Vec::new());
    for (i, (_, _, frame)) in frames(arena).enumerate() {
        watch.on_event(&Event::new(frame).unwrap(), i as u64, None, &names, &mut out);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Queues, chains and lazy removal against plain search; a broken chain loses or doubles alerts.
    #[test]
    fn agrees_with_its_slow_twin(ops in proptest::collection::vec(op(), 0..60)) {
        let mut watch = Watch::new(&selection()).unwrap();
        let got: Vec<_> = run(&mut watch, &arena(&ops))
            .into_iter()
            .map(|a| (a.trigger_seq, a.key[0].1.clone(), a.detail.to_string()))
            .collect();
        let mut twin = Twin::default();
        let want: Vec<_> = ops
            .iter()
            .zip(0u64..)
            .filter_map(|(op, seq)| {
                let (arm, first, group) = twin.on(op, seq)?;
                Some((seq, format!("N{group}"), format!(r#"{{"arm":"{arm}","seqs":[{first},{seq}]}}"#)))
            })
            .collect();
        prop_assert_eq!(got, want);
    }

    /// Whatever was seen before a reset must not be seen after it.
    #[test]
    fn a_reset_leaves_nothing(before in proptest::collection::vec(op(), 0..30),
                              after in proptest::collection::vec(op(), 0..30)) {
        let mut used = Watch::new(&selection()).unwrap();
        run(&mut used, &arena(&before));
        used.reset();
        let mut fresh = Watch::new(&selection()).unwrap();
        let after = arena(&after);
        prop_assert_eq!(run(&mut used, &after), run(&mut fresh, &after));
    }

    /// However many executions come, what is kept stays within its bound and in order.
    #[test]
    fn bounds_hold(ops in proptest::collection::vec(op(), 0..80)) {
        let params = Params::resolve(&DEF, &[&selection().command_line]);
        let mut small = WashTrade::bounded(Limits::new(&params), 3, 2);
        let (arena, names, mut parties, mut out) = (arena(&ops), names(), Parties::default(), Vec::new());
        for (i, (_, _, frame)) in frames(&arena).enumerate() {
            let event = Event::new(frame).unwrap();
            if event.kind() == Kind::Party {
                parties.on_party(&event);
            }
            let owner = Order::of(&event).map_or(0, |o| o.owner.get());
            let input = Input { event: &event, seq: i as u64, position: None, owner, parties: &parties, names: &names };
            small.on_event(&input, &mut out);
            prop_assert!(small.legs.len() <= 3 && small.waiting.len() <= 2);
            prop_assert!(small.by_key.len() <= 3, "a queue for each leg at most");
            prop_assert!(small.queues.len() <= 4);
        }
        prop_assert_eq!(small.metrics().alerts, out.len() as u64);
    }
}

const CASES: &str = include_str!("../../../../../vectors/watch/wash_trade.jsonl");

fn replayed(input: &str, selection: &Selection) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    replay_jsonl(input.as_bytes(), "in.jsonl", selection, |alert, case| {
        let mut line = Vec::new();
        alert.write_json(&mut line, case);
        lines.push(String::from_utf8(line).unwrap());
        Ok(())
    })
    .map_err(|e| e.to_string())?;
    Ok(lines)
}

/// The acceptance cases, each alert whole.
#[test]
fn cases_give_what_they_expect() {
    let mut want = Vec::new();
    let mut cases = 0;
    for line in CASES.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        cases += u32::from(line["rec"] == "case");
        for alert in line["alerts"].as_array().into_iter().flatten() {
            let mut alert = alert.clone();
            alert["case"] = line["case"].clone();
            want.push(alert);
        }
    }
    let got: Vec<serde_json::Value> = replayed(CASES, &Selection::default())
        .unwrap()
        .iter()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!((cases, want.len()), (10, 4));
    assert_eq!(got, want);
}

/// Parameters come from four places; the nearest wins.
#[test]
fn the_command_line_wins_over_the_header_over_the_configuration() {
    let count = |s: &Selection| replayed(CASES, s).unwrap().len();
    let overlay = |text: &str| Overlay::parse(text, Some("wash_trade")).unwrap();
    let tight = overlay(r#"{"window_ms":0}"#);
    assert_eq!(count(&Selection { configuration: tight.clone(), ..Selection::default() }), 4);
    assert_eq!(count(&Selection { command_line: tight, ..Selection::default() }), 2);
    // Two more are 60 s apart and 6 bps apart.
    let wide = overlay("window_ms = 60001\npx_tol_bps = '6'");
    assert_eq!(count(&Selection { command_line: wide, ..Selection::default() }), 6);
    let own = CASES.replace(r#""id": "WASH-N1""#, r#""id": "WASH-N1", "params": {"px_tol_bps": "6"}"#);
    assert_eq!(replayed(&own, &Selection::default()).unwrap().len(), 5);
}

#[test]
fn what_cannot_be_replayed_is_named() {
    let err = |input: &str| replayed(input, &Selection::default()).unwrap_err();
    for (input, want) in [
        (
            r#"{"rec":"header","params":{"spoof":{}}}"#,
            "in.jsonl:1: no scenario is called \"spoof\"; there are: wash_trade",
        ),
        (
            r#"{"rec":"header","scenario":"luld"}"#,
            "in.jsonl:1: no scenario is called \"luld\"; there are: wash_trade",
        ),
        (r#"{"rec":"header","params":3}"#, "in.jsonl:1: params must be an object"),
        ("\n{\"rec\":\"case\"}", "in.jsonl:2: a case needs an id"),
        (
            "\n\n{\"kind\":\"x\",\"ts\":1}",
            "in.jsonl:3: unknown_kind in kind: no kind of event is called \"x\"",
        ),
        (
            "{\"seq\":2,\"ts\":1,\"kind\":\"clock\"}\n{\"seq\":2,\"ts\":1,\"kind\":\"clock\"}",
            "in.jsonl:2: seq 2 does not follow 2",
        ),
    ] {
        assert_eq!(err(input), want);
    }
    let only = Selection { scenario: Some("wash_trade".into()), ..Selection::default() };
    assert_eq!(replayed(r#"{"rec":"header","scenario":"luld","params":{"x":1}}"#, &only), Ok(vec![]));
    let none = Selection { scenario: Some("wash".into()), ..Selection::default() };
    assert_eq!(replayed("", &none).unwrap_err(), "no scenario is called \"wash\"; there are: wash_trade");
}

/// Live and replayed must be one: the same lines as frames behind their definitions, with positions.
#[test]
fn a_tape_gives_the_same_alerts_with_positions() {
    let (mut names, mut defined) = (Dictionary::default(), [0; Dict::COUNT]);
    let mut tape = TapeWatch::new(&Selection::default()).unwrap();
    let (mut at, mut seq, mut out) = (0u64, 0u64, Vec::new());
    for line in CASES.lines().skip_while(|l| !l.contains("WASH-P2")).take_while(|l| !l.contains("WASH-P4")) {
        let mut arena = Vec::new();
        let options = LineOptions::default();
        let Line::Event { .. } = parse_line(line.as_bytes(), &mut names, &mut arena, &options).unwrap()
        else {
            continue;
        };
        let mut frame = Vec::new();
        for dict in Dict::ALL {
            for id in defined[dict as usize] + 1..=names.len(dict) {
                let schema = Schema::of(Kind::Define);
                let mut d = EventBuilder::begin(&mut frame, Kind::Define, UnixNanos(0));
                let name = names.name(dict, id).unwrap();
                for (field, value) in [
                    (Field::Dict, Value::UInt(dict as u64)),
                    (Field::Index, Value::UInt(id.into())),
                    (Field::Name, Value::Text(name)),
                ] {
                    d.set(schema.get(field).unwrap(), value).unwrap();
                }
                d.finish(0).unwrap();
            }
            defined[dict as usize] = names.len(dict);
        }
        frame.extend_from_slice(&arena);
        for (_, header, frame) in frames(&frame) {
            tape.on_frame(Position(at), frame, seq, &mut out).unwrap();
            at += frame.len() as u64;
            seq += u64::from(!header.is_meta());
        }
    }
    let shown: Vec<_> = out
        .iter()
        .map(|a| {
            let mut line = Vec::new();
            a.write_json(&mut line, None);
            String::from_utf8(line).unwrap()
        })
        .collect();
    expect_test::expect![[r#"
        {"scenario":"wash_trade","ts":1710167401000000000,"trigger_seq":3,"key":{"group":"G7","instr":"GB00B03MLX29"},"detail":{"arm":"self_match","seqs":[2,3],"positions":[640,896]}}
        {"scenario":"wash_trade","ts":1710167430000000000,"trigger_seq":5,"key":{"group":"ACME","instr":"GB00B03MLX29"},"detail":{"arm":"round_trip","seqs":[4,5],"positions":[1216,1408]}}"#]]
    .assert_eq(&shown.join("\n"));

    let mut bad = TapeWatch::new(&Selection::default()).unwrap();
    assert!(
        bad.on_frame(Position(64), &[0; 64], 0, &mut out)
            .unwrap_err()
            .to_string()
            .starts_with("tape at 64: ")
    );
}

/// Pairs whose products pass 128 bits, against the rule by hand.
#[test]
fn quantities_are_compared_exactly() {
    let near = |tol: &str, e: &str, f: &str| {
        let overlay = Overlay::parse(&format!(r#"{{"qty_tol_pct":"{tol}"}}"#), Some("wash_trade")).unwrap();
        let d = |t: &str| Decimal::parse(t.as_bytes()).unwrap();
        Limits::new(&Params::resolve(&DEF, &[&overlay])).qty_near(d(e), d(f))
    };
    let (huge, tiny) =
        ("9223372036854775807000000000000000000000000000000", "0.000000000000000000000000000001");
    for (tol, e, f, want) in [
        ("10", "900", "1000", true),
        ("10", "899.999999999", "1000", false),
        ("10", "1100", "1000", true),
        ("10", "1100.000000000000001", "1000", false),
        ("0", "1000", "1000", true),
        ("0", huge, huge, true),
        ("10", huge, tiny, false),
        ("10", tiny, huge, false),
        ("99.999999999", tiny, huge, false),
        ("100", tiny, huge, true),
        ("1000000000", huge, tiny, false),
        ("1000000000", "10000001", "1", true),
        ("1000000000", "10000001.000000001", "1", false),
    ] {
        assert_eq!(near(tol, e, f), want, "{tol} {e} {f}");
    }
}
