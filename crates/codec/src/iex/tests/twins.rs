//! The fast path against its slow twin, on good sessions and on such with bytes changed, dropped and put in.

use crate::iex::IexProtocol;
use crate::twin::iex::check::{any_bytes, fast};
use crate::twin::iex::naive;
use crate::twin::iex::sample::{IexSampleConfig, one_of_each, sample_packets};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn iex_sessions_with_damage(
        seed in any::<u64>(),
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        drop in prop::option::of((any::<prop::sample::Index>(), 1usize..60)),
        put in prop::option::of((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..60))),
        piece in 1usize..400,
    ) {
        let protocol = IexProtocol::ALL[which];
        let mut input = sample_packets(IexSampleConfig { protocol, messages: 60, symbols: 3, seed }).concat();
        input.extend_from_slice(&one_of_each(protocol));
        for (index, byte) in changes {
            let index = index.index(input.len());
            input[index] = byte;
        }
        if let Some((index, length)) = drop {
            let index = index.index(input.len());
            input.drain(index..(index + length).min(input.len()));
        }
        if let Some((index, bytes)) = put {
            let index = index.index(input.len());
            input.splice(index..index, bytes);
        }
        let expected = naive::decode(&input);
        prop_assert_eq!(&fast(&input, usize::MAX), &expected);
        prop_assert_eq!(&fast(&input, piece), &expected);
        let mut end = 0;
        for message in &expected {
            prop_assert!(message.offset >= end, "each byte is reported once");
            end = message.offset + message.length;
        }
    }

    #[test]
    fn what_the_iex_fuzzer_checks(data in prop::collection::vec(any::<u8>(), 0..300)) {
        any_bytes(&data);
    }

    /// Bytes that are nearly heads: small lengths, known letters and protocols.
    #[test]
    fn near_heads_of_iex_packets(data in prop::collection::vec(prop_oneof![
        Just(0u8), Just(0), Just(1), Just(2), Just(3), Just(4), Just(5), Just(0x80), Just(18), Just(b'S')
    ], 0..300)) {
        any_bytes(&data);
    }
}
