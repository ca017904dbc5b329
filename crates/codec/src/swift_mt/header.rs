//! The parts of blocks 1 and 2.

use super::fault::ValueFault;
use super::parts::{SubfieldFormat, SwiftComponents, ends, positions};

/// Takes block 1 or 2 apart (`number`); false for other blocks. If it fails there are no parts.
///
/// Block 1: `application`, `service`, `terminal` of us, `session`, `sequence`. Block 2 of a message to the
/// network: `direction` (`I`), `type`, `receiver`, `priority`, `monitoring`, `obsolescence`; of one from it:
/// `direction` (`O`), `type`, `input_time`, `input_date`, `sender`, `session`, `sequence`, `output_date`,
/// `output_time`, `priority`.
///
/// # Errors
/// Fails if the block departs from its form.
///
/// ```
/// use unitape_codec::swift_mt::{header, parts::SwiftComponents};
///
/// let mut parts = SwiftComponents::default();
/// let block = b"O1031612170425BBBBUS33BXXX01613135551704260717N";
/// assert_eq!(header(2, block, &mut parts), Ok(true));
/// assert_eq!(parts.get(block, "sender"), Some(&b"BBBBUS33BXXX"[..]));
/// ```
pub fn header(number: usize, content: &[u8], parts: &mut SwiftComponents) -> Result<bool, ValueFault> {
    let fixed: &[HeaderComponent] = match (number, content.first()) {
        (1, _) => &BASIC,
        // Banks write `O` in the short form of `I` too.
        (2, Some(b'O')) if content.len() > INPUT_BYTES_MAX => &OUTPUT,
        (2, _) => &INPUT,
        _ => return Ok(false),
    };
    let after = positions(parts, content, fixed)?;
    let after_name = &content[after..];
    if number == 2 && content.len() <= INPUT_BYTES_MAX {
        let is_all_digits = after_name.iter().all(u8::is_ascii_digit);
        match after_name.len() {
            0 => return Ok(true),
            1 if is_all_digits => {
                positions(parts, content, &[("monitoring", SubfieldFormat::Text, after, 1)])?
            }
            4 if is_all_digits => positions(
                parts,
                content,
                &[
                    ("monitoring", SubfieldFormat::Text, after, 1),
                    ("obsolescence", SubfieldFormat::Text, after + 1, 3),
                ],
            )?,
            _ => return Err(ends(parts, after)),
        };
        return Ok(true);
    }
    if after_name.is_empty() { Ok(true) } else { Err(ends(parts, after)) }
}

/// Bytes of the form with direction, type, receiver, priority, monitoring and obsolescence.
const INPUT_BYTES_MAX: usize = 21;

/// Name, kind, first byte, bytes.
pub(super) type HeaderComponent = (&'static str, SubfieldFormat, usize, usize);

const BASIC: [HeaderComponent; 5] = [
    ("application", SubfieldFormat::Text, 0, 1),
    ("service", SubfieldFormat::Text, 1, 2),
    ("terminal", SubfieldFormat::Text, 3, 12),
    ("session", SubfieldFormat::Text, 15, 4),
    ("sequence", SubfieldFormat::Text, 19, 6),
];

const INPUT: [HeaderComponent; 4] = [
    ("direction", SubfieldFormat::Text, 0, 1),
    ("type", SubfieldFormat::Text, 1, 3),
    ("receiver", SubfieldFormat::Text, 4, 12),
    ("priority", SubfieldFormat::Text, 16, 1),
];

const OUTPUT: [HeaderComponent; 10] = [
    ("direction", SubfieldFormat::Text, 0, 1),
    ("type", SubfieldFormat::Text, 1, 3),
    ("input_time", SubfieldFormat::Time, 4, 4),
    ("input_date", SubfieldFormat::Date, 8, 6),
    ("sender", SubfieldFormat::Text, 14, 12),
    ("session", SubfieldFormat::Text, 26, 4),
    ("sequence", SubfieldFormat::Text, 30, 6),
    ("output_date", SubfieldFormat::Date, 36, 6),
    ("output_time", SubfieldFormat::Time, 42, 4),
    ("priority", SubfieldFormat::Text, 46, 1),
];
