//! Rows of templates: from the columns of their fields back to bytes.

use super::BlockFault;
use super::columns::{BlockColumn, PredictorValues};
use crate::header::START;
use crate::templates::Templates;

/// The templates of a class of a block, open.
#[derive(Default)]
pub(super) struct OpenTemplates<'a> {
    templates: Templates,
    /// The words of the values of each piece, piece after piece.
    pub columns: Vec<BlockColumn<'a>>,
    pieces: Vec<PieceValues>,
    /// Bytes of a row of each template.
    row_bytes: Vec<u64>,
}

/// The values of a piece in the vector of rows at hand.
#[derive(Debug, Default)]
struct PieceValues {
    first_column: usize,
    count: usize,
    next: usize,
    /// The values of each word.
    words: Vec<Vec<u64>>,
}

impl<'a> OpenTemplates<'a> {
    /// Takes the definitions and the columns of the words.
    pub fn new(templates: Templates, columns: Vec<BlockColumn<'a>>) -> Self {
        let mut first_column = 0;
        let piece_values = |columns: usize| {
            let words = vec![Vec::new(); columns];
            let values = PieceValues { first_column, count: 0, next: 0, words };
            first_column += columns;
            values
        };
        let pieces = templates.pieces.iter().map(|piece| piece.columns()).map(piece_values).collect();
        let row_bytes =
            templates.templates.iter().map(|template| templates.row_bytes(template) as u64).collect();
        Self { templates, columns, pieces, row_bytes }
    }

    /// Returns whether no row of the block has a template.
    pub fn is_empty(&self) -> bool {
        self.row_bytes.is_empty()
    }

    /// Returns the bytes of a row that has `stream_bytes` in the stream and this template, from 1, or none.
    #[inline]
    pub fn row_bytes(&self, number: u64, stream_bytes: u64) -> Result<u64, &'static str> {
        if number == 0 {
            return Ok(stream_bytes);
        }
        let bytes = self.row_bytes.get(number as usize - 1).filter(|_| stream_bytes == 0);
        bytes.copied().ok_or("a row of a template that the block does not have")
    }

    /// Counts the values that rows of these templates have.
    fn count(&mut self, numbers: &[u64]) {
        self.pieces.iter_mut().for_each(|piece| (piece.count, piece.next) = (0, 0));
        for number in numbers.iter().filter(|number| **number > 0) {
            for piece in &self.templates.templates[*number as usize - 1].pieces {
                self.pieces[usize::from(*piece)].count += 1;
            }
        }
    }

    /// Reads the values of the rows of a vector, whose templates are these.
    pub fn read_vector(&mut self, numbers: &[u64]) -> Result<(), BlockFault> {
        if self.is_empty() {
            return Ok(());
        }
        self.count(numbers);
        for piece in &mut self.pieces {
            for (word, values) in piece.words.iter_mut().enumerate() {
                values.resize(piece.count, 0);
                self.columns[piece.first_column + word].next(values, PredictorValues::default())?;
            }
        }
        Ok(())
    }

    /// Passes over the values of the rows of a vector.
    pub fn skip_vector(&mut self, numbers: &[u64]) -> Result<(), BlockFault> {
        if self.is_empty() {
            return Ok(());
        }
        self.count(numbers);
        for piece in &self.pieces {
            for word in 0..piece.words.len() {
                self.columns[piece.first_column + word].skip_values(piece.count, &[])?;
            }
        }
        Ok(())
    }

    /// Makes `out` the bytes of the next row, which has this template.
    pub fn write_row(&mut self, number: u64, out: &mut Vec<u8>) {
        let template = &self.templates.templates[number as usize - 1];
        out.clear();
        out.extend_from_slice(&template.prefix);
        for index in &template.pieces {
            let (piece, values) =
                (&self.templates.pieces[usize::from(*index)], &mut self.pieces[usize::from(*index)]);
            out.extend_from_slice(&piece.head);
            for (word, word_bytes) in values.words.iter().zip(piece.word_bytes()) {
                out.extend_from_slice(&word[values.next].to_le_bytes()[..word_bytes]);
            }
            values.next += 1;
        }
    }

    /// Checks that the columns are those that the definitions have.
    pub fn check(&self) -> Result<(), BlockFault> {
        let widths = self.templates.pieces.iter().flat_map(|piece| piece.word_bytes());
        let is_sound = self.columns.len() == self.pieces.iter().map(|piece| piece.words.len()).sum::<usize>()
            && self.columns.iter().zip(widths).all(|(column, width)| {
                usize::from(column.value_bytes) == width && !column.chunk.is_predicted()
            });
        let reason = "columns that the fields of the templates do not have";
        if is_sound { Ok(()) } else { Err(BlockFault { offset: START, reason }) }
    }
}
