//! The decoder: it chooses the engine for a message and makes the texts of faults.

use super::compile::compile;
use super::engine::{self, StepProgram};
use super::exact::ExactDecodePass;
use super::fault::{MessageFault, MessageFaultCode};
use super::program::{DecodeProgram, FaultLocation, NONE};
use super::projection::{DecodedFieldRef, Projection};
use super::record::Message;
use super::template::Templates;
use super::visit::MessageVisitor;
use super::workspace::DecodeWorkspace;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a message that are looked at. Its texts have less; offsets into the arena have 32 bits.
const LOOKED_AT_MAX: usize = 64 << 20;

/// Decodes messages; dictionaries are carried from one to the next.
///
/// Nested groups, sequences and dynamic references take stack: nearly 1 MiB for the deepest allowed templates. A thread
/// of the standard library has 2 MiB by default.
#[derive(Debug, Clone)]
pub struct Decoder {
    templates: Arc<Templates>,
    workspace: DecodeWorkspace,
    /// The steps of the workspace's program, for the fast engine.
    steps: Arc<StepProgram>,
    /// Nothing is decoded by the fast engine.
    exact: bool,
    /// The id that applies before a message names an id.
    first_template_id: Option<u32>,
}

impl Decoder {
    /// Makes a decoder with empty dictionaries.
    #[must_use]
    pub fn new(templates: Arc<Templates>) -> Self {
        let program = compile(&templates, None);
        Self::from_program(templates, program)
    }

    /// Makes a decoder for messages without a template id. Until a message carries an id, the decoder uses the template
    /// with this name. Returns `None` if no template or several templates have the name. A template without an id gets
    /// the least free number as its id.
    #[must_use]
    pub fn with_template(templates: Arc<Templates>, name: &str) -> Option<Self> {
        let (templates, id) = Templates::with_id_of(templates, name)?;
        let mut decoder = Self::new(templates);
        decoder.first_template_id = Some(id);
        decoder.workspace.template_id = Some(id);
        Some(decoder)
    }

    /// Makes a decoder that delivers only the fields of the projection, with their tags.
    #[must_use]
    pub fn with_projection(projection: Projection) -> Self {
        let program = compile(projection.templates(), Some(&projection));
        Self::from_program(projection.templates().clone(), program)
    }

    fn from_program(templates: Arc<Templates>, program: DecodeProgram) -> Self {
        let steps = Arc::new(StepProgram::new(&program));
        let workspace = DecodeWorkspace::new(Arc::new(program));
        Self { templates, workspace, steps, exact: false, first_template_id: None }
    }

    /// Makes the decoder raise the reportable errors R6, R7, R8 and R9 as well if `strict`.
    #[must_use]
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.workspace.is_strict = strict;
        self
    }

    /// Turns the fast engine of the decoder off, for tests and comparisons.
    #[doc(hidden)]
    #[must_use]
    pub fn with_exact(self) -> Self {
        Self { exact: true, ..self }
    }

    /// Sets the bound for the bytes of text in dictionaries, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kept_max(mut self, kept_max: usize) -> Self {
        self.workspace.kept_max = kept_max;
        self
    }

    /// Returns the templates.
    #[must_use]
    pub fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// Looks up a field by its template and path (as in [`Projection`]). If several fields match, returns the first.
    #[must_use]
    pub fn field(&self, template: &str, path: &str) -> Option<DecodedFieldRef> {
        let index = self.templates.list().iter().position(|t| t.name.local == template)?;
        let info = self.workspace.program.paths.get(&(index as u32, path.to_owned()))?;
        Some(DecodedFieldRef { info: *info })
    }

    /// Empties all dictionaries, including the stored template id.
    pub fn reset(&mut self) {
        self.workspace.empty();
        self.workspace.template_id = self.first_template_id;
    }

    /// Empties all dictionaries after a message of this template was read elsewhere, which put nothing into
    /// dictionaries. The next message may omit its template's id.
    pub fn reset_to_template_id(&mut self, template_id: u32) {
        self.workspace.empty();
        self.workspace.template_id = Some(template_id);
    }

    /// Decodes the message at the start of `bytes`. Bytes after the message are ignored.
    ///
    /// # Errors
    /// Fails at the first fault. The dictionaries are then as they were before.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Message<'_>, MessageFault> {
        self.decode_in(bytes, 0..bytes.len())
    }

    /// Decodes the message at the start of `range` of a buffer. Bytes after the range do not change the result; if
    /// there are some (a kilobyte is enough), the message need not be copied.
    ///
    /// # Errors
    /// Fails as [`Self::decode`] does. Offsets count from the start of the range.
    ///
    /// # Panics
    /// Panics if the range is not inside the buffer.
    #[inline]
    pub fn decode_in(&mut self, buffer: &[u8], range: Range<usize>) -> Result<Message<'_>, MessageFault> {
        let workspace = &mut self.workspace;
        workspace.tidy();
        if !self.exact {
            let entry_state = (workspace.epoch, workspace.template_id);
            // SAFETY: `Self::of` makes the steps of this program, and nothing gives the workspace another.
            let decoded = unsafe { engine::decode(workspace, &self.steps, buffer, range.clone()) };
            if let Some((template, bytes)) = decoded
                && workspace.keeps_little()
            {
                return Ok(self.message(template, bytes));
            }
            workspace.put_back(entry_state);
        }
        self.decode_exactly(&buffer[range])
    }

    fn message(&self, template: u32, bytes: usize) -> Message<'_> {
        let DecodeWorkspace { program, entries, arena, .. } = &self.workspace;
        Message { program, entries, arena, template: template as usize, bytes }
    }

    #[inline(never)]
    fn decode_exactly(&mut self, bytes: &[u8]) -> Result<Message<'_>, MessageFault> {
        let workspace = &mut self.workspace;
        let entry_state = (workspace.epoch, workspace.template_id);
        workspace.forget_undo();
        let program = workspace.program.clone();
        let looked_at = &bytes[..bytes.len().min(LOOKED_AT_MAX)];
        let mut pass = ExactDecodePass::new(workspace, &program, looked_at);
        let result = if pass.workspace.is_strict { pass.segment::<true>() } else { pass.segment::<false>() };
        let (used, mut location) = (pass.cursor.offset, pass.fault_location);
        let result = match result {
            Ok(template) if !self.workspace.keeps_little() => {
                location = FaultLocation { template, part: NONE };
                Err((MessageFaultCode::TooLarge, used))
            }
            Err((MessageFaultCode::Truncated, offset)) if bytes.len() > LOOKED_AT_MAX => {
                Err((MessageFaultCode::TooLarge, offset))
            }
            result => result,
        };
        match result {
            Ok(template) => Ok(self.message(template, used)),
            Err((code, offset)) => {
                self.workspace.undo(entry_state);
                Err(self.fault(code, offset, location))
            }
        }
    }

    /// Decodes the message at the start of `bytes`. Passes its contents to a visitor once the message is known to be
    /// good. Returns the index of its template in the list, and its length in bytes.
    ///
    /// # Errors
    /// Fails as [`Self::decode`] does. The visitor then gets nothing.
    pub fn decode_with(
        &mut self,
        bytes: &[u8],
        visitor: &mut impl MessageVisitor,
    ) -> Result<(usize, usize), MessageFault> {
        let message = self.decode(bytes)?;
        message.visit(visitor);
        Ok((message.template, message.bytes))
    }

    /// Returns the capacity in bytes for texts, of this message and of dictionaries.
    #[cfg(test)]
    pub(super) fn arena_bytes(&self) -> usize {
        self.workspace.arena.capacity()
    }

    #[cold]
    fn fault(&self, code: MessageFaultCode, offset: usize, location: FaultLocation) -> MessageFault {
        let name = |index: u32| self.templates.list[index as usize].name.local.clone();
        let info = self.workspace.program.infos.get(location.part as usize);
        MessageFault {
            code,
            template: if location.template == NONE { String::new() } else { name(location.template) },
            field: info.map(|info| info.name().local.clone()).unwrap_or_default(),
            offset,
        }
    }
}
