//! A venue's lines off the wire: `run` listens to all channels that a mapping names, while the exchange in a box publishes.
//!
//! The test sends small parts, and the next one when the journal has the last. So it knows which bytes have been
//! received, whatever the machine does besides. Where groups cannot be joined it is done with addresses of the host
//! itself.
#![cfg(target_os = "linux")]

use crate::common::{self, assert_same, cat, file, root, unitape};
use common::ports::free_ports;
use common::run::Running;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use unitape_base::capture::{CaptureWalker, NextCaptureRecord, UdpParseOutcome, udp};
use unitape_sim::exchange::{
    ChannelTemplates, DeliveredPacket, Exchange, ExchangeChannel, ExchangeConfig, ExchangeLine, FaultRates,
};

/// A venue: an exchange, and what it takes to run a feed of its channels.
struct Venue {
    config: ExchangeConfig,
    exchange: Exchange,
    dir: tempfile::TempDir,
    socket: UdpSocket,
    /// Packets that were sent when somebody listened.
    heard: Vec<DeliveredPacket>,
}

impl Venue {
    fn new(messages: u64, faults: FaultRates) -> Self {
        // One for each channel and line.
        let port = free_ports(4);
        let groups = groups();
        // Groups of its own, too: what the kernel says of a group it says of all who have joined it.
        let [high, low] = port.to_be_bytes();
        let group = if groups { Ipv4Addr::new(239, high, low, 0) } else { Ipv4Addr::new(127, 0, 77, 0) };
        let config = ExchangeConfig {
            seed: 7,
            messages,
            options: 20,
            faults,
            group: SocketAddrV4::new(group, port),
            ..ExchangeConfig::default()
        };
        let exchange = Exchange::new(config.clone(), &ChannelTemplates::shipped()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_multicast_loop_v4(true).unwrap();
        if groups {
            rustix::net::sockopt::set_ip_multicast_if(&socket, &Ipv4Addr::LOCALHOST).unwrap();
        }
        let venue = Self { config, exchange, dir, socket, heard: Vec::new() };
        file(venue.dir.path(), "box.toml", venue.mapping());
        venue.configure("run", "");
        venue
    }

    /// A feed that listens; its configuration, its tape and its journal have this name.
    fn configure(&self, name: &str, more: &str) -> PathBuf {
        let text = format!(
            "[tape]\ndir = \"{name}\"\nsegment_bytes = 1048576\n[run]\nworkers = 2\njournal_file_bytes = 65536\n[[feed]]\nname = \"box\"\nformat = \"fast\"\n\
             mapping = \"box.toml\"\nudp = \"channels\"\ninterface = \"127.0.0.1\"\ninterface_b = \"lo\"\n{more}\n"
        );
        file(self.dir.path(), &format!("{name}.toml"), text)
    }

    fn mapping(&self) -> String {
        // We send in parts, at our own pace: no line is dead because it was silent.
        let mut text = "name = \"box\"\nformat = \"fast\"\n[fast]\nlike = \"t7-emdi\"\nvenue = \"XBOX\"\n\
             window = { ns = 600_000_000_000, dead_ns = 600_000_000_000 }\n"
            .to_owned();
        for channel in [ExchangeChannel::Incremental, ExchangeChannel::Snapshot, ExchangeChannel::Reference] {
            let (name, templates) = (channel.name(), root().join("vectors/fast/box"));
            text += &format!("[[fast.channel]]\nname = \"{name}\"\nrole = \"{name}\"\n");
            text += &format!("templates = [{:?}]\n", templates.join(format!("{name}.xml")));
            let lines = if channel == ExchangeChannel::Incremental {
                &[ExchangeLine::A, ExchangeLine::B][..]
            } else {
                &[ExchangeLine::A]
            };
            for line in lines {
                let all =
                    (1..=self.config.partitions).map(|p| format!("\"{}\"", self.address(channel, *line, p)));
                let key = if *line == ExchangeLine::A { "a" } else { "b" };
                text += &format!("{key} = [{}]\n", all.collect::<Vec<_>>().join(", "));
            }
        }
        text
    }

    /// The addresses of all channels, lines and partitions.
    fn lines(&self) -> Vec<SocketAddrV4> {
        let channels = [
            (ExchangeChannel::Incremental, ExchangeLine::A),
            (ExchangeChannel::Incremental, ExchangeLine::B),
            (ExchangeChannel::Snapshot, ExchangeLine::A),
            (ExchangeChannel::Reference, ExchangeLine::A),
        ];
        let partitions = 1..=self.config.partitions;
        partitions.flat_map(|p| channels.map(|(channel, line)| self.address(channel, line, p))).collect()
    }

    fn address(&self, channel: ExchangeChannel, line: ExchangeLine, partition: u32) -> SocketAddrV4 {
        self.config.address(channel, line, partition)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a run and waits until it listens.
    fn start(&self, name: &str) -> Running {
        let err = self.path("err");
        let to = File::options().append(true).create(true).open(&err).unwrap();
        let mut command = unitape();
        command.arg("run").arg(self.path(&format!("{name}.toml")));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to).spawn().unwrap();
        let mut run = Running { child, err };
        let lines = self.lines();
        run.until(|| lines.iter().all(|address| is_heard(*address)));
        run
    }

    /// Sends the next `packets` packets of the exchange; whether there were as many. With `run`, a run listens, and
    /// has them in its journal at the end.
    fn send(&mut self, packets: usize, mut run: Option<&mut Running>) -> bool {
        let journal = self.path("run.journal/box/00000001.pcap");
        let mut whole = true;
        for part in 0..packets.div_ceil(PART) {
            let before = std::fs::metadata(&journal).map_or(FILE_HEAD, |m| m.len());
            let mut bytes = 0;
            for _ in 0..PART.min(packets - part * PART) {
                let Some(packet) = self.exchange.next().unwrap() else {
                    whole = false;
                    break;
                };
                bytes += RECORD_HEADS + packet.bytes.len() as u64;
                self.socket.send_to(&packet.bytes, packet.to).unwrap();
                if run.is_some() {
                    self.heard.push(packet);
                }
            }
            if let Some(run) = run.as_deref_mut() {
                run.until(|| std::fs::metadata(&journal).is_ok_and(|m| m.len() >= before + bytes));
            }
        }
        whole
    }

    /// The books at the end of a tape are the exchange's own.
    fn holds(&self, tape: &Path) {
        let books = common::run([
            "book",
            "show",
            tape.to_str().unwrap(),
            "--json",
            "--depth",
            "100",
            "--basis",
            "levels",
        ]);
        let books = books.code(0).lines();
        let (world, truth) = (self.exchange.world(), self.exchange.truth());
        let mut compared = 0;
        for (n, instrument) in world.instruments.iter().enumerate() {
            let (id, unit) =
                (instrument.id.to_string(), 10f64.powi(-i32::from(world.product_of(n).exponent)));
            let Some(moment) = truth.current_moment(n) else { continue };
            let Some(mine) = books.iter().find(|b| b["instr"] == id.as_str()) else {
                assert!(moment.bids.is_empty() && moment.offers.is_empty(), "no book of {id}");
                continue;
            };
            for (side, levels) in [("bids", &moment.bids), ("asks", &moment.offers)] {
                let of = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
                let published: Vec<(f64, f64)> =
                    mine[side].as_array().unwrap().iter().map(|l| (of(&l["px"]), of(&l["qty"]))).collect();
                let so: Vec<_> = levels.iter().map(|l| (l.px as f64 / unit, f64::from(l.qty))).collect();
                assert_eq!(published, so, "{id} {side}: {mine}");
                compared += published.len();
            }
        }
        assert!(compared > 100, "{compared}");
    }

    /// The journal has each received packet once, each line in its order, in one file of any length. A run that finds
    /// this journal makes the same tape, byte for byte. So does one over the files, except for what it knows of them
    /// before.
    fn is_of_its_journal(&self, tape: &Path) {
        let journal = self.path("run.journal/box");
        let heard: Vec<(SocketAddr, &[u8])> =
            self.heard.iter().map(|p| (p.to.into(), &p.bytes[..])).collect();
        let capture = std::fs::read(journal.join("00000001.pcap")).unwrap();
        let journaled = datagrams(&capture);
        // Between addresses the kernel's clock decides, which it starts a moment after a socket has asked for it.
        let of = |all: &[(SocketAddr, &[u8])], to| -> Vec<Vec<u8>> {
            all.iter().filter(|(is, _)| *is == to).map(|(_, bytes)| bytes.to_vec()).collect()
        };
        for to in heard.iter().map(|(to, _)| *to).collect::<std::collections::BTreeSet<_>>() {
            assert!(of(&journaled, to) == of(&heard, to), "what was sent to {to} is not what was journaled");
        }
        assert_eq!(journaled.len(), heard.len());
        // A second place with the journal alone.
        self.configure("again", "");
        let copy = self.path("again.journal/box");
        std::fs::create_dir_all(&copy).unwrap();
        for entry in std::fs::read_dir(&journal).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        let (code, said) = self.start("again").stop();
        assert!(matches!(code, Some(0 | 3)), "{said}");
        assert_same(tape, &self.path("again"), "the same journal");
        // As files, without a run.
        let files = self.path("files");
        let feed = format!(
            "box=fast:{}:{}",
            self.path("box.toml").display(),
            journal.join("00000001.pcap").display()
        );
        let ran = common::run(["consolidate", "--feed", &feed, "--tape", files.to_str().unwrap()]);
        assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
        // A source that is known before is defined in other words, and events after that are at other positions.
        let events = |tape: &Path| {
            let mut events = cat(tape, &["--full"]);
            events.iter_mut().for_each(|event| _ = event.as_object_mut().unwrap().remove("position"));
            events
        };
        let (live, files) = (events(tape), events(&files));
        assert_eq!(live.len(), files.len());
        for (live, file) in live.iter().zip(&files) {
            assert_eq!(live, file);
        }
    }
}

/// Packets that are sent before the journal is looked at.
const PART: usize = 24;

/// Bytes of a journal before its first record, and of each record beside the payload.
const FILE_HEAD: u64 = 24;
const RECORD_HEADS: u64 = 16 + 20 + 8;

/// Whether a group can be joined here and what is sent to it comes back.
fn groups() -> bool {
    let group = Ipv4Addr::new(239, 193, 77, 99);
    let heard = || -> std::io::Result<bool> {
        let listener = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        listener.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
        listener.set_read_timeout(Some(Duration::from_secs(2)))?;
        let sender = UdpSocket::bind("127.0.0.1:0")?;
        rustix::net::sockopt::set_ip_multicast_if(&sender, &Ipv4Addr::LOCALHOST)?;
        sender.send_to(b"?", (group, listener.local_addr()?.port()))?;
        Ok(listener.recv(&mut [0; 8])? == 1)
    };
    heard().unwrap_or_else(|e| {
        eprintln!("without groups: {e}");
        false
    })
}

/// Whether a socket is bound to this address, and its group is joined if it is one.
fn is_heard(address: SocketAddrV4) -> bool {
    // As the kernel prints an address: the word in memory.
    let ip = format!("{:08X}", u32::from_ne_bytes(address.ip().octets()));
    let bound = format!("{ip}:{:04X}", address.port());
    let has = |file: &str, column: usize, word: &str| {
        let table = std::fs::read_to_string(file).unwrap();
        table.lines().any(|line| line.split_whitespace().nth(column) == Some(word))
    };
    has("/proc/net/udp", 1, &bound) && (!address.ip().is_multicast() || has("/proc/net/igmp", 0, &ip))
}

/// All datagrams of a capture that is whole.
fn datagrams(bytes: &[u8]) -> Vec<(SocketAddr, &[u8])> {
    let (mut walker, mut at, mut all) = (CaptureWalker::default(), 0, Vec::new());
    loop {
        at = match walker.next(bytes, at) {
            NextCaptureRecord::Packet(p) => {
                let UdpParseOutcome::Datagram(d) = udp(p.link, &bytes[p.bytes.clone()], p.is_cut()) else {
                    panic!("{p:?}")
                };
                all.push((d.to, &bytes[p.bytes][d.payload]));
                p.end
            }
            NextCaptureRecord::Skip { end } => end,
            NextCaptureRecord::More if at == bytes.len() => return all,
            other => panic!("{other:?} at {at} of {}", bytes.len()),
        }
    }
}

/// The number of reports on the tape by state of the handler; a channel's losses with its name.
fn states(tape: &Path) -> BTreeMap<String, usize> {
    let mut states = BTreeMap::new();
    for event in cat(tape, &["--kind", "status"]) {
        let mut state = event["state"].as_str().unwrap().to_owned();
        if let Some(channel) = event["channel"].as_str() {
            state = format!("{state} {channel}");
        }
        *states.entry(state).or_default() += 1;
    }
    states
}

/// One line loses packets, and nobody sees it; at the end all books are there.
#[test]
fn all_lines_of_a_venue_while_one_loses_packets() {
    let mut venue =
        Venue::new(4_000, FaultRates { lost_once: 60_000, swapped: 2_000, ..FaultRates::default() });
    let said = common::run(["run", venue.path("run.toml").to_str().unwrap(), "--check"]).code(0);
    let a = venue.address(ExchangeChannel::Incremental, ExchangeLine::A, 2);
    let b = venue.address(ExchangeChannel::Incremental, ExchangeLine::B, 2);
    for want in
        [format!("box listens to incremental A: {a} by 127.0.0.1"), format!("incremental B: {b} by lo")]
    {
        assert!(said.text().contains(&want), "{want}: {}", said.text());
    }
    let mut run = venue.start("run");
    while venue.send(1_000, Some(&mut run)) {}
    let (code, said) = run.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(venue.exchange.faults().lost_once > 100, "{:?}", venue.exchange.faults());
    // How each line did.
    let of = |line| {
        venue.heard.iter().filter(|p| p.channel == ExchangeChannel::Incremental && p.line == line).count()
    };
    let (a, b) = (of(ExchangeLine::A), of(ExchangeLine::B));
    for want in [format!("box: incremental: A {a} packets, "), format!("; B {b} packets, ")] {
        assert!(said.replace(',', "").contains(&want.replace(',', "")), "{want}: {said}");
    }
    assert!(
        said.contains("; 0 lost in 0 gaps, 0 late, ") && said.contains("box: messages: 0 missing"),
        "{said}"
    );
    let tape = venue.path("run");
    let states = states(&tape);
    assert!(
        !states.contains_key("lost") && !states.contains_key("missing") && states["whole"] > 0,
        "{states:?}"
    );
    venue.holds(&tape);
    venue.is_of_its_journal(&tape);
}

/// Killed in the middle, twice, while the exchange continues to send. The tape has each journaled packet once,
/// packets sent meanwhile are a gap, and snapshots bring the books back.
#[test]
fn killed_and_started_again_while_the_exchange_goes_on() {
    let mut venue = Venue::new(6_000, FaultRates { lost_once: 20_000, ..FaultRates::default() });
    let mut run = venue.start("run");
    for _ in 0..2 {
        assert!(venue.send(1_500, Some(&mut run)));
        run.child.kill().unwrap();
        run.child.wait().unwrap();
        assert!(venue.send(300, None), "nobody hears these");
        run = venue.start("run");
    }
    while venue.send(1_000, Some(&mut run)) {}
    let (code, said) = run.stop();
    // The account has what was sent while nobody listened.
    assert_eq!(code, Some(3), "{said}");
    let tape = venue.path("run");
    let states = states(&tape);
    for state in ["lost incremental", "stale", "recovered", "whole"] {
        assert!(states.contains_key(state), "{state}: {states:?}");
    }
    venue.holds(&tape);
    venue.is_of_its_journal(&tape);
}

/// An address that cannot be listened to is reported with the line that names it.
#[test]
fn what_cannot_be_listened_to_names_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let base = "[tape]\ndir = \"t\"\n[[feed]]\nname = \"f\"\n";
    let boxed = format!("format = \"fast\"\nmapping = {:?}\n", root().join("examples/feeds/box.toml"));
    let cases = [
        (
            "format = \"fix\"\nmapping = \"fix44-orders\"\nudp = \"channels\"",
            "7: feed.f.udp: channels are those of a mapping with [[fast.channel]]",
        ),
        (&format!("{boxed}udp = \"chanels\""), "7: feed.f.udp: `chanels` is neither an address"),
        (
            &format!("{boxed}udp = [\"239.1.1.1:1\", \"239.1.1.1\"]"),
            "7: feed.f.udp: `239.1.1.1` is no address",
        ),
        (
            &format!("{boxed}udp = \"239.1.1.1:1\"\ninterface_b = \"lo\""),
            "8: feed.f.interface_b: goes with udp = \"channels\"",
        ),
        (
            &format!("{boxed}udp = \"channels\"\ninterface = \"nosuch0\""),
            "8: feed.f.interface: nosuch0 is no interface of this host",
        ),
        (
            &format!("{boxed}udp = \"channels\"\ninterface = \"192.0.2.1\""),
            "8: feed.f.interface: 192.0.2.1 is no interface",
        ),
        (&format!("{boxed}udp = \"channels\"\ninterface = \"a/b\""), "8: feed.f.interface: `a/b` is neither"),
        (
            &format!("{boxed}udp = \"channels\"\nday_begins = \"25:00\""),
            "8: feed.f.day_begins: `25:00` is no time",
        ),
        (
            &format!("{boxed}files = [\"x\"]\nday_begins = \"05:00\""),
            "8: feed.f.day_begins: goes with udp, not with files",
        ),
        (&format!("{boxed}udp = \"channels\"\nfifo = \"x\""), "feed.f: one of files, directory"),
    ];
    for (text, want) in cases {
        let path = file(dir.path(), "c.toml", format!("{base}{text}\n"));
        common::run(["run", path.to_str().unwrap(), "--check"]).code(1).says(&[want]);
    }
    // A mapping without channels.
    let none = root().join("mappings/t7-emdi.toml");
    let text = format!("{base}format = \"fast\"\nmapping = {none:?}\nudp = \"channels\"\n");
    let path = file(dir.path(), "c.toml", text);
    common::run(["run", path.to_str().unwrap(), "--check"]).code(1);
}
