//! Mappings reloaded during a run: when the caller asks for it, and when their file changes.

use super::event::{EventSink, RunEvent};
use crate::config::{FeedConfig, RunConfig, UdpListenTarget};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use unitape_feed::{FormatReloadQueue, InstrumentMaster, RunFeed, VersionedFormat};

/// Watches the mapping files of a run.
pub struct MappingWatcher<'a> {
    /// It names the mappings.
    pub config: &'a RunConfig,
    /// The reference data that the run began with; they stay.
    pub reference: Option<&'a Arc<InstrumentMaster>>,
    /// The place for formats that replace those in use.
    pub fresh: &'a FormatReloadQueue,
    /// A request of the caller to reload all mappings.
    pub asked: &'a AtomicBool,
    /// The receiver of the events.
    pub events: EventSink<'a>,
}

/// The mapping with which a feed runs.
pub struct MappingInUse {
    identity: Option<String>,
    /// The addresses that the feed listens to since it began.
    listens: Vec<UdpListenTarget>,
}

impl MappingInUse {
    /// Makes the reload state of the feeds that a configuration names.
    pub fn from_feeds(config: &RunConfig, feeds: &[RunFeed]) -> Vec<Self> {
        let mapping_of = |(configured, feed): (&FeedConfig, &RunFeed)| Self {
            identity: feed.format.mapping_identity(),
            listens: configured.listens(&feed.format).unwrap_or_default(),
        };
        config.feed.iter().zip(feeds).map(mapping_of).collect()
    }
}

impl MappingWatcher<'_> {
    /// Watches until `is_finished`. Reports a mapping that cannot be used, and keeps the current mapping.
    pub fn watch_until(&self, mut used: Vec<MappingInUse>, is_finished: &AtomicBool) {
        let Self { config, reference, fresh, asked: raised, events } = *self;
        let file_stamp = |path: &str| -> Option<(SystemTime, u64)> {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        // The first look finds all of them changed, and compares them with those in use.
        let mut last_states = vec![None; config.feed.len()];
        let mut generations = vec![0u64; config.feed.len()];
        // Acquire: pairs with the Release at the end of the run.
        while !is_finished.load(Ordering::Acquire) {
            std::thread::park_timeout(LOOK);
            let asked = raised.swap(false, Ordering::Relaxed);
            for (i, feed) in config.feed.iter().enumerate() {
                let now = file_stamp(&feed.mapping);
                if !asked && (now == last_states[i] || now.is_none()) {
                    continue;
                }
                last_states[i] = now;
                match feed.format(reference) {
                    Ok(format) if format.mapping_identity() == used[i].identity => {}
                    Ok(format) => {
                        used[i].identity = format.mapping_identity();
                        generations[i] += 1;
                        let mapping = used[i].identity.as_deref();
                        events(RunEvent::MappingLoaded { feed: &feed.name, mapping });
                        if feed.listens(&format).unwrap_or_default() != used[i].listens {
                            events(RunEvent::AddressesChanged { feed: &feed.name });
                        }
                        fresh.push_format(i, VersionedFormat::new(format, generations[i]));
                    }
                    Err(error) => events(RunEvent::MappingRefused { feed: &feed.name, error: &error }),
                }
            }
        }
    }
}

/// The delay after which a changed file is seen.
const LOOK: Duration = Duration::from_millis(200);
