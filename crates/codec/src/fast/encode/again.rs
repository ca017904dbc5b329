//! A decoded message as a draft.

use super::draft::{Cell, Draft, Tag};
use super::plan::{NONE, OpCode, Plan, Role};
use crate::fast::fault::{Code, Fault};
use crate::fast::record::{Item, Message};
use crate::fast::template::Templates;
use std::iter::Peekable;
use std::sync::Arc;

/// Takes the message into the draft.
///
/// # Errors
/// Where it is not all of a message of these templates.
pub(super) fn copy(templates: &Templates, message: &Message<'_>, draft: &mut Draft) -> Result<(), Fault> {
    draft.begin(message.template);
    let plan = draft.plan.clone();
    let mut copy =
        Copy { plan: &plan, draft, items: message.items().peekable(), named: message.named(), info: NONE };
    let block = plan.templates[message.template].block;
    let whole = copy.block(block, 0).and_then(|()| copy.items.next().is_none().then_some(()));
    whole.ok_or_else(|| Fault {
        code: Code::Missing,
        template: templates.list()[message.template].name.local.clone(),
        field: plan.infos.get(copy.info as usize).map_or(String::new(), |info| info.name.local.clone()),
        at: 0,
    })
}

struct Copy<'c, 'm, I: Iterator<Item = Item<'m>>, N> {
    plan: &'c Plan,
    draft: &'c mut Draft,
    items: Peekable<I>,
    /// Templates of dynamic references.
    named: N,
    /// What was looked for last.
    info: u32,
}

impl<'m, I: Iterator<Item = Item<'m>>, N: Iterator<Item = u32>> Copy<'_, 'm, I, N> {
    fn block(&mut self, block: u32, frame: u32) -> Option<()> {
        let block = self.plan.blocks[block as usize];
        for op in &self.plan.ops[block.from as usize..block.to as usize] {
            self.info = op.info;
            let info = &self.plan.infos[op.info as usize];
            let index = (frame + op.cell) as usize;
            match op.code {
                OpCode::Missing => return None,
                OpCode::Group => {
                    if self.items.next_if(|i| matches!(i, Item::Group(name) if **name == info.name)).is_some()
                    {
                        self.draft.cells[index].tag = Tag::There;
                        self.block(op.block, frame)?;
                        self.end()?;
                    }
                }
                OpCode::Sequence => {
                    let begins = |i: &Item<'_>| matches!(i, Item::Sequence(name, _) if **name == info.name);
                    let Some(Item::Sequence(_, elements)) = self.items.next_if(begins) else { continue };
                    self.draft.cells[index].tag = Tag::There;
                    for _ in 0..elements {
                        let Some(Item::Element) = self.items.next() else { return None };
                        let at = self.draft.add(index, op.frame);
                        self.block(op.block, at)?;
                        self.end()?;
                    }
                    self.end()?;
                }
                OpCode::Dynamic => {
                    let template = self.named.next()?;
                    let of = self.plan.templates[template as usize];
                    let at = self.draft.frame(of.frame);
                    self.draft.cells[index] =
                        Cell { bits: at.into(), count: template, exponent: 0, tag: Tag::There };
                    self.block(of.block, at)?;
                }
                // Both are of what stands behind them.
                _ if matches!(op.role, Role::Exponent | Role::Length) => {}
                _ => {
                    let field = info.field.as_ref()?;
                    let is = |i: &Item<'_>| matches!(i, Item::Value(other, _) if Arc::ptr_eq(other, field));
                    if let Some(Item::Value(_, value)) = self.items.next_if(is) {
                        self.draft.cells[index] = self.draft.cell_of(value);
                    }
                }
            }
        }
        Some(())
    }

    fn end(&mut self) -> Option<()> {
        self.items.next_if(|i| matches!(i, Item::End)).map(drop)
    }
}
