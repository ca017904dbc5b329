//! A summary of a configuration, for reports.

use super::config::{NumberingScope, kind_word};
use super::config_refusal::ConfigResult;
use super::plan::HandlerConfig;
use super::table::FastMappingTable;
use serde::Serialize;
use std::collections::BTreeMap;

/// The summary of a table `[fast]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigSummary {
    /// As events name it; empty where it says none.
    pub venue: String,
    /// The unit that numbers messages: `product` or `channel`.
    pub numbered_by: &'static str,
    /// None in one that others are like.
    pub channels: Vec<ChannelSummary>,
    /// Number of message definitions, by kind.
    pub messages: BTreeMap<&'static str, usize>,
    /// Templates that nothing names: their messages are ignored.
    pub passed_over: Vec<String>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelSummary {
    /// Its name.
    pub name: String,
    /// `incremental`, `snapshot`, `reference`.
    pub role: &'static str,
    /// Addresses of line A and line B.
    pub addresses: [usize; 2],
    /// Its templates.
    pub templates: usize,
    /// Templates that a message definition or the header uses.
    pub used: usize,
}

impl ConfigSummary {
    /// Summarises a table.
    ///
    /// # Errors
    /// Fails at an error in the table.
    pub fn from_table(table: &FastMappingTable) -> ConfigResult<Self> {
        let full_config = table.with_base();
        let mut summary = Self {
            venue: table.venue().to_owned(),
            numbered_by: match full_config.key.unwrap_or_default() {
                NumberingScope::Product => "product",
                NumberingScope::Channel => "channel",
            },
            channels: Vec::new(),
            messages: BTreeMap::new(),
            passed_over: Vec::new(),
        };
        for message in &full_config.message {
            *summary.messages.entry(kind_word(message.kind)).or_default() += 1;
        }
        if !full_config.channel.is_empty() {
            summary.add_channels(&table.config()?);
        }
        Ok(summary)
    }

    fn add_channels(&mut self, config: &HandlerConfig) {
        for (n, channel) in config.channels.iter().enumerate() {
            let set = &config.sets[usize::from(channel.template_set)];
            let of_line = |line| {
                let channel_lines =
                    config.addresses.iter().map(|(_, channel, line)| (channel.index(), *line));
                channel_lines.filter(|channel_line| *channel_line == (n, line)).count()
            };
            self.channels.push(ChannelSummary {
                name: channel.name.clone(),
                role: channel.role.word(),
                addresses: [0, 1].map(of_line),
                templates: set.kind_by_template.len(),
                used: set
                    .kind_by_template
                    .iter()
                    .zip(&set.headers)
                    .filter(|(k, header)| k.is_some() || **header)
                    .count(),
            });
        }
        for set in &config.sets {
            let unused =
                set.kind_by_template.iter().zip(&set.headers).map(|(kind, header)| kind.is_none() && !header);
            let names = set.templates.list().iter().map(|template| &template.name.local);
            self.passed_over
                .extend(names.zip(unused).filter(|(_, unused)| *unused).map(|(name, _)| name.clone()));
        }
        self.passed_over.sort();
        self.passed_over.dedup();
    }
}
