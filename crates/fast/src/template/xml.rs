//! A template file as a tree of elements, each with its line.

use super::error::{TemplateError, TemplateErrorCode};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Elements in each other, at most.
const DEPTH_MAX: usize = 64;

/// Attributes of an element, and namespaces that have a prefix at one place, at most.
const ATTRIBUTES_MAX: usize = 64;

/// Bytes of a name, a namespace or an id, at most.
const NAME_BYTES_MAX: usize = 256;

/// The start of every namespace of the template language, also where the root has another.
const LANGUAGE: &str = "http://www.fixprotocol.org/ns/fast/td/";

/// Bytes of an initial value, at most.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// An element of the template language. Elements of other languages are left out, attributes of theirs are kept under
/// their name with its prefix.
#[derive(Debug, Default)]
pub(super) struct XmlElement {
    pub name: String,
    /// The index of its file among the loaded files.
    pub file_index: usize,
    pub line: usize,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<XmlElement>,
}

impl XmlElement {
    /// Returns the value of the attribute with this name and no prefix.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of the first attribute with this local name, with or without a prefix.
    pub fn get_local(&self, name: &str) -> Option<&str> {
        let name_is = |key: &str| key.rsplit(':').next() == Some(name);
        self.attributes.iter().find(|(key, _)| name_is(key)).map(|(_, value)| value.as_str())
    }

    /// Finds the first child with this name.
    pub fn child(&self, name: &str) -> Option<&XmlElement> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// Where in a file an error is.
pub(super) struct FileLocation<'f> {
    pub file_name: &'f str,
    pub line: usize,
}

impl FileLocation<'_> {
    /// Makes the position of another line of the same file.
    pub fn line(&self, line: usize) -> Self {
        Self { file_name: self.file_name, line }
    }

    pub fn error(&self, code: TemplateErrorCode, reason: impl Into<String>) -> TemplateError {
        TemplateError { code, file: self.file_name.to_owned(), line: self.line, reason: reason.into() }
    }
}

/// Reads the file's root element, and the namespace of its language.
///
/// # Errors
/// Fails with S1 if the file is not well-formed, or if its elements are nested deeper than 64.
pub(super) fn parse(index: usize, file: &str, content: &[u8]) -> Result<(XmlElement, String), TemplateError> {
    let mut tree =
        XmlElementReader { file_index: index, file_name: file, content, counted_offset: 0, line: 1 };
    let mut reader = Reader::from_reader(content);
    // The elements that are open, each with the namespaces that it binds.
    let mut open_elements: Vec<(XmlElement, bool)> = Vec::new();
    let mut bound: Vec<(usize, String, String)> = Vec::new();
    let mut language: Option<String> = None;
    let mut root = None;
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                tree.count_to(reader.error_position() as usize);
                return Err(tree.error(format!("not well-formed XML: {error}")));
            }
        };
        let tag_end = reader.buffer_position() as usize;
        let (start, empty) = match event {
            Event::Start(start) => (start, false),
            Event::Empty(start) => (start, true),
            Event::End(_) => {
                tree.count_to(tag_end);
                unbind(&mut bound, open_elements.len());
                close(&mut open_elements, &mut root);
                continue;
            }
            Event::Eof if !open_elements.is_empty() => {
                tree.count_to(content.len());
                return Err(tree.error("the file ends inside an element"));
            }
            Event::Eof => break,
            Event::Text(text) if !text.as_bytes().iter().all(u8::is_ascii_whitespace) => {
                tree.count_to(tag_end);
                match open_elements.last() {
                    None => return Err(tree.error("text outside of the root element")),
                    Some((element, _)) if open_elements.iter().all(|(_, foreign)| !foreign) => {
                        return Err(tree.error(format!("text in <{}>, which has none", element.name)));
                    }
                    Some(_) => continue,
                }
            }
            _ => continue,
        };
        let tag = start.len() + if empty { 3 } else { 2 };
        tree.count_to(tag_end.saturating_sub(tag));
        if root.is_some() && open_elements.is_empty() {
            return Err(tree.error("an element behind the root element"));
        }
        if open_elements.len() == DEPTH_MAX {
            return Err(tree.error(format!("more than {DEPTH_MAX} elements in each other")));
        }
        let depth = open_elements.len() + 1;
        let (element, prefix) = tree.element(&start, depth, &mut bound)?;
        let uri = tree.uri(&prefix, &bound)?;
        // The language is the root's namespace. An element of another namespace is an extension.
        let language = language.get_or_insert_with(|| uri.clone());
        let foreign = uri != *language && !uri.starts_with(LANGUAGE);
        open_elements.push((element, foreign));
        if empty {
            unbind(&mut bound, depth);
            close(&mut open_elements, &mut root);
        }
    }
    let root = root.ok_or_else(|| tree.error("no XML element"))?;
    Ok((root, language.unwrap_or_default()))
}

/// Forgets the prefixes that were bound at this depth. The deepest are last.
fn unbind(bound: &mut Vec<(usize, String, String)>, depth: usize) {
    while bound.pop_if(|(bound_depth, ..)| *bound_depth >= depth).is_some() {}
}

fn close(open: &mut Vec<(XmlElement, bool)>, root: &mut Option<XmlElement>) {
    let Some((element, foreign)) = open.pop() else { return };
    match open.last_mut() {
        Some((parent, _)) if !foreign => parent.children.push(element),
        Some(_) => {}
        None => *root = Some(element),
    }
}

struct XmlElementReader<'c> {
    file_index: usize,
    file_name: &'c str,
    content: &'c [u8],
    /// Lines are counted from here on.
    counted_offset: usize,
    line: usize,
}

impl XmlElementReader<'_> {
    fn count_to(&mut self, end: usize) {
        let end = end.clamp(self.counted_offset, self.content.len());
        self.line += memchr::memchr_iter(b'\n', &self.content[self.counted_offset..end]).count();
        self.counted_offset = end;
    }

    fn error(&self, reason: impl Into<String>) -> TemplateError {
        FileLocation { file_name: self.file_name, line: self.line }.error(TemplateErrorCode::S1, reason)
    }

    /// Looks up the namespace of a prefix.
    fn uri(&self, prefix: &str, bound: &[(usize, String, String)]) -> Result<String, TemplateError> {
        match bound.iter().rev().find(|(_, name, _)| name == prefix) {
            Some((.., uri)) => Ok(uri.clone()),
            None if prefix.is_empty() || prefix == "xml" => Ok(String::new()),
            None => Err(self.error(format!("the prefix {prefix}: is bound to no namespace"))),
        }
    }

    /// Makes the element of a tag. Returns it with the prefix of its name.
    fn element(
        &self,
        start: &BytesStart<'_>,
        depth: usize,
        bound: &mut Vec<(usize, String, String)>,
    ) -> Result<(XmlElement, String), TemplateError> {
        let name = start.local_name().as_ref().to_owned();
        let mut element =
            XmlElement { name, file_index: self.file_index, line: self.line, ..XmlElement::default() };
        for (count, attribute) in start.attributes().enumerate() {
            let attribute = attribute.map_err(|e| self.error(format!("not well-formed XML: {e}")))?;
            if count == ATTRIBUTES_MAX || bound.len() > ATTRIBUTES_MAX {
                let reason = format!("more than {ATTRIBUTES_MAX} attributes in one element, or namespaces");
                return Err(self.error(reason));
            }
            let value = attribute
                .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                .map_err(|e| self.error(format!("not well-formed XML: {e}")))?
                .into_owned();
            let key: &str = attribute.key.as_ref();
            let most = match key {
                "name" | "ns" | "templateNs" | "dictionary" | "key" | "id" => NAME_BYTES_MAX,
                "value" => VALUE_BYTES_MAX,
                _ if key.starts_with("xmlns") => NAME_BYTES_MAX,
                // In other attributes the loader only looks for words.
                _ => usize::MAX,
            };
            if key.len() > NAME_BYTES_MAX {
                return Err(
                    self.error(format!("the name of an attribute of more than {NAME_BYTES_MAX} bytes"))
                );
            }
            if value.len() > most {
                return Err(self.error(format!("{key}=\"…\" of more than {most} bytes")));
            }
            // The blanks around words that are tokens do not belong to them.
            let is_token = matches!(key, "name" | "id" | "key" | "presence" | "charset");
            let value = if is_token { value.trim_ascii().to_owned() } else { value };
            match key.strip_prefix("xmlns") {
                Some("") => bound.push((depth, String::new(), value)),
                Some(prefix) if prefix.starts_with(':') => bound.push((depth, prefix[1..].to_owned(), value)),
                _ => element.attributes.push((key.to_owned(), value)),
            }
        }
        for (key, _) in &element.attributes {
            if let Some((prefix, _)) = key.split_once(':') {
                self.uri(prefix, bound)?;
            }
        }
        let name = start.name();
        let name: &str = name.as_ref();
        let prefix = name.split_once(':').map(|(prefix, _)| prefix.to_owned()).unwrap_or_default();
        Ok((element, prefix))
    }
}
