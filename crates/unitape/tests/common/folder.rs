//! A folder of a test, with files that nobody else can read and users with passwords.

use super::{Ran, run};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A folder that is removed with its test.
pub struct Folder {
    pub dir: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a path in the folder as an argument.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file that nobody else can read.
    pub fn private(&self, name: &str, text: &str) {
        private_file(&self.path(name), text);
    }

    /// Begins a user file whose passwords cost nothing to compare.
    pub fn user_file(&self, name: &str) {
        private_file(&self.path(name), CHEAP_PASSWORDS);
    }

    /// Adds a user, whose password is in the file `USER.pw`.
    pub fn add_user(&self, users: &str, user: &str, role: &str, options: &[&str]) -> Ran {
        let name = format!("{user}.pw");
        self.private(&name, &format!("{user}'s password\n"));
        let (password, users) = (self.text(&name), self.text(users));
        let args = ["user", "add", user, "--role", role, "--password-file", &password, "--users", &users];
        run(args.iter().chain(options)).code(0)
    }
}

/// The first lines of a user file whose passwords cost nothing to compare.
pub const CHEAP_PASSWORDS: &str = "format = 1\n[argon2]\nmemory_kib = 8\niterations = 1\n";

/// Writes a file that nobody else can read.
pub fn private_file(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
