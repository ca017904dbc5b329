//! Who and what is in the market: venues, instruments, members, and the pieces of FIX that never change for them.
//!
//! Everything here is invented. The ISINs have right check digits and belong to nobody.

use crate::rng::Rng;
use unitape_model::Side;

/// The venues, by MIC; each is one FIX session.
pub const VENUES: [&str; 3] = ["XLON", "CHIX", "BATE"];

/// Owners of the background flow.
pub(crate) const OWNERS: usize = 40;
/// Owners who only act in planted scenes.
pub(crate) const CAST: usize = 16;

/// An instrument; its prices are whole ticks.
#[derive(Debug, Clone)]
pub struct Instrument {
    /// Short name on the wire.
    pub symbol: &'static str,
    /// ISIN with its check digit.
    pub isin: String,
    /// ISO currency.
    pub ccy: &'static str,
    /// Size of a tick in units of 10^-`decimals`.
    pub tick: i64,
    /// Decimal places of a price.
    pub decimals: u32,
    /// Price at the start, in ticks.
    pub reference: i64,
}

impl Instrument {
    /// A price in ticks as an exact decimal in canonical form: no trailing zeros after the point.
    pub fn decimal(&self, px_ticks: i64) -> String {
        let scale = 10i64.pow(self.decimals);
        let units = px_ticks * self.tick;
        let text = format!("{}.{:0width$}", units / scale, units % scale, width = self.decimals as usize);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// A trader with the account he trades for.
#[derive(Debug)]
pub(crate) struct Member {
    pub owner: String,
    /// `453` and all below it, then `1`.
    pub parties: Vec<u8>,
    /// `528` and, for an algorithm, `847`.
    pub capacity: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub instruments: Vec<Instrument>,
    /// Background members first, two per owner, then one for each of the cast.
    pub members: Vec<Member>,
    /// `[instrument][side]`: the members of the background who may trade it on that side.
    traders: Vec<[Vec<u16>; 2]>,
    /// `55 48 22 207` of each book.
    listings: Vec<Vec<u8>>,
}

impl World {
    /// An owner of the background trades an instrument on one side only, dealt here from the seed. So the background
    /// cannot wash by accident: it would need one owner on both sides.
    pub fn new(rng: &mut Rng) -> World {
        let instruments: Vec<Instrument> =
            TABLE.iter().enumerate().map(|(n, row)| instrument(n, row)).collect();
        let mut members: Vec<Member> = (0..OWNERS * 2).map(background_member).collect();
        members.extend((0..CAST).map(cast_member));

        let traders = instruments.iter().map(|_| {
            let mut owners: Vec<u16> = (0..OWNERS as u16).collect();
            rng.shuffle(&mut owners);
            let (buy, sell) = owners.split_at(OWNERS / 2);
            [buy, sell].map(|side| side.iter().flat_map(|owner| [owner * 2, owner * 2 + 1]).collect())
        });
        let traders = traders.collect();
        let listing = |venue: &str, i: &Instrument| {
            format!("55={}\x0148={}\x0122=4\x01207={venue}\x01", i.symbol, i.isin).into_bytes()
        };
        let listings =
            VENUES.iter().flat_map(|venue| instruments.iter().map(move |i| listing(venue, i))).collect();
        World { instruments, members, traders, listings }
    }

    pub fn books(&self) -> usize {
        self.listings.len()
    }

    pub fn book(&self, venue: usize, instrument: usize) -> usize {
        venue * self.instruments.len() + instrument
    }

    pub fn venue_of(&self, book: usize) -> usize {
        book / self.instruments.len()
    }

    pub fn instrument_index(&self, book: usize) -> usize {
        book % self.instruments.len()
    }

    pub fn instrument_of(&self, book: usize) -> &Instrument {
        &self.instruments[self.instrument_index(book)]
    }

    pub fn listing(&self, book: usize) -> &[u8] {
        &self.listings[book]
    }

    pub fn traders(&self, instrument: usize, side: Side) -> &[u16] {
        &self.traders[instrument][side.index()]
    }

    pub fn cast(&self, n: usize) -> u16 {
        assert!(n < CAST, "the cast has {CAST} owners");
        (OWNERS * 2 + n) as u16
    }
}

/// The check digit of the first eleven characters of an ISIN (ISO 6166: letters count 10 to 35, then the Luhn sum).
pub fn isin_check_digit(body: &str) -> Option<u32> {
    let mut digits = Vec::with_capacity(22);
    for c in body.chars() {
        let value = c.to_digit(36).filter(|_| !c.is_ascii_lowercase())?;
        if value >= 10 {
            digits.push(value / 10);
        }
        digits.push(value % 10);
    }
    let doubled = |d: u32| if d >= 5 { 2 * d - 9 } else { 2 * d };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(n, &d)| if n % 2 == 0 { doubled(d) } else { d }).sum();
    (body.len() == 11).then_some((10 - sum % 10) % 10)
}

fn instrument(n: usize, &(symbol, country, ccy, tick, decimals, reference): &Row) -> Instrument {
    let body = format!("{country}00SIM00{:02}", n + 1);
    let check = isin_check_digit(&body).expect("our own table is well formed");
    Instrument { symbol, isin: format!("{body}{check}"), ccy, tick, decimals, reference }
}

fn background_member(n: usize) -> Member {
    let (owner, desk) = (n / 2, n % 2);
    let capacity = if owner % 3 == 0 { "P" } else { "A" };
    let algo = (desk == 1).then_some(1001 + owner % 6);
    let who = format!("{:02}{:02}", owner + 1, desk + 1);
    member(owner % 20, format!("OWN{:02}", owner + 1), &format!("T{who}"), &format!("A{who}"), capacity, algo)
}

fn cast_member(n: usize) -> Member {
    let who = format!("{:02}", n + 1);
    member(n % 20, format!("WSH{who}"), &format!("TW{who}"), &format!("AW{who}"), "P", None)
}

fn member(
    firm: usize,
    owner: String,
    trader: &str,
    acct: &str,
    capacity: &str,
    algo: Option<usize>,
) -> Member {
    let party = |id: &str, role: u32| format!("448={id}\x01447=D\x01452={role}\x01");
    let (firm, client, trader) =
        (party(&format!("F{:02}", firm + 1), 1), party(&owner, 3), party(trader, 11));
    let parties = format!("453=3\x01{firm}{client}{trader}1={acct}\x01").into_bytes();
    let algo = algo.map(|id| format!("847={id}\x01")).unwrap_or_default();
    Member { owner, parties, capacity: format!("528={capacity}\x01{algo}").into_bytes() }
}

type Row = (&'static str, &'static str, &'static str, i64, u32, i64);

/// Symbol, country, currency, tick, decimals, reference in ticks. A tick is 0.5 to 2 basis points, so that prices both
/// inside and just outside a tolerance of 5 exist for each.
const TABLE: [Row; 12] = [
    ("ALDN", "GB", "GBP", 5, 1, 5_001),
    ("BRKW", "GB", "GBP", 1, 2, 7_204),
    ("CARN", "GB", "GBP", 2, 1, 6_120),
    ("DUNE", "GB", "GBP", 1, 1, 9_873),
    ("ELMS", "IE", "EUR", 5, 3, 20_251),
    ("FJRD", "NL", "EUR", 2, 2, 17_310),
    ("GRAN", "FR", "EUR", 1, 2, 11_046),
    ("HALD", "DE", "EUR", 5, 3, 8_460),
    ("INVR", "GB", "GBP", 25, 2, 5_328),
    ("JURA", "FR", "EUR", 1, 3, 15_999),
    ("KESW", "GB", "GBP", 1, 0, 6_700),
    ("LOCH", "GB", "GBP", 5, 4, 12_480),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A consumer that checks ISINs would refuse every message of an instrument with a wrong digit.
    #[test]
    fn check_digits_follow_iso_6166() {
        for isin in ["US0378331005", "GB0002634946", "AU0000XVGZA3", "GB00B03MLX29"] {
            assert_eq!(isin_check_digit(&isin[..11]), isin[11..].parse().ok(), "{isin}");
        }
        assert_eq!(isin_check_digit("us037833100"), None);
        assert_eq!(isin_check_digit("US0378"), None);
    }

    /// One owner on both sides of an instrument would let the background wash by accident.
    #[test]
    fn no_owner_trades_both_sides() {
        let world = World::new(&mut Rng::new(11));
        for instrument in 0..world.instruments.len() {
            let owners = |side| -> std::collections::BTreeSet<&str> {
                let members = world.traders(instrument, side).iter();
                members.map(|&m| world.members[m as usize].owner.as_str()).collect()
            };
            let (buy, sell) = (owners(Side::Buy), owners(Side::Sell));
            assert_eq!((buy.len(), sell.len()), (OWNERS / 2, OWNERS / 2));
            assert!(buy.is_disjoint(&sell));
        }
    }

    /// A trailing zero left in a canonical decimal makes equal prices look different to whoever compares text.
    #[test]
    fn decimals_are_canonical() {
        let world = World::new(&mut Rng::new(1));
        let decimal = |symbol: &str, px| {
            world.instruments.iter().find(|i| i.symbol == symbol).expect("listed").decimal(px)
        };
        assert_eq!(decimal("ALDN", 5001), "2500.5");
        assert_eq!(decimal("ALDN", 5000), "2500");
        assert_eq!(decimal("KESW", 6700), "6700");
        assert_eq!(decimal("LOCH", 12_481), "6.2405");
        assert_eq!(decimal("INVR", 5_329), "1332.25");
    }
}
