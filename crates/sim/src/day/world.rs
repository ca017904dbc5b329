//! The world of a simulated day: venues, instruments, members, accounts, and their names.
//!
//! Everything here is invented. The ISINs have right check digits and belong to nobody.

use std::collections::{BTreeMap, BTreeSet};
use unitape_model::{Dictionary, InstrumentId, NameKind, Side};

use super::config::{INSTRUMENTS_MAX, SimConfig};
use super::names;
use crate::error::Error;
use crate::rng::Rng;

/// An instrument; its prices are whole ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedInstrument {
    /// ISIN with its check digit.
    pub isin: String,
    /// Short name.
    pub symbol: String,
    /// ISO currency.
    pub ccy: &'static str,
    /// Size of a tick in units of 1e-9.
    pub tick_nano: i64,
    /// Decimal places that show every multiple of the tick.
    pub decimals: u32,
    /// Previous close, which is also where the day begins, in ticks.
    pub reference: i64,
    /// Average daily volume, shares.
    pub adv: i64,
    /// 1 for the first half of the list, else 2.
    pub tier: u8,
}

impl ListedInstrument {
    /// Converts a price in ticks to units of 1e-9.
    #[inline]
    pub fn nano(&self, ticks: i64) -> i64 {
        ticks * self.tick_nano
    }

    /// Ticks that `bps` basis points of `px` ticks are, rounded down.
    pub(crate) fn ticks_of_bps(px: i64, bps: i64) -> i64 {
        px * bps / 10_000
    }
}

/// The link of an instrument to its underlying, of which one unit of it has one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContractTerms {
    pub underlying: InstrumentId,
    /// Days from the start of each trading day to the expiry, if the instrument expires: it stands for a series, of which
    /// the contract of the day is traded.
    pub expiry_days: Option<i32>,
}

/// A market member: a trader with an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketMember {
    /// Index of the beneficial owner.
    pub owner: u32,
    /// Index of the firm.
    pub firm: u32,
    /// Number of the algorithm, from 1; 0 if the member has no algorithm.
    pub algo: u32,
    /// Agent, not principal.
    pub agency: bool,
}

/// All of them.
#[derive(Debug)]
pub struct SimulatedMarket {
    /// Venues by MIC.
    pub venues: Vec<&'static str>,
    /// Instruments; book number `b` is instrument `b % instruments` on venue `b / instruments`.
    pub instruments: Vec<ListedInstrument>,
    /// Members; the first [`SimulatedMarket::crowd`] of them make the background, the others act in scenes.
    pub members: Vec<MarketMember>,
    /// The number of members that make the background.
    pub crowd: u32,
    /// Group of each owner, as an id of [`NameKind::Owner`].
    pub groups: Vec<u32>,
    /// The strength of the link to the group, in hundredths, for the owners whose `party` event has one.
    pub link_scores: BTreeMap<u32, i64>,
    /// The members whose executions name the firm of the counterparty.
    disclosing_members: BTreeSet<u32>,
    /// The instruments that are linked to others.
    contracts: BTreeMap<InstrumentId, ContractTerms>,
    /// Accounts in payments.
    pub pay_accounts: u32,
    /// Holder and BIC of the accounts in payments that have no usual ones.
    pay_parties: BTreeMap<u32, (String, String)>,
    names: Dictionary,
    algos: u32,
    firms: u32,
    salt: u64,
    /// Before the first number of owners, traders, accounts and algorithms.
    numbers_from: u32,
}

/// MICs of the venues; a day uses the first few.
pub const MICS: [&str; 6] = ["XLON", "CHIX", "BATE", "TRQX", "AQXE", "XPAR"];
const FIRMS: u32 = 24;
const DESKS_OF_A_FIRM: u32 = 2;

impl SimulatedMarket {
    pub(crate) fn new(config: &SimConfig, rng: &mut Rng) -> SimulatedMarket {
        let SimConfig { venues, instruments, market, .. } = *config;
        let crowd = config.background_traders();
        let first = market as usize * INSTRUMENTS_MAX as usize;
        let mut world = SimulatedMarket {
            venues: MICS[..venues].to_vec(),
            instruments: (0..instruments).map(|n| listed(first + n, n * 2 < instruments, rng)).collect(),
            members: Vec::new(),
            crowd,
            groups: Vec::new(),
            link_scores: BTreeMap::new(),
            disclosing_members: BTreeSet::new(),
            contracts: BTreeMap::new(),
            pay_accounts: 0,
            pay_parties: BTreeMap::new(),
            names: Dictionary::default(),
            algos: 0,
            firms: FIRMS,
            salt: rng.bits(),
            numbers_from: market * 1_000_000,
        };
        for venue in &MICS[..venues] {
            world.name(NameKind::Venue, venue);
        }
        for n in 0..instruments {
            let isin = world.instruments[n].isin.clone();
            world.name(NameKind::Instrument, &isin);
        }
        for firm in 1..=FIRMS {
            world.name(NameKind::Firm, &format!("F{firm:02}"));
        }
        // Two members an owner; every third owner shares a group with the one before it.
        for m in 0..crowd {
            if m % 2 == 0 {
                let owner = world.add_owner();
                if owner % 3 == 2 {
                    world.groups[owner as usize] = world.groups[owner as usize - 1];
                }
            }
            let owner = world.groups.len() as u32 - 1;
            world.add_member(owner, m % 4 == 3, m % 3 != 0);
        }
        world
    }

    /// Adds a member for a single scene: trader, account and owner that do nothing else.
    pub(crate) fn cast(&mut self, algo: bool) -> u32 {
        let owner = self.add_owner();
        self.add_member(owner, algo, false)
    }

    /// Links an instrument to its underlying.
    pub(crate) fn link_instrument(&mut self, instr: InstrumentId, terms: ContractTerms) {
        self.contracts.insert(instr, terms);
    }

    /// Returns the link of an instrument, if it has one.
    pub(crate) fn contract(&self, instr: InstrumentId) -> Option<ContractTerms> {
        self.contracts.get(&instr).copied()
    }

    /// Lets the executions of a member name the firm of the counterparty.
    pub(crate) fn disclose_counterparties(&mut self, member: u32) {
        self.disclosing_members.insert(member);
    }

    /// Returns the firm of the counterparty, as an id of [`NameKind::Firm`], if the executions of the member name it.
    pub(crate) fn disclosed_firm(&self, member: u32, cpty: u32) -> Option<u32> {
        self.disclosing_members.contains(&member).then(|| self.members[cpty as usize].firm + 1)
    }

    /// Adds a member whose owner belongs to the same group.
    pub(crate) fn cast_linked(&mut self, member: u32) -> u32 {
        let linked = self.cast(false);
        let group = self.groups[self.members[member as usize].owner as usize];
        let owner = self.members[linked as usize].owner;
        self.groups[owner as usize] = group;
        linked
    }

    /// Adds a member whose owner is linked to the same group, with a score in hundredths.
    pub(crate) fn cast_scored(&mut self, member: u32, link_score: i64) -> u32 {
        let linked = self.cast_linked(member);
        self.link_scores.insert(self.members[linked as usize].owner, link_score);
        linked
    }

    /// Adds two members of a firm that has no others: one deals for its own account, the other one for its clients.
    pub(crate) fn cast_house(&mut self) -> [u32; 2] {
        self.firms += 1;
        let id = self.name(NameKind::Firm, &format!("F{:02}", self.firms));
        assert_eq!(id, self.firms);
        let members = [self.cast(false), self.cast(false)];
        members.iter().for_each(|&member| self.members[member as usize].firm = id - 1);
        self.members[members[1] as usize].agency = true;
        members
    }

    /// Accounts that pay and are paid.
    pub(crate) fn add_pay_accounts(&mut self, n: u32) {
        for _ in 0..n {
            self.pay_accounts += 1;
            let body = 10_000_000 + self.numbers_from + self.pay_accounts;
            let account = iban(body);
            let id = self.name(NameKind::Account, &account);
            assert_eq!(id, self.members.len() as u32 + self.pay_accounts, "accounts of payments come last");
        }
    }

    /// Gives an account in payments another holder and another bank.
    pub(crate) fn set_pay_party(&mut self, account: u32, holder: String, bic: String) {
        self.pay_parties.insert(account, (holder, bic));
    }

    fn add_owner(&mut self) -> u32 {
        let owner = self.groups.len() as u32;
        let id = self.name(NameKind::Owner, &format!("OWN{:05}", self.numbers_from + owner + 1));
        assert_eq!(id, owner + 1);
        self.groups.push(id);
        owner
    }

    fn add_member(&mut self, owner: u32, algo: bool, agency: bool) -> u32 {
        let member = self.members.len() as u32;
        let algo = if algo {
            self.algos += 1;
            let number = self.numbers_from + self.algos;
            self.name(NameKind::Algo, &(1000 + number).to_string())
        } else {
            0
        };
        self.members.push(MarketMember { owner, firm: owner % FIRMS, algo, agency });
        let number = self.numbers_from + member + 1;
        self.name(NameKind::Trader, &format!("T{number:05}"));
        self.name(NameKind::Account, &format!("A{number:05}"));
        member
    }

    /// Returns the desk of a member, by its index. Each firm has two desks.
    pub fn desk_of(&self, member: u32) -> u32 {
        let m = &self.members[member as usize];
        m.firm * DESKS_OF_A_FIRM + m.owner / FIRMS % DESKS_OF_A_FIRM
    }

    /// Returns the number of desks.
    pub fn desks(&self) -> u32 {
        self.firms * DESKS_OF_A_FIRM
    }

    /// Returns the number of firms.
    pub fn firms(&self) -> u32 {
        self.firms
    }

    pub(crate) fn name(&mut self, dict: NameKind, name: &str) -> u32 {
        self.names.intern(dict, name.as_bytes()).expect("names of ours are short and few").0
    }

    /// Adds a name that comes from outside; fails if it is too long.
    pub(crate) fn name_checked(&mut self, dict: NameKind, name: &str) -> Result<(), Error> {
        match self.names.intern(dict, name.as_bytes()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Control(format!("{name:?} is no name"))),
        }
    }

    /// Returns the names by the ids that frames carry: an index plus one.
    pub fn names(&self) -> &Dictionary {
        &self.names
    }

    /// Returns the name of the index.
    pub(crate) fn index_name(&self) -> String {
        match self.numbers_from / 1_000_000 {
            0 => "UTIX".to_owned(),
            market => format!("UTIX{market}"),
        }
    }

    /// Counts the books.
    pub fn books(&self) -> usize {
        self.venues.len() * self.instruments.len()
    }

    /// Returns the book of an instrument on a venue.
    pub fn book(&self, venue: usize, instr: InstrumentId) -> u32 {
        (venue * self.instruments.len() + instr.index()) as u32
    }

    /// Returns the index of a book's venue.
    #[inline]
    pub fn venue_of(&self, book: u32) -> usize {
        book as usize / self.instruments.len()
    }

    /// Returns the index of a book's instrument.
    #[inline]
    pub fn instr_of(&self, book: u32) -> InstrumentId {
        InstrumentId(book % self.instruments.len() as u32)
    }

    /// Returns the id of an instrument in frames, as [`SimulatedMarket::names`] assigns it.
    #[inline]
    pub fn tape_id(instr: InstrumentId) -> InstrumentId {
        InstrumentId(instr.0 + 1)
    }

    /// Iterates over all instruments in order.
    pub fn instrument_ids(&self) -> impl Iterator<Item = InstrumentId> + use<> {
        (0..self.instruments.len() as u32).map(InstrumentId)
    }

    /// Returns the instrument of a book.
    #[inline]
    pub fn listed(&self, book: u32) -> &ListedInstrument {
        &self.instruments[self.instr_of(book).index()]
    }

    /// Returns the only side on which a background member trades an instrument. It is the same for the member's whole
    /// group. The background can therefore neither wash, spoof nor layer by accident: each of these needs both sides.
    #[inline]
    pub fn side_of(&self, member: u32, instr: InstrumentId) -> Side {
        let group = self.groups[self.members[member as usize].owner as usize];
        let mut z = self.salt ^ (u64::from(group) << 32 | u64::from(instr.0));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        if (z ^ (z >> 31)) & 1 == 0 { Side::Buy } else { Side::Sell }
    }

    /// Returns the MIC of a book's venue.
    pub fn venue_name(&self, book: u32) -> &'static str {
        self.venues[self.venue_of(book)]
    }

    /// Returns the ISIN of a book's instrument.
    pub fn isin(&self, book: u32) -> &str {
        &self.listed(book).isin
    }

    /// Returns the name of a member's owner.
    pub fn owner_name(&self, member: u32) -> &str {
        self.text(NameKind::Owner, self.members[member as usize].owner + 1)
    }

    /// Returns the name of the group to which a member's owner belongs.
    pub fn group_name(&self, member: u32) -> &str {
        self.text(NameKind::Owner, self.groups[self.members[member as usize].owner as usize])
    }

    /// Returns the name of an owner by index.
    pub fn owner_of(&self, owner: u32) -> &str {
        self.text(NameKind::Owner, owner + 1)
    }

    /// Returns the name of an owner's group by the owner's index.
    pub fn group_of(&self, owner: u32) -> &str {
        self.text(NameKind::Owner, self.groups[owner as usize])
    }

    /// Returns the name of a member's trader.
    pub fn trader_name(&self, member: u32) -> &str {
        self.text(NameKind::Trader, member + 1)
    }

    /// Returns the name of a member's account.
    pub fn account_name(&self, member: u32) -> &str {
        self.text(NameKind::Account, member + 1)
    }

    /// Returns the name of a member's firm.
    pub fn firm_name(&self, member: u32) -> &str {
        self.text(NameKind::Firm, self.members[member as usize].firm + 1)
    }

    /// Returns the name of a member's algorithm, if the member has an algorithm.
    pub fn algo_name(&self, member: u32) -> Option<&str> {
        match self.members[member as usize].algo {
            0 => None,
            id => Some(self.text(NameKind::Algo, id)),
        }
    }

    /// Returns the IBAN of an account in payments.
    pub fn pay_account(&self, index: u32) -> &str {
        self.text(NameKind::Account, self.pay_account_id(index))
    }

    /// Returns the id in [`NameKind::Account`] of an account in payments.
    pub fn pay_account_id(&self, index: u32) -> u32 {
        self.members.len() as u32 + index + 1
    }

    /// Returns the name of the holder of an account in payments.
    pub fn pay_holder(&self, index: u32) -> String {
        self.pay_parties.get(&index).map_or_else(|| names::holder(index), |party| party.0.clone())
    }

    /// Returns the BIC of the bank of an account in payments.
    pub fn pay_bic(&self, index: u32) -> String {
        self.pay_parties.get(&index).map_or_else(|| names::bic(index), |party| party.1.clone())
    }

    fn text(&self, dict: NameKind, id: u32) -> &str {
        self.names.name(dict, id).expect("the world names everybody in it")
    }
}

fn listed(n: usize, first_half: bool, rng: &mut Rng) -> ListedInstrument {
    // A tick is 1 to 3 basis points, so that prices both inside and just outside a tolerance exist for each.
    const TICKS: [(i64, u32); 7] = [
        (500_000, 4),
        (1_000_000, 3),
        (2_000_000, 3),
        (5_000_000, 3),
        (10_000_000, 2),
        (20_000_000, 2),
        (50_000_000, 2),
    ];
    const PLACES: [(&str, &str); 5] =
        [("GB", "GBP"), ("FR", "EUR"), ("DE", "EUR"), ("NL", "EUR"), ("IE", "EUR")];
    let (country, ccy) = PLACES[n % PLACES.len()];
    let (tick_nano, decimals) = rng.pick(&TICKS);
    let body = format!("{country}00S{:06}", n + 1);
    let check = isin_check_digit(&body).expect("a body of ours is well formed");
    let letters: String =
        [n / 676 % 26, n / 26 % 26, n % 26].map(|l| (b'A' + l as u8) as char).iter().collect();
    ListedInstrument {
        isin: format!("{body}{check}"),
        symbol: if n < 17_576 { letters } else { format!("{letters}{}", n / 17_576) },
        ccy,
        tick_nano,
        decimals,
        reference: rng.between(3_500, 9_500),
        adv: rng.between(1, 50) * 100_000,
        tier: if first_half { 1 } else { 2 },
    }
}

/// Computes the check digit of the first eleven characters of an ISIN (ISO 6166: letters count 10 to 35, then the Luhn
/// sum).
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

/// Makes an IBAN of a country that does not exist (`XX`) with right check digits (ISO 13616: mod 97 is 1).
fn iban(number: u32) -> String {
    let body = format!("UTPE{number:014}");
    // XX is 3333, the check digits 00 come last; letters count from A = 10.
    let rest = body.bytes().chain(*b"XX00").fold(0u64, |rest, c| match c {
        b'0'..=b'9' => (rest * 10 + u64::from(c - b'0')) % 97,
        _ => (rest * 100 + u64::from(c - b'A') + 10) % 97,
    });
    format!("XX{:02}{body}", 98 - rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(venues: usize, instruments: usize, crowd: u32) -> SimulatedMarket {
        let config = SimConfig { venues, instruments, traders: Some(crowd), ..SimConfig::default() };
        SimulatedMarket::new(&config, &mut Rng::new(4))
    }

    /// A consumer that checks ISINs would refuse every message of an instrument with a wrong digit.
    #[test]
    fn check_digits_follow_iso_6166() {
        for isin in ["US0378331005", "GB0002634946", "AU0000XVGZA3", "GB00B03MLX29"] {
            assert_eq!(isin_check_digit(&isin[..11]), isin[11..].parse().ok(), "{isin}");
        }
        assert_eq!(isin_check_digit("us037833100"), None);
        assert_eq!(isin_check_digit("US0378"), None);
    }

    /// Two markets on one tape with one name in common would have a trader's messages counted twice, or wash trades of
    /// owners who do not know of each other.
    #[test]
    fn markets_have_no_name_in_common() {
        let names = |market| {
            let config =
                SimConfig { market, instruments: 20_000, traders: Some(4_000), ..SimConfig::default() };
            let mut world = SimulatedMarket::new(&config, &mut Rng::new(4));
            world.cast(true);
            world.add_pay_accounts(3);
            let dicts =
                [NameKind::Instrument, NameKind::Owner, NameKind::Trader, NameKind::Account, NameKind::Algo];
            let all = dicts.iter().flat_map(|dict| {
                let name = |id| world.names().name(*dict, id).map(|name| (*dict as u8, name.to_owned()));
                (1..).map_while(name).collect::<Vec<_>>()
            });
            all.collect::<std::collections::BTreeSet<_>>()
        };
        let (a, b, c) = (names(0), names(1), names(9));
        assert!(a.len() > 30_000 && a.len() == b.len() && a.len() == c.len());
        assert!(a.is_disjoint(&b) && a.is_disjoint(&c) && b.is_disjoint(&c));
    }

    /// An id that is not its index plus one would label every event of a member with another's name.
    #[test]
    fn ids_follow_indices() {
        let mut world = world(3, 40, 90);
        let someone = world.cast(true);
        let friend = world.cast_linked(someone);
        world.add_pay_accounts(3);
        assert_eq!(world.isin(world.book(2, InstrumentId(39))), world.instruments[39].isin);
        assert_eq!(world.trader_name(friend), format!("T{:05}", friend + 1));
        assert_eq!(world.group_name(friend), world.owner_name(someone));
        assert_eq!(world.algo_name(someone).map(str::len), Some(4));
        assert_ne!(world.owner_name(friend), world.owner_name(someone));
        assert!(world.pay_account(2).starts_with("XX"));
        for i in &world.instruments {
            assert_eq!(isin_check_digit(&i.isin[..11]), i.isin[11..].parse().ok());
            assert_eq!(i.tick_nano % 10i64.pow(9 - i.decimals), 0, "a tick has more places than are shown");
        }
    }

    /// A group on both sides of an instrument could wash by accident.
    #[test]
    fn a_group_keeps_its_side_and_both_sides_are_there() {
        let world = world(1, 10, 200);
        for instr in world.instrument_ids() {
            let buyers = (0..200).filter(|&m| world.side_of(m, instr) == Side::Buy).count();
            assert!((40..160).contains(&buyers), "{buyers} of 200 buy");
            for (a, b) in (0..200).zip(1..200) {
                if world.group_name(a) == world.group_name(b) {
                    assert_eq!(world.side_of(a, instr), world.side_of(b, instr));
                }
            }
        }
    }

    /// A bank that checks IBANs would refuse every payment.
    #[test]
    fn ibans_check() {
        for n in [1, 42, 999_999] {
            let text = iban(n);
            let rest = text[4..].bytes().chain(text[..4].bytes()).fold(0u64, |rest, c| match c {
                b'0'..=b'9' => (rest * 10 + u64::from(c - b'0')) % 97,
                _ => (rest * 100 + u64::from(c - b'A') + 10) % 97,
            });
            assert_eq!((rest, text.len()), (1, 22), "{text}");
        }
    }
}
