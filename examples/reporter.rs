//! The third of three services: writes the orders of `DIR/orders` into `DIR/report.txt`, up to order number `COUNT`.
//!
//! ```text
//! cargo run --release --example reporter -- DIR COUNT
//! ```

#[allow(dead_code)] // each service uses some of it
mod messages;

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use messages::Order;
use unitape::tape::{StartPosition, Subscription, WaitStrategy};

fn main() -> Result<(), Box<dyn Error>> {
    let (dir, count) = messages::arguments()?;
    let orders = dir.join("orders");
    while !Subscription::await_tape(&orders, Duration::from_secs(1))? {
        eprintln!("reporter: waiting for {}", orders.display());
    }

    // By its name it resumes where it has acknowledged. It need not be fast, and may sleep.
    let mut subscription =
        Subscription::open_named(&orders, "reporter", StartPosition::Oldest)?.with_wait(WaitStrategy::Park);
    let mut report = OpenOptions::new().create(true).append(true).open(dir.join("report.txt"))?;
    let mut lines = 0;
    // The ordinal of what it reads next is how many orders it has dealt with, in earlier runs too.
    while subscription.reader().ordinal() < count {
        let Some(frame) = subscription.next()? else {
            subscription.wait(Duration::from_secs(1))?;
            continue;
        };
        let Some(order) = frame.message().and_then(|message| Order::read(message.bytes)) else { continue };
        // In one call: of a line made of several, a kill may leave half.
        report.write_all(format!("{order}\n").as_bytes())?;
        // Killed before this line, it writes the order once more: at least once.
        subscription.acknowledge()?;
        lines += 1;
    }
    println!("{lines} orders up to number {count} reported");
    Ok(())
}
