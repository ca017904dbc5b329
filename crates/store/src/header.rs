//! The header of a block, and the numbers of its columns.

use unitape_model::frame::LINE;
use unitape_model::{EventKind, FieldClass, InstrumentId, Position, UnixNanos};

use crate::cells::EventKindLayout;
use crate::column::ROWS_MAX;
use crate::file::FileId;
use crate::keys::{Binding, Piece, SEAL_BYTES, StoreKeys};
use crate::schema::TickSchema;

/// Bytes of a block's header when it is opened.
pub(crate) const HEADER: usize = 108;
/// Bytes before the sealed header, in clear.
pub(crate) const CLEAR: usize = 8;
/// Bytes of a block before its chunks.
pub(crate) const START: usize = CLEAR + HEADER + SEAL_BYTES;
/// Each chunk begins at a multiple of this many bytes in its block, and so does what was sealed in it when it is opened.
pub(crate) const CHUNK_ALIGNMENT: usize = 16;
const _: () = assert!(START.is_multiple_of(CHUNK_ALIGNMENT));
/// The greatest number of bytes of a block's frames. A reader must be able to hold as many.
pub(crate) const RAW_MAX: usize = 64 << 20;
/// A block is never longer than this: its frames in the largest encoding, and its tables.
pub(crate) const BYTES_MAX: usize = RAW_MAX * 2;

/// The first bytes of a block.
pub(crate) const MAGIC: [u8; 4] = *b"UBLK";

/// Columns beside the cells of the fixed part. Numbers are on disk.
pub(crate) mod special {
    use unitape_model::FieldClass;

    /// Ordinal on the tape.
    pub const ORDINAL: u16 = 0x1000;
    /// Line on the tape (position / 64) less the ordinal: how many lines more than events came before.
    pub const BEHIND: u16 = 0x1001;
    /// Flags of the header word.
    pub const FLAGS: u16 = 0x1002;
    /// Lines after the fixed part.
    pub const LINES: u16 = 0x1003;
    /// Bytes of each row in [`MARKET_TAIL`].
    pub const MARKET_BYTES: u16 = 0x1004;
    /// Entries of the extension that are market data, row after row.
    pub const MARKET_TAIL: u16 = 0x1005;
    /// Bytes of each row in [`IDENTITY_TAIL`].
    pub const IDENTITY_BYTES: u16 = 0x1006;
    /// The identity data after the fixed part, row after row.
    pub const IDENTITY_TAIL: u16 = 0x1007;
    /// The template of each row in [`MARKET_TAIL`], from 1; 0 if its bytes are in the stream.
    pub const MARKET_TEMPLATE: u16 = 0x100a;
    /// The template of each row in [`IDENTITY_TAIL`], likewise.
    pub const IDENTITY_TEMPLATE: u16 = 0x100b;
    /// Which layout of the table each row has, from 0.
    pub const LAYOUT_INDEX: u16 = 0x1008;
    /// Index of each row's tape among those of the part. Only blocks with rows of several tapes have it.
    pub const TAPE_INDEX: u16 = 0x1009;

    /// Returns the columns of a class, in their order before the cells.
    pub const fn of_class(class: FieldClass, has_several_tapes: bool) -> &'static [u16] {
        match class {
            FieldClass::Market if has_several_tapes => {
                &[ORDINAL, LAYOUT_INDEX, MARKET_BYTES, MARKET_TAIL, MARKET_TEMPLATE, TAPE_INDEX]
            }
            FieldClass::Market => &[ORDINAL, LAYOUT_INDEX, MARKET_BYTES, MARKET_TAIL, MARKET_TEMPLATE],
            FieldClass::Identity => &[LINES, IDENTITY_BYTES, IDENTITY_TAIL, IDENTITY_TEMPLATE],
            FieldClass::Provenance => &[BEHIND, FLAGS],
        }
    }
}

/// The chunks of a class, as the header describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassSize {
    /// Entries of the table.
    pub columns: u16,
    /// The number of bytes of the first sealed chunk: the table and short columns, or all columns.
    pub first_bytes: u32,
    /// The number of bytes of all sealed chunks.
    pub bytes: u32,
}

impl ClassSize {
    /// Returns whether columns have chunks of their own.
    pub fn is_split(self) -> bool {
        self.first_bytes < self.bytes
    }
}

/// Returns the bytes of the sealed chunk of `bytes` bytes, zeros included.
pub(crate) const fn chunk_bytes(bytes: usize) -> usize {
    (bytes + SEAL_BYTES).next_multiple_of(CHUNK_ALIGNMENT)
}

/// The header of a block: its description, without the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// All of it, this header included: the sum of what the header says.
    pub bytes: u32,
    /// Trades that cancel or correct another one. Whoever adds up trades must look for those in later blocks and days.
    pub corrections: u32,
    pub rows: u32,
    /// Token of the instrument, 0 none.
    pub instrument: InstrumentId,
    /// Which block of its file it is, from 0.
    pub number: u32,
    /// The kinds of its events.
    pub kinds: KindSet,
    pub ts_min: UnixNanos,
    pub ts_max: UnixNanos,
    pub ordinal_min: u64,
    pub ordinal_max: u64,
    pub position_min: Position,
    pub position_max: Position,
    /// Bytes of its frames.
    pub raw_bytes: u32,
    /// The sizes of each class, in the order of [`FieldClass::ALL`].
    pub parts: [ClassSize; 3],
    /// Index of the tape of all rows among those of the part, or [`SEVERAL_TAPES`].
    pub tape_index: u16,
}

/// Instead of a tape's index: the rows are of several tapes, and a column has the index of each.
pub(crate) const SEVERAL_TAPES: u16 = u16::MAX;

/// A set of kinds of events: bit *n* is kind number *n*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindSet(pub u64);

const _: () = assert!(EventKind::NUMBER_MAX < 64);

impl KindSet {
    pub fn insert(&mut self, kind: EventKind) {
        self.0 |= 1 << kind as u8;
    }

    /// Returns the kinds in the set.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::EVENTS.into_iter().filter(move |kind| self.0 >> *kind as u8 & 1 != 0)
    }

    /// Returns whether a layout of one of the kinds meets a condition.
    pub fn any_layout(self, mut meets: impl FnMut(&EventKindLayout) -> bool) -> bool {
        self.iter().any(|kind| EventKindLayout::for_kind(kind).iter().any(&mut meets))
    }

    /// Returns whether every kind in the set is one that the schema keeps.
    pub fn is_of(self, schema: TickSchema) -> bool {
        self.iter().all(|kind| TickSchema::for_kind(kind) == Some(schema))
    }
}

/// Where the header has the sizes of each class.
const PART_OFFSETS: [usize; 3] = [76, 86, 96];

impl BlockHeader {
    /// Returns the index of the tape of all rows, if they are of one tape.
    pub fn single_tape(&self) -> Option<u16> {
        (self.tape_index != SEVERAL_TAPES).then_some(self.tape_index)
    }

    /// Returns the size of the chunks of a class.
    pub fn class_size(&self, class: FieldClass) -> ClassSize {
        self.parts[class.index()]
    }

    /// Returns the number of bytes up to the end of the chunks of this class.
    pub fn end_of(&self, class: FieldClass) -> usize {
        START + self.parts[..=class.index()].iter().map(|part| part.bytes as usize).sum::<usize>()
    }

    /// Makes the binding of a block header in this file.
    pub fn binding(keys: &StoreKeys, file: &FileId, number: u32) -> Binding {
        Binding::new(Piece::BlockHeader, keys.store).file(file).bind_number(number.into())
    }

    /// Writes the bytes of the header as they are before the seal.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, &self.corrections.to_le_bytes());
        write_field(4, &self.rows.to_le_bytes());
        write_field(8, &self.instrument.0.to_le_bytes());
        write_field(12, &self.number.to_le_bytes());
        write_field(16, &self.kinds.0.to_le_bytes());
        write_field(24, &self.ts_min.0.to_le_bytes());
        write_field(32, &self.ts_max.0.to_le_bytes());
        write_field(40, &self.ordinal_min.to_le_bytes());
        write_field(48, &self.ordinal_max.to_le_bytes());
        write_field(56, &self.position_min.0.to_le_bytes());
        write_field(64, &self.position_max.0.to_le_bytes());
        write_field(72, &self.raw_bytes.to_le_bytes());
        for (part, part_offset) in self.parts.iter().zip(PART_OFFSETS) {
            write_field(part_offset, &part.bytes.to_le_bytes());
            write_field(part_offset + 4, &part.first_bytes.to_le_bytes());
            write_field(part_offset + 8, &part.columns.to_le_bytes());
        }
        write_field(106, &self.tape_index.to_le_bytes());
        out
    }

    /// Reads a header and checks that a seal can have written it: sizes and counts must be within a seal's limits.
    pub fn decode(b: &[u8]) -> std::result::Result<Self, &'static str> {
        let b = b.get(..HEADER).ok_or("a block header that is cut short")?;
        let u32_at =
            |offset: usize| u32::from_le_bytes(b[offset..offset + 4].try_into().expect("four bytes"));
        let u64_at = |word_offset: usize| {
            u64::from_le_bytes(b[word_offset..word_offset + 8].try_into().expect("eight bytes"))
        };
        let u16_at = |half_offset: usize| u16::from_le_bytes([b[half_offset], b[half_offset + 1]]);
        let kinds = KindSet(u64_at(16));
        let this = Self {
            bytes: 0,
            corrections: u32_at(0),
            rows: u32_at(4),
            instrument: InstrumentId(u32_at(8)),
            number: u32_at(12),
            kinds,
            ts_min: UnixNanos(u64_at(24) as i64),
            ts_max: UnixNanos(u64_at(32) as i64),
            ordinal_min: u64_at(40),
            ordinal_max: u64_at(48),
            position_min: Position(u64_at(56)),
            position_max: Position(u64_at(64)),
            raw_bytes: u32_at(72),
            parts: PART_OFFSETS.map(|part_offset| ClassSize {
                bytes: u32_at(part_offset),
                first_bytes: u32_at(part_offset + 4),
                columns: u16_at(part_offset + 8),
            }),
            tape_index: u16_at(106),
        };
        this.with_bytes()?.checked()
    }

    /// Makes the header with the bytes of the block that its chunks make.
    ///
    /// # Errors
    /// Fails if they are more than any block has.
    pub fn with_bytes(self) -> std::result::Result<Self, &'static str> {
        let chunks: u64 = self.parts.iter().map(|part| u64::from(part.bytes)).sum();
        let bytes = u32::try_from(START as u64 + chunks).map_err(|_| "a block longer than any is")?;
        Ok(Self { bytes, ..self })
    }

    /// Checks that a seal can have written the header.
    pub fn checked(self) -> std::result::Result<Self, &'static str> {
        let kinds = self.kinds;
        if kinds.0 == 0 || kinds.0.count_ones() as usize != kinds.iter().count() {
            return Err("a block of a kind we do not know");
        }
        let fixed_min = kinds.iter().flat_map(EventKindLayout::for_kind).map(|layout| layout.fixed).min();
        let (rows, raw) = (self.rows as usize, self.raw_bytes as usize);
        // An entry of the table has two bytes at least.
        let chunk_fits = |part: &ClassSize| {
            let (bytes, first_bytes) = (part.bytes as usize, part.first_bytes as usize);
            (SEAL_BYTES + usize::from(part.columns) * 2..=bytes).contains(&first_bytes)
                && first_bytes.is_multiple_of(CHUNK_ALIGNMENT)
                && bytes.is_multiple_of(CHUNK_ALIGNMENT)
        };
        let sound = (1..=ROWS_MAX).contains(&rows)
            && (START..=BYTES_MAX).contains(&(self.bytes as usize))
            && self.parts.iter().all(chunk_fits)
            && self.corrections <= self.rows
            && raw.is_multiple_of(LINE)
            && (rows * fixed_min.unwrap_or(LINE)..=RAW_MAX).contains(&raw)
            && self.ts_min <= self.ts_max
            && self.ordinal_min <= self.ordinal_max;
        if sound { Ok(self) } else { Err("a block header with sizes that no block has") }
    }
}
