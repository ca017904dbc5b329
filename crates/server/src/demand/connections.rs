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
    table_state: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next_number: u64,
    open_connections: HashMap<u64, Entry>,
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
    pub fn insert_connection(&self, stream: TcpStream) -> io::Result<Option<Connection>> {
        let mut inner = self.lock_table();
        if inner.open_connections.len() >= CONNECTIONS_MAX {
            return Ok(None);
        }
        let number = inner.next_number;
        inner.next_number += 1;
        let entry = Entry { stream: stream.try_clone()?, deadline: Some(Instant::now() + LOGIN_MAX) };
        inner.open_connections.insert(number, entry);
        Ok(Some(Connection { number, stream }))
    }

    /// Notes that it is known whose connection this is.
    pub fn mark_known(&self, number: u64) {
        if let Some(entry) = self.lock_table().open_connections.get_mut(&number) {
            entry.deadline = None;
        }
    }

    /// Forgets a connection that has ended.
    pub fn forget_connection(&self, number: u64) {
        self.lock_table().open_connections.remove(&number);
    }

    /// Closes those that have not said in time whose they are.
    pub fn close_late(&self) {
        let now = Instant::now();
        for entry in self
            .lock_table()
            .open_connections
            .values()
            .filter(|entry| entry.deadline.is_some_and(|deadline| deadline < now))
        {
            _ = entry.stream.shutdown(Shutdown::Both);
        }
    }

    /// Closes all.
    pub fn close_all(&self) {
        for entry in self.lock_table().open_connections.values() {
            _ = entry.stream.shutdown(Shutdown::Both);
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, Inner> {
        self.table_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A connection of our own, and its other end.
    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, far)
    }

    /// A client that says nothing would hold a connection for ever; one that has logged in may be silent.
    #[test]
    fn a_connection_that_is_late_is_closed_unless_it_is_admitted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let table = ConnectionTable::default();
        let mut all: Vec<_> = (0..3)
            .map(|_| {
                let (near, far) = pair(&listener);
                (table.insert_connection(near).unwrap().unwrap(), far)
            })
            .collect();
        table.mark_known(all[1].0.number);
        let late = Instant::now().checked_sub(std::time::Duration::from_millis(1));
        table.lock_table().open_connections.get_mut(&all[0].0.number).unwrap().deadline = late;
        // Each far end has a byte to read before the end, if there is one.
        let is_closed = |(connection, far): &mut (Connection, TcpStream)| {
            let sent = connection.stream.write_all(b"x");
            let mut byte = [0];
            sent.is_err() || !matches!(far.read(&mut byte), Ok(1))
        };
        table.close_late();
        assert_eq!(all.iter_mut().map(is_closed).collect::<Vec<_>>(), [true, false, false]);
        table.close_all();
        assert!(all.iter_mut().all(is_closed));
        all.iter().for_each(|(connection, _)| table.forget_connection(connection.number));
        assert!(table.lock_table().open_connections.is_empty());
    }

    #[test]
    fn there_is_room_again_where_one_has_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let table = ConnectionTable::default();
        let insert_next =
            || table.insert_connection(pair(&listener).0).unwrap().map(|connection| connection.number);
        // Only the table keeps them open.
        let numbers: Vec<u64> = (0..CONNECTIONS_MAX).map(|_| insert_next().unwrap()).collect();
        assert_eq!(insert_next(), None);
        table.forget_connection(numbers[7]);
        let number = insert_next().unwrap();
        assert!(!numbers.contains(&number), "a number is never used twice");
        assert_eq!(insert_next(), None);
    }
}
