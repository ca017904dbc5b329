"""Wrong calls, damage, and what a call does while it reads."""

import datetime
import os
import signal
import sys
import threading
import time
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import unitape
from conftest import bbo, cat_rows, make_tape, run, trade
from rows_twin import rows_of


@pytest.fixture(scope="module")
def tape(tmp_path_factory):
    return make_tape(tmp_path_factory.mktemp("errors"), [trade(n) for n in range(3)])


def test_what_is_no_tape_is_an_error_with_its_path(tmp_path):
    (tmp_path / "file").write_text("no tape")
    for name in ["missing", "file", ".", "a\udcff"]:
        with pytest.raises(unitape.Error) as raised:
            unitape.open(tmp_path / name)
        assert raised.value.cause == "outside" and raised.value.code in ("io", "not_a_tape")
    with pytest.raises(TypeError):
        unitape.open(7)


def test_wrong_arguments_name_what_to_write(tape):
    get_range = unitape.open(tape).get_range
    for call, code, words in [
        (lambda: get_range("trade"), "unknown_schema", "did you mean `trades`?; schemas: mbo, mbp, bbo, trades"),
        (lambda: get_range("nope"), "unknown_schema", "schemas: mbo, mbp, bbo, trades"),
        (lambda: get_range("bbo", size_type="wid"), "unknown_option", "did you mean `wide`?"),
        (lambda: get_range("bbo").to_df(price_type="decimals"), "unknown_option", "did you mean `decimal`?"),
        (lambda: get_range("bbo", start=2, end=1), "start_after_end", "start is after end"),
        (lambda: get_range("bbo", start="noon"), "bad_time", "`noon` is no time"),
        (lambda: get_range("bbo", start="2026-03-02T09:30+25:00"), "bad_time", "no time"),
        (lambda: get_range("bbo", start="2026-03-02T09:30Z+01:00"), "bad_time", "no time"),
        (lambda: get_range("bbo", end="9999-01-01"), "bad_time", "no time"),
        (lambda: get_range("bbo", end=2**63), "bad_time", "2262"),
        (lambda: get_range("bbo", end=datetime.datetime(2263, 1, 1)), "bad_time", "2262"),
        (lambda: get_range("bbo", end=datetime.date(1500, 1, 1)), "bad_time", "1677"),
        (lambda: get_range("bbo", end=np.datetime64("3000-01-01")), "bad_time", "2262"),
        (lambda: get_range("bbo", end=pd.Timestamp("3000-01-01")), "bad_time", "2262"),
        (lambda: get_range("bbo", start=pd.NaT), "bad_time", "NaT"),
        (lambda: get_range("bbo", start=np.datetime64("NaT")), "bad_time", "NaT"),
    ]:
        with pytest.raises(unitape.Error) as raised:
            call()
        assert (raised.value.code, raised.value.cause) == (code, "call"), raised.value
        assert words in str(raised.value)
        assert raised.value.file is None and raised.value.position is None
    for call in [
        lambda: get_range(),
        lambda: get_range(7),
        lambda: get_range("bbo", symbols=7),
        lambda: get_range("bbo", symbols=["VOD", 7]),
        lambda: get_range("bbo", start=True),
        lambda: get_range("bbo", start=1.5),
        lambda: get_range("bbo", start=[]),
        lambda: get_range("bbo", limit="many"),
    ]:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OverflowError):
        get_range("bbo", limit=-1)


def flip(path, offset):
    """Flips a bit of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 4]))


def test_damage_comes_after_the_rows_before_it_and_gives_no_short_table(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text("".join(f'{{"ts":{n},"kind":"trade","instr":"VOD","px":"1","qty":"{n}"}}\n' for n in range(1, 5001)))
    tape = tmp_path / "tape"
    run("consolidate", "--feed", f"e=events::{events}", "--tape", tape, "--segment-bytes", 65536)
    segments = sorted((tape / "segments").glob("*.seg"))
    assert len(segments) > 4
    before = rows_of(unitape.open(tape).get_range("trades").to_arrow())
    for segment in [segments[3], segments[-1]]:
        rows = unitape.open(tape).get_range("trades")
        flip(segment, 8192)
        printed = cat_rows(tape, "trades", code=3)
        assert 0 < len(printed) < 5000 and printed == before[: len(printed)]
        # Asked for before and after the damage.
        for rows in [rows, unitape.open(tape).get_range("trades")]:
            given = []
            with pytest.raises(Exception, match="damage"):
                for batch in pa.RecordBatchReader.from_stream(rows):
                    given += rows_of(pa.Table.from_batches([batch]))
            assert given == printed
            for read in [rows.to_arrow, rows.to_polars, rows.to_df]:
                with pytest.raises(unitape.Error, match="damage") as raised:
                    read()
                assert (raised.value.code, raised.value.cause) == ("damage", "data")
                assert str(raised.value.file).endswith(segment.name) and raised.value.position >= 4096
            # Rows that lie before the damage can be read.
            assert rows_of(unitape.open(tape).get_range("trades", limit=10).to_arrow()) == before[:10]
        flip(segment, 8192)
    rows = unitape.open(tape).get_range("trades")
    for segment in segments:
        segment.unlink()
    with pytest.raises(unitape.Error):
        rows.to_arrow()


def test_checksums_that_are_missing_are_a_warning(tmp_path):
    tape = make_tape(tmp_path, [trade(n) for n in range(3)])
    for sums in (tape / "segments").glob("*.crc"):
        sums.unlink()
    with pytest.warns(UserWarning, match="unverified"):
        assert unitape.open(tape).get_range("trades").to_arrow().num_rows == 3


def test_a_stream_may_be_dropped_half_way_and_outlive_its_tape(tape):
    stream = pa.RecordBatchReader.from_stream(unitape.open(tape).get_range("trades"))
    assert stream.read_next_batch().num_rows == 3
    capsule = unitape.open(tape).get_range("trades").__arrow_c_stream__()
    del capsule
    left = [pa.RecordBatchReader.from_stream(unitape.open(tape).get_range("trades"))]
    thread = threading.Thread(target=left.clear)
    thread.start()
    thread.join()
    assert left == []


@pytest.fixture
def lone_thread(monkeypatch):
    """No thread loses the GIL unless it releases it, and pyarrow releases nothing."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    reader = types.SimpleNamespace(from_stream=lambda batches: types.SimpleNamespace(read_all=lambda: batches))
    monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace(RecordBatchReader=reader))
    yield
    sys.setswitchinterval(interval)


def with_thread(action, call):
    """Makes calls, and has a thread do something in one of them as soon as the call releases the GIL."""
    state = {"calls": False, "done": False, "stop": False}

    def work():
        while not state["stop"]:
            if state["calls"] and not state["done"]:
                action()
                state["done"] = True
            time.sleep(0)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        # A call can be over before the thread wakes up.
        for _ in range(1000):
            state["calls"] = True
            call()
            state["calls"] = False
            if state["done"]:
                return True
        return False
    finally:
        state["stop"] = True
        thread.join()


def test_another_thread_runs_while_a_tape_is_read(tapes, lone_thread):
    assert with_thread(lambda: None, unitape.open(tapes["market"]).get_range("trades").to_arrow)


def test_ctrl_c_ends_a_call(tapes, lone_thread):
    rows = unitape.open(tapes["market"]).get_range("trades")
    with pytest.raises(KeyboardInterrupt):
        with_thread(lambda: os.kill(os.getpid(), signal.SIGINT), rows.to_arrow)
