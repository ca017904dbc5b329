//! From names of templates to places, and how large templates are with all that they refer to.

use super::error::{StaticCode, StaticError};
use super::load::PARTS_MAX;
use super::xml::At;
use super::{Instruction, Name, Templates};
use std::collections::HashMap;

/// Parts in each other, with those of all templates referred to, at most.
const DEPTH_MAX: usize = 64;

/// Finds what static references refer to. None may come back to where it began, nor lead to more than can be held.
pub(super) fn resolve(templates: &mut Templates, origins: &[(String, usize)]) -> Result<(), StaticError> {
    let mut places = HashMap::new();
    for (index, template) in templates.list.iter().enumerate() {
        places.entry(template.name.clone()).or_insert(index);
    }
    for template in &mut templates.list {
        refer(&mut template.body, &places);
    }
    let mut sizes = vec![Size::Unknown; templates.list.len()];
    for index in 0..templates.list.len() {
        size_of(templates, (index, 0), &mut sizes, origins)?;
    }
    Ok(())
}

fn refer(body: &mut [Instruction], places: &HashMap<Name, usize>) {
    for instruction in body {
        match instruction {
            Instruction::Static(name, place) => *place = places.get(name).copied(),
            Instruction::Group(group) => refer(&mut group.body, places),
            Instruction::Sequence(sequence) => refer(&mut sequence.body, places),
            Instruction::Field(_) | Instruction::Dynamic => {}
        }
    }
}

/// How many parts a template has with all that it refers to, and how many of them are in each other.
#[derive(Clone, Copy)]
enum Size {
    Unknown,
    UnderWay,
    Known { parts: usize, depth: usize },
}

fn size_of(
    templates: &Templates,
    (index, through): (usize, usize),
    sizes: &mut [Size],
    origins: &[(String, usize)],
) -> Result<(usize, usize), StaticError> {
    let template = &templates.list[index];
    let error = |what: String| {
        let (file, line) = &origins[index];
        Err(At { file, line: *line }
            .error(StaticCode::S1, format!("template {} {what}", template.name.local)))
    };
    match sizes[index] {
        Size::Known { parts, depth } => return Ok((parts, depth)),
        Size::UnderWay => return error("refers to itself".to_owned()),
        Size::Unknown => {}
    }
    if through >= DEPTH_MAX {
        return error(format!("is reached through more than {DEPTH_MAX} others"));
    }
    sizes[index] = Size::UnderWay;
    let (mut parts, mut depth) = (0usize, 0);
    let mut bodies = vec![(&template.body, 1)];
    while let Some((body, level)) = bodies.pop() {
        depth = depth.max(level);
        for instruction in body {
            parts += 1;
            match instruction {
                Instruction::Static(_, Some(other)) => {
                    let (more, deeper) = size_of(templates, (*other, through + 1), sizes, origins)?;
                    (parts, depth) = (parts + more, depth.max(level + deeper));
                }
                Instruction::Group(group) => bodies.push((&group.body, level + 1)),
                Instruction::Sequence(sequence) => bodies.push((&sequence.body, level + 1)),
                _ => {}
            }
        }
    }
    if parts > PARTS_MAX || depth > DEPTH_MAX {
        let what = format!(
            "has, with those it refers to, {parts} parts, {depth} in each other; {PARTS_MAX} and {DEPTH_MAX} at most"
        );
        return error(what);
    }
    sizes[index] = Size::Known { parts, depth };
    Ok((parts, depth))
}
