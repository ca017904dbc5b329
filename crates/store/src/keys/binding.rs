//! The bytes that bind a sealed piece to its place: the associated data of AES-GCM.

use crate::FORMAT_VERSION;
use crate::block::BlockHeader;
use crate::class::FieldClass;
use crate::day::Day;
use crate::file::FileId;
use crate::keys::StoreId;

/// What is sealed. Numbers are on disk, as part of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Manifest = 1,
    Names = 2,
    DayKey = 3,
    Index = 4,
    BlockHeader = 5,
    Chunk = 6,
    SigningKey = 7,
}

/// A binding, 96 bytes. Drawn in `docs/formats-store.md`; what does not concern a piece is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding([u8; 96]);

impl Binding {
    pub fn new(piece: Piece, store: StoreId) -> Self {
        let mut this = Self([0; 96]);
        this.put(0, &[piece as u8]);
        this.put(4, &FORMAT_VERSION.to_le_bytes());
        this.put(8, &store.0);
        this
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Binds the piece to a day.
    pub fn day(mut self, day: Day) -> Self {
        self.put(64, &day.0.to_le_bytes());
        self
    }

    /// Binds the piece to the seal that wrote it, which a killed seal of the same generation is not.
    pub fn commit(mut self, generation: u64, commit: u128) -> Self {
        self.put(24, &commit.to_le_bytes());
        self.put(40, &generation.to_le_bytes());
        self
    }

    /// Binds the piece to a file.
    pub fn file(mut self, id: &FileId) -> Self {
        self.put(2, &[id.schema as u8]);
        self.put(48, &id.tape.0.to_le_bytes());
        self.commit(id.generation, id.commit).day(id.day)
    }

    /// Binds the piece to a number: of a block in its file, of the blocks of an index, of the first byte of names.
    pub fn number(mut self, number: u64) -> Self {
        self.put(84, &number.to_le_bytes());
        self
    }

    /// Binds the piece to a class of a block.
    pub fn chunk(mut self, head: &BlockHeader, class: FieldClass) -> Self {
        let part = head.part(class);
        self.put(1, &[class as u8]);
        self.put(3, &[head.kind as u8]);
        self.put(68, &head.instrument.0.to_le_bytes());
        self.put(72, &head.rows.to_le_bytes());
        self.put(76, &part.columns.to_le_bytes());
        self.put(78, &head.fixed_bytes.to_le_bytes());
        self.number(head.number.into())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
