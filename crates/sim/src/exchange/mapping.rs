//! The configuration with which a handler listens to the exchange.

use super::{ExchangeChannel, ExchangeConfig, ExchangeLine};
use std::fmt::Write;

impl ExchangeConfig {
    /// Writes a handler's mapping file for this exchange, based on the mapping `t7-emdi`; `templates` returns the
    /// template file of a channel.
    #[must_use]
    pub fn mapping(&self, templates: impl Fn(ExchangeChannel) -> String) -> String {
        let mut text =
            "name = \"box\"\nformat = \"fast\"\n\n[fast]\nlike = \"t7-emdi\"\nvenue = \"XBOX\"\n".to_owned();
        for channel in [ExchangeChannel::Incremental, ExchangeChannel::Snapshot, ExchangeChannel::Reference] {
            let partitions = if channel == ExchangeChannel::Reference { 1 } else { self.partitions };
            let addresses = |line| {
                let all = (1..=partitions).map(|p| format!("\"{}\"", self.address(channel, line, p)));
                all.collect::<Vec<_>>().join(", ")
            };
            let (name, a) = (channel.name(), addresses(ExchangeLine::A));
            _ = write!(text, "\n[[fast.channel]]\nname = \"{name}\"\nrole = \"{name}\"\na = [{a}]\n");
            if self.lines(channel) > 1 {
                _ = writeln!(text, "b = [{}]", addresses(ExchangeLine::B));
            }
            _ = writeln!(text, "templates = [{:?}]", templates(channel));
        }
        text
    }
}
