//! The decoder: dictionaries, what is kept between messages, and which engine decodes one.

use super::engine;
use super::exact::Pass;
use super::fault::{Code, Fault};
use super::program::{Found, NONE, Program};
use super::projection::{FieldRef, Projection};
use super::record::{Entry, Message, span};
use super::slot::{Slot, State, Undo};
use super::template::Templates;
use super::visit::Visitor;
use super::wire::Bits;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of all texts of a message, at most.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Bytes of the longer texts (of more than eight) that dictionaries have from messages, at most.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Bytes of a message that are looked at. Its texts have less; offsets into the arena have 32 bits.
const LOOKED_AT_MAX: usize = 64 << 20;

/// Texts of earlier messages are thrown out of the arena when it has this much more than what is referred to.
const ARENA_BYTES: usize = 64 << 10;

/// Decodes messages; dictionaries are carried from one to the next.
///
/// Groups, sequences and dynamic references in each other take stack: of templates as deep as may be nearly 1 MiB. A thread of
/// the standard library has two where nobody says otherwise.
#[derive(Debug, Clone)]
pub struct Decoder {
    templates: Arc<Templates>,
    pub(super) program: Arc<Program>,
    strict: bool,
    /// Nothing is decoded by the fast engine.
    exact: bool,
    pub(super) slots: Vec<Slot>,
    /// Counted up where the dictionaries are emptied; what of them is of another epoch is empty.
    pub(super) epoch: u32,
    /// The epoch of each share of the slots.
    pub(super) filled: Vec<u32>,
    /// What both were before the message that the fast engine decodes, as far as its template has them.
    pub(super) saved: Vec<Slot>,
    pub(super) saved_filled: Vec<u32>,
    /// That template, once it is known.
    pub(super) begun: u32,
    pub(super) template_id: Option<u32>,
    /// The id that holds before any message says one.
    first_template_id: Option<u32>,
    pub(super) entries: Vec<Entry>,
    /// The end of a message at the end of its buffer, with room behind it.
    pub(super) padded: Vec<u8>,
    pub(super) arena: Vec<u8>,
    /// Bytes of the arena at which it is looked through.
    sweep_at: usize,
    /// Bytes of it that dictionaries may have.
    kept_max: usize,
    /// Bytes of the message's texts so far.
    pub(super) text_bytes: usize,
    /// What the exact engine wrote over in this message, the first first.
    pub(super) undo: Vec<Undo>,
    undo_filled: Vec<(u32, u32)>,
}

impl Decoder {
    /// One with empty dictionaries.
    #[must_use]
    pub fn new(templates: Arc<Templates>) -> Self {
        let program = Program::new(&templates, None);
        Self::of(templates, program)
    }

    /// One for messages without a template's id: until one says another, each is of the template of this name. None where no
    /// template has it, or several have. A template without an id gets the least number that no other has.
    #[must_use]
    pub fn with_template(templates: Arc<Templates>, name: &str) -> Option<Self> {
        let (templates, id) = Templates::with_id_of(templates, name)?;
        let decoder = Self::new(templates);
        Some(Self { first_template_id: Some(id), template_id: Some(id), ..decoder })
    }

    /// One that delivers what the projection wants, with the tags it has.
    #[must_use]
    pub fn with_projection(projection: Projection) -> Self {
        let program = Program::new(projection.templates(), Some(&projection));
        Self::of(projection.templates().clone(), program)
    }

    fn of(templates: Arc<Templates>, program: Program) -> Self {
        let program = Arc::new(program);
        Self {
            slots: program.entries.empty.clone(),
            saved: program.entries.empty.clone(),
            filled: vec![1; program.entries.shares.len()],
            saved_filled: vec![1; program.entries.shares.len()],
            begun: NONE,
            arena: program.texts.clone(),
            sweep_at: program.texts.len() + ARENA_BYTES,
            kept_max: KEPT_BYTES_MAX,
            text_bytes: 0,
            templates,
            program,
            strict: false,
            exact: false,
            padded: Vec::new(),
            epoch: 1,
            template_id: None,
            first_template_id: None,
            entries: Vec::new(),
            undo: Vec::new(),
            undo_filled: Vec::new(),
        }
    }

    /// The same, raising the reportable errors R6, R7, R8 and R9 as well.
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// The same without its fast engine; for tests and comparisons.
    #[doc(hidden)]
    #[must_use]
    pub fn with_exact(self) -> Self {
        Self { exact: true, ..self }
    }

    /// The same with another bound for the texts in dictionaries; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kept_max(self, kept_max: usize) -> Self {
        Self { kept_max, ..self }
    }

    /// The templates.
    #[must_use]
    pub fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// A field by its template and path (as in [`Projection`]), to ask messages for; the first of several.
    #[must_use]
    pub fn field(&self, template: &str, path: &str) -> Option<FieldRef> {
        let index = self.templates.list().iter().position(|t| t.name.local == template)?;
        let info = self.program.paths.get(&(index as u32, path.to_owned()))?;
        Some(FieldRef { info: *info })
    }

    /// Empties all dictionaries, that of the template's id as well.
    pub fn reset(&mut self) {
        self.empty();
        self.template_id = self.first_template_id;
    }

    /// The same where a message of this template, of which dictionaries have nothing, was read elsewhere: the next message may
    /// leave its template's id away.
    pub fn reset_behind(&mut self, template_id: u32) {
        self.empty();
        self.template_id = Some(template_id);
    }

    pub(super) fn empty(&mut self) {
        self.epoch += 1;
        // Numbered anew behind this message, long before they run out.
        if self.epoch > u32::MAX / 2 {
            self.sweep_at = 0;
        }
    }

    /// Decodes the message at the start of `bytes`; what is behind it is not looked at.
    ///
    /// # Errors
    /// The first fault; the dictionaries are then as they were before.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Message<'_>, Fault> {
        self.decode_in(bytes, 0..bytes.len())
    }

    /// Decodes the message at the start of `range` of a buffer. What is behind the range decides nothing, yet where there is
    /// some (a kilobyte does) the message need not be copied.
    ///
    /// # Errors
    /// As [`Self::decode`], places counted from the beginning of the range.
    ///
    /// # Panics
    /// If the range is not inside the buffer.
    #[inline]
    pub fn decode_in(&mut self, buffer: &[u8], range: Range<usize>) -> Result<Message<'_>, Fault> {
        self.tidy();
        if !self.exact {
            let before = (self.epoch, self.template_id);
            if let Some((template, bytes)) = engine::decode(self, buffer, range.start, range.end)
                && self.keeps_little()
            {
                return Ok(self.message(template, bytes));
            }
            self.put_back(before);
        }
        self.decode_exactly(&buffer[range])
    }

    fn message(&self, template: u32, bytes: usize) -> Message<'_> {
        let Self { program, entries, arena, .. } = self;
        Message { program, entries, arena, template: template as usize, bytes }
    }

    #[inline(never)]
    fn decode_exactly(&mut self, bytes: &[u8]) -> Result<Message<'_>, Fault> {
        let before = (self.epoch, self.template_id);
        self.undo.clear();
        self.undo_filled.clear();
        let program = self.program.clone();
        let looked_at = &bytes[..bytes.len().min(LOOKED_AT_MAX)];
        let mut pass = Pass::new(self, &program, looked_at);
        let result = if pass.decoder.strict { pass.segment::<true>() } else { pass.segment::<false>() };
        let (used, mut place) = (pass.cursor.at, pass.place);
        let result = match result {
            Ok(template) if !self.keeps_little() => {
                place = (template, NONE);
                Err((Code::TooLarge, used))
            }
            Err((Code::Truncated, at)) if bytes.len() > LOOKED_AT_MAX => Err((Code::TooLarge, at)),
            result => result,
        };
        match result {
            Ok(template) => Ok(self.message(template, used)),
            Err((code, at)) => {
                self.undo(before);
                Err(self.fault(code, at, place))
            }
        }
    }

    /// One op of a message whose others are done elsewhere, with its bit; the bytes it has, none where something is wrong.
    pub(super) fn one(&mut self, op: usize, bytes: &[u8], bit: bool) -> Option<usize> {
        // All of the message is put back at once if need be.
        self.undo.clear();
        let program = self.program.clone();
        let op = &program.ops[op];
        let mut pass = Pass::new(self, &program, bytes);
        let mut bits = Bits::one(bit);
        let found = if pass.decoder.strict {
            pass.checked::<true>(op, &mut bits)
        } else {
            pass.checked::<false>(op, &mut bits)
        };
        if let Some(found) = found.ok()? {
            pass.push(found.form(op.kind), found, op);
        }
        let used = pass.cursor.at;
        self.text_fits(0).then_some(used)
    }

    /// Counts a text; whether there were less than half of what is taken. The short ones and constants, which are not counted,
    /// are never more than that in what the fast engine decodes.
    #[inline(always)]
    pub(super) fn text_fits(&mut self, len: usize) -> bool {
        self.text_bytes += len;
        self.text_bytes < TEXT_BYTES_MAX / 2
    }

    /// Decodes the message at the start of `bytes` and tells a visitor what is in it, once it is known to be good. Gives
    /// its template, by its place in the list, and its bytes.
    ///
    /// # Errors
    /// As [`Self::decode`]; the visitor is then told nothing.
    pub fn decode_with(&mut self, bytes: &[u8], visitor: &mut impl Visitor) -> Result<(usize, usize), Fault> {
        let message = self.decode(bytes)?;
        message.visit(visitor);
        Ok((message.template, message.bytes))
    }

    /// Bytes of texts kept, of this message and of dictionaries.
    #[cfg(test)]
    pub(super) fn arena_bytes(&self) -> usize {
        self.arena.capacity()
    }

    #[cold]
    fn fault(&self, code: Code, at: usize, (template, info): (u32, u32)) -> Fault {
        let name = |index: u32| self.templates.list[index as usize].name.local.clone();
        let info = self.program.infos.get(info as usize);
        Fault {
            code,
            template: if template == NONE { String::new() } else { name(template) },
            field: info.map(|info| info.name().local.clone()).unwrap_or_default(),
            at,
        }
    }

    #[cold]
    fn undo(&mut self, before: (u32, Option<u32>)) {
        while let Some(Undo { place, slot }) = self.undo.pop() {
            self.slots[place as usize] = slot;
        }
        while let Some((share, epoch)) = self.undo_filled.pop() {
            self.filled[share as usize] = epoch;
        }
        (self.epoch, self.template_id) = before;
        self.entries.clear();
    }

    /// Empties of a template's entries what is of an earlier epoch.
    pub(super) fn ready(&mut self, program: &Program, template: u32) {
        let entries = &program.entries;
        for &share in &entries.of[program.templates[template as usize].shares.range()] {
            let filled = &mut self.filled[share as usize];
            if *filled == self.epoch {
                continue;
            }
            self.undo_filled.push((share, *filled));
            *filled = self.epoch;
            for place in entries.shares[share as usize].range() {
                self.undo.push(Undo { slot: self.slots[place], place: place as u32 });
                self.slots[place] = entries.empty[place];
            }
        }
    }

    /// What the fast engine did to the dictionaries is undone.
    #[cold]
    fn put_back(&mut self, before: (u32, Option<u32>)) {
        let program = self.program.clone();
        let entries = &program.entries;
        if let Some(compiled) = program.templates.get(self.begun as usize) {
            for &share in &entries.of[compiled.shares.range()] {
                let (saved, range) =
                    (self.saved_filled[share as usize], entries.shares[share as usize].range());
                if saved == before.0 {
                    self.slots[range.clone()].copy_from_slice(&self.saved[range]);
                }
                self.filled[share as usize] = saved;
            }
        }
        (self.epoch, self.template_id) = before;
        self.tidy_message();
    }

    /// Whether dictionaries have no more text than they may.
    #[inline(always)]
    fn keeps_little(&self) -> bool {
        self.arena.len() <= self.kept_max || self.kept_bytes() <= self.kept_max
    }

    /// Bytes of the arena that dictionaries have and that are no initial values.
    #[cold]
    fn kept_bytes(&self) -> usize {
        let own = self.program.texts.len();
        let shares = self.program.entries.shares.iter().zip(&self.filled);
        let live = shares.filter(|(_, filled)| **filled == self.epoch);
        let slots = live.flat_map(|(share, _)| &self.slots[share.range()]);
        let long = slots.filter(|slot| slot.state() == State::Long).map(|slot| span(slot.bits));
        long.filter(|span| span.start >= own).map(|span| span.len()).sum()
    }

    #[inline(always)]
    fn tidy_message(&mut self) {
        self.entries.clear();
        self.text_bytes = 0;
        self.begun = NONE;
    }

    #[inline(always)]
    fn tidy(&mut self) {
        self.tidy_message();
        if self.arena.len() >= self.sweep_at {
            self.sweep();
        }
    }

    /// Keeps of the arena what slots refer to, and of the slots what is defined.
    #[cold]
    fn sweep(&mut self) {
        let before = std::mem::replace(&mut self.arena, self.program.texts.clone());
        for (share, filled) in self.program.entries.shares.iter().zip(&mut self.filled) {
            let live = *filled == self.epoch;
            *filled = u32::from(live);
            // Texts of other epochs are no more.
            for slot in self.slots[share.range()].iter_mut().filter(|_| live) {
                if slot.state() == State::Long {
                    let span = span(slot.bits);
                    // Initial values stay where they are.
                    if span.start < self.program.texts.len() {
                        continue;
                    }
                    let text = &before[span];
                    slot.bits = Found::long(self.arena.len(), text.len()).bits;
                    self.arena.extend_from_slice(text);
                }
            }
        }
        self.epoch = 1;
        self.sweep_at = 2 * self.arena.len() + ARENA_BYTES;
    }
}
