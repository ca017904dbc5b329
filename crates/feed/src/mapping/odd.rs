//! Values that are not of the form of their field: which of them cost a message, and how the others are kept.
//!
//! An optional value of no importance is kept as it came, under the path that the mapping reads, or the name under which it
//! is kept anyway; `odd` says in words what is wrong. Amounts, and what parties, accounts and messages are known by, are
//! refused.

use super::apply::printable;
use super::format_adapter::{MessageRefusal, ParsedMessage};
use super::plan::FieldPlan;
use super::undeclared::is_free_text;
use unitape_model::{EventField, Refusal};

/// The name under which an event describes the faults of its values.
pub(super) const ODD_NAME: &str = "odd";

/// A value that is not of the form of its field.
#[derive(Debug)]
pub(super) struct OddValue {
    path: String,
    /// The format's word for a field.
    field: &'static str,
    /// As it came.
    pub text: Vec<u8>,
    /// What is wrong.
    pub flaw: String,
}

impl OddValue {
    /// Makes a record of the message's value at this path.
    #[cold]
    pub(super) fn new<M: ParsedMessage>(
        message: &M,
        value: M::Ref,
        path: &str,
        scratch: &mut Vec<u8>,
    ) -> Self {
        let text = message.text(value, scratch).to_vec();
        let flaw =
            message.describe_flaw(value).unwrap_or_else(|| format!("{} {path} is not of its form", M::FIELD));
        Self { path: path.to_owned(), field: M::FIELD, text, flaw }
    }

    /// Returns the name under which the value is kept.
    pub(super) fn name(&self) -> &str {
        &self.path
    }

    /// Makes the refusal of the message because of this value; `name` is the event's field.
    #[cold]
    pub(super) fn refusal(&self, name: &str) -> MessageRefusal {
        let Self { path, field, text, flaw } = self;
        let detail = format!(
            "{name} ({field} {path}): the value is not of the form of its field: {}; {flaw}",
            printable(text)
        );
        MessageRefusal { code: Refusal::BadValue.code(), detail }
    }
}

/// Returns whether a message may lack this field if its value has the wrong form.
pub(super) fn may_be_odd(field: &FieldPlan) -> bool {
    let is_party = matches!(field.spec.field, EventField::DrName | EventField::CrName);
    let is_aside = matches!(
        field.spec.field,
        EventField::Ccy
            | EventField::DrCountry
            | EventField::CrCountry
            | EventField::ValueDate
            | EventField::Language
            | EventField::Class
            | EventField::Cond
    );
    !field.required
        && !is_party
        && (is_aside || is_free_text(field.spec.field) && field.spec.field != EventField::Entries)
}
