//! A block of bytes becomes a block of events, whatever the format.

use crate::block::Block;
use crate::error::Error;
use crate::formats::capture::{self, CaptureInput, DatagramFilter};
use crate::formats::format::{Format, FormatDecoder, SourceContext};
use crate::formats::stamp;
use crate::mapping::{MappingExplainer, RuleLocation};
use unitape_marketdata::engine::EngineStats;
use unitape_model::Dictionary;

/// The options of decoding a feed's blocks, without its format.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// The packets of a capture that belong to the feed.
    pub select: DatagramFilter,
    /// Receive times go into the events.
    pub sets_receive_times: bool,
    /// Feeds are merged by receive time, not by event time.
    pub by_receive_time: bool,
}

/// A decoder; one per worker and feed.
#[derive(Debug)]
pub struct FeedDecoder(Box<dyn FormatDecoder>);

impl Format {
    /// Makes a decoder.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled.
    pub fn decoder(&self) -> Result<FeedDecoder, Error> {
        self.format_decoder().map(FeedDecoder)
    }
}

impl FeedDecoder {
    /// Makes a decoder of a format.
    pub(super) fn new(decoder: impl FormatDecoder) -> Self {
        Self(Box::new(decoder))
    }

    /// Decodes all whole messages of `block`; at the end of the source everything.
    pub fn decode(
        &mut self,
        block: &mut Block,
        source: u32,
        dictionary: &Dictionary,
        options: &DecodeOptions,
    ) {
        let decoder = &mut *self.0;
        block.reset();
        if block.base == 0 {
            decoder.begin_source();
        }
        match block.walker.take() {
            Some(walker) => {
                let mut at_start = walker.clone();
                let input = CaptureInput { walker: &mut at_start, select: &options.select };
                capture::decode(decoder, block, SourceContext { source, dictionary }, input);
                block.walker = Some(walker);
            }
            None => decoder.decode_block(block, source, dictionary),
        }
        decoder.end_block(block);
        if block.eof {
            decoder.end_source(block, source, dictionary);
        }
        block.resolve_names(dictionary);
        if block.eof {
            block.decoded = block.bytes.len();
            block.mark_progress(block.base + block.bytes.len() as u64, true);
        }
        stamp::receive_times(block, options);
    }

    /// Starts to explain what the decoder does with each message, and returns the places of the mapping's rules.
    pub fn explain(&mut self, format: &Format) -> Vec<RuleLocation> {
        let Some(mapping) = format.mapping_definition() else { return Vec::new() };
        self.0.use_general_path();
        let Some(explainer_slot) = self.0.explainer() else { return Vec::new() };
        explainer_slot.insert(Box::new(MappingExplainer::new(mapping))).places().collect()
    }

    /// Returns the explainer in use.
    pub fn explainer(&mut self) -> Option<&mut MappingExplainer> {
        self.0.explainer()?.as_deref_mut()
    }

    /// Disables the fast path, if the format has one.
    pub fn use_general_path(&mut self) {
        self.0.use_general_path();
    }

    /// Takes over the state of the previous decoder, within a source, when a mapping was reloaded.
    pub fn resume_from(&mut self, before: &mut Self) {
        self.0.resume_from(&mut *before.0);
    }

    /// Returns the market-data handler's statistics of the current source.
    pub fn handler_stats(&self) -> Option<EngineStats> {
        self.0.handler_stats()
    }
}
