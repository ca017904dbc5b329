//! Caches encoded extensions by their column bytes, because the same values recur. The general path makes an
//! extension once; the fast path then finds it by the bytes of its columns.

use super::program::GeneralRecordView;
use crate::block::json::json_string;
use crate::mapping::ParsedMessage;
use unitape_codec::fixed::{LANES, RecordBatch, RecordLayout, StridedRecords};
use unitape_model::schema::{EXT_ONLY, EventFieldSpec, FieldLayout};
use unitape_model::{Dictionary, EventBuilder, EventKind, LINE, UnixNanos};

/// A column whose text goes into the extension.
#[derive(Debug)]
pub(super) struct ExtensionColumn {
    pub target: ExtensionTarget,
    pub column: u16,
}

/// The entry of the extension that a column becomes.
#[derive(Debug)]
pub(super) enum ExtensionTarget {
    /// A field whose text is always in the extension.
    Field(&'static EventFieldSpec),
    /// A value that is kept under this name.
    Kept(String),
}

/// Returns whether the text of a field is always in the extension.
pub(super) fn is_extension_text(slot: FieldLayout) -> bool {
    matches!(slot, FieldLayout::Text { offset: EXT_ONLY, .. })
}

/// The columns, and the extensions that were made.
#[derive(Debug)]
pub(super) struct ExtensionCache {
    /// In the order of their entries.
    columns: Vec<ExtensionColumn>,
    kind: EventKind,
    /// Words of the record that hold all of these columns, and nothing else once masked.
    key_words: [(usize, u64); WORDS_MAX],
    entries: Box<[CachedExtension; EXTENSIONS]>,
    /// The lines of all extensions, one extension after the other.
    extension_lines: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct CachedExtension {
    key: [u64; WORDS_MAX],
    line_start: u32,
    /// The length in whole lines; 0 if no column has a value.
    length: u32,
    is_present: bool,
}

/// An extension in the cache's text, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtensionSpan {
    pub start: u32,
    pub length: u32,
}

const WORDS_MAX: usize = 4;
const EXTENSIONS: usize = 1024;

/// The cache keeps extensions up to this many bytes, then it starts empty again.
const KEPT_BYTES_MAX: usize = 1 << 20;

const NO_EXTENSION: CachedExtension =
    CachedExtension { key: [0; WORDS_MAX], line_start: 0, length: 0, is_present: false };

impl CachedExtension {
    #[inline(always)]
    fn span(&self) -> ExtensionSpan {
        ExtensionSpan { start: self.line_start, length: self.length }
    }
}

impl ExtensionCache {
    /// Makes a cache; `None` if a column is no text, or if the columns are too far apart.
    pub(super) fn new(columns: Vec<ExtensionColumn>, record: &RecordLayout, kind: EventKind) -> Option<Self> {
        let mut bytes: Vec<usize> = Vec::new();
        for ExtensionColumn { column, .. } in &columns {
            let layout = &record.columns()[usize::from(*column)];
            if !layout.is_text() {
                return None;
            }
            bytes.extend(layout.start()..layout.start() + layout.length());
        }
        bytes.sort_unstable();
        bytes.dedup();
        let mut words: Vec<(usize, u64)> = Vec::new();
        for byte in bytes {
            match words.last_mut() {
                Some((start, mask)) if byte < *start + 8 => *mask |= 0xff << (8 * (byte - *start)),
                _ => words.push((byte, 0xff)),
            }
        }
        if words.len() > WORDS_MAX {
            return None;
        }
        // A word that is not needed says nothing.
        words.resize(WORDS_MAX, (0, 0));
        let words = words.try_into().ok()?;
        Some(Self {
            columns,
            kind,
            key_words: words,
            entries: Box::new([NO_EXTENSION; EXTENSIONS]),
            extension_lines: Vec::new(),
        })
    }

    /// Returns the end of the bytes that a look-up reads: it reads whole words.
    pub(super) fn bytes_needed(&self) -> usize {
        self.key_words.iter().map(|(start, _)| start + 8).max().unwrap_or(0)
    }

    /// Finds this record's extension, if it was made before.
    #[inline]
    pub(super) fn find_extension(&self, record: &[u8]) -> Option<ExtensionSpan> {
        let key = self.record_key(record);
        let entry = &self.entries[slot_of_key(&key)];
        (entry.key == key && entry.is_present).then_some(entry.span())
    }

    /// Finds the extensions of many records; false if one of them was not made before.
    #[inline]
    pub(super) fn find_all(&self, rows: StridedRecords<'_>, spans: &mut [ExtensionSpan; LANES]) -> bool {
        let [a, b, c, d] = self.key_words.map(|(start, mask)| (rows.column::<8>(start), mask));
        let words = a.0.zip(b.0).zip(c.0.zip(d.0));
        let masked = |bytes: &[u8; 8], mask: u64| u64::from_le_bytes(*bytes) & mask;
        let mut difference = 0;
        for (((w, x), (y, z)), span) in words.zip(spans) {
            let key = [masked(w, a.1), masked(x, b.1), masked(y, c.1), masked(z, d.1)];
            let entry = &self.entries[slot_of_key(&key)];
            *span = entry.span();
            difference |= u64::from(!entry.is_present);
            difference = key.iter().zip(&entry.key).fold(difference, |bits, (a, b)| bits | (a ^ b));
        }
        difference == 0
    }

    /// Returns the extension at this span.
    #[inline]
    pub(super) fn extension_text(&self, span: ExtensionSpan) -> &[u8] {
        &self.extension_lines[span.start as usize..][..span.length as usize]
    }

    /// Makes it as the general path does; false if that would refuse it.
    #[cold]
    pub(super) fn add_extension(&mut self, record: &[u8], fields: &GeneralRecordView<'_>) -> bool {
        if self.extension_lines.len() > KEPT_BYTES_MAX {
            self.extension_lines.clear();
            self.entries.fill(NO_EXTENSION);
        }
        let mut frame = Vec::new();
        let mut event = EventBuilder::begin(&mut frame, self.kind, UnixNanos(0));
        let fixed = usize::from(event.schema().fixed_bytes);
        let mut scratch = Vec::new();
        for ExtensionColumn { target, column } in &self.columns {
            let Some(column) = fields.column(*column) else { continue };
            let text = fields.text(column, &mut scratch);
            let added = match target {
                // The text of a field is no name, so no dictionary gets an entry.
                ExtensionTarget::Field(spec) => event.set_text(spec, text, &mut Dictionary::default()),
                ExtensionTarget::Kept(name) => event.keep_unmapped(name, &json_string(text)),
            };
            if added.is_err() {
                return false;
            }
        }
        if event.finish(0).is_err() {
            return false;
        }
        let extension = &frame[fixed..];
        debug_assert!(extension.len().is_multiple_of(LINE));
        let key = self.record_key(record);
        let (start, length) = (self.extension_lines.len() as u32, extension.len() as u32);
        self.entries[slot_of_key(&key)] =
            CachedExtension { key, line_start: start, length, is_present: true };
        self.extension_lines.extend_from_slice(extension);
        true
    }

    #[inline]
    fn record_key(&self, record: &[u8]) -> [u64; WORDS_MAX] {
        self.key_words.map(|(start, mask)| {
            let bytes: [u8; 8] = record[start..start + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes) & mask
        })
    }
}

#[inline]
fn slot_of_key(key: &[u64; WORDS_MAX]) -> usize {
    let mixed = key[0].wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ key[1].wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        ^ key[2].wrapping_mul(0x1656_67b1_9e37_79f9)
        ^ key[3].wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 54) as usize % EXTENSIONS
}
