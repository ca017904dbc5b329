//! Each fuzz target on its seeds and on inputs made from them. The deep run searches further, with libFuzzer.

use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use unitape_fuzz::{TARGETS, target};

/// A made input is no longer, unless its seed is.
const LENGTH_MAX: usize = 4096;

macro_rules! targets {
    ($($name:ident $cases:literal)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                hold(stringify!($name), $cases);
            }
        )*
    };
}

// The made inputs of a target take about a second.
targets! {
    book_events 20_000
    book_state 10_000
    capture 20_000
    csv_rows 5000
    data_blocks 20_000
    data_messages 20_000
    data_request 20_000
    events_line 20_000
    fast_encode 2000
    fast_handler 500
    fast_made 1000
    fast_message 300
    fast_rules 3000
    fast_templates 5000
    feed_bytes 1000
    fix_frame 10_000
    fixed_records 5000
    iex_packet 2000
    iso20022_bytes 5000
    itch_frame 2000
    journal 1000
    link_messages 20_000
    mapping_text 10_000
    store_block 20_000
    swift_frame 5000
    tape_open 60
    text_jsonl 5000
    text_mail 10_000
    text_xml 5000
}

/// Runs all seeds of a target, then `cases` inputs that are made from them.
fn hold(name: &str, cases: u32) {
    let run = target(name);
    let mut seeds = Vec::new();
    for path in seeds_of(name) {
        let seed = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // Shown where the target panics.
        eprintln!("seed {}", path.display());
        run(&seed);
        seeds.push(seed);
    }
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&input(seeds), |Input(bytes)| {
        run(&bytes);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The seeds of a target in the order of their names. Some targets have none.
fn seeds_of(name: &str) -> Vec<PathBuf> {
    let Ok(files) = std::fs::read_dir(folder().join(name)) else { return Vec::new() };
    let mut paths: Vec<_> = files.map(|file| file.expect("a folder of ours").path()).collect();
    paths.sort();
    paths
}

/// Bytes that are shown as text where a test fails.
struct Input(Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, b\"{}\"", self.0.len(), self.0.escape_ascii())
    }
}

/// Any bytes, or a seed with some changes.
fn input(seeds: Vec<Vec<u8>>) -> BoxedStrategy<Input> {
    let any_bytes = vec(any::<u8>(), 0..300);
    if seeds.is_empty() {
        return any_bytes.prop_map(Input).boxed();
    }
    let changed = (any::<Index>(), vec(change(), 1..8)).prop_map(move |(of, changes)| {
        let mut bytes = of.get(&seeds).clone();
        let length_max = bytes.len().max(LENGTH_MAX);
        for change in &changes {
            change.apply(&mut bytes, &seeds);
            bytes.truncate(length_max);
        }
        bytes
    });
    prop_oneof![1 => any_bytes, 9 => changed].prop_map(Input).boxed()
}

/// A change of some bytes. A place is taken modulo the length.
#[derive(Debug, Clone)]
enum Change {
    Flip {
        at: Index,
        bit: u8,
    },
    Insert {
        at: Index,
        bytes: Vec<u8>,
    },
    Overwrite {
        at: Index,
        bytes: Vec<u8>,
    },
    Remove {
        at: Index,
        length: usize,
    },
    /// A piece of a seed is inserted.
    Splice {
        at: Index,
        seed: Index,
        from: Index,
        length: usize,
    },
    Cut {
        at: Index,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    // Lengths that are rarely long.
    let length = || prop_oneof![1usize..9, 1usize..300];
    prop_oneof![
        (at(), 0u8..8).prop_map(|(at, bit)| Change::Flip { at, bit }),
        (at(), piece()).prop_map(|(at, bytes)| Change::Insert { at, bytes }),
        (at(), piece()).prop_map(|(at, bytes)| Change::Overwrite { at, bytes }),
        (at(), length()).prop_map(|(at, length)| Change::Remove { at, length }),
        (at(), at(), at(), length()).prop_map(|(at, seed, from, length)| Change::Splice {
            at,
            seed,
            from,
            length
        }),
        at().prop_map(|at| Change::Cut { at }),
    ]
}

/// Bytes that parsers take for something else: bounds of numbers, separators, signs and ends.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 22] = [
        b"\0",
        b"\x01",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\xff\xff\xff\x7f",
        b"0",
        b"-1",
        b"9223372036854775807",
        b"99999999999999999999",
        b"0.000000001",
        b"1e400",
        b"\"",
        b"\\",
        b",",
        b"\n",
        b"\r\n",
        b"<",
        b">",
        b"\xef\xbb\xbf",
    ];
    prop_oneof![select(&PIECES[..]).prop_map(<[u8]>::to_vec), vec(any::<u8>(), 1..9)]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        // Behind the last byte is a place as well.
        let place = |at: &Index, bytes: &[u8]| at.index(bytes.len() + 1);
        match self {
            Self::Flip { at, bit } => {
                let at = place(at, bytes);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Self::Insert { at, bytes: new } => {
                let at = place(at, bytes);
                bytes.splice(at..at, new.iter().copied());
            }
            Self::Overwrite { at, bytes: new } => {
                let at = place(at, bytes);
                let end = bytes.len().min(at + new.len());
                bytes.splice(at..end, new.iter().copied());
            }
            Self::Remove { at, length } => {
                let at = place(at, bytes);
                let end = bytes.len().min(at + length);
                bytes.drain(at..end);
            }
            Self::Splice { at, seed, from, length } => {
                let seed = seed.get(seeds);
                let from = place(from, seed);
                let end = seed.len().min(from + length);
                let at = place(at, bytes);
                bytes.splice(at..at, seed[from..end].iter().copied());
            }
            Self::Cut { at } => bytes.truncate(place(at, bytes)),
        }
    }
}

/// A target without a test would run in the deep run alone; seeds of no target would never run.
#[test]
fn every_target_has_a_test_and_every_seed_a_target() {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(TESTED, names);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/targets");
    assert_eq!(std::fs::read_dir(sources).expect("the targets").count(), names.len());
    for entry in std::fs::read_dir(folder()).expect("the corpus") {
        let name = entry.expect("a folder of ours").file_name();
        assert!(names.iter().any(|known| name == **known), "corpus/{}", name.display());
    }
}
