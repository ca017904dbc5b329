//! The exception of the module.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;
use std::ffi::CString;
use std::path::Path;
use unitape_model::ErrorCause;

create_exception!(
    unitape,
    Error,
    PyException,
    "An error of unitape.\n\n`code` is a word for programs, `cause` is `call`, `data` or `outside`, and `file` and `position` say \
     where, or are None. With a file `position` is a byte of it, otherwise a position on the tape."
);

/// The facts of an exception beside its text.
struct ErrorFacts<'a> {
    code: &'a str,
    cause: ErrorCause,
    file: Option<&'a Path>,
    position: Option<u64>,
}

/// Makes the exception of a wrong call.
pub fn call_error(code: &str, text: String) -> PyErr {
    let facts = ErrorFacts { code, cause: ErrorCause::Call, file: None, position: None };
    exception(text, &facts)
}

/// Makes the exception of an error of reading.
pub fn read_error(error: unitape_arrow::Error) -> PyErr {
    use unitape_arrow::Error as ArrowError;
    let (mut file, mut position) = (None, None);
    let code = match &error {
        ArrowError::Query(unitape_query::Error::Tape(source)) => match &**source {
            unitape_tape::Error::Damage { path, offset, .. } => {
                (file, position) = (Some(path.as_path()), Some(*offset));
                "damage"
            }
            unitape_tape::Error::Io { path, .. } => {
                file = Some(path.as_path());
                "io"
            }
            unitape_tape::Error::NotATape { path, .. } => {
                file = Some(path.as_path());
                "not_a_tape"
            }
            unitape_tape::Error::ForeignVersion { path, .. } => {
                file = Some(path.as_path());
                "foreign_version"
            }
            unitape_tape::Error::HotElsewhere { path, .. } => {
                file = Some(path.as_path());
                "hot_elsewhere"
            }
            unitape_tape::Error::Retained { position: gone, .. } => {
                position = Some(gone.0);
                "retained"
            }
            unitape_tape::Error::Rewound { to, .. } => {
                position = Some(to.0);
                "rewound"
            }
            _ => "tape",
        },
        ArrowError::Query(_) => "call",
        ArrowError::SizeMisfit { .. } => "size_misfit",
        ArrowError::NamesFull => "names_full",
        ArrowError::Rewound { to, .. } => {
            position = Some(to.0);
            "rewound"
        }
        ArrowError::Shortened { current_end: found, .. } => {
            position = Some(found.0);
            "shortened"
        }
        ArrowError::Panic(_) => "panic",
        _ => "arrow",
    };
    exception(error.to_string(), &ErrorFacts { code, cause: error.cause(), file, position })
}

/// Gives a warning to the caller.
pub fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text.replace('\0', "\\0"))?, 1)
}

fn exception(text: String, facts: &ErrorFacts<'_>) -> PyErr {
    let cause = match facts.cause {
        ErrorCause::Call => "call",
        ErrorCause::Data => "data",
        ErrorCause::Outside => "outside",
    };
    Python::attach(|py| {
        let error = Error::new_err(text);
        let value = error.value(py);
        let set = value
            .setattr("code", facts.code)
            .and_then(|()| value.setattr("cause", cause))
            .and_then(|()| value.setattr("file", facts.file))
            .and_then(|()| value.setattr("position", facts.position));
        set.err().unwrap_or(error)
    })
}
