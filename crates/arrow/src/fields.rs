//! Columns that are filled with the values of rows, whatever the schema.

use crate::batch::{SIDES, SizeScaler};
use crate::columns::{CodeColumn, FixedColumn, PriceColumn, ScaledSize, SizeColumn, TextColumn};
use crate::options::is_code;
use crate::{BatchOptions, Error};
use arrow_array::ArrayRef;
use arrow_array::builder::BooleanBuilder;
use arrow_array::types::{Date32Type, TimestampNanosecondType, UInt64Type};
use std::sync::Arc;
use unitape_model::{ColumnForm, ColumnValue, EventRow, RowColumn, RowSchema};

/// Columns of a schema, one beside the other.
#[derive(Debug)]
pub struct FieldColumns(Vec<FieldColumn>);

/// A column, and the values that were added to it.
#[derive(Debug)]
struct FieldColumn {
    column: RowColumn,
    values: FieldValues,
    /// The size or amount of the row that is being added.
    pending: Option<ScaledSize>,
}

#[derive(Debug)]
enum FieldValues {
    Time(FixedColumn<i64>),
    Number(FixedColumn<u64>),
    Price(PriceColumn),
    /// Sizes and amounts.
    Size(SizeColumn),
    Date(FixedColumn<i32>),
    Bool(BooleanBuilder),
    Code(Vec<&'static str>, CodeColumn),
    Text(TextColumn),
}

impl FieldColumns {
    /// Makes columns without values.
    pub fn new(columns: &[RowColumn], schema: RowSchema, options: &BatchOptions) -> Self {
        let rows = options.rows;
        let values = |column: &RowColumn| match column.form {
            ColumnForm::Time => FieldValues::Time(FixedColumn::new(rows)),
            ColumnForm::Number => FieldValues::Number(FixedColumn::new(rows)),
            ColumnForm::Price => FieldValues::Price(PriceColumn::new(options)),
            ColumnForm::Size => FieldValues::Size(SizeColumn::new(options)),
            ColumnForm::Amount => FieldValues::Size(SizeColumn::of_amounts(options)),
            ColumnForm::Date => FieldValues::Date(FixedColumn::new(rows)),
            ColumnForm::Bool => FieldValues::Bool(BooleanBuilder::with_capacity(rows)),
            ColumnForm::Text if is_code(schema, column) => {
                let words = code_words(schema, column);
                let texts: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
                FieldValues::Code(words, CodeColumn::new(texts, rows))
            }
            ColumnForm::Text | ColumnForm::Json => FieldValues::Text(TextColumn::new(rows)),
        };
        let field =
            |column: &RowColumn| FieldColumn { column: *column, values: values(column), pending: None };
        Self(columns.iter().map(field).collect())
    }

    /// Returns the bytes of the texts.
    pub fn text_bytes(&self) -> usize {
        let bytes = |field: &FieldColumn| match &field.values {
            FieldValues::Text(column) => column.text_bytes(),
            _ => 0,
        };
        self.0.iter().map(bytes).sum()
    }

    /// Scales the sizes and amounts of a row, and adds nothing yet.
    ///
    /// # Errors
    /// Fails if one does not fit and is not to be null.
    pub fn scale(&mut self, row: &EventRow<'_>, scaler: &mut SizeScaler) -> Result<(), Error> {
        for FieldColumn { column, values, pending } in &mut self.0 {
            let FieldValues::Size(sizes) = values else { continue };
            *pending = match row.value(column) {
                Some(ColumnValue::Size(size)) => match sizes.scale(size) {
                    Some(scaled) => Some(scaled),
                    None => scaler.meet_misfit(column.name, sizes, &size)?,
                },
                Some(ColumnValue::Amount(amount)) => match sizes.scale_amount(amount) {
                    Some(scaled) => Some(scaled),
                    None => scaler.meet_misfit(column.name, sizes, &amount)?,
                },
                _ => None,
            };
        }
        Ok(())
    }

    /// Adds a row, after [`FieldColumns::scale`] of it.
    pub fn push(&mut self, row: &EventRow<'_>) {
        for FieldColumn { column, values, pending } in &mut self.0 {
            if let FieldValues::Size(sizes) = values {
                sizes.push(pending.take());
                continue;
            }
            match (values, row.value(column)) {
                (FieldValues::Time(times), Some(ColumnValue::Time(time))) => times.push(Some(time.0)),
                (FieldValues::Time(times), _) => times.push(None),
                (FieldValues::Number(numbers), Some(ColumnValue::Number(number))) => {
                    numbers.push(Some(number));
                }
                (FieldValues::Number(numbers), _) => numbers.push(None),
                (FieldValues::Price(prices), Some(ColumnValue::Price(price))) => prices.push(Some(price)),
                (FieldValues::Price(prices), _) => prices.push(None),
                (FieldValues::Date(dates), Some(ColumnValue::Date(date))) => dates.push(Some(date.days())),
                (FieldValues::Date(dates), _) => dates.push(None),
                (FieldValues::Bool(flags), Some(ColumnValue::Bool(is_true))) => flags.append_value(is_true),
                (FieldValues::Bool(flags), _) => flags.append_null(),
                (FieldValues::Code(words, codes), Some(ColumnValue::Text(text))) => {
                    codes.push(words.iter().position(|word| **word == *text).map(|i| i as i8));
                }
                (FieldValues::Code(_, codes), _) => codes.push(None),
                (FieldValues::Text(texts), Some(ColumnValue::Text(text) | ColumnValue::Json(text))) => {
                    texts.push(Some(&text));
                }
                (FieldValues::Text(texts), _) => texts.push(None),
                (FieldValues::Size(_), _) => unreachable!("pushed above"),
            }
        }
    }

    /// Returns the columns as arrays, and leaves them empty.
    pub fn finish(&mut self) -> Result<Vec<ArrayRef>, Error> {
        let array = |field: &mut FieldColumn| -> Result<ArrayRef, Error> {
            Ok(match &mut field.values {
                FieldValues::Time(times) => {
                    Arc::new(times.finish::<TimestampNanosecondType>().with_timezone("UTC"))
                }
                FieldValues::Number(numbers) => Arc::new(numbers.finish::<UInt64Type>()),
                FieldValues::Price(prices) => prices.finish(),
                FieldValues::Size(sizes) => sizes.finish(),
                FieldValues::Date(dates) => Arc::new(dates.finish::<Date32Type>()),
                FieldValues::Bool(flags) => Arc::new(flags.finish()),
                FieldValues::Code(_, codes) => codes.finish()?,
                FieldValues::Text(texts) => texts.finish(),
            })
        };
        self.0.iter_mut().map(array).collect()
    }
}

/// Returns the words of a column of codes.
fn code_words(schema: RowSchema, column: &RowColumn) -> Vec<&'static str> {
    match column.name {
        "action" => ORDER_ACTIONS.to_vec(),
        "side" => SIDES.to_vec(),
        _ => schema.kinds().iter().map(|kind| kind.name()).collect(),
    }
}

/// The actions of orders.
const ORDER_ACTIONS: [&str; 5] = ["A", "M", "C", "T", "F"];
