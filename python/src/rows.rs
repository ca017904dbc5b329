//! Rows that were selected, and are read when somebody asks for them.

use crate::arguments;
use crate::error::{read_error, warn};
use crate::tape::{names_at_end, query_error};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::path::PathBuf;
use unitape_arrow::arrow_array::ffi::FFI_ArrowSchema;
use unitape_arrow::arrow_array::ffi_stream::FFI_ArrowArrayStream;
use unitape_arrow::arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use unitape_arrow::{BatchOptions, PriceType, ReadStep, RowQuery, RowReader, SizeType};
use unitape_model::{ColumnForm, NameKind};

/// Rows of a tape. Each conversion reads them, and each gives the same rows: the end of the tape is fixed.
#[pyclass(frozen, module = "unitape")]
#[derive(Debug)]
pub struct Rows {
    path: PathBuf,
    query: RowQuery,
    sizes: SizeType,
}

impl Rows {
    pub fn new(path: PathBuf, query: RowQuery, sizes: SizeType) -> Self {
        Self { path, query, sizes }
    }

    fn options(&self, prices: PriceType) -> BatchOptions {
        BatchOptions { prices, sizes: self.sizes, ..BatchOptions::default() }
    }

    fn open(&self, py: Python<'_>, options: BatchOptions) -> PyResult<RowReader> {
        py.detach(|| RowReader::open(&self.path, self.query.clone(), options)).map_err(read_error)
    }

    /// Reads all batches. Ctrl-C ends it, and an error gives no batch.
    fn read(&self, py: Python<'_>, prices: PriceType) -> PyResult<Batches> {
        let mut reader = self.open(py, self.options(prices))?;
        let schema = reader.arrow_schema();
        let mut batches = Vec::new();
        loop {
            let step = py.detach(|| reader.step(FRAMES_BETWEEN_SIGNALS));
            py.check_signals()?;
            match step.map_err(read_error)? {
                ReadStep::Batch(batch) => batches.push(batch),
                ReadStep::Paused => {}
                ReadStep::End => break,
            }
        }
        if let Some((file, what)) = &reader.unverified().first_file {
            let file = file.display();
            warn(py, &format!("unverified: {file}: {what}; not all rows were compared with checksums"))?;
        }
        Ok(Batches { schema, batches })
    }

    fn to_table<'py>(&self, py: Python<'py>, prices: PriceType) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = py.import("pyarrow")?;
        let batches = self.read(py, prices)?;
        let reader = pyarrow.getattr("RecordBatchReader")?.call_method1("from_stream", (batches,))?;
        reader.call_method0("read_all")
    }
}

#[pymethods]
impl Rows {
    /// Returns a new Arrow stream. Its batches are read as the consumer asks for them.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the wish for another schema.
        _ = requested_schema;
        stream_capsule(py, self.open(py, self.options(PriceType::Decimal))?)
    }

    /// Returns the schema of the stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.options(PriceType::Decimal).arrow_schema(self.query.schema);
        let schema = FFI_ArrowSchema::try_from(&*schema).map_err(|error| read_error(error.into()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Reads the rows as a pyarrow Table.
    #[pyo3(signature = (price_type="decimal"))]
    fn to_arrow<'py>(&self, py: Python<'py>, price_type: &str) -> PyResult<Bound<'py, PyAny>> {
        self.to_table(py, arguments::price_type(price_type)?)
    }

    /// Reads the rows as a Polars DataFrame.
    #[pyo3(signature = (price_type="decimal"))]
    fn to_polars<'py>(&self, py: Python<'py>, price_type: &str) -> PyResult<Bound<'py, PyAny>> {
        let prices = arguments::price_type(price_type)?;
        let polars = py.import("polars")?;
        polars.call_method1("DataFrame", (self.read(py, prices)?,))
    }

    /// Reads the rows as a pandas DataFrame. Times are in the zone `tz`, or UTC.
    #[pyo3(signature = (price_type="float", tz=None))]
    fn to_df<'py>(
        &self,
        py: Python<'py>,
        price_type: &str,
        tz: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let prices = arguments::price_type(price_type)?;
        let (pandas, pyarrow) = (py.import("pandas")?, py.import("pyarrow")?);
        // pandas makes float64 of whole numbers with nulls, and so loses digits, without a type for them.
        let types = PyDict::new(py);
        let mut whole = vec![("uint16", "UInt16Dtype"), ("uint32", "UInt32Dtype"), ("uint64", "UInt64Dtype")];
        if prices == PriceType::Fixed {
            whole.push(("int64", "Int64Dtype"));
        }
        for (arrow, dtype) in whole {
            types.set_item(pyarrow.call_method0(arrow)?, pandas.call_method0(dtype)?)?;
        }
        let options = PyDict::new(py);
        options.set_item("types_mapper", types.getattr("get")?)?;
        let frame = self.to_table(py, prices)?.call_method("to_pandas", (), Some(&options))?;
        if let Some(tz) = tz {
            let columns = self.query.schema.columns().iter();
            for column in columns.filter(|column| column.form == ColumnForm::Time) {
                let local = frame.get_item(column.name)?.getattr("dt")?.call_method1("tz_convert", (tz,))?;
                frame.set_item(column.name, local)?;
            }
        }
        Ok(frame)
    }

    /// Returns the symbols that were asked for and the tape does not have.
    #[getter]
    fn not_found(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let Some(symbols) = self.query.symbols.as_ref().filter(|symbols| !symbols.is_empty()) else {
            return Ok(Vec::new());
        };
        let names = py.detach(|| names_at_end(&self.path)).map_err(query_error)?;
        let is_missing = |name: &&String| names.get(NameKind::Instrument, name.as_bytes()).is_none();
        Ok(symbols.iter().filter(is_missing).cloned().collect())
    }

    /// Returns the name of the schema.
    #[getter]
    fn schema(&self) -> &'static str {
        self.query.schema.name()
    }

    /// Returns the names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.query.schema.columns().iter().map(|column| column.name).collect()
    }

    fn __repr__(&self) -> String {
        format!("<unitape.Rows {} of {:?}>", self.query.schema.name(), self.path.display().to_string())
    }
}

/// Batches that were read, for a consumer in this process.
#[pyclass(frozen, module = "unitape")]
#[derive(Debug)]
struct Batches {
    schema: unitape_arrow::SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Batches {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, RecordBatchIterator::new(batches, self.schema.clone()))
    }
}

/// Makes the capsule of a stream. Its destructor runs in any thread and calls nothing of Python.
fn stream_capsule<'py>(
    py: Python<'py>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Frames that are read before Python looks for signals: some milliseconds.
const FRAMES_BETWEEN_SIGNALS: u64 = 1 << 16;
