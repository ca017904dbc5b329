//! Offsets from UTC: `Z`, `+02:00`, `+0200`, `+02`, `GMT+0200`, `UTC`.

use super::fault::TimeFault;

/// Reads the offset that `text` begins with: seconds east of UTC, and the bytes it takes. `None` if it begins with no
/// offset.
pub(super) fn read_offset(text: &[u8]) -> Option<Result<(i32, usize), TimeFault>> {
    if let [b'Z' | b'z', ..] = text {
        return Some(Ok((0, 1)));
    }
    let has_prefix =
        text.get(..3).is_some_and(|n| n.eq_ignore_ascii_case(b"GMT") || n.eq_ignore_ascii_case(b"UTC"));
    let digits_start = if has_prefix { 3 } else { 0 };
    let Some(sign @ (b'+' | b'-')) = text.get(digits_start) else {
        return has_prefix.then_some(Ok((0, digits_start)));
    };
    let digits = &text[digits_start + 1..];
    let run = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let pair = |index: usize| i32::from(digits[index] - b'0') * 10 + i32::from(digits[index + 1] - b'0');
    let minutes_after_colon = digits.get(2) == Some(&b':')
        && digits.len() >= 5
        && digits[3..5].iter().all(u8::is_ascii_digit)
        && !digits.get(5).is_some_and(u8::is_ascii_digit);
    let (hours, minutes, length) = match run {
        2 if minutes_after_colon => (pair(0), pair(3), 5),
        2 if digits.get(2) != Some(&b':') => (pair(0), 0, 2),
        4 => (pair(0), pair(2), 4),
        1 if has_prefix && digits.get(1) != Some(&b':') => (i32::from(digits[0] - b'0'), 0, 1),
        _ => return Some(Err(TimeFault::Form)),
    };
    if minutes > 59 || hours * 60 + minutes > OFFSET_MINUTES_MAX {
        return Some(Err(TimeFault::Offset));
    }
    let seconds = (hours * 60 + minutes) * 60;
    Some(Ok((if *sign == b'-' { -seconds } else { seconds }, digits_start + 1 + length)))
}

/// The greatest offset from UTC: that of the Line Islands.
const OFFSET_MINUTES_MAX: i32 = 14 * 60;
