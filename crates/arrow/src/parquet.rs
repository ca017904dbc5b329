//! Batches as a Parquet file.
//!
//! ```text
//!  batch ─▶ columns of the row group, encoded and compressed ─ 1,048,576 rows or 64 MiB ─▶ bytes of the file ─ finish ─▶ footer
//! ```

use crate::Error;
use crate::options::describe_schema;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// Rows of a row group at most.
pub const ROW_GROUP_ROWS_MAX: usize = 1 << 20;
/// Bytes of encoded columns that a row group may take in memory before it is written, without the last batch.
pub const ROW_GROUP_BYTES_MAX: usize = 64 << 20;

/// An encoder of one Parquet file: zstd, statistics for each page, and dictionaries for texts and ids.
///
/// The file keeps the Arrow schema, so that a reader finds the time zone and the dictionaries again.
pub struct ParquetEncoder {
    writer: ArrowWriter<Vec<u8>>,
}

impl std::fmt::Debug for ParquetEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetEncoder")
            .field("rows", &self.writer.in_progress_rows())
            .finish_non_exhaustive()
    }
}

impl ParquetEncoder {
    /// Begins a file of batches with this schema. `metadata` has keys and values for the file's footer and its Arrow schema.
    ///
    /// # Errors
    /// Fails if Parquet has no type for a column.
    pub fn new(schema: &SchemaRef, metadata: &[(String, String)]) -> Result<Self, Error> {
        let properties = writer_properties(schema.fields().iter().map(AsRef::as_ref), metadata)?;
        let schema = describe_schema(schema, metadata);
        Ok(Self { writer: ArrowWriter::try_new(Vec::new(), schema, Some(properties))? })
    }

    /// Encodes a batch, and writes the row group if it is large enough.
    ///
    /// # Errors
    /// Fails if the batch has another schema.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.writer.write(batch)?;
        if self.writer.memory_size() >= ROW_GROUP_BYTES_MAX {
            self.end_row_group()?;
        }
        Ok(())
    }

    /// Ends the row group. Does nothing if it has no row.
    ///
    /// # Errors
    /// Fails if a column cannot be compressed.
    pub fn end_row_group(&mut self) -> Result<(), Error> {
        Ok(self.writer.flush()?)
    }

    /// Returns the bytes of memory that the row group takes which is not written yet.
    pub fn memory_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    /// Encodes the last row group and the footer.
    ///
    /// # Errors
    /// Fails if the file has ended.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.writer.finish()?;
        Ok(self.writer.sync().map_err(parquet::errors::ParquetError::from)?)
    }

    /// Returns the bytes since the last call.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.inner_mut())
    }
}

fn writer_properties<'f>(
    fields: impl Iterator<Item = &'f Field>,
    metadata: &[(String, String)],
) -> Result<WriterProperties, Error> {
    let entries = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS_MAX))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_key_value_metadata(Some(entries));
    // Times and sequences hardly repeat but grow in small steps. All other columns have dictionaries until these are full, but for
    // decimals: pages of version 1, which every reader knows, have none of values of fixed length.
    let grows = |field: &&Field| matches!(field.data_type(), DataType::Timestamp(..) | DataType::UInt64);
    for field in fields.filter(grows) {
        let column = ColumnPath::from(field.name().as_str());
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

const ZSTD_LEVEL: i32 = 3;
