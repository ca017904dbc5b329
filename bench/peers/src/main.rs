//! Peers under the cases of `unitape bench`, in one process with ours, repeat by repeat in turn.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml -- [--quick] [fix] [farm] > bench/record/DATE-peers.jsonl
//! ```
//!
//! It prints the same objects as `unitape bench --json`. A peer whose records differ from the slow twin's ends the
//! run with an error, so every figure is one for the same work.

mod farm;
mod fix;
#[path = "../../../crates/unitape/src/commands/bench/passes.rs"]
mod passes;
#[path = "../../../crates/unitape/src/commands/bench/record.rs"]
#[allow(dead_code, reason = "no peer measures latencies yet")]
mod record;
#[path = "../../../crates/unitape/src/commands/bench/typed.rs"]
mod typed;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|a| a == "--quick");
    let names: Vec<&str> = arguments.iter().map(String::as_str).filter(|a| *a != "--quick").collect();
    if let Some(unknown) = names.iter().find(|n| !["fix", "farm"].contains(n)) {
        return Err(format!("no bench is called {unknown}; there are: fix, farm"));
    }
    let wants = |name| names.is_empty() || names.contains(&name);
    let mut records = Vec::new();
    if wants("fix") {
        records.extend(fix::run(quick)?);
    }
    if wants("farm") {
        records.extend(farm::run(quick)?);
    }
    for record in records {
        println!("{}", serde_json::to_string(&record).map_err(|e| e.to_string())?);
    }
    Ok(())
}
