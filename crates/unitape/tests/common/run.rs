//! A place to run feeds in, for the tests of `unitape run`.

use super::ports::free_ports;
use super::{file, order, unitape};
use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A run of one or more feeds of orders, each given by name and the lines that say where it is from.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

/// A run in progress.
pub struct Running {
    pub child: Child,
    pub err: PathBuf,
}

impl Bench {
    pub fn new(run: &str, feeds: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Self { dir };
        bench.configure(run, feeds);
        bench
    }

    pub fn configure(&self, run: &str, feeds: &[(&str, &str)]) {
        let mut text = format!("[tape]\ndir = \"tape\"\n[run]\nscan = \"5ms\"\n{run}\n");
        for (name, input) in feeds {
            let mapping = if input.contains("mapping") { "" } else { "mapping = \"fix44-orders\"\n" };
            text += &format!("[[feed]]\nname = \"{name}\"\nformat = \"fix\"\n{mapping}{input}\n");
        }
        file(self.dir.path(), "run.toml", text);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn tape(&self) -> PathBuf {
        self.path("tape")
    }

    pub fn command(&self) -> Command {
        let mut command = unitape();
        command.arg("run").arg(self.path("run.toml"));
        command
    }

    pub fn start(&self) -> Running {
        self.start_with(Stdio::null())
    }

    pub fn start_with(&self, stdin: Stdio) -> Running {
        let err = self.path("err");
        let to = File::create(&err).unwrap();
        let child = self.command().stdin(stdin).stdout(Stdio::null()).stderr(to).spawn().unwrap();
        Running { child, err }
    }

    /// Waits until the tape has this many orders.
    #[track_caller]
    pub fn has(&self, run: &mut Running, orders: u64) {
        run.until(|| {
            let account = unitape_feed::TapeAccount::load(&self.tape());
            account.is_ok_and(|a| a.summary().by_kind.get("order_new").copied().unwrap_or(0) >= orders)
        });
    }
}

impl Drop for Running {
    /// A test that fails leaves no run behind.
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Running {
    #[track_caller]
    pub fn until(&mut self, there: impl Fn() -> bool) {
        let mut ended = None;
        let came = becomes(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some() || there()
        });
        if let Some(status) = ended {
            panic!("ended with {status}: {}", self.said());
        }
        assert!(came, "it hangs: {}", self.said());
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Ends it in order and gives its exit code.
    pub fn stop(mut self) -> (Option<i32>, String) {
        self.signal("-INT");
        let status = self.child.wait().unwrap();
        (status.code(), self.said())
    }

    pub fn ends(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        (status.code(), self.said())
    }
}

pub fn orders(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(order).collect()
}

pub fn names(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| format!("O{n}")).collect()
}

/// A port that no other test has.
pub fn free_port() -> u16 {
    free_ports(1)
}

/// Connects, unless the port stays refused.
#[track_caller]
pub fn connect(port: u16) -> TcpStream {
    let mut stream = None;
    let there = becomes(|| {
        stream = TcpStream::connect(("127.0.0.1", port)).ok();
        stream.is_some()
    });
    assert!(there, "port {port} is refused");
    stream.unwrap()
}

/// An event that does not happen within this time hangs. It is no measure of speed: a machine that is busy may need
/// long.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until it is so; false if it hangs.
pub fn becomes(mut there: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !there() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
