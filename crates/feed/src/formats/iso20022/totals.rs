//! Sums and counts that a message states, compared with its transactions.
//!
//! | element | states | its transactions |
//! |---|---|---|
//! | `Ntry` | `Amt` | `NtryDtls/TxDtls` |
//! | `NtryDtls` | `Btch/TtlAmt`, `Btch/NbOfTxs` | `TxDtls` |
//! | `PmtInf` | `CtrlSum`, `NbOfTxs` | `CdtTrfTxInf`, `DrctDbtTxInf` |
//! | what `PmtInf` is in | `GrpHdr/CtrlSum`, `GrpHdr/NbOfTxs` | the same, of all `PmtInf` |
//!
//! The amount of a booking is in one currency, and so are the amounts that are compared with it: of each transaction the
//! first of `Amt`, `TxAmt`, `CntrValAmt`, `InstdAmt` in that currency. A transaction of the other direction
//! (`CdtDbtInd`) counts against it. A difference of exactly the charges that the booking, its transactions or both of them
//! state (`Chrgs`) is explained by them. `CtrlSum` adds amounts of all currencies, as the standard says.
//!
//! One `TxDtls` in a batch of several sums all of them up: they are not listed here, which is said.
//!
//! Numbers are exact. A transaction whose amount cannot be compared makes the sum unknown, which is said, too.

use super::IsoFieldValue;
use super::tree::RegisterIndex;
use crate::block::{RunningTotal, negated};
use std::ops::Range;
use unitape_codec::iso20022::value;
use unitape_model::Amount;

/// The element that states a sum or a count, and where it does.
#[derive(Debug, Default)]
pub(super) struct TotalPlan {
    /// The stated amount, its currency and its direction; register 0 if not stated.
    pub(super) amount: RegisterIndex,
    pub(super) currency: RegisterIndex,
    pub(super) mark_register: RegisterIndex,
    /// The stated count.
    pub(super) count: RegisterIndex,
    /// What the element is called in words: `Ntry/Amt`, `PmtInf/CtrlSum`.
    pub(super) amount_label: &'static str,
    pub(super) count_label: &'static str,
    /// The register that identifies the element.
    pub(super) id: RegisterIndex,
    /// Amounts of a transaction with their currencies, the preferred one first.
    pub(super) amounts: Vec<(RegisterIndex, RegisterIndex)>,
    /// The direction of a transaction.
    pub(super) transaction_mark: RegisterIndex,
    /// The booking that the element is a part of.
    pub(super) booking: Option<usize>,
    /// It is a booking; `number_register` is the register of its number in the statement.
    pub(super) is_booking: bool,
    pub(super) number_register: RegisterIndex,
    /// Set if the transactions are bookings, which are only counted: the register for the current booking's number.
    pub(super) numbers: RegisterIndex,
    /// The registers of amount and currency of a transaction, where they are asked for.
    pub(super) own_amount: Option<(RegisterIndex, RegisterIndex)>,
    /// Amounts are added up, because the mapping asks for differences.
    pub(super) adds: bool,
}

/// What the end of an element adds to a total.
#[derive(Debug)]
pub(super) struct ChargePlan {
    pub(super) total_index: usize,
    pub(super) is_own: bool,
    pub(super) amount: RegisterIndex,
    pub(super) currency: RegisterIndex,
    /// Not where this has a value.
    pub(super) unless: RegisterIndex,
}

/// What a node means for totals.
#[derive(Debug, Default)]
pub(super) struct NodeTotals {
    /// The totals that it states.
    pub(super) states: Vec<usize>,
    /// The totals to which the transaction belongs.
    pub(super) transaction_of: Vec<usize>,
    pub(super) charges: Vec<ChargePlan>,
}

/// A statement about entries: that a sum differs, or that it was not compared.
#[derive(Clone, Debug)]
struct TotalNote {
    entries: Range<usize>,
    /// The booking whose entries it is about, which may not have ended.
    booking: Option<usize>,
    kind: NoteKind,
    note_text: String,
}

/// The kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteKind {
    /// The message's statement differs from the sum or number of its transactions.
    Differs,
    /// It could not be compared.
    Unchecked,
}

/// The totals of the current message.
#[derive(Debug, Default)]
pub(super) struct MessageTotals {
    running_totals: Vec<RunningTotal>,
    /// Where the entries of each element begin.
    total_starts: Vec<usize>,
    /// An element that states totals has begun.
    has_begun: bool,
    /// The totals at the place where the message was parted last.
    totals_at_part: Vec<RunningTotal>,
    /// Those that the part before left. Empty: nothing is known of it.
    pub(super) carried_totals: Vec<RunningTotal>,
    notes: Vec<TotalNote>,
    /// Notes at that place.
    notes_parted: usize,
}

/// The values of the current message.
pub(super) struct TotalInput<'r> {
    pub(super) registers: &'r [Option<IsoFieldValue>],
    pub(super) buf: &'r [u8],
}

impl TotalInput<'_> {
    fn register_text(&self, register: RegisterIndex) -> Option<Vec<u8>> {
        let mut scratch = Vec::new();
        Some(self.registers[usize::from(register)]?.value.text(self.buf, &mut scratch).to_vec())
    }

    fn register_amount(&self, register: RegisterIndex) -> Option<Amount> {
        Amount::parse(value::decimal(&self.register_text(register)?)).ok()
    }

    fn has_value(&self, register: RegisterIndex) -> bool {
        self.registers[usize::from(register)].is_some()
    }

    fn display_text(&self, register: RegisterIndex) -> String {
        self.register_text(register).map_or(String::new(), |text| String::from_utf8_lossy(&text).into_owned())
    }
}

impl MessageTotals {
    pub(super) fn new(plans: usize) -> Self {
        Self {
            running_totals: vec![RunningTotal::default(); plans],
            total_starts: vec![0; plans],
            ..Self::default()
        }
    }

    /// Begins a message, or reads it again.
    pub(super) fn begin(&mut self) {
        self.has_begun = false;
        self.notes.clear();
    }

    /// Returns whether an element that states totals has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Begins an element that states totals; `is_new` must be true if its beginning is not in an earlier part.
    pub(super) fn open(&mut self, plan: usize, entries: usize, is_new: bool) {
        self.has_begun = true;
        self.total_starts[plan] = entries;
        self.running_totals[plan] = match self.carried_totals.get(plan) {
            _ if is_new => RunningTotal { is_known: true, ..RunningTotal::default() },
            Some(carried) => *carried,
            None => RunningTotal::default(),
        };
    }

    /// Counts a transaction that needs no more than counting. Returns its number if all earlier transactions are
    /// known.
    pub(super) fn count(&mut self, plan: usize, is_new: bool) -> Option<u32> {
        let total = &mut self.running_totals[plan];
        total.count += u64::from(is_new);
        total.is_known.then_some(u32::try_from(total.count).ok()).flatten()
    }

    /// Ends a transaction: adds its amount with a sign relative to the direction of the element that states the
    /// total.
    pub(super) fn add_transaction(&mut self, plan: usize, plans: &[TotalPlan], input: &TotalInput<'_>) {
        let (total, total_plan) = (&mut self.running_totals[plan], &plans[plan]);
        if !total_plan.adds {
            return;
        }
        let currency = stated_currency(plan, plans, input);
        let has_currency = |(_, ccy): &&(RegisterIndex, RegisterIndex)| match &currency {
            Some(currency) => input.register_text(*ccy).as_ref() == Some(currency),
            None => true,
        };
        let amount_registers =
            total_plan.amounts.iter().filter(|(amount, _)| input.has_value(*amount)).find(has_currency);
        let Some((amount, _)) = amount_registers else {
            total.missing_amount_count += 1;
            return;
        };
        let mark = input.register_text(total_plan.transaction_mark);
        let direction = entry_direction(plan, plans, input);
        let is_against = mark.is_some() && direction.is_some() && mark != direction;
        let amount = input.register_amount(*amount);
        total.sum.add_amount(if is_against { amount.and_then(negated) } else { amount });
    }

    /// Charges of a booking or of a transaction of it, in the currency of the booking.
    pub(super) fn add_charge(&mut self, plan: &ChargePlan, plans: &[TotalPlan], input: &TotalInput<'_>) {
        let is_same = input.register_text(plan.currency) == stated_currency(plan.total_index, plans, input);
        if !plans[plan.total_index].adds
            || !is_same
            || !input.has_value(plan.amount)
            || input.has_value(plan.unless)
        {
            return;
        }
        let total = &mut self.running_totals[plan.total_index];
        let charges = if plan.is_own { &mut total.own_charges } else { &mut total.charges };
        charges.add_amount(input.register_amount(plan.amount));
    }

    /// Ends an element that states totals: compares them and notes differences for its entries.
    pub(super) fn close(&mut self, plan: usize, plans: &[TotalPlan], input: &TotalInput<'_>, entries: usize) {
        let (total, total_plan, from) = (self.running_totals[plan], &plans[plan], self.total_starts[plan]);
        for note in self.notes.iter_mut().filter(|n| n.booking == Some(plan) && n.entries.start == from) {
            note.entries.end = entries;
        }
        let stated = input
            .register_text(total_plan.count)
            .map(|text| std::str::from_utf8(&text).ok()?.parse::<u64>().ok());
        if let Some(booking) = total_plan.booking {
            let booking = &mut self.running_totals[booking];
            booking.details += 1;
            booking.transactions += stated.flatten().unwrap_or(0).max(total.count);
        }
        if !total.is_known || total.count == 0 || !total_plan.adds {
            return;
        }
        let name = |name: &str| match input.has_value(total_plan.id) {
            true => format!("{name} of {}", input.display_text(total_plan.id)),
            false => name.to_owned(),
        };
        // Of an element without entries in this part the next entry says it.
        let from = total_plan.booking.map_or(from, |booking| self.total_starts[booking]);
        let mut note = |kind, text| {
            let entries = from..entries.max(from + 1);
            self.notes.push(TotalNote { entries, booking: total_plan.booking, kind, note_text: text });
        };
        if input.has_value(total_plan.count) && stated.flatten() != Some(total.count) {
            let (name, stated_text) = (name(total_plan.count_label), input.display_text(total_plan.count));
            // Banks that list the transactions of a batch elsewhere give one in place of all.
            let is_summary = total_plan.booking.is_some() && total.count == 1 && stated.flatten() > Some(1);
            match is_summary {
                true => {
                    let text =
                        format!("{name} is {stated_text}, its transactions are not listed, one sums them up");
                    note(NoteKind::Unchecked, text);
                }
                false => {
                    let text = format!("{name} is {stated_text}, it has {}", count_words(total.count));
                    note(NoteKind::Differs, text);
                }
            }
        }
        let Some(amount) = input.register_amount(total_plan.amount) else {
            if input.has_value(total_plan.amount) {
                let text = format!(
                    "{} is no amount: {}",
                    name(total_plan.amount_label),
                    input.display_text(total_plan.amount)
                );
                note(NoteKind::Differs, text);
            }
            return;
        };
        let currency = stated_currency(plan, plans, input)
            .map_or(String::new(), |currency| format!(" {}", String::from_utf8_lossy(&currency)));
        if total.missing_amount_count > 0 {
            let is_sole = total.count.max(total.transactions).max(stated.flatten().unwrap_or(1)) == 1;
            if !is_sole {
                let subject = match total.count {
                    1 => "the transaction has".to_owned(),
                    count => format!("{} of {count} transactions have", total.missing_amount_count),
                };
                let currency = if currency.is_empty() { String::new() } else { format!(" in{currency}") };
                let name = name(total_plan.amount_label);
                let text =
                    format!("{subject} no amount{currency}: the sum is not compared with {name}, {amount}");
                note(NoteKind::Unchecked, text);
            }
            return;
        }
        let difference = total.sum.minus(amount);
        let is_explained = difference.is_some_and(|difference| {
            let mut all_charges = total.own_charges;
            all_charges.add_amount(total.charges.0);
            difference == Amount::default()
                || [total.own_charges, total.charges, all_charges].iter().any(|charges| {
                    charges.0.is_some_and(|charges| {
                        charges.mantissa().unsigned_abs() == difference.mantissa().unsigned_abs()
                            && charges.exponent() == difference.exponent()
                    })
                })
        });
        if !is_explained {
            let sum =
                total.sum.0.map_or("no amount of 38 digits".to_owned(), |sum| format!("{sum}{currency}"));
            let (name, its) = (name(total_plan.amount_label), count_words(total.count));
            let verb = if total.count == 1 { "comes" } else { "come" };
            note(NoteKind::Differs, format!("{name} is {amount}{currency}, {its} in it {verb} to {sum}"));
        }
    }

    /// Returns the first entry of an element that states a total.
    pub(super) fn first_entry(&self, plan: usize) -> usize {
        self.total_starts[plan]
    }

    /// Notes that this entry has no amount.
    pub(super) fn note_missing_amount(&mut self, entry: usize) {
        let is_noted = |note: &TotalNote| note.booking.is_none() && note.entries == (entry..entry + 1);
        if self.notes.iter().any(|note| note.kind == NoteKind::Unchecked && is_noted(note)) {
            return;
        }
        let text = "amount not stated".to_owned();
        let entries = entry..entry + 1;
        self.notes.push(TotalNote { entries, booking: None, kind: NoteKind::Unchecked, note_text: text });
    }

    /// Returns the number of transactions of a booking. The flag states whether a message must give this number,
    /// because it covers several `NtryDtls`.
    pub(super) fn transactions(&self, booking: usize) -> (u64, bool) {
        let total = &self.running_totals[booking];
        (total.transactions.max(total.count), total.details > 1)
    }

    /// Returns the number of listed transactions, if all are known.
    pub(super) fn listed(&self, booking: usize) -> Option<u64> {
        let total = &self.running_totals[booking];
        total.is_known.then_some(total.count)
    }

    /// Marks a point at which the message may be split.
    #[inline]
    pub(super) fn mark_part(&mut self) {
        if self.has_begun {
            self.totals_at_part.clone_from(&self.running_totals);
            self.notes_parted = self.notes.len();
        }
    }

    /// Keeps the state for the next part, which begins where the message was split.
    pub(super) fn carry_over(&mut self, goes_on: bool) {
        self.carried_totals.clear();
        if goes_on && self.has_begun {
            self.carried_totals.clone_from(&self.totals_at_part);
            self.notes.truncate(self.notes_parted);
        }
    }

    /// Returns whether any total in the message differs.
    pub(super) fn differs(&self) -> bool {
        self.notes.iter().any(|note| note.kind == NoteKind::Differs)
    }

    /// Returns the notes of this kind about an entry; empty without notes.
    pub(super) fn text(&self, kind: NoteKind, entry: usize) -> String {
        let notes = self.notes.iter().filter(|note| note.kind == kind && note.entries.contains(&entry));
        notes.map(|note| note.note_text.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Returns whether an entry has a note of this kind.
    #[inline]
    pub(super) fn has(&self, kind: NoteKind, entry: usize) -> bool {
        !self.notes.is_empty()
            && self.notes.iter().any(|note| note.kind == kind && note.entries.contains(&entry))
    }

    /// Describes all differences of the message for people.
    pub(super) fn all_differences(&self) -> String {
        let notes = self.notes.iter().filter(|note| note.kind == NoteKind::Differs);
        notes.map(|note| note.note_text.as_str()).collect::<Vec<_>>().join("; ")
    }
}

fn count_words(count: u64) -> String {
    if count == 1 { "1 transaction".to_owned() } else { format!("{count} transactions") }
}

/// Returns the currency of the stated amount, or else of the booking around the element.
fn stated_currency(plan: usize, plans: &[TotalPlan], input: &TotalInput<'_>) -> Option<Vec<u8>> {
    let total_plan = &plans[plan];
    input
        .register_text(total_plan.currency)
        .or_else(|| input.register_text(plans[total_plan.booking?].currency))
}

/// Returns the direction of the stated amount, or else of the booking around the element.
fn entry_direction(plan: usize, plans: &[TotalPlan], input: &TotalInput<'_>) -> Option<Vec<u8>> {
    let total_plan = &plans[plan];
    input
        .register_text(total_plan.mark_register)
        .or_else(|| input.register_text(plans[total_plan.booking?].mark_register))
}
