//! Good and bad inputs of every kind in one directory, and commands as lines that name them.

#![allow(dead_code)] // each test file uses its part

use crate::common::{self, Ran, file, fix, order, root, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with these in it:
///
/// | name | holds |
/// |---|---|
/// | `o.fix`, `bad.fix`, `empty`, `text.txt`, `cut.gz` | orders; one with a wrong checksum; nothing; prose; half a gzip file |
/// | `ev.jsonl`, `bad.jsonl` | event lines, and some of which the second is none |
/// | `t`, `q`, `none` | tapes: of `o.fix`, of `bad.fix`, of nothing |
/// | `damaged`, `foreign`, `dir` | a tape with a spoilt header, one of a later format, a directory of no kind |
/// | `s`, `s-damaged`, `s-foreign` | stores of `t`, likewise |
/// | `wrong.toml`, `wrong.xml`, `layout.toml` | files that are no mapping, no templates, no layout |
/// | `days.csv` | a calendar |
/// | `run.toml`, `pipe`, `master.jsonl` | a configuration, a named pipe, reference data that contradict themselves |
pub struct Inputs {
    dir: tempfile::TempDir,
}

impl Inputs {
    pub fn new() -> Self {
        let this = Self { dir: tempfile::tempdir().unwrap() };
        let d = this.path("");
        let orders: Vec<u8> = (1..60).flat_map(order).collect();
        file(&d, "o.fix", &orders);
        let mut bad = order(1);
        let digit = bad.len() - 2;
        bad[digit] ^= 1;
        file(&d, "bad.fix", [order(1), bad, order(3)].concat());
        file(&d, "empty", "");
        file(&d, "text.txt", "hello, world\n");
        file(&d, "cut.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c]);
        file(&d, "ev.jsonl", EVENTS);
        file(&d, "bad.jsonl", format!("{}\nnothing\n", EVENTS.lines().next().unwrap()));
        file(&d, "wrong.toml", "name = \"wrong\"\nformat = \"fix\"\n[[rule]]\nnope = 1\n");
        file(
            &d,
            "wrong.xml",
            "<templates>\n<template name=\"A\" id=\"1\"><uInt32 name=\"x\"><constant/></uInt32>",
        );
        file(&d, "layout.toml", "nope = 1\n");
        file(&d, "days.csv", "what,key,date,time,zone,value\nvenue,XCME,,17:00,America/Chicago,\n");
        let entry =
            |name: &str| format!("{{\"ts\":0,\"kind\":\"ref\",\"instr\":\"{name}\",\"isin\":\"GB1\"}}\n");
        file(&d, "master.jsonl", entry("A") + &entry("B"));
        let run_toml = "[tape]\ndir = \"r\"\n[[feed]]\nname = \"o\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nfiles = [\"o.fix\"]\n";
        file(&d, "run.toml", run_toml);
        file(&d, "typo.toml", run_toml.replace("mapping", "mappin"));
        std::fs::create_dir(this.path("dir")).unwrap();
        file(&this.path("dir"), "other", "");
        assert!(Command::new("mkfifo").arg(this.path("pipe")).status().unwrap().success());
        for (name, input, code) in [("t", "o.fix", 0), ("q", "bad.fix", 3), ("none", "empty", 0)] {
            let line = format!("consolidate --feed o=fix:fix44-orders:{input} --tape {name}");
            this.run(&line).code(code);
        }
        this.run("store seal t --store s").code(0);
        for copy in ["damaged", "foreign"] {
            copy_all(&this.path("t"), &this.path(copy));
            copy_all(&this.path("s"), &this.path(&format!("s-{copy}")));
        }
        let segment = this.path("damaged/segments/0000000000000000.seg");
        let mut bytes = std::fs::read(&segment).unwrap();
        let events = this.run("tape cat t --json --full").code(0).lines();
        let header = events[30]["position"].as_u64().unwrap() as usize;
        bytes[4096 + header..][..8].fill(0xee);
        std::fs::write(&segment, bytes).unwrap();
        let meta = this.path("foreign/tape.toml");
        let text = std::fs::read_to_string(&meta).unwrap();
        let line = text.lines().find(|l| l.starts_with("format")).unwrap();
        std::fs::write(&meta, text.replace(line, "format = 99")).unwrap();
        let manifest = |store: &str| {
            let mut all = std::fs::read_dir(this.path(store)).unwrap().map(|e| e.unwrap().path());
            all.find(|p| p.file_name().unwrap().to_str().unwrap().contains("manifest")).unwrap()
        };
        let path = manifest("s-damaged");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        this
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command of a line; words are separated by blanks, `''` is an empty one.
    pub fn command(&self, line: &str) -> Command {
        let mut command = common::unitape();
        command.current_dir(self.dir.path()).args(words(line));
        command
    }

    /// Runs the command of a line in the directory.
    pub fn run(&self, line: &str) -> Ran {
        common::finish(&mut self.command(line))
    }

    /// The command with what a shell can do around it: `unitape … > /dev/full`.
    pub fn shell(&self, script: &str) -> Ran {
        let unitape = common::unitape().get_program().to_owned();
        let script = script.replace("unitape ", &format!("'{}' ", unitape.to_str().unwrap()));
        common::finish(Command::new("bash").args(["-c", &script]).current_dir(self.dir.path()))
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace("''", "")).collect()
}

fn copy_all(from: &Path, to: &Path) {
    for (name, bytes) in common::files(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Every command of the binary that can be called, with its parents: found by its own help.
pub fn every_command() -> Vec<String> {
    fn walk(before: &str, all: &mut Vec<String>) {
        let help = run(before.split(' ').filter(|w| !w.is_empty()).chain(["--help"])).code(0);
        let commands =
            help.text().split_once("Commands:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap());
        let Some(commands) = commands else { return all.push(before.trim().to_owned()) };
        let names = commands.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
        let names = names.map(|l| l.split_whitespace().next().unwrap()).filter(|name| *name != "help");
        names.for_each(|name| walk(&format!("{before} {name}"), all));
    }
    let mut all = Vec::new();
    walk("", &mut all);
    all
}

/// FIX messages of one field each that a feed can fill as it likes.
pub fn order_of(n: u32, instr: &str, venue: &str) -> Vec<u8> {
    let time = format!("20260302-00:00:{:02}", n % 60);
    fix(&format!(
        "35=8|49=XLON|56=U|34={n}|52={time}|60={time}|37=O{n}|150=0|54=1|38=100|40=2|44=1|207={venue}|48={instr}|22=4|"
    ))
}

pub fn vectors(name: &str) -> String {
    root().join("vectors").join(name).display().to_string()
}

const EVENTS: &str = r#"{"ts":1772443800000000000,"kind":"order_new","venue":"XLON","instr":"VOD","oid":"1","side":"B","px":"10","qty":"5","owner":"A"}
{"ts":1772443800000000001,"kind":"bbo","venue":"XLON","instr":"VOD","bid":"10","bid_qty":"5","ask":"11","ask_qty":"5"}
{"ts":1772443800000000002,"kind":"trade","venue":"XLON","instr":"BARC","px":"10","qty":"5"}
"#;
