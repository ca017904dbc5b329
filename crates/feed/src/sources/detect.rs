//! Detects the format of a file by its content.

use crate::error::Error;
use crate::formats::format::Format;
use crate::formats::text::{TextFormat, has_paths};
use crate::formats::{csv as csv_format, fixed as fixed_format};
use crate::mapping::Mapping;
use crate::sources::open::first_bytes;
use std::path::Path;
use unitape_base::capture::{CaptureWalker, NextCaptureRecord, UdpParseOutcome, is_capture, udp};
use unitape_codec::csv::{CsvRowDecoder, CsvRowKind, NextCsvRow};
use unitape_codec::fixed::{FixedWidthDecoder, NextRecord};
use unitape_codec::swift_mt::{EnvelopeForm, NextSwiftFrame, SwiftFieldTokenizer, SwiftFramer};
use unitape_codec::text::{mail, xml};
use unitape_codec::{iex, iso20022, itch};

const LOOK_BYTES: u64 = 64 << 10;

/// Detects the format and the shipped mapping of a file.
///
/// # Errors
/// Fails if the file cannot be read, or if its format is unknown; the error shows its content.
pub fn detect(path: &Path) -> Result<Format, Error> {
    let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
    let meta = std::fs::metadata(path).map_err(fail)?;
    if meta.is_dir() {
        return Err(fail(std::io::Error::new(
            std::io::ErrorKind::IsADirectory,
            "is a directory; name its files",
        )));
    }
    if !meta.is_file() {
        // Bytes that a look read from a pipe would be missing from its feed.
        return Err(Error::ReadOnce { path: path.to_owned() });
    }
    let head = match first_bytes(path, LOOK_BYTES) {
        Ok(head) => head,
        // A file that cannot be read says so itself; what cannot be unpacked is none that we know.
        Err(e) if e.raw_os_error().is_some() => return Err(fail(e)),
        Err(e) => {
            let description = format!("gzip or zstd that cannot be unpacked: {e}");
            return Err(Error::Unrecognised { path: path.to_owned(), description });
        }
    };
    recognise_format(&head)
        .ok_or_else(|| Error::Unrecognised { path: path.to_owned(), description: describe_content(&head) })
}

fn recognise_format(head: &[u8]) -> Option<Format> {
    let text = head.trim_ascii_start();
    if let Some(format) = detect_jsonl(text) {
        return Some(format);
    }
    if text.starts_with(b"{") && (contains(text, b"\"kind\"") || contains(text, b"\"rec\"")) {
        return Some(Format::events());
    }
    if is_itch(head) {
        return Format::from_mapping(Mapping::built_in("nasdaq-itch50")?.clone()).ok();
    }
    if is_iex(head) {
        return Format::from_mapping(Mapping::built_in("iex")?.clone()).ok();
    }
    if let Some(format) = detect_fixed(head) {
        return Some(format);
    }
    if let Some(format) = detect_csv(head) {
        return Some(format);
    }
    if is_swift(text) {
        let best = Mapping::all_built_in().find(|m| m.format == "swift")?;
        return Format::from_mapping(best.clone()).ok();
    }
    if is_mail(text) {
        return Format::from_mapping(Mapping::built_in("mail")?.clone()).ok();
    }
    if let Some(root) = xml::root(text) {
        return Format::from_mapping(Mapping::built_in(news_mapping(root))?.clone()).ok();
    }
    if is_iso20022(text) {
        let best = Mapping::all_built_in().find(|m| m.format == "iso20022")?;
        return Format::from_mapping(best.clone()).ok();
    }
    let message_start = head.windows(5).position(|w| w == b"8=FIX")?;
    let field_end = head[message_start..].iter().position(|b| *b == 1)? + message_start;
    let begin_string = std::str::from_utf8(&head[message_start + 2..field_end]).ok()?;
    let mapping_fits = |m: &&Mapping| {
        m.format == "fix"
            && m.detect.begin_string.iter().any(|b| b == begin_string)
            && m.detect.contains.iter().all(|c| contains(head, c.as_bytes()))
    };
    // The mapping that asks for most is the one that knows the file best.
    let best = Mapping::all_built_in().filter(mapping_fits).max_by_key(|m| m.detect.contains.len())?;
    Format::from_mapping(best.clone()).ok()
}

/// Detects the shipped mapping of JSON Lines: its required values must be in the first message, and no member that
/// marks a unitape event. If several fit, the mapping with the most required values wins, as it knows the file best.
fn detect_jsonl(text: &[u8]) -> Option<Format> {
    if !text.starts_with(b"{") {
        return None;
    }
    let asks = |m: &Mapping| m.format == "jsonl" && !m.detect.contains.is_empty();
    let mapping_has = |m: &Mapping| has_paths(TextFormat::JSONL, text, &m.detect.contains, &["kind", "rec"]);
    let best = Mapping::all_built_in()
        .filter(|m| asks(m) && mapping_has(m))
        .max_by_key(|m| m.detect.contains.len())?;
    Format::from_mapping(best.clone()).ok()
}

/// Returns whether the bytes are ITCH: a length and a type of that length, again and again.
fn is_itch(head: &[u8]) -> bool {
    let (framer, mut offset, mut messages) = (itch::ItchFramer::default(), 0, 0);
    while messages < RECORDS_LOOKED_AT {
        let itch::NextItchFrame::Message(frame) = framer.frame(head, offset, false) else { break };
        if itch::ItchMessage::of(frame.body(head)).is_none_or(|m| m.check().is_err()) {
            return false;
        }
        (offset, messages) = (frame.span.end, messages + 1);
    }
    messages > 1
}

/// Returns whether the bytes are a capture whose first datagrams include an IEX-TP packet as long as its head states.
fn is_iex(head: &[u8]) -> bool {
    if !is_capture(head) {
        return false;
    }
    let (mut walker, mut offset, mut packets) = (CaptureWalker::default(), 0, 0);
    while packets < RECORDS_LOOKED_AT {
        offset = match walker.next(head, offset) {
            NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => end,
            NextCaptureRecord::Packet(packet) => {
                let bytes = &head[packet.bytes.clone()];
                if let UdpParseOutcome::Datagram(datagram) = udp(packet.link, bytes, packet.is_cut()) {
                    let payload = &bytes[datagram.payload];
                    let length = |header: iex::IexPacketHeader| {
                        iex::PACKET_HEAD_BYTES + usize::from(header.payload_bytes)
                    };
                    if iex::IexPacketHeader::read(payload)
                        .is_some_and(|header| length(header) == payload.len())
                    {
                        return true;
                    }
                }
                packets += 1;
                packet.end
            }
            NextCaptureRecord::More | NextCaptureRecord::Lost { .. } => return false,
        };
    }
    false
}

/// Finds the shipped layout by which the header and the following records read well.
fn detect_fixed(head: &[u8]) -> Option<Format> {
    Mapping::all_built_in().filter(|m| m.format == "fixed" && m.detect.layout).find_map(|mapping| {
        let mut decoder = FixedWidthDecoder::new(fixed_format::layout(mapping).ok()?);
        let mut offset = 0;
        for _ in 0..RECORDS_LOOKED_AT {
            match decoder.next(head, offset, 0, false) {
                NextRecord::Message(record) if record.content.is_err() => return None,
                NextRecord::Message(record) => offset = record.end,
                NextRecord::Incomplete { .. } | NextRecord::End => break,
            }
        }
        (offset > 0).then(|| Format::from_mapping(mapping.clone()).ok()).flatten()
    })
}

/// Finds the shipped mapping that accepts the header. The header must have all columns of its layout, or the layout
/// all columns of the header. If several fit, the mapping that knows most columns wins.
fn detect_csv(head: &[u8]) -> Option<Format> {
    let csv = Mapping::all_built_in().filter(|m| m.format == "csv" && m.detect.layout);
    let fitting_mappings = csv.filter_map(|mapping| {
        let layout = csv_format::mapped_layout(mapping).ok()?;
        let mut decoder = CsvRowDecoder::new(layout.clone());
        match decoder.next(head, 0, 0, false) {
            NextCsvRow::Message(row) if row.content == Ok(CsvRowKind::Header) => {}
            _ => return None,
        }
        let header_names = decoder.names();
        let known_columns =
            header_names.iter().filter(|name| layout.header_names().any(|column| column == *name)).count();
        let has_all = layout.header_names().all(|column| header_names.iter().any(|name| name == column));
        (has_all || known_columns == header_names.len()).then_some((known_columns, mapping))
    });
    fitting_mappings
        .max_by_key(|(known_columns, _)| *known_columns)
        .and_then(|(_, best)| Format::from_mapping(best.clone()).ok())
}

/// Enough to distinguish one layout from another.
const RECORDS_LOOKED_AT: usize = 10;

/// Returns whether the text is a message in blocks, or a body of fields in the first lines: `:20:` and others.
fn is_swift(text: &[u8]) -> bool {
    let mut fields = SwiftFieldTokenizer::new();
    let framer = SwiftFramer::default();
    match fields.frame(&framer, text, 0, true) {
        NextSwiftFrame::Message(message) if message.form == EnvelopeForm::Envelope => true,
        // Two fields at least: one line in colons proves nothing.
        NextSwiftFrame::Message(_) => fields.as_slice().len() > 1,
        // The first message may be damaged, or longer than was looked at.
        NextSwiftFrame::Bad { .. } => {
            text.starts_with(b"{1:") && (contains(text, b"{2:") || contains(text, b"{4:"))
        }
        _ => false,
    }
}

/// Returns whether the text starts with a postmark, or with a header that has a date and a sender.
fn is_mail(text: &[u8]) -> bool {
    let wanted_paths = ["date".to_owned(), "from[].email".to_owned()];
    has_paths(TextFormat::MAIL, text, &wanted_paths, &[]) || mail::has_header(text)
}

/// Returns the shipped mapping for news in XML with this root.
fn news_mapping(root: &str) -> &'static str {
    match root {
        "rss" | "RDF" | "item" => "rss-news",
        "feed" | "entry" => "atom-news",
        _ => "newsml-g2",
    }
}

/// Returns whether the text is XML with a header or document near the start whose namespace names a message.
fn is_iso20022(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    let mut decoder = iso20022::Iso20022Decoder::default();
    if !text.starts_with(b"<") {
        return false;
    }
    match decoder.next(text, 0, true, &mut iso20022::ElementCollector::default()) {
        iso20022::NextIsoMessage::Message(_) => true,
        // The first message may be damaged, or longer than was looked at.
        _ => ISO_SIGNS.iter().any(|sign| contains(text, sign)),
    }
}

/// Parts of the namespaces of documents and headers.
const ISO_SIGNS: [&[u8]; 3] = [b":iso:std:iso:20022:", b"urn:swift:xsd:", b"six-interbank-clearing.com/de/p"];

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|w| w == part)
}

fn describe_content(head: &[u8]) -> String {
    match head {
        [] => "the file is empty".to_owned(),
        _ if is_capture(head) => "a capture; say what its packets hold".to_owned(),
        _ if head.iter().all(|b| *b == 0) => "nothing but zeros".to_owned(),
        _ if head.starts_with(b"PK\x03\x04") => {
            "a ZIP archive: unpack it and name the files in it (unzip)".to_owned()
        }
        _ if unitape_codec::charset::utf_16(head).is_some() => {
            "text in UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)".to_owned()
        }
        _ => format!("it begins with \"{}\"", head[..head.len().min(24)].escape_ascii()),
    }
}
