//! The missing packets of each line of a stream, packet by packet.
//!
//! ```text
//!  numbers of the stream   1 2 3 4 5 6 7 8 9 │ 1 2 3        the stream begins again with 1
//!  line A                  1 2 . . 5 6 . . .   . 2 3        missed 3, 4; 7, 8, 9 when it begins again; 1
//!  line B                      3 4 5 6 7 8 9 │ 1 2 3        missed 1, 2 when it is first heard
//! ```
//!
//! A packet that a line brings after all is removed again, as long as its range is remembered.

use super::{ArbitratedStream, LineProgress, LineTracker, RANGES_MAX, cut_out};

impl LineTracker {
    /// Notes that the line skipped the packets from `from` to the one before `to`.
    #[cold]
    pub(super) fn note_skipped(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        self.stats.missed = self.stats.missed.saturating_add(to - from);
        self.note_missing(from, to - 1);
    }

    fn note_missing(&mut self, from: u64, last: u64) {
        if self.missing.len() >= RANGES_MAX {
            self.missing.remove(0);
        }
        self.missing.push((from, last));
    }

    /// Notes a packet that the line had skipped. Returns whether the line had not brought it before.
    #[cold]
    pub(super) fn note_late(&mut self, sequence: u64) -> bool {
        let is_missing = cut_out(&mut self.missing, sequence);
        self.stats.missed = self.stats.missed.saturating_sub(is_missing.into());
        is_missing
    }
}

impl ArbitratedStream {
    /// Returns the line's progress so far.
    pub(super) fn line_progress(&self, line: u8) -> LineProgress {
        let LineTracker { has_been_heard: heard, epoch, last_number: last, .. } =
            self.line_trackers[usize::from(line)];
        LineProgress { has_been_heard: heard, epoch, last_number: last }
    }

    /// Returns the number after the greatest number of the current numbering; `line` had progressed to `reached`.
    fn end_of_line(&self, line: u8, reached: LineProgress) -> u64 {
        let other_progress = self.line_progress(1 - line);
        let of_stream = |reached: LineProgress| reached.has_been_heard && reached.epoch == Some(self.epoch);
        let brought = [reached, other_progress].into_iter().filter(|reached| of_stream(*reached));
        let number_after = brought.map(|reached| reached.last_number.saturating_add(1)).max().unwrap_or(0);
        number_after.max(self.expected_number.unwrap_or(0))
    }

    /// Counts the packets before `end` that a line at this progress lacks, besides those that it skipped.
    fn count_missing(&self, reached: LineProgress, end: u64) -> u64 {
        let of_numbering = end.saturating_sub(self.lowest);
        let (top_before, packets_before) = self.earlier_numbers;
        match reached {
            LineProgress { has_been_heard: false, .. } => packets_before.saturating_add(of_numbering),
            LineProgress { epoch, last_number: last, .. } if epoch == Some(self.epoch) => {
                end.saturating_sub(last.saturating_add(1))
            }
            LineProgress { epoch, last_number: last, .. } if epoch == Some(self.epoch.wrapping_sub(1)) => {
                top_before.saturating_sub(last).saturating_add(of_numbering)
            }
            _ => of_numbering,
        }
    }

    /// Counts the packets by which a line lags behind the other line and behind the packets that were given up.
    pub fn packets_behind(&self, line: u8) -> u64 {
        let reached = self.line_progress(line);
        if self.expected_number.is_none() {
            0
        } else {
            self.count_missing(reached, self.end_of_line(line, reached))
        }
    }

    /// Notes that a line uses the stream's numbering from this number on; `reached` is its earlier progress.
    pub(super) fn start_line(&mut self, line: u8, sequence: u64, reached: LineProgress) {
        if self.expected_number.is_none() {
            return;
        }
        let (lacks, lowest) = (self.count_missing(reached, sequence), self.lowest);
        if sequence < lowest && reached.epoch != Some(self.epoch) {
            // The other line began these numbers later than this one.
            self.line_trackers[usize::from(1 - line)].note_skipped(sequence, lowest);
            self.lowest = sequence;
        }
        let line = &mut self.line_trackers[usize::from(line)];
        line.stats.missed = line.stats.missed.saturating_add(lacks);
        line.missing.clear();
        if lowest < sequence {
            line.note_missing(lowest, sequence - 1);
        }
    }

    /// Ends the current numbering because of `line`, which had progressed to `reached` and now counts otherwise.
    pub(super) fn end_numbering(&mut self, line: u8, reached: LineProgress) {
        let number_after = self.end_of_line(line, reached);
        let lacks = self.count_missing(reached, number_after);
        let line = &mut self.line_trackers[usize::from(line)];
        line.stats.missed = line.stats.missed.saturating_add(lacks);
        line.missing.clear();
        let packets = number_after.saturating_sub(self.lowest);
        self.earlier_numbers =
            (number_after.saturating_sub(1), self.earlier_numbers.1.saturating_add(packets));
    }
}
