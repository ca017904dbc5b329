//! Whether the lines of a channel are heard. A line is down when nothing has come on it for [`ArbitrationWindow::silent_ns`] since the other
//! one brought a packet that it had not: a quiet venue is silent on both, and no line is down. Packets without numbers do not say
//! which is a copy; their lines are not watched.

use super::config::ArbitrationWindow;

/// The two lines of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLiveness {
    silent_ns: i64,
    /// The lines of the channel.
    has_line: [bool; 2],
    /// The time at which the line counts as down if it stays silent. [`HEARD`] while the other line has brought no
    /// packet since; [`DOWN`] if the line is down or the channel does not have it.
    down_at: [i64; 2],
    /// When it was last heard; before that, when the other line was first.
    heard_ns: [i64; 2],
}

/// A line is down, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LivenessChange {
    pub line_index: u8,
    pub is_down: bool,
    /// When the line was last heard before; if it was never heard, when the other line was first heard.
    pub silent_since_ns: i64,
}

const HEARD: i64 = i64::MIN;
const DOWN: i64 = i64::MAX;

impl LineLiveness {
    /// Makes the liveness of a channel with these lines.
    pub fn new(window: &ArbitrationWindow, has: [bool; 2]) -> Self {
        let down_at = has.map(|has| if has { HEARD } else { DOWN });
        Self { silent_ns: window.silent_ns, has_line: has, down_at, heard_ns: [i64::MIN; 2] }
    }

    /// Notes a packet on this line. Returns the change if the line was down.
    #[inline(always)]
    pub fn note_packet(&mut self, line: u8, now: i64) -> Option<LivenessChange> {
        let was = std::mem::replace(&mut self.down_at[usize::from(line & 1)], HEARD);
        let since = std::mem::replace(&mut self.heard_ns[usize::from(line & 1)], now);
        (was == DOWN).then_some(LivenessChange { line_index: line, is_down: false, silent_since_ns: since })
    }

    /// Notes that the packet was the first copy. The first such copy starts the timeout of the other line.
    #[inline(always)]
    pub fn note_first_copy(&mut self, line: u8, now: i64) -> Option<LivenessChange> {
        let other_line = usize::from(1 - (line & 1));
        let down_at = match self.down_at[other_line] {
            HEARD => now.saturating_add(self.silent_ns),
            down_at => down_at,
        };
        self.down_at[other_line] = down_at;
        (now > down_at).then(|| self.mark_down(other_line as u8))
    }

    /// Returns whether the channel has this line.
    pub fn has_line(&self, line: u8) -> bool {
        self.has_line[usize::from(line & 1)]
    }

    /// Returns whether the channel has this line and the line is down.
    pub fn is_down(&self, line: u8) -> bool {
        self.has_line(line) && self.down_at[usize::from(line & 1)] == DOWN
    }

    /// Marks a line as down and returns the change.
    #[cold]
    pub fn mark_down(&mut self, line: u8) -> LivenessChange {
        let line_index = usize::from(line & 1);
        let down_at = std::mem::replace(&mut self.down_at[line_index], DOWN);
        if self.heard_ns[line_index] == i64::MIN && down_at != HEARD {
            self.heard_ns[line_index] = down_at.saturating_sub(self.silent_ns);
        }
        LivenessChange { line_index: line, is_down: true, silent_since_ns: self.heard_ns[line_index] }
    }
}
