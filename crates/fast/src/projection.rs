//! The fields that a caller wants of messages, and its tags for them.

use super::template::{Instruction, Templates};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The tag of what was given none.
pub const UNTAGGED: u16 = u16::MAX;

/// Which fields of which templates are delivered, each with a tag of the caller's. All else is passed over: its end is found,
/// a message that is wrong there is refused with the same fault as ever, and dictionaries are kept as far as what is delivered,
/// or a fault, depends on them. Its value is not made.
///
/// A field is named by its template (the one that messages name, however much of it appears in others by static
/// reference) and its path: the names of the groups and sequences around it and its own, with `/` between them. A group or
/// a sequence comes when anything in it does, or when it is named itself; then it has a tag, too. Fields without names,
/// the elements of vectors, are an empty name after the last `/`.
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
    selected: HashMap<usize, TemplateSelection>,
}

/// The fields that are wanted of a template.
#[derive(Debug, Clone, Default)]
struct TemplateSelection {
    /// The tag of every field that is not named itself.
    all: Option<u16>,
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
    /// The path, none where the template is not there.
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
    /// Nothing of these templates.
    #[must_use]
    pub fn new(templates: Arc<Templates>) -> Self {
        Self { templates, selected: HashMap::new() }
    }

    /// The templates.
    #[must_use]
    pub fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// Wants a field, a group or a sequence of a template, under a tag. Parts of the same path have the same tag.
    /// Several templates may have one name: the part is wanted of those that have it.
    ///
    /// # Errors
    /// If there is none.
    pub fn field(mut self, template: &str, path: &str, tag: u16) -> Result<Self, UnknownField> {
        let mut there = false;
        for index in self.named(template)? {
            there |= self.select(index, path, tag);
        }
        let unknown = || UnknownField { template: template.to_owned(), path: Some(path.to_owned()) };
        there.then_some(self).ok_or_else(unknown)
    }

    /// Requests the part at a path of the template at this place in the list, under a tag. Returns whether there is
    /// one.
    pub fn select(&mut self, template: usize, path: &str, tag: u16) -> bool {
        let there = self.paths_of(template).iter().any(|p| p == path);
        if there {
            self.selected.entry(template).or_default().paths.insert(path.to_owned(), tag);
        }
        there
    }

    /// Wants all of a template, under this tag where a field is not named itself.
    ///
    /// # Errors
    /// If there is none.
    pub fn template(mut self, template: &str, tag: u16) -> Result<Self, UnknownField> {
        for index in self.named(template)? {
            self.selected.entry(index).or_default().all = Some(tag);
        }
        Ok(self)
    }

    /// Every path of a template, in its order, with those of groups and sequences.
    ///
    /// # Errors
    /// If there is none.
    pub fn paths(&self, template: &str) -> Result<Vec<String>, UnknownField> {
        Ok(self.named(template)?.into_iter().flat_map(|index| self.paths_of(index)).collect())
    }

    /// The tag of the part at a path, none where it is not wanted.
    pub(super) fn tag(&self, template: usize, path: &str) -> Option<u16> {
        let selected = self.selected.get(&template)?;
        selected.paths.get(path).copied().or(selected.all)
    }

    fn named(&self, template: &str) -> Result<Vec<usize>, UnknownField> {
        let list = self.templates.list();
        let found: Vec<usize> = (0..list.len()).filter(|i| list[*i].name.local == template).collect();
        if found.is_empty() {
            return Err(UnknownField { template: template.to_owned(), path: None });
        }
        Ok(found)
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
