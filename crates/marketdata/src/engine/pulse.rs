//! Whether the lines of a channel are heard. A line is down when nothing has come on it for [`ArbitrationWindow::silent_ns`] since the other
//! one brought a packet that it had not: a quiet venue is silent on both, and no line is down. Packets without numbers do not say
//! which is a copy; their lines are not watched.

use super::config::ArbitrationWindow;

/// The two lines of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLiveness {
    silent_ns: i64,
    /// The lines of the channel.
    has: [bool; 2],
    /// When the line is down, should nothing come on it: [`HEARD`] while the other line has brought nothing since, [`DOWN`] when it
    /// is, or is none of the channel's.
    down_at: [i64; 2],
    /// When it was last heard; before that, when the other line was first.
    heard: [i64; 2],
}

/// A line is down, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LivenessChange {
    pub line: u8,
    pub down: bool,
    /// When it was last heard before that; where it never was, when the other line was first.
    pub since: i64,
}

const HEARD: i64 = i64::MIN;
const DOWN: i64 = i64::MAX;

impl LineLiveness {
    /// The pulse of a channel that has these lines.
    pub fn new(window: &ArbitrationWindow, has: [bool; 2]) -> Self {
        let down_at = has.map(|has| if has { HEARD } else { DOWN });
        Self { silent_ns: window.silent_ns, has, down_at, heard: [i64::MIN; 2] }
    }

    /// A packet has come on this line.
    #[inline(always)]
    pub fn note_packet(&mut self, line: u8, now: i64) -> Option<LivenessChange> {
        let was = std::mem::replace(&mut self.down_at[usize::from(line & 1)], HEARD);
        let since = std::mem::replace(&mut self.heard[usize::from(line & 1)], now);
        (was == DOWN).then_some(LivenessChange { line, down: false, since })
    }

    /// It was the first copy: from the first of these on the other line is waited for.
    #[inline(always)]
    pub fn note_first_copy(&mut self, line: u8, now: i64) -> Option<LivenessChange> {
        let other = usize::from(1 - (line & 1));
        let down_at = match self.down_at[other] {
            HEARD => now.saturating_add(self.silent_ns),
            down_at => down_at,
        };
        self.down_at[other] = down_at;
        (now > down_at).then(|| self.mark_down(other as u8))
    }

    /// Whether the channel has this line.
    pub fn has(&self, line: u8) -> bool {
        self.has[usize::from(line & 1)]
    }

    /// Whether a line of the channel is down.
    pub fn is_down(&self, line: u8) -> bool {
        self.has(line) && self.down_at[usize::from(line & 1)] == DOWN
    }

    /// Nothing comes on this line.
    #[cold]
    pub fn mark_down(&mut self, line: u8) -> LivenessChange {
        let at = usize::from(line & 1);
        let down_at = std::mem::replace(&mut self.down_at[at], DOWN);
        if self.heard[at] == i64::MIN && down_at != HEARD {
            self.heard[at] = down_at.saturating_sub(self.silent_ns);
        }
        LivenessChange { line, down: true, since: self.heard[at] }
    }
}
