//! From master files to a [`InstrumentMaster`].
//!
//! The master is messages like all others: its mapping makes `ref` events of them, and each is an entry. `instr` is the
//! name on the tape; `figi`, `mic` with `symbol`, and `isin` among what is kept are its notations; `valid_from` and
//! `valid_to` among what is kept say on which days, both included, and either may be missing. Several entries of one
//! `instr` are one instrument in several notations.

use crate::account::{text, uint};
use crate::block::Block;
use crate::error::Error;
use crate::formats::format::Format;
use crate::mapping::Mapping;
use crate::pipeline::walk::walk_blocks;
use crate::reference::{DayNumber, InstrumentMaster, SymbologyRow, SymbologyTable, VenueIndex, day_of_date};
use crate::sources::hash;
use crate::sources::source::is_stdin;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use unitape_base::toml::suggest_word;
use unitape_model::{
    CivilDate, Dictionary, Event, EventField, EventKind, EventSchema, EventValue, InstrumentId, frames,
};

/// Reads master files, one after the other.
#[derive(Debug, Default)]
pub struct MasterLoader {
    files: Vec<PathBuf>,
    notations: Vec<SymbolAlias>,
    instruments: InternedTexts,
    venues: InternedTexts,
    identity: String,
    user_notes: Vec<String>,
    /// Notes that were made, also those that are not kept.
    note_count: u64,
    /// The current file is events: each key must be known, because no mapping kept unknown keys.
    is_events: bool,
}

/// Notes kept, at most.
const NOTES_MAX: usize = 20;

/// Keys of a `ref` besides its fields that are looked at, or kept for others.
const KEYS: [&str; 4] = ["isin", "valid_from", "valid_to", "tick_table"];

/// A notation as an entry has it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SymbolAlias {
    name: Box<str>,
    venue: VenueIndex,
    first_day: DayNumber,
    last_day: DayNumber,
    instrument: InstrumentId,
    position: MasterPlace,
}

/// Start of an entry in the files of reference data; the order is that in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MasterPlace {
    /// Index of the file.
    file_index: usize,
    offset: u64,
}

/// Texts by number.
#[derive(Debug, Default)]
struct InternedTexts {
    id_by_text: FxHashMap<Box<str>, u32>,
    names: Vec<String>,
}

impl InternedTexts {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.id_by_text.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.id_by_text.insert(name.into(), id);
        self.names.push(name.to_owned());
        id
    }
}

impl MasterLoader {
    /// Reads the file of `FILE:MAPPING`, where `events` as mapping says that the file is events as JSON Lines.
    ///
    /// # Errors
    /// Fails if there is no such file or mapping, and as [`MasterLoader::add`].
    pub fn add_option(&mut self, option: &str) -> Result<(), Error> {
        let parts = option.rsplit_once(':').filter(|(file, mapping)| !file.is_empty() && !mapping.is_empty());
        let Some((file, mapping)) = parts else {
            let reason = "FILE:MAPPING is needed: a file, and the shipped mapping or file that reads it";
            return Err(Error::Config { origin: format!("--reference {option}"), reason: reason.to_owned() });
        };
        self.add(Path::new(file), &Self::format(mapping)?)
    }

    /// Lists the doubtful parts of accepted files: symbols without a MIC, keys that unitape does not read.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let notes_left_out = self.note_count - self.user_notes.len() as u64;
        self.user_notes.iter().cloned().chain(
            (notes_left_out > 0).then(|| format!("reference data: and {notes_left_out} more of the like")),
        )
    }

    fn add_note(&mut self, position: MasterPlace, describe: impl FnOnce() -> String) {
        let MasterPlace { file_index: file, offset } = position;
        self.note_count += 1;
        if self.user_notes.len() < NOTES_MAX {
            self.user_notes.push(format!(
                "reference data {}, byte {offset}: {}",
                self.files[file].display(),
                describe()
            ));
        }
    }

    /// Returns whether no file was read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the format of a master file for this mapping.
    ///
    /// # Errors
    /// Fails if it is neither `events`, nor a shipped mapping, nor a file that is one.
    pub fn format(mapping: &str) -> Result<Format, Error> {
        match mapping {
            "events" => Ok(Format::events()),
            mapping => Format::from_mapping(Mapping::load(mapping)?),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Fails if it cannot be read, has no entry, or one that cannot be: a message that goes into quarantine, or dates that
    /// are none or end before they begin.
    pub fn add(&mut self, path: &Path, format: &Format) -> Result<(), Error> {
        if is_stdin(path) {
            let reason = "a master is a file: every process of a run reads it, and a retry reads it again";
            return Err(Error::Config { origin: "reference data -".to_owned(), reason: reason.to_owned() });
        }
        let read_error = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        let (_, hash) = File::open(path).and_then(|file| hash::hash_file(&file, 1)).map_err(read_error)?;
        let file = self.files.len();
        self.files.push(path.to_owned());
        let old_count = self.notations.len();
        self.is_events = format.is_events();
        walk_blocks(format, path, &mut format.decoder()?, |_, block| self.entries(file, block))?;
        if self.notations.len() == old_count {
            let reason = "no entry: the mapping makes no `ref` event of it".to_owned();
            return Err(self.reference_error(MasterPlace { file_index: file, offset: 0 }, reason));
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let mapping = format.mapping_identity().unwrap_or_else(|| format.name().to_owned());
        self.identity.push_str(&format!("+{name}@{}:{mapping}", &hash[..16]));
        Ok(())
    }

    /// Builds one table of all files. Names that the table lacks stay unchanged.
    ///
    /// # Errors
    /// Fails if a notation means two instruments on one day.
    pub fn finish(mut self) -> Result<InstrumentMaster, Error> {
        let mut notations = std::mem::take(&mut self.notations);
        notations.sort_unstable();
        // The entry of a notation so far that ends last: all of them mean the same where they overlap.
        let mut last_alias: Option<&SymbolAlias> = None;
        for n in &notations {
            match last_alias.filter(|l| l.name == n.name && l.venue == n.venue) {
                Some(l) if n.first_day <= l.last_day && n.instrument != l.instrument => {
                    return Err(self.conflict_error(l, n));
                }
                Some(l) if n.last_day <= l.last_day => {}
                _ => last_alias = Some(n),
            }
        }
        let mut by_name: FxHashMap<Box<[u8]>, std::ops::Range<usize>> = FxHashMap::default();
        let mut rows = Vec::with_capacity(notations.len());
        for group in notations.chunk_by(|a, b| a.name == b.name) {
            let row_start = rows.len();
            for &SymbolAlias { venue, first_day: from, last_day: to, instrument, .. } in group {
                rows.push(SymbologyRow { venue, from, to, instrument });
            }
            by_name.insert(group[0].name.as_bytes().into(), row_start..rows.len());
        }
        let venues = self.venues.names.into_iter().zip(1..);
        let venues = venues.map(|(name, venue)| (name.into_bytes().into(), venue)).collect();
        let table = SymbologyTable { by_name, rows, venues, instruments: self.instruments.names };
        Ok(InstrumentMaster::new(table, self.identity))
    }

    /// Takes the entries of a block.
    fn entries(&mut self, file: usize, block: &mut Block) -> Result<ControlFlow<()>, Error> {
        let mut start = 0;
        for unit in &block.units {
            for (_, _, frame) in frames(&block.arena[start..unit.end as usize]) {
                let Some(event) = Event::new(frame) else { continue };
                let position = MasterPlace { file_index: file, offset: unit.offset };
                match event.kind() {
                    EventKind::Ref => self.entry(position, &event, &block.names)?,
                    EventKind::Quarantine => {
                        let length = uint(&event, EventField::Length).unwrap_or(0);
                        let (reason, detail) =
                            (text(&event, EventField::Reason), text(&event, EventField::Detail));
                        let message = format!("{length} bytes cannot be read: {reason}: {detail}");
                        return Err(self.reference_error(position, message));
                    }
                    _ => {}
                }
            }
            start = unit.end as usize;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn entry(&mut self, position: MasterPlace, event: &Event<'_>, names: &Dictionary) -> Result<(), Error> {
        let name = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Sym(dict, id)) => names.name(dict, id),
            _ => None,
        };
        let Some(instrument) = name(EventField::Instr) else {
            return Err(
                self.reference_error(position, "an entry without `instr`, the name on the tape".to_owned())
            );
        };
        let unmapped_text = |word: &str| -> Result<Option<String>, Error> {
            let Some((_, json)) = event.unmapped_fields().find(|(name, _)| *name == word) else {
                return Ok(None);
            };
            match serde_json::from_str(json) {
                Ok(serde_json::Value::String(text)) => {
                    Ok(Some(text.trim().to_owned()).filter(|t| !t.is_empty()))
                }
                Ok(serde_json::Value::Number(n)) => Ok(Some(n.to_string())),
                Ok(serde_json::Value::Null) => Ok(None),
                _ => Err(self.reference_error(position, format!("{word}: {json} is no text"))),
            }
        };
        let day = |word: &str| -> Result<Option<DayNumber>, Error> {
            let Some(date) = unmapped_text(word)? else { return Ok(None) };
            let describe = || format!("{word}: `{date}` is no date; write it as 2026-01-05 or 20260105");
            day_of_date(&date).map(Some).ok_or_else(|| self.reference_error(position, describe()))
        };
        // A field of the event, or kept by the mapping of an older file as `valid_to` is.
        let from = match event.field(EventField::ValidFrom, &mut [0; 36]) {
            Some(EventValue::Date(date)) => Some(date.days()),
            _ => day("valid_from")?,
        };
        let to = day("valid_to")?;
        let (from, to) = (from.unwrap_or(DayNumber::MIN), to.unwrap_or(DayNumber::MAX));
        if to < from {
            let from = CivilDate::from_days_checked(from).map_or_else(String::new, |date| date.to_string());
            let valid_to_text = unmapped_text("valid_to")?.unwrap_or_default();
            return Err(self
                .reference_error(position, format!("valid_to {valid_to_text} is before valid_from {from}")));
        }
        let isin = unmapped_text("isin")?;
        let symbol = text(event, EventField::Symbol);
        if self.is_events {
            for (key, _) in event.unmapped_fields().filter(|(key, _)| !KEYS.contains(key)) {
                let fields =
                    EventSchema::for_kind(EventKind::Ref).fields.iter().map(|spec| spec.field.name());
                let suggestion = suggest_word(key, fields.chain(KEYS));
                self.add_note(position, || format!("nothing looks at `{key}`{suggestion}"));
            }
        }
        if !symbol.is_empty() && name(EventField::Mic).is_none() {
            self.add_note(position, || {
                format!("the symbol `{symbol}` has no `mic`, so that no event finds it")
            });
        }
        let instrument_id = InstrumentId(self.instruments.id(instrument));
        let mut add = |name: &str, venue| {
            let (name, instrument) = (name.into(), instrument_id);
            self.notations.push(SymbolAlias {
                name,
                venue,
                first_day: from,
                last_day: to,
                instrument,
                position,
            });
        };
        add(instrument, 0);
        for identifier in [isin.unwrap_or_default(), text(event, EventField::Figi)] {
            if !identifier.is_empty() && identifier != instrument {
                add(&identifier, 0);
            }
        }
        if let Some(mic) = name(EventField::Mic).filter(|_| !symbol.is_empty()) {
            let venue = self.venues.id(mic) + 1;
            add(&symbol, venue);
        }
        Ok(())
    }

    /// Makes the error of two entries that give one notation to different instruments.
    fn conflict_error(&self, first: &SymbolAlias, second: &SymbolAlias) -> Error {
        // The error names the place of the later entry, and mentions that of the earlier one.
        let (first, second) =
            if first.position < second.position { (first, second) } else { (second, first) };
        let notation = match second.venue.checked_sub(1) {
            None => format!("`{}`", second.name),
            Some(i) => format!("`{}` on {}", second.name, self.venues.names[i as usize]),
        };
        let name = |n: &SymbolAlias| &self.instruments.names[n.instrument.index()];
        let MasterPlace { file_index: file, offset } = first.position;
        let location = format!("{}, byte {offset}", self.files[file].display());
        let (new, old) = (name(second), name(first));
        let reason = format!(
            "{notation} is {new} here and {old} in {location} on the same day; end one of them (valid_to) before the other begins"
        );
        self.reference_error(second.position, reason)
    }

    fn reference_error(&self, position: MasterPlace, reason: String) -> Error {
        Error::Reference { path: self.files[position.file_index].clone(), offset: position.offset, reason }
    }
}

#[cfg(test)]
mod tests;
