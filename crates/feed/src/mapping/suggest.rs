//! What a mapping or its layout may say so that a refused value is read, for people who write them.

use unitape_codec::fixed::marks_that_read;
use unitape_codec::times::suggest::forms_that_read;

/// Where a mapping or its layout says how a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormPlace {
    /// In a column of a layout of rows.
    Column,
    /// In a column of a layout of fixed-width records, which has no marks of numbers.
    FixedColumn,
    /// Behind the path, in the mapping.
    Path,
}

impl FormPlace {
    /// Returns where mappings for this format state the form of a value, if they can.
    pub fn for_format(format: &str) -> Option<Self> {
        match format {
            "csv" => Some(Self::Column),
            "fixed" => Some(Self::FixedColumn),
            "jsonl" | "mail" | "newsxml" => Some(Self::Path),
            _ => None,
        }
    }
}

/// Returns what to try where a value was refused for this reason: the first value in quotes that `detail` names.
pub(crate) fn suggestion(reason: &str, detail: &str, form_place: FormPlace) -> Option<String> {
    let (_, rest) = detail.split_once('"')?;
    let (value, _) = rest.split_once('"')?;
    let mut ways: Vec<(String, String)> = match reason {
        "bad_time" | "bad_date" => forms_that_read(value)
            .into_iter()
            .map(|time_form| {
                let pivot = if time_form.needs_pivot { ", pivot = 1970" } else { "" };
                let says = match form_place {
                    FormPlace::Path => format!(
                        "`{}` behind the path",
                        if time_form.form.starts_with('@') {
                            time_form.form
                        } else {
                            format!("@{}", time_form.form)
                        }
                    ),
                    _ => format!("`form = \"{}\"{pivot}`", time_form.form),
                };
                (says, time_form.meaning)
            })
            .collect(),
        "bad_number" if form_place == FormPlace::Column => marks_that_read(value)
            .into_iter()
            .map(|number_marks| (format!("`{}`", number_marks.keys), number_marks.plain_number))
            .collect(),
        _ => Vec::new(),
    };
    ways.truncate(3);
    let ways: Vec<_> =
        ways.into_iter().map(|(says, meaning)| format!("{says}, which reads {meaning}")).collect();
    if ways.is_empty() {
        return foreign_character(reason, value);
    }
    Some(format!("try {}", ways.join(", or ")))
}

/// Finds the first character that no number contains.
fn foreign_character(reason: &str, value: &str) -> Option<String> {
    let is_number = matches!(reason, "bad_number" | "bad_decimal");
    let foreign = value.chars().find(|c| !c.is_ascii_digit() && !"+-.,' eE()".contains(*c))?;
    let has_digits = value.bytes().any(|byte| byte.is_ascii_digit());
    (is_number && has_digits).then(|| format!("`{foreign}` is no part of a number"))
}
