//! From elements to templates.

use super::contents::operators;
use super::error::{TemplateError, TemplateErrorCode};
use super::initial::initial;
use super::xml::{FileLocation, XmlElement, parse};
use super::{
    DictionaryKey, DictionaryKeyPart, DictionaryScope, FieldEncoding, FieldOperator, Instruction,
    IntegerMeaning, Operator, QualifiedName, Template, TemplateField, TemplateGroup, TemplateSequence,
    Templates, WireType,
};
use super::{kinds, references};
use TemplateErrorCode::{S1, S2, S3, S4, S5};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A template file.
#[derive(Debug, Clone, Copy)]
pub struct TemplateFile<'s> {
    /// Its name in errors.
    pub name: &'s str,
    /// Its bytes.
    pub content: &'s [u8],
}

/// Types defined by types defined by types …, at most.
const NESTED_MAX: usize = 32;

/// Parts of all files together, and of one template with all that it refers to, at most.
pub(super) const PARTS_MAX: usize = 1 << 18;

/// Bytes of the names and initial values of all parts, at most.
pub(super) const TEXT_MAX: usize = 64 << 20;

/// Bytes of an initial value that is no text, at most.
const PLAIN_MAX: usize = 4096;

/// The namespace in which every field has to have a name.
const STRICT: &str = "http://www.fixprotocol.org/ns/fast/td/1.1";

pub(super) const OPERATORS: [(&str, Operator); 6] = [
    ("constant", Operator::Constant),
    ("default", Operator::Default),
    ("copy", Operator::Copy),
    ("increment", Operator::Increment),
    ("delta", Operator::Delta),
    ("tail", Operator::Tail),
];

pub(super) fn load(files: &[TemplateFile<'_>]) -> Result<Templates, TemplateError> {
    let mut trees = Vec::new();
    for (index, source) in files.iter().enumerate() {
        trees.push(parse(index, source.name, source.content)?);
    }
    // Types of 1.2 are known in all files.
    let mut defines = HashMap::new();
    for (root, _) in &trees {
        for element in root.children.iter().filter(|child| child.name == "define") {
            defines.entry(element.get("name").unwrap_or_default()).or_insert(element);
        }
    }
    let mut templates = Templates::default();
    let mut counts = TemplateLoadState::default();
    for (root, language) in &trees {
        let strict = language == STRICT;
        let mut loader = TemplateLoader {
            files,
            strict,
            defines: &defines,
            templates: &mut templates,
            counts: &mut counts,
        };
        loader.file(root)?;
    }
    references::resolve(&mut templates, &counts.origins)?;
    Ok(templates)
}

/// The properties that an element inherits from those around it.
#[derive(Clone)]
struct ElementScope {
    ns: String,
    template_ns: String,
    dictionary: DictionaryScope,
    /// The template in which it is written, by its place in the list.
    template: usize,
    depth: usize,
}

impl ElementScope {
    fn inside(&self, element: &XmlElement) -> Self {
        let mut scope = self.clone();
        if let Some(ns) = element.get("ns") {
            scope.ns = ns.to_owned();
        }
        if let Some(ns) = element.get("templateNs") {
            scope.template_ns = ns.to_owned();
        }
        if let Some(word) = element.get("dictionary") {
            scope.dictionary = scope.dictionary_named(word);
        }
        scope.depth += 1;
        scope
    }

    fn dictionary_named(&self, word: &str) -> DictionaryScope {
        match word {
            "global" => DictionaryScope::Global,
            "template" => DictionaryScope::Template(self.template),
            "type" => DictionaryScope::Type,
            name => DictionaryScope::Named(QualifiedName { ns: self.ns.clone(), local: name.to_owned() }),
        }
    }
}

pub(super) struct TemplateLoader<'l> {
    files: &'l [TemplateFile<'l>],
    strict: bool,
    defines: &'l HashMap<&'l str, &'l XmlElement>,
    templates: &'l mut Templates,
    counts: &'l mut TemplateLoadState,
}

/// The totals met so far.
#[derive(Default)]
struct TemplateLoadState {
    /// Lengths without a name.
    lengths: usize,
    parts: usize,
    /// Bytes of their names and initial values.
    text: usize,
    /// Enumerations and sets by the element that has them: a type that is used often is held once.
    meanings: HashMap<*const XmlElement, (WireType, IntegerMeaning)>,
    /// Where each template is written.
    origins: Vec<(String, usize)>,
    names: HashSet<QualifiedName>,
}

/// A field, group or sequence as it was put together: the element that says of what type it is, and those around it, from
/// the outermost on, of which each says more.
struct ElementChain<'e> {
    around: Vec<&'e XmlElement>,
    of: &'e XmlElement,
}

impl<'e> ElementChain<'e> {
    fn elements(&self) -> impl Iterator<Item = &'e XmlElement> {
        self.around.iter().copied().chain([self.of])
    }

    /// The attribute as the outermost element that has it says.
    fn get(&self, name: &str) -> Option<&'e str> {
        self.elements().find_map(|element| element.get(name))
    }

    /// The operator as the outermost element that has one says.
    fn operator(&self) -> Option<&'e XmlElement> {
        self.elements().find_map(|element| operators(element).next())
    }
}

impl TemplateLoader<'_> {
    pub(super) fn location(&self, element: &XmlElement) -> FileLocation<'_> {
        FileLocation { file: self.file_of(element), line: element.line }
    }

    fn file_of(&self, element: &XmlElement) -> &str {
        self.files[element.file].name
    }

    fn file(&mut self, root: &XmlElement) -> Result<(), TemplateError> {
        let outside = ElementScope {
            ns: String::new(),
            template_ns: String::new(),
            dictionary: DictionaryScope::Global,
            template: 0,
            depth: 0,
        };
        match root.name.as_str() {
            "template" => self.template(root, &outside),
            "templates" => {
                let scope = outside.inside(root);
                if root.children.is_empty() {
                    let (file, line) = (self.file_of(root), root.line);
                    let note = format!("{file}:{line}: no template of the root's namespace");
                    self.templates.notes.push(note);
                }
                for child in &root.children {
                    match child.name.as_str() {
                        "template" => self.template(child, &scope)?,
                        "define" => self.define(child, &scope)?,
                        // A `<view>` is for the own programs of the library that has them.
                        "view" => {
                            let (file, line) = (self.file_of(child), child.line);
                            let note = format!("{file}:{line}: <view> is no template: left out");
                            self.templates.notes.push(note);
                        }
                        other => {
                            return Err(self.location(child).error(
                                S1,
                                format!("<{other}> does not belong in <templates>; <template> does"),
                            ));
                        }
                    }
                }
                Ok(())
            }
            other => Err(self
                .location(root)
                .error(S1, format!("the root element is <{other}>; a template file has <templates>"))),
        }
    }

    fn template(&mut self, element: &XmlElement, outside: &ElementScope) -> Result<(), TemplateError> {
        let index = self.templates.list.len();
        let mut scope = outside.inside(element);
        scope.template = index;
        if let Some(word) = element.get("dictionary") {
            scope.dictionary = scope.dictionary_named(word);
        } else if let DictionaryScope::Template(_) = scope.dictionary {
            scope.dictionary = DictionaryScope::Template(index);
        }
        let local = self.name(element)?;
        let id = match element.get("id") {
            None => None,
            Some(text) => Some(text.trim().parse::<u32>().map_err(|_| {
                self.location(element)
                    .error(S1, format!("id=\"{text}\" is no id of a template, a number up to 2³²−1"))
            })?),
        };
        let reset = element
            .get_local("reset")
            .is_some_and(|word| ["yes", "y", "true"].iter().any(|yes| word.eq_ignore_ascii_case(yes)));
        let name = QualifiedName { ns: scope.template_ns.clone(), local };
        if let Some(id) = id
            && let Some(other) = self.templates.by_id.insert(id, index)
        {
            let other = &self.templates.list[other].name.local;
            return Err(self
                .location(element)
                .error(S1, format!("template id {id} is that of {other}, too")));
        }
        if !self.counts.names.insert(name.clone()) {
            let (file, line) = (self.file_of(element), element.line);
            let note = format!("{file}:{line}: another template {}; references go to the first", name.local);
            self.templates.notes.push(note);
        }
        // It has its place before its body is read.
        self.templates.list.push(Template { name, id, reset, type_ref: None, body: Vec::new() });
        self.counts.origins.push((self.file_of(element).to_owned(), element.line));
        let type_ref = self.type_ref(element, &scope)?;
        let body = self.body(element, &scope)?;
        let template = &mut self.templates.list[index];
        (template.type_ref, template.body) = (type_ref, body);
        Ok(())
    }

    /// Checks a defined type, so that a mistake in it is reported whether or not it is used.
    fn define(&mut self, element: &XmlElement, scope: &ElementScope) -> Result<(), TemplateError> {
        self.name(element)?;
        let Some(of) = element.children.first() else {
            return Err(self.location(element).error(S1, "<define> without a type in it"));
        };
        let mut scope = scope.inside(element);
        // Defined outside of any template.
        scope.template = usize::MAX;
        let parts = ElementChain { around: Vec::new(), of };
        self.strict(false, |loader| loader.part(parts, &scope)).map(drop)
    }

    fn strict<T>(&mut self, strict: bool, then: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.strict, strict);
        let result = then(self);
        self.strict = before;
        result
    }

    fn name(&self, element: &XmlElement) -> Result<String, TemplateError> {
        match element.get("name").filter(|name| !name.is_empty()) {
            Some(name) => Ok(name.to_owned()),
            None => Err(self.location(element).error(S1, format!("<{}> without a name", element.name))),
        }
    }

    fn type_ref(
        &self,
        element: &XmlElement,
        scope: &ElementScope,
    ) -> Result<Option<QualifiedName>, TemplateError> {
        let Some(reference) = element.child("typeRef") else { return Ok(None) };
        let ns = reference.get("ns").unwrap_or(&scope.ns).to_owned();
        Ok(Some(QualifiedName { ns, local: self.name(reference)? }))
    }

    fn body(
        &mut self,
        element: &XmlElement,
        scope: &ElementScope,
    ) -> Result<Vec<Instruction>, TemplateError> {
        let (mut body, mut typed, mut length) = (Vec::new(), false, false);
        for child in &element.children {
            match child.name.as_str() {
                "typeRef" if body.is_empty() && !typed && !length => typed = true,
                "length" if body.is_empty() && !length && element.name == "sequence" => length = true,
                word @ ("typeRef" | "length") => {
                    let what = format!(
                        "<{word}> does not belong here: it stands once, before the fields, a type first"
                    );
                    return Err(self.location(child).error(S1, what));
                }
                word if OPERATORS.iter().any(|(operator, _)| *operator == word) => {
                    return Err(self
                        .location(child)
                        .error(S1, format!("<{word}> does not belong here: it belongs in a field")));
                }
                "templateRef" => body.push(self.reference(child, scope)?),
                _ => body.push(self.part(ElementChain { around: Vec::new(), of: child }, scope)?),
            }
        }
        Ok(body)
    }

    /// Counts a part.
    fn count(&mut self, element: &XmlElement, text: usize) -> Result<(), TemplateError> {
        self.counts.parts += 1;
        self.counts.text += text;
        if self.counts.parts > PARTS_MAX {
            return Err(self.location(element).error(S1, format!("more than {PARTS_MAX} parts")));
        }
        if self.counts.text > TEXT_MAX {
            let what = format!("more than {TEXT_MAX} bytes of names and initial values");
            return Err(self.location(element).error(S1, what));
        }
        Ok(())
    }

    fn reference(
        &mut self,
        element: &XmlElement,
        scope: &ElementScope,
    ) -> Result<Instruction, TemplateError> {
        let Some(local) = element.get("name") else {
            self.count(element, 0)?;
            return Ok(Instruction::Dynamic);
        };
        if local.is_empty() {
            return Err(self.location(element).error(S1, "<templateRef> with an empty name"));
        }
        let ns = element.get("templateNs").unwrap_or(&scope.template_ns).to_owned();
        self.count(element, ns.len() + local.len())?;
        Ok(Instruction::Static(QualifiedName { ns, local: local.to_owned() }, None))
    }

    /// A field, group or sequence.
    fn part(
        &mut self,
        mut parts: ElementChain<'_>,
        scope: &ElementScope,
    ) -> Result<Instruction, TemplateError> {
        if scope.depth + parts.around.len() > NESTED_MAX {
            let what =
                format!("more than {NESTED_MAX} parts in each other, or a type that is made of itself");
            return Err(self.location(parts.of).error(S1, what));
        }
        let of = parts.of;
        match of.name.as_str() {
            "field" => {
                let is_type = |child: &&XmlElement| !OPERATORS.iter().any(|(word, _)| *word == child.name);
                let Some(inner) = of.children.iter().find(is_type) else {
                    return Err(self.location(of).error(S1, "<field> without a type in it"));
                };
                parts.around.push(of);
                self.part(ElementChain { of: inner, ..parts }, scope)
            }
            "type" => {
                let name = self.name(of)?;
                let Some(define) = self.defines.get(name.as_str()).copied() else {
                    return Err(self.location(of).error(S1, format!("no type is defined as {name}")));
                };
                let Some(inner) = define.children.first() else {
                    return Err(self.location(define).error(S1, "<define> without a type in it"));
                };
                // The type's name is not the field's. Its encoding does not apply where the field gives its own.
                if parts.around.is_empty() {
                    return Err(self.location(of).error(S1, "<type> belongs in a <field>"));
                }
                parts.around.push(of);
                let parts = ElementChain { of: inner, ..parts };
                self.strict(false, |loader| loader.part(parts, scope))
            }
            "group" => {
                let head = self.head(&parts, scope)?;
                self.count(of, head.name.bytes())?;
                let scope = scope.inside(of);
                let (type_ref, body) = (self.type_ref(of, &scope)?, self.body(of, &scope)?);
                Ok(Instruction::Group(TemplateGroup {
                    name: head.name,
                    optional: head.optional,
                    type_ref,
                    body,
                }))
            }
            "sequence" => {
                let head = self.head(&parts, scope)?;
                let scope = scope.inside(of);
                let length = self.length(of, head.optional, &scope)?;
                self.count(of, head.name.bytes() + length.bytes())?;
                let (type_ref, body) = (self.type_ref(of, &scope)?, self.body(of, &scope)?);
                Ok(sequence(head, type_ref, length, body))
            }
            word => match kinds::vector(word) {
                Some(kind) => {
                    let head = self.head(&parts, scope)?;
                    let length = self.length(of, head.optional, scope)?;
                    self.count(of, head.name.bytes() + length.bytes())?;
                    let kind = FieldEncoding::Plain(
                        kind,
                        none(key(scope, &QualifiedName::default(), DictionaryKeyPart::Whole)),
                    );
                    let element = TemplateField {
                        name: QualifiedName::default(),
                        id: None,
                        optional: false,
                        kind,
                        meaning: IntegerMeaning::Number,
                    };
                    Ok(sequence(head, None, length, vec![Instruction::Field(Arc::new(element))]))
                }
                None => {
                    let field = self.field(&parts, scope)?;
                    self.count(of, field.bytes())?;
                    Ok(Instruction::Field(Arc::new(field)))
                }
            },
        }
    }

    fn head(&self, parts: &ElementChain<'_>, scope: &ElementScope) -> Result<FieldHeader, TemplateError> {
        // The name of a type is its own, where <type> is not the outermost.
        let named = parts.elements().filter(|element| element.name != "type" && element.name != "define");
        let mut named = named.filter_map(|element| element.get("name"));
        let local = named.next().unwrap_or_default();
        if local.is_empty() && self.strict {
            return Err(self.location(parts.of).error(S1, format!("<{}> without a name", parts.of.name)));
        }
        let optional = match parts.get("presence") {
            None | Some("mandatory") => false,
            Some("optional") => true,
            Some(other) => {
                let what = format!("presence=\"{other}\"; there are mandatory and optional");
                return Err(self.location(parts.of).error(S1, what));
            }
        };
        let ns = parts.get("ns").unwrap_or(&scope.ns).to_owned();
        let id = parts.get("id").map(str::to_owned);
        Ok(FieldHeader { name: QualifiedName { ns, local: local.to_owned() }, id, optional })
    }

    fn field(
        &mut self,
        parts: &ElementChain<'_>,
        scope: &ElementScope,
    ) -> Result<TemplateField, TemplateError> {
        let (kind, meaning) = self.meaning(parts.of)?;
        let head = self.head(parts, scope)?;
        let FieldHeader { name, id, optional } = head;
        for element in parts.elements() {
            self.one_operator(element)?;
            self.only_known(element, kind)?;
        }
        let halves = ["exponent", "mantissa"].map(|half| parts.of.child(half));
        self.in_order(parts.of, &halves)?;
        let kind = if kind == WireType::Decimal && halves.iter().any(Option::is_some) {
            if let Some(whole) = parts.operator() {
                let what = "an operator for the decimal beside one for its parts";
                return Err(self.location(whole).error(S1, what));
            }
            let half = |element: Option<&XmlElement>, part, kind, optional| match element {
                Some(element) => {
                    let operator = self.only_operator(element)?;
                    let declared = DeclaredType { kind, meaning: &IntegerMeaning::Number };
                    self.operation(operator, declared, optional, key(scope, &name, part), scope)
                }
                None => Ok(none(key(scope, &name, part))),
            };
            let exponent = half(halves[0], DictionaryKeyPart::Exponent, WireType::Int32, optional)?;
            // Where there is an exponent, there is a mantissa.
            let mantissa = half(halves[1], DictionaryKeyPart::Mantissa, WireType::Int64, false)?;
            FieldEncoding::Split(exponent, mantissa)
        } else {
            let place = key(scope, &name, DictionaryKeyPart::Whole);
            let declared = DeclaredType { kind, meaning: &meaning };
            FieldEncoding::Plain(kind, self.operation(parts.operator(), declared, optional, place, scope)?)
        };
        Ok(TemplateField { name, id, optional, kind, meaning })
    }

    fn meaning(&mut self, of: &XmlElement) -> Result<(WireType, IntegerMeaning), TemplateError> {
        let place = std::ptr::from_ref(of);
        if let Some(known) = self.counts.meanings.get(&place) {
            return Ok(known.clone());
        }
        let found = kinds::kind(&self.location(of), of)?;
        if let IntegerMeaning::Enum(_) | IntegerMeaning::Set(_) = &found.1 {
            self.counts.meanings.insert(place, found.clone());
        }
        Ok(found)
    }

    fn length(
        &mut self,
        of: &XmlElement,
        optional: bool,
        scope: &ElementScope,
    ) -> Result<Arc<TemplateField>, TemplateError> {
        let element = of.child("length");
        let local = element.and_then(|e| e.get("name")).unwrap_or_default().to_owned();
        let ns = element.and_then(|e| e.get("ns")).unwrap_or(&scope.ns).to_owned();
        let name = QualifiedName { ns, local };
        let part = if name.local.is_empty() {
            self.counts.lengths += 1;
            DictionaryKeyPart::Length(self.counts.lengths)
        } else {
            DictionaryKeyPart::Whole
        };
        let place = key(scope, &name, part);
        if let Some(element) = element.filter(|e| e.get("presence").is_some()) {
            let what = "a length is present if its sequence is: `presence` belongs in <sequence>";
            return Err(self.location(element).error(S1, what));
        }
        let operator = element.map(|e| self.only_operator(e)).transpose()?.flatten();
        let declared = DeclaredType { kind: WireType::UInt32, meaning: &IntegerMeaning::Number };
        let operation = self.operation(operator, declared, optional, place, scope)?;
        let id = element.and_then(|e| e.get("id")).map(str::to_owned);
        let kind = FieldEncoding::Plain(WireType::UInt32, operation);
        Ok(Arc::new(TemplateField { name, id, optional, kind, meaning: IntegerMeaning::Number }))
    }

    fn operation(
        &self,
        element: Option<&XmlElement>,
        declared: DeclaredType<'_>,
        optional: bool,
        mut place: DictionaryKey,
        scope: &ElementScope,
    ) -> Result<FieldOperator, TemplateError> {
        let Some(element) = element else { return Ok(none(place)) };
        let DeclaredType { kind, meaning } = declared;
        let at = self.location(element);
        let word = &element.name;
        if let Some(inner) = element.children.first() {
            let what = format!("<{}> does not belong in <{word}>", inner.name);
            return Err(self.location(inner).error(S1, what));
        }
        let operator = OPERATORS.iter().find(|(known, _)| known == word).map_or(Operator::None, |(_, o)| *o);
        let fits = match operator {
            Operator::Increment => kind.bounds().is_some(),
            Operator::Tail => kind.is_text(),
            _ => true,
        };
        if !fits {
            return Err(at.error(S2, format!("no operator {word} for the type {}", kind.word())));
        }
        let value = match element.get("value") {
            None => None,
            Some(text) if text.len() > PLAIN_MAX && !kind.is_text() => {
                return Err(at.error(S3, format!("a value of more than {PLAIN_MAX} bytes")));
            }
            Some(text) => Some(
                initial(&kinds::of_name(text, meaning), kind, self.strict)
                    .map_err(|what| at.error(S3, what))?,
            ),
        };
        if let (Operator::Constant | Operator::Default, Some(_)) = (operator, element.get("key")) {
            return Err(at.error(S1, format!("<{word}> has no previous value, and no key of one")));
        }
        match (operator, &value) {
            (Operator::Constant, None) => return Err(at.error(S4, "a constant without a value")),
            (Operator::Default, None) if !optional => {
                return Err(at.error(S5, "a default without a value on a mandatory field"));
            }
            _ => {}
        }
        if let Some(word) = element.get("dictionary") {
            place.dictionary = scope.dictionary_named(word);
        }
        if let Some(local) = element.get("key") {
            let ns = element.get("ns").unwrap_or(&place.name.ns).to_owned();
            (place.name, place.part) =
                (QualifiedName { ns, local: local.to_owned() }, DictionaryKeyPart::Whole);
        }
        Ok(FieldOperator { operator, initial: value, key: place })
    }
}

/// The type that a template gives a field: its encoding, and what its numbers mean.
#[derive(Clone, Copy)]
struct DeclaredType<'t> {
    kind: WireType,
    meaning: &'t IntegerMeaning,
}

struct FieldHeader {
    name: QualifiedName,
    id: Option<String>,
    optional: bool,
}

fn sequence(
    head: FieldHeader,
    type_ref: Option<QualifiedName>,
    length: Arc<TemplateField>,
    body: Vec<Instruction>,
) -> Instruction {
    Instruction::Sequence(TemplateSequence {
        name: head.name,
        optional: head.optional,
        type_ref,
        length,
        body,
    })
}

fn key(scope: &ElementScope, name: &QualifiedName, part: DictionaryKeyPart) -> DictionaryKey {
    DictionaryKey { dictionary: scope.dictionary.clone(), name: name.clone(), part }
}

fn none(key: DictionaryKey) -> FieldOperator {
    FieldOperator { operator: Operator::None, initial: None, key }
}
