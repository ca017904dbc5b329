//! What is wrong with a table `[fast]`, and where.

/// What is wrong, and where: keys from the table `fast` on.
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

/// What was made of a table, or what is wrong with it.
pub type ConfigResult<T> = Result<T, ConfigRefusal>;

pub(super) fn refuse<T>(place: &[&str], what: impl Into<String>) -> ConfigResult<T> {
    Err(ConfigRefusal { place: place.iter().map(|p| (*p).to_owned()).collect(), what: what.into() })
}
