//! Checks beyond the types of a configuration: settings that go together, and files that a run needs.

use super::{BacklogPolicy, CLOCK_FEED, FeedProcessMode, INPUTS, MergeTime, RunConfig, TimeSpan, UdpTargets};
use crate::Error;
use crate::layered::OriginTable;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

/// Checks a configuration beyond its types.
///
/// # Errors
/// Fails at the first key with an impossible value.
pub fn check_config(config: &RunConfig, origins: &OriginTable) -> Result<(), Error> {
    let wrong = |key: &str, reason: String| Error::Value {
        origin: origins.origin_of_key(key),
        key: key.to_owned(),
        reason,
    };
    let mut feed_names = BTreeSet::new();
    if config.feed.is_empty() {
        return Err(wrong("feed", "no feed; each is a table [[feed]]".to_owned()));
    }
    if !config.tape.segment_bytes.is_power_of_two() {
        return Err(wrong("tape.segment_bytes", "a power of two is needed".to_owned()));
    }
    if config.tape.retain_days == Some(0) {
        return Err(wrong("tape.retain_days", "at least 1: today is one".to_owned()));
    }
    if config.tape.retain_hold_bytes.is_some() && !config.tape.retention().is_limited() {
        let message = "goes with retain_bytes, retain_age or retain_days: without them everything is kept";
        return Err(wrong("tape.retain_hold_bytes", message.to_owned()));
    }
    if config.run.reference_strict && config.reference.is_empty() {
        return Err(wrong("run.reference_strict", "goes with [[reference]]: there is none".to_owned()));
    }
    if let Some(TimeSpan(interval)) = config.run.clock {
        let clock = |reason: &str| Err(wrong("run.clock", reason.to_owned()));
        if !(CLOCK_MIN..=CLOCK_MAX).contains(&interval) {
            return clock("1ms to 1d; leave the key out for a run without ticks");
        }
        if config.run.segments == FeedProcessMode::Apart {
            return clock(
                "goes with segments = \"together\": no process of a feed sees whether all are quiet",
            );
        }
        if config.feed.iter().any(|feed| feed.name == CLOCK_FEED || feed.format == CLOCK_FEED) {
            return clock("writes the ticks of a feed `clock`: no other feed has this name or format");
        }
    }
    for feed in &config.feed {
        let key = |k: &str| format!("feed.{}.{k}", feed.name);
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if feed.name.is_empty() || !feed.name.chars().all(is_name_char) || feed.name.starts_with('.') {
            let message = format!("`{}` is no name; letters, digits, `-`, `_` and `.` are", feed.name);
            return Err(wrong(&key("name"), message));
        }
        if !feed_names.insert(&feed.name) {
            let message = "two feeds have this name; each is a segment of its own, with its journal and its place on the tape";
            return Err(wrong(&key("name"), message.to_owned()));
        }
        let feed_inputs = feed.inputs();
        if feed_inputs.len() != 1 {
            let named_inputs =
                if feed_inputs.is_empty() { "none".to_owned() } else { feed_inputs.join(" and ") };
            let message = format!("one of {} is needed, there is {named_inputs}", INPUTS.join(", "));
            return Err(wrong(&format!("feed.{}", feed.name), message));
        }
        let only = |k: &str, set: bool, inputs: &[&str]| match set && !inputs.contains(&feed_inputs[0]) {
            true => {
                Err(wrong(&key(k), format!("goes with {}, not with {}", inputs.join(" or "), feed_inputs[0])))
            }
            false => Ok(()),
        };
        only("follow", !feed.follow, &["directory"])?;
        only("resume", feed.resume, &["listen", "connect"])?;
        only("connections", feed.connections > 0, &["listen", "connect"])?;
        only("interface", feed.interface.is_some(), &["udp"])?;
        only("interface_b", feed.interface_b.is_some(), &["udp"])?;
        if feed.interface_b.is_some() && feed.udp != Some(UdpTargets::Channels) {
            let message = "goes with udp = \"channels\": other addresses have no line B";
            return Err(wrong(&key("interface_b"), message.to_owned()));
        }
        only("day_begins", feed.day_begins.is_some(), &["udp"])?;
        only("when_full", feed.when_full != BacklogPolicy::Drop, &["udp"])?;
        only("ports", !feed.ports.is_empty(), &["files", "directory"])?;
        only("groups", !feed.groups.is_empty(), &["files", "directory"])?;
    }
    if let Some(second) = config.feed.iter().filter(|f| f.stdin).nth(1) {
        return Err(wrong(
            &format!("feed.{}.stdin", second.name),
            "another feed reads it already".to_owned(),
        ));
    }
    check_ports(config, &wrong)?;
    if config.run.merge == MergeTime::Receive
        && let Some(feed) = config.feed.iter().find(|f| !f.receive_times)
    {
        let key = format!("feed.{}.receive_times", feed.name);
        return Err(wrong(&key, "a merge by receive time needs them".to_owned()));
    }
    Ok(())
}

/// Ports that no host has, and ports that two feeds want to have.
fn check_ports(config: &RunConfig, wrong: &impl Fn(&str, String) -> Error) -> Result<(), Error> {
    let mut used_addresses = BTreeMap::new();
    for feed in &config.feed {
        for (key, address) in [("listen", &feed.listen), ("connect", &feed.connect)] {
            let Some(address) = address else { continue };
            let key = format!("feed.{}.{key}", feed.name);
            let port = address.rsplit_once(':').map(|(_, port)| port);
            let number = port.filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
            match number.map(str::parse::<u16>) {
                Some(Ok(_)) => {}
                Some(Err(_)) => {
                    let port = port.unwrap_or_default();
                    return Err(wrong(&key, format!("{address}: {port} is no port; the last one is 65535")));
                }
                None => {
                    return Err(wrong(
                        &key,
                        format!("`{address}` is no host with its port, as 127.0.0.1:9000"),
                    ));
                }
            }
        }
        let listen_address = match (&feed.listen, &feed.udp) {
            (Some(address), _) => vec![("listen", address.parse::<SocketAddr>().ok(), address.clone())],
            (_, Some(UdpTargets::To(all))) => {
                all.iter().map(|to| ("udp", Some(*to), to.to_string())).collect()
            }
            _ => Vec::new(),
        };
        for (key, socket, text) in listen_address {
            // Several readers of one group are usual, and port 0 is any that is free.
            if socket.is_some_and(|to| to.ip().is_multicast() || to.port() == 0) {
                continue;
            }
            let name = format!("feed.{}.{key}", feed.name);
            let port = text.rsplit_once(':').map_or("", |(_, port)| port).to_owned();
            let is_same_host = |ip: Option<IpAddr>, host: &str, (ip2, host2): &(Option<IpAddr>, String)| {
                let any_unspecified = |ip: &Option<IpAddr>| ip.is_some_and(|ip| ip.is_unspecified());
                any_unspecified(&ip) || any_unspecified(ip2) || host == host2
            };
            let host = text.rsplit_once(':').map_or("", |(host, _)| host).to_owned();
            let ip = socket.map(|to| to.ip());
            let used_hosts: &mut Vec<((Option<IpAddr>, String), String)> =
                used_addresses.entry((key, port)).or_default();
            if let Some((_, other_key)) =
                used_hosts.iter().find(|(host_entry, _)| is_same_host(ip, &host, host_entry))
            {
                return Err(wrong(&name, format!("{text}: {other_key} has this port")));
            }
            used_hosts.push(((ip, host), name));
        }
    }
    Ok(())
}

/// Files, directories, interfaces and hosts that are to be there before a run.
///
/// # Errors
/// Fails at the first that does not exist.
pub fn check_places(config: &RunConfig, origins: &OriginTable) -> Result<(), Error> {
    for feed in &config.feed {
        let wrong = |key: &str, reason: String| {
            let key = format!("feed.{}.{key}", feed.name);
            Err(Error::Value { origin: origins.origin_of_key(&key), key, reason })
        };
        let missing =
            |key: &str, path: &Path, problem: &str| wrong(key, format!("{}: {problem}", path.display()));
        for (key, interface) in [("interface", &feed.interface), ("interface_b", &feed.interface_b)] {
            if let Some((interface, e)) = interface.as_ref().and_then(|i| Some((i, i.look().err()?))) {
                return wrong(key, format!("{interface} is no interface of this host: {e}"));
            }
        }
        for (key, address) in [("listen", &feed.listen), ("connect", &feed.connect)] {
            let Some(address) = address else { continue };
            match address.to_socket_addrs().map(|mut all| all.next().is_some()) {
                Ok(true) => {}
                Ok(false) => return wrong(key, format!("{address}: the host has no address")),
                Err(e) => return wrong(key, format!("{address}: the host is not known: {e}")),
            }
        }
        for path in &feed.files {
            if !path.is_file() {
                return missing("files", path, "is no file");
            }
        }
        if let Some(path) = feed.directory.as_ref().filter(|p| !p.is_dir()) {
            return missing("directory", path, "is no directory");
        }
        if let Some(path) = feed.fifo.as_ref().filter(|p| !p.exists()) {
            return missing("fifo", path, "is not there; make it with mkfifo");
        }
    }
    Ok(())
}

/// The bounds of `run.clock`.
const CLOCK_MIN: Duration = Duration::from_millis(1);
const CLOCK_MAX: Duration = Duration::from_secs(86_400);
