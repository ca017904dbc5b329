//! Tickets: each opens one data channel, once.

use crate::auth::random_token;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use unitape_model::UnixNanos;
use unitape_store::SealedBlock;

/// The right to one answer's blocks.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    /// The blocks of an answer.
    pub blocks: Arc<[SealedBlock]>,
    /// Their files.
    pub files: Arc<[PathBuf]>,
    /// Whether the session that asked for them is still there.
    pub is_alive: Arc<AtomicBool>,
    /// When the entitlement ends.
    pub until: Option<UnixNanos>,
    issued: Instant,
}

/// The tickets that nobody has used yet.
#[derive(Debug, Default)]
pub(super) struct TicketTable {
    /// By the hash of the ticket: a dump of the memory gives no ticket that works.
    tickets: Mutex<HashMap<[u8; 32], Ticket>>,
}

impl TicketTable {
    /// Issues a ticket for the blocks of an answer. A session has [`UNUSED_MAX`] unused tickets at most: the oldest one ends.
    ///
    /// # Errors
    /// Fails if the system gives no random bytes.
    pub fn issue(
        &self,
        blocks: Vec<SealedBlock>,
        files: Vec<PathBuf>,
        is_alive: &Arc<AtomicBool>,
        until: Option<UnixNanos>,
    ) -> Result<String, getrandom::Error> {
        let token = random_token()?;
        let ticket = Ticket {
            blocks: blocks.into(),
            files: files.into(),
            is_alive: is_alive.clone(),
            until,
            issued: Instant::now(),
        };
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, ticket| ticket.is_good());
        let unused = tickets.iter().filter(|(_, ticket)| Arc::ptr_eq(&ticket.is_alive, is_alive));
        let (count, oldest) = (unused.clone().count(), unused.min_by_key(|(_, ticket)| ticket.issued));
        if let Some(oldest) = oldest.map(|(key, _)| *key).filter(|_| count >= UNUSED_MAX) {
            tickets.remove(&oldest);
        }
        tickets.insert(key_of(&token), ticket);
        Ok(token)
    }

    /// Takes the ticket with these bytes: it cannot be used again.
    pub fn take_ticket(&self, bytes: &[u8; 32]) -> Option<Ticket> {
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.remove(&key_of(&token)).filter(Ticket::is_good)
    }
}

impl Ticket {
    fn is_good(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed) && self.issued.elapsed() < LIFETIME
    }
}

fn key_of(token: &str) -> [u8; 32] {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// A ticket that nobody uses ends.
const LIFETIME: Duration = Duration::from_secs(60);
/// Unused tickets of a session at most. A client opens its data channel before it asks again.
const UNUSED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(token: &str) -> [u8; 32] {
        let byte = |n| u8::from_str_radix(&token[2 * n..2 * n + 2], 16).unwrap();
        std::array::from_fn(byte)
    }

    /// A ticket that opens two channels would let somebody who saw the first one read along.
    #[test]
    fn a_ticket_works_once_and_with_its_session() {
        let (table, alive) = (TicketTable::default(), Arc::new(AtomicBool::new(true)));
        let issue = || bytes_of(&table.issue(Vec::new(), Vec::new(), &alive, None).unwrap());
        let (first, second) = (issue(), issue());
        assert_ne!(first, second);
        assert!(table.take_ticket(&[0; 32]).is_none());
        assert!(table.take_ticket(&first).is_some() && table.take_ticket(&first).is_none());
        alive.store(false, Ordering::Relaxed);
        assert!(table.take_ticket(&second).is_none());
    }

    /// Each unused ticket keeps the blocks of an answer: who asks again and again must not fill the memory of the server.
    #[test]
    fn a_session_has_few_unused_tickets_and_the_oldest_ends() {
        let (table, alive, neighbour_alive) =
            (TicketTable::default(), Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
        let neighbour = bytes_of(&table.issue(Vec::new(), Vec::new(), &neighbour_alive, None).unwrap());
        let tickets: Vec<_> = (0..UNUSED_MAX + 3)
            .map(|_| bytes_of(&table.issue(Vec::new(), Vec::new(), &alive, None).unwrap()))
            .collect();
        assert_eq!(table.tickets.lock().unwrap().len(), UNUSED_MAX + 1);
        let (ended, good) = tickets.split_at(3);
        assert!(ended.iter().all(|ticket| table.take_ticket(ticket).is_none()));
        assert!(good.iter().all(|ticket| table.take_ticket(ticket).is_some()));
        assert!(table.take_ticket(&neighbour).is_some());
    }
}
