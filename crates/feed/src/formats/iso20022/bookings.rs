//! Where messages state sums of transactions: the plans of [`super::totals`], made for the groups that ask for them.

use super::path::{IsoElementSelector, IsoPathStep};
use super::totals::{ChargePlan, TotalPlan};
use super::tree::{DOCUMENT, ElementTree, RegisterCopyRule, RegisterIndex};

/// From a booking to its transactions.
const DETAILS: &str = "NtryDtls";
const TRANSACTION: &str = "TxDtls";

/// Amounts of a transaction, the one that is its own first.
const OWN_AMOUNTS: [&str; 3] = ["Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt"];
/// Amounts of a transaction that are compared with its booking.
const COMPARED_AMOUNTS: [&str; 4] =
    ["Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/CntrValAmt/Amt", "AmtDtls/InstdAmt/Amt"];

impl ElementTree {
    /// The register of what is at the end of a way in the element at `steps`.
    fn inside_of(&mut self, steps: &[IsoPathStep], way: &str) -> Result<RegisterIndex, String> {
        let (way, what) = match way.split_once('@') {
            Some((way, name)) => (way, IsoElementSelector::Attribute(name.to_owned())),
            None => (way, IsoElementSelector::Text),
        };
        let way: Vec<_> = steps.iter().cloned().chain(way.split('/').map(plain)).collect();
        self.element(DOCUMENT, &way, &what, None)
    }

    fn amounts_of(
        &mut self,
        steps: &[IsoPathStep],
        ways: &[&str],
    ) -> Result<Vec<(RegisterIndex, RegisterIndex)>, String> {
        let mut amounts = Vec::new();
        for way in ways {
            amounts.push((self.inside_of(steps, way)?, self.inside_of(steps, &format!("{way}@Ccy"))?));
        }
        Ok(amounts)
    }

    fn node_of(&mut self, steps: &[IsoPathStep]) -> u32 {
        let node = steps.iter().fold(DOCUMENT, |node, step| self.add(node, &step.names[0]));
        self.nodes[node as usize].repeats = true;
        node
    }

    fn add_total(&mut self, plan: TotalPlan, states: u32, transaction: u32) -> usize {
        let number = self.totals.len();
        self.totals.push(plan);
        self.nodes[states as usize].totals.get_or_insert_default().states.push(number);
        self.nodes[transaction as usize].totals.get_or_insert_default().transaction_of.push(number);
        number
    }

    /// The booking at `steps`: what it states, and its number in the element around it.
    pub(super) fn booking(&mut self, steps: &[IsoPathStep]) -> Result<usize, String> {
        let node = self.node_of(steps);
        if let Some(booking) = self.bookings.get(&node) {
            return Ok(*booking);
        }
        let details = [steps, &[plain(DETAILS)]].concat();
        let transaction = [&details[..], &[plain(TRANSACTION)]].concat();
        let (around, details_node) = (self.node_of(&steps[..steps.len() - 1]), self.node_of(&details));
        let transaction_node = self.node_of(&transaction);
        let booking = TotalPlan {
            amount: self.inside_of(steps, "Amt")?,
            currency: self.inside_of(steps, "Amt@Ccy")?,
            mark: self.inside_of(steps, "CdtDbtInd")?,
            amount_name: "Ntry/Amt",
            amounts: self.amounts_of(&transaction, &COMPARED_AMOUNTS)?,
            transaction_mark: self.inside_of(&transaction, "CdtDbtInd")?,
            number: self.register()?,
            is_booking: true,
            ..TotalPlan::default()
        };
        let batch = TotalPlan {
            amount: self.inside_of(&details, "Btch/TtlAmt")?,
            currency: self.inside_of(&details, "Btch/TtlAmt@Ccy")?,
            mark: self.inside_of(&details, "Btch/CdtDbtInd")?,
            count: self.inside_of(&details, "Btch/NbOfTxs")?,
            amount_name: "Btch/TtlAmt",
            count_name: "Btch/NbOfTxs",
            amounts: booking.amounts.clone(),
            transaction_mark: booking.transaction_mark,
            ..TotalPlan::default()
        };
        let number = TotalPlan { numbers: booking.number, ..TotalPlan::default() };
        let booking = self.add_total(booking, node, transaction_node);
        self.add_total(TotalPlan { booking: Some(booking), ..batch }, details_node, transaction_node);
        self.add_total(number, around, node);
        self.bookings.insert(node, booking);
        Ok(booking)
    }

    /// The booking that a group's entries are, or are transactions of.
    pub(super) fn booking_around(&mut self, steps: &[IsoPathStep]) -> Result<usize, String> {
        let names: Vec<&str> = steps.iter().map(|step| step.names[0].as_str()).collect();
        match names[..] {
            [.., _, "Ntry"] => self.booking(steps),
            [.., _, "Ntry", DETAILS, TRANSACTION] => self.booking(&steps[..steps.len() - 2]),
            _ => Err("@booking: only of Ntry and of Ntry/NtryDtls/TxDtls".to_owned()),
        }
    }

    /// The registers of amount and currency of a transaction of a booking.
    pub(super) fn own_amount(
        &mut self,
        steps: &[IsoPathStep],
    ) -> Result<(RegisterIndex, RegisterIndex), String> {
        if steps.last().is_none_or(|step| step.names[0] != TRANSACTION) {
            return Err("@amount and @currency: only of Ntry/NtryDtls/TxDtls".to_owned());
        }
        let booking = self.booking_around(steps)?;
        if let Some(known) = self.totals[booking].own_amount {
            return Ok(known);
        }
        let node = self.node_of(steps) as usize;
        let own = (self.register()?, self.register()?);
        for (amount, currency) in self.amounts_of(steps, &OWN_AMOUNTS)? {
            for (from, to) in [(amount, own.0), (currency, own.1)] {
                self.nodes[node].actions.push(RegisterCopyRule { only: None, from, sign: None, to });
            }
        }
        self.nodes[node].owns.extend([own.0, own.1]);
        self.totals[booking].own_amount = Some(own);
        Ok(own)
    }

    /// Has the sums around a group's entries compared with what the message states.
    pub(super) fn compare_sums(&mut self, steps: &[IsoPathStep]) -> Result<(), String> {
        let last = steps.last().map_or("", |step| step.names[0].as_str());
        if matches!(last, "CdtTrfTxInf" | "DrctDbtTxInf") {
            return self.instruction(steps);
        }
        let booking = self.booking_around(steps).map_err(|_| {
            "@sum_differs and @sum_unchecked: only of Ntry, of Ntry/NtryDtls/TxDtls and of transactions of a PmtInf"
                .to_owned()
        })?;
        if self.totals[booking].adds {
            return Ok(());
        }
        let is_part = |n: usize, total: &TotalPlan| n == booking || total.booking == Some(booking);
        self.totals.iter_mut().enumerate().filter(|(n, t)| is_part(*n, t)).for_each(|(_, t)| t.adds = true);
        let above = if last == TRANSACTION { 2 } else { 0 };
        let steps = &steps[..steps.len() - above];
        let transaction = [steps, &[plain(DETAILS), plain(TRANSACTION)]].concat();
        for (steps, is_own) in [(steps, true), (&transaction, false)] {
            self.charges(steps, booking, is_own)?;
        }
        Ok(())
    }

    /// Adds up charges: `Chrgs/Amt` up to version 03, then each `Chrgs/Rcrd/Amt`, or else the total that is stated.
    fn charges(&mut self, steps: &[IsoPathStep], total: usize, is_own: bool) -> Result<(), String> {
        let all = [steps, &[plain("Chrgs")]].concat();
        let record = [&all[..], &[plain("Rcrd")]].concat();
        let (node, record_node) = (self.node_of(&all), self.node_of(&record));
        let of_record = self.amounts_of(&record, &["Amt"])?[0];
        let of_all = self.amounts_of(&all, &["Amt", "TtlChrgsAndTaxAmt"])?;
        for ((amount, currency), at, unless) in
            [(of_record, record_node, 0), (of_all[0], node, 0), (of_all[1], node, of_record.0)]
        {
            let plan = ChargePlan { total, is_own, amount, currency, unless };
            self.nodes[at as usize].totals.get_or_insert_default().charges.push(plan);
        }
        Ok(())
    }

    /// What a customer asks for: each `PmtInf` and the message state how many transactions they have and their sum.
    fn instruction(&mut self, steps: &[IsoPathStep]) -> Result<(), String> {
        let transaction = self.node_of(steps);
        if self.bookings.contains_key(&transaction) {
            return Ok(());
        }
        let [.., info] = &steps[..steps.len() - 1] else { return Err("@sum_differs: no PmtInf".to_owned()) };
        if info.names[0] != "PmtInf" || steps.len() < 3 {
            return Err("@sum_differs: only of transactions of a PmtInf".to_owned());
        }
        let amounts = self.amounts_of(steps, &["Amt/InstdAmt", "Amt/EqvtAmt/Amt", "InstdAmt"])?;
        let around = &steps[..steps.len() - 1];
        let of_info = TotalPlan {
            amount: self.inside_of(around, "CtrlSum")?,
            count: self.inside_of(around, "NbOfTxs")?,
            id: self.inside_of(around, "PmtInfId")?,
            amount_name: "PmtInf/CtrlSum",
            count_name: "PmtInf/NbOfTxs",
            amounts,
            adds: true,
            ..TotalPlan::default()
        };
        let whole = &around[..around.len() - 1];
        let of_message = TotalPlan {
            amount: self.inside_of(whole, "GrpHdr/CtrlSum")?,
            count: self.inside_of(whole, "GrpHdr/NbOfTxs")?,
            amount_name: "GrpHdr/CtrlSum",
            count_name: "GrpHdr/NbOfTxs",
            amounts: of_info.amounts.clone(),
            adds: true,
            ..TotalPlan::default()
        };
        let (info, message) = (self.node_of(around), self.node_of(whole));
        let number = self.add_total(of_info, info, transaction);
        self.add_total(of_message, message, transaction);
        self.bookings.insert(transaction, number);
        Ok(())
    }
}

fn plain(name: &str) -> IsoPathStep {
    IsoPathStep { names: vec![name.to_owned()], only: None }
}
