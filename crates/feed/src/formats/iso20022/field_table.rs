//! The values noted while a message is read: registers, and the entries of groups.

use super::single_elements::ONCE;
use super::totals::{MessageTotals, TotalInput};
use super::tree::{
    DOCUMENT, ElementTree, HEADER, LINE_COUNT, LINE_OF_ONE, RegisterCopyRule, RegisterIndex, ValueRegisters,
};
use super::{IsoFieldKind, IsoFieldValue};
use unitape_codec::iso20022::{ElementValueSpan, ElementVisitor, MessageRoot, Span};

/// The registers of the current message, and its entries.
#[derive(Debug)]
pub(super) struct ElementRegisters {
    pub(super) element_tree: ElementTree,
    pub(super) registers: Vec<Option<IsoFieldValue>>,
    /// Entries of groups in the order in which they were known: group, and where in `values` theirs begin.
    pub(super) entries: Vec<(u16, u32)>,
    pub(super) register_values: Vec<Option<IsoFieldValue>>,
    /// Sums of transactions.
    pub(super) message_totals: MessageTotals,
    /// Entries at the place where the message was parted last.
    pub(super) entries_parted: usize,
    /// In which element each node was seen last.
    parent_serials: Vec<u32>,
    serial: u32,
    /// Entries that have begun and are not noted yet, outermost first.
    open_entries: Vec<u16>,
    live_registers: usize,
    scratch: Vec<u8>,
    /// Elements in the document.
    messages: u32,
    /// An element that occurs twice and may occur once.
    pub(super) repeated: Option<RepeatedElementFault>,
}

/// An element that occurs twice and may occur once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatedElementFault {
    pub(super) name: &'static str,
}

/// No message of ISO 20022 has an attribute of this name.
const PRESENT: &[u8] = b"present";

/// The element in `Document`, by any name.
pub(super) const MESSAGE: &str = "Document/*";

/// A node, and the element in the message that it is now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeOccurrence {
    node: u32,
    serial: u32,
}

impl ElementRegisters {
    pub(super) fn new(tree: ElementTree) -> Self {
        Self {
            registers: vec![None; tree.registers],
            parent_serials: vec![0; tree.nodes.len()],
            message_totals: MessageTotals::new(tree.total_plans.len()),
            element_tree: tree,
            entries: Vec::new(),
            register_values: Vec::new(),
            entries_parted: 0,
            serial: 0,
            open_entries: Vec::new(),
            live_registers: 0,
            scratch: Vec::new(),
            messages: 0,
            repeated: None,
        }
    }

    /// Notes that an element is present, if the mapping asks for it. The value is the element's name.
    fn note_presence(&mut self, node: u32, bytes: usize, offset: usize) {
        let attributes = &self.element_tree.nodes[node as usize].attributes;
        if let Some((_, to)) = attributes.iter().find(|(n, ..)| **n == *PRESENT) {
            let value = ElementValueSpan {
                start: offset as u32 + 1,
                end: (offset + 1 + bytes) as u32,
                ..ElementValueSpan::default()
            };
            Self::set_value(&mut self.registers, *to, value);
        }
    }

    #[cold]
    fn note_repetition(&mut self, name: &'static str, offset: usize) {
        if offset >= self.live_registers && (self.repeated.is_none() || name == MESSAGE) {
            self.repeated = Some(RepeatedElementFault { name });
        }
    }

    /// Notes the entries that have begun, from this one on, with what is known of them at `offset`. The line of a statement is
    /// noted where it ends, for the words about it come after its transactions.
    fn note_open(&mut self, from: usize, offset: usize, ends: bool) {
        let mut open_count = from;
        for n in from..self.open_entries.len() {
            let group = self.open_entries[n];
            if !ends && self.element_tree.group_plans[usize::from(group)].line.is_some() {
                self.open_entries[open_count] = group;
                open_count += 1;
            } else if offset >= self.live_registers {
                // Entries that an earlier part reported are not reported again.
                self.note_entries(group);
            }
        }
        self.open_entries.truncate(open_count);
    }

    /// Begins an element that may occur several times.
    #[inline(never)]
    fn begin_repeating(&mut self, node: u32, offset: usize) {
        let this = &self.element_tree.nodes[node as usize];
        if !this.group_indices.is_empty() {
            // Values that an entry holds before its first nested entry are all that is known of it there.
            if !self.open_entries.is_empty() {
                self.note_open(0, offset, false);
            }
            self.open_entries.extend_from_slice(&self.element_tree.nodes[node as usize].group_indices);
        }
        for register in &self.element_tree.nodes[node as usize].clears {
            self.registers[usize::from(*register)] = None;
        }
        if self.element_tree.nodes[node as usize].totals.is_some() {
            self.open_totals(node, offset);
        }
    }

    /// Ends an element that may occur several times. Returns whether the message may be split after it.
    #[inline(never)]
    fn end_repeating(&mut self, node: u32, buf: &[u8], span: Span) -> bool {
        let this = &self.element_tree.nodes[node as usize];
        let (parts, totals) = (this.may_part_after, this.totals.is_some());
        if totals {
            self.totals_end(node, buf, span.end > self.live_registers);
        }
        let this = &self.element_tree.nodes[node as usize];
        if !this.group_indices.is_empty() && !self.open_entries.is_empty() {
            // Those around it that have not ended come before its own.
            let outer_group = self.open_entries.iter().rposition(|group| !this.group_indices.contains(group));
            self.note_open(outer_group.map_or(0, |n| n + 1), span.end - 1, true);
        }
        if totals {
            self.totals_stated(node, buf);
        }
        if parts {
            self.entries_parted = self.entries.len();
            self.message_totals.mark_part();
        }
        parts
    }

    fn note_entries(&mut self, group: u16) {
        let plan = &self.element_tree.group_plans[usize::from(group)];
        self.entries.push((group, self.register_values.len() as u32));
        let registers = &self.registers;
        self.register_values.extend(plan.members.iter().map(|(_, r)| registers[usize::from(*r)]));
        if let Some((_, line)) = &plan.line {
            let values_start = self.register_values.len();
            self.register_values.extend(line.iter().map(|r| registers[usize::from(*r)]));
            let line = &mut self.register_values[values_start..];
            let (transactions, is_sum) = self.message_totals.transactions(plan.booking);
            if transactions > 1 {
                LINE_OF_ONE.iter().for_each(|n| line[*n] = None);
                if is_sum || line[LINE_COUNT].is_none() {
                    line[LINE_COUNT] = Some(IsoFieldValue::from_count(transactions));
                }
            }
        }
    }

    /// Elements that state sums, and their transactions, begin.
    #[inline(never)]
    fn open_totals(&mut self, node: u32, offset: usize) {
        let Some(of_node) = &self.element_tree.nodes[node as usize].totals else { return };
        let is_new = offset >= self.live_registers;
        for plan in &of_node.transaction_of {
            let total_numbers = self.element_tree.total_plans[*plan].numbers;
            if total_numbers != 0 {
                let number = self.message_totals.count(*plan, is_new);
                self.registers[usize::from(total_numbers)] =
                    number.map(|n| IsoFieldValue::from_count(n.into()));
            }
        }
        for plan in &of_node.states {
            self.message_totals.open(*plan, self.entries.len(), is_new);
        }
    }

    /// Ends an element that is a transaction, or charges.
    #[inline(never)]
    fn totals_end(&mut self, node: u32, buf: &[u8], is_new: bool) {
        let Some(of_node) = self.element_tree.nodes[node as usize].totals.as_deref().filter(|_| is_new)
        else {
            return;
        };
        let (plans, input) = (&self.element_tree.total_plans, TotalInput { registers: &self.registers, buf });
        for plan in of_node.transaction_of.iter().filter(|plan| plans[**plan].numbers == 0) {
            self.message_totals.count(*plan, true);
            self.message_totals.add_transaction(*plan, plans, &input);
        }
        of_node.charges.iter().for_each(|plan| self.message_totals.add_charge(plan, plans, &input));
    }

    /// Ends an element that states totals.
    #[inline(never)]
    fn totals_stated(&mut self, node: u32, buf: &[u8]) {
        let Self {
            element_tree: tree,
            message_totals: totals,
            registers,
            entries,
            register_values: values,
            ..
        } = self;
        let Some(of_node) = &tree.nodes[node as usize].totals else { return };
        for plan in of_node.states.iter().copied() {
            if tree.total_plans[plan].is_booking {
                let is_sole = totals.transactions(plan).0 == 1 && totals.listed(plan) == Some(1);
                resolve_amounts(tree, plan, is_sole, totals, registers, entries, values);
            }
            totals.close(plan, &tree.total_plans, &TotalInput { registers, buf }, entries.len());
        }
    }

    /// Resolves the open bookings of a message that continues in another part: they have several transactions.
    pub(super) fn settle_parted(&mut self) {
        let Self {
            element_tree: tree,
            message_totals: totals,
            registers,
            entries,
            register_values: values,
            ..
        } = self;
        for (plan, _) in tree.total_plans.iter().enumerate().filter(|(_, plan)| plan.own_amount.is_some()) {
            resolve_amounts(tree, plan, false, totals, registers, entries, values);
        }
    }

    /// Sets a value in the first free one of its two registers; ignores an empty value.
    #[inline(always)]
    fn set_value(registers: &mut [Option<IsoFieldValue>], to: ValueRegisters, value: ElementValueSpan) {
        if value.is_empty() {
            return;
        }
        let field_value = Some(IsoFieldValue { value, kind: IsoFieldKind::Text });
        if to.current != 0 {
            registers[usize::from(to.current)] = field_value;
        }
        if to.first != 0 && registers[usize::from(to.first)].is_none() {
            registers[usize::from(to.first)] = field_value;
        }
    }
}

/// Resolves the missing amounts of a booking's transactions. A sole transaction gets the booking's amount; one of
/// several has no amount.
fn resolve_amounts(
    tree: &ElementTree,
    plan: usize,
    is_sole: bool,
    totals: &mut MessageTotals,
    registers: &[Option<IsoFieldValue>],
    entries: &[(u16, u32)],
    values: &mut [Option<IsoFieldValue>],
) {
    let booking = &tree.total_plans[plan];
    let Some((amount, currency)) = booking.own_amount else { return };
    for (entry, (group, start)) in entries.iter().enumerate().skip(totals.first_entry(plan)) {
        let members = &tree.group_plans[usize::from(*group)].members;
        let value_index =
            |register| Some(*start as usize + members.iter().position(|(_, r)| *r == register)?);
        let Some(amount_index) = value_index(amount).filter(|to| values[*to].is_none()) else { continue };
        if !is_sole {
            totals.note_missing_amount(entry);
            continue;
        }
        values[amount_index] = registers[usize::from(booking.amount)];
        if let Some(currency_index) = value_index(currency) {
            values[currency_index] = registers[usize::from(booking.currency)];
        }
    }
}

/// Passes a value on.
fn copy_register(
    action: &RegisterCopyRule,
    registers: &mut [Option<IsoFieldValue>],
    buf: &[u8],
    scratch: &mut Vec<u8>,
) {
    let mut says = |register: RegisterIndex, expected: &[u8]| {
        registers[usize::from(register)]
            .is_some_and(|field_value| field_value.value.text(buf, scratch) == expected)
    };
    if action.only.as_ref().is_some_and(|(register, text)| !says(*register, text)) {
        return;
    }
    let sign = action.sign.map(|register| match (says(register, b"DBIT"), says(register, b"CRDT")) {
        (true, _) => IsoFieldKind::Signed(true),
        (_, true) => IsoFieldKind::Signed(false),
        _ => IsoFieldKind::WithoutSign,
    });
    if let Some(field_value) = registers[usize::from(action.from_register)]
        && registers[usize::from(action.to)].is_none()
    {
        let kind = sign.unwrap_or(field_value.kind);
        registers[usize::from(action.to)] = Some(IsoFieldValue { kind, ..field_value });
    }
}

impl ElementVisitor for ElementRegisters {
    type Mark = NodeOccurrence;

    fn begin(&mut self, live: usize) {
        self.registers[..self.element_tree.message_slot_count].fill(None);
        self.element_tree.clears.iter().for_each(|register| self.registers[usize::from(*register)] = None);
        self.entries.clear();
        self.register_values.clear();
        self.open_entries.clear();
        self.entries_parted = 0;
        self.live_registers = live;
        self.message_totals.begin();
        (self.messages, self.repeated) = (0, None);
        if self.serial > u32::MAX / 2 {
            self.serial = 0;
            self.parent_serials.fill(0);
        }
    }

    fn root(&mut self, root: MessageRoot) -> NodeOccurrence {
        self.serial += 1;
        NodeOccurrence {
            node: if root == MessageRoot::Header { HEADER } else { DOCUMENT },
            serial: self.serial,
        }
    }

    #[inline]
    fn open(&mut self, parent: NodeOccurrence, name: &[u8], offset: usize) -> NodeOccurrence {
        if parent.node == 0 {
            return NodeOccurrence::default();
        }
        if parent.node == DOCUMENT {
            self.messages += 1;
            if self.messages > 1 {
                self.note_repetition(MESSAGE, offset);
            }
        }
        let node = self.element_tree.find_child(parent.node, name);
        if node == 0 {
            return NodeOccurrence::default();
        }
        let this = &self.element_tree.nodes[node as usize];
        let parent_serial = &mut self.parent_serials[node as usize];
        if this.may_repeat {
            self.begin_repeating(node, offset);
        } else if *parent_serial == parent.serial {
            // A second one of what is there once as far as the mapping knows: its parts are not those of the first.
            if let Ok(n) = ONCE.binary_search_by(|once| once.as_bytes().cmp(name)) {
                self.note_repetition(ONCE[n], offset);
            }
            return NodeOccurrence::default();
        } else {
            *parent_serial = parent.serial;
        }
        self.serial = self.serial.wrapping_add(1);
        if !self.element_tree.nodes[node as usize].attributes.is_empty() {
            self.note_presence(node, name.len(), offset);
        }
        NodeOccurrence { node, serial: self.serial }
    }

    /// Ignores an element of another namespace, whatever its name.
    #[inline(never)]
    fn open_foreign(&mut self, _: NodeOccurrence, _: &[u8], _: usize) -> NodeOccurrence {
        NodeOccurrence::default()
    }

    #[inline]
    fn attribute(&mut self, mark: NodeOccurrence, name: &[u8], value: ElementValueSpan) {
        if mark.node == 0 {
            return;
        }
        let attributes = &self.element_tree.nodes[mark.node as usize].attributes;
        if let Some((_, to)) = attributes.iter().find(|(n, ..)| **n == *name) {
            Self::set_value(&mut self.registers, *to, value);
        }
    }

    #[inline]
    fn close(
        &mut self,
        buf: &[u8],
        mark: NodeOccurrence,
        text: Option<ElementValueSpan>,
        span: Span,
    ) -> bool {
        if mark.node == 0 {
            return false;
        }
        let node = &self.element_tree.nodes[mark.node as usize];
        if let Some(text) = text
            && node.text.first | node.text.current != 0
        {
            Self::set_value(&mut self.registers, node.text, text);
        }
        for action in &node.actions {
            copy_register(action, &mut self.registers, buf, &mut self.scratch);
        }
        node.may_repeat && self.end_repeating(mark.node, buf, span)
    }
}
