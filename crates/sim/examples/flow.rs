//! Writes a flow to standard output and its truth to a file, and tells the rate:
//! `cargo run --release -p unitape-sim --example flow -- 1 1000000 truth.jsonl > orders.fix`

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::time::Instant;

use unitape_sim::{Flow, FlowConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seed = args.next().map_or(Ok(1), |text| text.parse())?;
    let messages = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let started = Instant::now();
    let mut flow = Flow::new(FlowConfig { seed, messages, ..FlowConfig::default() })?;
    let truth = flow.write_fix(&mut io::stdout().lock())?;
    let elapsed_s = started.elapsed().as_secs_f64();
    if let Some(path) = args.next() {
        truth.write_jsonl(&mut BufWriter::new(File::create(path)?))?;
    }
    let (messages, bytes) = (truth.flow.messages as f64, truth.flow.bytes as f64);
    eprintln!("{messages} messages, {:.1} B each, {:.2} M/s", bytes / messages, messages / elapsed_s / 1e6);
    eprintln!("{:?}", truth.flow.by_kind);
    Ok(())
}
