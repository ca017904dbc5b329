//! `bench sim`: a simulated day. Its speed shows that it does not limit the other figures.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes};
use unitape_sim::day::{DayEvent, Sim, SimConfig};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let config = SimConfig { events: context.pick(20_000, 5_000_000), ..SimConfig::default() };
    for case in ["events", "frames"] {
        if !context.wants("sim", case) {
            continue;
        }
        let mut repeats = RepeatTimes::default();
        let mut expected = None;
        // The first round warms up.
        for round in 0..=context.repeats(5) {
            let mut throw_away = RepeatTimes::default();
            let times = if round == 0 { &mut throw_away } else { &mut repeats };
            let mut sim = Sim::new(config.clone())?;
            let (mut arena, mut bytes) = (Vec::with_capacity(1 << 20), 0u64);
            times.time(|| match case {
                "events" => while sim.step().is_some() {},
                _ => {
                    while sim.step_frames(&mut arena) {
                        if arena.len() > 1 << 19 {
                            bytes += arena.len() as u64;
                            arena.clear();
                        }
                    }
                    bytes += arena.len() as u64;
                }
            });
            // Labels, positions and counts depend on every event, so a different event shows.
            let mut truth = Vec::new();
            sim.write_truth(&mut truth)?;
            let mut hash = HexSha256::default();
            hash.add(&truth);
            let outcome = (sim.events(), bytes, hash.hex());
            if *expected.get_or_insert_with(|| outcome.clone()) != outcome {
                return Err(Error::Failed(format!("sim {case}: the days of two runs differ")));
            }
        }
        let (events, bytes, hash) = expected.expect("at least one round ran");
        // Events that are not frames are counted as they lie in memory.
        let bytes = if case == "events" { events * size_of::<DayEvent>() as u64 } else { bytes };
        let method = format!(
            "a day of {events} events on 3 venues with 50 instruments, 3 scenes and 3 near misses of each scenario, \
             {}; its truth hashed after each run and equal in all",
            if case == "events" { "events lent and not looked at" } else { "each made a frame in memory" }
        );
        let record = repeats.record("sim", case, events, bytes, method);
        out(BenchRecord { output_sha256: Some(hash), ..record })?;
    }
    Ok(())
}
