//! Who is measured: what each subject is, how many messages it gets, and how its program is had.

use crate::programs::{aeron_can_be_built, class_path, java, package_built};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
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
    /// The arguments of its processes.
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
        match self {
            Program::Own => std::env::current_exe().map_err(|e| format!("this program: {e}")),
            Program::Package(package) => {
                if package == "unitape-bench-aeron" {
                    aeron_can_be_built()?;
                }
                package_built(package)
            }
            Program::Java => java(),
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
                let path = class_path(&place);
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
