//! Where messages state sums of transactions: the plans of [`super::totals`], made for the groups that ask for them.

use super::path::{IsoElementSelector, IsoPathStep};
use super::totals::{ChargePlan, TotalPlan};
use super::tree::{DOCUMENT, ElementTree, RegisterCopyRule, RegisterIndex};

/// From a booking to its transactions.
const DETAILS: &str = "NtryDtls";
const TRANSACTION: &str = "TxDtls";

/// Amounts of a transaction; its own amount comes first.
const OWN_AMOUNTS: [&str; 3] = ["Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt"];
/// Amounts of a transaction that are compared with its booking.
const COMPARED_AMOUNTS: [&str; 4] =
    ["Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/CntrValAmt/Amt", "AmtDtls/InstdAmt/Amt"];

impl ElementTree {
    /// Returns the register of the value at the end of `path` in the element at `steps`.
    fn inside_of(&mut self, steps: &[IsoPathStep], path: &str) -> Result<RegisterIndex, String> {
        let (element_path, selector) = match path.split_once('@') {
            Some((path_part, name)) => (path_part, IsoElementSelector::Attribute(name.to_owned())),
            None => (path, IsoElementSelector::Text),
        };
        let full_path: Vec<_> =
            steps.iter().cloned().chain(element_path.split('/').map(plain_step)).collect();
        self.request_element(DOCUMENT, &full_path, &selector, None)
    }

    fn amounts_of(
        &mut self,
        steps: &[IsoPathStep],
        paths: &[&str],
    ) -> Result<Vec<(RegisterIndex, RegisterIndex)>, String> {
        let mut amounts = Vec::new();
        for path in paths {
            amounts.push((self.inside_of(steps, path)?, self.inside_of(steps, &format!("{path}@Ccy"))?));
        }
        Ok(amounts)
    }

    fn node_of(&mut self, steps: &[IsoPathStep]) -> u32 {
        let node = steps.iter().fold(DOCUMENT, |node, step| self.add_child(node, &step.names[0]));
        self.nodes[node as usize].may_repeat = true;
        node
    }

    fn add_total(&mut self, plan: TotalPlan, states: u32, transaction: u32) -> usize {
        let number = self.total_plans.len();
        self.total_plans.push(plan);
        self.nodes[states as usize].totals.get_or_insert_default().states.push(number);
        self.nodes[transaction as usize].totals.get_or_insert_default().transaction_of.push(number);
        number
    }

    /// Finds or adds the booking at `steps`, with its stated totals and its number in the element around it.
    pub(super) fn add_booking(&mut self, steps: &[IsoPathStep]) -> Result<usize, String> {
        let node = self.node_of(steps);
        if let Some(booking) = self.bookings.get(&node) {
            return Ok(*booking);
        }
        let details = [steps, &[plain_step(DETAILS)]].concat();
        let transaction = [&details[..], &[plain_step(TRANSACTION)]].concat();
        let (parent_node, details_node) = (self.node_of(&steps[..steps.len() - 1]), self.node_of(&details));
        let transaction_node = self.node_of(&transaction);
        let booking = TotalPlan {
            amount: self.inside_of(steps, "Amt")?,
            currency: self.inside_of(steps, "Amt@Ccy")?,
            mark_register: self.inside_of(steps, "CdtDbtInd")?,
            amount_label: "Ntry/Amt",
            amounts: self.amounts_of(&transaction, &COMPARED_AMOUNTS)?,
            transaction_mark: self.inside_of(&transaction, "CdtDbtInd")?,
            number_register: self.new_register()?,
            is_booking: true,
            ..TotalPlan::default()
        };
        let batch = TotalPlan {
            amount: self.inside_of(&details, "Btch/TtlAmt")?,
            currency: self.inside_of(&details, "Btch/TtlAmt@Ccy")?,
            mark_register: self.inside_of(&details, "Btch/CdtDbtInd")?,
            count: self.inside_of(&details, "Btch/NbOfTxs")?,
            amount_label: "Btch/TtlAmt",
            count_label: "Btch/NbOfTxs",
            amounts: booking.amounts.clone(),
            transaction_mark: booking.transaction_mark,
            ..TotalPlan::default()
        };
        let number = TotalPlan { numbers: booking.number_register, ..TotalPlan::default() };
        let booking = self.add_total(booking, node, transaction_node);
        self.add_total(TotalPlan { booking: Some(booking), ..batch }, details_node, transaction_node);
        self.add_total(number, parent_node, node);
        self.bookings.insert(node, booking);
        Ok(booking)
    }

    /// Returns the booking of a group's entries: they are bookings, or transactions of one.
    pub(super) fn booking_around(&mut self, steps: &[IsoPathStep]) -> Result<usize, String> {
        let element_names: Vec<&str> = steps.iter().map(|step| step.names[0].as_str()).collect();
        match element_names[..] {
            [.., _, "Ntry"] => self.add_booking(steps),
            [.., _, "Ntry", DETAILS, TRANSACTION] => self.add_booking(&steps[..steps.len() - 2]),
            _ => Err("@booking: only of Ntry and of Ntry/NtryDtls/TxDtls".to_owned()),
        }
    }

    /// Returns the registers of a booked transaction's amount and currency.
    pub(super) fn own_amount(
        &mut self,
        steps: &[IsoPathStep],
    ) -> Result<(RegisterIndex, RegisterIndex), String> {
        if steps.last().is_none_or(|step| step.names[0] != TRANSACTION) {
            return Err("@amount and @currency: only of Ntry/NtryDtls/TxDtls".to_owned());
        }
        let booking = self.booking_around(steps)?;
        if let Some(registers) = self.total_plans[booking].own_amount {
            return Ok(registers);
        }
        let node = self.node_of(steps) as usize;
        let own_registers = (self.new_register()?, self.new_register()?);
        for (amount, currency) in self.amounts_of(steps, &OWN_AMOUNTS)? {
            for (from, to) in [(amount, own_registers.0), (currency, own_registers.1)] {
                self.nodes[node].actions.push(RegisterCopyRule {
                    only: None,
                    from_register: from,
                    sign: None,
                    to,
                });
            }
        }
        self.nodes[node].action_registers.extend([own_registers.0, own_registers.1]);
        self.total_plans[booking].own_amount = Some(own_registers);
        Ok(own_registers)
    }

    /// Compares the sums around a group's entries with the sums that the message states.
    pub(super) fn compare_sums(&mut self, steps: &[IsoPathStep]) -> Result<(), String> {
        let element_name = steps.last().map_or("", |step| step.names[0].as_str());
        if matches!(element_name, "CdtTrfTxInf" | "DrctDbtTxInf") {
            return self.add_instruction(steps);
        }
        let booking = self.booking_around(steps).map_err(|_| {
            "@sum_differs and @sum_unchecked: only of Ntry, of Ntry/NtryDtls/TxDtls and of transactions of a PmtInf"
                .to_owned()
        })?;
        if self.total_plans[booking].adds {
            return Ok(());
        }
        let is_part = |n: usize, total: &TotalPlan| n == booking || total.booking == Some(booking);
        self.total_plans
            .iter_mut()
            .enumerate()
            .filter(|(n, t)| is_part(*n, t))
            .for_each(|(_, t)| t.adds = true);
        let levels_up = if element_name == TRANSACTION { 2 } else { 0 };
        let steps = &steps[..steps.len() - levels_up];
        let transaction = [steps, &[plain_step(DETAILS), plain_step(TRANSACTION)]].concat();
        for (steps, is_own) in [(steps, true), (&transaction, false)] {
            self.add_charges(steps, booking, is_own)?;
        }
        Ok(())
    }

    /// Adds up charges: `Chrgs/Amt` up to version 03, then each `Chrgs/Rcrd/Amt`, or else the total that is stated.
    fn add_charges(&mut self, steps: &[IsoPathStep], total: usize, is_own: bool) -> Result<(), String> {
        let charge_steps = [steps, &[plain_step("Chrgs")]].concat();
        let record = [&charge_steps[..], &[plain_step("Rcrd")]].concat();
        let (node, record_node) = (self.node_of(&charge_steps), self.node_of(&record));
        let of_record = self.amounts_of(&record, &["Amt"])?[0];
        let of_all = self.amounts_of(&charge_steps, &["Amt", "TtlChrgsAndTaxAmt"])?;
        for ((amount, currency), charge_node, unless) in
            [(of_record, record_node, 0), (of_all[0], node, 0), (of_all[1], node, of_record.0)]
        {
            let plan = ChargePlan { total_index: total, is_own, amount, currency, unless };
            self.nodes[charge_node as usize].totals.get_or_insert_default().charges.push(plan);
        }
        Ok(())
    }

    /// Adds the totals of a customer's instruction: each `PmtInf` and the message state the number of their
    /// transactions and their sum.
    fn add_instruction(&mut self, steps: &[IsoPathStep]) -> Result<(), String> {
        let transaction = self.node_of(steps);
        if self.bookings.contains_key(&transaction) {
            return Ok(());
        }
        let [.., info] = &steps[..steps.len() - 1] else { return Err("@sum_differs: no PmtInf".to_owned()) };
        if info.names[0] != "PmtInf" || steps.len() < 3 {
            return Err("@sum_differs: only of transactions of a PmtInf".to_owned());
        }
        let amounts = self.amounts_of(steps, &["Amt/InstdAmt", "Amt/EqvtAmt/Amt", "InstdAmt"])?;
        let info_steps = &steps[..steps.len() - 1];
        let of_info = TotalPlan {
            amount: self.inside_of(info_steps, "CtrlSum")?,
            count: self.inside_of(info_steps, "NbOfTxs")?,
            id: self.inside_of(info_steps, "PmtInfId")?,
            amount_label: "PmtInf/CtrlSum",
            count_label: "PmtInf/NbOfTxs",
            amounts,
            adds: true,
            ..TotalPlan::default()
        };
        let message_steps = &info_steps[..info_steps.len() - 1];
        let of_message = TotalPlan {
            amount: self.inside_of(message_steps, "GrpHdr/CtrlSum")?,
            count: self.inside_of(message_steps, "GrpHdr/NbOfTxs")?,
            amount_label: "GrpHdr/CtrlSum",
            count_label: "GrpHdr/NbOfTxs",
            amounts: of_info.amounts.clone(),
            adds: true,
            ..TotalPlan::default()
        };
        let (info, message) = (self.node_of(info_steps), self.node_of(message_steps));
        let number = self.add_total(of_info, info, transaction);
        self.add_total(of_message, message, transaction);
        self.bookings.insert(transaction, number);
        Ok(())
    }
}

fn plain_step(name: &str) -> IsoPathStep {
    IsoPathStep { names: vec![name.to_owned()], only: None }
}
