//! `unitape tape repair`: what can be made again is made again, byte for byte; what cannot be vouched for is named and
//! waits for a word; and nothing that was there is gone, however often the repair is killed.
#![cfg(unix)]

use crate::common::damage;

use crate::common::{self, run, unitape};
use damage::{Bench, HEADER_PAGE, SEGMENT, SPAN, a_price, change, flip, lengthen, shorten};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use unitape_sim::Rng;

/// Damages something, has it mended, and holds the tape against what it was.
#[track_caller]
fn mended(bench: &Bench, what: &str, options: &[&str], damage: impl Fn()) {
    let good = bench.content();
    damage();
    let damaged = bench.content();
    assert!(damaged != good, "{what}: nothing was damaged");
    // A dry run says it, and changes nothing.
    let dry = bench.repair(options).code(3);
    assert!(dry.text().contains("can be mended") && dry.text().contains("--apply"), "{what}: {}", dry.text());
    assert!(
        common::files(&bench.tape)
            .keys()
            .all(|name| { name == "run/lineage" || !name.starts_with("repair") && !name.starts_with("run") })
    );
    assert!(bench.content() == damaged, "{what}: a dry run changed it");
    let out = bench.repair(&[options, &["--apply", "--json"]].concat()).code(0).json();
    assert_eq!(
        (&out["applied"], &out["remains"]),
        (&true.into(), &Value::Array(Vec::new())),
        "{what}: {out}"
    );
    assert!(!out["findings"].as_array().unwrap().is_empty(), "{what}: {out}");
    same(&bench.content(), &good, what);
    // The damaged bytes are kept unchanged.
    let aside = Path::new(out["aside"].as_str().unwrap());
    let kept = common::files(aside);
    for (name, bytes) in damaged.iter().filter(|(name, bytes)| good.get(*name) != Some(bytes)) {
        let whole = kept.get(name).is_some_and(|kept| kept == bytes);
        let start = kept.get(&format!("{name}.start")).is_some_and(|kept| bytes.starts_with(kept));
        assert!(whole || start, "{what}: {name} is not in {}: {:?}", aside.display(), kept.keys());
    }
    assert!(!kept.contains_key("new"), "{what}");
    bench.verify().code(0);
    bench.write().code(0);
    assert!(bench.repair(&[]).code(0).text().contains("nothing to repair"), "{what}");
    remove_repairs(bench);
}

fn remove_repairs(bench: &Bench) {
    for entry in std::fs::read_dir(&bench.tape).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match name.as_str() {
            "repairs.log" => std::fs::remove_file(&path).unwrap(),
            _ if name.starts_with("repair-") => std::fs::remove_dir_all(&path).unwrap(),
            _ => {}
        }
    }
}

#[track_caller]
fn same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in a {
        let at = bytes.iter().zip(&b[name]).position(|(x, y)| x != y);
        assert!(bytes.len() == b[name].len() && at.is_none(), "{what}: {name} differs at {at:?}");
    }
}

/// All that the rest of the tape vouches for comes back byte for byte.
#[test]
fn what_the_rest_of_the_tape_says_is_made_again() {
    let bench = Bench::new();
    let log = bench.path("definitions.log");
    let length = std::fs::metadata(&log).unwrap().len();
    for offset in [3, 18, 64 + 3, 64 + 10, 64 + 40, length - 30] {
        mended(&bench, "a bit of definitions.log", &[], || flip(&log, offset));
    }
    mended(&bench, "definitions.log cut short", &[], || shorten(&log, length / 2));
    mended(&bench, "definitions.log removed", &[], || shorten(&log, 0));
    mended(&bench, "a bit of durable", &[], || flip(&bench.path("durable"), 18));
    mended(&bench, "durable removed", &[], || shorten(&bench.path("durable"), 0));
    mended(&bench, "durable cut short", &[], || shorten(&bench.path("durable"), 20));
    let last = bench.last();
    for index in [0, 2, last] {
        for offset in [2, 9, 33, 57] {
            mended(&bench, "a bit of a header page", &[], || flip(&bench.segment(index), offset));
        }
    }
    mended(&bench, "two header pages", &[], || {
        flip(&bench.segment(1), 57);
        flip(&bench.segment(2), 57);
    });
    let toml = bench.path("tape.toml");
    for offset in 0..std::fs::metadata(&toml).unwrap().len() {
        // A blank may be another blank, and what follows the last digit is a line's end.
        let byte = std::fs::read(&toml).unwrap()[offset as usize];
        if byte.is_ascii_alphanumeric() && offset % 7 == 0 {
            mended(&bench, "a bit of tape.toml", &[], || flip(&toml, offset));
        }
    }
    mended(&bench, "tape.toml removed", &[], || shorten(&toml, 0));
    let crc = std::fs::metadata(bench.crc(last)).unwrap().len();
    mended(&bench, "the checksum of the open span", &[], || flip(&bench.crc(last), crc - 2));
    mended(&bench, "all but the rest at once", &[], || {
        flip(&log, 80);
        shorten(&bench.path("durable"), 0);
        flip(&bench.segment(1), 40);
        shorten(&toml, 10);
    });
}

/// A checksum that is lost is not made again from the data, unless you say so; and then `verify` continues to say it.
#[test]
fn lost_checksums_need_your_word() {
    let bench = Bench::new();
    let good = bench.content();
    shorten(&bench.crc(1), 0);
    shorten(&bench.crc(2), 5);
    let damaged = bench.content();
    let out = bench.repair(&["--apply"]).code(3);
    assert!(
        out.text().contains("the checksum was lost") && out.text().contains("--accept-unverified"),
        "{}",
        out.text()
    );
    assert!(bench.content() == damaged, "nothing vouches for it");
    bench.verify().code(3);
    let (from, to) = (SEGMENT, 3 * SEGMENT);
    let out = bench.repair(&["--accept-unverified", "--json"]).code(3).json();
    let parts: Vec<_> = out["findings"].as_array().unwrap().iter().map(|f| f["positions"].clone()).collect();
    assert_eq!(parts.first().unwrap()[0], from);
    assert_eq!(parts.last().unwrap()[1], to);
    // The first span of the second one still has its checksum.
    let lost: u64 = parts.iter().map(|p| p[1].as_u64().unwrap() - p[0].as_u64().unwrap()).sum();
    assert_eq!((parts.len(), lost), (2, 2 * SEGMENT - SPAN), "{out}");
    bench.repair(&["--accept-unverified", "--apply"]).code(0);
    same(&bench.content(), &good, "the data were right");
    let out = bench.verify().code(0);
    assert!(
        out.text().contains("accepted unverified") && out.text().contains(&from.to_string()),
        "{}",
        out.text()
    );
    let out = bench.tape_command("verify", &["--json"]).code(0).json();
    assert_eq!(out["accepted_unverified"][0], serde_json::json!([from, from + SPAN]));
    bench.write().code(0);
}

/// A damaged span stays damaged; a word accepts it, or cuts the tape there and says what goes.
#[test]
fn damaged_data_stay_until_you_say_what_is_to_be_done() {
    let bench = Bench::new();
    let (segment, offset) = a_price(&bench);
    flip(&segment, offset);
    let damaged = bench.content();
    let out = bench.repair(&["--apply"]).code(3);
    assert!(bench.content() == damaged);
    for word in ["damaged", "positions", "--truncate", "--accept-unverified", "events"] {
        assert!(out.text().contains(word), "{word}: {}", out.text());
    }
    let end = bench.tape_command("info", &["--json"]);
    drop(end);
    // Accepted: the writer continues, and `verify` names it.
    bench.repair(&["--apply", "--accept-unverified"]).code(0);
    bench.write().code(0);
    assert!(bench.verify().code(0).text().contains("accepted unverified"));

    let bench = Bench::new();
    let good = bench.content();
    let all = common::cat(&bench.tape, &["--full"]);
    flip(&bench.segment(2), HEADER_PAGE + SPAN + 2000);
    let dry = bench.repair(&["--truncate", "--json"]).code(3).json();
    assert_eq!((&dry["applied"], &dry["cut"]["done"]), (&false.into(), &false.into()));
    let out = bench.repair(&["--truncate", "--apply", "--json"]).code(0).json();
    for key in ["position", "end", "events"] {
        assert_eq!(out["cut"][key], dry["cut"][key]);
    }
    let cut = out["cut"]["position"].as_u64().unwrap();
    assert!(cut <= 2 * SEGMENT + SPAN && cut > 2 * SEGMENT + SPAN - 4096, "{out}");
    bench.verify().code(0);
    let left = common::cat(&bench.tape, &["--full"]);
    assert_eq!(left, all[..left.len()], "what is before the cut is untouched");
    assert_eq!(out["cut"]["events"].as_u64().unwrap() as usize, all.len() - left.len());
    assert!(left.last().unwrap()["position"].as_u64().unwrap() < cut);
    let kept = common::files(Path::new(out["aside"].as_str().unwrap()));
    for index in 3..good.keys().filter(|n| n.ends_with(".seg")).count() {
        let name = format!("segments/{index:016x}.seg");
        assert!(kept[&name] == good[&name], "{name}");
    }
    assert!(kept.contains_key("segments/0000000000000002.seg") && kept.contains_key("durable"));
    // The source still has it all.
    bench.write().code(0);
    same(&bench.content(), &good, "consolidated again");
    bench.verify().code(0);
}

/// Frames that are broken, a segment that is cut short, one that is gone, an end that is gone: each can be cut, and then
/// the tape is whole, and written on.
#[test]
fn what_is_gone_can_be_cut() {
    let bench = Bench::new();
    let good = bench.content();
    let last = bench.last();
    let damages: [(&str, &dyn Fn()); 6] = [
        ("a broken header word", &|| flip(&bench.segment(2), HEADER_PAGE + 4)),
        ("a segment cut short", &|| shorten(&bench.segment(2), HEADER_PAGE + SPAN + 777)),
        ("a segment that is gone", &|| shorten(&bench.segment(2), 0)),
        ("the last one gone", &|| shorten(&bench.segment(last), 0)),
        ("the first one broken", &|| flip(&bench.segment(0), HEADER_PAGE + 4)),
        ("a segment and the marks gone", &|| {
            shorten(&bench.segment(2), 0);
            shorten(&bench.path("durable"), 0);
        }),
    ];
    for (what, damage) in damages {
        damage();
        bench.verify().code(3);
        bench.repair(&["--apply"]).code(3);
        let out = bench.repair(&["--apply", "--truncate", "--json"]).code(0).json();
        assert_eq!(out["remains"], Value::Array(Vec::new()), "{what}: {out}");
        assert_eq!(out["cut"]["done"], true, "{what}: {out}");
        let out = bench.verify();
        assert_eq!(out.code, Some(0), "{what}: {}", out.text());
        let out = bench.write();
        assert_eq!(out.code, Some(0), "{what}: {}", out.stderr);
        same(&bench.content(), &good, what);
        bench.verify().code(0);
        remove_repairs(&bench);
    }
}

/// Definitions whose segments retention has removed are in the log alone.
#[test]
fn definitions_of_removed_segments_are_kept_and_lost_ones_are_named() {
    let bench = Bench::new();
    bench.tape_command("retain", &["--bytes", "200000"]).code(0);
    let log = bench.path("definitions.log");
    let good = std::fs::read(&log).unwrap();
    // Records of existing segments: all of them come back.
    mended(&bench, "a record that a segment has", &[], || flip(&log, good.len() as u64 - 30));
    // A record of a removed segment: the others are kept, and it is named.
    let second = 64 + 16 + u64::from(u32::from_le_bytes(good[72..76].try_into().unwrap()));
    flip(&log, second + 40);
    let out = bench.repair(&["--apply", "--json"]).code(3).json();
    let lost: Vec<_> = out["findings"].as_array().unwrap().iter().filter(|f| f["remedy"] == "none").collect();
    assert_eq!(lost.len(), 1, "{out}");
    assert!(lost[0]["what"].as_str().unwrap().contains("lost"), "{out}");
    assert!(lost[0]["action"].as_str().unwrap().contains("retention"), "{out}");
    let left = std::fs::read(&log).unwrap();
    let gone = good.len() - left.len();
    assert!(left[..second as usize] == good[..second as usize]);
    assert!(gone > 0 && left[second as usize..] == good[second as usize + gone..], "the others are kept");
    // The name is not known any more, and that is no secret.
    bench.verify().code(3);
    let read = bench.tape_command("cat", &["--json", "--skip-damage"]).code(3);
    assert!(!read.text().is_empty(), "the tape can be read");
    // The log is gone: what the segments have comes back, and what they do not have is named.
    shorten(&log, 0);
    let out = bench.repair(&["--apply", "--json"]).code(3).json();
    assert!(out["findings"].as_array().unwrap().iter().any(|f| f["remedy"] == "none"), "{out}");
    assert!(std::fs::metadata(&log).unwrap().len() >= 64);
    let read = bench.tape_command("cat", &["--json", "--skip-damage"]).code(3);
    assert!(!read.text().is_empty(), "the tape can be read");
}

/// The small files: each that is damaged has a way out.
#[test]
fn small_files_are_looked_at() {
    let bench = Bench::new();
    let cursors = bench.path("run/cursors");
    std::fs::create_dir_all(&cursors).unwrap();
    std::fs::write(cursors.join("report"), b"no cursor at all").unwrap();
    std::fs::write(bench.path("run/retention"), [0xff; 40]).unwrap();
    std::fs::write(bench.path("account.gone"), "{\"format\":1}\nnone\n").unwrap();
    bench.verify().code(3);
    let out = bench.repair(&["--json"]).code(3).json();
    let named = |name: &str| {
        out["findings"].as_array().unwrap().iter().any(|f| f["file"].as_str().unwrap().ends_with(name))
    };
    assert!(named("cursors/report") && named("run/retention") && named("account.gone"), "{out}");
    let out = bench.repair(&["--apply", "--json"]).code(0).json();
    let kept = common::files(Path::new(out["aside"].as_str().unwrap()));
    for name in ["run/cursors/report", "run/retention", "account.gone"] {
        assert!(kept.contains_key(name) && !bench.path(name).exists(), "{name}: {:?}", kept.keys());
    }
    bench.verify().code(0);
    bench.write().code(0);
    assert!(bench.repair(&[]).code(0).text().contains("nothing to repair"));
    let dir = bench.dir.path().to_str().unwrap();
    run(["tape", "repair", dir]).code(1).says(&["not a tape"]);
}

/// Where `verify` finds damage that a repair knows no remedy for, the repair says so and does not end as if all was well.
#[test]
fn a_repair_never_calls_a_tape_sound_that_verify_refuses() {
    type Damage<'a> = (&'a str, Box<dyn Fn(&Bench) + 'a>);
    let behind = HEADER_PAGE + SEGMENT - 24;
    let damages: [Damage<'_>; 5] = [
        ("bytes after the end", Box::new(|b| change(&b.segment(b.last()), behind, |_| 7))),
        ("a longer definitions.log", Box::new(|b| lengthen(&b.path("definitions.log")))),
        ("a longer durable", Box::new(|b| lengthen(&b.path("durable")))),
        ("longer checksums", Box::new(|b| lengthen(&b.crc(0)))),
        ("a longer segment", Box::new(|b| lengthen(&b.segment(0)))),
    ];
    for (what, damage) in damages {
        let bench = Bench::new();
        damage(&bench);
        let verified = bench.verify().code;
        let dry = bench.repair(&[]);
        assert_eq!(dry.code, verified, "{what}: {}", dry.text());
        let applied = bench.repair(&["--apply"]);
        assert_eq!(applied.code, bench.verify().code, "{what}: {}", applied.text());
        if applied.code == Some(3) {
            assert!(applied.text().contains("cannot be mended"), "{what}: {}", applied.text());
            let json = bench.repair(&["--json"]).code(3).json();
            assert!(!json["unmended"].as_array().unwrap().is_empty(), "{what}: {json}");
        }
    }
}

/// A tape that somebody writes is left alone.
#[test]
fn a_tape_in_use_is_refused() {
    let bench = Bench::new();
    let mut args = bench.consolidation(SEGMENT);
    let feed = common::orders_option("more", Path::new("-"));
    args.extend(["--feed".into(), feed.into()]);
    let mut writer = unitape().args(&args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lock = bench.tape.join("run/writer.lock");
    let signed = format!("pid {}\n", writer.id());
    assert!(common::run::becomes(
        || std::fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&signed))
    ));
    for options in [&[][..], &["--apply"]] {
        bench.repair(options).code(1).says(&["locked", &writer.id().to_string()]);
    }
    drop(writer.stdin.take());
    assert_eq!(writer.wait().unwrap().code(), Some(0));
    bench.repair(&[]).code(0);
}

/// Killed at any moment: what was damaged is in its place or kept, whole, and the same command ends it.
///
/// Rounds by `UNITAPE_KILL_ROUNDS` (20), seed by `UNITAPE_KILL_SEED`.
#[test]
fn a_repair_that_is_killed_loses_nothing() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 20), number("UNITAPE_KILL_SEED", 1));
    let bench = Bench::of(2500, SPAN);
    let good = bench.content();
    let last = bench.last();
    let mut rng = Rng::new(seed);
    let mut kills = 0;
    for round in 0..rounds {
        let at = format!("UNITAPE_KILL_SEED={seed} round {round}");
        let cut = round % 3 == 2;
        let log_bytes = good["definitions.log"].len() as u64;
        flip(&bench.path("definitions.log"), 64 + rng.below(log_bytes - 64));
        if rng.below(2) == 0 {
            shorten(&bench.path("durable"), 0);
        } else {
            flip(&bench.path("durable"), rng.below(64));
        }
        flip(&bench.segment(rng.below(last + 1)), rng.below(68));
        shorten(&bench.crc(1), rng.below(4));
        if cut {
            flip(&bench.segment(2), HEADER_PAGE + 64);
        }
        let damaged: BTreeMap<_, _> =
            bench.content().into_iter().filter(|(n, b)| good.get(n) != Some(b)).collect();
        let word = if cut { "--truncate" } else { "--accept-unverified" };
        for _ in 0..100 {
            let tape = bench.tape.to_str().unwrap();
            let mut repair = unitape();
            repair.args(["tape", "repair", tape, "--apply", word]);
            let mut child = repair.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(rng.below(40_000)));
            let ended = child.try_wait().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            kept_or_there(&bench, &damaged, &at);
            match ended {
                Some(status) => {
                    assert!(matches!(status.code(), Some(0 | 3)), "{at}: {status}");
                    break;
                }
                None => kills += 1,
            }
        }
        let out = bench.repair(&["--apply", word]);
        assert_eq!(out.code, Some(0), "{at}: {}", out.text());
        bench.verify().code(0);
        bench.write().code(0);
        same(&bench.content(), &good, &at);
        remove_repairs(&bench);
    }
    assert!(kills > 0, "no repair was killed");
}

/// Every damaged file is there as it was, or kept as it was; of a header page the page is.
#[track_caller]
fn kept_or_there(bench: &Bench, damaged: &BTreeMap<String, Vec<u8>>, at: &str) {
    let all = common::files(&bench.tape);
    for (name, bytes) in damaged {
        let kept = all.iter().any(|(path, found)| {
            let of = path.starts_with("repair-");
            let whole = (path == name || of && path.ends_with(name)) && found == bytes;
            whole || of && path.ends_with(&format!("{name}.start")) && bytes.starts_with(found)
        });
        assert!(kept, "{at}: {name} is gone");
    }
}
