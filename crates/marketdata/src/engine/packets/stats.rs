//! Statistics of the engine, summed up.

use super::{Engine, SenderStream};
use crate::engine::arbitration::LineStats;
use crate::engine::stats::{ChannelStats, EngineStats};

impl Engine {
    /// Collects the statistics of the engine.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let mut channels: Vec<_> = self
            .config
            .channels
            .iter()
            .map(|c| ChannelStats { name: c.name.clone(), ..ChannelStats::default() })
            .collect();
        for sent in &self.streams {
            let (stats, stream) = (&mut channels[sent.channel.index()], &sent.stream);
            stats.gaps += stream.gaps;
            stats.lost = stats.lost.saturating_add(stream.lost_packets);
            stats.late += stream.late_packets;
            stats.restarts += stream.restarts;
            let lines = [0, 1].map(|line| self.line_stats(sent, line));
            let missed = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.missed));
            let heard = lines.iter().filter(|l| l.packets > 0 || l.missed > 0).count() as u64;
            let lost_by_all = heard.saturating_mul(stream.lost_packets);
            stats.recovered = stats.recovered.saturating_add(missed.saturating_sub(lost_by_all));
            for (sum, line) in stats.lines.iter_mut().zip(lines) {
                sum.add(&line);
            }
        }
        for (stats, pulse) in channels.iter_mut().zip(&self.pulses) {
            for (n, line) in (0..).zip(&mut stats.lines) {
                line.down = pulse.is_down(n);
            }
        }
        EngineStats {
            channels,
            products: self.core.products.counters,
            waiting: self.core.products.waiting(),
            unknown: self.counters.unknown_packets,
            refused: self.counters.refused_packets,
        }
    }

    /// Returns the statistics of a line of a stream. At the end of the input they include the packets missing at the
    /// end of the line.
    fn line_stats(&self, sent: &SenderStream, line: u8) -> LineStats {
        let mut stats = *sent.stream.line_stats(line);
        let pulse = &self.pulses[sent.channel.index()];
        if pulse.is_down(line) || self.is_over && pulse.has_line(line) {
            stats.missed = stats.missed.saturating_add(sent.stream.packets_behind(line));
        }
        stats
    }
}
