//! The bytes that bind a sealed piece to its place: the associated data of AES-GCM.

use unitape_model::FieldClass;

use crate::FORMAT_VERSION;
use crate::day::Day;
use crate::file::FileId;
use crate::header::BlockHeader;
use crate::keys::StoreId;

/// The kind of a sealed piece. The numbers are on disk, as part of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Manifest = 1,
    Names = 2,
    DayKey = 3,
    /// The root of the index of a file.
    Index = 4,
    BlockHeader = 5,
    Chunk = 6,
    SigningKey = 7,
    /// A part of a run, which a seal writes and reads by itself.
    Run = 8,
    AccessKey = 9,
    NamesKey = 10,
    IndexKey = 11,
    IndexPage = 12,
}

/// A binding of 96 bytes, drawn in `docs/formats-store.md`. Fields that do not concern a piece are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding([u8; 96]);

impl Binding {
    pub fn new(piece: Piece, store: StoreId) -> Self {
        let mut this = Self([0; 96]);
        this.write_field(0, &[piece as u8]);
        this.write_field(4, &FORMAT_VERSION.to_le_bytes());
        this.write_field(8, &store.0);
        this
    }

    fn write_field(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Binds the piece to a day.
    pub fn day(mut self, day: Day) -> Self {
        self.write_field(64, &day.0.to_le_bytes());
        self
    }

    /// Binds the piece to the seal that wrote it, which a killed seal of the same generation is not.
    pub fn commit(mut self, generation: u64, commit: u128) -> Self {
        self.write_field(24, &commit.to_le_bytes());
        self.write_field(40, &generation.to_le_bytes());
        self
    }

    /// Binds the piece to a file.
    pub fn file(mut self, id: &FileId) -> Self {
        self.write_field(2, &[id.schema as u8]);
        self.write_field(48, &id.revision.to_le_bytes());
        self.commit(id.generation, id.commit).day(id.day)
    }

    /// Binds the piece to a number: of a block in its file, of the blocks of an index, of a page of it, of the first byte of names.
    pub fn bind_number(mut self, number: u64) -> Self {
        self.write_field(84, &number.to_le_bytes());
        self
    }

    /// Binds the piece to a chunk of a class of a block: 0 is the table, the others have a column each.
    pub fn chunk(mut self, head: &BlockHeader, class: FieldClass, chunk: u16) -> Self {
        let part = head.class_size(class);
        self.write_field(1, &[class as u8]);
        self.write_field(68, &head.instrument.0.to_le_bytes());
        self.write_field(72, &head.rows.to_le_bytes());
        self.write_field(76, &part.columns.to_le_bytes());
        self.write_field(78, &chunk.to_le_bytes());
        self.bind_number(head.number.into())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
