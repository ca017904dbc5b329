//! `cargo xtask test`: every check of the house, one step after the other, and one closing line.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::cargo::Metadata;
use crate::report::Count;
use crate::steps::{Context, Outcome, STEPS, Step, Tier};
use crate::{Failure, tools};

/// Runs the chosen steps to the last, also when one fails, and lists what failed at the end.
pub(crate) fn run(args: &[String]) -> Result<u8, Failure> {
    let Some(chosen) = choose(args).map_err(Failure::Usage)? else {
        for step in STEPS {
            println!("{:8} {}", step.name, step.about);
        }
        return Ok(0);
    };
    report_machine();
    tools::c_compiler()?;
    let context = Context { target_dir: Metadata::load()?.target_dir()?, locked: tools::fetch() };

    let mut total = Count::default();
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for step in chosen {
        eprintln!("\n== {}: {}", step.name, step.about);
        let mut count = Count::default();
        let start = Instant::now();
        let outcome = (step.run)(&context, &mut count);
        let took = start.elapsed();
        let result = match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Failed(why) => {
                // A lint or a crash fails a step without any failed test; the closing line must not
                // read "0 failed" then.
                count.failed = count.failed.max(1);
                failed.push(step.name);
                format!("FAILED: {why}")
            }
            Outcome::Skipped(why) => {
                count.skipped += 1;
                format!("SKIPPED: {why}")
            }
        };
        let line = format!("{:8} {:>6}  {result}", step.name, seconds(took));
        eprintln!("-- {line}");
        lines.push(line);
        total += count;
    }

    for failure in &total.failures {
        eprintln!("\n{failure}");
    }
    eprintln!("\n== summary");
    for line in &lines {
        eprintln!("{line}");
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

/// The steps that the arguments ask for; none if they ask for the list.
fn choose(args: &[String]) -> Result<Option<Vec<&'static Step>>, String> {
    let mut tier = Tier::Ordinary;
    let mut only: Vec<&str> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--" => {}
            "--quick" => tier = Tier::Quick,
            "--list" => return Ok(None),
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
    let wanted = |step: &&Step| {
        if only.is_empty() { step.tier <= tier } else { only.contains(&step.name) }
    };
    Ok(Some(STEPS.iter().filter(wanted).collect()))
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

    fn names(args: &[&str]) -> Result<Vec<&'static str>, String> {
        let args: Vec<String> = args.iter().map(|&a| a.to_owned()).collect();
        Ok(choose(&args)?.unwrap_or_default().into_iter().map(|step| step.name).collect())
    }

    /// A mistyped step that ran nothing would look like success.
    #[test]
    fn steps_are_chosen_by_name_in_the_order_of_the_run() {
        assert_eq!(names(&["--only", "tidy"]).unwrap(), ["tidy"]);
        assert_eq!(names(&["--only=tidy", "--only", "fmt"]).unwrap(), ["fmt", "tidy"]);
        assert!(names(&["--only", "tiddy"]).unwrap_err().contains("no step `tiddy`"));
        assert!(names(&["--only"]).is_err());
        assert!(names(&["--fast"]).is_err());
        assert_eq!(names(&["--only", "peers"]).unwrap(), ["peers"]);
        let ordinary = names(&[]).unwrap();
        assert!(ordinary.contains(&"fuzz") && !ordinary.contains(&"peers"));
        let quick = names(&["--quick"]).unwrap();
        assert!(quick.contains(&"test") && !quick.contains(&"fuzz"));
    }

    #[test]
    fn times_are_short_to_read() {
        assert_eq!(seconds(Duration::from_millis(1_240)), "1.2s");
        assert_eq!(seconds(Duration::from_secs(125)), "2m05s");
    }
}
