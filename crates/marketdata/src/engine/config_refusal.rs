//! The error in a table `[fast]`, and its place.

/// The error and its place: keys from the table `fast` on.
#[derive(Debug)]
pub struct ConfigRefusal {
    /// The way down.
    pub key_path: Vec<String>,
    /// A sentence.
    pub reason: String,
}

impl ConfigRefusal {
    /// Returns the key path of the refused value, from the top of a mapping file.
    #[must_use]
    pub fn from_top(&self) -> Vec<&str> {
        std::iter::once("fast").chain(self.key_path.iter().map(String::as_str)).collect()
    }
}

/// The result of reading a table, or the error in it.
pub type ConfigResult<T> = Result<T, ConfigRefusal>;

pub(super) fn refuse_config<T>(key_path: &[&str], reason: impl Into<String>) -> ConfigResult<T> {
    Err(ConfigRefusal { key_path: key_path.iter().map(|p| (*p).to_owned()).collect(), reason: reason.into() })
}
