//! Who quotes, and what: the publishers with their habits, the pairs, the ids.

use crate::rng::Rng;

/// One publisher of quotes: a bank, a venue, or a bank at a venue.
#[derive(Debug, Clone)]
pub(super) struct QuotePublisher {
    pub bank: Option<String>,
    pub venue: Option<&'static str>,
    /// Half the spread and the distance from the middle, tenths of a pip.
    pub half: i64,
    pub skew: i64,
    /// How long a quote is good, if it says so.
    pub valid_ms: Option<i64>,
    pub streams: StreamKinds,
    pub ids: IdForm,
    /// The publisher's clock is this much behind.
    pub lag_ns: i64,
    /// `EURUSD` and not `EUR/USD`.
    pub plain_pairs: bool,
    pub quotes_forwards: bool,
    pub last_look: Option<bool>,
    /// The first tier has no number.
    pub first_tier_unnamed: bool,
    /// The publisher is silent before this time.
    pub quiet_until: i64,
    pub is_logged_out: bool,
    pub next_status: i64,
}

/// Which quotes a publisher streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKinds {
    Sweepable,
    FullAmount,
    Both,
}

/// The ids of a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdForm {
    /// No ids.
    None,
    /// Whole numbers of 8 to 19 digits.
    Number,
    /// Texts of this length, 8 to 40.
    Text(usize),
    /// UUIDs, 36 characters.
    Uuid,
}

impl QuotePublisher {
    /// Makes the publisher with this number. Its habits follow from the number, so that even a few publishers show all
    /// habits; its prices follow from the seed.
    pub(super) fn new(number: usize, rng: &mut Rng) -> Self {
        let (first, second) =
            ((b'A' + (number / 26 % 26) as u8) as char, (b'A' + (number % 26) as u8) as char);
        let name = format!("BNK{first}{second}");
        let (bank, venue) = match number % 8 {
            3 | 6 => (Some(name), Some(VENUES[number / 8 % VENUES.len()])),
            7 => (None, Some(SINGLE_VENUES[number / 8 % SINGLE_VENUES.len()])),
            _ => (Some(name), None),
        };
        Self {
            bank,
            venue,
            half: rng.between(5, 12),
            skew: rng.between(-2, 2),
            valid_ms: (number % 3 != 1).then(|| rng.between(300, 4_000)),
            streams: [
                StreamKinds::Sweepable,
                StreamKinds::Both,
                StreamKinds::Sweepable,
                StreamKinds::FullAmount,
            ][number % 4],
            ids: match number % 10 {
                0 | 5 => IdForm::Number,
                1 | 6 | 8 => IdForm::Text(8 + number * 7 % 33),
                9 => IdForm::None,
                4 => IdForm::Text(40),
                _ => IdForm::Uuid,
            },
            lag_ns: if number % 7 == 2 { rng.between(3, 40) * 1_000_000 } else { 0 },
            plain_pairs: number % 5 == 1,
            quotes_forwards: number.is_multiple_of(3),
            last_look: [None, Some(true), Some(false)][number % 3],
            first_tier_unnamed: number % 6 == 5,
            quiet_until: 0,
            is_logged_out: false,
            next_status: 0,
        }
    }

    /// Returns the publisher's name in `status` and `control`.
    pub(super) fn name(&self) -> String {
        match (&self.bank, self.venue) {
            (Some(bank), Some(venue)) => format!("{bank}@{venue}"),
            (Some(bank), None) => bank.clone(),
            (None, venue) => venue.unwrap_or_default().to_owned(),
        }
    }

    /// Makes a new id as JSON.
    pub(super) fn new_id(&self, number: u64, rng: &mut Rng) -> Option<String> {
        const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        match self.ids {
            IdForm::None => None,
            IdForm::Number => {
                let digits = 10u64.pow(rng.between(7, 18) as u32);
                Some((digits + rng.below(9 * digits)).to_string())
            }
            IdForm::Text(length) => {
                let mut text = vec![b'0'; length];
                let mut rest = number;
                for digit in text.iter_mut().rev() {
                    *digit = DIGITS[(rest % 36) as usize];
                    rest /= 36;
                }
                text[..2].copy_from_slice(b"Q-");
                Some(format!("\"{}\"", String::from_utf8(text).expect("letters")))
            }
            IdForm::Uuid => {
                let (a, b) = (rng.bits(), rng.bits());
                let (first, second, third) = (a >> 32, a >> 16 & 0xffff, a & 0x0fff);
                let (fourth, fifth) = (b >> 48 & 0x3fff | 0x8000, b & 0xffff_ffff_ffff);
                Some(format!("\"{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{fifth:012x}\""))
            }
        }
    }
}

const VENUES: [&str; 3] = ["ECNA", "ECNB", "ECNC"];
const SINGLE_VENUES: [&str; 3] = ["LPXA", "LPXB", "LPXC"];

/// A pair, and its rate at the start in hundred-thousandths.
pub(super) const PAIRS: [(&str, i64); 50] = [
    ("EUR/USD", 108_500),
    ("USD/JPY", 14_950_000),
    ("GBP/USD", 126_700),
    ("XAU/USD", 215_000_000),
    ("USD/CHF", 88_300),
    ("USD/CAD", 135_600),
    ("AUD/USD", 65_400),
    ("EUR/GBP", 85_600),
    ("EUR/JPY", 16_220_000),
    ("NZD/USD", 60_900),
    ("EUR/CHF", 95_800),
    ("GBP/JPY", 18_940_000),
    ("AUD/JPY", 9_780_000),
    ("CHF/JPY", 16_930_000),
    ("CAD/JPY", 11_020_000),
    ("EUR/AUD", 165_900),
    ("EUR/CAD", 147_100),
    ("EUR/NZD", 178_100),
    ("GBP/AUD", 193_700),
    ("GBP/CHF", 111_900),
    ("GBP/CAD", 171_800),
    ("AUD/NZD", 107_400),
    ("AUD/CAD", 88_700),
    ("AUD/CHF", 57_750),
    ("NZD/JPY", 9_100_000),
    ("NZD/CAD", 82_600),
    ("CAD/CHF", 65_100),
    ("USD/NOK", 1_052_000),
    ("USD/SEK", 1_035_000),
    ("USD/DKK", 687_000),
    ("USD/PLN", 397_000),
    ("USD/CZK", 2_340_000),
    ("USD/HUF", 36_150_000),
    ("USD/TRY", 3_210_000),
    ("USD/ZAR", 1_890_000),
    ("USD/MXN", 1_680_000),
    ("USD/SGD", 134_200),
    ("USD/HKD", 782_100),
    ("USD/CNH", 721_000),
    ("USD/THB", 3_580_000),
    ("USD/PHP", 5_610_000),
    ("EUR/NOK", 1_142_000),
    ("EUR/SEK", 1_123_000),
    ("EUR/DKK", 745_600),
    ("EUR/PLN", 431_000),
    ("EUR/CZK", 2_530_000),
    ("EUR/HUF", 39_240_000),
    ("USD/ILS", 366_000),
    ("XAG/USD", 2_420_000),
    ("XPT/USD", 91_500_000),
];

/// The amounts of the tiers, in units of the first currency.
pub(super) const TIERS: [i64; 10] = [
    1_000_000,
    3_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    30_000_000,
    40_000_000,
    50_000_000,
    75_000_000,
    100_000_000,
];
