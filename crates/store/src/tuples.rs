//! Finds cells whose values go together, as the parties of an order do.

use std::hash::Hasher as _;

use rustc_hash::{FxHashMap, FxHasher};
use unitape_model::FieldClass;

use crate::bits::{packed_bytes, width_of};
use crate::cells::FrameCell;
use crate::column::{ROWS_MAX, VECTOR};

/// Finds tuples; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct TupleFinder {
    /// The cells of the tuples, by their index.
    members: Vec<usize>,
    /// The tuple of each row, and the first row of each tuple.
    numbers: Vec<u64>,
    first_rows: Vec<u32>,
    /// Number by hash.
    tuples: FxHashMap<u64, u32>,
}

impl TupleFinder {
    /// Finds the cells of a layout that are smaller as tuples. `matrix` has their values, `rows` of each cell. They are cells of
    /// identity data, because a reader of tuples reads all of them.
    pub fn find(&mut self, cells: &[FrameCell], matrix: &[u64], rows: usize) {
        self.members.clear();
        if rows < VECTOR {
            return;
        }
        let mut single_bits = 0;
        let is_identity = |(_, cell): &(usize, &FrameCell)| cell.class == FieldClass::Identity;
        for (index, _) in cells.iter().enumerate().filter(is_identity) {
            let column = &matrix[index * rows..][..rows];
            let is_found =
                self.number(rows, |row, hasher| hasher.write_u64(column[row]), |a, b| column[a] == column[b]);
            if is_found && (2..=rows / 8).contains(&self.first_rows.len()) {
                self.members.push(index);
                single_bits += width_of(self.first_rows.len() as u64 - 1);
            }
        }
        let members = std::mem::take(&mut self.members);
        let is_found = self.number(
            rows,
            |row, hasher| members.iter().for_each(|index| hasher.write_u64(matrix[index * rows + row])),
            |a, b| members.iter().all(|index| matrix[index * rows + a] == matrix[index * rows + b]),
        );
        let count = self.first_rows.len();
        let bits = width_of(count as u64 - 1) + 1;
        // The values of a tuple as they are, at most four bytes each in nearly all cases.
        let is_smaller =
            packed_bytes(rows, bits) + count * 4 * members.len() < packed_bytes(rows, single_bits);
        self.members = members;
        if !(is_found && self.members.len() > 1 && count <= ROWS_MAX && is_smaller) {
            self.members.clear();
        }
    }

    /// Finds none.
    pub fn clear(&mut self) {
        self.members.clear();
    }

    /// Returns the indexes of the cells that are smaller as tuples.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// Returns the number of each row's tuple.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Returns the first row of each tuple.
    pub fn first_rows(&self) -> &[u32] {
        &self.first_rows
    }

    /// Numbers the rows by their values, in the order in which they first come. Returns false if two have one hash, or if there
    /// are too many.
    fn number(
        &mut self,
        rows: usize,
        write: impl Fn(usize, &mut FxHasher),
        are_equal: impl Fn(usize, usize) -> bool,
    ) -> bool {
        self.tuples.clear();
        self.numbers.clear();
        self.first_rows.clear();
        for row in 0..rows {
            if row > 0 && are_equal(row - 1, row) {
                self.numbers.push(self.numbers[row - 1]);
                continue;
            }
            let mut hasher = FxHasher::default();
            write(row, &mut hasher);
            let next = self.first_rows.len() as u32;
            let number = *self.tuples.entry(hasher.finish()).or_insert(next);
            if number == next {
                self.first_rows.push(row as u32);
                if self.first_rows.len() > rows / 4 {
                    return false;
                }
            } else if !are_equal(self.first_rows[number as usize] as usize, row) {
                return false;
            }
            self.numbers.push(number.into());
        }
        true
    }
}
