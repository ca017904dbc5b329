//! Messages that stand alone, many at a time.
//!
//! Which type comes next cannot be guessed, so a loop that asks every message for its type waits for a wrong guess at
//! every second one. Here the types are only counted in the order of the stream, and the work is done type by type:
//!
//! ```text
//!  messages   A D A U D A …  ─▶ where each begins, where its frames will stand, by table; a list for each type
//!  lists      A: 0 2 5 …  D: 1 4 …  U: 3 …  ─▶ frames of all A, of all D, of all U … each at its place
//!  scratch    A D A U U D A …               ─▶ the arena
//! ```
//!
//! Nothing has happened until all of a batch is known to be plain. If it is not, its messages go one by one.

use super::fields::side;
use super::image::{Frame, LIQ_ADDED, MATCH_ID, OID, extended, keep_number, narrow, without_last};
use super::prefetch::prefetch;
use super::{ItchDecoder, Place};
use crate::block::{Block, PROGRESS_BYTES, Unit, What};
use unitape_codec::itch::{
    AddOrder, AddOrderMpid, DAY_NANOS, OrderCancel, OrderDelete, OrderExecuted, OrderReplace, Trade,
};
use unitape_model::flags;
use unitape_model::schema::at;

/// Memory for a batch.
#[derive(Debug)]
pub(super) struct Batch {
    /// The frames of the messages in hand.
    frames: Vec<u8>,
    spots: [Spot; MESSAGES_MAX],
    /// For each sort the messages of it.
    lists: [[u8; MESSAGES_MAX]; SORTS],
    /// So many messages have to go one by one before another batch is tried.
    singly: usize,
}

/// A message, and where its frames will stand in the scratch.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    /// Where its length stands in the block.
    at: u32,
    out: u32,
    what: Sorted,
}

/// What is known of a message by its letter.
#[derive(Clone, Copy, Debug, Default)]
struct Sorted {
    /// Bytes behind the length; 0 for what is not frequent.
    bytes: u16,
    /// Bytes of its frames.
    out: u16,
    sort: u8,
    events: u8,
}

/// Messages of a batch, at most.
const MESSAGES_MAX: usize = 64;

/// So much of the arena is fetched ahead for each message; it is a little more than their frames have.
const AHEAD_BYTES: usize = 192;

/// Frames of a message, at most: a replace.
const OUT_MAX: usize = 320;

const SORTS: usize = 7;
const ADD: usize = 0;
const ADD_MPID: usize = 1;
const DELETE: usize = 2;
const EXECUTED: usize = 3;
const CANCEL: usize = 4;
const REPLACE: usize = 5;
const TRADE: usize = 6;

const SORTED: [Sorted; 256] = {
    let mut table = [Sorted { bytes: 0, out: 0, sort: 0, events: 0 }; 256];
    let rows = [
        (AddOrder::LETTER, AddOrder::BYTES, ADD, 128, 1),
        (AddOrderMpid::LETTER, AddOrderMpid::BYTES, ADD_MPID, 128, 1),
        (OrderDelete::LETTER, OrderDelete::BYTES, DELETE, 128, 1),
        (OrderExecuted::LETTER, OrderExecuted::BYTES, EXECUTED, 128, 1),
        (OrderCancel::LETTER, OrderCancel::BYTES, CANCEL, 192, 1),
        (OrderReplace::LETTER, OrderReplace::BYTES, REPLACE, OUT_MAX, 2),
        (Trade::LETTER, Trade::BYTES, TRADE, 64, 1),
    ];
    let mut n = 0;
    while n < rows.len() {
        let (letter, bytes, sort, out, events) = rows[n];
        table[letter as usize] = Sorted { bytes: bytes as u16, out: out as u16, sort: sort as u8, events };
        n += 1;
    }
    table
};

impl Default for Batch {
    fn default() -> Self {
        Self {
            frames: vec![0; MESSAGES_MAX * OUT_MAX],
            spots: [Spot::default(); MESSAGES_MAX],
            lists: [[0; MESSAGES_MAX]; SORTS],
            singly: 0,
        }
    }
}

impl ItchDecoder {
    /// Decodes the frequent messages from `at` on; gives where it stands, which is `at` when the next one has to be
    /// decoded by itself.
    #[inline]
    pub(super) fn batch(&mut self, block: &mut Block, bytes: &[u8], at: usize, place: Place) -> usize {
        if self.batch.singly > 0 {
            self.batch.singly -= 1;
            return at;
        }
        self.batch_of(block, bytes, at, place)
    }

    #[inline(never)]
    fn batch_of(&mut self, block: &mut Block, bytes: &[u8], at: usize, place: Place) -> usize {
        let base = block.base;
        // A message that reaches over a mark of progress goes by itself.
        let mark = PROGRESS_BYTES - (base + at as u64) % PROGRESS_BYTES;
        let upto = bytes.len().min(at + mark as usize - 1);
        let Self { batch, images, stocks, firms, .. } = self;
        let Batch { frames, spots, lists, singly } = batch;
        // The lines of the arena that the batch will be copied to are fetched meanwhile.
        block.arena.reserve(MESSAGES_MAX * OUT_MAX);
        let coming = block.arena.spare_capacity_mut();
        let (mut n, mut end, mut out, mut counts) = (0, at, 0u32, [0usize; SORTS]);
        while n < MESSAGES_MAX {
            let Some(&[high, low, letter]) = bytes.get(end..end + 3) else { break };
            let what = SORTED[usize::from(letter)];
            let stated = u16::from_be_bytes([high, low]);
            let next = end + 2 + usize::from(stated);
            if stated != what.bytes || stated == 0 || next > upto {
                break;
            }
            spots[n] = Spot { at: end as u32, out, what };
            let sort = usize::from(what.sort);
            lists[sort][counts[sort]] = n as u8;
            counts[sort] += 1;
            for line in coming[n * AHEAD_BYTES..][..AHEAD_BYTES].as_chunks::<64>().0 {
                prefetch(line);
            }
            (n, end, out) = (n + 1, next, out + u32::from(what.out));
        }
        if n < MESSAGES_MIN {
            *singly = n;
            return at;
        }
        let spots = &spots[..n];
        let ts = |nanos: u64| place.midnight + nanos as i64;
        let mut good = spots.iter().all(|s| nanos(bytes, s) < DAY_NANOS);
        let listed = |sort: usize| lists[sort][..counts[sort]].iter().map(|n| spots[usize::from(*n)]);
        for spot in listed(ADD) {
            let m = AddOrder::new(body(bytes, &spot));
            let (id, side) = (stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
            good &= (id != 0) & (side != 0) & narrow(m.order()) & (m.shares() != 0);
            let frame = frame(frames, spot.out);
            let mut f = Frame::over(frame, &images.order_new, ts(m.timestamp()), base + u64::from(spot.at));
            f.instrument(id);
            f.0[at::KIND_A] = side;
            f.price(m.price());
            f.shares(m.shares());
            f.id(OID, m.order());
        }
        for spot in listed(ADD_MPID) {
            let m = AddOrderMpid::new(body(bytes, &spot));
            let (id, side) = (stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
            let firm = firms.id(&m.attribution()).unwrap_or(0);
            good &= (id != 0) & (side != 0) & (firm != 0) & narrow(m.order()) & (m.shares() != 0);
            let frame = frame(frames, spot.out);
            let mut f = Frame::over(frame, &images.order_new, ts(m.timestamp()), base + u64::from(spot.at));
            f.instrument(id);
            f.0[at::KIND_A] = side;
            f.price(m.price());
            f.shares(m.shares());
            f.firm(firm);
            f.id(OID, m.order());
        }
        for spot in listed(DELETE) {
            let m = OrderDelete::new(body(bytes, &spot));
            good &= narrow(m.order());
            let frame = frame(frames, spot.out);
            Frame::over(frame, &images.order_cancel, ts(m.timestamp()), base + u64::from(spot.at))
                .id(OID, m.order());
        }
        for spot in listed(EXECUTED) {
            let m = OrderExecuted::new(body(bytes, &spot));
            good &= narrow(m.order()) & narrow(m.match_number()) & (m.shares() != 0);
            let frame = frame(frames, spot.out);
            let mut f = Frame::over(frame, &images.exec, ts(m.timestamp()), base + u64::from(spot.at));
            f.shares(m.shares());
            f.0[at::KIND_A] = LIQ_ADDED;
            f.id(OID, m.order());
            f.id(MATCH_ID, m.match_number());
        }
        for spot in listed(CANCEL) {
            let m = OrderCancel::new(body(bytes, &spot));
            good &= narrow(m.order()) & (m.shares() != 0);
            let frame = frame(frames, spot.out);
            let mut f = Frame::over(frame, &images.order_amend, ts(m.timestamp()), base + u64::from(spot.at));
            f.id(OID, m.order());
            f.header(|h| extended(h, flags::LAST));
            keep_number(line(frames, spot.out + 128), b"cancelled", m.shares().into());
        }
        for spot in listed(REPLACE) {
            let m = OrderReplace::new(body(bytes, &spot));
            good &= narrow(m.order()) & narrow(m.new_order()) & (m.shares() != 0);
            let (ts, offset) = (ts(m.timestamp()), base + u64::from(spot.at));
            let mut f = Frame::over(frame(frames, spot.out), &images.order_cancel, ts, offset);
            f.id(OID, m.order());
            f.header(without_last);
            let mut f = Frame::over(frame(frames, spot.out + 128), &images.order_new, ts, offset);
            f.price(m.price());
            f.shares(m.shares());
            f.id(OID, m.new_order());
            f.header(|h| extended(h, flags::LAST));
            keep_number(line(frames, spot.out + 256), b"replaces", m.order());
        }
        for spot in listed(TRADE) {
            let m = Trade::new(body(bytes, &spot));
            let id = stocks.id(m.stock_locate(), &m.stock());
            let plain = (m.order() == 0) & (m.side() == b'B') & (m.shares() != 0);
            good &= (id != 0) & plain & narrow(m.match_number());
            let frame = line(frames, spot.out);
            let mut f = Frame::over(frame, &images.trade, ts(m.timestamp()), base + u64::from(spot.at));
            f.print(id, m.price(), m.shares(), m.match_number());
        }
        if !good {
            *singly = n;
            return at;
        }
        let start = block.arena.len() as u32;
        block.arena.extend_from_slice(&frames[..out as usize]);
        let (fixups_end, raw_end) = (block.fixups.len() as u32, block.raw.len() as u32);
        block.end_many(
            (n + counts[REPLACE]) as u64,
            spots.iter().map(|s| Unit {
                offset: base + u64::from(s.at),
                ts: ts(nanos(bytes, s)),
                end: start + s.out + u32::from(s.what.out),
                fixups_end,
                raw_end,
                events: s.what.events.into(),
                length: 2 + u32::from(s.what.bytes),
                what: What::Events,
            }),
        );
        end
    }
}

/// Fewer messages than this are not worth the way.
const MESSAGES_MIN: usize = 4;

/// The message behind its length.
#[inline(always)]
fn body<'b, const N: usize>(bytes: &'b [u8], spot: &Spot) -> &'b [u8; N] {
    bytes[spot.at as usize + 2..].first_chunk().expect("as long as its type")
}

/// Nanoseconds since midnight, of any message.
#[inline(always)]
fn nanos(bytes: &[u8], spot: &Spot) -> u64 {
    let word = bytes[spot.at as usize + 5..].first_chunk().expect("eleven bytes are in all messages");
    u64::from_be_bytes(*word) & 0xffff_ffff_ffff
}

#[inline(always)]
fn frame(frames: &mut [u8], out: u32) -> &mut [u8; 128] {
    frames[out as usize..].first_chunk_mut().expect("there is room for the longest")
}

#[inline(always)]
fn line(frames: &mut [u8], out: u32) -> &mut [u8; 64] {
    frames[out as usize..].first_chunk_mut().expect("there is room for the longest")
}
