//! Messages that are alone, many at a time.
//!
//! The next type cannot be guessed, so a loop that asks every message for its type waits for a wrong guess at every
//! second one. Here the types are only counted in the order of the stream, and the work is done type by type:
//!
//! ```text
//!  messages   A D A U D A …  ─▶ a place in the arena for the frames of each, by table; a list for each type
//!  lists      A: 0 2 5 …  D: 1 4 …  U: 3 …  ─▶ frames and units of all A, of all D, of all U … each at its place
//!  arena      A D A U U D A …
//! ```
//!
//! Arena and units are longer only when all of a batch is known to be plain. If it is not, nothing has happened, and its
//! messages go one by one.

use super::general_path::side;
use super::image::{
    FramePrototypes, LIQ_ADDED, MATCH_ID, OID, PrototypeFrame, fits_number, keep_number, with_extension,
    without_last, write_reduction,
};
use super::prefetch::prefetch_behind;
use super::{ItchDecoder, ItchMessageOrigin};
use crate::block::{Block, BlockMessage, BlockMessageKind, PROGRESS_BYTES};
use std::mem::MaybeUninit;
use unitape_codec::itch::{
    AddOrder, AddOrderMpid, DAY_NANOS, OrderCancel, OrderDelete, OrderExecuted, OrderReplace, Trade,
};
use unitape_model::schema::at;
use unitape_model::{InstrumentId, UnixNanos, flags};

/// Memory for a batch.
#[derive(Debug)]
pub(super) struct ItchBatchScratch {
    /// The messages of each type.
    messages_by_type: [[BatchMessageOffset; MESSAGES_MAX]; SORTS],
    /// Messages still to be read one by one before the next batch.
    singly: usize,
}

/// The place of a message.
#[derive(Clone, Copy, Debug, Default)]
struct BatchMessageOffset {
    /// Its length, in the block.
    block_offset: u32,
    /// Its frames, from the end of the arena.
    frames_offset: u16,
    /// Index of the message in the batch.
    n: u16,
}

/// The properties of a message type, by its letter.
#[derive(Clone, Copy, Debug)]
struct MessageTypeProfile {
    /// Bytes after the length; more than there can be for a rare type.
    bytes: u32,
    /// Bytes of its frames.
    frame_bytes: u16,
    /// All bits if it names its stock, which is then looked up.
    stock: u16,
    type_index: u8,
}

/// Messages of a batch, at most.
const MESSAGES_MAX: usize = 64;

/// The batch reads only these first bytes of a message before it knows the type; no frequent message is shorter.
const HEAD_BYTES: usize = 16;

/// Bytes of the frames, as their images have them: a frame is in its place in the arena when its image was put there.
const NEW: usize = bytes_of(|images| &images.order_new);
const CANCELLED: usize = bytes_of(|images| &images.order_cancel);
const AMENDED: usize = bytes_of(|images| &images.order_amend);
const DONE: usize = bytes_of(|images| &images.execution_frame);
const PRINT: usize = bytes_of(|images| &images.trade);
/// The line of an extension that holds a number.
const KEPT: usize = 64;

/// Frames of a message, at most: a replace.
const OUT_MAX: usize = CANCELLED + NEW + KEPT;

/// Lines of the arena to prefetch for each message ahead; most frames are shorter.
const AHEAD_LINES: usize = 3;

/// The distance in bytes at which messages are prefetched: the processor's own prefetch ends with each page.
const INPUT_AHEAD_BYTES: usize = 2048;

const SORTS: usize = 7;
const ADD: usize = 0;
const ADD_MPID: usize = 1;
const DELETE: usize = 2;
const EXECUTED: usize = 3;
const CANCEL: usize = 4;
const REPLACE: usize = 5;
const TRADE: usize = 6;

/// The properties of a message type: letter, bytes after the length, bytes of its frames, events.
const ROWS: [(u8, usize, usize, u32); SORTS] = [
    (AddOrder::LETTER, AddOrder::BYTES, NEW, 1),
    (AddOrderMpid::LETTER, AddOrderMpid::BYTES, NEW, 1),
    (OrderDelete::LETTER, OrderDelete::BYTES, CANCELLED, 1),
    (OrderExecuted::LETTER, OrderExecuted::BYTES, DONE, 1),
    (OrderCancel::LETTER, OrderCancel::BYTES, AMENDED + KEPT, 1),
    (OrderReplace::LETTER, OrderReplace::BYTES, OUT_MAX, 2),
    (Trade::LETTER, Trade::BYTES, PRINT, 1),
];

static SORTED: [MessageTypeProfile; 256] = {
    let mut table = [MessageTypeProfile { bytes: u32::MAX, frame_bytes: 0, stock: 0, type_index: 0 }; 256];
    let mut type_index = 0;
    while type_index < SORTS {
        let (letter, bytes, out, _) = ROWS[type_index];
        let stock = if matches!(type_index, ADD | ADD_MPID | TRADE) { u16::MAX } else { 0 };
        table[letter as usize] = MessageTypeProfile {
            bytes: bytes as u32,
            frame_bytes: out as u16,
            stock,
            type_index: type_index as u8,
        };
        type_index += 1;
    }
    table
};

const _: () = assert!(MESSAGES_MAX * OUT_MAX <= u16::MAX as usize, "a place among the frames of a batch");

/// The common parts of a batch's units.
struct BatchUnitContext<'u> {
    units: &'u mut [MaybeUninit<BlockMessage>; MESSAGES_MAX],
    /// Offset of the block's bytes in their source.
    block_base: u64,
    /// Start of the batch's frames.
    frames_start: u32,
    fixups_end: u32,
    raw_end: u32,
    midnight: i64,
    /// Whether all times were valid times of day.
    times_are_valid: bool,
}

impl BatchUnitContext<'_> {
    /// Writes the unit of a message; returns its time and its offset in the source.
    #[inline(always)]
    fn end_unit(&mut self, spot: &BatchMessageOffset, nanos: u64, type_index: usize) -> (UnixNanos, u64) {
        let (_, bytes, out, events) = ROWS[type_index];
        self.times_are_valid &= nanos < DAY_NANOS;
        let offset = self.block_base + u64::from(spot.block_offset);
        let ts = UnixNanos(self.midnight + nanos as i64);
        self.units[usize::from(spot.n)].write(BlockMessage {
            offset,
            ts,
            end: self.frames_start + u32::from(spot.frames_offset) + out as u32,
            fixups_end: self.fixups_end,
            raw_end: self.raw_end,
            events,
            length: 2 + bytes as u32,
            kind: BlockMessageKind::Events,
        });
        (ts, offset)
    }
}

impl Default for ItchBatchScratch {
    fn default() -> Self {
        Self { messages_by_type: [[BatchMessageOffset::default(); MESSAGES_MAX]; SORTS], singly: 0 }
    }
}

impl ItchDecoder {
    /// Decodes the frequent messages from `batch_start` on; returns the offset where it stopped. This is
    /// `batch_start` if the next message must be decoded by itself.
    #[inline]
    pub(super) fn decode_batch(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        batch_start: usize,
        origin: ItchMessageOrigin,
    ) -> usize {
        if self.batch.singly > 0 {
            self.batch.singly -= 1;
            return batch_start;
        }
        self.batch_of(block, bytes, batch_start, origin)
    }

    #[inline(never)]
    fn batch_of(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        batch_start: usize,
        origin: ItchMessageOrigin,
    ) -> usize {
        let base = block.base;
        // A message that reaches over a mark of progress goes by itself.
        let mark = PROGRESS_BYTES - (base + batch_start as u64) % PROGRESS_BYTES;
        let upto = bytes.len().min(batch_start + mark as usize - 1);
        let Self {
            batch: ItchBatchScratch { messages_by_type: lists, singly }, images, stocks, firms, ..
        } = self;
        let frames_start = block.arena.len();
        block.arena.reserve(MESSAGES_MAX * OUT_MAX);
        block.units.reserve(MESSAGES_MAX);
        let spare_arena = block.arena.spare_capacity_mut();
        let (mut n, mut end, mut out, mut counts) = (0, batch_start, 0, [0usize; SORTS]);
        while n < MESSAGES_MAX {
            let Some(head) = bytes.get(end..).and_then(<[u8]>::first_chunk::<HEAD_BYTES>) else { break };
            let profile = &SORTED[usize::from(head[2])];
            let stated = u16::from_be_bytes([head[0], head[1]]);
            let next_offset = end + 2 + usize::from(stated);
            if u32::from(stated) != profile.bytes || next_offset > upto {
                break;
            }
            let list = usize::from(profile.type_index);
            lists[list][counts[list]] =
                BatchMessageOffset { block_offset: end as u32, frames_offset: out, n: n as u16 };
            counts[list] += 1;
            stocks.prefetch(u16::from_be_bytes([head[3], head[4]]) & profile.stock);
            prefetch_behind(bytes, end + INPUT_AHEAD_BYTES);
            for line in 0..AHEAD_LINES {
                prefetch_behind(spare_arena, usize::from(out) + 64 * line);
            }
            out += profile.frame_bytes;
            (n, end) = (n + 1, next_offset);
        }
        if n < MESSAGES_MIN {
            *singly = n;
            return batch_start;
        }
        let mut ends = BatchUnitContext {
            units: block.units.spare_capacity_mut().first_chunk_mut().expect("as reserved"),
            block_base: base,
            frames_start: frames_start as u32,
            fixups_end: block.fixups.len() as u32,
            raw_end: block.raw.len() as u32,
            midnight: origin.midnight,
            times_are_valid: true,
        };
        let mut is_good = true;
        let messages_of = |type_index: usize| &lists[type_index][..counts[type_index]];
        for spot in messages_of(ADD) {
            let m = AddOrder::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), ADD);
            let (id, side) = (stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
            is_good &= (id != InstrumentId::NONE) & (side != 0) & fits_number(m.order()) & (m.shares() != 0);
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.order_new),
                ts,
                offset,
            );
            f.instrument(id);
            f.0[at::KIND_A] = side;
            f.price(m.price());
            f.set_shares(m.shares());
            f.id(OID, m.order());
        }
        for spot in messages_of(ADD_MPID) {
            let m = AddOrderMpid::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), ADD_MPID);
            let (id, side) = (stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
            let firm = firms.id(&m.attribution()).unwrap_or(0);
            is_good &= (id != InstrumentId::NONE)
                & (side != 0)
                & (firm != 0)
                & fits_number(m.order())
                & (m.shares() != 0);
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.order_new),
                ts,
                offset,
            );
            f.instrument(id);
            f.0[at::KIND_A] = side;
            f.price(m.price());
            f.set_shares(m.shares());
            f.set_firm(firm);
            f.id(OID, m.order());
        }
        for spot in messages_of(DELETE) {
            let m = OrderDelete::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), DELETE);
            is_good &= fits_number(m.order());
            PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.order_cancel),
                ts,
                offset,
            )
            .id(OID, m.order());
        }
        for spot in messages_of(EXECUTED) {
            let m = OrderExecuted::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), EXECUTED);
            is_good &= fits_number(m.order()) & fits_number(m.match_number()) & (m.shares() != 0);
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.execution_frame),
                ts,
                offset,
            );
            f.set_shares(m.shares());
            f.0[at::KIND_A] = LIQ_ADDED;
            f.id(OID, m.order());
            f.id(MATCH_ID, m.match_number());
        }
        for spot in messages_of(CANCEL) {
            let m = OrderCancel::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), CANCEL);
            is_good &= fits_number(m.order()) & (m.shares() != 0);
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.order_amend),
                ts,
                offset,
            );
            f.id(OID, m.order());
            f.header(|h| with_extension(h, flags::LAST));
            let line = copy_image(spare_arena, spot.frames_offset + AMENDED as u16, &[0; KEPT]);
            write_reduction(line, m.shares());
        }
        for spot in messages_of(REPLACE) {
            let m = OrderReplace::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), REPLACE);
            is_good &= fits_number(m.order()) & fits_number(m.new_order()) & (m.shares() != 0);
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.order_cancel),
                ts,
                offset,
            );
            f.id(OID, m.order());
            f.header(without_last);
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset + CANCELLED as u16, &images.order_new),
                ts,
                offset,
            );
            f.price(m.price());
            f.set_shares(m.shares());
            f.id(OID, m.new_order());
            f.header(|h| with_extension(h, flags::LAST));
            let line = copy_image(spare_arena, spot.frames_offset + (CANCELLED + NEW) as u16, &[0; KEPT]);
            keep_number(line, b"replaces", m.order());
        }
        for spot in messages_of(TRADE) {
            let m = Trade::new(message_body(bytes, spot));
            let (ts, offset) = ends.end_unit(spot, m.timestamp(), TRADE);
            let id = stocks.id(m.stock_locate(), &m.stock());
            let is_simple = (m.order() == 0) & (m.side() == b'B') & (m.shares() != 0);
            is_good &= (id != InstrumentId::NONE) & is_simple & fits_number(m.match_number());
            let mut f = PrototypeFrame::from_image(
                copy_image(spare_arena, spot.frames_offset, &images.trade),
                ts,
                offset,
            );
            f.print(id, m.price(), m.shares(), m.match_number());
        }
        is_good &= ends.times_are_valid;
        if !is_good {
            *singly = n;
            return batch_start;
        }
        block.count_many(n as u64, (n + counts[REPLACE]) as u64);
        // SAFETY: there is room, as reserved above, and `coming` begins where the arena ended. Every byte of it up to `out`
        // was written: each of the `n` messages is in the one list of its type, all of which were gone through, and
        // `batch_field` wrote images over as many bytes as `SORTED` left between its place and the next one's, the sizes of
        // which are those of the images; and in the same loops the unit of each of them, which are the first `n`. A panic
        // before this leaves both lengths as they were.
        unsafe {
            block.arena.set_len(frames_start + usize::from(out));
            block.units.set_len(block.units.len() + n);
        }
        end
    }
}

/// Fewer messages than this are not worth a batch.
const MESSAGES_MIN: usize = 4;

/// Returns the message after its length prefix.
#[inline(always)]
fn message_body<'b, const N: usize>(bytes: &'b [u8], spot: &BatchMessageOffset) -> &'b [u8; N] {
    bytes[spot.block_offset as usize + 2..].first_chunk().expect("as long as its type")
}

/// Returns the length of an image in bytes.
const fn bytes_of<const N: usize>(_: fn(&FramePrototypes) -> &[u8; N]) -> usize {
    N
}

/// Copies `image` to the spare bytes, at this distance after the end of the arena.
#[inline(always)]
fn copy_image<'f, const N: usize>(
    spare_arena: &'f mut [MaybeUninit<u8>],
    out: u16,
    image: &[u8; N],
) -> &'f mut [u8; N] {
    let frame = &mut spare_arena[usize::from(out)..][..N];
    frame.write_copy_of_slice(image).first_chunk_mut().expect("as long as the image")
}
