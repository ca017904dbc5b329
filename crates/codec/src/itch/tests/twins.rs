//! The fast path against its slow twin, on good streams and on such with bytes changed, dropped and put in.

use crate::itch::ItchTransport;
use crate::twin::itch::check::{any_bytes, fast};
use crate::twin::itch::{naive, sample};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn streams_with_damage(
        seed in any::<u64>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        drop in prop::option::of((any::<prop::sample::Index>(), 1usize..60)),
        put in prop::option::of((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..60))),
        piece in 1usize..400,
    ) {
        let config = sample::SampleConfig { messages: 60, stocks: 3, live: 10, seed };
        let mut input = sample::sample_messages(config);
        input.extend_from_slice(&sample::one_of_each());
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        if let Some((at, length)) = drop {
            let at = at.index(input.len());
            input.drain(at..(at + length).min(input.len()));
        }
        if let Some((at, bytes)) = put {
            let at = at.index(input.len());
            input.splice(at..at, bytes);
        }
        let slow = naive::decode(ItchTransport::Length, &input);
        prop_assert_eq!(&fast(ItchTransport::Length, &input, usize::MAX / 2), &slow);
        prop_assert_eq!(&fast(ItchTransport::Length, &input, piece), &slow);
        let bytes: usize = slow.iter().map(|f| f.length).sum();
        prop_assert_eq!(bytes, input.len(), "every byte is accounted for");
    }

    #[test]
    fn what_the_fuzzer_checks(data in prop::collection::vec(any::<u8>(), 0..300)) {
        any_bytes(&data);
    }

    /// Bytes that are nearly headers: small lengths and known letters.
    #[test]
    fn near_headers(data in prop::collection::vec(prop_oneof![
        Just(0u8), Just(12), Just(19), Just(20), Just(23), Just(b'D'), Just(b'S'), Just(b'X'), Just(b'N'), Just(b'H'), Just(1)
    ], 0..200)) {
        any_bytes(&data);
    }
}
