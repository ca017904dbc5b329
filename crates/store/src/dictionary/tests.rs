use std::path::PathBuf;

use super::*;
use crate::keys::{MasterKey, StoreId, SystemRandomness};
use crate::manifest::Commit;

/// A dictionary in a directory, with the manifest that names it.
struct Fixture {
    dir: tempfile::TempDir,
    keys: StoreKeys,
    manifest: Manifest,
}

impl Fixture {
    fn new() -> Self {
        let master = MasterKey::random(&SystemRandomness).unwrap();
        let (keys, wrapped) = StoreKeys::draw(&master, StoreId([7; 16]), &SystemRandomness).unwrap();
        let manifest = Manifest { keys: wrapped, ..Manifest::default() };
        Self { dir: tempfile::tempdir().unwrap(), keys, manifest }
    }

    fn load(&self) -> Result<TokenDictionary> {
        TokenDictionary::load(self.dir.path(), &self.keys, &self.manifest)
    }

    /// Adds names as a seal does. Returns whether one was new.
    fn add(&mut self, commit: u128, names: &[(NameKind, &str)]) -> bool {
        let mut dictionary = self.load().unwrap();
        for (kind, name) in names {
            dictionary.intern(*kind, name).unwrap();
        }
        let (dir, random) = (self.dir.path(), &SystemRandomness);
        let appended = dictionary.append_names(dir, &self.keys, &self.manifest, (1, commit), random).unwrap();
        let Some(AppendedNames { segment, path, digest }) = appended else { return false };
        self.manifest.names.push(segment);
        self.manifest.files.insert(path, digest);
        self.manifest.commits.push(Commit {
            generation: 1,
            committed: 0,
            rows: 0,
            names: NameKind::ALL.map(|kind| dictionary.names.len(kind)).into(),
            ends: Vec::new(),
        });
        true
    }

    /// Erases a name as a change of the store does.
    fn erase(&mut self, name: &str) -> Vec<(NameKind, u32)> {
        let dictionary = self.load().unwrap();
        let tokens = dictionary.find_in_all_kinds(name);
        let (dir, random) = (self.dir.path(), &SystemRandomness);
        let (path, digest) =
            dictionary.write_without(dir, &self.keys, &self.manifest, &tokens, random).unwrap();
        self.manifest.replace_dictionary(path, digest);
        self.manifest.revision += 1;
        tokens
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(self.manifest.dictionary().unwrap().0)
    }

    /// Puts the hash of the file as it is now into the manifest.
    fn list_as_it_is(&mut self) {
        let (bytes, mut hasher) = (std::fs::read(self.path()).unwrap(), Hasher::new());
        hasher.update(&bytes);
        let digest = FileDigest { bytes: bytes.len() as u64, hash: hasher.finish() };
        let path = self.manifest.dictionary().unwrap().0.to_owned();
        self.manifest.files.insert(path, digest);
    }

    /// Changes each byte of the file. Fails unless that is noticed, and told at the record that has the byte.
    fn check_each_byte(&self, starts: &[u64]) {
        let (path, good) = (self.path(), std::fs::read(self.path()).unwrap());
        for byte_index in 0..good.len() {
            let mut bad = good.clone();
            bad[byte_index] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            let start = *starts.iter().rfind(|start| **start <= byte_index as u64).unwrap();
            let problem = self.load();
            let Err(Error::Damage { offset, .. }) = problem else { panic!("byte {byte_index}: {problem:?}") };
            assert_eq!(offset, start, "byte {byte_index}");
            let found = SealedNames::check(self.dir.path(), &self.keys, &self.manifest);
            assert_eq!(found.len(), 1, "byte {byte_index}: {found:?}");
            assert!(matches!(&found[0], Error::Damage { offset, .. } if *offset == start), "{found:?}");
        }
        std::fs::write(&path, &good).unwrap();
        assert!(SealedNames::check(self.dir.path(), &self.keys, &self.manifest).is_empty());
    }
}

/// Bytes of the record of a name up to 32 bytes.
const SHORT_RECORD: u64 = 24 + 12 + 4 + 32 + 16;

/// Fails if a token means another name after damage or after a killed seal, because then all rows would lie.
#[test]
fn tokens_stay_and_no_changed_byte_gives_a_name() {
    let mut fixture = Fixture::new();
    let long = "L".repeat(100);
    let first = [(NameKind::Venue, "XLON"), (NameKind::Owner, "ACME"), (NameKind::Venue, "CHIX")];
    assert!(fixture.add(1, &first));
    assert!(!fixture.add(2, &first), "known names are added");
    let manifest_before = fixture.manifest.clone();
    assert!(fixture.add(3, &[(NameKind::Owner, &long), (NameKind::Owner, "ACME")]));
    let lengths: Vec<u64> = fixture.manifest.names.iter().map(|segment| segment.bytes).collect();
    assert_eq!(lengths, [3 * SHORT_RECORD, SHORT_RECORD + 96]);

    let back = fixture.load().unwrap();
    let names = |kind| -> Vec<_> { (0..4).map(|token| back.names.name(kind, token)).collect() };
    assert_eq!(names(NameKind::Venue), [None, Some("XLON"), Some("CHIX"), None]);
    assert_eq!(names(NameKind::Owner), [None, Some("ACME"), Some(&*long), None]);
    assert_eq!(back.names.get(NameKind::Owner, long.as_bytes()), Some(2));
    let now = std::mem::replace(&mut fixture.manifest, manifest_before);
    assert_eq!(fixture.load().unwrap().names.len(NameKind::Owner), 1, "only what counts");
    fixture.manifest = now;

    let good = std::fs::read(fixture.path()).unwrap();
    assert!(!good.windows(4).any(|w| [b"XLON", b"ACME", b"LLLL"].iter().any(|name| w == *name)));
    let starts: Vec<u64> = std::iter::once(0).chain((0..4).map(|n| HEAD + n * SHORT_RECORD)).collect();
    fixture.check_each_byte(&starts);
    // A killed seal left a segment at the same place. It does not count.
    fixture.manifest.names[1].commit = 4;
    let problem = SealedNames::check(fixture.dir.path(), &fixture.keys, &fixture.manifest);
    assert!(matches!(problem[..], [Error::Damage { offset, .. }] if offset == starts[4]), "{problem:?}");
    fixture.manifest.names[1].commit = 3;
    // The last commit had fewer names.
    fixture.manifest.commits[1].names[NameKind::Owner as usize] = 1;
    assert!(matches!(fixture.load(), Err(Error::Damage { offset, .. }) if offset == good.len() as u64));
    fixture.manifest.commits[1].names[NameKind::Owner as usize] = 2;
    std::fs::write(fixture.path(), &good[..good.len() - 1]).unwrap();
    assert!(matches!(fixture.load(), Err(Error::Damage { .. })));
}

/// Fails if opening a store opens names, which would take as long as it has names.
#[test]
fn names_are_opened_when_they_are_asked_for() {
    let mut fixture = Fixture::new();
    let names: Vec<String> = (1..=3000).map(|n| format!("NAME{n}")).collect();
    for (commit, part) in names.chunks(1000).enumerate() {
        let part: Vec<_> = part.iter().map(|name| (NameKind::Instrument, name.as_str())).collect();
        assert!(fixture.add(commit as u128, &part));
    }
    let dictionary = fixture.load().unwrap();
    let opened = || dictionary.sealed().unwrap().opened_count();
    assert_eq!((dictionary.names.len(NameKind::Instrument), opened()), (3000, 0));
    for absent in ["NAME0", "NAME3001", "name1", "N", ""] {
        assert_eq!(dictionary.names.get(NameKind::Instrument, absent.as_bytes()), None);
    }
    assert_eq!(dictionary.names.get(NameKind::Venue, b"NAME1"), None, "a name of another kind");
    assert_eq!(opened(), 0, "an absent name opens a record");
    for token in [1, 1000, 1001, 3000] {
        let name = names[token as usize - 1].as_bytes();
        assert_eq!(dictionary.names.get(NameKind::Instrument, name), Some(token));
    }
    assert_eq!(opened(), 4);
    for _ in 0..2 {
        assert_eq!(dictionary.names.name(NameKind::Instrument, 2345), Some("NAME2345"));
    }
    assert_eq!(opened(), 5, "a name is kept");
}

/// Fails if the length of a record tells the length of a name.
#[test]
fn names_of_up_to_32_bytes_have_records_of_one_length() {
    let mut lengths = Vec::new();
    for (length, name) in [1, 2, 8, 12, 31, 32, 33, 64].map(|length| (length, "n".repeat(length))) {
        let mut fixture = Fixture::new();
        fixture.add(1, &[(NameKind::Account, &name)]);
        lengths.push((length, fixture.manifest.names[0].bytes));
        assert_eq!(fixture.load().unwrap().names.name(NameKind::Account, 1), Some(&*name));
    }
    assert!(lengths.iter().all(|(length, bytes)| *bytes == SHORT_RECORD + if *length > 32 { 32 } else { 0 }));
}

/// Fails if an erased name can be read or found, or if another name changes.
#[test]
fn an_erased_name_keeps_its_token_and_nothing_else() {
    let mut fixture = Fixture::new();
    fixture.add(1, &[(NameKind::Owner, "ACME"), (NameKind::Owner, "BETA"), (NameKind::Firm, "ACME")]);
    let before = std::fs::read(fixture.path()).unwrap();
    assert_eq!(fixture.erase("ACME"), [(NameKind::Owner, 1), (NameKind::Firm, 1)]);
    assert_eq!(fixture.manifest.replaced, [("dictionary.log".to_owned(), 1)].into());
    let after = std::fs::read(fixture.path()).unwrap();
    assert_eq!(
        (after.len(), fixture.path().file_name().unwrap()),
        (before.len(), "dictionary-00000001.log".as_ref())
    );
    let record = |bytes: &[u8], index: u64| {
        bytes[(HEAD + index * SHORT_RECORD) as usize..][8..SHORT_RECORD as usize].to_vec()
    };
    assert_eq!(record(&before, 1), record(&after, 1), "another name is sealed anew");
    for index in [0, 2] {
        assert_eq!(record(&after, index)[..16], [0; 16], "the hash of the name is left");
        let (old, new) = (record(&before, index), record(&after, index));
        assert!(!old.windows(16).any(|part| new.windows(16).any(|other| part == other)));
    }
    let back = fixture.load().unwrap();
    let names = |kind| [1, 2, 3].map(|token| back.names.name(kind, token));
    assert_eq!(names(NameKind::Owner), [Some("erased-1"), Some("BETA"), None]);
    assert_eq!(names(NameKind::Firm), [Some("erased-1"), None, None]);
    for absent in ["ACME", "erased-1", ""] {
        assert_eq!(back.names.get(NameKind::Owner, absent.as_bytes()), None, "{absent}");
        assert_eq!(back.find_in_all_kinds(absent), []);
    }
    let is_erased = |kind, token| back.sealed().unwrap().is_erased(kind, token);
    assert!(
        is_erased(NameKind::Owner, 1) && !is_erased(NameKind::Owner, 2) && !is_erased(NameKind::Owner, 3)
    );
    let starts: Vec<u64> = std::iter::once(0).chain((0..3).map(|n| HEAD + n * SHORT_RECORD)).collect();
    fixture.check_each_byte(&starts);
    // A name that comes again is another one.
    fixture.add(2, &[(NameKind::Owner, "ACME")]);
    let back = fixture.load().unwrap();
    assert_eq!(back.names.get(NameKind::Owner, b"ACME"), Some(3));
    assert_eq!(back.names.name(NameKind::Owner, 1), Some("erased-1"));
    drop(back);
    assert_eq!(fixture.erase("ACME"), [(NameKind::Owner, 3)]);
    assert_eq!(fixture.load().unwrap().names.name(NameKind::Owner, 3), Some("erased-3"));
}

/// Fails if a record that was damaged before its file was hashed gives a name, or counts as an unknown one.
#[test]
fn a_record_that_does_not_open_is_damage_when_it_is_asked_for() {
    let mut fixture = Fixture::new();
    fixture.add(1, &[(NameKind::Venue, "XLON"), (NameKind::Venue, "CHIX")]);
    let mut bytes = std::fs::read(fixture.path()).unwrap();
    let second = HEAD + SHORT_RECORD;
    bytes[second as usize + 50] ^= 1;
    std::fs::write(fixture.path(), &bytes).unwrap();
    fixture.list_as_it_is();
    let is_second =
        |damage: Option<Error>| matches!(damage, Some(Error::Damage { offset, .. }) if offset == second);
    let back = fixture.load().unwrap();
    assert_eq!(back.names.name(NameKind::Venue, 1), Some("XLON"));
    assert!(back.sealed().unwrap().damage().is_none());
    assert_eq!(back.names.name(NameKind::Venue, 2), None);
    assert!(is_second(back.sealed().unwrap().damage()));
    let mut back = fixture.load().unwrap();
    assert_eq!(back.names.get(NameKind::Venue, b"CHIX"), None);
    assert!(is_second(back.sealed().unwrap().damage()));
    assert!(is_second(back.intern(NameKind::Venue, "CHIX").err()), "a name gets a second token");
    let found = SealedNames::check(fixture.dir.path(), &fixture.keys, &fixture.manifest);
    assert!(found.len() == 1 && is_second(found.into_iter().next()));
}

/// Fails if a store of an earlier build counts as damaged.
#[test]
fn a_dictionary_of_an_earlier_build_is_told_from_damage() {
    let mut fixture = Fixture::new();
    fixture.add(1, &[(NameKind::Venue, "XLON")]);
    let mut bytes = std::fs::read(fixture.path()).unwrap();
    bytes[..HEAD as usize].copy_from_slice(&header(MAGIC_BEFORE));
    std::fs::write(fixture.path(), &bytes).unwrap();
    let loaded = fixture.load();
    assert!(matches!(loaded, Err(Error::EarlierBuild { .. })), "{loaded:?}");
}
