"""Selections: symbols, times, limits, and an end that is fixed at the call."""

import datetime
import json
import zoneinfo

import numpy as np
import pandas as pd
import pytest
import unitape
from conftest import bbo, cat_rows, make_tape, run, trade
from rows_twin import ns_of, rows_of

# 2026-03-02 09:30:00 UTC.
BASE = 1_772_443_800_000_000_000


@pytest.fixture(scope="module")
def tape(tmp_path_factory):
    names = ["VOD", "BP", "a,b", "\u202eright\u202c"]
    events = [bbo(BASE + n, names[n % 4], bid=str(n), bid_qty="1") for n in range(100)]
    return make_tape(tmp_path_factory.mktemp("selection"), events)


def times(rows):
    return [row["ts_event"] - BASE for row in rows_of(rows.to_arrow())]


def test_symbols_are_names_as_a_whole_in_a_list_and_split_in_a_text(tape):
    opened = unitape.open(tape)
    assert opened.symbols() == ["VOD", "BP", "a,b", "\u202eright\u202c"]
    for symbols, expected, missing in [
        (None, range(100), []),
        (["VOD"], range(0, 100, 4), []),
        ("VOD", range(0, 100, 4), []),
        ("VOD, BP", [n for n in range(100) if n % 4 < 2], []),
        (["a,b"], range(2, 100, 4), []),
        ("a,b", [], ["a", "b"]),
        (("\u202eright\u202c", "VODX"), range(3, 100, 4), ["VODX"]),
        (["vod"], [], ["vod"]),
        ([], [], []),
        ("", [], []),
        ([f"S{n}" for n in range(10_000)] + ["BP"], range(1, 100, 4), [f"S{n}" for n in range(10_000)]),
    ]:
        rows = opened.get_range("bbo", symbols)
        assert times(rows) == list(expected) and rows.not_found == missing


def test_times_are_text_numbers_and_datetimes(tape):
    utc = datetime.timezone.utc
    at = datetime.datetime(2026, 3, 2, 9, 30, tzinfo=utc)
    assert ns_of(at) == BASE
    same = [
        BASE,
        np.int64(BASE),
        str(BASE),
        "2026-03-02T09:30",
        "2026-03-02 09:30:00.000Z",
        "2026-03-02T10:30:00+01:00",
        "2026-03-02T04:30:00.0-05:00",
        at,
        at.replace(tzinfo=None),
        at.astimezone(zoneinfo.ZoneInfo("Asia/Tokyo")),
        pd.Timestamp(at),
        pd.Timestamp("2026-03-02 09:30"),
        pd.Timestamp("2026-03-02 10:30", tz="Europe/Paris"),
        np.datetime64("2026-03-02T09:30"),
        np.datetime64(BASE, "ns"),
    ]
    opened = unitape.open(tape)
    for time in same:
        assert times(opened.get_range("bbo", start=time)) == list(range(100)), time
        assert times(opened.get_range("bbo", end=time)) == [], time
    one_later = [BASE + 1, pd.Timestamp(BASE + 1), "2026-03-02T09:30:00.000000001", np.datetime64(BASE + 1, "ns")]
    for time in one_later:
        assert times(opened.get_range("bbo", start=time)) == list(range(1, 100)), time
        assert times(opened.get_range("bbo", end=time)) == [0], time
    for day in ["2026-03-02", datetime.date(2026, 3, 2), np.datetime64("2026-03-02")]:
        assert len(times(opened.get_range("bbo", start=day))) == 100
    assert times(opened.get_range("bbo", start=datetime.date(2026, 3, 3))) == []
    assert times(opened.get_range("bbo", start=BASE + 7, end=BASE + 7)) == []
    assert times(opened.get_range("bbo", "VOD", BASE + 8, BASE + 20)) == [8, 12, 16]


def test_limits(tape):
    opened = unitape.open(tape)
    for limit in [0, 1, 99, 100, 101, 2**64 - 1]:
        assert times(opened.get_range("bbo", limit=limit)) == list(range(min(limit, 100)))
    assert times(opened.get_range("bbo", symbols=["BP"], limit=2)) == [1, 5]


def test_the_command_selects_the_same(tape):
    ours = unitape.open(tape).get_range("bbo", ["VOD", "a,b"], BASE + 10, BASE + 50, limit=7)
    options = ["--instr", "VOD", "--instr", "a,b", "--since", BASE + 10, "--until", BASE + 50, "--limit", 7]
    assert rows_of(ours.to_arrow()) == cat_rows(tape, "bbo", *options)


def test_the_end_is_fixed_at_the_call(tmp_path):
    tape = make_tape(tmp_path, [trade(BASE + n) for n in range(5)])
    opened = unitape.open(tape)
    before = opened.get_range("trades")
    timed = opened.get_range("trades", start=BASE + 1, end=BASE + 1_000)
    empty = opened.get_range("bbo")
    info = opened.info()
    assert info["events"] == 5 and info["instruments"] == 1 and info["path"] == tape
    more = tmp_path / "more.jsonl"
    more.write_text("".join(json.dumps(e) + "\n" for n in range(3) for e in [trade(BASE + 100 + n, "BP"), bbo(BASE + n)]))
    run("consolidate", "--feed", f"m=events::{more}", "--tape", tape)
    assert times(before) == [0, 1, 2, 3, 4] and times(timed) == [1, 2, 3, 4] and times(empty) == []
    assert times(opened.get_range("trades")) == [0, 1, 2, 3, 4, 100, 101, 102]
    assert opened.info()["end"] > info["end"] and opened.symbols() == ["VOD", "BP"]


def test_an_empty_tape_has_all_columns(tmp_path):
    tape = make_tape(tmp_path, [{"ts": BASE, "kind": "clock"}])
    for schema in unitape.open(tape).schemas():
        rows = unitape.open(tape).get_range(schema)
        row_count = 1 if schema == "clock" else 0
        assert rows.to_arrow().num_rows == rows.to_polars().height == len(rows.to_df()) == row_count
        assert rows.to_arrow().column_names == rows.to_polars().columns == list(rows.to_df().columns) == rows.columns
