//! QuickFIX XML: `<fix>` with header, trailer, messages, components and fields by name.

use super::super::error::Error;
use super::raw::{Item, Key, Open, Raw, RawComponent, RawField, RawMessage, Xml};

/// Groups written inside groups, at most.
const DEPTH_MAX: usize = 32;

pub(super) fn parse(xml: &mut Xml<'_>, empty: bool) -> Result<Raw, Error> {
    let mut raw = Raw::default();
    if empty {
        return Ok(raw);
    }
    while let Some(section) = xml.next_start()? {
        match section.name.as_str() {
            "header" | "trailer" => {
                let items = items(xml, &section, 0)?;
                raw.common.extend(items);
            }
            "messages" => each(xml, &section, "message", |xml, open| {
                raw.messages.push(RawMessage {
                    msg_type: xml.attribute(open, "msgtype")?,
                    name: xml.attribute(open, "name")?,
                    items: items(xml, open, 0)?,
                });
                Ok(())
            })?,
            "components" => each(xml, &section, "component", |xml, open| {
                let key = xml.attribute(open, "name")?;
                raw.components.push(RawComponent { key, items: items(xml, open, 0)? });
                Ok(())
            })?,
            "fields" => each(xml, &section, "field", |xml, open| {
                raw.fields.push(field(xml, open)?);
                Ok(())
            })?,
            other => {
                let message = format!("<{other}> is not a section of a QuickFIX dictionary");
                return Err(xml.error_at(section.line, message));
            }
        }
    }
    Ok(raw)
}

fn each(
    xml: &mut Xml<'_>,
    section: &Open,
    name: &str,
    mut take: impl FnMut(&mut Xml<'_>, &Open) -> Result<(), Error>,
) -> Result<(), Error> {
    if section.empty {
        return Ok(());
    }
    while let Some(open) = xml.next_start()? {
        if open.name != name {
            let message = format!("<{}> inside <{}>, where <{name}> belongs", open.name, section.name);
            return Err(xml.error_at(open.line, message));
        }
        take(xml, &open)?;
    }
    Ok(())
}

fn items(xml: &mut Xml<'_>, parent: &Open, depth: usize) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    if parent.empty {
        return Ok(items);
    }
    if depth == DEPTH_MAX {
        return Err(xml.error_at(parent.line, format!("groups nest deeper than {DEPTH_MAX}")));
    }
    while let Some(open) = xml.next_start()? {
        let line = open.line;
        match open.name.as_str() {
            "field" => {
                items.push(Item::Field { key: Key::Name(xml.attribute(&open, "name")?), line });
                xml.skip(&open)?;
            }
            "component" => {
                items.push(Item::Component { key: xml.attribute(&open, "name")?, line });
                xml.skip(&open)?;
            }
            "group" => {
                let count = Key::Name(xml.attribute(&open, "name")?);
                let inner = self::items(xml, &open, depth + 1)?;
                items.push(Item::Group { count, items: inner, line });
            }
            other => {
                let message = format!("<{other}> where field, group or component belongs");
                return Err(xml.error_at(line, message));
            }
        }
    }
    Ok(items)
}

fn field(xml: &mut Xml<'_>, open: &Open) -> Result<RawField, Error> {
    let mut field = RawField {
        tag: xml.tag(open, "number")?,
        name: xml.attribute(open, "name")?,
        kind: open.get("type").unwrap_or("STRING").to_ascii_uppercase(),
        ..RawField::default()
    };
    if open.empty {
        return Ok(field);
    }
    while let Some(value) = xml.next_start()? {
        // Some dialects wrap the values in one more element.
        if value.name == "values" {
            while let Some(inner) = xml.next_start()? {
                push_value(xml, &mut field, &inner)?;
            }
            continue;
        }
        push_value(xml, &mut field, &value)?;
    }
    Ok(field)
}

fn push_value(xml: &mut Xml<'_>, field: &mut RawField, open: &Open) -> Result<(), Error> {
    let value = xml.attribute(open, "enum")?;
    let name = open.get("description").unwrap_or_default().to_owned();
    field.values.push((value, name));
    xml.skip(open)
}
