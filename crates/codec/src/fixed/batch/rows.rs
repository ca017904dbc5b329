//! Where the records of a batch are: anywhere, or all at one distance, as a file of one kind of record has them.
//! The second needs no look at each record's place, and all of it is held against the bytes once.

use std::marker::PhantomData;

/// The records of a batch.
pub trait RecordBatch<'b>: Copy {
    /// Returns the number of records.
    fn count(self) -> usize;

    /// Returns the `N` bytes of each record that begin `offset` bytes after its start.
    ///
    /// # Panics
    /// Panics if a record lacks these bytes.
    fn column<const N: usize>(self, offset: usize) -> impl ByteColumnIter<'b, N>;

    /// Returns the `length` bytes of each record that begin `offset` bytes after its start.
    ///
    /// # Panics
    /// Panics if a record lacks these bytes.
    fn texts(self, offset: usize, length: usize) -> impl ExactSizeIterator<Item = &'b [u8]>;
}

/// A column of some bytes, record by record.
pub trait ByteColumnIter<'b, const N: usize>: ExactSizeIterator<Item = &'b [u8; N]> {
    /// Returns the bytes of the next four records; `None` if fewer remain.
    fn four(&mut self) -> Option<[&'b [u8; N]; 4]>;
}

/// Records that start anywhere.
#[derive(Clone, Copy, Debug)]
pub struct ScatteredRecords<'b> {
    /// All of them.
    pub bytes: &'b [u8],
    /// Where each starts.
    pub starts: &'b [u32],
}

/// Records one after the other, all of one length.
///
/// Invariant: there is at least one, `stride` is not 0, and `bytes` holds `reach` bytes from the start of each.
#[derive(Clone, Copy, Debug)]
pub struct StridedRecords<'b> {
    /// From the first record on.
    bytes: &'b [u8],
    stride: usize,
    count: usize,
    readable_bytes: usize,
}

impl<'b> StridedRecords<'b> {
    /// Makes a batch of `count` records from `start` on, `stride` bytes apart, with `reach` readable bytes from the
    /// start of each. Leaves out records at the end with fewer bytes. Returns `None` if no record remains.
    #[must_use]
    pub fn new(bytes: &'b [u8], start: usize, stride: usize, count: usize, reach: usize) -> Option<Self> {
        let bytes = bytes.get(start..)?;
        let room = bytes.len().checked_sub(reach)?.checked_div(stride)? + 1;
        let count = count.min(room);
        (count > 0).then_some(Self { bytes, stride, count, readable_bytes: reach })
    }

    /// Returns the distance between the starts of two records, in bytes.
    #[must_use]
    pub fn stride(self) -> usize {
        self.stride
    }

    /// Returns how many bytes may be read from the start of each record.
    #[must_use]
    pub fn reach(self) -> usize {
        self.readable_bytes
    }

    #[inline(always)]
    fn steps(self, offset: usize, length: usize) -> StrideIter<'b> {
        assert!(
            offset.checked_add(length).is_some_and(|end| end <= self.readable_bytes),
            "a column beyond its record"
        );
        StrideIter {
            next_byte: self.bytes[offset..].as_ptr(),
            stride: self.stride,
            records_left: self.count,
            bytes: PhantomData,
        }
    }
}

/// Goes over a column of even records.
///
/// Invariant: as many bytes as its maker asked for are there at `next` and at each of the `left - 1` places after it,
/// `stride` bytes apart. [`StridedRecords::steps`], its only maker, sees to it, and `next` never passes the last of them.
struct StrideIter<'b> {
    next_byte: *const u8,
    stride: usize,
    records_left: usize,
    bytes: PhantomData<&'b [u8]>,
}

impl StrideIter<'_> {
    #[inline(always)]
    fn next_record(&mut self, records: usize) -> *const u8 {
        let current = self.next_byte;
        self.records_left -= records;
        // Behind the last it points nowhere, and is not read.
        self.next_byte = current.wrapping_add(records * self.stride);
        current
    }
}

/// A column of `N` bytes of even records.
struct StridedColumnIter<'b, const N: usize>(StrideIter<'b>);

impl<'b, const N: usize> Iterator for StridedColumnIter<'b, N> {
    type Item = &'b [u8; N];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.records_left == 0 {
            return None;
        }
        // SAFETY: one is left, so by the invariant of `StrideIter`, which was made for N bytes, they are there for as long as
        // the bytes are lent.
        Some(unsafe { &*self.0.next_record(1).cast() })
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.records_left, Some(self.0.records_left))
    }
}

impl<const N: usize> ExactSizeIterator for StridedColumnIter<'_, N> {}

impl<'b, const N: usize> ByteColumnIter<'b, N> for StridedColumnIter<'b, N> {
    #[inline(always)]
    fn four(&mut self) -> Option<[&'b [u8; N]; 4]> {
        if self.0.records_left < 4 {
            return None;
        }
        let (first, stride) = (self.0.next_byte, self.0.stride);
        self.0.next_record(4);
        // SAFETY: four are left, so by the invariant of `StrideIter`, which was made for N bytes, they are there at each of
        // these places for as long as the bytes are lent.
        Some([0, 1, 2, 3].map(|i| unsafe { &*first.add(i * stride).cast() }))
    }
}

/// A column of even records.
struct StridedTextIter<'b> {
    steps: StrideIter<'b>,
    length: usize,
}

impl<'b> Iterator for StridedTextIter<'b> {
    type Item = &'b [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.steps.records_left == 0 {
            return None;
        }
        // SAFETY: one is left, so by the invariant of `StrideIter`, which was made for `length` bytes, they are there for as
        // long as the bytes are lent.
        Some(unsafe { std::slice::from_raw_parts(self.steps.next_record(1), self.length) })
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.steps.records_left, Some(self.steps.records_left))
    }
}

impl ExactSizeIterator for StridedTextIter<'_> {}

impl<'b> RecordBatch<'b> for StridedRecords<'b> {
    #[inline(always)]
    fn count(self) -> usize {
        self.count
    }

    #[inline(always)]
    fn column<const N: usize>(self, offset: usize) -> impl ByteColumnIter<'b, N> {
        StridedColumnIter(self.steps(offset, N))
    }

    #[inline(always)]
    fn texts(self, offset: usize, length: usize) -> impl ExactSizeIterator<Item = &'b [u8]> {
        StridedTextIter { steps: self.steps(offset, length), length }
    }
}

/// A column of records that start anywhere.
struct ScatteredColumnIter<'b, const N: usize> {
    bytes: &'b [u8],
    starts: std::slice::Iter<'b, u32>,
    offset: usize,
}

impl<'b, const N: usize> Iterator for ScatteredColumnIter<'b, N> {
    type Item = &'b [u8; N];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let column_start = *self.starts.next()? as usize + self.offset;
        Some(self.bytes[column_start..].first_chunk().expect("the whole record"))
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.starts.size_hint()
    }
}

impl<const N: usize> ExactSizeIterator for ScatteredColumnIter<'_, N> {}

impl<'b, const N: usize> ByteColumnIter<'b, N> for ScatteredColumnIter<'b, N> {
    #[inline(always)]
    fn four(&mut self) -> Option<[&'b [u8; N]; 4]> {
        if self.starts.len() < 4 {
            return None;
        }
        Some([self.next()?, self.next()?, self.next()?, self.next()?])
    }
}

impl<'b> RecordBatch<'b> for ScatteredRecords<'b> {
    #[inline(always)]
    fn count(self) -> usize {
        self.starts.len()
    }

    #[inline(always)]
    fn column<const N: usize>(self, offset: usize) -> impl ByteColumnIter<'b, N> {
        ScatteredColumnIter { bytes: self.bytes, starts: self.starts.iter(), offset }
    }

    #[inline(always)]
    fn texts(self, offset: usize, length: usize) -> impl ExactSizeIterator<Item = &'b [u8]> {
        let bytes = self.bytes;
        self.starts.iter().map(move |start| &bytes[*start as usize + offset..][..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Guards against a step too far, which reads absent bytes: the offsets of even records are computed in two
        /// ways.
        #[test]
        fn even_records_are_where_they_are_listed(
            bytes in 0usize..300,
            at in 0usize..40,
            stride in 0usize..50,
            count in 0usize..70,
            column in 0usize..30,
            reach in 0usize..60,
        ) {
            let bytes: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
            let Some(even) = StridedRecords::new(&bytes, at, stride, count, reach) else {
                prop_assert!(stride == 0 || count == 0 || at + reach > bytes.len());
                return Ok(());
            };
            let fits = |i: &usize| at + i * stride + reach <= bytes.len();
            let starts: Vec<u32> = (0..count).take_while(fits).map(|i| (at + i * stride) as u32).collect();
            let listed = ScatteredRecords { bytes: &bytes, starts: &starts };
            prop_assert_eq!(even.count(), starts.len());
            if column + 8 <= reach {
                prop_assert!(even.column::<8>(column).eq(listed.column::<8>(column)));
                prop_assert!(even.texts(column, 5).eq(listed.texts(column, 5)));
                let (mut fours, mut listed_fours) = (even.column::<8>(column), listed.column::<8>(column));
                loop {
                    let (four, listed_four) = (fours.four(), listed_fours.four());
                    prop_assert_eq!(four, listed_four);
                    if four.is_none() {
                        break;
                    }
                }
                prop_assert!(fours.len() < 4 && fours.eq(listed_fours));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a column beyond its record")]
    fn a_column_stays_within_its_reach() {
        let even = StridedRecords::new(&[0; 100], 0, 10, 5, 12).unwrap();
        _ = even.column::<8>(5);
    }
}
