//! Runs a day and prints the rate: `cargo run --release -p unitape-sim --example day -- 1 1000000`

use std::error::Error;
use std::time::Instant;

use unitape_sim::{Sim, SimConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seed = args.next().map_or(Ok(1), |text| text.parse())?;
    let events = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let started = Instant::now();
    let mut sim = Sim::new(SimConfig { seed, events, ..SimConfig::default() })?;
    let mut steps = 0u64;
    while sim.step().is_some() {
        steps += 1;
    }
    let plain_s = started.elapsed().as_secs_f64();
    let events = sim.events() as f64;
    eprintln!("{events} events in {steps} steps, {:.2} M/s", events / plain_s / 1e6);
    eprintln!("{:?}", sim.totals().by_kind);
    let started = Instant::now();
    let mut sim = Sim::new(sim.config().clone())?;
    let mut arena = Vec::new();
    while sim.step_frames(&mut arena) {
        if arena.len() > 1 << 16 {
            arena.clear();
        }
    }
    eprintln!("as frames {:.2} M/s", sim.events() as f64 / started.elapsed().as_secs_f64() / 1e6);
    Ok(())
}
