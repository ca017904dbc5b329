//! The header is written by hand; here it is compared with the code: every function with its types, every struct with
//! its layout, every number.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{align_of, offset_of, size_of};
use std::process::Command;

use common::{C99, CXX, LIBS, compiler, include, library, must};
use unitape_c::{
    ChannelStats, Dropped, Frame, Gate, GateStanding, HandlerStats, Lag, Level, LevelChange, LineStats,
    MarketRecord, Options, code,
};

const HEADER: &str =
    concat!(include_str!("../include/unitape.h"), include_str!("../include/unitape_handler.h"));
const SOURCES: [&str; 8] = [
    include_str!("../src/lib.rs"),
    include_str!("../src/cursor.rs"),
    include_str!("../src/gate.rs"),
    include_str!("../src/handler.rs"),
    include_str!("../src/market.rs"),
    include_str!("../src/options.rs"),
    include_str!("../src/publication.rs"),
    include_str!("../src/subscription.rs"),
];

/// The types of the functions' arguments and results, as C says them.
const TYPES: [(&str, &str); 40] = [
    ("Input<c_char>", "const char *"),
    ("Input<c_void>", "const void *"),
    ("*const c_char", "const char *"),
    ("*mut c_void", "void *"),
    ("Output<*mut c_void>", "void **"),
    ("Input<Options>", "const unitape_options *"),
    ("*mut Options", "unitape_options *"),
    ("&mut OpenPublication", "unitape_publication *"),
    ("HandlePointer<OpenPublication>", "unitape_publication *"),
    ("Output<*mut Handle<OpenPublication>>", "unitape_publication **"),
    ("&mut OpenSubscription", "unitape_subscription *"),
    ("HandlePointer<OpenSubscription>", "unitape_subscription *"),
    ("Output<*mut Handle<OpenSubscription>>", "unitape_subscription **"),
    ("&mut OpenGateHold", "unitape_gate_hold *"),
    ("HandlePointer<OpenGateHold>", "unitape_gate_hold *"),
    ("Output<*mut Handle<OpenGateHold>>", "unitape_gate_hold **"),
    ("Output<Dropped>", "unitape_dropped *"),
    ("Output<GateStanding>", "unitape_gate_standing *"),
    ("Output<Frame>", "unitape_frame *"),
    ("Output<Lag>", "unitape_lag *"),
    ("Output<u64>", "uint64_t *"),
    ("Output<u32>", "uint32_t *"),
    ("&mut OpenHandler", "unitape_handler *"),
    ("HandlePointer<OpenHandler>", "unitape_handler *"),
    ("Output<*mut Handle<OpenHandler>>", "unitape_handler **"),
    ("Input<Book>", "const unitape_book *"),
    ("*mut Level", "unitape_level *"),
    ("Output<HandlerStats>", "unitape_handler_stats *"),
    ("Output<ChannelStats>", "unitape_channel_stats *"),
    ("MarketCallback", "unitape_market_callback"),
    ("i16", "int16_t"),
    ("Callback", "unitape_callback"),
    ("u8", "uint8_t"),
    ("u16", "uint16_t"),
    ("u32", "uint32_t"),
    ("u64", "uint64_t"),
    ("i32", "int32_t"),
    ("i64", "int64_t"),
    ("usize", "size_t"),
    ("", "void"),
];

/// Every function of the code, by name: its prototype in C.
fn functions() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for source in SOURCES {
        for part in source.split("fn unitape_").skip(1) {
            let (name, rest) = part.split_once('(').expect("arguments");
            let name = format!("unitape_{name}");
            let (arguments, rest) = rest.split_once(") -> ").expect("a result");
            let (result, _) = rest.split_once(" {").expect("a body");
            let mut c = String::new();
            for argument in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
                let (_, of) = argument.split_once(": ").expect("a type");
                let comma = if c.is_empty() { "" } else { ", " };
                write!(c, "{comma}{}", c_type(of)).unwrap();
            }
            let c = if c.is_empty() { "void" } else { &c };
            let prototype = format!("{} {name}({c})", c_type(result.trim()));
            found.insert(name, prototype);
        }
    }
    found
}

fn c_type(rust: &str) -> &'static str {
    let found = TYPES.iter().find(|(name, _)| *name == rust);
    found.unwrap_or_else(|| panic!("how C says `{rust}` is unknown here")).1
}

/// Names of the functions that the header declares.
fn declared() -> Vec<String> {
    let mut names = Vec::new();
    let mut comment = false;
    for line in HEADER.lines() {
        comment |= line.trim_start().starts_with("/*");
        let ends = line.contains("*/");
        let first = line.split('(').next().unwrap_or("");
        let name = first.rsplit([' ', '*']).next().unwrap_or("");
        let declares = line.contains('(') && !line.starts_with([' ', '#']) && !line.starts_with("typedef");
        if !comment && declares && name.starts_with("unitape_") {
            names.push(name.to_owned());
        }
        comment &= !ends;
    }
    names.sort();
    names
}

macro_rules! layout {
    ($out:ident, $rust:ty, $c:literal: $($field:ident),* $(,)?) => {
        writeln!($out, "STATIC(sizeof({}) == {});", $c, size_of::<$rust>()).unwrap();
        let mut fields = 0;
        $(
            writeln!($out, "STATIC(offsetof({}, {}) == {});", $c, stringify!($field), offset_of!($rust, $field))
                .unwrap();
            let value: Option<$rust> = None;
            let size = size_of_field(value, |v| &v.$field);
            writeln!($out, "STATIC(sizeof((({} *)0)->{}) == {size});", $c, stringify!($field)).unwrap();
            fields += size;
        )*
        // A field that is not named here would leave a gap.
        assert_eq!(fields, size_of::<$rust>(), "{}: all fields, no padding", $c);
        assert_eq!(align_of::<$rust>(), 8);
    };
}

fn size_of_field<T, F>(_: Option<T>, _: impl Fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// A C file that does not compile unless the header says what the code does.
fn check() -> String {
    let mut c = String::from("#include \"unitape_handler.h\"\n");
    // Without C11 an array of negative size is what stops the compiler.
    c.push_str("#define JOIN(a, b) a##b\n#define NAME(line) JOIN(check_, line)\n");
    c.push_str("#define STATIC(truth) extern char NAME(__LINE__)[(truth) ? 1 : -1]\n");
    for prototype in functions().values() {
        // Twice declared, the types must be the same.
        writeln!(c, "extern {prototype};").unwrap();
    }
    layout!(c, Options, "unitape_options": size, backing, segment_bytes, hot_dir, window_segments, recorder,
        sync_bytes, sync_interval_ns, retain_bytes, retain_age_ns, retain_days, retain_notice_ns, retain_cursor_bytes, prefault_bytes, recorder_wait_ns, flags, gates, gate_count,
        epoch_min);
    layout!(c, Frame, "unitape_frame": position, bytes, length, frame, frame_length, topic, kind, flags, reserved);
    layout!(c, Lag, "unitape_lag": bytes, events, until_removal_bytes);
    layout!(c, Gate, "unitape_gate": reader, ahead_bytes, timeout_ns, policy, required, reserved);
    layout!(c, Dropped, "unitape_dropped": count, bytes, first, last);
    layout!(c, GateStanding, "unitape_gate_standing": position, dropped, waits, alive, reserved);
    layout!(c, Level, "unitape_level": px, qty, qty_exponent, orders);
    layout!(c, LevelChange, "unitape_level_change": level, side, action, depth, reserved);
    layout!(c, MarketRecord, "unitape_market": what, flags, instrument, product, channel, phase, sequence, ts_event, ts_recv, px,
        qty, qty_exponent, side, id, from, to, code, text, text_length, changes, change_count, book);
    layout!(c, HandlerStats, "unitape_handler_stats": packets, unknown, refused, gaps, levels, passed_over, updates, trades,
        stale, recovered, faults, waiting, dropped);
    layout!(c, LineStats, "unitape_line_stats": packets, bytes, first, twice, missed, reordered, corrupt);
    layout!(c, ChannelStats, "unitape_channel_stats": name, name_length, gaps, lost, late, recovered, restarts, lines);
    for (name, value) in code::ALL {
        let name = name.to_str().unwrap();
        let name = if *value == 0 { name.to_owned() } else { format!("E_{name}") };
        writeln!(c, "STATIC(UNITAPE_{name} == ({value}));").unwrap();
    }
    writeln!(c, "STATIC(UNITAPE_ABI == {});", unitape_c::ABI).unwrap();
    use unitape_model::flags;
    for (name, value) in [
        ("KIND_MESSAGE", unitape_model::message::KIND_MESSAGE),
        ("FRAME_LAST", flags::LAST),
        ("FRAME_LATE", flags::LATE),
        ("FRAME_META", flags::META),
        ("FRAME_SNAPSHOT", flags::SNAPSHOT),
        ("FRAME_EXT", flags::EXT),
        ("FRAME_CLOCK_AHEAD", flags::CLOCK_AHEAD),
    ] {
        writeln!(c, "STATIC(UNITAPE_{name} == {value});").unwrap();
    }
    // Where the code has them private, both say them in words.
    for source in SOURCES {
        for line in
            source.lines().filter_map(|line| line.trim_start_matches("pub(crate) ").strip_prefix("const "))
        {
            let Some((name, value)) = line.split_once(": u32 = ").or_else(|| line.split_once(": u64 = "))
            else {
                continue;
            };
            let known = [
                "BACKING_",
                "RECORDER_",
                "START_",
                "WAIT_",
                "GATE_",
                "TRUNCATE_",
                "NO_",
                "MARKET_",
                "LEVEL_",
                "SIDE_",
                "SUBSCRIBE_",
            ];
            let value = value.replace("u32::MAX", "UINT32_MAX").replace("u64::MAX", "UINT64_MAX");
            if known.iter().any(|start| name.starts_with(start)) {
                let value = value.trim_end_matches(';');
                writeln!(c, "STATIC(UNITAPE_{name} == {value});").unwrap();
            }
        }
    }
    c.push_str("typedef void (*function)(void);\nint main(void) {\n    function all[] = {\n");
    for name in functions().keys() {
        writeln!(c, "        (function){name},").unwrap();
    }
    c.push_str("    };\n    size_t i;\n    for (i = 0; i < sizeof all / sizeof *all; ++i)\n");
    c.push_str("        if (!all[i]) return 1;\n    return unitape_abi() != UNITAPE_ABI;\n}\n");
    c
}

/// Once a function had another argument in the header than in the code; the caller's stack paid for it.
#[test]
fn the_header_says_what_the_code_does() {
    let names: Vec<String> = functions().into_keys().collect();
    assert_eq!(declared(), names, "the header declares the functions that there are");
    assert!(names.len() > 20);
    let codes = HEADER.matches("\n    UNITAPE_E_").count() + HEADER.matches("\n    UNITAPE_OK").count();
    assert_eq!(codes, code::ALL.len(), "the header lists the codes that there are");
    // A code without a word on what it means, or what to do, is a number.
    for line in HEADER.lines().filter(|line| line.starts_with("    UNITAPE_E_")) {
        assert!(line.contains(" /* ") && line.ends_with("*/"), "{line}");
    }

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("check.c");
    std::fs::write(&file, check()).unwrap();
    // A cast of a function pointer to another is what the list of all functions is made of.
    for (variable, usual, flags) in [("CC", "cc", &C99[..]), ("CXX", "c++", &CXX[..])] {
        let Some(compiler) = compiler(variable, usual) else { continue };
        let program = dir.path().join(usual);
        must(
            Command::new(compiler)
                .args(flags)
                .args(["-Wno-cast-function-type", "-I"])
                .arg(include())
                .arg(&file)
                .args(["-x", "none"])
                .arg(library("libunitape_c.a"))
                .args(LIBS)
                .arg("-o")
                .arg(&program),
        );
        must(&mut Command::new(program));
    }
}
