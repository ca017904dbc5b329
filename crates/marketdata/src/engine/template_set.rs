//! Templates of a channel, and which of their fields are asked for.

use super::config::MessageKind;
use super::config_refusal::{ConfigResult, refuse_config};
use super::field_roles::FieldRole;
use super::packet_header::HeaderProgram;
use std::collections::BTreeMap;
use std::sync::Arc;
use unitape_fast::template::Instruction;
use unitape_fast::{Projection, TemplateFile, Templates};

/// Templates that are loaded together, and their meanings.
#[derive(Clone, Debug)]
pub(super) struct TemplateSet {
    pub files: Vec<String>,
    pub templates: Arc<Templates>,
    /// The selected fields of the templates, each under the number of its tag: the decoder delivers nothing else.
    pub projection: Projection,
    /// Kinds by the template's index in the list; `None` for a template that the mapping does not name.
    pub kind_by_template: Vec<Option<MessageKind>>,
    /// Whether this is the header of packets.
    pub headers: Vec<bool>,
    /// The program that reads one of these without the decoder.
    pub header_program: Option<HeaderProgram>,
}

impl TemplateSet {
    /// Requests the field or the sequence at a path of a template, written as in the file. Returns how often it is
    /// there.
    pub fn request_field(&mut self, template: usize, path: &str, tag: FieldRole) -> usize {
        let mut codec_paths = Vec::new();
        let templates = self.templates.clone();
        each_path(&templates, template, &mut |file_path, codec_path, part| {
            if file_path == path && matches!(part, Instruction::Field(_) | Instruction::Sequence(_)) {
                codec_paths.push(codec_path.to_owned());
            }
        });
        codec_paths
            .iter()
            .filter(|codec_path| self.projection.select(template, codec_path, tag as u16))
            .count()
    }
}

pub(super) fn load_template_set(
    names: &[String],
    files: &BTreeMap<String, Vec<u8>>,
) -> ConfigResult<TemplateSet> {
    let sources: Vec<TemplateFile<'_>> = names
        .iter()
        .map(|name| TemplateFile { name, content: files.get(name).map_or(&[][..], |content| content) })
        .collect();
    let templates = match Templates::load(&sources) {
        Ok(templates) => Arc::new(templates),
        Err(e) => return refuse_config(&["templates"], format!("templates: {e}")),
    };
    let (kinds, headers) = (vec![None; templates.list().len()], vec![false; templates.list().len()]);
    let projection = Projection::new(templates.clone());
    Ok(TemplateSet {
        files: names.to_vec(),
        templates,
        projection,
        kind_by_template: kinds,
        headers,
        header_program: None,
    })
}

/// Visits the items of a template, each with its path: the names of the groups and sequences around it and its own.
/// Files separate them by `.`, the codec by `/`.
fn each_path(templates: &Templates, template: usize, visit: &mut impl FnMut(&str, &str, &Instruction)) {
    fn walk_fields(
        templates: &Templates,
        body: &[Instruction],
        before: PathPrefix<'_>,
        visit: &mut impl FnMut(&str, &str, &Instruction),
    ) {
        for part in body {
            let (name, inside) = match part {
                Instruction::Field(field) => (&field.name.local, &[][..]),
                Instruction::Group(group) => (&group.name.local, &group.body[..]),
                Instruction::Sequence(sequence) => (&sequence.name.local, &sequence.body[..]),
                Instruction::Static(_, Some(index)) if before.depth < DEPTH_MAX => {
                    let child_prefix = PathPrefix { depth: before.depth + 1, ..before };
                    walk_fields(templates, &templates.list()[*index].body, child_prefix, visit);
                    continue;
                }
                Instruction::Static(..) | Instruction::Dynamic => continue,
            };
            let (path, codec_path) =
                (format!("{}{name}", before.path), format!("{}{name}", before.codec_path));
            visit(&path, &codec_path, part);
            if before.depth < DEPTH_MAX {
                let (path, codec_path) = (format!("{path}."), format!("{codec_path}/"));
                walk_fields(
                    templates,
                    inside,
                    PathPrefix { path: &path, codec_path: &codec_path, depth: before.depth + 1 },
                    visit,
                );
            }
        }
    }
    walk_fields(
        templates,
        &templates.list()[template].body,
        PathPrefix { path: "", codec_path: "", depth: 0 },
        visit,
    );
}

/// The names before that of a field.
#[derive(Clone, Copy)]
struct PathPrefix<'p> {
    /// With a point after each.
    path: &'p str,
    /// With a slash after each.
    codec_path: &'p str,
    /// The number of these names.
    depth: usize,
}

/// Groups, sequences and references in each other whose fields have paths.
const DEPTH_MAX: usize = 32;
