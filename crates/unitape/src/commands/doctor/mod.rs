//! `unitape doctor`: what is missing or misconfigured here, what that costs, and how to mend it.

mod disk;
mod machine;
mod memory;
mod net;

use crate::output::{self, CommandFailure, CommandOutcome, say_to};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape doctor
  unitape doctor --dir tape --measure
  unitape doctor --dir tape --json

docs/tuning.md has the gain of each setting, with figures. Exit code 1 when something is bad, 0 when all is well or only slower than it could be.")]
pub struct DoctorArgs {
    /// Where tapes will be written [default: the current directory]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// Also measure, for a few seconds: how fast the disk is written, how far apart two cores are
    #[arg(long)]
    measure: bool,
    /// Print as JSON, one object a finding
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingSeverity {
    Ok,
    /// Works, but slower or with less room than it could.
    Warn,
    /// Something will not work.
    Bad,
}

/// A finding, and its remedy.
#[derive(Debug, Serialize)]
struct DoctorFinding {
    name: &'static str,
    state: FindingSeverity,
    /// The current state.
    what: String,
    /// The recommended state; empty when all is well, as the others below.
    should: &'static str,
    /// The benefit of that.
    gives: &'static str,
    /// The command that mends it, or what to do where there is none.
    mend: &'static str,
}

/// Runs the command.
pub fn run(args: DoctorArgs) -> output::Result {
    let mut findings = vec![
        machine::cores(),
        memory::memory(),
        machine::kernel(),
        memory::shared_memory(),
        memory::hot_leftovers(),
        memory::huge_pages(),
        memory::reserved_huge_pages(),
        machine::cpu(),
        machine::governor(),
        machine::isolation(),
        machine::clock(),
        memory::swap(),
        memory::dirty(),
        disk::maps(),
        disk::files(),
        memory::locked_memory(),
        machine::priority(),
        net::buffers(),
        disk::disk(&args.dir),
        disk::locks(&args.dir),
        machine::pinning(),
    ];
    if args.measure {
        findings.push(disk::speed(&args.dir));
        findings.push(machine::pair());
    }
    let mut out = output::stdout();
    for finding in &findings {
        if args.json {
            serde_json::to_writer(&mut out, finding).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            print_finding(&mut out, finding)?;
        }
    }
    out.flush()?;
    let bad_count = findings.iter().filter(|f| f.state == FindingSeverity::Bad).count();
    match bad_count {
        0 => Ok(CommandOutcome::Clean),
        n => Err(CommandFailure::Error(format!("{n} of {} findings are bad", findings.len()))),
    }
}

fn print_finding(out: &mut impl Write, finding: &DoctorFinding) -> Result<(), CommandFailure> {
    let mark = match finding.state {
        FindingSeverity::Ok => "ok  ",
        FindingSeverity::Warn => "warn",
        FindingSeverity::Bad => "BAD ",
    };
    say_to!(*out, "{mark} {:<14} {}", finding.name, finding.what);
    if finding.state != FindingSeverity::Ok {
        say_to!(*out, "     {:<14} should be: {}; {}", "", finding.should, finding.gives);
        say_to!(*out, "     {:<14} → {}", "", finding.mend);
    }
    Ok(())
}

fn ok(name: &'static str, detail: impl Into<String>) -> DoctorFinding {
    DoctorFinding { name, state: FindingSeverity::Ok, what: detail.into(), should: "", gives: "", mend: "" }
}

/// The recommended state, its benefit, and the remedy.
struct FindingRemedy(&'static str, &'static str, &'static str);

fn warn(name: &'static str, detail: impl Into<String>, cure: FindingRemedy) -> DoctorFinding {
    let FindingRemedy(should, gives, mend) = cure;
    DoctorFinding { name, state: FindingSeverity::Warn, what: detail.into(), should, gives, mend }
}

fn bad(name: &'static str, detail: impl Into<String>, cure: FindingRemedy) -> DoctorFinding {
    DoctorFinding { state: FindingSeverity::Bad, ..warn(name, detail, cure) }
}

const GIB: u64 = 1 << 30;
