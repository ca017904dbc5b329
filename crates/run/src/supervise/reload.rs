//! Mappings reloaded during a run: when the caller asks for it, and when their file changes.

use super::event::{EventSink, RunEvent};
use crate::config::RunConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use unitape_feed::{Format, FormatReloadQueue, InstrumentMaster, VersionedFormat};

/// Watches the mapping files of a run.
pub struct MappingWatcher<'a> {
    /// It names the mappings.
    pub config: &'a RunConfig,
    /// The reference data that the run began with; they stay.
    pub reference: Option<&'a Arc<InstrumentMaster>>,
    /// The place for formats that replace those in use.
    pub fresh: &'a FormatReloadQueue,
    /// Raised by a caller that wants all mappings reloaded.
    pub asked: &'a AtomicBool,
    /// The receiver of the events.
    pub events: EventSink<'a>,
}

impl MappingWatcher<'_> {
    /// Watches until `over`. A mapping that cannot be used is reported, and the one in use stays.
    pub fn watch_until(&self, over: &AtomicBool) {
        let Self { config, reference, fresh, asked: raised, events } = *self;
        let changed = |path: &str| -> Option<(SystemTime, u64)> {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        let mut seen: Vec<_> = config.feed.iter().map(|f| changed(&f.mapping)).collect();
        // The mapping in use was read at about the time of the first look; a change in between is found by its
        // identity.
        let mut used: Vec<Option<String>> =
            config.feed.iter().map(|f| f.format(reference).ok()?.mapping_identity()).collect();
        let listens = |i: usize, format: &Format| config.feed[i].listens(format).unwrap_or_default();
        let began: Vec<_> = (config.feed.iter().enumerate())
            .map(|(i, f)| f.format(reference).map(|format| listens(i, &format)).unwrap_or_default())
            .collect();
        let mut generations = vec![0u64; config.feed.len()];
        // Acquire: pairs with the Release at the end of the run.
        while !over.load(Ordering::Acquire) {
            std::thread::park_timeout(LOOK);
            let asked = raised.swap(false, Ordering::Relaxed);
            for (i, feed) in config.feed.iter().enumerate() {
                let now = changed(&feed.mapping);
                if !asked && (now == seen[i] || now.is_none()) {
                    continue;
                }
                seen[i] = now;
                match feed.format(reference) {
                    Ok(format) if format.mapping_identity() == used[i] => {}
                    Ok(format) => {
                        used[i] = format.mapping_identity();
                        generations[i] += 1;
                        events(RunEvent::MappingLoaded { feed: &feed.name, mapping: used[i].as_deref() });
                        if listens(i, &format) != began[i] {
                            events(RunEvent::AddressesChanged { feed: &feed.name });
                        }
                        fresh.put(i, VersionedFormat::new(format, generations[i]));
                    }
                    Err(error) => events(RunEvent::MappingRefused { feed: &feed.name, error: &error }),
                }
            }
        }
    }
}

/// The delay after which a changed file is seen.
const LOOK: Duration = Duration::from_millis(200);
