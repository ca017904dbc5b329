//! Arguments of calls: schemas, symbols, types and times as Python people write them.

use crate::error::call_error;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBool, PyString};
use unitape_arrow::{PriceType, SizeType};
use unitape_base::toml::suggest_word;
use unitape_model::{RowSchema, UnixNanos};

/// Reads the name of a schema.
pub fn schema(name: &str) -> PyResult<RowSchema> {
    let names = || RowSchema::ALL.map(RowSchema::name);
    RowSchema::from_name(name).ok_or_else(|| {
        let near = suggest_word(name, names());
        call_error("unknown_schema", format!("no schema `{name}`{near}; schemas: {}", names().join(", ")))
    })
}

/// Reads the type of prices.
pub fn price_type(name: &str) -> PyResult<PriceType> {
    match name {
        "decimal" => Ok(PriceType::Decimal),
        "fixed" => Ok(PriceType::Fixed),
        "float" => Ok(PriceType::Float),
        _ => Err(unknown_word("price_type", name, &["decimal", "fixed", "float"])),
    }
}

/// Reads the type of sizes.
pub fn size_type(name: &str) -> PyResult<SizeType> {
    match name {
        "narrow" => Ok(SizeType::Narrow),
        "wide" => Ok(SizeType::Wide),
        _ => Err(unknown_word("size_type", name, &["narrow", "wide"])),
    }
}

fn unknown_word(option: &str, word: &str, known: &[&str]) -> PyErr {
    let near = suggest_word(word, known.iter().copied());
    call_error("unknown_option", format!("{option}=\"{word}\"{near}; it may be {}", known.join(", ")))
}

/// Reads symbols: a text is split at commas, and each member of a list is a name as a whole.
pub fn symbols(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_string();
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        return Ok(names.map(str::to_owned).collect());
    }
    let member = |member: PyResult<Bound<'_, PyAny>>| {
        let member = member?;
        match member.cast::<PyString>() {
            Ok(text) => text.extract(),
            Err(_) => {
                Err(PyTypeError::new_err(format!("symbols: a name is text, not {}", type_name(&member)?)))
            }
        }
    };
    value.try_iter()?.map(member).collect()
}

/// Reads a time. `option` names the argument.
pub fn time(option: &str, value: &Bound<'_, PyAny>) -> PyResult<UnixNanos> {
    if let Ok(text) = value.cast::<PyString>() {
        let text: String = text.extract()?;
        return text_time(&text).ok_or_else(|| bad_time(option, &format!("`{text}` is no time")));
    }
    let value_type = value.get_type();
    let (module, name) = (value_type.getattr("__module__")?.to_string(), value_type.name()?.to_string());
    let is_pandas = module == "pandas" || module.starts_with("pandas.");
    if is_pandas && (name == "Timestamp" || name == "NaTType") {
        let ns = value.getattr("value").and_then(|ns| ns.extract()).map_err(|_| far_time(option))?;
        return present(option, ns);
    }
    if module == "numpy" && name == "datetime64" {
        return numpy_time(option, value);
    }
    if value.cast::<PyBool>().is_err() && value.hasattr("__index__")? {
        return value.extract().map(UnixNanos).map_err(|_| far_time(option));
    }
    match datetime_delta(value)? {
        Some(delta) => delta_time(&delta).ok_or_else(|| far_time(option)),
        None => Err(PyTypeError::new_err(format!(
            "{option}: a time is text, nanoseconds since 1970, or a datetime of Python, pandas or NumPy, not {}",
            type_name(value)?
        ))),
    }
}

/// Returns the `timedelta` from 1970 to a `datetime` or `date`, which is in UTC where it has no zone; `None` for another type.
fn datetime_delta<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let module = value.py().import("datetime")?;
    let (datetime, date) = (module.getattr("datetime")?, module.getattr("date")?);
    if value.is_instance(&datetime)? {
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let epoch = datetime.call1((1970, 1, 1, 0, 0, 0, 0, &utc))?;
        let value = match value.getattr("tzinfo")?.is_none() {
            true => value.call_method("replace", (), Some(&[("tzinfo", &utc)].into_py_dict(value.py())?))?,
            false => value.clone(),
        };
        return value.sub(epoch).map(Some);
    }
    if value.is_instance(&date)? {
        return value.sub(date.call1((1970, 1, 1))?).map(Some);
    }
    Ok(None)
}

/// Reads text as [`UnixNanos`] does, also with an offset from UTC: `2026-03-02T09:30:00+01:00`.
fn text_time(text: &str) -> Option<UnixNanos> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let at = text.len().checked_sub(6).filter(|at| *at > DATE_BYTES && text.is_char_boundary(*at))?;
    let (local, offset) = text.split_at(at);
    let sign = match offset.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let number = |text: &str, most: i64| {
        let is_number = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i64>().ok().filter(|n| is_number && *n <= most)
    };
    let seconds = sign * (number(hours, 23)? * 3_600 + number(minutes, 59)? * 60);
    // A zone of its own before the offset would make two.
    let local = Some(local).filter(|local| !local.ends_with('Z'))?.parse::<UnixNanos>().ok()?;
    local.0.checked_sub(seconds * 1_000_000_000).map(UnixNanos)
}

/// Reads a `datetime64` of any unit.
fn numpy_time(option: &str, value: &Bound<'_, PyAny>) -> PyResult<UnixNanos> {
    let as_unit = |unit: &str| -> PyResult<i64> {
        value.call_method1("astype", (unit,))?.call_method1("astype", ("int64",))?.extract()
    };
    let seconds = as_unit("datetime64[s]")?;
    // NumPy's nanoseconds go round without a word.
    if seconds != i64::MIN && UnixNanos::MAX.0 / 1_000_000_000 <= seconds.saturating_abs() {
        return Err(far_time(option));
    }
    present(option, as_unit("datetime64[ns]")?)
}

/// Returns a time that is not NaT.
fn present(option: &str, ns: i64) -> PyResult<UnixNanos> {
    match ns {
        i64::MIN => Err(bad_time(option, "NaT is no time")),
        ns => Ok(UnixNanos(ns)),
    }
}

/// Returns the time that is this `timedelta` after 1970.
fn delta_time(delta: &Bound<'_, PyAny>) -> Option<UnixNanos> {
    let part = |name| delta.getattr(name).ok()?.extract::<i64>().ok();
    let seconds = i128::from(part("days")?) * 86_400 + i128::from(part("seconds")?);
    let ns = seconds * 1_000_000_000 + i128::from(part("microseconds")?) * 1_000;
    i64::try_from(ns).ok().map(UnixNanos)
}

fn far_time(option: &str) -> PyErr {
    bad_time(option, "the time is before 1677 or after 2262")
}

fn bad_time(option: &str, what: &str) -> PyErr {
    call_error(
        "bad_time",
        format!(
            "{option}: {what}; a time is `2026-03-02`, `2026-03-02T14:30:00.5` (UTC, or with an offset like +01:00), nanoseconds \
             since 1970, or a datetime"
        ),
    )
}

fn type_name(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.get_type().name()?.to_string())
}

/// The length of `2026-03-02`.
const DATE_BYTES: usize = 10;
