//! Peers under the cases of `unitape bench`, in one run with ours, repeat by repeat in turn.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml -- [--quick] [fix] [farm] > bench/record/DATE-peers.jsonl
//! cargo run --release --manifest-path bench/Cargo.toml -- [--quick] tape [--only unitape,aeron] [--repeats N]
//!     [--dir DIR] > bench/record/DATE-messaging.jsonl
//! ```
//!
//! It prints the same objects as `unitape bench --json`. A peer whose records differ from the slow twin's ends the
//! run with an error, so every figure is one for the same work. Of the messaging peers (`tape`, `tape/rtt`,
//! `tape/one-way`) those that are heavy to build are built when they are asked for, and left out with the reason where
//! that cannot be done.

mod farm;
mod fix;
mod messaging;
#[path = "../../../crates/unitape/src/commands/bench/passes.rs"]
mod passes;
#[path = "../../../crates/unitape/src/commands/bench/record.rs"]
#[allow(dead_code, reason = "not all of what the house measures is measured here")]
mod record;
#[allow(dead_code, reason = "the model of a farm, which stands in our own records alone")]
#[path = "../../../crates/unitape/src/commands/bench/scaling.rs"]
mod scaling;
#[path = "../../../crates/unitape/src/commands/bench/typed.rs"]
mod typed;

use messaging::Asked;
use unitape_bench_side::Case;

const NAMES: [&str; 5] = ["fix", "farm", "tape", "tape/rtt", "tape/one-way"];

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, subject, rest @ ..] = &arguments[..]
        && word == "side"
    {
        return messaging::links::side(subject, rest);
    }
    let (names, mut asked) = parse(arguments)?;
    let wants = |name: &str| names.iter().any(|n| n == name);
    let mut records = Vec::new();
    if names.is_empty() || wants("fix") {
        records.extend(fix::run(asked.quick)?);
    }
    if names.is_empty() || wants("farm") {
        records.extend(farm::run(asked.quick)?);
    }
    records.iter().try_for_each(print)?;
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
    if asked.repeats == 0 {
        asked.repeats = if asked.quick { 1 } else { 5 };
    }
    Ok((names, asked))
}

fn print<T: serde::Serialize>(record: &T) -> Result<(), String> {
    println!("{}", serde_json::to_string(record).map_err(|e| e.to_string())?);
    Ok(())
}
