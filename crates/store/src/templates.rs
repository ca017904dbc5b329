//! Extensions as columns: rows whose entries have the same fields share a *template*, and each field is a column.
//!
//! ```text
//! piece       what comes before a value (head of the entry, name of a field of the feed) │ bytes of the value
//! template    bytes before the first piece │ piece │ piece │ …
//! ```
//!
//! A row of a template is the bytes of its pieces with its values. Other rows stay bytes in a stream.

use std::ops::Range;

use rustc_hash::FxHashMap;
use unitape_model::event::extension_entry;
use unitape_model::schema::TAG_UNMAPPED;

use crate::bits::{put_varint, take_varint};
use crate::column::{ColumnEncoder, ColumnSpec};
use crate::table::TableWriter;

/// Bytes of a value at most. A longer text stays in the stream.
const VALUE_BYTES_MAX: usize = 32;
/// Fewer rows are no template.
const ROWS_MIN: u32 = 4;
/// Templates of a class of a block, and pieces.
const TEMPLATES_MAX: usize = 255;
const PIECES_MAX: usize = 255;
/// Bytes of the definitions of a class, by which a reader bounds what it believes.
const DEFINITION_MAX: usize = 1 << 16;
/// Bytes of the head of an entry of an extension.
const ENTRY_HEAD: usize = 6;
/// Bytes of the length of a feed's name, before it.
const NAME_LENGTH: usize = 2;

/// A field of extensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Piece {
    /// The bytes before the value.
    pub head: Vec<u8>,
    pub value_bytes: usize,
    /// How many values it has in the block.
    pub count: usize,
}

impl Piece {
    /// Returns how many columns have the words of its values.
    pub fn columns(&self) -> usize {
        self.value_bytes.div_ceil(8)
    }

    /// Returns the bytes of each of its words.
    pub fn word_bytes(&self) -> impl Iterator<Item = usize> {
        (0..self.value_bytes).step_by(8).map(|start| (self.value_bytes - start).min(8))
    }
}

/// The fields of a row, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    /// The bytes before the first field.
    pub prefix: Vec<u8>,
    /// The pieces, by their index.
    pub pieces: Vec<u8>,
}

/// The templates of a class of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Templates {
    pub pieces: Vec<Piece>,
    pub templates: Vec<Template>,
}

impl Templates {
    /// Returns the bytes of a row of a template.
    pub fn row_bytes(&self, template: &Template) -> usize {
        let piece_bytes = |piece: &u8| {
            let piece = &self.pieces[usize::from(*piece)];
            piece.head.len() + piece.value_bytes
        };
        template.prefix.len() + template.pieces.iter().map(piece_bytes).sum::<usize>()
    }

    /// Appends the definitions.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.pieces.len() as u64);
        for piece in &self.pieces {
            put_varint(out, piece.head.len() as u64);
            out.extend_from_slice(&piece.head);
            put_varint(out, piece.value_bytes as u64);
            put_varint(out, piece.count as u64);
        }
        put_varint(out, self.templates.len() as u64);
        for template in &self.templates {
            put_varint(out, template.prefix.len() as u64);
            out.extend_from_slice(&template.prefix);
            put_varint(out, template.pieces.len() as u64);
            out.extend_from_slice(&template.pieces);
        }
    }

    /// Reads the definitions at `offset`, and moves past them. A block has `rows` rows.
    pub fn decode(data: &[u8], offset: &mut usize, rows: usize) -> Option<Self> {
        let start = *offset;
        let mut this = Self::default();
        let take_bytes = |offset: &mut usize| {
            let bytes = usize::try_from(take_varint(data, offset)?).ok()?;
            let range = *offset..offset.checked_add(bytes)?;
            *offset = range.end;
            data.get(range).filter(|_| *offset - start <= DEFINITION_MAX)
        };
        let pieces = usize::try_from(take_varint(data, offset)?).ok().filter(|n| *n <= PIECES_MAX)?;
        for _ in 0..pieces {
            let head = take_bytes(offset)?.to_vec();
            let value_bytes = usize::try_from(take_varint(data, offset)?).ok()?;
            let count = usize::try_from(take_varint(data, offset)?).ok()?;
            let is_sound = value_bytes <= VALUE_BYTES_MAX && count <= rows.checked_mul(PIECES_MAX)?;
            this.pieces.push(is_sound.then_some(Piece { head, value_bytes, count })?);
        }
        let templates = usize::try_from(take_varint(data, offset)?).ok().filter(|n| *n <= TEMPLATES_MAX)?;
        for _ in 0..templates {
            let prefix = take_bytes(offset)?.to_vec();
            let pieces = take_bytes(offset)?.to_vec();
            let are_known = pieces.iter().all(|piece| usize::from(*piece) < this.pieces.len());
            this.templates.push(are_known.then_some(Template { prefix, pieces })?);
        }
        Some(this)
    }
}

/// Finds the templates of a class; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct TemplateFinder {
    /// The number of a structure: what a row is without its values. Rows of the same structure are of one template.
    structures: FxHashMap<Box<[u8]>, u32>,
    structure: Vec<u8>,
    /// The structure of each row, or `u32::MAX`.
    row_structures: Vec<u32>,
    /// Of each structure: its rows, and the first of them.
    structure_rows: Vec<(u32, u32)>,
    /// The number of each row's template, from 1, or 0.
    pub row_templates: Vec<u64>,
    pub templates: Templates,
    /// The values of each word of each piece.
    words: Vec<Vec<u64>>,
}

/// The bytes of a row behind the fixed part, of one class.
#[derive(Clone, Debug)]
pub(crate) struct RowTail {
    pub range: Range<usize>,
    /// Bytes before the first entry.
    pub prefix_bytes: usize,
}

/// An entry of a row: what comes before its value, and the value.
fn entry_parts(tail: &[u8], start: usize) -> Option<(Range<usize>, Range<usize>)> {
    let (tag, payload) = extension_entry(tail, start)?;
    let mut value = payload.clone();
    if tag == TAG_UNMAPPED {
        let name = tail.get(payload.start..payload.start + NAME_LENGTH)?;
        let name_bytes = usize::from(u16::from_le_bytes([name[0], name[1]]));
        value.start = value.start.checked_add(NAME_LENGTH + name_bytes).filter(|at| *at <= payload.end)?;
    }
    debug_assert!(value.start >= start + ENTRY_HEAD);
    Some((start..value.start, value))
}

impl TemplateFinder {
    /// Finds the templates of the rows, whose tails are in `bytes`.
    pub fn find(&mut self, bytes: &[u8], tails: &[RowTail]) {
        self.structures.clear();
        self.structure_rows.clear();
        self.row_structures.clear();
        for (row, tail) in tails.iter().enumerate() {
            let number = self.structure_of(&bytes[tail.range.clone()], tail.prefix_bytes);
            let number = number.map(|_| self.number_structure(row as u32)).unwrap_or(u32::MAX);
            self.row_structures.push(number);
        }
        self.choose(bytes, tails);
        self.fill_words(bytes, tails);
    }

    /// Makes `self.structure` that of a row. `None` if the row cannot be of a template.
    fn structure_of(&mut self, tail: &[u8], prefix_bytes: usize) -> Option<()> {
        self.structure.clear();
        if tail.is_empty() {
            return None;
        }
        self.structure.extend_from_slice(&(prefix_bytes as u32).to_le_bytes());
        self.structure.extend_from_slice(&tail[..prefix_bytes]);
        let mut start = prefix_bytes;
        while start < tail.len() {
            let (head, value) = entry_parts(tail, start)?;
            if value.len() > VALUE_BYTES_MAX {
                return None;
            }
            // The head has the length of the entry, so that of the value follows.
            self.structure.extend_from_slice(&(head.len() as u32).to_le_bytes());
            self.structure.extend_from_slice(&tail[head]);
            start = value.end;
        }
        (self.structure.len() < DEFINITION_MAX / 64).then_some(())
    }

    fn number_structure(&mut self, row: u32) -> u32 {
        if let Some(number) = self.structures.get(&self.structure[..]) {
            self.structure_rows[*number as usize].0 += 1;
            return *number;
        }
        let number = self.structure_rows.len() as u32;
        // Rows that are all different are no templates, and cost memory.
        if self.structure_rows.len() >= 4 * TEMPLATES_MAX {
            return u32::MAX;
        }
        self.structures.insert(self.structure.clone().into(), number);
        self.structure_rows.push((1, row));
        number
    }

    /// Makes templates of the structures that have enough rows.
    fn choose(&mut self, bytes: &[u8], tails: &[RowTail]) {
        self.templates = Templates::default();
        let mut numbers = vec![0u64; self.structure_rows.len()];
        let mut by_rows: Vec<usize> = (0..self.structure_rows.len()).collect();
        by_rows.sort_by_key(|number| std::cmp::Reverse(self.structure_rows[*number].0));
        let mut definition_bytes = 0;
        for number in by_rows {
            let (rows, first_row) = self.structure_rows[number];
            if rows < ROWS_MIN || self.templates.templates.len() == TEMPLATES_MAX {
                break;
            }
            let tail = &tails[first_row as usize];
            let (tail_bytes, prefix_bytes) = (&bytes[tail.range.clone()], tail.prefix_bytes);
            definition_bytes += tail_bytes.len() + 16;
            let Some(template) = self.template_of(tail_bytes, prefix_bytes, rows as usize) else { continue };
            if definition_bytes > DEFINITION_MAX / 2 {
                break;
            }
            self.templates.templates.push(template);
            numbers[number] = self.templates.templates.len() as u64;
        }
        self.row_templates.clear();
        let number_of = |structure: &u32| numbers.get(*structure as usize).copied().unwrap_or(0);
        self.row_templates.extend(self.row_structures.iter().map(number_of));
        self.templates.pieces.iter_mut().for_each(|piece| piece.count = 0);
    }

    /// Makes the template of a row, and pieces that are new. `None` if there are too many.
    fn template_of(&mut self, tail: &[u8], prefix_bytes: usize, _rows: usize) -> Option<Template> {
        let (known, mut start) = (self.templates.pieces.len(), prefix_bytes);
        let mut template = Template { prefix: tail[..prefix_bytes].to_vec(), pieces: Vec::new() };
        while start < tail.len() {
            let (head, value) = entry_parts(tail, start)?;
            start = value.end;
            let is_same =
                |piece: &Piece| piece.head == tail[head.clone()] && piece.value_bytes == value.len();
            let index = match self.templates.pieces.iter().position(is_same) {
                Some(index) => index,
                None => {
                    let (head, value_bytes) = (tail[head].to_vec(), value.len());
                    self.templates.pieces.push(Piece { head, value_bytes, count: 0 });
                    self.templates.pieces.len() - 1
                }
            };
            if index >= PIECES_MAX || template.pieces.len() >= PIECES_MAX {
                self.templates.pieces.truncate(known);
                return None;
            }
            template.pieces.push(index as u8);
        }
        Some(template)
    }

    /// Takes the values of all rows of templates.
    fn fill_words(&mut self, bytes: &[u8], tails: &[RowTail]) {
        let Templates { pieces, templates } = &mut self.templates;
        let mut first_columns = Vec::with_capacity(pieces.len());
        let mut columns = 0;
        for piece in pieces.iter() {
            first_columns.push(columns);
            columns += piece.columns();
        }
        self.words.iter_mut().for_each(Vec::clear);
        self.words.resize_with(self.words.len().max(columns), Vec::new);
        for (tail, number) in tails.iter().zip(&self.row_templates).filter(|(_, number)| **number > 0) {
            let template = &templates[*number as usize - 1];
            let mut value_at = tail.range.start + template.prefix.len();
            for index in &template.pieces {
                let piece = &mut pieces[usize::from(*index)];
                value_at += piece.head.len();
                let first_column = first_columns[usize::from(*index)];
                let mut word_at = value_at;
                for (column, word_bytes) in piece.word_bytes().enumerate() {
                    let mut word = [0; 8];
                    word[..word_bytes].copy_from_slice(&bytes[word_at..word_at + word_bytes]);
                    self.words[first_column + column].push(u64::from_le_bytes(word));
                    word_at += word_bytes;
                }
                value_at += piece.value_bytes;
                piece.count += 1;
            }
        }
    }

    /// Appends the templates and the columns of their values to a table, if there are any.
    pub fn write(&self, encoder: &mut ColumnEncoder, table: &mut TableWriter) {
        if self.templates.templates.is_empty() {
            return;
        }
        table.begin_templates(|out| self.templates.encode(out));
        let widths = self.templates.pieces.iter().flat_map(Piece::word_bytes);
        for (values, word_bytes) in self.words.iter().zip(widths) {
            let width = word_bytes as u8;
            let spec = ColumnSpec { width, null_value: None, is_text: true };
            table.push_special(width, |out| encoder.encode(values, spec, None, out));
        }
    }
}
