//! The types of columns, and how large a batch is.

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;
use unitape_model::{ClassSet, ColumnForm, RowColumn, RowSchema};

/// The type of prices; sizes follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriceType {
    /// `decimal(19,9)`, exact. Sizes have their [`SizeType`], amounts are `decimal(38,18)`.
    #[default]
    Decimal,
    /// `int64` in units of 1e-9, exact. Sizes too; amounts stay decimals.
    Fixed,
    /// `float64`, rounded to the nearest. Sizes and amounts too.
    Float,
}

/// The type of sizes beside decimal prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeType {
    /// `decimal(18,8)`: a price times a size still fits what consumers compute with.
    #[default]
    Narrow,
    /// `decimal(38,18)`.
    Wide,
}

/// The action for a size that does not fit its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MisfitAction {
    /// The row is refused with an error that names the option that helps.
    #[default]
    Refuse,
    /// The size is null, and counted.
    Null,
}

/// The types and the size of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// The type of prices.
    pub prices: PriceType,
    /// The type of sizes.
    pub sizes: SizeType,
    /// The action for a size that does not fit.
    pub misfit: MisfitAction,
    /// The classes whose columns there are.
    pub classes: ClassSet,
    /// Rows of a batch at most, at least 1. Long texts end it earlier.
    pub rows: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            prices: PriceType::default(),
            sizes: SizeType::default(),
            misfit: MisfitAction::default(),
            classes: ClassSet::default(),
            rows: 1 << 16,
        }
    }
}

impl BatchOptions {
    /// Returns the Arrow schema of a schema's rows.
    pub fn arrow_schema(&self, schema: RowSchema) -> SchemaRef {
        let field = |column: &RowColumn| {
            Field::new(column.name, self.data_type(schema, column), column.is_nullable())
        };
        Arc::new(Schema::new(schema.columns_with(self.classes).iter().map(field).collect::<Vec<_>>()))
    }

    /// Returns the Arrow type of a column.
    fn data_type(&self, schema: RowSchema, column: &RowColumn) -> DataType {
        match column.form {
            ColumnForm::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            ColumnForm::Number => match column.name {
                "publisher_id" => DataType::UInt16,
                "instrument_id" => DataType::UInt32,
                _ => DataType::UInt64,
            },
            ColumnForm::Price => match self.prices {
                PriceType::Decimal => PRICE_DECIMAL,
                PriceType::Fixed => DataType::Int64,
                PriceType::Float => DataType::Float64,
            },
            ColumnForm::Size => match (self.prices, self.sizes) {
                (PriceType::Fixed, _) => DataType::Int64,
                (PriceType::Float, _) => DataType::Float64,
                (PriceType::Decimal, SizeType::Narrow) => NARROW_DECIMAL,
                (PriceType::Decimal, SizeType::Wide) => WIDE_DECIMAL,
            },
            ColumnForm::Amount => match self.prices {
                PriceType::Float => DataType::Float64,
                PriceType::Decimal | PriceType::Fixed => WIDE_DECIMAL,
            },
            ColumnForm::Date => DataType::Date32,
            ColumnForm::Bool => DataType::Boolean,
            ColumnForm::Text if is_code(schema, column) => dictionary(DataType::Int8),
            ColumnForm::Text => match column.name {
                "symbol" | "venue" | "bid_venue" | "ask_venue" => dictionary(DataType::Int32),
                // Texts that differ from row to row, or as often as a feed likes.
                _ => DataType::Utf8,
            },
            ColumnForm::Json => DataType::Utf8,
        }
    }
}

/// Returns a schema with keys and values that describe where its rows are from.
pub fn describe_schema(schema: &SchemaRef, metadata: &[(String, String)]) -> SchemaRef {
    Arc::new(schema.as_ref().clone().with_metadata(metadata.iter().cloned().collect()))
}

/// Returns whether the texts of a column are codes from a short list.
pub(crate) fn is_code(schema: RowSchema, column: &RowColumn) -> bool {
    match schema {
        RowSchema::Mbo | RowSchema::Trades => matches!(column.name, "action" | "side" | "trade_flags"),
        _ => column.name == "kind",
    }
}

fn dictionary(keys: DataType) -> DataType {
    DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8))
}

/// The type of exact prices: the digits of 64 bits, nine of them after the point.
pub(crate) const PRICE_DECIMAL: DataType = DataType::Decimal128(19, 9);
/// The type of narrow sizes.
pub(crate) const NARROW_DECIMAL: DataType = DataType::Decimal128(18, 8);
/// The type of wide sizes.
pub(crate) const WIDE_DECIMAL: DataType = DataType::Decimal128(38, 18);
