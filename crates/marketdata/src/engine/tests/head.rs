//! The header read without the decoder. It once cost a third of what is after it; a second reading of the same bytes
//! must say the same of every one of them, as the decoder does: the same numbers, the same place, the same fault.

use super::*;
use crate::engine::framing::{PacketBody, PacketDecoder};
use crate::engine::ids::LongIdTable;
use crate::engine::packet_header::PacketHeader;
use proptest::prelude::*;
use unitape_model::ChannelId;

/// A header's field: its type, whether it is optional, and whether it has a bit.
type F = (u8, bool, bool);

fn templates(id: u32, fields: &[F]) -> String {
    let field = |(n, (kind, optional, bit)): (usize, &F)| {
        let kind = ["uInt32", "uInt64", "byteVector", "int32", "string"][usize::from(*kind)];
        let presence = if *optional { " presence=\"optional\"" } else { "" };
        // A field that is not optional needs a value of its own, and is left to the decoder.
        let inside = match (*bit, *optional) {
            (true, true) => "<default/>",
            (true, false) if kind != "byteVector" => "<default value=\"3\"/>",
            _ => "",
        };
        format!("<{kind} name=\"{}\"{presence}>{inside}</{kind}>", NAMES[n])
    };
    let fields: String = fields.iter().enumerate().map(field).collect();
    let begin = TEMPLATES.find("<template name=\"Head\"").unwrap();
    let end = TEMPLATES.find("<template name=\"Depth\"").unwrap();
    format!(
        "{}<template name=\"Head\" id=\"{id}\">{fields}</template>\n  {}",
        &TEMPLATES[..begin],
        &TEMPLATES[end..]
    )
}

const NAMES: [&str; 6] = ["Number", "Sender", "Sent", "Reset", "Partition", "More"];

/// The values of a header, the start of the messages, and their values; or the reason why the packet cannot be used.
type Said = Result<(PacketHeader, usize, Result<String, String>), (&'static str, String)>;

fn said(packets: &mut PacketDecoder, packet: &[u8]) -> Said {
    let (head, body) = packets.open(ChannelId(0), packet).map_err(|why| (why.code, why.detail))?;
    let read =
        packets.body(ChannelId(0), PacketBody { payload: packet, offset: body }, &mut LongIdTable::default());
    let read = read.map(|()| format!("{:?}", packets.batch)).map_err(|why| why.detail);
    Ok((head, body, read))
}

/// By the program, if there is one, and by the decoder alone.
fn both(config: &Arc<HandlerConfig>) -> [PacketDecoder; 2] {
    let mut alone = HandlerConfig::clone(config);
    alone.sets.iter_mut().for_each(|set| set.header_program = None);
    [PacketDecoder::new(config.clone()), PacketDecoder::new(Arc::new(alone))]
}

fn field() -> impl Strategy<Value = F> {
    (prop_oneof![9 => 0u8..3, 1 => 3u8..5], prop::bool::weighted(0.3), prop::bool::weighted(0.3))
}

/// Values as this field has them, of all lengths, and some as another one has them.
fn value(kind: u8) -> impl Strategy<Value = Vec<u8>> {
    let number = |n: u64| {
        let mut out = Vec::new();
        put(&mut out, n);
        out
    };
    let bytes = move |bytes: Vec<u8>| [number(bytes.len() as u64), bytes].concat();
    let numbers = prop_oneof![
        4 => 0u64..300,
        2 => (0u32..64, any::<u64>()).prop_map(|(shift, n)| n >> shift),
        1 => u64::from(u32::MAX) - 1..u64::from(u32::MAX) + 3,
    ]
    .prop_map(number);
    let vectors = prop::collection::vec(any::<u8>(), 0..10).prop_map(bytes);
    let (of_number, of_bytes) = if kind == 2 { (1, 40) } else { (40, 1) };
    prop_oneof![of_number => numbers, of_bytes => vectors, 1 => prop::collection::vec(any::<u8>(), 0..12)]
}

type Parts = (u8, Vec<Vec<u8>>, usize, prop::sample::Index, u8);

fn fields_and_packets() -> impl Strategy<Value = (Vec<F>, Vec<Parts>)> {
    prop::collection::vec(field(), 1..7).prop_flat_map(|fields| {
        let values: Vec<_> = fields.iter().map(|(kind, ..)| value(*kind)).collect();
        let packet = (any::<u8>(), values, 0usize..6, any::<prop::sample::Index>(), any::<u8>());
        (Just(fields), prop::collection::vec(packet, 1..20))
    })
}

proptest! {
    #[test]
    fn the_program_reads_as_the_decoder_does(
        id in prop_oneof![Just(1u32), 100u32..140, 16_380u32..16_390],
        (fields, packets) in fields_and_packets(),
    ) {
        let asked = ["sequence", "sender", "time", "reset", "partition"].iter().zip(NAMES).take(fields.len());
        let asked: String = asked.map(|(key, name)| format!(", {key} = \"{name}\"")).collect();
        let framing = format!("framing = {{ header = \"Head\"{asked} }}");
        let config = config_of(&framing, "", &templates(id, &fields)).unwrap();
        let [mut plain, mut alone] = both(&Arc::new(config));
        for (map, values, harm, at, byte) in packets {
            // Fields whose bit is not set are not there.
            let has_bit = |(kind, optional, bit): &F| *bit && (*optional || *kind != 2);
            let bits = fields.iter().filter(|field| has_bit(field)).count();
            let mut left = map << 2;
            let mut is_there = |field: &F| {
                let bit = left & 0x80 != 0;
                left <<= u8::from(has_bit(field));
                bit || !has_bit(field)
            };
            let there: Vec<bool> = fields.iter().map(&mut is_there).collect();
            let used = if harm == 3 { 0x3f } else { 0x3f & !(0x3f >> bits) };
            let mut packet = vec![0xc0 | map & used];
            put(&mut packet, id.into());
            packet.extend(values.into_iter().zip(there).filter(|(_, there)| *there).flat_map(|(value, _)| value));
            // A message without its template's id, as one with the header's id would be, and another message.
            packet.extend([0x80 | map & 0x3f, 0x81, 0x82, 0x83]);
            packet.extend(message(4, &[9, 1]));
            match harm {
                1 => packet.truncate(at.index(packet.len() + 1)),
                2 => { let at = at.index(packet.len()); packet[at] = byte; }
                _ => {}
            }
            prop_assert_eq!(said(&mut plain, &packet), said(&mut alone, &packet), "{:x?}", packet);
        }
    }
}

/// The headers that venues have are plain, and those of this venue of ours; one that continues from the last is not.
#[test]
fn headers_as_they_are_have_a_program() {
    let plain = |templates: &str| config_of("", "", templates).unwrap().sets[0].header_program.is_some();
    assert!(plain(TEMPLATES));
    let field = |field: &str| TEMPLATES.replace("<uInt32 name=\"Sender\"/>", field);
    assert!(plain(&field("<uInt32 name=\"Sender\" presence=\"optional\"><default/></uInt32>")));
    assert!(!plain(&field("<uInt32 name=\"Sender\"><copy/></uInt32>")));
    assert!(!plain(&field("<uInt32 name=\"Sender\"><default value=\"1\"/></uInt32>")));
    assert!(!plain(&field("<group name=\"Of\"><uInt32 name=\"Sender\"/></group><uInt32 name=\"Sender\"/>")));
}

/// A message after a header may be of the header's template and say so by saying nothing: who reads the header
/// elsewhere must have it in mind.
#[test]
fn a_message_behind_a_header_may_leave_the_id_away() {
    let config = config("");
    for packets in &mut both(&config) {
        let mut packet = packet(5, 10, false, &[]);
        let (header, body) = (packet.clone(), packet.len());
        packet.push(0x80);
        packet.extend(&header[2..]);
        let (head, at, read) = said(packets, &packet).unwrap();
        assert_eq!((head.sequence, head.time_ns, at), (Some(5), Some(10), body));
        assert_eq!(read.map(|_| packets.batch.messages.len()), Ok(1));
        assert_eq!(packets.batch.messages[0].template, 0);
    }
}
