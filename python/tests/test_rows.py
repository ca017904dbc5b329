"""Rows are the same from Python, from `tape cat --schema` and from the independent reader."""

import csv
import io
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import unitape
from conftest import cat_rows, read_events, run
from rows_twin import row_of, rows_of

SCHEMAS = ["bbo", "trades"]


def test_rows_equal_the_command_and_the_independent_reader(tapes):
    counts = {}
    for name, tape in tapes.items():
        events = read_events(tape)
        for schema in SCHEMAS:
            ours = rows_of(unitape.open(tape).get_range(schema).to_arrow())
            assert ours == cat_rows(tape, schema), (name, schema)
            twin = [row for row in (row_of(event, schema) for event in events) if row]
            assert ours == twin, (name, schema)
            counts[name, schema] = len(ours)
    # Not everything was empty.
    assert counts["market", "bbo"] > 300 and counts["market", "trades"] > 200
    assert min(counts["taq_98", "bbo"], counts["taq_quotes", "bbo"], counts["taq_nbbo", "bbo"]) > 5
    assert counts["taq_trades", "trades"] > 5


@pytest.mark.parametrize("schema", SCHEMAS)
def test_all_forms_of_the_command_are_the_same_rows(tapes, tmp_path, schema):
    tape = tapes["market"]
    rows = cat_rows(tape, schema)
    lines = run("tape", "cat", tape, "--schema", schema, "--csv").decode()
    # The reader of CSV does not know null; an empty text would be quoted.
    printed = [{name: value or None for name, value in row.items()} for row in csv.DictReader(io.StringIO(lines))]
    assert printed == [{name: None if v is None else str(v) for name, v in row.items()} for row in rows]
    run("tape", "cat", tape, "--schema", schema, "--arrow", "-o", tmp_path / "rows.arrow")
    with pa.ipc.open_stream(tmp_path / "rows.arrow") as stream:
        table = stream.read_all()
    assert rows_of(table) == rows
    sizes = [field.type for field in table.schema if "sz" in field.name or field.name == "size"]
    assert sizes and set(sizes) == {pa.decimal128(38, 18)}
    text = run("tape", "cat", tape, "--schema", schema).decode().splitlines()
    assert len(text) == len(rows) + 1 and text[0].split() == list(rows[0])
    run("tape", "cat", tape, "--schema", schema, "--json", "-o", tmp_path / "rows.jsonl")
    assert [json.loads(line) for line in open(tmp_path / "rows.jsonl")] == rows


@pytest.mark.parametrize("schema", SCHEMAS)
def test_pyarrow_polars_and_pandas_have_the_same_values(tapes, schema):
    rows = unitape.open(tapes["market"]).get_range(schema)
    table = rows.to_arrow()
    expected = rows_of(table)
    price = "price" if schema == "trades" else "bid_px_00"
    size = "size" if schema == "trades" else "bid_sz_00"
    assert table.schema.field(price).type == pa.decimal128(19, 9)
    assert table.schema.field(size).type == pa.decimal128(18, 8)
    frame = rows.to_polars()
    assert rows_of(frame.to_arrow().select(rows.columns).cast(table.schema)) == expected
    assert frame.schema[price] == pl.Decimal(19, 9) and frame.schema["ts_event"] == pl.Datetime("ns", "UTC")

    pandas = rows.to_df()
    assert list(pandas.columns) == rows.columns
    assert str(pandas["ts_event"].dtype) == "datetime64[ns, UTC]" and str(pandas["sequence"].dtype) == "UInt64"
    assert [int(ts.value) for ts in pandas["ts_event"]] == [row["ts_event"] for row in expected]
    floats = [float("nan") if row[price] is None else float(row[price]) for row in expected]
    np.testing.assert_array_equal(pandas[price].to_numpy(), np.array(floats))
    assert [None if pd.isna(v) else v for v in pandas["symbol"]] == [row["symbol"] for row in expected]

    fixed = rows.to_df(price_type="fixed")
    assert str(fixed[price].dtype) == "Int64"
    whole = [None if row[price] is None else int(Decimal(row[price]) * 10**9) for row in expected]
    assert [None if pd.isna(v) else int(v) for v in fixed[price]] == whole
    whole = [None if row[size] is None else int(Decimal(row[size]) * 10**9) for row in expected]
    assert rows.to_arrow(price_type="fixed")[size].to_pylist() == whole

    exact = rows.to_df(price_type="decimal", tz="Europe/London")
    assert [None if pd.isna(v) else v for v in exact[size]] == [None if r[size] is None else Decimal(r[size]) for r in expected]
    assert str(exact["ts_event"].dtype) == "datetime64[ns, Europe/London]"
    assert (exact["ts_event"] == pandas["ts_event"]).all()


def test_a_price_times_a_size_is_exact_in_pyarrow(tapes):
    import pyarrow.compute as pc

    table = unitape.open(tapes["market"]).get_range("trades").to_arrow()
    amounts = pc.multiply(table["price"], table["size"]).to_pylist()
    assert amounts == [p * s for p, s in zip(table["price"].to_pylist(), table["size"].to_pylist())]


def test_each_stream_is_a_new_one(tapes):
    rows = unitape.open(tapes["market"]).get_range("trades")
    first, second = pa.RecordBatchReader.from_stream(rows), pa.RecordBatchReader.from_stream(rows)
    assert first.schema == second.schema == pa.schema(rows)
    one = first.read_next_batch()
    del first
    assert second.read_all().num_rows == one.num_rows == rows.to_arrow().num_rows
    assert pl.DataFrame(rows).height == one.num_rows


def test_importing_it_loads_nothing_else():
    code = "import sys, unitape; print(sorted({'pandas', 'polars', 'pyarrow', 'numpy', 'datetime'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"
