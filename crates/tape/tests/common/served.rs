//! The units that a reader serves of a tape that was copied or damaged, compared with the units written.

use std::path::Path;

use unitape_model::{FrameHeader, LINE};
use unitape_tape::{Frame, Reader, StartPosition};

use super::Unstamp;

/// The units that a reader gave, from the oldest frame to the end or to the last damage.
#[derive(Debug, Default)]
pub struct ServedUnits {
    /// Whole units, all as they were written.
    pub units: u64,
    /// The first and the last of them.
    pub first: Option<u64>,
    pub last: Option<u64>,
    /// The first thing that was served and is not what was written.
    pub wrong: Option<String>,
    /// The errors that the reader reported: that of opening, then one of each damaged place.
    pub errors: Vec<String>,
}

impl ServedUnits {
    /// Whether all units before `count` were served, and nothing was reported.
    pub fn is_all(&self, count: u64) -> bool {
        self.errors.is_empty() && self.units == count && (count == 0 || self.first == Some(0))
    }
}

/// Reads to the end, over damage where the reader can; `unit` makes the unit with an index, as it was written.
pub fn served(dir: &Path, unit: impl Fn(u64, &mut Vec<u8>)) -> ServedUnits {
    let mut found = ServedUnits::default();
    let mut reader = match Reader::open(dir, StartPosition::Oldest) {
        Ok(reader) => reader,
        Err(e) => {
            found.errors.push(e.to_string());
            return found;
        }
    };
    let mut state = Units { bytes: Vec::new(), next: None, inside: reader.position().0 > 0 };
    for _ in 0..1_000_000 {
        match reader.next() {
            Ok(Some(frame)) => {
                if let Err(wrong) = state.frame(&frame, &unit, &mut found) {
                    found.wrong.get_or_insert(wrong);
                    return found;
                }
            }
            Ok(None) => return found,
            Err(e) => {
                found.errors.push(e.to_string());
                // A segment may begin in the middle of a unit.
                state = Units { bytes: Vec::new(), next: None, inside: true };
                match reader.skip_damage() {
                    Ok(Some(_)) if found.errors.len() < 100 => {}
                    _ => return found,
                }
            }
        }
    }
    found.wrong = Some("the reader does not come to an end".to_owned());
    found
}

/// The unit that is being put together.
struct Units {
    bytes: Vec<u8>,
    /// The index of the next one, where it is known.
    next: Option<u64>,
    /// Perhaps in the middle of one: what comes up to its end is passed over.
    inside: bool,
}

impl Units {
    fn frame(
        &mut self,
        frame: &Frame<'_>,
        unit: &impl Fn(u64, &mut Vec<u8>),
        found: &mut ServedUnits,
    ) -> Result<(), String> {
        let at = frame.position;
        if !frame.header.is_at(at) || frame.bytes.len() < LINE {
            return Err(format!("the frame at {at} has the header {:?}", frame.header));
        }
        if self.inside {
            self.inside = !frame.header.is_last();
            return Ok(());
        }
        let from = self.bytes.len();
        self.bytes.extend_from_slice(frame.bytes);
        FrameHeader::unstamp(frame.header).write(&mut self.bytes[from..]);
        if !frame.header.is_last() {
            return Ok(());
        }
        let index = u64::from_le_bytes(self.bytes[8..16].try_into().expect("eight bytes"));
        if let Some(next) = self.next.filter(|next| *next != index) {
            return Err(format!("unit {index} where {next} was written, before {at}"));
        }
        if let Some(last) = found.last.filter(|last| *last >= index) {
            return Err(format!("unit {index} after {last}, before {at}"));
        }
        let mut written = Vec::new();
        unit(index, &mut written);
        if self.bytes != written {
            return Err(format!("unit {index} is not as it was written, before {at}"));
        }
        found.units += 1;
        found.first.get_or_insert(index);
        found.last = Some(index);
        self.next = Some(index + 1);
        self.bytes.clear();
        Ok(())
    }
}
