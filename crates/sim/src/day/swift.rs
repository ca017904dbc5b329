//! Payments as SWIFT messages in an RJE file: MT103 of customers, MT202 between banks.
//!
//! ```text
//! {1:F01ZZAAGB2LAXXX0000000001}{2:O1031334260302ZZBBFRPPAXXX00000000012603021334N}{4:
//! :20:PAY000000001
//! :23B:CRED
//! :32A:260302EUR9123,45
//! :50K:/XX82UTPE00000010000001
//! ALDER TRADING 1
//! :52A:ZZAAGB2L
//! :57A:ZZBBFRPP
//! :59:/XX55UTPE00000010000002
//! BIRCH TRADING 2
//! :71A:SHA
//! -}$
//! ```
//!
//! The messages are as the creditor's bank received them (`{2:O…`), which gives the minute; seconds are lost, as they
//! are on the network. The file ends without a `$`, which only separates messages.

use std::io::Write as _;

use super::event::{DayEvent, DayEventBody, Payment};
use super::names;
use super::world::SimulatedMarket;
use crate::wire::civil;

/// Writes the payments of one day.
#[derive(Debug, Default)]
pub struct SwiftDayWriter {
    messages: u64,
}

impl SwiftDayWriter {
    /// Appends the message of an event. Returns false if the event is no payment.
    pub fn write(&mut self, world: &SimulatedMarket, event: &DayEvent, out: &mut Vec<u8>) -> bool {
        let DayEventBody::Payment(p) = event.body else { return false };
        if self.messages > 0 {
            out.push(b'$');
        }
        self.messages += 1;
        let seconds = event.ts / 1_000_000_000;
        let (year, month, day) = civil(seconds / 86_400);
        let date = format!("{:02}{month:02}{day:02}", year % 100);
        let minute = format!("{:02}{:02}", seconds / 3600 % 24, seconds / 60 % 60);
        let (kind, number) = (if p.between_banks { "202" } else { "103" }, self.messages);
        let (sender, receiver) = (world.pay_bic(p.debtor), world.pay_bic(p.creditor));
        let (session, sequence) = (number / 1_000_000 % 10_000, number % 1_000_000);
        // Writing to a Vec cannot fail.
        let _ = write!(
            out,
            "{{1:F01{receiver}AXXX{session:04}{sequence:06}}}\
             {{2:O{kind}{minute}{date}{sender}AXXX{session:04}{sequence:06}{date}{minute}N}}{{4:\r\n"
        );
        body(world, &p, &date, out);
        out.extend_from_slice(b"-}");
        true
    }
}

fn body(world: &SimulatedMarket, p: &Payment, date: &str, out: &mut Vec<u8>) {
    let reference = names::payment_text(p.number);
    let money = format!("{date}{}{},{:02}", p.ccy, p.cents / 100, p.cents % 100);
    let (from, to) = (world.pay_account(p.debtor), world.pay_account(p.creditor));
    let (payer, payee) = (world.pay_holder(p.debtor), world.pay_holder(p.creditor));
    let (payer_bank, payee_bank) = (world.pay_bic(p.debtor), world.pay_bic(p.creditor));
    let _ = if p.between_banks {
        write!(
            out,
            ":20:{reference}\r\n:21:NONREF\r\n:32A:{money}\r\n:52A:/{from}\r\n{payer_bank}\r\n\
             :58A:/{to}\r\n{payee_bank}\r\n"
        )
    } else {
        write!(
            out,
            ":20:{reference}\r\n:23B:CRED\r\n:32A:{money}\r\n:50K:/{from}\r\n{payer}\r\n:52A:{payer_bank}\r\n\
             :57A:{payee_bank}\r\n:59:/{to}\r\n{payee}\r\n:71A:SHA\r\n"
        )
    };
}
