//! Reads Parquet files and IPC streams back, cell by cell, to hold what is written against the rows that it is written from.

use crate::Error;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int8Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use unitape_model::{Amount, CivilDate};

/// The content of a file or stream.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenRows {
    /// The Arrow schema.
    pub schema: SchemaRef,
    /// Keys and values of a Parquet file's footer.
    pub metadata: BTreeMap<String, String>,
    /// Rows of each row group, or of each batch of a stream.
    pub group_rows: Vec<usize>,
    /// The cells of each row, as the digits and texts that JSON has; `None` for null.
    pub rows: Vec<Vec<Option<String>>>,
}

impl WrittenRows {
    /// Returns the names of the columns.
    pub fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn add_batch(&mut self, batch: &RecordBatch) {
        let cells = |row| batch.columns().iter().map(|column| cell(column, row)).collect();
        self.rows.extend((0..batch.num_rows()).map(cells));
    }
}

/// Reads a Parquet file.
///
/// # Errors
/// Fails if it cannot be read or is no Parquet file.
pub fn read_parquet(path: &Path) -> Result<WrittenRows, Error> {
    let file = File::open(path).map_err(parquet::errors::ParquetError::from)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let footer = builder.metadata();
    let entries = footer.file_metadata().key_value_metadata().into_iter().flatten();
    let mut written = WrittenRows {
        schema: builder.schema().clone(),
        metadata: entries.map(|entry| (entry.key.clone(), entry.value.clone().unwrap_or_default())).collect(),
        group_rows: group_rows(&builder),
        rows: Vec::new(),
    };
    for batch in builder.build()? {
        written.add_batch(&batch?);
    }
    Ok(written)
}

/// Reads the rows of each row group from the footer of a Parquet file.
///
/// # Errors
/// Fails if it cannot be read or is no Parquet file.
pub fn read_row_groups(path: &Path) -> Result<Vec<usize>, Error> {
    let file = File::open(path).map_err(parquet::errors::ParquetError::from)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    Ok(group_rows(&builder))
}

fn group_rows(builder: &ParquetRecordBatchReaderBuilder<File>) -> Vec<usize> {
    builder.metadata().row_groups().iter().map(|group| group.num_rows() as usize).collect()
}

/// Reads an IPC stream.
///
/// # Errors
/// Fails if it is no whole stream.
pub fn read_ipc(bytes: &[u8]) -> Result<WrittenRows, Error> {
    let reader = StreamReader::try_new(bytes, None)?;
    let (schema, metadata) = (reader.schema(), reader.schema().metadata().clone().into_iter().collect());
    let mut written = WrittenRows { schema, metadata, group_rows: Vec::new(), rows: Vec::new() };
    for batch in reader {
        let batch = batch?;
        written.group_rows.push(batch.num_rows());
        written.add_batch(&batch);
    }
    Ok(written)
}

/// Returns the value of a cell as JSON has it, without quotes.
fn cell(array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Timestamp(..) => array.as_primitive::<TimestampNanosecondType>().value(row).to_string(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Decimal128(_, places) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            Amount::new(value, -places).expect("up to 38 digits").to_string()
        }
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Date32 => CivilDate::from_days(array.as_primitive::<Date32Type>().value(row)).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Dictionary(keys, _) if **keys == DataType::Int8 => {
            let array = array.as_dictionary::<Int8Type>().downcast_dict::<StringArray>().expect("texts");
            array.values().value(array.keys().value(row) as usize).to_owned()
        }
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>().downcast_dict::<StringArray>().expect("texts");
            array.values().value(array.keys().value(row) as usize).to_owned()
        }
        other => panic!("a column of type {other}"),
    })
}
