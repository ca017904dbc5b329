//! Columns that are being built, one value a row.

use crate::Error;
use crate::options::{BatchOptions, NARROW_DECIMAL, PRICE_DECIMAL, PriceType, SizeType, WIDE_DECIMAL};
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int8Array, Int32Array, Int64Array,
    PrimitiveArray, StringArray,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use std::sync::Arc;
use unitape_model::{Amount, Decimal, Dictionary, NameKind, Price};

/// Values of fixed width, of which some may be null.
#[derive(Debug)]
pub struct FixedColumn<T> {
    values: Vec<T>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowNativeType> FixedColumn<T> {
    pub fn new(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), nulls: NullBufferBuilder::new(rows) }
    }

    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        match value {
            Some(_) => self.nulls.append_non_null(),
            None => self.nulls.append_null(),
        }
        self.values.push(value.unwrap_or_default());
    }

    /// Appends `n` nulls.
    fn push_nulls(&mut self, n: usize) {
        // Zero nulls would allocate a buffer.
        if n == 0 {
            return;
        }
        self.nulls.append_n_nulls(n);
        self.values.resize(self.values.len() + n, T::default());
    }

    /// Returns the values, and leaves the column empty.
    fn take_values(&mut self) -> (Vec<T>, Option<NullBuffer>) {
        let empty = Vec::with_capacity(self.values.len());
        (std::mem::replace(&mut self.values, empty), self.nulls.finish())
    }

    /// Returns the values as an array, and leaves the column empty.
    pub fn finish<P: ArrowPrimitiveType<Native = T>>(&mut self) -> PrimitiveArray<P> {
        let (values, nulls) = self.take_values();
        PrimitiveArray::new(ScalarBuffer::from(values), nulls)
    }
}

/// Prices of one type.
#[derive(Debug)]
pub struct PriceColumn {
    price_type: PriceType,
    prices: FixedColumn<i64>,
}

impl PriceColumn {
    pub fn new(options: &BatchOptions) -> Self {
        Self { price_type: options.prices, prices: FixedColumn::new(options.rows) }
    }

    #[inline]
    pub fn push(&mut self, price: Option<Price>) {
        self.prices.push(price.map(|price| price.0));
    }

    pub fn finish(&mut self) -> ArrayRef {
        let (prices, nulls) = self.prices.take_values();
        match self.price_type {
            PriceType::Decimal => {
                decimal_array(prices.iter().map(|price| i128::from(*price)), nulls, &PRICE_DECIMAL)
            }
            PriceType::Fixed => Arc::new(Int64Array::new(prices.into(), nulls)),
            PriceType::Float => {
                let floats: Vec<f64> = prices.iter().map(|price| price_float(Price(*price))).collect();
                Arc::new(Float64Array::new(floats.into(), nulls))
            }
        }
    }
}

/// A size as its column holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaledSize {
    /// In units of the column.
    Narrow(i64),
    /// In units of 1e-18.
    Wide(i128),
    /// The nearest float.
    Float(f64),
}

/// Sizes of one type.
#[derive(Debug)]
pub enum SizeColumn {
    /// `decimal(18,8)`.
    Narrow(FixedColumn<i64>),
    /// `decimal(38,18)`.
    Wide(FixedColumn<i128>),
    /// `int64` in 1e-9.
    Fixed(FixedColumn<i64>),
    /// `float64`.
    Float(FixedColumn<f64>),
}

impl SizeColumn {
    pub fn new(options: &BatchOptions) -> Self {
        let rows = options.rows;
        match (options.prices, options.sizes) {
            (PriceType::Fixed, _) => Self::Fixed(FixedColumn::new(rows)),
            (PriceType::Float, _) => Self::Float(FixedColumn::new(rows)),
            (PriceType::Decimal, SizeType::Narrow) => Self::Narrow(FixedColumn::new(rows)),
            (PriceType::Decimal, SizeType::Wide) => Self::Wide(FixedColumn::new(rows)),
        }
    }

    /// Makes a column of amounts: wide, or floats beside prices as floats.
    pub fn of_amounts(options: &BatchOptions) -> Self {
        match options.prices {
            PriceType::Float => Self::Float(FixedColumn::new(options.rows)),
            PriceType::Decimal | PriceType::Fixed => Self::Wide(FixedColumn::new(options.rows)),
        }
    }

    /// Returns the amount in the form of this column of amounts, or `None` if it does not fit.
    pub fn scale_amount(&self, amount: Amount) -> Option<ScaledSize> {
        if matches!(self, Self::Float(_)) {
            return Some(ScaledSize::Float(nearest_float(&amount)));
        }
        let canonical = Amount::new(amount.mantissa(), amount.exponent()).unwrap_or(amount);
        canonical.scaled(18).filter(|scaled| scaled.unsigned_abs() < WIDE_LIMIT).map(ScaledSize::Wide)
    }

    /// Returns the size in the form of this column, or `None` if it does not fit.
    #[inline]
    pub fn scale(&self, size: Decimal) -> Option<ScaledSize> {
        match self {
            Self::Narrow(_) => scale_to_i64(size, 8)
                .filter(|scaled| scaled.unsigned_abs() < NARROW_LIMIT)
                .map(ScaledSize::Narrow),
            Self::Fixed(_) => scale_to_i64(size, 9).map(ScaledSize::Narrow),
            Self::Wide(_) => canonical_size(size)
                .scaled(18)
                .filter(|scaled| scaled.unsigned_abs() < WIDE_LIMIT)
                .map(ScaledSize::Wide),
            Self::Float(_) => Some(ScaledSize::Float(size_float(size))),
        }
    }

    /// Appends a size that [`SizeColumn::scale`] of this column has returned.
    #[inline]
    pub fn push(&mut self, size: Option<ScaledSize>) {
        match (self, size) {
            (Self::Narrow(column) | Self::Fixed(column), Some(ScaledSize::Narrow(size))) => {
                column.push(Some(size))
            }
            (Self::Wide(column), Some(ScaledSize::Wide(size))) => column.push(Some(size)),
            (Self::Float(column), Some(ScaledSize::Float(size))) => column.push(Some(size)),
            (Self::Narrow(column) | Self::Fixed(column), _) => column.push(None),
            (Self::Wide(column), _) => column.push(None),
            (Self::Float(column), _) => column.push(None),
        }
    }

    /// Returns the name of the column's type, and the option that helps a size that does not fit it.
    pub fn misfit_words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Narrow(_) => ("decimal(18,8)", "ask for wide sizes, decimal(38,18): size_type=\"wide\""),
            Self::Wide(_) => {
                ("decimal(38,18)", "ask for the prices and sizes as floats: price_type=\"float\"")
            }
            Self::Fixed(_) => ("int64 in 1e-9", "ask for decimals: price_type=\"decimal\""),
            Self::Float(_) => ("float64", "none"),
        }
    }

    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Narrow(column) => {
                let (sizes, nulls) = column.take_values();
                decimal_array(sizes.iter().map(|size| i128::from(*size)), nulls, &NARROW_DECIMAL)
            }
            Self::Wide(column) => {
                let (sizes, nulls) = column.take_values();
                Arc::new(Decimal128Array::new(sizes.into(), nulls).with_data_type(WIDE_DECIMAL))
            }
            Self::Fixed(column) => {
                let (sizes, nulls) = column.take_values();
                Arc::new(Int64Array::new(sizes.into(), nulls))
            }
            Self::Float(column) => {
                let (sizes, nulls) = column.take_values();
                Arc::new(Float64Array::new(sizes.into(), nulls))
            }
        }
    }
}

fn decimal_array(
    values: impl Iterator<Item = i128>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> ArrayRef {
    let values: Vec<i128> = values.collect();
    Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(data_type.clone()))
}

/// Names of a dictionary of the tape, as keys into a dictionary of the stream.
///
/// The stream's dictionary has the names that rows have used so far. It only grows, so a key means the same in all batches.
#[derive(Debug)]
pub struct NameColumn {
    kind: NameKind,
    keys: FixedColumn<i32>,
    /// The key of each id of the tape; −1 where none is known.
    key_of_id: Vec<i32>,
    ends: Vec<i32>,
    name_text: Vec<u8>,
    /// The dictionary as it was last given out.
    last_dictionary: Option<ArrayRef>,
}

impl NameColumn {
    pub fn new(kind: NameKind, rows: usize) -> Self {
        let (key_of_id, text) = (Vec::new(), Vec::new());
        Self {
            kind,
            keys: FixedColumn::new(rows),
            key_of_id,
            ends: vec![0],
            name_text: text,
            last_dictionary: None,
        }
    }

    /// Returns the key of an id; `None` where the id is 0 or has no name.
    ///
    /// # Errors
    /// Fails if the names are too long together.
    #[inline]
    pub fn key(&mut self, id: u32, names: &Dictionary) -> Result<Option<i32>, Error> {
        match self.key_of_id.get(id as usize) {
            Some(&key) if key >= 0 => Ok(Some(key)),
            _ => self.add_name(id, names),
        }
    }

    #[cold]
    fn add_name(&mut self, id: u32, names: &Dictionary) -> Result<Option<i32>, Error> {
        // Ids with a name have no gaps, so the table is no longer than the tape's dictionary.
        let Some(name) = Some(id).filter(|id| *id != 0).and_then(|id| names.name(self.kind, id)) else {
            return Ok(None);
        };
        let text_end = i32::try_from(self.name_text.len() + name.len()).map_err(|_| Error::NamesFull)?;
        let key = i32::try_from(self.ends.len() - 1).map_err(|_| Error::NamesFull)?;
        self.name_text.extend_from_slice(name.as_bytes());
        self.ends.push(text_end);
        self.last_dictionary = None;
        if self.key_of_id.len() <= id as usize {
            self.key_of_id.resize(id as usize + 1, -1);
        }
        self.key_of_id[id as usize] = key;
        Ok(Some(key))
    }

    #[inline]
    pub fn push(&mut self, key: Option<i32>) {
        self.keys.push(key);
    }

    /// Appends `n` nulls.
    pub fn push_nulls(&mut self, n: usize) {
        self.keys.push_nulls(n);
    }

    /// Forgets the ids: after a cut of the tape an id may have another name.
    pub fn forget_ids(&mut self) {
        self.key_of_id.clear();
    }

    pub fn finish(&mut self) -> Result<ArrayRef, Error> {
        let names = self.last_dictionary.get_or_insert_with(|| {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends.clone()));
            Arc::new(StringArray::new(offsets, Buffer::from_slice_ref(&self.name_text), None))
        });
        let keys: Int32Array = self.keys.finish();
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, names.clone())?))
    }
}

/// Codes from a fixed list of words.
#[derive(Debug)]
pub struct CodeColumn {
    keys: FixedColumn<i8>,
    code_words: ArrayRef,
}

impl CodeColumn {
    pub fn new(words: impl IntoIterator<Item = String>, rows: usize) -> Self {
        Self { keys: FixedColumn::new(rows), code_words: Arc::new(StringArray::from_iter_values(words)) }
    }

    #[inline]
    pub fn push(&mut self, key: Option<i8>) {
        self.keys.push(key);
    }

    pub fn finish(&mut self) -> Result<ArrayRef, Error> {
        let keys: Int8Array = self.keys.finish();
        Ok(Arc::new(DictionaryArray::<Int8Type>::try_new(keys, self.code_words.clone())?))
    }
}

/// Texts that differ from row to row.
#[derive(Debug)]
pub struct TextColumn {
    ends: Vec<i32>,
    value_text: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl TextColumn {
    pub fn new(rows: usize) -> Self {
        Self { ends: vec![0], value_text: Vec::new(), nulls: NullBufferBuilder::new(rows) }
    }

    /// Appends a text. The batch ends before its texts are 2 GiB.
    #[inline]
    pub fn push(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.value_text.extend_from_slice(text.as_bytes());
                self.nulls.append_non_null();
            }
            None => self.nulls.append_null(),
        }
        self.ends.push(i32::try_from(self.value_text.len()).expect("a batch of texts below 2 GiB"));
    }

    /// Appends `n` nulls.
    pub fn push_nulls(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        self.nulls.append_n_nulls(n);
        self.ends.resize(self.ends.len() + n, *self.ends.last().expect("the start of the first text"));
    }

    /// Returns the bytes of the texts.
    pub fn text_bytes(&self) -> usize {
        self.value_text.len()
    }

    pub fn finish(&mut self) -> ArrayRef {
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let text = std::mem::take(&mut self.value_text);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        Arc::new(StringArray::new(offsets, Buffer::from_vec(text), self.nulls.finish()))
    }
}

/// Returns a size in units of 10^-places.
#[inline]
fn scale_to_i64(size: Decimal, places: i32) -> Option<i64> {
    let shift = i32::from(size.exponent()) + places;
    match usize::try_from(shift).ok().and_then(|shift| POW10.get(shift)) {
        Some(scale) => size.mantissa().checked_mul(*scale),
        None => scale_uncommon(size, places),
    }
}

/// Scales a size whose parts are not canonical, which only frames that unitape has not written have, and zero.
#[cold]
fn scale_uncommon(size: Decimal, places: i32) -> Option<i64> {
    canonical_size(size).scaled(places as i8).and_then(|scaled| i64::try_from(scaled).ok())
}

fn canonical_size(size: Decimal) -> Decimal {
    Decimal::new(size.mantissa(), size.exponent()).unwrap_or(size)
}

/// Returns the float that is nearest to a price.
#[inline]
fn price_float(price: Price) -> f64 {
    // One division of two exact floats is rounded once.
    if price.0.unsigned_abs() <= FLOAT_EXACT { price.0 as f64 / 1e9 } else { nearest_float(&price) }
}

/// Returns the float that is nearest to a size.
#[inline]
fn size_float(size: Decimal) -> f64 {
    let (mantissa, exponent) = (size.mantissa(), i32::from(size.exponent()));
    match exponent {
        _ if mantissa.unsigned_abs() > FLOAT_EXACT => nearest_float(&size),
        // Powers up to 10^22 are exact.
        0..=22 => mantissa as f64 * 10f64.powi(exponent),
        -22..0 => mantissa as f64 / 10f64.powi(-exponent),
        _ => nearest_float(&size),
    }
}

#[cold]
fn nearest_float(number: &dyn std::fmt::Display) -> f64 {
    number.to_string().parse().expect("a decimal is a float")
}

/// Whole numbers up to here are floats.
const FLOAT_EXACT: u64 = 1 << 53;
const NARROW_LIMIT: u64 = 10u64.pow(18);
const WIDE_LIMIT: u128 = 10u128.pow(38);
const POW10: [i64; 19] = {
    let mut powers = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options(prices: PriceType, sizes: SizeType) -> BatchOptions {
        BatchOptions { prices, sizes, rows: 4, ..BatchOptions::default() }
    }

    fn size(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).unwrap()
    }

    /// A size at the edge that was cut off would be another size.
    #[test]
    fn sizes_fit_exactly_or_not_at_all() {
        let narrow = SizeColumn::new(&options(PriceType::Decimal, SizeType::Narrow));
        let wide = SizeColumn::new(&options(PriceType::Decimal, SizeType::Wide));
        let fixed = SizeColumn::new(&options(PriceType::Fixed, SizeType::Narrow));
        for (text, in_narrow, in_fixed, in_wide) in [
            ("0", true, true, true),
            ("9999999999.99999999", true, false, true),
            ("-9999999999.99999999", true, false, true),
            ("10000000000", false, false, true),
            ("0.00000001", true, true, true),
            ("0.000000001", false, true, true),
            ("0.0000000001", false, false, true),
            ("9223372036.854775807", false, true, true),
            ("-9223372036.854775808", false, true, true),
            ("9223372037", true, false, true),
            ("99990000000000000000", false, false, true),
            ("100000000000000000000", false, false, false),
            ("0.000000000000000001", false, false, true),
            ("0.0000000000000000001", false, false, false),
        ] {
            let fits = [&narrow, &fixed, &wide].map(|column| column.scale(size(text)).is_some());
            assert_eq!(fits, [in_narrow, in_fixed, in_wide], "{text}");
        }
        // A frame of others: ten times 1e-9.
        assert_eq!(narrow.scale(Decimal::from_canonical(10, -9)), Some(ScaledSize::Narrow(1)));
        assert_eq!(narrow.scale(Decimal::from_canonical(0, -30)), Some(ScaledSize::Narrow(0)));
    }

    #[test]
    fn floats_are_the_nearest() {
        for text in ["0.1", "9223372036.854775806", "-0.000000001", "123456789.987654321", "0"] {
            let price = Price::parse(text.as_bytes()).unwrap();
            assert_eq!(price_float(price), text.parse::<f64>().unwrap(), "{text}");
        }
        for text in
            ["9223372036854775807", "0.000000000000000000000000000001", "1000000000000000000000000000000"]
        {
            assert_eq!(size_float(size(text)), text.parse::<f64>().unwrap(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn scaled_sizes_agree_with_the_slow_way(mantissa in any::<i64>(), exponent in -30i8..30) {
            let Ok(value) = Decimal::new(mantissa, exponent) else { return Ok(()) };
            let slow = |places: i8, limit: u128| value.scaled(places).filter(|v| v.unsigned_abs() < limit);
            let narrow = SizeColumn::new(&options(PriceType::Decimal, SizeType::Narrow));
            let expected = slow(8, 10u128.pow(18)).map(|v| ScaledSize::Narrow(v as i64));
            prop_assert_eq!(narrow.scale(value), expected);
            let fixed = SizeColumn::new(&options(PriceType::Fixed, SizeType::Narrow));
            let expected = value.scaled(9).and_then(|v| i64::try_from(v).ok()).map(ScaledSize::Narrow);
            prop_assert_eq!(fixed.scale(value), expected);
            prop_assert_eq!(size_float(value), value.to_string().parse::<f64>().unwrap());
        }

        #[test]
        fn float_prices_agree_with_the_slow_way(price in i64::MIN..i64::MAX) {
            let slow: f64 = Price(price).to_string().parse().unwrap();
            prop_assert_eq!(price_float(Price(price)), slow);
        }
    }
}
