//! The table against itself.

use super::*;

/// Two fields in one place would overwrite each other silently.
#[test]
fn no_two_fields_overlap_and_all_lie_in_the_fixed_part() {
    for schema in EventSchema::all() {
        let mut bits = vec![0u8; usize::from(schema.fixed_bytes)];
        let mut claim = |at: usize, mask: u8, what: EventField| {
            assert_eq!(bits[at] & mask, 0, "{:?} {what:?} at {at}", schema.kind);
            bits[at] |= mask;
        };
        for at in 0..32 {
            claim(at, 0xff, EventField::TsRecv);
        }
        if schema.kind.has_layouts() {
            claim(at::KIND_A, 0xff, EventField::Format);
        }
        for spec in schema.fields {
            match spec.slot {
                FieldLayout::Bool { offset: EXT_ONLY, .. }
                | FieldLayout::FlagSet { offset: EXT_ONLY, .. } => {}
                FieldLayout::Code { offset: at, shift, bits, values } => {
                    assert!(values.len() < 1 << bits);
                    claim(usize::from(at), ((1u16 << bits) - 1) as u8 * (1 << shift), spec.field);
                }
                FieldLayout::Bool { offset: at, shift } => claim(usize::from(at), 3 << shift, spec.field),
                FieldLayout::Flag { offset: at, shift } => claim(usize::from(at), 1 << shift, spec.field),
                FieldLayout::FlagSet { offset: at, shift, values } => {
                    assert!(FLAG_SETS.iter().all(|set| *set < 1 << values.len()));
                    claim(usize::from(at), 7 << shift, spec.field);
                }
                // One place for both, and the mark that distinguishes them.
                FieldLayout::Publisher { bank: true } => claim(at::KIND_A, PUBLISHER_IS_BANK, spec.field),
                slot => {
                    let (at, n) = width_bytes(slot).unwrap_or((0, 0));
                    (at..at + n).for_each(|i| claim(usize::from(i), 0xff, spec.field));
                }
            }
            if let FieldLayout::Decimal { exp_offset: exp_at, .. }
            | FieldLayout::DecimalNarrow { exp_offset: exp_at, .. }
            | FieldLayout::Amount { exp_offset: exp_at, .. } = spec.slot
            {
                claim(usize::from(exp_at), 0xff, spec.field);
            }
        }
    }
}

#[test]
fn quotes_and_trades_are_one_line() {
    for kind in [EventKind::Bbo, EventKind::Quote, EventKind::Trade, EventKind::Level, EventKind::Index] {
        assert_eq!(EventSchema::for_kind(kind).fixed_bytes, 64);
    }
}
