//! The fields that a caller selects, and the caller's tags for them.

use super::template::{Instruction, Templates};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The tag of a part without a tag.
pub const UNTAGGED: u16 = u16::MAX;

/// The fields of each template that are delivered, each with a tag of the caller's. All other fields are skipped: their
/// ends are found, and a bad message is refused with the same fault as without a projection. Their values are not made.
/// Dictionaries are kept as far as a delivered field or a fault depends on them.
///
/// A field is named by its template and its path. The template is the one that messages name, even if a static
/// reference puts much of it into others. The path has the names of the enclosing groups and sequences and the field's
/// own name, with `/` between them. A group or a sequence is delivered if a part in it is, or if it is named itself;
/// then it has a tag, too. Fields without names, such as the elements of vectors, have an empty name after the last
/// `/`.
///
/// ```
/// use std::sync::Arc;
/// use unitape_fast::{TaggedToken, Decoder, Projection, TemplateFile, Templates, FieldValue};
///
/// let xml = br#"<templates><template name="Quote" id="1"><uInt32 name="SeqNum"/><sequence name="Levels">
///     <uInt32 name="Px"/><uInt32 name="Qty"/></sequence></template></templates>"#;
/// let templates = Arc::new(Templates::load(&[TemplateFile { name: "quote.xml", content: xml }])?);
/// const PX: u16 = 7;
/// let projection = Projection::new(templates).field("Quote", "Levels/Px", PX)?;
/// let mut decoder = Decoder::with_projection(projection);
/// let message = decoder.decode(b"\xc0\x81\x85\x82\x8a\x8b\x8c\x8d")?;
/// let prices: Vec<_> = message.tagged_tokens().filter_map(|token| match token {
///     TaggedToken::Value(PX, FieldValue::UInt(px)) => Some(px),
///     _ => None,
/// }).collect();
/// assert_eq!(prices, [10, 12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Projection {
    templates: Arc<Templates>,
    selected_fields: HashMap<usize, TemplateSelection>,
}

/// The selected fields of a template.
#[derive(Debug, Clone, Default)]
struct TemplateSelection {
    /// The tag of every field that is not named itself.
    default_tag: Option<u16>,
    paths: HashMap<String, u16>,
}

/// A field of a decoder's messages, looked up once; of no use to a decoder of other templates or projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecodedFieldRef {
    pub(super) info: u32,
}

/// A template or field that no file has. It prints as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// The template.
    pub template: String,
    /// The path, or `None` if the template does not exist.
    pub path: Option<String>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "template {} has no field {path}", self.template),
            None => write!(f, "no template is called {}", self.template),
        }
    }
}

impl std::error::Error for UnknownField {}

impl Projection {
    /// Makes an empty projection of these templates.
    #[must_use]
    pub fn new(templates: Arc<Templates>) -> Self {
        Self { templates, selected_fields: HashMap::new() }
    }

    /// Returns the templates.
    #[must_use]
    pub fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// Selects a field, a group or a sequence of a template, under a tag. Parts of the same path have the same tag. If
    /// several templates have the name, the part is selected in each that has it.
    ///
    /// # Errors
    /// Fails if there is no such part.
    pub fn field(mut self, template: &str, path: &str, tag: u16) -> Result<Self, UnknownField> {
        let mut has_part = false;
        for index in self.find_templates(template)? {
            has_part |= self.select(index, path, tag);
        }
        let unknown = || UnknownField { template: template.to_owned(), path: Some(path.to_owned()) };
        has_part.then_some(self).ok_or_else(unknown)
    }

    /// Requests the part at a path of the template at this place in the list, under a tag. Returns whether there is
    /// one.
    pub fn select(&mut self, template: usize, path: &str, tag: u16) -> bool {
        let has_part = self.paths_of(template).iter().any(|p| p == path);
        if has_part {
            self.selected_fields.entry(template).or_default().paths.insert(path.to_owned(), tag);
        }
        has_part
    }

    /// Selects all parts of a template. A field without its own tag gets this tag.
    ///
    /// # Errors
    /// Fails if there is no such template.
    pub fn template(mut self, template: &str, tag: u16) -> Result<Self, UnknownField> {
        for index in self.find_templates(template)? {
            self.selected_fields.entry(index).or_default().default_tag = Some(tag);
        }
        Ok(self)
    }

    /// Returns every path of a template, in the order of the template, with the paths of groups and sequences.
    ///
    /// # Errors
    /// Fails if no template has this name.
    pub fn paths(&self, template: &str) -> Result<Vec<String>, UnknownField> {
        Ok(self.find_templates(template)?.into_iter().flat_map(|index| self.paths_of(index)).collect())
    }

    /// Returns the tag of the part at a path, or `None` if the part is not selected.
    pub(super) fn tag(&self, template: usize, path: &str) -> Option<u16> {
        let selected = self.selected_fields.get(&template)?;
        selected.paths.get(path).copied().or(selected.default_tag)
    }

    fn find_templates(&self, template: &str) -> Result<Vec<usize>, UnknownField> {
        let list = self.templates.list();
        let indexes: Vec<usize> = (0..list.len()).filter(|i| list[*i].name.local == template).collect();
        if indexes.is_empty() {
            return Err(UnknownField { template: template.to_owned(), path: None });
        }
        Ok(indexes)
    }

    fn paths_of(&self, template: usize) -> Vec<String> {
        let mut paths = Vec::new();
        self.body_paths(&self.templates.list()[template].body, "", &mut paths);
        paths
    }

    fn body_paths(&self, body: &[Instruction], before: &str, paths: &mut Vec<String>) {
        for instruction in body {
            let (name, body) = match instruction {
                Instruction::Field(field) => (&field.name, &[][..]),
                Instruction::Group(group) => (&group.name, &group.body[..]),
                Instruction::Sequence(sequence) => (&sequence.name, &sequence.body[..]),
                Instruction::Static(_, Some(index)) => {
                    self.body_paths(&self.templates.list()[*index].body, before, paths);
                    continue;
                }
                Instruction::Static(_, None) | Instruction::Dynamic => continue,
            };
            let path = format!("{before}{}", name.local);
            paths.push(path.clone());
            self.body_paths(body, &format!("{path}/"), paths);
        }
    }
}
