"""Tapes for the tests, and the command line that the module is held against."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("UNITAPE_BIN", "unitape")
READER = ROOT / "examples" / "python" / "read_tape.py"


def run(*args, code=0):
    """Runs the command line; returns its stdout."""
    ran = subprocess.run([BINARY, *map(str, args)], capture_output=True)
    assert ran.returncode == code, f"{args}: {ran.returncode}: {ran.stderr.decode()}"
    return ran.stdout


def cat_rows(tape, schema, *options, code=0):
    """The rows that `tape cat` prints."""
    lines = run("tape", "cat", tape, "--schema", schema, "--json", *options, code=code).splitlines()
    return [json.loads(line) for line in lines]


def read_events(tape):
    """The events that the independent reader prints."""
    ran = subprocess.run([sys.executable, READER, tape], capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    return [json.loads(line) for line in ran.stdout.splitlines()]


def make_tape(folder, events):
    """Makes a tape of events, which are dicts; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "events.jsonl").write_text(lines, encoding="utf-8")
    tape = folder / "tape"
    run("consolidate", "--feed", f"e=events::{folder / 'events.jsonl'}", "--tape", tape)
    return tape


def bbo(ts, instr="VOD", **fields):
    return {"ts": ts, "kind": "bbo", "instr": instr, **fields}


def trade(ts, instr="VOD", px="1", qty="1", **fields):
    return {"ts": ts, "kind": "trade", "instr": instr, "px": px, "qty": qty, **fields}


@pytest.fixture(scope="session")
def tapes(tmp_path_factory):
    """The tapes of a generated market and of the samples."""
    folder = tmp_path_factory.mktemp("tapes")
    run("generate", "market", "--out", folder / "market", "--events", 6000, "--seed", 7)
    samples = {
        "market": folder / "market" / "events.jsonl",
        "taq_98": ROOT / "vectors/fixed/taq/nyse_taq_bbo_20140206.txt",
        "taq_nbbo": ROOT / "vectors/csv/EQY_US_ALL_NBBO_20161024.txt",
        "taq_quotes": ROOT / "vectors/csv/SPLITS_US_ALL_BBO_A_20161024.txt",
        "taq_trades": ROOT / "vectors/csv/EQY_US_ALL_TRADE_20161024.txt",
        "jse": ROOT / "vectors/fix/jse/jse_fix50_marketdata_head80.fix",
    }
    tapes = {}
    for name, sample in samples.items():
        tapes[name] = folder / name
        if name == "market":
            tapes[name] = folder / "tape"
        run("consolidate", sample, "--tape", tapes[name])
    return tapes
