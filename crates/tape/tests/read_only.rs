//! Readers who may only read the tape: they wait for durability without a word to the recorder, and read a hot tape where
//! its permissions let them.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use common::{Checker, ID, append, directory, options};
use unitape_model::Position;
use unitape_tape::{Backing, DurabilityHandle, Reader, StartPosition, SyncPolicy, Writer, WriterOptions};

const SEGMENT: u64 = 64 << 10;
/// Another user than the one who writes.
const NOBODY: u32 = 65534;

/// Not a test of its own: the reader, of another user.
#[test]
fn child() {
    let Ok(role) = std::env::var("UNITAPE_READER") else { return };
    let dir = PathBuf::from(std::env::var("DIR").unwrap());
    let position = Position(std::env::var("POSITION").unwrap().parse().unwrap());
    let timeout = Duration::from_millis(std::env::var("TIMEOUT_MS").unwrap().parse().unwrap());
    match role.as_str() {
        "reader" => {
            Reader::open(&dir, StartPosition::Oldest).unwrap().wait_durable(position, timeout).unwrap();
            let mut durability = DurabilityHandle::open(&dir).unwrap();
            assert!(durability.position().unwrap() >= position);
            assert_eq!((durability.failures().unwrap(), durability.failure().unwrap()), (0, None));
        }
        "impatient" => {
            let error = Reader::open(&dir, StartPosition::Oldest)
                .unwrap()
                .wait_durable(position, timeout)
                .unwrap_err();
            println!("refused: {error}");
        }
        "all" => println!("units: {}", Checker::new(&dir, 3).catch_up()),
        other => panic!("no role {other}"),
    }
}

/// The test binary as another user; where this one cannot become another, as this one.
fn as_another(role: &str, tape: &Path, position: Position, timeout_ms: u64) -> Output {
    let base = directory();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = base.path().join("reader");
    // Not `fs::copy`: a process that another test forks meanwhile would hold the copy open for writing, and what is open for
    // writing cannot be started.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(program);
    command.args(["--exact", "child", "--nocapture"]).env("UNITAPE_READER", role).env("DIR", tape);
    command.env("POSITION", position.0.to_string()).env("TIMEOUT_MS", timeout_ms.to_string());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/").output().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A tape that everybody may read, and nobody but its writer may write.
fn open(base: &Path, name: &str, hot: bool, sync: SyncPolicy) -> (PathBuf, Writer) {
    fs::set_permissions(base, fs::Permissions::from_mode(0o755)).unwrap();
    let tape = base.join(name);
    let backing =
        if hot { Backing::Hot { dir: None, window_segments: 4 } } else { options(SEGMENT, None).backing };
    let (writer, _) =
        Writer::open(&tape, ID, WriterOptions { backing, sync_policy: sync, ..options(SEGMENT, None) })
            .unwrap();
    fs::set_permissions(tape.join("run/state"), fs::Permissions::from_mode(0o444)).unwrap();
    (tape, writer)
}

fn output_text(out: &Output) -> String {
    String::from_utf8_lossy(&[&out.stdout[..], &out.stderr].concat()).into_owned()
}

/// A user who may only read was once refused with `permission denied`, even if the position was durable already or
/// about to be.
#[test]
fn who_may_only_read_waits_for_durability() {
    for hot in [false, true] {
        let base = directory();
        let often = SyncPolicy::Every { bytes: 1 << 30, interval: Duration::from_millis(50) };
        let (tape, mut writer) = open(base.path(), "often", hot, often);
        append(&mut writer, 3, 0, 500);
        let out = as_another("reader", &tape, writer.end(), 60_000);
        assert!(out.status.success(), "hot {hot}: {}", output_text(&out));
        assert!(writer.durable() >= writer.end(), "hot {hot}");
        writer.close().unwrap();
    }
}

/// A recorder that flushes at the end alone is not asked, and the reader says why it waited in vain.
#[test]
fn who_cannot_ask_says_so() {
    if !is_root() {
        eprintln!("only the system's user can become another: this test sees nothing");
        return;
    }
    let base = directory();
    let (tape, mut writer) = open(base.path(), "never", true, SyncPolicy::OnClose);
    append(&mut writer, 3, 0, 100);
    let out = as_another("impatient", &tape, writer.end(), 100);
    let printed = output_text(&out);
    assert!(out.status.success() && printed.contains("not durable"), "{printed}");
    assert!(printed.contains("cannot ask"), "{printed}");
    writer.close().unwrap();
}

/// A hot tape in a directory that lets everybody in is readable by everybody, no matter who writes it.
#[test]
fn another_user_reads_a_hot_tape() {
    let base = directory();
    let (tape, mut writer) = open(base.path(), "tape", true, SyncPolicy::OnClose);
    append(&mut writer, 3, 0, 900);
    let out = as_another("all", &tape, writer.end(), 0);
    assert!(output_text(&out).contains("units: 900"), "{}", output_text(&out));
    writer.close().unwrap();
}
