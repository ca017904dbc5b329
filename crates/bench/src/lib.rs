//! The measurements of unitape itself: the figures of the docs.
//!
//! Every measurement checks itself: the output must equal the slow path's output, or the run ends with an error.
//! `docs/bench.md` describes the method. Nothing is printed here; the caller of [`run`] gets each record.

mod answers;
mod book;
mod context;
mod csv;
mod error;
mod farm;
mod fast;
mod fast_handler;
pub mod fast_passes;
mod fix;
mod fixed;
mod iso20022;
mod itch;
pub mod passes;
pub mod record;
pub mod scaling;
mod sim;
mod store;
mod swift;
pub mod swift_passes;
mod tape;
pub mod typed;
mod watch;

pub use context::{BenchOptions, CaseSelection};
pub use error::Error;
pub use tape::{TapeTuning, peer};

use context::BenchContext;
use record::BenchRecord;

/// The benches, and the cases of each.
const BENCHES: [(&str, &[&str], BenchFunction); 15] = [
    ("tape", &tape::CASES, tape::run),
    ("farm", &["empty"], farm::run),
    ("fix", &["orders", "jse", "orders-to-tape"], fix::run),
    ("fast", &fast::CASES, fast::run),
    ("fixed", &["taq", "taq-events", "taq-to-tape"], fixed::run),
    ("csv", &["taq", "taq-events"], csv::run),
    ("swift", &["typed", "to-tape"], swift::run),
    ("itch", &["events", "with-orders"], itch::run),
    ("iso20022", &["pacs008"], iso20022::run),
    ("store", &["ingest", "scan", "size"], store::run),
    ("watch", &["otr", "wash", "layering", "three", "all", "alert-latency", "snapshot"], watch::run),
    ("cases", &["alert-to-case"], answers::run_cases),
    ("serve", &["local", "get"], answers::run_serve),
    ("book", &["flow", "deep"], book::run),
    ("sim", &["events", "frames"], sim::run),
];

type BenchFunction = fn(&BenchContext, &mut dyn FnMut(BenchRecord) -> Result<(), Error>) -> Result<(), Error>;

/// Runs the selected benches and passes each record to `out`.
///
/// # Errors
/// Fails if a measurement cannot be made or gives a wrong result, or if `out` fails.
pub fn run(
    options: BenchOptions,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let context = BenchContext::new(options)?;
    for (bench, _, measure) in BENCHES {
        if context.wants_any_of(bench) {
            measure(&context, out)?;
        }
    }
    Ok(())
}

impl CaseSelection {
    /// Parses the name of a bench, or of a case as `bench/case`.
    ///
    /// # Errors
    /// Fails if there is no bench or case with this name.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let (bench, case) = name.split_once('/').map_or((name, None), |(b, c)| (b, Some(c)));
        let Some((_, cases, _)) = BENCHES.iter().find(|(n, ..)| *n == bench) else {
            let names: Vec<&str> = BENCHES.iter().map(|(n, ..)| *n).collect();
            return Err(Error::Usage(format!("no bench is called {bench}; there are: {}", names.join(", "))));
        };
        match case {
            Some(case) if !cases.contains(&case) => {
                Err(Error::Usage(format!("{bench} has no case {case}; there are: {}", cases.join(", "))))
            }
            case => Ok(Self { bench: bench.to_owned(), case: case.map(str::to_owned) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a mistyped name measures nothing and exits 0, because a script would not notice.
    #[test]
    fn unknown_names_are_usage_errors_that_list_what_there_is() {
        for (name, says) in [
            (
                "tapes",
                "tape, farm, fix, fast, fixed, csv, swift, itch, iso20022, store, watch, cases, serve, book, sim",
            ),
            ("fix/order", "orders, jse, orders-to-tape"),
        ] {
            match CaseSelection::parse(name) {
                Err(Error::Usage(message)) => assert!(message.contains(says), "{message}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(CaseSelection::parse("fix/orders").is_ok() && CaseSelection::parse("tape").is_ok());
    }
}
