//! Decides whether the wall clock can be trusted.
//!
//! ```text
//!  wall ──────────┐            the clock since boot is the ruler: what the calendar gains on it, beyond a
//!                 │ jump       few seconds, is a jump. Time continues as it was (`time`) and nothing goes for
//!  time ──────────┴──┄┄┄┄┄┄    its age, until wall is back, or has run evenly for as long as the jump was wide
//! ```
//!
//! A jump forward of `J` is accepted only after `J` has passed. So a segment that is removed too early by the true time
//! has at least half the age limit. (It was finished before the jump, so it is at least `J` old; and only segments at
//! least `age - J` old are removed.) Across a restart of the machine there is no ruler. The newest time on the tape
//! replaces it, and a later clock is accepted after an hour at most.

use crate::disk::lock::field;
use crate::retention::clock::ClockReading;

/// The most that wall and boot clock may differ by between two looks.
pub(crate) const TOLERANCE_NS: i64 = 10_000_000_000;
/// A clock that cannot be compared is believed after this much even running.
pub(crate) const SETTLE_NS: u64 = 3_600_000_000_000;

/// The calendar held against the clock since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockMonitor {
    boot: String,
    /// Calendar time that is believed, as of `boot_ns`.
    time_ns: i64,
    boot_ns: u64,
    jump: Option<ClockJump>,
    /// Jumps seen.
    pub jumps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockJump {
    /// How far the calendar is ahead of the time believed, at the last look.
    ahead_ns: i64,
    since_boot_ns: u64,
    /// How long it must run evenly.
    settle_ns: u64,
}

impl ClockMonitor {
    /// Begins at `now` in the boot of this identity; `newest_ns` is the latest time that the tape knows of.
    pub fn begin(boot: &str, now: ClockReading, newest_ns: Option<i64>) -> Self {
        let mut ruler =
            Self { boot: boot.into(), time_ns: now.wall_ns, boot_ns: now.boot_ns, jump: None, jumps: 0 };
        let ahead_ns = newest_ns.map_or(0, |newest| now.wall_ns.saturating_sub(newest));
        if ahead_ns.abs() > TOLERANCE_NS {
            ruler.time_ns = newest_ns.unwrap_or(now.wall_ns);
            let settle_ns = ahead_ns.unsigned_abs().min(SETTLE_NS);
            ruler.jump = Some(ClockJump { ahead_ns, since_boot_ns: now.boot_ns, settle_ns });
            ruler.jumps = u64::from(ahead_ns < 0);
        }
        ruler
    }

    /// Resumes from the state in `text`, if that was in the same boot.
    pub fn resume(text: &str, boot: &str, now: ClockReading) -> Option<Self> {
        let number = |name| field(text, name)?.parse::<i64>().ok();
        let boot_ns = number("boot-ns")? as u64;
        if boot.is_empty() || field(text, "boot")? != boot || boot_ns > now.boot_ns {
            return None;
        }
        let jump = number("jump-ns").and_then(|ahead_ns| {
            let (since, settle_ns) = (number("jump-since-ns")?, number("jump-settle-ns")?);
            Some(ClockJump { ahead_ns, since_boot_ns: since as u64, settle_ns: settle_ns as u64 })
        });
        let jumps = number("jumps")? as u64;
        Some(Self { boot: boot.into(), time_ns: number("time-ns")?, boot_ns, jump, jumps })
    }

    /// Returns the time in a stored text, whatever boot it belongs to.
    pub fn time_in(text: &str) -> Option<i64> {
        field(text, "time-ns")?.parse().ok()
    }

    /// Looks at the clocks: the time to count with, and whether it may be counted with at all.
    pub fn look_at_clocks(&mut self, now: ClockReading) -> (i64, bool) {
        let passed = now.boot_ns.saturating_sub(self.boot_ns);
        let expected = self.time_ns.saturating_add_unsigned(passed);
        let ahead_ns = now.wall_ns.saturating_sub(expected);
        self.boot_ns = self.boot_ns.max(now.boot_ns);
        self.jump = match self.jump {
            _ if ahead_ns.abs() <= TOLERANCE_NS => None,
            Some(jump) if (ahead_ns.saturating_sub(jump.ahead_ns)).abs() <= TOLERANCE_NS => {
                let even = now.boot_ns.saturating_sub(jump.since_boot_ns);
                (even < jump.settle_ns).then_some(ClockJump { ahead_ns, ..jump })
            }
            _ => {
                self.jumps += 1;
                Some(ClockJump { ahead_ns, since_boot_ns: now.boot_ns, settle_ns: ahead_ns.unsigned_abs() })
            }
        };
        self.time_ns = if self.jump.is_none() { now.wall_ns } else { expected };
        (self.time_ns, self.jump.is_none())
    }

    /// Returns by how many nanoseconds the wall clock has jumped, while the jump is not accepted.
    pub fn jump_ns(&self) -> Option<i64> {
        self.jump.map(|j| j.ahead_ns)
    }

    /// Writes the state as lines of `name value`.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "boot {}\nboot-ns {}\ntime-ns {}\njumps {}\n",
            self.boot, self.boot_ns, self.time_ns, self.jumps
        );
        if let Some(j) = self.jump {
            let (ahead_ns, since, settle_ns) = (j.ahead_ns, j.since_boot_ns, j.settle_ns);
            text += &format!("jump-ns {ahead_ns}\njump-since-ns {since}\njump-settle-ns {settle_ns}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn reading_at(wall_s: i64, boot_s: u64) -> ClockReading {
        ClockReading { wall_ns: wall_s * S, boot_ns: boot_s * S as u64 }
    }

    /// An operator's typing error in a date once would have emptied a tape.
    #[test]
    fn a_jump_is_not_believed_until_it_is_back_or_as_old_as_it_is_wide() {
        let mut ruler = ClockMonitor::begin("b", reading_at(1000, 0), None);
        assert_eq!(ruler.look_at_clocks(reading_at(1100, 100)), (1100 * S, true));
        assert_eq!(
            ruler.look_at_clocks(reading_at(1209, 200)),
            (1209 * S, true),
            "a clock that is set by seconds is believed"
        );
        assert_eq!(ruler.look_at_clocks(reading_at(5309, 300)), (1309 * S, false));
        assert_eq!(ruler.look_at_clocks(reading_at(6309, 1300)), (2309 * S, false));
        assert_eq!((ruler.jump_ns(), ruler.jumps), (Some(4000 * S), 1));
        let resumed_monitor = ClockMonitor::resume(&ruler.to_text(), "b", reading_at(6309, 1301)).unwrap();
        assert_eq!(resumed_monitor, ruler);
        let mut back = resumed_monitor.clone();
        assert_eq!(back.look_at_clocks(reading_at(2410, 1400)), (2410 * S, true), "it is back");
        let mut stays = resumed_monitor;
        assert_eq!(stays.look_at_clocks(reading_at(9308, 4299)), (5308 * S, false));
        assert_eq!(
            stays.look_at_clocks(reading_at(9309, 4300)),
            (9309 * S, true),
            "4000 s wide, even for 4000 s"
        );
        assert_eq!(
            ruler.look_at_clocks(reading_at(0, 1400)),
            (2409 * S, false),
            "and another one, backwards"
        );
        assert_eq!(ruler.jumps, 2);
    }

    #[test]
    fn what_was_kept_in_another_boot_is_a_time_and_no_ruler() {
        let mut old = ClockMonitor::begin("a", reading_at(1000, 500), None);
        old.look_at_clocks(reading_at(1100, 600));
        let text = old.to_text();
        assert!(ClockMonitor::resume(&text, "b", reading_at(1200, 5)).is_none());
        assert!(
            ClockMonitor::resume(&text, "a", reading_at(1200, 5)).is_none(),
            "the boot clock cannot go back"
        );
        assert!(ClockMonitor::resume("boot a\ntime-ns x\n", "a", reading_at(1200, 5)).is_none());
        assert_eq!(ClockMonitor::time_in(&text), Some(1100 * S));
        // The machine was off for a week, or the clock is wrong: nothing distinguishes the two, so it waits an hour.
        let week = 7 * 86_400;
        let mut ruler = ClockMonitor::begin("b", reading_at(1100 + week, 5), ClockMonitor::time_in(&text));
        assert_eq!(ruler.look_at_clocks(reading_at(1101 + week, 6)), (1101 * S, false));
        assert_eq!(ruler.look_at_clocks(reading_at(1100 + week + 3600, 3605)), ((4700 + week) * S, true));
        let mut slow_monitor = ClockMonitor::begin("b", reading_at(0, 5), Some(1100 * S));
        assert_eq!(
            (slow_monitor.look_at_clocks(reading_at(1, 6)), slow_monitor.jumps),
            ((1101 * S, false), 1)
        );
    }
}
