//! The first of three services: publishes prices on the tape `DIR/prices`, until `COUNT` are on it.
//!
//! ```text
//! cargo run --release --example prices -- DIR COUNT
//! ```

#[allow(dead_code)] // each service uses some of it
mod messages;

use std::error::Error;
use std::time::Duration;

use messages::{EURUSD, Price};
use unitape::tape::{Backing, Publication, SyncPolicy, WriterOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let (dir, count) = messages::arguments()?;
    let options = WriterOptions {
        // In shared memory, where it is fastest; a thread of this process records it to the directory.
        backing: Backing::Hot { dir: None, window_segments: 4 },
        segment_bytes: 4 << 20,
        sync_policy: SyncPolicy::Every { bytes: 16 << 20, interval: Duration::from_millis(100) },
        // How long a slow disk may hold it up before a claim is refused.
        recorder_wait: Duration::from_secs(60),
        ..WriterOptions::default()
    };
    let mut prices = Publication::open(&dir.join("prices"), options)?;

    // The events on the tape stay there, however the service ended before: it continues after them.
    let first = prices.writer().ordinal();
    for number in first..count {
        let mut draft = prices.claim(EURUSD, Price::BYTES)?;
        Price::of(number).write(&mut draft);
        draft.commit()?;
    }
    prices.close()?;
    println!("prices {first} to {count} are on the tape");
    Ok(())
}
