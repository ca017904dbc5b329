//! The lineage of a tape: the epoch of its writer, and where each writer that cut the tape began.
//!
//! ```text
//!  epoch 4  ──────────────────────────┤ power fails: the tape is cut back to here ▼
//!  epoch 5  ────────────────────┤ begins at the cut, and writes other frames at the same positions
//!
//!  a place (epoch 4, position P): a later epoch began before P, so what P counts is gone; reading continues there
//! ```
//!
//! Each opening for writing has an epoch, one more than the previous one. `run/lineage` stores the last epoch and a
//! list of cuts. A cut is the epoch and start position of an opening that may have removed data that a reader had seen.
//! A point continues at the least of the later cuts, unless all of them are at or after it. The file is written whole,
//! flushed and renamed before a frame of its epoch is on the tape, and it survives a clean close.
//!
//! The state page has the epoch too, in word 16. The writer raises it after recovery has replaced the cut segments: a
//! reader that sees the new epoch finds no cut segment under its name any more.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use unitape_model::Position;

use crate::disk::layout::{FORMAT_VERSION, PLACE_MAX, TapeId, TapePaths, read_start, remove, sync_dir};
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result, optional};

/// A position with the epoch in which it was read. A holder stores it to find its position after a power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineagePoint {
    /// Epoch of the writer under which the position was read; 0: unknown.
    pub epoch: u64,
    /// The holder has processed everything before this position.
    pub position: Position,
}

/// The tape was cut back to `to`, before the position `from` that a reader had come to. The reader continues at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderRewind {
    /// Where the reader was.
    pub reader_position: Position,
    /// The position where the reader continues. Whatever it read after this position is no longer on the tape.
    pub resume_position: Position,
}

/// An opening at which the tape was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineageCut {
    epoch: u64,
    position: Position,
}

/// The contents of `run/lineage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lineage {
    tape: TapeId,
    /// Epoch of the last opening.
    pub epoch: u64,
    /// Epoch with which this lineage began. A point of an earlier epoch, or of an epoch after `epoch`, belongs to a
    /// lineage that was lost.
    pub first_epoch: u64,
    /// Boot of the machine in which the writer of `epoch` opened; `None` after a clean close.
    pub open_boot: Option<u128>,
    /// Ascending in both.
    cuts: Vec<LineageCut>,
}

const MAGIC: &[u8; 8] = b"UNITLINE";

/// Greatest number of stored cuts. Beyond it, the two oldest become a single cut that rewinds as far as the further of
/// them.
const CUTS_MAX: usize = 251;

mod offset {
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const EPOCH: usize = 32;
    pub const FIRST: usize = 40;
    pub const BOOT: usize = 48;
    pub const OPEN: usize = 64;
    pub const COUNT: usize = 68;
    pub const CUTS_CRC: usize = 72;
    pub const CRC: usize = 76;
    pub const CUTS: usize = 80;
}

const CUT_BYTES: usize = 16;

const _: () = {
    assert!(offset::VERSION == 8 && offset::TAPE == 16 && offset::EPOCH == 32 && offset::FIRST == 40);
    assert!(offset::BOOT == 48 && offset::OPEN == 64 && offset::COUNT == 68 && offset::CUTS_CRC == 72);
    assert!(offset::CRC == 76 && offset::CUTS == 80 && offset::CUTS + CUTS_MAX * CUT_BYTES == 4096);
};

/// Bounds of the epochs that an opening knows, beside the tape's lineage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochLimits {
    pub tape: TapeId,
    /// The tape is made just now.
    pub is_new_tape: bool,
    /// The greatest epoch that another file names.
    pub known_epoch: u64,
    /// The least epoch that the caller accepts.
    pub least_epoch: u64,
    /// The epoch with which a lineage begins.
    pub first_epoch: u64,
    /// The epoch that the caller requests, later than all known epochs; 0: the next epoch.
    pub requested_epoch: u64,
}

impl Lineage {
    /// Returns the path of the tape's lineage file.
    pub fn path(paths: &TapePaths) -> PathBuf {
        paths.run().join("lineage")
    }

    /// Reads the lineage of tape `tape`, or returns `None` if there is no such file.
    pub fn load(paths: &TapePaths, tape: TapeId) -> Result<Option<Self>> {
        let path = Self::path(paths);
        let Some(text) = read_limited(&path, 4096)? else { return Ok(None) };
        let mut lineage = parse_header(&text, &path, tape)?;
        let cuts = &text[offset::CUTS..];
        let count = u32_at(&text, offset::COUNT) as usize;
        if cuts.len() != count * CUT_BYTES || crc32c::crc32c(cuts) != u32_at(&text, offset::CUTS_CRC) {
            return Err(damage_error(&path, offset::CUTS, "the list of cuts does not match its checksum"));
        }
        for cut in cuts.chunks_exact(CUT_BYTES) {
            lineage.cuts.push(LineageCut { epoch: u64_at(cut, 0), position: Position(u64_at(cut, 8)) });
        }
        let ascends = lineage.cuts.is_sorted_by(|a, b| a.epoch < b.epoch && a.position < b.position);
        let cut_is_valid = |c: &LineageCut| c.epoch <= lineage.epoch && c.position.0 <= PLACE_MAX;
        if !ascends || !lineage.cuts.iter().all(cut_is_valid) {
            return Err(damage_error(&path, offset::CUTS, "the cuts are not in their order"));
        }
        Ok(Some(lineage))
    }

    /// Makes a lineage that replaces a damaged file. `known_epoch` is the greatest epoch in the tape's other files,
    /// `open` the boot in which a writer has the tape open, `wall_us` the time.
    ///
    /// The epoch never goes back. It is that of the damaged file if the header is intact; otherwise it is later than
    /// every epoch that may have been used. Points of earlier epochs resume at the oldest position.
    pub fn rebuild(
        paths: &TapePaths,
        tape: TapeId,
        known_epoch: u64,
        open: Option<u128>,
        wall_us: u64,
    ) -> Result<Self> {
        let path = Self::path(paths);
        let text = read_limited(&path, 4096)?.unwrap_or_default();
        if let Ok(mut lineage) = parse_header(&text, &path, tape) {
            lineage.epoch = lineage.epoch.max(known_epoch);
            lineage.first_epoch = lineage.epoch;
            return Ok(lineage);
        }
        // The header is lost. Cuts that match their checksum name epochs that have been.
        let cuts = text.get(offset::CUTS..).unwrap_or_default();
        let is_intact = text.len() > offset::CUTS && crc32c::crc32c(cuts) == u32_at(&text, offset::CUTS_CRC);
        let cut = cuts.chunks_exact(CUT_BYTES).map(|cut| u64_at(cut, 0)).filter(|_| is_intact).max();
        // A lineage that was lost before began with the time in microseconds, and may have come further since.
        let epoch =
            known_epoch.max(cut.unwrap_or(0)).max(wall_us).saturating_add(LOST_EPOCHS).clamp(1, PLACE_MAX);
        Ok(Self { tape, epoch, first_epoch: epoch, open_boot: open, cuts: Vec::new() })
    }

    /// Makes the lineage of a tape that begins at `origin` and continues one that earlier epochs wrote. Earlier points
    /// up to the origin stay valid; points after it resume at the origin.
    pub fn begin(tape: TapeId, epoch: u64, origin: Position) -> Self {
        Self {
            tape,
            epoch,
            first_epoch: 1,
            open_boot: None,
            cuts: vec![LineageCut { epoch, position: origin }],
        }
    }

    /// Makes the lineage of the next opening: continues `before`, or begins a new lineage if there is no earlier one.
    pub fn next(before: Option<Self>, past: &EpochLimits, paths: &TapePaths) -> Result<Self> {
        let EpochLimits {
            tape,
            is_new_tape: created,
            known_epoch,
            least_epoch: least,
            first_epoch: first,
            requested_epoch,
        } = *past;
        let Some(mut lineage) = before else {
            let epoch =
                first.max(known_epoch.saturating_add(1)).max(least).max(requested_epoch).min(PLACE_MAX);
            return Ok(Self { tape, epoch, first_epoch: epoch, open_boot: None, cuts: Vec::new() });
        };
        lineage.epoch = lineage.epoch.max(known_epoch).saturating_add(1).max(requested_epoch).min(PLACE_MAX);
        if lineage.epoch < least {
            let path = paths.tape_dir.clone();
            return Err(Error::OldEpoch { path, epoch: lineage.epoch, least });
        }
        if created {
            // It is made where one of its name was: positions of that one mean nothing here.
            lineage.cut(Position(0), Position(0));
        }
        Ok(lineage)
    }

    /// Says that this epoch begins at `position`, and that readers may have seen more. `oldest` is the oldest position
    /// there is.
    pub fn cut(&mut self, position: Position, oldest: Position) {
        let epoch = self.epoch;
        // An earlier cut at or after this one says nothing that this one does not.
        self.cuts.retain(|cut| cut.position < position);
        self.cuts.push(LineageCut { epoch, position });
        // Cuts at or before the oldest position all lead there: one of them serves. Of two cuts that become one,
        // readers rewind to the first, also those that need only the second: further, and never less.
        while self.cuts.len() > CUTS_MAX || self.cuts.get(1).is_some_and(|cut| cut.position <= oldest) {
            self.cuts[1].position = self.cuts[0].position;
            self.cuts.remove(0);
        }
    }

    /// Returns whether the last entry is a cut at `position` by the epoch after `epoch`.
    pub fn ends_with_cut(&self, epoch: u64, position: Position) -> bool {
        let cut = LineageCut { epoch: epoch.saturating_add(1), position };
        self.epoch == cut.epoch && self.cuts.last() == Some(&cut)
    }

    /// Returns the position where a reader of `point` resumes: before the point's position if a later epoch cut the
    /// tape back.
    pub fn resume(&self, point: LineagePoint) -> Position {
        let LineagePoint { epoch, position } = point;
        if epoch != 0 && (epoch < self.first_epoch || epoch > self.epoch) {
            return Position(0);
        }
        let later = self.cuts.iter().filter(|cut| cut.epoch > epoch).map(|cut| cut.position);
        later.min().map_or(position, |cut| cut.min(position))
    }

    /// Writes it, so that it survives a power loss before anything else happens.
    pub fn store(&self, paths: &TapePaths) -> Result<()> {
        let (path, temp) = (Self::path(paths), paths.run().join("making-lineage"));
        let is_new = !path.exists();
        let write_result = (|| {
            let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
            let file = sys::open(&temp, &options).with_context("create", &temp)?;
            sys::write_at(&file, &self.encode(), 0).with_context("write", &temp)?;
            sys::sync_data(&file).with_context("flush", &temp)?;
            sys::rename(&temp, &path).with_context("rename", &path)?;
            sync_dir(&paths.run())
        })();
        if write_result.is_err() {
            let _ = remove(&temp);
        }
        write_result?;
        if is_new { sync_dir(&paths.tape_dir) } else { Ok(()) }
    }

    /// Encodes the lineage as the bytes of its file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; offset::CUTS];
        for cut in &self.cuts {
            out.extend(cut.epoch.to_le_bytes());
            out.extend(cut.position.0.to_le_bytes());
        }
        let cuts_crc = crc32c::crc32c(&out[offset::CUTS..]);
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, MAGIC);
        write_field(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
        write_field(offset::TAPE, &self.tape.0.to_le_bytes());
        write_field(offset::EPOCH, &self.epoch.to_le_bytes());
        write_field(offset::FIRST, &self.first_epoch.to_le_bytes());
        write_field(offset::BOOT, &self.open_boot.unwrap_or(0).to_le_bytes());
        write_field(offset::OPEN, &u32::from(self.open_boot.is_some()).to_le_bytes());
        write_field(offset::COUNT, &(self.cuts.len() as u32).to_le_bytes());
        write_field(offset::CUTS_CRC, &cuts_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..offset::CRC]);
        out[offset::CRC..offset::CUTS].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

/// Openings that may have been between an epoch that another file names and the last one of a lineage that is lost.
const LOST_EPOCHS: u64 = 1 << 20;

/// Reads the epoch in `run/lineage`; 0 if there is no such file.
pub(crate) fn newest_epoch(paths: &TapePaths, tape: TapeId) -> Result<u64> {
    let path = Lineage::path(paths);
    let Some(text) = read_limited(&path, offset::CUTS as u64)? else { return Ok(0) };
    Ok(parse_header(&text, &path, tape)?.epoch)
}

/// Returns the epoch whose frames a reader finds now: the epoch of the state page, or of the lineage if no process
/// writes the tape.
///
/// An unreadable lineage gives 0, unknown: every cut rewinds a reader of that epoch.
///
/// # Errors
/// Fails if the system is out of descriptors or memory. The epoch is then neither known nor unknown, and a reader that
/// compared two answers would look for its segment for ever.
pub(crate) fn current_epoch(paths: &TapePaths, tape: TapeId, page: Option<&StatePage>) -> Result<u64> {
    match page.map_or(0, StatePage::epoch) {
        0 => Ok(optional(newest_epoch(paths, tape))?.unwrap_or(0)),
        epoch => Ok(epoch),
    }
}

/// Checks that no later writer than that of `epoch` has opened the tape.
pub(crate) fn check_newest(paths: &TapePaths, tape: TapeId, epoch: u64) -> Result<()> {
    let newest = newest_epoch(paths, tape)?;
    // Another than ours is a later one, also where the lineage was lost meanwhile and began again.
    if newest != 0 && newest != epoch {
        return Err(Error::Fenced { path: paths.tape_dir.clone(), epoch, newest });
    }
    Ok(())
}

/// Converts the id of this boot of the machine to a number; 0 if the system does not tell the id.
pub(crate) fn boot_number(id: &str) -> u128 {
    u128::from_str_radix(&id.replace('-', ""), 16).unwrap_or(0)
}

/// Reads at most `bytes_max` bytes of the file at `path`, or returns `None` if there is no such file.
fn read_limited(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    match read_start(path, bytes_max) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).with_context("read", path),
    }
}

/// Checks the header and reads it, without the cuts.
fn parse_header(text: &[u8], path: &Path, tape: TapeId) -> Result<Lineage> {
    if text.len() < offset::CUTS || text[..8] != *MAGIC {
        return Err(damage_error(path, 0, "this is no lineage"));
    }
    // Checked before the version: only an intact file can have a foreign version.
    if crc32c::crc32c(&text[..offset::CRC]) != u32_at(text, offset::CRC) {
        return Err(damage_error(path, offset::CRC, "the lineage does not match its checksum"));
    }
    let version = u64_at(text, offset::VERSION);
    if version != FORMAT_VERSION {
        return Err(Error::ForeignVersion { path: path.into(), version, supported_version: FORMAT_VERSION });
    }
    let u128_at =
        |offset: usize| u128::from_le_bytes(text[offset..offset + 16].try_into().expect("sixteen bytes"));
    let id = TapeId(u128_at(offset::TAPE));
    if id != tape {
        return Err(Error::ForeignTape { path: path.into(), tape_id: id, expected_id: tape });
    }
    Ok(Lineage {
        tape,
        epoch: u64_at(text, offset::EPOCH),
        first_epoch: u64_at(text, offset::FIRST),
        open_boot: (u32_at(text, offset::OPEN) != 0).then(|| u128_at(offset::BOOT)),
        cuts: Vec::new(),
    })
}

/// The remedy for a damaged lineage.
pub(crate) const LINEAGE_WAY: &str = "; `unitape tape repair DIR --apply` makes it again";

fn damage_error(path: &Path, offset: usize, reason: &str) -> Error {
    let message = format!("{reason}{LINEAGE_WAY}");
    Error::damage(path, offset as u64, message)
}

fn u64_at(text: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(text[offset..offset + 8].try_into().expect("eight bytes"))
}

fn u32_at(text: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(text[offset..offset + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn past(known_epoch: u64, least: u64, first: u64) -> EpochLimits {
        EpochLimits {
            tape: TapeId(7),
            is_new_tape: false,
            known_epoch,
            least_epoch: least,
            first_epoch: first,
            requested_epoch: 0,
        }
    }

    fn paths(dir: &Path) -> TapePaths {
        std::fs::create_dir_all(dir.join("run")).unwrap();
        TapePaths { tape_dir: dir.into() }
    }

    fn resume(lineage: &Lineage, epoch: u64, position: u64) -> u64 {
        lineage.resume(LineagePoint { epoch, position: Position(position) }).0
    }

    /// A stored lineage must come back, and nothing else may pass for one.
    #[test]
    fn a_lineage_comes_back_as_it_was_stored() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        assert_eq!(
            (Lineage::load(&paths, TapeId(7)).unwrap(), newest_epoch(&paths, TapeId(7)).unwrap()),
            (None, 0)
        );
        let mut lineage = Lineage::next(None, &past(4, 0, 1), &paths).unwrap();
        assert_eq!((lineage.epoch, lineage.first_epoch), (5, 5));
        for (epoch, position) in [(9, 640), (12, 1280)] {
            lineage.epoch = epoch;
            lineage.cut(Position(position), Position(0));
        }
        lineage.open_boot = Some(99);
        lineage.store(&paths).unwrap();
        assert_eq!(Lineage::load(&paths, TapeId(7)).unwrap().as_ref(), Some(&lineage));
        assert_eq!(newest_epoch(&paths, TapeId(7)).unwrap(), 12);
        assert!(matches!(Lineage::load(&paths, TapeId(8)), Err(Error::ForeignTape { .. })));
        assert!(matches!(check_newest(&paths, TapeId(7), 11), Err(Error::Fenced { newest: 12, .. })));
        check_newest(&paths, TapeId(7), 12).unwrap();
        let text = std::fs::read(Lineage::path(&paths)).unwrap();
        for offset in 0..text.len() {
            let mut text = text.clone();
            text[offset] ^= 1;
            std::fs::write(Lineage::path(&paths), &text).unwrap();
            assert!(Lineage::load(&paths, TapeId(7)).is_err(), "byte {offset}");
        }
        for length in [0, 8, 79, 80, 96, text.len() - 1] {
            std::fs::write(Lineage::path(&paths), &text[..length]).unwrap();
            assert!(Lineage::load(&paths, TapeId(7)).is_err(), "{length} bytes");
        }
    }

    /// Nothing is known of an epoch that this lineage never had; all of the tape may be new.
    #[test]
    fn a_point_of_another_lineage_continues_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let mut lineage = Lineage::next(None, &past(0, 0, 1000), &paths(dir.path())).unwrap();
        lineage.epoch = 1010;
        lineage.cut(Position(640), Position(0));
        for (epoch, to) in [(1, 0), (999, 0), (1000, 640), (1009, 640), (1010, 6400), (1011, 0), (0, 640)] {
            assert_eq!(resume(&lineage, epoch, 6400), to, "epoch {epoch}");
        }
    }

    /// The least epoch that is acceptable: an older copy is refused, a lineage that begins begins there.
    #[test]
    fn an_older_copy_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        let lineage = Lineage::next(None, &past(0, 8, 1), &paths).unwrap();
        assert_eq!(lineage.epoch, 8);
        let next = |least| Lineage::next(Some(lineage.clone()), &past(0, least, 1), &paths);
        assert_eq!((next(0).unwrap().epoch, next(9).unwrap().epoch), (9, 9));
        assert!(matches!(next(10), Err(Error::OldEpoch { epoch: 9, least: 10, .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        /// The bounded list against one that keeps every cut: never less far, and where it is not full and nothing was
        /// removed, the same.
        #[test]
        fn the_list_rewinds_as_far_as_all_cuts_do(
            steps in proptest::collection::vec((0u64..40, 0u64..8, 0u64..3), 1..700),
            asked in proptest::collection::vec((0u64..700, 0u64..30_000), 40),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut lineage = Lineage::next(None, &past(0, 0, 1), &paths(dir.path())).unwrap();
            let (mut all, mut end, mut oldest) = (Vec::new(), 0u64, 0);
            for (grows, shrinks, removes) in steps {
                end += grows;
                lineage.epoch += 1;
                end = end.saturating_sub(shrinks).max(oldest);
                oldest = (oldest + removes).min(end);
                all.push((lineage.epoch, end));
                lineage.cut(Position(end), Position(oldest));
                prop_assert!(lineage.cuts.len() <= CUTS_MAX);
            }
            for (epoch, position) in asked {
                let epoch = 1 + epoch % lineage.epoch;
                let later = all.iter().filter(|(e, _)| *e > epoch).map(|(_, to)| *to).min();
                let wanted = later.map_or(position, |to| to.min(position));
                let got = resume(&lineage, epoch, position);
                prop_assert!(got <= wanted);
                if all.len() < CUTS_MAX {
                    // Removed lines are gone, so a place within them counts as the oldest.
                    prop_assert_eq!(got.max(oldest), wanted.max(oldest).min(position.max(oldest)));
                }
            }
            lineage.store(&paths(dir.path())).unwrap();
            prop_assert_eq!(Lineage::load(&paths(dir.path()), TapeId(7)).unwrap(), Some(lineage));
        }
    }
}
