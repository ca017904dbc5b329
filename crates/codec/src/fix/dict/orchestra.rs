//! FIX Orchestra (2020, v1.0): `<repository>` with code sets, fields, components, groups and
//! messages by id. Only what tag=value needs is read; flows, actors and annotations are skipped.

use std::collections::HashMap;

use super::raw::{
    FieldKey, OpeningTag, RawComponent, RawDictionary, RawField, RawGroup, RawMember, RawMessage,
    XmlTagReader,
};
use unitape_base::Error;

/// A code set: type of its values, and the values.
type CodeSet = (String, Vec<(String, String)>);

pub(super) fn parse(xml: &mut XmlTagReader<'_>, root: &OpeningTag) -> Result<RawDictionary, Error> {
    let root_attribute = |name| root.get(name).unwrap_or_default();
    let version = match (root_attribute("name"), root_attribute("version")) {
        (name, version) if name == version => name.to_owned(),
        (name, version) => format!("{name} {version}").trim().to_owned(),
    };
    let mut raw = RawDictionary::new("Orchestra", version);
    if root.empty {
        return Ok(raw);
    }
    let mut code_sets: HashMap<String, CodeSet> = HashMap::new();
    while let Some(section) = xml.next_start()? {
        if section.empty {
            continue;
        }
        match section.name.as_str() {
            "codeSets" => visit_children(xml, "codeSet", |xml, open| {
                let (name, kind) = (xml.attribute(open, "name"), xml.attribute(open, "type"));
                let mut values = Vec::new();
                if !open.empty {
                    visit_children(xml, "code", |xml, code| {
                        let (value, name) = (xml.attribute(code, "value"), xml.attribute(code, "name"));
                        values.extend(value.zip(name));
                        xml.skip(code)
                    })?;
                }
                code_sets.extend(name.zip(kind).map(|(name, kind)| (name, (kind, values))));
                Ok(())
            })?,
            "fields" => visit_children(xml, "field", |xml, open| {
                let (tag, name) = (xml.tag(open, "id"), xml.attribute(open, "name"));
                let kind = open.get("type").unwrap_or("String").to_owned();
                let length_tag = open.get("lengthId").and_then(|_| xml.tag(open, "lengthId"));
                let field = |(tag, name)| RawField { tag, name, kind, values: Vec::new(), length_tag };
                raw.fields.extend(tag.zip(name).map(field));
                xml.skip(open)
            })?,
            "components" => visit_children(xml, "component", |xml, open| {
                let key = xml.attribute(open, "id");
                let (_, items) = read_members(xml, open)?;
                raw.components.extend(key.map(|key| RawComponent { key, items }));
                Ok(())
            })?,
            "groups" => visit_children(xml, "group", |xml, open| {
                let key = xml.attribute(open, "id");
                let line = open.line;
                let (count, items) = read_members(xml, open)?;
                match (key, count) {
                    (Some(key), Some(count)) => raw.groups.push(RawGroup { key, count, items, line }),
                    (Some(key), None) => xml.note(line, format!("group {key} has no <numInGroup>")),
                    (None, _) => {}
                }
                Ok(())
            })?,
            "messages" => visit_children(xml, "message", |xml, open| {
                // Messages of binary protocols have no MsgType (35).
                let Some(msg_type) = open.get("msgType").map(str::to_owned) else {
                    return xml.skip(open);
                };
                let name = open.get("name").unwrap_or(&msg_type).to_owned();
                let mut members = Vec::new();
                if !open.empty {
                    visit_children(xml, "structure", |xml, structure| {
                        members.extend(read_members(xml, structure)?.1);
                        Ok(())
                    })?;
                }
                raw.messages.push(RawMessage { msg_type, name, items: members });
                Ok(())
            })?,
            _ => xml.skip(&section)?,
        }
    }
    for field in &mut raw.fields {
        if let Some((kind, values)) = code_sets.get(&field.kind) {
            field.kind.clone_from(kind);
            field.values.clone_from(values);
        }
        field.kind.make_ascii_uppercase();
    }
    Ok(raw)
}

/// Visits the children of the current element that are called `name`; skips the others.
fn visit_children(
    xml: &mut XmlTagReader<'_>,
    name: &str,
    mut take: impl FnMut(&mut XmlTagReader<'_>, &OpeningTag) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(opening_tag) = xml.next_start()? {
        if opening_tag.name == name {
            take(xml, &opening_tag)?;
        } else {
            xml.skip(&opening_tag)?;
        }
    }
    Ok(())
}

/// Reads the members that an element refers to, and the count field of a group.
fn read_members(
    xml: &mut XmlTagReader<'_>,
    parent: &OpeningTag,
) -> Result<(Option<FieldKey>, Vec<RawMember>), Error> {
    let (mut count, mut items) = (None, Vec::new());
    if parent.empty {
        return Ok((count, items));
    }
    while let Some(opening_tag) = xml.next_start()? {
        let line = opening_tag.line;
        match opening_tag.name.as_str() {
            "numInGroup" => count = xml.tag(&opening_tag, "id").map(FieldKey::Tag),
            "fieldRef" => {
                let tag = xml.tag(&opening_tag, "id");
                items.extend(tag.map(|tag| RawMember::Field { key: FieldKey::Tag(tag), line }));
            }
            "componentRef" => {
                let key = xml.attribute(&opening_tag, "id");
                items.extend(key.map(|key| RawMember::Component { key, line }));
            }
            "groupRef" => {
                let key = xml.attribute(&opening_tag, "id");
                items.extend(key.map(|key| RawMember::GroupRef { key, line }));
            }
            _ => {}
        }
        xml.skip(&opening_tag)?;
    }
    Ok((count, items))
}
