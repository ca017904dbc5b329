//! The fast path against its twin, the general one: the same frames, units, fix-ups and quarantine, byte for byte,
//! whatever is in the records and wherever blocks are cut.

use crate::block::Block;
use crate::formats::format::FormatDecoder;
use crate::pipeline::source_decoder::SourceDecoder;
use crate::{Format, Mapping};
use proptest::prelude::*;
use unitape_codec::fixed::FixedWidthLayout;

const TAQ: &[u8] = include_bytes!("../../../../../vectors/fixed/taq/nyse_taq_bbo_20140206.txt");

/// The events of a source, block by block.
fn decoded(mut way: SourceDecoder, input: &[u8], block_bytes: usize, learn: bool) -> Vec<(Vec<u8>, String)> {
    let mut blocks = way.blocks(input, block_bytes);
    let mut out = Vec::new();
    // Twice, so that names are known the second time.
    for _ in 0..2 {
        let mut frames = Vec::new();
        let tally = way.pass(&mut blocks, learn, |arena| frames.extend_from_slice(arena));
        assert!(tally.is_balanced());
        out.push((frames, way.describe_block()));
    }
    out
}

fn same(mapping: &Mapping, input: &[u8], block_bytes: usize, learn: bool) {
    let format = || Format::from_mapping(mapping.clone()).unwrap();
    let fast = decoded(SourceDecoder::new(format()).unwrap(), input, block_bytes, learn);
    let general = decoded(SourceDecoder::with_general_path(format()).unwrap(), input, block_bytes, learn);
    for ((fast, of_fast), (general, of_general)) in fast.iter().zip(&general) {
        let differs = fast.iter().zip(general).position(|(a, b)| a != b);
        assert_eq!((fast.len(), differs), (general.len(), None), "frames, blocks of {block_bytes}");
        assert_eq!(of_fast, of_general, "blocks of {block_bytes}");
    }
}

/// A number that lost its sign, a name of the block before, a frame one byte on: none of it shows in counts.
#[test]
fn the_taq_file_both_ways() {
    let mapping = Mapping::built_in("nyse-taq-bbo-98").unwrap();
    for (block_bytes, learn) in [(1 << 18, true), (1 << 18, false), (5000, true), (98 * 64, false)] {
        same(mapping, TAQ, block_bytes, learn);
    }
}

/// Records of several types among each other; a byte identifies one of them.
const MIXED: &str = r#"
name = "mixed"
terminator = "newline"
zone = "America/New_York"
short = "pad"
[[record]]
name = "head"
role = "header"
column = [{ name = "day", length = 8, type = "date", form = "YYYYMMDD" }]
[[record]]
name = "order"
when = { rec = ["N", "C"] }
column = [
  { name = "rec", length = 1 },
  { name = "number", length = 5, type = "int", required = true },
  { name = "time", length = 15, type = "time", form = "HHMMSSfffffffff", date = "header.day", required = true },
  { name = "instr", length = 12, required = true },
  { name = "venue", length = 4 },
  { name = "oid", length = 7, required = true },
  { name = "side", length = 1, required = true },
  { name = "trader", length = 5 },
  { name = "px", length = 19, type = "decimal", decimals = 9 },
  { name = "stop_px", length = 4, type = "decimal", decimals = 1 },
  { name = "qty", length = 7, type = "int" },
  { name = "tif", length = 6 },
]
[[record]]
name = "best"
when = { rec = "Q" }
column = [
  { name = "rec", length = 1 },
  { name = "number", length = 5, type = "int", required = true },
  { name = "time", length = 17, type = "timestamp", form = "YYYYMMDDHHMMSSfff", required = true },
  { name = "instr", length = 12, squeeze = true, required = true },
  { name = "place", length = 1 },
  { name = "bid", length = 8, type = "decimal", decimals = 4, none = ["00000000"] },
  { name = "bid_qty", length = 17, type = "int", none = ["99999999999999999"] },
  { name = "ask", length = 8, type = "decimal", decimals = 4, sign = "trailing" },
  { name = "cond", length = 2, none = ["--"] },
  { name = "mark", length = 3, type = "literal", is = "end" },
]
[[record]]
name = "tail"
role = "trailer"
when = { rec = "T" }
count = "n"
column = [{ name = "rec", length = 1 }, { name = "n", length = 5, type = "int" }]
"#;

const MIXED_MAPPING: &str = r#"
name = "mixed"
format = "fixed"
layout = "mixed"
[message]
ts = "time"
sequence = "number"
drop = ["rec"]
[table.venue]
L = "XLON"
N = "XNYS"
[[rule]]
when = { "@record" = "head" }
ignore = true
[[rule]]
when = { "@record" = "tail" }
ignore = true
[[rule]]
when = { "@record" = "order", rec = "N" }
[[rule.event]]
kind = "order_new"
[rule.event.fields]
oid = "oid"
side = "side"
px = "px"
stop_px = "stop_px"
qty = "qty"
venue = "venue"
instr = "instr"
trader = "trader"
tif = "tif"
short = { const = "Y" }
[[rule]]
when = { "@record" = "order", rec = "C" }
ignore = true
[[rule]]
when = { "@record" = "best" }
[[rule.event]]
kind = "bbo"
[rule.event.fields]
venue = { from = "place", table = "venue", else = "omit" }
instr = "instr"
bid = "bid"
bid_qty = "bid_qty"
ask = "ask"
cond = "cond"
"#;

fn mixed() -> Mapping {
    let mut mapping = toml::from_str::<Mapping>(MIXED_MAPPING).unwrap();
    mapping.text = MIXED_MAPPING.to_owned();
    mapping.layout_text = Some((MIXED.to_owned(), "mixed.toml".to_owned()));
    assert!(FixedWidthLayout::parse(MIXED, "mixed.toml").is_ok());
    mapping
}

fn digits(most: usize) -> impl Strategy<Value = String> {
    let right = move |n: u64| format!("{:>most$}", n % 10u64.pow(most.min(19) as u32));
    prop_oneof![
        4 => any::<u64>().prop_map(move |n| format!("{:0most$}", n % 10u64.pow(most.min(19) as u32))),
        3 => (0u64..2000).prop_map(right),
        1 => any::<u64>().prop_map(right),
        1 => Just("0".repeat(most)),
        1 => Just("9".repeat(most)),
        1 => Just(" ".repeat(most)),
    ]
}

fn order() -> impl Strategy<Value = String> {
    let words =
        ("[NC]", digits(5), "(1[0-9]|2[0-4])[0-5][0-9][0-6][0-9][0-9]{9}", "[A-B ]{3}", "(XLON|    |CHIX)");
    let more = (
        "[a-c ]{7}",
        "[BSX ]",
        "[T ]{5}",
        digits(19),
        prop_oneof![9 => Just("    ".to_owned()), 1 => digits(4)],
    );
    (words, more, digits(7), "(DAY   |IOC   |GTDGTD|      )").prop_map(
        |((rec, n, time, i, v), (o, s, t, px, stop), qty, tif)| {
            format!("{rec}{n}{time}{i:12}{v}{o}{s}{t}{px}{stop}{qty}{tif}")
        },
    )
}

fn best() -> impl Strategy<Value = String> {
    let stamp = "20(14|26)(02|03|11)(0[1-9]|30)(0[0-9]|23)[0-5][0-9][0-5][0-9][0-9]{3}";
    let words = (digits(5), stamp, "[A-B]( |  )[A-C ]", "[LNX ]", digits(8), digits(17));
    let ask = (digits(7), "[-+ ]").prop_map(|(n, sign)| n + &sign);
    (words, ask, "(--|  |R |é)", prop_oneof![20 => Just("end"), 1 => Just("enD")]).prop_map(
        |((n, time, i, p, bid, qty), ask, cond, mark)| {
            format!("Q{n}{time}{i:12}{p}{bid}{qty}{ask}{cond}{mark}")
        },
    )
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![8 => order(), 8 => best(), 1 => "T[0-9]{5}", 1 => "[NQT][ -~]{0,90}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn records_of_many_sorts_both_ways(
        lines in prop::collection::vec((line(), "(\n|\n|\n|\r\n|\n\n)"), 1..200),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        block_bytes in 40usize..9000,
        learn: bool,
    ) {
        let mut input = b"20140206\n".to_vec();
        lines.iter().for_each(|(line, end)| input.extend_from_slice(format!("{line}{end}").as_bytes()));
        for (at, byte) in noise {
            let at = at.index(input.len());
            input[at] = byte;
        }
        same(&mixed(), &input, block_bytes, learn);
    }

    #[test]
    fn taq_records_with_noise_both_ways(
        noise in prop::collection::vec((98usize..98 * 300, prop_oneof![Just(b' '), Just(b'0'), Just(b'\n'), Just(b'\r'), any::<u8>()]), 0..40),
        from in 0usize..9000,
        block_bytes in 90usize..20_000,
    ) {
        let mut input = TAQ[..98].to_vec();
        input.extend_from_slice(&TAQ[98 * (1 + from)..98 * (1 + from) + 98 * 299]);
        for (at, byte) in noise {
            input[at] = byte;
        }
        same(Mapping::built_in("nyse-taq-bbo-98").unwrap(), &input, block_bytes, true);
    }
}

/// A test of two ways means nothing where both are the same.
#[test]
fn shipped_mappings_take_the_fast_way() {
    for (mapping, kinds) in [
        (Mapping::built_in("nyse-taq-bbo-98").unwrap().clone(), vec![false, true]),
        (Mapping::built_in("sim-day").unwrap().clone(), [vec![false], vec![true; 8], vec![false]].concat()),
        (mixed(), vec![false, true, true, false]),
    ] {
        let decoder = super::FixedRecordsDecoder::new(&mapping, super::layout(&mapping).unwrap()).unwrap();
        assert_eq!(decoder.fast.unwrap().usable_types(), kinds, "{}", mapping.name);
    }
    let mapping = Mapping::built_in("nyse-taq-bbo-98").unwrap();
    let mut decoder = super::FixedRecordsDecoder::new(mapping, super::layout(mapping).unwrap()).unwrap();
    let mut block = Block { bytes: TAQ.to_vec(), eof: true, ..Block::default() };
    decoder.decode_block(&mut block, 1, &unitape_model::Dictionary::default());
    // The last record has no bytes after it to load with it.
    assert!(decoder.fast.unwrap().records_decoded() >= 9_990);
}
