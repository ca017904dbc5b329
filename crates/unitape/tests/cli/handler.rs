//! `unitape handler CAPTURE --config CONFIG`: an exchange in a box, its packets in a capture, its books against the exchange's own.

use crate::common::{self, Ran, run};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use unitape_base::capture::write::{datagram, file_header};
use unitape_model::Price;
use unitape_sim::exchange::{ChannelTemplates, Exchange, ExchangeChannel, ExchangeConfig, ExchangeLine};
use unitape_sim::twin::{ExactLevel, ReceivedBook};

/// A capture of a short day, the handler's configuration, and the exchange at its end.
fn day(dir: &Path) -> (PathBuf, PathBuf, Exchange) {
    let config = ExchangeConfig { messages: 3_000, options: 20, ..ExchangeConfig::default() };
    let text = config.mapping(|channel| {
        let name = format!("{}.xml", channel.name());
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fast/box");
        std::fs::copy(vectors.join(&name), dir.join(&name)).unwrap();
        name
    });
    let mut exchange = Exchange::new(config, &ChannelTemplates::shipped()).unwrap();
    let (mut capture, from) = (Vec::new(), "10.0.0.1:1".parse().unwrap());
    file_header(&mut capture);
    while let Some(packet) = exchange.next().unwrap() {
        datagram(&mut capture, packet.ts_ns as i64, from, SocketAddr::V4(packet.to), &packet.bytes);
    }
    let (pcap, toml) = (dir.join("day.pcap"), dir.join("box.toml"));
    std::fs::write(&pcap, capture).unwrap();
    std::fs::write(&toml, text).unwrap();
    (pcap, toml, exchange)
}

fn book(pcap: &Path, config: &Path, args: &[&str]) -> Ran {
    let start = ["handler".as_ref(), pcap.as_os_str(), "--config".as_ref(), config.as_os_str()];
    run(start.into_iter().chain(args.iter().map(AsRef::as_ref)))
}

#[test]
fn the_books_of_a_capture_are_those_of_the_exchange() {
    let dir = tempfile::tempdir().unwrap();
    let (pcap, config, exchange) = day(dir.path());
    let books = book(&pcap, &config, &["--json", "--depth", "100"]).code(0).lines();
    let mut compared = 0;
    let differs = exchange.first_difference(
        |_| true,
        |instrument| {
            let id = instrument.id.to_string();
            let mine = books.iter().find(|b| b["instr"] == id.as_str())?;
            let product = &exchange.world().products[instrument.product];
            assert_eq!(mine["product"].as_str(), Some(product.id.to_string().as_str()));
            let level = |level: &Value| ExactLevel {
                px: Price::parse(level["px"].as_str().unwrap().as_bytes()).unwrap().0,
                qty: level["qty"].as_str().unwrap().parse().unwrap(),
                orders: level["orders"].as_u64().unwrap().try_into().unwrap(),
            };
            let side = |side: &str| mine[side].as_array().unwrap().iter().map(level).collect::<Vec<_>>();
            let book =
                ReceivedBook { stale: mine["stale"] == true, bids: side("bids"), offers: side("asks") };
            compared += book.bids.len() + book.offers.len();
            Some(book)
        },
    );
    assert_eq!(differs, None);
    assert!(compared > 100, "{compared}");
}

#[test]
fn one_group_one_instrument_and_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let (pcap, config, exchange) = day(dir.path());
    let product = &exchange.world().products[0];
    let books = book(&pcap, &config, &["--json", "--group", &product.name]).code(0).lines();
    assert!(!books.is_empty() && books.iter().all(|b| b["group"] == product.name.as_str()));
    let id = exchange.world().instruments[0].id.to_string();
    let ran = book(&pcap, &config, &["--instr", &id]).code(0);
    let said = ran.text();
    assert!(said.starts_with(&format!("{id} ")) && said.contains("bid"), "{said}");
    book(&pcap, &config, &["--instr", "nobody"]).code(0).says(&["no instrument nobody"]);
    let ran = book(&pcap, &config, &["--instr", &id, "--depth", "1"]).code(0);
    assert!(ran.text().contains(" more levels of bids, "), "{}", ran.text());
    // How the lines did: this day, all of both came.
    book(&pcap, &config, &["--instr", &id, "--stats"]).code(0).says(&[
        "incremental: A ",
        "; B ",
        "0 lost in 0 gaps",
    ]);
    let stats = book(&pcap, &config, &["--json", "--stats"]).code(0).lines().pop().unwrap();
    let channel = &stats["stats"]["channels"][0];
    let of = |line: usize, what: &str| channel["lines"][line][what].as_u64().unwrap();
    let packets = of(0, "packets");
    assert!(channel["name"] == "incremental" && packets > 100 && channel["lost"] == 0, "{stats}");
    assert_eq!((of(1, "packets"), of(0, "first") + of(1, "first")), (packets, packets), "{stats}");
    book(&pcap, &config, &["--group", "nobody"]).code(0).says(&["no group nobody", &product.name]);
    book(&pcap, &config, &["--group", &product.name, "--instr", &id]).code(2);
    book(&pcap, &config, &["--channel", "incremental"]).code(2).says(&["say no channel"]);
    // Another venue's addresses.
    let text = std::fs::read_to_string(&config).unwrap();
    let other = dir.path().join("other.toml");
    std::fs::write(&other, text.replace(":14", ":15")).unwrap();
    let first = exchange.config().address(ExchangeChannel::Incremental, ExchangeLine::A, 1).to_string();
    book(&pcap, &other, &[]).code(3).says(&["no packet was sent to an address of a channel of", &first]);
    book(&pcap, &config, &["--follow"]).code(2);
    book(&config, &config, &[]).code(3).says(&["no capture"]);
    // The end is missing, and with it some of the day.
    let bytes = std::fs::read(&pcap).unwrap();
    std::fs::write(&pcap, &bytes[..bytes.len() - 7]).unwrap();
    book(&pcap, &config, &["--json"]).code(3).says(&["bytes at the end that are no whole packet"]);
}

/// A run reports the same about its feed's lines, as data too.
#[test]
fn a_run_tells_how_each_line_did() {
    let dir = tempfile::tempdir().unwrap();
    let (pcap, config, _) = day(dir.path());
    let stats = book(&pcap, &config, &["--json", "--stats"]).code(0).lines().pop().unwrap();
    let feed = "[tape]\ndir = \"tape\"\n[[feed]]\nname = \"box\"\nformat = \"fast\"\nmapping = \"box.toml\"\nfiles = [\"day.pcap\"]\n";
    let path = common::file(dir.path(), "run.toml", feed);
    let output = run(["run".as_ref(), path.as_os_str(), "--json".as_ref()]).code(0).lines();
    let last = output.iter().rfind(|line| line["stats"]["feed"] == "box").unwrap();
    assert_eq!(last["stats"]["handler"]["channels"], stats["stats"]["channels"]);
}
