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
    /// Fails if a field has a child element that is neither its operator nor allowed for its type.
    pub fn check_children(&self, element: &XmlElement, kind: WireType) -> Result<(), TemplateError> {
        for child in &element.children {
            let is_allowed = match child.name.as_str() {
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
            if !is_allowed {
                let reason = format!("<{}> does not belong in <{}>", child.name, element.name);
                return Err(self.location(child).error(S1, reason));
            }
            if let ("length", Some(inner)) = (child.name.as_str(), child.children.first()) {
                let reason = format!("<{}> does not belong in the length of a {}", inner.name, kind.word());
                return Err(self.location(inner).error(S1, reason));
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

    /// Returns the operator of a length or of a part of a decimal. Fails if the element has another child.
    pub fn only_operator<'e>(
        &self,
        element: &'e XmlElement,
    ) -> Result<Option<&'e XmlElement>, TemplateError> {
        self.one_operator(element)?;
        let operator = operators(element).next();
        match element.children.iter().find(|child| !operator.is_some_and(|o| std::ptr::eq(o, *child))) {
            None => Ok(operator),
            Some(extra_child) => {
                let reason = format!("<{}> does not belong in <{}>", extra_child.name, element.name);
                Err(self.location(extra_child).error(S1, reason))
            }
        }
    }

    /// Fails unless each part of a decimal appears at most once and the exponent is first. `halves` has the first of
    /// each part.
    pub fn check_half_order(
        &self,
        element: &XmlElement,
        halves: &[Option<&XmlElement>; 2],
    ) -> Result<(), TemplateError> {
        let mut expected_halves = halves.iter().flatten();
        let is_half = |child: &&XmlElement| matches!(child.name.as_str(), "exponent" | "mantissa");
        let mut halves_found = element.children.iter().filter(is_half);
        if let Some(misplaced_half) = halves_found.find(|half| {
            expected_halves.next().is_none_or(|expected_half| !std::ptr::eq(*half, *expected_half))
        }) {
            let reason = "<exponent> and <mantissa> stand once each, in this order";
            return Err(self.location(misplaced_half).error(S1, reason));
        }
        Ok(())
    }
}
