//! The statistics of a market-data handler as text: they report the state of each line of a channel while there is
//! time to repair it.

use crate::output::grouped;
use unitape_marketdata::engine::{ChannelStats, EngineStats, LineStats};

/// Writes a line for each channel and a line for all its products.
pub fn lines(stats: &EngineStats) -> Vec<String> {
    let mut lines: Vec<String> = stats.channels.iter().map(channel_text).collect();
    let products = &stats.products;
    lines.push(format!(
        "messages: {} missing in {} gaps, {} old; {} books recovered by {} snapshots ({} early), {} levels waiting; {} entries left out; {} packets refused, {} to other addresses",
        grouped(products.missing),
        grouped(products.gaps),
        grouped(products.old),
        grouped(products.recovered),
        grouped(products.snapshots),
        grouped(products.snapshots_early),
        grouped(stats.waiting as u64),
        grouped(products.unknown),
        grouped(stats.refused),
        grouped(stats.unknown),
    ));
    lines
}

fn channel_text(stats: &ChannelStats) -> String {
    let named_lines = stats.lines.iter().zip(["A", "B"]);
    let used_lines =
        named_lines.filter(|(line, name)| line.packets > 0 || line.missed > 0 || line.down || *name == "A");
    let lines: Vec<String> = used_lines.map(|(line_stats, name)| line_text(line_stats, name)).collect();
    format!(
        "{}: {}; {} lost in {} gaps, {} late, {} recovered by the other line, {} restarts",
        stats.name,
        lines.join("; "),
        grouped(stats.lost),
        grouped(stats.gaps),
        grouped(stats.late),
        grouped(stats.recovered),
        grouped(stats.restarts),
    )
}

fn line_text(stats: &LineStats, name: &str) -> String {
    format!(
        "{name} {}{} packets, {} first, {} missed, {} twice, {} reordered, {} corrupt",
        if stats.down { "down, " } else { "" },
        grouped(stats.packets),
        grouped(stats.first),
        grouped(stats.missed),
        grouped(stats.twice),
        grouped(stats.reordered),
        grouped(stats.corrupt),
    )
}
