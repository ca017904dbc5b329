//! Payments and what all categories share: references, dates, amounts, narratives.

use super::SubfieldFormat;
use super::cursor::{CharacterClass, ExpectedText, ValueCursor};

#[inline(always)]
pub(super) fn read_form(number: u8, letter: u8, c: &mut ValueCursor<'_>) -> Result<bool, ExpectedText> {
    match (number, letter) {
        (20 | 21, _) => c.line("reference")?,
        (12, 0) => c.fixed("type", CharacterClass::Digits, 3)?,
        (13, b'C') => {
            c.expect_literal(b"/", "/")?;
            c.text_up_to("code", CharacterClass::Plain, 8)?;
            c.expect_literal(b"/", "/")?;
            c.time("time", 4)?;
            super::statement::offset(c)?;
        }
        (23, b'B') | (22, b'A') => c.fixed("code", CharacterClass::Plain, 4)?,
        (23, b'E') => {
            c.fixed("code", CharacterClass::Plain, 4)?;
            if c.literal(b"/") {
                c.line("information")?;
            }
        }
        (26, b'T') => c.fixed("code", CharacterClass::Plain, 3)?,
        (27, 0) => {
            c.fixed("number", CharacterClass::Digits, 1)?;
            c.expect_literal(b"/", "/")?;
            c.fixed("total", CharacterClass::Digits, 1)?;
        }
        (30, 0) | (31, b'C' | b'E') => _ = c.date("date", SubfieldFormat::Date)?,
        (30, b'A'..=b'Z') => _ = c.date("date", SubfieldFormat::DateLong)?,
        (31, b'D') => {
            c.date("date", SubfieldFormat::Date)?;
            c.line("place")?;
        }
        (32, b'A' | b'C' | b'D') => {
            c.date("date", SubfieldFormat::Date)?;
            c.currency_amount()?;
        }
        (32, b'B') | (33, b'B') | (34, b'B') | (71, b'F' | b'G') => c.currency_amount()?,
        (32, b'H') | (34, b'E') => {
            super::securities::signed(c)?.currency_amount()?;
        }
        (36, 0) => c.amount("rate")?,
        (71, b'A') => c.fixed("code", CharacterClass::Letters, 3)?,
        (70 | 72 | 75 | 76 | 79, 0) | (71, b'B') | (72, b'Z') | (77, b'A'..=b'Z') => c.lines("lines")?,
        _ => return Ok(false),
    }
    Ok(true)
}
