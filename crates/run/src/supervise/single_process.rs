//! All feeds of a configuration in this process, straight onto the tape.

use super::event::{RunControl, RunEvent, report_hot_notice};
use super::report::RunReport;
use super::watch::{RunStatsReporter, report_source_notes};
use super::{reload, segment_processes};
use crate::Error;
use crate::config::RunConfig;
use crate::layered::OriginTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use unitape_feed::{InstrumentMaster, RunFeed, RunOptions, run as run_feeds};
use unitape_model::Calendar;

/// A configuration that is ready to run.
#[derive(Debug)]
pub struct PreparedRun {
    /// The configuration.
    pub config: RunConfig,
    /// Its feeds, in order.
    pub feeds: Vec<RunFeed>,
    /// Its reference data.
    pub reference: Option<Arc<InstrumentMaster>>,
    /// Its calendar.
    pub calendar: Option<Arc<Calendar>>,
}

impl PreparedRun {
    /// Reads the calendar, the mappings and the reference data that the configuration names. `note` receives remarks
    /// for people on the reference data and the clock.
    ///
    /// # Errors
    /// Fails if one of them cannot be used.
    pub fn new(config: RunConfig, origins: &OriginTable, note: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let calendar = config.calendar(origins)?;
        let reference = config.reference(origins, note)?;
        let feeds = config.feeds(origins, reference.as_ref())?;
        if config.run.clock.is_some() && !config.is_live() {
            note("run.clock: all feeds are files, and there are no ticks beside these");
        }
        Ok(Self { config, feeds, reference, calendar })
    }
}

/// Runs the feeds until they have ended or the run is stopped.
///
/// # Errors
/// Fails if the tape or an input cannot be used. A failed feed is not an error here, see [`RunReport::result`].
pub fn run(prepared: PreparedRun, control: RunControl<'_>) -> Result<RunReport, Error> {
    let PreparedRun { config, feeds, reference, calendar: _ } = prepared;
    let tape = &config.tape.dir;
    if control.reports_changes {
        segment_processes::wait_for_dying(tape, &control.stop);
    }
    let mappings_in_use = reload::MappingInUse::from_feeds(&config, &feeds);
    let mut options = RunOptions::new(feeds);
    options.workers = match config.run.workers {
        0 => crate::cores(),
        n => n.into(),
    };
    options.tape = config.tape.options();
    options.wait = config.run.wait.0;
    options.lead = config.lead();
    options.scan = config.run.scan.0;
    options.idle = config.run.idle.0;
    options.lag_bytes_max = config.run.lag_bytes;
    options.journal_file_bytes = config.run.journal_file_bytes;
    options.spin = config.run.spin;
    options.stop = control.stop;
    options.stop_signal = control.stop_signal;
    let (stats, fresh) = (options.stats.clone(), options.reload.clone());
    report_hot_notice(tape, control.events);
    (control.events)(RunEvent::Begun { stats: &stats });
    let started_at = Instant::now();
    let is_finished = AtomicBool::new(false);
    let watch = RunStatsReporter::new(&stats, tape, config.run.stats.0, control.events)
        .with_changes(control.reports_changes);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| watch.report_until(&is_finished));
        let mappings = reload::MappingWatcher {
            config: &config,
            reference: reference.as_ref(),
            fresh: &fresh,
            asked: &control.reload,
            events: control.events,
        };
        let is_finished = &is_finished;
        let mappings = scope.spawn(move || mappings.watch_until(mappings_in_use, is_finished));
        let outcome = run_feeds(tape, options);
        // Release: pairs with the Acquire in both threads; they end.
        is_finished.store(true, Ordering::Release);
        mappings.thread().unpark();
        stats.run_end.notify();
        stats.placed.notify();
        outcome
    });
    let outcome = outcome.map_err(|e| Error::Run(Box::new(e)))?;
    let elapsed_s = started_at.elapsed().as_secs_f64();
    report_source_notes(&stats, control.events);
    Ok(RunReport::new(outcome, &stats, elapsed_s))
}
