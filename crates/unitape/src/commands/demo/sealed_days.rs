//! The tape's days, sealed, and compared with it.

use super::demo_directory::DemoDirectory;
use crate::output::CommandFailure;
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::DefinitionTable;
use unitape_store::{MasterKey, ScanFilter, SealOptions, Store, StoreSummary, SystemRandomness, seal};
use unitape_tape::{Reader, StartPosition};

/// The days and what differs between them and the tape.
#[derive(Debug)]
pub struct SealedDaysReport {
    /// The contents of the store.
    pub info: StoreSummary,
    /// Where an event differs from the tape's; empty when all is well.
    pub differs: Vec<String>,
}

/// One in this many events is compared as it reads, names and all; of all others place, kind and time.
const READ_OUT: u64 = 16;

/// Seals the days of the tape and reads them back beside it.
pub fn seal_and_compare(demo_dir: &DemoDirectory) -> Result<SealedDaysReport, CommandFailure> {
    let key = MasterKey::create(&MasterKey::path_beside(&demo_dir.store())?, &SystemRandomness)?;
    seal(&demo_dir.tape(), &demo_dir.store(), &key, &SealOptions::default())?;
    let store = Store::open(&demo_dir.store(), &key)?;
    let mut scan = store.scan(&ScanFilter::default())?;
    let mut reader = Reader::open(&demo_dir.tape(), StartPosition::Oldest)?;
    let mut differs = Vec::new();
    let (mut names, mut sealed_sources) = (DefinitionTable::default(), DefinitionTable::default());
    for event in store.sources() {
        sealed_sources.admit(&event)?;
    }
    let (mut on_tape, mut sealed) = (Vec::new(), Vec::new());
    loop {
        let ordinal = reader.ordinal();
        let Some(frame) = reader.next()? else { break };
        let Some(event) = names.admit_frame(frame.bytes)?.filter(|_| !frame.header.is_meta()) else {
            continue;
        };
        let Some(row) = scan.next() else {
            differs.push(format!("the days end before position {}", frame.position));
            break;
        };
        let of_row = row.event();
        let is_same = (row.position, row.ordinal, of_row.kind(), of_row.ts_event())
            == (frame.position, ordinal, event.kind(), event.ts_event());
        let reads_same = !ordinal.is_multiple_of(READ_OUT) || {
            on_tape.clear();
            sealed.clear();
            write_event(&mut on_tape, &event, ordinal, names.dictionary(), &names, EventLineDetail::Plain);
            write_event(
                &mut sealed,
                &of_row,
                row.ordinal,
                store.names(),
                &sealed_sources,
                EventLineDetail::Plain,
            );
            on_tape == sealed
        };
        if !is_same || !reads_same {
            differs.push(format!("the event at position {} is another one in its day", frame.position));
        }
    }
    if let Some(row) = scan.next() {
        differs.push(format!("the days hold an event of position {} that the tape does not", row.position));
    }
    differs.extend(scan.problems().iter().map(ToString::to_string));
    Ok(SealedDaysReport { info: store.info(), differs })
}
