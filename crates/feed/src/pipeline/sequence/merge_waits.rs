//! The cost of waiting for a feed: statistics, and the time of the merge's next look.

use super::BlockSequencer;
use std::sync::atomic::Ordering;

impl BlockSequencer {
    /// Notes that no available unit of feed `i` waits any more.
    #[inline]
    pub(super) fn note_placed(&mut self, i: usize) {
        if let Some(since) = self.feeds[i].held_since.take()
            && let Some(stats) = &self.stats
        {
            stats.feeds[i].note_held(self.patience.now_ns.saturating_sub(since));
        }
    }

    /// Notes for which arrival time the merge waits now, and until when at most.
    pub(super) fn note_waiting(&mut self, waits: Option<(i64, i64)>) {
        let now_ns = self.patience.now_ns;
        let Some(stats) = &self.stats else { return };
        for (feed, stats) in self.feeds.iter_mut().zip(&stats.feeds) {
            let waited_for = waits.is_some_and(|(came_ns, _)| feed.waits_until(came_ns).is_some());
            // Up to now: a wait that continues counts as well.
            if let Some(since) = feed.waited_since.take() {
                stats.note_waited(now_ns.saturating_sub(since));
            }
            feed.waited_since = waited_for.then_some(now_ns);
            if waits.is_some() && feed.head.is_some() {
                feed.held_since.get_or_insert(now_ns);
            }
        }
        let due_ns = waits.map_or(i64::MAX, |(_, until_ns)| until_ns);
        let clock = self.clock.as_ref();
        let due_ns = clock.map_or(due_ns, |clock| due_ns.min(clock.due_ns(&self.feeds, now_ns)));
        // Relaxed: a time to look at, and the intake's next look finds what there is.
        if self.patience.due_ns.swap(due_ns, Ordering::Relaxed) > due_ns {
            stats.wake.notify();
        }
    }
}
