//! A tape that Python has opened.

use crate::arguments;
use crate::error::{call_error, read_error, warn};
use crate::rows::Rows;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use unitape_arrow::RowQuery;
use unitape_model::{DefinitionTable, NameKind, Position, RowSchema};
use unitape_query::address::TapeRangeBound;
use unitape_query::follow::TapeRange;
use unitape_query::{CursorOutcome, EventCursor, EventSelection};
use unitape_tape::{ReadOptions, Reader, StartPosition, TimeRange, hot_notice, tape_status};

/// Opens the tape in a directory.
#[pyfunction]
pub fn open(py: Python<'_>, path: PathBuf) -> PyResult<Tape> {
    let opened = py.detach(|| tape_status(&path).and_then(|_| hot_notice(&path)));
    if let Some(notice) = opened.map_err(tape_error)? {
        warn(py, &format!("{}: {notice}", path.display()))?;
    }
    Ok(Tape { path })
}

/// A tape: the directory, nothing of which is kept open.
#[pyclass(frozen, module = "unitape")]
#[derive(Debug)]
pub struct Tape {
    path: PathBuf,
}

#[pymethods]
impl Tape {
    /// Selects rows of a schema. Nothing is read yet, and the end of the tape is fixed now.
    ///
    /// `symbols` is a list of instruments, or text that is split at commas; `start` is inclusive and `end` exclusive.
    #[pyo3(signature = (schema, symbols=None, start=None, end=None, limit=None, *, size_type="narrow"))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn get_range(
        &self,
        py: Python<'_>,
        schema: &str,
        symbols: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        limit: Option<u64>,
        size_type: &str,
    ) -> PyResult<Rows> {
        let schema = arguments::schema(schema)?;
        let sizes = arguments::size_type(size_type)?;
        let symbols = symbols.map(arguments::symbols).transpose()?;
        let time = |option, value: Option<&Bound<'_, PyAny>>| {
            value.map(|value| arguments::time(option, value)).transpose()
        };
        let (since, until) = (time("start", start)?, time("end", end)?);
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            return Err(call_error(
                "start_after_end",
                "start is after end: nothing can be between them".to_owned(),
            ));
        }
        let times = (since.is_some() || until.is_some()).then_some(TimeRange { since, until });
        let end = py.detach(|| end_position(&self.path)).map_err(tape_error)?;
        Ok(Rows::new(self.path.clone(), RowQuery { schema, symbols, times, limit, end }, sizes))
    }

    /// Returns the names of the schemas that `get_range` knows.
    fn schemas(&self) -> Vec<&'static str> {
        RowSchema::ALL.map(RowSchema::name).to_vec()
    }

    /// Returns the names of the instruments, in the order in which they came onto the tape.
    fn symbols(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names = py.detach(|| names_at_end(&self.path)).map_err(query_error)?;
        Ok(names_of(&names, NameKind::Instrument))
    }

    /// Returns facts about the tape as a dict, without reading all of it.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = py.detach(|| TapeFacts::read(&self.path)).map_err(query_error)?;
        let info = PyDict::new(py);
        info.set_item("path", &self.path)?;
        info.set_item("tape", facts.id)?;
        info.set_item("first", facts.first)?;
        info.set_item("end", facts.end)?;
        info.set_item("durable", facts.durable)?;
        info.set_item("live", facts.is_live)?;
        info.set_item("events", facts.events)?;
        info.set_item("instruments", facts.instruments)?;
        info.set_item("venues", facts.venues)?;
        Ok(info)
    }

    fn __repr__(&self) -> String {
        format!("unitape.Tape({:?})", self.path.display().to_string())
    }
}

/// The facts of `info`.
struct TapeFacts {
    id: String,
    first: u64,
    end: u64,
    durable: u64,
    is_live: bool,
    /// Events that retention has left.
    events: u64,
    instruments: u32,
    venues: u32,
}

impl TapeFacts {
    fn read(path: &Path) -> Result<Self, unitape_query::Error> {
        let status = tape_status(path)?;
        let oldest = Reader::open(path, StartPosition::Oldest)?;
        let newest = Reader::open(path, StartPosition::End)?;
        let names = names_at_end(path)?;
        Ok(Self {
            id: status.id.to_string(),
            first: status.oldest_position.0,
            end: newest.position().0,
            durable: status.durable.0,
            is_live: status.live,
            events: newest.ordinal().saturating_sub(oldest.ordinal()),
            instruments: names.len(NameKind::Instrument),
            venues: names.len(NameKind::Venue),
        })
    }
}

/// Returns the end of the tape, or `None` where damage is before it: a reader then stops at the damage.
fn end_position(path: &Path) -> Result<Option<Position>, unitape_tape::Error> {
    match Reader::open(path, StartPosition::End) {
        Ok(reader) => Ok(Some(reader.position())),
        Err(unitape_tape::Error::Damage { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns all names of a tape. Those before its durable position come from the log of definitions.
pub fn names_at_end(path: &Path) -> Result<DefinitionTable, unitape_query::Error> {
    let end = Reader::open(path, StartPosition::End)?.position();
    let range = TapeRange { from: Some(TapeRangeBound::Position(end)), ..TapeRange::default() };
    let selection = EventSelection { range, ..EventSelection::default() };
    let mut cursor = EventCursor::open(path, selection, ReadOptions::default())?;
    while cursor.next(|_, _| ())? == CursorOutcome::Given {}
    Ok(cursor.names().clone())
}

/// Returns the names of one dictionary.
pub fn names_of(names: &DefinitionTable, kind: NameKind) -> Vec<String> {
    (1..=names.len(kind)).filter_map(|id| names.name(kind, id)).map(str::to_owned).collect()
}

fn tape_error(error: unitape_tape::Error) -> PyErr {
    read_error(error.into())
}

/// Makes the exception of an error of a cursor.
pub fn query_error(error: unitape_query::Error) -> PyErr {
    read_error(error.into())
}
