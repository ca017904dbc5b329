//! Mistakes in a request, each with what to write instead.

use std::fmt;
use std::path::PathBuf;

/// A request that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct RequestError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// The mistake.
    pub fault: RequestFault,
}

/// A mistake in a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// The request is too long.
    #[error(
        "the request has {bytes} bytes, at most {bytes_max} are read; name the symbols in a <universe_file>"
    )]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The bytes are no UTF-8.
    #[error("not UTF-8; save the request as UTF-8")]
    Encoding,
    /// The XML declaration names an encoding other than UTF-8.
    #[error("encoding `{name}`; save the request as UTF-8 and write encoding=\"UTF-8\"")]
    DeclaredEncoding {
        /// The encoding.
        name: String,
    },
    /// A character that XML does not allow.
    #[error("character U+{code:04X}, which XML does not allow; remove it")]
    Character {
        /// Its code point.
        code: u32,
    },
    /// A document type declaration.
    #[error("a <!DOCTYPE> or another declaration is refused; remove it")]
    DocumentType,
    /// A processing instruction, or an XML declaration that is not at the start.
    #[error(
        "a processing instruction is refused; remove it (an XML declaration can only be at the very start)"
    )]
    Instruction,
    /// A reference to an entity that XML does not predefine, or to no character.
    #[error(
        "reference `{text}` is unknown; write & as &amp;, and others as &lt; &gt; &quot; &apos; or &#65;"
    )]
    Reference {
        /// The reference.
        text: String,
    },
    /// The bytes are no well-formed XML.
    #[error("not well-formed XML: {problem}")]
    Syntax {
        /// The problem, with what to write.
        problem: &'static str,
    },
    /// An end tag of another element than the open one.
    #[error("</{name}> ends no open element; write </{open}>")]
    EndTag {
        /// The name in the end tag.
        name: String,
        /// The open element.
        open: &'static str,
    },
    /// The request ends too early.
    #[error("the request ends inside <{element}>; send it complete, up to </message>")]
    Cut {
        /// The open element.
        element: &'static str,
    },
    /// There is no element.
    #[error("the request is empty; it begins with <message type=\"3\" priority=\"0\">")]
    Empty,
    /// The root element is none of a request.
    #[error("<{name}> is no request; write <message type=\"3\" priority=\"0\">")]
    Root {
        /// Its name.
        name: String,
    },
    /// Text, or another element, after the root element.
    #[error("the request continues after </message>; remove the rest, a file has one request")]
    Trailing,
    /// An element that its parent cannot have.
    #[error("<{name}> cannot be in <{parent}>; remove it{hint}")]
    Element {
        /// Its name.
        name: String,
        /// The element around it.
        parent: &'static str,
        /// The element that is near, or else all that the parent can have.
        hint: String,
    },
    /// An element that appears twice.
    #[error("a second <{name}>; a request has one, remove the other")]
    DoubledElement {
        /// Its name.
        name: &'static str,
    },
    /// An element that is missing.
    #[error("<{name}> is missing; add {example}")]
    MissingElement {
        /// Its name.
        name: &'static str,
        /// The element as it can be written.
        example: &'static str,
    },
    /// An attribute that the element cannot have.
    #[error("<{element}> has no attribute `{name}`; remove it{hint}")]
    Attribute {
        /// Its name.
        name: String,
        /// The element.
        element: &'static str,
        /// The attribute that is near, or else all that the element can have.
        hint: String,
    },
    /// An attribute that appears twice.
    #[error("a second attribute {name} of <{element}>; remove one of them")]
    DoubledAttribute {
        /// Its name.
        name: &'static str,
        /// The element.
        element: &'static str,
    },
    /// An attribute that is missing.
    #[error("<{element}> lacks the attribute {name}; add {name}=\"{example}\"")]
    MissingAttribute {
        /// Its name.
        name: &'static str,
        /// The element.
        element: &'static str,
        /// A value that it can have.
        example: &'static str,
    },
    /// Text in an element that has none.
    #[error("text in <{element}>, which has none; remove it, values are in attributes")]
    Text {
        /// The element.
        element: &'static str,
    },
    /// White space in an element that must be empty.
    #[error("white space in <{element}>, which must be empty; remove it")]
    WhiteSpace {
        /// The element.
        element: &'static str,
    },
    /// A message of another type.
    #[error("message type `{text}` is no data request; write type=\"3\"")]
    MessageType {
        /// The type.
        text: String,
    },
    /// A priority that is no digit.
    #[error("`{text}` is no priority; write 0 (first) to 9 (last)")]
    Priority {
        /// The value.
        text: String,
    },
    /// Another service.
    #[error("service `{text}` is unknown; write name=\"DataAccess\"")]
    Service {
        /// The service.
        text: String,
    },
    /// A name of a dataset, folder or file that cannot be.
    #[error("`{text}` is no {noun}; write {form}")]
    Name {
        /// The value.
        text: String,
        /// What it should name.
        noun: &'static str,
        /// The form of such a name.
        form: &'static str,
    },
    /// A type of messages that is no schema.
    #[error("`{text}` is no type of messages; write them as in Trade,BBO{hint}")]
    Schema {
        /// The value.
        text: String,
        /// The name that is near, or else all names.
        hint: String,
    },
    /// A time that cannot be read.
    #[error("`{text}` is no time; write 20141001 09:30:00 or 20141001 09:30:00.000, with up to 9 decimals")]
    Time {
        /// The value.
        text: String,
    },
    /// A time that 64 bits of nanoseconds cannot hold.
    #[error("`{text}` is out of range; write a time between 1677-09-22 and 2262-04-11")]
    TimeRange {
        /// The value.
        text: String,
    },
    /// A zone that the IANA database lacks.
    #[error("no time zone `{text}`; write an IANA name such as America/New_York, or leave zone out for UTC")]
    Zone {
        /// The value.
        text: String,
    },
    /// A local time that the clock of the zone skipped.
    #[error(
        "`{text}` does not exist in {zone}: the clocks went forward over it; the change is at {change} UTC. \
         Write both times in UTC, without zone"
    )]
    SkippedTime {
        /// The local time.
        text: String,
        /// The zone.
        zone: String,
        /// The moment of the change in UTC.
        change: String,
    },
    /// A local time that the clock of the zone showed twice.
    #[error(
        "`{text}` is there twice in {zone}: the clocks went back over it; it is {first} UTC or {second} UTC. \
         Write both times in UTC, without zone"
    )]
    RepeatedTime {
        /// The local time.
        text: String,
        /// The zone.
        zone: String,
        /// The first moment in UTC.
        first: String,
        /// The second moment in UTC.
        second: String,
    },
    /// The range ends before it begins.
    #[error("the range ends before it begins; exchange from and to, or correct one of them")]
    RangeOrder,
    /// The range has no bound.
    #[error("<time_range> has neither from nor to; add one, or remove <time_range> for all times")]
    RangeEmpty,
    /// Both forms of a universe.
    #[error("<universe> and <universe_file> exclude each other; remove one of them")]
    TwoUniverses,
    /// A symbol of the request that cannot be, or none at all.
    #[error("<universe>: {0}")]
    Universe(#[source] UniverseError),
    /// The file with the symbols cannot be used.
    #[error("universe file {}: {error}", path.display())]
    UniverseFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        error: UniverseError,
    },
}

/// A list of symbols that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UniverseError {
    /// The reader of the request has no access to files of the client.
    #[error(
        "files of the client cannot be read here; write the symbols into the request: \
         <universe><symbol>IBM</symbol></universe>"
    )]
    NoFileAccess,
    /// The file cannot be read.
    #[error(
        "{0}; correct name and location, or write the symbols as <universe><symbol>IBM</symbol></universe>"
    )]
    Io(#[from] std::io::Error),
    /// The file has too many bytes.
    #[error("more than {} MiB; leave symbols out, or leave <universe_file> out to ask for all", super::universe::FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// The file is no UTF-8.
    #[error("line {line} is not UTF-8; save the file as UTF-8")]
    Encoding {
        /// The line, counted from 1.
        line: usize,
    },
    /// There is no symbol.
    #[error("no symbol; add one, or remove the element to ask for all instruments")]
    Empty,
    /// There are too many symbols.
    #[error(
        "more than {} symbols; split the request, or remove the element to ask for all instruments",
        super::universe::SYMBOLS_MAX
    )]
    TooMany,
    /// A symbol that cannot be.
    #[error("{}`{text}` is no symbol; write 1 to 255 bytes without control characters", LinePrefix(*line))]
    Symbol {
        /// The line of the file, counted from 1; `None` in a request.
        line: Option<usize>,
        /// The start of the text.
        text: String,
    },
}

impl RequestError {
    /// Locates a mistake at an offset of the text.
    pub(super) fn locate(text: &str, offset: usize, fault: RequestFault) -> Self {
        let text_before = &text[..text.floor_char_boundary(offset)];
        let line_start = text_before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text_before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Self { line, column: text_before[line_start..].chars().count() + 1, fault }
    }
}

/// Returns the start of a text for a message, without characters that a terminal obeys.
pub(super) fn excerpt(text: &str) -> String {
    let mut chars = text.chars();
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut excerpt: String = chars.by_ref().take(EXCERPT_CHARS).map(printable).collect();
    if chars.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

struct LinePrefix(Option<usize>);

impl fmt::Display for LinePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, "line {line}: "))
    }
}

const EXCERPT_CHARS: usize = 60;
