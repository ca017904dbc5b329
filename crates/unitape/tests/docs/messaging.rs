//! The services of `docs/guide-messaging.md`, as processes: together, killed, and as the page shows them.
#![cfg(unix)]

use crate::common::example;
#[allow(dead_code)] // what the test uses of it
#[path = "../../../../examples/messages.rs"]
mod messages;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use example::example;
use messages::{Order, Price};
use unitape::tape::{StartPosition, Subscription, verify};

/// The price at which the strategy buys, as in its source.
const LIMIT: i64 = 1_085_490_000;

/// A service that hangs is ended and reported; nothing is said of how long one that works may take.
const HANG: Duration = Duration::from_secs(180);

/// A process that ends with its test.
struct Service(Option<Child>);

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(name: &str, dir: &Path, count: u64) -> Service {
    let mut command = Command::new(example(name));
    command.arg(dir).arg(count.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Service(Some(command.spawn().unwrap_or_else(|e| panic!("{name}: {e}"))))
}

/// The output of a service that has ended by itself.
fn says(mut service: Service) -> String {
    let since = Instant::now();
    while service.0.as_mut().expect("running").try_wait().expect("it is ours").is_none() {
        assert!(since.elapsed() < HANG, "it has not ended after {} s", HANG.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = service.0.take().expect("running").wait_with_output().expect("it has ended");
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// The limits of the orders that this many prices cause.
fn expected(prices: u64) -> Vec<i64> {
    (0..prices).map(|n| Price::of(n).ask).filter(|&ask| ask <= LIMIT).collect()
}

/// The tape of orders must have each order once, whatever was killed.
fn check_orders(dir: &Path, limits: &[i64]) {
    let mut subscription = Subscription::open(&dir.join("orders"), StartPosition::Oldest).unwrap();
    let mut orders = Vec::new();
    while let Some(frame) = subscription.next().unwrap() {
        orders.push(Order::read(frame.message().unwrap().bytes).unwrap());
    }
    assert_eq!(orders.iter().map(|order| order.limit).collect::<Vec<_>>(), limits);
    assert!(orders.iter().zip(0..).all(|(order, n)| order.number == n), "numbered from 0");
    assert!(orders.is_sorted_by_key(|order| order.seen));
    for tape in ["prices", "orders"] {
        assert!(verify(&dir.join(tape)).unwrap().is_intact(), "{tape}");
    }
}

/// The process that starts first waits; no process may need another to have run before.
#[test]
fn three_services_started_in_the_wrong_order() {
    let dir = tempfile::tempdir().unwrap();
    let limits = expected(20_000);
    let count = limits.len() as u64;
    let reporter = start("reporter", dir.path(), count);
    let strategy = start("strategy", dir.path(), 20_000);
    let prices = start("prices", dir.path(), 20_000);
    assert_eq!(says(prices), "prices 0 to 20000 are on the tape");
    assert_eq!(says(strategy), format!("{count} orders for 20000 prices"));
    assert_eq!(says(reporter), format!("{count} orders up to number {count} reported"));
    check_orders(dir.path(), &limits);
    let report = fs::read_to_string(dir.path().join("report.txt")).unwrap();
    let reported: Vec<i64> = report.lines().map(|l| Order::read(l.as_bytes()).unwrap().limit).collect();
    assert_eq!(reported, limits);
    // Once a service that had done everything already waited for ever for the next message.
    assert_eq!(says(start("prices", dir.path(), 20_000)), "prices 20000 to 20000 are on the tape");
    assert_eq!(says(start("strategy", dir.path(), 20_000)), format!("{count} orders for 20000 prices"));
    let nothing = format!("0 orders up to number {count} reported");
    assert_eq!(says(start("reporter", dir.path(), count)), nothing);
}

/// Killed at any moment and started again, the strategy orders each thing once and the reporter reports each at
/// least once, in order.
#[test]
fn services_that_are_killed_go_on() {
    const PRICES: u64 = 200_000;
    let limits = expected(PRICES);
    let count = limits.len() as u64;
    for seed in [1u64, 2, 3] {
        println!("seed {seed}");
        let mut state = seed;
        let mut roll = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let dir = tempfile::tempdir().unwrap();
        let wants = [("prices", PRICES), ("strategy", PRICES), ("reporter", count)];
        let mut services = wants.map(|(name, count)| start(name, dir.path(), count));
        for _ in 0..6 {
            std::thread::sleep(Duration::from_millis(roll(60)));
            let which = roll(3) as usize;
            // The one before is killed first: two would be two writers.
            services[which] = Service(None);
            services[which] = start(wants[which].0, dir.path(), wants[which].1);
        }
        for service in services {
            says(service);
        }
        check_orders(dir.path(), &limits);
        let report = fs::read_to_string(dir.path().join("report.txt")).unwrap();
        let mut reported: Vec<Order> =
            report.lines().map(|line| Order::read(line.as_bytes()).unwrap()).collect();
        reported.dedup();
        assert_eq!(reported.len(), limits.len(), "once more is a repetition of the last one");
        assert!(reported.iter().zip(&limits).all(|(order, limit)| order.limit == *limit));
    }
}

/// Code on a page that nobody compiles goes stale; the code of the page is in the examples, word for word.
#[test]
fn the_code_of_the_page_stands_in_the_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/guide-messaging.md")).unwrap();
    let mut sources = Vec::new();
    for folder in ["examples", "examples/c"] {
        let files = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        sources.extend(files.filter(|path| has_code(path)).map(|path| fs::read_to_string(path).unwrap()));
    }
    let mut checked = 0;
    for block in page.split("\n```").collect::<Vec<_>>().chunks(2).filter_map(|two| two.get(1)) {
        let Some(code) = block.strip_prefix("rust\n").or_else(|| block.strip_prefix("c\n")) else { continue };
        assert!(sources.iter().any(|source| source.contains(code)), "this is in no example:\n{code}");
        checked += 1;
    }
    assert!(checked >= 7, "the page shows {checked} pieces of code");
}

fn has_code(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|e| e == "rs" || e == "c" || e == "h")
}
