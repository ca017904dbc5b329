//! Replays from lines and from a tape: parameters, errors, and that both give the same alerts.

use unitape_codec::events::{LineParseOptions, ParsedEventLine, parse_line};
use unitape_model::{Dictionary, EventBuilder, NameKind, Position, frames};
use unitape_watch::{ParamOverlay, ScenarioSelection, TapeWatch, replay_jsonl};

const CASES: &str = include_str!("../../../vectors/watch/wash_trade.jsonl");

fn replayed(input: &str, selection: &ScenarioSelection) -> Result<Vec<String>, String> {
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

/// Parameters come from four places; the nearest wins.
#[test]
fn the_command_line_wins_over_the_header_over_the_configuration() {
    let count = |s: &ScenarioSelection| replayed(CASES, s).unwrap().len();
    let overlay = |text: &str| ParamOverlay::parse(text, Some("wash_trade")).unwrap();
    let tight = overlay(r#"{"window_ms":0}"#);
    assert_eq!(count(&ScenarioSelection { configuration: tight.clone(), ..ScenarioSelection::default() }), 4);
    assert_eq!(count(&ScenarioSelection { command_line: tight, ..ScenarioSelection::default() }), 2);
    // Two more are 60 s apart and 6 bps apart.
    let wide = overlay("window_ms = 60001\npx_tol_bps = '6'");
    assert_eq!(count(&ScenarioSelection { command_line: wide, ..ScenarioSelection::default() }), 6);
    let own = CASES.replace(r#""id": "WASH-N1""#, r#""id": "WASH-N1", "params": {"px_tol_bps": "6"}"#);
    assert_eq!(replayed(&own, &ScenarioSelection::default()).unwrap().len(), 5);
}

#[test]
fn what_cannot_be_replayed_is_named() {
    let err = |input: &str| replayed(input, &ScenarioSelection::default()).unwrap_err();
    for (input, want) in [
        (
            r#"{"rec":"header","params":{"spoof":{}}}"#,
            "in.jsonl:1: no scenario is called `spoof`; did you mean `spoofing`?; see: unitape watch scenarios",
        ),
        (
            r#"{"rec":"header","scenario":"ludwig"}"#,
            "in.jsonl:1: no scenario is called `ludwig`; see: unitape watch scenarios",
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
    let only = ScenarioSelection::of(&["wash_trade"]);
    assert_eq!(replayed(r#"{"rec":"header","scenario":"luld","params":{"x":1}}"#, &only), Ok(vec![]));
    let none = ScenarioSelection::of(&["wash"]);
    assert_eq!(
        replayed("", &none).unwrap_err(),
        "no scenario is called `wash`; did you mean `wash_trade`?; see: unitape watch scenarios"
    );
}

/// Live and replayed must be one: the same lines as frames after their definitions, with positions.
#[test]
fn a_tape_gives_the_same_alerts_with_positions() {
    let (mut names, mut defined) = (Dictionary::default(), [0; NameKind::COUNT]);
    let mut tape = TapeWatch::new(&ScenarioSelection::default()).unwrap();
    let (mut at, mut seq, mut out) = (0u64, 0u64, Vec::new());
    for line in CASES.lines().skip_while(|l| !l.contains("WASH-P2")).take_while(|l| !l.contains("WASH-P4")) {
        let mut arena = Vec::new();
        let options = LineParseOptions::default();
        let ParsedEventLine::Event { .. } =
            parse_line(line.as_bytes(), &mut names, &mut arena, &options).unwrap()
        else {
            continue;
        };
        let mut frame = Vec::new();
        for dict in NameKind::ALL {
            for id in defined[dict as usize] + 1..=names.len(dict) {
                EventBuilder::define(&mut frame, dict, id, names.name(dict, id).unwrap()).unwrap();
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

    let mut bad = TapeWatch::new(&ScenarioSelection::default()).unwrap();
    assert!(
        bad.on_frame(Position(64), &[0; 64], 0, &mut out)
            .unwrap_err()
            .to_string()
            .starts_with("tape at 64: ")
    );
}
