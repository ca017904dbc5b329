//! The readings of the clocks, which only retention uses; a test brings clocks of its own.

use std::fmt;
use std::sync::Arc;

/// Two clocks read at the same moment: the wall clock, which people set, and the boot clock, which nobody can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Nanoseconds since 1970, as the machine's calendar has it; may jump.
    pub wall_ns: i64,
    /// Nanoseconds since the machine was started, sleep included; never jumps.
    pub boot_ns: u64,
}

/// Where [`ClockReading`] comes from.
#[derive(Clone)]
pub struct ClockSource(Arc<dyn Fn() -> ClockReading + Send + Sync>);

impl ClockSource {
    /// Makes a clock that calls `now` for each reading.
    pub fn new(now: impl Fn() -> ClockReading + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Reads both clocks.
    pub fn now(&self) -> ClockReading {
        (self.0)()
    }
}

impl Default for ClockSource {
    fn default() -> Self {
        Self::new(|| ClockReading {
            wall_ns: read_clock(rustix::time::ClockId::Realtime),
            boot_ns: read_clock(BOOT) as u64,
        })
    }
}

impl fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClockSource")
    }
}

#[cfg(target_os = "linux")]
const BOOT: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

fn read_clock(clock: rustix::time::ClockId) -> i64 {
    let t = rustix::time::clock_gettime(clock);
    t.tv_sec.saturating_mul(1_000_000_000).saturating_add(t.tv_nsec)
}
