//! Exact sums of amounts, and the running totals of a message that continues in the next block.

use unitape_model::Amount;

/// The transactions of an element so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunningTotal {
    /// All of them are known. Of an element that began before the current bytes they may not be.
    pub is_known: bool,
    /// The number of transactions.
    pub count: u64,
    /// The sum of their amounts.
    pub sum: ExactSum,
    /// Transactions without an amount in the currency that is compared.
    pub missing_amount_count: u64,
    /// Charges that the element itself states, and charges that its transactions state.
    pub own_charges: ExactSum,
    #[allow(missing_docs)] // documented above
    pub charges: ExactSum,
    /// Of a booking: its transactions as far as they are listed or counted, and its `NtryDtls`.
    pub transactions: u64,
    #[allow(missing_docs)] // documented above
    pub details: u64,
}

/// A sum of amounts; `None` if it has more digits than an amount may have, or if an amount was no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactSum(pub Option<Amount>);

impl Default for ExactSum {
    fn default() -> Self {
        Self(Some(Amount::default()))
    }
}

impl ExactSum {
    /// Adds an amount; `None` makes the sum unknown.
    pub fn add_amount(&mut self, more: Option<Amount>) {
        self.0 = self.0.zip(more).and_then(|(sum, more)| {
            let exponent = sum.exponent().min(more.exponent());
            let scaled = |amount: Amount| {
                let shift = u32::from(amount.exponent().abs_diff(exponent));
                amount.mantissa().checked_mul(10i128.checked_pow(shift)?)
            };
            // Zero has exponent 0 and needs no scale.
            let scaled = |amount: Amount| if amount.mantissa() == 0 { Some(0) } else { scaled(amount) };
            Amount::new(scaled(sum)?.checked_add(scaled(more)?)?, exponent).ok()
        });
    }

    /// Returns the sum without this amount.
    pub fn minus(mut self, less: Amount) -> Option<Amount> {
        self.add_amount(negated(less));
        self.0
    }
}

/// Returns the amount with the other sign.
pub fn negated(amount: Amount) -> Option<Amount> {
    Amount::new(amount.mantissa().checked_neg()?, amount.exponent()).ok()
}
