//! Who trades, and what: names, and the numbers that others use for them.

use unitape_model::{Dictionary, InstrumentId, NameKind};

use crate::day::isin_check_digit;
use crate::day::names::lettered;
use crate::rng::Rng;

/// Venues of the stream. An instrument's number gives its first venue; busy instruments are listed at two more.
const VENUES: [&str; 8] = ["XLON", "XPAR", "XETR", "XAMS", "XMIL", "CHIX", "BATE", "TRQX"];

/// Members that traders belong to.
pub(super) const FIRMS: u32 = 120;

/// A trader and the identities that orders of it have. Each is an id of the dictionary.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraderIdentity {
    pub trader: u32,
    pub acct: u32,
    pub owner: u32,
    pub firm: u32,
    pub algo: u32,
}

/// An instrument at a venue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub instrument: InstrumentId,
    pub venue: u32,
    /// Size of a tick, in 1e-9 units.
    pub tick_nano: i64,
    /// The price that orders are placed around while there is no best price, in ticks.
    pub reference: i64,
}

/// All traders, instruments and names of the stream.
#[derive(Debug)]
pub(super) struct Population {
    pub names: Dictionary,
    pub traders: Vec<TraderIdentity>,
    pub listings: Vec<Listing>,
    /// First listing of each instrument; it has those up to the next one's.
    pub first_listing: Vec<u32>,
}

impl Population {
    pub fn new(instruments: u32, traders: u32, rng: &mut Rng) -> Self {
        let mut names = Dictionary::default();
        let mut name = |dict, text: &[u8]| names.intern(dict, text).expect("a short name, and few").0;
        for venue in VENUES {
            name(NameKind::Venue, venue.as_bytes());
        }
        for firm in 0..FIRMS {
            name(NameKind::Firm, &lettered::<5>(b'F', firm.into(), 10));
        }
        for algo in 0..ALGOS {
            name(NameKind::Algo, &lettered::<3>(b'A', algo.into(), 10));
        }
        // Two of nine traders act for the owner of the one before: whom they trade with is then of interest.
        let mut owner = 0;
        let traders = (0..traders).map(|n| {
            if !matches!(n % 9, 4 | 7) {
                owner = name(NameKind::Owner, &lettered::<6>(b'O', n.into(), 10));
            }
            TraderIdentity {
                trader: name(NameKind::Trader, &lettered::<6>(b'T', n.into(), 10)),
                acct: name(NameKind::Account, &lettered::<8>(b'C', n.into(), 10)),
                owner,
                firm: 1 + n % FIRMS,
                algo: if n.is_multiple_of(3) { 1 + n % ALGOS } else { 0 },
            }
        });
        let traders = traders.collect();
        let (mut listings, mut first_listing) = (Vec::new(), Vec::new());
        for n in 0..instruments {
            let national = format!("XS{n:09}");
            let digit = isin_check_digit(&national).expect("eleven letters and digits");
            let isin = format!("{national}{digit}");
            let instrument = InstrumentId(name(NameKind::Instrument, isin.as_bytes()));
            first_listing.push(listings.len() as u32);
            let tick_nano = rng.pick(&[1_000_000, 5_000_000, 10_000_000, 50_000_000]);
            let reference = rng.between(400, 40_000);
            let venues = if n < instruments / 10 { 3 } else { 1 };
            listings.extend((0..venues).map(|venue_index| {
                let venue = if venue_index == 0 { n % 5 } else { 4 + venue_index };
                Listing { instrument, venue: 1 + venue, tick_nano, reference }
            }));
        }
        Self { names, traders, listings, first_listing }
    }

    /// Draws a listing; a few instruments get most of the draws.
    pub fn listing(&self, rng: &mut Rng) -> u32 {
        let instrument_index = draw_uneven(self.first_listing.len() as u64, 4, rng) as usize;
        let first = self.first_listing[instrument_index];
        let end =
            self.first_listing.get(instrument_index + 1).map_or(self.listings.len() as u32, |next| *next);
        first + rng.below(u64::from(end - first)) as u32
    }
}

/// Draws a number below `bound`. More rounds make small numbers more likely: with four rounds a third of the draws are
/// in the lowest hundredth, with three rounds a sixth.
pub(super) fn draw_uneven(bound: u64, rounds: u32, rng: &mut Rng) -> u64 {
    (0..rounds).fold(bound - 1, |most, _| rng.below(most + 1))
}

/// Programs that trade; a third of the traders use one.
const ALGOS: u32 = 24;
