//! Any bytes as packets of any channel and line, at any time: the handler never panics, keeps its bounds, and every packet
//! is accounted for. A packet is a byte for channel and line, one for the time passed, one for its length, and its bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use unitape_feed::Mapping;
use unitape_feed::fast::{At, Config, Handler, Packet, Step, config_of};

static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in [
        ("incremental.xml", include_str!("../../vectors/fast/box/incremental.xml")),
        ("snapshot.xml", include_str!("../../vectors/fast/box/snapshot.xml")),
        ("reference.xml", include_str!("../../vectors/fast/box/reference.xml")),
    ] {
        std::fs::write(dir.path().join(name), text).expect("a file");
    }
    let mut text = String::from(
        "name = \"fuzz\"\nformat = \"fast\"\n[fast]\nlike = \"t7-emdi\"\n\
         templates = [\"incremental.xml\", \"snapshot.xml\", \"reference.xml\"]\n\
         window = { packets = 8, ns = 1000, past = 2, dead_ns = 10000, far = 100, bytes = 4096 }\n\
         recovery = { levels = 16, levels_all = 24, products = 8, instruments = 16 }\n",
    );
    for (i, role) in ["incremental", "snapshot", "reference"].iter().enumerate() {
        text += &format!(
            "[[fast.channel]]\nname = \"{role}\"\nrole = \"{role}\"\na = [\"224.0.0.1:{i}\"]\nb = [\"224.0.0.2:{i}\"]\n"
        );
    }
    let path = dir.path().join("fuzz.toml");
    std::fs::write(&path, text).expect("a file");
    let mapping = Mapping::load(path.to_str().expect("a name")).expect("a mapping");
    config_of(&mapping).expect("a handler")
});

fuzz_target!(|data: &[u8]| {
    let mut handler = Handler::new(CONFIG.clone());
    let (mut ends, mut packets, mut now, mut place) = (0u64, 0u64, 0, 0);
    let mut count = |at: &At<'_>, step: Step<'_>| {
        assert!(at.tables.instruments.len() <= 16 && at.tables.products.len() <= 8);
        ends += u64::from(matches!(step, Step::End(_)));
    };
    let mut left = data;
    while let [of, passed, length, rest @ ..] = left {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        left = rest;
        now += i64::from(*passed) * 100;
        place += 300;
        packets += 1;
        let to = ([224, 0, 0, 1 + (of >> 4 & 1)], u16::from(of & 3)).into();
        handler.packet(Packet { to, ts_recv: now, place, payload }, &mut count);
    }
    handler.finish(&mut count);
    assert!(handler.stats().waiting <= 24);
    // A packet has one or more messages, or is one.
    assert!(ends >= packets, "{ends} ends of {packets} packets");
});
