//! Category 5: generic fields `:qualifier/issuer/…` or `:qualifier//…`, and the few that are not.

use super::SubfieldFormat;
use super::cursor::{CharacterClass, ComponentResult, ExpectedText, ValueCursor};

#[inline(always)]
pub(super) fn read_form(number: u8, letter: u8, c: &mut ValueCursor<'_>) -> Result<bool, ExpectedText> {
    match (number, letter) {
        (16, _) => return c.text_up_to("code", CharacterClass::Plain, 16).map(|()| true),
        (23, b'G') => {
            c.fixed("code", CharacterClass::Plain, 4)?;
            if c.literal(b"/") {
                c.fixed("subfunction", CharacterClass::Plain, 4)?;
            }
            return Ok(true);
        }
        (28, b'E') => {
            c.text_up_to("number", CharacterClass::Digits, 5)?;
            c.expect_literal(b"/", "/")?;
            c.fixed("code", CharacterClass::Plain, 4)?;
            return Ok(true);
        }
        (35, b'B') => return instrument(c).map(|()| true),
        _ if !c.rest().starts_with(b":") || !is_generic(number, letter) => return Ok(false),
        _ => {}
    }
    c.skip(1);
    c.fixed("qualifier", CharacterClass::Plain, 4)?;
    match (number, letter) {
        (11, b'A') => skip_slashes(c)?.fixed("currency", CharacterClass::Letters, 3)?,
        (13, b'A') => skip_slashes(c)?.fixed("number", CharacterClass::Plain, 3)?,
        (13, b'B') => read_issuer(c)?.line("number")?,
        (17, b'B') => skip_slashes(c)?.fixed("flag", CharacterClass::Letters, 1)?,
        (19, b'A') => signed(skip_slashes(c)?)?.currency_amount()?,
        (19, b'B') => skip_slashes(c)?.currency_amount()?,
        (20, b'C') => skip_slashes(c)?.line("reference")?,
        (22, b'F') | (24, b'B') | (25, b'D') | (98, b'B') => {
            read_issuer(c)?.fixed("code", CharacterClass::Plain, 4)?
        }
        (22, b'H') | (97, b'C') => skip_slashes(c)?.fixed("code", CharacterClass::Plain, 4)?,
        (36, b'B') => read_type(skip_slashes(c)?)?.amount("quantity")?,
        (70, _) => skip_slashes(c)?.lines("lines")?,
        (90, b'A') => read_type(skip_slashes(c)?)?.amount("price")?,
        (90, b'B') => {
            read_type(skip_slashes(c)?)?.fixed("currency", CharacterClass::Letters, 3)?;
            c.amount("price")?;
        }
        (92, b'A') => signed(skip_slashes(c)?)?.amount("rate")?,
        (92, b'B') => {
            skip_slashes(c)?.fixed("currency", CharacterClass::Letters, 3)?;
            c.expect_literal(b"/", "/")?;
            c.fixed("currency2", CharacterClass::Letters, 3)?;
            c.expect_literal(b"/", "/")?;
            c.amount("rate")?;
        }
        (92, b'F') => skip_slashes(c)?.currency_amount()?,
        (93, b'B') => signed(read_type(read_issuer(c)?)?)?.amount("balance")?,
        (94, b'B') => {
            read_issuer(c)?.fixed("code", CharacterClass::Plain, 4)?;
            if c.literal(b"/") {
                c.line("narrative")?;
            }
        }
        (94, b'C') => skip_slashes(c)?.fixed("country", CharacterClass::Letters, 2)?,
        (94, b'F') => read_type(skip_slashes(c)?)?.bic()?,
        (95, b'P') => skip_slashes(c)?.bic()?,
        (95, b'Q') => {
            skip_slashes(c)?.line("name")?;
            if c.newline() {
                c.lines("address")?;
            }
        }
        (95, b'R') => {
            c.expect_literal(b"/", "/")?;
            c.text_up_to("issuer", CharacterClass::Plain, 8)?;
            c.expect_literal(b"/", "/")?;
            c.line("id")?;
        }
        (97, b'A') => skip_slashes(c)?.line("account")?,
        (97, b'B') => read_type(read_issuer(c)?)?.line("account")?,
        (98, b'A') => _ = skip_slashes(c)?.date("date", SubfieldFormat::DateLong)?,
        (98, b'C') => read_moment(skip_slashes(c)?)?,
        (98, b'E') => {
            read_moment(skip_slashes(c)?)?;
            read_zone(c)?;
        }
        (99, b'A') => signed(skip_slashes(c)?)?.fixed("number", CharacterClass::Digits, 3)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns whether [`read_form`] knows the text after the qualifier. Must be asked before the qualifier is read: a tag
/// without a known form is never refused.
#[inline(always)]
fn is_generic(number: u8, letter: u8) -> bool {
    match letter {
        b'A' => matches!(number, 11 | 13 | 19 | 90 | 92 | 97 | 98 | 99),
        b'B' => matches!(number, 13 | 17 | 19 | 24 | 36 | 90 | 92 | 93 | 94 | 97 | 98),
        b'C' => matches!(number, 20 | 70 | 94 | 97 | 98),
        b'D' => matches!(number, 25 | 70),
        b'E' => matches!(number, 70 | 98),
        b'F' => matches!(number, 22 | 70 | 92 | 94),
        b'G' => number == 70,
        b'H' => number == 22,
        b'P' | b'Q' | b'R' => number == 95,
        _ => false,
    }
}

/// Reads `[ISIN1!e12!c][⏎4*35x]`.
#[inline(always)]
fn instrument(c: &mut ValueCursor<'_>) -> ComponentResult {
    if c.literal(b"ISIN ") {
        c.fixed("isin", CharacterClass::Plain, 12)?;
        if c.rest().is_empty() {
            return Ok(());
        }
        if !c.newline() {
            return Err("another line");
        }
    }
    c.lines("description")
}

#[inline(always)]
fn skip_slashes<'s, 'c>(c: &'s mut ValueCursor<'c>) -> Result<&'s mut ValueCursor<'c>, ExpectedText> {
    c.expect_literal(b"//", "//")?;
    Ok(c)
}

/// Reads `/[8c]/`.
#[inline(always)]
fn read_issuer<'s, 'c>(c: &'s mut ValueCursor<'c>) -> Result<&'s mut ValueCursor<'c>, ExpectedText> {
    c.expect_literal(b"/", "/")?;
    match c.run(CharacterClass::Plain, 8) {
        0 => {}
        len => c.component("issuer", SubfieldFormat::Text, len),
    }
    c.expect_literal(b"/", "/")?;
    Ok(c)
}

/// Reads `4!c/`, the type of the next number.
#[inline(always)]
fn read_type<'s, 'c>(c: &'s mut ValueCursor<'c>) -> Result<&'s mut ValueCursor<'c>, ExpectedText> {
    c.fixed("type", CharacterClass::Plain, 4)?;
    c.expect_literal(b"/", "/")?;
    Ok(c)
}

/// Reads `[N]`, which means negative. The currency after it may start with N too.
#[inline(always)]
pub(super) fn signed<'s, 'c>(c: &'s mut ValueCursor<'c>) -> Result<&'s mut ValueCursor<'c>, ExpectedText> {
    if c.rest().starts_with(b"N") && matches!(c.run(CharacterClass::Letters, 4), 1 | 4) {
        c.component("sign", SubfieldFormat::Text, 1);
    }
    Ok(c)
}

#[inline(always)]
fn read_moment(c: &mut ValueCursor<'_>) -> ComponentResult {
    c.date("date", SubfieldFormat::DateLong)?;
    c.time("time", 6)
}

/// Reads `[,3n][/[N]2!n[2!n]]`: the fraction of a second, and the offset from UTC.
#[inline(always)]
fn read_zone(c: &mut ValueCursor<'_>) -> ComponentResult {
    if c.literal(b",") {
        c.text_up_to("fraction", CharacterClass::Digits, 3)?;
    }
    if c.literal(b"/") {
        if c.rest().starts_with(b"N") {
            c.component("sign", SubfieldFormat::Text, 1);
        }
        match c.run(CharacterClass::Digits, 4) {
            len @ (2 | 4) => c.component("offset", SubfieldFormat::Text, len),
            _ => return Err("hours and maybe minutes"),
        }
    }
    Ok(())
}
