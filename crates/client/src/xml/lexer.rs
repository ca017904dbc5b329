//! The part of XML that a request can have, token by token.
//!
//! There is no recursion and no tree, and nothing is expanded but references to single characters. So an input costs no more
//! than its own bytes, whatever they are.

use unitape_base::toml::suggest_word;
use unitape_base::xml::reference::{self, XmlReferenceOutcome};
use unitape_base::xml::{is_white, name, skip_white, starts_name, text};

use super::error::{RequestError, RequestFault, excerpt};

/// Bytes of a request, at most.
pub(super) const REQUEST_BYTES_MAX: usize = 1 << 20;

/// A cursor over the text of a request.
pub(super) struct Lexer<'x> {
    rest_of_xml: &'x str,
    offset: usize,
}

/// The next piece of markup.
pub(super) enum Markup<'x> {
    /// The name of a start tag. Its attributes are to be read next.
    Start(StartTag<'x>),
    /// The end tag of the open element.
    End,
    /// The end of the request.
    Eof,
}

/// The beginning of a start tag.
#[derive(Clone, Copy)]
pub(super) struct StartTag<'x> {
    pub name: &'x str,
    /// The offset of its `<`.
    pub offset: usize,
}

/// The rest of a start tag.
pub(super) struct Attributes<const N: usize> {
    /// The values, in the order of the names that were asked for.
    pub values: [Option<AttributeValue>; N],
    /// Whether the tag is that of an element without content, `<a/>`.
    pub is_empty_element: bool,
}

/// The value of an attribute, with references resolved.
pub(super) struct AttributeValue {
    pub value: String,
    /// The offset of its first byte.
    pub offset: usize,
}

impl<'x> Lexer<'x> {
    /// Checks the size, the encoding and the characters, and reads the XML declaration.
    pub fn new(xml: &'x [u8]) -> Result<Self, RequestError> {
        if xml.len() > REQUEST_BYTES_MAX {
            let fault = RequestFault::TooLarge { bytes: xml.len(), bytes_max: REQUEST_BYTES_MAX };
            return Err(RequestError::locate("", 0, fault));
        }
        let xml = xml.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(xml);
        let text = std::str::from_utf8(xml).map_err(|error| {
            let (valid, _) = xml.split_at(error.valid_up_to());
            let valid = std::str::from_utf8(valid).unwrap_or_default();
            RequestError::locate(valid, valid.len(), RequestFault::Encoding)
        })?;
        let mut lexer = Self { rest_of_xml: text, offset: 0 };
        if let Some((offset, c)) = text.char_indices().find(|(_, c)| !is_xml_character(*c)) {
            return Err(lexer.error(offset, RequestFault::Character { code: c.into() }));
        }
        lexer.read_declaration()?;
        Ok(lexer)
    }

    pub fn error(&self, offset: usize, fault: RequestFault) -> RequestError {
        RequestError::locate(self.rest_of_xml, offset, fault)
    }

    /// Locates a mistake at the next byte.
    pub fn error_here(&self, fault: RequestFault) -> RequestError {
        self.error(self.offset, fault)
    }

    /// Reads the next tag in `parent`, past white space and comments. `None` is the level of the root element.
    pub fn next_markup(&mut self, parent: Option<&'static str>) -> Result<Markup<'x>, RequestError> {
        loop {
            self.offset = skip_white(self.rest_of_xml.as_bytes(), self.offset);
            let unread_text = self.rest_of_input();
            if unread_text.is_empty() {
                return match parent {
                    Some(element) => Err(self.error_here(RequestFault::Cut { element })),
                    None => Ok(Markup::Eof),
                };
            }
            if unread_text.starts_with("<!--") {
                self.skip_comment()?;
            } else if unread_text.starts_with("</") {
                return self.read_end_tag(parent).map(|()| Markup::End);
            } else if unread_text.starts_with("<?") {
                return Err(self.error_here(RequestFault::Instruction));
            } else if unread_text.starts_with("<!") && !unread_text.starts_with(CDATA_START) {
                return Err(self.error_here(RequestFault::DocumentType));
            } else if unread_text.starts_with('<') && !unread_text.starts_with(CDATA_START) {
                return self.read_start_tag().map(Markup::Start);
            } else {
                let fault = match parent {
                    Some(element) => RequestFault::Text { element },
                    None => RequestFault::Syntax { problem: "text outside of the root element; remove it" },
                };
                return Err(self.error_here(fault));
            }
        }
    }

    /// Reads the attributes of a start tag: those with these names, each at most once.
    pub fn read_attributes<const N: usize>(
        &mut self,
        element: &'static str,
        names: [&'static str; N],
    ) -> Result<Attributes<N>, RequestError> {
        let mut values = [const { None }; N];
        loop {
            let blank_offset = self.offset;
            self.offset = skip_white(self.rest_of_xml.as_bytes(), self.offset);
            let is_empty_element = match self.rest_of_input().as_bytes() {
                [] => return Err(self.error_here(RequestFault::Cut { element })),
                [b'>', ..] => false,
                [b'/', b'>', ..] => true,
                _ if self.offset == blank_offset => {
                    return Err(self.syntax_error("a blank or > is missing after a name or a value; add it"));
                }
                _ => {
                    let (offset, key) = (self.offset, self.read_name()?);
                    let Some(index) = names.iter().position(|name| *name == key) else {
                        return Err(self.unknown_attribute(offset, key, element, &names));
                    };
                    if values[index].is_some() {
                        let fault = RequestFault::DoubledAttribute { name: names[index], element };
                        return Err(self.error(offset, fault));
                    }
                    values[index] = Some(self.read_value(element)?);
                    continue;
                }
            };
            self.offset += if is_empty_element { 2 } else { 1 };
            return Ok(Attributes { values, is_empty_element });
        }
    }

    /// Reads the end tag of an element that must be empty. As in the schema, it has not even a blank.
    pub fn read_empty(&mut self, element: &'static str) -> Result<(), RequestError> {
        while self.rest_of_input().starts_with("<!--") {
            self.skip_comment()?;
        }
        if self.rest_of_input().starts_with(is_white_char) {
            return Err(self.error_here(RequestFault::WhiteSpace { element }));
        }
        match self.next_markup(Some(element))? {
            Markup::Start(tag) => Err(self.unknown_element(tag, element, &[])),
            Markup::End | Markup::Eof => Ok(()),
        }
    }

    /// Reads the text of an element that has no elements, and its end tag.
    pub fn read_text(&mut self, element: &'static str) -> Result<String, RequestError> {
        let mut content = String::new();
        loop {
            let (end, _) = text(self.rest_of_xml.as_bytes(), self.offset);
            let piece = &self.rest_of_xml[self.offset..end];
            if let Some(offset) = piece.find(CDATA_END) {
                self.offset += offset;
                return Err(self.syntax_error("]]> in a text; write ]]&gt;"));
            }
            content.push_str(piece);
            self.offset = end;
            let unread_text = self.rest_of_input();
            if unread_text.is_empty() {
                return Err(self.error_here(RequestFault::Cut { element }));
            } else if unread_text.starts_with('&') {
                content.push(self.read_reference()?);
            } else if unread_text.starts_with("<!--") {
                self.skip_comment()?;
            } else if let Some(rest) = unread_text.strip_prefix(CDATA_START) {
                let Some(length) = rest.find(CDATA_END) else {
                    return Err(self.syntax_error("<![CDATA[ without its end; add ]]>"));
                };
                content.push_str(&rest[..length]);
                self.offset += CDATA_START.len() + length + CDATA_END.len();
            } else {
                match self.next_markup(Some(element))? {
                    Markup::Start(tag) => return Err(self.unknown_element(tag, element, &[])),
                    Markup::End => return Ok(content),
                    Markup::Eof => return Err(self.error_here(RequestFault::Cut { element })),
                }
            }
        }
    }

    pub fn unknown_element(
        &self,
        tag: StartTag<'_>,
        parent: &'static str,
        known_names: &[&'static str],
    ) -> RequestError {
        let hint = hint(tag.name, known_names);
        self.error(tag.offset, RequestFault::Element { name: excerpt(tag.name), parent, hint })
    }

    fn unknown_attribute(
        &self,
        offset: usize,
        key: &str,
        element: &'static str,
        known_names: &[&'static str],
    ) -> RequestError {
        let hint = hint(key, known_names);
        self.error(offset, RequestFault::Attribute { name: excerpt(key), element, hint })
    }

    fn rest_of_input(&self) -> &'x str {
        &self.rest_of_xml[self.offset..]
    }

    fn syntax_error(&self, problem: &'static str) -> RequestError {
        self.error_here(RequestFault::Syntax { problem })
    }

    /// Reads a name, also one with prefixes.
    fn read_name(&mut self) -> Result<&'x str, RequestError> {
        let (bytes, start) = (self.rest_of_xml.as_bytes(), self.offset);
        if !bytes.get(start).is_some_and(|byte| starts_name(*byte)) {
            return Err(self.syntax_error("a name is missing; names begin with a letter"));
        }
        self.offset = name(bytes, start);
        while bytes.get(self.offset) == Some(&b':') {
            self.offset = name(bytes, self.offset + 1);
        }
        Ok(&self.rest_of_xml[start..self.offset])
    }

    fn read_start_tag(&mut self) -> Result<StartTag<'x>, RequestError> {
        let offset = self.offset;
        self.offset += 1;
        Ok(StartTag { name: self.read_name()?, offset })
    }

    fn read_end_tag(&mut self, open: Option<&'static str>) -> Result<(), RequestError> {
        let offset = self.offset;
        self.offset += 2;
        let name = self.read_name()?;
        let Some(start_tag) = open else {
            self.offset = offset;
            return Err(self.syntax_error("an end tag without a start tag; remove it"));
        };
        if name != start_tag {
            return Err(self.error(offset, RequestFault::EndTag { name: excerpt(name), open: start_tag }));
        }
        self.offset = skip_white(self.rest_of_xml.as_bytes(), self.offset);
        match self.rest_of_input().as_bytes() {
            [] => Err(self.error_here(RequestFault::Cut { element: start_tag })),
            [b'>', ..] => {
                self.offset += 1;
                Ok(())
            }
            _ => Err(self.syntax_error("> is missing in an end tag; add it")),
        }
    }

    fn read_value(&mut self, element: &'static str) -> Result<AttributeValue, RequestError> {
        let bytes = self.rest_of_xml.as_bytes();
        self.offset = skip_white(bytes, self.offset);
        if bytes.get(self.offset) != Some(&b'=') {
            return Err(self.syntax_error("= is missing after the name of an attribute; add it"));
        }
        self.offset = skip_white(bytes, self.offset + 1);
        let Some(quote) = bytes.get(self.offset).copied().filter(|byte| matches!(byte, b'"' | b'\'')) else {
            return Err(self.syntax_error("the value of an attribute lacks its quotation marks; add them"));
        };
        self.offset += 1;
        let mut value = AttributeValue { value: String::new(), offset: self.offset };
        loop {
            let unread_text = self.rest_of_input();
            let is_end = |byte: u8| byte == quote || matches!(byte, b'<' | b'&') || is_white(byte);
            let Some(length) = unread_text.bytes().position(is_end) else {
                return Err(self.error(self.rest_of_xml.len(), RequestFault::Cut { element }));
            };
            value.value.push_str(&unread_text[..length]);
            self.offset += length;
            match unread_text.as_bytes()[length] {
                b'<' => {
                    return Err(
                        self.syntax_error("< in a value; write &lt;, or add the quotation mark before it")
                    );
                }
                b'&' => value.value.push(self.read_reference()?),
                // A line end is one blank, whether it has one byte or two.
                b'\r' if unread_text[length..].starts_with("\r\n") => {
                    value.value.push(' ');
                    self.offset += 2;
                }
                byte => {
                    self.offset += 1;
                    if byte == quote {
                        return Ok(value);
                    }
                    value.value.push(' ');
                }
            }
        }
    }

    fn read_reference(&mut self) -> Result<char, RequestError> {
        match reference::read(self.rest_of_xml.as_bytes(), self.offset) {
            XmlReferenceOutcome::Is(c, end) => {
                self.offset = end;
                Ok(c)
            }
            XmlReferenceOutcome::Bad | XmlReferenceOutcome::Short => {
                let unread_text = self.rest_of_input();
                let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '&' | '#' | '-' | '_' | '.'));
                let reference_length = unread_text.find(is_end).unwrap_or(unread_text.len());
                let end = if unread_text[reference_length..].starts_with(';') {
                    reference_length + 1
                } else {
                    reference_length
                };
                let fault = RequestFault::Reference { text: excerpt(&unread_text[..end]) };
                Err(self.error_here(fault))
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), RequestError> {
        let comment_start = self.offset + "<!--".len();
        match self.rest_of_xml[comment_start..].find("--") {
            Some(length) if self.rest_of_xml[comment_start + length..].starts_with("-->") => {
                self.offset = comment_start + length + "-->".len();
                Ok(())
            }
            Some(length) => {
                self.offset = comment_start + length;
                Err(self.syntax_error("-- in a comment; remove it"))
            }
            None => Err(self.syntax_error("a comment without its end; add -->")),
        }
    }

    /// Reads `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` at the start, if it is there.
    fn read_declaration(&mut self) -> Result<(), RequestError> {
        let Some(rest) =
            self.rest_of_xml.strip_prefix("<?xml").filter(|rest| rest.starts_with(is_white_char))
        else {
            return Ok(());
        };
        let Some(length) = rest.find("?>") else {
            return Err(self.syntax_error("an XML declaration without its end; add ?>"));
        };
        let end = "<?xml".len() + length;
        let mut declaration = Lexer { rest_of_xml: &self.rest_of_xml[..end], offset: "<?xml".len() };
        // In this order; the version alone must be there.
        let mut names = ["version", "encoding", "standalone"].into_iter();
        let mut has_version = false;
        loop {
            let blank_offset = declaration.offset;
            declaration.offset = skip_white(declaration.rest_of_xml.as_bytes(), blank_offset);
            if declaration.rest_of_input().is_empty() && has_version {
                self.offset = end + "?>".len();
                return Ok(());
            }
            let is_parted = declaration.offset > blank_offset;
            let key = declaration.read_name().unwrap_or_default();
            if !is_parted || !names.any(|name| name == key) {
                return Err(declaration.syntax_error(DECLARATION));
            }
            let value = declaration.read_value("?xml").map_err(|_| declaration.syntax_error(DECLARATION))?;
            let is_good = match key {
                "version" => value.value == "1.0",
                "encoding" if !value.value.eq_ignore_ascii_case("utf-8") => {
                    let fault = RequestFault::DeclaredEncoding { name: excerpt(&value.value) };
                    return Err(self.error(value.offset, fault));
                }
                "standalone" => matches!(value.value.as_str(), "yes" | "no"),
                _ => true,
            };
            has_version |= key == "version";
            if !is_good || !has_version {
                return Err(self.error(value.offset, RequestFault::Syntax { problem: DECLARATION }));
            }
        }
    }
}

/// Returns the end of a message about an unknown name: the known one that is near, or else all that are known.
pub(super) fn hint(name: &str, known_names: &[&'static str]) -> String {
    let suggestion = suggest_word(name, known_names.iter().copied());
    match known_names {
        [] => suggestion,
        _ if suggestion.is_empty() => format!("; known: {}", known_names.join(", ")),
        _ => suggestion,
    }
}

const fn is_xml_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

const fn is_white_char(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

const CDATA_START: &str = "<![CDATA[";
const CDATA_END: &str = "]]>";
const DECLARATION: &str = "the XML declaration is wrong; write <?xml version=\"1.0\" encoding=\"UTF-8\"?>";
