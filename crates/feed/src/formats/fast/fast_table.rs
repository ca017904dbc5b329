//! The table `[fast]` in the mapping of a feed.

use crate::error::Error;
use crate::mapping::Mapping;
use std::path::Path;
use std::sync::Arc;
use unitape_marketdata::engine::{
    ConfigRefusal, ConfigSummary, FastMappingTable, HandlerConfig, MappingFile,
};

impl Mapping {
    /// Reads the table `[fast]` and the files that it names. The file may have the keys that a handler by itself accepts,
    /// and no others.
    pub(super) fn load_fast(&mut self) -> Result<(), Error> {
        let file = MappingFile::parse(&self.text, &self.origin)?;
        let table = FastMappingTable::read(file.fast, Path::new(&self.origin));
        self.fast_table = Some(table.map_err(|wrong| self.wrong_fast(&wrong))?);
        Ok(())
    }

    /// Makes the configuration of a handler.
    ///
    /// # Errors
    /// Fails if the table `[fast]` or the templates are invalid; the error has file and line.
    pub fn fast_config(&self) -> Result<Arc<HandlerConfig>, Error> {
        let config = self.fast_table()?.config();
        config.map(Arc::new).map_err(|wrong| self.wrong_fast(&wrong))
    }

    /// Summarizes the table `[fast]`; `None` if the mapping has no such table.
    ///
    /// # Errors
    /// Fails if the table is invalid.
    pub fn fast_summary(&self) -> Result<Option<ConfigSummary>, Error> {
        let holds = self.fast_table.as_ref().map(ConfigSummary::from_table).transpose();
        holds.map_err(|wrong| self.wrong_fast(&wrong))
    }

    /// Checks that the table `[fast]` can be used. A table without templates or channels is there for other tables to
    /// refer to.
    pub(super) fn check_fast(&self) -> Result<(), Error> {
        self.fast_table()?.check().map_err(|wrong| self.wrong_fast(&wrong))
    }

    /// Returns the table `[fast]`.
    pub(crate) fn fast_table(&self) -> Result<&FastMappingTable, Error> {
        let missing_error = || self.refuse_key("fast", "format fast needs a table [fast]".to_owned());
        self.fast_table.as_ref().ok_or_else(missing_error)
    }

    fn wrong_fast(&self, wrong: &ConfigRefusal) -> Error {
        self.refuse_at(&wrong.from_top(), wrong.reason.clone())
    }
}
