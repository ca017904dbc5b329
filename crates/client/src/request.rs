//! The request for data, independent of the form in which it was written.

use unitape_model::UnixNanos;
use unitape_store::TickSchema;

/// The data that a user asks a data server for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataRequest {
    /// The name of the dataset, 1 to 255 bytes.
    pub dataset: String,
    /// The instruments by symbol, each once, in the order of the request. Empty: all that the user may see.
    pub symbols: Vec<String>,
    /// The schemas, each once, in the order of the request. There is at least one.
    pub schemas: Vec<TickSchema>,
    /// The first moment, inclusive. `None`: from the start of the dataset.
    pub since: Option<UnixNanos>,
    /// The first moment after the range. `None`: to the end of the dataset.
    pub until: Option<UnixNanos>,
    /// 0 to 9. Of one user's requests, the server answers those with the smallest number first.
    pub priority: u8,
}

/// Returns the schema of a message type: its name in capital or small letters, in the singular or the plural.
pub(crate) fn schema_of_message_type(name: &str) -> Option<TickSchema> {
    let name = name.to_ascii_lowercase();
    let singular = SINGULARS.iter().find(|(singular, _)| *singular == name);
    singular.map(|(_, schema)| *schema).or_else(|| TickSchema::from_name(&name))
}

/// The singular forms of the schemas that are named in the plural.
const SINGULARS: [(&str, TickSchema); 7] = [
    ("trade", TickSchema::Trades),
    ("quote", TickSchema::Quotes),
    ("statistic", TickSchema::Statistics),
    ("order", TickSchema::Orders),
    ("comm", TickSchema::Comms),
    ("payment", TickSchema::Payments),
    ("alert", TickSchema::Alerts),
];
