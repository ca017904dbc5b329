"""The slow twins: rows made from printed events, and the values of Arrow as rows are printed."""

import datetime
from decimal import Decimal

SIDES = {"B": "B", "S": "A"}
ACTIONS = {"cancel": "C", "correct": "M"}


def row_of(event, schema):
    """The row of an event that the independent reader has printed; None where it makes no row of the schema."""
    if event["kind"] != {"bbo": "bbo", "trades": "trade"}[schema]:
        return None
    ids = event["ids"]
    row = {
        "ts_event": event["ts"],
        "ts_recv": event.get("ts_recv"),
        "publisher_id": ids.get("venue"),
        "instrument_id": ids.get("instr"),
    }
    if schema == "bbo":
        row["sequence"] = event.get("src_seq")
        for column, field in [("bid_px_00", "bid"), ("ask_px_00", "ask"), ("bid_sz_00", "bid_qty"), ("ask_sz_00", "ask_qty")]:
            row[column] = event.get(field)
        words = ["partial"] if event.get("partial") is True else []
        words += [event["cond"]] if event.get("cond") is not None else []
        row |= {"cond": "+".join(words) if words else None, "bid_venue": event.get("bid_venue"), "ask_venue": event.get("ask_venue")}
    else:
        row["action"] = ACTIONS.get(event.get("action"), "T")
        row["side"] = SIDES.get(event.get("side"), "N")
        row |= {"price": event.get("px"), "size": event.get("qty"), "sequence": event.get("src_seq")}
        match = event.get("match_id")
        row["match_id"] = None if match is None else f"0x{match['hex']}" if isinstance(match, dict) else str(match)
        # A field of the user's own under the name of a field is no field.
        row["cond"] = event.get("cond")
        row["trade_flags"] = "+".join(event["trade_flags"]) if event.get("trade_flags") else None
    return row | {"symbol": event.get("instr"), "venue": event.get("venue")}


def text_of(number):
    """A decimal as unitape prints it."""
    if number is None:
        return None
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def rows_of(table):
    """The rows of a pyarrow Table as `tape cat --json` prints them."""
    import pyarrow as pa

    columns = {}
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_timestamp(column.type):
            assert (column.type.unit, column.type.tz) == ("ns", "UTC")
            columns[name] = column.cast(pa.int64()).to_pylist()
        elif pa.types.is_decimal(column.type):
            columns[name] = [text_of(number) for number in column.to_pylist()]
        else:
            columns[name] = column.to_pylist()
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def ns_of(time):
    """Nanoseconds of a datetime."""
    delta = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000


__all__ = ["Decimal", "ns_of", "row_of", "rows_of", "text_of"]
