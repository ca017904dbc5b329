//! A disk whose flushes fail under a run: the message promises that appending and reading continue and that the rest is
//! written again, and the run once ended with it.
//!
//! The flushes fail in a library that is loaded before the system's: those of segments, as long as a file is there.
#![cfg(target_os = "linux")]

use crate::common::{self, run};
use common::run::{Bench, Running, orders};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    const char *switch_ = getenv("FAIL_FLUSHES");
    if (n > 4 && switch_ && access(switch_, F_OK) == 0) {
        path[n] = 0;
        if (strcmp(path + n - 4, ".seg") == 0) { errno = EIO; return -1; }
    }
    return real(fd);
}
"#;

/// The library, made by the C compiler of this machine.
fn shim(dir: &Path) -> PathBuf {
    let (source, library) = (common::file(dir, "shim.c", SHIM), dir.join("shim.so"));
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(made.expect("a C compiler").success());
    library
}

fn place(tape: &str) -> Bench {
    let bench = Bench::new("wait = \"10ms\"", &[("orders", "directory = \"in\"")]);
    let config = std::fs::read_to_string(bench.path("run.toml")).unwrap();
    std::fs::write(bench.path("run.toml"), config.replace("[run]", &format!("{tape}\n[run]"))).unwrap();
    std::fs::create_dir(bench.path("in")).unwrap();
    bench
}

fn start(bench: &Bench, shim: &Path) -> Running {
    let err = bench.path("err");
    let to = std::fs::File::create(&err).unwrap();
    let mut command = bench.command();
    command.env("LD_PRELOAD", shim).env("FAIL_FLUSHES", bench.path("fail"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).spawn().unwrap();
    Running { child, err }
}

fn grow(bench: &Bench, name: &str, numbers: std::ops::Range<u32>) {
    std::fs::write(bench.path("new"), orders(numbers)).unwrap();
    std::fs::rename(bench.path("new"), bench.path(&format!("in/{name}.fix"))).unwrap();
}

fn failures(bench: &Bench) -> u64 {
    unitape_tape::DurabilityHandle::open(&bench.tape()).and_then(|mut d| d.failures()).unwrap_or(0)
}

fn durable(bench: &Bench) -> u64 {
    unitape_tape::DurabilityHandle::open(&bench.tape()).and_then(|mut d| d.position()).map_or(0, |p| p.0)
}

fn end(bench: &Bench) -> u64 {
    unitape_tape::Reader::open(&bench.tape(), unitape_tape::StartPosition::End).map_or(0, |r| r.position().0)
}

fn verify(bench: &Bench) -> common::Ran {
    run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()])
}

/// A file tape: what comes is appended and read all the same, the end says that it is not durable, and the next run checks
/// and writes it again.
#[test]
fn a_run_onto_a_file_tape_goes_on_while_nothing_becomes_durable() {
    let bench = place("sync = \"5ms\"");
    let shim = shim(bench.dir.path());
    grow(&bench, "a", 1..100);
    let mut running = start(&bench, &shim);
    bench.has(&mut running, 99);
    running.until(|| durable(&bench) > 0);
    std::fs::write(bench.path("fail"), "").unwrap();
    grow(&bench, "b", 100..200);
    running.until(|| failures(&bench) > 0);
    let stands = durable(&bench);
    for (name, from) in [("c", 200), ("d", 300), ("e", 400)] {
        grow(&bench, name, from..from + 100);
        bench.has(&mut running, u64::from(from) + 99);
    }
    running.until(|| running_said(&bench).contains("durability failed"));
    assert_eq!(durable(&bench), stands, "nothing more becomes durable");
    let (code, said) = running.stop();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("reopen the tape"), "{said}");
    std::fs::remove_file(bench.path("fail")).unwrap();
    let mut running = start(&bench, &shim);
    grow(&bench, "f", 500..510);
    bench.has(&mut running, 509);
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    verify(&bench).code(0);
    assert_eq!(common::oids(&bench.tape()).len(), 509);
}

/// A hot tape: the recorder writes the rest again until a flush succeeds, however often that fails; also when the window
/// is full meanwhile.
#[test]
fn a_run_onto_a_hot_tape_writes_again_until_a_flush_succeeds() {
    let bench = place("backing = \"hot\"\nsync = \"5ms\"\nsegment_bytes = 1048576");
    let shim = shim(bench.dir.path());
    grow(&bench, "a", 1..100);
    let mut running = start(&bench, &shim);
    bench.has(&mut running, 99);
    running.until(|| durable(&bench) > 0);
    std::fs::write(bench.path("fail"), "").unwrap();
    // More than the window has room for.
    for (part, name) in ["b", "c", "d", "e"].iter().enumerate() {
        let from = 100 + 15_000 * part as u32;
        grow(&bench, name, from..from + 15_000);
    }
    running.until(|| end(&bench) > 2 << 20);
    let stands = durable(&bench);
    running.until(|| running_said(&bench).contains("writes the rest again"));
    // A writer waits five seconds for a recorder that lags; a flush is tried again within a twentieth of one.
    let failed = failures(&bench);
    running.until(|| failures(&bench) > failed + 150);
    assert_eq!(durable(&bench), stands);
    std::fs::remove_file(bench.path("fail")).unwrap();
    bench.has(&mut running, 60_099);
    running.until(|| durable(&bench) > stands);
    let (code, said) = running.stop();
    assert_eq!(code, Some(0), "{said}");
    verify(&bench).code(0);
    assert_eq!(common::oids(&bench.tape()).len(), 60_099);
}

fn running_said(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path("err")).unwrap_or_default()
}
