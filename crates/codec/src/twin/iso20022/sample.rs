//! A seeded stream of payments for benches.

use std::fmt::Write as _;

/// Makes `count` valid pacs.008.001.08 messages of about 2.7 KB with business application header and wrapper. They
/// are indented as banks send them. Equal seeds give equal bytes.
#[must_use]
pub fn sample_messages(count: usize, seed: u64) -> Vec<u8> {
    let mut rng = seed;
    let mut out = String::with_capacity(count * 2_800);
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
        let (day, second, millis) = (1 + next(28), next(86_400), next(1000));
        let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        let (ccy, cents) = (["EUR", "USD", "GBP", "CHF"][next(4) as usize], 100 + next(10_000_000_000));
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        let uetr = format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            next(1 << 32),
            next(1 << 16),
            next(4096),
            next(4096),
            next(1 << 48)
        );
        // Accounts come back, as they do: twenty thousand of them.
        let mut account = || 10_000_000 + 4_321 * next(20_000);
        let (debtor, creditor) = (account(), account());
        let (payer, payee, town) =
            (NAMES[next(8) as usize], NAMES[next(8) as usize], TOWNS[next(4) as usize]);
        let (house, order, invoice, purpose) = (
            1 + next(200),
            next(10_000_000),
            next(1_000_000),
            ["SUPP", "SALA", "TRAD", "INTC"][next(4) as usize],
        );
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            r#"<?xml version="1.0" encoding="UTF-8"?>
<Envelope>
  <AppHdr xmlns="urn:iso:std:iso:20022:tech:xsd:head.001.001.02">
    <Fr><FIId><FinInstnId><BICFI>{us}XXX</BICFI></FinInstnId></FIId></Fr>
    <To><FIId><FinInstnId><BICFI>{them}XXX</BICFI></FinInstnId></FIId></To>
    <BizMsgIdr>B{n:012}</BizMsgIdr>
    <MsgDefIdr>pacs.008.001.08</MsgDefIdr>
    <BizSvc>swift.cbprplus.02</BizSvc>
    <CreDt>2026-03-{day:02}T{clock}+00:00</CreDt>
  </AppHdr>
  <Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08">
    <FIToFICstmrCdtTrf>
      <GrpHdr>
        <MsgId>M{n:012}</MsgId>
        <CreDtTm>2026-03-{day:02}T{clock}.{millis:03}+01:00</CreDtTm>
        <NbOfTxs>1</NbOfTxs>
        <SttlmInf>
          <SttlmMtd>INDA</SttlmMtd>
        </SttlmInf>
      </GrpHdr>
      <CdtTrfTxInf>
        <PmtId>
          <InstrId>I{order:08}</InstrId>
          <EndToEndId>E2E-{n:010}-{invoice:06}</EndToEndId>
          <UETR>{uetr}</UETR>
        </PmtId>
        <PmtTpInf>
          <SvcLvl>
            <Cd>G001</Cd>
          </SvcLvl>
        </PmtTpInf>
        <IntrBkSttlmAmt Ccy="{ccy}">{amount}</IntrBkSttlmAmt>
        <IntrBkSttlmDt>2026-03-{day:02}</IntrBkSttlmDt>
        <InstdAmt Ccy="{ccy}">{amount}</InstdAmt>
        <ChrgBr>SHAR</ChrgBr>
        <InstgAgt>
          <FinInstnId>
            <BICFI>{us}XXX</BICFI>
          </FinInstnId>
        </InstgAgt>
        <InstdAgt>
          <FinInstnId>
            <BICFI>{them}XXX</BICFI>
          </FinInstnId>
        </InstdAgt>
        <Dbtr>
          <Nm>{payer} {house:03}</Nm>
          <PstlAdr>
            <StrtNm>Hauptstrasse</StrtNm>
            <BldgNb>{house}</BldgNb>
            <TwnNm>{town}</TwnNm>
            <Ctry>DE</Ctry>
          </PstlAdr>
        </Dbtr>
        <DbtrAcct>
          <Id>
            <IBAN>DE89370400440{debtor:09}</IBAN>
          </Id>
        </DbtrAcct>
        <DbtrAgt>
          <FinInstnId>
            <BICFI>{us}XXX</BICFI>
          </FinInstnId>
        </DbtrAgt>
        <CdtrAgt>
          <FinInstnId>
            <BICFI>{them}XXX</BICFI>
          </FinInstnId>
        </CdtrAgt>
        <Cdtr>
          <Nm>{payee}</Nm>
          <PstlAdr>
            <PstCd>EC2N 2DL</PstCd>
            <AdrLine>{house} High Street</AdrLine>
            <AdrLine>London EC2N 2DL</AdrLine>
          </PstlAdr>
        </Cdtr>
        <CdtrAcct>
          <Id>
            <IBAN>GB29NWBK601613{creditor:08}</IBAN>
          </Id>
        </CdtrAcct>
        <Purp>
          <Cd>{purpose}</Cd>
        </Purp>
        <RmtInf>
          <Ustrd>Invoice {invoice:06} of order {order:08}</Ustrd>
        </RmtInf>
      </CdtTrfTxInf>
    </FIToFICstmrCdtTrf>
  </Document>
</Envelope>
"#
        );
    }
    out.into_bytes()
}

/// BICs of eight letters.
const BANKS: [&str; 8] =
    ["AAAABEBB", "BBBBDEFF", "CCCCGB2L", "DDDDUS33", "EEEEFRPP", "FFFFCHZZ", "GGGGNL2A", "HHHHESMM"];

/// Some with what XML writes otherwise, and with letters that take two bytes.
const NAMES: [&str; 8] = [
    "Ordering Company AG",
    "Smith &amp; Sons Limited",
    "M\u{fc}ller Maschinenbau GmbH",
    "Beneficiary Limited",
    "Soci\u{e9}t\u{e9} de Commerce SA",
    "Industrias del Norte SL",
    "O&apos;Neill Trading",
    "Van der Berg Handel BV",
];

const TOWNS: [&str; 4] = ["Frankfurt", "K\u{f6}ln", "Berlin", "Hamburg"];
