//! The decoders behind one face: a block of bytes becomes a block of events.

use crate::block::Block;
use crate::error::Error;
use crate::formats::csv::{self, CsvDecoder};
use crate::formats::fast::FastDecoder;
use crate::formats::fast_rules::{self, FastRulesDecoder, FastText};
use crate::formats::fix::{self, FixDecoder};
use crate::formats::fixed::{FixedDecoder, layout};
use crate::formats::iso20022::IsoDecoder;
use crate::formats::itch::{FramingText, ItchDecoder, date_of_source};
use crate::formats::jsonl;
use crate::formats::swift::SwiftDecoder;
use crate::formats::text::{TextDecoder, TextSort};
use crate::mapping::{Explainer, Mapping, Place};
use crate::pipeline::capture::{self, Select};
use crate::pipeline::feed_state::Sort;
use crate::pipeline::stamp;
use crate::reference::{AsTheyAre, ByReference, Reference};
use crate::sources::known::SourceRules;
use std::path::Path;
use std::sync::Arc;
use unitape_codec::{fixed, iso20022, itch, swift_mt};
use unitape_marketdata::engine::Stats;
use unitape_model::Dictionary;

/// How a codec's stream may be cut for the farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statefulness {
    /// Messages stand for themselves: blocks decode in parallel.
    Stateless,
    /// What a message means depends on those before it in its source: blocks decode in their turn, by one decoder,
    /// and a source is always read from its start.
    Stream,
}

/// The sort of bytes a feed delivers.
#[derive(Clone, Debug)]
pub enum Format {
    /// FIX tag=value, by a mapping.
    Fix(Box<Mapping>),
    /// Fixed-width records, by a mapping and the layout that it names.
    Fixed(Box<Mapping>, Arc<fixed::Layout>),
    /// Rows of separated values, by a mapping and the layout that it names.
    Csv(Box<Mapping>, Arc<unitape_codec::csv::Layout>),
    /// SWIFT MT, by a mapping.
    Swift(Box<Mapping>),
    /// NASDAQ ITCH, by the table of a mapping.
    Itch(Box<Mapping>),
    /// Packets of FAST, by the table of a mapping.
    Fast(Box<Mapping>),
    /// ISO 20022, by a mapping.
    Iso20022(Box<Mapping>),
    /// FAST, by the rules of a mapping.
    FastRules(Box<Mapping>),
    /// Text, by a mapping.
    Text(TextSort, Box<Mapping>),
    /// Events as JSON Lines, and by what their instruments are looked up, if by anything.
    Events(Option<Arc<Reference>>),
}

/// A format with its mapping, and which one of those that a feed has had in this run.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// What the bytes are.
    pub format: Format,
    /// The same, as source definitions tell it.
    pub sort: Sort,
    /// 0 for the one that the run began with.
    pub generation: u64,
}

impl Sorted {
    /// A format as the first one of a run, or a later one.
    pub fn new(format: Format, generation: u64) -> Self {
        let sort = Sort::of(&format);
        Self { format, sort, generation }
    }
}

/// How a feed's blocks are decoded, its format apart.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// Which packets of a capture are the feed's.
    pub select: Select,
    /// Receive times go into the events.
    pub receive_times: bool,
    /// Feeds are merged by receive time, not by event time.
    pub by_receive_time: bool,
    /// What becomes of files that are not what the tape says.
    pub rules: SourceRules,
}

/// A decoder; one per worker and feed.
#[derive(Debug)]
pub enum Decoder {
    /// FIX by a mapping.
    Fix(Box<FixDecoder>),
    /// Fixed-width records by a mapping.
    Fixed(Box<FixedDecoder>),
    /// Rows of separated values by a mapping.
    Csv(Box<CsvDecoder>),
    /// SWIFT MT by a mapping.
    Swift(Box<SwiftDecoder>),
    /// NASDAQ ITCH.
    Itch(Box<ItchDecoder>),
    /// Packets of FAST.
    Fast(Box<FastDecoder>),
    /// ISO 20022 by a mapping.
    Iso20022(Box<IsoDecoder>),
    /// FAST by the rules of a mapping.
    FastRules(Box<FastRulesDecoder>),
    /// Text by a mapping.
    Text(Box<TextDecoder>),
    /// Events as JSON Lines.
    Events(Option<Box<ByReference>>),
}

impl Format {
    /// The format of a mapping, with it.
    ///
    /// # Errors
    /// When the mapping's format is none that has mappings.
    pub fn by(mapping: Mapping) -> Result<Self, Error> {
        match mapping.format.as_str() {
            "fix" => Ok(Format::Fix(Box::new(mapping))),
            "fixed" => {
                let layout = layout(&mapping)?;
                Ok(Format::Fixed(Box::new(mapping), layout))
            }
            "csv" => {
                let layout = csv::layout(&mapping)?;
                Ok(Format::Csv(Box::new(mapping), layout))
            }
            "swift" => Ok(Format::Swift(Box::new(mapping))),
            "itch" => Ok(Format::Itch(Box::new(mapping))),
            // With rules or with channels: a table says which.
            "fast" if mapping.fast_messages.is_some() => Ok(Format::FastRules(Box::new(mapping))),
            "fast" => Ok(Format::Fast(Box::new(mapping))),
            "iso20022" => Ok(Format::Iso20022(Box::new(mapping))),
            other => {
                if let Some(sort) = TextSort::named(other) {
                    return Ok(Format::Text(sort, Box::new(mapping)));
                }
                let what =
                    format!("format `{other}` has no mapping; formats with one: {}", MAPPED.join(", "));
                Err(mapping.wrong("format", what))
            }
        }
    }

    /// The format's word.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Fix(_) => "fix",
            Format::Fixed(..) => "fixed",
            Format::Csv(..) => "csv",
            Format::Swift(_) => "swift",
            Format::Itch(_) => "itch",
            Format::Fast(_) => "fast",
            Format::Iso20022(_) => "iso20022",
            Format::FastRules(_) => "fast",
            Format::Text(sort, _) => sort.name(),
            Format::Events(_) => "events",
        }
    }

    /// Name and hash of the mapping, with the reference data.
    pub fn mapping(&self) -> Option<String> {
        match self {
            Format::Events(reference) => reference.as_ref().map(|r| format!("events{}", r.identity())),
            _ => self.its_mapping().map(Mapping::identity),
        }
    }

    /// The same with names of instruments looked up in `reference`.
    #[must_use]
    pub fn with_reference(mut self, reference: &Arc<Reference>) -> Self {
        let place = match &mut self {
            Format::Fix(m)
            | Format::Swift(m)
            | Format::Itch(m)
            | Format::Fast(m)
            | Format::Iso20022(m)
            | Format::FastRules(m)
            | Format::Text(_, m)
            | Format::Fixed(m, _)
            | Format::Csv(m, _) => &mut m.reference,
            Format::Events(place) => place,
        };
        *place = Some(reference.clone());
        self
    }

    /// The mapping.
    pub fn its_mapping(&self) -> Option<&Mapping> {
        match self {
            Format::Fix(m)
            | Format::Swift(m)
            | Format::Itch(m)
            | Format::Fast(m)
            | Format::Iso20022(m)
            | Format::FastRules(m)
            | Format::Text(_, m)
            | Format::Fixed(m, _)
            | Format::Csv(m, _) => Some(m),
            Format::Events(_) => None,
        }
    }

    /// How the farm may cut it.
    pub fn statefulness(&self) -> Statefulness {
        match self {
            Format::Itch(m)
                if m.itch.as_ref().is_some_and(|i| i.with_orders || i.framing == FramingText::Mold) =>
            {
                Statefulness::Stream
            }
            Format::Fast(_) => Statefulness::Stream,
            Format::FastRules(m) if m.fast_messages.as_ref().is_some_and(FastText::is_stream) => {
                Statefulness::Stream
            }
            // An ISO 20022 message larger than its bound goes on from block to block, and those blocks are decoded in order.
            Format::Fix(_)
            | Format::Fixed(..)
            | Format::Csv(..)
            | Format::Swift(_)
            | Format::Itch(_)
            | Format::Iso20022(_)
            | Format::FastRules(_)
            | Format::Text(..)
            | Format::Events(_) => Statefulness::Stateless,
        }
    }

    /// What its events are to books, where that is not what others are; see `Sort::books`.
    pub fn books(&self) -> Option<&'static str> {
        match self {
            Format::Itch(m) if m.itch.as_ref().is_some_and(|i| !i.with_orders) => Some("none"),
            Format::Fast(_) => Some("marked"),
            _ => None,
        }
    }

    /// A decoder.
    ///
    /// # Errors
    /// When the mapping cannot be compiled.
    pub fn decoder(&self) -> Result<Decoder, Error> {
        Ok(match self {
            Format::Fix(mapping) => Decoder::Fix(Box::new(FixDecoder::new(fix::framer(mapping)?, mapping)?)),
            Format::Fixed(mapping, _) => Decoder::Fixed(Box::new(FixedDecoder::new(mapping)?)),
            Format::Csv(mapping, _) => Decoder::Csv(Box::new(CsvDecoder::new(mapping)?)),
            Format::Swift(mapping) => {
                Decoder::Swift(Box::new(SwiftDecoder::new(swift_mt::Framer::default(), mapping)?))
            }
            Format::Itch(mapping) => Decoder::Itch(Box::new(ItchDecoder::new(mapping)?)),
            Format::Fast(mapping) => Decoder::Fast(Box::new(FastDecoder::new(mapping)?)),
            Format::Iso20022(mapping) => Decoder::Iso20022(Box::new(IsoDecoder::new(mapping)?)),
            Format::FastRules(mapping) => Decoder::FastRules(Box::new(FastRulesDecoder::new(mapping)?)),
            Format::Text(sort, mapping) => Decoder::Text(Box::new(TextDecoder::new(*sort, mapping)?)),
            Format::Events(reference) => {
                Decoder::Events(reference.clone().map(|r| Box::new(ByReference::new(r))))
            }
        })
    }

    /// The format and mapping of these names, as `--feed` gives them.
    ///
    /// # Errors
    /// When there is no such format or mapping.
    pub fn named(format: &str, mapping: &str) -> Result<Self, Error> {
        let config = |what: String| Error::Config { origin: "feed".to_owned(), what };
        match format {
            "events" => Ok(Format::Events(None)),
            mapped if MAPPED.contains(&mapped) && mapping.is_empty() => {
                Err(config(format!("format {mapped} needs a mapping: name={mapped}:MAPPING:path")))
            }
            mapped if MAPPED.contains(&mapped) => {
                let mapping = Mapping::load(mapping)?;
                if mapping.format != mapped {
                    let Mapping { name, format, .. } = mapping;
                    return Err(config(format!("mapping {name} is for format {format}, not {mapped}")));
                }
                Format::by(mapping)
            }
            other => Err(config(format!("no format `{other}`; formats: {}, events", MAPPED.join(", ")))),
        }
    }

    /// Where to cut `buf` so that, as far as can be guessed, only whole messages stand before the cut.
    pub fn cut(&self, buf: &[u8]) -> usize {
        match self {
            Format::Fix(mapping) => fix::framer(mapping).map_or(0, |framer| framer.cut(buf)),
            Format::Fixed(_, layout) => fixed::Decoder::cut(layout, buf),
            Format::Csv(..) => unitape_codec::csv::Decoder::cut(buf),
            Format::Swift(_) => swift_mt::Framer::default().cut(buf),
            Format::Itch(m) if m.itch.as_ref().is_some_and(|i| i.framing == FramingText::Soup) => {
                itch::Framer::new(itch::Framing::Soup).cut(buf)
            }
            Format::Itch(_) => itch::Framer::default().cut(buf),
            // Packets of captures are cut by their records.
            Format::Fast(_) => buf.len(),
            Format::Iso20022(_) => iso20022::Decoder::<()>::default().cut(buf),
            Format::FastRules(m) => m.fast_messages.as_ref().map_or(0, |text| fast_rules::cut(text, buf)),
            Format::Text(sort, _) => sort.cut(buf),
            Format::Events(_) => jsonl::cut(buf),
        }
    }

    /// What stands at the start of a source and has to be known wherever it is decoded: of `bytes`, its first.
    pub fn head(&self, path: &Path, bytes: &[u8]) -> Arc<[u8]> {
        match self {
            Format::Fixed(_, layout) => fixed::Decoder::head(layout, bytes).into(),
            Format::Csv(_, layout) => csv::head(layout, path, bytes).into(),
            Format::Fix(_)
            | Format::Swift(_)
            | Format::Itch(_)
            | Format::Fast(_)
            | Format::Iso20022(_)
            | Format::FastRules(_)
            | Format::Text(..)
            | Format::Events(_) => Arc::default(),
        }
    }

    /// What the name of a source says that has to be known wherever it is decoded: the day of an ITCH file.
    ///
    /// # Errors
    /// When it does not say it and nothing else does.
    pub fn head_of_name(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Format::Itch(m) => m.itch.as_ref().map_or(Ok(None), |text| date_of_source(text, path)),
            Format::Fix(_)
            | Format::Fixed(..)
            | Format::Csv(..)
            | Format::Swift(_)
            | Format::Fast(_)
            | Format::Iso20022(_)
            | Format::FastRules(_)
            | Format::Text(..)
            | Format::Events(_) => Ok(None),
        }
    }

    /// Its bytes, at most; 0 where there is none.
    pub fn head_bytes(&self) -> usize {
        match self {
            Format::Fixed(_, layout) => layout.head_bytes(),
            Format::Csv(_, layout) => CSV_HEAD_ROWS * layout.row_bytes_max(),
            Format::Fix(_)
            | Format::Swift(_)
            | Format::Itch(_)
            | Format::Fast(_)
            | Format::Iso20022(_)
            | Format::FastRules(_)
            | Format::Text(..)
            | Format::Events(_) => 0,
        }
    }
}

/// Formats whose messages become events by a mapping.
const MAPPED: [&str; 10] =
    ["fix", "fixed", "csv", "swift", "itch", "fast", "iso20022", "jsonl", "mail", "newsxml"];

/// Comments may stand before a header, for so many times the longest row.
const CSV_HEAD_ROWS: usize = 2;

/// Whether a mapping can be compiled for its format.
///
/// # Errors
/// What is wrong with it.
pub fn check(mapping: &Mapping) -> Result<(), Error> {
    if mapping.fast.is_some() {
        return mapping.check_fast();
    }
    Format::by(mapping.clone())?.decoder().map(drop)
}

impl Decoder {
    /// Decodes all whole messages of `block`; at the end of the source everything.
    pub fn decode(&mut self, block: &mut Block, source: u32, known: &Dictionary, how: &How) {
        block.reset();
        if block.base == 0 {
            match self {
                Decoder::Itch(d) => d.begin_source(),
                Decoder::Fast(d) => d.begin_source(),
                Decoder::FastRules(d) => d.begin_source(),
                _ => {}
            }
        }
        match block.walker.take() {
            Some(walker) => {
                let mut at_start = walker.clone();
                capture::decode(self, block, (source, known), (&mut at_start, &how.select));
                block.walker = Some(walker);
            }
            None => self.stretch(block, source, known),
        }
        if block.eof
            && let Decoder::Fast(d) = self
        {
            d.finish(block, source, known);
        }
        block.settle_names(known);
        if block.eof {
            block.decoded = block.bytes.len();
            block.mark_progress(block.base + block.bytes.len() as u64, true);
        }
        stamp::receive_times(block, how);
    }

    /// From now on notes what it does with each message by the mapping's rules, and why; gives those rules.
    pub fn explain(&mut self, format: &Format) -> Vec<Place> {
        if let Decoder::Fixed(d) = self {
            d.general_way();
        }
        let Some(mapping) = format.its_mapping() else { return Vec::new() };
        let Some(place) = self.explainer_place() else { return Vec::new() };
        place.insert(Box::new(Explainer::new(mapping))).places().collect()
    }

    /// What notes it.
    pub fn explainer(&mut self) -> Option<&mut Explainer> {
        self.explainer_place()?.as_deref_mut()
    }

    fn explainer_place(&mut self) -> Option<&mut Option<Box<Explainer>>> {
        match self {
            Decoder::Fix(d) => Some(d.explainer()),
            Decoder::Fixed(d) => Some(d.explainer()),
            Decoder::Csv(d) => Some(d.explainer()),
            Decoder::Swift(d) => Some(d.explainer()),
            Decoder::Iso20022(d) => Some(d.explainer()),
            Decoder::FastRules(d) => Some(d.explainer()),
            Decoder::Text(d) => Some(d.explainer()),
            Decoder::Itch(_) | Decoder::Fast(_) | Decoder::Events(_) => None,
        }
    }

    /// Takes over what the decoder before it knew of a source under way, when a mapping was loaded anew.
    pub fn go_on_from(&mut self, before: &mut Self) {
        match (self, before) {
            (Decoder::Itch(this), Decoder::Itch(before)) => this.go_on_from(before),
            (Decoder::Fast(this), Decoder::Fast(before)) => this.go_on_from(before),
            (Decoder::FastRules(this), Decoder::FastRules(before)) => this.go_on_from(before),
            _ => {}
        }
    }

    /// What a market-data handler has seen of the source in hand.
    pub fn handler_stats(&self) -> Option<Stats> {
        match self {
            Decoder::Fast(d) => Some(d.stats()),
            _ => None,
        }
    }

    /// Decodes a stretch of messages, behind what the block has already.
    pub fn stretch(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        match self {
            Decoder::Fix(d) => d.decode(block, source, known),
            Decoder::Fixed(d) => d.decode(block, source, known),
            Decoder::Csv(d) => d.decode(block, source, known),
            Decoder::Swift(d) => d.decode(block, source, known),
            Decoder::Itch(d) => d.decode(block, source, known),
            Decoder::Fast(d) => d.decode(block, source, known),
            Decoder::Iso20022(d) => d.decode(block, source, known),
            Decoder::FastRules(d) => d.decode(block, source, known),
            Decoder::Text(d) => d.decode(block, source, known),
            Decoder::Events(None) => jsonl::decode(block, source, known, &mut AsTheyAre),
            Decoder::Events(Some(by)) => jsonl::decode(block, source, known, &mut **by),
        }
    }
}
