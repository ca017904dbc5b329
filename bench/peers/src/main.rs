//! Peers under the cases of `unitape bench`, in one run with ours, repeat by repeat in turn.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml -- [--quick] [fix] [fast] [farm] [swift]
//!     [--only unitape,quickfix] [--repeats N] > bench/record/DATE-peers.jsonl
//! cargo run --release --manifest-path bench/Cargo.toml -- [--quick] tape [--only unitape,aeron] [--repeats N]
//!     [--dir DIR] > bench/record/DATE-messaging.jsonl
//! ```
//!
//! It prints the same objects as `unitape bench --json`. A peer whose records differ from the slow twin's ends the
//! run with an error, so every figure is one for the same work. Peers that are not of Rust, or heavy to build, are
//! programs of their own: they are built when they are asked for, and left out with the reason where that cannot be
//! done.

mod apart;
mod farm;
mod fast;
mod fix;
mod messaging;
mod programs;
mod swift;

use std::collections::BTreeSet;
use std::path::PathBuf;
use unitape_bench::record::BenchRecord;
use unitape_bench_side::Case;

const NAMES: [&str; 7] = ["fix", "fast", "farm", "swift", "tape", "tape/rtt", "tape/one-way"];

/// A bench whose records are printed when all of them are there.
type Bench = fn(&Asked) -> Result<Vec<BenchRecord>, String>;

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The cases of messaging, in order.
    pub cases: Vec<Case>,
    /// Subjects by id; all where there are none.
    pub only: Vec<String>,
    /// Few messages, one repeat.
    pub quick: bool,
    /// Repeats of a case.
    pub repeats: u32,
    /// Where files are put; shared memory unless said otherwise.
    pub dir: Option<PathBuf>,
}

impl Asked {
    /// Whether this subject is to be measured.
    pub fn takes(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == id)
    }

    /// A subject, unless it is not asked for or cannot be had here, which is printed.
    pub fn had<T>(&self, id: &str, subject: impl FnOnce() -> Result<T, String>) -> Option<T> {
        if !self.takes(id) {
            return None;
        }
        subject().map_err(|reason| eprintln!("skipped: {id}: {reason}")).ok()
    }
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, subject, rest @ ..] = &arguments[..]
        && word == "side"
    {
        return messaging::links::side(subject, rest);
    }
    let (names, mut asked) = parse(arguments)?;
    let wants = |name: &str| names.iter().any(|n| n == name);
    let benches: [(&str, Bench); 4] =
        [("fix", fix::run), ("fast", fast::run), ("farm", farm::run), ("swift", swift::run)];
    for (name, run) in benches {
        if names.is_empty() || wants(name) {
            run(&asked)?.iter().try_for_each(print)?;
        }
    }
    let cases = [Case::RoundTrip, Case::OneWay];
    asked.cases =
        cases.into_iter().filter(|c| wants("tape") || wants(&format!("tape/{}", c.name()))).collect();
    if asked.cases.is_empty() { Ok(()) } else { messaging::run(&asked, &mut |line| print(line)) }
}

fn parse(arguments: Vec<String>) -> Result<(Vec<String>, Asked), String> {
    let mut names = Vec::new();
    let mut asked = Asked { cases: Vec::new(), only: Vec::new(), quick: false, repeats: 0, dir: None };
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{argument} wants a value"));
        match argument.as_str() {
            "--quick" => asked.quick = true,
            "--only" => asked.only = value()?.split(',').map(str::to_owned).collect(),
            "--repeats" => asked.repeats = value()?.parse().map_err(|e| format!("--repeats: {e}"))?,
            "--dir" => asked.dir = Some(value()?.into()),
            name if NAMES.contains(&name) => names.push(argument),
            other => return Err(format!("no bench is called {other}; there are: {}", NAMES.join(", "))),
        }
    }
    let ids: BTreeSet<&str> = fix::IDS
        .into_iter()
        .chain(fast::IDS)
        .chain(farm::IDS)
        .chain(swift::IDS)
        .chain(messaging::ids())
        .collect();
    if let Some(id) = asked.only.iter().find(|only| !ids.contains(only.as_str())) {
        let all: Vec<&str> = ids.into_iter().collect();
        return Err(format!("no subject is called {id}; there are: {}", all.join(", ")));
    }
    if asked.repeats == 0 {
        asked.repeats = if asked.quick { 1 } else { 5 };
    }
    Ok((names, asked))
}

fn print<T: serde::Serialize>(record: &T) -> Result<(), String> {
    println!("{}", serde_json::to_string(record).map_err(|e| e.to_string())?);
    Ok(())
}
