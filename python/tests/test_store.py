"""Files that `store scan` and `store export` write have the rows of `--json` for pyarrow, Polars and DuckDB."""

import json
import re
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, bbo, make_tape, run, trade
from rows_twin import rows_of

DAY = 86_400_000_000_000
NOON = 1_710_158_400_000_000_000
SYMBOLS = ["VOD", "../x", "a/b", "a%2Fb", "A B%", "k=v", "é, \"x\"", "007"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of three days with names that are no good paths, the largest price and the smallest size."""
    events = []
    for n in range(96):
        ts, instr = NOON + n * 1_000 + n // 32 * DAY, SYMBOLS[n % len(SYMBOLS)]
        events.append(trade(ts, instr, px=f"-{n}.5", qty="0.000000000000000001", venue="X", trade_flags=["auction", "iso"]))
        events.append(bbo(ts, instr, bid="9223372036.854775806", bid_qty="99999999999.5", venue="X", src_seq=2**64 - 1 - n))
    folder = tmp_path_factory.mktemp("store")
    run("store", "seal", make_tape(folder, events), "--store", folder / "ticks")
    return folder / "ticks"


def scan_rows(store, schema, *options):
    lines = run("store", "scan", store, "--schema", schema, "--json", *options).splitlines()
    return [json.loads(line) for line in lines]


def export(store, schema, out, *options, format="parquet"):
    run("store", "export", store, "--schema", schema, "--format", format, "-o", out, *options)
    return out


@pytest.mark.parametrize("schema", ["bbo", "trades"])
def test_files_have_the_rows_of_json(store, tmp_path, schema):
    rows = scan_rows(store, schema)
    assert len(rows) == 96
    table = pq.read_table(export(store, schema, tmp_path / "x.parquet"))
    assert rows_of(table) == rows
    assert table.schema.metadata[b"unitape.schema"] == schema.encode()
    assert table.schema.metadata[b"unitape.generation"] == b"1"
    with pa.ipc.open_stream(export(store, schema, tmp_path / "x.arrows", format="arrow")) as stream:
        assert rows_of(stream.read_all()) == rows
    assert pq.read_table(pa.BufferReader(run("store", "scan", store, "--schema", schema, "--parquet"))) == table
    assert rows_of(pl.read_parquet(tmp_path / "x.parquet").to_arrow()) == rows
    relation = duckdb.sql(f"SELECT * FROM '{tmp_path / 'x.parquet'}'")
    types = dict(zip(relation.columns, map(str, relation.types)))
    names = ("bid_px_00", "bid_sz_00") if schema == "bbo" else ("price", "size")
    assert [types[name] for name in names] == ["DECIMAL(19,9)", "DECIMAL(38,18)"]
    values = relation.select("* REPLACE (epoch_ns(ts_event) AS ts_event)").fetchall()
    for row, got in zip(rows, values, strict=True):
        for name, value in zip(relation.columns, got, strict=True):
            expected = Decimal(row[name]) if types[name].startswith("DECIMAL") and row[name] else row[name]
            assert value == expected, (name, row)


def test_an_empty_selection_is_a_file_with_columns(store, tmp_path):
    table = pq.read_table(export(store, "bbo", tmp_path / "x.parquet", "--until", "2024-01-01"))
    assert table.num_rows == 0
    assert table.column_names == list(scan_rows(store, "bbo", "--limit", "1")[0])
    assert table.schema.field("ts_event").type == pa.timestamp("ns", "UTC")


def test_partitions_are_one_table(store, tmp_path):
    rows = scan_rows(store, "bbo")
    sizes = {}
    for key in ["date", "symbol"]:
        folder = export(store, "bbo", tmp_path / key, "--partition", key)
        glob = f"read_parquet('{folder}/*/*.parquet', hive_partitioning = true, hive_types_autocast = false)"
        sizes[key] = duckdb.sql(f"SELECT {key}::VARCHAR, count(*) FROM {glob} GROUP BY 1 ORDER BY 1").fetchall()
        frame = pl.scan_parquet(folder, hive_partitioning=True, try_parse_hive_dates=False).collect()
        counts = frame.group_by(pl.col(key).cast(pl.String)).len().sort(key).rows()
        assert counts == sizes[key]
        assert frame.height == len(rows)
        # Every file is complete by itself.
        parts = sorted(folder.glob("*/part-0.parquet"))
        whole = [row for part in parts for row in rows_of(pq.ParquetFile(part).read())]
        by_row = lambda row: (row["ts_event"], row["sequence"])
        assert sorted(whole, key=by_row) == sorted(rows, key=by_row)
    assert sizes["date"] == [("2024-03-11", 32), ("2024-03-12", 32), ("2024-03-13", 32)]
    assert sizes["symbol"] == sorted((symbol, 12) for symbol in SYMBOLS)
    table = pyarrow.dataset.dataset(tmp_path / "date", partitioning="hive").to_table()
    assert sorted(set(table["date"].to_pylist())) == ["2024-03-11", "2024-03-12", "2024-03-13"]


def test_the_python_of_the_guide_runs(store, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "guide-quant.md").read_text(encoding="utf-8")
    [text] = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "duckdb" in text]
    export(store, "bbo", tmp_path / "quote-files", "--partition", "date")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(text, "guide-quant.md", "exec"), names)
    assert len(names["rows"].fetchall()) == len(SYMBOLS)
    assert names["frame"].height == 12 and names["table"].num_rows == 96
