//! The XML form of a request for data.
//!
//! ```text
//! bytes ──Lexer──▶ tags, attributes, text ──RequestReader──▶ DataRequest
//!        ≤ 1 MiB, UTF-8, no DTD             known names alone, three levels
//! ```
//!
//! `docs/data-request.md` documents the elements, and `docs/schema/data-request.xsd` is their schema. The schema and this reader
//! are held to the same cases, `vectors/requests/cases.toml`.

mod error;
mod lexer;
mod time;
mod universe;

use std::path::{Path, PathBuf};

use unitape_model::UnixNanos;
use unitape_store::TickSchema;

use crate::request::{DataRequest, schema_of_message_type};
use error::excerpt;
pub use error::{RequestError, RequestFault, UniverseError};
use lexer::{AttributeValue, Lexer, Markup, StartTag};
use time::RequestZone;
use universe::SymbolList;
pub use universe::{open_universe, refuse_universe};

/// Reads a request for data.
///
/// `universe` returns the bytes of the file that `<universe_file>` names; it is called at most once, when the rest of the
/// request has been read. Pass [`open_universe`] for a request of one's own, and [`refuse_universe`] in a server.
///
/// # Errors
/// The first mistake of the request, with its line and column.
pub fn read_request(
    xml: &[u8],
    universe: impl FnOnce(&Path) -> Result<Vec<u8>, UniverseError>,
) -> Result<DataRequest, RequestError> {
    let mut reader = RequestReader { lexer: Lexer::new(xml)?, request_parts: RequestParts::default() };
    let root = match reader.lexer.next_markup(None)? {
        Markup::Start(tag) if tag.name == "message" => tag,
        Markup::Start(tag) => {
            return Err(reader.lexer.error(tag.offset, RequestFault::Root { name: excerpt(tag.name) }));
        }
        Markup::End | Markup::Eof => return Err(reader.lexer.error_here(RequestFault::Empty)),
    };
    let priority = reader.read_message(root)?;
    if !matches!(reader.lexer.next_markup(None), Ok(Markup::Eof)) {
        return Err(reader.lexer.error_here(RequestFault::Trailing));
    }
    reader.finish_request(root, priority, universe)
}

struct RequestReader<'x> {
    lexer: Lexer<'x>,
    request_parts: RequestParts,
}

/// The elements that were read so far.
#[derive(Default)]
struct RequestParts {
    has_service: bool,
    dataset: Option<String>,
    universe: Option<Universe>,
    schemas: Option<Vec<TickSchema>>,
    range: Option<TimeRange>,
}

enum Universe {
    Symbols(Vec<String>),
    /// A file, and the offset of its element.
    File(PathBuf, usize),
}

#[derive(Default)]
struct TimeRange {
    first_ns: Option<UnixNanos>,
    end_ns: Option<UnixNanos>,
}

impl RequestReader<'_> {
    /// Reads the root element and all that is in it. Returns the priority.
    fn read_message(&mut self, root: StartTag<'_>) -> Result<u8, RequestError> {
        let head = self.lexer.read_attributes("message", ["type", "priority"])?;
        let [message_type, priority] = head.values;
        let message_type = self.require_value(message_type, root, "message", "type", "3")?;
        if message_type.value != "3" {
            let text = excerpt(&message_type.value);
            return Err(self.lexer.error(message_type.offset, RequestFault::MessageType { text }));
        }
        let priority = self.require_value(priority, root, "message", "priority", "0")?;
        let digit = match priority.value.as_bytes() {
            [digit @ b'0'..=b'9'] => digit - b'0',
            _ => {
                let text = excerpt(&priority.value);
                return Err(self.lexer.error(priority.offset, RequestFault::Priority { text }));
            }
        };
        if !head.is_empty_element {
            while let Markup::Start(tag) = self.lexer.next_markup(Some("message"))? {
                self.read_child(tag)?;
            }
        }
        Ok(digit)
    }

    fn read_child(&mut self, tag: StartTag<'_>) -> Result<(), RequestError> {
        let doubled =
            |lexer: &Lexer<'_>, name| lexer.error(tag.offset, RequestFault::DoubledElement { name });
        match tag.name {
            "service" => {
                if self.request_parts.has_service {
                    return Err(doubled(&self.lexer, "service"));
                }
                let [name] = self.read_leaf("service", ["name"])?;
                let name = self.require_value(name, tag, "service", "name", "DataAccess")?;
                if name.value != "DataAccess" {
                    let fault = RequestFault::Service { text: excerpt(&name.value) };
                    return Err(self.lexer.error(name.offset, fault));
                }
                self.request_parts.has_service = true;
            }
            "db_name" => {
                if self.request_parts.dataset.is_some() {
                    return Err(doubled(&self.lexer, "db_name"));
                }
                let [value] = self.read_leaf("db_name", ["value"])?;
                let value = self.require_value(value, tag, "db_name", "value", "TaqDaily")?;
                self.request_parts.dataset = Some(self.check_name(value, &DATASET)?);
            }
            "universe_file" => {
                self.check_universe(tag, "universe_file")?;
                let [name, location] = self.read_leaf("universe_file", ["name", "location"])?;
                let name = self.require_value(name, tag, "universe_file", "name", "symbols.txt")?;
                let location = self.require_value(location, tag, "universe_file", "location", ".")?;
                let name = self.check_name(name, &FILE)?;
                let path = Path::new(&self.check_name(location, &FOLDER)?).join(name);
                self.request_parts.universe = Some(Universe::File(path, tag.offset));
            }
            "universe" => {
                self.check_universe(tag, "universe")?;
                self.request_parts.universe = Some(Universe::Symbols(self.read_universe(tag)?));
            }
            "msg_types" => {
                if self.request_parts.schemas.is_some() {
                    return Err(doubled(&self.lexer, "msg_types"));
                }
                let [value] = self.read_leaf("msg_types", ["value"])?;
                let value = self.require_value(value, tag, "msg_types", "value", "Trade,BBO")?;
                self.request_parts.schemas = Some(self.parse_schemas(&value)?);
            }
            "time_range" => {
                if self.request_parts.range.is_some() {
                    return Err(doubled(&self.lexer, "time_range"));
                }
                self.request_parts.range = Some(self.read_range(tag)?);
            }
            _ => return Err(self.lexer.unknown_element(tag, "message", &CHILDREN)),
        }
        Ok(())
    }

    /// Refuses a second universe, of the same or of the other form.
    fn check_universe(&self, tag: StartTag<'_>, name: &'static str) -> Result<(), RequestError> {
        let fault = match (&self.request_parts.universe, name) {
            (None, _) => return Ok(()),
            (Some(Universe::File(..)), "universe_file") | (Some(Universe::Symbols(_)), "universe") => {
                RequestFault::DoubledElement { name }
            }
            (Some(_), _) => RequestFault::TwoUniverses,
        };
        Err(self.lexer.error(tag.offset, fault))
    }

    fn read_universe(&mut self, universe: StartTag<'_>) -> Result<Vec<String>, RequestError> {
        let mut symbols = SymbolList::default();
        if !self.lexer.read_attributes("universe", [])?.is_empty_element {
            while let Markup::Start(tag) = self.lexer.next_markup(Some("universe"))? {
                if tag.name != "symbol" {
                    return Err(self.lexer.unknown_element(tag, "universe", &["symbol"]));
                }
                let is_empty = self.lexer.read_attributes("symbol", [])?.is_empty_element;
                let text = if is_empty { String::new() } else { self.lexer.read_text("symbol")? };
                let pushed = symbols.push(&text, None);
                pushed.map_err(|error| self.lexer.error(tag.offset, RequestFault::Universe(error)))?;
            }
        }
        symbols.finish().map_err(|error| self.lexer.error(universe.offset, RequestFault::Universe(error)))
    }

    fn read_range(&mut self, tag: StartTag<'_>) -> Result<TimeRange, RequestError> {
        let [from, to, zone] = self.read_leaf("time_range", ["from", "to", "zone"])?;
        let zone = match zone {
            None => RequestZone::UTC,
            Some(name) => {
                RequestZone::by_name(&name.value).map_err(|fault| self.lexer.error(name.offset, fault))?
            }
        };
        let parse = |value: Option<&AttributeValue>| match value {
            None => Ok(None),
            Some(value) => {
                let time = zone.parse_time(&value.value);
                time.map(Some).map_err(|fault| self.lexer.error(value.offset, fault))
            }
        };
        let range = TimeRange { first_ns: parse(from.as_ref())?, end_ns: parse(to.as_ref())? };
        match (range.first_ns, range.end_ns) {
            (None, None) => Err(self.lexer.error(tag.offset, RequestFault::RangeEmpty)),
            (Some(since), Some(until)) if since > until => {
                Err(self.lexer.error(tag.offset, RequestFault::RangeOrder))
            }
            _ => Ok(range),
        }
    }

    fn parse_schemas(&self, value: &AttributeValue) -> Result<Vec<TickSchema>, RequestError> {
        let mut schemas = Vec::new();
        for name in value.value.split(',') {
            let name = name.trim_matches(' ');
            let Some(schema) = schema_of_message_type(name) else {
                let hint = lexer::hint(name, &TickSchema::ALL.map(TickSchema::name));
                let fault = RequestFault::Schema { text: excerpt(name), hint };
                return Err(self.lexer.error(value.offset, fault));
            };
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
        }
        Ok(schemas)
    }

    /// Reads an element that has attributes alone.
    fn read_leaf<const N: usize>(
        &mut self,
        element: &'static str,
        names: [&'static str; N],
    ) -> Result<[Option<AttributeValue>; N], RequestError> {
        let head = self.lexer.read_attributes(element, names)?;
        if !head.is_empty_element {
            self.lexer.read_empty(element)?;
        }
        Ok(head.values)
    }

    /// Returns the value of an attribute that must be there.
    fn require_value(
        &self,
        value: Option<AttributeValue>,
        tag: StartTag<'_>,
        element: &'static str,
        name: &'static str,
        example: &'static str,
    ) -> Result<AttributeValue, RequestError> {
        let fault = RequestFault::MissingAttribute { name, element, example };
        value.ok_or_else(|| self.lexer.error(tag.offset, fault))
    }

    fn check_name(&self, value: AttributeValue, rule: &NameRule) -> Result<String, RequestError> {
        if rule.accepts_name(&value.value) {
            return Ok(value.value);
        }
        let fault = RequestFault::Name { text: excerpt(&value.value), noun: rule.noun, form: rule.form };
        Err(self.lexer.error(value.offset, fault))
    }

    /// Checks that nothing is missing, and reads the universe file.
    fn finish_request(
        self,
        root: StartTag<'_>,
        priority: u8,
        universe: impl FnOnce(&Path) -> Result<Vec<u8>, UniverseError>,
    ) -> Result<DataRequest, RequestError> {
        let Self { lexer, request_parts: parts } = self;
        let missing =
            |name, example| lexer.error(root.offset, RequestFault::MissingElement { name, example });
        if !parts.has_service {
            return Err(missing("service", "<service name=\"DataAccess\"/>"));
        }
        let dataset = parts.dataset.ok_or_else(|| missing("db_name", "<db_name value=\"TaqDaily\"/>"))?;
        let schemas =
            parts.schemas.ok_or_else(|| missing("msg_types", "<msg_types value=\"Trade,BBO\"/>"))?;
        let symbols = match parts.universe {
            None => Vec::new(),
            Some(Universe::Symbols(symbols)) => symbols,
            Some(Universe::File(path, offset)) => {
                let symbols = universe(&path).and_then(|bytes| universe::parse_file(&bytes));
                symbols.map_err(|error| lexer.error(offset, RequestFault::UniverseFile { path, error }))?
            }
        };
        let TimeRange { first_ns: since, end_ns: until } = parts.range.unwrap_or_default();
        Ok(DataRequest { dataset, symbols, schemas, since, until, priority })
    }
}

/// The form of a name.
struct NameRule {
    noun: &'static str,
    form: &'static str,
    bytes_max: usize,
    /// Whether it names a file in a folder, so that it has no `/`.
    is_file: bool,
}

impl NameRule {
    fn accepts_name(&self, name: &str) -> bool {
        let is_path = name.contains('/') || matches!(name, "." | "..");
        (1..=self.bytes_max).contains(&name.len())
            && !name.contains(char::is_control)
            && !(self.is_file && is_path)
    }
}

const DATASET: NameRule = NameRule {
    noun: "name of a dataset",
    form: "1 to 255 bytes without control characters",
    bytes_max: 255,
    is_file: false,
};

const FILE: NameRule = NameRule {
    noun: "name of a file",
    form: "1 to 255 bytes without / and control characters, and the folder as location",
    bytes_max: 255,
    is_file: true,
};

const FOLDER: NameRule = NameRule {
    noun: "folder",
    form: "a path of 1 to 4095 bytes without control characters, . for the working directory",
    bytes_max: 4095,
    is_file: false,
};

const CHILDREN: [&str; 6] = ["service", "db_name", "universe_file", "universe", "msg_types", "time_range"];
