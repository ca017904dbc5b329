//! The slow twin: the whole input in memory, every place looked at by itself, the specifications' tables as text.

use crate::iex::GARBAGE_BYTES_MAX;

/// A message at its place in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaiveMessage {
    /// First byte.
    pub offset: usize,
    /// How many.
    pub length: usize,
    /// The message, or the code of what is wrong.
    pub outcome: Result<NaiveFields, &'static str>,
}

/// A message as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaiveFields {
    /// Its letter.
    pub letter: u8,
    /// Its number in its session.
    pub sequence: u64,
    /// Its fields by name, sorted.
    pub fields: Vec<(String, String)>,
    /// Bytes behind its fields.
    pub extra: usize,
}

/// Types as the specifications list them: protocols (`t` TOPS, `d` DEEP, `p` DEEP+), letter, the field in the second
/// byte, then name and type of each field behind the timestamp. `a` letters, `n` number, `p` price, `b` side, each with
/// its bytes; `s` a symbol.
const TYPES: [&str; 19] = [
    "tdp S event a1",
    "tdp D flags n1 symbol s round_lot_size n4 adjusted_poc_price p luld_tier n1",
    "tdp H status a1 symbol s reason a4",
    "tdp I indicator a1 symbol s",
    "tdp O status a1 symbol s",
    "tdp P status n1 symbol s detail a1",
    "dp E event a1 symbol s",
    "t Q flags n1 symbol s bid_size n4 bid_price p ask_price p ask_size n4",
    "d 8 flags n1 symbol s size n4 price p",
    "d 5 flags n1 symbol s size n4 price p",
    "tdp T flags n1 symbol s size n4 price p trade_id n8",
    "td X price_type a1 symbol s price p",
    "tdp B flags n1 symbol s size n4 price p trade_id n8",
    "td A auction_type a1 symbol s paired_shares n4 reference_price p indicative_clearing_price p imbalance_shares n4 \
     imbalance_side a1 extension_number n1 scheduled_auction_time n4 auction_book_clearing_price p \
     collar_reference_price p lower_auction_collar p upper_auction_collar p",
    "p a side b symbol s order n8 size n4 price p",
    "p M flags n1 symbol s order n8 size n4 price p",
    "p R reserved n1 symbol s order n8",
    "p L flags n1 symbol s order n8 size n4 price p trade_id n8",
    "p C reserved n1 symbol s",
];

/// Decodes all packets in `input`, back to back, in order; leaves out heartbeats.
pub fn decode(input: &[u8]) -> Vec<NaiveMessage> {
    let (mut out, mut offset) = (Vec::new(), 0);
    while offset < input.len() {
        offset += match is_head(&input[offset..]) {
            true => packet(&mut out, input, offset),
            false => {
                let (length, code) = garbage(&input[offset..]);
                out.push(NaiveMessage { offset, length, outcome: Err(code) });
                length
            }
        };
    }
    out
}

/// Decodes the messages of the packet at `offset` and returns the packet's length in bytes.
fn packet(out: &mut Vec<NaiveMessage>, input: &[u8], offset: usize) -> usize {
    let head = &input[offset..];
    let (stated, count) = (number(&head[12..14]) as usize, number(&head[14..16]) as usize);
    let payload = &head[40..head.len().min(40 + stated)];
    let (mut at, mut found) = (0, 0);
    let mut push = |at: usize, length: usize, outcome| {
        out.push(NaiveMessage { offset: offset + 40 + at, length, outcome });
    };
    while found < count {
        let length = match payload.get(at..at + 2) {
            Some(length) => 2 + number(length) as usize,
            None => usize::MAX,
        };
        if length > payload.len() - at {
            push(at, payload.len() - at, Err("truncated"));
            return 40 + payload.len();
        }
        let sequence = (number(&head[24..32]) as u64).wrapping_add(found as u64);
        push(at, length, message(head[2], sequence, &payload[at + 2..at + length]));
        at += length;
        found += 1;
    }
    if at < payload.len() {
        push(at, payload.len() - at, Err("garbage"));
    } else if payload.len() < stated {
        push(at, 0, Err("truncated"));
    }
    40 + payload.len()
}

fn is_head(bytes: &[u8]) -> bool {
    bytes.len() >= 40 && bytes[0] == 1 && bytes[3] == 0x80 && (3..=5).contains(&bytes[2])
}

/// Returns the length of garbage up to a packet whose numbers fit each other, and its fault code.
fn garbage(rest: &[u8]) -> (usize, &'static str) {
    if rest.len() < 40 {
        return (rest.len(), "truncated");
    }
    let fits = |head: &[u8]| {
        let (bytes, count) = (number(&head[12..14]), number(&head[14..16]));
        count * 3 <= bytes && (count > 0 || bytes == 0)
    };
    let next = (1..rest.len()).find(|&n| is_head(&rest[n..]) && fits(&rest[n..]));
    let code = match rest[0] == 1 && rest[1] == 0 && rest[3] >= 0x80 {
        true => "unknown_protocol",
        false => "garbage",
    };
    (next.unwrap_or(rest.len()).min(GARBAGE_BYTES_MAX), code)
}

fn message(protocol: u8, sequence: u64, body: &[u8]) -> Result<NaiveFields, &'static str> {
    let Some(&letter) = body.first() else { return Err("bad_length") };
    let protocol = [b't', b'd', b'p'][usize::from(protocol) - 3];
    let words = TYPES.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_type = |words: &Vec<&str>| {
        words[0].as_bytes().contains(&protocol) && words[1].as_bytes() == [letter].as_slice()
    };
    let Some(words) = words.into_iter().find(is_type) else { return Err("unknown_type") };
    let mut parts: Vec<(&str, u8, usize, usize)> = Vec::new();
    let mut offset = 1;
    for pair in words[2..].chunks(2) {
        let kind = pair[1].as_bytes()[0];
        let bytes = match kind {
            b's' => 8,
            b'p' => 8,
            b'b' => 1,
            _ => pair[1][1..].parse().expect("its bytes"),
        };
        parts.push((pair[0], kind, offset, bytes));
        offset += bytes;
        // The timestamp is behind the first field.
        if parts.len() == 1 {
            offset += 8;
        }
    }
    if body.len() < offset {
        return Err("bad_length");
    }
    let timestamp = number(&body[2..10]);
    if timestamp > i64::MAX as u128 {
        return Err("bad_time");
    }
    let mut fields = vec![("timestamp".to_owned(), timestamp.to_string())];
    for (name, kind, offset, bytes) in parts {
        let raw = &body[offset..offset + bytes];
        let printable = raw.iter().all(|byte| (32..127).contains(byte));
        let text = String::from_utf8_lossy(raw).trim_end_matches(' ').to_owned();
        let text = match kind {
            b'n' => number(raw).to_string(),
            b'p' => price(number(raw) as u64 as i64),
            b'b' if text != "8" && text != "5" => return Err("bad_side"),
            b's' if !printable || text.is_empty() || text.contains(' ') => return Err("bad_symbol"),
            b'a' if !printable => return Err("bad_text"),
            _ if text.is_empty() => continue,
            _ => text,
        };
        fields.push((name.to_owned(), text));
    }
    fields.sort();
    Ok(NaiveFields { letter, sequence, fields, extra: body.len() - offset })
}

fn price(units: i64) -> String {
    let digits = format!("{:05}", units.unsigned_abs());
    let (whole, places) = digits.split_at(digits.len() - 4);
    let text = format!("{}{whole}.{places}", if units < 0 { "-" } else { "" });
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Reads a little-endian number.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number * 256 + u128::from(*byte))
}
