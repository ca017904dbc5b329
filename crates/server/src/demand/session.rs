//! A session on the private channel: log-in, then queries.

use super::connections::Connection;
use super::entitlements::EntitlementFile;
use super::{DataServer, IDLE_MAX, LOGIN_MAX};
use crate::auth::LoginFailure;
use rustls::{ServerConnection, StreamOwned};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use unitape_client::wire::{
    AnswerMessage, CLIENT_MESSAGE_MAX, ClientMessage, DataQuery, Login, Refusal, ServerMessage, VERSION,
    Welcome, read_message, write_message,
};
use unitape_model::{ErrorCause, UnixNanos};
use unitape_run::users::{AccountStamp, UserError, UserFile};

/// Who has logged in.
struct KnownUser {
    name: String,
    /// The stamp of the account at the log-in.
    stamp: AccountStamp,
}

type Channel = StreamOwned<ServerConnection, TcpStream>;

/// Serves a session until it ends.
pub(super) fn serve(demand: &DataServer, connection: Connection) {
    let number = connection.number;
    let is_alive = Arc::new(AtomicBool::new(true));
    // Who left, or who does not speak our protocol, is no trouble of the server.
    _ = run_dialogue(demand, connection, &is_alive);
    is_alive.store(false, Ordering::Relaxed);
    demand.sessions.forget_connection(number);
}

fn run_dialogue(demand: &DataServer, connection: Connection, is_alive: &Arc<AtomicBool>) -> io::Result<()> {
    let Connection { number, stream } = connection;
    stream.set_read_timeout(Some(LOGIN_MAX))?;
    let tls = ServerConnection::new(demand.tls.clone()).map_err(io::Error::other)?;
    let mut channel = StreamOwned::new(tls, stream);
    let Some(user) = log_in(demand, &mut channel)? else { return Ok(()) };
    demand.sessions.mark_known(number);
    channel.sock.set_read_timeout(Some(IDLE_MAX))?;
    while let Some(message) = read_message(&mut channel, CLIENT_MESSAGE_MAX)? {
        let ClientMessage::Query(query) = message else {
            let refusal = text_refusal("you are logged in already".to_owned(), true);
            write_message(&mut channel, &ServerMessage::Refusal(refusal))?;
            continue;
        };
        let message = match answer_query(demand, &user, &query, is_alive) {
            Ok(answer) => ServerMessage::Answer(answer),
            Err(refusal) => ServerMessage::Refusal(refusal),
        };
        write_message(&mut channel, &message)?;
    }
    Ok(())
}

/// Reads the first message; returns the user, or `None` once it is refused.
fn log_in(demand: &DataServer, channel: &mut Channel) -> io::Result<Option<KnownUser>> {
    let message = read_message(channel, LOGIN_MESSAGE_MAX)?;
    let Some(ClientMessage::Login(Login { version, user, password })) = message else { return Ok(None) };
    let checked = if version == VERSION {
        authenticate(demand, &user, &password)
    } else {
        Err(text_refusal(format!("this server speaks version {VERSION}, not {version}"), false))
    };
    let password = password.into_bytes();
    std::hint::black_box(&wiped_copy(password));
    let (message, user) = match checked {
        Ok((datasets, stamp)) => {
            let welcome = Welcome { version: VERSION, data_port: demand.data_port, datasets };
            (ServerMessage::Welcome(welcome), Some(KnownUser { name: user, stamp }))
        }
        Err(refusal) => (ServerMessage::Refusal(refusal), None),
    };
    write_message(channel, &message)?;
    Ok(user)
}

fn wiped_copy(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.fill(0);
    bytes
}

/// Checks a password; returns the datasets of which the user may see something, and the stamp of the account.
fn authenticate(
    demand: &DataServer,
    user: &str,
    password: &str,
) -> Result<(Vec<String>, AccountStamp), Refusal> {
    let users = load_users(demand)?;
    let check = || {
        users.authenticate(user, password)?;
        users.account_stamp(user).ok_or_else(|| UserError::Disabled { name: user.to_owned() })
    };
    let stamp = demand.attempts.log_in(user, check).map_err(|failure| match failure {
        LoginFailure::Locked(wait) => {
            let text = format!("too many failed log-ins: try again in {} seconds", wait.as_secs() + 1);
            text_refusal(text, false)
        }
        // Of an account that is disabled as well: who has only a password learns nothing of it.
        LoginFailure::Refused => {
            text_refusal("there is no user with this name and password".to_owned(), false)
        }
        LoginFailure::Users(error) => unreadable_file(demand, &error.to_string()),
    })?;
    let entitlements = load_entitlements(demand)?;
    let now = now();
    let datasets = demand.stores.keys().filter(|name| !entitlements.valid_for(user, name, now).is_empty());
    Ok((datasets.cloned().collect(), stamp))
}

/// Answers a query: with what the user may read at this moment.
fn answer_query(
    demand: &DataServer,
    user: &KnownUser,
    query: &DataQuery,
    is_alive: &Arc<AtomicBool>,
) -> Result<AnswerMessage, Refusal> {
    let KnownUser { name: user, stamp } = user;
    if load_users(demand)?.account_stamp(user) != Some(*stamp) {
        let text = "this account cannot be used any more, or has another password: log in again";
        return Err(text_refusal(text.to_owned(), false));
    }
    let (entitlements, now) = (load_entitlements(demand)?, now());
    let entitled = entitlements.valid_for(user, &query.dataset, now);
    let store = demand.stores.get(&query.dataset).filter(|_| !entitled.is_empty());
    let Some(store) = store else {
        let text = format!("there is no dataset `{}` that you may read", query.dataset);
        return Err(text_refusal(text, true));
    };
    let store_refusal = |error: unitape_store::Error| match error.cause() {
        ErrorCause::Call => text_refusal(error.to_string(), true),
        _ => {
            demand.report_trouble(&format!("answering {user} of {}: {error}", query.dataset));
            let text = if error.is_refusal() {
                "the server cannot read this dataset: its system refuses to open a file, which its log names"
            } else {
                "the server cannot read this dataset; its log says why"
            };
            text_refusal(text.to_owned(), false)
        }
    };
    let store = store.open().map_err(store_refusal)?;
    let answer = store.answer(&query.filter(), query.depth, BLOCKS_MAX, &|access| {
        entitled.iter().any(|entitlement| entitlement.covers_leaf(access))
    });
    let answer = answer.map_err(store_refusal)?;
    let first_end = entitled.iter().filter_map(|entitlement| entitlement.until).min();
    let ticket = demand.tickets.issue(answer.blocks, answer.files, is_alive, first_end).map_err(|e| {
        demand.report_trouble(&format!("issuing a ticket: {e}"));
        text_refusal("the server cannot answer now".to_owned(), false)
    })?;
    Ok(AnswerMessage { ticket, index: answer.private_index })
}

fn load_users(demand: &DataServer) -> Result<UserFile, Refusal> {
    UserFile::load(&demand.users).map_err(|e| unreadable_file(demand, &e.to_string()))
}

fn load_entitlements(demand: &DataServer) -> Result<EntitlementFile, Refusal> {
    EntitlementFile::load(&demand.entitlements).map_err(|e| unreadable_file(demand, &e))
}

/// Says that a file of the server cannot be read. Nobody gets anything on the word of an older state of it.
fn unreadable_file(demand: &DataServer, error: &str) -> Refusal {
    demand.report_trouble(error);
    text_refusal("the server cannot read its users or entitlements; its log says why".to_owned(), false)
}

fn text_refusal(text: String, is_call: bool) -> Refusal {
    Refusal { text, is_call }
}

fn now() -> UnixNanos {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixNanos(since.map_or(0, |since| since.as_nanos() as i64))
}

/// The longest log-in.
const LOGIN_MESSAGE_MAX: usize = 16 << 10;
/// Blocks of an answer at most.
const BLOCKS_MAX: usize = 100_000;
