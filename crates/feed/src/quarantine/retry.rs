//! A retry: messages in quarantine are decoded once more, by a mended mapping or with mended reference data.
//!
//! Events from a retry are appended, flagged late. If the mapping is not that of the message's source, the events
//! carry a further definition of the source that names it. So nobody looks for their meaning in the wrong mapping.

use super::{QuarantineEntry, compare_bytes, list, raw_of};
use crate::account::bookkeeping::retried_frame;
use crate::account::{SourceAccount, TapeAccount, refuse_merge};
use crate::block::Block;
use crate::error::Error;
use crate::formats::decoder::DecodeOptions;
use crate::formats::format::Format;
use crate::formats::format::FormatId;
use crate::mapping::Mapping;
use crate::reference::{InstrumentMaster, ReferenceIdentity};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use unitape_model::{Dictionary, ErrorCause, EventBuilder, FrameHeader, NameKind, flags};
use unitape_tape::{Writer, WriterOptions};

/// The result of a retry.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct RetryReport {
    pub tried: u64,
    pub recovered: u64,
    pub events: u64,
    pub left: u64,
    /// Remaining entries that were not retried because their bytes differ; printed if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Tries every entry again with `mapping`, or with the shipped mapping of the source's name; what becomes events
/// is appended, flagged late, with the definitions it needs. Instruments are looked up in `reference` where the source
/// was read with reference data, and must be in it where they had to be then.
///
/// # Errors
/// Fails if the tape cannot be read or written, no mapping is known for a source, `mapping` is for a format that no entry has,
/// or a source was read with reference data and there is none now: its messages would get other names than their
/// neighbours.
pub fn retry(
    dir: &Path,
    mapping: Option<&Mapping>,
    reference: Option<&InstrumentMaster>,
) -> Result<RetryReport, Error> {
    refuse_merge(dir)?;
    let entries = list(dir)?;
    let account = TapeAccount::load(dir)?;
    account.refuse_mismatch()?;
    refuse_other_format(&account, &entries, mapping)?;
    for e in entries.iter().filter(|e| e.is_open() && reference.is_none()) {
        let format_id = sort_of(&account, e);
        if let Some(identity) =
            ReferenceIdentity::from_mapping_name(format_id.mapping.as_deref().unwrap_or_default())
        {
            let reason = format!(
                "was read with reference data ({}); name them with --reference FILE:MAPPING, the same or mended ones",
                identity.files
            );
            return Err(Error::Config { origin: e.source.clone(), reason });
        }
    }
    let id = unitape_tape::tape_status(dir)?.id;
    let (mut writer, _) = Writer::open(dir, id, WriterOptions::default())?;
    let mut account = TapeAccount::load(dir)?;
    let mut further =
        RetryDefinitions { next_definition: account.next_source, definition_ids: BTreeMap::new() };
    let mut report = RetryReport::default();
    for e in entries.iter().filter(|e| e.is_open()) {
        report.tried += 1;
        let format = format_of(&account, e, mapping, reference)?;
        let raw = raw_of(dir, e).and_then(|raw| compare_bytes(dir, e.raw_at, &e.hash, &raw).map(|()| raw));
        let raw = match raw {
            Ok(raw) => raw,
            Err(error) if error.cause() == ErrorCause::Data => {
                report.damaged.push(format!("{error} (event at position {})", e.position));
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut block = Block { base: e.offset, bytes: raw, ..Block::default() };
        block.head = e.head.clone();
        (block.eof, block.is_retry) = (true, true);
        let nothing = Dictionary::default();
        let (source, definition) = further.source_of(&account, e, FormatId::from_format(&format));
        format.decoder()?.decode(&mut block, source, &nothing, &DecodeOptions::default());
        let is_whole_message =
            block.units.first().is_some_and(|u| u.kind.is_events() && u.offset == e.offset)
                && block.tally.messages == 1;
        if !is_whole_message {
            continue;
        }
        let events = block.units[0].events;
        let dictionary = account.names.dictionary_mut();
        let Some(unit) = late_unit(dictionary, &mut block, &definition) else { continue };
        writer.append(&unit)?;
        further.keep_definition(e, source, FormatId::from_format(&format));
        report.recovered += 1;
        report.events += u64::from(events);
    }
    writer.close()?;
    report.left = report.tried - report.recovered;
    Ok(report)
}

/// Fails if no entry can be retried with the mapping: otherwise each would silently be retried with its source's own
/// mapping.
fn refuse_other_format(
    account: &TapeAccount,
    entries: &[QuarantineEntry],
    mapping: Option<&Mapping>,
) -> Result<(), Error> {
    let Some(mapping) = mapping else { return Ok(()) };
    let mut formats: Vec<String> =
        entries.iter().filter(|e| e.is_open()).map(|e| sort_of(account, e).format).collect();
    formats.sort_unstable();
    formats.dedup();
    if formats.is_empty() || formats.contains(&mapping.format) {
        return Ok(());
    }
    let (format, have) = (&mapping.format, formats.join(", "));
    let reason = format!(
        "is for format {format}, and what is in quarantine is of format {have}; name a mapping for that with --mapping"
    );
    Err(Error::Config { origin: format!("mapping {}", mapping.name), reason })
}

/// Further definitions of sources, for events recovered with another mapping than the source's.
struct RetryDefinitions {
    next_definition: u32,
    /// By the source, its 4 GiB, format and mapping.
    definition_ids: BTreeMap<(u32, u64, String, Option<String>), u32>,
}

impl RetryDefinitions {
    /// Returns the id for events of the entry, and its definition if the tape does not have it yet.
    fn source_of(&self, account: &TapeAccount, e: &QuarantineEntry, format_id: FormatId) -> (u32, Vec<u8>) {
        let source = account.sources.iter().find(|s| s.id == e.source_id);
        let has_own_mapping =
            |s: &&SourceAccount| s.format_ids.get(&e.extent_id).is_none_or(|was| *was == format_id);
        // An entry without a source has no mapping.
        let Some(source) = source.filter(|s| !has_own_mapping(s)) else { return (e.extent_id, Vec::new()) };
        if let Some(id) = self.definition_ids.get(&retry_key(e, format_id.clone())) {
            return (*id, Vec::new());
        }
        let mut definition = Vec::new();
        retried_frame(&mut definition, self.next_definition, source, &format_id, e.offset >> 32 << 32);
        (self.next_definition, definition)
    }

    /// Notes that the entry's events are on the tape under this id.
    fn keep_definition(&mut self, e: &QuarantineEntry, id: u32, format_id: FormatId) {
        if id == self.next_definition {
            self.next_definition += 1;
            self.definition_ids.insert(retry_key(e, format_id), id);
        }
    }
}

fn retry_key(e: &QuarantineEntry, format_id: FormatId) -> (u32, u64, String, Option<String>) {
    (e.source_id, e.offset >> 32, format_id.format, format_id.mapping)
}

/// Makes frames for the tape from the block's one message: the source's `definition` and other definitions first,
/// names resolved, all flagged late. Returns `None` if a dictionary has no room for its names.
fn late_unit(dictionary: &mut Dictionary, block: &mut Block, definition: &[u8]) -> Option<Vec<u8>> {
    if block.full_dictionary(0..block.fixups.len(), dictionary, |_| 0).is_some() {
        return None;
    }
    let mut out = definition.to_vec();
    for f in std::mem::take(&mut block.fixups) {
        let name = block.names.name(f.dict, f.id).expect("the block's own name").to_owned();
        let (id, new) = dictionary.intern(f.dict, name.as_bytes()).expect("it has a place");
        if new {
            EventBuilder::define(&mut out, f.dict, id, &name).expect("a name of a dictionary");
        }
        let width = if f.dict == NameKind::Venue { 2 } else { 4 };
        let offset = f.id_offset as usize;
        block.arena[offset..offset + width].copy_from_slice(&id.to_le_bytes()[..width]);
    }
    let frames_end = block.units[0].end as usize;
    let mut frame_offset = 0;
    while frame_offset < frames_end {
        let header = FrameHeader::read(&block.arena[frame_offset..]).with_flags(flags::LATE);
        header.write(&mut block.arena[frame_offset..]);
        frame_offset += header.len_bytes();
    }
    out.extend_from_slice(&block.arena[..frames_end]);
    Some(out)
}

fn sort_of(account: &TapeAccount, entry: &QuarantineEntry) -> FormatId {
    let source = account.sources.iter().find(|s| s.id == entry.source_id);
    source.map(|s| s.format_id.clone()).unwrap_or_default()
}

fn format_of(
    account: &TapeAccount,
    entry: &QuarantineEntry,
    mapping: Option<&Mapping>,
    reference: Option<&InstrumentMaster>,
) -> Result<Format, Error> {
    let format_id = sort_of(account, entry);
    let mapping_name = format_id.mapping.as_deref().unwrap_or_default();
    let name = mapping_name.split('@').next().unwrap_or_default();
    let format = match mapping {
        Some(m) if m.format == format_id.format => Format::from_mapping(m.clone()),
        _ => Format::from_names(&format_id.format, name),
    }?;
    Ok(match (reference, ReferenceIdentity::from_mapping_name(mapping_name)) {
        (Some(reference), Some(recorded)) => {
            format.with_reference(&Arc::new(reference.clone().with_strictness(recorded.rejects_unknown)))
        }
        _ => format,
    })
}
