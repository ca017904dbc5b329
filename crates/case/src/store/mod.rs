//! The database of cases: SQLite in `DIR/cases.db`. All SQL is in this folder.
//!
//! A process writes in transactions that take the lock of the database first ([`write::CaseWriter`]), so what an action was
//! checked against is what it changes. Others wait for up to [`BUSY`]. Readers are not held up (WAL). A commit is flushed to the
//! disk (`synchronous = FULL`).

mod read;
mod schema;
mod write;

pub use read::{AlertTapeRecord, CaseFilter, CasePage};
pub(crate) use read::{RawCase, RawRow, StoreHead};
pub(crate) use schema::{ACTION_COLUMNS, ALERT_COLUMNS};
pub(crate) use write::{AlertTapeCursor, CaseWriter, NewAction, NewAlert};

use crate::Error;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The cases in a directory.
#[derive(Debug)]
pub struct CaseStore {
    store_dir: PathBuf,
    database_path: PathBuf,
    connection: Connection,
}

impl CaseStore {
    /// Opens the cases in `dir`.
    ///
    /// # Errors
    /// Fails if there are none, if others may read or write them, if the database is another one, of a newer format or damaged.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        check_mode(dir, 0o700)?;
        check_mode(&path, 0o600)?;
        Self::open_file(dir, path)
    }

    /// Opens the cases in `dir`, or makes the directory and the database there.
    ///
    /// # Errors
    /// As [`CaseStore::open`], except that there may be none; or if the directory or the file cannot be made.
    pub fn open_or_create(dir: &Path) -> Result<Self, Error> {
        let io = |doing, path: &Path, source| Error::Io { doing, path: path.to_owned(), source };
        match DirBuilder::new().mode(0o700).create(dir) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io("make", dir, e)),
        }
        check_mode(dir, 0o700)?;
        let path = dir.join(FILE);
        if !path.try_exists().map_err(|e| io("look at", &path, e))? {
            create_file(dir, &path)?;
        }
        check_mode(&path, 0o600)?;
        Self::open_file(dir, path)
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.store_dir
    }

    fn open_file(dir: &Path, path: PathBuf) -> Result<Self, Error> {
        // SQLite takes an empty file for an empty database, and removes the log beside it.
        check_header(&path)?;
        let store = Self::connect(dir, path)?;
        if schema::application_id(&store.connection).map_err(|e| store.error(e))? != schema::APPLICATION_ID {
            let reason = "it is an SQLite database of something else".to_owned();
            return Err(Error::Foreign { path: store.database_path, reason });
        }
        let version = schema::format(&store.connection).map_err(|e| store.error(e))?;
        if version != schema::FORMAT {
            return Err(Error::ForeignVersion {
                path: store.database_path,
                version,
                supported_version: schema::FORMAT,
            });
        }
        store.use_wal()?;
        store
            .connection
            .execute_batch(
                "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
            )
            .map_err(|e| store.error(e))?;
        Ok(store)
    }

    fn connect(dir: &Path, path: PathBuf) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags);
        let connection = connection.map_err(|e| Error::from_database(&path, e))?;
        let store = Self { store_dir: dir.to_owned(), database_path: path, connection };
        store.connection.busy_timeout(BUSY).map_err(|e| store.error(e))?;
        Ok(store)
    }

    /// Puts the database into write-ahead mode, in which it stays. SQLite does not wait for others here, so this does.
    fn use_wal(&self) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            let mode =
                self.connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
            match mode.map_err(|e| self.error(e)) {
                Ok(mode) if mode == "wal" => return Ok(()),
                Ok(mode) => return Err(Error::JournalMode { path: self.database_path.clone(), mode }),
                Err(Error::Busy { .. }) if since.elapsed() < BUSY => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(e) => return Err(e),
            }
        }
    }

    pub(crate) fn error(&self, source: rusqlite::Error) -> Error {
        Error::from_database(&self.database_path, source)
    }
}

/// Makes the database at `path`, unless another process is faster. It gets its name once it is complete, so a file of this name
/// that is no database was damaged.
fn create_file(dir: &Path, path: &Path) -> Result<(), Error> {
    let io = |doing, path: &Path, source| Error::Io { doing, path: path.to_owned(), source };
    let directory = File::open(dir).map_err(|e| io("open", dir, e))?;
    directory.lock().map_err(|e| io("lock", dir, e))?;
    if path.try_exists().map_err(|e| io("look at", path, e))? {
        return Ok(());
    }
    let log = dir.join(format!("{FILE}-wal"));
    if log.try_exists().map_err(|e| io("look at", &log, e))? {
        let reason = format!("it is gone, and its log {} is still there", log.display());
        return Err(Error::Foreign { path: path.to_owned(), reason });
    }
    let new_path = dir.join(format!("{FILE}.new"));
    // Those of a call that was killed; the lock says that nobody writes them.
    for ending in ["", "-wal", "-shm", "-journal"] {
        let file = dir.join(format!("{FILE}.new{ending}"));
        match fs::remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io("remove", &file, e)),
            _ => {}
        }
    }
    // SQLite makes its files with the permissions of the database.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new_path);
    file.map_err(|e| io("make", &new_path, e))?;
    let mut store = CaseStore::connect(dir, new_path.clone())?;
    schema::create(&mut store.connection, &random_id()?).map_err(|e| store.error(e))?;
    store.connection.close().map_err(|(_, e)| Error::from_database(&new_path, e))?;
    fs::rename(&new_path, path).and_then(|()| directory.sync_all()).map_err(|e| io("make", path, e))
}

/// Fails if the file at `path` does not begin as an SQLite database does.
fn check_header(path: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { doing: "read", path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    let foreign = |reason: String| Err(Error::Foreign { path: path.to_owned(), reason });
    if !metadata.is_file() {
        return foreign("it is not a file".to_owned());
    }
    let mut header = Vec::new();
    file.take(HEADER_BYTES).read_to_end(&mut header).map_err(io)?;
    if (header.len() as u64) < HEADER_BYTES {
        return foreign(format!("it has {} bytes", header.len()));
    }
    if !header.starts_with(MAGIC) {
        return foreign("it does not begin as an SQLite database does".to_owned());
    }
    Ok(())
}

/// Fails if others may use what is at `path`.
fn check_mode(path: &Path, wanted: u32) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            let dir = if wanted == 0o700 { path } else { path.parent().unwrap_or(path) };
            Error::Missing { path: dir.to_owned() }
        }
        _ => Error::Io { doing: "look at", path: path.to_owned(), source },
    })?;
    let mode = metadata.permissions().mode() & 0o7777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(Error::Open { path: path.to_owned(), mode, required_mode: wanted }),
    }
}

fn random_id() -> Result<[u8; 16], Error> {
    let path = Path::new("/dev/urandom");
    let mut id = [0; 16];
    let read_result = File::open(path).and_then(|mut file| file.read_exact(&mut id));
    read_result.map_err(|source| Error::Io { doing: "read", path: path.to_owned(), source })?;
    Ok(id)
}

const FILE: &str = "cases.db";

/// The size of the header of an SQLite database.
const HEADER_BYTES: u64 = 100;
/// The bytes with which it begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The longest time that a process waits for another one that writes.
pub(crate) const BUSY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn new_store(dir: &Path) -> CaseStore {
        CaseStore::open_or_create(&dir.join("cases")).unwrap()
    }

    fn refusal(dir: &Path) -> String {
        CaseStore::open(&dir.join("cases")).unwrap_err().to_string()
    }

    #[test]
    fn cases_are_private() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refusal(dir.path()).contains("there are no cases here"));
        let mut store = new_store(dir.path());
        store.begin_write().unwrap().commit().unwrap();
        let mode = |name: &str| fs::metadata(store.dir().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("."), 0o700);
        // Some writes make the files of SQLite.
        for name in ["cases.db", "cases.db-wal", "cases.db-shm"] {
            assert_eq!(mode(name), 0o600, "{name}");
        }
        fs::set_permissions(store.dir().join(FILE), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(refusal(dir.path()).contains("chmod 600"));
        fs::set_permissions(store.dir(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(refusal(dir.path()).contains("chmod 700"));
    }

    #[test]
    fn another_database_and_another_format_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = new_store(dir.path());
        store.connection.pragma_update(None, "user_version", 2).unwrap();
        assert!(refusal(dir.path()).contains("format 2, and this build knows 1"));
        store.connection.pragma_update(None, "application_id", 7).unwrap();
        assert!(refusal(dir.path()).contains("of something else"));
    }

    /// An emptied database once was an intact one without actions.
    #[test]
    fn a_file_that_is_no_database_of_cases_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = new_store(dir.path()).dir().join(FILE);
        let intact = fs::read(&path).unwrap();
        let foreign_db = dir.path().join("other.db");
        Connection::open(&foreign_db).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        let empty = dir.path().join("empty.db");
        Connection::open(&empty).unwrap().execute_batch("VACUUM").unwrap();
        let files = [&b""[..], b"S", &intact[..99], &intact[..100], &intact[..intact.len() / 2]];
        let files = files.map(<[u8]>::to_vec).into_iter();
        for bytes in files.chain([vec![0; 4096], fs::read(&foreign_db).unwrap(), fs::read(&empty).unwrap()]) {
            fs::write(&path, &bytes).unwrap();
            let cases = dir.path().join("cases");
            for refused in [CaseStore::open(&cases), CaseStore::open_or_create(&cases)] {
                let refused = refused.unwrap_err();
                assert_eq!(
                    refused.cause(),
                    unitape_model::ErrorCause::Data,
                    "{} bytes: {refused}",
                    bytes.len()
                );
                assert!(refused.to_string().contains("cases.db: "), "{refused}");
            }
            assert_eq!(fs::read(&path).unwrap(), bytes, "what is left is evidence");
        }
    }

    /// SQLite would take the log of a database that is gone for that of the new one.
    #[test]
    fn a_log_without_its_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = new_store(dir.path());
        store.begin_write().unwrap().commit().unwrap();
        fs::remove_file(store.dir().join(FILE)).unwrap();
        let refused = CaseStore::open_or_create(store.dir()).unwrap_err().to_string();
        assert!(refused.contains("cases.db-wal is still there"), "{refused}");
    }

    #[test]
    fn what_a_killed_creation_left_is_made_anew_and_many_create_one() {
        let dir = tempfile::tempdir().unwrap();
        let cases = dir.path().join("cases");
        DirBuilder::new().mode(0o700).create(&cases).unwrap();
        fs::write(cases.join("cases.db.new"), "half").unwrap();
        let open = || CaseStore::open_or_create(&cases).unwrap().id().unwrap();
        let ids: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert!(!cases.join("cases.db.new").exists());
    }

    /// A damaged page once looked like an empty list.
    #[test]
    fn a_damaged_database_is_called_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = new_store(dir.path()).dir().join(FILE);
        let intact = fs::read(&path).unwrap();
        for from in [0, 100] {
            let mut bytes = intact.clone();
            bytes[from..from + 60].fill(0xee);
            fs::write(&path, &bytes).unwrap();
            let refused = CaseStore::open(&dir.path().join("cases")).unwrap_err();
            assert!(matches!(refused, Error::Damaged { .. } | Error::Foreign { .. }), "{refused}");
        }
        fs::write(&path, "no database at all, but long enough to be looked at").unwrap();
        assert!(refusal(dir.path()).contains("damaged"));
    }

    #[test]
    fn a_full_disk_leaves_nothing_half_done() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = new_store(dir.path());
        let pages: i64 = store.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        store.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        let text = "x".repeat(60_000);
        let mut writer = store.begin_write().unwrap();
        let mut note = NewAction::new(crate::ActionKind::Note, 5);
        note.text = Some(&text);
        let refused = writer.append_action(&note).and_then(|_| writer.commit()).unwrap_err();
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        assert_eq!(store.head().unwrap().actions, 0);
        store.connection.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(())).unwrap();
        let mut writer = store.begin_write().unwrap();
        writer.append_action(&note).unwrap();
        writer.commit().unwrap();
        assert_eq!(store.head().unwrap().actions, 1);
    }
}
