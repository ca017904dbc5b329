//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! ```text
//! cargo xtask demo ──▶ C compiler? ─▶ release build ─▶ unitape demo
//! cargo xtask test ──▶ fmt ─▶ clippy ─▶ tidy ─▶ tests ─▶ doc ─▶ loom ─▶ … ─▶ "N passed, N failed, N skipped"
//! cargo xtask tidy ──▶ the rules of the house that no compiler checks
//! ```
//!
//! It installs what a step needs and can be installed (the C compiler and valgrind by apt, tools
//! of cargo and of Python from PyPI); what cannot be had on a machine is said in plain words and counted as skipped, never passed
//! over in silence. It holds no code that the product uses.

mod cargo;
mod changed;
mod checks;
mod deep;
mod demo;
mod example_format;
mod fuzz;
mod instructions;
mod link;
mod noise;
mod pages;
mod records;
mod report;
mod rounds;
mod seeds;
mod steps;
mod suite;
mod test;
mod tidy;
mod timings;
mod tools;
mod twins;
mod web;
mod wheel;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo [ARGS…]                  build, then run `unitape demo ARGS…` on sample data
  test [--quick] [--only NAME]  run every check and test; --quick leaves out the slow ones,
                                --only (repeatable) runs the named steps, --list names them
       [--changed [BASE]]       only the packages that changed since BASE (main), and those that depend on them
       [--noise]                four busy loops beside the steps test, faults, loom and tsan
       [--add-up] [--record]    compare the seconds with the last record; write a record under bench/record
  deep [--minutes N] [--only NAME]
                                run the checks that take long, an hour or N minutes, and write a record;
                                --only (repeatable) runs the named parts, --list names them
  rounds [--rounds N] [--seed S]
                                kill, stall and fault tests of the tape for long, a record of each on stdout
  instructions [--against COMMIT] [--case NAME…] [--most PERCENT] [--json] [--check-noise] [--list]
                                count the instructions of every bench case and command under callgrind; exit code 1
                                if one costs over 3 % (or PERCENT) more than at COMMIT, or all together over 1 %
  seeds [--seeds N] [--from S]  the exchange in a box against the market-data handler, 3000 seeds or N
  checks [--record]             compare the tests, property cases and rounds of each package with xtask/checks.txt;
                                --record writes that file
  pages [--check]               write the generated part of each page of docs/scenarios; --check compares instead
  wheel [--dev] [--manylinux]   build the wheel of the Python module into target/wheels; --manylinux for older systems
                                as well, by zig; --dev as the tests are built
  tidy                          check layers, file sizes, links and the other rules of the house
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let result = match command.as_deref() {
        Some("demo") => demo::run(&rest),
        Some("test") => test::run(&rest),
        Some("deep") => deep::run(&rest),
        Some("rounds") => rounds::run(&rest),
        Some("instructions") => instructions::run(&rest),
        Some("seeds") => seeds::run(&rest),
        Some("checks") => checks::run(&rest),
        Some("tidy") => tidy::run(),
        Some("pages") => pages::run(&rest),
        Some("wheel") => wheel::run(&rest),
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(0)
        }
        Some(name) => Err(XtaskFailure::Usage(format!("no command `{name}`\n\n{USAGE}"))),
        None => Err(XtaskFailure::Usage(USAGE.to_owned())),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(match failure {
                XtaskFailure::Usage(_) => 2,
                XtaskFailure::Other(_) => 1,
            })
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum XtaskFailure {
    /// The command line was wrong: exit code 2.
    Usage(String),
    /// Anything else: exit code 1.
    Other(String),
}

impl std::fmt::Display for XtaskFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            XtaskFailure::Usage(text) | XtaskFailure::Other(text) => f.write_str(text.trim_end()),
        }
    }
}

impl From<String> for XtaskFailure {
    fn from(text: String) -> Self {
        XtaskFailure::Other(text)
    }
}
