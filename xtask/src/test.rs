//! `cargo xtask test`: every check of the house, one step after the other, and one closing line.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::cargo::Metadata;
use crate::records::{self, RecordedCommit};
use crate::report::TestCount;
use crate::steps::{STEPS, StepContext, StepOutcome, TestStep, Tier};
use crate::timings::{self, CpuSeconds, Timings};
use crate::{XtaskFailure, changed, deep, tools};

/// The request in the arguments.
struct TestRequest {
    steps: Vec<&'static TestStep>,
    /// The commit whose changes are tested, instead of everything.
    changed_since: Option<String>,
    has_noise: bool,
    /// Compare the seconds with the last record.
    adds_up: bool,
    /// Write the record of the seconds where records are tracked.
    records: bool,
    /// All of the ordinary run is asked for, nothing less.
    is_whole: bool,
}

/// The commit that `--changed` counts from if none is named.
const BASE: &str = "main";

/// Runs the chosen steps to the last, also when one fails, and lists what failed at the end.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let Some(request) = parse(args).map_err(XtaskFailure::Usage)? else {
        for step in STEPS {
            println!("{:8} {}", step.name, step.description);
        }
        return Ok(0);
    };
    tools::c_compiler()?;
    tools::python();
    report_machine();
    let metadata = Metadata::load()?;
    let packages = match &request.changed_since {
        None => None,
        Some(base) => {
            let files = changed::files_since(base)?;
            let packages = changed::packages_of(&files, &metadata.packages());
            eprintln!("{} files differ from {base}; tested are: {}", files.len(), packages.join(", "));
            Some(packages)
        }
    };
    let nothing = packages.as_ref().is_some_and(Vec::is_empty);
    let target_dir = metadata.target_dir()?;
    let start = Instant::now();
    let locked = tools::download(&request.steps, &target_dir);
    let downloaded = start.elapsed();
    let context = StepContext {
        target_dir,
        locked,
        packages,
        has_noise: request.has_noise,
        timings: Timings::default(),
    };

    let cpu_before = CpuSeconds::now();
    let mut total = TestCount::default();
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    // Packages that nobody names would mean all packages to cargo.
    let chosen = request.steps.iter().filter(|step| !nothing || !step.is_by_package());
    for step in chosen {
        eprintln!("\n== {}: {}", step.name, step.description);
        let mut count = TestCount::default();
        let start = Instant::now();
        let outcome = (step.run)(&context, &mut count);
        let took = start.elapsed();
        let result = match outcome {
            StepOutcome::Ok => "ok".to_owned(),
            StepOutcome::Failed(why) => {
                // A lint or a crash fails a step without any failed test; the closing line must not
                // read "0 failed" then.
                count.failed = count.failed.max(1);
                failed.push(step.name);
                format!("FAILED: {why}")
            }
            StepOutcome::Skipped(why) => {
                count.skipped += 1;
                format!("SKIPPED: {why}")
            }
        };
        let line = format!("{:8} {:>6}  {result}", step.name, seconds(took));
        eprintln!("-- {line}");
        lines.push(line);
        context.timings.add(&format!("step {}", step.name), took.as_secs_f64());
        total += count;
    }

    for failure in &total.failures {
        eprintln!("\n{failure}");
    }
    let cpu = cpu_before.zip(CpuSeconds::now()).map(|(before, now)| now.since(before));
    if let Some(cpu) = cpu {
        context.timings.add("cpu used", cpu.used);
        context.timings.add("cpu stolen", cpu.stolen);
    }
    report_timings(&request, &context, failed.is_empty())?;
    if request.changed_since.is_none() {
        deep::report_due()?;
    }
    eprintln!("\n== summary");
    eprintln!("{:8} {:>6}  crates and tools, before the steps", "download", seconds(downloaded));
    for line in &lines {
        eprintln!("{line}");
    }
    if let Some(CpuSeconds { used, stolen }) = cpu {
        eprintln!("{used:.0} CPU seconds were used on this machine; its host gave {stolen:.0} to others");
    }
    if !failed.is_empty() {
        eprintln!(
            "failed: {} (again: cargo xtask test --only {})",
            failed.join(", "),
            failed.join(" --only ")
        );
    }
    std::io::stderr().flush().ok();
    println!("{total}");
    Ok(u8::from(!failed.is_empty()))
}

/// Compares and records the seconds of the run, as the arguments ask.
fn report_timings(
    request: &TestRequest,
    context: &StepContext,
    has_passed: bool,
) -> Result<(), XtaskFailure> {
    if request.adds_up {
        eprintln!();
        let before = records::newest(timings::KIND)?;
        context.timings.compare(&before).iter().for_each(|line| eprintln!("{line}"));
    }
    if request.records && !has_passed {
        eprintln!("\nthe run failed: no record of its seconds is written");
    }
    if !(has_passed && request.is_whole) {
        return Ok(());
    }
    let commit = match RecordedCommit::current() {
        Ok(commit) => commit,
        // Only who asks for a record needs to know of what: a copy without its history is tested as well.
        Err(why) if request.records => return Err(why.into()),
        Err(_) => return Ok(()),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lines = context.timings.to_lines(&commit, cores);
    // Also a run that nobody thought of recording can become a record: by a copy of this file.
    let folder = if request.records { records::folder() } else { context.target_dir.join("record") };
    let path = records::write_in(&folder, timings::KIND, &commit.date, &lines)?;
    eprintln!("\nthe seconds of this run are in {}", path.display());
    Ok(())
}

/// The request in the arguments; none if they ask for the list of steps.
fn parse(args: &[String]) -> Result<Option<TestRequest>, String> {
    let mut request = TestRequest {
        steps: Vec::new(),
        changed_since: None,
        has_noise: false,
        adds_up: false,
        records: false,
        is_whole: false,
    };
    let mut tier = Tier::Ordinary;
    let mut only: Vec<&str> = Vec::new();
    let mut args = args.iter().peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--" => {}
            "--quick" => tier = Tier::Quick,
            "--list" => return Ok(None),
            "--changed" => {
                let base = args.next_if(|next| !next.starts_with("--"));
                request.changed_since = Some(base.map_or(BASE, String::as_str).to_owned());
            }
            "--noise" => request.has_noise = true,
            "--add-up" => request.adds_up = true,
            "--record" => request.records = true,
            "--only" => only.push(args.next().ok_or("--only wants the name of a step")?),
            other => match other.strip_prefix("--only=") {
                Some(name) => only.push(name),
                None => return Err(format!("unknown argument `{other}`; see cargo xtask help")),
            },
        }
    }
    for name in &only {
        if !STEPS.iter().any(|step| step.name == *name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            return Err(format!("no step `{name}`; there are: {}", known.join(", ")));
        }
    }
    let is_partial = request.changed_since.is_some() || request.has_noise;
    if request.changed_since.is_some() {
        tier = Tier::Quick;
    }
    let wanted = |step: &&TestStep| {
        let is_chosen = if only.is_empty() { step.tier <= tier } else { only.contains(&step.name) };
        // The other steps know no packages.
        is_chosen && (request.changed_since.is_none() || !only.is_empty() || step.is_inner_loop())
    };
    request.steps = STEPS.iter().filter(wanted).collect();
    request.is_whole = !is_partial && only.is_empty() && tier == Tier::Ordinary;
    if request.records && !request.is_whole {
        return Err("--record goes with the whole ordinary run alone".to_owned());
    }
    Ok(Some(request))
}

fn report_machine() {
    for program in ["python3", "node"] {
        if !tools::has(program) {
            eprintln!("{program} is not installed; steps that need it will say so");
        }
    }
}

fn seconds(took: Duration) -> String {
    let whole = took.as_secs();
    if whole < 60 {
        format!("{:.1}s", took.as_secs_f64())
    } else {
        format!("{}m{:02}s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(args: &[&str]) -> Result<TestRequest, String> {
        let args: Vec<String> = args.iter().map(|&a| a.to_owned()).collect();
        parse(&args).map(|request| request.expect("no list is asked for"))
    }

    fn names(args: &[&str]) -> Result<Vec<&'static str>, String> {
        Ok(request(args)?.steps.into_iter().map(|step| step.name).collect())
    }

    /// A mistyped step that ran nothing would look like success.
    #[test]
    fn steps_are_chosen_by_name_in_the_order_of_the_run() {
        assert_eq!(names(&["--only", "tidy"]).unwrap(), ["tidy"]);
        assert_eq!(names(&["--only=tidy", "--only", "fmt"]).unwrap(), ["fmt", "tidy"]);
        assert!(names(&["--only", "tiddy"]).unwrap_err().contains("no step `tiddy`"));
        assert!(names(&["--only"]).is_err());
        assert!(names(&["--fast"]).is_err());
        assert!(names(&[]).unwrap().contains(&"tsan"));
        let quick = names(&["--quick"]).unwrap();
        assert!(quick.contains(&"test") && !quick.contains(&"tsan"));
    }

    /// The inner loop leaves out what takes minutes whatever was changed.
    #[test]
    fn changes_are_tested_since_a_commit_or_since_main() {
        let since = |args: &[&str]| request(args).unwrap().changed_since;
        assert_eq!(since(&["--changed"]).as_deref(), Some("main"));
        assert_eq!(since(&["--changed", "HEAD~3", "--noise"]).as_deref(), Some("HEAD~3"));
        assert_eq!(since(&["--changed", "--noise"]).as_deref(), Some("main"));
        assert_eq!(since(&[]), None);
        assert_eq!(names(&["--changed"]).unwrap(), ["fmt", "tidy", "clippy", "test"]);
        assert_eq!(names(&["--changed", "--only", "test"]).unwrap(), ["test"]);
    }

    /// A record of half a run would make the next whole one look slow.
    #[test]
    fn only_a_whole_run_is_recorded() {
        assert!(request(&["--record", "--add-up"]).unwrap().records);
        for partial in ["--quick", "--noise", "--changed", "--only=tidy"] {
            assert!(request(&["--record", partial]).is_err(), "{partial}");
        }
    }

    #[test]
    fn times_are_short_to_read() {
        assert_eq!(seconds(Duration::from_millis(1_240)), "1.2s");
        assert_eq!(seconds(Duration::from_secs(125)), "2m05s");
    }
}
