//! Tests of columns: back as they were, or refused.

use super::*;
use crate::bits::{PAD, take_varint};
use proptest::prelude::*;

fn round_trip(values: &[u64], nature: ColumnSpec) -> (u8, usize) {
    let mut bytes = vec![0xaa; 3];
    let encoding = ColumnEncoder::default().encode(values, nature, None, &mut bytes).encoding;
    let end = bytes.len();
    bytes.extend([0x5a; PAD]);
    if encoding == CONSTANT {
        let constant = take_varint(&bytes, &mut 3).unwrap();
        assert!(values.iter().all(|value| *value == constant));
        return (encoding, end - 3);
    }
    let open =
        || ColumnReader::open(&bytes, 3..end, encoding, nature.width, values.len(), Vec::new()).unwrap();
    let (mut chunk, mut skipping) = (open(), open());
    for (i, want) in values.chunks(VECTOR).enumerate() {
        let mut got = vec![1; want.len()];
        chunk.next(&mut got, None).unwrap();
        assert_eq!(got, want, "vector {i}, encoding {encoding:#x}");
        if i % 2 == 0 {
            skipping.skip_vector(want.len()).unwrap();
        } else {
            skipping.next(&mut got, None).unwrap();
            assert_eq!(got, want, "vector {i} behind one that was skipped");
        }
    }
    assert!(chunk.is_at_end() && skipping.is_at_end());
    (encoding, end - 3)
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    let one =
        prop_oneof![any::<u64>(), 0u64..5, Just(i64::MAX as u64), Just(u64::MAX), Just(i64::MIN as u64)];
    let runs = (any::<u64>(), 0u64..2000, 1u64..1_000_000_000, 0u32..40, 1usize..3000).prop_map(
        |(start, spread, unit, noise, n)| {
            let mut x = start | 1;
            let wild = |x: &mut u64| {
                *x ^= *x << 13;
                *x ^= *x >> 7;
                *x ^= *x << 17;
                *x
            };
            let value_at = |i: usize, r: u64| match noise {
                0 => i64::MAX as u64,
                1 if r.is_multiple_of(7) => i64::MAX as u64,
                2 => (r % (spread + 1)) << 40,
                3..20 => start.wrapping_add((i as u64 * spread + r % (spread + 1)).wrapping_mul(unit)),
                _ => (r % (spread + 1)).wrapping_mul(unit).wrapping_sub(spread / 2 * unit),
            };
            (0..n).map(|i| value_at(i, wild(&mut x))).collect()
        },
    );
    prop_oneof![proptest::collection::vec(one, 1..1500), runs]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Differences that pass the ends of 64 bits, marks for none among values, lone outliers: each once gave
    /// another value back.
    #[test]
    fn columns_come_back(values in values(), text in any::<bool>(), none in any::<bool>(), width in 1u8..=8) {
        let mask = u64::MAX >> (64 - 8 * u32::from(width));
        let values: Vec<u64> = values.iter().map(|v| v & mask).collect();
        let null_value = none.then_some(i64::MAX as u64 & mask);
        round_trip(&values, ColumnSpec { width, null_value, is_text: text });
    }

    /// Fails if a column that is predicted from another one comes back otherwise, or costs more than it would alone.
    #[test]
    fn predicted_columns_come_back(
        seed in any::<u64>(), n in prop_oneof![1usize..50, 1000usize..3000], factor in 0u64..5000, noise in 0u64..40,
        none in any::<bool>(), far in any::<bool>(), width in prop_oneof![Just(4u8), Just(8)],
    ) {
        let mask = u64::MAX >> (64 - 8 * u32::from(width));
        let null_value = none.then_some(i64::MAX as u64 & mask);
        let (mut others, mut values) = (Vec::new(), Vec::new());
        let mut other = if far { seed } else { seed % 1000 };
        for i in 0..n as u64 {
            let random = seed.wrapping_mul(i | 1).rotate_left(i as u32 % 61);
            other = other.wrapping_add(random % 50);
            others.push(other);
            let value = other.wrapping_mul(factor).wrapping_add(random % (noise + 1)) & mask;
            values.push(null_value.filter(|_| random.is_multiple_of(9)).unwrap_or(value));
        }
        let nature = ColumnSpec { width, null_value, is_text: false };
        for has_slope in [false, true] {
            let mut bytes = Vec::new();
            let predictor = Some(Predictor { values: &others, has_slope });
            let encoded = ColumnEncoder::default().encode(&values, nature, predictor, &mut bytes);
            let mut alone = Vec::new();
            ColumnEncoder::default().encode(&values, nature, None, &mut alone);
            prop_assert!(bytes.len() <= alone.len() + 16, "{} bytes, {} alone", bytes.len(), alone.len());
            let end = bytes.len();
            bytes.extend([0x5a; PAD]);
            let column = match encoded.encoding {
                CONSTANT => ColumnReader::from_constant(take_varint(&bytes, &mut 0).unwrap(), width, Vec::new()),
                encoding => ColumnReader::open(&bytes, 0..end, encoding, width, n, Vec::new()).unwrap(),
            };
            let mut column = column.with_slope(encoded.slope);
            for (want, others) in values.chunks(VECTOR).zip(others.chunks(VECTOR)) {
                let mut got = vec![1; want.len()];
                column.next(&mut got, Some(others)).unwrap();
                prop_assert_eq!(&got, want);
            }
        }
    }

    /// Fails if a changed chunk gives anything but values or an error. A chunk comes from outside and may hold any
    /// bytes.
    #[test]
    fn changed_chunks_are_read_or_refused(
        values in values(), encoding in proptest::option::of(any::<u8>()),
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut in any::<prop::sample::Index>(),
    ) {
        let nature = ColumnSpec { width: 8, null_value: Some(i64::MAX as u64), is_text: true };
        let mut bytes = Vec::new();
        let made = ColumnEncoder::default().encode(&values, nature, None, &mut bytes).encoding;
        for (index, byte) in hits {
            let offset = index.index(bytes.len());
            bytes[offset] ^= byte;
        }
        let end = if encoding.is_some() { bytes.len() } else { cut.index(bytes.len() + 1) };
        bytes.truncate(end);
        bytes.extend([0; PAD]);
        if let Ok(mut chunk) = ColumnReader::open(&bytes, 0..end, encoding.unwrap_or(made), 8, values.len(), Vec::new()) {
            for part in values.chunks(VECTOR) {
                if chunk.next(&mut vec![0; part.len()], None).is_err() {
                    break;
                }
            }
        }
    }
}

/// Fails if an encoding is never chosen where it is the smallest.
#[test]
fn each_way_is_taken_where_it_is_best() {
    let number = ColumnSpec { width: 8, null_value: Some(i64::MAX as u64), is_text: false };
    let text = ColumnSpec { width: 8, null_value: None, is_text: true };
    let n = 4096u64;
    let all = |f: &dyn Fn(u64) -> u64| (0..n).map(f).collect::<Vec<_>>();
    assert_eq!(round_trip(&all(&|_| u64::MAX), number), (CONSTANT, 10));
    // Prices on a grid of a cent around 100: fourteen bits each.
    let (price_encoding, bytes) =
        round_trip(&all(&|i| 100_000_000_000 + i * i % 10_007 * 10_000_000), number);
    assert!(price_encoding == REFERENCE && bytes < 7300, "{price_encoding:#x} {bytes}");
    // One side of the market is empty now and then.
    let grid = |i: u64| {
        if i.is_multiple_of(50) { i64::MAX as u64 } else { 100_000_000_000 + i * i % 10_007 * 10_000_000 }
    };
    let (sided_encoding, bytes) = round_trip(&all(&grid), number);
    assert!(sided_encoding == REFERENCE | NONES && bytes < 7900, "{sided_encoding:#x} {bytes}");
    let (time_encoding, bytes) =
        round_trip(&all(&|i| 1_710_167_400_000_000_000 + i * 1000 + i * i % 7), number);
    assert!(time_encoding == DELTA && bytes < 2200, "{time_encoding:#x} {bytes}");
    let (dictionary_encoding, bytes) =
        round_trip(&all(&|i| [7, u64::MAX, 1 << 40, 12345][i as usize * 7 % 4]), number);
    assert!(dictionary_encoding == DICTIONARY && bytes < 1100, "{dictionary_encoding:#x} {bytes}");
    // "00000000" to "00004095" as text.
    let digits = |i: u64| u64::from_le_bytes(format!("{i:08}").into_bytes().try_into().unwrap());
    let (text_encoding, bytes) = round_trip(&all(&digits), text);
    assert!(text_encoding & SWAPPED != 0 && bytes < 3 * n as usize + 100, "{text_encoding:#x} {bytes}");
}
