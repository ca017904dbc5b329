//! A store compared with its manifest: the signature, every file, and with the master key every block.
//!
//! Verification checks three things. The signature and the list of files need only the public key, and one of the two
//! covers every byte of every file. The third check needs the master key: that blocks open, decode and have the number
//! in the manifest.

mod blocks;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use self::blocks::{BlockChecker, FileCounts};
use crate::day::Day;
use crate::dictionary::{SealedNames, TokenDictionary};
use crate::error::{Error, Result};
use crate::file::{BlockFile, BlockOpener, FileId};
use crate::keys::{AccessKeys, Hasher, MasterKey, PublicKey, StoreId, StoreKeys, hex};
use crate::leases::{self, Lease};
use crate::manifest::{
    FileDigest, ListedFiles, Manifest, ManifestFile, SealedPart, dictionary_revision, read_manifest,
};
use crate::scan::PROBLEMS_MAX;
use crate::schema::TickSchema;
use crate::seal::StoreProgress;
use crate::writer::LOCK;

/// The key for a check of a store.
#[derive(Clone, Copy, Debug)]
pub enum VerifyKey<'a> {
    /// The master key: blocks are opened too.
    Master(&'a MasterKey),
    /// The public half of the key that signs: signature, lengths and hashes alone.
    Public(PublicKey),
}

/// How a store is checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyOptions<'a> {
    /// Raised from outside: stop.
    pub stop: Option<&'a AtomicBool>,
    /// How far it is.
    pub progress: Option<&'a StoreProgress>,
}

/// The sort of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A file changed after it was sealed.
    Changed,
    /// A file of the store is not there.
    Missing,
    /// A file that the store does not name.
    Foreign,
    /// A file or directory that the system does not let be read.
    Unreadable,
    /// A file that a killed seal has left, or that one is writing now. It is no problem.
    LeftOver,
}

impl FindingKind {
    /// Returns the word that output uses for this finding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Foreign => "foreign",
            Self::Unreadable => "unreadable",
            Self::LeftOver => "left over",
        }
    }

    /// Returns the advice to the user.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Changed | Self::Missing => {
                "put the file back from a backup of this store, or seal its tapes again into a new directory"
            }
            Self::Foreign => "move it out of the store",
            Self::Unreadable => "give the reader access to it, or look after the disk",
            Self::LeftOver => "nothing: the next seal removes it",
        }
    }

    /// Returns whether the finding means that the store is not intact.
    pub fn is_problem(self) -> bool {
        self != Self::LeftOver
    }
}

/// Something that was found in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its sort.
    pub kind: FindingKind,
    /// The file or directory.
    pub path: PathBuf,
    /// The number of the block in the file, from 0, if a block is concerned.
    pub block: Option<u32>,
    /// The byte offset in the file, if it is known.
    pub offset: Option<u64>,
    /// The finding, in words.
    pub problem: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The id of the store in digits, or `None` if the manifest is damaged.
    pub store: Option<String>,
    /// The public half of the signing key, or `None` if the manifest is damaged.
    pub public_key: Option<PublicKey>,
    /// The generation, or `None` if the manifest is damaged.
    pub generation: Option<u64>,
    /// Files that the store has by its manifest.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Findings, the first 1,000 of them.
    pub findings: Vec<Finding>,
    /// How many of all findings are problems.
    pub problems: u64,
}

/// Compares the store in `dir` with its manifest.
///
/// # Errors
/// Fails if the directory is not a store, if the store has a foreign version or another key, or if the check was
/// stopped. Damage is not an error but a finding.
pub fn verify(dir: &Path, key: VerifyKey<'_>, options: &VerifyOptions<'_>) -> Result<VerifyReport> {
    let mut check = Verifier { store_dir: dir, options, report: VerifyReport::default(), buffer: Vec::new() };
    let path = Manifest::path(dir);
    loop {
        match check.check_manifest(&path, key) {
            Ok((signed, opened)) => {
                let _lease = Lease::take(dir, signed.revision)?;
                // Somebody may have ended a seal or a compaction meanwhile.
                if Manifest::revision_now(dir)? == signed.revision {
                    check.check_files(&signed, opened.as_ref())?;
                    break;
                }
            }
            Err(e @ Error::Damage { .. }) => {
                check.add_problem(e);
                break;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(check.report)
}

/// The files that the manifest lists, and the other fields of the manifest that a check needs.
struct SignedPart {
    store: StoreId,
    generation: u64,
    revision: u64,
    files: ListedFiles,
    /// Files that are no longer in the list, as far as the master key tells.
    replaced: BTreeSet<String>,
}

struct Verifier<'a> {
    store_dir: &'a Path,
    options: &'a VerifyOptions<'a>,
    report: VerifyReport,
    /// Part of a file.
    buffer: Vec<u8>,
}

/// Bytes of a file that are hashed at a time.
const BUFFER_BYTES: u64 = 1 << 20;

impl Verifier<'_> {
    /// Checks the signature of the manifest, and opens it where there is the master key.
    fn check_manifest(
        &mut self,
        path: &Path,
        key: VerifyKey<'_>,
    ) -> Result<(SignedPart, Option<(Manifest, StoreKeys)>)> {
        let mut file = ManifestFile::parse(read_manifest(self.store_dir)?, path)?;
        match key {
            VerifyKey::Master(master) if AccessKeys::key_id(master, file.store) != file.key_id => {
                return Err(Error::WrongKey { path: path.into() });
            }
            VerifyKey::Public(wanted) if wanted != file.public_key => {
                return Err(Error::WrongSigner { path: path.into(), signer: file.public_key });
            }
            _ => {}
        }
        if !file.is_signed() {
            let offset = file.signature_at() as u64;
            return Err(Error::damage(path, offset, "its signature is not one of its content"));
        }
        let files = file.files.clone();
        let opened_manifest = match key {
            VerifyKey::Master(master) => Some(file.open(master, path)?),
            VerifyKey::Public(_) => None,
        };
        self.report.store = Some(hex(&file.store.0));
        (self.report.public_key, self.report.generation) = (Some(file.public_key), Some(file.generation));
        self.report.files = files.len() as u64;
        self.report.bytes = files.values().map(|digest| digest.bytes).sum();
        if let Some(p) = self.options.progress {
            p.bytes_total.store(self.report.bytes, Ordering::Relaxed);
        }
        let (store, generation, revision) = (file.store, file.generation, file.revision);
        let opened = opened_manifest.iter();
        let replaced = opened.flat_map(|(manifest, _)| manifest.replaced.keys().cloned()).collect();
        Ok((SignedPart { store, generation, revision, files, replaced }, opened_manifest))
    }

    fn check_files(&mut self, signed: &SignedPart, opened: Option<&(Manifest, StoreKeys)>) -> Result<()> {
        for (name, digest) in &signed.files {
            self.file(name, digest)?;
        }
        if let Some((manifest, keys)) = opened {
            let names = self.check_names(manifest, keys)?;
            self.check_blocks(signed, manifest, keys, names.as_ref())?;
        }
        self.find_foreign(signed)
    }

    /// Opens every name of the dictionary, if it is there.
    fn check_names(&mut self, manifest: &Manifest, keys: &StoreKeys) -> Result<Option<TokenDictionary>> {
        let path = manifest.dictionary().map(|(name, _)| self.store_dir.join(name));
        let Some(path) = path.filter(|path| is_file(path)) else { return Ok(None) };
        let problems = SealedNames::check(self.store_dir, keys, manifest);
        if !problems.is_empty() {
            self.retract_finding(&path);
        }
        for problem in problems {
            match problem {
                Error::EarlierBuild { .. } => return Err(problem),
                problem => self.add_problem(problem),
            }
        }
        // With a problem they are not read, which has been reported.
        Ok(TokenDictionary::load(self.store_dir, keys, manifest).ok())
    }

    /// Compares a file with its length and hash.
    fn file(&mut self, name: &str, digest: &FileDigest) -> Result<()> {
        let path = self.store_dir.join(name);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => File::open(&path).map(|file| (file, meta.len())),
            // A link leads to bytes that are not in the store; a pipe may have none.
            Ok(_) => Err(ErrorKind::NotFound.into()),
            Err(e) => Err(e),
        };
        let (mut file, length) = match metadata {
            Ok(opened) => opened,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                self.add_finding(FindingKind::Missing, &path, None, "it is not there, or it is no file");
                return Ok(());
            }
            Err(e) => {
                self.add_finding(FindingKind::Unreadable, &path, None, e.to_string());
                return Ok(());
            }
        };
        if length < digest.bytes {
            let problem = format!("{length} bytes long, not {} as the manifest says", digest.bytes);
            self.add_finding(FindingKind::Changed, &path, Some(length), problem);
            return Ok(());
        }
        if length > digest.bytes {
            let extra_bytes = length - digest.bytes;
            if dictionary_revision(name).is_some() {
                // A killed seal appended these bytes. The next seal cuts them off.
                self.add_finding(
                    FindingKind::LeftOver,
                    &path,
                    Some(digest.bytes),
                    format!("{extra_bytes} bytes that do not count"),
                );
            } else {
                let excess_problem = format!("{extra_bytes} bytes more than the manifest says");
                self.add_finding(FindingKind::Changed, &path, Some(digest.bytes), excess_problem);
                return Ok(());
            }
        }
        let (mut hasher, mut buffer, mut left) =
            (Hasher::new(), std::mem::take(&mut self.buffer), digest.bytes);
        // A small file needs no large buffer.
        buffer.resize(buffer.len().max(left.min(BUFFER_BYTES) as usize), 0);
        while left > 0 {
            self.check_stopped()?;
            let part = left.min(buffer.len() as u64) as usize;
            match file.read(&mut buffer[..part]) {
                Ok(0) => break,
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    left -= n as u64;
                    if let Some(p) = self.options.progress {
                        p.bytes.fetch_add(n as u64, Ordering::Relaxed);
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    self.add_finding(
                        FindingKind::Unreadable,
                        &path,
                        Some(digest.bytes - left),
                        e.to_string(),
                    );
                    return Ok(());
                }
            }
        }
        self.buffer = buffer;
        if hasher.finish() != digest.hash {
            self.add_finding(
                FindingKind::Changed,
                &path,
                None,
                "its hash is not the one that the manifest has",
            );
        }
        Ok(())
    }

    /// Opens and decodes every block, and counts the contents of the files.
    fn check_blocks(
        &mut self,
        signed: &SignedPart,
        manifest: &Manifest,
        keys: &StoreKeys,
        names: Option<&TokenDictionary>,
    ) -> Result<()> {
        let day_rule = match manifest.day_rule(self.store_dir) {
            Ok(day_rule) => day_rule,
            Err(e) => {
                self.add_problem(e);
                return Ok(());
            }
        };
        let mut blocks = BlockChecker::new(names, day_rule, BlockOpener::new(keys, &manifest.day_keys));
        for part in &manifest.parts {
            let (mut ordinals, mut is_whole) = (vec![(u64::MAX, 0); part.tapes.len()], true);
            for entry in &part.files {
                let id = part.file(entry);
                let path = id.path(self.store_dir);
                if signed.files.get(&id.listed_path()).is_none_or(|digest| digest.bytes != entry.bytes) {
                    let list_problem =
                        format!("its list of files and its sealed part differ about {}", id.listed_path());
                    self.add_finding(
                        FindingKind::Changed,
                        &Manifest::path(self.store_dir),
                        None,
                        list_problem,
                    );
                }
                // A missing file has been reported already.
                let block_file =
                    if is_file(&path) { BlockFile::open(self.store_dir, &id).ok() } else { None };
                let Some(file) = block_file else {
                    is_whole = false;
                    continue;
                };
                let (mut problems, mut counts) = (Vec::new(), FileCounts::new(part.tapes.len()));
                for location in file.places(keys, &id, entry, &mut |e| problems.push(e)) {
                    self.check_stopped()?;
                    if let Err(e) = blocks.check_block(&file, &id, &location, &mut counts) {
                        problems.push(e);
                    }
                }
                for (all, of_file) in ordinals.iter_mut().zip(&counts.ordinals) {
                    *all = (all.0.min(of_file.0), all.1.max(of_file.1));
                }
                is_whole &= problems.is_empty();
                if !problems.is_empty() {
                    self.retract_finding(&path);
                    problems.into_iter().for_each(|e| self.add_problem(e));
                } else if !counts.are_of(entry) {
                    let count_problem =
                        "its rows are not as many, or not of those times, as the manifest says";
                    self.add_finding(FindingKind::Changed, &path, None, count_problem);
                }
            }
            let named = part.tapes.iter().map(|range| (range.ordinal_first, range.ordinal_last));
            if is_whole && !named.eq(ordinals) {
                self.check_ordinals(part);
            }
        }
        Ok(())
    }

    /// Removes the finding about a file's hash, because the findings about its blocks have a place.
    fn retract_finding(&mut self, path: &Path) {
        let old_count = self.report.findings.len();
        self.report.findings.retain(|finding| finding.path != path || finding.kind != FindingKind::Changed);
        self.report.problems -= (old_count - self.report.findings.len()) as u64;
    }

    fn check_ordinals(&mut self, part: &SealedPart) {
        let (day, generation) = (part.date, part.generation);
        let problem = format!("the events of {day} in generation {generation} are not those that it names");
        self.add_finding(FindingKind::Changed, &Manifest::path(self.store_dir), None, problem);
    }

    /// Finds the files that the store does not name.
    fn find_foreign(&mut self, signed: &SignedPart) -> Result<()> {
        let expected: BTreeSet<PathBuf> = signed.files.keys().map(|name| self.store_dir.join(name)).collect();
        for path in self.list_directory(self.store_dir) {
            self.check_stopped()?;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match name {
                "manifest" => {}
                LOCK if is_empty_file(&path) => {}
                "manifest.new" if is_file(&path) => {
                    self.add_finding(
                        FindingKind::LeftOver,
                        &path,
                        None,
                        "a manifest that was not put into its place",
                    );
                }
                leases::FOLDER if is_directory(&path) => {
                    for lease in self.list_directory(&path) {
                        let name = lease.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                        if leases::revision_of(name).is_none() || !is_empty_file(&lease) {
                            self.foreign_at(&lease);
                        }
                    }
                }
                _ if expected.contains(&path) => {}
                _ if is_left_dictionary(name, signed) && is_file(&path) => {
                    let reason = "names of a change that did not end, or that a reader may still have";
                    self.add_finding(FindingKind::LeftOver, &path, None, reason);
                }
                _ if is_day(name) && is_directory(&path) => self.foreign_of_day(&path, signed, &expected),
                _ => self.foreign_at(&path),
            }
        }
        Ok(())
    }

    fn foreign_of_day(&mut self, day: &Path, signed: &SignedPart, expected: &BTreeSet<PathBuf>) {
        for schema in self.list_directory(day) {
            let name = schema.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if TickSchema::from_name(name).is_none() || !is_directory(&schema) {
                self.foreign_at(&schema);
                continue;
            }
            for path in self.list_directory(&schema) {
                if expected.contains(&path) {
                    continue;
                }
                match self.left_over(&path, signed) {
                    Some(words) => self.add_finding(FindingKind::LeftOver, &path, None, words),
                    None => self.foreign_at(&path),
                }
            }
        }
    }

    /// Returns what an unlisted file is, if it is one that this store has left: of a seal or a compaction that did not end,
    /// or one that a compaction has replaced. Such a file has the beginning that it has to have at its place.
    fn left_over(&self, path: &Path, signed: &SignedPart) -> Option<&'static str> {
        let name = path.strip_prefix(self.store_dir).ok()?.to_str()?;
        let id = FileId::parse_path(name).filter(|_| is_file(path))?;
        let mut start_bytes = Vec::new();
        File::open(path).and_then(|file| file.take(64).read_to_end(&mut start_bytes)).ok()?;
        if !id.may_begin(&start_bytes, signed.store) {
            return None;
        }
        if id.generation > signed.generation || id.revision > signed.revision {
            return Some("a file of a seal or compaction that did not end");
        }
        if signed.replaced.contains(name) {
            return Some("a file that no longer belongs to the store, and that a reader may still have");
        }
        let replaces = |other: &FileId| {
            (other.day, other.schema) == (id.day, id.schema)
                && other.revision > id.revision
                && other.generation >= id.generation
        };
        let mut listed = signed.files.keys().filter_map(|path| FileId::parse_path(path));
        listed.any(|other| replaces(&other)).then_some("a file that a compaction has replaced")
    }

    fn foreign_at(&mut self, path: &Path) {
        self.add_finding(FindingKind::Foreign, path, None, "the manifest does not name it");
    }

    /// Lists the entries of a directory, by name.
    fn list_directory(&mut self, dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()
        });
        match entries {
            Ok(mut paths) => {
                paths.sort_unstable();
                paths
            }
            Err(e) => {
                self.add_finding(FindingKind::Unreadable, dir, None, e.to_string());
                Vec::new()
            }
        }
    }

    fn check_stopped(&self) -> Result<()> {
        let is_stopped = self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if is_stopped { Err(Error::VerifyStopped) } else { Ok(()) }
    }

    fn add_problem(&mut self, error: Error) {
        let finding = match error {
            Error::Damage { path, block, offset, reason } => {
                Finding { kind: FindingKind::Changed, path, block, offset: Some(offset), problem: reason }
            }
            Error::Io { path, source, doing } => {
                let message = format!("cannot {doing} it: {source}");
                Finding { kind: FindingKind::Unreadable, path, block: None, offset: None, problem: message }
            }
            other => {
                let (path, problem) = (Manifest::path(self.store_dir), other.to_string());
                Finding { kind: FindingKind::Changed, path, block: None, offset: None, problem }
            }
        };
        self.keep_finding(finding);
    }

    fn add_finding(
        &mut self,
        kind: FindingKind,
        path: &Path,
        offset: Option<u64>,
        problem: impl Into<String>,
    ) {
        self.keep_finding(Finding { kind, path: path.into(), block: None, offset, problem: problem.into() });
    }

    fn keep_finding(&mut self, finding: Finding) {
        self.report.problems += u64::from(finding.kind.is_problem());
        if self.report.findings.len() < PROBLEMS_MAX {
            self.report.findings.push(finding);
        }
    }
}

/// Returns whether an unlisted file is a dictionary of an earlier revision, or of one that did not come.
fn is_left_dictionary(name: &str, signed: &SignedPart) -> bool {
    let Some(revision) = dictionary_revision(name) else { return false };
    let listed = signed.files.keys().find_map(|path| dictionary_revision(path));
    revision > signed.revision || listed.is_none_or(|listed| revision < listed)
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn is_empty_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0)
}

/// Returns whether a directory of this name belongs to a day.
fn is_day(name: &str) -> bool {
    name.parse::<Day>().is_ok_and(|day| day.to_string() == name)
}
