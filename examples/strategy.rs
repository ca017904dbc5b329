//! The second of three services: reads `DIR/prices`, and publishes orders on a tape of its own, `DIR/orders`, until it
//! has decided upon `COUNT` prices.
//!
//! ```text
//! cargo run --release --example strategy -- DIR COUNT
//! ```

#[allow(dead_code)] // each service uses some of it
mod messages;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use messages::{EURUSD, Order, Price};
use unitape::tape::{Publication, StartPosition, Subscription, WaitStrategy, WriterOptions};

/// Buys at this price or below.
const LIMIT: i64 = 1_085_490_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (dir, count) = messages::arguments()?;
    let (prices, orders) = (dir.join("prices"), dir.join("orders"));

    // Services may be started in any order.
    while !Subscription::await_tape(&prices, Duration::from_secs(1))? {
        eprintln!("strategy: waiting for {}", prices.display());
    }
    let options = WriterOptions { segment_bytes: 1 << 20, ..WriterOptions::default() };
    let mut publication = Publication::open(&orders, options)?;

    // An order says up to where prices were seen: our last order on the tape says where to resume. So we decide on no
    // price twice, whenever this process was killed.
    let start = last(&orders)?.map_or(StartPosition::Oldest, |order| StartPosition::At(order.seen));
    let mut subscription = Subscription::open(&prices, start)?.with_wait(WaitStrategy::Balanced);
    let mut number = publication.writer().ordinal();
    // The ordinal of what it reads next is how many prices it has decided upon.
    while subscription.reader().ordinal() < count {
        let Some(frame) = subscription.next()? else {
            // Nothing to read: what was ordered so far is made to survive power loss, too.
            let end = publication.end();
            publication.writer().wait_durable(end, Duration::from_secs(120))?;
            subscription.wait(Duration::from_secs(1))?;
            continue;
        };
        let Some(price) = frame.message().and_then(|message| Price::read(message.bytes)) else { continue };
        if price.ask <= LIMIT {
            let order = Order { number, limit: price.ask, seen: subscription.position() };
            publication.offer(EURUSD, order.to_string().as_bytes())?;
            number += 1;
        }
    }
    publication.close()?;
    println!("{number} orders for {count} prices");
    Ok(())
}

/// The last order on the tape.
fn last(orders: &Path) -> Result<Option<Order>, Box<dyn Error>> {
    let mut subscription = Subscription::open(orders, StartPosition::Oldest)?;
    let mut last = None;
    while let Some(frame) = subscription.next()? {
        last = frame.message().and_then(|message| Order::read(message.bytes)).or(last);
    }
    Ok(last)
}
