//! The configuration, compiled: numbers in place of names.
//!
//! Each field that is asked for has a [`Tag`], in each template in which it is; each template is of a kind. Codes are
//! looked up in tables of 256. What is wrong is told with its place in the file.

use super::codes::{Codes, codes};
use super::config::word;
use super::config::{ChannelText, FastText, FramingText, Key, Kind, MessageText, Order, Recovery, Reset};
use super::config::{Unit, Window};
use super::head::Plain;
use super::sets::{Set, set};
use super::step::Role;
use super::tags::{FIELDS, Tag};
use super::wrong::{Made, Wrong, wrong};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use unitape_model::ChannelId;

/// What a handler is made by.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) key: Key,
    pub(super) reset: Reset,
    pub(super) time: Unit,
    pub(super) px_exponent: i8,
    pub(super) qty_exponent: i8,
    pub(super) market_depth: Option<u16>,
    /// Which reference data tell how many levels there are, where nothing else does.
    pub(super) depth_told: DepthTold,
    pub(super) window: Window,
    pub(super) recovery: Recovery,
    pub(super) framing: Framing,
    pub(super) codes: Codes,
    pub(super) sets: Vec<Set>,
    pub(super) channels: Vec<Channel>,
    pub(super) addresses: Vec<(SocketAddr, ChannelId, u8)>,
    /// Channels of how many pairs there are, and which of them have snapshots.
    pub(super) pairs: Vec<bool>,
}

/// What of a table is of the file itself.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// So many messages.
    pub messages: usize,
    /// Its framing.
    pub framing: bool,
}

/// What tells how many levels there are, and nothing else does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DepthTold {
    #[default]
    Otherwise,
    OfProducts,
    OfInstruments,
}

/// A channel, compiled.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub name: String,
    pub role: Role,
    pub pair: u16,
    /// Its templates, in [`Config::sets`].
    pub set: u16,
}

/// How packets are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// The first message is the header.
    Header,
    /// Bytes of a number, and bytes behind it, before each message or once.
    Number { bytes: u8, order: Order, skip: u8, every: bool },
    /// Nothing before messages.
    Plain,
    /// A length before each message.
    Length,
}

impl Config {
    /// Compiles a table; `own` says what of it is of the file itself, and not of the mapping that it is like. `files` are all
    /// files of templates that it names.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn new(text: &FastText, own: Own, files: &BTreeMap<String, Vec<u8>>) -> Result<Self, Wrong> {
        let framing_text = text.framing.clone().unwrap_or_default();
        let framing = framing(&framing_text)?;
        if framing == Framing::Header && text.reset == Some(Reset::Never) {
            return wrong(
                &["reset"],
                "a header is a message of its own: dictionaries are emptied at least by packet",
            );
        }
        let mut config = Self {
            key: text.key.unwrap_or_default(),
            reset: text.reset.unwrap_or_default(),
            time: text.time.unwrap_or_default(),
            px_exponent: text.px_exponent.unwrap_or(0),
            qty_exponent: text.qty_exponent.unwrap_or(0),
            market_depth: text.market_depth,
            depth_told: DepthTold::Otherwise,
            window: text.window.unwrap_or_default(),
            recovery: text.recovery.unwrap_or_default(),
            framing,
            codes: codes(text)?,
            sets: Vec::new(),
            channels: Vec::new(),
            addresses: Vec::new(),
            pairs: Vec::new(),
        };
        config.bounds()?;
        let mut pairs: Vec<(&str, bool)> = Vec::new();
        for (i, channel) in text.channel.iter().enumerate() {
            let at = i.to_string();
            let place = ["channel", &at];
            let pair = match pairs.iter().position(|(name, _)| *name == channel.pair) {
                Some(pair) => pair,
                None => {
                    pairs.push((&channel.pair, false));
                    pairs.len() - 1
                }
            };
            pairs[pair].1 |= channel.role == Role::Snapshot;
            config.take_addresses(i, channel)?;
            let names = if channel.templates.is_empty() { &text.templates } else { &channel.templates };
            if names.is_empty() {
                return wrong(&place, "no templates: say fast.templates, or `templates` of the channel");
            }
            let set = match config.sets.iter().position(|set| &set.files == names) {
                Some(set) => set,
                None => {
                    config.sets.push(set(names, files)?);
                    config.sets.len() - 1
                }
            };
            let (pair, set) = (pair as u16, set as u16);
            config.channels.push(Channel { name: channel.name.clone(), role: channel.role, pair, set });
        }
        if config.channels.is_empty() {
            return wrong(&[], "no channels: say where packets come from in [[fast.channel]]");
        }
        config.pairs = pairs.into_iter().map(|(_, snapshots)| snapshots).collect();
        config.messages(text, own.messages)?;
        config.check_pairs(text)?;
        config.check_lines(text)?;
        if framing == Framing::Header {
            config.header(&framing_text, own.framing)?;
        }
        Ok(config)
    }

    /// What can be said of a table without templates and channels.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn check(text: &FastText) -> Result<(), Wrong> {
        framing(&text.framing.clone().unwrap_or_default())?;
        codes(text)?;
        for (i, message) in text.message.iter().enumerate() {
            fields(message, &["message", &i.to_string()])?;
        }
        Ok(())
    }

    /// The name of a channel.
    ///
    /// # Panics
    /// When there is none of this number.
    pub fn channel(&self, channel: ChannelId) -> &str {
        &self.channels[channel.index()].name
    }

    /// Where packets are sent to, with the channel and the line of each address.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, ChannelId, u8)> {
        self.addresses.iter().copied()
    }

    fn bounds(&self) -> Made<()> {
        let Window { packets, ns, dead_ns, far, silent_ns, .. } = self.window;
        if packets == 0 || packets > 4096 {
            return wrong(&["window", "packets"], "window.packets: 1 to 4096");
        }
        if ns < 0 || dead_ns < 0 {
            return wrong(&["window"], "window: times are not negative");
        }
        if silent_ns <= 0 {
            return wrong(&["window", "silent_ns"], "window.silent_ns: more than 0");
        }
        if self.recovery.early_bytes > EARLY_BYTES_MAX {
            return wrong(&["recovery", "early_bytes"], "recovery.early_bytes: at most 64 MiB");
        }
        if far < u32::from(packets) {
            return wrong(&["window", "far"], "window.far: not less than window.packets");
        }
        if self.market_depth == Some(0) {
            return wrong(&["market_depth"], "market_depth: at least 1");
        }
        Ok(())
    }

    fn take_addresses(&mut self, channel: usize, text: &ChannelText) -> Made<()> {
        let at = channel.to_string();
        for (line, (key, addresses)) in [("a", &text.a), ("b", &text.b)].into_iter().enumerate() {
            for address in addresses {
                let place = ["channel", &at, key];
                let Ok(to) = address.parse::<SocketAddr>() else {
                    return wrong(&place, format!("`{address}` is no address and port, as 224.0.50.1:59001"));
                };
                if self.addresses.iter().any(|(other, ..)| *other == to) {
                    return wrong(&place, format!("{address} is told twice"));
                }
                self.addresses.push((to, ChannelId(channel as u16), line as u8));
            }
        }
        match text.a.is_empty() && text.b.is_empty() {
            true => wrong(&["channel", &at], "no address: say `a`, and `b` where there is a second line"),
            false => Ok(()),
        }
    }

    fn messages(&mut self, text: &FastText, own: usize) -> Made<()> {
        let mut tells = DepthTold::Otherwise;
        for (i, message) in text.message.iter().enumerate() {
            let at = i.to_string();
            let at = ["message", &at];
            let fields = fields(message, &at)?;
            let (mut templates, mut found) = (0, vec![0; fields.len()]);
            for set in &mut self.sets {
                for index in 0..set.templates.list().len() {
                    let name = &set.templates.list()[index].name.local;
                    if set.kinds[index].is_some() || !message.templates.iter().any(|p| is_like(name, p)) {
                        continue;
                    }
                    set.kinds[index] = Some(message.kind);
                    templates += 1;
                    for (n, (path, tag)) in fields.iter().enumerate() {
                        let added = set.ask(index, path, *tag);
                        found[n] += added;
                        if added > 0 && *tag == Tag::MarketDepth {
                            tells = match message.kind {
                                Kind::Product => DepthTold::OfProducts,
                                Kind::Instrument if tells == DepthTold::Otherwise => DepthTold::OfInstruments,
                                _ => tells,
                            };
                        }
                    }
                }
            }
            if templates == 0 && i < own {
                return wrong(
                    &[at[0], at[1], "templates"],
                    format!("no template is called {}", message.templates.join(" or ")),
                );
            }
            let name_of = |path: &str| {
                let named = message.fields.iter().find(|(_, p)| *p == path);
                named.map_or("entries", |(name, _)| name)
            };
            let lacks = fields.iter().zip(&found).find(|((path, _), found)| {
                **found == 0 && (i < own || must(message.kind).contains(&name_of(path)))
            });
            if let Some(((path, _), _)) = lacks.filter(|_| templates > 0) {
                let name = name_of(path);
                let place: &[&str] = match name {
                    "entries" => &[at[0], at[1], "entries"],
                    name => &[at[0], at[1], "fields", name],
                };
                return wrong(
                    place,
                    format!("{name}: no field `{path}` in {}", message.templates.join(", ")),
                );
            }
            let numbered = fields.iter().zip(&found).any(|((_, tag), n)| *tag == Tag::Sequence && *n > 0);
            if message.kind == Kind::Depth && templates > 0 && !numbered {
                self.check_unnumbered(&at)?;
            }
        }
        let reference = self.channels.iter().any(|c| c.role == Role::Reference);
        if reference && self.market_depth.is_none() {
            self.depth_told = tells;
        }
        Ok(())
    }

    /// Copies can be told apart, and dictionaries are those of the sender.
    fn check_lines(&self, text: &FastText) -> Made<()> {
        let two = text.channel.iter().enumerate().find(|(_, c)| !c.a.is_empty() && !c.b.is_empty());
        let Some((channel, told)) = two else { return Ok(()) };
        let place = ["channel", &channel.to_string(), "b"];
        if self.reset == Reset::Never {
            // A copy that was begun and is bad, or one that is left out, has changed what the next is read by.
            let what = "two lines need dictionaries that are emptied, by packet or by message: reset = \"never\" is for one";
            return wrong(&place, what);
        }
        let depth =
            |m: &&super::config::MessageText| m.kind == Kind::Depth && !m.fields.contains_key("sequence");
        if matches!(self.framing, Framing::Plain | Framing::Length)
            && told.role == Role::Incremental
            && let Some(message) = text.message.iter().find(depth)
        {
            let what = format!(
                "two lines, but nothing tells copies: neither packets nor messages {} have a number",
                message.templates.join(", ")
            );
            return wrong(&place, what);
        }
        Ok(())
    }

    /// Depth that has no numbers: no snapshot tells what of it is in it.
    fn check_unnumbered(&self, message: &[&str; 2]) -> Made<()> {
        match self.channels.iter().find(|c| c.role == Role::Snapshot) {
            None => Ok(()),
            Some(channel) => {
                let what = format!(
                    "kind depth needs the field `sequence` where there are snapshots (channel {}): by it one knows which levels \
                     they have in them",
                    channel.name
                );
                wrong(message, what)
            }
        }
    }

    /// Reference data are of a pair whose messages they tell of.
    fn check_pairs(&self, text: &FastText) -> Made<()> {
        let has_incremental =
            |pair: &str| text.channel.iter().any(|c| c.role == Role::Incremental && c.pair == pair);
        let lost = |c: &super::config::ChannelText| c.role == Role::Reference && !has_incremental(&c.pair);
        let some = text.channel.iter().any(|c| c.role == Role::Incremental);
        match text.channel.iter().position(lost).filter(|_| some) {
            None => Ok(()),
            Some(channel) => {
                let told = &text.channel[channel];
                let what = format!(
                    "channel {} is of pair `{}`, which has no incremental channel: no book would know of its instruments; \
                     give it the `pair` of the channels it tells of, or leave `pair` away on all",
                    told.name, told.pair
                );
                wrong(&["channel", &channel.to_string(), "pair"], what)
            }
        }
    }

    fn header(&mut self, text: &FramingText, own: bool) -> Made<()> {
        let name = text.header.as_deref().unwrap_or_default();
        let fields = [
            ("sequence", &text.sequence, Tag::HeadSequence),
            ("sender", &text.sender, Tag::HeadSender),
            ("partition", &text.partition, Tag::HeadPartition),
            ("time", &text.time, Tag::HeadTime),
            ("reset", &text.reset, Tag::HeadReset),
        ];
        let (mut templates, mut found) = (0, [0; 5]);
        for set in &mut self.sets {
            for index in 0..set.templates.list().len() {
                if !is_like(&set.templates.list()[index].name.local, name) {
                    continue;
                }
                templates += 1;
                set.headers[index] = true;
                let asked = fields.iter().filter_map(|(_, path, tag)| Some((path.as_deref()?, *tag)));
                let asked: Vec<_> = asked.collect();
                set.plain = set.plain.take().or_else(|| Plain::of(&set.templates.list()[index], &asked));
                for (n, (_, path, tag)) in fields.iter().enumerate() {
                    if let Some(path) = path {
                        found[n] += set.ask(index, path, *tag);
                    }
                }
            }
        }
        if templates == 0 {
            return wrong(&["framing", "header"], format!("header: no template is called {name}"));
        }
        for ((key, path, _), found) in fields.into_iter().zip(found) {
            if let Some(path) = path
                && found == 0
                && (own || key == "sequence")
            {
                return wrong(&["framing", key], format!("{key}: no field `{path}` in {name}"));
            }
        }
        Ok(())
    }
}

fn framing(text: &FramingText) -> Made<Framing> {
    let told = [text.header.is_some(), text.number_bytes > 0, text.length];
    if told.iter().filter(|t| **t).count() > 1 {
        return wrong(&["framing"], "framing: one of `header`, `number_bytes` and `length`");
    }
    if text.header.is_some() {
        return match &text.sequence {
            Some(_) => Ok(Framing::Header),
            None => {
                wrong(&["framing"], "framing: `header` needs `sequence`, its field with the packet's number")
            }
        };
    }
    if text.length {
        return Ok(Framing::Length);
    }
    match text.number_bytes {
        0 => Ok(Framing::Plain),
        1..=8 => {
            let FramingText { number_bytes: bytes, order, skip, every, .. } = *text;
            Ok(Framing::Number { bytes, order, skip, every })
        }
        _ => wrong(&["framing", "number_bytes"], "number_bytes: 1 to 8"),
    }
}

/// The fields of a message: path and tag, the entries among them.
fn fields<'t>(message: &'t MessageText, at: &[&str; 2]) -> Made<Vec<(&'t String, Tag)>> {
    let mut fields = Vec::new();
    for (name, path) in &message.fields {
        match FIELDS.iter().find(|(known, _)| known == name) {
            Some((_, tag)) => fields.push((path, *tag)),
            None => {
                let all: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
                let what = format!("no field `{name}`; fields: {}", all.join(", "));
                return wrong(&[at[0], at[1], "fields", name], what);
            }
        }
    }
    if let Some(lacks) = must(message.kind).iter().find(|name| !message.fields.contains_key(**name)) {
        return wrong(at, format!("kind {} needs the field `{lacks}`", word(message.kind)));
    }
    if let Some(entries) = &message.entries {
        fields.push((entries, Tag::Entries));
    }
    Ok(fields)
}

/// Fields without which a message of this kind means nothing.
fn must(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Depth => &["instrument"],
        Kind::Snapshot => &["instrument", "last"],
        Kind::Beacon => &["last"],
        Kind::ProductState => &["product_state"],
        Kind::InstrumentState | Kind::MassState => &["instrument", "instrument_state"],
        Kind::Sequenced => &["sequence"],
        Kind::Product => &["product"],
        Kind::Instrument => &["instrument"],
        Kind::Reset | Kind::Ignore => &[],
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
