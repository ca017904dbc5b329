//! Tests of blocks: from rows to columns and back.

use super::templates::OpenTemplates;
use super::*;
use crate::bits::PAD;
use crate::block::{BlockEncoder, BlockPlace, BlockSealer};
use crate::cells::EventKindLayout;
use crate::day::Day;
use crate::file::{BlockOpener, FileId};
use crate::frames::{RowBuffer, SealRow};
use crate::header::{ClassSize, chunk_bytes, special};
use crate::keys::{Binding, DayKeys, Leaf, LeafKeys, MasterKey, Piece, StoreId, StoreKeys, SystemRandomness};
use crate::schema::TickSchema;
use crate::table::TableReader;
use proptest::prelude::*;
use std::ops::Range;
use unitape_model::schema::at;
use unitape_model::{Event, EventBuilder, EventField, EventKind, EventValue, FieldClass};

/// Decodes one value after another from each column by its definition: the slow twin.
fn naive(block: &OpenBlock<'_>, head: &BlockHeader) -> Vec<(u64, u64, Vec<u8>)> {
    type Cells = Vec<(u16, u8, std::vec::IntoIter<u64>)>;
    /// `ordinals` are those of columns of all rows; the others are predicted from the one before them.
    fn values<'a>(
        columns: impl IntoIterator<Item = BlockColumn<'a>>,
        rows: usize,
        ordinals: Option<&[u64]>,
    ) -> Cells {
        let mut before = vec![0; rows];
        let read = |mut column: BlockColumn<'a>| {
            let mut values = vec![0; rows];
            let predictors = ordinals.unwrap_or(&before).chunks(VECTOR);
            for (vector, predictor) in values.chunks_mut(VECTOR).zip(predictors) {
                column.chunk.next(vector, Some(predictor)).expect("a sound chunk");
            }
            before.clone_from(&values);
            (column.column_number, column.value_bytes, values.into_iter())
        };
        columns.into_iter().map(read).collect()
    }
    let mut columns = OpenColumns::default();
    let mut buffers = [Vec::new(), Vec::new()];
    let memory = (&mut Vec::new(), &mut StreamDecoder::default(), &mut buffers);
    open(block, head, memory, &mut columns).expect("a sound block");
    let rows = head.rows as usize;
    let mut special_columns = columns.special_columns.into_iter();
    let ordinals = values(special_columns.next(), rows, Some(&vec![0; rows]));
    let ordinal_values = ordinals[0].2.as_slice().to_vec();
    let mut special = ordinals;
    special.extend(values(special_columns, rows, Some(&ordinal_values)));
    let mut shared = values(columns.shared_columns, rows, Some(&ordinal_values));
    let mut own: Vec<_> =
        columns.layouts.into_iter().map(|l| (l.plan, values(l.columns, l.rows, None))).collect();
    let (mut market_templates, mut identity_templates) =
        (columns.market_templates, columns.identity_templates);
    let mut market = columns.market_tail.iter().copied();
    let mut identity = columns.identity_tail.iter().copied();
    (0..rows)
        .map(|_| {
            let row: Vec<(u16, u64)> =
                special.iter_mut().map(|column| (column.0, column.2.next().unwrap())).collect();
            let value_of = |number: u16| row.iter().find(|cell| cell.0 == number).expect("a column").1;
            let (plan, cells) = &mut own[value_of(special::LAYOUT_INDEX) as usize];
            let lines = value_of(special::LINES) + plan.fixed as u64 / 64;
            let mut frame = vec![0; lines as usize * 64];
            for (number, width, values) in shared.iter_mut().chain(cells) {
                let bytes = values.next().expect("a value for the row").to_le_bytes();
                frame[usize::from(*number)..][..usize::from(*width)]
                    .copy_from_slice(&bytes[..usize::from(*width)]);
            }
            let market: Vec<u8> = market.by_ref().take(value_of(special::MARKET_BYTES) as usize).collect();
            let identity: Vec<u8> =
                identity.by_ref().take(value_of(special::IDENTITY_BYTES) as usize).collect();
            // A row of a template, read as a vector of its own.
            let of_template = |templates: &mut OpenTemplates<'_>, number: u64, stream: Vec<u8>| {
                let mut row = stream;
                if number > 0 {
                    assert!(row.is_empty());
                    templates.read_vector(&[number]).unwrap();
                    templates.write_row(number, &mut row);
                }
                row
            };
            let market = of_template(&mut market_templates, value_of(special::MARKET_TEMPLATE), market);
            let identity =
                of_template(&mut identity_templates, value_of(special::IDENTITY_TEMPLATE), identity);
            let mut tail = Vec::new();
            if market.is_empty() || identity.is_empty() {
                tail = [market, identity].concat();
            } else {
                let mut offset = 0;
                let runs = take_varint(&identity, &mut offset).unwrap();
                let lengths: Vec<u64> =
                    (0..runs).map(|_| take_varint(&identity, &mut offset).unwrap()).collect();
                let (mut market, mut identity) = (market.into_iter(), identity.into_iter().skip(offset));
                for (i, length) in lengths.into_iter().enumerate() {
                    let run_length = length as usize;
                    if i % 2 == 0 {
                        tail.extend(market.by_ref().take(run_length))
                    } else {
                        tail.extend(identity.by_ref().take(run_length))
                    }
                }
                tail.extend(identity);
            }
            frame[plan.fixed..][..tail.len()].copy_from_slice(&tail);
            let position = (value_of(special::BEHIND) + value_of(special::ORDINAL)) * 64;
            let header =
                FrameHeader::new_unstamped(plan.kind as u8, value_of(special::FLAGS) as u8, lines as u16);
            header.with_stamp(Position(position)).write(&mut frame);
            (value_of(special::ORDINAL), position, frame)
        })
        .collect()
}

/// Makes frames of any bytes, of the kinds of a schema in turn: random frames, or frames that change little from row
/// to row, as a market's frames do.
fn rows(schema: TickSchema, seed: u64, n: usize, wild: bool) -> (RowBuffer, Vec<(u64, u64, Vec<u8>)>) {
    let (mut rows, mut all, mut x) = (RowBuffer::default(), Vec::new(), seed | 1);
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    };
    let plans: Vec<_> = schema.kinds().flat_map(EventKindLayout::for_kind).collect();
    let mut frames: Vec<Vec<u8>> =
        plans.iter().map(|plan| (0..plan.fixed).map(|_| random() as u8).collect()).collect();
    let (mut ordinal, mut position) = (random() % 1000, 64_000 + random() % 1000 * 64);
    let has_relations = random().is_multiple_of(2);
    // Long stretches of one layout, and rows of all of them.
    let (mut of_row, spread) = (0, [2, 40, 3000][random() as usize % 3]);
    for _ in 0..n {
        if random().is_multiple_of(spread) {
            of_row = random() as usize % plans.len();
        }
        let (plan, kind, frame) = (plans[of_row], plans[of_row].kind, &mut frames[of_row]);
        frame.truncate(plan.fixed);
        if wild {
            frame.iter_mut().for_each(|b| *b = random() as u8);
        } else {
            for _ in 0..random() % 6 {
                let offset = random() as usize % plan.fixed;
                frame[offset] = frame[offset].wrapping_add(1);
            }
        }
        if has_relations && !wild {
            // As orders and quotes have them: one party decides several cells, the sequence goes with the ordinal, an ask with
            // its bid.
            let party = random() % 40;
            for cell in plan.own_cells().iter().filter(|cell| cell.class == FieldClass::Identity) {
                let (offset, width) = (usize::from(cell.offset), usize::from(cell.nature.width));
                let value = party * 77 + cell.offset as u64;
                frame[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
            frame[at::SEQUENCE..at::SEQUENCE + 4].copy_from_slice(&(ordinal as u32 + 9).to_le_bytes());
            frame[at::OFFSET..at::OFFSET + 4].copy_from_slice(&(ordinal as u32 * 150 + 9).to_le_bytes());
            let bid = 1_000_000 + random() % 100_000;
            frame[40..48].copy_from_slice(&bid.to_le_bytes());
            frame[48..56].copy_from_slice(&(bid + 7).to_le_bytes());
        }
        let extra = if random().is_multiple_of(3) { random() as usize % 4 } else { 0 };
        let some = if extra == 0 { 0 } else { random() as usize % (extra * LINE + 1) };
        frame.resize(plan.fixed + extra * LINE, 0);
        frame[plan.fixed..plan.fixed + some].iter_mut().for_each(|b| *b = random() as u8);
        let mut entry_offset = plan.fixed;
        // Entries of the extension, of market data and of others by turns, before bytes of any kind.
        for _ in 0..random() % 6 {
            let (tag, length) =
                ([1u16, 2, 9, 20, 0xfffe, 23, 500][random() as usize % 7], random() as usize % 20);
            if entry_offset + 6 + length <= plan.fixed + some {
                frame[entry_offset..entry_offset + 2].copy_from_slice(&tag.to_le_bytes());
                frame[entry_offset + 2..entry_offset + 6].copy_from_slice(&(length as u32).to_le_bytes());
                entry_offset += 6 + length;
            }
        }
        if has_relations && !wild && !random().is_multiple_of(4) {
            // As feeds have them: fields of a few sorts, market data and others in turn, among them twice the same one.
            let extensions: [&[(u16, &[u8], u64)]; 4] = [
                &[(1, b"", 4), (9, b"", 1)],
                &[(0xfffe, b"\x04\0name", 3), (20, b"", 9), (2, b"", 8), (23, b"", 17)],
                &[(0xfffe, b"\x01\0a", 0), (1, b"", 4), (0xfffe, b"\x01\0a", 20)],
                &[(0xfffe, b"\x01\0a", random() % 40)],
            ];
            frame.truncate(plan.fixed);
            for (tag, name, value_bytes) in extensions[random() as usize % 4] {
                frame.extend_from_slice(&tag.to_le_bytes());
                frame.extend_from_slice(&(name.len() as u32 + *value_bytes as u32).to_le_bytes());
                frame.extend_from_slice(name);
                frame.extend((0..*value_bytes).map(|_| random() as u8 % 3));
            }
            frame.resize(frame.len().next_multiple_of(LINE), 0);
        }
        if kind.has_layouts() {
            frame[at::KIND_A] = plan.layout;
        }
        let header = FrameHeader::new_unstamped(kind as u8, random() as u8, (frame.len() / LINE) as u16);
        header.with_stamp(Position(position)).write(frame);
        rows.push(frame, ordinal, Position(position));
        all.push((ordinal, position, frame.clone()));
        ordinal += 1 + random() % 3;
        position += frame.len() as u64 + random() % 3 * 64;
    }
    (rows, all)
}

fn block_place() -> BlockPlace {
    let file = FileId { day: Day(3), schema: TickSchema::Bbo, generation: 1, revision: 5, commit: 9 };
    BlockPlace { file_id: file, instrument: InstrumentId(7), number: 5 }
}

/// Makes the block before it is sealed, with padding for loads.
fn block(rows: &RowBuffer) -> (BlockHeader, Vec<u8>) {
    let mut bytes = Vec::new();
    let head = BlockEncoder::default().encode_plain(&block_place(), rows.block_rows(), &mut bytes);
    assert_eq!(BlockHeader::decode(&bytes), Ok(head));
    (head, bytes)
}

fn decoded(
    block: &OpenBlock<'_>,
    head: &BlockHeader,
    wanted: &RowFilter,
) -> Result<Vec<(u64, u64, Vec<u8>)>, BlockFault> {
    let mut batch = FrameBatch::default();
    BlockDecoder::default().decode(block, head, wanted, &mut batch)?;
    Ok(batch.keys.iter().map(|k| (k.ordinal, k.position.0, batch.frame(k).to_vec())).collect())
}

fn schemas() -> impl Strategy<Value = TickSchema> {
    prop::sample::select(TickSchema::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Fails if a sealed frame changes: padding, unknown bits and tails that end in zeros must survive.
    #[test]
    fn rows_come_back(schema in schemas(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..2100, 4090usize..4110], wild in any::<bool>()) {
        let (rows, want) = rows(schema, seed, n, wild);
        let (head, bytes) = block(&rows);
        let block = OpenBlock::from_plain(&bytes, &head).unwrap();
        prop_assert_eq!(&decoded(&block, &head, &RowFilter::all()).unwrap(), &want);
        prop_assert_eq!(&naive(&block, &head), &want);
    }

    /// Fails if the key of market data alone opens any other field, or misses a market field, also in the
    /// extension.
    #[test]
    fn market_data_alone_have_the_market_fields(schema in schemas(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..1100]) {
        let (rows, want) = rows(schema, seed, n, false);
        let (head, bytes) = block(&rows);
        let whole_block = OpenBlock::from_plain(&bytes, &head).unwrap();
        let got = decoded(&whole_block.market_alone(), &head, &RowFilter::all()).unwrap();
        prop_assert_eq!(got.len(), want.len());
        for ((ordinal, position, frame), (want_ordinal, _, want)) in got.iter().zip(&want) {
            let (event, want) = (Event::new(frame).unwrap(), Event::new(want).unwrap());
            prop_assert_eq!((ordinal, *position, event.ts_event()), (want_ordinal, 0, want.ts_event()));
            prop_assert_eq!((event.source(), event.offset()), (0, 0));
            prop_assert_eq!(event.unmapped_fields().count(), 0);
            prop_assert_eq!(event.ts_recv(), want.ts_recv());
            if FieldClass::for_event_field(event.kind(), EventField::SrcSeq) == FieldClass::Market {
                prop_assert_eq!(event.sequence(), want.sequence());
            }
            for spec in event.schema().fields {
                let (mut a, mut b) = ([0; 36], [0; 36]);
                let value = format!("{:?}", event.value(spec, &mut a));
                match FieldClass::for_event_field(event.kind(), spec.field) {
                    FieldClass::Market => prop_assert_eq!(value, format!("{:?}", want.value(spec, &mut b)), "{:?}", spec.field),
                    _ => prop_assert_eq!(value, "None", "{:?}", spec.field),
                }
            }
        }
    }

    /// Fails if rows that are left out shift the other rows.
    #[test]
    fn chosen_rows_are_those_of_the_slow_way(seed in any::<u64>(), n in 1usize..3000, part in 0usize..3000, span in 0u64..1 << 40) {
        let (rows, mut want) = rows(TickSchema::Bbo, seed, n, false);
        let (head, bytes) = block(&rows);
        let time = |f: &[u8]| i64::from_le_bytes(f[8..16].try_into().unwrap());
        let venue = |f: &[u8]| u16::from_le_bytes(f[36..38].try_into().unwrap());
        let middle = &want[part % n].2;
        let wanted = RowFilter {
            from: UnixNanos(time(middle).saturating_sub(span as i64)),
            to: UnixNanos(time(middle).saturating_add(span as i64)),
            venue: (seed % 2 == 0).then_some(venue(middle)),
            ..RowFilter::all()
        };
        let block = OpenBlock::from_plain(&bytes, &head).unwrap();
        let got = decoded(&block, &head, &wanted).unwrap();
        want.retain(|(_, _, f)| (wanted.from..=wanted.to).contains(&UnixNanos(time(f))) && wanted.venue.is_none_or(|v| v == venue(f)));
        prop_assert_eq!(got, want);
    }

    /// Fails if a changed block with correct checksums gives anything but rows or an error.
    #[test]
    fn changed_blocks_are_read_or_refused(
        schema in schemas(), seed in any::<u64>(), n in 1usize..1100,
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>(),
    ) {
        let (rows, _) = rows(schema, seed, n, false);
        let (_, mut bytes) = block(&rows);
        bytes.truncate(bytes.len() - PAD);
        for (index, byte) in hits {
            let offset = index.index(bytes.len());
            bytes[offset] ^= byte;
        }
        crate::twin::check::any_block(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        crate::twin::check::any_block(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Rows of several tapes in one block. Fails if a row changes its tape, or if a bound of ordinals of one tape counts for
    /// another.
    #[test]
    fn rows_of_several_tapes_keep_their_tape(seed in any::<u64>(), n in 2usize..2500, tapes in 1u16..5) {
        let (_, all) = rows(TickSchema::Trades, seed, n, false);
        let mut buffer = RowBuffer::default();
        let tape_of = |r: usize| (seed.rotate_left(r as u32 % 64) % u64::from(tapes)) as u16;
        for (r, (ordinal, position, frame)) in all.iter().enumerate() {
            let ts = Event::new(frame).unwrap().ts_event();
            let (ordinal, position) = (*ordinal, Position(*position));
            buffer.push_row(&SealRow { frame, ts, tape_index: tape_of(r), ordinal, position });
        }
        let (head, bytes) = block(&buffer);
        let is_single = (1..n).all(|r| tape_of(r) == tape_of(0));
        prop_assert_eq!(head.single_tape(), is_single.then(|| tape_of(0)));
        let open_block = OpenBlock::from_plain(&bytes, &head).unwrap();
        let middle = all[n / 2].0;
        let ordinals: Vec<(u64, u64)> = (0..tapes)
            .map(|tape| match tape % 3 {
                0 => (0, middle),
                1 => (middle, u64::MAX),
                _ => (1, 0),
            })
            .collect();
        for ordinals in [Vec::new(), ordinals] {
            let wanted = RowFilter { ordinals, ..RowFilter::all() };
            let mut batch = FrameBatch::default();
            BlockDecoder::default().decode(&open_block, &head, &wanted, &mut batch).unwrap();
            let got: Vec<_> = batch.keys.iter().map(|key| (key.tape_rank, key.ordinal, batch.frame(key))).collect();
            let is_wanted = |r: &usize| {
                let (first, last) = wanted.ordinals_of(tape_of(*r).into()).unwrap();
                (first..=last).contains(&all[*r].0)
            };
            let want: Vec<_> = (0..n)
                .filter(is_wanted)
                .map(|r| (u32::from(tape_of(r)), all[r].0, &all[r].2[..]))
                .collect();
            prop_assert_eq!(got, want);
        }
        // A part with fewer tapes than the block is a fault of the store.
        let wanted = RowFilter { ordinals: vec![(0, u64::MAX); usize::from(tapes) - 1], ..RowFilter::all() };
        let has_last = (0..n).any(|r| tape_of(r) == tapes - 1);
        let result = BlockDecoder::default().decode(&open_block, &head, &wanted, &mut FrameBatch::default());
        prop_assert_eq!(result.is_err(), has_last && tapes > 1);
    }
}

/// Fails if a changed bit on the disk, or a block in the place of another, goes unnoticed.
#[test]
fn no_changed_bit_and_no_other_place_goes_unnoticed() {
    check_tampering(300, 1);
}

/// The same for a block whose columns have chunks of their own. Fails also if two such chunks can change places.
#[test]
fn no_changed_column_and_no_other_place_goes_unnoticed() {
    check_tampering(4200, 331);
}

fn check_tampering(row_count: usize, step_bytes: usize) {
    let (rows, want) = rows(TickSchema::Quotes, 11, row_count, false);
    let master = MasterKey::random(&SystemRandomness).unwrap();
    let (keys, _) = StoreKeys::draw(&master, StoreId([1; 16]), &SystemRandomness).unwrap();
    let (leaves, random) = (LeafKeys::new(&keys), &SystemRandomness);
    let mut sealer = BlockSealer { keys: &keys, leaf_keys: leaves, days: DayKeys::new(), random };
    let mut good = Vec::new();
    let head =
        BlockEncoder::default().encode(&block_place(), rows.block_rows(), &mut sealer, &mut good).unwrap();
    let mut opener = BlockOpener::new(&keys, &sealer.days);
    let opens = |opener: &mut BlockOpener<'_>, id: &FileId, head: &BlockHeader, block: &[u8]| {
        opener.open(id, head, &FieldClass::ALL, &mut block.to_vec()).is_ok()
    };
    let file = block_place().file_id;
    assert!(opens(&mut opener, &file, &head, &good));
    for offset in (0..good.len()).step_by(step_bytes) {
        let mut bad = good.clone();
        bad[offset] ^= 1 << (offset % 8);
        assert!(!opens(&mut opener, &file, &head, &bad), "byte {offset}");
    }
    for other_file in [
        FileId { day: Day(4), ..file },
        FileId { schema: TickSchema::Trades, ..file },
        FileId { generation: 2, ..file },
        FileId { revision: 6, ..file },
        FileId { commit: 8, ..file },
    ] {
        assert!(!opens(&mut opener, &other_file, &head, &good), "{other_file:?}");
    }
    // A header of the index's own is not enough: a chunk names its block.
    for class in FieldClass::ALL {
        for other_head in [
            BlockHeader { instrument: InstrumentId(8), ..head },
            BlockHeader { number: 6, ..head },
            BlockHeader { rows: head.rows - 1, ..head },
        ] {
            let leaf = Leaf { day: file.day, schema: file.schema, instrument: other_head.instrument, class };
            let binding = Binding::new(Piece::Chunk, keys.store).file(&file).chunk(&other_head, class, 0);
            let (end, mut block) = (head.end_of(class), good.clone());
            let chunk = &mut block[end - head.class_size(class).bytes as usize..end];
            let cipher = opener.leaf_keys.open(leaf, opener.days).unwrap();
            assert!(cipher.open(binding.bytes(), chunk).is_none(), "{class:?} {other_head:?}");
        }
    }
    let market = head.class_size(FieldClass::Market);
    assert_eq!(market.is_split(), row_count >= 4096);
    if market.is_split() {
        let mut open_block = good.clone();
        opener.open(&file, &head, &FieldClass::ALL, &mut open_block).unwrap();
        let specials = special::of_class(FieldClass::Market, false).len();
        let mut table = TableReader::open(&open_block, START, market, specials, row_count).unwrap();
        let mut chunks = Vec::new();
        while let Some(entry) = table.next().unwrap() {
            let chunk = |range: Range<usize>| range.start..range.start + chunk_bytes(range.len());
            chunks.extend(entry.long_values().map(chunk));
        }
        let pairs = chunks.iter().flat_map(|a| chunks.iter().map(move |b| (a, b)));
        let is_pair = |(a, b): &(&Range<usize>, &Range<usize>)| a.len() == b.len() && a.start < b.start;
        let (first, second) = pairs.rev().find(is_pair).expect("two chunks of one length");
        let mut swapped = good.clone();
        let (before, after) = swapped.split_at_mut(second.start);
        before[first.clone()].swap_with_slice(&mut after[..second.len()]);
        assert!(!opens(&mut opener, &file, &head, &swapped));
    }
    let mut block = good.clone();
    let parts = opener.open(&file, &head, &FieldClass::ALL, &mut block).unwrap();
    block.resize(good.len() + PAD, 0);
    let open = OpenBlock { bytes: &block, parts };
    assert_eq!(decoded(&open, &head, &RowFilter::all()).unwrap(), want);
}

/// Fails if a block does not count the trades that take back or change another one.
#[test]
fn corrections_are_counted() {
    let mut rows = RowBuffer::default();
    for (ordinal, action) in
        [None, Some("new"), Some("cancel"), Some("correct"), Some("cancel")].into_iter().enumerate()
    {
        let mut frame = Vec::new();
        let mut event = EventBuilder::begin(&mut frame, EventKind::Trade, UnixNanos(ordinal as i64));
        if let Some(action) = action {
            event.set_field(EventField::Action, EventValue::Text(action)).unwrap();
        }
        event.finish(flags::LAST).unwrap();
        rows.push(&frame, ordinal as u64, Position(ordinal as u64 * 128));
    }
    assert_eq!(block(&rows).0.corrections, 3);
}

/// Fails if a header that asks for too much memory is not refused before the memory is allocated.
#[test]
fn sizes_are_checked_before_they_are_believed() {
    let (rows, _) = rows(TickSchema::Clock, 5, 10, true);
    let (head, _) = block(&rows);
    for bad in [
        BlockHeader { rows: 0, ..head },
        BlockHeader { rows: 65_537, raw_bytes: 65_537 * 64, ..head },
        BlockHeader { raw_bytes: u32::MAX / 64 * 64, ..head },
        BlockHeader { raw_bytes: 64, ..head },
        BlockHeader { corrections: 11, ..head },
        BlockHeader { parts: head.parts.map(|part| ClassSize { bytes: u32::MAX / 16 * 16, ..part }), ..head },
        BlockHeader { parts: head.parts.map(|part| ClassSize { first_bytes: 16, ..part }), ..head },
        BlockHeader { parts: head.parts.map(|part| ClassSize { bytes: part.bytes + 1, ..part }), ..head },
        BlockHeader { ts_min: UnixNanos(1), ts_max: UnixNanos(0), ..head },
    ] {
        assert!(BlockHeader::decode(&bad.encode()).is_err(), "{bad:?}");
    }
}
