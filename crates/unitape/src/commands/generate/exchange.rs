//! `unitape generate exchange`: an exchange in a box, into a capture or onto the network.

use crate::output::{self, CommandFailure, CommandOutcome, file_failure, grouped, say};
use rustix::net::sockopt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use unitape_base::capture::write;
use unitape_fast::TemplateFile;
use unitape_sim::exchange::{
    ChannelTemplates, DeliveredPacket, Exchange, ExchangeChannel, ExchangeConfig, ExchangeLine, FaultRates,
};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape generate exchange --pcap exchange.pcap --truth books.jsonl
  unitape generate exchange --pcap bad.pcap --seed 7 --faults some
  unitape generate exchange --pcap lossy.pcap --faults lost=5000,swapped=20000 --messages 1000000 --json
  unitape generate exchange --udp 239.192.77.0:14310 --rate 50000 --seconds 60
  unitape generate exchange --pcap t7.pcap --templates EMDI.xml --templates EMDS.xml --templates RDD.xml

Each partition has an incremental channel on two lines (A and B) and a channel of snapshots. One more channel has the reference data. With --both-lines, these have a line B, too. With --udp and in a capture, the number of a partition (from 1) is added to the last byte of its group. 0 (line A), 1 (line B), 2 (snapshots), 3 (reference data), 4 or 5 (their lines B) is added to the third byte and to the port. The same options give the same packets.

Faults, of a million packets: lost-once (on one line), lost (on both), burst (up to burst-packets in a row, on one line or on both), doubled, swapped (overtaken), damaged, dead (a line falls silent for dead-ms), restarts; and join (packets before the first that is heard). `some` mixes all of them. At the end, without faults, every product sends its last sequence number and a full snapshot. docs/simulator.md has the details.")]
pub struct ExchangeArgs {
    /// A capture to write into
    #[arg(long, value_name = "FILE", required_unless_present = "udp")]
    pcap: Option<PathBuf>,
    /// Send to these groups as time goes by: the address that the others follow from
    #[arg(long, value_name = "GROUP:PORT")]
    udp: Option<SocketAddrV4>,
    /// The address of the interface to send from
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", requires = "udp")]
    interface: Ipv4Addr,
    /// Files of templates; those of our own if none is given (repeatable)
    #[arg(long, value_name = "T.xml")]
    templates: Vec<PathBuf>,
    /// The same seed makes the same packets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Messages of the incremental channels that have a number
    #[arg(long, default_value_t = 100_000)]
    messages: u64,
    /// Stop after this many seconds of the exchange's time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Messages a second, about
    #[arg(long, default_value_t = 20_000)]
    rate: u32,
    /// Products: futures and options in turn
    #[arg(long, default_value_t = 4)]
    products: u32,
    /// Partitions, each with channels of its own
    #[arg(long, default_value_t = 2)]
    partitions: u32,
    /// Instruments of a product of futures
    #[arg(long, default_value_t = 4)]
    futures: u32,
    /// Instruments of a product of options
    #[arg(long, default_value_t = 200)]
    options: u32,
    /// Complex instruments that are added in the day
    #[arg(long, default_value_t = 2)]
    spreads: u32,
    /// Levels of a side that are published [default: 10, 5, 20 and 3 in turn]
    #[arg(long)]
    depth: Option<u32>,
    /// Snapshots and reference data on two lines, too
    #[arg(long)]
    both_lines: bool,
    /// What goes wrong: `some`, or fault=rate, more than one with commas
    #[arg(long, value_delimiter = ',', value_name = "FAULT=N")]
    faults: Vec<String>,
    /// The books at the end, one a line
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of a capture that are written together.
const CHUNK: usize = 1 << 16;

/// Runs the command.
pub fn run(args: ExchangeArgs) -> output::Result {
    let templates = templates(&args.templates)?;
    let mut exchange = Exchange::new(config(&args)?, &templates)?;
    let stop = output::stop_flag()?;
    let started_at = Instant::now();
    let mut capture = args.pcap.as_deref().map(CaptureOutput::create).transpose()?;
    let mut network = args.udp.map(|_| NetworkOutput::open(args.interface)).transpose()?;
    let (message_count, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    // Relaxed: figures for people.
    let position = || {
        let (messages, sent) = (message_count.load(Ordering::Relaxed), sent.load(Ordering::Relaxed));
        (sent, (u128::from(sent) * u128::from(args.messages) / u128::from(messages.max(1))) as u64)
    };
    let note = || format!("{} messages", grouped(message_count.load(Ordering::Relaxed)));
    let mut packets = 0u64;
    output::with_progress("generate", position, note, || -> Result<(), CommandFailure> {
        while let Some(packet) = exchange.next()? {
            if let Some(network) = &mut network {
                network.send_packet(&packet, &stop)?;
            }
            if let Some(capture) = &mut capture {
                capture.write_packet(&packet)?;
            }
            packets += 1;
            message_count.store(exchange.messages(), Ordering::Relaxed);
            sent.fetch_add(packet.bytes.len() as u64, Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        capture.as_mut().map_or(Ok(()), CaptureOutput::end_file)
    })?;
    if let Some(path) = &args.truth {
        books(path, &exchange)?;
    }
    summary(&args, &exchange, packets, sent.into_inner(), started_at.elapsed().as_secs_f64())?;
    if stop.load(Ordering::Relaxed) {
        return Err(CommandFailure::Error("stopped before the end".to_owned()));
    }
    Ok(CommandOutcome::Clean)
}

fn templates(files: &[PathBuf]) -> Result<ChannelTemplates, CommandFailure> {
    if files.is_empty() {
        return Ok(ChannelTemplates::shipped());
    }
    let read_file = |path: &PathBuf| std::fs::read(path).map_err(|e| file_failure(path, e));
    let content: Vec<Vec<u8>> = files.iter().map(read_file).collect::<Result<_, _>>()?;
    let file_names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let sources: Vec<TemplateFile<'_>> =
        file_names.iter().zip(&content).map(|(name, content)| TemplateFile { name, content }).collect();
    Ok(ChannelTemplates::load(&sources)?)
}

fn config(args: &ExchangeArgs) -> Result<ExchangeConfig, CommandFailure> {
    let defaults = ExchangeConfig::default();
    let span_ns = match args.seconds {
        Some(seconds) => seconds.checked_mul(1_000_000_000),
        None => Some(defaults.span_ns),
    };
    let partitions = args.partitions.min(args.products);
    if let Some(group) = args.udp {
        let [_, _, c, d] = group.ip().octets();
        if group.port() > u16::MAX - 3 || c > u8::MAX - 3 || u32::from(d) + partitions > u8::MAX.into() {
            let reason = "the addresses of its channels follow from it, and there is no room for them";
            return Err(CommandFailure::Usage(format!("--udp {group}: {reason}; see --help")));
        }
    }
    Ok(ExchangeConfig {
        seed: args.seed,
        messages: args.messages,
        span_ns: span_ns.ok_or_else(|| CommandFailure::Usage("--seconds: too many".to_owned()))?,
        rate: args.rate,
        products: args.products,
        partitions: args.partitions,
        futures: args.futures,
        options: args.options,
        spreads: args.spreads,
        depth: args.depth,
        both_lines: args.both_lines,
        faults: parse_fault_rates(&args.faults)?,
        group: args.udp.unwrap_or(defaults.group),
        // The truth is needed at the end only.
        moments_max: 1,
        ..defaults
    })
}

/// Parses fault rates such as `some` and `lost=2000`. Later items win.
fn parse_fault_rates(list: &[String]) -> Result<FaultRates, CommandFailure> {
    let FaultRates { dead_ns, burst_packets, .. } = FaultRates::of_all_kinds();
    let mut faults = FaultRates { dead_ns, burst_packets, ..FaultRates::default() };
    for item in list.iter().filter(|item| !item.is_empty()) {
        if item == "some" {
            faults = FaultRates::of_all_kinds();
            continue;
        }
        let usage = || {
            let fault_names = "some, lost-once, lost, burst, burst-packets, doubled, swapped, damaged, dead, dead-ms, \
                         restarts, join";
            CommandFailure::Usage(format!("--faults {item}: wants fault=number; there are {fault_names}"))
        };
        let (name, number) = item.split_once('=').ok_or_else(usage)?;
        let number: u64 = number.parse().map_err(|_| usage())?;
        let rate = u32::try_from(number).ok().filter(|rate| *rate <= 1_000_000);
        let rate = || {
            rate.ok_or_else(|| {
                CommandFailure::Usage(format!(
                    "--faults {item}: a rate is at most 1000000 of a million packets"
                ))
            })
        };
        match name {
            "lost-once" => faults.lost_once = rate()?,
            "lost" => faults.lost = rate()?,
            "burst" => faults.burst = rate()?,
            "burst-packets" => faults.burst_packets = rate()?,
            "doubled" => faults.doubled = rate()?,
            "swapped" => faults.swapped = rate()?,
            "damaged" => faults.damaged = rate()?,
            "dead" => faults.dead = rate()?,
            "restarts" => faults.restarts = rate()?,
            "dead-ms" => faults.dead_ns = number.checked_mul(1_000_000).ok_or_else(usage)?,
            "join" => faults.join = number,
            _ => return Err(usage()),
        }
    }
    Ok(faults)
}

/// A capture under way.
struct CaptureOutput {
    capture_path: PathBuf,
    capture_file: File,
    buffer: Vec<u8>,
}

impl CaptureOutput {
    fn create(path: &Path) -> Result<Self, CommandFailure> {
        let mut buffer = Vec::with_capacity(2 * CHUNK);
        write::file_header(&mut buffer);
        Ok(Self {
            capture_path: path.to_owned(),
            capture_file: File::create(path).map_err(|e| file_failure(path, e))?,
            buffer,
        })
    }

    fn write_packet(&mut self, packet: &DeliveredPacket) -> Result<(), CommandFailure> {
        let sender = SocketAddr::from(([10, 77, 0, packet.partition as u8], 30_000 + packet.line as u16));
        write::datagram(&mut self.buffer, packet.ts_ns as i64, sender, packet.to.into(), &packet.bytes);
        if self.buffer.len() >= CHUNK { self.end_file() } else { Ok(()) }
    }

    fn end_file(&mut self) -> Result<(), CommandFailure> {
        self.capture_file.write_all(&self.buffer).map_err(|e| file_failure(&self.capture_path, e))?;
        self.buffer.clear();
        Ok(())
    }
}

/// The network, at the pace of the exchange.
struct NetworkOutput {
    socket: UdpSocket,
    /// Our time and the exchange's of the first packet.
    first_packet: Option<(Instant, u64)>,
}

/// Ahead by more than this, we sleep; by less, we wait.
const SLEEP: Duration = Duration::from_micros(300);

impl NetworkOutput {
    fn open(interface: Ipv4Addr) -> Result<Self, CommandFailure> {
        let fail =
            |action: &str, e: &dyn std::fmt::Display| CommandFailure::Error(format!("--udp: {action}: {e}"));
        let socket = UdpSocket::bind((interface, 0)).map_err(|e| fail(&interface.to_string(), &e))?;
        let outgoing = sockopt::set_ip_multicast_if(&socket, &interface);
        outgoing.map_err(|e| fail("choose the interface", &e))?;
        socket.set_multicast_loop_v4(true).map_err(|e| fail("loop back", &e))?;
        Ok(Self { socket, first_packet: None })
    }

    fn send_packet(&mut self, packet: &DeliveredPacket, stop: &AtomicBool) -> Result<(), CommandFailure> {
        let (began, first_ns) = *self.first_packet.get_or_insert_with(|| (Instant::now(), packet.ts_ns));
        let due = Duration::from_nanos(packet.ts_ns - first_ns);
        // Relaxed: a wish.
        while !stop.load(Ordering::Relaxed) {
            let Some(remaining) = due.checked_sub(began.elapsed()).filter(|span| !span.is_zero()) else {
                break;
            };
            if remaining > SLEEP {
                std::thread::sleep((remaining - SLEEP).min(Duration::from_millis(100)));
            } else {
                std::hint::spin_loop();
            }
        }
        match self.socket.send_to(&packet.bytes, packet.to) {
            Ok(_) => Ok(()),
            Err(e) => Err(CommandFailure::Error(format!("--udp: send to {}: {e}", packet.to))),
        }
    }
}

/// Writes the final state of every instrument.
fn books(path: &Path, exchange: &Exchange) -> Result<(), CommandFailure> {
    let mut out = BufWriter::new(File::create(path).map_err(|e| file_failure(path, e))?);
    let (world, truth) = (exchange.world(), exchange.truth());
    for (index, instrument) in world.instruments.iter().enumerate() {
        let (product, progress) = (world.product_of(index), truth.progress_of(instrument.product));
        let Some(now) = truth.current_moment(index) else { continue };
        let side = |levels: &[unitape_sim::exchange::ExchangeLevel]| {
            levels.iter().map(|level| (level.px, level.qty, level.orders)).collect::<Vec<_>>()
        };
        let line = serde_json::json!({
            "rec": "book", "product": product.id, "instrument": instrument.id, "partition": product.partition,
            "restarts": progress.restarts, "seq": progress.seq, "exponent": product.exponent, "status": now.status,
            "bids": side(&now.bids), "offers": side(&now.offers),
        });
        writeln!(out, "{line}").map_err(|e| file_failure(path, e))?;
    }
    out.flush().map_err(|e| file_failure(path, e))
}

fn summary(
    args: &ExchangeArgs,
    exchange: &Exchange,
    packets: u64,
    bytes: u64,
    elapsed_s: f64,
) -> Result<(), CommandFailure> {
    let (world, config) = (exchange.world(), exchange.config());
    let mut channels = Vec::new();
    for partition in 1..=config.partitions.min(config.products) {
        channels.push((ExchangeChannel::Incremental, ExchangeLine::A, partition));
        channels.push((ExchangeChannel::Incremental, ExchangeLine::B, partition));
        channels.push((ExchangeChannel::Snapshot, ExchangeLine::A, partition));
        channels.extend(config.both_lines.then_some((ExchangeChannel::Snapshot, ExchangeLine::B, partition)));
    }
    channels.push((ExchangeChannel::Reference, ExchangeLine::A, 1));
    channels.extend(config.both_lines.then_some((ExchangeChannel::Reference, ExchangeLine::B, 1)));
    if args.json {
        let products: Vec<_> = (world.products.iter())
            .map(|p| {
                serde_json::json!({
                    "id": p.id, "name": p.name, "partition": p.partition, "depth": p.depth,
                    "instruments": p.instruments.len(),
                })
            })
            .collect();
        let channels: Vec<_> = (channels.iter())
            .map(|(channel, line, partition)| {
                serde_json::json!({
                    "channel": channel.name(), "line": if *line == ExchangeLine::A { "A" } else { "B" },
                    "partition": partition, "address": config.address(*channel, *line, *partition).to_string(),
                })
            })
            .collect();
        return output::print_json(&serde_json::json!({
            "seed": config.seed, "messages": exchange.messages(), "packets": packets, "bytes": bytes,
            "faults": exchange.faults(), "products": products, "channels": channels, "elapsed_s": elapsed_s,
        }));
    }
    let size = output::bytes(bytes);
    say!("{} messages in {} packets, {size}", grouped(exchange.messages()), grouped(packets));
    for (channel, line, partition) in channels {
        let destination = config.address(channel, line, partition);
        let name = match (config.lines(channel), line) {
            (1, _) => channel.name().to_owned(),
            (_, ExchangeLine::A) => format!("{} A", channel.name()),
            (_, ExchangeLine::B) => format!("{} B", channel.name()),
        };
        say!("  {name:<22} {:<13} {destination}", format!("partition {partition}"));
    }
    let f = exchange.faults();
    for (name, n) in [
        ("lost on one line", f.lost_once),
        ("lost", f.lost),
        ("lost in bursts, on a line", f.in_bursts),
        ("doubled", f.doubled),
        ("overtaken", f.swapped),
        ("damaged", f.damaged),
        ("not heard on a silent line", f.silent),
        ("before the first that is heard", f.missed),
        ("restarts", f.restarts),
    ] {
        if n > 0 {
            say!("    {:>9}  {name}", grouped(n));
        }
    }
    Ok(())
}
