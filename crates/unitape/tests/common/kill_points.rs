//! A command that is killed at its n-th call that changes a file, for each n; or that is told there of an error of the disk.
//!
//! The calls are counted in a library that is loaded before the system's, so the tests kill the real binary. The n-th
//! call kills the process before it changes anything; a long write first writes half of its bytes, as the system may.
//! A killed process loses nothing of what it wrote, so these are all states in which a kill can leave the files, but
//! for those inside a mapping.
#![allow(dead_code)] // each test file uses its part
#![cfg(target_os = "linux")]

use crate::common::{self, Ran, file, finish, unitape};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library that counts and kills.
pub struct KillPoints {
    dir: tempfile::TempDir,
    library: PathBuf,
}

/// A command that was killed, or that ended before it reached the call.
pub struct Killed {
    /// The number of the call, for messages.
    pub call: u64,
    pub was_killed: bool,
    /// What it did last, and what it printed.
    pub stderr: String,
}

impl KillPoints {
    /// Compiles the library with the C compiler of this machine.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (source, library) = (file(dir.path(), "kill.c", SOURCE), dir.path().join("kill.so"));
        let mut compiler = Command::new("cc");
        let status = compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        assert!(status.status().expect("a C compiler").success());
        Self { dir, library }
    }

    /// Runs a command undisturbed and returns its result with the number of its calls.
    pub fn count(&self, args: &[OsString]) -> (Ran, u64) {
        let count = self.dir.path().join("count");
        let ran = finish(unitape().args(args).env("LD_PRELOAD", &self.library).env("KILL_COUNT_TO", &count));
        let calls = std::fs::read_to_string(&count).unwrap().trim().parse().unwrap();
        (ran, calls)
    }

    /// Runs a command that is killed at a call.
    pub fn kill_at(&self, call: u64, args: &[OsString]) -> Killed {
        let mut command = unitape();
        command.args(args).env("LD_PRELOAD", &self.library).env("KILL_AT", call.to_string());
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        let was_killed = output.status.signal() == Some(9);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(was_killed || output.status.code().is_some(), "call {call}: {:?}: {stderr}", output.status);
        Killed { call, was_killed, stderr }
    }

    /// Runs a command whose call fails: the system says that the disk has an error. A long write first writes a half.
    pub fn fail_at(&self, call: u64, args: &[OsString]) -> Ran {
        finish(unitape().args(args).env("LD_PRELOAD", &self.library).env("FAIL_AT", call.to_string()))
    }

    /// The calls at which a test kills: all of them, or [`POINTS`] of them with the same distance. The variable
    /// `UNITAPE_KILL_POINTS` asks for more.
    pub fn points(calls: u64) -> impl Iterator<Item = u64> {
        let wanted = std::env::var("UNITAPE_KILL_POINTS").map_or(POINTS, |n| n.parse().expect("a number"));
        let count = wanted.min(calls);
        (0..count).map(move |i| 1 + i * calls / count)
    }
}

/// Kill points of a command in the ordinary run.
const POINTS: u64 = 20;

/// Copies a directory with permissions and times, which say what is sealed and how old it is.
pub fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Removes a directory.
pub fn remove(dir: &Path) {
    if dir.exists() {
        std::fs::remove_dir_all(dir).unwrap();
    }
}

/// Returns the arguments of a command.
pub fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Returns what `tape cat` of a tape prints, with its exit code.
pub fn cat(tape: &Path) -> (Option<i32>, Vec<String>) {
    let ran = common::run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str(), "--json".as_ref()]);
    let lines = ran.text().lines().map(str::to_owned).collect();
    (ran.code, lines)
}

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned long calls;

static unsigned long kill_at(void) {
    static long n = -1;
    if (n < 0) n = getenv("KILL_AT") ? atol(getenv("KILL_AT")) : getenv("FAIL_AT") ? atol(getenv("FAIL_AT")) : 0;
    return n;
}

static int is_last(void) {
    return __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == kill_at();
}

static int die(const char *name, const char *path) {
    char text[4200];
    int fails = getenv("FAIL_AT") != 0;
    int n = snprintf(text, sizeof text, "%s at %s %s\n", fails ? "failed" : "killed", name, path ? path : "");
    syscall(SYS_write, 2, text, n);
    if (fails) {
        errno = EIO;
        return -1;
    }
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int die_of(const char *name, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    return die(name, path);
}

static int is_file(int fd) {
    struct stat s;
    return fd > 2 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

__attribute__((destructor)) static void write_count(void) {
    const char *path = getenv("KILL_COUNT_TO");
    if (!path) return;
    char text[32];
    int n = snprintf(text, sizeof text, "%lu\n", calls);
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    syscall(SYS_write, fd, text, n);
    syscall(SYS_close, fd);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)
#define ON_PATH(name, path) if (is_last()) return die(#name, path)
#define ON_FILE(name, fd) if (is_file(fd) && is_last()) return die_of(#name, fd)

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    ON_PATH(rename, to);
    return real(from, to);
}
int link(const char *from, const char *to) {
    REAL(int, link, const char *, const char *);
    ON_PATH(link, to);
    return real(from, to);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    REAL(int, linkat, int, const char *, int, const char *, int);
    ON_PATH(linkat, to);
    return real(a, from, b, to, flags);
}
int unlink(const char *path) {
    REAL(int, unlink, const char *);
    ON_PATH(unlink, path);
    return real(path);
}
int unlinkat(int dir, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    ON_PATH(unlinkat, path);
    return real(dir, path, flags);
}
int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    ON_PATH(mkdir, path);
    return real(path, mode);
}
int rmdir(const char *path) {
    REAL(int, rmdir, const char *);
    ON_PATH(rmdir, path);
    return real(path);
}
int chmod(const char *path, mode_t mode) {
    REAL(int, chmod, const char *, mode_t);
    ON_PATH(chmod, path);
    return real(path, mode);
}
int fchmod(int fd, mode_t mode) {
    REAL(int, fchmod, int, mode_t);
    ON_FILE(fchmod, fd);
    return real(fd, mode);
}
int open64(const char *path, int flags, ...) {
    REAL(int, open64, const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    int changes = flags & O_TRUNC || flags & O_CREAT && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
    if (changes && is_last()) return die("open", path);
    return real(path, flags, mode);
}
int ftruncate64(int fd, off64_t length) {
    REAL(int, ftruncate64, int, off64_t);
    ON_FILE(ftruncate, fd);
    return real(fd, length);
}
int fsync(int fd) {
    REAL(int, fsync, int);
    if (is_last()) return die_of("fsync", fd);
    return real(fd);
}
int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    if (is_last()) return die_of("fdatasync", fd);
    return real(fd);
}
int msync(void *start, size_t length, int flags) {
    REAL(int, msync, void *, size_t, int);
    ON_PATH(msync, 0);
    return real(start, length, flags);
}
ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(ssize_t, write, int, const void *, size_t);
    if (is_file(fd) && is_last()) {
        if (length > 4096) real(fd, bytes, length / 2);
        return die_of("write", fd);
    }
    return real(fd, bytes, length);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    if (is_file(fd) && is_last()) {
        if (length > 4096) real(fd, bytes, length / 2, at);
        return die_of("pwrite", fd);
    }
    return real(fd, bytes, length, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    ON_FILE(writev, fd);
    return real(fd, parts, count);
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t length, unsigned flags) {
    REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned);
    ON_FILE(copy_file_range, to);
    return real(from, a, to, b, length, flags);
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t length) {
    REAL(ssize_t, sendfile64, int, int, off64_t *, size_t);
    ON_FILE(sendfile, to);
    return real(to, from, at, length);
}
"#;
