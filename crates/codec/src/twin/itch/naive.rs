//! The slow twin: the whole input in memory, every place looked at by itself, the specification's tables as text.

use std::sync::LazyLock;

use crate::itch::{GARBAGE_BYTES_MAX, ItchTransport};

/// A message at its place in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaiveMessage {
    /// First byte.
    pub offset: usize,
    /// How many.
    pub length: usize,
    /// The letter and the fields by name, as text; or the code of what is wrong. `None` is the framing's own.
    pub outcome: Option<Said>,
}

/// Letter and fields by name, or a code.
pub type Said = Result<(u8, Vec<(String, String)>), &'static str>;

/// Types as the specification lists them: letter, then name and type of each field in turn. `a` letters, `n` number,
/// `p` price, each with its bytes; `s` a symbol, `b` buy or sell.
const TYPES: [&str; 23] = [
    "S event a1",
    "R stock s market_category a1 financial_status a1 round_lot_size n4 round_lots_only a1 issue_classification a1 \
     issue_sub_type a2 authenticity a1 short_sale_threshold a1 ipo_flag a1 luld_tier a1 etp_flag a1 etp_leverage n4 \
     inverse a1",
    "H stock s state a1 reserved a1 reason a4",
    "Y stock s action a1",
    "L mpid a4 stock s primary a1 mode a1 state a1",
    "V level_1 p8 level_2 p8 level_3 p8",
    "W breached a1",
    "K stock s release_time n4 qualifier a1 price p4",
    "J stock s reference_price p4 upper_price p4 lower_price p4 extension n4",
    "h stock s market a1 action a1",
    "A order n8 side b shares n4 stock s price p4",
    "F order n8 side b shares n4 stock s price p4 attribution a4",
    "E order n8 shares n4 match_number n8",
    "C order n8 shares n4 match_number n8 printable a1 price p4",
    "X order n8 shares n4",
    "D order n8",
    "U order n8 new_order n8 shares n4 price p4",
    "P order n8 side b shares n4 stock s price p4 match_number n8",
    "Q shares n8 stock s price p4 match_number n8 cross_type a1",
    "B match_number n8",
    "I paired_shares n8 imbalance_shares n8 direction a1 stock s far_price p4 near_price p4 reference_price p4 \
     cross_type a1 variation a1",
    "N stock s interest a1",
    "O stock s eligible a1 min_price p4 max_price p4 near_price p4 near_time n8 lower_price p4 upper_price p4",
];

/// Decodes all messages in `input`, in order.
pub fn decode(framing: ItchTransport, input: &[u8]) -> Vec<NaiveMessage> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < input.len() {
        let (length, what) = one(framing, input, at);
        out.push(NaiveMessage { offset: at, length, outcome: what });
        at += length;
    }
    out
}

fn one(framing: ItchTransport, input: &[u8], at: usize) -> (usize, Option<Said>) {
    let rest = &input[at..];
    match good(framing, input, at) {
        Some((length, _)) if length > rest.len() => return (rest.len(), Some(Err("truncated"))),
        Some((length, None)) => return (length, None),
        Some((length, Some(body))) => return (length, Some(fields(&rest[body..length]))),
        None => {}
    }
    if framing == ItchTransport::Length
        && rest.starts_with(&[0, 0])
        && (rest.len() == 2 || good(framing, input, at + 2).is_some())
    {
        return (2, None);
    }
    if rest.len() < 3
        || framing == ItchTransport::Soup && rest.len() == 3 && rest[2] == b'S' && stated(rest) > 1
    {
        return (rest.len(), Some(Err("truncated")));
    }
    let letter = if framing == ItchTransport::Length { rest[2] } else { *rest.get(3).unwrap_or(&0) };
    let known = types().any(|(l, _)| l == letter);
    let length = stated(rest);
    if (11..=512).contains(&length) && begins(framing, input, at + 2 + length) {
        return (2 + length, Some(Err(if known { "bad_length" } else { "unknown_type" })));
    }
    let next = (1..rest.len()).find(|n| {
        *n >= GARBAGE_BYTES_MAX
            || good(framing, input, at + n).is_some_and(|(length, _)| begins(framing, input, at + n + length))
    });
    let code = if known && next.is_none_or(|n| n < GARBAGE_BYTES_MAX) { "bad_length" } else { "garbage" };
    (next.unwrap_or(rest.len()), Some(Err(code)))
}

fn stated(rest: &[u8]) -> usize {
    usize::from(rest[0]) * 256 + usize::from(rest[1])
}

fn begins(framing: ItchTransport, input: &[u8], at: usize) -> bool {
    at == input.len() || good(framing, input, at).is_some()
}

/// Returns the length of a possible frame at `at`, and where its message begins, if it has one.
fn good(framing: ItchTransport, input: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
    let rest = input.get(at..)?;
    let letter = *rest.get(2)?;
    let length = stated(rest);
    let size = |letter| types().find(|(l, _)| *l == letter).map(|(_, size)| size);
    match (framing, letter) {
        (ItchTransport::Length, letter) => (size(letter)? == length).then_some((2 + length, Some(2))),
        (ItchTransport::Soup, b'S') => (size(*rest.get(3)?)? + 1 == length).then_some((2 + length, Some(3))),
        (ItchTransport::Soup, letter) => {
            let lengths = match letter {
                b'H' | b'R' | b'Z' | b'O' => 1..=1,
                b'A' => 31..=31,
                b'J' => 2..=2,
                b'L' => 47..=47,
                b'+' => 1..=512,
                _ => return None,
            };
            lengths.contains(&length).then_some((2 + length, None))
        }
    }
}

/// A type's letter, and the name, the sort and the bytes of each field.
type Table = (u8, Vec<(&'static str, char, usize)>);

/// The tables, read once.
static TABLES: LazyLock<Vec<Table>> =
    LazyLock::new(|| TYPES.iter().map(|line| (line.as_bytes()[0], parts(&line[1..]))).collect());

fn parts(line: &'static str) -> Vec<(&'static str, char, usize)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let part = |pair: &[&'static str]| {
        let sort = pair[1].chars().next().expect("a sort");
        let bytes = match sort {
            's' => 8,
            'b' => 1,
            _ => pair[1][1..].parse().expect("its bytes"),
        };
        (pair[0], sort, bytes)
    };
    words.chunks(2).map(part).collect()
}

/// Letters and lengths.
fn types() -> impl Iterator<Item = (u8, usize)> {
    TABLES.iter().map(|(letter, parts)| (*letter, 11 + parts.iter().map(|part| part.2).sum::<usize>()))
}

fn fields(body: &[u8]) -> Said {
    let (_, parts) = TABLES.iter().find(|(letter, _)| *letter == body[0]).expect("of a known type");
    let whole = |bytes: &[u8]| bytes.iter().fold(0u128, |n, b| n * 256 + u128::from(*b));
    if whole(&body[5..11]) >= 24 * 3600 * 1_000_000_000 {
        return Err("bad_time");
    }
    let mut out: Vec<(String, String)> =
        [("stock_locate", 1, 3), ("tracking_number", 3, 5), ("timestamp", 5, 11)]
            .map(|(name, from, to)| (name.to_owned(), whole(&body[from..to]).to_string()))
            .into();
    let mut at = 11;
    for &(name, sort, bytes) in parts {
        let value = &body[at..at + bytes];
        at += bytes;
        let text = match sort {
            'n' => whole(value).to_string(),
            'p' => {
                let places = if bytes == 4 { 4 } else { 8 };
                let scale = 10u128.pow(places as u32);
                let text = format!("{}.{:0places$}", whole(value) / scale, whole(value) % scale);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            _ => {
                let text = String::from_utf8_lossy(value).trim_end_matches(' ').to_owned();
                let printable = value.iter().all(|b| (32..127).contains(b));
                match sort {
                    'b' if text != "B" && text != "S" => return Err("bad_side"),
                    's' if !printable || text.is_empty() || text.contains(' ') => return Err("bad_stock"),
                    'a' if !printable => return Err("bad_text"),
                    _ if text.is_empty() => continue,
                    _ => text,
                }
            }
        };
        out.push((name.to_owned(), text));
    }
    out.sort();
    Ok((body[0], out))
}
