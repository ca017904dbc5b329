//! Tapes of random events of every kind, and how they are compared with what a store gives back.
#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};

use unitape_model::schema::{EventFieldSpec, EventSchema, FieldLayout, at, width_bytes};
use unitape_model::{
    Amount, CivilDate, Decimal, Dictionary, Event, EventBuilder, EventField, EventKind, EventValue, InlineId,
    NameKind, Position, Price, TapePosition, UnixNanos, flags,
};
use unitape_store::{Day, MasterKey, Scan, ScanFilter, SealOptions, SealReport, Store, TickSchema};
use unitape_tape::{Reader, StartPosition, TapeId, Writer, WriterOptions};

/// The key of the stores.
pub fn key() -> MasterKey {
    MasterKey::parse(&"c0ffee00".repeat(8)).unwrap()
}

/// Seals with the key of the stores.
pub fn seal(tape: &Path, store: &Path, options: &SealOptions<'_>) -> unitape_store::Result<SealReport> {
    unitape_store::seal(tape, store, &key(), UnixNanos(0), options)
}

/// Opens with the key of the stores.
pub fn open(store: &Path) -> unitape_store::Result<Store> {
    Store::open(store, &key())
}

/// A small generator of numbers; the seed is all there is to it.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 3
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// 2024-03-11 14:30 UTC.
pub const NOON: i64 = 1_710_167_400_000_000_000;
pub const DAY: i64 = 86_400_000_000_000;

/// Makes the units of a tape: definitions right before their first use, sources, progress marks.
pub struct Maker {
    pub rng: Rng,
    names: Dictionary,
    sources: u32,
    ts: i64,
    /// Days over which event times run, back and forth.
    pub days: u64,
}

impl Maker {
    pub fn new(seed: u64, days: u64) -> Self {
        Self { rng: Rng::new(seed), names: Dictionary::default(), sources: 0, ts: NOON, days }
    }

    fn id(&mut self, dict: NameKind, unit: &mut Vec<u8>) -> u32 {
        let names = if dict == NameKind::Instrument { 12 } else { 5 };
        let name = format!("{}{}", dict.name(), self.rng.below(names));
        let (id, new) = self.names.intern(dict, name.as_bytes()).unwrap();
        if new {
            EventBuilder::define(unit, dict, id, &name).unwrap();
        }
        id
    }

    fn source(&mut self, unit: &mut Vec<u8>) -> u32 {
        if self.sources == 0 || self.rng.one_in(60) {
            self.sources += 1;
            let mut e = EventBuilder::begin(unit, EventKind::Source, UnixNanos(0));
            let file = format!("a rather long name of file number {}.fix", self.sources);
            for (field, value) in [
                (EventField::Index, EventValue::UInt(self.sources.into())),
                (EventField::Base, EventValue::UInt(7)),
                (EventField::Feed, EventValue::Text("feed")),
                (EventField::File, EventValue::Text(&file)),
            ] {
                e.set_field(field, value).unwrap();
            }
            e.finish(0).unwrap();
        }
        1 + self.rng.below(self.sources.into()) as u32
    }

    /// Appends a unit with an event of this kind, some of its fields none, inline or overflowing their place.
    pub fn event(&mut self, kind: EventKind, out: &mut Vec<u8>) {
        // Ids first: their definitions come before the event.
        let schema = EventSchema::for_kind(kind);
        let mut ids = Vec::new();
        // A quote is a venue's or a bank's.
        let by_bank = self.rng.one_in(2);
        for spec in schema.fields {
            let n = match spec.slot {
                FieldLayout::Publisher { bank } => u64::from(bank == by_bank && !self.rng.one_in(4)),
                FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } => {
                    u64::from(spec.required || !self.rng.one_in(4))
                }
                FieldLayout::Syms { .. } => self.rng.below(4),
                _ => 0,
            };
            let list = if let FieldLayout::Syms { dict } = spec.slot { Some(dict) } else { None };
            let dict = spec.slot.dict().or(list);
            ids.push((0..n).filter_map(|_| dict.map(|d| self.id(d, out))).collect::<Vec<_>>());
        }
        let source = if self.rng.one_in(5) { 0 } else { self.source(out) };
        if self.rng.one_in(40) {
            let mut mark = EventBuilder::begin(out, EventKind::Progress, UnixNanos(self.ts));
            for field in [
                EventField::Through,
                EventField::Messages,
                EventField::Ignored,
                EventField::Duplicates,
                EventField::Quarantined,
                EventField::Events,
            ] {
                mark.set(schema_of(EventKind::Progress, field), EventValue::UInt(3)).unwrap();
            }
            mark.finish(0).unwrap();
        }
        self.ts += self.rng.below(1_000_000_000) as i64 - 100_000_000;
        let day = self.rng.below(self.days) as i64;
        let ts = self.ts + if self.rng.one_in(9) { day * DAY } else { 0 };
        let r = &mut self.rng;
        let mut e = EventBuilder::begin(out, kind, UnixNanos(ts));
        e.source(source, if source == 0 { 0 } else { r.next() as u32 });
        if r.one_in(2) {
            e.sequence(r.next() >> r.below(60));
        }
        if r.one_in(3) {
            e.ts_recv(UnixNanos(ts.saturating_add((r.next() >> r.below(60)) as i64)));
        }
        if r.one_in(8) {
            e.keep_unmapped("note", r#"{"a":[1,"x\u0000"]}"#).unwrap();
        }
        for (spec, ids) in schema.fields.iter().zip(&ids) {
            put(&mut e, spec, ids, r);
        }
        if r.one_in(8) {
            e.keep_unmapped("px", "null").unwrap();
            e.keep_unmapped("", "[]").unwrap();
        }
        let late = if r.one_in(10) { flags::LATE } else { 0 };
        let snapshot = if r.one_in(10) { flags::SNAPSHOT } else { 0 };
        e.finish(flags::LAST | late | snapshot).unwrap();
    }

    /// Appends `n` units of random events to `writer`.
    pub fn write(&mut self, writer: &mut Writer, n: usize) {
        let mut unit = Vec::new();
        for _ in 0..n {
            unit.clear();
            let kind = match self.rng.below(3) {
                0 => EventKind::EVENTS[self.rng.below(26) as usize],
                1 => EventKind::Bbo,
                _ => EventKind::Trade,
            };
            self.event(kind, &mut unit);
            writer.append(&unit).unwrap();
        }
    }
}

fn schema_of(kind: EventKind, field: EventField) -> &'static EventFieldSpec {
    EventSchema::for_kind(kind).get(field).unwrap()
}

fn put(e: &mut EventBuilder<'_>, spec: &EventFieldSpec, ids: &[u32], r: &mut Rng) {
    if !spec.required && spec.slot.dict().is_none() && r.one_in(4) {
        return;
    }
    let n = r.next() >> r.below(64);
    let text = ["A", "", "text that is far too long for the place it has", "O0000001", "\u{e4}\u{0}x"];
    let uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let list: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let number = format!("O{:010}", n % 100_000);
    let on_tape = TapePosition { tape: 7 << 100, position: Position(n) };
    let positions = on_tape.to_bytes().repeat(n as usize % 4);
    let value = match spec.slot {
        FieldLayout::Sym { dict, .. } | FieldLayout::SymExt { dict } => match ids {
            [id] => EventValue::Sym(dict, *id),
            _ => return,
        },
        FieldLayout::Publisher { .. } => match ids {
            [id] => EventValue::Sym(NameKind::Venue, *id),
            _ => return,
        },
        FieldLayout::Syms { dict } => EventValue::Syms(dict, &list),
        FieldLayout::Price { .. } => {
            EventValue::Price(Price(2_500_000_000_000 + (n as i64 % 1000 - 500) * 10_000_000))
        }
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            EventValue::Decimal(Decimal::new(n as i64 - 3, 3 - r.below(9) as i8).unwrap())
        }
        FieldLayout::Amount { .. } => EventValue::Amount(Amount::new(i128::from(n) << 40, -2).unwrap()),
        FieldLayout::Id { .. } => match r.below(4) {
            0 => EventValue::Id(InlineId::Number(n)),
            1 => EventValue::Id(InlineId::Text(uuid.as_bytes())),
            2 => EventValue::Id(InlineId::Text(text[r.below(4) as usize].as_bytes())),
            _ => EventValue::Id(InlineId::Text(number.as_bytes())),
        },
        FieldLayout::Text { .. } => EventValue::Text(text[r.below(5) as usize]),
        FieldLayout::Code { values, .. } => EventValue::Text(values[n as usize % values.len()]),
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => EventValue::Bool(r.one_in(2)),
        FieldLayout::FlagSet { values, .. } => EventValue::Flags(values, n as u8 & 15),
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => {
            EventValue::Date(CivilDate::from_days_checked(19_793 + n as i32 % 400 - 50).unwrap())
        }
        FieldLayout::Tape { .. } => EventValue::Tape(u128::from(n) + 1),
        FieldLayout::TapePosition { .. } => EventValue::TapePosition(on_tape),
        FieldLayout::TapePositions => EventValue::TapePositions(&positions),
        FieldLayout::UInt { .. } => EventValue::UInt(n),
        FieldLayout::Nanos { .. } => EventValue::Nanos(UnixNanos(NOON + n as i64 % DAY)),
        FieldLayout::MillisAfter { .. } => EventValue::Nanos(UnixNanos(NOON + (n as i64 % 1000) * 1_000_000)),
        FieldLayout::Json => EventValue::Json(r#"{"a":[1,"x"]}"#),
    };
    e.set(spec, value).unwrap();
}

/// Opens a tape for writing, with small segments so that there are several.
pub fn writer(dir: &Path, id: u128) -> Writer {
    let options = WriterOptions { segment_bytes: 256 << 10, prefault_bytes: 0, ..WriterOptions::default() };
    Writer::open(dir, TapeId(id), options).unwrap().0
}

/// Makes a tape of `n` random events.
pub fn tape(dir: &Path, name: &str, seed: u64, days: u64, n: usize) -> PathBuf {
    let path = dir.join(name);
    let mut writer = writer(&path, u128::from(seed) + 1);
    Maker::new(seed, days).write(&mut writer, n);
    writer.close().unwrap();
    path
}

/// An event as it is compared: its place, its frame without ids, and the names of the ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub ordinal: u64,
    pub position: u64,
    pub ts: i64,
    pub kind: EventKind,
    pub frame: Vec<u8>,
    pub names: Vec<(EventField, Vec<String>)>,
    pub source: Option<String>,
}

impl Seen {
    /// Looks at an event in the slow and obvious way, field by field.
    pub fn of(
        frame: &[u8],
        ordinal: u64,
        position: Position,
        names: &Dictionary,
        sources: &[Vec<u8>],
    ) -> Self {
        let event = Event::new(frame).expect("a whole event");
        let (mut bare, mut all) = (frame.to_vec(), Vec::new());
        let name = |dict, id: u32| match id {
            0 => String::new(),
            id => names.name(dict, id).unwrap_or_else(|| panic!("{dict:?} {id} has no name")).to_owned(),
        };
        for spec in event.schema().fields {
            let mut scratch = [0; 36];
            match (spec.slot, event.value(spec, &mut scratch)) {
                (FieldLayout::SymExt { .. }, Some(EventValue::Sym(dict, id))) => {
                    all.push((spec.field, vec![name(dict, id)]));
                    let mut entries = event.extension_entries();
                    let (_, payload) = entries.find(|(tag, _)| *tag == spec.field as u16).expect("its entry");
                    let start = payload.as_ptr() as usize - frame.as_ptr() as usize;
                    bare[start..start + payload.len()].fill(0);
                }
                (slot, Some(EventValue::Sym(dict, id))) => {
                    all.push((spec.field, vec![name(dict, id)]));
                    let (at, n) = width_bytes(slot).expect("an id has a place");
                    bare[usize::from(at)..usize::from(at + n)].fill(0);
                }
                (FieldLayout::Syms { dict }, Some(EventValue::Syms(_, ids))) => {
                    let id = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
                    all.push((spec.field, ids.chunks(4).map(|b| name(dict, id(b))).collect()));
                    let start = ids.as_ptr() as usize - frame.as_ptr() as usize;
                    bare[start..start + ids.len()].fill(0);
                }
                _ => {}
            }
        }
        bare[at::SOURCE..at::SOURCE + 4].fill(0);
        let source = (event.source() != 0).then(|| {
            let is_it = |f: &&Vec<u8>| f[at::INSTRUMENT..at::INSTRUMENT + 4] == event.source().to_le_bytes();
            let definition = sources.iter().rev().find(is_it).expect("a source is defined");
            source_text(&Event::new(definition).unwrap())
        });
        let (ts, kind) = (event.ts_event().0, event.kind());
        Self { ordinal, position: position.0, ts, kind, frame: bare, names: all, source }
    }

    /// The name in a field.
    pub fn name(&self, field: EventField) -> Option<&str> {
        self.names.iter().find(|(f, _)| *f == field).and_then(|(_, n)| n.first()).map(String::as_str)
    }

    /// The day in which it is sealed: a quarantined message without a time has none.
    pub fn day(&self) -> Day {
        let is_undated = self.kind == EventKind::Quarantine && self.ts == 0;
        if is_undated { Day::UNDATED } else { Day::from_time(UnixNanos(self.ts)) }
    }

    /// The schema in which it is sealed.
    pub fn schema(&self) -> TickSchema {
        TickSchema::for_kind(self.kind).expect("an event")
    }

    /// The instrument in whose blocks it is sealed.
    pub fn symbol(&self) -> Option<&str> {
        match self.kind {
            EventKind::News | EventKind::Comm => None,
            EventKind::Index => self.name(EventField::Index),
            _ => self.name(EventField::Instr),
        }
    }

    /// The venue, or the bank that quotes.
    pub fn venue(&self) -> Option<&str> {
        [EventField::Venue, EventField::Mic, EventField::Bank].iter().find_map(|field| self.name(*field))
    }

    /// Whether a filter wants it, by the names of its fields.
    pub fn matches(&self, f: &ScanFilter) -> bool {
        let is_wanted = |name: &str| f.symbols.iter().any(|symbol| symbol == name);
        let is_symbol = match self.kind {
            EventKind::News | EventKind::Comm => self.names(EventField::Instrs).iter().any(|n| is_wanted(n)),
            _ => self.symbol().is_some_and(is_wanted),
        };
        (f.symbols.is_empty() || is_symbol)
            && f.from.is_none_or(|ts| self.ts >= ts.0)
            && f.to.is_none_or(|ts| self.ts < ts.0)
            && f.date.is_none_or(|date| self.day() == date)
            && (f.schemas.is_empty() || f.schemas.contains(&self.schema()))
            && f.venue.as_ref().is_none_or(|venue| self.venue() == Some(venue))
    }

    /// All names in a field.
    pub fn names(&self, field: EventField) -> &[String] {
        self.names.iter().find(|(f, _)| *f == field).map_or(&[], |(_, n)| n)
    }
}

/// The definition of a source, without its number.
pub fn source_text(definition: &Event<'_>) -> String {
    let part = |f| format!("{:?}", definition.field(f, &mut [0; 36]));
    [EventField::Feed, EventField::File, EventField::Base].map(part).join("/")
}

/// All events of a tape.
pub fn seen_on_tape(dir: &Path) -> Vec<Seen> {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let (mut names, mut sources, mut all) = (Dictionary::default(), Vec::new(), Vec::new());
    loop {
        let ordinal = reader.ordinal();
        let Some(frame) = reader.next().unwrap() else { return all };
        let event = Event::new(frame.bytes).unwrap();
        let uint = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::UInt(v)) => v as u32,
            other => panic!("{other:?}"),
        };
        match event.kind() {
            EventKind::Define => {
                let mut scratch = [0; 36];
                let Some(EventValue::Text(name)) = event.field(EventField::Name, &mut scratch) else {
                    panic!("no name")
                };
                let dict = NameKind::from_u8(uint(EventField::Dict) as u8).unwrap();
                assert!(names.define(dict, uint(EventField::Index), name.as_bytes()));
            }
            EventKind::Source => sources.push(frame.bytes.to_vec()),
            EventKind::Progress => {}
            _ => all.push(Seen::of(frame.bytes, ordinal, frame.position, &names, &sources)),
        }
    }
}

/// All events that a scan returns, and how many problems it reported.
pub fn seen_in_store(store: &Store, filter: &ScanFilter) -> (Vec<Seen>, usize) {
    let sources: Vec<Vec<u8>> = store.sources().map(|e| e.bytes().to_vec()).collect();
    let mut scan = store.scan(filter).unwrap();
    let all = seen_in_scan(&mut scan, store.names(), &sources);
    (all, scan.problems().len())
}

/// All events that are left of a scan.
pub fn seen_in_scan(scan: &mut Scan<'_>, names: &Dictionary, sources: &[Vec<u8>]) -> Vec<Seen> {
    let mut all = Vec::new();
    while let Some(row) = scan.next() {
        all.push(Seen::of(row.frame, row.ordinal, row.position, names, sources));
    }
    all
}

/// The first difference, shown in few words.
#[track_caller]
pub fn assert_same(got: &[Seen], want: &[Seen]) {
    if let Some(i) = (0..got.len().min(want.len())).find(|i| got[*i] != want[*i]) {
        panic!("event {i} of {} and {}:\n got {:?}\nwant {:?}", got.len(), want.len(), got[i], want[i]);
    }
    assert_eq!(got.len(), want.len(), "events");
}
