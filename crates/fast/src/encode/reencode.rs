//! A decoded message as a draft.
//!
//! Decoder and encoder number the parts of templates in the same order, so an entry is matched by its place. Names
//! cannot be used, because a template may be referred to twice.

use super::draft::{CellKind, DraftCell, MessageDraft};
use super::plan::{EncodeOp, EncodePlan, NONE, OpCode, OpRole};
use crate::entry::{DecodedEntry, DecodedEntryKind};
use crate::fault::{MessageFault, MessageFaultCode};
use crate::record::Message;
use crate::template::Templates;

/// Takes the message into the draft.
///
/// # Errors
/// Fails if the message is not a complete message of these templates.
pub(super) fn fill_draft(
    templates: &Templates,
    message: &Message<'_>,
    draft: &mut MessageDraft,
) -> Result<(), MessageFault> {
    draft.begin(message.template);
    let plan = draft.plan.clone();
    let mut copy = MessageCopier { plan: &plan, draft, message, next_entry: 0, last_info: NONE };
    let block = plan.templates[message.template].block;
    let outcome =
        copy.block(block, 0).and_then(|()| (copy.next_entry == message.entries.len()).then_some(()));
    outcome.ok_or_else(|| MessageFault {
        code: MessageFaultCode::Missing,
        template: templates.list()[message.template].name.local.clone(),
        field: plan.infos.get(copy.last_info as usize).map_or(String::new(), |info| info.name.local.clone()),
        offset: 0,
    })
}

struct MessageCopier<'c, 'm> {
    plan: &'c EncodePlan,
    draft: &'c mut MessageDraft,
    message: &'c Message<'m>,
    /// The next of its entries.
    next_entry: usize,
    /// The part that was looked for last.
    last_info: u32,
}

impl<'m> MessageCopier<'_, 'm> {
    fn block(&mut self, block: u32, frame: u32) -> Option<()> {
        let block = self.plan.blocks[block as usize];
        for op in &self.plan.ops[block.from as usize..block.to as usize] {
            self.last_info = op.info;
            let index = (frame + op.cell) as usize;
            match op.code {
                OpCode::Missing => return None,
                OpCode::Group => {
                    if self.next_if(op, |form| form == DecodedEntryKind::Group).is_some() {
                        self.draft.cells[index].tag = CellKind::There;
                        self.block(op.block, frame)?;
                        self.expect_end(op)?;
                    }
                }
                OpCode::Sequence => {
                    let Some(begin) = self.next_if(op, |form| form == DecodedEntryKind::Sequence) else {
                        continue;
                    };
                    self.draft.cells[index].tag = CellKind::There;
                    for _ in 0..begin.bits {
                        self.next_if(op, |form| form == DecodedEntryKind::Element)?;
                        let first_cell = self.draft.add(index, op.frame);
                        self.block(op.block, first_cell)?;
                    }
                    self.expect_end(op)?;
                }
                OpCode::Dynamic => {
                    let template = self.next_if(op, |form| form == DecodedEntryKind::Inner)?.bits as u32;
                    let template_plan = self.plan.templates[template as usize];
                    let first_cell = self.draft.frame(template_plan.frame);
                    self.draft.cells[index] = DraftCell {
                        bits: first_cell.into(),
                        count: template,
                        exponent: 0,
                        tag: CellKind::There,
                    };
                    self.block(template_plan.block, first_cell)?;
                    self.last_info = op.info;
                    self.expect_end(op)?;
                }
                // Both are of what is after them.
                _ if matches!(op.role, OpRole::Exponent | OpRole::Length) => {}
                _ => {
                    if let Some(entry) = self.next_if(op, |form| form <= DecodedEntryKind::Long) {
                        let field = self.plan.infos[op.info as usize].field.as_ref()?;
                        let value = self.message.value(entry, field)?;
                        self.draft.cells[index] = self.draft.cell_of(value);
                    }
                }
            }
        }
        Some(())
    }

    /// Takes the next entry if it belongs to this op. A mandatory constant has no entry, because it is known.
    fn next_if(
        &mut self,
        op: &EncodeOp,
        is_kind: impl Fn(DecodedEntryKind) -> bool,
    ) -> Option<&'m DecodedEntry> {
        let entry = self.message.entries.get(self.next_entry)?;
        let is_match = entry.info() == op.info && is_kind(entry.form());
        self.next_entry += usize::from(is_match);
        is_match.then_some(entry)
    }

    fn expect_end(&mut self, op: &EncodeOp) -> Option<()> {
        self.next_if(op, |form| form == DecodedEntryKind::End).map(drop)
    }
}
