use super::*;
use proptest::prelude::*;
use unitape_model::schema::{EventFieldSpec, EventSchema, FieldLayout};
use unitape_model::{
    Amount, CivilDate, Decimal, DefinitionTable, Dictionary, Event, EventBuilder, EventField, EventKind,
    EventValue, InlineId, NameKind, Position, Price, Refusal, TapePosition, UnixNanos, flags,
};

/// The raw values from which one field of an arbitrary event is made.
#[derive(Clone, Debug)]
struct Stuff {
    pick: u8,
    n: u64,
    text: String,
}

fn stuff() -> impl Strategy<Value = Stuff> {
    let n = prop_oneof![
        any::<u64>(),
        0u64..300,
        (0u32..64).prop_map(|s| u64::MAX >> s),
        (0u32..64, 0u64..4).prop_map(|(s, d)| (u64::MAX >> s).wrapping_sub(d)),
    ];
    let text = prop_oneof![
        "[A-Z0-9]{1,12}",
        ".{0,8}",
        "[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}",
        "[ -~]{20,70}",
        Just("tab\t quote\" back\\ nul\0 high\u{10ffff}".to_owned()),
    ];
    (any::<u8>(), n, text).prop_map(|(pick, n, text)| Stuff { pick, n, text })
}

/// An event of a kind with each field none, inline or overflowing its place.
#[derive(Clone, Debug)]
struct Plan {
    kind: EventKind,
    ts: i64,
    own: Option<u64>,
    recv: Option<i64>,
    source: (u32, u32),
    flags: u8,
    fields: Vec<Stuff>,
    unmapped: Vec<(String, String)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let kinds: Vec<EventKind> = EventKind::EVENTS.into_iter().chain(EventKind::META).collect();
    let ts = prop_oneof![any::<i64>(), Just(1_710_167_401_000_000_000)];
    let recv = prop_oneof![any::<i64>(), (0i64..1 << 33).prop_map(|d| 1_710_167_401_000_000_000 + d)];
    let name = prop_oneof![
        "[a-z_]{1,6}",
        prop::sample::select(&["ext", "seq", "px", "source", "offset", "ids", "a\"b\\", "", "rec"][..])
            .prop_map(str::to_owned)
    ];
    let json = prop::sample::select(
        &["1", "null", "\"x\\u00e9\"", "[1, {\"a\":[]}]", "{}", "1.50e3", "true", "[[\"ext\",1]]"][..],
    );
    let unmapped = proptest::collection::vec((name, json.prop_map(str::to_owned)), 0..4);
    (
        (prop::sample::select(kinds), ts, proptest::option::of(stuff()), proptest::option::of(recv)),
        (prop_oneof![Just((0, 0)), any::<(u32, u32)>()], 0u8..16),
        (proptest::collection::vec(stuff(), parse::FIELDS_MAX), unmapped),
    )
        .prop_map(|((kind, ts, own, recv), (source, flags), (fields, unmapped))| Plan {
            kind,
            ts,
            own: own.map(|s| s.n),
            recv,
            source,
            flags,
            fields,
            unmapped,
        })
}

fn put(event: &mut EventBuilder<'_>, spec: &EventFieldSpec, s: &Stuff) {
    // A quarter of the fields stay none.
    if s.pick < 64 {
        return;
    }
    let decimal = || Decimal::new(s.n as i64, (s.pick % 25) as i8 - 12).unwrap();
    let ids: Vec<u8> = (0..s.pick % 4).flat_map(|i| (u32::from(i) + 1).to_le_bytes()).collect();
    let positions = tape_position(s).to_bytes().repeat(usize::from(s.pick % 3));
    let value = match spec.slot {
        FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } | FieldLayout::Publisher { .. } => {
            let dict = spec.slot.dict().unwrap();
            let max = if dict == NameKind::Venue { 0x7fff } else { u64::from(u32::MAX) };
            let id = if s.pick.is_multiple_of(2) { 1 + s.n % 3 } else { 1 + s.n % max };
            EventValue::Sym(dict, id as u32)
        }
        FieldLayout::Syms { dict } => EventValue::Syms(dict, &ids),
        FieldLayout::Price { .. } => EventValue::Price(Price(s.n as i64).as_option().unwrap_or(Price(0))),
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            EventValue::Decimal(decimal())
        }
        FieldLayout::Amount { .. } => EventValue::Amount(
            Amount::new(i128::from(s.n as i64) << (s.pick % 50), 2 - (s.pick % 9) as i8).unwrap(),
        ),
        FieldLayout::Id { .. } if s.pick.is_multiple_of(2) => EventValue::Id(InlineId::Number(s.n)),
        FieldLayout::Id { .. } => EventValue::Id(InlineId::Text(s.text.as_bytes())),
        FieldLayout::Text { .. } => EventValue::Text(&s.text),
        FieldLayout::Code { values, .. } => EventValue::Text(values[usize::from(s.pick) % values.len()]),
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => EventValue::Bool(s.pick.is_multiple_of(2)),
        FieldLayout::FlagSet { values, .. } => EventValue::Flags(values, s.pick & 15),
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => EventValue::Date(date(s)),
        FieldLayout::Tape { .. } => EventValue::Tape(u128::from(s.n) + 1),
        FieldLayout::TapePosition { .. } => EventValue::TapePosition(tape_position(s)),
        FieldLayout::TapePositions => EventValue::TapePositions(&positions),
        FieldLayout::UInt { .. } => EventValue::UInt(s.n),
        FieldLayout::Nanos { .. } => EventValue::Nanos(UnixNanos((s.n as i64).max(i64::MIN + 1))),
        FieldLayout::MillisAfter { .. } => {
            let near = 1_710_167_401_000_000_000 + i64::from(s.pick) * 1_000_000_000;
            let at = if s.pick.is_multiple_of(3) { near } else { s.n as i64 };
            EventValue::Nanos(UnixNanos(at.max(i64::MIN + 1)))
        }
        FieldLayout::Json => EventValue::Json(r#"{"a":[1,"x"]}"#),
    };
    match (event.set(spec, value), spec.slot) {
        (Err(Refusal::TwoPublishers), FieldLayout::Publisher { bank: true }) => {}
        (set, _) => set.unwrap(),
    }
}

/// Dates near those of event times, and any others.
fn date(s: &Stuff) -> CivilDate {
    let near = 19_793 + i32::from(s.pick) - 100;
    let any = (s.n % 3_652_059) as i32 - 719_162;
    CivilDate::from_days_checked(if s.pick.is_multiple_of(2) { near } else { any }).unwrap()
}

fn tape_position(s: &Stuff) -> TapePosition {
    TapePosition { tape: u128::from(s.n) << 60 | 1, position: Position(s.n) }
}

/// Every dictionary with three names.
fn names() -> Dictionary {
    let mut names = Dictionary::default();
    for dict in NameKind::ALL {
        for name in ["ONE", "two \"2\"", "drei\u{e9}"] {
            names.intern(dict, name.as_bytes()).unwrap();
        }
    }
    names
}

/// `canonical` sets things in the order that `fill` does.
fn build(plan: &Plan, canonical: bool) -> Vec<u8> {
    let mut arena = Vec::new();
    let mut e = EventBuilder::begin(&mut arena, plan.kind, UnixNanos(plan.ts));
    e.source(plan.source.0, plan.source.1);
    let own = |e: &mut EventBuilder<'_>| {
        plan.own.into_iter().for_each(|n| e.sequence(n));
        plan.recv.into_iter().for_each(|t| e.ts_recv(UnixNanos(t)));
    };
    if canonical {
        own(&mut e);
    } else {
        plan.unmapped.iter().for_each(|(n, j)| e.keep_unmapped(n, j).unwrap());
    }
    for (spec, s) in EventSchema::for_kind(plan.kind).fields.iter().zip(&plan.fields) {
        put(&mut e, spec, s);
    }
    if canonical {
        plan.unmapped.iter().for_each(|(n, j)| e.keep_unmapped(n, j).unwrap());
    } else {
        own(&mut e);
    }
    let bits = plan.flags & (flags::LAST | flags::LATE | flags::SNAPSHOT | flags::CLOCK_AHEAD);
    e.finish(bits).unwrap();
    arena
}

fn line(frame: &[u8], names: &Dictionary, sources: &impl SourceNameLookup, form: EventLineDetail) -> String {
    let mut out = Vec::new();
    write_event(&mut out, &Event::new(frame).unwrap(), 42, names, sources, form);
    String::from_utf8(out).unwrap()
}

fn shown(frame: &[u8], field: EventField, names: &Dictionary) -> Option<String> {
    let event = Event::new(frame).unwrap();
    let mut scratch = [0; 36];
    Some(match event.field(field, &mut scratch)? {
        EventValue::Sym(dict, id) => {
            names.name(dict, id).map(str::to_owned).unwrap_or_else(|| id.to_string())
        }
        EventValue::Syms(dict, ids) => ids
            .chunks(4)
            .map(|b| names.name(dict, u32::from_le_bytes(b.try_into().unwrap())).unwrap())
            .collect(),
        other => format!("{other:?}"),
    })
}

struct One;
impl SourceNameLookup for One {
    fn source(&self, id: u32) -> Option<SourceLabel<'_>> {
        (id % 2 == 1).then_some(SourceLabel { feed: "fx", file: "a\"b.fix", base: u64::from(id) << 31 })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// `tape cat --full` is evidence: what it prints must be the frame, whole.
    #[test]
    fn full_form_makes_the_same_frame(plan in plan(), canonical in any::<bool>()) {
        let frame = build(&plan, canonical);
        let names = names();
        let text = line(&frame, &names, &One, EventLineDetail::Full);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        if canonical {
            prop_assert!(value.get("raw").is_none(), "the words suffice: {}", text);
        }
        let mut back = vec![7u8; 64];
        let got = parse_full(text.as_bytes(), &mut back);
        prop_assert_eq!(got, Ok(ParsedEventLine::Event { start: 64, seq: Some(42), ts: UnixNanos(plan.ts) }));
        prop_assert_eq!(&back[64..], &frame[..], "{}", text);
    }

    /// The plain form promises that every listed field comes back equal.
    #[test]
    fn plain_form_keeps_every_field(mut plan in plan()) {
        prop_assume!(plan.kind.is_input());
        // Names that are in the dictionary, and nothing required left out.
        for (spec, s) in EventSchema::for_kind(plan.kind).fields.iter().zip(&mut plan.fields) {
            if spec.slot.dict().is_some() || matches!(spec.slot, FieldLayout::Syms { .. }) || spec.required {
                s.pick |= 64;
                s.pick &= !1;
            }
        }
        plan.source = (0, 0);
        // In a frame without newer fields an entry may have the name of one: it is read as the field.
        let schema = EventSchema::for_kind(plan.kind);
        plan.unmapped.retain(|(name, _)| schema.find(name).is_none_or(|spec| !spec.added));
        let frame = build(&plan, true);
        let mut names = names();
        let text = line(&frame, &names, &EmptySourceLookup, EventLineDetail::Plain);
        let mut back = Vec::new();
        parse_line(text.as_bytes(), &mut names, &mut back, &LineParseOptions::default()).unwrap();
        for spec in EventSchema::for_kind(plan.kind).fields {
            prop_assert_eq!(shown(&back, spec.field, &names), shown(&frame, spec.field, &names), "{}", text);
        }
        let kept: Vec<_> = Event::new(&back).unwrap().unmapped_fields().collect();
        let want: Vec<_> = Event::new(&frame).unwrap().unmapped_fields().collect();
        prop_assert_eq!(kept, want, "{}", text);
        prop_assert_eq!(Event::new(&back).unwrap().sequence(), Some(42));
        // And once more: a line that was read and written is written the same.
        prop_assert_eq!(line(&back, &names, &EmptySourceLookup, EventLineDetail::Plain), text);
    }

    /// Outside bytes never panic, and a refused line leaves the arena alone.
    #[test]
    fn mutated_lines_are_read_or_refused(plan in plan(), full in any::<bool>(),
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 0..4)) {
        let mut text = line(&build(&plan, true), &names(), &One, EventLineDetail::Full).into_bytes();
        for (at, byte, how) in hits {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => { text.remove(at); text.push(b' '); }
                2 => text.insert(at, b"\"{}[],:\\0"[usize::from(byte) % 9]),
                _ => text.truncate(at.max(1)),
            }
        }
        let mut arena = vec![1u8; 64];
        let got = if full {
            parse_full(&text, &mut arena)
        } else {
            parse_line(&text, &mut names(), &mut arena, &LineParseOptions::default())
        };
        match got {
            Ok(ParsedEventLine::Event { start, .. }) => {
                prop_assert_eq!(start, 64);
                let event = Event::new(&arena[64..]).unwrap();
                prop_assert_eq!(event.bytes().len(), arena.len() - 64);
            }
            _ => prop_assert_eq!(arena.len(), 64),
        }
    }

    /// A damaged tape is still printed, and the full form still carries every byte of it.
    #[test]
    fn damaged_frames_are_printed_and_come_back(plan in plan(), hits in proptest::collection::vec((8usize..256, any::<u8>()), 1..12)) {
        let mut frame = build(&plan, true);
        for (at, byte) in hits {
            // A frame of a layout that nobody knows is no event.
            let layout = at == unitape_model::schema::at::KIND_A && plan.kind.has_layouts();
            if let Some(b) = frame.get_mut(at).filter(|_| !layout) {
                *b = byte;
            }
        }
        let text = line(&frame, &names(), &One, EventLineDetail::Full);
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        serde_json::from_str::<serde_json::Value>(&line(&frame, &names(), &One, EventLineDetail::Plain)).unwrap();
        let mut back = Vec::new();
        prop_assert!(parse_full(text.as_bytes(), &mut back).is_ok(), "{}", text);
        prop_assert_eq!(back, frame, "{}", text);
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut arena = Vec::new();
        let _ = parse_line(&bytes, &mut Dictionary::default(), &mut arena, &LineParseOptions::default());
        let _ = parse_full(&bytes, &mut arena);
        prop_assert!(arena.is_empty());
    }
}

fn plain(text: &str) -> Result<String, String> {
    let (mut names, mut arena) = (Dictionary::default(), Vec::new());
    match parse_line(text.as_bytes(), &mut names, &mut arena, &LineParseOptions::default()) {
        Ok(ParsedEventLine::Event { start, .. }) => {
            Ok(line(&arena[start..], &names, &EmptySourceLookup, EventLineDetail::Plain))
        }
        Ok(other) => Ok(format!("{other:?}")),
        Err(e) => {
            assert!(arena.is_empty(), "a refused line leaves nothing");
            Err(e.to_string())
        }
    }
}

/// Each of these was, or could be, a line in somebody's file.
#[test]
fn what_is_taken_and_what_is_refused() {
    let t = |body: &str| {
        plain(&format!(r#"{{"seq":1,"ts":5,"kind":"trade","instr":"V","px":"1","qty":"2"{body}}}"#))
    };
    let base = r#"{"seq":42,"ts":5,"kind":"trade","instr":"V","px":"1","qty":"2""#;
    for (body, want) in [
        ("", ""),
        (r#","note":{"a": [1]},"z":1e5"#, r#","note":{"a": [1]},"z":1e5"#),
        (r#","rec":"event","match_id":17"#, r#","match_id":17"#),
        (r#","match_id":null,"cond":"\u0041B""#, r#","cond":"AB""#),
        (r#","\u0063ond":"X""#, r#","cond":"X""#),
        (r#","ext":[["px",3],["px",4],["a","b"]]"#, r#","ext":[["px",3],["px",4],["a","b"]]"#),
        (r#","ext":{"px":3}"#, r#","ext":[["ext",{"px":3}]]"#),
        (r#","flags":3,"later":1"#, r#","ext":[["flags",3],["later",1]]"#),
    ] {
        assert_eq!(t(body), Ok(format!("{base}{want}}}")), "{body}");
    }
    for (body, want) in [
        (r#","side":"X""#, "bad_value in side: not one of the values of the field"),
        (r#","px":"2""#, "duplicate in px: the field stands twice"),
        (r#","x":1,"y":2,"\u0078":3"#, "duplicate in x: the field stands twice"),
        (r#","seq":2"#, "duplicate in seq: the field stands twice"),
        (r#","match_id":1.5"#, "bad_integer in match_id: not an unsigned integer of 64 bits"),
        (r#","match_id":[]"#, "wrong_sort in match_id: an id is text or a number"),
        (r#","cond":7"#, "wrong_sort in cond: text is needed"),
        (r#","venue":"""#, "name_length in venue: a name of 1 to 255 bytes is needed"),
        (r#","cond":"\ud800""#, "wrong_sort in cond: text is needed"),
        (r#","rec":"evnt""#, "unknown_rec in rec: not event, header, case or expect"),
    ] {
        assert_eq!(t(body), Err(want.to_owned()), "{body}");
    }
    for (text, want) in [
        ("[]", "bad_json: invalid type: sequence, expected a JSON object at line 1 column 0"),
        ("{} {}", "bad_json: trailing characters at line 1 column 4"),
        ("{\"a\":1,}", "bad_json: trailing comma at line 1 column 8"),
        ("{\"a\":\n1}", "bad_json: an event is one line"),
        ("{}", "missing in kind: kind is missing"),
        (r#"{"kind":"trade"}"#, "missing in ts: ts is missing"),
        (r#"{"kind":"trade","ts":1.5}"#, "bad_integer in ts: an integer is needed"),
        (r#"{"kind":"trade","ts":1,"px":"1","qty":"1"}"#, "missing in instr: instr is missing"),
        (
            r#"{"kind":"trade","ts":1,"instr":"V","qty":"1","px":1.5}"#,
            "bad_decimal in px: a decimal is a JSON string, so that no reader rounds it",
        ),
        (
            r#"{"kind":"trade","ts":1,"instr":"V","qty":"1e3","px":"1"}"#,
            "bad_decimal in qty: not a decimal number",
        ),
        (
            r#"{"kind":"trade","ts":1,"instr":"V","qty":"1","px":"0.0000000001"}"#,
            "decimal_fit in px: decimal does not fit the field exactly",
        ),
        (r#"{"kind":"tread","ts":1}"#, "unknown_kind in kind: no kind of event is called \"tread\""),
        (
            r#"{"kind":"define","ts":1}"#,
            "bookkeeping in kind: `define` belongs to the account of a tape, which unitape writes itself; no input may carry it",
        ),
        (
            r#"{"kind":"quarantine","ts":1,"reason":"x","raw_at":18446744073709551614}"#,
            "bookkeeping in kind: `quarantine` belongs to the account of a tape, which unitape writes itself; no input may carry it",
        ),
        (r#"{"kind":"list","ts":1,"name":"r","instr":"I","from":"x"}"#, "bad_time in from: not a time"),
        (
            r#"{"kind":"level","ts":1,"instr":"V","action":"A","orders":-1}"#,
            "bad_integer in orders: not an unsigned integer of 64 bits",
        ),
        (
            r#"{"kind":"quote","ts":1,"instr":"V","indicative":"true"}"#,
            "wrong_sort in indicative: true or false is needed",
        ),
        (r#"{"kind":"news","ts":1,"instrs":"V"}"#, "wrong_sort in instrs: a list of names is needed"),
    ] {
        assert_eq!(plain(text), Err(want.to_owned()), "{text}");
    }
    assert_eq!(plain(" \r").as_deref(), Ok("Blank"));
    assert!(plain("\u{feff}{\"rec\":\"header\"}").unwrap().starts_with("Header"));
    let news = r#"{"seq":42,"ts":1,"kind":"news","instrs":["A","B\"\n"],"headline":"h\n"}"#;
    assert_eq!(plain(&news.replace("42", "1")).as_deref(), Ok(news));
}

/// Serde's own bound is on the stack; ours is on what a later reader of the kept text would recurse into.
#[test]
fn nesting_is_bounded() {
    let deep = |n: usize| format!(r#"{{"kind":"clock","ts":1,"x":{}{}}}"#, "[".repeat(n), "]".repeat(n));
    assert!(plain(&deep(DEPTH_MAX)).is_ok());
    assert!(plain(&deep(DEPTH_MAX + 1)).unwrap_err().starts_with("bad_json: nested too deeply"));
    assert!(plain(&deep(1_000_000)).unwrap_err().starts_with("bad_json"));
}

/// A quarantine line shows where the bytes are without a second look-up.
#[test]
fn quarantine_names_its_source() {
    let mut arena = Vec::new();
    let q = EventSchema::for_kind(EventKind::Quarantine);
    let mut e = EventBuilder::begin(&mut arena, EventKind::Quarantine, UnixNanos(9));
    e.source(3, 5);
    e.set(q.get(EventField::Length).unwrap(), EventValue::UInt(12)).unwrap();
    e.set(q.get(EventField::Reason).unwrap(), EventValue::Text("bad_checksum")).unwrap();
    e.finish(flags::LAST).unwrap();

    let mut sources = DefinitionTable::default();
    let mut defined = Vec::new();
    let s = EventSchema::for_kind(EventKind::Source);
    let mut d = EventBuilder::begin(&mut defined, EventKind::Source, UnixNanos(0));
    for (field, value) in [
        (EventField::Index, EventValue::UInt(3)),
        (EventField::Base, EventValue::UInt(1000)),
        (EventField::Feed, EventValue::Text("jse")),
        (EventField::File, EventValue::Text("a.fix")),
    ] {
        d.set(s.get(field).unwrap(), value).unwrap();
    }
    d.finish(0).unwrap();
    sources.admit_event(&Event::new(&defined).unwrap()).unwrap();

    assert_eq!(
        line(&arena, &Dictionary::default(), &sources, EventLineDetail::Plain),
        r#"{"seq":42,"ts":9,"kind":"quarantine","length":12,"reason":"bad_checksum","source":"jse/a.fix","offset":1005}"#
    );
    assert_eq!(
        line(&arena, &Dictionary::default(), &sources, EventLineDetail::FullAt(unitape_model::Position(640))),
        concat!(
            r#"{"seq":42,"ts":9,"kind":"quarantine","length":12,"reason":"bad_checksum","source":"jse/a.fix","#,
            r#""offset":1005,"src":{"id":3,"feed":"jse","file":"a.fix","base":1000,"offset":1005},"#,
            r#""flags":["last"],"ids":{},"position":640}"#
        )
    );
}

#[test]
fn every_kind_fits_the_table_of_values() {
    for kind in EventKind::EVENTS.into_iter().chain(EventKind::META) {
        assert!(EventSchema::for_kind(kind).fields.len() <= parse::FIELDS_MAX);
    }
}

/// Tapes of NYSE quotes had the condition as a field of the feed's own. Read as the field, such a frame would come back
/// from its line as another one.
#[test]
fn a_condition_of_an_older_quote_stays_the_feeds_own() {
    let mut frame = Vec::new();
    let mut e = EventBuilder::begin(&mut frame, EventKind::Bbo, UnixNanos(7));
    e.set_field(EventField::Instr, EventValue::Sym(NameKind::Instrument, 1)).unwrap();
    e.keep_unmapped("cond", r#""R""#).unwrap();
    e.keep_unmapped("bid_venue", r#""P""#).unwrap();
    e.finish(0).unwrap();
    let (names, event) = (names(), Event::new(&frame).unwrap());
    assert!(!event.needs_layout_1());
    assert_eq!(event.field(EventField::Cond, &mut [0; 36]), Some(EventValue::Text("R")));
    assert_eq!(event.extension_text(EventField::Cond), None);
    let plain = line(&frame, &names, &EmptySourceLookup, EventLineDetail::Plain);
    assert!(plain.ends_with(r#","cond":"R","bid_venue":"P"}"#), "{plain}");
    let full = line(&frame, &names, &EmptySourceLookup, EventLineDetail::Full);
    let mut back = Vec::new();
    parse_full(full.as_bytes(), &mut back).unwrap();
    assert_eq!(back, frame, "{full}");
    // The same line, read now, has the fields.
    let (mut now, mut names) = (Vec::new(), names);
    parse_line(plain.as_bytes(), &mut names, &mut now, &LineParseOptions::default()).unwrap();
    let now = Event::new(&now).unwrap();
    assert_eq!((now.extension_text(EventField::Cond), now.unmapped_fields().count()), (Some("R"), 0));
}
