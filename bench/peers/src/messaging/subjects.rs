//! Who is measured: what each subject is, how many messages it gets, and how its program is had.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use unitape_bench_side::Case;

/// Where the two processes of a subject come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Program {
    /// This program.
    Own,
    /// A package beside this one, built when it is asked for.
    Package(&'static str),
    /// The Java program in `bench/java`.
    Java,
}

/// One that is measured.
#[derive(Clone, Debug)]
pub struct Subject {
    /// How it is asked for.
    pub id: &'static str,
    /// Its name in the records, with the version.
    pub title: &'static str,
    /// What its processes are told.
    pub flavour: &'static str,
    /// How it was measured.
    pub method: &'static str,
    /// Whether its messages are whole ones.
    pub whole: bool,
    program: Program,
    /// Messages that are measured and those before, there and back and one way.
    rtt: (u64, u64),
    one_way: (u64, u64),
}

/// The control.
pub const RAW: Subject = Subject {
    id: "raw",
    title: "unitape",
    flavour: "",
    method: "a u64 there and back in shared memory between two pinned processes",
    whole: false,
    program: Program::Own,
    rtt: (100_000, 5_000),
    one_way: (0, 0),
};

/// All others, ours first. JVMs warm up for longer.
pub const SUBJECTS: [Subject; 10] = [
    Subject {
        id: "unitape",
        title: "unitape",
        flavour: "",
        method: "a hot tape each way with its recorder running, frames of two lines; what was recorded is read again",
        whole: true,
        program: Program::Own,
        rtt: (200_000, 20_000),
        // Together they fit one segment, whose memory is there before, as that of Aeron's term buffers is.
        one_way: (500_000, 10_000),
    },
    Subject {
        id: "aeron",
        title: "Aeron IPC C 1.54 (rusteron 0.2.16), invoker",
        flavour: "invoker:4096",
        method: "exclusive publications; the first process does the media driver's work itself, when pushed back and \
                 every 4096 messages; term buffers of 64 MiB, all touched before",
        whole: true,
        program: Program::Package("unitape-bench-aeron"),
        rtt: (200_000, 20_000),
        one_way: (500_000, 500_000),
    },
    Subject {
        id: "aeron-turn",
        title: "Aeron IPC C 1.54 (rusteron 0.2.16), invoker each turn",
        flavour: "invoker:1",
        method: "exclusive publications; the first process does the media driver's work itself, after each message, as the \
                 duty cycle of an Aeron program does; term buffers of 64 MiB, all touched before",
        whole: true,
        program: Program::Package("unitape-bench-aeron"),
        rtt: (200_000, 20_000),
        one_way: (500_000, 500_000),
    },
    Subject {
        id: "aeron-thread",
        title: "Aeron IPC C 1.54 (rusteron 0.2.16), driver thread",
        flavour: "thread",
        method: "exclusive publications; the media driver is a thread of the first process that sleeps when idle; term \
                 buffers of 64 MiB, all touched before",
        whole: true,
        program: Program::Package("unitape-bench-aeron"),
        rtt: (200_000, 20_000),
        one_way: (500_000, 500_000),
    },
    Subject {
        id: "aeron-java",
        title: "Aeron IPC Java 1.51, invoker",
        flavour: "invoker",
        method: "as the C one",
        whole: true,
        program: Program::Java,
        rtt: (200_000, 200_000),
        one_way: (500_000, 2_000_000),
    },
    Subject {
        id: "aeron-java-thread",
        title: "Aeron IPC Java 1.51, driver thread",
        flavour: "thread",
        method: "as the C one",
        whole: true,
        program: Program::Java,
        rtt: (200_000, 200_000),
        one_way: (500_000, 2_000_000),
    },
    Subject {
        id: "chronicle",
        title: "Chronicle Queue 2026.4",
        flavour: "",
        method: "a queue each way, raw bytes in place, tailers that spin, blocks of 256 MiB",
        whole: true,
        program: Program::Java,
        rtt: (100_000, 200_000),
        one_way: (500_000, 1_000_000),
    },
    Subject {
        id: "iceoryx2",
        title: "iceoryx2 0.10.0",
        flavour: "",
        method: "publish-subscribe into loaned memory, nothing overwritten, queues of 4096, both ends spin",
        whole: true,
        program: Program::Package("unitape-bench-iceoryx2"),
        rtt: (100_000, 10_000),
        one_way: (500_000, 50_000),
    },
    Subject {
        id: "tcp",
        title: "TCP",
        flavour: "",
        method: "loopback, no delay, one write a message, both ends spin",
        whole: true,
        program: Program::Own,
        rtt: (50_000, 5_000),
        one_way: (500_000, 50_000),
    },
    Subject {
        id: "grpc",
        title: "gRPC (tonic 0.14.9)",
        flavour: "",
        method: "loopback, one call that streams both ways, a thread a process that waits in the kernel",
        whole: true,
        program: Program::Package("unitape-bench-grpc"),
        rtt: (20_000, 2_000),
        one_way: (100_000, 10_000),
    },
];

impl Subject {
    /// Messages that are measured, and those before.
    pub fn counts(&self, case: Case, quick: bool) -> (u64, u64) {
        let (count, warm) = match case {
            Case::RoundTrip => self.rtt,
            Case::OneWay => self.one_way,
        };
        if quick { ((count / 50).max(500), (warm / 50).max(100)) } else { (count, warm) }
    }

    /// Whether its messages pass through files, which may be on a disk.
    pub fn on_files(&self) -> bool {
        ["unitape", "chronicle"].contains(&self.id)
    }

    /// Whether it is one of those of Aeron's that the others are compared with.
    pub fn is_aeron(&self) -> bool {
        ["aeron", "aeron-turn", "aeron-thread"].contains(&self.id)
    }
}

/// A program that is there: makes the command of one process.
#[derive(Clone, Debug)]
pub struct Ready {
    program: PathBuf,
    before: Vec<String>,
}

impl Ready {
    /// The command for these arguments.
    pub fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).args(arguments);
        command
    }
}

/// Programs that were built, or why not.
#[derive(Debug, Default)]
pub struct Programs(HashMap<Program, Result<PathBuf, String>>);

impl Programs {
    /// The program of a subject, built if need be; otherwise why it cannot be had here.
    pub fn ready(&mut self, subject: &Subject) -> Result<Ready, String> {
        let program = self.0.entry(subject.program).or_insert_with(|| subject.program.built());
        program.clone().map(|place| Ready::of(subject, place))
    }
}

impl Program {
    /// The program's file, or of the Java program the directory.
    fn built(self) -> Result<PathBuf, String> {
        let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
        match self {
            Program::Own => Ok(own),
            Program::Package(package) => {
                if package == "unitape-bench-aeron" {
                    aeron_can_be_built()?;
                }
                package_built(package)
            }
            Program::Java => {
                let place = own.parent().unwrap_or(Path::new(".")).join("java");
                java_built(&place).map(|()| place)
            }
        }
    }
}

impl Ready {
    fn of(subject: &Subject, place: PathBuf) -> Self {
        match subject.program {
            Program::Own => Self { program: place, before: vec!["side".to_owned(), subject.id.to_owned()] },
            Program::Package(_) => Self { program: place, before: Vec::new() },
            Program::Java => {
                let peer = subject.id.split('-').next().unwrap_or(subject.id).to_owned();
                let path = format!("{0}/classes:{0}/lib/*", place.display());
                let flags = JVM.iter().map(|flag| (*flag).to_owned());
                let before = flags.chain(["-cp".to_owned(), path, "unitape.Side".to_owned(), peer]).collect();
                Self { program: "java".into(), before }
            }
        }
    }
}

/// What the libraries ask for, what lowers their latency, and nothing that would call home.
const JVM: &[&str] = &[
    "-Xms512m",
    "-Xmx512m",
    "-XX:+UseParallelGC",
    "-XX:+AlwaysPreTouch",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=300000",
    "-Dagrona.disable.bounds.checks=true",
    "-Dchronicle.analytics.disable=true",
    "-Dchronicle.announcer.disable=true",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED",
];

fn bench_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).into()
}

/// What Aeron's C build wants and is easily missing; better told before than by a page of its messages.
fn aeron_can_be_built() -> Result<(), String> {
    let cmake = std::env::var("CMAKE").unwrap_or_else(|_| "cmake".to_owned());
    let version = output(Command::new(&cmake).arg("--version"));
    let version =
        version.map_err(|e| format!("{e}; cmake 3.30 or later is needed (PyPI has it), in CMAKE or PATH"))?;
    let number = version.split_whitespace().nth(2).unwrap_or("").to_owned();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (3, 30) {
        return Err(format!("cmake is {number}; 3.30 or later is needed (PyPI has it), in CMAKE or PATH"));
    }
    for (header, package) in [("bsd/string.h", "libbsd-dev"), ("uuid/uuid.h", "uuid-dev")] {
        if !Path::new("/usr/include").join(header).exists() {
            return Err(format!("{header} is missing: install {package}"));
        }
    }
    let clang = std::env::var("LIBCLANG_PATH").is_ok() || libclang_found();
    if clang { Ok(()) } else { Err("libclang is missing: install libclang-dev".to_owned()) }
}

fn libclang_found() -> bool {
    let dirs = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let places = dirs.flat_map(|dir| [dir.path(), dir.path().join("lib")]);
    let is = |name: &str| {
        name.starts_with("libclang.so") || name.starts_with("libclang-") && !name.contains("cpp")
    };
    places
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flat_map(|entries| entries.flatten())
        .any(|entry| entry.file_name().to_str().is_some_and(|name| is(name) && name.contains(".so")))
}

/// Builds a package of this workspace; gives its program.
fn package_built(package: &str) -> Result<PathBuf, String> {
    eprintln!("building {package}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--message-format=json-render-diagnostics", "--package", package]);
    command.arg("--manifest-path").arg(bench_dir().join("Cargo.toml"));
    if std::env::var_os("RUSTERON_C_MARCH").is_none() {
        command.env("RUSTERON_C_MARCH", "native");
    }
    let messages = output(&mut command)?;
    // The last program that was made is the package's own.
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message.get("executable").and_then(|e| e.as_str()).map(PathBuf::from))
        .next_back();
    program.ok_or_else(|| format!("the build of {package} names no program"))
}

/// Compiles the Java peers into `place`, once with what is there and, if that is not enough, once more with Maven's
/// repository.
fn java_built(place: &Path) -> Result<(), String> {
    output(Command::new("java").arg("-version")).map_err(|e| format!("{e}; a JDK 17 or later is needed"))?;
    let maven = |offline: bool| {
        let mut command = Command::new("mvn");
        command.args(["-q", "-B"]).args(offline.then_some("-o")).arg("process-classes");
        command.arg(format!("-Dbuild.dir={}", place.display())).current_dir(bench_dir().join("java"));
        output(&mut command)
    };
    match maven(true) {
        Ok(_) => Ok(()),
        Err(_) => {
            eprintln!("building the Java peers");
            maven(false).map(|_| ()).map_err(|e| format!("{e}; Maven and a JDK 17 or later are needed"))
        }
    }
}

/// Runs a command to its end; gives what it said on stdout, or why not, with the end of what it complained of.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    if status.success() {
        return Ok(stdout);
    }
    let complaints = if stderr.is_empty() { stdout } else { String::from_utf8_lossy(&stderr).into_owned() };
    let all: Vec<&str> = complaints.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(format!("{name} ended with {status}: {}", all[all.len().saturating_sub(3)..].join(" | ")))
}
