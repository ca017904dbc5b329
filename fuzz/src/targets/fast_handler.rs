//! Any bytes as packets of any channel and line, at any time: the handler never panics, keeps its bounds, and every packet
//! is accounted for. A packet is a byte for channel and line, one for the time passed, one for its length, and its bytes.
//! Two venues get them: one as shipped, and one of which all is otherwise.

use std::sync::{Arc, LazyLock};
use unitape_marketdata::{InstrumentId, UnixNanos};
use unitape_marketdata::engine::{EventContext, HandlerConfig, Engine, Packet, MarketEvent};

const BOUNDS: &str = "window = { packets = 8, ns = 1000, past = 2, dead_ns = 10000, far = 100, bytes = 4096 }\n\
     recovery = { levels = 16, levels_all = 24, products = 8, instruments = 16, first = 1 }\n";

static BOX: LazyLock<Arc<HandlerConfig>> = LazyLock::new(|| {
    let mut text = String::from(
        "name = \"fuzz\"\nformat = \"fast\"\n[fast]\nlike = \"t7-emdi\"\n\
         templates = [\"incremental.xml\", \"snapshot.xml\", \"reference.xml\"]\n",
    );
    text += &BOUNDS.replace(", first = 1", "");
    for (i, role) in ["incremental", "snapshot", "reference"].iter().enumerate() {
        text += &format!(
            "[[fast.channel]]\nname = \"{role}\"\nrole = \"{role}\"\na = [\"224.0.0.1:{i}\"]\nb = [\"224.0.0.2:{i}\"]\n"
        );
    }
    let files = [
        ("incremental.xml", include_str!("../../../vectors/fast/box/incremental.xml")),
        ("snapshot.xml", include_str!("../../../vectors/fast/box/snapshot.xml")),
        ("reference.xml", include_str!("../../../vectors/fast/box/reference.xml")),
    ];
    config(&text, &files)
});

/// Fields that may be left out, ids that are texts, no known depth, messages that empty all books, two pairs that are
/// numbered by channel, and no clock.
static OTHER: LazyLock<Arc<HandlerConfig>> = LazyLock::new(|| {
    let mut text = String::from(
        "name = \"fuzz\"\nformat = \"fast\"\n[fast]\ntemplates = [\"t.xml\"]\nkey = \"channel\"\nreset = \"message\"\n\
         action = { 0 = \"new\", 1 = \"change\", 2 = \"delete\", 3 = \"delete_thru\", 4 = \"delete_from\", 5 = \"overlay\" }\n\
         type = { 0 = \"bid\", 1 = \"offer\", 2 = \"trade\", 3 = \"empty\" }\nproduct_state = { 3 = \"open\" }\n",
    );
    text += BOUNDS;
    text += "framing = { header = \"Head\", sequence = \"Number\", sender = \"Sender\", reset = \"Reset\" }\n";
    for (port, role, pair) in
        [(0, "incremental", "x"), (1, "snapshot", "x"), (2, "incremental", "y"), (3, "snapshot", "y"), (4, "reference", "y")]
    {
        text += &format!(
            "[[fast.channel]]\nname = \"{role}{port}\"\nrole = \"{role}\"\npair = \"{pair}\"\na = [\"224.0.0.1:{port}\"]\nb = [\"224.0.0.2:{port}\"]\n"
        );
    }
    let entries = "instrument = \"E.Id\", type = \"E.Type\", px = \"E.Px\", qty = \"E.Qty\", depth = \"E.Level\"";
    for (template, kind, fields) in [
        ("Depth", "depth", format!("sequence = \"Seq\", action = \"E.Action\", {entries}")),
        ("Snap", "snapshot", format!("last = \"Last\", product_state = \"State\", {}", entries.replace("E.Id", "Id"))),
        ("Beacon", "beacon", "last = \"Last\"".to_owned()),
        ("State", "product_state", "sequence = \"Seq\", product_state = \"State\"".to_owned()),
        ("Reset", "reset", "sequence = \"Seq\"".to_owned()),
        (
            "Ins",
            "instrument",
            "instrument = \"Id\", symbol = \"Name\", market_depth = \"F.Depth\", deleted = \"Gone\"".to_owned(),
        ),
    ] {
        text += &format!("[[fast.message]]\ntemplates = [\"{template}\"]\nkind = \"{kind}\"\nfields = {{ {fields} }}\n");
        if fields.contains("E.") {
            text += "entries = \"E\"\n";
        }
    }
    config(&text, &[("t.xml", TEMPLATES)])
});

const TEMPLATES: &str = r#"<templates xmlns="http://www.fixprotocol.org/ns/fast/td/1.1">
  <template name="Head" id="1"><uInt32 name="Number"/><uInt32 name="Sender"/><uInt32 name="Reset"/></template>
  <template name="Depth" id="2"><uInt64 name="Seq" presence="optional"/><sequence name="E" presence="optional">
    <string name="Id" presence="optional"/><uInt32 name="Action" presence="optional"/>
    <uInt32 name="Type" presence="optional"/><decimal name="Px" presence="optional"/>
    <decimal name="Qty" presence="optional"/><uInt32 name="Level" presence="optional"/></sequence></template>
  <template name="Snap" id="3"><uInt64 name="Last" presence="optional"/><uInt32 name="State" presence="optional"/>
    <byteVector name="Id" presence="optional"/><sequence name="E"><uInt32 name="Type"/><decimal name="Px" presence="optional"/>
    <decimal name="Qty" presence="optional"/><uInt32 name="Level" presence="optional"/></sequence></template>
  <template name="Beacon" id="4"><uInt64 name="Last" presence="optional"/></template>
  <template name="State" id="5"><uInt64 name="Seq" presence="optional"/><string name="State" presence="optional"/></template>
  <template name="Reset" id="6"><uInt64 name="Seq" presence="optional"/></template>
  <template name="Ins" id="7"><byteVector name="Id" presence="optional"/><string name="Name" presence="optional"/>
    <sequence name="F" presence="optional"><uInt64 name="Depth"/></sequence><uInt32 name="Gone" presence="optional"/></template>
</templates>"#;

fn config(text: &str, files: &[(&str, &str)]) -> Arc<HandlerConfig> {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).expect("a file");
    }
    let path = dir.path().join("fuzz.toml");
    std::fs::write(&path, text).expect("a file");
    HandlerConfig::load(&path).unwrap_or_else(|e| panic!("{e}"))
}

pub fn run(data: &[u8]) {
    packets(&BOX, data);
    packets(&OTHER, data);
}

fn packets(config: &Arc<HandlerConfig>, data: &[u8]) {
    let mut handler = Engine::new(config.clone());
    let (mut ends, mut packets, mut now, mut place) = (0u64, 0u64, 0, 0);
    let mut count = |at: &EventContext<'_>, step: MarketEvent<'_>| {
        assert!(at.tables.instruments.len() <= 16 && at.tables.products.len() <= 8);
        ends += u64::from(matches!(step, MarketEvent::End(_)));
    };
    let mut left = data;
    while let [of, passed, length, rest @ ..] = left {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        left = rest;
        now += i64::from(*passed) * 100;
        place += 300;
        packets += 1;
        let to = ([224, 0, 0, 1 + (of >> 4 & 1)], u16::from(of & 7)).into();
        handler.packet(Packet { to, ts_recv: UnixNanos(now), position: place, payload }, &mut count);
        if of >> 5 == 7 && !handler.tables().instruments.is_empty() {
            let count = handler.tables().instruments.len() as u32;
            handler.want_snapshot(InstrumentId(u32::from(*passed) % count));
        }
    }
    handler.finish(&mut count);
    assert!(handler.stats().waiting <= 24);
    handler.close(&mut count);
    assert!(handler.tables().instrument_ids().all(|id| !handler.is_live(id)));
    // A packet has one or more messages, or is one.
    assert!(ends >= packets, "{ends} ends of {packets} packets");
}
