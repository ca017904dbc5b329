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
    /// Reads the files that a mapping names; the error says what the mapping lacks.
    pub load: fn(&mut Mapping) -> Result<(), Error>,
    /// The format of bytes by a mapping that was loaded.
    pub by: fn(&Mapping) -> Result<Arc<dyn ByteFormat>, Error>,
}

/// The bytes of one format as one mapping reads them: where they may be cut, and what decodes them.
pub trait ByteFormat: Debug + Send + Sync {
    /// A decoder; one per worker and feed.
    ///
    /// # Errors
    /// When the mapping cannot be compiled.
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error>;

    /// Whether the mapping can be compiled.
    ///
    /// # Errors
    /// An error in the mapping.
    fn check(&self, mapping: &Mapping) -> Result<(), Error> {
        self.decoder(mapping).map(drop)
    }

    /// The place to cut `buf` so that, as far as can be guessed, only whole messages are before the cut.
    fn cut(&self, buf: &[u8]) -> usize;

    /// The way in which the farm may cut it.
    fn statefulness(&self) -> Statefulness {
        Statefulness::Stateless
    }

    /// The book policy of its events, if it is not the usual one; see `FormatId::books`.
    fn books(&self) -> Option<&'static str> {
        None
    }

    /// Bytes of [`ByteFormat::head`], at most; 0 where there is none.
    fn head_bytes(&self) -> usize {
        0
    }

    /// The start of a source that every decoder of it has to know: from `bytes`, its first.
    fn head(&self, _path: &Path, _bytes: &[u8]) -> Arc<[u8]> {
        Arc::default()
    }

    /// The part of a source's name that every decoder of it has to know: the day of an ITCH file.
    ///
    /// # Errors
    /// When it does not say it and nothing else does.
    fn head_of_name(&self, _path: &Path) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }
}

/// Id of the definition of the source in hand, and the names that have ids already.
#[derive(Clone, Copy, Debug)]
pub struct SourceContext<'k> {
    pub source: u32,
    pub known: &'k Dictionary,
}

/// Decodes stretches of one source after the other.
pub trait FormatDecoder: Any + Debug + Send {
    /// Decodes a stretch of messages, after those that the block has already.
    fn decode_block(&mut self, block: &mut Block, source: u32, known: &Dictionary);

    /// A block is decoded, but for what a decoder adds at the end of its source.
    fn end_block(&mut self, block: &Block) {
        _ = block;
    }

    /// A source begins: nothing of the one before holds.
    fn begin_source(&mut self) {}

    /// The source has ended with this block.
    fn end_source(&mut self, _block: &mut Block, _source: u32, _known: &Dictionary) {}

    /// Takes over what the previous decoder knew of a source under way, when a mapping was reloaded.
    fn resume_from(&mut self, _before: &mut dyn FormatDecoder) {}

    /// The place for an explainer of the mapping's actions on each message; none if no rules are asked.
    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        None
    }

    /// From now on without the fast path, if there is one.
    fn use_general_path(&mut self) {}

    /// The market-data handler's statistics of the current source.
    fn handler_stats(&self) -> Option<EngineStats> {
        None
    }
}

/// A format with its mapping: what the bytes of a feed are.
#[derive(Clone, Debug)]
pub struct Format {
    name: &'static str,
    mapping: Arc<Mapping>,
    bytes: Arc<dyn ByteFormat>,
    /// Its messages become events by the mapping.
    is_mapped: bool,
}

impl Format {
    /// A format whose messages become events by `mapping`.
    ///
    /// # Errors
    /// When the mapping lacks what the format needs.
    pub(super) fn new_mapped(entry: &FormatEntry, mapping: Mapping) -> Result<Self, Error> {
        let bytes = (entry.by)(&mapping)?;
        Ok(Self { name: entry.name, mapping: Arc::new(mapping), bytes, is_mapped: true })
    }

    /// A format that needs no mapping.
    pub(super) fn new_unmapped(name: &'static str, bytes: Arc<dyn ByteFormat>) -> Self {
        let mapping = Mapping { name: name.to_owned(), format: name.to_owned(), ..Mapping::default() };
        Self { name, mapping: Arc::new(mapping), bytes, is_mapped: false }
    }

    /// The format's word.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Name and hash of the mapping, with the reference data.
    pub fn mapping_identity(&self) -> Option<String> {
        match &self.mapping.reference {
            _ if self.is_mapped => Some(self.mapping.identity()),
            reference => reference.as_ref().map(|r| format!("{}{}", self.name, r.identity())),
        }
    }

    /// This format, with names of instruments looked up in `reference`.
    #[must_use]
    pub fn with_reference(mut self, reference: &Arc<InstrumentMaster>) -> Self {
        Arc::make_mut(&mut self.mapping).reference = Some(reference.clone());
        self
    }

    /// The mapping; none where the format needs none.
    pub fn mapping_definition(&self) -> Option<&Mapping> {
        self.is_mapped.then_some(&self.mapping)
    }

    /// A decoder of its stretches.
    ///
    /// # Errors
    /// When the mapping cannot be compiled.
    pub(super) fn format_decoder(&self) -> Result<Box<dyn FormatDecoder>, Error> {
        self.bytes.decoder(&self.mapping)
    }

    /// Whether its mapping can be compiled.
    ///
    /// # Errors
    /// An error in the mapping.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.bytes.check(&self.mapping)
    }

    /// The way in which the farm may cut it.
    pub fn statefulness(&self) -> Statefulness {
        self.bytes.statefulness()
    }

    /// The book policy of its events, if it is not the usual one.
    pub fn books(&self) -> Option<&'static str> {
        self.bytes.books()
    }

    /// The place to cut `buf` so that, as far as can be guessed, only whole messages are before the cut.
    pub fn cut(&self, buf: &[u8]) -> usize {
        self.bytes.cut(buf)
    }

    /// The start of a source that every decoder of it has to know: from `bytes`, its first.
    pub fn head(&self, path: &Path, bytes: &[u8]) -> Arc<[u8]> {
        self.bytes.head(path, bytes)
    }

    /// The part of a source's name that every decoder of it has to know.
    ///
    /// # Errors
    /// When it does not say it and nothing else does.
    pub fn head_of_name(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        self.bytes.head_of_name(path)
    }

    /// Bytes of what is at the start of a source, at most; 0 where there is none.
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
    /// The book policy of its events, if it is not the usual one. `none` makes no books; with `marked` the events
    /// themselves say which books have lost something.
    pub books: Option<String>,
}

impl FormatId {
    /// That of a format.
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
