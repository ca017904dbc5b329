//! The settings of datagrams: addresses, or all channels that a mapping names, and the interface.

use super::FeedConfig;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use unitape_feed::{Format, OverflowPolicy, ReceiveSource};
use unitape_marketdata::ChannelId;
use unitape_marketdata::wire::UdpEndpoint;

/// The destinations of datagrams.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "UdpTargetsConfig", into = "UdpTargetsConfig")]
pub enum UdpTargets {
    /// To these groups or local addresses.
    To(Vec<SocketAddr>),
    /// To all lines of all channels that the mapping names.
    Channels,
}

/// The setting in its written form.
#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "expected an address with its port, a list of them, or \"channels\"")]
enum UdpTargetsConfig {
    One(String),
    Many(Vec<String>),
}

impl TryFrom<UdpTargetsConfig> for UdpTargets {
    type Error = String;

    fn try_from(text: UdpTargetsConfig) -> Result<Self, String> {
        let address = |text: &String| {
            let wrong = |_| format!("`{text}` is no address with its port, as 239.1.1.1:5000");
            text.parse::<SocketAddr>().map_err(wrong)
        };
        let udp_entries = match &text {
            UdpTargetsConfig::One(word) if word == CHANNELS => return Ok(UdpTargets::Channels),
            UdpTargetsConfig::One(one) if one.parse::<SocketAddr>().is_err() => {
                return Err(format!(
                    "`{one}` is neither an address with its port, as 239.1.1.1:5000, nor {CHANNELS}"
                ));
            }
            UdpTargetsConfig::One(one) => vec![address(one)?],
            UdpTargetsConfig::Many(many) => many.iter().map(address).collect::<Result<_, _>>()?,
        };
        match udp_entries.iter().enumerate().find(|(i, to)| udp_entries[..*i].contains(to)) {
            _ if udp_entries.is_empty() => Err("no address".to_owned()),
            Some((_, twice)) => Err(format!("{twice} appears twice")),
            None => Ok(UdpTargets::To(udp_entries)),
        }
    }
}

impl From<UdpTargets> for UdpTargetsConfig {
    fn from(udp: UdpTargets) -> UdpTargetsConfig {
        match udp {
            UdpTargets::Channels => UdpTargetsConfig::One(CHANNELS.to_owned()),
            UdpTargets::To(all) if all.len() == 1 => UdpTargetsConfig::One(all[0].to_string()),
            UdpTargets::To(all) => UdpTargetsConfig::Many(all.iter().map(SocketAddr::to_string).collect()),
        }
    }
}

/// All lines that the mapping names.
const CHANNELS: &str = "channels";

/// The treatment of datagrams when the decoders are too far behind.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum BacklogPolicy {
    /// We read, drop and count them.
    #[default]
    Drop,
    /// They wait in the socket's buffer; then the kernel drops and counts them.
    Wait,
}

/// A time of the day, UTC, as text: `22:30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct MinuteOfDay {
    minutes: u16,
}

impl FromStr for MinuteOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let two = |text: &str, limit: u16| {
            let number: u16 = text.parse().ok()?;
            (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()) && number < limit).then_some(number)
        };
        let parts = text.split_once(':').and_then(|(h, m)| Some((two(h, 24)?, two(m, 60)?)));
        let wrong = || format!("`{text}` is no time of the day in UTC, as 22:30");
        parts.map(|(hours, minutes)| Self { minutes: hours * 60 + minutes }).ok_or_else(wrong)
    }
}

impl TryFrom<String> for MinuteOfDay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<MinuteOfDay> for String {
    fn from(time: MinuteOfDay) -> String {
        format!("{:02}:{:02}", time.minutes / 60, time.minutes % 60)
    }
}

/// An address to listen to, and the channel line that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpListenTarget {
    line: UdpEndpoint,
    /// Channel and line.
    channel_line: Option<(String, char)>,
}

impl fmt::Display for UdpListenTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.channel_line {
            Some((channel, line)) => write!(f, "{channel} {line}: {}", self.line),
            None => self.line.fmt(f),
        }
    }
}

impl FeedConfig {
    /// Returns the destinations of the feed's datagrams. The list is empty if the feed has another input.
    ///
    /// # Errors
    /// Fails if the destinations are channels and the mapping names none.
    pub fn listens(&self, format: &Format) -> Result<Vec<UdpListenTarget>, String> {
        let (a, b) = (&self.interface, self.interface_b.as_ref().or(self.interface.as_ref()));
        match &self.udp {
            None => Ok(Vec::new()),
            Some(UdpTargets::To(all)) => {
                let line = |&address| UdpEndpoint { address, interface: a.clone() };
                Ok(all.iter().map(|to| UdpListenTarget { line: line(to), channel_line: None }).collect())
            }
            Some(UdpTargets::Channels) => {
                let Some(mapping) = format.mapping_definition().filter(|mapping| mapping.fast.is_some())
                else {
                    let reason =
                        format!("{CHANNELS} are those of a mapping with [[fast.channel]]; this one has none");
                    return Err(reason);
                };
                let config = mapping.fast_config().map_err(|e| e.to_string())?;
                let listened = |(address, channel, line): (SocketAddr, ChannelId, u8)| {
                    let interface = if line == 0 { a.clone() } else { b.cloned() };
                    let channel_line =
                        (config.channel(channel).to_owned(), if line == 0 { 'A' } else { 'B' });
                    UdpListenTarget {
                        line: UdpEndpoint { address, interface },
                        channel_line: Some(channel_line),
                    }
                };
                let listen_targets: Vec<_> = config.addresses().map(listened).collect();
                match listen_targets.is_empty() {
                    true => Err("the mapping names no address".to_owned()),
                    false => Ok(listen_targets),
                }
            }
        }
    }

    /// Makes the settings for receiving datagrams.
    pub fn receive_source(&self, listened: Vec<UdpListenTarget>) -> ReceiveSource {
        ReceiveSource::Udp {
            lines: listened.into_iter().map(|l| l.line).collect(),
            buffer_bytes: self.buffer_bytes,
            when_full: if self.when_full == BacklogPolicy::Drop {
                OverflowPolicy::Drop
            } else {
                OverflowPolicy::Wait
            },
            day_begins: self.day_begins.map(|time| Duration::from_secs(u64::from(time.minutes) * 60)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, Serialize)]
    struct UdpKeyExample {
        udp: UdpTargets,
    }

    #[test]
    fn what_can_be_told_of_addresses() {
        for text in ["\"239.1.1.1:5000\"", "[\"239.1.1.1:5000\", \"[::1]:7\"]", "\"channels\""] {
            let one: UdpKeyExample = toml::from_str(&format!("udp = {text}")).unwrap();
            assert_eq!(toml::to_string(&one).unwrap().trim(), format!("udp = {text}"));
        }
        for (text, want) in [
            ("\"channel\"", "`channel` is neither an address with its port, as 239.1.1.1:5000, nor channels"),
            ("\"239.1.1.1\"", "`239.1.1.1` is neither"),
            ("[\"239.1.1.1:5000\", \"x\"]", "`x` is no address with its port"),
            ("[\"239.1.1.1:5000\", \"239.1.1.1:5000\"]", "239.1.1.1:5000 appears twice"),
            ("[]", "no address"),
            ("5", "expected an address with its port, a list of them, or \"channels\""),
        ] {
            let got = toml::from_str::<UdpKeyExample>(&format!("udp = {text}")).unwrap_err();
            assert!(got.message().contains(want), "{text}: {got}");
        }
    }

    #[test]
    fn times_of_the_day_come_back() {
        for text in ["00:00", "22:30", "23:59"] {
            assert_eq!(String::from(text.parse::<MinuteOfDay>().unwrap()), text);
        }
        for text in ["", "24:00", "7:00", "12:60", "+1:00", "12:00:00", "1200"] {
            assert!(text.parse::<MinuteOfDay>().is_err(), "{text}");
        }
    }
}
