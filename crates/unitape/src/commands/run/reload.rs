//! Mappings loaded anew while a run goes on: on SIGHUP, and when their file changes.

use crate::output::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use unitape_feed::{Format, Reference, Reload, Sorted};
use unitape_run::config::Config;

/// Watches the mapping files until `over`. A mapping that cannot be used is told of, and the one in use stays. The
/// reference data are those that the run began with.
pub fn watch(config: &Config, reference: Option<&Arc<Reference>>, reload: &Reload, over: &AtomicBool) {
    let hup = Arc::new(AtomicBool::new(false));
    if let Err(e) = signal_hook::flag::register(signal_hook::consts::SIGHUP, hup.clone()) {
        note!("unitape: SIGHUP will not load mappings anew: {e}");
    }
    let changed = |path: &str| -> Option<(SystemTime, u64)> {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    let mut seen: Vec<_> = config.feed.iter().map(|f| changed(&f.mapping)).collect();
    // What is in use was read at about the time of the first look; a change in between is found by its identity.
    let mut used: Vec<Option<String>> =
        config.feed.iter().map(|f| f.format(reference).ok()?.mapping()).collect();
    let listens = |i: usize, format: &Format| config.feed[i].listens(format).unwrap_or_default();
    let began: Vec<_> = (config.feed.iter().enumerate())
        .map(|(i, f)| f.format(reference).map(|format| listens(i, &format)).unwrap_or_default())
        .collect();
    let mut generations = vec![0u64; config.feed.len()];
    // Acquire: pairs with the Release at the end of the run.
    while !over.load(Ordering::Acquire) {
        std::thread::park_timeout(LOOK);
        let asked = hup.swap(false, Ordering::Relaxed);
        for (i, feed) in config.feed.iter().enumerate() {
            let now = changed(&feed.mapping);
            if !asked && (now == seen[i] || now.is_none()) {
                continue;
            }
            seen[i] = now;
            match feed.format(reference) {
                Ok(format) if format.mapping() == used[i] => {}
                Ok(format) => {
                    used[i] = format.mapping();
                    generations[i] += 1;
                    let name = used[i].as_deref().unwrap_or("none");
                    note!("unitape: feed {}: from here on by mapping {name}", feed.name);
                    if listens(i, &format) != began[i] {
                        let what = "its addresses are others now; those of the start are listened to until the next one";
                        note!("unitape: feed {}: {what}", feed.name);
                    }
                    reload.put(i, Sorted::new(format, generations[i]));
                }
                Err(e) => note!("unitape: feed {}: {e}; the mapping in use stays", feed.name),
            }
        }
    }
}

/// How soon a changed file is seen.
const LOOK: Duration = Duration::from_millis(200);
