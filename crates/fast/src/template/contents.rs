//! Checks of the contents of a field, a length or a part of a decimal, and how often each may occur. Contents that
//! are not looked at must not be there.

use super::WireType;
use super::error::{TemplateError, TemplateErrorCode::S1};
use super::load::{OPERATORS, TemplateLoader};
use super::xml::XmlElement;

pub(super) fn operators(element: &XmlElement) -> impl Iterator<Item = &XmlElement> {
    element.children.iter().filter(|child| OPERATORS.iter().any(|(word, _)| *word == child.name))
}

impl TemplateLoader<'_> {
    /// The contents of a field beside its operator.
    pub fn only_known(&self, element: &XmlElement, kind: WireType) -> Result<(), TemplateError> {
        for child in &element.children {
            let known = match child.name.as_str() {
                "exponent" | "mantissa" => kind == WireType::Decimal,
                // The length of a vector or of a string in Unicode may have a name; its encoding is the same.
                "length" => matches!(kind, WireType::Bytes | WireType::Unicode),
                "element" => matches!(element.name.as_str(), "enum" | "set"),
                word => {
                    element.name == "field"
                        || element.name == "type"
                        || OPERATORS.iter().any(|(operator, _)| *operator == word)
                }
            };
            if !known {
                let what = format!("<{}> does not belong in <{}>", child.name, element.name);
                return Err(self.location(child).error(S1, what));
            }
            if let ("length", Some(inner)) = (child.name.as_str(), child.children.first()) {
                let what = format!("<{}> does not belong in the length of a {}", inner.name, kind.word());
                return Err(self.location(inner).error(S1, what));
            }
        }
        Ok(())
    }

    pub fn one_operator(&self, element: &XmlElement) -> Result<(), TemplateError> {
        match operators(element).nth(1) {
            Some(second) => Err(self.location(second).error(S1, "a second operator in one field")),
            None => Ok(()),
        }
    }

    /// The operator of a length or of a part of a decimal, which have nothing else in them.
    pub fn only_operator<'e>(
        &self,
        element: &'e XmlElement,
    ) -> Result<Option<&'e XmlElement>, TemplateError> {
        self.one_operator(element)?;
        let operator = operators(element).next();
        match element.children.iter().find(|child| !operator.is_some_and(|o| std::ptr::eq(o, *child))) {
            None => Ok(operator),
            Some(other) => {
                let what = format!("<{}> does not belong in <{}>", other.name, element.name);
                Err(self.location(other).error(S1, what))
            }
        }
    }

    /// The parts of a decimal appear once each, the exponent first; `halves` are the first of each.
    pub fn in_order(&self, of: &XmlElement, halves: &[Option<&XmlElement>; 2]) -> Result<(), TemplateError> {
        let mut so = halves.iter().flatten();
        let is_half = |child: &&XmlElement| matches!(child.name.as_str(), "exponent" | "mantissa");
        let mut halves_found = of.children.iter().filter(is_half);
        if let Some(other) = halves_found.find(|is| so.next().is_none_or(|so| !std::ptr::eq(*is, *so))) {
            let what = "<exponent> and <mantissa> stand once each, in this order";
            return Err(self.location(other).error(S1, what));
        }
        Ok(())
    }
}
