"""Values at the limits of their types."""

from decimal import Decimal

import pytest
import unitape
from conftest import bbo, cat_rows, make_tape, trade, run
from rows_twin import rows_of

TS_MAX = 2**63 - 1
NARROW_MAX = "9999999999.99999999"


def test_the_greatest_and_the_least(tmp_path):
    prices = ["9223372036.854775806", "-9223372036.854775808", "0", "0.000000001", "-0.000000001"]
    sizes = [NARROW_MAX, "0.00000001", "0", "1", "-" + NARROW_MAX]
    names = ["n" * 255, "a", "\u202e\x01\n", "é\U0010ffff", "{}"]
    events = []
    for n, (px, qty, name) in enumerate(zip(prices, sizes, names)):
        ts = [0, 1, TS_MAX, -1, -TS_MAX][n]
        events.append(trade(ts, name, px, qty, venue=name, match_id=[0, 2**64 - 1, "", "é" * 100, "0x"][n], seq=2**32 - 3 + n))
        events.append(bbo(ts, name, bid=px, bid_qty=qty))
        events.append(bbo(ts, name, ask=px, ask_qty=qty, venue=name))
    events.append(bbo(0))
    flags = ["auction", "iso", "exempt", "no_last"]
    events += [
        trade(n, trade_flags=[f for i, f in enumerate(flags) if n >> i & 1], cond="@  I"[: n % 5]) for n in range(1, 16)
    ]
    tape = make_tape(tmp_path, events)
    for schema in ["bbo", "trades"]:
        rows = unitape.open(tape).get_range(schema)
        ours = rows_of(rows.to_arrow())
        assert ours == cat_rows(tape, schema)
        assert rows_of(rows.to_polars().to_arrow().cast(rows.to_arrow().schema)) == ours
    trades = rows_of(unitape.open(tape).get_range("trades").to_arrow())
    assert [row["price"] for row in trades[:5]] == prices and [row["size"] for row in trades[:5]] == sizes
    assert [row["symbol"] for row in trades[:5]] == names
    assert [row["sequence"] for row in trades[:5]] == [2**32 - 3 + n for n in range(5)]
    assert {row["trade_flags"] for row in trades[5:]} >= {"auction", "iso+no_last", "auction+iso+exempt+no_last"}
    frame = unitape.open(tape).get_range("trades").to_df()
    assert list(frame["price"][:5]) == [float(px) for px in prices] and list(frame["size"][:5]) == [float(s) for s in sizes]


@pytest.mark.parametrize("size", ["10000000000", "0.000000001", "999999999999999999", "-10000000000"])
def test_a_size_that_does_not_fit_is_an_error_that_names_the_option(tmp_path, size):
    tape = make_tape(tmp_path, [trade(1), trade(2, qty=size), trade(3)])
    rows = unitape.open(tape).get_range("trades")
    for read in [rows.to_arrow, rows.to_polars, lambda: rows.to_df(price_type="decimal")]:
        with pytest.raises(unitape.Error, match='size_type="wide"') as raised:
            read()
        assert (raised.value.code, raised.value.cause) == ("size_misfit", "call")
    wide = unitape.open(tape).get_range("trades", size_type="wide")
    assert [row["size"] for row in rows_of(wide.to_arrow())] == ["1", size, "1"]
    assert list(wide.to_df()["size"]) == [1.0, float(size), 1.0]


def test_a_size_that_no_decimal_holds_is_null_in_a_file_and_counted(tmp_path):
    import pyarrow as pa

    size = "0.0000000000000000001"
    tape = make_tape(tmp_path, [trade(1), trade(2, qty=size), trade(3)])
    with pytest.raises(unitape.Error, match='price_type="float"'):
        unitape.open(tape).get_range("trades", size_type="wide").to_arrow()
    assert list(unitape.open(tape).get_range("trades").to_df()["size"]) == [1.0, float(size), 1.0]
    run("tape", "cat", tape, "--schema", "trades", "--arrow", "-o", tmp_path / "t.arrow", code=3)
    with pa.ipc.open_stream(tmp_path / "t.arrow") as stream:
        assert stream.read_all()["size"].to_pylist() == [Decimal(1), None, Decimal(1)]
    assert [row["size"] for row in cat_rows(tape, "trades")] == ["1", size, "1"]


def test_many_names_come_batch_by_batch(tmp_path):
    """A dictionary that shrank or changed would give rows another symbol."""
    count = 150_000
    tape = make_tape(tmp_path, [bbo(n, f"I{n % 70_000}", venue=f"V{n // 50_000}") for n in range(count)])
    import pyarrow as pa

    batches = list(pa.RecordBatchReader.from_stream(unitape.open(tape).get_range("bbo")))
    assert len(batches) == 3
    n = 0
    for batch in batches:
        for symbol, venue in zip(batch["symbol"].to_pylist(), batch["venue"].to_pylist()):
            assert (symbol, venue) == (f"I{n % 70_000}", f"V{n // 50_000}")
            n += 1
    assert n == count
    frame = unitape.open(tape).get_range("bbo").to_polars()
    assert frame["symbol"].cast(str).to_list() == [f"I{n % 70_000}" for n in range(count)]
    run("tape", "cat", tape, "--schema", "bbo", "--arrow", "-o", tmp_path / "t.arrow")
    with pa.ipc.open_stream(tmp_path / "t.arrow") as stream:
        assert stream.read_all()["symbol"].to_pylist() == [f"I{n % 70_000}" for n in range(count)]
