//! The user file: read, checked, changed as a whole.

use super::password::{PasswordCost, is_hash, is_match};
use super::person::check_new_name;
use super::{Account, Role, UserError};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use unitape_tape::open_regular;

/// A user file, read.
#[derive(Debug)]
pub struct UserFile {
    file_path: PathBuf,
    file_content: Content,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    argon2: Option<Cost>,
    #[serde(default, rename = "user")]
    users: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    memory_kib: u32,
    iterations: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    person: String,
    role: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parties: Vec<String>,
    #[serde(default)]
    disabled: bool,
    password: String,
}

impl Entry {
    fn to_account(&self) -> Option<Account> {
        Some(Account {
            name: self.name.clone(),
            person: self.person.clone(),
            role: Role::from_name(&self.role)?,
            parties: self.parties.clone(),
            is_disabled: self.disabled,
        })
    }
}

/// Identifies an account with its password. Another password gives another stamp, and a stamp reveals nothing about the
/// password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountStamp([u8; 32]);

impl UserFile {
    /// Reads a user file.
    ///
    /// # Errors
    /// Fails if there is no file, if others may read or write it, or if it is not a user file.
    pub fn load(path: &Path) -> Result<Self, UserError> {
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => UserError::Missing { path: path.to_owned() },
            _ => UserError::Io { doing: "read", path: path.to_owned(), source },
        };
        let content_error = |reason: String| UserError::Content { path: path.to_owned(), reason };
        let mut file = open_regular(path).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => content_error(e.to_string()),
            _ => io(e),
        })?;
        let metadata = file.metadata().map_err(io)?;
        // Of the open file: the name may mean another one by now.
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(UserError::Open { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        (&mut file).take(BYTES_MAX + 1).read_to_string(&mut text).map_err(io)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(content_error(format!("a user file has at most {BYTES_MAX} bytes")));
        }
        let content: Content = toml::from_str(&text).map_err(|error| {
            // Without the line of the file, which may hold a hash.
            let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            content_error(format!(
                "{}{}",
                line.map(|n| format!("line {n}: ")).unwrap_or_default(),
                error.message()
            ))
        })?;
        let file = Self { file_path: path.to_owned(), file_content: content };
        file.check_rules().map_err(content_error)?;
        Ok(file)
    }

    /// Returns the accounts, in the order of the file.
    pub fn accounts(&self) -> impl Iterator<Item = Account> + '_ {
        self.file_content.users.iter().map(|entry| entry.to_account().expect("a role that was checked"))
    }

    /// Returns the account of a user with this password.
    ///
    /// # Errors
    /// Fails if the name is unknown, the password is wrong, or the account is disabled.
    pub fn authenticate(&self, name: &str, password: &str) -> Result<Account, UserError> {
        let refused = || UserError::Refused { name: name.to_owned() };
        let Some(entry) = self.file_content.users.iter().find(|entry| entry.name == name) else {
            self.cost().spend(password);
            return Err(refused());
        };
        if !is_match(&entry.password, password) {
            return Err(refused());
        }
        if entry.disabled {
            return Err(UserError::Disabled { name: name.to_owned() });
        }
        Ok(entry.to_account().expect("a role that was checked"))
    }

    /// Returns the stamp of an account, or `None` if the account is unknown or disabled. A session keeps the stamp that
    /// its account had at the log-in, and ends once the stamp changes.
    pub fn account_stamp(&self, name: &str) -> Option<AccountStamp> {
        let entry = self.file_content.users.iter().find(|entry| entry.name == name && !entry.disabled)?;
        Some(AccountStamp(*blake3::hash(entry.password.as_bytes()).as_bytes()))
    }

    /// Returns the cost of new passwords.
    pub fn cost(&self) -> PasswordCost {
        match &self.file_content.argon2 {
            Some(cost) => PasswordCost { memory_kib: cost.memory_kib, iterations: cost.iterations },
            None => PasswordCost::default(),
        }
    }

    /// Adds an account to the file at `path`. Makes the file, and its directory with mode 0700, if they are not there. Returns the
    /// cost of the new password.
    ///
    /// # Errors
    /// Fails if the account is there, if a value of it cannot be, or if the file cannot be read or written.
    pub fn add_account(path: &Path, account: &Account, password: &str) -> Result<PasswordCost, UserError> {
        let names = [("name", &account.name), ("person", &account.person)].into_iter();
        names
            .chain(account.parties.iter().map(|party| ("party", party)))
            .try_for_each(|(field, name)| check_new_name(field, name))
            .map_err(UserError::Value)?;
        make_parent(path)?;
        let _lock = lock_parent(path)?;
        let mut file = match Self::load(path) {
            Err(UserError::Missing { .. }) => {
                let content = Content { format: FORMAT, argon2: None, users: Vec::new() };
                Self { file_path: path.to_owned(), file_content: content }
            }
            other => other?,
        };
        if file.file_content.users.iter().any(|entry| entry.name == account.name) {
            return Err(UserError::Value(format!("the user `{}` is there already", account.name)));
        }
        let entry = Entry {
            name: account.name.clone(),
            person: account.person.clone(),
            role: account.role.name().to_owned(),
            parties: account.parties.clone(),
            disabled: account.is_disabled,
            password: file.cost().hash(password)?,
        };
        file.file_content.users.push(entry);
        file.store_file()?;
        Ok(file.cost())
    }

    /// Changes the password of an account in the file at `path`. Returns the cost of the new hash.
    ///
    /// # Errors
    /// Fails if there is no such account, if the password cannot be, or if the file cannot be read or written.
    pub fn set_password(path: &Path, name: &str, password: &str) -> Result<PasswordCost, UserError> {
        Self::change_entry(path, name, |entry, cost| {
            entry.password = cost.hash(password)?;
            Ok(())
        })
    }

    /// Disables an account of the file at `path`.
    ///
    /// # Errors
    /// Fails if there is no such account, or if the file cannot be read or written.
    pub fn disable_account(path: &Path, name: &str) -> Result<(), UserError> {
        Self::change_entry(path, name, |entry, _| {
            entry.disabled = true;
            Ok(())
        })
        .map(drop)
    }

    fn change_entry(
        path: &Path,
        name: &str,
        change: impl FnOnce(&mut Entry, PasswordCost) -> Result<(), UserError>,
    ) -> Result<PasswordCost, UserError> {
        let _lock = lock_parent(path)?;
        let mut file = Self::load(path)?;
        let cost = file.cost();
        let entry = file.file_content.users.iter_mut().find(|entry| entry.name == name);
        let unknown = || UserError::Unknown { path: path.to_owned(), name: name.to_owned() };
        change(entry.ok_or_else(unknown)?, cost)?;
        file.store_file()?;
        Ok(cost)
    }

    /// Checks the rules that the types do not enforce.
    fn check_rules(&self) -> Result<(), String> {
        if self.file_content.format != FORMAT {
            return Err(format!("format {} is unknown; this build knows {FORMAT}", self.file_content.format));
        }
        let mut account_names = BTreeSet::new();
        for entry in &self.file_content.users {
            let name = &entry.name;
            check_text("name", name, NAME_BYTES_MAX).map_err(|reason| format!("a user: {reason}"))?;
            let of_user = |reason: String| format!("user `{name}`: {reason}");
            check_text("person", &entry.person, NAME_BYTES_MAX).map_err(of_user)?;
            for party in &entry.parties {
                check_text("party", party, PARTY_BYTES_MAX).map_err(of_user)?;
            }
            if Role::from_name(&entry.role).is_none() {
                let role_names = Role::ALL.map(Role::name).join(", ");
                return Err(of_user(format!("`{}` is no role; there are {role_names}", entry.role)));
            }
            if !is_hash(&entry.password) {
                return Err(of_user("`password` is not the hash of one (argon2id)".to_owned()));
            }
            if !account_names.insert(name) {
                return Err(format!("there are two users `{name}`"));
            }
        }
        Ok(())
    }

    /// Writes the file: whole or not at all, and durable.
    fn store_file(&self) -> Result<(), UserError> {
        self.check_rules().map_err(UserError::Value)?;
        let text = toml::to_string(&self.file_content).expect("tables of text and numbers");
        let mut temporary = self.file_path.clone().into_os_string();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let write = || {
            // The file of a killed call. The lock shows that no process writes it.
            _ = fs::remove_file(&temporary);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &self.file_path)?;
            File::open(parent_dir(&self.file_path))?.sync_all()
        };
        write().map_err(|source| UserError::Io { doing: "write", path: self.file_path.clone(), source })
    }
}

fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.is_empty() || text.len() > bytes_max {
        return Err(format!("`{field}` has 1 to {bytes_max} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("`{field}` has a control character"));
    }
    Ok(())
}

fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn make_parent(path: &Path) -> Result<(), UserError> {
    let parent = parent_dir(path);
    let make_result = DirBuilder::new().recursive(true).mode(0o700).create(parent);
    make_result.map_err(|source| UserError::Io { doing: "make", path: parent.to_owned(), source })
}

/// Waits until no other process changes a file of the directory. The lock ends with the returned file.
fn lock_parent(path: &Path) -> Result<File, UserError> {
    let parent = parent_dir(path);
    let io = |source| UserError::Io { doing: "lock", path: parent.to_owned(), source };
    let directory = File::open(parent).map_err(io)?;
    flock(&directory, FlockOperation::LockExclusive).map_err(|errno| io(errno.into()))?;
    Ok(directory)
}

const FORMAT: u32 = 1;
const BYTES_MAX: u64 = 1 << 20;
/// The longest name of an account, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
const PARTY_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, person: &str) -> Account {
        let (name, person) = (name.to_owned(), person.to_owned());
        Account { name, person, role: Role::Analyst, parties: Vec::new(), is_disabled: false }
    }

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The least cost that argon2 takes: the tests are not about guessing.
    const CHEAP: &str = "format = 1\n[argon2]\nmemory_kib = 8\niterations = 1\n";

    #[test]
    fn who_knows_the_password_of_an_account_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.toml");
        write(&path, CHEAP, 0o600);
        let anna = Account { parties: vec!["T-1".to_owned()], ..account("anna", "Anna Berg") };
        assert!(UserFile::add_account(&path, &anna, "correct horse").unwrap().is_weak());
        UserFile::add_account(&path, &account("bo", "Bo Lind"), "battery staple").unwrap();
        let file = UserFile::load(&path).unwrap();
        assert_eq!(file.authenticate("anna", "correct horse").unwrap(), anna);
        for (name, password) in [("anna", "battery staple"), ("nobody", "correct horse"), ("anna", "")] {
            let refused = file.authenticate(name, password).unwrap_err();
            assert!(matches!(refused, UserError::Refused { .. }), "{refused}");
        }
        UserFile::set_password(&path, "anna", "another one").unwrap();
        UserFile::disable_account(&path, "bo").unwrap();
        let file = UserFile::load(&path).unwrap();
        assert!(file.authenticate("anna", "correct horse").is_err());
        assert_eq!(file.authenticate("anna", "another one").unwrap(), anna);
        assert!(matches!(file.authenticate("bo", "battery staple"), Err(UserError::Disabled { .. })));
        // A user without the password must not learn whether the account is disabled.
        assert!(matches!(file.authenticate("bo", "wrong password"), Err(UserError::Refused { .. })));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(UserFile::add_account(&path, &account("anna", "x"), "battery staple").is_err());
        let hidden = Account { parties: vec!["T-1\u{200b}".to_owned()], ..account("cy", "Cy") };
        for bad in [account("cy ", "Cy"), account("cy", "Cy\u{200b}"), account("cy", " Cy"), hidden] {
            let refused = UserFile::add_account(&path, &bad, "battery staple").unwrap_err();
            assert!(matches!(refused, UserError::Value(_)), "{refused}");
        }
        assert!(UserFile::disable_account(&path, "nobody").is_err());
        assert!(UserFile::set_password(&path, "anna", "short").is_err());
    }

    /// Fails if a session survives a change of the password with which it began.
    #[test]
    fn a_stamp_changes_with_the_password_and_ends_with_the_account() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.toml");
        write(&path, CHEAP, 0o600);
        for name in ["anna", "bo"] {
            UserFile::add_account(&path, &account(name, name), "correct horse").unwrap();
        }
        let stamp = |name: &str| UserFile::load(&path).unwrap().account_stamp(name);
        let (anna, bo) = (stamp("anna"), stamp("bo"));
        assert!(anna.is_some() && anna != bo && anna == stamp("anna"));
        // The same password again is another hash.
        UserFile::set_password(&path, "anna", "correct horse").unwrap();
        assert!(stamp("anna").is_some() && stamp("anna") != anna);
        assert_eq!(stamp("bo"), bo);
        UserFile::disable_account(&path, "bo").unwrap();
        assert_eq!((stamp("bo"), stamp("nobody")), (None, None));
    }

    #[test]
    fn a_new_file_has_the_secure_cost_and_a_directory_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cases/users.toml");
        let cost = UserFile::add_account(&path, &account("anna", "anna"), "correct horse").unwrap();
        assert!(!cost.is_weak());
        assert!(fs::read_to_string(&path).unwrap().contains("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// Fails if others may read the file, which gives them the hashes, or write it, which makes them any user.
    #[test]
    fn a_file_that_others_may_touch_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.toml");
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o601] {
            write(&path, CHEAP, mode);
            let refused = UserFile::load(&path).unwrap_err().to_string();
            assert!(refused.contains("chmod 600"), "{mode:o}: {refused}");
        }
    }

    #[test]
    fn a_file_that_is_no_user_file_is_refused_with_its_mistake() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.toml");
        let user = |name: &str, role: &str, hash: &str| {
            format!("[[user]]\nname = \"{name}\"\nperson = \"p\"\nrole = \"{role}\"\npassword = \"{hash}\"\n")
        };
        let hash = PasswordCost { memory_kib: 8, iterations: 1 }.hash("correct horse").unwrap();
        let greedy = hash.replace("m=8,", "m=4000000,");
        for (text, says) in [
            ("format = 2\n".to_owned(), "format 2 is unknown"),
            ("format = 1\nnope = 1\n".to_owned(), "line 2: unknown field `nope`"),
            (format!("format = 1\n{}", user("a", "king", &hash)), "`king` is no role"),
            (format!("format = 1\n{}", user("a", "admin", "secret")), "not the hash"),
            (format!("format = 1\n{}", user("a", "admin", &greedy)), "not the hash"),
            (format!("format = 1\n{}", user("", "admin", &hash)), "`name` has 1 to 64 bytes"),
            (format!("format = 1\n{}", user("a\\n", "admin", &hash)), "a control character"),
            (format!("format = 1\n{0}{0}", user("a", "admin", &hash)), "two users `a`"),
        ] {
            write(&path, &text, 0o600);
            let refused = UserFile::load(&path).unwrap_err().to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
        assert!(UserFile::load(dir.path()).unwrap_err().to_string().contains("no regular file"));
        assert!(matches!(UserFile::load(&dir.path().join("none")), Err(UserError::Missing { .. })));
    }
}
