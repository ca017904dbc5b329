//! The Python module `unitape`: rows of a tape as Arrow, Polars and pandas.
//!
//! ```text
//!  unitape.open(path) ─▶ Tape ─ get_range ─▶ Rows ─┬▶ __arrow_c_stream__   a new stream each time
//!                                                  └▶ to_arrow, to_polars, to_df
//! ```
//!
//! ```python
//! import unitape
//! rows = unitape.open("tape").get_range("bbo", symbols=["VOD"])
//! print(rows.to_polars())
//! ```
//!
//! Importing it loads no other package: pyarrow, Polars and pandas are loaded by the method that needs them. The GIL is released
//! while a tape is read. A stream never calls into Python, because a consumer may drop it after Python has ended.
//!
//! It holds no logic of rows: these are made by `unitape-arrow`.

mod arguments;
mod error;
mod rows;
mod tape;

use pyo3::prelude::*;

/// Every feed on one tape: rows of a tape as Arrow, Polars and pandas.
#[pymodule]
mod unitape {
    #[pymodule_export]
    use super::error::Error;
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::tape::{Tape, open};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
