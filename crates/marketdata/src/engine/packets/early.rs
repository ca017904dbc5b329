//! The engine keeps packets of snapshots, and uses them when a gap is noticed.

use super::Engine;
use crate::engine::around::Of;
use crate::engine::config::Reset;
use crate::engine::step::{At, Level, Outcome, Role, Step, Steps};

impl Engine {
    /// Snapshots of a pair that came before the gap that was just noticed, and have what is missing in them.
    #[cold]
    #[inline(never)]
    pub(super) fn use_early(&mut self, pair: u16, out: &mut impl Steps) {
        let early = std::mem::take(&mut self.early[usize::from(pair)]);
        let before = self.core.products.counters.snapshots;
        for (packet, bytes) in early.latest_first() {
            if !self.core.products.wants(pair) {
                break;
            }
            if packet.restarts != self.core.products.restarts {
                continue;
            }
            let channel = packet.of.channel;
            let opened = self.packets.open(channel, bytes);
            let read =
                opened.and_then(|(_, body)| self.packets.body(channel, (bytes, body), &mut self.core.ids));
            if read.is_ok() {
                self.core.batch(&self.packets.batch, &packet.of, bytes, &mut EarlySteps(&mut *out));
            }
        }
        self.core.products.counters.snapshots_early += self.core.products.counters.snapshots - before;
        self.early[usize::from(pair)] = early;
    }

    /// Keeps a packet of snapshots for a gap that is noticed later.
    #[inline]
    pub(super) fn keep_early(&mut self, of: &Of, payload: &[u8]) {
        let channel = &self.config.channels[of.channel.index()];
        if channel.role == Role::Snapshot && self.config.reset != Reset::Never {
            let restarts = self.core.products.restarts;
            self.early[usize::from(channel.pair)].keep(of, restarts, payload, &self.config.recovery);
        }
    }
}

/// Steps of a packet that was accounted for when it came.
struct EarlySteps<'s, S>(&'s mut S);

impl<S: Steps> Steps for EarlySteps<'_, S> {
    fn step(&mut self, at: &At<'_>, step: Step<'_>) {
        match step {
            // One that is bad was of no use when it came, either.
            Step::Refused(_) => {}
            Step::End(_) => self.0.step(at, Step::End(Outcome::Early)),
            step => self.0.step(at, step),
        }
    }

    fn level(&mut self, at: &At<'_>, level: &Level) {
        self.0.level(at, level);
    }
}
