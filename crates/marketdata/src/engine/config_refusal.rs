//! The error in a table `[fast]`, and its place.

/// The error and its place: keys from the table `fast` on.
#[derive(Debug)]
pub struct ConfigRefusal {
    /// The way down.
    pub place: Vec<String>,
    /// A sentence.
    pub what: String,
}

impl ConfigRefusal {
    /// The way down to it from the top of a mapping file.
    #[must_use]
    pub fn from_top(&self) -> Vec<&str> {
        std::iter::once("fast").chain(self.place.iter().map(String::as_str)).collect()
    }
}

/// The result of reading a table, or the error in it.
pub type ConfigResult<T> = Result<T, ConfigRefusal>;

pub(super) fn refuse<T>(place: &[&str], what: impl Into<String>) -> ConfigResult<T> {
    Err(ConfigRefusal { place: place.iter().map(|p| (*p).to_owned()).collect(), what: what.into() })
}
