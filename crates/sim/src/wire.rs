//! Bytes of FIX: one message at a time in a buffer that is kept, framed when it is complete.
//!
//! ```text
//!  8=FIX.4.4 ␁ 9=body length ␁ │ 35 49 56 34 52 … body │ 10=sum of all before, mod 256 ␁
//!                              └─ built in `scratch` ──┘
//! ```

use unitape_model::calendar::civil_from_days;

/// Builds FIX 4.4 messages of one file, for several sessions.
#[derive(Debug)]
pub(crate) struct FixMessageWriter {
    scratch: Vec<u8>,
    /// `49` and `56` of each session.
    names: Vec<Vec<u8>>,
    /// Last `34` of each session.
    seqs: Vec<u64>,
    second: u64,
    second_text: [u8; 18],
    /// The place of the current message's fields after `52`.
    body_at: usize,
}

/// The deliberate flaw of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixFrameFlaw {
    None,
    Checksum,
    /// `9` is this much off, never zero; the checksum is that of the unchanged bytes.
    BodyLength(i64),
}

impl FixMessageWriter {
    pub fn new(senders: &[&str], target: &str) -> FixMessageWriter {
        let names = senders.iter().map(|s| format!("49={s}\x0156={target}\x01").into_bytes()).collect();
        let mut wire = FixMessageWriter {
            scratch: Vec::with_capacity(1024),
            names,
            seqs: vec![0; senders.len()],
            second: 0,
            second_text: [0; 18],
            body_at: 0,
        };
        wire.set_second(0);
        wire
    }

    /// Starts a message; its number is the session's next.
    pub fn begin(&mut self, session: usize, kind: u8, now_ns: u64) {
        self.begin_type(session, &[kind], now_ns);
    }

    /// Starts a message with a type of more letters.
    pub fn begin_type(&mut self, session: usize, kind: &[u8], now_ns: u64) {
        self.seqs[session] += 1;
        self.scratch.clear();
        self.raw(b"35=");
        self.raw(kind);
        self.raw(&[1]);
        self.scratch.extend_from_slice(&self.names[session]);
        self.int(b"34=", self.seqs[session]);
        self.time(b"52=", now_ns);
        self.body_at = self.scratch.len();
    }

    /// Ends the message and appends it to `out`.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.end_flawed(FixFrameFlaw::None, out);
    }

    pub fn end_flawed(&mut self, flaw: FixFrameFlaw, out: &mut Vec<u8>) {
        let start = out.len();
        let length = match flaw {
            FixFrameFlaw::BodyLength(off) => self.scratch.len().saturating_add_signed(off as isize),
            _ => self.scratch.len(),
        };
        out.extend_from_slice(b"8=FIX.4.4\x019=");
        push_int(out, length as u64);
        out.push(1);
        out.extend_from_slice(&self.scratch);
        let mut sum = checksum(&out[start..]);
        if flaw == FixFrameFlaw::Checksum {
            sum = sum.wrapping_add(1);
        }
        let digits = [b'0' + sum / 100, b'0' + sum / 10 % 10, b'0' + sum % 10];
        out.extend_from_slice(&[b'1', b'0', b'=', digits[0], digits[1], digits[2], 1]);
    }

    /// Returns the fields after `52` of the last message.
    pub fn body(&self) -> &[u8] {
        &self.scratch[self.body_at..]
    }

    /// Appends ready-made fields, each with its separator.
    pub fn raw(&mut self, fields: &[u8]) {
        self.scratch.extend_from_slice(fields);
    }

    pub fn char(&mut self, tag: &[u8], value: u8) {
        self.raw(tag);
        self.raw(&[value, 1]);
    }

    pub fn text(&mut self, tag: &[u8], value: &str) {
        self.raw(tag);
        self.raw(value.as_bytes());
        self.scratch.push(1);
    }

    pub fn int(&mut self, tag: &[u8], value: u64) {
        self.raw(tag);
        push_int(&mut self.scratch, value);
        self.scratch.push(1);
    }

    /// Appends a field with a letter and ten digits.
    pub fn id(&mut self, tag: &[u8], letter: u8, value: u64) {
        self.raw(tag);
        let mut text = [b'0'; 12];
        (text[0], text[11]) = (letter, 1);
        put_digits(&mut text[1..11], value);
        self.raw(&text);
    }

    /// Appends a decimal field: `units` of 10^-`decimals`, with all decimal places.
    pub fn decimal(&mut self, tag: &[u8], units: u64, decimals: u32) {
        self.raw(tag);
        let scale = 10u64.pow(decimals);
        push_int(&mut self.scratch, units / scale);
        if decimals > 0 {
            let mut places = [0u8; 20];
            places[0] = b'.';
            let end = decimals as usize + 1;
            put_digits(&mut places[1..end], units % scale);
            self.raw(&places[..end]);
        }
        self.scratch.push(1);
    }

    /// Appends a time field: `YYYYMMDD-HH:MM:SS.nnnnnnnnn`.
    pub fn time(&mut self, tag: &[u8], ns: u64) {
        self.raw(tag);
        if ns / NS_PER_S != self.second {
            self.set_second(ns / NS_PER_S);
        }
        let mut nanos = [1u8; 10];
        put_digits(&mut nanos[..9], ns % NS_PER_S);
        self.scratch.extend_from_slice(&self.second_text);
        self.raw(&nanos);
    }

    fn set_second(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = civil(second / 86_400);
        let text = &mut self.second_text;
        text.copy_from_slice(b"00000000-00:00:00.");
        put_digits(&mut text[0..4], year);
        put_digits(&mut text[4..6], month);
        put_digits(&mut text[6..8], day);
        put_digits(&mut text[9..11], second / 3600 % 24);
        put_digits(&mut text[12..14], second / 60 % 60);
        put_digits(&mut text[15..17], second % 60);
    }
}

/// Computes the byte sum for the field `10`.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte))
}

fn push_int(out: &mut Vec<u8>, value: u64) {
    let mut text = [0u8; 20];
    let mut start = text.len();
    let mut left = value;
    loop {
        start -= 1;
        text[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

/// Writes the last digits of `value`, as many as fit.
pub(crate) fn put_digits(room: &mut [u8], mut value: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Splits a day into year, month and day, `days` after 1970-01-01.
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    let (year, month, day) = civil_from_days(days as i64);
    (year as u64, month as u64, day as u64)
}

const NS_PER_S: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A leap day or the turn of a year counted wrongly shifts a whole day of events.
    #[test]
    fn dates_agree_with_counting_days_one_by_one() {
        let (mut year, mut month, mut day) = (1970u64, 1u64, 1u64);
        for days in 0..160_000 {
            assert_eq!(civil(days), (year, month, day), "day {days}");
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    /// A length or a sum off by one makes every message of the flow bad.
    #[test]
    fn frame_is_exact() {
        let mut wire = FixMessageWriter::new(&["XLON"], "UNITAPE");
        let mut out = Vec::new();
        wire.begin(0, b'0', 1_710_167_401_000_000_007);
        wire.decimal(b"44=", 250_050, 2);
        wire.id(b"37=", b'O', 42);
        wire.end(&mut out);
        let body = "35=0\x0149=XLON\x0156=UNITAPE\x0134=1\x0152=20240311-14:30:01.000000007\x01\
                    44=2500.50\x0137=O0000000042\x01";
        let head = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
        let sum = head.bytes().map(u32::from).sum::<u32>() % 256;
        assert_eq!(String::from_utf8(out).expect("ascii"), format!("{head}10={sum:03}\x01"));
        assert_eq!(wire.body(), b"44=2500.50\x0137=O0000000042\x01");
    }
}
