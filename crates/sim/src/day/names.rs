//! The spelling of numbers of orders, matches and so on, the same in every output.

use unitape_model::Price;

/// Formats an order number as `O` and ten digits.
pub fn oid_text(oid: u64) -> String {
    text(oid_bytes(oid))
}

/// Formats a match number as `M` and seven digits of base 36, which fit into the eight bytes of a print.
pub fn match_text(match_id: u64) -> String {
    text(match_bytes(match_id))
}

/// Formats a price in 1e-9 units as a canonical decimal.
pub fn decimal(nano: i64) -> String {
    Price(nano).to_string()
}

pub(crate) fn oid_bytes(oid: u64) -> [u8; 11] {
    lettered(b'O', oid, 10)
}

pub(crate) fn match_bytes(match_id: u64) -> [u8; 8] {
    lettered(b'M', match_id, 36)
}

/// Formats a parent order as `P` and nine digits, and a client order that is a parent itself as [`client_text`] does.
pub(crate) fn parent_bytes(parent: u64) -> [u8; 10] {
    match parent & CLIENT_PARENT {
        0 => lettered(b'P', parent, 10),
        _ => client_bytes(parent ^ CLIENT_PARENT),
    }
}

/// Returns the parent number of orders that belong to a client order and to no algorithm's parent order.
pub(crate) fn client_parent(client: u64) -> u64 {
    client | CLIENT_PARENT
}

/// Formats a client order as `C` and nine digits.
pub(crate) fn client_text(client: u64) -> String {
    text(client_bytes(client))
}

/// Formats the client order of a parent as `C` and nine digits.
pub(crate) fn client_bytes(client: u64) -> [u8; 10] {
    lettered(b'C', client, 10)
}

/// Formats a news number as `N` and seven digits.
pub(crate) fn news_bytes(id: u64) -> [u8; 8] {
    lettered(b'N', id, 10)
}

/// Formats a news number as text.
pub(crate) fn news_text(id: u64) -> String {
    text(news_bytes(id))
}

/// Formats the number of a message between traders as `K` and eight digits.
pub(crate) fn comm_bytes(number: u64) -> [u8; 9] {
    lettered(b'K', number, 10)
}

/// Formats the number of a message between traders as text.
pub(crate) fn comm_text(number: u64) -> String {
    text(comm_bytes(number))
}

/// Formats a payment number as `PAY` and nine digits.
pub(crate) fn payment_text(number: u64) -> String {
    format!("PAY{number:09}")
}

/// Returns the usual name of an account's holder in payments.
pub fn holder(account: u32) -> String {
    const FIRST: [&str; 8] = ["ALDER", "BIRCH", "CEDAR", "DAPHNE", "ELDER", "FERN", "GORSE", "HAZEL"];
    const SECOND: [&str; 4] = ["TRADING", "SHIPPING", "BAKERIES", "STORES"];
    let n = account as usize;
    format!("{} {} {}", FIRST[n % FIRST.len()], SECOND[n / FIRST.len() % SECOND.len()], n + 1)
}

/// Returns the usual BIC of an account's bank in payments.
pub fn bic(account: u32) -> String {
    const PLACES: [&str; 4] = ["GB2L", "FRPP", "DEFF", "NL2A"];
    let letter = (b'A' + (account % 12) as u8) as char;
    format!("ZZ{letter}{letter}{}", PLACES[account as usize % PLACES.len()])
}

/// Returns the headline of a news item.
pub fn headline(symbol: &str, good: bool) -> String {
    format!("{symbol} {} its forecast", if good { "raises" } else { "cuts" })
}

const CLIENT_PARENT: u64 = 1 << 63;

/// Writes a letter and as many digits as fit.
#[inline]
pub(crate) fn lettered<const N: usize>(letter: u8, mut number: u64, base: u64) -> [u8; N] {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut room = [letter; N];
    for digit in room[1..].iter_mut().rev() {
        *digit = DIGITS[(number % base) as usize];
        number /= base;
    }
    room
}

fn text<const N: usize>(bytes: [u8; N]) -> String {
    bytes.iter().map(|&b| b as char).collect()
}
