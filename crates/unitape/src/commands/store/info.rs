//! `unitape store info`: what a store holds.

use super::KeyArgs;
use crate::commands::tape::utc;
use crate::output::{self, CommandOutcome, bytes, grouped, note, say, say_lines};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use unitape_model::{RowSchema, UnixNanos};
use unitape_store::{BlockSummary, Error, Store, StoredTotals, TapePart};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct InfoArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Print one line per block
    #[arg(long, group = "list")]
    blocks: bool,
    /// Print the names of instruments, with their rows and their first and last time
    #[arg(long, group = "list")]
    symbols: bool,
    /// Print the columns of this schema, with type and class
    #[arg(long, group = "list", value_name = "SCHEMA")]
    schema: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &InfoArgs) -> output::Result {
    let store = Store::open(&args.dir, &args.key.of_store(&args.dir)?)?;
    match &args.schema {
        Some(name) => print_columns(name, args.json),
        None if args.blocks => print_blocks(&store, args.json),
        None if args.symbols => print_symbols(&store, args.json),
        None => print_info(&store, args.json),
    }
}

/// Prints the columns of the rows of a schema.
fn print_columns(name: &str, json: bool) -> output::Result {
    let refuse = || output::refuse_name(name, "schema", "schemas", RowSchema::ALL.map(RowSchema::name));
    let schema = RowSchema::from_name(name).ok_or_else(refuse)?;
    for column in schema.all_columns() {
        let (name, form, class) = (column.name, column.form.name(), column.class.name());
        if json {
            output::print_json(&serde_json::json!({ "column": name, "type": form, "class": class }))?;
        } else {
            say!("{name} {form} {class}");
        }
    }
    Ok(CommandOutcome::Clean)
}

/// Prints each instrument of the store, by name, with its rows and the span of their times.
fn print_symbols(store: &Store, json: bool) -> output::Result {
    let mut symbols: BTreeMap<String, (u64, UnixNanos, UnixNanos)> = BTreeMap::new();
    let problems = store.for_each_block(&mut |block| {
        let Some(symbol) = block.symbol else { return };
        let span = (0, UnixNanos(i64::MAX), UnixNanos(i64::MIN));
        let (rows, first, last) = symbols.entry(symbol.to_owned()).or_insert(span);
        (*rows, *first, *last) =
            (*rows + u64::from(block.rows), block.ts_min.min(*first), block.ts_max.max(*last));
    });
    for (symbol, (rows, first, last)) in symbols {
        if json {
            output::print_json(&serde_json::json!({
                "symbol": symbol, "rows": rows, "ts_min": first.0, "ts_max": last.0,
            }))?;
        } else {
            say!("{symbol} {} events, {} to {}", grouped(rows), utc(first.0), utc(last.0));
        }
    }
    problems.iter().for_each(|p| note!("unitape: {p}"));
    Ok(if problems.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

/// Prints a line for each block.
fn print_blocks(store: &Store, json: bool) -> output::Result {
    let mut out = std::io::BufWriter::new(output::unbuffered());
    let mut result = Ok(());
    let problems = store.for_each_block(&mut |block| {
        let BlockSummary { day, schema, symbol, generation, block, rows, file, offset, bytes, .. } = block;
        let line = if json {
            serde_json::json!({
                "date": day.to_string(), "schema": schema.name(), "symbol": symbol, "generation": generation,
                "block": block, "rows": rows, "file": file, "offset": offset, "bytes": bytes,
            })
            .to_string()
        } else {
            let symbol = symbol.unwrap_or("-");
            format!("{day} {schema} {symbol} {generation} {block} {rows} {file} {offset} {bytes}")
        };
        if result.is_ok() {
            result = writeln!(out, "{line}");
        }
    });
    result.and_then(|()| out.flush())?;
    problems.iter().for_each(|p| note!("unitape: {p}"));
    Ok(if problems.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

fn print_info(store: &Store, json: bool) -> output::Result {
    let info = store.info();
    let problems: Vec<String> = store.missing_files().iter().map(Error::to_string).collect();
    let totals = info.all();
    if json {
        let amount = |a: &StoredTotals| {
            serde_json::json!({
                "rows": a.rows, "blocks": a.blocks, "bytes": a.bytes, "bytes_per_row": per_row(a),
                "tape_bytes": a.raw_bytes, "ts_min": a.ts_min.map(|ts| ts.0), "ts_max": a.ts_max.map(|ts| ts.0),
            })
        };
        let days: Vec<_> = info
            .days
            .iter()
            .map(|(day, d)| {
                let mut value = amount(&d.all);
                let schemas: serde_json::Map<_, _> =
                    d.schemas.iter().map(|(s, a)| (s.name().to_owned(), amount(a))).collect();
                value["date"] = day.to_string().into();
                value["generations"] = d.generations.clone().into();
                value["schemas"] = schemas.into();
                value
            })
            .collect();
        let names: serde_json::Map<_, _> = info
            .names
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(d, n)| (d.name().to_owned(), (*n).into()))
            .collect();
        let tapes: Vec<_> = info
            .tapes
            .iter()
            .map(|(tape, sealed)| serde_json::json!({"tape": tape.to_string(), "sealed": sealed.0}))
            .collect();
        let generations: Vec<_> = info
            .generations
            .iter()
            .map(|of| {
                serde_json::json!({
                    "generation": of.generation, "committed": of.committed.0, "rows": of.rows,
                })
            })
            .collect();
        output::print_json(&serde_json::json!({
            "format": unitape_store::FORMAT_VERSION, "generation": info.generation,
            "generations": generations,
            "public_key": info.public_key.to_string(), "rows": totals.rows,
            "blocks": totals.blocks, "bytes": totals.bytes, "bytes_per_row": per_row(&totals),
            "dictionary_bytes": info.dictionary_bytes, "names": names, "tapes": tapes, "days": days,
            "missing": info.missing.iter().map(part_json).collect::<Vec<_>>(),
            "accepted_unverified": info.unverified.iter().map(part_json).collect::<Vec<_>>(),
            "problems": problems,
        }))?;
    } else {
        say!("store   format {}, generation {}", unitape_store::FORMAT_VERSION, info.generation);
        if let Some(last) = info.generations.last() {
            say!("sealed  {}", utc(last.committed.0));
        }
        say!("signed  with {}", info.public_key);
        for (tape, sealed) in &info.tapes {
            say!("tape    {tape}, sealed to position {sealed}");
        }
        for TapePart { tape, from, to } in &info.missing {
            say!("missing positions {from} to {to} of tape {tape}");
        }
        for TapePart { tape, from, to } in &info.unverified {
            say!("never verified: positions {from} to {to} of tape {tape}, accepted by a repair");
        }
        for (dict, n) in info.names.iter().filter(|(_, n)| *n > 0) {
            say!("names   {} {}", grouped((*n).into()), dict.name());
        }
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["day", "schema", "events", "blocks", "bytes", "per event", "first", "last"]);
        let row = |day: String, schema: &str, a: &StoredTotals| {
            // Events without a time have no first one.
            let time = |ts: Option<UnixNanos>| ts.map_or("-".to_owned(), |ts| utc(ts.0)[11..].to_owned());
            let (first, last) = (time(a.ts_min), time(a.ts_max));
            let sizes = [grouped(a.rows), grouped(a.blocks), bytes(a.bytes), per_row(a).to_string()];
            [day, schema.to_owned()].into_iter().chain(sizes).chain([first, last])
        };
        for (day, d) in &info.days {
            for (schema, a) in &d.schemas {
                table.add_row(row(day.to_string(), schema.name(), a));
            }
        }
        say_lines(&mut output::unbuffered(), &table)?;
        say!("{} events, {} in all", grouped(totals.rows), bytes(totals.bytes + info.dictionary_bytes));
        problems.iter().for_each(|p| note!("unitape: {p}"));
    }
    Ok(if problems.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

fn part_json(part: &TapePart) -> serde_json::Value {
    serde_json::json!({ "tape": part.tape.to_string(), "from": part.from.0, "to": part.to.0 })
}

/// Computes the bytes of a row, with two decimals.
fn per_row(a: &StoredTotals) -> f64 {
    if a.rows == 0 { 0.0 } else { (a.bytes as f64 / a.rows as f64 * 100.0).round() / 100.0 }
}
