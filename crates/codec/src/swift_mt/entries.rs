//! The lines of a statement as JSON: each `61` with the `86` after it.

use super::fault::ValueFault;
use super::parts::{self, SubfieldFormat, SwiftComponents};
use super::tokens::{SwiftField, SwiftTag};
use super::value;
use unitape_base::json::value as text;

/// Appends the statement lines of `fields` to `out` as a JSON array; returns false if there are no lines.
///
/// A line is `{"date":…,"entry_date":…,"amt":…,"mark":…,"funds":…,"type":…,"ref":…,"bank_ref":…,"details":…,
/// "info":…}`, as far as it has them: `amt` is what the line adds to the account (less than zero for `D` and `RC`),
/// exact and in canonical form, `info` are the `86` right after it. An entry date that is no day, such as `1303`, is
/// kept in words: `"odd":"entry_date 1303 is no day"`.
///
/// # Errors
/// Fails with the index of a line that has another form; the caller must then ignore the appended entries.
///
/// ```
/// use unitape_codec::swift_mt::{SwiftFieldTokenizer, entries};
///
/// let text = b":61:200101D65,00NMSCREF//B1\r\n:86:coffee\r\n:62F:C200101EUR1,";
/// let mut fields = SwiftFieldTokenizer::new();
/// fields.read(text);
/// let mut out = Vec::new();
/// assert_eq!(entries(text, fields.as_slice(), &mut out), Ok(true));
/// assert_eq!(
///     String::from_utf8(out).unwrap(),
///     r#"[{"date":"2020-01-01","amt":"-65","mark":"D","type":"NMSC","ref":"REF","bank_ref":"B1","info":"coffee"}]"#
/// );
/// ```
pub fn entries(all: &[u8], fields: &[SwiftField], out: &mut Vec<u8>) -> Result<bool, (usize, ValueFault)> {
    let mut parts = SwiftComponents::default();
    let mut entry_is_open = false;
    out.push(b'[');
    let mut index = 0;
    while let Some(n) = fields[index..].iter().position(|token| token.tag == SwiftTag::new(b"61")) {
        index += n;
        let line = fields[index].slice(all);
        parts::split(SwiftTag::new(b"61"), line, &mut parts).map_err(|fault| (index, fault))?;
        out.extend_from_slice(if entry_is_open { b",{" } else { b"{" });
        entry_is_open = true;
        self::write_line(line, &parts, out);
        index += 1;
        let info = fields[index..].iter().take_while(|token| token.tag == SwiftTag::new(b"86"));
        for (n, token) in info.enumerate() {
            // Banks that break a narrative over several fields mean one of several lines.
            if n == 0 {
                out.extend_from_slice(b",\"info\":");
                text(out, token.slice(all));
            } else if out.last() == Some(&b'"') {
                let value_start = out.len();
                text(out, token.slice(all));
                join_lines(out, value_start);
            }
            index += 1;
        }
        out.push(b'}');
    }
    out.push(b']');
    Ok(entry_is_open)
}

/// Makes of `"a""b"`, where the second starts at `from`, `"a\nb"`. A value that is not text (hex) is alone in its
/// first field.
fn join_lines(out: &mut Vec<u8>, from: usize) {
    if out[from] == b'"' {
        out[from - 1] = b'\\';
        out[from] = b'n';
    } else {
        out.truncate(from);
    }
}

fn write_line(value: &[u8], parts: &SwiftComponents, out: &mut Vec<u8>) {
    let get = |name| parts.get(value, name);
    let day = get("date").and_then(value::value_date);
    out.extend_from_slice(b"\"date\":\"");
    if let Some(day) = day {
        day.write(out);
    }
    out.push(b'"');
    if let Some((digits, day)) = get("entry_date").zip(day) {
        match value::entry_date(digits, day) {
            Some(entry) => {
                out.extend_from_slice(b",\"entry_date\":\"");
                entry.write(out);
            }
            None => {
                out.extend_from_slice(b",\"odd\":\"entry_date ");
                out.extend_from_slice(digits);
                out.extend_from_slice(b" is no day");
            }
        }
        out.push(b'"');
    }
    let mark = get("mark").unwrap_or_default();
    // A reversal of a credit takes away, one of a debit gives back.
    let is_negative = matches!(mark, b"D" | b"RC" | b"ED");
    if let Some(amount) = get("amount")
        && let Some(number) = value::amount(amount)
    {
        out.extend_from_slice(b",\"amt\":\"");
        write_canonical(amount, is_negative && number.mantissa != 0, out);
        out.push(b'"');
    }
    for (name, part) in [
        (&b",\"mark\":"[..], "mark"),
        (b",\"funds\":", "funds"),
        (b",\"type\":", "type"),
        (b",\"ref\":", "reference"),
        (b",\"bank_ref\":", "bank_reference"),
        (b",\"details\":", "details"),
    ] {
        if let Some(bytes) = get(part) {
            out.extend_from_slice(name);
            text(out, bytes);
        }
    }
    debug_assert!(parts.part("amount").is_some_and(|part| part.kind == SubfieldFormat::Amount));
}

/// Appends an amount as [`unitape_model::Amount`] shows it: as [`value::write_amount`], without zeros after the last
/// digit of its decimals that counts.
fn write_canonical(text: &[u8], is_negative: bool, out: &mut Vec<u8>) {
    if is_negative {
        out.push(b'-');
    }
    let line_start = out.len();
    value::write_amount(text, out);
    if out[line_start..].contains(&b'.') {
        while out.pop_if(|byte| *byte == b'0').is_some() {}
        out.pop_if(|byte| *byte == b'.');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unitape_model::Amount;

    proptest! {
        /// Guards against a wrong sum: statements add up only if each line shows exactly what it adds.
        #[test]
        fn amounts_are_shown_as_amounts_are(
            text in "[0-9]{0,18},?[0-9]{0,18}|0{0,9}[0-9]{0,3},0{0,9}[1-9]?",
            is_negative: bool,
        ) {
            if let Some(number) = value::amount(text.as_bytes()) {
                let mantissa = i128::from(number.mantissa);
                let amount = Amount::new(if is_negative { -mantissa } else { mantissa }, number.exponent).unwrap();
                let mut out = b"x".to_vec();
                write_canonical(text.as_bytes(), is_negative && mantissa != 0, &mut out);
                prop_assert_eq!(String::from_utf8(out).unwrap(), format!("x{amount}"));
            }
        }
    }
}
