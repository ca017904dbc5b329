//! `tape.toml` and the header pages of the segments: each says what the other does.

use std::os::unix::fs::FileExt;

use unitape_model::Position;

use crate::disk::layout::{
    HEADER_PAGE, SegmentHeader, TapeManifest, list_segments, read_start, segment_path,
};
use crate::disk::origin::OriginRecord;
use crate::disk::seal::{is_sealed, seal_file, unseal};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::repair::backup::{FileAttributes, repairs};
use crate::repair::{RepairFinding, RepairRemedy, RepairSession, is_same_tape};
use crate::trust::survey::TapeSurvey;

impl RepairSession<'_> {
    /// Removes files that a killed repair did not clean up.
    pub(super) fn leftovers(&mut self) -> Result<()> {
        for (_, dir) in repairs(&self.paths.tape_dir)? {
            let new_path = dir.join("new");
            if new_path.exists() {
                self.add_mended(
                    &new_path,
                    0,
                    "a repair was killed before it put this file in its place",
                    "removed",
                );
                if self.options.apply {
                    crate::disk::layout::remove(&new_path)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the identity of the tape, from `tape.toml`, or from the header pages if that is damaged. Returns `None`
    /// if neither has it.
    pub(super) fn identity(&mut self) -> Result<Option<TapeManifest>> {
        let path = self.paths.tape_dir.join("tape.toml");
        let manifest = TapeManifest::load(&self.paths.tape_dir);
        let by_pages = self.meta_of_pages()?;
        let problem = match (&manifest, by_pages) {
            (Ok(meta), None) => return Ok(Some(*meta)),
            (Ok(meta), Some(pages)) if is_same_tape(meta, pages.id, pages.segment_bytes) => {
                return Ok(Some(pages));
            }
            (Ok(_), Some(_)) => "it names another tape or another size than all segments do".to_owned(),
            (Err(Error::Damage { reason, .. }), _) => reason.clone(),
            (Err(Error::NotATape { reason: message, .. }), Some(_)) => (*message).to_owned(),
            (Err(e @ Error::ForeignVersion { .. }), Some(_)) => e.to_string(),
            (Err(_), _) => return manifest.map(Some),
        };
        let Some(meta) = by_pages else {
            let action = "no header page of a segment says what was in it, or they contradict each other";
            self.add_unmended(&path, 0, problem, action);
            return Ok(None);
        };
        let action = format!(
            "made again from the header pages: tape {}, segments of {} bytes",
            meta.id, meta.segment_bytes
        );
        self.add_mended(&path, 0, problem, action);
        if self.options.apply {
            self.backup.replace(&path, meta.text().as_bytes(), &FileAttributes::default())?;
        }
        Ok(Some(meta))
    }

    /// Returns the manifest on which all header pages with a matching checksum agree. Returns `None` if there is no
    /// such page, or if two of them contradict each other.
    fn meta_of_pages(&self) -> Result<Option<TapeManifest>> {
        let mut manifest: Option<TapeManifest> = None;
        for index in list_segments(&self.paths.segments())? {
            let path = segment_path(&self.paths.segments(), index);
            let page = read_start(&path, HEADER_PAGE).with_context("read", &path)?;
            let Some(header) = SegmentHeader::read(&page).filter(|h| h.index == index) else { continue };
            match &manifest {
                Some(meta) if !is_same_tape(meta, header.meta.id, header.meta.segment_bytes) => {
                    return Ok(None);
                }
                _ => manifest = Some(header.meta),
            }
        }
        Ok(manifest)
    }

    /// Returns the first ordinal of the segment at `base`, if the tape begins in it.
    fn ordinal_of_origin(&self, survey: &TapeSurvey, base: Position) -> Option<u64> {
        let record = OriginRecord::load(self.paths).ok()??;
        let begins = record.tape == survey.meta.id && record.position.0 > 0;
        let size = survey.meta.segment_bytes;
        (begins && record.position.0 - record.position.0 % size == base.0).then_some(record.ordinal)
    }

    /// Rebuilds damaged header pages from the segments before and after.
    pub(super) fn headers(&mut self, survey: &mut TapeSurvey) -> Result<()> {
        let mut damaged_headers = Vec::new();
        for (i, segment) in survey.segments.iter().enumerate() {
            if let Err(e) = &segment.header {
                // Frames say by themselves whether they belong here; the writer makes a page without any again.
                let ordinal = self.ordinal_of_origin(survey, segment.base_position);
                damaged_headers.push((i, e.to_string(), ordinal.or_else(|| survey.ordinal_of_neighbours(i))));
            }
        }
        for (i, problem, ordinal) in damaged_headers {
            let (index, base) = (survey.segments[i].segment_index, survey.segments[i].base_position);
            let path = segment_path(&self.paths.segments(), index);
            let Some(first_ordinal) = ordinal else {
                self.add_finding(RepairFinding {
                    file_path: path,
                    offset: 0,
                    position_range: Some((base, base.plus(survey.meta.segment_bytes))),
                    problem,
                    remedy: RepairRemedy::Truncate,
                    action: "the segments before and after do not say how many events are before it; cut the tape here \
                             (--truncate), or leave it: readers continue after it with --skip-damage"
                        .to_owned(),
                    is_mended: false,
                });
                continue;
            };
            let action =
                format!("made again: segment {index}, position {base}, {first_ordinal} events before it");
            self.add_mended(&path, 0, problem, action);
            survey.segments[i].header = Ok(first_ordinal);
            if self.options.apply {
                self.backup.keep_start(&path, HEADER_PAGE)?;
                let header = SegmentHeader { meta: survey.meta, index, first_ordinal };
                let sealed = is_sealed(&path);
                unseal(&path)?;
                let file = std::fs::OpenOptions::new().write(true).open(&path).with_context("open", &path)?;
                file.write_all_at(&header.encode(), 0).with_context("write", &path)?;
                sys::sync_data(&file).with_context("flush", &path)?;
                if sealed {
                    seal_file(&path)?;
                }
            }
        }
        Ok(())
    }
}
