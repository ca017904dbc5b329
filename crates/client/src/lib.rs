//! The client of the data server: asks, and reads answers as a store is read.
//!
//! ```text
//! DataQuery ──Client::query──▶ AnswerReader ──▶ rows, events
//! <message type="3"> … ──read_request──▶ DataRequest
//! universe file ─────────────┘
//! ```
//!
//! ```
//! use unitape_client::{open_universe, read_request};
//!
//! let request = read_request(
//!     br#"<message type="3" priority="0"><service name="DataAccess"/><db_name value="TaqDaily"/>
//!         <universe><symbol>IBM</symbol></universe><msg_types value="Trade,BBO"/>
//!         <time_range from="20141001 09:30:00" to="20141001 16:00:00" zone="America/New_York"/></message>"#,
//!     open_universe,
//! )?;
//! assert_eq!((request.dataset.as_str(), request.symbols.as_slice()), ("TaqDaily", ["IBM".to_owned()].as_slice()));
//! assert_eq!(request.since.map(|time| time.0), Some(1_412_170_200_000_000_000));
//! # Ok::<(), unitape_client::RequestError>(())
//! ```
//!
//! It does not know which datasets and instruments exist, or who may see them: the server does.

mod blocks;
mod connection;
mod error;
mod request;
mod trust;
pub mod wire;
mod xml;

pub use blocks::SentBlockReader;
pub use connection::{Client, DatasetAddress, keep_known_names};
pub use error::Error;
pub use request::DataRequest;
pub use trust::{Fingerprint, ServerTrust};
pub use xml::{RequestError, RequestFault, UniverseError, open_universe, read_request, refuse_universe};
