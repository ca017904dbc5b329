//! A dictionary file as written: names not looked up yet, every item with its line.

use std::borrow::Cow;
use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::DictionaryFileSummary;
use unitape_base::Error;

/// The definitions of one file.
#[derive(Debug, Default)]
pub(super) struct RawDictionary {
    pub file: String,
    pub form: &'static str,
    pub version: String,
    /// Definitions that were left out in reading, by line.
    pub omissions: Vec<(usize, String)>,
    pub fields: Vec<RawField>,
    pub components: Vec<RawComponent>,
    pub groups: Vec<RawGroup>,
    pub messages: Vec<RawMessage>,
    /// Header and trailer.
    pub header_trailer_members: Vec<RawMember>,
    tag_by_name: HashMap<String, u32>,
    component_index: HashMap<String, usize>,
    group_index: HashMap<String, usize>,
}

#[derive(Debug, Default)]
pub(super) struct RawField {
    pub tag: u32,
    pub name: String,
    pub kind: String,
    pub values: Vec<(String, String)>,
    pub length_tag: Option<u32>,
}

#[derive(Debug)]
pub(super) struct RawComponent {
    pub key: String,
    pub items: Vec<RawMember>,
}

/// A group defined apart and referred to (Orchestra).
#[derive(Debug)]
pub(super) struct RawGroup {
    pub key: String,
    pub count: FieldKey,
    pub items: Vec<RawMember>,
    pub line: usize,
}

#[derive(Debug)]
pub(super) struct RawMessage {
    pub msg_type: String,
    pub name: String,
    pub items: Vec<RawMember>,
}

/// How a field is referred to.
#[derive(Debug, Clone)]
pub(super) enum FieldKey {
    Tag(u32),
    Name(String),
}

/// One entry of a message, component or group.
#[derive(Debug)]
pub(super) enum RawMember {
    Field { key: FieldKey, line: usize },
    Component { key: String, line: usize },
    Group { count: FieldKey, items: Vec<RawMember>, line: usize },
    GroupRef { key: String, line: usize },
}

/// A definition: file and index in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DefinitionIndex {
    pub file: usize,
    pub index: usize,
}

impl RawDictionary {
    pub(super) fn new(form: &'static str, version: String) -> Self {
        RawDictionary { form, version, ..RawDictionary::default() }
    }

    pub(super) fn tag(&self, name: &str) -> Option<u32> {
        self.tag_by_name.get(name).copied()
    }

    pub(super) fn component(&self, key: &str) -> Option<usize> {
        self.component_index.get(key).copied()
    }

    pub(super) fn group(&self, key: &str) -> Option<usize> {
        self.group_index.get(key).copied()
    }

    /// Counts the file's definitions.
    pub(super) fn file_summary(&self) -> DictionaryFileSummary {
        let lists = self.messages.iter().map(|message| &message.items);
        let lists = lists.chain(self.components.iter().map(|component| &component.items));
        let lists =
            lists.chain(self.groups.iter().map(|group| &group.items)).chain([&self.header_trailer_members]);
        DictionaryFileSummary {
            file: self.file.clone(),
            form: self.form,
            version: self.version.clone(),
            fields: self.fields.len(),
            messages: self.messages.len(),
            components: self.components.len(),
            groups: self.groups.len() + lists.map(|items| groups_in(items)).sum::<usize>(),
        }
    }

    pub(super) fn error(&self, line: usize, message: String) -> Error {
        Error::Dictionary { file: self.file.clone(), line, message }
    }
}

/// Reads one file of either kind; the root element says which.
pub(super) fn parse(file: &str, content: &[u8]) -> Result<RawDictionary, Error> {
    let mut xml = XmlTagReader::new(file, content);
    let Some(root) = xml.next_start()? else {
        return Err(xml.error("no XML element"));
    };
    let mut raw = match root.name.as_str() {
        "fix" => super::quickfix::parse(&mut xml, &root)?,
        "repository" => super::orchestra::parse(&mut xml, &root)?,
        other => {
            let message = format!(
                "the root element is <{other}>; a QuickFIX dictionary has <fix>, Orchestra <repository>"
            );
            return Err(xml.error(message));
        }
    };
    xml.rest_is_empty()?;
    raw.file = file.to_owned();
    raw.omissions = std::mem::take(&mut xml.omissions);
    for field in &raw.fields {
        raw.tag_by_name.insert(field.name.clone(), field.tag);
    }
    for (index, component) in raw.components.iter().enumerate() {
        raw.component_index.insert(component.key.clone(), index);
    }
    for (index, group) in raw.groups.iter().enumerate() {
        raw.group_index.insert(group.key.clone(), index);
    }
    Ok(raw)
}

/// Groups written in a list, those inside others too.
fn groups_in(items: &[RawMember]) -> usize {
    let nested_items = items.iter().map(|item| match item {
        RawMember::Group { items, .. } => 1 + groups_in(items),
        _ => 0,
    });
    nested_items.sum()
}

/// An opening tag without its namespace prefix.
#[derive(Debug)]
pub(super) struct OpeningTag {
    pub name: String,
    pub line: usize,
    /// `<a/>`: no closing tag follows.
    pub empty: bool,
    attributes: Vec<(String, String)>,
}

impl OpeningTag {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A reader of opening and closing tags that knows the line.
pub(super) struct XmlTagReader<'c> {
    file: &'c str,
    content: &'c [u8],
    reader: Reader<&'c [u8]>,
    /// Elements open.
    open_elements: usize,
    /// Lines are counted from here on.
    counted_offset: usize,
    line: usize,
    omissions: Vec<(usize, String)>,
}

impl<'c> XmlTagReader<'c> {
    fn new(file: &'c str, content: &'c [u8]) -> Self {
        let mut reader = Reader::from_reader(content);
        reader.config_mut().trim_text(true);
        XmlTagReader {
            file,
            content,
            reader,
            open_elements: 0,
            counted_offset: 0,
            line: 1,
            omissions: Vec::new(),
        }
    }

    /// Returns the next child, or `None` at the closing tag of the current element and at the end.
    pub(super) fn next_start(&mut self) -> Result<Option<OpeningTag>, Error> {
        loop {
            // The line of a tag is where it begins, after the white space before it.
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let offset = self.reader.error_position() as usize;
                    self.count_to(offset);
                    return Err(self.error(format!("not well-formed XML: {error}")));
                }
            };
            let (start, empty) = match event {
                Event::Start(start) => {
                    self.open_elements += 1;
                    (start, false)
                }
                Event::Empty(start) => (start, true),
                Event::End(_) => {
                    self.open_elements -= 1;
                    return Ok(None);
                }
                // A file cut off would be a smaller dictionary without a word.
                Event::Eof if self.open_elements > 0 => return Err(self.cut_off()),
                Event::Eof => return Ok(None),
                _ => continue,
            };
            let tag_end = self.reader.buffer_position() as usize;
            let len = start.len() + if empty { 3 } else { 2 };
            let line = self.count_to(tag_end.saturating_sub(len));
            return self.open(&start, empty, line).map(Some);
        }
    }

    /// Leaves the element just opened, whatever it holds.
    pub(super) fn skip(&mut self, open: &OpeningTag) -> Result<(), Error> {
        if open.empty {
            return Ok(());
        }
        let outside = self.open_elements - 1;
        while self.open_elements > outside {
            match self.reader.read_event() {
                Ok(Event::Start(_)) => self.open_elements += 1,
                Ok(Event::End(_)) => self.open_elements -= 1,
                Ok(Event::Eof) => return Err(self.cut_off()),
                Ok(_) => {}
                Err(error) => return Err(self.error_here(format!("not well-formed XML: {error}"))),
            }
        }
        Ok(())
    }

    /// Notes a definition that is left out. The length of the file bounds the notes.
    pub(super) fn note(&mut self, line: usize, reason: impl Into<String>) {
        self.omissions.push((line, reason.into()));
    }

    /// Leaves an element that does not belong where it is, with a note.
    pub(super) fn skip_misplaced(&mut self, open: &OpeningTag, parent: &str) -> Result<(), Error> {
        self.note(open.line, format!("<{}> does not belong in <{parent}>", open.name));
        self.skip(open)
    }

    /// Returns the attribute. Without it, adds a note and returns `None`.
    pub(super) fn attribute(&mut self, open: &OpeningTag, name: &str) -> Option<String> {
        let value = open.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
        if value.is_none() {
            self.note(open.line, format!("<{}> has no attribute {name}", open.name));
        }
        value
    }

    /// Returns the attribute as a tag. If it is no tag, adds a note and returns `None`.
    pub(super) fn tag(&mut self, open: &OpeningTag, name: &str) -> Option<u32> {
        let text = self.attribute(open, name)?;
        let tag = text.parse().ok().filter(|tag| (1..=999_999_999).contains(tag));
        if tag.is_none() {
            self.note(open.line, format!("{name}=\"{text}\" is not a tag"));
        }
        tag
    }

    pub(super) fn error_at(&self, line: usize, message: impl Into<String>) -> Error {
        Error::Dictionary { file: self.file.to_owned(), line, message: message.into() }
    }

    fn error(&self, message: impl Into<String>) -> Error {
        self.error_at(self.line, message)
    }

    fn error_here(&mut self, message: impl Into<String>) -> Error {
        let line = self.count_to(self.reader.buffer_position() as usize);
        self.error_at(line, message)
    }

    fn cut_off(&mut self) -> Error {
        self.error_here("the file ends inside an element")
    }

    fn rest_is_empty(&mut self) -> Result<(), Error> {
        loop {
            match self.reader.read_event() {
                Ok(Event::Comment(_) | Event::PI(_)) => {}
                Ok(Event::Eof) => return Ok(()),
                Ok(_) => return Err(self.error_here("content after the root element")),
                Err(error) => return Err(self.error_here(format!("not well-formed XML: {error}"))),
            }
        }
    }

    fn count_to(&mut self, end: usize) -> usize {
        let end = end.clamp(self.counted_offset, self.content.len());
        self.line += memchr::memchr_iter(b'\n', &self.content[self.counted_offset..end]).count();
        self.counted_offset = end;
        self.line
    }

    fn open(&self, start: &BytesStart<'_>, empty: bool, line: usize) -> Result<OpeningTag, Error> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.error_at(line, error.to_string()))?;
            let value = attribute
                .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                .map_err(|error| self.error_at(line, error.to_string()))?;
            let value = match value {
                Cow::Borrowed(value) => value.to_owned(),
                Cow::Owned(value) => value,
            };
            attributes.push((attribute.key.local_name().as_ref().to_owned(), value));
        }
        Ok(OpeningTag { name: start.local_name().as_ref().to_owned(), line, empty, attributes })
    }
}
