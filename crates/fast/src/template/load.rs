//! From elements to templates.

use super::contents::operators;
use super::error::{TemplateError, TemplateErrorCode};
use super::initial::parse_initial;
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
            is_strict: strict,
            defines: &defines,
            templates: &mut templates,
            load_state: &mut counts,
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
    /// The index of the template in which it is written.
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
    is_strict: bool,
    defines: &'l HashMap<&'l str, &'l XmlElement>,
    templates: &'l mut Templates,
    load_state: &'l mut TemplateLoadState,
}

/// The totals met so far.
#[derive(Default)]
struct TemplateLoadState {
    /// Lengths without a name.
    lengths: usize,
    part_count: usize,
    /// Bytes of their names and initial values.
    text_bytes: usize,
    /// Enumerations and sets by the element that has them: a type that is used often is held once.
    meanings: HashMap<*const XmlElement, (WireType, IntegerMeaning)>,
    /// Where each template is written.
    origins: Vec<(String, usize)>,
    template_names: HashSet<QualifiedName>,
}

/// A field, group or sequence with the elements that describe it: the element with its type, and the elements around it
/// from the outermost on. Each adds a part of the description.
struct ElementChain<'e> {
    outer_elements: Vec<&'e XmlElement>,
    type_element: &'e XmlElement,
}

impl<'e> ElementChain<'e> {
    fn elements(&self) -> impl Iterator<Item = &'e XmlElement> {
        self.outer_elements.iter().copied().chain([self.type_element])
    }

    /// Returns the attribute of the outermost element that has it.
    fn get(&self, name: &str) -> Option<&'e str> {
        self.elements().find_map(|element| element.get(name))
    }

    /// Returns the operator of the outermost element that has an operator.
    fn operator(&self) -> Option<&'e XmlElement> {
        self.elements().find_map(|element| operators(element).next())
    }
}

impl TemplateLoader<'_> {
    pub(super) fn location(&self, element: &XmlElement) -> FileLocation<'_> {
        FileLocation { file_name: self.file_of(element), line: element.line }
    }

    fn file_of(&self, element: &XmlElement) -> &str {
        self.files[element.file_index].name
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
            && let Some(other_index) = self.templates.by_id.insert(id, index)
        {
            let other_name = &self.templates.list[other_index].name.local;
            return Err(self
                .location(element)
                .error(S1, format!("template id {id} is that of {other_name}, too")));
        }
        if !self.load_state.template_names.insert(name.clone()) {
            let (file, line) = (self.file_of(element), element.line);
            let note = format!("{file}:{line}: another template {}; references go to the first", name.local);
            self.templates.notes.push(note);
        }
        // It gets its index before its body is read.
        self.templates.list.push(Template { name, id, reset, type_ref: None, body: Vec::new() });
        self.load_state.origins.push((self.file_of(element).to_owned(), element.line));
        let type_ref = self.type_ref(element, &scope)?;
        let body = self.body(element, &scope)?;
        let template = &mut self.templates.list[index];
        (template.type_ref, template.body) = (type_ref, body);
        Ok(())
    }

    /// Checks a defined type, so that a mistake in it is reported whether or not it is used.
    fn define(&mut self, element: &XmlElement, scope: &ElementScope) -> Result<(), TemplateError> {
        self.name(element)?;
        let Some(type_element) = element.children.first() else {
            return Err(self.location(element).error(S1, "<define> without a type in it"));
        };
        let mut scope = scope.inside(element);
        // Defined outside of any template.
        scope.template = usize::MAX;
        let parts = ElementChain { outer_elements: Vec::new(), type_element };
        self.strict(false, |loader| loader.part(parts, &scope)).map(drop)
    }

    fn strict<T>(&mut self, strict: bool, action: impl FnOnce(&mut Self) -> T) -> T {
        let outer_strict = std::mem::replace(&mut self.is_strict, strict);
        let result = action(self);
        self.is_strict = outer_strict;
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
                    let reason = format!(
                        "<{word}> does not belong here: it stands once, before the fields, a type first"
                    );
                    return Err(self.location(child).error(S1, reason));
                }
                word if OPERATORS.iter().any(|(operator, _)| *operator == word) => {
                    return Err(self
                        .location(child)
                        .error(S1, format!("<{word}> does not belong here: it belongs in a field")));
                }
                "templateRef" => body.push(self.reference(child, scope)?),
                _ => body.push(
                    self.part(ElementChain { outer_elements: Vec::new(), type_element: child }, scope)?,
                ),
            }
        }
        Ok(body)
    }

    /// Counts a part.
    fn count(&mut self, element: &XmlElement, text: usize) -> Result<(), TemplateError> {
        self.load_state.part_count += 1;
        self.load_state.text_bytes += text;
        if self.load_state.part_count > PARTS_MAX {
            return Err(self.location(element).error(S1, format!("more than {PARTS_MAX} parts")));
        }
        if self.load_state.text_bytes > TEXT_MAX {
            let reason = format!("more than {TEXT_MAX} bytes of names and initial values");
            return Err(self.location(element).error(S1, reason));
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

    /// Loads a field, a group or a sequence.
    fn part(
        &mut self,
        mut parts: ElementChain<'_>,
        scope: &ElementScope,
    ) -> Result<Instruction, TemplateError> {
        if scope.depth + parts.outer_elements.len() > NESTED_MAX {
            let reason =
                format!("more than {NESTED_MAX} parts in each other, or a type that is made of itself");
            return Err(self.location(parts.type_element).error(S1, reason));
        }
        let type_element = parts.type_element;
        match type_element.name.as_str() {
            "field" => {
                let is_type = |child: &&XmlElement| !OPERATORS.iter().any(|(word, _)| *word == child.name);
                let Some(inner) = type_element.children.iter().find(is_type) else {
                    return Err(self.location(type_element).error(S1, "<field> without a type in it"));
                };
                parts.outer_elements.push(type_element);
                self.part(ElementChain { type_element: inner, ..parts }, scope)
            }
            "type" => {
                let name = self.name(type_element)?;
                let Some(define) = self.defines.get(name.as_str()).copied() else {
                    return Err(self
                        .location(type_element)
                        .error(S1, format!("no type is defined as {name}")));
                };
                let Some(inner) = define.children.first() else {
                    return Err(self.location(define).error(S1, "<define> without a type in it"));
                };
                // The type's name is not the field's. Its encoding does not apply if the field has its own.
                if parts.outer_elements.is_empty() {
                    return Err(self.location(type_element).error(S1, "<type> belongs in a <field>"));
                }
                parts.outer_elements.push(type_element);
                let parts = ElementChain { type_element: inner, ..parts };
                self.strict(false, |loader| loader.part(parts, scope))
            }
            "group" => {
                let head = self.head(&parts, scope)?;
                self.count(type_element, head.name.bytes())?;
                let scope = scope.inside(type_element);
                let (type_ref, body) =
                    (self.type_ref(type_element, &scope)?, self.body(type_element, &scope)?);
                Ok(Instruction::Group(TemplateGroup {
                    name: head.name,
                    optional: head.optional,
                    type_ref,
                    body,
                }))
            }
            "sequence" => {
                let head = self.head(&parts, scope)?;
                let scope = scope.inside(type_element);
                let length = self.length(type_element, head.optional, &scope)?;
                self.count(type_element, head.name.bytes() + length.bytes())?;
                let (type_ref, body) =
                    (self.type_ref(type_element, &scope)?, self.body(type_element, &scope)?);
                Ok(sequence(head, type_ref, length, body))
            }
            word => match kinds::vector(word) {
                Some(kind) => {
                    let head = self.head(&parts, scope)?;
                    let length = self.length(type_element, head.optional, scope)?;
                    self.count(type_element, head.name.bytes() + length.bytes())?;
                    let kind = FieldEncoding::Plain(
                        kind,
                        no_operator(key(scope, &QualifiedName::default(), DictionaryKeyPart::Whole)),
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
                    self.count(type_element, field.bytes())?;
                    Ok(Instruction::Field(Arc::new(field)))
                }
            },
        }
    }

    fn head(&self, parts: &ElementChain<'_>, scope: &ElementScope) -> Result<FieldHeader, TemplateError> {
        // The name of a type is its own, where <type> is not the outermost.
        let named_elements =
            parts.elements().filter(|element| element.name != "type" && element.name != "define");
        let mut names = named_elements.filter_map(|element| element.get("name"));
        let local = names.next().unwrap_or_default();
        if local.is_empty() && self.is_strict {
            return Err(self
                .location(parts.type_element)
                .error(S1, format!("<{}> without a name", parts.type_element.name)));
        }
        let optional = match parts.get("presence") {
            None | Some("mandatory") => false,
            Some("optional") => true,
            Some(presence) => {
                let reason = format!("presence=\"{presence}\"; there are mandatory and optional");
                return Err(self.location(parts.type_element).error(S1, reason));
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
        let (kind, meaning) = self.meaning(parts.type_element)?;
        let head = self.head(parts, scope)?;
        let FieldHeader { name, id, optional } = head;
        for element in parts.elements() {
            self.one_operator(element)?;
            self.check_children(element, kind)?;
        }
        let halves = ["exponent", "mantissa"].map(|half| parts.type_element.child(half));
        self.check_half_order(parts.type_element, &halves)?;
        let kind = if kind == WireType::Decimal && halves.iter().any(Option::is_some) {
            if let Some(decimal_operator) = parts.operator() {
                let reason = "an operator for the decimal beside one for its parts";
                return Err(self.location(decimal_operator).error(S1, reason));
            }
            let half = |element: Option<&XmlElement>, part, kind, optional| match element {
                Some(element) => {
                    let operator = self.only_operator(element)?;
                    let declared = DeclaredType { kind, meaning: &IntegerMeaning::Number };
                    self.operation(operator, declared, optional, key(scope, &name, part), scope)
                }
                None => Ok(no_operator(key(scope, &name, part))),
            };
            let exponent = half(halves[0], DictionaryKeyPart::Exponent, WireType::Int32, optional)?;
            // If there is an exponent, there is a mantissa.
            let mantissa = half(halves[1], DictionaryKeyPart::Mantissa, WireType::Int64, false)?;
            FieldEncoding::Split(exponent, mantissa)
        } else {
            let dictionary_key = key(scope, &name, DictionaryKeyPart::Whole);
            let declared = DeclaredType { kind, meaning: &meaning };
            FieldEncoding::Plain(
                kind,
                self.operation(parts.operator(), declared, optional, dictionary_key, scope)?,
            )
        };
        Ok(TemplateField { name, id, optional, kind, meaning })
    }

    fn meaning(&mut self, type_element: &XmlElement) -> Result<(WireType, IntegerMeaning), TemplateError> {
        let address = std::ptr::from_ref(type_element);
        if let Some(cached_meaning) = self.load_state.meanings.get(&address) {
            return Ok(cached_meaning.clone());
        }
        let kind_and_meaning = kinds::kind(&self.location(type_element), type_element)?;
        if let IntegerMeaning::Enum(_) | IntegerMeaning::Set(_) = &kind_and_meaning.1 {
            self.load_state.meanings.insert(address, kind_and_meaning.clone());
        }
        Ok(kind_and_meaning)
    }

    fn length(
        &mut self,
        sequence_element: &XmlElement,
        optional: bool,
        scope: &ElementScope,
    ) -> Result<Arc<TemplateField>, TemplateError> {
        let element = sequence_element.child("length");
        let local = element.and_then(|e| e.get("name")).unwrap_or_default().to_owned();
        let ns = element.and_then(|e| e.get("ns")).unwrap_or(&scope.ns).to_owned();
        let name = QualifiedName { ns, local };
        let part = if name.local.is_empty() {
            self.load_state.lengths += 1;
            DictionaryKeyPart::Length(self.load_state.lengths)
        } else {
            DictionaryKeyPart::Whole
        };
        let dictionary_key = key(scope, &name, part);
        if let Some(element) = element.filter(|e| e.get("presence").is_some()) {
            let reason = "a length is present if its sequence is: `presence` belongs in <sequence>";
            return Err(self.location(element).error(S1, reason));
        }
        let operator = element.map(|e| self.only_operator(e)).transpose()?.flatten();
        let declared = DeclaredType { kind: WireType::UInt32, meaning: &IntegerMeaning::Number };
        let operation = self.operation(operator, declared, optional, dictionary_key, scope)?;
        let id = element.and_then(|e| e.get("id")).map(str::to_owned);
        let kind = FieldEncoding::Plain(WireType::UInt32, operation);
        Ok(Arc::new(TemplateField { name, id, optional, kind, meaning: IntegerMeaning::Number }))
    }

    fn operation(
        &self,
        element: Option<&XmlElement>,
        declared: DeclaredType<'_>,
        optional: bool,
        mut dictionary_key: DictionaryKey,
        scope: &ElementScope,
    ) -> Result<FieldOperator, TemplateError> {
        let Some(element) = element else { return Ok(no_operator(dictionary_key)) };
        let DeclaredType { kind, meaning } = declared;
        let location = self.location(element);
        let word = &element.name;
        if let Some(inner) = element.children.first() {
            let reason = format!("<{}> does not belong in <{word}>", inner.name);
            return Err(self.location(inner).error(S1, reason));
        }
        let operator = OPERATORS
            .iter()
            .find(|(operator_word, _)| operator_word == word)
            .map_or(Operator::None, |(_, o)| *o);
        let operator_fits = match operator {
            Operator::Increment => kind.bounds().is_some(),
            Operator::Tail => kind.is_string_or_bytes(),
            _ => true,
        };
        if !operator_fits {
            return Err(location.error(S2, format!("no operator {word} for the type {}", kind.word())));
        }
        let value = match element.get("value") {
            None => None,
            Some(text) if text.len() > PLAIN_MAX && !kind.is_string_or_bytes() => {
                return Err(location.error(S3, format!("a value of more than {PLAIN_MAX} bytes")));
            }
            Some(text) => Some(
                parse_initial(&kinds::of_name(text, meaning), kind, self.is_strict)
                    .map_err(|reason| location.error(S3, reason))?,
            ),
        };
        if let (Operator::Constant | Operator::Default, Some(_)) = (operator, element.get("key")) {
            return Err(location.error(S1, format!("<{word}> has no previous value, and no key of one")));
        }
        match (operator, &value) {
            (Operator::Constant, None) => return Err(location.error(S4, "a constant without a value")),
            (Operator::Default, None) if !optional => {
                return Err(location.error(S5, "a default without a value on a mandatory field"));
            }
            _ => {}
        }
        if let Some(word) = element.get("dictionary") {
            dictionary_key.dictionary = scope.dictionary_named(word);
        }
        if let Some(local) = element.get("key") {
            let ns = element.get("ns").unwrap_or(&dictionary_key.name.ns).to_owned();
            (dictionary_key.name, dictionary_key.part) =
                (QualifiedName { ns, local: local.to_owned() }, DictionaryKeyPart::Whole);
        }
        Ok(FieldOperator { operator, initial: value, key: dictionary_key })
    }
}

/// The type of a field in a template: its encoding, and the meaning of its numbers.
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

fn no_operator(key: DictionaryKey) -> FieldOperator {
    FieldOperator { operator: Operator::None, initial: None, key }
}
