//! A seeded stream of MT messages for benches.

/// Makes `count` valid messages as an RJE file: MT103, MT202, MT541 and MT940 in turn, about 550 bytes each, with
/// envelopes. Equal seeds give equal bytes.
#[must_use]
pub fn sample_messages(count: usize, seed: u64) -> Vec<u8> {
    let mut rng = seed;
    let mut out = Vec::with_capacity(count * 580);
    for n in 0..count {
        let mut next = |bound: u64| {
            // SplitMix64.
            rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = rng;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) % bound
        };
        let (us, them) = (BANKS[next(8) as usize], BANKS[next(8) as usize]);
        let kind = [103, 202, 541, 940][n % 4];
        let (minute, day) = (next(1440), 1 + next(28));
        let clock = format!("{:02}{:02}", minute / 60, minute % 60);
        let head = format!(
            "{{1:F01{us}AXXX{:04}{:06}}}{{2:O{kind}{clock}2603{day:02}{them}AXXX{:04}{:06}2603{day:02}{clock}N}}\
             {{3:{{108:REF{n:010}}}}}{{4:\r\n",
            next(10_000),
            n % 1_000_000,
            next(10_000),
            next(1_000_000),
        );
        let amount = |cents: u64| format!("{},{:02}", cents / 100, cents % 100);
        let (ccy, cents) = (["EUR", "USD", "GBP", "CHF"][next(4) as usize], 100 + next(10_000_000_000));
        // Accounts come back, as they do: twenty thousand of them.
        let mut account = || 10_000_000 + 4_321 * next(20_000);
        let (debtor, creditor) = (account(), account());
        let text = match kind {
            103 => format!(
                ":20:PAY{n:010}\r\n:13C:/SNDTIME/{clock}+0100\r\n:23B:CRED\r\n:32A:2603{day:02}{ccy}{a}\r\n\
                 :33B:{ccy}{a}\r\n:50K:/DE89370400440{debtor:09}\r\nORDERING COMPANY {:04}\r\nHAUPTSTRASSE {}\r\n\
                 60311 FRANKFURT\r\n:52A:{them}\r\n:53A:{us}\r\n:57A:{us}\r\n:59:/GB29NWBK601613{creditor:08}\r\n\
                 BENEFICIARY LIMITED {:04}\r\n{} HIGH STREET\r\nLONDON EC2N 2DL\r\n\
                 :70:/INV/2026-{:06}\r\nGOODS AND SERVICES\r\n:71A:SHA\r\n:72:/INS/{them}\r\n//BY ORDER OF SENDER\r\n",
                next(10_000),
                1 + next(200),
                next(10_000),
                1 + next(200),
                next(1_000_000),
                a = amount(cents),
            ),
            202 => format!(
                ":20:COV{n:010}\r\n:21:REL{n:010}\r\n:13C:/SNDTIME/{clock}+0100\r\n:32A:2603{day:02}{ccy}{a}\r\n\
                 :52A:/D/{debtor:010}\r\n{them}\r\n:53A:/C/{creditor:012}\r\n{us}\r\n:56A:{them}\r\n\
                 :57A:{us}\r\n:58A:/DE89370400440{debtor:09}\r\n{us}\r\n\
                 :72:/BNF/REDEMPTION OF {:05} SHARES CLASS B\r\n//FUND EQUITY EUROPE AT NAV {},{:02}\r\n\
                 //BY ORDER OF FUND ADMINISTRATION\r\n//SETTLEMENT INSTRUCTION {n:08}\r\n",
                next(100_000),
                next(1000),
                next(100),
                a = amount(cents),
            ),
            541 => format!(
                ":16R:GENL\r\n:20C::SEME//SET{n:010}\r\n:23G:NEWM\r\n:98A::PREP//202603{day:02}\r\n:16S:GENL\r\n\
                 :16R:TRADDET\r\n:98A::TRAD//202603{day:02}\r\n:98A::SETT//202603{day:02}\r\n\
                 :90B::DEAL//ACTU/{ccy}{}\r\n:35B:ISIN GB00BH4HKS39\r\nVODAFONE GROUP PLC\r\n:16S:TRADDET\r\n\
                 :16R:FIAC\r\n:36B::SETT//UNIT/{},\r\n:97A::SAFE//{creditor:09}\r\n:16S:FIAC\r\n:16R:SETDET\r\n\
                 :22F::SETR//TRAD\r\n:16R:SETPRTY\r\n:95R::DEAG/CRST/{:03}\r\n:16S:SETPRTY\r\n:16R:SETPRTY\r\n\
                 :95P::SELL//{them}\r\n:97A::SAFE//{debtor:09}\r\n:16S:SETPRTY\r\n:16R:SETPRTY\r\n\
                 :95P::PSET//CRSTGB22\r\n:16S:SETPRTY\r\n:16R:AMT\r\n:19A::SETT//{ccy}{}\r\n:16S:AMT\r\n\
                 :16S:SETDET\r\n",
                amount(100 + next(100_000)),
                1 + next(100_000),
                next(1000),
                amount(cents),
            ),
            _ => {
                let mut text = format!(
                    ":20:STA{n:010}\r\n:25:DE89370400440{debtor:09}\r\n:28C:{:05}/001\r\n:60F:C2603{day:02}{ccy}{}\r\n",
                    next(100_000),
                    amount(cents),
                );
                let mut balance = cents;
                for _ in 0..3 {
                    let entry = 1 + next(100_000_000);
                    balance += entry;
                    text += &format!(
                        ":61:2603{day:02}03{day:02}C{}NTRFINV{:08}//BANK{:08}\r\nTRANSFER\r\n\
                         :86:SALARY PAYMENT MARCH {:06}\r\nORDERED BY COMPANY {:04}\r\n",
                        amount(entry),
                        next(100_000_000),
                        next(100_000_000),
                        next(1_000_000),
                        next(10_000),
                    );
                }
                let closing = amount(balance);
                text + &format!(":62F:C2603{day:02}{ccy}{closing}\r\n:64:C2603{day:02}{ccy}{closing}\r\n")
            }
        };
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(format!("-}}{{5:{{CHK:{:012X}}}}}$\r\n", next(1 << 48)).as_bytes());
    }
    out
}

/// BICs of eight letters.
const BANKS: [&str; 8] =
    ["AAAABEBB", "BBBBDEFF", "CCCCGB2L", "DDDDUS33", "EEEEFRPP", "FFFFCHZZ", "GGGGNL2A", "HHHHESMM"];
