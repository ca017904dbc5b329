//! A feed's format with its mapping, behind one face for all formats.

use crate::block::Block;
use crate::error::Error;
use crate::mapping::{Mapping, MappingExplainer};
use crate::reference::InstrumentMaster;
use std::any::Any;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use unitape_marketdata::engine::EngineStats;
use unitape_model::Dictionary;

/// The ways to cut a codec's stream for the farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statefulness {
    /// Messages are independent: blocks decode in parallel.
    Stateless,
    /// A message's meaning depends on those before it in its source. One decoder decodes the blocks in order and
    /// always reads a source from its start.
    Stream,
}

/// A format of the registry: what makes a mapping a way to read bytes.
#[derive(Debug)]
pub struct FormatEntry {
    /// Its word, in mappings and on the command line.
    pub name: &'static str,
    /// Reads the files that a mapping names; the error states what the mapping lacks.
    pub load: fn(&mut Mapping) -> Result<(), Error>,
    /// The format of bytes by a mapping that was loaded.
    pub build: fn(&Mapping) -> Result<Arc<dyn ByteFormat>, Error>,
}

/// The bytes of one format as one mapping reads them: where they may be cut, and what decodes them.
pub trait ByteFormat: Debug + Send + Sync {
    /// Makes a decoder; each worker needs one per feed.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error>;

    /// Checks that the mapping can be compiled.
    ///
    /// # Errors
    /// Fails if the mapping is invalid.
    fn check_mapping(&self, mapping: &Mapping) -> Result<(), Error> {
        self.decoder(mapping).map(drop)
    }

    /// Guesses an offset in `buf` with only whole messages before it: by default, after the last line end.
    fn cut_offset(&self, buf: &[u8]) -> usize {
        memchr::memrchr(b'\n', buf).map_or(0, |offset| offset + 1)
    }

    /// Returns how the decoder farm may cut the format into blocks.
    fn statefulness(&self) -> Statefulness {
        Statefulness::Stateless
    }

    /// Returns the book policy of the events, if it is not the usual policy; see `FormatId::books`.
    fn books(&self) -> Option<&'static str> {
        None
    }

    /// Returns the maximum length of [`ByteFormat::source_head`] in bytes; 0 if the format has no head.
    fn head_bytes(&self) -> usize {
        0
    }

    /// Returns the start of a source that each of its decoders must know; the bytes must be the source's first bytes.
    fn source_head(&self, _path: &Path, _bytes: &[u8]) -> Arc<[u8]> {
        Arc::default()
    }

    /// Returns the part of a source's name that each of its decoders must know: the day of an ITCH file.
    ///
    /// # Errors
    /// Fails if the name lacks it and the mapping does not state it either.
    fn context_from_file_name(&self, _path: &Path) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }
}

/// Id of the definition of the current source, and the names that have ids already.
#[derive(Clone, Copy, Debug)]
pub struct SourceContext<'k> {
    pub source: u32,
    pub dictionary: &'k Dictionary,
}

/// Decodes the blocks of one source after the other.
pub trait FormatDecoder: Any + Debug + Send {
    /// Decodes the messages of a block, after those that the block already has.
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary);

    /// Ends a block, before the decoder adds anything at the end of its source.
    fn end_block(&mut self, block: &Block) {
        _ = block;
    }

    /// Begins a source: forgets everything about the previous source.
    fn begin_source(&mut self) {}

    /// Ends the source with this block.
    fn end_source(&mut self, _block: &mut Block, _source: u32, _known: &Dictionary) {}

    /// Takes over the state of the previous decoder, within a source, when a mapping was reloaded.
    fn resume_from(&mut self, _before: &mut dyn FormatDecoder) {}

    /// Returns the slot for an explainer of the mapping's actions on each message; `None` if the format has no rules.
    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        None
    }

    /// Disables the fast path, if there is one.
    fn use_general_path(&mut self) {}

    /// Returns the market-data handler's statistics of the current source.
    fn handler_stats(&self) -> Option<EngineStats> {
        None
    }
}

/// A format with its mapping.
#[derive(Clone, Debug)]
pub struct Format {
    name: &'static str,
    mapping: Arc<Mapping>,
    bytes: Arc<dyn ByteFormat>,
    /// Its messages become events by the mapping.
    is_mapped: bool,
}

impl Format {
    /// Makes a format whose messages become events by `mapping`.
    ///
    /// # Errors
    /// Fails if the mapping lacks what the format needs.
    pub(super) fn new_mapped(entry: &FormatEntry, mapping: Mapping) -> Result<Self, Error> {
        let bytes = (entry.build)(&mapping)?;
        Ok(Self { name: entry.name, mapping: Arc::new(mapping), bytes, is_mapped: true })
    }

    /// Makes a format that needs no mapping.
    pub(super) fn new_unmapped(name: &'static str, bytes: Arc<dyn ByteFormat>) -> Self {
        let mapping = Mapping { name: name.to_owned(), format: name.to_owned(), ..Mapping::default() };
        Self { name, mapping: Arc::new(mapping), bytes, is_mapped: false }
    }

    /// Returns the format's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns name and hash of the mapping and of the reference data.
    pub fn mapping_identity(&self) -> Option<String> {
        match &self.mapping.reference {
            _ if self.is_mapped => Some(self.mapping.identity()),
            reference => reference.as_ref().map(|r| format!("{}{}", self.name, r.identity())),
        }
    }

    /// Sets the reference data in which names of instruments are looked up.
    #[must_use]
    pub fn with_reference(mut self, reference: &Arc<InstrumentMaster>) -> Self {
        Arc::make_mut(&mut self.mapping).reference = Some(reference.clone());
        self
    }

    /// Returns the mapping; `None` if the format needs no mapping.
    pub fn mapping_definition(&self) -> Option<&Mapping> {
        self.is_mapped.then_some(&self.mapping)
    }

    /// Makes a decoder of the format's blocks.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub(super) fn format_decoder(&self) -> Result<Box<dyn FormatDecoder>, Error> {
        self.bytes.decoder(&self.mapping)
    }

    /// Checks that the mapping can be compiled.
    ///
    /// # Errors
    /// Fails if the mapping is invalid.
    pub(super) fn check_mapping(&self) -> Result<(), Error> {
        self.bytes.check_mapping(&self.mapping)
    }

    /// Returns how the decoder farm may cut the format into blocks.
    pub fn statefulness(&self) -> Statefulness {
        self.bytes.statefulness()
    }

    /// Returns the book policy of the events, if it is not the usual policy.
    pub fn books(&self) -> Option<&'static str> {
        self.bytes.books()
    }

    /// Guesses an offset in `buf` with only whole messages before it.
    pub fn cut_offset(&self, buf: &[u8]) -> usize {
        self.bytes.cut_offset(buf)
    }

    /// Returns the start of a source that each of its decoders must know; `bytes` must be the source's first bytes.
    pub fn source_head(&self, path: &Path, bytes: &[u8]) -> Arc<[u8]> {
        self.bytes.source_head(path, bytes)
    }

    /// Returns the part of a source's name that each of its decoders must know.
    ///
    /// # Errors
    /// Fails if the name lacks it and the mapping does not state it either.
    pub fn context_from_file_name(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        self.bytes.context_from_file_name(path)
    }

    /// Returns the maximum length in bytes of the start that decoders must know; 0 if they need no such start.
    pub fn head_bytes(&self) -> usize {
        self.bytes.head_bytes()
    }
}

/// Format and mapping of a source, as its definition records them.
#[derive(Clone, Debug, Default)]
pub struct FormatId {
    /// The format's word.
    pub format: String,
    /// Name and hash of the mapping.
    pub mapping: Option<String>,
    /// The book policy of the events, if it is not the usual policy. `none` makes no books; with `marked`, the events
    /// state which books have lost data.
    pub books: Option<String>,
}

impl FormatId {
    /// Returns the id of a format.
    pub fn from_format(format: &Format) -> Self {
        let books = format.books().map(str::to_owned);
        Self { format: format.name().to_owned(), mapping: format.mapping_identity(), books }
    }
}

/// A tape of before `books` has the same sources.
impl PartialEq for FormatId {
    fn eq(&self, other: &Self) -> bool {
        (&self.format, &self.mapping) == (&other.format, &other.mapping)
    }
}

impl Eq for FormatId {}
