//! The master key and the file that holds it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::keys::cipher::{KEY_BYTES, Randomness, SecretKey};
use crate::keys::{hex, parse_hex};
use crate::manifest::sync_dir;

/// The environment variable that names a key file.
pub const KEY_FILE_VARIABLE: &str = "UNITAPE_STORE_KEY_FILE";

/// The key that opens a store: 32 bytes, 64 hexadecimal digits in a file. It is never printed.
#[derive(Clone, Debug)]
pub struct MasterKey(SecretKey);

impl MasterKey {
    /// Draws a key.
    ///
    /// # Errors
    /// Fails if there are no random bytes.
    pub fn random(random: &dyn Randomness) -> Result<Self> {
        SecretKey::random(random).map(Self)
    }

    /// Reads 64 hexadecimal digits, of either case, with white space around them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = text.trim().to_ascii_lowercase();
        let mut bytes = parse_hex(&digits)?;
        let key = <[u8; KEY_BYTES]>::try_from(&bytes[..]).ok().map(|key| Self(SecretKey::new(key)));
        bytes.fill(0);
        wipe_text(&mut digits);
        key
    }

    /// Reads a key from a file or a pipe.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has other content.
    pub fn load(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context("open", path)?;
        let mut text = String::new();
        // A wrong path may lead to a file of any size.
        let read_result = file.take(4096).read_to_string(&mut text);
        let key = match read_result {
            Ok(_) => Self::parse(&text),
            Err(e) if e.kind() == ErrorKind::InvalidData => None,
            Err(e) => return Err(e).with_context("read", path),
        };
        wipe_text(&mut text);
        key.ok_or_else(|| Error::NotAKey(path.into()))
    }

    /// Returns whether other users than the owner may read or write the file.
    pub fn is_exposed(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
    }

    /// Draws a key and writes it to a new file that only its owner may read. If another process makes the file
    /// meanwhile, returns that key. A process that is killed leaves a complete file or no file.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if there are no random bytes.
    pub fn create(path: &Path, random: &dyn Randomness) -> Result<Self> {
        let key = Self::random(random)?;
        let mut text = hex(key.0.bytes());
        text.push('\n');
        let new_path = unfinished_path(path);
        let mut new_file = lock_unfinished(&new_path).with_context("make", &new_path)?;
        // One that a killed process left may have another mode, and other bytes.
        let written = new_file
            .set_permissions(fs::Permissions::from_mode(0o600))
            .and_then(|()| new_file.set_len(0))
            .and_then(|()| new_file.write_all(text.as_bytes()))
            .and_then(|()| new_file.sync_all());
        wipe_text(&mut text);
        // A link is made only if no file has the name, so no key is ever replaced.
        let linked =
            written.with_context("write", &new_path).and_then(|()| match fs::hard_link(&new_path, path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
                other => other.map(|()| true).with_context("make", path),
            });
        _ = fs::remove_file(&new_path);
        // Only now may another process have the lock.
        drop(new_file);
        if !linked? {
            return Self::load(path);
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_dir(parent.unwrap_or(Path::new(".")))?;
        Ok(key)
    }

    /// Removes what a process that was killed while it made the key in `path` has left.
    pub fn remove_unfinished(path: &Path) {
        let new_path = unfinished_path(path);
        if let Ok(file) = File::open(&new_path)
            && file.try_lock().is_ok()
        {
            _ = fs::remove_file(&new_path);
        }
    }

    /// Returns the path of the key file beside a store: the store's path with `.key` at the end.
    ///
    /// # Errors
    /// Fails if `store` has no name and does not lead to a directory with a name.
    pub fn path_beside(store: &Path) -> Result<PathBuf> {
        // `.` and `..` have no name to append to.
        let named_dir = match store.file_name() {
            Some(_) => store.to_owned(),
            None => fs::canonicalize(store).with_context("look at", store)?,
        };
        let mut name: OsString = named_dir.file_name().unwrap_or_default().to_owned();
        name.push(".key");
        Ok(named_dir.with_file_name(name))
    }

    pub(crate) fn secret(&self) -> &SecretKey {
        &self.0
    }
}

/// Returns the path of a key that is being made: it becomes `path`.
fn unfinished_path(path: &Path) -> PathBuf {
    let mut new_path = path.as_os_str().to_owned();
    new_path.push(".new");
    new_path.into()
}

/// Opens the file of a key that is being made, when no other process is making it.
fn lock_unfinished(new_path: &Path) -> std::io::Result<File> {
    loop {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(new_path)?;
        match file.lock() {
            Err(e) if e.kind() != ErrorKind::Unsupported => return Err(e),
            _ => {}
        }
        // The process that had the lock may have removed the file.
        if fs::metadata(new_path)
            .is_ok_and(|now| file.metadata().is_ok_and(|locked| now.ino() == locked.ino()))
        {
            return Ok(file);
        }
    }
}

fn wipe_text(text: &mut String) {
    let mut bytes = std::mem::take(text).into_bytes();
    bytes.fill(0);
    std::hint::black_box(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRandomness;

    /// Fails if a key is replaced, which would close a store for ever.
    #[test]
    fn a_key_file_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = MasterKey::path_beside(&dir.path().join("ticks/")).unwrap();
        assert_eq!(path, dir.path().join("ticks.key"));
        let key = MasterKey::create(&path, &SystemRandomness).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let reopened_key = MasterKey::create(&path, &SystemRandomness).unwrap();
        assert_eq!(key.0.bytes(), reopened_key.0.bytes());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the key is left");
        // As processes leave it that are killed while they make a key.
        let new_path = unfinished_path(&path);
        fs::write(&new_path, "0123").unwrap();
        MasterKey::remove_unfinished(&path);
        assert!(!new_path.exists());
        let other_path = dir.path().join("other.key");
        fs::write(unfinished_path(&other_path), "9".repeat(100)).unwrap();
        let make = || *MasterKey::create(&other_path, &SystemRandomness).unwrap().0.bytes();
        let keys: Vec<_> = std::thread::scope(|threads| {
            let makers: Vec<_> = (0..8).map(|_| threads.spawn(make)).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]) && keys[0] != *key.0.bytes());
        assert_eq!(fs::metadata(&other_path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "only the keys are left");
        assert!(!MasterKey::is_exposed(&path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(MasterKey::is_exposed(&path));
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k");
        let digits = "0123456789abcdef".repeat(4);
        for (text, good) in [
            (digits.clone(), true),
            (format!("  {}\r\n", digits.to_uppercase()), true),
            (String::new(), false),
            (digits[1..].to_owned(), false),
            (format!("{digits}0"), false),
            (format!("{}g", &digits[1..]), false),
        ] {
            fs::write(&path, &text).unwrap();
            match MasterKey::load(&path) {
                Ok(_) => assert!(good, "{text}"),
                Err(e) => {
                    assert!(!good && matches!(e, Error::NotAKey(_)), "{text}: {e}");
                    assert!(text.is_empty() || !e.to_string().contains(&text), "{e}");
                }
            }
        }
        fs::write(&path, [0xff; 64]).unwrap();
        assert!(matches!(MasterKey::load(&path), Err(Error::NotAKey(_))));
        assert!(matches!(MasterKey::load(&dir.path().join("none")), Err(Error::Io { .. })));
    }
}
