//! A lineage that is damaged: it is reported, refused with the exit code of damage, and mended without going back.

use crate::common::damage;

use damage::{Bench, change, crc32c, flip};

/// The epoch of the last writer, and the one with which the lineage began.
fn epochs(bench: &Bench) -> (u64, u64) {
    let text = std::fs::read(bench.path("run/lineage")).unwrap();
    let word = |at: usize| u64::from_le_bytes(text[at..at + 8].try_into().unwrap());
    (word(32), word(40))
}

/// `verify` and `repair` passed over a damaged lineage, and each writer refused it; of the byte of the version with 1.
#[test]
fn a_damaged_lineage_is_reported_and_mended() {
    let bench = Bench::new();
    bench.write().code(0);
    let (last, _) = epochs(&bench);
    for offset in [0, 8, 20, 33, 41, 60, 69, 73, 77] {
        flip(&bench.path("run/lineage"), offset);
        let verified = bench.verify().code(3);
        assert!(verified.text().contains("run/lineage"), "byte {offset}: {}", verified.text());
        bench.write().code(3).says(&["lineage", "tape repair"]);
        let dry = bench.repair(&[]).code(3);
        assert!(dry.text().contains("places of an epoch before"), "byte {offset}: {}", dry.text());
        let damaged = std::fs::read(bench.path("run/lineage")).unwrap();
        let report = bench.repair(&["--apply", "--json"]).code(0).json();
        let aside = std::path::Path::new(report["aside"].as_str().unwrap()).join("run/lineage");
        assert!(std::fs::read(aside).unwrap() == damaged, "byte {offset}: the damaged file is kept");
        bench.verify().code(0);
        let (mended, _) = epochs(&bench);
        bench.write().code(0);
        let (epoch, first) = epochs(&bench);
        assert!(mended >= last && epoch == mended + 1 && first <= mended, "byte {offset}: {epoch}, {first}");
        assert!(first > 1, "byte {offset}: places of an earlier epoch are not believed");
        assert!(bench.repair(&[]).code(0).text().contains("nothing to repair"));
    }
}

/// A lineage whose list of cuts alone is damaged keeps its epoch.
#[test]
fn a_lineage_without_its_cuts_keeps_its_epoch() {
    let bench = Bench::new();
    let path = bench.path("run/lineage");
    let (last, _) = epochs(&bench);
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&text[..], &[1; 16]].concat()).unwrap();
    bench.verify().code(3);
    bench.repair(&["--apply"]).code(0);
    assert_eq!(epochs(&bench), (last, last));
    bench.verify().code(0);
    bench.write().code(0);
    assert_eq!(epochs(&bench), (last + 1, last));
}

/// A sound lineage of another version is not damage: nobody changes it.
#[test]
fn a_lineage_of_another_version_is_left_alone() {
    let bench = Bench::new();
    let path = bench.path("run/lineage");
    change(&path, 8, |byte| byte + 1);
    let mut text = std::fs::read(&path).unwrap();
    let crc = crc32c(&text[..76]);
    text[76..80].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &text).unwrap();
    bench.write().code(1).says(&["foreign version"]);
    bench.verify().code(1);
    bench.repair(&["--apply"]).code(1);
    assert!(std::fs::read(&path).unwrap() == text);
}
