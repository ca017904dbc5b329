//! Another master key for a store, and the end of a day.

use std::path::Path;

use crate::day::Day;
use crate::error::Result;
use crate::keys::{MasterKey, Randomness};
use crate::writer::StoreWriter;

/// Gives the store another master key. Its data stay as they are: the keys that seal them are wrapped anew.
///
/// The old key opens no manifest from now on, and no key of a day that is sealed later. Whoever has the old key and a copy of an
/// old manifest can still read the days of that manifest, and names.
///
/// # Errors
/// Fails if there is no store, if the key is another one, or if somebody else changes the store. The store then has its old key.
pub fn rekey(store: &Path, key: &MasterKey, new_key: &MasterKey, random: &dyn Randomness) -> Result<()> {
    let mut writer = StoreWriter::open(store, key, random)?;
    let StoreWriter { dir, manifest, keys, .. } = &mut writer;
    keys.rewrap(new_key, &mut manifest.keys, &mut manifest.day_keys, random)?;
    manifest.store_manifest(dir, keys, random)?
}

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraseReport {
    /// Events.
    pub rows: u64,
    /// Files.
    pub files: u64,
    /// Files of them that stay for now, because a reader may read them.
    pub kept_files: u64,
}

/// Erases a day: its files, and the key that opens them. Tapes that were sealed are not sealed again, so the day stays empty. An
/// earlier state has the day no more, either.
///
/// A copy of a file of the day opens no more with this store. A copy of the whole store, with its manifest, still has the day.
///
/// # Errors
/// Fails if there is no store, if the key is another one, or if somebody else changes the store. The day then stays.
pub fn erase_day(store: &Path, key: &MasterKey, day: Day, random: &dyn Randomness) -> Result<EraseReport> {
    let mut writer = StoreWriter::open(store, key, random)?;
    let mut report = EraseReport::default();
    let StoreWriter { dir, manifest, keys, .. } = &mut writer;
    for part in manifest.parts.iter().filter(|part| part.date == day) {
        report.files += part.files.len() as u64;
        report.rows += part.files.iter().map(|file| file.rows).sum::<u64>();
    }
    if report.files == 0 {
        return Ok(report);
    }
    manifest.remove_day(day);
    manifest.store_manifest(dir, keys, random)??;
    writer.remove_unnamed(Some(day))?;
    report.kept_files = writer.kept_files([&day]);
    Ok(report)
}
