//! The example in C, compiled and run: against Rust on either side, against itself, as C++, and under a checker.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use common::{C99, CXX, LIBS, compiler, include, library, must, root};
use tempfile::TempDir;
use unitape_tape::{Options, Publication, Start, Subscription, verify};

const COUNT: u64 = 100_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// The programs, compiled once: publisher and subscriber against the static library, the subscriber against the
/// shared one, and both as C++.
struct Programs {
    dir: TempDir,
    as_cxx: bool,
}

impl Programs {
    fn get(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn programs() -> Option<&'static Programs> {
    static PROGRAMS: OnceLock<Option<Programs>> = OnceLock::new();
    PROGRAMS.get_or_init(build).as_ref()
}

fn build() -> Option<Programs> {
    let cc = compiler("CC", "cc")?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let example = root().join("examples/c");
    let compile = |compiler: &str, flags: &[&str], source: &str, out: &str, shared: bool| {
        let mut command = Command::new(compiler);
        command.args(flags).arg("-I").arg(include()).arg(example.join(source)).args(["-x", "none"]);
        if shared {
            let library = library("libunitape_c.so");
            let folder = library.parent().expect("it lies in a folder");
            command.arg("-L").arg(folder).arg("-lunitape_c").arg(format!("-Wl,-rpath,{}", folder.display()));
        } else {
            command.arg(library("libunitape_c.a")).args(LIBS);
        }
        must(command.arg("-o").arg(dir.path().join(out)));
    };
    for name in ["publisher", "subscriber"] {
        let source = format!("{name}.c");
        compile(&cc, &C99, &source, name, false);
        compile(&cc, &C99, &source, &format!("{name}-shared"), true);
    }
    let cxx = compiler("CXX", "c++");
    for name in ["publisher", "subscriber"] {
        let Some(cxx) = &cxx else { break };
        compile(cxx, &CXX, &format!("{name}.c"), &format!("{name}-cxx"), false);
    }
    Some(Programs { dir, as_cxx: cxx.is_some() })
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

/// What C writes in place and in batches must be what Rust reads, while it is being written.
#[test]
fn c_publishes_and_rust_reads() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    let publisher = start(&programs.get("publisher"), &tape, COUNT, None);
    assert!(Subscription::await_tape(&tape, PATIENCE).unwrap());
    let mut subscription = Subscription::open(&tape, Start::Oldest).unwrap();
    for number in 0..COUNT {
        assert!(subscription.wait(PATIENCE).unwrap(), "price {number} does not come");
        let message = subscription.next().unwrap().unwrap().message().unwrap();
        assert_eq!((message.topic, message.bytes), (1, &price(number)[..]), "{number}");
    }
    assert_eq!(says(publisher), line(COUNT, 0));
    assert!(subscription.next().unwrap().is_none());
    assert!(verify(&tape).unwrap().is_intact());
}

/// And the other way round; frames of others stand between the messages.
#[test]
fn rust_publishes_and_c_reads() {
    let Some(programs) = programs() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("prices");
    // It waits for the tape.
    let subscriber = start(&programs.get("subscriber"), &tape, COUNT, None);
    let options = Options { segment_bytes: 1 << 20, ..Options::default() };
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

/// Two processes of C; the reader is ended in the middle and goes on, the writer is ended and goes on.
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

/// The header once held what C++ does not take.
#[test]
fn the_example_is_also_cxx() {
    let Some(programs) = programs().filter(|programs| programs.as_cxx) else { return };
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
    let publication = Publication::open(&held, Options::default()).unwrap();
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
