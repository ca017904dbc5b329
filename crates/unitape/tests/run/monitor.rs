//! `[monitor]` of a run, and `unitape status`. A page that shows other figures than the tape has would wake nobody, or everybody.

use super::exposition::assert_is_accepted;
use crate::common::run::{Bench, Running, becomes, orders};
use crate::common::{Ran, file, order_with, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use unitape_server::monitor::{FEED_METRICS, TAPE_METRICS};
use unitape_tape::{Cursor, Reader, StartPosition};

const FEED: [(&str, &str); 1] = [("venue", "directory = \"in\"")];

fn bench(monitor: &str) -> Bench {
    let bench = Bench::new("", &FEED);
    fs::create_dir(bench.path("in")).unwrap();
    file(&bench.path("in"), "a.fix", orders(0..20));
    let text = fs::read_to_string(bench.path("run.toml")).unwrap();
    file(&bench.path(""), "run.toml", format!("{text}[monitor]\nlisten = \"127.0.0.1:0\"\n{monitor}\n"));
    bench
}

/// The address of the monitor, which the run names once it listens.
fn address(running: &mut Running) -> String {
    let words = "figures and health: ";
    let err = running.err.clone();
    let said = move || fs::read_to_string(&err).unwrap_or_default();
    let named = said.clone();
    running.until(move || named().split_once(words).is_some_and(|(_, rest)| rest.contains('\n')));
    let said = said();
    let (_, rest) = said.split_once(words).unwrap();
    rest.lines().next().unwrap().to_owned()
}

fn status(url: &str) -> Ran {
    run(["status", url, "--json"])
}

fn figure(status: &Value, name: &str, label: Option<&str>) -> String {
    let all = status["figures"].as_array().unwrap();
    let figure = all.iter().find(|f| f["name"] == name && f["label"].as_str() == label);
    figure.unwrap_or_else(|| panic!("no {name} {label:?} in {status}"))["value"].as_str().unwrap().to_owned()
}

fn has_reason(status: &Value, code: &str) -> bool {
    status["reasons"].as_array().unwrap().iter().any(|reason| reason["code"] == code)
}

/// The answer of the monitor to a GET, with its status line.
fn get(url: &str, path: &str) -> String {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_figures_are_those_of_the_tape() {
    let bench = bench("");
    let mut running = bench.start();
    let url = address(&mut running);
    bench.has(&mut running, 20);
    let counted = |status: &Value| figure(status, "unitape_feed_events_total", Some("venue"));
    assert!(becomes(|| counted(&status(&url).json()) == "20"));
    let well = status(&url).code(0).json();
    assert_eq!(well["ready"], true);
    assert_eq!(figure(&well, "unitape_ready", None), "1");
    assert_eq!(figure(&well, "unitape_feed_messages_total", Some("venue")), "20");
    assert_eq!(figure(&well, "unitape_feed_quarantined_messages_total", Some("venue")), "0");
    let info = run(["tape", "info", bench.tape().to_str().unwrap(), "--json"]).json();
    assert_eq!(figure(&well, "unitape_tape_committed_bytes", None), info["end"].to_string());
    assert!(get(&url, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(&url, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(get(&url, "/other").starts_with("HTTP/1.1 404"));
    let page = get(&url, "/metrics");
    assert!(page.contains("text/plain; version=0.0.4"));
    assert!(page.contains(
        "# TYPE unitape_feed_events_total counter\nunitape_feed_events_total{feed=\"venue\"} 20\n"
    ));
    assert_is_accepted(page.split_once("\r\n\r\n").unwrap().1);
    let table = run(["status", &url]).code(0);
    assert!(table.text().starts_with("ready\n") && table.text().contains("venue"), "{}", table.text());

    // A message in quarantine: the run is well, and data are missing.
    file(&bench.path("in"), "b.fix", order_with(30, "44=1.0000000001|"));
    let held = |status: &Value| figure(status, "unitape_feed_quarantined_messages_total", Some("venue"));
    assert!(becomes(|| held(&status(&url).json()) == "1"));
    status(&url).code(3);
    let (code, said) = running.stop();
    assert_eq!(code, Some(3), "{said}");
    status(&url).code(1).says(&["http://"]);
}

#[test]
fn a_run_that_is_not_well_says_why() {
    let bench = bench("disk_free_bytes = 9000000000000000000\nsilent = \"1ms\"");
    let mut running = bench.start();
    let url = address(&mut running);
    bench.has(&mut running, 20);
    // The disk has too little room at once; the feed is silent as soon as it was looked at twice.
    assert!(becomes(|| has_reason(&status(&url).json(), "feed_silent")));
    let status = status(&url).code(1).says(&["not ready"]).json();
    assert_eq!(status["ready"], false);
    assert!(has_reason(&status, "disk"), "{status}");
    assert!(get(&url, "/readyz").starts_with("HTTP/1.1 503"));
    assert!(get(&url, "/healthz").starts_with("HTTP/1.1 200"), "it is alive all the same");
    assert!(get(&url, "/metrics").contains("\nunitape_ready 0\n"));
    assert_eq!(running.stop().0, Some(0));
}

/// Every figure that there is: a feed with messages, one without a sender, ticks of the clock, and a cursor.
#[test]
fn a_scraper_accepts_every_figure() {
    let bench = bench("");
    let text = fs::read_to_string(bench.path("run.toml")).unwrap();
    let text = text.replace("[run]\n", "[run]\nclock = \"1ms\"\n");
    let other = "[[feed]]\nname = \"other\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nconnect = \"127.0.0.1:1\"\n";
    file(&bench.path(""), "run.toml", format!("{text}{other}"));
    let mut running = bench.start();
    let url = address(&mut running);
    bench.has(&mut running, 20);
    let oldest = Reader::open(&bench.tape(), StartPosition::Oldest).unwrap().position();
    Cursor::open(&bench.tape(), "reader").unwrap().store(oldest).unwrap();
    let page = get(&url, "/metrics");
    let (_, page) = page.split_once("\r\n\r\n").unwrap();
    assert_is_accepted(page);
    let names: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let all = FEED_METRICS.iter().chain(&TAPE_METRICS).map(|metric| metric.name);
    assert_eq!(names, all.collect());
    assert!(page.contains("unitape_feed_connected{feed=\"other\"} 0\n"), "{page}");
    assert_eq!(running.stop().0, Some(0));
}

#[test]
fn an_address_that_cannot_be_used_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bench = Bench::new("", &FEED);
    fs::create_dir(bench.path("in")).unwrap();
    let text = fs::read_to_string(bench.path("run.toml")).unwrap();
    let address = taken.local_addr().unwrap();
    let config = file(&bench.path(""), "run.toml", format!("{text}[monitor]\nlisten = \"{address}\"\n"));
    let (code, said) = bench.start().ends();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("listening on {address}")), "{said}");
    // The configuration names the address to ask; who answers there is no monitor.
    drop(taken);
    run(["status", config.to_str().unwrap()]).code(1).says(&[&address.to_string()]);
    let silent = file(&bench.path(""), "silent.toml", &text);
    run(["status", silent.to_str().unwrap()]).code(2).says(&["monitor.listen"]);
    run(["status", "ftp://127.0.0.1"]).code(2).says(&["http://"]);
    for port in ["99999", "65536", "0", "18446744073709551617"] {
        let says = format!("the port {port} is out of range; a port is a number from 1 to 65535");
        run(["status", &format!("http://127.0.0.1:{port}/")]).code(2).says(&[&says]);
        run(["status", &format!("http://[::1]:{port}")]).code(2).says(&[&says]);
    }
    run(["status", "http://127.0.0.1:94x4"]).code(2).says(&["`94x4` is no port"]);
    let any = file(&bench.path(""), "any.toml", format!("{text}[monitor]\nlisten = \"127.0.0.1:0\"\n"));
    run(["status", any.to_str().unwrap()]).code(2).says(&["monitor.listen has port 0"]);
}

/// Answers like those of a monitor, but for one thing each. A user who sees "ready" from another server looks no further.
#[test]
fn who_is_no_monitor_of_unitape_is_not_believed() {
    const READY: &str = "{\"ready\":true,\"reasons\":[]}";
    const FIGURES: &str = "# TYPE unitape_ready gauge\nunitape_ready 1\nunitape_uptime_seconds 5\n";
    let ok = |body: &'static str| (200, body.to_owned());
    assert_eq!(Answering::with(ok(READY), ok(FIGURES)).status().code(0).json()["ready"], true);
    let other = Answering::with(ok(READY), ok(FIGURES));
    let to_other = || (302, other.url.clone());
    let not_ready = "{\"ready\":false,\"reasons\":[{\"code\":\"tape\",\"what\":\"gone\"}]}";
    for (ready, metrics, says) in [
        (to_other(), ok(FIGURES), "/readyz has the status 302, a redirect, which is not followed"),
        (ok(READY), to_other(), "/metrics has the status 302, a redirect, which is not followed"),
        (ok(READY), ok(READY), "/metrics has no figure unitape_ready"),
        (ok(READY), ok("unitape_ready 1\n"), "/metrics has no figure unitape_uptime_seconds"),
        (ok(READY), ok(""), "/metrics has no figure unitape_ready"),
        (ok(READY), (404, FIGURES.to_owned()), "/metrics has the status 404"),
        (ok("ok"), ok(FIGURES), "/readyz: "),
        (ok("{}"), ok(FIGURES), "/readyz: missing field `ready`"),
        (ok(not_ready), ok(FIGURES), "/readyz contradicts itself, with the status 200"),
        ((503, READY.to_owned()), ok(FIGURES), "/readyz contradicts itself, with the status 503"),
        ((404, String::new()), ok(FIGURES), "/readyz has the status 404"),
    ] {
        let server = Answering::with(ready, metrics);
        server.status().code(1).says(&["who answers is not a monitor of unitape", says]);
    }
    // One that cannot answer may be ours.
    let failing = Answering::with(ok(READY), (500, String::new()));
    assert!(
        !failing.status().code(1).says(&["/metrics has the status 500"]).stderr.contains("not a monitor")
    );
}

/// A server with one answer for `/readyz` and another one for `/metrics`: a status, and a body or the place of a redirect.
struct Answering {
    url: String,
}

impl Answering {
    fn with(ready: (u16, String), metrics: (u16, String)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map(Result::unwrap) {
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    request.push(byte[0]);
                }
                let is_ready = request.starts_with(b"GET /readyz ");
                let (path, (status, text)) =
                    if is_ready { ("readyz", &ready) } else { ("metrics", &metrics) };
                let (head, body) = match status {
                    302 => (format!("Location: {text}/{path}\r\n"), ""),
                    _ => (String::new(), text.as_str()),
                };
                let length = body.len();
                // Who asks may have gone.
                _ = write!(
                    stream,
                    "HTTP/1.1 {status} Word\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { url }
    }

    fn status(&self) -> Ran {
        status(&self.url)
    }
}
