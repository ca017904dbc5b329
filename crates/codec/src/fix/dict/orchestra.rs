//! FIX Orchestra (2020, v1.0): `<repository>` with code sets, fields, components, groups and
//! messages by id. Only what tag=value needs is read; flows, actors and annotations are skipped.

use std::collections::HashMap;

use super::super::error::Error;
use super::raw::{Item, Key, Open, Raw, RawComponent, RawField, RawGroup, RawMessage, Xml};

/// A code set: type of its values, and the values.
type CodeSet = (String, Vec<(String, String)>);

pub(super) fn parse(xml: &mut Xml<'_>, empty: bool) -> Result<Raw, Error> {
    let mut raw = Raw::default();
    if empty {
        return Ok(raw);
    }
    let mut code_sets: HashMap<String, CodeSet> = HashMap::new();
    while let Some(section) = xml.next_start()? {
        if section.empty {
            continue;
        }
        match section.name.as_str() {
            "codeSets" => children(xml, "codeSet", |xml, open| {
                let name = xml.attribute(open, "name")?;
                let kind = xml.attribute(open, "type")?;
                let mut values = Vec::new();
                if !open.empty {
                    children(xml, "code", |xml, code| {
                        values.push((xml.attribute(code, "value")?, xml.attribute(code, "name")?));
                        xml.skip(code)
                    })?;
                }
                code_sets.insert(name, (kind, values));
                Ok(())
            })?,
            "fields" => children(xml, "field", |xml, open| {
                raw.fields.push(RawField {
                    tag: xml.tag(open, "id")?,
                    name: xml.attribute(open, "name")?,
                    kind: xml.attribute(open, "type")?,
                    values: Vec::new(),
                    length_tag: match open.get("lengthId") {
                        Some(_) => Some(xml.tag(open, "lengthId")?),
                        None => None,
                    },
                });
                xml.skip(open)
            })?,
            "components" => children(xml, "component", |xml, open| {
                let key = xml.attribute(open, "id")?;
                raw.components.push(RawComponent { key, items: items(xml, open)?.1 });
                Ok(())
            })?,
            "groups" => children(xml, "group", |xml, open| {
                let key = xml.attribute(open, "id")?;
                let line = open.line;
                let (count, items) = items(xml, open)?;
                let Some(count) = count else {
                    return Err(xml.error_at(line, format!("group {key} has no <numInGroup>")));
                };
                raw.groups.push(RawGroup { key, count, items, line });
                Ok(())
            })?,
            "messages" => children(xml, "message", |xml, open| {
                // Messages of binary protocols have no MsgType (35).
                let Some(msg_type) = open.get("msgType").map(str::to_owned) else {
                    return xml.skip(open);
                };
                let name = xml.attribute(open, "name")?;
                let mut found = Vec::new();
                if !open.empty {
                    children(xml, "structure", |xml, structure| {
                        found.extend(items(xml, structure)?.1);
                        Ok(())
                    })?;
                }
                raw.messages.push(RawMessage { msg_type, name, items: found });
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

/// The children of the element we are in that are called `name`; others are skipped.
fn children(
    xml: &mut Xml<'_>,
    name: &str,
    mut take: impl FnMut(&mut Xml<'_>, &Open) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(open) = xml.next_start()? {
        if open.name == name {
            take(xml, &open)?;
        } else {
            xml.skip(&open)?;
        }
    }
    Ok(())
}

/// What an element refers to, and its count field if it is a group.
fn items(xml: &mut Xml<'_>, parent: &Open) -> Result<(Option<Key>, Vec<Item>), Error> {
    let (mut count, mut items) = (None, Vec::new());
    if parent.empty {
        return Ok((count, items));
    }
    while let Some(open) = xml.next_start()? {
        let line = open.line;
        match open.name.as_str() {
            "numInGroup" => count = Some(Key::Tag(xml.tag(&open, "id")?)),
            "fieldRef" => items.push(Item::Field { key: Key::Tag(xml.tag(&open, "id")?), line }),
            "componentRef" => items.push(Item::Component { key: xml.attribute(&open, "id")?, line }),
            "groupRef" => items.push(Item::GroupRef { key: xml.attribute(&open, "id")?, line }),
            _ => {}
        }
        xml.skip(&open)?;
    }
    Ok((count, items))
}
