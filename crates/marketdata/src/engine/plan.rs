//! The configuration, compiled: numbers in place of names.
//!
//! Each field that is asked for has a [`FieldRole`], in each template in which it is; each template is of a kind. Codes are
//! looked up in tables of 256. Errors name their place in the file.

use super::codes::{VenueCodes, codes};
use super::config::kind_word;
use super::config::{ArbitrationWindow, TimeUnit};
use super::config::{
    ByteOrder, ChannelConfig, ChannelsConfig, DictionaryResetMode, FastMessageConfig, MessageKind,
    NumberingScope, PacketHeaderConfig, RecoverySettings,
};
use super::config_refusal::{ConfigRefusal, ConfigResult, refuse_config};
use super::field_roles::{FIELDS, FieldRole};
use super::market_event::ChannelRole;
use super::packet_header::HeaderProgram;
use super::template_set::{TemplateSet, load_template_set};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use unitape_model::ChannelId;

/// The configuration of a handler.
#[derive(Clone, Debug)]
pub struct HandlerConfig {
    pub(super) numbering_scope: NumberingScope,
    pub(super) reset_mode: DictionaryResetMode,
    pub(super) time_unit: TimeUnit,
    pub(super) px_exponent: i8,
    pub(super) qty_exponent: i8,
    pub(super) market_depth: Option<u16>,
    /// The reference data that give the number of levels, if nothing else does.
    pub(super) depth_source: DepthSource,
    pub(super) arbitration_window: ArbitrationWindow,
    pub(super) recovery: RecoverySettings,
    pub(super) packet_framing: PacketFraming,
    pub(super) codes: VenueCodes,
    pub(super) sets: Vec<TemplateSet>,
    pub(super) channels: Vec<ChannelPlan>,
    pub(super) addresses: Vec<(SocketAddr, ChannelId, u8)>,
    /// Channels of how many pairs there are, and which of them have snapshots.
    pub(super) pairs: Vec<bool>,
}

/// The settings in a table's own file.
#[derive(Clone, Copy, Debug)]
pub struct OverrideSummary {
    /// The number of its messages.
    pub messages: usize,
    /// The table has its own framing.
    pub has_own_framing: bool,
}

/// Whether the number of levels is known only from reference data, and from which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DepthSource {
    #[default]
    Otherwise,
    OfProducts,
    OfInstruments,
}

/// A channel, compiled.
#[derive(Clone, Debug)]
pub(super) struct ChannelPlan {
    pub name: String,
    pub role: ChannelRole,
    pub channel_pair: u16,
    /// Index of the channel's templates in [`HandlerConfig::sets`].
    pub template_set: u16,
}

/// The framing of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketFraming {
    /// The first message is the header.
    Header,
    /// Bytes of a number, and bytes after it, before each message or once.
    Number { bytes: u8, order: ByteOrder, skip: u8, every: bool },
    /// Nothing before messages.
    Plain,
    /// A length before each message.
    Length,
}

impl HandlerConfig {
    /// Compiles a table; `overrides` says which parts the file sets itself, beyond the mapping that it is like. `files`
    /// are all template files that the table names.
    ///
    /// # Errors
    /// Fails at the first error and returns its location.
    pub fn new(
        text: &ChannelsConfig,
        overrides: OverrideSummary,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, ConfigRefusal> {
        let framing_text = text.framing.clone().unwrap_or_default();
        let framing = check_framing(&framing_text)?;
        if framing == PacketFraming::Header && text.reset == Some(DictionaryResetMode::Never) {
            return refuse_config(
                &["reset"],
                "a header is a message of its own: dictionaries are emptied at least by packet",
            );
        }
        let mut config = Self {
            numbering_scope: text.key.unwrap_or_default(),
            reset_mode: text.reset.unwrap_or_default(),
            time_unit: text.time.unwrap_or_default(),
            px_exponent: text.px_exponent.unwrap_or(0),
            qty_exponent: text.qty_exponent.unwrap_or(0),
            market_depth: text.market_depth,
            depth_source: DepthSource::Otherwise,
            arbitration_window: text.window.unwrap_or_default(),
            recovery: text.recovery.unwrap_or_default(),
            packet_framing: framing,
            codes: codes(text)?,
            sets: Vec::new(),
            channels: Vec::new(),
            addresses: Vec::new(),
            pairs: Vec::new(),
        };
        config.check_bounds()?;
        let mut pairs: Vec<(&str, bool)> = Vec::new();
        for (i, channel) in text.channel.iter().enumerate() {
            let index_text = i.to_string();
            let key_path = ["channel", &index_text];
            let pair = match pairs.iter().position(|(name, _)| *name == channel.pair) {
                Some(pair) => pair,
                None => {
                    pairs.push((&channel.pair, false));
                    pairs.len() - 1
                }
            };
            pairs[pair].1 |= channel.role == ChannelRole::Snapshot;
            config.take_addresses(i, channel)?;
            let names = if channel.templates.is_empty() { &text.templates } else { &channel.templates };
            if names.is_empty() {
                return refuse_config(
                    &key_path,
                    "no templates: say fast.templates, or `templates` of the channel",
                );
            }
            let set = match config.sets.iter().position(|set| &set.files == names) {
                Some(set) => set,
                None => {
                    config.sets.push(load_template_set(names, files)?);
                    config.sets.len() - 1
                }
            };
            let (pair, set) = (pair as u16, set as u16);
            config.channels.push(ChannelPlan {
                name: channel.name.clone(),
                role: channel.role,
                channel_pair: pair,
                template_set: set,
            });
        }
        if config.channels.is_empty() {
            return refuse_config(&[], "no channels: say where packets come from in [[fast.channel]]");
        }
        config.pairs = pairs.into_iter().map(|(_, snapshots)| snapshots).collect();
        config.check_messages(text, overrides.messages)?;
        config.check_pairs(text)?;
        config.check_lines(text)?;
        if framing == PacketFraming::Header {
            config.header(&framing_text, overrides.has_own_framing)?;
        }
        Ok(config)
    }

    /// Checks the parts of a table that need neither templates nor channels.
    ///
    /// # Errors
    /// Returns the first error and its location.
    pub fn check_parts(text: &ChannelsConfig) -> Result<(), ConfigRefusal> {
        check_framing(&text.framing.clone().unwrap_or_default())?;
        codes(text)?;
        for (i, message) in text.message.iter().enumerate() {
            fields(message, &["message", &i.to_string()])?;
        }
        Ok(())
    }

    /// Returns the name of a channel.
    ///
    /// # Panics
    /// Panics if there is no channel with this number.
    pub fn channel(&self, channel: ChannelId) -> &str {
        &self.channels[channel.index()].name
    }

    /// Iterates over the multicast addresses, each with its channel and line.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, ChannelId, u8)> {
        self.addresses.iter().copied()
    }

    fn check_bounds(&self) -> ConfigResult<()> {
        let ArbitrationWindow { packets, ns, dead_ns, far, silent_ns, .. } = self.arbitration_window;
        if packets == 0 || packets > 4096 {
            return refuse_config(&["window", "packets"], "window.packets: 1 to 4096");
        }
        if ns < 0 || dead_ns < 0 {
            return refuse_config(&["window"], "window: times are not negative");
        }
        if silent_ns <= 0 {
            return refuse_config(&["window", "silent_ns"], "window.silent_ns: more than 0");
        }
        if self.recovery.early_bytes > EARLY_BYTES_MAX {
            return refuse_config(&["recovery", "early_bytes"], "recovery.early_bytes: at most 64 MiB");
        }
        if far < u32::from(packets) {
            return refuse_config(&["window", "far"], "window.far: not less than window.packets");
        }
        if self.market_depth == Some(0) {
            return refuse_config(&["market_depth"], "market_depth: at least 1");
        }
        Ok(())
    }

    fn take_addresses(&mut self, channel: usize, text: &ChannelConfig) -> ConfigResult<()> {
        let index_text = channel.to_string();
        for (line, (key, addresses)) in [("a", &text.a), ("b", &text.b)].into_iter().enumerate() {
            for address in addresses {
                let key_path = ["channel", &index_text, key];
                let Ok(channel_address) = address.parse::<SocketAddr>() else {
                    return refuse_config(
                        &key_path,
                        format!("`{address}` is no address and port, as 224.0.50.1:59001"),
                    );
                };
                if self.addresses.iter().any(|(used_address, ..)| *used_address == channel_address) {
                    return refuse_config(&key_path, format!("{address} appears twice"));
                }
                self.addresses.push((channel_address, ChannelId(channel as u16), line as u8));
            }
        }
        match text.a.is_empty() && text.b.is_empty() {
            true => refuse_config(
                &["channel", &index_text],
                "no address: say `a`, and `b` where there is a second line",
            ),
            false => Ok(()),
        }
    }

    fn check_messages(&mut self, text: &ChannelsConfig, own_count: usize) -> ConfigResult<()> {
        let mut depth_source = DepthSource::Otherwise;
        for (i, message) in text.message.iter().enumerate() {
            let index_text = i.to_string();
            let key_path = ["message", &index_text];
            let fields = fields(message, &key_path)?;
            let (mut templates, mut match_counts) = (0, vec![0; fields.len()]);
            for set in &mut self.sets {
                for index in 0..set.templates.list().len() {
                    let name = &set.templates.list()[index].name.local;
                    if set.kind_by_template[index].is_some()
                        || !message.templates.iter().any(|p| is_like(name, p))
                    {
                        continue;
                    }
                    set.kind_by_template[index] = Some(message.kind);
                    templates += 1;
                    for (n, (path, tag)) in fields.iter().enumerate() {
                        let added = set.request_field(index, path, *tag);
                        match_counts[n] += added;
                        if added > 0 && *tag == FieldRole::MarketDepth {
                            depth_source = match message.kind {
                                MessageKind::Product => DepthSource::OfProducts,
                                MessageKind::Instrument if depth_source == DepthSource::Otherwise => {
                                    DepthSource::OfInstruments
                                }
                                _ => depth_source,
                            };
                        }
                    }
                }
            }
            if templates == 0 && i < own_count {
                return refuse_config(
                    &[key_path[0], key_path[1], "templates"],
                    format!("no template is called {}", message.templates.join(" or ")),
                );
            }
            let name_of = |path: &str| {
                let named_field = message.fields.iter().find(|(_, p)| *p == path);
                named_field.map_or("entries", |(name, _)| name)
            };
            let lacks = fields.iter().zip(&match_counts).find(|((path, _), match_count)| {
                **match_count == 0
                    && (i < own_count || required_fields(message.kind).contains(&name_of(path)))
            });
            if let Some(((path, _), _)) = lacks.filter(|_| templates > 0) {
                let name = name_of(path);
                let refusal_path: &[&str] = match name {
                    "entries" => &[key_path[0], key_path[1], "entries"],
                    name => &[key_path[0], key_path[1], "fields", name],
                };
                return refuse_config(
                    refusal_path,
                    format!("{name}: no field `{path}` in {}", message.templates.join(", ")),
                );
            }
            let numbered =
                fields.iter().zip(&match_counts).any(|((_, tag), n)| *tag == FieldRole::Sequence && *n > 0);
            if message.kind == MessageKind::Depth && templates > 0 && !numbered {
                self.check_unnumbered(&key_path)?;
            }
        }
        let has_reference = self.channels.iter().any(|c| c.role == ChannelRole::Reference);
        if has_reference && self.market_depth.is_none() {
            self.depth_source = depth_source;
        }
        Ok(())
    }

    /// Checks that copies on two lines can be distinguished, and that dictionaries are the sender's.
    fn check_lines(&self, text: &ChannelsConfig) -> ConfigResult<()> {
        let two = text.channel.iter().enumerate().find(|(_, c)| !c.a.is_empty() && !c.b.is_empty());
        let Some((index, channel)) = two else { return Ok(()) };
        let key_path = ["channel", &index.to_string(), "b"];
        if self.reset_mode == DictionaryResetMode::Never {
            // A copy that was begun and is bad, or one that is left out, has changed what the next is read by.
            let reason = "two lines need dictionaries that are emptied, by packet or by message: reset = \"never\" is for one";
            return refuse_config(&key_path, reason);
        }
        let depth = |m: &&super::config::FastMessageConfig| {
            m.kind == MessageKind::Depth && !m.fields.contains_key("sequence")
        };
        if matches!(self.packet_framing, PacketFraming::Plain | PacketFraming::Length)
            && channel.role == ChannelRole::Incremental
            && let Some(message) = text.message.iter().find(depth)
        {
            let reason = format!(
                "two lines, but nothing identifies copies: neither packets nor messages {} have a number",
                message.templates.join(", ")
            );
            return refuse_config(&key_path, reason);
        }
        Ok(())
    }

    /// Checks depth without numbers: a snapshot would not show which of it is included.
    fn check_unnumbered(&self, message: &[&str; 2]) -> ConfigResult<()> {
        match self.channels.iter().find(|c| c.role == ChannelRole::Snapshot) {
            None => Ok(()),
            Some(channel) => {
                let reason = format!(
                    "kind depth needs the field `sequence` where there are snapshots (channel {}): by it one knows which levels \
                     they have in them",
                    channel.name
                );
                refuse_config(message, reason)
            }
        }
    }

    /// Checks that reference data belong to the pair of the messages that they describe.
    fn check_pairs(&self, text: &ChannelsConfig) -> ConfigResult<()> {
        let has_incremental =
            |pair: &str| text.channel.iter().any(|c| c.role == ChannelRole::Incremental && c.pair == pair);
        let is_unpaired =
            |c: &super::config::ChannelConfig| c.role == ChannelRole::Reference && !has_incremental(&c.pair);
        let has_incremental = text.channel.iter().any(|c| c.role == ChannelRole::Incremental);
        match text.channel.iter().position(is_unpaired).filter(|_| has_incremental) {
            None => Ok(()),
            Some(channel) => {
                let unpaired = &text.channel[channel];
                let reason = format!(
                    "channel {} is of pair `{}`, which has no incremental channel: no book would know of its instruments; \
                     give it the `pair` of the channels that it recovers, or leave `pair` away on all",
                    unpaired.name, unpaired.pair
                );
                refuse_config(&["channel", &channel.to_string(), "pair"], reason)
            }
        }
    }

    fn header(&mut self, text: &PacketHeaderConfig, is_own: bool) -> ConfigResult<()> {
        let name = text.header.as_deref().unwrap_or_default();
        let fields = [
            ("sequence", &text.sequence, FieldRole::HeadSequence),
            ("sender", &text.sender, FieldRole::HeadSender),
            ("partition", &text.partition, FieldRole::HeadPartition),
            ("time", &text.time, FieldRole::HeadTime),
            ("reset", &text.reset, FieldRole::HeadReset),
        ];
        let (mut templates, mut match_counts) = (0, [0; 5]);
        for set in &mut self.sets {
            for index in 0..set.templates.list().len() {
                if !is_like(&set.templates.list()[index].name.local, name) {
                    continue;
                }
                templates += 1;
                set.headers[index] = true;
                let requests = fields.iter().filter_map(|(_, path, tag)| Some((path.as_deref()?, *tag)));
                let requested_fields: Vec<_> = requests.collect();
                set.header_program = set
                    .header_program
                    .take()
                    .or_else(|| HeaderProgram::compile(&set.templates.list()[index], &requested_fields));
                for (n, (_, path, tag)) in fields.iter().enumerate() {
                    if let Some(path) = path {
                        match_counts[n] += set.request_field(index, path, *tag);
                    }
                }
            }
        }
        if templates == 0 {
            return refuse_config(&["framing", "header"], format!("header: no template is called {name}"));
        }
        for ((key, path, _), match_count) in fields.into_iter().zip(match_counts) {
            if let Some(path) = path
                && match_count == 0
                && (is_own || key == "sequence")
            {
                return refuse_config(&["framing", key], format!("{key}: no field `{path}` in {name}"));
            }
        }
        Ok(())
    }
}

fn check_framing(text: &PacketHeaderConfig) -> ConfigResult<PacketFraming> {
    let framings = [text.header.is_some(), text.number_bytes > 0, text.length];
    if framings.iter().filter(|t| **t).count() > 1 {
        return refuse_config(&["framing"], "framing: one of `header`, `number_bytes` and `length`");
    }
    if text.header.is_some() {
        return match &text.sequence {
            Some(_) => Ok(PacketFraming::Header),
            None => refuse_config(
                &["framing"],
                "framing: `header` needs `sequence`, its field with the packet's number",
            ),
        };
    }
    if text.length {
        return Ok(PacketFraming::Length);
    }
    match text.number_bytes {
        0 => Ok(PacketFraming::Plain),
        1..=8 => {
            let PacketHeaderConfig { number_bytes: bytes, order, skip, every, .. } = *text;
            Ok(PacketFraming::Number { bytes, order, skip, every })
        }
        _ => refuse_config(&["framing", "number_bytes"], "number_bytes: 1 to 8"),
    }
}

/// Returns the fields of a message, with path and role, including the fields of entries.
fn fields<'t>(
    message: &'t FastMessageConfig,
    key_path: &[&str; 2],
) -> ConfigResult<Vec<(&'t String, FieldRole)>> {
    let mut fields = Vec::new();
    for (name, path) in &message.fields {
        match FIELDS.iter().find(|(field_name, _)| field_name == name) {
            Some((_, tag)) => fields.push((path, *tag)),
            None => {
                let field_names: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
                let reason = format!("no field `{name}`; fields: {}", field_names.join(", "));
                return refuse_config(&[key_path[0], key_path[1], "fields", name], reason);
            }
        }
    }
    if let Some(lacks) =
        required_fields(message.kind).iter().find(|name| !message.fields.contains_key(**name))
    {
        return refuse_config(
            key_path,
            format!("kind {} needs the field `{lacks}`", kind_word(message.kind)),
        );
    }
    if let Some(entries) = &message.entries {
        fields.push((entries, FieldRole::Entries));
    }
    Ok(fields)
}

/// Returns the fields without which a message of this kind means nothing.
fn required_fields(kind: MessageKind) -> &'static [&'static str] {
    match kind {
        MessageKind::Depth => &["instrument"],
        MessageKind::Snapshot => &["instrument", "last"],
        MessageKind::Beacon => &["last"],
        MessageKind::ProductState => &["product_state"],
        MessageKind::InstrumentState | MessageKind::MassState => &["instrument", "instrument_state"],
        MessageKind::Sequenced => &["sequence"],
        MessageKind::Product => &["product"],
        MessageKind::Instrument => &["instrument"],
        MessageKind::Reset | MessageKind::Ignore => &[],
    }
}

fn is_like(name: &str, pattern: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(start), _) => name.starts_with(start),
        (_, Some(end)) => name.ends_with(end),
        _ => name == pattern,
    }
}

/// Bytes of early snapshots of a pair, at most.
const EARLY_BYTES_MAX: usize = 64 << 20;
