//! Dictionaries: which fields, messages and repeating groups a dialect of FIX has.
//!
//! ```text
//! QuickFIX XML ─╮                       ╭─ fields by tag: name, type, values
//!               ├─▶ items (as written) ─┼─ messages by type: top-level groups
//! Orchestra ────╯                       ╰─ groups: count tag, delimiter, members, nested groups
//! ```
//!
//! Several files make one dictionary (FIXT 1.1 for the session, FIX 5.0 SP2 for the messages). A
//! name is looked up in its own file first, then in the others; a field, component or message that
//! two files define is read from the later one. A component or message that a file names and leaves
//! empty is the one of another file.
//!
//! **Tolerant.** Dictionaries in use are rarely without a fault, and one wrong line must not cost the
//! rest: what is unknown, incomplete or refers to nothing is left out, with a note of file and line
//! ([`FixDictionary::notes`]). An error is only what makes the whole file doubtful: no XML, cut off, neither of the two
//! kinds, or components nested without end.

mod orchestra;
mod quickfix;
mod raw;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::data::RawFieldTags;
use super::group::{GroupSpec, GroupTable, TagSet};
use raw::{DefinitionIndex, RawDictionary, RawMember};
use unitape_base::Error;

/// A field as the dictionary defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDef {
    /// The tag.
    pub tag: u32,
    /// The name, for instance `OrderQty`.
    pub name: String,
    /// The type in capitals, for instance `QTY`.
    pub kind: String,
    /// Its permitted values with their names, in the order of the file; empty if any value is permitted.
    pub values: Vec<(String, String)>,
}

impl FieldDef {
    /// Returns whether the field's values are text in the encoding that a message names.
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        self.kind == "DATA" && self.name.contains("Encoded")
    }
}

/// A message as the dictionary defines it.
#[derive(Debug, Clone)]
pub struct MessageDef {
    /// MsgType (35).
    pub msg_type: String,
    /// The name, for instance `NewOrderSingle`.
    pub name: String,
    /// Groups outside other groups, including those of header and trailer.
    pub(super) groups: GroupTable,
    /// The tags outside groups, with the counts of groups; header and trailer included.
    pub(super) body: TagSet,
}

/// The contents of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DictionaryFileSummary {
    /// The name it was given under.
    pub file: String,
    /// `QuickFIX` or `Orchestra`.
    pub form: &'static str,
    /// The dictionary's own version: `FIX 4.4`, `FIX.Latest_EP272`.
    pub version: String,
    /// Fields defined.
    pub fields: usize,
    /// Messages with a MsgType (35).
    pub messages: usize,
    /// Components defined.
    pub components: usize,
    /// Groups, those inside others too, each where it is written.
    pub groups: usize,
}

impl std::fmt::Display for DictionaryFileSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DictionaryFileSummary { file, form, version, fields, messages, components, groups } = self;
        write!(f, "{file}: {form} dictionary {version}: {fields} fields, {messages} messages, ")?;
        write!(f, "{components} components, {groups} groups")
    }
}

/// A loaded dictionary. Never changes.
#[derive(Debug, Clone)]
pub struct FixDictionary {
    fields: BTreeMap<u32, FieldDef>,
    pub(super) messages: HashMap<Vec<u8>, MessageDef>,
    /// For message types not defined: the groups of header and trailer.
    header_trailer_groups: GroupTable,
    /// The tags of header and trailer outside groups.
    common_body: TagSet,
    data: Arc<RawFieldTags>,
    files: Vec<DictionaryFileSummary>,
    notes: Vec<String>,
}

/// Notes kept, at most; one more says how many there were.
const NOTES_MAX: usize = 1000;

impl FixDictionary {
    /// Reads QuickFIX XML and Orchestra files, given as (name for errors, content).
    ///
    /// # Errors
    /// Fails, with file and line, if the text is not XML, is cut off or is no dictionary of either kind. Fails also
    /// if components nest deeper than 32, or so often that they have more than 100,000 fields.
    ///
    /// ```
    /// use unitape_codec::fix::FixDictionary;
    ///
    /// let xml = b"<fix><header/><trailer/><components/><messages>
    ///   <message name='News' msgtype='B'><group name='NoLines'><field name='Text'/></group></message>
    /// </messages><fields>
    ///   <field number='33' name='NoLines' type='NUMINGROUP'/>
    ///   <field number='58' name='Text' type='STRING'/>
    /// </fields></fix>";
    /// let dictionary = FixDictionary::parse(&[("mine.xml", xml)]).unwrap();
    /// let lines = dictionary.group(b"B", 33).unwrap();
    /// assert_eq!(lines.delimiter(), Some(58));
    /// ```
    pub fn parse(files: &[(&str, &[u8])]) -> Result<Self, Error> {
        let mut raws = Vec::with_capacity(files.len());
        for &(file, content) in files {
            raws.push(raw::parse(file, content)?);
        }
        DictionaryResolver::new(&raws).resolve()
    }

    /// Looks up a field by its tag.
    #[must_use]
    pub fn field(&self, tag: u32) -> Option<&FieldDef> {
        self.fields.get(&tag)
    }

    /// Lists all fields by tag.
    pub fn fields(&self) -> impl Iterator<Item = &FieldDef> {
        self.fields.values()
    }

    /// Looks up a message by its MsgType (35).
    #[must_use]
    pub fn message(&self, msg_type: &[u8]) -> Option<&MessageDef> {
        self.messages.get(msg_type)
    }

    /// Counts the defined messages.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Returns the top-level groups of a message type. Returns the groups of header and trailer if the type is not
    /// defined.
    #[must_use]
    pub fn groups(&self, msg_type: &[u8]) -> &GroupTable {
        self.messages.get(msg_type).map_or(&self.header_trailer_groups, |message| &message.groups)
    }

    /// Looks up the top-level group of a message type by its count tag.
    #[must_use]
    pub fn group(&self, msg_type: &[u8], count_tag: u32) -> Option<&Arc<GroupSpec>> {
        self.groups(msg_type).get(count_tag)
    }

    /// Returns a message type's tags outside groups, including those of header and trailer. For an undefined type,
    /// returns only those of header and trailer.
    #[must_use]
    pub(super) fn body(&self, msg_type: &[u8]) -> &TagSet {
        self.messages.get(msg_type).map_or(&self.common_body, |message| &message.body)
    }

    /// Returns a summary of each file, in the order given.
    #[must_use]
    pub fn files(&self) -> &[DictionaryFileSummary] {
        &self.files
    }

    /// Definitions that were left out and why, each with file and line; empty for a dictionary without faults.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the data fields of the standard and of this dictionary.
    #[must_use]
    pub fn data_tags(&self) -> Arc<RawFieldTags> {
        Arc::clone(&self.data)
    }
}

/// Builds tables from the contents of the files.
struct DictionaryResolver<'r> {
    raws: &'r [RawDictionary],
    /// Name to tag, over all files.
    tags: HashMap<&'r str, u32>,
    /// Key to definition, over all files.
    components: HashMap<&'r str, DefinitionIndex>,
    groups: HashMap<&'r str, DefinitionIndex>,
    /// Components done, by (file, index): a component is used by many messages.
    resolved_components: HashMap<DefinitionIndex, FlatMembers>,
    resolved_groups: HashMap<DefinitionIndex, Arc<GroupSpec>>,
    /// Components and groups being read, to detect one that contains itself.
    open_definitions: HashSet<DefinitionIndex>,
    open_groups: HashSet<DefinitionIndex>,
    note_lines: BTreeSet<(usize, usize, String)>,
}

/// The fields and groups of a list of items, with its components written out.
#[derive(Debug, Clone, Default)]
struct FlatMembers {
    /// Tags in order; a group is its count tag.
    members: Vec<u32>,
    groups: Vec<Arc<GroupSpec>>,
}

/// Components inside components, at most.
const COMPONENT_DEPTH_MAX: usize = 32;

/// Fields of one message, component or group, at most.
const MEMBERS_MAX: usize = 100_000;

impl<'r> DictionaryResolver<'r> {
    fn new(raws: &'r [RawDictionary]) -> Self {
        let mut resolver = DictionaryResolver {
            raws,
            tags: HashMap::new(),
            components: HashMap::new(),
            groups: HashMap::new(),
            resolved_components: HashMap::new(),
            resolved_groups: HashMap::new(),
            open_definitions: HashSet::new(),
            open_groups: HashSet::new(),
            note_lines: BTreeSet::new(),
        };
        for (file, raw) in raws.iter().enumerate() {
            for field in &raw.fields {
                resolver.tags.insert(&field.name, field.tag);
            }
            // A component that a file names and leaves empty is defined by another one: FIXT 1.1 does so with
            // MsgTypeGrp.
            for (index, component) in raw.components.iter().enumerate() {
                let definition = DefinitionIndex { file, index };
                match component.items.is_empty() {
                    true => _ = resolver.components.entry(&component.key).or_insert(definition),
                    false => _ = resolver.components.insert(&component.key, definition),
                }
            }
            for (index, group) in raw.groups.iter().enumerate() {
                resolver.groups.insert(&group.key, DefinitionIndex { file, index });
            }
        }
        resolver
    }

    fn resolve(mut self) -> Result<FixDictionary, Error> {
        let raws = self.raws;
        let mut fields = BTreeMap::new();
        let mut pairs = Vec::new();
        for raw in raws {
            for field in &raw.fields {
                if field.kind == "DATA" || field.kind == "XMLDATA" {
                    pairs.extend(self.length_tag(raw, field).map(|length| (length, field.tag)));
                }
                fields.insert(
                    field.tag,
                    FieldDef {
                        tag: field.tag,
                        name: field.name.clone(),
                        kind: field.kind.clone(),
                        values: field.values.clone(),
                    },
                );
            }
        }
        let mut common = FlatMembers::default();
        for (file, raw) in raws.iter().enumerate() {
            self.flatten_members(file, &raw.header_trailer_members, &mut common, 0)?;
        }
        let mut messages = HashMap::new();
        for (file, raw) in raws.iter().enumerate() {
            for message in &raw.messages {
                if message.items.is_empty() && messages.contains_key(message.msg_type.as_bytes()) {
                    continue;
                }
                let mut flat = FlatMembers::default();
                self.flatten_members(file, &message.items, &mut flat, 0)?;
                flat.groups.extend(common.groups.iter().cloned());
                flat.members.extend_from_slice(&common.members);
                let definition = MessageDef {
                    msg_type: message.msg_type.clone(),
                    name: message.name.clone(),
                    // The message's own come first and stay where the header has one alike.
                    groups: GroupTable::new(flat.groups),
                    body: TagSet::new(flat.members),
                };
                messages.insert(message.msg_type.clone().into_bytes(), definition);
            }
        }
        let data = Arc::new(RawFieldTags::with_standard(pairs));
        let files = raws.iter().map(RawDictionary::file_summary).collect();
        let mut notes = BTreeSet::new();
        for (file, raw) in raws.iter().enumerate() {
            notes.extend(raw.omissions.iter().map(|(line, note)| (file, *line, note.clone())));
        }
        notes.append(&mut self.note_lines);
        let notes_left_out = notes.len().saturating_sub(NOTES_MAX);
        let mut notes: Vec<_> = notes
            .into_iter()
            .take(NOTES_MAX)
            .map(|(file, line, note)| format!("{}:{line}: {note}; left out", raws[file].file))
            .collect();
        notes.extend((notes_left_out > 0).then(|| format!("and {notes_left_out} more")));
        let common_body = TagSet::new(common.members);
        let common = GroupTable::new(common.groups);
        Ok(FixDictionary { fields, messages, header_trailer_groups: common, common_body, data, files, notes })
    }

    /// Finds the length field of a data field: the file names it, or it is the custom `XLen` of `X`.
    fn length_tag(&self, raw: &RawDictionary, field: &raw::RawField) -> Option<u32> {
        let by_name = |name: String| raw.tag(&name).or_else(|| self.tags.get(name.as_str()).copied());
        field
            .length_tag
            .or_else(|| by_name(format!("{}Len", field.name)))
            .or_else(|| by_name(format!("{}Length", field.name)))
    }

    fn flatten_members(
        &mut self,
        file: usize,
        items: &'r [RawMember],
        into: &mut FlatMembers,
        depth: usize,
    ) -> Result<(), Error> {
        let raws = self.raws;
        let raw = &raws[file];
        for item in items {
            match item {
                RawMember::Field { key, line } => into.members.extend(self.resolve_tag(file, key, *line)),
                RawMember::Component { key, line } => {
                    let own_component =
                        raw.component(key).filter(|index| !raw.components[*index].items.is_empty());
                    let definition = own_component.map(|index| DefinitionIndex { file, index });
                    let definition = definition.or_else(|| self.components.get(key.as_str()).copied());
                    let Some(definition) = definition else {
                        self.note_omission(file, *line, format!("component {key} is not defined"));
                        continue;
                    };
                    if self.open_definitions.contains(&definition) {
                        self.note_omission(file, *line, format!("component {key} contains itself"));
                        continue;
                    }
                    let flat = self.component_definition(definition, depth, raw, *line)?;
                    // A component named twice by each of thirty others doubles thirty times.
                    if into.members.len() + flat.members.len() > MEMBERS_MAX {
                        return Err(raw.error(*line, format!("more than {MEMBERS_MAX} fields")));
                    }
                    into.members.extend_from_slice(&flat.members);
                    into.groups.extend(flat.groups.iter().cloned());
                }
                RawMember::Group { count, items, line } => {
                    let Some(group) = self.group(file, count, items, *line, depth)? else { continue };
                    into.members.push(group.count_tag());
                    into.groups.push(group);
                }
                RawMember::GroupRef { key, line } => {
                    let definition = raw.group(key).map(|index| DefinitionIndex { file, index });
                    let definition = definition.or_else(|| self.groups.get(key.as_str()).copied());
                    let Some(definition) = definition else {
                        self.note_omission(file, *line, format!("group {key} is not defined"));
                        continue;
                    };
                    let group = match self.resolved_groups.get(&definition) {
                        Some(group) => Arc::clone(group),
                        None if !self.open_groups.insert(definition) => {
                            self.note_omission(file, *line, format!("group {key} contains itself"));
                            continue;
                        }
                        None => {
                            let body = &raws[definition.file].groups[definition.index];
                            let group =
                                self.group(definition.file, &body.count, &body.items, body.line, depth)?;
                            self.open_groups.remove(&definition);
                            let Some(group) = group else { continue };
                            self.resolved_groups.insert(definition, Arc::clone(&group));
                            group
                        }
                    };
                    into.members.push(group.count_tag());
                    into.groups.push(group);
                }
            }
        }
        Ok(())
    }

    fn component_definition(
        &mut self,
        definition: DefinitionIndex,
        depth: usize,
        used: &RawDictionary,
        line: usize,
    ) -> Result<FlatMembers, Error> {
        if let Some(flat) = self.resolved_components.get(&definition) {
            return Ok(flat.clone());
        }
        if depth == COMPONENT_DEPTH_MAX {
            return Err(used.error(line, format!("components nest deeper than {COMPONENT_DEPTH_MAX}")));
        }
        let raws = self.raws;
        let component = &raws[definition.file].components[definition.index];
        let mut flat = FlatMembers::default();
        self.open_definitions.insert(definition);
        self.flatten_members(definition.file, &component.items, &mut flat, depth + 1)?;
        self.open_definitions.remove(&definition);
        self.resolved_components.insert(definition, flat.clone());
        Ok(flat)
    }

    fn group(
        &mut self,
        file: usize,
        count: &raw::FieldKey,
        items: &'r [RawMember],
        line: usize,
        depth: usize,
    ) -> Result<Option<Arc<GroupSpec>>, Error> {
        let raw = &self.raws[file];
        let Some(count_tag) = self.resolve_tag(file, count, line) else { return Ok(None) };
        if depth == COMPONENT_DEPTH_MAX {
            return Err(raw.error(line, format!("groups nest deeper than {COMPONENT_DEPTH_MAX}")));
        }
        let mut flat = FlatMembers::default();
        self.flatten_members(file, items, &mut flat, depth + 1)?;
        let Some(&delimiter) = flat.members.first() else {
            self.note_omission(file, line, format!("group {count_tag} has no fields"));
            return Ok(None);
        };
        Ok(Some(Arc::new(GroupSpec::new(count_tag, Some(delimiter), flat.members, flat.groups))))
    }

    fn resolve_tag(&mut self, file: usize, key: &raw::FieldKey, line: usize) -> Option<u32> {
        let name = match key {
            raw::FieldKey::Tag(tag) => return Some(*tag),
            raw::FieldKey::Name(name) => name,
        };
        let tag = self.raws[file].tag(name).or_else(|| self.tags.get(name.as_str()).copied());
        if tag.is_none() {
            self.note_omission(file, line, format!("field {name} is not defined"));
        }
        tag
    }

    /// Notes a definition that is left out. A component is read for many messages, but noted once.
    fn note_omission(&mut self, file: usize, line: usize, reason: String) {
        self.note_lines.insert((file, line, reason));
    }
}

#[cfg(test)]
mod tests;
