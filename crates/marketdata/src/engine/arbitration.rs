//! Two lines, one stream: which copy of a packet is used, and when a missing one is given up.
//!
//! ```text
//!  line A  1 2 . 4 5        the first good copy wins: A's 1, A's 2, B's 3 …
//!  line B    1 2 3 4        4 and 5 of line A wait for 3
//! ```
//!
//! **Numbers.** Packets of a stream carry numbers that increase by one; both lines carry the same. The expected
//! packet is processed at once, one that is ahead waits in the *window*, one that was already used is a duplicate. A
//! copy that does not decode does not count: the other line's copy may still arrive.
//!
//! **A gap** is declared when the missing packets will not arrive: both lines have passed it (each live line has
//! brought [`ArbitrationWindow::past`] packets with greater numbers), or the window is full (packets, bytes), or the
//! gap has waited too long by receive times. A line that was silent for [`ArbitrationWindow::dead_ns`] is not waited
//! for; either line may come back.
//!
//! **Numbers that begin again.** A packet is set aside if its number steps back on its own line while the sender's
//! clock advances, or is far ahead. Without a clock, a number steps back if it is further back than
//! [`ArbitrationWindow::far`]. The next packet of that line shows whether the one aside was damaged or the line has
//! restarted its numbers. A header that announces a restart is believed at once. Then the stream follows, and the
//! other line's packets with old numbers are late until that line restarts, too.

use super::config::ArbitrationWindow;
use super::context::SequenceRange;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

mod missing_packets;

/// A packet that waits.
#[derive(Clone, Debug)]
pub(super) struct HeldPacket {
    pub line_index: u8,
    pub ts_recv: i64,
    pub position: u64,
    pub bytes: Vec<u8>,
}

/// The facts of a packet when it arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketArrival {
    pub line_index: u8,
    pub sequence: u64,
    pub ts_recv: i64,
    /// The sender's clock.
    pub sent_ns: Option<i64>,
    /// The header says that numbers begin again.
    pub has_reset: bool,
}

impl PacketArrival {
    fn sent_sequence(&self) -> SentSequence {
        SentSequence { sequence: self.sequence, sent_ns: self.sent_ns }
    }
}

/// A packet's number, and when it was sent by its sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentSequence {
    sequence: u64,
    sent_ns: Option<i64>,
}

/// A packet's number, and the verdict about the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceVerdict {
    pub sequence: u64,
    pub verdict: ArrivalVerdict,
}

/// The verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalVerdict {
    /// It is the packet's turn: use it, and report whether it was good.
    Now,
    /// Keep it in the window, unless it is bad.
    Wait,
    /// The packet was used already, or waits already.
    Duplicate,
    /// The packet was given up, or belongs to an earlier numbering.
    Late,
    /// Set it aside, see [`ArbitratedStream::aside_packets`].
    Aside,
    /// Numbers restart with the packet, or with the packet that its line has set aside: see
    /// [`ArbitratedStream::classify`].
    Restart,
}

/// A line, as a stream sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct LineTracker {
    pub has_been_heard: bool,
    /// The line's greatest number, and a bit for each of the 64 numbers up to it that have arrived; the lowest bit is
    /// the greatest number.
    pub last_number: u64,
    arrival_bits: u64,
    ts_recv: i64,
    /// Latest send time. Only good packets and their copies count: otherwise no later packet would be later than a
    /// single damaged clock.
    latest_sent_ns: Option<i64>,
    /// The last that did not decode, until a good one has come that is not before it: its clock is not known, and those before
    /// it may still come.
    last_undecoded: Option<u64>,
    /// The numbering of the stream that the line uses; `None` until it has used one.
    pub epoch: Option<u32>,
    /// A number that was set aside.
    odd_number: Option<SentSequence>,
    /// Ranges that it has not brought though it went past them, the latest last.
    pub missing: Vec<(u64, u64)>,
    pub stats: LineStats,
}

/// The counts of one line, from the sequence numbers alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineStats {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets of which this line brought the first good copy.
    pub first: u64,
    /// Packets that it brought twice.
    pub twice: u64,
    /// Packets that it did not bring.
    pub missed: u64,
    /// Packets that arrived after later ones.
    pub reordered: u64,
    /// Packets that did not decode.
    pub corrupt: u64,
    /// The line brings no packets while the other line does.
    pub down: bool,
}

impl LineStats {
    /// Adds the counts of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.first += other.first;
        self.twice += other.twice;
        self.missed += other.missed;
        self.reordered += other.reordered;
        self.corrupt += other.corrupt;
    }
}

/// The progress of a line.
#[derive(Clone, Copy, Debug)]
struct LineProgress {
    has_been_heard: bool,
    epoch: Option<u32>,
    last_number: u64,
}

/// A stream: the packets of a channel from one sender and partition.
#[derive(Clone, Debug)]
pub(super) struct ArbitratedStream {
    limits: ArbitrationWindow,
    pub expected_number: Option<u64>,
    pub epoch: u32,
    /// When the first packet of these numbers was sent.
    since_sent: Option<i64>,
    /// The first packet of the present numbers: its number, its receive time, and whether it had the reset flag.
    pub first_packet: (u64, i64, bool),
    /// The least of these numbers that came as the first of its line.
    pub lowest: u64,
    /// The greatest number of those before these, and how many packets all earlier numbers were of.
    pub earlier_numbers: (u64, u64),
    /// The latest time at which a packet was sent that was good.
    latest_sent_ns: Option<i64>,
    pub line_trackers: [LineTracker; 2],
    held_packets: BTreeMap<u64, HeldPacket>,
    pub held_bytes: usize,
    /// Since when the expected packet is missed.
    missing_since: Option<i64>,
    /// Ranges that were given up and have not come since, the latest last.
    lost_ranges: Vec<(u64, u64)>,
    /// By line: the packet that was set aside, and its number.
    pub aside_packets: [Option<(u64, HeldPacket)>; 2],
    /// The last packet's verdict on the packet that its line had set aside: true if that was good, false if it was
    /// damaged.
    pub aside_verdict: Option<bool>,
    pub gaps: u64,
    pub lost_packets: u64,
    pub late_packets: u64,
    pub restarts: u64,
}

/// A lost packet is remembered until this many more have arrived: until then it is late, and no duplicate.
const LATE_PACKETS: u64 = 1 << 16;

impl ArbitratedStream {
    pub fn new(limits: ArbitrationWindow) -> Self {
        Self {
            limits,
            expected_number: None,
            epoch: 0,
            since_sent: None,
            first_packet: (0, 0, false),
            lowest: 0,
            earlier_numbers: (0, 0),
            latest_sent_ns: None,
            line_trackers: Default::default(),
            held_packets: BTreeMap::new(),
            held_bytes: 0,
            missing_since: None,
            lost_ranges: Vec::new(),
            aside_packets: [None, None],
            aside_verdict: None,
            gaps: 0,
            lost_packets: 0,
            late_packets: 0,
            restarts: 0,
        }
    }

    pub fn line_stats(&self, line: u8) -> &LineStats {
        &self.line_trackers[usize::from(line)].stats
    }

    /// Returns whether any packet waits.
    pub fn has_waiting(&self) -> bool {
        !self.held_packets.is_empty()
    }

    /// Takes a packet that has arrived and decides what to do with it.
    #[inline]
    pub fn offer_packet(&mut self, a: PacketArrival, bytes: usize) -> ArrivalVerdict {
        let line = &mut self.line_trackers[usize::from(a.line_index)];
        line.stats.packets += 1;
        line.stats.bytes += bytes as u64;
        // As nearly all are: the next of its line, which counts as the stream does.
        if line.has_been_heard
            && a.sequence == line.last_number.wrapping_add(1)
            && line.epoch == Some(self.epoch)
            && line.odd_number.is_none()
            && !a.has_reset
        {
            line.last_number = a.sequence;
            line.arrival_bits = line.arrival_bits << 1 | 1;
            line.ts_recv = a.ts_recv;
            let verdict = self.classify(a.sequence);
            if verdict == ArrivalVerdict::Duplicate {
                self.note_copy(a);
            }
            return verdict;
        }
        let verdict = self.offer_unusual(a);
        if matches!(verdict, ArrivalVerdict::Duplicate | ArrivalVerdict::Late) {
            self.note_copy(a);
        }
        verdict
    }

    /// Notes a copy of a known packet on a line.
    #[inline]
    fn note_copy(&mut self, a: PacketArrival) {
        let line = &mut self.line_trackers[usize::from(a.line_index)];
        line.latest_sent_ns = line.latest_sent_ns.max(a.sent_ns.min(self.latest_sent_ns));
        line.last_undecoded = line.last_undecoded.filter(|bad| *bad > a.sequence);
    }

    /// Returns whether a packet with a reset flag restarts the numbers. It must not be the packet that began the
    /// present numbers, nor an earlier packet, nor one of the next few, which may have the flag as well.
    fn begins_again(&self, a: PacketArrival) -> bool {
        let (first, received_ns, had_reset) = self.first_packet;
        let lately = a.ts_recv.saturating_sub(received_ns) <= self.limits.dead_ns;
        if let (Some(sent), Some(since)) = (a.sent_ns, self.since_sent)
            && (sent <= since || a.sequence > first && had_reset && Some(sent) <= self.latest_sent_ns)
        {
            // Another machine's clock may lag, but not that of a copy.
            return false;
        }
        match a.sequence.cmp(&first) {
            _ if a.sent_ns.is_some() || !lately => true,
            Ordering::Less => first - a.sequence > u64::from(self.limits.far),
            Ordering::Equal => !had_reset,
            Ordering::Greater => !had_reset || a.sequence - first > 64,
        }
    }

    /// Classifies a sequence number in the stream's numbering.
    #[inline]
    pub fn classify(&mut self, sequence: u64) -> ArrivalVerdict {
        match self.expected_number {
            Some(expected) if sequence > expected => match self.held_packets.contains_key(&sequence) {
                true => ArrivalVerdict::Duplicate,
                false => ArrivalVerdict::Wait,
            },
            Some(expected) if sequence < expected => self.classify_past(sequence),
            _ => ArrivalVerdict::Now,
        }
    }

    #[cold]
    fn classify_past(&mut self, sequence: u64) -> ArrivalVerdict {
        // A second copy of it is a duplicate.
        if !cut_out(&mut self.lost_ranges, sequence) {
            return ArrivalVerdict::Duplicate;
        }
        self.late_packets += 1;
        ArrivalVerdict::Late
    }

    #[cold]
    fn offer_unusual(&mut self, a: PacketArrival) -> ArrivalVerdict {
        let far = u64::from(self.limits.far);
        let now = a.ts_recv;
        self.aside_verdict = None;
        let others_alive = self.line_is_alive(1 - a.line_index, now) && self.is_of_stream(1 - a.line_index);
        let is_restart = a.has_reset && self.begins_again(a);
        let reached = self.line_progress(a.line_index);
        let line = &mut self.line_trackers[usize::from(a.line_index)];
        if !line.has_been_heard {
            let near = self.expected_number.is_none_or(|expected| expected.abs_diff(a.sequence) <= far);
            let epoch = near.then_some(self.epoch);
            let stats = line.stats;
            *line = LineTracker {
                has_been_heard: true,
                last_number: a.sequence,
                arrival_bits: 1,
                ts_recv: now,
                latest_sent_ns: None,
                last_undecoded: None,
                epoch,
                odd_number: None,
                missing: Vec::new(),
                stats,
            };
            if self.expected_number.is_none() {
                (self.since_sent, self.first_packet) = (a.sent_ns, (a.sequence, now, a.has_reset));
                self.lowest = a.sequence;
            } else if is_restart && self.expected_number.is_some_and(|expected| a.sequence < expected) {
                return self.restart_line(a, a.sent_sequence(), reached);
            }
            if !near {
                return self.offer_foreign(a, a.sent_sequence(), others_alive, reached);
            }
            self.start_line(a.line_index, a.sequence, reached);
            return self.classify(a.sequence);
        }
        if line.epoch != Some(self.epoch) && line.odd_number.is_none() && self.is_of_numbering(a) {
            let line = &mut self.line_trackers[usize::from(a.line_index)];
            (line.last_number, line.arrival_bits, line.ts_recv, line.last_undecoded) =
                (a.sequence, 1, now, None);
            line.epoch = Some(self.epoch);
            self.start_line(a.line_index, a.sequence, reached);
            return self.classify(a.sequence);
        }
        let line = &mut self.line_trackers[usize::from(a.line_index)];
        let later = match (a.sent_ns, line.latest_sent_ns) {
            (Some(sent), Some(before)) => Some(sent > before),
            _ => None,
        };
        let lag = line.last_number.saturating_sub(a.sequence);
        // One before a bad packet may be a straggler; one that had come is not, nor a copy of it, being sent later.
        let is_seen = lag < 64 && a.sequence <= line.last_number && line.arrival_bits >> lag & 1 == 1;
        let unsure = line
            .last_undecoded
            .is_some_and(|bad| bad == a.sequence || bad > a.sequence && bad - a.sequence < 64 && !is_seen);
        let back = a.sequence <= line.last_number && !unsure && later.unwrap_or(lag > far);
        // A header that says so is believed; that of a line which has not begun again yet only says what is known.
        let flagged =
            a.has_reset && a.sequence <= line.last_number && (is_restart || line.epoch != Some(self.epoch));
        let is_far_ahead = a.sequence > line.last_number && a.sequence - line.last_number > far;
        let follows_odd = line.odd_number.is_some_and(|SentSequence { sequence: odd, sent_ns: sent }| {
            a.sequence > odd && a.sequence - odd <= far && (a.sent_ns >= sent || sent.is_none())
        });
        // Between two numberings that follow each other, a line that is to restart has done so.
        let tie = line.epoch != Some(self.epoch)
            && line.odd_number.is_some_and(|odd| odd.sequence >= line.last_number);
        if flagged || (back || is_far_ahead || tie) && follows_odd {
            let odd = line.odd_number.take();
            self.aside_verdict = odd.map(|_| follows_odd);
            let first_number = odd.filter(|_| follows_odd).unwrap_or(a.sent_sequence());
            line.arrival_bits = 1;
            line.last_number = a.sequence;
            (line.ts_recv, line.last_undecoded) = (now, None);
            if (back || flagged) && line.epoch == Some(self.epoch) {
                return self.restart_line(a, first_number, reached);
            }
            if line.epoch != Some(self.epoch) {
                return self.offer_foreign(a, first_number, others_alive, reached);
            }
            line.note_skipped(reached.last_number + 1, first_number.sequence);
            line.note_skipped(first_number.sequence + 1, a.sequence);
            return self.classify(a.sequence);
        }
        if back || is_far_ahead {
            self.aside_verdict = line.odd_number.map(|_| false);
            line.odd_number = Some(a.sent_sequence());
            return ArrivalVerdict::Aside;
        }
        self.aside_verdict = line.odd_number.take().map(|_| false);
        if a.sequence > line.last_number {
            let step = a.sequence - line.last_number;
            line.note_skipped(line.last_number + 1, a.sequence);
            line.arrival_bits = if step < 64 { line.arrival_bits << step | 1 } else { 1 };
            line.last_number = a.sequence;
        } else if lag < 64 && line.arrival_bits >> lag & 1 == 0 {
            line.arrival_bits |= 1 << lag;
            line.stats.reordered += 1;
            line.note_late(a.sequence);
        } else if lag >= 64 && line.note_late(a.sequence) {
            line.stats.reordered += 1;
        } else {
            line.stats.twice += 1;
        }
        line.ts_recv = now;
        if line.epoch != Some(self.epoch) {
            return self.offer_foreign(a, a.sent_sequence(), others_alive, reached);
        }
        self.classify(a.sequence)
    }

    /// Returns whether a packet of a line with other numbers belongs to the stream's own numbering, by the sender's
    /// clock. It was sent after the first of these numbers, and it copies a known packet or continues the known
    /// packets.
    fn is_of_numbering(&self, a: PacketArrival) -> bool {
        let (Some(sent), Some(since), Some(expected)) = (a.sent_ns, self.since_sent, self.expected_number)
        else {
            return false;
        };
        sent > since
            && (a.sequence >= expected || Some(sent) <= self.latest_sent_ns)
            && expected.abs_diff(a.sequence) <= u64::from(self.limits.far)
    }

    /// Returns whether a line has the same numbering as the stream.
    pub fn is_of_stream(&self, line: u8) -> bool {
        self.line_trackers[usize::from(line)].epoch == Some(self.epoch)
    }

    /// Takes a packet of a line whose numbering differs from the stream's; `first` is the first number of its present
    /// numbering.
    fn offer_foreign(
        &mut self,
        a: PacketArrival,
        first: SentSequence,
        others_alive: bool,
        reached: LineProgress,
    ) -> ArrivalVerdict {
        let far = u64::from(self.limits.far);
        if a.has_reset
            && self.expected_number.is_some_and(|expected| a.sequence < expected)
            && self.begins_again(a)
        {
            return self.restart_line(a, first, reached);
        }
        let line = &mut self.line_trackers[usize::from(a.line_index)];
        // It has begun, or restarted since the stream did, and now counts as it does.
        let begins =
            a.has_reset || line.epoch.is_none() || line.last_number == a.sequence && line.arrival_bits == 1;
        if begins && self.expected_number.is_none_or(|expected| expected.abs_diff(a.sequence) <= far) {
            line.epoch = Some(self.epoch);
            self.start_line(a.line_index, first.sequence, reached);
            self.line_trackers[usize::from(a.line_index)].note_skipped(first.sequence + 1, a.sequence);
            return self.classify(a.sequence);
        }
        if !others_alive {
            return self.restart_line(a, first, reached);
        }
        self.late_packets += 1;
        ArrivalVerdict::Late
    }

    fn restart_line(
        &mut self,
        a: PacketArrival,
        first: SentSequence,
        reached: LineProgress,
    ) -> ArrivalVerdict {
        let SentSequence { sequence: first, sent_ns: sent } = first;
        self.end_numbering(a.line_index, reached);
        self.line_trackers[usize::from(a.line_index)].note_skipped(first + 1, a.sequence);
        self.since_sent = sent;
        (self.first_packet, self.lowest) = ((first, a.ts_recv, a.has_reset), first);
        self.latest_sent_ns = a.sent_ns;
        self.epoch = self.epoch.wrapping_add(1);
        let line = &mut self.line_trackers[usize::from(a.line_index)];
        (line.epoch, line.latest_sent_ns) = (Some(self.epoch), a.sent_ns);
        self.restarts += 1;
        self.lost_ranges.clear();
        self.missing_since = None;
        self.expected_number = Some(first);
        ArrivalVerdict::Restart
    }

    fn line_is_alive(&self, line: u8, now: i64) -> bool {
        let line = &self.line_trackers[usize::from(line)];
        line.has_been_heard && now.saturating_sub(line.ts_recv) <= self.limits.dead_ns
    }

    /// Marks the expected packet as used.
    #[inline]
    pub fn mark_used(&mut self, sequence: u64, line: u8, sent: Option<i64>) {
        self.expected_number = Some(sequence.wrapping_add(1));
        self.missing_since = None;
        self.line_trackers[usize::from(line)].stats.first += 1;
        self.mark_good(line, sequence, sent);
    }

    /// Notes that a packet is good, with its send time.
    #[inline]
    fn mark_good(&mut self, line: u8, sequence: u64, sent: Option<i64>) {
        let line = &mut self.line_trackers[usize::from(line)];
        (line.latest_sent_ns, self.latest_sent_ns) =
            (line.latest_sent_ns.max(sent), self.latest_sent_ns.max(sent));
        line.last_undecoded = line.last_undecoded.filter(|bad| *bad > sequence);
    }

    /// Marks a packet that did not decode. The other line's copy may still arrive.
    #[cold]
    pub fn mark_corrupt(&mut self, sequence: u64, line: u8, now: i64) {
        let line = &mut self.line_trackers[usize::from(line)];
        line.stats.corrupt += 1;
        line.last_undecoded = Some(sequence);
        self.expected_number.get_or_insert(sequence);
        if self.expected_number == Some(sequence) {
            self.missing_since.get_or_insert(now);
        }
    }

    /// Keeps a packet until the missing packets before it arrive.
    pub fn hold_packet(&mut self, sequence: u64, packet: HeldPacket, sent: Option<i64>) {
        self.mark_good(packet.line_index, sequence, sent);
        self.missing_since.get_or_insert(packet.ts_recv);
        self.held_bytes += packet.bytes.len();
        self.held_packets.insert(sequence, packet);
    }

    /// Takes the next held packet, if it is the expected one.
    #[inline]
    pub fn next(&mut self) -> Option<(u64, HeldPacket)> {
        if self.held_packets.is_empty() {
            return None;
        }
        let first_held = self.held_packets.first_entry()?;
        (Some(*first_held.key()) == self.expected_number).then(|| self.pop_held())?
    }

    fn pop_held(&mut self) -> Option<(u64, HeldPacket)> {
        let (sequence, packet) = self.held_packets.pop_first()?;
        self.held_bytes -= packet.bytes.len();
        Some((sequence, packet))
    }

    /// Gives up the missing packets if it is time, and returns the first and last of their numbers.
    pub fn give_up(&mut self, now: i64, no_room: bool) -> Option<SequenceRange> {
        let (expected, first) = (self.expected_number?, *self.held_packets.first_key_value()?.0);
        if first <= expected {
            return None;
        }
        let limits = &self.limits;
        let since = *self.missing_since.get_or_insert(now);
        let past = |line: &LineTracker| line.is_past(expected, limits.past);
        let all_past = self
            .line_trackers
            .iter()
            .filter(|l| {
                l.has_been_heard
                    && l.epoch == Some(self.epoch)
                    && now.saturating_sub(l.ts_recv) <= limits.dead_ns
            })
            .all(past);
        let full = no_room || self.held_packets.len() > usize::from(limits.packets);
        (all_past || full || now.saturating_sub(since) > limits.ns)
            .then(|| self.record_gap(expected, first - 1))
    }

    /// Gives up at once, because no more packets will arrive or the numbers restart.
    pub fn give_up_now(&mut self) -> Option<SequenceRange> {
        let (expected, first) = (self.expected_number?, *self.held_packets.first_key_value()?.0);
        (first > expected).then(|| self.record_gap(expected, first - 1))
    }

    /// Skips a held packet that did not decode when its turn came: it is lost.
    pub fn skip_packet(&mut self, sequence: u64) -> SequenceRange {
        self.record_gap(sequence, sequence)
    }

    fn record_gap(&mut self, from: u64, to: u64) -> SequenceRange {
        self.lost_ranges.retain(|(_, last)| to.saturating_sub(*last) < LATE_PACKETS);
        if self.lost_ranges.len() >= RANGES_MAX {
            self.lost_ranges.remove(0);
        }
        self.lost_ranges.push((from, to));
        self.gaps += 1;
        self.lost_packets = self.lost_packets.saturating_add((to - from).saturating_add(1));
        self.expected_number = Some(to.wrapping_add(1));
        // Packets that wait after it are missed from now on.
        self.missing_since = None;
        SequenceRange { first: from, last: to }
    }

    /// Returns the time of the last packet on any line.
    pub fn last_heard(&self) -> i64 {
        self.line_trackers.iter().map(|l| l.ts_recv).max().unwrap_or(0)
    }

    /// Takes the waiting packets of an earlier numbering, one at a time.
    pub fn drain(&mut self) -> Option<(u64, HeldPacket)> {
        self.pop_held()
    }
}

impl LineTracker {
    /// Returns whether the line has brought `packets` packets after `expected`. The numbers alone prove little: after a
    /// jump a single packet would suffice.
    fn is_past(&self, expected: u64, packets: u16) -> bool {
        let lead = self.last_number.saturating_sub(expected);
        if packets >= 64 {
            return lead >= u64::from(packets);
        }
        let later_bits = if lead < 64 { self.arrival_bits & ((1 << lead) - 1) } else { self.arrival_bits };
        later_bits.count_ones() >= u32::from(packets)
    }
}

/// Takes a number out of the ranges; whether it was in one.
fn cut_out(ranges: &mut Vec<(u64, u64)>, number: u64) -> bool {
    let Some(range_index) = ranges.iter().rposition(|(from, last)| (*from..=*last).contains(&number)) else {
        return false;
    };
    let (from, last) = ranges.remove(range_index);
    if from < number {
        ranges.insert(range_index, (from, number - 1));
    }
    if number < last {
        ranges.insert(range_index + usize::from(from < number), (number + 1, last));
    }
    true
}

/// Greatest number of stored ranges of lost packets, and of packets that a line did not bring.
const RANGES_MAX: usize = 4096;
