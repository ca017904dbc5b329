//! `bench store`: a tape into the store, and back.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, rounded};
use std::fs;
use std::path::Path;
use unitape_model::{
    Decimal, DefinitionTable, EventBuilder, EventField, EventKind, EventValue, InstrumentId, NameKind,
    NameResolver, Price, UnixNanos, flags, frames,
};
use unitape_sim::Rng;
use unitape_store::{MasterKey, ScanFilter, SealOptions, Store, SystemRandomness, seal};
use unitape_tape::{Reader, StartPosition, TapeId, Writer, WriterOptions};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let scratch_dir = context.fresh("store")?;
    let (tape, store) = (scratch_dir.path().join("tape"), scratch_dir.path().join("store"));
    let rows = context.pick(20_000, 4_000_000);
    make_tape(&tape, rows)?;
    let input = hash_of_tape(&tape)?;
    let with_hashes = |r: BenchRecord, output: &str| BenchRecord {
        place: Some(context.medium.clone()),
        input_sha256: Some(input.clone()),
        output_sha256: Some(output.to_owned()),
        ..r
    };
    let key = MasterKey::random(&SystemRandomness)?;
    let mut ingest = RepeatTimes::default();
    let (mut bytes, mut warm) = (0, RepeatTimes::default());
    for round in 0..=context.repeats(3) {
        _ = fs::remove_dir_all(&store);
        let times = if round == 0 { &mut warm } else { &mut ingest };
        let sealed = times.time(|| seal(&tape, &store, &key, UnixNanos(0), &SealOptions::default()))?;
        if sealed.rows != rows {
            return Err(Error::Failed(format!("store ingest: {} rows, not {rows}", sealed.rows)));
        }
        bytes = sealed.bytes + fs::metadata(store.join("dictionary.log"))?.len();
    }
    let opened = Store::open(&store, &key)?;
    let output = hash_of_scan(&opened)?;
    // The slow twin is the tape itself: all of it, in its order, with names for ids.
    if output != input {
        return Err(Error::Failed("store: a scan gives other events than the tape".to_owned()));
    }
    let raw = rows * 64;
    if context.wants("store", "ingest") {
        let method = "a tape of best quotes and trades of 1,000 instruments at 4 venues, in the page cache, to a sealed \
                      day in a fresh store: ids to tokens, columns, encrypted in three classes, flushed; a scan of it gives the tape, \
                      compared by hash of every frame and name";
        out(with_hashes(ingest.record("store", "ingest", rows, raw, method.to_owned()), &output))?;
    }
    if context.wants("store", "scan") {
        let mut times = RepeatTimes::default();
        for round in 0..=context.repeats(5) {
            let times = if round == 0 { &mut warm } else { &mut times };
            let (count, sum) = times.time(|| count_rows(&opened))?;
            if (count, sum) != (rows, rows * (rows - 1) / 2) {
                return Err(Error::Failed(format!("store scan: {count} rows, ordinals sum to {sum}")));
            }
        }
        let method = "all events of the day, from the page cache, as frames of 64 bytes in the order of the tape: \
                      opened, columns to frames, merged by ordinal; not to columns";
        out(with_hashes(times.record("store", "scan", rows, raw, method.to_owned()), &output))?;
    }
    if context.wants("store", "size") {
        let method = "bytes of the files of the day and the dictionary over its rows: event time, venue, instrument, \
                      prices, quantities, and for each row its ordinal and position on the tape";
        let record = ingest.record("store", "size", rows, raw, method.to_owned());
        out(with_hashes(
            BenchRecord { bytes_per_row: Some(rounded(bytes as f64 / rows as f64)), ..record },
            &output,
        ))?;
    }
    Ok(())
}

/// Writes a tape of best quotes and trades. The instruments' prices wander on a grid of ticks, with nine quotes to a
/// trade.
pub fn make_tape(dir: &Path, rows: u64) -> Result<(), Error> {
    let mut writer = Writer::open(dir, TapeId(0x570), WriterOptions::default())?.0;
    let mut rng = Rng::new(7);
    let (mut names, mut unit) = (unitape_model::Dictionary::default(), Vec::new());
    let instruments: Vec<InstrumentId> = (0..INSTRUMENTS)
        .map(|i| define(&mut names, NameKind::Instrument, &format!("GB{i:010}"), &mut unit).map(InstrumentId))
        .collect::<Result<_, _>>()?;
    let venues = ["XLON", "CHIX", "BATE", "TRQX"]
        .iter()
        .map(|name| define(&mut names, NameKind::Venue, name, &mut unit))
        .collect::<Result<Vec<u32>, _>>()?;
    let mut mids: Vec<i64> = (0..INSTRUMENTS).map(|_| 1_000 + rng.below(200_000) as i64).collect();
    let mut ts = 1_710_144_000_000_000_000;
    for n in 0..rows {
        // A few instruments have most of the events.
        let instrument_index = rng.below(INSTRUMENTS) * rng.below(INSTRUMENTS) / INSTRUMENTS;
        let mid = &mut mids[instrument_index as usize];
        *mid = (*mid + rng.below(3) as i64 - 1).max(10);
        ts += rng.below(2 * DAY_NS / 3 / rows) as i64;
        let kind = if n % 10 == 9 { EventKind::Trade } else { EventKind::Bbo };
        let mut e = EventBuilder::begin(&mut unit, kind, UnixNanos(ts));
        let mut set = |field, value| e.set_field(field, value).map_err(|e| Error::Failed(e.to_string()));
        let px = |ticks: i64| EventValue::Price(Price(ticks * 10_000_000));
        let mut qty = || EventValue::Decimal(Decimal::new(1 + rng.below(99) as i64, 2).expect("small"));
        set(EventField::Venue, EventValue::Sym(NameKind::Venue, venues[(n % 4) as usize]))?;
        set(
            EventField::Instr,
            EventValue::Sym(NameKind::Instrument, instruments[instrument_index as usize].0),
        )?;
        if kind == EventKind::Bbo {
            set(EventField::Bid, px(*mid - 1))?;
            set(EventField::BidQty, qty())?;
            set(EventField::Ask, px(*mid + 1 + (n % 3) as i64))?;
            set(EventField::AskQty, qty())?;
        } else {
            set(EventField::Px, px(*mid))?;
            set(EventField::Qty, qty())?;
        }
        e.finish(flags::LAST).map_err(|e| Error::Failed(e.to_string()))?;
        if unit.len() >= 1 << 16 {
            writer.append(&unit)?;
            unit.clear();
        }
    }
    if !unit.is_empty() {
        writer.append(&unit)?;
    }
    Ok(writer.close()?)
}

const INSTRUMENTS: u64 = 1_000;
const DAY_NS: u64 = 86_400_000_000_000;

/// Defines a name and appends its definition to `unit`. Returns the id.
fn define(
    names: &mut unitape_model::Dictionary,
    dict: NameKind,
    name: &str,
    unit: &mut Vec<u8>,
) -> Result<u32, Error> {
    let offset = unit.len();
    let refused = |e: unitape_model::Refusal| Error::Failed(e.to_string());
    let id = names.resolve(dict, name.as_bytes(), offset).map_err(refused)?;
    EventBuilder::define(unit, dict, id, name).map_err(refused)?;
    Ok(id)
}

/// Adds an event: its ordinal, its frame without ids, and the names of the ids.
fn add(hash: &mut HexSha256, ordinal: u64, frame: &[u8], instrument: &str, venue: &str) {
    hash.add(&ordinal.to_le_bytes());
    hash.add(&frame[..32]);
    hash.add(&frame[38..]);
    hash.add(instrument.as_bytes());
    hash.add(venue.as_bytes());
}

fn hash_of_tape(dir: &Path) -> Result<String, Error> {
    let mut reader = Reader::open(dir, StartPosition::Oldest)?;
    let mut names = DefinitionTable::default();
    let mut hash = HexSha256::default();
    while let Some(run) = reader.next_run(1 << 20)? {
        let mut ordinal = run.ordinal;
        for (_, header, frame) in frames(run.bytes) {
            let Some(event) = names.admit_frame(frame)?.filter(|_| !header.is_meta()) else { continue };
            let name = |dict, id| names.name(dict, id).unwrap_or("?");
            let (instrument, venue) = (event.instrument(), event.venue().into());
            add(
                &mut hash,
                ordinal,
                frame,
                name(NameKind::Instrument, instrument.0),
                name(NameKind::Venue, venue),
            );
            ordinal += 1;
        }
    }
    Ok(hash.hex())
}

fn hash_of_scan(store: &Store) -> Result<String, Error> {
    let (mut scan, mut hash) = (store.scan(&ScanFilter::default())?, HexSha256::default());
    while let Some(row) = scan.next() {
        let (event, name) = (row.event(), |dict, id| store.names().name(dict, id).unwrap_or("?"));
        let (instrument, venue) = (event.instrument(), event.venue().into());
        add(
            &mut hash,
            row.ordinal,
            row.frame,
            name(NameKind::Instrument, instrument.0),
            name(NameKind::Venue, venue),
        );
    }
    match scan.problems().first() {
        Some(problem) => Err(Error::Failed(problem.to_string())),
        None => Ok(hash.hex()),
    }
}

/// Rows of a scan, and the sum of their ordinals.
fn count_rows(store: &Store) -> Result<(u64, u64), Error> {
    let (mut scan, mut count, mut sum) = (store.scan(&ScanFilter::default())?, 0, 0);
    while let Some(row) = scan.next() {
        count += 1;
        sum += row.ordinal;
        std::hint::black_box(row.frame[40]);
    }
    match scan.problems().first() {
        Some(problem) => Err(Error::Failed(problem.to_string())),
        None => Ok((count, sum)),
    }
}
