//! Repair of a damaged tape: it rebuilds data that other files confirm, and accepts no data silently.
//!
//! ```text
//!  tape.toml ◀── header pages ──▶ header pages       each from the other, ordinals from neighbours
//!  durable   ◀── frames and checksums
//!  .crc      ◀── durable (the open span) │ your word (`accept_unverified`)
//!  segments  ◀── the hot twin            │ your word (`truncate`: what is after the damage goes)
//!  definitions.log ◀── its own records that are sound, frames of the segments
//! ```
//!
//! A repair goes through these in order, and each step sees the tape as the earlier steps would leave it. Without
//! `apply` it changes nothing. Before it replaces a file it keeps the old file in `DIR/repair-N`; see `backup`.
//!
//! It does not guess: a span that does not match its checksum stays unchanged until you decide.

mod backup;
mod cut;
mod identity;
mod indexes;
mod lineage;
mod log;
mod small_files;
mod spans;

use std::path::{Path, PathBuf};

use unitape_model::Position;

use crate::disk::durable::{DurableMark, load_durable};
use crate::disk::layout::{TapeId, TapeManifest, TapePaths};
use crate::disk::lock::{FileLock, boot_id, field, holder};
use crate::disk::state_page::tidy;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::trust::durable_rebuild;
use crate::trust::survey::TapeSurvey;

pub use backup::accepted_ranges;

use backup::{FileAttributes, RepairBackup};

/// The actions that a repair may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Change the tape; otherwise only report the changes.
    pub apply: bool,
    /// Accept data that no checksum covers, and give them checksums. `repairs.log` lists the accepted data, and
    /// `verify` reports them.
    pub accept_unverified: bool,
    /// Cut the tape at the first damage that cannot be mended: everything after it is removed.
    pub truncates: bool,
    /// Damaged files in the tape's directory that are not the tape's own. A repair moves them away, except for files
    /// that must stay.
    pub foreign_damage: Vec<ForeignDamage>,
}

/// A damaged file beside a tape, which another part of unitape writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDamage {
    /// The file.
    pub file_path: PathBuf,
    /// Where in it, bytes.
    pub offset: u64,
    /// The damage, in words.
    pub reason: String,
    /// Nothing is lost with it.
    pub is_harmless: bool,
    /// The file remains in its place, because the rest of it is sound.
    pub stays: bool,
    /// The consequence of its loss.
    pub action: String,
}

/// The remedy for a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairRemedy {
    /// A repair mends the fault from data that confirm it.
    Mend,
    /// A repair needs [`RepairOptions::accept_unverified`].
    Accept,
    /// A repair needs [`RepairOptions::truncates`].
    Truncate,
    /// A repair needs one of the two options.
    AcceptOrTruncate,
    /// Nothing can be done; the data are lost, or stay unchanged.
    Nothing,
}

/// A fault of the tape, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairFinding {
    /// In which file.
    pub file_path: PathBuf,
    /// At which byte of it.
    pub offset: u64,
    /// The positions of the tape that it affects, if any.
    pub position_range: Option<(Position, Position)>,
    /// The problem, in words.
    pub problem: String,
    /// The remedy.
    pub remedy: RepairRemedy,
    /// The remedy in words.
    pub action: String,
    /// The fault is mended, or would be with [`RepairOptions::apply`].
    pub is_mended: bool,
}

/// Where a tape was cut, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairCut {
    /// The tape ends here.
    pub position: Position,
    /// The end of the tape before the cut.
    pub end_before_cut: Position,
    /// Events that can be read after the cut, and are lost.
    pub events: u64,
    /// The cut is made, or would be with [`RepairOptions::apply`]; otherwise it needs [`RepairOptions::truncates`].
    pub is_applied: bool,
}

/// The findings and actions of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The tape was changed where something could be mended.
    pub applied: bool,
    /// Where the files are kept that were replaced.
    pub backup_dir: Option<PathBuf>,
    /// The problems, each with its place.
    pub findings: Vec<RepairFinding>,
    /// The cut of the tape, or the loss that a cut would cause.
    pub cut: Option<RepairCut>,
}

impl RepairReport {
    /// Returns whether some data stay damaged or are lost for good.
    pub fn is_flawed(&self) -> bool {
        self.findings.iter().any(|f| !f.is_mended || f.remedy == RepairRemedy::Nothing)
    }

    /// Returns whether the repair found nothing wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks the tape in `dir`, which no process has open for writing, and repairs what it can.
///
/// # Errors
/// Fails if a writer or a recorder has the tape, if `dir` is no tape or has a foreign version, or if the system
/// refuses.
pub fn repair(dir: &Path, options: &RepairOptions) -> Result<RepairReport> {
    let paths = TapePaths { tape_dir: dir.into() };
    if !paths.segments().is_dir() {
        let reason = "there is no directory `segments` in it";
        return Err(Error::NotATape { path: dir.into(), reason });
    }
    for lock in [paths.writer_lock(), paths.recorder_lock()] {
        if let Some(holder) = holder(&lock)? {
            return Err(Error::Locked { path: lock, holder });
        }
    }
    if !options.apply {
        let text = std::fs::read_to_string(paths.writer_lock()).unwrap_or_default();
        return RepairSession::new(&paths, options, &text).run();
    }
    sys::make_dir(&paths.run()).with_context("make", &paths.run())?;
    let writer = FileLock::acquire(&paths.writer_lock())?;
    let recorder = FileLock::acquire(&paths.recorder_lock())?;
    let report = RepairSession::new(&paths, options, &writer.stale_holder).run();
    // The lock file distinguishes a writer that died from one that closed.
    recorder.remove()?;
    match writer.stale_holder.is_empty() {
        true => tidy(&paths, writer)?,
        false => drop(writer),
    }
    report
}

/// A repair under way.
struct RepairSession<'a> {
    paths: &'a TapePaths,
    options: &'a RepairOptions,
    /// The text of the last writer's lock file.
    lock_text: &'a str,
    /// The last writer closed the tape.
    was_closed: bool,
    /// The machine was restarted since it was written, and it was not closed.
    has_rebooted: bool,
    backup: RepairBackup,
    report: RepairReport,
}

impl<'a> RepairSession<'a> {
    fn new(paths: &'a TapePaths, options: &'a RepairOptions, lock: &'a str) -> Self {
        let was_closed = lock.is_empty();
        Self {
            paths,
            options,
            lock_text: lock,
            was_closed,
            has_rebooted: !was_closed && field(lock, "boot").unwrap_or_default() != boot_id(),
            backup: RepairBackup::new(paths),
            report: RepairReport { applied: options.apply, ..RepairReport::default() },
        }
    }

    fn run(mut self) -> Result<RepairReport> {
        self.leftovers()?;
        let Some(meta) = self.identity()? else { return Ok(self.report) };
        let mut survey = TapeSurvey::scan_segments(self.paths, &meta)?;
        self.headers(&mut survey)?;
        if self.resume_cut(&mut survey)? && !self.options.apply {
            return Ok(self.report);
        }
        let (before, summed) = self.durable_position(&survey)?;
        let mut durable = before;
        let mut wounds = self.check_spans(&survey, &mut durable)?;
        self.holes(&survey, durable.position, summed, &mut wounds)?;
        self.indexes(&survey, durable.position)?;
        self.cut_tape(&mut survey, &mut durable, &wounds)?;
        self.definitions(&survey, &mut durable, &wounds)?;
        self.store_durable(before, durable)?;
        self.make_indexes(&survey)?;
        self.lineage(&meta, self.lock_text)?;
        self.small_files(&meta)?;
        self.report_foreign_damage()?;
        self.backup.finish()?;
        self.report.backup_dir = self.backup.dir().map(Into::into);
        Ok(self.report)
    }

    fn report_foreign_damage(&mut self) -> Result<()> {
        for damage in &self.options.foreign_damage {
            match damage.is_harmless {
                true => self.add_mended(&damage.file_path, damage.offset, &damage.reason, &damage.action),
                false => self.add_unmended(&damage.file_path, damage.offset, &damage.reason, &damage.action),
            }
            if self.options.apply && !damage.stays {
                self.backup.move_away(&damage.file_path)?;
            }
        }
        Ok(())
    }

    /// Keeps a finding in the report.
    fn add_finding(&mut self, finding: RepairFinding) {
        // Adjacent findings are one: a lost `.crc` is of many spans.
        if let Some(last_finding) = self.report.findings.last_mut()
            && let (Some((_, end)), Some((from, to))) = (last_finding.position_range, finding.position_range)
            && end == from
            && (&last_finding.file_path, &last_finding.problem, &last_finding.action)
                == (&finding.file_path, &finding.problem, &finding.action)
        {
            last_finding.position_range = last_finding.position_range.map(|(first, _)| (first, to));
            return;
        }
        // A bound: a thoroughly broken tape is described well enough by the first ones.
        if self.report.findings.len() < FINDINGS_MAX {
            self.report.findings.push(finding);
        }
    }

    /// Adds a finding about a file alone, which is mended.
    fn add_mended(
        &mut self,
        file: &Path,
        offset: u64,
        problem: impl Into<String>,
        action: impl Into<String>,
    ) {
        self.add_finding(RepairFinding {
            file_path: file.into(),
            offset,
            position_range: None,
            problem: problem.into(),
            remedy: RepairRemedy::Mend,
            action: action.into(),
            is_mended: true,
        });
    }

    /// Adds a finding about a file alone, for which nothing can be done.
    fn add_unmended(
        &mut self,
        file: &Path,
        offset: u64,
        reason: impl Into<String>,
        action: impl Into<String>,
    ) {
        let (file, problem, action) = (file.into(), reason.into(), action.into());
        let (remedy, mended) = (RepairRemedy::Nothing, false);
        self.add_finding(RepairFinding {
            file_path: file,
            offset,
            position_range: None,
            problem,
            remedy,
            action,
            is_mended: mended,
        });
    }

    /// Reads the durable position from its file or rebuilds it from the tape. After a rebuild, also returns how far the
    /// tape has checksums.
    fn durable_position(&mut self, survey: &TapeSurvey) -> Result<(DurableMark, Option<Position>)> {
        let path = self.paths.durable();
        let problem = match load_durable(self.paths) {
            Ok(durable) if path.exists() => {
                match durable_rebuild::why_older(survey, &durable, self.was_closed) {
                    None => return Ok((durable, None)),
                    Some(reason) => reason,
                }
            }
            Ok(_) => {
                let segment_locator = crate::disk::segment_locator::SegmentLocator::from_manifest(
                    self.paths.clone(),
                    survey.meta,
                );
                if !crate::trust::unsynced_tail::was_durable(&segment_locator, self.was_closed)? {
                    return Ok((DurableMark::default(), None));
                }
                "the file is missing, it says how far the tape is durable".to_owned()
            }
            Err(Error::Damage { reason: message, .. }) => message,
            // The file is sound, and of another build.
            Err(e) => return Err(e),
        };
        let remade = durable_rebuild::remake(survey, self.was_closed)?;
        let position = remade.durable.position;
        let action = format!("made again by walking the tape: durable to position {position}");
        self.add_mended(&path, 0, problem, action);
        Ok((remade.durable, Some(remade.summed)))
    }

    /// Writes the file `durable` if it differs, as the last step.
    fn store_durable(&mut self, before: DurableMark, durable: DurableMark) -> Result<()> {
        let path = self.paths.durable();
        let is_stored = load_durable(self.paths).is_ok_and(|d| d == durable && path.exists());
        // A tape that was never durable has no such file.
        if !self.options.apply
            || is_stored
            || durable == before && durable.position == Position(0) && !path.exists()
        {
            return Ok(());
        }
        self.backup.replace(&path, &durable.encode(), &FileAttributes::default())
    }
}

/// Findings of one report.
const FINDINGS_MAX: usize = 1000;

/// Compares the two facts that identify a tape; both are in every header page as well.
fn is_same_tape(a: &TapeManifest, id: TapeId, segment_bytes: u64) -> bool {
    a.id == id && a.segment_bytes == segment_bytes
}
