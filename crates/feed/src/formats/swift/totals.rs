//! The sum that a message with several transactions states, compared with them.
//!
//! | type | states | is the sum of |
//! |---|---|---|
//! | 102 | `19` in C, or else the amount settled, `32A` | `32B` of each transaction, in B |
//! | 104, 107 | `19` in C, or else the amount settled, `32B` in C | the same |
//! | 201, 203, 204 | `19` in A | the same |
//!
//! The network checks `19` (error C01). What is settled without a `19` may also have the charges of the receiver, the `71G` of C. Amounts
//! in another currency than that of `32B` are not compared with it. An MT 101 states no sum.

use super::sequences::SwiftSequenceTracker;
use crate::block::ExactSum;
use unitape_codec::swift_mt::{SwiftField, value};
use unitape_model::Amount;

/// The notes about the sum of a message's transactions; empty without notes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SwiftSumNotes {
    pub(super) differs: String,
    pub(super) unchecked_sums: String,
}

/// An amount with its currency: `EUR1234,5`.
#[derive(Clone, Copy, Debug)]
struct Money<'t> {
    currency: &'t [u8],
    amount: Option<Amount>,
}

impl<'t> Money<'t> {
    fn new(text: &'t [u8]) -> Self {
        let (currency, amount) = text.split_at_checked(3).unwrap_or((b"", text));
        Self { currency, amount: amount_of(amount) }
    }
}

fn amount_of(text: &[u8]) -> Option<Amount> {
    let mut decimal_text = Vec::new();
    value::write_amount(text.trim_ascii_end(), &mut decimal_text);
    Amount::parse(&decimal_text).ok()
}

/// Compares the sums of a message whose sequences `letters` follows.
pub(super) fn compare_sums(
    mut letters: SwiftSequenceTracker,
    text: &[u8],
    tokens: &[SwiftField],
) -> SwiftSumNotes {
    let (mut sum, mut charges) = (ExactSum::default(), ExactSum::default());
    let (mut transactions, mut currency, mut is_mixed) = (0u64, None, false);
    let (mut stated, mut settled) = (None, None);
    for token in tokens {
        let Some((number, letter)) = token.tag.split() else { continue };
        let value = token.slice(text);
        match (letters.next_sequence(number, letter), number, letter) {
            (b'B', 32, b'B') => {
                let money = Money::new(value);
                transactions += 1;
                is_mixed |= *currency.get_or_insert(money.currency) != money.currency;
                sum.add_amount(money.amount);
            }
            (_, 19, 0) => stated = Some(amount_of(value)),
            // The day is before it.
            (b'C', 32, b'A') => settled = Some(("32A", Money::new(value.get(6..).unwrap_or_default()))),
            (b'C', 32, b'B') => settled = Some(("32B", Money::new(value))),
            (b'C', 71, b'G') => charges.add_amount(Money::new(value).amount),
            _ => {}
        }
    }
    let (field, is_of_charges, amount) = match (stated, settled) {
        (Some(stated), _) => ("19", false, stated),
        (None, Some((field, settled))) if currency == Some(settled.currency) => (field, true, settled.amount),
        (None, Some((field, settled))) => {
            let currency = String::from_utf8_lossy(settled.currency).into_owned();
            let unchecked =
                format!("the amounts are not in {currency}: their sum is not compared with {field}");
            return SwiftSumNotes { unchecked_sums: unchecked, ..SwiftSumNotes::default() };
        }
        (None, None) => return SwiftSumNotes::default(),
    };
    if transactions == 0 {
        return SwiftSumNotes::default();
    }
    if is_mixed {
        let unchecked =
            format!("the amounts are in several currencies: their sum is not compared with {field}");
        return SwiftSumNotes { unchecked_sums: unchecked, ..SwiftSumNotes::default() };
    }
    let mut with_charges = sum;
    with_charges.add_amount(charges.0);
    if amount.is_some() && (sum.0 == amount || is_of_charges && with_charges.0 == amount) {
        return SwiftSumNotes::default();
    }
    let amount_text =
        |amount: Option<Amount>| amount.map_or("no amount".to_owned(), |amount| amount.to_string());
    let its = if transactions == 1 { "1 transaction" } else { &format!("{transactions} transactions") };
    let difference_text = format!(
        "field {field} is {}, {its} in the message come to {}",
        amount_text(amount),
        amount_text(sum.0)
    );
    SwiftSumNotes { differs: difference_text, ..SwiftSumNotes::default() }
}
