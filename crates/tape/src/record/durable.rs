//! Which data survives power loss: the words that report it, and waiting for it.
//!
//! ```text
//!  committed ── survives the death of any process ──▶ the header word is stored; a reader sees it
//!  durable ──── survives power loss ────────────────▶ DIR/durable names a position after it
//!
//!  waiter ──ask: word 3──▶ recorder ── flush files ─▶ flush DIR/durable ─▶ word 2 ──▶ all waiters
//! ```
//!
//! Any process asks by raising one shared word and waits on another, so that one flush serves all who wait.
//! `docs/formats-tape.md` explains what a failed flush means.

use std::path::Path;
use std::time::{Duration, Instant};

use unitape_model::Position;
use unitape_ring::{WaitStrategy, Waiter};

use crate::disk::durable::load_durable;
use crate::disk::end::find_end;
use crate::disk::failure::DurabilityFailure;
use crate::disk::layout::TapePaths;
use crate::disk::lock::holder;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::error::{Error, Result};

/// The durable position of a tape, as any process may ask for it and wait for it.
#[derive(Debug)]
pub struct DurabilityHandle {
    segment_locator: SegmentLocator,
    state_page: Option<StatePage>,
}

impl DurabilityHandle {
    /// Opens the handle of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if `dir` is no tape or has a foreign version.
    pub fn open(dir: &Path) -> Result<Self> {
        let segment_locator = SegmentLocator::open(dir)?;
        Ok(Self { segment_locator, state_page: None })
    }

    /// Returns the durable position: everything before it survives power loss. Reads shared memory while the tape is in
    /// use.
    ///
    /// # Errors
    /// Fails if the file of the durable position is damaged.
    pub fn position(&mut self) -> Result<Position> {
        // A page that may not be written cannot be mapped; the file can be read.
        let published = self.state_page().ok().flatten().map_or(Position(0), StatePage::durable);
        // Zero: no recorder has reported a position yet, or the tape is not in use.
        Ok(if published > Position(0) {
            published
        } else {
            load_durable(&self.segment_locator.paths)?.position
        })
    }

    /// Returns why the durable position does not advance, if a flush failed and the recorder has not made it good
    /// since.
    pub fn failure(&mut self) -> Result<Option<DurabilityFailure>> {
        let paths = self.segment_locator.paths.clone();
        Ok(self.state_page()?.and_then(|state| state.failure(&paths)))
    }

    /// Flushes that have failed since the tape was opened for writing after a clean close.
    pub fn failures(&mut self) -> Result<u64> {
        Ok(self.state_page()?.map_or(0, StatePage::failures))
    }

    /// Asks for everything before `position` to be made durable, and waits for it.
    ///
    /// `known` is a position up to which the caller knows the tape to reach.
    ///
    /// # Errors
    /// Fails with [`Error::NotDurable`] after `timeout`, with [`Error::DurabilityFailed`], [`Error::BeyondEnd`] or
    /// [`Error::NoRecorder`], and at damage on the way to the tape's end.
    pub fn wait(&mut self, position: Position, mut known_end: Position, timeout: Duration) -> Result<()> {
        let since = Instant::now();
        loop {
            if self.position()? >= position {
                return Ok(());
            }
            let paths = self.segment_locator.paths.clone();
            known_end = known_end.max(self.state_page()?.map_or(Position(0), |state| state.recorded_now()));
            if position > known_end {
                known_end = find_end(&self.segment_locator, known_end.max(load_durable(&paths)?.position))?;
                if position > known_end {
                    return Err(Error::BeyondEnd { position, end: known_end });
                }
            }
            let Some(state) = self.state_page()? else {
                return Err(Error::NoRecorder { path: paths.tape_dir, durable: self.position()? });
            };
            let time_left = timeout.saturating_sub(since.elapsed());
            if wait_on(&paths, state, position, time_left, &|| {})? {
                return Ok(());
            }
            self.state_page = None;
        }
    }

    fn state_page(&mut self) -> Result<Option<&StatePage>> {
        if self.state_page.as_ref().is_some_and(StatePage::is_retired) {
            self.state_page = None;
        }
        if self.state_page.is_none() {
            self.state_page =
                StatePage::attach_writer(&self.segment_locator.paths)?.filter(|state| !state.is_retired());
        }
        Ok(self.state_page.as_ref())
    }
}

/// Asks and waits on one page; false when the page is no longer used.
pub(crate) fn wait_on(
    paths: &TapePaths,
    state: &StatePage,
    position: Position,
    timeout: Duration,
    nudge: &dyn Fn(),
) -> Result<bool> {
    let since = Instant::now();
    let mut waiter = Waiter::new(WaitStrategy::Balanced);
    let (mut look_next, mut absent) = (LOOK, 0);
    if state.durable() < position {
        state.request_durable(position);
        nudge();
    }
    loop {
        if state.durable() >= position {
            return Ok(true);
        }
        if let Some(failure) = state.failure(paths).filter(|f| f.lasting) {
            return Err(failure.error(state.durable()));
        }
        waiter.wait();
        let waited = since.elapsed();
        if waited >= timeout {
            let durable = state.durable();
            return Err(match state.failure(paths) {
                Some(failure) => failure.error(durable),
                None => Error::NotDurable { wanted: position, durable, asked: state.can_request() },
            });
        }
        if waited >= look_next {
            look_next = waited + LOOK;
            // Requests again: a process that cleans up after a death forgets earlier requests.
            state.request_durable(position);
            nudge();
            if state.is_retired() {
                return Ok(false);
            }
            // A recorder that dies is often restarted at once.
            absent = if holder(&paths.recorder_lock())?.is_some() { 0 } else { absent + 1 };
            if absent >= 3 {
                let durable = state.durable();
                return Err(Error::NoRecorder { path: paths.tape_dir.clone(), durable });
            }
        }
    }
}

/// Time between two looks whether a process can still flush.
const LOOK: Duration = Duration::from_millis(20);

/// Explains why the durable position of the tape in `dir` does not advance. Returns `None` if it advances, or if no
/// process has the tape open. The call is cheap.
pub fn durability_warning(dir: &Path) -> Option<String> {
    let paths = TapePaths { tape_dir: dir.into() };
    let state = StatePage::attach_reader(&paths).ok().flatten()?;
    Some(state.failure(&paths)?.error(state.durable()).to_string())
}
