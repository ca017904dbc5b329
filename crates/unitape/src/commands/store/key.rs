//! The key of a store: which file holds it.

use crate::output::{CommandFailure, note};
use std::path::{Path, PathBuf};
use unitape_store::{KEY_FILE_VARIABLE, MasterKey, SystemRandomness, check_format, check_place};

/// The option that names the key.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// File with the key of the store, 64 hexadecimal digits. Without it: the file that UNITAPE_STORE_KEY_FILE names, else
    /// the store's path with .key at the end
    #[arg(long = "key", value_name = "FILE")]
    key: Option<PathBuf>,
}

impl KeyArgs {
    /// Loads the key of an existing store.
    pub fn of_store(&self, store: &Path) -> Result<MasterKey, CommandFailure> {
        // What is no store, or an older one, has no key that would help.
        check_format(store)?;
        let path = self.key_path(store)?;
        if !path.exists() {
            return Err(missing_key(store, &path));
        }
        self.load(&path)
    }

    /// Loads the key for sealing. A new store gets a new key beside it if the user names no other key.
    pub fn for_sealing(&self, store: &Path) -> Result<MasterKey, CommandFailure> {
        if store.join("manifest").exists() {
            return self.of_store(store);
        }
        let path = self.key_path(store)?;
        if path.exists() {
            MasterKey::remove_unfinished(&path);
            return self.load(&path);
        }
        if self.named_key_file().is_some() {
            return Err(missing_key(store, &path));
        }
        check_place(store)?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let key = MasterKey::create(&path, &SystemRandomness)?;
        note!(
            "unitape: made the key {}: without it nobody can read the store. It is beside the store, so it is in the same \
             backup; to keep it elsewhere, move it and name it with --key or {KEY_FILE_VARIABLE}",
            path.display()
        );
        Ok(key)
    }

    /// Returns the key file that the user names.
    fn named_key_file(&self) -> Option<PathBuf> {
        let from_environment = || std::env::var_os(KEY_FILE_VARIABLE).filter(|path| !path.is_empty());
        self.key.clone().or_else(|| from_environment().map(PathBuf::from))
    }

    fn key_path(&self, store: &Path) -> Result<PathBuf, CommandFailure> {
        match self.named_key_file() {
            Some(path) => Ok(path),
            None => Ok(MasterKey::path_beside(store)?),
        }
    }

    fn load(&self, path: &Path) -> Result<MasterKey, CommandFailure> {
        // Who names a pipe writes a key into it. Nobody writes into one that lies beside the store.
        if self.named_key_file().is_none() && !path.is_file() {
            return Err(CommandFailure::Error(format!("no key: {} is no regular file", path.display())));
        }
        let key = MasterKey::load(path)?;
        if MasterKey::is_exposed(path) {
            note!("unitape: others than its owner can read the key {0}; chmod 600 {0}", path.display());
        }
        Ok(key)
    }
}

fn missing_key(store: &Path, path: &Path) -> CommandFailure {
    CommandFailure::Error(format!(
        "no key: {} does not exist; name the key of {} with --key FILE or {KEY_FILE_VARIABLE}",
        path.display(),
        store.display()
    ))
}
