//! Parties: `50` to `59` and `82` to `87` with their options.

use super::SubfieldFormat;
use super::cursor::{CharacterClass, ComponentResult, ExpectedText, ValueCursor};

#[inline(always)]
pub(super) fn read_form(number: u8, letter: u8, c: &mut ValueCursor<'_>) -> Result<bool, ExpectedText> {
    // A customer has an account and no mark of debit or credit: `/D/1` is its account `D/1`.
    let may_have_mark = !matches!(number, 50 | 59);
    match letter {
        b'A' | b'G' => {
            if read_account(c, may_have_mark)? {
                next_line(c)?;
            }
            c.bic()?;
        }
        b'B' => {
            let has_account = read_account(c, may_have_mark)?;
            if !has_account || c.newline() {
                c.line("location")?;
            }
        }
        b'C' if number == 50 => c.bic()?,
        b'C' => {
            c.expect_literal(b"/", "an account")?;
            c.line("account")?;
        }
        b'L' => c.line("name")?,
        b'F' => {
            if number == 50 && !c.rest().starts_with(b"/") {
                read_identifier(c)?;
                next_line(c)?;
            } else if read_account(c, false)? {
                next_line(c)?;
            }
            read_numbered(c)?;
        }
        0 | b'D' | b'H' | b'K' => {
            if read_account(c, may_have_mark)? {
                next_line(c)?;
            }
            c.line("name")?;
            if c.newline() {
                c.lines("address")?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[inline(always)]
fn next_line(c: &mut ValueCursor<'_>) -> ComponentResult {
    if c.newline() { Ok(()) } else { Err("another line") }
}

/// Reads `[/1!a][/34x]` and returns whether it is there.
#[inline(always)]
fn read_account(c: &mut ValueCursor<'_>, may_have_mark: bool) -> Result<bool, ExpectedText> {
    if !c.literal(b"/") {
        return Ok(false);
    }
    let len = c.line_len();
    if may_have_mark && c.run(CharacterClass::Letters, 2) == 1 && (len == 1 || len > 2 && c.rest()[1] == b'/')
    {
        c.component("mark", SubfieldFormat::Text, 1);
        if len > 1 {
            c.skip(1);
            c.line("account")?;
        }
    } else {
        c.line("account")?;
    }
    Ok(true)
}

/// Reads `4!a/2!a/27x`: a code, a country, and an identifier that the country issued.
#[inline(always)]
fn read_identifier(c: &mut ValueCursor<'_>) -> ComponentResult {
    c.fixed("id_code", CharacterClass::Letters, 4)?;
    c.expect_literal(b"/", "/")?;
    c.fixed("id_country", CharacterClass::Letters, 2)?;
    c.expect_literal(b"/", "/")?;
    c.line("id")
}

/// Lines `1/NAME`, `2/STREET`, `3/COUNTRY/TOWN`: all of them, and the name.
#[inline(always)]
fn read_numbered(c: &mut ValueCursor<'_>) -> ComponentResult {
    if !(c.run(CharacterClass::Digits, 1) == 1 && c.rest().get(1) == Some(&b'/')) {
        return Err("a line 1/…");
    }
    if c.literal(b"1/") {
        c.line("name")?;
        if !c.newline() {
            return Ok(());
        }
    }
    c.lines("address")
}
