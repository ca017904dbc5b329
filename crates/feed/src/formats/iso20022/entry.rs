//! The line of a statement (`Ntry`) as JSON, in the words that lines of SWIFT statements have too.
//!
//! ```text
//! [{"date":"2009-11-03","entry_date":"2009-11-02","amt":"-2120","ccy":"EUR","mark":"D","status":"PDNG",
//!   "type":"PMNT/RCDT/XBCT","ref":"E2E","bank_ref":"B1","entry_ref":"N1","cpty_name":"…","cpty_acct":"…","info":"…",
//!   "transactions":"3"}]
//! ```
//!
//! `amt` is what the line adds to the account, exact and in canonical form. `ref`, `cpty_name`, `cpty_acct` and `info` of the
//! transaction (`TxDtls`) are there where it is the only one: of several, none speaks for the line.

use super::IsoFieldValue;
use super::tree::LINE;
use crate::block::json::json_string;
use unitape_codec::iso20022::value;
use unitape_model::{Amount, NumberFault, Refusal};

/// Why elements make no line of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineFault {
    pub(super) refusal: Refusal,
    /// The element at fault, by its place in [`LINE`].
    pub(super) element: usize,
}

impl LineFault {
    fn new(element: usize, refusal: Refusal) -> Self {
        Self { refusal, element }
    }

    /// Describes the fault in words; `is_present` must be true if the message has the element.
    pub(super) fn text(&self, is_present: bool) -> String {
        let name = LINE[self.element];
        let expected = match self.element {
            _ if !is_present => "is missing",
            MARK => "is neither CRDT nor DBIT",
            AMOUNT => "is no amount",
            _ => "is no day",
        };
        format!("Ntry/{name} {expected}")
    }
}

/// Places in [`LINE`].
const AMOUNT: usize = 2;
const MARK: usize = 4;

/// Appends the line that these values, in the order of [`LINE`], make.
///
/// # Errors
/// Fails if amount or direction is missing, or one of them or a day is not of its form.
pub(super) fn append_line(
    values: &[Option<IsoFieldValue>],
    buf: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), LineFault> {
    debug_assert_eq!(values.len(), LINE.len());
    let mut texts: Vec<Option<Vec<u8>>> =
        values.iter().map(|value| value.as_ref().map(|value| value.text(buf))).collect();
    let mut take_text = |n: usize| texts[n].take();
    out.extend_from_slice(b"[{");
    let mut write_pair = |name: &str, value: &[u8]| {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        out.extend_from_slice(format!("\"{name}\":{}", json_string(value)).as_bytes());
    };
    for (name, n) in [("date", 0), ("entry_date", 1)] {
        if let Some(text) = take_text(n) {
            value::time(&text).ok_or(LineFault::new(n, Refusal::BadTime))?;
            write_pair(name, &text[..10]);
        }
    }
    let debit = match take_text(MARK).as_deref() {
        Some(b"DBIT") => true,
        Some(b"CRDT") => false,
        // A direction that nobody stated must not become a credit.
        None | Some(_) => return Err(LineFault::new(MARK, Refusal::BadValue)),
    };
    let of_amount = |fault: NumberFault| LineFault::new(AMOUNT, fault.into());
    let text = take_text(AMOUNT).ok_or(LineFault::new(AMOUNT, Refusal::BadValue))?;
    let amount = Amount::parse(value::decimal(&text)).map_err(of_amount)?;
    let mantissa = if debit { -amount.mantissa() } else { amount.mantissa() };
    write_pair("amt", Amount::new(mantissa, amount.exponent()).map_err(of_amount)?.to_string().as_bytes());
    if let Some(text) = take_text(3) {
        write_pair("ccy", &text);
    }
    write_pair("mark", if debit { b"D" } else { b"C" });
    if let Some(text) = take_text(5) {
        write_pair("reversal", &text);
    }
    if let Some(text) = take_text(6).or(take_text(7)) {
        write_pair("status", &text);
    }
    let domain: Vec<_> = [take_text(8), take_text(9), take_text(10)].into_iter().flatten().collect();
    if let Some(text) = if domain.is_empty() { take_text(11) } else { Some(domain.join(&b'/')) } {
        write_pair("type", &text);
    }
    for (name, n) in [("ref", 12), ("bank_ref", 13), ("entry_ref", 14)] {
        if let Some(text) = take_text(n) {
            write_pair(name, &text);
        }
    }
    let (debtor, creditor) =
        ((take_text(15).or(take_text(22)), take_text(17)), (take_text(16).or(take_text(23)), take_text(18)));
    let (name, account) = if debit { creditor } else { debtor };
    for (word, text) in [("cpty_name", name), ("cpty_acct", account)] {
        if let Some(text) = text {
            write_pair(word, &text);
        }
    }
    if let Some(text) = take_text(19).or(take_text(20)) {
        write_pair("info", &text);
    }
    if let Some(text) = take_text(21) {
        write_pair("transactions", &text);
    }
    out.extend_from_slice(b"}]");
    Ok(())
}
