//! QuickFIX XML: `<fix>` with header, trailer, messages, components and fields by name.

use super::raw::{
    FieldKey, OpeningTag, RawComponent, RawDictionary, RawField, RawMember, RawMessage, XmlTagReader,
};
use unitape_base::Error;

/// Groups written inside groups, at most.
const DEPTH_MAX: usize = 32;

pub(super) fn parse(xml: &mut XmlTagReader<'_>, root: &OpeningTag) -> Result<RawDictionary, Error> {
    let mut raw = RawDictionary::new("QuickFIX", read_version(root));
    if root.empty {
        return Ok(raw);
    }
    while let Some(section) = xml.next_start()? {
        match section.name.as_str() {
            "header" | "trailer" => {
                let items = read_members(xml, &section, 0)?;
                raw.header_trailer_members.extend(items);
            }
            "messages" => visit_section(xml, &section, "message", |xml, open| {
                let (msg_type, name) = (xml.attribute(open, "msgtype"), xml.attribute(open, "name"));
                let items = read_members(xml, open, 0)?;
                // A message without a name is as good as one with.
                raw.messages.extend(msg_type.map(|msg_type| RawMessage {
                    name: name.unwrap_or_else(|| msg_type.clone()),
                    msg_type,
                    items,
                }));
                Ok(())
            })?,
            "components" => visit_section(xml, &section, "component", |xml, open| {
                let key = xml.attribute(open, "name");
                let items = read_members(xml, open, 0)?;
                raw.components.extend(key.map(|key| RawComponent { key, items }));
                Ok(())
            })?,
            "fields" => visit_section(xml, &section, "field", |xml, open| {
                let field = read_field(xml, open)?;
                raw.fields.extend(field);
                Ok(())
            })?,
            _ => xml.skip_misplaced(&section, "fix")?,
        }
    }
    Ok(raw)
}

/// Returns the version as `FIX 4.4`, `FIX 5.0 SP2` or `FIXT 1.1`.
fn read_version(root: &OpeningTag) -> String {
    let part = |name| root.get(name).unwrap_or("?");
    let pack = root.get("servicepack").filter(|pack| !matches!(*pack, "0" | ""));
    let pack = pack.map_or(String::new(), |pack| format!(" SP{pack}"));
    format!("{} {}.{}{pack}", root.get("type").unwrap_or("FIX"), part("major"), part("minor"))
}

fn visit_section(
    xml: &mut XmlTagReader<'_>,
    section: &OpeningTag,
    name: &str,
    mut take: impl FnMut(&mut XmlTagReader<'_>, &OpeningTag) -> Result<(), Error>,
) -> Result<(), Error> {
    if section.empty {
        return Ok(());
    }
    while let Some(opening_tag) = xml.next_start()? {
        if opening_tag.name == name {
            take(xml, &opening_tag)?;
        } else {
            xml.skip_misplaced(&opening_tag, &section.name)?;
        }
    }
    Ok(())
}

fn read_members(
    xml: &mut XmlTagReader<'_>,
    parent: &OpeningTag,
    depth: usize,
) -> Result<Vec<RawMember>, Error> {
    let mut items = Vec::new();
    if parent.empty {
        return Ok(items);
    }
    if depth == DEPTH_MAX {
        return Err(xml.error_at(parent.line, format!("groups nest deeper than {DEPTH_MAX}")));
    }
    while let Some(opening_tag) = xml.next_start()? {
        let line = opening_tag.line;
        match opening_tag.name.as_str() {
            "field" => {
                let name = xml.attribute(&opening_tag, "name");
                items.extend(name.map(|name| RawMember::Field { key: FieldKey::Name(name), line }));
                xml.skip(&opening_tag)?;
            }
            "component" => {
                let key = xml.attribute(&opening_tag, "name");
                items.extend(key.map(|key| RawMember::Component { key, line }));
                xml.skip(&opening_tag)?;
            }
            "group" => {
                let count = xml.attribute(&opening_tag, "name");
                let inner = self::read_members(xml, &opening_tag, depth + 1)?;
                let group = |name| RawMember::Group { count: FieldKey::Name(name), items: inner, line };
                items.extend(count.map(group));
            }
            _ => xml.skip_misplaced(&opening_tag, &parent.name)?,
        }
    }
    Ok(items)
}

fn read_field(xml: &mut XmlTagReader<'_>, open: &OpeningTag) -> Result<Option<RawField>, Error> {
    let (tag, name) = (xml.tag(open, "number"), xml.attribute(open, "name"));
    let mut values = Vec::new();
    if !open.empty {
        while let Some(value) = xml.next_start()? {
            // Some dialects wrap the values in one more element.
            if value.name == "values" && !value.empty {
                while let Some(inner) = xml.next_start()? {
                    push_value(xml, &mut values, &inner)?;
                }
                continue;
            }
            push_value(xml, &mut values, &value)?;
        }
    }
    let (Some(tag), Some(name)) = (tag, name) else { return Ok(None) };
    let kind = open.get("type").unwrap_or("STRING").to_ascii_uppercase();
    Ok(Some(RawField { tag, name, kind, values, ..RawField::default() }))
}

fn push_value(
    xml: &mut XmlTagReader<'_>,
    values: &mut Vec<(String, String)>,
    open: &OpeningTag,
) -> Result<(), Error> {
    let value = xml.attribute(open, "enum");
    let name = open.get("description").unwrap_or_default().to_owned();
    values.extend(value.map(|value| (value, name)));
    xml.skip(open)
}
