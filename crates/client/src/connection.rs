//! The client: logs in, asks, and reads answers.

use crate::blocks::SentBlockReader;
use crate::error::Error;
use crate::trust::{ServerTrust, is_untrusted};
use crate::wire::{
    ClientMessage, DataQuery, Login, SERVER_MESSAGE_MAX, ServerMessage, VERSION, read_message, write_message,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use unitape_store::{AnswerReader, ScanFilter};

/// The address of a dataset: `unitape://HOST:PORT/NAME`; or of a server, without `/NAME`.
///
/// ```
/// use unitape_client::DatasetAddress;
/// let address: DatasetAddress = "unitape://ticks.example:7411/taq".parse().unwrap();
/// assert_eq!((address.host.as_str(), address.port, address.dataset.as_str()), ("ticks.example", 7411, "taq"));
/// assert!("http://ticks.example/taq".parse::<DatasetAddress>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetAddress {
    /// The name or the address of the host.
    pub host: String,
    /// The port of the private channel.
    pub port: u16,
    /// The name of the dataset; empty where none is named.
    pub dataset: String,
}

impl std::str::FromStr for DatasetAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let address = text.strip_prefix("unitape://")?;
            let (server, dataset) = address.split_once('/').unwrap_or((address, ""));
            let (host, port) = server.rsplit_once(':')?;
            let host = match host.strip_prefix('[') {
                Some(inner) => inner.strip_suffix(']')?,
                None => Some(host).filter(|host| !host.contains(':'))?,
            };
            let is_whole = !host.is_empty() && !dataset.contains('/');
            let port = port.parse().ok()?;
            is_whole.then(|| Self { host: host.to_owned(), port, dataset: dataset.to_owned() })
        };
        parse().ok_or_else(|| Error::Address(text.to_owned()))
    }
}

/// A user who is logged in at a data server.
#[derive(Debug)]
pub struct Client {
    server: String,
    data: (String, u16),
    datasets: Vec<String>,
    channel: StreamOwned<ClientConnection, TcpStream>,
}

impl Client {
    /// Logs in.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, if it is not the one that `trust` knows, or if it refuses the user.
    pub fn log_in(
        host: &str,
        port: u16,
        trust: &ServerTrust,
        user: &str,
        password: &str,
    ) -> Result<Self, Error> {
        let server = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let connection_error = |doing, source| Error::Connection { doing, server: server.clone(), source };
        let stream = connect(host, port).map_err(|e| connection_error("connecting to", e))?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|e| connection_error("connecting to", io::Error::new(io::ErrorKind::InvalidInput, e)))?;
        let connection = ClientConnection::new(Arc::new(trust.config()), name)
            .map_err(|e| connection_error("connecting to", io::Error::other(e)))?;
        let channel = StreamOwned::new(connection, stream);
        let mut client = Self { server, data: (host.to_owned(), 0), datasets: Vec::new(), channel };
        let login = Login { version: VERSION, user: user.to_owned(), password: password.to_owned() };
        match client.exchange_message(&ClientMessage::Login(login))? {
            ServerMessage::Welcome(welcome) if welcome.version == VERSION => {
                client.data.1 = welcome.data_port;
                client.datasets = welcome.datasets;
                Ok(client)
            }
            ServerMessage::Refusal(refusal) => Err(Error::Refused(refusal)),
            _ => Err(client.protocol_error("it answers a log-in with something else")),
        }
    }

    /// Returns the datasets of which the user may see something.
    pub fn datasets(&self) -> &[String] {
        &self.datasets
    }

    /// Asks a question, and opens the data channel of its answer.
    ///
    /// # Errors
    /// Fails if the question is refused, or if a connection breaks.
    pub fn query(&mut self, query: &DataQuery) -> Result<AnswerReader, Error> {
        let message = match self.exchange_message(&ClientMessage::Query(query.clone()))? {
            ServerMessage::Answer(answer) => answer,
            ServerMessage::Refusal(refusal) => return Err(Error::Refused(refusal)),
            ServerMessage::Welcome(_) => return Err(self.protocol_error("it welcomes a user twice")),
        };
        let mut reader = AnswerReader::new(message.index, &query.dataset)?;
        if !reader.block_sizes().is_empty() {
            let connection_error = |source| Error::Connection {
                doing: "opening the data channel of",
                server: self.server.clone(),
                source,
            };
            let (host, port) = &self.data;
            let stream = connect(host, *port).map_err(connection_error)?;
            let blocks = SentBlockReader::open(stream, &message.ticket, reader.block_sizes())
                .map_err(connection_error)?;
            reader.set_fetch(Box::new(blocks));
        }
        Ok(reader)
    }

    fn exchange_message(&mut self, message: &ClientMessage) -> Result<ServerMessage, Error> {
        let send_result = write_message(&mut self.channel, message);
        let received = send_result.and_then(|()| read_message(&mut self.channel, SERVER_MESSAGE_MAX));
        match received {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.connection_error(io::ErrorKind::UnexpectedEof.into())),
            Err(source) => Err(self.connection_error(source)),
        }
    }

    fn connection_error(&self, source: io::Error) -> Error {
        let server = self.server.clone();
        match is_untrusted(&source) {
            Some(reason) => Error::Untrusted { server, reason },
            None => Error::Connection { doing: "asking", server, source: plain_reason(source) },
        }
    }

    fn protocol_error(&self, reason: &'static str) -> Error {
        Error::Protocol { server: self.server.clone(), reason }
    }
}

/// Leaves the names out of a filter that an answer does not have; returns those, and whether something is left to read.
pub fn keep_known_names(answer: &AnswerReader, filter: &mut ScanFilter) -> (Vec<String>, bool) {
    use unitape_model::NameKind;
    let answer_has = |kind, name: &String| answer.names().get(kind, name.as_bytes()).is_some();
    let asked = filter.symbols.len();
    let mut unknown: Vec<String> =
        filter.symbols.iter().filter(|symbol| !answer_has(NameKind::Instrument, symbol)).cloned().collect();
    filter.symbols.retain(|symbol| answer_has(NameKind::Instrument, symbol));
    let mut is_left = asked == 0 || !filter.symbols.is_empty();
    if let Some(venue) = filter.venue.take_if(|venue| !answer_has(NameKind::Venue, venue)) {
        unknown.push(venue);
        is_left = false;
    }
    (unknown, is_left)
}

/// Connects within [`CONNECT_TIMEOUT`] to the first address of the host that answers.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                stream.set_write_timeout(Some(SILENCE_MAX))?;
                return Ok(stream);
            }
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

/// Explains why nothing comes on the private channel any more: the messages of libraries name their own documentation.
fn plain_reason(error: io::Error) -> io::Error {
    explain_end(error, "the connection ended; a server that has too many connections closes new ones")
}

/// Explains why an answer ends before its last block.
pub(crate) fn broken_answer(error: io::Error) -> io::Error {
    explain_end(error, "the connection ended: the server stopped, the session ended, or the entitlement did")
}

fn explain_end(error: io::Error, ended: &str) -> io::Error {
    match error.kind() {
        // A write to a channel that the other side closed fails with one of the others, by the moment of the close.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted => io::Error::new(io::ErrorKind::ConnectionAborted, ended),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let message = format!("nothing came for {} seconds", SILENCE_MAX.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, message)
        }
        _ => error,
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that is silent for longer is taken for dead. It gathers the names of a large answer before its first byte.
const SILENCE_MAX: Duration = Duration::from_secs(300);
