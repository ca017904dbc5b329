//! The steps of `cargo xtask test`, in the order in which they run: what fails fast comes first.

use std::path::PathBuf;

use crate::cargo::{Metadata, cargo, cargo_of, root, rustflags};
use crate::noise::BusyLoops;
use crate::report::{self, TestCount};
use crate::timings::Timings;
use crate::{demo, example_format, link, suite, tidy, tools, web};

/// One step.
pub(crate) struct TestStep {
    /// The word for `--only`.
    pub(crate) name: &'static str,
    /// One line for people.
    pub(crate) description: &'static str,
    pub(crate) tier: Tier,
    pub(crate) run: fn(&StepContext, &mut TestCount) -> StepOutcome,
}

impl TestStep {
    /// Whether the step heeds the choice of packages.
    pub(crate) fn is_by_package(&self) -> bool {
        ["clippy", "test"].contains(&self.name)
    }

    /// Whether `--changed` runs it: it takes seconds, or heeds the choice of packages.
    pub(crate) fn is_inner_loop(&self) -> bool {
        self.is_by_package() || ["fmt", "tidy"].contains(&self.name)
    }
}

/// The runs that a step belongs to. A run does the steps of its own tier and of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// `cargo xtask test --quick`.
    Quick,
    /// `cargo xtask test`.
    Ordinary,
}

/// The context that all steps share.
pub(crate) struct StepContext {
    /// Where cargo builds. Builds with other flags go into folders of their own below it, so that they
    /// do not push each other out.
    pub(crate) target_dir: PathBuf,
    /// `--locked`, or `--frozen` without a network.
    pub(crate) locked: &'static str,
    /// The packages that are checked and tested; none for all.
    pub(crate) packages: Option<Vec<String>>,
    /// Whether busy loops run beside the steps `test`, `faults`, `loom` and `tsan`.
    pub(crate) has_noise: bool,
    pub(crate) timings: Timings,
}

impl StepContext {
    /// The packages as cargo takes them.
    pub(crate) fn package_args(&self) -> Vec<String> {
        match &self.packages {
            None => vec!["--workspace".to_owned()],
            Some(names) => names.iter().flat_map(|name| ["--package".to_owned(), name.clone()]).collect(),
        }
    }
}

/// The outcome of a step.
pub(crate) enum StepOutcome {
    Ok,
    Failed(String),
    /// It cannot be done on this machine; the reason is shown.
    Skipped(String),
}

impl From<Result<(), String>> for StepOutcome {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(StepOutcome::Failed, |()| StepOutcome::Ok)
    }
}

/// All steps.
pub(crate) const STEPS: &[TestStep] = &[
    TestStep { name: "fmt", description: "the code is formatted", tier: Tier::Quick, run: fmt },
    TestStep {
        name: "tidy",
        description: "layers, sizes, links and the other house rules",
        tier: Tier::Quick,
        run: tidy,
    },
    TestStep { name: "clippy", description: "no warnings", tier: Tier::Quick, run: clippy },
    TestStep {
        name: "test",
        description: "all tests of all crates, and the commands in the docs",
        tier: Tier::Quick,
        run: suite::run,
    },
    TestStep {
        name: "faults",
        description: "every system call of a tape fails at some moment",
        tier: Tier::Quick,
        run: faults,
    },
    TestStep {
        name: "doc",
        description: "the documentation builds and its links resolve",
        tier: Tier::Ordinary,
        run: doc,
    },
    TestStep {
        name: "format",
        description: "the patch under examples/ adds a format, whose tests run",
        tier: Tier::Ordinary,
        run: example_format::run,
    },
    TestStep {
        name: "loom",
        description: "rings and tape under every interleaving that loom finds",
        tier: Tier::Ordinary,
        run: loom,
    },
    TestStep {
        name: "deny",
        description: "licences and sources of the dependencies",
        tier: Tier::Ordinary,
        run: deny,
    },
    TestStep {
        name: "demo",
        description: "the demo, which checks itself",
        tier: Tier::Ordinary,
        run: run_demo,
    },
    TestStep {
        name: "web",
        description: "the page of the desk: types, bundle, and a walk through it in Chromium",
        tier: Tier::Ordinary,
        run: web::run,
    },
    TestStep {
        name: "link",
        description: "unitape with Aeron carries a tape between two processes",
        tier: Tier::Ordinary,
        run: link::run,
    },
    TestStep {
        name: "tsan",
        description: "lock-free code under ThreadSanitizer (nightly)",
        tier: Tier::Ordinary,
        run: tsan,
    },
];

/// Crates with lock-free code.
const LOCK_FREE: [&str; 2] = ["unitape-ring", "unitape-tape"];
/// The profile of what loom and ThreadSanitizer run.
const PROFILE: [&str; 2] = ["--profile", "explore"];
/// Code for loom tests is built without link-time optimisation. ThreadSanitizer wants it: without it, code of the
/// standard library that is not instrumented looks like races.
const LTO: &str = "CARGO_PROFILE_EXPLORE_LTO";
/// Exploring without a bound takes days; three preemptions find the known kinds of mistakes.
pub(crate) const LOOM_PREEMPTIONS: u64 = 3;
/// Tests of the step `faults`, and models that loom explores. The list of all tests does not have them, so that a fall
/// fails here.
const FAULT_TESTS: u64 = 18;
pub(crate) const LOOM_MODELS: u64 = 18;
/// The only target whose sanitizers are used; elsewhere those steps are skipped.
const SANITIZER_TARGET: &str = "x86_64-unknown-linux-gnu";

fn fmt(_: &StepContext, count: &mut TestCount) -> StepOutcome {
    if let Err(reason) = tools::component("fmt", "rustfmt") {
        return StepOutcome::Skipped(reason);
    }
    report::run(cargo().args(["fmt", "--all", "--check"]), count).into()
}

fn tidy(_: &StepContext, _: &mut TestCount) -> StepOutcome {
    match tidy::check(&root()) {
        Ok(problems) if problems.is_empty() => StepOutcome::Ok,
        Ok(problems) => {
            tidy::show(&problems);
            StepOutcome::Failed(format!("{} problems", problems.len()))
        }
        Err(reason) => StepOutcome::Failed(reason),
    }
}

fn clippy(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    if let Err(reason) = tools::component("clippy", "clippy") {
        return StepOutcome::Skipped(reason);
    }
    let mut command = cargo();
    command.args(["clippy", "--all-targets", context.locked]).args(context.package_args());
    report::run(command.args(["--", "-D", "warnings"]), count).into()
}

fn faults(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    // The tests of the whole workspace are built, so that the crates of others have the features with which they are
    // built already.
    let args = ["test", "--workspace", "--features", "unitape-tape/faults", "--test", "faults"];
    let mut command = cargo();
    command.args(args).args(["--test", "faults_apart", context.locked]);
    run_tests(&mut command, context, count).and_then(|()| count.at_least(FAULT_TESTS)).into()
}

fn doc(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let args = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet", context.locked];
    report::run(cargo().args(args).env("RUSTDOCFLAGS", "-D warnings"), count).into()
}

fn loom(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    loom_with(context, LOOM_PREEMPTIONS, count)
}

/// Every interleaving with up to `preemptions` preemptions, or up to `LOOM_MAX_PREEMPTIONS`.
pub(crate) fn loom_with(context: &StepContext, preemptions: u64, count: &mut TestCount) -> StepOutcome {
    let mut problems = Vec::new();
    for package in LOCK_FREE {
        let mut command = cargo();
        command
            .args(["test", "--package", package, "--test", "loom", context.locked])
            .args(PROFILE)
            .env("RUSTFLAGS", rustflags("--cfg loom"))
            .env(LTO, "off")
            .env("CARGO_TARGET_DIR", context.target_dir.join("loom"));
        if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
            command.env("LOOM_MAX_PREEMPTIONS", preemptions.to_string());
        }
        problems.extend(run_tests(&mut command, context, count).err());
    }
    if problems.is_empty() {
        problems.extend(count.at_least(LOOM_MODELS).err());
    }
    joined(problems)
}

/// Advisories are left out: their database is not in a package registry, and a check that needs more
/// than the registries would fail on machines that reach nothing else.
fn deny(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let binary = match tools::install(&tools::CARGO_DENY, &context.target_dir) {
        Ok(binary) => binary,
        Err(reason) => return StepOutcome::Skipped(reason),
    };
    // Packages of other systems as well, which nothing else here has fetched and the check looks at.
    let mut fetch = cargo();
    fetch.args(["fetch", context.locked]);
    if let Err(reason) = report::run(&mut fetch, count) {
        return StepOutcome::Failed(reason.to_string());
    }
    let mut command = std::process::Command::new(binary);
    command
        .args(["--offline", context.locked, "check", "--hide-inclusion-graph", "licenses", "bans", "sources"])
        .current_dir(root());
    report::run(&mut command, count).into()
}

/// Runs the demo with the binary that the tests use. A release build, as `cargo xtask demo` makes, takes minutes.
fn run_demo(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let mut build = cargo();
    build.args(["test", "--workspace", "--no-run", context.locked]);
    if let Err(reason) = report::run(&mut build, count) {
        return StepOutcome::Failed(reason);
    }
    let binary = context.target_dir.join("debug").join(demo::BINARY);
    report::run(std::process::Command::new(binary).arg("demo"), count).into()
}

/// With the standard library's source, everything is instrumented and all tests of the lock-free crates
/// run. Without it the standard library and the test harness are not instrumented, their channels and
/// scoped threads look like races; then only tests named `tsan` run, which bring their own `main` and
/// share memory through our code and plain threads alone.
pub(crate) fn tsan(context: &StepContext, count: &mut TestCount) -> StepOutcome {
    let Some(has_source) = tools::nightly() else {
        return StepOutcome::Skipped(tools::NO_NIGHTLY.to_owned());
    };
    if tools::host().as_deref() != Some(SANITIZER_TARGET) {
        return StepOutcome::Skipped(format!("ThreadSanitizer is set up for {SANITIZER_TARGET} alone"));
    }
    let packages = match Metadata::load() {
        Ok(metadata) => metadata.packages(),
        Err(reason) => return StepOutcome::Failed(reason),
    };
    if !has_source {
        eprintln!("nightly is without rust-src: running the `tsan` tests with their own main, not all tests");
    }
    let mut problems = Vec::new();
    let mut ran = false;
    for package in packages.iter().filter(|package| LOCK_FREE.contains(&package.name.as_str())) {
        let mut command = cargo_of("nightly");
        command.args(["test", context.locked, "--target", SANITIZER_TARGET]).args(PROFILE);
        command.args(["--package", &package.name]).env("CARGO_TARGET_DIR", context.target_dir.join("tsan"));
        if has_source {
            command
                .args(["-Zbuild-std", "--lib", "--tests"])
                .env("RUSTFLAGS", rustflags("-Zsanitizer=thread"));
        } else if package.tests.iter().any(|test| test == "tsan") {
            // The flag lets instrumented code link with the standard library as it was shipped.
            let flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tsan";
            command.args(["--test", "tsan"]).env("RUSTFLAGS", rustflags(flags));
        } else {
            eprintln!("{} has no test named `tsan`", package.name);
            continue;
        }
        ran = true;
        problems.extend(run_tests(&mut command, context, count).err());
    }
    if ran { joined(problems) } else { StepOutcome::Skipped("no crate has a test named `tsan`".to_owned()) }
}

/// Runs tests by cargo, beside busy loops if they are asked for: these wait until everything is built.
fn run_tests(
    command: &mut std::process::Command,
    context: &StepContext,
    count: &mut TestCount,
) -> Result<(), String> {
    if !context.has_noise {
        return report::run(command, count);
    }
    let mut build = std::process::Command::new(command.get_program());
    build.args(command.get_args()).arg("--no-run").current_dir(root());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => build.env(name, value),
            None => build.env_remove(name),
        };
    }
    report::run(&mut build, count)?;
    let _noise = BusyLoops::start();
    report::run(command, count)
}

pub(crate) fn joined(problems: Vec<String>) -> StepOutcome {
    if problems.is_empty() { StepOutcome::Ok } else { StepOutcome::Failed(problems.join("; ")) }
}
