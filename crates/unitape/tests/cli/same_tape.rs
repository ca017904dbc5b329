//! Same input, same tape: every shipped format, at any number of workers, wherever blocks are cut, however often it was
//! stopped or killed, read as files or followed as a directory.
//!
//! Each format has its own way to find where a message starts, and each was wrong once about the bytes at a cut: a
//! date that only the first record contains, a count in a trailer, an acknowledgement before its message. So the
//! inputs here are good messages and damage, cut anywhere. `UNITAPE_TAPE_SEED` asks for other damage and other
//! moments.

use crate::common::{assert_same, root, run, unitape};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use unitape_base::capture::write;
use unitape_codec::iex::IexProtocol;
use unitape_codec::twin::iex::sample::{IexSampleConfig, capture as iex_capture, sample_packets};
use unitape_codec::twin::iso20022::sample::sample_messages as payments;
use unitape_codec::twin::itch::sample::{SampleConfig, sample_messages};
use unitape_codec::twin::text::jsonl::sample::{JsonlSampleFormat, sample_lines};
use unitape_codec::twin::text::mail::sample::sample_mbox;
use unitape_codec::twin::text::xml::sample::{SampleFeedKind as News, sample_feed};
use unitape_feed::run as run_live;
use unitape_feed::{
    ConsolidateOptions, FarmEnding, FeedInput, FileFeed, Mapping, MasterLoader, RunFeed, RunOptions,
    TapeAccount, consolidate, feed_of_option,
};
use unitape_model::NameKind;
use unitape_sim::Rng;
use unitape_sim::exchange::{ChannelTemplates, Exchange, ExchangeConfig, FaultRates};
use unitape_tape::WriterOptions as TapeOptions;

/// A format with a mapping and bytes of it; a new one is a line here, or the test says that it is missing.
struct Case {
    format: &'static str,
    /// Empty where the format has none.
    mapping: &'static str,
    /// A file of the project, of the simulated day, or of what the codec's sample makes.
    file: &'static str,
    /// Bytes of it that are used.
    bytes: usize,
}

const CASES: &[Case] = &[
    case("fix", "jse-fix50-indices", "vectors/fix/jse/jse_fix50_marketdata_head80.fix", 300_000),
    case("fix", "fix44-orders", "day/market.fix", 90_000),
    case("fixed", "nyse-taq-bbo-98", "vectors/fixed/taq/nyse_taq_bbo_20140206.txt", 60_000),
    case("fixed", "sim-day", "day/market.fixed", 60_000),
    case("swift", "swift-mt", "day/payments.swift", 60_000),
    case("swift", "swift-mt", "vectors/swift/prowide/unit_test_messages.rje", 60_000),
    case("swift", "swift-mt", "vectors/swift/families.rje", 20_000),
    case("itch", "nasdaq-itch50", "sample/20200130.itch50", 60_000),
    case("itch", "nasdaq-itch50-stateless", "sample/20200130.itch50", 60_000),
    case("iex", "iex", "sample/iex.pcap", 120_000),
    case("csv", "nyse-taq-trades", "vectors/csv/EQY_US_ALL_TRADE_20161024.txt", 30_000),
    case("csv", "nyse-taq-quotes", "vectors/csv/SPLITS_US_ALL_BBO_A_20161024.txt", 30_000),
    case("csv", "nyse-taq-nbbo", "vectors/csv/EQY_US_ALL_NBBO_20161024.txt", 30_000),
    case("csv", "nyse-taq-master", "vectors/csv/EQY_US_ALL_REF_MASTER_20161024.txt", 30_000),
    case("csv", "binance-trades", "vectors/csv/BTCUSDT-trades-2024-12-31.csv", 20_000),
    case("csv", "binance-futures-trades", "vectors/csv/ETHUSDT-trades-2026-03-02.csv", 20_000),
    case("csv", "binance-agg-trades", "vectors/csv/BTCUSDT_260327-aggTrades-2026-03-02.csv", 20_000),
    case("csv", "binance-klines", "vectors/csv/ETHUSDT-1m-2026-03-02.csv", 20_000),
    case("csv", "binance-klines", "vectors/csv/BTCUSDT-1m-2026-03-02.csv", 20_000),
    case("csv", "dukascopy-ticks", "vectors/csv/EURUSD_Ticks_02.03.2026-02.03.2026.csv", 20_000),
    case("csv", "histdata-ticks", "vectors/csv/DAT_ASCII_EURUSD_T_202603.csv", 20_000),
    case("csv", "histdata-bars", "vectors/csv/DAT_ASCII_EURUSD_M1_2026.csv", 20_000),
    case("csv", "truefx-ticks", "vectors/csv/EURUSD-2026-03.csv", 20_000),
    case("csv", "mt5-ticks", "vectors/csv/EURUSD_202603020000_202603020001.csv", 20_000),
    case("csv", "mt5-bars", "vectors/csv/EURUSD_M1_202603020000_202603020001.csv", 20_000),
    case("csv", "lobster", "vectors/csv/ABCD_2012-06-21_34200000_57600000_message_10.csv", 20_000),
    case("iso20022", "iso20022", "sample/payments.xml", 120_000),
    case("jsonl", "ninjs", "sample/ninjs.jsonl", 40_000),
    case("jsonl", "slack-messages", "sample/slack.jsonl", 40_000),
    case("jsonl", "symphony-messages", "sample/symphony.jsonl", 40_000),
    case("jsonl", "binance-depth", "vectors/text/binance-depth.jsonl", 20_000),
    case("jsonl", "okx-books", "vectors/text/okx-books.jsonl", 20_000),
    case("jsonl", "coinbase-level2", "vectors/text/coinbase-level2.jsonl", 20_000),
    case("jsonl", "kraken-book", "vectors/text/kraken-book.jsonl", 20_000),
    case("mail", "mail", "sample/archive.mbox", 50_000),
    case("newsxml", "rss-news", "sample/rss.xml", 40_000),
    case("newsxml", "atom-news", "sample/atom.xml", 40_000),
    case("newsxml", "newsml-g2", "sample/newsml.xml", 40_000),
    case("fast", "moex-trades", "vectors/fast/moex/olr_5020.dat", 40_000),
    case("fast", BOX, "sample/exchange.pcap", 250_000),
    case("events", "", "day/events.jsonl", 90_000),
];

/// A handler's mapping has addresses and templates of its own; this one is like the shipped ones.
const BOX: &str = "box";

const fn case(format: &'static str, mapping: &'static str, file: &'static str, bytes: usize) -> Case {
    Case { format, mapping, file, bytes }
}

impl Case {
    fn feed_option(&self, name: &str, path: &Path) -> String {
        let mapping = match self.mapping {
            BOX => root().join("examples/feeds/box.toml").display().to_string(),
            shipped => shipped.to_owned(),
        };
        format!("{name}={}:{mapping}:{}", self.format, path.display())
    }

    fn feed(&self, name: &str, path: &Path) -> FileFeed {
        feed_of_option(&self.feed_option(name, path)).unwrap()
    }

    /// Its bytes with damage, as a file in `dir`.
    fn input(&self, dir: &Path, seed: u64) -> PathBuf {
        let mut bytes = match self.file.split_once('/') {
            Some(("day", file)) => fs::read(dir.join("day").join(file)).unwrap(),
            Some(("sample", "payments.xml")) => payments(60, 5),
            Some(("sample", "exchange.pcap")) => exchange(5),
            Some(("sample", "iex.pcap")) => iex_session(5),
            Some(("sample", "archive.mbox")) => sample_mbox(90, 5),
            Some(("sample", "rss.xml")) => sample_feed(News::Rss, 90, 5),
            Some(("sample", "atom.xml")) => sample_feed(News::Atom, 90, 5),
            Some(("sample", "newsml.xml")) => sample_feed(News::NewsMl, 70, 5),
            Some(("sample", "ninjs.jsonl")) => sample_lines(JsonlSampleFormat::Ninjs, 120, 5),
            Some(("sample", "slack.jsonl")) => sample_lines(JsonlSampleFormat::Slack, 120, 5),
            Some(("sample", "symphony.jsonl")) => sample_lines(JsonlSampleFormat::Symphony, 120, 5),
            Some(("sample", _)) => {
                sample_messages(SampleConfig { messages: 3_000, stocks: 40, live: 300, seed: 5 })
            }
            _ => fs::read(root().join(self.file)).unwrap(),
        };
        // A short file is used several times.
        let once = bytes.clone();
        while bytes.len() < self.bytes && matches!(self.format, "csv" | "jsonl") {
            bytes.extend_from_slice(&once);
        }
        bytes.truncate(self.bytes);
        // The name of a file may give the date of its contents.
        let place = dir.join(format!("{seed}-{}", self.mapping));
        fs::create_dir(&place).unwrap();
        let path = place.join(Path::new(self.file).file_name().unwrap());
        fs::write(&path, damaged(bytes, &mut Rng::new(seed))).unwrap();
        path
    }
}

/// A session of DEEP+ as a capture.
fn iex_session(seed: u64) -> Vec<u8> {
    let protocol = IexProtocol::DeepPlus;
    iex_capture(&sample_packets(IexSampleConfig { protocol, messages: 2_000, symbols: 10, seed }))
}

/// Bytes changed, lost, put in and repeated, now and then; not in the first kilobyte, where a header is.
fn damaged(bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let least = if out.is_empty() { 1_000 } else { 200 };
        let good = (least + rng.below(6_000) as usize).min(rest.len());
        out.extend_from_slice(&rest[..good]);
        let stretch = &rest[..good];
        rest = &rest[good..];
        let some = 1 + rng.below(120) as usize;
        match rng.below(6) {
            0 => rest = &rest[some.min(rest.len())..],
            1 => out.extend_from_slice(b"\r\nsome noise {4: 8=FIX.4.4\x01 \"\n"),
            2 => out.extend_from_slice(&stretch[stretch.len().saturating_sub(some)..]),
            3 => *out.last_mut().unwrap() ^= 1 << rng.below(8),
            _ => {}
        }
    }
    out
}

/// Packets of an exchange of which some are lost, late, doubled and damaged.
fn exchange(seed: u64) -> Vec<u8> {
    let config = ExchangeConfig {
        seed,
        products: 2,
        options: 10,
        messages: 1_500,
        faults: FaultRates::of_all_kinds(),
        ..ExchangeConfig::default()
    };
    let (mut exchange, mut bytes) =
        (Exchange::new(config, &ChannelTemplates::shipped()).unwrap(), Vec::new());
    write::file_header(&mut bytes);
    while let Some(packet) = exchange.next().unwrap() {
        let from = "10.0.0.1:1".parse().unwrap();
        write::datagram(&mut bytes, packet.ts_ns as i64, from, packet.to.into(), &packet.bytes);
    }
    bytes
}

/// A simulated day in `dir/day`.
fn day(dir: &Path) {
    let out = dir.join("day");
    let args = ["generate", "market", "--events", "3000", "--format", "events,fix,fixed,swift", "--out"];
    run(args.map(std::ffi::OsStr::new).into_iter().chain([out.as_os_str()])).code(0);
}

fn seed() -> u64 {
    std::env::var("UNITAPE_TAPE_SEED").map_or(1, |n| n.parse().expect("a seed"))
}

fn small_tape() -> TapeOptions {
    TapeOptions { segment_bytes: 1 << 18, prefault_bytes: 0, ..TapeOptions::default() }
}

fn options(feed: &FileFeed, workers: usize, block_bytes: usize) -> ConsolidateOptions<'static> {
    let feeds = vec![feed.clone()];
    ConsolidateOptions { feeds, workers, block_bytes, tape: small_tape(), ..ConsolidateOptions::default() }
}

/// A number of workers, and bytes of a block from a few hundred to a hundred thousand.
fn farm(rng: &mut Rng) -> (usize, usize) {
    (1 + rng.below(4) as usize, (300 + rng.below(600) as usize) << rng.below(8))
}

#[test]
fn every_shipped_mapping_is_here() {
    let whole = |m: &&Mapping| m.fast_table.as_ref().is_none_or(|table| !table.is_base());
    let shipped: BTreeSet<_> =
        Mapping::all_built_in().filter(whole).map(|m| (m.format.clone(), m.name.clone())).collect();
    let here: BTreeSet<_> = CASES.iter().map(|c| (c.format.to_owned(), c.mapping.to_owned())).collect();
    let missing: Vec<_> = shipped.difference(&here).collect();
    assert!(missing.is_empty(), "shipped, and without a line in CASES: {missing:?}");
}

#[test]
fn any_number_of_workers_any_cut_and_any_stop() {
    let dir = tempfile::tempdir().unwrap();
    day(dir.path());
    for (i, case) in CASES.iter().enumerate() {
        let seed = seed().wrapping_mul(1_000_003) + i as u64;
        let mut rng = Rng::new(seed ^ 77);
        let path = case.input(dir.path(), seed);
        let feed = case.feed("f", &path);
        let whole = dir.path().join(format!("whole-{i}"));
        let account = consolidate(&whole, options(&feed, 1, 1 << 20)).unwrap().summary;
        let context = format!("UNITAPE_TAPE_SEED={}, {} {}", self::seed(), case.mapping, case.file);
        assert!(account.events > 20 && account.quarantined > 0, "{context}: {account:?}");
        for round in 0..6 {
            let (workers, block) = if round == 0 { (4, 64) } else { farm(&mut rng) };
            let other = dir.path().join("other");
            consolidate(&other, options(&feed, workers, block)).unwrap();
            assert_same(&whole, &other, &format!("{context}: {workers} workers, blocks of {block}"));
            fs::remove_dir_all(&other).unwrap();
        }
        let parts = dir.path().join("parts");
        let stops = stopped_again_and_again(&parts, &feed, account.messages, &mut rng);
        assert_same(&whole, &parts, &format!("{context}: {stops} stops"));
        fs::remove_dir_all(&parts).unwrap();
    }
}

/// Runs, each stopped after some messages and each with other workers and blocks, until all is done.
fn stopped_again_and_again(tape: &Path, feed: &FileFeed, messages: u64, rng: &mut Rng) -> u32 {
    for stops in 0.. {
        assert!(stops < 1_000, "it does not come to its end");
        let (workers, block) = farm(rng);
        let stop = AtomicBool::new(false);
        let options = ConsolidateOptions { stop: Some(&stop), ..options(feed, workers, block.min(4_000)) };
        // A stop among messages without events leaves no trace of them, so later stops come later.
        let upto = 1 + rng.below(messages / 3 + 20 * u64::from(stops));
        let progress = options.progress.clone();
        let ending = std::thread::scope(|scope| {
            scope.spawn(|| {
                let done = || progress.counters.messages.load(Ordering::Relaxed) >= upto;
                while !done() && !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::Relaxed);
            });
            let outcome = consolidate(tape, options);
            // The thread must end before a failure is reported.
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap().ending
        });
        if ending == FarmEnding::EndOfInput {
            return stops;
        }
    }
    unreachable!("the loop has no end")
}

/// A source that is found while it runs is defined on the way, and a block then holds the bytes available at the
/// time.
#[test]
fn a_live_run_too() {
    let dir = tempfile::tempdir().unwrap();
    day(dir.path());
    for (i, case) in CASES.iter().enumerate() {
        let seed = seed().wrapping_mul(1_000_033) + i as u64;
        let mut rng = Rng::new(seed ^ 99);
        let path = case.input(dir.path(), seed);
        let folder = dir.path().join(format!("folder-{i}"));
        fs::create_dir(&folder).unwrap();
        fs::rename(&path, folder.join(path.file_name().unwrap())).unwrap();
        let format = case.feed("f", &path).format;
        let live = |tape: &Path, workers, block_bytes| {
            let input = FeedInput::Directory { path: folder.clone(), follow: false };
            let feeds = vec![RunFeed::new("f".to_owned(), format.clone(), input)];
            let options = RunOptions { workers, block_bytes, tape: small_tape(), ..RunOptions::new(feeds) };
            run_live(tape, options).unwrap().summary
        };
        let whole = dir.path().join(format!("whole-{i}"));
        let account = live(&whole, 1, 1 << 20);
        let context = format!("UNITAPE_TAPE_SEED={}, {} {}", self::seed(), case.mapping, case.file);
        assert!(account.events > 20 && account.quarantined > 0, "{context}: {account:?}");
        for _ in 0..3 {
            let (workers, block) = farm(&mut rng);
            let other = dir.path().join("other");
            live(&other, workers, block);
            assert_same(&whole, &other, &format!("{context}: live, {workers} workers, blocks of {block}"));
            fs::remove_dir_all(&other).unwrap();
        }
    }
}

/// Reference data for the names on a tape: one of every three is an ISIN of all days, one a symbol on each venue that
/// changes hands, and one is not known.
fn reference(tape: &Path, dir: &Path) -> PathBuf {
    let names = TapeAccount::load(tape).unwrap().names.dictionary().clone();
    let all = |dict: NameKind| {
        let name = |id| (id, names.name(dict, id).expect("defined").to_owned());
        (1..=names.len(dict)).map(name).collect::<Vec<_>>()
    };
    let mut lines = String::new();
    let mut entry = |fields: serde_json::Value| {
        let mut line = serde_json::json!({"ts": 0, "kind": "ref"});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        lines += &format!("{line}\n");
    };
    for (id, name) in all(NameKind::Instrument) {
        match id % 3 {
            0 => entry(serde_json::json!({"instr": format!("I{}", id / 6), "isin": name})),
            1 => {
                for (_, venue) in all(NameKind::Venue) {
                    for (instr, key, day) in
                        [("OLD", "valid_to", "2020-01-30"), ("NEW", "valid_from", "2020-01-31")]
                    {
                        let instr = format!("{instr}{id}");
                        entry(serde_json::json!({"instr": instr, "mic": venue, "symbol": name, key: day}));
                    }
                }
            }
            _ => {}
        }
    }
    entry(serde_json::json!({"instr": "NOBODY"}));
    let path = dir.join("master.jsonl");
    fs::write(&path, lines).unwrap();
    path
}

/// The meaning of a name depends on the venue and the day of its event, and ids are given in the order of first use.
/// A worker that looked at anything else would make another tape.
#[test]
fn with_reference_data_too() {
    let dir = tempfile::tempdir().unwrap();
    day(dir.path());
    let mut unresolved = 0;
    for (i, case) in CASES.iter().enumerate() {
        let seed = seed().wrapping_mul(1_000_037) + i as u64;
        let mut rng = Rng::new(seed ^ 55);
        let path = case.input(dir.path(), seed);
        let mut feed = case.feed("f", &path);
        let plain = dir.path().join(format!("plain-{i}"));
        consolidate(&plain, options(&feed, 1, 1 << 20)).unwrap();
        let mut loader = MasterLoader::default();
        loader.add(&reference(&plain, dir.path()), &MasterLoader::format("events").unwrap()).unwrap();
        feed.format = feed.format.with_reference(&Arc::new(loader.finish().unwrap()));
        let whole = dir.path().join(format!("whole-{i}"));
        let account = consolidate(&whole, options(&feed, 1, 1 << 20)).unwrap().summary;
        let context = format!("UNITAPE_TAPE_SEED={}, {} {}", self::seed(), case.mapping, case.file);
        assert_eq!(TapeAccount::load(&whole).unwrap().summary().unresolved, account.unresolved, "{context}");
        unresolved += account.unresolved;
        for workers in [2, 4] {
            let block = farm(&mut rng).1;
            let other = dir.path().join("other");
            let again = consolidate(&other, options(&feed, workers, block)).unwrap().summary;
            assert_same(&whole, &other, &format!("{context}: {workers} workers, blocks of {block}"));
            assert_eq!(again.unresolved, account.unresolved, "{context}");
            fs::remove_dir_all(&other).unwrap();
        }
        let parts = dir.path().join("parts");
        let stops = stopped_again_and_again(&parts, &feed, account.messages, &mut rng);
        assert_same(&whole, &parts, &format!("{context}: {stops} stops"));
        fs::remove_dir_all(&parts).unwrap();
    }
    assert!(unresolved > 100, "{unresolved}");
}

/// All formats merged onto one tape, by a process that is killed at any moment.
#[test]
fn all_at_once_and_killed() {
    killed(false, 12);
}

#[test]
fn all_at_once_and_killed_with_reference_data() {
    killed(true, 4);
}

fn killed(with_reference: bool, kills_wanted: u32) {
    let dir = tempfile::tempdir().unwrap();
    day(dir.path());
    let seed = seed();
    let mut rng = Rng::new(seed);
    let feeds: Vec<String> = CASES
        .iter()
        .enumerate()
        .map(|(i, case)| case.feed_option(&format!("f{i}"), &case.input(dir.path(), seed + i as u64)))
        .collect();
    let mut data: Vec<String> = Vec::new();
    let start = |tape: &Path, (workers, block): (usize, usize), data: &[String]| {
        let mut command = unitape();
        command.arg("consolidate").args(feeds.iter().flat_map(|f| ["--feed", f])).args(data);
        command.args(["--segment-bytes", "262144", "--workers", &workers.to_string()]);
        command.args(["--block-bytes", &block.to_string(), "--json", "--tape"]).arg(tape);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let whole = dir.path().join("whole");
    if with_reference {
        let plain = dir.path().join("plain");
        assert_eq!(start(&plain, (1, 1 << 20), &data).wait().unwrap().code(), Some(3));
        data = vec!["--reference".to_owned(), format!("{}:events", reference(&plain, dir.path()).display())];
    }
    let since = std::time::Instant::now();
    assert_eq!(start(&whole, (1, 1 << 20), &data).wait().unwrap().code(), Some(3));
    let whole_us = since.elapsed().as_micros() as u64;
    let mut kills = 0;
    while kills < kills_wanted {
        let tape = dir.path().join("killed");
        loop {
            let mut child = start(&tape, farm(&mut rng), &data);
            std::thread::sleep(Duration::from_micros(rng.below(whole_us.max(1))));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                kills += 1;
            }
            let out = child.wait_with_output().unwrap();
            if out.status.code() == Some(3) {
                break;
            }
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), None, "UNITAPE_TAPE_SEED={seed}: {said}");
            if kills > 60 {
                assert_eq!(start(&tape, farm(&mut rng), &data).wait().unwrap().code(), Some(3));
                break;
            }
        }
        assert_same(&whole, &tape, &format!("UNITAPE_TAPE_SEED={seed}, {kills} kills"));
        fs::remove_dir_all(&tape).unwrap();
    }
}
