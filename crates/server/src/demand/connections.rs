//! The connections of a data server, so that they can be closed from outside.

use super::{CONNECTIONS_MAX, LOGIN_MAX};
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// All connections that are open.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    stream: TcpStream,
    /// When it must be known whose connection it is; `None` once it is.
    deadline: Option<Instant>,
}

/// A connection, and its number in the table.
#[derive(Debug)]
pub(super) struct Connection {
    pub number: u64,
    pub stream: TcpStream,
}

impl ConnectionTable {
    /// Takes a connection; `None` if there are too many.
    ///
    /// # Errors
    /// Fails if the system gives no second handle of it.
    pub fn take(&self, stream: TcpStream) -> io::Result<Option<Connection>> {
        let mut inner = self.lock();
        if inner.open.len() >= CONNECTIONS_MAX {
            return Ok(None);
        }
        let number = inner.next;
        inner.next += 1;
        let entry = Entry { stream: stream.try_clone()?, deadline: Some(Instant::now() + LOGIN_MAX) };
        inner.open.insert(number, entry);
        Ok(Some(Connection { number, stream }))
    }

    /// Notes that it is known whose connection this is.
    pub fn admit(&self, number: u64) {
        if let Some(entry) = self.lock().open.get_mut(&number) {
            entry.deadline = None;
        }
    }

    /// Forgets a connection that has ended.
    pub fn forget(&self, number: u64) {
        self.lock().open.remove(&number);
    }

    /// Closes those that have not said in time whose they are.
    pub fn close_late(&self) {
        let now = Instant::now();
        for entry in self.lock().open.values().filter(|entry| entry.deadline.is_some_and(|at| at < now)) {
            _ = entry.stream.shutdown(Shutdown::Both);
        }
    }

    /// Closes all.
    pub fn close_all(&self) {
        for entry in self.lock().open.values() {
            _ = entry.stream.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
