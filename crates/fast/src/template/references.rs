//! From names of templates to places, and how large templates are with all that they refer to.

use super::error::{TemplateError, TemplateErrorCode};
use super::load::{PARTS_MAX, TEXT_MAX};
use super::xml::FileLocation;
use super::{Instruction, QualifiedName, Templates};
use std::collections::HashMap;

/// The greatest depth of nested parts, with the parts of all referenced templates.
const DEPTH_MAX: usize = 64;

/// Parts of all templates, each with all that it refers to, at most: they are written out in place of references.
const ALL_PARTS_MAX: usize = 1 << 20;

/// Finds what static references refer to. None may come back to where it began, nor lead to more than can be held.
pub(super) fn resolve(templates: &mut Templates, origins: &[(String, usize)]) -> Result<(), TemplateError> {
    let mut template_indexes = HashMap::new();
    for (index, template) in templates.list.iter().enumerate() {
        template_indexes.entry(template.name.clone()).or_insert(index);
    }
    for template in &mut templates.list {
        refer(&mut template.body, &template_indexes);
    }
    let mut sizes = vec![SizeState::Unknown; templates.list.len()];
    let (mut parts, mut text) = (0, 0);
    for index in 0..templates.list.len() {
        let size = size_of(templates, index, 0, &mut sizes, origins)?;
        (parts, text) = (parts + size.part_count, text + size.text_bytes);
        if parts > ALL_PARTS_MAX || text > TEXT_MAX {
            let reason = format!(
                "templates with all that they refer to have {parts} parts up to here, and {text} bytes of names and initial \
                 values; {ALL_PARTS_MAX} and {TEXT_MAX} at most"
            );
            return Err(location_of(origins, index).error(TemplateErrorCode::S1, reason));
        }
    }
    Ok(())
}

fn refer(body: &mut [Instruction], template_indexes: &HashMap<QualifiedName, usize>) {
    for instruction in body {
        match instruction {
            Instruction::Static(name, template_index) => {
                *template_index = template_indexes.get(name).copied()
            }
            Instruction::Group(group) => refer(&mut group.body, template_indexes),
            Instruction::Sequence(sequence) => refer(&mut sequence.body, template_indexes),
            Instruction::Field(_) | Instruction::Dynamic => {}
        }
    }
}

/// The size of a template with all that it refers to.
#[derive(Clone, Copy, Default)]
struct TemplateSize {
    part_count: usize,
    /// How many of them are in each other.
    nesting_depth: usize,
    /// Bytes of their paths, namespaces and initial values.
    text_bytes: usize,
}

#[derive(Clone, Copy)]
enum SizeState {
    Unknown,
    UnderWay,
    Known(TemplateSize),
}

/// Computes the size of a template that is reached through `through` other templates.
fn size_of(
    templates: &Templates,
    index: usize,
    through: usize,
    sizes: &mut [SizeState],
    origins: &[(String, usize)],
) -> Result<TemplateSize, TemplateError> {
    let template = &templates.list[index];
    let error = |problem: String| {
        let reason = format!("template {} {problem}", template.name.local);
        Err(location_of(origins, index).error(TemplateErrorCode::S1, reason))
    };
    match sizes[index] {
        SizeState::Known(size) => return Ok(size),
        SizeState::UnderWay => return error("refers to itself".to_owned()),
        SizeState::Unknown => {}
    }
    if through >= DEPTH_MAX {
        return error(format!("is reached through more than {DEPTH_MAX} others"));
    }
    sizes[index] = SizeState::UnderWay;
    let mut size = TemplateSize::default();
    // Each with its depth, and the bytes of the path to it.
    let mut bodies = vec![(&template.body, 1, 0)];
    while let Some((body, level, path)) = bodies.pop() {
        size.nesting_depth = size.nesting_depth.max(level);
        for instruction in body {
            size.part_count += 1;
            size.text_bytes += path;
            let mut inside = |name: &QualifiedName, body| {
                size.text_bytes += name.bytes();
                bodies.push((body, level + 1, path + name.local.len() + 1));
            };
            match instruction {
                Instruction::Static(_, Some(referenced_index)) => {
                    let more = size_of(templates, *referenced_index, through + 1, sizes, origins)?;
                    size.part_count += more.part_count;
                    size.text_bytes += more.text_bytes + path * more.part_count;
                    size.nesting_depth = size.nesting_depth.max(level + more.nesting_depth);
                }
                Instruction::Group(group) => inside(&group.name, &group.body),
                Instruction::Sequence(sequence) => {
                    inside(&sequence.name, &sequence.body);
                    size.text_bytes += sequence.length.bytes();
                }
                Instruction::Field(field) => size.text_bytes += field.bytes(),
                Instruction::Static(name, None) => size.text_bytes += name.bytes(),
                Instruction::Dynamic => {}
            }
        }
    }
    if size.part_count > PARTS_MAX || size.nesting_depth > DEPTH_MAX || size.text_bytes > TEXT_MAX {
        let TemplateSize { part_count: parts, nesting_depth: depth, text_bytes: text } = size;
        return error(format!(
            "has, with those it refers to, {parts} parts, {depth} in each other, and {text} bytes of names and initial \
             values; {PARTS_MAX}, {DEPTH_MAX} and {TEXT_MAX} at most"
        ));
    }
    sizes[index] = SizeState::Known(size);
    Ok(size)
}

fn location_of(origins: &[(String, usize)], index: usize) -> FileLocation<'_> {
    let (file, line) = &origins[index];
    FileLocation { file_name: file, line: *line }
}
