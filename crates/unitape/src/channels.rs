//! The statistics of a market-data handler as text: they report the state of each line of a channel while there is
//! time to repair it.

use crate::output::grouped;
use unitape_marketdata::engine::{ChannelStats, EngineStats, LineStats};

/// A line for each channel, and one for all of its products.
pub fn lines(stats: &EngineStats) -> Vec<String> {
    let mut lines: Vec<String> = stats.channels.iter().map(channel).collect();
    let of = &stats.products;
    lines.push(format!(
        "messages: {} missing in {} gaps, {} old; {} books recovered by {} snapshots ({} early), {} levels waiting; {} entries left out; {} packets refused, {} to other addresses",
        grouped(of.missing),
        grouped(of.gaps),
        grouped(of.old),
        grouped(of.recovered),
        grouped(of.snapshots),
        grouped(of.snapshots_early),
        grouped(stats.waiting as u64),
        grouped(of.unknown),
        grouped(stats.refused),
        grouped(stats.unknown),
    ));
    lines
}

fn channel(of: &ChannelStats) -> String {
    let shown = of.lines.iter().zip(["A", "B"]);
    let shown = shown.filter(|(line, name)| line.packets > 0 || line.missed > 0 || line.down || *name == "A");
    let lines: Vec<String> = shown.map(|(of, name)| line(of, name)).collect();
    format!(
        "{}: {}; {} lost in {} gaps, {} late, {} recovered by the other line, {} restarts",
        of.name,
        lines.join("; "),
        grouped(of.lost),
        grouped(of.gaps),
        grouped(of.late),
        grouped(of.recovered),
        grouped(of.restarts),
    )
}

fn line(of: &LineStats, name: &str) -> String {
    format!(
        "{name} {}{} packets, {} first, {} missed, {} twice, {} reordered, {} corrupt",
        if of.down { "down, " } else { "" },
        grouped(of.packets),
        grouped(of.first),
        grouped(of.missed),
        grouped(of.twice),
        grouped(of.reordered),
        grouped(of.corrupt),
    )
}
