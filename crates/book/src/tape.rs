//! Books of a tape, frame by frame.

use crate::books::{BookChange, BookOptions, Books};
use crate::error::Error;
use crate::losses::SourceBookPolicy;
use crate::state::State;
use unitape_model::{
    DefinitionTable, Event, EventField, EventKind, EventValue, FrameHeader, InstrumentId, NameKind, Position,
    TapeGap,
};

/// [`Books`] that learn names from the definitions on the tape.
pub struct TapeBooks {
    /// The names defined so far.
    pub names: DefinitionTable,
    /// The books.
    pub books: Books,
    /// The number of venues among which the venue for all venues was looked up.
    venues: u32,
    /// Losses of listings whose names no definition has given yet.
    unnamed_losses: Vec<UnresolvedLoss>,
    /// Instruments and venues among which these were looked for.
    name_counts: [u32; 2],
}

/// A loss that names an instrument or a venue which has no id yet.
struct UnresolvedLoss {
    instrument: Vec<u8>,
    venue: Option<Vec<u8>>,
    frame: Box<[u8]>,
}

/// Losses that are kept so; further ones are of their whole feed.
const UNNAMED_MAX: usize = 4096;

/// The venue that means all venues, as `bbo` events name it.
pub const ALL_VENUES: &str = "NBBO";

impl TapeBooks {
    /// Makes the empty books for the start of a tape.
    pub fn new(options: BookOptions) -> Self {
        Self::with_names(options, DefinitionTable::default())
    }

    /// Makes empty books with names that are already known. A tape whose first segments are gone needs these names.
    pub fn with_names(options: BookOptions, names: DefinitionTable) -> Self {
        let mut this = Self {
            names,
            books: Books::new(options),
            venues: 0,
            unnamed_losses: Vec::new(),
            name_counts: [0; 2],
        };
        let sources: Vec<u32> = this.names.sources().map(|(id, _)| id).collect();
        sources.into_iter().for_each(|id| this.define_source(id));
        this
    }

    /// Marks the books of all feeds that are defined by now: a part of the tape is missing, its beginning or a damaged part.
    pub fn lose_part(&mut self) -> &[BookChange] {
        self.books.on_missing_part_of_all()
    }

    /// Applies the next frame of the tape, bookkeeping as well, and returns the changes.
    ///
    /// # Errors
    /// Fails as [`DefinitionTable::admit_frame`] does: the tape is foreign or damaged.
    #[inline]
    pub fn on_frame(&mut self, position: Position, frame: &[u8]) -> Result<&[BookChange], Error> {
        let event = self.names.admit_frame(frame);
        let event = event.map_err(|flaw| Error::Frame { position, message: flaw.to_string() })?;
        let Some(event) = event else { return Ok(&[]) };
        if self.venues != self.names.len(NameKind::Venue) {
            self.find_all_venues();
        }
        if FrameHeader::read(frame).is_meta() {
            if let (EventKind::Source, Some(EventValue::UInt(id))) =
                (event.kind(), event.field(EventField::Index, &mut [0; 36]))
            {
                self.define_source(id as u32);
            }
            return Ok(&[]);
        }
        if event.kind() == EventKind::Quarantine {
            return Ok(self.on_quarantine(&event));
        }
        if !self.unnamed_losses.is_empty() {
            self.name_losses();
        }
        Ok(self.books.on_event(&event))
    }

    #[cold]
    fn define_source(&mut self, id: u32) {
        let Some(source) = self.names.source(id) else { return };
        let event = Event::new(&source.frame);
        let books = event.as_ref().and_then(|e| e.unmapped_fields().find(|(name, _)| *name == "books"));
        let kind = books
            .map_or(SourceBookPolicy::Plain, |(_, json)| SourceBookPolicy::from_word(json.trim_matches('"')));
        self.books.define_source(id, &source.feed, kind);
    }

    /// Applies a quarantined message. Its instrument and venue are in unmapped fields.
    #[cold]
    fn on_quarantine(&mut self, event: &Event<'_>) -> &[BookChange] {
        match TapeGap::from_event(event) {
            Some(gap) if gap.is_loss() => return self.books.on_missing_part(event.source()),
            Some(_) => return &[],
            None => {}
        }
        let (mut instrument, mut venue) = (None, None);
        for (name, json) in event.unmapped_fields() {
            match name {
                "books" if json == "false" => return &[],
                "instr" => instrument = decode_name(json),
                "venue" => venue = decode_name(json),
                _ => {}
            }
        }
        let id = |dict, name: &Option<Vec<u8>>| name.as_ref().map(|name| self.names.get(dict, name));
        match (id(NameKind::Instrument, &instrument), id(NameKind::Venue, &venue)) {
            (None, _) => self.books.on_loss(event, None, None),
            (Some(Some(instrument)), None) => self.books.on_loss(event, None, Some(InstrumentId(instrument))),
            (Some(Some(instrument)), Some(Some(venue))) => {
                self.books.on_loss(event, u16::try_from(venue).ok(), Some(InstrumentId(instrument)))
            }
            // It has no book. The first event of an instrument comes after its definitions.
            _ if self.unnamed_losses.len() < UNNAMED_MAX => {
                let instrument = instrument.unwrap_or_default();
                self.unnamed_losses.push(UnresolvedLoss { instrument, venue, frame: event.bytes().into() });
                &[]
            }
            _ => self.books.on_loss(event, None, None),
        }
    }

    /// Counts the losses (quarantined messages) of instruments that have no book. Counts only those of `instrument` and
    /// `venue` where they are given.
    pub fn losses_without_book(&self, instrument: Option<&[u8]>, venue: Option<&[u8]>) -> u64 {
        let is_chosen = |loss: &&UnresolvedLoss| {
            instrument.is_none_or(|name| name == loss.instrument)
                && venue.is_none_or(|name| loss.venue.as_deref().is_none_or(|venue| venue == name))
        };
        let unnamed = self.unnamed_losses.iter().filter(is_chosen).count() as u64;
        let id = |kind, name: Option<&[u8]>| name.map(|name| self.names.get(kind, name));
        match (id(NameKind::Instrument, instrument), id(NameKind::Venue, venue)) {
            // A name that the tape does not have.
            (Some(None), _) | (_, Some(None)) => unnamed,
            (instrument, venue) => {
                let venue = venue.flatten().and_then(|id| u16::try_from(id).ok());
                unnamed + self.books.losses_without_book(instrument.flatten().map(InstrumentId), venue)
            }
        }
    }

    /// Looks up the names of losses among the new names.
    fn name_losses(&mut self) {
        let name_counts = [NameKind::Instrument, NameKind::Venue].map(|dict| self.names.len(dict));
        if self.name_counts == name_counts {
            return;
        }
        self.name_counts = name_counts;
        let mut losses = std::mem::take(&mut self.unnamed_losses);
        losses.retain(|loss| {
            let Some(instrument) = self.names.get(NameKind::Instrument, &loss.instrument) else {
                return true;
            };
            let venue = loss.venue.as_ref().map(|venue| self.names.get(NameKind::Venue, venue));
            let (Some(event), None | Some(Some(_))) = (Event::new(&loss.frame), venue) else { return true };
            let venue = venue.flatten().and_then(|id| u16::try_from(id).ok());
            self.books.on_loss(&event, venue, Some(InstrumentId(instrument)));
            false
        });
        self.unnamed_losses = losses;
    }

    #[cold]
    fn find_all_venues(&mut self) {
        self.venues = self.names.len(NameKind::Venue);
        let id = self.names.get(NameKind::Venue, ALL_VENUES.as_bytes());
        if let Some(venue) = id.and_then(|id| u16::try_from(id).ok()) {
            self.books.set_all_venues(venue);
        }
    }
}

/// Decodes a JSON string as unitape writes names.
fn decode_name(json: &str) -> Option<Vec<u8>> {
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let c = match c {
            '\\' => match characters.next()? {
                'b' => '\u{8}',
                't' => '\t',
                'n' => '\n',
                'f' => '\u{c}',
                'r' => '\r',
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                other => other,
            },
            other => other,
        };
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(out)
}

crate::state::state!(UnresolvedLoss { instrument, venue, frame });

impl TapeBooks {
    /// Puts the state of the books after the last frame into bytes; equal frames give equal bytes. The names are not in it.
    pub fn encode_state(&self, out: &mut Vec<u8>) {
        self.books.encode(out);
        self.venues.encode(out);
        self.unnamed_losses.encode(out);
        self.name_counts.encode(out);
        NameKind::ALL.map(|dict| self.names.len(dict)).encode(out);
    }

    /// Reads books from their state and the names that the tape had defined by then. Returns `None` if the bytes are
    /// not such a state, or if the books have other options or names. The caller must have compared the bytes with a
    /// checksum, because wrong prices or quantities cannot be recognised.
    pub fn decode_state(options: BookOptions, names: DefinitionTable, mut input: &[u8]) -> Option<Self> {
        let books = Books::decode(options, &mut input)?;
        let this = Self {
            names,
            books,
            venues: State::decode(&mut input)?,
            unnamed_losses: State::decode(&mut input)?,
            name_counts: State::decode(&mut input)?,
        };
        let counts: [u32; NameKind::COUNT] = State::decode(&mut input)?;
        let has_same_names = counts == NameKind::ALL.map(|dict| this.names.len(dict));
        (has_same_names && input.is_empty()).then_some(this)
    }
}
