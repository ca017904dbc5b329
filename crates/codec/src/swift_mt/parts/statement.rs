//! Statements (940, 942, 950): balances, statement lines, sums.

use super::SubfieldFormat;
use super::cursor::{CharacterClass, ComponentResult, ExpectedText, ValueCursor};

#[inline(always)]
pub(super) fn read_form(number: u8, letter: u8, c: &mut ValueCursor<'_>) -> Result<bool, ExpectedText> {
    match (number, letter) {
        (60 | 62 | 64 | 65, _) => {
            read_mark(c)?;
            c.date("date", SubfieldFormat::Date)?;
            c.currency_amount()?;
        }
        (61, 0) => read_line(c)?,
        (86, 0) => c.lines("lines")?,
        (25, b'P') => {
            c.line("account")?;
            if !c.newline() {
                return Err("another line");
            }
            c.bic()?;
        }
        (25, _) => c.line("account")?,
        (28, _) => {
            c.text_up_to("number", CharacterClass::Digits, DIGITS_MAX)?;
            if c.literal(b"/") {
                c.text_up_to("sequence", CharacterClass::Digits, DIGITS_MAX)?;
            }
        }
        (34, _) => {
            c.fixed("currency", CharacterClass::Letters, 3)?;
            if matches!(c.rest(), [b'D' | b'C', ..]) {
                c.component("mark", SubfieldFormat::Text, 1);
            }
            c.amount("amount")?;
        }
        (90, _) => {
            c.text_up_to("count", CharacterClass::Digits, DIGITS_MAX)?;
            c.currency_amount()?;
        }
        (13, _) => {
            c.date("date", SubfieldFormat::Date)?;
            c.time("time", 4)?;
            if letter == b'D' {
                offset(c)?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Characters of the reference of a statement line.
const REFERENCE_MAX: usize = 16;

/// Statement numbers have five digits in the standard and up to ten in files.
const DIGITS_MAX: usize = 16;

/// Reads `1!x4!n`, the offset from UTC.
#[inline(always)]
pub(super) fn offset(c: &mut ValueCursor<'_>) -> ComponentResult {
    if !matches!(c.rest(), [b'+' | b'-', ..]) {
        return Err("+ or -");
    }
    c.component("sign", SubfieldFormat::Text, 1);
    c.time("offset", 4)
}

#[inline(always)]
fn read_mark(c: &mut ValueCursor<'_>) -> ComponentResult {
    if !matches!(c.rest(), [b'D' | b'C', ..]) {
        return Err("D or C");
    }
    c.component("mark", SubfieldFormat::Text, 1);
    Ok(())
}

/// Returns whether the amount of a statement line ends before `rest`. Only the type code after it shows its end, and
/// banks may leave that code out. Bytes that may continue the number (`1.000,00`, `1 234,50`, `12O4,50`) must not
/// become a reference.
#[inline(always)]
fn ends_amount(rest: &[u8], has_comma: bool) -> bool {
    let is_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b',' | b'.');
    match rest {
        [] | [b'\n', ..] | [b'\r', b'\n', ..] | [b'/', b'/', ..] => true,
        [b' ', rest @ ..] => !rest.first().is_some_and(is_number),
        [b'S' | b'N' | b'F', rest @ ..] => {
            let code = rest.iter().take(3).filter(|b| CharacterClass::Plain.holds(**b) || **b == b' ');
            has_comma || code.count() == 3
        }
        [byte, rest @ ..] => has_comma && byte.is_ascii_alphabetic() && !rest.first().is_some_and(is_number),
    }
}

/// Reads `6!n[4!n]2a[1!a]15d1!a3!c16x[//16x][⏎34x]`.
#[inline(always)]
fn read_line(c: &mut ValueCursor<'_>) -> ComponentResult {
    let midnight = c.date("date", SubfieldFormat::ValueDate)?;
    if c.run(CharacterClass::Digits, 4) == 4 {
        c.entry_date(midnight);
    } else {
        c.skip(c.rest().iter().take(4).take_while(|b| **b == b' ').count());
    }
    match c.rest() {
        [b'R' | b'E', b'D' | b'C', ..] => c.component("mark", SubfieldFormat::Text, 2),
        [b'D' | b'C', ..] => c.component("mark", SubfieldFormat::Text, 1),
        _ => return Err("D, C, RD, RC, ED or EC"),
    }
    if c.run(CharacterClass::Letters, 1) == 1 {
        c.component("funds", SubfieldFormat::Text, 1);
    }
    if !c.newline() {
        c.literal(b" ");
    }
    let amount = c.rest();
    c.amount("amount")?;
    let amount = &amount[..amount.len() - c.rest().len()];
    if !ends_amount(c.rest(), amount.contains(&b',')) {
        return Err("a transaction type after the amount");
    }
    if c.run(CharacterClass::Letters, 1) == 1 {
        let more = c.rest()[1..].iter().take(3);
        if more.filter(|b| CharacterClass::Plain.holds(**b) || **b == b' ').count() == 3 {
            c.component("type", SubfieldFormat::Text, 4);
        }
    }
    let len = c.line_len();
    let text = &c.rest()[..len];
    let slashes = text.windows(2).position(|two| two == b"//");
    // A reference has sixteen characters; banks that fill it up continue right after it with what the standard has on
    // the next line.
    if slashes.is_none() && len > REFERENCE_MAX && text[..=REFERENCE_MAX].is_ascii() {
        c.component("reference", SubfieldFormat::Text, REFERENCE_MAX);
        return c.lines("details");
    }
    match slashes.unwrap_or(len) {
        0 => {}
        len => c.component("reference", SubfieldFormat::Text, len),
    }
    if slashes.is_some() {
        c.skip(2);
        match c.line_len() {
            0 => {}
            len => c.component("bank_reference", SubfieldFormat::Text, len),
        }
    }
    if c.newline() {
        c.lines("details")?;
    }
    Ok(())
}
