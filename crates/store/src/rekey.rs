//! Another master key for a store, and the end of a day or a name.

use std::path::Path;

use unitape_model::NameKind;

use crate::day::Day;
use crate::dictionary::TokenDictionary;
use crate::error::{Error, Result};
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
    writer.remove_replaced(Some(day))?;
    report.kept_files = writer.kept_files([&day]);
    Ok(report)
}

/// A name that was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameErasure {
    /// The kinds that had the name, and its token in each.
    pub tokens: Vec<(NameKind, u32)>,
    /// Dictionaries that stay for now, because a reader may read them.
    pub kept_files: u64,
}

/// Erases a name, of each kind that has it: an instrument, a venue, an owner and so on. Its tokens and its events stay, and readers
/// give the name as `erased-` and the token. If it is sealed again, it gets another token. Text of an event that is no name of a
/// kind stays as it is.
///
/// A copy of the dictionary from before opens with the key of the store, and still has the name.
///
/// # Errors
/// Fails if there is no store, if the key is another one, if the dictionary is damaged, if nothing has the name, or if somebody
/// else changes the store. The name then stays.
pub fn erase_name(store: &Path, key: &MasterKey, name: &str, random: &dyn Randomness) -> Result<NameErasure> {
    let mut writer = StoreWriter::open(store, key, random)?;
    let StoreWriter { dir, manifest, keys, .. } = &mut writer;
    let dictionary = TokenDictionary::load(dir, keys, manifest)?;
    let tokens = dictionary.find_in_all_kinds(name);
    if let Some(damage) = dictionary.sealed().and_then(|sealed| sealed.damage()) {
        return Err(damage);
    }
    if tokens.is_empty() {
        return Err(Error::UnknownName { kind: "name", name: name.to_owned() });
    }
    let (path, digest) = dictionary.write_without(dir, keys, manifest, &tokens, random)?;
    manifest.replace_dictionary(path, digest);
    // If this fails, the next change removes the dictionary that does not count.
    manifest.store_manifest(dir, keys, random)??;
    writer.remove_replaced(None)?;
    Ok(NameErasure { tokens, kept_files: writer.kept_dictionaries() })
}
