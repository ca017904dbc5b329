//! The example in C, compiled and run: against Rust on either side, against itself, as C++, and under a checker.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use common::{C99, CXX, LIBS, compiler, include, library, must, root};
use unitape_tape::{
    Error, Gate, GatePolicy, Publication, StartPosition, Subscription, WriterOptions, verify,
};

const COUNT: u64 = 100_000;
const PATIENCE: Duration = Duration::from_secs(120);

const NAMES: [&str; 4] = ["publisher", "subscriber", "risk", "depth"];

/// The programs, each compiled when it is asked for and out of date: against the static library, the shared one
/// (`NAME-shared`), or as C++ (`NAME-cxx`). They stay for the next process of these tests.
struct Programs {
    dir: PathBuf,
    cc: String,
    cxx: Option<String>,
}

impl Programs {
    fn get(&self, name: &str) -> PathBuf {
        let out = self.dir.join(name);
        let (source, kind) = name.split_once('-').unwrap_or((name, ""));
        let source = root().join("examples/c").join(format!("{source}.c"));
        let library = library(if kind == "shared" { "libunitape_c.so" } else { "libunitape_c.a" });
        let time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
        let headers = ["unitape.h", "unitape_handler.h"].map(|name| include().join(name));
        let newest = headers.iter().chain([&source, &library]).map(|path| time(path)).max();
        if time(&out) > newest.flatten() {
            return out;
        }
        let (compiler, flags): (_, &[&str]) = match (&self.cxx, kind) {
            (Some(cxx), "cxx") => (cxx, &CXX),
            _ => (&self.cc, &C99),
        };
        let mut command = Command::new(compiler);
        command.args(flags).arg("-I").arg(include()).arg(source).args(["-x", "none"]);
        if kind == "shared" {
            let folder = library.parent().expect("it lies in a folder");
            command.arg("-L").arg(folder).arg("-lunitape_c").arg(format!("-Wl,-rpath,{}", folder.display()));
        } else {
            command.arg(library).args(LIBS);
        }
        // Several tests may ask at the same time: each makes its own, and what stays is one of them.
        let own = tempfile::tempdir_in(&self.dir).expect("a temporary folder");
        let made = own.path().join(name);
        must(command.arg("-o").arg(&made));
        std::fs::rename(made, &out).expect("it was just made");
        out
    }
}

fn programs() -> Option<&'static Programs> {
    static PROGRAMS: OnceLock<Option<Programs>> = OnceLock::new();
    let find = || {
        let cc = compiler("CC", "cc")?;
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-programs");
        std::fs::create_dir_all(&dir).expect("a folder");
        Some(Programs { dir, cc, cxx: compiler("CXX", "c++") })
    };
    PROGRAMS.get_or_init(find).as_ref()
}

/// Examples that no other test runs compile, too.
#[test]
fn all_programs_compile() {
    let Some(programs) = programs() else { return };
    for name in NAMES {
        programs.get(name);
        programs.get(&format!("{name}-shared"));
        programs.get(&format!("{name}-cxx"));
    }
}

fn price(number: u64) -> [u8; 24] {
    let bid = 1_085_000_000 + (number * 7919 % 1000) as i64 * 10_000;
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..16].copy_from_slice(&bid.to_ne_bytes());
    bytes[16..].copy_from_slice(&(bid + 20_000).to_ne_bytes());
    bytes
}

fn start(program: &Path, tape: &Path, count: u64, name: Option<&str>) -> std::process::Child {
    let mut command = Command::new(program);
    command.arg(tape).arg(count.to_string()).args(name).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|e| panic!("{}: {e}", program.display()))
}

fn says(child: std::process::Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}

fn line(count: u64, first: u64) -> String {
    format!("{count} prices, from number {first}")
}

/// Messages that C writes in place and in batches must equal those that Rust reads, while they are being written.
#[test]
fn c_publishes_and_rust_reads() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    let publisher = start(&programs.get("publisher"), &tape, COUNT, None);
    assert!(Subscription::await_tape(&tape, PATIENCE).unwrap());
    let mut subscription = Subscription::open(&tape, StartPosition::Oldest).unwrap();
    for number in 0..COUNT {
        assert!(subscription.wait(PATIENCE).unwrap(), "price {number} does not come");
        let message = subscription.next().unwrap().unwrap().message().unwrap();
        assert_eq!((message.topic, message.bytes), (1, &price(number)[..]), "{number}");
    }
    assert_eq!(says(publisher), line(COUNT, 0));
    assert!(subscription.next().unwrap().is_none());
    assert!(verify(&tape).unwrap().is_intact());
}

/// Rust writes and C reads; frames of others are between the messages.
#[test]
fn rust_publishes_and_c_reads() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    // It waits for the tape.
    let subscriber = start(&programs.get("subscriber"), &tape, COUNT, None);
    let options = WriterOptions { segment_bytes: 1 << 20, ..WriterOptions::default() };
    let mut publication = Publication::open(&tape, options).unwrap();
    for number in 0..COUNT {
        if number % 1000 == 0 {
            publication.offer(7, b"not a price").unwrap();
        }
        let mut draft = publication.claim(1, 24).unwrap();
        draft.copy_from_slice(&price(number));
        draft.commit().unwrap();
    }
    assert_eq!(says(subscriber), line(COUNT, 0));
    publication.close().unwrap();
}

/// Two processes of C; the reader is ended in the middle and continues, the writer is ended and continues.
#[test]
fn c_publishes_and_c_reads() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    let subscriber = |count| start(&programs.get("subscriber-shared"), &tape, count, Some("c-reader"));
    let first = subscriber(COUNT / 4);
    let publisher = start(&programs.get("publisher-shared"), &tape, COUNT, None);
    assert_eq!(says(first), line(COUNT / 4, 0));
    let second = subscriber(COUNT);
    assert_eq!(says(publisher), line(COUNT, 0));
    let more = COUNT / 4;
    assert_eq!(says(start(&programs.get("publisher-shared"), &tape, more, None)), line(more, COUNT));
    assert_eq!(says(second), line(COUNT, COUNT / 4));
    // Another name begins at the oldest.
    let other = start(&programs.get("subscriber"), &tape, COUNT + more, Some("other"));
    assert_eq!(says(other), line(COUNT + more, 0));
    assert!(verify(&tape).unwrap().is_intact());
}

fn run(program: &Path, arguments: &[&str]) -> std::process::Child {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|e| panic!("{}: {e}", program.display()))
}

/// A publisher that waits for its critical reader leaves nothing out, and one that drops leaves out all that is
/// further ahead than it may be, and counts it.
#[test]
fn c_publishes_and_a_critical_reader_holds_it() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    let path = tape.to_str().unwrap();
    let (count, last) = (COUNT.to_string(), (COUNT - 1).to_string());
    // Either may start first: the publisher waits for its reader, the reader for the tape and its gate.
    let publisher = run(&programs.get("publisher"), &[path, &count, "wait"]);
    let risk = run(&programs.get("risk-shared"), &[path, &last]);
    let said = says(risk);
    let wanted = format!("{COUNT} prices up to number {last}, 0 left out, ");
    assert!(said.starts_with(&wanted), "{said}");
    assert_eq!(says(publisher), format!("0 left out for risk\n{}", line(COUNT, 0)));
    assert!(verify(&tape).unwrap().is_intact());

    // Nobody reads: 64 KiB of prices, a line each, are on the tape.
    let tape = dir.path().join("dropped");
    let publisher = run(&programs.get("publisher-shared"), &[tape.to_str().unwrap(), "5000", "drop"]);
    assert_eq!(says(publisher), format!("{} left out for risk\n{}", 5000 - 1024, line(5000, 0)));
    let report = verify(&tape).unwrap();
    assert!(report.is_intact() && report.unit_count == 1024, "{report:?}");
}

/// A reader in C gets the exact number of messages that a publisher in Rust drops.
#[test]
fn rust_drops_and_c_is_told() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    let gate =
        Gate { reader: "risk".into(), ahead_bytes: 4096, policy: GatePolicy::Drop, holds_when_absent: false };
    let options = WriterOptions { segment_bytes: 1 << 20, gates: vec![gate], ..WriterOptions::default() };
    let mut publication = Publication::open(&tape, options).unwrap();
    let risk = run(&programs.get("risk"), &[tape.to_str().unwrap(), "50000"]);
    while !publication.writer().gates()[0].alive {
        std::thread::yield_now();
    }
    let mut published = 0;
    for number in 0..=50_000 {
        // The last one must come, or nobody would know that it was.
        while let Err(e) = publication.offer(1, &price(number)) {
            assert!(matches!(e, Error::Dropped { .. }), "{e}");
            if number < 50_000 {
                published -= 1;
                break;
            }
        }
        published += 1;
    }
    let dropped = publication.writer().gates()[0].drops.count;
    let said = says(risk);
    assert_eq!(said, format!("{published} prices up to number 50000, {dropped} left out, 0 bytes behind"));
    publication.close().unwrap();
}

/// The header once held code that C++ does not accept.
#[test]
fn the_example_is_also_cxx() {
    let Some(programs) = programs().filter(|programs| programs.cxx.is_some()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    let subscriber = start(&programs.get("subscriber-cxx"), &tape, 1000, None);
    assert_eq!(says(start(&programs.get("publisher-cxx"), &tape, 1000, None)), line(1000, 0));
    assert_eq!(says(subscriber), line(1000, 0));
}

/// A wrong start must say what is wrong, and not wait for ever or crash.
#[test]
fn what_cannot_be_is_said() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let fails = |program: &str, tape: &Path| {
        let output = Command::new(programs.get(program)).arg(tape).arg("1").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let held = dir.path().join("held");
    let publication = Publication::open(&held, WriterOptions::default()).unwrap();
    let said = fails("publisher", &held);
    assert!(said.starts_with("publisher: open: locked: "), "{said}");
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    publication.close().unwrap();
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    let said = fails("publisher", &foreign);
    assert!(said.starts_with("publisher: open: not a tape: "), "{said}");
}

/// Memory that is read before it is written, or after it is given back, shows only under a checker.
#[test]
fn the_example_under_valgrind() {
    let Some(programs) = programs() else { return };
    let Some(valgrind) = compiler("VALGRIND", "valgrind") else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    for name in ["publisher", "subscriber"] {
        let mut command = Command::new(&valgrind);
        command.args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ]);
        must(command.arg(programs.get(name)).arg(&tape).arg("200"));
    }
}
