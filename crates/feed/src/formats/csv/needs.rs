//! What a header must have for a mapping: a file of another kind would become events that say nothing.

use super::CsvDialect;
use crate::mapping::{ConditionConfig, EventConfig, FieldConfig, Mapping, RuleConfig, price_choices};
use std::collections::BTreeMap;
use unitape_codec::csv::{ColumnChoice, ColumnNeeds};
use unitape_model::{EventField, EventKind, EventSchema};

/// Returns the choices of columns of which a header must have one each: for the event time, and, for at least one
/// rule, for its conditions, prices and required fields.
pub(super) fn column_needs(mapping: &Mapping, dialect: &CsvDialect) -> ColumnNeeds {
    let message = &mapping.message;
    let times = std::iter::once(&message.ts).chain(message.ts_or.iter().flat_map(|or| or.all()));
    let rules = mapping.rule.iter().filter(|rule| !rule.ignore);
    ColumnNeeds {
        always: choose_columns(dialect, "event time", times).into_iter().collect(),
        cases: rules.flat_map(|rule| cases_of(rule, dialect)).collect(),
    }
}

/// Returns the cases in which a rule makes the events that it is for: all of those without a condition of their own, or
/// one of the others.
fn cases_of(rule: &RuleConfig, dialect: &CsvDialect) -> Vec<Vec<ColumnChoice>> {
    let of_rule = condition_columns(&rule.when, dialect);
    let (open, conditional): (Vec<_>, Vec<_>) = rule.event.iter().partition(|event| event.when.is_empty());
    if open.is_empty() {
        let case = |event: &&EventConfig| {
            let of_event =
                condition_columns(&event.when, dialect).into_iter().chain(of_fields(event, dialect));
            of_rule.iter().cloned().chain(of_event).collect()
        };
        return conditional.iter().map(case).collect();
    }
    let of_events = open.iter().flat_map(|event| of_fields(event, dialect));
    vec![of_rule.iter().cloned().chain(of_events).collect()]
}

/// Returns the columns without which conditions cannot hold.
fn condition_columns(configs: &BTreeMap<String, ConditionConfig>, dialect: &CsvDialect) -> Vec<ColumnChoice> {
    let needs_value = |condition: &ConditionConfig| match condition {
        ConditionConfig::Else(spec) => spec.present != Some(false),
        ConditionConfig::One(_) | ConditionConfig::Any(_) => true,
    };
    let value_conditions = configs.iter().filter(|(_, config)| needs_value(config));
    value_conditions.filter_map(|(path, _)| choose_columns(dialect, "a condition", [path])).collect()
}

/// Returns the columns of the prices and the required fields of an event.
fn of_fields(event: &EventConfig, dialect: &CsvDialect) -> Vec<ColumnChoice> {
    // A kind that does not exist was refused before.
    let Some(kind) = EventKind::from_name(&event.kind) else { return Vec::new() };
    let prices = price_choices(kind, event);
    let required = EventSchema::for_kind(kind).fields.iter().filter(|spec| {
        let field = event.fields.get(spec.field.name());
        field.is_some_and(|f| spec.required || matches!(f, FieldConfig::Table(t) if t.required))
    });
    let required = required.map(|spec| vec![spec.field]);
    let choices = prices.into_iter().chain(required);
    choices.filter_map(|fields| field_choice(event, &fields, dialect)).collect()
}

/// Returns the columns from which these fields take their value; `None` if the value has another source.
fn field_choice(event: &EventConfig, fields: &[EventField], dialect: &CsvDialect) -> Option<ColumnChoice> {
    let mut paths = Vec::new();
    for field in fields {
        match event.fields.get(field.name())? {
            FieldConfig::Path(path) => paths.push(path),
            FieldConfig::Table(table) => {
                paths.push(table.from.as_ref()?);
                paths.extend(&table.or);
            }
        }
    }
    let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
    choose_columns(dialect, &format!("{} of {}", names.join(" or "), event.kind), paths)
}

/// Returns the columns of these paths; `None` if one of them is no column, and is always there.
fn choose_columns<'p>(
    dialect: &CsvDialect,
    purpose: &str,
    paths: impl IntoIterator<Item = &'p String>,
) -> Option<ColumnChoice> {
    let columns: Option<Vec<String>> = paths.into_iter().map(|path| dialect.header_column(path)).collect();
    Some(ColumnChoice { purpose: purpose.to_owned(), columns: columns? })
}
