//! What shells around a handler ask of its configuration.

use super::plan::Config;
use crate::error::Error;
use crate::mapping::Mapping;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

impl Config {
    /// That of a mapping file with a table `[fast]`.
    ///
    /// # Errors
    /// What is wrong in it or in the templates, with file and line.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::Mapping { origin: path.display().to_string(), what: e.to_string() })?;
        let mapping = Mapping::parse(&text, &path.display().to_string())?;
        super::config_of(&mapping)
    }

    /// The name of a channel.
    ///
    /// # Panics
    /// When there is none of this number.
    pub fn channel(&self, channel: u16) -> &str {
        &self.channels[usize::from(channel)].name
    }

    /// Where packets are sent to, with the channel and the line of each address.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, u16, u8)> {
        self.addresses.iter().copied()
    }
}
