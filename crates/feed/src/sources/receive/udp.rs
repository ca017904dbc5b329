//! The receiver of datagrams: all sockets of a feed into one journal, in the order in which they came.
//!
//! ```text
//!  socket A ─▶ 32 in hand ─┐
//!  socket B ─▶ 32 in hand ─┼─▶ the earliest, by the kernel's clock ─▶ journal ─▶ decoders
//!  snapshots ▶ 32 in hand ─┘
//! ```
//!
//! **Order.** A socket keeps its own. Between two, the one goes first whose datagram the kernel received earlier; for that a
//! datagram waits in our hands until every socket of which nothing is in hand was looked at again, or was empty at a time
//! that is not before it. Where clocks step back or the kernel hands over late, it is nearly in order; what the journal says
//! then is so for everyone.

use super::{LOOK, PAUSE, ReceiverContext, now};
use crate::error::Error;
use crate::sources::journal::PacketJournal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use unitape_base::capture::write;
use unitape_marketdata::wire::{DatagramBatch, UdpSockets};
use unitape_model::UnixNanos;

/// The treatment of datagrams when the decoders are too far behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// They are read, dropped and counted.
    Drop,
    /// They are not read: they wait in the socket's buffer, and when that is full the kernel drops and counts them.
    Wait,
}

/// Receives until the run stops.
///
/// # Errors
/// Fails if a socket or the journal refuses.
pub fn receive(
    mut sockets: UdpSockets,
    when_full: OverflowPolicy,
    mut journal: PacketJournal,
    context: &ReceiverContext,
) -> Result<(), Error> {
    let mut hands = SocketBatches::new(sockets.count());
    let mut drops = DroppedDatagrams::default();
    let (mut last, mut rounds) = (false, 0);
    while !last {
        // All datagrams in the kernel when the run stops count as received; it cannot hold more than this number of
        // rounds reads.
        last = context.is_stopped() && rounds >= LAST_ROUNDS;
        rounds += u32::from(context.is_stopped());
        let full = context.is_full();
        if full && when_full == OverflowPolicy::Wait && !context.is_stopped() {
            context.feed_stats().pauses.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
            continue;
        }
        let empty = hands.socket_batches.iter().all(SocketBatch::is_empty);
        let waited = || {
            let (since, most) = (Instant::now(), if context.spin { Duration::ZERO } else { LOOK });
            loop {
                let ready = !empty || sockets.wait(most).map_err(|e| socket_error(&sockets, e))?;
                if ready || !context.spin || context.is_stopped() || since.elapsed() >= LOOK {
                    return Ok(ready);
                }
                std::hint::spin_loop();
            }
        };
        let Some(ready) = context.outlast(waited)? else { continue };
        if !ready {
            last |= context.is_stopped();
            // The next datagram that arrives reports the dropped ones; there may be none.
            for (n, hand) in hands.socket_batches.iter_mut().enumerate() {
                drops.add_kernel_drops(&mut hand.counter, sockets.dropped(n));
            }
            context.outlast_with(|| drops.note_drops(&mut journal, now(), context))?;
            context.note_bytes(context.outlast_with(|| journal.flush())?);
            continue;
        }
        // The datagrams in hand stay there.
        if context.outlast(|| hands.receive_batches(&mut sockets))?.is_none() {
            continue;
        }
        let drop = full && when_full == OverflowPolicy::Drop && !context.is_stopped();
        while let Some(n) = if last { hands.earliest_socket() } else { hands.next() } {
            let hand = &mut hands.socket_batches[n];
            context.outlast_with(|| {
                let sink = DatagramSink { journal: &mut journal, drops: &mut drops, context };
                write_datagram(hand, sockets.address(n), drop, sink)
            })?;
        }
        context.note_bytes(context.outlast_with(|| journal.flush())?);
    }
    let ts = drops.ts;
    context.outlast_with(|| drops.note_drops(&mut journal, ts, context))?;
    context.note_bytes(context.outlast_with(|| journal.flush())?);
    Ok(())
}

/// The destination of datagrams: into the journal, or into the count of dropped ones.
struct DatagramSink<'s> {
    journal: &'s mut PacketJournal,
    drops: &'s mut DroppedDatagrams,
    context: &'s ReceiverContext,
}

/// Writes down the datagram that is next in this hand.
fn write_datagram(
    hand: &mut SocketBatch,
    to: std::net::SocketAddr,
    drop: bool,
    sink: DatagramSink<'_>,
) -> Result<(), Error> {
    let DatagramSink { journal, drops, context } = sink;
    let Some(batch) = &hand.batch else { return Ok(()) };
    let (from, payload, _, counter) = batch.get(hand.next_datagram);
    let ts = hand.ts;
    drops.add_kernel_drops(&mut hand.counter, counter);
    if drop {
        drops.add_own_drop(ts);
    } else {
        drops.note_drops(journal, ts, context)?;
        write::datagram(journal.batch(ts)?, ts.0, from, to, payload);
    }
    hand.next_datagram += 1;
    hand.look_ahead();
    Ok(())
}

fn socket_error(sockets: &UdpSockets, source: std::io::Error) -> Error {
    let addresses: Vec<_> = (0..sockets.count()).map(|n| sockets.address(n).to_string()).collect();
    Error::Socket { address: addresses.join(", "), operation: "wait for", source }
}

/// Datagrams from the sockets that the journal does not have yet.
#[derive(Debug)]
struct SocketBatches {
    socket_batches: Vec<SocketBatch>,
    /// The number of looks at them.
    looks: u64,
    /// All datagrams that came before this time were there at the last look.
    complete_before: UnixNanos,
}

/// The batch of one socket.
#[derive(Debug, Default)]
struct SocketBatch {
    /// The buffers, made when the first datagram arrives.
    batch: Option<DatagramBatch>,
    next_datagram: usize,
    count: usize,
    /// When the next one was received.
    ts: UnixNanos,
    /// The look with which it came, or which found nothing.
    looked: u64,
    /// The batch was full: the socket may have more, from before that look.
    may_have_more: bool,
    /// The kernel's counter of drops, which only grows (and wraps).
    counter: Option<u32>,
}

impl SocketBatches {
    fn new(sockets: usize) -> Self {
        Self {
            socket_batches: (0..sockets).map(|_| SocketBatch::default()).collect(),
            looks: 0,
            complete_before: UnixNanos(0),
        }
    }

    /// Receives the available datagrams of each socket whose batch is empty.
    fn receive_batches(&mut self, sockets: &mut UdpSockets) -> Result<(), Error> {
        self.looks += 1;
        if self.socket_batches.len() > 1 {
            self.complete_before = now();
            sockets.wait(Duration::ZERO).map_err(|e| socket_error(sockets, e))?;
        }
        for (n, hand) in self.socket_batches.iter_mut().enumerate().filter(|(_, hand)| hand.is_empty()) {
            hand.note_batch(0, self.looks);
            if sockets.is_ready(n) {
                let batch = hand.batch.get_or_insert_default();
                let count = sockets.receive(n, batch).map_err(|source| Error::Socket {
                    address: sockets.address(n).to_string(),
                    operation: "receive from",
                    source,
                })?;
                hand.note_batch(count, self.looks);
                hand.look_ahead();
            }
        }
        Ok(())
    }

    /// Returns the socket with the earliest datagram.
    fn earliest_socket(&self) -> Option<usize> {
        let some = self.socket_batches.iter().enumerate().filter(|(_, hand)| !hand.is_empty());
        some.min_by_key(|(_, hand)| hand.ts).map(|(n, _)| n)
    }

    /// Returns the socket with the earliest datagram. Returns `None` if another socket may have an earlier datagram
    /// and must be read again.
    fn next(&self) -> Option<usize> {
        let n = self.earliest_socket()?;
        let socket_batch = &self.socket_batches[n];
        let is_current = |hand: &SocketBatch| {
            let now = hand.looked == self.looks
                && (socket_batch.looked < self.looks || socket_batch.ts <= self.complete_before);
            !hand.is_empty() || !hand.may_have_more && now
        };
        self.socket_batches.iter().all(is_current).then_some(n)
    }
}

impl SocketBatch {
    fn is_empty(&self) -> bool {
        self.next_datagram == self.count
    }

    fn note_batch(&mut self, count: usize, look: u64) {
        (self.next_datagram, self.count, self.looked, self.may_have_more) =
            (0, count, look, count == DatagramBatch::MOST);
    }

    fn look_ahead(&mut self) {
        if let Some(batch) = self.batch.as_ref().filter(|_| !self.is_empty()) {
            self.ts = batch.get(self.next_datagram).2.unwrap_or_else(now);
        }
    }
}

/// Datagrams dropped and not yet noted in the journal.
#[derive(Debug, Default)]
struct DroppedDatagrams {
    count: u32,
    ts: UnixNanos,
}

impl DroppedDatagrams {
    /// Takes in the kernel's counter of a socket.
    fn add_kernel_drops(&mut self, before: &mut Option<u32>, counter: Option<u32>) {
        let Some(counter) = counter else { return };
        let new_drops = counter.wrapping_sub(before.unwrap_or(0));
        // A datagram from before the last look at the counter has an older one.
        if i32::try_from(new_drops).is_ok() {
            *before = Some(counter);
            self.count = self.count.saturating_add(new_drops);
        }
    }

    fn add_own_drop(&mut self, ts: UnixNanos) {
        self.count = self.count.saturating_add(1);
        self.ts = ts;
    }

    fn note_drops(
        &mut self,
        journal: &mut PacketJournal,
        ts: UnixNanos,
        context: &ReceiverContext,
    ) -> Result<(), Error> {
        if self.count > 0 {
            write::drop_note(journal.batch(ts)?, ts.0, self.count);
            context.feed_stats().drops.fetch_add(self.count.into(), Ordering::Relaxed);
            self.count = 0;
        }
        Ok(())
    }
}

/// Rounds that are still made when the run stops.
const LAST_ROUNDS: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Sockets that are filled while they are looked at, one after the other, as by a kernel.
    struct SocketQueueModel {
        /// Future arrivals: time, socket.
        to_come: VecDeque<(UnixNanos, usize)>,
        queues: Vec<VecDeque<UnixNanos>>,
        now: UnixNanos,
    }

    impl SocketQueueModel {
        /// Lets `ns` nanoseconds pass.
        fn pass(&mut self, ns: i64) {
            self.now.0 += ns;
            while let Some((ts, n)) = self.to_come.pop_front_if(|(ts, _)| *ts <= self.now) {
                self.queues[n].push_back(ts);
            }
        }
    }

    proptest! {
        /// Guards against false gaps: line B was read after line A, so datagrams that A received in between came
        /// after later datagrams of B.
        #[test]
        fn the_order_is_that_of_receipt(
            gaps in prop::collection::vec((1i64..20, 0usize..4), 1..1000),
            steps in prop::collection::vec(0i64..300, 1..50),
        ) {
            let mut ts = 0;
            let all: VecDeque<_> = gaps.iter().map(|(gap, n)| { ts += gap; (UnixNanos(ts), *n) }).collect();
            let mut kernel = SocketQueueModel { to_come: all.clone(), queues: vec![VecDeque::new(); 4], now: UnixNanos(0) };
            let mut hands = SocketBatches::new(4);
            let mut batches = vec![VecDeque::new(); 4];
            let mut steps = steps.iter().cycle();
            let mut pass = || *steps.next().unwrap_or(&1);
            let mut out = Vec::new();
            while out.len() < all.len() {
                // As in `look`: which are ready is asked once for all, and then they are read.
                (hands.looks, hands.complete_before) = (hands.looks + 1, kernel.now);
                kernel.pass(pass());
                let ready: Vec<bool> = kernel.queues.iter().map(|q| !q.is_empty()).collect();
                for n in 0..4 {
                    kernel.pass(pass());
                    let hand = &mut hands.socket_batches[n];
                    if !hand.is_empty() {
                        continue;
                    }
                    let most = if ready[n] { kernel.queues[n].len().min(DatagramBatch::MOST) } else { 0 };
                    hand.note_batch(most, hands.looks);
                    batches[n] = kernel.queues[n].drain(..most).collect();
                    hand.ts = batches[n].front().copied().unwrap_or_default();
                }
                while let Some(n) = hands.next() {
                    out.push((batches[n].pop_front().unwrap_or_default(), n));
                    hands.socket_batches[n].next_datagram += 1;
                    hands.socket_batches[n].ts = batches[n].front().copied().unwrap_or_default();
                }
                kernel.pass(1);
                prop_assert!(hands.looks < 100_000, "it makes no progress");
            }
            prop_assert_eq!(out, Vec::from(all));
        }
    }
}
