//! All that a mapping asks for, as a tree of elements: what is not in it is passed over.
//!
//! ```text
//!  FIToFICstmrCdtTrf ─┬─ GrpHdr ─── CreDtTm ▸ register 3 (of the message: the first one stays)
//!                     └─ CdtTrfTxInf (an entry: its registers are emptied where it begins, copied where it ends)
//!                            ├─ PmtId ── EndToEndId ▸ register 17
//!                            └─ IntrBkSttlmAmt ▸ register 18, @Ccy ▸ register 19
//! ```

use super::path::{IsoElementPath, IsoElementSelector, IsoPath, IsoPathRoot, IsoPathStep};
use super::totals::{NodeTotals, TotalPlan};
use crate::mapping::PathSlots;
use std::collections::{BTreeMap, BTreeSet};

/// Index of a register; 0 means no register.
pub(super) type RegisterIndex = u16;

/// The two registers that a value may have; 0 for a missing register.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueRegisters {
    /// The first value of the message.
    pub(super) first: RegisterIndex,
    /// The one of the current entry.
    pub(super) current: RegisterIndex,
}

/// An element that is asked for, or in which something is.
#[derive(Debug, Default)]
pub(super) struct ElementNode {
    children: Vec<ElementChild>,
    /// The node for children without a node of their own.
    any_child: u32,
    /// The registers of the text.
    pub(super) text: ValueRegisters,
    /// Attributes and where they go.
    pub(super) attributes: Vec<(Box<[u8]>, ValueRegisters)>,
    /// Whether the element may occur several times, each time with its own values.
    pub(super) may_repeat: bool,
    /// Registers that are cleared where it begins.
    pub(super) clears: Vec<RegisterIndex>,
    /// Copies that are made where it ends.
    pub(super) actions: Vec<RegisterCopyRule>,
    /// Groups whose entries it is.
    pub(super) group_indices: Vec<u16>,
    /// A message that is too large may be parted after it.
    pub(super) may_part_after: bool,
    /// Its part in sums that the message states.
    pub(super) totals: Option<Box<NodeTotals>>,
    /// Registers of actions in it.
    pub(super) action_registers: Vec<RegisterIndex>,
}

#[derive(Debug)]
struct ElementChild {
    key: u64,
    name: Box<[u8]>,
    node: u32,
}

/// A value is passed on when an element ends.
#[derive(Debug)]
pub(super) struct RegisterCopyRule {
    /// Only where this register says this.
    pub(super) only: Option<(RegisterIndex, Box<[u8]>)>,
    pub(super) from_register: RegisterIndex,
    /// The register that holds its sign.
    pub(super) sign: Option<RegisterIndex>,
    pub(super) to: RegisterIndex,
}

/// A group.
#[derive(Debug, Default)]
pub(super) struct IsoGroupPlan {
    /// Slots of an entry and the registers they are filled from.
    pub(super) members: Vec<(u8, RegisterIndex)>,
    /// The slot of the statement line, and the registers it is made of.
    pub(super) line: Option<(u8, Vec<RegisterIndex>)>,
    /// The total that its line states.
    pub(super) booking: usize,
    /// Slots of the notes about sums; 0 if the mapping does not use them.
    pub(super) differs: u8,
    pub(super) unchecked: u8,
}

/// The tree and its registers.
#[derive(Debug, Default)]
pub(super) struct ElementTree {
    pub(super) nodes: Vec<ElementNode>,
    pub(super) registers: usize,
    /// The first of these, which are the slots of the message.
    pub(super) message_slot_count: usize,
    pub(super) group_plans: Vec<IsoGroupPlan>,
    /// Sums and counts that messages state.
    pub(super) total_plans: Vec<TotalPlan>,
    pub(super) bookings: BTreeMap<u32, usize>,
    /// Registers that are emptied where a message begins, besides its slots: no element of the message empties them.
    pub(super) clears: Vec<RegisterIndex>,
    /// Slots of values that are not elements.
    pub(super) message: u8,
    pub(super) kind: u8,
    pub(super) variant: u8,
    /// Paths that the mapping uses or lists, as unlisted fields report them.
    pub(super) listed_paths: BTreeSet<String>,
    keeps_current: BTreeMap<(u32, String), RegisterIndex>,
}

/// The roots: nodes 1 and 2; node 0 is nothing.
pub(super) const HEADER: u32 = 1;
pub(super) const DOCUMENT: u32 = 2;

/// Those of [`LINE`] that belong to a transaction. A line with several transactions lacks them, because each belongs
/// to one transaction only.
pub(super) const LINE_OF_ONE: [usize; 8] = [12, 15, 16, 17, 18, 19, 22, 23];

/// The one of [`LINE`] that says how many transactions there are.
pub(super) const LINE_COUNT: usize = 21;

/// The parts of an element that make the line of a statement, from `Ntry` on; see [`super::entry`].
pub(super) const LINE: [&str; 24] = [
    "ValDt/Dt|DtTm",
    "BookgDt/Dt|DtTm",
    "Amt",
    "Amt@Ccy",
    "CdtDbtInd",
    "RvslInd",
    "Sts",
    "Sts/Cd|Prtry",
    "BkTxCd/Domn/Cd",
    "BkTxCd/Domn/Fmly/Cd",
    "BkTxCd/Domn/Fmly/SubFmlyCd",
    "BkTxCd/Prtry/Cd",
    "NtryDtls/TxDtls/Refs/EndToEndId",
    "AcctSvcrRef",
    "NtryRef",
    "NtryDtls/TxDtls/RltdPties/Dbtr/Nm",
    "NtryDtls/TxDtls/RltdPties/Cdtr/Nm",
    "NtryDtls/TxDtls/RltdPties/DbtrAcct/Id/IBAN",
    "NtryDtls/TxDtls/RltdPties/CdtrAcct/Id/IBAN",
    "NtryDtls/TxDtls/RmtInf/Ustrd",
    "AddtlNtryInf",
    "NtryDtls/Btch/NbOfTxs",
    // From version 08 on a party is a choice.
    "NtryDtls/TxDtls/RltdPties/Dbtr/Pty/Nm",
    "NtryDtls/TxDtls/RltdPties/Cdtr/Pty/Nm",
];

impl ElementTree {
    /// Makes the tree of a compiled mapping whose messages have `slots` slots.
    ///
    /// # Errors
    /// Fails if a path is impossible; the text says why.
    pub(super) fn new(places: &PathSlots<IsoPath>, slots: usize) -> Result<Self, String> {
        let mut this = Self {
            nodes: (0..3).map(|_| ElementNode::default()).collect(),
            registers: slots,
            message_slot_count: slots,
            ..Self::default()
        };
        let mut wild = Vec::new();
        for (path, &slot) in &places.message {
            match path {
                IsoPath::Message => this.message = slot,
                IsoPath::Type => this.kind = slot,
                IsoPath::Variant => this.variant = slot,
                IsoPath::Element(e) if matches!(e.from, IsoPathRoot::Entry(_)) => {
                    return Err(format!("{}: outside a group's entries", display_path(e)));
                }
                IsoPath::Line | IsoPath::Entry if slot != 0 => {
                    return Err("@entry: outside a group's entries".to_owned());
                }
                IsoPath::Line | IsoPath::Entry => {}
                IsoPath::Booking
                | IsoPath::Amount
                | IsoPath::Currency
                | IsoPath::SumDiffers
                | IsoPath::SumUnchecked => {
                    return Err("@booking, @amount, @currency, @sum_differs and @sum_unchecked: outside a group's entries"
                        .to_owned());
                }
                IsoPath::Element(e) if e.steps.first().is_some_and(|s| s.names[0] == "*") => {
                    wild.push((e, slot))
                }
                IsoPath::Element(e) => this.of_message(e, e.steps.clone(), slot)?,
            }
        }
        for group in &places.groups {
            this.add_group(group.members.iter(), &group.delimiter)?;
        }
        // A path for all messages applies to each named message and to all others.
        let mut roots: Vec<String> =
            this.nodes[DOCUMENT as usize].children.iter().map(|c| name_text(&c.name)).collect();
        roots.push("*".to_owned());
        for (element, slot) in wild {
            for root in &roots {
                let mut steps = element.steps.clone();
                steps[0].names = vec![root.clone()];
                this.of_message(element, steps, slot)?;
            }
        }
        this.compute_clears();
        Ok(this)
    }

    /// Finds the element `name` in `node`; 0 if the mapping does not use it.
    #[inline]
    pub(super) fn find_child(&self, node: u32, name: &[u8]) -> u32 {
        let node = &self.nodes[node as usize];
        let key = name_key(name);
        for child in &node.children {
            if child.key == key && child.name.len() == name.len() && (name.len() <= 8 || *child.name == *name)
            {
                return child.node;
            }
        }
        node.any_child
    }

    fn of_message(
        &mut self,
        element: &IsoElementPath,
        steps: Vec<IsoPathStep>,
        slot: u8,
    ) -> Result<(), String> {
        let root = if element.from == IsoPathRoot::Header { HEADER } else { DOCUMENT };
        self.request_element(root, &steps, &element.selector, Some(u16::from(slot))).map(drop)
    }

    fn add_group<'p>(
        &mut self,
        members: impl Iterator<Item = (&'p IsoPath, &'p u8)>,
        delimiter: &IsoPath,
    ) -> Result<(), String> {
        let IsoPath::Element(IsoElementPath {
            from: IsoPathRoot::Document,
            steps,
            selector: IsoElementSelector::Text,
        }) = delimiter
        else {
            return Err("a group's delimiter is a path from the document on".to_owned());
        };
        if steps.iter().any(|s| s.only.is_some() || s.names.len() > 1 || s.names[0] == "*") {
            return Err("a group's delimiter is one plain path".to_owned());
        }
        let number = self.group_plans.len() as u16;
        let mut node = DOCUMENT;
        for step in steps {
            node = self.add_child(node, &step.names[0]);
            // The elements around an entry may repeat, too.
            self.nodes[node as usize].may_repeat = true;
        }
        self.nodes[node as usize].group_indices.push(number);
        let mut plan = IsoGroupPlan::default();
        for (path, &slot) in members {
            match path {
                IsoPath::Entry => {}
                path if path == delimiter => {}
                IsoPath::Line => {
                    let mut registers = Vec::new();
                    for part in LINE {
                        let (element_path, selector) = match part.split_once('@') {
                            Some((path_part, name)) => {
                                (path_part, IsoElementSelector::Attribute(name.to_owned()))
                            }
                            None => (part, IsoElementSelector::Text),
                        };
                        let inside = element_path.split('/').map(|s| IsoPathStep {
                            names: s.split('|').map(str::to_owned).collect(),
                            only: None,
                        });
                        let full_path: Vec<IsoPathStep> = steps.iter().cloned().chain(inside).collect();
                        registers.push(self.request_element(DOCUMENT, &full_path, &selector, None)?);
                    }
                    plan.line = Some((slot, registers));
                    plan.booking = self.add_booking(steps)?;
                }
                IsoPath::Booking => {
                    let booking = self.booking_around(steps)?;
                    plan.members.push((slot, self.total_plans[booking].number_register));
                }
                IsoPath::Amount | IsoPath::Currency => {
                    let (amount, currency) = self.own_amount(steps)?;
                    plan.members.push((slot, if *path == IsoPath::Amount { amount } else { currency }));
                }
                IsoPath::SumDiffers => {
                    plan.differs = slot;
                    self.compare_sums(steps)?;
                }
                IsoPath::SumUnchecked => {
                    plan.unchecked = slot;
                    self.compare_sums(steps)?;
                }
                IsoPath::Element(e) => {
                    let full_path: Vec<IsoPathStep> = match e.from {
                        IsoPathRoot::Entry(up) if up >= steps.len() => {
                            return Err(format!("{}: above the document", display_path(e)));
                        }
                        IsoPathRoot::Entry(up) => {
                            steps[..steps.len() - up].iter().chain(&e.steps).cloned().collect()
                        }
                        IsoPathRoot::Document => e.steps.clone(),
                        IsoPathRoot::Header => return Err("an entry is in the document".to_owned()),
                    };
                    plan.members.push((slot, self.request_element(DOCUMENT, &full_path, &e.selector, None)?));
                }
                IsoPath::Message | IsoPath::Type | IsoPath::Variant => {
                    return Err("@message, @type and @variant are the message's".to_owned());
                }
            }
        }
        self.group_plans.push(plan);
        Ok(())
    }

    /// Requests the value at the end of a path and returns its register. With `slot`, the value belongs to the
    /// message and the register is the slot; otherwise it belongs to the entry.
    pub(super) fn request_element(
        &mut self,
        root: u32,
        steps: &[IsoPathStep],
        selector: &IsoElementSelector,
        slot: Option<RegisterIndex>,
    ) -> Result<RegisterIndex, String> {
        let mut key = String::new();
        let condition = steps.iter().position(|s| s.only.is_some());
        for step in steps {
            key.push('/');
            key.push_str(&step.names.join("|"));
            if let Some((condition_path, value)) = &step.only {
                key.push_str(&format!("[{}={value}]", condition_path.join("/")));
            }
        }
        key.push_str(&match selector {
            IsoElementSelector::Text => String::new(),
            IsoElementSelector::Attribute(name) => format!("@{name}"),
            IsoElementSelector::Signed => "@signed".to_owned(),
        });
        let known_register = slot.is_none().then(|| self.keeps_current.get(&(root, key.clone()))).flatten();
        if let Some(&register) = known_register {
            return Ok(register);
        }
        let target_register = match slot {
            Some(slot) => slot,
            None => self.new_register()?,
        };
        for path_names in expand_paths(steps) {
            let mut listed = if root == HEADER { "AppHdr".to_owned() } else { "Document".to_owned() };
            path_names.iter().for_each(|name| listed.extend(["/", name]));
            if let IsoElementSelector::Attribute(name) = selector {
                listed.push_str(&format!("@{name}"));
            }
            self.listed_paths.insert(listed);
            if slot == Some(0) {
                continue;
            }
            match (selector, condition) {
                (IsoElementSelector::Text | IsoElementSelector::Attribute(_), None) => {
                    let node = path_names.iter().fold(root, |node, name| self.add_child(node, name));
                    self.set_register(node, selector, target_register, slot.is_some());
                }
                // It is passed on where the element ends that the condition, or the sign, is in.
                _ => {
                    let inside = match condition {
                        Some(n) => n + 1,
                        None => path_names.len() - 1,
                    };
                    let outer =
                        path_names[..inside - 1].iter().fold(root, |node, name| self.add_child(node, name));
                    let node = self.add_child(outer, &path_names[inside - 1]);
                    let plain_steps = |names: &[String]| -> Vec<IsoPathStep> {
                        names.iter().map(|n| IsoPathStep { names: vec![n.clone()], only: None }).collect()
                    };
                    let text = if *selector == IsoElementSelector::Signed {
                        &IsoElementSelector::Text
                    } else {
                        selector
                    };
                    let from = self.request_element(root, &plain_steps(&path_names), text, None)?;
                    let sign = match selector {
                        IsoElementSelector::Signed => {
                            let mut sibling_path = path_names.clone();
                            *sibling_path.last_mut().expect("one step at least") = "CdtDbtInd".to_owned();
                            Some(self.request_element(
                                root,
                                &plain_steps(&sibling_path),
                                &IsoElementSelector::Text,
                                None,
                            )?)
                        }
                        _ => None,
                    };
                    let only = match condition.and_then(|n| steps[n].only.as_ref()) {
                        Some((inside_way, value)) => {
                            let mut full = path_names[..inside].to_vec();
                            full.extend(inside_way.iter().cloned());
                            let register = self.request_element(
                                root,
                                &plain_steps(&full),
                                &IsoElementSelector::Text,
                                None,
                            )?;
                            Some((register, value.as_bytes().into()))
                        }
                        None => None,
                    };
                    let this = &mut self.nodes[node as usize];
                    this.may_repeat |= condition.is_some();
                    this.actions.push(RegisterCopyRule {
                        only,
                        from_register: from,
                        sign,
                        to: target_register,
                    });
                    if slot.is_none() {
                        self.nodes[outer as usize].action_registers.push(target_register);
                    }
                }
            }
        }
        if slot.is_none() {
            self.keeps_current.insert((root, key), target_register);
        }
        Ok(target_register)
    }

    fn set_register(
        &mut self,
        node: u32,
        selector: &IsoElementSelector,
        to: RegisterIndex,
        of_message: bool,
    ) {
        let node = &mut self.nodes[node as usize];
        let pair = match selector {
            IsoElementSelector::Attribute(name) => {
                let attribute_index = node.attributes.iter().position(|(n, ..)| **n == *name.as_bytes());
                let index = attribute_index.unwrap_or_else(|| {
                    node.attributes.push((name.as_bytes().into(), ValueRegisters::default()));
                    node.attributes.len() - 1
                });
                &mut node.attributes[index].1
            }
            _ => &mut node.text,
        };
        *(if of_message { &mut pair.first } else { &mut pair.current }) = to;
    }

    pub(super) fn new_register(&mut self) -> Result<RegisterIndex, String> {
        let register = self.registers;
        self.registers += 1;
        RegisterIndex::try_from(register).map_err(|_| "too many different paths".to_owned())
    }

    pub(super) fn add_child(&mut self, node: u32, name: &str) -> u32 {
        let new_node = self.nodes.len() as u32;
        let parent = &mut self.nodes[node as usize];
        if name == "*" {
            if parent.any_child != 0 {
                return parent.any_child;
            }
            parent.any_child = new_node;
        } else {
            if let Some(child) = parent.children.iter().find(|c| *c.name == *name.as_bytes()) {
                return child.node;
            }
            parent.children.push(ElementChild {
                key: name_key(name.as_bytes()),
                name: name.as_bytes().into(),
                node: new_node,
            });
        }
        self.nodes.push(ElementNode::default());
        new_node
    }

    /// Lets messages be parted after elements that nothing outside asks for: such that hold entries of groups that
    /// `may` be parted, and nothing of the message's own or of other groups' entries. `slots` is how many the message
    /// has.
    pub(super) fn part(&mut self, may: &[bool], slots: usize) {
        for n in 0..self.nodes.len() {
            if !self.nodes[n].may_repeat {
                continue;
            }
            let inner_nodes = self.descendants(n);
            let nodes = || inner_nodes.iter().map(|i| &self.nodes[*i]);
            let groups: BTreeSet<u16> = nodes().flat_map(|node| node.group_indices.iter().copied()).collect();
            let of_message = nodes().any(|node| {
                let to_message_slot = |action: &RegisterCopyRule| usize::from(action.to) < slots;
                node.text.first != 0
                    || node.attributes.iter().any(|(_, pair)| pair.first != 0)
                    || node.actions.iter().any(to_message_slot)
            });
            let registers = &self.nodes[n].clears;
            let of_others = self.group_plans.iter().enumerate().any(|(g, plan)| {
                // A line of which transactions went before has none of their values: they are several.
                let mut members = plan.members.iter().map(|(_, register)| register);
                !groups.contains(&(g as u16)) && members.any(|register| registers.contains(register))
            });
            let may_part = groups.iter().all(|g| may[usize::from(*g)]);
            self.nodes[n].may_part_after = may_part && !groups.is_empty() && !of_message && !of_others;
        }
    }

    /// Computes which values each repeating element clears, and which only the beginning of a message clears.
    fn compute_clears(&mut self) {
        for n in 0..self.nodes.len() {
            if self.nodes[n].may_repeat {
                let mut clears = Vec::new();
                for i in self.descendants(n) {
                    let node = &self.nodes[i];
                    clears.push(node.text.current);
                    clears.extend(node.attributes.iter().map(|(_, pair)| pair.current));
                    clears.extend(&node.action_registers);
                }
                clears.retain(|r| *r != 0);
                self.nodes[n].clears = clears;
            }
        }
        // What all entries of a message are in empties the registers of that message, and most others are of other messages.
        let mut emptied = BTreeSet::new();
        for child in &self.nodes[DOCUMENT as usize].children {
            let own_registers: BTreeSet<RegisterIndex> =
                self.nodes[child.node as usize].clears.iter().copied().collect();
            let inner_nodes = self.descendants(child.node as usize);
            let groups: BTreeSet<u16> =
                inner_nodes.iter().flat_map(|n| self.nodes[*n].group_indices.clone()).collect();
            let other_groups =
                self.group_plans.iter().enumerate().filter(|(n, _)| !groups.contains(&(*n as u16)));
            let of_others: BTreeSet<_> =
                other_groups.flat_map(|(_, plan)| plan.members.iter().map(|(_, r)| *r)).collect();
            emptied.extend(own_registers.difference(&of_others).copied());
        }
        let registers = self.message_slot_count as RegisterIndex..self.registers as RegisterIndex;
        self.clears = registers.filter(|register| !emptied.contains(register)).collect();
    }

    /// Returns an element and all elements inside it.
    fn descendants(&self, node: usize) -> Vec<usize> {
        let (mut node_indexes, mut position) = (vec![node], 0);
        while let Some(&n) = node_indexes.get(position) {
            let node = &self.nodes[n];
            node_indexes.extend(node.children.iter().map(|c| c.node as usize));
            node_indexes.extend((node.any_child != 0).then_some(node.any_child as usize));
            position += 1;
        }
        node_indexes
    }
}

/// Lists every path that the names of the steps allow.
fn expand_paths(steps: &[IsoPathStep]) -> Vec<Vec<String>> {
    let mut paths = vec![Vec::new()];
    for step in steps {
        paths = paths
            .iter()
            .flat_map(|prefix| {
                step.names.iter().map(move |name| {
                    let mut path = prefix.clone();
                    path.push(name.clone());
                    path
                })
            })
            .collect();
    }
    paths
}

/// Computes the number by which a name is found. Two names of equal length, up to eight bytes, never have the same
/// number.
#[inline(always)]
fn name_key(name: &[u8]) -> u64 {
    let len = name.len();
    let number = |start: usize, n: usize| {
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(&name[start..start + n]);
        u64::from_le_bytes(bytes)
    };
    match len {
        0 => 0,
        1..4 => {
            u64::from(name[0])
                | u64::from(name[len / 2]) << 8
                | u64::from(name[len - 1]) << 16
                | (len as u64) << 24
        }
        4..8 => number(0, 4) | number(len - 4, 4) << 32,
        _ => number(0, 8),
    }
}

fn name_text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn display_path(element: &IsoElementPath) -> String {
    let steps: Vec<_> = element.steps.iter().map(|s| s.names.join("|")).collect();
    match element.from {
        IsoPathRoot::Entry(0) => format!("./{}", steps.join("/")),
        IsoPathRoot::Entry(up) => format!("{}{}", "../".repeat(up), steps.join("/")),
        _ => steps.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Two names with one number would be one element.
    #[test]
    fn short_names_have_numbers_of_their_own() {
        let mut names: Vec<String> = Vec::new();
        for a in ["", "A", "B"] {
            for b in ["", "A", "B", "Ab"] {
                for c in ["", "C", "CC", "DdD"] {
                    names.push(format!("{a}{b}{c}"));
                }
            }
        }
        names.sort();
        names.dedup();
        for a in names.iter().filter(|n| n.len() <= 8) {
            for b in names.iter().filter(|n| n.len() <= 8) {
                assert!(
                    a == b || a.len() != b.len() || name_key(a.as_bytes()) != name_key(b.as_bytes()),
                    "{a} {b}"
                );
            }
        }
    }
}
